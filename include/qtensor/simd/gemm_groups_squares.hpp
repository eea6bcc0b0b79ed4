// Products with a scale per group of k on matrix registers: squares of exact dots, which vectors scale and add up.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/simd/gemm_groups.hpp>
#include <qtensor/simd/memory.hpp>
#include <qtensor/simd/ops_amx.hpp>

// Matrix registers can neither scale what they sum nor hand it to vectors but through memory: the dots of a few groups
// go to a buffer in the first cache, then their scales are multiplied in. Both at once is no faster: while squares are
// summed, half of the vector units stand still.
namespace qtensor::inline QTENSOR_ABI::simd {

/// Whether rows meet groups on matrix registers; `suits`: it is faster.
template <usable_arch A>
bool prefers_group_squares(bool suits) {
  const group_way way = group_way_taken.load(std::memory_order_relaxed);
  return (way == group_way::squares || (way == group_way::fastest && suits)) && uses_squares<A>();
}

/// Whether groups of so many quads are whole steps of matrix registers, and long enough for them.
constexpr bool fits_group_squares(index_t quads) {
  return quads >= 4 && (quads <= square_edge || quads % square_edge == 0);
}

/// dot_groups in any number of rows, by the matrix registers of a thread, for groups of `quads` quads; A = avx512_arch.
/// Weights are signed bytes, one vector of columns behind the other (make_ready): the dots start from 0, not from
/// group_rows::starts. Units, and scales, sums and terms of rows, are read to whole squares of rows, whatever lies
/// there. Between two calls others may use the registers.
template <usable_arch A>
class group_squares {
 public:
  explicit group_squares(index_t quads) : quads_(quads), registers_(std::min(quads, square_edge)) {}

  /// Rows [0, rows) of x times group_tile::columns columns of w: all groups that are in memory. Each of them asks once
  /// for what will be read next.
  void dot(const group_columns& w, const group_rows<std::int8_t>& x, index_t rows, index_t groups,
           const group_sums& sums, run_requests& next) {
    registers_.resume();
    unit::settle();
    run_requests nothing;
    const bool plain = w.zeros == nullptr && x.zeros == nullptr && w.offsets == nullptr;
    for (index_t r = 0; r < rows; r += 2 * square_edge) {
      const group_sums place = sums.at(r, 0);
      const auto some = x.from(r, 0, 4 * quads_);
      const index_t left = rows - r;
      run_requests& asks = r == 0 ? next : nothing;
      const auto run = [&](auto down) {
        plain ? squares<down, true>(w, some, left, groups, quads_, place, asks)
              : squares<down, false>(w, some, left, groups, quads_, place, asks);
      };
      left > square_edge ? run(std::integral_constant<int, 2>{}) : run(std::integral_constant<int, 1>{});
    }
  }

 private:
  using unit = square_unit<A>;
  using rows_type = group_rows<std::int8_t>;
  static constexpr index_t edge = square_edge, square = edge * edge;
  static_assert(!unit::exists || group_tile<A>::columns == 2 * edge);

  /// Groups whose dots are in memory at a time, of the four squares: 16 KB, 8 KB where squares take several steps.
  static constexpr index_t most_groups = 4;

  /// Down by two squares, over all groups.
  template <int Down, bool Plain>
  static void squares(const group_columns& w, const rows_type& x, index_t rows, index_t groups, index_t quads,
                      const group_sums& sums, run_requests& next) {
    alignas(64) std::int32_t dots[most_groups * Down * 2 * square];
    alignas(64) float kept[Down * 2 * square];
    const index_t together = quads > edge ? most_groups / 2 : most_groups;
    for (index_t g = 0; g < groups; g += together) {
      const index_t count = std::min(together, groups - g);
      const auto part = x.from(0, g, 4 * quads);
      sum<Down>(w.codes + g * quads * 4 * edge, groups * quads * 4 * edge, part, count, quads, dots, next);
      for (index_t d = 0; d < Down; ++d)
        for (index_t a = 0; a < 2; ++a) {
          float* const own = kept + (2 * d + a) * square;
          group_sums place = sums.at(d * edge, a * edge);
          if (g > 0) place.from = own, place.from_stride = edge;
          if (g + count < groups) place = {place.from, place.from_stride, own, edge};
          const std::int32_t* const of_square = dots + (2 * d + a) * square;
          const auto of_rows = part.from(d * edge, 0, 0);
          if (rows - d * edge >= edge)
            add<true, Plain>(of_square, Down * 2 * square, w.parameters_from(a * edge, g), of_rows, edge, count, place);
          else
            add<false, Plain>(of_square, Down * 2 * square, w.parameters_from(a * edge, g), of_rows, rows - d * edge,
                              count, place);
        }
    }
  }

