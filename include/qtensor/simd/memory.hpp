// Moving runs without changing values: 16-bit floats widened, elements transposed, bytes stored past the caches.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <qtensor/format/wide.hpp>
#include <qtensor/reference/codec.hpp>
#include <qtensor/simd/ops.hpp>
#include <span>
#include <type_traits>
#include <utility>

namespace qtensor::inline QTENSOR_ABI::simd {

/// What numbers may be read and written as.
template <class F>
concept number_format = std::same_as<F, f32> || std::same_as<F, bf16> || std::same_as<F, f16>;

/// How a format of sources is read by kernels: from_f32, from_bf16, from_f16.
template <number_format F>
using source_of =
    std::conditional_t<std::same_as<F, f32>, from_f32, std::conditional_t<std::same_as<F, bf16>, from_bf16, from_f16>>;

/// The format that a kernel reads elements of.
template <float_source From>
using format_of =
    std::conditional_t<std::same_as<From, from_f32>, f32, std::conditional_t<std::same_as<From, from_bf16>, bf16, f16>>;

/// The float that an element is.
template <float_source From>
constexpr float number(typename From::type element) {
  if constexpr (std::same_as<From, from_f32>)
    return element;
  else
    return decode<format_of<From>>(element);
}

/// How far into the caches a kernel asks for what it will read, which comes from memory in this order: not at all, to
/// the first level, or to the second where it is read twice, a piece at a time, and would push itself out of the first.
/// `pages`: to the second level, from several pages in turn, as memory answers fastest.
enum class fetch { nothing, near, far, pages };

/// How a CPU is best asked for what a kernel reads in order, from memory where nothing else is said.
struct requests {
  fetch once;          ///< how far, where numbers are read once
  index_t once_ahead;  ///< how many bytes further on then, but for pages in turn
  fetch only;          ///< how far, where they are only read, as by statistics
  fetch columns;       ///< the same by statistics of columns
  fetch beyond;        ///< how far, where they lie in a cache beyond the first one, and statistics of them come first
  index_t rows;        ///< how many are encoded together where columns have scales; 1: long ones are read one by one
  index_t piece;       ///< bytes that are taken at a time where numbers are read twice: for statistics, then for codes
  fetch next_piece;    ///< how far, while codes of a piece are made
  index_t ahead;       ///< how many bytes further on then
  index_t part;        ///< bytes of longer blocks that are read and encoded in turn; 0: they are read, then encoded
  index_t box;         ///< bytes of rows that share scales, so many columns at a time, while the next are asked for
  bool in_order;       ///< whether rows that share the given scales of groups are encoded one by one all the same
  fetch weights;       ///< how far codes of packed weights are asked for, while blocks of them are decoded
};
/// As measured. Intel's like requests from pages in turn: in order, what kernels read while they compute comes at .6 to
/// .8 of memory's speed, and from eight pages at .9 and more. All like short pieces, so that reading and encoding
/// alternate quickly, Intel's where blocks are longer, too; Zen 4 sees by itself what is read in order, and likes whole
/// rows where there are several. Zen 5 likes rows one by one, too, and is best asked for a few lines further on.
QTENSOR_INLINE requests best_requests() {
  if (simd::is_intel())
    return {.once = fetch::pages,
            .once_ahead = 16384,
            .only = fetch::pages,
            .columns = fetch::nothing,
            .beyond = fetch::nothing,
            .rows = 4,
            .piece = 6144,
            .next_piece = fetch::pages,
            .ahead = 16384,
            .part = 2048,
            .box = 32768,
            .in_order = false,
            .weights = fetch::far};
  if (simd::is_zen4())
    return {.once = fetch::nothing,
            .once_ahead = 16384,
            .only = fetch::nothing,
            .columns = fetch::nothing,
            .beyond = fetch::nothing,
            .rows = 8,
            .piece = 6144,
            .next_piece = fetch::far,
            .ahead = 16384,
            .part = 0,
            .box = 1 << 19,
            .in_order = true,
            .weights = fetch::far};
  return {.once = fetch::near,
          .once_ahead = 6144,
          .only = fetch::nothing,
          .columns = fetch::near,
          .beyond = fetch::near,
          .rows = 1,
          .piece = 8192,
          .next_piece = fetch::near,
          .ahead = 16384,
          .part = 0,
          .box = 32768,
          .in_order = true,
          .weights = fetch::near};
}

/// How a kernel of runs treats the caches.
struct traffic {
  fetch fetches = fetch::nothing;
  bool streams = false;   ///< what is written goes past the caches; call stream_fence() afterwards
  index_t ahead = 16384;  ///< how many bytes further on it asks, but for pages in turn
};

/// That of one that reads what comes from memory once, in order.
QTENSOR_INLINE traffic reads_once(bool streams) {
  const requests best = best_requests();
  return {best.once, streams, best.once_ahead};
}

/// Runs of bytes that are asked for by and by, to the second level: `next` and what lies behind it, a few at a time.
struct run_requests {
  const std::uint8_t* next = nullptr;
  index_t step = 0, length = 0, at_once = 0;  // bytes: from run to run, of a run, and as many as are asked for together
  index_t asked = 0;                          // of this run

