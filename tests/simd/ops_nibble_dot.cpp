// Mirrors include/qtensor/simd/ops_nibble_dot.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/simd/ops_nibble_dot.hpp>
#include <vector>

#include "check.hpp"

namespace simd = qtensor::simd;
using qtensor::index_t;

namespace {

template <class A>
std::vector<std::int32_t> lanes_of(const simd::ints<A>& v) {
  std::vector<std::int32_t> lane(static_cast<std::size_t>(simd::lanes<A>));
  simd::store(lane.data(), v);
  return lane;
}

/// Dots of N quads whose weights nibble(byte) gives, from codes(c) of the architecture, against the same in plain C++.
template <class A, std::size_t N, class Codes, class Weight>
void check_dot(const std::vector<std::uint8_t>& bytes, const std::vector<std::int8_t>& x, Codes codes, Weight weight) {
  using dot = simd::nibble_dot<A>;
  constexpr std::size_t step = 4 * simd::lanes<A>;
  typename dot::codes w[N];
  typename dot::row row[N];
  for (std::size_t q = 0; q < N; ++q) {
    w[q] = codes(dot::load(bytes.data() + q * step));
    row[q] = dot::broadcast(x.data() + 4 * q);
  }
  const auto found = lanes_of<A>(dot::dot(simd::ints<A>(-12345), w, row));
  for (std::size_t i = 0; i < found.size(); ++i) {
    std::int32_t want = -12345;
    for (std::size_t q = 0; q < N; ++q)
      for (std::size_t k = 0; k < 4; ++k) want += weight(bytes[q * step + 4 * i + k]) * x[4 * q + k];
    REQUIRE(found[i] == want);
  }
}

template <class A, std::size_t N>
void check_all_weights(const std::vector<std::uint8_t>& bytes, const std::vector<std::int8_t>& x) {
  using dot = simd::nibble_dot<A>;
  check_dot<A, N>(
      bytes, x, [](const auto& c) { return dot::low(c); }, [](int b) { return b & 15; });
  check_dot<A, N>(
      bytes, x, [](const auto& c) { return dot::high(c); }, [](int b) { return b >> 4; });
  std::uint8_t entries[16];
  for (auto& e : entries)
    e = static_cast<std::uint8_t>(check::random_below(static_cast<std::uint32_t>(dot::largest(N)) + 1));
  entries[15] = static_cast<std::uint8_t>(dot::largest(N));
  const auto table = dot::table_of(entries);
  check_dot<A, N>(
      bytes, x, [&](const auto& c) { return dot::low(c, table); }, [&](int b) { return entries[b & 15]; });
  check_dot<A, N>(
      bytes, x, [&](const auto& c) { return dot::high(c, table); }, [&](int b) { return entries[b >> 4]; });
  if constexpr (dot::takes_bytes) {
    check_dot<A, N>(
        bytes, x, [](const auto& c) { return c; }, [](int b) { return b; });
    check_dot<A, N>(
        bytes, x, [](const auto& c) { return dot::flipped(c); }, [](int b) { return b ^ 0x80; });
  }
}

}  // namespace

TEST_CASE("nibble_dot: exact for all weights and signed bytes, one quad and several at once") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    constexpr std::size_t quads = 4, bytes = quads * 4 * simd::lanes<A>;
    for (int round = 0; round < 50; ++round) {
      auto codes = check::random_codes<std::uint8_t>(bytes);
      auto x = check::random_codes<std::int8_t>(4 * quads);
      if (round < 4) {
        for (auto& c : codes) c = round % 2 == 0 ? 0xff : 0;
        for (auto& v : x) v = round / 2 == 0 ? -128 : 127;
      }
      check_all_weights<A, 1>(codes, x);
      if constexpr (simd::nibble_dot<A>::quads_at_once == 4) check_all_weights<A, 4>(codes, x);
    }
  });
}
TEST_CASE("nibble_dot: sums of quads of signed bytes") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    check::fenced<std::int8_t> x(4 * simd::lanes<A>);
    for (int round = 0; round < 20; ++round) {
      for (index_t i = 0; i < x.size(); ++i)
        x[i] = round == 0 ? std::int8_t{-128} : static_cast<std::int8_t>(check::random_bits()());
      const auto found = lanes_of<A>(simd::nibble_dot<A>::quad_sums(x.data()));
      for (index_t i = 0; i < simd::lanes<A>; ++i)
        REQUIRE(found[static_cast<std::size_t>(i)] == x[4 * i] + x[4 * i + 1] + x[4 * i + 2] + x[4 * i + 3]);
    }
  });
}
TEST_CASE("multiply_add: every small factor, and large ones to the edge") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    for (std::int32_t small = -255; small <= 255; ++small)
      for (std::int32_t large : {-4194304, -4194303, -129, -128, -127, -1, 0, 1, 127, 128, 4194303, 12345, -54321}) {
        const auto found =
            lanes_of<A>(simd::multiply_add(simd::ints<A>(77), simd::ints<A>(simd::small_factor<A>(small)),
                                           simd::ints<A>(simd::large_factor<A>(large))));
        for (const std::int32_t v : found) REQUIRE(v == 77 + small * large);
      }
  });
}
TEST_CASE("large_factors: sums less zero points times their count, one zero point or many") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    constexpr index_t count = 67;
    check::fenced<std::int32_t> from(count), to(count), wide(count);
    check::fenced<std::int8_t> zeros(count);
    for (index_t i = 0; i < count; ++i) {
      from[i] = static_cast<std::int32_t>(check::random_below(4000000)) - 2000000;
      zeros[i] = static_cast<std::int8_t>(check::random_bits()());
      wide[i] = zeros[i];
    }
    const auto give = [&](const auto& want) {
      for (index_t i = 0; i < count; ++i) REQUIRE(to[i] == simd::large_factor<A>(want(i)));
    };
    simd::large_factors<A>(from.data(), count, 777, to.data());
    give([&](index_t i) { return from[i] + 777; });
    simd::large_factors<A>(from.data(), count, 128, zeros.data(), to.data());
    give([&](index_t i) { return from[i] - 128 * zeros[i]; });
    std::fill_n(to.data(), count, 0);
    simd::large_factors<A>(from.data(), count, 128, wide.data(), to.data());
    give([&](index_t i) { return from[i] - 128 * zeros[i]; });
  });
}
