// What tests of quantizing across the order of a source share: columns in memory, or copied, against the reference.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/ops/quantize.hpp>

#include "check.hpp"

namespace check {

using namespace qtensor;

template <format F>
storage_t<F> stored_number(float x) {
  if constexpr (std::is_same_v<F, f32>)
    return x;
  else
    return static_cast<storage_t<F>>(encode<F>(x));
}

/// Columns `gap` elements longer than the matrix, from the second element of their memory on.
template <format F>
struct columns_in_memory {
  std::vector<storage_t<F>> memory;
  std::vector<float> floats;  // by rows
  matrix_ref<const storage_t<F>> ref;

  columns_in_memory(const std::vector<float>& x, index_t rows, index_t cols, index_t gap)
      : memory(static_cast<std::size_t>(cols * (rows + gap) + 1)), floats(x.size()) {
    for (index_t r = 0; r < rows; ++r)
      for (index_t c = 0; c < cols; ++c) {
        const auto number = stored_number<F>(x[static_cast<std::size_t>(r * cols + c)]);
        memory[static_cast<std::size_t>(c * (rows + gap) + r + 1)] = number;
        floats[static_cast<std::size_t>(r * cols + c)] = simd::number<simd::source_of<F>>(number);
      }
    ref = {memory.data() + 1, cols, rows, rows + gap, 1};
  }
};

/// The same as a source that is read column by column, and does not lie in memory for all others know.
struct read_by_columns {
  static constexpr bool reads_rows = false, reads_twice = true;
  matrix_ref<const float> ref;

  index_t rows() const { return ref.cols(); }
  index_t cols() const { return ref.rows(); }
  static const float* direct(index_t, index_t) { return nullptr; }
  void read(index_t row, index_t rows, index_t col, index_t cols, float* tile, index_t stride) const {
    for (index_t r = 0; r < rows; ++r)
      for (index_t c = 0; c < cols; ++c) tile[r * stride + c] = ref(col + c, row + r);
  }
  void read_columns(index_t row, index_t rows, index_t col, index_t cols, float* tile, index_t stride, bool) const {
    CHECK((row >= 0 && row + rows <= this->rows() && col >= 0 && col + cols <= this->cols()));
    for (index_t c = 0; c < cols; ++c) std::copy_n(&ref(col + c, row), rows, tile + c * stride);
  }
  std::array<simd::run_requests, 1> column_requests(index_t row, index_t rows, index_t col) const {
    constexpr index_t size = sizeof(float);
    const auto* first = reinterpret_cast<const std::uint8_t*>(ref.data + row + col * ref.row_stride);
    return {simd::run_requests{first, ref.row_stride * size, rows * size, 64 * size}};
  }
};

/// Dynamic, then static with the scales that gave, from columns in memory and from copies of them. `gives_up`: shared
/// scales have a special block.
template <quantization_scheme S, format F>
void compare(const std::vector<float>& x, index_t rows, index_t cols, index_t gap, bool gives_up = false) {
  INFO(std::string(name<S>), " ", rows, " x ", cols, " of ", std::string(std::string_view(F::name)));
  const columns_in_memory<F> columns(x, rows, cols, gap);
  const matrix_extents shape(rows, cols);
  const auto want = expected<S, row_major>(columns.floats, shape);
  using quantizer = ops::row_quantizer<S, matrix_extents, row_major, simd::source_of<F>>;
  const auto check_from = [&](const auto& rows_of) {
    tensor<S> out(shape);
    const auto span = out.span();
    const quantizer q(span, false);
    const index_t step = ops::piece_step<S>(q.block_length(), q.row_length());
    const auto across = [&] { return ops::across_quantizer(q, rows_of, q.block_length(), step); };
    CHECK(across().quantize() == !gives_up);
    if (gives_up) return;
    CHECK(same_bytes(out, want));
    for (auto& code : out.codes()) code = {};
    across().encode();
    bool same = true;
    for (index_t r = 0; r < rows; ++r)
      for (index_t c = 0; c < cols; ++c)
        same = same &&
               out.view().code(r, c) == quantize_element<S>(columns.floats[static_cast<std::size_t>(r * cols + c)],
                                                            {want.view().scale(r, c)}, want.view().zero_point(r, c));
    CHECK(same);
  };
  check_from(columns.ref);
  if constexpr (std::is_same_v<F, f32>) {
    const read_by_columns copied{columns.ref};
    check_from(ops::source_columns(copied));
  }
}

template <quantization_scheme S>
void compare_shapes() {
  unsigned seed = 0;
  const index_t most = full ? 200 : 50;
  for (const auto& [rows, cols] :
       {std::pair<index_t, index_t>{16, 16}, {37, 70}, {128, 256}, {most, 777}, {17, 2500}}) {
    const std::vector<float> x = numbers(rows * cols, ++seed);
    compare<S, f32>(x, rows, cols, 0);
    compare<S, bf16>(x, rows, cols, 3);
    compare<S, f16>(x, rows, cols, 1);
  }
}

}  // namespace check
