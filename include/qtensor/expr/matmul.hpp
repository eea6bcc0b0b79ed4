// matmul: a product with its options, an epilogue that is any Eigen expression on its tiles, and a result of any kind.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/expr/source_of.hpp>
#include <qtensor/expr/with_options.hpp>
#include <qtensor/ops/epilogue.hpp>

namespace qtensor {

/// Where a tile of a result Y = W * X lies in it.
struct tile {
  index_t row, col, rows, cols;
};

}  // namespace qtensor

namespace qtensor::inline QTENSOR_ABI {

namespace expr_detail {

/// A tile as epilogues see it: outputs down, activations across. Whole tiles have a fixed number of rows.
template <int Rows = Eigen::Dynamic>
using tile_map = Eigen::Map<const Eigen::Matrix<float, Rows, Eigen::Dynamic>, Eigen::Aligned64, Eigen::OuterStride<>>;

template <class T>
inline constexpr bool is_stages = false;
template <class... Stage>
inline constexpr bool is_stages<epilogue_stages<Stage...>> = true;
template <class T>
concept gives_floats = eigen_object<T> && std::same_as<typename T::Scalar, float>;
template <class F>
concept eigen_epilogue = std::is_invocable_v<const F&, tile_map<>, tile>;
template <class T>
inline constexpr bool is_epilogue = is_stages<T> || eigen_epilogue<T>;

/// The sink of an epilogue: f's expression is evaluated into a second tile, and that goes to `Sink`; floats that Eigen
/// stores in this order are written where they belong at once.
template <int Whole, class F, class Sink>
struct epilogue_sink {
  const F& f;
  const Sink& sink;
  static constexpr index_t most_floats = 1024;

  void operator()(const product_tile& t) const {
    if (t.rows * t.stride <= most_floats) return choose(t);
    const index_t rows_each = std::max(most_floats / t.stride, index_t{1});
    for (index_t r = 0; r < t.rows; r += rows_each)
      choose({t.row + r, t.col, std::min(rows_each, t.rows - r), t.cols, t.values + r * t.stride, t.stride});
  }

 private:
  void choose(const product_tile& t) const {
    if (t.cols == Whole)
      finish<Whole>(t);
    else
      finish<Eigen::Dynamic>(t);
  }
  /// With all of Eigen's functions in it: in a large program g++ (16) calls one for every packet, which costs more than
  /// the product of 512 terms.
  template <class To, class Result>
  [[gnu::flatten]] QTENSOR_VECTOR_LOOPS static void assign(To to, const Result& result) {
    to.noalias() = result.matrix();
  }
  template <int Rows>
  [[gnu::noinline]] void finish(const product_tile& t) const {
    using matrix = Eigen::Matrix<float, Rows, Eigen::Dynamic>;
    using memory = Eigen::Map<matrix, Eigen::Unaligned, Eigen::OuterStride<>>;
    const tile_map<Rows> values(t.values, t.cols, t.rows, Eigen::OuterStride<>(t.stride));
    static_assert(gives_floats<std::remove_cvref_t<std::invoke_result_t<const F&, tile_map<Rows>, tile>>>,
                  "qtensor: the epilogue of matmul returns an Eigen expression of floats.");
    const auto& result = f(values, tile{t.col, t.row, t.cols, t.rows});
    require(result.rows() == t.cols && result.cols() == t.rows, "the epilogue of a product makes ", result.rows(), "x",
            result.cols(), " of a tile of ", t.cols, "x", t.rows, "; it must keep the size.");
    if constexpr (requires { sink.keeps_rows(); }) {
      if (sink.keeps_rows())
        return assign(memory(&sink.y(t.row, t.col), t.cols, t.rows, Eigen::OuterStride<>(sink.y.row_stride)), result);
    }
    alignas(64) float changed[most_floats];
    assign(Eigen::Map<matrix, Eigen::Aligned64, Eigen::OuterStride<>>(changed, t.cols, t.rows,
                                                                      Eigen::OuterStride<>(t.stride)),
           result);
    sink(product_tile{t.row, t.col, t.rows, t.cols, changed, t.stride});
  }
};

/// Calls run(sink) with the sink that does what the epilogue says before `sink`.
template <index_t Whole, class Epilogue, class Sink, class Run>
void with_epilogue(const std::tuple<const Epilogue&>& epilogue, index_t rows, index_t outputs, const Sink& sink,
                   const Run& run) {
  const Epilogue& f = std::get<0>(epilogue);
  if constexpr (is_stages<Epilogue>) {
    f.check(rows, outputs);
    run(ops::staged<Epilogue, Sink>{f, sink});
  } else {
    run(epilogue_sink<static_cast<int>(Whole), Epilogue, Sink>{f, sink});
  }
}
template <index_t Whole, class Sink, class Run>
void with_epilogue(const std::tuple<>&, index_t, index_t, const Sink& sink, const Run& run) {
  run(sink);
}

// ---- Options, sorted ----

enum class matmul_option { product, destination, scales, epilogue, unknown };
template <class T>
constexpr matmul_option kind_of_option() {
  if constexpr (is_product_option<T>)
    return matmul_option::product;
  else if constexpr (qtensor::ops::is_destination<T>)
    return matmul_option::destination;
  else if constexpr (qtensor::ops::is_result_scales<T>)
    return matmul_option::scales;
  else if constexpr (is_epilogue<T>)
    return matmul_option::epilogue;
  else
    return matmul_option::unknown;
}
/// The options of one kind, as a tuple of references.
template <matmul_option Kind, class... Option>
auto options_of(const Option&... option) {
  [[maybe_unused]] const auto one = []<class T>([[maybe_unused]] const T& o) {
    if constexpr (kind_of_option<T>() == Kind)
      return std::tuple<const T&>(o);
    else
      return std::tuple<>();
  };
  return std::tuple_cat(one(option)...);
}
template <matmul_option Kind, class... Option>
inline constexpr int count_options = (0 + ... + (kind_of_option<Option>() == Kind ? 1 : 0));

template <class... Option>
constexpr void check_matmul_options() {
  static_assert(count_options<matmul_option::unknown, Option...> == 0,
                "qtensor: an option of matmul is bf16_math, f16_math, int8_activations, int8_group_activations, "
                "on(executor), into(destination), with_scales(...), stages(...), or an epilogue that takes a matrix "
                "expression and a tile: [&](auto acc, qtensor::tile t) { return ...; }.");
  static_assert(count_options<matmul_option::destination, Option...> <= 1, "qtensor: matmul takes one into(...).");
  static_assert(count_options<matmul_option::scales, Option...> <= 1, "qtensor: matmul takes one with_scales(...).");
  static_assert(count_options<matmul_option::epilogue, Option...> <= 1,
                "qtensor: matmul takes one epilogue; put stages into one stages(...), expressions into one function.");
}

// ---- Results ----

/// One product: weights, activations (rows are Y's columns), options.
template <index_t TileOutputs, class W, class X, class Options, class Epilogue>
struct product_call {
  const W& weights;
  const X& activations;
  const Options& options;
  const Epilogue& epilogue;

