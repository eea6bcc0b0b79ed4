// What happens to a product's tile in the first cache: stages that change it, and sinks that narrow or quantize it.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <qtensor/ops/dequantize.hpp>
#include <qtensor/ops/parameters.hpp>
#include <qtensor/ops/product.hpp>
#include <qtensor/ops/quantize.hpp>
#include <span>
#include <tuple>

// Rows of a tile are activations (tokens), columns are outputs of the weights. Every stage rounds each of its
// operations once; between stages values are floats in memory. NaN stays NaN.
namespace qtensor::inline QTENSOR_ABI {

/// What a binary stage does with a result and the other matrix's element.
enum class stage_operation { add, subtract, multiply, divide, minimum, maximum };

namespace ops {

/// Changes whole batches of a tile's rows, in place or into rows of other memory: change(values, row, col) with the
/// tile's coordinates. Columns past the end are computed as well: what they hold means nothing.
template <class Change>
void change_tile(const product_tile& t, const Change& change, float* to, index_t stride) {
  using A = simd::best_arch;
  for (index_t r = 0; r < t.rows; ++r)
    for (index_t c = 0; c < t.cols; c += simd::lanes<A>)
      simd::store(to + r * stride + c, change(simd::load<A>(t.values + r * t.stride + c), r, c));
}
template <class Change>
void change_tile(const product_tile& t, const Change& change) {
  change_tile(t, change, t.values, t.stride);
}

/// Numbers of the outputs of a tile from a range with one for each output, to be read in whole batches.
class output_numbers {
 public:
  static constexpr index_t most = 256;
  output_numbers(std::span<const float> all, index_t col, index_t cols) : at_(all.data() + col) {
    constexpr index_t step = simd::lanes<simd::best_arch>;
    if (round_up(cols, step) <= static_cast<index_t>(all.size()) - col) return;
    std::copy_n(at_, cols, here_);
    std::fill(here_ + cols, here_ + round_up(cols, step), 0.f);
    at_ = here_;
  }
  output_numbers(const output_numbers&) = delete;
  output_numbers& operator=(const output_numbers&) = delete;
  auto operator()(index_t c) const { return simd::load<simd::best_arch>(at_ + c); }

