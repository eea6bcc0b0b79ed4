// Mirrors include/qtensor/simd/ops_halves.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <qtensor/reference/codec.hpp>
#include <qtensor/simd/encodable.hpp>
#include <qtensor/simd/ops_halves.hpp>
#include <string>
#include <type_traits>
#include <vector>

#include "check.hpp"

using namespace qtensor;

namespace {

/// Compares code_of(two batches of bf16) with want(number) for every number but NaN, `apart` apart: the bits of `seen`.
template <class A, class CodeOf, class Want>
void check_numbers(std::uint32_t apart, const std::string& name, std::uint32_t seen, CodeOf code_of, Want want) {
  constexpr std::size_t step = static_cast<std::size_t>(4 * simd::lanes<A>);
  std::vector<std::uint16_t> x;
  for (std::uint32_t h = 0; h < 0x10000; h += apart)
    if ((h & 0x7fff) <= 0x7f80) x.push_back(static_cast<std::uint16_t>(h));
  while (x.size() % step != 0) x.push_back(0);
  for (std::size_t i = 0; i < x.size(); i += step) {
    std::array<std::uint8_t, step> got;
    simd::store(got.data(), code_of({simd::load<A>(x.data() + i), simd::load<A>(x.data() + i + step / 2)}));
    for (std::size_t k = 0; k < step; ++k)
      if (const std::uint32_t code = want(float_of(std::uint32_t{x[i + k]} << 16)); (got[k] & seen) != code)
        FAIL(name, ", ", x[i + k], ": ", +got[k], " instead of ", code);
  }
}

template <class F, class A>
void check_grid(std::uint32_t power, std::uint32_t apart) {
  constexpr auto grid = simd::detail::grid_facts<F>;
  const auto all = simd::bits_as<std::uint16_t>(simd::grid_begins_at<grid>(simd::words<A>(power)));
  check_numbers<A>(
      apart, std::string(std::string_view(F::name)),
      simd::detail::looks_up_intervals<A, grid> ? low_bits(F::bits) : 0xffu,  // elsewhere the bits above are 0
      [&](const std::array<simd::halves<A>, 2>& x) {
        return simd::bf16_codes<grid>(x, {all, all});
      },
      [&](float v) {
        // Small enough for a zero keeps its sign, and need not be divided.
        const double exact = static_cast<double>(v) / static_cast<double>(float_of(power));
        const float q = static_cast<float>(exact);
        return encode<F>(q == 0.f ? std::copysign(0.f, v) : q);
      });
}

template <class F>
void check_grids() {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    if constexpr (simd::codes_halves<A>) {
      constexpr auto grid = simd::detail::grid_facts<F>;
      const std::uint32_t one = bits_of(1.f), binade = 1u << 23;
      check_grid<F, A>(one, 1);
      for (const std::uint32_t power : {simd::least_moved<grid>, simd::least_moved<grid> + 3 * binade, one - 9 * binade,
                                        one + 5 * binade, simd::most_moved<grid>}) {
        check_grid<F, A>(power, 7);
      }
    }
  });
}

}  // namespace

TEST_CASE("bf16_codes: the codes of every number of bf16, on any moved grid") {
  check_grids<e4m3>();
  check_grids<e5m2>();
  check_grids<e3m2>();
  check_grids<e2m3>();
  check_grids<e2m1>();
  check_grids<e1m2>();
}

TEST_CASE("bf16_codes: two grids at a time") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    if constexpr (simd::codes_halves<A>) {
      static constexpr auto grid = simd::detail::grid_facts<e4m3>;
      constexpr std::size_t step = static_cast<std::size_t>(4 * simd::lanes<A>);
      const auto four = static_cast<std::uint16_t>(bits_of(4.f) >> 16);
      const simd::halves<A> x(four);
      const auto begin = [](float power) {
        return simd::bits_as<std::uint16_t>(simd::grid_begins_at<grid>(simd::words<A>(bits_of(power))));
      };
      std::array<std::uint8_t, step> got;
      simd::store(got.data(), simd::bf16_codes<grid>(std::array{x, x}, {begin(1.f), begin(2.f)}));
      for (std::size_t k = 0; k < step; ++k) CHECK(got[k] == encode<e4m3>(k < step / 2 ? 4.f : 2.f));
    }
  });
}

