// StableHLO's conversions between floats and quantized types, convert, element-wise operations and reductions, element
// by element as NUMERICS 7.2 and 7.4 say.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/compat/stablehlo_reduce.hpp>

#include "stablehlo_dice.hpp"

using namespace fuzz;
using shlo::scalar;
using shlo::tensor;

namespace {

void conversions(dice& d) {
  const list shape = random_shape(d, 4, d.chance(5) ? 6000 : 300);
  const basic_type expressed = float_type(d);
  const basic_type often[] = {basic_type::i8, basic_type::ui8, basic_type::i32};
  const basic_type storage = d.chance(2) ? often[d.within(0, 2)] : integer_type(d), other = integer_type(d);
  const quantized_type type = quantized_type_of(d, storage, expressed, shape, random_axis(d, shape)),
                       to = quantized_type_of(d, other, expressed, shape, random_axis(d, shape));
  INFO(text(shape), " of ", shlo::to_string(type).substr(0, 200), ", then ", shlo::to_string(to).substr(0, 200));
  const tensor x = random_tensor(d, expressed, shape, &type);
  const tensor y = shlo::uniform_quantize(x, type), back = shlo::uniform_dequantize(y),
               again = shlo::uniform_quantize(y, to);
  REQUIRE(back.type() == element_type(expressed));
  if (!type.scales().empty()) REQUIRE(shlo::parse_type(shlo::to_string(type)) == element_type(type));
  for (index_t i = 0; i < x.size(); ++i) {
    const whole code = quantized(type, x.at(i).real, y.channel(i));
    const double value = dequantized(type, code, y.channel(i));
    INFO("element ", i, ", ", x.at(i).real, ": code ", text_of(y.at(i)), " and ", text_of({value, code}));
    REQUIRE(y.at(i).integer == code);
    REQUIRE(same(back.at(i), {value, 0}));
    REQUIRE(again.at(i).integer == quantized(to, value, again.channel(i)));
  }
}

whole wrapped(basic_type type, unsigned __int128 bits) {
  const whole size = whole{1} << shlo::bits_of(type),
              v = static_cast<whole>(bits % static_cast<unsigned __int128>(size));
  return v > shlo::max_value(type) ? v - size : v;
}
scalar converted(basic_type from, const scalar& x, basic_type to) {
  if (shlo::is_float(to)) return {shlo::is_float(from) ? nearest(to, x.real) : nearest_to_whole(to, x.integer), 0};
  if (to == basic_type::i1) return {0.0, shlo::is_float(from) ? x.real != 0.0 : x.integer != 0};
  if (!shlo::is_float(from)) return {0.0, wrapped(to, static_cast<unsigned __int128>(x.integer))};
  if (std::isnan(x.real)) return {};
  const double cut = std::clamp(std::trunc(x.real), -0x1p65, 0x1p65);
  return {0.0, std::clamp(static_cast<whole>(cut), shlo::min_value(to), shlo::max_value(to))};
}
basic_type any_type(dice& d) { return static_cast<basic_type>(d.within(0, static_cast<index_t>(basic_type::f64))); }

void converts(dice& d) {
  const list shape = random_shape(d, 3, 200);
  const basic_type from = any_type(d), to = any_type(d);
  const tensor x = random_tensor(d, from, shape), y = shlo::convert(x, to);
  for (index_t i = 0; i < x.size(); ++i) {
    INFO(std::string(name_of(from)), " ", text_of(x.at(i)), " to ", std::string(name_of(to)), ": ", text_of(y.at(i)));
    REQUIRE(same(y.at(i), converted(from, x.at(i), to)));
  }
}

// ---- element-wise --------------------------------------------------------------------------------------------------

double greater_of(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return NAN;
  return a == b ? (std::signbit(a) ? b : a) : std::max(a, b);
}
double operate(shlo::binary op, basic_type type, double a, double b) {
  const volatile double product = a * b;
  switch (op) {
    case shlo::binary::add:
      return nearest(type, a + b);
    case shlo::binary::subtract:
      return nearest(type, a - b);
    case shlo::binary::multiply:
      return nearest(type, product);
    case shlo::binary::divide:
      return nearest(type, a / b);
    case shlo::binary::maximum:
      return greater_of(a, b);
    default:
      return -greater_of(-a, -b);
  }
}
whole operate(shlo::binary op, basic_type type, whole a, whole b) {
  const auto u = static_cast<unsigned __int128>(a), v = static_cast<unsigned __int128>(b);
  const bool boolean = type == basic_type::i1;
  switch (op) {
    case shlo::binary::add:
      return boolean ? a | b : wrapped(type, u + v);
    case shlo::binary::subtract:
      return wrapped(type, u - v);
    case shlo::binary::multiply:
      return wrapped(type, u * v);
    case shlo::binary::divide:
      return b == 0 ? wrapped(type, ~static_cast<unsigned __int128>(0))
                    : wrapped(type, static_cast<unsigned __int128>(a / b));
    case shlo::binary::maximum:
      return std::max(a, b);
    case shlo::binary::minimum:
      return std::min(a, b);
    case shlo::binary::and_:
      return a & b;
    case shlo::binary::or_:
      return a | b;
  }
  return 0;
}
scalar operate(shlo::binary op, basic_type type, const scalar& a, const scalar& b) {
  return shlo::is_float(type) ? scalar{operate(op, type, a.real, b.real)}
                              : scalar{0.0, operate(op, type, a.integer, b.integer)};
}
scalar operate(shlo::unary op, basic_type type, const scalar& a) {
  const double x = a.real;
  const whole n = a.integer;
  const bool real = shlo::is_float(type);
  switch (op) {
    case shlo::unary::abs:
      return {real ? std::fabs(x) : 0.0, real ? 0 : wrapped(type, static_cast<unsigned __int128>(n < 0 ? -n : n))};
    case shlo::unary::ceil:
      return {std::ceil(x)};
    case shlo::unary::floor:
      return {std::floor(x)};
    case shlo::unary::negate:
      return {real ? -x : 0.0, real ? 0 : wrapped(type, static_cast<unsigned __int128>(-n))};
    case shlo::unary::sign:
      return {x > 0 ? 1.0 : x < 0 ? -1.0 : x, (n > 0) - (n < 0)};
  }
  return {};
}

/// Types that go together in an operation: of one basic type, or expressed in one, some of them quantized and stored
/// alike. Those of operands are along an axis only where the result's is, or where the result is not quantized.
std::vector<element_type> types_together(dice& d, const list& shape) {
  if (d.chance(4)) return std::vector<element_type>(3, any_type(d));
  const basic_type expressed = float_type(d), storage = integer_type(d);
  const index_t axis = random_axis(d, shape);
  const auto type = [&](index_t along) -> element_type {
    if (d.chance(4)) return expressed;
    return quantized_type_of(d, storage, expressed, shape, along);
  };
  const element_type result = type(axis);
  const auto operand = [&] { return type(!result.is_quantized() ? random_axis(d, shape) : d.chance(3) ? -1 : axis); };
  const element_type a = operand(), b = operand();
  return {a, b, result};
}

void elementwise(dice& d) {
  const list shape = random_shape(d, 3, 100);
  const auto types = types_together(d, shape);
  const element_type& result = types[2];
  const basic_type computed = result.computed();
  const bool reals = shlo::is_float(computed), boolean = computed == basic_type::i1;
  INFO(text(shape), " ", shlo::to_string(types[0]).substr(0, 200), " and ", shlo::to_string(types[1]).substr(0, 200),
       " to ", shlo::to_string(result).substr(0, 200));
  const quantized_type* steps = result.is_quantized() ? &result.quantized() : nullptr;
  const tensor a = random_tensor(d, types[0], shape, steps), b = random_tensor(d, types[1], shape, steps);
  using shlo::binary, shlo::unary, shlo::direction;
  const auto op = static_cast<binary>(d.within(0, 7));
  INFO("binary ", static_cast<int>(op));
  const bool bitwise = op == binary::and_ || op == binary::or_;
  if (a.size() > 0 && (reals ? bitwise : boolean && (op == binary::divide || op == binary::subtract))) {
    REQUIRE_THROWS(shlo::elementwise(op, a, b, result));
  } else {
    const tensor y = shlo::elementwise(op, a, b, result);
    for (index_t i = 0; i < y.size(); ++i) {
      const scalar v = value_at(a, i), w = value_at(b, i);
      const scalar wanted = stored_as(result, operate(op, computed, v, w), y.channel(i));
      INFO("element ", i, ", ", text_of(v), " and ", text_of(w), ": ", text_of(y.at(i)), " not ", text_of(wanted));
      REQUIRE(same(y.at(i), wanted));
    }
  }
  const auto one = static_cast<unary>(d.within(0, 4));
  INFO("unary ", static_cast<int>(one));
  const bool defined =
      reals ||
      (!boolean && (one == unary::negate || (shlo::is_signed(computed) && one != unary::ceil && one != unary::floor)));
  if (!defined && a.size() > 0) {
    REQUIRE_THROWS(shlo::elementwise(one, a, result));
  } else {
    const tensor y = shlo::elementwise(one, a, result);
    for (index_t i = 0; i < y.size(); ++i) {
      const scalar v = value_at(a, i);
      const scalar wanted = stored_as(result, operate(one, computed, v), y.channel(i));
      INFO("element ", i, ", ", text_of(v), ": ", text_of(y.at(i)), " not ", text_of(wanted));
      REQUIRE(same(y.at(i), wanted));
    }
  }
  const auto way = static_cast<direction>(d.within(0, 5));
  const tensor truth = shlo::compare(way, a, b), pred = random_tensor(d, basic_type::i1, d.chance(3) ? list{} : shape),
               chosen = shlo::select(pred, a, b, result);
  for (index_t i = 0; i < a.size(); ++i) {
    const scalar v = value_at(a, i), w = value_at(b, i);
    const int below = reals ? v.real < w.real : v.integer < w.integer,
              above = reals ? v.real > w.real : v.integer > w.integer,
              equal = reals ? v.real == w.real : v.integer == w.integer;
    const int wanted[] = {equal, !equal, above | equal, above, below | equal, below};
    INFO("element ", i, ", ", text_of(v), " and ", text_of(w), " in direction ", static_cast<int>(way));
    REQUIRE(truth.at(i).integer == wanted[static_cast<int>(way)]);
    const tensor& from = pred.at(pred.shape().empty() ? 0 : i).integer != 0 ? a : b;
    const scalar taken = from.type() == result ? from.at(i) : stored_as(result, value_at(from, i), chosen.channel(i));
    REQUIRE(same(chosen.at(i), taken));
  }
}

// ---- reductions ----------------------------------------------------------------------------------------------------

scalar destination(const element_type& from, const scalar& x, const element_type& to) {
  if (from == to) return x;
  const scalar v = value_of(from, x, 0);
  return to.is_quantized() ? stored_as(to, v, 0) : converted(from.computed(), v, to.stored());
}

/// Types of inputs, body and result: the body's is wider or the same, the result's what it may become.
std::vector<element_type> types_of_reduction(dice& d) {
  const auto wider = [&](basic_type from, basic_type last) {
    return static_cast<basic_type>(d.within(static_cast<index_t>(from), static_cast<index_t>(last)));
  };
  const basic_type expressed = float_type(d);
  if (d.chance(2)) {
    const basic_type storage =
        d.chance(2) ? wider(basic_type::i2, basic_type::i64) : wider(basic_type::ui2, basic_type::ui64);
    const auto type = [&](basic_type stored) -> element_type {
      return quantized_type_of(d, stored, expressed, {}, -1);
    };
    const element_type from = type(storage),
                       body = d.chance(3)
                                  ? from
                                  : type(wider(storage, shlo::is_signed(storage) ? basic_type::i64 : basic_type::ui64));
    return {from, body, d.chance(2) ? body : d.chance(2) ? type(integer_type(d)) : element_type(expressed)};
  }
  const basic_type from = any_type(d);
  const basic_type body =
      shlo::is_float(from)
          ? (from == basic_type::f16 && d.chance(2) ? from : wider(std::max(from, basic_type::f32), basic_type::f64))
      : from == basic_type::i1 ? from
      : shlo::is_signed(from)  ? wider(from, basic_type::i64)
                               : wider(from, basic_type::ui64);
  return {from, body, d.chance(2) ? body : any_type(d)};
}

/// An operation of two numbers of a type; subtract, so that the order of a fold shows.
shlo::binary random_body(dice& d) {
  using shlo::binary;
  return d.one_of(binary::add, binary::subtract, binary::maximum, binary::multiply);
}
scalar combined(shlo::binary op, const element_type& type, const scalar& a, const scalar& b) {
  return stored_as(type, operate(op, type.computed(), value_of(type, a, 0), value_of(type, b, 0)), 0);
}

void reductions(dice& d) {
  const std::size_t rank = static_cast<std::size_t>(d.within(0, 4));
  list shape;
  for (std::size_t i = 0; i < rank; ++i)
    shape.push_back(d.chance(30) ? 0 : d.within(1, rank < 3 && d.chance(6) ? 80 : 5));
  const auto n = static_cast<std::size_t>(d.within(1, 2));
  std::vector<element_type> from, body, result;
  std::vector<tensor> x, inits;
  std::vector<const tensor*> inputs, seeds;
  for (std::size_t i = 0; i < n; ++i) {
    const auto types = types_of_reduction(d);
    from.push_back(types[0]), body.push_back(types[1]), result.push_back(types[2]);
    x.push_back(random_tensor(d, types[0], shape));
    inits.push_back(random_tensor(d, types[0], {}));
  }
  for (std::size_t i = 0; i < n; ++i) inputs.push_back(&x[i]), seeds.push_back(&inits[i]);
  const auto op = random_body(d);
  const auto combine = [&](const shlo::scalars& a, const shlo::scalars& b) {
    shlo::scalars out;
    for (std::size_t i = 0; i < n; ++i) out.push_back(combined(op, body[i], a[i], b[i]));
    return out;
  };
  const bool whole_axes = d.chance(3);
  shlo::window_attributes w;
  list folded, kept, counts(rank);
  std::vector<std::array<index_t, 2>> padding(rank, {0, 0});
  list sizes(rank, 1), strides(rank, 1), base(rank, 1), dilation(rank, 1);
  for (std::size_t i = 0; i < rank; ++i) {
    if (whole_axes) {
      if (d.chance(2)) {
        folded.push_back(static_cast<index_t>(i));
        sizes[i] = shape[i];
        counts[i] = 1;
      } else {
        kept.push_back(shape[i]);
        counts[i] = shape[i];
      }
      continue;
    }
    const auto small = [&](index_t most) { return d.chance(2) ? 1 : d.within(1, most); };
    sizes[i] = small(4), strides[i] = small(3), base[i] = small(3), dilation[i] = small(3);
    if (d.chance(2)) padding[i] = {d.within(-2, 3), d.within(-2, 3)};
    const index_t padded = padding[i][0] + (shape[i] == 0 ? 0 : (shape[i] - 1) * base[i] + 1) + padding[i][1],
                  reach = (sizes[i] - 1) * dilation[i] + 1;
    counts[i] = padded <= 0 || reach > padded ? 0 : (padded - reach) / strides[i] + 1;
  }
  INFO(text(shape), whole_axes ? " reduced along " + text(folded) : " windows " + text(sizes), " strides ",
       text(strides), " base ", text(base), " dilation ", text(dilation), " operation ", static_cast<int>(op));
  std::vector<tensor> y;
  if (whole_axes) {
    if (folded.size() > 1 && d.chance(2)) std::swap(folded[0], folded[1]);
    y = shlo::reduce(inputs, seeds, folded, body, combine, result);
  } else {
    w.window_dimensions = sizes;
    if (!d.chance(3) || strides != list(rank, 1)) w.window_strides = strides;
    if (!d.chance(3) || base != list(rank, 1)) w.base_dilations = base;
    if (!d.chance(3) || dilation != list(rank, 1)) w.window_dilations = dilation;
    w.padding = padding;
    y = shlo::reduce_window(inputs, seeds, w, body, combine, result);
  }
  REQUIRE(y.size() == n);
  shlo::scalars seed;
  for (std::size_t i = 0; i < n; ++i) {
    seed.push_back(destination(from[i], inits[i].at(0), body[i]));
    REQUIRE(y[i].shape() == (whole_axes ? kept : counts));
    REQUIRE(y[i].type() == result[i]);
  }
  for (index_t i = 0; i < count_of(counts); ++i) {
    const list window = index_of(i, counts);
    shlo::scalars sum = seed;
    for (index_t k = 0; k < count_of(sizes); ++k) {
      const list tap = index_of(k, sizes);
      index_t place = 0;
      bool hole = false;
      for (std::size_t a = 0; a < rank; ++a) {
        const index_t at = window[a] * strides[a] + tap[a] * dilation[a] - padding[a][0];
        hole = hole || at < 0 || at % base[a] != 0 || at / base[a] >= shape[a];
        place = place * shape[a] + at / base[a];
      }
      shlo::scalars leaf = seed;
      for (std::size_t t = 0; t < n && !hole; ++t) leaf[t] = destination(from[t], x[t].at(place), body[t]);
      sum = combine(sum, leaf);
    }
    for (std::size_t t = 0; t < n; ++t) {
      const scalar wanted = destination(body[t], sum[t], result[t]);
      INFO("result ", i, " of ", t, ": ", text_of(y[t].at(i)), " not ", text_of(wanted));
      REQUIRE(same(y[t].at(i), wanted));
    }
  }
}

void scatters(dice& d) {
  const auto rank = static_cast<std::size_t>(d.within(0, 3));
  list shape, counts, sizes, strides;
  std::vector<std::array<index_t, 2>> padding;
  for (std::size_t i = 0; i < rank; ++i) {
    shape.push_back(d.within(1, rank == 1 ? 70 : 6));
    sizes.push_back(d.within(1, 4));
    strides.push_back(d.within(1, 3));
    padding.push_back({d.within(0, sizes[i] - 1), d.within(0, sizes[i] - 1)});  // every window sees an element
    const index_t padded = padding[i][0] + shape[i] + padding[i][1];
    counts.push_back(padded < sizes[i] ? 0 : (padded - sizes[i]) / strides[i] + 1);
  }
  const auto types = types_of_reduction(d);
  const tensor operand = random_tensor(d, types[0], shape), source = random_tensor(d, types[0], counts),
               init = random_tensor(d, types[0], {});
  const auto op = random_body(d);
  const bool first = d.chance(2), larger = d.chance(2);
  INFO(text(shape), " of ", shlo::to_string(types[0]), " windows ", text(sizes), " strides ", text(strides), " to ",
       shlo::to_string(types[1]), " and ", shlo::to_string(types[2]), ", operation ", static_cast<int>(op));
  const auto before = [](const scalar& a, const scalar& b) {
    return a.real < b.real || (a.real == b.real && a.integer < b.integer);
  };
  const auto select = [&](const scalar& a, const scalar& b) {  // among equals the first or the last
    return first ? !(larger ? before(a, b) : before(b, a)) : larger ? before(b, a) : before(a, b);
  };
  shlo::window_attributes w;
  w.window_dimensions = sizes, w.window_strides = strides, w.padding = padding;
  const tensor y = shlo::select_and_scatter(
      operand, source, init, w, select, types[1],
      [&](const scalar& a, const scalar& b) { return combined(op, types[1], a, b); }, types[2]);
  std::vector<scalar> sums(static_cast<std::size_t>(operand.size()), destination(types[0], init.at(0), types[1]));
  for (index_t i = 0; i < source.size(); ++i) {
    const list window = index_of(i, counts);
    index_t chosen = -1;
    for (index_t k = 0; k < count_of(sizes); ++k) {
      const list tap = index_of(k, sizes);
      index_t place = 0;
      bool inside = true;
      for (std::size_t a = 0; a < rank; ++a) {
        const index_t at = window[a] * strides[a] + tap[a] - padding[a][0];
        inside = inside && at >= 0 && at < shape[a];
        place = place * shape[a] + at;
      }
      if (inside && (chosen < 0 || !select(operand.at(chosen), operand.at(place)))) chosen = place;
    }
    scalar& sum = sums[static_cast<std::size_t>(chosen)];
    sum = combined(op, types[1], sum, destination(types[0], source.at(i), types[1]));
  }
  for (index_t i = 0; i < y.size(); ++i) {
    const scalar wanted = destination(types[1], sums[static_cast<std::size_t>(i)], types[2]);
    INFO("element ", i, ": ", text_of(y.at(i)), " not ", text_of(wanted));
    REQUIRE(same(y.at(i), wanted));
  }
}

}  // namespace

TEST_CASE("StableHLO: uniform_quantize, uniform_dequantize and from one quantized type to another") {
  each_case(300, conversions);
}
TEST_CASE("StableHLO: convert") { each_case(300, converts); }
TEST_CASE("StableHLO: element-wise operations, compare and select") { each_case(300, elementwise); }
TEST_CASE("StableHLO: reduce and reduce_window") { each_case(300, reductions); }
TEST_CASE("StableHLO: select_and_scatter") { each_case(300, scatters); }
