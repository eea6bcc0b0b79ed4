// Mirrors include/qtensor/ops/product_bf16.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <qtensor/ops/product_bf16.hpp>

#include "product_float_check.hpp"
#include "threads.hpp"

using namespace product_check;
using simd::best_arch;

namespace {

template <class A, class W, class X, class By = serial>
matrix product(const W& w, const X& x, const By& by = {}) {
  return collected<A>(x.rows(), ops::panels_of<A>(w).layout().outputs,
                      [&](const auto& sink) { ops::multiply_bf16<A>(w, x, sink, by); });
}
/// Whether y is within the stated bound of x times weights (n x k), all of ordinary size.
bool is_near(const matrix& y, const matrix& w, const matrix& x) {
  bool near = true;
  for (index_t m = 0; m < y.rows; ++m)
    for (index_t n = 0; n < y.cols; ++n) {
      double sum = 0, size = 0;
      for (index_t k = 0; k < x.cols; ++k) {
        const double term = double{x(m, k)} * double{w(n, k)};
        sum += term, size += std::fabs(term);
      }
      near = near &&
             std::fabs(y(m, n) - sum) <= (0x1p-7 + 0x1p-15 + static_cast<double>(x.cols) * 0x1p-23) * size + 0x1p-100;
    }
  return near;
}
/// Calls check() with matrix registers, where they are used, and by each way of vectors.
template <class Check>
void in_all_ways(const Check& check) {
  check();
  simd::squares_allowed = false;
  in_both_ways(check);
  simd::squares_allowed = true;
}
template <class S>
void check_scheme() {
  const index_t shapes[][3] = {{1, 3, 5}, {4, 34, 33}, {1, 130, 67}, {7, 70, 65}, {26, 9, 1100}};
  for (const auto& s : shapes) {
    const auto w = weights<S>(s[1], s[2]);
    const matrix x = matrix(s[0], s[2]).fill(plain);
    INFO(name<S>.c_str());
    in_all_ways([&] { REQUIRE(is_near(product<best_arch>(pack(w), x.ref()), dense(w), x)); });
  }
}

template <class S>
void check_parts(index_t outputs, index_t depth) {
  const auto w = weights<S>(outputs, depth);
  in_all_ways([&] {
    require_parts(w, {9, 30}, [](const auto& packed, const auto& x) { return product<best_arch>(packed, x); });
  });
}

/// Rows that are more than stay in a cache have the results of fewer.
template <class S>
void check_many_rows(index_t outputs, index_t depth) {
  constexpr index_t rows = 80, half = rows / 2;
  REQUIRE(rows * depth * 2 > index_t{1} << 20);
  const auto w = pack(weights<S>(outputs, depth));
  const matrix x = matrix(rows, depth).fill(plain);
  in_all_ways([&] {
    const matrix y = product<best_arch>(w, x.ref());
    for (const index_t first : {index_t{0}, half}) {
      const matrix_ref<const float> some{x.data.data() + first * depth, half, depth, depth, 1};
      const matrix part = product<best_arch>(w, some);
      bool equal = true;
      for (index_t r = 0; r < half; ++r)
        for (index_t c = 0; c < outputs; ++c) equal = equal && bits_of(y(first + r, c)) == bits_of(part(r, c));
      CHECK(equal);
    }
  });
}

}  // namespace

TEST_CASE("multiply_bf16: every small shape within the bound, groups of any size") {
  check::on_archs<check::first_and_last>([](auto arch) {
    using A = decltype(arch);
    for (index_t n = 1; n <= 18; ++n)
      for (index_t k = 1; k <= 18; ++k) {
        const auto w = weights<uint4_group<5>>(n, k);
        const auto p = pack<A>(w);
        const matrix values = dense(w);
        for (const index_t m : {1, 2, 5, 13}) {
          const matrix x = matrix(m, k).fill(plain);
          in_all_ways([&] { REQUIRE(is_near(product<A>(p, x.ref()), values, x)); });
        }
      }
  });
}

TEST_CASE("multiply_bf16: numbers that bf16 holds give exact sums: no element is missed or taken twice") {
  // Integers of at most 8 bits under scales that are powers of two: every sum is exact in any order.
  const index_t shapes[][3] = {{3, 31, 127},  {4, 33, 129}, {7, 65, 512},   {25, 129, 64}, {26, 63, 66},
                               {1, 257, 130}, {49, 1, 513}, {12, 32, 1030}, {500, 17, 3}};
  const auto integer = [] { return static_cast<float>(static_cast<int>(check::random_below(9)) - 4); };
  in_all_ways([&] {
    for (const auto& s : shapes) {
      const matrix x = matrix(s[0], s[2]).fill(integer);
      auto four = weights<int4_group<32>>(s[1], s[2]);
      for (float& scale : four.scales()) scale = exp2i(static_cast<int>(check::random_below(3)));
      auto eight = weights<scheme<uint8, per_channel<0>, zero_point<uint8>>>(s[1], s[2]);
      for (float& scale : eight.scales()) scale = exp2i(static_cast<int>(check::random_below(3)));
      const auto small = weights<mxfp4>(s[1], s[2]);
      auto bytes = weights<int8_per_channel<0>>(s[1], s[2]);
      for (float& scale : bytes.scales()) scale = exp2i(static_cast<int>(check::random_below(3)));
      auto pairs = weights<scheme<int8, group<2>>>(s[1], s[2]);
      for (float& scale : pairs.scales()) scale = exp2i(static_cast<int>(check::random_below(3)));
      CHECK(same(product<best_arch>(pack(bytes), x.ref()), chains(dense(bytes), x)));
      CHECK(same(product<best_arch>(pack(pairs), x.ref()), chains(dense(pairs), x)));
      CHECK(same(product<best_arch>(pack(four), x.ref()), chains(dense(four), x)));
      CHECK(same(product<best_arch>(pack(eight), x.ref()), chains(dense(eight), x)));
      CHECK(same(product<best_arch>(pack(small), x.ref()), chains(dense(small), x)));
      const auto view = as_view(four);
      const ops::weights_of<std::remove_const_t<decltype(view)>, depth_axis::cols> unpacked(view);
      CHECK(same(product<best_arch>(unpacked, x.ref()), chains(dense(four), x)));
    }
  });
}

