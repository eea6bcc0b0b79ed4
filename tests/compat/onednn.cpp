// Mirrors include/qtensor/compat/onednn.hpp: the vectors of NUMERICS 1.5, 5.1 and 5.6 through reorder, every choice,
// every refusal.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <qtensor/compat/onednn.hpp>
#include <string>

#include "compat/onednn_check.hpp"
#include "core/sentence.hpp"

using namespace onednn_check;
using qtensor::float_of;
using qtensor::infinity;
using qtensor::quiet_nan;

namespace {

/// The codes of numbers under attributes.
words reordered(const std::vector<float>& x, data_type to, const attributes& how = {}) {
  buffer dst(to, x.size());
  dnn::reorder(list{static_cast<index_t>(x.size())}, data_type::f32, x.data(), to, dst.data(), how);
  return dst.codes();
}
words converted(const buffer& src, data_type to, const attributes& how = {}) {
  const std::size_t n = src.codes().size();
  buffer dst(to, n);
  dnn::reorder(list{static_cast<index_t>(n)}, src.type(), src.data(), to, dst.data(), how);
  return dst.codes();
}

/// The value of x under a destination scale and zero point.
int quantized(float x, float scale, std::int32_t zero, data_type to = data_type::s8, attributes how = {}) {
  how.dst_scale = {&scale, data_type::f32};
  how.dst_zero_point = {&zero, data_type::s32};
  return static_cast<int>(number(to, reordered({x}, to, how)[0]));
}
template <class Change>
attributes with(Change change) {
  attributes how;
  change(how);
  return how;
}

const auto after_round = with([](auto& a) { a.zero_point_order = dnn::zero_point_order::after_round; });
const auto by_reciprocal = with([](auto& a) { a.division = dnn::division::reciprocal; });

}  // namespace

TEST_CASE("zero points before and after rounding (NUMERICS 5.1)") {
  struct vector {
    float x, scale;
    int zero;
    data_type to;
    int before, after;
  };
  const auto s8 = data_type::s8, u8 = data_type::u8;
  for (const vector& v : {vector{.5f, 1.f, 1, s8, 2, 1},
                          {1.5f, 1.f, 1, s8, 2, 3},
                          {2.5f, 1.f, 0, s8, 2, 2},
                          {-.5f, 1.f, 1, s8, 0, 1},
                          {-.5f, 1.f, 0, s8, 0, 0},
                          {.25f, .5f, 3, u8, 4, 3},
                          {.75f, .5f, 3, u8, 4, 5},
                          {127.5f, 1.f, 1, u8, 128, 129},
                          {63.75f, .5f, -1, s8, 126, 127},
                          {126.5f, 1.f, 1, s8, 127, 127},
                          {-128.5f, 1.f, 0, s8, -128, -128},
                          {300.f, 1.f, 0, s8, 127, 127},
                          {-50.f, .5f, 128, u8, 28, 28}}) {
    INFO(v.x, " / ", v.scale, " + ", v.zero);
    CHECK(quantized(v.x, v.scale, v.zero, v.to) == v.before);
    CHECK(quantized(v.x, v.scale, v.zero, v.to, after_round) == v.after);
  }
  CHECK(reordered({1024.f, -124.f}, data_type::s8) == words{127, 0x84});
  CHECK(reordered({-124.f}, data_type::u8) == words{0});
  CHECK(quantized(-3.f, 1.f, -2000000000, data_type::s8, after_round) == -128);
}

TEST_CASE("division or reciprocal; the largest s32") {
  CHECK(quantized(16.5f, 2.2f, 0) == 8);
  CHECK(quantized(16.5f, 2.2f, 0, data_type::s8, by_reciprocal) == 7);
  CHECK(reordered({3e9f, -3e9f, 2147483520.f, 2.5f}, data_type::s32) == words{0x7FFFFF80, 0x80000000, 0x7FFFFF80, 2});
}

TEST_CASE("integers to integers without parameters saturate exactly") {
  CHECK(converted(buffer(data_type::s8, words{0x80, 0xFF, 0x7F}), data_type::u8) == words{0, 0, 127});
  CHECK(converted(buffer(data_type::u8, words{128, 127, 255}), data_type::s8) == words{127, 127, 127});
  CHECK(converted(buffer(data_type::s32, words{0x7FFFFFFF, 16777217, 0x80000000}), data_type::s32) ==
        words{0x7FFFFFFF, 16777217, 0x80000000});
  CHECK(converted(buffer(data_type::s32, words{100, 0xFFFFFFF0, 5}), data_type::s4) == words{7, 8, 5});
  CHECK(converted(buffer(data_type::s4, words{8, 7, 15}), data_type::u4) == words{0, 7, 0});
  CHECK(converted(buffer(data_type::s32, words{16777217}), data_type::f32) == words{qtensor::bits_of(16777216.f)});
}