  QTENSOR_INLINE void ask() {
    constexpr index_t line = cache_line;
    for (index_t i = 0; i < at_once; i += line, asked += std::min(line, at_once)) {
      if (asked >= length) asked = 0, next += step;
      simd::prefetch_second_level(next + asked);
    }
  }
};

/// What a kernel asks for while it encodes rows of a box: numbers that lie so many elements behind those it reads, 0
/// for those of the rows that it takes next; or runs elsewhere, with every four registers of numbers.
struct box_requests {
  fetch fetches = fetch::nothing;
  index_t ahead = 0;
  std::span<run_requests> runs = {};
};

/// Whether a place, and all that lie a multiple of `step` elements behind it, begin lines of the caches.
template <class T>
bool begins_line(const T* place, index_t step = 0) {
  constexpr index_t line = cache_line;
  return reinterpret_cast<std::uintptr_t>(place) % line == 0 && step * index_t{sizeof(T)} % line == 0;
}

/// How many elements lie before the first one that begins a line of the caches, so many in each run of n that begins a
/// multiple of `step` elements further on; n where there is none, or runs begin differently.
template <class T>
index_t elements_to_line(const T* place, index_t step, index_t n) {
  constexpr index_t line = cache_line, size = sizeof(T);
  const index_t bytes = (line - static_cast<index_t>(reinterpret_cast<std::uintptr_t>(place) % line)) % line;
  return bytes % size != 0 || step * size % line != 0 ? n : std::min(bytes / size, n);
}

/// Asks for `Bytes` bytes at x.
template <index_t Bytes>
QTENSOR_INLINE void fetch_lines(const void* x, fetch how) {
  constexpr index_t line = cache_line;
  const auto* first = static_cast<const std::uint8_t*>(x);
  if (how == fetch::near)
#pragma GCC unroll 8
    for (index_t i = 0; i < Bytes; i += line) simd::prefetch(first + i);
  else if (how != fetch::nothing)
#pragma GCC unroll 8
    for (index_t i = 0; i < Bytes; i += line) simd::prefetch_second_level(first + i);
}
/// The same to the first level, of whole lines so many bytes behind x.
template <index_t Bytes>
QTENSOR_INLINE void fetch_lines(const void* x, index_t ahead) {
  fetch_lines<std::max(Bytes, index_t{64})>(static_cast<const std::uint8_t*>(x) + ahead, fetch::near);
}
/// Asks for a run of bytes.
QTENSOR_INLINE void fetch_run(const void* first, index_t bytes, fetch how) {
  constexpr index_t line = cache_line;
  if (how == fetch::nothing) return;
  for (index_t i = 0; i < bytes; i += line) fetch_lines<line>(static_cast<const std::uint8_t*>(first) + i, how);
}
/// Asks for some runs of bytes, `step` bytes apart, to the second level.
QTENSOR_INLINE void fetch_runs(const void* first, index_t step, index_t runs, index_t bytes) {
  const auto* from = static_cast<const std::uint8_t*>(first);
  for (index_t r = 0; r < runs; ++r) fetch_run(from + r * step, bytes, fetch::far);
}
/// What a step of `Bytes` bytes at x asks for with fetch::pages. Memory is cut into windows of eight pages, wherever
/// runs begin: the first eight steps in one ask for the first of each page two windows further on, the next eight for
/// the second, and so forth; so all that lies less than a window ahead has been asked for.
template <index_t Bytes>
QTENSOR_INLINE const void* in_pages_ahead(const void* x) {
  constexpr std::uintptr_t step = Bytes, page = 4096, pages = 8, window = pages * page;
  static_assert(page % step == 0);
  const auto at = reinterpret_cast<std::uintptr_t>(x), in_window = at % window, n = in_window / step;
  return reinterpret_cast<const void*>(at - in_window + 2 * window + n % pages * page + n / pages * step);
}
/// Asks for the lines that a run of n elements, which go past the caches, shares with what lies before and behind it:
/// those are stored the usual way, and until their lines have come no later store is done.
template <class T>
QTENSOR_INLINE void fetch_shared_lines(T* to, index_t n) {
  if (!begins_line(to)) simd::prefetch_to_write(to);
  if (!begins_line(to + n)) simd::prefetch_to_write(to + n);
}
/// Asks for steps of `Bytes` bytes in order, so far behind x that they come from memory while what lies between is
/// worked on: of several steps to a line, the first asks for it.
template <index_t Bytes>
QTENSOR_INLINE void fetch_ahead(const void* x, const traffic& t) {
  constexpr index_t line = cache_line;
  if (t.fetches == fetch::nothing) return;
  if (Bytes < line && reinterpret_cast<std::uintptr_t>(x) % line >= Bytes) return;
  constexpr index_t asked = std::max(Bytes, line);
  if constexpr (std::has_single_bit(static_cast<std::size_t>(asked)))
    if (t.fetches == fetch::pages) return fetch_lines<asked>(in_pages_ahead<asked>(x), fetch::far);
  fetch_lines<asked>(static_cast<const std::uint8_t*>(x) + t.ahead, t.fetches);
}

/// out[i] = the float that from[i] is, for i < n.
template <format F, usable_arch A = best_arch>
void widen_floats(const storage_t<F>* from, index_t n, float* out) {
  constexpr index_t step = lanes<A>;
  if constexpr (std::same_as<F, f32>) {
    std::copy_n(from, n, out);
  } else {
    index_t i = 0;
    for (; i + 2 * step <= n; i += 2 * step) {
      simd::store(out + i, source_of<F>::template load<A>(from + i));
      simd::store(out + i + step, source_of<F>::template load<A>(from + i + step));
    }
    for (; i < n; i += step) {
      const index_t left = std::min(step, n - i);
      simd::store_n(out + i, left, source_of<F>::template load_n<A>(from + i, left));
    }
  }
}

namespace detail {

/// to[r * to_step + c] = from[c * from_step + r] for r < rows and c < cols: whole parts of `wide` elements of `high`
/// rows by `turn`, along as many rows first, and what they leave by those after it; what leaves less than four elements
/// or rows is turned once more with those before them.
template <class T>
void transpose_by_parts(const T* from, index_t from_step, index_t rows, index_t cols, T* to, index_t to_step) {
  for (index_t r = 0; r < rows; ++r)
    for (index_t c = 0; c < cols; ++c) to[r * to_step + c] = from[c * from_step + r];
}
template <class T, class Turn, class... Smaller>
void transpose_by_parts(const T* from, index_t from_step, index_t rows, index_t cols, T* to, index_t to_step, Turn turn,
                        Smaller... smaller) {
  constexpr index_t wide = Turn::wide, high = Turn::high, few = 4;
  index_t whole_rows = rows / wide * wide, whole_cols = cols / high * high;
  const auto turn_at = [&](index_t r, index_t c) QTENSOR_INLINE_LAMBDA {
    turn(from + c * from_step + r, from_step, to + r * to_step + c, to_step);
  };
  for (index_t c = 0; c < whole_cols; c += high)
    for (index_t r = 0; r < whole_rows; r += wide) turn_at(r, c);
  if (wide <= few && whole_rows < rows && rows >= wide) {
    for (index_t c = 0; c < whole_cols; c += high) turn_at(rows - wide, c);
    whole_rows = rows;
  }
  if (high <= few && whole_cols < cols && cols >= high) {
    for (index_t r = 0; r < whole_rows; r += wide) turn_at(std::min(r, whole_rows - wide), cols - high);
    whole_cols = cols;
  }
  if (whole_cols < cols)
    transpose_by_parts(from + whole_cols * from_step, from_step, whole_rows, cols - whole_cols, to + whole_cols,
                       to_step, smaller...);
  if (whole_rows < rows)
    transpose_by_parts(from + whole_rows, from_step, rows - whole_rows, cols, to + whole_rows * to_step, to_step,
                       smaller...);
}

/// 16 bytes each of as many rows as `Quarters` times 16 bytes hold elements. A register takes every `wide`-th row, side
/// by side; rounds of interleaving register i with register i + wide / 2 turn the squares in their quarters all at
/// once. `Past`: what is written are lines that go past the caches.
template <class T, index_t Quarters, bool Past = false>
struct register_band {
  static constexpr index_t wide = 16 / index_t{sizeof(T)}, high = Quarters * wide;
  static_assert(!Past || Quarters == 4);

