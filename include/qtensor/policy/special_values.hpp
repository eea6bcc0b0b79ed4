// What becomes of values a format cannot hold: too large, NaN, and the blocks they sit in.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/policy/slot.hpp>

namespace qtensor {

// Overflow, judged after rounding (NUMERICS 1.5).

/// To the largest finite value of the sign. The default everywhere.                     e4m3: 465 -> 448
struct saturate {
  using slot = slot::overflow;
  static constexpr fixed_string name = "saturate";
};
/// To infinity where the format has one, else to NaN, else saturating. ml_dtypes.        e4m3: 465 -> NaN
struct to_special {
  using slot = slot::overflow;
  static constexpr fixed_string name = "to_special";
};

// NaN elements. "Real 0" is the zero point of integer codes.

/// NaN where the format has one (sign kept), real 0 for integers, +0 for the other floats. The default.
struct nan_propagates {
  using slot = slot::nan;
  static constexpr fixed_string name = "nan_propagates";
};
/// Code of +0, whatever the zero point. CANN's saturating casts.
struct nan_to_zero {
  using slot = slot::nan;
  static constexpr fixed_string name = "nan_to_zero";
};
/// Real 0: the zero point of integer codes, +0 of float ones.
struct nan_to_zero_point {
  using slot = slot::nan;
  static constexpr fixed_string name = "nan_to_zero_point";
};
/// The largest value of the NaN's sign. oneDNN's e2m1.
struct nan_to_max {
  using slot = slot::nan;
  static constexpr fixed_string name = "nan_to_max";
};
/// The lowest value, whatever the NaN's sign. oneDNN's clamp in its 2026-08 source.
struct nan_to_lowest {
  using slot = slot::nan;
  static constexpr fixed_string name = "nan_to_lowest";
};
/// Real 0 for integers; the zero whose sign is not the NaN's for floats. ml_dtypes and ONNX, in e2m1.   NaN -> -0 (8)
struct nan_to_opposite_zero {
  using slot = slot::nan;
  static constexpr fixed_string name = "nan_to_opposite_zero";
};

// Blocks whose statistics meet a NaN or an infinity (dynamic schemes).

/// Scale NaN; codes NaN where the format has one, else 0. The default (OCP).
struct block_propagates {
  using slot = slot::nonfinite_block;
  static constexpr fixed_string name = "block_propagates";
};
/// Scale NaN, every code 0. CANN's MX.
struct block_to_zero {
  using slot = slot::nonfinite_block;
  static constexpr fixed_string name = "block_to_zero";
};
/// Statistics leave them out; their codes follow the nan and overflow policies.
struct block_ignores {
  using slot = slot::nonfinite_block;
  static constexpr fixed_string name = "block_ignores";
};
/// Statistics leave NaNs out, the rule's formulas run as written with infinities in them. oneDNN's max(0, |x|).
struct block_ignores_nan {
  using slot = slot::nonfinite_block;
  static constexpr fixed_string name = "block_ignores_nan";
};
/// No special case: the rule's formulas run as written, with infinities and NaNs in them (NUMERICS 4).
struct block_literal {
  using slot = slot::nonfinite_block;
  static constexpr fixed_string name = "block_literal";
};

// Blocks whose largest magnitude is a subnormal number of the source type.

/// Nothing special: exact scaling. The default.
struct subnormal_exact {
  using slot = slot::subnormal_amax;
  static constexpr fixed_string name = "subnormal_exact";
};
/// Scale as for a zero block, codes +0 or -0. The Ascend kernels, which flush subnormals (NUMERICS 3).
struct subnormal_to_zero {
  using slot = slot::subnormal_amax;
  static constexpr fixed_string name = "subnormal_to_zero";
};

// Kernels know these choices by name: but for the last, their slots take no policies of one's own.

template <class P>
concept overflow_policy = detail::one_of<P, saturate, to_special>;
template <class P>
concept nan_policy =
    detail::one_of<P, nan_propagates, nan_to_zero, nan_to_zero_point, nan_to_max, nan_to_lowest, nan_to_opposite_zero>;
template <class P>
concept nonfinite_block_policy =
    detail::one_of<P, block_propagates, block_to_zero, block_ignores, block_ignores_nan, block_literal>;
/// One of one's own says whether the codes of a block are +0 or -0, from the bits of its largest magnitude.
template <class P>
concept subnormal_amax_policy = detail::one_of<P, subnormal_exact, subnormal_to_zero> ||
    requires(std::uint32_t amax_bits) {
  { P::flushes(amax_bits) } -> std::same_as<bool>;
};

}  // namespace qtensor
