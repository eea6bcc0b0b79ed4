// Mirrors include/qtensor/ops/product_int8.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/product_int8.hpp>
#include <qtensor/scheme/schemes.hpp>
#include <vector>

#include "../simd/check.hpp"
#include "threads.hpp"

namespace simd = qtensor::simd;
using namespace qtensor;

namespace {

/// A tensor of random codes, many of them extreme, with scales and zero points to match.
template <class S, class Order = row_major>
tensor<S, matrix_extents, Order> random_tensor(index_t rows, index_t cols) {
  tensor<S, matrix_extents, Order> t(matrix_extents(rows, cols));
  for (auto& c : t.codes()) {
    const std::uint32_t bits = check::random_bits()();
    c = static_cast<std::remove_reference_t<decltype(c)>>(bits % 4 == 0 ? (bits & 64 ? 0x80 : 0x7f) : bits >> 8);
  }
  for (auto& s : t.scales()) s = 0.001f * static_cast<float>(1 + check::random_bits()() % 1000);
  if constexpr (S::has_zero_point)
    for (auto& z : t.zero_points())
      z = static_cast<std::remove_reference_t<decltype(z)>>(check::random_bits()() % 3 == 0 ? 255
                                                                                            : check::random_bits()());
  if constexpr (std::is_same_v<typename S::zero_point_format, int32>)
    for (auto& z : t.zero_points()) z %= 1 << 22;  // whose products fit 64 bits
  return t;
}

/// What the codes of all elements stand for under their zero points, row by row.
template <class View>
std::vector<std::int64_t> numbers_of(const View& v) {
  using code = typename View::scheme_type::code_format;
  std::vector<std::int64_t> all;
  for (index_t row = 0; row < v.rows(); ++row)
    for (index_t col = 0; col < v.cols(); ++col)
      all.push_back(static_cast<std::int64_t>(code::decode(v.code(row, col))) - v.zero_point(row, col));
  return all;
}

template <class View>
auto by_rows(const View& v) {
  return ops::weights_of<View, depth_axis::cols>(v);
}

template <class SW, class SX, class OrderW = row_major, class OrderX = row_major, class By = serial>
void check_product(index_t m, index_t n, index_t k, const By& by = {}) {
  const auto wt = random_tensor<SW, OrderW>(n, k);
  const auto xt = random_tensor<SX, OrderX>(m, k);
  const auto w = wt.view();
  const auto x = xt.view();
  std::vector<float> want(static_cast<std::size_t>(m * n));
  std::vector<std::int32_t> sums(want.size());
  const auto ws = numbers_of(w), xs = numbers_of(x);
  for (index_t i = 0; i < m; ++i)
    for (index_t j = 0; j < n; ++j) {
      const std::int64_t *const of_w = ws.data() + j * k, *const of_x = xs.data() + i * k;
      std::int64_t sum = 0;
      for (index_t l = 0; l < k; ++l) sum += of_x[l] * of_w[l];
      const auto at = static_cast<std::size_t>(i * n + j);
      sums[at] = static_cast<std::int32_t>(static_cast<std::uint64_t>(sum));
      if (k > 0) want[at] = rounded(rounded(static_cast<float>(sum) * x.scale(i, 0)) * w.scale(j, 0));
    }
  check::archs::for_each([&](auto arch) {
    using A = decltype(arch);
    const auto compare = [&](const auto& weights) {
      check::fenced<float> y(m * n);
      const ops::store_floats<A> store{{y.data(), m, n, n, 1}};
      ops::multiply_integers<A>(weights, by_rows(x), ops::scaled<ops::store_floats<A>>{store}, by);
      for (std::size_t i = 0; i < want.size(); ++i) REQUIRE(y[static_cast<index_t>(i)] == want[i]);
      const ops::store_floats<A> turned{{y.data(), m, n, 1, m}, 0.5f};
      ops::multiply_integers<A>(weights, by_rows(x), ops::scaled<ops::store_floats<A>>{turned}, by);
      for (index_t i = 0; i < m; ++i)
        for (index_t j = 0; j < n; ++j) REQUIRE(y[j * m + i] == 0.5f * want[static_cast<std::size_t>(i * n + j)]);
      std::vector<std::int32_t> found(sums.size(), 77);
      const auto keep = [&](const integer_tile& t) {
        for (index_t r = 0; r < t.rows; ++r)
          for (index_t c = 0; c < t.cols; ++c)
            found[static_cast<std::size_t>((t.row + r) * n + t.col + c)] = t.values[r * t.stride + c];
      };
      ops::multiply_integers<A>(weights, by_rows(x), ops::unscaled<decltype(keep)>{keep}, by);
      REQUIRE(found == sums);
    };
    compare(pack<A>(wt));
    compare(by_rows(w));
  });
}

}  // namespace

