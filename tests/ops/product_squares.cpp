// Mirrors include/qtensor/ops/product_squares.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <bit>
#include <limits>
#include <qtensor/ops/code_matrix.hpp>
#include <qtensor/ops/product_int8.hpp>
#include <qtensor/ops/product_squares.hpp>
#include <qtensor/ops/quantize.hpp>
#include <qtensor/scheme/schemes.hpp>
#include <vector>

#include "../simd/check.hpp"
#include "threads.hpp"

namespace simd = qtensor::simd;
using namespace qtensor;

namespace {

using arch = simd::best_arch;

/// Codes at the ends of their range more often than not, zero points anywhere.
template <class S>
tensor<S> random_tensor(index_t rows, index_t cols, bool one_zero) {
  tensor<S> t(matrix_extents(rows, cols));
  for (auto& c : t.codes()) {
    const std::uint32_t bits = check::random_bits()();
    c = static_cast<std::remove_reference_t<decltype(c)>>(bits % 4 > 1 ? (bits & 64 ? 0x80 : 0x7f) + bits % 2
                                                                       : bits >> 8);
  }
  for (auto& s : t.scales()) s = 0.001f * static_cast<float>(1 + check::random_below(1000));
  if constexpr (S::has_zero_point)
    for (auto& z : t.zero_points())
      z = static_cast<std::remove_reference_t<decltype(z)>>(one_zero ? 77 : check::random_bits()());
  return t;
}

template <class View>
auto by_rows(const View& v) {
  return ops::weights_of<View, depth_axis::cols>(v);
}

/// The exact sums, row by row.
template <class W, class X>
std::vector<std::int64_t> exact_sums(const W& w, const X& x) {
  const auto numbers = [](const auto& v) {
    using code = typename std::remove_cvref_t<decltype(v)>::scheme_type::code_format;
    std::vector<std::int32_t> all;
    for (index_t r = 0; r < v.rows(); ++r)
      for (index_t k = 0; k < v.cols(); ++k)
        all.push_back(static_cast<std::int32_t>(code::decode(v.code(r, k)) - static_cast<float>(v.zero_point(r, k))));
    return all;
  };
  const auto ws = numbers(w), xs = numbers(x);
  const index_t rows = w.rows(), depth = w.cols();
  std::vector<std::int64_t> sums;
  // By pointers, for programs without optimization: this takes most of their time.
  for (const std::int32_t* m = xs.data(); m != xs.data() + xs.size(); m += depth)
    for (index_t n = 0; n < rows; ++n) {
      const std::int32_t* const of_w = ws.data() + n * depth;
      std::int64_t sum = 0;
      for (index_t k = 0; k < depth; ++k) sum += std::int64_t{of_w[k]} * m[k];
      sums.push_back(sum);
    }
  return sums;
}

template <class SW, class SX, class By = serial>
void check_both_ways(index_t m, index_t n, index_t k, bool one_zero = true, const By& by = {}) {
  INFO(m << "x" << n << "x" << k);
  const auto wt = random_tensor<SW>(n, k, false);
  const auto xt = random_tensor<SX>(m, k, one_zero);
  const auto w = wt.view();
  const auto x = xt.view();
  const auto sums = exact_sums(w, x);
  const auto packed = pack<arch>(wt);
  const auto check_weights = [&](const auto& weights) {
    check::fenced<float> y(m * n);
    const ops::store_floats<arch> store{{y.data(), m, n, n, 1}};
    ops::multiply_integers<arch>(weights, by_rows(x), ops::scaled<ops::store_floats<arch>>{store}, by);
    check::fenced<std::int32_t> kept(m * n);
    const ops::store_integers whole{{kept.data(), m, n, n, 1}};
    ops::multiply_integers<arch>(weights, by_rows(x), ops::unscaled<ops::store_integers>{whole}, by);
    std::vector<std::int32_t> found(sums.size(), 77);
    const auto keep = [&](const integer_tile& t) {
      for (index_t r = 0; r < t.rows; ++r)
        for (index_t c = 0; c < t.cols; ++c)
          found[static_cast<std::size_t>((t.row + r) * n + t.col + c)] = t.values[r * t.stride + c];
    };
    ops::multiply_integers<arch>(weights, by_rows(x), ops::unscaled<decltype(keep)>{keep}, by);
    for (index_t i = 0; i < m; ++i)
      for (index_t j = 0; j < n; ++j) {
        const auto at = static_cast<std::size_t>(i * n + j);
        REQUIRE(y[i * n + j] == rounded(rounded(static_cast<float>(sums[at]) * x.scale(i, 0)) * w.scale(j, 0)));
        REQUIRE(found[at] == static_cast<std::int32_t>(sums[at]));
        REQUIRE(kept[i * n + j] == static_cast<std::int32_t>(sums[at]));
      }
  };
  for (const bool allowed : {true, false}) {
    simd::squares_allowed = allowed;
    check_weights(packed);
    check_weights(by_rows(w));
  }
  simd::squares_allowed = true;
}

}  // namespace

