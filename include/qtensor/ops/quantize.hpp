// Quantize: any source into any tensor, by walking the tensor's rows and handing runs to kernels.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <limits>
#include <optional>
#include <qtensor/ops/blocks.hpp>
#include <qtensor/ops/joined_axes.hpp>
#include <qtensor/ops/narrow_panels.hpp>
#include <qtensor/ops/parameters.hpp>
#include <qtensor/ops/quantize_across.hpp>
#include <qtensor/ops/quantize_offsets.hpp>
#include <qtensor/ops/quantize_rows.hpp>
#include <tuple>
#include <vector>

namespace qtensor::inline QTENSOR_ABI {

namespace ops {

/// A source as the kernels of S read it: in elements of its own, or as floats.
template <quantization_scheme S, tile_source X>
decltype(auto) source_for(const X& x) {
  if constexpr (X::reads_twice && simd::reads_elements<S, source_elements<X>>)
    return (x);
  else
    return as_floats(x);
}

template <class X, quantization_scheme S, tensor_extents E, storage_order O>
void check_source(const X& x, const tensor_span<S, E, O>& out) {
  const auto shape = out.shape();
  require(x.rows() == shape.row_count() && x.cols() == shape.row_length(), "quantize is given ", x.rows(), " rows of ",
          x.cols(), " elements for a tensor that stores ", shape.row_count(), " rows of ", shape.row_length(), ".");
}

/// Calls use(x, out), with the axes of both joined where x is memory, or one column, and that leaves blocks as they
/// are, and positions.
template <class X, quantization_scheme S, tensor_extents E, storage_order O, class Use>
void along_fewest_axes(const X& x, const tensor_span<S, E, O>& out, const Use& use) {
  constexpr bool stays = !goes_by_position<S> || std::same_as<O, row_major>;
  if constexpr (stays && requires { x.along(x.sizes, x.strides); }) {
    if (with_joined_axes(out, x.strides, [&](const auto& joined, const auto& sizes, const auto& steps) {
          use(x.along(sizes, steps), joined);
        }))
      return;
  } else if constexpr (stays && reads_columns<X> && is_one_column<X>) {
    if (with_column_as_row(out, [&](const auto& row) { use(source_columns<X>(x), row); })) return;
  }
  use(x, out);
}

/// A source read once into memory, for sources too dear to be read twice.
template <tile_source X>
class kept_source {
 public:
  explicit kept_source(const X& x)
      : floats_(static_cast<std::size_t>(x.rows() * x.cols())), ref_{floats_.data(), x.rows(), x.cols(), x.cols(), 1} {
    for_each_piece(x, 0, x.rows(), 1, [&](index_t row, index_t col, index_t n, const float* floats) {
      for (index_t i = 0; i < n; ++i) floats_[static_cast<std::size_t>(row * ref_.col_count + col + i)] = floats[i];
    });
  }
  const matrix_ref<const float>& ref() const { return ref_; }

