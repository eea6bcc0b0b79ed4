// ONNX Runtime: integer products (MatMulInteger), floats quantized inside (DynamicQuantizeMatMul), 4-bit weights
// (MatMulNBits), a session for every copy of the weights.
// SPDX-License-Identifier: BSD-3-Clause
#include <onnxruntime_cxx_api.h>

#include <exception>
#include <memory>

#include "onnx_message.hpp"
#include "products.hpp"

namespace bench {

namespace {

using namespace onnx;

constexpr int f32_type = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, u8_type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8,
              s8_type = ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8, s32_type = ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32;

std::vector<char> random_bytes(index_t count) {
  std::mt19937 engine(3);
  std::vector<char> bytes(static_cast<std::size_t>(count));
  for (char& b : bytes) b = static_cast<char>(engine());
  return bytes;
}
std::vector<float> small_scales(index_t count) { return std::vector<float>(static_cast<std::size_t>(count), 0.01f); }

struct session {
  Ort::Session run;
  Ort::IoBinding binding;
  session(Ort::Env& environment, const std::string& model, const Ort::SessionOptions& options)
      : run(environment, model.data(), model.size(), options), binding(run) {}
};

/// x (M x K of x_type) times the weights of `graph`, whose node gives y (M x N of y_type). Nothing is added where the
/// library has no such operator.
void add_node(const product& p, const std::string& who, message node, message graph, int x_type, int y_type) {
  try {
    static Ort::Env environment(ORT_LOGGING_LEVEL_FATAL, "bench");
    Ort::SessionOptions options;
    options.SetIntraOpNumThreads(1);
    options.SetInterOpNumThreads(1);
    const dims x_sizes{p.m, p.k}, y_sizes{p.m, p.n};
    graph.part(11, value_info("x", x_type, x_sizes)).part(12, value_info("y", y_type, y_sizes));
    const std::string model = model_of(graph.part(1, node.bytes(2, "y")));

    auto x = std::make_shared<array<float>>(random_floats(p.m * p.k));
    auto y = std::make_shared<array<float>>(static_cast<std::size_t>(p.m * p.n));  // s32 has as many bytes
    const auto memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
    const auto tensor = [&](array<float>& data, index_t bytes, const dims& sizes, int type) {
      return Ort::Value::CreateTensor(memory, data.data(), static_cast<std::size_t>(bytes), sizes.data(), sizes.size(),
                                      static_cast<ONNXTensorElementDataType>(type));
    };
    std::vector<std::shared_ptr<session>> sessions;
    for (index_t c = 0; c < p.copies; ++c) {
      sessions.push_back(std::make_shared<session>(environment, model, options));
      auto& binding = sessions.back()->binding;
      binding.BindInput("x", tensor(*x, p.m * p.k * (x_type == f32_type ? 4 : 1), x_sizes, x_type));
      binding.BindOutput("y", tensor(*y, p.m * p.n * 4, y_sizes, y_type));
    }
    const auto run = [sessions, x, y](index_t copy) {
      session& s = *sessions[static_cast<std::size_t>(copy)];
      s.run.Run(Ort::RunOptions{}, s.binding);
    };
    run(0);
    add_candidate(p, who, run);
  } catch (const std::exception&) {
    // It has no such product.
  }
}

void add_integer(const product& p) {
  const auto weights = random_bytes(p.k * p.n);
  const std::uint8_t x_zero = 128;
  const std::int8_t w_zero = 0;
  const auto with_weights = [&] {
    return message().part(5, initializer("w", s8_type, {p.k, p.n}, weights.data(), p.k * p.n));
  };
  add_node(p, "ONNX Runtime u8 x s8 -> s32",
           message().bytes(1, "x").bytes(1, "w").bytes(1, "xz").bytes(1, "wz").bytes(4, "MatMulInteger"),
           with_weights()
               .part(5, initializer("xz", u8_type, {}, &x_zero, 1))
               .part(5, initializer("wz", s8_type, {}, &w_zero, 1)),
           u8_type, s32_type);
  const auto scales = small_scales(p.n);
  add_node(
      p, "ONNX Runtime f32 quantized inside",
      message().bytes(1, "x").bytes(1, "w").bytes(1, "ws").bytes(4, "DynamicQuantizeMatMul").bytes(7, "com.microsoft"),
      with_weights().part(5, initializer("ws", f32_type, {p.n}, scales.data(), 4 * p.n)), f32_type, f32_type);
}

void add_four_bits(const std::string& name, index_t group) {
  for (const product& shape : weight_shapes(name)) {
    product p = shape;
    const index_t groups = p.k / group;
    const auto weights = random_bytes(p.n * p.k / 2);
    const auto scales = small_scales(p.n * groups);
    p.weight_bytes = static_cast<double>(p.n * p.k / 2 + 4 * p.n * groups);
    for (const index_t level : {4, 1}) {  // of accuracy
      if (level == 1 && p.m > 1) p.by = bound::float_fma;
      add_node(p, level == 4 ? "ONNX Runtime int8 inside" : "ONNX Runtime f32",
               message()
                   .bytes(1, "x")
                   .bytes(1, "w")
                   .bytes(1, "ws")
                   .bytes(4, "MatMulNBits")
                   .bytes(7, "com.microsoft")
                   .part(5, attribute("K", p.k))
                   .part(5, attribute("N", p.n))
                   .part(5, attribute("bits", 4))
                   .part(5, attribute("block_size", group))
                   .part(5, attribute("accuracy_level", level)),
               message()
                   .part(5, initializer("w", u8_type, {p.n, groups, group / 2}, weights.data(), p.n * p.k / 2))
                   .part(5, initializer("ws", f32_type, {p.n * groups}, scales.data(), 4 * p.n * groups)),
               f32_type, f32_type);
    }
  }
}

}  // namespace

std::string onnxruntime_version() { return "ONNX Runtime " + Ort::GetVersionString(); }

void add_onnxruntime_products() {
  for (const product& p : integer_shapes()) add_integer(p);
  add_four_bits("int4 g32 x f32", 32);
  add_four_bits("int4 g128 x f32", 128);
}

}  // namespace bench
