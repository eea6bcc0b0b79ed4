// Mirrors include/qtensor/ops/reduce_parts.hpp: reductions on threads of their own give the bits of one thread.
// SPDX-License-Identifier: BSD-3-Clause
#include <functional>
#include <qtensor/ops/select_and_scatter.hpp>

#include "ops/parts_check.hpp"
#include "ops/reduce_check.hpp"

using namespace reduce_check;
using parts_check::pattern;

namespace {

template <class S, class Extents>
auto codes_at_random(const Extents& e) {
  return codes_in<S>(e, .5f, 3, pattern<int>(e.size()));
}

template <class T, int Rank>
bool same(const dense<T, Rank>& a, const dense<T, Rank>& b) {
  return a.extents() == b.extents() &&
         std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size()) * sizeof(T)) == 0;
}
template <class S, class E, class O>
bool same(const tensor<S, E, O>& a, const tensor<S, E, O>& b) {
  return a.extents() == b.extents() && std::ranges::equal(a.scales(), b.scales()) &&
         std::ranges::equal(a.codes(), b.codes());
}
template <class... T>
bool same(const std::tuple<T...>& a, const std::tuple<T...>& b) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) { return (same(std::get<I>(a), std::get<I>(b)) && ...); }
  (std::index_sequence_for<T...>{});
}

/// run(on...) is run(), see parts_check.
template <class Run>
void check(const Run& run, index_t least = 7) {
  parts_check::check(
      run, [](const auto& a, const auto& b) { return same(a, b); }, least);
}

}  // namespace

TEST_CASE("reduce on an executor: floats, along every subset of the axes") {
  const auto x = pattern<float>(9 * 97 * 149);
  const auto cube = source(x.data(), extents(9, 97, 149));
  const auto fold = [&](const auto& dims) {
    return [&cube, dims](const auto&... on) { return reduce(cube, 0.1f, dims, add, on...); };
  };
  check(fold(dimensions(1)));
  check(fold(dimensions(0, 1)));
  check(fold(dimensions(1, 2)), 4);
  check(fold(dimensions()));
  const auto turned = source(x.data(), extents(97, 9, 149), {1, 97 * 149, 97});
  check([&](const auto&... on) { return reduce(turned, 0.f, dimensions(1), on..., std::plus<>{}); });
}

TEST_CASE("reduce on an executor: bytes by add, max and multiply") {
  const auto x = codes_at_random<u8>(extents(11, 301, 331));
  const auto zero = number_like(x, 0.f);
  check([&](const auto&... on) {
    return reduce(x, zero, dimensions(2), requantize_to<i32>(.25f), add, requantize_to<u8>(200.f, 5), on...);
  });
  check([&](const auto&... on) { return reduce(x, zero, dimensions(0, 1), requantize_to<i32>(.25f), add, on...); });
  check([&](const auto&... on) { return reduce(x, zero, dimensions(1), on..., max); });
  check([&](const auto&... on) { return reduce(x, zero, dimensions(0), add, on...); });
}

TEST_CASE("reduce on an executor: results of four bits, two inputs, rows that lie across, a fold of everything") {
  using nibble = scheme<int4, per_tensor, static_only>;
  const auto x = pattern<float>(1001 * 130);
  const auto matrix = source(x.data(), extents(1001, 130));
  const auto narrow = [](float v) { return number_type<nibble>{.scale = 900.f, .zero_point = 0}(v); };
  check([&](const auto&... on) { return reduce(matrix, 0.f, dimensions(1), std::identity{}, add, narrow, on...); });
  const auto largest = [](float a, index_t i, float b, index_t j) {
    return b > a ? std::tuple(b, j) : std::tuple(a, i);
  };
  const auto places = generated(extents(1001, 130), [](const auto& at) { return at[1]; });
  check([&](const auto&... on) {
    return reduce(std::tuple(matrix, places), std::tuple(-1.f, index_t{-1}), dimensions(1), largest, on...);
  });
  check([&](const auto&... on) {
    return reduce(source(x.data(), extents(130, 1001), {1, 130}), 0.f, dimensions(0), add, on...);
  });
  const auto all = [&](const auto&... on) { return reduce(matrix, 0.f, dimensions(0, 1), add, on...); };
  CHECK(all(on(pool::threads(7))) == all());
}

