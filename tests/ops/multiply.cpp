// Mirrors include/qtensor/ops/multiply.hpp: which engine the types and options choose, by the bits that come out.
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <limits>
#include <qtensor/compat/ggml.hpp>
#include <qtensor/ops/multiply.hpp>
#include <qtensor/reference/matmul.hpp>
#include <qtensor/reference/product.hpp>

#include "check.hpp"
#include "threads.hpp"

using namespace qtensor;

namespace {

using best = simd::best_arch;

float number(index_t i) {
  auto h = static_cast<std::uint32_t>(i) * 0x9e3779b1u;
  h = (h ^ h >> 15) * 0x2c1b3c6du;
  return static_cast<float>(static_cast<std::int32_t>(h ^ h >> 13)) * 0x1p-30f;
}
std::vector<float> numbers(index_t n, index_t seed = 0) {
  std::vector<float> x(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = number(static_cast<index_t>(i) + 100000 * seed);
  return x;
}
template <class S, class Order = row_major>
tensor<S, matrix_extents, Order> random_tensor(index_t rows, index_t cols, index_t seed) {
  return check::expected<S, Order>(numbers(rows * cols, seed), extents(rows, cols));
}

/// A row (Axis 0) or column of a tensor as reference/product.hpp wants an operand.
template <class T>
struct operand {
  const T& t;
  index_t at;
  int axis = 0;
  bool one_scale = true;
  static constexpr bool has_offset = false, has_tensor_scale = false;
  static constexpr float unit = 1.f, tensor_scale = 1.f;
  using code = typename T::scheme_type::code_format;
  std::array<index_t, 2> index(index_t k) const {
    return axis == 0 ? std::array<index_t, 2>{at, k} : std::array<index_t, 2>{k, at};
  }
  std::int64_t number(index_t k) const {
    const auto v = t.view();
    return static_cast<std::int64_t>(code::decode(v.code(index(k)))) - v.zero_point(index(k));
  }
  float scale(index_t k) const { return t.view().scale(index(k)); }
  float offset(index_t) const { return 0.f; }
};

/// The result of multiply_tiles, M x N.
template <class W, class X, class... Option>
std::vector<float> product(const W& w, const X& x, index_t rows, index_t outputs, const Option&... option) {
  std::vector<float> y(static_cast<std::size_t>(rows * outputs), -7.f);
  multiply_tiles(w, x, ops::store_floats<best>{{y.data(), rows, outputs, outputs, 1}}, option...);
  return y;
}
template <class Want>
bool same(const std::vector<float>& y, index_t rows, index_t outputs, const Want& want) {
  for (index_t m = 0; m < rows; ++m)
    for (index_t n = 0; n < outputs; ++n) {
      const float found = y[static_cast<std::size_t>(m * outputs + n)], wanted = want(m, n);
      if (bits_of(found) != bits_of(wanted)) {
        MESSAGE("element (", m, ", ", n, ") is ", found, " and not ", wanted);
        return false;
      }
    }
  return true;
}
template <class View>
auto columns_as_rows(const View& view) {
  return ops::weights_of<View, depth_axis::rows>(view);
}

constexpr index_t m_count = 7, n_count = 70, depth = 45;

}  // namespace

TEST_CASE("multiply_tiles: weights that are far give the same bits whether they are packed or not") {
  const auto check_far = []<class S>(std::type_identity<S>, index_t outputs, index_t k, const auto&... option) {
    const auto w = random_tensor<S>(outputs, k, 1);
    const auto packed = pack(w);
    REQUIRE(!ops::weights_are_near(packed.layout()));
    for (const index_t rows : {1, 3, 6}) {
      const auto x = numbers(rows * k, 2);
      const matrix_ref<const float> source{x.data(), rows, k, k, 1};
      const auto want = product(packed, source, rows, outputs, option...);
      CHECK(same(product(w, source, rows, outputs, option...), rows, outputs,
                 [&](index_t m, index_t n) { return want[static_cast<std::size_t>(m * outputs + n)]; }));
    }
  };
  check_far(std::type_identity<int4_group<32>>{}, 2100, 1024);
  check_far(std::type_identity<mxfp4>{}, 2100, 1024, int8_activations);
  check_far(std::type_identity<mxfp8_e4m3>{}, 1100, 1024, bf16_math);
  check_far(std::type_identity<int8_per_channel<0>>{}, 1100, 1024, int8_activations);
}
TEST_CASE("multiply: integers with one scale along the sum are exact, from either side's order") {
  const auto w = random_tensor<uint8_per_channel<0>>(n_count, depth, 1);
  const auto x = random_tensor<int8_per_channel<0>>(m_count, depth, 2);
  const auto want = [&](index_t m, index_t n) {
    return reference::integer_product(operand<decltype(x)>{x, m}, operand<decltype(w)>{w, n}, depth);
  };
  CHECK(same(product(w, x, m_count, n_count), m_count, n_count, want));
  CHECK(same(product(pack(w), x, m_count, n_count), m_count, n_count, want));
  CHECK(same(product(w, x, m_count, n_count, on(pool::threads(3))), m_count, n_count, want));

  // The same numbers with the sum along axis 0.
  const auto turned_w = random_tensor<uint8_per_channel<1>>(depth, n_count, 3);
  const auto turned_x = random_tensor<int8_per_channel<1>, col_major>(depth, m_count, 4);
  const auto turned = [&](index_t m, index_t n) {
    return reference::integer_product(operand<decltype(turned_x)>{turned_x, m, 1},
                                      operand<decltype(turned_w)>{turned_w, n, 1}, depth);
  };
  CHECK(same(product(columns_as_rows(turned_w.view()), columns_as_rows(turned_x.view()), m_count, n_count), m_count,
             n_count, turned));
  CHECK(same(product(pack<best, depth_axis::rows>(turned_w), columns_as_rows(turned_x.view()), m_count, n_count),
             m_count, n_count, turned));
}

TEST_CASE("multiply: nibbles with one scale are exact too; parts of matrices") {
  const auto w = random_tensor<with<int4_group<>, per_channel<0>>>(n_count, depth, 5);
  const auto x = random_tensor<int8_per_channel<0>>(m_count, depth, 6);
  CHECK(same(product(w, x, m_count, n_count), m_count, n_count, [&](index_t m, index_t n) {
    return reference::integer_product(operand<decltype(x)>{x, m}, operand<decltype(w)>{w, n}, depth);
  }));
  const auto bytes = random_tensor<int8_per_channel<0>>(n_count, depth, 7);
  const ops::weights_part part(ops::as_operand(bytes), 3, 9, 5, 21), rows(ops::as_operand(x), 2, 4, 5, 21);
  const auto y = product(part, rows, 4, 9);
  CHECK(same(y, 4, 9, [&](index_t m, index_t n) {
    const operand<decltype(x)> a{x, m + 2};
    const operand<decltype(bytes)> b{bytes, n + 3};
    return reference::scaled_sum(reference::integer_dot(a, b, 5, 26), a.scale(0), b.scale(0));
  }));
}

TEST_CASE("multiply: groups along the sum") {
  const auto w = random_tensor<int4_group<16>>(n_count, depth, 8);
  const auto x = random_tensor<int8_per_channel<0>>(m_count, depth, 9);
  const auto each = random_tensor<int8_group<16>>(m_count, depth, 9);
  const auto per_row = [&](index_t m, index_t n) {
    return reference::group_product(operand<decltype(x)>{x, m}, operand<decltype(w)>{w, n}, depth, 16);
  };
  const auto per_group = [&](index_t m, index_t n) {
    return reference::group_product(operand<decltype(each)>{each, m, 0, false}, operand<decltype(w)>{w, n}, depth, 16);
  };
  CHECK(same(product(w, x, m_count, n_count), m_count, n_count, per_row));
  CHECK(same(product(pack(w), each, m_count, n_count), m_count, n_count, per_group));
  // Quantizing inside the product gives the codes of quantizing before it.
  const auto floats = numbers(m_count * depth, 9);
  const matrix_ref<const float> rows{floats.data(), m_count, depth, depth, 1};
  CHECK(same(product(w, rows, m_count, n_count, int8_activations), m_count, n_count, per_row));
  CHECK(same(product(pack(w), rows, m_count, n_count, on(pool::threads(2)), int8_group_activations), m_count, n_count,
             per_group));
}

TEST_CASE("multiply: int8_activations with one scale a row is the integer product") {
  const auto w = random_tensor<int8_per_channel<0>>(n_count, depth, 10);
  const auto x = random_tensor<int8_per_channel<0>>(m_count, depth, 11);
  const auto floats = numbers(m_count * depth, 11);
  const matrix_ref<const float> rows{floats.data(), m_count, depth, depth, 1};
  CHECK(product(w, rows, m_count, n_count, int8_activations) == product(w, x, m_count, n_count));
  CHECK(product(pack(w), rows, m_count, n_count, int8_group_activations) == product(w, x, m_count, n_count));
}

TEST_CASE("multiply: floats and everything else are one chain") {
  const auto w = random_tensor<mxfp8_e4m3>(n_count, 64, 12);
  const auto x = random_tensor<mxfp4>(m_count, 64, 13);
  const auto along_k = random_tensor<int8_per_channel<1>>(m_count, 64, 13);  // a scale for every element of the sum
  const auto floats = numbers(m_count * 64, 13);
  const matrix_ref<const float> rows{floats.data(), m_count, 64, 64, 1};
  const auto chain = [&](const auto& left) {
    return [&](index_t m, index_t n) {
      return reference::dot([&](index_t, index_t k) { return left(m, k); },
                            [&](index_t k, index_t) {
                              return reference::value(w.view(), {n, k});
                            },
                            m, n, 64);
    };
  };
  const auto memory = chain(rows);
  CHECK(same(product(w, rows, m_count, n_count), m_count, n_count, memory));
  CHECK(same(product(pack(w), rows, m_count, n_count), m_count, n_count, memory));
  CHECK(same(product(w, rows, m_count, n_count, on(pool::threads(3))), m_count, n_count, memory));
  const auto of = [](const auto& t) {
    return [&t](index_t m, index_t k) { return reference::value(t.view(), {m, k}); };
  };
  const auto small = of(x);
  const auto integers = of(along_k);
  CHECK(same(product(w, x, m_count, n_count), m_count, n_count, chain(small)));
  CHECK(same(product(w, along_k, m_count, n_count), m_count, n_count, chain(integers)));
  // Codes of 16 bits, which are not packed, through any sink.
  const auto wide = random_tensor<scheme<int16, per_channel<0>>>(n_count, 64, 14);
  std::vector<float> y(m_count * n_count), direct = product(wide, rows, m_count, n_count);
  multiply_tiles(wide, rows, [&](const product_tile& t) {
    for (index_t r = 0; r < t.rows; ++r)
      for (index_t c = 0; c < t.cols; ++c)
        y[static_cast<std::size_t>((t.row + r) * n_count + t.col + c)] = t.values[r * t.stride + c];
  });
  CHECK(y == direct);
}

TEST_CASE(
    "suits_panels: codes in runs or blocks, groups of whole quads, outputs that fill panels, results that are rows or "
    "few") {
  constexpr index_t panel = simd::float_tile<best>::panel, k = 40;
  const auto suits = [&]<class S, depth_axis Depth = depth_axis::cols, class Order = row_major>(
      std::type_identity<S>, index_t outputs, index_t rows = 1, bool in_columns = false) {
    const tensor<S, matrix_extents, Order> w(Depth == depth_axis::cols ? matrix_extents(outputs, k)
                                                                       : matrix_extents(k, outputs));
    const ops::weights_of<decltype(w.view()), Depth> weights(w.view());
    float y = 0.f;
    const matrix_ref<float> to{&y, rows, outputs, in_columns ? 1 : outputs, in_columns ? rows : 1};
    if constexpr (ops::fast_to_pack<decltype(weights)>)
      return ops::suits_panels<best>(weights, to);
    else
      return false;
  };
  constexpr std::type_identity<int8_per_channel<0>> bytes;
  for (const index_t n : {2 * panel, 9 * panel - 1, 9 * panel, 9 * panel + 1}) CHECK(suits(bytes, n));
  for (const index_t n : {index_t{0}, panel, 2 * panel - 1, 2 * panel + 1}) CHECK_FALSE(suits(bytes, n));
  CHECK(suits(bytes, 2 * panel, 2 * simd::lanes<best> - 1, true));
  CHECK_FALSE(suits(bytes, 2 * panel, 2 * simd::lanes<best>, true));
  CHECK(suits(std::type_identity<mxfp4>{}, 2 * panel));
  CHECK(suits(std::type_identity<int4_group<64>>{}, 2 * panel));
  CHECK(suits(std::type_identity<int4_group<4>>{}, 2 * panel));
  CHECK_FALSE(suits(std::type_identity<int4_group<6>>{}, 2 * panel));
  CHECK_FALSE(suits(std::type_identity<int4_group<2>>{}, 2 * panel));
  CHECK_FALSE(suits(std::type_identity<scheme<int4, group<32>, planar<high_first>>>{}, 2 * panel));
  CHECK_FALSE(suits(std::type_identity<scheme<uint8, group<32>, zero_point<int32>>>{}, 2 * panel));
  CHECK(suits.operator()<int8_per_tensor, depth_axis::rows>({}, 2 * panel) == (simd::lanes<best> == 16));
  CHECK(suits.operator()<int8_per_tensor, depth_axis::rows, col_major>({}, 2 * panel));
  CHECK_FALSE(suits.operator()<int8_per_channel<0>, depth_axis::rows>({}, 2 * panel));
  CHECK(suits(std::type_identity<compat::ggml::q4_0>{}, 2 * panel));
}

TEST_CASE_TEMPLATE("multiply: plain weights that are packed for one product are the chain, too", S, mxfp4, nvfp4,
                   mxfp6_e2m3, int8_per_channel<0>, scheme<e5m2, per_tensor>, int4_group<4>, compat::ggml::q8_0,
                   scheme<uint8, group<48>, zero_point<uint8>>, scheme<uint4, group<32>, offset<f32>, offset_min_max>) {
  constexpr index_t panel = simd::float_tile<best>::panel, k = 112;
  for (const index_t outputs : {2 * panel - 1, 2 * panel, 9 * panel + 3}) {
    const auto w = random_tensor<S>(outputs, k, 17);
    std::vector<float> weights;
    for (index_t n = 0; n < outputs; ++n)
      for (index_t i = 0; i < k; ++i) weights.push_back(reference::value(w.view(), {n, i}));
    for (const index_t rows : {1, 3, 5, 8, 19}) {
      auto floats = numbers(rows * k, 18);
      floats[3] = -0.f, floats[5] = 0x1p-140f;
      if (rows > 1) floats[k] = std::numeric_limits<float>::infinity();
      const auto before = numbers(rows * outputs, 19);
      for (const auto mode : {accumulate::assign, accumulate::add}) {
        auto y = before;
        multiply_tiles(w, matrix_ref<const float>{floats.data(), rows, k, k, 1},
                       ops::store_floats<best>{{y.data(), rows, outputs, outputs, 1}, 0.75f, mode});
        CHECK(same(y, rows, outputs, [&](index_t m, index_t n) {
          const float sum = reference::dot(
              [&](index_t r, index_t i) { return floats[static_cast<std::size_t>(r * k + i)]; },
              [&](index_t i, index_t c) { return weights[static_cast<std::size_t>(c * k + i)]; }, m, n, k);
          const auto at = static_cast<std::size_t>(m * outputs + n);
          const float product = rounded(0.75f * sum);
          const float want = mode == accumulate::add ? rounded(before[at] + product) : product;
          return std::isnan(want) && std::isnan(y[at]) ? y[at] : want;
        }));
      }
    }
  }
}

TEST_CASE("multiply: rounded operands") {
  const auto w = random_tensor<int8_per_channel<0>>(n_count, depth, 15);
  const auto floats = numbers(m_count * depth, 16);
  const matrix_ref<const float> rows{floats.data(), m_count, depth, depth, 1};
  const auto f16_of = [](float v) { return decode<f16>(encode<f16>(v)); };
  CHECK(same(product(w, rows, m_count, n_count, f16_math), m_count, n_count, [&](index_t m, index_t n) {
    return reference::dot([&](index_t, index_t k) { return f16_of(rows(m, k)); },
                          [&](index_t k, index_t) {
                            return f16_of(reference::value(w.view(), {n, k}));
                          },
                          m, n, depth);
  }));
  const auto exact = product(w, rows, m_count, n_count), rounded = product(w, rows, m_count, n_count, bf16_math);
  float largest = 0.f;
  for (std::size_t i = 0; i < exact.size(); ++i) largest = std::max(largest, std::abs(exact[i] - rounded[i]));
  CHECK(largest > 0.f);  // it is another arithmetic ...
  CHECK(largest <
        static_cast<float>(depth) * 4.f * 0x1p-7f);  // ... inside the bound of product_bf16.hpp: |x|, |w| <= 2
}

TEST_CASE("multiply: no depth, no rows, no outputs; depths that differ") {
  const tensor<int8_per_tensor> flat(matrix_extents(3, 0)), none(matrix_extents(0, 4)), x(matrix_extents(2, 4));
  const tensor<int8_per_tensor> no_depth(matrix_extents(2, 0));
  for (const float v : product(flat, no_depth, 2, 3)) CHECK(bits_of(v) == 0);
  CHECK(product(none, x, 2, 0).empty());
  CHECK(product(x, none, 0, 2).empty());
  const tensor<int8_per_tensor> longer(matrix_extents(2, 5));
  bool called = false;
  const auto sink = [&](const product_tile&) { called = true; };
  CHECK_THROWS_WITH_AS(
      multiply_tiles(x, longer, sink),
      "qtensor: a product sums over 4 elements of the weights and 5 of the activations; they must be equal.", error);
  CHECK(!called);
}

TEST_CASE("multiply: zero points that leave 32 bits as packed numbers are refused wherever weights are packed") {
  const auto refuses = []<class S>(std::type_identity<S>, std::int32_t zero, const char* text) {
    tensor<S> w(matrix_extents(3, 8));
    for (auto& scale : w.scales()) scale = 1.f;
    w.zero_points()[1] = zero;
    const std::vector<float> x(16, 1.f);
    const matrix_ref<const float> rows{x.data(), 2, 8, 8, 1};
    const auto sentence = [&](const auto&... options) {
      try {
        multiply_tiles(
            w, rows, [](const product_tile&) { FAIL("a tile"); }, options...);
      } catch (const error& e) {
        return std::string(e.what());
      }
      return std::string("nothing was thrown");
    };
    for (const std::string& said : {sentence(), sentence(int8_activations), sentence(int8_group_activations),
                                    sentence(bf16_math), sentence(f16_math)})
      CHECK(said == text);
  };
  refuses(std::type_identity<scheme<uint8, group<8>, zero_point<int32>>>{}, std::numeric_limits<std::int32_t>::min(),
          "qtensor: a zero point is -2147483648; products take zero points of these codes from -2147483519 to "
          "2147483647.");
  refuses(std::type_identity<scheme<int4, group<4>, zero_point<int32>>>{}, std::numeric_limits<std::int32_t>::max(),
          "qtensor: a zero point is 2147483647; products take zero points of these codes from -2147483648 to "
          "2147483639.");
}
