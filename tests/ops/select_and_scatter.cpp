// Mirrors include/qtensor/ops/select_and_scatter.hpp: NUMERICS 7.4, ties, conversions and constraints.
// SPDX-License-Identifier: BSD-3-Clause
#include <functional>
#include <qtensor/ops/select_and_scatter.hpp>

#include "ops/reduce_check.hpp"

using namespace reduce_check;

namespace {

const auto larger_or_equal = [](auto a, auto b) { return detail::to_f32(a) >= detail::to_f32(b); };

}  // namespace

TEST_CASE("select_and_scatter: the vector of NUMERICS 7.4") {
  const std::vector<std::int64_t> operand = {1, 5, 2, 5, 3, 6, 4, 4}, source = {5, 6, 7, 8};
  const window<2> w{.sizes = {3, 1}, .strides = {2, 1}, .padding_high = {1, 0}};
  const auto y = select_and_scatter(values(operand.data(), extents(4, 2)), values(source.data(), extents(2, 2)),
                                    std::int64_t{0}, w, std::greater_equal<>{}, add);
  CHECK(all_of(y) == std::vector<std::int64_t>{0, 0, 0, 0, 5, 14, 7, 0});
}

TEST_CASE("select_and_scatter: with >= the first of equal elements stays, with > the last") {
  const std::vector<float> operand = {2, 2, 2}, source = {10};
  const auto run = [&](auto select) {
    return all_of(select_and_scatter(qtensor::source(operand.data(), extents(3)),
                                     qtensor::source(source.data(), extents(1)), 0.f, window<1>{.sizes = {3}}, select,
                                     add));
  };
  CHECK(run(std::greater_equal<>{}) == std::vector<float>{10, 0, 0});
  CHECK(run(std::greater<>{}) == std::vector<float>{0, 0, 10});
}

TEST_CASE("select_and_scatter: a place takes init first, then the values of its windows in order") {
  const std::vector<std::int64_t> operand = {0, 9, 0}, source = {1, 2};
  const auto y = select_and_scatter(values(operand.data(), extents(3)), values(source.data(), extents(2)),
                                    std::int64_t{7}, window<1>{.sizes = {2}}, std::greater_equal<>{},
                                    [](std::int64_t a, std::int64_t b) { return a * 10 + b; });
  CHECK(all_of(y) == std::vector<std::int64_t>{7, 712, 7});
}

TEST_CASE("select_and_scatter: conversions belong to scatter's leaves and result, not to select") {
  const auto operand = codes_in<u8>(extents(1, 4), .5f, 10, {30, 200, 40, 200});
  const auto source = codes_in<u8>(extents(1, 3), .5f, 10, {250, 240, 210});  // 120, 115, 100
  const window<2> w{.sizes = {1, 2}};
  const auto zero = number_like(operand, 0.f);
  const auto wide = select_and_scatter(operand, source, zero, w, larger_or_equal, requantize_to<i32>(.25f), add,
                                       requantize_to<u8>(1.f, 5));
  CHECK(codes_of(wide) == std::vector<int>{5, 240, 5, 105});
  CHECK(wide.scale(0, 0) == 1.f);
  // In the type of the elements 120 + 115 saturates at 122.5.
  CHECK(codes_of(select_and_scatter(operand, source, zero, w, larger_or_equal, add)) ==
        std::vector<int>{10, 255, 10, 210});
  const auto floats = select_and_scatter(operand, source, zero, w, larger_or_equal, convert_to<f32>{}, add);
  CHECK(all_of(floats) == std::vector<float>{0.f, 235.f, 0.f, 100.f});
}

TEST_CASE("select_and_scatter: windows of nothing but padding drop their value") {
  const std::vector<float> operand = {1, 2}, source = {10, 20, 30};
  const auto y = select_and_scatter(
      qtensor::source(operand.data(), extents(2)), qtensor::source(source.data(), extents(3)), 0.f,
      window<1>{.strides = {2}, .padding_low = {2}, .padding_high = {1}}, std::greater_equal<>{}, add);
  CHECK(all_of(y) == std::vector<float>{20, 0});
}

TEST_CASE("select_and_scatter: without windows, however large, all results are init") {
  constexpr index_t huge = index_t{1} << 40;
  const std::vector<float> operand = {1, 2};
  const auto y =
      select_and_scatter(qtensor::source(operand.data(), extents(2, 1)), qtensor::source(operand.data(), extents(0, 0)),
                         7.f, window<2>{.sizes = {huge, huge}}, std::greater_equal<>{}, add);
  CHECK(all_of(y) == std::vector<float>{7, 7});
}

TEST_CASE("select_and_scatter: constraints by name") {
  const auto operand = codes_in<u8>(extents(4), .5f, 10, {1, 2, 3, 4});
  const auto source = codes_in<u8>(extents(2), .5f, 10, {1, 2});
  const auto other = codes_in<u8>(extents(2), .25f, 10, {1, 2});
  const auto init = number_like(operand, 0.f);
  const window<1> w{.sizes = {2}, .strides = {2}};
  const auto said = [&](const auto& x, const auto& s, const auto& i, const window<1>& win) {
    return sentence([&] { select_and_scatter(x, s, i, win, larger_or_equal, add); });
  };
  CHECK(mentions(said(operand, other, init, w), "(C1): element_type(operand) = element_type(source)"));
  CHECK(mentions(said(operand, source, number_like(other, 0.f), w), "(C3): element_type(init_value)"));
  CHECK(mentions(said(operand, source, init, window<1>{.sizes = {2}}), "(C2): shape(source) = num_windows"));
  CHECK(mentions(said(operand, source, init, {.sizes = {2}, .strides = {2}, .base_dilations = {2}}), "a dilation"));
  CHECK(mentions(said(operand, source, init, {.sizes = {0}, .strides = {2}}), "0 < window_dimensions"));
  const auto drifts = [](auto a, auto) { return requantize_to<u8>(a.scale * 2.f, 0)(a); };
  CHECK(mentions(sentence([&] { select_and_scatter(operand, source, init, w, larger_or_equal, drifts); }), "(C10)"));
}
