// Mirrors include/qtensor/compat/onednn_elements.hpp: every code of every type is read and written, at any place and
// length of a packed array.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <qtensor/compat/onednn_elements.hpp>

#include "compat/onednn_check.hpp"

using namespace onednn_check;
namespace pieces = qtensor::compat::onednn::pieces;

namespace {

/// All codes of 4 and 8 bits, in order; others spread over their range.
words some_codes(data_type type) {
  words all;
  const int bits = dnn::bits_of_type(type);
  for (std::uint32_t c = 0; c < (bits == 4 ? 16u : 256u); ++c)
    all.push_back(bits <= 8 ? c : bits == 16 ? c * 257 : c * 0x01010101u);
  return all;
}

std::vector<float> loaded(const buffer& from, index_t at, index_t n) {
  std::vector<float> out(static_cast<std::size_t>(n));
  pieces::load(from.type(), from.data(), at, n, out.data());
  return out;
}

}  // namespace

TEST_CASE("load: every code is its number") {
  for (const data_type type : all_types) {
    const words all = some_codes(type);
    const auto x = loaded(buffer(type, all), 0, static_cast<index_t>(all.size()));
    for (std::size_t i = 0; i < all.size(); ++i) {
      INFO(dnn::name_of(type), " code ", all[i]);
      const float expected = number(type, all[i]);
      CHECK((x[i] == expected || (std::isnan(x[i]) && std::isnan(expected))));
      CHECK(std::signbit(x[i]) == std::signbit(expected));
    }
  }
}

TEST_CASE("load and store: any place and length, of 4-bit codes whole bytes, elements around them stay") {
  for (const data_type type : {data_type::s4, data_type::f4_e2m1, data_type::u8, data_type::bf16, data_type::f32})
    for (index_t at = 0; at < 5; ++at)
      for (index_t n = 1; n < 40; ++n) {
        INFO(dnn::name_of(type), " at ", at, " n ", n);
        const bool packed = dnn::bits_of_type(type) == 4;
        if (packed && at % 2 != 0) continue;
        const words before = buffer(type, plain_codes(type, 50, 11)).codes();
        buffer array(type, before);
        const auto x = loaded(array, at + 3, n);
        pieces::store(type, x.data(), n, array.data(), at);
        words expected = before;
        for (index_t i = 0; i < n; ++i)
          expected[static_cast<std::size_t>(at + i)] = before[static_cast<std::size_t>(at + 3 + i)];
        if (packed && n % 2 != 0) expected[static_cast<std::size_t>(at + n)] = 0;
        CHECK(array.codes() == expected);
      }
}

TEST_CASE("store: what reads back is what was written, NaN payloads of e5m2 as far as it has room") {
  for (const data_type type : all_types) {
    const words all = some_codes(type);
    const auto n = static_cast<index_t>(all.size());
    const auto x = loaded(buffer(type, all), 0, n);
    buffer array(type, all.size());
    pieces::store(type, x.data(), n, array.data(), 0);
    const words back = array.codes();
    for (std::size_t i = 0; i < all.size(); ++i) {
      INFO(dnn::name_of(type), " code ", all[i]);
      if (!std::isnan(x[i])) CHECK(number(type, back[i]) == x[i]);
    }
  }
  const std::vector<float> nans = {qtensor::float_of(0x7FC00000), qtensor::float_of(0xFFE00000),
                                   qtensor::float_of(0x7F800001)};
  buffer array(data_type::f8_e5m2, nans.size());
  pieces::store(data_type::f8_e5m2, nans.data(), 3, array.data(), 0);
  CHECK(array.codes() == words{0x7E, 0xFF, 0x7E});
}

TEST_CASE("integers: values and ranges") {
  const buffer s4(data_type::s4, words{8, 7}), s32(data_type::s32, words{0x80000000u});
  CHECK(pieces::integer_at(data_type::s4, s4.data(), 0) == -8);
  CHECK(pieces::integer_at(data_type::u4, s4.data(), 0) == 8);
  CHECK(pieces::integer_at(data_type::s32, s32.data(), 0) == -(std::int64_t{1} << 31));
  CHECK(pieces::range_of(data_type::s32).high == 2147483647);
  CHECK(pieces::range_of(data_type::u4).low == 0);
}