  QTENSOR_INLINE void operator()(const T* from, index_t from_step, T* to, index_t to_step) const {
    line x[wide], y[wide];
#pragma GCC unroll 16
    for (index_t i = 0; i < wide; ++i) {
      const T* row = from + i * from_step;
      if constexpr (Quarters == 1) {
        std::memcpy(&x[i], row, sizeof(line));
      } else {
        const auto rows = simd::load_quarters<best_arch>(row, wide * from_step * index_t{sizeof(T)});
        static_assert(sizeof(rows) == sizeof(line));
        std::memcpy(&x[i], &rows, sizeof(line));
      }
    }
    interleave<wide>(x, y, to, to_step, std::make_integer_sequence<int, high>{});
  }
  /// The same of all that is read, of which the first n < high rows are kept.
  QTENSOR_INLINE void turn_some(const T* from, index_t from_step, index_t n, T* to, index_t to_step) const {
    alignas(64) T lines[wide * high];
    (*this)(from, from_step, lines, high);
    for (index_t i = 0; i < wide; ++i)
      simd::store_n(to + i * to_step, n, simd::load<best_arch>(static_cast<const T*>(lines + i * high)));
  }
  /// The same where the registers lie behind one another.
  static QTENSOR_INLINE void turn_lines(const T* from, T* to, index_t to_step) {
    line x[wide], y[wide];
#pragma GCC unroll 16
    for (index_t i = 0; i < wide; ++i) std::memcpy(&x[i], from + i * high, sizeof(line));
    interleave<wide>(x, y, to, to_step, std::make_integer_sequence<int, high>{});
  }

