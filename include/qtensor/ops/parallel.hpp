// Whole-tensor operations on an executor: its threads take a part of the tensor each, and the bits are those of one.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/core/executor.hpp>
#include <qtensor/ops/dequantize.hpp>
#include <qtensor/ops/quantize.hpp>
#include <tuple>
#include <vector>

// A tensor is cut along the axis that makes the most parts. Rows start on a byte and rows are cut where bytes end, so
// parts write different bytes. Scales that belong to one part are computed in it; scales of a whole tensor or of
// columns come from the statistics of all parts, which are joined by maxima and minima, so that no order matters; so
// does the upper scale of two-level schemes. What cannot be split stays on one thread: stochastic rounding (its numbers
// depend on the position in the tensor), sources that may be read only once and in order. Other sources are read by
// several threads at the same time: functions in an expression must bear that.
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

/// Whether an executor is given parts of such tensors at all.
template <tile_source X, quantization_scheme S, executor By>
inline constexpr bool splits =
    !std::same_as<By, serial> && reads_in_parts<X>() && !random_rounding<typename S::rounding>;

/// Whether a tensor has several blocks of scales along an axis in storage order.
template <tensor_view_type View>
bool has_blocks(const View& w, int axis) {
  const auto a = static_cast<std::size_t>(axis);
  return w.scale_grid().block[a] < w.storage_extents()[a];
}
/// Whether its rows can be cut into pieces.
template <tensor_view_type View>
bool has_pieces(const View& w) {
  constexpr std::size_t last = static_cast<std::size_t>(View::rank) - 1;
  const index_t cols = w.storage_extents()[last];
  return piece_step<typename View::scheme_type>(std::min(w.scale_grid().block[last], cols), cols) != 0;
}

/// What has parts along every axis.
struct no_source {};
template <int Axis, int Rank, class X>
inline constexpr bool may_cut = true;
template <int Axis, int Rank, tile_source X>
inline constexpr bool may_cut<Axis, Rank, X> = has_parts<Axis, Rank, X>;

/// A tensor cut along one axis, in ranges that begin where its blocks do; X: the source that is cut with it.
template <tensor_view_type View, class X = no_source>
class partition {
  using S = typename View::scheme_type;
  using order = typename View::order_type;
  static constexpr int rank = View::rank;
  using axes = std::make_integer_sequence<int, rank>;

 public:
  /// Along the axis that makes the most parts, the outermost of these, among those for which allows(axis in storage
  /// order) holds; in one part where there is none.
  template <executor By, class Allows>
  partition(const View& w, const By& by, const Allows& allows) : w_(w) {
    const auto extents = w.storage_extents();
    const auto consider = [&](int axis) {
      const index_t count = extents[at(axis)], step = step_of(axis);
      if (count > 0 && allows(axis)) cut_.consider(by, axis, count, step, w.size() / count);
    };
    [&]<int... A>(std::integer_sequence<int, A...>) { ((may_cut<A, rank, X> ? consider(A) : void()), ...); }
    (axes{});
  }
  index_t parts() const { return cut_.parts; }

  /// Calls use(part, slice, of) on the executor: for a slice of the tensor, of(x) is the source with it, and
  /// of(pointer, strides) the memory.
  template <executor By, class Use>
  void each(const By& by, const Use& use) const {
    [&]<int... A>(std::integer_sequence<int, A...>) { ((cut_.axis == A ? along<A>(by, use) : void()), ...); }
    (axes{});
  }

 private:
  static constexpr std::size_t at(int axis) { return static_cast<std::size_t>(axis); }

  /// Elements of an axis that ranges are multiples of: whole blocks, and along rows lines of the caches.
  index_t step_of(int axis) const {
    const auto block = [&](const auto& grid) {
      const index_t n = grid.block[at(axis)];
      return n < w_.storage_extents()[at(axis)] ? n : index_t{1};
    };
    index_t step = block(w_.scale_grid());
    if constexpr (S::has_zero_point) step = common_multiple(step, block(w_.zero_grid()));
    if (axis < rank - 1) return step;
    if constexpr (S::is_interleaved) step = common_multiple(step, interleaved_block<S>::elements(w_.granularity()));
    return common_multiple(step, 256);
  }
  /// Slices of every axis are of one type, so that what they are used for is compiled once.
  template <int Axis>
  auto slice(index_t first, index_t n) const {
    using extents_type = dynamic_extents<rank>;
    const auto some = w_.template slice<order::axis(rank, Axis)>(first, n);
    const auto& m = some.memory();
    return basic_tensor_view<S, extents_type, order, typename View::access_type>(
        {extents_type(some.extents().to_array()), some.granularity(), some.zero_granularity()},
        {m.codes, m.scales, m.zero_points, m.offsets, m.tensor_scale}, some.row_strides(), some.scale_grid(),
        some.zero_grid());
  }
  template <int Axis, class By, class Use>
  void along(const By& by, const Use& use) const {
    if constexpr (may_cut<Axis, rank, X>)
      cut_.for_each(by, [&](index_t part, index_t first, index_t n) {
        use(part, slice<Axis>(first, n), cut<Axis>{w_.shape().row_count() / cut_.count, first, n});
      });
  }
  template <int Axis>
  struct cut {
    index_t rows, first, n;  // rows of an element of the outermost axis

