// Mirrors include/qtensor/simd/statistics_columns.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/simd/statistics_columns.hpp>

#include "statistics_check.hpp"

using namespace statistics_check;

TEST_CASE("join_maxima: the larger of each pair, every length") {
  for (index_t n = 0; n <= 4 * simd::lanes<simd::best_arch> + 3; ++n) {
    check::fenced<std::uint32_t> one(n), best(n);
    for (index_t i = 0; i < n; ++i) one[i] = check::random_bits()(), best[i] = check::random_bits()();
    std::vector<std::uint32_t> want(static_cast<std::size_t>(n));
    for (index_t i = 0; i < n; ++i)
      want[static_cast<std::size_t>(i)] = std::max(std::uint32_t{one[i]}, std::uint32_t{best[i]});
    simd::join_maxima<simd::best_arch>(one.data(), n, best.data());
    CHECK(std::equal(want.begin(), want.end(), best.data()));
  }
}

TEST_CASE("join_block_maxima: blocks of any length, joined to what is there") {
  for (const index_t length : {1, 3, 8, 16, 24, 32, 48, 96})
    for (const index_t blocks : {0, 1, 2, 15, 16, 17, 40}) {
      check::fenced<std::uint32_t> magnitudes(blocks * length), best(blocks);
      for (index_t i = 0; i < magnitudes.size(); ++i) magnitudes[i] = check::random_bits()() & 0x7fffffffu;
      for (index_t b = 0; b < blocks; ++b) best[b] = b % 3 == 0 ? 0x7fffff00u : 0u;
      std::vector<std::uint32_t> want(best.data(), best.data() + blocks);
      for (index_t i = 0; i < magnitudes.size(); ++i)
        want[static_cast<std::size_t>(i / length)] =
            std::max(want[static_cast<std::size_t>(i / length)], std::uint32_t{magnitudes[i]});
      simd::join_block_maxima<simd::best_arch>(magnitudes.data(), blocks, length, best.data());
      INFO(blocks, " blocks of ", length);
      CHECK(std::equal(want.begin(), want.end(), best.data()));
    }
}

TEST_CASE("accumulate_amax_bits: column maxima over rows, one or several at a time, every width") {
  check::on_every_arch([](auto arch) {
    using arch_type = decltype(arch);
    every_source([&](auto source) {
      using source_type = decltype(source);
      const auto compare = [](index_t n) {
        CAPTURE(n);
        constexpr index_t rows = 11;
        const auto v = inputs<source_type>(rows * n);
        check::fenced<typename source_type::type> x(v);
        check::fenced<std::uint32_t> one(n), two(n);
        for (index_t i = 0; i < n; ++i) one[i] = two[i] = 0;
        for (index_t r = 0; r < rows; ++r)
          simd::accumulate_amax_bits<arch_type, source_type>(x.data() + r * n, n, one.data());
        simd::accumulate_amax_bits<arch_type, source_type>(x.data(), n, rows, n, two.data(), simd::fetch::far);
        for (index_t i = 0; i < n; ++i) {
          std::uint32_t m = 0;
          for (index_t r = 0; r < rows; ++r) m = std::max(m, expected_amax<source_type>(v.data() + r * n + i, 1));
          if (!same_amax<source_type>(one[i], m) || !same_amax<source_type>(two[i], m)) FAIL("column ", i);
        }
      };
      for (index_t n = 0; n <= 9 * simd::lanes<arch_type> + 3; ++n) compare(n);
      for (const index_t n : {2048, 2048 + 75}) compare(n);  // which some CPUs read row by row
    });
  });
}

