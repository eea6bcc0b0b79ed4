// Integer products: 8-bit codes times 8-bit codes, exact, zero points on both sides, one scale a row and column.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/ops/integer_rows.hpp>
#include <qtensor/ops/product_squares.hpp>
#include <qtensor/simd/gemm_sums.hpp>
#include <qtensor/simd/reduce.hpp>

namespace qtensor::inline QTENSOR_ABI {

namespace ops {

/// Rows that share widened weights: as many as stay in the second cache beside a panel, and no fewer than make widening
/// cheap.
inline constexpr index_t sum_rows_at_once = 64, sum_rows_bytes = index_t{256} << 10;

/// The tiles of one panel after the other for rows of x, where an architecture has them and sums need not be cut: by
/// products of sums for rows enough to share a panel's widened weights, and one row split into nibbles.
template <class Rows, simd::usable_arch A>
class panel_tiles {
  using unit = typename simd::quad_dot<A>::unit;
  static constexpr index_t width = simd::int_tile<A>::panel;
  static constexpr bool takes_parts = simd::lanes<A> == 16 && sizeof(unit) == 1;
  static constexpr index_t most_in_parts = 15, part_quads = 64;  // rows; quads of a part

 public:
  /// Panels that are `near` need not be asked for.
  panel_tiles(const Rows& x, index_t rows, index_t quads, bool spills, bool near)
      : x_(x),
        quads_(quads),
        near_(near),
        by_sums_(simd::sum_dot<A>::exists && !spills && rows >= simd::least_rows_of_sums),
        by_nibbles_(simd::split_dot<A>::exists && !spills && rows == 1) {
    if constexpr (simd::sum_dot<A>::exists)
      if (by_sums_) {
        wide_ = line_array<unit>::for_overwrite(4 * width * quads);
        products_.resize(static_cast<std::size_t>(rows));
        for (index_t m = 0; m < rows; ++m)
          products_[static_cast<std::size_t>(m)] = simd::unit_products<A>(x.row(m), taps());
      }
    if constexpr (simd::split_dot<A>::exists)
      if (by_nibbles_) {
        nibbles_ = line_array<std::uint8_t>::for_overwrite(8 * quads);
        simd::split_row<A>(x.row(0), quads, nibbles_.data());
      }
  }
  index_t height() const { return by_sums_ ? simd::sum_tile_rows : simd::int_tile<A>::max_rows; }
  /// From here on tiles are of this panel; what they add besides is taken from its start. `next` are the codes of the
  /// panel that comes after it, or null.
  template <class Panel>
  void begin(Panel& panel, [[maybe_unused]] const std::int8_t* next) {
    codes_ = panel.codes();
    start_ = panel.start;
    if constexpr (simd::sum_dot<A>::exists)
      if (by_sums_) simd::widen_panel<A>(panel.codes(), quads_, wide_.data(), panel.start);
    if constexpr (simd::split_dot<A>::exists)
      if (by_nibbles_) {
        const std::int32_t* const products = products_of_row(next);
        for (index_t c = 0; c < width; c += simd::lanes<A>)
          simd::store(panel.start + c, simd::load<A>(panel.start + c) + simd::load<A>(products + c) -
                                           (simd::load<A>(panel.sums() + c) << 7));
      }
  }
  /// Whether whole tiles of it are sums in registers (sum_to).
  bool has_registers() const { return !by_sums_ && !by_nibbles_; }
  /// Rows [m, m + height()), as dot_tile_to has them.
  template <class Put>
  void sum_to(index_t m, const Put& put, const simd::reading_ahead& ahead) const {
    simd::dot_tile_to<A>(codes_, x_.from(m), quads_, start_, put, ahead);
  }
  /// Rows [m, m + count), at most height().
  void sum(index_t m, index_t count, std::int32_t* sums, const simd::reading_ahead& ahead) const {
    if constexpr (simd::sum_dot<A>::exists)
      if (by_sums_) {
        const unit* rows[simd::sum_tile_rows];
        for (index_t r = 0; r < count; ++r) rows[r] = x_.row(m + r);
        return simd::dot_sums_tile<A>(wide_.data(), rows, count, taps(), products_.data() + m, start_, sums, ahead);
      }
    if (by_nibbles_)
      std::copy_n(start_, width, sums);
    else
      simd::dot_tile<A>(codes_, x_.from(m), count, quads_, start_, sums, ahead);
  }

