// Scale rules: what a block's statistics say its scale should be.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/core/rounded.hpp>
#include <qtensor/format/e8m0.hpp>
#include <qtensor/format/integer.hpp>
#include <qtensor/format/minifloat.hpp>
#include <qtensor/format/wide.hpp>
#include <qtensor/policy/slot.hpp>

namespace qtensor {

namespace detail {
constexpr float between(float x, float low, float high) { return x < low ? low : x > high ? high : x; }
constexpr int between(int x, int low, int high) { return x < low ? low : x > high ? high : x; }
}  // namespace detail

/// Statistics a rule asks for.
struct absolute_maximum {};  // max |x|, compared as bits, so NaN > infinity > finite
struct extremes {};          // min(0, min x) and max(0, max x)
struct peak {};              // the number of largest magnitude with its sign, the first of several; NaNs left out
struct own_extremes {};      // min x and max x themselves, NaNs left out: what an offset is made of
struct no_statistics {};     // scales are given, never computed

/// The range of codes a scheme uses, as real numbers: a format's own, or a `stored_range`.
struct code_range {
  float low, high;
};

// ---- Rules over the absolute maximum. Each has
//        template <format Code, format Scale> static constexpr float scale(float amax, code_range codes)
//      which gives the scale before it is stored. Non-finite maxima come in only with `block_literal`.

/// amax / largest code, kept inside the normal numbers of the scale format; 1 for a zero block (NUMERICS 11). The
/// default.
struct amax_scale {
  using slot = slot::rule;
  using statistics = absolute_maximum;
  static constexpr fixed_string name = "amax_scale";

  template <format Code, format Scale>
  static constexpr float scale(float amax, code_range codes) {
    if (amax == 0.f) return 1.f;
    return detail::between(amax / codes.high, smallest_normal<Scale>(), static_cast<float>(Scale::max));
  }
  template <format Scale>
  static constexpr float smallest_normal() {
    if constexpr (minifloat_format<Scale>)
      return Scale::decode(1u << Scale::mantissa_bits);
    else if constexpr (std::is_same_v<Scale, f32>)
      return std::numeric_limits<float>::min();
    else
      return magnitude(Scale::decode(1));
  }
};

/// amax / largest code, at most Denominator / Numerator, and 0 for a zero block, or one with so small an amax that the
/// quotient rounds to 0, whose codes are then all 0: CANN's DynamicBlockQuant with min_scale = Numerator / Denominator,
/// a lower bound of 1 / scale (NUMERICS 4); 0 sets no bound.
template <index_t Numerator = 0, index_t Denominator = 1>
struct bounded_amax {
  static_assert(Numerator >= 0 && Denominator > 0,
                "qtensor: bounded_amax<n, d> bounds 1 / scale by n / d, which must not be negative.");
  using slot = slot::rule;
  using statistics = absolute_maximum;
  static constexpr auto name = "bounded_amax<" + number_name<Numerator>() + "," + number_name<Denominator>() + ">";

  template <format Code, format Scale>
  static constexpr float scale(float amax, code_range codes) {
    return scale_above(amax, codes.high, static_cast<float>(Numerator) / static_cast<float>(Denominator));
  }
  /// The same with a bound known at run time.
  static constexpr float scale_above(float amax, float largest_code, float bound) {
    const float s = amax / largest_code;
    if (!(bound > 0.f) || !is_finite(s)) return s;
    const float largest = 1.f / bound;
    return s < largest ? s : largest;
  }
};

/// As bounded_amax by reciprocals, and with the multiplier that `rule_multiplier` takes: scale amax * (1 / largest
/// code), multiplier (1 / amax) * largest code, bounded below by min_scale. CANN's int8 on A2 and A3 (NUMERICS 4).
template <index_t Numerator = 0, index_t Denominator = 1>
struct reciprocal_amax {
  static_assert(Numerator >= 0 && Denominator > 0,
                "qtensor: reciprocal_amax<n, d> bounds 1 / scale by n / d, which must not be negative.");
  using slot = slot::rule;
  using statistics = absolute_maximum;
  static constexpr auto name = "reciprocal_amax<" + number_name<Numerator>() + "," + number_name<Denominator>() + ">";
  static constexpr float min_scale = static_cast<float>(Numerator) / static_cast<float>(Denominator);

