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
  static constexpr bool waits_for_codes = true;
  /// Rows that are summed at a time: their sums are read again for every few quads.
  static index_t rows(index_t left) { return std::min(left, index_t{128}); }
  /// Decoded columns of two squares stay in the first cache while rows pass by, and spread over it.
  static constexpr index_t quads_at_once = 128, panel_stride = float_tile<A>::panel + square_edge;
  static constexpr index_t panels_together = 8;

  static void sum(const std::uint32_t* panel, index_t stride, index_t vectors, const bf16_rows& x, index_t rows,
                  index_t pairs, float* sums, bool first) {
    const index_t steps = divide_up(pairs, pair_step);
    if (steps == 0) {
      for (index_t r = 0; first && r < round_up(rows, row_step); ++r)
        std::fill_n(sums + r * width, vectors * row_step, 0.f);
      return;
    }
    const typename square_unit<A>::session registers;
    squares_to last;
    for (index_t v = 0; v < vectors; v += 2)
      for (index_t r = 0; r < rows; r += 2 * row_step) {
        const bf16_rows from{x.data + r * x.stride, x.stride};
        const auto squares = [&]<int Down, int Across>(std::integral_constant<int, Down>,
                                                       std::integral_constant<int, Across>) {
          add<Down, Across>(panel + v * row_step, stride, from, steps, sums + r * width + v * row_step, first, last);
        };
        constexpr std::integral_constant<int, 1> one;
        constexpr std::integral_constant<int, 2> two;
        const bool tall = rows - r > row_step, wide = vectors - v > 1;
        tall ? wide ? squares(two, two) : squares(two, one) : wide ? squares(one, two) : squares(one, one);
      }
    each_square([&](auto d, auto a) QTENSOR_INLINE_LAMBDA { last.template store<d, a>(); });
  }

 private:
  using unit = square_unit<A>;
  static constexpr index_t width = float_tile<A>::panel, number_bytes = 2, word = 4;

  template <class F>
  static QTENSOR_INLINE void each_square(const F& f) {
    detail::repeat<2>([&](auto d)
                          QTENSOR_INLINE_LAMBDA { detail::repeat<2>([&](auto a) QTENSOR_INLINE_LAMBDA { f(d, a); }); });
  }
  static float* place(float* sums, index_t d, index_t a) { return sums + (d * width + a) * row_step; }

  /// Squares whose sums are in registers, and where they go.
  struct squares_to {
    float* sums = nullptr;
    int down = 0, across = 0;
    template <int D, int Across>
    QTENSOR_INLINE void store() const {
      if (D < down && Across < across) unit::template store<2 * D + Across>(place(sums, D, Across), width * word);
    }
  };

  /// Up to two by two squares. Register 2 d + a holds sums, 4 + d rows, 6 + a pairs of columns. The last ones go to
  /// memory one by one where these begin, for their way there takes as long as a step.
  template <int Down, int Across>
  static void add(const std::uint32_t* panel, index_t stride, bf16_rows x, index_t steps, float* sums, bool first,
                  squares_to& last) {
    unit::settle();
    const auto step = [&](const auto& before) QTENSOR_INLINE_LAMBDA {
      each_square([&](auto d, auto a) QTENSOR_INLINE_LAMBDA {
        if constexpr (d == 0 && a < Across) unit::template load<6 + a>(panel + a * row_step, stride * word);
        if constexpr (a == 0 && d < Down)
          unit::template stream<4 + d>(x.data + d * row_step * x.stride, x.stride * number_bytes);
        before(d, a);
        if constexpr (d < Down && a < Across) unit::template dot_bf16<2 * d + a, 4 + d, 6 + a>();
      });
      panel += pair_step * stride;
      x.data += 2 * pair_step;
    };
    step([&](auto d, auto a) QTENSOR_INLINE_LAMBDA {
      last.template store<d, a>();
      if constexpr (d < Down && a < Across) {
        if (first)
          unit::template zero<2 * d + a>();
        else
          unit::template load<2 * d + a>(place(sums, d, a), width * word);
      }
    });
    last = {sums, Down, Across};
    for (; steps > 1; --steps) step([](auto, auto) {});
  }
};

}  // namespace qtensor::inline QTENSOR_ABI::simd
