// Products over groups of k: weights with a scale per group times activations of 8 bits, integers inside a group.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <numeric>
#include <optional>
#include <qtensor/ops/activations.hpp>
#include <qtensor/ops/group_weights.hpp>
#include <qtensor/ops/product.hpp>

namespace qtensor::inline QTENSOR_ABI {

namespace ops {

/// The product of one thread: rows of activations times panels of weights, tile by tile to the sink.
template <class Panels>
class group_engine {
  using S = typename Panels::scheme_type;
  using A = typename Panels::arch;
  using layout_type = typename Panels::layout_type;
  using reading = group_reading<S, A>;
  using code = packed_code<typename S::code_format>;
  using tile = simd::group_tile<A>;
  static constexpr index_t width = layout_type::width, columns = tile::columns;
  /// Rows whose sums are kept while a block of weights is in the first cache.
  static constexpr index_t rows_at_once = 32 * tile::max_rows;
  /// Panels that a few rows read in one piece, where tiles take half of them.
  static constexpr bool wide = reading::quads == simd::quads_of::bytes && width == 2 * columns;
  static constexpr index_t few_rows = 8 * tile::max_rows;
  /// From how many rows on making bytes ready pays. Their tiles come with ready_rows rows or one less.
  static constexpr index_t fewest_ready = (tile::ready_rows - 1) * (tile::ready_rows - 1);
  /// The same of squares; from how many on their weights may leave the first cache, and all groups are better off.
  static constexpr index_t fewest_in_squares = simd::square_edge / 2, many_in_squares = 4 * simd::square_edge;
  static constexpr index_t fewest_for_forms = std::min(fewest_ready, fewest_in_squares);
  using blocks = group_block<Panels>;
  using lines = line_reading<S, A>;
  static constexpr bool has_lines = lines::exist && requires(const Panels& p) { p.weights().runs(0, 0); };

 public:
  using rows_type = activation_rows<A, reading::quads>;

  /// How activations should come: groups of the product are `group` elements.
  static activation_form form(const layout_type& layout, index_t group, activation_scales scales) {
    activation_form f{
        layout.depth,      group,        reading::offset, counted_codes<typename S::code_format>::unit, scales,
        S::has_zero_point, S::has_offset};
    if (is_one_group(f)) f.scales = activation_scales::per_row;
    return f;
  }

  /// How so many rows meet weights.
  static block_form form_for(const activation_form& form, index_t rows) {
    if (form.lines) return block_form::packed;
    const auto makes = [&](block_form f) { return blocks::makes(f, form.group); };
    if (rows >= fewest_in_squares && makes(block_form::squares) &&
        simd::prefers_group_squares<A>(suits_squares(form, rows)))
      return block_form::squares;
    if (rows >= fewest_ready && makes(block_form::ready) && simd::prefers_ready_bytes<A>()) return block_form::ready;
    return block_form::packed;
  }
  /// Whether so few rows meet weights in the lines where they lie, without packing them.
  static bool reads_lines(const activation_form& form, index_t rows, bool rows_have_zeros) {
    return has_lines && !rows_have_zeros && form.group <= largest_group && rows <= lines::most_rows(form.group) &&
           lines::take(form.group, form.depth);
  }
  /// Rows that belong together: those of a square where so many rows meet weights in squares, else of a tile.
  static index_t height(const activation_form& form, index_t rows) {
    return form_for(form, rows) == block_form::squares ? simd::square_edge : tile::max_rows;
  }

  template <class W>
  group_engine(const W& w, const activation_form& form, index_t most_rows)
      : panels_(panels_of<A>(w)),
        layout_(panels_.layout()),
        form_(form),
        one_group_(is_one_group(form)),
        asks_for_panels_(packs_panels<Panels> && !form.lines && most_rows > 1 &&
                         form_for(form, most_rows) == block_form::packed),
        asks_for_lines_(form.lines && !weights_are_near(layout_)),
        groups_(form.groups()),
        whole_groups_(form.depth / form.group),
        quads_(divide_up(form.group, 4)),
        last_quads_(divide_up(form.depth - whole_groups_ * form.group, 4)),
        sums_size_(std::min(most_rows, rows_at_once) * width),
        space_(sums_size_ + blocks::space(form.group, most_rows >= fewest_for_forms, line_groups())),
        block_(layout_, form.group, most_rows >= fewest_for_forms, space_.data() + sums_size_, line_groups()) {
    if constexpr (packs_panels<Panels>)
      if (asks_for_panels_) panels_.leave_requests();
  }

