// Integer products on matrix registers: squares of sums, and sinks that take the last ones while the next are summed.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <optional>
#include <qtensor/ops/integer_rows.hpp>
#include <qtensor/simd/gemm_squares.hpp>
#include <vector>

namespace qtensor::inline QTENSOR_ABI::ops {

/// Whether a product of so many rows and quads is faster on matrix registers: not below a whole step and, as measured,
/// some work for each panel.
template <simd::usable_arch A>
bool prefers_squares(index_t rows, index_t quads) {
  constexpr index_t least_work = 768;
  return rows > simd::int_tile<A>::max_rows && quads >= simd::square_edge && rows * quads >= least_work &&
         simd::uses_squares<A>();
}

/// Rows that are summed together.
inline constexpr index_t square_rows_together = 2 * simd::square_edge;
/// Packed weights of so many bytes stay in the second cache while rows pass. More of them pass by in parts, each asked
/// for while the one before it is multiplied with rows of so many bytes, which stay: the cache holds all three. Where
/// that spares weights a second way, it holds a few rows more.
inline constexpr index_t square_staying_bytes = index_t{1} << 20, square_part_bytes = index_t{256} << 10,
                         square_rows_bytes = index_t{768} << 10, square_all_rows_bytes = index_t{1} << 20;
template <class Layout>
bool squares_stay(const Layout& layout, index_t panels) {
  return panels * layout.panel_bytes() <= square_staying_bytes;
}
/// A great depth is summed in parts of nearly so many steps, those of some panels one after the other, while their sums
/// stay in the second cache: so rows and weights meet in the first, and rows need not stay, however long they are.
inline constexpr index_t square_part_steps = 8, square_panels_together = 4;
template <class Layout>
index_t square_depth_parts(const Layout& layout, index_t panels, index_t rows) {
  const index_t steps = divide_up(layout.quads(), simd::square_edge);
  const bool is_great = steps > 6 * square_part_steps && !squares_stay(layout, panels);
  return is_great && rows > simd::square_edge ? divide_up(steps, square_part_steps) : 1;
}
/// Rows that are made ready at a time for packed weights, of `rows`: as many as stay in the second cache, too, or as
/// their sums do, and nearly as many each time.
template <class Layout>
index_t square_rows_at_once(const Layout& layout, index_t panels, index_t rows) {
  constexpr index_t most_sums = 8 * square_rows_together;
  const index_t row_bytes = layout.depth + 64;
  const bool stay = squares_stay(layout, panels), in_parts = square_depth_parts(layout, panels, rows) > 1;
  if (!stay && !in_parts && rows * row_bytes <= square_all_rows_bytes) return round_up(rows, square_rows_together);
  const index_t most = stay ? 4 * square_rows_together : in_parts ? most_sums : square_rows_bytes / row_bytes;
  const index_t times = divide_up(rows, std::max(most / square_rows_together, index_t{1}) * square_rows_together);
  return round_up(divide_up(rows, times), square_rows_together);
}

/// All tiles of rows [0, rows) of x against panels [first, first + count), as integer_tiles has them, for sums that fit
/// 32 bits.
template <class Panels, class Rows, class Finish>
class square_product {
  using A = typename Panels::arch;
  using panel_type = integer_panel<Panels>;
  using shape = simd::square_shape;
  using session = typename simd::square_unit<A>::session;
  static constexpr index_t width = Panels::layout_type::width, edge = simd::square_edge,
                           most_rows = square_rows_together;
  static constexpr index_t step_bytes = edge * width * 4, line = simd::cache_line;
  // Packed weights pass by in parts that stay in the second cache; those packed on the way stay for all rows.
  static constexpr bool is_packed = !packs_panels<Panels>;
  static constexpr simd::resident stays = is_packed ? simd::resident::rows : simd::resident::quads;

  /// Steps of the depth that are summed before others.
  struct depth_part {
    index_t first, steps;
    bool is_last;
  };
  /// Sums on their way: rows [row, row + rows), columns [col, col + cols) of a panel.
  struct block {
    const panel_type* panel;
    index_t panel_number, row, rows, col, cols;
  };

 public:
  square_product(Panels& weights, const Rows& x, index_t rows, index_t row, const Finish& finish)
      : weights_(weights),
        x_(x),
        rows_(rows),
        row_(row),
        finish_(finish),
        steps_(divide_up(weights.layout().quads(), edge)) {}

