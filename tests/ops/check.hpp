// What the tests of whole-tensor operations share: random matrices with awkward values, and comparison with the
// reference. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <qtensor/ops/dequantize.hpp>
#include <qtensor/scheme/schemes.hpp>
#include <random>
#include <string>
#include <vector>

#include "../main/in_full.hpp"

namespace check {

using namespace qtensor;

/// Log-uniform magnitudes of both signs; `awkward` mixes in zeros, ties, subnormals and huge numbers.
inline std::vector<float> numbers(index_t n, unsigned seed, bool awkward = true) {
  std::mt19937 random(seed);
  std::vector<float> x(static_cast<std::size_t>(n));
  for (float& v : x) {
    const std::uint32_t r = random();
    const float size = exp2i(static_cast<int>(r % 14) - 7) * (1.f + static_cast<float>(random() % 4096) / 4096.f);
    v = (r >> 20 & 1) != 0 ? -size : size;
    if (awkward && r % 37 == 0) v = static_cast<float>(static_cast<int>(random() % 9) - 4) * 0.5f;
    if (awkward && r % 101 == 0) v = float_of((random() & sign_bit) | (random() % 3 == 0 ? 3u : 0x7e000000u));
    if (awkward && r % 53 == 0) v = -0.f;
  }
  return x;
}

/// A dense source over storage rows that answers only through read(), tile by tile, as an expression of the other order
/// would.
struct tiled_source {
  matrix_ref<const float> ref;
  static constexpr bool reads_rows = false;
  static constexpr bool reads_twice = false;
  index_t rows() const { return ref.rows(); }
  index_t cols() const { return ref.cols(); }
  const float* direct(index_t, index_t) const { return nullptr; }
  void read(index_t row, index_t rows, index_t col, index_t cols, float* tile, index_t stride) const {
    ref.read(row, rows, col, cols, tile, stride);
  }
};

/// The scalar reference's tensor for the same numbers, dense in row-major order of the axes.
template <quantization_scheme S, storage_order Order, tensor_extents E, class... Sized>
tensor<S, E, Order> expected(const std::vector<float>& x, const E& extents, const Sized&... granularity) {
  tensor<S, E, Order> out(extents, granularity...);
  reference::quantize(
      [&](const typename E::array& index) {
        index_t at = 0;
        for (int axis = 0; axis < E::rank; ++axis) at = at * extents[axis] + index[static_cast<std::size_t>(axis)];
        return x[static_cast<std::size_t>(at)];
      },
      out.span());
  return out;
}

template <class T>
std::vector<unsigned char> bytes_of(const T& items) {
  const auto* first = reinterpret_cast<const unsigned char*>(items.data());
  return {first, first + items.size() * sizeof(*items.data())};
}

/// Same codes, scales and zero points, byte for byte.
template <class A, class B>
bool same_bytes(const A& a, const B& b) {
  if constexpr (A::scheme_type::is_interleaved)
    return bytes_of(a.blocks()) == bytes_of(b.blocks());
  else {
    if (bytes_of(a.codes()) != bytes_of(b.codes()) || bytes_of(a.scales()) != bytes_of(b.scales())) return false;
    if constexpr (A::scheme_type::has_offset)
      for (index_t i = 0; i < a.shape().scale_count(); ++i)
        if (std::memcmp(a.view().memory().offsets + i, b.view().memory().offsets + i,
                        sizeof *a.view().memory().offsets) != 0)
          return false;
    if constexpr (A::scheme_type::has_zero_point)
      return bytes_of(a.zero_points()) == bytes_of(b.zero_points());
    else
      return a.tensor_scale() == b.tensor_scale();
  }
}

}  // namespace check
