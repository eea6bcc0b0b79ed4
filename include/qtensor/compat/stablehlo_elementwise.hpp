// StableHLO's element-wise operations on quantized, float, integer and boolean tensors of run-time type (NUMERICS 7.2).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <qtensor/compat/stablehlo.hpp>
#include <qtensor/simd/fold.hpp>

namespace qtensor::compat::stablehlo {

enum class unary { abs, ceil, floor, negate, sign };
enum class binary { add, and_, divide, maximum, minimum, multiply, or_, subtract };
enum class direction { eq, ne, ge, gt, le, lt };

namespace detail {

/// Larger (or smaller) of two floats as IEEE 754 maximum and minimum: NaN where there is one, -0 below +0.
inline double larger(double a, double b, bool smaller) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? a : b;
  if (a == b) return std::signbit(a) == smaller ? a : b;
  return (a > b) != smaller ? a : b;
}

inline double apply(unary op, basic_type, double x) {
  switch (op) {
    case unary::abs:
      return std::fabs(x);
    case unary::ceil:
      return std::ceil(x);
    case unary::floor:
      return std::floor(x);
    case unary::negate:
      return -x;
    case unary::sign:
      return std::isnan(x) || x == 0.0 ? x : x < 0.0 ? -1.0 : 1.0;
  }
  return x;
}
inline wide_integer apply(unary op, basic_type type, wide_integer x) {
  require(is_integer(type) && (op == unary::negate || (is_signed(type) && (op == unary::abs || op == unary::sign))),
          "this operation is not defined on ", name_of(type),
          "; constraint: floor and ceil take floats, abs and sign "
          "signed integers and floats, negate integers and floats.");
  const wide_integer result = op == unary::sign ? (x > 0) - (x < 0) : op == unary::abs && x > 0 ? x : -x;
  return tensor::wrapped(type, result);
}

/// Computed in double where the type has at most 24 digits, then rounded to it: the same as computing in it.
inline double apply(binary op, basic_type type, double a, double b) {
  switch (op) {
    case binary::add:
      return round_to(type, a + b);
    case binary::subtract:
      return round_to(type, a - b);
    case binary::multiply:
      return round_to(type, rounded(a * b));
    case binary::divide:
      return round_to(type, a / b);
    case binary::maximum:
    case binary::minimum:
      return larger(a, b, op == binary::minimum);
    default:
      fail("and, or are not defined on ", name_of(type), "; constraint: they take booleans and integers.");
  }
}
inline wide_integer apply(binary op, basic_type type, wide_integer a, wide_integer b) {
  const bool boolean = type == basic_type::i1;
  switch (op) {
    case binary::add:
      return boolean ? a | b : tensor::wrapped(type, a + b);
    case binary::multiply:
      // Modulo 2^64 first: the product of two ui64 does not fit a signed 128-bit number.
      return boolean
                 ? a & b
                 : tensor::wrapped(
                       type, static_cast<wide_integer>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b)));
    case binary::maximum:
      return std::max(a, b);
    case binary::minimum:
      return std::min(a, b);
    case binary::and_:
      return tensor::wrapped(type, a & b);
    case binary::or_:
      return tensor::wrapped(type, a | b);
    case binary::subtract:
      require(!boolean, "subtract is not defined on i1.");
      return tensor::wrapped(type, a - b);
    case binary::divide:
      require(!boolean, "divide is not defined on i1.");
      return tensor::wrapped(type, b == 0 ? wide_integer{-1} : a / b);
  }
  return a;
}

/// Calls use(f) with the function that compares two numbers.
template <class Use>
auto in_direction(direction d, const Use& use) {
  switch (d) {
    case direction::eq:
      return use(std::equal_to<>{});
    case direction::ne:
      return use(std::not_equal_to<>{});
    case direction::ge:
      return use(std::greater_equal<>{});
    case direction::gt:
      return use(std::greater<>{});
    case direction::le:
      return use(std::less_equal<>{});
    default:
      return use(std::less<>{});
  }
}
template <class T>
bool holds(direction d, T a, T b) {
  return in_direction(d, [&](const auto& holds) { return holds(a, b); });
}

