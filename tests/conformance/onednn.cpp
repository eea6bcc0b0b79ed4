// oneDNN 3.12.1, run: every reorder, dynamic quantization and convolution is ours, or a listed exception.
// SPDX-License-Identifier: BSD-3-Clause
//
// A sample says which implementation oneDNN chose: "simple" divides by the destination scale, "jit" multiplies by its
// reciprocal. Products belong to the linear algebra, except those by 1 x 1 that only show how their destination is
// quantized.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <qtensor/compat/onednn.hpp>
#include <qtensor/compat/onednn_matmul.hpp>
#include <sstream>

#include "oracle/json.hpp"

namespace {

namespace dnn = qtensor::compat::onednn;
using oracle::sample;
using oracle::sample_array;
using qtensor::index_t;
using words = std::vector<std::uint32_t>;

/// Operators that other headers compute.
const std::map<std::string, std::string> elsewhere = {};

dnn::data_type type_named(const std::string& name) {
  using t = dnn::data_type;
  const std::map<std::string, t> types = {{"f32", t::f32},
                                          {"bf16", t::bf16},
                                          {"f16", t::f16},
                                          {"f8_e5m2", t::f8_e5m2},
                                          {"f8_e4m3", t::f8_e4m3},
                                          {"f8_e4m3fn", t::f8_e4m3},
                                          {"f4_e2m1", t::f4_e2m1},
                                          {"f4_e2m1fn", t::f4_e2m1},
                                          {"e8m0", t::e8m0},
                                          {"f8_e8m0fnu", t::e8m0},
                                          {"s32", t::s32},
                                          {"s8", t::s8},
                                          {"u8", t::u8},
                                          {"s4", t::s4},
                                          {"u4", t::u4}};
  const auto found = types.find(name);
  return found == types.end() ? t::undef : found->second;
}

/// An array in oneDNN's own layout, where a sample has one code a word.
class buffer {
 public:
  buffer(dnn::data_type type, std::size_t n) : type_(type), n_(n), memory_(n + 1) {}
  buffer(dnn::data_type type, const words& from) : buffer(type, from.size()) {
    for (std::size_t i = 0; i < n_; ++i) {
      const int bits = dnn::bits_of_type(type_);
      if (bits == 4)
        qtensor::detail::store_bits<4>(bytes(), static_cast<index_t>(i) * 4, from[i]);
      else
        std::memcpy(bytes() + i * static_cast<std::size_t>(bits / 8), &from[i], static_cast<std::size_t>(bits / 8));
    }
  }
  explicit buffer(const sample_array& a) : buffer(type_named(a.dtype), a.words()) {}

  dnn::data_type type() const { return type_; }
  const void* data() const { return memory_.data(); }
  void* data() { return memory_.data(); }
  words codes() const {
    words out(n_, 0);
    const int bits = dnn::bits_of_type(type_);
    for (std::size_t i = 0; i < n_; ++i)
      if (bits == 4)
        out[i] = qtensor::detail::load_bits<4>(bytes(), static_cast<index_t>(i) * 4);
      else
        std::memcpy(&out[i], bytes() + i * static_cast<std::size_t>(bits / 8), static_cast<std::size_t>(bits / 8));
    return out;
  }
  std::vector<float> floats() const {
    std::vector<float> out(n_);
    dnn::pieces::load(type_, data(), 0, static_cast<index_t>(n_), out.data());
    return out;
  }

 private:
  std::uint8_t* bytes() { return reinterpret_cast<std::uint8_t*>(memory_.data()); }
  const std::uint8_t* bytes() const { return reinterpret_cast<const std::uint8_t*>(memory_.data()); }

