// Mirrors include/qtensor/ops/known_blocks.hpp: what it tells of a type is true of every tensor of it.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/known_blocks.hpp>
#include <qtensor/ops/rows.hpp>

#include "check.hpp"

using namespace qtensor;

namespace {

/// Rows of such a tensor, in whatever form kernels see it, are as its type says.
template <class S, storage_order O, class View>
void check_view(const View& w) {
  constexpr index_t group = ops::groups_of_rows<S, O, View::rank>;
  const ops::row_blocks rows(w);
  if (ops::has_one_scale<S>) CHECK(rows.block_length >= rows.row_length);
  if (group != 0) {
    CHECK(rows.block_length == std::min(group, w.storage_extents().back()));
    for (int axis = 0; axis + 1 < View::rank; ++axis) CHECK(w.scale_grid().block[static_cast<std::size_t>(axis)] == 1);
  }
}

template <class S, storage_order O = row_major>
void check_matrices() {
  for (const index_t rows : {1, 7, 40})
    for (const index_t cols : {1, 5, 32, 64, 96}) {
      const tensor<S, matrix_extents, O> t(matrix_extents(rows, cols));
      check_view<S, O>(t.view());
      const index_t some = std::min(rows, index_t{32});
      check_view<S, O>(t.view().template slice<0>(0, some));
      check_view<S, O>(t.view().template slice<1>(0, std::min(cols, index_t{64})));
    }
}

template <class S>
constexpr index_t groups = ops::groups_of_rows<S, row_major, 2>;
template <class S>
constexpr index_t groups_by_columns = ops::groups_of_rows<S, col_major, 2>;

}  // namespace

TEST_CASE("known_blocks: types of one scale, and of zero points beside it") {
  CHECK(ops::has_one_scale<int8_per_tensor>);
  CHECK(ops::has_one_scale<uint8_per_tensor>);
  CHECK(!ops::has_one_scale<int8_per_channel<0>>);
  CHECK(!ops::has_one_scale<mxfp4>);
  CHECK(!ops::has_one_scale<scheme<int8, per_tensor, zero_point<int8, per_channel<0>>>>);
  check_matrices<int8_per_tensor>();
  check_matrices<uint8_per_tensor, col_major>();
}

TEST_CASE("known_blocks: groups along rows in memory, not across them, nor of a size known later, nor too long") {
  CHECK(groups<mxfp4> == 32);
  CHECK(groups<nvfp4> == 16);
  CHECK(groups<int4_group<128>> == 128);
  CHECK(groups<scheme<int8, group<32, 0>>> == 0);
  CHECK(groups<scheme<int8, group<dynamic>>> == 0);
  CHECK(groups<scheme<int8, group<4096>>> == 0);
  CHECK(groups<scheme<int8, group<1>>> == 0);
  CHECK(groups<int8_per_tensor> == 0);
  CHECK(groups_by_columns<scheme<int8, group<32, 0>>> == 32);
  CHECK(groups_by_columns<mxfp4> == 0);
  check_matrices<mxfp4>();
  check_matrices<uint4_group<32>>();
  check_matrices<scheme<int8, group<32, 0>>, col_major>();
}