/// An operation on what it is computed in.
template <class Op, class... Scalars>
scalar computed(Op op, basic_type type, const Scalars&... x) {
  return is_float(type) ? scalar{apply(op, type, x.real...), 0} : scalar{0.0, apply(op, type, x.integer...)};
}
inline bool compared(direction d, basic_type type, const scalar& x, const scalar& y) {
  return is_float(type) ? holds(d, x.real, y.real) : holds(d, x.integer, y.integer);
}
inline void check_same_shape(const tensor& a, const tensor& b) {
  require(a.shape() == b.shape(), "the operands have different shapes; constraint: same(shape(operands...)).");
}
/// Quantized operands and results share storage and expressed type; floats beside them are of the expressed type.
inline void check_types(const element_type& operand, const element_type& result) {
  require(operand.computed() == result.computed(), "an operand is computed in ", name_of(operand.computed()),
          " and the result in ", name_of(result.computed()),
          "; constraint: element types agree, of quantized ones the expressed types.");
  if (!operand.is_quantized() || !result.is_quantized()) return;
  require(operand.stored() == result.stored(), "an operand is stored as ", name_of(operand.stored()),
          " and the result as ", name_of(result.stored()),
          "; constraint: storage_type(operands...) = storage_type(result).");
  require(!operand.quantized().is_per_axis() || operand.quantized().axis() == result.quantized().axis(),
          "an operand is quantized per axis and the result is not, or along another; constraint: "
          "quantization_dimension(operand) = quantization_dimension(result).");
}

}  // namespace detail

/// One element of an operation: quantized operands are dequantized, the operation is that of the expressed type, and
/// the result is quantized (dequantize_op_quantize). `x` and `y` are elements of types `a` and `b`.
inline scalar apply(unary op, const element_type& a, const scalar& x, const element_type& result, index_t channel = 0) {
  return detail::stored(result, detail::computed(op, a.computed(), detail::expressed(a, x, channel)), channel);
}
inline scalar apply(binary op, const element_type& a, const scalar& x, const element_type& b, const scalar& y,
                    const element_type& result, index_t channel = 0) {
  const scalar v = detail::expressed(a, x, channel), w = detail::expressed(b, y, channel);
  return detail::stored(result, detail::computed(op, a.computed(), v, w), channel);
}
/// compare: of what was dequantized. Comparisons with NaN are false, but `ne`.
inline bool compare(direction d, const element_type& a, const scalar& x, const element_type& b, const scalar& y,
                    index_t channel = 0) {
  return detail::compared(d, a.computed(), detail::expressed(a, x, channel), detail::expressed(b, y, channel));
}
/// An element as one of another type, `to_destination_type` of the approved RFC: quantized to quantized is requantize,
/// float to quantized is quantize, quantized to float is dequantize, everything else is convert.
scalar to_destination_type(const element_type& from, const scalar& x, const element_type& to, index_t channel = 0);

namespace detail {

/// convert between types that are not quantized. Floats become integers toward zero, saturating, NaN as 0 (left open by
/// the specification), and booleans by whether they are 0; integers become narrower ones modulo 2^bits.
inline scalar converted(basic_type from, const scalar& x, basic_type to) {
  if (is_float(from)) {
    if (is_float(to)) return {round_to(to, x.real), 0};
    if (to == basic_type::i1) return {0.0, x.real != 0.0 ? 1 : 0};
    if (std::isnan(x.real)) return {0.0, 0};
    const double low = static_cast<double>(min_value(to)), high = static_cast<double>(max_value(to));
    const wide_integer v = x.real <= low    ? min_value(to)
                           : x.real >= high ? max_value(to)
                                            : static_cast<wide_integer>(std::trunc(x.real));
    return {0.0, v};
  }
  if (is_float(to)) return {round_integer_to(to, x.integer), 0};
  return {0.0, tensor::wrapped(to, x.integer)};
}

}  // namespace detail

inline scalar to_destination_type(const element_type& from, const scalar& x, const element_type& to, index_t channel) {
  if (from == to) return x;
  const basic_type computed = from.computed();
  require(!to.is_quantized() || computed == to.computed(), name_of(computed), " does not become a number expressed in ",
          name_of(to.computed()), "; constraint: the expressed types agree.");
  require(!from.is_quantized() || to.is_quantized() || to.stored() == computed, "a quantized number expressed in ",
          name_of(computed), " does not become ", name_of(to.stored()), "; constraint: its expressed type.");
  const scalar v = detail::expressed(from, x, channel);
  return to.is_quantized() ? detail::stored(to, v, channel) : detail::converted(computed, v, to.stored());
}

