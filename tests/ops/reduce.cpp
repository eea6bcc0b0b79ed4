// Mirrors include/qtensor/ops/reduce.hpp: NUMERICS 7.4, and folds written out by hand.
// SPDX-License-Identifier: BSD-3-Clause
#include <numeric>
#include <qtensor/ops/reduce.hpp>

#include "ops/reduce_check.hpp"

using namespace reduce_check;

namespace {

/// Appends the elements it meets to a number in base 10: shows the order of a fold.
const auto in_order = [](std::int64_t a, std::int64_t b) { return a * 10 + b; };

const auto digits = [] {
  std::vector<std::int64_t> x(24);
  std::iota(x.begin(), x.end(), 1);
  for (std::int64_t& v : x) v %= 10;
  return x;
}();

}  // namespace

TEST_CASE("reduce: the vector of NUMERICS 7.4: [[0..5]], init 0, add, dimension 1 -> [15]") {
  const std::vector<std::int64_t> x = {0, 1, 2, 3, 4, 5};
  const auto y = reduce(values(x.data(), extents(1, 6)), std::int64_t{0}, dimensions(1), add);
  CHECK(y.extents() == std::array<index_t, 1>{1});
  CHECK(y(0) == 15);
}

TEST_CASE("reduce: the quantized vector of NUMERICS 7.4, with conversions and without") {
  const auto x = codes_in<u8>(extents(1, 3), .5f, 10, {110, 130, 250});
  const auto wide =
      reduce(x, number_like(x, 0.f), dimensions(1), requantize_to<i32>(.25f), add, requantize_to<u8>(1.f, 5));
  CHECK(wide.extents() == extents(1));
  CHECK(wide.codes()[0] == 235);
  CHECK(wide.scale(0) == 1.f);
  CHECK(wide.zero_point(0) == 5);
  const auto accumulated = reduce(x, number_like(x, 0.f), dimensions(1), requantize_to<i32>(.25f), add);
  CHECK(accumulated.codes()[0] == 920);
  CHECK(accumulated.scale(0) == .25f);
  const auto narrow = reduce(x, number_like(x, 0.f), dimensions(1), add);
  CHECK(narrow.codes()[0] == 255);
  const auto out_only = reduce(x, number_like(x, 0.f), dimensions(1), add, requantize_to<u8>(1.f, 5));
  CHECK(out_only.codes()[0] == 128);  // 122.5 of the saturated sum, + 5, to even
}

TEST_CASE("reduce: init first, then ascending index, last axis fastest; every subset of dimensions of a cube") {
  const auto x = values(digits.data(), extents(2, 3, 4));
  const auto at = [&](index_t i, index_t j, index_t k) { return digits[static_cast<std::size_t>(i * 12 + j * 4 + k)]; };
  const std::int64_t seed = 7;
  const auto fold = [&](index_t i, index_t j, index_t k) {  // -1: all of that axis
    std::int64_t acc = seed;
    for (index_t a = i < 0 ? 0 : i; a < (i < 0 ? 2 : i + 1); ++a)
      for (index_t b = j < 0 ? 0 : j; b < (j < 0 ? 3 : j + 1); ++b)
        for (index_t c = k < 0 ? 0 : k; c < (k < 0 ? 4 : k + 1); ++c) acc = acc * 10 + at(a, b, c);
    return acc;
  };
  const auto none = reduce(x, seed, dimensions(), in_order);
  const auto y0 = reduce(x, seed, dimensions(0), in_order);
  const auto y1 = reduce(x, seed, dimensions(1), in_order);
  const auto y2 = reduce(x, seed, dimensions(2), in_order);
  const auto y01 = reduce(x, seed, dimensions(0, 1), in_order);
  const auto y02 = reduce(x, seed, dimensions(2, 0), in_order);  // the order of the list does not matter
  const auto y12 = reduce(x, seed, dimensions(1, 2), in_order);
  for (index_t i = 0; i < 2; ++i)
    for (index_t j = 0; j < 3; ++j)
      for (index_t k = 0; k < 4; ++k) {
        CHECK(none(i, j, k) == fold(i, j, k));
        CHECK(y0(j, k) == fold(-1, j, k));
        CHECK(y1(i, k) == fold(i, -1, k));
        CHECK(y2(i, j) == fold(i, j, -1));
        CHECK(y01(k) == fold(-1, -1, k));
        CHECK(y02(j) == fold(-1, j, -1));
        CHECK(y12(i) == fold(i, -1, -1));
      }
  // All of them: one number. (24 digits wrap; so they do by hand, in unsigned arithmetic.)
  const auto sum = [](std::int64_t a, std::int64_t b) { return a + b; };
  const std::int64_t all = reduce(x, seed, dimensions(0, 1, 2), sum);
  CHECK(all == std::accumulate(digits.begin(), digits.end(), seed));
}

