// Products as ONNX's programs and torch computed them; oneDNN's are in onednn.cpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <qtensor/compat/onnx_products.hpp>
#include <qtensor/compat/torch_linear.hpp>

#include "oracle/json.hpp"

namespace {

namespace onnx = qtensor::compat::onnx;
using namespace qtensor;
using oracle::sample;
using oracle::sample_array;

std::vector<index_t> dims_of(const sample_array& a) { return {a.shape.begin(), a.shape.end()}; }

template <class T>
std::vector<T> array_of(const sample& s, const std::string& name) {
  std::vector<T> out;
  if (s.inputs.count(name) != 0)
    for (const std::uint32_t w : s.inputs.at(name).words()) out.push_back(static_cast<T>(w));
  return out;
}
template <class T>
std::span<const T> view(const std::vector<T>& v) {
  return v;
}

template <class T>
void compare(const sample& s, const std::string& output, const std::vector<T>& ours) {
  const auto theirs = s.outputs.at(output).words();
  REQUIRE(theirs.size() == ours.size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    INFO(output, " element ", i);
    CHECK(static_cast<std::int64_t>(ours[i]) == static_cast<std::int64_t>(static_cast<T>(theirs[i])));
  }
}

template <class A, class B>
void run_matmul_integer(const sample& s) {
  const auto a = array_of<A>(s, "A");
  const auto b = array_of<B>(s, "B");
  const auto az = array_of<A>(s, "a_zero_point");
  const auto bz = array_of<B>(s, "b_zero_point");
  const auto a_dims = dims_of(s.inputs.at("A")), b_dims = dims_of(s.inputs.at("B"));
  REQUIRE(onnx::matmul_dims(a_dims, b_dims) == dims_of(s.outputs.at("Y")));
  std::vector<std::int32_t> y(s.outputs.at("Y").size());
  onnx::matmul_integer(view(a), a_dims, view(b), b_dims, view(az), view(bz), y);
  compare(s, "Y", y);
}

template <class A, class B, class Y>
void run_qlinear_matmul(const sample& s) {
  const auto a = array_of<A>(s, "a"), az = array_of<A>(s, "a_zero_point");
  const auto b = array_of<B>(s, "b"), bz = array_of<B>(s, "b_zero_point");
  const auto as = s.inputs.at("a_scale").floats(), bs = s.inputs.at("b_scale").floats();
  std::vector<Y> y(s.outputs.at("y").size());
  onnx::qlinear_matmul<A, B, Y>(
      view(a), dims_of(s.inputs.at("a")), view(b), dims_of(s.inputs.at("b")),
      {as, view(az), bs, view(bz), s.inputs.at("y_scale").floats().at(0), array_of<Y>(s, "y_zero_point").at(0)}, y,
      s.program == "onnxruntime" ? onnx::matmul_rule::runtime : onnx::matmul_rule::reference);
  compare(s, "y", y);
}

template <class F>
void with_byte(const std::string& dtype, F f) {
  if (dtype == "u8")
    f(std::uint8_t{});
  else if (dtype == "s8")
    f(std::int8_t{});
  else
    FAIL_CHECK("no rule for ", dtype);
}

}  // namespace

TEST_CASE("onnx: MatMulInteger and QLinearMatMul as its reference and ONNX Runtime computed them") {
  const std::string reason = oracle::why_not("onnx");
  if (!reason.empty()) {
    MESSAGE("skipped: ", reason);
    return;
  }
  int cases = 0;
  for (const sample& s : oracle::read_samples("onnx")) {
    INFO("case ", s.id);
    const bool qlinear = s.op == "QLinearMatMul";
    if (!qlinear && s.op != "MatMulInteger") continue;
    ++cases;
    with_byte(s.inputs.at(qlinear ? "a" : "A").dtype, [&]<class A>(A) {
      with_byte(s.inputs.at(qlinear ? "b" : "B").dtype, [&]<class B>(B) {
        if (qlinear)
          with_byte(s.outputs.at("y").dtype, [&]<class Y>(Y) { run_qlinear_matmul<A, B, Y>(s); });
        else
          run_matmul_integer<A, B>(s);
      });
    });
  }
  CHECK(cases > 0);
  MESSAGE(cases, " cases");
}

TEST_CASE("torch: quantized::linear as torch computed it") {
  const std::string reason = oracle::why_not("torch");
  if (!reason.empty()) {
    MESSAGE("skipped: ", reason);
    return;
  }
  int cases = 0;
  for (const sample& s : oracle::read_samples("torch")) {
    if (s.op != "linear") continue;
    INFO("case ", s.id);
    ++cases;
    const auto x = array_of<std::uint8_t>(s, "x");
    const auto w = array_of<std::int8_t>(s, "w");
    const auto bias = s.inputs.count("bias") != 0 ? s.inputs.at("bias").floats() : std::vector<float>();
    const sample_array& scales = s.inputs.at("w_scale");
    std::vector<double> w_scales(scales.size());
    std::memcpy(w_scales.data(), scales.bytes.data(), scales.bytes.size());
    const auto x_dims = dims_of(s.inputs.at("x"));
    std::vector<std::uint8_t> y(s.outputs.at("y").size());
    qtensor::compat::torch::quantized_linear(view(x), view(w), x_dims[0], dims_of(s.inputs.at("w"))[0], x_dims[1], bias,
                                             {std::stod(s.param("x_scale")), std::stoi(s.param("x_zp")), w_scales,
                                              std::stod(s.param("y_scale")), std::stoi(s.param("y_zp"))},
                                             y);
    compare(s, "y", y);
  }
  CHECK(cases > 0);
  MESSAGE(cases, " cases");
}
