// The bf16 product's inner loop: register tiles of dot products of pairs, columns of packed weights in lanes.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <qtensor/simd/gemm_float.hpp>
#include <qtensor/simd/memory.hpp>
#include <qtensor/simd/ops_bf16_dot.hpp>

// The depth is cut into quads of four k. A quad's first pair is k = 0 and 2, its second k = 1 and 3, in weights and
// rows alike: what a quad of bytes becomes with the fewest instructions.
namespace qtensor::inline QTENSOR_ABI::simd {

/// Rows of bf16 numbers as the tiles read them: row r begins at data + r * stride.
struct bf16_rows {
  const std::uint16_t* data;
  index_t stride;
};

/// A row of n floats, rounded to bf16 (nearest, ties to even), as units in the order of quads, padded with zeros to
/// whole quads: to[0, round_up(n, 4)).
template <usable_arch A>
void pack_bf16_units(const float* from, index_t n, std::uint16_t* to) {
  constexpr index_t step = 2 * lanes<A>;
  const auto rounded = [&](index_t k, index_t count) QTENSOR_INLINE_LAMBDA {
    if (count == step) return simd::narrow_bf16(simd::load<A>(from + k), simd::load<A>(from + k + lanes<A>));
    const index_t first = std::min(count, lanes<A>);
    return simd::narrow_bf16(simd::load_n<A>(from + k, first), simd::load_n<A>(from + k + first, count - first));
  };
  for (index_t k = 0; k < n; k += step) {
    const halves<A> v = simd::swap_middles(rounded(k, std::min(step, n - k)));
    const index_t count = std::min(step, round_up(n - k, 4));
    if (count == step)
      simd::store(to + k, v);
    else
      simd::store_n(to + k, count, v);
  }
}

namespace detail {

template <class A, index_t Rows, index_t Vectors>
[[gnu::noinline]] void bf16_registers(const std::uint32_t* panel, index_t panel_stride, bf16_rows x, index_t pairs,
                                      float* sums, bool first) {
  using dot = bf16_dot<A>;
  constexpr index_t step = lanes<A>, width = float_tile<A>::panel;
  floats<A> sum[Rows][Vectors];
  repeat<Rows>([&](auto r) QTENSOR_INLINE_LAMBDA {
    repeat<Vectors>([&](auto v) QTENSOR_INLINE_LAMBDA {
      sum[r][v] = first ? floats<A>(0.f) : simd::load<A>(sums + r * width + v * step);
    });
  });
  for (index_t pair = 0; pair < pairs; ++pair) {
    typename dot::weights w[Vectors];
    repeat<Vectors>([&](auto v) QTENSOR_INLINE_LAMBDA { w[v] = dot::load(panel + v * step); });
    repeat<Rows>([&](auto r) QTENSOR_INLINE_LAMBDA {
      const auto two = dot::broadcast(x.data + r * x.stride);
      repeat<Vectors>([&](auto v) QTENSOR_INLINE_LAMBDA { sum[r][v] = dot::dot(sum[r][v], w[v], two); });
    });
    panel += panel_stride;
    x.data += 2;
  }
  repeat<Rows>([&](auto r) QTENSOR_INLINE_LAMBDA {
    repeat<Vectors>([&](auto v) QTENSOR_INLINE_LAMBDA { simd::store(sums + r * width + v * step, sum[r][v]); });
  });
}

}  // namespace detail

/// sums(r, c) += sum over i < pairs of panel(i, c).first * x(r, 2i) + panel(i, c).second * x(r, 2i + 1), from +0 if
/// `first`; products are exact, sums are rounded in an order of the CPU's.
///
/// r < rows, which float_tile<A>::rows returned; c < vectors * lanes, vectors <= panel_vectors. Pair i of column c is
/// panel[i * panel_stride + c], row r of sums starts at sums + r * float_tile<A>::panel. Any alignment.
template <usable_arch A>
requires(bf16_dot<A>::exists) void bf16_tile(const std::uint32_t* panel, index_t panel_stride, index_t vectors,
                                             const bf16_rows& x, index_t rows, index_t pairs, float* sums, bool first) {
  detail::with_tile_rows<A>(rows, [&]<index_t Rows>(std::integral_constant<index_t, Rows>) {
    detail::for_each_register_tile<A, Rows>(
        vectors, [&]<index_t Vectors>(std::integral_constant<index_t, Vectors>, index_t col) {
          detail::bf16_registers<A, Rows, Vectors>(panel + col, panel_stride, x, pairs, sums + col, first);
        });
  });
}

/// Sums of bf16 pairs by tiles of vectors, as ops/product_bf16.hpp takes them: how many rows at a time, up to which
/// multiples of rows and pairs operands and sums have room, how many quads of depth are decoded at a time, from how
/// many panels in turn for rows that come from afar, how many words one pair of a decoded panel is from the next, and
/// whether blocks pass so fast that it counts how soon codes come.
template <usable_arch A>
requires(bf16_dot<A>::exists) struct bf16_vectors {
  static constexpr index_t row_step = float_tile<A>::max_rows, pair_step = 1;
  static constexpr bool waits_for_codes = false;
  static constexpr index_t quads_at_once = 256, panels_together = 1, panel_stride = float_tile<A>::panel;
  static index_t rows(index_t left) { return float_tile<A>::rows(left); }
  static void sum(const std::uint32_t* panel, index_t stride, index_t vectors, const bf16_rows& x, index_t rows,
                  index_t pairs, float* sums, bool first) {
    bf16_tile<A>(panel, stride, vectors, x, rows, pairs, sums, first);
  }
};

}  // namespace qtensor::inline QTENSOR_ABI::simd
