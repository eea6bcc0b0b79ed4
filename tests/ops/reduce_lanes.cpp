// Mirrors include/qtensor/ops/reduce_lanes.hpp: add and multiply on lanes give the bits of the fold step by step.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/reduce.hpp>

#include "ops/reduce_check.hpp"

using namespace reduce_check;

namespace {

/// A body of ours that `reduce` does not know: it is folded step by step.
template <class Body>
auto unknown(const Body& body) {
  return [body](const auto& a, const auto& b) { return body(a, b); };
}

template <class X, class To>
void check(const X& x, const To& to, float init) {
  const auto seed = number_like(x, init);
  for (int axis = 0; axis < X::rank; ++axis) {
    INFO("axis ", axis, " scale ", to.scale, " zero point ", to.zero_point);
    CHECK(codes_of(reduce(x, seed, dimensions(axis), to, add)) ==
          codes_of(reduce(x, seed, dimensions(axis), to, unknown(add))));
    CHECK(codes_of(reduce(x, seed, dimensions(axis), to, multiply)) ==
          codes_of(reduce(x, seed, dimensions(axis), to, unknown(multiply))));
  }
}

/// Codes around `middle`, so that products neither vanish nor run away at once.
template <class S, class Extents>
auto some(const Extents& e, float scale, int zero, int middle) {
  std::vector<int> codes(static_cast<std::size_t>(e.size()));
  std::uint32_t state = 3;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    state = state * 1664525u + 1013904223u;
    codes[i] = i % 97 == 5 ? static_cast<int>(state >> 24) - 64 : middle + static_cast<int>(state >> 28) - 8;
  }
  return codes_in<S>(e, scale, zero, codes);
}

using i16 = scheme<int16, per_tensor, zero_point<int16>, static_only, zp_before_round, nan_to_zero>;

}  // namespace

TEST_CASE("folds on lanes: products and saturating sums, every width of the block and its rest") {
  for (index_t cols : {1, 2, 4, 16, 17, 33, 64, 65, 130}) {
    const auto x = some<u8>(extents(cols < 33 ? 1024 / cols + 9 : 40, cols), .01f, 7, 105);
    check(x, requantize_to<u8>(.02f, 30), 1.f);
    check(x, requantize_to<i16>(.003f, -5), 1.f);
    check(x, requantize_to<i32>(.001f, 11), 1.f);
    check(x, requantize_to<with<i32, zp_after_round>>(.001f, 11), 1.f);
    check(x, requantize_to<with<u8, zp_after_round>>(.02f, 31), 1.f);
  }
  const auto y = some<i8>(extents(300, 12), .0125f, -3, 77);
  check(y, requantize_to<i32>(.0001f), -1.f);
  check(y, requantize_to<int8_per_tensor>(.05f), 1.f);
}

TEST_CASE("folds on lanes: products that run away, to infinity and to NaN, and seeds that floats do not hold") {
  const auto x = codes_in<u8>(extents(60, 40), 2.f, 0, std::vector<int>(2400, 250));
  for (float init : {1.f, 0.f}) {
    check(x, requantize_to<i32>(1.f), init);
    check(x, requantize_to<u8>(1.f), init);
    check(x, requantize_to<i32>(1e30f), init);
  }
  check(x, requantize_to<i32>(1e-6f), 200.f);
  check(codes_in<u8>(extents(60, 40), 1e37f, 0, std::vector<int>(2400, 250)), requantize_to<i32>(1e37f), 1e37f);
}

TEST_CASE("folds on lanes: sums beyond what floats hold of integers, up to the largest code") {
  const auto x = some<u8>(extents(2000, 3), .1f, 3, 200);
  for (const float scale : {.003f, 1e-5f, 1e-8f}) {
    check(x, requantize_to<i32>(scale), 0.f);
    check(x, requantize_to<i32>(scale, 5), 0.f);
    check(x, requantize_to<with<i32, zp_after_round>>(scale), 0.f);
    const auto seed = number_like(x, 0.f);
    const auto to = requantize_to<i32>(scale);
    CHECK(reduce(x, seed, dimensions(0, 1), to, add) == reduce(x, seed, dimensions(0, 1), to, unknown(add)));
  }
}

TEST_CASE("folds on lanes: cubes and column-major tensors") {
  const auto cube = some<u8>(extents(6, 30, 20), .01f, 0, 104);
  check(cube, requantize_to<i32>(.001f), 1.f);
  const auto seed = number_like(cube, 1.f);
  const auto to = requantize_to<i32>(.001f);
  for (const auto dims : {dimensions(0, 1), dimensions(0, 2), dimensions(1, 2)})
    CHECK(codes_of(reduce(cube, seed, dims, to, multiply)) ==
          codes_of(reduce(cube, seed, dims, to, unknown(multiply))));
  CHECK(reduce(cube, seed, dimensions(0, 1, 2), to, multiply) ==
        reduce(cube, seed, dimensions(0, 1, 2), to, unknown(multiply)));
  std::vector<float> x(50 * 60);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = .9f + static_cast<float>(i * 7919 % 32) * .007f;
  check(quantize<i8, col_major>(source(x.data(), extents(50, 60)), .01f, 0), to, 1.f);
}