TEST_CASE("multiply_bf16: weights of all kinds within the bound") {
  check_scheme<scheme<e4m3, per_channel<0>>>();
  check_scheme<mxfp8_e4m3>();
  check_scheme<mxint8>();
  check_scheme<scheme<int8, group<1>>>();
  check_scheme<scheme<uint4, group<32>, offset<f32>, offset_min_max>>();
  check_scheme<with<nvfp4, tensor_scale<f32>>>();
}

TEST_CASE("multiply_bf16: both sides quantized, activations from any source") {
  const auto w = weights<mxfp4>(70, 200);
  const auto x = weights<mxfp8_e4m3>(9, 200);
  CHECK(is_near(product<best_arch>(pack(w), view_source{as_view(x)}), dense(w), dense(x)));
  const matrix values = matrix(21, 200).fill(plain);
  CHECK(same(product<best_arch>(pack(w), tiles_only{values.ref()}), product<best_arch>(pack(w), values.ref())));
}

TEST_CASE("multiply_bf16: NaN and infinity reach the results they belong to, and no others") {
  auto w = weights<int4_group<32>>(40, 64);
  w.scales()[3 * 2 + 1] = quiet_nan;  // output 3
  for (const index_t rows : {7, 20}) {
    auto x = matrix(rows, 64).fill(plain);
    x(5, 63) = infinity;
    const matrix values = dense(w);
    in_all_ways([&] {
      const matrix y = product<best_arch>(pack(w), x.ref());
      for (index_t m = 0; m < rows; ++m)
        for (index_t n = 0; n < 40; ++n) {
          const float v = y(m, n);
          CHECK(std::isnan(v) == (n == 3 || (m == 5 && values(n, 63) == 0.f)));
          if (!std::isnan(v)) CHECK(std::isinf(v) == (m == 5));
        }
    });
  }
}

TEST_CASE("multiply_bf16: weights from memory, whose codes are asked for, give the same bits as those in a cache") {
  check_parts<int4_group<32>>(1090, 2100);
  check_parts<uint4_group<5>>(1090, 2100);
}

TEST_CASE("multiply_bf16: rows that do not stay in a cache meet several panels in turn, with the same bits") {
  check_many_rows<int4_group<64>>(8 * 64 + 70, 6600);
  check_many_rows<scheme<e4m3, per_channel<0>>>(8 * 64 + 6, 6603);
  check_many_rows<mxfp8_e4m3>(64, 6624);
}

TEST_CASE("multiply_bf16: no depth gives +0, sizes that disagree an error") {
  const auto nothing = weights<mxfp4>(5, 0);
  for (const float v : product<best_arch>(pack(nothing), matrix(3, 0).ref()).data) CHECK(bits_of(v) == 0u);
  const auto w = weights<mxfp4>(5, 40);
  const matrix x(2, 41);
  CHECK_THROWS_AS(product<best_arch>(pack(w), x.ref()), error);
}

TEST_CASE("multiply_bf16: without an instruction that pays, the chains of a product of floats") {
  const auto w = weights<with<nvfp4, tensor_scale<f32>>>(70, 200);
  simd::bf16_way_taken = simd::bf16_way::fma;
  simd::squares_allowed = false;
  for (const index_t rows : {2, 4, 5, 50}) {
    const matrix x = matrix(rows, 200).fill(plain);
    matrix rounded = x;
    rounded_operands<bf16>::apply(rounded.data.data(), rows * 200);
    CHECK(same(product<best_arch>(pack(w), x.ref()), chains(dense(w), rounded)));
  }
  simd::bf16_way_taken = simd::bf16_way::fastest;
  simd::squares_allowed = true;
}

TEST_CASE("multiply_bf16: the same bits by any number of threads, which share panels or rows") {
  const auto w = weights<int4_group<32>>(70, 200);
  in_all_ways([&] {
    for (const index_t rows : {9, 50, 150}) {
      const matrix x = matrix(rows, 200).fill(plain);
      const matrix y = product<best_arch>(pack(w), x.ref());
      for (const index_t count : {2, 3, 7}) CHECK(same(product<best_arch>(pack(w), x.ref(), pool::threads(count)), y));
    }
  });
}
