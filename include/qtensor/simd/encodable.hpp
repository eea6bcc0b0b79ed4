// Which schemes vectors can encode: their formats, roundings and policies.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <qtensor/format/table.hpp>
#include <qtensor/format/wide.hpp>
#include <qtensor/reference/codec.hpp>
#include <qtensor/simd/arch.hpp>
#include <qtensor/simd/ops.hpp>
#include <qtensor/simd/ops_codes.hpp>
#include <qtensor/simd/own_policies.hpp>

namespace qtensor::inline QTENSOR_ABI::simd {

/// The multiplier that stands for the scale is the inverse.
template <class A>
struct vector_inverse<rule_multiplier, A> {
  static constexpr bool enabled = true;
  static QTENSOR_INLINE floats<A> of(const floats<A>& multiplier, float) { return multiplier; }
};

namespace detail {

using qtensor::detail::one_of;

/// Integers and fixed-point fractions: a code counts units.
template <class F>
concept counting_format = F::bits <= 8 && (F::is_integer || requires { F::fraction_bits; });

/// Minifloats whose grid can be reached by one addition to a normal float (see magnitude_codes).
template <class F>
concept shiftable_format = minifloat_format<F> && F::bits <= 8 && F::mantissa_bits >= 1 &&
                           (128 - F::bias > F::mantissa_bits + 1) &&
                           (128 - F::bias + (1 << F::exponent_bits) + 23 < 255);

/// The steps of a format whose codes count up between powers of two, each binade with a spacing of its own (HiFloat8);
/// every other code is odd, from the first one after zero on. Nothing where F is not such a format.
template <class F>
inline constexpr auto find_binade_steps = []() -> std::optional<binade_steps> {
  if constexpr (F::bits != 8 || F::is_integer || !requires { F::ties_away; } || minifloat_format<F>) {
    return std::nullopt;
  } else {
    binade_steps steps;
    const auto code_at = [](float value) -> int {  // -1 where no code has the value
      for (int i = 0; i < sorted<F>.count; ++i)
        if (sorted<F>.value(i) == value) return sorted<F>.code[static_cast<std::size_t>(i)];
      return -1;
    };
    int first = 0;  // of the positive values
    while (sorted<F>.value(first) <= 0.f) ++first;
    if (first % 2 == 0) return std::nullopt;  // zero would be odd
    const int lowest = floor_log2(sorted<F>.value(first)), highest = floor_log2(static_cast<float>(F::max));
    if (highest - lowest > 60 || exp2i(lowest) != sorted<F>.value(first) || code_at(0.f) != 0) return std::nullopt;
    if (exp2i(highest) != static_cast<float>(F::max)) return std::nullopt;
    steps.low = static_cast<std::uint16_t>((lowest - 2 + 127) << 7);
    steps.high = static_cast<std::uint16_t>((highest + 127) << 7);
    for (int e = lowest - 2; e <= highest; ++e) {
      const std::size_t at = static_cast<std::size_t>(e + 127) & 63;
      if (e < lowest) {  // zero, and from half the smallest value on that
        steps.shift[at] = 15;
        steps.base[at] = static_cast<std::uint8_t>(e == lowest - 1 ? code_at(exp2i(lowest)) : 0);
        continue;
      }
      int bits = 0;  // of the mantissa: as many as have a code
      while (bits < 6 && code_at(exp2i(e) + exp2i(e - bits - 1)) >= 0) ++bits;
      const int code = code_at(exp2i(e));
      for (int k = 0; k < 1 << bits && e < highest; ++k)
        if (code_at(exp2i(e - bits) * static_cast<float>((1 << bits) + k)) != code + k) return std::nullopt;
      steps.half[at] = static_cast<std::uint8_t>(e == highest ? 0 : 1 << (6 - bits));
      steps.shift[at] = static_cast<std::uint8_t>(7 - bits);
      steps.base[at] = static_cast<std::uint8_t>(code - (((e + 127) << 7) >> (7 - bits)));
    }

    // The same by slopes: as packed_binade_codes counts, from the smallest value on.
    const int binades = highest - lowest;
    struct span {
      int begin, end;
    };
    const auto doublings = [&](int binade) {  // mantissa bits
      return 7 - steps.shift[static_cast<std::size_t>(lowest + binade + 127) & 63];
    };
    const auto with = [&](int bits) {  // the binades with at least so many mantissa bits
      span s{0, binades};
      while (s.begin < binades && doublings(s.begin) < bits) ++s.begin;
      while (s.end > s.begin && doublings(s.end - 1) < bits) --s.end;
      return s;
    };
    const span twos = with(1), fours = with(2), eights = with(3);
    for (int i = 0; i < binades; ++i) {
      const auto in = [i](const span& s) { return i >= s.begin && i < s.end ? 1 : 0; };
      if (doublings(i) != in(twos) + in(fours) + in(eights)) return std::nullopt;
    }
    if (twos.end != binades) return std::nullopt;
    const auto at = [](int binade) { return static_cast<std::uint16_t>(128 * binade + 192); };
    const auto wide = [](const span& s) { return static_cast<std::uint16_t>(128 * (s.end - s.begin)); };
    steps.twos = at(twos.begin);
    steps.fours = at(fours.begin), steps.fours_wide = wide(fours);
    steps.eights = at(eights.begin), steps.eights_wide = wide(eights);
    for (int n = 1; first + n - 1 < sorted<F>.count; ++n) {
      const int change = sorted<F>.code[static_cast<std::size_t>(first + n - 1)] ^ n;
      std::uint8_t& of_eight = steps.code_of[static_cast<std::size_t>(n / 8)];
      if (n > 127 || (n > 1 && n % 8 != 0 && of_eight != change) || change % 2 != 0) return std::nullopt;
      of_eight = static_cast<std::uint8_t>(change);
    }
    if (steps.code_of[0] != 0) return std::nullopt;
    return steps;
  }
}();
/// Such formats whose negative codes have the top bit set, and whose zero has no sign.
template <class F>
concept stepped_format = find_binade_steps<F>
.has_value() && find_nan<F>() == 0x80u;

/// Up to 16 values with no formula: a user's own table, like NF4.
template <class F>
concept listed_format =
    !counting_format<F> && !minifloat_format<F> && !stepped_format<F> && !std::same_as<F, e8m0> && F::bits <= 4;

/// The numbers the encoder of a minifloat needs; fields are f32 exponent fields.
template <class F>
struct grid {
  static constexpr int m = F::mantissa_bits;
  static constexpr std::uint32_t smallest_field = static_cast<std::uint32_t>(128 - F::bias);  // of the smallest normal
  static constexpr std::uint32_t smallest_normal = smallest_field << 23;
  /// The value after the largest one, as f32 bits: everything above rounds there or is clamped to it.
  static constexpr std::uint32_t ceiling =
      ((((F::max_code + 1) >> m) + smallest_field - 1) << 23) | (((F::max_code + 1) & low_bits(m)) << (23 - m));
  /// What magnitude_codes has too much, modulo 256.
  static constexpr std::uint8_t bias = static_cast<std::uint8_t>((smallest_field + 23 - m) << m);
};

/// The same for operations.
template <class F>
inline constexpr minifloat_grid grid_facts{F::mantissa_bits, F::bits, grid<F>::smallest_normal,
                                           bits_of(static_cast<float>(F::max))};

/// A deterministic rounding as bits: bit 8 * negative + 4 * odd + remainder says whether the magnitude steps up.
template <class Rounding>
constexpr std::uint32_t step_table() {
  std::uint32_t table = 0;
  for (std::uint32_t i = 0; i < 16; ++i)
    if (Rounding::up((i & 8) != 0, (i & 4) != 0, static_cast<remainder>(i & 3))) table |= 1u << i;
  return table;
}
template <class Rounding>
inline constexpr bool ties_to_even = step_table<Rounding>() == step_table<nearest_even>();
/// To nearest, ties away from zero: ties to even of numbers that are no ties any more (past_ties).
template <class Rounding>
inline constexpr bool ties_away = step_table<Rounding>() == step_table<nearest_away>();

/// Roundings that go to one side alone, or to the nearest value, ties away being no ties any more (past_ties).
template <class Rounding>
inline constexpr std::optional<goes> find_side = [] {
  constexpr std::uint32_t table = step_table<Rounding>();
  return ties_to_even<Rounding> || ties_away<Rounding>     ? std::optional(goes::nearest)
         : table == step_table<qtensor::toward_zero>()     ? std::optional(goes::toward_zero)
         : table == step_table<qtensor::toward_negative>() ? std::optional(goes::down)
         : table == step_table<qtensor::toward_positive>() ? std::optional(goes::up)
                                                           : std::nullopt;
}();
/// Those to one side.
template <class Rounding>
inline constexpr bool is_directed = find_side<Rounding>.has_value() && find_side<Rounding> != goes::nearest;

/// Whether all that decides is on which side of the middle between its neighbours a number lies, or that it lies there.
template <class Rounding>
inline constexpr bool decides_at_middles = (step_table<Rounding>() & 0xaaaau) == 0x8888u;

/// Whether a rounding makes other numbers of those it rounds first.
template <class Rounding, class Code>
inline constexpr bool has_before = requires(float q) {
  Rounding::template before<Code>(q);
};

/// Deterministic, looks at nothing but the remainder, and numbers of the grid stay where they are (bits 0, 4, 8, 12 of
/// the table).
template <class Rounding, class Code>
constexpr bool vector_rounding() {
  if constexpr (has_before<Rounding, Code> && !vector_before<Rounding, Code, best_arch>::enabled) {
    return false;
  } else if constexpr (deterministic_rounding<Rounding>) {
    if ((step_table<Rounding>() & 0x1111u) != 0) return false;
    if constexpr (requires { typename Rounding::intermediate; })
      return std::same_as<typename Rounding::intermediate, f16>;
    return true;
  } else {
    return false;
  }
}

template <class F>
inline constexpr bool vector_format = F::bits >= 2 && F::bits <= 8 &&
                                      (counting_format<F> || shiftable_format<F> || stepped_format<F> ||
                                       listed_format<F>);

/// The division of S for scales that are positive and finite.
template <class Division>
struct ordinary {
  using type = Division;
};
template <class Division>
requires requires { typename Division::ordinary; }
struct ordinary<Division> {
  using type = typename Division::ordinary;
};
template <class S>
using ordinary_division = typename ordinary<typename S::division>::type;

template <class S>
inline constexpr bool has_intermediate = requires {
  typename S::rounding::intermediate;
};

/// Whether larger numbers never get lower values of a list: remainders step up from some point of the gap on, and the
/// sign of zero and of NaN does not matter.
template <class S>
constexpr bool ascends() {
  using code = typename S::code_format;
  using rounding = typename S::rounding;
  constexpr std::uint32_t steps = step_table<rounding>(), below = 0x2222u, half = 0x4444u;
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  const auto same = [](float a, float b) {
    return encode<code, rounding, typename S::nan>(a) == encode<code, rounding, typename S::nan>(b);
  };
  return ((steps & below) << 1 & ~steps) == 0 && ((steps & half) << 1 & ~steps) == 0 && same(0.f, -0.f) &&
         same(nan, float_of(bits_of(nan) ^ sign_bit));
}

template <class S>
constexpr bool vector_policies() {
  constexpr bool division = one_of<ordinary_division<S>, exact_division, reciprocal> ||
                            vector_inverse<typename S::division, best_arch>::enabled;
  constexpr bool division_type = one_of<typename S::division_type, f32, f16, bf16>;
  // Stepped codes saturate, and are rounded to nearest.
  constexpr bool steps = !stepped_format<typename S::code_format> ||
                         (std::same_as<typename S::overflow, saturate> && !has_intermediate<S> &&
                          one_of<typename S::rounding, nearest_away, nearest_even> &&
                          one_of<typename S::nan, nan_propagates, nan_to_zero, nan_to_zero_point>);
  if constexpr (listed_format<typename S::code_format>)
    if (has_before<typename S::rounding, typename S::code_format> || !std::same_as<typename S::overflow, saturate> ||
        has_intermediate<S> || !ascends<S>())
      return false;
  return division && division_type && steps;
}

/// Whether codes of S have more bits than a byte and a vector form.
template <class S>
constexpr bool wide_format() {
  using code = typename S::code_format;
  using rounding = typename S::rounding;
  if constexpr (!wide_code_format<code> || !deterministic_rounding<rounding>)
    return false;
  else if constexpr (code::is_integer)
    return true;
  else
    return ties_to_even<rounding> && !has_before<rounding, code> && !has_intermediate<S> &&
           std::same_as<typename S::nan, nan_propagates>;
}

}  // namespace detail

/// Schemes whose kernels make codes +0 of all numbers of a block, whatever they are, where its scale is 0.
template <class S>
inline constexpr bool scale_0_gives_zeros =
    !random_rounding<typename S::rounding> && !qtensor::detail::own_division<typename S::division>;

/// Schemes with a vector encoder: codes in order in an array of their own, a format of 2 to 8 bits with a formula
/// (integers, fixed point, minifloats, HiFloat8) or a list of at most 16 values, a rounding that is not random, and
/// policies of this library or with a vector form (own_policies.hpp).
template <class S>
concept vector_encodable =
    quantization_scheme<S> && std::same_as<typename S::layout, planar<low_first>> && !S::has_offset &&
    detail::vector_format<typename S::code_format> &&
    detail::vector_rounding<typename S::rounding, typename S::code_format>() && detail::vector_policies<S>();

/// Wider codes, likewise: integers of 16 bits, signed ones of 32, and bf16 and f16 by ties to even that keep NaN.
template <class S>
concept wide_encodable =
    quantization_scheme<S> && std::same_as<typename S::layout, planar<low_first>> && !S::has_offset &&
    detail::wide_format<S>() && detail::vector_rounding<typename S::rounding, typename S::code_format>() &&
    detail::vector_policies<S>();

}  // namespace qtensor::inline QTENSOR_ABI::simd
