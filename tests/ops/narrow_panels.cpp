// Mirrors include/qtensor/ops/narrow_panels.hpp: narrow panels in a tile, and quantize by way of it.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/narrow_panels.hpp>

#include "halves_check.hpp"

using namespace qtensor;
using halves_check::with_specials;

namespace {

enum class sources { memory, all };

/// Panels of every width, whole ones and a short last one, dynamic and static; of all kinds of sources, or of memory.
template <quantization_scheme S, sources Of = sources::memory>
void check_panels() {
  INFO(std::string(name<S>), " ", std::string(choices<S>));
  for (const index_t cols : {1, 2, 3, 8, 16, 31, 33, 40, 64, 70})
    for (const bool special : {false, true}) {
      const index_t rows = special ? 330 : 96;
      const matrix_extents shape(rows, cols);
      INFO(rows, " x ", cols);
      const std::vector<float> x = special ? with_specials(shape.size(), 5) : check::numbers(shape.size(), 6);
      const auto expected = check::expected<S, row_major>(x, shape);
      CHECK(check::same_bytes(quantize<S>(source(x.data(), shape)), expected));

      const index_t wide = cols + 5;
      std::vector<float> turned(x.size()), apart(static_cast<std::size_t>(rows * wide), quiet_nan);
      for (index_t r = 0; r < rows; ++r)
        for (index_t c = 0; c < cols; ++c)
          turned[static_cast<std::size_t>(c * rows + r)] = apart[static_cast<std::size_t>(r * wide + c)] =
              x[static_cast<std::size_t>(r * cols + c)];
      CHECK(check::same_bytes(quantize<S>(source(turned.data(), shape, {1, rows})), expected));
      CHECK(check::same_bytes(quantize<S>(source(apart.data(), shape, {wide, 1})), expected));

      if constexpr (Of == sources::all) {
        tensor<S> read(shape);
        quantize_into(check::tiled_source{{x.data(), rows, cols, cols, 1}}, read.span());
        CHECK(check::same_bytes(read, expected));

        const halves_check::numbers<bf16> halves(x);
        CHECK(check::same_bytes(quantize<S>(source<bf16>(halves.data(), shape)),
                                check::expected<S, row_major>(halves.floats, shape)));
      }
      if constexpr (!S::has_tensor_scale) {
        auto again = expected, once = expected;
        for (auto& code : again.codes()) code = {};
        quantize_static_into(memory_source<f32, matrix_extents>::in_order<row_major>(source(x.data(), shape)),
                             again.span());
        reference::quantize_static([&](const auto& at) { return x[static_cast<std::size_t>(at[0] * cols + at[1])]; },
                                   once.span());
        CHECK(check::same_bytes(again, once));
      }
    }
  const extents cube(3, 70, 21);
  const std::vector<float> x = with_specials(cube.size(), 7);
  if constexpr (Of == sources::all && fits_rank<typename S::granularity_type>(3))
    CHECK(check::same_bytes(quantize<S>(source(x.data(), cube)), check::expected<S, row_major>(x, cube)));
}

template <class S>
std::optional<ops::narrow_panels> tile_of(index_t rows, index_t cols) {
  const tensor<S> t(extents(rows, cols));
  return ops::narrow_panels::of(t.view());
}

}  // namespace

TEST_CASE("narrow panels: groups down the columns") {
  check_panels<with<mxfp8_e4m3, group<32, -2>>>();
  check_panels<with<mxfp4, group<32, -2>>, sources::all>();
  check::in_full<scheme<e3m2, group<16, -2>, scale_as<e8m0>, mx_floor>>([]<class S>() { check_panels<S>(); });
}
TEST_CASE("narrow panels: with a scale of the tensor") {
  check_panels<with<nvfp4, group<16, -2>, tensor_scale<f32>>>();
}
TEST_CASE("narrow panels: integers, zero points too") {
  check::in_full<scheme<int8, group<32, -2>>>([]<class S>() { check_panels<S>(); });
  check_panels<scheme<uint8, group<20, -2>, zero_point<uint8>>, sources::all>();
}
TEST_CASE("narrow panels: blocks, of which the last in a row may be short") {
  check_panels<scheme<int8, block<16, 16>>, sources::all>();
  check_panels<scheme<uint4, block<8, 6>, zero_point<uint4>>>();
  check::in_full<fp8_block<128, 128>>([]<class S>() { check_panels<S>(); });
}
TEST_CASE("narrow panels: blocks that leave numbers out") {
  check_panels<scheme<e4m3, block<16, 16>, block_ignores, nan_to_zero>>();
}

