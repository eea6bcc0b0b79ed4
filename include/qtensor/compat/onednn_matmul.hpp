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
  std::vector<index_t> src_dims, wei_dims;
  data_type src_type, wei_type;
  const void *src, *wei;
  detail::parameter_map src_scale, src_zero, wei_scale, wei_zero, reductions;
  const matmul_attributes& how;
  product_batches batches{src_dims, wei_dims};

  index_t m() const { return batches.m; }
  index_t k() const { return batches.k; }
  index_t n() const { return batches.n; }
  index_t left(index_t batch) const { return batches.left_of[static_cast<std::size_t>(batch)]; }
  index_t right(index_t batch) const { return batches.right_of[static_cast<std::size_t>(batch)]; }
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

// ---- Integers ------------------------------------------------------------------------------------------------------

template <class T>
T entry(std::span<const T> list, index_t i) {
  return list[list.size() == 1 ? 0 : static_cast<std::size_t>(i)];
}

/// What the sums of a group are still without where the source's sums are given: -R z, + k z (source zero point).
struct missing_terms {
  std::span<const std::int32_t> reductions, src_zeros, wei_zeros;
  index_t depth;  // 0 where R is of shifted codes

  /// Row r of a tile's sums, complete.
  void complete(const integer_tile& t, index_t r, float* to) const {
    const std::int64_t each =
        static_cast<std::int64_t>(depth) * entry(src_zeros, t.row + r) - entry(reductions, t.row + r);
    for (index_t c = 0; c < t.cols; ++c)
      to[c] = static_cast<float>(t.values[r * t.stride + c] + each * wei_zeros[static_cast<std::size_t>(t.col + c)]);
  }
};

/// The sink of a group's sums: d += RN(RN(float(sum) * source scale) * weights' scale). The first group finds nothing
/// in d.
struct add_group {
  float* d;
  index_t n;
  bool is_first;
  std::span<const float> src_scales, wei_scales;  // one, or one for each row; one for each column
  const missing_terms* missing;

  void operator()(const integer_tile& t) const { add_tile(t, d + t.row * n + t.col, n); }
  /// Of one tile, whose first element is to[0].
  void add_tile(const integer_tile& t, float* to, index_t to_stride) const {
    alignas(64) float complete[width];
    for (index_t r = 0; r < t.rows; ++r, to += to_stride) {
      const std::int32_t* const sums = t.values + r * t.stride;
      if (missing == nullptr) {
        add_row(t, r, to, [&](index_t c) QTENSOR_INLINE_LAMBDA { return simd::to_float(simd::load<arch>(sums + c)); });
      } else {
        missing->complete(t, r, complete);
        add_row(t, r, to, [&](index_t c) QTENSOR_INLINE_LAMBDA { return simd::load<arch>(complete + c); });
      }
    }
  }

 private:
  static constexpr index_t width = simd::int_tile<arch>::panel;

  template <class Sums>
  QTENSOR_INLINE void add_row(const integer_tile& t, index_t r, float* to, const Sums& sums) const {
    alignas(64) static constexpr float nothing[width] = {};
    constexpr index_t lanes = simd::lanes<arch>;
    using floats = simd::floats<arch>;
    const floats by_row(entry(src_scales, t.row + r));
    const float* const by_col = wei_scales.data() + t.col;
    const float* const before = is_first ? nothing : to;
    const auto added = [&](index_t c, const floats& from, const floats& scale) QTENSOR_INLINE_LAMBDA {
      return simd::add(from, simd::mul(simd::mul(sums(c), by_row), scale));
    };
    index_t c = 0;
    for (; c + lanes <= t.cols; c += lanes)
      simd::store(to + c, added(c, simd::load<arch>(before + c), simd::load<arch>(by_col + c)));
    if (const index_t left = t.cols - c; left > 0)
      simd::store_n(to + c, left, added(c, simd::load_n<arch>(before + c, left), simd::load_n<arch>(by_col + c, left)));
  }
};

