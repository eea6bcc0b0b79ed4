// Products in bf16: operands rounded to bf16 where that saves time, exact products, sums in f32 in the CPU's own order.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/ops/line_array.hpp>
#include <qtensor/ops/product_float.hpp>
#include <qtensor/simd/gemm_bf16_squares.hpp>

namespace qtensor::inline QTENSOR_ABI {

namespace ops {

/// Whether codes of S less their zero points are bf16 numbers: then a scale that does not change along k may wait until
/// the sums are there.
template <quantization_scheme S>
inline constexpr bool has_bf16_numbers = [] {
  using F = typename S::code_format;
  if constexpr (S::has_offset) {
    return false;
  } else if constexpr (F::is_integer) {
    if constexpr (S::has_zero_point)
      return F::bits <= 8 && S::zero_point_format::bits <= 8 && S::zero_point_format::is_signed == F::is_signed;
    else
      return F::bits <= 8;
  } else {
    return simd::detail::fits_bf16<F> && is_finite(decode_table<F>[0]);  // code 0 fills up quads
  }
}();

/// Rows of x as units of the tiles, quads of every group padded with zeros. Room for `most` rows.
template <simd::usable_arch A>
class bf16_operand {
  static constexpr index_t line = simd::cache_line / index_t{sizeof(std::uint16_t)}, rows_each = 16;

 public:
  bf16_operand(index_t most, index_t depth, index_t group, index_t quads)
      : depth_(depth),
        group_(group % 4 == 0 ? depth : group),
        stride_((divide_up(quads * 4, line) | 1) * line),  // an odd number of lines: rows spread over the first cache
        units_(most * stride_),
        floats_(static_cast<std::size_t>(rows_each * depth)) {}

  template <tile_source X>
  void fill(const X& x, index_t first, index_t count) {
    for_each_float_run(x, first, count, rows_each, floats_.data(),
                       [&](index_t begin, index_t rows, const float* from, index_t step) {
                         for (index_t r = begin; r < begin + rows; ++r, from += step) {
                           std::uint16_t* to = units_.data() + r * stride_;
                           for (index_t k = 0; k < depth_; k += group_, to += round_up(group_, 4))
                             simd::pack_bf16_units<A>(from + k, std::min(group_, depth_ - k), to);
                         }
                       });
  }
  /// From row r and quad q on.
  simd::bf16_rows from(index_t r, index_t q) const { return {units_.data() + r * stride_ + 4 * q, stride_}; }

 private:
  index_t depth_, group_, stride_;
  line_array<std::uint16_t> units_;
  std::vector<float> floats_;
};

/// Blocks in which weights are decoded, as measured: few rows want short ones, unless codes of a byte take long to
/// decode, or to come from memory. Codes that are not near are asked for a block ahead; for matrix registers nibbles
/// alone, which are two streams of a wide panel that change every few lines. Where rows do not stay in the second
/// cache, blocks of several panels meet the same part of them in turn.
struct bf16_blocks {
  index_t rows, panels, quads;
  simd::fetch asks;

  template <class Tiles, class Panels>
  static bf16_blocks of(const typename Panels::layout_type& layout, index_t rows, bool scaled_last) {
    using A = typename Panels::arch;
    constexpr bool is_nibble = Panels::layout_type::is_nibble, waits = Tiles::waits_for_codes;
    constexpr index_t short_block = 32, few_rows = 4 * simd::float_tile<A>::max_rows, staying_bytes = index_t{1} << 20;
    const bool comes_late = is_beyond_caches(layout.panels() * layout.panel_bytes() / index_t{sizeof(float)});
    const bool takes_long = waits && !is_nibble && (!scaled_last || comes_late);
    const index_t most = rows <= few_rows && !takes_long ? short_block : Tiles::quads_at_once;
    const index_t row_bytes = 2 * layout.depth, row_block = float_row_block<A>(rows, row_bytes, Tiles::row_step);
    const bool stay = packs_panels<Panels> || row_block * row_bytes < staying_bytes;
    return {row_block, stay ? 1 : Tiles::panels_together, std::min(most, layout.quads()),
            is_nibble || !waits ? asks_for_codes<Panels>(layout) : simd::fetch::nothing};
  }
};

/// Rows times wide panels by simd::bf16_vectors or bf16_squares.
template <class Tiles, class Panels, class Sink>
class bf16_block_product {
  using A = typename Panels::arch;
  using S = typename Panels::scheme_type;
  using layout_type = typename Panels::layout_type;
  using tile = simd::float_tile<A>;
  static constexpr index_t width = tile::panel, quad_bytes = layout_type::quad_bytes, stride = Tiles::panel_stride;

