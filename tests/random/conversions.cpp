// Random tensors of many schemes, shapes, orders and sources, quantized and dequantized, against the scalar reference.
// SPDX-License-Identifier: BSD-3-Clause
#include "../ops/check.hpp"
#include "dice.hpp"

using namespace qtensor;

namespace {

template <quantization_scheme S, storage_order Order>
void dynamic_matrix(fuzz::dice& dice) {
  const matrix_extents shape(dice.extent(300), dice.extent(2000));
  const std::vector<float> x = dice.numbers(shape.size());
  INFO(std::string(name<S>), " ", shape[0], " x ", shape[1]);
  REQUIRE(check::same_bytes(quantize<S, Order>(source(x.data(), shape)), check::expected<S, Order>(x, shape)));
}

}  // namespace

TEST_CASE("conversions: dynamic schemes") {
  fuzz::each_case(400, [](fuzz::dice& dice) {
    switch (dice.within(0, 3)) {
      case 0:
        return dynamic_matrix<int8_per_channel<0>, row_major>(dice);
      case 1:
        return dynamic_matrix<mxfp4, row_major>(dice);
      case 2:
        return dynamic_matrix<uint4_group<32>, row_major>(dice);
      default:
        return dynamic_matrix<mxfp8_e4m3, col_major>(dice);
    }
  });
}
