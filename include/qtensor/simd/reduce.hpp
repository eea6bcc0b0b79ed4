// Sums and extremes of bytes, along a row or down the columns of many rows: what folds of 8-bit codes come down to.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <qtensor/simd/ops.hpp>

// Elements are x[i] ^ flip as unsigned bytes: flip is 0 for uint8 codes and 0x80 for int8 ones, which makes them
// code + 128. Results are exact integers: order, length and Arch do not matter. Nothing outside the stated elements is
// read.
namespace qtensor::inline QTENSOR_ABI::simd {

/// Which extreme `extreme_bytes` looks for.
struct largest {
  static constexpr std::uint8_t none = 0;
  template <usable_arch A>
  static QTENSOR_INLINE bytes<A> of(const bytes<A>& a, const bytes<A>& b) {
    return simd::max(a, b);
  }
  static std::uint8_t of(std::uint8_t a, std::uint8_t b) { return a > b ? a : b; }
};
struct smallest {
  static constexpr std::uint8_t none = 0xff;
  template <usable_arch A>
  static QTENSOR_INLINE bytes<A> of(const bytes<A>& a, const bytes<A>& b) {
    return simd::min(a, b);
  }
  static std::uint8_t of(std::uint8_t a, std::uint8_t b) { return a < b ? a : b; }
};

namespace detail {

// Sums of 16 bits hold 257 bytes; they are emptied after 256.
inline constexpr index_t bytes_in_half = 256;

/// Bytes as the sums of 16-bit lanes that hold the even and the odd ones.
template <class A>
struct split_sums {
  halves<A> even = halves<A>(std::uint16_t{0}), odd = halves<A>(std::uint16_t{0});

