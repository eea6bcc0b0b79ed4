// Quantize: any source into any tensor, by walking the tensor's rows and handing runs to kernels.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/ops/blocks.hpp>
#include <qtensor/ops/parameters.hpp>
#include <qtensor/ops/rows.hpp>
#include <qtensor/simd/quantize.hpp>
#include <qtensor/simd/scales.hpp>
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
/// Whether some elements do not count.
template <class S>
inline constexpr bool leaves_out = std::is_same_v<typename S::nonfinite_block, block_ignores> ||
                                   std::is_same_v<typename S::nonfinite_block, block_ignores_nan>;

/// Joins the elements of a piece to the statistics of its blocks: blocks of `length` from the piece's first element on.
template <class S>
void join_statistics(const float* x, index_t n, index_t length, const statistics_view& seen) {
  using arch = simd::best_arch;
  // Elements that statistics leave out have magnitudes from here on; blocks without them take the kernels' way.
  constexpr std::uint32_t limit = std::is_same_v<typename S::nonfinite_block, block_ignores> ? 0 : 1;
  if (leaves_out<S> && simd::amax_bits<arch>(x, n) >= infinity_bits + limit) {
    for (index_t i = 0; i < n; ++i) {
      reference::block_statistics one = seen[i / length];
      one.add<S>(x[i]);
      seen.amax[i / length] = one.amax_bits;
      if (needs_extremes<S>) seen.low[i / length] = one.low, seen.high[i / length] = one.high;
    }
    return;
  }
  if (length == 1) {  // a vector run: every element is its own block
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

/// Statistics of a piece alone, whose blocks of `length` start at its first element.
template <class S>
void block_statistics(const float* x, index_t n, index_t length, const statistics_view& seen) {
  using arch = simd::best_arch;
  const index_t whole = n / length;
  if (leaves_out<S> || (needs_extremes<S> && (whole < 2 || length == 1))) {
    seen.clear(divide_up(n, length));
    join_statistics<S>(x, n, length, seen);
  } else if constexpr (needs_extremes<S>) {
    constexpr index_t most = 64;
    std::uint32_t low[most], high[most];
    for (index_t first = 0; first < whole; first += most) {
      const index_t count = whole - first < most ? whole - first : most;
      simd::range_blocks<arch>(x + first * length, count, length, low, high);
      for (index_t b = 0; b < count; ++b) {
        seen.amax[first + b] = low[b] > high[b] ? low[b] : high[b];
        seen.low[first + b] = 0.f - float_of(low[b]);
        seen.high[first + b] = float_of(high[b]);
      }
    }
    if (whole * length < n) {
      seen.from(whole).clear(1);
      join_statistics<S>(x + whole * length, n - whole * length, length, seen.from(whole));
    }
  } else {
    if (length == 32)
      simd::amax_blocks_of<arch, 32>(x, whole, seen.amax);
    else
      simd::amax_blocks<arch>(x, whole, length, seen.amax);
    if (whole * length < n) seen.amax[whole] = simd::amax_bits<arch>(x + whole * length, n - whole * length);
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

/// Statistics of a row's blocks, with their memory.
template <class S>
class statistics_memory {
 public:
  explicit statistics_memory(index_t blocks)
      : amax_(static_cast<std::size_t>(blocks)),
        low_(needs_extremes<S> ? amax_.size() : 0),
        high_(needs_extremes<S> ? amax_.size() : 0) {}
  statistics_view view() {
    return {amax_.data(), needs_extremes<S> ? low_.data() : nullptr, needs_extremes<S> ? high_.data() : nullptr};
  }
  /// Joins those of other elements of the same blocks.
  void join(const statistics_memory& other) {
    for (std::size_t b = 0; b < amax_.size(); ++b) {
      amax_[b] = other.amax_[b] > amax_[b] ? other.amax_[b] : amax_[b];
      if constexpr (needs_extremes<S>) {
        low_[b] = other.low_[b] < low_[b] ? other.low_[b] : low_[b];
        high_[b] = other.high_[b] > high_[b] ? other.high_[b] : high_[b];
      }
    }
  }

 private:
  std::vector<std::uint32_t> amax_;
  std::vector<float> low_, high_;
};

/// Parameters of a row's blocks, with their memory.
template <class S>
class parameters_memory {
 public:
  explicit parameters_memory(index_t blocks)
      : scales_(static_cast<std::size_t>(blocks)), zeros_(S::has_zero_point ? scales_.size() : 0) {}
  parameters_view view() { return {scales_.data(), S::has_zero_point ? zeros_.data() : nullptr}; }

 private:
  std::vector<float> scales_;
  std::vector<std::int32_t> zeros_;
};

/// Scales that are stored, of every `length` elements of a row from `col` on, as floats.
template <tensor_view_type View>
void load_scales(const View& w, typename View::index_array at, index_t col, index_t count, index_t length, float* out) {
  using format = typename View::scheme_type::scale_format;
  constexpr std::size_t last = std::tuple_size_v<typename View::index_array> - 1;
  at[last] = col;
  if (w.scale_grid().stride[last] == 1 && length == w.scale_grid().block[last])
    return simd::decode_scales<format>(w.storage_scales(at), count, out);
  for (index_t b = 0; b < count; ++b) {
    at[last] = col + b * length;
    out[b] = decode<format>(w.storage_scale_code(at));
  }
}

/// Zero points that are stored, of every `length` elements of a row from `col` on.
template <tensor_view_type View>
void load_zero_points(const View& w, typename View::index_array at, index_t col, index_t count, index_t length,
                      std::int32_t* out) {
  using zero = typename View::scheme_type::zero_point_format;
  constexpr std::size_t last = std::tuple_size_v<typename View::index_array> - 1;
  at[last] = col;
  if (w.zero_grid().stride[last] == 1 && length == w.zero_grid().block[last]) {
    const auto* units = w.storage_zero_points(at);
    for (index_t b = 0; b < count; ++b)
      out[b] = static_cast<std::int32_t>(zero::decode(detail::code_of<zero>(units[b])));
  } else {
    for (index_t b = 0; b < count; ++b) {
      at[last] = col + b * length;
      out[b] = static_cast<std::int32_t>(w.storage_zero_point(at));
    }
  }
}

/// A block whose codes no division gives: poisoned, zeros without a sign, or scaled by 0, infinity or NaN.
constexpr bool is_special(const reference::block_parameters& p) {
  return p.poisoned || p.zero_codes || p.plus_zeros || !(p.code_scale > 0.f) || !is_finite(p.code_scale);
}

/// Encodes a piece of a row whose blocks of `length` start at its first element.
template <class S>
void encode_piece(const float* x, index_t n, index_t length, const parameters_view& p, float tensor_scale,
                  simd::blocks_are blocks, detail::code_unit_t<S>* codes, bool past_caches = false) {
  if (blocks == simd::blocks_are::fitting)
    simd::encode_fitting<S>(x, n, length, p.scales, p.zero_points, codes, tensor_scale, past_caches);
  else if (length >= n)
    simd::encode_uniform<S>(x, n, element_scale{p.scales[0], tensor_scale},
                            p.zero_points != nullptr ? p.zero_points[0] : 0, codes);
  else if (length == 1)
    simd::encode_vector<S>(x, n, p.scales, p.zero_points, codes, tensor_scale);
  else
    simd::encode_grouped<S>(x, n, length, p.scales, p.zero_points, codes, tensor_scale);
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

constexpr index_t common_multiple(index_t length, index_t step) {
  index_t multiple = length;
  while (multiple % step != 0) multiple += length;
  return multiple;
}

/// What the walk over rows needs: one array a parameter, codes in order, no random numbers. Everything else is
/// quantized by the reference.
template <class S>
inline constexpr bool walks_rows =
    !S::is_interleaved && std::is_same_v<typename S::layout::order, low_first> &&
    !random_rounding<typename S::rounding> && !S::has_offset && !peak_rule<typename S::rule>;

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

/// The rows of a tensor and the blocks in them, and how codes get there: the state that all passes share.
template <quantization_scheme S, tensor_extents E, storage_order O>
class row_quantizer {
  using span = tensor_span<S, E, O>;
  using index_array = typename E::array;
  using unit = detail::code_unit_t<S>;
  static constexpr std::size_t last = static_cast<std::size_t>(E::rank) - 1;

 public:
  using scheme_type = S;
  /// `direct`: the source lies in memory.
  row_quantizer(const span& out, bool direct)
      : out_(out),
        extents_(out.storage_extents()),
        grid_(out.scale_grid()),
        rows_(out),
        streams_(out.size() >= streaming_floats),
        from_memory_(streams_ && direct) {}
  ~row_quantizer() {
    if (streams_) simd::stream_fence<simd::best_arch>();
  }
  row_quantizer(const row_quantizer&) = delete;
  row_quantizer& operator=(const row_quantizer&) = delete;

  /// Whether the tensor is one long row.
  bool is_flat() const { return rows_.flat; }
  /// Whether all of it shares a scale.
  bool is_one_block() const { return rows_.one_block; }
  /// Elements of a row, of the one long row where the tensor is flat.
  index_t row_length() const { return rows_.row_length; }
  /// Elements of a row that share a scale.
  index_t block_length() const { return rows_.block_length; }
  /// Blocks along a row.
  index_t block_count() const { return divide_up(rows_.row_length, rows_.block_length); }
  /// Elements of a tile: fewer where the source comes from memory, so that reading and encoding alternate quickly.
  index_t tile_length() const { return from_memory_ ? tile_floats / 4 : tile_floats; }
  const index_array& extents() const { return extents_; }
  index_array index_of_row(index_t row) const { return rows_.flat ? index_array{} : row_index(row, extents_); }

  /// Rows that share a scale lie in boxes of the leading axes: calls visit(first, count) for each box.
  template <class Visit>
  void for_each_panel(Visit visit) const {
    auto grid = grid_;
    grid.block[last] = extents_[last];
    reference::for_each_block(grid, extents_, visit);
  }
  bool rows_are_panels() const {
    for (std::size_t axis = 0; axis < last; ++axis)
      if (grid_.block[axis] != 1 && extents_[axis] != 1) return rows_.flat;
    return true;
  }

  /// Two-level schemes: stores the scale of the whole tensor.
  void set_tensor_amax(float amax) requires(S::has_tensor_scale) {
    tensor_scale_ = S::rule::template tensor_scale<typename S::code_format, typename S::scale_format>(amax, S::codes);
    *out_.memory().tensor_scale = tensor_scale_;
    tensor_term_ = reference::detail::tensor_term_of<S>(amax, tensor_scale_);
  }

  /// Scales (and zero points) of blocks [first, first + count) of the row at `row` from their statistics: stores them,
  /// lays them out for the encode kernels, and says what the blocks are.
  simd::blocks_are finish(const index_array& row, index_t first, index_t count, const statistics_view& seen,
                          const parameters_view& p) const {
    index_array at = row;
    at[last] = first * rows_.block_length;
    using simd::blocks_are;
    if constexpr (simd::vector_scaled<S>)
      if (grid_.stride[last] == 1)
        if (const auto blocks =
                simd::block_scales<S>(seen.amax, count, out_.storage_scales(at), p.scales, tensor_term_);
            blocks != blocks_are::special)
          return blocks;
    if constexpr (simd::vector_ranged<S>) {
      if (grid_.stride[last] == 1 && out_.zero_grid().stride[last] == 1 &&
          simd::range_scales<S>(seen.amax, seen.low, seen.high, count, p.scales, p.zero_points) !=
              blocks_are::special) {
        std::copy_n(p.scales, count, out_.storage_scales(at));
        const auto zeros = out_.storage_zero_points(at);
        for (index_t b = 0; b < count; ++b)
          zeros[b] = static_cast<std::remove_cvref_t<decltype(*zeros)>>(p.zero_points[b]);
        return blocks_are::fitting;
      }
    }
    bool special = false;
    for (index_t b = 0; b < count; ++b) {
      const reference::block_parameters block = reference::parameters_of<S>(seen[b], tensor_term_);
      at[last] = (first + b) * rows_.block_length;
      out_.set_storage_scale_code(at, block.scale_code);
      if constexpr (S::has_zero_point) {
        out_.set_storage_zero_point(at, block.zero_point);
        p.zero_points[b] = static_cast<std::int32_t>(block.zero_point);
      }
      const bool odd = is_special(block);
      p.scales[b] = odd ? 1.f : block.code_scale;
      special = special || odd;
    }
    return special ? blocks_are::special : blocks_are::ordinary;
  }

  /// The scales (and zero points) that are stored already, laid out likewise: entries of every `length` elements.
  void load(const index_array& row, index_t col, index_t count, index_t length, const parameters_view& p) const {
    if (rows_.one_block) col = 0;
    load_scales(out_, row, col, count, length, p.scales);
    if constexpr (S::has_zero_point) load_zero_points(out_, row, col, count, length, p.zero_points);
  }

  /// Codes of one piece of a row, of at most `tile_floats` elements; `length` elements share an entry of p.
  void encode(const index_array& row, index_t col, index_t n, const float* x, index_t length, const parameters_view& p,
              simd::blocks_are blocks = simd::blocks_are::ordinary) const {
    unit* codes = out_.row(row) + unit_of_element<S>(col);
    // Kernels take codes past the caches themselves where these fill whole lines.
    const bool lines = S::code_format::bits == 8 && blocks == simd::blocks_are::fitting && n % 64 == 0 &&
                       reinterpret_cast<std::uintptr_t>(codes) % 64 == 0;
    if (!streams_ || lines) return encode_piece<S>(x, n, length, p, tensor_scale(), blocks, codes, streams_);
    alignas(64) unit kept[static_cast<std::size_t>(tile_floats)];
    encode_piece<S>(x, n, length, p, tensor_scale(), blocks, kept);
    constexpr index_t bits = is_packed<typename S::code_format> ? S::code_format::bits : 8 * sizeof(unit);
    simd::stream_bytes(kept, divide_up(n * bits, 8), codes);
  }

  /// The codes of special blocks again, by the reference; the piece starts at block `first`.
  void mend(const index_array& row, index_t col, index_t n, const float* x, index_t first,
            const statistics_view& seen) const {
    for (index_t i = 0, left; i < n; i += left) {
      const index_t block = (col + i) / rows_.block_length,
                    in_block = rows_.block_length - (col + i) % rows_.block_length;
      left = in_block < n - i ? in_block : n - i;
      const auto p = reference::parameters_of<S>(seen[block - first], tensor_term_);
      if (!is_special(p)) continue;
      for (index_t k = i; k < i + left; ++k) {
        const index_t position = col + k;
        index_array at = rows_.flat ? row_index(position / extents_[last], extents_) : row;
        at[last] = rows_.flat ? position % extents_[last] : position;
        out_.set_storage_code(at, reference::code_of<S>(x[k], p, tensor_scale(), 0));
      }
    }
  }

  /// Rows of codes lie at one distance, over all leading axes.
  bool rows_are_even() const { return last <= 1 || out_.row_strides() == out_.shape().row_strides(); }
  /// Several rows of codes whose scales vary along them: columns [col, col + n).
  void encode_columns(const index_array& row, index_t rows, index_t col, index_t n, const float* x, index_t x_step,
                      const parameters_view& p) const {
    const index_t code_step = rows > 1 ? out_.row_strides()[last - (last > 0)] : 0;
    simd::encode_columns<S>(x, rows, x_step, n, p.scales, p.zero_points, out_.row(row) + unit_of_element<S>(col),
                            code_step, tensor_scale());
  }

 private:
  float tensor_scale() const { return S::has_tensor_scale ? tensor_scale_ : 1.f; }
  const span& out_;
  index_array extents_;
  block_grid<E::rank> grid_;
  row_blocks rows_;
  bool streams_, from_memory_;
  float tensor_scale_ = 1.f, tensor_term_ = 1.f;
};

/// All pieces of a source as the quantizer sees its rows.
template <tile_source X, class Quantizer, class Visit>
void for_each_quantizer_piece(const X& x, const Quantizer& q, index_t step, Visit visit) {
  if (q.is_flat())
    for_each_flat_piece(x, step, q.tile_length(), visit);
  else
    for_each_piece(x, 0, x.rows(), step, visit);
}

/// Codes of rows [start, start + rows) and columns [col, col + n), every column with an entry of p, which is made ready
/// once for all rows (once for every tile of rows where they do not lie in memory). False, with nothing written, where
/// rows of codes do not lie at one distance.
template <tile_source X, class Quantizer>
bool encode_columns(const X& x, const Quantizer& q, index_t start, index_t rows, index_t col, index_t n,
                    const parameters_view& p) {
  if (!q.rows_are_even() || q.is_flat()) return false;
  if (const std::optional<index_t> step = row_step(x)) {
    q.encode_columns(q.index_of_row(start), rows, col, n, x.direct(start, col), *step, p);
    return true;
  }
  constexpr index_t height = tile_rows, width = tile_floats / tile_rows;
  alignas(64) float tile[tile_floats];
  for (index_t row = 0; row < rows; row += height)
    for (index_t at = 0; at < n; at += width) {
      const index_t down = rows - row < height ? rows - row : height, across = n - at < width ? n - at : width;
      x.read(start + row, down, col + at, across, tile, width);
      q.encode_columns(q.index_of_row(start + row), down, col + at, across, tile, width, p.from(at));
    }
  return true;
}

/// The same for scales that are stored already: panel by panel, as many columns at a time as p has entries.
template <tile_source X, class Quantizer>
bool encode_static_columns(const X& x, const Quantizer& q, const parameters_view& p) {
  if (!q.rows_are_even() || q.is_flat()) return false;
  q.for_each_panel([&](const auto& first, const auto& count) {
    for_each_row_run(first, count, q.extents(), [&](index_t start, index_t rows) {
      for (index_t col = 0; col < x.cols(); col += tile_floats) {
        const index_t n = x.cols() - col < tile_floats ? x.cols() - col : tile_floats;
        q.load(q.index_of_row(start), col, n, 1, p);
        encode_columns(x, q, start, rows, col, n, p);
      }
    });
  });
  return true;
}

/// The largest finite magnitude of a source, 0 if there is none.
template <tile_source X>
float finite_amax(const X& x) {
  std::uint32_t most = 0;
  for_each_piece(x, 0, x.rows(), 1, [&](index_t, index_t, index_t n, const float* floats) {
    std::uint32_t bits = simd::amax_bits<simd::best_arch>(floats, n);
    if (bits >= infinity_bits) [[unlikely]] {
      bits = 0;
      for (index_t i = 0; i < n; ++i)
        if (is_finite(floats[i]) && (bits_of(floats[i]) & magnitude_bits) > bits)
          bits = bits_of(floats[i]) & magnitude_bits;
    }
    most = bits > most ? bits : most;
  });
  return float_of(most);
}

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
  for_each_quantizer_piece(x, q, step, [&](index_t row, index_t col, index_t n, const float* floats) {
    const auto at = q.index_of_row(row);
    const index_t first = col / q.block_length(), count = divide_up(n, q.block_length());
    block_statistics<S>(floats, n, q.block_length(), seen);
    const simd::blocks_are blocks = q.finish(at, first, count, seen, p);
    q.encode(at, col, n, floats, q.block_length(), p, blocks);
    if (blocks == simd::blocks_are::special) q.mend(at, col, n, floats, first, seen);
  });
}

/// The statistics of elements [first, first + size) of a row, joined to those of its blocks.
template <class S>
void join_piece(index_t first, index_t size, index_t length, const float* floats, const statistics_view& seen) {
  for_each_part(first, size, length, floats, [&](index_t col, index_t n, const float* part) {
    join_statistics<S>(part, n, length, seen.from(col / length));
  });
}

/// The same for rows [start, start + rows) of a source.
template <class S, tile_source X>
void join_rows(const X& x, index_t start, index_t rows, index_t step, index_t length, const statistics_view& seen) {
  for_each_piece(x, start, rows, step, [&](index_t, index_t piece, index_t size, const float* floats) {
    join_piece<S>(piece, size, length, floats, seen);
  });
}

/// Codes of rows [start, start + rows) of a source, of all of them where the tensor is flat, from the parameters of a
/// row's blocks.
template <tile_source X, class Quantizer>
void encode_rows(const X& x, const Quantizer& q, index_t start, index_t rows, index_t step, const statistics_view& seen,
                 const parameters_view& p, bool special) {
  const index_t length = q.block_length();
  const auto encode = [&](const auto& at, index_t piece, index_t size, const float* floats) {
    for_each_part(piece, size, length, floats, [&](index_t col, index_t n, const float* part) {
      const index_t block = col / length;
      q.encode(at, col, n, part, length, p.from(block));
      if (special) q.mend(at, col, n, part, block, seen.from(block));
    });
  };
  if (q.is_flat())
    return for_each_flat_piece(x, step, tile_floats, [&](index_t, index_t piece, index_t size, const float* floats) {
      encode(q.index_of_row(0), piece, size, floats);
    });
  if (length == 1 && !special && encode_columns(x, q, start, rows, 0, x.cols(), p)) return;
  for_each_piece(x, start, rows, step, [&](index_t row, index_t piece, index_t size, const float* floats) {
    encode(q.index_of_row(row), piece, size, floats);
  });
}

/// Two passes over each panel of rows that share scales: statistics, then codes.
template <tile_source X, class Quantizer>
void quantize_in_two_passes(const X& x, const Quantizer& q, index_t step) {
  using S = typename Quantizer::scheme_type;
  statistics_memory<S> statistics(q.block_count());
  parameters_memory<S> parameters(q.block_count());
  const statistics_view seen = statistics.view();
  const parameters_view p = parameters.view();
  const index_t length = q.block_length();
  if (q.is_flat()) {
    for_each_flat_piece(x, step, tile_floats, [&](index_t, index_t piece, index_t size, const float* floats) {
      join_piece<S>(piece, size, length, floats, seen);
    });
    const bool special = q.finish(q.index_of_row(0), 0, q.block_count(), seen, p) == simd::blocks_are::special;
    return encode_rows(x, q, 0, x.rows(), step, seen, p, special);
  }
  q.for_each_panel([&](const auto& first, const auto& count) {
    seen.clear(q.block_count());
    for_each_row_run(first, count, q.extents(),
                     [&](index_t start, index_t rows) { join_rows<S>(x, start, rows, step, length, seen); });
    const bool special = q.finish(first, 0, q.block_count(), seen, p) == simd::blocks_are::special;
    for_each_row_run(first, count, q.extents(),
                     [&](index_t start, index_t rows) { encode_rows(x, q, start, rows, step, seen, p, special); });
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

/// A tensor that is about to be quantized into: its arrays are not cleared where all of them will be written. Codes
/// that go to packed memory one by one need zeros around them.
template <quantization_scheme S, tensor_extents E, storage_order O>
tensor<S, E, O> tensor_to_fill(const E& extents, const typename S::granularity_type& granularity = {}) {
  if constexpr (walks_rows<S>) {
    const tensor_shape<S, E, O> shape{extents, granularity, {}};
    const index_t row = shape.row_length();
    const index_t block = shape.scale_grid().block[static_cast<std::size_t>(E::rank) - 1];
    if (!is_packed<typename S::code_format> || piece_step<S>(block < row ? block : row, row) != 0)
      return tensor<S, E, O>(uninitialized, extents, granularity);
  }
  return tensor<S, E, O>(extents, granularity);
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
  if (out.size() == 0) {
    if constexpr (S::has_tensor_scale)
      reference::quantize([](const auto&) { return 0.f; }, out);  // its scale of nothing
    return;
  }
  if constexpr (simd::block_encodable<S>) return ops::quantize_to_blocks(x, out);
  if constexpr (ops::walks_rows<S>) {
    ops::row_quantizer<S, E, O> quantizer(out, ops::row_step(x).has_value());
    const index_t length = quantizer.block_length(), cols = quantizer.row_length();
    if (const index_t step = ops::piece_step<S>(length, cols); step != 0) {
      // One block of several rows comes in one piece only from sources that give whole rows.
      const bool in_one_piece = !quantizer.is_one_block() || x.rows() == 1 || ops::reads_by_rows(x, 0);
      const bool row_is_block = length >= cols && cols <= ops::tile_floats;
      const bool once = in_one_piece && quantizer.rows_are_panels() && (row_is_block || step % length == 0);
      const auto by_rows = [&](const auto& source) {
        if constexpr (S::has_tensor_scale) quantizer.set_tensor_amax(ops::finite_amax(source));
        if (once)
          ops::quantize_in_one_pass(source, quantizer, row_is_block ? cols : step);
        else
          ops::quantize_in_two_passes(source, quantizer, step);
      };
      if constexpr (X::reads_twice)
        by_rows(x);
      else if (once && !S::has_tensor_scale)
        ops::quantize_in_one_pass(x, quantizer, row_is_block ? cols : step);
      else
        by_rows(ops::kept_source<X>(x).ref());
      return;
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
  if constexpr (ops::walks_rows<S> && !S::has_tensor_scale) {
    const ops::row_quantizer<S, E, O> q(out, ops::row_step(x).has_value());
    const bool same = !S::has_zero_point || out.zero_grid().block == out.scale_grid().block;
    const index_t step = same ? ops::piece_step<S>(q.block_length(), q.row_length()) : ops::byte_step<S>;
    if (step != 0) {
      // Blocks of a row as the kernels take them: its own where scales and zero points agree, else single elements.
      const index_t length = same ? q.block_length() : 1;
      float scales[ops::tile_floats];
      std::int32_t zeros[S::has_zero_point ? ops::tile_floats : 1];
      const ops::parameters_view p{scales, S::has_zero_point ? zeros : nullptr};
      if (length == 1 && same && ops::encode_static_columns(x, q, p)) return;
      const auto visit = [&](index_t row, index_t piece, index_t size, const float* floats) {
        const auto at = q.index_of_row(row);
        ops::for_each_part(piece, size, length, floats, [&](index_t col, index_t n, const float* part) {
          q.load(at, col, divide_up(n, length), length, p);
          q.encode(at, col, n, part, length, p);
        });
      };
      if (same)
        ops::for_each_quantizer_piece(x, q, step, visit);
      else
        ops::for_each_piece(x, 0, x.rows(), step, visit);
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
    auto out = ops::tensor_to_fill<S, Extents, Order>(extents, typename S::granularity_type(how)...);
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
    auto out = ops::tensor_to_fill<S, Extents, Order>(extents);
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
