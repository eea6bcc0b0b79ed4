// Scales of neighbouring blocks, side by side: statistics to what is stored, stored units to floats.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstring>
#include <qtensor/reference/quantize.hpp>
#include <qtensor/simd/decode.hpp>
#include <qtensor/simd/encode.hpp>
#include <type_traits>

// A block takes a few instructions here and some thirty in the reference, which counts where blocks have 16 or 32
// elements. Everything equals reference::parameters_of and decode<F> bit for bit.
namespace qtensor::inline QTENSOR_ABI::simd {

namespace detail {

/// Formats of scales that vectors encode and decode: positive finite numbers between the smallest normal and the
/// largest one, those of minifloats from 0 on.
template <class F>
inline constexpr bool vector_scale_format = one_of<F, f32, bf16, f16, e8m0> || (shiftable_format<F> && F::bits == 8);

/// The code of a positive finite number inside the normal range of F, one per word.
template <class F, class A>
QTENSOR_INLINE words<A> scale_codes(const floats<A>& s) {
  const words<A> bits = simd::bits_as<std::uint32_t>(s);
  if constexpr (std::same_as<F, f32>)
    return bits;
  else if constexpr (std::same_as<F, bf16>)
    return bf16_bits(any_isa{}, s);
  else if constexpr (std::same_as<F, f16>)
    return f16_bits(any_isa{}, s);
  else if constexpr (std::same_as<F, e8m0>)
    return bits >> 23;
  else
    return (magnitude_codes<F, nearest_even, A>(bits, words<A>(0u)) - words<A>(std::uint32_t{grid<F>::bias})) &
           words<A>(0xffu);
}

/// The number of a code of F that scale_codes has made.
template <class F, class A>
QTENSOR_INLINE floats<A> scale_values(const words<A>& codes) {
  if constexpr (std::same_as<F, f32>) {
    return simd::bits_as<float>(codes);
  } else if constexpr (std::same_as<F, bf16>) {
    return simd::float_of_bf16(codes);
  } else if constexpr (std::same_as<F, f16>) {
    return simd::float_of_f16(codes);
  } else if constexpr (std::same_as<F, e8m0>) {
    const words<A> power = codes << 23;
    return simd::bits_as<float>(simd::select(codes == words<A>(0u), words<A>(0x00400000u), power));
  } else {
    constexpr std::uint32_t rebias = static_cast<std::uint32_t>(127 - F::bias) << 23;
    return simd::bits_as<float>((codes << (23 - F::mantissa_bits)) + words<A>(rebias));
  }
}
/// The same, where the numbers of a minifloat may be subnormal or 0.
template <class F, class A>
QTENSOR_INLINE floats<A> small_scale_values(const words<A>& codes) {
  const floats<A> normal = scale_values<F, A>(codes);
  if constexpr (shiftable_format<F>) {
    constexpr float step = exp2i(1 - F::bias - F::mantissa_bits);
    const floats<A> subnormal = simd::mul(simd::to_float(simd::bits_as<std::int32_t>(codes)), floats<A>(step));
    return simd::select(simd::mask_as<float>(simd::below(codes, words<A>(1u << F::mantissa_bits))), subnormal, normal);
  } else {
    return normal;
  }
}

/// Which scales, none below zero, small_scale_values(scale_codes) takes: those that F does not cut.
template <class F, class A>
QTENSOR_INLINE auto inside_format(const floats<A>& s) {
  return simd::below(simd::bits_as<std::uint32_t>(s), words<A>(bits_of(static_cast<float>(F::max)) + 1));
}

/// Four batches of codes to units of F.
template <class F, class A>
QTENSOR_INLINE void store_scale_codes(const std::array<words<A>, 4>& c, storage_t<F>* to, index_t n) {
  constexpr index_t step = lanes<A>;
  const auto put = [&](auto* at, index_t first, const auto& v) QTENSOR_INLINE_LAMBDA {
    const index_t left = n - first, size = static_cast<index_t>(v.size);
    if (left >= size)
      simd::store(at + first, v);
    else if (left > 0)
      simd::store_n(at + first, left, v);
  };
  if constexpr (sizeof(storage_t<F>) == 4) {
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) put(to, k * step, simd::bits_as<float>(c[k]));
  } else if constexpr (sizeof(storage_t<F>) == 2) {
    put(to, 0, simd::low_halves(c[0], c[1]));
    put(to, 2 * step, simd::low_halves(c[2], c[3]));
  } else {
    put(reinterpret_cast<std::uint8_t*>(to), 0, simd::low_bytes(c[0], c[1], c[2], c[3]));
  }
}

/// 2^(code - 127), the code kept in [0, 254].
template <class A>
QTENSOR_INLINE floats<A> power_of_two(const ints<A>& code) {
  const ints<A> inside = simd::min(ints<A>(254), simd::max(ints<A>(0), code));
  return scale_values<e8m0, A>(simd::bits_as<std::uint32_t>(inside));
}

/// Which numbers (magnitudes as bits) are subnormal; 0 is not.
template <class A>
QTENSOR_INLINE auto are_subnormal(const words<A>& number) {
  return simd::below(words<A>(0u), number) & simd::below(number, words<A>(0x00800000u));
}

/// 2^e, e kept in [-127, 127], where e is the logarithm of a number (as bits) and `of_zero` that of 0; a NaN for
/// subnormal numbers, which the reference looks at.
template <class A>
QTENSOR_INLINE floats<A> power_of_log2(const words<A>& number, const ints<A>& e, int of_zero) {
  const auto zero = number == words<A>(0u);
  const ints<A> wanted = simd::select(simd::mask_as<std::int32_t>(zero), ints<A>(of_zero), e);
  return simd::select(simd::mask_as<float>(are_subnormal<A>(number)), floats<A>(quiet_nan),
                      power_of_two<A>(wanted + ints<A>(127)));
}

/// What the rules of policy/scale_rule.hpp over the absolute maximum have in common.
template <class Rule, class S, class A>
struct known_rule {
  using code = typename S::code_format;
  using scale_format = typename S::scale_format;
  static constexpr bool enabled = std::same_as<Rule, nvfp4_scale> || !S::has_tensor_scale;
  static constexpr bool bounded = true;
};

}  // namespace detail

