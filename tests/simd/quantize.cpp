// Mirrors include/qtensor/simd/quantize.hpp (and kernel.hpp): runs of every length, granularity and place in memory,
// each architecture against the reference. SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/simd/quantize.hpp>
#include <qtensor/simd/scales.hpp>
#include <qtensor/simd/statistics.hpp>

#include "runs.hpp"

using namespace runs;

namespace {

/// One run at both ends of guarded memory, with every architecture; group 0: uniform, 1: vector.
template <class S, class Arch>
void check_run(index_t n, index_t group, bool streams) {
  if constexpr (!std::is_same_v<Arch, simd::scalar_arch>) {
    using reference = simd::kernel<simd::op::encode, S, simd::scalar_arch>;
    using kernel = simd::kernel<simd::op::encode, S, Arch>;
    using unit = simd::code_unit_t<S>;
    const run_input in = run_input::make<S>(n, group == 0 ? n + 1 : group);
    const float tensor_scale = S::has_tensor_scale ? 0.37f : 1.f;
    for (const bool at_start : {false, true}) {
      const simd::traffic streamed{simd::fetch::near, true}, t = streams ? streamed : simd::traffic{};
      check::fenced<float> x(in.x, at_start), scales(in.scales, at_start);
      check::fenced<std::int32_t> zeros(in.zeros, at_start);
      check::fenced<unit> got(units<S>(n), at_start);
      std::vector<unit> want(static_cast<std::size_t>(units<S>(n)));
      std::memset(got.data(), 0x5a, want.size() * sizeof(unit));
      const std::int32_t* z = S::has_zero_point ? zeros.data() : nullptr;
      const std::int32_t z0 = S::has_zero_point && n > 0 ? zeros[0] : 0;
      const float s0 = n > 0 ? scales[0] : 1.f;
      if (group == 0) {
        reference::uniform(x.data(), n, {s0, tensor_scale}, z0, want.data());
        simd::detail::run_hinted<kernel>(t, [&](auto... hint) {
          kernel::uniform(x.data(), n, {s0, tensor_scale}, z0, got.data(), hint...);
        });
      } else if (group == 1) {
        reference::vector(x.data(), n, scales.data(), z, tensor_scale, want.data());
        simd::detail::run_hinted<kernel>(
            t, [&](auto... hint) { kernel::vector(x.data(), n, scales.data(), z, tensor_scale, got.data(), hint...); });
      } else {
        reference::grouped(x.data(), n, group, scales.data(), z, tensor_scale, want.data());
        simd::detail::run_hinted<kernel>(t, [&](auto... hint) {
          kernel::grouped(x.data(), n, group, scales.data(), z, tensor_scale, got.data(), hint...);
        });
      }
      simd::stream_fence<simd::best_arch>();
      compare_codes<S, Arch>(got.data(), want.data(), x.data(), n, "group " + std::to_string(group));
    }
  }
}

template <class S>
void check_runs() {
  check::archs::for_each([](auto arch) {
    using A = decltype(arch);
    constexpr index_t longest = 16 * simd::lanes<A> + 3;
    for (index_t n = 1; n <= longest; ++n)
      for (const index_t group : {0, 1}) check_run<S, A>(n, group, n % 2 == 0);
    for (const index_t group :
         {2, 3, 4, 5, 7, 8, 15, 16, 24, 32, 33, 48, 64, 80, 100, 128, 272, 512, 600, 2048, 2049, 2056})
      for (const index_t n : {1, 31, 64, 65, 127, 130, 515, 2048, 2051, 4131}) check_run<S, A>(n, group, n % 2 == 0);
    for (const index_t group : {512, 768})  // whole groups, of many scales
      for (const bool streams : {false, true}) check_run<S, A>(30 * group, group, streams);
    if constexpr (simd::turns_codes<S>)  // longer than what is turned at a time
      for (const index_t group : {0, 1, 32, 33, 1001, 4095, 4096, 4097, 9001})
        for (const index_t n : {8192, 20002, 20003}) check_run<S, A>(n, group, n % 2 == 0);
  });
  CHECK(std::string(simd::kernel_name<simd::op::encode, S>()) ==
        std::string(simd::arch_name<simd::best_arch> == "portable" ? "reference" : simd::arch_name<simd::best_arch>));
}

/// Groups of n numbers of which the largest is about 2^e; now and then zeros.
std::vector<float> numbers_in_groups(index_t n, index_t group, int low, int high) {
  std::vector<float> x;
  while (static_cast<index_t>(x.size()) < n) {
    const int e = low + static_cast<int>(check::random_below(static_cast<std::uint32_t>(high - low + 1)));
    const bool zeros = check::random_below(5) == 0;
    for (index_t i = 0; i < group && static_cast<index_t>(x.size()) < n; ++i) {
      const std::uint32_t bits = check::random_bits()();
      const int fall = static_cast<int>(check::random_below(4) == 0 ? check::random_below(30) : check::random_below(3));
      const float few = 1.f + static_cast<float>(bits >> 8 & 15u) / 16.f,
                  any = 1.f + static_cast<float>(bits >> 9) * 0x1p-23f;
      const float v = zeros ? 0.f : (bits & 2u ? few : any) * exp2i(std::max(e - fall, -126));
      x.push_back(bits & 1u ? -v : v);
    }
  }
  return x;
}

/// Numbers under the scales that a rule makes of them, by every architecture, beside the reference.
template <class S>
void check_fitting(index_t group, int low, int high) {
  int checked = 0;
  check::archs::for_each([&](auto arch) {
    using A = decltype(arch);
    using unit = simd::code_unit_t<S>;
    if constexpr (!std::is_same_v<A, simd::scalar_arch>)
      for (const index_t n : {index_t{1}, group, 4 * group, 7 * group + 5, index_t{4096}, index_t{2131}})
        for (int round = 0; round < 20; ++round) {
          check::fenced<float> x(numbers_in_groups(n, group, low, high));
          const index_t groups = divide_up(n, group);
          std::vector<float> scales(static_cast<std::size_t>(groups));
          std::vector<std::int32_t> zeros(scales.size());
          auto blocks = simd::blocks_are::special;
          if constexpr (S::has_zero_point) {
            std::vector<float> least(scales.size(), 0.f), most(scales.size(), 0.f);
            std::vector<std::uint32_t> amax(scales.size());
            for (index_t i = 0; i < n; ++i) {
              const auto g = static_cast<std::size_t>(i / group);
              least[g] = std::min(least[g], x[i]), most[g] = std::max(most[g], x[i]);
              amax[g] = std::max(amax[g], bits_of(x[i]) & magnitude_bits);
            }
            std::vector<storage_t<typename S::scale_format>> units(scales.size());
            blocks = simd::range_scales<S, A>(amax.data(), least.data(), most.data(), groups, units.data(),
                                              scales.data(), zeros.data());
          } else {
            std::vector<storage_t<typename S::scale_format>> units(scales.size());
            std::vector<std::uint32_t> amax(scales.size());
            for (index_t g = 0; g < groups; ++g)
              amax[static_cast<std::size_t>(g)] =
                  simd::amax_bits<A>(x.data() + g * group, std::min(group, n - g * group));
            blocks = simd::block_scales<S, A>(amax.data(), groups, units.data(), scales.data());
          }
          if (blocks != simd::blocks_are::fitting) continue;
          ++checked;
          const std::int32_t* z = S::has_zero_point ? zeros.data() : nullptr;
          std::vector<unit> want(static_cast<std::size_t>(units<S>(n)));
          check::fenced<unit> got(units<S>(n), round % 4 == 0);
          simd::kernel<simd::op::encode, S, simd::scalar_arch>::grouped(x.data(), n, group, scales.data(), z, 1.f,
                                                                        want.data());
          const simd::fetch asked[] = {simd::fetch::far, simd::fetch::near, simd::fetch::pages, simd::fetch::nothing};
          const simd::traffic t{asked[round % 4], round % 2 == 0};
          simd::kernel<simd::op::encode, S, A>::fitting(x.data(), n, group, scales.data(), z, 1.f, got.data(), t);
          simd::stream_fence<simd::best_arch>();
          compare_codes<S, A>(got.data(), want.data(), x.data(), n, "fitting, groups of " + std::to_string(group));
          if (groups > 1) continue;
          std::fill_n(got.data(), units<S>(n), unit{});
          simd::kernel<simd::op::encode, S, A>::uniform_fitting(x.data(), n, element_scale{scales[0], 1.f}, zeros[0],
                                                                got.data(), t);
          simd::stream_fence<simd::best_arch>();
          compare_codes<S, A>(got.data(), want.data(), x.data(), n, "fitting, one scale");
        }
  });
  if (!std::is_same_v<simd::best_arch, simd::scalar_arch>) CHECK(checked > 20);
}

struct int3 : integer<3, signed> {
  static constexpr fixed_string name = "int3";
};
struct e2m2 : minifloat<2, 2, 1, specials::none> {
  static constexpr fixed_string name = "e2m2";
};

// A user's scheme, and the example of simd/kernel.hpp: this kernel writes the sign of each element.
struct sign_format : integer<8, signed> {
  static constexpr fixed_string name = "sign_format";
};
using signs = scheme<sign_format, group<16>>;
using other_signs = scheme<sign_format, group<8>>;

}  // namespace

