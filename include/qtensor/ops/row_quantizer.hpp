// The rows of a tensor that is being quantized: where their blocks lie, how scales and codes get there.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/ops/block_parameters.hpp>
#include <qtensor/ops/padded_rows.hpp>
#include <qtensor/reference/tensor_level.hpp>
#include <qtensor/simd/quantize_columns.hpp>
#include <qtensor/simd/random.hpp>

namespace qtensor::inline QTENSOR_ABI::ops {

/// Encodes a piece of a row whose blocks of `length` start at its first element. Where a scheme has but one block, all
/// entries of p are the same.
template <class S, simd::float_source From = simd::from_f32>
void encode_piece(const typename From::type* x, index_t n, index_t length, const parameters_view& p, float tensor_scale,
                  simd::blocks_are blocks, detail::code_unit_t<S>* codes, simd::traffic t = {}) {
  const element_scale first{p.scales[0], tensor_scale};
  const std::int32_t first_zero = p.zero_points != nullptr ? p.zero_points[0] : 0;
  if constexpr (has_one_scale<S>) {
    if (blocks == simd::blocks_are::fitting)
      simd::encode_uniform_fitting<S, From>(x, n, first, first_zero, codes, t);
    else
      simd::encode_uniform<S, From>(x, n, first, first_zero, codes, t);
  } else {
    if (blocks == simd::blocks_are::fitting && length > 1)
      simd::encode_fitting<S, From>(x, n, length, p.scales, p.zero_points, codes, tensor_scale, t);
    else if (length >= n)
      simd::encode_uniform<S, From>(x, n, first, first_zero, codes, t);
    else if (length == 1)
      simd::encode_vector<S, From>(x, n, p.scales, p.zero_points, codes, tensor_scale, t);
    else
      simd::encode_grouped<S, From>(x, n, length, p.scales, p.zero_points, codes, tensor_scale, t);
  }
}

/// Calls part(col, n, elements) for a piece cut where blocks of `length` end; a run of whole blocks is one part.
template <class Element, class Part>
void for_each_part(index_t col, index_t n, index_t length, const Element* elements, Part part) {
  while (n > 0) {
    const index_t inside = col % length, left = length - inside;
    const index_t take = inside == 0 && n >= length ? n : n < left ? n : left;
    part(col, take, elements);
    col += take;
    elements += take;
    n -= take;
  }
}

constexpr index_t common_multiple(index_t length, index_t step) {
  index_t multiple = length;
  while (multiple % step != 0) multiple += length;
  return multiple;
}

/// What the walk over rows needs: one array a parameter, codes in order, random numbers that vectors can draw.
/// Everything else is quantized by the reference.
template <class S>
inline constexpr bool walks_rows = simd::codes_in_runs<S> &&
                                   (!random_rounding<typename S::rounding> || simd::rounds_at_random<S>)&&!S::has_offset
                                   && !peak_rule<typename S::rule>;

/// Whether rows are encoded one after the other, by the positions of their elements.
template <class S>
inline constexpr bool goes_by_position = random_rounding<typename S::rounding>;

/// S as kernels of runs take it: after a rounding at random nothing is left to divide or to round.
template <class S>
struct run_scheme {
  using type = S;
};
template <class S>
requires goes_by_position<S>
struct run_scheme<S> {
  using type = with<S, nearest_even, exact_division>;
};

/// The rows of a tensor and the blocks in them, and how codes get there from elements as `From` reads them: the state
/// that all passes share.
template <quantization_scheme S, tensor_extents E, storage_order O, simd::float_source From = simd::from_f32>
class row_quantizer {
  using span = tensor_span<S, E, O>;
  using runs = typename run_scheme<S>::type;
  using unit = detail::code_unit_t<S>;
  using element = typename From::type;
  static constexpr std::size_t last = static_cast<std::size_t>(E::rank) - 1;

