// Quotients to codes of minifloats and of HiFloat8, four batches at a time.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <qtensor/simd/ops_halves.hpp>
#include <qtensor/simd/quotient.hpp>

namespace qtensor::inline QTENSOR_ABI::simd {

namespace detail {

/// Codes of magnitudes (f32 bits), plus grid<F>::bias, modulo 256; NaN and all that overflows give max_code + 1.
///   1. the exponent, at least that of the smallest normal: subnormals share its spacing
///   2. add the power of two whose ulp is that spacing: the only rounding, at the format's last bit
///   3. the sum's lowest bits count grid steps, its exponent counts binades of 2^m codes each
/// Cost: 7, 4 to 8 more for roundings to one side, for others 9 and a shift by lanes (ties away come as ties to even:
/// past_ties).
template <class F, class Rounding, class A>
QTENSOR_INLINE words<A> magnitude_codes(const words<A>& magnitude, const words<A>& negative) {
  using g = grid<F>;
  const words<A> a = simd::min(magnitude, words<A>(g::ceiling));
  const words<A> e = simd::max(a & words<A>(infinity_bits), words<A>(g::smallest_normal));
  const words<A> shifter = e + words<A>(static_cast<std::uint32_t>(23 - g::m) << 23);
  const floats<A> value = simd::bits_as<float>(a), power = simd::bits_as<float>(shifter);
  words<A> t = simd::bits_as<std::uint32_t>(value + power);
  if constexpr (is_directed<Rounding>) {
    const floats<A> nearest = simd::bits_as<float>(t) - power;
    const words<A> one(1u), none(0u);
    words<A> down = simd::select(simd::mask_as<std::uint32_t>(nearest > value), one, none);
    if constexpr (find_side<Rounding> != goes::toward_zero) {
      constexpr bool up_if_negative = find_side<Rounding> == goes::down;
      const words<A> up = simd::select(simd::mask_as<std::uint32_t>(nearest < value), one, none);
      const words<A> outward = up_if_negative ? none - negative : negative - one;  // all bits where magnitudes go up
      t = t + (up & outward);
      down = down & ~outward;
    }
    t = t - down;
  } else if constexpr (!ties_to_even<Rounding>) {
    const auto above = simd::mask_as<std::uint32_t>(simd::bits_as<float>(t) - power > value);
    t = simd::select(above, t - words<A>(1u), t);  // now the lower neighbour
    const floats<A> rest = value - (simd::bits_as<float>(t) - power);
    const floats<A> half = simd::bits_as<float>(e - words<A>(static_cast<std::uint32_t>(g::m + 1) << 23));
    t = t + steps<Rounding>(negative, t & words<A>(1u), rest, half);
  }
  return t + (t >> (23 - g::m));
}

template <class A>
QTENSOR_INLINE bytes<A> each_byte(std::uint32_t v) {
  return bytes<A>(static_cast<std::uint8_t>(v));
}

/// The signs of four batches in the top bit of codes of F.
template <class F, class A>
QTENSOR_INLINE bytes<A> sign_codes(const std::array<floats<A>, 4>& q) {
  return simd::bits_as<std::uint8_t>(simd::bits_as<std::uint32_t>(sign_bytes<A>(q)) >> (8 - F::bits));
}

/// Codes with those of NaN as the policy wants them. Inline, rare as it is: a call would put every quotient into memory
/// where there is no NaN, too.
template <class S, class A>
QTENSOR_INLINE bytes<A> with_nans(const bytes<A>& codes, const std::array<floats<A>, 4>& q) {
  using code = typename S::code_format;
  using nan = typename S::nan;
  const bytes<A> at = bytes_of_nans(q), signs = sign_codes<code>(q);
  bytes<A> instead = each_byte<A>(0);
  if constexpr (minifloat_format<code>) {
    constexpr bool fnuz = code::special_values == specials::nan_is_negative_zero;
    if constexpr (std::same_as<nan, nan_to_max>)
      instead = each_byte<A>(code::max_code) | signs;
    else if constexpr (std::same_as<nan, nan_to_lowest>)
      instead = each_byte<A>(code::max_code | code::sign_mask);
    else if constexpr (std::same_as<nan, nan_to_opposite_zero> && !fnuz)
      instead = each_byte<A>(code::sign_mask) & ~signs;
    else if constexpr (std::same_as<nan, nan_propagates> && code::has_nan)
      instead = fnuz ? each_byte<A>(code::nan_code) : each_byte<A>(code::nan_code) | signs;
  } else if constexpr (std::same_as<nan, nan_propagates>) {
    instead = each_byte<A>(*find_nan<code>());
  }
  return (codes & ~at) | (instead & at);
}

/// Codes of numbers that fit the powers of two they are divided by.
template <class S, class A, class Parameters>
QTENSOR_INLINE bytes<A> codes_on_moved_grid(const std::array<floats<A>, 4>& x, const Parameters& p) {
  const auto to = [&](int k) QTENSOR_INLINE_LAMBDA {
    const auto d = p.template divide<quotient_by::moved_grid>(k);
    return moved_grid<A>{d.value, d.rest};
  };
  using rounding = typename S::rounding;
  return simd::moved_codes<grid_facts<typename S::code_format>, A>(
      {past_ties<rounding>(x[0]), past_ties<rounding>(x[1]), past_ties<rounding>(x[2]), past_ties<rounding>(x[3])},
      {to(0), to(1), to(2), to(3)});
}

/// Minifloats whose overflow saturates, and that keep the sign of zero.
template <class S>
constexpr bool saturates_on_grid() {
  using code = typename S::code_format;
  if constexpr (minifloat_format<code> && deterministic_rounding<typename S::rounding>)
    return (std::same_as<typename S::overflow, saturate> || code::special_values == specials::none) &&
           code::special_values != specials::nan_is_negative_zero;
  else
    return false;
}
/// The grid that numbers are rounded on: it ends with the largest value, or with the one after it, whose code is that
/// of overflow.
template <class S>
inline constexpr minifloat_grid rounding_grid = [] {
  minifloat_grid g = grid_facts<typename S::code_format>;
  if (!saturates_on_grid<S>()) g.largest = grid<typename S::code_format>::ceiling;
  return g;
}();
/// Whether its codes have an instruction sequence of their own.
template <class S, class A>
constexpr bool takes_signed_codes() {
  using code = typename S::code_format;
  if constexpr (constexpr auto side = find_side<typename S::rounding>;
                side.has_value() && code::special_values != specials::nan_is_negative_zero)
    return has_signed_codes<A, rounding_grid<S>, *side>;
  else
    return false;
}

template <class S, quotient_by By, numbers Which, class A, class Parameters>
QTENSOR_INLINE bytes<A> minifloat_codes(const std::array<floats<A>, 4>& x, const Parameters& p) {
  using code = typename S::code_format;
  constexpr bool saturates = std::same_as<typename S::overflow, saturate> || code::special_values == specials::none;
  constexpr bool fnuz = code::special_values == specials::nan_is_negative_zero;
  constexpr bool is_signed_grid = takes_signed_codes<S, A>();
  // Without saturation NaN and overflow are the same code, the one after the largest value.
  constexpr bool nan_is_overflow =
      !saturates && !is_signed_grid && !code::has_infinity && std::same_as<typename S::nan, nan_propagates>;
  std::array<floats<A>, 4> q;
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) {
    q[k] = quotients<S, By>(x[k], p.template divide<By>(k));
    if constexpr (has_intermediate<S>) q[k] = through<typename S::rounding::intermediate>(q[k]);
    q[k] = past_ties<typename S::rounding, Which>(q[k]);
  }
  bytes<A> codes;
  // Products give neither a zero nor what overflows its sign; their scales are positive.
  const std::array<floats<A>, 4>& signs_of = loses_edges<By> ? x : q;
  // Numbers that fit need less for saturation.
  if constexpr (is_signed_grid && Which == numbers::fitting && saturates && rounds_to_nearest<S>) {
    const auto to = simd::grid_times<grid_facts<code>>(words<A>(bits_of(1.f)));
    codes = simd::moved_codes<grid_facts<code>, A>(q, {to, to, to, to}, signs_of);
  } else if constexpr (is_signed_grid) {
    codes = simd::signed_codes<rounding_grid<S>, *find_side<typename S::rounding>>(q, signs_of);
  } else {
    std::array<words<A>, 4> t;
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      const words<A> bits = simd::bits_as<std::uint32_t>(q[k]);
      t[k] =
          magnitude_codes<code, rounding_past_ties<typename S::rounding>>(bits & words<A>(magnitude_bits), bits >> 31);
    }
    bytes<A> c = simd::low_bytes(t[0], t[1], t[2], t[3]) - each_byte<A>(grid<code>::bias);
    if constexpr (saturates) c = simd::min(c, each_byte<A>(code::max_code));
    codes = c | sign_codes<code>(signs_of);
    if constexpr (fnuz) codes = simd::select(c == each_byte<A>(0), c, codes);
  }
  if constexpr (!nan_is_overflow && Which == numbers::any)
    if (simd::any_nan(q[0], q[1], q[2], q[3])) [[unlikely]] {
      if constexpr (loses_edges<By>)  // infinities, too
        return minifloat_codes<S, safe_quotient<S>, Which, A>(x, p);
      else
        codes = with_nans<S>(codes, q);
    }
  return codes;
}

