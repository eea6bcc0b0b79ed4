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

  T* at(index_t batch, index_t pixel, index_t channel) const {
    return data + batch * batch_stride + pixel * pixel_stride + channel * channel_stride;
  }
  /// To be stored at once: where channels lie apart, enough for lines of pixels, and many where they share places.
  index_t fewest_pixels() const {
    if (channel_stride == 1) return 2;
    return shares_places() ? convolution_pixels : 64 / index_t{sizeof(T)};
  }
  /// Whether channels lie in the same few places of a cache: there they push each other out before their lines are
  /// full.
  bool shares_places() const {
    constexpr index_t period = 1024 / index_t{sizeof(T)};
    return channel_stride % period == 0;
  }
};

/// The result of a layout: `result_in(y, plan.result("NHWC"))`. Throws where pixels are not evenly spaced, as between
/// padded rows.
template <class T>
convolution_result<T> result_in(T* data, const activation_map& m) {
  const index_t pixels = m.sizes[0] * m.sizes[1] * m.sizes[2];
  const bool empty = m.batch == 0 || m.channels == 0 || pixels == 0;  // strides say nothing
  index_t step = m.spatial[2], extent = m.sizes[2];
  for (std::size_t axis = 2; axis-- > 0;) {
    if (m.sizes[axis] == 1 || empty) continue;
    if (extent == 1)
      step = m.spatial[axis];
    else
      require(m.spatial[axis] == step * extent, "spatial axis ", axis, " of the result has the stride ",
              m.spatial[axis], ", not ", step * extent, "; spatial axes of a result are dense and in order.");
    extent *= m.sizes[axis];
  }
  return {data, pixels, m.batch_stride, step, m.channel_stride};
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

/// Throws unless a result has the pixels of a convolution.
template <class T>
void check_result(const convolution_result<T>& y, const convolution_shape& s) {
  require(s.is_empty() || y.pixels == s.pixels(), "the result has ", y.pixels, " pixels of a channel, the convolution ",
          s.pixels(), ".");
}

/// What there is to check before a convolution, and whether it has results: lists of as many outputs serve nothing
/// else.
template <simd::usable_arch A>
bool has_results(const packed_convolution<A>& w, const convolution_input& x, const convolution_scales& how) {
  check_scales(how, w.shape().outputs);
  return has_results(w, x);
}

/// convolution_scales as vectors of channels read them: lists have an entry for each, and for those that fill up a
/// tile.
template <simd::usable_arch A>
class channel_scales {
 public:
  channel_scales(const convolution_scales& how, index_t outputs) : scale_(how.scale) {
    const index_t n = outputs + convolution_stride<A>;
    scales_ = line_array<float>::for_overwrite(n);
    std::fill_n(scales_.data(), n, how.scales.size() == 1 ? how.scales[0] : 1.f);
    if (how.scales.size() > 1) std::ranges::copy(how.scales, scales_.data());
    bias_ = line_array<float>::for_overwrite(n);
    std::fill_n(bias_.data(), n, -0.f);  // changes no number, 0 would change -0
    std::ranges::copy(how.bias, bias_.data());
    if (!how.sum_bias.empty()) std::ranges::copy(how.sum_bias, (sum_bias_ = line_array<std::int32_t>(n)).data());
  }
  bool has_sum_bias() const { return sum_bias_.size() > 0; }

  /// Those of a vector of channels.
  template <bool HasSumBias>
  struct part {
    simd::floats<A> scale, scales, bias;
    simd::ints<A> sum_bias;

    QTENSOR_INLINE simd::floats<A> numbers(const std::int32_t* sums) const {
      simd::ints<A> sum = simd::load<A>(sums);
      if constexpr (HasSumBias) sum = sum + sum_bias;
      return simd::add(simd::mul(simd::mul(simd::to_float(sum), scale), scales), bias);
    }
  };
  template <bool HasSumBias>
  QTENSOR_INLINE part<HasSumBias> at(index_t channel) const {
    return {simd::floats<A>(scale_), simd::load<A>(scales_.data() + channel), simd::load<A>(bias_.data() + channel),
            HasSumBias ? simd::load<A>(sum_bias_.data() + channel) : simd::ints<A>(0)};
  }

 private:
  float scale_;
  line_array<float> scales_, bias_;
  line_array<std::int32_t> sum_bias_;
};

/// Copies some values, in pieces of sizes that need no call.
template <class T, class U>
QTENSOR_INLINE void copy_channels(const U* values, index_t channels, T* to) {
  index_t c = 0;
  const auto pieces_of = [&]<std::size_t Bytes>(std::integral_constant<std::size_t, Bytes>) QTENSOR_INLINE_LAMBDA {
    constexpr index_t piece = Bytes / sizeof(T);
    if constexpr (piece > 0)
      for (; c + piece <= channels; c += piece) std::memcpy(to + c, values + c, Bytes);
  };
  pieces_of(std::integral_constant<std::size_t, 64>{});
  pieces_of(std::integral_constant<std::size_t, 16>{});
  pieces_of(std::integral_constant<std::size_t, 4>{});
  pieces_of(std::integral_constant<std::size_t, sizeof(T)>{});
}

/// Values of a tile to where they belong. Of bytes there is room for `convolution_pixels`.
template <class T, class U>
void place_tile(const convolution_result<T>& y, index_t batch, index_t pixel, index_t channel, index_t pixels,
                index_t channels, const U* values, index_t stride) {
  static_assert(sizeof(T) == sizeof(U));
  T* to = y.at(batch, pixel, channel);
  if (y.channel_stride == 1) {
    for (index_t p = 0; p < pixels; ++p) copy_channels(values + p * stride, channels, to + p * y.pixel_stride);
  } else if (y.pixel_stride == 1) {
    // Elements move as others of their size do: nothing is computed with them.
    using unit =
        std::conditional_t<sizeof(T) == 1, std::uint8_t, std::conditional_t<sizeof(T) == 2, std::uint16_t, float>>;
    const index_t some = y.shares_places() ? (sizeof(T) == 1 ? 16 : 8) : channels;  // whose lines fit any first cache
    for (index_t c = 0; c < channels; c += some) {
      const index_t n = std::min(some, channels - c);
      const unit* const from = reinterpret_cast<const unit*>(values) + c;
      unit* const place = reinterpret_cast<unit*>(to) + c * y.channel_stride;
      if constexpr (sizeof(T) == 1)
        simd::transpose_in_room(from, stride, n, pixels, convolution_pixels, place, y.channel_stride);
      else
        simd::transpose(from, stride, n, pixels, place, y.channel_stride);
    }
  } else {
    for (index_t c = 0; c < channels; ++c)
      for (index_t p = 0; p < pixels; ++p)
        std::memcpy(to + p * y.pixel_stride + c * y.channel_stride, values + p * stride + c, sizeof(T));
  }
}

/// Whether a tile's rows are whole vectors in memory, too.
template <simd::usable_arch A, class T>
bool is_vectors(const convolution_result<T>& y, const convolution_tile& t) {
  return y.channel_stride == 1 && t.channels % simd::lanes<A> == 0;
}

/// The sink that writes sums.
template <simd::usable_arch A>
struct store_sums {
  static constexpr bool runs_beside = true;
  convolution_result<std::int32_t> y;
  bool is_direct() const { return y.channel_stride == 1; }
  template <index_t Channels>
  QTENSOR_INLINE auto direct(index_t batch, index_t pixel, index_t channel) const {
    return
        [to = y.at(batch, pixel, channel), apart = y.pixel_stride](index_t p, index_t count, const std::int32_t* sums)
            QTENSOR_INLINE_LAMBDA { copy(sums, Channels, count, Channels, to + p * apart, apart); };
  }
  QTENSOR_INLINE void operator()(const convolution_tile& t) const {
    if (is_vectors<A>(y, t))
      copy(t.sums, t.stride, t.pixels, t.channels, y.at(t.batch, t.pixel, t.channel), y.pixel_stride);
    else
      place_tile(y, t.batch, t.pixel, t.channel, t.pixels, t.channels, t.sums, t.stride);
  }

 private:
  /// Whole vectors of every pixel's sums.
  static QTENSOR_INLINE void copy(const std::int32_t* sums, index_t stride, index_t pixels, index_t channels,
                                  std::int32_t* to, index_t apart) {
    for (; pixels > 0; --pixels, to += apart, sums += stride)
      for (index_t c = 0; c < channels; c += simd::lanes<A>) simd::store(to + c, simd::load<A>(sums + c));
  }
};
/// The sink behind float_sink that writes floats.
struct store_numbers {
  static constexpr bool runs_beside = true;
  convolution_result<float> y;
  void operator()(const product_tile& t) const {
    place_tile(y, t.row / y.pixels, t.row % y.pixels, t.col, t.rows, t.cols, t.values, t.stride);
  }
};

/// Sums to floats, for a sink of product_tile: its row is batch * pixels + pixel, its column the channel.
template <simd::usable_arch A, class Next>
class float_sink {
  static constexpr index_t step = simd::lanes<A>;

 public:
  static constexpr bool runs_beside = simd::runs_beside<Next>;
  float_sink(const channel_scales<A>& scales, index_t pixels, const Next& next)
      : scales_(scales), pixels_(pixels), next_(next) {}
  index_t fewest_pixels() const { return ops::fewest_pixels(next_); }

  bool is_direct() const requires std::same_as<Next, store_numbers> {
    return next_.y.channel_stride == 1 && !scales_.has_sum_bias();
  }
  template <index_t Channels>
  QTENSOR_INLINE auto direct(index_t batch, index_t pixel,
                             index_t channel) const requires std::same_as<Next, store_numbers> {
    return [numbers = numbers_of<Channels / step, false>(channel), to = next_.y.at(batch, pixel, channel),
            apart = next_.y.pixel_stride](index_t p, index_t count, const std::int32_t* sums)
               QTENSOR_INLINE_LAMBDA { numbers(sums, Channels, count, to + p * apart, apart); };
  }

  void operator()(const convolution_tile& t) const {
    if constexpr (std::same_as<Next, store_numbers>)
      if (is_vectors<A>(next_.y, t)) return store(t, next_.y.at(t.batch, t.pixel, t.channel), next_.y.pixel_stride);
    alignas(64) float values[convolution_pixels * convolution_stride<A>];
    store(t, values, t.stride);
    next_(product_tile{t.batch * pixels_ + t.pixel, t.channel, t.pixels, t.channels, values, t.stride});
  }

 private:
  /// What makes numbers of so many vectors of channels, of pixels whose sums are `stride` apart.
  template <index_t Vectors, bool HasSumBias>
  QTENSOR_INLINE auto numbers_of(index_t channel) const {
    std::array<typename channel_scales<A>::template part<HasSumBias>, Vectors> parts;
    for (index_t v = 0; v < Vectors; ++v)
      parts[static_cast<std::size_t>(v)] = scales_.template at<HasSumBias>(channel + v * step);
    return [parts](const std::int32_t* sums, index_t stride, index_t count, float* to, index_t apart)
               QTENSOR_INLINE_LAMBDA {
                 for (; count > 0; --count, to += apart, sums += stride)
                   simd::detail::repeat<Vectors>([&](auto v) QTENSOR_INLINE_LAMBDA {
                     simd::store(to + v * step, parts[v].numbers(sums + v * step));
                   });
               };
  }
  /// Whole vectors of every pixel's numbers.
  void store(const convolution_tile& t, float* to, index_t stride) const {
    if (scales_.has_sum_bias())
      store<true>(t, to, stride);
    else
      store<false>(t, to, stride);
  }
  template <bool HasSumBias>
  QTENSOR_INLINE void store(const convolution_tile& t, float* to, index_t stride) const {
    const auto vectors = [&]<index_t Vectors>(index_t c) QTENSOR_INLINE_LAMBDA {
      numbers_of<Vectors, HasSumBias>(t.channel + c)(t.sums + c, t.stride, t.pixels, to + c, stride);
    };
    index_t c = 0;
    for (; c + 3 * step < t.channels; c += 4 * step) vectors.template operator()<4>(c);
    for (; c < t.channels; c += step) vectors.template operator()<1>(c);
  }

  const channel_scales<A>& scales_;
  index_t pixels_;
  const Next& next_;
};

/// The sink behind float_sink that writes codes of S, a scheme of 8-bit codes, under one scale and zero point.
template <quantization_scheme S>
struct store_codes {
  static_assert(S::code_format::bits == 8, "qtensor: a convolution is quantized to codes of 8 bits.");
  static constexpr bool runs_beside = true;
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
  static constexpr index_t step = simd::lanes<A>, block = 4 * step;
  static constexpr index_t most = convolution_pixels * convolution_stride<A>;

  template <simd::quotient_by By>
  struct parameters {
    simd::divisor<By, A> fast;
    float scale;
    simd::ints<A> zero;
    parameters(float scale_of_codes, std::int32_t zero_point)
        : fast(simd::divisor_of<S, By>(simd::floats<A>(scale_of_codes), 1.f)),
          scale(scale_of_codes),
          zero(zero_point) {}
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
  static constexpr bool runs_beside = true;
  code_sink(const channel_scales<A>& scales, const store_codes<S>& to)
      : scales_(scales),
        to_(to),
        is_regular_(simd::all(simd::regular_divisors<S>(simd::floats<A>(to.scale), 1.f))),
        regular_(to.scale, to.zero_point) {}
  /// Whether vectors can take this scale and zero point; else float_sink has to.
  static bool takes(float scale, std::int32_t zero_point) {
    return simd::regular_zero_point<S, A>(zero_point) && is_finite(scale) && scale > 0.f;
  }
  index_t fewest_pixels() const { return ops::fewest_pixels(to_); }

  bool is_direct() const { return is_regular_ && !scales_.has_sum_bias() && to_.y.channel_stride == 1; }
  template <index_t Channels>
  QTENSOR_INLINE auto direct(index_t batch, index_t pixel, index_t channel, index_t stride = Channels) const {
    static_assert(Channels == block || Channels == block / 2 || Channels == step);
    constexpr index_t pixels = block / Channels;
    return
        [codes = coder<pixels, false, encoder::fast>(scales_, channel, regular_), to = bytes_at(batch, pixel, channel),
         apart = to_.y.pixel_stride, stride](index_t p, index_t count, const std::int32_t* sums) QTENSOR_INLINE_LAMBDA {
          std::uint8_t* at = to + p * apart;
          for (; count >= pixels; count -= pixels, sums += pixels * stride, at += pixels * apart)
            if constexpr (pixels == 1)
              simd::store(at, codes(sums, stride));
            else
              simd::store_parts<pixels>(at, apart, codes(sums, stride));
          if (count == 0) return;
          alignas(64) std::uint8_t rest[block];
          simd::store(rest, codes(sums, stride, count));
          for (index_t i = 0; i < count; ++i) std::memcpy(at + i * apart, rest + i * Channels, Channels);
        };
  }

  QTENSOR_INLINE void operator()(const convolution_tile& t) const {
    // Where channels lie side by side, the codes of whole vectors go to their place at once.
    index_t c = 0;
    if (is_direct()) {
      const auto whole = [&]<index_t Channels>() QTENSOR_INLINE_LAMBDA {
        if (c + Channels > t.channels) return;
        direct<Channels>(t.batch, t.pixel, t.channel + c, t.stride)(0, t.pixels, t.sums + c);
        c += Channels;
      };
      whole.template operator()<block>();
      whole.template operator()<block / 2>();
      whole.template operator()<step>();
    }
    if (c < t.channels)
      encode_and_place({t.batch, t.pixel, t.channel + c, t.pixels, t.channels - c, t.sums + c, t.stride});
  }

 private:
  /// What makes a block of codes of the sums of one pixel's channels or, of a half or a quarter as many, of two or four
  /// pixels'.
  template <index_t Pixels, bool HasSumBias, simd::quotient_by By>
  struct coder {
    static constexpr index_t vectors = 4 / Pixels;  // of one pixel
    parameters<By> by;
    typename channel_scales<A>::template part<HasSumBias> of[vectors];
    QTENSOR_INLINE coder(const channel_scales<A>& scales, index_t channel, const parameters<By>& p) : by(p) {
      for (index_t v = 0; v < vectors; ++v) of[v] = scales.template at<HasSumBias>(channel + v * step);
    }
    /// Of `pixels` whose sums are `stride` apart; the last one fills up the block.
    QTENSOR_INLINE simd::bytes<A> operator()(const std::int32_t* sums, index_t stride, index_t pixels = Pixels) const {
      const auto numbers = [&]<index_t V>(std::integral_constant<index_t, V>) QTENSOR_INLINE_LAMBDA {
        constexpr index_t pixel = V / vectors, vector = V % vectors;
        const index_t at = pixel == 0 ? 0 : std::min(pixel, pixels - 1) * stride;
        return of[vector].numbers(sums + at + vector * step);
      };
      const std::array<simd::floats<A>, 4> y{
          numbers(std::integral_constant<index_t, 0>{}), numbers(std::integral_constant<index_t, 1>{}),
          numbers(std::integral_constant<index_t, 2>{}), numbers(std::integral_constant<index_t, 3>{})};
      return simd::encode_codes<S, By, A>(y, by);
    }
  };
  std::uint8_t* bytes_at(index_t batch, index_t pixel, index_t channel) const {
    return reinterpret_cast<std::uint8_t*>(to_.y.at(batch, pixel, channel));
  }

  [[gnu::noinline]] void encode_and_place(const convolution_tile& t) const {
    alignas(64) std::uint8_t codes[most];
    const auto encode = [&]<index_t Pixels>(const auto& p) {
      if (scales_.has_sum_bias())
        encode_tile<Pixels, true>(t, p, codes);
      else
        encode_tile<Pixels, false>(t, p, codes);
    };
    const index_t pixels = t.channels <= step ? 4 : t.channels <= 2 * step ? 2 : 1;  // of a block
    const auto encode_by = [&](const auto& p) {
      if (pixels == 4)
        encode.template operator()<4>(p);
      else if (pixels == 2)
        encode.template operator()<2>(p);
      else
        encode.template operator()<1>(p);
    };
    if (is_regular_)
      encode_by(regular_);
    else
      encode_by(parameters<encoder::safe>(to_.scale, to_.zero_point));
    place_tile(to_.y, t.batch, t.pixel, t.channel, t.pixels, t.channels, codes, block / pixels);
  }
  /// Codes of all pixels, block by block.
  template <index_t Pixels, bool HasSumBias, simd::quotient_by By>
  QTENSOR_INLINE void encode_tile(const convolution_tile& t, const parameters<By>& p, std::uint8_t* to) const {
    const coder<Pixels, HasSumBias, By> codes(scales_, t.channel, p);
    const std::int32_t* sums = t.sums;
    for (index_t r = 0; r < t.pixels; r += Pixels, sums += Pixels * t.stride, to += block)
      simd::store(to, codes(sums, t.stride, t.pixels - r));
  }

  const channel_scales<A>& scales_;
  const store_codes<S>& to_;
  bool is_regular_;
  parameters<encoder::fast> regular_;  // where it is
};

}  // namespace ops

/// The sums, exactly. Throws, as the others do, where y has other pixels than the plan.
template <simd::usable_arch A, executor By = serial>
void convolve_into(const packed_convolution<A>& w, const convolution_input& x,
                   const convolution_result<std::int32_t>& y, const By& by = {}) {
  ops::check_result(y, w.shape());
  convolve(w, x, ops::store_sums<A>{y}, by);
}
/// Floats: sums, scaled. Throws on lists of another number than outputs.
template <simd::usable_arch A, executor By = serial>
void convolve_into(const packed_convolution<A>& w, const convolution_input& x, const convolution_scales& how,
                   const convolution_result<float>& y, const By& by = {}) {
  ops::check_result(y, w.shape());
  if (!ops::has_results(w, x, how)) return;
  const ops::channel_scales<A> scales(how, w.shape().outputs);
  const ops::store_numbers store{y};
  convolve(w, x, ops::float_sink<A, ops::store_numbers>(scales, y.pixels, store), by);
}
/// Codes of S (int8 or uint8, one scale and zero point, static) of these floats.
template <quantization_scheme S, simd::usable_arch A, executor By = serial>
void convolve_into(const packed_convolution<A>& w, const convolution_input& x, const convolution_scales& how,
                   float scale, std::int32_t zero_point, const convolution_result<simd::code_unit_t<S>>& y,
                   const By& by = {}) {
  require(is_finite(scale) && scale > 0.f, "the result's scale is ", scale, "; a scale must be finite and positive.");
  ops::check_result(y, w.shape());
  if (!ops::has_results(w, x, how)) return;
  const ops::channel_scales<A> scales(how, w.shape().outputs);
  const ops::store_codes<S> store{y, scale, zero_point};
  if constexpr (simd::vector_encodable<S> && !std::same_as<A, simd::scalar_arch>)
    if (ops::code_sink<S, A>::takes(scale, zero_point)) return convolve(w, x, ops::code_sink<S, A>(scales, store), by);
  convolve(w, x, ops::float_sink<A, ops::store_codes<S>>(scales, y.pixels, store), by);
}
/// Anything: `epilogue` is called with every product_tile of these floats (row: batch * pixels + pixel) and may change
/// them and store them where it likes.
template <class Epilogue, simd::usable_arch A, executor By = serial>
requires std::invocable<const Epilogue&, const product_tile&>
void convolve_with(const packed_convolution<A>& w, const convolution_input& x, const convolution_scales& how,
                   const Epilogue& epilogue, const By& by = {}) {
  if (!ops::has_results(w, x, how)) return;
  const ops::channel_scales<A> scales(how, w.shape().outputs);
  convolve(w, x, ops::float_sink<A, Epilogue>(scales, w.shape().pixels(), epilogue), by);
}

}  // namespace qtensor::inline QTENSOR_ABI
