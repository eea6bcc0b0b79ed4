// What the type of a tensor tells of the blocks in its rows, so that what no such tensor needs is not compiled.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/simd/kernel.hpp>
#include <qtensor/tensor/extents.hpp>

namespace qtensor::inline QTENSOR_ABI::ops {

/// All elements of a tensor, and of what it is sliced or joined to, share a scale and a zero point.
template <quantization_scheme S>
inline constexpr bool has_one_scale = std::same_as<typename S::granularity_type, per_tensor>&& S::zero_points_as_scales;

/// Elements of the groups that its rows in memory are cut into, where the type says how many, and tiles hold several of
/// them; else 0. A row, and its last group, may be shorter.
template <quantization_scheme S, storage_order O, int Rank>
inline constexpr index_t groups_of_rows = [] {
  using G = typename S::granularity_type;
  constexpr index_t known = simd::detail::static_group<G>, longest = 512;
  if constexpr (known > 1 && known <= longest && S::zero_points_as_scales) {
    if (qtensor::detail::from_front(G::axis, Rank) == O::axis(Rank, Rank - 1)) return known;
  }
  return index_t{0};
}();

}  // namespace qtensor::inline QTENSOR_ABI::ops
