// Integers in oneDNN's matmul: sums of groups in 32 bits, each scaled twice and added in order (NUMERICS 5.3).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/compat/onednn_operands.hpp>
#include <qtensor/ops/code_matrix.hpp>
#include <qtensor/ops/product_int8.hpp>

namespace qtensor::compat::onednn {

inline namespace QTENSOR_ABI {
namespace pieces {

template <class T>
T entry(std::span<const T> list, index_t i) {
  return list[list.size() == 1 ? 0 : static_cast<std::size_t>(i)];
}

/// What the sums of a group are still without where the source's sums are given: -R z, + k z (source zero point).
struct missing_terms {
  std::span<const std::int32_t> reductions, src_zeros, wei_zeros;
  index_t depth;  // 0 where R is of shifted codes
  std::int64_t greatest = greatest_factor(wei_zeros);

  /// Row r of a tile's sums, complete. Writes up to a batch behind the tile's columns.
  void complete(const integer_tile& t, index_t r, float* to) const {
    const std::int64_t each =
        static_cast<std::int64_t>(depth) * entry(src_zeros, t.row + r) - entry(reductions, t.row + r);
    const std::int32_t *sums = t.values + r * t.stride, *zeros = wei_zeros.data() + t.col;
    if (each >= -greatest && each <= greatest) {
      using ints = simd::ints<arch>;
      using words = simd::words<arch>;
      const ints factor(static_cast<std::int32_t>(each));
      words beyond(0u);  // the sign of sums that leave 32 bits
      for (index_t c = 0; c < t.cols; c += simd::lanes<arch>) {
        const index_t n = std::min(simd::lanes<arch>, t.cols - c);
        const words sum = simd::bits_as<std::uint32_t>(simd::load_n<arch>(sums + c, n)),
                    term = simd::bits_as<std::uint32_t>(ints(factor * simd::load_n<arch>(zeros + c, n)));
        const words all = sum + term;
        beyond = beyond | ((sum ^ all) & (term ^ all));
        simd::store(to + c, simd::to_float(simd::bits_as<std::int32_t>(all)));
      }
      if (!simd::any(simd::bits_as<std::int32_t>(beyond) < ints(0))) return;
    }
    for (index_t c = 0; c < t.cols; ++c) to[c] = static_cast<float>(sums[c] + each * zeros[c]);
  }

 private:
  /// Of factors up to this one all products with the zero points have 32 bits.
  static std::int64_t greatest_factor(std::span<const std::int32_t> zeros) {
    std::int64_t widest = 1;
    for (const std::int32_t z : zeros) widest = std::max(widest, std::abs(std::int64_t{z}));
    return std::numeric_limits<std::int32_t>::max() / widest;
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
  void zero_points(index_t output, index_t count, index_t groups, std::int32_t* to, index_t step) const {
    static_assert(packed_code<int8>::offset == 0, "zero points are those of packed numbers");
    std::vector<std::int32_t> room;
    for (index_t g = 0; g < groups; ++g) {
      const auto z = zero.each(matrix, g * group_size, output, along::cols, count, room);
      std::copy(z.begin(), z.end(), to + g * step);
    }
  }
};

/// Rows of a source as tiles of groups take them: units, each group from a quad on, and what zero points take of them.
template <format Code>
class grouped_rows {
  using dot = simd::quad_dot<arch>;
  using code = packed_code<Code>;
  static constexpr index_t line = simd::cache_line, width = simd::int_tile<arch>::panel;

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

/// Integers times integers: d(m, n) += RN(RN(float(s32 sum of group g) * source scale) * weight scale), groups in
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
    if (reductions_.given())
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
    using sums_tile = simd::int_tile<arch>;
    const index_t m = j_.m(), k = j_.k(), n = j_.n(), groups = static_cast<index_t>(groups_.size());
    const index_t at_once = ops::rows_at_once(m, k, 16 * sums_tile::max_rows);
    ops::packing_panels<grouped_codes, arch> panels(weights);
    const auto zeros = code_zero_.all();
    const bool has_zeros = std::any_of(zeros.begin(), zeros.end(), [](std::int32_t z) { return z != 0; });
    grouped_rows<Source> rows(at_once, weights.group(), groups, has_zeros);
    alignas(64) std::int32_t sums[sums_tile::max_rows * sums_tile::panel];
    alignas(64) float kept[sums_tile::max_rows * sums_tile::panel];
    for (index_t first = 0; first < m; first += at_once) {
      const index_t count = std::min(at_once, m - first);
      for (index_t g = 0; g < groups; ++g) {
        const auto src_zeros = groups_[static_cast<std::size_t>(g)].src_zeros;
        rows.fill(g, source + first * k + g * weights.group(), k, count,
                  src_zeros.size() == 1 ? src_zeros : src_zeros.subspan(static_cast<std::size_t>(first)));
      }
      for (index_t col = 0; col < n; col += sums_tile::panel) {
        const auto panel = panels.panel(col / sums_tile::panel);
        rows.begin(panel);
        simd::for_each_row_tile(count, sums_tile::max_rows, [&](index_t r, index_t some) {
          const index_t cols = std::min(sums_tile::panel, n - col);
          for (index_t g = 0; g < groups; ++g) {
            rows.sum(panel, g, r, some, sums);
            groups_[static_cast<std::size_t>(g)].add.add_tile({first + r, col, some, cols, sums, sums_tile::panel},
                                                              kept, sums_tile::panel);
          }
          simd::copy_rows(kept, sums_tile::panel, some, cols, d + (first + r) * n + col, n);
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

}  // namespace pieces
}  // namespace QTENSOR_ABI

}  // namespace qtensor::compat::onednn
