// The operands of oneDNN's matmul: what a caller says of them, and their parameters by row and column.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <numeric>
#include <qtensor/compat/onednn_attributes.hpp>
#include <qtensor/compat/onednn_elements.hpp>
#include <qtensor/ops/batches.hpp>

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
  std::vector<index_t> src_dims, wei_dims;
  data_type src_type, wei_type;
  const void *src, *wei;
  detail::parameter_map src_scale, src_zero, wei_scale, wei_zero, reductions;
  const matmul_attributes& how;
  product_batches batches{src_dims, wei_dims};

  index_t m() const { return batches.m; }
  index_t k() const { return batches.k; }
  index_t n() const { return batches.n; }
  index_t left(index_t batch) const { return batches.left(batch); }
  index_t right(index_t batch) const { return batches.right(batch); }
  /// Elements of k that share all parameters.
  index_t group() const {
    const std::size_t last = src_dims.size() - 1;
    return detail::shared_group(k(),
                                {{&src_scale, last}, {&src_zero, last}, {&wei_scale, last - 1}, {&wei_zero, last - 1}});
  }
  /// Makes rows of one matrix of matrices that meet the same weights, where the parameters of the source allow it.
  void join_rows() {
    while (src_dims.size() > 2) {
      const std::size_t d = src_dims.size() - 3;
      for (const auto* p : {&src_scale, &src_zero, &reductions})
        if (!detail::joins(*p, d, m())) return;
      if (wei_dims[d] != 1) return;
      src_dims[d + 1] *= src_dims[d];
      for (auto* dims : {&src_dims, &wei_dims}) dims->erase(dims->begin() + static_cast<std::ptrdiff_t>(d));
      for (auto* p : {&src_scale, &src_zero, &wei_scale, &wei_zero, &reductions}) p->drop(d);
      batches = product_batches(src_dims, wei_dims);
    }
  }
};

/// Rows and columns of a matrix, as parameters see them.
enum class along { rows, cols };

/// The numbers of a parameter, decoded once; one for everything where it is not given.
template <class T>
class numbers {
 public:
  numbers(const detail::parameter_map& p, std::span<const index_t> dims, T otherwise = T(0))
      : map_(p), dims_(dims.begin(), dims.end()), all_(static_cast<std::size_t>(p.given() ? p.count : 1), otherwise) {
    if (!p.given() || p.count == 0) return;
    if (p.type == data_type::s32 && std::is_same_v<T, std::int32_t>) {
      std::copy_n(static_cast<const std::int32_t*>(p.data), p.count, all_.data());
    } else {
      std::vector<float> decoded(all_.size());
      load(p.type, p.data, 0, p.count, decoded.data());
      std::transform(decoded.begin(), decoded.end(), all_.begin(), [](float x) { return static_cast<T>(x); });
    }
  }
  bool given() const { return map_.given(); }
  std::span<T> all() { return all_; }
  std::span<const T> all() const { return all_; }

  /// Those of n neighbours along an axis of a matrix, from (row, col) on: one where they share it, or one for each,
  /// where they lie or in `room`.
  std::span<const T> line(index_t matrix, index_t row, index_t col, along axis, index_t n, std::vector<T>& room) const {
    if (!given()) return all_;
    const std::size_t d = dims_.size() - (axis == along::rows ? 2 : 1);
    const index_t run = map_.run[d], step = map_.step[d], inside = (axis == along::rows ? row : col) % run;
    const T* from = all_.data() + detail::entry_of(map_, dims_, matrix, row, col);
    if (step == 0 || inside + n <= run) return {from, 1};
    if (step == 1 && run == 1) return {from, static_cast<std::size_t>(n)};
    room.resize(static_cast<std::size_t>(n));
    for (index_t i = 0, end = run - inside; i < n; end += run, from += step)
      for (; i < std::min(end, n); ++i) room[static_cast<std::size_t>(i)] = *from;
    return room;
  }
  /// The same, one for each.
  std::span<const T> each(index_t matrix, index_t row, index_t col, along axis, index_t n, std::vector<T>& room) const {
    const auto some = line(matrix, row, col, axis, n, room);
    if (static_cast<index_t>(some.size()) == n) return some;
    room.assign(static_cast<std::size_t>(n), some[0]);
    return room;
  }

 private:
  detail::parameter_map map_;
  std::vector<index_t> dims_;
  std::vector<T> all_;
};

}  // namespace pieces
}  // namespace QTENSOR_ABI

}  // namespace qtensor::compat::onednn
