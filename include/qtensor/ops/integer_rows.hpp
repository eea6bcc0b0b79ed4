// What engines of integer products share: rows as units, panels with their parameters, and sinks of exact sums.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/ops/line_array.hpp>
#include <qtensor/ops/product.hpp>
#include <qtensor/ops/quantized_rows.hpp>
#include <qtensor/ops/rows.hpp>
#include <qtensor/simd/gemm_int8.hpp>
#include <qtensor/simd/ops_amx.hpp>

namespace qtensor::inline QTENSOR_ABI {

/// A finished part of an integer product: element (row + r, col + c) is values[r * stride + c], exact, or modulo 2^32
/// where it does not fit.
struct integer_tile {
  index_t row, col, rows, cols;
  std::int32_t* values;
  index_t stride;
};
/// The same of sums that leave 32 bits, for sinks that take them.
struct long_integer_tile {
  index_t row, col, rows, cols;
  const std::int64_t* values;
  index_t stride;
};

namespace ops {

/// A sum modulo 2^32.
constexpr std::int32_t wrapped_sum(std::int64_t v) { return static_cast<std::int32_t>(static_cast<std::uint64_t>(v)); }

/// Where the codes of an operand's outputs lie, if it knows and they are runs of bytes; and what these bytes are.
template <class X>
code_lines lines_of(const X& x) {
  if constexpr (requires { x.lines(); })
    return x.lines();
  else
    return {};
}
template <class X>
constexpr simd::code_sign line_sign() {
  if constexpr (requires(const X& x) { x.lines(); })
    return static_cast<simd::code_sign>(X::line_flip);
  else
    return simd::code_sign::is_signed;
}

/// What rows of activations have besides their codes: zero points as signed codes and as units, which are signed codes
/// plus UnitOffset; scales.
template <std::int32_t UnitOffset>
class row_parameters {
 public:
  static constexpr std::int32_t unit_offset = UnitOffset;
  explicit row_parameters(index_t most)
      : zeros_(static_cast<std::size_t>(most)),
        unit_zeros_(static_cast<std::size_t>(most)),
        scales_(static_cast<std::size_t>(most)) {}

  /// Those of rows [first, first + count) of x: a weights_of that says which of its elements are a row's.
  template <class X>
  void fill(const X& x, index_t first, index_t count) {
    using code = packed_code<typename X::scheme_type::code_format>;
    static_assert(code::is_integer);
    one_zero_ = true;
    for (index_t r = 0; r < count; ++r) {
      const auto at = static_cast<std::size_t>(r);
      zeros_[at] = static_cast<std::int32_t>(x.zero_point(first + r, 0) + code::offset);
      unit_zeros_[at] = wrapped_sum(std::int64_t{zeros_[at]} + unit_offset);
      scales_[at] = scale_of(x, first + r, 0);
      one_zero_ = one_zero_ && zeros_[at] == zeros_[0];
    }
  }
  /// `count` rows whose zero points are 0, and their scales, to be written.
  float* without_zeros(index_t count) {
    std::fill_n(zeros_.begin(), count, 0);
    one_zero_ = true;
    return scales_.data();
  }

  std::int32_t zero(index_t r) const { return zeros_[static_cast<std::size_t>(r)]; }
  /// Of rows from r on, where they differ: zero points as units.
  const std::int32_t* unit_zeros(index_t r) const { return one_zero_ ? nullptr : unit_zeros_.data() + r; }
  const float* scales(index_t r) const { return scales_.data() + r; }
  bool has_one_zero() const { return one_zero_; }