TEST_CASE("bf16_codes: a grid for each number, its neighbours' far away") {
  const auto check_format = []<class F>(std::type_identity<F>) {
    check::on_every_arch([](auto arch) {
      using A = decltype(arch);
      if constexpr (simd::codes_halves<A>) {
        static constexpr auto grid = simd::detail::grid_facts<F>;
        constexpr std::size_t lanes = static_cast<std::size_t>(simd::lanes<A>), step = 4 * lanes;
        constexpr std::uint32_t seen = simd::detail::looks_up_intervals<A, grid> ? low_bits(F::bits) : 0xffu;
        std::array<std::uint32_t, step> power;
        for (std::size_t k = 0; k < step; ++k) power[k] = bits_of(exp2i(static_cast<int>(5 * k % 23) - 11));
        const auto normal = [&](std::size_t k) {
          return simd::grid_times<grid>(simd::load<A>(power.data() + k * lanes)).normal;
        };
        const std::array begins{simd::grid_begins_at_each<grid, A>(normal(0), normal(1)),
                                simd::grid_begins_at_each<grid, A>(normal(2), normal(3))};
        for (std::uint32_t first = 0; first < 0x10000; first += 41) {
          std::array<std::uint16_t, step> x;
          for (std::size_t k = 0; k < step; ++k) {
            x[k] = static_cast<std::uint16_t>(first + 977 * k);
            if ((x[k] & 0x7fff) > 0x7f80) x[k] = 0;
          }
          std::array<std::uint8_t, step> got;
          simd::store(got.data(), simd::bf16_codes<grid>(
                                      std::array{simd::load<A>(x.data()), simd::load<A>(x.data() + step / 2)}, begins));
          for (std::size_t k = 0; k < step; ++k) {
            const float v = float_of(std::uint32_t{x[k]} << 16);
            const auto q = static_cast<float>(static_cast<double>(v) / static_cast<double>(float_of(power[k])));
            if (const std::uint32_t code = encode<F>(q == 0.f ? std::copysign(0.f, v) : q); (got[k] & seen) != code)
              FAIL(std::string(std::string_view(F::name)), ", ", x[k], ": ", +got[k], " instead of ", code);
          }
        }
      }
    });
  };
  check_format(std::type_identity<e4m3>{});
  check_format(std::type_identity<e5m2>{});
  check_format(std::type_identity<e3m2>{});
  check_format(std::type_identity<e2m1>{});
}

TEST_CASE("binade_codes: hif8 of every number of bf16") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    if constexpr (simd::codes_halves<A>) {
      static constexpr simd::binade_steps steps = *simd::detail::find_binade_steps<hif8>;
      check_numbers<A>(
          1, "hif8", 0xffu, [](const std::array<simd::halves<A>, 2>& x) { return simd::binade_codes<A>(x, steps); },
          [](float v) { return encode<hif8>(v); });
    }
  });
}

TEST_CASE("any_nan: of bf16 numbers, in any lane") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    if constexpr (simd::codes_halves<A>) {
      constexpr std::size_t step = static_cast<std::size_t>(4 * simd::lanes<A>);
      for (std::size_t at = 0; at < step; ++at)
        for (const std::uint16_t v : {0x7f80, 0xff80, 0x7f7f, 0x8000, 0x7f81, 0xff81, 0x7fff, 0xffff}) {
          std::array<std::uint16_t, step> x{};
          x[at] = v;
          CHECK(simd::any_nan(std::array{simd::load<A>(x.data()), simd::load<A>(x.data() + step / 2)}) ==
                ((v & 0x7fff) > 0x7f80));
        }
    }
  });
}
