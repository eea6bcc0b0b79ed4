// Mirrors include/qtensor/tensor/bytes.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <array>
#include <qtensor/format/integer.hpp>
#include <qtensor/format/wide.hpp>
#include <qtensor/tensor/bytes.hpp>
#include <vector>

using namespace qtensor;

namespace {

/// A code at every position among bytes of ones and of zeros: it reads back, and no other bit changes. The bytes end
/// where the last code ends, so that a sanitizer sees a step beyond.
template <int Bits>
void check_every_position() {
  for (const std::uint8_t background : {0x00, 0xFF, 0xA5})
    for (index_t at = 0; at < 64; ++at) {
      const std::vector<std::uint8_t> before(static_cast<std::size_t>(divide_up(at + Bits, 8)), background);
      for (std::uint32_t code : {0u, 1u, low_bits(Bits), low_bits(Bits) >> 1, 0x55555555u & low_bits(Bits)}) {
        INFO("bits=", Bits, " at=", at, " code=", code);
        std::vector<std::uint8_t> bytes = before;
        detail::store_bits<Bits>(bytes.data(), at, code | ~low_bits(Bits));  // high bits of the code do not count
        REQUIRE(detail::load_bits<Bits>(bytes.data(), at) == code);
        for (index_t bit = 0; bit < static_cast<index_t>(8 * bytes.size()); ++bit) {
          if (bit >= at && bit < at + Bits) continue;
          const auto byte = static_cast<std::size_t>(bit / 8);
          REQUIRE(((bytes[byte] ^ before[byte]) >> (bit % 8) & 1) == 0);
        }
      }
    }
}

constexpr std::uint32_t stored_and_loaded() {
  std::array<std::uint8_t, 3> bytes{};
  for (index_t i = 0; i < 4; ++i)
    detail::store_bits<6>(bytes.data(), 6 * i, static_cast<std::uint32_t>(i == 3 ? 0x3F : i + 1));
  return bytes[0] | static_cast<std::uint32_t>(bytes[1]) << 8 | static_cast<std::uint32_t>(bytes[2]) << 16;
}
static_assert(stored_and_loaded() == 0xFC3081);  // NUMERICS 11: 81 30 FC

}  // namespace

TEST_CASE("store_bits and load_bits: every width up to 8, every position, nothing else touched") {
  check_every_position<1>();
  check_every_position<2>();
  check_every_position<3>();
  check_every_position<4>();
  check_every_position<5>();
  check_every_position<6>();
  check_every_position<7>();
  check_every_position<8>();
}

TEST_CASE("code_of and unit_from: a code and the unit that holds it") {
  CHECK(detail::code_of<int8>(-1) == 0xFF);
  CHECK(detail::unit_from<int8>(0x80) == -128);
  CHECK(detail::code_of<int16>(-2) == 0xFFFE);
  CHECK(detail::code_of<int32>(-1) == 0xFFFFFFFFu);
  CHECK(detail::code_of<f32>(-2.f) == 0xC0000000u);
  CHECK(detail::unit_from<f32>(0x3F800000u) == 1.f);
  CHECK(detail::code_of<int4>(0xFD) == 0x0D);  // one a byte: the upper bits do not count
}

TEST_CASE("load_unit and store_unit: little endian at any address") {
  std::array<std::uint8_t, 7> bytes{};
  detail::store_unit<f32>(bytes.data() + 1, 0x12345678u);
  CHECK(bytes == std::array<std::uint8_t, 7>{0, 0x78, 0x56, 0x34, 0x12, 0, 0});
  CHECK(detail::load_unit<f32>(bytes.data() + 1) == 0x12345678u);
  detail::store_unit<f16>(bytes.data() + 5, 0x3C00);
  CHECK(detail::load_unit<f16>(bytes.data() + 5) == 0x3C00);
  CHECK(detail::load_unit<int8>(bytes.data() + 6) == 0x3C);
}
