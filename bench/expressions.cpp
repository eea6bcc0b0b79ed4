// Operations: Eigen expressions quantized without a temporary, beside what they cost alone; results by columns.
// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>
#include <qtensor/expr/assign.hpp>
#include <qtensor/expr/assign_parts.hpp>
#include <qtensor/expr/quantize.hpp>

#include "operation.hpp"

namespace bench {

namespace {

template <int Order>
using matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Order>;
template <int Order>
using matrix_in = Eigen::Map<const matrix<Order>>;

/// A row-major or column-major matrix of the task's size over floats.
template <int Order>
matrix_in<Order> matrix_at(const float* data, const task& t) {
  return {data, t.rows, t.cols};
}

/// expression_of(A, B) into a scheme; B is read from memory of its own. Order is that of A, OrderOfB that of B, codes
/// are by rows.
template <int Order, class S, int OrderOfB = Order, class Expression>
void add_expression(operations& all, const std::string& name, int sources, Expression expression_of) {
  operation op = describe<qt::f32, S>(verb::quantize, scales::dynamic, name);
  op.other_bytes = 4 * (sources - 1);
  if (op.grain == grain::tensor || op.grain == grain::column) op.reads = 2;
  op.is_expression = true;
  op.prepare = [](const task& t) {
    std::memcpy(t.scratch, t.floats, static_cast<std::size_t>(t.size()) * sizeof(float));
  };
  const auto second = [](const task& t) { return reinterpret_cast<const float*>(t.scratch); };
  op.ours = [=](const task& t) -> std::function<void()> {
    const auto out = span_of<S>(t);
    const auto a = matrix_at<Order>(t.floats, t);
    const auto b = matrix_at<OrderOfB>(second(t), t);
    if (t.threads == 1) return [=] { qt::quantize_into(out, expression_of(a, b)); };
    return [=, pool = on_team(t.threads)] { qt::quantize_into(out, expression_of(a, b), pool); };
  };
  op.more = [=](const task& t, candidates& found) {
    // A tile of 16 KiB that stays in the first-level cache, by runs along the expression's own order, where it has one.
    if (t.threads != 1 || Order != OrderOfB) return;
    found.push_back({kind::expression, "expression alone", "", [=] {
                       alignas(64) static float tile[4096];
                       const auto a = matrix_at<Order>(t.floats, t), b = matrix_at<Order>(second(t), t);
                       const index_t lines = Order == Eigen::RowMajor ? t.rows : t.cols,
                                     length = Order == Eigen::RowMajor ? t.cols : t.rows;
                       for (index_t line = 0; line < lines; ++line)
                         for (index_t i = 0; i < length; i += 4096) {
                           const index_t n = std::min<index_t>(length - i, 4096);
                           if constexpr (Order == Eigen::RowMajor)
                             Eigen::Map<Eigen::RowVectorXf>(tile, n) =
                                 expression_of(a.row(line).segment(i, n), b.row(line).segment(i, n));
                           else
                             Eigen::Map<Eigen::VectorXf>(tile, n) =
                                 expression_of(a.col(line).segment(i, n), b.col(line).segment(i, n));
                           asm volatile("" ::"r"(tile) : "memory");
                         }
                     }});
  };
  all.push_back(std::move(op));
}

constexpr auto first = [](const auto& a, const auto&) -> const auto& { return a; };
constexpr auto twice_and_other = [](const auto& a, const auto& b) { return a * 2.f + b; };

template <int Order, class S>
void add_expressions(operations& all, const std::string& source, const std::string& label) {
  add_expression<Order, S>(all, source + " -> " + label, 1, first);
  add_expression<Order, S>(all, "2 " + source + " + B -> " + label, 2, twice_and_other);
}

/// Of a matrix by rows and one by columns.
template <class S>
void add_mixed_expression(operations& all, const std::string& label) {
  add_expression<Eigen::RowMajor, S, Eigen::ColMajor>(all, "2 A + B by columns -> " + label, 2, twice_and_other);
}

/// A scheme back to numbers of format F that lie by columns.
template <class S, class F>
void add_columns_back(operations& all, const std::string& label) {
  operation op = describe<F, S>(verb::dequantize, scales::given,
                                label + " -> " + std::string(std::string_view(F::name)) + " by columns");
  op.is_expression = true;
  op.prepare = fill<S>;
  op.ours = [](const task& t) -> std::function<void()> {
    const auto from = view_of<S>(t);
    auto* out = static_cast<qt::storage_t<F>*>(t.numbers);
    if (t.threads == 1) return [=, rows = t.rows] { qt::dequantize_into<F>(from, out, {1, rows}); };
    return [=, rows = t.rows, pool = on_team(t.threads)] { qt::dequantize_into<F>(from, out, {1, rows}, pool); };
  };
  all.push_back(std::move(op));
}

/// A scheme by rows to an Eigen matrix, whose assignment it is: expression_of(dequantize(W), A), A of the same order and
/// read where `others` is 1.
template <int Order, class S, class Expression>
void add_assignment(operations& all, const std::string& name, int others, Expression expression_of) {
  operation op = describe<qt::f32, S>(verb::dequantize, scales::given, name);
  op.other_bytes = 4 * others;
  op.is_expression = true;
  op.prepare = fill<S>;
  op.ours = [=](const task& t) -> std::function<void()> {
    if (t.threads != 1) return {};  // Eigen's assignments name no executor
    const auto from = view_of<S>(t);
    Eigen::Map<matrix<Order>> to(static_cast<float*>(t.numbers), t.rows, t.cols);
    const auto a = matrix_at<Order>(t.floats, t);
    return [=]() mutable { to.noalias() = expression_of(qt::dequantize(from), a); };
  };
  all.push_back(std::move(op));
}

}  // namespace

void add_expressions(operations& all) {
  add_expressions<Eigen::RowMajor, qt::mxfp8_e4m3>(all, "A", "mxfp8_e4m3");
  add_expressions<Eigen::RowMajor, qt::int8_per_channel<0>>(all, "A", "int8 row, dynamic");
  add_expressions<Eigen::ColMajor, qt::mxfp8_e4m3>(all, "A by columns", "mxfp8_e4m3");
  add_expressions<Eigen::ColMajor, qt::int8_per_channel<0>>(all, "A by columns", "int8 row, dynamic");
  add_expressions<Eigen::ColMajor, qt::int8_per_tensor>(all, "A by columns", "int8 tensor, dynamic");
  add_mixed_expression<qt::mxfp8_e4m3>(all, "mxfp8_e4m3");
  add_mixed_expression<qt::int8_per_channel<0>>(all, "int8 row, dynamic");
  add_columns_back<qt::int8_per_tensor, qt::f32>(all, "int8 tensor");
  add_columns_back<qt::int8_per_tensor, qt::bf16>(all, "int8 tensor");
  add_columns_back<qt::mxfp8_e4m3, qt::f32>(all, "mxfp8_e4m3");
  add_columns_back<qt::mxfp4, qt::f32>(all, "mxfp4");
  constexpr auto itself = [](const auto& w, const auto&) { return w; };
  constexpr auto twice = [](const auto& w, const auto&) { return 2.f * w; };
  constexpr auto sum = [](const auto& w, const auto& a) { return a + w; };
  add_assignment<Eigen::RowMajor, qt::mxfp4>(all, "matrix = dequantize(mxfp4)", 0, itself);
  add_assignment<Eigen::ColMajor, qt::mxfp4>(all, "matrix by columns = dequantize(mxfp4)", 0, itself);
  add_assignment<Eigen::RowMajor, qt::mxfp4>(all, "matrix = 2 dequantize(mxfp4)", 0, twice);
  add_assignment<Eigen::ColMajor, qt::mxfp4>(all, "matrix by columns = 2 dequantize(mxfp4)", 0, twice);
  add_assignment<Eigen::RowMajor, qt::mxfp8_e4m3>(all, "matrix = A + dequantize(mxfp8_e4m3)", 1, sum);
  add_assignment<Eigen::ColMajor, qt::mxfp8_e4m3>(all, "matrix by columns = A + dequantize(mxfp8_e4m3)", 1, sum);
}

}  // namespace bench