  void over(index_t first, index_t count) {
    const auto layout = weights_.layout();
    const bool stay = squares_stay(layout, count);
    parts_ = square_depth_parts(layout, count, rows_);
    rows_beside_step_ = divide_up(most_rows, std::max(part(parts_ - 1).steps - 1, index_t{1}));
    const index_t some = parts_ > 1 ? square_panels_together
                         : stay     ? count
                                    : std::max(index_t{1}, square_part_bytes / layout.panel_bytes());
    const index_t together = is_packed ? some : 1;
    alignas(64) std::int32_t room[most_rows * width];
    sums_ = room;
    if (parts_ > 1) kept_ = line_array<std::int32_t>::for_overwrite(round_up(rows_, most_rows) * together * width);
    session_.emplace();
    for (index_t p = first; p < first + count; p += together) {
      prepare(p, std::min(together, first + count - p));
      for (index_t k = 0; k < parts_; ++k) {
        // Few rows do nothing but read: in order, and the CPU asks for what comes.
        if (is_packed && rows_ > edge && !stay) ask_behind(k, std::min(together, first + count - p - together));
        for (index_t m = 0; m < rows_; m += most_rows)
          for (index_t i = 0; i < present(); ++i) sum_panel(p + i, i, m, part(k));
      }
      drain();
    }
    session_.reset();
  }

 private:
  index_t present() const { return static_cast<index_t>(panels_.size()); }
  depth_part part(index_t k) const {
    const index_t first = k * steps_ / parts_, next = (k + 1) * steps_ / parts_;
    return {first, next - first, k == parts_ - 1};
  }
  /// From here on every step asks for its share of what follows part k of the depth: the next part of the same panels,
  /// or the first one of the `count` behind them.
  void ask_behind(index_t k, index_t count) {
    const index_t bytes = weights_.layout().panel_bytes();
    const std::int8_t* codes = panels_.front().codes();
    if (k + 1 < parts_)
      codes += part(k + 1).first * step_bytes, count = present();
    else
      codes += present() * bytes;
    const depth_part next = part((k + 1) % parts_);
    const index_t length = std::min(next.steps * step_bytes, bytes - next.first * step_bytes);
    const index_t asks = std::max(divide_up(rows_, most_rows) * present() * 2 * (part(k).steps - 1), index_t{1});
    const index_t share = round_up(divide_up(count * length, asks), line);
    asks_left_ = count > 0 ? divide_up(count * length, share) : 0;
    next_ = {reinterpret_cast<const std::uint8_t*>(codes), bytes, length, share};
  }
  QTENSOR_INLINE void ask() {
    if (asks_left_ > 0) --asks_left_, next_.ask();
  }
  void prepare(index_t p, index_t count) {
    const index_t rest = weights_.layout().quads() % edge;
    panels_.clear();
    panels_.reserve(static_cast<std::size_t>(count));
    if (rest != 0 && last_.size() < count * step_bytes) last_ = line_array<std::int8_t>(count * step_bytes);
    for (index_t i = 0; i < count; ++i) {
      panel_type& panel = panels_.emplace_back(weights_.panel(p + i), weights_.tensor_scale());
      panel.start_from(x_, x_.has_one_zero());
      if (rest != 0)
        std::memcpy(last_.data() + i * step_bytes, panel.codes() + (steps_ - 1) * step_bytes,
                    static_cast<std::size_t>(rest * width * 4));
    }
  }

  /// Sums of the parts before, of rows from m on and the present panel i.
  std::int32_t* kept_sums(index_t i, index_t m) {
    return kept_.data() + (m / most_rows * present() + i) * most_rows * width;
  }
  simd::square_operands<A> operands(index_t i, index_t m, const depth_part& part) {
    const panel_type& panel = panels_[static_cast<std::size_t>(i)];
    const simd::unit_rows<A> rows = x_.from(m);
    const std::int8_t *codes = panel.codes() + part.first * step_bytes, *last = codes + (part.steps - 1) * step_bytes;
    if (part.is_last && last_.size() > 0) last = last_.data() + i * step_bytes;
    if (part.first == 0) return {rows, codes, last, part.steps, panel.start_or_null()};
    const simd::unit_rows<A> behind{rows.data + part.first * 4 * edge, rows.stride};
    return {behind, codes, last, part.steps, kept_sums(i, m), width};
  }

