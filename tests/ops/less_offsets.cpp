// Mirrors include/qtensor/ops/less_offsets.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/less_offsets.hpp>

#include "check.hpp"

using namespace qtensor;

namespace {

/// Numbers under the scales and offsets of other ones: codes equal the reference, from memory of every order and type.
template <quantization_scheme S, storage_order O = row_major, tensor_extents E>
void check_static(const E& shape) {
  const std::vector<float> x = check::numbers(shape.size(), 3);
  auto want = check::expected<S, O>(check::numbers(shape.size(), 4), shape), got = want, halves = want;
  reference::quantize_static(
      [&](const auto& i) {
        index_t at = 0;
        for (std::size_t axis = 0; axis < i.size(); ++axis) at = at * shape[static_cast<int>(axis)] + i[axis];
        return x[static_cast<std::size_t>(at)];
      },
      want.span());
  quantize_static_into(got, source(x.data(), shape));
  INFO(std::string(name<S>));
  CHECK(check::same_bytes(got, want));

  std::vector<std::uint16_t> narrow;
  std::vector<float> wide;
  for (const float v : x) {
    narrow.push_back(static_cast<std::uint16_t>(encode<bf16>(v)));
    wide.push_back(decode<bf16>(narrow.back()));
  }
  quantize_static_into(halves, source<bf16>(narrow.data(), shape));
  quantize_static_into(got, source(wide.data(), shape));
  CHECK(check::same_bytes(halves, got));
}

}  // namespace

TEST_CASE("less_offsets: static quantization under scales and offsets, in every granularity and order") {
  check_static<scheme<uint4, group<32>, scale_as<f16>, offset<f16>, offset_min_max>>(matrix_extents(5, 70));
  check_static<scheme<uint4, group<32>, scale_as<f16>, offset<f16>, offset_min_max>, col_major>(matrix_extents(70, 6));
  check_static<scheme<uint8, per_channel<0>, offset<f32>, offset_min_max>>(matrix_extents(7, 1100));
  check_static<scheme<uint8, per_channel<1>, offset<f32>, offset_min_max>>(matrix_extents(40, 33));
  check_static<scheme<uint8, per_tensor, offset<f32>, offset_min_max>>(extents(3, 5, 40));
  check_static<scheme<uint4, group<5>, offset<bf16>, offset_min_max, planar<high_first>>>(matrix_extents(5, 31));
  check_static<scheme<uint4, block<4, 6>, offset<f32>, offset_min_max, stochastic<1>>>(matrix_extents(9, 31));
}

TEST_CASE("less_offsets: across the order of the codes, and numbers that are no numbers") {
  using S = scheme<uint8, group<16>, offset<f32>, offset_min_max>;
  const matrix_extents shape(6, 40);
  std::vector<float> x = check::numbers(shape.size(), 3);
  x[7] = infinity, x[50] = -infinity, x[77] = quiet_nan;
  std::vector<float> turned(x.size());
  for (index_t r = 0; r < 6; ++r)
    for (index_t c = 0; c < 40; ++c)
      turned[static_cast<std::size_t>(c * 6 + r)] = x[static_cast<std::size_t>(r * 40 + c)];
  auto want = check::expected<S, row_major>(check::numbers(shape.size(), 4), shape), got = want;
  reference::quantize_static([&](const auto& i) { return x[static_cast<std::size_t>(i[0] * 40 + i[1])]; }, want.span());
  quantize_static_into(got, source(turned.data(), shape, {1, 6}));
  CHECK(check::same_bytes(got, want));
}
