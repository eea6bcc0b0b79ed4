// Mirrors include/qtensor/ops/quantize_dual_axis.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/quantize_dual_axis.hpp>

#include "check.hpp"
#include "threads.hpp"

using namespace qtensor;

namespace {

/// Both tensors of a matrix, from memory of floats and of bf16, from columns, and on four threads.
template <quantization_scheme S, tensor_extents E>
void compare(const E& shape, unsigned seed) {
  INFO(std::string(name<S>), " rank ", E::rank, " rows ", shape[E::rank - 2], " columns ", shape[E::rank - 1]);
  std::vector<float> x = check::numbers(shape.size(), seed);
  std::vector<std::uint16_t> halves(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    halves[i] = static_cast<std::uint16_t>(encode<bf16, to_special>(x[i]));
    x[i] = decode<bf16>(halves[i]);
  }
  const auto want_rows = check::expected<along<-1, S>, row_major>(x, shape);
  const auto want_cols = check::expected<along<-2, S>, row_major>(x, shape);
  const auto is_right = [&](const auto& both) {
    CHECK(check::same_bytes(both.rows, want_rows));
    CHECK(check::same_bytes(both.cols, want_cols));
  };
  const auto four = on(pool::threads(4));
  is_right(quantize_dual_axis<S>(source(x.data(), shape)));
  is_right(quantize_dual_axis<S>(source<bf16>(halves.data(), shape)));
  is_right(quantize_dual_axis<S>(source(x.data(), shape), four));
  if constexpr (E::rank == 2) {
    std::vector<float> turned(x.size());
    for (index_t r = 0; r < shape[0]; ++r)
      for (index_t c = 0; c < shape[1]; ++c)
        turned[static_cast<std::size_t>(c * shape[0] + r)] = x[static_cast<std::size_t>(r * shape[1] + c)];
    is_right(quantize_dual_axis<S>(source(turned.data(), shape, {1, shape[0]})));
    const matrix_ref<const float> here{x.data(), shape[0], shape[1], shape[1], 1};
    is_right(make_dual_axis<S>(check::tiled_source{here}, shape));
  }
}

}  // namespace

TEST_CASE("quantize_dual_axis: each result equals a quantization of the original along its own axis") {
  const auto both = [](const auto& shape, unsigned seed) {
    compare<mxfp8_e4m3>(shape, seed);
    compare<mxfp4>(shape, seed);
    compare<with<mxfp4, planar<high_first>>>(shape, seed);
  };
  both(matrix_extents(64, 64), 1);
  both(matrix_extents(33, 70), 2);
  both(matrix_extents(1, 5000), 3);
  both(matrix_extents(70, 4500), 4);
  both(extents(2, 3, 40, 36), 5);
  both(extents(2, 2, 40, 530), 9);
  both(matrix_extents(0, 8), 6);
  compare<int8_group<48>>(matrix_extents(100, 130), 7);
  compare<int8_group<5000>>(matrix_extents(3, 7000), 8);
}

TEST_CASE("quantize_dual_axis: CANN's worked example, {0, 8, 64, 512} as bf16 to e4m3 (NUMERICS 3)") {
  const std::uint16_t x[] = {0, 16640, 17024, 17408};
  const auto [rows, cols] = quantize_dual_axis<mxfp8_e4m3>(source<bf16>(x, matrix_extents(1, 4)));
  CHECK(check::bytes_of(rows.codes()) == std::vector<unsigned char>{0, 72, 96, 120});
  CHECK(check::bytes_of(rows.scales()) == std::vector<unsigned char>{128});
  CHECK(check::bytes_of(cols.codes()) == std::vector<unsigned char>{0, 120, 120, 120});
  CHECK(check::bytes_of(cols.scales()) == std::vector<unsigned char>{0, 122, 125, 128});
}
