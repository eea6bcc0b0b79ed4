// Mirrors include/qtensor/simd/statistics.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/simd/statistics.hpp>

#include "statistics_check.hpp"

using namespace statistics_check;

TEST_CASE("amax_bits: every length to 16 batches + 3 and both fences, any source") {
  check::on_every_arch([](auto arch) {
    every_source([&](auto source) {
      using source_type = decltype(source);
      for (index_t n = 0; n <= 16 * simd::lanes<decltype(arch)> + 3; ++n)
        for (const bool at_start : {false, true}) {
          CAPTURE(n);
          const auto v = inputs<source_type>(n);
          check::fenced<typename source_type::type> x(v, at_start);
          const simd::fetch fetches = at_start ? simd::fetch::far : simd::fetch::nothing;
          const std::uint32_t got = simd::amax_bits<decltype(arch), source_type>(x.data(), n, fetches);
          REQUIRE(same_amax<source_type>(got, expected_amax<source_type>(v.data(), n)));
        }
    });
  });
}

TEST_CASE("amax_bits: the maximum counts at every position") {
  check::on_every_arch([](auto arch) {
    for (index_t n = 1; n <= 4 * simd::lanes<decltype(arch)> + 3; ++n)
      for (index_t at = 0; at < n; ++at) {
        std::vector<float> x(static_cast<std::size_t>(n), 0.5f);
        x[static_cast<std::size_t>(at)] = -2.0f;
        if (simd::amax_bits<decltype(arch)>(x.data(), n) != bits_of(2.0f)) FAIL("n=", n, " at=", at);
      }
  });
}

TEST_CASE("amax_bits: NaN wins over infinity, infinity over finite, -0 counts as 0") {
  check::on_every_arch([](auto arch) {
    const float nan = qtensor::quiet_nan, inf = qtensor::infinity;
    const float a[3] = {1, -nan, inf}, b[3] = {1, -inf, 3e38f}, c[1] = {-0.0f};
    CHECK(simd::amax_bits<decltype(arch)>(a, 3) == 0x7fc00000u);
    CHECK(simd::amax_bits<decltype(arch)>(b, 3) == 0x7f800000u);
    CHECK(simd::amax_bits<decltype(arch)>(c, 1) == 0u);
  });
}

TEST_CASE("in_order: integers in the order of the numbers, and back") {
  const float ascending[] = {-qtensor::infinity, -3e38f, -1.f, -1e-42f, -0.f, 0.f, 1e-42f, 1.f, 3e38f,
                             qtensor::infinity};
  for (std::size_t i = 0; i + 1 < std::size(ascending); ++i)
    CHECK(simd::in_order(bits_of(ascending[i])) < simd::in_order(bits_of(ascending[i + 1])));
  CHECK(simd::in_order(0xffc00000u) < simd::in_order(0xff800000u));
  CHECK(simd::in_order(0x7fc00000u) > simd::in_order(0x7f800000u));
  check::on_every_arch([](auto arch) {
    using arch_type = decltype(arch);
    alignas(64) std::uint32_t bits[64], there[64], back[64];
    for (std::uint32_t& b : bits) b = check::random_bits()();
    for (index_t i = 0; i < 64; i += simd::lanes<arch_type>) {
      const auto place = simd::in_order(simd::load<arch_type>(bits + i));
      simd::store(there + i, place);
      simd::store(back + i, simd::bits_in_order(place));
    }
    for (std::size_t i = 0; i < 64; ++i) {
      CHECK(there[i] == simd::in_order(bits[i]));
      CHECK(back[i] == bits[i]);
      CHECK(simd::bits_in_order(simd::in_order(bits[i])) == bits[i]);
    }
  });
}

TEST_CASE("extremes_in_order: the least and the largest of every length and source, wherever they lie") {
  check::on_every_arch([](auto arch) {
    every_source([&](auto source) {
      using source_type = decltype(source);
      for (index_t n = 0; n <= 5 * simd::lanes<decltype(arch)> + 3; ++n)
        for (const bool at_start : {false, true}) {
          CAPTURE(n);
          const auto v = inputs<source_type>(n);
          check::fenced<typename source_type::type> x(v, at_start);
          const simd::ordered_extremes got = simd::extremes_in_order<decltype(arch), source_type>(x.data(), n);
          const simd::ordered_extremes want = expected_extremes<source_type>(v.data(), 1, n);
          REQUIRE(same_extremes<source_type>(got, want));
        }
    });
    for (index_t n = 1; n <= 5 * simd::lanes<decltype(arch)> + 3; ++n)
      for (index_t at = 0; at < n; ++at) {
        std::vector<float> x(static_cast<std::size_t>(n), 0.f);
        x[static_cast<std::size_t>(at)] = -0.f;
        const auto low = simd::extremes_in_order<decltype(arch)>(x.data(), n).low;
        x[static_cast<std::size_t>(at)] = 2.f;
        if (low != simd::in_order(qtensor::sign_bit) ||
            simd::extremes_in_order<decltype(arch)>(x.data(), n).high != simd::in_order(bits_of(2.f)))
          FAIL("n=", n, " at=", at);
      }
  });
}

