// Quotients to codes of formats that list their values (NF4 and its like), four batches at a time.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <qtensor/simd/ops_codes.hpp>
#include <qtensor/simd/quotient.hpp>

namespace qtensor::inline QTENSOR_ABI::simd {

namespace detail {

/// What a scheme makes of numbers, by ascending number: from bound[i] on they get code[i]. Bounds behind the last one
/// are NaN.
template <class S>
struct code_bounds {
  using format = typename S::code_format;
  static constexpr auto& values = sorted<format>;
  static constexpr std::size_t count = static_cast<std::size_t>(values.count);

  alignas(16) std::array<std::uint8_t, 16> code{};
  std::array<float, 16> bound{};
  std::uint8_t nan = static_cast<std::uint8_t>(code_of(std::numeric_limits<float>::quiet_NaN()));
  bool in_order = true;  ///< code[i] is i

  constexpr code_bounds() {
    bound.fill(std::numeric_limits<float>::quiet_NaN());
    for (std::size_t i = 0; i < count; ++i) {
      code[i] = static_cast<std::uint8_t>(values.code[i]);
      in_order = in_order && code[i] == i;
      bound[i] =
          i == 0 ? -infinity : first_of(values.value(static_cast<int>(i) - 1), values.value(static_cast<int>(i)));
    }
  }

 private:
  static constexpr std::uint32_t code_of(float x) { return encode<format, typename S::rounding, typename S::nan>(x); }
  /// Integers in the order of the floats they stand for, and back.
  static constexpr std::int64_t place(float x) {
    return is_negative(x) ? -static_cast<std::int64_t>(bits_of(x) & magnitude_bits) : std::int64_t{bits_of(x)};
  }
  static constexpr float at(std::int64_t place) {
    return place < 0 ? float_of(static_cast<std::uint32_t>(-place) | sign_bit)
                     : float_of(static_cast<std::uint32_t>(place));
  }
  /// The first float above `low` that does not get its code; `high` is the next value.
  static constexpr float first_of(float low, float high) {
    const std::uint32_t lower = code_of(low);
    std::int64_t under = place(low), over = place(high);
    while (over - under > 1) {
      const std::int64_t middle = under + (over - under) / 2;
      (code_of(at(middle)) == lower ? under : over) = middle;
    }
    return at(over);
  }
};

/// The last bound that a quotient reaches decides. NaN is looked at afterwards.
template <class S, quotient_by By, class A, class Parameters>
QTENSOR_INLINE bytes<A> listed_codes(const std::array<floats<A>, 4>& x, const Parameters& p) {
  static constexpr code_bounds<S> bounds;
  const simd::sixteen_bounds<A> ascending(bounds.bound.data());
  std::array<floats<A>, 4> q;
  std::array<words<A>, 4> place;
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) {
    q[k] = quotients<S, By>(x[k], p.template divide<By>(k));
    place[k] = ascending.last(q[k]);
  }
  bytes<A> codes = simd::low_bytes(place[0], place[1], place[2], place[3]);
  if constexpr (!bounds.in_order) codes = simd::byte_table<A, 16>(bounds.code.data())(codes);
  if constexpr (bounds.nan != bounds.code[0])
    if (simd::any_nan(q[0], q[1], q[2], q[3])) [[unlikely]] {
      const bytes<A> at = bytes_of_nans(q);
      codes = (codes & ~at) | (bytes<A>(bounds.nan) & at);
    }
  return codes;
}

}  // namespace detail

}  // namespace qtensor::inline QTENSOR_ABI::simd
