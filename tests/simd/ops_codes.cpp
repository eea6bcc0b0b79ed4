// Mirrors include/qtensor/simd/ops_codes.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <cmath>
#include <qtensor/reference/codec.hpp>
#include <qtensor/simd/encodable.hpp>
#include <qtensor/simd/ops_codes.hpp>
#include <string>
#include <vector>

#include "check.hpp"

using namespace qtensor;

namespace {

/// Numbers that decide codes of F, times a power of two: values, middles, their neighbours, up to the contract's bound.
template <class F>
std::vector<float> deciding(float power) {
  std::vector<float> x = {0.f, -0.f, float_of(1), -float_of(1), float_of(0x007fffff)};
  const float bound = exp2i(max_exponent<F>) * 4.f * power;
  for (std::uint32_t c = 0; c <= F::max_code; ++c)
    for (const float v : {decode<F>(c), (decode<F>(c) + decode<F>(c < F::max_code ? c + 1 : c)) * 0.5f})
      for (const std::uint32_t near : {0u, 1u, ~0u}) {
        const float number = v * power;
        x.push_back(float_of(bits_of(number) + (number == 0.f ? 0u : near)));
      }
  for (int i = 0; i < 200; ++i) x.push_back(check::hard_float());
  for (const float s : {1.f, 1.5f, 1.999f}) x.push_back(bound / 2.f * s);
  for (float& v : x)
    if (!(magnitude(v) < bound)) v = bound / 3.f;
  const std::size_t n = x.size();
  for (std::size_t i = 0; i < n; ++i) x.push_back(-x[i]);
  return x;
}

template <class A>
std::array<simd::floats<A>, 4> negated(std::array<simd::floats<A>, 4> x) {
  for (auto& v : x) v = simd::bits_as<float>(simd::bits_as<std::uint32_t>(v) ^ simd::words<A>(sign_bit));
  return x;
}

template <class F>
void check_moved() {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    constexpr auto grid = simd::detail::grid_facts<F>;
    constexpr std::size_t step = static_cast<std::size_t>(4 * simd::lanes<A>), lanes = step / 4;
    constexpr std::uint32_t one = 1u << 23, middle = 127u << 23;
    for (const std::uint32_t bits : {simd::least_moved<grid>, simd::least_moved<grid> + one, middle - 9 * one, middle,
                                     middle + 3 * one, simd::most_moved<grid> - one, simd::most_moved<grid>}) {
      const float power = float_of(bits);
      std::vector<float> x = deciding<F>(power);
      while (x.size() % step != 0) x.push_back(0.f);
      // Batches of zeros may lie under any power.
      const auto to = simd::grid_times<grid, A>(simd::words<A>(bits)),
                 none = simd::grid_times<grid, A>(simd::words<A>(0x00400000u));
      for (std::size_t i = 0; i < x.size(); i += step) {
        const float zero[lanes] = {};
        const float* from[4] = {x.data() + i, x.data() + i + lanes, zero, x.data() + i + 3 * lanes};
        std::array<std::uint8_t, step> got, turned;
        const std::array<simd::floats<A>, 4> all{simd::load<A>(from[0]), simd::load<A>(from[1]), simd::load<A>(from[2]),
                                                 simd::load<A>(from[3])};
        simd::store(got.data(), simd::moved_codes<grid, A>(all, {to, to, none, to}));
        simd::store(turned.data(), simd::moved_codes<grid, A>(all, {to, to, none, to}, negated(all)));
        for (std::size_t k = 0; k < step; ++k) {
          const float v = from[k / lanes][k % lanes];
          const auto want = encode<F>(static_cast<double>(v) / static_cast<double>(power) == 0.0
                                          ? v
                                          : static_cast<float>(static_cast<double>(v) / static_cast<double>(power)));
          if (got[k] != want || turned[k] != (want ^ F::sign_mask))
            FAIL(std::string(std::string_view(F::name)), " ", bits_of(v), " over ", bits, ": ", +got[k], " instead of ",
                 want);
        }
      }
    }
  });
}

