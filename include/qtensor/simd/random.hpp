// Stochastic rounding by vectors: random words of neighbours, and numbers rounded to a format's grid by them.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/format/format.hpp>
#include <qtensor/policy/rounding.hpp>
#include <qtensor/scheme/scheme.hpp>
#include <qtensor/simd/ops.hpp>
#include <qtensor/simd/quotient.hpp>

namespace qtensor::inline QTENSOR_ABI::simd {

// ---- Words ---------------------------------------------------------------------------------------------------------

namespace detail {

/// Counters of Philox4x32-10, one a lane, and its round.
template <class A>
struct philox_state {
  words<A> c0, c1, c2, c3;
  QTENSOR_INLINE void round(const words<A>& k0, const words<A>& k1) {
    const auto [a_low, a_high] = simd::multiply_wide(c0, 0xD2511F53u);
    const auto [b_low, b_high] = simd::multiply_wide(c2, 0xCD9E8D57u);
    c0 = b_high ^ c1 ^ k0, c1 = b_low;
    c2 = a_high ^ c3 ^ k1, c3 = a_low;
  }
};

/// Counters become their words under the key {seed, seed}. Two at a time, for the rounds wait for each other.
template <class A>
QTENSOR_INLINE void make_words(philox_state<A>& one, philox_state<A>& other, std::uint32_t seed) {
  words<A> k0(seed), k1(seed);
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round) {
    one.round(k0, k1);
    other.round(k0, k1);
    k0 += words<A>(0x9E3779B9u), k1 += words<A>(0xBB67AE85u);
  }
}

}  // namespace detail

/// qtensor::philox of 64-bit indices, their lower halves in two batches, their upper half the same: the first words of
/// Philox4x32-10.
template <usable_arch A>
QTENSOR_INLINE std::array<words<A>, 2> philox(const std::array<words<A>, 2>& low, std::uint32_t high,
                                              std::uint32_t seed) {
  const words<A> zero(0u);
  detail::philox_state<A> one{low[0], words<A>(high), zero, zero}, other{low[1], words<A>(high), zero, zero};
  detail::make_words(one, other, seed);
  return {one.c0, other.c0};
}

/// The words of n indices, `step` apart from `first` on. Up to two batches behind to[n] are written, too.
template <usable_arch A>
void random_words(std::uint64_t first, std::uint64_t step, index_t n, std::uint32_t seed, std::uint32_t* to) {
  const auto index = [&](index_t i) { return first + static_cast<std::uint64_t>(i) * step; };
  if (n > 0 && index(n - 1) >> 32 != first >> 32) {
    for (index_t i = 0; i < n; ++i) to[i] = qtensor::philox(index(i), seed);
    return;
  }
  alignas(64) std::uint32_t counting[static_cast<std::size_t>(lanes<A>)];
  for (index_t i = 0; i < lanes<A>; ++i) counting[i] = static_cast<std::uint32_t>(index(i));
  const words<A> batch(static_cast<std::uint32_t>(step) * static_cast<std::uint32_t>(lanes<A>));
  words<A> low = simd::load<A>(counting);
  for (index_t i = 0; i < n; i += 2 * lanes<A>, low += batch + batch) {
    const auto drawn = simd::philox<A>({low, low + batch}, static_cast<std::uint32_t>(first >> 32), seed);
    simd::store(to + i, drawn[0]);
    simd::store(to + i + lanes<A>, drawn[1]);
  }
}

// ---- Rounding ------------------------------------------------------------------------------------------------------

template <class F>
concept fixed_point_format = format<F> && requires {
  F::fraction_bits;
};

/// Formats whose values are one step apart, or one in each binade: what vectors round to at random.
template <class F>
concept stepwise_format = format<F> &&(F::is_integer || fixed_point_format<F> || minifloat_format<F>);

namespace detail {

template <class Rounding>
inline constexpr bool is_stochastic = false;
template <std::uint32_t Seed>
inline constexpr bool is_stochastic<stochastic<Seed>> = true;

/// How many of a float's bits lie below the last digit of F, from its exponent field (1 where that is 0); none or fewer
/// where all are kept.
template <format F, class A>
QTENSOR_INLINE ints<A> discarded_width(const ints<A>& field) {
  if constexpr (F::is_integer)
    return ints<A>(150) - field;
  else if constexpr (fixed_point_format<F>)
    return ints<A>(150 - F::fraction_bits) - field;
  else
    return ints<A>(23 - F::mantissa_bits) + simd::max(ints<A>(128 - F::bias) - field, ints<A>(0));
}

/// The smallest number of F above zero.
template <format F>
constexpr float smallest_step() {
  if constexpr (F::is_integer)
    return 1.f;
  else if constexpr (fixed_point_format<F>)
    return exp2i(-F::fraction_bits);
  else
    return exp2i(1 - F::bias - F::mantissa_bits);
}

}  // namespace detail

