// Mirrors include/qtensor/simd/scales.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/scheme/schemes.hpp>
#include <qtensor/simd/scales.hpp>
#include <vector>

#include "check.hpp"

using namespace qtensor;

namespace {

/// Maxima of every kind: zero, subnormal, around every power of two, around format limits, the largest number.
std::vector<std::uint32_t> maxima() {
  std::vector<std::uint32_t> list = {0, 1, 2, 0x00400000u, 0x00400001u, 0x007fffffu, 0x7f7fffffu, 0x7f700000u};
  for (std::uint32_t e = 1; e < 255; ++e)
    for (const std::uint32_t m : {0u, 1u, 0x200000u, 0x3fffffu, 0x400000u, 0x408000u, 0x408001u, 0x5fffffu, 0x600000u,
                                  0x608000u, 0x608001u, 0x700000u, 0x7fffffu})
      list.push_back(e << 23 | m);
  for (int i = 0; i < 500; ++i) list.push_back(check::random_bits()() % 0x7f800000u);
  return list;
}

/// All maxima, n at a time, beside the reference. Counts the batches that are not special: some there must be.
template <class S>
void check_scales(float tensor_term = 1.f) {
  CAPTURE(std::string(std::string_view(name<S>)));
  using unit = storage_t<typename S::scale_format>;
  const std::vector<std::uint32_t> all = maxima();
  int ordinary = 0, fitting = 0;
  bool ok = true;
  index_t n = 1;
  for (std::size_t at = 0; at + 100 < all.size(); at += static_cast<std::size_t>(n), n = n % 70 + 1) {
    check::fenced<std::uint32_t> amax(std::vector<std::uint32_t>(all.begin() + static_cast<std::ptrdiff_t>(at),
                                                                 all.begin() + static_cast<std::ptrdiff_t>(at) + n));
    check::fenced<unit> units(n);
    check::fenced<float> scales(n);
    bool special = false, same = true;
    const auto blocks = simd::block_scales<S>(amax.data(), n, units.data(), scales.data(), tensor_term);
    const bool done = blocks != simd::blocks_are::special;
    for (index_t i = 0; i < n; ++i) {
      const auto p = reference::parameters_of<S>({amax[i]}, tensor_term);
      const bool any_scale = std::same_as<typename S::scale_format, e8m0> && amax[i] == 0;  // of zeros
      const float used = p.plus_zeros ? 0.f : any_scale ? 1.f : p.code_scale;
      special = special || p.poisoned || (p.zero_codes && amax[i] != 0) || !is_finite(p.code_scale);
      same = same && p.scale_code == detail::code_of<typename S::scale_format>(units[i]) &&
             bits_of(used) == bits_of(scales[i]);
    }
    ok = ok && done == !special && (special || same);
    ordinary += done ? 1 : 0;
    fitting += blocks == simd::blocks_are::fitting ? 1 : 0;
  }
  CHECK(ok);
  CHECK(ordinary > 5);
  const bool fits = simd::vector_rule<typename S::rule, S, simd::best_arch>::bounded && !S::has_tensor_scale;
  if (fits) CHECK(fitting > 0);
}

}  // namespace

TEST_CASE("block_scales: every rule and scale format equals the reference") {
  check_scales<int8_group<32>>();
  check_scales<with<int8_group<32>, scale_as<f16>>>();
  check_scales<with<int4_group<32>, scale_as<bf16>>>();
  check_scales<scheme<e4m3, group<32>>>();
  check_scales<scheme<int8, group<32>, scale_as<e4m3>>>();
  check_scales<scheme<int8, group<32>, scale_as<e5m2>>>();
  check_scales<mxfp8_e4m3>();
  check_scales<mxfp4>();
  check_scales<mxint8>();
  check_scales<with<mxfp6_e2m3, mx_even>>();
  check_scales<with<mxfp8_e5m2, mx_even>>();
  check_scales<with<mxfp4, mx_ceil>>();
  check_scales<with<mxfp4, mx_dynamic_range<0>>>();
  check_scales<with<mxfp4, mx_dynamic_range<7>>>();
  check_scales<with<mxfp4, mx_dynamic_range<8>>>();
  check_scales<with<mxfp4, mx_dynamic_range<12>>>();
  check_scales<scheme<int8, group<32>, reciprocal_amax<>, rule_multiplier>>();
  check_scales<scheme<int8, group<32>, reciprocal_amax<1, 100>, scale_as<f16>>>();
  check_scales<with<mxfp8_e4m3, mx_rceil>>();
  check_scales<with<mxfp4, mx_rceil>>();
  check_scales<nvfp4>();
  check_scales<with<scheme<e5m2, group<32>, bounded_amax<>>, block_literal>>();
  check_scales<with<mxfp8_e4m3, subnormal_to_zero>>();
}