 private:
  using line [[gnu::vector_size(16 * Quarters)]] = T;

  template <index_t Left, int... I>
  static QTENSOR_INLINE void interleave(line* x, line* y, T* to, index_t to_step,
                                        std::integer_sequence<int, I...> all) {
    if constexpr (Left == 1) {
#pragma GCC unroll 16
      for (index_t i = 0; i < wide; ++i)
        if constexpr (Past)
          simd::stream(to + i * to_step, std::bit_cast<xsimd::batch<T, best_arch>>(x[i]));
        else
          std::memcpy(to + i * to_step, &x[i], sizeof(line));
    } else {
#pragma GCC unroll 16
      for (index_t i = 0; i < wide / 2; ++i) {
        const line &a = x[i], &b = x[i + wide / 2];
        y[2 * i] = __builtin_shufflevector(a, b, (I / wide * wide + I % wide / 2 + I % 2 * high)...);
        y[2 * i + 1] = __builtin_shufflevector(a, b, (I / wide * wide + (wide + I % wide) / 2 + I % 2 * high)...);
      }
      interleave<Left / 2>(y, x, to, to_step, all);
    }
  }
};

/// Whole lines of the rows of a band, by way of a copy: rows at a power of two push each other out of a cache of fewer
/// ways, and would be fetched again for every 16 bytes.
template <class Band, class T>
struct band_of_lines {
  static constexpr index_t wide = 64 / index_t{sizeof(T)}, high = Band::high;

