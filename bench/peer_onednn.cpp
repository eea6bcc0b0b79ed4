// oneDNN: reorders with scales and zero points. Notes are the implementations it chose: `ref`, `simple` are plain C.
// SPDX-License-Identifier: BSD-3-Clause
#include <dnnl.hpp>
#include <exception>
#include <optional>
#include <unordered_map>
#if defined(_OPENMP)
#include <omp.h>
#endif

#include "harness.hpp"

namespace bench {

namespace {

using type = dnnl::memory::data_type;
using tag = dnnl::memory::format_tag;

std::optional<type> type_of(std::string_view name) {
  if (name == "f32") return type::f32;
  if (name == "bf16") return type::bf16;
  if (name == "f16") return type::f16;
  if (name == "int8") return type::s8;
  if (name == "uint8") return type::u8;
#if DNNL_VERSION_MAJOR > 3 || (DNNL_VERSION_MAJOR == 3 && DNNL_VERSION_MINOR >= 8)
  if (name == "int4") return type::s4;
  if (name == "e4m3") return type::f8_e4m3;
  if (name == "e5m2") return type::f8_e5m2;
  if (name == "e2m1") return type::f4_e2m1;
#endif
  return std::nullopt;
}

void set_threads([[maybe_unused]] int threads) {
#if defined(_OPENMP)
  omp_set_num_threads(threads);
#endif
}

}  // namespace

std::string onednn_version() {
  const auto* v = dnnl_version();
  return "oneDNN " + std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
}

void add_onednn(const task& t, candidates& all) {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  static dnnl::stream stream(engine);
  const operation& op = *t.op;
  const auto number = type_of(op.number), code = type_of(op.code);
  const bool quantizes = op.what == verb::quantize;
  if (!number || !code || op.is_interleaved || op.scale == "e4m3" || (!quantizes && op.what != verb::dequantize))
    return;
  const bool is_mx = op.scale == "e8m0";
  if (quantizes && op.how == scales::dynamic && !is_mx) return;
  try {
    const dnnl::memory::dims sizes{t.rows, t.cols};
    const dnnl::memory::desc numbers(sizes, *number, tag::ab), codes(sizes, *code, tag::ab);
    dnnl::primitive_attr attributes;
    std::unordered_map<int, dnnl::memory> arguments;
    const int side = quantizes ? DNNL_ARG_DST : DNNL_ARG_SRC;
    const int mask = op.grain == grain::tensor ? 0 : op.grain == grain::row ? 1 : 2;
    const index_t count = op.grain == grain::tensor ? 1 : op.grain == grain::row ? t.rows : t.cols;
#if DNNL_VERSION_MAJOR >= 3
    if (is_mx) {
#if DNNL_VERSION_MINOR >= 10
      attributes.set_scales(side, 3, {1, op.group}, type::e8m0, false,
                            quantizes ? dnnl::quantization_mode::dynamic_mx : dnnl::quantization_mode::static_sazp);
      arguments[DNNL_ARG_ATTR_SCALES | side] =
          dnnl::memory({{t.rows, t.cols / op.group}, type::e8m0, tag::ab}, engine, t.scales);
#else
      return;
#endif
    } else if (op.grain == grain::group || op.grain == grain::block) {
      const index_t high = op.grain == grain::block ? op.group : 1;
      if (t.rows % high != 0) return;
      attributes.set_scales(side, 3, {high, op.group}, type::f32);
      arguments[DNNL_ARG_ATTR_SCALES | side] =
          dnnl::memory({{t.rows / high, t.cols / op.group}, type::f32, tag::ab}, engine, t.scales);
    } else if (op.how != scales::one) {
      attributes.set_scales_mask(side, mask);
      arguments[DNNL_ARG_ATTR_SCALES | side] = dnnl::memory({{count}, type::f32, tag::a}, engine, t.scales);
    }
    if (op.has_zero_point) {
      static std::int32_t zero;
      zero = t.zero_points[0];
      if (op.grain != grain::tensor) return;
      attributes.set_zero_points_mask(side, 0);
      arguments[DNNL_ARG_ATTR_ZERO_POINTS | side] = dnnl::memory({{1}, type::s32, tag::a}, engine, &zero);
    }
#else
    if (is_mx || op.grain == grain::group || op.grain == grain::block) return;
    const float* factors = quantizes ? t.inverses : t.f32_scales();
    if (op.how != scales::one) attributes.set_output_scales(mask, std::vector<float>(factors, factors + count));
    if (op.has_zero_point) {
      if (op.grain != grain::tensor) return;
      attributes.set_zero_points(side, 0, {t.zero_points[0]});
    }
#endif
    set_threads(t.threads);
    const dnnl::memory::desc& from = quantizes ? numbers : codes;
    const dnnl::memory::desc& to = quantizes ? codes : numbers;
    const dnnl::reorder::primitive_desc chosen(engine, from, engine, to, attributes);
    const auto primitive = std::make_shared<dnnl::reorder>(chosen);
    void* source = quantizes ? (op.number == "f32" ? const_cast<float*>(t.floats)
                                                   : static_cast<void*>(const_cast<std::uint16_t*>(t.halves)))
                             : t.codes;
    arguments[DNNL_ARG_FROM] = dnnl::memory(from, engine, source);
    arguments[DNNL_ARG_TO] = dnnl::memory(to, engine, quantizes ? t.codes : t.numbers);
    all.push_back({kind::library, "oneDNN", chosen.impl_info_str(), [primitive, arguments, threads = t.threads] {
                     set_threads(threads);
                     primitive->execute(stream, arguments);
                     stream.wait();
                   }});
  } catch (const std::exception&) {
    // It has no such conversion on this machine.
  }
}

}  // namespace bench