TEST_CASE("block_scales: zeros are special where a scale of 0 does not say that all codes are +0") {
  const auto of_zeros = []<class S>(std::type_identity<S>) {
    const std::uint32_t amax[] = {bits_of(1.f), 0};
    float units[2], scales[2];
    return simd::block_scales<S>(amax, 2, units, scales);
  };
  using simd::blocks_are;
  using plain = scheme<e4m3, group<32>>;
  CHECK(of_zeros(std::type_identity<plain>{}) == blocks_are::ordinary);
  CHECK(of_zeros(std::type_identity<with<plain, block_ignores>>{}) == blocks_are::special);
  CHECK(of_zeros(std::type_identity<with<plain, stochastic<1>>>{}) == blocks_are::special);
  using literal = with<plain, bounded_amax<>, block_literal>;
  CHECK(of_zeros(std::type_identity<literal>{}) == blocks_are::ordinary);
  CHECK(of_zeros(std::type_identity<with<literal, stochastic<1>>>{}) == blocks_are::special);
}

TEST_CASE("block_scales: numbers fit unless a scale is kept inside its format, or cannot move the grid") {
  const auto what = []<class S>(std::type_identity<S>, std::initializer_list<float> maxima) {
    std::vector<std::uint32_t> amax;
    for (const float m : maxima) amax.push_back(bits_of(m));
    std::vector<storage_t<typename S::scale_format>> units(amax.size());
    std::vector<float> scales(amax.size());
    return simd::block_scales<S>(amax.data(), static_cast<index_t>(amax.size()), units.data(), scales.data());
  };
  using simd::blocks_are;
  CHECK((what(std::type_identity<mxfp8_e4m3>{}, {1.f, 0.f, 3e10f, 1e-20f}) == blocks_are::fitting));
  CHECK((what(std::type_identity<mxfp8_e4m3>{}, {1.f, 1e-37f}) == blocks_are::ordinary));
  CHECK((what(std::type_identity<mxfp8_e4m3>{}, {1.f, 3e38f}) == blocks_are::ordinary));
  CHECK((what(std::type_identity<nvfp4>{}, {1.f, 448.f * 6.f}) == blocks_are::fitting));
  CHECK((what(std::type_identity<nvfp4>{}, {1.f, 448.f * 6.f + 1.f}) == blocks_are::ordinary));
  CHECK((what(std::type_identity<int8_group<32>>{}, {1.f, 3e38f, 0.f, 1e-40f}) == blocks_are::fitting));
  CHECK((what(std::type_identity<with<int8_group<32>, scale_as<f16>>>{}, {1.f, 1e8f}) == blocks_are::ordinary));
}

TEST_CASE("block_scales: two levels, under tensor scales that fit and that do not") {
  using S = with<nvfp4, tensor_scale<f32>>;
  for (const float term : {1.f, 0.0037f, 1e-20f, 3e20f}) check_scales<S>(term);
  std::uint32_t amax = bits_of(1.f);
  std::uint8_t unit = 0;
  float scale = 0.f;
  using simd::blocks_are;
  CHECK((simd::block_scales<S>(&amax, 1, &unit, &scale, 1e-40f) == blocks_are::special));
  CHECK((simd::block_scales<S>(&amax, 1, &unit, &scale, 0.f) == blocks_are::special));
}

