// The slow, obvious encoder: find the two exact neighbours of a number, compare, choose. Checks the library's codecs.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <bit>

#include "oracle/formats.hpp"

namespace oracle {

enum class rounding { nearest_even, nearest_away, toward_negative, toward_positive, toward_zero, via_f16 };
enum class overflow { saturate, to_special };
enum class nan_rule { propagates, to_zero, to_zero_point, to_max };

/// A neighbour: a point of the format, or the value beyond its end.
struct neighbour {
  double value;
  bool odd;     ///< lowest bit of the code; neighbours alternate, also across binades and across zero
  bool beyond;  ///< past the largest or smallest finite value
  std::uint32_t code;
};

struct neighbours {
  neighbour low, high;  ///< low.value <= x <= high.value; both the same point when the format holds x
};

namespace detail {

inline neighbour inside(point p) { return {p.value, (p.code & 1) != 0, false, p.code}; }
inline neighbour outside(double value, const neighbour& last) { return {value, !last.odd, true, 0}; }

}  // namespace detail

/// The neighbours of x, for below_min < x < above_max.
inline neighbours neighbours_of(const format& f, double x) {
  if (f.points.empty()) {  // int32: the integers around x; exact, since x has at most 24 significant bits
    auto at = [&f](double v) {
      const bool beyond = v < f.min || v > f.max;
      const bool odd = std::fmod(v, 2.0) != 0;
      return neighbour{v, odd, beyond, beyond ? 0 : static_cast<std::uint32_t>(static_cast<std::int64_t>(v))};
    };
    return {at(std::floor(x)), at(std::ceil(x))};
  }
  const neighbour first = detail::inside(f.points.front()), last = detail::inside(f.points.back());
  if (x < first.value) return {detail::outside(f.below_min, first), first};
  if (x > last.value) return {last, detail::outside(f.above_max, last)};
  auto up = std::lower_bound(f.points.begin(), f.points.end(), x, [](point p, double v) { return p.value < v; });
  const neighbour high = detail::inside(*up);
  return {high.value == x ? high : detail::inside(*(up - 1)), high};
}

/// True when x goes to the upper of its two neighbours.
///
/// The comparison of 2x with low + high is exact in double. Neighbours of f16, bf16 and smaller formats are integers
/// below 2^12 times one power of two, so their sum fits in 53 bits; neighbours in int32 are integers up to 2^31; and
/// doubling x only moves its exponent, which has room on both sides (floats end at 2^128 and 2^-149, doubles at 2^1024
/// and 2^-1074).
inline bool goes_up(const neighbours& n, double x, rounding r) {
  if (r == rounding::toward_negative) return false;
  if (r == rounding::toward_positive) return true;
  if (r == rounding::toward_zero) return x < 0;
  const double twice = 2 * x, middle = n.low.value + n.high.value;
  if (twice != middle) return twice > middle;
  return r == rounding::nearest_away ? x > 0 : !n.high.odd;
}

/// The answer to a number that is too large: `negative` tells which end.
inline std::uint32_t overflowed(const format& f, bool negative, overflow o) {
  if (o == overflow::to_special) {
    const auto& infinity = negative ? f.negative_infinity : f.infinity;
    const auto& nan = negative ? f.negative_nan : f.nan;
    if (infinity) return *infinity;
    if (nan) return *nan;
  }
  if (f.points.empty()) return negative ? 0x80000000u : 0x7FFFFFFFu;
  return negative ? f.points.front().code : f.points.back().code;
}

/// The code of a NaN. Code 0 is the value nearest to zero in every format: +0, or 2^-127 in e8m0.
inline std::uint32_t encode_nan(const format& f, double x, nan_rule rule) {
  const bool negative = std::signbit(x);
  if (rule == nan_rule::to_max) return overflowed(f, negative && !f.only_magnitudes, overflow::saturate);
  if (rule != nan_rule::propagates || !f.nan) return 0;
  const std::uint32_t payload = std::bit_cast<std::uint32_t>(static_cast<float>(x)) & 0x7FFFFFu;  // as the float had it
  return (negative ? *f.negative_nan : *f.nan) | (f.nan_payload_bits == 0 ? 0 : payload >> (23 - f.nan_payload_bits));
}

/// The code of x (a float, widened). Out-of-range numbers are judged after rounding with an unbounded exponent.
inline std::uint32_t encode(const format& f, double x, rounding r = rounding::nearest_even,
                            overflow o = overflow::saturate, nan_rule rule = nan_rule::propagates) {
  if (r == rounding::via_f16) {  // two roundings, one after the other; a NaN comes out of f16 quiet, with its sign only
    static const format& half = format_named("f16");
    x = decode(half, encode(half, x, rounding::nearest_even, overflow::to_special));
    r = rounding::nearest_even;
  }
  if (std::isnan(x)) return encode_nan(f, x, rule);
  bool negative = std::signbit(x);
  if (f.only_magnitudes) {  // section 1.7: the sign is dropped, nothing below 2^-127, infinity is NaN whatever the
                            // policy
    x = std::fabs(x);
    negative = false;
    if (std::isinf(x)) return *f.nan;
    if (x <= f.min) return f.points.front().code;
  }
  if (std::isinf(x)) return overflowed(f, negative, o);
  if (x >= f.above_max || x <= f.below_min) return overflowed(f, negative, o);
  const neighbours n = neighbours_of(f, x);
  const neighbour chosen = goes_up(n, x, r) ? n.high : n.low;
  if (chosen.beyond) return overflowed(f, negative, o);
  if (chosen.value == 0 && negative && f.negative_zero) return *f.negative_zero;
  return chosen.code;
}

/// The rounding a format uses when none is named: ties to even, but hif8 knows ties away only (section 1.8).
inline rounding default_rounding(const format& f) {
  return f.name == "hif8" ? rounding::nearest_away : rounding::nearest_even;
}

inline const char* name_of(rounding r) {
  constexpr const char* names[] = {"nearest_even",    "nearest_away", "toward_negative",
                                   "toward_positive", "toward_zero",  "via_f16"};
  return names[static_cast<int>(r)];
}
inline const char* name_of(overflow o) { return o == overflow::saturate ? "saturate" : "to_special"; }
inline const char* name_of(nan_rule n) {
  constexpr const char* names[] = {"nan_propagates", "nan_to_zero", "nan_to_zero_point", "nan_to_max"};
  return names[static_cast<int>(n)];
}

}  // namespace oracle