  /// dots[((g * Down + d) * 2 + a) * square + ...] = the dots of square (d, a) for groups g < count.
  template <int Down>
  static QTENSOR_INLINE void sum(const std::uint8_t* codes, index_t apart, const rows_type& x, index_t count,
                                 index_t quads, std::int32_t* dots, run_requests& next) {
    // Four squares are under way: those of one group, or of two. Registers 2 (d + t) + a; 4 and 5 rows, 6 and 7 quads.
    constexpr int turns = 3 - Down;
    const index_t step = std::min(quads, edge);
    const auto store = [&](auto t, auto d, auto a, index_t g) QTENSOR_INLINE_LAMBDA {
      unit::template store<2 * (d + t) + a>(dots + ((g * Down + d) * 2 + a) * square, edge * 4);
    };
    const auto each = [](const auto& f) QTENSOR_INLINE_LAMBDA {
      detail::repeat<Down>(
          [&](auto d) QTENSOR_INLINE_LAMBDA { detail::repeat<2>([&](auto a) QTENSOR_INLINE_LAMBDA { f(d, a); }); });
    };
    const auto add_step = [&](auto t, const std::int8_t* units, const std::uint8_t* words, const auto& begin)
                              QTENSOR_INLINE_LAMBDA {
                                unit::template load<6>(words, 4 * edge);
                                each([&](auto d, auto a) QTENSOR_INLINE_LAMBDA {
                                  if constexpr (a == 0)
                                    unit::template load<4 + t + d>(units + d * edge * x.stride, x.stride);
                                  if constexpr (a == 1 && d == 0) unit::template load<7>(words + apart, 4 * edge);
                                  begin(d, a);
                                  unit::template dot_signed<2 * (d + t) + a, 4 + t + d, 6 + a>();
                                });
                              };
    for (index_t first = 0; first < count; first += turns)
      detail::repeat<turns>([&](auto t) QTENSOR_INLINE_LAMBDA {
        const index_t g = first + t;
        if (g >= count) return;
        next.ask();
        const std::int8_t* units = x.units + g * 4 * quads;
        const std::uint8_t* words = codes + g * quads * 4 * edge;
        add_step(t, units, words, [&](auto d, auto a) QTENSOR_INLINE_LAMBDA {
          if (first > 0) store(t, d, a, g - turns);
          unit::template zero<2 * (d + t) + a>();
        });
        for (index_t q = step; q < quads; q += step)
          add_step(t, units + 4 * q, words + 4 * edge * q, [](auto, auto) {});
      });
    detail::repeat<turns>([&](auto t) QTENSOR_INLINE_LAMBDA {
      const index_t last = (count - 1 - t) / turns * turns + t;
      if (t < count) each([&](auto d, auto a) QTENSOR_INLINE_LAMBDA { store(t, d, a, last); });
    });
  }

  /// A square's dots of `groups` groups, `apart` from one to the next: scaled and added up as dot_groups says.
  template <bool Whole, bool Plain>
  static QTENSOR_INLINE void add(const std::int32_t* dots, index_t apart, const group_columns& w, const rows_type& x,
                                 index_t rows, index_t groups, const group_sums& place) {
    const auto each = [&](const auto& f) QTENSOR_INLINE_LAMBDA {
      detail::repeat<edge>([&](auto r) QTENSOR_INLINE_LAMBDA {
        if (Whole || r < rows) f(r);
      });
    };
    floats<A> y[edge];
    detail::repeat<edge>([&](auto r) QTENSOR_INLINE_LAMBDA { y[r] = floats<A>(0.f); });
    if (place.from != nullptr)
      each([&](auto r) QTENSOR_INLINE_LAMBDA { y[r] = simd::load<A>(place.from + r * place.from_stride); });
    const auto add_group = [&](index_t g, const auto& factor) QTENSOR_INLINE_LAMBDA {
      const auto column = [&](const auto* of) QTENSOR_INLINE_LAMBDA { return simd::load<A>(of + g * w.stride); };
      const bool zeros = !Plain && w.zeros != nullptr, row_zeros = !Plain && x.zeros != nullptr,
                 offsets = !Plain && w.offsets != nullptr;
      const floats<A> scale = simd::rounded(column(w.scales));
      detail::repeat<edge>([&](auto r) QTENSOR_INLINE_LAMBDA {
        const index_t i = g * x.entries + r;
        ints<A> dot = simd::load<A>(dots + g * apart + r * edge);
        if (zeros) dot = simd::multiply_add(dot, column(w.zeros), ints<A>(x.sums[i]));
        if (row_zeros) dot = simd::multiply_add(dot, column(w.sums), ints<A>(x.zeros[i]));
        y[r] = simd::fma(simd::to_float(dot), factor(scale, i), y[r]);
        if (offsets) y[r] = simd::fma(floats<A>(x.terms[i]), column(w.offsets), y[r]);
      });
    };
    if (x.scales == nullptr)
      for (index_t g = 0; g < groups; ++g)
        add_group(g, [](const floats<A>& column, index_t) QTENSOR_INLINE_LAMBDA { return column; });
    else
      for (index_t g = 0; g < groups; ++g)
        add_group(g, [&](const floats<A>& column, index_t i)
                         QTENSOR_INLINE_LAMBDA { return simd::mul(column, floats<A>(x.scales[i])); });
    if (place.row_scales != nullptr)
      each([&](auto r) QTENSOR_INLINE_LAMBDA { y[r] = simd::mul(y[r], floats<A>(place.row_scales[r])); });
    if (place.last != 1.f) each([&](auto r) QTENSOR_INLINE_LAMBDA { y[r] = simd::mul(y[r], floats<A>(place.last)); });
    each([&](auto r) QTENSOR_INLINE_LAMBDA { simd::store(place.to + r * place.to_stride, y[r]); });
  }

  index_t quads_;
  typename unit::session registers_;
};

}  // namespace qtensor::inline QTENSOR_ABI::simd
