// Mirrors include/qtensor/simd/nibbles.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <qtensor/simd/nibbles.hpp>
#include <vector>

#include "check.hpp"

namespace simd = qtensor::simd;
using qtensor::index_t;

namespace {

// The definition: code i occupies bits [Bits * i, Bits * (i + 1)), bit 0 being the lowest of byte 0.
template <int Bits>
std::vector<std::uint8_t> packed(const std::vector<std::uint8_t>& codes) {
  std::vector<std::uint8_t> r((codes.size() * Bits + 7) / 8, 0);
  for (std::size_t bit = 0; bit < codes.size() * Bits; ++bit)
    r[bit / 8] |= static_cast<std::uint8_t>((codes[bit / Bits] >> (bit % Bits) & 1) << (bit % 8));
  return r;
}

template <class Arch, int Bits>
void every_length() {
  const index_t longest = 16 * simd::lanes<Arch> + 3;
  for (index_t n = 0; n <= longest; ++n)
    for (const bool at_start : {false, true}) {
      CAPTURE(Bits);
      CAPTURE(n);
      const std::vector<std::uint8_t> codes = check::random_codes<std::uint8_t>(n);  // upper bits are not clean
      const std::vector<std::uint8_t> expected = packed<Bits>(codes);
      REQUIRE(simd::packed_bytes<Bits>(n) == static_cast<index_t>(expected.size()));

      check::fenced<std::uint8_t> from(codes, at_start), to(static_cast<index_t>(expected.size()), at_start);
      simd::pack_codes<Arch, Bits>(from.data(), n, to.data());
      REQUIRE(std::equal(expected.begin(), expected.end(), to.data()));
      std::fill_n(to.data(), expected.size(), std::uint8_t{0x5a});
      simd::pack_codes<Arch, Bits>(from.data(), n, to.data(), true);
      simd::stream_fence<Arch>();
      REQUIRE(std::equal(expected.begin(), expected.end(), to.data()));

      check::fenced<std::uint8_t> back(n, at_start);
      simd::unpack_codes<Arch, Bits>(to.data(), n, back.data());
      for (index_t i = 0; i < n; ++i)
        if (back[i] != (codes[static_cast<std::size_t>(i)] & ((1 << Bits) - 1))) FAIL("code ", i, " is ", int(back[i]));
    }
}

}  // namespace

TEST_CASE("pack_codes, unpack_codes: every length to 4 batches + 3, both ends fenced, 2 to 8 bits") {
  check::on_every_arch([](auto arch) {
    every_length<decltype(arch), 2>();
    every_length<decltype(arch), 3>();
    every_length<decltype(arch), 4>();
    every_length<decltype(arch), 5>();
    every_length<decltype(arch), 6>();
    every_length<decltype(arch), 7>();
    every_length<decltype(arch), 8>();
  });
}

TEST_CASE("pack_codes, unpack_codes: runs that bypass the caches equal short ones, at lines and beside them") {
  using A = simd::best_arch;
  const index_t n = simd::detail::streaming_codes + 77, half = n / 2 / 64 * 64;
  std::vector<std::uint8_t> codes(static_cast<std::size_t>(n + 64)), back(codes.size()), packed(codes.size()),
      want = packed;
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint8_t>(i * 2654435761u >> 13);
  const auto check_at = [&]<int Bits>(std::uint8_t* at) {
    simd::pack_codes<A, Bits>(codes.data(), n, packed.data());
    simd::pack_codes<A, Bits>(codes.data(), half, want.data());
    simd::pack_codes<A, Bits>(codes.data() + half, n - half, want.data() + half * Bits / 8);
    const auto bytes = static_cast<std::ptrdiff_t>(qtensor::simd::packed_bytes<Bits>(n));
    CHECK(std::equal(want.begin(), want.begin() + bytes, packed.begin()));
    simd::unpack_codes<A, Bits>(packed.data(), n, at);
    index_t wrong = 0;
    for (index_t i = 0; i < n; ++i) wrong += at[i] != (codes[static_cast<std::size_t>(i)] & qtensor::low_bits(Bits));
    CHECK(wrong == 0);
  };
  const auto line = back.data() + (-reinterpret_cast<std::uintptr_t>(back.data()) & 63u);
  check_at.operator()<3>(line);
  check_at.operator()<4>(line);
  check_at.operator()<6>(line);
  check_at.operator()<6>(line > back.data() ? line - 1 : line + 1);
}

TEST_CASE("split_pairs: two runs out of bytes of two codes, in place, every length to 4 batches + 3") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    for (index_t n = 0; n <= 16 * simd::lanes<A> + 3; ++n) {
      const auto size = static_cast<std::size_t>(n), half = (size + 1) / 2;
      std::vector<std::uint8_t> bytes(size), lower(size), upper(size), low(half + 1, 0xaa), high(half + 1, 0xaa);
      for (std::size_t i = 0; i < size; ++i) {
        bytes[i] = static_cast<std::uint8_t>(37 * i + 11);
        lower[i] = bytes[i] & 15, upper[i] = bytes[i] >> 4;
      }
      simd::pack_codes<A, 4>(lower.data(), n, low.data());
      simd::pack_codes<A, 4>(upper.data(), n, high.data());
      std::vector<std::uint8_t> back(half + 1, 0xaa);
      simd::split_pairs<A>(bytes.data(), n, bytes.data(), back.data());
      if (back != high) FAIL("upper codes of ", n, " bytes");
      if (!std::equal(low.begin(), low.end() - 1, bytes.begin())) FAIL("lower codes of ", n, " bytes");
    }
  });
}

