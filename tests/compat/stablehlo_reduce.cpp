// Mirrors include/qtensor/compat/stablehlo_reduce.hpp: NUMERICS 7.4 at run time.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <qtensor/compat/stablehlo_reduce.hpp>
#include <random>

#include "core/sentence.hpp"

namespace shlo = qtensor::compat::stablehlo;
using qtensor::index_t;
using shlo::element_type;
using shlo::scalar;
using shlo::scalars;

namespace {

bool mentions(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

template <class T>
shlo::tensor tensor_of(const char* type, std::vector<index_t> shape, const std::vector<T>& elements) {
  return shlo::tensor(shlo::parse_type(type), std::move(shape), std::span<const T>(elements));
}
/// The body that adds numbers of one type.
auto adding(const element_type& type) {
  return [type](const scalars& a, const scalars& b) {
    return scalars{shlo::apply(shlo::binary::add, type, a[0], type, b[0], type)};
  };
}
/// One of the library's bodies as any other.
template <class Rule>
auto by_scalars(qtensor::body_of<Rule>, const element_type& type) {
  return [type](const scalars& a, const scalars& b) {
    constexpr shlo::binary op = shlo::pieces::operation_of<Rule>();
    return scalars{shlo::apply(op, type, a[0], type, b[0], type)};
  };
}
/// A type of elements, of bodies and of results.
using three_types = std::array<const char*, 3>;
constexpr const char *i8 = "!quant.uniform<i8:f32, 0.1:3>", *ui8 = "!quant.uniform<ui8:f32, 0.75:128>",
                     *i32 = "!quant.uniform<i32:f32, 0.1>", *shifted = "!quant.uniform<i32:f32, 0.007:-100>",
                     *i16 = "!quant.uniform<i16:f32, 0.25:5>", *narrow = "!quant.uniform<i8<-127:127>:f32, 0.1:3>";

shlo::tensor random_tensor(const char* type, std::vector<index_t> shape, std::mt19937& random) {
  const element_type element = shlo::parse_type(type);
  shlo::tensor x(element, std::move(shape));
  for (index_t i = 0; i < x.size(); ++i) {
    const int number = static_cast<int>(random() % 251) - 125;
    if (shlo::is_float(element.stored()))
      x.set(i, {number / 128.0, 0});
    else
      x.set(i, {0.0, shlo::is_signed(element.stored()) ? number : number + 125});
  }
  return x;
}
/// reduce by a body of the library and by the same one of scalars: the same bytes.
template <class Rule>
void check_reduce(qtensor::body_of<Rule> body, const three_types& types, const std::vector<index_t>& shape,
                  const std::vector<index_t>& dims, std::mt19937& random) {
  const auto x = random_tensor(types[0], shape, random), init = random_tensor(types[0], {}, random);
  const auto type = shlo::parse_type(types[1]), result = shlo::parse_type(types[2]);
  const auto y = shlo::reduce({&x}, {&init}, dims, {type}, body, {result})[0];
  const auto expected = shlo::reduce({&x}, {&init}, dims, {type}, by_scalars(body, type), {result})[0];
  const char* const of = types[0];
  CAPTURE(of);
  CAPTURE(x.size());
  CHECK(y.shape() == expected.shape());
  CHECK(y.type() == expected.type());
  CHECK(std::equal(y.bytes().begin(), y.bytes().end(), expected.bytes().begin(), expected.bytes().end()));
}
template <class Rule>
void check_reduces(qtensor::body_of<Rule> body) {
  std::mt19937 random(7);
  const std::vector<three_types> all = {{i8, i8, i8},           {i8, i32, i32},         {ui8, shifted, ui8},
                                        {ui8, ui8, shifted},    {i16, i16, i16},        {narrow, i32, narrow},
                                        {"f32", "f32", "bf16"}, {"bf16", "f32", "f32"}, {"i8", "i32", "i16"},
                                        {"i64", "i64", "i64"},  {"ui8", "ui8", "ui8"},  {"bf16", "bf16", "bf16"},
                                        {i8, shifted, i32}};
  for (const three_types& types : all)
    for (const std::vector<index_t>& shape :
         std::vector<std::vector<index_t>>{{}, {3}, {40, 30}, {2, 1, 37}, {5, 3, 7, 11}, {3, 2, 2, 3, 3}, {4, 0, 3}}) {
      std::vector<index_t> dims;
      for (std::size_t axis = shape.size(); axis-- > 0;)
        if (random() % 2 == 0) dims.push_back(static_cast<index_t>(axis));
      check_reduce(body, types, shape, dims, random);
    }
}
const auto greater_or_equal = [](const scalar& a, const scalar& b) { return a.integer >= b.integer; };

}  // namespace

TEST_CASE("stablehlo reduce: the vectors of NUMERICS 7.4") {
  const element_type i64 = shlo::basic_type::i64;
  const auto zero = tensor_of<std::int64_t>("i64", {}, {0});
  const auto row = tensor_of<std::int64_t>("i64", {1, 6}, {0, 1, 2, 3, 4, 5});
  const auto sum = shlo::reduce({&row}, {&zero}, {1}, {i64}, adding(i64), {i64})[0];
  CHECK(sum.shape() == std::vector<index_t>{1});
  CHECK(sum.to_vector<std::int64_t>() == std::vector<std::int64_t>{15});
  const auto x = tensor_of<std::int64_t>("i64", {3, 2}, {1, 2, 3, 4, 5, 6});
  shlo::window_attributes w{{2, 1}, {4, 1}, {2, 1}, {3, 1}, {{2, 1}, {0, 0}}};
  CHECK(shlo::reduce_window({&x}, {&zero}, w, {i64}, adding(i64), {i64})[0].to_vector<std::int64_t>() ==
        std::vector<std::int64_t>{0, 0, 3, 4});
  w.window_dimensions = {3, 1};
  CHECK(shlo::reduce_window({&x}, {&zero}, w, {i64}, adding(i64), {i64})[0].to_vector<std::int64_t>() ==
        std::vector<std::int64_t>{5, 6});
  const auto operand = tensor_of<std::int64_t>("i64", {4, 2}, {1, 5, 2, 5, 3, 6, 4, 4});
  const auto source = tensor_of<std::int64_t>("i64", {2, 2}, {5, 6, 7, 8});
  const shlo::window_attributes pool{{3, 1}, {2, 1}, {}, {}, {{0, 1}, {0, 0}}};
  const auto add = [&](const scalar& a, const scalar& b) { return adding(i64)({a}, {b})[0]; };
  CHECK(shlo::select_and_scatter(operand, source, zero, pool, greater_or_equal, i64, add, i64)
            .to_vector<std::int64_t>() == std::vector<std::int64_t>{0, 0, 0, 0, 5, 14, 7, 0});
}

TEST_CASE("stablehlo reduce: ui8 through an i32 accumulator, as approved and as shipped; in ui8 it saturates") {
  const char* u8 = "!quant.uniform<ui8:f32, 0.5:10>";
  const auto i32 = shlo::parse_type("!quant.uniform<i32:f32, 0.25>"),
             out = shlo::parse_type("!quant.uniform<ui8:f32, 1:5>");
  const auto x = tensor_of<std::uint8_t>(u8, {1, 3}, {110, 130, 250});
  const auto init = tensor_of<std::uint8_t>(u8, {}, {10});
  CHECK(shlo::reduce({&x}, {&init}, {1}, {i32}, adding(i32), {out})[0].at(0).integer == 235);
  CHECK(shlo::reduce({&x}, {&init}, {1}, {i32}, adding(i32), {i32})[0].at(0).integer == 920);
  CHECK(shlo::reduce({&x}, {&init}, {0, 1}, {x.type()}, adding(x.type()), {x.type()})[0].at(0).integer == 255);
}

TEST_CASE(
    "stablehlo reduce: the library's bodies give the bits of bodies of scalars, whatever the types and dimensions") {
  check_reduces(qtensor::add);
  check_reduces(qtensor::max);
  check_reduces(qtensor::multiply);
  std::mt19937 random(8);
  check_reduce(qtensor::min, {i8, i8, i8}, {64, 33}, {0}, random);
}

TEST_CASE("stablehlo reduce_window: the library's bodies give the bits of bodies of scalars") {
  std::mt19937 random(9);
  const auto check = [&](auto body, const three_types& types, const shlo::window_attributes& w) {
    const auto x = random_tensor(types[0], {2, 9, 10, 5}, random), init = random_tensor(types[0], {}, random);
    const auto type = shlo::parse_type(types[1]), result = shlo::parse_type(types[2]);
    const auto y = shlo::reduce_window({&x}, {&init}, w, {type}, body, {result})[0];
    const auto expected = shlo::reduce_window({&x}, {&init}, w, {type}, by_scalars(body, type), {result})[0];
    CHECK(y.shape() == expected.shape());
    CHECK(std::equal(y.bytes().begin(), y.bytes().end(), expected.bytes().begin(), expected.bytes().end()));
  };
  const std::vector<three_types> all = {{i8, i8, i8}, {ui8, shifted, ui8}, {"f32", "f32", "f32"}, {i16, i16, i16}};
  for (const three_types& types : all)
    for (const shlo::window_attributes& w :
         {shlo::window_attributes{{1, 3, 3, 1}, {1, 2, 2, 1}, {}, {}, {{0, 0}, {1, 1}, {0, 1}, {0, 0}}},
          shlo::window_attributes{{2, 2, 1, 3}, {}, {1, 2, 1, 1}, {1, 1, 1, 2}, {}},
          shlo::window_attributes{{1, 20, 1, 1}, {}, {}, {}, {}}}) {  // no window fits
      check(qtensor::add, types, w);
      check(qtensor::max, types, w);
    }
}

TEST_CASE("stablehlo reduce: two tensors, no dimensions, empty dimensions") {
  const auto x = tensor_of<float>("f32", {2, 2}, {1, 5, 7, 2});
  const auto at = tensor_of<std::int32_t>("i32", {2, 2}, {0, 1, 0, 1});
  const auto low = tensor_of<float>("f32", {}, {-1e9f});
  const auto none = tensor_of<std::int32_t>("i32", {}, {-1});
  const auto larger = [](const scalars& a, const scalars& b) { return b[0].real > a[0].real ? b : a; };
  const std::vector<element_type> types = {x.type(), at.type()};
  const auto y = shlo::reduce({&x, &at}, {&low, &none}, {1}, types, larger, types);
  CHECK(y[0].to_vector<float>() == std::vector<float>{5, 7});
  CHECK(y[1].to_vector<std::int32_t>() == std::vector<std::int32_t>{1, 0});
  CHECK(shlo::reduce({&x, &at}, {&low, &none}, {}, types, larger, types)[0].to_vector<float>() == x.to_vector<float>());
  const auto empty = tensor_of<float>("f32", {2, 0}, {});
  const auto seed = tensor_of<float>("f32", {}, {3});
  CHECK(shlo::reduce({&empty}, {&seed}, {1}, {x.type()}, adding(x.type()), {x.type()})[0].to_vector<float>() ==
        std::vector<float>{3, 3});
}

TEST_CASE("stablehlo reduce, reduce_window: no results take no time or memory, however large the other extents are") {
  constexpr index_t huge = index_t{1} << 40;
  using shape = std::vector<index_t>;
  const shlo::tensor x(shlo::basic_type::f32, {huge, 0, huge, huge}), zero(shlo::basic_type::f32, {});
  const element_type f32 = x.type();
  const auto check = [&](const auto& body) {
    CHECK(shlo::reduce({&x}, {&zero}, {2, 3}, {f32}, body, {f32})[0].shape() == shape{huge, 0});
    CHECK(shlo::reduce({&x}, {&zero}, {0, 2, 3}, {f32}, body, {f32})[0].shape() == shape{0});
    CHECK(shlo::reduce({&x}, {&zero}, {0, 1, 2, 3}, {f32}, body, {f32})[0].size() == 1);
    const shlo::window_attributes w{{1, 1, huge, huge}, {}, {}, {}, {{0, 0}, {0, 0}, {0, 0}, {huge, huge}}};
    CHECK(shlo::reduce_window({&x}, {&zero}, w, {f32}, body, {f32})[0].shape() == shape{huge, 0, 1, 2 * huge + 1});
  };
  check(qtensor::add);
  check(adding(f32));
}

TEST_CASE("stablehlo reduce: constraints by name") {
  const auto x = tensor_of<float>("f32", {2, 2}, {1, 2, 3, 4});
  const auto y = tensor_of<float>("f32", {4}, {1, 2, 3, 4});
  const auto zero = tensor_of<float>("f32", {}, {0});
  const auto wide_zero = tensor_of<double>("f64", {}, {0});
  const element_type f32 = x.type();
  const auto said = [&](const std::vector<const shlo::tensor*>& in, const std::vector<const shlo::tensor*>& init,
                        const std::vector<index_t>& dims, const element_type& body) {
    const std::vector<element_type> bodies(in.size(), body);
    return sentence([&] { shlo::reduce(in, init, dims, bodies, adding(body), bodies); });
  };
  CHECK(mentions(said({&x, &y}, {&zero, &zero}, {0}, f32), "(C1): same(shape(inputs...))"));
  CHECK(mentions(said({&x}, {&wide_zero}, {0}, f32), "(C2): element_type(inputs...) = element_type(init_values...)"));
  CHECK(mentions(said({}, {}, {0}, f32), "(C3): 0 < size(inputs)"));
  CHECK(mentions(said({&x}, {&zero}, {2}, f32), "(C4): 0 <= dimensions < rank"));
  CHECK(mentions(said({&x}, {&zero}, {1, 1}, f32), "(C5): is_unique(dimensions)"));
  CHECK(mentions(said({&x}, {&zero}, {1}, shlo::basic_type::bf16), "(C6): is_promotable"));
  CHECK(mentions(said({&x}, {&y}, {1}, f32), "a single element"));
  CHECK(mentions(sentence([&] {
                   shlo::reduce({&x, &x}, {&zero, &zero}, {0}, {f32, f32}, qtensor::add, {f32, f32});
                 }),
                 "it folds one"));
  const auto q = tensor_of<std::int8_t>("!quant.uniform<i8:f32, 1>", {2}, {1, 2});
  const auto q0 = tensor_of<std::int8_t>("!quant.uniform<i8:f32, 1>", {}, {0});
  CHECK(mentions(said({&q}, {&q0}, {0}, shlo::parse_type("!quant.uniform<i8:f32:0, {1, 2}>")), "per-tensor quantized"));
  CHECK(mentions(said({&q}, {&q0}, {0}, f32), "(C6): is_promotable"));
  const auto window = [&](const shlo::window_attributes& w) {
    return sentence([&] { shlo::reduce_window({&x}, {&zero}, w, {f32}, adding(f32), {f32}); });
  };
  CHECK(mentions(window({{2}, {}, {}, {}, {}}), "size(window_dimensions) = rank"));
  CHECK(mentions(window({{1, 1}, {1}, {}, {}, {}}), "size(window_strides) = rank"));
  CHECK(mentions(window({{1, 1}, {}, {}, {}, {{0, 0}}}), "shape(padding) = [rank, 2]"));
  const auto scatter = [&](const shlo::tensor& source, const shlo::tensor& init) {
    const auto add = [&](const scalar& a, const scalar& b) { return adding(f32)({a}, {b})[0]; };
    return sentence([&] {
      shlo::select_and_scatter(x, source, init, {{1, 1}, {}, {}, {}, {}}, greater_or_equal, f32, add, f32);
    });
  };
  CHECK(mentions(scatter(wide_zero, zero), "(C1): element_type(operand) = element_type(source)"));
  CHECK(mentions(scatter(x, wide_zero), "(C3): element_type(init_value) = element_type(operand)"));
  CHECK(mentions(scatter(y, zero), "(C2): shape(source) = num_windows"));
}
