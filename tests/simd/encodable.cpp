// Mirrors include/qtensor/simd/encodable.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <qtensor/scheme/schemes.hpp>
#include <qtensor/simd/encodable.hpp>

using namespace qtensor;

namespace {

template <int Bits>
struct list_of_values {
  static constexpr int bits = Bits;
  static constexpr bool is_integer = false, is_signed = true;
  static constexpr float min = -1.f, max = 1.f;
  static constexpr fixed_string name = "list_of_values";
  static constexpr float decode(std::uint32_t code) {
    return static_cast<float>(code & low_bits(Bits)) * 2.f / static_cast<float>(low_bits(Bits)) - 1.f;
  }
};

}  // namespace

TEST_CASE("vector_encodable: formulas and short lists, deterministic roundings, codes in order") {
  CHECK(simd::vector_encodable<int8_per_tensor>);
  CHECK(simd::vector_encodable<uint4_group<32>>);
  CHECK(simd::vector_encodable<scheme<int2, group<32>>>);
  CHECK(simd::vector_encodable<mxint8>);
  CHECK(simd::vector_encodable<mxfp6_e3m2>);
  CHECK(simd::vector_encodable<with<mxfp4, toward_negative>>);
  CHECK(simd::vector_encodable<hif8_block<1, 1>>);
  CHECK(simd::vector_encodable<with<hif8_block<1, 1>, nearest_even>>);
  CHECK_FALSE(simd::vector_encodable<with<hif8_block<1, 1>, toward_negative>>);
  CHECK_FALSE(simd::vector_encodable<with<hif8_block<1, 1>, to_special>>);
  CHECK_FALSE(simd::vector_encodable<scheme<int16, per_tensor>>);
  CHECK(simd::vector_encodable<scheme<list_of_values<4>, per_tensor>>);
  CHECK_FALSE(simd::vector_encodable<scheme<list_of_values<6>, per_tensor>>);
  CHECK_FALSE(simd::vector_encodable<with<int8_per_tensor, stochastic<1>>>);
  CHECK_FALSE(simd::vector_encodable<with<mxfp4, planar<high_first>>>);
}

TEST_CASE("wide_encodable: integers of 16 and 32 bits, bf16 and f16 by ties to even that keep NaN") {
  CHECK(simd::wide_encodable<scheme<uint16, per_tensor>>);
  CHECK(simd::wide_encodable<with<scheme<int32, per_tensor>, toward_zero, nan_to_max>>);
  CHECK(simd::wide_encodable<scheme<bf16, per_tensor, to_special>>);
  CHECK(simd::wide_encodable<scheme<f16, group<32>, divide_in<f16>>>);
  CHECK_FALSE(simd::wide_encodable<scheme<bf16, per_tensor, toward_zero>>);
  CHECK_FALSE(simd::wide_encodable<scheme<f16, per_tensor, nan_to_zero>>);
  CHECK_FALSE(simd::wide_encodable<scheme<f16, per_tensor, stochastic<1>>>);
  CHECK_FALSE(simd::wide_encodable<int8_per_tensor>);
}

TEST_CASE("find_binade_steps: HiFloat8 has them, other formats do not") {
  constexpr auto steps = simd::detail::find_binade_steps<hif8>;
  REQUIRE(steps.has_value());
  CHECK(steps->high == bits_of(32768.f) >> 16);
  CHECK(steps->low == bits_of(0x1p-24f) >> 16);
  CHECK(steps->shift[127 & 63] == 4);                             // 1.0: three mantissa bits
  CHECK(steps->half[127 & 63] == 8);                              // half of an eighth
  CHECK(((0x3f80u >> 4) + steps->base[127 & 63]) % 256 == 0x08);  // the code of 1.0
  // By slopes: 1, 2, 4, 8, 4, 2 codes a binade; 1.0 is the 64th value after zero.
  CHECK(steps->smallest() == bits_of(0x1p-22f) >> 16);
  CHECK(steps->twos == 192 + 128 * 7);    // from 2^-15 on
  CHECK(steps->fours == 192 + 128 * 15);  // from 2^-7 on, and up to 2^8
  CHECK(steps->fours_wide == 128 * 15);
  CHECK(steps->eights == 192 + 128 * 19);  // from 2^-3 on, and up to 2^4
  CHECK(steps->eights_wide == 128 * 7);
  CHECK((64 ^ steps->code_of[64 / 8]) == 0x08);
  CHECK((8 ^ steps->code_of[1]) == 0x7e);  // 2^-15
  CHECK_FALSE(simd::detail::find_binade_steps<e4m3>.has_value());
  CHECK_FALSE(simd::detail::find_binade_steps<int8>.has_value());
}