/// What the sums of one group become numbers with.
struct group_numbers {
  std::vector<std::int32_t> rooms[3];
  std::vector<float> scale_rooms[2];
  std::span<const std::int32_t> src_zeros;
  missing_terms missing;
  add_group add;
};

/// Weights as panels of groups take them: signed bytes and their zero points.
struct grouped_codes : code_matrix<int8> {
  index_t group_size;
  const numbers<std::int32_t>& zero;
  index_t matrix;

  index_t group() const { return group_size; }
  void zero_points(index_t output, index_t count, index_t k, std::int32_t offset, std::int32_t* to) const {
    std::vector<std::int32_t> room;
    const auto z = zero.each(matrix, k, output, along::cols, count, room);
    std::transform(z.begin(), z.end(), to, [&](std::int32_t x) { return x + offset; });
  }
};

/// Rows of a source as tiles of groups take them: units, each group from a quad on, and what zero points take of them.
template <format Code>
class grouped_rows {
  using dot = simd::quad_dot<arch>;
  using code = packed_code<Code>;
  static constexpr index_t line = 64, width = simd::int_tile<arch>::panel;

 public:
  /// has_zeros: weights have zero points other than 0.
  grouped_rows(index_t rows, index_t group, index_t groups, bool has_zeros)
      : has_zeros_(has_zeros),
        rows_(rows),
        group_(group),
        quads_(divide_up(group, 4)),
        stride_(round_up(groups * quads_ * 4, line) + line),
        units_(ops::line_array<typename dot::unit>::for_overwrite(rows * stride_)),
        rests_(static_cast<std::size_t>(rows * groups)),
        zeros_(rests_.size()),
        one_zero_(static_cast<std::size_t>(groups)),
        starts_(ops::line_array<std::int32_t>::for_overwrite(groups * width)) {}

  /// Group g of `count` rows, which begins at `codes` in the first and `step` behind that in the next.
  void fill(index_t g, const storage_t<Code>* codes, index_t step, index_t count,
            std::span<const std::int32_t> zero_points) {
    constexpr auto sign = static_cast<simd::code_sign>(code::of(0));
    for (index_t r = 0; r < count; ++r) {
      const auto at = static_cast<std::size_t>(g * rows_ + r);
      const std::int64_t zero = std::int64_t{entry(zero_points, r)} + code::offset;
      const auto* bytes = reinterpret_cast<const std::uint8_t*>(codes + r * step);
      auto* const to = units_.data() + r * stride_ + g * quads_ * 4;
      rests_[at] = ops::wrapped_sum(simd::pack_units<arch>(bytes, group_, sign, to) - group_ * zero);
      zeros_[at] = ops::wrapped_sum(zero + dot::unit_offset);
    }
    const auto zeros = zeros_.begin() + g * rows_;
    one_zero_[static_cast<std::size_t>(g)] = std::all_of(zeros, zeros + count, [&](auto z) { return z == *zeros; });
  }
  /// From here on sums are of this panel. They start from what one zero point of all rows takes.
  template <class Panel>
  void begin(const Panel& panel) {
    for (index_t g = 0; g < std::ssize(one_zero_); ++g) {
      const std::int64_t zero =
          one_zero_[static_cast<std::size_t>(g)] ? zeros_[static_cast<std::size_t>(g * rows_)] : 0;
      for (index_t i = g * width; i < (g + 1) * width; ++i) starts_[i] = ops::wrapped_sum(-zero * panel.sums[i]);
    }
  }
  /// sums = those of group g of rows [row, row + count) and a panel, exact modulo 2^32.
  template <class Panel>
  void sum(const Panel& panel, index_t g, index_t row, index_t count, std::int32_t* sums) const {
    const auto* weights = reinterpret_cast<const std::int8_t*>(panel.codes) + g * quads_ * width * 4;
    simd::dot_tile<arch>(weights, {units_.data() + row * stride_ + g * quads_ * 4, stride_}, count, quads_,
                         starts_.data() + g * width, sums);
    const auto at = static_cast<std::size_t>(g * rows_ + row);
    const std::int32_t* const row_zeros = one_zero_[static_cast<std::size_t>(g)] ? nullptr : &zeros_[at];
    using turn = simd::sums_in_turn<arch, width, true, std::int32_t>;
    if (has_zeros_ || row_zeros != nullptr)
      turn{sums,
           width,
           count,
           sums,
           width,
           nullptr,
           nullptr,
           &rests_[at],
           panel.zeros + g * width,
           row_zeros,
           panel.sums + g * width}
          .some(count);
  }

