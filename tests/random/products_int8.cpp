// Random products of integers with one scale along the sum: codes times codes, and floats that are quantized to codes.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/code_matrix.hpp>
#include <qtensor/ops/product_int8.hpp>

#include "products.hpp"

using namespace qtensor;
using fuzz::drawn_operand;
using fuzz::weights;
using fuzz::with_weights;

namespace {

/// Sizes of integer products; some of a depth whose sums leave 32 bits.
fuzz::product_sizes sizes_of(fuzz::dice& dice) {
  fuzz::product_sizes sizes(dice);
  if (dice.chance(25)) sizes.depth = dice.within(16000, 70000), sizes.outputs = dice.within(1, 3), sizes.rows %= 34;
  return sizes;
}

template <weights Weights, class W, class X>
void codes_times_codes(fuzz::dice& dice) {
  const fuzz::drawn_ways ways(dice);
  const auto sizes = sizes_of(dice);
  const index_t rows = sizes.rows, outputs = sizes.outputs, depth = sizes.depth;
  const W w(dice, outputs, depth);
  const X x(dice, rows, depth);
  INFO(std::string(name<typename W::scheme_type>), " times ", std::string(name<typename X::scheme_type>), ", ", rows,
       " rows, ", outputs, " outputs, depth ", depth, Weights == weights::packed ? ", packed" : "");
  const auto want = fuzz::by_definition(x.numbers(), w.numbers(), 0, true);
  with_weights<Weights>(dice, w, [&](const auto& weights) {
    fuzz::require_product(dice, rows, outputs, want,
                          [&](const auto& sink, const auto& by) { multiply_tiles(weights, x.codes(), sink, by); });
  });
}

template <weights Weights, class W>
void codes_times_floats(fuzz::dice& dice) {
  const fuzz::drawn_ways ways(dice);
  const auto sizes = sizes_of(dice);
  const index_t rows = sizes.rows, outputs = sizes.outputs, depth = sizes.depth;
  const W w(dice, outputs, depth);
  fuzz::drawn_memory<float> floats(dice, rows, depth, true);
  floats.elements = dice.numbers(static_cast<index_t>(floats.elements.size()));
  const auto x = floats.ref<const float>();
  tensor<int8_per_channel<0>> codes(matrix_extents(rows, depth));
  reference::quantize([&](const auto& at) { return x(at[0], at[1]); }, codes.span());
  INFO(std::string(name<typename W::scheme_type>), " times floats, ", rows, " rows, ", outputs, " outputs, depth ",
       depth, ", strides ", x.row_stride, " and ", x.col_stride);
  fuzz::operand_numbers numbers{rows, depth};
  for (index_t m = 0; m < rows; ++m)
    for (index_t k = 0; k < depth; ++k) {
      numbers.numbers.push_back(static_cast<std::int8_t>(codes.view().code(m, k)));
      numbers.scales.push_back(codes.scales()[static_cast<std::size_t>(m)]);
    }
  const auto want = fuzz::by_definition(numbers, w.numbers(), 0, true);
  with_weights<Weights>(dice, w, [&](const auto& weights) {
    fuzz::require_product(dice, rows, outputs, want, [&](const auto& sink, const auto& by) {
      multiply_tiles(weights, x, sink, by, int8_activations);
    });
  });
}

/// Codes in memory with any strides; sums as they are, modulo 2^32.
template <format FW, format FX>
void sums_of_codes(fuzz::dice& dice) {
  const fuzz::drawn_ways ways(dice);
  const auto sizes = sizes_of(dice);
  const index_t rows = sizes.rows, outputs = sizes.outputs, depth = sizes.depth;
  fuzz::drawn_memory<storage_t<FW>> w(dice, outputs, depth, true);
  fuzz::drawn_memory<storage_t<FX>> x(dice, rows, depth, true);
  const auto fill = [&]<class T>(std::vector<T>& codes) {
    const bool ends = dice.chance(3);
    for (T& c : codes) c = static_cast<T>(ends ? dice.one_of(0x80u, 0x7fu, 0xffu, 0u) : dice.bits());
  };
  fill(w.elements), fill(x.elements);
  const auto zeros = [&](index_t n) {
    const std::int32_t most = dice.chance(3) ? 1 << 22 : 128;
    std::vector<std::int32_t> z(static_cast<std::size_t>(dice.one_of(index_t{0}, index_t{1}, n)));
    for (auto& v : z) v = static_cast<std::int32_t>(dice.within(-most, most));
    return z;
  };
  const auto w_zeros = zeros(outputs), x_zeros = zeros(rows);
  const auto zero = [](const std::vector<std::int32_t>& z, index_t at) {
    return z.empty() ? 0 : z[z.size() == 1 ? 0 : static_cast<std::size_t>(at)];
  };
  const auto wr = w.template ref<const storage_t<FW>>();
  const auto xr = x.template ref<const storage_t<FX>>();
  const code_matrix<FW> weights{wr.data, outputs, depth, wr.row_stride, wr.col_stride, w_zeros};
  const code_matrix<FX> activations{xr.data, rows, depth, xr.row_stride, xr.col_stride, x_zeros};
  fuzz::drawn_memory<std::int32_t> y(dice, rows, outputs, false);
  for (auto& v : y.elements) v = 77;
  auto expected = y.elements;
  const auto to = y.ref();
  for (index_t m = 0; m < rows; ++m)
    for (index_t n = 0; n < outputs; ++n) {
      std::int64_t sum = 0;
      for (index_t k = 0; k < depth; ++k)
        sum += (std::int64_t{xr(m, k)} - zero(x_zeros, m)) * (std::int64_t{wr(n, k)} - zero(w_zeros, n));
      expected[static_cast<std::size_t>(&to(m, n) - y.elements.data())] =
          static_cast<std::int32_t>(static_cast<std::uint64_t>(sum));
    }
  const ops::store_integers store{to};
  ops::multiply_integers<simd::best_arch>(weights, activations, ops::unscaled<ops::store_integers>{store},
                                          pool::threads(dice.within(1, 3)));
  INFO(rows, " rows, ", outputs, " outputs, depth ", depth, ", strides ", wr.row_stride, " and ", wr.col_stride,
       " of weights, ", xr.row_stride, " and ", xr.col_stride, " of activations");
  for (std::size_t i = 0; i < expected.size(); ++i) REQUIRE(y.elements[i] == expected[i]);
}

template <class Zero>
using far_zeros = scheme<uint8, per_tensor, zero_point<Zero>>;
using own_zeros = scheme<int8, per_channel<0>, zero_point<int8, per_tensor>>;

}  // namespace

TEST_CASE("products: integers with one scale along the sum") {
  using enum weights;
  using turned = drawn_operand<uint8_per_channel<1>, row_major, depth_axis::rows>;
  fuzz::each_case(500, [](fuzz::dice& dice) {
    fuzz::one_case_of(
        dice, &codes_times_codes<packed, drawn_operand<int8_per_channel<0>>, drawn_operand<int8_per_channel<0>>>,
        &codes_times_codes<plain, drawn_operand<uint8_per_channel<0>>, drawn_operand<uint8_per_tensor>>,
        &codes_times_codes<packed, turned, drawn_operand<far_zeros<int32>, col_major>>,
        &codes_times_codes<plain, drawn_operand<far_zeros<int32>>, drawn_operand<own_zeros>>,
        &codes_times_codes<packed, drawn_operand<int8_per_channel<0>, col_major>, turned>,
        &codes_times_codes<plain, drawn_operand<int8_per_channel<0>>, drawn_operand<int8_per_tensor>>,
        &codes_times_floats<packed, drawn_operand<uint8_per_channel<0>>>,
        &codes_times_floats<plain, drawn_operand<int8_per_channel<0>>>, &sums_of_codes<int8, uint8>,
        &sums_of_codes<uint8, int8>);
  });
}