 private:
  const float* at_;
  alignas(64) float here_[most];
};

/// Calls part(tile) for parts of at most 256 columns and as many rows as `most_floats` of them are.
template <class Part>
void for_tile_parts(const product_tile& t, index_t most_floats, const Part& part) {
  if (t.cols <= output_numbers::most && t.rows * output_numbers::most <= most_floats) return part(t);
  const index_t cols_each = std::min(output_numbers::most, most_floats);
  for (index_t c = 0; c < t.cols; c += cols_each) {
    const index_t cols = std::min(cols_each, t.cols - c), rows_each = std::max(most_floats / cols_each, index_t{1});
    for (index_t r = 0; r < t.rows; r += rows_each)
      part(product_tile{t.row + r, t.col + c, std::min(rows_each, t.rows - r), cols, t.values + r * t.stride + c,
                        t.stride});
  }
}

template <stage_operation Operation, class F>
auto combined(const F& a, const F& b) {
  if constexpr (Operation == stage_operation::add)
    return simd::add(a, b);
  else if constexpr (Operation == stage_operation::subtract)
    return simd::sub(a, b);
  else if constexpr (Operation == stage_operation::multiply)
    return simd::mul(a, b);
  else if constexpr (Operation == stage_operation::divide)
    return simd::div(a, b);
  else if constexpr (Operation == stage_operation::minimum)
    return simd::select(a == a, simd::min(a, b), a);
  else
    return simd::select(a == a, simd::max(a, b), a);
}

}  // namespace ops

/// Stages, made by these functions; the ranges and matrices they are given must outlive them. check(rows, outputs)
/// throws where a stage has another size than the result.
namespace stage {

// Stages that change one number after the other say so by `on_tile`, a function of (values, row, column) of a tile:
// those that follow each other run as one.

template <stage_operation Operation>
struct per_output {
  std::span<const float> numbers;
  void check(index_t, index_t outputs) const {
    require(static_cast<index_t>(numbers.size()) == outputs, "a stage is given ", numbers.size(),
            " numbers, but the product has ", outputs, " outputs; it takes one for each of them.");
  }
  struct on_tile {
    ops::output_numbers number;
    on_tile(const per_output& stage, const product_tile& t) : number(stage.numbers, t.col, t.cols) {}
    auto operator()(const auto& v, index_t, index_t c) const { return ops::combined<Operation>(v, number(c)); }
  };
};
/// + b[n], one number for each output.
inline per_output<stage_operation::add> bias(std::span<const float> b) { return {b}; }

template <stage_operation Operation>
struct with_number {
  float number;
  void check(index_t, index_t) const {}
  struct on_tile {
    simd::floats<simd::best_arch> number;
    on_tile(const with_number& stage, const product_tile&) : number(stage.number) {}
    auto operator()(const auto& v, index_t, index_t) const { return ops::combined<Operation>(v, number); }
  };
};
/// * s, or * s[n].
inline with_number<stage_operation::multiply> scale(float s) { return {s}; }
inline per_output<stage_operation::multiply> scale(std::span<const float> s) { return {s}; }

struct clipped {
  float low, high;
  void check(index_t, index_t) const {
    require(low <= high, "a stage clips to [", low, ", ", high, "]; the first must not be above the second.");
  }
  struct on_tile {
    simd::floats<simd::best_arch> low, high;
    on_tile(const clipped& stage, const product_tile&) : low(stage.low), high(stage.high) {}
    // min and max give their second operand where either is NaN.
    auto operator()(const auto& v, index_t, index_t) const { return simd::min(high, simd::max(low, v)); }
  };
};
/// Values below low become low, values above high become high.
inline clipped clip(float low, float high) { return {low, high}; }

struct rectified {
  void check(index_t, index_t) const {}
  struct on_tile {
    on_tile(const rectified&, const product_tile&) {}
    auto operator()(const auto& v, index_t, index_t) const { return simd::max(simd::floats<simd::best_arch>(0.f), v); }
  };
};
/// Values below 0 become 0; -0 stays.
inline rectified relu() { return {}; }

template <class F>
struct applied {
  F f;
  void check(index_t, index_t) const {}
  void operator()(const product_tile& t) const {
    for (index_t r = 0; r < t.rows; ++r)
      for (index_t c = 0; c < t.cols; ++c) t.values[r * t.stride + c] = f(t.values[r * t.stride + c]);
  }
};
/// f(value), a float of a float: `apply([](float v) { return v / (1 + std::exp(-v)); })`.
template <class F>
applied<F> apply(F f) {
  static_assert(std::is_invocable_r_v<float, const F&, float>,
                "qtensor: stage::apply takes a function of one float that returns a float.");
  return {std::move(f)};
}

template <stage_operation Operation, tile_source X>
struct with_matrix {
  X x;
  float factor;
  void check(index_t rows, index_t outputs) const {
    require(x.rows() == rows && x.cols() == outputs, "a stage combines a product of ", rows, "x", outputs,
            " (activations by outputs) with a matrix of ", x.rows(), "x", x.cols(), "; sizes must agree.");
  }
  void operator()(const product_tile& whole) const {
    constexpr index_t most = 2048;
    ops::for_tile_parts(whole, most, [&](const product_tile& t) {
      constexpr index_t stride = ops::output_numbers::most;
      alignas(64) float other[most];
      x.read(t.row, t.rows, t.col, t.cols, other, stride);
      const simd::floats<simd::best_arch> by(factor);
      ops::change_tile(t, [&](const auto& v, index_t r, index_t c) {
        const auto o = simd::load<simd::best_arch>(other + r * stride + c);
        return ops::combined<Operation>(v, factor == 1.f ? o : simd::mul(o, by));
      });
    });
  }
};

/// value (op) factor * x(m, n) for a source of M x N floats, or a quantized matrix with scales and zero points of its
/// own: `binary<stage_operation::multiply>(x)`.
template <stage_operation Operation, class X>
auto binary(const X& x, float factor = 1.f) {
  if constexpr (quantized<X>) {
    const auto rows = source_in_order<row_major>(as_view(x));
    return with_matrix<Operation, std::remove_const_t<decltype(rows)>>{rows, factor};
  } else {
    return with_matrix<Operation, X>{x, factor};
  }
}
/// + factor * x(m, n): the sum with a matrix that is there already.
template <class X>
auto sum(const X& x, float factor = 1.f) {
  return stage::binary<stage_operation::add>(x, factor);
}

template <quantization_scheme S>
struct rounded_to {
  float step;
  std::int32_t zero;
  void check(index_t, index_t) const {
    require(is_finite(step) && step > 0.f, "a stage quantizes with the scale ", step,
            "; it must be finite and positive.");
    const auto [low, high] = ops::zero_point_range<S>();
    require(zero >= low && zero <= high, "a stage quantizes with the zero point ", zero, "; it must be from ", low,
            " to ", high, ".");
  }
  void operator()(const product_tile& whole) const {
    ops::for_tile_parts(whole, ops::output_numbers::most, [&](const product_tile& t) {
      qtensor::detail::code_unit_t<S> codes[ops::output_numbers::most];
      for (index_t r = 0; r < t.rows; ++r) {
        simd::encode_uniform<S>(t.values + r * t.stride, t.cols, element_scale{step}, zero, codes);
        simd::decode_uniform<S>(codes, t.cols, element_scale{step}, zero, t.values + r * t.stride);
      }
    });
  }
};
/// Quantized to codes of S under one scale and zero point, and back: what a following quantized layer would see.
template <quantization_scheme S>
rounded_to<S> round_trip(float scale, std::int32_t zero_point = 0) {
  static_assert(ops::walks_rows<S> && !S::has_tensor_scale,
                "qtensor: stage::round_trip<S> takes schemes with one level of scales, codes in order and a rounding "
                "without random numbers.");
  return {scale, zero_point};
}

}  // namespace stage

/// What the functions of qtensor::stage return, or a type of the caller's that is made like them: with an on_tile, or
/// called with a tile.
template <class T>
concept product_stage = requires(const T& s, const product_tile& t, index_t n) {
  s.check(n, n);
  requires requires { s(t); } || requires {
    typename T::on_tile;
  };
};

/// Stages one after the other: `stages(stage::bias(b), stage::relu())`.
template <class... Stage>
class epilogue_stages {
 public:
  explicit epilogue_stages(Stage... stage) : list_(std::move(stage)...) {}
  void check(index_t rows, index_t outputs) const {
    std::apply([&](const auto&... one) { (one.check(rows, outputs), ...); }, list_);
  }
  void operator()(const product_tile& t) const { over(t, nullptr); }
  /// Whether the last stage can write elsewhere than into the tile: whole batches of columns.
  static bool writes_rows(const product_tile& t) {
    if constexpr (sizeof...(Stage) > 0)
      return runs_with_others<sizeof...(Stage) - 1> && t.cols % simd::lanes<simd::best_arch> == 0;
    else
      return false;
  }
  /// The same with the last values to rows of y, where writes_rows(t).
  void operator()(const product_tile& t, const matrix_ref<float>& y) const { over(t, &y); }

