// Mirrors include/qtensor/compat/stablehlo_tensor.hpp: tiles of floats equal the definition, element by element.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <limits>
#include <qtensor/compat/stablehlo_tensor.hpp>

namespace shlo = qtensor::compat::stablehlo;
using qtensor::index_t;
using shlo::basic_type;
using shlo::element_type;
using shlo::quantized_type;
using shlo::tensor;

namespace {

using list = std::vector<index_t>;
const basic_type floats_of_tiles[] = {basic_type::f32, basic_type::f16, basic_type::bf16};
const basic_type storages[] = {basic_type::i2,  basic_type::i4,  basic_type::i8,  basic_type::i16, basic_type::i32,
                               basic_type::ui2, basic_type::ui4, basic_type::ui8, basic_type::ui16};

std::uint32_t bits(index_t i) { return static_cast<std::uint32_t>(i * 2654435761u + 12345u) * 2246822519u >> 3; }

/// Floats of every kind: halves of steps of a type's channels, large, subnormal and special ones.
tensor hard_floats(basic_type type, const list& shape, const quantized_type& steps) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const double special[] = {0.0,    -0.0,    inf,  -inf, -std::numeric_limits<double>::quiet_NaN(),
                            0x1p31, -0x1p31, 3e38, 1e-44};
  tensor x(type, shape);
  const tensor like(steps, shape);
  for (index_t i = 0; i < x.size(); ++i) {
    const std::uint32_t b = bits(i);
    const auto c = static_cast<std::size_t>(like.channel(i));
    const double code = static_cast<double>(steps.storage_min() + b % (steps.storage_max() - steps.storage_min() + 1));
    const double halves = code - static_cast<double>(steps.zero_points()[c]) + .5 * static_cast<double>(b % 5) - 1.0;
    x.set(i, {i % 7 == 3 ? special[b % std::size(special)] : halves * steps.scales()[c], 0});
  }
  return x;
}
tensor any_bytes(const element_type& type, const list& shape) {
  tensor x(type, shape);
  for (std::size_t i = 0; i < x.bytes().size(); ++i)
    x.bytes()[i] = static_cast<std::byte>(bits(static_cast<index_t>(i)));
  return x;
}
/// By the definition.
tensor retyped(const tensor& x, const element_type& to) {
  tensor y(to, x.shape());
  for (index_t i = 0; i < x.size(); ++i)
    y.set(i, shlo::detail::stored(to, shlo::detail::expressed(x, i), y.channel(i)));
  return y;
}
void check(const tensor& x, const element_type& to) {
  tensor y(to, x.shape());
  CHECK(shlo::pieces::has_tiles(x.type()));
  CHECK(shlo::pieces::has_tiles(to));
  shlo::pieces::retype(qtensor::serial{}, x, y);
  const tensor wanted = retyped(x, to);
  for (index_t i = 0; i < x.size(); ++i)
    if (std::memcmp(y.bytes().data() + i * shlo::bytes_of(to.stored()),
                    wanted.bytes().data() + i * shlo::bytes_of(to.stored()),
                    static_cast<std::size_t>(shlo::bytes_of(to.stored()))) != 0)
      FAIL("element ", i, " of ", shlo::to_string(x.type()), " to ", shlo::to_string(to));
}
/// A type of an axis (none: -1) of a shape, with its own zero points and often a narrow range.
quantized_type type_of(basic_type storage, basic_type expressed, const list& shape, int axis, bool narrow) {
  const auto low = shlo::min_value(storage), high = shlo::max_value(storage);
  std::vector<double> scales;
  std::vector<shlo::wide_integer> zeros;
  for (index_t c = 0; c < (axis < 0 ? 1 : shape[static_cast<std::size_t>(axis)]); ++c) {
    scales.push_back(c % 5 == 4 ? 0x1p-24 : .3 + .05 * static_cast<double>(c % 7));
    zeros.push_back(c % 3 == 1 ? low + narrow : c % 3 == 2 ? high - narrow : low + narrow + bits(c) % (high - low));
  }
  const auto whole = axis < 0 ? quantized_type::per_tensor(storage, expressed, scales[0], zeros[0])
                              : quantized_type::per_axis(storage, expressed, axis, scales, zeros);
  return narrow ? whole.in_range(low + 1, high) : whole;
}

}  // namespace