template <class S, class A>
struct vector_rule<amax_scale, S, A> : detail::known_rule<amax_scale, S, A> {
  static QTENSOR_INLINE floats<A> scale(const words<A>& amax, float) {
    using F = typename S::scale_format;
    constexpr float low = amax_scale::smallest_normal<F>(), high = static_cast<float>(F::max);
    floats<A> s = simd::div(simd::bits_as<float>(amax), floats<A>(S::codes.high));
    s = simd::max(simd::min(s, floats<A>(high)), floats<A>(low));
    return simd::select(simd::mask_as<float>(amax == words<A>(0u)), floats<A>(1.f), s);
  }
};
template <index_t Numerator, index_t Denominator, class S, class A>
struct vector_rule<bounded_amax<Numerator, Denominator>, S, A>
    : detail::known_rule<bounded_amax<Numerator, Denominator>, S, A> {
  static constexpr bool bounded = false;
  static QTENSOR_INLINE floats<A> scale(const words<A>& amax, float) {
    constexpr float bound = static_cast<float>(Numerator) / static_cast<float>(Denominator);
    const floats<A> s = simd::div(simd::bits_as<float>(amax), floats<A>(S::codes.high));
    if constexpr (bound > 0.f)
      return simd::min(s, floats<A>(1.f / bound));
    else
      return s;
  }
};
template <index_t Numerator, index_t Denominator, class S, class A>
struct vector_rule<reciprocal_amax<Numerator, Denominator>, S, A>
    : detail::known_rule<reciprocal_amax<Numerator, Denominator>, S, A> {
  static constexpr bool bounded = false;
  static constexpr float bound = reciprocal_amax<Numerator, Denominator>::min_scale;
  static QTENSOR_INLINE floats<A> scale(const words<A>& amax, float) {
    const floats<A> s = simd::mul(simd::bits_as<float>(amax), floats<A>(1.f / S::codes.high));
    if constexpr (bound > 0.f)
      return simd::min(s, floats<A>(1.f / bound));
    else
      return s;
  }
  static QTENSOR_INLINE floats<A> multiplier(const words<A>& amax) {
    const floats<A> inverse = simd::div(floats<A>(1.f), simd::bits_as<float>(amax));
    return simd::max(simd::mul(inverse, floats<A>(S::codes.high)), floats<A>(bound));
  }
};
template <class S, class A>
struct vector_rule<nvfp4_scale, S, A> : detail::known_rule<nvfp4_scale, S, A> {
  static QTENSOR_INLINE floats<A> scale(const words<A>& amax, float tensor_term) {
    using F = typename S::scale_format;
    constexpr float low = amax_scale::smallest_normal<F>(), high = static_cast<float>(F::max);
    floats<A> s = simd::div(simd::bits_as<float>(amax), floats<A>(S::codes.high));
    if constexpr (S::has_tensor_scale) s = simd::div(s, floats<A>(tensor_term));
    return simd::max(simd::min(s, floats<A>(high)), floats<A>(low));
  }
};
template <class S, class A>
struct vector_rule<mx_floor, S, A> : detail::known_rule<mx_floor, S, A> {
  static QTENSOR_INLINE floats<A> scale(const words<A>& amax, float) {
    return detail::power_of_two<A>(simd::bits_as<std::int32_t>(amax >> 23) -
                                   ints<A>(max_exponent<typename S::code_format>));
  }
};
template <class S, class A>
struct vector_rule<mx_even, S, A> : detail::known_rule<mx_even, S, A> {
  static QTENSOR_INLINE floats<A> scale(const words<A>& amax, float) {
    using code = typename S::code_format;
    constexpr std::uint32_t half = 1u << (23 - qtensor::detail::fraction_bits<code>() - 1);
    const words<A> e = (amax + words<A>(half)) >> 23;
    const floats<A> s = detail::power_of_two<A>(simd::bits_as<std::int32_t>(e) - ints<A>(max_exponent<code>));
    return simd::select(simd::mask_as<float>(e == words<A>(255u)), floats<A>(quiet_nan), s);
  }
};
template <class S, class A>
struct vector_rule<mx_ceil, S, A> : detail::known_rule<mx_ceil, S, A> {
  static QTENSOR_INLINE floats<A> scale(const words<A>& amax, float) {
    const ints<A> e =
        simd::bits_as<std::int32_t>((amax + words<A>(low_bits(23))) >> 23);  // up unless the mantissa is 0
    return detail::power_of_two<A>(e - ints<A>(max_exponent<typename S::code_format>));
  }
};
template <class S, class A>
struct vector_rule<mx_rceil, S, A> : detail::known_rule<mx_rceil, S, A> {
  static QTENSOR_INLINE floats<A> scale(const words<A>& amax, float) {
    constexpr float inverse = 1.f / static_cast<float>(S::code_format::max);
    const words<A> s = simd::bits_as<std::uint32_t>(simd::mul(simd::bits_as<float>(amax), floats<A>(inverse)));
    const words<A> normal = simd::min((s + words<A>(low_bits(23))) >> 23, words<A>(254u));
    const auto low = simd::below(s, words<A>(0x00800000u));
    const words<A> tiny = simd::select(simd::below(words<A>(0x00400000u), s), words<A>(1u), words<A>(0u));
    return detail::scale_values<e8m0, A>(simd::select(low, tiny, normal));
  }
};