 private:
  bool has_zeros_;
  index_t rows_, group_, quads_, stride_;
  ops::line_array<typename dot::unit> units_;
  std::vector<std::int32_t> rests_, zeros_;  // group by group
  std::vector<bool> one_zero_;
  ops::line_array<std::int32_t> starts_;
};

/// Integers times integers: d(m, n) += RN(RN(float(exact sum of group g) * source scale) * weight scale), groups in
/// order. Weights are signed bytes where they lie, or become such: u8 less 128, s4 plus 8.
template <format Source>
class code_product {
 public:
  explicit code_product(const matmul_job& j)
      : j_(j),
        shift_(j.wei_type == data_type::u8   ? 128
               : j.wei_type == data_type::s4 ? -8
                                             : 0),
        src_scale_(j.src_scale, j.src_dims, 1.f),
        wei_scale_(j.wei_scale, j.wei_dims, 1.f),
        src_zero_(j.src_zero, j.src_dims),
        wei_zero_(j.wei_zero, j.wei_dims),
        // Where the source's sums are given, weights keep their zero points out of the integer product.
        code_zero_(j.reductions.given() ? detail::parameter_map{} : j.wei_zero, j.wei_dims),
        reductions_(j.reductions, j.src_dims),
        groups_(static_cast<std::size_t>(j.k() / j.group())) {
    for (std::int32_t& z : code_zero_.all()) z = ops::wrapped_sum(std::int64_t{z} - shift_);
  }

  void operator()(index_t batch, float* d) {
    const index_t m = j_.m(), k = j_.k(), n = j_.n(), group = j_.group(), right = j_.right(batch);
    if (k == 0) return void(std::fill_n(d, m * n, 0.f));
    const auto* const source = static_cast<const storage_t<Source>*>(j_.src) + j_.left(batch) * m * k;
    const std::int8_t* const weights = matrix(right);
    for (index_t g = 0; g < k / group; ++g) find(groups_[static_cast<std::size_t>(g)], batch, g * group, d);
    // Matrix registers take a group at a time, vectors all groups of a tile.
    if (groups_.size() > 1 && group <= longest && !ops::prefers_squares<arch>(m, group / 4))
      return multiply_groups(source, {{weights, n, k, 1, n}, group, code_zero_, right}, d);
    for (index_t g = 0; g < k; g += group) {
      const group_numbers& by = groups_[static_cast<std::size_t>(g / group)];
      const code_matrix<Source> rows{source + g, m, group, k, 1, by.src_zeros};
      const code_matrix<int8> columns{
          weights + g * n, n, group, 1, n, code_zero_.line(right, g, 0, along::cols, n, room_)};
      ops::multiply_integers<arch>(columns, rows, ops::unscaled<add_group>{by.add}, serial{});
    }
  }

 private:
  static constexpr index_t longest = simd::int_tile<arch>::exact_depth;

