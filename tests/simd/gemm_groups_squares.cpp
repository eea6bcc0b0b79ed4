// Mirrors include/qtensor/simd/gemm_groups_squares.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>
#include <qtensor/simd/gemm_groups_squares.hpp>

#include "groups_check.hpp"

namespace simd = qtensor::simd;
using qtensor::index_t;

namespace {

template <class A>
void check_squares(const check::group_shape& s) {
  constexpr index_t cols = simd::group_tile<A>::columns, edge = simd::square_edge;
  const index_t quads = s.groups * s.quads, high = qtensor::round_up(s.rows, edge), stride = 4 * quads + 4;
  // Weights and units end where they may be read to.
  check::fenced<std::uint8_t> codes(2 * quads * 4 * edge);
  for (index_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint8_t>(check::random_bits()());
  check::fenced<std::int8_t> units((high - 1) * stride + 4 * quads);
  for (index_t i = 0; i < units.size(); ++i) units[i] = 77;
  check::group_case<A> product{s, cols};
  for (auto* entries : {&product.sum_factors, &product.row_zero_factors}) entries->resize(entries->size() + edge);
  for (auto* entries : {&product.scales, &product.terms}) entries->resize(entries->size() + edge);
  for (index_t r = 0; r < s.rows; ++r)
    std::memcpy(units.data() + r * stride, product.signed_codes.data() + r * product.stride,
                static_cast<std::size_t>(4 * quads));
  simd::group_squares<A> squares(s.quads);
  { const typename simd::square_unit<A>::session others; }  // who take and leave the registers
  simd::run_requests next{codes.data(), 0, 1 << 20, 64};
  squares.dot(product.columns(codes.data(), 4 * edge, nullptr), product.rows(units.data(), stride), s.rows, s.groups,
              product.place(), next);
  CHECK(next.asked == 64 * s.groups);
  product.require_sums(
      [&](index_t g, index_t k, index_t c) -> std::int32_t {
        const index_t quad = c / edge * quads + g * s.quads + k / 4;
        return static_cast<std::int8_t>(codes[(quad * edge + c % edge) * 4 + k % 4]);
      },
      [](index_t, index_t) { return 0; });
}

}  // namespace

TEST_CASE("fits_group_squares: which groups are whole steps") {
  for (const index_t quads : {4, 5, 8, 16, 32, 48, 256}) CHECK(simd::fits_group_squares(quads));
  for (const index_t quads : {1, 2, 3, 17, 20, 40}) CHECK(!simd::fits_group_squares(quads));
}
TEST_CASE(
    "group_squares: every sum as dot_groups has it, in any number of rows, and nothing beyond is read or written") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    if constexpr (simd::square_unit<A>::exists) {
      if (!simd::uses_squares<A>()) return;
      int round = 0;
      for (const index_t rows : {1, 15, 16, 17, 31, 32, 33, 70})
        for (const index_t groups : {1, 2, 3, 4, 5, 9})
          for (const index_t quads : {4, 5, 8, 16, 32})
            check_squares<A>(check::numbered_shape(rows, groups, quads, round += 11));
      for (round = 0; round < 128; ++round) check_squares<A>(check::numbered_shape(19, 6, 4, round));
    }
  });
}
TEST_CASE("prefers_group_squares: where they suit or are asked for, and are there") {
  simd::archs::for_each([](auto arch) {
    using A = decltype(arch);
    CHECK(simd::prefers_group_squares<A>(true) == simd::uses_squares<A>());
    CHECK(!simd::prefers_group_squares<A>(false));
    simd::group_way_taken = simd::group_way::squares;
    CHECK(simd::prefers_group_squares<A>(false) == simd::uses_squares<A>());
    simd::group_way_taken = simd::group_way::ready;
    CHECK(!simd::prefers_group_squares<A>(true));
    simd::group_way_taken = simd::group_way::fastest;
  });
}
