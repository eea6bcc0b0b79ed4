// Single numbers as reductions see them: quantized numbers that know their scale, and what bodies do with them.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <concepts>
#include <functional>
#include <qtensor/core/error.hpp>
#include <qtensor/reference/codec.hpp>

namespace qtensor {

template <quantization_scheme S>
struct number_type;

namespace detail {

/// Schemes whose numbers a code, a scale and a zero point tell.
template <class S>
constexpr bool has_single_numbers() {
  static_assert(!S::has_offset && !S::has_tensor_scale && !random_rounding<typename S::rounding>,
                "qtensor: a quantized number by itself is a code, a scale and a zero point: no offset, no "
                "tensor_scale, no stochastic rounding.");
  return true;
}

/// The integer that a code of an integer format means.
template <format F>
constexpr std::int64_t integer_of(std::uint32_t code) {
  if constexpr (F::is_signed)
    return static_cast<std::int32_t>(code << (32 - F::bits)) >> (32 - F::bits);
  else
    return code & low_bits(F::bits);
}

/// quantize_element for schemes of integers in plain f32 arithmetic, by the CPU's own rounding: the same code, sooner.
template <class S>
inline constexpr bool rounds_plainly =
    S::code_format::is_integer&& std::is_same_v<typename S::rounding, nearest_even>&&
        std::is_same_v<typename S::division, exact_division>&& std::is_same_v<typename S::division_type, f32> &&
    (std::is_same_v<typename S::nan, nan_propagates> || std::is_same_v<typename S::nan, nan_to_zero> ||
     std::is_same_v<typename S::nan, nan_to_zero_point>);

/// The largest code of a scheme of integers, which a float may not hold.
template <class S>
inline constexpr std::int64_t highest_code = S::codes.high == static_cast<float>(S::code_format::max)
                                                 ? static_cast<std::int64_t>(S::code_format::max)
                                                 : static_cast<std::int64_t>(S::codes.high);

template <class S>
inline std::uint32_t round_plainly(float x, float scale, std::int32_t zero_point) {
  using code = typename S::code_format;
  constexpr std::int64_t low = static_cast<std::int64_t>(S::codes.low), high = highest_code<S>;
  constexpr bool before = S::has_zero_point && std::is_same_v<typename S::zero_point_order, zp_before_round>;
  if (scale == 0.f) return 0;  // the code of a block of zeros
  float q = rounded(x / scale);
  if constexpr (before) q = q + static_cast<float>(zero_point);
  std::int64_t v;
  if (q != q) {
    v = std::is_same_v<typename S::nan, nan_to_zero> ? 0 : zero_point;
  } else {
    // Beyond 2^33 in magnitude every code saturates, whatever its zero point.
    q = q < -0x1p33f ? -0x1p33f : q > 0x1p33f ? 0x1p33f : q;
    v = static_cast<std::int64_t>(std::nearbyint(q)) + (before ? 0 : zero_point);
  }
  return static_cast<std::uint32_t>(v < low ? low : v > high ? high : v) & low_bits(code::bits);
}

}  // namespace detail

/// One quantized number: the code with what gives it its value. What regions of reductions take and return.
template <quantization_scheme S>
struct quantized_number {
  static_assert(detail::has_single_numbers<S>());
  using scheme_type = S;
  std::uint32_t code = 0;
  float scale = 1.f;
  std::int32_t zero_point = 0;

  /// (code - zero point) * scale, rounded to f32: dequantize_element.
  constexpr float real() const {
    if constexpr (S::code_format::is_integer)
      return rounded(
          static_cast<float>(detail::integer_of<typename S::code_format>(code) - (S::has_zero_point ? zero_point : 0)) *
          scale);
    else
      return dequantize_element<S>(code, {scale});
  }
  /// The code as a number, for integer formats.
  constexpr std::int64_t integer() const { return detail::integer_of<typename S::code_format>(code); }
  constexpr number_type<S> type() const { return {scale, zero_point}; }
  constexpr bool operator==(const quantized_number&) const = default;
};

namespace detail {

template <class T>
inline constexpr bool is_quantized_number = false;
template <class S>
inline constexpr bool is_quantized_number<quantized_number<S>> = true;

}  // namespace detail

template <class T>
concept quantized_number_type = detail::is_quantized_number<std::remove_cvref_t<T>>;

/// A number of bf16 or f16, as memory holds it: reads as a float, is made from one by rounding to nearest even.
template <format F>
struct real {
  using format_type = F;
  storage_t<F> code = 0;

