// Mirrors include/qtensor/tensor/extents.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <qtensor/tensor/extents.hpp>

#include "core/sentence.hpp"

using namespace qtensor;

namespace {

template <class A, class B>
constexpr bool same = std::is_same_v<A, B>;

static_assert(same<decltype(extents(2, 3, 64)), extents<dynamic, dynamic, dynamic>>);
static_assert(same<decltype(extents(7)), dynamic_extents<1>>);
static_assert(same<decltype(extents(extents<4, dynamic>(2))), extents<4, dynamic>>);
static_assert(same<matrix_extents, dynamic_extents<2>> && same<matrix_extents, extents<dynamic, dynamic>>);
static_assert(dynamic_extents<9>::rank == 9 && dynamic_extents<9>::dynamic_rank == 9);
static_assert(extents<4, 5>::is_static && !extents<4, dynamic>::is_static && extents<4, dynamic>::dynamic_rank == 1);
static_assert(extents<dynamic, 4096>::static_extent(1) == 4096 && extents<dynamic, 4096>::static_extent(0) == dynamic);

// Only the dynamic extents are held.
static_assert(std::is_empty_v<extents<4, 5>> && sizeof(extents<dynamic, 4096>) == sizeof(index_t) &&
              sizeof(matrix_extents) == 2 * sizeof(index_t));

// From static to dynamic by itself, the other way only when asked for.
static_assert(std::is_convertible_v<extents<4, 5>, matrix_extents> &&
              std::is_convertible_v<extents<4, 5>, extents<4, dynamic>>);
static_assert(!std::is_convertible_v<matrix_extents, extents<4, 5>> &&
              std::is_constructible_v<extents<4, 5>, matrix_extents>);
static_assert(!std::is_constructible_v<matrix_extents, extents<4>> && !std::is_constructible_v<matrix_extents, int>);
static_assert(!std::is_convertible_v<int, extents<dynamic>>);

static_assert(tensor_extents<extents<1>> && tensor_extents<const matrix_extents> && !tensor_extents<int>);
static_assert(storage_order<row_major> && storage_order<col_major> && !storage_order<int>);

// All of it in constant expressions.
static_assert(extents<dynamic, 4096>(3).size() == 12288 && extents<dynamic, 4>(3)[0] == 3 &&
              extents<dynamic, 4>(3)[1] == 4);
static_assert(extents<2, 3>() == matrix_extents(2, 3) && matrix_extents(2, 3) != extents<3, 2>());

}  // namespace

TEST_CASE("extents: made from the dynamic extents only, or from all") {
  const extents<dynamic, 4096> from_one(3), from_all(3, 4096);
  CHECK(from_one[0] == 3);
  CHECK(from_one[1] == 4096);
  CHECK(from_one == from_all);
  const extents<2, dynamic, 5, dynamic> mixed(3, 7);
  CHECK(mixed.to_array() == std::array<index_t, 4>{2, 3, 5, 7});
  CHECK(mixed == extents<2, dynamic, 5, dynamic>(std::array<index_t, 4>{2, 3, 5, 7}));
  CHECK(extents<4, 5>{}.to_array() == std::array<index_t, 2>{4, 5});
  CHECK(extents<4, 5>(4, 5).size() == 20);
  CHECK(matrix_extents{}.size() == 0);
}

TEST_CASE("extents: any rank from 1, sizes beyond 2^31 elements") {
  CHECK(extents(2, 3, 4, 5, 6, 7, 8, 9, 10).size() == 3628800);
  CHECK(extents(index_t{1} << 40).size() == index_t{1} << 40);
  CHECK(matrix_extents(1 << 20, 1 << 20).size() == index_t{1} << 40);
}

TEST_CASE("extents: an empty axis empties the tensor, however large the others are") {
  CHECK(extents(0, 5).size() == 0);
  CHECK(extents(index_t{1} << 40, index_t{1} << 40, 0).size() == 0);
}

TEST_CASE("extents: conversions keep sizes and check those the type fixes") {
  const matrix_extents wide = extents<4, 5>();
  CHECK(wide == extents<4, 5>());
  CHECK(extents<dynamic, 5>(wide)[0] == 4);
  CHECK(sentence([&] { extents<dynamic, 6> e(wide); }) == "qtensor: extent 1 is 5 but its type fixes it to 6.");
  CHECK_FALSE(extents(4, 5) == extents(4, 5, 1));
  CHECK_FALSE(extents(4, 5) == extents(5, 4));
}

TEST_CASE("extents: negative sizes, sizes that contradict the type and products beyond 63 bits throw") {
  CHECK(sentence([] { matrix_extents e(3, -1); }) == "qtensor: extent 1 is -1; an extent is at least 0.");
  CHECK(sentence([] { matrix_extents e(dynamic, 1); }) ==
        "qtensor: extent 0 is -9223372036854775808; an extent is at least 0.");
  CHECK(sentence([] { extents<dynamic, 4096> e(3, 4095); }) ==
        "qtensor: extent 1 is 4095 but its type fixes it to 4096.");
  CHECK(sentence([] { (void)extents(index_t{1} << 40, index_t{1} << 40).size(); }) ==
        "qtensor: the product of the 2 extents does not fit 63 bits; a tensor has fewer elements than that.");
}

TEST_CASE("storage orders: row_major keeps the last axis contiguous, col_major the first") {
  CHECK(row_major::axis(3, 2) == 2);
  CHECK(col_major::axis(3, 2) == 0);
  CHECK(col_major::axis(3, 0) == 2);
  const std::array<index_t, 3> axes{2, 3, 5};
  CHECK(reordered<row_major>(axes) == axes);
  CHECK(reordered<col_major>(axes) == std::array<index_t, 3>{5, 3, 2});
  CHECK(reordered<col_major>(reordered<col_major>(axes)) == axes);
}

TEST_CASE("dense strides: the last axis is contiguous, an empty axis makes those before it 0") {
  CHECK(dense_strides(std::array<index_t, 1>{7}) == std::array<index_t, 1>{1});
  CHECK(dense_strides(std::array<index_t, 3>{2, 3, 5}) == std::array<index_t, 3>{15, 5, 1});
  CHECK(dense_strides(std::array<index_t, 3>{2, 0, 5}) == std::array<index_t, 3>{0, 5, 1});
  constexpr index_t huge = index_t{1} << 40;
  CHECK(dense_strides(std::array<index_t, 4>{0, huge, huge, huge}) == std::array<index_t, 4>{0, 0, huge, 1});
}