 public:
  /// For `rows` rows in all.
  bf16_block_product(wide_panel<Panels>& weights, const layout_type& layout, index_t rows, const Sink& sink)
      : weights_(weights),
        layout_(layout),
        sink_(sink),
        scaled_last_(has_bf16_numbers<S> && layout.groups() == 1),
        blocks_(bf16_blocks::of<Tiles, Panels>(layout, rows, scaled_last_)),
        values_(blocks_.rows, layout.depth, layout.group, layout.quads()),
        space_(blocks_.panels * blocks_.rows * width + round_up(2 * blocks_.quads, Tiles::pair_step) * stride),
        block_(reinterpret_cast<std::uint32_t*>(sums_of(blocks_.panels))) {}

  /// Rows [first, first + rows) of x times wide panels [panel, panel + panels).
  template <tile_source X>
  void over(index_t panel, index_t panels, const X& x, index_t first, index_t rows) {
    for (index_t m = 0; m < rows; m += blocks_.rows) {
      const index_t some = std::min(blocks_.rows, rows - m);
      values_.fill(x, first + m, some);
      for (index_t p = 0; p < panels; p += blocks_.panels)
        sum_panels(panel + p, std::min(blocks_.panels, panels - p), first + m, some);
    }
  }

 private:
  float* sums_of(index_t i) { return space_.data() + i * blocks_.rows * width; }

  /// The rows that are ready, the first of which is `row`, times panels [first, first + count).
  void sum_panels(index_t first, index_t count, index_t row, index_t rows) {
    const index_t quads = layout_.quads(), panel_quads = wide_panel<Panels>::parts * quads;
    for (index_t q = 0; q < quads; q += blocks_.quads) {
      const index_t end = std::min(q + blocks_.quads, quads), to_first = (count - 1) * panel_quads;
      for (index_t i = 0; i < count; ++i) {
        const index_t to_next = i + 1 < count ? panel_quads : end < quads ? blocks_.quads - to_first : panel_quads - q;
        if (count > 1 || q == 0) weights_.go_to(first + i, layout_.outputs);
        decode(q, end, to_next);
        for (index_t r = 0, done = 0; r < rows; r += done) {
          done = Tiles::rows(rows - r);
          float* const sums = sums_of(i) + r * width;
          Tiles::sum(block_, stride, weights_.vectors(), values_.from(r, q), done, 2 * (end - q), sums, q == 0);
          if (end == quads) give(row + r, done, (first + i) * width, sums);
        }
      }
    }
  }

  /// Quads [q, end) of the present panel to the block. What is decoded next lies so many quads behind.
  void decode(index_t q, index_t end, index_t to_next) {
    const auto what = scaled_last_ ? simd::bf16_weights::numbers : simd::bf16_weights::values;
    weights_.for_groups(q, end, {blocks_.asks, false, to_next * quad_bytes},
                        [&](const auto& decoder, index_t col, index_t from, const std::uint8_t* codes, index_t depth,
                            const auto& parameters) {
                          decoder.pairs_of(what, codes, depth, parameters, block_ + (from - q) * 2 * stride + col,
                                           stride);
                          if (scaled_last_ && from == q) keep_scales(col, parameters);
                        });
    const index_t pairs = 2 * (end - q);
    std::fill(block_ + pairs * stride, block_ + round_up(pairs, Tiles::pair_step) * stride, 0u);
  }
  /// The scales of the panel's columns from col on, which sums are multiplied by.
  void keep_scales(index_t col, const auto& parameters) {
    for (index_t c = 0; c < parameters.width; ++c) {
      scales_[col + c] = parameters.scales[c];
      if constexpr (S::has_tensor_scale) scales_[col + c] = rounded(scales_[col + c] * parameters.tensor_scale);
    }
  }

  /// Sums of rows from `row` on and of the present panel, whose first column is `col`, to the sink.
  void give(index_t row, index_t rows, index_t col, float* sums) {
    for (index_t r = 0, some = 0; r < rows; r += some, sums += some * width) {
      some = tile::rows(rows - r);
      if (scaled_last_)
        for (index_t i = 0; i < some; ++i)
          for (index_t c = 0; c < weights_.vectors() * simd::lanes<A>; c += simd::lanes<A>) {
            float* at = sums + i * width + c;
            simd::store(at, simd::mul(simd::load<A>(at), simd::load<A>(scales_ + c)));
          }
      sink_(product_tile{row + r, col, some, weights_.cols(), sums, width});
    }
  }

