// How x becomes a quotient and where the zero point is added: the choices on which vendors differ by one code.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/format/wide.hpp>
#include <qtensor/policy/slot.hpp>

namespace qtensor {

/// IEEE x / s. ONNX, StableHLO, ZenDNN, CANN on Ascend 950. The default.       16.5 / 2.2f -> 8
struct exact_division {
  using slot = slot::division;
  static constexpr fixed_string name = "exact_division";
};
/// x * RN(1 / s). torch, oneDNN's default kernels, ggml, FBGEMM.               16.5 * (1 / 2.2f) -> 7
struct reciprocal {
  using slot = slot::division;
  static constexpr fixed_string name = "reciprocal";
};
/// x * m, where the rule gives m beside the scale, each rounded on its own (`reciprocal_amax`). CANN's int8 on A2 and
/// A3 (NUMERICS 4). Dynamic only: a stored scale does not tell m.        .52734375, amax 1.0546875 -> 63 (divided: 64)
struct rule_multiplier {
  using slot = slot::division;
  static constexpr fixed_string name = "rule_multiplier";
};

// A division of your own has `static constexpr float quotient(float x, float scale, float tensor_scale)`; it also
// decides what becomes of a scale of 0, which the others take for a block of zeros. It may name the division that it is
// for positive finite scales, `using ordinary = reciprocal`, `exact_division` or least_distance: kernels use that one
// there.

/// The value of the first code whose distance |value * scale - x|, every step rounded to f32, is the least.
struct least_distance {};

namespace detail {
template <class D>
concept own_division = requires(float x) {
  { D::quotient(x, x, x) } -> std::same_as<float>;
};
}  // namespace detail

template <class P>
concept division_policy = detail::one_of<P, exact_division, reciprocal, rule_multiplier> || detail::own_division<P>;

/// The quotient is rounded to F first: the ONNX reference divides f16 by f16 in f16 (NUMERICS 8.1).
template <format F>
struct divide_in {
  using slot = slot::division_type;
  using type = F;
  static constexpr auto name = "divide_in<" + F::name + ">";
};

/// clamp(rne(x / s) + zp). ONNX, torch, ZenDNN. The default.                    x = .5, s = 1, zp = 1 -> 1
struct zp_after_round {
  using slot = slot::zero_point_order;
  static constexpr fixed_string name = "zp_after_round";
};
/// rne(clamp(RN(x / s + zp))). oneDNN, StableHLO.                               x = .5, s = 1, zp = 1 -> 2
struct zp_before_round {
  using slot = slot::zero_point_order;
  static constexpr fixed_string name = "zp_before_round";
};

/// Codes are made with the scale as it reads back from storage, so that codes and scales belong together. The default.
struct stored_scale {
  using slot = slot::code_scale;
  static constexpr fixed_string name = "stored_scale";
};
/// Codes are made with the scale before it was rounded to its format. ggml.
struct unrounded_scale {
  using slot = slot::code_scale;
  static constexpr fixed_string name = "unrounded_scale";
};

// Kernels know these choices by name: their slots take no policies of one's own.

template <class P>
concept zero_point_order_policy = detail::one_of<P, zp_after_round, zp_before_round>;
template <class P>
concept code_scale_policy = detail::one_of<P, stored_scale, unrounded_scale>;

}  // namespace qtensor