TEST_CASE("reduce: the same folds from a col_major tensor, a transposed source and packed codes") {
  const index_t rows = 5, cols = 70;
  std::vector<float> x(static_cast<std::size_t>(rows * cols));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(static_cast<int>(i * 37 % 15) - 7);
  using i4 = scheme<int4, per_tensor, static_only>;
  const auto source_x = source(x.data(), extents(rows, cols));
  const auto byte_rows = quantize<i8>(source_x, 1.f, 0);
  const auto byte_cols = quantize<i8, col_major>(source_x, 1.f, 0);
  const auto nibbles = quantize<i4>(source_x, 1.f);
  const auto body = [](float a, float b) { return a * -.5f + b; };  // order matters
  const auto expected = [&](int axis) { return reduce(source_x, 3.f, dimensions(axis), body); };
  const auto check = [&](const auto& t) {
    for (int axis = 0; axis < 2; ++axis) {
      const auto y = reduce(t, number_like(t, 3.f), dimensions(axis), convert_to<f32>{}, body);
      const auto want = expected(axis);
      REQUIRE(y.size() == want.size());
      for (index_t i = 0; i < y.size(); ++i) CHECK(y(i) == want(i));
    }
    float acc = 3.f;
    for (float v : x) acc = body(acc, v);
    CHECK(reduce(t, number_like(t, 3.f), dimensions(0, 1), convert_to<f32>{}, body) == acc);
  };
  check(byte_rows);
  check(byte_cols);
  check(nibbles);
  check(byte_rows.view());
  float acc = 3.f;
  for (index_t i = 0; i < rows; ++i) acc = body(acc, x[static_cast<std::size_t>(i * cols + 2)]);
  CHECK(expected(0)(2) == acc);
}

TEST_CASE("reduce: rows of every length, any number of them beside each other: each is folded by itself, in order") {
  std::vector<std::uint32_t> x(3 * 19 * 41);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::uint32_t>(i * i % 8191);
  const auto in_order = [](std::uint32_t a, std::uint32_t b) { return a * 31 + b; };
  for (index_t rows = 0; rows <= 19; ++rows)
    for (index_t cols : {0, 1, 7, 31, 32, 33, 41}) {
      CAPTURE(rows);
      CAPTURE(cols);
      const std::size_t row = static_cast<std::size_t>(cols), slice = static_cast<std::size_t>(rows) * row;
      const auto in_rows = values(x.data(), extents(rows, cols));
      const auto place = generated(extents(rows, cols), [](const auto& at) { return at[1]; });
      const auto sums = reduce(in_rows, 5u, dimensions(1), in_order);
      const auto outer = reduce(values(x.data(), extents(3, rows, cols)), 5u, dimensions(0, 2), in_order);
      const auto [both, places] = reduce(std::tuple(in_rows, place), std::tuple(5u, index_t{0}), dimensions(1),
                                         [&](std::uint32_t a, index_t p, std::uint32_t b, index_t q) {
                                           return std::tuple(in_order(a, b), (p * 3 + q) % 8191);
                                         });
      for (index_t r = 0; r < rows; ++r) {
        const auto first = x.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(r) * row);
        const auto fold = [&](std::uint32_t seed, std::size_t i) {
          return std::accumulate(first + static_cast<std::ptrdiff_t>(i * slice),
                                 first + static_cast<std::ptrdiff_t>(i * slice + row), seed, in_order);
        };
        index_t want = 0;
        for (index_t c = 0; c < cols; ++c) want = (want * 3 + c) % 8191;
        REQUIRE(sums(r) == fold(5, 0));
        REQUIRE(outer(r) == fold(fold(fold(5, 0), 1), 2));
        REQUIRE(both(r) == sums(r));
        REQUIRE(places(r) == want);
      }
    }
}

TEST_CASE("reduce: N inputs: arg-max by value and position, the first of the largest") {
  const auto x = codes_in<u8>(extents(2, 4), .5f, 10, {3, 9, 9, 1, 200, 7, 7, 7});
  const auto position = generated(extents(2, 4), [](const auto& at) { return at[1]; });
  const auto larger = [](auto best, index_t best_at, auto x, index_t x_at) {
    return x.real() > best.real() ? std::tuple(x, x_at) : std::tuple(best, best_at);
  };
  const auto init = std::tuple(number_like(x, -1000.f), index_t{-1});
  const auto [value, at] = reduce(std::tie(x, position), init, dimensions(1), larger);
  CHECK(value.codes()[0] == 9);
  CHECK(value.codes()[1] == 200);
  CHECK(at(0) == 1);
  CHECK(at(1) == 0);
  // With conversions of both: values as floats, positions as int.
  const auto convert = [](auto v, index_t p) { return std::pair(v.real(), static_cast<int>(p)); };
  const auto larger_float = [](float best, int best_at, float x, int x_at) {
    return x > best ? std::pair(x, x_at) : std::pair(best, best_at);
  };
  const auto back = [](float v, int p) { return std::tuple(v, index_t{p} * 100); };
  const auto [real, hundreds] = reduce(std::tie(x, position), init, dimensions(1), convert, larger_float, back);
  CHECK(real(0) == -.5f);
  CHECK(real(1) == 95.f);
  CHECK(hundreds(0) == 100);
  const auto [v, p] = reduce(std::tie(x, position), init, dimensions(0, 1), larger);
  CHECK(v.code == 200);
  CHECK(p == 0);
}