  QTENSOR_INLINE void operator()(const T* from, index_t from_step, T* to, index_t to_step) const {
    alignas(64) T lines[wide * high];
    for (index_t i = 0; i < high; ++i) std::memcpy(lines + i * wide, from + i * from_step, wide * sizeof(T));
#pragma GCC unroll 1
    for (index_t r = 0; r < wide; r += Band::wide) Band{}(lines + r, wide, to + r * to_step, to_step);
  }
};

/// Squares of eight bytes a row, as words on little-endian CPUs.
struct byte_square {
  static constexpr index_t wide = 8, high = 8;
  template <class T>
  QTENSOR_INLINE void operator()(const T* from, index_t from_step, T* to, index_t to_step) const {
    static_assert(sizeof(T) == 1);
    std::uint64_t x[8];
    // Exchanges every second block of a with the one before it of b: blocks of one, two and four bytes.
    const auto swap = [](std::uint64_t& a, std::uint64_t& b, int bits, std::uint64_t mask) QTENSOR_INLINE_LAMBDA {
      const std::uint64_t t = ((a >> bits) ^ b) & mask;
      b ^= t;
      a ^= t << bits;
    };
#pragma GCC unroll 8
    for (index_t i = 0; i < 8; ++i) std::memcpy(&x[i], from + i * from_step, 8);
#pragma GCC unroll 4
    for (index_t i = 0; i < 8; i += 2) swap(x[i], x[i + 1], 8, 0x00ff00ff00ff00ffu);
#pragma GCC unroll 4
    for (index_t i = 0; i < 4; ++i) swap(x[i / 2 * 4 + i % 2], x[i / 2 * 4 + i % 2 + 2], 16, 0x0000ffff0000ffffu);
#pragma GCC unroll 4
    for (index_t i = 0; i < 4; ++i) swap(x[i], x[i + 4], 32, 0x00000000ffffffffu);
#pragma GCC unroll 8
    for (index_t i = 0; i < 8; ++i) std::memcpy(to + i * to_step, &x[i], 8);
  }
};

}  // namespace detail

/// to[r * to_step + c] = from[c * from_step + r] for r < rows and c < cols, of elements of one, two or four bytes.
template <class T>
void transpose(const T* from, index_t from_step, index_t rows, index_t cols, T* to, index_t to_step) {
  const auto by = [&](auto... turns) {
    if constexpr (sizeof(T) == 1 && std::endian::native == std::endian::little)
      detail::transpose_by_parts(from, from_step, rows, cols, to, to_step, turns..., detail::byte_square{});
    else
      detail::transpose_by_parts(from, from_step, rows, cols, to, to_step, turns...);
  };
  constexpr index_t quarters = lanes<best_arch> / 4;
  using narrow = detail::register_band<T, 1>;
  using wide = detail::register_band<T, quarters>;
  if constexpr (quarters == 4 && sizeof(T) < 4)
    by(detail::band_of_lines<wide, T>{}, wide{}, narrow{});
  else if constexpr (quarters > 1)
    by(wide{}, narrow{});
  else
    by(narrow{});
}

/// The same of bytes where `room` >= cols rows may be read, so that few are turned by wide registers, too: rows from
/// cols on may be anything.
inline void transpose_in_room(const std::uint8_t* from, index_t from_step, index_t rows, index_t cols, index_t room,
                              std::uint8_t* to, index_t to_step) {
  if constexpr (lanes<best_arch> == 16) {
    using band = detail::register_band<std::uint8_t, 4>;
    const index_t whole = cols / band::high * band::high;
    if (rows % band::wide == 0 && whole < cols && whole + band::high <= room) {
      for (index_t r = 0; r < rows; r += band::wide)
        band{}.turn_some(from + whole * from_step + r, from_step, cols - whole, to + r * to_step + whole, to_step);
      cols = whole;
    }
  }
  transpose(from, from_step, rows, cols, to, to_step);
}

/// Whether transpose_past_caches takes so many bytes: whole lines, which registers hold.
template <usable_arch A = best_arch>
bool turns_lines(index_t rows, index_t cols, const std::uint8_t* to, index_t to_step) {
  return lanes<A> == 16 && rows % 16 == 0 && cols % 64 == 0 && begins_line(to, to_step);
}
/// What transpose does, of bytes where turns_lines() says so, past the caches: a few rows are written together, as
/// memory likes longer runs. Call stream_fence() afterwards.
template <usable_arch A = best_arch>
void transpose_past_caches(const std::uint8_t* from, index_t from_step, index_t rows, index_t cols, std::uint8_t* to,
                           index_t to_step) {
  if constexpr (lanes<A> == 16) {
    using band = detail::register_band<std::uint8_t, 4, true>;
    for (index_t r = 0; r < rows; r += band::wide)
      for (index_t c = 0; c < cols; c += band::high)
        band{}(from + c * from_step + r, from_step, to + r * to_step + c, to_step);
  }
}

/// x rounded to F (ties to even, overflow to infinity, NaN quieted), as it is stored.
template <number_format F>
constexpr storage_t<F> round_to(float x) {
  if constexpr (std::same_as<F, f32>)
    return x;
  else
    return static_cast<storage_t<F>>(encode<F, to_special>(x));
}

/// to[i] = x[i], saturated, for i < n.
template <class To, usable_arch A = best_arch>
requires(std::integral<To> && sizeof(To) == 1) void narrow_integers(const std::int32_t* x, index_t n, To* to) {
  constexpr index_t step = lanes<A>;
  for (index_t i = 0; i < n; i += 4 * step) {
    const auto batch = [&](index_t k) QTENSOR_INLINE_LAMBDA {
      return simd::load_n<A>(x + i + k * step, std::clamp(n - i - k * step, index_t{0}, step));
    };
    const auto narrow = [](const auto&... v) QTENSOR_INLINE_LAMBDA {
      return std::is_signed_v<To> ? simd::narrow_i8(v...) : simd::narrow_u8(v...);
    };
    simd::store_n(reinterpret_cast<std::uint8_t*>(to) + i, std::min(n - i, 4 * step),
                  narrow(batch(0), batch(1), batch(2), batch(3)));
  }
}

/// to[i] = x[i] rounded to F (ties to even, overflow to infinity, NaN quieted), for i < n.
template <format F, usable_arch A = best_arch>
void narrow_floats(const float* x, index_t n, storage_t<F>* to) {
  constexpr index_t step = 2 * lanes<A>;
  if constexpr (std::same_as<F, f32>) {
    std::copy_n(x, n, to);
  } else {
    const auto narrow = [](const floats<A>& a, const floats<A>& b) QTENSOR_INLINE_LAMBDA {
      if constexpr (std::same_as<F, bf16>)
        return simd::narrow_bf16(a, b);
      else
        return simd::narrow_f16(a, b);
    };
    index_t i = 0;
    for (; i + step <= n; i += step) simd::store(to + i, narrow(simd::load<A>(x + i), simd::load<A>(x + i + lanes<A>)));
    if (i < n) {
      const index_t left = n - i, first = std::min(left, lanes<A>);
      simd::store_n(to + i, left, narrow(simd::load_n<A>(x + i, first), simd::load_n<A>(x + i + first, left - first)));
    }
  }
}

namespace detail {

/// What is known of the numbers of a run: nothing, that narrow_bf16_plain takes them, that none of these is halfway
/// between two bf16 numbers either, or that they are bf16 numbers.
enum class numbers_are { any, plain, untied, bf16 };

/// Two batches of numbers rounded to 16 bits.
template <number_format F, numbers_are Known, class A>
QTENSOR_INLINE halves<A> narrow_pair(const floats<A>& a, const floats<A>& b) {
  if constexpr (std::same_as<F, f16>)
    return simd::narrow_f16(a, b);
  else if constexpr (Known == numbers_are::bf16)
    return simd::upper_halves(simd::bits_as<std::uint32_t>(a), simd::bits_as<std::uint32_t>(b));
  else if constexpr (Known != numbers_are::any)
    return simd::narrow_bf16_plain(a, b);
  else
    return simd::narrow_bf16(a, b);
}

/// Four batches of numbers to memory, rounded to F; past the caches where `to` begins a line.
template <number_format F, numbers_are Known, class A>
QTENSOR_INLINE void store_four(storage_t<F>* to, const std::array<floats<A>, 4>& v, bool past_caches = false) {
  if constexpr (std::same_as<F, f32>) {
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) simd::put(to + k * lanes<A>, v[k], past_caches);
  } else {
#pragma GCC unroll 2
    for (int k = 0; k < 4; k += 2) simd::put(to + k * lanes<A>, narrow_pair<F, Known, A>(v[k], v[k + 1]), past_caches);
  }
}

}  // namespace detail

