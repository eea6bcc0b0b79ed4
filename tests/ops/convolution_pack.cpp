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
  CHECK(form_of({.inputs = 64, .outputs = 64, .sizes = {4, 4}, .taps = {3, 3}, .how = {.groups = 16}}) == form::pixels);
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

TEST_CASE("packed convolution: every layout of the weights, dense or not, in every form; tap sums, reach") {
  struct kind {
    index_t inputs, outputs, groups;
  };
  // `apart`: strides of at least that are tripled, so that memory is not dense.
  const auto check_layout = [](const kind& k, const char* order, index_t apart, const position& taps,
                               std::vector<std::int32_t> zeros, qt::simd::code_sign sign) {
    problem p{.x_order = "NDHWC",
              .w_order = order,
              .inputs = k.inputs * k.groups,
              .outputs = k.outputs * k.groups,
              .sizes = {4, 4, 4},
              .taps = {taps.begin(), taps.end()},
              .how = {.groups = k.groups},
              .w_sign = sign,
              .w_zeros = std::move(zeros)};
    operands data(p);
    qt::kernel_map& m = data.plan.kernel;
    for (index_t* stride :
         {&m.group_stride, &m.output_stride, &m.input_stride, &m.spatial[0], &m.spatial[1], &m.spatial[2]})
      if (*stride >= apart) *stride *= 3;
    data.w = random_codes(static_cast<index_t>(data.w.size()) * 3, p.kind, sign);
    const qt::convolution_shape& s = data.plan.shape;
    INFO(p.text(), " apart ", apart);
    check::archs::for_each([&]<class A>(A) {
      const auto packed = qt::pack_convolution<A>(data.plan, {data.w.data(), sign, p.w_zeros});
      const bool lanes = packed.form() == form::channels, rows = packed.form() == form::rows;
      const index_t width = packed.width(), all = packed.panels() * packed.group_count();
      // Several groups may be one, with zero points between them.
      const index_t joined = k.groups / packed.shape().groups, inputs = k.inputs * joined;
      const index_t per_group = lanes ? s.outputs : k.outputs * joined, run = rows || lanes ? taps[2] * inputs : inputs;
      const index_t filled = qt::round_up(run, 4), terms = s.taps() * inputs / run * filled;
      std::vector<std::int8_t> quads(static_cast<std::size_t>(all * terms * width));
      std::vector<std::int32_t> sums(static_cast<std::size_t>(all * width)), points(sums.size());
      std::vector<std::int32_t> under(static_cast<std::size_t>(s.taps() * s.outputs));
      std::int64_t reach = 0;
      for (index_t o = 0; o < s.outputs; ++o) {
        const index_t panel = o / per_group * packed.panels() + o % per_group / width, column = o % per_group % width;
        const auto at = static_cast<std::size_t>(panel * width + column);
        const std::int64_t less = sign == qt::simd::code_sign::is_unsigned ? 128 : 0;
        std::int64_t most = 0;
        for (index_t tap = 0; tap < s.taps(); ++tap)
          for (index_t i = 0; i < inputs; ++i) {
            const position where{tap / taps[2] / taps[1], tap / taps[2] % taps[1], tap % taps[2]};
            const std::int64_t zero = p.w_zeros.empty() ? 0 : p.w_zeros[static_cast<std::size_t>(o)];
            const bool own = i / k.inputs == o / k.outputs % joined;
            const std::int64_t v = own ? data.w_number(p, o, i % k.inputs, where) : 0, code = v + zero - less;
            const index_t term = (tap * inputs + i) / run * filled + (tap * inputs + i) % run;
            quads[static_cast<std::size_t>(((panel * terms + term) / 4 * width + column) * 4 + term % 4)] =
                static_cast<std::int8_t>(code);
            sums[at] += static_cast<std::int32_t>(code);
            points[at] = static_cast<std::int32_t>(zero - less);
            under[static_cast<std::size_t>(tap * s.outputs + o)] += static_cast<std::int32_t>(v);
            most += v < 0 ? -v : v;
          }
        reach = std::max(reach, most);
      }
      const auto same = [](const auto& want, const auto* got) { REQUIRE(std::equal(want.begin(), want.end(), got)); };
      same(quads, packed.panel(0, 0));
      same(sums, packed.sums(0, 0));
      same(points, packed.zeros(0, 0));
      same(under, packed.tap_sums().data());
      REQUIRE(packed.tap_sums().size() == static_cast<index_t>(under.size()));
      REQUIRE(packed.reach() == reach);
    });
  };
  for (const kind& k : {kind{9, 70, 1},
                        {16, 3, 1},
                        {67, 1, 1},
                        {1, 70, 1},
                        {2, 17, 2},
                        {8, 5, 3},
                        {3, 2, 12},
                        {1, 1, 70},
                        {1, 2, 35},
                        {2, 1, 19}})
    for (const char* order : {"OIDHW", "ODHWI", "DHWIO", "IODHW", "WOIHD", "GOIDHW", "DHWIGO", "OGDHWI", "IDGHWO"})
      for (const index_t apart : {INT32_MAX, 2, 1})
        for (const position& taps : {position{1, 1, 1}, position{2, 3, 3}, position{1, 3, 1}, position{2, 1, 5}})
          for (const auto sign : {qt::simd::code_sign::is_signed, qt::simd::code_sign::is_unsigned}) {
            check_layout(k, order, apart, taps, {}, sign);
            std::vector<std::int32_t> zeros;
            for (index_t o = 0; o < k.outputs * k.groups; ++o)
              zeros.push_back(static_cast<std::int32_t>(k.groups > 3 ? o % 120 : 500 - 700 * (o % 2)));
            check_layout(k, order, apart, taps, zeros, sign);
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
