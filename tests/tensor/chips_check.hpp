// Matrices of a rank-3 tensor of any scheme against the tensor itself.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <doctest/doctest.h>

#include <qtensor/compat/ggml.hpp>
#include <qtensor/scheme/schemes.hpp>
#include <string>

#include "tensor/numbered.hpp"

/// Every matrix of a rank-3 tensor, and slices of it.
template <class S>
void check_matrices(const typename S::granularity_type& g = {}, const typename S::zero_granularity_type& z = {}) {
  using namespace qtensor;
  const auto t = numbered<S>(extents(4, 6, 40), g, z);
  const auto v = t.view();
  INFO(std::string(std::string_view(name<S>)));
  for (index_t i = 0; i < 4; ++i) {
    const auto m = v.matrix(i);
    CHECK(m.extents() == extents(6, 40));
    CHECK(shows(m, v, {i, 0, 0}));
    CHECK(shows(m.top_rows(2), v, {i, 0, 0}));
    CHECK(shows(m.left_cols(9), v, {i, 0, 0}));
  }
}
