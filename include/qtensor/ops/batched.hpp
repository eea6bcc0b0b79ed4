// Products of tensors of any rank: one product for every pair of matrices that numpy.matmul lets meet.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/ops/batches.hpp>
#include <qtensor/ops/multiply.hpp>

namespace qtensor::inline QTENSOR_ABI {

namespace ops {

template <class T>
inline constexpr bool is_memory_source = false;
template <format F, tensor_extents Extents>
inline constexpr bool is_memory_source<memory_source<F, Extents>> = true;

/// What a batched product takes: a quantized row-major tensor, or memory as source(ptr, extents).
template <class T>
concept batch_operand = quantized<T> || is_memory_source<T>;

template <batch_operand T>
auto batch_of(const T& t) {
  if constexpr (quantized<T>)
    return as_view(t);
  else
    return t;
}
template <class T>
auto dims_of(const T& t) {
  if constexpr (quantized<T>)
    return t.extents().to_array();
  else
    return t.extents.to_array();
}

template <format F, tensor_extents Extents>
F source_format(const memory_source<F, Extents>&);

/// Matrix `number` of a tensor, counted over its leading axes: a view, or memory of rank 2.
template <class T>
auto matrix_number(const T& t, index_t number) {
  const auto dims = dims_of(t);
  constexpr std::size_t rank = std::tuple_size_v<decltype(dims)>, leading = rank > 2 ? rank - 2 : 0;
  std::array<index_t, leading + 1> at{};
  for (std::size_t d = leading; d-- > 0; number /= dims[d]) at[d] = number % dims[d];
  if constexpr (quantized<T>) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) { return t.matrix(at[I]...); }
    (std::make_index_sequence<leading>{});
  } else {
    const auto* data = t.data;
    for (std::size_t d = 0; d < leading; ++d) data += at[d] * t.strides[d];
    const memory_source<typename std::remove_cvref_t<decltype(source_format(t))>, matrix_extents> matrix{
        data, matrix_extents(dims[rank - 2], dims[rank - 1]), {t.strides[rank - 2], t.strides[rank - 1]}};
    return matrix;
  }
}
/// The same as activations (rows are outputs) or, turned, by columns.
template <depth_axis Depth, class T>
auto operand_of(const T& matrix) {
  if constexpr (quantized<T>) {
    return weights_of<T, Depth>(matrix);
  } else {
    using rows = typename T::template in_order<row_major>;
    using columns = typename T::template in_order<col_major>;
    if constexpr (Depth == depth_axis::cols)
      return rows(matrix);
    else
      return columns(matrix);
  }
}

}  // namespace ops

/// y = left x right for tensors of rank 2 or more: [..., M, K] x [..., K, N], leading dimensions broadcast as
/// numpy.matmul does; y is dense and row-major with the dimensions of product_batches. Operands are quantized row-major
/// tensors or memory, `source(ptr, extents(8, 16, 64))`, and at least one is quantized; the right one is the weights
/// where both could be. Options and bits are those of multiply_tiles, for every pair of matrices. Throws qtensor::error
/// where dimensions do not fit or y has another number of elements, before anything is written.
template <ops::batch_operand L, ops::batch_operand R, class... Option>
void matmul_batches_into(const L& left, const R& right, std::span<float> y, const Option&... option) {
  static_assert(
      quantized<L> || quantized<R>,
      "qtensor: a product of two float tensors is no business of a quantization library; quantize one of them.");
  const auto a = ops::batch_of(left);
  const auto b = ops::batch_of(right);
  const auto a_dims = ops::dims_of(a);
  const auto b_dims = ops::dims_of(b);
  static_assert(a_dims.size() >= 2 && b_dims.size() >= 2,
                "qtensor: batched products are of tensors of rank 2 or more; give a vector an axis of extent 1.");
  const product_batches batches(a_dims, b_dims);
  const index_t each = batches.m * batches.n;
  require(static_cast<index_t>(y.size()) == qtensor::detail::checked_product(batches.count(), each), "y has ", y.size(),
          " elements; this product has ", batches.count() * each, ".");
  for (index_t i = 0; i < batches.count(); ++i) {
    const auto l = ops::matrix_number(a, batches.left_of[static_cast<std::size_t>(i)]);
    const auto r = ops::matrix_number(b, batches.right_of[static_cast<std::size_t>(i)]);
    float* const to = y.data() + i * each;
    if constexpr (quantized<R>) {
      const ops::store_floats<simd::best_arch> store{{to, batches.m, batches.n, batches.n, 1}};
      multiply_tiles(ops::operand_of<depth_axis::rows>(r), ops::operand_of<depth_axis::cols>(l), store, option...);
    } else {
      const ops::store_floats<simd::best_arch> store{{to, batches.n, batches.m, 1, batches.n}};
      multiply_tiles(ops::operand_of<depth_axis::cols>(l), ops::operand_of<depth_axis::rows>(r), store, option...);
    }
  }
}

}  // namespace qtensor::inline QTENSOR_ABI
