// Random products over groups of floats that are quantized to codes on the way, a scale for each row or group.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/compat/ggml.hpp>
#include <qtensor/ops/product_groups.hpp>

#include "products.hpp"

using namespace qtensor;
using fuzz::drawn_operand;

namespace {

template <class W, class Math>
void weights_times_floats(fuzz::dice& dice, const Math& math) {
  const fuzz::drawn_ways ways(dice);
  const fuzz::product_sizes sizes(dice);
  const index_t rows = sizes.rows, outputs = sizes.outputs, depth = sizes.depth;
  const W w(dice, outputs, depth);
  fuzz::drawn_memory<float> floats(dice, rows, depth, true);
  floats.elements = dice.numbers(static_cast<index_t>(floats.elements.size()));
  const auto x = floats.ref<const float>();
  const bool by_groups = Math::math == product_math::int8_groups;
  const index_t group = w.period() == 0 ? std::max(depth, index_t{1}) : w.period();
  INFO(std::string(name<typename W::scheme_type>), " times floats, ", rows, " rows, ", outputs, " outputs, depth ",
       depth, ", groups of ", group, by_groups ? " on both sides" : "");
  using codes_of_rows = scheme<int8, qtensor::group<dynamic>>;
  tensor<codes_of_rows> codes(matrix_extents(rows, depth),
                              qtensor::group<dynamic>(by_groups ? group : std::max(depth, index_t{1})));
  reference::quantize([&](const auto& at) { return x(at[0], at[1]); }, codes.span());
  fuzz::operand_numbers numbers{rows, depth, !by_groups || w.period() == 0};
  for (index_t m = 0; m < rows; ++m)
    for (index_t k = 0; k < depth; ++k) {
      numbers.numbers.push_back(static_cast<std::int8_t>(codes.view().code(m, k)));
      numbers.scales.push_back(codes.view().scale(m, k));
    }
  // A group of all is a group, but of integers.
  using code = typename W::scheme_type::code_format;
  if (by_groups && (!code::is_integer || W::scheme_type::has_offset)) numbers.one_scale = false;
  const auto want = fuzz::by_definition(numbers, w.numbers(), w.period(), code::is_integer);
  fuzz::require_product(dice, rows, outputs, want, [&](const auto& sink, const auto& by) {
    if (dice.chance(2))
      multiply_tiles(w.packed(dice), check::tiled_source{x}, sink, by, math);
    else
      multiply_tiles(w.codes(), x, sink, by, math);
  });
}

using any_groups = group<dynamic>;
using int8_of_groups = scheme<int8, any_groups, zero_point<int8, any_groups>>;
using uint4_of_groups = scheme<uint4, block<dynamic, dynamic>, zero_point<int32, any_groups>, scale_as<f16>>;
using int4_rows = scheme<int4, per_channel<0>>;

}  // namespace

TEST_CASE("products: weights of groups times floats that are quantized") {
  fuzz::each_case(500, [](fuzz::dice& dice) {
    switch (dice.within(0, 5)) {
      case 0:
        return weights_times_floats<drawn_operand<uint4_of_groups>>(dice, int8_activations);
      case 1:
        return weights_times_floats<drawn_operand<scheme<e2m1, any_groups, scale_as<e4m3>>>>(dice,
                                                                                             int8_group_activations);
      case 2:
        return weights_times_floats<drawn_operand<int8_of_groups, col_major>>(dice, int8_group_activations);
      case 3:
        return weights_times_floats<drawn_operand<compat::ggml::q4_1>>(dice, int8_group_activations);
      case 4:
        return weights_times_floats<drawn_operand<int4_rows>>(dice, int8_activations);
      default:
        return weights_times_floats<drawn_operand<mxint8>>(dice, int8_activations);
    }
  });
}
