// Mirrors include/qtensor/policy/layout.hpp: the pack vectors of NUMERICS 1.1, 8.3 and 11, through tensors.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <qtensor/policy/layout.hpp>
#include <qtensor/reference/quantize.hpp>
#include <qtensor/scheme/scheme.hpp>
#include <string>
#include <vector>

using namespace qtensor;

namespace {

using bytes = std::vector<int>;

/// The code bytes of a row that holds these codes in order.
template <format Code, class Layout = planar<>>
bytes packed(const std::vector<std::uint32_t>& codes) {
  tensor<scheme<Code, per_tensor, Layout>, extents<dynamic>> t(extents<dynamic>(codes.size()));
  const auto span = t.span();
  for (std::size_t i = 0; i < codes.size(); ++i) span.set_storage_code({static_cast<index_t>(i)}, codes[i]);
  for (std::size_t i = 0; i < codes.size(); ++i) REQUIRE(t.code(static_cast<index_t>(i)) == codes[i]);
  return {t.codes().begin(), t.codes().end()};
}

/// The same from numbers, with scale 1.
template <format Code, class Layout = planar<>>
bytes packed_numbers(const std::vector<float>& x) {
  std::vector<std::uint32_t> codes;
  for (float v : x) codes.push_back(encode<Code>(v));
  return packed<Code, Layout>(codes);
}

/// Which code lies in the low and which in the high nibble of every byte.
template <class Order>
std::vector<index_t> first_bits(index_t n, int bits) {
  std::vector<index_t> out;
  for (index_t i = 0; i < n; ++i) out.push_back(Order::bit(i, n, bits));
  return out;
}
using positions = std::vector<index_t>;

}  // namespace

TEST_CASE("low_first: the pack vectors of NUMERICS 1.1") {
  CHECK(packed_numbers<int4>({1, -2}) == bytes{0xE1});
  CHECK(packed_numbers<int4>({7, -8}) == bytes{0x87});
  CHECK(packed_numbers<uint4>({15, 0}) == bytes{0x0F});
  CHECK(packed_numbers<uint4>({3}) == bytes{0x03});
  CHECK(packed_numbers<e2m1>({1.f, -6.f}) == bytes{0xF2});
  CHECK(packed_numbers<int2>({1, -2, -1, 0}) == bytes{0x39});
  CHECK(packed_numbers<uint2>({1, 2, 3, 0, 1}) == bytes{0x39, 0x01});
}

TEST_CASE("low_first: FP6 codes run across bytes, four in three (NUMERICS 11)") {
  CHECK(packed<e2m3>({0x01, 0x02, 0x03, 0x3F}) == bytes{0x81, 0x30, 0xFC});
  CHECK(packed<e3m2>({0x3F, 0x00, 0x3F, 0x00, 0x3F}) == bytes{0x3F, 0xF0, 0x03, 0x3F});
}

TEST_CASE("high_first: code 0 in the highest bits of its byte") {
  CHECK(packed<int4, planar<high_first>>({0x1, 0xE}) == bytes{0x1E});
  CHECK(packed<int4, planar<high_first>>({0x1, 0xE, 0x7}) == bytes{0x1E, 0x70});
  CHECK(packed<int2, planar<high_first>>({1, 2, 3, 0}) == bytes{0x6C});
}

TEST_CASE("split_halves: byte j holds codes j and j + n/2") {
  CHECK(first_bits<split_halves>(8, 4) == positions{0, 8, 16, 24, 4, 12, 20, 28});
  CHECK(first_bits<low_first>(4, 6) == positions{0, 6, 12, 18});
  CHECK(first_bits<high_first>(4, 4) == positions{4, 0, 12, 8});
  CHECK(first_bits<high_first>(3, 16) == positions{0, 16, 32});  // such codes share no byte
  CHECK(first_bits<high_first>(5, 2) == positions{6, 4, 2, 0, 14});
}

TEST_CASE("orders: every code has room of its own, whatever n") {
  const auto disjoint = [](auto order, index_t n, int bits) {
    std::vector<int> used(static_cast<std::size_t>((n * bits + 7) / 8 * 8), 0);
    for (index_t i = 0; i < n; ++i)
      for (int b = 0; b < bits; ++b) {
        const auto at = static_cast<std::size_t>(decltype(order)::bit(i, n, bits) + b);
        if (at >= used.size() || used[at]++ != 0) return false;
      }
    return true;
  };
  for (index_t n = 1; n <= 64; ++n) {
    INFO("n=", n);
    CHECK(disjoint(low_first{}, n, 4));
    CHECK(disjoint(low_first{}, n, 6));
    CHECK(disjoint(low_first{}, n, 3));
    CHECK(disjoint(high_first{}, n, 4));
    CHECK(disjoint(high_first{}, n, 2));
    CHECK(disjoint(split_halves{}, n, 4));
  }
}