  template <format Code, format Scale>
  static constexpr float scale(float amax, code_range codes) {
    return scale_above(amax, codes.high, min_scale);
  }
  template <format Code>
  static constexpr float multiplier(float amax, code_range codes) {
    return multiplier_above(amax, codes.high, min_scale);
  }
  /// The same with a bound known at run time.
  static constexpr float scale_above(float amax, float largest_code, float bound) {
    const float s = amax * (1.f / largest_code);
    return bound > 0.f && 1.f / bound < s ? 1.f / bound : s;
  }
  static constexpr float multiplier_above(float amax, float largest_code, float bound) {
    const float m = amax == 0.f ? infinity : 1.f / amax * largest_code;
    return m < bound ? bound : m;
  }
};

/// amax / 6 in e4m3, kept in [2^-6, 448]; with a `tensor_scale`, amax / 6 / tensor scale (torchao, NUMERICS 2.4).
struct nvfp4_scale {
  using slot = slot::rule;
  using statistics = absolute_maximum;
  static constexpr fixed_string name = "nvfp4_scale";

  template <format Code, format Scale>
  static constexpr float scale(float amax, code_range codes) {
    return bounded<Scale>(amax / codes.high);
  }
  /// Block scale below a tensor scale.
  template <format Code, format Scale>
  static constexpr float scale(float amax, code_range codes, float tensor_scale) {
    return bounded<Scale>(amax / codes.high / tensor_scale);
  }
  /// The tensor's scale from its largest magnitude: amax / (448 * 6); 1 where that is 0, as for a tensor of zeros,
  /// which 0 / 0 would spoil.
  template <format Code, format Scale>
  static constexpr float tensor_scale(float amax, code_range codes) {
    const float s = amax / (static_cast<float>(Scale::max) * codes.high);
    return s == 0.f ? 1.f : s;
  }

 private:
  template <format Scale>
  static constexpr float bounded(float s) {
    return detail::between(s, amax_scale::smallest_normal<Scale>(), static_cast<float>(Scale::max));
  }
};

// ---- The rules of ggml's four- and five-bit blocks (NUMERICS 8.3).

/// Peak / lowest code, of either sign: the number of largest magnitude becomes the lowest code exactly. Has
///        template <format Code, format Scale> static constexpr float scale(float peak, code_range codes)
/// ggml's Q4_0 and Q5_0. {-1, 4} as four bits: -0.5; a block of zeros: -0.
struct peak_scale {
  using slot = slot::rule;
  using statistics = peak;
  static constexpr fixed_string name = "peak_scale";

  template <format Code, format Scale>
  static constexpr float scale(float peak, code_range codes) {
    return peak / codes.low;
  }
};

/// Scale (max - min) / (number of codes - 1), and the minimum as the offset. ggml's Q4_1 and Q5_1.
struct offset_min_max {
  using slot = slot::rule;
  using statistics = own_extremes;
  static constexpr fixed_string name = "offset_min_max";

  template <format Code, format Scale>
  static constexpr float scale(float low, float high, code_range codes) {
    return rounded(high - low) / (codes.high - codes.low);
  }
  static constexpr float offset(float low, float) { return low; }
};

// ---- Power-of-two rules, for e8m0 scales (NUMERICS 2.1, 2.5, 2.6). All work on the bits of amax: log2f mis-rounds.

namespace detail {

/// 2^(code - 127) with the code kept in [0, 254].
constexpr float power_of_two_scale(int code) { return exp2i(between(code, 0, 254) - 127); }

constexpr int exponent_field(std::uint32_t bits) { return static_cast<int>((bits & magnitude_bits) >> 23); }
constexpr std::uint32_t mantissa_field(std::uint32_t bits) { return bits & low_bits(23); }

/// e8m0 rounded up: the next power of two unless s is one (NUMERICS 1.7 "up"; no step out of the top binade).
constexpr int exponent_rounded_up(float s) {
  const std::uint32_t bits = bits_of(s);
  const int e = exponent_field(bits);
  if (e == 0) return mantissa_field(bits) > 0x400000u ? 1 : 0;
  return e < 254 && mantissa_field(bits) != 0 ? e + 1 : e;
}

/// Half the distance from an integer k, 0 < |k| <= 149, to the next float on the side away from zero or toward it.
constexpr double half_step(int k, bool away) {
  const int size = k < 0 ? -k : k;
  const int binade = static_cast<int>(std::bit_width(static_cast<unsigned>(size))) - 1;
  const bool shorter = !away && std::has_single_bit(static_cast<unsigned>(size));
  return static_cast<double>(exp2i(binade - (shorter ? 25 : 24)));
}
constexpr double inverse_ln2 = 1.4426950408889634;

/// floor(log2f(x)) with a correctly rounded log2f, x positive and finite: the exponent of x, or one more where x lies
/// so close below a power of two that the logarithm rounds up to an integer. 0x7f7fffff: 128.
constexpr int floor_of_log2f(float x) {
  // Further than 2^-16 below the next power of two the logarithm stays more than a step below that integer.
  if (const std::uint32_t bits = bits_of(x); bits >= 0x00800000u && mantissa_field(bits) < 0x7fff00u)
    return exponent_field(bits) - 127;
  const int k = floor_log2(x) + 1;
  if (k == 0) return -1;
  const double next = k < 128 ? static_cast<double>(exp2i(k)) : 0x1p128;
  const double below = (next - static_cast<double>(x)) / next;  // log2 x = k - (below + below^2 / 2 + ...) / ln 2
  return below * (1.0 + below / 2) * inverse_ln2 <= half_step(k, k < 0) ? k : k - 1;
}
/// ceil(log2f(x)) likewise: the exponent of x where x is a power of two or so close above one.
constexpr int ceil_of_log2f(float x) {
  const int k = floor_log2(x);
  const double power = static_cast<double>(exp2i(k));
  const double above = (static_cast<double>(x) - power) / power;
  if (above == 0.0) return k;
  return k != 0 && above * (1.0 - above / 2) * inverse_ln2 <= half_step(k, k > 0) ? k : k + 1;
}

/// Fraction bits of a format's largest binade: what "round at element precision" means.
template <format Code>
constexpr int fraction_bits() {
  if constexpr (minifloat_format<Code>)
    return Code::mantissa_bits;
  else
    return Code::bits - 1 - (Code::is_signed ? 1 : 0);
}

}  // namespace detail

/// 2^(floor(log2 amax) - emax): OCP MX v1.0, torchao FLOOR, CANN scaleAlg 0, oneDNN dynamic_mx.  e4m3: 1.9 -> 2^-8
struct mx_floor {
  using slot = slot::rule;
  using statistics = absolute_maximum;
  static constexpr bool power_of_two = true;
  static constexpr fixed_string name = "mx_floor";

