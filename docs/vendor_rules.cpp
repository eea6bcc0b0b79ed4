// Prints docs/vendor_rules.md: every vendor's rule as a scheme, what differs from our default, and a value that shows
// it.
// SPDX-License-Identifier: BSD-3-Clause
//
// The value is searched, not written down: the first input of a list (plain numbers, ties, extremes, zeros, subnormals,
// infinities, NaN, then many of any size) that the two schemes encode differently. To write the document anew:
//   python3 tests/tools/same_text.py build/tests/vendor_rules docs/vendor_rules.md --write
#include <array>
#include <cstdio>
#include <qtensor/compat/cann.hpp>
#include <qtensor/compat/ggml.hpp>
#include <qtensor/compat/microxcaling.hpp>
#include <qtensor/compat/onednn_schemes.hpp>
#include <qtensor/compat/onnx.hpp>
#include <qtensor/compat/stablehlo.hpp>
#include <qtensor/compat/torch.hpp>
#include <qtensor/compat/torchao.hpp>
#include <qtensor/compat/transformer_engine.hpp>
#include <qtensor/compat/zendnn.hpp>
#include <string>
#include <vector>

namespace {

namespace qt = qtensor;
namespace compat = qtensor::compat;

// ---- What differs
// ----------------------------------------------------------------------------------------------------

template <class>
struct policies;
template <qt::format Code, qt::granularity G, qt::policy... P>
struct policies<qt::basic_scheme<Code, G, P...>> {
  /// Names of the policies that the other scheme does not have.
  template <class Ours>
  static std::string without() {
    std::string list;
    const auto add = [&]<class Policy>(std::type_identity<Policy>) {
      if (policies<Ours>::template has<Policy>()) return;
      list += (list.empty() ? "" : ", ") + ('`' + std::string(std::string_view(Policy::name)) + '`');
    };
    (add(std::type_identity<P>{}), ...);
    return list.empty() ? "nothing" : list;
  }
  template <class Policy>
  static constexpr bool has() {
    return (std::is_same_v<P, Policy> || ...);
  }
};

// ---- A value that shows it
// -------------------------------------------------------------------------------------------

constexpr std::size_t count = 2;  // numbers of a block
using block = std::array<float, count>;

std::vector<block> inputs() {
  constexpr float inf = qt::infinity, nan = qt::quiet_nan;
  std::vector<block> list = {{1.f, .3f},       {1.f, 0.f},     {500.f, 1.f},      {.5f, 1.5f}, {2.5f, -.5f},
                             {-2.5f, 3.5f},    {1.94f, -1.7f}, {7.75f, 3.f},      {-1.f, 4.f}, {-1000.f, 3.f},
                             {16.5f, 63.75f},  {0.f, 0.f},     {-0.f, 0.f},       {1.f, -0.f}, {6.9f, -5.f},
                             {1e-30f, 3e-31f}, {1e-40f, 0.f},  {1e-40f, -1e-41f}, {inf, 1.f},  {-inf, 1.f},
                             {nan, 1.f},       {1e38f, 3e38f}, {1e-5f, 3000.f}};
  std::uint32_t state = 1;
  const auto next = [&state] { return state = state * 1664525u + 1013904223u; };
  for (int i = 0; i < 200000; ++i) {
    block b;
    for (float& v : b) v = static_cast<float>(static_cast<std::int32_t>(next())) * qt::exp2i(-28 - (i % 4));
    list.push_back(b);
  }
  return list;
}

std::string text(float v) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.9g", static_cast<double>(v));
  return buffer;
}
std::string hex(std::uint32_t code) {
  char buffer[16];
  std::snprintf(buffer, sizeof buffer, "%02X", code);
  return buffer;
}