  wide_panel<Panels>& weights_;
  const layout_type& layout_;
  const Sink& sink_;
  const bool scaled_last_;
  const bf16_blocks blocks_;
  bf16_operand<A> values_;
  product_space space_;
  std::uint32_t* const block_;
  alignas(64) float scales_[width];
};

/// Dots of pairs while codes are decoded to their numbers: a group's sum is multiplied by its scale and added to sums.
struct direct_dots {
  static constexpr bool minds_missing_rows = false;
  /// As in direct_chains; several rows have other things to do meanwhile.
  template <index_t Rows>
  static constexpr index_t depth_at_once = Rows == 1 ? 128 : 256;
  /// Up to which number of rows this is faster than blocks, measured.
  static constexpr index_t most_rows_of_all = 32;
  template <class Decoder>
  static constexpr index_t most_rows = Decoder::is_nibble&& Decoder::looks_pairs_up ? most_rows_of_all : 8;

  template <index_t, class>
  static constexpr bool takes_dots = false;  // of values: numbers are multiplied here

  template <index_t Rows, index_t Streams, simd::quad_values, class Decoder, class Run>
  [[gnu::noinline]] static void run(const Decoder& decoder, const Run (&streams)[Streams], float tensor_scale,
                                    const std::uint16_t* const (&rows)[Rows], index_t group, index_t depth,
                                    float* sums) {
    using A = typename Decoder::arch;
    using dot = simd::bf16_dot<A>;
    constexpr index_t step = simd::lanes<A>, vectors = Decoder::vectors, width = Decoder::width, ahead = 4096;
    Run at[Streams];
    const std::uint16_t* x[Rows];
    const auto each = [](const auto& f) QTENSOR_INLINE_LAMBDA {
      simd::detail::repeat<Streams>([&](auto s) QTENSOR_INLINE_LAMBDA {
        simd::detail::repeat<vectors>([&](auto v) QTENSOR_INLINE_LAMBDA { f(s, v); });
      });
    };
    simd::detail::repeat<Rows>([&](auto r) QTENSOR_INLINE_LAMBDA { x[r] = rows[r]; });
    simd::detail::repeat<Streams>([&](auto s) QTENSOR_INLINE_LAMBDA { at[s] = streams[s]; });
    for (; depth > 0; depth -= group) {
      simd::detail::keep_order();  // g++ would keep the sums of all groups in registers, and spill them
      simd::floats<A> sum[Rows][Streams][vectors];
      each([&](auto s, auto v) QTENSOR_INLINE_LAMBDA {
        simd::detail::repeat<Rows>([&](auto r) QTENSOR_INLINE_LAMBDA { sum[r][s][v] = simd::floats<A>(0.f); });
      });
      for (index_t left = std::min(group, depth); left > 0; left -= 4) {
        simd::detail::repeat<Streams>([&](auto s) QTENSOR_INLINE_LAMBDA { at[s].template ask<ahead>(); });
        each([&](auto s, auto v) QTENSOR_INLINE_LAMBDA {
          const auto pairs = decoder.numbers_in_pairs(
              at[s].codes, v, Decoder::of(at[s].scales, at[s].zeros, at[s].offsets, tensor_scale, v));
          simd::detail::repeat<2>([&](auto i) QTENSOR_INLINE_LAMBDA {
            simd::detail::repeat<Rows>([&](auto r) QTENSOR_INLINE_LAMBDA {
              sum[r][s][v] = dot::dot(sum[r][s][v], dot::of(pairs[i]), dot::broadcast(x[r] + 2 * i));
            });
          });
        });
        simd::detail::repeat<Streams>([&](auto s) QTENSOR_INLINE_LAMBDA { at[s].codes += Decoder::quad_bytes; });
        simd::detail::repeat<Rows>([&](auto r) QTENSOR_INLINE_LAMBDA { x[r] += 4; });
      }
      each([&](auto s, auto v) QTENSOR_INLINE_LAMBDA {
        const auto lane = Decoder::of(at[s].scales, at[s].zeros, at[s].offsets, tensor_scale, v);
        simd::floats<A> scale = lane.scale;
        if constexpr (Decoder::has_tensor_scale) scale = simd::mul(scale, lane.tensor_scale);
        simd::detail::repeat<Rows>([&](auto r) QTENSOR_INLINE_LAMBDA {
          float* to = sums + (r * Streams + s) * width + v * step;
          simd::store(to, simd::fma(sum[r][s][v], scale, simd::load<A>(to)));
        });
      });
      simd::detail::repeat<Streams>([&](auto s) QTENSOR_INLINE_LAMBDA { at[s].to_next_group(); });
    }
  }
  template <class Layout>
  static index_t at(const Layout& layout, index_t g) {
    return g * layout.group_quads() * 4;
  }
};

/// From how many rows on squares are faster than dots of pairs while codes are decoded, measured.
inline constexpr index_t least_square_rows = 8;
/// Groups that fill a quad; pairs are half empty in shorter ones, whose floats are multiplied faster.
inline constexpr index_t least_bf16_group = 4;

/// result(m, n) = sum over k of bf16(x(m, k)) w(n, k), w dequantized and, where the CPU has an instruction for that
/// which is faster than fma, rounded to bf16; products are exact, sums are f32. There weights with one scale an output
/// whose codes are bf16 numbers (FP8, MX elements, integers of 8 bits) enter as their codes, and the sum is multiplied
/// by the scale; with few rows those with groups do so, too, group by group. Elsewhere, and where groups are shorter
/// than 4, it is one chain of fma.
///
/// |result - exact product of the dequantized operands| <= (2^-7 + 2^-15 + K 2^-23) * sum over k of |x w|, as long as
/// sums of |x * code| are finite where a scale waits; in addition operands, products and sums below 2^-126 may count as
/// 0. Bits depend on the CPU and on the number of rows, not on threads. Operands and errors are as in multiply_floats.
template <simd::usable_arch A, class W, tile_source X, class Sink, executor By>
void multiply_bf16(const W& w, const X& x, const Sink& sink, const By& by) {
  using panels_type = decltype(panels_of<A>(w));
  using arch = typename panels_type::arch;
  using wide = wide_panel<panels_type>;
  const auto layout = layout_of<A>(w);
  const index_t rows = x.rows();
  require(x.cols() == layout.depth, "a product sums over ", layout.depth, " elements of the weights and ", x.cols(),
          " of the other operand; sizes must agree.");
  if (rows == 0 || layout.outputs == 0) return;
  if (layout.depth == 0) return give_zeros<arch>(rows, layout.outputs, sink);
  if (std::min(least_bf16_group, layout.depth) > layout.group)
    return multiply_floats<A, rounded_rows<bf16>>(w, x, sink, by);
  // Rows of a part are whole squares, but for the last ones: bits do not depend on threads.
  const auto by_blocks = [&]<class Tiles>(Tiles) {
    check_zero_points(w);
    for_product_parts(by, divide_up(layout.outputs, wide::width), layout.depth * wide::width, rows, Tiles::row_step,
                      [&](index_t panel, index_t panels, index_t first, index_t count) {
                        wide weights(w);
                        bf16_block_product<Tiles, panels_type, Sink>(weights, layout, count, sink)
                            .over(panel, panels, x, first, count);
                      });
  };
  if constexpr (simd::square_unit<arch>::exists)
    if (rows >= least_square_rows && simd::uses_squares<arch>()) return by_blocks(simd::bf16_squares<arch>{});
  if constexpr (simd::bf16_dot<arch>::exists) {
    const bool by_dots = simd::takes_bf16_dots<arch>();
    if constexpr (has_bf16_numbers<typename panels_type::scheme_type>)
      if (rows <= (by_dots ? direct_dots::most_rows<typename panel_decoder<panels_type>::decoder_type> : 1)) {
        check_zero_points(w);
        bf16_operand<arch> values(rows, layout.depth, layout.group, layout.quads());
        values.fill(x, 0, rows);
        const simd::bf16_rows units = values.from(0, 0);
        return multiply_few<direct_dots, panels_type>(w, layout, units.data, units.stride, rows, sink, by);
      }
    if (by_dots) return by_blocks(simd::bf16_vectors<arch>{});
  }
  multiply_floats<A, rounded_rows<bf16>>(w, x, sink, by);
}

}  // namespace ops

}  // namespace qtensor::inline QTENSOR_ABI
