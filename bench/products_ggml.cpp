// ggml: mul_mat of its blocks times floats, in its plain buffers and in those that rearrange weights.
// SPDX-License-Identifier: BSD-3-Clause
#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml.h>

#include <cstring>
#include <memory>

#include "products.hpp"

namespace bench {

namespace {

/// The CPU backend with one thread, and its kinds of buffers.
struct cpu {
  ggml_backend_t backend = nullptr;
  ggml_backend_dev_t device = nullptr;
  ggml_backend_buffer_type_t plain = nullptr, rearranged = nullptr;

  static const cpu& instance() {
    static const cpu one;
    return one;
  }

 private:
  cpu() {
    ggml_backend_load_all();
    backend = ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, nullptr);
    if (backend == nullptr) return;
    device = ggml_backend_get_device(backend);
    const auto registry = ggml_backend_dev_backend_reg(device);
    const auto found = [&](const char* name) { return ggml_backend_reg_get_proc_address(registry, name); };
    if (auto* threads = reinterpret_cast<ggml_backend_set_n_threads_t>(found("ggml_backend_set_n_threads")))
      threads(backend, 1);
    plain = ggml_backend_dev_buffer_type(device);
    if (auto* extra = reinterpret_cast<ggml_backend_dev_get_extra_bufts_t>(found("ggml_backend_dev_get_extra_bufts")))
      for (auto* b = extra(device); b != nullptr && *b != nullptr; ++b)
        if (std::strstr(ggml_backend_buft_name(*b), "REPACK") != nullptr) rearranged = *b;
  }
};

struct free_context {
  void operator()(ggml_context* c) const { ggml_free(c); }
};
using context = std::unique_ptr<ggml_context, free_context>;
context make_context(index_t tensors) {
  return context(ggml_init(
      {static_cast<std::size_t>(tensors) * ggml_tensor_overhead() + ggml_graph_overhead() + 1024, nullptr, true}));
}

/// Whether weights of a type in buffers of a kind can be multiplied with floats.
bool is_supported(const cpu& c, ggml_backend_buffer_type_t kind, ggml_type type, const product& p) {
  const context space = make_context(4);
  ggml_tensor* w = ggml_new_tensor_2d(space.get(), type, p.k, p.n);
  ggml_tensor* y = ggml_mul_mat(space.get(), w, ggml_new_tensor_2d(space.get(), GGML_TYPE_F32, p.k, p.m));
  w->buffer = ggml_backend_buft_alloc_buffer(kind, 0);
  const bool yes = ggml_backend_dev_supports_op(c.device, y);
  ggml_backend_buffer_free(w->buffer);
  return yes;
}

void add_type(const std::string& name, ggml_type type) {
  const cpu& c = cpu::instance();
  for (product p : weight_shapes(name)) {
    const std::size_t bytes = ggml_row_size(type, p.k) * static_cast<std::size_t>(p.n);
    p.weight_bytes = static_cast<double>(bytes);
    const auto numbers = random_floats(p.n * p.k), activations = random_floats(p.m * p.k);
    std::vector<char> blocks(bytes);
    ggml_quantize_chunk(type, numbers.data(), blocks.data(), 0, p.n, p.k, nullptr);
    for (const auto& [kind, who] : {std::pair{c.plain, "ggml"}, {c.rearranged, "ggml rearranged"}}) {
      if (kind == nullptr || !is_supported(c, kind, type, p)) continue;
      // What a run needs stays until the program ends, as the candidates do.
      struct running {
        context weights;
        std::vector<ggml_cgraph*> graphs;
        std::vector<context> others;
      };
      auto r = std::make_shared<running>();
      r->weights = make_context(p.copies);
      std::vector<ggml_tensor*> all;
      for (index_t i = 0; i < p.copies; ++i) all.push_back(ggml_new_tensor_2d(r->weights.get(), type, p.k, p.n));
      ggml_backend_buffer_t memory = ggml_backend_alloc_ctx_tensors_from_buft(r->weights.get(), kind);
      if (memory == nullptr) continue;
      ggml_backend_buffer_set_usage(memory, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
      for (ggml_tensor* w : all) {
        ggml_backend_tensor_set(w, blocks.data(), 0, bytes);
        r->others.push_back(make_context(8));
        ggml_context* space = r->others.back().get();
        ggml_tensor* x = ggml_new_tensor_2d(space, GGML_TYPE_F32, p.k, p.m);
        ggml_cgraph* graph = ggml_new_graph_custom(space, 8, false);
        ggml_build_forward_expand(graph, ggml_mul_mat(space, w, x));
        ggml_backend_alloc_ctx_tensors(space, c.backend);
        ggml_backend_tensor_set(x, activations.data(), 0, activations.size() * sizeof(float));
        r->graphs.push_back(graph);
      }
      add_candidate(p, who, [r, backend = c.backend](index_t copy) {
        ggml_backend_graph_compute(backend, r->graphs[static_cast<std::size_t>(copy)]);
      });
    }
  }
}

}  // namespace

std::string ggml_version() { return std::string("ggml ") + ::ggml_version(); }

void add_ggml_products() {
  if (cpu::instance().backend == nullptr) return;
  add_type("int4 g32 x f32", GGML_TYPE_Q4_0);
  add_type("MXFP4 x f32", GGML_TYPE_MXFP4);
  add_type("NVFP4 x f32", GGML_TYPE_NVFP4);
}

}  // namespace bench