TEST_CASE("FP8 goes through f16, or does not; it overflows, or saturates (NUMERICS 1.5)") {
  const auto direct = with([](auto& a) { a.fp8_path = dnn::fp8_path::direct; });
  struct vector {
    std::uint32_t bits;
    data_type to;
    std::uint32_t direct, via_f16;
  };
  const auto e4 = data_type::f8_e4m3, e5 = data_type::f8_e5m2;
  for (const vector& v : {vector{0xBD0805D9, e4, 0x91, 0x90},
                          {0x43C807EF, e4, 0x7D, 0x7C},
                          {0x3F2800DE, e4, 0x33, 0x32},
                          {0xC3A803E5, e4, 0xFB, 0xFA},
                          {0xC0080A19, e4, 0xC1, 0xC0},
                          {0xBF48099C, e4, 0xB5, 0xB4},
                          {0x45D0081F, e5, 0x6F, 0x6E},
                          {0x47500D65, e5, 0x7B, 0x7A},
                          {0xBB6FF4C0, e5, 0x9B, 0x9C},
                          {0xC2EFF7ED, e5, 0xD7, 0xD8},
                          {0x3F500E58, e5, 0x3B, 0x3A},
                          {0x3D6FFE6C, e5, 0x2B, 0x2C}}) {
    INFO(v.bits);
    CHECK(reordered({float_of(v.bits)}, v.to) == words{v.via_f16});
    CHECK(reordered({float_of(v.bits)}, v.to, direct) == words{v.direct});
  }
  const auto saturate = with([](auto& a) { a.float_overflow = dnn::float_overflow::saturate; });
  const std::vector<float> big = {465.f, -1e9f, infinity, quiet_nan, 448.f};
  CHECK(reordered(big, e4) == words{0x7F, 0xFF, 0x7F, 0x7F, 0x7E});
  CHECK(reordered(big, e4, saturate) == words{0x7E, 0xFE, 0x7E, 0x7F, 0x7E});
  CHECK(reordered({61440.f, -infinity}, e5) == words{0x7C, 0xFC});
  CHECK(reordered({61440.f, -infinity}, e5, saturate) == words{0x7B, 0xFB});
  CHECK(reordered({65520.f}, data_type::f16) == words{0x7C00});
  CHECK(reordered({65520.f}, data_type::f16, saturate) == words{0x7BFF});
}

TEST_CASE("NaN: into floats (NUMERICS 1.5), and into integers as each choice says") {
  const std::vector<float> nans = {quiet_nan, -quiet_nan};
  CHECK(reordered(nans, data_type::f8_e4m3) == words{0x7F, 0xFF});
  CHECK(reordered(nans, data_type::f8_e5m2) == words{0x7E, 0xFE});
  CHECK(reordered(nans, data_type::f4_e2m1) == words{7, 0xF});
  CHECK(reordered({quiet_nan, infinity, 0.f, -6.f}, data_type::e8m0) == words{0xFF, 0xFF, 0x00, 0x81});
  CHECK(reordered({float_of(0x7F8A0001)}, data_type::bf16) == words{0x7FCA});
  const auto zero = with([](auto& a) { a.nan_to_integer = dnn::nan_to_integer::zero; });
  const auto extreme = with([](auto& a) { a.nan_to_integer = dnn::nan_to_integer::extreme; });
  for (attributes how : {attributes{}, zero, extreme})
    for (const auto order : {dnn::zero_point_order::before_round, dnn::zero_point_order::after_round}) {
      how.zero_point_order = order;
      const bool is_zero = how.nan_to_integer == dnn::nan_to_integer::zero,
                 is_extreme = how.nan_to_integer == dnn::nan_to_integer::extreme;
      CHECK(quantized(quiet_nan, 1.f, 9, data_type::s8, how) == (is_zero ? 0 : is_extreme ? -128 : 9));
      CHECK(quantized(quiet_nan, 1.f, 9, data_type::u8, how) == (is_zero ? 0 : is_extreme ? 255 : 9));
    }
  CHECK(reordered({quiet_nan}, data_type::s32, extreme) == words{0x80000000});
}

