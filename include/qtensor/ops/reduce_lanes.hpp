// Folds of 8-bit codes by add or multiply in f32, many results side by side: where integers would not give the bits.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <qtensor/ops/elements.hpp>
#include <qtensor/simd/fold.hpp>
#include <tuple>
#include <vector>

// Each lane does what the fold does for its result, in the same order: dequantize, operate, divide, add the zero point,
// clamp and round, every operation rounded to f32. Codes without their zero point are floats here, exact below 2^24,
// and above where the zero point is 0, as steps give floats. Where another code of 32 bits leaves that range, or a NaN
// turns up, the lanes' answer is thrown away and the results are folded step by step.
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
template <>
struct lanes_of<qtensor::detail::max_rule> {
  using type = simd::max_reals;
};
template <>
struct lanes_of<qtensor::detail::min_rule> {
  using type = simd::min_reals;
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
  static constexpr index_t width = simd::fold_vectors * simd::lanes<arch>;

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
             wide && zero_ != 0 ? 0x1p23f : infinity};
    if (!accumulator::has_zero_point) rule_.zero_before = false;
    for (std::size_t i = 0; i < 256; ++i) reals_[i] = leaves.number(leaves.code[i]).real();
  }
  bool usable() const { return usable_; }

  /// Starts a block of results.
  void start() {
    std::fill(k_, k_ + width, start_);
    exact_ = true;
  }
  /// Steps over bytes that lie side by side for `count` results: x[s * stride + c].
  void down(const std::uint8_t* x, index_t steps, index_t stride, index_t count) {
    if (count == width) return add(x, steps, stride, width);
    turn(steps, count, stride, [&](index_t c) { return x + c; });
  }
  /// Steps along runs of bytes, one run a result; count of them.
  void along(const std::uint8_t* const* x, index_t count, index_t steps) {
    turn(steps, count, 1, [&](index_t c) { return x[c]; });
  }
  /// Whether the codes are those of the fold.
  bool exact() const { return exact_; }
  std::int64_t code(index_t c) const {
    return std::min(static_cast<std::int64_t>(k_[c]) + zero_, qtensor::detail::highest_code<accumulator>);
  }

 private:
  /// Steps over tiles of the bytes of `count` results, those of result c `apart` from first_of(c) on; the other lanes
  /// of their vectors on copies of the first.
  template <class First>
  void turn(index_t steps, index_t count, index_t apart, const First& first_of) {
    const index_t all = count <= simd::lanes<arch> ? simd::lanes<arch> : width;
    for (index_t first = 0; first < steps; first += tile_steps) {
      const index_t n = std::min(tile_steps, steps - first);
      for (index_t c = 0; c < all; ++c) {
        const std::uint8_t* const from = first_of(c < count ? c : 0) + first * apart;
        for (index_t s = 0; s < n; ++s) tile_[s * all + c] = from[s * apart];
      }
      add(tile_, n, all, all);
    }
  }
  void add(const std::uint8_t* x, index_t steps, index_t stride, index_t count) {
    const auto fold = [&]<index_t Vectors>(std::integral_constant<index_t, Vectors>) {
      return simd::fold_lanes<op, arch, Vectors>(x, steps, stride, Leaves::flip, reals_.data(), rule_, k_);
    };
    using vectors = std::integral_constant<index_t, simd::fold_vectors>;
    exact_ = exact_ && (count == width ? fold(vectors{}) : fold(std::integral_constant<index_t, 1>{}));
  }

  std::int64_t zero_;
  float start_;
  bool usable_ = false, exact_ = true;
  simd::fold_rule rule_{};
  std::array<float, 256> reals_{};
  alignas(64) float k_[static_cast<std::size_t>(width)];
  std::uint8_t tile_[static_cast<std::size_t>(tile_steps * width)];
};

}  // namespace qtensor::inline QTENSOR_ABI::ops
