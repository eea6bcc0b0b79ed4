// Mirrors include/qtensor/ops/reduce_bytes.hpp: folds on bytes give the bits of the fold step by step.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/reduce.hpp>
#include <random>

#include "main/in_full.hpp"
#include "ops/reduce_check.hpp"

using namespace reduce_check;

namespace {

/// A body of ours that `reduce` does not know: it is folded step by step.
template <class Body>
auto unknown(const Body& body) {
  return [body](const auto& a, const auto& b) { return body(a, b); };
}

template <class X, class To, class Body>
void compare(const X& x, const To& to, const Body& body, float init = 0.f) {
  const auto seed = number_like(x, init);
  const auto same = [&](const auto& ours, const auto& steps) {
    REQUIRE(ours.size() == steps.size());
    index_t differences = 0;
    for (std::size_t i = 0; i < ours.codes().size(); ++i) differences += ours.codes()[i] != steps.codes()[i] ? 1 : 0;
    CHECK(differences == 0);
  };
  for (int axis = 0; axis < X::rank; ++axis) {
    INFO("axis ", axis, " scale ", to.scale, " zero point ", to.zero_point);
    same(reduce(x, seed, dimensions(axis), to, body), reduce(x, seed, dimensions(axis), to, unknown(body)));
  }
}
template <class X, class To>
void check_bodies(const X& x, const To& to, float init = 0.f) {
  compare(x, to, add, init);
  compare(x, to, max, init);
  compare(x, to, min, init);
  compare(x, to, multiply, init);
}

/// Every pair of codes (in part: of every fifth second one), as the columns of two rows (or the rows of two columns).
template <class S>
auto pairs(bool down, float scale, int zero) {
  const index_t step = check::full ? 1 : 5, n = 256 * (255 / step + 1);
  std::vector<int> codes(static_cast<std::size_t>(2 * n));
  for (index_t i = 0; i < n; ++i) {
    codes[static_cast<std::size_t>(down ? i : 2 * i)] = static_cast<int>(i & 255);
    codes[static_cast<std::size_t>(down ? n + i : 2 * i + 1)] = static_cast<int>((i >> 8) * step);
  }
  return codes_in<S>(down ? extents(2, n) : extents(n, 2), scale, zero, codes);
}

using i16 = scheme<int16, per_tensor, zero_point<int16>, static_only, zp_before_round, nan_to_zero>;

}  // namespace

TEST_CASE(
    "folds on bytes: they are chosen for 8-bit codes under bodies of ours; integers add where the accumulator is "
    "int32") {
  using inputs = std::tuple<elements_type<tensor<u8>>>;
  using element = std::tuple<quantized_number<u8>>;
  static_assert(ops::byte_fold<inputs, ops::folding<element, number_type<i32>, add_body, identity>>::value);
  static_assert(ops::byte_fold<inputs, ops::folding<element, identity, max_body, identity>>::value);
  static_assert(ops::byte_fold<inputs, ops::folding<element, identity, add_body, identity>>::value);
  static_assert(ops::byte_fold<inputs, ops::folding<element, number_type<i32>, multiply_body, identity>>::value);
  static_assert(ops::adds_exactly<i32> && !ops::adds_exactly<u8>);
  static_assert(!ops::byte_fold<inputs, ops::folding<element, convert_to<f32>, add_body, identity>>::value);
  CHECK(ops::exact_limit(.1f) == 15 * 131072);
  CHECK(ops::exact_limit(.5f) == 16777216);
  CHECK(ops::exact_limit(1e38f) == 0);
}

TEST_CASE("folds on bytes: all pairs of 8-bit codes, under several scales and zero points") {
  struct types {
    float from;
    int zero;
    float to;
    int to_zero;
  };
  for (const types t : {types{.5f, 10, .25f, 0}, types{.1f, 128, .1f, 7}, types{.1f, 3, .037f, -5},
                        types{3e-39f, 0, 3e-39f, 1}, types{1e36f, 200, 1e36f, 0}, types{.02f, 255, 5.f, 100000}})
    for (bool down : {true, false}) {
      check_bodies(pairs<u8>(down, t.from, t.zero), requantize_to<i32>(t.to, t.to_zero), 3.f * t.from);
      check_bodies(pairs<i8>(down, t.from, t.zero - 128), requantize_to<i32>(t.to, t.to_zero), -t.from);
    }
}

TEST_CASE("folds on bytes: max and min in the type of the codes, and in narrow ones that saturate") {
  for (bool down : {true, false}) {
    const auto x = pairs<u8>(down, .1f, 30);
    for (const auto& to : {requantize_to<u8>(.1f, 30), requantize_to<u8>(.03f, 200), requantize_to<u8>(1.f, 0)}) {
      compare(x, to, max, -1.f);
      compare(x, to, min, 20.f);
      compare(x, to, add);
    }
    check_bodies(x, requantize_to<i16>(.001f, 5));
    check_bodies(pairs<i8>(down, .7f, 0), requantize_to<i16>(.7f, -7));
  }
}

