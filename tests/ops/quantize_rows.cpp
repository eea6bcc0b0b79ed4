// Mirrors include/qtensor/ops/quantize_rows.hpp: every pass, over sources that lie in memory and sources that do not.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/quantize.hpp>

#include "check.hpp"

using namespace qtensor;

namespace {

/// One matrix of numbers, dynamic and with the scales that gave, from rows in memory, from columns, and tile by tile.
/// `special`: with an infinity and a NaN far from the first column, dynamic only.
template <quantization_scheme S>
void compare(index_t rows, index_t cols, unsigned seed, bool special = false) {
  INFO(std::string(name<S>), " ", rows, " x ", cols, special ? " with special numbers" : "");
  std::vector<float> x = check::numbers(rows * cols, seed);
  if (special) x[x.size() - 2] = infinity, x[static_cast<std::size_t>(cols / 2)] = quiet_nan;
  std::vector<float> turned(x.size());
  const matrix_ref<const float> here{x.data(), rows, cols, cols, 1};
  for (index_t r = 0; r < rows; ++r)
    for (index_t c = 0; c < cols; ++c) turned[static_cast<std::size_t>(c * rows + r)] = here(r, c);
  const matrix_ref<const float> across{turned.data(), rows, cols, 1, rows};
  const auto want = check::expected<S, row_major>(x, matrix_extents(rows, cols));

  const auto quantized = [&](const auto& source) {
    tensor<S> out(matrix_extents(rows, cols));
    quantize_into(source, out.span());
    CHECK(check::same_bytes(out, want));
    if (special) return;
    for (auto& code : out.codes()) code = {};
    quantize_static_into(source, out.span());
    const auto v = out.view();
    index_t wrong = 0;
    for (index_t r = 0; r < rows; ++r)
      for (index_t c = 0; c < cols; ++c)
        wrong += v.code(r, c) != quantize_element<S>(here(r, c), {v.scale(r, c)}, v.zero_point(r, c));
    CHECK(wrong == 0);
  };
  quantized(here);
  quantized(across);
  quantized(check::tiled_source{here});
}

template <quantization_scheme S>
void compare_shapes() {
  unsigned seed = 0;
  for (const auto& [rows, cols] : {std::pair<index_t, index_t>{1, 40}, {37, 70}, {64, 256}, {19, 2500}, {3, 9001}})
    compare<S>(rows, cols, ++seed), compare<S>(rows, cols, seed, true);
}

/// Blocks one after the other, of which each is read while the one before it is encoded.
template <quantization_scheme S>
void compare_pipeline(index_t rows, index_t cols, index_t part) {
  const std::vector<float> x = check::numbers(rows * cols, static_cast<unsigned>(part));
  tensor<S> out(matrix_extents(rows, cols));
  const auto span = out.span();
  {
    const ops::row_quantizer<S, matrix_extents, row_major, simd::from_f32> q(span, true);
    ops::block_pipeline quantize_block(q, part);
    for (index_t row = 0; row < rows; ++row)
      for (index_t col = 0; col < cols; col += q.block_length())
        quantize_block(q.index_of_row(row), q.is_flat() ? row * cols + col : col,
                       std::min(q.block_length(), cols - col), x.data() + row * cols + col);
    quantize_block.finish();
  }
  CHECK(check::same_bytes(out, check::expected<S, row_major>(x, matrix_extents(rows, cols))));
}

}  // namespace

TEST_CASE("quantize_rows: parts of a block are encoded while the next is read, special ones too") {
  for (const index_t part : {8, 16, 104, 4096}) {
    compare_pipeline<scheme<int8, group<100>>>(7, 250, part);
    compare_pipeline<uint4_group<64>>(5, 200, part);
    compare_pipeline<scheme<e4m3, group<64>>>(3, 64, part);
  }
}
TEST_CASE("quantize_rows: scales of columns") {
  compare_shapes<int8_per_channel<1>>();
  check::in_full<with<int8_per_channel<1>, reciprocal>>([]<class S>() { compare_shapes<S>(); });
  compare_shapes<uint8_per_channel<1>>();
  compare_shapes<scheme<int4, per_channel<1>>>();
}

TEST_CASE("quantize_rows: groups down the columns, and blocks of both axes") {
  compare_shapes<along<0, mxfp8_e4m3>>();
  compare_shapes<scheme<e4m3, block<16, 1>>>();
  compare_shapes<scheme<int8, block<16, 16>>>();
  compare_shapes<scheme<uint8, block<32, 24>, zero_point<uint8>>>();
  check::in_full<along<0, int8_group<16>>, fp8_block<16, 128>, scheme<int8, block<16, 200>>,
                 scheme<uint4, block<9, 1100>, zero_point<uint8>>>([]<class S>() { compare_shapes<S>(); });
}

TEST_CASE("quantize_rows: scales of rows and of the whole") {
  compare_shapes<int8_per_channel<0>>();
  check::in_full<int8_per_tensor>([]<class S>() { compare_shapes<S>(); });
}
