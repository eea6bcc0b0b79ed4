// Integer products: packed weights, weights as they are, zero points, requantization; and Eigen's floats beside them.
// SPDX-License-Identifier: BSD-3-Clause
#include <Eigen/Core>
#include <memory>
#include <qtensor/ops/code_matrix.hpp>
#include <qtensor/qtensor.hpp>

#include "products.hpp"

namespace bench {

namespace {

using namespace qtensor;
using arch = simd::best_arch;
template <class S>
using matrix = tensor<S>;

template <class S>
std::shared_ptr<const matrix<S>> random_matrix(index_t rows, index_t cols) {
  const auto x = random_floats(rows * cols);
  return std::make_shared<const matrix<S>>(quantize<S>(source(x.data(), extents(rows, cols))));
}

template <class W, class X>
run_product multiplier(std::vector<std::shared_ptr<W>> weights, std::shared_ptr<X> x, index_t m, index_t n) {
  auto y = std::make_shared<array<float>>(static_cast<std::size_t>(m * n));
  return [=](index_t copy) {
    const ops::store_floats<arch> store{{y->data(), m, n, n, 1}};
    multiply_tiles(*weights[static_cast<std::size_t>(copy)], *x, store);
  };
}

template <class SW, class SX>
void add(const product& p, const std::string& who, bool unpacked) {
  const auto w = random_matrix<SW>(p.n, p.k);
  const auto x = random_matrix<SX>(p.m, p.k);
  using packed_type = decltype(pack(*w));
  std::vector<std::shared_ptr<packed_type>> packed;
  for (index_t c = 0; c < p.copies; ++c) packed.push_back(std::make_shared<packed_type>(pack(*w)));
  add_candidate(p, "qtensor " + who, multiplier(packed, x, p.m, p.n));
  if (!unpacked) return;
  std::vector<std::shared_ptr<const matrix<SW>>> plain(1, w);
  for (index_t c = 1; c < p.copies; ++c) plain.push_back(std::make_shared<const matrix<SW>>(*w));
  add_candidate(p, "qtensor not packed", multiplier(plain, x, p.m, p.n));
}

/// Codes in memory times packed int8 weights, sums as they are.
template <class Code>
void add_sums(const product& p, const std::string& who) {
  using packed_type = decltype(pack(*random_matrix<int8_per_channel<0>>(1, 1)));
  const auto w = random_matrix<int8_per_channel<0>>(p.n, p.k);
  std::vector<std::shared_ptr<packed_type>> weights;
  for (index_t c = 0; c < p.copies; ++c) weights.push_back(std::make_shared<packed_type>(pack(*w)));
  auto x = std::make_shared<array<storage_t<Code>>>(static_cast<std::size_t>(p.m * p.k));
  std::mt19937 engine(1);
  for (auto& code : *x) code = static_cast<storage_t<Code>>(engine());
  auto y = std::make_shared<array<std::int32_t>>(static_cast<std::size_t>(p.m * p.n));
  add_candidate(p, "qtensor " + who, [=](index_t copy) {
    const ops::store_integers store{{y->data(), p.m, p.n, p.n, 1}};
    ops::multiply_integers<arch>(*weights[static_cast<std::size_t>(copy)],
                                 code_matrix<Code>{x->data(), p.m, p.k, p.k, 1},
                                 ops::unscaled<ops::store_integers>{store}, serial{});
  });
}

void add_quantizing(const product& p) {
  const auto w = random_matrix<int8_per_channel<0>>(p.n, p.k);
  auto packed = std::make_shared<decltype(pack(*w))>(pack(*w));
  const auto x = std::make_shared<const array<float>>(random_floats(p.m * p.k));
  auto y = std::make_shared<array<float>>(static_cast<std::size_t>(p.m * p.n));
  add_candidate(p, "qtensor f32 rows quantized inside", [=](index_t) {
    const ops::store_floats<arch> store{{y->data(), p.m, p.n, p.n, 1}};
    multiply_tiles(*packed, matrix_ref<const float>{x->data(), p.m, p.k, p.k, 1}, store, int8_activations);
  });
}

void add_eigen(const product& p) {
  using floats = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const auto w = std::make_shared<floats>(floats::Random(p.n, p.k));
  const auto x = std::make_shared<Eigen::MatrixXf>(Eigen::MatrixXf::Random(p.k, p.m));
  const auto y = std::make_shared<Eigen::MatrixXf>(p.n, p.m);
  add_candidate(p, "Eigen f32", [=](index_t) { y->noalias() = *w * *x; });
}

/// What an epilogue costs: the product alone, with bias and ReLU, and requantized after them.
void add_epilogues(const product& p) {
  const auto a = random_floats(p.n * p.k), b = random_floats(p.m * p.k);
  using right = int8_per_channel<1>;
  auto w = std::make_shared<packed<stored<int8_per_channel<0>>>>(
      pack(quantize<int8_per_channel<0>>(source(a.data(), extents(p.n, p.k)))));
  const Eigen::Map<const Eigen::MatrixXf> numbers(b.data(), p.k, p.m);
  const auto x = std::make_shared<const tensor<right, matrix_extents, col_major>>(quantize<right, col_major>(numbers));
  const auto bias = std::make_shared<const Eigen::VectorXf>(Eigen::VectorXf::Random(p.n));
  const auto y = std::make_shared<Eigen::MatrixXf>(p.n, p.m);
  const auto codes = std::make_shared<tensor<int8_per_tensor, matrix_extents, col_major>>(matrix_extents(p.n, p.m));
  codes->scales()[0] = 0.5f;
  const auto activate = [=](const auto& sums, tile t) {
    return (sums.colwise() + bias->segment(t.row, t.rows)).cwiseMax(0.f);
  };
  add_candidate(p, "qtensor f32", [=](index_t) { matmul(*w, *x, into(*y)); });
  add_candidate(p, "qtensor bias, ReLU -> f32", [=](index_t) { matmul(*w, *x, into(*y), activate); });
  add_candidate(p, "qtensor stages of bias, ReLU -> f32", [=](index_t) {
    matmul(*w, *x, into(*y), stages(stage::bias({bias->data(), static_cast<std::size_t>(p.n)}), stage::relu()));
  });
  add_candidate(p, "qtensor bias, ReLU -> int8",
                [=](index_t) { matmul(*w, *x, into(*codes), with_scales(), activate); });
}

}  // namespace

void add_integer_products() {
  for (const product& p : integer_shapes()) {
    add<int8_per_channel<0>, int8_per_channel<0>>(p, "packed", true);
    add_sums<int8>(p, "s8 x s8 -> s32");
    add_sums<uint8>(p, "u8 x s8 -> s32");
    if (p.copies == 1 && p.m > 1) {
      add<uint8_per_channel<0>, uint8_per_channel<0>>(p, "u8 x u8, both zero points", false);
      add_quantizing(p);
      add_eigen(p);
    }
  }
  for (const index_t k : {512, 4096}) add_epilogues({"int8 x int8 with epilogues", 504, 512, k, bound::integer_dot});
}

}  // namespace bench