template <int Max, class S, class A>
struct vector_rule<mx_dynamic_range<Max>, S, A> : detail::known_rule<mx_dynamic_range<Max>, S, A> {
  static QTENSOR_INLINE floats<A> scale(const words<A>& amax, float) {
    if constexpr (Max == 0 || Max == 6 || Max == 7) {
      const words<A> half = (amax + words<A>(0x7fffu) + ((amax >> 16) & words<A>(1u))) >> 16;
      const words<A> e = (half + words<A>(Max == 7 ? 0x1fu : 0x3fu)) >> 7;
      return detail::power_of_two<A>(simd::bits_as<std::int32_t>(e) - ints<A>(2));
    } else {
      constexpr float inverse = 1.f / static_cast<float>(Max);
      const words<A> s = simd::bits_as<std::uint32_t>(simd::mul(simd::bits_as<float>(amax), floats<A>(inverse)));
      const words<A> e = s >> 23;
      const auto inexact = simd::below(words<A>(0u), s & words<A>(low_bits(23)));
      const auto normal = simd::below(words<A>(0u), e) & simd::below(e, words<A>(254u));  // nor of the last binade
      const words<A> up = simd::select(inexact & normal, words<A>(1u), words<A>(0u));
      return detail::power_of_two<A>(simd::bits_as<std::int32_t>(e + up));
    }
  }
};