inline namespace QTENSOR_ABI {

namespace pieces {

/// The operations on batches of floats; larger and smaller as `detail::larger` has them.
inline floats apply(unary op, const floats& x) {
  const simd::words<arch> bits = simd::bits_as<std::uint32_t>(x), sign(sign_bit);
  const floats minus = simd::bits_as<float>(bits ^ sign);
  switch (op) {
    case unary::abs:
      return simd::bits_as<float>(bits & ~sign);
    case unary::ceil:
      return simd::bits_as<float>(simd::bits_as<std::uint32_t>(simd::floor(minus)) ^ sign);
    case unary::floor:
      return simd::floor(x);
    case unary::negate:
      return minus;
    default: {
      const floats one = simd::bits_as<float>((bits & sign) | simd::bits_as<std::uint32_t>(floats(1.f)));
      return simd::select((x < floats(0.f)) | (x > floats(0.f)), one, x);
    }
  }
}
inline floats apply(binary op, const floats& a, const floats& b) {
  switch (op) {
    case binary::add:
      return simd::add(a, b);
    case binary::subtract:
      return simd::sub(a, b);
    case binary::multiply:
      return simd::mul(a, b);
    case binary::divide:
      return simd::div(a, b);
    case binary::maximum:
      return simd::max_reals::of<arch>(a, b);
    default:
      return simd::min_reals::of<arch>(a, b);
  }
}

}  // namespace pieces

/// Unary operations: the result has the operand's shape and the type given. Cost: of floats and quantized types as
/// `retype` has it, of others element by element. on(executor) may come last, here and below.
template <qtensor::detail::execution_option... On>
tensor elementwise(unary op, const tensor& x, const element_type& result, const On&... on) {
  detail::check_types(x.type(), result);
  const auto by = qtensor::detail::execution_among(on...).by;
  tensor y(result, x.shape());
  if (pieces::compute_tiles(
          by, y, [op](const pieces::floats& v) QTENSOR_INLINE_LAMBDA { return pieces::apply(op, v); }, x))
    return y;
  pieces::compute_each(by, y, [&](index_t i) {
    return detail::stored(result, detail::computed(op, result.computed(), detail::expressed(x, i)), y.channel(i));
  });
  return y;
}
/// Binary operations on tensors of one shape. A float operand beside a quantized one is taken as it is (hybrid).
template <qtensor::detail::execution_option... On>
tensor elementwise(binary op, const tensor& a, const tensor& b, const element_type& result, const On&... on) {
  detail::check_same_shape(a, b);
  detail::check_types(a.type(), result);
  detail::check_types(b.type(), result);
  const auto by = qtensor::detail::execution_among(on...).by;
  tensor y(result, a.shape());
  const auto batch = [op](const pieces::floats& v, const pieces::floats& w)
                         QTENSOR_INLINE_LAMBDA { return pieces::apply(op, v, w); };
  if (op != binary::and_ && op != binary::or_ && pieces::compute_tiles(by, y, batch, a, b)) return y;
  pieces::compute_each(by, y, [&](index_t i) {
    const scalar v = detail::expressed(a, i), w = detail::expressed(b, i);
    return detail::stored(result, detail::computed(op, result.computed(), v, w), y.channel(i));
  });
  return y;
}
/// compare: a tensor of i1.
template <qtensor::detail::execution_option... On>
tensor compare(direction d, const tensor& a, const tensor& b, const On&... on) {
  detail::check_same_shape(a, b);
  require(a.type().computed() == b.type().computed(), "the operands are computed in ", name_of(a.type().computed()),
          " and ", name_of(b.type().computed()),
          "; constraint: element types agree, of quantized ones the expressed "
          "types.");
  const auto by = qtensor::detail::execution_among(on...).by;
  tensor y(basic_type::i1, a.shape());
  const bool done = detail::in_direction(d, [&](const auto& holds) {
    const auto write = [&](index_t first, index_t n, const pieces::tile& v, const pieces::tile& w) {
      std::byte* const to = y.bytes().data() + first;
      for (index_t i = 0; i < n; ++i) to[i] = std::byte{holds(v.numbers[i], w.numbers[i])};
    };
    return pieces::read_tiles(
        by, [&] { return write; }, a, b);
  });
  if (!done)
    pieces::compute_each(by, y, [&](index_t i) {
      return scalar{0.0, detail::compared(d, a.type().computed(), detail::expressed(a, i), detail::expressed(b, i))};
    });
  return y;
}
/// select: on_true where pred holds, else on_false, as the result's type (dequantize_select_quantize). pred has one
/// element or the shape of the others.
template <qtensor::detail::execution_option... On>
tensor select(const tensor& pred, const tensor& on_true, const tensor& on_false, const element_type& result,
              const On&... on) {
  require(pred.type() == element_type(basic_type::i1), "pred is ", name_of(pred.type().stored()),
          "; constraint: element_type(pred) = i1.");
  require(pred.shape().empty() || pred.shape() == on_true.shape(),
          "pred has another shape; constraint: rank(pred) = 0 or shape(pred) = shape(on_true).");
  detail::check_same_shape(on_true, on_false);
  detail::check_types(on_true.type(), result);
  detail::check_types(on_false.type(), result);
  const auto by = qtensor::detail::execution_among(on...).by;
  const auto as_result = [&](const tensor& x) {
    const bool stays = x.type() == result && !is_float(result.stored());
    if (stays && bits_of(result.stored()) >= 8) return x;
    tensor y(result, x.shape());
    if (!stays)
      pieces::retype(by, x, y);
    else
      pieces::compute_each(by, y, [&](index_t i) { return x.at(i); });
    return y;
  };
  const std::byte* const chosen = pred.bytes().data();
  if (pred.shape().empty()) return as_result(chosen[0] != std::byte{0} ? on_true : on_false);
  tensor y = as_result(on_true);
  const tensor other = as_result(on_false);
  const auto choose = [&]<class Unit>(Unit) {
    const auto* const from = reinterpret_cast<const Unit*>(other.bytes().data());
    auto* const to = reinterpret_cast<Unit*>(y.bytes().data());
    qtensor::detail::in_ranges(by, y.size(), pieces::tile_size, 1, [&](index_t first, index_t n) {
      for (index_t i = first; i < first + n; ++i) to[i] = chosen[i] != std::byte{0} ? to[i] : from[i];
    });
  };
  switch (bytes_of(result.stored())) {
    case 1:
      choose(std::uint8_t{});
      break;
    case 2:
      choose(std::uint16_t{});
      break;
    case 4:
      choose(std::uint32_t{});
      break;
    default:
      choose(std::uint64_t{});
  }
  return y;
}
/// convert: between booleans, integers and floats. Quantized tensors have uniform_quantize and uniform_dequantize.
/// Cost: between floats up to f32 and integers up to i32 as `retype` has it.
template <qtensor::detail::execution_option... On>
tensor convert(const tensor& x, basic_type to, const On&... on) {
  require(!x.type().is_quantized(), "the operand of convert is quantized; use uniform_dequantize.");
  const auto by = qtensor::detail::execution_among(on...).by;
  const basic_type from = x.type().stored();
  // Integers are codes of scale 1 and zero point 0.
  const auto as_codes = [](basic_type type) { return quantized_type::per_tensor(type, basic_type::f32, 1.0); };
  const auto same = [](const pieces::floats& v) QTENSOR_INLINE_LAMBDA { return v; };
  const auto cut = [](const pieces::floats& v) QTENSOR_INLINE_LAMBDA { return simd::truncate(v); };
  if (is_float(from) && is_integer(to))
    if (tensor y(as_codes(to), x.shape()); pieces::compute_tiles(by, y, cut, x)) return y.bitcast(to);
  tensor y(to, x.shape());
  if (is_float(from) && pieces::compute_tiles(by, y, same, x)) return y;
  const bool rounds_once = to == basic_type::f32 || bits_of(from) <= 16;
  if (is_integer(from) && is_float(to) && rounds_once && pieces::compute_tiles(by, y, same, x.bitcast(as_codes(from))))
    return y;
  pieces::compute_each(by, y, [&](index_t i) { return detail::converted(from, x.at(i), to); });
  return y;
}

}  // namespace QTENSOR_ABI

}  // namespace qtensor::compat::stablehlo
