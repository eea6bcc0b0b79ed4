// Dequantize: rows of a quantized view as floats, and the view as a source for whatever takes one.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/ops/quantize.hpp>
#include <qtensor/simd/dequantize.hpp>

namespace qtensor::inline QTENSOR_ABI {

namespace ops {

/// Decodes elements [col, col + n) of the row at `at` (an index in storage order): runs of whole blocks at once, the
/// rest of a block as one run, and single elements up to the next byte. A flat tensor is one row, which may be one
/// block.
template <quantization_scheme S, tensor_extents E, storage_order O, class A>
void dequantize_row(const basic_tensor_view<S, E, O, A>& w, typename E::array at, index_t col, index_t n, float* out,
                    bool one_block = false) {
  constexpr std::size_t last = static_cast<std::size_t>(E::rank) - 1;
  constexpr bool by_runs = !S::is_interleaved && std::is_same_v<typename S::layout::order, low_first> && !S::has_offset;
  if constexpr (simd::block_decodable<S>) {
    dequantize_blocks(w, at, col, n, out);
  } else if constexpr (!by_runs) {
    for (index_t i = 0; i < n; ++i) {
      at[last] = col + i;
      out[i] = reference::storage_value(w, at);
    }
  } else {
    constexpr index_t most = 512;  // blocks of a run
    constexpr bool scales_are_floats = std::is_same_v<typename S::scale_format, f32>;
    float decoded[most];
    std::int32_t zeros[S::has_zero_point ? most : 1];
    const auto codes = w.row(at);
    const index_t scale_length = one_block ? w.size() : w.scale_grid().block[last];
    const bool alike = one_block || !S::has_zero_point || scale_length == w.zero_grid().block[last];
    const index_t length = alike ? scale_length : 1;
    const bool in_order = alike && w.scale_grid().stride[last] == 1;
    // Scales (and zero points) of `count` entries from an element on, every `length` elements.
    const auto parameters = [&](index_t element, index_t count) -> const float* {
      if (one_block) element = 0;
      if constexpr (S::has_zero_point) load_zero_points(w, at, element, count, length, zeros);
      at[last] = element;
      if constexpr (scales_are_floats)
        if (in_order) return w.storage_scales(at);
      load_scales(w, at, element, count, length, decoded);
      return decoded;
    };
    const std::int32_t* zero = S::has_zero_point ? zeros : nullptr;
    const float tensor_scale = w.tensor_scale();
    for (index_t done = 0; done < n;) {
      const index_t first = col + done, left = n - done, in_block = length - first % length;
      if (first % byte_step<S> != 0) {
        at[last] = first;
        out[done++] = reference::storage_value(w, at);
        continue;
      }
      const auto from = codes + unit_of_element<S>(first);
      index_t count = in_block < left ? in_block : left;
      if (count < length || count == left) {
        const float* scales = parameters(first, 1);
        simd::decode_uniform<S>(from, count, element_scale{*scales, tensor_scale}, S::has_zero_point ? zeros[0] : 0,
                                out + done);
      } else {
        const bool in_place = scales_are_floats && in_order && !S::has_zero_point;
        const index_t blocks = in_place || left / length < most ? left / length : most;
        const float* scales = parameters(first, blocks);
        count = blocks * length;
        if (length == 1)
          simd::decode_vector<S>(from, count, scales, zero, out + done, tensor_scale);
        else
          simd::decode_grouped<S>(from, count, length, scales, zero, out + done, tensor_scale);
      }
      done += count;
    }
  }
}

}  // namespace ops

/// Rows [row, row + rows) of a view in storage order, elements [col, col + cols) of each, to tile[r * stride + c].
template <quantization_scheme S, tensor_extents E, storage_order O, class A>
void dequantize_rows(const basic_tensor_view<S, E, O, A>& w, index_t row, index_t rows, index_t col, index_t cols,
                     float* tile, index_t stride) {
  const auto extents = w.storage_extents();
  for (index_t r = 0; r < rows; ++r)
    ops::dequantize_row(w, ops::row_index(row + r, extents), col, cols, tile + r * stride);
}

/// A quantized view as a tile_source: its storage rows as floats.
template <tensor_view_type View>
struct view_source {
  View view;
  static constexpr bool reads_rows = true;
  static constexpr bool reads_twice = true;

  index_t rows() const { return view.shape().row_count(); }
  index_t cols() const { return view.shape().row_length(); }
  const float* direct(index_t, index_t) const { return nullptr; }
  void read(index_t row, index_t rows, index_t col, index_t cols, float* tile, index_t stride) const {
    dequantize_rows(view, row, rows, col, cols, tile, stride);
  }
};
template <class View>
view_source(View) -> view_source<View>;

/// Any source with rows and columns exchanged. Tiles go through a small square, so that neither side is read element by
/// element.
template <tile_source X>
struct transposed_source {
  X source;
  static constexpr bool reads_rows = false;
  static constexpr bool reads_twice = X::reads_twice;

