// Mirrors include/qtensor/ops/padded_rows.hpp: short rows in a tile, and quantize and dequantize by way of it.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/padded_rows.hpp>

#include "halves_check.hpp"

using namespace qtensor;
using halves_check::with_specials;

namespace {

/// Rows of every kind of length, two and three axes, by the reference and back.
template <quantization_scheme S>
void check_rows() {
  INFO(std::string(name<S>), " ", std::string(choices<S>));
  const auto same = [](float a, float b) { return bits_of(a) == bits_of(b) || (is_nan(a) && is_nan(b)); };
  for (const index_t cols : {1, 5, 8, 17, 31, 33, 65, 100, 257, 1003, 1029, 2050})
    for (const bool special : {false, true}) {
      const index_t rows = cols < 300 ? 37 : 5;
      const matrix_extents shape(rows, cols);
      INFO(rows, " x ", cols);
      const std::vector<float> x = special ? with_specials(shape.size(), 5) : check::numbers(shape.size(), 6);
      const auto t = quantize<S>(source(x.data(), shape));
      CHECK(check::same_bytes(t, check::expected<S, row_major>(x, shape)));

      std::vector<float> turned(x.size()), back(x.size()), columns(x.size());
      for (index_t r = 0; r < rows; ++r)
        for (index_t c = 0; c < cols; ++c)
          turned[static_cast<std::size_t>(c * rows + r)] = x[static_cast<std::size_t>(r * cols + c)];
      CHECK(check::same_bytes(quantize<S>(source(turned.data(), shape, {1, rows})), t));

      const auto view = t.view();
      dequantize_into(view, back.data(), {cols, 1});
      dequantize_into(view, columns.data(), {1, rows});
      bool ok = true;
      for (index_t r = 0; r < rows; ++r)
        for (index_t c = 0; c < cols; ++c) {
          const float value = reference::value(view, {r, c});
          ok = ok && same(back[static_cast<std::size_t>(r * cols + c)], value);
          ok = ok && same(columns[static_cast<std::size_t>(c * rows + r)], value);
        }
      CHECK(ok);
    }
  const extents cube(3, 7, 21);
  const std::vector<float> x = with_specials(cube.size(), 7);
  if constexpr (fits_rank<typename S::granularity_type>(3))
    CHECK(check::same_bytes(quantize<S>(source(x.data(), cube)), check::expected<S, row_major>(x, cube)));
}

}  // namespace

TEST_CASE("rows of a tile: groups, whose last one may be short") {
  check_rows<mxfp8_e4m3>();
  check::in_full<scheme<e3m2, group<32>, scale_as<e8m0>, mx_floor>>([]<class S>() { check_rows<S>(); });
}
TEST_CASE("rows of a tile: with a scale of the tensor") { check_rows<with<nvfp4, tensor_scale<f32>>>(); }
TEST_CASE("rows of a tile: integers in groups") {
  check::in_full<int4_group<32>>([]<class S>() { check_rows<S>(); });
  check_rows<scheme<uint4, group<32>, zero_point<uint4>>>();
  check_rows<scheme<uint4, group<32>, zero_point<uint4>, planar<high_first>>>();
}
TEST_CASE("rows of a tile: a scale for each row") {
  check::in_full<int8_per_channel<0>>([]<class S>() { check_rows<S>(); });
  check_rows<uint8_per_channel<0>>();
}

TEST_CASE("rows of a tile: which tensors have one") {
  const auto tile_of = []<class S>(std::type_identity<S>, index_t rows, index_t cols) {
    const tensor<S> t(extents(rows, cols));
    return ops::padded_rows::of(t.view());
  };
  const auto groups = tile_of(std::type_identity<mxfp8_e4m3>{}, 40, 33);
  REQUIRE(groups.has_value());
  CHECK(groups->length == 64);
  CHECK(groups->block == 32);
  CHECK(groups->blocks == 2);
  CHECK(groups->most == 40);
  CHECK(tile_of(std::type_identity<mxfp4>{}, 4000, 17)->step<mxfp4>() == 16);
  CHECK(ops::units_of_row<mxfp4>(17) == 9);
  CHECK(tile_of(std::type_identity<mxfp4>{}, 4000, 17)->most == ops::tile_floats / 32);
  CHECK(tile_of(std::type_identity<int8_per_channel<0>>{}, 3, 65)->length % (4 * simd::lanes<simd::best_arch>) == 0);
  CHECK_FALSE(tile_of(std::type_identity<mxfp8_e4m3>{}, 4, 5000).has_value());         // long rows
  CHECK_FALSE(tile_of(std::type_identity<int8_per_tensor>{}, 4, 33).has_value());      // one scale
  CHECK_FALSE(tile_of(std::type_identity<int8_per_channel<1>>{}, 4, 33).has_value());  // shared down the columns
}

TEST_CASE("rows of a tile: nothing between rows is written") {
  using S = int8_per_channel<0>;
  constexpr index_t rows = 19, cols = 70, some = 33;
  const matrix_extents shape(rows, some);
  const std::vector<float> x = check::numbers(shape.size(), 3);
  tensor<S> t(extents(rows, cols));
  for (auto& code : t.codes()) code = 77;
  quantize_into(memory_source<f32, matrix_extents>::in_order<row_major>(source(x.data(), shape)),
                t.span().slice<1>(0, some));
  const auto expected = check::expected<S, row_major>(x, shape);
  bool ok = true;
  for (index_t r = 0; r < rows; ++r)
    for (index_t c = 0; c < cols; ++c)
      ok = ok && t.codes()[static_cast<std::size_t>(r * cols + c)] ==
                     (c < some ? expected.codes()[static_cast<std::size_t>(r * some + c)] : 77);
  CHECK(ok);
}

TEST_CASE("store_tile: apart, side by side, and past the caches") {
  constexpr index_t rows = 7, n = 21, length = 32;
  for (const bool streams : {false, true})
    for (const index_t step : {n, n + 3}) {
      std::vector<std::uint16_t> tile(rows * length), to(rows * step, 9);
      for (std::size_t i = 0; i < tile.size(); ++i) tile[i] = static_cast<std::uint16_t>(i);
      ops::store_tile(tile.data(), length, rows, n, to.data(), step, streams);
      simd::stream_fence<simd::best_arch>();
      bool ok = true;
      for (index_t r = 0; r < rows; ++r)
        for (index_t c = 0; c < step; ++c)
          ok = ok && to[static_cast<std::size_t>(r * step + c)] == (c < n ? r * length + c : 9);
      CHECK(ok);
    }
}
