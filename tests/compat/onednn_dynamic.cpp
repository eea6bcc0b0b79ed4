// Mirrors include/qtensor/compat/onednn_dynamic.hpp: the run-time entry equals the schemes, and what it refuses.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <qtensor/compat/onednn_dynamic.hpp>
#include <string>

#include "compat/onednn_check.hpp"
#include "core/sentence.hpp"

using namespace onednn_check;
using dnn::quantization_mode;
using dnn::version;

namespace {

dnn::dynamic_scale mx(version v = version::release_3_12) {
  return {quantization_mode::dynamic_mx, data_type::e8m0, 3, {1, 32}, v};
}
dnn::dynamic_scale fp(version v = version::release_3_12) {
  return {quantization_mode::dynamic_fp, data_type::f8_e4m3, 3, {1, 16}, v};
}

/// Scale code and codes of the first numbers of a group; the others are 0.
words group_of(const dnn::dynamic_scale& how, data_type to, const std::vector<float>& x) {
  const list dims = {1, how.groups.back()};
  std::vector<float> row(static_cast<std::size_t>(dims[1]));
  std::copy(x.begin(), x.end(), row.begin());
  buffer dst(to, row.size()), scale(how.type, std::size_t{1});
  dnn::quantize(dims, data_type::f32, row.data(), how, to, dst.data(), scale.data());
  words out = scale.codes();
  const words all = dst.codes();
  out.insert(out.end(), all.begin(), all.begin() + static_cast<std::ptrdiff_t>(x.size()));
  return out;
}

}  // namespace

TEST_CASE("quantize: both modes, both versions") {
  CHECK(group_of(mx(), data_type::f8_e4m3, {500.f, 1.f}) == words{0x7F, 0x7F, 0x38});
  CHECK(group_of(mx(version::source_2026_08), data_type::f8_e4m3, {500.f, 1.f}) == words{0x7F, 0x7E, 0x38});
  CHECK(group_of(mx(), data_type::f8_e5m2, {500.f, 1.f}) == words{0x78, 0x7C, 0x58});
  CHECK(group_of(mx(version::source_2026_08), data_type::f8_e5m2, {500.f, 1.f}) == words{0x78, 0x7B, 0x58});
  CHECK(group_of(mx(), data_type::f4_e2m1, {1.f, -.5f, 3.f, .1f}) == words{0x7E, 4, 0xA, 7, 0});
  CHECK(group_of(mx(version::source_2026_08), data_type::f4_e2m1, {1.f, qtensor::quiet_nan}) == words{0x7D, 6, 0xF});
  CHECK(group_of(fp(), data_type::f4_e2m1, {.05f, -.02f}) == words{0x04, 7, 0xD});
  CHECK(group_of(fp(version::source_2026_08), data_type::f4_e2m1, {.05f, -.02f}) == words{0x20, 1, 8});
}

TEST_CASE("quantize: sources of 16 bits, several rows and groups, one group of one dimension") {
  const words f16 = plain_codes(data_type::f16, 4 * 96, 5);
  std::vector<float> wide;
  for (const std::uint32_t code : f16) wide.push_back(number(data_type::f16, code));
  const buffer narrow(data_type::f16, f16);
  const list dims = {2, 2, 96};
  dnn::dynamic_scale how = mx();
  how.mask = 7;
  buffer a(data_type::f4_e2m1, wide.size()), as(data_type::e8m0, std::size_t{12});
  buffer b(data_type::f4_e2m1, wide.size()), bs(data_type::e8m0, std::size_t{12});
  dnn::quantize(dims, data_type::f16, narrow.data(), how, a.type(), a.data(), as.data());
  dnn::quantize(dims, data_type::f32, wide.data(), how, b.type(), b.data(), bs.data());
  CHECK(a.codes() == b.codes());
  CHECK(as.codes() == bs.codes());
  how.mask = 1;
  how.groups = {32};
  buffer c(data_type::f4_e2m1, std::size_t{32}), cs(data_type::e8m0, std::size_t{1});
  dnn::quantize(list{32}, data_type::f32, wide.data(), how, c.type(), c.data(), cs.data());
  words first = b.codes();
  first.resize(32);
  CHECK(c.codes() == first);
}

