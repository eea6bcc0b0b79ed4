// Where a convolution's sums go: to memory as they are, as floats, or quantized again.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/ops/convolution.hpp>
#include <qtensor/ops/product.hpp>
#include <qtensor/simd/quantize.hpp>

namespace qtensor::inline QTENSOR_ABI {

/// A result in memory: pixel p (counted through depth, height and width) of channel c and batch n is
/// data[n * batch_stride + p * pixel_stride + c * channel_stride].
template <class T>
struct convolution_result {
  T* data;
  index_t pixels;  ///< of one channel and batch
  index_t batch_stride, pixel_stride, channel_stride;
};

/// The result of a layout: `result_in(y, plan.result("NHWC"))`. Throws where pixels are not evenly spaced, as between
/// padded rows.
template <class T>
convolution_result<T> result_in(T* data, const activation_map& m) {
  index_t step = m.spatial[2], extent = m.sizes[2];
  for (std::size_t axis = 2; axis-- > 0;) {
    if (m.sizes[axis] == 1 || m.sizes[0] * m.sizes[1] * m.sizes[2] == 0) continue;
    if (extent == 1)
      step = m.spatial[axis];
    else
      require(m.spatial[axis] == step * extent, "spatial axis ", axis, " of the result has the stride ",
              m.spatial[axis], ", not ", step * extent, "; spatial axes of a result are dense and in order.");
    extent *= m.sizes[axis];
  }
  return {data, m.sizes[0] * m.sizes[1] * m.sizes[2], m.batch_stride, step, m.channel_stride};
}

/// How sums become numbers, every step rounded to f32 on its own; empty lists and 1 leave a step out:
///   y = float(sum + sum_bias[c]);  y = y * scale;  y = y * scales[c];  y = y + bias[c]
/// Ours: scale is the source's, scales are the weights' (one, or one an output). sum + sum_bias is modulo 2^32.
struct convolution_scales {
  float scale = 1.f;
  std::span<const float> scales = {}, bias = {};
  std::span<const std::int32_t> sum_bias = {};
};

namespace ops {

/// Throws unless per-channel lists have an entry for each output (scales: or one).
inline void check_scales(const convolution_scales& how, index_t outputs) {
  const auto n = static_cast<std::size_t>(outputs);
  require(how.scales.size() <= 1 || how.scales.size() == n, "there are ", how.scales.size(), " scales for ", outputs,
          " outputs; there are none, 1 or ", outputs, ".");
  require(how.bias.empty() || how.bias.size() == n, "there are ", how.bias.size(), " biases for ", outputs,
          " outputs; there are none or ", outputs, ".");
  require(how.sum_bias.empty() || how.sum_bias.size() == n, "there are ", how.sum_bias.size(), " biases for ", outputs,
          " outputs; there are none or ", outputs, ".");
}

/// Sums to floats, for a sink of product_tile: its row is batch * pixels + pixel, its column the channel.
template <simd::usable_arch A, class Next>
class float_sink {
  static constexpr index_t step = simd::lanes<A>;

 public:
  float_sink(const convolution_scales& how, index_t pixels, const Next& next)
      : how_(how), pixels_(pixels), next_(next) {}

  void operator()(const convolution_tile& t) const {
    alignas(64) float values[convolution_pixels * convolution_stride<A>];
    for (index_t c = 0; c < t.channels; c += step) column(t, c, std::min(step, t.channels - c), values + c);
    next_(product_tile{t.batch * pixels_ + t.pixel, t.channel, t.pixels, t.channels, values, t.stride});
  }

 private:
  template <class T>
  static auto entries(std::span<const T> list, std::size_t at, index_t n) {
    return n == step ? simd::load<A>(&list[at]) : simd::load_n<A>(&list[at], n);
  }
  void column(const convolution_tile& t, index_t c, index_t n, float* to) const {
    const auto at = static_cast<std::size_t>(t.channel + c);
    const bool adds_ints = !how_.sum_bias.empty(), scales = !how_.scales.empty(), adds = !how_.bias.empty();
    simd::ints<A> sum_bias(0);
    simd::floats<A> scale(how_.scale), each(1.f), bias(0.f);
    if (adds_ints) sum_bias = entries(how_.sum_bias, at, n);
    if (how_.scales.size() == 1)
      each = simd::floats<A>(how_.scales[0]);
    else if (scales)
      each = entries(how_.scales, at, n);
    if (adds) bias = entries(how_.bias, at, n);
    const bool by_one = how_.scale == 1.f;
    for (index_t r = 0; r < t.pixels; ++r) {
      simd::ints<A> sum = simd::load<A>(t.sums + r * t.stride + c);
      if (adds_ints) sum = sum + sum_bias;
      simd::floats<A> y = simd::to_float(sum);
      if (!by_one) y = simd::mul(y, scale);
      if (scales) y = simd::mul(y, each);
      if (adds) y = simd::add(y, bias);
      simd::store(to + r * t.stride, y);
    }
  }