  template <format Code, format Scale>
  static constexpr float scale(float amax, code_range) {
    return detail::power_of_two_scale(detail::exponent_field(bits_of(amax)) - max_exponent<Code>);
  }
};

/// As mx_floor after rounding amax to the element's precision, half up: torchao EVEN.            e4m3: 1.94 -> 2^-7
struct mx_even {
  using slot = slot::rule;
  using statistics = absolute_maximum;
  static constexpr bool power_of_two = true;
  static constexpr fixed_string name = "mx_even";

  template <format Code, format Scale>
  static constexpr float scale(float amax, code_range) {
    const int e = detail::exponent_field(bits_of(amax) + (1u << (23 - detail::fraction_bits<Code>() - 1)));
    return e == 255 ? quiet_nan : detail::power_of_two_scale(e - max_exponent<Code>);  // 255: amax rounded to 2^128
  }
};

/// 2^(ceil(log2 amax) - emax): torchao CEIL.                                                     e4m3: 1.5 -> 2^-7
struct mx_ceil {
  using slot = slot::rule;
  using statistics = absolute_maximum;
  static constexpr bool power_of_two = true;
  static constexpr fixed_string name = "mx_ceil";

  template <format Code, format Scale>
  static constexpr float scale(float amax, code_range) {
    const std::uint32_t bits = bits_of(amax);
    const int up = detail::mantissa_field(bits) != 0 ? 1 : 0;
    return detail::power_of_two_scale(detail::exponent_field(bits) + up - max_exponent<Code>);
  }
};

/// amax * (1 / max) rounded up to a power of two: torchao RCEIL, cuBLAS, CANN scaleAlg 1.          e4m3: 1.76 -> 2^-7
struct mx_rceil {
  using slot = slot::rule;
  using statistics = absolute_maximum;
  static constexpr bool power_of_two = true;
  static constexpr fixed_string name = "mx_rceil";

  template <format Code, format Scale>
  static constexpr float scale(float amax, code_range) {
    const float s = amax * (1.f / static_cast<float>(Code::max));
    return detail::power_of_two_scale(detail::exponent_rounded_up(s));
  }
};

/// CANN scaleAlg 2 for e2m1 with dst_type_max = Max (NUMERICS 2.5). 0, 6 and 7: the exponent of amax in bf16, one up
/// where the mantissa exceeds 1.5 (1.75 for 7). 8 to 12: amax * (1 / Max) rounded up among the normal numbers.
template <int Max>
struct mx_dynamic_range {
  static_assert(Max == 0 || (Max >= 6 && Max <= 12),
                "qtensor: mx_dynamic_range<max> takes 0 or 6 to 12 (CANN's dst_type_max).");
  using slot = slot::rule;
  using statistics = absolute_maximum;
  static constexpr bool power_of_two = true;
  static constexpr auto name = "mx_dynamic_range<" + number_name<Max>() + ">";