/// A block under a scheme: what is stored, as text. Static schemes get the scale and zero point given.
template <class S>
std::string stored(const block& x, float scale, int zero_point) {
  qt::tensor<S> w(qt::extents(1, static_cast<qt::index_t>(count)));
  const auto out = w.span();
  const auto source = [&](const std::array<qt::index_t, 2>& i) { return x[static_cast<std::size_t>(i[1])]; };
  if constexpr (std::is_same_v<typename S::rule, qt::static_only>) {
    out.set_storage_scale_code({0, 0}, qt::encode<typename S::scale_format>(scale));
    if constexpr (S::has_zero_point) out.set_storage_zero_point({0, 0}, zero_point);
    qt::reference::quantize_static(source, out);
  } else {
    qt::reference::quantize(source, out);
  }
  std::string result;
  if constexpr (!std::is_same_v<typename S::rule, qt::static_only>) {
    const std::uint32_t code = w.view().scale_code({0, 0});
    result += "scale " + (S::scale_format::bits <= 16 ? hex(code) : text(qt::float_of(code))) + ", ";
    if constexpr (S::has_zero_point)
      result += "zero point " + std::to_string(w.view().storage_zero_point({0, 0})) + ", ";
  }
  result += "codes";
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t code = w.view().code({0, static_cast<qt::index_t>(i)});
    if constexpr (S::code_format::is_integer)
      result += " " + std::to_string(static_cast<long long>(S::code_format::decode(code)));
    else
      result += " " + hex(code);
  }
  return result;
}

template <class Vendor, class Ours>
std::string example() {
  static const std::vector<block> all = inputs();
  constexpr bool given = std::is_same_v<typename Vendor::rule, qt::static_only>;
  for (const block& x : all) {
    for (const float scale : {1.f, .1f, 2.2f, .37f}) {
      const float kept = qt::decode<typename Vendor::scale_format>(qt::encode<typename Vendor::scale_format>(scale));
      for (const int zero_point : {0, 1, 5}) {
        const std::string theirs = stored<Vendor>(x, scale, zero_point), ours = stored<Ours>(x, scale, zero_point);
        if (theirs != ours) {
          std::string input = "{" + text(x[0]) + ", " + text(x[1]) + "}";
          if (given) input += ", scale " + text(kept);
          if (given && Vendor::has_zero_point) input += ", zero point " + std::to_string(zero_point);
          return input + " | " + theirs + " | " + ours;
        }
        if (!given || !Vendor::has_zero_point) break;
      }
      if (!given) break;
    }
  }
  return "any | the same | the same";
}

// ---- The table
// -------------------------------------------------------------------------------------------------------

void heading(const char* vendor, const char* header, const char* section) {
  std::printf("\n## %s\n\n`qtensor/compat/%s`, NUMERICS %s.\n\n", vendor, header, section);
  std::printf("| rule | scheme | our own | differs in | input | theirs | ours |\n|---|---|---|---|---|---|---|\n");
}

/// One rule: its scheme, as it is spelled, beside ours that stores the same.
template <class Vendor, class Ours>
void row(const char* rule, const char* spelling) {
  static_assert(std::is_same_v<typename Vendor::code_format, typename Ours::code_format> || Vendor::is_interleaved);
  using theirs = typename qt::detail::basic_scheme_of<Vendor>;
  using ours = typename qt::detail::basic_scheme_of<Ours>;
  std::string scheme = spelling;
  for (std::size_t at; (at = scheme.find("qt::")) != std::string::npos;) scheme.erase(at, 4);
  std::printf("| %s | `%s` | `%s` | %s | %s |\n", rule, scheme.c_str(),
              std::string(std::string_view(qt::name<Ours>)).c_str(), policies<theirs>::template without<ours>().c_str(),
              example<Vendor, Ours>().c_str());
}

template <class>
struct in_parentheses;
template <class T>
struct in_parentheses<void(T)> {
  using type = T;
};
// ours in parentheses, so that it may hold commas
#define ROW(rule, ours, ...) row<__VA_ARGS__, typename in_parentheses<void ours>::type>(rule, #__VA_ARGS__)

}  // namespace