TEST_CASE("block_scales: a NaN or an infinity is reported, wherever it is") {
  for (const std::uint32_t odd : {infinity_bits, infinity_bits + 1, 0x7fffffffu})
    for (index_t at = 0; at < 70; ++at) {
      std::vector<std::uint32_t> amax(70, bits_of(1.f));
      std::vector<std::uint8_t> units(70);
      std::vector<float> scales(70);
      amax[static_cast<std::size_t>(at)] = odd;
      CHECK((simd::block_scales<mxfp4>(amax.data(), 70, units.data(), scales.data()) == simd::blocks_are::special));
    }
}

TEST_CASE("range_scales: scales and zero points equal the reference") {
  using wide = scheme<int8, group<32>, zero_point<int32>>;
  const auto check = []<class S>(std::type_identity<S>) {
    bool ok = true;
    for (index_t n = 1; n < 40; ++n) {
      std::vector<float> low, high;
      std::vector<std::uint32_t> amax;
      for (index_t i = 0; i < n; ++i) {
        const float a = check::random_bits()() % 5 == 0 ? 0.f : -std::abs(check::hard_float()),
                    b = check::random_bits()() % 5 == 0 ? 0.f : std::abs(check::hard_float());
        const bool finite = is_finite(a) && is_finite(b) && is_finite(b - a);
        low.push_back(finite ? a + 0.f : 0.f);
        high.push_back(finite ? b : 0.f);
        amax.push_back(std::max(bits_of(-low.back()), bits_of(high.back())) & magnitude_bits);
      }
      check::fenced<float> scales(n);
      check::fenced<std::int32_t> zeros(n);
      check::fenced<storage_t<typename S::scale_format>> units(n);
      ok = ok && simd::range_scales<S>(amax.data(), low.data(), high.data(), n, units.data(), scales.data(),
                                       zeros.data()) == simd::blocks_are::fitting;
      for (index_t i = 0; i < n; ++i) {
        const std::size_t k = static_cast<std::size_t>(i);
        const auto p = reference::parameters_of<S>({amax[k], low[k], high[k]});
        ok = ok && bits_of(p.code_scale) == bits_of(scales[i]) && p.zero_point == zeros[i];
        ok = ok && p.scale_code == detail::code_of<typename S::scale_format>(units[i]);
      }
    }
    CHECK(ok);
  };
  check(std::type_identity<uint4_group<32>>{});
  check(std::type_identity<uint8_per_tensor>{});
  check(std::type_identity<wide>{});
  const std::uint32_t amax = bits_of(3e38f);
  const float low = -3e38f, high = 3e38f;
  float scale = 0.f;
  std::int32_t zero = 0;
  // Their distance is infinite.
  CHECK(
      (simd::range_scales<uint4_group<32>>(&amax, &low, &high, 1, &scale, &scale, &zero) == simd::blocks_are::special));
}

TEST_CASE("range_scales: numbers do not fit a scale whose inverse is infinite, where they are multiplied by it") {
  using inverted = with<uint4_group<32>, reciprocal>;
  const auto blocks = []<class S>(std::type_identity<S>, float high) {
    const std::uint32_t amax[] = {bits_of(1.f), bits_of(high), 0};
    const float lows[] = {0.f, 0.f, 0.f}, highs[] = {1.f, high, 0.f};
    float units[3], scales[3];
    std::int32_t zeros[3];
    return simd::range_scales<S>(amax, lows, highs, 3, units, scales, zeros);
  };
  const float least = 0x1p-128f;  // 1 / least is infinite
  CHECK(blocks(std::type_identity<inverted>{}, 15.f * least) == simd::blocks_are::ordinary);
  CHECK(blocks(std::type_identity<inverted>{}, float_of(64)) == simd::blocks_are::ordinary);
  CHECK(blocks(std::type_identity<inverted>{}, 16.f * least) == simd::blocks_are::fitting);
  CHECK(blocks(std::type_identity<uint4_group<32>>{}, 15.f * least) == simd::blocks_are::fitting);
}

