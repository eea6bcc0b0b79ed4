// Mirrors include/qtensor/ops/joined_axes.hpp, and what quantize and dequantize make of tensors of rank 3 and more.
// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>
#include <qtensor/ops/joined_axes.hpp>

#include "check.hpp"

using namespace qtensor;

namespace {

/// Sizes of a dense tensor's axes after they are joined, its own where they are not.
template <class S, class E>
auto joined_sizes(const E& extents) {
  const tensor<S, E> t(extents);
  const auto w = t.view();
  const auto axes = ops::joined_axes<std::remove_const_t<decltype(w)>>::of(w, dense_strides(w.storage_extents()));
  return axes ? axes->sizes() : w.storage_extents();
}

template <std::size_t Rank>
bool next_index(std::array<index_t, Rank>& at, const std::array<index_t, Rank>& sizes) {
  for (std::size_t axis = Rank; axis-- > 0; at[axis] = 0)
    if (++at[axis] < sizes[axis]) return true;
  return false;
}

/// Quantizes numbers that lie in memory with these strides, dynamically and with the scales found, and reads them back
/// to memory of the same strides: codes and scales are the reference's, numbers those of the view.
template <class S, class Order, class F, class E>
void check_round_trip(const E& extents, const typename E::array& strides) {
  index_t span = 1;
  for (int axis = 0; axis < E::rank; ++axis) span += (extents[axis] - 1) * strides[static_cast<std::size_t>(axis)];
  const std::vector<float> numbers = check::numbers(span, 7);
  std::vector<storage_t<F>> memory(numbers.size());
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = simd::round_to<F>(numbers[i]);
  const memory_source<F, E> x{memory.data(), extents, strides};

  tensor<S, E, Order> want(extents);
  reference::quantize([&](const typename E::array& index) { return x.number(index); }, want.span());
  const auto found = quantize<S, Order>(x);
  CHECK(check::same_bytes(found, want));

  tensor<S, E, Order> again(extents);
  std::copy(want.scales().begin(), want.scales().end(), again.scales().begin());
  if constexpr (S::has_zero_point)
    std::copy(want.zero_points().begin(), want.zero_points().end(), again.zero_points().begin());
  quantize_static_into(typename memory_source<F, E>::template in_order<Order>(x), again.span());
  tensor<S, E, Order> statically = want;
  reference::quantize_static([&](const typename E::array& index) { return x.number(index); }, statically.span());
  CHECK(check::same_bytes(again, statically));

  constexpr float untouched = 12345.f;
  std::vector<float> back(numbers.size(), untouched), expected = back;
  dequantize_into(found.view(), back.data(), strides);
  typename E::array at{};
  do {
    std::size_t place = 0;
    for (std::size_t axis = 0; axis < at.size(); ++axis) place += static_cast<std::size_t>(at[axis] * strides[axis]);
    expected[place] = reference::storage_value(found.view(), reordered<Order>(at));
  } while (next_index(at, extents.to_array()));
  CHECK(std::memcmp(back.data(), expected.data(), back.size() * sizeof(float)) == 0);
}

template <class S, class Order = row_major, class F = f32, class E>
void check_scheme(const E& extents) {
  using array = typename E::array;
  constexpr std::size_t rank = static_cast<std::size_t>(E::rank);
  const array dense = dense_strides(extents.to_array());
  // Gaps after the last axis but one; the first two axes exchanged, and the last two; columns.
  array apart = dense, swapped = dense, turned = dense, reversed{};
  for (std::size_t axis = 0; axis + 2 < rank; ++axis)
    apart[axis] = dense[axis] / dense[rank - 3] * (dense[rank - 3] + 3);
  swapped[0] = extents[1] == 0 ? 1 : dense[1], swapped[1] = swapped[0] * extents[0];
  if (rank == 3) swapped[0] = dense[1], swapped[1] = dense[1] * extents[0];
  turned[rank - 2] = 1, turned[rank - 1] = extents[static_cast<int>(rank) - 2];
  index_t step = 1;
  for (std::size_t axis = 0; axis < rank; step *= extents[static_cast<int>(axis)], ++axis) reversed[axis] = step;
  CAPTURE(std::string(name<S>));
  for (const array& strides : {dense, apart, swapped, turned, reversed})
    check_round_trip<S, Order, F>(extents, strides);
}

template <class S, class Order = row_major, class F = f32>
void check_rank_4() {
  for (const auto& sizes : {extents(4, 5, 3, 3), extents(3, 16, 7, 5), extents(9, 8, 1, 1), extents(1, 6, 4, 40),
                            extents(2, 1, 33, 2), extents(1, 1, 1, 5)})
    check_scheme<S, Order, F>(sizes);
}

/// In both orders of the codes, and from half floats.
template <class S>
void check_sizes() {
  check_rank_4<S>();
  check_rank_4<S, col_major>();
  check_rank_4<S, row_major, bf16>();
  for (const auto& sizes : {extents(7, 6, 5), extents(1, 40, 3), extents(5, 70, 1), extents(2, 3, 64)})
    check_scheme<S>(sizes);
}

}  // namespace