  /// Rows [0, rows) of x, which are rows [row, row + rows) of the result, times panels [first, first + count).
  template <class Sink>
  void multiply(const rows_type& x, index_t rows, index_t row, index_t first, index_t count, const Sink& sink) {
    const index_t longest = x.has_zeros() ? largest_group / 2 : largest_group;
    way by{};
    for (index_t p = first; p < first + count; ++p) {
      const packed_panel<S, A> panel = panel_for(x, p);
      if (one_group_) load_panel_scales<Panels>(panel, panels_.tensor_scale(), panel_scales_);
      const bool fits = x.fits() && form_.group <= longest && zeros_fit(panel);
      for (index_t m = 0; m < rows; m += rows_at_once) {
        const index_t some = std::min(rows_at_once, rows - m);
        if (by.rows != some) by = way_of(some);
        if constexpr (packs_panels<Panels>)
          by.ahead = asks_for_panels_ && m == 0 && by.form == block_form::packed ? panels_.bytes_ahead(p) : 0;
        if (fits)
          multiply_panel(panel, x, by, m, row, p * width, sink);
        else
          multiply_slowly(panel, x, m, some, row, p * width, sink);
      }
    }
  }

 private:
  /// Panel p with what products with rows like these read of it.
  packed_panel<S, A> panel_for(const rows_type& x, index_t p) {
    if constexpr (has_lines)
      if (form_.lines) return panels_.parameters(p);
    return x.has_zeros() ? panels_.panel(p) : panels_.panel_without_sums(p);
  }
  /// Groups whose parameters a block has for lines: all of them, or none.
  index_t line_groups() const { return form_.lines ? groups_ : 0; }
  /// Both sides have one scale along k, and the weights are integers: the scale of x comes first
  /// (reference::scaled_sum).
  static bool is_one_group(const activation_form& f) {
    return code::is_integer && !S::has_offset && f.depth > 0 && f.groups() == 1;
  }

  /// Zero points and codes of 8 bits: no product exceeds 255 * 255, and groups up to here do not overflow.
  static constexpr index_t largest_group = 32768;
  bool zeros_fit(const packed_panel<S, A>& panel) const {
    if constexpr (S::has_zero_point && sizeof(typename layout_type::zero_unit) > 1)
      for (index_t i = 0; i < layout_.panel_entries(); ++i)
        if (panel.zeros[i] < -128 || panel.zeros[i] > 127) return false;
    return true;
  }

  /// How some rows meet blocks of weights, which is the same for all panels.
  struct way {
    index_t rows;
    block_form form;
    index_t groups, tile_groups;  ///< of a block; of one for tiles
    index_t ahead;                ///< how far behind the codes tiles ask for more
    bool wait_for_scales;         ///< if not asked for
  };
  way way_of(index_t rows) const {
    const block_form form = form_for(form_, rows);
    const bool squares = form == block_form::squares, ready = form == block_form::ready;
    return {rows,
            form,
            blocks::size(form_.group, squares && rows < many_in_squares ? block_form::ready : form),
            form_.lines ? line_groups() : blocks::size(form_.group, squares ? block_form::packed : form),
            ready ? 0 : codes_ahead(rows),
            waits_for_scales(rows)};
  }