TEST_CASE("narrow panels: which tensors have a tile") {
  const auto groups = tile_of<with<mxfp8_e4m3, group<32, -2>>>(100, 24);
  REQUIRE(groups.has_value());
  CHECK(groups->rows == 32);
  CHECK(groups->width == 24);
  CHECK(groups->block == 1);
  CHECK(groups->blocks == 24);
  CHECK(groups->most == 3);
  const auto blocks = tile_of<scheme<int4, block<16, 16>>>(1000, 33);
  REQUIRE(blocks.has_value());
  CHECK(blocks->width == 48);
  CHECK(blocks->block == 16);
  CHECK(blocks->blocks == 3);
  CHECK(tile_of<scheme<int4, block<16, whole>>>(1000, 33)->width == 34);
  CHECK_FALSE(tile_of<with<mxfp8_e4m3, group<32, -2>>>(40, 24).has_value());     // one panel, and a short one
  CHECK_FALSE(tile_of<with<mxfp8_e4m3, group<32, -2>>>(1000, 500).has_value());  // wide ones
  CHECK_FALSE(tile_of<with<mxfp4, group<32, -2>>>(1000, 7).has_value());         // rows that end inside a byte
  CHECK_FALSE(tile_of<mxfp8_e4m3>(1000, 24).has_value());                        // rows of their own
  CHECK_FALSE(tile_of<int8_per_channel<1>>(1000, 24).has_value());               // all rows
}

TEST_CASE("narrow panels: nothing between rows is written") {
  using S = scheme<int8, block<16, whole>>;
  constexpr index_t rows = 70, cols = 40, some = 19;
  const matrix_extents shape(rows, some);
  const std::vector<float> x = check::numbers(shape.size(), 3);
  std::vector<std::int8_t> codes(static_cast<std::size_t>(rows * cols), 77);
  const auto expected = check::expected<S, row_major>(x, shape);
  auto t = expected;
  const auto dense = t.span();
  auto memory = dense.memory();
  memory.codes = codes.data();
  const tensor_span<S> apart(dense.shape(), memory, {cols, 1}, dense.scale_grid(), dense.zero_grid());
  quantize_into(memory_source<f32, matrix_extents>::in_order<row_major>(source(x.data(), shape)), apart);
  bool ok = true;
  for (index_t r = 0; r < rows; ++r)
    for (index_t c = 0; c < cols; ++c)
      ok = ok && codes[static_cast<std::size_t>(r * cols + c)] ==
                     (c < some ? expected.codes()[static_cast<std::size_t>(r * some + c)] : 77);
  CHECK(ok);
}

TEST_CASE("narrow panels: past the caches") {
  using S = scheme<int4, block<16, 16>>;
  constexpr index_t cols = 22, rows = ops::streaming_floats / cols + 100, part = 16 * 50;
  const matrix_extents shape(rows, cols);
  const std::vector<float> x = with_specials(shape.size(), 9);
  const auto all = quantize<S>(source(x.data(), shape));
  bool ok = true;
  for (index_t row = 0; row + part <= rows; row += 16 * 997) {
    const auto some = quantize<S>(source(x.data() + row * cols, matrix_extents(part, cols)));
    const auto* codes = all.view().row({row, 0});
    ok = ok && std::equal(some.codes().begin(), some.codes().end(), codes);
  }
  CHECK(ok);
}
