// Mirrors include/qtensor/ops/quantize.hpp: special blocks, and every kind of source.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/quantize.hpp>

#include "check.hpp"

using namespace qtensor;

TEST_CASE("quantize: blocks with NaN and infinity follow the block policy") {
  std::vector<float> x = check::numbers(64 * 6, 3, false);
  x[5] = quiet_nan;
  x[70] = -infinity;
  x[200] = infinity;
  const matrix_extents shape(6, 64);
  const auto all = [&]<class S>(std::type_identity<S>) {
    INFO(std::string(name<S>), " ", std::string(choices<S>));
    CHECK(check::same_bytes(quantize<S>(source(x.data(), shape)), check::expected<S, row_major>(x, shape)));
  };
  all(std::type_identity<int8_per_channel<0>>{});
  all(std::type_identity<uint8_per_channel<0>>{});
  all(std::type_identity<mxfp8_e4m3>{});
  all(std::type_identity<with<mxfp8_e4m3, block_to_zero>>{});
  all(std::type_identity<with<mxfp4, block_ignores, nan_to_max>>{});
  all(std::type_identity<with<uint4_group<32>, block_ignores>>{});
  all(std::type_identity<scheme<e4m3, block<2, 32>, bounded_amax<>, block_literal, nan_to_zero>>{});
  all(std::type_identity<scheme<e4m3, block<2, 32>, bounded_amax<>, block_ignores_nan, nan_to_zero>>{});
  all(std::type_identity<scheme<e4m3, per_channel<1>, bounded_amax<>, block_ignores_nan, nan_to_zero>>{});
}

TEST_CASE("quantize: a source that is read in tiles, and only once, gives the same bytes") {
  const index_t rows = 100, cols = 300;
  const std::vector<float> x = check::numbers(rows * cols, 9);
  const check::tiled_source tiles{{x.data(), rows, cols, cols, 1}};
  const auto both = [&]<class S>(std::type_identity<S>) {
    INFO(std::string(name<S>));
    CHECK(check::same_bytes(make_quantized<S, row_major>(tiles, matrix_extents(rows, cols)),
                            check::expected<S, row_major>(x, matrix_extents(rows, cols))));
  };
  both(std::type_identity<int8_per_tensor>{});
  both(std::type_identity<int8_per_channel<0>>{});
  both(std::type_identity<uint8_per_channel<1>>{});
  both(std::type_identity<mxfp4>{});
  both(std::type_identity<fp8_block<16, 128>>{});
}

TEST_CASE("quantize: bf16 and f16 sources, strided sources") {
  const std::vector<float> x = check::numbers(12 * 40, 5);
  std::vector<std::uint16_t> b(x.size()), h(x.size());
  std::vector<float> from_b(x.size()), from_h(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    b[i] = static_cast<std::uint16_t>(encode<bf16>(x[i]));
    h[i] = static_cast<std::uint16_t>(encode<f16>(x[i]));
    from_b[i] = decode<bf16>(b[i]);
    from_h[i] = decode<f16>(h[i]);
  }
  const matrix_extents shape(12, 40);
  CHECK(check::same_bytes(quantize<mxfp4>(source<bf16>(b.data(), shape)),
                          check::expected<mxfp4, row_major>(from_b, shape)));
  CHECK(check::same_bytes(quantize<int8_per_tensor>(source<f16>(h.data(), shape)),
                          check::expected<int8_per_tensor, row_major>(from_h, shape)));

  std::vector<float> every_second_column(12 * 20);
  for (std::size_t r = 0; r < 12; ++r)
    for (std::size_t c = 0; c < 20; ++c) every_second_column[r * 20 + c] = x[r * 40 + 2 * c];
  CHECK(check::same_bytes(quantize<mxfp4>(source(x.data(), matrix_extents(12, 20), {40, 2})),
                          check::expected<mxfp4, row_major>(every_second_column, matrix_extents(12, 20))));
}

TEST_CASE("quantize: one block of several rows with gaps between them has one scale") {
  for (const matrix_extents shape : {matrix_extents(32, 104), matrix_extents(6, 600), matrix_extents(2, 2048),
                                     matrix_extents(40, 100), matrix_extents(41, 100)}) {
    const index_t rows = shape[0], cols = shape[1];
    INFO(rows, " x ", cols);
    const index_t step = cols + 3;
    const std::vector<float> memory = check::numbers(rows * step, 17, false);
    std::vector<float> x;
    for (index_t r = 0; r < rows; ++r) x.insert(x.end(), memory.begin() + r * step, memory.begin() + r * step + cols);
    const auto gaps = source(memory.data(), shape, {step, 1});
    CHECK(check::same_bytes(quantize<int8_per_tensor>(gaps), check::expected<int8_per_tensor, row_major>(x, shape)));
  }
}
