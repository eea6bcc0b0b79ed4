// Mirrors include/qtensor/ops/product_float.hpp: all kinds of weights, with scales that are NaN, infinite or 0.
// SPDX-License-Identifier: BSD-3-Clause
#include "format/of_users.hpp"
#include "product_float_check.hpp"

using namespace product_check;
using simd::best_arch;

namespace {

struct int3 : integer<3, signed> {
  static constexpr fixed_string name = "int3";
};
struct uint7 : integer<7, unsigned> {
  static constexpr fixed_string name = "uint7";
};

template <class S>
void check_scheme() {
  const index_t shapes[][3] = {{1, 3, 5}, {4, 34, 33}, {1, 130, 67}, {7, 70, 65}, {13, 9, 64}};
  for (const bool hard : {false, true})
    for (const auto& s : shapes) {
      const auto w = weights<S>(s[1], s[2], hard);
      const matrix x = matrix(s[0], s[2]).fill(hard ? check::hard_float : plain);
      const matrix got = collected<best_arch>(
          s[0], s[1], [&](const auto& sink) { ops::multiply_floats<best_arch>(pack(w), x.ref(), sink, serial{}); });
      INFO(name<S>.c_str());
      REQUIRE(same(got, chains(dense(w), x)));
    }
}

}  // namespace

TEST_CASE("multiply_floats: integer weights") {
  check_scheme<int8_per_channel<>>();
  check_scheme<uint8_per_channel<>>();
  check_scheme<scheme<uint4, group<32>, offset<f32>, offset_min_max>>();
}

TEST_CASE("multiply_floats: zero points of 32 bits take the path of blocks") {
  auto w = weights<scheme<int8, group<32>, zero_point<int32>>>(34, 33);
  w.zero_points()[2] = std::numeric_limits<std::int32_t>::max() - 128;
  for (const index_t m : {1, 5}) {
    const matrix x = matrix(m, 33).fill(plain);
    const matrix got = collected<best_arch>(
        m, 34, [&](const auto& sink) { ops::multiply_floats<best_arch>(pack(w), x.ref(), sink, serial{}); });
    CHECK(same(got, chains(dense(w), x)));
  }
}

TEST_CASE("multiply_floats: small floats, powers of two, scales of two levels") {
  check_scheme<mxfp8_e5m2>();
  check_scheme<mxfp6_e2m3>();
  check_scheme<with<nvfp4, tensor_scale<f32>>>();
}

TEST_CASE("multiply_floats: users' codes of 1, 3 and 7 bits, which no kernel unpacks") {
  check_scheme<scheme<int3, group<32>>>();
  check_scheme<scheme<uint7, per_channel<0>, zero_point<uint7>>>();
  check_scheme<scheme<of_users::sign1, group<24>>>();
}
