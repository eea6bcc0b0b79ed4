// The roof: a loop that moves the bytes of an operation with no arithmetic but OR and XOR, and memcpy of as many. Where
// there are many, another with non-temporal stores; the faster of the two is the roof.
// SPDX-License-Identifier: BSD-3-Clause
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cmath>
#include <cstring>

#include "harness.hpp"

namespace bench {

namespace {

#if defined(__AVX512F__)
constexpr index_t line_bytes = 64;
#elif defined(__AVX__)
constexpr index_t line_bytes = 32;
#else
constexpr index_t line_bytes = 16;
#endif

// Vectors of the compiler, so that | and ^ are written as such.
typedef long long words __attribute__((vector_size(line_bytes), aligned(1), may_alias));
words load(const std::uint8_t* from) { return *reinterpret_cast<const words*>(from); }
template <bool Streams>
void store(std::uint8_t* to, words v) {
#if defined(__AVX512F__)
  if constexpr (Streams) return _mm512_stream_si512(reinterpret_cast<__m512i*>(to), reinterpret_cast<__m512i>(v));
#elif defined(__AVX__)
  if constexpr (Streams) return _mm256_stream_si256(reinterpret_cast<__m256i*>(to), reinterpret_cast<__m256i>(v));
#elif defined(__x86_64__)
  if constexpr (Streams) return _mm_stream_si128(reinterpret_cast<__m128i*>(to), reinterpret_cast<__m128i>(v));
#endif
  *reinterpret_cast<words*>(to) = v;
}

struct moved {
  const std::uint8_t* from;
  std::uint8_t* to;
  index_t steps;
};

/// A step reads In lines and writes Out lines.
template <int In, int Out, bool Streams>
__attribute__((noinline)) void move(const moved& m) {
  constexpr index_t unroll = In + Out <= 5 ? 4 : 2;
  const words one = words{} + 1;
  const std::uint8_t* from = m.from;
  std::uint8_t* to = m.to;
  for (index_t i = 0; i + unroll <= m.steps; i += unroll) {
#pragma GCC unroll 4
    for (index_t u = 0; u < unroll; ++u) {
      words v = load(from);
#pragma GCC unroll 16
      for (int k = 1; k < In; ++k) v |= load(from + k * line_bytes);
#pragma GCC unroll 16
      for (int k = 0; k < Out; ++k) {
        store<Streams>(to + k * line_bytes, v);
        if (k + 1 < Out) v ^= one;
      }
      from += In * line_bytes;
      to += Out * line_bytes;
    }
  }
#if defined(__x86_64__)
  if (Streams) _mm_sfence();
#endif
}

/// Reads and keeps nothing.
__attribute__((noinline)) void read(const std::uint8_t* from, index_t bytes) {
  words a{}, b{}, c{}, d{};
  for (index_t i = 0; i + 4 * line_bytes <= bytes; i += 4 * line_bytes) {
    a |= load(from + i);
    b |= load(from + i + line_bytes);
    c |= load(from + i + 2 * line_bytes);
    d |= load(from + i + 3 * line_bytes);
  }
  a |= b | c | d;
  asm volatile("" ::"m"(a));
}

struct ratio {
  int in, out;
  void (*cached)(const moved&);
  void (*streams)(const moved&);
};
template <int In, int Out>
constexpr ratio moves{In, Out, move<In, Out, false>, move<In, Out, true>};
constexpr ratio ratios[] = {moves<8, 1>,  moves<4, 1>, moves<2, 1>, moves<1, 1>, moves<1, 2>, moves<1, 4>, moves<1, 8>,
                            moves<16, 3>, moves<8, 3>, moves<4, 3>, moves<3, 4>, moves<3, 8>, moves<3, 16>};

const ratio& nearest(double wanted) {
  const ratio* best = ratios;
  const auto distance = [&](const ratio& r) { return std::fabs(std::log(wanted * r.out / r.in)); };
  for (const ratio& r : ratios)
    if (distance(r) < distance(*best)) best = &r;
  return *best;
}

/// From so many bytes on stores go past the caches in one of two loops: which is faster depends on how much of the
/// last-level cache a machine that is shared lets one have, which no system says.
constexpr double streamed_bytes = 1 << 24;

}  // namespace

void add_roof(const task& t, candidates& all) {
  const operation& op = *t.op;
  const double in = op.source_bytes(), out = op.target_bytes(), n = static_cast<double>(t.size());
  const ratio& r = nearest(in / out);
  const void* numbers = op.what == verb::pack || op.what == verb::unpack ? t.numbers
                        : op.number == "f32"                             ? static_cast<const void*>(t.floats)
                                                                         : t.halves;
  const auto* from = static_cast<const std::uint8_t*>(op.writes_numbers() ? t.codes : numbers);
  auto* to = op.writes_numbers() ? static_cast<std::uint8_t*>(t.numbers) : t.codes;
  const auto bytes = [](index_t steps, int lines) { return steps * lines * line_bytes; };
  const index_t steps =
      static_cast<index_t>(n * (in + out) / static_cast<double>((r.in + r.out) * line_bytes)) & ~index_t{3};
  const auto share = [=](int part) { return (steps * part / t.threads) & ~index_t{3}; };
  const index_t other = static_cast<index_t>(n * op.other_bytes) / t.threads;
  const auto run = [=, reads = op.reads](int part, bool streams) {
    const index_t first = share(part), count = share(part + 1) - first;
    const moved m{from + bytes(first, r.in), to + bytes(first, r.out), count};
    for (int again = 1; again < reads; ++again) read(m.from, bytes(count, r.in));
    for (int pass = 0; other > 0 && pass < reads; ++pass) read(t.scratch + other * part, other);
    (streams ? r.streams : r.cached)(m);
  };
  const auto over_team = [threads = t.threads](auto part) -> std::function<void()> {
    if (threads == 1) return [part] { part(0); };
    return [part, threads] { team::instance().run(threads, part); };
  };
  all.push_back({kind::roof, "roof", "", over_team([=](int part) { run(part, false); })});
  if (n * (in + out) >= streamed_bytes)
    all.push_back(
        {kind::roof, "roof past caches", "non-temporal stores", over_team([=](int part) { run(part, true); })});
  const index_t half = static_cast<index_t>(n * op.bytes() / 2) / t.threads, room = 5 * t.size() / t.threads;
  all.push_back({kind::copy, "memcpy", "", over_team([=](int part) {
                   const auto* source = reinterpret_cast<const std::uint8_t*>(t.floats) + part * room;
                   for (index_t done = 0; done < half; done += room)
                     std::memcpy(t.scratch + part * room, source,
                                 static_cast<std::size_t>(std::min(room, half - done)));
                 })});
}

}  // namespace bench
