// What the tests of interleaved blocks share: blocks written and read by every architecture beside the reference.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/compat/ggml.hpp>
#include <qtensor/scheme/schemes.hpp>
#include <qtensor/simd/blocks_encode.hpp>
#include <string>
#include <vector>

#include "check.hpp"

namespace blocks {

using namespace qtensor;
namespace ggml = qtensor::compat::ggml;

/// A user's integer of an odd width.
struct int3 : integer<3, signed> {
  static constexpr fixed_string name = "int3";
};

/// Bytes of the blocks of n elements.
template <class S>
index_t size(index_t n) {
  using place = interleaved_block<S>;
  return divide_up(n, place::elements({})) * place::bytes({});
}
template <class S>
tensor_span<S, extents<dynamic>> row(std::uint8_t* bytes, index_t n) {
  return {{extents<dynamic>(n), {}, {}}, {bytes, {}, {}, {}, {}}};
}
template <class S>
std::vector<std::uint8_t> by_reference(const std::vector<float>& x) {
  const index_t n = static_cast<index_t>(x.size());
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(size<S>(n)));
  reference::quantize([&](const auto& i) { return x[static_cast<std::size_t>(i[0])]; }, row<S>(bytes.data(), n));
  return bytes;
}

/// The first byte that differs, or -1.
inline index_t difference(const std::vector<std::uint8_t>& expected, const std::uint8_t* got) {
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (expected[i] != got[i]) return static_cast<index_t>(i);
  return -1;
}

