// The snippets of the StableHLO RFC on quantized reductions: ui8 accumulated in i32, its other options, bf16 in f32.
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <iostream>
#include <qtensor/compat/stablehlo.hpp>
#include <qtensor/ops/reduce_presets.hpp>
#include <qtensor/ops/reduce_window.hpp>
#include <vector>

namespace qt = qtensor;
using ui8 = qt::compat::stablehlo::uniform<qt::uint8>;  // !quant.uniform<ui8:f32, scale:zero point>
using i32 = qt::compat::stablehlo::uniform<qt::int32>;

namespace {

template <class T>
void print(const char* what, const T& quantized) {
  std::cout << what << ':';
  for (qt::index_t i = 0; i < quantized.size(); ++i) {
    const auto number = qt::elements(quantized).line({0}, 0)(i);
    std::cout << "  " << number.integer() << " (" << number.real() << ')';
  }
  std::cout << '\n';
}

}  // namespace

int main() {
  // Two rows of a wave, in quanta of 1/50.
  const float input_scale = .02f;
  const int input_zp = 128;
  std::vector<float> wave(2 * 96);
  for (std::size_t i = 0; i < wave.size(); ++i) wave[i] = 1.5f + std::sin(static_cast<float>(i) * .1f);
  const auto input = qt::quantize<ui8>(qt::source(wave.data(), qt::extents(2, 96)), input_scale, input_zp);
  const auto zero = qt::number_like(input, 0.f);
  const auto rows = qt::dimensions(1);

  // Option 1, with its three regions. The sums are beyond ui8's range and inside i32's.
  const auto to_accumulator = qt::requantize_to<i32>(input_scale);
  const auto to_output = qt::requantize_to<ui8>(1.f, 5);
  const auto result = qt::reduce(input, zero, rows, to_accumulator, qt::add, to_output);
  print("ui8 in, i32 accumulated, ui8 out", result);

  // Without conversions the body works in the type of the input, and saturates.
  print("without conversions", qt::reduce(input, zero, rows, qt::add));

  // Option 2: re-scale first. Option 3: the init value says what accumulates; the body takes (element, accumulator).
  print("option 2", qt::rfc::rescale_first(input, to_accumulator(0.f), rows, to_accumulator, qt::add, to_output));
  const auto widening_add = [&](auto element, auto accumulator) {
    return qt::add(to_accumulator(element), accumulator);
  };
  print("option 3", qt::rfc::front_to_back(input, to_accumulator(0.f), rows, widening_add));

  // As approved (conversions implied by types), and as shipped (the result has the accumulator's type).
  print("approved", qt::rfc::approved(input, zero, rows, to_accumulator, qt::add, to_output));
  print("shipped", qt::rfc::shipped(input, zero, rows, to_accumulator, qt::add));

  // The open question's snippet: bf16 through f32. 256 + 1 is 256 in bf16, so ones are lost without conversions.
  std::vector<std::uint16_t> halves(6, 0x3f80);  // 1
  halves[0] = 0x4380;                            // 256
  const auto bf16 = qt::source<qt::bf16>(halves.data(), qt::extents(1, 6));
  const auto f32_sum =
      qt::reduce(bf16, qt::real<qt::bf16>(0.f), rows, qt::convert_to<qt::f32>{}, qt::add, qt::convert_to<qt::bf16>{});
  const auto bf16_sum = qt::reduce(bf16, qt::real<qt::bf16>(0.f), rows, qt::add);
  std::cout << "bf16 through f32: " << static_cast<float>(f32_sum(0))
            << ", in bf16: " << static_cast<float>(bf16_sum(0)) << '\n';

  // Windows: the mean and the largest of 12 neighbours.
  const qt::window<2> neighbours{.sizes = {1, 12}, .strides = {1, 12}};
  const auto means = qt::average_pool(input, neighbours, to_accumulator, qt::requantize_to<ui8>(input_scale, input_zp));
  const auto peaks = qt::max_pool(input, neighbours);
  std::cout << "mean of 12: " << qt::elements(means).line({0, 0}, 1)(0).real()
            << ", largest of 12: " << qt::elements(peaks).line({0, 0}, 1)(0).real() << '\n';

  // Position and value of the largest number of each row.
  const auto position = qt::generated(input.extents(), [](const auto& at) { return at[1]; });
  const auto larger = [](auto best, qt::index_t best_at, auto x, qt::index_t x_at) {
    return x.real() > best.real() ? std::tuple(x, x_at) : std::tuple(best, best_at);
  };
  const auto [largest, at] = qt::reduce(std::tie(input, position), std::tuple(zero, qt::index_t{0}), rows, larger);
  print("largest", largest);
  std::cout << "at: " << at(0) << ' ' << at(1) << '\n';

  // What the sums must be, in real numbers.
  for (qt::index_t row = 0; row < 2; ++row) {
    double sum = 0.;
    for (std::size_t i = 0; i < 96; ++i) sum += static_cast<double>(wave[static_cast<std::size_t>(row) * 96 + i]);
    const double error = std::fabs(static_cast<double>(qt::elements(result).line({0}, 0)(row).real()) - sum);
    if (error > 2.) {
      std::cerr << "row " << row << " is off by " << error << '\n';
      return 1;
    }
  }
  return f32_sum(0) == 260.f && bf16_sum(0) == 256.f ? 0 : 1;
}