/// to[i] = entries[(first + i) / group] for i < n: an entry of a group for each of its elements. Up to a batch behind
/// to[n] is written, too.
template <usable_arch A, class T>
void spread_entries(const T* entries, index_t group, index_t first, index_t n, T* to) {
  const T* entry = entries + first / group;
  if (group <= lanes<A>) {  // one store each: the next one covers what is too much
    for (index_t begin = -(first % group); begin < n; begin += group)
      simd::store(to + std::max(begin, index_t{0}), xsimd::batch<T, A>(*entry++));
    return;
  }
  for (index_t begin = 0, end = group - first % group; begin < n; begin = end, end += group, ++entry)
    for (index_t i = begin; i < std::min(end, n); i += lanes<A>) simd::store(to + i, xsimd::batch<T, A>(*entry));
}

/// Copies a few bytes, which do not overlap theirs: without a call.
template <usable_arch A = best_arch>
QTENSOR_INLINE void copy_bytes(const void* from, index_t n, void* to) {
  const auto* x = static_cast<const std::uint8_t*>(from);
  auto* y = static_cast<std::uint8_t*>(to);
  // The last step begins early: what it shares with the one before it is written twice.
  const auto by = [&]<index_t Step>(std::integral_constant<index_t, Step>) QTENSOR_INLINE_LAMBDA {
    for (index_t i = 0; i < n - Step; i += Step) std::memcpy(y + i, x + i, Step);
    std::memcpy(y + n - Step, x + n - Step, Step);
  };
  if (n >= 4 * lanes<A>)
    by(std::integral_constant<index_t, 4 * lanes<A>>{});
  else if (n >= 8)
    by(std::integral_constant<index_t, 8>{});
  else if (n >= 4)
    by(std::integral_constant<index_t, 4>{});
  else
    for (index_t i = 0; i < n; ++i) y[i] = x[i];
}
/// Copies n elements of each of some rows, `from_step` and `to_step` elements apart.
template <class T>
void copy_rows(const T* from, index_t from_step, index_t rows, index_t n, T* to, index_t to_step) {
  for (index_t r = 0; r < rows; ++r) copy_bytes(from + r * from_step, n * index_t{sizeof(T)}, to + r * to_step);
}

