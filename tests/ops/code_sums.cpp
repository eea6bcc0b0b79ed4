// Mirrors include/qtensor/ops/code_sums.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/code_sums.hpp>
#include <qtensor/scheme/schemes.hpp>
#include <vector>

#include "../simd/check.hpp"

using namespace qtensor;

namespace {

template <class S, depth_axis Depth>
void check_sums(index_t rows, index_t cols, index_t group) {
  std::vector<float> numbers(static_cast<std::size_t>(rows * cols));
  for (float& x : numbers) x = static_cast<float>(static_cast<std::int32_t>(check::random_bits()())) * 0x1p-30f;
  const auto [codes, sums] =
      quantize_with_sums<S, row_major, Depth>(source(numbers.data(), extents(rows, cols)), group);
  const auto view = codes.view();
  const bool by_rows = Depth == depth_axis::cols;
  const index_t outputs = by_rows ? rows : cols, depth = by_rows ? cols : rows;
  const index_t each = group == whole ? depth : group, groups = divide_up(depth, each);
  REQUIRE(static_cast<index_t>(sums.size()) == outputs * groups);
  for (index_t o = 0; o < outputs; ++o)
    for (index_t g = 0; g < groups; ++g) {
      std::int32_t sum = 0;
      for (index_t k = g * each; k < std::min((g + 1) * each, depth); ++k)
        sum += static_cast<std::int32_t>(S::code_format::decode(by_rows ? view.code(o, k) : view.code(k, o)));
      REQUIRE(sums[static_cast<std::size_t>(o * groups + g)] == sum);
    }
}

}  // namespace

TEST_CASE("code_sums: signed and unsigned codes of 8 and 4 bits, along either axis, short last groups") {
  for (const index_t group : {index_t{1}, index_t{7}, index_t{32}, whole}) {
    check_sums<int8_per_channel<0>, depth_axis::cols>(5, 70, group);
    check_sums<uint8_per_tensor, depth_axis::cols>(33, 9, group);
    check_sums<uint8_per_tensor, depth_axis::rows>(33, 9, group);
    check_sums<int4_group<32>, depth_axis::cols>(17, 40, group);
    check_sums<uint4_group<32>, depth_axis::cols>(3, 4200, group);
  }
}
TEST_CASE("code_sums: a group of fewer than no elements is refused") {
  const tensor<int8_per_tensor> w(matrix_extents(2, 3));
  CHECK_THROWS_WITH(code_sums(w, -1), "qtensor: code_sums takes groups of -1 elements; a group has at least 1.");
}