TEST_CASE("range_scales: scales of few digits equal the reference, or it has to look at them") {
  const auto check = []<class S>(std::type_identity<S>, int lowest, int highest, simd::blocks_are wanted) {
    using F = typename S::scale_format;
    int usual = 0;
    for (index_t round = 0; round < 400; ++round) {
      const index_t n = 1 + round % 70;
      std::vector<float> low, high;
      std::vector<std::uint32_t> amax;
      for (index_t i = 0; i < n; ++i) {
        const auto number = [&] {
          const int e = lowest + static_cast<int>(check::random_below(static_cast<std::uint32_t>(highest - lowest)));
          return check::random_below(5) == 0 ? 0.f
                                             : exp2i(e) * (1.f + static_cast<float>(check::random_below(1000)) / 1000);
        };
        low.push_back(0.f - number()), high.push_back(number());
        amax.push_back(bits_of(std::max(-low.back(), high.back())) & magnitude_bits);
      }
      check::fenced<float> scales(n);
      check::fenced<std::int32_t> zeros(n);
      check::fenced<storage_t<F>> units(n);
      const auto blocks =
          simd::range_scales<S>(amax.data(), low.data(), high.data(), n, units.data(), scales.data(), zeros.data());
      if (blocks == simd::blocks_are::special) continue;
      ++usual;
      bool ok = blocks == wanted;
      for (index_t i = 0; i < n; ++i) {
        const std::size_t k = static_cast<std::size_t>(i);
        const auto p = reference::parameters_of<S>({amax[k], low[k], high[k]});
        ok = ok && bits_of(p.code_scale) == bits_of(scales[i]) && p.zero_point == zeros[i];
        ok = ok && p.scale_code == detail::code_of<F>(units[i]);
      }
      CHECK(ok);
    }
    return usual;
  };
  using simd::blocks_are;
  CHECK(check(std::type_identity<with<uint4_group<32>, scale_as<f16>>>{}, -8, 15, blocks_are::fitting) == 400);
  CHECK(check(std::type_identity<with<uint4_group<32>, scale_as<f16>>>{}, -12, 22, blocks_are::fitting) < 300);
  CHECK(check(std::type_identity<with<uint4_group<32>, scale_as<bf16>>>{}, -100, 100, blocks_are::fitting) == 400);
  CHECK(check(std::type_identity<with<uint8_per_tensor, scale_as<bf16>>>{}, -60, 60, blocks_are::ordinary) == 400);
  CHECK(check(std::type_identity<with<uint4_group<32>, scale_as<e4m3>>>{}, -1, 8, blocks_are::ordinary) == 400);
  CHECK(check(std::type_identity<with<uint4_group<32>, block_ignores>>{}, -60, 60, blocks_are::ordinary) == 400);
}

TEST_CASE("decode_scales: every code of every format") {
  const auto check = []<class F>(std::type_identity<F>) {
    constexpr index_t count = index_t{1} << F::bits;
    check::fenced<storage_t<F>> units(count);
    for (index_t i = 0; i < count; ++i) units[i] = detail::unit_from<F>(static_cast<std::uint32_t>(i));
    check::fenced<float> out(count);
    for (const index_t n : {count, count - 1, index_t{37}, index_t{1}, index_t{0}}) {
      simd::decode_scales<F>(units.data() + (count - n), n, out.data() + (count - n));
      bool ok = true;
      for (index_t i = count - n; i < count; ++i) {
        const float expected = decode<F>(static_cast<std::uint32_t>(i));
        ok = ok && (bits_of(out[i]) == bits_of(expected) || (is_nan(out[i]) && is_nan(expected)));
      }
      CHECK(ok);
    }
  };
  check(std::type_identity<e8m0>{});
  check(std::type_identity<e4m3>{});
  check(std::type_identity<e5m2>{});
  check(std::type_identity<bf16>{});
  check(std::type_identity<f16>{});
}
