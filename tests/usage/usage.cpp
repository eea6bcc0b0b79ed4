// The spellings users write, item by item as the design lists them, each with a right answer.
// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <qtensor/qtensor.hpp>
#include <vector>

#include "../expr/check.hpp"

namespace qt = qtensor;
using namespace Eigen;
using check::product;
using check::row_matrix;

namespace {

template <class Scheme>
struct linear {
  qt::tensor<Scheme> weight;
  VectorXf bias;
  template <class D>
  auto operator()(const MatrixBase<D>& x) const {
    return (weight * x).colwise() + bias;
  }
};

template <template <class> class Layer, class A, class B>
struct mlp {
  Layer<A> up;
  Layer<B> down;
  template <class D>
  MatrixXf operator()(const MatrixBase<D>& x) const {
    const MatrixXf h = up(x).cwiseMax(0.f);
    return down(h);
  }
};

struct nf4 {
  static constexpr int bits = 4;
  static constexpr bool is_integer = false, is_signed = true;
  static constexpr float min = -1, max = 1;
  static constexpr qt::fixed_string name = "nf4";
  static constexpr float table[16] = {-1,     -.6962f, -.5251f, -.3949f, -.2844f, -.1848f, -.0911f, 0,
                                      .0796f, .1609f,  .2461f,  .3379f,  .4407f,  .5626f,  .7230f,  1};
  static constexpr float decode(std::uint32_t code) { return table[code & 15]; }
};

const MatrixXf A = check::numbers(48, 160), B = check::numbers(48, 160, 1), X = check::numbers(160, 5, 2);
const VectorXf x = X.col(0), b = check::numbers(48, 1, 3);

template <class S>
double error_of() {
  const qt::tensor<S> W = qt::quantize<S>(A);
  const row_matrix D = qt::dequantize(W);
  CHECK(check::same(D, check::values(W)));
  const VectorXf y = W * x;
  CHECK(check::same(y, product(D, x)));
  return (A - D).norm() / A.norm();
}

}  // namespace

TEST_CASE("usage 1, 2, 3: quantize an expression, combine lazily, multiply") {
  qt::tensor<qt::mxfp4> W = qt::quantize<qt::mxfp4>(A * 2 + B);
  const row_matrix D = check::values(W), bias = B;
  auto e = (W + bias).cwiseMax(0.f);
  const MatrixXf m = qt::dequantize(W), relu = e;
  CHECK(check::same(m, D));
  CHECK(check::same(relu, (D + bias).cwiseMax(0.f)));
  VectorXf y(48);
  y.noalias() = W * x;
  CHECK(check::same(y, product(D, x)));
  MatrixXf Y = MatrixXf::Zero(48, 5), R;
  Y += W * X;
  CHECK(check::same(Y, product(D, X)));
  y = (W * x + b).cwiseMax(0.f);
  CHECK(check::same(y, (product(D, x) + b).cwiseMax(0.f)));
  const MatrixXf Z = check::numbers(7, 160, 4);
  R = Z * qt::dequantize(W).transpose();
  CHECK(check::same(R, product(Z, D.transpose().eval())));
}

TEST_CASE("usage 4, 5: model code templated on the scheme, mixed precision in one line") {
  const MatrixXf C = check::numbers(20, 48, 5);
  const VectorXf c = check::numbers(20, 1, 6);
  const mlp<linear, qt::int4_group<32>, qt::mxfp8_e4m3> net{{qt::quantize<qt::int4_group<32>>(A), b},
                                                            {qt::quantize<qt::mxfp8_e4m3>(C), c}};
  const row_matrix up = check::values(net.up.weight), down = check::values(net.down.weight);
  const MatrixXf hidden = (product(up, X).colwise() + b).cwiseMax(0.f);
  CHECK(check::same(net(X), product(down, hidden).colwise() + c));
}

TEST_CASE("usage 6, 7, 8: other policies, own schemes, own formats") {
  using strict = qt::with<qt::mxfp4, qt::mx_rceil, qt::nan_to_zero>;
  using tiles = qt::scheme<qt::e4m3, qt::block<16, 32>>;
  CHECK(error_of<strict>() < 0.2);
  CHECK(error_of<tiles>() < 0.05);
  CHECK(error_of<qt::scheme<nf4, qt::group<64>>>() < 0.12);
  CHECK(error_of<qt::int8_per_tensor>() < 0.01);
  CHECK(error_of<qt::uint8_per_channel<0>>() < 0.01);
  CHECK(error_of<qt::nvfp4>() < 0.15);
}

