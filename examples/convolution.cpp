// A convolution of quantized tensors: exact integers inside, a bias, floats or codes out, checked against plain loops.
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <iostream>
#include <qtensor/kernels.hpp>
#include <qtensor/ops/convolution_tensors.hpp>
#include <vector>

namespace qt = qtensor;
using qt::index_t;

int main() {
  // One image of 14 x 14 pixels and 32 channels; 48 outputs of 3 x 3 taps at every second pixel.
  const index_t size = 14, channels = 32, outputs = 48, half = size / 2;
  std::vector<float> image(static_cast<std::size_t>(size * size * channels)),
      taps(static_cast<std::size_t>(outputs * channels * 9)), bias(static_cast<std::size_t>(outputs));
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = std::sin(static_cast<float>(i) * 0.37f) + 0.2f;
  for (std::size_t i = 0; i < taps.size(); ++i) taps[i] = std::cos(static_cast<float>(i) * 0.61f) * 0.1f;
  for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = 0.01f * static_cast<float>(i);

  const auto X = qt::quantize<qt::uint8_per_tensor>(qt::source(image.data(), qt::extents(1, size, size, channels)));
  const auto W = qt::quantize<qt::int8_per_channel<0>>(qt::source(taps.data(), qt::extents(outputs, channels, 3, 3)));
  const auto conv = qt::prepare_convolution(X, "NHWC", W, "OIHW",  // packs the weights, once
                                            {.strides = {2, 2}, .pad_low = {1, 1}, .pad_high = {1, 1}});
  std::vector<float> y(static_cast<std::size_t>(half * half * outputs));
  qt::convolve_into(conv, X, bias, qt::result_in(y.data(), conv.plan().result("NHWC")));

  std::vector<std::int8_t> codes(y.size());  // or as codes of the next layer, under a scale and a zero point
  qt::convolve_into<qt::int8_per_tensor>(conv, X, bias, 0.05f, 0,
                                         qt::result_in(codes.data(), conv.plan().result("NHWC")));

  // The same of the floats that were quantized.
  double lost = 0., all = 0., lost_in_codes = 0.;
  for (index_t row = 0; row < half; ++row)
    for (index_t col = 0; col < half; ++col)
      for (index_t o = 0; o < outputs; ++o) {
        double want = static_cast<double>(bias[static_cast<std::size_t>(o)]);
        for (index_t i = 0; i < channels; ++i)
          for (index_t tap = 0; tap < 9; ++tap) {
            const index_t at_row = 2 * row - 1 + tap / 3, at_col = 2 * col - 1 + tap % 3;
            if (at_row < 0 || at_row >= size || at_col < 0 || at_col >= size) continue;
            want += static_cast<double>(image[static_cast<std::size_t>((at_row * size + at_col) * channels + i)]) *
                    static_cast<double>(taps[static_cast<std::size_t>((o * channels + i) * 9 + tap)]);
          }
        const auto at = static_cast<std::size_t>((row * half + col) * outputs + o);
        all += want * want;
        lost += std::pow(static_cast<double>(y[at]) - want, 2);
        lost_in_codes += std::pow(static_cast<double>(codes[at]) * 0.05 - want, 2);
      }
  std::cout << "relative error of floats " << std::sqrt(lost / all) << ", of codes " << std::sqrt(lost_in_codes / all)
            << '\n';
  return lost < 1e-3 * all && lost_in_codes < 1e-2 * all ? 0 : 1;
}