 public:
  using columns_type = simd::column_encoder<runs, From>;
  using index_array = typename E::array;
  using scheme_type = S;
  using source_type = From;
  using scale_unit = storage_t<typename S::scale_format>;
  static constexpr int rank = E::rank;
  /// Rows are cut into groups, each with a scale of its own, of which a tile holds several.
  static constexpr bool in_groups = groups_of_rows<S, O, E::rank> != 0;
  /// `direct`: the source lies in memory.
  row_quantizer(const span& out, bool direct)
      : out_(out),
        extents_(out.storage_extents()),
        grid_(out.scale_grid()),
        rows_(out),
        streams_(is_beyond_caches(out.size())),
        direct_(direct) {
    QTENSOR_ASSERT(!has_one_scale<S> || rows_.block_length >= rows_.row_length, "one block holds all of a row");
    // Blocks that no tile holds are quantized one row after the other where a cache holds one, but not all of them: one
    // long row would be read twice from memory.
    constexpr index_t cached = 2 * box_floats * index_t{sizeof(float) / sizeof(element)};
    if (rows_.flat && !rows_.one_block && rows_.block_length > tile_floats && out.size() > cached) {
      rows_.flat = false;
      rows_.row_length = extents_[last];
    }
  }
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
  /// Elements of a piece whose scales come from it: where they come from memory, as many as the CPU likes best.
  index_t tile_length() const { return streams_ && direct_ ? alternating_length<element>() : tile_floats; }
  /// Elements of long blocks that are read for statistics and encoded in turn.
  index_t part_length() const { return simd::best_requests().part / index_t{sizeof(element)}; }
  /// Whether blocks of `step` elements each are read and encoded so: where several come from memory, and two fit a
  /// cache.
  bool reads_in_turn(index_t step) const {
    return streams_ && direct_ && !rows_.one_block && part_length() > 0 && step >= tile_length() &&
           step <= box_floats && step == std::min(rows_.block_length, rows_.row_length);
  }
  /// Elements of a piece whose scales are known: as many as there are where they share one, more where long blocks do.
  index_t encode_length() const {
    return rows_.one_block ? rows_.row_length : std::max(tile_floats, 128 * rows_.block_length);
  }
  const index_array& extents() const { return extents_; }
  index_array index_of_row(index_t row) const { return rows_.flat ? index_array{} : row_index(row, extents_); }

  /// Rows that share a scale lie in boxes of the leading axes: calls visit(first, count) for each box.
  template <class Visit>
  void for_each_panel(Visit visit) const {
    auto grid = grid_;
    grid.block[last] = extents_[last];
    reference::for_each_block(grid, extents_, visit);
  }
  /// Rows side by side that share a scale.
  index_t panel_rows() const {
    constexpr std::size_t side = last - (last > 0);
    return std::min(grid_.block[side], extents_[side]);
  }
  /// Rows in a box of the leading axes.
  static index_t rows_of(const index_array& count) {
    index_t rows = 1;
    for (std::size_t axis = 0; axis < last; ++axis) rows *= count[axis];
    return rows;
  }
  bool rows_are_panels() const {
    for (std::size_t axis = 0; axis < last; ++axis)
      if (grid_.block[axis] != 1 && extents_[axis] != 1) return rows_.flat;
    return true;
  }

  /// Two-level schemes: goes by the level of a whole tensor, of which this may be a part.
  void take(const tensor_level& whole) requires(S::has_tensor_scale) { level_ = whole; }

  /// Scales (and zero points) of blocks [first, first + count) of the row at `row` from their statistics: stores them,
  /// lays them out for the encode kernels, and says what the blocks are.
  simd::blocks_are finish(const index_array& row, index_t first, index_t count, const statistics_view& seen,
                          const parameters_view& p) const {
    index_array at = row;
    at[last] = first * rows_.block_length;
    return finish_along(at, last, count, seen, p);
  }
  /// The same for `count` blocks side by side along an axis, from the one at `at` on.
  simd::blocks_are finish_along(index_array at, std::size_t axis, index_t count, const statistics_view& seen,
                                const parameters_view& p) const {
    using simd::blocks_are;
    if (const auto blocks = finish_by_vectors(at, axis, count, seen, p, out_.storage_scales(at), grid_.stride[axis]);
        blocks != blocks_are::special)
      return blocks;
    bool special = false;
    const index_t length = axis == last ? rows_.block_length : grid_.block[axis];
    for (index_t b = 0; b < count; ++b, at[axis] += length) {
      const reference::block_parameters block = reference::parameters_of<S>(seen[b], level_.term);
      out_.set_storage_scale_code(at, block.scale_code);
      if constexpr (S::has_zero_point) {
        out_.set_storage_zero_point(at, block.zero_point);
        p.zero_points[b] = static_cast<std::int32_t>(block.zero_point);
      }
      const bool odd = is_special<S>(block);
      p.scales[b] = odd ? 1.f : is_zeroed<S>(block) ? 0.f : block.code_scale;
      special = special || odd;
    }
    return special ? blocks_are::special : blocks_are::ordinary;
  }

