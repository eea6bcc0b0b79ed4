// Mirrors include/qtensor/ops/epilogue.hpp: stages and sinks, fed with tiles of a matrix that is known.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <cmath>
#include <qtensor/ops/epilogue.hpp>
#include <qtensor/scheme/schemes.hpp>
#include <vector>

using namespace qtensor;

namespace {

constexpr index_t rows = 11, outputs = 150;

float number(index_t m, index_t n, index_t seed = 0) {
  auto h = static_cast<std::uint32_t>(m * 977 + n + seed * 100003) * 0x9e3779b1u;
  h = (h ^ h >> 15) * 0x2c1b3c6du;
  const float v = static_cast<float>(static_cast<std::int32_t>(h ^ h >> 13)) * 0x1p-28f;
  return h % 97 == 0 ? quiet_nan : h % 89 == 0 ? -0.f : v;
}
std::vector<float> numbers(index_t m, index_t n, index_t seed) {
  std::vector<float> x(static_cast<std::size_t>(m * n));
  for (index_t i = 0; i < m * n; ++i) x[static_cast<std::size_t>(i)] = number(i / n, i % n, seed);
  return x;
}

/// Hands the matrix of number() to a sink in tiles of at most `height` x `width`, the last ones first.
template <class Sink>
void feed(const Sink& sink, index_t height = 6, index_t width = 64) {
  const index_t stride = round_up(width, 64);
  const std::size_t floats = static_cast<std::size_t>(height * stride);
  auto* const tile = static_cast<float*>(::operator new (floats * sizeof(float), std::align_val_t{64}));
  for (index_t c = (outputs - 1) / width * width; c >= 0; c -= width)
    for (index_t r = 0; r < rows; r += height) {
      const product_tile t{r, c, std::min(height, rows - r), std::min(width, outputs - c), tile, stride};
      std::fill_n(tile, floats, 0.f);
      for (index_t i = 0; i < t.rows; ++i)
        for (index_t k = 0; k < t.cols; ++k) tile[i * stride + k] = number(r + i, c + k);
      sink(t);
    }
  ::operator delete (tile, std::align_val_t{64});
}
/// Whether stages make want(number, m, n) of every number, whatever the tiles.
template <class Stages, class Want>
void check_stages(const Stages& stages, const Want& want) {
  stages.check(rows, outputs);
  for (const auto& [height, width] : {std::pair<index_t, index_t>{6, 64}, {1, 16}, {11, 150}, {4, 320}}) {
    std::vector<float> y(rows * outputs);
    const auto keep = [&](const product_tile& t) {
      for (index_t r = 0; r < t.rows; ++r)
        for (index_t c = 0; c < t.cols; ++c)
          y[static_cast<std::size_t>((t.row + r) * outputs + t.col + c)] = t.values[r * t.stride + c];
    };
    feed(ops::staged<Stages, decltype(keep)>{stages, keep}, height, width);
    // Floats in memory: rows with gaps, and columns.
    constexpr index_t gap = 5, step = outputs + gap;
    std::vector<float> by_rows(rows * step, -7.f), by_columns(rows * outputs);
    using store = ops::store_floats<simd::best_arch>;
    feed(ops::staged<Stages, store>{stages, store{{by_rows.data(), rows, outputs, step, 1}}}, height, width);
    feed(ops::staged<Stages, store>{stages, store{{by_columns.data(), rows, outputs, 1, rows}}}, height, width);
    for (index_t m = 0; m < rows; ++m) {
      for (index_t n = 0; n < outputs; ++n) {
        const std::uint32_t bits = bits_of(y[static_cast<std::size_t>(m * outputs + n)]);
        REQUIRE(bits_of(by_rows[static_cast<std::size_t>(m * step + n)]) == bits);
        REQUIRE(bits_of(by_columns[static_cast<std::size_t>(n * rows + m)]) == bits);
      }
      for (index_t n = outputs; n < step; ++n) REQUIRE(by_rows[static_cast<std::size_t>(m * step + n)] == -7.f);
    }
    for (index_t m = 0; m < rows; ++m)
      for (index_t n = 0; n < outputs; ++n) {
        const float found = y[static_cast<std::size_t>(m * outputs + n)], wanted = want(number(m, n), m, n);
        CAPTURE(m);
        CAPTURE(n);
        REQUIRE((is_nan(wanted) ? is_nan(found) : bits_of(found) == bits_of(wanted)));
      }
  }
}

template <class S, class Order>
constexpr auto result_extents() {
  return std::is_same_v<Order, row_major> ? matrix_extents(rows, outputs) : matrix_extents(outputs, rows);
}
template <class T>
bool same_tensor(const T& a, const T& b) {
  return std::equal(a.codes().begin(), a.codes().end(), b.codes().begin(), b.codes().end()) &&
         std::equal(a.scales().begin(), a.scales().end(), b.scales().begin(), b.scales().end(),
                    [](auto x, auto y) { return x == y || (x != x && y != y); });
}
/// Tiles quantized as they come are the matrix quantized as a whole.
template <class S, class Order>
void check_dynamic() {
  using extents_type = matrix_extents;
  tensor<S, extents_type, Order> tiles(result_extents<S, Order>()), whole(result_extents<S, Order>());
  const auto x = numbers(rows, outputs, 0);
  quantize_into(matrix_ref<const float>{x.data(), rows, outputs, outputs, 1}, whole.span());
  using sink = ops::quantize_tiles<S, extents_type, Order>;
  REQUIRE(sink::may_quantize(tiles.span(), 64));
  feed(sink{ops::quantized_lines(tiles.span())});
  CHECK(same_tensor(tiles, whole));
}
template <class S, class Order, class Scales, class... Zeros>
void check_static(const Scales& scales, const Zeros&... zeros) {
  using extents_type = matrix_extents;
  tensor<S, extents_type, Order> tiles(result_extents<S, Order>());
  store_scales(tiles.span(), scales);
  (store_zero_points(tiles.span(), zeros), ...);
  auto whole = tiles;
  const auto x = numbers(rows, outputs, 0);
  quantize_static_into(matrix_ref<const float>{x.data(), rows, outputs, outputs, 1}, whole.span());
  using sink = ops::encode_tiles<S, extents_type, Order>;
  static_assert(sink::may_encode);
  for (const index_t width : {64, 32, 16}) {
    feed(sink(ops::quantized_lines(tiles.span())), 6, width);
    CHECK(same_tensor(tiles, whole));
  }
}

}  // namespace