/// Schemes whose statistics leave some elements out.
template <class S>
inline constexpr bool leaves_out = detail::one_of<typename S::nonfinite_block, block_ignores, block_ignores_nan>;

namespace detail {

/// Policies for blocks with a subnormal maximum that do nothing to others.
template <class P>
concept leaves_normal_numbers = one_of<P, subnormal_exact, subnormal_to_zero> || requires {
  requires P::leaves_normal_numbers;
};

/// Scales that codes are made with as rules give them, not as they are stored. (Powers of two that are stored may be
/// others then, over which nothing is moved.)
template <class S>
inline constexpr bool takes_unrounded =
    std::same_as<typename S::code_scale, unrounded_scale> && !std::same_as<typename S::scale_format, e8m0>;
template <class S>
inline constexpr bool takes_scales = std::same_as<typename S::code_scale, stored_scale> || takes_unrounded<S>;

}  // namespace detail

/// Schemes that multiply by what the rule gives beside the scale.
template <class S>
inline constexpr bool takes_multiplier = std::same_as<typename S::division, rule_multiplier>;

/// Schemes whose dynamic block scales vectors compute: a rule over the absolute maximum with a vector form, one scale a
/// block that is divided by as it is stored or as the rule gives it, or has a multiplier beside it, and nothing special
/// but blocks that hold infinities or NaNs, and subnormal ones.
template <class S>
concept vector_scaled =
    quantization_scheme<S> && !S::has_zero_point && !S::has_offset &&
    vector_rule<typename S::rule, S, best_arch>::enabled && detail::vector_scale_format<typename S::scale_format> &&
    detail::leaves_normal_numbers<typename S::subnormal_amax> && detail::takes_scales<S> &&
    (!takes_multiplier<S> ||
     requires(const words<best_arch>& amax) { vector_rule<typename S::rule, S, best_arch>::multiplier(amax); });

/// What neighbouring blocks are, all of them. `special`: at least one is not finite, or its scale is not, or kernels do
/// not make its codes of its scale. `fitting`: none is, and numbers fit their scales (encode_fitting).
enum class blocks_are { special, ordinary, fitting };