  constexpr real() = default;
  constexpr explicit real(float x) : code(static_cast<storage_t<F>>(encode<F, to_special>(x))) {}
  static constexpr real of_code(storage_t<F> code) {
    real r;
    r.code = code;
    return r;
  }
  constexpr operator float() const { return decode<F>(code); }
  constexpr bool operator==(const real&) const = default;
};

namespace detail {

template <class T>
inline constexpr bool is_real = false;
template <class F>
inline constexpr bool is_real<real<F>> = true;

/// Any number as an f32.
template <class T>
constexpr float to_f32(const T& x) {
  if constexpr (quantized_number_type<T>)
    return x.real();
  else
    return static_cast<float>(x);
}

}  // namespace detail

/// The element type of quantized numbers: a scheme, a scale and a zero point. Called with a number of any type it gives
/// the number of this type: `to_destination_type` of the approved RFC (NUMERICS 7.4), quantize(dequantize(x)).
template <quantization_scheme S>
struct number_type {
  static_assert(detail::has_single_numbers<S>());
  using scheme_type = S;
  using value_type = quantized_number<S>;
  float scale = 1.f;
  std::int32_t zero_point = 0;

  template <class T>
  constexpr quantized_number<S> operator()(const T& x) const {
    const float r = detail::to_f32(x);
    if constexpr (detail::rounds_plainly<S>)
      if (!std::is_constant_evaluated()) return {detail::round_plainly<S>(r, scale, zero_point), scale, zero_point};
    return {quantize_element<S>(r, {scale}, zero_point), scale, zero_point};
  }
  /// A code with this type.
  constexpr quantized_number<S> of_code(std::uint32_t code) const { return {code, scale, zero_point}; }
  constexpr bool operator==(const number_type&) const = default;
};

/// The conversion to a quantized type, for input_conversion and output_conversion. The scale is rounded to the scheme's
/// scale format. Throws unless it is finite and positive, before and after, and the zero point a code.
template <quantization_scheme S>
constexpr number_type<S> requantize_to(float scale, std::int64_t zero_point = 0) {
  require(is_finite(scale) && scale > 0.f, "requantize_to is given the scale ", scale,
          "; a scale must be finite and positive.");
  if constexpr (S::has_zero_point)
    require(zero_point >= static_cast<std::int64_t>(S::codes.low) && zero_point <= detail::highest_code<S>,
            "requantize_to is given the zero point ", zero_point, "; it must be a code, ",
            static_cast<std::int64_t>(S::codes.low), " to ", detail::highest_code<S>, ".");
  else
    require(zero_point == 0, "requantize_to is given the zero point ", zero_point, " for a symmetric scheme.");
  const float kept = decode<typename S::scale_format>(encode<typename S::scale_format>(scale));
  require(is_finite(kept) && kept > 0.f, "requantize_to is given the scale ", scale, ", which ",
          std::string_view(S::scale_format::name), " stores as ", kept,
          "; a stored scale must be finite and positive.");
  return {kept, static_cast<std::int32_t>(zero_point)};
}

/// The conversion to f32 (as float), bf16 or f16 (as real<F>): dequantize where the number is quantized.
template <format F>
requires(std::same_as<F, f32> || std::same_as<F, bf16> || std::same_as<F, f16>) struct convert_to {
  using value_type = std::conditional_t<std::same_as<F, f32>, float, real<F>>;
  template <class T>
  constexpr value_type operator()(const T& x) const {
    return value_type(detail::to_f32(x));
  }
  constexpr bool operator==(const convert_to&) const = default;
};

// ---- bodies --------------------------------------------------------------------------------------------------------

namespace detail {

struct add_rule {
  template <std::floating_point T>
  static constexpr T real(T a, T b) {
    return a + b;
  }
  template <std::integral T>
  static constexpr T integer(T a, T b) {
    using word = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<word>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b)));
  }
  static constexpr bool boolean(bool a, bool b) { return a || b; }
};
struct multiply_rule {
  template <std::floating_point T>
  static constexpr T real(T a, T b) {
    return rounded(a * b);
  }
  template <std::integral T>
  static constexpr T integer(T a, T b) {
    using word = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<word>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b)));
  }
  static constexpr bool boolean(bool a, bool b) { return a && b; }
};
template <std::floating_point T>
using word_of = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

