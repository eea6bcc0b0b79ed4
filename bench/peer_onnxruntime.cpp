// ONNX Runtime: models of one node (Quantize-, Dequantize-, DynamicQuantizeLinear, Cast), bound to our memory.
// SPDX-License-Identifier: BSD-3-Clause
#include <onnxruntime_cxx_api.h>

#include <exception>

#include "harness.hpp"
#include "onnx_message.hpp"

namespace bench {

namespace {

using namespace onnx;

/// ONNX numbers of element types, which are ONNX Runtime's too; 0 for what it does not know.
int type_of(std::string_view name) {
  if (name == "f32") return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
  if (name == "bf16") return ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16;
  if (name == "f16") return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16;
  if (name == "int8") return ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8;
  if (name == "uint8") return ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8;
  if (name == "int4") return ONNX_TENSOR_ELEMENT_DATA_TYPE_INT4;
  if (name == "e4m3") return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FN;
  if (name == "e5m2") return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2;
  return 0;
}

}  // namespace

std::string onnxruntime_version() { return "ONNX Runtime " + Ort::GetVersionString(); }

void add_onnxruntime(const task& t, candidates& all) {
  const operation& op = *t.op;
  const int number = type_of(op.number), code = type_of(op.code);
  const bool quantizes = op.what == verb::quantize;
  if (number == 0 || code == 0 || op.is_interleaved || (!quantizes && op.what != verb::dequantize)) return;
  if (op.scale != "f32") return;
  const bool is_dynamic = quantizes && op.how == scales::dynamic, is_cast = op.how == scales::one;
  if (is_dynamic && (op.grain != grain::tensor || op.code != "uint8" || op.number != "f32")) return;
  if ((op.has_zero_point && op.grain != grain::tensor) || op.grain == grain::block) return;
  try {
    const dims sizes{t.rows, t.cols};
    message node, graph;
    node.bytes(1, "x");
    const char* kind_of_node = is_cast      ? "Cast"
                               : is_dynamic ? "DynamicQuantizeLinear"
                               : quantizes  ? "QuantizeLinear"
                                            : "DequantizeLinear";
    if (!is_cast && !is_dynamic) {
      const dims blocks = op.grain == grain::tensor   ? dims{}
                          : op.grain == grain::row    ? dims{t.rows}
                          : op.grain == grain::column ? dims{t.cols}
                                                      : dims{t.rows, t.cols / op.group};
      index_t count = 1;
      for (std::int64_t n : blocks) count *= n;
      std::vector<std::uint8_t> zeros(static_cast<std::size_t>(count), op.has_zero_point ? t.zero_points[0] : 0);
      const index_t zero_bytes = op.code == "int4" ? (count + 1) / 2 : count;
      node.bytes(1, "scale").bytes(1, "zero");
      graph.part(5, initializer("scale", type_of("f32"), blocks, t.scales, count * 4));
      graph.part(5, initializer("zero", code, blocks, zeros.data(), zero_bytes));
      if (op.grain != grain::tensor) node.part(5, attribute("axis", op.grain == grain::row ? 0 : 1));
      if (op.grain == grain::group) node.part(5, attribute("block_size", op.group));
    }
    const int from = quantizes ? number : code, to = quantizes ? code : number;
    node.bytes(2, "y").bytes(4, kind_of_node);
    if (is_cast) node.part(5, attribute("to", to));
    graph.part(11, value_info("x", from, sizes)).part(12, value_info("y", to, sizes));
    if (is_dynamic) {
      node.bytes(2, "ys").bytes(2, "yz");
      graph.part(12, value_info("ys", type_of("f32"), {})).part(12, value_info("yz", code, {}));
    }
    const std::string model = model_of(graph.part(1, node));

    static Ort::Env environment(ORT_LOGGING_LEVEL_FATAL, "bench");
    Ort::SessionOptions options;
    options.SetIntraOpNumThreads(t.threads);
    options.SetInterOpNumThreads(1);
    const auto session = std::make_shared<Ort::Session>(environment, model.data(), model.size(), options);
    const auto binding = std::make_shared<Ort::IoBinding>(*session);
    const auto memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
    const auto tensor = [&](const void* data, double bytes, int type) {
      return Ort::Value::CreateTensor(memory, const_cast<void*>(data),
                                      static_cast<std::size_t>(bytes * static_cast<double>(t.size())), sizes.data(),
                                      sizes.size(), static_cast<ONNXTensorElementDataType>(type));
    };
    const void* numbers = op.number == "f32" ? static_cast<const void*>(t.floats) : t.halves;
    const double code_bytes = op.code == "int4" ? 0.5 : op.code == "bf16" || op.code == "f16" ? 2. : 1.;
    if (quantizes) {
      binding->BindInput("x", tensor(numbers, op.number_bytes, number));
      binding->BindOutput("y", tensor(t.codes, code_bytes, code));
    } else {
      binding->BindInput("x", tensor(t.codes, code_bytes, code));
      binding->BindOutput("y", tensor(t.numbers, op.number_bytes, number));
    }
    if (is_dynamic) {
      binding->BindOutput("ys", memory);
      binding->BindOutput("yz", memory);
    }
    const auto run = [session, binding] { session->Run(Ort::RunOptions{}, *binding); };
    run();
    all.push_back({kind::library, "ONNX Runtime", kind_of_node, run});
  } catch (const std::exception&) {
    // It has no such conversion.
  }
}

}  // namespace bench
