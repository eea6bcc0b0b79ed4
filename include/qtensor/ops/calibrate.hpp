// Calibration: static scales and zero points from the statistics of several batches.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <limits>
#include <qtensor/ops/dequantize.hpp>
#include <vector>

namespace qtensor::inline QTENSOR_ABI {

/// A scale, and a zero point (0 where the scheme is symmetric), to pass to `quantize<S>(x, p.scale, p.zero_point)`.
struct static_parameters {
  float scale = 1.f;
  std::int64_t zero_point = 0;
};

/// The range of everything it was shown. Infinities and NaN are left out and counted.
class range_calibrator {
 public:
  /// Joins a batch: any tile source, or memory.
  template <tile_source X>
  void add(const X& x) {
    ops::for_each_piece(as_floats(x), 0, x.rows(), 1, [&](index_t, index_t, index_t n, const float* floats) {
      constexpr index_t most = 256;
      for (index_t first = 0, count; first < n; first += count) {
        count = std::min(most, n - first);
        const simd::range r = simd::min_max<simd::best_arch>(floats + first, count);
        if (r.all_finite && r.min >= seen_.own_low && r.max <= seen_.own_high) continue;  // nothing new
        for (index_t i = first; i < first + count; ++i) {
          seen_.add<with_ignored>(floats[i]);
          ignored_ += is_finite(floats[i]) ? 0 : 1;
        }
      }
    });
  }
  template <format F, tensor_extents Extents>
  void add(const memory_source<F, Extents>& x) {
    add(typename memory_source<F, Extents>::template in_order<row_major>(x));
  }

  float amax() const { return float_of(seen_.amax_bits); }
  /// min(0, smallest) and max(0, largest).
  float low() const { return seen_.low; }
  float high() const { return seen_.high; }
  index_t ignored() const { return ignored_; }

  /// What the scheme's own rule makes of the range.
  template <quantization_scheme S>
  static_parameters parameters() const {
    static_assert(!S::has_tensor_scale,
                  "qtensor: calibration gives one scale and zero point; a tensor scale comes with its data.");
    const reference::block_parameters p = reference::parameters_of<S>(seen_);
    return {decode<typename S::scale_format>(p.scale_code), p.zero_point};
  }

 private:
  using with_ignored = scheme<int8, per_tensor, block_ignores>;
  reference::block_statistics seen_;
  index_t ignored_ = 0;
};

/// A histogram of magnitudes with buckets of 1/512 of their binade, whatever the range: what percentile and mean-square
/// clipping need of several batches, in 1 MiB. Infinities and NaN are left out and counted.
class magnitude_histogram {
 public:
  magnitude_histogram() : counts_(static_cast<std::size_t>(infinity_bits >> shift)) {}

  template <tile_source X>
  void add(const X& x) {
    ops::for_each_piece(as_floats(x), 0, x.rows(), 1, [&](index_t, index_t, index_t n, const float* floats) {
      for (index_t i = 0; i < n; ++i) {
        const std::uint32_t bits = bits_of(floats[i]) & magnitude_bits;
        if (bits >= infinity_bits) {
          ++ignored_;
          continue;
        }
        ++counts_[bits >> shift];
        ++total_;
        if (bits > largest_) largest_ = bits;
      }
    });
  }
  template <format F, tensor_extents Extents>
  void add(const memory_source<F, Extents>& x) {
    add(typename memory_source<F, Extents>::template in_order<row_major>(x));
  }

  index_t count() const { return total_; }
  index_t ignored() const { return ignored_; }
  float amax() const { return float_of(largest_); }

  /// The smallest bucket edge that at least `fraction` of the magnitudes do not exceed, at most amax: within 1/512
  /// above the percentile. `fraction` in (0, 1].
  float percentile(double fraction) const {
    require(fraction > 0 && fraction <= 1, "a percentile of ", fraction, " cannot be; it is a fraction in (0, 1].");
    const double wanted = fraction * static_cast<double>(total_);
    index_t below = 0;
    for (std::size_t b = 0; b < counts_.size(); ++b) {
      below += counts_[b];
      if (below > 0 && static_cast<double>(below) >= wanted) return upper_edge(b);
    }
    return amax();
  }

  /// The clipping magnitude, among amax * k / steps for k = 1 .. steps, whose symmetric static quantization loses least
  /// in the mean square (the larger one of equals). Every bucket counts as its middle, quantized by the scheme's own
  /// rules.
  template <quantization_scheme S>
  float least_square_clip(int steps = 128) const {
    static_assert(!S::has_zero_point, "qtensor: least_square_clip clips magnitudes; it is for symmetric schemes.");
    require(steps >= 1, "least_square_clip is given ", steps, " steps; it needs at least 1.");
    float best = amax();
    double least = std::numeric_limits<double>::infinity();
    for (int k = steps; k >= 1 && total_ > 0 && largest_ > 0; --k) {
      const float clip = amax() * (static_cast<float>(k) / static_cast<float>(steps));
      const float s = scale_for<S>(clip);
      if (!(s > 0.f) || !is_finite(s)) continue;
      double loss = 0;
      for (std::size_t b = 0; b < counts_.size(); ++b) {
        if (counts_[b] == 0) continue;
        const float x = middle(b);
        const double error =
            static_cast<double>(x) - static_cast<double>(dequantize_element<S>(quantize_element<S>(x, {s}), {s}));
        loss += rounded(rounded(static_cast<double>(counts_[b]) * error) * error);
      }
      if (loss < least) {  // not where numbers become NaN
        least = loss;
        best = clip;
      }
    }
    return best;
  }

  /// The scale that makes `clip` the scheme's largest value, as stored.
  template <quantization_scheme S>
  static float scale_for(float clip) {
    reference::block_statistics seen;
    seen.amax_bits = bits_of(clip) & magnitude_bits;
    return decode<typename S::scale_format>(reference::parameters_of<S>(seen).scale_code);
  }

 private:
  static constexpr int shift = 14;  // 9 bits of mantissa stay
  float upper_edge(std::size_t bucket) const {
    const std::uint32_t edge = (static_cast<std::uint32_t>(bucket) + 1) << shift;
    return float_of(edge < largest_ ? edge : largest_);
  }
  static float middle(std::size_t bucket) {
    return bucket == 0 ? 0.f : float_of((static_cast<std::uint32_t>(bucket) << shift) + (1u << (shift - 1)));
  }

  std::vector<index_t> counts_;
  index_t total_ = 0, ignored_ = 0;
  std::uint32_t largest_ = 0;
};

}  // namespace qtensor::inline QTENSOR_ABI
