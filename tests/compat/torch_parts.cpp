// Mirrors include/qtensor/compat/torch.hpp: conversions on an executor.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/compat/torch.hpp>

#include "ops/parts_check.hpp"

namespace qt = qtensor;
namespace torch = qtensor::compat::torch;
using parts_check::check;
using parts_check::pattern;

namespace {

const auto numbers = pattern<float>(67 * 1301 * 2);
const auto same_codes = [](const auto& a, const auto& b) {
  return std::ranges::equal(a.codes(), b.codes()) && std::ranges::equal(a.scales(), b.scales());
};

}  // namespace

TEST_CASE("torch on an executor: quantize per tensor and per channel, and back") {
  const auto x = qt::source(numbers.data(), qt::extents(67, 2, 1301));
  check([&](const auto&... on) { return torch::quantize_per_tensor<torch::quint8>(x, 1.25, 100, on...); }, same_codes);
  const std::vector<double> scales = {.75, 1.75};
  const std::vector<std::int64_t> zeros = {3, -5};
  check([&](const auto&... on) { return torch::quantize_per_channel<torch::qint8>(x, scales, zeros, 1, on...); },
        same_codes);
  const auto q = torch::quantize_per_channel<torch::qint8>(x, scales, zeros, 1);
  check([&](const auto&... on) { return torch::dequantize(q, on...); });
  check([&](const auto&... on) { return torch::dequantize_per_channel(q, scales, on...); });
  const auto wide = std::vector<double>(1301, .5);
  const auto columns = torch::quantize_per_channel<torch::qint8>(x, wide, 0, 2);
  check([&](const auto&... on) { return torch::dequantize_per_channel(columns, wide, on...); });
}

TEST_CASE("torch on an executor: fake quantization of rows, of memory that lies across, of a vector") {
  const std::vector<double> scales(1301, .75);
  const auto fake = [&](const auto& x, int axis) {
    return [&scales, x, axis](const auto&... on) {
      return torch::fake_quantize_per_channel_affine(x, scales, 7, axis, -100, 90, on...);
    };
  };
  check(fake(qt::source(numbers.data(), qt::extents(134, 1301)), 1));
  check(fake(qt::source(numbers.data(), qt::extents(134, 1301), {1, 134}), 1));
  check(fake(qt::source(numbers.data(), qt::extents(1301, 134)), 0));
  const auto vector = qt::source(numbers.data(), qt::extents(67 * 2602));
  check([&](const auto&... on) { return torch::fake_quantize_per_tensor_affine(vector, .75, 3, -8, 7, on...); });
}
