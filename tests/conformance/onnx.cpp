// ONNX's operators as its own node tests, its reference and ONNX Runtime computed them, against compat/onnx.hpp.
// SPDX-License-Identifier: BSD-3-Clause
//
// QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear and Cast, through the public functions over memory. What
// still differs must be in `exceptions`; the operators of other headers are in `elsewhere`.
#include <doctest/doctest.h>

#include <algorithm>
#include <qtensor/compat/onnx.hpp>
#include <qtensor/compat/onnx_convolution.hpp>
#include <sstream>

#include "oracle/json.hpp"

namespace {

namespace onnx = qtensor::compat::onnx;
using namespace qtensor;
using oracle::sample;
using oracle::sample_array;

/// Operators that other headers compute.
const std::map<std::string, std::string> elsewhere = {
    {"MatMulInteger", "see tests/conformance/products.cpp"},
    {"QLinearMatMul", "see tests/conformance/products.cpp"},
};

/// The samples' names of ONNX's data types.
int number_of(const std::string& dtype) {
  const std::map<std::string, int> numbers = {
      {"f32", 1},  {"u8", 2},    {"s8", 3},         {"u16", 4},          {"s16", 5},      {"s32", 6},
      {"f16", 10}, {"bf16", 16}, {"f8_e4m3fn", 17}, {"f8_e4m3fnuz", 18}, {"f8_e5m2", 19}, {"f8_e5m2fnuz", 20},
      {"u4", 21},  {"s4", 22},   {"f4_e2m1", 23},   {"f8_e8m0fnu", 24},  {"u2", 25},      {"s2", 26}};
  const auto found = numbers.find(dtype);
  return found == numbers.end() ? 0 : found->second;
}

/// A sample's array (one code a word) in ONNX's own layout.
template <format F>
std::vector<onnx::unit<F>> array_of(const std::vector<std::uint32_t>& words) {
  std::vector<onnx::unit<F>> out(static_cast<std::size_t>(onnx::unit_count<F>(static_cast<index_t>(words.size()))));
  for (std::size_t i = 0; i < words.size(); ++i) onnx::detail::store<F>(out.data(), static_cast<index_t>(i), words[i]);
  return out;
}
template <format F>
std::vector<std::uint32_t> words_of(const std::vector<onnx::unit<F>>& array, std::size_t n) {
  std::vector<std::uint32_t> out(n);
  for (std::size_t i = 0; i < n; ++i) out[i] = onnx::detail::load<F>(array.data(), static_cast<index_t>(i));
  return out;
}

using shape = dynamic_extents<6>;

/// A shape of any rank up to 6, with leading extents of 1.
shape shape_of(const std::vector<std::size_t>& sizes) {
  REQUIRE(sizes.size() <= 6);
  shape::array all{1, 1, 1, 1, 1, 1};
  for (std::size_t i = 0; i < sizes.size(); ++i) all[6 - sizes.size() + i] = static_cast<index_t>(sizes[i]);
  return shape(all);
}

struct node {
  const sample& from;
  nlohmann::json attributes;