TEST_CASE("joined_axes: the axes of weights and activations of a convolution") {
  using sizes = std::array<index_t, 4>;
  CHECK(joined_sizes<int8_per_channel<0>>(extents(64, 32, 3, 3)) == sizes{1, 1, 1, 18432});
  CHECK(joined_sizes<int8_per_channel<1>>(extents(64, 32, 3, 3)) == sizes{1, 1, 64, 288});
  CHECK(joined_sizes<int8_per_channel<2>>(extents(64, 32, 3, 3)) == sizes{1, 1, 2048, 9});
  CHECK(joined_sizes<int8_per_channel<3>>(extents(64, 32, 3, 3)) == sizes{1, 1, 6144, 3});
  CHECK(joined_sizes<int8_per_tensor>(extents(2, 3, 4, 5)) == sizes{1, 1, 1, 120});
  CHECK(joined_sizes<scheme<int8, per_axes<0, 1>>>(extents(4, 5, 6, 7)) == sizes{1, 1, 1, 840});
  CHECK(joined_sizes<scheme<int8, per_axes<0, 2>>>(extents(4, 5, 6, 7)) == sizes{1, 1, 20, 42});
}
TEST_CASE("joined_axes: not where rows of narrow codes end inside a byte, nor where blocks would change") {
  using sizes = std::array<index_t, 3>;
  CHECK(joined_sizes<scheme<int4, per_channel<0>>>(extents(8, 5, 6)) == sizes{1, 1, 240});
  CHECK(joined_sizes<scheme<int4, per_channel<0>>>(extents(8, 6, 5)) == sizes{1, 48, 5});
  CHECK(joined_sizes<scheme<int8, block<1, 2, 3>>>(extents(4, 6, 7)) == sizes{1, 24, 7});
  CHECK(joined_sizes<scheme<int8, block<1, 4, 3>>>(extents(4, 6, 7)) == sizes{4, 6, 7});
  CHECK(joined_sizes<scheme<int8, block<2, 2, 7>>>(extents(4, 6, 7)) == sizes{1, 4, 42});
}

TEST_CASE("joined_axes: a matrix of one column is a row, unless codes lie apart or the type cuts rows into groups") {
  using sizes = std::array<index_t, 2>;
  CHECK(joined_sizes<int8_per_tensor>(extents(70, 1)) == sizes{1, 70});
  CHECK(joined_sizes<uint8_per_channel<0>>(extents(70, 1)) == sizes{1, 70});
  CHECK(joined_sizes<along<0, mxfp8_e4m3>>(extents(70, 1)) == sizes{1, 70});
  CHECK(joined_sizes<along<0, mxfp4>>(extents(70, 1)) == sizes{70, 1});
  CHECK(!ops::may_join_axes<int8_group<32>, matrix_extents, row_major>);
  CHECK(joined_sizes<int8_per_tensor>(extents(70, 2)) == sizes{70, 2});
  CHECK(joined_sizes<int8_per_tensor>(extents(1, 70)) == sizes{1, 70});
  const tensor<int8_per_tensor> t(extents(70, 3));
  const auto column = t.view().middle_cols(1, 1);
  CHECK(!ops::joined_axes<std::remove_const_t<decltype(column)>>::of(column, {1, 1}));
}