TEST_CASE("multiply_integers_of_floats: rows are quantized as int8_per_channel has them, NaN rows and all") {
  for (const index_t m : {1, 5, 40})
    for (const index_t k : {1, 64, 131}) {
      std::vector<float> numbers(static_cast<std::size_t>(m * k));
      for (float& v : numbers) v = check::hard_float();
      const matrix_ref<const float> rows{numbers.data(), m, k, k, 1};
      tensor<int8_per_channel<0>, matrix_extents> x(matrix_extents(m, k));
      reference::quantize([&](const auto& at) { return rows(at[0], at[1]); }, x.span());
      const auto w = random_tensor<uint8_per_channel<0>>(70, k);
      check::archs::for_each([&](auto arch) {
        using A = decltype(arch);
        const auto product_of = [&](const auto& multiply) {
          std::vector<float> y(static_cast<std::size_t>(m * 70));
          const ops::store_floats<A> store{{y.data(), m, 70, 70, 1}};
          multiply(pack<A>(w), ops::scaled<ops::store_floats<A>>{store});
          return y;
        };
        const auto want = product_of([&](const auto& p, const auto& finish) {
          ops::multiply_integers<A>(p, by_rows(std::as_const(x).view()), finish, serial{});
        });
        const auto found = product_of(
            [&](const auto& p, const auto& finish) { ops::multiply_integers_of_floats<A>(p, rows, finish, serial{}); });
        for (std::size_t i = 0; i < want.size(); ++i) REQUIRE(check::same_or_nan(found[i], want[i]));
      });
    }
}

