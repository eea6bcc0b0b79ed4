// Tensors quantized from random Eigen expressions, of every kind of source, against the scalar reference.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/expr/quantize.hpp>
#include <string>

#include "operands.hpp"

using namespace fuzz;

namespace {

/// Whether two tensors are the same; a NaN of a sum may have either sign.
template <class S, class Order>
bool same(const qt::tensor<S, qt::matrix_extents, Order>& a, const qt::tensor<S, qt::matrix_extents, Order>& b) {
  using code = typename S::code_format;
  const auto alike = [](float x, float y) {
    return qt::bits_of(x) == qt::bits_of(y) || (qt::is_nan(x) && qt::is_nan(y));
  };
  for (index_t i = 0; i < a.rows(); ++i)
    for (index_t j = 0; j < a.cols(); ++j) {
      if (alike(a.scale(i, j), b.scale(i, j)) && a.zero_point(i, j) == b.zero_point(i, j) &&
          alike(static_cast<float>(qt::decode<code>(a.code(i, j))), static_cast<float>(qt::decode<code>(b.code(i, j)))))
        continue;
      MESSAGE("element (", i, ", ", j, "): codes ", a.code(i, j), " and ", b.code(i, j), ", scales ", a.scale(i, j),
              " and ", b.scale(i, j));
      return false;
    }
  return alike(a.view().tensor_scale(), b.view().tensor_scale());
}

/// quantize<S, Order>(x, how...) is what the reference makes of the evaluated expression, by any executor.
template <class S, class Order, class Xpr>
void check_quantize(fuzz::dice& dice, const Xpr& x, const row_matrix& want) {
  qt::tensor<S, qt::matrix_extents, Order> t(qt::matrix_extents(want.rows(), want.cols()));
  qt::reference::quantize([&](const auto& at) { return want(at[0], at[1]); }, t.span());
  const index_t threads = dice.within(1, 5);
  INFO("threads ", threads);
  REQUIRE(same(qt::quantize<S, Order>(x, on(qt::parallel_for(threads, backwards))), t));
}

/// The same under given scales and zero points: a range, or Eigen expressions.
template <class S, class Order, class Xpr>
void check_static(fuzz::dice& dice, const Xpr& x, const row_matrix& want) {
  qt::tensor<S, qt::matrix_extents, Order> t(qt::matrix_extents(want.rows(), want.cols()));
  std::vector<float> scales(t.scales().size());
  std::vector<int> zeros(scales.size());
  for (float& s : scales)
    s = qt::exp2i(static_cast<int>(dice.within(-20, 20))) * static_cast<float>(dice.within(1, 99));
  for (int& z : zeros) z = static_cast<int>(dice.within(0, 255));
  for (std::size_t i = 0; i < scales.size(); ++i) t.scales()[i] = scales[i];
  for (std::size_t i = 0; i < scales.size(); ++i) t.zero_points()[i] = static_cast<std::uint8_t>(zeros[i]);
  qt::reference::quantize_static([&](const auto& at) { return want(at[0], at[1]); }, t.span());
  const auto count = static_cast<Index>(scales.size());
  const auto by = on(qt::parallel_for(dice.within(1, 5), backwards));
  if (dice.chance(2))
    REQUIRE(same(qt::quantize<S, Order>(x, scales, zeros, by), t));
  else
    REQUIRE(same(qt::quantize<S, Order>(x, Map<const VectorXf>(scales.data(), count) * 1.f,
                                        Map<const VectorXi>(zeros.data(), count), by),
                 t));
}

/// Calls use(expression, what it is worth) with one of each kind of source.
template <class Use>
void with_expression(fuzz::dice& dice, const operands& o, const Use& use) {
  const auto a = o.columns(dice), b = o.columns(dice);
  const auto r = o.lines(dice);
  const index_t function = dice.within(0, 6);
  INFO(o.rows, " x ", o.cols, ", function ", function);
  switch (function) {
    case 0: {
      const auto x = o.scattered<MatrixXf>(dice);
      return use(x, row_matrix(x));
    }
    case 1:
      return use(a - 2 * b, row_matrix(a - 2 * b));
    case 2:
      return use(a + r, row_matrix(a + r));
    case 3: {
      const quantized_operand<qt::mxfp4, qt::row_major> q(dice, o);
      return use(q.part() * 0.3f, row_matrix(q.values() * 0.3f));
    }
    case 4: {
      const auto slow = [](float x) { return x / 3.f; };
      const auto x = r.unaryExpr(slow).unaryExpr(slow).unaryExpr(slow).unaryExpr(slow);
      return use(x, row_matrix(x));
    }
    case 5: {
      const auto x = MatrixXf::NullaryExpr(o.rows, o.cols, [&](Index i, Index j) { return r(i, j); });
      return use(x, row_matrix(r));
    }
    default: {
      const Matrix<bfloat16, Dynamic, Dynamic, RowMajor> wide = r.cast<bfloat16>();
      return use(wide, row_matrix(wide.cast<float>()));
    }
  }
}

template <class S, class Order>
void quantizes(fuzz::dice& dice) {
  const operands o(dice, dice.chance(20) ? 1500 : 300);
  INFO(fuzz::title<S, Order>(), o.rows, " x ", o.cols);
  with_expression(dice, o, [&](const auto& x, const row_matrix& want) { check_quantize<S, Order>(dice, x, want); });
}

}  // namespace

TEST_CASE("quantized expressions: schemes of every granularity") {
  fuzz::each_case(300, [](fuzz::dice& dice) {
    switch (dice.within(0, 3)) {
      case 0:
        return quantizes<qt::mxfp4, qt::row_major>(dice);
      case 1:
        return quantizes<qt::int8_per_tensor, qt::col_major>(dice);
      case 2:
        return quantizes<qt::uint8_per_channel<1>, qt::row_major>(dice);
      default: {
        const operands o(dice, 300);
        return with_expression(dice, o, [&](const auto& x, const row_matrix& want) {
          check_static<qt::uint8_per_channel<0>, qt::row_major>(dice, x, want);
        });
      }
    }
  });
}
