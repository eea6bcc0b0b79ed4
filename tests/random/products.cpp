// Random products in floats: weights of every format, chains of fma in fixed order, rounded operands, bf16 in its
// bound.
// SPDX-License-Identifier: BSD-3-Clause
#include "products.hpp"

#include <qtensor/compat/ggml.hpp>

using namespace qtensor;
using fuzz::drawn_operand;
using fuzz::weights;
using fuzz::with_weights;

namespace {

/// The chains of reference::dot over rows of floats.
std::vector<float> chains(const std::vector<float>& x, const std::vector<float>& w, index_t rows, index_t outputs,
                          index_t depth) {
  const auto element = [&](const std::vector<float>& all) {
    return [&all, depth](index_t row, index_t k) { return all[static_cast<std::size_t>(row * depth + k)]; };
  };
  std::vector<float> y;
  for (index_t m = 0; m < rows; ++m)
    for (index_t n = 0; n < outputs; ++n)
      y.push_back(reference::dot(
          element(x), [&](index_t k, index_t row) { return element(w)(row, k); }, m, n, depth));
  return y;
}

template <weights Weights, class W, format F = f32, class... Option>
void weights_times_floats(fuzz::dice& dice, const Option&... option) {
  const fuzz::drawn_ways ways(dice);
  const fuzz::product_sizes sizes(dice);
  const index_t rows = sizes.rows, outputs = sizes.outputs, depth = sizes.depth;
  const W w(dice, outputs, depth);
  fuzz::drawn_memory<storage_t<F>> memory(dice, rows, depth, true);
  const auto numbers = dice.numbers(static_cast<index_t>(memory.elements.size()));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    memory.elements[i] = qtensor::detail::unit_from<F>(encode<F>(numbers[i]));
  const auto x = memory.template ref<const storage_t<F>>();
  INFO(std::string(name<typename W::scheme_type>), " times floats, ", rows, " rows, ", outputs, " outputs, depth ",
       depth, ", strides ", x.row_stride, " and ", x.col_stride);
  constexpr bool rounds = sizeof...(Option) > 0;  // f16_math
  std::vector<float> values, weight_values = w.values();
  for (index_t m = 0; m < rows; ++m)
    for (index_t k = 0; k < depth; ++k) values.push_back(decode<F>(qtensor::detail::code_of<F>(x(m, k))));
  if (rounds)
    for (auto* all : {&values, &weight_values})
      for (float& v : *all) v = decode<f16>(encode<f16, nearest_even, to_special>(v));
  const auto want = chains(values, weight_values, rows, outputs, depth);
  with_weights<Weights>(dice, w, [&](const auto& weights) {
    fuzz::require_product(dice, rows, outputs, want, [&](const auto& sink, const auto& by) {
      using memory_rows = typename memory_source<F, matrix_extents>::template in_order<row_major>;
      if constexpr (std::is_same_v<F, f32>)
        multiply_tiles(weights, x, sink, by, option...);
      else
        multiply_tiles(weights, memory_rows({x.data, matrix_extents(rows, depth), {x.row_stride, x.col_stride}}), sink,
                       by, option...);
    });
  });
}

/// Both sides quantized, and multiplied as floats.
template <weights Weights, class W, class X>
void weights_times_codes(fuzz::dice& dice) {
  const fuzz::drawn_ways ways(dice);
  const fuzz::product_sizes sizes(dice);
  const index_t rows = sizes.rows, outputs = sizes.outputs, depth = sizes.depth;
  const W w(dice, outputs, depth);
  const X x(dice, rows, depth);
  INFO(std::string(name<typename W::scheme_type>), " times ", std::string(name<typename X::scheme_type>), ", ", rows,
       " rows, ", outputs, " outputs, depth ", depth);
  const auto want = chains(x.values(), w.values(), rows, outputs, depth);
  with_weights<Weights>(dice, w, [&](const auto& weights) {
    fuzz::require_product(dice, rows, outputs, want,
                          [&](const auto& sink, const auto& by) { multiply_tiles(weights, x.codes(), sink, by); });
  });
}

using e5m2_of_blocks = scheme<e5m2, block<dynamic, dynamic>, scale_as<bf16>>;
using far_nibbles = scheme<uint4, group<dynamic>, zero_point<int32>>;
using own_scales = scheme<int8, per_channel<1>>;
using wide_codes = scheme<int16, group<dynamic>>;

}  // namespace

TEST_CASE("products: floats in fixed order") {
  using enum weights;
  fuzz::each_case(500, [](fuzz::dice& dice) {
    switch (dice.within(0, 7)) {
      case 0:
        return weights_times_floats<packed, drawn_operand<with<nvfp4, tensor_scale<f32>>>>(dice);
      case 1:
        return weights_times_floats<plain, drawn_operand<e5m2_of_blocks, col_major>, bf16>(dice);
      case 2:
        return weights_times_floats<packed, drawn_operand<mxfp6_e3m2, row_major>, f16>(dice);
      case 3:
        return weights_times_floats<plain, drawn_operand<far_nibbles>>(dice);
      case 4:
        return weights_times_floats<packed, drawn_operand<compat::ggml::q5_1>>(dice);
      case 5:
        return weights_times_floats<plain, drawn_operand<hif8_block<16, 16>>>(dice, f16_math);
      case 6:
        return weights_times_codes<plain, drawn_operand<wide_codes>, drawn_operand<mxfp8_e4m3, col_major>>(dice);
      default:
        return weights_times_codes<packed, drawn_operand<own_scales>, drawn_operand<uint8_per_tensor>>(dice);
    }
  });
}
