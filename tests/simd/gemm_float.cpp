// Mirrors include/qtensor/simd/gemm_float.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/reference/codec.hpp>
#include <qtensor/simd/gemm_float.hpp>

#include "check.hpp"

#include <cmath>
#include <vector>

namespace simd = qtensor::simd;
using qtensor::accumulate;
using qtensor::index_t;

namespace {

std::vector<float> hard_floats(index_t n) {
  std::vector<float> v(static_cast<std::size_t>(n));
  for (float& x : v) x = check::hard_float();
  return v;
}
float at(const std::vector<float>& v, index_t i) { return v[static_cast<std::size_t>(i)]; }

}  // namespace

TEST_CASE("float_tile: rows are split into tiles that exist, and tiles fit in the registers") {
  check::on_every_arch([](auto arch) {
    using tile = simd::float_tile<decltype(arch)>;
    for (index_t left = 1; left <= 40; ++left) {
      const index_t rows = tile::rows(left);
      CHECK(rows <= left);
      CHECK((rows == 1 || rows == 2 || rows == 4 || rows == 6));
      CHECK(rows * tile::vectors(rows) <= tile::accumulators);
    }
  });
}

TEST_CASE("fma_tile: every tile is a chain over ascending k, in one go or continued") {
  check::on_every_arch([](auto arch) {
    using arch_type = decltype(arch);
    using tile = simd::float_tile<arch_type>;
    for (const index_t rows : {1, 2, 4, 6})
      for (index_t vectors = 1; vectors <= tile::panel_vectors && rows <= tile::max_rows; ++vectors)
        for (const index_t depth : {0, 1, 2, 3, 7, 16})
          for (int form = 0; form < 4; ++form) {
            const index_t cols = vectors * simd::lanes<arch_type>, panel_stride = cols + form % 2 * 5;
            const bool by_depth = form / 2 != 0;
            const auto w = hard_floats(depth == 0 ? 0 : (depth - 1) * panel_stride + cols),
                       x = hard_floats(rows * depth);
            check::fenced<float> panel(w), values(x);
            std::vector<float> sums(static_cast<std::size_t>(rows * tile::panel), 7.f);
            const simd::broadcast_block block = {values.data(), by_depth ? 1 : depth, by_depth ? rows : 1};
            const index_t part = depth / 2;
            simd::fma_tile<arch_type>(panel.data(), panel_stride, vectors, block, rows, part, sums.data(), true);
            simd::fma_tile<arch_type>(panel.data() + part * panel_stride, panel_stride, vectors,
                                      {block.data + part * block.depth_stride, block.row_stride, block.depth_stride},
                                      rows, depth - part, sums.data(), false);
            for (index_t r = 0; r < rows; ++r)
              for (index_t c = 0; c < tile::panel; ++c) {
                float want = c < cols ? 0.f : 7.f;
                for (index_t k = 0; k < depth && c < cols; ++k)
                  want =
                      std::fma(at(x, r * block.row_stride + k * block.depth_stride), at(w, k * panel_stride + c), want);
                if (!check::same_or_nan(at(sums, r * tile::panel + c), want))
                  FAIL(rows, " rows, ", vectors, " vectors, depth ", depth, ", form ", form, ": (", r, ", ", c, ")");
              }
          }
  });
}

TEST_CASE("fma_tile: steps of two roundings, by rows and across") {
  check::on_every_arch([](auto arch) {
    using arch_type = decltype(arch);
    using tile = simd::float_tile<arch_type>;
    constexpr index_t depth = 11, cols = 2 * simd::lanes<arch_type>;
    const auto w = hard_floats(depth * cols), x = hard_floats(2 * depth);
    std::vector<float> turned(w.size());
    for (index_t k = 0; k < depth; ++k)
      for (index_t c = 0; c < cols; ++c) turned[static_cast<std::size_t>(c * depth + k)] = at(w, k * cols + c);
    std::vector<float> down(static_cast<std::size_t>(2 * tile::panel)), across(down.size());
    const simd::broadcast_block block = {x.data(), depth, 1};
    simd::fma_tile<arch_type, simd::rounded_step>(w.data(), cols, 2, block, 2, depth, down.data(), true);
    simd::fma_tile_across<arch_type, simd::rounded_step>(turned.data(), depth, 2, block, 2, depth, across.data(), true);
    for (index_t r = 0; r < 2; ++r)
      for (index_t c = 0; c < cols; ++c) {
        float want = 0.f;
        for (index_t k = 0; k < depth; ++k) want += qtensor::rounded(at(x, r * depth + k) * at(w, k * cols + c));
        CHECK(check::same_or_nan(at(down, r * tile::panel + c), want));
        CHECK(check::same_or_nan(at(across, r * tile::panel + c), want));
      }
  });
}

