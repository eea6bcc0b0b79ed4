// Random types and tensors of StableHLO, and its arithmetic as NUMERICS 7.2 has it, for the programs over it.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <qtensor/compat/stablehlo_elementwise.hpp>

#include "array.hpp"

namespace fuzz {

namespace shlo = qtensor::compat::stablehlo;
using shlo::basic_type;
using shlo::element_type;
using shlo::quantized_type;
using whole = shlo::wide_integer;
using list = std::vector<index_t>;

// ---- arithmetic ----------------------------------------------------------------------------------------------------

inline int digits_of(basic_type type) {
  return type == basic_type::f64 ? 53 : type == basic_type::f32 ? 24 : type == basic_type::f16 ? 11 : 8;
}
/// x rounded to a float type: to the nearest multiple of the step there, or to infinity.
inline double nearest(basic_type type, double x) {
  if (type == basic_type::f64 || !std::isfinite(x) || x == 0.0) return x;
  if (type == basic_type::f32) return static_cast<double>(static_cast<float>(x));
  const int last = type == basic_type::f16 ? -24 : -133;
  int exponent = 0;
  std::frexp(x, &exponent);
  const int step = std::max(exponent - digits_of(type), last);
  const double y = std::ldexp(std::nearbyint(std::ldexp(x, -step)), step);
  return std::fabs(y) < std::ldexp(1.0, type == basic_type::f16 ? 16 : 128) ? y : std::copysign(INFINITY, y);
}
inline double nearest_to_whole(basic_type type, whole v) {
  const whole m = v < 0 ? -v : v;
  int shift = 0;
  while (m >> shift >> digits_of(type) != 0) ++shift;
  whole kept = m >> shift;
  const whole twice = (m - (kept << shift)) * 2, unit = whole{1} << shift;
  if (twice > unit || (twice == unit && kept % 2 != 0)) ++kept;
  return nearest(type, std::ldexp(static_cast<double>(v < 0 ? -kept : kept), shift));
}

inline double dequantized(const quantized_type& q, whole code, index_t channel) {
  const auto c = static_cast<std::size_t>(channel);
  const volatile double value = nearest_to_whole(q.expressed(), code - q.zero_points()[c]) * q.scales()[c];
  return nearest(q.expressed(), value);
}
inline whole quantized(const quantized_type& q, double x, index_t channel) {
  const auto c = static_cast<std::size_t>(channel);
  const auto as_expressed = [&](whole v) { return nearest_to_whole(q.expressed(), v); };
  const double quotient = nearest(q.expressed(), x / q.scales()[c]);
  const double sum = nearest(q.expressed(), quotient + as_expressed(q.zero_points()[c]));
  if (std::isnan(sum)) return std::clamp<whole>(0, q.storage_min(), q.storage_max());
  const double code = std::nearbyint(std::clamp(sum, as_expressed(q.storage_min()), as_expressed(q.storage_max())));
  return std::isinf(code) ? (code < 0 ? q.storage_min() : q.storage_max())
                          : std::clamp(static_cast<whole>(code), q.storage_min(), q.storage_max());
}

/// What a number of a type is computed as: itself, or dequantized.
inline shlo::scalar value_of(const element_type& type, const shlo::scalar& x, index_t channel) {
  return type.is_quantized() ? shlo::scalar{dequantized(type.quantized(), x.integer, channel), 0} : x;
}
inline shlo::scalar value_at(const shlo::tensor& t, index_t i) { return value_of(t.type(), t.at(i), t.channel(i)); }
/// What was computed as a number of a type.
inline shlo::scalar stored_as(const element_type& type, const shlo::scalar& x, index_t channel) {
  return type.is_quantized() ? shlo::scalar{0.0, quantized(type.quantized(), x.real, channel)} : x;
}

inline bool same(const shlo::scalar& a, const shlo::scalar& b) {
  const bool reals =
      std::isnan(a.real) ? std::isnan(b.real) : a.real == b.real && std::signbit(a.real) == std::signbit(b.real);
  return reals && a.integer == b.integer;
}
// ---- shapes --------------------------------------------------------------------------------------------------------

inline index_t count_of(const list& extents) {
  index_t all = 1;
  for (const index_t e : extents) all *= e;
  return all;
}
inline list index_of(index_t i, const list& extents) {
  list at(extents.size());
  for (std::size_t k = at.size(); k-- > 0; i /= extents[k]) at[k] = i % extents[k];
  return at;
}
/// Where an element lies in row-major order.
inline index_t place_of(const list& index, const list& extents) {
  index_t place = 0;
  for (std::size_t k = 0; k < extents.size(); ++k) place = place * extents[k] + index[k];
  return place;
}

/// For messages.
inline std::string text_of(const shlo::scalar& x) {
  return shlo::detail::digits(x.integer) + " " + shlo::detail::decimals(x.real);
}

// ---- draws ---------------------------------------------------------------------------------------------------------

inline basic_type integer_type(dice& d) {
  return static_cast<basic_type>(
      d.within(static_cast<index_t>(basic_type::i2), static_cast<index_t>(basic_type::ui64)));
}
inline basic_type float_type(dice& d) {
  return d.one_of(basic_type::f32, basic_type::f32, basic_type::f16, basic_type::bf16, basic_type::f64);
}
/// Of [low, high]; often an end of it.
inline whole whole_within(dice& d, whole low, whole high) {
  if (d.chance(4)) return d.chance(2) ? low : high;
  const whole bits = (static_cast<whole>(d.bits()) << 32 | d.bits()) % (high - low + 1);
  return d.chance(2) ? low + bits : std::clamp<whole>(d.within(-9, 9), low, high);
}
/// Finite and positive in a float type: near 1, anywhere or nearly 0.
inline double scale_in(dice& d, basic_type type) {
  const int reach = type == basic_type::f16 ? 24 : type == basic_type::f64 ? 1060 : 149;
  const index_t exponent = d.chance(8) ? d.within(-reach, reach - 20) : d.chance(8) ? 1 - reach : d.within(-6, 3);
  const double mantissa = d.chance(3) ? 1.0 : 1.0 + static_cast<double>(d.bits()) * 0x1p-32;
  const double scale = std::ldexp(mantissa, static_cast<int>(exponent)), rounded = nearest(type, scale);
  return rounded > 0.0 && std::isfinite(rounded) ? scale : 1.0;
}
/// A type for tensors of a shape: along an axis (none if it is negative), often with a narrow range; all zero points 0
/// where it is `symmetric`.
inline quantized_type quantized_type_of(dice& d, basic_type storage, basic_type expressed, const list& shape,
                                        index_t axis, bool symmetric = false) {
  whole low = shlo::min_value(storage), high = shlo::max_value(storage);
  const bool narrow = d.chance(3);
  if (narrow) {
    const whole one = whole_within(d, low, high), other = whole_within(d, low, high);
    if (one != other) low = std::min(one, other), high = std::max(one, other);
  }
  std::vector<double> scales;
  std::vector<whole> zeros;
  const bool none = symmetric || d.chance(4);
  if (symmetric) low = std::min<whole>(low, 0), high = std::max<whole>(high, 0);
  for (index_t c = 0; c < (axis < 0 ? 1 : shape[static_cast<std::size_t>(axis)]); ++c) {
    scales.push_back(scale_in(d, expressed));
    zeros.push_back(none ? std::clamp<whole>(0, low, high) : whole_within(d, low, high));
  }
  const auto type = axis < 0 ? quantized_type::per_tensor(storage, expressed, scales[0], zeros[0])
                             : quantized_type::per_axis(storage, expressed, static_cast<int>(axis), scales, zeros);
  return type.in_range(low, high);
}
/// A float of a type: any bits, special ones, simple ones, or beside a half of a step of `steps`.
inline double real_in(dice& d, basic_type type, const quantized_type* steps, index_t channel) {
  const index_t kind = d.within(0, 9);
  if (steps != nullptr && kind < 6) {
    const auto c = static_cast<std::size_t>(channel);
    const whole code = whole_within(d, steps->storage_min(), steps->storage_max());
    const double halves =
        static_cast<double>(code - steps->zero_points()[c]) + .5 * static_cast<double>(d.within(-3, 3));
    return nearest(type, halves * steps->scales()[c]);
  }
  if (kind == 6) {
    const double specials[] = {0.0, -0.0, NAN, INFINITY, -INFINITY, 1.0, -1.0, 0x1p31, -0x1p31, 0x1p63, 0x1p64, 1e30};
    return nearest(type, specials[d.within(0, static_cast<index_t>(std::size(specials)) - 1)]);
  }
  if (kind == 7) return nearest(type, std::bit_cast<double>(std::uint64_t{d.bits()} << 32 | d.bits()));
  if (kind == 8) return nearest(type, static_cast<double>(qtensor::float_of(d.bits())));
  return nearest(type, std::ldexp(static_cast<double>(d.within(-4096, 4096)), static_cast<int>(d.within(-12, 2))));
}
/// A tensor of any type; `steps`, a type of such tensors, says which floats are hard.
inline shlo::tensor random_tensor(dice& d, const element_type& type, const list& shape,
                                  const quantized_type* steps = nullptr) {
  shlo::tensor t(type, shape);
  const shlo::tensor codes(steps != nullptr ? element_type(*steps) : type, shape);
  for (index_t i = 0; i < t.size(); ++i) {
    if (type.is_quantized())
      t.set(i, {0.0, whole_within(d, type.quantized().storage_min(), type.quantized().storage_max())});
    else if (shlo::is_float(type.stored()))
      t.set(i, {real_in(d, type.stored(), steps, codes.channel(i)), 0});
    else
      t.set(i, {0.0, whole_within(d, shlo::min_value(type.stored()), shlo::max_value(type.stored()))});
  }
  return t;
}
/// Extents of a tensor of at most `most` elements; seldom of none, or a single one without axes.
inline list random_shape(dice& d, index_t most_axes, index_t most) {
  return d.chance(20) ? list{} : shape(d, d.within(1, most_axes), most);
}
/// An axis of a shape, or -1 for a type of the whole tensor.
inline index_t random_axis(dice& d, const list& shape) {
  return shape.empty() || d.chance(2) ? -1 : d.within(0, static_cast<index_t>(shape.size()) - 1);
}

}  // namespace fuzz
