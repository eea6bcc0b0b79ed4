// Mirrors include/qtensor/simd/gemm_squares.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <memory>
#include <qtensor/simd/gemm_squares.hpp>
#include <vector>

#include "check.hpp"

namespace simd = qtensor::simd;
using qtensor::index_t;

namespace {

/// Operands of squares, where nothing lies behind them, and what their sums are.
template <class A, simd::square_shape Shape>
struct sample {
  static constexpr index_t width = simd::int_tile<A>::panel, step_bytes = 16 * width * 4;
  static constexpr index_t rows = Shape == simd::square_shape::two_by_two ? 32 : 16;
  static constexpr index_t cols = Shape == simd::square_shape::one_by_four ? 64 : 32;
  index_t steps, depth = 64 * steps;
  bool from_zero;
  check::fenced<std::uint8_t> units{rows * depth};
  check::fenced<std::int8_t> quads{steps * step_bytes}, last{step_bytes};
  check::fenced<std::int32_t> start{width};
  std::vector<std::int32_t> sums = std::vector<std::int32_t>(static_cast<std::size_t>(rows * cols), 77);

  explicit sample(index_t n, bool begins_at_zero = false) : steps(n), from_zero(begins_at_zero) {
    for (index_t i = 0; i < units.size(); ++i)
      units[i] = check::random_below(4) == 0 ? 255 : static_cast<std::uint8_t>(check::random_bits()());
    const auto code = [] {
      return static_cast<std::int8_t>(check::random_below(4) == 0 ? 0x80 : check::random_bits()());
    };
    for (index_t i = 0; i < quads.size(); ++i) quads[i] = code();
    for (index_t i = 0; i < last.size(); ++i) last[i] = code();
    for (index_t i = 0; i < width; ++i) start[i] = from_zero ? 0 : static_cast<std::int32_t>(check::random_bits()());
  }
  simd::square_operands<A> operands() {
    return {{units.data(), depth}, quads.data(), last.data(), steps, from_zero ? nullptr : start.data()};
  }
  template <simd::code_sign Units>
  void check(index_t first) {
    for (index_t r = 0; r < rows; ++r)
      for (index_t c = 0; c < cols; ++c) {
        auto want = static_cast<std::uint32_t>(start[first + c]);
        for (index_t k = 0; k < depth; ++k) {
          const index_t at = (k / 4 * width + first + c) * 4 + k % 4;
          const std::int8_t code = k / 64 + 1 < steps ? quads[at] : last[at - (steps - 1) * step_bytes];
          const std::int32_t unit = units[r * depth + k];
          const std::int32_t number = Units == simd::code_sign::is_signed ? static_cast<std::int8_t>(unit) : unit;
          want += static_cast<std::uint32_t>(number * code);
        }
        REQUIRE(static_cast<std::uint32_t>(sums[static_cast<std::size_t>(r * cols + c)]) == want);
      }
  }
};

template <class A, simd::resident Stays, simd::code_sign Units>
void check_squares() {
  using unit = simd::square_unit<A>;
  using shape = simd::square_shape;
  for (index_t steps = 1; steps <= 4; ++steps) {
    sample<A, shape::two_by_two> first(steps), second(steps), begun_at_zero(steps, true);
    sample<A, shape::one_by_four> third(steps);
    sample<A, shape::one_by_two> fourth(steps), fifth(steps), last(steps);
    index_t called = 0;
    const auto count = [&] { ++called; };
    {
      const typename unit::session session;
      simd::square_sums_in_turn<A> squares;
      squares.template sum<shape::two_by_two, Stays, Units>(first.operands(), first.sums.data(), 32, count);
      squares.template sum<shape::two_by_two, Stays, Units>(second.operands().from(32), second.sums.data(), 32, count);
      squares.template sum<shape::two_by_two, Stays, Units>(begun_at_zero.operands().from(32),
                                                            begun_at_zero.sums.data(), 32, count);
      squares.template sum<shape::one_by_two, Stays, Units>(fourth.operands().from(32), fourth.sums.data(), 32, count);
      squares.template sum<shape::one_by_two, Stays, Units>(fifth.operands(), fifth.sums.data(), 32, count);
      squares.template sum<shape::one_by_four, Stays, Units>(third.operands(), third.sums.data(), 64, count);
      squares.template sum<shape::one_by_two, Stays, Units>(last.operands(), last.sums.data(), 32, count);
      squares.finish();
    }
    REQUIRE(called == 7 * (steps - 1));
    first.template check<Units>(0);
    second.template check<Units>(32);
    begun_at_zero.template check<Units>(32);
    third.template check<Units>(0);
    fourth.template check<Units>(32);
    fifth.template check<Units>(0);
    last.template check<Units>(0);
  }
}

/// Sums of some steps, and of the others from there on.
template <class A, simd::square_shape Shape>
void check_parts() {
  using one = sample<A, Shape>;
  constexpr index_t before = 2;
  one all(5);
  std::vector<std::int32_t> kept(all.sums.size());
  const auto nothing = [] {};
  const simd::square_operands<A> of = all.operands();
  {
    const typename simd::square_unit<A>::session session;
    simd::square_sums_in_turn<A> squares;
    squares.template sum<Shape, simd::resident::rows>(
        simd::square_operands<A>{of.rows, of.quads, of.quads + one::step_bytes, before, of.start}, kept.data(),
        one::cols, nothing);
    squares.finish();
    squares.template sum<Shape, simd::resident::rows>(
        simd::square_operands<A>{{of.rows.data + before * 64, of.rows.stride},
                                 of.quads + before * one::step_bytes,
                                 of.last,
                                 of.steps - before,
                                 kept.data(),
                                 one::cols},
        all.sums.data(), one::cols, nothing);
    squares.finish();
  }
  all.template check<simd::code_sign::is_unsigned>(0);
}

}  // namespace

