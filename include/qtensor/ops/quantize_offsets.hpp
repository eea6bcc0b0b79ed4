// Dynamic quantization of schemes that store offsets: scales and offsets of all blocks of some rows, then their codes.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <qtensor/ops/less_offsets.hpp>
#include <qtensor/ops/quantize_rows.hpp>
#include <vector>

namespace qtensor::inline QTENSOR_ABI::ops {

/// Whether codes of S are made of the scales and offsets that are stored, and so as those of given ones.
template <class S>
constexpr bool quantizes_less_offsets() {
  if constexpr (simd::codes_in_runs<S> && S::has_offset && offset_rule<typename S::rule>)
    return walks_rows<without_offsets<S>> && std::is_same_v<typename S::code_scale, stored_scale> &&
           !std::is_same_v<typename S::division, rule_multiplier>;
  else
    return false;
}

/// Extremes of neighbouring blocks, as in_order has them (simd/statistics.hpp).
struct extremes_view {
  std::uint32_t* low;
  std::uint32_t* high;

  void clear(index_t blocks) const {
    std::fill_n(low, blocks, ~0u);
    std::fill_n(high, blocks, 0u);
  }
};

/// Joins the extremes of a box whose first column is `col` to those of the row's blocks of `length`.
template <simd::float_source From>
void join_own_extremes(index_t col, const matrix_ref<const typename From::type>& box, index_t length,
                       const extremes_view& seen) {
  using arch = simd::best_arch;
  constexpr index_t wide = 1024, several = 4;
  const auto join = [&](index_t block, const simd::ordered_extremes& found) {
    seen.low[block] = std::min(seen.low[block], found.low);
    seen.high[block] = std::max(seen.high[block], found.high);
  };
  if (length == 1)
    return simd::accumulate_extremes<arch, From>(box.data, box.row_stride, box.rows(), box.cols(), seen.low + col,
                                                 seen.high + col);
  // Calls visit(block, first, n) for columns [first, first + n) of the box, all of one block.
  const auto for_each_run = [&](index_t begin, index_t end, const auto& visit) {
    for (index_t i = begin, n; i < end; i += n) {
      n = std::min(length - (col + i) % length, end - i);
      visit((col + i) / length, i, n);
    }
  };
  if (box.rows() < several) {
    for (index_t r = 0; r < box.rows(); ++r)
      for_each_run(0, box.cols(), [&](index_t block, index_t first, index_t n) {
        join(block, simd::extremes_in_order<arch, From>(&box(r, first), n));
      });
    return;
  }
  alignas(64) std::uint32_t low[wide], high[wide];  // of columns first, which takes a fraction of the reductions
  for (index_t begin = 0, count; begin < box.cols(); begin += count) {
    count = std::min(wide, box.cols() - begin);
    extremes_view{low, high}.clear(count);
    simd::accumulate_extremes<arch, From>(&box(0, begin), box.row_stride, box.rows(), count, low, high);
    for_each_run(begin, begin + count, [&](index_t block, index_t first, index_t n) {
      simd::ordered_extremes found;
      for (index_t i = first - begin; i < first - begin + n; ++i) found.include(low[i], high[i]);
      join(block, found);
    });
  }
}

/// A tensor whose rows, or some of them, are quantized with offsets.
template <tile_source X, quantization_scheme S, tensor_extents E, storage_order O>
class offset_quantizer {
  using index_array = typename E::array;
  static constexpr std::size_t last = static_cast<std::size_t>(E::rank) - 1;

 public:
  /// Keeps both.
  offset_quantizer(const X& x, const tensor_span<S, E, O>& out)
      : x_(x), out_(out), extents_(out.storage_extents()), grid_(out.scale_grid()) {}

  /// `encode`: makes the codes of a source under given scales.
  template <class Encode>
  void quantize(const Encode& encode) {
    find_parameters();
    encode(less_offsets(x_, out_), span_without_offsets(out_));
    for (const special_block& block : special_) mend(block);
  }

 private:
  struct special_block {
    index_array first, count;
    reference::block_parameters parameters;
  };

