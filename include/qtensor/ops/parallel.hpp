// Whole-tensor operations on an executor: rows are split over its threads, and the bits are those of one thread.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/core/executor.hpp>
#include <qtensor/ops/dequantize.hpp>
#include <qtensor/ops/quantize.hpp>
#include <tuple>
#include <vector>

// Where the parts meet: rows start on a byte, so parts write different bytes. Scales that belong to one part are
// computed in it; scales of a whole tensor or of columns come from the statistics of all parts, which are joined by
// maxima and minima, so that no order matters; so does the upper scale of two-level schemes. What cannot be split stays
// on one thread: vectors, stochastic rounding (its numbers depend on the position in the tensor), sources that may be
// read only once and in order. Other sources are read by several threads at the same time: functions in an expression
// must bear that.
namespace qtensor::inline QTENSOR_ABI {

namespace ops {

/// Whether parts of a source may be read at the same time; a source that must not says `is_repeatable = false`.
template <tile_source X>
constexpr bool reads_in_parts() {
  if constexpr (requires { X::is_repeatable; })
    return X::is_repeatable;
  else
    return true;
}

/// A tensor cut along its outermost axis in storage order.
template <class Tensor>
class outer_axis {
  using order = typename Tensor::order_type;

 public:
  static constexpr bool exists = Tensor::rank >= 2;
  static constexpr int number = order::axis(Tensor::rank, 0);

  explicit outer_axis(const Tensor& t)
      : count(t.storage_extents()[0]),
        rows_each(count > 0 ? t.shape().row_count() / count : 0),
        weight(rows_each * t.shape().row_length()),
        scale_block(t.scale_grid().block[0]) {
    const auto extents = t.storage_extents();
    const auto block = t.scale_grid().block;
    const std::size_t last = extents.size() - 1;
    block_length = block[last] < extents[last] ? block[last] : extents[last];
    for (std::size_t a = 0; a < last; ++a) is_one_panel = is_one_panel && block[a] >= extents[a];
    if constexpr (Tensor::scheme_type::has_zero_point) zero_block = t.zero_grid().block[0];
  }
  /// Cuts may be where this many elements of the axis end.
  index_t step() const {
    const index_t scales = scale_block < count ? scale_block : 1, zeros = zero_block < count ? zero_block : 1;
    return common_multiple(scales, zeros);
  }

  index_t count;                        // elements of the axis
  index_t rows_each;                    // rows of an element of it
  index_t weight;                       // numbers of an element of it
  index_t scale_block, zero_block = 1;  // elements of it that share a scale, a zero point
  index_t block_length = 1;             // elements of a row that share a scale
  bool is_one_panel = true;             // all rows share their scales
};

/// A source that brings its executor: whoever quantizes it uses that.
template <tile_source X, executor By>
struct source_on {
  const X& x;
  execution<By> on;
  using element_format = element_format_of<X>;
  static constexpr bool reads_rows = X::reads_rows;
  static constexpr bool reads_twice = X::reads_twice;

