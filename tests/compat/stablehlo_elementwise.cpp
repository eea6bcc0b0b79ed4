// Mirrors include/qtensor/compat/stablehlo_elementwise.hpp: NUMERICS 7.2 and every operation on every kind of type.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <limits>
#include <qtensor/compat/stablehlo_elementwise.hpp>

#include "core/sentence.hpp"

namespace shlo = qtensor::compat::stablehlo;
using qtensor::index_t;
using shlo::basic_type;
using shlo::binary;
using shlo::direction;
using shlo::unary;

namespace {

bool mentions(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

template <class T>
shlo::tensor tensor_of(const char* type, const std::vector<T>& elements) {
  return shlo::tensor(shlo::parse_type(type), {static_cast<index_t>(elements.size())}, std::span<const T>(elements));
}
/// A tensor of a type from real numbers (or integers), each rounded into it.
shlo::tensor reals(const char* type, const std::vector<double>& x) {
  const auto t = shlo::parse_type(type);
  shlo::tensor out(t, {static_cast<index_t>(x.size())});
  for (index_t i = 0; i < out.size(); ++i) {
    const double v = x[static_cast<std::size_t>(i)];
    out.set(i, t.is_quantized()             ? shlo::scalar{0.0, t.quantized().quantize(v, out.channel(i))}
               : shlo::is_float(t.stored()) ? shlo::scalar{v, 0}
                                            : shlo::scalar{0.0, static_cast<shlo::wide_integer>(v)});
  }
  return out;
}
/// The elements of a tensor as real numbers, dequantized.
std::vector<double> numbers(const shlo::tensor& x) {
  std::vector<double> out;
  for (index_t i = 0; i < x.size(); ++i) {
    const auto v = shlo::detail::expressed(x.type(), x.at(i), x.channel(i));
    out.push_back(shlo::is_float(x.type().computed()) ? v.real : static_cast<double>(v.integer));
  }
  return out;
}
using list = std::vector<double>;
const double inf = std::numeric_limits<double>::infinity(), not_a_number = std::numeric_limits<double>::quiet_NaN();

list result(binary op, const char* type, const list& a, const list& b) {
  return numbers(shlo::elementwise(op, reals(type, a), reals(type, b), shlo::parse_type(type)));
}
list result(unary op, const char* type, const list& a) {
  return numbers(shlo::elementwise(op, reals(type, a), shlo::parse_type(type)));
}

}  // namespace

TEST_CASE("stablehlo elementwise: the quantized sum of NUMERICS 7.2") {
  const auto a = reals("!quant.uniform<i8:f32, 0.1:-30>", {1, 2}), b = reals("!quant.uniform<i8:f32, 0.5:-20>", {3, 4});
  CHECK(a.to_vector<std::int8_t>() == std::vector<std::int8_t>{-20, -10});
  CHECK(b.to_vector<std::int8_t>() == std::vector<std::int8_t>{-14, -12});
  const auto sum = shlo::elementwise(binary::add, a, b, b.type());
  CHECK(sum.to_vector<std::int8_t>() == std::vector<std::int8_t>{-12, -8});
}

TEST_CASE("stablehlo elementwise: dequantize, operate, quantize for every storage and expressed type") {
  for (const char* storage : {"i4", "i8", "i16", "i32", "i64", "ui4", "ui8", "ui16", "ui32", "ui64"})
    for (const char* expressed : {"f16", "bf16", "f32", "f64"}) {
      const std::string spelled = std::string("!quant.uniform<") + storage + ":" + expressed + ", 0.5:4>";
      const char* type = spelled.c_str();
      INFO(spelled);
      CHECK(result(binary::add, type, {1, .5}, {-.5, .5}) == list{.5, 1});
      CHECK(result(binary::subtract, type, {1, -1}, {.5, .5}) == list{.5, -1.5});
      CHECK(result(binary::multiply, type, {1.5, -1}, {1, 1.5}) == list{1.5, -1.5});
      CHECK(result(binary::divide, type, {1.5, -1}, {-1, .5}) == list{-1.5, -2});
      CHECK(result(binary::maximum, type, {1, -1}, {.5, 1}) == list{1, 1});
      CHECK(result(binary::minimum, type, {1, -1}, {.5, 1}) == list{.5, -1});
      CHECK(result(unary::negate, type, {1, -.5}) == list{-1, .5});
      CHECK(result(unary::abs, type, {1, -.5}) == list{1, .5});
      CHECK(result(unary::sign, type, {1.5, -.5, 0}) == list{1, -1, 0});
      CHECK(result(unary::floor, type, {.5, -.5}) == list{0, -1});
      CHECK(result(unary::ceil, type, {.5, -.5}) == list{1, 0});
    }
}

TEST_CASE("stablehlo elementwise: per-axis and hybrid operands") {
  const auto a = reals("!quant.uniform<i8:f32:0, {0.5, 10}>", {4, 40});
  const auto b = reals("!quant.uniform<i8:f32:0, {1, 1}>", {1, 2});
  CHECK(numbers(shlo::elementwise(binary::add, a, b, a.type())) == list{5, 40});  // 42 is 4.2 quanta of 10
  const auto f = reals("f32", {.25, .25});
  CHECK(numbers(shlo::elementwise(binary::multiply, f, a, basic_type::f32)) == list{1, 10});
  CHECK(numbers(shlo::elementwise(binary::multiply, f, a, a.type())) == list{1, 10});
  CHECK(shlo::compare(direction::lt, f, a).to_vector<std::uint8_t>() == std::vector<std::uint8_t>{1, 1});
}

TEST_CASE("stablehlo elementwise: floats of per-axis operands are dequantized by their own axes") {
  const auto matrix = [](const char* type, std::vector<std::int8_t> codes) {
    return shlo::tensor(shlo::parse_type(type), {2, 2}, std::span<const std::int8_t>(codes));
  };
  const auto a = matrix("!quant.uniform<i8:f32:0, {1, 10}>", {1, 2, 3, 4}),
             b = matrix("!quant.uniform<i8:f32:1, {100, 1000}>", {1, 2, 3, 4});
  CHECK(numbers(shlo::elementwise(unary::negate, a, basic_type::f32)) == list{-1, -2, -30, -40});
  CHECK(numbers(shlo::elementwise(binary::add, a, b, basic_type::f32)) == list{101, 2002, 330, 4040});
  const auto c = matrix("!quant.uniform<i8:f32:1, {1, 20}>", {1, 2, 30, 2});
  CHECK(shlo::compare(direction::eq, a, c).to_vector<std::uint8_t>() == std::vector<std::uint8_t>{1, 0, 1, 1});
}

TEST_CASE("stablehlo elementwise: float operations round once to their type") {
  CHECK(result(binary::add, "bf16", {256}, {1}) == list{256});
  CHECK(result(binary::multiply, "f16", {300}, {300}) == list{inf});
  CHECK(result(binary::add, "f32", {16777216}, {1}) == list{16777216});
  CHECK(result(binary::divide, "f32", {1}, {3}) == list{static_cast<double>(1.f / 3.f)});
  CHECK(result(binary::divide, "f64", {1}, {3}) == list{1.0 / 3.0});
  CHECK(std::isnan(result(binary::maximum, "f32", {1}, {not_a_number})[0]));
  CHECK(std::isnan(result(binary::minimum, "f32", {not_a_number}, {1})[0]));
  CHECK(std::signbit(result(binary::minimum, "f32", {0}, {-0.0})[0]));
  CHECK(!std::signbit(result(binary::maximum, "f32", {-0.0}, {0})[0]));
  CHECK(result(unary::sign, "f16", {-inf}) == list{-1});
  CHECK(std::isnan(result(unary::sign, "f32", {not_a_number})[0]));
}

TEST_CASE("stablehlo elementwise: integers wrap, divide toward zero, and have and and or") {
  CHECK(result(binary::add, "i8", {127}, {1}) == list{-128});
  CHECK(result(binary::subtract, "ui8", {0}, {1}) == list{255});
  CHECK(result(binary::multiply, "i16", {300}, {300}) == list{24464});
  CHECK(result(binary::divide, "i8", {-7, -128, 5}, {2, -1, 0}) == list{-3, -128, -1});
  CHECK(result(binary::maximum, "ui8", {200}, {100}) == list{200});
  CHECK(result(binary::minimum, "i4", {-8}, {7}) == list{-8});
  CHECK(result(binary::and_, "i8", {-1, 12}, {10, 10}) == list{10, 8});
  CHECK(result(binary::or_, "ui4", {9}, {6}) == list{15});
  CHECK(result(unary::abs, "i8", {-128, -5, 5}) == list{-128, 5, 5});
  CHECK(result(unary::negate, "ui8", {1}) == list{255});
  CHECK(result(unary::sign, "i32", {-9, 0, 9}) == list{-1, 0, 1});
  const auto big = tensor_of<std::uint64_t>("ui64", {~std::uint64_t{0}});
  CHECK(shlo::elementwise(binary::multiply, big, big, basic_type::ui64).to_vector<std::uint64_t>()[0] == 1);
  CHECK(shlo::compare(direction::gt, big, reals("ui64", {1})).at(0).integer == 1);
}

TEST_CASE("stablehlo elementwise: booleans: add and maximum are or, multiply and minimum and") {
  const list a = {0, 0, 1, 1}, b = {0, 1, 0, 1};
  for (binary op : {binary::add, binary::maximum, binary::or_}) CHECK(result(op, "i1", a, b) == list{0, 1, 1, 1});
  for (binary op : {binary::multiply, binary::minimum, binary::and_}) CHECK(result(op, "i1", a, b) == list{0, 0, 0, 1});
}

TEST_CASE("stablehlo elementwise: comparisons and select see dequantized numbers") {
  const auto a = reals("!quant.uniform<i8:f32, 0.5:3>", {1, 2, 3}),
             b = reals("!quant.uniform<i8:f32, 1:-3>", {2, 2, 2});
  const auto check = [&](direction d, std::vector<std::uint8_t> expected) {
    CHECK(shlo::compare(d, a, b).to_vector<std::uint8_t>() == expected);
  };
  check(direction::eq, {0, 1, 0});
  check(direction::ne, {1, 0, 1});
  check(direction::ge, {0, 1, 1});
  check(direction::gt, {0, 0, 1});
  check(direction::le, {1, 1, 0});
  check(direction::lt, {1, 0, 0});
  const auto nan = reals("f32", {not_a_number});
  CHECK(shlo::compare(direction::eq, nan, nan).at(0).integer == 0);
  CHECK(shlo::compare(direction::ne, nan, nan).at(0).integer == 1);
  const auto chosen = shlo::select(shlo::compare(direction::lt, a, b), a, b, b.type());
  CHECK(numbers(chosen) == list{1, 2, 2});
  CHECK(chosen.type() == b.type());
  const shlo::tensor yes(basic_type::i1, {});
  CHECK(numbers(shlo::select(yes, a, b, a.type())) == numbers(b));
}

TEST_CASE("stablehlo elementwise: convert between booleans, integers and floats") {
  CHECK(numbers(shlo::convert(reals("f32", {1.9, -1.9, 300, -300, not_a_number, -inf}), basic_type::i8)) ==
        list{1, -1, 127, -128, 0, -128});
  CHECK(numbers(shlo::convert(reals("i32", {300, -1}), basic_type::ui8)) == list{44, 255});
  CHECK(numbers(shlo::convert(reals("i32", {16777217}), basic_type::f32)) == list{16777216});
  CHECK(numbers(shlo::convert(reals("f32", {0, -2}), basic_type::i1)) == list{0, 1});
  CHECK(numbers(shlo::convert(reals("i1", {0, 1}), basic_type::bf16)) == list{0, 1});
  CHECK(numbers(shlo::convert(reals("f64", {1e300}), basic_type::f32)) == list{inf});
}

TEST_CASE("stablehlo elementwise: to_destination_type: requantize, quantize, dequantize, convert") {
  const auto u8 = shlo::parse_type("!quant.uniform<ui8:f32, 0.5:10>"),
             i32 = shlo::parse_type("!quant.uniform<i32:f32, 0.25>");
  CHECK(shlo::to_destination_type(u8, {0.0, 110}, i32).integer == 200);
  CHECK(shlo::to_destination_type(basic_type::f32, {50.0, 0}, u8).integer == 110);
  CHECK(shlo::to_destination_type(u8, {0.0, 110}, basic_type::f32).real == 50.0);
  CHECK(shlo::to_destination_type(basic_type::bf16, {3.0, 0}, basic_type::f32).real == 3.0);
  CHECK(mentions(sentence([&] { shlo::to_destination_type(basic_type::f64, {}, u8); }), "the expressed types agree"));
  CHECK(mentions(sentence([&] { shlo::to_destination_type(u8, {}, basic_type::bf16); }), "its expressed type"));
}

namespace {

/// Elements of any kind, special ones among them.
shlo::tensor mixed(const shlo::element_type& type, index_t n, index_t seed) {
  const double special[] = {0.0, -0.0, inf, -inf, not_a_number, 0x1p31, -0x1p31, 1e38, -1e-44, .5, -.5, 254.5};
  shlo::tensor x(type, {n});
  for (index_t i = 0; i < n; ++i) {
    const index_t b = (i + seed) * 7919 % 4093;
    if (shlo::is_float(type.stored()))
      x.set(i, {b % 3 == 0 ? special[b % 12] : static_cast<double>(b % 401 - 200) * .375, 0});
    else
      x.set(i, {0.0, static_cast<shlo::wide_integer>(b * 77003 - 120000000) * (b % 5 == 0 ? 40 : 1)});
  }
  return x;
}
bool same_elements(const shlo::tensor& x, index_t i, const shlo::scalar& wanted) {
  const shlo::scalar is = x.at(i);
  return is.integer == wanted.integer &&
         ((std::isnan(is.real) && std::isnan(wanted.real)) ||
          (is.real == wanted.real && std::signbit(is.real) == std::signbit(wanted.real)));
}

}  // namespace

TEST_CASE("stablehlo elementwise: whole tensors equal their elements") {
  using shlo::unary, shlo::binary, shlo::direction;
  const std::vector<std::array<const char*, 3>> types = {
      {"f32", "f32", "f32"},
      {"f16", "f16", "f16"},
      {"bf16", "bf16", "bf16"},
      {"f64", "f64", "f64"},
      {"!quant.uniform<i8:f32, 0.1:3>", "!quant.uniform<i8:f32, 0.7:-128>", "!quant.uniform<i8:f32, 0.3:5>"},
      {"!quant.uniform<ui4:f16, 0.1:3>", "f16", "!quant.uniform<ui4:f16, 2:15>"},
      {"!quant.uniform<i32:f32, 0.001:-2147483648>", "!quant.uniform<i32:f32, 0.01:7>",
       "!quant.uniform<i32:f32, 0.01>"},
      {"bf16", "!quant.uniform<ui16:bf16, 0.02:40000>", "!quant.uniform<ui16<90:50000>:bf16, 0.02:99>"},
      {"!quant.uniform<i64:f32, 0.1:3>", "!quant.uniform<i64:f32, 0.7>", "!quant.uniform<i64:f32, 0.3:5>"}};
  for (const auto& spelled : types) {
    const auto a = shlo::parse_type(spelled[0]), b = shlo::parse_type(spelled[1]), y = shlo::parse_type(spelled[2]);
    for (index_t n = 1; n < 600; n += n < 40 ? 1 : 471) {
      const auto v = mixed(a, n, 1), w = mixed(b, n, 2000);
      const auto all = [&](const auto& name, const shlo::tensor& result, const auto& element) {
        for (index_t i = 0; i < n; ++i)
          if (!same_elements(result, i, element(i))) FAIL(name, ", element ", i, " of ", n, " of ", spelled[0]);
      };
      for (const unary op : {unary::abs, unary::ceil, unary::floor, unary::negate, unary::sign})
        all("unary", shlo::elementwise(op, v, y), [&](index_t i) { return shlo::apply(op, a, v.at(i), y); });
      for (const binary op :
           {binary::add, binary::divide, binary::maximum, binary::minimum, binary::multiply, binary::subtract})
        all("binary", shlo::elementwise(op, v, w, y),
            [&](index_t i) { return shlo::apply(op, a, v.at(i), b, w.at(i), y); });
      for (const direction d :
           {direction::eq, direction::ne, direction::ge, direction::gt, direction::le, direction::lt})
        all("compare", shlo::compare(d, v, w), [&](index_t i) {
          return shlo::scalar{0.0, shlo::compare(d, a, v.at(i), b, w.at(i))};
        });
      const auto less = shlo::compare(direction::lt, v, w);
      const auto chosen = [&](bool first, index_t i) {
        return first ? shlo::to_destination_type(a, v.at(i), y) : shlo::to_destination_type(b, w.at(i), y);
      };
      all("select", shlo::select(less, v, w, y), [&](index_t i) { return chosen(less.at(i).integer != 0, i); });
      shlo::tensor no(basic_type::i1, {});
      all("select of one", shlo::select(no, v, w, y), [&](index_t i) { return chosen(false, i); });
    }
  }
}

TEST_CASE("stablehlo elementwise: select copies integers and codes, the other bits of their bytes aside") {
  for (const char* type : {"i1", "i2", "ui4", "i8", "ui16", "i32", "i64", "!quant.uniform<i4:f32, 1>",
                           "!quant.uniform<i8<-9:9>:f32, 1>", "!quant.uniform<i32:f32, 0.3>"}) {
    INFO(type);
    shlo::tensor a(shlo::parse_type(type), {37}), b = a, pred(basic_type::i1, {37});
    for (std::size_t i = 0; i < a.bytes().size(); ++i)
      a.bytes()[i] = static_cast<std::byte>(i * 37 + 11), b.bytes()[i] = static_cast<std::byte>(i * 91 + 7);
    for (std::size_t i = 0; i < 37; ++i) pred.bytes()[i] = static_cast<std::byte>(i % 3 * 2);
    const auto y = shlo::select(pred, a, b, a.type());
    shlo::tensor wanted(a.type(), {37});
    for (index_t i = 0; i < 37; ++i) wanted.set(i, i % 3 != 0 ? a.at(i) : b.at(i));
    CHECK(std::equal(y.bytes().begin(), y.bytes().end(), wanted.bytes().begin()));
  }
}

TEST_CASE("stablehlo elementwise: convert of whole tensors equals their elements, from and to every type") {
  for (int from = 0; from <= static_cast<int>(basic_type::f64); ++from)
    for (int to = 0; to <= static_cast<int>(basic_type::f64); ++to)
      for (const index_t n : {1, 15, 16, 17, 40, 513}) {
        const auto a = static_cast<basic_type>(from), b = static_cast<basic_type>(to);
        const auto x = mixed(a, n, 5), y = shlo::convert(x, b);
        for (index_t i = 0; i < n; ++i)
          if (!same_elements(y, i, shlo::to_destination_type(a, x.at(i), b)))
            FAIL("element ", i, " of ", n, " of ", shlo::name_of(a), " to ", shlo::name_of(b));
      }
}

TEST_CASE("stablehlo elementwise: constraints by name") {
  const auto f = reals("f32", {1, 2});
  const auto q = reals("!quant.uniform<i8:f32, 1>", {1, 2}), w = reals("!quant.uniform<i16:f32, 1>", {1, 2});
  const auto axis = reals("!quant.uniform<i8:f32:0, {1, 1}>", {1, 2});
  const auto said = [](const shlo::tensor& a, const shlo::tensor& b, const shlo::element_type& type) {
    return sentence([&] { shlo::elementwise(binary::add, a, b, type); });
  };
  CHECK(mentions(said(f, reals("f32", {1}), basic_type::f32), "same(shape(operands...))"));
  CHECK(mentions(said(f, reals("f64", {1, 2}), basic_type::f32), "the expressed types"));
  CHECK(mentions(said(q, w, q.type()), "storage_type(operands...) = storage_type(result)"));
  CHECK(mentions(said(axis, q, q.type()), "quantization_dimension(operand) = quantization_dimension(result)"));
  CHECK(mentions(sentence([&] { shlo::compare(direction::eq, f, reals("i8", {1, 2})); }), "the expressed types"));
  CHECK(mentions(sentence([&] { shlo::elementwise(binary::and_, f, f, basic_type::f32); }), "booleans and integers"));
  CHECK(mentions(sentence([&] { shlo::elementwise(unary::floor, reals("i8", {1}), basic_type::i8); }),
                 "floor and ceil take floats"));
  CHECK(mentions(sentence([&] { shlo::elementwise(unary::abs, reals("ui8", {1}), basic_type::ui8); }), "signed"));
  CHECK(mentions(sentence([&] { result(binary::divide, "i1", {1}, {1}); }), "divide is not defined on i1"));
  CHECK(mentions(sentence([&] { result(binary::subtract, "i1", {1}, {1}); }), "subtract is not defined on i1"));
  CHECK(mentions(sentence([&] { shlo::convert(q, basic_type::f32); }), "use uniform_dequantize"));
  CHECK(mentions(sentence([&] { shlo::select(f, f, f, basic_type::f32); }), "element_type(pred) = i1"));
  CHECK(mentions(sentence([&] { shlo::select(reals("i1", {1}), f, f, basic_type::f32); }), "shape(pred)"));
}
