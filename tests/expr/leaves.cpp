// Mirrors include/qtensor/expr/leaves.hpp: what an expression reads from memory, and where.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/expr/dequantized.hpp>
#include <qtensor/expr/leaves.hpp>

#include "check.hpp"

using namespace Eigen;
namespace qt = qtensor;
using check::row_matrix;

/// Whether a leaf's element (row, col) is this one.
template <class T>
bool lies_at(const qt::expr_detail::leaf& x, Index row, Index col, const T& element) {
  return x.data + row * x.down + col * x.along == reinterpret_cast<const std::uint8_t*>(&element) &&
         x.size == sizeof(T);
}

TEST_CASE("leaves: functions of elements have those of their operands, in order") {
  const MatrixXf a = check::numbers(7, 9);
  const row_matrix r = a;
  const auto all = qt::expr_detail::leaves_of((2.f * a + r.cwiseAbs()).cwiseProduct(a.block(0, 0, 7, 9)));
  static_assert(all.size() == 3);
  CHECK(lies_at(all[0], 3, 5, a.coeffRef(3, 5)));
  CHECK(lies_at(all[1], 3, 5, r.coeffRef(3, 5)));
  CHECK(lies_at(all[2], 6, 0, a.coeffRef(6, 0)));
}

TEST_CASE("leaves: those that are one matrix are asked for once, in the order of a tensor") {
  const MatrixXf a = check::numbers(7, 9), b = check::numbers(7, 9, 1);
  const auto sizes_of = [](const auto& x) {
    std::vector<check::index_t> sizes;
    for (const qt::expr_detail::leaf& one : qt::expr_detail::leaves_in_order<qt::col_major>(x)) {
      CHECK(lies_at(one, 0, 0, *reinterpret_cast<const float*>(one.data)) == (one.size == 4));
      CHECK((one.down == 7 * 4 && one.along == 4));
      sizes.push_back(one.size);
    }
    return sizes;
  };
  CHECK(sizes_of((a + b).cwiseProduct(a - b.leftCols(9)) + a.topRows(7)) == std::vector<check::index_t>{4, 4, 0, 0, 0});
  CHECK(sizes_of(a + a.rightCols(9).transpose().transpose()) == std::vector<check::index_t>{4, 0});
  CHECK(sizes_of(a.leftCols(8) + a.rightCols(8)) == std::vector<check::index_t>{4, 4});
}

TEST_CASE("leaves: what asks for a box goes along rows or columns, as they lie") {
  const MatrixXf a = check::numbers(40, 50);
  const row_matrix r = a;
  const auto leaves = qt::expr_detail::leaves_in_order<qt::row_major>(a + r);
  const auto asks = qt::expr_detail::requests_of_box(leaves, 3, 32, 5, 16, true);
  const auto is = [](const qt::simd::run_requests& x, const float& first, check::index_t step, check::index_t length) {
    return x.next == reinterpret_cast<const std::uint8_t*>(&first) && x.step == step && x.length == length;
  };
  CHECK(is(asks[0], a.coeffRef(3, 5), 40 * 4, 32 * 4));
  CHECK(is(asks[1], r.coeffRef(3, 5), 50 * 4, 16 * 4));
  CHECK((asks[0].at_once == 16 * 4 && asks[1].at_once == 16 * 4));
  CHECK(qt::expr_detail::requests_of_box(leaves, 3, 32, 5, 16, false)[1].at_once == 0);
}

TEST_CASE("leaves: of transposes, parts, arrays and other numbers") {
  const MatrixXf a = check::numbers(7, 9);
  const Matrix<half, Dynamic, Dynamic> h = a.cast<half>();
  const auto turned = qt::expr_detail::leaves_of((a + a).transpose());
  static_assert(turned.size() == 2);
  CHECK(lies_at(turned[1], 8, 2, a.coeffRef(2, 8)));
  CHECK(lies_at(qt::expr_detail::leaves_of(a.transpose())[0], 8, 2, a.coeffRef(2, 8)));
  CHECK(lies_at(qt::expr_detail::leaves_of(a.block(2, 3, 4, 5))[0], 1, 1, a.coeffRef(3, 4)));
  CHECK(lies_at(qt::expr_detail::leaves_of(a.array().exp())[0], 6, 8, a.coeffRef(6, 8)));
  CHECK(lies_at(qt::expr_detail::leaves_of(h.cast<float>())[0], 6, 8, h.coeffRef(6, 8)));
}

TEST_CASE("leaves: not what is read at other places, or not from memory") {
  const MatrixXf a = check::numbers(7, 9);
  const auto t = check::tensor_of<qt::int4_group<32>>(7, 9);
  static_assert(qt::expr_detail::leaves<std::remove_cvref_t<decltype(a.reverse())>>::count == 0);
  static_assert(qt::expr_detail::leaves<std::remove_cvref_t<decltype(a.row(0).replicate(7, 1))>>::count == 0);
  static_assert(qt::expr_detail::leaves<std::remove_cvref_t<decltype(a * a)>>::count == 0);
  CHECK(qt::expr_detail::leaves_of(a + MatrixXf::Constant(7, 9, 1.f)).size() == 1);
  CHECK(qt::expr_detail::leaves_of(a + qt::dequantize(t)).size() == 1);
}
