// ggml: the row functions of its CPU backend, which is a plug-in chosen by CPU, and of its base library.
// SPDX-License-Identifier: BSD-3-Clause
#include <dlfcn.h>
#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <ggml.h>
#include <link.h>

#include <cstring>
#include <optional>

#include "harness.hpp"

namespace bench {

namespace {

/// The CPU backend: linked in, or a plug-in that ggml has loaded.
void* backend() {
  static void* handle = [] {
    ggml_backend_load_all();
    std::string path;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* found) {
          if (std::strstr(info->dlpi_name, "ggml-cpu") != nullptr) *static_cast<std::string*>(found) = info->dlpi_name;
          return 0;
        },
        &path);
    void* opened = path.empty() ? nullptr : dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
    if (opened != nullptr)
      if (auto* start = reinterpret_cast<void (*)()>(dlsym(opened, "ggml_cpu_init"))) start();
    return opened;
  }();
  return handle;
}
template <class Function>
Function* function(const char* name) {
  return backend() != nullptr ? reinterpret_cast<Function*>(dlsym(backend(), name)) : nullptr;
}

/// The type of an operation; planar MXFP4 and NVFP4 compare with ggml's blocks of them.
std::optional<ggml_type> type_of(const operation& op) {
  if (op.number != "f32") return std::nullopt;
  if (op.is_interleaved) {
    if (op.code == "int8") return GGML_TYPE_Q8_0;
    if (op.code == "q4") return GGML_TYPE_Q4_0;
    return op.group == 32 ? GGML_TYPE_MXFP4 : GGML_TYPE_NVFP4;
  }
  if (op.grain != grain::group) return std::nullopt;
  if (op.code == "int8" && op.group == 32 && op.how == scales::dynamic) return GGML_TYPE_Q8_0;
  if (op.code == "e2m1" && op.scale == "e8m0") return GGML_TYPE_MXFP4;
  if (op.code == "e2m1" && op.scale == "e4m3") return GGML_TYPE_NVFP4;
  return std::nullopt;
}

}  // namespace

std::string ggml_version() { return std::string("ggml ") + ::ggml_version(); }

void add_ggml(const task& t, candidates& all) {
  const operation& op = *t.op;
  const auto found = type_of(op);
  if (!found) return;
  const ggml_type type = *found;
  const index_t cols = t.cols, row_bytes = static_cast<index_t>(ggml_row_size(type, cols));
  if (op.what == verb::quantize) {
    const auto traits = function<const ggml_type_traits_cpu*(ggml_type)>("ggml_get_type_traits_cpu");
    if (traits == nullptr || traits(type)->from_float == nullptr) return;
    all.push_back({kind::library, "ggml", "from_float",
                   t.by_rows([convert = traits(type)->from_float, x = t.floats, y = t.codes, cols, row_bytes](
                                 index_t row, index_t rows) {
                     for (index_t r = row; r < row + rows; ++r) convert(x + r * cols, y + r * row_bytes, cols);
                   }),
                   op.is_interleaved});
  } else if (op.what == verb::dequantize) {
    // Its own blocks, in scratch memory: planar codes are no input of ggml.
    std::uint8_t* blocks = op.is_interleaved ? t.codes : t.scratch;
    if (!op.is_interleaved) {
      const auto* reference = ggml_get_type_traits(type);
      if (reference->from_float_ref == nullptr) return;
      const index_t some = t.rows < 256 ? t.rows : 256;
      for (index_t r = 0; r < some; ++r) reference->from_float_ref(t.floats + r * cols, blocks + r * row_bytes, cols);
      for (index_t r = some; r < t.rows; ++r)
        std::memcpy(blocks + r * row_bytes, blocks + r % some * row_bytes, static_cast<std::size_t>(row_bytes));
    }
    all.push_back({kind::library, "ggml", "to_float",
                   t.by_rows([convert = ggml_get_type_traits(type)->to_float, blocks,
                              y = static_cast<float*>(t.numbers), cols, row_bytes](index_t row, index_t rows) {
                     for (index_t r = row; r < row + rows; ++r) convert(blocks + r * row_bytes, y + r * cols, cols);
                   }),
                   op.is_interleaved});
  }
}

}  // namespace bench
