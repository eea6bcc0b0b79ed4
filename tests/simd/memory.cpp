// Mirrors include/qtensor/simd/memory.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <limits>
#include <numeric>
#include <qtensor/reference/codec.hpp>
#include <qtensor/simd/memory.hpp>
#include <vector>

#include "check.hpp"

using namespace qtensor;

namespace {

template <class F>
std::uint32_t code(storage_t<F> unit) {
  if constexpr (std::is_same_v<F, f32>)
    return bits_of(unit);
  else
    return unit;
}

}  // namespace

TEST_CASE("widen_floats: every number of 16 bits, every length") {
  const auto check = []<class F>(std::type_identity<F>) {
    constexpr index_t count = 65536;
    check::fenced<std::uint16_t> from(count);
    check::fenced<float> out(count);
    for (index_t i = 0; i < count; ++i) from[i] = static_cast<std::uint16_t>(i);
    for (index_t n = 0; n < 80; ++n) simd::widen_floats<F>(from.data() + count - n, n, out.data() + count - n);
    simd::widen_floats<F>(from.data(), count, out.data());
    bool ok = true;
    for (index_t i = 0; i < count; ++i) {
      const float expected = decode<F>(static_cast<std::uint32_t>(i));
      ok = ok && (bits_of(out[i]) == bits_of(expected) || (is_nan(out[i]) && is_nan(expected)));
    }
    CHECK(ok);
  };
  check(std::type_identity<bf16>{});
  check(std::type_identity<f16>{});
}

TEST_CASE("narrow_floats: hard numbers, subnormals and NaN among them, every length") {
  const auto check = []<class F>(std::type_identity<F>) {
    bool ok = true;
    for (int repeat = 0; repeat < 200; ++repeat)
      for (index_t n = 0; n < 80; n += repeat % 3 + 1) {
        check::fenced<float> x(n);
        check::fenced<storage_t<F>> out(n);
        for (index_t i = 0; i < n; ++i) {
          x[i] = check::hard_float();
          if (repeat % 2 == 0 && !(magnitude(x[i]) >= 0x1p-126f)) x[i] = 1.f;  // the path without subnormals
        }
        simd::narrow_floats<F>(x.data(), n, out.data());
        for (index_t i = 0; i < n; ++i) ok = ok && code<F>(out[i]) == (encode<F, nearest_even, to_special>(x[i]));
      }
    CHECK(ok);
  };
  check(std::type_identity<bf16>{});
  check(std::type_identity<f16>{});
}

TEST_CASE("narrow_integers: saturated, every length, nothing outside") {
  const auto check = []<class To>(std::type_identity<To>) {
    bool ok = true;
    for (index_t n = 0; n < 150; ++n) {
      check::fenced<std::int32_t> x(n);
      check::fenced<To> out(n);
      for (index_t i = 0; i < n; ++i) x[i] = static_cast<std::int32_t>((i * 37 + n) % 600 - 300);
      if (n > 3)
        x[n - 1] = std::numeric_limits<std::int32_t>::max(), x[n - 2] = std::numeric_limits<std::int32_t>::min();
      simd::narrow_integers(x.data(), n, out.data());
      for (index_t i = 0; i < n; ++i)
        ok = ok &&
             out[i] == std::clamp<std::int32_t>(x[i], std::numeric_limits<To>::min(), std::numeric_limits<To>::max());
    }
    CHECK(ok);
  };
  check(std::type_identity<std::int8_t>{});
  check(std::type_identity<std::uint8_t>{});
}

TEST_CASE("stream_bytes: every length and alignment, nothing outside") {
  bool ok = true;
  for (index_t n = 0; n < 300; ++n)
    for (index_t shift = 0; shift < 70; shift += 7) {
      std::vector<std::uint8_t> from(static_cast<std::size_t>(n)), to(static_cast<std::size_t>(n + 140), 0xcc);
      for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::uint8_t>(i * 7 + 1);
      simd::stream_bytes(from.data(), n, to.data() + shift);
      simd::stream_fence<simd::best_arch>();
      for (index_t i = 0; i < static_cast<index_t>(to.size()); ++i) {
        const bool inside = i >= shift && i < shift + n;
        ok = ok && to[static_cast<std::size_t>(i)] == (inside ? from[static_cast<std::size_t>(i - shift)] : 0xcc);
      }
    }
  CHECK(ok);
}