TEST_CASE("fma_tile: steps that round to f16 and bf16 are those of double, rounded once") {
  check::on_every_arch([](auto arch) {
    using arch_type = decltype(arch);
    const auto with = [&]<class F>(F) {
      using tile = simd::float_tile<arch_type>;
      using step = simd::narrow_step<F>;
      constexpr index_t depth = 40, cols = 2 * simd::lanes<arch_type>;
      // Any codes: subnormal numbers, infinities and NaNs are among them.
      const auto number = [] { return qtensor::decode<F>(check::random_bits()() & 0xffffu); };
      const auto near = [](float x) { return x - std::trunc(x) + 0.25f; };
      // A double to F by way of a float whose last digit says whether anything is left.
      const auto to_format = [](double v) {
        float f = static_cast<float>(v);
        if (static_cast<double>(f) != v && std::isfinite(v) && std::isfinite(f)) {
          std::uint32_t bits = qtensor::bits_of(f);
          if (std::fabs(static_cast<double>(f)) > std::fabs(v)) --bits;
          f = qtensor::float_of(bits | 1u);
        }
        return static_cast<double>(qtensor::decode<F>(qtensor::encode<F, qtensor::to_special>(f)));
      };
      for (int round = 0; round < 40; ++round) {
        std::vector<float> w(static_cast<std::size_t>(depth * cols)), x(static_cast<std::size_t>(2 * depth));
        for (auto* all : {&w, &x})
          for (float& v : *all) {
            v = number();
            while (round % 4 != 0 && !std::isfinite(v)) v = number();
            if (round % 2 != 0) v = static_cast<float>(to_format(static_cast<double>(near(v))));
          }
        std::vector<float> sums(static_cast<std::size_t>(2 * tile::panel));
        simd::fma_tile<arch_type, step>(w.data(), cols, 2, {x.data(), depth, 1}, 2, depth, sums.data(), true);
        for (index_t r = 0; r < 2; ++r)
          for (index_t c = 0; c < cols; ++c) {
            double want = 0.0;
            for (index_t k = 0; k < depth; ++k)
              want = to_format(want + to_format(static_cast<double>(at(x, r * depth + k)) *
                                                static_cast<double>(at(w, k * cols + c))));
            CHECK(check::same_or_nan(at(sums, r * tile::panel + c), static_cast<float>(want)));
          }
      }
    };
    with(qtensor::f16{});
    with(qtensor::bf16{});
  });
}

TEST_CASE("fma_tile_across: the same chains from contiguous columns") {
  check::on_every_arch([](auto arch) {
    using arch_type = decltype(arch);
    using tile = simd::float_tile<arch_type>;
    for (const index_t rows : {1, 2, 4})
      for (index_t vectors = 1; vectors <= 2; ++vectors)
        for (index_t depth = 0; depth <= 13; ++depth)
          for (int form = 0; form < 4; ++form) {
            const index_t cols = vectors * simd::lanes<arch_type>, stride = depth + form % 2 * 3;
            const bool by_depth = form / 2 != 0;
            const auto w = hard_floats((cols - 1) * stride + depth), x = hard_floats(rows * depth);
            check::fenced<float> columns(w), values(x);
            std::vector<float> sums(static_cast<std::size_t>(rows * tile::panel), 7.f);
            const simd::broadcast_block block = {values.data(), by_depth ? 1 : depth, by_depth ? rows : 1};
            const index_t part = depth / 2;
            simd::fma_tile_across<arch_type>(columns.data(), stride, vectors, block, rows, part, sums.data(), true);
            simd::fma_tile_across<arch_type>(
                columns.data() + part, stride, vectors,
                {block.data + part * block.depth_stride, block.row_stride, block.depth_stride}, rows, depth - part,
                sums.data(), false);
            for (index_t r = 0; r < rows; ++r)
              for (index_t c = 0; c < tile::panel; ++c) {
                float want = c < cols ? 0.f : 7.f;
                for (index_t k = 0; k < depth && c < cols; ++k)
                  want = std::fma(at(x, r * block.row_stride + k * block.depth_stride), at(w, c * stride + k), want);
                if (!check::same_or_nan(at(sums, r * tile::panel + c), want))
                  FAIL(rows, " rows, ", vectors, " vectors, depth ", depth, ", form ", form, ": (", r, ", ", c, ")");
              }
          }
  });
}

TEST_CASE("finish_tile: alpha rounds once, then the sum; every width, rows or columns of y contiguous") {
  check::on_every_arch([](auto arch) {
    using arch_type = decltype(arch);
    using tile = simd::float_tile<arch_type>;
    for (const accumulate mode : {accumulate::assign, accumulate::add, accumulate::subtract})
      for (const float alpha : {1.f, -1.f, 0.1f})
        for (index_t rows = 1; rows <= tile::max_rows; ++rows)
          for (index_t cols = 1; cols <= tile::panel; ++cols)
            for (const bool turned : {false, true}) {
              const auto sums = hard_floats(rows * tile::panel), before = hard_floats(rows * cols);
              check::fenced<float> y(before);
              const index_t row_stride = turned ? 1 : cols, col_stride = turned ? rows : 1;
              simd::finish_tile<arch_type>(sums.data(), rows, cols, y.data(), row_stride, col_stride, alpha, mode);
              for (index_t r = 0; r < rows; ++r)
                for (index_t c = 0; c < cols; ++c) {
                  const index_t i = r * row_stride + c * col_stride;
                  const float s = at(sums, r * tile::panel + c);
                  const float v = alpha == 1.f ? s : qtensor::rounded(s * alpha);
                  const float want = mode == accumulate::assign ? v
                                     : mode == accumulate::add  ? at(before, i) + v
                                                                : at(before, i) - v;
                  if (!check::same_or_nan(y[i], want)) FAIL(rows, " x ", cols, " alpha ", alpha, " at ", r, ", ", c);
                }
            }
  });
}
