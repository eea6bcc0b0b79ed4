// Interleaved blocks in whole tensors: rows of any source to blocks and back, by the kernels of simd/blocks.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstring>
#include <qtensor/ops/known_blocks.hpp>
#include <qtensor/ops/rows.hpp>
#include <qtensor/simd/blocks_encode.hpp>

namespace qtensor::inline QTENSOR_ABI::ops {

/// Calls encode(piece, n, to) for pieces of a source with the rows of `out`: n elements of a row, whose blocks begin at
/// `to`.
template <tile_source X, simd::block_encodable S, tensor_extents E, storage_order O, class Encode>
void for_each_piece_of_blocks(const X& x, const tensor_span<S, E, O>& out, const Encode& encode) {
  using place = interleaved_block<S>;
  constexpr index_t elements = place::elements({}), bytes = place::bytes({});
  const auto extents = out.storage_extents();
  const auto visit = [&](index_t row, index_t col, index_t n, const auto* piece) {
    encode(piece, n, out.row(row_index(row, extents)) + col / elements * bytes);
  };
  if (row_blocks(out).flat)
    for_each_flat_piece(x, elements, tile_floats, visit);
  else
    for_each_piece(x, 0, x.rows(), elements, visit);
}

/// Dynamic quantization of a source with the rows of `out`, each piece while it is in L1: statistics, scales, codes.
template <tile_source X, simd::block_encodable S, tensor_extents E, storage_order O>
void quantize_to_blocks(const X& x, const tensor_span<S, E, O>& out) {
  using place = interleaved_block<S>;
  constexpr index_t elements = place::elements({}), bytes = place::bytes({});
  using From = source_elements<X>;
  const bool streams = is_beyond_caches(out.size()), direct = row_step(x).has_value();
  using element = typename From::type;
  const simd::traffic asks =
      direct ? asks_behind_statistics<element>(simd::detail::block_chunk, out.size()) : simd::traffic{};
  for_each_piece_of_blocks(x, out, [&](const auto* piece, index_t n, std::uint8_t* to) {
    if (!streams || n % elements != 0) return simd::encode_interleaved<S, From>(piece, n, to, asks);
    alignas(64) std::uint8_t kept[static_cast<std::size_t>(tile_floats / elements * bytes)];
    simd::encode_interleaved<S, From>(piece, n, kept, asks);
    simd::stream_bytes(kept, n / elements * bytes, to);
  });
  if (streams) simd::stream_fence<simd::best_arch>();
}

/// The same under the scales (and offsets) that the blocks have already.
template <tile_source X, simd::block_encodable S, tensor_extents E, storage_order O>
void quantize_static_to_blocks(const X& x, const tensor_span<S, E, O>& out) {
  for_each_piece_of_blocks(x, out, [](const auto* piece, index_t n, std::uint8_t* to) {
    simd::encode_interleaved_static<S, source_elements<X>>(piece, n, to);
  });
}

/// A scheme of arrays as blocks: each its scale, its offset and its codes.
template <quantization_scheme S>
using in_blocks = typename detail::other_form<detail::basic_scheme_of<S>, interleaved<typename S::layout::order>>::type;

/// Whether kernels of blocks make what goes to the arrays of S: scales that come of the peak of a group, or offsets,
/// which kernels of runs do not know. Groups lie along rows.
template <class S, storage_order O, int Rank>
constexpr bool quantizes_in_blocks() {
  if constexpr (simd::codes_in_runs<S> && (S::has_offset || peak_rule<typename S::rule>)&&!S::has_zero_point &&
                !S::has_tensor_scale && groups_of_rows<S, O, Rank> != 0)
    return simd::block_encodable<in_blocks<S>>;
  else
    return false;
}

/// Dynamic quantization of such a scheme: some blocks at a time, taken apart while they lie in L1.
template <tile_source X, quantization_scheme S, tensor_extents E, storage_order O>
void quantize_in_blocks(const X& x, const tensor_span<S, E, O>& out) {
  using blocks = in_blocks<S>;
  using place = interleaved_block<blocks>;
  using From = source_elements<X>;
  constexpr index_t elements = place::elements({}), bytes = place::bytes({}), code_bytes = place::code_bytes({});
  constexpr std::size_t last = static_cast<std::size_t>(E::rank) - 1;
  const auto extents = out.storage_extents();
  const auto& grid = out.scale_grid();
  const auto& arrays = out.memory();
  alignas(64) std::uint8_t kept[static_cast<std::size_t>(tile_floats / elements * bytes)];
  for_each_piece(x, 0, x.rows(), elements, [&](index_t row, index_t col, index_t n, const auto* piece) {
    const index_t count = divide_up(n, elements);
    if (n % elements != 0) std::memset(kept + (count - 1) * bytes, 0, static_cast<std::size_t>(bytes));
    simd::encode_interleaved<blocks, From>(piece, n, kept);
    auto at = row_index(row, extents);
    auto* codes = reinterpret_cast<std::uint8_t*>(out.row(at) + unit_of_element<S>(col));
    at[last] = col;
    index_t entry = grid.entry(at);
    const std::uint8_t* from = kept;
    for (index_t left = n; left > 0; left -= elements, from += bytes, codes += code_bytes, entry += grid.stride[last]) {
      using scale_format = typename S::scale_format;
      arrays.scales[entry] = detail::unit_from<scale_format>(detail::load_unit<scale_format>(from));
      if constexpr (S::has_offset) {
        using offset_format = typename S::offset_format;
        arrays.offsets[entry] =
            detail::unit_from<offset_format>(detail::load_unit<offset_format>(from + place::offset_at));
      }
      if (left >= elements)
        std::memcpy(codes, from + place::codes_at, static_cast<std::size_t>(code_bytes));
      else
        std::memcpy(codes, from + place::codes_at, static_cast<std::size_t>(divide_up(left * S::code_format::bits, 8)));
    }
  });
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