  void find(group_numbers& by, index_t batch, index_t g, float* d) const {
    const index_t m = j_.m(), n = j_.n(), left = j_.left(batch), right = j_.right(batch);
    by.src_zeros = src_zero_.line(left, 0, g, along::rows, m, by.rooms[0]);
    by.missing = {reductions_.line(left, 0, g, along::rows, m, by.rooms[1]), by.src_zeros,
                  wei_zero_.each(right, g, 0, along::cols, n, by.rooms[2]),
                  j_.how.reductions_of == reductions_of::shifted ? 0 : j_.group()};
    by.add = {d,
              n,
              g == 0,
              src_scale_.line(left, 0, g, along::rows, m, by.scale_rooms[0]),
              wei_scale_.each(right, g, 0, along::cols, n, by.scale_rooms[1]),
              reductions_.given() ? &by.missing : nullptr};
  }
  /// Tile by tile, whose numbers stay in the first cache from group to group.
  void multiply_groups(const storage_t<Source>* source, const grouped_codes& weights, float* d) const {
    using tile = simd::int_tile<arch>;
    const index_t m = j_.m(), k = j_.k(), n = j_.n(), groups = static_cast<index_t>(groups_.size());
    const index_t most = ops::rows_at_once(m, k, 16 * tile::max_rows);
    ops::packing_panels<grouped_codes, arch> panels(weights);
    const auto zeros = code_zero_.all();
    const bool has_zeros = std::any_of(zeros.begin(), zeros.end(), [](std::int32_t z) { return z != 0; });
    grouped_rows<Source> rows(most, weights.group(), groups, has_zeros);
    alignas(64) std::int32_t sums[tile::max_rows * tile::panel];
    alignas(64) float kept[tile::max_rows * tile::panel];
    for (index_t first = 0; first < m; first += most) {
      const index_t count = std::min(most, m - first);
      for (index_t g = 0; g < groups; ++g) {
        const auto src_zeros = groups_[static_cast<std::size_t>(g)].src_zeros;
        rows.fill(g, source + first * k + g * weights.group(), k, count,
                  src_zeros.size() == 1 ? src_zeros : src_zeros.subspan(static_cast<std::size_t>(first)));
      }
      for (index_t col = 0; col < n; col += tile::panel) {
        const auto panel = panels.panel(col / tile::panel);
        rows.begin(panel);
        simd::for_each_row_tile(count, tile::max_rows, [&](index_t r, index_t some) {
          const index_t cols = std::min(tile::panel, n - col);
          for (index_t g = 0; g < groups; ++g) {
            rows.sum(panel, g, r, some, sums);
            groups_[static_cast<std::size_t>(g)].add.add_tile({first + r, col, some, cols, sums, tile::panel}, kept,
                                                              tile::panel);
          }
          simd::copy_rows(kept, tile::panel, some, cols, d + (first + r) * n + col, n);
        });
      }
    }
  }
  /// A matrix of weights as signed bytes.
  const std::int8_t* matrix(index_t i) {
    const index_t count = j_.k() * j_.n();
    const auto* bytes = static_cast<const std::uint8_t*>(j_.wei);
    if (j_.wei_type == data_type::s8) return static_cast<const std::int8_t*>(j_.wei) + i * count;
    const bool packed = j_.wei_type != data_type::u8;
    const index_t before = packed ? i * count % 2 : 0;  // codes of a byte that begins with the last matrix
    if (i != held_) {
      codes_ = ops::line_array<std::uint8_t>::for_overwrite(count + before);
      if (packed)
        simd::unpack_nibbles<arch>(bytes + i * count / 2, count + before, codes_.data());
      else
        std::copy_n(bytes + i * count, count, codes_.data());
      if (shift_ != 0) simd::flip_bits<arch>(codes_.data(), count + before, packed ? 0x08 : 0x80);
      held_ = i;
    }
    return reinterpret_cast<const std::int8_t*>(codes_.data()) + before;
  }

  const matmul_job& j_;
  std::int32_t shift_;
  numbers<float> src_scale_, wei_scale_;
  numbers<std::int32_t> src_zero_, wei_zero_, code_zero_, reductions_;
  std::vector<group_numbers> groups_;
  std::vector<std::int32_t> room_;
  ops::line_array<std::uint8_t> codes_;
  index_t held_ = -1;
};

// ---- Floats --------------------------------------------------------------------------------------------------------