  /// The same for blocks of `count` rows one below the other, but what is stored of their scales is kept: neighbours go
  /// to memory together (store_kept).
  simd::blocks_are finish_down(const index_array& at, index_t count, const statistics_view& seen,
                               const parameters_view& p, scale_unit* kept) const {
    using simd::blocks_are;
    if (const auto blocks = finish_by_vectors(at, 0, count, seen, p, kept, 1); blocks != blocks_are::special)
      return blocks;
    const blocks_are blocks = finish_along(at, 0, count, seen, p);
    const scale_unit* scales = out_.storage_scales(at);
    for (index_t i = 0; i < count; ++i) kept[i] = scales[i * grid_.stride[0]];
    return blocks;
  }
  /// Scales that finish_down kept: row r of block b, counted from the one at `at`, at kept[b * step + r].
  void store_kept(const index_array& at, index_t rows, index_t blocks, const scale_unit* kept, index_t step) const {
    scale_unit* scales = out_.storage_scales(at);
    if (grid_.stride[last] == 1) return simd::transpose(kept, step, rows, blocks, scales, grid_.stride[0]);
    for (index_t b = 0; b < blocks; ++b)
      copy_apart(kept + b * step, rows, scales + b * grid_.stride[last], grid_.stride[0]);
  }

  /// What finish() does, for all blocks of n panels of a tile (padded_rows, narrow_panels), from the one at `at` on.
  template <class Tile>
  simd::blocks_are finish_tile(index_array at, index_t n, const Tile& tile, const statistics_view& seen,
                               const parameters_view& p) const {
    using simd::blocks_are;
    auto all = finish_by_vectors(at, last, n * tile.blocks, seen, p, out_.storage_scales(at), grid_.stride[last]);
    if (all != blocks_are::special) return all;
    all = blocks_are::fitting;
    for (index_t b = 0; b < n * tile.blocks; b += tile.blocks, at[last - 1] += tile.rows)
      all = std::min(all, finish_along(at, last, tile.blocks, seen.from(b), p.from(b)));
    return all;
  }

  /// The scales (and zero points) that are stored already, laid out likewise: entries of every `length` elements.
  void load(const index_array& row, index_t col, index_t count, index_t length, const parameters_view& p) const {
    if (rows_.one_block) col = 0;
    load_scales(out_, row, col, count, length, p.scales);
    if constexpr (S::has_zero_point) load_zero_points(out_, row, col, count, length, p.zero_points);
  }

  /// Where codes of a row begin, from element `col` on; how far apart those of neighbouring rows do; whether they go
  /// past the caches.
  unit* codes(const index_array& row, index_t col) const { return out_.row(row) + unit_of_element<S>(col); }
  index_t code_step() const { return out_.row_strides()[last - (last > 0)]; }
  bool streams() const { return streams_; }
  /// How far rows of sources across the order are asked for.
  simd::fetch fetches() const { return streams_ ? simd::fetch::far : simd::fetch::nothing; }

  /// Whether rows that share the given scales of groups are encoded one by one all the same: where they come from
  /// memory, whose order then counts for more, and kernels take such groups as they are. Numbers of 16 bits come faster
  /// than short codes of them are made.
  bool encodes_groups_in_order() const {
    const bool whole_vectors = rows_.block_length % simd::lanes<simd::best_arch> == 0;
    constexpr bool waits = sizeof(element) == sizeof(float) || S::code_format::bits == 8;
    return streams_ && direct_ && whole_vectors && waits && simd::best_requests().in_order;
  }

  /// How far elements further on in a row are asked for while statistics read them.
  simd::fetch fetches_while_reading() const {
    return streams_ && direct_ ? simd::best_requests().only : simd::fetch::nothing;
  }
  /// The same where they are read again for their codes: those of long blocks come in order for long enough, and bring
  /// twice as many bytes as 16-bit numbers; every CPU measured likes to be asked for them.
  simd::fetch fetches_before_codes() const {
    constexpr index_t long_block = 512;
    if (!streams_ || !direct_) return simd::fetch::nothing;
    if (rows_.block_length == 1) return simd::best_requests().columns;
    if (sizeof(element) == sizeof(float) && rows_.block_length >= long_block) return simd::fetch::far;
    return simd::best_requests().only;
  }