 private:
  std::vector<std::int32_t> zeros_, unit_zeros_;
  std::vector<float> scales_;
  bool one_zero_ = true;
};

/// Rows [first, first + count) of floats quantized as int8_per_channel<0> does it: their scales, and take(row,
/// row_codes). `room` is memory for rows that are not where they can be read.
template <tile_source X, class Take>
void quantize_source_rows(const X& x, index_t first, index_t count, std::vector<float>& room, float* scales,
                          const Take& take) {
  const index_t most = std::min(box_rows, count), depth = x.cols();
  room.resize(static_cast<std::size_t>(rows_in_room(x, first, most) * depth));
  for_each_float_run(x, first, count, most, room.data(),
                     [&](index_t begin, index_t rows, const float* from, index_t step) {
                       quantize_rows(from, step, rows, depth, scales + begin,
                                     [&](index_t r, const auto& codes) { take(begin + r, codes); });
                     });
}

/// Rows of activations as integer tiles take them: codes as units, and for each row the sum of its signed codes and its
/// parameters. Room for `most` rows of `depth` codes, filled from codes or floats again and again. Rows begin on cache
/// lines that spread over the first cache; behind the depth, whole lines may be read.
template <simd::usable_arch A>
class integer_rows : public row_parameters<simd::quad_dot<A>::unit_offset> {
  using parameters = typename integer_rows::row_parameters;
  using unit = typename simd::quad_dot<A>::unit;
  static constexpr index_t line = simd::cache_line, rows_together = 32;

 public:
  static constexpr auto unit_sign = simd::code_sign::is_unsigned;
  static constexpr bool has_zeros = true;  ///< a row's zero point may be another unit than 0

  integer_rows(index_t most, index_t depth)
      : parameters(most),
        depth_(depth),
        stride_(round_up(depth, line) + line),
        units_(line_array<unit>::for_overwrite(round_up(most, rows_together) * stride_)),
        sums_(static_cast<std::size_t>(most)),
        rests_(static_cast<std::size_t>(most)) {}

  /// Rows [first, first + count) of x: a weights_of that says which of its elements are a row's.
  template <class X>
  void fill(const X& x, index_t first, index_t count) {
    constexpr index_t some = 16;
    parameters::fill(x, first, count);
    const code_lines lines = lines_of(x);
    if (lines.first == nullptr) bytes_.resize(static_cast<std::size_t>(some * stride_));
    for (index_t done = 0; done < count; done += some) {
      const index_t rows = std::min(some, count - done);
      if (lines.first == nullptr) x.read(first + done, rows, 0, depth_, bytes_.data(), stride_);
      for (index_t r = done; r < done + rows; ++r) {
        const auto at = static_cast<std::size_t>(r);
        if (lines.first != nullptr)
          sums_[at] = simd::pack_units<A>(lines.first + (first + r) * lines.stride, depth_, line_sign<X>(), row(r));
        else
          sums_[at] =
              simd::pack_units<A>(bytes_.data() + (r - done) * stride_, depth_, simd::code_sign::is_signed, row(r));
        rests_[at] = wrapped_sum(sums_[at] - depth_ * this->zero(r));
      }
    }
  }

  /// Rows [first, first + count) of a source of floats, quantized as int8_per_channel<0> does it.
  template <tile_source X>
  void fill(const X& x, index_t first, index_t count) {
    bytes_.resize(static_cast<std::size_t>(stride_));
    quantize_source_rows(x, first, count, floats_, this->without_zeros(count), [&](index_t r, const auto& codes) {
      const std::int8_t* const from = codes.read(reinterpret_cast<std::int8_t*>(bytes_.data()));
      sums_[static_cast<std::size_t>(r)] =
          simd::pack_units<A>(reinterpret_cast<const std::uint8_t*>(from), depth_, simd::code_sign::is_signed, row(r));
    });
    rests_ = sums_;
  }

  index_t depth() const { return depth_; }
  index_t stride() const { return stride_; }
  unit* row(index_t r) { return units_.data() + r * stride_; }
  const unit* row(index_t r) const { return units_.data() + r * stride_; }
  /// Rows from r on, to be read in whole squares.
  simd::unit_rows<A> from(index_t r) const { return {row(r), stride_}; }
  std::int32_t sum(index_t r) const { return sums_[static_cast<std::size_t>(r)]; }
  /// Of rows from r on: sums less depth times zero point, modulo 2^32.
  const std::int32_t* rests(index_t r) const { return rests_.data() + r; }

 private:
  index_t depth_, stride_;
  line_array<unit> units_;
  std::vector<std::uint8_t> bytes_;
  std::vector<float> floats_;
  std::vector<std::int32_t> sums_, rests_;
};

/// What the tiles of one panel share.
template <class Panels>
class integer_panel {
  using S = typename Panels::scheme_type;
  using A = typename Panels::arch;
  using code = packed_code<typename S::code_format>;
  static constexpr index_t width = Panels::layout_type::width;
  static_assert(!Panels::layout_type::is_nibble && code::is_integer);

