// Mirrors include/qtensor/tensor/tensor.hpp: static extents need no heap and work in constant expressions.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <cstdlib>
#include <new>
#include <qtensor/compat/ggml.hpp>
#include <qtensor/scheme/schemes.hpp>
#include <qtensor/tensor/tensor.hpp>

#include "tensor/numbered.hpp"

using namespace qtensor;

namespace {

int allocations = 0;

template <class Make>
int allocations_of(Make make) {
  const int before = allocations;
  make();
  return allocations - before;
}

/// Made, filled, copied and read by the compiler.
constexpr auto made() {
  tensor<uint4_group<2>, extents<2, 4>> t;
  for (index_t row = 0; row < 2; ++row)
    for (index_t col = 0; col < 4; ++col) {
      t.span().set_storage_code({row, col}, static_cast<std::uint32_t>(4 * row + col));
      t.span().set_storage_scale_code({row, col}, bits_of(static_cast<float>(1 + row * 2 + col / 2)));
      t.span().set_storage_zero_point({row, col}, row);
    }
  const auto copy = t;
  return copy;
}
constexpr auto constant = made();
static_assert(constant.code(1, 3) == 7 && constant.scale(1, 3) == 4.f && constant.zero_point(1, 0) == 1 &&
              constant.codes()[3] == 0x76);
static_assert(reference::value(constant.view(), {1, 3}) == 24.f && constant.view().slice<1>(2, 2).code(1, 1) == 7);
static_assert(constant.byte_size() == 4 + 16 + 4 && constant.rows() == 2);

constexpr tensor<mxfp4, extents<2, 32>> zeros;
static_assert(zeros.scale(1, 31) == 1.f && zeros.code(0, 0) == 0);

// Quantized by the compiler: codes and scale of NUMERICS 3.
constexpr auto quantized_by_the_compiler = [] {
  tensor<mxfp8_e4m3, extents<4>> t;
  constexpr float x[] = {1.f, -1.f, 1.5f, 0.125f};
  reference::quantize([&](const auto& i) { return x[i[0]]; }, t.span());
  return t;
}();
static_assert(quantized_by_the_compiler.codes()[0] == 0x78 && quantized_by_the_compiler.codes()[1] == 0xF8 &&
              quantized_by_the_compiler.codes()[2] == 0x7C && quantized_by_the_compiler.codes()[3] == 0x60 &&
              quantized_by_the_compiler.scales()[0] == 119);

constexpr auto block_layout = [] {
  tensor<compat::ggml::q8_0, extents<32>> t;
  t.span().set_storage_code({31}, 0x81);
  return t;
}();
static_assert(block_layout.blocks().size() == 34 && block_layout.blocks()[33] == 0x81 && block_layout.scale(0) == 1.f);

static_assert(tensor<mxfp4, extents<2, 32>>::is_inline && !tensor<mxfp4>::is_inline &&
              !tensor<mxfp4, extents<dynamic, 32>>::is_inline);
static_assert(!tensor<scheme<int8, group<dynamic>>, extents<2, 32>>::is_inline);
static_assert(alignof(tensor<mxfp4, extents<2, 32>>) == 64);

}  // namespace

void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* p = std::malloc(bytes == 0 ? 1 : bytes)) return p;
  throw std::bad_alloc();
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  ++allocations;
  const std::size_t line = static_cast<std::size_t>(alignment);
  if (void* p = std::aligned_alloc(line, (bytes + line - 1) / line * line)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

TEST_CASE("static extents: no heap, for making, copying, moving, viewing and slicing") {
  CHECK(allocations_of([] {
          tensor<uint4_group<32>, extents<8, 64>> t;
          auto copy = t;
          auto moved = std::move(copy);
          copy = moved;
          (void)moved.view().middle_rows(2, 3).code(1, 1);
        }) == 0);
}

TEST_CASE("dynamic extents: one allocation a tensor, none for a move, a view or an empty tensor") {
  CHECK(allocations_of([] { tensor<uint4_group<32>> t(matrix_extents(8, 64)); }) == 1);
  CHECK(allocations_of([] { tensor<with<nvfp4, tensor_scale<f32>>> t(matrix_extents(8, 64)); }) == 1);
  CHECK(allocations_of([] { tensor<uint4_group<32>> t(matrix_extents(0, 64)); }) == 0);
  CHECK(allocations_of([] { tensor<uint4_group<32>> t; }) == 0);
  CHECK(allocations_of([] {
          tensor<with<mxfp4, mx_rceil>> t(matrix_extents(8, 64));
          const tensor<mxfp4> moved = std::move(t);
          (void)moved.view().middle_cols(32, 3).code(1, 1);
        }) == 1);
}

TEST_CASE("static extents: elements, copies and what a move leaves") {
  auto t = numbered<uint4_group<8>>(extents<3, 20>());
  const auto copy = t;
  CHECK(shows(copy.view(), t.view(), {0, 0}));
  const auto moved = std::move(t);
  CHECK(shows(moved.view(), copy.view(), {0, 0}));
  CHECK(t.size() == 60);
  CHECK(constant.view().code(1, 2) == 6);
  const tensor<mxfp4, extents<0, 32>> none;
  CHECK(none.size() == 0);
  CHECK(none.codes().empty());
}

TEST_CASE("static extents: arrays start on a line of 64 bytes") {
  const tensor<int8_per_tensor, extents<3, 5>> t;
  CHECK(reinterpret_cast<std::uintptr_t>(t.codes().data()) % 64 == 0);
}
