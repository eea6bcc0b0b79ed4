// Blocks of every kind beside each other: ordinary data with few infinities, NaNs, zeros, far scales and subnormals.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <qtensor/ops/quantize.hpp>
#include <qtensor/reference/quantize.hpp>
#include <random>
#include <string>
#include <vector>

#include "check.hpp"

namespace special_blocks {

using qtensor::index_t;

/// What stands among ordinary numbers.
enum class kind { nothing, infinities_and_nans, nans, zeros, far_scales, subnormals, any_bits };
inline constexpr kind kinds[] = {kind::nothing,    kind::infinities_and_nans, kind::nans,    kind::zeros,
                                 kind::far_scales, kind::subnormals,          kind::any_bits};

inline std::vector<float> numbers(index_t n, kind with, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t block = i / 32;
    x[i] = normal(random);
    const auto pick = random() % 40;
    if ((with == kind::infinities_and_nans && pick < 2) || (with == kind::nans && pick == 2))
      x[i] = with == kind::nans ? qtensor::quiet_nan : pick == 0 ? qtensor::infinity : -qtensor::quiet_nan;
    if (with == kind::infinities_and_nans && pick == 3) x[i] = -qtensor::infinity;
    if (with == kind::zeros && block % 3 != 1) x[i] = pick < 20 ? -0.f : 0.f;
    if (with == kind::far_scales) x[i] *= std::exp2(static_cast<float>(block * 37 % 250) - 125.f);
    if (with == kind::subnormals && block % 2 == 0) x[i] *= 0x1p-130f;
    if (with == kind::any_bits) x[i] = qtensor::float_of(static_cast<std::uint32_t>(random()));
  }
  return x;
}

/// Checks that matrices of both orders and several widths are quantized by S as the reference does it.
template <qtensor::quantization_scheme S>
void check_scheme() {
  using namespace qtensor;
  for (const kind with : kinds)
    for (const index_t cols : {16, 64, 200, 2080})
      for (const index_t rows : {1, 17}) {
        const auto x = numbers(rows * cols, with, static_cast<std::uint32_t>(cols + rows));
        std::vector<float> turned(x.size());
        for (index_t r = 0; r < rows; ++r)
          for (index_t c = 0; c < cols; ++c)
            turned[static_cast<std::size_t>(c * rows + r)] = x[static_cast<std::size_t>(r * cols + c)];
        tensor<S> wanted(matrix_extents(rows, cols));
        reference::quantize([&](const auto& i) { return x[static_cast<std::size_t>(i[0] * cols + i[1])]; },
                            wanted.span());
        for (const bool across : {false, true}) {
          const matrix_ref<const float> ref = across ? matrix_ref<const float>{turned.data(), rows, cols, 1, rows}
                                                     : matrix_ref<const float>{x.data(), rows, cols, cols, 1};
          tensor<S> t(matrix_extents(rows, cols));
          quantize_into(ref, t.span());
          const bool same_codes = std::equal(t.codes().begin(), t.codes().end(), wanted.codes().begin());
          bool same_scales = true;
          for (std::size_t i = 0; i < t.scales().size(); ++i) {
            using format = typename S::scale_format;
            same_scales =
                same_scales && detail::code_of<format>(t.scales()[i]) == detail::code_of<format>(wanted.scales()[i]);
          }
          if constexpr (S::has_offset)
            for (index_t i = 0; i < t.shape().scale_count(); ++i) {
              using format = typename S::offset_format;
              same_scales = same_scales && detail::code_of<format>(t.view().memory().offsets[i]) ==
                                               detail::code_of<format>(wanted.view().memory().offsets[i]);
            }
          CAPTURE(rows);
          CAPTURE(cols);
          CAPTURE(across);
          CAPTURE(static_cast<int>(with));
          CHECK(same_codes);
          CHECK(same_scales);
        }
      }
}

/// Vectors make scales and codes, and what they make is the reference's.
template <qtensor::quantization_scheme... S>
void check_vectors() {
  CHECK((qtensor::simd::vector_scaled<S> && ...));
  CHECK((qtensor::simd::vector_encodable<S> && ...));
  (check_scheme<S>(), ...);
}

}  // namespace special_blocks