/// Scales of n neighbouring blocks from their largest magnitudes (f32 bits): what is stored to units[0, n), the same as
/// floats, or what they were before, or their multipliers, to scales[0, n), but of a block of zeros 0 where its codes
/// lose their signs, else 1 in e8m0. `tensor_term` is the scale of the tensor in schemes of two levels. Where blocks
/// are special nothing of use is written.
template <vector_scaled S, usable_arch A = best_arch>
blocks_are block_scales(const std::uint32_t* amax, index_t n, storage_t<typename S::scale_format>* units, float* scales,
                        float tensor_term = 1.f) {
  if (S::has_tensor_scale && !(tensor_term >= std::numeric_limits<float>::min() && is_finite(tensor_term)))
    return blocks_are::special;
  using F = typename S::scale_format;
  using rule = vector_rule<typename S::rule, S, A>;
  constexpr index_t step = lanes<A>;
  constexpr bool moves = detail::moves_grid<S>();
  // Numbers that statistics leave out may be anything, and so may those over a scale that had to be cut.
  constexpr bool may_fit = !leaves_out<S> && !takes_multiplier<S> && (rule::bounded || std::same_as<F, e8m0>);
  constexpr bool minds_zeros = std::same_as<typename S::rule, amax_scale> && !S::code_format::is_integer;
  constexpr bool zeroes = minds_zeros && scale_0_gives_zeros<S> && !leaves_out<S>;
  words<A> largest(0u), smallest(~0u), least_scale(infinity_bits), most_scale(0u);
  for (index_t first = 0; first < n; first += 4 * step) {
    std::array<words<A>, 4> codes;
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      const index_t at = first + k * step, left = std::min(n - at, step);
      codes[k] = words<A>(0u);
      if (left <= 0) continue;
      const words<A> m = left == step ? simd::load<A>(amax + at) : simd::load_n<A>(amax + at, left, 0x3f800000u);
      largest = simd::max(largest, m);
      if constexpr (!std::same_as<typename S::subnormal_amax, subnormal_exact>)
        largest = simd::max(largest, simd::select(detail::are_subnormal<A>(m), words<A>(infinity_bits), words<A>(0u)));
      if constexpr (minds_zeros) smallest = simd::min(smallest, m);
      floats<A> s = rule::scale(m, tensor_term);
      if constexpr (rule::bounded && std::same_as<F, e8m0>)  // a NaN
        largest = simd::max(largest, simd::bits_as<std::uint32_t>(s));
      if constexpr (rule::bounded) {
        codes[k] = detail::scale_codes<F, A>(s);
        if constexpr (!detail::takes_unrounded<S>) s = detail::scale_values<F, A>(codes[k]);
      } else {
        const auto inside = detail::inside_format<F>(s);
        codes[k] = detail::scale_codes<F, A>(s);
        if constexpr (!detail::takes_unrounded<S>) s = detail::small_scale_values<F, A>(codes[k]);
        auto usable = inside;
        if constexpr (random_rounding<typename S::rounding>)
          usable = usable & simd::below(words<A>(0u), simd::bits_as<std::uint32_t>(s));
        largest = simd::max(largest, simd::select(usable, words<A>(0u), words<A>(infinity_bits)));
      }
      if constexpr (takes_multiplier<S>) {
        s = rule::multiplier(m);
        largest = simd::max(largest, simd::bits_as<std::uint32_t>(s));
      }
      // Zeros fit any scale; theirs is the smallest power of two, a subnormal number, which would cost many CPUs
      // dearly.
      if constexpr (std::same_as<F, e8m0>) s = simd::select(simd::mask_as<float>(m == words<A>(0u)), floats<A>(1.f), s);
      if constexpr (moves) {
        const words<A> bits = simd::bits_as<std::uint32_t>(s);
        most_scale = simd::max(most_scale, bits);
        least_scale = simd::min(least_scale, bits);
      }
      if constexpr (zeroes) s = simd::select(simd::mask_as<float>(m == words<A>(0u)), floats<A>(0.f), s);
      if (left == step)
        simd::store(scales + at, s);
      else
        simd::store_n(scales + at, left, s);
    }
    detail::store_scale_codes<F, A>(codes, units + first, n - first);
  }
  const std::uint32_t most = simd::reduce_max(largest);
  const bool signless = minds_zeros && simd::any(smallest == words<A>(0u));  // a block of zeros
  if (most >= infinity_bits || (signless && !zeroes)) return blocks_are::special;
  if (signless) return blocks_are::ordinary;
  bool fit = may_fit;
  if constexpr (!may_fit) {
  } else if constexpr (moves) {
    constexpr auto facts = detail::grid_facts<typename S::code_format>;
    fit = !simd::any(simd::below(least_scale, words<A>(least_moved<facts>))) &&
          !simd::any(simd::below(words<A>(most_moved<facts>), most_scale));
  } else {  // no scale had to be kept inside its format
    fit = float_of(most) <= static_cast<float>(F::max) * S::codes.high * (S::has_tensor_scale ? tensor_term : 1.f);
  }
  return fit ? blocks_are::fitting : blocks_are::ordinary;
}

