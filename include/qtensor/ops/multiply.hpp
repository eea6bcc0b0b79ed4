// Products of any operands into any sink: what the types and options say decides which engine computes.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/ops/dequantize.hpp>
#include <qtensor/ops/matmul.hpp>
#include <qtensor/ops/parallel.hpp>
#include <qtensor/ops/product_bf16.hpp>
#include <qtensor/ops/product_float.hpp>
#include <qtensor/ops/product_groups.hpp>
#include <qtensor/ops/product_int8.hpp>
#include <qtensor/ops/product_options.hpp>
#include <qtensor/scheme/schemes.hpp>

// result(m, n) = sum over k of x(m, k) w(n, k). Weights are packed, a quantized matrix, or weights_of a view (whose
// rows or columns are outputs); activations a source of floats or a quantized matrix, or weights_of one.
namespace qtensor::inline QTENSOR_ABI {

namespace ops {

/// Outputs [first, first + outputs) and elements [k, k + depth) of weights, as weights.
template <class Weights>
class weights_part {
 public:
  using scheme_type = typename Weights::scheme_type;
  static constexpr bool has_lines = false;

  weights_part(const Weights& weights, index_t first, index_t outputs, index_t k, index_t depth)
      : weights_(weights), first_(first), outputs_(outputs), k_(k), depth_(depth) {}
  index_t outputs() const { return outputs_; }
  index_t depth() const { return depth_; }
  index_t group() const { return std::max(std::min(weights_.group(), depth_), index_t{1}); }
  float tensor_scale() const { return weights_.tensor_scale(); }
  std::uint32_t scale_code(index_t output, index_t k) const { return weights_.scale_code(first_ + output, k_ + k); }
  std::int64_t zero_point(index_t output, index_t k) const { return weights_.zero_point(first_ + output, k_ + k); }
  float offset(index_t output, index_t k) const { return weights_.offset(first_ + output, k_ + k); }
  void read(index_t output, index_t count, index_t k, index_t n, std::uint8_t* to, index_t stride) const {
    weights_.read(first_ + output, count, k_ + k, n, to, stride);
  }

