// Mirrors include/qtensor/ops/quantize_offsets.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/compat/ggml.hpp>
#include <qtensor/ops/parallel.hpp>

#include "round_trip.hpp"
#include "special_blocks.hpp"
#include "threads.hpp"

using namespace qtensor;

namespace {

template <format Code, class Granularity, class... Policies>
using ranged = scheme<Code, Granularity, offset<f32>, offset_min_max, Policies...>;

}  // namespace

TEST_CASE("quantize_offsets: which schemes") {
  static_assert(ops::quantizes_less_offsets<ranged<uint8, per_tensor>>());
  static_assert(ops::quantizes_less_offsets<ranged<uint4, group<8>, planar<high_first>>>());
  static_assert(!ops::quantizes_less_offsets<ranged<uint8, per_tensor, unrounded_scale>>());
  static_assert(!ops::quantizes_less_offsets<uint8_per_tensor>());
  check::check_matrix<ranged<uint8, per_channel<0>, unrounded_scale>>(5, 70);  // by the reference
}

TEST_CASE("quantize_offsets: every granularity, order and rank") {
  for (const index_t cols : {1, 5, 33, 64, 1100}) {
    check::check_matrix<ranged<uint8, per_tensor>>(7, cols);
    check::check_matrix<ranged<uint8, per_channel<0>>>(7, cols);
    check::check_matrix<ranged<uint8, per_channel<1>>>(7, cols);
    check::check_matrix<ranged<uint8, per_channel<0>>, col_major>(7, cols);
    check::check_matrix<ranged<int8, group<5>>>(7, cols);
    check::check_matrix<ranged<uint8, group<16, 0>>>(20, cols);
    check::check_matrix<ranged<uint2, block<4, 8>>>(9, cols);
    check::check_matrix<ranged<uint4, block<3, 6>, planar<high_first>>>(9, cols);
    check::in_full<ranged<uint4, per_channel<0>>>([&]<class S>() { check::check_matrix<S>(7, cols); });
  }
  check::check_matrix<ranged<uint8, block<16, 16>>, col_major>(50, 40);
  check::check_matrix<ranged<uint8, per_channel<1>>>(300, 3);
  check::check_matrix<scheme<compat::ggml::uint5, per_channel<0>, scale_as<f16>, offset<f16>, offset_min_max>>(5, 40);
  check::check_matrix<scheme<e4m3, per_tensor, scale_as<bf16>, offset<bf16>, offset_min_max>>(5, 40);
  check::check_matrix<ranged<uint8, per_channel<0>, reciprocal>>(5, 40);
  check::check_matrix<ranged<uint8, per_channel<0>, nearest_away>>(5, 40);

  const auto check_rank_3 = []<class S, storage_order O>(S, O) {
    const auto shape = extents(3, 5, 40);
    const auto x = check::numbers(shape.size(), 6);
    INFO(std::string(name<S>));
    CHECK(check::same_bytes(quantize<S, O>(source(x.data(), shape)), check::expected<S, O>(x, shape)));
  };
  check_rank_3(ranged<uint8, per_tensor>(), row_major());
  check_rank_3(ranged<uint8, per_channel<0>>(), row_major());
  check_rank_3(ranged<uint8, per_channel<1>>(), row_major());
  check_rank_3(ranged<uint8, per_channel<2>>(), row_major());
  check_rank_3(ranged<uint8, per_channel<1>>(), col_major());
  check_rank_3(ranged<uint4, group<2, 1>>(), row_major());
  const auto x = check::numbers(70, 7);
  CHECK(check::same_bytes(quantize<ranged<uint4, group<7>>>(source(x.data(), extents(70))),
                          check::expected<ranged<uint4, group<7>>, row_major>(x, extents(70))));
}

TEST_CASE("quantize_offsets: groups as long as the program says") {
  using S = ranged<uint4, group<dynamic>>;
  const matrix_extents shape(6, 90);
  const auto x = check::numbers(shape.size(), 9);
  for (const index_t n : {3, 16, 90})
    CHECK(check::same_bytes(quantize<S>(source(x.data(), shape), group<dynamic>{n}),
                            check::expected<S, row_major>(x, shape, group<dynamic>{n})));
}

TEST_CASE("quantize_offsets: zeros of both signs, subnormals, infinities and NaNs are the policies' own") {
  special_blocks::check_scheme<ranged<uint8, per_tensor>>();
  special_blocks::check_scheme<ranged<uint8, per_channel<0>>>();
  special_blocks::check_scheme<ranged<uint8, per_channel<1>, block_to_zero>>();
  special_blocks::check_scheme<ranged<uint8, per_channel<0>, block_ignores>>();
  special_blocks::check_scheme<ranged<uint4, group<8>, block_ignores_nan>>();
  special_blocks::check_scheme<ranged<uint4, block<4, 16>, block_literal, nan_to_zero>>();
  special_blocks::check_scheme<ranged<uint4, per_channel<1>, subnormal_to_zero, reciprocal>>();
  special_blocks::check_scheme<ranged<e4m3, per_channel<0>, block_literal>>();
  special_blocks::check_scheme<ranged<e5m2, per_channel<1>, block_ignores_nan, to_special>>();
  check::in_full<ranged<e4m3, per_channel<0>>>([]<class S>() { special_blocks::check_scheme<S>(); });
}

TEST_CASE("quantize_offsets: bands of rows, sources of 16 bits, across the order, and read once") {
  const matrix_extents shape(75, 1200);
  const auto x = check::numbers(shape.size(), 8);
  std::vector<float> turned(x.size());
  for (index_t r = 0; r < 75; ++r)
    for (index_t c = 0; c < 1200; ++c)
      turned[static_cast<std::size_t>(c * 75 + r)] = x[static_cast<std::size_t>(r * 1200 + c)];
  const auto each = [&]<class S>(S) {
    const auto want = check::expected<S, row_major>(x, shape);
    INFO(std::string(name<S>));
    CHECK(check::same_bytes(quantize<S>(source(x.data(), shape)), want));
    CHECK(check::same_bytes(quantize<S>(source(turned.data(), shape, {1, 75})), want));
    CHECK(check::same_bytes(make_quantized<S, row_major>(check::tiled_source{{x.data(), 75, 1200, 1200, 1}}, shape),
                            want));
    CHECK(check::same_bytes(quantize<S>(source(x.data(), shape), on(pool::threads(3))), want));

    std::vector<std::uint16_t> narrow;
    std::vector<float> wide;
    for (const float v : x) {
      narrow.push_back(static_cast<std::uint16_t>(encode<bf16>(v)));
      wide.push_back(decode<bf16>(narrow.back()));
    }
    CHECK(check::same_bytes(quantize<S>(source<bf16>(narrow.data(), shape)), quantize<S>(source(wide.data(), shape))));
  };
  each(ranged<uint8, per_channel<0>>());
  each(ranged<uint8, per_channel<1>>());
  each(ranged<uint8, block<16, 16>>());
  each(ranged<uint4, group<32, 0>>());
  each(ranged<uint4, group<24>, stochastic<3>>());
}
