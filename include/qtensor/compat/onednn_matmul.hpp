// oneDNN's matmul with quantized operands: scales, zero points and groups on all sides, in its order (NUMERICS 5.3).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/compat/onednn_integers.hpp>
#include <qtensor/compat/onednn_reorder.hpp>
#include <qtensor/ops/matmul.hpp>

namespace qtensor::compat::onednn {

inline namespace QTENSOR_ABI {
namespace pieces {

/// x rounded to F, overflow to infinity; a NaN is the quiet one of its sign.
template <format F>
simd::floats<arch> rounded_to(const simd::floats<arch>& x) {
  using words = simd::words<arch>;
  const words nan = (simd::bits_as<std::uint32_t>(x) & words(sign_bit)) | words(bits_of(quiet_nan));
  if constexpr (std::is_same_v<F, bf16>)
    return simd::select(x == x, simd::rounded_to_bf16(x), simd::bits_as<float>(nan));
  else
    return simd::select(x == x, simd::rounded_to_f16(x), simd::bits_as<float>(nan));
}

/// An operand of float products, of which `matrix` is multiplied: (x - zero point) * scale, rounded to the math mode.
struct float_operand {
  static constexpr bool reads_rows = true, reads_twice = false;
  data_type type;
  const void* array;
  index_t row_count, col_count;
  numbers<float> zero, scale;
  math_mode math;
  index_t matrix = 0;

  index_t rows() const { return row_count; }
  index_t cols() const { return col_count; }
  const float* direct(index_t row, index_t col) const {
    const bool plain = type == data_type::f32 && math == math_mode::strict && !zero.given() && !scale.given();
    return plain ? static_cast<const float*>(array) + at(row, col) : nullptr;
  }
  void read(index_t row, index_t rows, index_t col, index_t cols, float* to, index_t stride) const {
    std::vector<float> room;
    for (index_t r = row; r < row + rows && cols > 0; ++r, to += stride) {
      load(type, array, at(r, col), cols, to);
      if (zero.given())
        apply(to, cols, zero.line(matrix, r, col, along::cols, cols, room), [](auto x, auto z) { return x - z; });
      if (scale.given())
        apply(to, cols, scale.line(matrix, r, col, along::cols, cols, room), [](auto x, auto s) { return x * s; });
      if (math == math_mode::bf16) round_all<bf16>(to, cols);
      if (math == math_mode::f16) round_all<f16>(to, cols);
    }
  }

 private:
  index_t at(index_t row, index_t col) const { return (matrix * row_count + row) * col_count + col; }
  template <format F>
  static void round_all(float* x, index_t n) {
    constexpr index_t lanes = simd::lanes<arch>;
    index_t i = 0;
    for (; i + lanes <= n; i += lanes) simd::store(x + i, rounded_to<F>(simd::load<arch>(x + i)));
    if (i < n) simd::store_n(x + i, n - i, rounded_to<F>(simd::load_n<arch>(x + i, n - i)));
  }
};

/// Floats times anything: weights become floats, (w - zero point) * scale, rounded to the math mode; one chain of fma
/// over k for each element; source scales after the sum, or before it where they vary along k.
class float_product {
 public:
  explicit float_product(const matmul_job& j)
      : j_(j),
        src_after_(j.src_scale.given() && j.src_scale.step.back() == 0),
        wei_after_(j.how.weight_scaling == weight_scaling::after_sum && j.wei_scale.given() &&
                   j.wei_scale.step[j.wei_dims.size() - 2] == 0),
        src_scale_(given_if(src_after_, j.src_scale), j.src_dims),
        wei_scale_(given_if(wei_after_, j.wei_scale), j.wei_dims),
        src_{
            j.src_type, j.src, j.m(), j.k(), {j.src_zero, j.src_dims}, {given_if(!src_after_, j.src_scale), j.src_dims},
            j.how.math},
        wei_{
            j.wei_type, j.wei, j.k(), j.n(), {j.wei_zero, j.wei_dims}, {given_if(!wei_after_, j.wei_scale), j.wei_dims},
            j.how.math} {}

  void operator()(index_t batch, float* d) {
    const index_t m = j_.m(), n = j_.n();
    const matrix_ref<float> y{d, m, n, n, 1};
    const auto x = in_memory(src_, j_.left(batch), src_room_);
    // A few rows multiply weights on their way.
    if (m <= ops::product_blocks::few_rows && wei_.direct(0, 0) == nullptr) {
      wei_.matrix = j_.right(batch);
      matmul_into(x, wei_, y);
    } else {
      matmul_into(x, in_memory(wei_, j_.right(batch), wei_room_), y);
    }
    const auto by = [](auto v, auto s) { return v * s; };
    std::vector<float> room;
    if (wei_after_)
      for (index_t r = 0; r < m; ++r) apply(d + r * n, n, wei_scale_.line(wei_.matrix, 0, 0, along::cols, n, room), by);
    if (src_after_)
      for (index_t r = 0; r < m; ++r) apply(d + r * n, n, src_scale_.line(src_.matrix, r, 0, along::rows, 1, room), by);
  }

 private:
  static detail::parameter_map given_if(bool is, const detail::parameter_map& p) {
    return is ? p : detail::parameter_map{};
  }
  /// A matrix of an operand where it lies, or read into `room`, where it may be already.
  static matrix_ref<const float> in_memory(float_operand& x, index_t matrix, ops::line_array<float>& room) {
    const bool held = x.matrix == matrix && room.size() > 0;
    x.matrix = matrix;
    const float* data = x.direct(0, 0);
    if (data == nullptr && !held) {
      room = ops::line_array<float>::for_overwrite(x.rows() * x.cols());
      x.read(0, x.rows(), 0, x.cols(), room.data(), x.cols());
    }
    return {data != nullptr ? data : room.data(), x.rows(), x.cols(), x.cols(), 1};
  }

  const matmul_job& j_;
  bool src_after_, wei_after_;
  numbers<float> src_scale_, wei_scale_;
  float_operand src_, wei_;
  ops::line_array<float> src_room_, wei_room_;
};

/// Whether the product is one of integers; refuses ranks and types that oneDNN does not multiply.
inline bool multiplies_integers(std::span<const index_t> src_dims, data_type src, std::span<const index_t> wei_dims,
                                data_type wei) {
  require(src_dims.size() >= 2 && src_dims.size() <= static_cast<std::size_t>(most_dims) &&
              wei_dims.size() == src_dims.size(),
          "a matmul of tensors of rank ", src_dims.size(), " and ", wei_dims.size(),
          "; both have as many dimensions, from 2 to 12.");
  const bool integers = (src == data_type::s8 || src == data_type::u8) && is_integer(wei) && wei != data_type::s32;
  const bool floats = src == data_type::f32 || src == data_type::bf16 || src == data_type::f16 ||
                      src == data_type::f8_e4m3 || src == data_type::f8_e5m2;
  require(integers || (floats && bits_of_type(wei) != 0 && wei != data_type::s32 && wei != data_type::e8m0),
          "a matmul of ", name_of(src), " by ", name_of(wei),
          "; sources are s8, u8 (with s8, u8, s4, u4 weights), f32, bf16, f16, f8_e4m3 and f8_e5m2.");
  return integers;
}

/// Refuses sums of the source that do not serve the weights' zero points.
inline void check_reductions(const matmul_job& j, bool integers) {
  const parameter& given = j.how.precomputed_reductions;
  if (given.data == nullptr) return;
  require(integers && j.wei_zero.given(),
          "precomputed reductions are given without zero points of integer weights; they only serve those.");
  const int all = (1 << j.src_dims.size()) - 1;
  require(given.mask == all && given.type == data_type::s32, "precomputed reductions have the mask ", given.mask,
          " and type ", name_of(given.type), "; they are s32 and vary along every dimension (mask ", all, ").");
  const std::size_t last = j.src_dims.size() - 1;
  require(j.reductions.run[last - 1] == 1, "precomputed reductions are shared by ", j.reductions.run[last - 1],
          " rows of the source; there is one for each.");
  const index_t wei_group = j.wei_zero.step[last - 1] != 0 ? j.wei_zero.run[last - 1] : j.k();
  require(j.reductions.run[last] == wei_group, "precomputed reductions sum over ", j.reductions.run[last],
          " elements and the weights' zero points are shared by ", wei_group, "; they must be equal.");
  require(j.group() == wei_group, "precomputed reductions sum over ", wei_group,
          " elements, of which other scales or zero points share only ", j.group(), "; no group may be smaller.");
}

/// Refuses what a matmul into it would overwrite while it is read.
inline void check_apart(const detail::extent& written, const matmul_job& j) {
  const auto src = detail::extent::of("the source", j.src, j.src_type, onednn::element_count(j.src_dims));
  const auto wei = detail::extent::of("the weights", j.wei, j.wei_type, onednn::element_count(j.wei_dims));
  require(!written.overlaps(src) && !written.overlaps(wei),
          "the destination overlaps an operand; a matmul in place is not possible.");
  for (const detail::parameter_map* p : {&j.src_scale, &j.src_zero, &j.wei_scale, &j.wei_zero, &j.reductions})
    if (p->given())
      require(!written.overlaps(detail::extent::of("a scale or zero point", p->data, p->type, p->count)),
              "the destination overlaps a scale or zero point that is read.");
}

/// The bias as floats, one for each of n columns or of the destination's elements; none where there is none.
inline std::vector<float> bias_floats(const bias_argument& bias, const std::vector<index_t>& dst_dims, index_t n) {
  if (bias.data == nullptr) return {};
  detail::check_plain_type("the bias", bias.type);
  const index_t count = onednn::element_count(bias.dims);
  detail::extent::of("the bias", bias.data, bias.type, count);  // throws where it is not aligned
  require(bias.dims.back() == n && (count == n || bias.dims == dst_dims), "the bias has ", count,
          " elements; it has one for each of ", n, " columns, or the dimensions of the destination.");
  std::vector<float> all(static_cast<std::size_t>(count));
  load(bias.type, bias.data, 0, count, all.data());
  return all;
}

/// How d becomes the destination; refuses choices that are none.
inline attributes result_attributes(const matmul_attributes& how) {
  attributes into = how.into;
  into.src_scale = into.src_zero_point = {};
  into.beta = 0.f;
  check_choices(into);
  detail::check_choice("matmul_attributes::math", how.math, math_mode::f16);
  detail::check_choice("matmul_attributes::weight_scaling", how.weight_scaling, weight_scaling::after_sum);
  detail::check_choice("matmul_attributes::reductions_of", how.reductions_of, reductions_of::shifted);
  return into;
}
/// Whether d is only copied to a destination of this type.
inline bool keeps_floats(const attributes& into, data_type dst_type) {
  const auto absent = [](const parameter& p) { return p.data == nullptr && p.mask == 0 && p.groups.empty(); };
  return dst_type == data_type::f32 && absent(into.dst_scale) && absent(into.dst_zero_point) &&
         into.rounding == rounding_mode::nearest_even && into.zero_sign == zero_sign::kept;
}

}  // namespace pieces

/// What matmul does after the bias unless told otherwise: nothing.
struct no_post_ops {
  void operator()(std::span<float>) const {}
};

/// dst = src x weights, [..., M, K] x [..., K, N] with leading dimensions broadcast as numpy.matmul does; all tensors
/// are dense and row-major, of rank 2 to 12. Every step is rounded to f32:
///   integers (s8, u8 by s8, u8, s4, u4), for each group of k that shares all parameters, in order:
///     d = d + RN(RN(float(sum of (src - zero point) (weight - zero point)) * src scale) * weight scale)
///   where sums are exact modulo 2^32, as oneDNN's accumulators of 32 bits: the caller sees to it that they fit
///   floats (f32, bf16, f16 by anything): weights (w - zero point) * scale first, then the sums, then the src scale
/// then d = d + bias, post_ops(all of d), and the code of d / destination scale + destination zero point as `reorder`
/// makes it. With precomputed reductions R the zero points z of weights come in as - R z, and + k z (source zero point)
/// where R sums codes; the release leaves the last term out (`reductions_of::shifted`).
///
/// Throws before anything is written where types, masks, groups, sizes or buffers do not fit, and on precomputed
/// reductions without weight zero points or with another shape than one for every row and group. Allocates what
/// of the operands is no f32 or 8-bit codes, a matrix at a time, and d where it is not dst.
template <class PostOps = no_post_ops>
void matmul(std::span<const index_t> src_dims, data_type src_type, const void* src, std::span<const index_t> wei_dims,
            data_type wei_type, const void* wei, const bias_argument& bias, data_type dst_type, void* dst,
            const matmul_attributes& how = {}, const PostOps& post_ops = {}) {
  const bool integers = pieces::multiplies_integers(src_dims, src_type, wei_dims, wei_type);
  pieces::matmul_job j{{src_dims.begin(), src_dims.end()},
                       {wei_dims.begin(), wei_dims.end()},
                       src_type,
                       wei_type,
                       src,
                       wei,
                       detail::map_of("the source scale", how.src_scale, src_dims, true),
                       detail::map_of("the source zero point", how.src_zero_point, src_dims, false),
                       detail::map_of("the weights' scale", how.wei_scale, wei_dims, true),
                       detail::map_of("the weights' zero point", how.wei_zero_point, wei_dims, false),
                       detail::map_of("the source's reductions", how.precomputed_reductions, src_dims, false),
                       how};
  const std::vector<index_t> dst_dims = j.batches.dims;
  pieces::check_reductions(j, integers);
  const index_t dst_count = onednn::element_count(dst_dims);
  pieces::check_apart(detail::extent::of("the destination", dst, dst_type, dst_count), j);
  const std::vector<float> bias_values = pieces::bias_floats(bias, dst_dims, j.n());
  const attributes into = pieces::result_attributes(how);
  const bool in_place = pieces::keeps_floats(into, dst_type);  // results that only are copied are made there
  auto sums = ops::line_array<float>::for_overwrite(in_place ? 0 : dst_count);
  const std::span<float> d(in_place ? static_cast<float*>(dst) : sums.data(), static_cast<std::size_t>(dst_count));

  j.join_rows();
  const auto multiply = [&](auto product) {
    for (index_t i = 0; i < j.batches.count(); ++i) product(i, d.data() + i * j.m() * j.n());
  };
  if (dst_count > 0) {
    if (src_type == data_type::u8)
      multiply(pieces::code_product<uint8>(j));
    else if (src_type == data_type::s8)
      multiply(pieces::code_product<int8>(j));
    else
      multiply(pieces::float_product(j));
  }
  const auto add = [](auto x, auto b) { return x + b; };
  for (index_t i = 0, b = 0; !bias_values.empty() && i < dst_count; i += j.n(), b += j.n()) {
    if (b == static_cast<index_t>(bias_values.size())) b = 0;
    pieces::apply(d.data() + i, j.n(), std::span<const float>(bias_values).subspan(static_cast<std::size_t>(b)), add);
  }
  post_ops(d);
  if (!in_place) reorder(dst_dims, data_type::f32, d.data(), dst_type, dst, into);
}

}  // namespace QTENSOR_ABI

}  // namespace qtensor::compat::onednn
