// Random tensors dequantized to memory of random strides and to other schemes, and numbers there and back, against the
// reference.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/fake_quantize.hpp>

#include "conversions.hpp"

using namespace qtensor;

namespace {

/// Equal, or both NaN.
template <format F>
bool same_number(storage_t<F> a, storage_t<F> b) {
  const std::uint32_t x = detail::code_of<F>(a), y = detail::code_of<F>(b);
  return x == y || (is_nan(decode<F>(x)) && is_nan(decode<F>(y)));
}

/// Memory of F that numbers are written to, and what it should hold then.
template <format F, class E>
struct drawn_memory {
  drawn_memory(fuzz::dice& dice, const E& extents)
      : extents(extents), place(fuzz::draw_placement(dice, extents.to_array())) {
    for (index_t i = 0; i < place.size; ++i) got.push_back(detail::unit_from<F>(dice.bits()));
    want = got;
  }
  storage_t<F>* data() { return got.data() + place.first; }
  /// The number at an index should be x.
  void expect(const typename E::array& index, float x) {
    want[static_cast<std::size_t>(place.first + fuzz::offset_of<E>(index, place.strides))] =
        detail::unit_from<F>(encode<F, nearest_even, to_special>(x));
  }
  bool same() const { return std::equal(got.begin(), got.end(), want.begin(), same_number<F>); }

  E extents;
  fuzz::placement<static_cast<std::size_t>(E::rank)> place;
  std::vector<storage_t<F>> got, want;
};

/// A tensor with anything in it, of numbers as scales more often than not, or a part of it.
template <quantization_scheme S, int Rank, storage_order Order>
fuzz::target<S, Rank, Order> draw_tensor(fuzz::dice& dice, const dynamic_extents<Rank>& extents) {
  fuzz::target<S, Rank, Order> t(dice, extents, fuzz::draw_granularity<S>(dice), false);
  const auto span = t.part(t.got);
  if (!dice.chance(4))
    reference::for_each_block(span.scale_grid(), span.storage_extents(), [&](const auto& first, const auto&) {
      span.set_storage_scale_code(first, fuzz::draw_scale<typename S::scale_format>(dice, 1.f));
    });
  return t;
}

template <quantization_scheme S, int Rank, storage_order Order = row_major, format F = f32>
void to_memory(fuzz::dice& dice) {
  using extents_type = dynamic_extents<Rank>;
  const extents_type extents = fuzz::draw_extents<Rank>(dice, fuzz::draw_size(dice));
  const index_t threads = fuzz::draw_threads(dice);
  INFO(fuzz::describe<S, Order, F>(extents), ", threads ", threads);
  auto from = draw_tensor<S, Rank, Order>(dice, extents);
  const tensor_view<S, extents_type, Order> view = from.part(from.got);
  drawn_memory<F, extents_type> to(dice, extents);
  reference::dequantize(view, [&](const auto& index, float x) { to.expect(index, x); });
  if (threads == 1)
    dequantize_into<F>(view, to.data(), to.place.strides);
  else
    dequantize_into<F>(view, to.data(), to.place.strides, on(pool::threads(threads)));
  REQUIRE(to.same());
}

/// A tensor of one scheme to another, of finite numbers.
template <quantization_scheme From, storage_order FromOrder, quantization_scheme To, storage_order Order>
void to_scheme(fuzz::dice& dice) {
  const matrix_extents extents = fuzz::draw_extents<2>(dice, fuzz::draw_size(dice));
  INFO(fuzz::describe<From, FromOrder, f32>(extents), " to ", std::string(name<To>));
  fuzz::target<From, 2, FromOrder> from(dice, extents, fuzz::draw_granularity<From>(dice), false);
  const fuzz::drawn_source<f32, matrix_extents> x(dice, extents);
  reference::quantize([&](const auto& index) { return is_finite(x(index)) ? x(index) : 1.f; }, from.part(from.got));
  const tensor_view<From, matrix_extents, FromOrder> view = from.part(from.got);
  tensor<To, matrix_extents, Order> want(extents);
  reference::quantize([&](const auto& index) { return reference::value(view, index); }, want.span());
  REQUIRE(check::same_bytes(requantize<To, Order>(view), want));
}

/// Numbers through S, to other memory or in their place.
template <quantization_scheme S, int Rank, storage_order Order = row_major, format F = f32>
void there_and_back(fuzz::dice& dice) {
  using extents_type = dynamic_extents<Rank>;
  const extents_type extents = fuzz::draw_extents<Rank>(dice, fuzz::draw_size(dice));
  const auto granularity = fuzz::draw_granularity<S>(dice);
  const index_t threads = fuzz::draw_threads(dice);
  INFO(fuzz::describe<S, Order, F>(extents), " there and back, threads ", threads);
  fuzz::drawn_source<F, extents_type> x(dice, extents);
  tensor<S, extents_type, Order> t(extents, granularity);
  reference::quantize(x, t.span());
  drawn_memory<f32, extents_type> to(dice, extents);
  auto source = x.source();
  if constexpr (std::same_as<F, f32>)
    if (dice.chance(3)) {
      to.got = to.want = x.memory, to.place = x.place;
      source.data = to.data();
    }
  reference::dequantize(t.view(), [&](const auto& index, float value) { to.expect(index, value); });
  const typename memory_source<F, extents_type>::template in_order<Order> rows(source);
  const auto by = on(pool::threads(threads));
  if constexpr (has_static_blocks<typename S::granularity_type>)
    fake_quantize_into<S, Order>(rows, extents, to.data(), to.place.strides, by);
  else
    fake_quantize_into<S, Order>(rows, extents, to.data(), to.place.strides, granularity, by);
  REQUIRE(to.same());
}

}  // namespace

TEST_CASE("conversions: to memory") {
  fuzz::each_case(2000, [](fuzz::dice& dice) {
    fuzz::one_case_of(dice, &to_memory<int8_per_channel<0>, 2>, &to_memory<uint8_per_channel<1>, 3, col_major, bf16>,
                      &to_memory<uint4_group<32>, 2, row_major, f16>, &to_memory<int4_group<dynamic>, 2, col_major>,
                      &to_memory<mxfp4, 2>, &to_memory<mxfp6_e3m2, 3>, &to_memory<along<0, mxfp8_e5m2>, 2>,
                      &to_memory<with<nvfp4, tensor_scale<f32>>, 2, row_major, bf16>,
                      &to_memory<scheme<int2, per_axes<0, 2>>, 4>, &to_memory<hif8_block<4, 64>, 2, col_major>,
                      &to_memory<scheme<uint4, per_channel<1>, zero_point<int32, per_tensor>>, 2>,
                      &to_memory<scheme<int16, block<dynamic, dynamic>>, 2>,
                      &to_memory<scheme<f16, per_channel<1>>, 2, col_major>);
  });
}

TEST_CASE("conversions: to other schemes") {
  fuzz::each_case(500, [](fuzz::dice& dice) {
    fuzz::one_case_of(dice, &to_scheme<mxfp4, row_major, int8_per_channel<0>, row_major>,
                      &to_scheme<uint4_group<32>, row_major, mxfp8_e4m3, col_major>,
                      &to_scheme<int8_per_tensor, col_major, fp8_block<16, 128>, row_major>);
  });
}

TEST_CASE("conversions: there and back") {
  fuzz::each_case(500, [](fuzz::dice& dice) {
    fuzz::one_case_of(dice, &there_and_back<mxfp4, 2>, &there_and_back<int8_per_channel<1>, 3, col_major, bf16>,
                      &there_and_back<scheme<e4m3, block<dynamic, dynamic>>, 2>);
  });
}
