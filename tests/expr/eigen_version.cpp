// Mirrors include/qtensor/expr/eigen_version.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <qtensor/expr/eigen_version.hpp>
#include <string>

using namespace Eigen;
namespace ours = qtensor::expr_detail;

TEST_CASE("eigen: the generation is the one whose headers are included") {
  CHECK(qtensor::eigen_generation == (EIGEN_MAJOR_VERSION >= 5 ? 5 : EIGEN_WORLD_VERSION));
}

TEST_CASE("eigen: only what lies in memory has memory") {
  static_assert(ours::has_memory<MatrixXf> && ours::has_memory<Map<const VectorXf>> && ours::has_memory<Ref<MatrixXf>>);
  static_assert(ours::has_memory<Block<MatrixXf>> && ours::has_memory<Transpose<const MatrixXf>>);
  static_assert(!ours::has_memory<decltype(std::declval<MatrixXf>() + std::declval<MatrixXf>())>);
  static_assert(!ours::has_memory<decltype(std::declval<MatrixXf&>().reverse())>);
  MatrixXf m(3, 5);
  const auto t = m.transpose();
  CHECK(t.derived().rowStride() == 3);
  CHECK(t.derived().colStride() == 1);
}

TEST_CASE("eigen: packets hold what their registers hold, and eigen objects are told from other classes") {
  CHECK(ours::packet_lanes ==
        (internal::packet_traits<float>::Vectorizable ? internal::packet_traits<float>::size : 1));
  static_assert(ours::eigen_object<MatrixXf> && ours::eigen_object<ArrayXXd> &&
                ours::eigen_object<DiagonalMatrix<float, 3>>);
  static_assert(!ours::eigen_object<float> && !ours::eigen_object<std::string>);
}