  /// Whether so many rows should meet a panel from memory part by part of its depth: two or three wide tiles are faster
  /// than memory, and should not stop it. More take as long.
  bool suit_parts(index_t rows) const {
    return takes_parts && has_registers() && rows > height() && rows <= most_in_parts && quads_ > part_quads;
  }
  /// Sums of all rows, for take(): part by part, which every tile but the first one finds in the first cache. Each asks
  /// for its share of the next part, `share` bytes a quad.
  void sum_in_parts(index_t rows, index_t share) {
    alignas(64) static constexpr std::int32_t zeros[width] = {};
    alignas(64) std::int32_t more[simd::int_tile<A>::max_rows * width];
    for (index_t q = 0, n; q < quads_; q += n) {
      n = std::min(part_quads, quads_ - q);
      simd::reading_ahead ahead{codes_ + (q + n) * 4 * width, share};
      simd::for_each_row_tile(rows, height(), [&](index_t m, index_t count) {
        const simd::unit_rows<A> x{x_.row(m) + 4 * q, x_.stride()};
        std::int32_t* const sums = kept_ + m * width;
        simd::dot_tile<A>(codes_ + q * 4 * width, x, count, n, q == 0 ? start_ : zeros, q == 0 ? sums : more, ahead);
        ahead.from += n * share;
        for (index_t i = 0; q > 0 && i < count * width; i += simd::lanes<A>)
          simd::store(sums + i, simd::load<A>(std::as_const(sums) + i) + simd::load<A>(std::as_const(more) + i));
      });
    }
  }
  void take(index_t m, index_t count, std::int32_t* sums) const { std::copy_n(kept_ + m * width, count * width, sums); }

 private:
  simd::tap_segments taps() const {
    static constexpr index_t at_once = 0;
    return {&at_once, 1, quads_};
  }
  /// Products of the only row, which is split, with the panel; with the next one at the same time, and then known.
  const std::int32_t* products_of_row(const std::int8_t* next) requires(simd::split_dot<A>::exists) {
    if (known_ == codes_) return pair_ + width;
    known_ = next;
    const auto find = [&]<index_t Panels>(std::integral_constant<index_t, Panels>) {
      const index_t apart = Panels == 2 ? next - codes_ : 0;
      if (near_)
        simd::dot_split_row<A, Panels, false>(codes_, apart, nibbles_.data(), quads_, pair_);
      else
        simd::dot_split_row<A, Panels, true>(codes_, apart, nibbles_.data(), quads_, pair_);
    };
    if (next != nullptr)
      find(std::integral_constant<index_t, 2>{});
    else
      find(std::integral_constant<index_t, 1>{});
    return pair_;
  }