TEST_CASE("implementations: zeros, subnormals, divisions") {
  const attributes simple = dnn::as_in(dnn::implementation::simple), jit = dnn::as_in(dnn::implementation::jit);
  const std::vector<float> small = {-0.f, float_of(0x807FFFFF), float_of(0x00400000)};
  CHECK(reordered(small, data_type::bf16) == words{0x8000, 0x8080, 0x0040});
  CHECK(reordered(small, data_type::bf16, simple) == words{0x0000, 0x8000, 0x0000});
  CHECK(reordered(small, data_type::bf16, jit) == words{0x8000, 0x8000, 0x0000});
  CHECK(reordered({-0.f}, data_type::f32, simple) == words{0});
  CHECK(reordered({-0.f}, data_type::f32, jit) == words{0x80000000});
  CHECK(quantized(16.5f, 2.2f, 0, data_type::s8, simple) == 8);
  CHECK(quantized(16.5f, 2.2f, 0, data_type::s8, jit) == 7);
  CHECK(quantized(quiet_nan, 1.f, 9, data_type::s8, simple) == 0);
  CHECK(quantized(quiet_nan, 1.f, 9, data_type::s8, jit) == -128);
}

TEST_CASE("beta: the old destination counts before the destination's scale, and is read only then") {
  const float two = 2.f, half = .5f;
  const std::int32_t three = 3;
  const std::vector<float> x = {10.f, -4.f};
  buffer dst(data_type::s8, words{6, 0xFE});  // 6, -2
  attributes how = with([](auto& a) { a.beta = .5f; });
  how.src_scale = {&two, data_type::f32};
  how.dst_scale = {&half, data_type::f32};
  how.dst_zero_point = {&three, data_type::s32};
  dnn::reorder(list{2}, data_type::f32, x.data(), data_type::s8, dst.data(), how);
  CHECK(dst.codes() == words{49, 0xF1});  // (20 + 3) / .5 + 3 and (-8 - 1) / .5 + 3
}

TEST_CASE("a type into itself is a copy, NaN payloads included") {
  const words odd = {0x7F800001, 0xFFFFFFFF, 0x80000000};
  CHECK(converted(buffer(data_type::f32, odd), data_type::f32) == odd);
  CHECK(converted(buffer(data_type::bf16, words{0x7F81, 0x0001}), data_type::bf16) == words{0x7F81, 0x0001});
}

TEST_CASE("stochastic rounding: oneDNN's words by seed and offset (NUMERICS 5.6)") {
  const float x = float_of(0x3F8FDF3B);  // 1.124
  const auto by = [](dnn::rounding_mode mode, std::int32_t seed, std::uint64_t offset) {
    return with([&](auto& a) { a.rounding = mode, a.seed = seed, a.offset = offset; });
  };
  const auto current = dnn::rounding_mode::stochastic_onednn, old = dnn::rounding_mode::stochastic_onednn_2025_03;
  CHECK(reordered({x, x, 1000.f, .01f}, data_type::f8_e4m3, by(current, 12345, 0)) == words{0x39, 0x39, 0x7E, 0x00});
  CHECK(reordered({x, x}, data_type::f8_e4m3, by(old, 12345, 0)) == words{0x38, 0x39});
  CHECK(reordered({x}, data_type::f8_e4m3, by(old, 12345, 1)) == words{0x39});
  CHECK(reordered({.3f}, data_type::f8_e5m2, by(current, 12345, 0)) == words{0x34});
  CHECK(reordered(std::vector<float>(600, float_of(0x3F808000)), data_type::bf16, by(current, 7, 0)) ==
        words(600, 0x3F80));
  CHECK(reordered({quiet_nan, -infinity}, data_type::f16, by(current, 7, 0)) == words{0x7E00, 0xFBFF});
}