TEST_CASE("line_writer: pieces of every size from every place, nothing outside") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    constexpr index_t most = 100;
    bool ok = true;
    for (index_t n = 0; n < 400; n += n < 140 ? 1 : 37)
      for (index_t shift = 0; shift < 64; ++shift) {
        std::vector<std::uint8_t> from(static_cast<std::size_t>(n)), to(static_cast<std::size_t>(n + 140), 0xcc);
        for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::uint8_t>(i * 7 + 1);
        simd::line_writer<most, A> writer(to.data() + shift);
        for (index_t at = 0, some; at < n; at += some) {
          some = std::min<index_t>(check::random_below(most + 1), n - at);
          std::copy_n(from.data() + at, some, writer.room());
          writer.add(some);
        }
        writer.finish();
        simd::stream_fence<A>();
        for (index_t i = 0; i < static_cast<index_t>(to.size()); ++i) {
          const bool inside = i >= shift && i < shift + n;
          ok = ok && to[static_cast<std::size_t>(i)] == (inside ? from[static_cast<std::size_t>(i - shift)] : 0xcc);
        }
      }
    CHECK(ok);
  });
}

TEST_CASE("transpose: elements of one, two and four bytes, every size, nothing outside") {
  const auto check = []<class T>(T) {
    bool ok = true;
    std::vector<index_t> sizes(44);
    std::iota(sizes.begin(), sizes.end(), index_t{0});
    sizes.insert(sizes.end(), {63, 64, 65, 81, 128, 135});
    for (const index_t rows : sizes)
      for (const index_t cols : sizes) {
        check::fenced<T> from(cols * rows), to(rows * cols);
        for (index_t i = 0; i < from.size(); ++i) from[i] = static_cast<T>(check::random_bits()() >> 8);
        simd::transpose(static_cast<const T*>(from.data()), rows, rows, cols, to.data(), cols);
        for (index_t r = 0; r < rows; ++r)
          for (index_t c = 0; c < cols; ++c) ok = ok && to[r * cols + c] == from[c * rows + r];
      }
    CHECK(ok);
  };
  check(std::uint8_t{});
  check(std::int8_t{});
  check(std::uint16_t{});
  check(float{});
}