/// x on the grid of F as `stochastic` rounds it by a word for each lane (reference: codec.hpp's locate and up), however
/// large; infinities and NaNs stay. Nothing is left for another rounding to do. Cost: 22.
template <stepwise_format F, usable_arch A>
QTENSOR_INLINE floats<A> round_at_random(const floats<A>& x, const words<A>& random) {
  const words<A> bits = simd::bits_as<std::uint32_t>(x), size = bits & words<A>(magnitude_bits);
  const ints<A> exponent = simd::bits_as<std::int32_t>(size >> 23), field = simd::max(exponent, ints<A>(1));
  const ints<A> width = detail::discarded_width<F, A>(field);
  // From the smallest step on: the bits below the last digit, and those of the word, carry into it.
  const ints<A> inside = simd::min(simd::max(width, ints<A>(1)), ints<A>(32));
  const words<A> low = simd::shift_right(words<A>(~0u), simd::bits_as<std::uint32_t>(ints<A>(32) - inside)),
                 drawn = random & low;
  const words<A> carried = (size + drawn) & ~low;
  // Below it: zero or the smallest step. What lies below the word's last bit does not count.
  const words<A> significand = size - (simd::bits_as<std::uint32_t>(field - ints<A>(1)) << 23);
  const ints<A> lost = simd::min(simd::max(width - ints<A>(32), ints<A>(0)), ints<A>(31));
  const words<A> needed = low - simd::shift_right(significand, simd::bits_as<std::uint32_t>(lost));
  const words<A> step = words<A>(bits_of(detail::smallest_step<F>()));
  const auto in_order = [](const words<A>& w) { return simd::bits_as<std::int32_t>(w ^ words<A>(sign_bit)); };
  const words<A> near =
      simd::select(simd::mask_as<std::uint32_t>(in_order(needed) < in_order(drawn)), step, words<A>(0u));
  const auto is_near = simd::mask_as<std::uint32_t>(width > ints<A>(23));
  const auto stays = simd::mask_as<std::uint32_t>((width < ints<A>(1)) | (exponent == ints<A>(255)));
  const words<A> rounded = simd::select(is_near, near, carried);
  return simd::bits_as<float>(simd::select(stays, size, rounded) | (bits & words<A>(sign_bit)));
}

/// Schemes whose quotients vectors round at random: `stochastic`, for codes on such a grid.
template <class S>
concept rounds_at_random =
    detail::is_stochastic<typename S::rounding> && stepwise_format<typename S::code_format> &&
    (std::same_as<typename S::division, exact_division> ||
     std::same_as<typename S::division, reciprocal>)&&std::same_as<typename S::division_type, f32> &&
    (!S::has_zero_point || std::same_as<typename S::zero_point_order, zp_after_round>);

/// to[i] = x[i] over scales[i] and the tensor's scale, as S divides, rounded to the grid of its codes by words[i]. Up
/// to a batch behind to[n] is written, and so much behind scales[n] and words[n] read.
template <quantization_scheme S, float_source From = from_f32, usable_arch A = best_arch>
requires rounds_at_random<S>
void round_quotients_at_random(const typename From::type* x, const float* scales, float tensor_scale,
                               const std::uint32_t* words, index_t n, float* to) {
  constexpr quotient_by by = detail::safe_quotient<S>;
  const auto round = [&](const floats<A>& number, index_t i) QTENSOR_INLINE_LAMBDA {
    const floats<A> q = quotients<S, by>(number, divisor_of<S, by>(simd::load<A>(scales + i), tensor_scale));
    simd::store(to + i, simd::round_at_random<typename S::code_format>(q, simd::load<A>(words + i)));
  };
  index_t i = 0;
  for (; i + lanes<A> <= n; i += lanes<A>) round(From::template load<A>(x + i), i);
  if (i < n) round(From::template load_n<A>(x + i, n - i), i);
}

}  // namespace qtensor::inline QTENSOR_ABI::simd
