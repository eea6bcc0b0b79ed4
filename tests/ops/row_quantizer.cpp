// Mirrors include/qtensor/ops/row_quantizer.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/row_quantizer.hpp>

#include "check.hpp"

using namespace qtensor;

namespace {

/// The row quantizer of a whole new tensor: what it says about the rows.
template <quantization_scheme S, storage_order Order = row_major, tensor_extents E, class Use>
void with_quantizer(const E& extents, Use use) {
  tensor<S, E, Order> t(extents);
  const auto span = t.span();
  use(ops::row_quantizer<S, E, Order>(span, true));
}

}  // namespace

TEST_CASE("row_quantizer: rows, blocks and panels of a tensor") {
  with_quantizer<mxfp8_e4m3>(matrix_extents(4, 64), [](const auto& q) {
    CHECK(q.is_flat());
    CHECK(q.row_length() == 256);
    CHECK(q.block_count() == 8);
  });
  with_quantizer<int8_per_channel<1>>(matrix_extents(4, 70), [](const auto& q) {
    CHECK(!q.is_flat());
    CHECK(!q.rows_are_panels());
    CHECK(q.block_length() == 1);
    int panels = 0;
    q.for_each_panel([&](const auto&, const auto& count) {
      ++panels;
      CHECK(count[0] == 4);
    });
    CHECK(panels == 1);
  });
  with_quantizer<int8_per_tensor>(extents(3, 4, 7), [](const auto& q) {
    CHECK(q.is_one_block());
    CHECK(q.row_length() == 84);
  });
}

TEST_CASE("for_each_part: pieces end where blocks end, runs of whole blocks stay together") {
  std::vector<std::pair<index_t, index_t>> parts;
  const float x[100] = {};
  ops::for_each_part(5, 60, 16, x, [&](index_t col, index_t n, const float* floats) {
    CHECK(floats == x + col - 5);
    parts.emplace_back(col, n);
  });
  CHECK(parts == std::vector<std::pair<index_t, index_t>>{{5, 11}, {16, 49}});
}

TEST_CASE("piece_step: whole blocks where a tile holds them, else whole bytes, else none") {
  CHECK(ops::piece_step<int8_per_tensor>(64, 64) == 1);
  CHECK(ops::piece_step<int4_group<32>>(32, 64) == 32);
  CHECK(ops::piece_step<scheme<int4, group<5>>>(5, 64) == 10);
  CHECK(ops::piece_step<scheme<int8, group<5000>>>(5000, 9000) == 1);
  CHECK(ops::piece_step<scheme<int4, group<5001>>>(5001, 9000) == 0);
}
