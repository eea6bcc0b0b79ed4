// The library's codecs under the oracle's names, so that one loop can compare any format under any choice of policies.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/format/e8m0.hpp>
#include <qtensor/format/hifloat8.hpp>
#include <qtensor/format/integer.hpp>
#include <qtensor/format/minifloat.hpp>
#include <qtensor/format/wide.hpp>
#include <qtensor/reference/codec.hpp>

#include "oracle/encode.hpp"

namespace oracle {

/// The formats that only ml_dtypes has, spelled as a user of the library would.
struct e4m3_ieee : qtensor::minifloat<4, 3, 7, qtensor::specials::ieee> {
  static constexpr qtensor::fixed_string name = "e4m3_ieee";
};
struct e3m4 : qtensor::minifloat<3, 4, 3, qtensor::specials::ieee> {
  static constexpr qtensor::fixed_string name = "e3m4";
};
struct e4m3b11fnuz : qtensor::minifloat<4, 3, 11, qtensor::specials::nan_is_negative_zero> {
  static constexpr qtensor::fixed_string name = "e4m3b11fnuz";
};

/// A library format behind run-time arguments.
struct codec {
  std::string name;  ///< as in `formats()`
  double (*decode)(std::uint32_t code);
  std::uint32_t (*encode)(float x, rounding r, overflow o, nan_rule n);
};

namespace detail {

template <class Format, class Rounding, class Overflow>
std::uint32_t library_by_nan(float x, nan_rule n) {
  switch (n) {
    case nan_rule::propagates:
      return qtensor::encode<Format, Rounding, Overflow, qtensor::nan_propagates>(x);
    case nan_rule::to_zero:
      return qtensor::encode<Format, Rounding, Overflow, qtensor::nan_to_zero>(x);
    case nan_rule::to_zero_point:
      return qtensor::encode<Format, Rounding, Overflow, qtensor::nan_to_zero_point>(x);
    case nan_rule::to_max:
      break;
  }
  return qtensor::encode<Format, Rounding, Overflow, qtensor::nan_to_max>(x);
}

template <class Format, class Rounding>
std::uint32_t library_by_overflow(float x, overflow o, nan_rule n) {
  return o == overflow::saturate ? library_by_nan<Format, Rounding, qtensor::saturate>(x, n)
                                 : library_by_nan<Format, Rounding, qtensor::to_special>(x, n);
}

template <class Format>
std::uint32_t library_encode(float x, rounding r, overflow o, nan_rule n) {
  switch (r) {
    case rounding::nearest_even:
      return library_by_overflow<Format, qtensor::nearest_even>(x, o, n);
    case rounding::nearest_away:
      return library_by_overflow<Format, qtensor::nearest_away>(x, o, n);
    case rounding::toward_negative:
      return library_by_overflow<Format, qtensor::toward_negative>(x, o, n);
    case rounding::toward_positive:
      return library_by_overflow<Format, qtensor::toward_positive>(x, o, n);
    case rounding::toward_zero:
      return library_by_overflow<Format, qtensor::toward_zero>(x, o, n);
    case rounding::via_f16:
      break;
  }
  return library_by_overflow<Format, qtensor::via_f16>(x, o, n);
}

/// As above for `nan_propagates` only, which is a quarter of the code to compile.
template <class Format, class Overflow>
std::uint32_t library_by_rounding(float x, rounding r) {
  switch (r) {
    case rounding::nearest_even:
      return qtensor::encode<Format, qtensor::nearest_even, Overflow>(x);
    case rounding::nearest_away:
      return qtensor::encode<Format, qtensor::nearest_away, Overflow>(x);
    case rounding::toward_negative:
      return qtensor::encode<Format, qtensor::toward_negative, Overflow>(x);
    case rounding::toward_positive:
      return qtensor::encode<Format, qtensor::toward_positive, Overflow>(x);
    case rounding::toward_zero:
      return qtensor::encode<Format, qtensor::toward_zero, Overflow>(x);
    case rounding::via_f16:
      break;
  }
  return qtensor::encode<Format, qtensor::via_f16, Overflow>(x);
}
template <class Format>
std::uint32_t library_encode_propagating(float x, rounding r, overflow o, nan_rule n) {
  if (n != nan_rule::propagates) throw std::invalid_argument("this codec was built for nan_propagates");
  return o == overflow::saturate ? library_by_rounding<Format, qtensor::saturate>(x, r)
                                 : library_by_rounding<Format, qtensor::to_special>(x, r);
}

template <class Format>
double library_decode(std::uint32_t code) {
  return static_cast<double>(Format::decode(code));  // exact: a float, or an integer of at most 32 bits
}

}  // namespace detail

/// For tests that never name another NaN policy than the default.
template <class Format>
codec propagating_codec_of(const char* name) {
  return {name, detail::library_decode<Format>, detail::library_encode_propagating<Format>};
}

template <class Format>
codec codec_of(const char* name) {
  return {name, detail::library_decode<Format>, detail::library_encode<Format>};
}

}  // namespace oracle
