// Groups of 4-bit codes as bf16 or f16: the results of a group's 16 codes are made, then looked up.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <qtensor/simd/block_arrays.hpp>
#include <qtensor/simd/decode.hpp>
#include <qtensor/simd/memory.hpp>

namespace qtensor::inline QTENSOR_ABI::simd::detail {

/// Schemes and parameters for whose groups that is less work than a product and a rounding for every element.
template <class S, class F, class A, class Parameters>
inline constexpr bool looks_groups_up =
    has_half_tables<A> && !std::same_as<F, f32> && S::code_format::bits == 4 &&
    (S::code_format::is_integer || !S::has_zero_point) && Parameters::pairs_share && !Parameters::one_entry;

/// The table of the group that batch k of a block belongs to.
template <class S, number_format F, numbers_are Known, class A, class Parameters>
QTENSOR_INLINE simd::half_table16<A> results_of_group(const Parameters& p, int k, float tensor_scale) {
  using code = typename S::code_format;
  const auto values = [&](index_t first) QTENSOR_INLINE_LAMBDA -> floats<A> {
    if constexpr (S::has_zero_point) {
      const float* counts = value_decoder<code, A, decoding::integers>::table.counts.data();
      return simd::to_float(simd::bits_as<std::int32_t>(simd::load<A>(counts + first)) - p.zero(k));
    } else {
      // In registers: g++ would make one half of the results from the other, and with it the sign of a NaN.
      return simd::rounded(simd::load<A>(decode_table<code>.data() + first));
    }
  };
  const auto results = [&](index_t first)
                           QTENSOR_INLINE_LAMBDA { return scaled_value<S, A>(values(first), p, k, tensor_scale); };
  return simd::half_table16<A>(narrow_pair<F, Known, A>(results(0), results(lanes<A>)));
}

/// As decode_blocks.
template <class S, number_format F, numbers_are Known, class A, class Parameters>
QTENSOR_INLINE void look_blocks_up(const std::uint8_t* codes, index_t blocks, Parameters& p, float tensor_scale,
                                   storage_t<F>* out, traffic t) {
  constexpr index_t step = 4 * lanes<A>, bytes = step / 2;
  auto first = results_of_group<S, F, Known, A>(p, 0, tensor_scale), second = first;
  for (index_t b = 0; b < blocks; ++b) {
    if (b > 0 && p.begins_group()) first = results_of_group<S, F, Known, A>(p, 0, tensor_scale);
    if constexpr (Parameters::groups_in_block == 2)
      second = results_of_group<S, F, Known, A>(p, 2, tensor_scale);
    else
      second = first;
    fetch_ahead<bytes>(codes + b * bytes, t);
    const auto each = simd::nibbles_for_tables<A>(codes + b * bytes);
    simd::put(out + b * step, first(each[0]), t.streams);
    simd::put(out + b * step + step / 2, second(each[1]), t.streams);
    p.next();
  }
}

}  // namespace qtensor::inline QTENSOR_ABI::simd::detail
