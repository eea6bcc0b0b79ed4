// Mirrors include/qtensor/tensor/view.hpp: elements, conversions, and slices that are refused.
// Slices and chips of many schemes are in view_slices.cpp and view_chips.cpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <qtensor/scheme/schemes.hpp>

#include "core/sentence.hpp"
#include "tensor/numbered.hpp"

using namespace qtensor;

namespace {

using reads = tensor_view<mxfp4>;
using writes = tensor_span<mxfp4>;

// A view is of the stored form; a span keeps the conversion policies.
static_assert(std::is_same_v<reads::scheme_type, stored<mxfp4>> && std::is_same_v<writes::scheme_type, mxfp4>);
static_assert(std::is_same_v<reads, tensor_view<with<mxfp4, mx_rceil>>> &&
              !std::is_same_v<writes, tensor_span<with<mxfp4, mx_rceil>>>);
// Writable to readable, never back; other bytes' meanings never.
static_assert(std::is_convertible_v<writes, reads> && !std::is_convertible_v<reads, writes>);
static_assert(std::is_convertible_v<tensor_span<with<mxfp4, mx_rceil>>, reads>);
static_assert(!std::is_convertible_v<tensor_view<mxfp8_e4m3>, reads> &&
              !std::is_convertible_v<tensor_view<mxfp4, dynamic_extents<3>>, reads>);
static_assert(!std::is_convertible_v<tensor_view<mxfp4, matrix_extents, col_major>, reads>);
// Static extents widen.
static_assert(std::is_convertible_v<tensor_view<mxfp4, extents<4, 64>>, reads>);
static_assert(tensor_view_type<reads> && tensor_view_type<const writes> && !tensor_view_type<tensor<mxfp4>>);
static_assert(std::is_trivially_copyable_v<reads>);

template <class View>
concept can_write = requires(const View& v, const typename View::index_array& i) {
  v.set_storage_code(i, 0u);
};
static_assert(can_write<writes> && !can_write<reads>);

struct int3 : integer<3, signed> {
  static constexpr fixed_string name = "int3";
};

}  // namespace

TEST_CASE("view: codes, scales and zero points of every element, in the tensor's own axes") {
  tensor<uint8_per_channel<0>> t(matrix_extents(2, 3));
  for (std::size_t i = 0; i < 6; ++i) t.codes()[i] = static_cast<std::uint8_t>(10 * i);
  t.scales()[1] = 0.5f;
  t.zero_points()[1] = 7;
  const auto v = t.view();
  CHECK(v.rows() == 2);
  CHECK(v.cols() == 3);
  CHECK(v.size() == 6);
  CHECK(v.extent(1) == 3);
  CHECK(v.code(1, 2) == 50);
  CHECK(v.code({1, 0}) == 30);
  CHECK(v.scale(0, 2) == 1.f);
  CHECK(v.scale(1, 0) == 0.5f);
  CHECK(v.scale_code({1, 2}) == 0x3F000000u);
  CHECK(v.zero_point(1, 1) == 7);
  CHECK(v.zero_point(0, 1) == 0);
  CHECK(v.tensor_scale() == 1.f);
  CHECK(v.storage_offset({0, 0}) == 0.f);
}

TEST_CASE("view: a col_major tensor keeps its columns contiguous") {
  tensor<int8_per_channel<1>, matrix_extents, col_major> t(matrix_extents(2, 3));
  for (std::size_t i = 0; i < 6; ++i) t.codes()[i] = static_cast<std::int8_t>(i);
  t.scales()[2] = 4.f;
  CHECK(t.code(1, 0) == 1);
  CHECK(t.code(0, 1) == 2);
  CHECK(t.code(1, 2) == 5);
  CHECK(t.scale(0, 2) == 4.f);
  CHECK(t.view().storage_code({2, 1}) == 5);
  CHECK(t.view().row({2, 0}) == t.codes().data() + 4);
}