  /// Scales and offsets of all blocks; keeps the blocks whose codes are not made of them.
  void find_parameters() {
    const index_t cols = extents_[last], length = std::min(grid_.block[last], cols), blocks = divide_up(cols, length);
    auto low = line_array<std::uint32_t>::for_overwrite(blocks),
         high = line_array<std::uint32_t>::for_overwrite(blocks);
    const extremes_view seen{low.data(), high.data()};
    box_reader<X> boxes(x_, box_shape::of(x_, 1));
    if (!boxes.is_direct() && out_.size() <= box_floats) boxes.read(0, x_.rows(), 0, cols);  // once for all panels
    block_grid<E::rank> panels = grid_;
    panels.block[last] = cols;
    reference::for_each_block(panels, extents_, [&](const index_array& first, index_array count) {
      seen.clear(blocks);
      for_each_row_range(first, count, [&](index_t row, index_t rows) {
        boxes.for_each_box(row, rows, 0, cols, [&](index_t, index_t col, const auto& box) {
          join_own_extremes<source_elements<X>>(col, box, length, seen);
        });
      });
      index_array at = first;
      for (index_t b = 0; b < blocks; ++b, at[last] += length) {
        count[last] = std::min(length, cols - at[last]);
        finish(at, count, {seen.low[b], seen.high[b]});
      }
    });
  }

  /// Calls visit(row, rows) for the rows of a box of the leading axes.
  template <class Visit>
  void for_each_row_range(const index_array& first, index_array count, const Visit& visit) const {
    constexpr std::size_t side = last - (last > 0);
    const index_t rows = last > 0 ? count[side] : 1;
    count[last] = count[side] = 1;
    reference::for_each_index(first, count, [&](const index_array& at) {
      index_t row = 0;
      for (std::size_t axis = 0; axis < last; ++axis) row = row * extents_[axis] + at[axis];
      visit(row, rows);
    });
  }

  /// The scale and offset of a block.
  void finish(const index_array& first, const index_array& count, const simd::ordered_extremes& found) {
    // Of zeros the first is the least number; what is not finite is for the policies.
    constexpr std::uint32_t minus_zero = simd::in_order(sign_bit), top = simd::in_order(infinity_bits),
                            bottom = simd::in_order(infinity_bits | sign_bit);
    reference::block_statistics seen;
    if (found.low == minus_zero || found.low <= bottom || found.high >= top) {
      const auto elements = reference_elements();
      reference::for_each_index(first, count, [&](const index_array& i) { seen.add<S>(elements(reordered<O>(i))); });
    } else {
      seen.add<S>(float_of(simd::bits_in_order(found.low)));
      seen.add<S>(float_of(simd::bits_in_order(found.high)));
    }
    const reference::block_parameters p = reference::parameters_of<S>(seen);
    out_.set_storage_scale_code(first, p.scale_code);
    out_.set_storage_offset_code(first, p.offset_code);
    if (is_special<S>(p) || is_zeroed<S>(p)) special_.push_back({first, count, p});
  }

  /// The codes of a special block again, by the reference.
  void mend(const special_block& block) const {
    const auto elements = reference_elements();
    reference::for_each_index(block.first, block.count, [&](const index_array& i) {
      const index_array index = reordered<O>(i);
      out_.set_storage_code(i, reference::code_of<S>(elements(index), block.parameters, 1.f,
                                                     reference::detail::random_word<S>(index, out_.extents())));
    });
  }

  reference_reader<X, E, O> reference_elements() const { return {x_, out_.extents()}; }

  const X& x_;
  const tensor_span<S, E, O>& out_;
  index_array extents_;
  block_grid<E::rank> grid_;
  std::vector<special_block> special_;
};

/// Dynamic quantization of such a scheme: bands of whole blocks of rows that a cache holds between statistics and
/// codes, or all at once where blocks have more of them, or random numbers go by positions. Reads x twice.
template <tile_source X, quantization_scheme S, tensor_extents E, storage_order O, class Encode>
requires(X::reads_twice) void quantize_less_offsets(const X& x, const tensor_span<S, E, O>& out, const Encode& encode) {
  const index_t length = out.storage_extents()[0], row = out.size() / length;
  const index_t block = std::min(out.scale_grid().block[0], length);
  const index_t band = std::max(box_floats / 4 / row / block, index_t{1}) * block;
  if constexpr (E::rank > 1 && !goes_by_position<S>)
    if (band < length) {
      const index_t rows = x.rows() / length;
      for (index_t first = 0; first < length; first += band) {
        const index_t n = std::min(band, length - first);
        const auto slice = out.template slice<O::axis(E::rank, 0)>(first, n);
        const auto part = part_of<0, E::rank>(x, first, n, rows);
        offset_quantizer(part, slice).quantize(encode);
      }
      return;
    }
  offset_quantizer(x, out).quantize(encode);
}

}  // namespace qtensor::inline QTENSOR_ABI::ops