// ---- Stepped formats -----------------------------------------------------------------------------------------------

/// Codes of numbers; NaN gives anything. Ties to even: where a code is odd, the one of the magnitude before, which is
/// another at ties only. Numbers are batches of floats or of bf16.
template <class F, class Rounding, class A, class Numbers, class Before>
QTENSOR_INLINE bytes<A> rounded_to_steps(const Numbers& q, Before before_of) {
  static constexpr binade_steps steps = *find_binade_steps<F>;
  const bytes<A> away = simd::binade_codes(q, steps);  // zero has no sign there
  if constexpr (ties_to_even<Rounding>) {
    Numbers before;
#pragma GCC unroll 4
    for (std::size_t k = 0; k < q.size(); ++k) before[k] = before_of(q[k]);
    const auto even = (away & each_byte<A>(1)) == each_byte<A>(0);
    return simd::select(even, away, simd::binade_codes(before, steps));
  } else {
    return away;
  }
}

template <class S, quotient_by By, numbers Which, class A, class Parameters>
QTENSOR_INLINE bytes<A> stepped_codes(const std::array<floats<A>, 4>& x, const Parameters& p) {
  using code = typename S::code_format;
  std::array<floats<A>, 4> q;
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) q[k] = quotients<S, By>(x[k], p.template divide<By>(k));
  bytes<A> codes = rounded_to_steps<code, typename S::rounding, A>(q, [](const floats<A>& v) QTENSOR_INLINE_LAMBDA {
    return simd::bits_as<float>(simd::bits_as<std::uint32_t>(v) - words<A>(1u));
  });
  if constexpr (Which == numbers::any)
    if (simd::any_nan(q[0], q[1], q[2], q[3])) [[unlikely]] {
      if constexpr (loses_edges<By>)  // infinities, too
        return stepped_codes<S, safe_quotient<S>, Which, A>(x, p);
      else
        codes = with_nans<S>(codes, q);
    }
  return codes;
}