 private:
  /// Whether stage N changes one number after the other.
  template <std::size_t N>
  static constexpr bool runs_with_others = requires {
    typename std::tuple_element_t<N, std::tuple<Stage...>>::on_tile;
  };
  void over(const product_tile& whole, const matrix_ref<float>* y) const {
    ops::for_tile_parts(whole, index_t{1} << 20, [&](const product_tile& t) { run<0>(t, y); });
  }
  /// Stages from First on, after those that wait to run as one.
  template <std::size_t First, class... Waiting>
  void run(const product_tile& t, const matrix_ref<float>* y, const Waiting&... waiting) const {
    if constexpr (First < sizeof...(Stage)) {
      const auto& stage = std::get<First>(list_);
      if constexpr (runs_with_others<First>) {
        const typename std::tuple_element_t<First, std::tuple<Stage...>>::on_tile next(stage, t);
        run<First + 1>(t, y, waiting..., next);
      } else {
        change(t, nullptr, waiting...);
        stage(t);
        run<First + 1>(t, y);
      }
    } else {
      change(t, y, waiting...);
    }
  }
  template <class... Waiting>
  static void change(const product_tile& t, const matrix_ref<float>* y, const Waiting&... waiting) {
    if constexpr (sizeof...(Waiting) > 0) {
      const auto all = [&](const auto& from, index_t r, index_t c) {
        auto v = from;
        ((v = waiting(v, r, c)), ...);
        return v;
      };
      if (y == nullptr)
        ops::change_tile(t, all);
      else
        ops::change_tile(t, all, &(*y)(t.row, t.col), y->row_stride);
    }
  }

