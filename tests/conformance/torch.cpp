// torch's quantization as torch computed it, against compat/torch.hpp.
// SPDX-License-Identifier: BSD-3-Clause
//
// What still differs must be in `exceptions`; what is computed elsewhere, or not at all, is in `elsewhere`.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <qtensor/compat/torch.hpp>
#include <sstream>

#include "oracle/json.hpp"

namespace {

namespace torch = qtensor::compat::torch;
using namespace qtensor;
using oracle::sample;
using oracle::sample_array;

/// Operations that this header does not compute.
const std::map<std::string, std::string> elsewhere = {
    {"linear", "see tests/conformance/products.cpp"},
    {"scaled_mm", "outside our scope (the samples' README)"},
};

using shape = dynamic_extents<5>;

/// A shape of any rank up to 5, with leading extents of 1.
shape shape_of(const std::vector<std::size_t>& sizes) {
  REQUIRE(sizes.size() <= 5);
  shape::array all{1, 1, 1, 1, 1};
  for (std::size_t i = 0; i < sizes.size(); ++i) all[5 - sizes.size() + i] = static_cast<index_t>(sizes[i]);
  return shape(all);
}

/// 64-bit numbers of a sample, whole.
template <class T>
std::vector<T> wide(const sample_array& a) {
  std::vector<T> out(a.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::uint64_t bits = 0;
    for (std::size_t b = 0; b < 8; ++b) bits |= std::uint64_t{a.bytes.at(i * 8 + b)} << (8 * b);
    out[i] = std::bit_cast<T>(bits);
  }
  return out;
}

/// Scales and zero points, given as arrays or as parameters of the case.
std::vector<double> scales_of(const sample& s) {
  if (s.inputs.count("scale") == 0) return {std::stod(s.param("scale"))};
  const sample_array& a = s.inputs.at("scale");
  if (a.dtype == "f64") return wide<double>(a);
  const auto floats = a.floats();
  return {floats.begin(), floats.end()};
}
std::vector<std::int64_t> zero_points_of(const sample& s) {
  if (s.inputs.count("zero_point") == 0) return {std::stoll(s.param(s.params.count("zp") ? "zp" : "zero_point"))};
  const sample_array& a = s.inputs.at("zero_point");
  if (a.dtype == "s64") return wide<std::int64_t>(a);
  std::vector<std::int64_t> out;
  for (std::uint32_t w : a.words()) out.push_back(static_cast<std::int32_t>(w));
  return out;
}

/// Quotients from 2^31 on and NaN become INT_MIN in torch, ours saturate and take NaN to the zero point (NUMERICS 10).
constexpr const char* int_min = "quotients from 2^31 on and NaN become INT_MIN in torch; ours saturate (NUMERICS 5.1)";

struct tally {
  std::size_t cases = 0, elements = 0, elsewhere = 0;
  std::map<std::string, std::size_t> excepted;
};

/// Compares the bits of every element; `quotients` are x / scale.
void compare(const sample& s, const char* what, const std::vector<std::uint32_t>& ours, const sample_array& y,
             const std::vector<float>& quotients, tally& t) {
  const auto theirs = y.words();
  REQUIRE(ours.size() == theirs.size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (ours[i] == theirs[i]) continue;
    if (!(magnitude(quotients[i]) < 0x1p31f)) {
      ++t.excepted[int_min];
      continue;
    }
    std::ostringstream line;
    line << std::hex << what << ' ' << i << " is 0x" << ours[i] << ", torch says 0x" << theirs[i] << " in " << s.id;
    FAIL_CHECK(line.str());
  }
  t.elements += ours.size();
}

std::vector<std::uint32_t> bits_of_all(const std::vector<float>& x) {
  std::vector<std::uint32_t> out;
  for (float v : x) out.push_back(bits_of(v));
  return out;
}

/// x / scale of every element; the scale of an element is that of its index on `axis`.
std::vector<float> quotients_of(const std::vector<float>& x, const shape& extents, const std::vector<double>& scales,
                                int axis) {
  std::vector<float> out;
  reference::for_each_index({}, extents.to_array(), [&](const shape::array& at) {
    const auto c = scales.size() == 1 ? 0 : static_cast<std::size_t>(at[static_cast<std::size_t>(axis + 5)]);
    out.push_back(x[out.size()] / static_cast<float>(scales[c]));
  });
  return out;
}

/// The axis of a case counted from the end; -1 where it has none.
int axis_of(const sample& s) {
  if (s.params.count("axis") == 0 || s.param("axis") == "null") return -1;
  const int axis = std::stoi(s.param("axis"));
  return axis < 0 ? axis : axis - static_cast<int>(s.inputs.at("x").shape.size());
}
bool per_channel(const sample& s) { return s.params.count("axis") != 0 && s.param("axis") != "null"; }

template <quantization_scheme S>
void quantize(const sample& s, tally& t) {
  const auto x = s.inputs.at("x").floats();
  const shape extents = shape_of(s.inputs.at("x").shape);
  const auto scales = scales_of(s);
  const auto zeros = zero_points_of(s);
  const auto quotients = quotients_of(x, extents, scales, axis_of(s));
  const auto check = [&](const auto& q) {
    std::vector<std::uint32_t> codes;
    for (auto code : q.codes()) codes.push_back(static_cast<std::uint32_t>(code) & low_bits(S::code_format::bits));
    compare(s, "code", codes, s.outputs.at("q"), quotients, t);
    if (s.outputs.count("deq") == 0) return;
    const auto values = per_channel(s) ? torch::dequantize_per_channel(q, scales) : torch::dequantize(q);
    compare(s, "value", bits_of_all(values), s.outputs.at("deq"), quotients, t);
  };
  if (per_channel(s))
    check(torch::quantize_per_channel<S>(source(x.data(), extents), scales, zeros, axis_of(s)));
  else
    check(torch::quantize_per_tensor<S>(source(x.data(), extents), scales[0], zeros[0]));
}

void fake_quantize(const sample& s, tally& t) {
  const auto x = s.inputs.at("x").floats();
  const shape extents = shape_of(s.inputs.at("x").shape);
  const auto scales = scales_of(s);
  const auto zeros = zero_points_of(s);
  const auto number = [&](const char* name, const char* other) {
    return std::stoll(s.param(s.params.count(name) != 0 ? name : other));
  };
  const std::int64_t low = number("quant_min", "qmin"), high = number("quant_max", "qmax");
  const auto y =
      per_channel(s)
          ? torch::fake_quantize_per_channel_affine(source(x.data(), extents), scales, zeros, axis_of(s), low, high)
          : torch::fake_quantize_per_tensor_affine(source(x.data(), extents), scales[0], zeros[0], low, high);
  REQUIRE(s.outputs.size() == 1);
  compare(s, "value", bits_of_all(y), s.outputs.begin()->second, quotients_of(x, extents, scales, axis_of(s)), t);
}

template <quantization_scheme S>
void observe(const sample& s, tally& t) {
  torch::min_max_observer observer;
  const auto x = s.inputs.at("x").floats();
  observer.add(source(x.data(), shape_of(s.inputs.at("x").shape)));
  const bool symmetric = s.param("scheme").find("symmetric") != std::string::npos;
  const static_parameters p = symmetric ? observer.symmetric<S>() : observer.affine<S>();
  CHECK(bits_of(p.scale) == s.outputs.at("scale").words()[0]);
  CHECK(p.zero_point == wide<std::int64_t>(s.outputs.at("zero_point"))[0]);
  t.elements += x.size();
}

}  // namespace

