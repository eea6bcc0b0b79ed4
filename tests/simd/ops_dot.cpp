// Mirrors include/qtensor/simd/ops_dot.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <qtensor/simd/ops_dot.hpp>
#include <vector>

#include "check.hpp"

namespace simd = qtensor::simd;
using qtensor::index_t;

namespace {

std::int8_t signed_code() {
  const std::uint32_t bits = check::random_bits()();
  return static_cast<std::int8_t>(bits % 5 == 0 ? (bits & 64 ? -128 : 127) : bits >> 8);
}

template <class A>
void check_packing() {
  using dot = simd::quad_dot<A>;
  using unit = typename dot::unit;
  for (index_t n = 0; n <= 150; ++n)
    for (const auto sign : {simd::code_sign::is_signed, simd::code_sign::is_unsigned}) {
      check::fenced<std::uint8_t> from(n);
      std::int32_t sum = 0;
      std::vector<std::int32_t> codes(static_cast<std::size_t>(n + 3) / 4 * 4);
      for (index_t k = 0; k < n; ++k) {
        codes[static_cast<std::size_t>(k)] = signed_code();
        sum += codes[static_cast<std::size_t>(k)];
        from[k] = static_cast<std::uint8_t>(codes[static_cast<std::size_t>(k)] ^ static_cast<std::uint8_t>(sign));
      }
      check::fenced<unit> to(static_cast<index_t>(codes.size()));
      REQUIRE(simd::pack_units<A>(from.data(), n, sign, to.data()) == sum);
      // What a quad of units means is told by the dot product itself: with one weight of 1 it picks one of them.
      for (index_t k = 0; k < to.size(); ++k) {
        alignas(64) std::int8_t weights[4 * simd::lanes<A>] = {};
        weights[k % 4] = 1;
        const auto picked = dot::dot(simd::ints<A>(0), dot::load(weights), dot::broadcast(to.data() + k / 4 * 4));
        std::int32_t lane[simd::lanes<A>];
        simd::store(lane, picked);
        REQUIRE(lane[0] == codes[static_cast<std::size_t>(k)] + dot::unit_offset);
        REQUIRE(std::all_of(lane + 1, lane + simd::lanes<A>, [](std::int32_t v) { return v == 0; }));
      }
    }
}

template <class A>
void check_dots() {
  using dot = simd::quad_dot<A>;
  using along = simd::line_dot<A>;
  constexpr index_t lanes = simd::lanes<A>;
  for (int round = 0; round < 300; ++round) {
    std::int8_t w[4 * lanes], x[4];
    std::uint8_t x_codes[4];
    std::int32_t start[lanes], got[lanes];
    for (auto& v : w) v = round == 0 ? -128 : signed_code();
    for (int i = 0; i < 4; ++i) x[i] = round == 0 ? -128 : signed_code(), x_codes[i] = static_cast<std::uint8_t>(x[i]);
    for (auto& v : start) v = static_cast<std::int32_t>(check::random_bits()());
    typename dot::unit units[4];
    simd::pack_units<A>(x_codes, 4, simd::code_sign::is_signed, units);
    simd::store(got, dot::dot(simd::load<A>(start), dot::load(w), dot::broadcast(units)));
    for (index_t i = 0; i < lanes; ++i) {
      std::uint32_t want = static_cast<std::uint32_t>(start[i]);
      for (int k = 0; k < 4; ++k) want += static_cast<std::uint32_t>(w[4 * i + k] * (x[k] + dot::unit_offset));
      REQUIRE(static_cast<std::uint32_t>(got[i]) == want);
    }

    check::fenced<std::int8_t> row(along::step);
    check::fenced<std::uint8_t> line(along::step);
    const std::uint8_t flip = round % 2 == 0 ? 0 : 0x80;
    std::int64_t want = 0, sum = 0;
    for (index_t k = 0; k < along::step; ++k) {
      row[k] = round == 0 ? -128 : signed_code();
      const std::int8_t code = round == 0 ? -128 : signed_code();
      line[k] = static_cast<std::uint8_t>(code ^ flip);
      want += (code + along::weight_offset) * row[k];
    }
    simd::store(got, along::dot(simd::ints<A>(0), line.data(), flip, along::load(row.data())));
    for (const std::int32_t v : got) sum += v;
    REQUIRE(sum == want);
  }
}

// Two rows by a vector of columns, four codes deep or eight, -128 everywhere in the first round.
template <class A, index_t Quads>
void check_squares() {
  using square = simd::square_dot<A>;
  using unit = typename simd::quad_dot<A>::unit;
  constexpr index_t columns = simd::lanes<A>, depth = 4 * Quads;
  for (int round = 0; round < 300; ++round) {
    check::fenced<std::int8_t> w(depth * columns);
    check::fenced<unit> x[2] = {check::fenced<unit>(depth), check::fenced<unit>(depth)};
    for (index_t i = 0; i < w.size(); ++i) w[i] = round == 0 ? -128 : signed_code();
    for (auto& row : x)
      for (index_t k = 0; k < depth; ++k) row[k] = static_cast<unit>(round == 0 ? -128 : signed_code());
    std::int32_t start[columns], got[2][columns];
    for (auto& v : start) v = static_cast<std::int32_t>(check::random_bits()());
    const auto first = simd::load<A>(start);
    simd::ints<A> squares[2] = {square::template spread<0>(first), square::template spread<1>(first)};
    const auto weights = square::template load<Quads>(w.data(), w.data() + 4 * columns);
    const auto rows = square::template load_rows<Quads>(x[0].data(), x[1].data());
    for (int half = 0; half < 2; ++half) squares[half] = square::dot(squares[half], weights.columns[half], rows);
    simd::store(got[0], square::template row<0>(squares));
    simd::store(got[1], square::template row<1>(squares));
    for (int r = 0; r < 2; ++r)
      for (index_t c = 0; c < columns; ++c) {
        auto want = static_cast<std::uint32_t>(start[c]);
        for (index_t k = 0; k < depth; ++k)
          want += static_cast<std::uint32_t>(w[(k / 4 * columns + c) * 4 + k % 4] * x[r][k]);
        REQUIRE(static_cast<std::uint32_t>(got[r][c]) == want);
      }
  }
}

}  // namespace

TEST_CASE("pack_units: every length and sign, in memory that ends at a page, with its sum") {
  check::archs::for_each([](auto arch) { check_packing<decltype(arch)>(); });
}
TEST_CASE("quad_dot, line_dot: exact for all codes, -128 times -128 too; sums wrap around") {
  check::archs::for_each([](auto arch) { check_dots<decltype(arch)>(); });
}
TEST_CASE("square_dot: two rows by a vector of columns, one quad or two; nothing read beyond them") {
  check::archs::for_each([]<class A>(A) {
    if constexpr (simd::square_dot<A>::exists) check_squares<A, 1>(), check_squares<A, 2>();
  });
  CHECK(simd::square_dot<simd::best_arch>::exists == (simd::features::neon && simd::features::i8mm));
}