template <simd::usable_arch A>
struct qtensor::simd::kernel<qtensor::simd::op::encode, signs, A> {
  static constexpr bool enabled = std::is_same_v<A, best_arch>;
  static constexpr std::string_view name = "signs";
  static void uniform(const float* x, index_t n, element_scale, std::int32_t, code_unit_t<signs>* codes) {
    for (index_t i = 0; i < n; ++i) codes[i] = x[i] < 0.f ? 0xff : 1;
  }
  static void vector(const float* x, index_t n, const float*, const std::int32_t*, float, code_unit_t<signs>* codes) {
    uniform(x, n, {1.f}, 0, codes);
  }
  static void grouped(const float* x, index_t n, index_t, const float*, const std::int32_t*, float,
                      code_unit_t<signs>* codes) {
    uniform(x, n, {1.f}, 0, codes);
  }
};

TEST_CASE("int8: every length and granularity, both ends fenced") { check_runs<int8_group<32>>(); }
TEST_CASE("int8 and int4 whose groups are not in their types: every length and granularity, both ends fenced") {
  check_runs<int8_per_channel<0>>();
  check_runs<scheme<int4, per_channel<0>>>();
}
TEST_CASE("uint8 with zero points: every length and granularity, both ends fenced") {
  check_runs<scheme<uint8, group<32>, zero_point<int32>, static_only>>();
}
TEST_CASE("integers of 16 bits, by every policy: every length and granularity, both ends fenced") {
  check_runs<scheme<int16, group<32>>>();
  check_runs<with<scheme<int16, group<32>, zero_point<int16>, static_only>, reciprocal, nearest_away, nan_to_max>>();
  check_runs<with<scheme<uint16, group<32>, zero_point<uint16>, static_only>, zp_before_round, nan_to_zero>>();
  check_runs<
      with<scheme<int16, group<16>, scale_as<f16>>, divide_in<f16>, toward_negative, stored_range<-300, 2000>>>();
  check::in_full<scheme<uint16, group<32>, zero_point<int32>, static_only>>([]<class S>() { check_runs<S>(); });
}
TEST_CASE("integers of 32 bits, bf16 and f16: every length and granularity, both ends fenced") {
  check_runs<scheme<int32, group<32>>>();
  check_runs<with<scheme<int32, group<32>, zero_point<int32>, static_only>, reciprocal, nearest_away, nan_to_max>>();
  check_runs<scheme<bf16, group<32>>>();
  check_runs<scheme<f16, group<32>, reciprocal, to_special>>();
}
TEST_CASE("codes of odd widths: every length and granularity, both ends fenced") {
  check_runs<scheme<int3, group<32>>>();
  check_runs<scheme<e2m2, group<32>>>();
}
TEST_CASE("mxfp8: every length and granularity, both ends fenced") { check_runs<mxfp8_e4m3>(); }
TEST_CASE("mxfp4: every length and granularity, both ends fenced") { check_runs<mxfp4>(); }
TEST_CASE("mxfp6: every length and granularity, both ends fenced") { check_runs<mxfp6_e3m2>(); }
TEST_CASE("hif8: every length and granularity, both ends fenced") {
  check_runs<scheme<hif8, group<32>>>();
  check::in_full<with<scheme<hif8, group<32>>, nearest_even>>([]<class S>() { check_runs<S>(); });
}
TEST_CASE("int2: every length and granularity, both ends fenced") { check_runs<scheme<int2, group<32>>>(); }
TEST_CASE("codes from the top of a byte down: every length and granularity, both ends fenced") {
  check_runs<scheme<int4, group<32>, planar<high_first>>>();
  check_runs<scheme<uint2, group<32>, zero_point<uint8>, static_only, planar<high_first>>>();
}
TEST_CASE("nvfp4 with a tensor scale: every length and granularity, both ends fenced") {
  check_runs<with<nvfp4, tensor_scale<f32>>>();
}