  template <format Code, format Scale>
  static constexpr float scale(float amax, code_range) {
    static_assert(std::is_same_v<Code, e2m1>, "qtensor: mx_dynamic_range is a rule for e2m1 codes only.");
    const std::uint32_t bits = bits_of(amax);
    if constexpr (Max == 0 || Max == 6 || Max == 7) {
      const std::uint32_t half = bits + 0x7fffu + ((bits >> 16) & 1u);  // to bf16, ties to even
      const std::uint32_t raised = (half >> 16) + (Max == 7 ? 0x1fu : 0x3fu);
      const int e = static_cast<int>((raised & 0x7f80u) >> 7);
      return detail::power_of_two_scale(e < 2 ? 0 : e - 2);  // a raised 255 is code 253, as CANN's formula has it
    } else {
      return scale_below(amax, 1.f / static_cast<float>(Max));
    }
  }
  /// amax * inverse_max rounded up among the normal numbers: the rule of every other maximum, known at run time.
  static constexpr float scale_below(float amax, float inverse_max) {
    const std::uint32_t s = bits_of(amax * inverse_max);
    const int e = detail::exponent_field(s);
    return detail::power_of_two_scale(e > 0 && e < 254 && detail::mantissa_field(s) != 0 ? e + 1 : e);
  }
};

// ---- Rules over the extremes.

/// Scale (hi - lo) / (number of codes - 1) and a zero point, 0 always representable: ONNX DynamicQuantizeLinear
/// (NUMERICS 11). The default where there is a zero point. Scale 1 for a block of zeros.
struct min_max {
  using slot = slot::rule;
  using statistics = extremes;
  static constexpr fixed_string name = "min_max";

  template <format Scale>
  static constexpr float scale(float low, float high, code_range codes) {
    const float s = (high - low) / (codes.high - codes.low);
    return s == 0.f ? 1.f : s;
  }
  /// The quotient low / scale is below, at or near code.low - zero point; the caller rounds and clamps.
  static constexpr float zero_point(float low, float scale, code_range codes) { return codes.low - low / scale; }
};

// ---- No rule.

/// Scales are always given by the caller; dynamic quantization does not compile. The default of bare e8m0 views.
struct static_only {
  using slot = slot::rule;
  using statistics = no_statistics;
  static constexpr fixed_string name = "static_only";
};

template <class R>
concept scale_rule = requires {
  requires detail::one_of<typename R::statistics, absolute_maximum, extremes, peak, own_extremes, no_statistics>;
};
template <class R>
concept power_of_two_rule = fills<R, slot::rule> && requires {
  requires R::power_of_two;
};
template <class R>
concept amax_rule = fills<R, slot::rule> && std::same_as<typename R::statistics, absolute_maximum>;
/// Gives `rule_multiplier` its multiplier.
template <class R>
concept multiplying_rule = amax_rule<R> && requires(float amax, code_range codes) {
  { R::template multiplier<f32>(amax, codes) } -> std::same_as<float>;
};
/// Takes the signed peak of a block.
template <class R>
concept peak_rule = fills<R, slot::rule> && std::same_as<typename R::statistics, peak>;
/// Gives an offset beside the scale.
template <class R>
concept offset_rule = fills<R, slot::rule> && std::same_as<typename R::statistics, own_extremes>;
/// Has a scale for the whole tensor above those of the blocks.
template <class R>
concept two_level_rule = amax_rule<R> && requires(float amax, code_range codes) {
  { R::template tensor_scale<f32, f32>(amax, codes) } -> std::same_as<float>;
};
template <class R>
concept extremes_rule = fills<R, slot::rule> && std::same_as<typename R::statistics, extremes>;

/// Whether a rule has the functions its statistics ask for, where a scheme has one level of scales, and where two.
template <class R, class Code, class Scale, class Statistics = typename R::statistics>
inline constexpr bool gives_scales = std::same_as<Statistics, no_statistics>;
template <class R, class Code, class Scale, detail::one_of<absolute_maximum, peak> Statistics>
inline constexpr bool gives_scales<R, Code, Scale, Statistics> = requires(float most, code_range codes) {
  { R::template scale<Code, Scale>(most, codes) } -> std::same_as<float>;
};
template <class R, class Code, class Scale>
inline constexpr bool gives_scales<R, Code, Scale, own_extremes> = requires(float low, float high, code_range codes) {
  { R::template scale<Code, Scale>(low, high, codes) } -> std::same_as<float>;
  { R::offset(low, high) } -> std::same_as<float>;
};
template <class R, class Code, class Scale>
inline constexpr bool gives_scales<R, Code, Scale, extremes> = requires(float low, float high, code_range codes) {
  { R::template scale<Scale>(low, high, codes) } -> std::same_as<float>;
  { R::zero_point(low, high, codes) } -> std::same_as<float>;
};
template <class R, class Code, class Scale>
inline constexpr bool gives_scales_below = requires(float amax, code_range codes, float tensor_term) {
  { R::template scale<Code, Scale>(amax, codes, tensor_term) } -> std::same_as<float>;
};

}  // namespace qtensor
