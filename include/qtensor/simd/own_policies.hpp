// Policies of yours as vectors: what kernels are told of a rule, a division or a rounding that they do not know.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/simd/arch.hpp>

// A policy of your own is one scalar function, and the reference quantizes by it. Where kernels should take it, too,
// specialise the template of its kind for it, with the same function of batches of floats (arch A), `enabled`, and
// every lane the bits of the scalar one. compat/transformer_engine.hpp has one of each.
namespace qtensor::inline QTENSOR_ABI::simd {

/// A rule over the absolute maximum, for scheme S. Has
///        static floats<A> scale(const words<A>& amax, float tensor_term)
/// for finite maxima (as bits): what Rule::scale gives, a negative zero aside. `bounded` where all it gives are normal
/// numbers of the scale format, or a NaN.
template <class Rule, class S, class A>
struct vector_rule {
  static constexpr bool enabled = false;
};

/// A rule that says the code of a scale itself. Has
///        static words<A> of(const words<A>& amax)
/// for 0 and finite maxima that are normal numbers (as bits): what Rule::code gives. May have
///        static floats<A> scale(const words<A>& code)
/// the scales of such codes, which are looked up else.
template <class Rule, class A>
struct vector_code {
  static constexpr bool enabled = false;
};

/// A division that is x * inverse, one rounding each, where the inverse is made of scale and tensor scale. Has
///        static floats<A> of(const floats<A>& scale, float tensor_scale)
/// for every scale, 0, infinity and NaN too; of(1, 1) is 1.
template <class Division, class A>
struct vector_inverse {
  static constexpr bool enabled = false;
};

/// What a rounding to format Code makes of numbers before it rounds them. Has
///        static floats<A> of(const floats<A>& x)
/// as Rounding::before<Code>, NaNs and infinities included. The rest of the rounding is its `up`.
template <class Rounding, class Code, class A>
struct vector_before {
  static constexpr bool enabled = false;
};

}  // namespace qtensor::inline QTENSOR_ABI::simd