  /// How numbers further on are asked for while codes are made, where they are read once.
  simd::traffic asks_in_order() const {
    if (!streams_ || !direct_) return {};
    return simd::reads_once(false);
  }
  /// The same while codes of n numbers are made that statistics have read.
  simd::traffic asks_behind_statistics(index_t n) const {
    return direct_ ? ops::asks_behind_statistics<element>(n, out_.size()) : simd::traffic{};
  }
  /// The same where codes of a panel are made, whose numbers are in a cache: those of the next panel are asked for,
  /// where it is a row that leaves them room there.
  simd::traffic asks_behind_panel() const {
    const index_t bytes = rows_.row_length * index_t{sizeof(element)};
    if (!streams_ || !direct_ || panel_rows() > 1 || bytes > box_floats * index_t{sizeof(float)})
      return asks_in_order();
    const simd::requests best = simd::best_requests();
    if (best.next_piece == simd::fetch::near)  // of what the first-level cache has no room for, only the beginning
      return {simd::fetch::near, false, bytes <= 2 * best.ahead ? std::max(bytes, best.ahead) : best.ahead};
    constexpr index_t near_bytes = 16384;
    return {bytes <= near_bytes ? best.next_piece : simd::fetch::far, false, bytes};
  }

  /// Codes of one piece of a row, of at most encode_length() elements; `length` elements share an entry of p. `asks`:
  /// how numbers further on are asked for.
  void encode(const index_array& row, index_t col, index_t n, const element* x, index_t length,
              const parameters_view& p, simd::blocks_are blocks, simd::traffic asks) const {
    asks.streams = streams_;
    if constexpr (goes_by_position<S>)
      encode_at_random(row, col, n, x, length, p);
    else
      encode_piece<S, From>(x, n, length, p, tensor_scale(), blocks, codes(row, col), asks);
  }
  /// How short rows lie in a tile, where that is the faster way. `stored`: their parameters are known.
  std::optional<padded_rows> padding(bool stored = false) const {
    if (rows_.one_block || (rows_.flat && rows_.block_length < extents_[last])) return {};
    auto tile = padded_rows::of(out_, stored);
    if (!tile || (rows_.flat && !tile->ends_in_vectors())) return {};
    tile->most = std::clamp(tile_length() / tile->length, index_t{1}, tile->most);
    return tile;
  }
  /// Scales (and zero points) that are stored, of all blocks of n panels of a tile from the one at `at` on.
  template <class Tile>
  void load_tile(const index_array& at, index_t n, const Tile& tile, const parameters_view& p) const {
    ops::load_tile(out_, at, n, tile, p);
  }
  /// Codes of n rows of a tile, from the one at `at` on.
  void encode_rows(const index_array& at, index_t n, const padded_rows& tile, const element* x,
                   const parameters_view& p, simd::blocks_are blocks) const {
    alignas(64) unit kept[static_cast<std::size_t>(tile_floats)];
    encode_piece<S, From>(x, n * tile.length, tile.block, p, tensor_scale(), blocks, kept);
    const index_t step = tile.step<S>();
    clear_unused_bits<S>(kept, step, n, tile.cols);
    store_tile(kept, step, n, units_of_row<S>(tile.cols), codes(at, 0), code_step(), streams_);
  }

  /// The codes of special blocks again, by the reference; the piece starts at block `first`.
  void mend(const index_array& row, index_t col, index_t n, const element* x, index_t first,
            const statistics_view& seen) const {
    for (index_t i = 0, left; i < n; i += left) {
      const index_t block = (col + i) / rows_.block_length,
                    in_block = rows_.block_length - (col + i) % rows_.block_length;
      left = in_block < n - i ? in_block : n - i;
      const auto p = reference::parameters_of<S>(seen[block - first], level_.term);
      if (!is_special<S>(p)) continue;
      for (index_t k = i; k < i + left; ++k) {
        const index_array at = index_in_row(row, col + k);
        out_.set_storage_code(at, reference::code_of<S>(simd::number<From>(x[k]), p, tensor_scale(), random_word(at)));
      }
    }
  }

