// The formats as plain lists: every finite value with its code, written from the tables of the specification (section
// 1). SPDX-License-Identifier: BSD-3-Clause
//
// First half of the test oracle. It shares no code with the library and includes none of it.
// Values are doubles, and every double here is exact: each value is k * 2^e with |k| < 2^33 and -149 <= e <= 127, which
// a double (53 significant bits, exponents down to -1074) holds without rounding. So comparisons and sums below are
// exact too.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace oracle {

/// A finite value and the code an encoder gives for it.
struct point {
  double value;
  std::uint32_t code;
};

/// One format. `points` ascends by value and holds each value once (zero under its positive code).
struct format {
  std::string name;
  int bits = 0;
  bool is_integer = false;       ///< zero points make sense; never NaN or infinity
  bool only_magnitudes = false;  ///< e8m0: powers of two, a sign is dropped, nothing below the smallest value
  int nan_payload_bits = 0;     ///< mantissa bits a NaN keeps of an f32 NaN's (bf16: section 1.2; f16 alike), else none
  std::vector<point> points;    ///< empty for int32 only, whose values are all integers in [min, max]
  std::vector<double> decoded;  ///< value of every code, specials included; empty for int32
  double min = 0, max = 0;      ///< the extreme finite values an encoder may give
  double below_min = 0;         ///< the value that would come next if the format went on: overflow is judged
  double above_max = 0;         ///<   after rounding to it (section 1.5)
  std::optional<std::uint32_t> nan, negative_nan, infinity, negative_infinity, negative_zero;
};

/// What a code means. For int32 the code's two's complement value.
inline double decode(const format& f, std::uint32_t code) {
  return f.decoded.empty() ? static_cast<double>(static_cast<std::int32_t>(code)) : f.decoded.at(code);
}