template <class F, class Rounding = nearest_even, simd::goes Side = simd::goes::nearest>
void check_signed() {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    constexpr auto grid = simd::detail::grid_facts<F>;
    if constexpr (simd::has_signed_codes<A, grid, Side>) {
      constexpr std::size_t lanes = static_cast<std::size_t>(simd::lanes<A>), step = 4 * lanes;
      std::vector<float> x = deciding<F>(1.f);
      for (const float v : {0x1p-149f, 0x1p-126f, 0x1p60f, 0x1p108f, 0x1.8p127f, infinity}) x.insert(x.end(), {v, -v});
      for (int i = 0; i < 100000; ++i)
        if (const float v = float_of(check::random_bits()()); !is_nan(v)) x.push_back(v);
      while (x.size() % step != 0) x.push_back(0.f);
      for (std::size_t i = 0; i < x.size(); i += step) {
        const auto batch = [&](std::size_t k) { return simd::load<A>(x.data() + i + k * lanes); };
        const std::array<simd::floats<A>, 4> all{batch(0), batch(1), batch(2), batch(3)}, others = negated(all);
        for (const bool own : {true, false}) {
          std::array<std::uint8_t, step> got;
          simd::store(got.data(), simd::signed_codes<grid, Side, A>(all, own ? all : others));
          for (std::size_t k = 0; k < step; ++k)
            if (const auto want = encode<F, Rounding>(own ? x[i + k] : -x[i + k]); (got[k] & low_bits(F::bits)) != want)
              FAIL(std::string(std::string_view(F::name)), " ", bits_of(x[i + k]), ": ", +got[k], " instead of ", want);
        }
      }
    }
  });
}

}  // namespace

TEST_CASE("signed_codes: the nearest codes of any number, saturated, where there are instructions for it") {
  check_signed<e4m3>();
  check_signed<e5m2>();
  check_signed<e3m2>();
  check_signed<e2m3>();
  check_signed<e2m1>();
}

TEST_CASE("signed_codes: those on one side of any number") {
  check_signed<e4m3, toward_zero, simd::goes::toward_zero>();
  check_signed<e5m2, toward_negative, simd::goes::down>();
  check_signed<e3m2, toward_positive, simd::goes::up>();
  check_signed<e2m1, toward_negative, simd::goes::down>();
}

TEST_CASE("moved_codes: the codes of x over a power of two, for every format and at both ends of the powers") {
  check_moved<e4m3>();
  check_moved<e5m2>();
  check_moved<e3m2>();
  check_moved<e2m3>();
  check_moved<e2m1>();
}

TEST_CASE("narrow_i16, add_saturated, narrow_i8, narrow_u8: any integer plus a zero point, saturated; holds_lowest") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    constexpr std::size_t lanes = static_cast<std::size_t>(simd::lanes<A>), step = 4 * lanes;
    for (int round = 0; round < 2000; ++round) {
      std::array<std::int32_t, step> r, z;
      for (std::size_t i = 0; i < step; ++i) {
        const auto bits = static_cast<std::int32_t>(check::random_bits()());
        r[i] = round % 4 == 0 ? bits : bits >> (8 + check::random_below(20));
        z[i] = round % 3 == 0 ? static_cast<std::int32_t>(check::random_below(2)) * 32768 - 16384
                              : static_cast<std::int32_t>(check::random_below(600)) - 300;
      }
      const auto batches = [](const std::array<std::int32_t, step>& v) {
        return std::array<simd::ints<A>, 4>{simd::load<A>(v.data()), simd::load<A>(v.data() + lanes),
                                            simd::load<A>(v.data() + 2 * lanes), simd::load<A>(v.data() + 3 * lanes)};
      };
      std::array<std::uint8_t, step> low, high;
      const simd::saturated_halves<A> h = simd::narrow_i16<A>(batches(r));
      const simd::saturated_halves<A> sums = simd::add_saturated<A>(h, simd::narrow_i16<A>(batches(z)));
      simd::store(low.data(), simd::narrow_i8<A>(sums));
      simd::store(high.data(), simd::narrow_u8<A>(sums));
      const bool lowest = std::any_of(r.begin(), r.end(), [](std::int32_t v) { return v <= -32768; });
      if (simd::holds_lowest<A>(h) != lowest) FAIL("holds_lowest: ", !lowest);
      for (std::size_t i = 0; i < step; ++i) {
        const std::int64_t sum = std::int64_t{r[i]} + z[i];
        const auto inside = [&](std::int64_t a, std::int64_t b) {
          return static_cast<std::uint8_t>(sum < a ? a : sum > b ? b : sum);
        };
        if (low[i] != inside(-128, 127) || high[i] != inside(0, 255))
          FAIL(r[i], " + ", z[i], ": ", +low[i], ", ", +high[i]);
      }
    }
  });
}