TEST_CASE(
    "interleaved: scale, offset, codes of each block, little endian, without padding; a short block has a whole "
    "block's room") {
  using blocks = scheme<uint4, group<8>, scale_as<f16>, offset<bf16>, interleaved<split_halves>, static_only>;
  tensor<blocks, extents<dynamic>> t(extents<dynamic>(11));
  REQUIRE(t.blocks().size() == 2 * (2 + 2 + 4));
  const auto span = t.span();
  for (index_t i = 0; i < 11; ++i) span.set_storage_code({i}, static_cast<std::uint32_t>(i + 1));
  span.set_storage_scale_code({0}, 0x1234);
  span.set_storage_scale_code({8}, 0x5678);
  CHECK(bytes(t.blocks().begin(), t.blocks().end()) ==
        bytes{0x34, 0x12, 0, 0, 0x51, 0x62, 0x73, 0x84, 0x78, 0x56, 0, 0, 0x09, 0x0A, 0x0B, 0x00});
  for (index_t i = 0; i < 11; ++i) CHECK(t.code(i) == static_cast<std::uint32_t>(i + 1));
}

TEST_CASE(
    "high_bits_then_halves: bit 4 of code i is bit i of the first bytes, nibbles in halves follow; neighbours stay") {
  std::vector<std::uint8_t> memory(20, 0xFF);
  const auto code = [](index_t i) { return static_cast<std::uint32_t>(i * 7 + 3) & 31u; };
  for (index_t i = 0; i < 32; ++i) high_bits_then_halves::store(memory.data(), i, 32, code(i));
  for (index_t i = 0; i < 32; ++i) CHECK(high_bits_then_halves::load(memory.data(), i, 32) == code(i));
  high_bits_then_halves::store(memory.data(), 9, 32, code(9) ^ 31u);
  for (index_t i = 0; i < 32; ++i)
    CHECK(high_bits_then_halves::load(memory.data(), i, 32) == (i == 9 ? code(9) ^ 31u : code(i)));

  std::fill(memory.begin(), memory.end(), std::uint8_t{0});
  high_bits_then_halves::store(memory.data(), 10, 32, 0x1A);
  high_bits_then_halves::store(memory.data(), 26, 32, 0x05);
  CHECK(memory[1] == 0x04);       // bit 10
  CHECK(memory[4 + 10] == 0x5A);  // 10 and 26 share a byte
}

TEST_CASE("interleaved_with_sum: scale, sum, codes") {
  using blocks = scheme<int8, group<4>, scale_as<f16>, interleaved_with_sum<low_first, f16>>;
  tensor<blocks, extents<dynamic>> t(extents<dynamic>(4));
  REQUIRE(t.blocks().size() == 2 + 2 + 4);
  reference::quantize([](const auto& i) { return i[0] == 0 ? -127.f : 2.f; }, t.span());
  CHECK(bytes(t.blocks().begin(), t.blocks().end()) == bytes{0x00, 0x3C, 0x90, 0xD7, 0x81, 2, 2, 2});  // 1, -121
}

TEST_CASE(
    "interleaved_groups: the scales of a block's groups, then their codes; a short block has a whole block's room") {
  using blocks = scheme<uint4, group<4>, scale_as<e4m3>, interleaved_groups<2, split_halves>, static_only>;
  tensor<blocks, extents<dynamic>> t(extents<dynamic>(13));
  REQUIRE(t.blocks().size() == 2 * (2 + 2 * 2));
  const auto span = t.span();
  for (index_t i = 0; i < 13; ++i) span.set_storage_code({i}, static_cast<std::uint32_t>(i + 1));
  for (index_t i = 0; i < 13; i += 4) span.set_storage_scale_code({i}, static_cast<std::uint32_t>(0x40 + i));
  CHECK(bytes(t.blocks().begin(), t.blocks().end()) ==
        bytes{0x40, 0x44, 0x31, 0x42, 0x75, 0x86, 0x48, 0x4C, 0xB9, 0xCA, 0x0D, 0x00});
  for (index_t i = 0; i < 13; ++i) CHECK(t.code(i) == static_cast<std::uint32_t>(i + 1));
  CHECK(t.view().scale_code({7}) == 0x44);
}

TEST_CASE("names and concept") {
  CHECK(std::string(std::string_view(planar<>::name)) == "planar<low_first>");
  CHECK(std::string(std::string_view(interleaved<split_halves>::name)) == "interleaved<split_halves>");
  CHECK(std::string(std::string_view(interleaved_with_sum<low_first, f16>::name)) ==
        "interleaved_with_sum<low_first, f16>");
  CHECK(std::string(std::string_view(interleaved_groups<4, split_halves>::name)) ==
        "interleaved_groups<4, split_halves>");
  CHECK(interleaved_layout<interleaved<>>);
  CHECK(interleaved_layout<interleaved_groups<4>>);
  CHECK(interleaved_layout<interleaved_with_sum<low_first, f16>>);
  CHECK_FALSE(interleaved_layout<planar<>>);
}