  std::tuple<Stage...> list_;
};
template <class... Stage>
epilogue_stages<Stage...> stages(Stage... stage) {
  static_assert((product_stage<Stage> && ...),
                "qtensor: stages(...) takes what the functions of qtensor::stage return: bias, scale, clip, relu, "
                "apply, sum, binary, round_trip.");
  return epilogue_stages<Stage...>(std::move(stage)...);
}

namespace ops {

/// The sink of stages, then of `Sink`.
template <class Stages, class Sink>
struct staged {
  const Stages& stages;
  const Sink& sink;
  void operator()(const product_tile& t) const {
    if constexpr (requires { sink.keeps_rows(); })
      if (sink.keeps_rows() && Stages::writes_rows(t)) return stages(t, sink.y);
    stages(t);
    sink(t);
  }
};

/// The sink that writes numbers of F (bf16, f16; ties to even, overflow to infinity) as their 16 bits.
template <format F>
struct store_narrow {
  matrix_ref<storage_t<F>> y;
  void operator()(const product_tile& t) const {
    for (index_t r = 0; r < t.rows; ++r)
      if (y.col_stride == 1)
        simd::narrow_floats<F>(t.values + r * t.stride, t.cols, &y(t.row + r, t.col));
      else
        for (index_t c = 0; c < t.cols; ++c)
          simd::narrow_floats<F>(t.values + r * t.stride + c, 1, &y(t.row + r, t.col + c));
  }
};

/// A quantized result, by its lines: each is an activation's outputs in memory (a row_major tensor of M x N, or the
/// col_major one of N x M that it is the transpose of).
template <quantization_scheme S, tensor_extents E, storage_order O>
class quantized_lines {
 public:
  static constexpr int line_axis = O::axis(2, 0), output_axis = O::axis(2, 1);
  explicit quantized_lines(const tensor_span<S, E, O>& out) : out_(out), sizes_(out.storage_extents()) {}
  index_t lines() const { return sizes_[0]; }
  index_t outputs() const { return sizes_[1]; }
  const tensor_span<S, E, O>& span() const { return out_; }

 private:
  tensor_span<S, E, O> out_;
  typename tensor_span<S, E, O>::index_array sizes_;
};

/// The sink that quantizes each tile by the scheme's rule. Only where may_quantize(out, width) says so: scales are of
/// one line, and of outputs that panels of `width` do not cut.
template <quantization_scheme S, tensor_extents E, storage_order O>
struct quantize_tiles {
  quantized_lines<S, E, O> out;

