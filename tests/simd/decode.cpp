// Mirrors include/qtensor/simd/decode.hpp: every code of every format, bit for bit, on each architecture.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/simd/decode.hpp>

#include "runs.hpp"

using namespace runs;

namespace {

/// Every code at every place of a block, and in random company.
template <class F, class Arch>
void check_values() {
  constexpr index_t step = 4 * simd::lanes<Arch>;
  const simd::decoder<F, Arch> decode;
  alignas(64) std::uint8_t codes[static_cast<std::size_t>(step)];
  float values[static_cast<std::size_t>(step)];
  for (std::uint32_t first = 0; first < 256 + 64; ++first) {
    for (index_t i = 0; i < step; ++i)
      codes[i] = static_cast<std::uint8_t>(
          (first < 256 ? first + static_cast<std::uint32_t>(i) : check::random_bits()()) & low_bits(F::bits));
    const auto v = decode(simd::code_bytes<Arch>{codes}, [](int) { return simd::ints<Arch>(0); });
    for (int k = 0; k < 4; ++k) simd::store(values + k * simd::lanes<Arch>, v[static_cast<std::size_t>(k)]);
    for (index_t i = 0; i < step; ++i)
      if (bits_of(values[i]) != bits_of(decode_table<F>[codes[i]]))
        FAIL(std::string(F::name), " ", std::string(simd::arch_name<Arch>), ": code ", int(codes[i]), " in lane ", i,
             " gives ", hex(bits_of(values[i])), ", not ", hex(bits_of(decode_table<F>[codes[i]])));
  }
}

template <class F>
void check_format() {
  check::on_every_arch([](auto arch) { check_values<F, decltype(arch)>(); });
  CHECK(decode_table<F>.size() == std::size_t{1} << F::bits);
}

struct e3m4 : minifloat<3, 4, 3, specials::ieee> {
  static constexpr fixed_string name = "e3m4";
};
struct e2m5 : minifloat<2, 5, 1, specials::nan_only> {
  static constexpr fixed_string name = "e2m5";
};
struct e2m2 : minifloat<2, 2, 1, specials::none> {
  static constexpr fixed_string name = "e2m2";
};
struct e3m3 : minifloat<3, 3, 3, specials::ieee> {
  static constexpr fixed_string name = "e3m3";
};
struct int3 : integer<3, signed> {
  static constexpr fixed_string name = "int3";
};
struct uint7 : integer<7, unsigned> {
  static constexpr fixed_string name = "uint7";
};
struct nf4 {  // values that need all bits of a float
  static constexpr int bits = 4;
  static constexpr bool is_integer = false, is_signed = true;
  static constexpr float max = 1.f, min = -1.f;
  static constexpr fixed_string name = "nf4";
  static constexpr float decode(std::uint32_t c) { return (static_cast<float>(c) - 7.f) / 8.1f; }
};
struct ninths {
  static constexpr int bits = 8;
  static constexpr bool is_integer = false, is_signed = true;
  static constexpr float max = 127.f / 9.f, min = -128.f / 9.f;
  static constexpr fixed_string name = "ninths";
  static constexpr float decode(std::uint32_t c) { return static_cast<float>(static_cast<int>(c) - 128) / 9.f; }
};
struct squares {  // six bits, no table of bytes
  static constexpr int bits = 6;
  static constexpr bool is_integer = false, is_signed = false;
  static constexpr float max = 63.f * 63.f / 7.f, min = 0.f;
  static constexpr fixed_string name = "squares";
  static constexpr float decode(std::uint32_t c) { return static_cast<float>(c * c) / 7.f; }
};
struct steps {  // bf16 values without a mirrored sign
  static constexpr int bits = 8;
  static constexpr bool is_integer = false, is_signed = true;
  static constexpr float max = 254.f, min = -256.f;
  static constexpr fixed_string name = "steps";
  static constexpr float decode(std::uint32_t c) { return static_cast<float>(2 * static_cast<int>(c) - 256); }
};

}  // namespace

TEST_CASE("all codes of 8-bit floats: NaN, infinities, -0 and subnormals included") {
  check_format<e4m3>();
  check_format<e5m2>();
  check_format<e4m3fnuz>();
  check_format<e5m2fnuz>();
  check_format<hif8>();
}
TEST_CASE("all codes of narrower floats") {
  check_format<e3m2>();
  check_format<e2m3>();
  check_format<e2m1>();
  check_format<e1m2>();
  check_format<e2m2>();
  check_format<e3m3>();
}
TEST_CASE("all codes of integers and fixed point") {
  check_format<int8>();
  check_format<uint8>();
  check_format<int4>();
  check_format<uint4>();
  check_format<int2>();
  check_format<uint2>();
  check_format<int3>();
  check_format<uint7>();
  check_format<mxint8_code>();
}
TEST_CASE("all codes of a user's own formats, whatever decodes them") {
  check_format<e3m4>();
  check_format<e2m5>();
  check_format<nf4>();
  check_format<ninths>();
  check_format<squares>();
  check_format<steps>();
}
TEST_CASE("find_eighths: HiFloat8's codes come in patterns; NaN among them, or values at random, do not") {
  constexpr auto eighths = simd::detail::find_eighths<hif8>;
  static_assert(eighths.has_value() && eighths->infinity == 0x6f);
  static_assert(!simd::detail::find_eighths<e4m3>.has_value() && !simd::detail::find_eighths<int8>.has_value());
  for (std::uint32_t c = 0; c < 128; ++c) {
    if (c == eighths->infinity) continue;
    const std::uint32_t pattern = eighths->pattern[c >> 3], k = pattern >> 7, at = (pattern & 15) ^ (c & 7);
    const auto exponent = static_cast<std::uint8_t>(eighths->first[c >> 3] + eighths->exponents[k][at]);
    CHECK(bits_of(decode<hif8>(c)) == (std::uint32_t{exponent} << 23 | std::uint32_t{eighths->fractions[k][at]} << 16));
  }
}

TEST_CASE("zero points are subtracted before the conversion") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    const simd::decoder<int8, A> decode;
    std::uint8_t codes[64] = {0x80, 0x7f, 1};
    float values[64];
    const auto v = decode(simd::code_bytes<A>{codes}, [](int k) { return simd::ints<A>(k == 0 ? 1 << 24 : 0); });
    simd::store(values, v[0]);
    CHECK(values[0] == -16777344.f);
    CHECK(values[1] == static_cast<float>(127 - (1 << 24)));
    CHECK(values[2] == -16777215.f);
  });
}
