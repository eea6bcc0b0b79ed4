// Folds of 8-bit codes by add or multiply in f32, many results side by side: where integers would not give the bits.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <qtensor/ops/elements.hpp>
#include <qtensor/simd/fold.hpp>
#include <tuple>
#include <vector>

// Each lane does what the fold does for its result, in the same order: dequantize, operate, divide, add the zero point,
// clamp and round, every operation rounded to f32. Codes without their zero point are floats here, exact below 2^24;
// where a code of 32 bits leaves that range, or a NaN turns up, the lanes' answer is thrown away and the results are
// folded step by step.
namespace qtensor::inline QTENSOR_ABI::ops {

template <class Rule>
struct lanes_of {
  using type = void;
};
template <>
struct lanes_of<qtensor::detail::add_rule> {
  using type = simd::add_reals;
};
template <>
struct lanes_of<qtensor::detail::multiply_rule> {
  using type = simd::multiply_reals;
};

/// Folds blocks of results on lanes. `Leaves` are the 256 leaves of a fold (ops/reduce_bytes.hpp).
template <class Fold, class Leaves>
class lane_folder {
  using arch = simd::best_arch;
  using accumulator = typename Leaves::accumulator;
  using op = typename lanes_of<typename Fold::body_type::rule>::type;
  static constexpr index_t tile_steps = 64;

 public:
  /// Results of a block.
  static constexpr index_t width = simd::fold_width<arch>;

  lane_folder(const Leaves& leaves, const quantized_number<accumulator>& seed)
      : zero_(leaves.type.zero_point), start_(static_cast<float>(seed.integer() - zero_)) {
    constexpr bool wide = accumulator::code_format::bits > 24;
    constexpr std::int64_t most = std::int64_t{1} << 22;
    const std::int64_t k = seed.integer() - zero_;
    usable_ = seed.type() == leaves.type && zero_ > -most && zero_ < most && k > -most && k < most;
    const float zero = static_cast<float>(zero_);
    rule_ = {leaves.type.scale,
             zero,
             std::is_same_v<typename accumulator::zero_point_order, zp_before_round>,
             accumulator::codes.low - zero,
             accumulator::codes.high - zero,
             wide ? 0x1p23f : infinity};
    if (!accumulator::has_zero_point) rule_.zero_before = false;
    for (std::size_t i = 0; i < 256; ++i) reals_[i] = leaves.number(leaves.code[i]).real();
  }
  bool usable() const { return usable_; }

  /// Starts a block of results.
  void start() {
    std::fill(k_, k_ + width, start_);
    exact_ = true;
  }
  /// Steps over bytes that lie side by side for the results: x[s * stride + c].
  void down(const std::uint8_t* x, index_t steps, index_t stride) {
    exact_ = exact_ && simd::fold_lanes<op, arch>(x, steps, stride, Leaves::flip, reals_.data(), rule_, k_);
  }
  /// The same for `count` results only, the other lanes on copies of the first.
  void down_some(const std::uint8_t* x, index_t steps, index_t stride, index_t count) {
    for (index_t first = 0; first < steps; first += tile_steps) {
      const index_t n = std::min(tile_steps, steps - first);
      for (index_t s = 0; s < n; ++s)
        for (index_t c = 0; c < width; ++c) tile_[s * width + c] = x[(first + s) * stride + (c < count ? c : 0)];
      down(tile_, n, width);
    }
  }
  /// Steps along runs of bytes, one run a result; count of them, the other lanes on copies of the first.
  void along(const std::uint8_t* const* x, index_t count, index_t steps) {
    for (index_t first = 0; first < steps; first += tile_steps) {
      const index_t n = std::min(tile_steps, steps - first);
      for (index_t c = 0; c < width; ++c) {
        const std::uint8_t* const run = x[c < count ? c : 0] + first;
        for (index_t s = 0; s < n; ++s) tile_[s * width + c] = run[s];
      }
      down(tile_, n, width);
    }
  }
  /// Whether the codes are those of the fold.
  bool exact() const { return exact_; }
  std::int64_t code(index_t c) const { return static_cast<std::int64_t>(k_[c]) + zero_; }

 private:
  std::int64_t zero_;
  float start_;
  bool usable_ = false, exact_ = true;
  simd::fold_rule rule_{};
  std::array<float, 256> reals_{};
  alignas(64) float k_[static_cast<std::size_t>(width)];
  std::uint8_t tile_[static_cast<std::size_t>(tile_steps * width)];
};

}  // namespace qtensor::inline QTENSOR_ABI::ops