TEST_CASE("stablehlo tensor: tiles of every storage and expressed type equal the formulas, there and back") {
  for (const basic_type expressed : floats_of_tiles)
    for (const basic_type storage : storages) {
      if (storage == basic_type::i32 && expressed != basic_type::f32) continue;
      for (const index_t n : {1, 2, 7, 15, 16, 17, 31, 33, 40, 511, 512, 513, 1100})
        for (const bool narrow : {false, true}) {
          const auto type = type_of(storage, expressed, {n}, -1, narrow);
          const auto other = type_of(storage, expressed, {n}, 0, narrow);
          const tensor codes = any_bytes(type, {n});
          check(hard_floats(expressed, {n}, type), type);
          check(hard_floats(expressed, {n}, other), other);
          check(codes, expressed);
          check(codes, other);
          check(any_bytes(other, {n}), type);
        }
    }
}

TEST_CASE("stablehlo tensor: tiles of channels of every length") {
  for (const index_t channels : {1, 2, 3, 16, 17, 130, 600})
    for (const index_t inner : {1, 2, 3, 9, 16, 31, 64, 700}) {
      const list shape = {1 + 900 / (channels * inner), channels, inner};
      for (const basic_type storage : {basic_type::ui4, basic_type::i16, basic_type::i32}) {
        const auto type = type_of(storage, basic_type::f32, shape, 1, storage == basic_type::i16);
        check(hard_floats(basic_type::f32, shape, type), type);
        check(any_bytes(type, shape), basic_type::f32);
        check(any_bytes(type, shape), type_of(storage, basic_type::f32, shape, 2, false));
      }
    }
}

TEST_CASE("stablehlo tensor: tiles round the ends of ranges to the expressed type") {
  for (const basic_type expressed : floats_of_tiles)
    for (const auto& [low, high] : {std::array{-1003, 1001}, std::array{1003, 2049}, std::array{-32767, -30001}}) {
      const auto type = quantized_type::per_tensor(basic_type::i16, expressed, .25).in_range(-32768, 32767);
      const auto narrow = quantized_type::per_tensor(basic_type::i16, expressed, .25, low < 0 && high > 0 ? 0 : low);
      check(hard_floats(expressed, {600}, type), narrow.in_range(low, high));
      check(any_bytes(type, {600}), narrow.in_range(low, high));
    }
}

TEST_CASE("stablehlo tensor: floats of every kind become others") {
  const auto steps = quantized_type::per_tensor(basic_type::i16, basic_type::f32, 1e-3);
  for (const basic_type from : floats_of_tiles)
    for (const basic_type to : floats_of_tiles) {
      tensor y(to, {1100});
      const tensor x = hard_floats(from, {1100}, steps);
      CHECK(shlo::pieces::compute_tiles(
          qtensor::serial{}, y, [](const shlo::pieces::floats& v) { return v; }, x));
      const tensor wanted = retyped(x, to);
      for (std::size_t i = 0; i < y.bytes().size(); ++i)
        if (y.bytes()[i] != wanted.bytes()[i]) FAIL("byte ", i, " of ", shlo::name_of(from), " to ", shlo::name_of(to));
    }
}

TEST_CASE("stablehlo tensor: types without tiles") {
  for (const auto& type : {element_type(basic_type::f64), element_type(basic_type::i8), element_type(basic_type::i1),
                           element_type(quantized_type::per_tensor(basic_type::i8, basic_type::f64, 1.0)),
                           element_type(quantized_type::per_tensor(basic_type::i32, basic_type::f16, 1.0)),
                           element_type(quantized_type::per_tensor(basic_type::ui32, basic_type::f32, 1.0)),
                           element_type(quantized_type::per_tensor(basic_type::i64, basic_type::f32, 1.0))})
    CHECK(!shlo::pieces::has_tiles(type));
}