  index_t outputs() const { return ops::outputs_of(weights); }
  index_t rows() const { return ops::outputs_of(activations); }
  index_t tile_step() const { return ops::tile_step<simd::best_arch, W, X, Options::math>(rows()); }
  template <class Sink>
  void to(const Sink& sink) const {
    with_epilogue<TileOutputs>(epilogue, rows(), outputs(), sink,
                               [&](const auto& all) { ops::multiply_with(weights, activations, all, options); });
  }
  void check_result(index_t result_rows, index_t result_cols) const {
    require(result_rows == outputs() && result_cols == rows(), "a product of ", outputs(), "x", rows(),
            " elements does not fit a destination of ", result_rows, "x", result_cols, ".");
  }
};

/// A product into an Eigen matrix of float, bfloat16 or half in memory.
template <class Call, class Dst>
void store_matrix(const Call& call, Dst& dst) {
  using scalar = typename Dst::Scalar;
  static_assert(has_memory<Dst> && (std::is_same_v<scalar, float> || std::is_same_v<scalar, Eigen::bfloat16> ||
                                    std::is_same_v<scalar, Eigen::half>),
                "qtensor: into(...) takes a tensor or span, or an Eigen matrix, block or map of float, Eigen::bfloat16 "
                "or Eigen::half.");
  call.check_result(dst.rows(), dst.cols());
  if constexpr (std::is_same_v<scalar, float>)
    call.to(ops::store_floats<simd::best_arch>{writable_memory_of(dst).transposed()});
  else
    call.to(ops::store_narrow<typename scalar_format<scalar>::type>{
        {reinterpret_cast<std::uint16_t*>(dst.data()), dst.cols(), dst.rows(), dst.colStride(), dst.rowStride()}});
}

template <class T>
concept has_span = requires(T& x) {
  x.span();
};
/// Whether what into(...) holds, a reference or an object, may be written: spans may, whoever holds them.
template <class Dst>
inline constexpr bool is_writable = [] {
  using plain = std::remove_cvref_t<Dst>;
  constexpr bool is_const = std::is_const_v<std::remove_reference_t<Dst>>;
  if constexpr (quantized<plain>)
    return !is_const || !has_span<plain>;
  else
    return !is_const && (static_cast<int>(Eigen::internal::traits<derived_t<plain>>::Flags) & Eigen::LvalueBit) != 0;
}();

/// Where the scales of a quantized result come from: with_scales(...), or its own numbers.
enum class scales_are { given, computed };

/// A product into a quantized tensor of Y's shape: tile by tile where that can be, else through floats.
template <scales_are Scales, class Call, quantization_scheme S, tensor_extents E, storage_order O>
void store_quantized(const Call& call, const tensor_span<S, E, O>& out) {
  call.check_result(out.rows(), out.cols());
  if (out.size() == 0) return;
  if constexpr (std::is_same_v<O, col_major>) {
    const ops::quantized_lines<S, E, O> lines(out);
    if constexpr (Scales == scales_are::given) {
      if constexpr (ops::encode_tiles<S, E, O>::may_encode) return call.to(ops::encode_tiles<S, E, O>(lines));
    } else if (ops::quantize_tiles<S, E, O>::may_quantize(out, call.tile_step())) {
      return call.to(ops::quantize_tiles<S, E, O>{lines});
    }
  }
  Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, std::is_same_v<O, col_major> ? Eigen::ColMajor : Eigen::RowMajor>
      floats(out.rows(), out.cols());
  store_matrix(call, floats);
  const auto memory = memory_of(floats);
  const auto source = std::is_same_v<O, col_major> ? memory.transposed() : memory;
  const execution<typename std::remove_cvref_t<decltype(call.options)>::executor_type> by{call.options.by};
  if constexpr (Scales == scales_are::given)
    quantize_static_into(source, out, by);
  else
    quantize_into(source, out, by);
}

/// Scales from with_scales to where they belong; whether there are any is known from the type.
template <storage_order O, class Span, class... Scales>
void store_given_scales(const Span& out, const std::tuple<Scales...>& given) {
  if constexpr (sizeof...(Scales) == 1) {
    const auto& values = std::get<0>(given).values;
    constexpr std::size_t count = std::tuple_size_v<std::remove_cvref_t<decltype(values)>>;
    using S = typename Span::scheme_type;
    static_assert(
        count == 0 || S::has_zero_point == (count == 2),
        "qtensor: with_scales takes scales and zero points where the result's scheme has a zero point, scales "
        "alone where it is symmetric.");
    if constexpr (count >= 1) store_scales(out, std::get<0>(values));
    if constexpr (count == 2) store_zero_points(out, std::get<1>(values));
  }
}

/// The size that a matrix result has at compile time.
template <class W>
constexpr int outputs_at_compile_time() {
  return size_at_compile_time<W, 0>();
}
template <class Scalar, int Rows, int Cols>
using matrix_of = Eigen::Matrix<Scalar, Rows, Cols, Rows == 1 && Cols != 1 ? Eigen::RowMajor : Eigen::ColMajor>;
template <class Out>
struct result_scalar {
  static_assert(quantization_scheme<Out>,
                "qtensor: matmul<Out> gives f32, bf16 or f16, or a tensor of a scheme: matmul<int8_per_tensor>(W, X).");
};
template <>
struct result_scalar<f32> : std::type_identity<float> {};
template <>
struct result_scalar<bf16> : std::type_identity<Eigen::bfloat16> {};
template <>
struct result_scalar<f16> : std::type_identity<Eigen::half> {};

/// What matmul does, once its arguments are known to be such.
template <class Out, storage_order Order, class W, class X, class... Option>
auto matmul_of(const W& w, const X& x, const Option&... option) {
  require(w.cols() == x.rows(), "the left operand of a product has ", w.cols(), " columns, the right one ", x.rows(),
          " rows; they must be equal.");
  const auto options = std::apply([](const auto&... o) { return read_product_options(o...); },
                                  options_of<matmul_option::product>(option...));
  const auto epilogue = options_of<matmul_option::epilogue>(option...);
  const auto scales = options_of<matmul_option::scales>(option...);
  const auto destination = options_of<matmul_option::destination>(option...);
  constexpr bool is_static = count_options<matmul_option::scales, Option...> == 1;

  const auto& weights = ops::as_operand(w);
  const auto compute = [&](const auto& activations) {
    using weights_type = std::remove_cvref_t<decltype(weights)>;
    using activations_type = std::remove_cvref_t<decltype(activations)>;
    using options_type = std::remove_cvref_t<decltype(options)>;
    constexpr index_t width = ops::tile_outputs<simd::best_arch, weights_type, activations_type, options_type::math>();
    const product_call<width, weights_type, activations_type, options_type, std::remove_const_t<decltype(epilogue)>>
        call{weights, activations, options, epilogue};
    const auto quantize_to = [&](const auto& span) {
      store_given_scales<Order>(span, scales);
      store_quantized<is_static ? scales_are::given : scales_are::computed>(call, span);
    };
    if constexpr (count_options<matmul_option::destination, Option...> == 1) {
      using given = decltype(std::get<0>(destination).dst);
      static_assert(is_writable<given>,
                    "qtensor: into(...) takes a matrix, tensor or span to write to, not a const one.");
      auto& dst = const_cast<std::remove_cvref_t<given>&>(std::get<0>(destination).dst);
      if constexpr (quantized<decltype(dst)>) {
        if constexpr (has_span<decltype(dst)>)
          quantize_to(dst.span());
        else
          quantize_to(dst);
      } else {
        static_assert(!is_static, "qtensor: with_scales(...) is for quantized results.");
        store_matrix(call, derived_of(dst));
      }
    } else if constexpr (quantization_scheme<Out>) {
      auto out = ops::tensor_to_fill<Out, matrix_extents, Order>(matrix_extents(call.outputs(), call.rows()),
                                                                 ops::granularity_among<Out>());
      quantize_to(out.span());
      return out;
    } else {
      static_assert(!is_static, "qtensor: with_scales(...) is for quantized results.");
      using scalar = typename result_scalar<Out>::type;
      constexpr int cols = [] {
        if constexpr (quantized<X>)
          return eigen_size(X::extents_type::static_extent(1));
        else
          return X::ColsAtCompileTime;
      }();
      matrix_of<scalar, outputs_at_compile_time<W>(), cols> y(call.outputs(), call.rows());
      store_matrix(call, y);
      return y;
    }
  };
  if constexpr (quantized<X>) {
    const auto view = as_view(x);
    return compute(ops::weights_of<std::remove_const_t<decltype(view)>, depth_axis::rows>(view));
  } else if constexpr (numbers_in_memory<X> && !std::is_same_v<typename X::Scalar, float>) {
    return with_source<col_major>(x, [&](const auto& rows) { return compute(as_floats(rows)); });
  } else {
    return with_floats(x, [&](const auto& floats) {
      const multiplicand<std::remove_cvref_t<decltype(floats)>> other(floats);
      return compute(other.source().transposed());
    });
  }
}

}  // namespace expr_detail

/// Y = W * X, with whatever is to be done to it: `matmul(W, X)`, `matmul<bf16>(P, X, on(pool))`,
///   matmul<along<0, mxfp8_e4m3>>(W, X, int8_activations, [&](auto acc, tile t) {
///     return (acc.colwise() + b.segment(t.row, t.rows)).cwiseMax(0.f); });
///
/// W: a quantized matrix of outputs x depth, or packed weights. X: an Eigen expression of float, half or bfloat16 or a
/// quantized matrix, depth x activations. Out: f32, bf16, f16 (an Eigen matrix) or a scheme (a col_major tensor, or one
/// of Order). Options, in any order: bf16_math, f16_math, int8_activations, int8_group_activations; on(executor);
/// into(destination), a tensor, span or Eigen matrix of the result's size that overlaps no operand; with_scales(scales,
/// zero points) for a static result; and one epilogue.
///
/// An epilogue is stages(...) of ops/epilogue.hpp or a function of a tile: a map of accumulated floats (outputs down,
/// activations across) and where it lies in Y. It returns any Eigen expression of that size, which may refer to what
/// the function captured but not to its local variables; it is called once for each tile, in any order, on the
/// executor's threads, where it must not throw. (Eigen reads colwise() and rowwise() broadcasts one by one: compilers
/// vectorise them from -O3 on, stages always are.) Quantized results are made tile by tile, in the first cache: static
/// ones, and dynamic ones whose groups lie along the outputs and divide a tile (a multiple of 16 outputs with AVX2 and
/// NEON, of 32 with AVX-512). Other dynamic schemes, results in row_major order and random roundings take a second pass
/// over a temporary matrix of floats. Bits are those of multiply_tiles, then of the epilogue, then of quantize. Throws
/// qtensor::error where sizes do not agree, and what multiply_tiles throws, before the result is written.
template <class Out = f32, storage_order Order = col_major, class W, class X, class... Option>
auto matmul(const W& w, const X& x, const Option&... option) {
  using namespace expr_detail;
  check_matmul_options<Option...>();
  static_assert(quantized<W> || packed_matrix<W>,
                "qtensor: matmul(W, X) takes a quantized tensor or view, or packed weights, as its first operand.");
  static_assert(quantized<X> || eigen_object<X>,
                "qtensor: matmul(W, X) takes an Eigen expression or a quantized matrix as its second operand.");
  return matmul_of<Out, Order>(w, derived_of(x), option...);
}

}  // namespace qtensor::inline QTENSOR_ABI