/// x under scales that blocks have already - their own, those of the block before, any bits - on every architecture.
template <class S>
void check_encode_static(const std::vector<float>& x) {
  using place = interleaved_block<S>;
  const index_t n = static_cast<index_t>(x.size());
  const auto bytes = static_cast<std::ptrdiff_t>(place::bytes({}));
  std::vector<std::uint8_t> given = by_reference<S>(x);
  const std::vector<std::uint8_t> own = given;
  for (std::ptrdiff_t at = bytes; at < static_cast<std::ptrdiff_t>(given.size()); at += bytes) {
    const std::uint32_t kind = check::random_below(4);
    if (kind == 0)
      for (std::ptrdiff_t i = at; i < at + bytes; ++i)
        given[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(check::random_bits()());
    if (kind == 1) std::copy_n(own.begin() + at - bytes, bytes, given.begin() + at);
  }
  std::vector<std::uint8_t> expected = given;
  reference::quantize_static([&](const auto& i) { return x[static_cast<std::size_t>(i[0])]; },
                             row<S>(expected.data(), n));
  check::fenced<float> from(x);
  check::on_every_arch([&](auto arch) {
    check::fenced<std::uint8_t> to(given);
    simd::encode_interleaved_static<S, simd::from_f32, decltype(arch)>(from.data(), n, to.data());
    CHECK(difference(expected, to.data()) == -1);
  });
}

/// x as blocks, on every architecture, from and into memory that ends at a forbidden page.
template <class S>
void check_encode(const std::vector<float>& x) {
  static_assert(simd::block_encodable<S>);
  CAPTURE(std::string(std::string_view(name<S>)));
  const std::vector<std::uint8_t> expected = by_reference<S>(x);
  check::fenced<float> from(x);
  check::on_every_arch([&](auto arch) {
    for (const bool at_start : {false, true}) {
      check::fenced<std::uint8_t> to(std::vector<std::uint8_t>(expected.size()), at_start);
      simd::encode_interleaved<S, simd::from_f32, decltype(arch)>(from.data(), from.size(), to.data());
      CHECK(difference(expected, to.data()) == -1);
    }
  });
  check_encode_static<S>(x);
}

/// The same of numbers of 16 bits, which are x cut short.
template <class S>
void check_encode_halves(const std::vector<float>& x) {
  CAPTURE(std::string(std::string_view(name<S>)));
  std::vector<std::uint16_t> halves;
  std::vector<float> wide;
  for (const float v : x) {
    halves.push_back(static_cast<std::uint16_t>(bits_of(v) >> 16));
    wide.push_back(simd::number<simd::from_bf16>(halves.back()));
  }
  const std::vector<std::uint8_t> expected = by_reference<S>(wide);
  check::fenced<std::uint16_t> from(halves);
  check::on_every_arch([&](auto arch) {
    check::fenced<std::uint8_t> to(std::vector<std::uint8_t>(expected.size()));
    simd::encode_interleaved<S, simd::from_bf16, decltype(arch)>(from.data(), from.size(), to.data());
    CHECK(difference(expected, to.data()) == -1);
  });
}

/// The numbers of n elements in these bytes, likewise.
template <class S>
void check_decode(const std::vector<std::uint8_t>& bytes, index_t n) {
  static_assert(simd::block_decodable<S>);
  CAPTURE(std::string(std::string_view(name<S>)));
  check::fenced<std::uint8_t> from(bytes);
  std::vector<float> expected;
  reference::dequantize(row<S>(from.data(), n), [&](const auto&, float v) { expected.push_back(v); });
  check::on_every_arch([&](auto arch) {
    const bool streams = n % 64 == 0;
    check::fenced<float> to(n, streams);
    simd::decode_interleaved<S, decltype(arch)>(from.data(), n, to.data(), streams);
    bool same = true;
    for (index_t i = 0; i < n; ++i) same = same && check::same_or_nan(expected[static_cast<std::size_t>(i)], to[i]);
    const auto rounded = [&]<class F>(std::type_identity<F>) {
      check::fenced<std::uint16_t> halves(n, streams);
      simd::decode_interleaved<S, decltype(arch), F>(from.data(), n, halves.data(), streams);
      for (index_t i = 0; i < n; ++i) {
        const std::uint32_t want = encode<F, to_special>(expected[static_cast<std::size_t>(i)]);
        same = same && (halves[i] == want || (is_nan(decode<F>(halves[i])) && is_nan(decode<F>(want))));
      }
    };
    rounded(std::type_identity<bf16>{});
    rounded(std::type_identity<f16>{});
    CHECK(same);
  });
}

/// Blocks of every kind, one after the other: any bits, ordinary, few distinct magnitudes (ties of both signs), zeros
/// of either sign, one sign only, subnormal, huge, tiny enough that an inverse overflows, a special number somewhere.
inline std::vector<float> awkward(index_t blocks, index_t elements) {
  std::vector<float> x;
  const auto small = [](std::uint32_t n) {
    return static_cast<float>(check::random_below(2 * n + 1)) - static_cast<float>(n);
  };
  for (index_t b = 0; b < blocks; ++b) {
    const std::uint32_t kind = check::random_below(12), at = check::random_below(static_cast<std::uint32_t>(elements));
    const float special = check::hard_float(), scale = exp2i(static_cast<int>(check::random_below(250)) - 125);
    for (index_t i = 0; i < elements; ++i) {
      const float ordinary = static_cast<float>(static_cast<std::int32_t>(check::random_bits()())) * 0x1p-31f;
      float v = ordinary;
      if (kind == 1) v = check::hard_float();
      if (kind == 2) v = small(4) * scale;
      if (kind == 3) v = check::random_below(2) != 0 ? 0.f : -0.f;
      if (kind == 4) v = std::abs(small(3));
      if (kind == 5) v = -std::abs(small(3));
      if (kind == 6) v = small(5) * 0x1p-149f;
      if (kind == 7) v = ordinary * 0x1p-126f;
      if (kind == 8) v = ordinary * 0x1.fffffep127f;
      if (kind == 9) v = ordinary * scale;
      if (kind == 10) v = static_cast<std::uint32_t>(i) == at ? special : ordinary;
      if (kind == 11) v = (check::random_below(2) != 0 ? 1.f : -1.f) * scale;
      x.push_back(v);
    }
  }
  return x;
}

/// Every length up to three blocks and more, many awkward blocks, all pairs of a peak and a number near a tie.
template <class S>
void check_encode_everything() {
  constexpr index_t elements = interleaved_block<S>::elements({});
  const std::vector<float> pool = awkward(130, elements);
  for (index_t n = 0; n <= 2 * elements + 1; ++n)
    check_encode<S>(std::vector<float>(pool.begin() + 7, pool.begin() + 7 + n));
  for (const index_t n :
       {15 * elements, 16 * elements, 17 * elements + 5, 64 * elements, 65 * elements, 130 * elements})
    check_encode<S>(std::vector<float>(pool.begin(), pool.begin() + n));
  check_encode<S>(awkward(3000, elements));
}

/// Every code beside every kind of scale, every length.
template <class S>
void check_decode_everything() {
  constexpr index_t elements = interleaved_block<S>::elements({});
  for (index_t n = 0; n <= 2 * elements + 1; ++n) check_decode<S>(check::random_codes<std::uint8_t>(size<S>(n)), n);
  for (const index_t blocks : {15, 16, 17, 63, 64, 65, 3000})
    check_decode<S>(check::random_codes<std::uint8_t>(size<S>(blocks * elements)), blocks * elements);
}

}  // namespace blocks