  void sum_panel(index_t number, index_t i, index_t m, const depth_part& part) {
    const panel_type& panel = panels_[static_cast<std::size_t>(i)];
    const simd::square_operands<A> of = operands(i, m, part);
    const index_t rows = std::min(most_rows, rows_ - m), half = width / 2;
    if (!part.is_last) return sum_alone(of, rows, kept_sums(i, m));
    if constexpr (!Finish::runs_beside) {
      sum_alone(of, rows, sums_);
      before_ = {&panel, number, m, rows, 0, width};
      drain();
    } else if (rows <= edge) {
      sum<shape::one_by_four>(of, {&panel, number, m, rows, 0, width});
    } else {
      sum<shape::two_by_two>(of, {&panel, number, m, rows, 0, half});
      sum<shape::two_by_two>(of.from(half), {&panel, number, m, rows, half, half});
    }
  }
  /// Sums whole rows, which do not go to the sink yet or to one that may use the registers.
  void sum_alone(const simd::square_operands<A>& of, index_t rows, std::int32_t* to) {
    const auto only_ask = [&]() QTENSOR_INLINE_LAMBDA { ask(); };
    if (rows <= edge) return squares_.template sum<shape::one_by_four, stays, Rows::unit_sign>(of, to, width, only_ask);
    constexpr index_t half = width / 2;
    for (index_t col = 0; col < width; col += half)
      squares_.template sum<shape::two_by_two, stays, Rows::unit_sign>(of.from(col), to + col, width, only_ask);
  }
  /// Sums a block, while the one before it goes to memory.
  template <shape Shape>
  void sum(const simd::square_operands<A>& of, const block& b) {
    if (before_.cols == width)
      sum_beside<Shape, width>(of, b);
    else
      sum_beside<Shape, width / 2>(of, b);
    finish_rows();
    before_ = b;
  }
  template <shape Shape, index_t Columns>
  void sum_beside(const simd::square_operands<A>& of, const block& b) {
    auto turn = in_turn<Columns>();
    squares_.template sum<Shape, stays, Rows::unit_sign>(of, sums_, b.cols, [&]() QTENSOR_INLINE_LAMBDA {
      ask();
      turn.some(rows_beside_step_);
    });
    turn.some(turn.rows);
  }
  /// The last sums to the sink.
  void drain() {
    if (before_.rows == 0) return;
    squares_.finish();
    if constexpr (Finish::runs_beside) {
      if (before_.cols == width)
        in_turn<width>().some(most_rows);
      else
        in_turn<width / 2>().some(most_rows);
      finish_rows();
    } else {
      finish_rows();
      session_->resume();
    }
    before_ = {};
  }

  /// Whether the block before can go to memory row by row.
  bool is_direct() const { return finish_.is_direct() && outputs_left() >= before_.cols; }
  index_t first_column() const { return before_.panel_number * width + before_.col; }
  index_t outputs_left() const { return weights_.layout().outputs - first_column(); }

  /// Its rows, or none.
  template <index_t Columns>
  auto in_turn() const {
    if constexpr (row_keeping<typename Finish::sink_type>) {
      const block& b = before_;
      const auto rows = [&] {
        return rows_in_turn<Columns, panel_type::has_zeros>(finish_.sink.y, x_, b.row, b.panel->from(b.col),
                                                            row_ + b.row, first_column(), b.rows, sums_);
      };
      return b.rows == 0 || !is_direct() ? decltype(rows()){} : rows();
    } else {
      return no_rows{};
    }
  }
  struct no_rows {
    static constexpr index_t rows = 0;
    void some(index_t) const {}
  };
  /// What cannot go row by row.
  void finish_rows() {
    const block& b = before_;
    const index_t cols = std::min(b.cols, outputs_left());
    if (b.rows == 0 || cols <= 0 || is_direct()) return;
    if (b.cols == width)
      b.panel->template take_zeros<width>(x_, b.row, b.rows, b.col, sums_);
    else
      b.panel->template take_zeros<width / 2>(x_, b.row, b.rows, b.col, sums_);
    finish_(x_, b.row, b.panel->from(b.col), row_ + b.row, first_column(), b.rows, cols, sums_, b.cols,
            reinterpret_cast<float*>(sums_));
  }

  Panels& weights_;
  const Rows& x_;
  index_t rows_, row_;
  const Finish& finish_;
  index_t steps_, parts_ = 1, rows_beside_step_ = 1;
  std::vector<panel_type> panels_;
  line_array<std::int8_t> last_;
  std::optional<session> session_;
  simd::square_sums_in_turn<A> squares_;
  std::int32_t* sums_ = nullptr;
  line_array<std::int32_t> kept_;  // sums of the parts before, of all rows and the present panels
  simd::run_requests next_;        // what is asked for next, and how often
  index_t asks_left_ = 0;
  block before_{};
};

/// Whether rows of x are best taken where they lie: whole steps of codes that begin on cache lines, not all on the same
/// ones of the first cache.
template <class X>
bool lies_ready(const X& x) {
  constexpr index_t line = simd::cache_line, way = 4096, step = 4 * simd::square_edge;
  if constexpr (requires { x.lines(); }) {
    const code_lines lines = x.lines();
    return lines.first != nullptr && x.depth() % step == 0 && lines.stride % line == 0 && lines.stride % way != 0 &&
           reinterpret_cast<std::uintptr_t>(lines.first) % line == 0;
  } else {
    return false;
  }
}

/// Rows of activations as square_product asks for them where weights have no zero points, so that there are no sums of
/// rows: their codes as they are, filled again and again, where they lie or, if that is no place for them or they are
/// no whole squares, copied. HasZeros: a row's zero point may be another unit than 0.
template <simd::usable_arch A, simd::code_sign Sign, bool HasZeros>
class code_rows : public row_parameters<Sign == simd::code_sign::is_signed ? 0 : simd::quad_dot<A>::unit_offset> {
  using parameters = typename code_rows::row_parameters;
  static constexpr index_t line = simd::cache_line;

