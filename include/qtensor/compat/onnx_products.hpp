// ONNX: MatMulInteger and QLinearMatMul over memory (NUMERICS 8.1).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <concepts>
#include <qtensor/compat/onnx_requantize.hpp>
#include <qtensor/compat/onnx_types.hpp>
#include <qtensor/ops/batches.hpp>
#include <qtensor/ops/code_matrix.hpp>
#include <qtensor/ops/product_int8.hpp>
#include <vector>

// Tensors are dense and row-major, multiplied as numpy.matmul does: the last two axes are matrices, the leading ones
// are broadcast; a vector on the left is a row, on the right a column, and its axis is left out of the result.
namespace qtensor::compat::onnx {

/// How QLinearMatMul goes from a sum to a code. ONNX Runtime and ours: clamp(rint(float(sum) * s) + zero point) with s
/// = RN(RN(a_scale * b_scale) / y_scale) in f32. The ONNX reference takes rint(double(sum) * s + zero point) and wraps
/// around modulo 256 where ours saturates.
enum class matmul_rule { runtime, reference };

/// The dimensions of a product. Throws where they do not fit.    {2, 1, 5, 3} x {4, 3, 7}: {2, 4, 5, 7}
inline std::vector<index_t> matmul_dims(std::span<const index_t> a, std::span<const index_t> b) {
  return product_batches(a, b).dims;
}

inline namespace QTENSOR_ABI {

namespace pieces {

/// One node: its matrices, its zero points as numbers.
template <byte_code A, byte_code B>
class integer_matmul {
 public:
  product_batches batches;

  integer_matmul(std::span<const A> a, std::span<const index_t> a_dims, std::span<const B> b,
                 std::span<const index_t> b_dims, std::span<const A> a_zeros, std::span<const B> b_zeros)
      : batches(a_dims, b_dims),
        a_(a),
        b_(b),
        a_zeros_(a_zeros.begin(), a_zeros.end()),
        b_zeros_(b_zeros.begin(), b_zeros.end()) {
    detail::check_count("the left operand", a.size(), element_count(a_dims));
    detail::check_count("the right operand", b.size(), element_count(b_dims));
    rows(0, 1, a_zeros_).check("the left operand");
    columns(0).check("the right operand");
  }
  index_t size() const { return element_count(batches.dims); }
  /// What is one, or one for each row of a, for all rows of a run of batches.
  template <class T>
  std::vector<T> for_run(std::span<const T> of_rows) const {
    std::vector<T> all(of_rows.begin(), of_rows.end());
    if (of_rows.size() > 1)
      for (index_t i = batches.longest_run(); i > 1; --i) all.insert(all.end(), of_rows.begin(), of_rows.end());
    return all;
  }
  /// Computes y by sink_to(matrix_ref of y), made for each run of batches.
  template <class Y, class SinkTo, executor By>
  void run(std::span<Y> y, const SinkTo& sink_to, const By& by) const {
    if (y.empty()) return;
    const index_t m = batches.m, n = batches.n;
    const auto a_zeros = for_run<std::int32_t>(a_zeros_);
    batches.for_each_run([&](index_t first, index_t count) {
      const auto sink = sink_to(matrix_ref<Y>{y.data() + first * m * n, count * m, n, n, 1});
      ops::multiply_integers<simd::best_arch>(columns(batches.right(first)), rows(batches.left(first), count, a_zeros),
                                              ops::unscaled<std::remove_const_t<decltype(sink)>>{sink}, by);
    });
  }

 private:
  code_matrix<detail::format_of_code<A>> rows(index_t first, index_t count, std::span<const std::int32_t> zeros) const {
    const index_t m = batches.m, k = batches.k;
    return {a_.data() + first * m * k, count * m, k, k, 1, zeros};
  }
  code_matrix<detail::format_of_code<B>> columns(index_t i) const {
    return {b_.data() + i * batches.k * batches.n, batches.n, batches.k, 1, batches.n, b_zeros_};
  }
  std::span<const A> a_;
  std::span<const B> b_;
  std::vector<std::int32_t> a_zeros_, b_zeros_;
};

}  // namespace pieces

/// MatMulInteger: y = the sums of (a - a_zero_point) (b - b_zero_point), exactly (modulo 2^32, as the operator leaves
/// it to the caller that they fit). Zero points: none, one, one for each row of a, one for each column of b. A and B
/// are std::int8_t or std::uint8_t. Throws before y is written where dimensions or numbers of elements do not fit.
template <byte_code A, byte_code B, executor By = serial>
void matmul_integer(std::span<const A> a, std::span<const index_t> a_dims, std::span<const B> b,
                    std::span<const index_t> b_dims, std::span<const std::type_identity_t<A>> a_zero_point,
                    std::span<const std::type_identity_t<B>> b_zero_point, std::span<std::int32_t> y,
                    const By& by = {}) {
  const pieces::integer_matmul<A, B> node(a, a_dims, b, b_dims, a_zero_point, b_zero_point);
  detail::check_count("the result", y.size(), node.size());
  node.run(
      y, [](const matrix_ref<std::int32_t>& to) { return ops::store_integers{to}; }, by);
}

/// Scales and zero points of QLinearMatMul: of a one or one for each row, of b one or one for each column, of y one.
template <byte_code A, byte_code B, byte_code Y>
struct qlinear_matmul_parameters {
  std::span<const float> a_scale;
  std::span<const A> a_zero_point;
  std::span<const float> b_scale;
  std::span<const B> b_zero_point;
  float y_scale;
  Y y_zero_point;
};

/// QLinearMatMul: y = the exact sums of (a - a_zero_point) (b - b_zero_point), however long, as codes of y_scale and
/// y_zero_point (matmul_rule). Throws before y is written as matmul_integer does, and on scales that are not finite and
/// positive, and on scales and zero points that are neither one nor one for each row of a or column of b.
template <byte_code A, byte_code B, byte_code Y, executor By = serial>
void qlinear_matmul(std::span<const A> a, std::span<const index_t> a_dims, std::span<const B> b,
                    std::span<const index_t> b_dims, const qlinear_matmul_parameters<A, B, Y>& p, std::span<Y> y,
                    matmul_rule rule = matmul_rule::runtime, const By& by = {}) {
  const pieces::integer_matmul<A, B> node(a, a_dims, b, b_dims, p.a_zero_point, p.b_zero_point);
  detail::check_count("the result", y.size(), node.size());
  const auto check_size = [](const char* what, std::size_t size, index_t most) {
    require(size == 1 || static_cast<index_t>(size) == most, what, " has ", size, " elements; it has ",
            most == 1 ? "" : "1 or ", most, ".");
  };
  const auto check = [&](const char* what, std::span<const float> scales, index_t most) {
    check_size(what, scales.size(), most);
    for (const float s : scales) detail::check_scale(what, s);
  };
  check("a_scale", p.a_scale, node.batches.m);
  check("b_scale", p.b_scale, node.batches.n);
  check("y_scale", {&p.y_scale, 1}, 1);
  check_size("a_zero_point", p.a_zero_point.size(), node.batches.m);
  check_size("b_zero_point", p.b_zero_point.size(), node.batches.n);
  if (y.empty()) return;  // there may be any number of batches, rows or columns
  const auto a_scales = node.template for_run<float>(p.a_scale);
  const auto run = [&]<class How>(std::type_identity<How>) {
    const How how(a_scales, p.b_scale, p.y_scale, {}, p.y_zero_point, node.batches.n);
    node.run(
        y,
        [&](const matrix_ref<Y>& to) {
          return ops::store_requantized<Y, simd::best_arch, How>{how, to};
        },
        by);
  };
  if (rule == matmul_rule::runtime)
    run(std::type_identity<ops::requantization<Y>>{});
  else
    run(std::type_identity<pieces::reference_requantization<Y, true>>{});
}

}  // namespace QTENSOR_ABI

}  // namespace qtensor::compat::onnx