TEST_CASE("min_max: finite elements only, +0 for zeros, every length and source") {
  check::on_every_arch([](auto arch) {
    every_source([&](auto source) {
      using source_type = decltype(source);
      for (index_t n = 0; n <= 4 * simd::lanes<decltype(arch)> + 3; ++n)
        for (int round = 0; round < 6; ++round) {
          CAPTURE(n);
          auto v = inputs<source_type>(n);
          if (round == 0) std::fill(v.begin(), v.end(), v.empty() ? typename source_type::type() : v[0]);
          check::fenced<typename source_type::type> x(v, round % 2 != 0);
          float lo = qtensor::infinity, hi = -qtensor::infinity;
          bool finite = true;
          for (auto e : v) {
            const float f = value(source_type{}, e);
            if (!std::isfinite(f)) finite = false;
            if (std::isfinite(f)) lo = std::min(lo, f), hi = std::max(hi, f);
          }
          const simd::range got = simd::min_max<decltype(arch), source_type>(x.data(), n);
          REQUIRE(bits_of(got.min) == bits_of(lo + 0.0f));
          REQUIRE(bits_of(got.max) == bits_of(hi + 0.0f));
          REQUIRE(got.all_finite == finite);
        }
    });
  });
}

TEST_CASE("min_max: a range that leaves zero out keeps it out, also in a partial batch") {
  check::on_every_arch([](auto arch) {
    for (index_t n = 1; n <= 4 * simd::lanes<decltype(arch)> + 3; ++n) {
      const std::vector<float> x(static_cast<std::size_t>(n), 3.0f), y(static_cast<std::size_t>(n), -0.0f);
      CHECK(simd::min_max<decltype(arch)>(x.data(), n).min == 3.0f);
      CHECK(bits_of(simd::min_max<decltype(arch)>(y.data(), n).min) == 0u);
    }
  });
}

TEST_CASE("min_max_blocks: min_max of every block, any number of them of any length") {
  check::on_every_arch([](auto arch) {
    using arch_type = decltype(arch);
    for (index_t length = 1; length <= 9 * simd::lanes<arch_type>; length += length < 40 ? 1 : 29)
      for (const index_t blocks : {0, 1, 3, 4, 5, 8, 11, 16, 17, 32, 35}) {
        check::fenced<float> x(inputs<simd::from_f32>(blocks * length)), low(blocks), high(blocks);
        simd::min_max_blocks<arch_type>(x.data(), blocks, length, low.data(), high.data());
        for (index_t b = 0; b < blocks; ++b) {
          const simd::range want = simd::min_max<simd::scalar_arch>(x.data() + b * length, length);
          if (bits_of(low[b]) != bits_of(want.min) || bits_of(high[b]) != bits_of(want.max))
            FAIL("block ", b, " of ", blocks, ", length ", length);
        }
      }
  });
}

TEST_CASE("amax_blocks: any number of blocks of any length") {
  check::on_every_arch([](auto arch) {
    using arch_type = decltype(arch);
    every_source([&](auto source) {
      using source_type = decltype(source);
      for (const index_t length : {1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 31, 32, 48, 64, 128, 129})
        for (const index_t blocks : {0, 1, 2, 3, 4, 5, 8, 11, 15, 16, 17, 32, 35}) {
          CAPTURE(length);
          CAPTURE(blocks);
          const auto v = inputs<source_type>(blocks * length);
          check::fenced<typename source_type::type> x(v);
          check::fenced<std::uint32_t> best(blocks);
          const auto verify = [&] {
            for (index_t b = 0; b < blocks; ++b)
              if (!same_amax<source_type>(best[b], expected_amax<source_type>(v.data() + b * length, length)))
                FAIL("block ", b, ": ", best[b]);
          };
          simd::amax_blocks<arch_type, source_type>(x.data(), blocks, length, best.data());
          verify();
          for (index_t b = 0; b < blocks; ++b) best[b] = ~0u;
          if (length == 16) simd::amax_blocks_of<arch_type, 16, source_type>(x.data(), blocks, best.data()), verify();
          if (length == 17) simd::amax_blocks_of<arch_type, 17, source_type>(x.data(), blocks, best.data()), verify();
          if (length == 32) simd::amax_blocks_of<arch_type, 32, source_type>(x.data(), blocks, best.data()), verify();
        }
    });
  });
}

