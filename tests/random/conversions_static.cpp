// Random tensors quantized under scales and zero points that are stored already, against the reference.
// SPDX-License-Identifier: BSD-3-Clause
#include "conversions.hpp"

using namespace qtensor;

namespace {

/// Memory of F into a tensor, or a part of one, that has scales.
template <quantization_scheme S, int Rank, storage_order Order = row_major, format F = f32>
void quantize_static(fuzz::dice& dice) {
  using extents_type = dynamic_extents<Rank>;
  const extents_type extents = fuzz::draw_extents<Rank>(dice, fuzz::draw_size(dice));
  const auto granularity = fuzz::draw_granularity<S>(dice);
  const fuzz::drawn_source<F, extents_type> x(dice, extents);
  const index_t threads = fuzz::draw_threads(dice);
  INFO(fuzz::describe<S, Order, F>(extents), ", threads ", threads);
  fuzz::target<S, Rank, Order> to(dice, extents, granularity, false);
  const auto want = to.part(to.want);
  const float size = extents.size() > 0 ? x(x.index_of(dice.within(0, extents.size() - 1))) : 1.f;
  reference::for_each_block(want.scale_grid(), want.storage_extents(), [&](const auto& first, const auto&) {
    want.set_storage_scale_code(first, fuzz::draw_scale<typename S::scale_format>(dice, magnitude(size)));
  });
  if constexpr (S::has_zero_point) {
    using zero = typename S::zero_point_format;
    const auto low = static_cast<index_t>(std::max(S::codes.low, static_cast<float>(zero::min)));
    const auto high = static_cast<index_t>(std::min(S::codes.high, static_cast<float>(zero::max)));
    reference::for_each_block(want.zero_grid(), want.storage_extents(), [&](const auto& first, const auto&) {
      want.set_storage_zero_point(first, dice.one_of(low, high, dice.within(low, high)));
    });
  }
  if constexpr (S::has_tensor_scale) *want.memory().tensor_scale = decode<f32>(fuzz::draw_scale<f32>(dice, 1.f));
  to.got = to.want;
  reference::quantize_static(x, want);
  const typename memory_source<F, extents_type>::template in_order<Order> rows(x.source());
  const auto got = to.part(to.got);
  if (threads == 1)
    quantize_static_into(rows, got);
  else
    quantize_static_into(rows, got, on(pool::threads(threads)));
  REQUIRE(to.same());
}

}  // namespace

TEST_CASE("conversions: given scales") {
  fuzz::each_case(2000, [](fuzz::dice& dice) {
    fuzz::one_case_of(dice, &quantize_static<int8_per_tensor, 2>, &quantize_static<int8_per_channel<1>, 2, col_major>,
                      &quantize_static<uint8_per_channel<0>, 3, row_major, bf16>,
                      &quantize_static<scheme<uint4, group<32>, zero_point<uint4, per_channel<0>>>, 2>,
                      &quantize_static<scheme<int8, per_channel<1>, zero_point<int32>, zp_before_round, reciprocal>, 2,
                                       row_major, f16>,
                      &quantize_static<scheme<int4, group<dynamic>>, 3>,
                      &quantize_static<scheme<e4m3, mx_group<32>, scale_as<e8m0>, static_only>, 2>,
                      &quantize_static<mxfp6_e2m3, 2, col_major, f16>,
                      &quantize_static<with<nvfp4, tensor_scale<f32>>, 2>, &quantize_static<hif8_block<4, 64>, 3>,
                      &quantize_static<scheme<uint8, block<dynamic, dynamic>, zero_point<uint8, per_tensor>>, 2>,
                      &quantize_static<scheme<e2m1, per_axes<0, 2>, scale_as<bf16>>, 4>);
  });
}
