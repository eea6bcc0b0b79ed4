// oneDNN: integer products and the convolution, weights in the layout it asks for.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <dnnl.hpp>
#include <memory>
#include <random>

#include "products.hpp"

namespace bench {

namespace {

using type = dnnl::memory::data_type;
using tag = dnnl::memory::format_tag;

struct running {
  dnnl::primitive primitive;
  std::unordered_map<int, dnnl::memory> arguments;
  std::vector<dnnl::memory> weights;
};

dnnl::engine& engine() {
  static dnnl::engine one(dnnl::engine::kind::cpu, 0);
  return one;
}
dnnl::stream& stream() {
  static dnnl::stream one(engine());
  return one;
}

/// Memory with random bytes: what operands cost depends on them, for many that are alike let a CPU run faster.
dnnl::memory random_memory(const dnnl::memory::desc& description) {
  static std::mt19937 random(1);
  dnnl::memory m(description, engine());
  std::generate_n(static_cast<std::uint8_t*>(m.get_data_handle()), description.get_size(),
                  [] { return static_cast<std::uint8_t>(random()); });
  return m;
}

run_product runner(std::shared_ptr<running> r) {
  return [r](index_t copy) {
    if (!r->weights.empty()) r->arguments[DNNL_ARG_WEIGHTS] = r->weights[static_cast<std::size_t>(copy)];
    r->primitive.execute(stream(), r->arguments);
    stream().wait();
  };
}

/// To f32 with a scale for all rows and one for each column, or to s32 without any.
void add_matmul(const product& p, type source, type result, const std::string& who) {
  const dnnl::memory::desc src({p.m, p.k}, source, tag::ab), any({p.k, p.n}, type::s8, tag::any),
      dst({p.m, p.n}, result, tag::ab);
  dnnl::primitive_attr attributes;
  auto r = std::make_shared<running>();
  const bool scales_sums = result == type::f32;
#if DNNL_VERSION_MAJOR >= 3
  if (scales_sums) {
    attributes.set_scales_mask(DNNL_ARG_SRC, 0);
    attributes.set_scales_mask(DNNL_ARG_WEIGHTS, 2);
  }
  const dnnl::matmul::primitive_desc description(engine(), src, any, dst, attributes);
  for (const auto& [argument, count] : {std::pair{DNNL_ARG_SRC, index_t{1}}, std::pair{DNNL_ARG_WEIGHTS, p.n}}) {
    if (!scales_sums) break;
    dnnl::memory scales({{count}, type::f32, tag::a}, engine());
    std::fill_n(static_cast<float*>(scales.get_data_handle()), count, 0.01f);
    r->arguments[DNNL_ARG_ATTR_SCALES | argument] = scales;
  }
#else
  if (scales_sums) attributes.set_output_scales(2, std::vector<float>(static_cast<std::size_t>(p.n), 0.01f));
  const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(src, any, dst), attributes, engine());
#endif
  r->primitive = dnnl::matmul(description);
  r->arguments[DNNL_ARG_SRC] = random_memory(description.src_desc());
  r->arguments[DNNL_ARG_DST] = dnnl::memory(description.dst_desc(), engine());
  for (index_t c = 0; c < p.copies; ++c) r->weights.push_back(random_memory(description.weights_desc()));
  add_candidate(p, who, runner(r));
}

void add_convolution(const convolution_problem& c, type source, const std::string& who) {
  const index_t result = c.result_side();
  const dnnl::memory::dims weights =
      c.groups > 1 ? dnnl::memory::dims{c.groups, c.outputs / c.groups, c.group_inputs(), c.taps, c.taps}
                   : dnnl::memory::dims{c.outputs, c.inputs, c.taps, c.taps};
  const dnnl::memory::dims strides(2, c.stride), padding(2, c.padding);
  const dnnl::memory::desc src({1, c.inputs, c.side, c.side}, source, tag::nhwc), any(weights, type::s8, tag::any),
      bias({c.outputs}, type::f32, tag::a), dst({1, c.outputs, result, result}, type::s8, tag::nhwc);
  auto r = std::make_shared<running>();
  dnnl::primitive_attr attributes;
#if DNNL_VERSION_MAJOR >= 3
  attributes.set_scales_mask(DNNL_ARG_WEIGHTS, c.groups > 1 ? 3 : 1);
  const dnnl::convolution_forward::primitive_desc description(engine(), dnnl::prop_kind::forward_inference,
                                                              dnnl::algorithm::convolution_direct, src, any, bias, dst,
                                                              strides, padding, padding, attributes);
#else
  attributes.set_output_scales(2, std::vector<float>(static_cast<std::size_t>(c.outputs), 0.01f));
  const dnnl::convolution_forward::primitive_desc description(
      dnnl::convolution_forward::desc(dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, src, any,
                                      bias, dst, strides, padding, padding),
      attributes, engine());
#endif
  r->primitive = dnnl::convolution_forward(description);
  const auto numbers = [&](float value) {
    dnnl::memory m({{c.outputs}, type::f32, tag::a}, engine());
    std::fill_n(static_cast<float*>(m.get_data_handle()), c.outputs, value);
    return m;
  };
  r->arguments = {{DNNL_ARG_SRC, random_memory(description.src_desc())},
                  {DNNL_ARG_WEIGHTS, random_memory(description.weights_desc())},
                  {DNNL_ARG_BIAS, numbers(0.5f)},
                  {DNNL_ARG_DST, dnnl::memory(description.dst_desc(), engine())}};
#if DNNL_VERSION_MAJOR >= 3
  r->arguments[DNNL_ARG_ATTR_SCALES | DNNL_ARG_WEIGHTS] = numbers(0.01f);
#endif
  add_candidate(c.as_product(), who, runner(r));
}

}  // namespace

std::string onednn_version() {
  const auto* v = dnnl_version();
  return "oneDNN " + std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
}

void add_onednn_products() {
  for (const product& p : integer_shapes()) {
    add_matmul(p, type::s8, type::f32, "oneDNN s8 x s8");
    add_matmul(p, type::u8, type::f32, "oneDNN u8 x s8");
    add_matmul(p, type::s8, type::s32, "oneDNN s8 x s8 -> s32");
    add_matmul(p, type::u8, type::s32, "oneDNN u8 x s8 -> s32");
  }
  for (const convolution_problem& c : convolution_problems()) {
    add_convolution(c, type::s8, "oneDNN bias and int8");
    add_convolution(c, type::u8, "oneDNN u8, bias and int8");
  }
}

}  // namespace bench
