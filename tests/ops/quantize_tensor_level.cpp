// include/qtensor/ops/quantize.hpp and its like: tensors under a level that is known, by every way to quantize them.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/compat/torchao.hpp>
#include <qtensor/compat/transformer_engine.hpp>
#include <qtensor/expr/quantize.hpp>

#include "check.hpp"

using namespace qtensor;

namespace {

using two_levels = with<nvfp4, tensor_scale<f32>>;

template <quantization_scheme S, tensor_extents E>
tensor<S, E> by_reference(const std::vector<float>& x, const E& extents, const tensor_level& level) {
  tensor<S, E> t(extents);
  t.set_tensor_scale(level.scale);
  const auto strides = dense_strides(extents.to_array());
  reference::quantize_blocks(
      [&](const auto& i) {
        index_t at = 0;
        for (std::size_t axis = 0; axis < i.size(); ++axis) at += i[axis] * strides[axis];
        return x[static_cast<std::size_t>(at)];
      },
      level.term, t.span());
  return t;
}

template <class T, class U>
void check_same(const T& a, const U& b) {
  CHECK(a.tensor_scale() == b.tensor_scale());
  CHECK(std::equal(a.codes().begin(), a.codes().end(), b.codes().begin(), b.codes().end()));
  CHECK(std::equal(a.scales().begin(), a.scales().end(), b.scales().begin(), b.scales().end()));
}

/// Levels below, at and above that of the data, and none at all.
const float magnitudes[] = {0.f, 1e-30f, .5f, 4.f, 4e4f, 1e30f, infinity};

}  // namespace

TEST_CASE_TEMPLATE("quantize: memory of any rank is quantized below a known level", S, two_levels,
                   compat::torchao::nvfp4_two_level, compat::transformer_engine::nvfp4,
                   compat::transformer_engine::nvfp4_2d) {
  std::vector<float> x(2 * 20 * 80);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i)) * std::exp2(float(i / 16 % 9) - 6);
  for (int specials = 0; specials < 2; ++specials) {
    for (const float amax : magnitudes) {
      const auto level = tensor_level::of<S>(amax);
      check_same(quantize<S>(source(x.data(), extents(40, 80)), level), by_reference<S>(x, extents(40, 80), level));
      check_same(quantize<S>(source(x.data(), extents(2, 20, 80)), level),
                 by_reference<S>(x, extents(2, 20, 80), level));
      check_same(quantize<S>(source(x.data(), extents(64, 50)), level), by_reference<S>(x, extents(64, 50), level));
    }
    x[100] = infinity, x[1000] = quiet_nan, x[1001] = -infinity;
  }
}

TEST_CASE_TEMPLATE("quantize: scales of both levels that are given, whatever the tensor's is", S, two_levels,
                   compat::torchao::nvfp4_two_level, compat::transformer_engine::nvfp4_2d, along<0, two_levels>) {
  std::vector<float> x(8000);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i)) * std::exp2(float(i / 16 % 9) - 6);
  x[100] = infinity, x[1000] = quiet_nan, x[1001] = -infinity;
  for (const matrix_extents sizes : {matrix_extents(40, 80), matrix_extents(64, 50), matrix_extents(2, 4000)}) {
    tensor<S> got(sizes), want(sizes);
    quantize_into(got, source(x.data(), sizes));
    for (const float scale : {0.f, 1e-44f, 1e-30f, .37f, 1.f, 1e30f, 3e38f, infinity, quiet_nan, -1.f}) {
      INFO(sizes[0], " x ", sizes[1], ", scale ", scale);
      got.set_tensor_scale(scale), want.set_tensor_scale(scale);
      std::copy(got.scales().begin(), got.scales().end(), want.scales().begin());
      reference::quantize_static([&](const auto& i) { return x[static_cast<std::size_t>(i[0] * sizes[1] + i[1])]; },
                                 want.span());
      quantize_static_into(got, source(x.data(), sizes));
      CHECK(std::equal(want.codes().begin(), want.codes().end(), got.codes().begin(), got.codes().end()));
    }
  }
}

TEST_CASE("quantize: the level of memory by columns, dense, with gaps, of few and of many rows") {
  for (const matrix_extents sizes : {matrix_extents(40, 80), matrix_extents(3, 5000), matrix_extents(100, 96),
                                     matrix_extents(5000, 16), matrix_extents(1, 64)})
    for (const index_t gap : {0, 5})
      for (const bool specials : {false, true}) {
        const index_t rows = sizes[0], cols = sizes[1];
        CAPTURE(rows);
        CAPTURE(gap);
        std::vector<float> x(static_cast<std::size_t>(rows * cols)), across((rows + gap) * cols, 1e9f);
        for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i)) * 5.f;
        x[x.size() - 3] = -77.f;
        if (specials) x[x.size() / 2] = infinity, x[x.size() / 3] = quiet_nan;
        for (index_t r = 0; r < rows; ++r)
          for (index_t c = 0; c < cols; ++c) across[c * (rows + gap) + r] = x[r * cols + c];
        const auto t = quantize<two_levels>(source(across.data(), extents(rows, cols), {1, rows + gap}));
        check_same(t, quantize<two_levels>(source(x.data(), extents(rows, cols))));
        CHECK(t.tensor_scale() == tensor_level::of<two_levels>(77.f).scale);
      }
}

TEST_CASE("quantize: expressions, which are read once, and executors take a known level") {
  const Eigen::MatrixXf a = Eigen::MatrixXf::Random(48, 96), b = Eigen::MatrixXf::Random(48, 96);
  const auto level = tensor_level::of<two_levels>(7.f);
  std::vector<float> x;
  for (Eigen::Index row = 0; row < 48; ++row)
    for (Eigen::Index col = 0; col < 96; ++col) x.push_back(2.f * a(row, col) + b(row, col));
  const auto wanted = by_reference<two_levels>(x, matrix_extents(48, 96), level);
  check_same(quantize<two_levels>(2.f * a + b, level), wanted);
  const auto two_parts = parallel_for(2, [](int n, const auto& work) {
    for (int i = 0; i < n; ++i) work(i);
  });
  check_same(quantize<two_levels>(2.f * a + b, on(two_parts), level), wanted);
  tensor<two_levels> t(matrix_extents(48, 96));
  const matrix_ref<const float> rows{x.data(), 48, 96, 96, 1};
  quantize_into(rows, t.span(), level, on(two_parts));
  check_same(t, wanted);
  // The level of the data itself is what dynamic quantization takes.
  float most = 0.f;
  for (const float v : x) most = std::max(most, magnitude(v));
  check_same(quantize<two_levels>(2.f * a + b, tensor_level::of<two_levels>(most)), quantize<two_levels>(2.f * a + b));
}

TEST_CASE("quantize: an empty tensor keeps the tensor scale it is given") {
  const float none = 0.f;
  CHECK(quantize<two_levels>(source(&none, extents(0, 16)), tensor_level::of_scale(3.f)).tensor_scale() == 3.f);
}
