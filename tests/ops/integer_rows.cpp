// Mirrors include/qtensor/ops/integer_rows.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/integer_rows.hpp>
#include <qtensor/scheme/schemes.hpp>
#include <vector>

#include "../simd/check.hpp"

namespace simd = qtensor::simd;
using namespace qtensor;

TEST_CASE("integer_rows: units, sums, zero points and scales of some rows, again and again") {
  using S = uint8_per_channel<0>;
  for (const index_t depth : {1, 4, 63, 64, 130}) {
    tensor<S> x(matrix_extents(40, depth));
    for (auto& c : x.codes()) c = static_cast<std::uint8_t>(check::random_bits()());
    for (auto& s : x.scales()) s = 0.5f * static_cast<float>(1 + check::random_below(9));
    for (auto& z : x.zero_points()) z = 3;
    x.zero_points()[20] = 200;
    const auto view = std::as_const(x).view();
    const ops::weights_of<std::remove_const_t<decltype(view)>, depth_axis::cols> rows(view);
    check::archs::for_each([&](auto arch) {
      using A = decltype(arch);
      using dot = simd::quad_dot<A>;
      ops::integer_rows<A> units(33, depth);
      CHECK(reinterpret_cast<std::uintptr_t>(units.row(0)) % 64 == 0);
      CHECK(units.stride() * index_t{sizeof(typename dot::unit)} % 64 == 0);
      for (const index_t first : {0, 7}) {
        units.fill(rows, first, 33);
        CHECK(!units.has_one_zero());
        for (index_t r = 0; r < 33; ++r) {
          std::vector<std::uint8_t> codes(static_cast<std::size_t>(depth));
          std::int32_t sum = 0;
          for (index_t k = 0; k < depth; ++k) {
            codes[static_cast<std::size_t>(k)] = static_cast<std::uint8_t>(view.code(first + r, k));
            sum += codes[static_cast<std::size_t>(k)] - 128;
          }
          std::vector<typename dot::unit> want(static_cast<std::size_t>(round_up(depth, 4)));
          simd::pack_units<A>(codes.data(), depth, simd::code_sign::is_unsigned, want.data());
          for (index_t k = 0; k < round_up(depth, 4); ++k)
            REQUIRE(units.row(r)[k] == want[static_cast<std::size_t>(k)]);
          REQUIRE(units.sum(r) == sum);
          REQUIRE(units.zero(r) == view.zero_point(first + r, 0) - 128);
          REQUIRE(*units.scales(r) == view.scale(first + r, 0));
        }
      }
      units.fill(rows, 0, 20);
      CHECK(units.has_one_zero());
    });
  }
}

namespace {

struct keeping {
  static constexpr bool runs_beside = true;
};
struct calling {};

}  // namespace

TEST_CASE("runs_beside: of sinks that say so, through what stands before them") {
  CHECK(ops::scaled<ops::store_floats<simd::best_arch>>::runs_beside);
  CHECK(!ops::scaled<calling>::runs_beside);
  CHECK(ops::unscaled<keeping>::runs_beside);
}