TEST_CASE("prefers_squares: whole steps and some work, where they may be used at all") {
  const bool can = simd::uses_squares<arch>();
  CHECK(ops::prefers_squares<arch>(1000, 1000) == can);
  CHECK(ops::prefers_squares<arch>(48, 16) == can);
  CHECK(!ops::prefers_squares<arch>(48, 15));
  CHECK(!ops::prefers_squares<arch>(47, 16));
  CHECK(!ops::prefers_squares<arch>(simd::int_tile<arch>::max_rows, 1000));
}
TEST_CASE("product_squares: every number of rows up to three tiles, and what is left of panels and steps") {
  for (index_t m = 1; m <= 70; ++m) check_both_ways<int8_per_channel<0>, int8_per_channel<0>>(m, 65 + m % 3, 440 + m);
  for (const index_t n : {1, 15, 16, 31, 32, 33, 63, 64, 65, 96, 97, 127, 129})
    check_both_ways<int8_per_channel<0>, uint8_per_channel<0>>(33 + n % 7, n, 110);
  for (const index_t k : {1, 4, 29, 32, 33, 63, 64, 65, 128, 130, 191, 192, 193, 255, 256, 257, 1000})
    check_both_ways<int8_per_channel<0>, int8_per_channel<0>>(101, 70, k);
}
TEST_CASE("product_squares: zero points of weights, of all rows together, and of each row") {
  for (const index_t m : {8, 16, 40, 64})
    for (const bool one_zero : {true, false}) {
      check_both_ways<uint8_per_channel<0>, uint8_per_channel<0>>(m, 100, 390, one_zero);
      check_both_ways<uint8_per_channel<0>, int8_per_channel<0>>(m, 70, 384, one_zero);
      check_both_ways<int8_per_channel<0>, uint8_per_channel<0>>(m, 64, 401, one_zero);
    }
}

