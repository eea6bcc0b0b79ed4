// Mirrors include/qtensor/ops/quantize_across.hpp: what comes from columns in memory is what the reference makes of it.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/quantize.hpp>

#include "check.hpp"

using namespace qtensor;

namespace {

template <format F>
storage_t<F> stored_number(float x) {
  if constexpr (std::is_same_v<F, f32>)
    return x;
  else
    return static_cast<storage_t<F>>(encode<F>(x));
}

/// Columns `gap` elements longer than the matrix, from the second element of their memory on.
template <format F>
struct columns_in_memory {
  std::vector<storage_t<F>> memory;
  std::vector<float> floats;  // by rows
  matrix_ref<const storage_t<F>> ref;

  columns_in_memory(const std::vector<float>& x, index_t rows, index_t cols, index_t gap)
      : memory(static_cast<std::size_t>(cols * (rows + gap) + 1)), floats(x.size()) {
    for (index_t r = 0; r < rows; ++r)
      for (index_t c = 0; c < cols; ++c) {
        const auto number = stored_number<F>(x[static_cast<std::size_t>(r * cols + c)]);
        memory[static_cast<std::size_t>(c * (rows + gap) + r + 1)] = number;
        floats[static_cast<std::size_t>(r * cols + c)] = simd::number<simd::source_of<F>>(number);
      }
    ref = {memory.data() + 1, cols, rows, rows + gap, 1};
  }
};

/// Dynamic, then static with the scales that gave. `gives_up`: shared scales have a special block.
template <quantization_scheme S, format F>
void compare(const std::vector<float>& x, index_t rows, index_t cols, index_t gap, bool gives_up = false) {
  INFO(std::string(name<S>), " ", rows, " x ", cols, " of ", std::string(std::string_view(F::name)));
  const columns_in_memory<F> columns(x, rows, cols, gap);
  const matrix_extents shape(rows, cols);
  const auto want = check::expected<S, row_major>(columns.floats, shape);
  tensor<S> out(shape);
  using quantizer = ops::row_quantizer<S, matrix_extents, row_major, simd::source_of<F>>;
  const auto span = out.span();
  const quantizer q(span, false);
  const index_t step = ops::piece_step<S>(q.block_length(), q.row_length());
  const auto across = [&] { return ops::across_quantizer<quantizer>(q, columns.ref, q.block_length(), step); };
  CHECK(across().quantize() == !gives_up);
  if (gives_up) return;
  CHECK(check::same_bytes(out, want));
  for (auto& code : out.codes()) code = {};
  across().encode();
  bool same = true;
  for (index_t r = 0; r < rows; ++r)
    for (index_t c = 0; c < cols; ++c)
      same =
          same && out.view().code(r, c) == quantize_element<S>(columns.floats[static_cast<std::size_t>(r * cols + c)],
                                                               {want.view().scale(r, c)}, want.view().zero_point(r, c));
  CHECK(same);
}

template <quantization_scheme S>
void compare_shapes() {
  unsigned seed = 0;
  const index_t most = check::full ? 200 : 50;
  for (const auto& [rows, cols] :
       {std::pair<index_t, index_t>{16, 16}, {37, 70}, {128, 256}, {most, 777}, {17, 2500}}) {
    const std::vector<float> x = check::numbers(rows * cols, ++seed);
    compare<S, f32>(x, rows, cols, 0);
    compare<S, bf16>(x, rows, cols, 3);
    compare<S, f16>(x, rows, cols, 1);
  }
}

}  // namespace

TEST_CASE("quantize_across: one scale for all, for rows, for columns") {
  compare_shapes<int8_per_tensor>();
  compare_shapes<int8_per_channel<0>>();
  check::in_full<uint8_per_tensor, scheme<int4, per_tensor>, uint8_per_channel<0>>(
      []<class S>() { compare_shapes<S>(); });
  compare_shapes<int8_per_channel<1>>();
  compare_shapes<scheme<e4m3, block<whole, 48>>>();
}

TEST_CASE("quantize_across: groups along the rows, codes of every width") {
  compare_shapes<mxfp8_e4m3>();
  compare_shapes<mxfp4>();
  compare_shapes<uint4_group<32>>();
  compare_shapes<scheme<int4, group<5>>>();
  check::in_full<mxfp6_e2m3, nvfp4, int4_group<32>, scheme<int2, group<400>>>([]<class S>() { compare_shapes<S>(); });
  compare_shapes<scheme<hif8, group<64>>>();
}

TEST_CASE("quantize_across: blocks with NaN and infinities") {
  const index_t rows = 40, cols = 300;
  std::vector<float> x = check::numbers(rows * cols, 3, false);
  x[5] = quiet_nan, x[700] = -infinity, x[5000] = infinity;
  for (std::size_t i = 6000; i < 6300; ++i) x[i] = 0.f;
  const auto dynamic = [&]<class S>(std::type_identity<S>) {
    INFO(std::string(name<S>), " ", std::string(choices<S>));
    const columns_in_memory<f32> columns(x, rows, cols, 0);
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
  compare<int8_per_tensor, f32>(x, rows, cols, 0);  // codes are all 0
  compare<scheme<e4m3, per_tensor>, f32>(x, rows, cols, 0, true);
}

TEST_CASE("quantize_across: sources that lie across, and parts of them, are quantized as others are") {
  const index_t rows = 300, cols = 520;
  const std::vector<float> x = check::numbers(rows * cols, 7);
  const columns_in_memory<f32> columns(x, rows, cols, 0);
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