  QTENSOR_INLINE void add(const bytes<A>& x) {
    const halves<A> both = simd::bits_as<std::uint16_t>(x);
    even = even + (both & halves<A>(std::uint16_t{0xff}));
    odd = odd + (both >> 8);
  }
};

/// The lanes of 16-bit sums, two and two in a lane of 32.
template <class A>
QTENSOR_INLINE words<A> paired(const halves<A>& v) {
  const words<A> both = simd::bits_as<std::uint32_t>(v);
  return (both & words<A>(0xffffu)) + (both >> 16);
}

template <class A>
QTENSOR_INLINE std::uint64_t sum_of_lanes(const words<A>& v) {
  alignas(64) std::uint32_t lane[static_cast<std::size_t>(lanes<A>)];
  simd::store(lane, v);
  std::uint64_t sum = 0;
#pragma GCC unroll 16
  for (std::uint32_t one : lane) sum += one;
  return sum;
}

/// 64 zeros, then ones: read so that a batch has ones in its last lanes only.
inline constexpr auto tail_masks = [] {
  std::array<std::uint8_t, 128> masks{};
  for (std::size_t i = 64; i < masks.size(); ++i) masks[i] = 0xff;
  return masks;
}();
/// Ones in the last `count` lanes of a batch of bytes.
template <class A>
QTENSOR_INLINE bytes<A> last_lanes(index_t count) {
  return simd::load<A>(tail_masks.data() + 64 - 4 * lanes<A> + count);
}

/// The extreme lane.
template <class Which, class A>
QTENSOR_INLINE std::uint8_t lane_extreme(bytes<A> b) {
  if constexpr (std::is_same_v<Which, smallest>) b = ~b;  // the complement of the smallest is the largest
  b = simd::max(b, simd::bits_as<std::uint8_t>(simd::bits_as<std::uint32_t>(b) >> 16));
  b = simd::max(b, simd::bits_as<std::uint8_t>(simd::bits_as<std::uint32_t>(b) >> 8));
  const std::uint32_t found = simd::reduce_max(simd::bits_as<std::uint32_t>(b) & words<A>(0xffu));
  return static_cast<std::uint8_t>(std::is_same_v<Which, smallest> ? ~found : found);
}

}  // namespace detail

/// Sum of x[i] ^ flip over i < n. Cost: 6 operations per batch of bytes, 4 independent chains.
template <usable_arch A>
std::uint64_t sum_bytes(const std::uint8_t* x, index_t n, std::uint8_t flip) {
  constexpr index_t step = 4 * lanes<A>, unroll = 4;
  const bytes<A> mask(flip);
  std::uint64_t sum = 0;
  if (n < step) {
    for (index_t i = 0; i < n; ++i) sum += static_cast<std::uint8_t>(x[i] ^ flip);
    return sum;
  }
  index_t i = 0;
  while (i + step <= n) {
    words<A> total(0u);
    // One sum of a chain takes 64 bytes a lane, so that the even and odd sums of two chains fit 16 bits together; and a
    // lane of `total` 2^14 of those.
    for (int rounds = 0; rounds < (1 << 14) && i + step <= n; ++rounds) {
      const index_t left = std::min((n - i) / (unroll * step), detail::bytes_in_half / 4);
      if (left == 0) {
        detail::split_sums<A> rest;
        for (; i + step <= n; i += step) rest.add(simd::load<A>(x + i) ^ mask);
        total = total + detail::paired<A>(rest.even + rest.odd);
        break;
      }
      detail::split_sums<A> a, b, c, d;
      for (const index_t end = i + left * unroll * step; i < end; i += unroll * step) {
        a.add(simd::load<A>(x + i) ^ mask);
        b.add(simd::load<A>(x + i + step) ^ mask);
        c.add(simd::load<A>(x + i + 2 * step) ^ mask);
        d.add(simd::load<A>(x + i + 3 * step) ^ mask);
      }
      total = total + detail::paired<A>((a.even + a.odd) + (b.even + b.odd)) +
              detail::paired<A>((c.even + c.odd) + (d.even + d.odd));
    }
    if (i < n && i + step > n) {  // the rest is the end of the last batch
      detail::split_sums<A> rest;
      rest.add((simd::load<A>(x + n - step) ^ mask) & detail::last_lanes<A>(n - i));
      total = total + detail::paired<A>(rest.even + rest.odd);
    }
    sum += detail::sum_of_lanes<A>(total);
  }
  return sum;
}

/// The largest or smallest x[i] ^ flip over i < n; Which::none where n is 0. Cost: 2-3 operations per batch of bytes.
template <class Which, usable_arch A>
std::uint8_t extreme_bytes(const std::uint8_t* x, index_t n, std::uint8_t flip) {
  constexpr index_t step = 4 * lanes<A>, unroll = 4;
  const bytes<A> mask(flip);
  std::uint8_t best = Which::none;
  if (n < step) {
    for (index_t i = 0; i < n; ++i) best = Which::of(best, static_cast<std::uint8_t>(x[i] ^ flip));
    return best;
  }
  bytes<A> chain[unroll] = {bytes<A>(best), bytes<A>(best), bytes<A>(best), bytes<A>(best)};
  index_t i = 0;
  for (; i + unroll * step <= n; i += unroll * step) {
#pragma GCC unroll 4
    for (index_t c = 0; c < unroll; ++c) chain[c] = Which::of(chain[c], simd::load<A>(x + i + c * step) ^ mask);
  }
  for (; i + step <= n; i += step) chain[0] = Which::of(chain[0], simd::load<A>(x + i) ^ mask);
  if (i < n) chain[1] = Which::of(chain[1], simd::load<A>(x + n - step) ^ mask);
  return detail::lane_extreme<Which, A>(Which::of(Which::of(chain[0], chain[1]), Which::of(chain[2], chain[3])));
}

namespace detail {

inline constexpr index_t column_panel = 8192;  // bytes of a row whose sums stay in L1
inline constexpr index_t rows_at_once = 8;

/// Calls visit(row, count) for runs of at most rows_at_once rows.
template <class Visit>
QTENSOR_INLINE void for_row_runs(index_t rows, Visit visit) {
  for (index_t row = 0; row < rows; row += rows_at_once) visit(row, std::min(rows_at_once, rows - row));
}

}  // namespace detail

/// sums[c] += the sum over r < rows of x[r * stride + c] ^ flip, for c < cols. Cost: 4-5 operations per batch of bytes.
template <usable_arch A>
void add_columns(const std::uint8_t* x, index_t rows, index_t stride, index_t cols, std::uint8_t flip,
                 std::uint32_t* sums) {
  constexpr index_t step = 4 * lanes<A>, half = 2 * lanes<A>;
  constexpr auto room = static_cast<std::size_t>((detail::column_panel + step) / 2);
  if (cols < step) {
    for (index_t r = 0; r < rows; ++r)
      for (index_t c = 0; c < cols; ++c) sums[c] += static_cast<std::uint8_t>(x[r * stride + c] ^ flip);
    return;
  }
  const bytes<A> mask(flip), all(std::uint8_t{0xff});
  alignas(64) std::uint16_t even[room], odd[room];
  for (index_t panel = 0; panel < cols; panel += detail::column_panel) {
    // A last batch that is not whole takes the columns before it in again, as zeros.
    const index_t width = std::min(detail::column_panel, cols - panel), batches = divide_up(width, step);
    const bytes<A> last = width % step == 0 ? all : detail::last_lanes<A>(width % step);
    const auto column_of = [&](index_t b) { return std::min(b * step, cols - panel - step); };
    for (index_t first = 0; first < rows; first += detail::bytes_in_half) {
      const index_t depth = std::min(detail::bytes_in_half, rows - first);
      const std::uint8_t* const from = x + first * stride + panel;
      std::fill(even, even + batches * half, std::uint16_t{0});
      std::fill(odd, odd + batches * half, std::uint16_t{0});
      detail::for_row_runs(depth, [&](index_t row, index_t count) {
        for (index_t b = 0; b < batches; ++b) {
          const std::uint8_t* const run = from + row * stride + column_of(b);
          const bytes<A> wanted = b + 1 == batches ? last : all;
          detail::split_sums<A> sum{simd::load<A>(even + b * half), simd::load<A>(odd + b * half)};
          if (count == detail::rows_at_once) {
#pragma GCC unroll 8
            for (index_t r = 0; r < detail::rows_at_once; ++r)
              sum.add((simd::load<A>(run + r * stride) ^ mask) & wanted);
          } else {
            for (index_t r = 0; r < count; ++r) sum.add((simd::load<A>(run + r * stride) ^ mask) & wanted);
          }
          simd::store(even + b * half, sum.even);
          simd::store(odd + b * half, sum.odd);
        }
      });
      // Lanes of a batch pair up: even lane i is byte 2 i of it.
      for (index_t b = 0; b < batches; ++b) {
        std::uint32_t* const to = sums + panel + column_of(b);
        for (index_t i = 0; i < half; ++i) {
          to[2 * i] += even[b * half + i];
          to[2 * i + 1] += odd[b * half + i];
        }
      }
    }
  }
}

/// best[c] = the extreme of best[c] and x[r * stride + c] ^ flip over r < rows, for c < cols.
template <class Which, usable_arch A>
void extreme_columns(const std::uint8_t* x, index_t rows, index_t stride, index_t cols, std::uint8_t flip,
                     std::uint8_t* best) {
  constexpr index_t step = 4 * lanes<A>;
  if (cols < step) {
    for (index_t r = 0; r < rows; ++r)
      for (index_t c = 0; c < cols; ++c)
        best[c] = Which::of(best[c], static_cast<std::uint8_t>(x[r * stride + c] ^ flip));
    return;
  }
  const bytes<A> mask(flip);
  for (index_t panel = 0; panel < cols; panel += detail::column_panel) {
    const index_t width = std::min(detail::column_panel, cols - panel);
    detail::for_row_runs(rows, [&](index_t row, index_t count) {
      for (index_t c = 0; c < width; c += step) {
        const index_t column = std::min(panel + c, cols - step);  // the last batch takes columns in twice
        const std::uint8_t* const run = x + row * stride + column;
        bytes<A> b = simd::load<A>(best + column);
        if (count == detail::rows_at_once) {
#pragma GCC unroll 8
          for (index_t r = 0; r < detail::rows_at_once; ++r) b = Which::of(b, simd::load<A>(run + r * stride) ^ mask);
        } else {
          for (index_t r = 0; r < count; ++r) b = Which::of(b, simd::load<A>(run + r * stride) ^ mask);
        }
        simd::store(best + column, b);
      }
    });
  }
}

/// out[c] = slope * (the sum over r < count of rows[r][c] ^ flip) + base, modulo 2^32, for c < n. Cost: 2 operations a
/// row and 2 more per batch of 32-bit lanes.
template <usable_arch A>
void sum_rows(const std::uint8_t* const* rows, index_t count, index_t n, std::uint8_t flip, std::int32_t slope,
              std::int32_t base, std::int32_t* out) {
  constexpr index_t step = lanes<A>;
  const words<A> mask(std::uint32_t{flip}), factor(static_cast<std::uint32_t>(slope)),
      start(static_cast<std::uint32_t>(base));
  index_t c = 0;
  for (; c + step <= n; c += step) {
    words<A> sum(0u);
    for (index_t r = 0; r < count; ++r) sum = sum + (simd::widen_u8<A>(rows[r] + c) ^ mask);
    simd::store(out + c, simd::bits_as<std::int32_t>(sum * factor + start));
  }
  for (; c < n; ++c) {
    std::uint32_t sum = 0;
    for (index_t r = 0; r < count; ++r) sum += static_cast<std::uint8_t>(rows[r][c] ^ flip);
    out[c] = static_cast<std::int32_t>(sum * static_cast<std::uint32_t>(slope) + static_cast<std::uint32_t>(base));
  }
}

/// out[i] = base + the sum over k < taps of x[i + k * tap], modulo 2^32, for i < n. Cost: 2 operations a tap per batch.
template <usable_arch A>
void slide_sums(const std::int32_t* x, index_t n, index_t taps, index_t tap, std::int32_t base, std::int32_t* out) {
  index_t i = 0;
  for (; i + lanes<A> <= n; i += lanes<A>) {
    ints<A> sum(base);
    for (index_t k = 0; k < taps; ++k) sum = sum + simd::load<A>(x + i + k * tap);
    simd::store(out + i, sum);
  }
  for (; i < n; ++i) {
    out[i] = base;
    for (index_t k = 0; k < taps; ++k) out[i] += x[i + k * tap];
  }
}

}  // namespace qtensor::inline QTENSOR_ABI::simd