  template <class Sink>
  void multiply_panel(const packed_panel<S, A>& panel, const rows_type& x, const way& by, index_t m, index_t row,
                      index_t col, const Sink& sink) {
    const index_t rows = by.rows, quads = quads_, last_quads = last_quads_;
    float* const sums = space_.data();
    if (groups_ == 0) std::fill_n(sums, rows * width, 0.f);
    for (index_t g = 0, count = 0; g < groups_ || g == 0; g += std::max(count, index_t{1})) {
      // Squares are summed over whole groups; a short one behind them is a block for tiles.
      const bool squares = by.form == block_form::squares && g < whole_groups_;
      const block_form form = by.form == block_form::squares && !squares ? block_form::packed : by.form;
      const bool ready = form == block_form::ready;
      const auto all = x.rows(ready);
      const index_t most = squares ? by.groups : by.tile_groups;
      count = std::min(most, (squares ? whole_groups_ : groups_) - g);
      const index_t full = form_.lines ? count : std::min(count, whole_groups_ - g);
      const bool ends = g + count == groups_;
      if (count > 0)
        block_.load(panel, g, count, one_group_, all.zeros != nullptr, form, by.ahead, rows <= tile::max_rows);
      [[maybe_unused]] simd::run_requests next;
      if (squares) next = codes_behind(panel, g + count, most);
      if (by.wait_for_scales) ask_for_scales(panel, g + count, most);
      // Rows [r, r + some) of the block times columns [c, c + cols), by a call of `dot` for groups of one length each.
      const auto add_tile = [&](const auto& dot, const simd::group_columns& w, index_t r, index_t some, index_t c,
                                index_t cols) {
        float* const kept = sums + r * width + c;
        simd::group_sums place{g > 0 ? kept : nullptr, width, kept, width};
        if (ends) {
          if (form_.scales == activation_scales::per_row) place.row_scales = x.row_scales() + m + r;
          if (S::has_tensor_scale && !one_group_) place.last = panels_.tensor_scale();
        }
        const bool stored = ends && count > 0 && take_place(place, sink, row + m + r, col + c, cols);
        const auto part = all.from(m + r, g, form_.group_units());
        const index_t left = count - full;
        // Passed as they stand: g++ copies structures by vectors, which wait until all stores before them are done.
        const simd::group_sums begun = place.without_end();
        if (full > 0) dot(w, part, some, full, quads, left > 0 ? begun : place);
        if (left > 0)
          dot(w.from(full, quads), part.from(0, full, form_.group_units()), some, left, last_quads,
              full > 0 ? place.behind() : place);
        for (index_t i = 0; ends && !stored && i < cols && col + c + i < layout_.outputs; i += columns)
          finish(some, c + i, kept + i, row + m + r, col, sink);
      };
      if constexpr (has_lines)
        if (form_.lines) {
          for (index_t c = 0; c < width && col + c < layout_.outputs; c += columns)
            add_tile([&](const auto&... of) { dot_lines(col + c, of...); }, block_.columns(c), 0, rows, c, columns);
          continue;
        }
      if constexpr (wide) {
        if (rows <= tile::wide_rows) {
          simd::group_columns w = block_.columns(0);
          w.ahead = block_.ahead();
          add_tile([](const auto&... of) { simd::dot_groups_wide<A>(of...); }, w, 0, rows, 0, width);
          continue;
        }
      }
      for (index_t c = 0; c < width && col + c < layout_.outputs; c += columns) {
        simd::group_columns w = block_.columns(c);
        if constexpr (simd::square_unit<A>::exists)
          if (squares) {
            if (!squares_) squares_.emplace(quads);
            add_tile([&](const auto& columns_of, const auto& rows_of, index_t some, index_t groups, index_t,
                         const auto& place) { squares_->dot(columns_of, rows_of, some, groups, place, next); },
                     w, 0, rows, c, columns);
            continue;
          }
        if constexpr (simd::takes_ready_bytes<A>)
          if (ready) {
            simd::for_each_even_tile(rows, tile::ready_rows, [&](index_t r, index_t some) {
              add_tile([](const auto&... of) { simd::dot_groups<A, simd::quads_of::ready_bytes>(of...); }, w, r, some,
                       c, columns);
            });
            continue;
          }
        simd::for_each_row_tile(rows, tile::max_rows, [&](index_t r, index_t some) {
          w.ahead = (block_.stays_near() ? r + some == rows : r == 0) ? block_.ahead() : 0;
          add_tile([](const auto&... of) { simd::dot_groups<A, reading::quads>(of...); }, w, r, some, c, columns);
        });
      }
    }
  }
  /// As dot_groups, of the tile at column `col`, of which only parameters are packed.
  void dot_lines(index_t col, const simd::group_columns& w, const simd::group_rows<typename rows_type::unit>& x,
                 index_t rows, index_t groups, index_t quads, const simd::group_sums& place) const requires has_lines {
    constexpr index_t lanes = simd::lanes<A>;
    const auto& weights = panels_.weights();
    for (index_t c = 0; c < columns && col + c < layout_.outputs; c += lanes) {
      const code_lines from = weights.runs(col + c, 0);
      const index_t bytes = lines::bytes(form_.depth), count = std::min(lanes, layout_.outputs - col - c);
      simd::group_lines codes{from.first, from.stride, bytes, count, lines::flip, nullptr};
      if (asks_for_lines_ && from.stride == bytes) {
        codes.next = from.first + lanes * bytes;
        const code_lines scales = weights.scale_runs(col + c + width);  // of the next panel
        if (scales.first != nullptr) simd::fetch_run(scales.first, lanes * scales.stride, simd::fetch::near);
      }
      lines::with_words(form_.group, [&]<index_t Words>(std::integral_constant<index_t, Words>) {
        simd::dot_group_lines<A, reading::quads, Words>(codes, w.parameters_from(c, 0), x, rows, groups, quads,
                                                        place.at(0, c));
      });
    }
  }
  /// Whether squares are faster than tiles, as measured: the longer groups are, and the less there is to do for each
  /// but to scale it, the emptier squares may be; the second pair of them has its weights for nothing.
  static bool suits_squares(const activation_form& form, index_t rows) {
    constexpr bool plain = !S::has_zero_point && !S::has_offset;
    const auto fill = [&](index_t eighths) { return 8 * rows >= eighths * round_up(rows, simd::square_edge); };
    if (form.group < (plain ? 32 : 64)) return rows >= many_in_squares && fill(7);
    const index_t alone = form.group >= 128 ? 4 : form.group >= 64 ? 6 : 7;
    return fill(alone + (plain ? 0 : 2) - (rows > 2 * simd::square_edge ? 2 : 0));
  }
  /// How far behind the codes more are asked for: a few rows run into memory that they did not ask for. One row with
  /// long groups is a plain stream: where the CPU sees it, or weights are near, asking only costs. Others are asked for
  /// as the CPU likes what it reads once.
  index_t codes_ahead(index_t rows) const {
    constexpr index_t bytes = reading::quads == simd::quads_of::bytes && !reading::expands ? 16384 : 8192;
    if (rows > few_rows) return 0;
    if (rows > 1) return rows <= tile::max_rows ? bytes : 16384;
    const simd::requests best = simd::best_requests();
    const bool near = weights_are_near(layout_);
    if (best.once == simd::fetch::near && !near) return best.once_ahead;
    return form_.group >= 32 && (near || sees_streams<tile>()) ? 0 : 8192;
  }
  /// What squares ask for: the codes of the next block, a share with each group and in each of a panel's tiles.
  simd::run_requests codes_behind(const packed_panel<S, A>& panel, index_t group, index_t groups) const {
    if (packs_panels<Panels> || weights_are_near(layout_)) return {};
    const index_t bytes = divide_up(form_.group, 4) * layout_type::quad_bytes;  // of a group
    return {panel.codes + group * bytes, 0, groups * bytes, bytes * columns / width};
  }
  /// Whether so many rows would wait for the scales of the next block: not for those that are near, or packed on the
  /// way. As measured: Zen 4 sees by itself what comes.
  bool waits_for_scales(index_t rows) const {
    return !packs_panels<Panels> && rows <= few_rows && !weights_are_near(layout_) &&
           !(tile::many_registers && simd::is_zen4());
  }
  /// Asks for them while this one is computed.
  void ask_for_scales(const packed_panel<S, A>& panel, index_t group, index_t groups) const {
    constexpr index_t line = simd::cache_line / index_t{sizeof(*panel.scales)};
    for (index_t i = 0; i < groups * width; i += line) simd::prefetch(panel.scales + group * width + i);
  }