TEST_CASE("stochastic rounding, unbiased: our words, a fair share up, any destination") {
  const std::size_t n = 4000;
  const auto how = with([](auto& a) { a.rounding = dnn::rounding_mode::stochastic, a.seed = 5, a.offset = 3; });
  for (const data_type to : {data_type::s8, data_type::f8_e4m3, data_type::bf16, data_type::s32}) {
    const float low = to == data_type::f8_e4m3 ? 8.f : to == data_type::bf16 ? 1.f : 5.f;
    const float step = to == data_type::bf16 ? 0x1p-7f : 1.f;
    const words y = reordered(std::vector<float>(n, low + .25f * step), to, how);
    std::size_t up = 0;
    for (const std::uint32_t code : y) {
      const float v = number(to, code);
      CHECK((v == low || v == low + step));
      up += v != low;
    }
    CHECK(up > n / 5);
    CHECK(up < n * 3 / 10);
  }
  const words y = reordered({5.25f, 5.5f}, data_type::s8, how);
  for (std::uint64_t i = 0; i < 2; ++i)
    CHECK(y[i] == static_cast<std::uint32_t>(qtensor::round_to_integer<qtensor::stochastic<>>(
                      i == 0 ? 5.25f : 5.5f, qtensor::philox(i + 3, 5))));
}

TEST_CASE("reorder: what it refuses, before anything is written") {
  std::vector<float> x(8, 1.f);
  buffer dst(data_type::s8, std::size_t{8}, 0xA5);
  const list dims = {2, 4};
  const auto why = [&](data_type from, data_type to, void* to_data, const attributes& how) {
    return sentence([&] { dnn::reorder(dims, from, x.data(), to, to_data, how); });
  };
  const auto f32 = data_type::f32, s8 = data_type::s8;
  const std::string types =
      ", which is none of f32, bf16, f16, f8_e5m2, f8_e4m3, f4_e2m1, e8m0, s32, s8, u8, s4 and "
      "u4.";
  CHECK(why(data_type::undef, s8, dst.data(), {}) == "qtensor: the source of a reorder has data type 0" + types);
  CHECK(why(f32, static_cast<data_type>(77), dst.data(), {}) ==
        "qtensor: the destination of a reorder has data type 77" + types);
  CHECK(why(f32, s8, nullptr, {}) == "qtensor: the destination is null, but has 8 elements.");
  CHECK(why(f32, s8, x.data(), {}) ==
        "qtensor: the destination overlaps the source; a reorder in place is not possible.");
  CHECK(why(f32, s8, reinterpret_cast<char*>(x.data()) + 31, {}) ==
        "qtensor: the destination overlaps the source; a reorder in place is not possible.");
  CHECK(why(f32, data_type::f16, static_cast<char*>(dst.data()) + 1, {}) ==
        "qtensor: the destination is not aligned to 2 bytes, the size of f16.");
  attributes how;
  how.dst_scale = {dst.data(), f32, 2};
  CHECK(why(f32, s8, dst.data(), how) == "qtensor: the destination overlaps a scale or zero point that is read.");
  how.dst_scale = {x.data(), s8};
  CHECK(why(f32, s8, dst.data(), how) ==
        "qtensor: the destination scale is of type s8; scales are f32, bf16, f16, "
        "f8_e5m2, f8_e4m3 or e8m0.");
  how.dst_scale = {x.data(), f32, 4};
  CHECK(why(f32, s8, dst.data(), how) ==
        "qtensor: the mask of the destination scale is 4; a tensor of 2 dimensions has masks from 0 to 3.");
  how.dst_scale = {x.data(), f32, 3, {1, 3}};
  CHECK(why(f32, s8, dst.data(), how) ==
        "qtensor: the groups of the destination scale have 3 elements on dimension 1, "
        "which do not divide its extent 4.");
  how = with([](auto& a) { a.rounding = dnn::rounding_mode::stochastic_onednn; });
  CHECK(why(f32, s8, dst.data(), how) ==
        "qtensor: oneDNN rounds stochastically to bf16, f16, f8_e4m3 and f8_e5m2, not "
        "to s8; rounding_mode::stochastic takes any type.");
  how = with([](auto& a) { a.fp8_path = static_cast<dnn::fp8_path>(9); });
  CHECK(why(f32, s8, dst.data(), how) == "qtensor: attributes::fp8_path is 9; its choices are 0 to 1.");
  CHECK(sentence([&] {
          dnn::reorder(list{index_t{1} << 62, 4}, f32, x.data(), s8, dst.data());
        }) == "qtensor: a size of 4611686018427387904 times 4 does not fit 63 bits.");
  CHECK(dst.byte(0) == 0xA5);
  dnn::reorder(list{0, 4}, f32, nullptr, s8, nullptr);  // nothing to do
}