TEST_CASE("fitting numbers: powers of two of every size that move the grid, and beyond") {
  for (const index_t group : {32, 16, 64}) {
    check_fitting<mxfp8_e4m3>(group, -20, 20);
    check_fitting<mxfp4>(group, -20, 20);
  }
  check_fitting<mxfp8_e4m3>(32, -126, 127);
  check_fitting<mxfp8_e4m3>(32, -112, -100);
  check_fitting<mxfp8_e4m3>(32, 95, 107);
  check_fitting<mxfp8_e5m2>(32, -110, 105);
  check_fitting<mxfp6_e3m2>(32, -120, 100);
  check_fitting<with<mxfp8_e4m3, mx_even>>(32, -100, 100);
  check_fitting<with<mxfp4, mx_ceil>>(32, -100, 100);
  check_fitting<with<mxfp8_e4m3, nan_to_zero>>(32, -100, 100);
  check::in_full<mxfp6_e2m3>([]<class S>() { check_fitting<S>(32, -120, 100); });
  check::in_full<with<mxfp8_e5m2, mx_rceil>>([]<class S>() { check_fitting<S>(32, -100, 100); });
}
TEST_CASE("fitting numbers: ties away from zero") {
  check_fitting<with<mxfp8_e4m3, nearest_away>>(32, -126, 127);
  check_fitting<with<mxfp4, nearest_away>>(32, -126, 127);
  check_fitting<with<nvfp4, nearest_away>>(16, -10, 8);
  check_fitting<with<int8_group<32>, nearest_away>>(32, -126, 126);
  check_fitting<with<uint4_group<32>, nearest_away>>(32, -60, 60);
  check_fitting<scheme<e4m3, per_channel<0>, nearest_away>>(64, -120, 120);
  check::in_full<with<mxfp6_e3m2, nearest_away>>([]<class S>() { check_fitting<S>(32, -120, 100); });
}
TEST_CASE("fitting numbers: integers, zero points, and minifloats under other scales") {
  for (const index_t group : {16, 32, 64, 200, 1024}) {
    check_fitting<int8_group<32>>(group, -60, 60);
    check_fitting<scheme<e4m3, per_channel<0>>>(group, -120, 120);
    check::in_full<int8_per_channel<0>>([&]<class S>() { check_fitting<S>(group, -120, 120); });
  }
  check_fitting<int8_group<32>>(32, -126, 126);
  check_fitting<int4_group<32>>(32, -60, 60);
  check_fitting<uint4_group<32>>(32, -60, 60);
  check_fitting<scheme<uint8, group<32>, zero_point<uint8>, scale_as<f16>>>(32, -4, 14);
  check_fitting<uint8_per_channel<0>>(1024, -120, 120);
  check_fitting<nvfp4>(16, -10, 8);
  check_fitting<scheme<e2m1, group<32>>>(32, -110, 110);
  check_fitting<scheme<hif8, group<32>>>(32, -60, 60);
  check_fitting<with<scheme<hif8, group<32>>, nearest_even>>(32, -60, 60);
  check_fitting<with<int8_group<32>, scale_as<f16>>>(32, -10, 10);
  check_fitting<with<int8_group<32>, reciprocal>>(32, -126, 126);
  check::in_full<with<uint4_group<32>, scale_as<f16>>>([]<class S>() { check_fitting<S>(32, -10, 14); });
  check::in_full<scheme<e5m2, group<32>>>([]<class S>() { check_fitting<S>(32, -110, 110); });
}

