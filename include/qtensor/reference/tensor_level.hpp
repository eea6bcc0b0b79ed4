// The upper level of two-level schemes: the scale of a whole tensor, known before its blocks.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/scheme/scheme.hpp>

namespace qtensor {

/// What the blocks of a two-level scheme go by: the scale of the whole tensor, and what its rule takes that for (the
/// scale itself, but in rules with a `tensor_term`; NUMERICS 2.4). Give it to quantize where it is known already, from
/// calibration or an earlier step: `quantize<with<nvfp4, tensor_scale<f32>>>(x, tensor_level::of<S>(amax))`.
struct tensor_level {
  float scale = 1.f, term = 1.f;

  /// That of a tensor of S whose largest magnitude is `amax`, which is not negative.
  template <quantization_scheme S>
  static constexpr tensor_level of(float amax) {
    static_assert(S::has_tensor_scale,
                  "qtensor: this scheme has one level of scales; the largest magnitude of a tensor does not matter.");
    require(!(amax < 0.f), "the largest magnitude of a tensor is given as ", amax, "; it cannot be negative.");
    using rule = typename S::rule;
    const float scale = rule::template tensor_scale<typename S::code_format, typename S::scale_format>(amax, S::codes);
    if constexpr (requires { rule::tensor_term(amax, S::codes); })
      return {scale, rule::tensor_term(amax, S::codes)};
    else
      return {scale, scale};
  }
  /// That of a tensor whose scale is given, for rules that take it as it is. Not negative.
  static constexpr tensor_level of_scale(float scale) {
    require(!(scale < 0.f), "the scale of a tensor is given as ", scale, "; it cannot be negative.");
    return {scale, scale};
  }
};

}  // namespace qtensor
