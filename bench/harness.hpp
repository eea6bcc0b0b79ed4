// What the benchmarks share: operations, the memory they run on, and the candidates that can run them.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <qtensor/core/support.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "team.hpp"

namespace bench {

using qtensor::index_t;

enum class verb { quantize, dequantize, dual_axis, pack, unpack };
enum class grain { tensor, row, column, group, block };
enum class scales { dynamic, given, one };  // computed from the data; stored before; stored before, all 1: a mere cast

/// A matrix of numbers and its quantized form in memory, both whole. All candidates of a measurement see the same.
struct task {
  const struct operation* op = nullptr;
  index_t rows = 0, cols = 0;
  int threads = 1;
  const float* floats = nullptr;          // the numbers as f32, always
  const std::uint16_t* halves = nullptr;  // the same rounded to op->number, where that has 16 bits
  void* numbers = nullptr;                // where dequantized numbers go: 4 bytes an element, at most
  std::uint8_t* codes = nullptr;          // 4 bytes an element
  void* scales = nullptr;                 // four bytes an element
  std::uint8_t* zero_points = nullptr;    // as uint8, one a scale
  float* tensor_scale = nullptr;
  float* inverses = nullptr;            // 1 / scale where scales are f32 and given
  std::uint8_t* scratch = nullptr;      // 5 bytes an element; `floats` can be read as far, too
  std::uint8_t* other_codes = nullptr;  // the second copy of dual-axis quantization
  void* other_scales = nullptr;
  index_t size() const { return rows * cols; }

  const float* f32_scales() const { return static_cast<const float*>(scales); }
  /// A call that splits the rows over the task's threads: run(first_row, row_count).
  template <class Run>
  std::function<void()> by_rows(Run run) const {
    if (threads == 1) return [run, rows = rows] { run(index_t{0}, rows); };
    return [run, rows = rows, threads = threads] {
      team::instance().run(threads, [&](int t) {
        const index_t first = rows * t / threads;
        run(first, rows * (t + 1) / threads - first);
      });
    };
  }
};

enum class kind { ours, library, eigen, loop, copy, roof, expression };
struct candidate {
  bench::kind kind;
  std::string name;
  std::string note;  // the implementation a library says it chose
  std::function<void()> run;
  bool same_bytes = true;  // writes what we write, to compare with
};
using candidates = std::vector<candidate>;

/// One line of the tables: what is converted, in words that other libraries' columns can read.
struct operation {
  std::string name;  // "f32 -> mxfp4"
  verb what;
  std::string_view number;  // f32, bf16, f16
  std::string_view code;    // the format's name: int8, e4m3, ...
  std::string_view scale;   // the scale format's name
  bench::grain grain = grain::tensor;
  index_t group = 0;  // elements that share a scale along a row, where grain is group; on both axes, where it is block
  bench::scales how = scales::dynamic;
  bool has_zero_point = false;
  bool is_interleaved = false;              // ggml's blocks
  bool is_expression = false;               // of more than the numbers: other columns have nothing like it
  double number_bytes = 4, code_bytes = 1;  // an element's; codes with their scales
  double other_bytes = 0;                   // an element's of a second source, in scratch memory
  int reads = 1;                            // passes over the source that the rule needs
  std::function<void(const task&, std::vector<candidate>&)> more;  // candidates of this operation alone
  std::function<void(const task&)> prepare;                        // scales that are given, codes that are read
  std::function<std::function<void()>(const task&)> ours;          // empty where this task is not to be had

  /// Of a matrix of that size.
  index_t scale_count(index_t rows, index_t cols) const {
    switch (grain) {
      case grain::tensor:
        return 1;
      case grain::row:
        return rows;
      case grain::column:
        return cols;
      case grain::group:
        return rows * (cols / group);
      default:
        return (rows + group - 1) / group * (cols / group);
    }
  }
  bool writes_numbers() const { return what == verb::dequantize || what == verb::unpack; }
  double source_bytes() const { return writes_numbers() ? code_bytes : number_bytes; }
  double target_bytes() const { return writes_numbers() ? number_bytes : code_bytes; }
  /// Bytes an element costs: what must cross, once a pass.
  double bytes() const { return (source_bytes() + other_bytes) * reads + target_bytes(); }
};

/// A column: adds its candidates for a task, none where it has nothing.
using column = void (*)(const task&, candidates&);
void add_roof(const task&, candidates&);
void add_eigen(const task&, candidates&);
namespace plain {
void add_loops(const task&, candidates&);  // as the compiler makes them
}
namespace relaxed {
void add_loops(const task&, candidates&);  // -fno-math-errno -fno-trapping-math -mprefer-vector-width=512
}
void add_onednn(const task&, candidates&);
void add_ggml(const task&, candidates&);
void add_onnxruntime(const task&, candidates&);
void add_torch(const task&, candidates&);
void add_gemmlowp(const task&, candidates&);
std::string onednn_version();
std::string ggml_version();
std::string onnxruntime_version();
std::string torch_version();

// The rows of the tables, a file each.
using operations = std::vector<operation>;
void add_integers(operations&);
void add_integers_dynamic(operations&);
void add_integers_back(operations&);
void add_minifloats(operations&);
void add_minifloats_halves(operations&);
void add_minifloats_back(operations&);
void add_microscaling(operations&);
void add_microscaling_halves(operations&);
void add_microscaling_back(operations&);
void add_groups(operations&);
void add_ggml_blocks(operations&);
void add_both_axes(operations&);
void add_expressions(operations&);
void add_packing(operations&);
void add_wide_codes(operations&);

}  // namespace bench