 public:
  using arch = A;
  static constexpr bool has_zeros = packed_has_zeros<S>;

  integer_panel(const packed_panel<S, A>& panel, float tensor_scale) : panel_(panel) {
    load_panel_scales<Panels>(panel, tensor_scale, scales);
    for (index_t c = 0; c < width; ++c) {
      zeros[c] = code::offset;
      if constexpr (S::has_zero_point) zeros[c] = panel.zeros[c];
    }
  }
  /// Sums start from what the zero point of all rows takes, as units; from 0 where rows differ, or unless `early`.
  template <class Rows>
  void start_from(const Rows& x, bool early) {
    const std::int64_t zero = early ? std::int64_t{x.zero(0)} + Rows::unit_offset : 0;
    starts_at_zero_ = zero == 0;
    for (index_t c = 0; c < width; ++c) start[c] = wrapped_sum(-zero * panel_.sums[c]);
  }
  /// What start_from has found, null where this is 0 everywhere.
  const std::int32_t* start_or_null() const { return starts_at_zero_ ? nullptr : start; }
  /// What zero points still take from the sums of `rows` rows of x from `row` on, and of `Columns` columns from `col`
  /// on, where those of equal rows were taken early.
  template <index_t Columns, class Rows>
  QTENSOR_INLINE void take_zeros(const Rows& x, index_t row, index_t rows, index_t col, std::int32_t* sums) const {
    using turn = simd::sums_in_turn<A, Columns, has_zeros, std::int32_t>;
    if (has_zeros || !x.has_one_zero())
      turn{sums,
           Columns,
           rows,
           sums,
           Columns,
           nullptr,
           nullptr,
           x.rests(row),
           zeros + col,
           x.unit_zeros(row),
           panel_.sums + col}
          .some(rows);
  }
  const std::int8_t* codes() const { return reinterpret_cast<const std::int8_t*>(panel_.codes); }
  const std::int32_t* sums() const { return panel_.sums; }
  /// The columns from `first` on, for sinks.
  struct columns {
    using arch = A;
    const float* scales;
    const std::int32_t *zeros, *sums;
  };
  columns from(index_t first) const { return {scales + first, zeros + first, panel_.sums + first}; }

  alignas(64) float scales[width];
  alignas(64) std::int32_t zeros[width], start[width];

 private:
  packed_panel<S, A> panel_;
  bool starts_at_zero_ = false;
};

/// The sink that writes sums: y(m, n) = sum, anywhere in memory.
struct store_integers {
  static constexpr bool runs_beside = true;
  matrix_ref<std::int32_t> y;
  bool keeps_rows() const { return y.col_stride == 1; }
  void operator()(const integer_tile& t) const {
    for (index_t r = 0; r < t.rows; ++r)
      if (y.col_stride == 1)
        std::copy_n(t.values + r * t.stride, t.cols, &y(t.row + r, t.col));
      else
        for (index_t c = 0; c < t.cols; ++c) y(t.row + r, t.col + c) = t.values[r * t.stride + c];
  }
};

/// Sinks beside matrix registers to whose `y` whole rows may go as they are, where keeps_rows() says so.
template <class Sink>
concept row_keeping = simd::runs_beside<Sink> && requires(const Sink& s) {
  s.keeps_rows();
};
template <class Sink>
bool keeps_rows(const Sink& sink) {
  if constexpr (row_keeping<Sink>)
    return sink.keeps_rows();
  else
    return false;
}

/// Asks for the rows of y that a tile goes to as it is, where there are more than the second cache holds. (Inlined: g++
/// takes a function that only asks for one without effects, and drops calls of it.)
template <class To>
QTENSOR_INLINE void ask_for_rows(const matrix_ref<To>& y, index_t row, index_t rows, index_t col, index_t cols) {
  constexpr index_t line = simd::cache_line / index_t{sizeof(To)}, far_elements = index_t{1} << 20;
  if (y.rows() * y.cols() < far_elements) return;
  for (index_t r = 0; r < rows; ++r)
    for (index_t c = 0; c < cols; c += line) simd::prefetch_to_write(&y(row + r, col + c));
}

/// The sink of exact sums that are to become floats: RN(RN(float(sum) * x's scale) * w's scale), then `Sink`.
template <class Sink>
struct scaled {
  const Sink& sink;
  using sink_type = Sink;
  using tile_type = product_tile;
  static constexpr bool wraps = false, runs_beside = simd::runs_beside<Sink>;

