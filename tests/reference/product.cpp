// Mirrors include/qtensor/reference/product.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <array>
#include <qtensor/reference/product.hpp>
#include <vector>

using qtensor::index_t;

namespace {

struct activations {
  std::vector<int> numbers;
  std::vector<float> scales;
  index_t group;
  bool one_scale;
  int number(index_t k) const { return numbers[static_cast<std::size_t>(k)]; }
  float scale(index_t k) const { return scales[static_cast<std::size_t>(k / group)]; }
};
struct weights : activations {
  float unit = 1.f, tensor_scale = 1.f;
  bool has_offset = false, has_tensor_scale = false;
  std::vector<float> offsets{};
  float offset(index_t k) const { return offsets[static_cast<std::size_t>(k / group)]; }
};

}  // namespace

TEST_CASE("integer_dot: exact where 32 bits and floats are not") {
  const activations x{std::vector<int>(70000, 255), {1.f}, 70000, true};
  CHECK(qtensor::reference::integer_dot(x, x, 0, 70000) == 4551750000);
  CHECK(qtensor::reference::integer_dot(x, x, 7, 8) == 65025);
  CHECK(qtensor::reference::integer_dot(x, x, 3, 3) == 0);
}
TEST_CASE("integer_product: the sum is rounded, then multiplied by x's scale, then by w's") {
  // NUMERICS 5.3: (1 - 1) * 1 + (2 - 1) * -1 + (3 - 1) * 2 + (4 - 1) * -2 = -3
  const activations x{{0, 1, 2, 3}, {0.5f}, 4, true}, w{{1, -1, 2, -2}, {0.25f}, 4, true};
  CHECK(qtensor::reference::integer_product(x, w, 4) == -0.375f);
  CHECK(qtensor::reference::integer_product(x, w, 0) == 0.f);
  const float a = 1.1f, b = 1.3f, once = qtensor::rounded(3.f * a);
  CHECK(qtensor::reference::scaled_sum(3, a, b) == qtensor::rounded(once * b));
  CHECK(qtensor::reference::scaled_sum(16777217, 1.f, 1.f) == 16777216.f);  // ties to even
  CHECK(qtensor::reference::scaled_sum(16777219, 1.f, 1.f) == 16777220.f);
}
TEST_CASE("group_product: a chain over groups, the last one short, with a scale of x for each") {
  const activations x{{1, 2, 3, 4, 5}, {0.5f, 2.f, 4.f}, 2, false};
  const weights w{{{1, 1, -1, 1, 3}, {10.f, 1.f, 0.5f}, 2, true}};
  CHECK(qtensor::reference::group_product(x, w, 5, 2) == 3.f * 5.f + 1.f * 2.f + 15.f * 2.f);
  CHECK(qtensor::reference::group_product(x, w, 0, 2) == 0.f);
}
TEST_CASE("group_product: the product of the scales is rounded before the chain, a row's scale after it") {
  const float s = 1.1f, p = 1.7f, q = 0.3f;
  const weights w{{{1, 1}, {p, q}, 1, true}};
  const activations each{{3, 5}, {s, s}, 1, false}, row{{3, 5}, {s, s}, 1, true};
  CHECK(qtensor::reference::group_product(each, w, 2, 1) ==
        std::fma(5.f, qtensor::rounded(s * q), qtensor::rounded(3.f * qtensor::rounded(s * p))));
  CHECK(qtensor::reference::group_product(row, w, 2, 1) ==
        qtensor::rounded(std::fma(5.f, q, qtensor::rounded(3.f * p)) * s));
}
TEST_CASE("group_product: units, offsets and the scale of the tensor") {
  for (const bool one_scale : {false, true}) {
    const activations x{{1, 2, 3, 4}, {2.f, 2.f}, 2, one_scale};
    weights w{{{2, 4, 6, 8}, {1.f, 4.f}, 2, true}};
    w.unit = 0.5f;  // the weights are 1 2 and 12 16
    CHECK(qtensor::reference::group_product(x, w, 4, 2) == 2.f * (1 + 4 + 36 + 64));
    w.has_offset = true, w.offsets = {10.f, -1.f};  // 11 12 and 11 15
    CHECK(qtensor::reference::group_product(x, w, 4, 2) == 2.f * (11 + 24 + 33 + 60));
    w.has_tensor_scale = true, w.tensor_scale = 0.25f;
    CHECK(qtensor::reference::group_product(x, w, 4, 2) == 0.5f * (11 + 24 + 33 + 60));
  }
}
