// Mirrors include/qtensor/expr/fake_quantize.hpp: dequantize(quantize<S>(expression)) as a plain matrix.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/expr/dequantized.hpp>
#include <qtensor/expr/fake_quantize.hpp>

#include "check.hpp"
#include "core/sentence.hpp"

using namespace qtensor;

TEST_CASE("fake_quantize: an expression as it comes back from a tensor") {
  const Eigen::MatrixXf a = check::numbers(70, 40), b = check::numbers(70, 40, 1);
  const Eigen::MatrixXf y = fake_quantize<mxfp8_e4m3>(a + 2.f * b);
  CHECK(y == Eigen::MatrixXf(check::values(quantize<mxfp8_e4m3>(a + 2.f * b))));
  const check::row_matrix r = a;
  CHECK(fake_quantize<int8_per_channel<0>>(r) == check::values(quantize<int8_per_channel<0>>(r)));
  static_assert(decltype(fake_quantize<mxfp4>(r))::IsRowMajor);
  CHECK(fake_quantize<mxfp8_e4m3>(a + 2.f * b, on(parallel_for(2, [](index_t count, const auto& part) {
                                    for (index_t i = count; i-- > 0;) part(i);
                                  }))) == y);
}

TEST_CASE("fake_quantize: codes of either order, of expressions and of memory") {
  const check::row_matrix a = check::numbers(70, 40);
  const auto same = [&]<class S>(S, const auto&... how) {
    const Eigen::MatrixXf want = check::values(quantize<S, col_major>(a, how...));
    CHECK(fake_quantize<S, col_major>(a, how...) == want);
    const std::vector<float> of_memory = fake_quantize<S, col_major>(source(a.data(), extents(70, 40)), how...);
    CHECK(Eigen::Map<const check::row_matrix>(of_memory.data(), 70, 40) == want);
  };
  same(mxfp4{});
  same(int8_per_channel<0>{});
  same(uint8_per_tensor{}, 0.1f, 3);
  using parts = with<int8_per_tensor, block<35, 10>>;
  const Eigen::Array<float, 2, 4, Eigen::RowMajor> scales = Eigen::Array<float, 2, 4, Eigen::RowMajor>::Random() + 2.f;
  CHECK(fake_quantize<parts, col_major>(a, scales) ==
        Eigen::MatrixXf(check::values(quantize<parts>(a, scales))));
}

TEST_CASE("fake_quantize: vectors, fixed sizes, half and bfloat16, scales and zero points") {
  const Eigen::VectorXf v = check::numbers(50, 1);
  CHECK(fake_quantize<int8_per_tensor>(v) == Eigen::VectorXf(check::values(quantize<int8_per_tensor>(v))));
  const Eigen::RowVectorXf w = v.transpose();
  CHECK(fake_quantize<mxfp4>(w) == Eigen::RowVectorXf(check::values(quantize<mxfp4>(w))));
  const Eigen::Matrix3f m = check::numbers(3, 3);
  CHECK(fake_quantize<uint8_per_tensor>(m, 0.1f, 3) ==
        Eigen::Matrix3f(check::values(quantize<uint8_per_tensor>(m, 0.1f, 3))));
  const Eigen::Matrix<Eigen::bfloat16, 3, 3> h = m.cast<Eigen::bfloat16>();
  CHECK(fake_quantize<int8_per_tensor>(h) == fake_quantize<int8_per_tensor>(h.cast<float>()));
  const Eigen::Vector3f scales(0.5f, 0.25f, 0.125f);
  CHECK(fake_quantize<int8_per_channel<0>>(m, scales) ==
        Eigen::Matrix3f(check::values(quantize<int8_per_channel<0>>(m, scales))));
  using sized = with<int8_per_tensor, group<dynamic>>;
  CHECK(fake_quantize<sized>(w, group<dynamic>(10)) ==
        Eigen::RowVectorXf(check::values(quantize<sized>(w, group<dynamic>(10)))));
}

TEST_CASE("fake_quantize: refusals are those of quantize") {
  const Eigen::Matrix3f m = check::numbers(3, 3);
  CHECK(sentence([&] { fake_quantize<int8_per_tensor>(m, 0.f); }) ==
        "qtensor: scale 0 is 0; a scale must be finite and positive.");
}
