// Mirrors include/qtensor/reference/codec.hpp: the integer formats and mxint8 against the oracle.
// SPDX-License-Identifier: BSD-3-Clause
#include "reference/codec_check.hpp"

QTENSOR_TEST_CODEC(qtensor::int8, "int8")
QTENSOR_TEST_CODEC(qtensor::uint8, "uint8")
QTENSOR_TEST_CODEC(qtensor::narrow_range<qtensor::int8>, "narrow_int8")
QTENSOR_TEST_CODEC(qtensor::int16, "int16")
QTENSOR_TEST_CODEC(qtensor::uint16, "uint16")
QTENSOR_TEST_CODEC(qtensor::int4, "int4")
QTENSOR_TEST_CODEC(qtensor::uint4, "uint4")
QTENSOR_TEST_CODEC(qtensor::int2, "int2")
QTENSOR_TEST_CODEC(qtensor::uint2, "uint2")
QTENSOR_TEST_CODEC(qtensor::mxint8_code, "mxint8")

TEST_CASE("codec int32: decodes two's complement exactly, beyond what a float holds") {
  const oracle::codec c = oracle::codec_of<qtensor::int32>("int32");
  oracle::random_bits random(32);
  for (std::uint32_t code : {0u, 1u, 0x7FFFFFFFu, 0x80000000u, 0xFFFFFFFFu, 0x01000001u})
    CHECK(c.decode(code) == static_cast<std::int32_t>(code));
  for (int i = 0; i < 10000; ++i) {
    const std::uint32_t code = random.word();
    REQUIRE(c.decode(code) == static_cast<std::int32_t>(code));
  }
}

TEST_CASE(
    "codec int32: adversarial inputs, bf16 and f16 numbers go to the oracle's neighbour under every choice of "
    "policies") {
  const oracle::codec c = oracle::codec_of<qtensor::int32>("int32");
  oracle::check_encode(c, oracle::adversarial(oracle::format_named("int32")));
  oracle::check_encode(c, oracle::every_bf16());
  oracle::check_encode(c, oracle::every_f16());
}