TEST_CASE_TEMPLATE("uniform_bytes: rows are a byte a code, those of the reference, whichever way their scale takes", S,
                   int8_per_tensor, scheme<uint8, per_tensor, zero_point<uint8>>, scheme<e4m3, per_tensor>,
                   scheme<int8, per_tensor, zero_point<int32>>) {
  check::archs::for_each([](auto arch) {
    using A = decltype(arch);
    if constexpr (!std::is_same_v<A, simd::scalar_arch>) {
      using kernel = simd::vector_encoder<S, A>;
      constexpr index_t rows = 3, x_step = 300, step = 290;
      for (const float scale : {1.f, 0.3f, -0.7f, 0.f, 1e-41f, 3e38f, std::numeric_limits<float>::infinity()})
        for (const std::int32_t zero : {0, 7, 2000000000}) {
          if (zero != 0 && !S::has_zero_point) continue;
          if (zero > 255 && !std::is_same_v<typename S::zero_point_format, int32>) continue;
          const element_scale s{scale};
          for (const index_t n : {1, 15, 64, 67, 256, 289}) {
            std::vector<float> x(rows * x_step);
            for (float& v : x)
              v = check::random_below(4) == 0 ? check::hard_float()
                                              : static_cast<float>(static_cast<int>(check::random_bits()())) * 0x1p-24f;
            std::vector<std::uint8_t> bytes(rows * step, 0x5a);
            kernel::uniform_bytes(kernel::way_of(s, zero), x.data(), x_step, rows, n, s, zero, bytes.data(), step);
            for (index_t r = 0; r < rows; ++r)
              for (index_t i = 0; i < step; ++i) {
                const auto got = bytes[static_cast<std::size_t>(r * step + i)];
                const float v = x[static_cast<std::size_t>(r * x_step + i)];
                const auto want =
                    i < n ? static_cast<std::uint8_t>(quantize_element<S>(v, s, zero)) : std::uint8_t{0x5a};
                INFO("x=", v, " scale=", scale, " zero point=", zero);
                if (got != want) REQUIRE(got == want);
              }
          }
        }
    }
  });
}

