// Mirrors include/qtensor/ops/quantize_dual_axis.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/quantize_dual_axis.hpp>

#include "check.hpp"

using namespace qtensor;

TEST_CASE("quantize_dual_axis: each result equals a quantization of the original along its own axis") {
  const auto both = [](const auto& shape, unsigned seed) {
    const std::vector<float> x = check::numbers(shape.size(), seed);
    const auto [rows, cols] = quantize_dual_axis<mxfp8_e4m3>(source(x.data(), shape));
    CHECK(check::same_bytes(rows, check::expected<mxfp8_e4m3, row_major>(x, shape)));
    CHECK(check::same_bytes(cols, check::expected<along<-2, mxfp8_e4m3>, row_major>(x, shape)));
    const auto fp4 = quantize_dual_axis<mxfp4>(source(x.data(), shape));
    CHECK(check::same_bytes(fp4.rows, check::expected<mxfp4, row_major>(x, shape)));
    CHECK(check::same_bytes(fp4.cols, check::expected<along<-2, mxfp4>, row_major>(x, shape)));
  };
  both(matrix_extents(64, 64), 1);
  both(matrix_extents(33, 70), 2);
  both(matrix_extents(1, 5000), 3);
  both(extents(2, 3, 40, 36), 4);
  both(matrix_extents(0, 8), 5);
}

TEST_CASE("quantize_dual_axis: CANN's worked example, {0, 8, 64, 512} as bf16 to e4m3 (NUMERICS 3)") {
  const std::uint16_t x[] = {0, 16640, 17024, 17408};
  const auto [rows, cols] = quantize_dual_axis<mxfp8_e4m3>(source<bf16>(x, matrix_extents(1, 4)));
  CHECK(check::bytes_of(rows.codes()) == std::vector<unsigned char>{0, 72, 96, 120});
  CHECK(check::bytes_of(rows.scales()) == std::vector<unsigned char>{128});
  CHECK(check::bytes_of(cols.codes()) == std::vector<unsigned char>{0, 120, 120, 120});
  CHECK(check::bytes_of(cols.scales()) == std::vector<unsigned char>{0, 122, 125, 128});
}
