// The bf16 product on matrix registers: squares of 16 x 16 sums, 32 numbers deep.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/simd/gemm_bf16.hpp>
#include <qtensor/simd/ops_amx.hpp>

namespace qtensor::inline QTENSOR_ABI::simd {

/// bf16_tile in any number of rows at a time, by matrix registers; A = avx512_arch. Rows, and pairs of both operands,
/// are read to whole steps and rows of sums written so: what lies behind must be numbers, of which pairs behind the
/// last are 0. Sums are rounded in another order than by vectors.
template <usable_arch A>
struct bf16_squares {
  static constexpr index_t row_step = square_edge, pair_step = square_edge;
  /// Rows that are summed at a time: their sums are read again for every few quads.
  static index_t rows(index_t left) { return std::min(left, index_t{128}); }
  /// Decoded columns of two squares stay in the first cache while rows pass by, and spread over it.
  static constexpr index_t quads_at_once = 64, panel_stride = float_tile<A>::panel + square_edge;

  static void sum(const std::uint32_t* panel, index_t panel_stride, index_t vectors, const bf16_rows& x, index_t rows,
                  index_t pairs, float* sums, bool first) {
    const typename square_unit<A>::session registers;
    const index_t steps = divide_up(pairs, pair_step);
    for (index_t v = 0; v < vectors; v += 2)
      for (index_t r = 0; r < rows; r += 2 * row_step) {
        const bf16_rows from{x.data + r * x.stride, x.stride};
        const auto squares = [&]<int Down, int Across>(std::integral_constant<int, Down>,
                                                       std::integral_constant<int, Across>) {
          add<Down, Across>(panel + v * row_step, panel_stride, from, steps, sums + r * width + v * row_step, first);
        };
        constexpr std::integral_constant<int, 1> one;
        constexpr std::integral_constant<int, 2> two;
        const bool tall = rows - r > row_step, wide = vectors - v > 1;
        tall ? wide ? squares(two, two) : squares(two, one) : wide ? squares(one, two) : squares(one, one);
      }
  }

 private:
  using unit = square_unit<A>;
  static constexpr index_t width = float_tile<A>::panel, number_bytes = 2, word = 4;

  /// Up to two by two squares. Register 2 d + a holds sums, 4 + d rows, 6 + a pairs of columns.
  template <int Down, int Across>
  static void add(const std::uint32_t* panel, index_t panel_stride, bf16_rows x, index_t steps, float* sums,
                  bool first) {
    unit::settle();
    const auto each = [&](const auto& f) QTENSOR_INLINE_LAMBDA {
      detail::repeat<Down>([&](auto d) QTENSOR_INLINE_LAMBDA {
        detail::repeat<Across>([&](auto a) QTENSOR_INLINE_LAMBDA { f(d, a); });
      });
    };
    const auto place = [&](index_t d, index_t a) { return sums + (d * width + a) * row_step; };
    if (first)
      each([](auto d, auto a) QTENSOR_INLINE_LAMBDA { unit::template zero<2 * d + a>(); });
    else
      each([&](auto d, auto a) QTENSOR_INLINE_LAMBDA { unit::template load<2 * d + a>(place(d, a), width * word); });
    for (; steps > 0; --steps) {
      detail::repeat<Across>(
          [&](auto a) QTENSOR_INLINE_LAMBDA { unit::template load<6 + a>(panel + a * row_step, panel_stride * word); });
      detail::repeat<Down>([&](auto d) QTENSOR_INLINE_LAMBDA {
        unit::template stream<4 + d>(x.data + d * row_step * x.stride, x.stride * number_bytes);
      });
      each([&](auto d, auto a) QTENSOR_INLINE_LAMBDA { unit::template dot_bf16<2 * d + a, 4 + d, 6 + a>(); });
      panel += pair_step * panel_stride;
      x.data += 2 * pair_step;
    }
    each([&](auto d, auto a) QTENSOR_INLINE_LAMBDA { unit::template store<2 * d + a>(place(d, a), width * word); });
  }
};

}  // namespace qtensor::inline QTENSOR_ABI::simd