  index_t rows() const { return x.rows(); }
  index_t cols() const { return x.cols(); }
  const element_of<X>* direct(index_t row, index_t col) const { return x.direct(row, col); }
  template <class T>
  void read(index_t row, index_t rows, index_t col, index_t cols, T* tile, index_t stride) const {
    x.read(row, rows, col, cols, tile, stride);
  }
};

/// Rows that all share their scales: statistics of the parts, scales of the whole, codes of the parts.
template <tile_source X, quantization_scheme S, tensor_extents E, storage_order O, executor By>
void quantize_shared(const X& x, const tensor_span<S, E, O>& out, const By& by, index_t parts) {
  const outer_axis<tensor_span<S, E, O>> axis(out);
  const bool direct = row_step(x).has_value();
  row_quantizer<S, E, O, source_elements<X>> whole(out, direct);
  const index_t blocks = whole.block_count(), length = whole.is_flat() ? x.cols() : whole.block_length();
  const index_t step = piece_step<S>(length, x.cols());

  std::vector<statistics_memory<S>> found(static_cast<std::size_t>(parts), statistics_memory<S>(blocks));
  const auto for_each_part = [&](const auto& use) {
    detail::for_ranges(by, parts, axis.count, 1, [&](index_t part, index_t first, index_t n) {
      const auto slice = out.template slice<outer_axis<tensor_span<S, E, O>>::number>(first, n);
      using slice_type = std::remove_const_t<decltype(slice)>;
      const row_quantizer<S, typename slice_type::extents_type, O, source_elements<X>> quantizer(slice, direct);
      const row_range<X> rows(x, first * axis.rows_each, n * axis.rows_each);
      use(part, rows, quantizer, piece_step<S>(quantizer.block_length(), quantizer.row_length()));
    });
  };
  for_each_part([&](index_t part, const auto& rows, const auto& quantizer, index_t cut) {
    const statistics_view seen = found[static_cast<std::size_t>(part)].view();
    if (!use_shared_across(rows, quantizer, cut, [&](auto& across) { across.join_shared(seen); }))
      join_rows<S>(rows, 0, rows.rows(), step, length, seen);
  });
  statistics_memory<S>& all = found[0];
  for (std::size_t part = 1; part < found.size(); ++part) all.join(found[part]);

  parameters_memory<S> parameters(blocks);
  const parameters_view p = parameters.view();
  const simd::blocks_are are = whole.finish(typename E::array{}, 0, blocks, all.view(), p);
  for_each_part([&](index_t, const auto& rows, const auto& quantizer, index_t cut) {
    const bool by_columns = are != simd::blocks_are::special;
    if (!by_columns || !use_shared_across(rows, quantizer, cut, [&](auto& across) { across.encode_shared(p); }))
      encode_rows(rows, quantizer, 0, rows.rows(), cut, all.view(), p, are);
  });
}

/// Two-level schemes: the blocks of every part, under the level of the whole tensor.
template <tile_source X, quantization_scheme S, tensor_extents E, storage_order O, executor By>
void quantize_below(const X& x, const tensor_span<S, E, O>& out, const tensor_level& level, const By& by,
                    index_t parts) {
  using axis_type = outer_axis<tensor_span<S, E, O>>;
  const axis_type axis(out);
  *out.memory().tensor_scale = level.scale;
  detail::for_ranges(by, parts, axis.count, axis.step(), [&](index_t, index_t first, index_t n) {
    quantize_dynamically(row_range<X>(x, first * axis.rows_each, n * axis.rows_each),
                         out.template slice<axis_type::number>(first, n), level);
  });
}

/// The same under the level that the largest magnitude of all parts makes.
template <tile_source X, quantization_scheme S, tensor_extents E, storage_order O, executor By>
void quantize_two_levels(const X& x, const tensor_span<S, E, O>& out, const By& by, index_t parts) {
  using axis_type = outer_axis<tensor_span<S, E, O>>;
  const axis_type axis(out);
  std::vector<float> found(static_cast<std::size_t>(parts));
  detail::for_ranges(by, parts, axis.count, axis.step(), [&](index_t part, index_t first, index_t n) {
    found[static_cast<std::size_t>(part)] = finite_amax(row_range<X>(x, first * axis.rows_each, n * axis.rows_each));
  });
  float most = 0.f;
  for (float amax : found) most = amax > most ? amax : most;
  quantize_below(x, out, tensor_level::of<S>(most), by, parts);
}

/// Calls use(source, parts) where a tensor of a two-level scheme is quantized in several parts, or returns false.
template <tile_source X, quantization_scheme S, tensor_extents E, storage_order O, executor By, class Use>
bool in_two_level_parts(const X& x, const tensor_span<S, E, O>& out, const By& by, const Use& use) {
  using axis_type = outer_axis<tensor_span<S, E, O>>;
  if constexpr (!std::same_as<By, serial> && axis_type::exists && reads_in_parts<X>() && X::reads_twice &&
                walks_rows<S>) {
    check_source(x, out);
    const axis_type axis(out);
    if (axis.scale_block < axis.count && piece_step<S>(axis.block_length, x.cols()) != 0)
      if (const index_t parts = detail::part_count(by, axis.count, axis.step(), axis.weight); parts > 1) {
        use(source_for<S>(x), parts);
        return true;
      }
  }
  return false;
}

}  // namespace ops

/// quantize_into(x, out) on an executor.
template <tile_source X, quantization_scheme S, tensor_extents E, storage_order O, executor By>
void quantize_into(const X& x, const tensor_span<S, E, O>& out, const execution<By>& on) {
  using axis_type = ops::outer_axis<tensor_span<S, E, O>>;
  if constexpr (S::has_tensor_scale) {
    if (ops::in_two_level_parts(x, out, on.by, [&](const auto& source, index_t parts) {
          ops::quantize_two_levels(source, out, on.by, parts);
        }))
      return;
  } else if constexpr (!std::same_as<By, serial> && axis_type::exists && ops::reads_in_parts<X>() &&
                       !random_rounding<typename S::rounding>) {
    ops::check_source(x, out);
    if (out.size() == 0) return;
    const axis_type axis(out);
    if (axis.scale_block < axis.count) {
      const index_t parts = detail::part_count(on.by, axis.count, axis.step(), axis.weight);
      return detail::for_ranges(on.by, parts, axis.count, axis.step(), [&](index_t, index_t first, index_t n) {
        quantize_into(ops::slab_of(x, first, n, axis.rows_each), out.template slice<axis_type::number>(first, n));
      });
    }
    if constexpr (ops::walks_rows<S> && X::reads_twice)
      if (axis.is_one_panel && ops::piece_step<S>(axis.block_length, x.cols()) != 0)
        if (const index_t parts = detail::part_count(on.by, axis.count, 1, axis.weight); parts > 1)
          return ops::quantize_shared(ops::source_for<S>(x), out, on.by, parts);
  }
  quantize_into(x, out);
}

/// quantize_into(x, out, level) on an executor.
template <tile_source X, quantization_scheme S, tensor_extents E, storage_order O, executor By>
requires(S::has_tensor_scale) void quantize_into(const X& x, const tensor_span<S, E, O>& out, const tensor_level& level,
                                                 const execution<By>& on) {
  const bool done = ops::in_two_level_parts(
      x, out, on.by, [&](const auto& source, index_t parts) { ops::quantize_below(source, out, level, on.by, parts); });
  if (!done) quantize_into(x, out, level);
}

/// quantize_static_into(x, out) on an executor.
template <tile_source X, quantization_scheme S, tensor_extents E, storage_order O, executor By>
void quantize_static_into(const X& x, const tensor_span<S, E, O>& out, const execution<By>& on) {
  using axis_type = ops::outer_axis<tensor_span<S, E, O>>;
  if constexpr (!std::same_as<By, serial> && axis_type::exists && ops::reads_in_parts<X>() &&
                !random_rounding<typename S::rounding>) {
    ops::check_source(x, out);
    if (out.size() == 0) return;
    const axis_type axis(out);
    const index_t parts = detail::part_count(on.by, axis.count, axis.step(), axis.weight);
    detail::for_ranges(on.by, parts, axis.count, axis.step(), [&](index_t, index_t first, index_t n) {
      quantize_static_into(ops::slab_of(x, first, n, axis.rows_each), out.template slice<axis_type::number>(first, n));
    });
  } else {
    quantize_static_into(x, out);
  }
}

/// dequantize_into<F>(w, out, strides) on an executor; elements of `out` may not share memory.
template <format F = f32, quantization_scheme S, tensor_extents E, storage_order O, class A, executor By>
void dequantize_into(const basic_tensor_view<S, E, O, A>& w, storage_t<F>* out, const typename E::array& strides,
                     const execution<By>& on) {
  using axis_type = ops::outer_axis<basic_tensor_view<S, E, O, A>>;
  if constexpr (!std::same_as<By, serial> && axis_type::exists) {
    if (w.size() == 0) return;
    const axis_type axis(w);
    const index_t parts = detail::part_count(on.by, axis.count, axis.step(), axis.weight);
    detail::for_ranges(on.by, parts, axis.count, axis.step(), [&](index_t, index_t first, index_t n) {
      dequantize_into<F>(w.template slice<axis_type::number>(first, n),
                         out + first * strides[static_cast<std::size_t>(axis_type::number)], strides);
    });
  } else {
    dequantize_into<F>(w, out, strides);
  }
}

// What make_quantized calls.
template <tile_source X, executor By, quantization_scheme S, tensor_extents E, storage_order O>
void quantize_into(const ops::source_on<X, By>& source, const tensor_span<S, E, O>& out) {
  quantize_into(source.x, out, source.on);
}
template <tile_source X, executor By, quantization_scheme S, tensor_extents E, storage_order O>
void quantize_static_into(const ops::source_on<X, By>& source, const tensor_span<S, E, O>& out) {
  quantize_static_into(source.x, out, source.on);
}

/// make_quantized(x, extents, how...) on an executor, which comes last of the arguments but one may put it anywhere:
/// `quantize<mxfp4>(source(ptr, extents(4096, 4096)), on(openmp()))`.
template <quantization_scheme S, storage_order Order, tensor_extents Extents, tile_source X, class... How>
requires(detail::is_execution<How> || ...) tensor<S, Extents, Order> make_quantized(const X& x, const Extents& extents,
                                                                                    const How&... how) {
  static_assert((0 + ... + (detail::is_execution<How> ? 1 : 0)) == 1, "qtensor: quantize takes one executor.");
  const auto executors = std::tuple_cat(detail::only<detail::arguments::executors>(how)...);
  const auto& on = std::get<0>(executors);
  const ops::source_on<X, std::remove_cvref_t<decltype(on.by)>> source{x, on};
  return std::apply([&](const auto&... rest) { return make_quantized<S, Order>(source, extents, rest...); },
                    std::tuple_cat(detail::only<detail::arguments::others>(how)...));
}

}  // namespace qtensor::inline QTENSOR_ABI