    auto operator()(const X& x) const { return part_of<Axis, rank>(x, first, n, rows); }
    template <class T>
    T* operator()(T* data, const typename View::index_array& strides) const {
      return data + first * strides[at(order::axis(rank, Axis))];
    }
  };

  const View& w_;
  detail::longest_cut cut_;
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
  bool reads_by_rows(index_t row) const { return ops::reads_by_rows(x, row); }
  template <class T>
  void read(index_t row, index_t rows, index_t col, index_t cols, T* tile, index_t stride) const {
    x.read(row, rows, col, cols, tile, stride);
  }
};

/// Rows that all share their scales: statistics of the parts, scales of the whole, codes of the parts.
template <tile_source X, quantization_scheme S, tensor_extents E, storage_order O, executor By>
void quantize_shared(const X& x, const tensor_span<S, E, O>& out, const partition<tensor_span<S, E, O>, X>& parts,
                     const By& by) {
  using slices = tensor_span<S, dynamic_extents<E::rank>, O>;
  const bool direct = row_step(x).has_value();
  row_quantizer<S, E, O, source_elements<X>> whole(out, direct);
  const index_t blocks = whole.block_count(), length = whole.is_flat() ? x.cols() : whole.block_length();
  const index_t step = piece_step<S>(length, x.cols());

  std::vector<statistics_memory<S>> found;
  for (index_t part = 0; part < parts.parts(); ++part) found.emplace_back(blocks);
  const auto for_each_part = [&](const auto& use) {
    parts.each(by, [&](index_t part, const slices& slice, const auto& of) {
      const row_quantizer<S, dynamic_extents<E::rank>, O, source_elements<X>> quantizer(slice, direct);
      use(part, of(x), quantizer, piece_step<S>(quantizer.block_length(), quantizer.row_length()));
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
void quantize_below(const X& x, const tensor_span<S, E, O>& out, const tensor_level& level,
                    const partition<tensor_span<S, E, O>, X>& parts, const By& by) {
  *out.memory().tensor_scale = level.scale;
  parts.each(by, [&](index_t, const auto& slice, const auto& of) { quantize_dynamically(of(x), slice, level); });
}

/// The same under the level that the largest magnitude of all parts makes.
template <tile_source X, quantization_scheme S, tensor_extents E, storage_order O, executor By>
void quantize_two_levels(const X& x, const tensor_span<S, E, O>& out, const partition<tensor_span<S, E, O>, X>& parts,
                         const By& by) {
  std::vector<float> found(static_cast<std::size_t>(parts.parts()));
  parts.each(by, [&](index_t part, const auto&, const auto& of) {
    found[static_cast<std::size_t>(part)] = finite_amax(of(x));
  });
  float most = 0.f;
  for (float amax : found) most = amax > most ? amax : most;
  quantize_below(x, out, tensor_level::of<S>(most), parts, by);
}

/// Calls use(source, parts) where a tensor of a two-level scheme is quantized in several parts, or returns false.
template <tile_source X, quantization_scheme S, tensor_extents E, storage_order O, executor By, class Use>
bool in_two_level_parts(const X& x, const tensor_span<S, E, O>& out, const By& by, const Use& use) {
  using span = tensor_span<S, E, O>;
  if constexpr (splits<X, S, By> && X::reads_twice && walks_rows<S>) {
    check_source(x, out);
    decltype(auto) source = source_for<S>(x);
    const partition<span, std::remove_cvref_t<decltype(source)>> parts(out, by,
                                                                       [&](int axis) { return has_blocks(out, axis); });
    if (parts.parts() > 1 && has_pieces(out)) {
      use(source, parts);
      return true;
    }
  }
  return false;
}

/// Quantizes a tensor whose rows all share their scales in several parts, at least `least`, or returns false.
template <tile_source X, quantization_scheme S, tensor_extents E, storage_order O, executor By>
bool in_shared_parts(const X& x, const tensor_span<S, E, O>& out, const By& by, index_t least) {
  using span = tensor_span<S, E, O>;
  if constexpr (walks_rows<S> && X::reads_twice) {
    constexpr int last = E::rank - 1;
    for (int axis = 0; axis < last; ++axis)
      if (has_blocks(out, axis)) return false;
    decltype(auto) source = source_for<S>(x);
    const partition<span, std::remove_cvref_t<decltype(source)>> parts(
        out, by, [&](int axis) { return axis < last || !has_blocks(out, last); });
    if (parts.parts() >= least && has_pieces(out)) {
      quantize_shared(source, out, parts, by);
      return true;
    }
  }
  return false;
}

}  // namespace ops

/// quantize_into(x, out) on an executor.
template <tile_source X, quantization_scheme S, tensor_extents E, storage_order O, executor By>
void quantize_into(const X& x, const tensor_span<S, E, O>& out, const execution<By>& on) {
  if constexpr (S::has_tensor_scale) {
    if (ops::in_two_level_parts(x, out, on.by, [&](const auto& source, const auto& parts) {
          ops::quantize_two_levels(source, out, parts, on.by);
        }))
      return;
  } else if constexpr (ops::splits<X, S, By>) {
    ops::check_source(x, out);
    const ops::partition<tensor_span<S, E, O>, X> parts(out, on.by,
                                                        [&](int axis) { return ops::has_blocks(out, axis); });
    if (ops::in_shared_parts(x, out, on.by, std::max<index_t>(parts.parts(), 2))) return;
    if (parts.parts() > 1)
      return parts.each(on.by, [&](index_t, const auto& slice, const auto& of) { quantize_into(of(x), slice); });
  }
  quantize_into(x, out);
}

/// quantize_into(x, out, level) on an executor.
template <tile_source X, quantization_scheme S, tensor_extents E, storage_order O, executor By>
requires(S::has_tensor_scale) void quantize_into(const X& x, const tensor_span<S, E, O>& out, const tensor_level& level,
                                                 const execution<By>& on) {
  const bool done = ops::in_two_level_parts(x, out, on.by, [&](const auto& source, const auto& parts) {
    ops::quantize_below(source, out, level, parts, on.by);
  });
  if (!done) quantize_into(x, out, level);
}

/// quantize_static_into(x, out) on an executor.
template <tile_source X, quantization_scheme S, tensor_extents E, storage_order O, executor By>
void quantize_static_into(const X& x, const tensor_span<S, E, O>& out, const execution<By>& on) {
  if constexpr (ops::splits<X, S, By>) {
    ops::check_source(x, out);
    const ops::partition<tensor_span<S, E, O>, X> parts(out, on.by, [](int) { return true; });
    if (parts.parts() > 1)
      return parts.each(on.by, [&](index_t, const auto& slice, const auto& of) { quantize_static_into(of(x), slice); });
  }
  quantize_static_into(x, out);
}

/// dequantize_into<F>(w, out, strides) on an executor; elements of `out` may not share memory.
template <format F = f32, quantization_scheme S, tensor_extents E, storage_order O, class A, executor By>
void dequantize_into(const basic_tensor_view<S, E, O, A>& w, storage_t<F>* out, const typename E::array& strides,
                     const execution<By>& on) {
  if constexpr (!std::same_as<By, serial>) {
    const ops::partition<basic_tensor_view<S, E, O, A>> parts(w, on.by, [](int) { return true; });
    if (parts.parts() > 1)
      return parts.each(on.by, [&](index_t, const auto& slice, const auto& of) {
        dequantize_into<F>(slice, of(out, strides), strides);
      });
  }
  dequantize_into<F>(w, out, strides);
}

// What make_quantized calls.
template <tile_source X, executor By, quantization_scheme S, tensor_extents E, storage_order O>
void quantize_into(const ops::source_on<X, By>& source, const tensor_span<S, E, O>& out) {
  quantize_into(source.x, out, source.on);
}
template <tile_source X, executor By, quantization_scheme S, tensor_extents E, storage_order O>
requires(S::has_tensor_scale) void quantize_into(const ops::source_on<X, By>& source, const tensor_span<S, E, O>& out,
                                                 const tensor_level& level) {
  quantize_into(source.x, out, level, source.on);
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
  return detail::with_execution(
      [&]<executor By>(const By& by, const auto&... rest) {
        return make_quantized<S, Order>(ops::source_on<X, By>{x, {by}}, extents, rest...);
      },
      how...);
}

}  // namespace qtensor::inline QTENSOR_ABI