  dnn::data_type type_;
  std::size_t n_;
  std::vector<std::uint32_t> memory_;
};

/// The runs of digits of a parameter's text: "[8, 1]" -> 8, 1.
std::vector<std::string> numbers_in(const std::string& text) {
  std::vector<std::string> out;
  bool inside = false;
  for (const char c : text) {
    const bool digit = c >= '0' && c <= '9';
    if (digit && !inside) out.emplace_back();
    if (digit) out.back() += c;
    inside = digit;
  }
  return out;
}

std::vector<index_t> dims_of(const sample_array& a) {
  std::vector<index_t> dims(a.shape.begin(), a.shape.end());
  return dims.empty() ? std::vector<index_t>{1} : dims;
}

/// A parameter as the sample describes it, where it does and the array has that shape; else with mask and groups from
/// its shape alone: what varies is masked, in runs that fill the extent.
dnn::parameter parameter_for(const sample& s, const sample_array& a, const buffer& memory,
                             const std::vector<index_t>& dims) {
  dnn::parameter p{memory.data(), memory.type()};
  if (a.size() == 1) return p;
  REQUIRE(a.shape.size() == dims.size());
  if (!s.param("mask").empty()) {
    p.mask = std::stoi(s.param("mask"));
    for (const std::string& word : numbers_in(s.param("groups"))) p.groups.push_back(std::stol(word));
    if (dnn::parameter_dims("it", dims, p.mask, p.groups) == dims_of(a)) return p;
    p.mask = 0;
    p.groups.clear();
  }
  std::vector<index_t> groups(dims.size(), 1);
  bool grouped = false;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    const auto extent = static_cast<index_t>(a.shape[d]);
    if (extent == 1 && dims[d] != 1) continue;
    p.mask |= 1 << d;
    groups[d] = dims[d] / extent;
    grouped = grouped || groups[d] != 1;
  }
  if (!grouped) return p;
  p.groups.assign(groups.end() - static_cast<std::ptrdiff_t>(std::min<std::size_t>(2, dims.size())), groups.end());
  return p;
}

/// A number of another type, for messages and exceptions.
float number(dnn::data_type type, std::uint32_t word) { return buffer(type, words{word}).floats()[0]; }

/// One element on which oneDNN and our rule differ.
struct difference {
  const sample& from;
  std::uint32_t source;  // of the element
  dnn::data_type source_type, type;
  std::uint32_t ours, theirs;
};

struct exception {
  const char* reason;
  bool (*applies)(const difference&);
};

/// Where oneDNN's answer is not our rule, and why. An element counts only where it does differ.
const exception exceptions[] = {
    {"an upstream bug, marked as one in the samples (params.quirk; NUMERICS 5.3)",
     [](const difference& d) { return !d.from.param("quirk").empty(); }},
    {"NaN, spelled by another NaN code (NUMERICS 10.2)",
     [](const difference& d) {
       return !dnn::is_integer(d.type) && std::isnan(number(d.type, d.ours)) && std::isnan(number(d.type, d.theirs));
     }},
};

struct tally {
  std::size_t cases = 0, elements = 0;
  std::map<std::string, std::size_t> excepted;
};

void compare(const sample& s, const std::string& output, const buffer& source, const buffer& ours, tally& t) {
  const words theirs = s.outputs.at(output).words(), mine = ours.codes(), from = source.codes();
  REQUIRE(mine.size() == theirs.size());
  ++t.cases;
  t.elements += theirs.size();
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    const std::uint32_t mask = qtensor::low_bits(dnn::bits_of_type(ours.type()));
    if ((mine[i] & mask) == (theirs[i] & mask)) continue;
    const difference d{s, from[i % from.size()], source.type(), ours.type(), mine[i], theirs[i]};
    const auto known =
        std::find_if(std::begin(exceptions), std::end(exceptions), [&](const exception& e) { return e.applies(d); });
    if (known != std::end(exceptions)) {
      ++t.excepted[known->reason];
      continue;
    }
    std::ostringstream line;
    line << std::hex << output << " element 0x" << i << " of 0x" << d.source << " is 0x" << mine[i]
         << ", oneDNN says 0x" << theirs[i];
    FAIL_CHECK(line.str());
  }
}

void run_reorder(const sample& s, tally& t) {
  const std::string impl = s.param("impl");
  if (impl.rfind("simple", 0) != 0 && impl.rfind("ref", 0) != 0 && impl.rfind("jit", 0) != 0) {
    FAIL_CHECK("no rule for the implementation " << impl);
    return;
  }
  dnn::attributes how = dnn::as_in(impl.rfind("jit", 0) == 0 ? dnn::implementation::jit : dnn::implementation::simple);
  const sample_array& x = s.inputs.at("src");
  const auto dims = dims_of(x);
  const buffer src(x);
  buffer dst(type_named(s.outputs.at("dst").dtype), x.size());
  std::map<std::string, buffer> parameters;
  for (const auto& [name, a] : s.inputs) {
    if (name == "src") continue;
    const buffer& memory = parameters.emplace(name, buffer(a)).first->second;
    const dnn::parameter p = parameter_for(s, a, memory, dims);
    const bool into = s.param("scale_side") == "dst";
    if (name == "src_scale" || (name == "scale" && !into))
      how.src_scale = p;
    else if (name == "dst_scale" || name == "scale")
      how.dst_scale = p;
    else if (name == "src_zp" || (name == "zero_point" && !into))
      how.src_zero_point = p;
    else if (name == "dst_zp" || name == "zero_point")
      how.dst_zero_point = p;
    else
      FAIL_CHECK("no rule for the input " << name);
  }
  dnn::reorder(dims, src.type(), src.data(), dst.type(), dst.data(), how);
  compare(s, "dst", src, dst, t);
}