TEST_CASE("stages: numbers, one or one for each output") {
  const auto b = numbers(1, outputs, 1);
  const auto at = [&](index_t n) { return b[static_cast<std::size_t>(n)]; };
  check_stages(stages(stage::bias(b)), [&](float v, index_t, index_t n) { return v + at(n); });
  check_stages(stages(stage::scale(b)), [&](float v, index_t, index_t n) { return v * at(n); });
  check_stages(stages(stage::scale(-1.5f)), [](float v, index_t, index_t) { return v * -1.5f; });
  check_stages(stages(), [](float v, index_t, index_t) { return v; });
}

TEST_CASE("stages: clip, relu, functions; NaN stays, -0 stays") {
  check_stages(stages(stage::clip(-1.f, 2.f)), [](float v, index_t, index_t) {
    return v < -1.f ? -1.f : v > 2.f ? 2.f : v;
  });
  check_stages(stages(stage::relu()), [](float v, index_t, index_t) { return v < 0.f ? 0.f : v; });
  const auto silu = [](float v) { return v / (1.f + std::exp(-v)); };
  check_stages(stages(stage::apply(silu)), [&](float v, index_t, index_t) { return silu(v); });
}

TEST_CASE("stages: other matrices, floats and quantized ones") {
  const auto x = numbers(rows, outputs, 2);
  const matrix_ref<const float> other{x.data(), rows, outputs, outputs, 1};
  check_stages(stages(stage::sum(other)), [&](float v, index_t m, index_t n) { return v + other(m, n); });
  check_stages(stages(stage::sum(other, 0.3f)), [&](float v, index_t m, index_t n) {
    const float product = rounded(other(m, n) * 0.3f);
    return v + product;
  });
  check_stages(stages(stage::binary<stage_operation::subtract>(other)),
               [&](float v, index_t m, index_t n) { return v - other(m, n); });
  check_stages(stages(stage::binary<stage_operation::divide>(other)),
               [&](float v, index_t m, index_t n) { return v / other(m, n); });
  // One number for each activation: a matrix without a step along the outputs.
  const matrix_ref<const float> each{x.data(), rows, outputs, 1, 0};
  check_stages(stages(stage::binary<stage_operation::multiply>(each)),
               [&](float v, index_t m, index_t) { return v * each(m, 0); });
  const auto either_nan = [](float a, float b) { return is_nan(a) || is_nan(b); };
  check_stages(stages(stage::binary<stage_operation::maximum>(other)), [&](float v, index_t m, index_t n) {
    return either_nan(v, other(m, n)) ? quiet_nan : v > other(m, n) ? v : other(m, n);
  });
  check_stages(stages(stage::binary<stage_operation::minimum>(other)), [&](float v, index_t m, index_t n) {
    return either_nan(v, other(m, n)) ? quiet_nan : v < other(m, n) ? v : other(m, n);
  });
  const auto q = quantize<uint8_per_channel<0>>(source(x.data(), extents(rows, outputs)), 0.125f, 100);
  check_stages(stages(stage::sum(q)), [&](float v, index_t m, index_t n) {
    return v + reference::value(q.view(), {m, n});
  });
}