TEST_CASE("integer products: every small shape, all pairs of signed and unsigned codes, zero points on both sides") {
  for (index_t m = 1; m <= 14; m += m < 8 ? 1 : 3)
    for (const index_t n : {1, 2, 3, 15, 16, 17, 40, 65})
      for (const index_t k : {1, 2, 3, 4, 5, 8, 13, 40}) {
        check_product<int8_per_channel<0>, int8_per_channel<0>>(m, n, k);
        check_product<uint8_per_channel<0>, uint8_per_channel<0>>(m, n, k);
        if ((m + n + k) % 3 == 0) {
          check_product<int8_per_tensor, uint8_per_tensor>(m, n, k);
          check_product<uint8_per_tensor, int8_per_tensor>(m, n, k);
        }
      }
}
TEST_CASE("integer products: zero points of another format than the codes, and far away from them") {
  using signed_codes = scheme<int8, per_channel<0>, zero_point<uint8>>;
  using unsigned_codes = scheme<uint8, per_channel<0>, zero_point<int8>>;
  using far_zeros = scheme<uint8, per_channel<0>, zero_point<int32>>;
  check_product<signed_codes, unsigned_codes>(3, 40, 33);
  check_product<far_zeros, far_zeros>(2, 20, 12);
  check::in_full<unsigned_codes>([]<class S>() { check_product<S, signed_codes>(9, 17, 40); });
  check::in_full<far_zeros>([]<class S>() { check_product<S, uint8_per_channel<0>>(7, 33, 40); });

  const matrix_extents size(1, 3);
  tensor<far_zeros> w(size), x(size);
  const auto multiply = [&] {
    float y = 5.f;
    const ops::store_floats<simd::best_arch> store{{&y, 1, 1, 1, 1}};
    ops::multiply_integers<simd::best_arch>(by_rows(std::as_const(w).view()), by_rows(std::as_const(x).view()),
                                            ops::scaled<ops::store_floats<simd::best_arch>>{store}, serial{});
    return y;
  };
  w.codes()[0] = x.codes()[1] = 1;
  w.scales()[0] = x.scales()[0] = 1.f;
  w.zero_points()[0] = (1 << 30) + 1;
  x.zero_points()[0] = -(1 << 29);
  constexpr std::int64_t zw = (1 << 30) + 1, zx = -(1 << 29);
  CHECK(multiply() == static_cast<float>((0 - zx) * (1 - zw) + (1 - zx) * (0 - zw) + zx * zw));
  w.zero_points()[0] = std::numeric_limits<std::int32_t>::min();
  CHECK_THROWS_WITH_AS(multiply(),
                       "qtensor: a zero point is -2147483648; products take zero points of these codes from "
                       "-2147483519 to 2147483647.",
                       qtensor::error);
  CHECK_THROWS_AS(pack(w), qtensor::error);
  w.zero_points()[0] = x.zero_points()[0] = std::numeric_limits<std::int32_t>::max();
  CHECK_THROWS_WITH_AS(multiply(),
                       "qtensor: a product of 3 terms up to 2147483647 times 2147483647 does not fit 63 bits; zero "
                       "points are too far away.",
                       qtensor::error);
}
TEST_CASE("integer products: operands in either storage order") {
  check_product<int8_per_channel<0>, uint8_per_channel<0>, col_major>(7, 40, 70);
  check_product<uint8_per_channel<0>, int8_per_channel<0>, row_major, col_major>(2, 70, 33);
  check::in_full<int8_per_tensor>(
      []<class S>() { check_product<S, uint8_per_channel<0>, col_major, col_major>(9, 17, 130); });
}
TEST_CASE("integer products: as many rows as meet weights where they lie, and one more") {
  using zeros = scheme<int8, per_channel<0>, zero_point<int8>>;
  for (const index_t depth : {index_t{383}, index_t{777}})
    for (const index_t less : {3, 0, -1}) {
      const index_t rows = simd::line_rows<simd::best_arch>(depth) - less;
      check_product<int8_per_channel<0>, int8_per_channel<0>>(rows, 70, depth);
      check_product<zeros, uint8_per_channel<0>>(rows, 21, depth);
    }
}
TEST_CASE("integer products: rows enough to widen weights for, more rows than share a panel") {
  for (const index_t n : {1, 15, 16, 17, 40})
    for (const index_t k : {1, 3, 4, 5, 13, 40}) {
      check_product<int8_per_channel<0>, int8_per_channel<0>>(34, n, k);
      check_product<uint8_per_channel<0>, uint8_per_channel<0>>(37, n, k);
      check_product<uint8_per_tensor, int8_per_tensor>(32, n, k);
    }
  check_product<uint8_per_channel<0>, int8_per_channel<0>>(150, 20, 1000);
}
TEST_CASE("integer products: weights from memory, whose panels two and three tiles meet in parts") {
  check_product<int8_per_channel<0>, uint8_per_channel<0>>(7, 1090, 1001);
  check_product<uint8_per_channel<0>, int8_per_channel<0>>(13, 1090, 1022);
  check_product<int8_per_channel<0>, int8_per_channel<0>>(15, 1090, 1001);
}
TEST_CASE("integer products: no rows, no outputs, no depth") {
  check_product<int8_per_tensor, int8_per_tensor>(0, 5, 4);
  check_product<int8_per_tensor, int8_per_tensor>(5, 0, 4);
  check_product<int8_per_tensor, int8_per_tensor>(1, 3, 0);
  check_product<uint8_per_tensor, uint8_per_tensor>(5, 3, 0);
}
TEST_CASE("integer products: sums that need more than 32 bits are exact as floats, and wrap around as integers") {
  check_product<uint8_per_channel<0>, uint8_per_channel<0>>(2, 3, 32769);
  check_product<uint8_per_channel<0>, int8_per_channel<0>>(5, 2, 70001);
  check_product<uint8_per_channel<0>, int8_per_channel<0>>(33, 2, 70001);
}
TEST_CASE("integer products: the largest sums there are, just inside and outside of 32 bits") {
  constexpr index_t limit = simd::int_tile<simd::best_arch>::exact_depth;
  for (const index_t k : {limit, limit + 1, index_t{33026}, index_t{66052}})
    for (const bool opposite : {false, true}) {
      const matrix_extents w_size(1, k), x_size(4, k);
      tensor<uint8_per_tensor> w(w_size), x(x_size);
      for (auto& c : w.codes()) c = opposite ? 0 : 255;
      for (auto& c : x.codes()) c = 255;
      w.scales()[0] = x.scales()[0] = 1.f;
      w.zero_points()[0] = opposite ? 255 : 0;
      x.zero_points()[0] = 0;
      const auto want = static_cast<float>((opposite ? -1 : 1) * std::int64_t{255} * 255 * k);
      check::archs::for_each([&](auto arch) {
        using A = decltype(arch);
        for (const index_t rows : {1, 4}) {
          float y[4] = {};
          const ops::store_floats<A> store{{y, rows, 1, 1, 1}};
          const auto some = x.view().top_rows(rows);
          ops::multiply_integers<A>(pack<A>(w), by_rows(some), ops::scaled<ops::store_floats<A>>{store}, serial{});
          for (index_t m = 0; m < rows; ++m) REQUIRE(y[m] == want);
          ops::multiply_integers<A>(by_rows(std::as_const(w).view()), by_rows(some),
                                    ops::scaled<ops::store_floats<A>>{store}, serial{});
          for (index_t m = 0; m < rows; ++m) REQUIRE(y[m] == want);
        }
      });
    }
}
TEST_CASE("integer products: threads change nothing") {
  const auto pool = pool::threads(3);
  check_product<int8_per_channel<0>, uint8_per_channel<0>>(40, 300, 200, pool);
  check_product<uint8_per_channel<0>, uint8_per_channel<0>>(200, 10, 400, pool);
}
TEST_CASE("integer products: a depth beyond 2^24 is refused with its size") {
  const matrix_extents size(1, index_t{1} << 24);
  const tensor<int8_per_tensor> w(size), x(size);
  float y;
  const ops::store_floats<simd::best_arch> store{{&y, 1, 1, 1, 1}};
  CHECK_THROWS_WITH_AS(
      (ops::multiply_integers<simd::best_arch>(by_rows(w.view()), by_rows(x.view()),
                                               ops::scaled<ops::store_floats<simd::best_arch>>{store}, serial{})),
      "qtensor: an integer product sums over 16777216 elements; it takes fewer than 16777216.", qtensor::error);
}

TEST_SUITE("exhaustive") {
  TEST_CASE("integer products: every shape up to 40 x 40 x 40") {
    for (index_t m = 1; m <= 40; ++m)
      for (index_t n = 1; n <= 40; ++n)
        for (index_t k = 1; k <= 40; ++k) check_product<uint8_per_channel<0>, int8_per_channel<0>>(m, n, k);
  }
}