  /// The same for the n codes of one block, from the one at an index on.
  void mend_block(index_array at, index_t n, const element* x, const reference::block_statistics& seen) const {
    const auto p = reference::parameters_of<S>(seen, level_.term);
    if (!is_special<S>(p)) return;
    for (index_t i = 0; i < n; ++i, ++at[last])
      out_.set_storage_code(at, reference::code_of<S>(simd::number<From>(x[i]), p, tensor_scale(), random_word(at)));
  }

  /// The same for all special blocks of n rows of a tile.
  void mend_rows(index_array at, index_t n, const padded_rows& tile, const element* x,
                 const statistics_view& seen) const {
    for (index_t r = 0, b = 0; r < n; ++r, ++at[last - 1])
      for (index_t i = 0; i < tile.blocks; ++i, ++b) {
        at[last] = i * tile.block;
        const index_t count = std::min(tile.block, tile.cols - at[last]);
        mend_block(at, count, x + r * tile.length + at[last], seen[b]);
      }
  }

  /// How many codes of a row are turned at a time, at most.
  static constexpr index_t turned_cols = 256;
  /// Codes of n <= turned_cols elements of each of some rows, from the one at an index on: a byte each, that of element
  /// c of row r at bytes[c * step + r].
  void store_turned(index_array at, index_t rows, index_t n, const std::uint8_t* bytes, index_t step) const {
    constexpr index_t high = 16;
    constexpr int bits = S::code_format::bits;
    index_t first = 0;
    if constexpr (bits == 8)
      if (streams_) {
        auto* to = reinterpret_cast<std::uint8_t*>(out_.row(at) + at[last]);
        const index_t whole = rows / high * high, to_step = out_.row_strides()[last - 1];
        if (simd::turns_lines(whole, n, to, to_step)) {
          simd::transpose_past_caches(bytes, step, whole, n, to, to_step);
          first = whole;
        }
      }
    const auto place = [&](index_t row) {
      return reinterpret_cast<std::uint8_t*>(out_.row({at[0] + row, 0}) + unit_of_element<S>(at[last]));
    };
    alignas(64) std::uint8_t turned[high * turned_cols];
    for (index_t asked = first; first < rows; first += high) {
      const index_t count = std::min(high, rows - first);
      for (; streams_ && asked < std::min(first + 2 * high, rows); ++asked)
        simd::fetch_shared_lines(place(asked), simd::packed_bytes<bits>(n));
      simd::transpose(bytes + first, step, count, n, turned, turned_cols);
      for (index_t r = 0; r < count; ++r)
        simd::pack_codes<simd::best_arch, bits>(turned + r * turned_cols, n, place(first + r), streams_);
    }
  }

  /// Codes of `cols` <= turned_cols elements of each of some rows, from the one at an index on, whose columns lie at x
  /// and x + x_step, ...; every `length` of them have an encoder, which has entries for the rows. False, and
  /// nothing is written, where scales ask for more care.
  bool encode_turned(index_array at, index_t rows, index_t cols, const columns_type* encoders, index_t length,
                     const element* x, index_t x_step) const {
    constexpr int bits = S::code_format::bits;
    auto* to = reinterpret_cast<std::uint8_t*>(out_.row(at) + unit_of_element<S>(at[last]));
    const index_t to_step = out_.row_strides()[last - 1] * index_t{sizeof(unit)};
    if constexpr (bits == 8)
      return columns_type::encode_turned(encoders, length, x, x_step, cols, 0, rows, to, to_step);
    constexpr index_t high = simd::detail::most_turned * columns_type::turned_elements;
    alignas(64) std::uint8_t turned[high * turned_cols];
    for (index_t row = 0, n; row < rows; row += n) {
      n = std::min(high, rows - row);
      if (!columns_type::encode_turned(encoders, length, x + row, x_step, cols, row, n, turned, turned_cols))
        return false;
      for (index_t r = 0; r < n; ++r, to += to_step)
        simd::pack_codes<simd::best_arch, bits>(turned + r * turned_cols, cols, to);
    }
    return true;
  }

