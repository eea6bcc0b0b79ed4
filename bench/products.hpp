// What the benchmarks of products share: a product, who can compute it, and the weights that come from memory.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <new>
#include <qtensor/core/support.hpp>
#include <random>
#include <string>
#include <vector>

namespace bench {

using qtensor::index_t;

/// Arrays that begin on a cache line, as every candidate has its operands and results.
template <class T>
struct line_allocator {
  using value_type = T;
  static constexpr std::align_val_t line{64};
  line_allocator() = default;
  template <class Other>
  line_allocator(const line_allocator<Other>&) {}
  T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), line)); }
  void deallocate(T* memory, std::size_t) { ::operator delete(memory, line); }
  bool operator==(const line_allocator&) const = default;
};
template <class T>
using array = std::vector<T, line_allocator<T>>;

/// What bounds a product: the multiply-adds of a kind of instruction, or reading the weights. Sums of integers over
/// whole rows may be made by matrix registers, where there are some; those over groups are made by vectors.
enum class bound { integer_dot, integer_vectors, bf16_dot, float_fma, reading };

/// M x K by K x N. `weight_bytes` are what a call reads of its weights; with `copies` > 1 every call takes other ones,
/// so that they come from memory.
struct product {
  std::string name;
  index_t m, n, k;
  bound by;
  double weight_bytes = 0.;
  index_t copies = 1;
};

/// One way to compute it: run(copy) with copy below product.copies.
using run_product = std::function<void(index_t copy)>;
void add_candidate(const product& p, const std::string& who, run_product run);

void add_integer_products();
void add_weight_products();
void add_convolutions();
#if defined(BENCH_ONEDNN)
void add_onednn_products();
std::string onednn_version();
#endif
#if defined(BENCH_ONNXRUNTIME)
void add_onnxruntime_products();
std::string onnxruntime_version();
#endif
#if defined(BENCH_GGML)
void add_ggml_products();
std::string ggml_version();
#endif

/// The shapes of integer products that everybody computes.
inline const std::vector<product>& integer_shapes() {
  static const std::vector<product> all = {
      {"int8 x int8", 128, 1024, 1024, bound::integer_dot},
      {"int8 x int8", 512, 512, 512, bound::integer_dot},
      {"int8 x int8", 1024, 1024, 1024, bound::integer_dot},
      {"int8 x int8", 128, 4096, 11008, bound::integer_dot},
      {"int8 x int8", 16, 4096, 4096, bound::integer_dot},
      {"int8 x int8", 16, 4096, 4096, bound::integer_dot, 0, 12},
      {"int8 x int8", 8, 4096, 4096, bound::integer_dot, 0, 12},
      {"int8 x int8", 1, 512, 1024, bound::reading, 512. * 1024},
      {"int8 x int8", 1, 4096, 4096, bound::reading, 4096. * 4096},
      {"int8 x int8", 1, 4096, 4096, bound::reading, 4096. * 4096, 12},
  };
  return all;
}
/// A convolution of one picture, height and width alike in everything.
struct convolution_problem {
  const char* name;
  index_t side, inputs, outputs, taps, stride, padding, groups;

  index_t result_side() const { return (side + 2 * padding - taps) / stride + 1; }
  index_t group_inputs() const { return inputs / groups; }
  product as_product() const {
    return {name, result_side() * result_side(), outputs, taps * taps * group_inputs(), bound::integer_dot};
  }
};
/// Those that everybody computes: what networks begin with, what they are made of.
inline const std::vector<convolution_problem>& convolution_problems() {
  static const std::vector<convolution_problem> all = {
      {"conv 56x56x64 k3", 56, 64, 64, 3, 1, 1, 1},
      {"conv 224x224x3 k3 stride 2", 224, 3, 32, 3, 2, 1, 1},
      {"conv 56x56x256 k1", 56, 256, 64, 1, 1, 0, 1},
      {"conv 28x28x512 k1 stride 2", 28, 512, 1024, 1, 2, 0, 1},
      {"conv 56x56x24 k1", 56, 24, 144, 1, 1, 0, 1},
      {"conv 64x64x64 k1", 64, 64, 64, 1, 1, 0, 1},
      {"conv 14x14x512 k3, 32 groups", 14, 512, 512, 3, 1, 1, 32},
      {"conv 56x56x144 k3, depthwise", 56, 144, 144, 3, 1, 1, 144},
      {"conv 112x112x96 k3 stride 2, depthwise", 112, 96, 96, 3, 2, 1, 96},
  };
  return all;
}
/// Those of weight-only products; `weight_bytes` are left to who knows them.
inline std::vector<product> weight_shapes(const std::string& name) {
  return {{name, 1, 512, 1024, bound::reading},           {name, 1, 4096, 4096, bound::reading, 0, 24},
          {name, 8, 4096, 4096, bound::reading, 0, 24},   {name, 16, 4096, 4096, bound::reading, 0, 24},
          {name, 16, 1024, 1024, bound::integer_vectors}, {name, 128, 1024, 1024, bound::integer_vectors}};
}
inline std::string title(const product& p) {
  return p.name + "/" + std::to_string(p.m) + "x" + std::to_string(p.n) + "x" + std::to_string(p.k) +
         (p.copies > 1 ? " from memory" : "");
}

/// The same numbers in every run, in [-1, 1).
inline array<float> random_floats(index_t count) {
  static std::mt19937 engine(20240229);
  array<float> out(static_cast<std::size_t>(count));
  for (float& x : out) x = static_cast<float>(static_cast<std::int32_t>(engine())) * 0x1p-31f;
  return out;
}

}  // namespace bench
