// Mirrors include/qtensor/compat/onednn_attributes.hpp: masks and groups of NUMERICS 5.2, joined dimensions, refusals.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <qtensor/compat/onednn_attributes.hpp>
#include <string>

#include "core/sentence.hpp"

using namespace qtensor;
namespace dnn = qtensor::compat::onednn;
using list = std::vector<index_t>;
using dnn::data_type;

namespace {

list dims_of(const list& dims, int mask, const list& groups) {
  return dnn::parameter_dims("the scale", dims, mask, groups);
}
std::string refused(const list& dims, int mask, const list& groups) {
  return sentence([&] { dims_of(dims, mask, groups); });
}

}  // namespace

TEST_CASE("masks and groups: the examples of NUMERICS 5.2") {
  CHECK(dims_of({1024, 512}, 3, {64, 1}) == list{16, 512});
  CHECK(dims_of({1024, 512}, 2, {}) == list{1, 512});
  CHECK(dims_of({1024, 512}, 1, {}) == list{1024, 1});
  CHECK(dims_of({8, 1024, 512}, 7, {64, 1}) == list{8, 16, 512});
  CHECK(dims_of({8, 1024, 512}, 5, {}) == list{8, 1, 512});
  CHECK(dims_of({8, 1024, 512}, 4, {16}) == list{1, 1, 32});
  CHECK(dims_of({64}, 1, {32}) == list{2});
  CHECK(dims_of({4, 6}, 3, {2, 3}) == list{2, 2});
  CHECK(dims_of({5, 0}, 3, {}) == list{5, 0});
}

TEST_CASE("masks and groups: refusals name the value, the dimension and what is needed") {
  CHECK(refused({1024, 512}, 1, {32}) ==
        "qtensor: the scale has a group of 32 on dimension 1, whose bit is not set in its mask 1.");  // the document's
  CHECK(refused({4, 6}, 2, {2, 1}) ==
        "qtensor: the scale has a group of 2 on dimension 0, whose bit is not set in its mask 2.");
  CHECK(refused({4, 6}, 3, {3, 1}) ==
        "qtensor: the groups of the scale have 3 elements on dimension 0, which do not divide its extent 4.");
  CHECK(refused({4, 6}, 3, {1, 0}) == "qtensor: the scale has a group of 0 on dimension 1; groups are at least 1.");
  CHECK(refused({4, 6}, 4, {}) ==
        "qtensor: the mask of the scale is 4; a tensor of 2 dimensions has masks from 0 to 3.");
  CHECK(refused({4, 6}, -1, {}) ==
        "qtensor: the mask of the scale is -1; a tensor of 2 dimensions has masks from 0 to 3.");
  CHECK(refused({2, 4, 6}, 7, {1, 1, 1}) ==
        "qtensor: the scale has 3 groups; they are none, one for the last dimension, or two for the last two of 3.");
  CHECK(refused({6}, 1, {1, 1}) ==
        "qtensor: the scale has 2 groups; they are none, one for the last dimension, or two for the last two of 1.");
}

TEST_CASE("dims: their number, negative extents, products that overflow") {
  const auto count = [](const list& dims) { return dnn::element_count(dims); };
  const auto why = [&](const list& dims) { return sentence([&] { count(dims); }); };
  const index_t large = index_t{1} << 32;
  CHECK(count({2, 3, 4}) == 24);
  CHECK(count({large, large, 0}) == 0);
  CHECK(why({}) == "qtensor: a tensor of 0 dimensions is given; oneDNN has 1 to 12.");
  CHECK(why(list(13, 1)) == "qtensor: a tensor of 13 dimensions is given; oneDNN has 1 to 12.");
  CHECK(why({3, -2}) == "qtensor: dimension 1 is -2; extents are at least 0.");
  CHECK(why({large, large}) == "qtensor: a size of 4294967296 times 4294967296 does not fit 63 bits.");
}

TEST_CASE("parameters: more of them than a count holds, of a tensor without elements") {
  const float one = 1.f;
  const index_t large = index_t{1} << 32;
  const list dims = {large, large, 0};
  CHECK(sentence([&] { dnn::detail::map_of("the source scale", {&one, data_type::f32, 3}, dims, true); }) ==
        "qtensor: a size of 4294967296 times 4294967296 does not fit 63 bits.");
  CHECK(dnn::detail::map_of("the source scale", {&one, data_type::f32, 4}, dims, true).count == 0);
}