TEST_CASE("join_pairs: undoes split_pairs and flips bits, every length to 4 batches + 3, both ends fenced") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    for (index_t n = 0; n <= 16 * simd::lanes<A> + 3; ++n)
      for (const bool at_start : {false, true}) {
        const std::vector<std::uint8_t> lower = check::random_codes<std::uint8_t>(n),
                                        upper = check::random_codes<std::uint8_t>(n);
        check::fenced<std::uint8_t> low(packed<4>(lower), at_start), high(packed<4>(upper), at_start);
        check::fenced<std::uint8_t> bytes(n, at_start);
        simd::join_pairs<A>(low.data(), high.data(), n, 0x80, bytes.data());
        for (index_t i = 0; i < n; ++i) {
          const auto at = static_cast<std::size_t>(i);
          const int want = ((lower[at] & 15) | (upper[at] & 15) << 4) ^ 0x80;
          if (bytes[i] != want) FAIL("byte ", i, " of ", n, " is ", int(bytes[i]), ", not ", want);
        }
      }
  });
}
TEST_CASE("join_pair_columns: join_pairs of some runs, turned by words, both ends fenced") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    constexpr index_t most = 128, runs = simd::lanes<A>, step = simd::pair_columns_step;
    for (index_t n = step; n <= most; n += step)
      for (const index_t more : {0, 4, 12})
        for (const bool at_start : {false, true}) {
          const index_t apart = n / 2 + more, quad_bytes = 4 * runs + 4;
          const auto random = [&] {
            return check::fenced<std::uint8_t>(check::random_codes<std::uint8_t>((runs - 1) * apart + n / 2), at_start);
          };
          auto lower = random(), upper = random();
          check::fenced<std::uint8_t> quads((n / 4 - 1) * quad_bytes + 4 * runs, at_start);
          simd::join_pair_columns<A, most>(lower.data(), upper.data(), apart, n, 0x88, quads.data(), quad_bytes);
          std::vector<std::uint8_t> joined(static_cast<std::size_t>(n));
          for (index_t c = 0; c < runs; ++c) {
            simd::join_pairs<A>(lower.data() + c * apart, upper.data() + c * apart, n, 0x88, joined.data());
            for (index_t i = 0; i < n; ++i)
              if (quads[i / 4 * quad_bytes + 4 * c + i % 4] != joined[static_cast<std::size_t>(i)])
                FAIL("code ", i, " of ", n, " in run ", c, ", ", apart, " bytes apart");
          }
        }
  });
}
TEST_CASE("join_nibbles, flip_bits: every length to 3 batches, both ends fenced") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    for (index_t n = 0; n <= 12 * simd::lanes<A>; ++n)
      for (const bool at_start : {false, true}) {
        std::vector<std::uint8_t> lower = check::random_codes<std::uint8_t>(n),
                                  upper = check::random_codes<std::uint8_t>(n);
        for (auto& c : lower) c &= 15;
        for (auto& c : upper) c &= 15;
        check::fenced<std::uint8_t> bytes(lower, at_start);
        check::fenced<std::uint8_t> high(upper, at_start);
        simd::join_nibbles<A>(bytes.data(), high.data(), n);
        simd::flip_bits<A>(bytes.data(), n, 0x88);
        for (index_t i = 0; i < n; ++i) {
          const auto at = static_cast<std::size_t>(i);
          if (bytes[i] != ((lower[at] | upper[at] << 4) ^ 0x88)) FAIL("byte ", i, " of ", n, " is ", int(bytes[i]));
        }
      }
  });
}

TEST_CASE("turn_codes: the other order in each byte, every length to 3 batches, in place too, both ends fenced") {
  check::archs::for_each([](auto arch) {
    using A = decltype(arch);
    for (index_t n = 0; n <= 12 * simd::lanes<A>; ++n) {
      check::fenced<std::uint8_t> bytes(check::random_codes<std::uint8_t>(n)), pairs(n), fours(n);
      simd::turn_codes<A, 4>(bytes.data(), n, pairs.data());
      simd::turn_codes<A, 2>(bytes.data(), n, fours.data());
      index_t wrong = 0;
      for (index_t i = 0; i < n; ++i) {
        const int b = bytes[i];
        wrong += pairs[i] != ((b & 15) << 4 | b >> 4);
        wrong += fours[i] != ((b & 3) << 6 | (b & 12) << 2 | (b & 48) >> 2 | b >> 6);
      }
      CHECK(wrong == 0);
      simd::turn_codes<A, 4>(pairs.data(), n, pairs.data());
      CHECK(std::equal(pairs.data(), pairs.data() + n, bytes.data()));
    }
  });
}

TEST_CASE("pack_nibbles: first code in the low half, an odd row ends with 0") {
  check::on_every_arch([](auto arch) {
    using arch_type = decltype(arch);
    const std::uint8_t codes[3] = {0x1, 0xF2, 0x3};
    std::uint8_t row[2] = {0xaa, 0xaa}, back[3] = {};
    simd::pack_nibbles<arch_type>(codes, 3, row);
    CHECK(row[0] == 0x21);
    CHECK(row[1] == 0x03);
    simd::unpack_nibbles<arch_type>(row, 3, back);
    CHECK(back[0] == 1);
    CHECK(back[1] == 2);
    CHECK(back[2] == 3);
  });
}

TEST_CASE("pack_codes: 6 bits run across bytes, least significant first") {
  const std::uint8_t codes[4] = {0x3f, 0x01, 0x20, 0x2a};  // 101010 100000 000001 111111
  std::uint8_t row[3] = {};
  simd::pack_codes<simd::best_arch, 6>(codes, 4, row);
  CHECK(row[0] == 0x7f);
  CHECK(row[1] == 0x00);
  CHECK(row[2] == 0xaa);
}