  /// Whether sums go straight to where the sink would store them.
  template <class Sink>
  bool take_place(simd::group_sums& place, const Sink& sink, index_t row, index_t col, index_t cols) const {
    if constexpr (std::same_as<Sink, store_floats<A>> && tile::many_registers)
      if (sink.keeps_rows() && !one_group_ && col + cols <= layout_.outputs) {
        place.to = &sink.y(row, col);
        place.to_stride = sink.y.row_stride;
        return true;
      }
    return false;
  }

  /// Sums that their rows' scales have multiplied, some rows at a time: the scales that are still missing, then the
  /// sink.
  template <class Sink>
  void finish(index_t rows, index_t c, float* values, index_t row, index_t col, const Sink& sink) {
    constexpr index_t together = 32;
    for (index_t r = 0; r < rows; r += together)
      finish_tile(std::min(together, rows - r), c, values + r * width, row + r, col, sink);
  }
  template <class Sink>
  void finish_tile(index_t rows, index_t c, float* values, index_t row, index_t col, const Sink& sink) {
    using simd::floats;
    for (index_t r = 0; r < rows && one_group_; ++r)
      for (index_t i = 0; i < columns; i += simd::lanes<A>) {
        float* const at = values + r * width + i;
        simd::store(at, simd::mul(simd::load<A>(at), simd::load<A>(panel_scales_ + c + i)));
      }
    sink(product_tile{row, col + c, rows, std::min(columns, layout_.outputs - col - c), values, width});
  }

