// Mirrors include/qtensor/expr/source_of.hpp: what an expression is read from.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/expr/assign.hpp>
#include <qtensor/expr/source_of.hpp>

#include "check.hpp"

using namespace Eigen;
namespace qt = qtensor;
using check::row_matrix;

TEST_CASE("source_of decodes quantized matrices in runs, in either order") {
  const auto t = check::tensor_of<qt::int4_group<32>>(20, 40);
  const auto w = qt::dequantize(t);
  const auto rows = qt::expr_detail::source_of<qt::row_major>(w);
  const auto cols = qt::expr_detail::source_of<qt::col_major>(w);
  static_assert(decltype(rows)::reads_rows && !decltype(cols)::reads_rows);
  row_matrix tile(40, 20);
  cols.read(0, 40, 0, 20, tile.data(), 20);
  CHECK(check::same(tile, check::values(t).transpose()));
}

TEST_CASE("with_floats: half and bfloat16 are widened exactly") {
  const MatrixXf a = check::numbers(3, 4);
  const Matrix<half, Dynamic, Dynamic> h = a.cast<half>();
  const Matrix<bfloat16, Dynamic, Dynamic> b = a.cast<bfloat16>();
  qt::expr_detail::with_floats(h, [&](const auto& x) {
    for (Index i = 0; i < 3; ++i)
      for (Index j = 0; j < 4; ++j) CHECK(x.coeff(i, j) == static_cast<float>(h(i, j)));
  });
  qt::expr_detail::with_floats(b, [&](const auto& x) {
    for (Index i = 0; i < 3; ++i)
      for (Index j = 0; j < 4; ++j) CHECK(x.coeff(i, j) == static_cast<float>(b(i, j)));
  });
}

TEST_CASE("with_source: half and bfloat16 in memory are read where they lie, other expressions as floats") {
  const MatrixXf a = check::numbers(3, 4);
  const Matrix<bfloat16, Dynamic, Dynamic> b = a.cast<bfloat16>();
  qt::expr_detail::with_source<qt::col_major>(b, [&](const auto& x) {
    static_assert(std::is_same_v<qt::element_format_of<std::remove_cvref_t<decltype(x)>>, qt::bf16>);
    CHECK(static_cast<const void*>(x.direct(1, 2)) == static_cast<const void*>(&b(2, 1)));
    CHECK(x.row_step() == 3);
  });
  qt::expr_detail::with_source<qt::row_major>(b, [&](const auto& x) {
    CHECK(x.direct(0, 0) == nullptr);
    float element = 0.f;
    x.read(2, 1, 3, 1, &element, 1);
    CHECK(element == static_cast<float>(b(2, 3)));
  });
  qt::expr_detail::with_source<qt::row_major>(b + b, [&](const auto& x) {
    static_assert(std::is_same_v<qt::element_format_of<std::remove_cvref_t<decltype(x)>>, qt::f32>);
    float element = 0.f;
    x.read(2, 1, 3, 1, &element, 1);
    CHECK(element == static_cast<float>(b(2, 3) + b(2, 3)));
  });
}

TEST_CASE("source_of: matrices of one order are read by their evaluator, those of both in parts") {
  const MatrixXf a = check::numbers(3, 4);
  const row_matrix r = a;
  const auto in_parts = []<class Xpr>(const Xpr& x) {
    using source = decltype(qt::expr_detail::source_of<qt::row_major>(x));
    return !std::is_same_v<source, qt::expression_source<Xpr, qt::row_major>>;
  };
  CHECK(in_parts(a + r));
  CHECK(!in_parts(a + a));
  CHECK(!in_parts(r));
}
