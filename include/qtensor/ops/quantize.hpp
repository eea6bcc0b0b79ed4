// Quantize: any source into any tensor, by walking the tensor's rows and handing runs to kernels.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/ops/parameters.hpp>
#include <qtensor/ops/rows.hpp>
#include <qtensor/simd/quantize.hpp>
#include <qtensor/simd/statistics.hpp>
#include <vector>

namespace qtensor::inline QTENSOR_ABI {

namespace ops {

/// Statistics of neighbouring blocks, side by side, in the form the rule asks for.
struct statistics_view {
  std::uint32_t* amax;
  float* low;
  float* high;

  reference::block_statistics operator[](index_t block) const {
    return {amax[block], low != nullptr ? low[block] : 0.f, high != nullptr ? high[block] : 0.f};
  }
  /// The same from a block on.
  statistics_view from(index_t block) const {
    return {amax + block, low != nullptr ? low + block : nullptr, high != nullptr ? high + block : nullptr};
  }
  void clear(index_t blocks) const {
    for (index_t b = 0; b < blocks; ++b) amax[b] = 0;
    if (low == nullptr) return;
    for (index_t b = 0; b < blocks; ++b) low[b] = high[b] = 0.f;
  }
};

template <class S>
inline constexpr bool needs_extremes = extremes_rule<typename S::rule>;

/// Joins the elements of a piece to the statistics of its blocks: blocks of `length` from the piece's first element on.
template <class S>
void join_statistics(const float* x, index_t n, index_t length, const statistics_view& seen) {
  using arch = simd::best_arch;
  if constexpr (std::is_same_v<typename S::nonfinite_block, block_ignores>) {
    for (index_t i = 0; i < n; ++i) {
      reference::block_statistics one = seen[i / length];
      one.add<S>(x[i]);
      seen.amax[i / length] = one.amax_bits;
      if (needs_extremes<S>) seen.low[i / length] = one.low, seen.high[i / length] = one.high;
    }
  } else if (length == 1) {  // a vector run: every element is its own block
    simd::accumulate_amax_bits<arch>(x, n, seen.amax);
    if constexpr (needs_extremes<S>) {
      for (index_t i = 0; i < n; ++i) {
        seen.low[i] = x[i] < seen.low[i] ? x[i] : seen.low[i];
        seen.high[i] = x[i] > seen.high[i] ? x[i] : seen.high[i];
      }
    }
  } else {
    for (index_t first = 0, block = 0; first < n; first += length, ++block) {
      const index_t count = n - first < length ? n - first : length;
      if constexpr (needs_extremes<S>) {
        const simd::range r = simd::min_max<arch>(x + first, count);
        seen.low[block] = r.min < seen.low[block] ? r.min : seen.low[block];
        seen.high[block] = r.max > seen.high[block] ? r.max : seen.high[block];
        if (!r.all_finite) seen.amax[block] = infinity_bits;
      } else {
        const std::uint32_t bits = simd::amax_bits<arch>(x + first, count);
        seen.amax[block] = bits > seen.amax[block] ? bits : seen.amax[block];
      }
    }
  }
}

/// The parameters of neighbouring blocks, side by side, as the encode kernels read them.
struct parameters_view {
  float* scales;
  std::int32_t* zero_points;  // nullptr where the scheme is symmetric