  index_t rows() const { return source.cols(); }
  index_t cols() const { return source.rows(); }
  const float* direct(index_t, index_t) const { return nullptr; }
  void read(index_t row, index_t rows, index_t col, index_t cols, float* tile, index_t stride) const {
    constexpr index_t side = 32;
    alignas(64) float square[side * side];
    for (index_t c = 0; c < cols; c += side)
      for (index_t r = 0; r < rows; r += side) {
        const index_t down = rows - r < side ? rows - r : side, across = cols - c < side ? cols - c : side;
        source.read(col + c, across, row + r, down, square, side);
        simd::transpose_floats(square, side, down, across, tile + r * stride + c, stride);
      }
  }
};
template <class X>
transposed_source(X) -> transposed_source<X>;

/// A view of a matrix as a source of the rows that a tensor of another order stores.
template <storage_order Order, tensor_view_type View>
auto source_in_order(const View& view) {
  if constexpr (std::same_as<Order, typename View::order_type>)
    return view_source<View>{view};
  else {
    static_assert(View::rank == 2,
                  "qtensor: only matrices change their storage order here; use the same order for other ranks.");
    return transposed_source<view_source<View>>{{view}};
  }
}

/// Writes every element of a view to memory: element (i, j, ...) to out[i * strides[0] + j * strides[1] + ...].
/// dequantize_into<bf16> and <f16> write the 16 bits of numbers rounded once more (ties to even, overflow to infinity).
template <format F = f32, quantization_scheme S, tensor_extents E, storage_order O, class A>
requires(std::same_as<F, f32> || std::same_as<F, bf16> ||
         std::same_as<F, f16>) void dequantize_into(const basic_tensor_view<S, E, O, A>& w, storage_t<F>* out,
                                                    const typename E::array& strides) {
  if (w.size() == 0) return;
  constexpr std::size_t last = static_cast<std::size_t>(E::rank) - 1;
  const auto extents = w.storage_extents();
  const auto steps = reordered<O>(strides);
  const bool streams = w.size() >= ops::streaming_floats;
  alignas(64) float tile[ops::tile_floats];
  alignas(64) storage_t<F> narrow[static_cast<std::size_t>(std::same_as<F, f32> ? 1 : ops::tile_floats)];
  // Elements [col, col + n) of the row at an index; narrow formats and streams go through a tile.
  const ops::row_blocks blocks(w);
  // Codes that are bf16 numbers themselves, where nothing but a scale of 1 stands between.
  constexpr bool may_cast = std::same_as<F, bf16> && simd::bf16_values<typename S::code_format> && !S::is_interleaved &&
                            std::same_as<typename S::layout::order, low_first> && !S::has_zero_point &&
                            !S::has_offset && !S::has_tensor_scale;
  const bool casts = may_cast && blocks.one_block && decode<typename S::scale_format>(w.storage_scale_code({})) == 1.f;
  const auto decoded = [&](const typename E::array& at, index_t col, index_t n) -> const storage_t<F>* {
    if constexpr (may_cast) {
      if (casts) {
        const auto codes = w.row(at) + ops::unit_of_element<S>(col);
        simd::decode_values<typename S::code_format>(reinterpret_cast<const std::uint8_t*>(codes), n, narrow);
        return narrow;
      }
    }
    ops::dequantize_row(w, at, col, n, tile, blocks.one_block);
    if constexpr (std::same_as<F, f32>) {
      return tile;
    } else {
      simd::narrow_floats<F>(tile, n, narrow);
      return narrow;
    }
  };
  const auto contiguous = [&](const typename E::array& at, index_t length, storage_t<F>* to) {
    if constexpr (std::same_as<F, f32>)
      if (!streams) return ops::dequantize_row(w, at, 0, length, to, blocks.one_block);
    constexpr index_t most = ops::tile_floats / 2;
    for (index_t col = 0; col < length; col += most) {
      const index_t n = length - col < most ? length - col : most;
      const storage_t<F>* from = decoded(at, col, n);
      if (streams)
        simd::stream_bytes(from, n * static_cast<index_t>(sizeof *to), to + col);
      else
        std::copy_n(from, n, to + col);
    }
  };
  index_t dense = 1;
  bool is_dense = true;
  for (std::size_t axis = last + 1; axis > 0; --axis) {
    is_dense = is_dense && (steps[axis - 1] == dense || extents[axis - 1] == 1);
    dense *= extents[axis - 1];
  }
  if (is_dense && blocks.flat) {
    contiguous(typename E::array{}, w.size(), out);
  } else {
    for (index_t row = 0; row < w.shape().row_count(); ++row) {
      const auto at = ops::row_index(row, extents);
      storage_t<F>* to = out;
      for (std::size_t axis = 0; axis < last; ++axis) to += at[axis] * steps[axis];
      if (steps[last] == 1) {
        contiguous(at, extents[last], to);
        continue;
      }
      for (index_t col = 0; col < extents[last]; col += ops::tile_floats) {
        const index_t n = extents[last] - col < ops::tile_floats ? extents[last] - col : ops::tile_floats;
        const storage_t<F>* from = decoded(at, col, n);
        for (index_t i = 0; i < n; ++i) to[(col + i) * steps[last]] = from[i];
      }
    }
  }
  if (streams) simd::stream_fence<simd::best_arch>();
}

/// Any scheme to any other, as quantize(dequantize(x)) in one pass: a tensor of the same extents.
template <quantization_scheme To, storage_order Order = row_major, quantized From, class... How>
auto requantize(const From& from, const How&... how) {
  const auto view = as_view(from);
  return make_quantized<To, Order>(source_in_order<Order>(view), view.extents(), how...);
}

}  // namespace qtensor::inline QTENSOR_ABI
