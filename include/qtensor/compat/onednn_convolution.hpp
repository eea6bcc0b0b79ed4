// oneDNN: int8 convolution on memory of run-time types, by the order of its reference (NUMERICS 5.4).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/compat/onednn_attributes.hpp>
#include <qtensor/compat/onednn_elements.hpp>
#include <qtensor/ops/convolution_sinks.hpp>

namespace qtensor::compat::onednn {

/// A convolution as oneDNN describes it, with layouts by letters (ops/convolution_shape.hpp): "NHWC" for nhwc, "OIHW"
/// for oihw, "GOIHW" for goihw. Weights have G if and only if there is more than one group, or G may be 1. dilates
/// count the elements left out: 0 is dense. Padding may differ at both ends. Empty lists are their defaults.
struct convolution_description {
  data_type src_type = data_type::u8, weights_type = data_type::s8, dst_type = data_type::f32;
  data_type bias_type = data_type::undef;  ///< undef: no bias; f32, bf16, f16, s32, s8 or u8
  convolution_layout src = {}, weights = {};
  std::string_view dst_order = "NHWC";
  std::vector<index_t> strides = {}, dilates = {}, padding_l = {}, padding_r = {};
};

/// Scales and zero points; their masks count dimensions in oneDNN's logical order (N, C, ...; [G,] O, I, ...). Weights
/// have one scale, or one an output: mask 1, with groups 3. Zero points of the source and destination are single, those
/// of the weights as the scales.
struct convolution_attributes {
  parameter src_scale = {}, weights_scale = {}, dst_scale = {};
  parameter src_zero_point = {}, weights_zero_point = {}, dst_zero_point = {};
  onednn::division division = division::exact;  ///< by dst_scale, or times RN(1 / dst_scale)
};

inline namespace QTENSOR_ABI {

namespace pieces {

/// One number of a parameter that does not vary; `otherwise` where it is not given.
inline float single_scale(std::string_view what, const parameter& p) {
  if (p.data == nullptr) return 1.f;
  require(p.mask == 0 && p.groups.empty(), what, " has the mask ", p.mask, "; in a convolution it is 0.");
  require(detail::is_scale_type(p.type), what, " is of type ", name_of(p.type),
          "; scales are f32, bf16, f16, f8_e5m2, f8_e4m3 or e8m0.");
  float s;
  load(p.type, p.data, 0, 1, &s);
  return s;
}
inline std::int64_t single_zero_point(std::string_view what, const parameter& p) {
  if (p.data == nullptr) return 0;
  require(p.mask == 0 && p.groups.empty(), what, " has the mask ", p.mask, "; in a convolution it is 0.");
  require(is_integer(p.type), what, " is of type ", name_of(p.type), "; zero points are s32, s8, u8, s4 or u4.");
  return integer_at(p.type, p.data, 0);
}
/// The entries of a parameter of weights: 1, or one an output.
inline index_t weights_entries(std::string_view what, const parameter& p, bool grouped, index_t outputs) {
  const int each = grouped ? 3 : 1;
  require((p.mask == 0 || p.mask == each) && p.groups.empty(), what, " has the mask ", p.mask,
          "; in a convolution it is 0, or ", each,
          " for one entry an output; scales along the input channels need a float product (convolve_floats).");
  return p.mask == 0 ? 1 : outputs;
}

/// The sink of a convolution: d / dst_scale + dst_zero_point to a code, from d in f32.
struct destination {
  convolution_result<std::byte> y;  // strides in elements
  data_type type;
  float scale, zero_point;
  bool scales, shifts, inverts;

  void operator()(product_tile t) const {
    // Narrow tiles are pushed together first: all rows of a tile are one run.
    if (2 * t.cols <= t.stride) {
      for (index_t r = 1; r < t.rows; ++r) std::copy_n(t.values + r * t.stride, t.cols, t.values + r * t.cols);
      t.stride = t.cols;
    }
    float* const d = t.values;
    const index_t n = (t.rows - 1) * t.stride + t.cols;
    const float inverse = 1.f / scale;
    if (scales)
      for (index_t i = 0; i < n; ++i) d[i] = inverts ? d[i] * inverse : d[i] / scale;
    settle(d);
    if (shifts)
      for (index_t i = 0; i < n; ++i) d[i] += zero_point;
    if (type == data_type::f32)
      place(t, d);
    else if (type == data_type::s32)
      encode<std::uint32_t>(t, n);
    else if (type == data_type::bf16 || type == data_type::f16)
      encode<std::uint16_t>(t, n);
    else
      encode<std::uint8_t>(t, n);
  }

 private:
  /// Elements as T, and where they belong.
  template <class T>
  void encode(const product_tile& t, index_t n) const {
    alignas(64) T codes[static_cast<std::size_t>(convolution_pixels * convolution_stride<arch>)];
    store(type, t.values, n, codes, 0);
    place(t, codes);
  }
  template <class T>
  void place(const product_tile& t, const T* values) const {
    const convolution_result<T> to{reinterpret_cast<T*>(y.data), y.pixels, y.batch_stride, y.pixel_stride,
                                   y.channel_stride};
    ops::place_tile(to, t.row / y.pixels, t.row % y.pixels, t.col, t.rows, t.cols, values, t.stride);
  }
};

/// What stands between the scaled sums and the destination: the caller's, then `destination`.
template <class PostOps>
struct with_post_ops {
  const PostOps& post_ops;
  destination store;
  void operator()(const product_tile& t) const {
    post_ops(t);
    store(t);
  }
};
struct no_post_ops {
  void operator()(const product_tile&) const {}
};

/// The bytes from the first to the last that a layout of bytes has, counted from its first element. Throws where these
/// are more than 63 bits count.
struct byte_range {
  index_t first = 0, end = 0;

  explicit byte_range(const convolution_layout& l) : end(element_count(l.extents)) {
    if (l.strides.empty() || end == 0) return;
    end = 1;
    for (std::size_t d = 0; d < l.extents.size(); ++d) {
      const index_t far = qtensor::detail::checked_product(l.extents[d] - 1, l.strides[d]);
      index_t& side = far < 0 ? first : end;
      require(!__builtin_add_overflow(side, far, &side), "the source reaches over more bytes than 63 bits count.");
    }
  }
};

inline simd::code_sign sign_of(std::string_view what, data_type type) {
  require(type == data_type::s8 || type == data_type::u8, what, " is of type ", name_of(type),
          "; an integer convolution takes s8 and u8.");
  return type == data_type::s8 ? simd::code_sign::is_signed : simd::code_sign::is_unsigned;
}

}  // namespace pieces

/// An int8 convolution with its weights packed: made once, run any number of times.
///   d = float(sum) * src_scale;  d = d * weights_scale[o];  d = d + bias[o];  post-ops;  d = d / dst_scale +
///   dst_zero_point
/// where sum is exact, with padding of real value 0, and every step is rounded to f32; into integers d saturates and
/// goes to the nearest, ties to even, into others to the nearest. A NaN becomes 0 in s8 and u8, anything in s32.
class integer_convolution {
 public:
  /// Copies what it needs of weights, bias and parameters. Throws on types, layouts, masks and extents that do not fit,
  /// on weights that are null, and where a sum might leave 32 bits.
  integer_convolution(const convolution_description& d, const void* weights, const void* bias = nullptr,
                      const convolution_attributes& how = {})
      : dst_type_(d.dst_type),
        src_sign_(pieces::sign_of("the source", d.src_type)),
        dst_order_(d.dst_order),
        weights_(plan_of(d), {weights, weights_sign(d, weights), zeros_of(d, how)}),
        src_bytes_(d.src) {
    const index_t outputs = shape().outputs;
    detail::check_plain_type("the destination of a convolution", dst_type_);
    result_in(static_cast<std::byte*>(nullptr), weights_.plan().result(dst_order_));
    src_scale_ = pieces::single_scale("the source scale", how.src_scale);
    const index_t entries = pieces::weights_entries("the weights scale", how.weights_scale, is_grouped(d), outputs);
    if (how.weights_scale.data != nullptr) {
      require(detail::is_scale_type(how.weights_scale.type), "the weights scale is of type ",
              name_of(how.weights_scale.type), "; scales are f32, bf16, f16, f8_e5m2, f8_e4m3 or e8m0.");
      scales_ = floats_of(how.weights_scale.type, how.weights_scale.data, entries);
    }
    dst_scale_ = pieces::single_scale("the destination scale", how.dst_scale);
    scales_dst_ = how.dst_scale.data != nullptr;
    inverts_ = how.division == division::reciprocal;
    dst_zero_ = static_cast<float>(pieces::single_zero_point("the destination zero point", how.dst_zero_point));
    shifts_ = how.dst_zero_point.data != nullptr;
    const std::int64_t zero = pieces::single_zero_point("the source zero point", how.src_zero_point);
    src_zero_ = static_cast<std::int32_t>(zero);
    ops::check_source_zero(weights_, src_zero_, src_sign_);
    if (d.bias_type != data_type::undef) {
      require(bias != nullptr, "the bias is null, but has the type ", name_of(d.bias_type), ".");
      detail::check_plain_type("the bias", d.bias_type);
      bias_ = floats_of(d.bias_type, bias, outputs);
    }
  }

  const convolution_shape& shape() const { return weights_.shape(); }
  /// Elements of the destination.
  index_t dst_elements() const { return shape().result_batch() * shape().outputs * shape().pixels(); }

  /// Runs it. `post_ops` is called with tiles of floats in the first cache (product_tile: row = batch * pixels + pixel,
  /// column = output channel) between bias and destination scale, and may change them. Throws before anything is
  /// written on buffers that are null or not aligned, and on a destination that overlaps the source.
  template <class PostOps = pieces::no_post_ops, executor By = serial>
  void operator()(const void* src, void* dst, const PostOps& post_ops = {}, const By& by = {}) const {
    const activation_map m = weights_.plan().result(dst_order_);
    const index_t first = src == nullptr ? 0 : src_bytes_.first;
    const auto read = detail::extent::of("the source", static_cast<const std::byte*>(src) + first, data_type::u8,
                                         src_bytes_.end - first),
               written = detail::extent::of("the destination", dst, dst_type_, dst_elements());
    require(!written.overlaps(read), "the destination overlaps the source; a convolution in place is not possible.");
    const pieces::destination store{
        result_in(static_cast<std::byte*>(dst), m), dst_type_, dst_scale_, dst_zero_, scales_dst_, shifts_, inverts_};
    convolve_with(weights_, {src, src_sign_, src_zero_}, {src_scale_, scales_, bias_, {}},
                  pieces::with_post_ops<PostOps>{post_ops, store}, by);
  }

 private:
  static std::vector<float> floats_of(data_type type, const void* array, index_t n) {
    std::vector<float> out(static_cast<std::size_t>(n));
    for (index_t i = 0; i < n; ++i) pieces::load(type, array, i, 1, &out[static_cast<std::size_t>(i)]);
    return out;
  }
  static bool is_grouped(const convolution_description& d) {
    return d.weights.order.find('G') != std::string_view::npos;
  }
  static convolution_plan plan_of(const convolution_description& d) {
    convolution_options how{d.strides, {}, {}, d.padding_l, d.padding_r};
    for (const index_t e : d.dilates) {
      require(e >= 0 && e < std::numeric_limits<index_t>::max(), "an entry of the dilates is ", e,
              "; it is at least 0, and 0 is a dense kernel.");
      how.dilations.push_back(e + 1);
    }
    for (std::size_t i = 0; i < d.weights.order.size() && i < d.weights.extents.size(); ++i)
      if (d.weights.order[i] == 'G') how.groups = d.weights.extents[i];
    return plan_convolution(d.src, d.weights, how);
  }
  static simd::code_sign weights_sign(const convolution_description& d, const void* weights) {
    const simd::code_sign sign = pieces::sign_of("the weights", d.weights_type);
    plan_of(d);  // what is wrong with extents is said first
    detail::extent::of("the weights", weights, d.weights_type, element_count(d.weights.extents));
    return sign;
  }
  struct zero_list {
    std::vector<std::int32_t> values;
    operator std::span<const std::int32_t>() const { return values; }
  };
  static zero_list zeros_of(const convolution_description& d, const convolution_attributes& how) {
    const parameter& p = how.weights_zero_point;
    zero_list out;
    if (p.data == nullptr) return out;
    require(is_integer(p.type), "the weights zero point is of type ", name_of(p.type),
            "; zero points are s32, s8, u8, s4 or u4.");
    const index_t n = pieces::weights_entries("the weights zero point", p, is_grouped(d), plan_of(d).shape.outputs);
    for (index_t i = 0; i < n; ++i)
      out.values.push_back(static_cast<std::int32_t>(pieces::integer_at(p.type, p.data, i)));
    return out;
  }

  data_type dst_type_;
  simd::code_sign src_sign_;
  std::string dst_order_;
  packed_convolution<> weights_;
  pieces::byte_range src_bytes_;
  std::vector<float> scales_, bias_;
  float src_scale_ = 1.f, dst_scale_ = 1.f, dst_zero_ = 0.f;
  std::int32_t src_zero_ = 0;
  bool scales_dst_ = false, shifts_ = false, inverts_ = false;
};

}  // namespace QTENSOR_ABI

}  // namespace qtensor::compat::onednn
