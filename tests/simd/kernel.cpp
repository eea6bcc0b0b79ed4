// Mirrors include/qtensor/simd/kernel.hpp: look-up by operation, scheme and architecture.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <qtensor/scheme/schemes.hpp>
#include <qtensor/simd/kernel.hpp>
#include <string>

using namespace qtensor;

namespace {

// An operation of a user's: the plain kernel for every scheme, a better one for int8 where there are vectors.
struct count_bits {};

// A scheme with a name of its own.
struct weights : int8_group<32> {};

}  // namespace

template <quantization_scheme S>
struct qtensor::simd::kernel<count_bits, S, simd::scalar_arch> {
  static constexpr bool enabled = true;
  static constexpr std::string_view name = "plain";
  static int run() { return S::code_format::bits; }
};
template <simd::usable_arch A>
requires(!std::is_same_v<A, simd::scalar_arch>) struct qtensor::simd::kernel<count_bits, int8_group<32>, A> {
  static constexpr bool enabled = true;
  static constexpr std::string_view name = simd::arch_name<A>;
  static int run() { return 800; }
};

TEST_CASE("the best architecture that has a kernel for the scheme, else the scalar one") {
  constexpr bool vectors = simd::archs::size > 1;
  CHECK(simd::best_kernel<count_bits, mxfp4>::run() == 4);
  CHECK(std::string(simd::kernel_name<count_bits, mxfp4>()) == "plain");
  CHECK(simd::best_kernel<count_bits, int8_group<32>>::run() == (vectors ? 800 : 8));
  CHECK(std::string(simd::kernel_name<count_bits, int8_group<32>>()) ==
        std::string(vectors ? simd::arch_name<simd::best_arch> : "plain"));
}

TEST_CASE("a scheme with a name of its own has the kernels of the scheme it derives from") {
  CHECK(std::is_same_v<simd::best_kernel<count_bits, weights>, simd::best_kernel<count_bits, int8_group<32>>>);
}

TEST_CASE("without a specialisation there is no kernel") {
  static_assert(!simd::kernel<int, mxfp4, simd::best_arch>::enabled);
  CHECK(!simd::kernel<int, mxfp4, simd::scalar_arch>::enabled);
}

TEST_CASE("units: bytes for packed codes, the format's storage for others") {
  static_assert(std::is_same_v<simd::code_unit_t<mxfp4>, std::uint8_t>);
  static_assert(std::is_same_v<simd::code_unit_t<int8_per_tensor>, std::int8_t>);
  CHECK(simd::unit_of<mxfp4>(6) == 3);
  CHECK(simd::unit_of<mxfp6_e2m3>(8) == 6);
  CHECK(simd::unit_of<int8_per_tensor>(7) == 7);
}

TEST_CASE("kernels of runs: one for schemes that share scales otherwise or compute them otherwise") {
  using namespace simd::detail;
  static_assert(std::is_same_v<encoding_form<int8_per_tensor>, encoding_form<with<int8_per_tensor, per_channel<0>>>>);
  static_assert(std::is_same_v<encoding_form<mxfp8_e4m3>, encoding_form<with<mxfp8_e4m3, mx_rceil, group<32, 0>>>>);
  static_assert(!std::is_same_v<encoding_form<mxfp8_e4m3>, encoding_form<with<mxfp8_e4m3, group<16>>>>);
  static_assert(!std::is_same_v<encoding_form<mxfp8_e4m3>, encoding_form<with<mxfp8_e4m3, toward_zero>>>);
  static_assert(std::is_same_v<decoding_form<mxfp8_e4m3>, decoding_form<with<mxfp8_e4m3, group<16>, toward_zero>>>);
  static_assert(!std::is_same_v<decoding_form<mxfp8_e4m3>, decoding_form<mxfp8_e5m2>>);
  CHECK(static_group<encoding_form<mxfp8_e4m3>::granularity_type> == 32);
  CHECK(static_group<decoding_form<mxfp8_e4m3>::granularity_type> == 0);
}
