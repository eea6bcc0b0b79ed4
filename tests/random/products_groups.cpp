// Random products over groups: weights and codes whose scales or zero points change along the sum.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/product_groups.hpp>

#include "products.hpp"

using namespace qtensor;
using fuzz::drawn_operand;

namespace {

template <class W, class X>
void weights_times_codes(fuzz::dice& dice) {
  const fuzz::drawn_ways ways(dice);
  const fuzz::product_sizes sizes(dice);
  const index_t rows = sizes.rows, outputs = sizes.outputs, depth = sizes.depth;
  const W w(dice, outputs, depth);
  const X x(dice, rows, depth);
  const index_t period = std::gcd(w.period(), x.period());
  INFO(std::string(name<typename W::scheme_type>), " times ", std::string(name<typename X::scheme_type>), ", ", rows,
       " rows, ", outputs, " outputs, depth ", depth, ", parameters change after ", w.period(), " and ", x.period());
  const auto multiply = [&](const auto& sink, const auto& by) { multiply_tiles(w.packed(dice), x.codes(), sink, by); };
  if (period != w.period() && period % 4 != 0 && rows > 0 && outputs > 0 && depth > 0) {
    REQUIRE_THROWS_AS(multiply(fuzz::watching_sink(rows, outputs), on(pool::threads(1))), error);
    return;
  }
  const auto want = fuzz::by_definition(x.numbers(), w.numbers(), period, W::scheme_type::code_format::is_integer);
  fuzz::require_product(dice, rows, outputs, want, multiply);
}

using any_groups = group<dynamic>;
using int8_of_groups = scheme<int8, any_groups, zero_point<int32, any_groups>>;
using uint8_of_blocks = scheme<uint8, block<dynamic, dynamic>, zero_point<uint8>>;
using rows_with_zeros_of_groups = scheme<int8, per_channel<0>, zero_point<int8, any_groups>>;
using int4_of_groups = scheme<int4, any_groups>;
using uint4_of_groups = scheme<uint4, any_groups, zero_point<uint4, any_groups>>;

}  // namespace

TEST_CASE("products: weights of groups times codes") {
  fuzz::each_case(500, [](fuzz::dice& dice) {
    fuzz::one_case_of(
        dice, &weights_times_codes<drawn_operand<int4_of_groups>, drawn_operand<int8_per_channel<0>>>,
        &weights_times_codes<drawn_operand<uint4_of_groups, col_major>, drawn_operand<uint8_of_blocks>>,
        &weights_times_codes<drawn_operand<mxfp4>, drawn_operand<scheme<int8, any_groups>>>,
        &weights_times_codes<drawn_operand<rows_with_zeros_of_groups>, drawn_operand<uint8_per_tensor>>,
        &weights_times_codes<drawn_operand<int8_per_channel<0>>, drawn_operand<uint8_of_blocks, col_major>>,
        &weights_times_codes<drawn_operand<with<nvfp4, tensor_scale<f32>>>, drawn_operand<int8_of_groups>>,
        &weights_times_codes<drawn_operand<mxfp6_e2m3>, drawn_operand<rows_with_zeros_of_groups>>);
  });
}