  template <class Rows, class Panel, class Sum>
  void operator()(const Rows& x, index_t x_row, const Panel& panel, index_t row, index_t col, index_t rows,
                  index_t cols, const Sum* sums, index_t stride, float* values) const {
    using A = typename Panel::arch;
    constexpr index_t width = simd::int_tile<A>::panel;
    if constexpr (!std::same_as<Sum, std::int32_t>) {
      for (index_t r = 0; r < rows; ++r)
        for (index_t c = 0; c < stride; ++c)
          values[r * stride + c] =
              rounded(rounded(static_cast<float>(sums[r * stride + c]) * x.scales(x_row)[r]) * panel.scales[c]);
    } else {
      using turn = simd::sums_in_turn<A, width, false, float>;
      using half_turn = simd::sums_in_turn<A, width / 2, false, float>;
      // Whole tiles that only go to memory go there at once.
      if constexpr (row_keeping<Sink>)
        if (cols == width && is_direct())
          return turn{sums, stride, rows, &sink.y(row, col), sink.y.row_stride, x.scales(x_row), panel.scales}.some(
              rows);
      if (stride == width)
        turn{sums, stride, rows, values, stride, x.scales(x_row), panel.scales}.some(rows);
      else
        half_turn{sums, stride, rows, values, stride, x.scales(x_row), panel.scales}.some(rows);
    }
    sink(product_tile{row, col, rows, cols, values, stride});
  }

  /// Whether rows only go to memory, as they are.
  bool is_direct() const { return keeps_rows(sink); }
};

/// The sink of exact sums as they are: `Sink` takes an integer_tile, of sums modulo 2^32 unless it takes a
/// long_integer_tile, too.
template <class Sink>
struct unscaled {
  const Sink& sink;
  using sink_type = Sink;
  using tile_type = integer_tile;
  static constexpr bool wraps = !std::is_invocable_v<const Sink&, const long_integer_tile&>;
  static constexpr bool runs_beside = simd::runs_beside<Sink>;
  template <class Rows, class Panel>
  void operator()(const Rows&, index_t, const Panel&, index_t row, index_t col, index_t rows, index_t cols,
                  const std::int64_t* sums, index_t stride, float*) const {
    sink(long_integer_tile{row, col, rows, cols, sums, stride});
  }
  template <class Rows, class Panel>
  void operator()(const Rows&, index_t, const Panel&, index_t row, index_t col, index_t rows, index_t cols,
                  std::int32_t* sums, index_t stride, float*) const {
    using A = typename Panel::arch;
    constexpr index_t width = simd::int_tile<A>::panel;
    // Whole tiles that only go to memory are vectors.
    if constexpr (row_keeping<Sink>)
      if (cols == width && is_direct()) {
        simd::sums_in_turn<A, width, false, std::int32_t> turn{sums, stride, rows, &sink.y(row, col),
                                                               sink.y.row_stride};
        return turn.some(rows);
      }
    sink(integer_tile{row, col, rows, cols, sums, stride});
  }
  bool is_direct() const { return keeps_rows(sink); }
};

/// Rows of a panel's sums for whoever wants to bring them to y little by little, as `scaled` does it to floats and
/// `unscaled` to integers; Zeros: less what zero points take.
template <index_t Columns, bool Zeros, class Rows, class Panel, class To>
auto rows_in_turn(const matrix_ref<To>& y, const Rows& x, index_t x_row, const Panel& panel, index_t row, index_t col,
                  index_t rows, const std::int32_t* sums) {
  return simd::sums_in_turn<typename Panel::arch, Columns, Zeros, To, Rows::has_zeros>{
      sums,         Columns,        rows,        &y(row, col),        y.row_stride, x.scales(x_row),
      panel.scales, x.rests(x_row), panel.zeros, x.unit_zeros(x_row), panel.sums};
}

}  // namespace ops

}  // namespace qtensor::inline QTENSOR_ABI
