// Mirrors include/qtensor/ops/product.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>
#include <mutex>
#include <qtensor/ops/product.hpp>
#include <qtensor/scheme/schemes.hpp>
#include <vector>

#include "../simd/check.hpp"
#include "threads.hpp"

namespace simd = qtensor::simd;
using namespace qtensor;

namespace {

template <class S>
void check_panels(index_t outputs, index_t depth) {
  tensor<S> w(matrix_extents(outputs, depth));
  for (index_t i = 0; i < static_cast<index_t>(w.codes().size()); ++i)
    w.codes()[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(check::random_bits()());
  check::archs::for_each([&](auto arch) {
    using A = decltype(arch);
    const auto whole = pack<A>(w);
    const auto view = std::as_const(w).view();
    auto before = ops::panels_of<A>(whole);
    auto now = ops::panels_of<A>(ops::weights_of<std::remove_const_t<decltype(view)>, depth_axis::cols>(view));
    const auto l = before.layout();
    REQUIRE(now.layout().quads() == l.quads());
    for (index_t p = l.panels() - 1; p >= 0; --p) {
      const auto without = now.panel_without_sums(p);
      CHECK(without.sums == nullptr);
      CHECK(std::memcmp(before.panel_without_sums(p).codes, without.codes, static_cast<std::size_t>(l.panel_bytes())) ==
            0);
      const auto a = before.panel(p), b = now.panel(p);
      CHECK(std::memcmp(a.codes, b.codes, static_cast<std::size_t>(l.panel_bytes())) == 0);
      CHECK(std::memcmp(a.sums, b.sums, static_cast<std::size_t>(l.panel_entries()) * 4) == 0);
      CHECK(std::memcmp(a.zeros, b.zeros, static_cast<std::size_t>(l.panel_entries())) == 0);
    }
  });
}

/// What is asked for behind a panel is the memory of the next one, of weights that are far and without gaps.
template <class S>
void check_requests(index_t outputs, index_t depth, bool asks) {
  const tensor<S> w(matrix_extents(outputs, depth));
  const auto view = w.view();
  const auto* const memory = reinterpret_cast<const std::uint8_t*>(w.codes().data());
  check::archs::for_each([&](auto arch) {
    using A = decltype(arch);
    auto panels = ops::panels_of<A>(ops::weights_of<std::remove_const_t<decltype(view)>, depth_axis::cols>(view));
    constexpr index_t width = decltype(panels)::layout_type::width;
    const index_t bytes = width * depth * S::code_format::bits / 8, last = panels.layout().panels() - 1;
    for (const index_t p : {index_t{0}, last / 2, last - 1, last}) {
      const std::uint8_t* const codes = panels.panel(p).codes;
      const bool has_next = asks && (p + 2) * width <= outputs;
      const auto next = reinterpret_cast<std::uintptr_t>(memory + (p + 1) * bytes);
      CHECK(panels.bytes_ahead(p) ==
            (has_next ? static_cast<index_t>(next - reinterpret_cast<std::uintptr_t>(codes)) : 0));
    }
  });
}

}  // namespace

TEST_CASE("packing_panels: what a product asks for behind a panel is what is packed next") {
  check_requests<int8_per_tensor>(2100, 1024, true);
  check_requests<mxfp4>(2177, 1024, true);
  check_requests<int4_group<32>>(2177, 1023, false);
  check_requests<int8_per_tensor>(700, 1024, false);
}
TEST_CASE("panels: packed before or panel by panel, they are the same bytes; without sums where these are not read") {
  check_panels<uint4_group<6>>(70, 20);
  check_panels<uint4_group<32>>(64, 320);
}

TEST_CASE("for_product_parts: every panel and row once, whatever the executor") {
  for (const index_t panels : {1, 2, 3, 40})
    for (const index_t rows : {1, 5, 6, 100})
      for (const index_t count : {1, 2, 5}) {
        std::vector<int> seen(static_cast<std::size_t>(panels * rows));
        std::mutex lock;
        ops::for_product_parts(pool::threads(count), panels, 1 << 20, rows, 6,
                               [&](index_t first_panel, index_t some_panels, index_t first_row, index_t some_rows) {
                                 const std::lock_guard guard(lock);
                                 CHECK((first_row % 6 == 0 && some_rows > 0 && some_panels > 0));
                                 for (index_t p = first_panel; p < first_panel + some_panels; ++p)
                                   for (index_t r = first_row; r < first_row + some_rows; ++r)
                                     ++seen[static_cast<std::size_t>(p * rows + r)];
                               });
        for (const int times : seen) REQUIRE(times == 1);
      }
}

TEST_CASE("store_floats: any strides, alpha, assign, add and subtract, nothing beside the tile") {
  check::archs::for_each([](auto arch) {
    using A = decltype(arch);
    constexpr index_t width = simd::int_tile<A>::panel;
    alignas(64) float tile[3 * width];
    for (index_t i = 0; i < 3 * width; ++i) tile[i] = static_cast<float>(i) / 3.f;
    for (const index_t cols : {index_t{1}, width - 1, width})
      for (const bool turned : {false, true})
        for (const auto mode : {accumulate::assign, accumulate::add, accumulate::subtract})
          for (const float alpha : {1.f, 0.3f}) {
            std::vector<float> y(static_cast<std::size_t>(10 * (width + 2)), 7.f);
            const index_t row_stride = turned ? 1 : width + 2, col_stride = turned ? 10 : 1;
            const ops::store_floats<A> store{{y.data(), 6, width + 2, row_stride, col_stride}, alpha, mode};
            store({2, 1, 3, cols, tile, width});
            for (index_t m = 0; m < 6; ++m)
              for (index_t n = 0; n < width + 2; ++n) {
                const bool inside = m >= 2 && m < 5 && n >= 1 && n < 1 + cols;
                const float t = inside ? rounded(tile[(m - 2) * width + n - 1] * alpha) : 0.f;
                const float want = !inside                      ? 7.f
                                   : mode == accumulate::assign ? t
                                   : mode == accumulate::add    ? 7.f + t
                                                                : 7.f - t;
                REQUIRE(y[static_cast<std::size_t>(m * row_stride + n * col_stride)] == want);
              }
          }
  });
}
