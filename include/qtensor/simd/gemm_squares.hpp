// The integer product's inner loop on matrix registers: squares of sums, begun where the ones before them are stored.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/simd/gemm_taps.hpp>
#include <qtensor/simd/ops_amx.hpp>

// Two or four squares are summed at a time. Their last instructions and the way of the sums to memory take as long as
// an eighth of a product over 512 terms: so the sums of four squares are stored one by one where the next four begin.
// Vectors idle meanwhile, and convert the sums that are in memory already.
namespace qtensor::inline QTENSOR_ABI::simd {

/// Rows and columns of squares together.
enum class square_shape { two_by_two, one_by_four, one_by_two };

/// What squares sum: 16 or 32 rows of units, and 64 or 32 columns of a panel.
template <usable_arch A>
struct square_operands {
  unit_rows<A> rows;          ///< to whole steps of 64 units, whatever lies behind the depth
  const std::int8_t* quads;   ///< of the first column
  const std::int8_t* last;    ///< the same of the last step, whose quads behind the depth are 0
  index_t steps;              ///< of 16 quads, at least 1
  const std::int32_t* start;  ///< of the first column, or null: sums begin at 0
  index_t start_step = 0;     ///< from one row's to the next one's; 0: all rows begin alike

  /// Bytes from one quad of a column to the next.
  static constexpr index_t quad_step() { return int_tile<A>::panel * 4; }
  /// The same from a later column on.
  square_operands from(index_t column) const {
    return {rows,      quads + 4 * column, last + 4 * column, steps, start == nullptr ? nullptr : start + column,
            start_step};
  }
  /// Calls first(units, quads) with where the operands of the first step begin, then(units, quads) for the others.
  template <class First, class Then>
  QTENSOR_INLINE void for_each_step(const First& first, const Then& then) const {
    const auto* units = rows.data;
    const std::int8_t* weights = steps > 1 ? quads : last;
    first(units, weights);
    for (index_t left = steps - 1; left > 0; --left) {
      units += 4 * square_edge;
      weights = left > 1 ? weights + square_edge * quad_step() : last;
      then(units, weights);
    }
  }
};

/// What squares sum under the taps of a convolution: 16 or 32 rows of units that begin at pixels.
template <usable_arch A>
struct square_taps {
  unit_rows<A> rows;                     ///< each segment is read to whole steps, whatever lies behind it
  const std::int8_t* quads;              ///< of the first column, segment by segment; those that fill up steps are 0
  tap_segments taps;                     ///< of whole steps, at least one
  const std::int32_t* start;             ///< of the first column, never null
  index_t columns = int_tile<A>::panel;  ///< that lie side by side
  static constexpr index_t start_step = 0;

  index_t quad_step() const { return 4 * columns; }
  square_taps from(index_t column) const { return {rows, quads + 4 * column, taps, start + column, columns}; }
  template <class First, class Then>
  QTENSOR_INLINE void for_each_step(const First& first, const Then& then) const {
    constexpr index_t step = 4 * square_edge;
    const index_t step_bytes = square_edge * quad_step();
    const auto* const pixel = rows.data;
    const std::int8_t* weights = quads;
    const index_t *at = taps.offsets, *const end = at + taps.count, units = 4 * taps.quads;
    first(pixel + *at, weights);
    for (index_t u = step; at != end; ++at, u = 0)
      for (; u < units; u += step) then(pixel + *at + u, weights += step_bytes);
  }
};

/// Which operand stays in the first cache while the other passes by, or both stay.
enum class resident { rows, quads, both };

/// A thread's matrix registers at work on one square after the other. A = avx512_arch.
template <usable_arch A>
class square_sums_in_turn {
  using unit = square_unit<A>;