TEST_CASE("quantize and dequantize matrices of one column, in memory of any strides") {
  const auto check_columns = []<class S, class F = f32>() {
    CAPTURE(std::string(name<S>));
    for (const index_t n : {1, 2, 31, 32, 33, 100, 257, 4100})
      for (const auto& strides : {std::array<index_t, 2>{1, 1}, {1, n}, {3, 1}, {5, 2}}) {
        check_round_trip<S, row_major, F>(extents(n, 1), strides);
        check_round_trip<S, col_major, F>(extents(1, n), {strides[1], strides[0]});
      }
  };
  check_columns.operator()<int8_per_tensor>();
  check_columns.operator()<uint8_per_channel<0>>();
  check_columns.operator()<along<0, mxfp8_e4m3>, bf16>();
  check_columns.operator()<scheme<int4, group<32, 0>>>();
  check_columns.operator()<with<fp8_block<16, 16>, stochastic<3>>>();
  check::in_full<int8_per_channel<1>, along<0, mxfp4>, uint8_per_tensor, along<0, with<nvfp4, tensor_scale<f32>>>,
                 hif8_block<128, 1>, scheme<int16, group<8, 0>>>([&]<class S>() {
    check_columns.template operator()<S>();
    check_columns.template operator()<S, f16>();
  });
}

TEST_CASE("quantize and dequantize of rank 3 and 4: a scale for each index of one axis or two") {
  check_sizes<int8_per_channel<1>>();
  check_rank_4<int8_per_channel<0>>();
  check_rank_4<scheme<int8, per_axes<0, 1>>>();
  check::in_full<int8_per_channel<-1>, scheme<e4m3, per_axes<0, 2>>>([]<class S>() { check_rank_4<S>(); });
  check_scheme<int8_per_channel<0>>(extents<4, dynamic, 3>(6));
  check_scheme<int8_per_channel<1>>(extents<4, 6, 9>());
}
TEST_CASE("quantize and dequantize of rank 3 and 4: zero points, narrow codes, blocks, one scale") {
  check_sizes<scheme<int4, per_channel<0>>>();
  check_rank_4<uint8_per_channel<1>>();
  check_rank_4<scheme<int8, block<1, 2, 3>>>();
  check_scheme<scheme<int8, block<1, 2, 3>>>(extents(4, 6, 7));
  check::in_full<uint8_per_tensor>([]<class S>() { check_rank_4<S>(); });
}
TEST_CASE("joined_axes: groups along an axis stay whole, and rows that the type cuts into groups as they are") {
  using sizes = std::array<index_t, 4>;
  using down = scheme<int8, group<32, 1>>;
  CHECK(joined_sizes<down>(extents(8, 64, 28, 28)) == sizes{1, 1, 512, 784});
  CHECK(joined_sizes<down>(extents(8, 48, 28, 28)) == sizes{1, 8, 48, 784});
  CHECK(joined_sizes<down>(extents(4, 128, 197, 1)) == sizes{1, 1, 512, 197});
  using four = extents<dynamic, dynamic, dynamic, dynamic>;
  CHECK(ops::may_join_axes<down, four, row_major>);
  CHECK(!ops::may_join_axes<int8_group<32>, four, row_major>);
  CHECK(ops::may_join_axes<int8_group<32>, four, col_major>);
}
TEST_CASE("quantize and dequantize of rank 3 and 4: groups along any axis") {
  check_sizes<scheme<e4m3, group<4, 1>, scale_as<e8m0>, mx_floor>>();
  check_rank_4<scheme<int8, group<3, 2>>>();
  check_rank_4<scheme<int4, group<8, 1>>>();
  check_rank_4<scheme<int8, group<4, -1>>, col_major>();
  check_rank_4<with<uint8_per_tensor, group<4, 1>>>();
  check::in_full<scheme<e2m1, group<16, 1>>, scheme<int8, group<2, 0>>>([]<class S>() { check_sizes<S>(); });
  check_scheme<scheme<e4m3, group<32, 1>, scale_as<e8m0>, mx_floor>>(extents(3, 72, 5, 9));
}