  parameters_view from(index_t block) const {
    return {scales + block, zero_points != nullptr ? zero_points + block : nullptr};
  }
};

/// A block whose codes no division gives: poisoned, zeros without a sign, or scaled by 0, infinity or NaN.
constexpr bool is_special(const reference::block_parameters& p) {
  return p.poisoned || p.zero_codes || p.plus_zeros || !(p.code_scale > 0.f) || !is_finite(p.code_scale);
}

/// Encodes a piece of a row whose blocks of `length` start at its first element.
template <class S>
void encode_piece(const float* x, index_t n, index_t length, const parameters_view& p, detail::code_unit_t<S>* codes) {
  if (length >= n)
    simd::encode_uniform<S>(x, n, element_scale{p.scales[0]}, p.zero_points != nullptr ? p.zero_points[0] : 0, codes);
  else if (length == 1)
    simd::encode_vector<S>(x, n, p.scales, p.zero_points, codes);
  else
    simd::encode_grouped<S>(x, n, length, p.scales, p.zero_points, codes);
}

/// Calls part(col, n, floats) for a piece cut where blocks of `length` end; a run of whole blocks is one part.
template <class Part>
void for_each_part(index_t col, index_t n, index_t length, const float* floats, Part part) {
  while (n > 0) {
    const index_t inside = col % length, left = length - inside;
    const index_t take = inside == 0 && n >= length ? n : n < left ? n : left;
    part(col, take, floats);
    col += take;
    floats += take;
    n -= take;
  }
}

/// First code unit of element `col` of a row; col starts a byte.
template <class S>
constexpr index_t unit_of_element(index_t col) {
  return is_packed<typename S::code_format> ? col * S::code_format::bits / 8 : col;
}

/// Elements from one byte boundary to the next: 1 or 2, 4 for 2- and 6-bit codes, 8 for those of odd widths.
template <class S>
inline constexpr index_t byte_step =
    is_packed<typename S::code_format> ? 8 / (S::code_format::bits & -S::code_format::bits) : 1;

constexpr index_t common_multiple(index_t length, index_t step) {
  index_t multiple = length;
  while (multiple % step != 0) multiple += length;
  return multiple;
}

/// What the walk over rows needs: one array a parameter, codes in order, no random numbers, one level of scales.
/// Everything else is quantized by the reference.
template <class S>
inline constexpr bool walks_rows = !S::is_interleaved && std::is_same_v<typename S::layout::order, low_first> &&
                                   !random_rounding<typename S::rounding> && !S::has_tensor_scale && !S::has_offset &&
                                   !peak_rule<typename S::rule>;

/// A source as the reference reads it: element by element, at an index in the tensor's own axes.
template <class X, class Extents, storage_order Order>
struct element_source {
  const X& x;
  const Extents& extents;
  template <std::size_t Rank>
  float operator()(const std::array<index_t, Rank>& index) const {
    const auto at = reordered<Order>(index);
    const auto sizes = reordered<Order>(extents.to_array());
    index_t row = 0;
    for (std::size_t axis = 0; axis + 1 < Rank; ++axis) row = row * sizes[axis] + at[axis];
    if (const float* here = x.direct(row, at[Rank - 1])) return *here;
    float element = 0.f;
    x.read(row, 1, at[Rank - 1], 1, &element, 1);
    return element;
  }
};

template <class X, quantization_scheme S, tensor_extents E, storage_order O>
void check_source(const X& x, const tensor_span<S, E, O>& out) {
  const auto shape = out.shape();
  require(x.rows() == shape.row_count() && x.cols() == shape.row_length(), "quantize is given ", x.rows(), " rows of ",
          x.cols(), " elements for a tensor that stores ", shape.row_count(), " rows of ", shape.row_length(), ".");
}

/// A quantizer of one tensor: the state that the passes over a panel of rows share.
template <quantization_scheme S, tensor_extents E, storage_order O>
class row_quantizer {
  using span = tensor_span<S, E, O>;
  using index_array = typename E::array;
  static constexpr std::size_t last = static_cast<std::size_t>(E::rank) - 1;

 public:
  using scheme_type = S;
  explicit row_quantizer(const span& out) : out_(out), extents_(out.storage_extents()), grid_(out.scale_grid()) {
    length_ = grid_.block[last] < extents_[last] ? grid_.block[last] : extents_[last];
  }

  /// Elements of a row that share a scale.
  index_t block_length() const { return length_; }
  /// Blocks along a row.
  index_t block_count() const { return divide_up(extents_[last], length_); }
  /// Rows that share a scale lie in boxes of the leading axes: calls visit(first, count) for each box.
  template <class Visit>
  void for_each_panel(Visit visit) const {
    auto grid = grid_;
    grid.block[last] = extents_[last];
    reference::for_each_block(grid, extents_, visit);
  }
  bool rows_are_panels() const {
    for (std::size_t axis = 0; axis < last; ++axis)
      if (grid_.block[axis] != 1 && extents_[axis] != 1) return false;
    return true;
  }
  const index_array& extents() const { return extents_; }