/// x rounded to F, saturated; a NaN is the quiet one of its sign.
template <format F>
simd::floats<arch> rounded_to(const simd::floats<arch>& x) {
  using floats = simd::floats<arch>;
  using words = simd::words<arch>;
  const floats kept = simd::max(floats(F::min), simd::min(floats(F::max), x));
  const words nan = (simd::bits_as<std::uint32_t>(x) & words(sign_bit)) | words(bits_of(quiet_nan));
  if constexpr (std::is_same_v<F, bf16>)
    return simd::select(x == x, simd::rounded_to_bf16(kept), simd::bits_as<float>(nan));
  else
    return simd::select(x == x, simd::rounded_to_f16(kept), simd::bits_as<float>(nan));
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
  void read(index_t row, index_t rows, index_t col, index_t cols, float* tile, index_t stride) const {
    std::vector<float> room;
    for (index_t r = row; r < row + rows && cols > 0; ++r, tile += stride) {
      load(type, array, at(r, col), cols, tile);
      if (zero.given())
        apply(tile, cols, zero.line(matrix, r, col, along::cols, cols, room), [](auto x, auto z) { return x - z; });
      if (scale.given())
        apply(tile, cols, scale.line(matrix, r, col, along::cols, cols, room), [](auto x, auto s) { return x * s; });
      if (math == math_mode::bf16) round_all<bf16>(tile, cols);
      if (math == math_mode::f16) round_all<f16>(tile, cols);
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
/// reductions without weight zero points or with another shape than one for every row and group. Allocates what
/// of the operands is no f32 or 8-bit codes, a matrix at a time, and d where it is not dst.
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
  if (how.precomputed_reductions.data != nullptr) {
    require(integers && j.wei_zero.given(),
            "precomputed reductions are given without zero points of integer weights; they only serve those.");
    const int all = (1 << src_dims.size()) - 1;
    require(how.precomputed_reductions.mask == all && how.precomputed_reductions.type == data_type::s32,
            "precomputed reductions have the mask ", how.precomputed_reductions.mask, " and type ",
            name_of(how.precomputed_reductions.type), "; they are s32 and vary along every dimension (mask ", all,
            ").");
    const std::size_t last = src_dims.size() - 1;
    const index_t wei_group = j.wei_zero.step[last - 1] != 0 ? j.wei_zero.run[last - 1] : j.k();
    require(j.reductions.run[last] == wei_group, "precomputed reductions sum over ", j.reductions.run[last],
            " elements and the weights' zero points are shared by ", wei_group, "; they must be equal.");
    require(j.group() == wei_group, "precomputed reductions sum over ", wei_group,
            " elements, of which other scales or zero points share only ", j.group(), "; no group may be smaller.");
  }
  const index_t src_count = onednn::element_count(src_dims), wei_count = onednn::element_count(wei_dims),
                dst_count = onednn::element_count(dst_dims);
  const auto written = detail::extent::of("the destination", dst, dst_type, dst_count);
  require(!written.overlaps(detail::extent::of("the source", src, src_type, src_count)) &&
              !written.overlaps(detail::extent::of("the weights", wei, wei_type, wei_count)),
          "the destination overlaps an operand; a matmul in place is not possible.");
  std::vector<float> bias_values;
  if (bias.data != nullptr) {
    const data_type b = bias.type;
    require(b == data_type::f32 || b == data_type::bf16 || b == data_type::f16 || b == data_type::s32 ||
                b == data_type::s8 || b == data_type::u8,
            "the bias is of type ", name_of(b), "; it is f32, bf16, f16, s32, s8 or u8.");
    const index_t n = onednn::element_count(bias.dims);
    require(bias.dims.back() == j.n() && (n == j.n() || bias.dims == dst_dims), "the bias has ", n,
            " elements; it has one for each of ", j.n(), " columns, or the dimensions of the destination.");
    bias_values.resize(static_cast<std::size_t>(n));
    pieces::load(bias.type, bias.data, 0, n, bias_values.data());
  }
  attributes into = how.into;
  into.src_scale = into.src_zero_point = {};
  into.beta = 0.f;
  check_choices(into);
  // Results that only are copied are made where they belong.
  const auto absent = [](const parameter& p) { return p.data == nullptr && p.mask == 0 && p.groups.empty(); };
  const bool in_place = dst_type == data_type::f32 && absent(into.dst_scale) && absent(into.dst_zero_point) &&
                        into.rounding == rounding_mode::nearest_even && into.zero_sign == zero_sign::kept;
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
