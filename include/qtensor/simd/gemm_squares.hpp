// The integer product's inner loop on matrix registers: squares of sums, begun where the ones before them are stored.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/simd/gemm_int8.hpp>
#include <qtensor/simd/ops_amx.hpp>

// Four squares are summed at a time: two by two, or four beside each other. Their last instructions and the way of the
// sums to memory take as long as an eighth of a product over 512 terms: so the sums of four squares are stored one by
// one where the next four begin. Vectors idle meanwhile, and convert the sums that are in memory already.
namespace qtensor::inline QTENSOR_ABI::simd {

/// Rows and columns of four squares together.
enum class square_shape { two_by_two, one_by_four };

/// What four squares sum: 16 or 32 rows of units, and 64 or 32 columns of a panel.
template <usable_arch A>
struct square_operands {
  unit_rows<A> rows;          ///< to whole steps of 64 units, whatever lies behind the depth
  const std::int8_t* quads;   ///< of the first column
  const std::int8_t* last;    ///< the same of the last step, whose quads behind the depth are 0
  index_t steps;              ///< of 16 quads, at least 1
  const std::int32_t* start;  ///< of the first column

  /// The same from a later column on.
  square_operands from(index_t column) const {
    return {rows, quads + 4 * column, last + 4 * column, steps, start + column};
  }
};

/// Which operand stays in the first cache while the other passes by.
enum class resident { rows, quads };

/// A thread's matrix registers at work on one square after the other. A = avx512_arch.
template <usable_arch A>
class square_sums_in_turn {
  using unit = square_unit<A>;
  static constexpr index_t width = int_tile<A>::panel, row_bytes = width * 4;

 public:
  /// sums[r * stride + c] = start[c] + sum over all quads of unit(r, k) * weight(k, c), modulo 2^32, as dot_tile has
  /// it: in memory when the next call has made its first step. beside() is called after every later step and
  /// must leave these registers alone.
  template <square_shape Shape, resident Stays, class Beside>
  QTENSOR_INLINE void sum(const square_operands<A>& of, std::int32_t* sums, index_t stride, const Beside& beside) {
    const auto* rows = of.rows.data;
    const std::int8_t* quads = of.steps > 1 ? of.quads : of.last;
    const index_t rows_stride = of.rows.stride;
    unit::settle();
    const auto begin = [&](auto t) __attribute__((always_inline)) {
      unit::template load<t>(of.start + column<Shape>(t), 0);
    };
    if (to_ == nullptr)
      add<Shape, Stays>(rows, rows_stride, quads, begin);
    else
      add<Shape, Stays>(
          rows, rows_stride, quads, [&](auto t) __attribute__((always_inline)) {
            unit::template store<t>(place(t), stride_ * 4);
            begin(t);
          });
    to_ = sums, stride_ = stride, down_ = Shape == square_shape::two_by_two ? square_edge * stride : 2 * square_edge;
    for (index_t left = of.steps - 1; left > 0; --left) {
      rows += 64;
      quads = left > 1 ? quads + square_edge * row_bytes : of.last;
      add<Shape, Stays>(rows, rows_stride, quads, [](auto) {});
      beside();
    }
  }
  /// Stores the sums of the last call.
  void finish() {
    detail::repeat<4>([&](auto t) __attribute__((always_inline)) { unit::template store<t>(place(t), stride_ * 4); });
    to_ = nullptr;
  }

 private:
  std::int32_t* place(index_t square) const { return to_ + square % 2 * square_edge + square / 2 * down_; }
  template <square_shape Shape>
  static constexpr index_t column(index_t square) {
    return square_edge * (Shape == square_shape::two_by_two ? square % 2 : square);
  }

  template <int N>
  static constexpr std::integral_constant<int, N> number{};
  /// One step: before(t) comes in front of square t's instruction.
  template <square_shape Shape, resident Stays, class Before>
  static QTENSOR_INLINE void add(const std::uint8_t* rows, index_t stride, const std::int8_t* quads,
                                 const Before& before) {
    const auto dot = [&](auto t, auto x, auto w) __attribute__((always_inline)) {
      before(t);
      unit::template dot<t, x, w>();
    };
    const auto load_rows = [&](auto t, index_t first) __attribute__((always_inline)) {
      if constexpr (Stays == resident::rows)
        unit::template load<t>(rows + first * stride, stride);
      else
        unit::template stream<t>(rows + first * stride, stride);
    };
    const auto load_quads = [&](auto t, index_t column) __attribute__((always_inline)) {
      if constexpr (Stays == resident::rows)
        unit::template stream<t>(quads + 4 * column, row_bytes);
      else
        unit::template load<t>(quads + 4 * column, row_bytes);
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
  index_t stride_ = 0, down_ = 0;
};

}  // namespace qtensor::inline QTENSOR_ABI::simd