  /// Scales (and zero points) of blocks [first, first + count) of the row at `row` from their statistics: stores them,
  /// lays them out for the encode kernels, and says whether any block is special.
  bool finish(const index_array& row, index_t first, index_t count, const statistics_view& seen,
              const parameters_view& p) const {
    bool special = false;
    index_array at = row;
    for (index_t b = 0; b < count; ++b) {
      const reference::block_parameters block = reference::parameters_of<S>(seen[b]);
      at[last] = (first + b) * length_;
      out_.set_storage_scale_code(at, block.scale_code);
      if constexpr (S::has_zero_point) {
        out_.set_storage_zero_point(at, block.zero_point);
        p.zero_points[b] = static_cast<std::int32_t>(block.zero_point);
      }
      const bool odd = is_special(block);
      p.scales[b] = odd ? 1.f : block.code_scale;
      special = special || odd;
    }
    return special;
  }

  /// Codes of one piece of a row, which starts at block `first`; the special blocks among them by the reference.
  void encode(const index_array& row, index_t col, index_t n, const float* x, index_t first, const parameters_view& p,
              bool special, const statistics_view& seen) const {
    encode_piece<S>(x, n, length_, p, out_.row(row) + unit_of_element<S>(col));
    if (!special) return;
    index_array at = row;
    for (index_t i = 0; i < n; ++i) {
      at[last] = col + i;
      const reference::block_parameters block = reference::parameters_of<S>(seen[at[last] / length_ - first]);
      if (is_special(block)) out_.set_storage_code(at, reference::code_of<S>(x[i], block, 1.f, 0));
    }
  }

 private:
  const span& out_;
  index_array extents_;
  block_grid<E::rank> grid_;
  index_t length_ = 1;
};

/// One pass: every row has its own scales, and its blocks are short enough for a tile. Statistics, scales and codes of
/// a tile are done while it is in L1.
template <tile_source X, class Quantizer>
void quantize_in_one_pass(const X& x, const Quantizer& q, index_t step) {
  using S = typename Quantizer::scheme_type;
  constexpr std::size_t most = static_cast<std::size_t>(tile_floats);
  std::uint32_t amax[most];
  float low[needs_extremes<S> ? most : 1], high[needs_extremes<S> ? most : 1], scales[most];
  std::int32_t zeros[S::has_zero_point ? most : 1];
  const statistics_view seen{amax, needs_extremes<S> ? low : nullptr, needs_extremes<S> ? high : nullptr};
  const parameters_view p{scales, S::has_zero_point ? zeros : nullptr};
  for_each_piece(x, 0, x.rows(), step, [&](index_t row, index_t col, index_t n, const float* floats) {
    const auto at = row_index(row, q.extents());
    const index_t first = col / q.block_length(), count = divide_up(n, q.block_length());
    seen.clear(count);
    join_statistics<S>(floats, n, q.block_length(), seen);
    const bool special = q.finish(at, first, count, seen, p);
    q.encode(at, col, n, floats, first, p, special, seen);
  });
}

/// Two passes over each panel of rows that share scales: statistics, then codes.
template <tile_source X, class Quantizer>
void quantize_in_two_passes(const X& x, const Quantizer& q, index_t step) {
  using S = typename Quantizer::scheme_type;
  const std::size_t blocks = static_cast<std::size_t>(q.block_count());
  std::vector<std::uint32_t> amax(blocks);
  std::vector<float> low(needs_extremes<S> ? blocks : 0), high(needs_extremes<S> ? blocks : 0), scales(blocks);
  std::vector<std::int32_t> zeros(S::has_zero_point ? blocks : 0);
  const statistics_view seen{amax.data(), needs_extremes<S> ? low.data() : nullptr,
                             needs_extremes<S> ? high.data() : nullptr};
  const parameters_view p{scales.data(), S::has_zero_point ? zeros.data() : nullptr};
  const index_t length = q.block_length();
  q.for_each_panel([&](const auto& first, const auto& count) {
    seen.clear(q.block_count());
    for_each_row_run(first, count, q.extents(), [&](index_t start, index_t rows) {
      for_each_piece(x, start, rows, step, [&](index_t, index_t piece, index_t size, const float* floats) {
        for_each_part(piece, size, length, floats, [&](index_t col, index_t n, const float* part) {
          join_statistics<S>(part, n, length, seen.from(col / length));
        });
      });
    });
    const bool special = q.finish(first, 0, q.block_count(), seen, p);
    for_each_row_run(first, count, q.extents(), [&](index_t start, index_t rows) {
      for_each_piece(x, start, rows, step, [&](index_t row, index_t piece, index_t size, const float* floats) {
        const auto at = row_index(row, q.extents());
        for_each_part(piece, size, length, floats, [&](index_t col, index_t n, const float* part) {
          const index_t block = col / length;
          q.encode(at, col, n, part, block, p.from(block), special, seen.from(block));
        });
      });
    });
  });
}

/// A source read once into memory, for sources too dear to be read twice.
template <tile_source X>
class kept_source {
 public:
  explicit kept_source(const X& x)
      : floats_(static_cast<std::size_t>(x.rows() * x.cols())), ref_{floats_.data(), x.rows(), x.cols(), x.cols(), 1} {
    for_each_piece(x, 0, x.rows(), 1, [&](index_t row, index_t col, index_t n, const float* floats) {
      for (index_t i = 0; i < n; ++i) floats_[static_cast<std::size_t>(row * ref_.col_count + col + i)] = floats[i];
    });
  }
  const matrix_ref<const float>& ref() const { return ref_; }