TEST_CASE("torch: every answer of torch is ours, or a listed exception") {
  const std::string reason = oracle::why_not("torch");
  if (!reason.empty()) {
    MESSAGE("skipped: ", reason);
    return;
  }
  tally t;
  const auto samples = oracle::read_samples("torch");
  for (const sample& s : samples) {
    INFO("case ", s.id);
    if (elsewhere.count(s.op) != 0) {
      ++t.elsewhere;
      continue;
    }
    ++t.cases;
    const std::string type = s.param("dtype");
    const bool is_signed = type == "s8" || type == "torch.qint8";
    const bool is_unsigned = type == "u8" || type == "torch.quint8";
    const bool is_range =
        s.param("scheme") == "torch.per_tensor_affine" || s.param("scheme") == "torch.per_tensor_symmetric";
    if (s.op == "quantize" && is_signed)
      quantize<torch::qint8>(s, t);
    else if (s.op == "quantize" && is_unsigned)
      quantize<torch::quint8>(s, t);
    else if (s.op == "quantize" && (type == "s32" || type == "torch.qint32"))
      quantize<torch::qint32>(s, t);
    else if (s.op == "fake_quantize")
      fake_quantize(s, t);
    else if (s.op == "qparams" && is_range && is_signed)
      observe<torch::qint8>(s, t);
    else if (s.op == "qparams" && is_range && is_unsigned)
      observe<torch::quint8>(s, t);
    else
      FAIL_CHECK("no rule for the operation " << s.op << " of type " << type);
  }
  CHECK(t.cases > 0);
  CHECK(t.cases + t.elsewhere == samples.size());
  MESSAGE(t.cases, " cases, ", t.elements, " elements compared");
  for (const auto& [why, count] : t.excepted) MESSAGE(count, " exceptions: ", why);
  for (const auto& left_out : elsewhere) {
    const auto count =
        std::count_if(samples.begin(), samples.end(), [&](const sample& s) { return s.op == left_out.first; });
    MESSAGE(count, " cases of ", left_out.first, " left out: ", left_out.second);
  }
}
