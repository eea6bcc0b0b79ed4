// Slices of a matrix of any scheme against the matrix itself.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <doctest/doctest.h>

#include <qtensor/compat/ggml.hpp>
#include <qtensor/scheme/schemes.hpp>
#include <string>

#include "tensor/numbered.hpp"

/// Slices of a matrix along both axes that start at multiples of these steps and end anywhere, and slices of slices.
template <class S, class Order = qtensor::row_major>
void check_slices(qtensor::index_t row_step, qtensor::index_t col_step, const typename S::granularity_type& g = {}) {
  using namespace qtensor;
  const matrix_extents extents(13, 70);
  const auto t = numbered<S, Order>(extents, g);
  const auto v = t.view();
  INFO(std::string(std::string_view(name<S>)));
  for (index_t first = 0; first < 13; first += row_step)
    for (index_t count : {index_t{0}, index_t{1}, 13 - first})
      CHECK(shows(v.template slice<0>(first, count), v, {first, 0}));
  for (index_t first = 0; first < 70; first += col_step)
    for (index_t count : {index_t{0}, index_t{1}, 70 - first})
      CHECK(shows(v.template slice<1>(first, count), v, {0, first}));
  CHECK(shows(v.block(row_step, col_step, 13 - row_step, 70 - col_step), v, {row_step, col_step}));
  CHECK(shows(v.middle_cols(col_step, 70 - col_step).middle_rows(row_step, 1), v, {row_step, col_step}));
  CHECK(shows(v.top_rows(5), v, {0, 0}));
  CHECK(shows(v.left_cols(33), v, {0, 0}));
  CHECK(shows(v.bottom_rows(13 - row_step), v, {row_step, 0}));
  CHECK(shows(v.right_cols(70 - col_step), v, {0, col_step}));
  if (2 * col_step < 70) CHECK(shows(v.right_cols(70 - col_step).right_cols(70 - 2 * col_step), v, {0, 2 * col_step}));
}