/// Schemes whose scales and zero points vectors compute from the extremes of blocks: the rule min_max.
template <class S>
concept vector_ranged =
    quantization_scheme<S> && S::has_zero_point && S::zero_points_as_scales && !S::has_offset && !S::has_tensor_scale &&
    std::same_as<typename S::rule, qtensor::min_max> && detail::vector_scale_format<typename S::scale_format> &&
    std::same_as<typename S::subnormal_amax, subnormal_exact> && detail::takes_scales<S> &&
    !std::same_as<typename S::nonfinite_block, block_ignores_nan> &&
    !std::same_as<typename S::nonfinite_block, block_literal> && (S::code_format::bits <= 8);

/// Scales and zero points of n neighbouring blocks from their extremes with 0: scales as stored to units[0, n), the
/// same as floats, or what they were before, and zero points. Where blocks are special - not finite (amax, as bits,
/// says so), or with a scale that is not, or that its format does not hold - nothing of use is written. All others fit,
/// unless statistics leave numbers out, scales have so few digits that codes may end more than a step further on, or
/// are multiplied by their inverses and one of these is infinite.
template <vector_ranged S, usable_arch A = best_arch>
blocks_are range_scales(const std::uint32_t* amax, const float* low, const float* high, index_t n,
                        storage_t<typename S::scale_format>* units, float* scales, std::int32_t* zero_points) {
  using zero = typename S::zero_point_format;
  using F = typename S::scale_format;
  constexpr index_t step = lanes<A>;
  constexpr float span = S::codes.high - S::codes.low;
  constexpr bool unrounded = detail::takes_unrounded<S>;
  constexpr bool many_digits =
      unrounded || detail::one_of<F, f32, f16> || (std::same_as<F, bf16> && S::code_format::bits < 6);
  constexpr bool may_fit = !leaves_out<S> && many_digits, inverts = detail::is_reciprocal<S>;
  constexpr auto least = static_cast<std::int32_t>(std::max<double>(S::codes.low, static_cast<double>(zero::min)));
  constexpr auto most = static_cast<std::int32_t>(std::min<double>(S::codes.high, static_cast<double>(zero::max)));
  words<A> largest(0u), least_scale(infinity_bits);
  for (index_t first = 0; first < n; first += 4 * step) {
    std::array<words<A>, 4> codes;
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      const index_t i = first + k * step, left = std::min(step, n - i);
      codes[k] = words<A>(0u);
      if (left <= 0) continue;
      const auto load = [&](const auto* at) QTENSOR_INLINE_LAMBDA {
        return left == step ? simd::load<A>(at) : simd::load_n<A>(at, left);
      };
      const auto store = [&](auto* at, const auto& v)
                             QTENSOR_INLINE_LAMBDA { left == step ? simd::store(at, v) : simd::store_n(at, left, v); };
      const floats<A> from = load(low + i), to = load(high + i);
      floats<A> s = simd::div(simd::sub(to, from), floats<A>(span));
      largest = simd::max(largest, simd::max(simd::bits_as<std::uint32_t>(s), load(amax + i)));
      s = simd::select(s == floats<A>(0.f), floats<A>(1.f), s);
      codes[k] = detail::scale_codes<F, A>(s);
      const auto inside = detail::inside_format<F>(s);
      if constexpr (!unrounded) s = detail::small_scale_values<F, A>(codes[k]);
      if constexpr (!std::same_as<F, f32>) {  // of which all are
        const auto some = simd::below(words<A>(0u), simd::bits_as<std::uint32_t>(s));
        largest = simd::max(largest, simd::select(inside & some, words<A>(0u), words<A>(infinity_bits)));
      }
      if constexpr (inverts) least_scale = simd::min(least_scale, simd::bits_as<std::uint32_t>(s));
      const ints<A> z = simd::round_to_int(simd::sub(floats<A>(S::codes.low), simd::div(from, s)));
      store(scales + i, s);
      store(zero_points + i, simd::min(ints<A>(most), simd::max(ints<A>(least), z)));
    }
    detail::store_scale_codes<F, A>(codes, units + first, n - first);
  }
  if (simd::reduce_max(largest) >= infinity_bits) return blocks_are::special;
  constexpr float overflows = exp2i(-128);  // its inverse
  const bool fit = may_fit && !(inverts && simd::any(simd::below(least_scale, words<A>(bits_of(overflows) + 1))));
  return fit ? blocks_are::fitting : blocks_are::ordinary;
}