TEST_CASE("parameters: their types") {
  const float one = 1.f;
  const list dims = {4};
  const auto why = [&](data_type type, bool is_scale) {
    return sentence([&] { dnn::detail::map_of("the source scale", {&one, type}, dims, is_scale); });
  };
  for (const data_type t :
       {data_type::f32, data_type::bf16, data_type::f16, data_type::f8_e5m2, data_type::f8_e4m3, data_type::e8m0}) {
    CHECK(why(t, true) == "nothing was thrown");
    CHECK(why(t, false) == "qtensor: the source scale is of type " + std::string(dnn::name_of(t)) +
                               "; zero points are s32, s8, u8, s4 or u4.");
  }
  for (const data_type t : {data_type::s32, data_type::s8, data_type::u8, data_type::s4, data_type::u4}) {
    CHECK(why(t, false) == "nothing was thrown");
    CHECK(why(t, true) == "qtensor: the source scale is of type " + std::string(dnn::name_of(t)) +
                              "; scales are f32, bf16, f16, f8_e5m2, f8_e4m3 or e8m0.");
  }
  CHECK(why(data_type::f4_e2m1, true).find("of type f4_e2m1") != std::string::npos);
}

TEST_CASE("dimensions that a parameter sees as one: it varies along neither, or along both element by element") {
  const float one = 1.f;
  const list dims = {2, 3, 4};
  const auto joins = [&](int mask, const list& groups = {}) {
    const auto map = dnn::detail::map_of("it", {&one, data_type::f32, mask, groups}, dims, true);
    return std::array{dnn::detail::joins(map, 0, 3), dnn::detail::joins(map, 1, 4)};
  };
  CHECK(dnn::detail::joins({}, 0, 3));
  CHECK(joins(0) == std::array{true, true});
  CHECK(joins(1) == std::array{false, true});
  CHECK(joins(2) == std::array{false, false});
  CHECK(joins(4) == std::array{true, false});
  CHECK(joins(6) == std::array{false, true});
  CHECK(joins(7) == std::array{true, true});
  CHECK(joins(7, {1, 2}) == std::array{true, false});
  CHECK(joins(7, {3, 1}) == std::array{false, false});
}

TEST_CASE("choices that are none") {
  const auto why = [](auto change) {
    dnn::attributes how;
    change(how);
    return sentence([&] { dnn::check_choices(how); });
  };
  CHECK(why([](auto&) {}) == "nothing was thrown");
  CHECK(why([](auto& a) { a.rounding = static_cast<dnn::rounding_mode>(4); }) ==
        "qtensor: attributes::rounding is 4; its choices are 0 to 3.");
  CHECK(why([](auto& a) { a.division = static_cast<dnn::division>(-1); }) ==
        "qtensor: attributes::division is -1; its choices are 0 to 1.");
  CHECK(why([](auto& a) { a.nan_to_integer = static_cast<dnn::nan_to_integer>(3); }) ==
        "qtensor: attributes::nan_to_integer is 3; its choices are 0 to 2.");
}

TEST_CASE("buffers: null, misaligned, beyond the end of memory") {
  using dnn::detail::extent;
  const float x[2] = {};
  const auto why = [](const void* p, data_type t, index_t n) {
    return sentence([&] { extent::of("the source", p, t, n); });
  };
  const auto* bytes = reinterpret_cast<const char*>(x);
  CHECK(extent::of("it", x, data_type::f32, 2).overlaps(extent::of("it", bytes + 7, data_type::s8, 1)));
  CHECK_FALSE(extent::of("it", x, data_type::s8, 4).overlaps(extent::of("it", bytes + 4, data_type::s8, 4)));
  CHECK_FALSE(extent::of("it", nullptr, data_type::f32, 0).overlaps(extent::of("it", x, data_type::f32, 1)));
  CHECK(why(nullptr, data_type::f32, 2) == "qtensor: the source is null, but has 2 elements.");
  CHECK(why(bytes + 1, data_type::bf16, 1) == "qtensor: the source is not aligned to 2 bytes, the size of bf16.");
  CHECK(why(bytes + 1, data_type::u4, 1) == "nothing was thrown");
  const auto* near_end = reinterpret_cast<const void*>(~std::uintptr_t{0} - 7);
  CHECK(why(near_end, data_type::f32, 1) == "nothing was thrown");
  CHECK(why(near_end, data_type::f32, 2) == "qtensor: the source reaches over the end of memory.");
}
