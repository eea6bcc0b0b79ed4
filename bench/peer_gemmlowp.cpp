// gemmlowp: its float transforms, which it has for Arm's vectors only.
// SPDX-License-Identifier: BSD-3-Clause
#include <gemmlowp/meta/single_thread_transform.h>
#include <gemmlowp/meta/transform_kernels.h>
#include <gemmlowp/public/gemmlowp.h>

#include "harness.hpp"

namespace bench {

void add_gemmlowp(const task& t, candidates& all) {
  namespace meta = gemmlowp::meta;
  const operation& op = *t.op;
  if (op.number != "f32" || op.code != "uint8" || op.grain != grain::tensor || op.how != scales::given) return;
  const float scale = t.f32_scales()[0], least = -scale * static_cast<float>(t.zero_points[0]);
  const index_t cols = t.cols;
  if (op.what == verb::quantize)
    all.push_back({kind::library, "gemmlowp", "meta::Quantize",
                   t.by_rows([=, x = t.floats, y = t.codes](index_t row, index_t rows) {
                     meta::Transform1DParams<float, std::uint8_t, meta::Quantize> p;
                     p.input = x + row * cols;
                     p.output = y + row * cols;
                     p.kernel.count = static_cast<int>(rows * cols);
                     p.kernel.range_min = least;
                     p.kernel.range_offset = 0.5f;  // it truncates
                     p.kernel.range_scale = 1.f / scale;
                     meta::Transform1D<decltype(p), 16>(p);
                   })});
  else
    all.push_back({kind::library, "gemmlowp", "meta::Dequantize",
                   t.by_rows([=, y = static_cast<float*>(t.numbers), x = t.codes](index_t row, index_t rows) {
                     meta::Transform1DParams<std::uint8_t, float, meta::Dequantize> p;
                     p.input = x + row * cols;
                     p.output = y + row * cols;
                     p.kernel.count = static_cast<int>(rows * cols);
                     p.kernel.range_min = least;
                     p.kernel.range_offset = 0;
                     p.kernel.range_scale = scale;
                     meta::Transform1D<decltype(p), 16>(p);
                   })});
}

}  // namespace bench
