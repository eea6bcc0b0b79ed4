// Mirrors include/qtensor/ops/convolution_pack.hpp: what is packed where, forms, sums, refusals.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/convolution.hpp>

#include "../simd/check.hpp"
#include "convolution_check.hpp"

using namespace convolution_check;
using form = qt::ops::convolution_form;

namespace {

template <class A = qt::simd::best_arch>
form form_of(const problem& p) {
  const operands data(p);
  return qt::pack_convolution<A>(data.plan, {data.w.data(), p.w_sign, p.w_zeros}).form();
}

}  // namespace

TEST_CASE("packed convolution: pixels for many channels, rows for few, lanes for depthwise") {
  CHECK(form_of({.inputs = 64, .outputs = 64, .sizes = {4, 4}, .taps = {3, 3}}) == form::pixels);
  CHECK(form_of({.inputs = 3, .outputs = 64, .sizes = {4, 4}, .taps = {3, 3}}) == form::pixels);
  CHECK(form_of({.inputs = 1, .outputs = 64, .sizes = {4, 4}, .taps = {3, 3}}) == form::rows);
  CHECK(form_of({.inputs = 16, .outputs = 16, .sizes = {4, 4}, .taps = {3, 3}, .how = {.groups = 16}}) ==
        form::channels);
  // 17 x 17 products of 255 * 255 are beyond 2^24.
  CHECK(form_of({.inputs = 16, .outputs = 16, .sizes = {20, 20}, .taps = {17, 17}, .how = {.groups = 16}}) !=
        form::channels);
}

TEST_CASE("packed convolution: a weight lies in its quad and column, sums and zero points beside it") {
  problem p{.w_order = "OHWI",
            .inputs = 6,
            .outputs = 70,
            .sizes = {4, 4},
            .taps = {2, 3},
            .how = {{}, {2, 2}},
            .w_sign = qt::simd::code_sign::is_unsigned,
            .w_zeros = {130}};
  const operands data(p);
  check::archs::for_each([&]<class A>(A) {
    const auto packed = qt::pack_convolution<A>(data.plan, {data.w.data(), p.w_sign, p.w_zeros});
    REQUIRE(packed.form() == form::pixels);
    REQUIRE(packed.segments() == 6);
    REQUIRE(packed.segment_quads() == 2);
    for (index_t o = 0; o < p.outputs; ++o) {
      const index_t column = o % packed.width();
      std::int32_t sum = 0;
      for (index_t tap = 0; tap < 6; ++tap)
        for (index_t i = 0; i < 8; ++i) {
          const index_t k = tap * 8 + i;
          const std::int8_t got = packed.panel(0, o / packed.width())[(k / 4 * packed.width() + column) * 4 + k % 4];
          const std::int64_t want =
              i < 6 ? number(data.w[static_cast<std::size_t>(data.plan.kernel.at(o, i, {0, tap / 3, tap % 3}))],
                             p.w_sign) -
                          128
                    : 0;
          REQUIRE(got == want);
          sum += static_cast<std::int32_t>(want);
        }
      REQUIRE(packed.sums(0, o / packed.width())[column] == sum);
      REQUIRE(packed.zeros(0, o / packed.width())[column] == 2);
    }
    CHECK(packed.has_zeros());
    CHECK(packed.size_bytes() >= 70 * 6 * 8);
  });
}

TEST_CASE("packed convolution: weights summed under each tap, in every form; their reach") {
  for (const problem& p :
       {problem{.inputs = 9, .outputs = 70, .sizes = {4, 4}, .taps = {2, 3}, .w_zeros = {-300}},
        problem{.inputs = 1, .outputs = 70, .sizes = {4, 4}, .taps = {3, 3}, .w_zeros = {5}},
        problem{.inputs = 32, .outputs = 16, .sizes = {4, 4}, .taps = {3, 2}, .how = {.groups = 16}},
        problem{.inputs = 16, .outputs = 32, .sizes = {4, 4}, .taps = {3, 2}, .how = {.groups = 16}}}) {
    const operands data(p);
    const auto& s = data.plan.shape;
    std::int64_t reach = 0;
    std::vector<std::int64_t> want(static_cast<std::size_t>(s.taps() * s.outputs));
    for (index_t o = 0; o < s.outputs; ++o) {
      std::int64_t most = 0;
      for (index_t tap = 0; tap < s.taps(); ++tap)
        for (index_t i = 0; i < s.group_inputs(); ++i) {
          const index_t wide = p.taps[1];
          const std::int64_t v = data.w_number(p, o, i, {0, tap / wide, tap % wide});
          want[static_cast<std::size_t>(tap * s.outputs + o)] += v;
          most += v < 0 ? -v : v;
        }
      reach = std::max(reach, most);
    }
    check::archs::for_each([&]<class A>(A) {
      const auto packed = qt::pack_convolution<A>(data.plan, {data.w.data(), p.w_sign, p.w_zeros});
      CHECK(packed.reach() == reach);
      const auto sums = packed.tap_sums();
      REQUIRE(sums.size() == static_cast<index_t>(want.size()));
      for (index_t i = 0; i < sums.size(); ++i) REQUIRE(sums[i] == want[static_cast<std::size_t>(i)]);
    });
  }
}

TEST_CASE("packed convolution: unsigned weights of zero point 128 have none inside") {
  problem p{.inputs = 4, .outputs = 3, .sizes = {2, 2}, .w_sign = qt::simd::code_sign::is_unsigned, .w_zeros = {128}};
  const operands data(p);
  CHECK(!qt::pack_convolution(data.plan, {data.w.data(), p.w_sign, p.w_zeros}).has_zeros());
}

TEST_CASE("packed convolution: refuses too many zero points, and those so far that sums may leave 32 bits") {
  const problem p{.inputs = 4, .outputs = 3, .sizes = {2, 2}};
  const operands data(p);
  const auto refuses = [&](std::vector<std::int32_t> zeros, qt::simd::code_sign sign, const char* text) {
    CHECK_THROWS_WITH_AS(qt::pack_convolution(data.plan, {data.w.data(), sign, zeros}), doctest::Contains(text),
                         qt::error);
  };
  refuses({1, 2}, p.w_sign, "the weights have 2 zero points for 3 outputs; there are none, 1 or 3.");
  refuses({INT32_MIN}, p.w_sign, "output 0 may sum up to ");
  refuses({0, 0, INT32_MAX}, qt::simd::code_sign::is_unsigned, "output 2 may sum up to ");
}

TEST_CASE("packed convolution: sums that 32 bits may not hold are refused, the last that they hold is exact") {
  // 255 * 128 * 65793 = 2^31 - 128 is held; one weight more is not.
  const auto plan = [](index_t inputs) {
    return qt::plan_convolution({"NWC", {1, 1, inputs}}, {"OIW", {1, inputs, 1}});
  };
  constexpr index_t most = ((index_t{1} << 31) - 1) / (255 * 128);
  const std::vector<std::uint8_t> w(static_cast<std::size_t>(most + 1), 0x80), x(static_cast<std::size_t>(most), 0xff);
  CHECK_THROWS_WITH_AS(qt::pack_convolution(plan(most + 1), {w.data()}), doctest::Contains("beyond 32 bits"),
                       qt::error);
  const auto packed = qt::pack_convolution(plan(most), {w.data()});
  qt::convolve(packed, {x.data(), qt::simd::code_sign::is_unsigned, 0},
               [&](const qt::convolution_tile& t) { CHECK(t.sums[0] == -128 * 255 * most); });
}