  /// Rows of codes lie at one distance, over all leading axes.
  bool rows_are_even() const { return last <= 1 || out_.row_strides() == out_.shape().row_strides(); }
  /// An encoder of the columns that p has entries for; `memory` is its own (memory_for(n) floats). `shared`: what they
  /// are copies of, if they are.
  columns_type column_encoder(const parameters_view& p, index_t n, float* memory, simd::blocks_are blocks,
                              const simd::shared_scales& shared = {}) const {
    return {p.scales, p.zero_points, n, tensor_scale(), memory, blocks == simd::blocks_are::fitting, shared};
  }
  /// Whether each row of codes begins where the one before it ends.
  bool codes_follow_each_other() const { return rows_.dense; }
  /// Codes of whole rows that follow each other, from an index on, by an encoder of the columns of `together` of them.
  void encode_rows_as_one(const columns_type& columns, index_t together, const index_array& row,
                          const matrix_ref<const element>& box) const {
    const index_t cols = box.cols(), whole = box.rows() / together * together;
    const index_t step = unit_of_element<S>(cols);
    unit* to = codes(row, 0);
    columns.encode(box.data, cols * together, whole / together, 0, cols * together, to, step * together, streams_,
                   asks_for_rows_below());
    columns.encode(box.data + whole * cols, cols, box.rows() - whole, 0, cols, to + whole * step, step, streams_);
  }
  /// Codes of a box whose first element is (row, col), by an encoder of columns from `first` on. `asks`: for what
  /// meanwhile, if not for rows below.
  void encode_columns(const columns_type& columns, index_t first, const index_array& row, index_t col,
                      const matrix_ref<const element>& box, simd::box_requests asks = {}) const {
    columns.encode(box.data, box.row_stride, box.rows(), col - first, box.cols(), codes(row, col),
                   box.rows() > 1 ? code_step() : 0, streams_, asks.ahead != 0 ? asks : asks_for_rows_below());
  }

 private:
  /// What is asked for while rows are encoded by columns.
  simd::box_requests asks_for_rows_below() const { return {direct_ ? fetches() : simd::fetch::nothing}; }

  static constexpr index_t most_apart = 512;  // entries that are stored apart from each other at a time

