// Mirrors include/qtensor/ops/pack.hpp: packing on an executor.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/pack.hpp>
#include <qtensor/scheme/schemes.hpp>

#include "ops/parts_check.hpp"

using namespace qtensor;

TEST_CASE("pack on an executor: the same panels, of rows and of columns") {
  tensor<uint4_group<32>> w(matrix_extents(515, 512));
  const auto bytes = parts_check::pattern<std::uint8_t>(515 * 256);
  std::copy(bytes.begin(), bytes.end(), w.codes().begin());
  std::fill(w.scales().begin(), w.scales().end(), .5f);
  const auto same = [](const auto& a, const auto& b) { return std::ranges::equal(a.bytes(), b.bytes()); };
  parts_check::check([&](const auto&... on) { return pack(w, on...); }, same);
  parts_check::check([&](const auto&... on) { return pack<simd::best_arch, depth_axis::rows>(w, on...); }, same);
}
