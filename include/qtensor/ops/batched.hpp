// Products of tensors of any rank: one product for every pair of matrices that numpy.matmul lets meet.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <qtensor/ops/batches.hpp>
#include <qtensor/ops/joined_axes.hpp>
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
/// All matrices of a tensor as one of all their rows. Nothing where they do not lie behind each other, or where some
/// rows, but not all, share parameters.
template <class T>
auto joined_matrices(const T& t) {
  const auto dims = dims_of(t);
  constexpr std::size_t rank = std::tuple_size_v<decltype(dims)>, row = rank - 2;
  if constexpr (!quantized<T>) {
    index_t rows = dims[row];
    bool joins = true;
    for (std::size_t d = row; d-- > 0; rows *= dims[d])
      joins = joins && (dims[d] == 1 || t.strides[d] == t.strides[row] * rows);
    auto matrix = matrix_number(t, 0);
    matrix.extents = matrix_extents(rows, dims[rank - 1]);
    return joins ? std::optional(matrix) : std::nullopt;
  } else if constexpr (rank == 2 || T::scheme_type::is_interleaved) {
    return std::optional<decltype(matrix_number(t, 0))>{};
  } else {
    const auto axes = joined_axes<T>::of(t, dense_strides(t.storage_extents()), true);
    using matrix = decltype(matrix_number(axes->view(t), 0));
    if (!axes || std::any_of(axes->sizes().begin(), axes->sizes().begin() + row, [](index_t n) { return n != 1; }))
      return std::optional<matrix>{};
    const matrix all = matrix_number(axes->view(t), 0);
    const auto joins = [&](index_t block) { return block == 1 || block >= all.rows(); };
    const bool zeros_join = !T::scheme_type::has_zero_point || joins(all.zero_grid().block[0]);
    return joins(all.scale_grid().block[0]) && zeros_join ? std::optional(all) : std::nullopt;
  }
}
/// Rows [first, first + count) of a matrix.
template <class Matrix>
Matrix matrix_rows(Matrix matrix, index_t first, index_t count) {
  if constexpr (quantized<Matrix>) {
    return matrix.middle_rows(first, count);
  } else {
    matrix.data += first * matrix.strides[0];
    matrix.extents = matrix_extents(count, matrix.extents[1]);
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

/// The weights of one product after the other: use(number, matrix, f) calls f(weights). With a number, those of the
/// matrix of this number, which products in turn share and which is packed once for all. Wide codes are not packed.
template <depth_axis Depth, class Matrix>
struct weights_in_turn {
  template <class Any, class F>
  void use(std::optional<index_t>, const Any& matrix, const F& f) {
    f(operand_of<Depth>(matrix));
  }
};
template <depth_axis Depth, class Matrix>
requires(Matrix::scheme_type::code_format::bits <= 8) class weights_in_turn<Depth, Matrix> {
 public:
  template <class Any, class F>
  void use(std::optional<index_t> number, const Any& matrix, const F& f) {
    if (!number) return f(operand_of<Depth>(matrix));
    if (number != number_) packed_.emplace(pack<simd::best_arch, Depth>(matrix));
    number_ = number;
    f(*packed_);
  }

 private:
  std::optional<decltype(pack<simd::best_arch, Depth>(std::declval<Matrix>()))> packed_;
  std::optional<index_t> number_;
};

}  // namespace ops

/// y = left x right for tensors of rank 2 or more: [..., M, K] x [..., K, N], leading dimensions broadcast as
/// numpy.matmul does; y is dense and row-major with the dimensions of product_batches. Operands are quantized row-major
/// tensors or memory, `source(ptr, extents(8, 16, 64))`, and at least one is quantized; the right one is the weights
/// where both could be. Options and bits are those of multiply_tiles, for every pair of matrices. Left matrices behind
/// each other that meet one right matrix are one product; other weights that batches in turn share are packed once.
/// Throws qtensor::error where dimensions do not fit or y has another number of elements, before anything is written.
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
  if (y.empty()) return;
  constexpr bool by_right = quantized<R>;  // the right matrices are the weights
  using weights_matrix = std::remove_cvref_t<decltype(ops::matrix_number(std::get<by_right>(std::tie(a, b)), 0))>;
  ops::weights_in_turn<by_right ? depth_axis::rows : depth_axis::cols, weights_matrix> weights;
  const auto multiply = [&](std::optional<index_t> number, const auto& l, const auto& r, index_t rows, float* to) {
    if constexpr (by_right) {
      const ops::store_floats<simd::best_arch> store{{to, rows, batches.n, batches.n, 1}};
      weights.use(number, r,
                  [&](const auto& w) { multiply_tiles(w, ops::operand_of<depth_axis::cols>(l), store, option...); });
    } else {
      const ops::store_floats<simd::best_arch> store{{to, batches.n, rows, 1, batches.n}};
      weights.use(number, l,
                  [&](const auto& w) { multiply_tiles(w, ops::operand_of<depth_axis::rows>(r), store, option...); });
    }
  };
  // Rows do not know of each other, but in bf16, where their number chooses the order of sums.
  constexpr bool may_join = decltype(read_product_options(option...))::math != product_math::bf16;
  const auto all_rows = ops::joined_matrices(a);
  const auto shared = [&](index_t i) {
    const auto number = [&](index_t at) { return by_right ? batches.right(at) : batches.left(at); };
    const bool again = (i > 0 && number(i - 1) == number(i)) || (i + 1 < batches.count() && number(i + 1) == number(i));
    return again ? std::optional(number(i)) : std::nullopt;
  };
  batches.for_each_run([&](index_t first, index_t count) {
    const auto r = ops::matrix_number(b, batches.right(first));
    float* const to = y.data() + first * each;
    if (may_join && count > 1 && all_rows) {
      const index_t rows = count * batches.m;
      return multiply({}, ops::matrix_rows(*all_rows, batches.left(first) * batches.m, rows), r, rows, to);
    }
    for (index_t i = 0; i < count; ++i)
      multiply(shared(first + i), ops::matrix_number(a, batches.left(first + i)), r, batches.m, to + i * each);
  });
}

}  // namespace qtensor::inline QTENSOR_ABI