  static bool may_quantize(const tensor_span<S, E, O>& out, index_t width) {
    if constexpr (random_rounding<typename S::rounding> || S::has_tensor_scale) {
      return false;
    } else {
      const auto& block = out.scale_grid().block;
      return block[0] == 1 && (width % block[1] == 0 || width >= out.storage_extents()[1]);
    }
  }
  void operator()(const product_tile& t) const {
    using lines = quantized_lines<S, E, O>;
    const auto part =
        out.span().template slice<lines::line_axis>(t.row, t.rows).template slice<lines::output_axis>(t.col, t.cols);
    if constexpr (walks_rows<S>)
      if (t.cols == t.stride && t.rows * t.cols <= most_together && t.cols * S::code_format::bits % 8 == 0)
        return quantize_together(t, part);
    quantize_into(matrix_ref<const float>{t.values, t.rows, t.cols, t.stride, 1}, part);
  }

 private:
  static constexpr index_t most_together = 1024;

  /// Rows without gaps: quantized as one run into memory of its own, then dealt out.
  template <class Part>
  static void quantize_together(const product_tile& t, const Part& part) {
    using dense = tensor_span<S, matrix_extents, O>;
    using index_array = typename dense::index_array;
    const auto sizes = reordered<O>(index_array{t.rows, t.cols});
    alignas(64) typename dense::code_unit codes[most_together];
    std::remove_pointer_t<typename dense::scale_pointer> scales[most_together];
    [[maybe_unused]] std::remove_pointer_t<typename dense::zero_pointer> zeros[S::has_zero_point ? most_together : 1];
    typename dense::arrays memory{codes, scales};
    if constexpr (S::has_zero_point) memory.zero_points = zeros;
    const dense whole({matrix_extents(sizes[0], sizes[1]), part.granularity(), part.zero_granularity()}, memory);
    quantize_into(matrix_ref<const float>{t.values, t.rows, t.cols, t.cols, 1}, whole);

    const auto deal = [&](const auto& from_grid, const auto& to_grid, const auto* from, auto entries_of) {
      const index_t count = divide_up(t.cols, from_grid.block[1]);
      for (index_t r = 0; r < t.rows; ++r, from += count) {
        auto* to = entries_of(index_array{r, 0});
        for (index_t i = 0; i < count; ++i) to[i * to_grid.stride[1]] = from[i];
      }
    };
    deal(whole.scale_grid(), part.scale_grid(), scales, [&](const index_array& at) { return part.storage_scales(at); });
    if constexpr (S::has_zero_point)
      deal(whole.zero_grid(), part.zero_grid(), zeros,
           [&](const index_array& at) { return part.storage_zero_points(at); });
    const index_t units = whole.row_strides()[0];
    for (index_t r = 0; r < t.rows; ++r) std::copy_n(codes + r * units, units, part.row({r, 0}));
  }
};

/// The sink that stores codes under scales (and zero points) that are in the tensor already. Any granularity.
template <quantization_scheme S, tensor_extents E, storage_order O>
class encode_tiles {
  using unit = qtensor::detail::code_unit_t<S>;
  using encoder = simd::encoder_of<S, simd::from_f32>;
  static constexpr index_t most_together = 1024, encoded_at_once = 4 * simd::lanes<simd::best_arch>;
  /// Whole bytes go to their place at once.
  static constexpr bool writes_bytes = S::code_format::bits == 8 && sizeof(unit) == 1 && requires {
    encoder::way_of(element_scale{}, 0);
  };

 public:
  static constexpr bool may_encode = walks_rows<S> && !S::has_tensor_scale;

  explicit encode_tiles(const quantized_lines<S, E, O>& out)
      : out_(out),
        codes_(out.span().row(index(0, 0))),
        line_units_(out.span().row_strides()[0]),
        one_for_line_(is_shared(1, out.outputs())),
        one_for_column_(is_shared(0, out.lines())) {
    if (!one_for_line_ || !one_for_column_ || out.lines() == 0 || out.outputs() == 0) return;
    load(0, 0, 1, &step_, &zero_);
    if constexpr (writes_bytes) way_ = encoder::way_of(element_scale{step_}, zero_);
  }
  void operator()(const product_tile& t) const {
    if (one_for_line_ && one_for_column_) {
      // Rows that are no whole steps of the encoder cost it more than to be cut.
      const bool joins = t.cols == t.stride && t.rows * t.cols <= most_together;
      if (joins && (!writes_bytes || t.cols % encoded_at_once != 0)) return store_together(t);
      if constexpr (writes_bytes)
        return encoder::uniform_bytes(way_, t.values, t.stride, t.rows, t.cols, element_scale{step_}, zero_,
                                      reinterpret_cast<std::uint8_t*>(codes(t.row, t.col)), line_units_);
    }
    for_tile_parts(t, index_t{1} << 20, [&](const product_tile& part) {
      if (one_for_line_)
        store_lines(part);
      else
        store_columns(part);
    });
  }