namespace {

/// Rows of codes that end where memory does, `stride` apart and `late` bytes behind a cache line, codes of a row `step`
/// apart, with any zero points.
template <class Code>
void check_in_place(index_t m, index_t k, index_t stride, index_t late = 0, index_t step = 1) {
  INFO(m << " rows of " << k << " codes, " << stride << " apart, " << late << " behind a line");
  constexpr index_t n = 70;
  const auto wt = random_tensor<int8_per_channel<0>>(n, k, true);
  check::fenced<storage_t<Code>> codes(round_up((m - 1) * stride + (k - 1) * step + 1 + late, 64));
  for (index_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<storage_t<Code>>(check::random_bits()());
  std::vector<std::int32_t> zeros(static_cast<std::size_t>(m));
  for (auto& z : zeros) z = static_cast<std::int32_t>(check::random_below(256)) - (Code::min < 0 ? 128 : 0);
  const auto w = wt.view();
  std::vector<std::int32_t> weights;
  for (index_t c = 0; c < n; ++c)
    for (index_t i = 0; i < k; ++i) weights.push_back(static_cast<std::int32_t>(int8::decode(w.code(c, i))));
  for (const bool one_zero : {true, false}) {
    const std::span<const std::int32_t> rows_zeros(zeros.data(), one_zero ? 1 : zeros.size());
    const code_matrix<Code> x{codes.data() + late, m, k, stride, step, rows_zeros};
    check::fenced<std::int32_t> y(m * n);
    const ops::store_integers store{{y.data(), m, n, n, 1}};
    ops::multiply_integers<arch>(pack<arch>(wt), x, ops::unscaled<ops::store_integers>{store}, serial{});
    for (index_t r = 0; r < m; ++r)
      for (index_t c = 0; c < n; ++c) {
        const std::int32_t zero = zeros[one_zero ? 0 : static_cast<std::size_t>(r)], *of_w = weights.data() + c * k;
        const auto* const of_x = x.codes + r * stride;
        std::int64_t want = 0;
        for (index_t i = 0; i < k; ++i) want += (std::int64_t{of_x[i * step]} - zero) * of_w[i];
        REQUIRE(y[r * n + c] == want);
      }
  }
}

}  // namespace

TEST_CASE("product_squares: rows where they lie, of both signs, with what is left of them") {
  for (const index_t m : {32, 33, 63, 64, 70})
    for (const index_t k : {64, 128, 192, 576}) {
      check_in_place<int8>(m, k, k);
      check_in_place<uint8>(m, k, k + 64);
    }
  check_in_place<int8>(400, 64, 64);
  check_in_place<int8>(64, 130, 192);
  check_in_place<uint8>(64, 128, 130);
  check_in_place<int8>(64, 128, 192, 1);
}
TEST_CASE("product_squares: rows that are columns of memory, of both signs") {
  for (const index_t k : {64, 101}) {
    check_in_place<int8>(40, k, 1, 0, 48);
    check_in_place<uint8>(70, k, 1, 0, 70);
  }
}
TEST_CASE("lies_ready: whole steps on cache lines that spread over the first cache") {
  alignas(64) std::int8_t codes[64] = {};
  const auto is_ready = [](const std::int8_t* from, index_t depth, index_t stride, index_t step = 1) {
    return ops::lies_ready(code_matrix<int8>{from, 40, depth, stride, step});
  };
  CHECK(is_ready(codes, 128, 192));
  CHECK(!is_ready(codes + 1, 128, 192));
  CHECK(!is_ready(codes, 96, 192));
  CHECK(!is_ready(codes, 128, 200));
  CHECK(!is_ready(codes, 128, 8192));
  CHECK(!is_ready(codes, 128, 1, 64));
  CHECK(!ops::lies_ready(matrix_ref<const float>{}));
}
TEST_CASE("product_squares: rows of floats, quantized in parts, as their codes") {
  for (const index_t m : {33, 128, 136, 300})
    for (const index_t k : {64, 100, 520}) {
      const index_t n = 70;
      const auto w = pack<arch>(random_tensor<int8_per_channel<0>>(n, k, true));
      std::vector<float> x(static_cast<std::size_t>(m * k));
      for (float& v : x) v = static_cast<float>(static_cast<std::int32_t>(check::random_bits()())) * 0x1p-31f;
      x[3] = std::numeric_limits<float>::infinity();
      const auto codes = quantize<int8_per_channel<0>>(source(x.data(), extents(m, k)));
      check::fenced<float> direct(m * n), by_codes(m * n);
      const auto into = [&](check::fenced<float>& y) { return ops::store_floats<arch>{{y.data(), m, n, n, 1}}; };
      const auto sink = into(direct), same = into(by_codes);
      ops::multiply_integers_of_floats<arch>(w, matrix_ref<const float>{x.data(), m, k, k, 1},
                                             ops::scaled<ops::store_floats<arch>>{sink}, serial{});
      ops::multiply_integers<arch>(w, by_rows(codes.view()), ops::scaled<ops::store_floats<arch>>{same}, serial{});
      for (index_t i = 0; i < m * n; ++i)
        REQUIRE(std::bit_cast<std::uint32_t>(direct[i]) == std::bit_cast<std::uint32_t>(by_codes[i]));
    }
}
TEST_CASE("product_squares: weights that pass in several parts") {
  check_both_ways<int8_per_channel<0>, uint8_per_channel<0>>(35, 330, 3000);
  check_both_ways<int8_per_channel<0>, int8_per_channel<0>>(300, 330, 4032);
  check_both_ways<int8_per_channel<0>, int8_per_channel<0>>(20, 700, 4096);
  check_both_ways<uint8_per_channel<0>, int8_per_channel<0>>(50, 200, 8200, false);
}
TEST_CASE("product_squares: parts of a great depth, whose last step is whole or not, and panels left of several") {
  for (const index_t k : {3072, 3073, 3136, 3140, 5003})
    check_both_ways<int8_per_channel<0>, int8_per_channel<0>>(49, 345, k);
  check_both_ways<uint8_per_channel<0>, uint8_per_channel<0>>(17, 270, 4001, false);
  check_both_ways<int8_per_channel<0>, uint8_per_channel<0>>(16, 270, 4096);
  const auto pool = pool::threads(2);
  check_both_ways<int8_per_channel<0>, int8_per_channel<0>>(33, 700, 3200, true, pool);
}
TEST_CASE("square_depth_parts: of some steps, where weights pass by and rows are several") {
  const auto layout_of_depth = [](index_t depth) {
    return ops::layout_of<arch>(pack<arch>(random_tensor<int8_per_channel<0>>(1, depth, true)));
  };
  const index_t staying = ops::square_staying_bytes / layout_of_depth(4096).panel_bytes();
  CHECK(ops::square_depth_parts(layout_of_depth(4096), 64, 17) == 8);
  CHECK(ops::square_depth_parts(layout_of_depth(4096), 64, 16) == 1);
  CHECK(ops::square_depth_parts(layout_of_depth(4097), 64, 17) == 9);
  CHECK(ops::square_depth_parts(layout_of_depth(4096), staying, 100) == 1);
  CHECK(ops::square_depth_parts(layout_of_depth(4096), staying + 1, 100) == 8);
  CHECK(ops::square_depth_parts(layout_of_depth(3072), 64, 100) == 1);
  CHECK(ops::square_depth_parts(layout_of_depth(3073), 64, 100) == 7);
}
TEST_CASE(
    "square_rows_at_once: all or nearly as many each time, whole squares, that stay beside a part of the weights") {
  const auto layout_of_depth = [](index_t depth) {
    return ops::layout_of<arch>(pack<arch>(random_tensor<int8_per_channel<0>>(70, depth, true)));
  };
  const auto layout = layout_of_depth(3072), deep = layout_of_depth(4096);
  CHECK(ops::squares_stay(layout, 2));
  CHECK(!ops::squares_stay(layout, 64));
  CHECK(ops::square_rows_at_once(layout, 2, 20) == 32);
  CHECK(ops::square_rows_at_once(layout, 2, 512) == 128);
  CHECK(ops::square_rows_at_once(layout, 2, 136) == 96);
  CHECK(ops::square_rows_at_once(layout, 64, 512) == 192);
  CHECK(ops::square_rows_at_once(layout, 64, 251) == 256);  // more than stay, but all of them
  CHECK(ops::square_rows_at_once(layout, 64, 334) == 352);
  CHECK(ops::square_rows_at_once(layout, 64, 335) == 192);
  CHECK(ops::square_rows_at_once(deep, 64, 161) == 192);  // as many as their sums stay of
  CHECK(ops::square_rows_at_once(deep, 64, 256) == 256);
  CHECK(ops::square_rows_at_once(deep, 64, 257) == 160);
  CHECK(ops::square_rows_at_once(deep, 2, 512) == 128);
}
TEST_CASE("product_squares: threads change nothing") {
  const auto pool = pool::threads(3);
  check_both_ways<int8_per_channel<0>, uint8_per_channel<0>>(40, 300, 200, true, pool);
  check_both_ways<uint8_per_channel<0>, uint8_per_channel<0>>(200, 10, 400, false, pool);
}
TEST_CASE("product_squares: a sink may multiply in its turn") {
  const auto w = random_tensor<int8_per_channel<0>>(70, 100, true),
             x = random_tensor<int8_per_channel<0>>(40, 100, true);
  const auto packed = pack<arch>(w);
  const auto inner_x = by_rows(x.view());
  const auto product_of = [&](const auto& sink) {
    ops::multiply_integers<arch>(packed, inner_x, ops::unscaled<std::remove_cvref_t<decltype(sink)>>{sink}, serial{});
  };
  const auto want = exact_sums(w.view(), x.view());
  std::vector<std::int32_t> outer(want.size()), inner(want.size());
  const auto keep_in = [](std::vector<std::int32_t>& all) {
    return [&](const integer_tile& t) {
      for (index_t r = 0; r < t.rows; ++r)
        for (index_t c = 0; c < t.cols; ++c)
          all[static_cast<std::size_t>((t.row + r) * 70 + t.col + c)] = t.values[r * t.stride + c];
    };
  };
  product_of([&](const integer_tile& t) {
    product_of(keep_in(inner));
    keep_in(outer)(t);
  });
  for (std::size_t i = 0; i < want.size(); ++i) {
    REQUIRE(outer[i] == static_cast<std::int32_t>(want[i]));
    REQUIRE(inner[i] == static_cast<std::int32_t>(want[i]));
  }
}