  /// Zero points far away and groups too long for 32 bits: the same numbers in 64 bits, one by one.
  template <class Sink>
  void multiply_slowly(const packed_panel<S, A>& panel, const rows_type& x, index_t m, index_t rows, index_t row,
                       index_t col, const Sink& sink) {
    const bool row_scales = form_.scales == activation_scales::per_row;
    float* const sums = space_.data();
    const index_t cols = std::min(width, layout_.outputs - col), parts = divide_up(layout_.group, form_.group);
    std::fill_n(sums, rows * width, 0.f);
    for (index_t g = 0; g < form_.groups(); ++g) {
      block_.load(panel, g, 1, one_group_, false);
      const simd::group_columns w = block_.columns(0);
      const index_t n = std::min(form_.group, form_.depth - g * form_.group);
      for (index_t c = 0; c < cols; ++c) {
        std::int32_t zero = code::offset;
        if constexpr (S::has_zero_point) zero = panel.zeros[g / parts * width + c];
        for (index_t r = 0; r < rows; ++r) {
          std::int64_t dot = 0;
          for (index_t k = 0; k < n; ++k)
            dot += (std::int64_t{blocks::packed_number(w.codes, 0, k, c)} - zero) * x.number(m + r, g, k);
          float& y = sums[r * width + c];
          const float p = row_scales ? w.scales[c] : rounded(w.scales[c] * x.group_scale(m + r, g));
          y = std::fma(static_cast<float>(dot), p, y);
          if constexpr (S::has_offset) y = std::fma(x.term(m + r, g), w.offsets[c], y);
        }
      }
    }
    for (index_t r = 0; r < rows; ++r)
      for (index_t c = 0; c < cols; ++c) {
        float& y = sums[r * width + c];
        if (row_scales) y = rounded(y * x.row_scales()[m + r]);
        if (S::has_tensor_scale && !one_group_) y = rounded(y * panels_.tensor_scale());
      }
    for (index_t c = 0; c < cols; c += columns)
      for (index_t r = 0; r < rows; r += tile::max_rows)
        finish(std::min(tile::max_rows, rows - r), c, sums + r * width + c, row + m + r, col, sink);
  }