  const convolution_scales& how_;
  index_t pixels_;
  const Next& next_;
};

/// Values of a tile to where they belong.
template <class T, class U>
void place_tile(const convolution_result<T>& y, index_t batch, index_t pixel, index_t channel, index_t pixels,
                index_t channels, const U* values, index_t stride) {
  static_assert(sizeof(T) == sizeof(U));
  T* to = y.data + batch * y.batch_stride + pixel * y.pixel_stride + channel * y.channel_stride;
  if (y.channel_stride == 1) {
    for (index_t p = 0; p < pixels; ++p)
      std::memcpy(to + p * y.pixel_stride, values + p * stride, static_cast<std::size_t>(channels) * sizeof(T));
  } else if (y.pixel_stride == 1 && sizeof(T) == 1) {
    simd::transpose(reinterpret_cast<const std::uint8_t*>(values), stride, channels, pixels,
                    reinterpret_cast<std::uint8_t*>(to), y.channel_stride);
  } else if (y.pixel_stride == 1) {
    // Words move as floats do: nothing is computed with them.
    simd::transpose(reinterpret_cast<const float*>(values), stride, channels, pixels, reinterpret_cast<float*>(to),
                    y.channel_stride);
  } else {
    for (index_t c = 0; c < channels; ++c)
      for (index_t p = 0; p < pixels; ++p)
        std::memcpy(to + p * y.pixel_stride + c * y.channel_stride, values + p * stride + c, sizeof(T));
  }
}

/// The sink that writes sums.
struct store_sums {
  convolution_result<std::int32_t> y;
  void operator()(const convolution_tile& t) const {
    place_tile(y, t.batch, t.pixel, t.channel, t.pixels, t.channels, t.sums, t.stride);
  }
};
/// The sink behind float_sink that writes floats.
struct store_numbers {
  convolution_result<float> y;
  void operator()(const product_tile& t) const {
    place_tile(y, t.row / y.pixels, t.row % y.pixels, t.col, t.rows, t.cols, t.values, t.stride);
  }
};
/// The sink behind float_sink that writes codes of S, a scheme of 8-bit codes, under one scale and zero point.
template <quantization_scheme S>
struct store_codes {
  static_assert(S::code_format::bits == 8, "qtensor: a convolution is quantized to codes of 8 bits.");
  convolution_result<simd::code_unit_t<S>> y;
  float scale;
  std::int32_t zero_point;
  void operator()(const product_tile& t) const {
    constexpr index_t most = convolution_pixels * convolution_stride<simd::best_arch>;
    simd::code_unit_t<S> codes[most];
    // Narrow tiles are pushed together first.
    const index_t stride = 2 * t.cols <= t.stride ? t.cols : t.stride;
    if (stride != t.stride)
      for (index_t r = 1; r < t.rows; ++r) std::copy_n(t.values + r * t.stride, t.cols, t.values + r * stride);
    const index_t n = (t.rows - 1) * stride + t.cols;
    simd::best_kernel<simd::op::encode, S>::uniform(t.values, n, {scale, 1.f}, zero_point, codes);
    place_tile(y, t.row / y.pixels, t.row % y.pixels, t.col, t.rows, t.cols, codes, stride);
  }
};

/// float_sink and store_codes in one, four batches at a time.
template <simd::vector_encodable S, simd::usable_arch A>
class code_sink {
  using encoder = simd::vector_encoder<S, A>;
  static constexpr index_t step = simd::lanes<A>;
  static constexpr index_t most = convolution_pixels * convolution_stride<A>;

  template <simd::quotient_by By>
  struct parameters {
    simd::divisor<By, A> fast;
    float scale;
    simd::ints<A> zero;
    template <simd::quotient_by Wanted>
    QTENSOR_INLINE simd::divisor<Wanted, A> divide(int) const {
      if constexpr (Wanted == By)
        return fast;
      else
        return simd::divisor_of<S, Wanted>(simd::floats<A>(scale), 1.f);
    }
    QTENSOR_INLINE const simd::ints<A>& zero_points(int) const { return zero; }
  };

 public:
  code_sink(const convolution_scales& how, const store_codes<S>& to) : how_(how), to_(to) {}
  /// Whether vectors can take this scale and zero point; else float_sink has to.
  static bool takes(float scale, std::int32_t zero_point) {
    return simd::regular_zero_point<S, A>(zero_point) && is_finite(scale) && scale > 0.f;
  }

  void operator()(const convolution_tile& t) const {
    if (2 * t.channels <= t.stride) return float_sink<A, store_codes<S>>(how_, to_.y.pixels, to_)(t);
    if (simd::all(simd::regular_divisors<S>(simd::floats<A>(to_.scale), 1.f)))
      encode<encoder::fast>(t);
    else
      encode<encoder::safe>(t);
  }

 private:
  /// Entries of a list for the columns of a tile.
  template <class T>
  static const T* columns(std::span<const T> list, T none, const convolution_tile& t, T* room) {
    if (list.size() > 1 && t.channels == t.stride) return list.data() + t.channel;
    std::fill_n(room, t.stride, list.size() == 1 ? list[0] : none);
    if (list.size() > 1) std::copy_n(list.data() + t.channel, t.channels, room);
    return room;
  }

