// PyTorch from C++ (ATen): quantize_per_tensor and _per_channel, dequantize, and casts by copy_ into our memory.
// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#if __has_include(<torch/headeronly/version.h>)
#include <torch/headeronly/version.h>
#endif

#include <exception>

#include "harness.hpp"

namespace bench {

namespace {

at::ScalarType type_of(std::string_view name) {
  if (name == "f32") return at::kFloat;
  if (name == "bf16") return at::kBFloat16;
  if (name == "f16") return at::kHalf;
  if (name == "e4m3") return at::kFloat8_e4m3fn;
  if (name == "e5m2") return at::kFloat8_e5m2;
  if (name == "int8") return at::kQInt8;
  if (name == "uint8") return at::kQUInt8;
  return at::ScalarType::Undefined;
}

}  // namespace

std::string torch_version() {
#if defined(TORCH_VERSION)
  return std::string("PyTorch ") + TORCH_VERSION;
#else
  return "PyTorch";
#endif
}

void add_torch(const task& t, candidates& all) {
  static const c10::InferenceMode guard(true);
  const operation& op = *t.op;
  const bool quantizes = op.what == verb::quantize;
  const auto number = type_of(op.number), code = type_of(op.code);
  if (number == at::ScalarType::Undefined || code == at::ScalarType::Undefined || op.is_interleaved) return;
  if ((!quantizes && op.what != verb::dequantize) || op.scale != "f32" || op.group > 0) return;
  if (quantizes && op.how == scales::dynamic) return;
  if (at::get_num_threads() != t.threads) at::set_num_threads(t.threads);
  const auto add = [&](const char* note, auto run, bool into_our_memory = false) {
    const auto guarded = [run, threads = t.threads] {
      if (at::get_num_threads() != threads) at::set_num_threads(threads);
      run();
    };
    try {
      guarded();
      all.push_back({kind::library, "PyTorch", note, guarded, into_our_memory});
    } catch (const std::exception&) {
      // It has no such conversion.
    }
  };
  const std::vector<std::int64_t> sizes{t.rows, t.cols};
  const auto wrap = [&](const void* data, at::ScalarType type) {
    return at::from_blob(const_cast<void*>(data), sizes, at::TensorOptions().dtype(type));
  };
  const at::Tensor x = wrap(op.number == "f32" ? static_cast<const void*>(t.floats) : t.halves, number);
  if (op.how == scales::one) {
    const at::Tensor codes = wrap(t.codes, code), out = wrap(t.numbers, number);
    const at::Tensor from = quantizes ? x : codes, to = quantizes ? codes : out;
    return add(
        "copy_", [from, to] { to.copy_(from); }, true);
  }
  if (op.number != "f32" || code == at::kFloat8_e4m3fn || code == at::kFloat8_e5m2) return;
  const float scale = t.f32_scales()[0];
  const std::int64_t zero = op.has_zero_point ? t.zero_points[0] : 0;
  at::Tensor quantized;
  if (op.grain == grain::tensor) {
    if (quantizes) return add("quantize_per_tensor, allocates", [=] { at::quantize_per_tensor(x, scale, zero, code); });
    quantized = at::quantize_per_tensor(x, scale, zero, code);
  } else {
    const std::int64_t axis = op.grain == grain::row ? 0 : 1;
    const at::Tensor factors =
        at::from_blob(t.scales, {axis == 0 ? t.rows : t.cols}, at::TensorOptions().dtype(at::kFloat)).to(at::kDouble);
    const at::Tensor zeros = at::zeros_like(factors, at::TensorOptions().dtype(at::kLong));
    if (quantizes)
      return add("quantize_per_channel, allocates", [=] { at::quantize_per_channel(x, factors, zeros, axis, code); });
    quantized = at::quantize_per_channel(x, factors, zeros, axis, code);
  }
  add("dequantize, allocates", [quantized] { quantized.dequantize(); });
}

}  // namespace bench
