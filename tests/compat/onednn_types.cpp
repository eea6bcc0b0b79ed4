// Mirrors include/qtensor/compat/onednn_types.hpp: names and sizes of data types, the random words and roundings of
// NUMERICS 5.6.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <qtensor/compat/onednn_types.hpp>
#include <qtensor/reference/quantize.hpp>
#include <qtensor/scheme/schemes.hpp>
#include <string>

#include "core/sentence.hpp"

using namespace qtensor;
namespace dnn = qtensor::compat::onednn;
using dnn::data_type;

TEST_CASE("data types: names, formats, bits and bytes") {
  const auto format_of = [](data_type t) {
    std::string name;
    dnn::with_format(t, [&]<class F>(std::type_identity<F>) { name = std::string(F::name); });
    return name;
  };
  CHECK(dnn::name_of(data_type::f8_e4m3) == "f8_e4m3");
  CHECK(format_of(data_type::f8_e4m3) == "e4m3");
  CHECK(format_of(data_type::s4) == "int4");
  CHECK(format_of(data_type::e8m0) == "e8m0");
  CHECK(dnn::bits_of_type(data_type::f4_e2m1) == 4);
  CHECK(dnn::bits_of_type(data_type::s32) == 32);
  CHECK(dnn::bits_of_type(data_type::undef) == 0);
  CHECK(dnn::name_of(data_type::undef) == "undef");
  CHECK(dnn::is_integer(data_type::u4));
  CHECK_FALSE(dnn::is_integer(data_type::e8m0));
  CHECK(dnn::byte_count(data_type::u4, 5) == 3);
  CHECK(dnn::byte_count(data_type::bf16, 5) == 10);
  CHECK(sentence([] { dnn::with_format(static_cast<data_type>(99), [](auto) {}); }) ==
        "qtensor: oneDNN data type 99 is not one of those with a format here: f32, bf16, f16, f8_e5m2, f8_e4m3, "
        "f4_e2m1, e8m0, s32, s8, u8, s4 and u4.");
  CHECK(sentence([] { dnn::byte_count(data_type::f32, std::numeric_limits<index_t>::max() / 2); }).find("63 bits") !=
        std::string::npos);
}

TEST_CASE("philox: the known answer, and oneDNN's words, today's and those of 2025-03") {
  CHECK(qtensor::philox_words({0, 0, 0, 0}, {0, 0}) ==
        std::array<std::uint32_t, 4>{0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8});
  struct words {
    std::uint32_t seed, index, current, old;
  };
  for (const words& w : {words{0, 0, 0xFFD1728A, 0x5D940E0D}, words{0, 1, 0xFFD1728A, 0xA2B00D17},
                         words{0, 4, 0x48FF0914, 0x4370F0B1}, words{0, 1000, 0xF4061650, 0x443B340E},
                         words{12345, 0, 0x3CFF5B8A, 0xECC61752}, words{12345, 1, 0x3CFF5B8A, 0xFF150308},
                         words{12345, 2, 0x3CFF5B8A, 0x391AE11D}, words{12345, 3, 0x3CFF5B8A, 0xEE9DA289},
                         words{12345, 4, 0x97D6963D, 0x5CF011D5}, words{12345, 8, 0x4A86F5BF, 0x62005C54}}) {
    INFO("seed ", w.seed, " index ", w.index);
    CHECK(dnn::philox(w.index, w.seed) == w.current);
    CHECK(dnn::philox_2025(w.index, w.seed) == w.old);
  }
  CHECK(dnn::philox(std::uint64_t{5}, std::uint64_t{0x123456789ABCDEF}, std::uint64_t{7}) == 0x35F740C8);
}

TEST_CASE("stochastic rounding: bias and results of NUMERICS 5.6") {
  const auto e4 = [](std::uint32_t bits, std::uint32_t index, dnn::generator from) {
    return dnn::stochastically_rounded<e4m3>(float_of(bits), dnn::rounding_bias(index, 12345, 8, from));
  };
  CHECK(dnn::rounding_bias(0, 12345, 8) == 0x5B8A);
  CHECK(dnn::rounding_bias(1, 12345, 8) == 0x3CFF);
  CHECK(dnn::rounding_bias(0, 12345, 16) == 0x8A);
  CHECK(dnn::rounding_bias(3, 12345, 16) == 0x3C);
  CHECK(e4(0x3F8FDF3B, 0, dnn::generator::current) == 1.125f);
  CHECK(e4(0x3F8FDF3B, 1, dnn::generator::current) == 1.125f);
  CHECK(e4(0x3F8FDF3B, 0, dnn::generator::source_2025_03) == 1.f);
  CHECK(e4(0x3F8FDF3B, 1, dnn::generator::source_2025_03) == 1.125f);
  CHECK(e4(bits_of(1.06f), 0, dnn::generator::current) == 1.f);
  CHECK(e4(bits_of(.01f), 0, dnn::generator::current) == 0.f);
  CHECK(e4(bits_of(1000.f), 0, dnn::generator::current) == 448.f);
  CHECK(dnn::stochastically_rounded<e5m2>(.3f, dnn::rounding_bias(0, 12345, 8)) == .25f);
  for (std::uint32_t i = 0; i < 64; ++i)
    CHECK(dnn::stochastically_rounded<bf16>(float_of(0x3F808000), dnn::rounding_bias(i, 12345, 16)) == 1.f);
}

TEST_CASE("stochastic rounding: infinities, the largest floats, small negative numbers, NaN") {
  using dnn::stochastically_rounded;
  CHECK(stochastically_rounded<e5m2>(-infinity, 0xFFFF) == -57344.f);
  CHECK(stochastically_rounded<bf16>(std::numeric_limits<float>::max(), 0xFF) == decode<bf16>(0x7F7F));
  CHECK(bits_of(stochastically_rounded<f16>(-0x1p-15f, 0)) == 0);  // the sign is lost
  CHECK(stochastically_rounded<f16>(0x1p-14f, 0) == 0x1p-14f);
  CHECK(bits_of(stochastically_rounded<e4m3>(float_of(0xFFC00001), 5)) == 0xFFC00001);
}

TEST_CASE("stochastic_rounding: as a rounding of encode and of schemes, elements draw by their number") {
  using rounding = dnn::stochastic_rounding<12345>;
  CHECK(encode<e4m3, rounding>(float_of(0x3F8FDF3B), rounding::random_word(0)) == 0x39);
  CHECK(encode<bf16, rounding>(1.f + 0x1p-8f, rounding::random_word(3)) == 0x3F80);
  CHECK(encode<e4m3, rounding>(quiet_nan, 0) == 0x7F);
  CHECK(dnn::stochastic_rounding<12345, 8>::random_word(1) == rounding::random_word(9));

  using scheme_under_test = with<scheme<e4m3, per_tensor, static_only>, rounding>;
  tensor<scheme_under_test, extents<dynamic>> t(extents(40));
  t.scales()[0] = 1.f;
  const auto x = [](index_t i) { return 1.f + static_cast<float>(i) * 0x1p-7f; };
  reference::quantize_static([&](const auto& i) { return x(i[0]); }, t.span());
  for (index_t i = 0; i < 40; ++i) {
    const auto bias = dnn::rounding_bias(static_cast<std::uint32_t>(i), 12345, 8);
    CHECK(decode<e4m3>(t.code(i)) == dnn::stochastically_rounded<e4m3>(x(i), bias));
  }
}
