// One element, every format and every policy: the law that kernels are tested against. constexpr, no math library.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/core/rounded.hpp>
#include <qtensor/format/table.hpp>
#include <qtensor/scheme/scheme.hpp>

namespace qtensor {

namespace detail {

/// A magnitude between two neighbours of a grid: the lower one's rank (grid points counted from zero), and how far
/// above it the magnitude lies, as `discarded` / 2^width of the gap. `sticky`: a little more than that.
struct grid_position {
  std::uint64_t rank = 0;
  std::uint32_t discarded = 0;
  int width = 1;
  bool sticky = false;

  constexpr remainder rest() const {
    const std::uint64_t half = std::uint64_t{1} << (width - 1);
    if (discarded == 0) return sticky ? remainder::below_half : remainder::zero;
    if (discarded < half) return remainder::below_half;
    return discarded > half || sticky ? remainder::above_half : remainder::half;
  }
};

/// |x| = significand * 2^(exponent - 150), exponent at least 1 (the field of a float, subnormals as field 1).
struct float_parts {
  std::uint32_t significand;
  int exponent;
  constexpr explicit float_parts(float x) {
    const std::uint32_t field = (bits_of(x) & magnitude_bits) >> 23;
    significand = (bits_of(x) & low_bits(23)) | (field != 0 ? 1u << 23 : 0u);
    exponent = field != 0 ? static_cast<int>(field) : 1;
  }
};

/// significand / 2^width as a grid position. A negative width shifts up; ranks stop at 2^62, far beyond every format.
constexpr grid_position split(std::uint32_t significand, int width) {
  if (width <= 0)
    return {width < -38 ? std::uint64_t{significand != 0} << 62 : std::uint64_t{significand} << -width, 0, 1, false};
  if (width <= 32) return {std::uint64_t{significand} >> width, significand & low_bits(width), width, false};
  const int lost = width - 32 < 31 ? width - 32 : 31;  // everything lies below the last digit of the lower half
  return {0, significand >> lost, 32, (significand & low_bits(lost)) != 0};
}

/// The two neighbours of finite x on the grid of F. Ranks count away from zero on x's side.
template <format F>
constexpr grid_position locate(float x) {
  const float_parts x_parts(x);
  if constexpr (F::is_integer) {
    return split(x_parts.significand, 150 - x_parts.exponent);
  } else if constexpr (requires { F::fraction_bits; }) {
    return split(x_parts.significand, 150 - x_parts.exponent - F::fraction_bits);
  } else if constexpr (minifloat_format<F>) {
    // The binade's ulp; below the smallest normal (field 128 - bias) the grid keeps its spacing.
    constexpr int smallest = 128 - F::bias;
    const int binade = x_parts.exponent > smallest ? x_parts.exponent : smallest;
    grid_position at = split(x_parts.significand, 23 - F::mantissa_bits + binade - x_parts.exponent);
    at.rank += static_cast<std::uint64_t>(binade - smallest) << F::mantissa_bits;
    return at;
  } else if constexpr (std::is_same_v<F, e8m0>) {
    // Rank is the code: the exponent field, except that field 0 holds only 2^-127 and above.
    const std::uint32_t bits = bits_of(x) & magnitude_bits;
    if (bits >= 0x00800000u) return {bits >> 23, bits & low_bits(23), 23, false};
    return {0, bits > 0x00400000u ? bits - 0x00400000u : 0u, 22, false};
  } else {
    // A table: rank i is the i-th value on x's side of the list, counted from the far end of the other side.
    constexpr auto& list = sorted<F>;
    const bool negative = is_negative(x);
    const auto value = [&](int rank) { return negative ? -list.value(list.count - 1 - rank) : list.value(rank); };
    const float m = magnitude(x);
    int rank = 0;
    while (rank + 1 < list.count && value(rank + 1) <= m) ++rank;
    const float low = value(rank);
    float high = 0.f;
    if (rank + 1 < list.count)
      high = value(rank + 1);
    else if constexpr (requires { F::next_above_max; })
      high = F::next_above_max;
    else
      return m > low ? grid_position{static_cast<std::uint64_t>(list.count), 0, 1, false}
                     : grid_position{static_cast<std::uint64_t>(rank), 0, 1, false};
    if (m <= low) return {static_cast<std::uint64_t>(rank), 0, 1, false};
    if (m >= high) return {static_cast<std::uint64_t>(rank + 1), 0, 1, false};
    // The fraction in double, then its side of the middle exactly: 2m against low + high, both exact but for the
    // rounding error of the sum, which is known exactly as well.
    const double part =
        (static_cast<double>(m) - static_cast<double>(low)) / (static_cast<double>(high) - static_cast<double>(low));
    const double sum = static_cast<double>(low) + static_cast<double>(high);
    const double lost = static_cast<double>(low) - (sum - static_cast<double>(high));
    const double above = (2.0 * static_cast<double>(m) - sum) - lost;
    std::uint32_t discarded = static_cast<std::uint32_t>(part * 4294967295.0);
    constexpr std::uint32_t half = 0x80000000u;
    if (above == 0.0)
      discarded = half;
    else if (above > 0.0)
      discarded = discarded > half ? discarded : half + 1;
    else
      discarded = discarded < half ? (discarded > 0 ? discarded : 1u) : half - 1;
    return {static_cast<std::uint64_t>(rank), discarded, 32, false};
  }
}

/// Rank of the last finite value on a side of zero.
template <format F>
constexpr std::uint64_t last_rank(bool negative) {
  if constexpr (F::is_integer || requires { F::fraction_bits; }) {
    const double unit = [] {
      if constexpr (requires { F::fraction_bits; })
        return 1.0 / exp2i(-F::fraction_bits);
      else
        return 1.0;
    }();
    return static_cast<std::uint64_t>((negative ? -static_cast<double>(F::min) : static_cast<double>(F::max)) * unit);
  } else if constexpr (minifloat_format<F> || std::is_same_v<F, e8m0>) {
    return F::max_code;
  } else {
    return static_cast<std::uint64_t>(sorted<F>.count - 1);
  }
}

/// The code of a rank, which is at most last_rank.
template <format F>
constexpr std::uint32_t code_of_rank(std::uint64_t rank, bool negative) {
  const std::uint32_t low = static_cast<std::uint32_t>(rank);
  if constexpr (F::is_integer || requires { F::fraction_bits; }) {
    return (negative ? 0u - low : low) & low_bits(F::bits);
  } else if constexpr (minifloat_format<F>) {
    const bool unsigned_zero = F::special_values == specials::nan_is_negative_zero && low == 0;
    return negative && !unsigned_zero ? low | F::sign_mask : low;
  } else if constexpr (std::is_same_v<F, e8m0>) {
    return low;
  } else {
    return sorted<F>.code[negative ? static_cast<std::size_t>(sorted<F>.count - 1) - low : low];
  }
}

/// What overflow gives when it does not saturate: infinity, else NaN, else the largest value after all.
template <format F>
constexpr std::uint32_t special_code(bool negative) {
  if constexpr (minifloat_format<F>) {
    const std::uint32_t sign = negative ? F::sign_mask : 0u;
    if (F::has_infinity) return F::infinity_code | sign;
    if (F::special_values == specials::nan_is_negative_zero) return F::nan_code;
    if (F::has_nan) return F::nan_code | sign;
  } else if constexpr (std::is_same_v<F, e8m0>) {
    return F::nan_code;
  } else if constexpr (F::bits <= 8 && !F::is_integer) {
    if (constexpr auto code = find_infinity<F>(false); code && find_infinity<F>(true))
      return negative ? *find_infinity<F>(true) : *code;
    if (constexpr auto code = find_nan<F>(); code) return *code;
  }
  return code_of_rank<F>(last_rank<F>(negative), negative);
}

template <format F>
constexpr bool format_has_nan() {
  if constexpr (minifloat_format<F>)
    return F::has_nan;
  else if constexpr (F::is_integer || requires { F::fraction_bits; })
    return false;
  else if constexpr (F::bits <= 8)
    return find_nan<F>().has_value();
  else
    return true;
}

/// The format's NaN with the sign of x where it can have one (wide formats keep the payload's upper bits, quiet).
template <format F>
requires(format_has_nan<F>()) constexpr std::uint32_t nan_code(float x) {
  if constexpr (minifloat_format<F>) {
    if (F::special_values == specials::nan_is_negative_zero) return F::nan_code;
    std::uint32_t code = F::nan_code | (is_negative(x) ? F::sign_mask : 0u);
    if constexpr (requires { F::keeps_nan_payload; }) code |= (bits_of(x) & low_bits(23)) >> (23 - F::mantissa_bits);
    return code;
  } else if constexpr (std::is_same_v<F, f32>) {
    return bits_of(quieted(x));
  } else {
    return *find_nan<F>();
  }
}

template <class Rounding>
constexpr bool rounds_up(const grid_position& at, bool negative, bool odd, std::uint32_t random_word) {
  if constexpr (random_rounding<Rounding>)
    return Rounding::up(at.discarded, at.width, random_word);
  else
    return Rounding::up(negative, odd, at.rest());
}

/// Whether the lower neighbour is odd, for ties to even: the lowest bit of its code, which for grids with a formula is
/// that of its rank.
template <format F>
constexpr bool is_odd(const grid_position& at, bool negative) {
  if constexpr (F::is_integer || minifloat_format<F> || std::is_same_v<F, e8m0> || requires { F::fraction_bits; }) {
    return (at.rank & 1) != 0;
  } else {
    const std::uint64_t last = last_rank<F>(negative);
    return (code_of_rank<F>(at.rank < last ? at.rank : last, negative) & 1) != 0;
  }
}

/// The policy among P... that fills Slot, or the default for format F.
template <class Slot, class F, class... P>
using chosen = policy_of<Slot, F, P...>;

}  // namespace detail

/// The code of x in format F. Policies in any order: a rounding (default nearest_even; nearest_away for hif8), an
/// overflow policy (default `saturate`) and a NaN policy (default `nan_propagates`). Overflow is judged after rounding;
/// -0 keeps its sign where the format has a -0. `random_word` feeds stochastic roundings only.
///   encode<e4m3>(0.3f) == 0x2A        encode<e4m3, to_special>(465.f) == 0x7F
template <format F, policy... P>
constexpr std::uint32_t encode(float x, std::uint32_t random_word = 0) {
  using rounding = detail::chosen<slot::rounding, F, P...>;
  using overflow = detail::chosen<slot::overflow, F, P...>;
  using nan = detail::chosen<slot::nan, F, P...>;
  static_assert(detail::policies_complete<F, P...>);
  if constexpr (requires { rounding::template before<F>(x); }) x = rounding::template before<F>(x);
  if constexpr (requires { rounding::template before<F>(x, random_word); })
    x = rounding::template before<F>(x, random_word);
  if constexpr (requires { typename rounding::intermediate; })
    x = decode<typename rounding::intermediate>(encode<typename rounding::intermediate, nearest_even, to_special>(x));
  // e8m0 has no sign: magnitudes are rounded, and infinity is NaN even when saturating (NUMERICS 1.7; ONNX's up and
  // down).
  if constexpr (std::is_same_v<F, e8m0>) {
    x = magnitude(x);
    if (x == infinity) return F::nan_code;
  }

  const bool negative = is_negative(x);
  if (is_nan(x)) {
    if constexpr (std::is_same_v<nan, nan_propagates> && detail::format_has_nan<F>())
      return detail::nan_code<F>(x);
    else if constexpr (std::is_same_v<nan, nan_to_max>)
      return detail::code_of_rank<F>(detail::last_rank<F>(negative), negative);
    else if constexpr (std::is_same_v<nan, nan_to_lowest>)
      return detail::code_of_rank<F>(F::is_signed ? detail::last_rank<F>(true) : 0, F::is_signed);
    else if constexpr (std::is_same_v<nan, nan_to_opposite_zero>)
      return encode<F>(negative ? 0.f : -0.f);
    else
      return encode<F>(0.f);
  }
  if constexpr (std::is_same_v<F, f32>)
    return bits_of(x);
  else {
    constexpr bool saturates = std::is_same_v<overflow, saturate>;
    const std::uint64_t last = detail::last_rank<F>(negative);
    std::uint64_t rank = last + 1;
    if (is_finite(x)) {
      const detail::grid_position at = detail::locate<F>(x);
      rank =
          at.rank + (detail::rounds_up<rounding>(at, negative, detail::is_odd<F>(at, negative), random_word) ? 1 : 0);
    }
    if (rank <= last) return detail::code_of_rank<F>(rank, negative);
    return saturates ? detail::code_of_rank<F>(last, negative) : detail::special_code<F>(negative);
  }
}

/// x rounded to an integer by a rounding policy; NaN gives 0, magnitudes stop at 2^62.
template <rounding_policy Rounding>
constexpr std::int64_t round_to_integer(float x, std::uint32_t random_word = 0) {
  if (is_nan(x)) return 0;
  const bool negative = is_negative(x);
  std::uint64_t size = std::uint64_t{1} << 62;
  if (is_finite(x)) {
    const detail::grid_position at = detail::locate<int32>(x);
    size = at.rank + (detail::rounds_up<Rounding>(at, negative, (at.rank & 1) != 0, random_word) ? 1 : 0);
  }
  if (size > std::uint64_t{1} << 62) size = std::uint64_t{1} << 62;
  return negative ? -static_cast<std::int64_t>(size) : static_cast<std::int64_t>(size);
}

/// What scales one element: its block's scale as a number, and the tensor's (1 where there is one level).
struct element_scale {
  float scale;
  float tensor_scale = 1.f;
};

/// x over its scale, by the scheme's division policy, every step rounded to f32 (then to its division type). A NaN that
/// is none of the operands' (0 times the inverse of a scale below 2^-128) is negative.
template <quantization_scheme S>
constexpr float quotient(float x, element_scale s) {
  float q;
  if constexpr (std::is_same_v<typename S::division, reciprocal>) {
    const float inverse = S::has_tensor_scale ? rounded(1.f / s.tensor_scale) / s.scale : 1.f / s.scale;
    q = rounded(x * rounded(inverse));
  } else if constexpr (std::is_same_v<typename S::division, rule_multiplier>) {
    q = rounded(x * s.scale);  // the rule's multiplier stands for the scale
  } else if constexpr (detail::own_division<typename S::division>) {
    q = S::division::quotient(x, s.scale, s.tensor_scale);
  } else {
    q = x / (S::has_tensor_scale ? rounded(s.scale * s.tensor_scale) : s.scale);
  }
  q = with_invalid_negative(q, !is_nan(x) && !is_nan(s.scale) && !is_nan(s.tensor_scale));
  using type = typename S::division_type;
  if constexpr (!std::is_same_v<type, f32>) q = decode<type>(encode<type, nearest_even, to_special>(q));
  return q;
}

/// The code of x under a scale, a zero point and an offset (NUMERICS 0.1, 5.1, 8.3, 11). A scale of 0 belongs to a
/// block of zeros, or of equal numbers where there is an offset: code +0.
template <quantization_scheme S>
constexpr std::uint32_t quantize_element(float x, element_scale s, std::int64_t zero_point = 0,
                                         std::uint32_t random_word = 0, float offset = 0.f) {
  using code = typename S::code_format;
  using rounding = typename S::rounding;
  if (s.scale == 0.f && !detail::own_division<typename S::division>) return encode<code>(0.f);
  if constexpr (S::has_offset) x = rounded(x - offset);
  float q = quotient<S>(x, s);
  if constexpr (!code::is_integer) {
    return encode<code, rounding, typename S::overflow, typename S::nan>(q, random_word);
  } else {
    constexpr std::int64_t low = static_cast<std::int64_t>(S::codes.low);
    constexpr std::int64_t high = code::bits > 24 && S::codes.high == static_cast<float>(code::max)
                                      ? static_cast<std::int64_t>(code::max)
                                      : static_cast<std::int64_t>(S::codes.high);
    const auto clamped = [](std::int64_t v) {
      return static_cast<std::uint32_t>(v < low ? low : v > high ? high : v) & low_bits(code::bits);
    };
    if constexpr (requires { rounding::template before<code>(q); }) q = rounding::template before<code>(q);
    if (is_nan(q)) {
      if constexpr (std::is_same_v<typename S::nan, nan_to_zero>)
        return clamped(0);
      else if constexpr (std::is_same_v<typename S::nan, nan_to_max>)
        return clamped(is_negative(q) ? low : high);
      else if constexpr (std::is_same_v<typename S::nan, nan_to_lowest>)
        return clamped(low);
      else
        return clamped(zero_point);
    }
    if constexpr (requires { typename rounding::intermediate; })
      q = decode<typename rounding::intermediate>(encode<typename rounding::intermediate, nearest_even, to_special>(q));
    if constexpr (S::has_zero_point && std::is_same_v<typename S::zero_point_order, zp_before_round>) {
      q = rounded(q) + static_cast<float>(zero_point);
      const float bottom = static_cast<float>(low), top = static_cast<float>(high);
      return clamped(round_to_integer<rounding>(q < bottom ? bottom : q > top ? top : q, random_word));
    } else {
      return clamped(round_to_integer<rounding>(q, random_word) + zero_point);
    }
  }
}

/// (code - zero point) * scale, then * tensor scale or + offset: one f32 rounding a step (NUMERICS 8.1, 2.4, 8.3).
template <quantization_scheme S>
constexpr float dequantize_element(std::uint32_t code, element_scale s, std::int64_t zero_point = 0,
                                   float offset = 0.f) {
  float value;
  if constexpr (S::has_zero_point)
    value = static_cast<float>(static_cast<std::int64_t>(S::code_format::decode(code)) - zero_point);
  else
    value = decode<typename S::code_format>(code);
  value = rounded(value * s.scale);
  if constexpr (S::has_tensor_scale) value = rounded(value * s.tensor_scale);
  if constexpr (S::has_offset) value = rounded(value + offset);
  return value;
}

}  // namespace qtensor