/// Stored scales as floats: out[i] = decode<F>(units[i]) for i < n. For f32 the units themselves will do.
template <format F, usable_arch A = best_arch>
void decode_scales(const storage_t<F>* units, index_t n, float* out) {
  constexpr index_t step = lanes<A>;
  index_t i = 0;
  if constexpr (std::same_as<F, f32>) {  // whole batches, as they are going to be read
    for (; i + step <= n; i += step) simd::store(out + i, simd::load<A>(units + i));
  } else if constexpr (std::same_as<F, e8m0>) {
    for (; i + step <= n; i += step) {
      const words<A> c = simd::widen_u8<A>(units + i);
      const floats<A> s = detail::scale_values<e8m0, A>(c);
      simd::store(out + i, simd::select(simd::mask_as<float>(c == words<A>(255u)), floats<A>(quiet_nan), s));
    }
  } else if constexpr (std::same_as<F, bf16>) {
    for (; i + step <= n; i += step) simd::store(out + i, simd::float_of_bf16(simd::widen_u16<A>(units + i)));
  } else if constexpr (std::same_as<F, f16>) {
    for (; i + step <= n; i += step) simd::store(out + i, simd::from_f16::load<A>(units + i));
  } else if constexpr (F::bits == 8) {
    const decoder<F, A> decode;
    const auto values = [&](const std::uint8_t* from)
                            QTENSOR_INLINE_LAMBDA { return decode(code_bytes<A>{from}, no_zero_points<A>{}); };
    for (; i + 4 * step <= n; i += 4 * step) {
      const std::array<floats<A>, 4> v = values(reinterpret_cast<const std::uint8_t*>(units + i));
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) simd::store(out + i + k * step, v[static_cast<std::size_t>(k)]);
    }
    if (i + step <= n) {  // whole batches of what is left
      alignas(64) std::uint8_t rest[static_cast<std::size_t>(4 * step)] = {};
      std::memcpy(rest, units + i, static_cast<std::size_t>(n - i));
      const std::array<floats<A>, 4> v = values(rest);
      for (int k = 0; k < 3 && i + step <= n; ++k, i += step) simd::store(out + i, v[static_cast<std::size_t>(k)]);
    }
  }
  for (const auto* unit = units + i; unit < units + n; ++unit, ++i)
    out[i] = qtensor::decode<F>(qtensor::detail::code_of<F>(*unit));
}

}  // namespace qtensor::inline QTENSOR_ABI::simd
