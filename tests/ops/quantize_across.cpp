// Mirrors include/qtensor/ops/quantize_across.hpp: what comes from columns in memory is what the reference makes of it.
// SPDX-License-Identifier: BSD-3-Clause
#include "across_check.hpp"

using namespace qtensor;

TEST_CASE("quantize_across: one scale for all, for rows, for columns") {
  check::compare_shapes<int8_per_tensor>();
  check::compare_shapes<int8_per_channel<0>>();
  check::in_full<uint8_per_tensor, scheme<int4, per_tensor>, uint8_per_channel<0>>(
      []<class S>() { check::compare_shapes<S>(); });
  check::compare_shapes<int8_per_channel<1>>();
  check::compare_shapes<scheme<e4m3, block<whole, 48>>>();
}

TEST_CASE("quantize_across: groups along the rows, codes of every width") {
  check::compare_shapes<mxfp8_e4m3>();
  check::compare_shapes<mxfp4>();
  check::compare_shapes<uint4_group<32>>();
  check::compare_shapes<scheme<int4, group<5>>>();
  check::in_full<mxfp6_e2m3, nvfp4, int4_group<32>, scheme<int2, group<400>>>(
      []<class S>() { check::compare_shapes<S>(); });
  check::compare_shapes<scheme<hif8, group<64>>>();
}

TEST_CASE("quantize_across: blocks with NaN and infinities") {
  const index_t rows = 40, cols = 300;
  std::vector<float> x = check::numbers(rows * cols, 3, false);
  x[5] = quiet_nan, x[700] = -infinity, x[5000] = infinity;
  for (std::size_t i = 6000; i < 6300; ++i) x[i] = 0.f;
  const auto dynamic = [&]<class S>(std::type_identity<S>) {
    INFO(std::string(name<S>), " ", std::string(choices<S>));
    const check::columns_in_memory<f32> columns(x, rows, cols, 0);
    tensor<S> out(matrix_extents(rows, cols));
    const auto span = out.span();
    const ops::row_quantizer<S, matrix_extents, row_major> q(span, false);
    CHECK(
        ops::across_quantizer(q, columns.ref, q.block_length(), ops::piece_step<S>(q.block_length(), cols)).quantize());
    CHECK(check::same_bytes(out, check::expected<S, row_major>(x, matrix_extents(rows, cols))));
  };
  dynamic(std::type_identity<int8_per_channel<0>>{});
  dynamic(std::type_identity<uint8_per_channel<0>>{});
  dynamic(std::type_identity<mxfp8_e4m3>{});
  dynamic(std::type_identity<with<mxfp8_e4m3, block_to_zero>>{});
  dynamic(std::type_identity<with<mxfp4, block_ignores, nan_to_max>>{});
  dynamic(std::type_identity<with<uint4_group<32>, block_ignores>>{});
  check::compare<int8_per_tensor, f32>(x, rows, cols, 0);  // codes are all 0
  check::compare<scheme<e4m3, per_tensor>, f32>(x, rows, cols, 0, true);
}

TEST_CASE("quantize_across: sources that lie across, and parts of them, are quantized as others are") {
  const index_t rows = 300, cols = 520;
  const std::vector<float> x = check::numbers(rows * cols, 7);
  const check::columns_in_memory<f32> columns(x, rows, cols, 0);
  const auto memory = source(columns.ref.data, matrix_extents(rows, cols), {1, rows});
  const auto all = [&]<class S>(std::type_identity<S>) {
    CHECK(check::same_bytes(quantize<S>(memory), check::expected<S, row_major>(x, matrix_extents(rows, cols))));
  };
  all(std::type_identity<int8_per_channel<0>>{});
  all(std::type_identity<int8_per_tensor>{});
  all(std::type_identity<with<nvfp4, tensor_scale<f32>>>{});
  const typename decltype(memory)::template in_order<row_major> rows_of(memory);
  const ops::source_part part(rows_of, 100, 150, 37, 400);
  std::vector<float> some;
  for (index_t r = 100; r < 250; ++r) some.insert(some.end(), x.begin() + r * cols + 37, x.begin() + r * cols + 437);
  CHECK(check::same_bytes(make_quantized<int8_per_channel<0>, row_major>(part, matrix_extents(150, 400)),
                          check::expected<int8_per_channel<0>, row_major>(some, matrix_extents(150, 400))));
}