TEST_CASE("transpose_in_room: rows behind the last may be read, and go nowhere; nothing outside of the room") {
  bool ok = true;
  for (const index_t rows : {1, 15, 16, 32, 50, 64})
    for (index_t cols = 0; cols <= 130; ++cols)
      for (const index_t room : {cols, cols + 3, (cols + 63) / 64 * 64}) {
        constexpr index_t gap = 3;
        check::fenced<std::uint8_t> from(room * rows), to(rows * (cols + gap) - (rows > 0 ? gap : 0));
        for (index_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::uint8_t>(check::random_bits()() >> 8);
        std::fill_n(to.data(), to.size(), std::uint8_t{0xcc});
        simd::transpose_in_room(from.data(), rows, rows, cols, room, to.data(), cols + gap);
        for (index_t i = 0; i < to.size(); ++i) {
          const index_t r = i / (cols + gap), c = i % (cols + gap);
          ok = ok && to[i] == (c < cols ? from[c * rows + r] : 0xcc);
        }
      }
  CHECK(ok);
}

TEST_CASE("kept_lines: 16 bytes of each row at a time, every length of rows, nothing outside") {
  constexpr index_t most = 128, part = 16, apart = most + 64;
  bool ok = true;
  for (const index_t rows : {1, 15, 16, 63, 64, 65, 100, 128})
    for (const index_t n : {1, 16, 21, 63, 64}) {
      check::fenced<std::uint8_t> from((rows - 1) * (n + 3) + n);
      for (index_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::uint8_t>(check::random_bits()() >> 8);
      simd::kept_lines<most> kept;
      kept.keep(from.data(), n + 3, rows, n);
      for (index_t begin = 0; begin < n; begin += part) {
        std::array<std::uint8_t, static_cast<std::size_t>(part * apart)> to{};
        const index_t count = std::min(part, n - begin);
        kept.turn<apart>(begin, rows, count, to.data());
        for (index_t c = 0; c < part; ++c)
          for (index_t r = 0; r < apart; ++r) {
            const int expected = c < count && r < rows ? from[r * (n + 3) + begin + c] : 0;
            ok = ok && to[static_cast<std::size_t>(c * apart + r)] == expected;
          }
      }
    }
  CHECK(ok);
}

TEST_CASE("run_requests: one run after the other, so much at a time") {
  const std::vector<std::uint8_t> memory(4096);
  simd::run_requests all{memory.data(), 1000, 256, 128};
  const auto place = [&] { return all.next + all.asked - memory.data(); };  // behind what was asked for
  all.ask();
  CHECK(place() == 128);
  all.ask();
  CHECK(place() == 256);
  all.ask();
  CHECK(place() == 1000 + 128);
  simd::run_requests parts{memory.data(), 1000, 96, 32};  // of lines
  for (int i = 0; i < 4; ++i) parts.ask();
  CHECK(parts.next + parts.asked == memory.data() + 1000 + 32);
  simd::run_requests nothing{memory.data(), 1000, 256, 0};
  nothing.ask();
  CHECK((nothing.next == memory.data() && nothing.asked == 0));
}

TEST_CASE("transpose_past_caches: whole lines, nothing outside; what are none is refused") {
  constexpr index_t line = 64;
  bool ok = true, takes = false;
  for (const index_t rows : {16, 48, 80})
    for (const index_t cols : {64, 128, 320})
      for (const index_t gap : {0, 64}) {
        check::fenced<std::uint8_t> from(cols * (rows + 3));
        std::vector<std::uint8_t> memory(static_cast<std::size_t>((rows + 2) * (cols + gap) + line), 0xcc);
        auto* to = memory.data() + line - reinterpret_cast<std::uintptr_t>(memory.data()) % line;
        for (index_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::uint8_t>(check::random_bits()() >> 8);
        CHECK(!simd::turns_lines(rows, cols, to + 1, cols + gap));
        CHECK(!simd::turns_lines(rows, cols, to, cols + gap + 1));
        CHECK(!simd::turns_lines(rows, cols - 1, to, cols + gap));
        CHECK(!simd::turns_lines(rows + 1, cols, to, cols + gap));
        if (!simd::turns_lines(rows, cols, to, cols + gap)) continue;
        takes = true;
        simd::transpose_past_caches(from.data(), rows + 3, rows, cols, to, cols + gap);
        simd::stream_fence<simd::best_arch>();
        const auto at = [&](index_t r, index_t c) { return to[r * (cols + gap) + c]; };
        for (index_t r = 0; r < rows; ++r)
          for (index_t c = 0; c < cols + gap; ++c) ok = ok && at(r, c) == (c < cols ? from[c * (rows + 3) + r] : 0xcc);
        ok = ok && at(rows, 0) == 0xcc && to[-1] == 0xcc;
      }
  CHECK(ok);
  CHECK(takes == (simd::lanes<simd::best_arch> == 16));
}

TEST_CASE("number: an element of a source as a float") {
  CHECK(simd::number<simd::from_f32>(-0.5f) == -0.5f);
  CHECK(simd::number<simd::from_bf16>(0xbf40) == -0.75f);
  CHECK(simd::number<simd::from_f16>(0x3a00) == 0.75f);
  static_assert(std::is_same_v<simd::format_of<simd::source_of<qtensor::f16>>, qtensor::f16>);
}

namespace {

/// Lines that steps of `Bytes` bytes through one window ask for, counted from the window's beginning.
template <index_t Bytes>
void check_window() {
  constexpr index_t line = 64, window = 8 * 4096;
  std::vector<int> asked(static_cast<std::size_t>(window / line));
  const auto* const begin = reinterpret_cast<const std::uint8_t*>(std::uintptr_t{5} * window);
  for (index_t at = 0; at < window; at += Bytes) {
    for (const index_t inside : {index_t{0}, Bytes - 1}) {
      const auto* to = static_cast<const std::uint8_t*>(simd::in_pages_ahead<Bytes>(begin + at + inside));
      const index_t ahead = to - begin - 2 * window;
      REQUIRE(ahead >= 0);
      REQUIRE(ahead + Bytes <= window);
      REQUIRE(ahead / 4096 == at / Bytes % 8);
      if (inside == 0)
        for (index_t i = 0; i < Bytes; i += line) ++asked[static_cast<std::size_t>((ahead + i) / line)];
    }
  }
  REQUIRE(std::ranges::all_of(asked, [](int n) { return n == 1; }));
}

}  // namespace

TEST_CASE("in_pages_ahead: every line of a window once, from eight pages in turn, wherever in a step") {
  check_window<64>();
  check_window<128>();
  check_window<256>();
  check_window<512>();
}
