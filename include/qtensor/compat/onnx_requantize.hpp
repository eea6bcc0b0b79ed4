// ONNX: sums become codes as its reference has it, in double (NUMERICS 8.1).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <qtensor/ops/requantize.hpp>
#include <qtensor/simd/statistics.hpp>

namespace qtensor::compat::onnx::inline QTENSOR_ABI::pieces {

/// rint(double(sum) * f + zero point) with the factors of ops::requantization, modulo 256 (Wraps) or inside the codes.
template <class Y, bool Wraps>
class reference_requantization : public ops::requantization<Y> {
  using A = simd::best_arch;

 public:
  using ops::requantization<Y>::requantization;

  /// A vector of sums as codes, which need not be saturated yet. Where f32 is far enough from a tie for its two
  /// roundings, each by 2^-24 at most, it rounds to what double does. Sums of 64 bits are rounded in double.
  template <bool HasRowScales>
  simd::ints<A> codes(const std::int64_t* sums, index_t row, index_t column) const {
    return one_by_one(sums, this->template factors<HasRowScales>(row, column));
  }
  template <bool HasRowScales>
  QTENSOR_INLINE simd::ints<A> codes(const std::int32_t* sums, index_t row, index_t column) const {
    const simd::floats<A> by = this->template factors<HasRowScales>(row, column);
    const simd::floats<A> q = simd::mul(simd::to_float(simd::load<A>(sums)), by);
    const simd::ints<A> whole = simd::round_to_int(q);
    const auto magnitude = [](const simd::floats<A>& v) {
      return simd::bits_as<float>(simd::detail::magnitude_words<A>(v));
    };
    const simd::floats<A> off =
        simd::add(magnitude(simd::sub(q, simd::to_float(whole))), simd::mul(magnitude(q), simd::floats<A>(0x1p-22f)));
    if (!simd::all(off < simd::floats<A>(0.499f))) return one_by_one(sums, by);
    const simd::ints<A> code = whole + simd::ints<A>(this->zero_point());
    if constexpr (!Wraps)
      return code;
    else if constexpr (std::numeric_limits<Y>::is_signed)
      return (code << 24) >> 24;
    else
      return code & simd::ints<A>(0xff);
  }

 private:
  template <class Sum>
  simd::ints<A> one_by_one(const Sum* sums, const simd::floats<A>& by) const {
    constexpr double low = std::numeric_limits<Y>::min(), high = std::numeric_limits<Y>::max();
    alignas(64) float factors[static_cast<std::size_t>(simd::lanes<A>)];
    alignas(64) std::int32_t codes[static_cast<std::size_t>(simd::lanes<A>)];
    simd::store(factors, by);
    for (index_t i = 0; i < simd::lanes<A>; ++i) {
      const double q = rounded(static_cast<double>(sums[i]) * static_cast<double>(factors[i])) +
                       static_cast<double>(this->zero_point());
      if (Wraps)
        codes[i] = std::fabs(q) < 0x1p63 ? static_cast<Y>(static_cast<std::int64_t>(std::nearbyint(q))) : Y(0);
      else
        codes[i] = q == q ? static_cast<Y>(std::nearbyint(std::clamp(q, low, high))) : Y(0);
    }
    return simd::load<A>(codes);
  }
};

}  // namespace qtensor::compat::onnx::inline QTENSOR_ABI::pieces