namespace {

/// Extremes of columns by `accumulate`, from first_low and 0 on, in two calls: is_right(source, column, stride, low,
/// high) says of each whether they are those of `rows` rows. Every width.
template <class Accumulate, class IsRight>
void every_width(index_t rows, std::uint32_t first_low, Accumulate accumulate, IsRight is_right) {
  check::on_every_arch([&](auto arch) {
    every_source([&](auto source) {
      const auto compare = [&](index_t n) {
        for (const index_t gap : {0, 3}) {
          CAPTURE(n);
          const index_t stride = n + gap;
          const auto v = inputs<decltype(source)>(rows * stride - gap * (n > 0));
          check::fenced<typename decltype(source)::type> x(v);
          check::fenced<std::uint32_t> low(n), high(n);
          for (index_t i = 0; i < n; ++i) low[i] = first_low, high[i] = 0;
          accumulate(arch, source, x.data(), stride, index_t{5}, n, low.data(), high.data());
          accumulate(arch, source, x.data() + 5 * stride, stride, rows - 5, n, low.data(), high.data());
          for (index_t i = 0; i < n; ++i)
            if (!is_right(source, v.data() + i, stride, low[i], high[i])) FAIL("column ", i);
        }
      };
      for (index_t n = 0; n <= 9 * simd::lanes<decltype(arch)> + 3; ++n) compare(n);
      compare(2048 + 75);  // which some CPUs read row by row
    });
  });
}

}  // namespace

TEST_CASE("accumulate_range_bits: extremes of columns, every width") {
  constexpr index_t rows = 11;
  const auto accumulate = [](auto arch, auto source, const auto&... of) {
    simd::accumulate_range_bits<decltype(arch), decltype(source)>(of...);
  };
  every_width(rows, 0u, accumulate,
              [](auto source, const auto* column, index_t stride, std::uint32_t low, std::uint32_t high) {
                std::uint32_t least = 0, most = 0;
                for (index_t r = 0; r < rows; ++r) {
                  const std::uint32_t bits = qtensor::bits_of(simd::number<decltype(source)>(column[r * stride]));
                  std::uint32_t& one = (bits & qtensor::sign_bit) != 0 ? least : most;
                  one = std::max(one, bits & qtensor::magnitude_bits);
                }
                // Which sign a NaN has is the CPU's.
                const bool odd = std::max(least, most) > qtensor::infinity_bits;
                return odd ? std::max(low, high) > qtensor::infinity_bits : low == least && high == most;
              });
}

TEST_CASE("accumulate_extremes: the least and the largest of columns, every width, joined to what is there") {
  constexpr index_t rows = 19;
  const auto accumulate = [](auto arch, auto source, const auto&... of) {
    simd::accumulate_extremes<decltype(arch), decltype(source)>(of...);
  };
  every_width(rows, ~0u, accumulate,
              [](auto source, const auto* column, index_t stride, std::uint32_t low, std::uint32_t high) {
                using source_type = decltype(source);
                return same_extremes<source_type>({low, high}, expected_extremes<source_type>(column, stride, rows));
              });
}

TEST_CASE("amax_both_axes: blocks of rows and columns of any number of rows and any width") {
  check::on_every_arch([](auto arch) {
    using arch_type = decltype(arch);
    every_source([&](auto source) {
      using source_type = decltype(source);
      const auto compare = [&](auto length, index_t rows, index_t n, index_t gap) {
        constexpr index_t block = decltype(length)::value;
        const index_t stride = n + gap, blocks = qtensor::divide_up(n, block);
        const auto v = inputs<source_type>(rows * stride - gap);
        check::fenced<typename source_type::type> x(v);
        check::fenced<std::uint32_t> of_blocks(rows * blocks), of_columns(n);
        simd::amax_both_axes<arch_type, block, source_type>(x.data(), stride, rows, n, of_blocks.data(),
                                                            of_columns.data());
        for (index_t i = 0; i < rows * blocks; ++i) {
          const index_t col = i % blocks * block;
          const auto want = expected_amax<source_type>(v.data() + i / blocks * stride + col, std::min(block, n - col));
          if (!same_amax<source_type>(of_blocks[i], want)) FAIL("block ", i, " of ", rows, " rows of ", n);
        }
        for (index_t i = 0; i < n; ++i) {
          std::uint32_t want = 0;
          for (index_t r = 0; r < rows; ++r)
            want = std::max(want, expected_amax<source_type>(v.data() + r * stride + i, 1));
          if (!same_amax<source_type>(of_columns[i], want)) FAIL("column ", i, " of ", rows, " rows of ", n);
        }
      };
      for (const index_t n : {1, 16, 31, 32, 33, 64, 500, 512, 576, 1100})
        for (const index_t rows : {1, 2, 9}) {
          compare(std::integral_constant<index_t, 32>{}, rows, n, 3);
          compare(std::integral_constant<index_t, 16>{}, rows, n, 0);
        }
    });
  });
}
