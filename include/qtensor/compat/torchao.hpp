// torchao: MX blocks in its four scale modes, NVFP4 with one and two levels of scales (NUMERICS 2.4, 2.6).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/ops/parallel.hpp>
#include <qtensor/scheme/schemes.hpp>

namespace qtensor::compat::torchao {

// Scale modes (ScaleCalculationMode): the library's own rules under torchao's names.      e4m3, amax 1.5: 2^-8, 2^-7,
// ...
using floor = mx_floor;  ///< 2^(floor(log2 amax) - emax); torchao's default
using ceil = mx_ceil;    ///< 2^(ceil(log2 amax) - emax)
using even = mx_even;    ///< amax rounded to the element's precision first; its block is NaN where that reaches 2^128
using rceil = mx_rceil;  ///< amax * (1 / max) rounded up to a power of two

/// to_mx: elements of any MX format, a power of two a group; blocks with a NaN or an infinity have scale FF and NaN
/// codes. torchao has groups along the last axis and no short ones; here N may be `dynamic` and Axis any.
template <format Code, class Mode = floor, index_t N = 32, index_t Axis = last_axis>
using mx = scheme<Code, group<N, Axis>, scale_as<e8m0>, Mode>;

/// nvfp4_quantize without a tensor scale: the library's nvfp4, with infinities and NaNs run through the formulas. An
/// infinity gives scale 7E and codes of +-6 and 0, a NaN scale 7F.
using nvfp4 = with<qtensor::nvfp4, block_literal>;

/// The library's nvfp4_scale, but the tensor's scale is amax / (448 * 6) whatever comes out: 0 for a tensor of zeros.
struct nvfp4_level_rule : nvfp4_scale {
  static constexpr fixed_string name = "torchao::nvfp4_level_rule";

  template <format Code, format Scale>
  static constexpr float tensor_scale(float amax, code_range codes) {
    return amax / (static_cast<float>(Scale::max) * codes.high);
  }
};
/// nvfp4_quantize with one: block scales amax / 6 / tensor scale in e4m3, at least 2^-6. Dynamic quantization computes
/// the tensor scale amax / (448 * 6) of the finite numbers (per_tensor_amax_to_scale); `nvfp4_below` takes one that is
/// given. Below 0, the scale of a tensor of zeros, zero blocks have scale 7F.
using nvfp4_two_level = with<nvfp4, tensor_scale<f32>, nvfp4_level_rule>;

/// nvfp4_quantize(x, 16, per_tensor_scale): block scales and codes below a tensor scale that is known already, in the
/// order of x, blocks along the last axis. The scale must be finite and not negative. on(executor) may come last.
template <format F, tensor_extents Extents, qtensor::detail::execution_option... On>
tensor<nvfp4_two_level, Extents> nvfp4_below(const memory_source<F, Extents>& x, float per_tensor_scale,
                                             const On&... on) {
  require(per_tensor_scale >= 0.f && is_finite(per_tensor_scale), "the tensor scale ", per_tensor_scale,
          " cannot be; nvfp4 needs a finite one that is not negative.");
  return qtensor::quantize<nvfp4_two_level>(x, tensor_level::of_scale(per_tensor_scale), on...);
}

}  // namespace qtensor::compat::torchao

namespace qtensor::inline QTENSOR_ABI::simd {

template <class S, class A>
struct vector_rule<compat::torchao::nvfp4_level_rule, S, A> : vector_rule<nvfp4_scale, S, A> {};

}  // namespace qtensor::inline QTENSOR_ABI::simd