 private:
  static auto index(index_t line, index_t output) { return typename tensor_span<S, E, O>::index_array{line, output}; }
  bool is_shared(std::size_t axis, index_t size) const {
    const auto& span = out_.span();
    if constexpr (S::has_zero_point)
      if (span.zero_grid().block[axis] < size) return false;
    return span.scale_grid().block[axis] >= size;
  }
  static constexpr index_t units_of(index_t elements) {
    constexpr index_t bits = S::code_format::bits;
    return bits < 8 ? elements * bits / 8 : elements;
  }
  unit* codes(index_t line, index_t output) const { return codes_ + line * line_units_ + units_of(output); }
  void load(index_t line, index_t output, index_t count, float* scales, std::int32_t* zeros) const {
    const auto at = index(line, output);
    load_scales(out_.span(), at, output, count, 1, scales);
    if constexpr (S::has_zero_point)
      load_zero_points(out_.span(), at, output, count, 1, zeros);
    else
      std::fill_n(zeros, count, 0);
  }
  /// Rows without gaps under one scale: one run of codes, cut afterwards.
  void store_together(const product_tile& t) const {
    alignas(64) unit run[most_together];
    if constexpr (writes_bytes)
      encoder::uniform_bytes(way_, t.values, 0, 1, t.rows * t.cols, element_scale{step_}, zero_,
                             reinterpret_cast<std::uint8_t*>(run), 0);
    else
      simd::encode_uniform<S>(t.values, t.rows * t.cols, element_scale{step_}, zero_, run);
    const index_t bytes = units_of(t.cols) * index_t{sizeof(unit)}, piece = 16;
    for (index_t r = 0; r < t.rows; ++r) {
      auto* to = reinterpret_cast<std::byte*>(codes(t.row + r, t.col));
      const auto* from = reinterpret_cast<const std::byte*>(run) + r * bytes;
      index_t i = 0;
      for (; i + piece <= bytes; i += piece) std::memcpy(to + i, from + i, piece);
      if (i < bytes) std::memcpy(to + i, from + i, static_cast<std::size_t>(bytes - i));
    }
  }
  void store_lines(const product_tile& t) const {
    for (index_t r = 0; r < t.rows; ++r) {
      float step;
      std::int32_t zero;
      load(t.row + r, t.col, 1, &step, &zero);
      simd::encode_uniform<S>(t.values + r * t.stride, t.cols, element_scale{step}, zero, codes(t.row + r, t.col));
    }
  }
  void store_columns(const product_tile& t) const {
    alignas(64) float scales[output_numbers::most];
    alignas(64) std::int32_t zeros[output_numbers::most];
    const index_t rows = one_for_column_ ? t.rows : 1;
    for (index_t r = 0; r < t.rows; r += rows) {
      load(t.row + r, t.col, t.cols, scales, zeros);
      simd::encode_columns<S>(t.values + r * t.stride, rows, t.stride, t.cols, scales,
                              S::has_zero_point ? zeros : nullptr, codes(t.row + r, t.col), line_units_);
    }
  }

  quantized_lines<S, E, O> out_;
  unit* codes_;
  index_t line_units_;
  bool one_for_line_, one_for_column_;
  float step_ = 1.f;
  std::int32_t zero_ = 0;
  simd::uniform_way way_ = simd::uniform_way::safe;
};

}  // namespace ops

}  // namespace qtensor::inline QTENSOR_ABI
