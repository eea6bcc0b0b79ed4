// Mirrors include/qtensor/simd/dequantize.hpp: runs of every length, granularity and place in memory, each architecture
// against the reference.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/simd/dequantize.hpp>

#include "runs.hpp"

using namespace runs;

namespace {

template <class S, class Arch>
void check_run(index_t n, index_t group) {
  if constexpr (!std::is_same_v<Arch, simd::scalar_arch>) {
    using reference = simd::kernel<simd::op::decode, S, simd::scalar_arch>;
    using kernel = simd::kernel<simd::op::decode, S, Arch>;
    using unit = simd::code_unit_t<S>;
    const index_t entries = group == 0 ? 1 : divide_up(n, group);
    for (const bool at_start : {false, true}) {
      check::fenced<unit> codes(check::random_codes<unit>(units<S>(n)), at_start);
      check::fenced<float> scales(entries, at_start), offsets(entries, at_start), got(n, at_start);
      check::fenced<std::int32_t> zeros(entries, at_start);
      for (index_t g = 0; g < entries; ++g) {
        scales[g] = check::hard_finite();
        offsets[g] = check::hard_finite();
        zeros[g] = check::random_below(16) == 0 ? static_cast<std::int32_t>(check::random_bits()())
                                                : static_cast<std::int32_t>(check::random_below(256)) - 128;
      }
      const simd::block_arrays p{scales.data(), S::has_zero_point ? zeros.data() : nullptr,
                                 S::has_offset ? offsets.data() : nullptr, 0.37f};
      std::vector<float> want(static_cast<std::size_t>(n));
      if (group == 0) {
        reference::uniform(codes.data(), n, p, want.data());
        kernel::uniform(codes.data(), n, p, got.data());
      } else if (group == 1) {
        reference::vector(codes.data(), n, p, want.data());
        kernel::vector(codes.data(), n, p, got.data());
      } else {
        reference::grouped(codes.data(), n, group, p, want.data());
        kernel::grouped(codes.data(), n, group, p, got.data());
      }
      for (index_t i = 0; i < n; ++i) {
        const float w = want[static_cast<std::size_t>(i)];
        if (bits_of(got[i]) != bits_of(w))
          FAIL(std::string(S::name), " ", std::string(simd::arch_name<Arch>), " group ", group, " element ", i, " of ",
               n, ": code ", code_at<S>(codes.data(), i), " gives ", hex(bits_of(got[i])), ", not ", hex(bits_of(w)));
      }
    }
  }
}

template <class S>
void check_runs() {
  static_assert(simd::vector_decodable<S>);
  simd::archs::for_each([](auto arch) {
    using A = decltype(arch);
    constexpr index_t longest = 16 * simd::lanes<A> + 3;
    for (index_t n = 1; n <= longest; ++n)
      for (const index_t group : {0, 1}) check_run<S, A>(n, group);
    for (const index_t group : {2, 3, 4, 5, 7, 8, 15, 16, 24, 32, 33, 48, 64, 100, 128, 500, 512, 513, 600, 1024})
      for (const index_t n : {1, 31, 64, 65, 127, 130, 511, 512, 515, 1027, 2051}) check_run<S, A>(n, group);
  });
  CHECK(std::string(simd::kernel_name<simd::op::decode, S>()) ==
        std::string(simd::arch_name<simd::best_arch> == "portable" ? "reference" : simd::arch_name<simd::best_arch>));
}

// Policies change no value: a kernel of a user's is found under the stored form of the scheme.
struct thirds : integer<8, unsigned> {
  static constexpr fixed_string name = "thirds";
};
using thirds_scheme = scheme<thirds, group<16>, nearest_away>;

}  // namespace

template <simd::usable_arch A>
struct qtensor::simd::kernel<qtensor::simd::op::decode, qtensor::stored<thirds_scheme>, A> {
  static constexpr bool enabled = true;
  static constexpr std::string_view name = "thirds";
  static void uniform(const std::uint8_t* codes, index_t n, const block_arrays& p, float* out) {
    for (index_t i = 0; i < n; ++i) out[i] = static_cast<float>(codes[i]) / 3.f * p.scales[0];
  }
  static void vector(const std::uint8_t* codes, index_t n, const block_arrays& p, float* out) {
    uniform(codes, n, p, out);
  }
  static void grouped(const std::uint8_t* codes, index_t n, index_t, const block_arrays& p, float* out) {
    uniform(codes, n, p, out);
  }
};

