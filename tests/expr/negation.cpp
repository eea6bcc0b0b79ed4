// Negations in expressions: -0 of 0 and the other NaN of a NaN, wherever an element stands and whatever reads it.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <Eigen/Core>
#include <qtensor/qtensor.hpp>

namespace qt = qtensor;
using Eigen::MatrixXf;
using rows_first = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Eigen::Index;

namespace {

/// Zeros of both signs, NaNs of both signs and numbers.
MatrixXf numbers(Index rows, Index cols) {
  return MatrixXf::NullaryExpr(rows, cols, [](Index i, Index j) {
    const Index kind = (i * 7 + j * 3) % 5;
    if (kind == 0) return 0.f;
    if (kind == 1) return -0.f;
    if (kind == 2) return qt::float_of(qt::bits_of(qt::quiet_nan) | static_cast<std::uint32_t>(j % 2) << 31);
    return static_cast<float>((i * 37 + j * 101) % 31 - 15) / 4;
  });
}
float negative(float x) { return qt::float_of(qt::bits_of(x) ^ 0x80000000u); }

/// How many elements have other bits than f(i, j).
template <class F>
Index differences(const MatrixXf& got, const F& f) {
  Index count = 0;
  for (Index i = 0; i < got.rows(); ++i)
    for (Index j = 0; j < got.cols(); ++j) count += qt::bits_of(got(i, j)) != qt::bits_of(f(i, j));
  return count;
}
/// e4m3 has zeros and NaNs of both signs; a scale of 1 keeps them.
using codes = qt::scheme<qt::e4m3, qt::per_tensor>;
template <class Order, class Xpr>
auto codes_of(const Xpr& x) {
  return qt::quantize<codes, Order>(x, 1.f);
}
template <class Order, class Xpr, class F>
Index code_differences(const Xpr& x, const F& f) {
  const auto q = codes_of<Order>(x);
  const auto view = q.view();
  Index count = 0;
  for (Index i = 0; i < x.rows(); ++i)
    for (Index j = 0; j < x.cols(); ++j) count += view.code(i, j) != qt::encode<qt::e4m3>(f(i, j));
  return count;
}

}  // namespace

TEST_CASE("negation: expressions of floats are quantized with their signs, in both orders and of any size") {
  for (const Index rows : {1, 3, 16, 33})
    for (const Index cols : {1, 5, 16, 40}) {
      const MatrixXf a = numbers(rows, cols), b = MatrixXf::Constant(rows, cols, 2.f);
      const rows_first r = a;
      const auto check = [&]<class Order>(Order) {
        const auto negated = [&](Index i, Index j) { return negative(a(i, j)); };
        CHECK(code_differences<Order>(-a, negated) == 0);
        CHECK(code_differences<Order>(-r, negated) == 0);
        CHECK(code_differences<Order>((-a).cwiseAbs().cwiseProduct(b),
                                      [&](Index i, Index j) { return std::abs(a(i, j)) * 2.f; }) == 0);
        CHECK(code_differences<Order>((-a).cwiseProduct(b),
                                      [&](Index i, Index j) { return negative(a(i, j)) * 2.f; }) == 0);
        CHECK(code_differences<Order>(-a.array(), negated) == 0);
        CHECK(code_differences<Order>((-r.array()).matrix(), negated) == 0);
        CHECK(code_differences<Order>(-(-r), [&](Index i, Index j) { return a(i, j); }) == 0);
        CHECK(code_differences<Order>((-a).transpose(), [&](Index i, Index j) { return negative(a(j, i)); }) == 0);
        CHECK(code_differences<Order>((-r).bottomRows(rows / 2),
                                      [&](Index i, Index j) { return negative(a(i + rows - rows / 2, j)); }) == 0);
      };
      check(qt::row_major{});
      check(qt::col_major{});
    }
}

TEST_CASE("negation: quantized matrices in assignments, sums and other tensors") {
  for (const Index rows : {3, 16, 40})
    for (const Index cols : {5, 200}) {
      const MatrixXf a = numbers(rows, cols), b = MatrixXf::Constant(rows, cols, 2.f);
      const rows_first rb = b;
      const auto check = [&]<class S>(const qt::tensor<S>& q) {
        const auto w = qt::dequantize(q);
        const auto value = [&](Index i, Index j) { return qt::reference::value(q.view(), {i, j}); };
        const auto negated = [&](Index i, Index j) { return negative(value(i, j)); };
        const auto tripled = [&](Index i, Index j) { return negative(value(i, j) * .5f); };
        const auto doubled = [&](Index i, Index j) { return negated(i, j) * 2.f; };
        MatrixXf y = -w;
        rows_first z = -w;
        CHECK(differences(y, negated) == 0);
        CHECK(differences(z, negated) == 0);
        y = -(w * .5f), z = .5f * (-w);
        CHECK(differences(y, tripled) == 0);
        CHECK(differences(z, tripled) == 0);
        y = (-w).cwiseProduct(b), z = (-w).cwiseProduct(b);
        CHECK(differences(y, doubled) == 0);
        CHECK(differences(z, doubled) == 0);
        z = rb.cwiseProduct(-w), y = -(w.cwiseProduct(rb));
        CHECK(differences(z, doubled) == 0);
        CHECK(differences(y, doubled) == 0);
        CHECK(code_differences<qt::row_major>(-w, negated) == 0);
        CHECK(code_differences<qt::col_major>((-w).cwiseProduct(rb), doubled) == 0);
      };
      check(codes_of<qt::row_major>(a));
      check(qt::quantize<qt::mxfp4>(MatrixXf(a.array().isNaN().select(0.f, a))));
      check(qt::quantize<qt::int8_per_tensor>(a));
    }
}
