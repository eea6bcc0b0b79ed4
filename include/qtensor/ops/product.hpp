// What every product is made of: panels of weights, tiles of results, and the sinks that take them.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/core/executor.hpp>
#include <qtensor/core/line_memory.hpp>
#include <qtensor/ops/pack.hpp>
#include <qtensor/ops/source.hpp>
#include <qtensor/simd/scales.hpp>
#include <vector>

// A product's result(m, n) = sum over k of x(m, k) w(n, k): rows m are activations, columns n outputs of the weights.
// Engines (product_int8, product_groups, product_float, ...) compute it tile by tile and hand every finished tile to a
// sink while it is in the first cache.
namespace qtensor::inline QTENSOR_ABI {

/// A finished part of a result: element (row + r, col + c) is values[r * stride + c]. The sink may change the values,
/// and what lies behind the last column up to a whole batch.
struct product_tile {
  index_t row, col, rows, cols;
  float* values;
  index_t stride;
};

namespace ops {

/// Panels of a matrix that is packed already.
template <quantization_scheme S, simd::usable_arch A>
class packed_panels {
 public:
  using scheme_type = S;
  using arch = A;
  using layout_type = packed_layout<S, A>;
  explicit packed_panels(const packed<S, A>& weights) : weights_(&weights) {}
  const layout_type& layout() const { return weights_->layout(); }
  float tensor_scale() const { return weights_->tensor_scale(); }
  packed_panel<S, A> panel(index_t p) { return weights_->panel(p); }
  packed_panel<S, A> panel_without_sums(index_t p) { return weights_->panel(p); }

 private:
  const packed<S, A>* weights_;
};

/// Panels of a matrix that is not: each is packed when it is asked for, into memory of the reader.
template <class Weights, simd::usable_arch A>
class packing_panels {
 public:
  using scheme_type = stored<typename Weights::scheme_type>;
  using arch = A;
  using layout_type = packed_layout<scheme_type, A>;
  explicit packing_panels(const Weights& weights)
      : packer_(weights),
        tensor_scale_(weights.tensor_scale()),
        one_{layout_type::width, layout().depth, layout().group} {
    if (one_.bytes() > few) more_ = qtensor::detail::line_memory(static_cast<std::size_t>(one_.bytes()));
  }
  layout_type layout() const { return {packer_.sizes().outputs, packer_.sizes().depth, packer_.sizes().group}; }
  float tensor_scale() const { return tensor_scale_; }
  const Weights& weights() const { return packer_.weights(); }
  /// A panel whose codes and sums are not filled in.
  packed_panel<scheme_type, A> parameters(index_t p) {
    packer_.fill_parameters(p, room(), one_, 0);
    return packed<scheme_type, A>::panel_in(room(), one_, 0);
  }
  packed_panel<scheme_type, A> panel(index_t p) {
    packer_.fill(p, room(), one_, 0);
    return packed<scheme_type, A>::panel_in(room(), one_, 0);
  }
  /// The same for products that do not read sums: they are null.
  packed_panel<scheme_type, A> panel_without_sums(index_t p) {
    packer_.fill_codes(p, room(), one_, 0);
    packed_panel<scheme_type, A> out = parameters(p);
    out.sums = nullptr;
    return out;
  }
  /// How far behind the codes at hand lies what is packed after panel p, for a product that asks for that while it
  /// multiplies; 0 where there is nothing to ask for.
  index_t bytes_ahead(index_t p) {
    const std::uint8_t* const next = packer_.behind(p);
    const std::uint8_t* const codes = packed<scheme_type, A>::panel_in(room(), one_, 0).codes;
    return next == nullptr ? 0 : reinterpret_cast<std::intptr_t>(next) - reinterpret_cast<std::intptr_t>(codes);
  }
  /// From now on such requests are left to the product.
  void leave_requests() { packer_.leave_requests(); }

 private:
  static constexpr index_t few = 16384;  ///< bytes that are no allocation
  std::byte* room() { return more_.data() != nullptr ? more_.data() : few_; }