/// Of two numbers that were compared both ways, the larger or smaller one: x and y differ where a or b is a NaN, which
/// it is then, and where they are zeros of both signs, of which it is the one with the bits `of_zeros`.
template <std::floating_point T, class Zeros>
constexpr T extreme(T a, T b, T x, T y, const Zeros& of_zeros) {
  const auto p = std::bit_cast<word_of<T>>(x), q = std::bit_cast<word_of<T>>(y);
  if (p != q) [[unlikely]]
    return a != a ? a : b != b ? b : std::bit_cast<T>(of_zeros(p, q));
  return x;
}

/// IEEE 754 maximum: a NaN where there is one, +0 above -0. Each comparison is one instruction, where data cannot
/// mislead a branch.
struct max_rule {
  template <std::floating_point T>
  static constexpr T real(T a, T b) {
    return extreme(a, b, a > b ? a : b, b > a ? b : a, std::bit_and{});
  }
  template <std::integral T>
  static constexpr T integer(T a, T b) {
    return a > b ? a : b;
  }
  static constexpr bool boolean(bool a, bool b) { return a || b; }
};
struct min_rule {
  template <std::floating_point T>
  static constexpr T real(T a, T b) {
    return extreme(a, b, a < b ? a : b, b < a ? b : a, std::bit_or{});
  }
  template <std::integral T>
  static constexpr T integer(T a, T b) {
    return a < b ? a : b;
  }
  static constexpr bool boolean(bool a, bool b) { return a && b; }
};

}  // namespace detail

/// A body of two numbers of one type that gives a third of that type. Quantized numbers: dequantize both, operate in
/// f32, quantize (NUMERICS 7.4). bf16 and f16: operate in f32, round. Integers wrap modulo 2^bits. Booleans: add and
/// max are or, multiply and min are and.
template <class Rule>
struct body_of {
  using rule = Rule;
  template <class A, class B>
  constexpr A operator()(const A& a, const B& b) const {
    static_assert(std::same_as<A, B>,
                  "qtensor: a body's two numbers have one type; convert one of them: requantize_to<S>(scale, zero "
                  "point), convert_to<f32>{}.");
    if constexpr (quantized_number_type<A>) {
      QTENSOR_ASSERT(a.type() == b.type(), "a body's two quantized numbers have one scale and one zero point");
      return a.type()(Rule::real(a.real(), b.real()));
    } else if constexpr (detail::is_real<A>) {
      return A(Rule::real(static_cast<float>(a), static_cast<float>(b)));
    } else if constexpr (std::floating_point<A>) {
      return Rule::real(a, b);
    } else if constexpr (std::same_as<A, bool>) {
      return Rule::boolean(a, b);
    } else {
      return Rule::integer(a, b);
    }
  }
};

using add_body = body_of<detail::add_rule>;
using multiply_body = body_of<detail::multiply_rule>;
using max_body = body_of<detail::max_rule>;
using min_body = body_of<detail::min_rule>;

/// The bodies by name: reduce(x, init, dimensions(0), add).
inline constexpr add_body add{};
inline constexpr multiply_body multiply{};
inline constexpr max_body max{};
inline constexpr min_body min{};

}  // namespace qtensor