// ---- bf16 numbers that need no division ----------------------------------------------------------------------------

/// Whether bf16 numbers become codes of S as they are: over moved grids, and as casts, where that is the faster way,
/// as numbers are seldom so small as to be subnormal or codes are few.
template <class S, quotient_by By, class A>
constexpr bool codes_bf16() {
  using code = typename S::code_format;
  constexpr bool unchanged =
      std::same_as<typename S::division_type, f32> && !has_intermediate<S> && !changes_quotients<S>;
  if constexpr (By == quotient_by::moved_halves) {
    return true;
  } else if constexpr (!codes_halves<A> || !unchanged || By != quotient_by::nothing) {
    return false;
  } else if constexpr (stepped_format<code>) {
    return true;
  } else if constexpr (!minifloat_format<code> || !saturates_on_grid<S>() || !ties_to_even<typename S::rounding>) {
    return false;
  } else {
    return looks_bf16_up<code, A> || grid_facts<code>.smallest_normal < bits_of(0x1p-12f);
  }
}

/// The same where each number has a grid of its own, which it fits, and registers are many enough for these.
template <class S, quotient_by By, class A, class From>
constexpr bool codes_bf16_each() {
  return By == quotient_by::moved_grid && has_many_registers<A> && S::code_format::bits == 8 &&
         moves_halves<S, A, From>();
}

/// Codes of such numbers; NaN gives anything.
template <class S, quotient_by By, class A, class Parameters>
QTENSOR_INLINE bytes<A> codes_of_bf16(const std::array<halves<A>, 2>& x, const Parameters& p) {
  using code = typename S::code_format;
  if constexpr (stepped_format<code>) {
    return rounded_to_steps<code, typename S::rounding, A>(
        x, [](const halves<A>& v) QTENSOR_INLINE_LAMBDA { return v - halves<A>(std::uint16_t{1}); });
  } else {
    constexpr auto G = grid_facts<code>;
    const auto begin = [&](int k) QTENSOR_INLINE_LAMBDA {
      if constexpr (By == quotient_by::moved_halves)
        return simd::bits_as<std::uint16_t>(p.template divide<By>(k).value);
      else if constexpr (By == quotient_by::moved_grid)
        return simd::grid_begins_at_each<G, A>(p.template divide<By>(k).value, p.template divide<By>(k + 1).value);
      else
        return simd::grid_begins<G, A>();
    };
    return simd::bf16_codes<G>(x, {begin(0), begin(2)});
  }
}

}  // namespace detail

}  // namespace qtensor::inline QTENSOR_ABI::simd