  template <simd::quotient_by By>
  void encode(const convolution_tile& t) const {
    constexpr index_t width = convolution_stride<A>;
    alignas(64) std::int32_t sum_bias_room[width];
    alignas(64) float scale_room[width], bias_room[width];
    const bool adds = !how_.bias.empty();
    const std::int32_t* sum_bias = columns(how_.sum_bias, 0, t, sum_bias_room);
    const float *scales = columns(how_.scales, 1.f, t, scale_room), *bias = columns(how_.bias, 0.f, t, bias_room);
    const parameters<By> p{simd::divisor_of<S, By>(simd::floats<A>(to_.scale), 1.f), to_.scale,
                           simd::ints<A>(to_.zero_point)};
    const simd::floats<A> scale(how_.scale);
    alignas(64) std::uint8_t codes[most];
    const index_t n = t.pixels * t.stride;
    // Where a pixel's channels are a whole block and lie side by side, codes go to their place at once.
    const bool direct = t.channels == 4 * step && t.stride == t.channels && to_.y.channel_stride == 1;
    auto* to = direct ? reinterpret_cast<std::uint8_t*>(to_.y.data) + t.batch * to_.y.batch_stride +
                            t.pixel * to_.y.pixel_stride + t.channel
                      : codes;
    const index_t to_step = direct ? to_.y.pixel_stride : 4 * step;
    for (index_t i = 0; i < n; i += 4 * step, to += to_step) {
      std::array<simd::floats<A>, 4> y;
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) {
        const index_t col = k * step < t.stride ? k * step : k * step - t.stride;  // a block is one pixel, or two
        y[static_cast<std::size_t>(k)] =
            value(t.sums + i + k * step, scale, sum_bias + col, scales + col, bias + col, adds);
      }
      simd::store(to, simd::encode_codes<S, By, A>(y, p));
    }
    if (!direct) place_tile(to_.y, t.batch, t.pixel, t.channel, t.pixels, t.channels, codes, t.stride);
  }
  static QTENSOR_INLINE simd::floats<A> value(const std::int32_t* sum, const simd::floats<A>& scale,
                                              const std::int32_t* sum_bias, const float* scales, const float* bias,
                                              bool adds) {
    const simd::floats<A> y = simd::to_float(simd::load<A>(sum) + simd::load<A>(sum_bias));
    const simd::floats<A> scaled = simd::mul(simd::mul(y, scale), simd::load<A>(scales));
    return adds ? simd::add(scaled, simd::load<A>(bias)) : scaled;
  }

  const convolution_scales& how_;
  const store_codes<S>& to_;
};

}  // namespace ops

/// The sums, exactly.
template <simd::usable_arch A, executor By = serial>
void convolve_into(const packed_convolution<A>& w, const convolution_input& x,
                   const convolution_result<std::int32_t>& y, const By& by = {}) {
  convolve(w, x, ops::store_sums{y}, by);
}
/// Floats: sums, scaled. Throws on lists of another number than outputs.
template <simd::usable_arch A, executor By = serial>
void convolve_into(const packed_convolution<A>& w, const convolution_input& x, const convolution_scales& how,
                   const convolution_result<float>& y, const By& by = {}) {
  ops::check_scales(how, w.shape().outputs);
  const ops::store_numbers store{y};
  convolve(w, x, ops::float_sink<A, ops::store_numbers>(how, y.pixels, store), by);
}
/// Codes of S (int8 or uint8, one scale and zero point, static) of these floats.
template <quantization_scheme S, simd::usable_arch A, executor By = serial>
void convolve_into(const packed_convolution<A>& w, const convolution_input& x, const convolution_scales& how,
                   float scale, std::int32_t zero_point, const convolution_result<simd::code_unit_t<S>>& y,
                   const By& by = {}) {
  ops::check_scales(how, w.shape().outputs);
  require(is_finite(scale) && scale > 0.f, "the result's scale is ", scale, "; a scale must be finite and positive.");
  const ops::store_codes<S> store{y, scale, zero_point};
  if constexpr (simd::vector_encodable<S> && !std::same_as<A, simd::scalar_arch>)
    if (ops::code_sink<S, A>::takes(scale, zero_point)) return convolve(w, x, ops::code_sink<S, A>(how, store), by);
  convolve(w, x, ops::float_sink<A, ops::store_codes<S>>(how, y.pixels, store), by);
}
/// Anything: `epilogue` is called with every product_tile of these floats (row: batch * pixels + pixel) and may change
/// them and store them where it likes.
template <class Epilogue, simd::usable_arch A, executor By = serial>
requires std::invocable<const Epilogue&, const product_tile&>
void convolve_with(const packed_convolution<A>& w, const convolution_input& x, const convolution_scales& how,
                   const Epilogue& epilogue, const By& by = {}) {
  ops::check_scales(how, w.shape().outputs);
  convolve(w, x, ops::float_sink<A, Epilogue>(how, w.shape().pixels(), epilogue), by);
}

}  // namespace qtensor::inline QTENSOR_ABI
