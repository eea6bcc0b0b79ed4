// Folds in f32 of quantized numbers and of floats, step by step, many side by side: each lane is one result.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <qtensor/simd/ops.hpp>

namespace qtensor::inline QTENSOR_ABI::simd {

/// What a step does after its operation: q = real / scale; then rne(clamp(q + zero_point)) - zero_point where the zero
/// point comes before rounding, else clamp(rne(q)). Codes without their zero point stay in [low, high].
struct fold_rule {
  float scale, zero_point;
  bool zero_before;
  float low, high;
  float largest;  // |q| for which that is exact: 2^23 for codes of 32 bits, else infinity
};

struct add_reals {
  template <usable_arch A>
  static QTENSOR_INLINE floats<A> of(const floats<A>& a, const floats<A>& b) {
    return simd::add(a, b);
  }
};
struct multiply_reals {
  template <usable_arch A>
  static QTENSOR_INLINE floats<A> of(const floats<A>& a, const floats<A>& b) {
    return simd::mul(a, b);
  }
};

/// IEEE 754 maximum and minimum, as qtensor::max and min have them: a NaN where there is one, the first of two; -0
/// below +0.
struct max_reals {
  template <usable_arch A>
  static QTENSOR_INLINE floats<A> of(const floats<A>& a, const floats<A>& b) {
    const words<A> zeros = simd::bits_as<std::uint32_t>(a) & simd::bits_as<std::uint32_t>(b);
    return simd::select(a == b, simd::bits_as<float>(zeros), simd::select(a == a, simd::max(a, b), a));
  }
};
struct min_reals {
  template <usable_arch A>
  static QTENSOR_INLINE floats<A> of(const floats<A>& a, const floats<A>& b) {
    const words<A> zeros = simd::bits_as<std::uint32_t>(a) | simd::bits_as<std::uint32_t>(b);
    return simd::select(a == b, simd::bits_as<float>(zeros), simd::select(a == a, simd::min(a, b), a));
  }
};

/// results[i] = Op(results[i], x[k][i]) for each k < lines in turn, i < n. Cost: 1 operation a batch, max and min 5.
template <class Op, usable_arch A = best_arch>
void fold_lines(const float* const* x, index_t lines, index_t n, float* results) {
  constexpr index_t step = simd::lanes<A>;
  index_t i = 0;
  for (; i + 2 * step <= n; i += 2 * step) {
    floats<A> one = simd::load<A>(results + i), other = simd::load<A>(results + i + step);
    for (index_t k = 0; k < lines; ++k) {
      one = Op::of(one, simd::load<A>(x[k] + i));
      other = Op::of(other, simd::load<A>(x[k] + i + step));
    }
    simd::store(results + i, one);
    simd::store(results + i + step, other);
  }
  for (; i < n; i += step) {
    const index_t m = std::min(step, n - i);
    floats<A> one = simd::load_n<A>(results + i, m);
    for (index_t k = 0; k < lines; ++k) one = Op::of(one, simd::load_n<A>(x[k] + i, m));
    simd::store_n(results + i, m, one);
  }
}

/// Batches that fold_lanes works on at a time, where there are results for more than one.
inline constexpr index_t fold_vectors = 4;

/// k[c] for c < Vectors * lanes: `steps` steps of real = Op(k * scale, leaves[x[s * stride + c] ^ flip]) and the rule,
/// each operation rounded to f32. False where some |q| was above rule.largest or NaN; k is then of no use. Reads as
/// many bytes a step. Cost: a division, a look-up and 8-10 operations a step for each batch of floats.
template <class Op, usable_arch A, index_t Vectors>
bool fold_lanes(const std::uint8_t* x, index_t steps, index_t stride, std::uint8_t flip, const float* leaves,
                const fold_rule& rule, float* k) {
  constexpr index_t step = lanes<A>;
  const floats<A> scale(rule.scale), zero(rule.zero_point), nothing(0.f);
  // Clamped where the rule does it: beside the zero point, or without it.
  const float shift = rule.zero_before ? rule.zero_point : 0.f;
  const floats<A> low(rule.low + shift), high(rule.high + shift);
  const words<A> mask(std::uint32_t{flip}), no_sign(magnitude_bits);
  floats<A> state[Vectors];
  words<A> worst(0u);
#pragma GCC unroll 4
  for (index_t c = 0; c < Vectors; ++c) state[c] = simd::load<A>(k + c * step);
  for (index_t s = 0; s < steps; ++s) {
#pragma GCC unroll 4
    for (index_t c = 0; c < Vectors; ++c) {
      const floats<A> leaf = simd::lookup<A>(leaves, simd::widen_u8<A>(x + s * stride + c * step) ^ mask);
      floats<A> q = simd::div(Op::of(simd::mul(state[c], scale), leaf), scale);
      worst = simd::max(worst, simd::bits_as<std::uint32_t>(q) & no_sign);
      if (rule.zero_before) {
        q = simd::nearest(simd::min(simd::max(simd::add(q, zero), low), high));
        q = simd::sub(q, zero);
      } else {
        q = simd::min(simd::max(simd::nearest(q), low), high);
      }
      state[c] = simd::add(q, nothing);  // no code is -0
    }
  }
#pragma GCC unroll 4
  for (index_t c = 0; c < Vectors; ++c) simd::store(k + c * step, state[c]);
  return simd::reduce_max(worst) <= bits_of(rule.largest);
}

}  // namespace qtensor::inline QTENSOR_ABI::simd
