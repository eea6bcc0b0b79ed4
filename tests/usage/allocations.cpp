// What allocates: products and assignments as little as dense Eigen, quantize nothing of its expression's size.
// SPDX-License-Identifier: BSD-3-Clause
#include <cstdlib>
#include <new>
#include <qtensor/qtensor.hpp>

#include "../expr/check.hpp"

// Counting needs glibc, whose malloc can be replaced, and no sanitizer that replaces it as well.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COUNTS_ALLOCATIONS 0
#elif defined(__has_feature)
#define COUNTS_ALLOCATIONS (!__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer))
#elif defined(__GLIBC__)
#define COUNTS_ALLOCATIONS 1
#else
#define COUNTS_ALLOCATIONS 0
#endif

#if COUNTS_ALLOCATIONS && defined(__GLIBC__)

namespace {
int allocations = 0;
std::size_t largest = 0;
void count(std::size_t bytes) {
  ++allocations;
  if (bytes > largest) largest = bytes;
}
}  // namespace

// Eigen asks malloc, tensors and the standard library ask operator new; glibc lets us stand before both.
extern "C" void* __libc_malloc(std::size_t);
extern "C" void* __libc_memalign(std::size_t, std::size_t);
extern "C" void* malloc(std::size_t bytes) {
  count(bytes);
  return __libc_malloc(bytes);
}
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  count(bytes);
  return __libc_memalign(alignment, bytes);
}

namespace qt = qtensor;
using namespace Eigen;

#define ALLOCATIONS(statement)    \
  [&] {                           \
    allocations = 0, largest = 0; \
    statement;                    \
    return allocations;           \
  }()

TEST_CASE("allocations: the counter counts") {
  CHECK(ALLOCATIONS(MatrixXf(30, 30).setZero()) == 1);
  CHECK(ALLOCATIONS(qt::tensor<qt::mxfp4>(qt::matrix_extents(30, 32))) == 1);
}

TEST_CASE("allocations: matrix times vector, as many as dense Eigen makes") {
  const MatrixXf A = check::numbers(96, 300);
  const auto W = qt::quantize<qt::int4_group<32>>(A);
  const auto w = qt::dequantize(W);
  const VectorXf x = check::numbers(300, 1, 1), b = check::numbers(96, 1, 2), q = check::numbers(96, 1, 3);
  VectorXf y = b, z(300);
  const float s = 2.f;
  CHECK(ALLOCATIONS(y.noalias() = W * x) == 0);
  CHECK(ALLOCATIONS(y.noalias() += W * x) == 0);
  CHECK(ALLOCATIONS(y.noalias() -= W * x) == 0);
  CHECK(ALLOCATIONS(y.noalias() = s * (W * x)) == 0);
  CHECK(ALLOCATIONS(y.noalias() = b + W * x) == 0);
  CHECK(ALLOCATIONS(y.noalias() = b - W * x) == 0);
  CHECK(ALLOCATIONS(z.noalias() = w.transpose() * q) == 0);
  CHECK(ALLOCATIONS(y.head(32).noalias() = w.topRows(32) * x) == 0);
  CHECK(ALLOCATIONS(y = W * x) == 1);
  CHECK(ALLOCATIONS(y += W * x) == 1);
  CHECK(ALLOCATIONS(y.noalias() = W * x + b) == 1);
  CHECK(ALLOCATIONS(y.noalias() = (W * x + b).cwiseMax(0.f)) == 1);
  CHECK(ALLOCATIONS(y.noalias() = W * (x + x)) == 1);
}

TEST_CASE("allocations: matrix times matrix takes at most one workspace beside Eigen's temporary") {
  const auto W = qt::quantize<qt::int4_group<32>>(check::numbers(96, 300));
  const MatrixXf X = check::numbers(300, 40, 1);
  const VectorXf b = check::numbers(96, 1, 2);
  MatrixXf Y = MatrixXf::Zero(96, 40);
  CHECK(ALLOCATIONS(Y.noalias() = W * X) <= 1);
  CHECK(ALLOCATIONS(Y.noalias() += W * X) <= 1);
  CHECK(ALLOCATIONS(Y.noalias() = (W * X).colwise() + b) <= 2);
}

TEST_CASE("allocations: so many outputs that panels are packed on every architecture") {
  const auto W = qt::quantize<qt::int4_group<32>>(check::numbers(256, 300));
  const auto V = qt::quantize<qt::int8_per_tensor>(check::numbers(200, 256));
  const VectorXf x = check::numbers(300, 1, 1), q = check::numbers(200, 1, 2);
  const MatrixXf X = check::numbers(300, 40, 3);
  VectorXf y = VectorXf::Zero(256);
  MatrixXf Y = MatrixXf::Zero(256, 40);
  CHECK(ALLOCATIONS(y.noalias() = W * x) == 0);
  CHECK(ALLOCATIONS(y.noalias() += W * x) == 0);
  CHECK(ALLOCATIONS(y.noalias() -= qt::dequantize(V).transpose() * q) == 0);
  CHECK(ALLOCATIONS(Y.noalias() = W * X) <= 1);
  CHECK(ALLOCATIONS(Y.noalias() += W * X) <= 1);
}

TEST_CASE("allocations: dequantizing and elementwise expressions make none") {
  const auto W = qt::quantize<qt::mxfp8_e4m3>(check::numbers(96, 300));
  const auto w = qt::dequantize(W);
  MatrixXf Y = MatrixXf::Zero(96, 300), T = MatrixXf::Zero(300, 96);
  check::row_matrix R = Y;
  CHECK(ALLOCATIONS(Y = w) == 0);
  CHECK(ALLOCATIONS(R = w) == 0);
  CHECK(ALLOCATIONS(T = w.transpose()) == 0);
  CHECK(ALLOCATIONS(Y += W) == 0);
  CHECK(ALLOCATIONS(R -= 2.f * W) == 0);
  CHECK(ALLOCATIONS(R = (W + R).cwiseMax(0.f)) == 0);
}

TEST_CASE("allocations: quantize allocates the tensor and nothing of the expression's size") {
  const MatrixXf A = check::numbers(256, 1024), B = A;
  const std::size_t floats = 256 * 1024 * sizeof(float);
  // Across the expression's own order a box of it is copied, of the size of a cache.
  CHECK(ALLOCATIONS(qt::quantize<qt::mxfp4>(A * 2 + B)) <= 2);
  CHECK(largest < floats / 4);
  CHECK(ALLOCATIONS(qt::quantize<qt::int4_group<32>>(A.transpose())) == 1);
  CHECK(ALLOCATIONS(qt::quantize<qt::int8_per_tensor>(A * 2 + B)) >= 1);
  CHECK(largest < floats / 2);
  CHECK(ALLOCATIONS(qt::quantize<qt::mxfp8_e4m3>(A.leftCols(8) * A.topRows(8) + B)) >= 2);  // the product inside, once
  CHECK(largest < floats + 4096);
}

#endif
