// Mirrors include/qtensor/compat/stablehlo.hpp: every vector of NUMERICS 7.2, by schemes and at run time.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <limits>
#include <qtensor/compat/stablehlo.hpp>

#include "core/sentence.hpp"

using namespace qtensor;
namespace shlo = qtensor::compat::stablehlo;
using shlo::basic_type;
using shlo::parse_type;
using shlo::quantized_type;

namespace {

bool mentions(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

template <class T>
shlo::tensor tensor_of(const char* type, std::vector<index_t> shape, const std::vector<T>& elements) {
  return shlo::tensor(parse_type(type), std::move(shape), std::span<const T>(elements));
}
quantized_type quantized_of(const char* spelling) { return parse_type(spelling).quantized(); }

/// Codes of one element by a scheme, at scale 1.
template <class S>
int code_of(float x, std::int64_t zero_point = 0) {
  return static_cast<int>(S::code_format::decode(quantize_element<S>(x, {1.f}, zero_point)));
}

const float inf = std::numeric_limits<float>::infinity(), not_a_number = std::numeric_limits<float>::quiet_NaN();

}  // namespace

TEST_CASE("stablehlo: uniform<int8> at scale 1 gives the codes of NUMERICS 7.2") {
  using S = shlo::uniform<int8>;
  static_assert(quantize_element<S>(2.5f, {1.f}) == 2);
  CHECK(code_of<S>(2.5f) == 2);
  CHECK(code_of<S>(3.5f) == 4);
  CHECK(code_of<S>(-2.5f) == -2);
  CHECK(code_of<S>(1e9f) == 127);
  CHECK(code_of<S>(-inf) == -128);
  CHECK(code_of<S>(not_a_number, 3) == 0);
  CHECK(code_of<S>(.5f, 1) == 2);  // by our default 1
  CHECK(code_of<with<S, zp_after_round>>(.5f, 1) == 1);
  using narrow = shlo::uniform_range<int8, -127, 127>;
  CHECK(code_of<narrow>(-1000.f) == -127);
  CHECK(code_of<narrow>(-127.f) == -127);
  CHECK(std::is_same_v<narrow, with<S, stored_range<-127, 127>>>);
}

TEST_CASE("stablehlo: a per-axis tensor by scheme: {4, 15} is {10, 10} and back") {
  const std::vector<float> x = {4.f, 15.f}, scales = {.1f, .5f};
  const std::vector<int> zeros = {-30, -20};
  using S = shlo::uniform<int8, per_channel<0>>;
  const auto q = quantize<S>(source(x.data(), extents(2, 1)), scales, zeros);
  CHECK(q.codes()[0] == 10);
  CHECK(q.codes()[1] == 10);
  CHECK(reference::value(q.view(), {0, 0}) == 4.f);
  CHECK(reference::value(q.view(), {1, 0}) == 15.f);
  const auto r = requantize<S>(q, std::vector<float>{.1f, .2f}, std::vector<int>{-20, -30});
  CHECK(r.codes()[0] == 20);
  CHECK(r.codes()[1] == 45);
}

TEST_CASE("stablehlo: uniform_quantize, uniform_dequantize and requantize of NUMERICS 7.2 at run time") {
  const auto from = quantized_of("!quant.uniform<i8:f32:0, {0.1:-30,0.5:-20}>");
  const auto q = shlo::uniform_quantize(tensor_of<float>("f32", {2}, {4.f, 15.f}), from);
  CHECK(q.to_vector<std::int8_t>() == std::vector<std::int8_t>{10, 10});
  CHECK(shlo::uniform_dequantize(q).to_vector<float>() == std::vector<float>{4.f, 15.f});
  const auto r = shlo::uniform_quantize(q, quantized_of("!quant.uniform<i8:f32:0, {0.1:-20,0.2:-30}>"));
  CHECK(r.to_vector<std::int8_t>() == std::vector<std::int8_t>{20, 45});
}

TEST_CASE("stablehlo: run-time f32 runs on kernels and equals the formula, per tensor and per axis") {
  std::vector<float> x;
  for (int i = 0; i < 3 * 5 * 7; ++i) x.push_back(static_cast<float>((i * 37) % 101 - 50) * .25f);
  x[3] = not_a_number, x[4] = inf, x[5] = -inf, x[6] = 3e38f, x[7] = -0.f, x[8] = 0x1.fffffep+30f, x[9] = -0x1p31f;
  for (const char* spelling :
       {"!quant.uniform<i8:f32, 0.1:-30>", "!quant.uniform<ui8:f32, 0.1:30>", "!quant.uniform<i8<-100:90>:f32, 0.1>",
        "!quant.uniform<i8:f32:1, {0.1:1,0.2:2,0.3:3,0.4:4,0.5:5}>", "!quant.uniform<ui8:f32:2, {1,2,3,4,5:9,6,7}>",
        "!quant.uniform<i16:f32:0, {0.1,0.2,0.3}>", "!quant.uniform<i4:f32, 2>", "!quant.uniform<i32:f32, 0.3:-7>",
        "!quant.uniform<i32:f32, 1>", "!quant.uniform<i32:f32:1, {1e-9:2147483647,0.2:-2147483648,0.3:3,4:99,1:9}>",
        "!quant.uniform<i32<-90:90>:f32, 0.1>", "!quant.uniform<ui32:f32, 0.1:30>"}) {
    INFO(spelling);
    const auto type = quantized_of(spelling);
    const auto t = tensor_of<float>("f32", {3, 5, 7}, x);
    const auto q = shlo::uniform_quantize(t, type);
    const auto back = shlo::uniform_dequantize(q);
    for (index_t i = 0; i < t.size(); ++i) {
      INFO("element ", i);
      const auto code = type.quantize(x[static_cast<std::size_t>(i)], q.channel(i));
      CHECK(q.at(i).integer == code);
      CHECK(back.at(i).real == type.dequantize(code, q.channel(i)));
    }
  }
}

TEST_CASE("stablehlo: channels of every length, many and few, equal the formula") {
  const float hard[] = {not_a_number, inf, -inf, -0.f, 1e30f, -12.75f, 12.85f, 0.f};
  for (const bool is_signed : {true, false})
    for (const index_t channels : {1, 2, 3, 5, 16, 17, 40, 130})
      for (const index_t inner : {1, 2, 3, 4, 7, 9, 16, 31, 33, 64, 130}) {
        INFO(channels, " channels of ", inner);
        std::vector<double> scales;
        std::vector<shlo::wide_integer> zeros;
        for (index_t c = 0; c < channels; ++c)
          scales.push_back(c % 6 == 5 ? 1e-42 : .1 * static_cast<double>(c % 11 + 1)), zeros.push_back(c * 5 % 90);
        const auto type =
            quantized_type::per_axis(is_signed ? basic_type::i8 : basic_type::ui8, basic_type::f32, 1, scales, zeros);
        const index_t outer = 1 + 600 / (channels * inner);
        std::vector<float> x(static_cast<std::size_t>(outer * channels * inner));
        for (std::size_t i = 0; i < x.size(); ++i)
          x[i] = i % 13 == 5 ? hard[i / 13 % std::size(hard)] : static_cast<float>(i * 7919 % 2001) * .03f - 30.f;
        const auto q = shlo::uniform_quantize(tensor_of<float>("f32", {outer, channels, inner}, x), type);
        const auto back = shlo::uniform_dequantize(q).to_vector<float>();
        for (index_t i = 0; i < q.size(); ++i) {
          const auto code = type.quantize(x[static_cast<std::size_t>(i)], q.channel(i));
          const auto value = static_cast<float>(type.dequantize(code, q.channel(i)));
          if (q.at(i).integer != code || bits_of(back[static_cast<std::size_t>(i)]) != bits_of(value))
            FAIL("element ", i, " of channel ", q.channel(i));
        }
      }
  const shlo::tensor none(basic_type::f32, {2, 0, 3});
  const auto one = quantized_of("!quant.uniform<i8:f32:0, {1,2}>");
  CHECK(shlo::uniform_dequantize(shlo::uniform_quantize(none, one)).size() == 0);
}

TEST_CASE("stablehlo: a per-axis tensor of no channels goes to codes and back") {
  for (const auto storage : {basic_type::i8, basic_type::ui8, basic_type::i32, basic_type::i16}) {
    const auto type = quantized_type::per_axis(storage, basic_type::f32, 1, {}, {});
    const auto q = shlo::uniform_quantize(shlo::tensor(basic_type::f32, {3, 0}), type);
    CHECK(q.size() == 0);
    CHECK(shlo::uniform_dequantize(q).size() == 0);
  }
}

TEST_CASE("stablehlo: a tensor without elements may have other extents whose product does not fit") {
  constexpr index_t huge = index_t{1} << 40;
  for (const auto& shape : {std::vector<index_t>{2, 0, huge, huge}, {2, huge, huge, 0}}) {
    const auto type = quantized_type::per_axis(basic_type::i8, basic_type::f32, 0, {1.0, 2.0}, {0, 1});
    const auto q = shlo::uniform_quantize(shlo::tensor(basic_type::f32, shape), type);
    CHECK(q.size() == 0);
    CHECK(shlo::uniform_dequantize(q).shape() == shape);
  }
}

TEST_CASE("stablehlo: every storage and expressed type goes to codes and back") {
  for (const char* storage : {"i2", "i4", "i8", "i16", "i32", "i64", "ui2", "ui4", "ui8", "ui16", "ui32", "ui64"})
    for (const char* expressed : {"f16", "bf16", "f32", "f64"}) {
      const std::string spelling = std::string("!quant.uniform<") + storage + ":" + expressed + ", 0.5:1>";
      INFO(spelling);
      shlo::tensor x(parse_type(expressed), {3});
      for (index_t i = 0; i < 3; ++i) x.set(i, {-.5 + .5 * static_cast<double>(i), 0});
      const auto q = shlo::uniform_quantize(x, quantized_of(spelling.c_str()));
      for (index_t i = 0; i < 3; ++i)  // codes 0, 1, 2; i2 ends at 1
        CHECK(q.at(i).integer == (std::string(storage) == "i2" ? std::min<index_t>(i, 1) : i));
      const auto back = shlo::uniform_dequantize(q);
      CHECK(back.type() == x.type());
      CHECK(back.at(0).real == -.5);
      CHECK(back.at(1).real == 0.);
    }
}

TEST_CASE("stablehlo: run-time tensors keep bytes, wrap integers and bitcast to their storage") {
  const auto t = tensor_of<std::int8_t>("i8", {2, 2}, {-1, 2, -128, 127});
  CHECK(t.at(0).integer == -1);
  CHECK(t.at(2).integer == -128);
  const auto q = t.bitcast(parse_type("!quant.uniform<i8:f32, 0.5:1>"));
  CHECK(shlo::uniform_dequantize(q).to_vector<float>() == std::vector<float>{-1.f, .5f, -64.5f, 63.f});
  CHECK(q.bitcast(basic_type::i8).to_vector<std::int8_t>() == t.to_vector<std::int8_t>());
  const auto u = tensor_of<std::uint64_t>("ui64", {}, {~std::uint64_t{0}});
  CHECK(u.size() == 1);
  CHECK(u.at(0).integer == shlo::max_value(basic_type::ui64));
  CHECK(shlo::tensor::wrapped(basic_type::i8, 128) == -128);
  CHECK(shlo::tensor::wrapped(basic_type::ui4, -1) == 15);
  CHECK(shlo::tensor::wrapped(basic_type::i1, 2) == 1);
  const auto h = tensor_of<std::uint16_t>("f16", {1}, {0x3c00});
  CHECK(h.at(0).real == 1.0);
}

TEST_CASE("stablehlo: refused at run time, by name of the constraint") {
  const auto f = tensor_of<float>("f32", {2}, {1.f, 2.f});
  CHECK(mentions(sentence([&] { shlo::uniform_quantize(f, quantized_of("!quant.uniform<i8:f16, 1>")); }),
                 "constraint: expressed_type"));
  CHECK(mentions(sentence([&] { shlo::uniform_dequantize(f); }), "the operand of uniform_dequantize is quantized"));
  CHECK(mentions(sentence([&] { shlo::uniform_quantize(f, quantized_of("!quant.uniform<i8:f32:0, {1}>")); }),
                 "dim(quantization_dimension) = size(scales)"));
  const auto q = shlo::uniform_quantize(f, quantized_of("!quant.uniform<i8:f32, 1>"));
  CHECK(mentions(sentence([&] { shlo::uniform_quantize(q, quantized_of("!quant.uniform<i8:bf16, 1>")); }),
                 "expressed_type(operand) = expressed_type(result)"));
  CHECK(mentions(sentence([&] { tensor_of<float>("f32", {3}, {1.f}); }), "1 elements are given for a tensor of 3"));
  CHECK(mentions(sentence([&] { tensor_of<float>("i8", {1}, {1.f}); }), "elements of 4 bytes are given for i8"));
  CHECK(mentions(sentence([&] { shlo::tensor(basic_type::f32, {-1}); }), "an extent is at least 0"));
  constexpr index_t huge = index_t{1} << 40;
  CHECK(mentions(sentence([&] { shlo::tensor(basic_type::f32, {huge, huge}); }), "63 bits"));
  CHECK(sentence([&] { shlo::tensor(static_cast<basic_type>(99), {1}); }) ==
        "qtensor: an element type has number 99; basic_type has 0 (i1) to 16 (f64).");
}