TEST_CASE("folds on bytes: long sums, inside what is exact and beyond it") {
  const index_t rows = 9000, cols = check::full ? 37 : 21;
  std::vector<int> codes(static_cast<std::size_t>(rows * cols));
  std::uint32_t state = 1;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    state = state * 1664525u + 1013904223u;
    // The first columns balanced around 128, the others ever larger.
    codes[i] = static_cast<int>(static_cast<index_t>(i) % cols < 12 ? state >> 24 : 200 + (state >> 24) % 56);
  }
  for (float scale : {.1f, .5f, .3f})
    for (int zero : {128, 0, 3}) {
      if (!check::full && zero == 3) continue;
      const auto x = codes_in<u8>(extents(rows, cols), scale, zero, codes);
      compare(x, requantize_to<i32>(scale, 0), add);
      compare(x, requantize_to<i32>(scale, 5), add);
      compare(codes_in<u8>(extents(cols, rows), scale, zero, codes), requantize_to<i32>(scale, -9), add);
    }
  // 15 * 2^17 is reached after 7710 steps of 255.
  const auto full = codes_in<u8>(extents(8000, 4), .1f, 0, std::vector<int>(32000, 255));
  compare(full, requantize_to<i32>(.1f), add);
  compare(full, requantize_to<i32>(.1f, 2000000), add);
}

TEST_CASE("folds on bytes: cubes, column-major tensors and slices") {
  std::vector<float> x(5 * 40 * 70);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(static_cast<int>(i * 7919 % 255) - 127);
  const auto cube = quantize<i8>(source(x.data(), extents(5, 40, 70)), 1.f, -1);
  const auto columns = quantize<i8, col_major>(source(x.data(), extents(200, 70)), 1.f, 2);
  const auto to = requantize_to<i32>(.5f, 1);
  check_bodies(cube, to);
  check_bodies(columns, to);
  const auto slice = columns.view().slice<0>(64, 64).slice<1>(3, 50);
  check_bodies(slice, to);
  const auto seed = number_like(cube, 0.f);
  for (const auto dims : {dimensions(0, 1), dimensions(0, 2), dimensions(1, 2)}) {
    const auto ours = reduce(cube, seed, dims, to, add), steps = reduce(cube, seed, dims, to, unknown(add));
    CHECK(codes_of(ours) == codes_of(steps));
    CHECK(codes_of(reduce(cube, seed, dims, to, max)) == codes_of(reduce(cube, seed, dims, to, unknown(max))));
  }
  CHECK(reduce(cube, seed, dimensions(0, 1, 2), to, add) == reduce(cube, seed, dimensions(0, 1, 2), to, unknown(add)));
  const auto transposed = reduce(columns, number_like(columns, 0.f), dimensions(0, 1), to, add);
  CHECK(transposed == reduce(columns, number_like(columns, 0.f), dimensions(0, 1), to, unknown(add)));
}

TEST_CASE("folds on bytes: runs of every length, of any number of results, in memory of any order") {
  std::mt19937 bits(5);
  const auto random = [&]<class S>(S, const auto& e) {
    std::vector<int> codes(static_cast<std::size_t>(e.size()));
    for (int& c : codes) c = static_cast<int>(bits() & 255);
    return codes_in<S>(e, .25f, 3, codes);
  };
  const auto same = [&](const auto& x, const auto& dims, const auto& to, const auto& body, const auto& out) {
    const auto seed = number_like(x, 1.f);
    const auto ours = reduce(x, seed, dims, to, body, out), steps = reduce(x, seed, dims, to, unknown(body), out);
    if constexpr (requires { ours.codes(); })
      REQUIRE(std::equal(ours.codes().begin(), ours.codes().end(), steps.codes().begin(), steps.codes().end()));
    else
      REQUIRE(all_of(ours) == all_of(steps));
  };
  using i4 = scheme<int4, per_tensor, zero_point<int4>, static_only, zp_before_round>;
  const auto wide = requantize_to<i32>(.25f, -7), other = requantize_to<i32>(.3f);
  const auto all = [&](const auto& x, const auto& dims) {
    same(x, dims, wide, add, requantize_to<i8>(5.f, 1));
    same(x, dims, other, add, convert_to<f32>{});
    same(x, dims, requantize_to<i32>(3e-6f), add, requantize_to<i8>(5.f));  // sums that lanes take
    same(x, dims, wide, max, identity{});
    same(x, dims, identity{}, min, requantize_to<i4>(4.f));
    same(x, dims, requantize_to<i16>(.25f), multiply, identity{});
  };
  for (index_t length = 1; length <= 67; length += length < 20 ? 1 : 9)
    for (const index_t results : {1024 / length + 1, index_t{256}, index_t{513}}) {
      INFO(length, " ", results);
      all(random(i8{}, extents(results, length)), dimensions(1));
      all(random(u8{}, extents(results, length)), dimensions(1));
    }
  const auto x = random(u8{}, extents(5, 130, 3, 7));
  all(x, dimensions(2, 3));  // joined
  all(x, dimensions(1, 2, 3));
  all(x, dimensions(1, 3));
  all(x, dimensions(0, 3));
  all(x, dimensions(0, 2));
  all(x, dimensions(0));
  const auto y = random(i8{}, extents(4, 300, 40));
  const auto part = y.view().template slice<2>(5, 11);
  const auto seed = elements(part).type()(0.f);
  REQUIRE(codes_of(reduce(part, seed, dimensions(2), max)) ==
          codes_of(reduce(part, seed, dimensions(2), unknown(max))));
}