TEST_CASE("has_magnitudes_below: zeros of both signs do not count, the first number below does") {
  for (const index_t n : {1, 15, 16, 17, 50}) {
    std::vector<float> x(static_cast<std::size_t>(n), 0x1p-60f);
    x[0] = -0.f;
    CHECK_FALSE(simd::has_magnitudes_below<simd::best_arch>(x.data(), n, 0x1p-60f));
    for (const float v : {-0x1.fffffep-61f, 0x1p-149f}) {
      x.back() = v;
      CHECK(simd::has_magnitudes_below<simd::best_arch>(x.data(), n, 0x1p-60f));
    }
    for (const float v : {0.f, qtensor::infinity, qtensor::quiet_nan, -1.f}) {
      x.back() = v;
      CHECK_FALSE(simd::has_magnitudes_below<simd::best_arch>(x.data(), n, 0x1p-60f));
    }
  }
}

TEST_CASE("range_blocks: extremes with 0 of every block, non-finite ones reported, any source") {
  every_source([](auto source) {
    using A = simd::best_arch;
    using source_type = decltype(source);
    bool ok = true;
    for (const index_t length : {1, 2, 3, 7, 8, 16, 17, 32, 64, 100, 256})
      for (index_t blocks = 0; blocks < 40; blocks += 3) {
        const auto x = inputs<source_type>(length * blocks);
        check::fenced<typename source_type::type> from(x);
        check::fenced<std::uint32_t> low(blocks), high(blocks);
        const simd::fetch fetches = blocks % 2 == 0 ? simd::fetch::pages : simd::fetch::nothing;
        simd::range_blocks<A, source_type>(from.data(), blocks, length, low.data(), high.data(), fetches);
        if (blocks > 0) {
          const auto first = simd::range_bits<A, source_type>(from.data(), length, fetches);
          ok = ok && first.low == low[0] && first.high == high[0];
        }
        const auto again = [&]<index_t Length>(std::integral_constant<index_t, Length>) {
          if (length != Length) return;
          std::vector<std::uint32_t> lows(static_cast<std::size_t>(blocks), 1u), highs = lows;
          simd::range_blocks_of<A, Length, source_type>(from.data(), blocks, lows.data(), highs.data(), fetches);
          ok = ok && std::equal(lows.begin(), lows.end(), low.data()) &&
               std::equal(highs.begin(), highs.end(), high.data());
        };
        again(std::integral_constant<index_t, 17>{});
        again(std::integral_constant<index_t, 32>{});
        for (index_t b = 0; b < blocks; ++b) {
          float least = 0.f, most = 0.f;
          bool finite = true;
          for (index_t i = b * length; i < (b + 1) * length; ++i) {
            const float v = value(source_type{}, x[static_cast<std::size_t>(i)]);
            finite = finite && qtensor::is_finite(v);
            least = std::min(least, v), most = std::max(most, v);
          }
          ok = ok && (std::max(low[b], high[b]) < qtensor::infinity_bits) == finite;
          if (finite) ok = ok && qtensor::float_of(low[b]) == -least && bits_of(most + 0.f) == high[b];
        }
      }
    CHECK(ok);
  });
}

TEST_CASE("ranges_of_magnitudes: numbers of both signs, +0 for none, the largest of all") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    for (index_t n = 0; n < 70; ++n) {
      check::fenced<std::uint32_t> below(n), above(n), amax(n);
      check::fenced<float> low(n), high(n);
      std::uint32_t largest = 0;
      for (index_t i = 0; i < n; ++i) {
        below[i] = i % 3 == 0 ? 0 : bits_of(static_cast<float>(i * 7 % 31));
        above[i] = i % 5 == 0 ? 0 : bits_of(static_cast<float>(i * 11 % 37));
        if (i == 60) above[i] = qtensor::infinity_bits + 1;
        largest = std::max({largest, below[i], above[i]});
      }
      CHECK(simd::ranges_of_magnitudes<A>(below.data(), above.data(), n, amax.data(), low.data(), high.data()) ==
            largest);
      for (index_t i = 0; i < n; ++i) {
        CHECK(amax[i] == std::max(below[i], above[i]));
        CHECK(bits_of(low[i]) == (below[i] == 0 ? 0 : below[i] | qtensor::sign_bit));
        CHECK(bits_of(high[i]) == above[i]);
      }
    }
  });
}
