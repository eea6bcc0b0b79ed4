// oneDNN's matmul with quantized operands: scales, zero points and groups on all sides, in its order (NUMERICS 5.3).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <numeric>
#include <qtensor/compat/onednn_reorder.hpp>
#include <qtensor/ops/batches.hpp>
#include <qtensor/ops/code_matrix.hpp>
#include <qtensor/ops/matmul.hpp>
#include <qtensor/ops/product_int8.hpp>

namespace qtensor::compat::onednn {

/// Which floats weight-only products multiply: as they are, or rounded to bf16 or f16 after scale and zero point.
enum class math_mode { strict, bf16, f16 };
/// What precomputed reductions are sums of: the source's codes (as documented), or codes less the zero point (what
/// release 3.12.1 computes with).
enum class reductions_of { codes, shifted };

/// Where weight-only products multiply by the weights' scale: each weight, as documented, or the sums, as kernels do
/// with scales that do not vary along K (others are always the weights').
enum class weight_scaling { before_sum, after_sum };

/// How `matmul` computes. Scales and zero points belong to the dims of their tensor; those along K may have groups, of
/// the same or of other sizes. `into` says how results become codes: its destination scale and zero point, and the
/// choices of a reorder; its source parameters and beta are not used.
struct matmul_attributes {
  parameter src_scale = {}, src_zero_point = {}, wei_scale = {}, wei_zero_point = {};
  /// Sums of the source over the groups of wei_zero_point, s32, with the dims of the source: they replace its own sums.
  parameter precomputed_reductions = {};
  onednn::reductions_of reductions_of = reductions_of::codes;
  math_mode math = math_mode::strict;
  onednn::weight_scaling weight_scaling = weight_scaling::before_sum;
  attributes into = {};
};

/// A bias or none: floats (f32, bf16, f16, s32, s8, u8), one for each of N or for each element of [..., M, N].
struct bias_argument {
  const void* data = nullptr;
  data_type type = data_type::undef;
  std::vector<index_t> dims = {};
};

namespace detail {

/// The smallest number of k that share every parameter: the greatest common divisor of all groups along K.
inline index_t shared_group(index_t k, std::initializer_list<std::pair<const parameter_map*, std::size_t>> along_k) {
  index_t group = k;
  for (const auto& [p, axis] : along_k)
    if (p->given() && p->step[axis] != 0) group = std::gcd(group, p->run[axis]);
  return std::max(group, index_t{1});
}

/// The entry of a parameter for an element of matrix i of its tensor.
inline index_t entry_of(const parameter_map& p, std::span<const index_t> dims, index_t matrix, index_t row,
                        index_t col) {
  const std::size_t rank = dims.size();
  index_t at = row / p.run[rank - 2] * p.step[rank - 2] + col / p.run[rank - 1] * p.step[rank - 1];
  for (std::size_t d = rank - 2; d-- > 0; matrix /= dims[d]) at += matrix % dims[d] / p.run[d] * p.step[d];
  return at;
}

}  // namespace detail

inline namespace QTENSOR_ABI {

namespace pieces {

/// One product: its operands, found valid.
struct matmul_job {
  product_batches batches;
  std::vector<index_t> src_dims, wei_dims, dst_dims;
  data_type src_type, wei_type;
  const void *src, *wei;
  detail::parameter_map src_scale, src_zero, wei_scale, wei_zero, reductions;
  matmul_attributes how;

  float scale(const detail::parameter_map& p, std::span<const index_t> dims, index_t i, index_t row,
              index_t col) const {
    float s = 1.f;
    if (p.given()) load(p.type, p.data, detail::entry_of(p, dims, i, row, col), 1, &s);
    return s;
  }
  std::int32_t zero(const detail::parameter_map& p, std::span<const index_t> dims, index_t i, index_t row,
                    index_t col) const {
    return p.given() ? static_cast<std::int32_t>(integer_at(p.type, p.data, detail::entry_of(p, dims, i, row, col)))
                     : 0;
  }
};

/// Codes of at most 8 bits as whole signed bytes (u8: less 128).
inline void load_signed(data_type type, const void* array, index_t at, index_t n, std::int8_t* to) {
  if (type == data_type::s8 || type == data_type::u8) {
    const auto flip = static_cast<std::uint8_t>(type == data_type::u8 ? 0x80 : 0);
    const auto* from = static_cast<const std::uint8_t*>(array) + at;
    for (index_t i = 0; i < n; ++i) to[i] = static_cast<std::int8_t>(from[i] ^ flip);
  } else {
    for (index_t i = 0; i < n; ++i) to[i] = static_cast<std::int8_t>(integer_at(type, array, at + i));
  }
}

/// Integers times integers: d(m, n) += RN(RN(float(exact sum of group g) * source scale) * weight scale), groups in
/// order.
inline void multiply_codes(const matmul_job& j, index_t batch, float* d) {
  const index_t m = j.batches.m, k = j.batches.k, n = j.batches.n;
  const index_t left = j.batches.left_of[static_cast<std::size_t>(batch)];
  const index_t right = j.batches.right_of[static_cast<std::size_t>(batch)];
  const std::size_t s = j.src_dims.size(), w = j.wei_dims.size();
  const index_t group = detail::shared_group(
      k, {{&j.src_scale, s - 1}, {&j.src_zero, s - 1}, {&j.wei_scale, w - 2}, {&j.wei_zero, w - 2}});
  const bool precomputed = j.reductions.given();
  const std::int32_t src_shift = j.src_type == data_type::u8 ? 128 : 0,
                     wei_shift = j.wei_type == data_type::u8 ? 128 : 0;

  std::vector<std::int8_t> src(static_cast<std::size_t>(m * k)), wei(static_cast<std::size_t>(k * n));
  load_signed(j.src_type, j.src, left * m * k, m * k, src.data());
  load_signed(j.wei_type, j.wei, right * k * n, k * n, wei.data());
  std::vector<std::int32_t> src_zeros(static_cast<std::size_t>(m)), wei_zeros(static_cast<std::size_t>(n));
  std::vector<float> src_scales(src_zeros.size()), wei_scales(wei_zeros.size());
  for (index_t g = 0; g < k; g += group) {
    const index_t depth = std::min(group, k - g);
    for (index_t r = 0; r < m; ++r) {
      const auto at = static_cast<std::size_t>(r);
      src_zeros[at] = j.zero(j.src_zero, j.src_dims, left, r, g) - src_shift;
      src_scales[at] = j.scale(j.src_scale, j.src_dims, left, r, g);
    }
    for (index_t c = 0; c < n; ++c) {
      const auto at = static_cast<std::size_t>(c);
      wei_zeros[at] = j.zero(j.wei_zero, j.wei_dims, right, g, c) - wei_shift;
      wei_scales[at] = j.scale(j.wei_scale, j.wei_dims, right, g, c);
    }
    // Where the source's sums are given, weights keep their zero points out of the integer product.
    const std::vector<std::int32_t> kept(static_cast<std::size_t>(n), -wei_shift);
    const code_matrix<int8> rows{src.data() + g, m, depth, k, 1, src_zeros};
    const code_matrix<int8> columns{wei.data() + g * n, n, depth, 1, n, precomputed ? kept : wei_zeros};
    const auto add = [&](const integer_tile& t) {
      for (index_t r = 0; r < t.rows; ++r)
        for (index_t c = 0; c < t.cols; ++c) {
          const auto row = static_cast<std::size_t>(t.row + r), col = static_cast<std::size_t>(t.col + c);
          std::int64_t sum = t.values[r * t.stride + c];
          if (precomputed) {
            const std::int64_t zero = wei_zeros[col] + wei_shift;
            const std::int64_t reduced = integer_at(j.reductions.type, j.reductions.data,
                                                    detail::entry_of(j.reductions, j.src_dims, left, t.row + r, g));
            sum -= reduced * zero;
            if (j.how.reductions_of == reductions_of::codes)
              sum += static_cast<std::int64_t>(depth) * zero * (src_zeros[row] + src_shift);
          }
          float& to = d[row * static_cast<std::size_t>(n) + col];
          to += rounded(rounded(static_cast<float>(sum) * src_scales[row]) * wei_scales[col]);
        }
    };
    ops::multiply_integers<simd::best_arch>(columns, rows, ops::unscaled<decltype(add)>{add}, serial{});
  }
}

/// Floats times anything: weights become floats, (w - zero point) * scale, rounded to the math mode; one chain of fma
/// over k for each element; source scales after the sum, or before it where they vary along k.
inline void multiply_floats(const matmul_job& j, index_t batch, float* d) {
  const index_t m = j.batches.m, k = j.batches.k, n = j.batches.n;
  const index_t left = j.batches.left_of[static_cast<std::size_t>(batch)];
  const index_t right = j.batches.right_of[static_cast<std::size_t>(batch)];
  std::vector<float> src(static_cast<std::size_t>(m * k)), wei(static_cast<std::size_t>(k * n));
  load(j.src_type, j.src, left * m * k, m * k, src.data());
  load(j.wei_type, j.wei, right * k * n, k * n, wei.data());
  const auto by_mode = [&](float x) {
    if (j.how.math == math_mode::bf16) return decode<bf16>(encode<bf16>(x));
    if (j.how.math == math_mode::f16) return decode<f16>(encode<f16>(x));
    return x;
  };
  const bool after = j.how.weight_scaling == weight_scaling::after_sum && j.wei_scale.given() &&
                     j.wei_scale.step[j.wei_dims.size() - 2] == 0;
  for (index_t r = 0; r < k; ++r)
    for (index_t c = 0; c < n; ++c) {
      float& x = wei[static_cast<std::size_t>(r * n + c)];
      if (j.wei_zero.given()) x -= static_cast<float>(j.zero(j.wei_zero, j.wei_dims, right, r, c));
      x = by_mode(after ? x : rounded(x * j.scale(j.wei_scale, j.wei_dims, right, r, c)));
    }
  const std::size_t last = j.src_dims.size() - 1;
  const bool before = j.src_scale.given() && j.src_scale.step[last] != 0;
  for (index_t r = 0; r < m; ++r)
    for (index_t c = 0; c < k; ++c) {
      float& x = src[static_cast<std::size_t>(r * k + c)];
      if (j.src_zero.given()) x -= static_cast<float>(j.zero(j.src_zero, j.src_dims, left, r, c));
      if (before) x *= j.scale(j.src_scale, j.src_dims, left, r, c);
      x = by_mode(x);
    }
  matmul_into(matrix_ref<const float>{src.data(), m, k, k, 1}, matrix_ref<const float>{wei.data(), k, n, n, 1},
              matrix_ref<float>{d, m, n, n, 1});
  if (after)
    for (index_t r = 0; r < m; ++r)
      for (index_t c = 0; c < n; ++c) d[r * n + c] *= j.scale(j.wei_scale, j.wei_dims, right, 0, c);
  if (j.src_scale.given() && !before)
    for (index_t r = 0; r < m; ++r)
      for (index_t c = 0; c < n; ++c) d[r * n + c] *= j.scale(j.src_scale, j.src_dims, left, r, 0);
}

}  // namespace pieces

/// What matmul does after the bias unless told otherwise: nothing.
struct no_post_ops {
  void operator()(std::span<float>) const {}
};

/// dst = src x weights, [..., M, K] x [..., K, N] with leading dimensions broadcast as numpy.matmul does; all tensors
/// are dense and row-major, of rank 2 to 12. Every step is rounded to f32:
///   integers (s8, u8 by s8, u8, s4, u4), for each group of k that shares all parameters, in order:
///     d = d + RN(RN(float(exact sum of (src - zero point) (weight - zero point)) * src scale) * weight scale)
///   floats (f32, bf16, f16 by anything): weights (w - zero point) * scale first, then the sums, then the src scale
/// then d = d + bias, post_ops(all of d), and the code of d / destination scale + destination zero point as `reorder`
/// makes it. With precomputed reductions R the zero points z of weights come in as - R z, and + k z (source zero point)
/// where R sums codes; the release leaves the last term out (`reductions_of::shifted`).
///
/// Throws before anything is written where types, masks, groups, sizes or buffers do not fit, and on precomputed
/// reductions without weight zero points or with another shape than one for every row and group. Allocates the operands
/// as bytes or floats and d as floats.
template <class PostOps = no_post_ops>
void matmul(std::span<const index_t> src_dims, data_type src_type, const void* src, std::span<const index_t> wei_dims,
            data_type wei_type, const void* wei, const bias_argument& bias, data_type dst_type, void* dst,
            const matmul_attributes& how = {}, const PostOps& post_ops = {}) {
  require(src_dims.size() >= 2 && src_dims.size() <= static_cast<std::size_t>(most_dims) &&
              wei_dims.size() == src_dims.size(),
          "a matmul of tensors of rank ", src_dims.size(), " and ", wei_dims.size(),
          "; both have as many dimensions, from 2 to 12.");
  const bool integers =
      (src_type == data_type::s8 || src_type == data_type::u8) && is_integer(wei_type) && wei_type != data_type::s32;
  const bool floats = src_type == data_type::f32 || src_type == data_type::bf16 || src_type == data_type::f16 ||
                      src_type == data_type::f8_e4m3 || src_type == data_type::f8_e5m2;
  require(
      integers || (floats && bits_of_type(wei_type) != 0 && wei_type != data_type::s32 && wei_type != data_type::e8m0),
      "a matmul of ", name_of(src_type), " by ", name_of(wei_type),
      "; sources are s8, u8 (with s8, u8, s4, u4 weights), f32, bf16, f16, f8_e4m3 and f8_e5m2.");
  pieces::matmul_job j{product_batches(src_dims, wei_dims),
                       {src_dims.begin(), src_dims.end()},
                       {wei_dims.begin(), wei_dims.end()},
                       {},
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
  j.dst_dims = j.batches.dims;
  if (how.precomputed_reductions.data != nullptr) {
    require(integers && j.wei_zero.given(),
            "precomputed reductions are given without zero points of integer weights; they only serve those.");
    const int all = (1 << src_dims.size()) - 1;
    require(how.precomputed_reductions.mask == all && how.precomputed_reductions.type == data_type::s32,
            "precomputed reductions have the mask ", how.precomputed_reductions.mask, " and type ",
            name_of(how.precomputed_reductions.type), "; they are s32 and vary along every dimension (mask ", all,
            ").");
    const std::size_t last = src_dims.size() - 1;
    const index_t wei_group = j.wei_zero.step[last - 1] != 0 ? j.wei_zero.run[last - 1] : j.batches.k;
    require(j.reductions.run[last] == wei_group, "precomputed reductions sum over ", j.reductions.run[last],
            " elements and the weights' zero points are shared by ", wei_group, "; they must be equal.");
    const index_t group = detail::shared_group(
        j.batches.k, {{&j.src_scale, last}, {&j.src_zero, last}, {&j.wei_scale, last - 1}, {&j.wei_zero, last - 1}});
    require(group == wei_group, "precomputed reductions sum over ", wei_group,
            " elements, of which other scales or zero points share only ", group, "; no group may be smaller.");
  }
  const index_t src_count = onednn::element_count(src_dims), wei_count = onednn::element_count(wei_dims),
                dst_count = onednn::element_count(j.dst_dims);
  const auto written = detail::extent::of("the destination", dst, dst_type, dst_count);
  require(!written.overlaps(detail::extent::of("the source", src, src_type, src_count)) &&
              !written.overlaps(detail::extent::of("the weights", wei, wei_type, wei_count)),
          "the destination overlaps an operand; a matmul in place is not possible.");
  std::vector<float> bias_values;
  if (bias.data != nullptr) {
    const index_t n = onednn::element_count(bias.dims);
    require(bias.dims.back() == j.batches.n && (n == j.batches.n || bias.dims == j.dst_dims), "the bias has ", n,
            " elements; it has one for each of ", j.batches.n, " columns, or the dimensions of the destination.");
    bias_values.resize(static_cast<std::size_t>(n));
    pieces::load(bias.type, bias.data, 0, n, bias_values.data());
  }
  const index_t each = j.batches.m * j.batches.n;
  std::vector<float> d(static_cast<std::size_t>(dst_count), 0.f);
  for (index_t i = 0; i < j.batches.count() && each > 0; ++i)
    integers ? pieces::multiply_codes(j, i, d.data() + i * each) : pieces::multiply_floats(j, i, d.data() + i * each);
  if (!bias_values.empty())
    for (std::size_t i = 0; i < d.size(); ++i) d[i] += bias_values[i % bias_values.size()];
  post_ops(std::span<float>(d));
  attributes into = how.into;
  into.src_scale = into.src_zero_point = {};
  into.beta = 0.f;
  reorder(j.dst_dims, data_type::f32, d.data(), dst_type, dst, into);
}

}  // namespace QTENSOR_ABI

}  // namespace qtensor::compat::onednn
