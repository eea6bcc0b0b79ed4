// Which conversions run on vectors: every kind of path, and schemes that have none.
// SPDX-License-Identifier: BSD-3-Clause
#include "main/foreign.hpp"

#include <qtensor/ops/paths.hpp>
#include <qtensor/scheme/schemes.hpp>

namespace qt = qtensor;
using qt::ops::dequantizes_on_vectors;
using qt::ops::quantizes_on_vectors;

namespace {

constexpr bool has_vectors = !std::same_as<qt::simd::best_arch, qt::simd::scalar_arch>;

struct moved {
  using slot = qt::slot::rounding;
  static constexpr qt::fixed_string name = "moved";
  static constexpr bool up(bool, bool, qt::remainder r) { return r > qt::remainder::half; }
  template <class F>
  static constexpr float before(float x) {
    return x + 1;
  }
};
struct weights : qt::mxfp4 {};

template <class S>
constexpr bool both = quantizes_on_vectors<S>() && dequantizes_on_vectors<S>();

}  // namespace

TEST_CASE("on vectors wherever the CPU that is compiled for has them: runs, offsets, groups by their peak, blocks") {
  CHECK(both<qt::mxfp4> == has_vectors);
  CHECK(both<weights> == has_vectors);
  CHECK(both<qt::scheme<qt::uint8, qt::per_channel<0>, qt::offset<qt::f32>, qt::offset_min_max>> == has_vectors);
  CHECK(both<qt::scheme<qt::int4, qt::group<32>, qt::scale_as<qt::f16>, qt::peak_scale, qt::reciprocal,
                        qt::unrounded_scale, qt::block_literal>> == has_vectors);
  CHECK(both<qt::scheme<qt::int8, qt::group<32>, qt::scale_as<qt::f16>, qt::interleaved<>, qt::reciprocal,
                        qt::bounded_amax<>, qt::unrounded_scale, qt::block_literal>> == has_vectors);
}

TEST_CASE("a rounding of one's own that looks at numbers first has no vectors until it brings them; codes read as any") {
  CHECK_FALSE(quantizes_on_vectors<qt::with<qt::mxfp4, moved>>());
  CHECK(dequantizes_on_vectors<qt::with<qt::mxfp4, moved>>() == has_vectors);
}
