// Operations: MXFP8 along both axes from one read, beside two readings of the source.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/quantize_dual_axis.hpp>

#include "operation.hpp"

namespace bench {

namespace {

template <class F, class S>
void add_dual_axis(operations& all, const std::string& label) {
  using along_rows = qt::along<-1, S>;
  using along_columns = qt::along<-2, S>;
  const auto spans = [](const task& t) {
    return std::pair{span_of<along_rows>(t),
                     tensor_of<qt::tensor_span<along_columns>>(t, t.other_codes, t.other_scales)};
  };
  operation op =
      describe<F, S>(verb::dual_axis, scales::dynamic, std::string(std::string_view(F::name)) + " -> " + label);
  op.code_bytes *= 2;
  operation twice = op;
  twice.name += ", two calls";
  op.ours = [spans](const task& t) -> std::function<void()> {
    const auto x = numbers_of<F>(t);
    const auto [rows, columns] = spans(t);
    if (t.threads == 1) return [=, rows = rows, columns = columns] { qt::quantize_dual_axis_into(x, rows, columns); };
    return [=, rows = rows, columns = columns, pool = on_team(t.threads)] {
      qt::quantize_dual_axis_into(x, rows, columns, pool);
    };
  };
  twice.ours = [spans](const task& t) -> std::function<void()> {
    const auto x = numbers_of<F>(t);
    const auto [rows, columns] = spans(t);
    return [x, rows = rows, columns = columns, pool = on_team(t.threads)] {
      quantize_into(x, rows, pool);
      quantize_into(x, columns, pool);
    };
  };
  all.push_back(std::move(op));
  all.push_back(std::move(twice));
}

}  // namespace

void add_both_axes(operations& all) {
  add_dual_axis<qt::bf16, qt::mxfp8_e4m3>(all, "mxfp8_e4m3 both axes");
  add_dual_axis<qt::f32, qt::mxfp8_e4m3>(all, "mxfp8_e4m3 both axes");
}

}  // namespace bench