TEST_CASE("int8: every length and granularity, both ends fenced") { check_runs<stored<int8_group<32>>>(); }
TEST_CASE("uint8 with zero points of 32 bits") { check_runs<stored<scheme<uint8, group<32>, zero_point<int32>>>>(); }
TEST_CASE("int4 with zero points") { check_runs<stored<scheme<int4, group<32>, zero_point<int8>>>>(); }
TEST_CASE("uint2 with offsets") { check_runs<stored<scheme<uint2, group<32>, offset<f32>, static_only>>>(); }
TEST_CASE("mxfp8: every length and granularity, both ends fenced") { check_runs<stored<mxfp8_e4m3>>(); }
TEST_CASE("mxfp6: every length and granularity, both ends fenced") { check_runs<stored<mxfp6_e3m2>>(); }
TEST_CASE("nvfp4 with a tensor scale") { check_runs<stored<with<nvfp4, tensor_scale<f32>>>>(); }
TEST_CASE("hif8 with offsets") { check_runs<stored<scheme<hif8, group<32>, offset<f32>, static_only>>>(); }

TEST_CASE("run functions: nothing for n = 0, the reference for what vectors cannot do") {
  float out[3] = {7.f, 7.f, 7.f};
  const float s[3] = {2.f, 3.f, 4.f};
  simd::decode_uniform<mxfp4>(nullptr, 0, {1.f}, 0, out);
  simd::decode_vector<mxfp4>(nullptr, 0, nullptr, nullptr, out);
  simd::decode_grouped<mxfp4>(nullptr, 0, 32, nullptr, nullptr, out);
  CHECK(out[0] == 7.f);
  using upside_down = scheme<int4, group<2>, planar<high_first>>;
  CHECK(std::string(simd::kernel_name<simd::op::decode, upside_down>()) == "reference");
  const std::uint8_t packed[2] = {0x3e, 0x50};
  simd::decode_grouped<upside_down>(packed, 3, 2, s, nullptr, out);
  CHECK(out[0] == 6.f);
  CHECK(out[1] == -4.f);
  CHECK(out[2] == 15.f);
  const std::int16_t wide[2] = {-300, 5};
  using wide_scheme = scheme<int16, per_tensor, zero_point<int32>>;
  simd::decode_uniform<wide_scheme>(reinterpret_cast<const simd::code_unit_t<wide_scheme>*>(wide), 2, {0.5f}, 10, out);
  CHECK(out[0] == -155.f);
}

TEST_CASE("a user's own kernel is found under the stored form of its scheme") {
  CHECK(std::string(simd::kernel_name<simd::op::decode, stored<thirds_scheme>>()) == "thirds");
  const std::uint8_t codes[2] = {3, 9};
  float out[2];
  simd::decode_uniform<thirds_scheme>(codes, 2, {2.f}, 0, out);
  CHECK(out[0] == 2.f);
  CHECK(out[1] == 6.f);
}

TEST_CASE("decode_values: every code of every length as bf16, nothing outside") {
  const auto check = []<class F>(std::type_identity<F>) {
    if constexpr (simd::bf16_values<F>) {
      bool ok = true;
      for (const index_t n : {0, 1, 3, 31, 32, 33, 63, 64, 65, 127, 128, 511, 512, 513, 1000}) {
        check::fenced<std::uint8_t> codes(n), packed((n * F::bits + 7) / 8);
        check::fenced<std::uint16_t> out(n);
        for (index_t i = 0; i < n; ++i) codes[i] = static_cast<std::uint8_t>((i * 37 + n) & ((1 << F::bits) - 1));
        simd::pack_codes<simd::best_arch, F::bits>(codes.data(), n, packed.data());
        simd::decode_values<F>(packed.data(), n, out.data());
        for (index_t i = 0; i < n; ++i) {
          const float expected = decode<F>(codes[i]);
          ok = ok && (float_of(std::uint32_t{out[i]} << 16) == expected || is_nan(expected)) &&
               (out[i] >> 15) == (bits_of(expected) >> 31);
        }
      }
      CHECK(ok);
    }
  };
  check(std::type_identity<e4m3>{});
  check(std::type_identity<e5m2>{});
  check(std::type_identity<hif8>{});
  check(std::type_identity<e2m3>{});
  check(std::type_identity<e2m1>{});
}