  Panels panels_;
  layout_type layout_;
  activation_form form_;
  bool one_group_;
  bool asks_for_panels_;  // that are packed next, while these are multiplied: one row takes no time, packing asks then
  bool asks_for_lines_;   // of the next columns, while these are read
  index_t groups_, whole_groups_;  // of the product; those that are not short
  index_t quads_, last_quads_;     // of a group; of a short one behind the others
  index_t sums_size_;
  product_space space_;
  blocks block_;
  alignas(64) float panel_scales_[width];
  // Where there are matrix registers: made when they are first used, for taking and leaving them takes a while.
  struct none {};
  [[no_unique_address]] std::conditional_t<simd::square_unit<A>::exists, std::optional<simd::group_squares<A>>, none>
      squares_;
};

/// Groups of a product in which weights change parameters every w_group elements of k and activations every x_group.
inline index_t product_group(index_t depth, index_t w_group, index_t x_group) {
  if (x_group >= depth || x_group % w_group == 0) return w_group;
  const index_t common = w_group >= depth ? x_group : std::gcd(w_group, x_group);
  require(common % 4 == 0 || common == w_group, "the activations have groups of ", x_group, " and the weights of ",
          w_group, " elements along k; a product takes them where their largest common divisor is a multiple of 4.");
  return common;
}

template <simd::usable_arch A, class W, class Fill, class Sink, executor By>
void multiply_group_rows(const W& w, index_t rows, index_t group, activation_scales scales, bool rows_have_zeros,
                         const Fill& fill, const Sink& sink, const By& by) {
  using engine = group_engine<decltype(panels_of<A>(w))>;
  const auto layout = layout_of<A>(w);
  if (rows == 0 || layout.outputs == 0) return;
  activation_form form = engine::form(layout, group, scales);
  form.lines = engine::reads_lines(form, rows, rows_have_zeros);
  const index_t panel_bytes = layout.panel_bytes(), height = engine::height(form, rows);
  // Rows that stay in the second cache; the more, the rarer are panels read and made ready.
  constexpr index_t most_rows = 32 * simd::group_tile<A>::max_rows;
  const index_t most = std::clamp(box_floats * 4 / (layout.depth + 1), 8 * height, std::min(24 * height, most_rows));
  for_product_parts(by, layout.panels(), panel_bytes, rows, height,
                    [&](index_t panel, index_t panels, index_t first, index_t count) {
                      const index_t block = packed_matrix<W> ? tile_rows_at_once(count, most, panel_bytes, height)
                                                             : rows_at_once(count, layout.depth + 64, 96);
                      engine product(w, form, block);
                      typename engine::rows_type x(block, form);
                      for (index_t m = 0; m < count; m += block) {
                        const index_t some = std::min(block, count - m);
                        fill(x, first + m, some);
                        product.multiply(x, some, first + m, panel, panels, sink);
                      }
                    });
}

/// result(m, n) = sum over k of x(m, k) w(n, k), with the rows of x, a source of floats, quantized to 8 bits first:
/// reference::group_product of the codes that quantize<int8_per_channel<0>>(x) or quantize<int8_group<w's group>>(x)
/// gives, and reference::integer_product where w is integer with one scale along k. w is packed or weights_of, with
/// codes of at most 8 bits that are integers times a power of two, any group, zero points or offsets.
/// Exact inside a group; the same bits on every architecture and with every executor. Tiles go to the sink once each.
template <simd::usable_arch A, class W, tile_source X, class Sink, executor By>
void multiply_groups(const W& w, const X& x, activation_scales scales, const Sink& sink, const By& by) {
  const auto layout = layout_of<A>(w);
  require(x.cols() == layout.depth, "a product of weights with ", layout.depth, " elements along k takes rows of ",
          layout.depth, "; these have ", x.cols(), ".");
  check_zero_points(w);
  multiply_group_rows<A>(
      w, x.rows(), std::max(std::min(layout.group, layout.depth), index_t{1}), scales, false,
      [&](auto& rows, index_t first, index_t count) { rows.quantize(x, first, count); }, sink, by);
}

/// The same for activations that are quantized already: x as weights_of a view of integers with at most 8 bits, zero
/// points included. Parameters that are one for all k count as one a row, others as one a group.
template <simd::usable_arch A, class W, class X, class Sink, executor By>
void multiply_groups(const W& w, const X& x, const Sink& sink, const By& by) {
  const auto layout = layout_of<A>(w);
  require(x.depth() == layout.depth, "a product of weights with ", layout.depth, " elements along k takes rows of ",
          layout.depth, "; these have ", x.depth(), ".");
  const bool one_scale = x.group() >= x.depth();
  const index_t w_group = std::max(std::min(layout.group, layout.depth), index_t{1});
  const index_t group = product_group(layout.depth, w_group, std::max(x.group(), index_t{1}));
  sum_reach(zero_reach(w), zero_reach(x), group);  // throws where the exact sum of a group might not fit
  multiply_group_rows<A>(
      w, x.outputs(), group, one_scale ? activation_scales::per_row : activation_scales::per_group,
      packed_has_zeros<typename X::scheme_type>,
      [&](auto& rows, index_t first, index_t count) { rows.take_codes(x, first, count); }, sink, by);
}

}  // namespace ops

}  // namespace qtensor::inline QTENSOR_ABI