  explicit node(const sample& s) : from(s), attributes(nlohmann::json::parse(s.param("attributes"))) {}
  int attribute(const char* name, int otherwise) const { return attributes.value(name, otherwise); }
  /// With the axis counted as in `shape`.
  onnx::attributes linear(std::size_t rank) const {
    const int axis = attribute("axis", 1);
    return {axis < 0 ? axis : axis + 6 - static_cast<int>(rank), attribute("block_size", 0)};
  }
  const sample_array& input(const std::string& name) const { return from.inputs.at(name); }
  bool has(const std::string& name) const { return from.inputs.count(name) != 0; }
};

/// What an operator made of an element, as codes of the output's type.
using codes = std::vector<std::uint32_t>;

/// QuantizeLinear, and the quotients of its elements. Scales of 16 bits are given as the f32 numbers that they are
/// (tests/compat/onnx.cpp gives them as they are stored), with the type of the division beside them.
template <quantization_scheme S>
codes quantized(const node& n, std::vector<float>& quotients) {
  using code = typename S::code_format;
  const sample_array& x = n.input("x");
  const auto floats = x.floats(), scales = n.input("y_scale").floats();
  const auto zeros =
      n.has("y_zero_point") ? array_of<code>(n.input("y_zero_point").words()) : std::vector<onnx::unit<code>>();
  const auto t =
      onnx::quantize_linear<S>(source(floats.data(), shape_of(x.shape)), scales, zeros, n.linear(x.shape.size()));
  reference::for_each_index({}, t.extents().to_array(), [&](const auto& at) {
    quotients.push_back(quotient<S>(floats[quotients.size()], {t.view().scale(at)}));
  });
  std::vector<onnx::unit<code>> y(static_cast<std::size_t>(onnx::unit_count<code>(static_cast<index_t>(x.size()))));
  onnx::to_packed(t, y);
  return words_of<code>(y, x.size());
}

/// In f32, as ONNX Runtime divides, or in the type of the scale, as the reference does.
template <quantization_scheme S>
codes quantized_by_program(const node& n, std::vector<float>& quotients) {
  const std::string scale = n.input("y_scale").dtype;
  if (scale == "f32" || n.from.program == "onnxruntime" || n.attribute("precision", 0) == 1)
    return quantized<S>(n, quotients);
  if (scale == "f16") return quantized<with<S, divide_in<f16>>>(n, quotients);
  if (scale == "bf16") return quantized<with<S, divide_in<bf16>>>(n, quotients);
  FAIL_CHECK("no rule for scales of " << scale);
  return {};
}

codes quantize_linear(const node& n, std::vector<float>& quotients) {
  codes y;
  onnx::with_format(number_of(n.from.outputs.at("y").dtype), [&]<class F>(std::type_identity<F>) {
    if constexpr (F::bits <= 16 && !std::is_same_v<F, f16> && !std::is_same_v<F, bf16> && !std::is_same_v<F, e8m0>)
      if constexpr (F::is_integer || F::bits != 8)
        y = quantized_by_program<onnx::linear<F>>(n, quotients);
      else if (n.attribute("saturate", 1) != 0)
        y = quantized_by_program<onnx::linear<F>>(n, quotients);
      else
        y = quantized_by_program<with<onnx::linear<F>, to_special>>(n, quotients);
    else
      FAIL_CHECK("QuantizeLinear has no codes of " << F::name.c_str());
  });
  return y;
}

/// DequantizeLinear, with scales of 16 bits as the f32 numbers that they are.
template <format Code, format Out>
codes dequantized(const node& n) {
  const sample_array& x = n.input("x");
  const auto packed = array_of<Code>(x.words());
  const auto zeros =
      n.has("x_zero_point") ? array_of<Code>(n.input("x_zero_point").words()) : std::vector<onnx::unit<Code>>();
  std::vector<onnx::unit<Out>> y(x.size());
  onnx::dequantize_linear<onnx::linear<Code>, Out>(packed, n.input("x_scale").floats(), zeros, shape_of(x.shape),
                                                   n.linear(x.shape.size()), y);
  return words_of<Out>(y, x.size());
}

codes dequantize_linear(const node& n) {
  codes y;
  const std::string out = n.from.outputs.at("y").dtype;
  onnx::with_format(number_of(n.input("x").dtype), [&]<class F>(std::type_identity<F>) {
    if constexpr (std::is_same_v<F, int32> ||
                  (F::bits <= 16 && !std::is_same_v<F, f16> && !std::is_same_v<F, bf16> && !std::is_same_v<F, e8m0>)) {
      if (out == "f32")
        y = dequantized<F, f32>(n);
      else if (out == "f16")
        y = dequantized<F, f16>(n);
      else if (out == "bf16")
        y = dequantized<F, bf16>(n);
      else
        FAIL_CHECK("no rule for an output of " << out);
    } else {
      FAIL_CHECK("DequantizeLinear has no codes of " << F::name.c_str());
    }
  });
  return y;
}

codes cast(const node& n) {
  codes y;
  const sample_array& x = n.input("input");
  const index_t count = static_cast<index_t>(x.size());
  const std::string round = n.attributes.value("round_mode", std::string("up"));
  onnx::with_format(n.attribute("to", 0), [&]<class To>(std::type_identity<To>) {
    onnx::with_format(number_of(x.dtype), [&]<class From>(std::type_identity<From>) {
      const auto from = array_of<From>(x.words());
      std::vector<onnx::unit<To>> to(static_cast<std::size_t>(onnx::unit_count<To>(count)));
      if constexpr (std::is_same_v<To, e8m0>) {
        const auto by = [&]<class Round>(std::type_identity<Round>) {
          if (n.attribute("saturate", 1) != 0)
            onnx::cast<From, To, Round>(from, count, to);
          else
            onnx::cast<From, To, Round, to_special>(from, count, to);
        };
        if (round == "up")
          by(std::type_identity<onnx::round_up>{});
        else if (round == "down")
          by(std::type_identity<onnx::round_down>{});
        else
          by(std::type_identity<onnx::round_nearest>{});
      } else if constexpr (To::is_integer) {
        // The reference truncates; ONNX Runtime rounds half away where it packs; both wrap around (NUMERICS 10.5).
        if (n.from.program == "onnxruntime" && is_packed<To>)
          onnx::cast<From, To, nearest_away, onnx::wraps>(from, count, to);
        else
          onnx::cast<From, To, toward_zero, onnx::wraps>(from, count, to);
      } else if (To::bits != 8 || n.attribute("saturate", 1) != 0) {
        onnx::cast<From, To>(from, count, to);
      } else {
        onnx::cast<From, To, to_special>(from, count, to);
      }
      y = words_of<To>(to, x.size());
    });
  });
  return y;
}

/// ConvInteger and QLinearConv: y as codes, and its dimensions.
struct convolved {
  codes y;
  std::vector<std::size_t> dims;
};
convolved convolution(const node& n) {
  const sample_array &x = n.input("x"), &w = n.input("w");
  const std::vector<index_t> x_dims(x.shape.begin(), x.shape.end()), w_dims(w.shape.begin(), w.shape.end());
  onnx::convolution_attributes how;
  const auto list = [&](const char* name) { return n.attributes.value(name, std::vector<index_t>()); };
  how.dilations = list("dilations"), how.kernel_shape = list("kernel_shape"), how.pads = list("pads");
  how.strides = list("strides"), how.group = n.attribute("group", 1);
  const auto dims = onnx::convolution_dims(x_dims, w_dims, how);
  convolved out{{}, {dims.begin(), dims.end()}};
  std::size_t count = 1;
  for (const std::size_t d : out.dims) count *= d;
  const auto of = [&]<class T>(const char* name, std::type_identity<T>) {
    std::vector<T> v;
    if (n.has(name))
      for (const std::uint32_t word : n.input(name).words()) v.push_back(static_cast<T>(word));
    return v;
  };
  const auto by_types = [&]<class X, class W>(std::type_identity<X> a, std::type_identity<W> b) {
    const auto x_codes = of("x", a), x_zero = of("x_zero_point", a);
    const auto w_codes = of("w", b), w_zero = of(n.has("w_zero_points") ? "w_zero_points" : "w_zero_point", b);
    if (n.from.op == "ConvInteger") {
      std::vector<std::int32_t> y(count);
      onnx::conv_integer<X, W>(x_codes, x_dims, w_codes, w_dims, x_zero, w_zero, how, y);
      out.y.assign(y.begin(), y.end());
      return;
    }
    const auto scales = n.input("w_scale").floats();
    const auto bias = of("B", std::type_identity<std::int32_t>{});
    const auto by_y = [&]<class Y>(std::type_identity<Y> c) {
      std::vector<Y> y(count);
      const onnx::qlinear_parameters<X, W, Y> p{
          n.input("x_scale").floats()[0], x_zero[0], scales, w_zero, n.input("y_scale").floats()[0],
          of("y_zero_point", c)[0],       bias};
      const auto rule =
          n.from.program == "onnx_reference" ? onnx::convolution_rule::reference : onnx::convolution_rule::runtime;
      onnx::qlinear_conv<X, W, Y>(x_codes, x_dims, w_codes, w_dims, p, how, y, rule);
      for (const Y v : y) out.y.push_back(static_cast<std::uint8_t>(v));
    };
    if (n.from.outputs.at("y").dtype == "u8")
      by_y(std::type_identity<std::uint8_t>{});
    else
      by_y(std::type_identity<std::int8_t>{});
  };
  const bool x_signed = x.dtype == "s8", w_signed = w.dtype == "s8";
  const std::type_identity<std::int8_t> s8;
  const std::type_identity<std::uint8_t> u8;
  if (x_signed)
    w_signed ? by_types(s8, s8) : by_types(s8, u8);
  else
    w_signed ? by_types(u8, s8) : by_types(u8, u8);
  return out;
}

/// One element on which a program and our rule differ.
struct difference {
  const sample& from;
  const std::string& to;  // the output's type
  float quotient;         // x / scale of QuantizeLinear
  std::uint32_t ours, theirs;
};

struct exception {
  const char* reason;
  bool (*applies)(const difference&);
};

bool is_nan_of(const std::string& dtype, std::uint32_t word) {
  bool nan = false;
  onnx::with_format(number_of(dtype), [&]<class F>(std::type_identity<F>) { nan = is_nan(decode<F>(word)); });
  return nan;
}

/// Where a program's answer is not our rule, and why. An element counts only where it does differ.
const exception exceptions[] = {
    {"quotients from 2^31 on and NaN become INT_MIN in the reference and in ONNX Runtime's 4-bit kernels; ours "
     "saturate, "
     "NaN is the zero point (NUMERICS 8.1, 11)",
     [](const difference& d) {
       return d.from.op == "QuantizeLinear" && (d.to[0] == 's' || d.to[0] == 'u') && !(magnitude(d.quotient) < 0x1p31f);
     }},
    {"NaN, spelled by another NaN code (NUMERICS 10.2)",
     [](const difference& d) { return is_nan_of(d.to, d.ours) && is_nan_of(d.to, d.theirs); }},
};

struct tally {
  std::size_t cases = 0, elements = 0, elsewhere = 0, broadcasts = 0;
  std::map<std::string, std::size_t> excepted;
};

void compare(const sample& s, const std::string& output, const codes& ours, const std::vector<float>& quotients,
             tally& t) {
  const sample_array& y = s.outputs.at(output);
  const codes theirs = y.words();
  REQUIRE(ours.size() == theirs.size());
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    if (ours[i] == theirs[i]) continue;
    const difference d{s, y.dtype, quotients.empty() ? 0.f : quotients[i], ours[i], theirs[i]};
    const auto known =
        std::find_if(std::begin(exceptions), std::end(exceptions), [&](const exception& e) { return e.applies(d); });
    if (known != std::end(exceptions)) {
      ++t.excepted[known->reason];
      continue;
    }
    std::ostringstream line;
    line << std::hex << "element 0x" << i << " is 0x" << ours[i] << ", " << s.program << " says 0x" << theirs[i];
    FAIL_CHECK(line.str());
  }
  ++t.cases;
  t.elements += theirs.size();
}

}  // namespace

