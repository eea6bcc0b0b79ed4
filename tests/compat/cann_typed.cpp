// Mirrors include/qtensor/compat/cann.hpp: typed MX schemes and entry points give what the run-time ones give.
// SPDX-License-Identifier: BSD-3-Clause
#include "compat/cann_calls.hpp"
#include "ops/special_blocks.hpp"

using namespace calls;

namespace {

/// Typed and run-time dual axis on the same numbers.
template <format F, class Code, class Rounding, class Rule, class Extents>
void check_agreement(const Extents& shape, unsigned seed, const cann::mx_attributes& how) {
  const std::int64_t t = std::is_same_v<F, f16> ? type::f16 : std::is_same_v<F, bf16> ? type::bf16 : type::f32;
  std::vector<storage_t<F>> x;
  for (std::uint16_t v : numbers(shape.size(), seed)) {
    if constexpr (std::is_same_v<F, f32>)
      x.push_back(float_of(static_cast<std::uint32_t>(v) << 16 | (v & 1u) << 15));
    else
      x.push_back(v);
  }
  const cann::dims sizes(shape.to_array());
  INFO("sizes ", cann::parts::sizes_text(sizes), ", dst_type ", how.dst_type);
  const auto [rows, cols] = cann::dynamic_mx_quant_with_dual_axis<Code, Rounding, Rule>(source<F>(x.data(), shape));
  const dual_result r = dual(x, t, sizes, how);
  CHECK(r.rows.y == copied(rows.codes()));
  CHECK(r.rows.scales == cann::mxscale1(rows));
  CHECK(r.cols.y == copied(cols.codes()));
  CHECK(r.cols.scales == cann::mxscale2(cols));
}

}  // namespace

TEST_CASE("typed and run-time entry points agree: shapes, tails, sources") {
  const cann::mx_attributes plain{.dst_type = type::e4m3};
  check_agreement<f16, e4m3, nearest_even, mx_floor>(matrix_extents(33, 70), 1, plain);
  check_agreement<bf16, e4m3, nearest_even, mx_floor>(matrix_extents(96, 31), 2, plain);
  check_agreement<f32, e4m3, nearest_even, mx_floor>(matrix_extents(1, 4500), 3, plain);
  check_agreement<f16, e4m3, nearest_even, mx_floor>(matrix_extents(130, 1), 4, plain);
  check_agreement<f32, e5m2, nearest_even, mx_rceil>(matrix_extents(40, 33), 5,
                                                     {.dst_type = type::e5m2, .scale_alg = 1});
  check_agreement<bf16, e2m1, toward_negative, mx_floor>(extents(3, 2, 65, 34), 6,
                                                         {.round_mode = "floor", .dst_type = type::e2m1});
  check_agreement<bf16, e1m2, nearest_away, mx_floor>(extents(1, 1, 1, 1, 1, 1, 2), 7,
                                                      {.round_mode = "round", .dst_type = type::e1m2});
}

TEST_CASE("single axis: every axis and block size is the typed tensor's answer") {
  const auto shape = extents(3, 70, 6);
  const words x = numbers(shape.size(), 11);
  const cann::dims sizes{3, 70, 6};
  const auto in_pairs = [](const auto& t, index_t outer, index_t blocks, index_t inner) {
    bytes pairs(static_cast<std::size_t>(outer * divide_up(blocks, 2) * 2 * inner));
    cann::pair_scales(t.scales().data(), outer, blocks, inner, pairs.data());
    return pairs;
  };
  {
    const auto t = cann::dynamic_mx_quant<e4m3, 0>(source<bf16>(x.data(), shape));
    const mx_result r = single(x, type::bf16, sizes, 0, {.dst_type = type::e4m3});
    CHECK(r.y == copied(t.codes()));
    CHECK(r.scales == in_pairs(t, 1, 1, 420));
  }
  {
    const auto t = cann::dynamic_mx_quant<e2m1, 1, nearest_even, mx_floor, 64>(source<bf16>(x.data(), shape));
    const mx_result r = single(x, type::bf16, sizes, -2, {.dst_type = type::e2m1, .block_size = 64});
    CHECK(r.y == unpacked(copied(t.codes()), type::e2m1));
    CHECK(r.scales == in_pairs(t, 3, 2, 6));
  }
  {
    const auto line = extents(1250);
    const words y = numbers(1250, 12);
    const auto t = cann::dynamic_mx_quant<e5m2, -1, nearest_even, mx_floor, 1024>(source<f16>(y.data(), line));
    const mx_result r = single(y, type::f16, {1250}, 0, {.dst_type = type::e5m2, .block_size = 1024});
    CHECK(r.y == copied(t.codes()));
    CHECK(r.scales == cann::mxscale1(t));
  }
}

TEST_CASE("typed flushed scheme: as the option") {
  const std::uint16_t x[] = {0x0040, 0x8001};
  const auto t = quantize<cann::mx_flushed<e4m3>>(source<bf16>(x, matrix_extents(1, 2)));
  CHECK(copied(t.codes()) == bytes{0, 0x80});
  CHECK(copied(t.scales()) == bytes{0});
}

TEST_CASE("typed entry points: FP4 of an odd run-time extent throws") {
  const std::uint16_t x[] = {0, 0, 0};
  CHECK_THROWS_AS(cann::dynamic_mx_quant<e2m1>(source<bf16>(x, matrix_extents(1, 3))), error);
  CHECK_NOTHROW(cann::dynamic_mx_quant<e4m3>(source<bf16>(x, matrix_extents(1, 3))));
}

TEST_CASE("dynamic schemes by vectors") {
  special_blocks::check_vectors<cann::mx_flushed<qtensor::e4m3>, cann::block_quant<qtensor::hif8, 1, 128>,
                                cann::block_quant<qtensor::hif8, 1, 32, bounded_amax<>, nearest_even>,
                                cann::block_quant<qtensor::e5m2, 1, 32>, cann::block_quant<qtensor::int8, 1, 32>,
                                cann::block_quant_a2_a3<>,
                                cann::block_quant_a2_a3<64, qtensor::reciprocal_amax<1, 2>>>();
}

TEST_CASE("int8 on A2 and A3: the rule's multipliers by vectors") {
  CHECK(simd::vector_encodable<cann::block_quant_a2_a3<32>>);
  special_blocks::check_scheme<cann::block_quant_a2_a3<32>>();
  special_blocks::check_scheme<with<cann::block_quant_a2_a3<32>, per_tensor>>();
}

TEST_CASE("rows of more blocks than are looked at together: run-time and typed agree") {
  const index_t cols = 64 * 65 + 40;  // odd numbers of blocks, a short one
  const words x = numbers(5 * cols, 11);
  for (const std::int64_t axis : {-1, -2}) {
    const cann::dims sizes = axis == -1 ? cann::dims{5, cols} : cann::dims{cols, 5};
    const mx_result r = single(x, type::bf16, sizes, axis, {.dst_type = type::e4m3});
    const auto same = [&](const auto& t, const auto& scales) {
      CHECK(r.y == copied(t.codes()));
      CHECK(r.scales == scales);
    };
    if (axis == -1) {
      const auto t = quantize<cann::mx<e4m3>>(source<bf16>(x.data(), matrix_extents(5, cols)));
      same(t, cann::mxscale1(t));
    } else {
      const auto t =
          quantize<cann::mx<e4m3, nearest_even, mx_floor, 32, -2>>(source<bf16>(x.data(), matrix_extents(cols, 5)));
      same(t, cann::mxscale2(t));
    }
  }
}
