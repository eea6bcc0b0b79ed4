// Mirrors include/qtensor/ops/batches.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <qtensor/ops/batches.hpp>

using namespace qtensor;
using dims = std::vector<index_t>;

TEST_CASE("product_batches: matrices meet as numpy.matmul broadcasts them") {
  const product_batches p(dims{2, 1, 5, 3}, dims{4, 3, 7});
  CHECK(p.dims == dims{2, 4, 5, 7});
  CHECK((p.m == 5 && p.k == 3 && p.n == 7 && p.count() == 8));
  const auto matrices = [](const product_batches& b, bool of_left) {
    dims all;
    for (index_t i = 0; i < b.count(); ++i) all.push_back(of_left ? b.left(i) : b.right(i));
    return all;
  };
  CHECK(matrices(p, true) == dims{0, 0, 0, 0, 1, 1, 1, 1});
  CHECK(matrices(p, false) == dims{0, 1, 2, 3, 0, 1, 2, 3});
  const product_batches q(dims{2, 3, 1, 2, 5, 3}, dims{2, 2, 3, 7});  // dimensions that both sides share, or one has
  CHECK(matrices(q, true) == dims{0, 1, 0, 1, 2, 3, 2, 3, 4, 5, 4, 5, 6, 7, 6, 7, 8, 9, 8, 9, 10, 11, 10, 11});
  CHECK(matrices(q, false) == dims{0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3});
}
TEST_CASE("product_batches: runs are left matrices in order that meet one right matrix") {
  const auto runs = [](const dims& a, const dims& b) {
    dims found;
    product_batches(a, b).for_each_run([&](index_t first, index_t count) {
      found.push_back(first);
      found.push_back(count);
    });
    return found;
  };
  CHECK(runs({2, 3, 5, 4}, {4, 7}) == dims{0, 6});
  CHECK(runs({2, 3, 5, 4}, {2, 1, 4, 7}) == dims{0, 3, 3, 3});
  CHECK(runs({2, 3, 5, 4}, {3, 4, 7}) == dims{0, 1, 1, 1, 2, 1, 3, 1, 4, 1, 5, 1});
  CHECK(runs({1, 5, 4}, {2, 4, 7}) == dims{0, 1, 1, 1});
  CHECK(runs({5, 4}, {4, 7}) == dims{0, 1});
  CHECK(runs({0, 5, 4}, {4, 7}).empty());
  CHECK(product_batches(dims{2, 3, 5, 4}, dims{2, 1, 4, 7}).longest_run() == 3);
  CHECK(product_batches(dims{0, 5, 4}, dims{4, 7}).longest_run() == 0);
}
TEST_CASE("product_batches: vectors are rows on the left and columns on the right, and leave no dimension") {
  CHECK(product_batches(dims{3}, dims{2, 3, 4}).dims == dims{2, 4});
  CHECK(product_batches(dims{2, 5, 3}, dims{3}).dims == dims{2, 5});
  CHECK(product_batches(dims{3}, dims{3}).dims.empty());
  CHECK(product_batches(dims{0, 5, 3}, dims{3, 2}).count() == 0);
}
TEST_CASE("product_batches: refusals name the dimensions") {
  CHECK_THROWS_WITH(product_batches(dims{}, dims{3}),
                    "qtensor: a product of tensors of rank 0 and 1; both have at least one dimension.");
  CHECK_THROWS_WITH(
      product_batches(dims{2, 3}, dims{4, 2}),
      "qtensor: the left operand of a product has 3 elements along the sum, the right one 4; they must be "
      "equal.");
  CHECK_THROWS_WITH(product_batches(dims{-2, 5, 3}, dims{3, 2}),
                    "qtensor: a product has a dimension of -2; dimensions are at least 0.");
  CHECK_THROWS_WITH(product_batches(dims{index_t{1} << 40, 1, 3}, dims{index_t{1} << 40, 1, 3, 2}),
                    "qtensor: a size of 1099511627776 times 1099511627776 does not fit 63 bits.");
  CHECK(element_count(dims{2, 0, 3}) == 0);
  CHECK_THROWS_AS(element_count(dims{index_t{1} << 40, index_t{1} << 40}), error);
}
TEST_CASE("product_batches: the number of batches takes no memory") {
  const product_batches p(dims{index_t{1} << 40, 3, 5, 0}, dims{0, 7});
  CHECK(p.count() == 3 * (index_t{1} << 40));
  CHECK(p.left(p.count() - 1) == p.count() - 1);
  CHECK(p.right(p.count() - 1) == 0);
}
