// Slots: every policy names the one slot it fills, so a scheme takes its policies in any order.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <concepts>
#include <qtensor/core/support.hpp>

namespace qtensor {

namespace slot {

// Stored slots say what the bytes mean.
struct scale_format {};  // how a scale is stored
struct zero_point {};    // whether codes are shifted, how the shift is stored, which elements share it
struct offset {};        // a real number added after scaling (ggml's m)
struct tensor_scale {};  // one more scale for the whole tensor (two-level NVFP4)
struct stored_range {};  // a narrower range of codes (StableHLO)
struct layout {};        // where codes and scales lie in memory

// Conversion slots say how numbers become codes.
struct rule {};              // statistics -> scale
struct rounding {};          // which neighbour
struct overflow {};          // what lies beyond the largest value
struct nan {};               // what a NaN becomes
struct nonfinite_block {};   // what a block with a NaN or an infinity becomes
struct subnormal_amax {};    // what a block whose largest magnitude is subnormal becomes
struct code_scale {};        // whether codes see the scale as stored or as computed
struct division {};          // x / s or x * (1 / s)
struct division_type {};     // the type the quotient is rounded to
struct zero_point_order {};  // before or after rounding

}  // namespace slot

/// A policy is an empty type that names its slot and itself.
template <class P>
concept policy = detail::named<P> && requires {
  typename P::slot;
};

template <class P, class Slot>
concept fills = policy<P> && std::same_as<typename P::slot, Slot>;

}  // namespace qtensor