/// A line of up to Rows rows each, kept, for rows at a power of two push each other out of a cache of fewer ways; then
/// 16 bytes of each at a time are turned. Registers hold a line: quarters of four of them have changed places by then,
/// so that a register has the same 16 bytes of each.
template <index_t Rows>
class kept_lines {
  static constexpr index_t line = cache_line, part = 16, quarters = std::max(lanes<best_arch> / 4, index_t{1});
  using band = detail::register_band<std::uint8_t, quarters>;
  static constexpr bool exchanges = quarters == 4;

 public:
  /// n <= 64 bytes each of some rows, `step` bytes apart.
  void keep(const std::uint8_t* from, index_t step, index_t rows, index_t n) {
    exchanged_ = exchanges && n == line ? rows / band::high * band::high : 0;
    if constexpr (exchanges)
      for (index_t r = 0; r < exchanged_; r += band::high)
        for (index_t i = 0; i < part; ++i)
          exchange_quarters(from + (r + i) * step, part * step, lines_ + r * line + i * line);
    if (n == part)
      for (index_t r = 0; r < rows; ++r) std::memcpy(lines_ + r * line, from + r * step, part);
    else
      copy_rows(from + exchanged_ * step, step, rows - exchanged_, n, lines_ + exchanged_ * line, line);
  }
  /// Of the rows, n <= 16 bytes from `begin` on, a multiple of 16: byte c of row r to to[c * ToStep + r].
  template <index_t ToStep>
  QTENSOR_INLINE void turn(index_t begin, index_t rows, index_t n, std::uint8_t* to) const {
    if constexpr (exchanges)
      for (index_t r = 0; r < exchanged_; r += band::high)
        band::turn_lines(lines_ + (r + begin) * line, to + r, ToStep);
    const index_t whole = n == part ? rows / band::high * band::high : exchanged_;
    index_t r = exchanged_;
    for (; r < whole; r += band::high) band{}(lines_ + r * line + begin, line, to + r, ToStep);
    if (r < rows) transpose(lines_ + r * line + begin, line, n, rows - r, to + r, ToStep);
  }