TEST_CASE("usage 9, 10: slices are views, and existing memory is a view") {
  const qt::tensor<qt::int4_group<32>> W = qt::quantize<qt::int4_group<32>>(A);
  const row_matrix D = check::values(W);
  auto head = W.view().middle_rows(0, 16);
  VectorXf y = VectorXf::Zero(48);
  y.head(16).noalias() = head * x;
  CHECK(check::same(y.head(16), product(D.topRows(16).eval(), x)));
  CHECK((y.tail(32).array() == 0.f).all());

  using blocks = qt::scheme<qt::int8, qt::group<32>, qt::scale_as<qt::f16>, qt::interleaved<>, qt::static_only>;
  std::vector<std::byte> bytes(48 * 5 * 34);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i % 34 == 1 ? 0x2c : i * 37);
  const auto V = qt::view_of<blocks>(bytes, qt::extents<qt::dynamic, 160>(48));
  CHECK(check::same(V * X, product(check::values(V), X)));
  CHECK_THROWS_AS((qt::view_of<blocks>(std::vector<std::byte>(7), qt::extents<qt::dynamic, 160>(48))), qt::error);
}

TEST_CASE("usage 14: both axes of one matrix") {
  auto [rows, cols] = qt::quantize_dual_axis<qt::mxfp8_e4m3>(X);
  CHECK(check::same_tensor(rows, qt::quantize<qt::mxfp8_e4m3>(X)));
  CHECK(check::same_tensor(cols, qt::quantize<qt::along<0, qt::mxfp8_e4m3>>(X)));
}

TEST_CASE("usage 15, 16: static scales and zero points from any contiguous range") {
  auto q8 = qt::quantize<qt::int8_per_tensor>(A, 0.05f);
  CHECK(q8.scale(0, 0) == 0.05f);
  CHECK(q8.code(3, 4) == qt::quantize_element<qt::int8_per_tensor>(A(3, 4), {0.05f}));
  std::vector<float> scales(48);
  std::array<int, 48> zero_points{};
  for (int i = 0; i < 48; ++i)
    scales[static_cast<std::size_t>(i)] = 0.01f * static_cast<float>(i + 1),
    zero_points[static_cast<std::size_t>(i)] = 5 * i;
  auto qa = qt::quantize<qt::uint8_per_channel<0>>(A, scales, zero_points);
  CHECK(qa.zero_point(47, 0) == 235);
  CHECK(qa.code(47, 9) == qt::quantize_element<qt::uint8_per_channel<0>>(A(47, 9), {scales[47]}, 235));
}

TEST_CASE("usage 17, 18, 19, 21: memory of any rank, scheme to scheme, pointers, constant expressions") {
  std::vector<float> memory(2 * 3 * 64 * 96);
  for (std::size_t i = 0; i < memory.size(); ++i)
    memory[i] = check::number(static_cast<qt::index_t>(i / 96), static_cast<qt::index_t>(i % 96));
  const auto T = qt::quantize<qt::mxfp8_e4m3>(qt::source(memory.data(), qt::extents(2, 3, 64, 96)));
  CHECK(check::same_tensor(T.view().matrix(1, 2),
                           qt::quantize<qt::mxfp8_e4m3>(Map<const row_matrix>(memory.data() + 5 * 64 * 96, 64, 96))));

  const qt::tensor<qt::mxfp4> W = qt::quantize<qt::mxfp4>(A);
  auto W4 = qt::quantize<qt::int4_group<128>>(qt::dequantize(W));
  CHECK(check::same_tensor(W4, qt::quantize<qt::int4_group<128>>(check::values(W))));

  std::vector<std::int8_t> codes(160);
  qt::kernels::quantize<qt::int8_per_tensor>(memory.data(), 160, 0.02f, codes.data());
  CHECK(static_cast<std::uint8_t>(codes[7]) == qt::quantize_element<qt::int8_per_tensor>(memory[7], {0.02f}));
  static_assert(qt::encode<qt::e4m3>(0.3f) == 0x2A);
}