/// A product of 1 x 1 by 1 x N: its destination is quantized dynamically.
void run_dynamic(const sample& s, tally& t) {
  const auto a = buffer(s.inputs.at("src")).floats(), b = buffer(s.inputs.at("wei")).floats();
  REQUIRE(a.size() == 1);
  words product;
  for (const float w : b) product.push_back(qtensor::bits_of(0.f + a[0] * w));
  const buffer x(dnn::data_type::f32, product);
  const bool mx = s.param("dst_qmode") == "dynamic_mx";
  const index_t size = mx ? 32 : 16;
  const std::vector<index_t> dims = {1, static_cast<index_t>(b.size())};
  buffer dst(type_named(s.outputs.at("dst").dtype), b.size()),
      scale(mx ? dnn::data_type::e8m0 : dnn::data_type::f8_e4m3, b.size() / static_cast<std::size_t>(size));
  const dnn::dynamic_scale how{
      mx ? dnn::quantization_mode::dynamic_mx : dnn::quantization_mode::dynamic_fp, scale.type(), 3, {1, size}};
  dnn::quantize(dims, x.type(), x.data(), how, dst.type(), dst.data(), scale.data());
  compare(s, "dst", x, dst, t);
  compare(s, "dst_scale", x, scale, t);
}

/// A product with a bias or none. The implementations multiply by the reciprocal of a destination scale, but for "ref".
void run_matmul(const sample& s, tally& t) {
  const std::string impl = s.param("impl");
  dnn::matmul_attributes how;
  how.into = dnn::as_in(impl.rfind("ref", 0) == 0 ? dnn::implementation::simple : dnn::implementation::jit);
  how.into.nan_to_integer = dnn::nan_to_integer::zero_point;
  how.into.bf16_subnormals = dnn::bf16_subnormals::kept;
  how.into.zero_sign = dnn::zero_sign::kept;
  if (s.param("reductions_of") != "" && s.param("reductions_of") != "raw src")
    how.reductions_of = dnn::reductions_of::shifted;
  const auto fpmath = s.param("fpmath");
  if (fpmath.find("bf16") != std::string::npos) how.math = dnn::math_mode::bf16;
  // The bf16 kernel multiplies sums by scales where it can.
  if (how.math == dnn::math_mode::bf16) how.weight_scaling = dnn::weight_scaling::after_sum;
  if (fpmath.find("\"f16") != std::string::npos) how.math = dnn::math_mode::f16;
  const auto src_dims = dims_of(s.inputs.at("src")), wei_dims = dims_of(s.inputs.at("wei"));
  const auto dst_dims = dims_of(s.outputs.at("dst"));
  const buffer src(s.inputs.at("src")), wei(s.inputs.at("wei"));
  buffer dst(type_named(s.outputs.at("dst").dtype), s.outputs.at("dst").size());
  std::map<std::string, buffer> parameters;
  dnn::bias_argument bias;
  for (const auto& [name, a] : s.inputs) {
    if (name == "src" || name == "wei") continue;
    const buffer& memory = parameters.emplace(name, buffer(a)).first->second;
    if (name == "bias") {
      bias = {memory.data(), memory.type(), dims_of(a)};
      continue;
    }
    const bool of_wei = name.rfind("wei", 0) == 0, of_dst = name.rfind("dst", 0) == 0;
    dnn::parameter p = parameter_for(s, a, memory, of_wei ? wei_dims : of_dst ? dst_dims : src_dims);
    if (name == "src_reductions") p.mask = 3, p.groups = {1, src_dims[1] / static_cast<index_t>(a.shape[1])};
    dnn::parameter& to = name == "src_scale"   ? how.src_scale
                         : name == "src_zp"    ? how.src_zero_point
                         : name == "wei_scale" ? how.wei_scale
                         : name == "wei_zp"    ? how.wei_zero_point
                         : name == "dst_scale" ? how.into.dst_scale
                         : name == "dst_zp"    ? how.into.dst_zero_point
                                               : how.precomputed_reductions;
    to = p;
  }
  dnn::matmul(src_dims, src.type(), src.data(), wei_dims, wei.type(), wei.data(), bias, dst.type(), dst.data(), how);
  compare(s, "dst", src, dst, t);
}