 private:
  /// Quarter q of four lines goes to line `part * q` from `to` on.
  static QTENSOR_INLINE void exchange_quarters(const std::uint8_t* from, index_t step, std::uint8_t* to) {
    using words [[gnu::vector_size(line)]] = std::uint64_t;
    words x[4], y[4];
#pragma GCC unroll 4
    for (index_t k = 0; k < 4; ++k) std::memcpy(&x[k], from + k * step, line);
#pragma GCC unroll 2
    for (index_t k = 0; k < 4; k += 2) {
      y[k] = __builtin_shufflevector(x[k], x[k + 1], 0, 1, 2, 3, 8, 9, 10, 11);
      y[k + 1] = __builtin_shufflevector(x[k], x[k + 1], 4, 5, 6, 7, 12, 13, 14, 15);
    }
#pragma GCC unroll 2
    for (index_t k = 0; k < 2; ++k) {
      x[2 * k] = __builtin_shufflevector(y[k], y[k + 2], 0, 1, 4, 5, 8, 9, 12, 13);
      x[2 * k + 1] = __builtin_shufflevector(y[k], y[k + 2], 2, 3, 6, 7, 10, 11, 14, 15);
    }
#pragma GCC unroll 4
    for (index_t q = 0; q < 4; ++q) std::memcpy(to + q * part * line, &x[q], line);
  }

  alignas(64) std::uint8_t lines_[Rows * line];
  index_t exchanged_ = 0;  // rows whose quarters changed places
};

/// Copies bytes past the caches where the CPU can; what shares a cache line with others goes the usual way. Call
/// stream_fence<A>() after the last one.
template <usable_arch A = best_arch>
void stream_bytes(const void* from, index_t n, void* to) {
  constexpr index_t step = 4 * lanes<A>, line = cache_line;
  if (n == 0) return;  // from and to may be null
  const auto* x = static_cast<const std::uint8_t*>(from);
  auto* y = static_cast<std::uint8_t*>(to);
  const index_t head = std::min(n, static_cast<index_t>(-reinterpret_cast<std::uintptr_t>(y) % line));
  std::memcpy(y, x, static_cast<std::size_t>(head));
  const index_t whole = head + (n - head) / line * line;
  for (index_t i = head; i < whole; i += step) simd::stream(y + i, simd::load<A>(x + i));
  std::memcpy(y + whole, x + whole, static_cast<std::size_t>(n - whole));
}

/// Bytes that follow each other, past the caches wherever they begin: gathered until they fill lines, at most Most and
/// less than a line of them. What shares its first and its last line with others goes the usual way. Call finish() in
/// the end, and stream_fence<A>() after the last one.
template <index_t Most, usable_arch A = best_arch>
class line_writer {
  static constexpr index_t line = cache_line, step = 4 * lanes<A>;

 public:
  explicit line_writer(std::uint8_t* to)
      : begin_(static_cast<index_t>(reinterpret_cast<std::uintptr_t>(to) % line)), end_(begin_), to_(to) {}
  line_writer(const line_writer&) = delete;
  line_writer& operator=(const line_writer&) = delete;

  /// Where the next bytes go, Most at once.
  std::uint8_t* room() { return kept_ + end_; }
  /// So many have been written there.
  void add(index_t n) {
    end_ += n;
    const index_t whole = end_ / line * line;
    if (whole == 0) return;
    index_t done = begin_;
    if (begin_ > 0) store(std::exchange(done, line), line - begin_);
    for (; done < whole; done += step) simd::stream(to_ + (done - begin_), simd::load<A>(kept_ + done));
    to_ += whole - begin_, begin_ = 0, end_ -= whole;
    std::memcpy(kept_, kept_ + whole, line);
  }
  void finish() { store(begin_, end_ - begin_); }

 private:
  void store(index_t at, index_t n) { std::memcpy(to_ + (at - begin_), kept_ + at, static_cast<std::size_t>(n)); }

  alignas(64) std::uint8_t kept_[static_cast<std::size_t>(Most + 2 * line)];
  index_t begin_, end_;  // what is kept, from the beginning of a line on
  std::uint8_t* to_;     // where the first byte of it goes
};

}  // namespace qtensor::inline QTENSOR_ABI::simd
