// Mirrors include/qtensor/ops/parameters.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <Eigen/Core>
#include <array>
#include <limits>
#include <qtensor/ops/parameters.hpp>
#include <qtensor/scheme/schemes.hpp>
#include <vector>

#include "core/sentence.hpp"

using namespace qtensor;

namespace {

/// As much of an Eigen vector as the library asks for: data, sizes and the steps between neighbours.
struct eigen_like {
  std::vector<double> values;
  const double* data() const { return values.data(); }
  std::ptrdiff_t rows() const { return static_cast<std::ptrdiff_t>(values.size()) / 2; }
  std::ptrdiff_t cols() const { return 1; }
  std::ptrdiff_t rowStride() const { return 2; }
  std::ptrdiff_t colStride() const { return 0; }
};

static_assert(parameter_values<float> && parameter_values<int> && parameter_values<std::vector<float>> &&
              parameter_values<float[3]>);
static_assert(parameter_values<std::array<double, 2>> && parameter_values<eigen_like> &&
              parameter_values<std::span<const float>>);
static_assert(!parameter_values<const char*> && !parameter_values<std::vector<std::string_view>> &&
              !parameter_values<per_tensor>);

}  // namespace

TEST_CASE("store_scales: one number for every block, or one a block in storage order") {
  tensor<int8_per_channel<0>> t(matrix_extents(3, 4));
  store_scales(t.span(), 0.5f);
  CHECK(t.scale(0, 0) == 0.5f);
  CHECK(t.scale(2, 3) == 0.5f);
  store_scales(t.span(), std::vector<float>{1.f, 2.f, 3.f});
  CHECK(t.scale(1, 0) == 2.f);
  const double built_in[] = {4.0, 5.0, 6.0};
  store_scales(t.span(), built_in);
  CHECK(t.scale(2, 1) == 6.f);
  store_scales(t.span(), eigen_like{{7.0, -1.0, 8.0, -1.0, 9.0, -1.0}});
  CHECK(t.scale(1, 1) == 8.f);
  CHECK(t.scale(2, 0) == 9.f);
  store_scales(t.span(), 2);  // an int is a number
  CHECK(t.scale(0, 1) == 2.f);
}

TEST_CASE("store_scales: blocks of a col_major tensor count in storage order, slices in their own") {
  tensor<scheme<int8, block<2, 2>>, matrix_extents, col_major> t(matrix_extents(4, 4));
  store_scales(t.span(), std::array<float, 4>{1.f, 2.f, 3.f, 4.f});
  CHECK(t.scale(3, 0) == 2.f);
  CHECK(t.scale(0, 3) == 3.f);
  tensor<int8_per_channel<0>> rows(matrix_extents(4, 4));
  store_scales(rows.span().middle_rows(1, 2), std::array<float, 2>{5.f, 6.f});
  CHECK(rows.scale(0, 0) == 1.f);
  CHECK(rows.scale(1, 0) == 5.f);
  CHECK(rows.scale(2, 0) == 6.f);
  CHECK(rows.scale(3, 0) == 1.f);
}

TEST_CASE("store_scales: rounded to the scale's format") {
  tensor<scheme<int8, per_tensor, scale_as<e4m3>>> t(matrix_extents(1, 1));
  store_scales(t.span(), 0.3f);
  CHECK(t.scales()[0] == 0x2A);
  CHECK(t.scale(0, 0) == 0.3125f);
}

TEST_CASE("store_scales: refused as a whole, before anything is written") {
  tensor<int8_per_channel<0>> t(matrix_extents(3, 4));
  const auto says = [&](const auto& scales) {
    const std::string said = sentence([&] { store_scales(t.span(), scales); });
    CHECK(t.scale(0, 0) == 1.f);
    return said;
  };
  CHECK(says(std::vector<float>{5.f, 6.f}) ==
        "qtensor: quantize is given 2 scales but the tensor has 3 blocks; pass one scale a block, or a single number.");
  CHECK(says(std::vector<float>{5.f, 6.f, 0.f}) == "qtensor: scale 2 is 0; a scale must be finite and positive.");
  CHECK(says(std::vector<float>{5.f, -6.f, 1.f}) == "qtensor: scale 1 is -6; a scale must be finite and positive.");
  CHECK(says(std::vector<float>{5.f, 6.f, infinity}) ==
        "qtensor: scale 2 is inf; a scale must be finite and positive.");
  CHECK(says(quiet_nan) == "qtensor: scale 0 is nan; a scale must be finite and positive.");
  CHECK(says(1e300) == "qtensor: scale 0 is inf; a scale must be finite and positive.");
  CHECK(says(1e-300) == "qtensor: scale 0 is 0; a scale must be finite and positive.");
  tensor<scheme<int8, per_tensor, scale_as<f16>>> half(matrix_extents(1, 1));
  CHECK(sentence([&] { store_scales(half.span(), 1e-9f); }) ==
        "qtensor: scale 0 is 9.99999972e-10, which f16 stores as 0; a stored scale must be finite and positive.");
}