 public:
  /// sums[r * stride + c] = start[r * start_step + c] (0 where it is null) + sum over all quads of unit(r, k) *
  /// weight(k, c), modulo 2^32, as dot_tile has it: in memory when the next call has made its first step. beside() is
  /// called after every later step and must leave these registers alone. Operands: square_operands or square_taps;
  /// Units: what their rows' bytes are.
  template <square_shape Shape, resident Stays, code_sign Units = code_sign::is_unsigned, class Operands, class Beside>
  QTENSOR_INLINE void sum(const Operands of, std::int32_t* sums, index_t stride, const Beside& beside) {
    const index_t rows_stride = of.rows.stride, quad_step = of.quad_step();
    unit::settle();
    const auto begin = [&](auto t) QTENSOR_INLINE_LAMBDA {
      if (of.start == nullptr)
        unit::template zero<t>();
      else
        unit::template load<t>(of.start + row<Shape>(t) * of.start_step + column<Shape>(t), of.start_step * 4);
    };
    of.for_each_step(
        [&](const auto* rows, const std::int8_t* quads) QTENSOR_INLINE_LAMBDA {
          if (to_ == nullptr) {
            add<Shape, Stays, Units>(rows, rows_stride, quads, quad_step, begin);
          } else {
            add<Shape, Stays, Units>(rows, rows_stride, quads, quad_step, [&](auto t) QTENSOR_INLINE_LAMBDA {
              store<t>();
              begin(t);
            });
            if constexpr (count<Shape> == 2) store<2>(), store<3>();
          }
          to_ = sums, stride_ = stride, count_ = count<Shape>;
          down_ = Shape == square_shape::two_by_two ? square_edge * stride : 2 * square_edge;
        },
        [&](const auto* rows, const std::int8_t* quads) QTENSOR_INLINE_LAMBDA {
          add<Shape, Stays, Units>(rows, rows_stride, quads, quad_step, [](auto) {});
          beside();
        });
  }
  /// Stores the sums of the last call.
  void finish() {
    detail::repeat<4>([&](auto t) QTENSOR_INLINE_LAMBDA { store<t>(); });
    to_ = nullptr;
  }

 private:
  /// How many squares, and the row and column of one.
  template <square_shape Shape>
  static constexpr index_t count = Shape == square_shape::one_by_two ? 2 : 4;
  template <square_shape Shape>
  static constexpr index_t row(index_t square) {
    return Shape == square_shape::two_by_two ? square_edge * (square / 2) : 0;
  }
  template <square_shape Shape>
  static constexpr index_t column(index_t square) {
    return square_edge * (Shape == square_shape::one_by_four ? square : square % 2);
  }
  /// A square of the last call, if it had so many.
  template <int T>
  QTENSOR_INLINE void store() const {
    if (T < 2 || count_ > 2) unit::template store<T>(to_ + T % 2 * square_edge + T / 2 * down_, stride_ * 4);
  }

  template <int N>
  static constexpr std::integral_constant<int, N> number{};
  /// One step: before(t) comes in front of square t's instruction.
  template <square_shape Shape, resident Stays, code_sign Units, class Before>
  static QTENSOR_INLINE void add(const std::uint8_t* rows, index_t stride, const std::int8_t* quads, index_t quad_step,
                                 const Before& before) {
    const auto dot = [&](auto t, auto x, auto w) QTENSOR_INLINE_LAMBDA {
      before(t);
      if constexpr (Units == code_sign::is_signed)
        unit::template dot_signed<t, x, w>();
      else
        unit::template dot<t, x, w>();
    };
    const auto load_rows = [&](auto t, index_t first) QTENSOR_INLINE_LAMBDA {
      if constexpr (Stays == resident::quads)
        unit::template stream<t>(rows + first * stride, stride);
      else
        unit::template load<t>(rows + first * stride, stride);
    };
    const auto load_quads = [&](auto t, index_t column) QTENSOR_INLINE_LAMBDA {
      if constexpr (Stays == resident::rows)
        unit::template stream<t>(quads + 4 * column, quad_step);
      else
        unit::template load<t>(quads + 4 * column, quad_step);
    };
    if constexpr (Shape == square_shape::two_by_two) {
      load_quads(number<6>, 0);
      load_rows(number<4>, 0);
      dot(number<0>, number<4>, number<6>);
      load_quads(number<7>, square_edge);
      dot(number<1>, number<4>, number<7>);
      load_rows(number<5>, square_edge);
      dot(number<2>, number<5>, number<6>);
      dot(number<3>, number<5>, number<7>);
    } else if constexpr (Shape == square_shape::one_by_two) {
      load_quads(number<6>, 0);
      load_rows(number<4>, 0);
      dot(number<0>, number<4>, number<6>);
      load_quads(number<7>, square_edge);
      dot(number<1>, number<4>, number<7>);
    } else {
      load_rows(number<4>, 0);
      load_quads(number<5>, 0);
      dot(number<0>, number<4>, number<5>);
      load_quads(number<6>, square_edge);
      dot(number<1>, number<4>, number<6>);
      load_quads(number<7>, 2 * square_edge);
      dot(number<2>, number<4>, number<7>);
      load_quads(number<5>, 3 * square_edge);
      dot(number<3>, number<4>, number<5>);
    }
  }

  std::int32_t* to_ = nullptr;
  index_t stride_ = 0, down_ = 0, count_ = 0;
};

}  // namespace qtensor::inline QTENSOR_ABI::simd