 private:
  Weights weights_;
  index_t first_, outputs_, k_, depth_;
};

/// A quantized operand: weights_of or a part of it.
template <class T>
concept quantized_operand = requires(const T& t) {
  typename T::scheme_type;
  { t.outputs() } -> std::convertible_to<index_t>;
  { t.depth() } -> std::convertible_to<index_t>;
};

/// Which axis of the matrix an operand sums over: 0 or 1. What is packed was turned to sum over axis 1.
template <class T>
inline constexpr int depth_number = 1;
template <class View, depth_axis Depth>
inline constexpr int depth_number<weights_of<View, Depth>> = Depth == depth_axis::rows ? 0 : 1;
template <class Weights>
inline constexpr int depth_number<weights_part<Weights>> = depth_number<Weights>;

template <class T>
inline constexpr bool is_whole_operand = true;
template <class Weights>
inline constexpr bool is_whole_operand<weights_part<Weights>> = false;

/// How parameters of a granularity change along an axis, as far as its type tells.
enum class along_axis { constant, in_groups, each_element };
template <granularity G>
constexpr along_axis changes_along(int axis) {
  constexpr index_t long_axis = index_t{1} << 40;
  if constexpr (has_static_blocks<G>) {
    const index_t block = G{}.block_extent(2, axis, long_axis);
    return block >= long_axis ? along_axis::constant : block > 1 ? along_axis::in_groups : along_axis::each_element;
  } else {
    return along_axis::in_groups;
  }
}
/// The same for scales and zero points of an operand together, along the axis that is summed over.
template <class T>
constexpr along_axis changes_along_sum() {
  using S = typename T::scheme_type;
  const along_axis scales = changes_along<typename S::granularity_type>(depth_number<T>);
  if constexpr (S::has_zero_point)
    return std::max(scales, changes_along<typename S::zero_granularity_type>(depth_number<T>));
  else
    return scales;
}

/// Integer codes of at most 8 bits without offsets, whose parameters do not change with every element of the sum.
template <class T>
constexpr bool is_integer_operand() {
  using S = typename T::scheme_type;
  using code = typename S::code_format;
  if constexpr (code::is_integer && code::bits <= 8 && !S::has_offset)
    return changes_along_sum<T>() != along_axis::each_element;
  else
    return false;
}

/// What computes a product of these, in fixed order: one exact sum of integers scaled at the end, exact sums over
/// groups, or one chain over floats. A part of a matrix whose groups it may cut is floats.
enum class product_engine { integers, groups, floats };
template <class W, class X>
constexpr product_engine engine_of() {
  if constexpr (requires {
                  typename W::scheme_type;
                  typename X::scheme_type;
                }) {
    constexpr bool constant =
        changes_along_sum<W>() == along_axis::constant && changes_along_sum<X>() == along_axis::constant;
    if constexpr (!is_integer_operand<X>() || changes_along_sum<W>() == along_axis::each_element)
      return product_engine::floats;
    else if constexpr (constant && is_integer_operand<W>() &&
                       !packed_code<typename W::scheme_type::code_format>::is_nibble)
      return product_engine::integers;
    else if constexpr (counted_weights<typename W::scheme_type> &&
                       (constant || (is_whole_operand<W> && is_whole_operand<X>)))
      return product_engine::groups;
    else
      return product_engine::floats;
  } else {
    return product_engine::floats;
  }
}

/// Whether a scheme's groups lie across the axis that is summed over: then nothing is shared along it.
template <class T>
constexpr bool has_groups_across() {
  using G = typename T::scheme_type::granularity_type;
  if constexpr (requires { G::axis; })
    return qtensor::detail::from_front(G::axis, 2) != depth_number<T>;
  else
    return false;
}

/// Refuses products of two quantized operands one of whose groups lie across the sum.
template <class W, class X>
constexpr void check_groups() {
  if constexpr (requires {
                  typename W::scheme_type;
                  typename X::scheme_type;
                })
    static_assert(
        !has_groups_across<W>() && !has_groups_across<X>(),
        "qtensor: the groups of a quantized operand lie across the sum of this product; let them run along it "
        "(W: the last axis; X in W * X: quantize<along<0, S>>(X)), or multiply by a matrix of floats.");
}

/// Rows of an operand, its outputs, as a source of floats.
template <tensor_view_type View, depth_axis Depth>
auto rows_of(const weights_of<View, Depth>& w) {
  return source_in_order<std::conditional_t<Depth == depth_axis::cols, row_major, col_major>>(w.view());
}
template <tensor_view_type View, depth_axis Depth>
auto columns_of(const weights_of<View, Depth>& w) {
  return source_in_order<std::conditional_t<Depth == depth_axis::cols, col_major, row_major>>(w.view());
}

/// Any operand as what the engines take: weights stay packed, tensors and views sum over their last axis.
template <class T>
decltype(auto) as_operand(const T& t) {
  if constexpr (quantized<T>) {
    const auto view = as_view(t);
    return weights_of<std::remove_const_t<decltype(view)>, depth_axis::cols>(view);
  } else {
    return (t);
  }
}
template <class T>
index_t outputs_of(const T& t) {
  if constexpr (quantized_operand<T>)
    return t.outputs();
  else
    return t.rows();  // packed weights, sources
}
template <class T>
index_t depth_of(const T& t) {
  if constexpr (quantized_operand<T>)
    return t.depth();
  else
    return t.cols();
}

/// Weights of which panels may be packed fast, with zero points that are bytes.
template <class W>
concept fast_to_pack = requires {
  requires W::packs_fast && W::scheme_type::code_format::bits <= 8;
  requires packed_zero_of<typename W::scheme_type>::fits_a_byte;
};
/// Whether they are faster packed for one product, panel by panel, than read as floats where they are. As measured:
/// groups are whole quads, outputs fill panels, and results are rows of memory, or few; bytes of outputs that lie side
/// by side want wide registers.
template <simd::usable_arch A, fast_to_pack W>
bool suits_panels(const W& w, const matrix_ref<float>& y) {
  constexpr index_t panel = simd::float_tile<A>::panel, lanes = simd::lanes<A>, least_group = 4;
  const index_t outputs = w.outputs(), group = w.group();
  if constexpr (lanes < 16 && requires { w.lines_across(0, 0); }) return false;
  return (group % least_group == 0 || group >= w.depth()) && outputs >= 2 * panel &&
         8 * round_up(outputs, panel) <= 9 * outputs && (y.col_stride == 1 || y.rows() < 2 * lanes);
}
/// Floats times weights that are not packed, into memory, where that is faster panel by panel. Returns whether it was.
template <simd::usable_arch A, class W, tile_source X>
bool multiply_in_panels(const W& w, const X& x, const store_floats<A>& sink) {
  if constexpr (fast_to_pack<W>)
    if (suits_panels<A>(w, sink.y)) {
      multiply_floats<A>(w, x, sink, serial{});
      return true;
    }
  return false;
}

/// Floats times weights, fixed order: into memory from where the weights are, else tile by tile.
template <simd::usable_arch A, class Operands, class W, tile_source X, class Sink, executor By>
void multiply_in_order(const W& w, const X& x, const Sink& sink, const By& by) {
  constexpr bool has_bytes = W::scheme_type::code_format::bits <= 8;
  constexpr bool stores = std::same_as<Sink, store_floats<A>> && !Operands::rounds_rows;
  if constexpr (packed_matrix<W> || (has_bytes && !(stores && std::same_as<By, serial>))) {
    multiply_floats<A, Operands>(w, x, sink, by);
  } else if constexpr (stores) {
    if (!multiply_in_panels<A>(w, x, sink)) matmul_into<A>(x, columns_of(w), sink.y, sink.alpha, sink.mode);
  } else {
    // Wider codes are not packed: all floats first, then tiles of them.
    constexpr index_t most_rows = 16, width = simd::float_tile<A>::panel;
    const index_t rows = x.rows(), cols = w.outputs(), stride = round_up(cols, width);
    product_space space(rows * stride);
    matmul_into<A>(x, columns_of(w), matrix_ref<float>{space.data(), rows, cols, stride, 1});
    for (index_t r = 0; r < rows; r += most_rows)
      for (index_t c = 0; c < cols; c += width)
        sink(product_tile{r, c, std::min(most_rows, rows - r), std::min(width, cols - c), space.data() + r * stride + c,
                          stride});
  }
}

/// Float activations as codes, quantized by the rule of S.
template <quantization_scheme S, tile_source X, executor By>
auto quantized_rows(const X& x, const typename S::granularity_type& granularity, const By& by) {
  auto codes = tensor_to_fill<S, matrix_extents, row_major>(matrix_extents(x.rows(), x.cols()), granularity);
  quantize_into(x, codes.span(), execution<By>{by});
  return codes;
}

/// Activations of floats quantized to 8 bits, times weights.
template <simd::usable_arch A, product_math Math, class W, tile_source X, class Sink, executor By>
void multiply_quantizing(const W& w, const X& x, const Sink& sink, const By& by) {
  using S = typename W::scheme_type;
  using rows = int8_per_channel<0>;
  using rows_view = weights_of<tensor_view<rows>, depth_axis::cols>;
  static_assert(
      counted_weights<S>,
      "qtensor: int8_activations needs weights that are integers of at most 8 bits, or small integers times a "
      "power of two (e2m1, e2m3, e1m2, mxint8); use bf16_math for this format.");
  if constexpr (engine_of<W, rows_view>() == product_engine::integers) {
    // Several threads would quantize the same rows, and a few rows meet plain weights as codes.
    if constexpr (std::same_as<By, serial>)
      if (!reads_lines<A>(w, x.rows(), x.cols())) return multiply_integers_of_floats<A>(w, x, scaled<Sink>{sink}, by);
    const auto codes = quantized_rows<rows>(x, {}, by);
    multiply_integers<A>(w, rows_view(codes.view()), scaled<Sink>{sink}, by);
  } else if constexpr (counted_weights<S>) {
    multiply_groups<A>(
        w, x, Math == product_math::int8_rows ? activation_scales::per_row : activation_scales::per_group, sink, by);
  }
}

/// The engine for these types. Extents are at least 1 and agree.
template <simd::usable_arch A, class W, class X, class Sink, class Options>
void choose_engine(const W& w, const X& x, const Sink& sink, const Options& options) {
  constexpr product_math math = Options::math;
  constexpr bool quantizes = math == product_math::int8_rows || math == product_math::int8_groups;
  constexpr product_engine engine = math == product_math::fixed_order ? engine_of<W, X>() : product_engine::floats;
  check_groups<W, X>();
  static_assert(W::scheme_type::code_format::bits <= 8 || (math != product_math::bf16 && math != product_math::f16),
                "qtensor: bf16_math and f16_math take weights of at most 8 bits.");
  if constexpr (engine == product_engine::integers) {
    multiply_integers<A>(w, x, scaled<Sink>{sink}, options.by);
  } else if constexpr (engine == product_engine::groups) {
    multiply_groups<A>(w, x, sink, options.by);
  } else if constexpr (quantized_operand<X>) {
    static_assert(!quantizes,
                  "qtensor: int8_activations quantizes activations of floats; these are quantized already.");
    choose_engine<A>(w, rows_of(x), sink, options);
  } else if constexpr (quantizes) {
    multiply_quantizing<A, math>(w, x, sink, options.by);
  } else if constexpr (math == product_math::bf16) {
    multiply_bf16<A>(w, x, sink, options.by);
  } else if constexpr (math == product_math::f16) {
    multiply_in_order<A, rounded_operands<f16>>(w, x, sink, options.by);
  } else {
    multiply_in_order<A, exact_operands>(w, x, sink, options.by);
  }
}

/// Outputs of a tile, but for the last ones: where its columns begin is a multiple of this.
template <simd::usable_arch A, class W, class X, product_math Math>
constexpr index_t tile_outputs() {
  using codes = weights_of<tensor_view<int8_per_channel<0>>, depth_axis::cols>;
  constexpr bool quantizes = Math == product_math::int8_rows || Math == product_math::int8_groups;
  constexpr product_engine engine = quantizes                           ? engine_of<W, codes>()
                                    : Math == product_math::fixed_order ? engine_of<W, X>()
                                                                        : product_engine::floats;
  if (engine == product_engine::integers) return simd::int_tile<A>::panel;
  if (engine == product_engine::groups || quantizes) return simd::group_tile<A>::columns;
  return simd::float_tile<A>::panel;
}

/// Outputs that tiles of a product of so many rows may begin at are multiples of this: few rows take packed panels one
/// by one, or as many as a thread has of them.
template <simd::usable_arch A, class W, class X, product_math Math>
index_t tile_step(index_t rows) {
  constexpr index_t most = tile_outputs<A, W, X, Math>();
  if constexpr (W::scheme_type::code_format::bits <= 8) {
    using panels_type = decltype(panels_of<A>(std::declval<const W&>()));
    constexpr index_t few =
        Math == product_math::bf16 ? direct_dots::most_rows_of_all : direct_rows<panels_type>::at_once;
    if (rows <= few) return std::min(most, panels_type::layout_type::width);
  }
  return most;
}

/// multiply_tiles with options that are read already.
template <simd::usable_arch A = simd::best_arch, class W, class X, class Sink, class Options>
void multiply_with(const W& w, const X& x, const Sink& sink, const Options& options) {
  const auto& weights = as_operand(w);
  const auto& activations = as_operand(x);
  const index_t depth = depth_of(weights), outputs = outputs_of(weights), rows = outputs_of(activations);
  require(depth_of(activations) == depth, "a product sums over ", depth, " elements of the weights and ",
          depth_of(activations), " of the activations; they must be equal.");
  if (rows == 0 || outputs == 0) return;
  if (depth == 0) return give_zeros<A>(rows, outputs, sink);
  choose_engine<A>(weights, activations, sink, options);
}

}  // namespace ops

/// result(m, n) = sum over k of x(m, k) w(n, k), tile by tile to `sink`.
///
/// w: packed weights, a quantized matrix of outputs x depth, or ops::weights_of a view. x: a source of floats of M x
/// depth, a quantized matrix of M x depth, or ops::weights_of a view. sink: void(const product_tile&), called from the
/// executor's threads once for each part of the result. Options: see product_options.hpp.
///
/// Bits: where both are integers of at most 8 bits whose scales and zero points do not change along the sum, it is
/// reference::integer_product: the exact integer s gives RN(RN(float(s) * x's scale) * w's scale). Where they change by
/// groups, or weights are small integers times a power of two (e2m1, e2m3, mxint8), reference::group_product.
/// Everything else, also what has a scale for every element of the sum, is reference::dot of the dequantized numbers.
/// None of these depends on the CPU, the executor or the sink; bf16_math's sums do (see ops/product_bf16.hpp). Extents
/// may be 0: a sum of nothing is +0. Throws qtensor::error, before a tile is made: where the depths differ; where a
/// zero point of weights that this packs leaves 32 bits as a packed number (packed_code); and of two quantized operands
/// that both change along the sum, where the largest common divisor of their groups is neither a group of the weights
/// nor a multiple of 4.
template <simd::usable_arch A = simd::best_arch, class W, class X, class Sink, class... Option>
void multiply_tiles(const W& w, const X& x, const Sink& sink, const Option&... option) {
  ops::multiply_with<A>(w, x, sink, read_product_options(option...));
}

}  // namespace qtensor::inline QTENSOR_ABI