TEST_CASE("view: negative zero points, also of sub-byte formats") {
  tensor<scheme<int8, per_tensor, zero_point<int8>>> bytes(matrix_extents(1, 1));
  bytes.span().set_storage_zero_point({0, 0}, -128);
  CHECK(bytes.zero_point(0, 0) == -128);
  tensor<scheme<int4, per_tensor, zero_point<int4>>> nibbles(matrix_extents(1, 1));
  nibbles.span().set_storage_zero_point({0, 0}, -3);
  CHECK(nibbles.zero_point(0, 0) == -3);
  tensor<scheme<int8, per_tensor, zero_point<int32>>> words(matrix_extents(1, 1));
  words.span().set_storage_zero_point({0, 0}, -70000);
  CHECK(words.zero_point(0, 0) == -70000);
}

TEST_CASE("view: a default one is empty, or of static extents over nothing") {
  const tensor_view<mxfp4> none;
  CHECK(none.size() == 0);
  CHECK(none.memory().codes == nullptr);
  CHECK(none.top_rows(0).size() == 0);
}

TEST_CASE("view: conversions keep the elements; extents that contradict the type throw") {
  auto t = numbered<uint4_group<32>>(matrix_extents(4, 70));
  const tensor_span<uint4_group<32>> span = t.span();
  const tensor_view<uint4_group<32>> view = span;
  CHECK(shows(view, t.view(), {0, 0}));
  const tensor_view<uint4_group<32>, extents<4, 70>> fixed(view);
  CHECK(shows(fixed, t.view(), {0, 0}));
  const tensor_view<uint4_group<32>> back = fixed;
  CHECK(shows(back, t.view(), {0, 0}));
  CHECK(sentence([&] { tensor_view<uint4_group<32>, extents<4, 71>> wrong(view); }) ==
        "qtensor: extent 1 is 70 but its type fixes it to 71.");
}

TEST_CASE("slice: its extents, the sliced axis becomes dynamic") {
  tensor<mxfp4, extents<8, 128>> t;
  const auto s = t.view().slice<1>(32, 64);
  static_assert(std::is_same_v<decltype(s)::extents_type, extents<8, dynamic>>);
  CHECK(s.extents() == extents(8, 64));
  CHECK(t.view().middle_rows(2, 3).extents() == extents(3, 128));
  CHECK(t.view().block(1, 32, 3, 40).extents() == extents(3, 40));
}

TEST_CASE("slice: of a span writes through") {
  tensor<mxfp4> t(matrix_extents(4, 96));
  const auto s = t.span().block(1, 32, 2, 33);
  s.set_storage_code({1, 32}, 9);
  s.set_storage_scale_code({1, 32}, 200);
  CHECK(t.code(2, 64) == 9);
  CHECK(t.view().scale_code({2, 64}) == 200);
  CHECK(t.view().scale_code({2, 63}) == 127);
  CHECK(t.code(2, 65) == 0);
}

TEST_CASE("slice: refused where it leaves the tensor") {
  const auto t = numbered<int8_per_tensor>(matrix_extents(4, 70));
  const auto v = t.view();
  CHECK(sentence([&] { v.middle_rows(3, 2); }) ==
        "qtensor: a slice of 2 elements from element 3 of axis 0 on leaves its 4 elements.");
  CHECK(sentence([&] { v.middle_cols(-1, 2); }) ==
        "qtensor: a slice of 2 elements from element -1 of axis 1 on leaves its 70 elements.");
  CHECK(sentence([&] { v.left_cols(71); }) ==
        "qtensor: a slice of 71 elements from element 0 of axis 1 on leaves its 70 elements.");
  CHECK(sentence([&] { v.bottom_rows(5); }) ==
        "qtensor: a slice of 5 elements from element -1 of axis 0 on leaves its 4 elements.");
  CHECK(sentence([&] { v.top_rows(-1); }) ==
        "qtensor: a slice of -1 elements from element 0 of axis 0 on leaves its 4 elements.");
  constexpr index_t huge = std::numeric_limits<index_t>::max();
  CHECK(sentence([&] { v.middle_rows(1, huge); }) ==
        "qtensor: a slice of 9223372036854775807 elements from element 1 of axis 0 on leaves its 4 elements.");
}