  const Rows& x_;
  index_t quads_;
  bool near_, by_sums_, by_nibbles_;
  const std::int8_t* known_ = nullptr;  // the panel of which products were found with the last one's
  alignas(64) std::int32_t pair_[2 * width];
  alignas(64) std::int32_t kept_[takes_parts ? most_in_parts * width : 1];
  line_array<unit> wide_;
  line_array<std::uint8_t> nibbles_;
  std::vector<std::int32_t> products_;
  const std::int8_t* codes_ = nullptr;
  const std::int32_t* start_ = nullptr;
};

/// All tiles of rows [0, rows) of x against panels [first, first + count); `row` is the first row's number in the
/// result. Sums that may leave 32 bits spill into 64.
template <class Panels, class Rows, class Finish>
void integer_tiles(Panels& weights, index_t first, index_t count, const Rows& x, index_t rows, index_t row, bool spills,
                   const Finish& finish) {
  using A = typename Panels::arch;
  using tile = simd::int_tile<A>;
  using panel_type = integer_panel<Panels>;
  constexpr index_t width = Panels::layout_type::width;
  constexpr std::int32_t unit_offset = simd::quad_dot<A>::unit_offset;
  const auto layout = weights.layout();
  const index_t quads = layout.quads(), depth = layout.depth;
  const bool early = x.has_one_zero() && !spills;  // the sums begin where the zero point wants them
  // A few tiles a panel would wait for memory: each asks for its share of the next panel.
  constexpr bool is_packed = !packs_panels<Panels>;
  const bool near = weights_are_near(layout);
  panel_tiles<Rows, A> all(x, rows, quads, spills, near);
  const index_t tiles = divide_up(rows, all.height()), share = divide_up(4 * width, tiles);
  const index_t least_rows = sees_streams<tile>() ? tile::max_rows + 1 : 2;
  const bool looks_ahead = is_packed && !near && rows >= least_rows && tiles <= 64;

  const bool in_parts = looks_ahead && !spills && all.suit_parts(rows);
  const bool in_registers = all.has_registers() && !spills && !in_parts && finish.is_direct();

  // Sums become values where they are: the panel leaves no room in the first cache for both.
  alignas(64) std::byte room[tile::max_rows * width * sizeof(float)];
  auto* const sums = reinterpret_cast<std::int32_t*>(room);
  auto* const values = reinterpret_cast<float*>(room);
  for (index_t p = first; p < first + count; ++p) {
    panel_type panel(weights.panel(p), weights.tensor_scale());
    panel.start_from(x, early);
    const std::int8_t* const next = is_packed && p + 1 < first + count ? panel.codes() + layout.panel_bytes() : nullptr;
    all.begin(panel, next);
    const index_t col = p * width, cols = std::min(width, layout.outputs - col);
    simd::reading_ahead ahead;
    if (in_parts)
      all.sum_in_parts(rows, share);
    else if (looks_ahead && next != nullptr)
      ahead = {next, share};
    simd::for_each_row_tile(rows, all.height(), [&](index_t m, index_t some) {
      if (spills) {
        std::int64_t wide[tile::max_rows * width] = {};
        for (index_t q = 0; q < quads; q += tile::exact_depth / 4) {
          const index_t part = std::min(tile::exact_depth / 4, quads - q);
          simd::dot_tile<A>(panel.codes() + q * width * 4, {x.row(m) + q * 4, x.stride()}, some, part, panel.start,
                            sums);
          for (index_t i = 0; i < some * width; ++i) wide[i] += sums[i];
        }
        for (index_t r = 0; r < some; ++r) {
          const std::int64_t zero = std::int64_t{x.zero(m + r)} + unit_offset,
                             rest = x.sum(m + r) - depth * x.zero(m + r);
          for (index_t c = 0; c < width; ++c) wide[r * width + c] -= zero * panel.sums()[c] + rest * panel.zeros[c];
        }
        if constexpr (!Finish::wraps) finish(x, m, panel, row + m, col, some, cols, wide, width, values);
        return;
      }
      const simd::reading_ahead asked = ahead;
      if (ahead.from != nullptr) ahead.from += quads * share;
      // Whole tiles that only go to memory go there from registers.
      if constexpr (row_keeping<typename Finish::sink_type> && !simd::square_dot<A>::exists)
        if (in_registers && some == tile::max_rows && cols == width) {
          ask_for_rows(finish.sink.y, row + m, some, col, cols);
          const auto put = rows_in_turn<width, panel_type::has_zeros>(finish.sink.y, x, m, panel.from(0), row + m, col,
                                                                      some, nullptr);
          return all.sum_to(m, put, asked);
        }
      if (in_parts)
        all.take(m, some, sums);
      else
        all.sum(m, some, sums, asked);
      panel.template take_zeros<width>(x, m, some, 0, sums);
      finish(x, m, panel, row + m, col, some, cols, sums, width, values);
    });
  }
}

/// Whether so few rows meet weights that are not packed where they lie.
template <simd::usable_arch A, class W>
bool reads_lines(const W&, index_t rows, index_t depth) {
  if constexpr (requires(const W& w) { w.line(0); })
    return rows <= simd::line_rows<A>(depth) && depth <= simd::int_tile<A>::exact_depth;
  return false;
}

/// The same for few rows, at most most_line_rows, and weights that are not packed: they are read where they are, once.
template <class Panels, class X, class Finish>
void integer_lines(Panels& weights, index_t first, index_t count, const X& x, index_t row, index_t rows,
                   const Finish& finish) {
  using A = typename Panels::arch;
  using S = typename X::scheme_type;
  using code = packed_code<typename S::code_format>;
  constexpr index_t width = Panels::layout_type::width, most_rows = simd::most_line_rows<A> + 1;
  constexpr std::int32_t weight_offset = simd::line_dot<A>::weight_offset;
  const auto layout = weights.layout();
  const auto& w = weights.weights();
  const index_t depth = layout.depth, stride = round_up(depth, 64) + 64;

  // The rows as signed codes, and after them one of ones where the sums of weights are needed.
  line_array<std::int8_t> codes((rows + 1) * stride);
  x.read(row, rows, 0, depth, reinterpret_cast<std::uint8_t*>(codes.data()), stride);
  struct {
    std::int64_t sums[most_rows], zeros[most_rows];
    float row_scales[most_rows];
    const float* scales(index_t r) const { return row_scales + r; }
  } known{};
  bool needs_sums = false;
  for (index_t r = 0; r < rows; ++r) {
    const auto* const units = reinterpret_cast<const std::uint8_t*>(codes.data()) + r * stride;
    known.sums[r] = static_cast<std::int64_t>(simd::sum_bytes<A>(units, depth, 0x80)) - 128 * depth;
    known.zeros[r] = x.zero_point(row + r, 0) + code::offset;
    known.row_scales[r] = scale_of(x, row + r, 0);
    needs_sums = needs_sums || known.zeros[r] != 0;
  }
  if (needs_sums) std::memset(codes.data() + rows * stride, 1, static_cast<std::size_t>(depth));

  const bool asks = !weights_are_near(layout);
  alignas(64) std::int32_t sums[most_rows * width] = {};
  const std::int32_t* const ones = sums + rows * width;  // sums of weights with their offsets, where they are needed
  alignas(64) float values[most_rows * width];
  for (index_t p = first; p < first + count; ++p) {
    const integer_panel<Panels> panel(weights.parameters(p), weights.tensor_scale());
    const index_t col = p * width, cols = std::min(width, layout.outputs - col);
    simd::dot_along<A>(w.line(col), layout.outputs > 1 ? w.line(1) - w.line(0) : 0, cols, w.line_flip, codes.data(),
                       stride, rows + needs_sums, depth, asks, sums, width);
    for (index_t r = 0; r < rows; ++r) {
      // Modulo 2^32, less the row's zero point times the weights, and theirs times the rest of the row.
      const simd::ints<A> zero(wrapped_sum(known.zeros[r])), rest(wrapped_sum(known.sums[r] - depth * known.zeros[r])),
          offset(weight_offset);
      for (index_t c = 0; c < width; c += simd::lanes<A>)
        simd::store(sums + r * width + c, simd::load<A>(sums + r * width + c) - zero * simd::load<A>(ones + c) -
                                              rest * (simd::load<A>(panel.zeros + c) + offset));
    }
    finish(known, 0, panel, row, col, rows, cols, sums, width, values);
  }
}

/// All rows of a product on an executor: of codes, or of floats that are quantized to codes.
template <simd::usable_arch A, class W, class X, class Finish, executor By>
void multiply_integer_rows(const W& w, const X& x, index_t rows, bool spills, const Finish& finish, const By& by) {
  using tile = simd::int_tile<A>;
  const auto shape = layout_of<A>(w);
  const bool squares = !spills && prefers_squares<A>(rows, shape.quads());
  const index_t row_bytes = (shape.depth + 64) * index_t{sizeof(typename simd::quad_dot<A>::unit)};
  const index_t block_rows = [&] {
    const index_t panel_bytes = shape.panel_bytes();
    if (!packed_matrix<W>) return rows_at_once(rows, row_bytes, 16 * tile::max_rows);
    if (squares) return square_rows_at_once(shape, shape.panels(), rows);
    if constexpr (simd::sum_dot<A>::exists)
      return std::max(sum_rows_at_once, sum_rows_bytes / row_bytes / simd::sum_tile_rows * simd::sum_tile_rows);
    else
      return tile_rows_at_once(rows, 12 * tile::max_rows, panel_bytes, tile::max_rows);
  }();
  for_product_parts(by, shape.panels(), shape.panel_bytes(), rows, squares ? square_rows_together : tile::max_rows,
                    [&](index_t panel, index_t panels, index_t first, index_t count) {
                      auto reader = panels_of<A>(w);
                      if constexpr (simd::square_unit<A>::exists && !integer_panel<decltype(reader)>::has_zeros)
                        if (squares) return square_products(reader, panel, panels, x, first, count, block_rows, finish);
                      const index_t block = std::min(count, block_rows);
                      integer_rows<A> units(block, shape.depth);
                      for (index_t m = 0; m < count; m += block) {
                        const index_t some = std::min(block, count - m);
                        units.fill(x, first + m, some);
                        if constexpr (simd::square_unit<A>::exists)
                          if (squares && prefers_squares<A>(some, shape.quads())) {
                            square_product(reader, units, some, first + m, finish).over(panel, panels);
                            continue;
                          }
                        integer_tiles(reader, panel, panels, units, some, first + m, spills, finish);
                      }
                    });
}

/// What integer products ask of their sizes; false where there is nothing left to do, because the result is empty or
/// zeros.
template <simd::usable_arch A, class W, class Finish>
bool has_integer_sums(const W& w, index_t rows, index_t depth, const Finish& finish) {
  const auto shape = layout_of<A>(w);
  if (rows == 0 || shape.outputs == 0) return false;
  require(shape.depth == depth, "a product sums over ", shape.depth, " elements of the weights and ", depth,
          " of the activations; they must be equal.");
  require(depth < index_t{1} << 24, "an integer product sums over ", depth, " elements; it takes fewer than 16777216.");
  if (depth == 0) give_zeros<A, typename Finish::tile_type>(rows, shape.outputs, finish.sink);
  return depth > 0;
}

/// result(m, n) = sum over k of (x(m, k) - its zero point) (w(n, k) - its zero point), exact; x as weights_of, w as
/// packed or weights_of, both of integer codes with at most 8 bits and parameters that do not change along k.
template <simd::usable_arch A, class W, class X, class Finish, executor By>
void multiply_integers(const W& w, const X& x, const Finish& finish, const By& by) {
  const index_t rows = x.outputs(), depth = x.depth();
  if (!has_integer_sums<A>(w, rows, depth, finish)) return;
  const bool spills = !Finish::wraps && sum_reach(zero_reach(w), zero_reach(x), depth) > std::int64_t{1} << 31;
  if constexpr (requires { w.line(0); })
    if (reads_lines<A>(w, rows, depth) && !spills) {
      const auto shape = layout_of<A>(w);
      return for_product_parts(by, shape.panels(), shape.panel_bytes(), rows, simd::int_tile<A>::max_rows,
                               [&](index_t panel, index_t panels, index_t first, index_t count) {
                                 auto reader = panels_of<A>(w);
                                 integer_lines(reader, panel, panels, x, first, count, finish);
                               });
    }
  multiply_integer_rows<A>(w, x, rows, spills, finish, by);
}

/// The same for a source of floats, whose rows are quantized to 8 bits first.
template <simd::usable_arch A, class W, tile_source X, class Finish, executor By>
void multiply_integers_of_floats(const W& w, const X& x, const Finish& finish, const By& by) {
  if (!has_integer_sums<A>(w, x.rows(), x.cols(), finish)) return;
  const bool spills = !Finish::wraps && sum_reach(zero_reach(w), 128, x.cols()) > std::int64_t{1} << 31;
  multiply_integer_rows<A>(w, x, x.rows(), spills, finish, by);
}

}  // namespace ops

}  // namespace qtensor::inline QTENSOR_ABI