  /// What finish_along does, where vectors can; `special` where the reference has to. Scales are stored `step` apart
  /// from `scales` on.
  simd::blocks_are finish_by_vectors(const index_array& at, std::size_t axis, index_t count,
                                     const statistics_view& seen, const parameters_view& p, scale_unit* scales,
                                     index_t step) const {
    using simd::blocks_are;
    if constexpr (simd::vector_scaled<S> || simd::vector_ranged<S>) {
      scale_unit kept[static_cast<std::size_t>(most_apart)];
      blocks_are all = blocks_are::fitting, some;
      for (index_t first = 0, n; first < count; first += n) {
        n = step == 1 ? count : std::min(most_apart, count - first);
        scale_unit* const to = step == 1 ? scales : kept;
        const auto these = seen.from(first);
        const auto own = p.from(first);
        if constexpr (simd::vector_scaled<S>)
          some = simd::block_scales<S>(these.amax, n, to, own.scales, level_.term);
        else
          some = simd::range_scales<S>(these.amax, these.low, these.high, n, to, own.scales, own.zero_points);
        if (some == blocks_are::special) return some;
        all = std::min(all, some);
        if (step != 1) copy_apart(kept, n, scales + first * step, step);
        if constexpr (S::has_zero_point) {
          const index_t zero_step = out_.zero_grid().stride[axis];
          copy_apart(own.zero_points, n, out_.storage_zero_points(at) + first * zero_step, zero_step);
        }
      }
      return all;
    }
    return blocks_are::special;
  }
  /// The index, in storage order, of element `col` of a row, which may be all of the tensor.
  index_array index_in_row(const index_array& row, index_t col) const {
    index_array at = rows_.flat ? row_index(col / extents_[last], extents_) : row;
    at[last] = rows_.flat ? col % extents_[last] : col;
    return at;
  }
  /// What random numbers go by, of the element at an index in storage order.
  std::uint64_t position(const index_array& at) const {
    return reference::detail::position(reordered<O>(at), out_.extents());
  }
  std::uint32_t random_word(const index_array& at) const {
    return reference::detail::random_word<S>(reordered<O>(at), out_.extents());
  }
  /// What encode() does, where each element has a random word by its position: numbers over their scales are rounded a
  /// tile at a time, then they are codes.
  void encode_at_random(const index_array& row, index_t col, index_t n, const element* x, index_t length,
                        const parameters_view& p) const {
    constexpr index_t most = 512, room = most + 2 * simd::lanes<simd::best_arch>;
    alignas(64) float tile[room];
    alignas(64) float scales[room];
    alignas(64) std::uint32_t random[room];
    alignas(64) std::int32_t zeros[S::has_zero_point ? room : 1];
    const auto spread = [&](const auto* entries, index_t first, index_t count, auto* to) {
      simd::spread_entries<simd::best_arch>(entries, length, first, count, to);
    };
    for (index_t done = 0, count; done < n; done += count) {
      count = std::min(most, n - done);
      draw(row, col + done, count, random);
      spread(static_cast<const float*>(p.scales), done, count, scales);
      simd::round_quotients_at_random<S, From>(x + done, scales, tensor_scale(), random, count, tile);
      if constexpr (S::has_zero_point) spread(static_cast<const std::int32_t*>(p.zero_points), done, count, zeros);
      unit* to = codes(row, col + done);
      if constexpr (S::has_zero_point) {
        std::fill_n(scales, count, 1.f);
        simd::encode_vector<runs>(tile, count, scales, zeros, to);
      } else {
        simd::encode_uniform<runs>(tile, count, {1.f, 1.f}, 0, to);
      }
    }
    for (index_t first = 0; first < n; first += length)  // under a scale of 0 all codes are +0, whatever the quotients
      if (p.scales[first / length] == 0.f)
        for (index_t i = first; i < std::min(n, first + length); ++i)
          out_.set_storage_code(index_in_row(row, col + i), qtensor::encode<typename S::code_format>(0.f));
  }
  /// The random words of elements [col, col + n) of a row, of which there are many in one long row.
  void draw(const index_array& row, index_t col, index_t n, std::uint32_t* words) const {
    const index_t cols = extents_[last];
    if (!is_flat()) return draw_from(row, col, n, words);
    if (std::same_as<O, row_major>) return draw_from({}, col, n, words);  // in the order of their positions
    for (index_t i = 0, count; i < n; i += count) {
      const index_t inside = (col + i) % cols;
      count = std::min(n - i, cols - inside);
      draw_from(row_index((col + i) / cols, extents_), inside, count, words + i);
    }
  }
  void draw_from(index_array row, index_t col, index_t n, std::uint32_t* words) const {
    row[last] = 0;
    const std::uint64_t begin = position(row);
    row[last] = 1;
    const std::uint64_t step = position(row) - begin;
    simd::random_words<simd::best_arch>(begin + static_cast<std::uint64_t>(col) * step, step, n, S::rounding::seed,
                                        words);
  }
  /// from[0, n), integers inside the range of To, to every step-th entry.
  template <class Entry, class To>
  static void copy_apart(const Entry* from, index_t n, To* to, index_t step) {
    if (step != 1)
      for (index_t i = 0; i < n; ++i) to[i * step] = static_cast<To>(from[i]);
    else if constexpr (std::is_same_v<Entry, To>)
      std::copy_n(from, n, to);
    else if constexpr (sizeof(To) == 1)
      simd::narrow_integers(from, n, to);
    else
      for (index_t i = 0; i < n; ++i) to[i] = static_cast<To>(from[i]);
  }
  float tensor_scale() const { return S::has_tensor_scale ? level_.scale : 1.f; }
  const span& out_;
  index_array extents_;
  block_grid<E::rank> grid_;
  row_blocks rows_;
  bool streams_, direct_;
  tensor_level level_;
};

/// All pieces of a source as the quantizer sees its rows, of `most` elements each where they lie in memory.
template <tile_source X, class Quantizer, class Visit>
void for_each_quantizer_piece(const X& x, const Quantizer& q, index_t step, index_t most, Visit visit) {
  if (q.is_flat())
    for_each_flat_piece(x, step, most, visit);
  else
    for_each_piece(x, 0, x.rows(), step, visit, most);
}

/// Elements that pieces of rows are multiples of: whole blocks where a tile holds them, else whole bytes (and pieces
/// are cut where blocks end); 0 where long blocks start inside bytes, so that rows cannot be cut.
template <class S>
constexpr index_t piece_step(index_t block_length, index_t row_length) {
  if (block_length >= row_length) return byte_step<S>;
  const index_t step = common_multiple(block_length, byte_step<S>);
  if (step <= tile_floats) return step;
  return block_length % byte_step<S> == 0 ? byte_step<S> : 0;
}

}  // namespace qtensor::inline QTENSOR_ABI::ops
