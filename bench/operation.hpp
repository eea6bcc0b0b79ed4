// Makes operations of schemes: one call adds a line to the tables, with our own column.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstring>
#include <qtensor/ops/dequantize.hpp>
#include <qtensor/ops/parallel.hpp>
#include <qtensor/ops/quantize.hpp>
#include <qtensor/scheme/schemes.hpp>

#include "harness.hpp"

namespace bench {

namespace qt = qtensor;
using qt::row_major;

template <class G>
struct grain_of {
  static constexpr grain value = grain::tensor;
  static constexpr index_t group = 0;
};
template <index_t Axis>
struct grain_of<qt::per_channel<Axis>> {
  static constexpr grain value = Axis == 0 ? grain::row : grain::column;
  static constexpr index_t group = 0;
};
template <index_t N, index_t Axis>
struct grain_of<qt::group<N, Axis>> {
  static constexpr grain value = grain::group;
  static constexpr index_t group = N;
};
template <index_t N>
struct grain_of<qt::block<N, N>> {
  static constexpr grain value = grain::block;
  static constexpr index_t group = N;
};

/// The task's memory as a tensor of a scheme: a span to write or a view to read.
template <class Tensor>
Tensor tensor_of(const task& t, std::uint8_t* codes, void* scales) {
  using S = typename Tensor::scheme_type;
  typename Tensor::arrays memory;
  memory.codes = reinterpret_cast<typename Tensor::code_unit*>(codes);
  if constexpr (!S::is_interleaved) memory.scales = static_cast<qt::detail::unit_t<typename S::scale_format>*>(scales);
  if constexpr (S::has_zero_point)
    memory.zero_points = reinterpret_cast<qt::detail::unit_t<typename S::zero_point_format>*>(t.zero_points);
  if constexpr (S::has_tensor_scale) memory.tensor_scale = t.tensor_scale;
  return {typename Tensor::shape_type{qt::extents(t.rows, t.cols), {}, {}}, memory};
}
template <class S>
qt::tensor_span<S> span_of(const task& t) {
  return tensor_of<qt::tensor_span<S>>(t, t.codes, t.scales);
}
template <class S>
qt::tensor_view<S> view_of(const task& t) {
  return tensor_of<qt::tensor_view<S>>(t, t.codes, t.scales);
}

/// The task's numbers as a source of rows.
template <class F>
auto numbers_of(const task& t) {
  const auto extents = qt::extents(t.rows, t.cols);
  if constexpr (std::is_same_v<F, qt::f32>) {
    const auto source = qt::source(t.floats, extents);
    return typename decltype(source)::template in_order<row_major>(source);
  } else {
    const auto source = qt::source<F>(t.halves, extents);
    return typename decltype(source)::template in_order<row_major>(source);
  }
}

/// Quantizes the first rows by the scheme's own rule and repeats what they gave: the numbers repeat after as many.
template <class S>
void fill(const task& t) {
  const qt::tensor_span<S> all = span_of<S>(t);
  constexpr grain g = grain_of<typename S::granularity_type>::value;
  task some = t;
  some.rows = g == grain::block ? t.rows : std::min<index_t>(t.rows, 256);
  quantize_into(numbers_of<qt::f32>(some), span_of<S>(some));
  const auto repeat = [&](void* array, index_t bytes_of_row) {
    for (index_t row = some.rows; row < t.rows; row += some.rows)
      std::memcpy(static_cast<std::uint8_t*>(array) + row * bytes_of_row, array,
                  static_cast<std::size_t>(std::min(some.rows, t.rows - row) * bytes_of_row));
  };
  const auto shape = all.shape();
  repeat(t.codes, shape.code_units() / t.rows * static_cast<index_t>(sizeof(typename qt::tensor_span<S>::code_unit)));
  if constexpr (!S::is_interleaved) {
    if (g == grain::row || g == grain::group) {
      const index_t each = shape.scale_count() / t.rows;
      repeat(t.scales, each * static_cast<index_t>(sizeof(qt::detail::unit_t<typename S::scale_format>)));
      if constexpr (S::has_zero_point) repeat(t.zero_points, each);
    }
  }
}

template <class S>
void set_scales_to_one(const task& t) {
  store_scales(span_of<S>(t), 1.f);
}

/// The benchmarks' threads as an executor.
inline auto on_team(int threads) {
  return qt::on(qt::parallel_for(threads, [](index_t count, const auto& part) {
    team::instance().run(static_cast<int>(count), [&](int t) { part(t); });
  }));
}

template <class F, class S>
operation describe(verb what, scales how, std::string name) {
  operation op;
  op.what = what;
  op.name = std::move(name);
  op.number = F::name;
  op.code = S::code_format::name;
  op.scale = S::scale_format::name;
  op.grain = grain_of<typename S::granularity_type>::value;
  op.group = grain_of<typename S::granularity_type>::group;
  op.how = how;
  op.has_zero_point = S::has_zero_point;
  op.is_interleaved = S::is_interleaved;
  op.number_bytes = F::bits / 8.;
  double each = op.group > 0 ? 1. / static_cast<double>(op.group) : 0.;
  if (op.grain == grain::block) each *= each;
  op.code_bytes = S::code_format::bits / 8. + each * S::scale_format::bits / 8.;
  return op;
}

/// Numbers of format F into a scheme. Rules over a tensor or a column read their numbers twice.
template <class F, class S, scales How = scales::dynamic>
void add_quantize(operations& all, const std::string& label) {
  operation op = describe<F, S>(verb::quantize, How, std::string(std::string_view(F::name)) + " -> " + label);
  if (How == scales::dynamic && (op.grain == grain::tensor || op.grain == grain::column)) op.reads = 2;
  if constexpr (How == scales::one) op.prepare = set_scales_to_one<S>;
  if constexpr (How == scales::given) op.prepare = fill<S>;
  op.ours = [](const task& t) -> std::function<void()> {
    const auto x = numbers_of<F>(t);
    const auto out = span_of<S>(t);
    if constexpr (How == scales::dynamic) {
      if (t.threads == 1) return [=] { quantize_into(x, out); };
      return [=, pool = on_team(t.threads)] { quantize_into(x, out, pool); };
    } else {
      if (t.threads == 1) return [=] { quantize_static_into(x, out); };
      return [=, pool = on_team(t.threads)] { quantize_static_into(x, out, pool); };
    }
  };
  all.push_back(std::move(op));
}

/// A scheme back to numbers of format F.
template <class S, class F, scales How = scales::given>
void add_dequantize(operations& all, const std::string& label) {
  operation op = describe<F, S>(verb::dequantize, How, label + " -> " + std::string(std::string_view(F::name)));
  op.prepare = [](const task& t) {
    if constexpr (How == scales::one) {  // the codes of a static cast
      set_scales_to_one<S>(t);
      quantize_static_into(numbers_of<qt::f32>(t), span_of<S>(t));
    } else {
      fill<S>(t);
    }
  };
  op.ours = [](const task& t) -> std::function<void()> {
    const auto from = view_of<S>(t);
    auto* out = static_cast<qt::storage_t<F>*>(t.numbers);
    if (t.threads == 1) return [=, cols = t.cols] { qt::dequantize_into<F>(from, out, {cols, 1}); };
    return [=, cols = t.cols, pool = on_team(t.threads)] { qt::dequantize_into<F>(from, out, {cols, 1}, pool); };
  };
  all.push_back(std::move(op));
}

}  // namespace bench
