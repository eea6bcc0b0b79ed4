// Random products whose results go on: stages, and sinks that narrow or quantize tiles.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/epilogue.hpp>

#include "products.hpp"

using namespace qtensor;
using fuzz::drawn_operand;

namespace {

template <format F>
void narrow(fuzz::dice& dice, index_t rows, index_t outputs, const std::vector<float>& want, const auto& multiply) {
  fuzz::drawn_memory<std::uint16_t> y(dice, rows, outputs, false);
  for (auto& v : y.elements) v = static_cast<std::uint16_t>(dice.bits());
  auto expected = y.elements;
  const auto to = y.ref();
  for (index_t m = 0; m < rows; ++m)
    for (index_t n = 0; n < outputs; ++n)
      expected[static_cast<std::size_t>(&to(m, n) - y.elements.data())] = static_cast<std::uint16_t>(
          encode<F, nearest_even, to_special>(want[static_cast<std::size_t>(m * outputs + n)]));
  multiply(ops::store_narrow<F>{to});
  REQUIRE(y.elements == expected);
}
template <quantization_scheme S>
void quantized_by_its_rule(index_t rows, index_t outputs, const std::vector<float>& want, index_t width,
                           const auto& multiply) {
  const matrix_extents extents(rows, outputs);
  tensor<S> y(extents);
  using sink = ops::quantize_tiles<S, matrix_extents, row_major>;
  if (!sink::may_quantize(y.span(), width)) return;
  multiply(sink{ops::quantized_lines(y.span())});
  REQUIRE(check::same_bytes(y, check::expected<S, row_major>(want, extents)));
}
template <quantization_scheme S>
void encoded(fuzz::dice& dice, index_t rows, index_t outputs, const std::vector<float>& want, const auto& multiply) {
  tensor<S> y(matrix_extents(rows, outputs));
  for (auto& s : y.scales()) s = fuzz::ordinary_number(dice);
  if constexpr (S::has_zero_point)
    for (auto& z : y.zero_points()) z = static_cast<std::remove_reference_t<decltype(z)>>(dice.bits());
  auto expected = y;
  reference::quantize_static([&](const auto& at) { return want[static_cast<std::size_t>(at[0] * outputs + at[1])]; },
                             expected.span());
  multiply(ops::encode_tiles<S, matrix_extents, row_major>(ops::quantized_lines(y.span())));
  REQUIRE(check::same_bytes(y, expected));
}

/// Weights times codes, stages behind them, and any sink.
template <class W, class X>
void stages_and_sinks(fuzz::dice& dice) {
  const fuzz::drawn_ways ways(dice);
  const fuzz::product_sizes sizes(dice);
  const index_t rows = sizes.rows, outputs = sizes.outputs, depth = sizes.depth;
  const W w(dice, outputs, depth, fuzz::parameters::ordinary);
  const X x(dice, rows, depth, fuzz::parameters::ordinary);
  std::vector<float> want = fuzz::by_definition(x.numbers(), w.numbers(), std::gcd(w.period(), x.period()), true);
  std::vector<float> bias(static_cast<std::size_t>(outputs));
  for (float& b : bias) b = dice.one_of(-1.f, 1.f) * fuzz::ordinary_number(dice);
  fuzz::drawn_memory<float> memory(dice, rows, outputs, true);
  for (float& v : memory.elements) v = fuzz::ordinary_number(dice);
  const auto other = memory.ref<const float>();
  const auto all = stages(stage::bias(bias), stage::clip(-300.f, 500.f), stage::sum(other, -0.7f));
  for (index_t m = 0; m < rows; ++m)
    for (index_t n = 0; n < outputs; ++n) {
      float& v = want[static_cast<std::size_t>(m * outputs + n)];
      v = std::clamp(rounded(v + bias[static_cast<std::size_t>(n)]), -300.f, 500.f);
      v = rounded(v + rounded(other(m, n) * -0.7f));
    }
  const index_t kind = dice.within(0, 5), width = ops::tile_outputs<simd::best_arch, decltype(w.packed(dice)),
                                                                    decltype(x.codes()), product_math::fixed_order>();
  INFO(std::string(name<typename W::scheme_type>), " times ", std::string(name<typename X::scheme_type>), ", ", rows,
       " rows, ", outputs, " outputs, depth ", depth, ", sink ", kind);
  const auto multiply = [&]<class Sink>(const Sink& sink) {
    multiply_tiles(w.packed(dice), x.codes(), ops::staged<std::remove_const_t<decltype(all)>, Sink>{all, sink},
                   on(pool::threads(dice.within(1, 3))));
  };
  switch (kind) {
    case 0:
      return narrow<bf16>(dice, rows, outputs, want, multiply);
    case 1:
      return narrow<f16>(dice, rows, outputs, want, multiply);
    case 2:
      return quantized_by_its_rule<mxfp8_e4m3>(rows, outputs, want, width, multiply);
    case 3:
      return quantized_by_its_rule<uint4_group<16>>(rows, outputs, want, width, multiply);
    case 4:
      return encoded<uint8_per_channel<1>>(dice, rows, outputs, want, multiply);
    default:
      return encoded<scheme<int4, per_tensor>>(dice, rows, outputs, want, multiply);
  }
}

}  // namespace

TEST_CASE("products: stages and sinks") {
  fuzz::each_case(300, [](fuzz::dice& dice) {
    if (dice.chance(2))
      stages_and_sinks<drawn_operand<int8_per_channel<0>>, drawn_operand<uint8_per_tensor>>(dice);
    else
      stages_and_sinks<drawn_operand<scheme<int4, group<dynamic>>>, drawn_operand<int8_per_channel<0>>>(dice);
  });
}