TEST_CASE("store_scales: matrices of Eigen, one element a block, in any order and with gaps between columns") {
  using blocks = scheme<int8, block<2, 2>>;
  Eigen::MatrixXf big(3, 3);
  big << 1, 2, 3, 4, 5, 6, 1000, 1000, 1000;
  const Eigen::Matrix<float, 2, 3, Eigen::RowMajor> by_rows = big.topRows(2);
  const auto check = [](auto t, const auto& scales) {
    store_scales(t.span(), scales);
    for (index_t row = 0; row < 4; ++row)
      for (index_t col = 0; col < 6; ++col) CHECK(t.scale(row, col) == static_cast<float>(row / 2 * 3 + col / 2 + 1));
  };
  const matrix_extents extents(4, 6);
  check(tensor<blocks>(extents), big.topRows(2));
  check(tensor<blocks>(extents), by_rows);
  check(tensor<blocks, matrix_extents, col_major>(extents), big.topRows(2));
  check(tensor<blocks, matrix_extents, col_major>(extents), by_rows);
  tensor<int8_per_channel<1>> lines(matrix_extents(2, 3));
  store_scales(lines.span(), big.row(1));
  CHECK(lines.scale(0, 2) == 6.f);
  store_scales(lines.span(), big.col(2).transpose());
  CHECK(lines.scale(0, 1) == 6.f);
}

TEST_CASE("store_zero_points: one number or one a block of their own granularity") {
  using own = scheme<uint4, group<2>, zero_point<uint4, per_channel<0>>>;
  tensor<own> t(matrix_extents(3, 4));
  store_zero_points(t.span(), 7);
  CHECK(t.zero_point(2, 3) == 7);
  store_zero_points(t.span(), std::vector<int>{0, 15, 3});
  CHECK(t.zero_point(1, 0) == 15);
  CHECK(t.zero_point(2, 0) == 3);
  CHECK(sentence([&] {
          store_zero_points(t.span(), std::vector<int>{1, 2});
        }) ==
        "qtensor: quantize is given 2 zero points but the tensor has 3 blocks of them; pass one a block, or a single "
        "number.");
  CHECK(sentence([&] {
          store_zero_points(t.span(), std::vector<int>{1, 2, 16});
        }) == "qtensor: zero point 2 is 16; it must be a code that uint4 holds, from 0 to 15.");
  CHECK(sentence([&] { store_zero_points(t.span(), -1); }) ==
        "qtensor: zero point 0 is -1; it must be a code that uint4 holds, from 0 to 15.");
  CHECK(t.zero_point(1, 0) == 15);  // nothing was written
}

TEST_CASE("store_zero_points: inside the codes and inside the format that stores them") {
  tensor<scheme<int8, per_tensor, zero_point<int32>>> wide(matrix_extents(1, 1));
  CHECK(sentence([&] { store_zero_points(wide.span(), 128); }) ==
        "qtensor: zero point 0 is 128; it must be a code that int32 holds, from -128 to 127.");
  store_zero_points(wide.span(), -128);
  CHECK(wide.zero_point(0, 0) == -128);
  tensor<scheme<int16, per_tensor, zero_point<int8>>> narrow(matrix_extents(1, 1));
  CHECK(sentence([&] { store_zero_points(narrow.span(), 128); }) ==
        "qtensor: zero point 0 is 128; it must be a code that int8 holds, from -128 to 127.");
  tensor<scheme<int8, per_tensor, zero_point<int8>, stored_range<-100, 100>>> ranged(matrix_extents(1, 1));
  CHECK(sentence([&] { store_zero_points(ranged.span(), 101); }) ==
        "qtensor: zero point 0 is 101; it must be a code that int8 holds, from -100 to 100.");
  tensor<scheme<int32, per_tensor, zero_point<int32>>> words(matrix_extents(1, 1));
  store_zero_points(words.span(), 2147483647);
  CHECK(words.zero_point(0, 0) == 2147483647);
  CHECK(sentence([&] { store_zero_points(words.span(), std::int64_t{2147483648}); }) ==
        "qtensor: zero point 0 is 2147483648; it must be a code that int32 holds, from -2147483648 to 2147483647.");
}

TEST_CASE("empty tensors take a single number, or a range of any length: channels of nothing keep their scales") {
  tensor<int8_per_channel<0>> t(matrix_extents(0, 4));
  CHECK(sentence([&] { store_scales(t.span(), 0.5f); }) == "nothing was thrown");
  CHECK(sentence([&] { store_scales(t.span(), std::vector<float>{}); }) == "nothing was thrown");
  CHECK(sentence([&] { store_scales(t.span(), -1.f); }) ==
        "qtensor: scale 0 is -1; a scale must be finite and positive.");
  tensor<scheme<uint8, per_channel<0>, zero_point<uint8>>> none(matrix_extents(3, 0));
  CHECK(sentence([&] { store_scales(none.span(), std::vector<float>{1.f, 2.f, 3.f}); }) == "nothing was thrown");
  CHECK(sentence([&] { store_zero_points(none.span(), std::vector<int>{1, 2, 3}); }) == "nothing was thrown");
  CHECK(sentence([&] { store_scales(none.span(), std::vector<float>{1.f, 0.f, 3.f}); }) ==
        "qtensor: scale 1 is 0; a scale must be finite and positive.");
  CHECK(sentence([&] { store_zero_points(none.span(), std::vector<int>{1, 256, 3}); }) ==
        "qtensor: zero point 1 is 256; it must be a code that uint8 holds, from 0 to 255.");
}
