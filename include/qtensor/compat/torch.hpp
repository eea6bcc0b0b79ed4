// torch: quantize_per_tensor and _per_channel, fake_quantize, float8 casts and min-max observers (NUMERICS 5.1, 10).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <limits>
#include <qtensor/compat/axis_blocks.hpp>
#include <qtensor/ops/calibrate.hpp>
#include <qtensor/ops/fake_quantize.hpp>
#include <qtensor/ops/parallel.hpp>
#include <qtensor/scheme/schemes.hpp>
#include <vector>

// q = clamp(rne(x * f32(1 / f32(scale))) + zero point), y = (q - zero point) * scale in f32. Where x * (1 / scale) is
// NaN or does not fit an int32, torch goes through INT_MIN and gives the smallest code; ours saturate, and NaN is the
// zero point. torch's scales are doubles, of which its kernels use the nearest float, and so do these.
namespace qtensor::compat::torch {

/// torch.qint8, quint8 and qint32, one scale and zero point for the tensor; they differ from our defaults in the
/// reciprocal.                                                                     16.5, scale 2.2: 7, by division 8
using qint8 = with<int8_per_tensor, qtensor::zero_point<int32>, static_only, reciprocal>;
using quint8 = with<uint8_per_tensor, qtensor::zero_point<int32>, static_only, reciprocal>;
using qint32 = scheme<int32, per_tensor, qtensor::zero_point<int32>, static_only, reciprocal>;

/// The same with a scale and a zero point for every index of an axis that is known at run time.
template <quantization_scheme S>
using channels_of = with<S, axis_blocks>;

/// torch's reduce_range: one bit less, [-64, 63] and [0, 127].
using qint8_reduced = with<qint8, stored_range<-64, 63>>;
using quint8_reduced = with<quint8, stored_range<0, 127>>;

namespace detail {

constexpr void check_axis(int axis, int rank) {
  require(axis >= -rank && axis < rank, "axis is ", axis, " but the tensor has rank ", rank, "; it goes from ", -rank,
          " to ", rank - 1, ".");
}

/// Zero points of any type of numbers are cut to integers, of 32 bits as low and high are.
template <class ZeroPoint>
constexpr void check_fake(double scale, ZeroPoint zero_point, std::int64_t low, std::int64_t high, index_t channel) {
  const float s = static_cast<float>(scale);
  const auto number = static_cast<double>(zero_point);
  const bool fits = number > -0x1p32 && number < 0x1p32;  // NaN does not
  require(is_finite(s) && s > 0.f, "scale ", channel, " is ", scale,
          "; a scale must be finite and positive as a float.");
  require(fits && low <= static_cast<std::int64_t>(zero_point) && static_cast<std::int64_t>(zero_point) <= high,
          "zero point ", channel, " is ", zero_point, "; it must lie between quant_min ", low, " and quant_max ", high,
          ".");
}

}  // namespace detail

/// One element of fake quantization to [low, high]; NaN gives 0, the value of the zero point.
constexpr float fake_quantize_element(float x, float scale, std::int64_t zero_point, std::int64_t low,
                                      std::int64_t high) {
  const std::int64_t q =
      round_to_integer<nearest_even>(rounded(x * rounded(1.f / scale))) + (is_nan(x) ? 0 : zero_point);
  const std::int64_t code = is_nan(x) ? zero_point : q < low ? low : q > high ? high : q;
  return rounded(static_cast<float>(code - zero_point) * scale);
}

namespace detail {

inline namespace QTENSOR_ABI {

/// Fake quantization of elements in order, `inner` of each channel and then those of the next, over and over: by
/// vectors where all steps from zero points are integers of f32 and reciprocals finite.
class fake_channels {
  using A = simd::best_arch;
  static constexpr index_t step = simd::lanes<A>, tile = 512, long_run = 64;
  enum parameter { scale, inverse, low, high, parameters };
  using entries = std::array<const float*, parameters>;

 public:
  template <class Scales, class ZeroPoints>
  fake_channels(const Scales& scales, const ZeroPoints& zero_points, index_t count, index_t inner, std::int64_t first,
                std::int64_t last)
      : inner_(inner), first_(first), last_(last) {
    constexpr std::int64_t most = std::int64_t{1} << 23;
    zeros_.resize(static_cast<std::size_t>(count * divide_up(tile, count * inner)));  // channels of a tile, or all
    for (auto& values : values_) values.resize(zeros_.size() + step);
    for (std::size_t i = 0; i < zeros_.size(); ++i) {
      const index_t c = static_cast<index_t>(i) % count;
      const std::int64_t zero = zeros_[i] = static_cast<std::int64_t>(zero_points[c]);
      const float s = values_[scale][i] = static_cast<float>(scales[c]);
      values_[inverse][i] = rounded(1.f / s);
      values_[low][i] = static_cast<float>(first - zero), values_[high][i] = static_cast<float>(last - zero);
      by_vectors_ = by_vectors_ && is_finite(values_[inverse][i]) && zero - first <= most && last - zero <= most;
    }
  }

  /// to[i] = x[i] as it comes back, where x[0] is element `first`.
  void operator()(index_t first, const float* x, index_t n, float* to) const {
    const index_t period = static_cast<index_t>(zeros_.size()) * inner_;
    for (index_t i = 0, count; i < n; i += count, first += count) {
      const index_t at = first % period, c = at / inner_, inside = at % inner_, left = std::min(n - i, period - at);
      count = by_vectors_ && inner_ < long_run ? inner_ == 1 ? left : std::min(left, tile)
                                               : std::min(left, inner_ - inside);
      entries of_channel;
      for (std::size_t k = 0; k < parameters; ++k) of_channel[k] = values_[k].data() + c;
      if (!by_vectors_) {
        for (index_t k = i; k < i + count; ++k)
          to[k] = fake_quantize_element(x[k], *of_channel[scale], zeros_[static_cast<std::size_t>(c)], first_, last_);
      } else if (inner_ >= long_run) {
        run<false>(of_channel, x + i, count, to + i);
      } else if (inner_ == 1) {
        run<true>(of_channel, x + i, count, to + i);
      } else {
        alignas(64) float spread[parameters][tile + step];
        for (std::size_t k = 0; k < parameters; ++k) {
          simd::spread_entries<A>(of_channel[k], inner_, inside, count, spread[k]);
          of_channel[k] = spread[k];
        }
        run<true>(of_channel, x + i, count, to + i);
      }
    }
  }

 private:
  /// By entries of one channel, or (Each) of one for every element.
  template <bool Each>
  static void run(const entries& p, const float* x, index_t n, float* to) {
    for (index_t i = 0; i < n; i += step) {
      const auto of = [&](parameter k) { return Each ? simd::load<A>(p[k] + i) : simd::floats<A>(*p[k]); };
      const auto v = simd::load_n<A>(x + i, std::min(step, n - i));
      const auto q = simd::min(of(high), simd::max(of(low), simd::mul(v, of(inverse))));
      const auto steps = simd::select(simd::mask_as<std::int32_t>(v == v), simd::round_to_int(q), simd::ints<A>(0));
      simd::store_n(to + i, std::min(step, n - i), simd::mul(simd::to_float(steps), of(scale)));
    }
  }

  index_t inner_;
  std::int64_t first_, last_;
  bool by_vectors_ = true;
  std::vector<std::int64_t> zeros_;
  std::array<std::vector<float>, parameters> values_;
};

}  // namespace QTENSOR_ABI

}  // namespace detail

/// Scale and zero point that torch's MinMaxObserver computes from the range [low, high] with 0 in it, for the codes of
/// S: per_tensor_affine ...
template <quantization_scheme S>
constexpr static_parameters affine_parameters(float low, float high) {
  constexpr float eps = std::numeric_limits<float>::epsilon();
  low = low < 0.f ? low : 0.f;
  high = high > 0.f ? high : 0.f;
  float scale = (high - low) / (S::codes.high - S::codes.low);
  if (scale < eps) scale = eps;
  const auto first = static_cast<std::int64_t>(S::codes.low), last = static_cast<std::int64_t>(S::codes.high);
  const std::int64_t zero = first - round_to_integer<nearest_even>(low / scale);
  return {scale, zero < first ? first : zero > last ? last : zero};
}
/// ... and per_tensor_symmetric: the largest magnitude over half the number of steps (127.5 for 8 bits), zero point 0,
/// or 128 for quint8 (the middle of a narrower unsigned range).
template <quantization_scheme S>
constexpr static_parameters symmetric_parameters(float low, float high) {
  constexpr float eps = std::numeric_limits<float>::epsilon();
  const float down = low < 0.f ? -low : 0.f, up = high > 0.f ? high : 0.f;
  float scale = (down > up ? down : up) / ((S::codes.high - S::codes.low) / 2.f);
  if (scale < eps) scale = eps;
  if constexpr (S::code_format::is_signed)
    return {scale, 0};
  else
    return {scale, S::codes.high == 255.f ? 128 : static_cast<std::int64_t>((S::codes.low + S::codes.high) / 2.f)};
}

inline namespace QTENSOR_ABI {

/// torch.quantize_per_tensor: `quantize_per_tensor<quint8>(source(x, extents(3, 4)), 0.1, 10)`. The scale must be
/// finite and positive as a float, the zero point a code. on(executor) may come last, here and below.
template <quantization_scheme S, format X, tensor_extents Extents, qtensor::detail::execution_option... On>
tensor<S, Extents> quantize_per_tensor(const memory_source<X, Extents>& x, double scale, std::int64_t zero_point,
                                       const On&... on) {
  return quantize<S>(x, scale, zero_point, on...);
}

/// torch.quantize_per_channel: one scale and one zero point for every index of `axis`, which may be negative.
template <quantization_scheme S, format X, tensor_extents Extents, parameter_values Scales, parameter_values ZeroPoints,
          qtensor::detail::execution_option... On>
tensor<channels_of<S>, Extents> quantize_per_channel(const memory_source<X, Extents>& x, const Scales& scales,
                                                     const ZeroPoints& zero_points, int axis, const On&... on) {
  detail::check_axis(axis, Extents::rank);
  tensor<channels_of<S>, Extents> t(x.extents, axis_blocks::channels(axis));
  if (t.size() == 0) return t;  // has no blocks, whatever its channels
  store_scales(t.span(), scales);
  store_zero_points(t.span(), zero_points);
  quantize_static_into(t.span(), x, qtensor::detail::execution_among(on...));
  return t;
}

/// torch's x.dequantize(): dense floats in row-major order.
template <quantized T, qtensor::detail::execution_option... On>
std::vector<float> dequantize(const T& x, const On&... on) {
  const auto view = as_view(x);
  std::vector<float> out(static_cast<std::size_t>(view.size()));
  dequantize_into(view, out.data(), qtensor::detail::execution_among(on...));
  return out;
}

/// x.dequantize() of a tensor quantized per channel, with the bits of torch: its scales stay doubles there, and a value
/// is (q - zero point) * scale in double, rounded once. One scale an index of the axis, as given to
/// quantize_per_channel.
template <quantized T, parameter_values Scales, qtensor::detail::execution_option... On>
std::vector<float> dequantize_per_channel(const T& x, const Scales& scales, const On&... on) {
  const auto view = as_view(x);
  if (view.size() == 0) return {};
  const auto s = qtensor::ops::as_numbers<row_major>(scales);
  require(s.is_single || s.count == view.shape().scale_count(), "dequantize_per_channel is given ", s.count,
          " scales but the tensor has ", view.shape().scale_count(), " channels.");
  std::vector<float> out(static_cast<std::size_t>(view.size()));
  const auto convert = [&](const auto& w, index_t first_row, index_t rows) {
    constexpr std::size_t last = static_cast<std::size_t>(T::rank) - 1;
    constexpr index_t long_run = 16;
    const index_t length = w.storage_extents()[last];
    const auto &scale_at = w.scale_grid(), &zero_at = w.zero_grid();
    const index_t block = scale_at.block[last] == zero_at.block[last] ? scale_at.block[last] : 1;
    const bool by_runs = block >= std::min(length, long_run);
    std::vector<double> scale(static_cast<std::size_t>(by_runs ? 1 : length)), zero(scale);  // of a run, or of a row
    const auto load = [&](auto at, index_t first, index_t n) {
      for (index_t i = 0; i < n; ++i) {
        at[last] = first + i;
        scale[static_cast<std::size_t>(i)] = static_cast<double>(s[scale_at.entry(at)]);
        zero[static_cast<std::size_t>(i)] = static_cast<double>(w.storage_zero_point(at));
      }
    };
    index_t scale_entry = -1, zero_entry = -1;
    float* to = out.data() + first_row * length;
    for (index_t r = first_row; r < first_row + rows; ++r, to += length) {
      const auto at = ops::row_index(r, w.storage_extents());
      const auto* codes = w.row(at);
      const auto value = [&](index_t i, double of_scale, double of_zero) {
        return static_cast<float>((static_cast<double>(codes[i]) - of_zero) * of_scale);
      };
      if (by_runs) {
        for (index_t col = 0, end; col < length; col = end) {
          end = std::min(length, col + block);
          load(at, col, 1);
          for (index_t i = col; i < end; ++i) to[i] = value(i, scale[0], zero[0]);
        }
      } else {
        if (scale_entry != scale_at.entry(at) || zero_entry != zero_at.entry(at)) load(at, 0, length);
        scale_entry = scale_at.entry(at), zero_entry = zero_at.entry(at);
        const double *of_scale = scale.data(), *of_zero = zero.data();
        for (index_t i = 0; i < length; ++i) to[i] = value(i, of_scale[i], of_zero[i]);
      }
    }
  };
  const auto by = qtensor::detail::execution_among(on...).by;
  const auto convert_all = [&](const auto& w) {
    const index_t length = w.storage_extents()[w.storage_extents().size() - 1];
    qtensor::detail::in_ranges(by, w.size() / length, 1, length,
                               [&](index_t first, index_t rows) { convert(w, first, rows); });
  };
  const auto steps = dense_strides(view.storage_extents());
  if (!ops::with_joined_axes(view, steps, [&](const auto& w, const auto&...) { convert_all(w); })) convert_all(view);
  return out;
}

/// torch.fake_quantize_per_channel_affine: x as it comes back from codes quant_min .. quant_max, which are known at run
/// time, as dense floats in row-major order. Where they are known before, `qtensor::fake_quantize<qint8>(x, scale, zp)`
/// is the same by vector kernels. Scales and zero points are one an index of the axis.
template <format X, tensor_extents Extents, parameter_values Scales, parameter_values ZeroPoints,
          qtensor::detail::execution_option... On>
std::vector<float> fake_quantize_per_channel_affine(const memory_source<X, Extents>& x, const Scales& scales,
                                                    const ZeroPoints& zero_points, int axis, std::int64_t quant_min,
                                                    std::int64_t quant_max, const On&... on) {
  constexpr int rank = Extents::rank;
  detail::check_axis(axis, rank);
  const int along = qtensor::detail::from_front(axis, rank);
  const auto s = qtensor::ops::as_numbers<row_major>(scales);
  const auto z = qtensor::ops::as_numbers<row_major>(zero_points);
  const index_t channels = x.extents[along];
  require(quant_min <= quant_max, "quant_min ", quant_min, " is above quant_max ", quant_max, ".");
  require(
      quant_min >= std::numeric_limits<std::int32_t>::min() && quant_max <= std::numeric_limits<std::int32_t>::max(),
      "quant_min ", quant_min, " to quant_max ", quant_max, " are not 32-bit codes.");
  require((s.is_single || s.count == channels) && (z.is_single || z.count == channels), s.count, " scales and ",
          z.count, " zero points are given; axis ", axis, " needs ", channels, " of each.");
  for (index_t c = 0; c < (s.is_single && z.is_single ? 1 : channels); ++c)
    detail::check_fake(static_cast<double>(s[c]), z[c], quant_min, quant_max, c);

  const typename memory_source<X, Extents>::template in_order<row_major> elements(x);
  const auto& rows = as_floats(elements);
  std::vector<float> out(static_cast<std::size_t>(x.extents.size()));
  if (out.empty()) return out;
  const bool one = s.is_single && z.is_single;
  index_t inner = one ? x.extents.size() : 1;
  for (int axis_inside = rank - 1; !one && axis_inside > along; --axis_inside) inner *= x.extents[axis_inside];
  const detail::fake_channels quantize(s, z, one ? 1 : channels, inner, quant_min, quant_max);
  const auto convert = [&](index_t row, index_t row_count, index_t col, index_t cols) {
    float* const to = out.data() + row * rows.cols() + col;
    const ops::source_part some(rows, row, row_count, col, cols);
    ops::for_each_flat_piece(some, 1, ops::tile_floats, [&](index_t, index_t first, index_t n, const float* floats) {
      quantize(to - out.data() + first, floats, n, to + first);
    });
  };
  const auto by = qtensor::detail::execution_among(on...).by;
  if (rows.rows() > 1)
    qtensor::detail::in_ranges(by, rows.rows(), 1, rows.cols(),
                               [&](index_t first, index_t n) { convert(first, n, 0, rows.cols()); });
  else
    qtensor::detail::in_ranges(by, rows.cols(), 256, 1, [&](index_t first, index_t n) { convert(0, 1, first, n); });
  return out;
}

/// torch.fake_quantize_per_tensor_affine.
template <format X, tensor_extents Extents, qtensor::detail::execution_option... On>
std::vector<float> fake_quantize_per_tensor_affine(const memory_source<X, Extents>& x, double scale,
                                                   std::int64_t zero_point, std::int64_t quant_min,
                                                   std::int64_t quant_max, const On&... on) {
  return fake_quantize_per_channel_affine(x, scale, zero_point, 0, quant_min, quant_max, on...);
}

/// torch's MinMaxObserver over any number of batches: `affine<quint8>()` and `symmetric<qint8>()` are what its
/// calculate_qparams gives. Infinities and NaN are left out and counted, where torch would pass them on.
class min_max_observer : public range_calibrator {
 public:
  template <quantization_scheme S>
  static_parameters affine() const {
    return affine_parameters<S>(this->low(), this->high());
  }
  template <quantization_scheme S>
  static_parameters symmetric() const {
    return symmetric_parameters<S>(this->low(), this->high());
  }
};

}  // namespace QTENSOR_ABI

/// x.to(torch.float8_e4m3fn) and its relatives: nearest even; e4m3 saturates, infinities too, the others overflow to
/// infinity or NaN; NaN is S|7F, 80 for the fnuz formats; e8m0 rounds to nearest with ties up and drops the sign, but
/// all numbers between 2^-127 and 2^-126 are 2^-126, as torch looks at the bits of subnormals.
///   to_float8<e4m3>(1000.f) == 0x7E        to_float8<e5m2>(1e6f) == 0x7C
template <format F>
constexpr std::uint8_t to_float8(float x) {
  static_assert(std::is_same_v<F, e4m3> || std::is_same_v<F, e4m3fnuz> || std::is_same_v<F, e5m2> ||
                    std::is_same_v<F, e5m2fnuz> || std::is_same_v<F, e8m0>,
                "qtensor: torch has float8 types e4m3, e4m3fnuz, e5m2, e5m2fnuz and e8m0.");
  const std::uint32_t bits = bits_of(x) & magnitude_bits;
  if (std::is_same_v<F, e8m0> && bits > bits_of(0x1p-127f) && bits < bits_of(0x1p-126f)) return 1;
  if (std::is_same_v<F, e5m2> && is_nan(x)) return is_negative(x) ? 0xff : 0x7f;
  if constexpr (std::is_same_v<F, e8m0>)
    return static_cast<std::uint8_t>(encode<e8m0, nearest_away, to_special>(x));
  else if constexpr (std::is_same_v<F, e4m3>)
    return static_cast<std::uint8_t>(encode<e4m3>(x));
  else
    return static_cast<std::uint8_t>(encode<F, to_special>(x));
}

}  // namespace qtensor::compat::torch
