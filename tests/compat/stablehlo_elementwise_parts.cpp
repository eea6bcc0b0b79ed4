// Mirrors include/qtensor/compat/stablehlo_elementwise.hpp, and stablehlo.hpp: operations on an executor.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/compat/stablehlo_elementwise.hpp>

#include "ops/parts_check.hpp"

namespace qt = qtensor;
namespace shlo = qtensor::compat::stablehlo;
using parts_check::pattern;
using qt::index_t;
using shlo::basic_type;
using shlo::quantized_type;

namespace {

const std::vector<index_t> shape = {7, 31, 601};  // eight parts
constexpr index_t size = 7 * 31 * 601;

template <class T>
shlo::tensor tensor_of(const shlo::element_type& type) {
  const auto x = pattern<T>(size);
  return {type, shape, std::span<const T>(x)};
}
template <class Run>
void check(const Run& run) {
  parts_check::check(run, [](const shlo::tensor& a, const shlo::tensor& b) {
    return a.type() == b.type() && std::ranges::equal(a.bytes(), b.bytes());
  });
}

const auto per_axis = quantized_type::per_axis(basic_type::i8, basic_type::f32, 1, std::vector<double>(31, .75),
                                               std::vector<shlo::wide_integer>(31, -3));

}  // namespace

TEST_CASE("stablehlo on an executor: quantize and dequantize, by kernels, tiles and elements") {
  const auto x = tensor_of<float>(basic_type::f32);
  check([&](const auto&... on) { return uniform_quantize(x, per_axis, on...); });
  const auto q = uniform_quantize(x, per_axis);
  check([&](const auto&... on) { return uniform_dequantize(q, on...); });
  const auto narrow = quantized_type::per_tensor(basic_type::ui4, basic_type::f32, 2.0, 5);
  check([&](const auto&... on) { return uniform_quantize(x, narrow, on...); });
  const auto doubles = tensor_of<double>(basic_type::f64);
  const auto wide = quantized_type::per_tensor(basic_type::i8, basic_type::f64, 2.0, 5);
  check([&](const auto&... on) { return uniform_quantize(doubles, wide, on...); });
}

TEST_CASE("stablehlo on an executor: element-wise operations, compare, select, convert") {
  const auto a = tensor_of<std::int8_t>(per_axis), b = tensor_of<float>(basic_type::f32);
  check([&](const auto&... on) { return elementwise(shlo::unary::floor, a, per_axis, on...); });
  check([&](const auto&... on) { return elementwise(shlo::binary::multiply, a, b, per_axis, on...); });
  check([&](const auto&... on) { return compare(shlo::direction::lt, a, b, on...); });
  const auto pred = compare(shlo::direction::ge, b, a);
  check([&](const auto&... on) { return select(pred, a, b, per_axis, on...); });
  const auto integers = tensor_of<std::int64_t>(basic_type::i64);
  check(
      [&](const auto&... on) { return elementwise(shlo::binary::divide, integers, integers, basic_type::i64, on...); });
  check([&](const auto&... on) { return compare(shlo::direction::ne, integers, integers, on...); });
  check([&](const auto&... on) { return convert(integers, basic_type::i1, on...); });
  check([&](const auto&... on) { return convert(b, basic_type::i16, on...); });
}

TEST_CASE("stablehlo on an executor: what an element throws comes to the caller") {
  const auto x = tensor_of<std::uint8_t>(basic_type::ui8);
  CHECK_THROWS_AS(elementwise(shlo::unary::abs, x, basic_type::ui8, qt::on(pool::threads(3))), qt::error);
}
