// Interleaved blocks in whole tensors: rows of any source to blocks and back, by the kernels of simd/blocks.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/ops/rows.hpp>
#include <qtensor/simd/blocks_encode.hpp>

namespace qtensor::inline QTENSOR_ABI::ops {

/// Dynamic quantization of a source with the rows of `out`, each piece while it is in L1: statistics, scales, codes.
template <tile_source X, simd::block_encodable S, tensor_extents E, storage_order O>
void quantize_to_blocks(const X& x, const tensor_span<S, E, O>& out) {
  using place = interleaved_block<S>;
  constexpr index_t elements = place::elements({}), bytes = place::bytes({});
  using From = source_elements<X>;
  const auto extents = out.storage_extents();
  const bool streams = is_beyond_caches(out.size()), direct = row_step(x).has_value();
  using element = typename From::type;
  const simd::traffic asks =
      direct ? asks_behind_statistics<element>(simd::detail::block_chunk, out.size()) : simd::traffic{};
  const auto encode = [&](index_t row, index_t col, index_t n, const auto* piece) {
    std::uint8_t* to = out.row(row_index(row, extents)) + col / elements * bytes;
    if (!streams || n % elements != 0) return simd::encode_interleaved<S, From>(piece, n, to, asks);
    alignas(64) std::uint8_t kept[static_cast<std::size_t>(tile_floats / elements * bytes)];
    simd::encode_interleaved<S, From>(piece, n, kept, asks);
    simd::stream_bytes(kept, n / elements * bytes, to);
  };
  if (row_blocks(out).flat)
    for_each_flat_piece(x, elements, tile_floats, encode);
  else
    for_each_piece(x, 0, x.rows(), elements, encode);
  if (streams) simd::stream_fence<simd::best_arch>();
}

/// Decodes elements [col, col + n) of the row at `at` (an index in storage order), to numbers of F, past the caches on
/// demand.
template <format F = f32, simd::block_decodable S, tensor_extents E, storage_order O, class A>
void dequantize_blocks(const basic_tensor_view<S, E, O, A>& w, typename E::array at, index_t col, index_t n,
                       storage_t<F>* out, bool past_caches = false) {
  using place = interleaved_block<S>;
  constexpr index_t elements = place::elements({}), bytes = place::bytes({});
  const index_t end = col + n;
  for (; col < end && col % elements != 0; ++col) {
    at[E::rank - 1] = col;
    *out++ = simd::round_to<F>(reference::storage_value(w, at));
  }
  simd::decode_interleaved<S, simd::best_arch, F>(w.row(at) + col / elements * bytes, end - col, out, past_caches);
}

}  // namespace qtensor::inline QTENSOR_ABI::ops