int main() {
  using qt::bf16, qt::e2m1, qt::e2m3, qt::e4m3, qt::e5m2, qt::f16, qt::f32, qt::hif8, qt::int8, qt::uint8;
  using qt::per_tensor, qt::scheme, qt::static_only, qt::with;
  using given_s8 = with<qt::int8_per_tensor, qt::zero_point<qt::int32>, static_only>;
  using given_u8 = with<qt::uint8_per_tensor, qt::zero_point<qt::int32>, static_only>;
  using given_e4m3 = scheme<e4m3, per_tensor, static_only>;
  using given_e2m1 = scheme<e2m1, per_tensor, static_only>;
  std::printf(
      "<!-- Written by docs/vendor_rules.cpp; a test compares the two. -->\n# Vendors' rules as schemes\n\n"
      "Every rule below is a type (in `qtensor::compat`). *Our own* is the scheme of ours that stores the same "
      "things;\n"
      "*differs in* lists the choices that the vendor's has and ours has not, or `nothing`. The input is the first of "
      "a\n"
      "list of blocks of two that both store differently, or `any` where none of 200,000 does; codes of floats, and "
      "scales\n"
      "of up to 16 bits, are hexadecimal. Where a program answers differently from its own document, the header says "
      "so.\n");
  heading("oneDNN", "onednn.hpp", "2.2, 2.3, 5");
  {
    namespace onednn = compat::onednn;
    ROW("s8, scale and zero point", (given_s8), onednn::quantized<int8, per_tensor, f32, qt::zero_point<qt::int32>>);
    ROW("s8, default kernels", (given_s8),
        onednn::by_reciprocal<onednn::quantized<int8, per_tensor, f32, qt::zero_point<qt::int32>>>);
    ROW("f8_e4m3", (given_e4m3), onednn::quantized<e4m3, per_tensor>);
    ROW("f4_e2m1", (given_e2m1), onednn::quantized<e2m1, per_tensor>);
    ROW("dynamic_mx, f8_e4m3, release 3.12.1", (qt::mxfp8_e4m3), onednn::dynamic_mx<e4m3>);
    ROW("dynamic_mx, f8_e4m3, 2026-08 source", (qt::mxfp8_e4m3), onednn::dynamic_mx_2026_08<e4m3>);
    ROW("dynamic_mx, f4_e2m1, release 3.12.1", (qt::mxfp4), onednn::dynamic_mx<e2m1>);
    ROW("dynamic_fp, release 3.12.1", (qt::nvfp4), onednn::dynamic_fp<>);
    ROW("dynamic_fp, 2026-08 source", (qt::nvfp4), onednn::dynamic_fp_2026_08<>);
  }
  heading("ZenDNN", "zendnn.hpp", "6");
  {
    namespace zendnn = compat::zendnn;
    ROW("reorder to s8", (given_s8), zendnn::s8);
    ROW("reorder to u8", (given_u8), zendnn::u8);
  }
  heading("CANN", "cann.hpp", "2.5, 3, 4");
  {
    namespace cann = compat::cann;
    ROW("DynamicMxQuant, FP8, scaleAlg 0", (qt::mxfp8_e4m3), cann::mx<e4m3>);
    ROW("DynamicMxQuant, FP8, scaleAlg 1", (qt::mxfp8_e4m3), cann::mx<e4m3, qt::nearest_even, qt::mx_rceil>);
    ROW("DynamicMxQuant, FP4, scaleAlg 0, rint", (qt::mxfp4), cann::mx<e2m1>);
    ROW("DynamicMxQuant, FP4, round", (qt::mxfp4), cann::mx<e2m1, qt::nearest_away>);
    ROW("DynamicMxQuant, FP4, floor", (qt::mxfp4), cann::mx<e2m1, qt::toward_negative>);
    ROW("DynamicMxQuant, FP4, scaleAlg 2, max 7", (qt::mxfp4),
        cann::mx<e2m1, qt::nearest_even, qt::mx_dynamic_range<7>>);
    ROW("DynamicMxQuant as the kernels flush", (qt::mxfp8_e4m3), cann::mx_flushed<e4m3>);
    ROW("DynamicBlockQuant, e5m2 (the default)", (scheme<e5m2, qt::block<1, 128>>), cann::block_quant<e5m2>);
    ROW("DynamicBlockQuant, HiF8, as the formulas stand", (qt::hif8_block<1, 128>), cann::block_quant<hif8>);
    ROW("DynamicBlockQuant, HiF8, golden program", (qt::hif8_block<1, 128>), cann::block_quant_golden<hif8>);
    ROW("DynamicBlockQuant, int8, A2 and A3", (scheme<int8, qt::block<1, 128>>), cann::block_quant_a2_a3<>);
  }
  heading("ONNX", "onnx.hpp", "8.1, 8.2");
  {
    namespace onnx = compat::onnx;
    ROW("QuantizeLinear, int8", (with<given_s8, qt::zero_point<int8>>), with<onnx::linear<int8>, per_tensor>);
    ROW("QuantizeLinear, f16 scale, reference", (with<given_s8, qt::zero_point<int8>, qt::scale_as<f16>>),
        with<onnx::as_reference<onnx::linear<int8, f16>>, per_tensor>);
    ROW("QuantizeLinear, float4e2m1", (given_e2m1), with<onnx::linear<e2m1>, per_tensor>);
    ROW("DynamicQuantizeLinear, ONNX Runtime", (qt::uint8_per_tensor), onnx::dynamic_linear);
    ROW("DynamicQuantizeLinear, reference", (qt::uint8_per_tensor), onnx::dynamic_linear_reference);
  }
  heading("torch", "torch.hpp", "5.1, 8");
  {
    namespace torch = compat::torch;
    ROW("quantize_per_tensor, qint8", (given_s8), torch::qint8);
    ROW("quantize_per_tensor, quint8", (given_u8), torch::quint8);
    ROW("qint8, reduce_range", (given_s8), torch::qint8_reduced);
  }
  heading("torchao", "torchao.hpp", "2.4, 2.6");
  {
    namespace torchao = compat::torchao;
    ROW("to_mx, FLOOR", (qt::mxfp8_e4m3), torchao::mx<e4m3>);
    ROW("to_mx, EVEN", (qt::mxfp8_e4m3), torchao::mx<e4m3, torchao::even>);
    ROW("to_mx, CEIL", (qt::mxfp8_e4m3), torchao::mx<e4m3, torchao::ceil>);
    ROW("to_mx, RCEIL", (qt::mxfp8_e4m3), torchao::mx<e4m3, torchao::rceil>);
    ROW("nvfp4_quantize, one level", (qt::nvfp4), torchao::nvfp4);
    ROW("nvfp4_quantize, two levels", (with<qt::nvfp4, qt::tensor_scale<f32>>), torchao::nvfp4_two_level);
  }
  heading("microxcaling", "microxcaling.hpp", "2.1, 10");
  {
    namespace microxcaling = compat::microxcaling;
    ROW("quantize_mx_op, e4m3, nearest", (qt::mxfp8_e4m3), microxcaling::mx<e4m3>);
    ROW("quantize_mx_op, e2m1, nearest", (qt::mxfp4), microxcaling::mx<e2m1>);
    ROW("quantize_mx_op, e2m1, floor", (qt::mxfp4), microxcaling::mx<e2m1, microxcaling::floor>);
    ROW("flush_fp32_subnorms", (qt::mxfp8_e4m3), microxcaling::flushed_mx<e4m3>);
  }
  heading("TransformerEngine", "transformer_engine.hpp", "2.4");
  {
    namespace transformer_engine = compat::transformer_engine;
    ROW("NVFP4, 1 x 16", (with<qt::nvfp4, qt::tensor_scale<f32>>), transformer_engine::nvfp4);
    ROW("NVFP4, pow_2_scales", (with<qt::mxfp4, qt::group<16>>), transformer_engine::nvfp4_powers);
  }
  heading("ggml", "ggml.hpp", "8.3");
  {
    namespace ggml = compat::ggml;
    using s8 = scheme<int8, qt::group<32>, qt::scale_as<f16>>;
    ROW("Q8_0", (s8), ggml::q8_0);
    ROW("Q8_1", (s8), ggml::q8_1);
    ROW("Q4_0", (scheme<qt::int4, qt::group<32>, qt::scale_as<f16>>), ggml::q4_0);
    ROW("MXFP4", (qt::mxfp4), ggml::mxfp4);
    ROW("NVFP4", (qt::nvfp4), ggml::nvfp4);
  }
  heading("StableHLO", "stablehlo.hpp", "7");
  {
    namespace stablehlo = compat::stablehlo;
    ROW("`!quant.uniform<i8:f32, ...>`", (with<given_s8, qt::zero_point<int8>>), stablehlo::uniform<int8>);
    ROW("`!quant.uniform<i8<-127:127>:f32, ...>`", (with<given_s8, qt::zero_point<int8>>),
        stablehlo::uniform_range<int8, -127, 127>);
  }
}
