// Mirrors include/qtensor/simd/ops_columns.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <qtensor/simd/ops_columns.hpp>
#include <vector>

#include "check.hpp"

namespace simd = qtensor::simd;
using qtensor::index_t;

namespace {

std::vector<float> hard_floats(index_t n) {
  std::vector<float> v(static_cast<std::size_t>(n));
  for (float& x : v) x = check::hard_float();
  return v;
}
float at(const std::vector<float>& v, index_t i) { return v[static_cast<std::size_t>(i)]; }

}  // namespace

TEST_CASE("load_columns: lane r of column c is element (r, c), whatever the stride") {
  check::on_every_arch([](auto arch) {
    using arch_type = decltype(arch);
    constexpr index_t rows = simd::lanes<arch_type>;
    for (index_t stride = 4; stride <= 19; ++stride) {
      const auto v = hard_floats((rows - 1) * stride + 4);
      check::fenced<float> x(v);
      const auto column = simd::load_columns<arch_type>(x.data(), stride);
      for (index_t c = 0; c < 4; ++c) {
        float lane[rows];
        simd::store(lane, column[static_cast<std::size_t>(c)]);
        for (index_t r = 0; r < rows; ++r)
          if (qtensor::bits_of(lane[r]) != qtensor::bits_of(at(v, r * stride + c)))
            FAIL("stride ", stride, " (", r, ", ", c, ")");
      }
    }
  });
}

TEST_CASE("turn_square: rows and lanes change places") {
  check::on_every_arch([](auto arch) {
    using arch_type = decltype(arch);
    constexpr index_t side = simd::lanes<arch_type>;
    const auto v = hard_floats(side * side);
    std::array<simd::floats<arch_type>, side> rows;
    for (index_t r = 0; r < side; ++r) rows[static_cast<std::size_t>(r)] = simd::load<arch_type>(v.data() + r * side);
    simd::turn_square<arch_type>(rows);
    for (index_t c = 0; c < side; ++c) {
      float lane[side];
      simd::store(lane, rows[static_cast<std::size_t>(c)]);
      for (index_t r = 0; r < side; ++r)
        if (qtensor::bits_of(lane[r]) != qtensor::bits_of(at(v, r * side + c))) FAIL("(", r, ", ", c, ")");
    }
  });
}

namespace {

template <class A, int Words>
void check_parts() {
  constexpr index_t n = simd::lanes<A>;
  for (int round = 0; round < 500; ++round) {
    std::array<std::array<std::uint32_t, n>, n> rows;
    for (auto& row : rows)
      for (auto& lane : row) lane = static_cast<std::uint32_t>(check::random_bits()());
    index_t next = 0;
    const auto sums = simd::sum_parts_each<A, Words>([&](index_t b) {
      REQUIRE(b == next++);
      return simd::load<A>(rows[static_cast<std::size_t>(b)].data());
    });
    REQUIRE(next == n);
    for (std::size_t p = 0; p < sums.size(); ++p) {
      std::array<std::uint32_t, n> lanes, want{};
      simd::store(lanes.data(), sums[p]);
      for (std::size_t b = 0; b < rows.size(); ++b)
        for (std::size_t i = 0; i < Words; ++i) want[b] += rows[b][p * Words + i];
      if (lanes != want) FAIL(Words, " words, part ", p);
    }
  }
}

}  // namespace

TEST_CASE("sum_parts_each: the sums of parts of rows, one part of all rows to a batch") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    check_parts<A, 1>();
    check_parts<A, 2>();
    check_parts<A, 4>();
    if constexpr (simd::lanes<A> >= 8) check_parts<A, 8>();
    if constexpr (simd::lanes<A> >= 16) check_parts<A, 16>();
  });
}

TEST_CASE("quads_of_nibbles: the nibbles of each word as bytes, those of the upper words above") {
  check::on_every_arch([](auto arch) {
    using arch_type = decltype(arch);
    constexpr index_t lanes = simd::lanes<arch_type>;
    for (int round = 0; round < 16; ++round) {
      const auto lower = check::random_codes<std::uint8_t>(4 * lanes),
                 upper = check::random_codes<std::uint8_t>(4 * lanes);
      const auto words = [](const std::vector<std::uint8_t>& bytes) {
        return simd::bits_as<std::uint32_t>(simd::load<arch_type>(bytes.data()));
      };
      const auto quads = simd::quads_of_nibbles<arch_type>(words(lower), words(upper));
      for (index_t i = 0; i < 8 * lanes; ++i) {  // nibble i of all
        const auto nibble = [&](const std::vector<std::uint8_t>& bytes) {
          return bytes[static_cast<std::size_t>(i / 2)] >> (4 * (i % 2)) & 15;
        };
        std::uint8_t got[4 * lanes];
        simd::store(got, quads[static_cast<std::size_t>(i % 8 / 4)]);
        const index_t at = i / 8 * 4 + i % 4;
        if (got[at] != (nibble(lower) | nibble(upper) << 4)) FAIL("nibble ", i % 8, " of word ", i / 8);
      }
    }
  });
}