 public:
  static constexpr auto unit_sign = Sign;
  static constexpr bool has_zeros = HasZeros;

  code_rows(index_t most, index_t depth) : parameters(most), depth_(depth), stride_(round_up(depth, line) + line) {}

  /// Rows [first, first + count) of x: a weights_of that says which of its elements are a row's.
  template <class X>
  void fill(const X& x, index_t first, index_t count) {
    static_assert(line_sign<X>() == Sign);
    const code_lines lines = lines_of(x);
    parameters::fill(x, first, count);
    whole_ = lies_ready(x) ? count / square_rows_together * square_rows_together : 0;
    make_room(count - whole_);
    if (lines.first == nullptr) {
      x.read(first, count, 0, depth_, copy(0), stride_);  // as signed codes
      if constexpr (Sign == simd::code_sign::is_unsigned)
        for (index_t r = 0; r < count; ++r) simd::flip_bits<A>(copy(r), depth_, X::line_flip);
      return;
    }
    lie_ = {lines.first + first * lines.stride, lines.stride};
    for (index_t r = whole_; r < count; ++r)
      std::memcpy(copy(r - whole_), lie_.data + r * lie_.stride, static_cast<std::size_t>(depth_));
  }
  /// Rows [first, first + count) of a source of floats, quantized as int8_per_channel<0> does it.
  template <tile_source X>
  void fill(const X& x, index_t first, index_t count) {
    static_assert(Sign == simd::code_sign::is_signed);
    whole_ = 0;
    make_room(count);
    quantize_source_rows(x, first, count, floats_, this->without_zeros(count),
                         [&](index_t r, const auto& codes) { codes.write(reinterpret_cast<std::int8_t*>(copy(r))); });
  }
  /// Rows from r on, to be read in whole squares and steps.
  simd::unit_rows<A> from(index_t r) const {
    return r < whole_ ? simd::unit_rows<A>{lie_.data + r * lie_.stride, lie_.stride}
                      : simd::unit_rows<A>{copies_.data() + (r - whole_) * stride_, stride_};
  }
  const std::int32_t* rests(index_t) const { return nullptr; }

 private:
  void make_room(index_t rows) {
    const index_t bytes = round_up(rows, square_rows_together) * stride_;
    if (copies_.size() < bytes) copies_ = line_array<std::uint8_t>::for_overwrite(bytes);
  }
  std::uint8_t* copy(index_t r) { return copies_.data() + r * stride_; }

  index_t depth_, stride_, whole_ = 0;
  simd::unit_rows<A> lie_{};
  line_array<std::uint8_t> copies_;
  std::vector<float> floats_;
};

/// Whether zero points belong to the units of X's rows.
template <class X>
constexpr bool rows_have_zeros() {
  if constexpr (tile_source<X>)
    return false;
  else
    return packed_has_zeros<typename X::scheme_type>;
}

/// Rows [row, row + rows) of x, codes or floats, against panels [first, first + count) without zero points: all at once
/// where they lie ready and the weights stay in the second cache, otherwise `most` at a time.
template <class Panels, class X, class Finish>
void square_products(Panels& weights, index_t first, index_t count, const X& x, index_t row, index_t rows, index_t most,
                     const Finish& finish) {
  const auto layout = weights.layout();
  const index_t together = lies_ready(x) && squares_stay(layout, count) ? rows : most;
  code_rows<typename Panels::arch, line_sign<X>(), rows_have_zeros<X>()> units(std::min(together, rows), layout.depth);
  for (index_t m = 0; m < rows; m += together) {
    const index_t some = std::min(together, rows - m);
    units.fill(x, row + m, some);
    square_product(weights, units, some, row + m, finish).over(first, count);
  }
}

}  // namespace qtensor::inline QTENSOR_ABI::ops