TEST_CASE("quantize: what it refuses, before anything is written") {
  std::vector<float> x(64, 1.f);
  buffer dst(data_type::f4_e2m1, std::size_t{64}, 0xA5), scale(data_type::e8m0, std::size_t{2}, 0xA5);
  const auto why = [&](const list& dims, data_type from, const dnn::dynamic_scale& how, data_type to) {
    return sentence([&] { dnn::quantize(dims, from, x.data(), how, to, dst.data(), scale.data()); });
  };
  const auto changed = [](dnn::dynamic_scale how, auto change) {
    change(how);
    return how;
  };
  const list dims = {2, 32};
  const auto f32 = data_type::f32, e2m1 = data_type::f4_e2m1;
  CHECK(why(dims, f32, changed(mx(), [](auto& h) { h.mode = quantization_mode::static_sazp; }), e2m1) ==
        "qtensor: static_sazp takes its scales from the caller; use reorder with a destination scale.");
  CHECK(why(dims, f32, changed(mx(), [](auto& h) { h.mode = static_cast<quantization_mode>(3); }), e2m1) ==
        "qtensor: the mode is 3; its choices are 0 to 2.");
  CHECK(why(dims, data_type::s8, mx(), e2m1) ==
        "qtensor: the source is of type s8; dynamic quantization takes f32, bf16 and f16.");
  CHECK(why(dims, f32, fp(), data_type::f8_e4m3) ==
        "qtensor: the destination is of type f8_e4m3; dynamic_mx gives f8_e4m3, f8_e5m2 and f4_e2m1, dynamic_fp "
        "f4_e2m1.");
  CHECK(why(dims, f32, changed(mx(), [](auto& h) { h.type = data_type::f32; }), e2m1) ==
        "qtensor: the scales are of type f32; those of dynamic_mx are e8m0, those of dynamic_fp f8_e4m3.");
  CHECK(why(dims, f32, changed(mx(), [](auto& h) { h.version = static_cast<version>(2); }), e2m1) ==
        "qtensor: the version is 2; its choices are 0 and 1.");
  CHECK(why(dims, f32, changed(mx(), [](auto& h) { h.mask = 1; }), e2m1) ==
        "qtensor: the mask of the scales is 1; dynamic quantization of 2 dimensions needs all of them, 3.");
  const std::string groups =
      ", not {1, 32}: dynamic_mx shares a scale among 32 elements of the last dimension, dynamic_fp among 16.";
  const auto under = [&](const list& given) {
    return why(dims, f32, changed(mx(), [&](auto& h) { h.groups = given; }), e2m1);
  };
  CHECK(under({}) == "qtensor: the groups are {}" + groups);
  CHECK(under({2, 32}) == "qtensor: the groups are {2, 32}" + groups);
  CHECK(under({1, 16}) == "qtensor: the groups are {1, 16}" + groups);
  CHECK(why({2, 24}, f32, mx(), e2m1) ==
        "qtensor: the groups of the scale have 32 elements on dimension 1, which do not divide its extent 24.");
  const auto overlap = [&](void* d, void* s) {
    return sentence([&] { dnn::quantize(dims, f32, x.data(), mx(), e2m1, d, s); });
  };
  const std::string overlaps = "qtensor: the source, the destination and the scales overlap; they must not.";
  CHECK(overlap(x.data(), scale.data()) == overlaps);
  CHECK(overlap(dst.data(), x.data() + 3) == overlaps);
  CHECK(overlap(dst.data(), dst.data()) == overlaps);
  CHECK(overlap(nullptr, scale.data()) == "qtensor: the destination is null, but has 64 elements.");
  CHECK(overlap(dst.data(), nullptr) == "qtensor: the buffer of scales is null, but has 2 elements.");
  CHECK(dst.byte(0) == 0xA5);
  CHECK(scale.byte(0) == 0xA5);
  dnn::quantize(list{0, 32}, f32, nullptr, mx(), e2m1, nullptr, nullptr);  // nothing to do
}
