// Mirrors include/qtensor/simd/random.hpp: vectors draw the words of the definition and round by them as it does.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/reference/codec.hpp>
#include <qtensor/scheme/schemes.hpp>
#include <qtensor/simd/random.hpp>
#include <vector>

#include "check.hpp"

using namespace qtensor;

namespace {

/// Random bits, and what lies around the steps, the halves and the ends of a format.
template <format F>
std::vector<float> hard_numbers() {
  std::vector<float> x;
  const float step = simd::detail::smallest_step<F>(), most = static_cast<float>(F::max);
  for (const float at : {0.f, step, 1.5f * step, 2.f * step, 1.f, 1.25f, 3.f, 7.f, most, 1.1f * most, infinity,
                         std::numeric_limits<float>::max(), 0x1p-126f, 0x1p-149f, 0x1p-40f * step, 0x1p24f, 0x1p23f})
    for (int steps = -3; steps <= 3; ++steps)
      for (const std::uint32_t sign : {0u, sign_bit})
        x.push_back(float_of((bits_of(at) + static_cast<std::uint32_t>(steps)) ^ sign));
  x.push_back(quiet_nan);
  for (int exponent = -40; exponent < 12; ++exponent)
    for (int i = 0; i < 40; ++i)
      x.push_back(std::ldexp(1.f + static_cast<float>(check::random_bits()() % 8388608u) * 0x1p-23f, exponent));
  for (int i = 0; i < 4000; ++i) x.push_back(float_of(check::random_bits()()));
  return x;
}

template <class A, format F>
void check_rounding() {
  std::vector<float> x = hard_numbers<F>();
  x.resize(round_up(static_cast<index_t>(x.size()), 64), 0.f);
  std::vector<std::uint32_t> word(x.size());
  int wrong = 0;
  for (int draw = 0; draw < 12; ++draw) {
    for (auto& w : word) w = draw == 0 ? 0u : draw == 1 ? ~0u : check::random_bits()() >> (draw % 3 == 0 ? 20 : 0);
    for (std::size_t i = 0; i < x.size(); i += static_cast<std::size_t>(simd::lanes<A>)) {
      alignas(64) float rounded[64];
      simd::store(rounded, simd::round_at_random<F>(simd::load<A>(x.data() + i), simd::load<A>(word.data() + i)));
      for (std::size_t k = 0; k < static_cast<std::size_t>(simd::lanes<A>); ++k) {
        const std::uint32_t want = encode<F, stochastic<>, to_special>(x[i + k], word[i + k]);
        if (encode<F, to_special>(rounded[k]) == want) continue;
        if (++wrong < 4) MESSAGE(std::string(F::name), ": ", x[i + k], " by ", word[i + k], " gives ", rounded[k]);
      }
    }
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("random_words: those of qtensor::philox, for every count, step and beginning") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    for (const std::uint64_t first :
         {std::uint64_t{0}, std::uint64_t{77}, std::uint64_t{0xfffffff0}, std::uint64_t{1} << 40})
      for (const std::uint64_t step : {std::uint64_t{1}, std::uint64_t{3}, std::uint64_t{1} << 30})
        for (index_t n = 0; n < 40; ++n) {
          std::vector<std::uint32_t> words(static_cast<std::size_t>(n + 2 * simd::lanes<A>));
          simd::random_words<A>(first, step, n, 12345u, words.data());
          for (index_t i = 0; i < n; ++i)
            REQUIRE(words[static_cast<std::size_t>(i)] == philox(first + static_cast<std::uint64_t>(i) * step, 12345u));
        }
  });
}

TEST_CASE_TEMPLATE("round_at_random: `stochastic` of every format, tiny, huge and special numbers too", F, int8, uint8,
                   int4, int2, e4m3, e5m2, e4m3fnuz, e3m2, e2m3, e2m1, bf16, f16) {
  check::on_every_arch([](auto arch) { check_rounding<decltype(arch), F>(); });
}