TEST_CASE("seven_limits: how many limits lie below a magnitude, which may be one of them") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    constexpr std::size_t lanes = static_cast<std::size_t>(simd::lanes<A>);
    const float limits[8] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.f, 0.f};
    for (const float factor : {1.f, 0x1p-140f, 0x1p120f, 0.0703125f, 448.f, 0.f, infinity}) {
      const simd::seven_limits<A> seven(limits, factor);
      for (int round = 0; round < 200; ++round) {
        std::array<std::uint32_t, lanes> magnitude, count;
        for (auto& m : magnitude) {
          const std::uint32_t limit = bits_of(limits[check::random_below(7)] * factor);
          const std::uint32_t more = static_cast<std::uint32_t>(check::random_below(3));  // one above, equal, one below
          m = round % 4 == 0 ? check::random_bits()() & magnitude_bits
                             : std::min(limit + more - (limit > 0), magnitude_bits);
        }
        simd::store(count.data(), seven.below(simd::load<A>(magnitude.data())));
        for (std::size_t i = 0; i < lanes; ++i) {
          const auto is_below = [&](float limit) { return bits_of(limit * factor) < magnitude[i]; };
          if (count[i] != static_cast<std::uint32_t>(std::count_if(limits, limits + 7, is_below)))
            FAIL(float_of(magnitude[i]), " times ", factor, ": ", count[i]);
        }
      }
    }
  });
}

TEST_CASE("sixteen_bounds: the last bound that a number reaches, fewer bounds, and NaN") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    constexpr std::size_t lanes = static_cast<std::size_t>(simd::lanes<A>);
    for (const std::size_t count : {1u, 2u, 3u, 8u, 9u, 15u, 16u}) {
      std::array<float, 16> bounds;
      bounds.fill(quiet_nan);
      for (std::size_t i = 0; i < count; ++i) bounds[i] = check::hard_finite();
      std::sort(bounds.begin(), bounds.begin() + count);
      bounds[0] = -infinity;
      const simd::sixteen_bounds<A> sixteen(bounds.data());
      for (int round = 0; round < 300; ++round) {
        std::array<float, lanes> x;
        std::array<std::uint32_t, lanes> place;
        for (float& v : x) {
          v = round % 3 == 0 ? check::hard_float() : bounds[check::random_below(static_cast<std::uint32_t>(count))];
          if (round % 3 == 1) v = std::nextafter(v, check::random_below(2) == 0 ? infinity : -infinity);
        }
        simd::store(place.data(), sixteen.last(simd::load<A>(x.data())));
        for (std::size_t i = 0; i < lanes; ++i) {
          std::uint32_t want = 0;
          for (std::uint32_t b = 1; b < count; ++b)
            if (x[i] >= bounds[b]) want = b;
          if (place[i] != want) FAIL(x[i], " of ", count, " bounds: ", place[i], ", not ", want);
        }
      }
    }
  });
}