TEST_CASE("onnx: every answer of its node tests, its reference and ONNX Runtime is ours, or a listed exception") {
  const std::string reason = oracle::why_not("onnx");
  if (!reason.empty()) {
    MESSAGE("skipped: ", reason);
    return;
  }
  tally t;
  const auto samples = oracle::read_samples("onnx");
  for (const sample& s : samples) {
    INFO("case ", s.id);
    if (elsewhere.count(s.op) != 0) {
      ++t.elsewhere;
      continue;
    }
    const node n(s);
    if (s.op == "QuantizeLinear") {
      std::vector<float> quotients;
      const codes y = quantize_linear(n, quotients);
      compare(s, "y", y, quotients, t);
    } else if (s.op == "DequantizeLinear") {
      compare(s, "y", dequantize_linear(n), {}, t);
    } else if (s.op == "Cast") {
      compare(s, "output", cast(n), {}, t);
    } else if (s.op == "ConvInteger" || s.op == "QLinearConv") {
      const convolved ours = convolution(n);
      if (s.program == "onnx_reference" && s.op == "QLinearConv" && n.input("w_scale").size() > 1 &&
          n.input("x").shape.size() != 4) {
        ++t.broadcasts;  // scales of every output on the wrong axis
      } else {
        CHECK(ours.dims == s.outputs.at("y").shape);
        compare(s, "y", ours.y, {}, t);
      }
    } else if (s.op == "DynamicQuantizeLinear") {
      const auto x = n.input("x").floats();
      const auto run = [&]<class S>(std::type_identity<S>) {
        const auto y = onnx::dynamic_quantize_linear<S>(source(x.data(), shape_of(n.input("x").shape)));
        CHECK(s.outputs.at("y_scale").words() == codes{bits_of(y.scales()[0])});
        CHECK(s.outputs.at("y_zero_point").words() == codes{y.zero_points()[0]});
        compare(s, "y", codes(y.codes().begin(), y.codes().end()), {}, t);
      };
      if (s.program == "onnxruntime")
        run(std::type_identity<onnx::dynamic_linear>{});
      else
        run(std::type_identity<onnx::dynamic_linear_reference>{});
    } else {
      FAIL_CHECK("no rule for the operator " << s.op);
    }
  }
  CHECK(t.cases > 0);
  CHECK(t.cases + t.elsewhere + t.broadcasts == samples.size());
  MESSAGE(t.cases, " cases, ", t.elements, " elements compared");
  for (const auto& [why, count] : t.excepted) MESSAGE(count, " exceptions: ", why);
  MESSAGE(t.broadcasts,
          " cases of QLinearConv left out: the reference broadcasts w_scale over the wrong axis unless x "
          "has 4 dimensions");
  for (const auto& left_out : elsewhere) {
    const auto count =
        std::count_if(samples.begin(), samples.end(), [&](const sample& s) { return s.op == left_out.first; });
    MESSAGE(count, " cases of ", left_out.first, " left out: ", left_out.second);
  }
}
