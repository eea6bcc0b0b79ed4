// Random products in bf16: within their bound, by any number of threads with the same bits.
// SPDX-License-Identifier: BSD-3-Clause
#include "products.hpp"

using namespace qtensor;
using fuzz::drawn_operand;

namespace {

template <class W>
void in_bf16(fuzz::dice& dice) {
  const fuzz::drawn_ways ways(dice);
  const fuzz::product_sizes sizes(dice);
  const index_t rows = sizes.rows, outputs = sizes.outputs, depth = sizes.depth;
  const W w(dice, outputs, depth, fuzz::parameters::ordinary);
  fuzz::drawn_memory<float> memory(dice, rows, depth, true);
  for (float& v : memory.elements) v = dice.one_of(1.f, -1.f, -1.f, 0.f) * fuzz::ordinary_number(dice);
  const auto x = memory.ref<const float>();
  INFO(std::string(name<typename W::scheme_type>), " times floats in bf16, ", rows, " rows, ", outputs,
       " outputs, depth ", depth);
  std::vector<float> found(static_cast<std::size_t>(rows * outputs)), in_threads = found;
  const auto to = [&](std::vector<float>& y) {
    return ops::store_floats<simd::best_arch>{{y.data(), rows, outputs, outputs, 1}};
  };
  const auto weights = w.packed(dice);
  multiply_tiles(weights, x, to(found), bf16_math);
  multiply_tiles(weights, x, to(in_threads), bf16_math, on(pool::threads(dice.within(2, 5))));
  const auto values = w.values();
  for (index_t m = 0; m < rows; ++m)
    for (index_t n = 0; n < outputs; ++n) {
      double sum = 0, size = 0;
      for (index_t k = 0; k < depth; ++k) {
        const double term = double{x(m, k)} * double{values[static_cast<std::size_t>(n * depth + k)]};
        sum += term, size += std::fabs(term);
      }
      const auto at = static_cast<std::size_t>(m * outputs + n);
      INFO("element (", m, ", ", n, ") is ", found[at], " and not ", sum);
      REQUIRE(std::fabs(found[at] - sum) <=
              (0x1p-7 + 0x1p-15 + static_cast<double>(depth) * 0x1p-23) * size + 0x1p-100);
      REQUIRE(bits_of(found[at]) == bits_of(in_threads[at]));
    }
}

}  // namespace

TEST_CASE("products: bf16 within its bound") {
  fuzz::each_case(200, [](fuzz::dice& dice) {
    fuzz::one_case_of(dice, &in_bf16<drawn_operand<scheme<uint4, group<dynamic>, zero_point<uint4>>>>,
                      &in_bf16<drawn_operand<scheme<e4m3, per_channel<0>>>>, &in_bf16<drawn_operand<mxfp4>>,
                      &in_bf16<drawn_operand<scheme<int8, block<dynamic, dynamic>, zero_point<uint8>>>>);
  });
}