namespace detail {

inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
inline constexpr double infinite = std::numeric_limits<double>::infinity();

inline double power_of_two(int e) { return std::ldexp(1.0, e); }

/// Sorts the finite codes into `points`, all but those in `unused`, and notes the extremes.
inline void collect(format& f, const std::vector<std::uint32_t>& unused = {}) {
  for (std::uint32_t code = 0; code < f.decoded.size(); ++code) {
    const double value = f.decoded[code];
    if (!std::isfinite(value) || std::count(unused.begin(), unused.end(), code) != 0) continue;
    if (value == 0 && std::signbit(value))
      f.negative_zero = code;
    else
      f.points.push_back({value, code});
  }
  std::sort(f.points.begin(), f.points.end(), [](point a, point b) { return a.value < b.value; });
  f.min = f.points.front().value;
  f.max = f.points.back().value;
}

inline format integer(std::string name, int bits, std::int64_t min, std::int64_t max) {
  format f;
  f.name = std::move(name);
  f.bits = bits;
  f.is_integer = true;
  f.min = static_cast<double>(min);
  f.max = static_cast<double>(max);
  f.below_min = f.min - 1;
  f.above_max = f.max + 1;
  if (bits == 32) return f;
  const std::int64_t codes = std::int64_t{1} << bits;
  for (std::int64_t code = 0; code < codes; ++code) {
    const bool negative = min < 0 && code >= codes / 2;
    f.decoded.push_back(static_cast<double>(negative ? code - codes : code));
  }
  for (std::int64_t v = min; v <= max; ++v)
    f.points.push_back({static_cast<double>(v), static_cast<std::uint32_t>(v & (codes - 1))});
  return f;
}

enum class specials {
  none,      ///< every code is finite
  nan_only,  ///< S.11..1.11..1 is NaN, no infinity (OFP8 e4m3)
  ieee,      ///< top exponent: infinity for M = 0, else NaN; the quiet NaN has the top mantissa bit
  fnuz       ///< the code of negative zero is the only NaN, no infinity
};

/// Value of the magnitude code of a minifloat whose top codes are numbers too: section 1, "Conventions".
inline double minifloat_value(std::uint32_t magnitude, int m, int bias) {
  const int e = static_cast<int>(magnitude >> m);
  const double fraction = static_cast<double>(magnitude & ((1u << m) - 1)) / power_of_two(m);
  return e == 0 ? power_of_two(1 - bias) * fraction : power_of_two(e - bias) * (1 + fraction);
}

inline format minifloat(std::string name, int e, int m, int bias, specials s) {
  format f;
  f.name = std::move(name);
  f.bits = 1 + e + m;
  const std::uint32_t sign = 1u << (e + m), top = ((1u << e) - 1) << m, last = sign - 1;
  std::uint32_t finite = last;  // the largest finite magnitude code
  if (s == specials::nan_only) finite = last - 1;
  if (s == specials::ieee) finite = top - 1;
  for (std::uint32_t code = 0; code < 2 * sign; ++code) {
    const std::uint32_t magnitude = code & last;
    double value = magnitude <= finite ? minifloat_value(magnitude, m, bias) : not_a_number;
    if (s == specials::ieee && magnitude == top) value = infinite;
    if (code & sign) value = -value;
    if (s == specials::fnuz && code == sign) value = not_a_number;
    f.decoded.push_back(value);
  }
  collect(f);
  f.above_max = minifloat_value(finite + 1, m, bias);
  f.below_min = -f.above_max;
  if (s == specials::nan_only) f.nan = last, f.negative_nan = sign | last;
  if (s == specials::ieee) {
    const std::uint32_t quiet = top | (1u << (m - 1));
    f.nan = quiet, f.negative_nan = sign | quiet;
    f.infinity = top, f.negative_infinity = sign | top;
  }
  if (s == specials::fnuz) f.nan = f.negative_nan = sign;
  return f;
}

/// Sign and magnitude, no specials, from a printed list of magnitudes (section 1.7).
inline format listed(std::string name, int bits, const std::vector<double>& magnitudes, double above_max) {
  format f;
  f.name = std::move(name);
  f.bits = bits;
  for (double sign : {1.0, -1.0})
    for (double v : magnitudes) f.decoded.push_back(sign * v);
  collect(f);
  f.above_max = above_max;
  f.below_min = -above_max;
  return f;
}

/// Section 1.7: two's complement times 2^-6. Code 0x80 decodes to -2 but is never given (symmetric clamp).
inline format mxint8() {
  format f;
  f.name = "mxint8";
  f.bits = 8;
  for (int code = 0; code < 256; ++code) f.decoded.push_back((code < 128 ? code : code - 256) / 64.0);
  collect(f, {0x80});
  f.below_min = -2;
  f.above_max = 2;
  return f;
}

/// Section 1.8, from the table of all positive codes, row by row.
inline format hif8() {
  struct row {
    std::uint32_t first;
    int exponent;
  };
  std::vector<double> positive(128, 0.0);
  for (std::uint32_t k = 1; k < 8; ++k) positive[k] = power_of_two(static_cast<int>(k) - 23);
  for (row r : {row{0x08, 0}, {0x10, 1}, {0x18, -1}, {0x20, 2}, {0x28, 3}, {0x30, -2}, {0x38, -3}})
    for (std::uint32_t k = 0; k < 8; ++k) positive[r.first + k] = power_of_two(r.exponent) * (1 + k / 8.0);
  for (row r : {row{0x40, 4}, {0x44, 5}, {0x48, 6}, {0x4C, 7}, {0x50, -4}, {0x54, -5}, {0x58, -6}, {0x5C, -7}})
    for (std::uint32_t k = 0; k < 4; ++k) positive[r.first + k] = power_of_two(r.exponent) * (1 + k / 4.0);
  for (row r : {row{0x60, 8},
                {0x62, 9},
                {0x64, 10},
                {0x66, 11},
                {0x68, 12},
                {0x6A, 13},
                {0x6C, 14},
                {0x6E, 15},
                {0x70, -8},
                {0x72, -9},
                {0x74, -10},
                {0x76, -11},
                {0x78, -12},
                {0x7A, -13},
                {0x7C, -14},
                {0x7E, -15}})
    for (std::uint32_t k = 0; k < 2; ++k) positive[r.first + k] = power_of_two(r.exponent) * (1 + k / 2.0);
  format f;
  f.name = "hif8";
  f.bits = 8;
  f.above_max = positive[0x6F];  // 1.5 * 2^15 would be here, were it not infinity
  f.below_min = -f.above_max;
  positive[0x6F] = infinite;
  f.decoded = positive;
  for (double v : positive) f.decoded.push_back(-v);
  f.decoded[0x80] = not_a_number;
  collect(f);
  f.nan = f.negative_nan = 0x80;
  f.infinity = 0x6F, f.negative_infinity = 0xEF;
  return f;
}

/// Section 1.7, "E8M0 (scale)": 2^(code - 127), 0xFF is NaN; no sign, no zero, no infinity.
inline format e8m0() {
  format f;
  f.name = "e8m0";
  f.bits = 8;
  f.only_magnitudes = true;
  for (int code = 0; code < 255; ++code) f.decoded.push_back(power_of_two(code - 127));
  f.decoded.push_back(not_a_number);
  collect(f);
  f.below_min = power_of_two(-128);
  f.above_max = power_of_two(128);
  f.nan = f.negative_nan = 0xFF;
  return f;
}

inline std::vector<format> make_all() {
  using enum specials;
  std::vector<format> all;
  all.push_back(integer("int8", 8, -128, 127));
  all.push_back(integer("uint8", 8, 0, 255));
  all.push_back(integer("int16", 16, -32768, 32767));
  all.push_back(integer("uint16", 16, 0, 65535));
  all.push_back(integer("int32", 32, -2147483648ll, 2147483647ll));
  all.push_back(integer("int4", 4, -8, 7));
  all.push_back(integer("uint4", 4, 0, 15));
  all.push_back(integer("int2", 2, -2, 1));
  all.push_back(integer("uint2", 2, 0, 3));
  all.push_back(integer("narrow_int8", 8, -127, 127));
  all.push_back(minifloat("e4m3", 4, 3, 7, nan_only));
  all.push_back(minifloat("e4m3fnuz", 4, 3, 8, fnuz));
  all.push_back(minifloat("e5m2", 5, 2, 15, ieee));
  all.push_back(minifloat("e5m2fnuz", 5, 2, 16, fnuz));
  all.push_back(minifloat("e3m2", 3, 2, 3, none));
  all.push_back(minifloat("e2m3", 2, 3, 1, none));
  all.push_back(listed("e2m1", 4, {0, .5, 1, 1.5, 2, 3, 4, 6}, 8));
  all.push_back(listed("e1m2", 4, {0, .25, .5, .75, 1, 1.25, 1.5, 1.75}, 2));
  all.push_back(mxint8());
  all.push_back(hif8());
  all.push_back(e8m0());
  all.push_back(minifloat("bf16", 8, 7, 127, ieee));
  all.back().nan_payload_bits = 7;
  all.push_back(minifloat("f16", 5, 10, 15, ieee));
  all.back().nan_payload_bits = 10;
  all.push_back(minifloat("e4m3_ieee", 4, 3, 7, ieee));
  all.push_back(minifloat("e3m4", 3, 4, 3, ieee));
  all.push_back(minifloat("e4m3b11fnuz", 4, 3, 11, fnuz));
  return all;
}

}  // namespace detail

/// Every format of the library's design plus the three that only ml_dtypes has (section 1.6).
inline const std::vector<format>& formats() {
  static const std::vector<format> all = detail::make_all();
  return all;
}

inline const format& format_named(const std::string& name) {
  for (const format& f : formats())
    if (f.name == name) return f;
  throw std::invalid_argument("the oracle has no format named " + name);
}

}  // namespace oracle