TEST_CASE("slice: refused off the boundaries of scale blocks, naming value, dimension and requirement") {
  const auto groups = numbered<scheme<int8, group<32>>>(matrix_extents(8, 100));
  CHECK(sentence([&] { groups.view().middle_cols(16, 16); }) ==
        "qtensor: a slice that starts at element 16 of axis 1 cuts a block of 32 elements that share a scale; start at "
        "a multiple of 32.");
  const auto blocks = numbered<fp8_block<4, 16>>(matrix_extents(8, 100));
  CHECK(sentence([&] { blocks.view().middle_rows(6, 2); }) ==
        "qtensor: a slice that starts at element 6 of axis 0 cuts a block of 4 elements that share a scale; start at a "
        "multiple of 4.");
  const auto sized = numbered<scheme<int8, group<dynamic, 0>>>(matrix_extents(9, 10), group<dynamic, 0>(6));
  CHECK(sentence([&] { sized.view().middle_rows(3, 2); }) ==
        "qtensor: a slice that starts at element 3 of axis 0 cuts a block of 6 elements that share a scale; start at a "
        "multiple of 6.");
}

TEST_CASE("slice: refused off the boundaries of zero point blocks") {
  using own = scheme<int8, group<8>, zero_point<int8, group<32>>>;
  const auto t = numbered<own>(matrix_extents(2, 100));
  CHECK(sentence([&] { t.view().middle_cols(16, 16); }) ==
        "qtensor: a slice that starts at element 16 of axis 1 cuts a block of 32 elements that share a zero point; "
        "start at a multiple of 32.");
  CHECK(shows(t.view().middle_cols(64, 36), t.view(), {0, 64}));
}

TEST_CASE("slice: refused inside a byte of packed codes") {
  const auto says = [](const auto& t, index_t first) { return sentence([&] { t.view().middle_cols(first, 1); }); };
  CHECK(says(numbered<scheme<int4, per_tensor>>(matrix_extents(2, 9)), 3) ==
        "qtensor: a slice that starts at element 3 starts inside a byte of 4-bit codes; start at a multiple of 2.");
  CHECK(says(numbered<scheme<int2, per_tensor>>(matrix_extents(2, 9)), 6) ==
        "qtensor: a slice that starts at element 6 starts inside a byte of 2-bit codes; start at a multiple of 4.");
  CHECK(says(numbered<scheme<e2m3, per_tensor>>(matrix_extents(2, 9)), 2) ==
        "qtensor: a slice that starts at element 2 starts inside a byte of 6-bit codes; start at a multiple of 4.");
}

TEST_CASE("slice: codes of odd widths start a byte at every eighth element") {
  const auto t = numbered<scheme<int3, per_tensor>>(matrix_extents(2, 20));
  CHECK(sentence([&] { t.view().middle_cols(4, 1); }) ==
        "qtensor: a slice that starts at element 4 starts inside a byte of 3-bit codes; start at a multiple of 8.");
  CHECK(shows(t.view().middle_cols(8, 11), t.view(), {0, 8}));
}

TEST_CASE("slice: slices_from tells where one may begin") {
  const auto accepts = [](auto slice) {
    try {
      slice();
      return true;
    } catch (const error&) {
      return false;
    }
  };
  const auto agrees = [&](const auto& t) {
    const auto v = t.view();
    for (index_t first = 0; first <= v.cols(); ++first)
      CHECK(v.template slices_from<1>(first) == accepts([&] { v.middle_cols(first, 0); }));
    for (index_t first = 0; first <= v.rows(); ++first)
      CHECK(v.template slices_from<0>(first) == accepts([&] { v.middle_rows(first, 0); }));
  };
  agrees(numbered<int8_per_channel<0>>(matrix_extents(3, 20)));
  agrees(numbered<fp8_block<4, 16>>(matrix_extents(9, 70)));
  agrees(numbered<mxfp4>(matrix_extents(3, 20)));
  agrees(numbered<scheme<int8, group<8>, zero_point<int8, group<32>>>>(matrix_extents(2, 100)));
  agrees(numbered<scheme<e2m3, per_tensor>>(matrix_extents(2, 9)));
  agrees(numbered<scheme<int4, group<32>, scale_as<f16>, interleaved<>>>(matrix_extents(2, 96)));
}
