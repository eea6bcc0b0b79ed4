// Random products of batches of matrices, their leading dimensions broadcast.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/batched.hpp>

#include "products.hpp"

using namespace qtensor;

namespace {

/// Tensors of rank 4 whose leading dimensions meet: the left ones, and the right ones for them.
template <quantization_scheme R>
void batches(fuzz::dice& dice) {
  const index_t m = dice.extent(20), k = dice.extent(100), n = dice.extent(40);
  index_t left[2], right[2], count[2];
  for (int axis : {0, 1}) {
    const index_t c = dice.within(1, 3), turn = dice.within(0, 3);
    left[axis] = turn == 0 ? 1 : c, right[axis] = turn == 1 ? 1 : c, count[axis] = c;
  }
  const auto left_extents = extents(left[0], left[1], m, k), right_extents = extents(right[0], right[1], k, n);
  const auto drawn = [&](const auto& e) {
    std::vector<float> x(static_cast<std::size_t>(e.size()));
    for (float& v : x) v = dice.one_of(-1.f, 1.f, 1.f) * fuzz::ordinary_number(dice);
    return x;
  };
  const auto x = drawn(left_extents);
  const auto r = check::expected<R, row_major>(drawn(right_extents), right_extents);
  const auto l = check::expected<int8_per_tensor, row_major>(x, left_extents);
  INFO(std::string(name<R>), ", ", left[0], "x", left[1], "x", m, "x", k, " times ", right[0], "x", right[1], "x", k,
       "x", n);
  const index_t size = count[0] * count[1] * m * n;
  std::vector<float> y(static_cast<std::size_t>(size)), by_codes = y;
  matmul_batches_into(source(x.data(), left_extents), r, y, on(pool::threads(dice.within(1, 3))));
  constexpr bool integers = R::code_format::is_integer && std::is_same_v<typename R::granularity_type, per_tensor>;
  if constexpr (integers) matmul_batches_into(l, r, by_codes);
  const auto left_view = l.view();
  const auto right_view = r.view();
  std::size_t at = 0;
  for (index_t a = 0; a < count[0]; ++a)
    for (index_t b = 0; b < count[1]; ++b)
      for (index_t i = 0; i < m; ++i)
        for (index_t j = 0; j < n; ++j, ++at) {
          const index_t la = left[0] == 1 ? 0 : a, lb = left[1] == 1 ? 0 : b, ra = right[0] == 1 ? 0 : a,
                        rb = right[1] == 1 ? 0 : b;
          float chain = 0.f;
          std::int64_t sum = 0;
          for (index_t c = 0; c < k; ++c) {
            chain = std::fma(x[static_cast<std::size_t>(((la * left[1] + lb) * m + i) * k + c)],
                             reference::value(right_view, {ra, rb, c, j}), chain);
            if constexpr (integers)
              sum += std::int64_t{static_cast<std::int8_t>(left_view.code(la, lb, i, c))} *
                     (static_cast<std::int64_t>(R::code_format::decode(right_view.code(ra, rb, c, j))) -
                      right_view.zero_point(ra, rb, c, j));
          }
          REQUIRE(bits_of(y[at]) == bits_of(chain));
          if constexpr (integers)
            REQUIRE(by_codes[at] ==
                    (k == 0 ? 0.f : reference::scaled_sum(sum, l.scales()[0], right_view.scale(ra, rb, 0, j))));
        }
}

}  // namespace

TEST_CASE("products: batches") {
  fuzz::each_case(200, [](fuzz::dice& dice) {
    if (dice.chance(2))
      batches<uint8_per_tensor>(dice);
    else
      batches<int4_group<16>>(dice);
  });
}
