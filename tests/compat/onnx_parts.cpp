// Mirrors include/qtensor/compat/onnx.hpp: conversions on an executor; and what other vendors hand on to `quantize`.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/compat/cann.hpp>
#include <qtensor/compat/onnx.hpp>
#include <qtensor/compat/torchao.hpp>
#include <qtensor/compat/transformer_engine.hpp>

#include "ops/parts_check.hpp"

namespace qt = qtensor;
namespace onnx = qtensor::compat::onnx;
using parts_check::check;
using parts_check::pattern;

namespace {

const auto numbers = pattern<float>(67 * 1952);
const auto x = qt::source(numbers.data(), qt::extents(67, 1952));
const auto same = [](const auto& a, const auto& b) {
  return std::ranges::equal(a.codes(), b.codes()) && std::ranges::equal(a.scales(), b.scales());
};

}  // namespace

TEST_CASE("onnx on an executor: QuantizeLinear, DynamicQuantizeLinear, DequantizeLinear") {
  const std::vector<float> scales(1952, 1.5f);
  check(
      [&](const auto&... on) {
        return onnx::quantize_linear<onnx::linear<qt::int4>>(x, scales, {}, {.axis = 1}, on...);
      },
      same);
  const auto integers = pattern<std::int32_t>(67 * 1952);
  check(
      [&](const auto&... on) {
        return onnx::quantize_linear<onnx::linear<qt::uint8>>(integers.data(), qt::extents(67, 1952), scales, {},
                                                              {.axis = 1}, on...);
      },
      same);
  check([&](const auto&... on) { return onnx::dynamic_quantize_linear(x, on...); }, same);
  const auto q = onnx::quantize_linear<onnx::linear<qt::uint8>>(x, scales, {}, {.axis = 1});
  check([&](const auto&... on) {
    std::vector<float> y(numbers.size());
    onnx::dequantize_linear(q, y, on...);
    return y;
  });
  const auto packed = pattern<std::uint8_t>((67 * 1951 + 1) / 2);  // rows that end inside bytes
  const std::vector<float> one = {.5f};
  check([&](const auto&... on) {
    std::vector<float> y(67 * 1951);
    onnx::dequantize_linear<onnx::linear<qt::int4>>(packed, one, {}, qt::extents(67, 1951), {}, y, on...);
    return y;
  });
}

TEST_CASE("CANN, torchao and TransformerEngine on an executor") {
  namespace compat = qtensor::compat;
  check([&](const auto&... on) { return compat::cann::dynamic_mx_quant<qt::e4m3>(x, on...); }, same);
  check([&](const auto&... on) { return compat::cann::dynamic_mx_quant_with_dual_axis<qt::e2m1>(x, on...); },
        [](const auto& a, const auto& b) { return same(a.rows, b.rows) && same(a.cols, b.cols); }, 3);
  check([&](const auto&... on) { return compat::torchao::nvfp4_below(x, .25f, on...); }, same);
  check([&](const auto&... on) { return compat::transformer_engine::quantize(x, 300.f, on...); }, same);
}
