// Block quantization the slow, obvious way: explicit lists of elements that share a scale, one formula of the
// specification each. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>

#include "oracle/encode.hpp"
#include "oracle/inputs.hpp"

namespace oracle {

/// Every block is the list of its elements' indices.
using block_list = std::vector<std::vector<std::size_t>>;

/// Cuts a row-major array into blocks of the given extents (0 = the whole axis); short last blocks are blocks too.
/// Blocks come in row-major order of their position.
inline block_list cut(const std::vector<std::size_t>& shape, const std::vector<std::size_t>& block) {
  std::size_t elements = 1;
  for (std::size_t extent : shape) elements *= extent;
  std::map<std::vector<std::size_t>, std::vector<std::size_t>> found;  // a map keeps positions in row-major order
  for (std::size_t i = 0; i < elements; ++i) {
    std::vector<std::size_t> position(shape.size());
    std::size_t rest = i;
    for (std::size_t axis = shape.size(); axis-- > 0; rest /= shape[axis]) {
      const std::size_t index = rest % shape[axis];
      position[axis] = block[axis] == 0 ? 0 : index / block[axis];
    }
    found[position].push_back(i);
  }
  block_list out;
  for (auto& [position, members] : found) out.push_back(std::move(members));
  return out;
}

/// Codes per element; per block the scale as stored (f32 bits or a code) and the zero point's value.
struct quantized {
  std::vector<std::uint32_t> codes;
  std::vector<std::uint32_t> scales;
  std::vector<std::int64_t> zero_points;
  float tensor_scale = 1;
};

/// What a block with a NaN or an infinity becomes.
enum class nonfinite {
  propagates,  ///< scale NaN, codes NaN where the format has one, else 0
  to_zero,     ///< scale NaN, codes 0
  ignores      ///< left out of the statistics; their codes follow the other policies
};

/// What number is converted.
enum class division {
  exact,       ///< RN(x / s)
  reciprocal,  ///< RN(x * RN(1 / s))
  in_f16       ///< RN(x / s) rounded to f16 (section 8.1)
};

/// Whether codes see the scale as it reads back from its format, or as it was computed (ggml, section 8.3).
enum class code_scale { stored, unrounded };

/// How numbers become codes once the scale is known.
struct conversion {
  rounding round = rounding::nearest_even;
  overflow over = overflow::saturate;
  nan_rule nan = nan_rule::propagates;
  nonfinite blocks = nonfinite::propagates;
  division divide = division::exact;
  code_scale seen = code_scale::stored;
};

/// Section 11: hif8 rounds ties away, everything else ties to even.
inline conversion default_conversion(const format& f) {
  conversion c;
  c.round = default_rounding(f);
  return c;
}

namespace detail {

inline std::uint32_t magnitude_bits(float x) { return bits_of(x) & 0x7FFFFFFFu; }

inline bool finite_bits(std::uint32_t magnitude) { return magnitude < 0x7F800000u; }

/// Bits of the largest magnitude; 0x7F800000 or more when there is an infinity or a NaN (magnitudes compare as
/// integers).
inline std::uint32_t amax_bits(const std::vector<float>& x, const std::vector<std::size_t>& block,
                               const conversion& c) {
  std::uint32_t best = 0;
  for (std::size_t i : block)
    if (c.blocks != nonfinite::ignores || finite_bits(magnitude_bits(x[i])))
      best = std::max(best, magnitude_bits(x[i]));
  return best;
}

/// "smallest normal" of a scale format, the lower clamp of amax_scale and nvfp4.
inline float smallest_normal(const std::string& scale) {
  if (scale == "e8m0") return 0x1p-127f;
  if (scale == "e4m3") return 0x1p-6f;
  if (scale == "e5m2" || scale == "f16") return 0x1p-14f;
  return 0x1p-126f;  // f32, bf16
}

inline float largest(const std::string& scale) {
  return scale == "f32" ? std::numeric_limits<float>::max() : static_cast<float>(format_named(scale).max);
}

/// A scale as stored, and the value that is read back.
inline std::uint32_t store_scale(const std::string& scale, float s) {
  return scale == "f32" ? bits_of(s) : encode(format_named(scale), static_cast<double>(s));
}
inline float stored_value(const std::string& scale, std::uint32_t stored) {
  return scale == "f32" ? float_of(stored) : static_cast<float>(decode(format_named(scale), stored));
}

inline std::uint32_t nan_scale(const std::string& scale) {
  return scale == "f32" ? 0x7FC00000u : *format_named(scale).nan;
}

/// The code of every element of a block whose scale is NaN.
inline std::uint32_t nan_code(const format& f, const conversion& c) {
  return f.nan && c.blocks == nonfinite::propagates ? *f.nan : 0;
}

inline std::uint32_t convert(const format& f, float x, const conversion& c) {
  return encode(f, static_cast<double>(x), c.round, c.over, c.nan);
}

}  // namespace detail

/// x over its scale, as a float.
inline float quotient_of(float x, float s, division d) {
  if (d == division::reciprocal) {
    const float inverse = 1.f / s;
    return x * inverse;
  }
  const float q = x / s;
  if (d == division::exact || std::isnan(q)) return q;
  const format& half = format_named("f16");
  return static_cast<float>(
      decode(half, encode(half, static_cast<double>(q), rounding::nearest_even, overflow::to_special)));
}

/// Static scale: q = rne(x / s), one f32 division. Section 11, "NaN codes with a static scale". A scale of 0 belongs to
/// a block whose numbers are all taken for 0 (section 4).
inline std::uint32_t encode_scaled(const format& f, float x, float s, const conversion& c) {
  return s == 0 ? 0 : detail::convert(f, quotient_of(x, s, c.divide), c);
}

/// x rounded to an integer, as the encoder rounds to a format that holds all integers.
inline double rounded_integer(float x, rounding r) {
  const double v = static_cast<double>(x), low = std::floor(v), high = std::ceil(v);
  if (low == high) return v;
  return goes_up({{low, std::fmod(low, 2) != 0, false, 0}, {high, std::fmod(high, 2) != 0, false, 0}}, v, r) ? high
                                                                                                             : low;
}

/// Integer code with a zero point, added after rounding (section 0.1, ONNX) or before (oneDNN, StableHLO).
///   after:  clamp(rne(x / s) + zp)         before:  rne(clamp(f32(f32(x / s) + f32(zp))))
inline std::uint32_t encode_affine(const format& f, float x, float s, std::int64_t zero_point, bool before,
                                   const conversion& c = {}) {
  const float quotient = quotient_of(x, s, c.divide);
  const double zp = static_cast<double>(zero_point);
  if (std::isnan(quotient)) {
    if (c.nan == nan_rule::to_zero) return encode(f, 0);
    if (c.nan == nan_rule::to_max) return overflowed(f, std::signbit(quotient), overflow::saturate);
    return encode(f, zp);
  }
  if (before) {
    const float sum = quotient + static_cast<float>(zero_point);
    return encode(f, static_cast<double>(sum), c.round);
  }
  return encode(f, std::isinf(quotient) ? static_cast<double>(quotient) : rounded_integer(quotient, c.round) + zp);
}

/// Section 11, amax_scale: s = RN(a / L) clamped and rounded into the scale format; codes use the stored scale.
inline quantized amax_scale(const std::vector<float>& x, const block_list& blocks, const format& f,
                            const std::string& scale, const conversion& c) {
  quantized q;
  q.codes.resize(x.size());
  const float limit = static_cast<float>(f.max);
  for (const auto& block : blocks) {
    const std::uint32_t a = detail::amax_bits(x, block, c);
    if (!detail::finite_bits(a)) {
      q.scales.push_back(detail::nan_scale(scale));
      for (std::size_t i : block) q.codes[i] = detail::nan_code(f, c);
      continue;
    }
    const float s =
        a == 0 ? 1.f : std::clamp(float_of(a) / limit, detail::smallest_normal(scale), detail::largest(scale));
    q.scales.push_back(detail::store_scale(scale, s));
    const float used = c.seen == code_scale::stored ? detail::stored_value(scale, q.scales.back()) : s;
    for (std::size_t i : block) q.codes[i] = a == 0 && x[i] == 0 ? 0 : encode_scaled(f, x[i], used, c);
  }
  return q;
}

/// Section 11, min_max: ONNX DynamicQuantizeLinear. A block with a NaN or an infinity has scale NaN, zero point and
/// codes 0.
inline quantized min_max(const std::vector<float>& x, const block_list& blocks, const format& f,
                         const conversion& c = {}) {
  quantized q;
  q.codes.resize(x.size());
  for (const auto& block : blocks) {
    if (!detail::finite_bits(detail::amax_bits(x, block, c))) {
      q.scales.push_back(detail::nan_scale("f32"));
      q.zero_points.push_back(0);
      for (std::size_t i : block) q.codes[i] = 0;
      continue;
    }
    float lo = 0, hi = 0;
    for (std::size_t i : block)
      if (std::isfinite(x[i])) lo = std::min(lo, x[i]), hi = std::max(hi, x[i]);
    const float range = hi - lo, levels = static_cast<float>(f.max - f.min);
    float s = range / levels;
    if (s == 0) s = 1;
    const float quotient = lo / s, origin = static_cast<float>(f.min) - quotient;
    const double zp = std::clamp(rounded_integer(origin, rounding::nearest_even), f.min, f.max);
    q.scales.push_back(bits_of(s));
    q.zero_points.push_back(static_cast<std::int64_t>(zp));
    for (std::size_t i : block) q.codes[i] = encode_affine(f, x[i], s, static_cast<std::int64_t>(zp), false, c);
  }
  return q;
}

enum class mx_rule { floor, even, ceil, rceil };

/// floor(log2(largest value)) and fraction bits of an MX element format: table of section 1.7.
struct mx_element {
  int emax, fraction_bits;
};
inline mx_element mx_facts(const std::string& name) {
  if (name == "e4m3") return {8, 3};
  if (name == "e5m2") return {15, 2};
  if (name == "e3m2") return {4, 2};
  if (name == "e2m3") return {2, 3};
  if (name == "e2m1") return {2, 1};
  if (name == "e1m2") return {0, 2};
  if (name == "mxint8") return {0, 6};
  throw std::invalid_argument(name + " is no MX element format");
}

/// E8M0 code of a block whose largest magnitude has these (finite) bits: sections 2.1 and 2.6. 255 means a NaN block,
/// which only `even` makes of finite numbers; `ceil` stays in the top binade, as `rceil` does (only emax 0 gets there).
inline int mx_scale_code(std::uint32_t amax, const format& f, mx_rule rule) {
  const mx_element facts = mx_facts(f.name);
  const auto exponent = [](std::uint32_t bits) { return static_cast<int>(bits >> 23); };
  const auto mantissa = [](std::uint32_t bits) { return bits & 0x7FFFFFu; };
  switch (rule) {
    case mx_rule::floor:
      return std::max(exponent(amax) - facts.emax, 0);
    case mx_rule::ceil:
      return std::clamp(exponent(amax) + (mantissa(amax) != 0) - facts.emax, 0, 254);
    case mx_rule::even: {
      const std::uint32_t half_step = 1u << (23 - facts.fraction_bits - 1);
      const int e = exponent(amax + half_step);
      return e == 255 ? 255 : std::max(e - facts.emax, 0);
    }
    case mx_rule::rceil:
      break;
  }
  const float inverse = 1.f / static_cast<float>(f.max), s = float_of(amax) * inverse;
  return static_cast<int>(encode(format_named("e8m0"), static_cast<double>(s), rounding::toward_positive));
}

/// CANN's scale algorithm 2 (section 2.5, e2m1 only): the exponent goes up when the mantissa of the bf16 maximum
/// passes 1.5 (range 0 or 6) or 1.75 (range 7). Other ranges: exponent of amax * f32(1 / range), up when that is
/// inexact.
inline int dynamic_range_code(std::uint32_t amax, float range) {
  if (range == 0 || range == 6 || range == 7) {
    const std::uint32_t bf16 = encode(format_named("bf16"), static_cast<double>(float_of(amax)));
    const std::uint32_t moved = (bf16 + (range == 7 ? 0x1Fu : 0x3Fu)) & 0x7F80u;
    return moved < 0x100 ? 0 : static_cast<int>((moved - 0x100) >> 7);
  }
  const float inverse = 1.f / range, s = float_of(amax) * inverse;
  const int exponent = static_cast<int>(bits_of(s) >> 23);
  const bool bump = exponent > 0 && exponent < 254 && (bits_of(s) & 0x7FFFFFu) != 0;
  return exponent + bump;
}

/// MX: a power-of-two scale per block, codes of the f32 quotient x / 2^(code - 127). It is exact unless it underflows
/// f32, far below every element format; then only the directed roundings could tell, and -0 stays -0.
template <class ScaleCode>
quantized mx_by(const std::vector<float>& x, const block_list& blocks, const format& f, ScaleCode scale_code,
                const conversion& c) {
  quantized q;
  q.codes.resize(x.size());
  for (const auto& block : blocks) {
    const std::uint32_t a = detail::amax_bits(x, block, c);
    const int code = detail::finite_bits(a) ? scale_code(a) : 255;
    q.scales.push_back(static_cast<std::uint32_t>(code));
    for (std::size_t i : block)
      q.codes[i] = code == 255
                       ? detail::nan_code(f, c)
                       : detail::convert(f, static_cast<float>(std::ldexp(static_cast<double>(x[i]), 127 - code)), c);
  }
  return q;
}

inline quantized mx(const std::vector<float>& x, const block_list& blocks, const format& f, mx_rule rule,
                    const conversion& c) {
  return mx_by(
      x, blocks, f, [&](std::uint32_t a) { return mx_scale_code(a, f, rule); }, c);
}

/// Section 2.4, torchao, one level: s = e4m3(clamp(a / 6, 2^-6, 448)), codes of x * (1 / s).
/// Two levels: t = a_tensor / (448 * 6), s = e4m3(clamp((a / 6) / t, 2^-6, 448)), codes of x * ((1 / t) / s); t = 1
/// where that is 0. Infinities and NaNs poison their own block, and t leaves them out.
inline quantized nvfp4(const std::vector<float>& x, const block_list& blocks, bool two_levels,
                       const conversion& c = {}) {
  const format &e2m1 = format_named("e2m1"), &e4m3 = format_named("e4m3");
  quantized q;
  q.codes.resize(x.size());
  std::uint32_t largest = 0;
  for (float v : x)
    if (std::isfinite(v)) largest = std::max(largest, detail::magnitude_bits(v));
  if (two_levels && float_of(largest) / 2688.f != 0.f) q.tensor_scale = float_of(largest) / 2688.f;  // 448 * 6
  for (const auto& block : blocks) {
    const std::uint32_t a = detail::amax_bits(x, block, c);
    if (!detail::finite_bits(a)) {
      q.scales.push_back(*e4m3.nan);
      for (std::size_t i : block) q.codes[i] = 0;
      continue;
    }
    float s = float_of(a) / 6.f;
    if (two_levels) s = s / q.tensor_scale;
    q.scales.push_back(encode(e4m3, static_cast<double>(std::clamp(s, 0x1p-6f, 448.f))));
    float inverse = 1.f;
    if (two_levels) inverse = inverse / q.tensor_scale;
    inverse = inverse / static_cast<float>(decode(e4m3, q.scales.back()));
    for (std::size_t i : block) {
      const float scaled = x[i] * inverse;
      q.codes[i] = detail::convert(e2m1, scaled, c);
    }
  }
  return q;
}

/// Section 4, DynamicBlockQuant: s = a / MAX, if finite then at most 1 / min_scale; codes of x / s, all 0 where s is 0.
/// An infinite or NaN maximum stays in the scale; x / s is then 0 or NaN, and `c.nan` says what NaN becomes.
inline quantized bounded_amax(const std::vector<float>& x, const block_list& blocks, const format& f, float min_scale,
                              const conversion& c) {
  quantized q;
  q.codes.resize(x.size());
  for (const auto& block : blocks) {
    float s = float_of(detail::amax_bits(x, block, c)) / static_cast<float>(f.max);
    if (std::isfinite(s)) s = std::min(s, 1.f / min_scale);  // min_scale 0: 1 / 0 = infinity, no bound
    q.scales.push_back(std::isnan(s) ? 0x7FC00000u : bits_of(s));
    for (std::size_t i : block) q.codes[i] = encode_scaled(f, x[i], s, c);
  }
  return q;
}

/// The number a code stands for: one f32 rounding for the scale, one for the tensor's.
inline float dequantized(const format& f, std::uint32_t code, std::int64_t zero_point, float scale,
                         float tensor_scale = 1) {
  const float plain = static_cast<float>(decode(f, code) - static_cast<double>(zero_point));
  const float scaled = plain * scale;
  return scaled * tensor_scale;
}

}  // namespace oracle