 private:
  std::vector<float> floats_;
  matrix_ref<const float> ref_;
};

/// The granularity among the arguments, or the scheme's own where its type says all.
template <quantization_scheme S, class... How>
typename S::granularity_type granularity_among(const How&... how) {
  using type = typename S::granularity_type;
  static_assert((0 + ... + (granularity<How> ? 1 : 0)) <= 1, "qtensor: quantize takes one granularity.");
  if constexpr (!(granularity<How> || ...)) {
    return qtensor::detail::only_granularity<type>();
  } else {
    type found{};
    const auto take = [&]<class One>([[maybe_unused]] const One& one) {
      if constexpr (granularity<One>) {
        static_assert(std::is_convertible_v<const One&, type>,
                      "qtensor: the granularity given to quantize is not of the scheme's type.");
        found = one;
      }
    };
    (take(how), ...);
    return found;
  }
}

/// The level of a tensor among the arguments, if there is one.
template <class... How>
std::optional<tensor_level> level_among(const How&... how) {
  static_assert((0 + ... + (std::is_same_v<How, tensor_level> ? 1 : 0)) <= 1,
                "qtensor: quantize takes one tensor_level.");
  std::optional<tensor_level> found;
  [[maybe_unused]] const auto take = [&]<class One>([[maybe_unused]] const One& one) {
    if constexpr (std::is_same_v<One, tensor_level>) found = one;
  };
  (take(how), ...);
  return found;
}

/// The arguments that are neither granularities nor executors nor levels, as a tuple of references.
template <class... How>
auto values_among(const How&... how) {
  [[maybe_unused]] const auto one = []<class One>([[maybe_unused]] const One& value) {
    if constexpr (granularity<One> || qtensor::detail::is_execution<One> || std::is_same_v<One, tensor_level>)
      return std::tuple<>();
    else
      return std::tie(value);
  };
  return std::tuple_cat(one(how)...);
}

/// A tensor that is about to be quantized into: its arrays are not cleared where all of them will be written. Codes
/// that go to packed memory one by one need zeros around them.
template <quantization_scheme S, tensor_extents E, storage_order O>
tensor<S, E, O> tensor_to_fill(const E& extents, const typename S::granularity_type& granularity) {
  if constexpr (walks_rows<S>) {
    const tensor_shape<S, E, O> shape{extents, granularity, {}};
    const index_t row = shape.row_length();
    const index_t block = shape.scale_grid().block[static_cast<std::size_t>(E::rank) - 1];
    if (!is_packed<typename S::code_format> || piece_step<S>(block < row ? block : row, row) != 0)
      return tensor<S, E, O>(uninitialized, extents, granularity);
  }
  return tensor<S, E, O>(extents, granularity);
}

/// quantize_into, of a source that the kernels of S can read, into at least one element. Two-level schemes: the level
/// of a tensor that this is all or a part of, and which has its scale already, or nothing.
template <tile_source X, quantization_scheme S, tensor_extents E, storage_order O>
void quantize_dynamically(const X& x, const tensor_span<S, E, O>& out,
                          [[maybe_unused]] const std::optional<tensor_level>& known = {}) {
  if constexpr (walks_rows<S>) {
    row_quantizer<S, E, O, source_elements<X>> quantizer(out, row_step(x).has_value());
    const index_t length = quantizer.block_length(), cols = quantizer.row_length();
    if (const index_t step = piece_step<S>(length, cols); step != 0) {
      // One block of several rows comes in one piece only from sources that give whole rows.
      const bool in_one_piece = !quantizer.is_one_block() || x.rows() == 1 || reads_by_rows(x, 0);
      const bool row_is_block = length >= cols && (cols <= tile_floats || quantizer.reads_in_turn(cols));
      // Long blocks across the order of a source in memory: see quantize_bands.
      const bool in_bands =
          X::reads_twice && length > 1024 && length <= x.cols() && !reads_by_rows(x, 0) && is_beyond_caches(out.size());
      constexpr bool in_groups = decltype(quantizer)::in_groups;
      const bool once = in_groups || (in_one_piece && !in_bands && quantizer.rows_are_panels() &&
                                      (row_is_block || step % length == 0));
      const bool once_is_enough = !S::has_tensor_scale || known.has_value();
      if constexpr (S::has_tensor_scale)
        if (known) quantizer.take(*known);
      // Several rows together, where they are short or share scales.
      const auto in_tiles = [&](const auto& source) {
        if constexpr (!goes_by_position<S> && !has_one_scale<S>)
          if (const auto padding = quantizer.padding()) return quantize_padded_rows(source, quantizer, *padding), true;
        if constexpr (!goes_by_position<S> && !has_one_scale<S> && !in_groups)
          if (const auto narrow = narrow_panels::of(out))
            return narrow_panel_quantizer(source, quantizer, *narrow).quantize(), true;
        return false;
      };
      const auto by_rows = [&](const auto& source) {
        if constexpr (S::has_tensor_scale)
          if (!known) {
            const auto level = tensor_level::of<S>(finite_amax(source));
            *out.memory().tensor_scale = level.scale;
            quantizer.take(level);
          }
        if (quantize_across(source, quantizer, step) || in_tiles(source)) return;
        if constexpr (!in_groups)
          if (!once) return quantize_in_two_passes(source, quantizer, step);
        quantize_in_one_pass(source, quantizer, row_is_block ? cols : step);
      };
      if constexpr (X::reads_twice)
        by_rows(x);
      else if (once_is_enough && in_tiles(x))
        return;
      else if (once && once_is_enough)
        quantize_in_one_pass(x, quantizer, row_is_block ? cols : step);
      else
        by_rows(kept_source<X>(x).ref());
      return;
    }
  }
  const auto by_reference = [&](const auto& source) {
    const reference_reader<std::remove_cvref_t<decltype(source)>, E, O> elements{source, out.extents()};
    if (S::has_tensor_scale && known)
      reference::quantize_blocks(elements, known->term, out);
    else
      reference::quantize(elements, out);
  };
  if constexpr (X::reads_twice)
    by_reference(x);
  else
    by_reference(kept_source<X>(x).ref());
}

/// quantize_static_into, likewise.
template <tile_source X, quantization_scheme S, tensor_extents E, storage_order O>
void quantize_statically(const X& x, const tensor_span<S, E, O>& out) {
  if constexpr (walks_rows<S>) {
    row_quantizer<S, E, O, source_elements<X>> q(out, row_step(x).has_value());
    const bool same = !S::has_zero_point || out.zero_grid().block == out.scale_grid().block;
    const index_t step = same ? piece_step<S>(q.block_length(), q.row_length()) : byte_step<S>;
    bool is_usual = step != 0;
    if constexpr (S::has_tensor_scale) {
      const float scale = out.tensor_scale();
      is_usual = is_usual && scale >= std::numeric_limits<float>::min() && is_finite(scale);
      q.take({scale, scale});
    }
    if (is_usual) {
      // Blocks of a row as the kernels take them: its own where scales and zero points agree, else single elements.
      const index_t length = same ? q.block_length() : 1;
      alignas(64) float scales[tile_floats];
      alignas(64) std::int32_t zeros[S::has_zero_point ? tile_floats : 1];
      const parameters_view p{scales, S::has_zero_point ? zeros : nullptr};
      if constexpr (!goes_by_position<S>) {
        constexpr bool in_groups = decltype(q)::in_groups;
        if (same && encode_across(x, q, step)) return;
        if constexpr (!has_one_scale<S>)
          if (const auto padding = q.padding(true)) return encode_padded_rows(x, q, *padding);
        if constexpr (!has_one_scale<S> && !in_groups)
          if (const auto narrow = narrow_panels::of(out)) return narrow_panel_quantizer(x, q, *narrow).encode();
        if constexpr (!in_groups)
          if (same && encode_static_panels(x, q, step)) return;
      }
      const simd::traffic asks = q.asks_in_order();
      const auto visit = [&](index_t row, index_t piece, index_t size, const auto* elements) {
        const auto at = q.index_of_row(row);
        for_each_part(piece, size, length, elements, [&](index_t col, index_t n, const auto* part) {
          q.load(at, col, divide_up(n, length), length, p);
          q.encode(at, col, n, part, length, p, simd::blocks_are::ordinary, asks);
        });
      };
      if (same)
        for_each_quantizer_piece(x, q, step, q.encode_length(), visit);
      else
        for_each_piece(x, 0, x.rows(), step, visit);
      return;
    }
  }
  if constexpr (simd::codes_in_runs<S> && S::has_offset) {
    const auto codes = span_without_offsets(out);
    quantize_statically(less_offsets(x, out), codes);
  } else {
    reference::quantize_static(reference_reader<X, E, O>{x, out.extents()}, out);
  }
}

/// quantize_into, where numbers less their offsets become codes under scales that are given.
template <tile_source X, quantization_scheme S, tensor_extents E, storage_order O>
void quantize_with_offsets(const X& x, const tensor_span<S, E, O>& out) {
  const auto encode = [](const auto& rest, const auto& codes) { quantize_statically(rest, codes); };
  if constexpr (X::reads_twice)
    quantize_less_offsets(x, out, encode);
  else
    quantize_less_offsets(kept_source<X>(x).ref(), out, encode);
}

}  // namespace ops

/// Dynamic quantization of a source into a tensor: scales (and zero points) by the scheme's rule, then codes.
/// x has one row for every row the tensor stores (tile_source); nothing is written if its size is wrong.
/// Reads x once where scales are local to a row and to 2048 elements, else twice (or once into a temporary where x says
/// so).
template <tile_source X, quantization_scheme S, tensor_extents E, storage_order O>
void quantize_into(const X& x, const tensor_span<S, E, O>& out) {
  static_assert(!std::is_same_v<typename S::rule, static_only>,
                "qtensor: this scheme has no rule that computes scales (static_only); pass the scales to quantize.");
  static_assert(S::zero_points_as_scales || !S::has_zero_point,
                "qtensor: a rule computes scale and zero point of the same block; zero points of a granularity of "
                "their own must be "
                "given (quantize<S>(x, scales, zero_points)).");
  ops::check_source(x, out);
  if (out.size() == 0) {
    if constexpr (S::has_tensor_scale)
      reference::quantize([](const auto&) { return 0.f; }, out);  // its scale of nothing
    return;
  }
  if constexpr (simd::block_encodable<S>)
    ops::quantize_to_blocks(x, out);
  else if constexpr (ops::quantizes_in_blocks<S, O, E::rank>())
    ops::quantize_in_blocks(x, out);
  else if constexpr (ops::quantizes_less_offsets<S>())
    ops::along_fewest_axes(x, out, [](const auto& rows, const auto& to) { ops::quantize_with_offsets(rows, to); });
  else
    ops::along_fewest_axes(
        x, out, [](const auto& rows, const auto& to) { ops::quantize_dynamically(ops::source_for<S>(rows), to); });
}

/// Dynamic quantization of a two-level scheme whose upper level is known, from calibration, say, or of all parts of a
/// tensor: stores the tensor's scale, then block scales and codes below it. What is beyond the tensor's range
/// saturates. As quantize_into otherwise; x is read once, where that reads it twice.
template <tile_source X, quantization_scheme S, tensor_extents E, storage_order O>
requires(S::has_tensor_scale) void quantize_into(const X& x, const tensor_span<S, E, O>& out,
                                                 const tensor_level& level) {
  ops::check_source(x, out);
  *out.memory().tensor_scale = level.scale;
  if (out.size() == 0) return;
  ops::along_fewest_axes(x, out, [&](const auto& rows, const auto& to) {
    ops::quantize_dynamically(ops::source_for<S>(rows), to, level);
  });
}

/// Static quantization: the scales (and zero points) are in `out` already (store_scales, store_zero_points); writes the
/// codes.
template <tile_source X, quantization_scheme S, tensor_extents E, storage_order O>
void quantize_static_into(const X& x, const tensor_span<S, E, O>& out) {
  static_assert(!std::is_same_v<typename S::division, rule_multiplier>,
                "qtensor: rule_multiplier takes its multiplier from the data; with given scales use exact_division or "
                "reciprocal.");
  ops::check_source(x, out);
  if (out.size() == 0) return;
  if constexpr (simd::block_encodable<S>)
    ops::quantize_static_to_blocks(x, out);
  else
    ops::along_fewest_axes(
        x, out, [](const auto& rows, const auto& to) { ops::quantize_statically(ops::source_for<S>(rows), to); });
}

/// A new tensor of these extents from a source that has its rows. `how` is nothing (dynamic), scales, or scales and
/// then zero points (both static), each a number or a contiguous range; and at any place a run-time granularity
/// (`group<dynamic>{64}`) and the level of a tensor that is known already (`tensor_level`).
template <quantization_scheme S, storage_order Order, tensor_extents Extents, tile_source X, class... How>
tensor<S, Extents, Order> make_quantized(const X& x, const Extents& extents, const How&... how) {
  auto out = ops::tensor_to_fill<S, Extents, Order>(extents, ops::granularity_among<S>(how...));
  [[maybe_unused]] const auto values = ops::values_among(how...);
  [[maybe_unused]] const auto level = ops::level_among(how...);
  constexpr std::size_t given = std::tuple_size_v<std::remove_const_t<decltype(values)>>;
  constexpr bool levelled = (std::is_same_v<How, tensor_level> || ...);
  static_assert(given <= 2, "qtensor: quantize takes scales, or scales and zero points.");
  static_assert(given == 0 || !(S::has_tensor_scale || S::has_offset),
                "qtensor: this scheme stores more than scales and zero points; store them in a tensor and use "
                "quantize_static_into.");
  static_assert(given == 0 || S::has_zero_point == (given == 2),
                "qtensor: static quantization takes scales and zero points where the scheme has a zero point, scales "
                "alone where it is symmetric.");
  static_assert(!levelled || S::has_tensor_scale,
                "qtensor: a tensor_level is for schemes of two levels, such as with<nvfp4, tensor_scale<f32>>.");
  if constexpr (given >= 1) store_scales(out.span(), std::get<0>(values));
  if constexpr (given == 2) store_zero_points(out.span(), std::get<1>(values));
  if constexpr (given >= 1)
    quantize_static_into(x, out.span());
  else if constexpr (levelled)
    quantize_into(x, out.span(), *level);
  else
    quantize_into(x, out.span());
  return out;
}

/// Memory of any rank into a tensor of the same extents: `quantize<mxfp8_e4m3>(source(ptr, extents(2, 3, 64, 96)))`;
/// `how` as in make_quantized, and on(an executor).
template <quantization_scheme S, storage_order Order = row_major, format F, tensor_extents Extents, class... How>
tensor<S, Extents, Order> quantize(const memory_source<F, Extents>& x, const How&... how) {
  return make_quantized<S, Order>(typename memory_source<F, Extents>::template in_order<Order>(x), x.extents, how...);
}
/// What is no scheme, said in a sentence.
template <class Other, class X, class... How>
requires(!quantization_scheme<Other> && (format<Other> || quantized<Other>)) auto quantize(const X&, const How&...) {
  static_assert(!format<Other>,
                "qtensor: quantize<S>(x) takes a scheme, not a number format; take a predefined one (int8_per_tensor) "
                "or give the format a granularity (scheme<int8, per_tensor>).");
  static_assert(!quantized<Other>, "qtensor: quantize<S>(x) takes a scheme, not a tensor; give the tensor's scheme.");
}

namespace ops {

template <storage_order O, format F, tensor_extents Extents, tensor_extents E>
auto rows_for(const memory_source<F, Extents>& x, const E& extents) {
  static_assert(Extents::rank == E::rank, "qtensor: memory is quantized into a tensor of the same rank.");
  for (int axis = 0; axis < E::rank; ++axis)
    require(x.extents[axis] == extents[axis], "memory of ", x.extents[axis], " along axis ", axis,
            " is quantized into a tensor of ", extents[axis], "; extents must agree.");
  return typename memory_source<F, Extents>::template in_order<O>(x);
}

}  // namespace ops

/// Dynamic quantization of memory of any rank into a tensor of the same extents that is there already, the destination
/// first as for Eigen expressions: `quantize_into(w, source(ptr, extents(2, 3, 64, 96)))`. `how` is a
/// `tensor_level` (schemes of two levels), an executor, or both. Throws, with nothing written, where extents differ.
template <quantization_scheme S, tensor_extents E, storage_order O, format F, tensor_extents Extents, class... How>
void quantize_into(const tensor_span<S, E, O>& out, const memory_source<F, Extents>& x, const How&... how) {
  quantize_into(ops::rows_for<O>(x, out.extents()), out, how...);
}
template <quantization_scheme S, tensor_extents E, storage_order O, format F, tensor_extents Extents, class... How>
void quantize_into(tensor<S, E, O>& out, const memory_source<F, Extents>& x, const How&... how) {
  quantize_into(out.span(), x, how...);
}
/// The same with the scales (and zero points) that `out` has already; `how` is an executor or nothing.
template <quantization_scheme S, tensor_extents E, storage_order O, format F, tensor_extents Extents, class... How>
void quantize_static_into(const tensor_span<S, E, O>& out, const memory_source<F, Extents>& x, const How&... how) {
  quantize_static_into(ops::rows_for<O>(x, out.extents()), out, how...);
}
template <quantization_scheme S, tensor_extents E, storage_order O, format F, tensor_extents Extents, class... How>
void quantize_static_into(tensor<S, E, O>& out, const memory_source<F, Extents>& x, const How&... how) {
  quantize_static_into(out.span(), x, how...);
}

}  // namespace qtensor::inline QTENSOR_ABI