TEST_CASE("reduce on an executor: small tensors stay on one thread, empty ones are left alone") {
  const auto never = on(parallel_for(7, [](index_t, const auto&) { FAIL("a part of too little"); }));
  const auto x = pattern<float>(64 * 64);
  CHECK(reduce(source(x.data(), extents(64, 64)), 0.f, dimensions(1), add, never).size() == 64);
  CHECK(reduce(source(x.data(), extents(0, 64)), 0.f, dimensions(1), add, never).size() == 0);
  CHECK(reduce(source(x.data(), extents(64, 0)), 0.f, dimensions(1), add, never).size() == 64);
}

TEST_CASE("reduce on an executor: what the body throws comes to the caller") {
  const auto x = pattern<float>(256 * 1024);
  const auto body = [](float a, float b) { return b > 220.f ? throw std::out_of_range("body") : a + b; };
  CHECK_THROWS_WITH_AS(reduce(source(x.data(), extents(256, 1024)), 0.f, dimensions(1), body, on(pool::threads(3))),
                       "body", std::out_of_range);
}

TEST_CASE("reduce_window on an executor: floats and bytes, padding, strides, dilations") {
  const auto x = pattern<float>(3 * 61 * 131);
  const auto cube = source(x.data(), extents(3, 61, 131));
  const window<3> w{.sizes = {1, 3, 4},
                    .strides = {1, 1, 2},
                    .base_dilations = {1, 2, 1},
                    .window_dilations = {1, 1, 3},
                    .padding_low = {0, 2, 5},
                    .padding_high = {0, 0, 9}};
  check([&](const auto&... on) { return reduce_window(cube, 0.1f, w, add, on...); }, 5);
  const auto codes = codes_at_random<u8>(extents(2, 400, 331));
  const auto zero = number_like(codes, 0.f);
  const window<3> tall{.sizes = {1, 3, 2}, .padding_low = {0, 2, 1}, .padding_high = {0, 1, 3}};
  check([&](const auto&... on) {
    return reduce_window(codes, zero, tall, requantize_to<i32>(.5f), add, requantize_to<u8>(2.f, 1), on...);
  });
  check([&](const auto&... on) { return reduce_window(codes, zero, tall, on..., max); });
}

TEST_CASE("pools on an executor") {
  const auto x = codes_at_random<i8>(extents(3, 401, 203));
  const window<3> w{.sizes = {1, 2, 3}, .padding_low = {0, 1, 1}, .padding_high = {0, 0, 2}};
  check([&](const auto&... on) { return max_pool(x, w, on...); });
  for (const pool_count by : {pool_count::window, pool_count::elements})
    check([&](const auto&... on) {
      return average_pool(x, w, requantize_to<i32>(.5f), requantize_to<i8>(.7f, 2), by, on...);
    });
  const auto floats = pattern<float>(8 * 30000);
  check([&](const auto&... on) {
    return max_pool(source(floats.data(), extents(8, 30000)), window<2>{.sizes = {2, 2}}, on...);
  });
}

TEST_CASE("select_and_scatter on an executor: cut where windows do not overlap") {
  const auto operand = pattern<float>(7 * 60 * 91), values = pattern<float>(7 * 58 * 45);
  const window<3> w{.sizes = {1, 3, 2}, .strides = {1, 1, 2}};
  check(
      [&](const auto&... on) {
        return select_and_scatter(source(operand.data(), extents(7, 60, 91)), source(values.data(), extents(7, 58, 45)),
                                  .1f, w, std::greater_equal<>{}, add, on...);
      },
      6);
  const window<3> overlapping{.sizes = {2, 3, 3}};
  const auto some = pattern<float>(6 * 58 * 89);
  check(
      [&](const auto&... on) {
        return select_and_scatter(source(operand.data(), extents(7, 60, 91)), source(some.data(), extents(6, 58, 89)),
                                  .1f, overlapping, std::greater_equal<>{}, add, on...);
      },
      1);
}
