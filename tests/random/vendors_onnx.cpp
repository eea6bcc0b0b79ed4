// ONNX's QuantizeLinear and DequantizeLinear, element by element as NUMERICS 8.1 says.
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <qtensor/compat/onnx.hpp>

#include "onnx_array.hpp"

using namespace qtensor;
using namespace fuzz::onnx_arrays;
namespace onnx = qtensor::compat::onnx;

namespace {

using list = std::vector<index_t>;

/// How x's elements share parameters, and the entry of every element.
struct sharing {
  onnx::attributes how;
  index_t entries = 1;
  std::vector<index_t> of;

  sharing(fuzz::dice& dice, const list& dims, index_t count) {
    const int rank = static_cast<int>(dims.size()), axis = static_cast<int>(dice.within(0, rank - 1));
    const index_t length = dims[static_cast<std::size_t>(axis)], form = dice.within(0, 3);
    index_t inner = 1, outer = 1, block = 0;
    for (int d = 0; d < rank; ++d) (d < axis ? outer : d > axis ? inner : block) *= dims[static_cast<std::size_t>(d)];
    how.axis = dice.chance(2) ? axis : axis - rank;
    if (form == 1) entries = length;
    if (form >= 2) {
      block = dice.chance(2) ? dice.within(1, 40) : std::min(dice.extent(length + 3) + 1, length + 3);
      how.block_size = block;
      entries = outer * divide_up(length, block) * inner;
    }
    for (index_t i = 0; i < count; ++i) {
      const index_t at = i / inner % length;
      of.push_back(form == 0   ? 0
                   : form == 1 ? (entries == 1 ? 0 : at)
                               : (i / inner / length * divide_up(length, block) + at / block) * inner + i % inner);
    }
  }
  std::string text() const {
    return "axis " + std::to_string(how.axis) + ", block_size " + std::to_string(how.block_size) + ", " +
           std::to_string(entries) + " scales";
  }
};

template <format Scale>
flat<Scale> draw_scales(fuzz::dice& dice, index_t n, bool any) {
  flat<Scale> out(n);
  for (index_t i = 0; i < n; ++i) {
    const float s = exp2i(static_cast<int>(dice.within(-4, 3))) * (1.f + static_cast<float>(dice.bits() % 64) / 64.f);
    out.set(i,
            any ? dice.bits() : encode<Scale>(dice.chance(40) ? exp2i(static_cast<int>(dice.within(-126, 120))) : s));
    const float as_stored = out.number(i);
    if (!any && !(as_stored > 0.f && is_finite(as_stored))) out.set(i, encode<Scale>(1.f));
  }
  return out;
}

template <class S>
std::uint32_t quantized_code(float x, float scale, float zero) {
  using code = typename S::code_format;
  volatile float q = x / scale;
  if constexpr (!std::is_same_v<typename S::division_type, f32>) {
    using type = typename S::division_type;
    q = decode<type>(encode<type, to_special>(q));
  }
  if constexpr (std::is_same_v<code, e2m1>)
    return encode<e2m1, nan_to_opposite_zero>(q);
  else if constexpr (!code::is_integer)
    return encode<code, typename S::overflow>(q);
  else {
    const double rounded_q = is_nan(q) ? 0.0 : std::nearbyint(static_cast<double>(q));
    const double v = std::clamp(rounded_q + static_cast<double>(zero), static_cast<double>(code::min),
                                static_cast<double>(code::max));
    return static_cast<std::uint32_t>(static_cast<std::int64_t>(v)) & low_bits(code::bits);
  }
}

/// Quantizes and dequantizes a tensor of a rank.
template <quantization_scheme S, format X, format Out, tensor_extents E>
void both_ways(fuzz::dice& dice, const list& dims, const E& shape) {
  using code = typename S::code_format;
  using scale = typename S::scale_format;
  const index_t count = shape.size();
  const sharing by(dice, dims, count);
  const std::vector<float> numbers = dice.numbers(count);
  flat<X> x(count);
  for (index_t i = 0; i < count; ++i)
    x.set(i, std::is_same_v<X, int32> ? dice.bits() >> dice.within(0, 31)
                                      : encode<X, to_special>(numbers[static_cast<std::size_t>(i)]));
  flat<scale> scales = draw_scales<scale>(dice, by.entries, false);
  const bool shifted = dice.chance(2);
  flat<code> zeros(shifted ? by.entries : 0);
  for (index_t i = 0; i < by.entries && shifted && S::has_zero_point; ++i)
    zeros.set(i, dice.chance(4)
                     ? static_cast<std::uint32_t>(static_cast<std::int64_t>(dice.chance(2) ? code::min : code::max))
                     : dice.bits());
  INFO(std::string(name<S>), " of ", std::string(X::name), " ", fuzz::text(dims), ", ", by.text(), ", zero points ",
       shifted);
  const auto zero_of = [&](index_t i) {
    return shifted && S::has_zero_point ? zeros.number(by.of[static_cast<std::size_t>(i)]) : 0.f;
  };
  const auto t = [&] {
    if constexpr (std::is_same_v<X, int32>)
      return onnx::quantize_linear<S>(x.units.data(), shape, scales.span(), zeros.span(), by.how);
    else
      return onnx::quantize_linear<S>(source<X>(x.units.data(), shape), scales.span(), zeros.span(), by.how);
  }();
  flat<code> got(count), want(count);
  onnx::to_packed(t, std::span(got.units));
  for (index_t i = 0; i < count; ++i)
    want.set(i, quantized_code<S>(x.number(i), scales.number(by.of[static_cast<std::size_t>(i)]), zero_of(i)));
  for (index_t i = 0; i < count && got.units != want.units; ++i)
    if (got[i] != want[i]) {
      INFO("element ", i, ", ", x.number(i), " over ", scales.number(by.of[static_cast<std::size_t>(i)]), " and ",
           zero_of(i), " is ", got[i], ", not ", want[i]);
      REQUIRE(false);
    }
  REQUIRE(got.units == want.units);

  // Back, from any codes, and scales that are any numbers.
  const flat<code> codes = draw_codes<code>(dice, count);
  scales = draw_scales<scale>(dice, by.entries, dice.chance(3));
  flat<Out> y(count);
  std::fill(y.units.begin(), y.units.end(), onnx::unit<Out>(7));
  if (dice.chance(2)) {
    onnx::dequantize_linear<S, Out>(codes.span(), scales.span(), zeros.span(), shape, by.how, std::span(y.units));
  } else {
    const auto stored = onnx::from_arrays<S>(codes.span(), scales.span(), zeros.span(), shape, by.how);
    onnx::dequantize_linear<Out>(stored, std::span(y.units));
  }
  for (index_t i = 0; i < count; ++i) {
    const float s = scales.number(by.of[static_cast<std::size_t>(i)]);
    volatile float v = codes.number(i) - zero_of(i);
    v = v * s;
    const std::uint32_t wanted = encode<Out, to_special>(v);
    if (y[i] != wanted && !(is_nan(v) && is_nan(y.number(i)))) {
      INFO("element ", i, " of code ", codes[i], " less ", zero_of(i), " times ", s, " is ", y.number(i), ", not ",
           float{v});
      REQUIRE(false);
    }
  }
}

/// Of three axes: fewer are some of extent 1, and each number of axes would be compiled anew.
template <quantization_scheme S, format X, format Out>
void linear(fuzz::dice& dice) {
  const list dims = fuzz::shape(dice, 3, dice.chance(5) ? 6000 : 900);
  both_ways<S, X, Out>(dice, dims, extents(dims[0], dims[1], dims[2]));
}

}  // namespace

TEST_CASE("ONNX: QuantizeLinear and DequantizeLinear") {
  fuzz::each_case(500, [](fuzz::dice& dice) {
    fuzz::one_case_of(dice, &linear<onnx::linear<int8>, f32, f32>, &linear<onnx::linear<uint8>, bf16, f16>,
                      &linear<onnx::linear<int16, f16>, f32, f32>, &linear<onnx::linear<uint4>, f32, bf16>,
                      &linear<onnx::linear<int2>, f16, f32>, &linear<onnx::linear<e4m3fnuz>, f32, f32>,
                      &linear<with<onnx::linear<e5m2>, to_special>, f32, f16>,
                      &linear<onnx::linear<e2m1, e8m0>, f32, f32>,
                      &linear<onnx::as_reference<onnx::linear<int4, f16>>, f16, f32>,
                      &linear<onnx::linear<uint8, bf16>, int32, bf16>);
  });
}