/// An int8 convolution by the reference implementation, nchw and oihw or goihw.
void run_convolution(const sample& s, tally& t) {
  const auto list = [&](const char* name) {
    std::vector<index_t> out;
    for (const std::string& word : numbers_in(s.param(name))) out.push_back(std::stol(word));
    return out;
  };
  const sample_array &x = s.inputs.at("src"), &w = s.inputs.at("wei"), &y = s.outputs.at("dst");
  const bool grouped = w.shape.size() == 5;
  dnn::convolution_description d{type_named(x.dtype), type_named(w.dtype), type_named(y.dtype)};
  d.src = {"NCHW", dims_of(x)};
  d.weights = {grouped ? "GOIHW" : "OIHW", dims_of(w)};
  d.dst_order = "NCHW";
  d.strides = list("strides"), d.dilates = list("dilation_minus1");
  d.padding_l = d.padding_r = list("pad");
  // Padding at the end is what makes the destination so large.
  for (std::size_t i = 0; i < 2; ++i) {
    const auto in = static_cast<index_t>(x.shape[i + 2]), out = static_cast<index_t>(y.shape[i + 2]);
    const auto reach = static_cast<index_t>(w.shape[w.shape.size() - 2 + i] - 1) * (d.dilates[i] + 1) + 1;
    d.padding_r[i] = (out - 1) * d.strides[i] + reach - in - d.padding_l[i];
  }
  std::map<std::string, buffer> memory;
  const auto given = [&](const char* name) -> dnn::parameter {
    const auto found = s.inputs.find(name);
    if (found == s.inputs.end()) return {};
    const buffer& m = memory.emplace(name, buffer(found->second)).first->second;
    return {m.data(), m.type(), found->second.size() == 1 ? 0 : grouped ? 3 : 1};
  };
  dnn::convolution_attributes how;
  how.src_scale = given("src_scale"), how.weights_scale = given("wei_scale"), how.dst_scale = given("dst_scale");
  how.src_zero_point = given("src_zp"), how.weights_zero_point = given("wei_zp");
  how.dst_zero_point = given("dst_zp");
  const dnn::parameter bias = given("bias");
  d.bias_type = bias.type;
  const buffer src(x), weights(w);
  buffer dst(d.dst_type, y.size());
  dnn::integer_convolution(d, weights.data(), bias.data, how)(src.data(), dst.data());
  compare(s, "dst", src, dst, t);
}

}  // namespace

TEST_CASE("onednn: every product, reorder and every dynamic quantization is ours, or a listed exception") {
  const std::string reason = oracle::why_not("onednn");
  if (!reason.empty()) {
    MESSAGE("skipped: ", reason);
    return;
  }
  tally t;
  std::map<std::string, std::size_t> left_out;
  for (const sample& s : oracle::read_samples("onednn")) {
    INFO("case ", s.id, " by ", s.param("impl"));
    const bool by_one = s.param("M") == "1" && s.param("K") == "1";
    if (s.op == "reorder")
      run_reorder(s, t);
    else if (s.op == "matmul" && by_one && s.param("dst_qmode").rfind("dynamic_", 0) == 0)
      run_dynamic(s, t);
    else if (s.op == "matmul")
      run_matmul(s, t);
    else if (s.op == "conv")
      run_convolution(s, t);
    else if (elsewhere.count(s.op) != 0)
      ++left_out[s.op];
    else
      FAIL_CHECK("no rule for the operator " << s.op);
  }
  CHECK(t.cases > 0);
  MESSAGE(t.cases, " arrays, ", t.elements, " elements compared");
  for (const auto& [why, count] : t.excepted) MESSAGE(count, " exceptions: ", why);
  for (const auto& [op, count] : left_out) MESSAGE(count, " cases of ", op, " left out: ", elsewhere.at(op));
}