TEST_CASE("square_sums_in_turn: all shapes one after the other, every step, nothing read past the operands") {
  check::archs::for_each([](auto arch) {
    using A = decltype(arch);
    if constexpr (simd::square_unit<A>::exists) {
      if (!simd::square_unit<A>::is_granted()) return;
      using sign = simd::code_sign;
      check_squares<A, simd::resident::rows, sign::is_unsigned>();
      check_squares<A, simd::resident::quads, sign::is_unsigned>();
      check_squares<A, simd::resident::both, sign::is_unsigned>();
      check_squares<A, simd::resident::rows, sign::is_signed>();
      check_squares<A, simd::resident::quads, sign::is_signed>();
    }
  });
}
TEST_CASE("square_sums_in_turn: parts of a depth, each from the sums of the one before, row by row") {
  check::archs::for_each([](auto arch) {
    using A = decltype(arch);
    if constexpr (simd::square_unit<A>::exists) {
      if (!simd::square_unit<A>::is_granted()) return;
      check_parts<A, simd::square_shape::two_by_two>();
      check_parts<A, simd::square_shape::one_by_four>();
      check_parts<A, simd::square_shape::one_by_two>();
    }
  });
}
TEST_CASE("square_taps: segments anywhere, pixels at any distance, halves of panels apart, as a plain product sums") {
  check::archs::for_each([](auto arch) {
    using A = decltype(arch);
    if constexpr (simd::square_unit<A>::exists) {
      using unit = simd::square_unit<A>;
      if (!unit::is_granted()) return;
      constexpr index_t width = simd::int_tile<A>::panel, half = width / 2, rows = 32;
      for (const index_t quads : {16, 48})
        for (const index_t stride : {4, 64, 100}) {
          const index_t offsets[] = {70, 0, 500};
          const index_t reach = 500 + (rows - 1) * stride + 4 * quads;
          check::fenced<std::uint8_t> units(reach);
          check::fenced<std::int8_t> codes(3 * quads * width * 4);
          check::fenced<std::int32_t> start(width), sums(rows * width), sums_apart(rows * half);
          for (index_t i = 0; i < reach; ++i) units[i] = static_cast<std::uint8_t>(check::random_bits()());
          for (index_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::int8_t>(check::random_bits()());
          for (index_t i = 0; i < width; ++i) start[i] = static_cast<std::int32_t>(check::random_bits()());
          const simd::square_taps<A> taps{{units.data(), stride}, codes.data(), {offsets, 3, quads}, start.data()};
          check::fenced<std::int8_t> second_half(3 * quads * half * 4);
          for (index_t q = 0; q < 3 * quads; ++q)
            for (index_t i = 0; i < 4 * half; ++i) second_half[q * 4 * half + i] = codes[(q * width + half) * 4 + i];
          const simd::square_taps<A> apart{
              {units.data(), stride}, second_half.data(), {offsets, 3, quads}, start.data() + half, half};
          {
            const typename unit::session session;
            simd::square_sums_in_turn<A> squares;
            const auto sum = [&](const simd::square_taps<A>& of, std::int32_t* to, index_t columns) {
              squares.template sum<simd::square_shape::two_by_two, simd::resident::rows>(of, to, columns, [] {});
            };
            sum(taps, sums.data(), width);
            sum(taps.from(half), sums.data() + half, width);
            sum(apart, sums_apart.data(), half);
            squares.finish();
          }
          for (index_t r = 0; r < rows; ++r)
            for (index_t c = 0; c < width; ++c) {
              auto want = static_cast<std::uint32_t>(start[c]);
              for (index_t s = 0; s < 3; ++s)
                for (index_t k = 0; k < 4 * quads; ++k)
                  want += static_cast<std::uint32_t>(units[r * stride + offsets[s] + k] *
                                                     codes[((s * quads + k / 4) * width + c) * 4 + k % 4]);
              REQUIRE(static_cast<std::uint32_t>(sums[r * width + c]) == want);
              if (c >= half) REQUIRE(static_cast<std::uint32_t>(sums_apart[r * half + c - half]) == want);
            }
        }
    }
  });
}
