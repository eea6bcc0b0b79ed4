// Mirrors include/qtensor/compat/stablehlo_types.hpp: the constraints of NUMERICS 7.1, the formulas of 7.2.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <limits>
#include <qtensor/compat/stablehlo_types.hpp>

#include "core/sentence.hpp"

using namespace qtensor;
using namespace qtensor::compat::stablehlo;

namespace {

constexpr auto i8 = basic_type::i8, f32_type = basic_type::f32;
const double inf = std::numeric_limits<double>::infinity(), not_a_number = std::numeric_limits<double>::quiet_NaN();

bool mentions(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Whether the spelling is refused with a sentence that holds `part`.
bool refused(const std::string& spelling, const std::string& part) {
  const std::string said = sentence([&] { parse_type(spelling); });
  INFO(spelling, ": ", said);
  CHECK(mentions(said, part));
  return mentions(said, part);
}

}  // namespace

TEST_CASE("stablehlo types: names, widths and ranges of basic types") {
  CHECK(basic_type_of("ui4") == basic_type::ui4);
  CHECK(basic_type_of("bf16") == basic_type::bf16);
  CHECK(!basic_type_of("f8"));
  CHECK(min_value(basic_type::i2) == -2);
  CHECK(max_value(basic_type::ui2) == 3);
  CHECK(static_cast<std::uint64_t>(max_value(basic_type::ui64)) == std::numeric_limits<std::uint64_t>::max());
  CHECK(static_cast<std::int64_t>(min_value(basic_type::i64)) == std::numeric_limits<std::int64_t>::min());
  CHECK(bytes_of(basic_type::i4) == 1);
  CHECK(is_integer(basic_type::ui64));
  CHECK(!is_integer(basic_type::i1));
}

TEST_CASE("stablehlo types: round_to rounds once, ties to even, to infinity beyond the largest number") {
  CHECK(round_to(basic_type::bf16, 1.0 + 0x1p-8) == 1.0);                     // a tie
  CHECK(round_to(basic_type::bf16, 1.0 + 0x1p-8 + 0x1p-40) == 1.0 + 0x1p-7);  // above it by less than f32 sees
  CHECK(round_to(basic_type::f16, 1.0 + 0x1p-11 + 0x1p-45) == 1.0 + 0x1p-10);
  CHECK(round_to(basic_type::f16, 65519.0) == 65504.0);
  CHECK(round_to(basic_type::f16, 65520.0) == inf);
  CHECK(round_to(basic_type::f32, 16777217.0) == 16777216.0);
  CHECK(round_to(basic_type::f64, 0.1) == 0.1);
  CHECK(std::isnan(round_to(basic_type::bf16, not_a_number)));
  CHECK(round_to(basic_type::bf16, -inf) == -inf);
  // 2^60 + 2^36 is a tie of f32; one more is not, though no double holds it.
  const wide_integer tie = (wide_integer{1} << 60) + (wide_integer{1} << 36);
  CHECK(round_integer_to(f32_type, tie) == 0x1p60);
  CHECK(round_integer_to(f32_type, tie + 1) == 0x1p60 + 0x1p37);
  CHECK(round_integer_to(basic_type::f64, tie + 1) == 0x1p60 + 0x1p36);
  CHECK(mentions(sentence([] { round_to(basic_type::i8, 1.0); }), "i8 is not a float type"));
}

TEST_CASE("stablehlo types: i8 of f32 at scale 1: ties to even, saturation, NaN is code 0") {
  const auto t = quantized_type::per_tensor(i8, f32_type, 1.0);
  CHECK(t.quantize(2.5) == 2);
  CHECK(t.quantize(3.5) == 4);
  CHECK(t.quantize(-2.5) == -2);
  CHECK(t.quantize(1e9) == 127);
  CHECK(t.quantize(-inf) == -128);
  CHECK(t.quantize(not_a_number) == 0);
  CHECK(quantized_type::per_tensor(i8, f32_type, 1.0, 6).in_range(5, 9).quantize(not_a_number) == 5);
  CHECK(quantized_type::per_tensor(i8, f32_type, 1.0, 1).quantize(0.5) == 2);  // the zero point before rounding
  CHECK(t.in_range(-127, 127).quantize(-1000.0) == -127);
}

TEST_CASE("stablehlo types: ends of a range that the expressed type does not hold are rounded to it, as codes are") {
  const auto t = quantized_type::per_tensor(basic_type::i16, basic_type::bf16, 1.0).in_range(-2049, 2049);
  CHECK(t.quantize(2048.0) == 2048);
  CHECK(t.quantize(-2048.0) == -2048);
  CHECK(t.quantize(1e9) == 2048);
  CHECK(quantized_type::per_tensor(basic_type::i16, basic_type::bf16, 1.0).quantize(1e9) == 32767);  // 32768 in bf16
  const auto far =
      quantized_type::per_tensor(basic_type::ui32, basic_type::f16, 1.0, 1 << 20).in_range(1 << 20, 1 << 21);
  CHECK(far.quantize(1.0) == 1 << 21);  // all of them infinity in f16
}

TEST_CASE("stablehlo types: the zero point is subtracted in more bits than the storage has") {
  CHECK(quantized_type::per_tensor(i8, f32_type, 1.0, -128).dequantize(127) == 255.0);
  const auto u = quantized_type::per_tensor(basic_type::ui64, basic_type::f64, 1.0, max_value(basic_type::ui64));
  CHECK(u.dequantize(max_value(basic_type::ui64) - 7) == -7.0);
  CHECK(u.quantize(0.0) == max_value(basic_type::ui64));
  CHECK(u.quantize(-0x1p64) == 0);
  const auto wide = quantized_type::per_tensor(basic_type::i64, basic_type::f64, 0.5);
  CHECK(wide.quantize(1e300) == max_value(basic_type::i64));
  CHECK(wide.quantize(0x1p40) == wide_integer{1} << 41);
}

TEST_CASE("stablehlo types: arithmetic is that of the expressed type") {
  // 257 is a tie of bf16 (ulp 2): even is 256; 259 goes up to 260.
  const auto b = quantized_type::per_tensor(basic_type::i16, basic_type::bf16, 1.0);
  CHECK(b.dequantize(257) == 256.0);
  CHECK(b.dequantize(259) == 260.0);
  // 200 / 0.75 = 266.67: 267 in f32, 266 or 268 in bf16.
  CHECK(quantized_type::per_tensor(basic_type::i16, basic_type::f32, 0.75).quantize(200.0) == 267);
  CHECK(quantized_type::per_tensor(basic_type::i16, basic_type::bf16, 0.75).quantize(200.0) == 266);
  // 0.1 as f16 is 0.0999755859375.
  CHECK(quantized_type::per_tensor(i8, basic_type::f16, 0.1).scales()[0] == 0.0999755859375);
  CHECK(quantized_type::per_tensor(i8, basic_type::f16, 0.1).dequantize(10) == 1.0);
  CHECK(quantized_type::per_tensor(i8, basic_type::f64, 0.1).dequantize(3) == 0.1 * 3);
  // An f16 sum beyond 65504 is infinite, and saturates.
  CHECK(quantized_type::per_tensor(basic_type::i32, basic_type::f16, 1.0).quantize(inf) == max_value(basic_type::i32));
}

TEST_CASE("stablehlo types: per-axis scales go by channel; requantize is quantize of dequantize") {
  const auto from = quantized_type::per_axis(i8, f32_type, 0, {0.1, 0.5}, {-30, -20});
  const auto to = quantized_type::per_axis(i8, f32_type, 0, {0.1, 0.2}, {-20, -30});
  CHECK(from.quantize(4.0, 0) == 10);
  CHECK(from.quantize(15.0, 1) == 10);
  CHECK(from.dequantize(10, 0) == 4.0);
  CHECK(from.dequantize(10, 1) == 15.0);
  CHECK(from.requantize(10, to, 0) == 20);
  CHECK(from.requantize(10, to, 1) == 45);
  const auto other = quantized_type::per_tensor(i8, basic_type::bf16, 1.0);
  CHECK(mentions(sentence([&] { from.requantize(1, other); }), "expressed_type(operand) = expressed_type(result)"));
}

TEST_CASE("stablehlo types: every constraint of a type has its sentence") {
  refused("!quant.uniform<f32:f32, 1.0>", "constraint: it is an integer");
  refused("!quant.uniform<i1:f32, 1.0>", "constraint: it is an integer");
  refused("!quant.uniform<i8:i8, 1.0>", "constraint: it is a float");
  refused("!quant.uniform<i8<-129:127>:f32, 1.0>", "min_value(storage_type) <= storage_min");
  refused("!quant.uniform<i8<5:5>:f32, 1.0>", "storage_min < storage_max");
  refused("!quant.uniform<ui8<0:256>:f32, 1.0>", "storage_max <= max_value(storage_type)");
  refused("!quant.uniform<i8:f32, 0.0>", "0 < scales");
  refused("!quant.uniform<i8:f32, -1.0>", "0 < scales");
  refused("!quant.uniform<i8:f32, inf>", "is_finite(scales)");
  refused("!quant.uniform<i8:f16, 1e-9>", "0 < scales");  // 0 as f16
  refused("!quant.uniform<i8:f32, 1.0:128>", "zero_points <= storage_max");
  refused("!quant.uniform<i8<-127:127>:f32, 1.0:-128>", "storage_min <= zero_points");
  refused("!quant.uniform<i8:f32:-1, {1.0}>", "0 <= quantization_dimension");
  refused("!quant.uniform<i8:f32:-4294967295, {1.0}>", "0 <= quantization_dimension");
  refused("!quant.uniform<i8:f32:4294967296, {1.0}>", "a dimension of at most 2147483647");
  CHECK(mentions(sentence([] {
                   quantized_type::per_axis(i8, f32_type, 0, {1.0, 2.0}, {0});
                 }),
                 "size(scales) = size(zero_points)"));
  const auto axis_2 = quantized_type::per_axis(i8, f32_type, 2, {1.0, 2.0}, {0, 0});
  CHECK(mentions(sentence([&] { axis_2.check_shape({3, 2}); }), "0 <= quantization_dimension < rank"));
  CHECK(mentions(sentence([&] { axis_2.check_shape({3, 2, 3}); }), "dim(quantization_dimension) = size(scales)"));
  axis_2.check_shape({3, 2, 2});
}

TEST_CASE("stablehlo types: a number that is no basic type is refused") {
  const std::string none = "qtensor: an element type has number 99; basic_type has 0 (i1) to 16 (f64).";
  const auto unknown = static_cast<basic_type>(99);
  CHECK(sentence([&] { name_of(unknown); }) == none);
  CHECK(sentence([&] { round_to(unknown, 1.0); }) == none);
  CHECK(sentence([&] { quantized_type::per_tensor(unknown, f32_type, 1.0); }) == none);
  CHECK(sentence([&] { quantized_type::per_tensor(i8, unknown, 1.0); }) == none);
  CHECK(sentence([&] { is_float(static_cast<basic_type>(-1)); }) ==
        "qtensor: an element type has number -1; basic_type has 0 (i1) to 16 (f64).");
}

TEST_CASE("stablehlo types: spellings read and write") {
  for (const char* text :
       {"f32", "i1", "ui64", "bf16", "!quant.uniform<i8:f32, 0.1:-30>", "!quant.uniform<i8<-127:127>:f32, 0.5>",
        "!quant.uniform<ui4:bf16:1, {0.5, 2:7}>", "!quant.uniform<i32:f64, 1.5377370458777768e-05>"}) {
    INFO(text);
    const element_type type = parse_type(text);
    CHECK(parse_type(to_string(type)) == type);
  }
  CHECK(to_string(parse_type("!quant.uniform<i8:f16:1, {0.5:-30,2.0}>")) == "!quant.uniform<i8:f16:1, {0.5:-30, 2}>");
  CHECK(to_string(parse_type("!quant.uniform<i8<-127:127>:f32,0.5:3>")) == "!quant.uniform<i8<-127:127>:f32, 0.5:3>");
  const element_type type = parse_type("!quant.uniform<i8:f32:0, {0.1:-30,0.5:-20}>");
  REQUIRE(type.is_quantized());
  CHECK(type.stored() == i8);
  CHECK(type.computed() == f32_type);
  CHECK(type.quantized() == quantized_type::per_axis(i8, f32_type, 0, {0.1, 0.5}, {-30, -20}));
  refused("f8", "an element type is expected");
  refused("f32x", "an element type is expected");
  refused("f32 f32", "nothing more is expected");
  refused("!quant.uniform<i8:f32, x>", "a scale is expected");
  refused("!quant.uniform<i8:f32, 1.0:>", "an integer is expected");
  refused("!quant.uniform<i8:f32:0, 1.0>", "{ is expected");
  refused("!quant.uniform<i8:f32, 1.0", "> is expected");
}