TEST_CASE("stages: quantized in between, and one after the other") {
  using S = uint8_per_tensor;
  check_stages(stages(stage::round_trip<S>(0.25f, 7)), [](float v, index_t, index_t) {
    return dequantize_element<S>(quantize_element<S>(v, element_scale{0.25f}, 7), element_scale{0.25f}, 7);
  });
  const auto b = numbers(1, outputs, 1);
  check_stages(stages(stage::bias(b), stage::relu(), stage::scale(3.f)), [&](float v, index_t, index_t n) {
    const float sum = rounded(v + b[static_cast<std::size_t>(n)]);
    return (sum < 0.f ? 0.f : sum) * 3.f;
  });
}

TEST_CASE("stages: sizes and numbers that do not fit throw") {
  const std::vector<float> b(3);
  CHECK_THROWS_WITH_AS(stages(stage::bias(b)).check(2, 4),
                       "qtensor: a stage is given 3 numbers, but the product has 4 outputs; it takes one for each of "
                       "them.",
                       error);
  const matrix_ref<const float> x{b.data(), 1, 3, 3, 1};
  CHECK_THROWS_WITH_AS(stages(stage::relu(), stage::sum(x)).check(2, 3),
                       "qtensor: a stage combines a product of 2x3 (activations by outputs) with a matrix of 1x3; "
                       "sizes must agree.",
                       error);
  CHECK_THROWS_WITH_AS(stages(stage::clip(1.f, 0.f)).check(1, 1),
                       "qtensor: a stage clips to [1, 0]; the first must not be above the second.", error);
  CHECK_THROWS_WITH_AS(stages(stage::round_trip<uint8_per_tensor>(0.1f, 300)).check(1, 1),
                       "qtensor: a stage quantizes with the zero point 300; it must be from 0 to 255.", error);
  CHECK_THROWS_WITH_AS(stages(stage::round_trip<int8_per_tensor>(0.1f, 100)).check(1, 1),
                       "qtensor: a stage quantizes with the zero point 100; it must be from 0 to 0.", error);
  CHECK_THROWS_WITH_AS(stages(stage::round_trip<int8_per_tensor>(0.f)).check(1, 1),
                       "qtensor: a stage quantizes with the scale 0; it must be finite and positive.", error);
}

TEST_CASE("sinks: bf16 and f16, contiguous or not") {
  std::vector<std::uint16_t> y(rows * outputs), turned(rows * outputs);
  feed(ops::store_narrow<bf16>{{y.data(), rows, outputs, outputs, 1}});
  feed(ops::store_narrow<f16>{{turned.data(), rows, outputs, 1, rows}});
  for (index_t m = 0; m < rows; ++m)
    for (index_t n = 0; n < outputs; ++n) {
      REQUIRE(y[static_cast<std::size_t>(m * outputs + n)] == encode<bf16>(number(m, n)));
      REQUIRE(turned[static_cast<std::size_t>(n * rows + m)] == encode<f16>(number(m, n)));
    }
}

TEST_CASE("sinks: dynamic schemes whose groups lie inside tiles") {
  check_dynamic<mxfp8_e4m3, row_major>();
  check_dynamic<along<0, mxfp4>, col_major>();
  check_dynamic<along<0, uint4_group<16>>, col_major>();
  const auto may = []<class S>(const tensor<S, matrix_extents, row_major>& t, index_t width) {
    return ops::quantize_tiles<S, matrix_extents, row_major>::may_quantize(
        const_cast<std::remove_cvref_t<decltype(t)>&>(t).span(), width);
  };
  CHECK(!may(tensor<mxfp4>(matrix_extents(2, 64)), 16));               // groups of 32 in tiles of 16
  CHECK(may(tensor<int8_per_channel<0>>(matrix_extents(2, 48)), 64));  // a line is one tile
  CHECK(!may(tensor<int8_per_channel<0>>(matrix_extents(2, 100)), 64));
  CHECK(!may(tensor<int8_per_tensor>(matrix_extents(2, 48)), 64));
  CHECK(!may(tensor<with<nvfp4, tensor_scale<f32>>>(matrix_extents(2, 48)), 64));
}

TEST_CASE("sinks: static schemes of every granularity") {
  std::vector<float> each(outputs), line(rows);
  std::vector<int> zeros(outputs);
  for (std::size_t i = 0; i < each.size(); ++i)
    each[i] = 0.01f * static_cast<float>(i + 1), zeros[i] = static_cast<int>(i);
  for (std::size_t i = 0; i < line.size(); ++i) line[i] = 0.1f * static_cast<float>(i + 1);
  check_static<int8_per_tensor, row_major>(0.07f);
  check_static<uint8_per_tensor, col_major>(0.07f, 128);
  check_static<uint8_per_channel<1>, row_major>(each, zeros);
  check_static<int8_per_channel<0>, row_major>(line);
  check_static<scheme<int4, per_tensor>, row_major>(0.5f);
  check_static<along<0, int4_group<32>>, col_major>(0.5f);
  check_static<scheme<uint8, per_tensor, zero_point<uint8, per_channel<1>>, static_only>, row_major>(0.07f, zeros);
}