  panel_packer<Weights, A> packer_;
  float tensor_scale_;
  layout_type one_;  ///< of a panel alone
  qtensor::detail::line_memory more_;
  alignas(64) std::byte few_[few];
};

/// Readers whose panels are packed on the way: they lie in memory of their own, one at a time, with nothing behind
/// them.
template <class Panels>
concept packs_panels = requires(const Panels& p) {
  p.weights();
};

/// A reader of the panels of packed weights or of weights_of a view: one for each thread.
template <simd::usable_arch A, class Weights>
auto panels_of(const Weights& weights) {
  if constexpr (packed_matrix<Weights>)
    return packed_panels<typename Weights::scheme_type, typename Weights::arch>(weights);
  else
    return packing_panels<Weights, A>(weights);
}

/// Their sizes, without a reader and its memory.
template <simd::usable_arch A, class Weights>
auto layout_of(const Weights& weights) {
  if constexpr (packed_matrix<Weights>)
    return weights.layout();
  else
    return panel_packer<Weights, A>(weights).sizes();
}

/// The largest magnitude of the zero points of packed weights, as packed numbers, or at most that.
template <quantization_scheme S, simd::usable_arch A>
std::int64_t zero_reach(const packed<S, A>& weights) {
  std::int64_t reach = 128;
  if constexpr (!packed_zero_of<S>::fits_a_byte)
    for (index_t p = 0; p < weights.layout().panels(); ++p) {
      const auto* zeros = weights.panel(p).zeros;
      for (index_t i = 0; i < weights.layout().panel_entries(); ++i)
        reach = std::max(reach, zeros[i] < 0 ? -std::int64_t{zeros[i]} : std::int64_t{zeros[i]});
    }
  return reach;
}

/// Throws where weights that are packed on the way have a zero point that leaves 32 bits as a packed number.
template <class W>
void check_zero_points(const W& weights) {
  if constexpr (!packed_matrix<W>) zero_reach(weights);
}

/// The largest magnitude that the exact sums of a product may have, from the zero_reach of both operands. Throws where
/// it does not fit 63 bits.
inline std::int64_t sum_reach(std::int64_t w_zeros, std::int64_t x_zeros, index_t depth) {
  const std::int64_t w_reach = w_zeros + 128, x_reach = x_zeros + 128;
  std::int64_t each = 0, all = 0;
  require(!__builtin_mul_overflow(w_reach, x_reach, &each) && !__builtin_mul_overflow(each, depth, &all),
          "a product of ", depth, " terms up to ", w_reach, " times ", x_reach,
          " does not fit 63 bits; zero points are too far away.");
  return all;
}

/// The scale of a row of quantized activations at k, of both levels.
template <class X>
float scale_of(const X& x, index_t row, index_t k) {
  using S = typename X::scheme_type;
  const float scale = decode<typename S::scale_format>(x.scale_code(row, k));
  if constexpr (S::has_tensor_scale)
    return rounded(scale * x.tensor_scale());
  else
    return scale;
}

/// The scales of a panel's outputs where they have one along the sum, of both levels.
template <class Panels>
void load_panel_scales(const packed_panel<typename Panels::scheme_type, typename Panels::arch>& panel,
                       float tensor_scale, float (&to)[Panels::layout_type::width]) {
  using S = typename Panels::scheme_type;
  simd::decode_scales<typename S::scale_format, typename Panels::arch>(panel.scales, Panels::layout_type::width, to);
  if constexpr (S::has_tensor_scale)
    for (float& s : to) s = rounded(s * tensor_scale);
}

/// How far codes are asked for while blocks of them are decoded: not where they are near, or packed on the way.
template <class Panels>
simd::fetch asks_for_codes(const typename Panels::layout_type& layout) {
  return packs_panels<Panels> || weights_are_near(layout) ? simd::fetch::nothing : simd::best_requests().weights;
}

/// Whether a few rows may leave it to the CPU to see which weights come next. As measured: Zen 3 wants to be asked.
template <class Tile>
bool sees_streams() {
  return Tile::many_registers || simd::is_intel();
}

/// Rows of activations that are made ready at once: of some 4 MB, a multiple of `step` where there are more.
inline index_t rows_at_once(index_t rows, index_t row_bytes, index_t step) {
  constexpr index_t most_bytes = index_t{4} << 20;
  return std::min(rows, std::max(most_bytes / row_bytes / step * step, step));
}

/// The same where they meet packed weights: few enough to stay in the second cache while panels pass by, `most` or,
/// where panels are long, enough tiles to each. Multiples of `height`.
inline index_t tile_rows_at_once(index_t rows, index_t most, index_t panel_bytes, index_t height) {
  const index_t blocks = divide_up(rows, std::max(most, height * (panel_bytes >> 15)));
  return round_up(divide_up(rows, blocks), height);
}

/// The result of a product without depth, as tiles of floats or of integers: zeros.
template <simd::usable_arch A, class Tile = product_tile, class Sink>
void give_zeros(index_t rows, index_t outputs, const Sink& sink) {
  constexpr index_t width = simd::float_tile<A>::panel;
  alignas(64) std::remove_pointer_t<decltype(Tile::values)> zeros[width];
  for (index_t r = 0; r < rows; ++r)
    for (index_t c = 0; c < outputs; c += width) {
      std::fill_n(zeros, width, 0);
      sink(Tile{r, c, 1, std::min(width, outputs - c), zeros, width});
    }
}

/// Splits a product over an executor: panels first, rows where there are fewer panels than threads. Calls
/// body(first panel, panels, first row, rows) for parts that cover everything once. `step` rows stay together.
template <executor By, class Body>
void for_product_parts(const By& by, index_t panels, index_t panel_work, index_t rows, index_t step, const Body& body) {
  const index_t threads = by.concurrency();
  if (panels >= threads || rows <= step)
    return qtensor::detail::in_ranges(by, panels, 1, panel_work * rows,
                                      [&](index_t p, index_t count) { body(p, count, index_t{0}, rows); });
  qtensor::detail::in_ranges(by, rows, step, panel_work * panels,
                             [&](index_t m, index_t count) { body(index_t{0}, panels, m, count); });
}

/// The sink that writes floats: y (=, +=, -=) alpha * tile, y(m, n) anywhere in memory; alpha 1 changes no bit.
template <simd::usable_arch A>
struct store_floats {
  static constexpr bool runs_beside = true;  ///< uses no matrix registers, see ops/integer_rows.hpp
  matrix_ref<float> y;
  float alpha = 1.f;
  accumulate mode = accumulate::assign;
  /// Whether rows of a tile go to rows of memory, as they are.
  bool keeps_rows() const { return y.col_stride == 1 && alpha == 1.f && mode == accumulate::assign; }
  void operator()(const product_tile& t) const {
    simd::finish_tile<A>(t.values, t.rows, t.cols, &y(t.row, t.col), y.row_stride, y.col_stride, alpha, mode, t.stride);
  }
};

}  // namespace ops

}  // namespace qtensor::inline QTENSOR_ABI