 private:
  std::vector<float> floats_;
  matrix_ref<const float> ref_;
};

/// Elements that pieces of rows are multiples of: whole blocks where a tile holds them, else whole bytes (and pieces
/// are cut where blocks end); 0 where long blocks start inside bytes, so that rows cannot be cut.
template <class S>
constexpr index_t piece_step(index_t block_length, index_t row_length) {
  if (block_length >= row_length) return byte_step<S>;
  const index_t step = common_multiple(block_length, byte_step<S>);
  if (step <= tile_floats) return step;
  return block_length % byte_step<S> == 0 ? byte_step<S> : 0;
}

}  // namespace ops

/// Dynamic quantization of a source into a tensor: scales (and zero points) by the scheme's rule, then codes.
/// x has one row for every row the tensor stores (tile_source); nothing is written if its size is wrong.
/// Reads x once where scales are local to a row and to 2048 elements, else twice (or once into a temporary where x says
/// so).
template <tile_source X, quantization_scheme S, tensor_extents E, storage_order O>
void quantize_into(const X& x, const tensor_span<S, E, O>& out) {
  static_assert(!std::is_same_v<typename S::rule, static_only>,
                "qtensor: this scheme has no rule that computes scales (static_only); pass the scales to quantize.");
  static_assert(S::zero_points_as_scales || !S::has_zero_point,
                "qtensor: a rule computes scale and zero point of the same block; zero points of a granularity of "
                "their own must be "
                "given (quantize<S>(x, scales, zero_points)).");
  ops::check_source(x, out);
  if (out.size() == 0) return;
  if constexpr (ops::walks_rows<S>) {
    const ops::row_quantizer<S, E, O> quantizer(out);
    const index_t step = ops::piece_step<S>(quantizer.block_length(), x.cols());
    if (step != 0) {
      const bool row_is_block = quantizer.block_length() >= x.cols() && x.cols() <= ops::tile_floats;
      if (quantizer.rows_are_panels() && (row_is_block || step % quantizer.block_length() == 0))
        return ops::quantize_in_one_pass(x, quantizer, row_is_block ? x.cols() : step);
      if constexpr (X::reads_twice)
        return ops::quantize_in_two_passes(x, quantizer, step);
      else
        return ops::quantize_in_two_passes(ops::kept_source<X>(x).ref(), quantizer, step);
    }
  }
  const auto by_reference = [&](const auto& source) {
    reference::quantize(ops::element_source<std::remove_cvref_t<decltype(source)>, E, O>{source, out.extents()}, out);
  };
  if constexpr (X::reads_twice)
    by_reference(x);
  else
    by_reference(ops::kept_source<X>(x).ref());
}

/// Static quantization: the scales (and zero points) are in `out` already (store_scales, store_zero_points); writes the
/// codes.
template <tile_source X, quantization_scheme S, tensor_extents E, storage_order O>
void quantize_static_into(const X& x, const tensor_span<S, E, O>& out) {
  static_assert(!std::is_same_v<typename S::division, rule_multiplier>,
                "qtensor: rule_multiplier takes its multiplier from the data; with given scales use exact_division or "
                "reciprocal.");
  ops::check_source(x, out);
  if (out.size() == 0) return;
  constexpr std::size_t last = static_cast<std::size_t>(E::rank) - 1;
  const auto extents = out.storage_extents();
  const auto shorter = [&](index_t block) { return block < extents[last] ? block : extents[last]; };
  const index_t scale_length = shorter(out.scale_grid().block[last]),
                zero_length = S::has_zero_point ? shorter(out.zero_grid().block[last]) : scale_length;
  if constexpr (ops::walks_rows<S>) {
    const bool same = scale_length == zero_length;
    const index_t step = same ? ops::piece_step<S>(scale_length, extents[last]) : ops::byte_step<S>;
    if (step != 0) {
      // Blocks of a row as the kernels take them: its own where scales and zero points agree, else single elements.
      const index_t length = same ? scale_length : 1;
      float scales[ops::tile_floats];
      std::int32_t zeros[S::has_zero_point ? ops::tile_floats : 1];
      const ops::parameters_view p{scales, S::has_zero_point ? zeros : nullptr};
      ops::for_each_piece(x, 0, x.rows(), step, [&](index_t row, index_t piece, index_t size, const float* floats) {
        const auto start = ops::row_index(row, extents);
        ops::for_each_part(piece, size, length, floats, [&](index_t col, index_t n, const float* part) {
          auto at = start;
          for (index_t i = 0, b = 0; i < n; i += length, ++b) {
            at[last] = col + i;
            scales[b] = decode<typename S::scale_format>(out.storage_scale_code(at));
            if constexpr (S::has_zero_point) zeros[b] = static_cast<std::int32_t>(out.storage_zero_point(at));
          }
          ops::encode_piece<S>(part, n, length, p, out.row(start) + ops::unit_of_element<S>(col));
        });
      });
      return;
    }
  }
  reference::quantize_static(ops::element_source<X, E, O>{x, out.extents()}, out);
}

/// A new tensor of these extents from a source that has its rows. `how` is nothing (dynamic), a run-time granularity
/// (`group<dynamic>{64}`), scales, or scales and zero points; scales and zero points are a number or a contiguous
/// range.
template <quantization_scheme S, storage_order Order, tensor_extents Extents, tile_source X, class... How>
tensor<S, Extents, Order> make_quantized(const X& x, const Extents& extents, const How&... how) {
  constexpr bool sized = (granularity<How> || ... || false);
  if constexpr (sizeof...(How) == 0 || (sizeof...(How) == 1 && sized)) {
    tensor<S, Extents, Order> out(extents, typename S::granularity_type(how)...);
    quantize_into(x, out.span());
    return out;
  } else {
    static_assert(!sized && sizeof...(How) <= 2,
                  "qtensor: quantize<S>(x, scales) or quantize<S>(x, scales, zero_points); the run-time "
                  "granularity of a static tensor is given to the tensor (quantize_static_into).");
    static_assert(!S::has_tensor_scale && !S::has_offset,
                  "qtensor: this scheme stores more than scales and zero points; fill a tensor yourself.");
    static_assert(S::has_zero_point == (sizeof...(How) == 2),
                  "qtensor: static quantization takes scales and zero points where the scheme has a zero point, scales "
                  "alone where it is symmetric.");
    tensor<S, Extents, Order> out(extents);
    const auto store = [&](const auto& scales, const auto&... zero_points) {
      store_scales(out.span(), scales);
      (store_zero_points(out.span(), zero_points), ...);
    };
    store(how...);
    quantize_static_into(x, out.span());
    return out;
  }
}

/// Memory of any rank into a tensor of the same extents: `quantize<mxfp8_e4m3>(source(ptr, extents(2, 3, 64, 96)))`.
template <quantization_scheme S, storage_order Order = row_major, format F, tensor_extents Extents, class... How>
tensor<S, Extents, Order> quantize(const memory_source<F, Extents>& x, const How&... how) {
  return make_quantized<S, Order>(typename memory_source<F, Extents>::template in_order<Order>(x), x.extents, how...);
}

}  // namespace qtensor::inline QTENSOR_ABI