TEST_CASE("reduce: bf16 through f32, booleans, doubles") {
  std::vector<std::uint16_t> ones(6, 0x4380);  // 256
  ones[1] = ones[2] = 0x3f80;                  // 1
  const auto x = source<bf16>(ones.data(), extents(1, 6));
  const real<bf16> zero(0.f);
  const auto narrow = reduce(x, zero, dimensions(1), add);
  const auto wide = reduce(x, zero, dimensions(1), convert_to<f32>{}, add, convert_to<bf16>{});
  CHECK(static_cast<float>(narrow(0)) == 1024.f);  // 256 + 1 is 256 each time
  CHECK(static_cast<float>(wide(0)) == 1024.f);    // 1026 is a tie of bf16, too: 1024
  CHECK(reduce(x, zero, dimensions(1), convert_to<f32>{}, add)(0) == 1026.f);
  const bool flags[] = {true, false, false, false};
  const auto any = reduce(values(flags, extents(2, 2)), false, dimensions(1), max);
  CHECK(any(0));
  CHECK(!any(1));
  const double reals[] = {.5, 1e300};
  CHECK(reduce(values(reals, extents(2)), 0., dimensions(0), add) == 1e300 + .5);
}

TEST_CASE("reduce: per-channel inputs through a conversion to one type") {
  using channels = scheme<int8, per_channel<0>, static_only>;
  const std::vector<float> x = {1.f, 2.f, 30.f, 40.f}, scales = {.5f, 10.f};
  const auto t = quantize<channels>(source(x.data(), extents(2, 2)), scales);
  const auto init = number_type<channels>{1.f, 0}(0.f);
  const auto y = reduce(t, init, dimensions(0), requantize_to<i32>(.5f), add);
  CHECK(y.codes()[0] == 62);
  CHECK(y.codes()[1] == 84);
}

TEST_CASE("reduce: empty dimensions give the init value; results without elements keep their type") {
  const auto x = codes_in<u8>(extents(0, 3), .5f, 10, {});
  const auto init = requantize_to<u8>(.5f, 10)(1.f);
  const auto rows = reduce(x, init, dimensions(0), requantize_to<i32>(.25f), add);
  REQUIRE(rows.size() == 3);
  for (index_t i = 0; i < 3; ++i) CHECK(rows.codes()[static_cast<std::size_t>(i)] == 4);
  CHECK(reduce(x, init, dimensions(1), add).size() == 0);
  CHECK(reduce(x, init, dimensions(0, 1), add).code == 12);
}

TEST_CASE("reduce: what types do not say throws, naming the constraint") {
  const auto x = codes_in<u8>(extents(2, 2), .5f, 10, {1, 2, 3, 4});
  const auto init = number_like(x, 0.f);
  CHECK(mentions(sentence([&] { reduce(x, init, dimensions(2), add); }), "(C4): 0 <= dimensions < rank"));
  CHECK(mentions(sentence([&] { reduce(x, init, dimensions(-1), add); }), "(C4)"));
  CHECK(mentions(sentence([&] { reduce(x, init, dimensions(1, 1), add); }), "(C5): is_unique(dimensions)"));
  CHECK(mentions(sentence([&] { reduce(x, requantize_to<u8>(.25f, 10)(0.f), dimensions(1), add); }),
                 "(C2): element_type(inputs...) = element_type(init_values...)"));
  const auto other = codes_in<u8>(extents(2, 3), .5f, 10, {});
  const auto both = [](auto a, auto b, auto c, auto d) { return std::tuple(add(a, c), add(b, d)); };
  CHECK(mentions(sentence([&] { reduce(std::tie(x, other), std::tuple(init, init), dimensions(1), both); }),
                 "(C1): same(shape(inputs...))"));
  const auto drifts = [](auto a, auto) { return requantize_to<u8>(a.scale * 2.f, 0)(a); };
  CHECK(mentions(sentence([&] { reduce(x, init, dimensions(1), drifts); }), "(C6): body has type (E, E) -> E"));
}