TEST_CASE("interleave_four: bytes of four rows as fours of each column") {
  check::on_every_arch([](auto arch) {
    using arch_type = decltype(arch);
    constexpr index_t lanes = simd::lanes<arch_type>, size = 4 * lanes;
    std::array<std::uint8_t, static_cast<std::size_t>(size)> from{}, to{};
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::uint8_t>(255 - 3 * i);
    simd::store(to.data(),
                simd::interleave_four<arch_type>(simd::load<arch_type>(static_cast<const std::uint8_t*>(from.data()))));
    for (index_t i = 0; i < lanes; ++i)
      for (index_t k = 0; k < 4; ++k)
        if (to[static_cast<std::size_t>(4 * i + k)] != from[static_cast<std::size_t>(k * lanes + i)])
          FAIL("(", k, ", ", i, ")");
  });
}

TEST_CASE("load_interleaved: the same of four rows at any distance, which are all that is read") {
  check::on_every_arch([](auto arch) {
    using arch_type = decltype(arch);
    constexpr index_t lanes = simd::lanes<arch_type>;
    for (const index_t apart : {index_t{1}, lanes, 3 * lanes + 5}) {
      std::vector<std::uint8_t> v(static_cast<std::size_t>(3 * apart + lanes));
      for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<std::uint8_t>(7 * i + 1);
      check::fenced<std::uint8_t> from(v);
      std::array<std::uint8_t, static_cast<std::size_t>(4 * lanes)> to{};
      simd::store(to.data(), simd::load_interleaved<arch_type>(from.data(), apart));
      for (index_t i = 0; i < lanes; ++i)
        for (index_t k = 0; k < 4; ++k)
          if (to[static_cast<std::size_t>(4 * i + k)] != v[static_cast<std::size_t>(k * apart + i)])
            FAIL("(", k, ", ", i, "), ", apart, " apart");
    }
  });
}

TEST_CASE("interleave_rows: whole batches of four rows as fours of each column") {
  check::on_every_arch([](auto arch) {
    using arch_type = decltype(arch);
    constexpr index_t size = 4 * simd::lanes<arch_type>;
    std::uint8_t from[4][size], to[4 * size];
    std::array<simd::bytes<arch_type>, 4> rows;
    for (index_t k = 0; k < 4; ++k) {
      for (index_t i = 0; i < size; ++i) from[k][i] = static_cast<std::uint8_t>(64 * k + i);
      rows[static_cast<std::size_t>(k)] =
          simd::spread_rows<arch_type>(simd::load<arch_type>(static_cast<const std::uint8_t*>(from[k])));
    }
    const auto fours = simd::interleave_rows<arch_type>(rows);
    for (index_t v = 0; v < 4; ++v) simd::store(to + v * size, fours[static_cast<std::size_t>(v)]);
    for (index_t i = 0; i < 4 * size; ++i)
      if (to[i] != from[i % 4][i / 4]) FAIL("(", i % 4, ", ", i / 4, ")");
  });
}

TEST_CASE("transpose: every size to 2 batches + 3, nothing else is touched") {
  check::on_every_arch([](auto arch) {
    using arch_type = decltype(arch);
    constexpr index_t most = 2 * simd::lanes<arch_type> + 3;
    for (index_t rows = 0; rows <= most; ++rows)
      for (index_t cols = 0; cols <= 13; ++cols) {
        const auto v = hard_floats(rows * cols);
        check::fenced<float> from(v), to(rows * cols);
        simd::transpose<arch_type>(from.data(), cols, rows, cols, to.data(), rows);
        for (index_t r = 0; r < rows; ++r)
          for (index_t c = 0; c < cols; ++c)
            if (qtensor::bits_of(to[c * rows + r]) != qtensor::bits_of(at(v, r * cols + c)))
              FAIL(rows, " x ", cols, " at ", r, ", ", c);
      }
  });
}