TEST_CASE("run functions: nothing for n = 0, the reference for what vectors cannot do") {
  std::uint8_t codes[4] = {1, 2, 3, 4};
  const float x[3] = {0.3f, -2.f, 5.f}, s[3] = {1.f, 1.f, 1.f};
  simd::encode_uniform<mxfp4>(nullptr, 0, {1.f}, 0, codes);
  simd::encode_vector<mxfp4>(nullptr, 0, nullptr, nullptr, codes);
  simd::encode_grouped<mxfp4>(nullptr, 0, 32, nullptr, nullptr, codes);
  simd::encode_fitting<mxfp4>(nullptr, 0, 32, nullptr, nullptr, codes);
  CHECK(codes[0] == 1);
  CHECK(std::string(simd::kernel_name<simd::op::encode, with<hif8_block<1, 1>, to_special>>()) == "reference");
  simd::encode_vector<hif8_block<1, 1>>(x, 3, s, nullptr, codes);
  for (int i = 0; i < 3; ++i) CHECK(codes[i] == encode<hif8>(x[i]));
  using upside_down = scheme<int4, group<2>, planar<high_first>>;
  simd::encode_grouped<upside_down>(x, 3, 2, s, nullptr, codes);
  CHECK(codes[0] == 0x0e);
  CHECK(codes[1] == 0x50);
  using halves = scheme<bf16, per_tensor, toward_zero>;
  std::uint16_t wide[3];
  simd::encode_uniform<halves>(x, 3, {1.f}, 0, wide);
  CHECK(wide[0] == encode<bf16, toward_zero>(0.3f));
  CHECK(wide[2] == encode<bf16>(5.f));
}

namespace {

/// Numbers of all signs and exponents, infinities and NaN of many kinds, neighbours alike and not.
template <class S>
void check_float_codes() {
  using kernel = simd::kernel<simd::op::encode, S, simd::best_arch>;
  std::vector<float> x;
  for (std::uint32_t upper = 0; upper < 0x10000u; upper += 5)
    for (const std::uint32_t lower : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      x.push_back(float_of(((upper * (lower % 2 == 0 ? 1u : 0x9e37u)) & 0xffffu) << 16 | lower));
  const auto n = static_cast<index_t>(x.size());
  std::vector<std::uint16_t> codes(x.size());
  for (const float scale : {1.f, 0.5f, 1.7f, 0x1p-130f}) {
    kernel::uniform(x.data(), n, {scale}, 0, codes.data());
    for (std::size_t i = 0; i < x.size(); ++i)
      if (codes[i] != quantize_element<S>(x[i], {scale}, 0)) FAIL(name<S>.c_str(), ": ", x[i], " under ", scale);
  }
}

}  // namespace

TEST_CASE("bf16 and f16 under one scale: every kind of number, a mere cast or not") {
  check_float_codes<scheme<bf16, per_tensor>>();
  check_float_codes<scheme<bf16, per_tensor, to_special>>();
  check_float_codes<scheme<f16, per_tensor>>();
  check_float_codes<scheme<f16, per_tensor, to_special>>();
}

TEST_CASE("a user's own kernel is found for its scheme, and for no other") {
  CHECK(std::string(simd::kernel_name<simd::op::encode, signs>()) == "signs");
  CHECK(std::string(simd::kernel_name<simd::op::encode, other_signs>()) != "signs");
  const float x[3] = {0.3f, -2.f, 5.f}, s[1] = {1.f};
  std::uint8_t codes[3];
  simd::encode_grouped<signs>(x, 3, 16, s, nullptr, codes);
  CHECK(codes[0] == 1);
  CHECK(codes[1] == 0xff);
  codes[1] = 0;
  simd::encode_fitting<signs>(x, 3, 16, s, nullptr, codes);
  CHECK(codes[1] == 0xff);
}
