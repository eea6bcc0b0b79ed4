// Scalar quantize and dequantize for every granularity, rank, rule and policy: what kernels must equal bit for bit.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/reference/codec.hpp>
#include <qtensor/reference/tensor_level.hpp>
#include <qtensor/tensor/tensor.hpp>

namespace qtensor::reference {

/// Calls visit(index) for every index of the box [first, first + count), last axis fastest.
template <std::size_t Rank, class Visit>
constexpr void for_each_index(const std::array<index_t, Rank>& first, const std::array<index_t, Rank>& count,
                              Visit visit) {
  for (std::size_t axis = 0; axis < Rank; ++axis)
    if (count[axis] <= 0) return;
  std::array<index_t, Rank> index = first;
  for (;;) {
    visit(static_cast<const std::array<index_t, Rank>&>(index));
    std::size_t axis = Rank;
    while (axis > 0 && ++index[axis - 1] == first[axis - 1] + count[axis - 1]) {
      index[axis - 1] = first[axis - 1];
      --axis;
    }
    if (axis == 0) return;
  }
}

/// Calls visit(first, count) for the box of every block of a grid, in the order of the grid's entries.
template <int Rank, class Visit>
constexpr void for_each_block(const block_grid<Rank>& grid,
                              const std::array<index_t, static_cast<std::size_t>(Rank)>& extents, Visit visit) {
  using index_array = std::array<index_t, static_cast<std::size_t>(Rank)>;
  index_array blocks{};
  for (std::size_t axis = 0; axis < blocks.size(); ++axis) blocks[axis] = divide_up(extents[axis], grid.block[axis]);
  for_each_index(index_array{}, blocks, [&](const index_array& at) {
    index_array first{}, count{};
    for (std::size_t axis = 0; axis < at.size(); ++axis) {
      first[axis] = at[axis] * grid.block[axis];
      const index_t left = extents[axis] - first[axis];
      count[axis] = left < grid.block[axis] ? left : grid.block[axis];
    }
    visit(static_cast<const index_array&>(first), static_cast<const index_array&>(count));
  });
}

/// What a block's numbers say: their largest magnitude as bits (NaN > infinity > finite), and their extremes with 0.
struct block_statistics {
  std::uint32_t amax_bits = 0;
  float low = 0.f, high = 0.f;
  float peak = 0.f;  // signed; the first of the largest magnitudes
  float own_low = std::numeric_limits<float>::max(), own_high = -std::numeric_limits<float>::max();

  template <quantization_scheme S>
  constexpr void add(float x) {
    if (std::is_same_v<typename S::nonfinite_block, block_ignores> && !is_finite(x)) return;
    if (std::is_same_v<typename S::nonfinite_block, block_ignores_nan> && is_nan(x)) return;
    const std::uint32_t bits = bits_of(x) & magnitude_bits;
    if (bits > amax_bits) amax_bits = bits;
    if (x < low) low = x;
    if (x > high) high = x;
    if (magnitude(x) > magnitude(peak)) peak = x;
    if (x < own_low) own_low = x;
    if (x > own_high) own_high = x;
  }
};

/// A block's scale and zero point as the rule gives them, before and after storing.
struct block_parameters {
  std::uint32_t scale_code = 0;
  float code_scale = 1.f;  // what codes are made with
  std::int64_t zero_point = 0;
  float offset = 0.f;  // what codes are made with
  std::uint32_t offset_code = 0;
  bool poisoned = false;    // every code is the format's NaN, or 0
  bool zero_codes = false;  // every code is +0 or -0
  bool plus_zeros = false;  // zeros of either sign are +0: amax_scale's block of zeros (NUMERICS 11)
};

/// Statistics -> stored scale, zero point, offset, and how the block's codes are made. `tensor_term` is what the rule
/// of a two-level scheme wants to know of the tensor: tensor_level::term.
template <quantization_scheme S>
constexpr block_parameters parameters_of(const block_statistics& seen, float tensor_term = 1.f) {
  using code = typename S::code_format;
  using scale_format = typename S::scale_format;
  using rule = typename S::rule;
  static_assert(!std::is_same_v<rule, static_only>,
                "qtensor: this scheme has no rule that computes scales (static_only); pass the scales to quantize.");
  block_parameters out;
  const auto poison = [&] {
    out.scale_code = encode<scale_format>(quiet_nan);
    out.code_scale = quiet_nan;
    out.poisoned = true;
    return out;
  };
  constexpr bool literal = std::is_same_v<typename S::nonfinite_block, block_literal> ||
                           std::is_same_v<typename S::nonfinite_block, block_ignores_nan>;
  if (!literal && seen.amax_bits >= infinity_bits) return poison();

  std::uint32_t amax_bits = seen.amax_bits;
  if (std::is_same_v<typename S::subnormal_amax, subnormal_to_zero> && amax_bits != 0 && amax_bits < 0x00800000u) {
    amax_bits = 0;
    out.zero_codes = true;
  }
  if constexpr (requires { S::subnormal_amax::flushes(amax_bits); })
    out.zero_codes = S::subnormal_amax::flushes(amax_bits);
  float s;
  if constexpr (extremes_rule<rule>)
    s = rule::template scale<scale_format>(seen.low, seen.high, S::codes);
  else if constexpr (peak_rule<rule>)
    s = rule::template scale<code, scale_format>(seen.peak, S::codes);
  else if constexpr (offset_rule<rule>)
    s = rule::template scale<code, scale_format>(seen.own_low, seen.own_high, S::codes);
  else if constexpr (S::has_tensor_scale)
    s = rule::template scale<code, scale_format>(float_of(amax_bits), S::codes, tensor_term);
  else
    s = rule::template scale<code, scale_format>(float_of(amax_bits), S::codes);
  if (literal && is_nan(s)) s = quiet_nan;     // one NaN, whatever the payloads it came of
  if (!literal && is_nan(s)) return poison();  // mx_even rounded the maximum past the largest power of two

  if constexpr (std::is_same_v<rule, amax_scale> && !code::is_integer)
    out.plus_zeros = amax_bits == 0 && !out.zero_codes;
  out.scale_code = encode<scale_format, std::conditional_t<literal, to_special, saturate>>(s);
  out.code_scale = std::is_same_v<typename S::code_scale, stored_scale> ? decode<scale_format>(out.scale_code) : s;
  if constexpr (std::is_same_v<typename S::division, rule_multiplier>)
    out.code_scale = rule::template multiplier<code>(float_of(amax_bits), S::codes);
  if constexpr (offset_rule<rule>) {
    using offset_format = typename S::offset_format;
    const float offset = rule::offset(seen.own_low, seen.own_high);
    out.offset_code = encode<offset_format, nearest_even, to_special>(offset);
    out.offset = std::is_same_v<typename S::code_scale, stored_scale> ? decode<offset_format>(out.offset_code) : offset;
  }
  if constexpr (extremes_rule<rule>) {
    const std::int64_t zero = round_to_integer<nearest_even>(rule::zero_point(seen.low, out.code_scale, S::codes));
    const auto inside = [](std::int64_t v, double low, double high) {
      return v < static_cast<std::int64_t>(low)    ? static_cast<std::int64_t>(low)
             : v > static_cast<std::int64_t>(high) ? static_cast<std::int64_t>(high)
                                                   : v;
    };
    using zero_format = typename S::zero_point_format;
    out.zero_point = inside(inside(zero, S::codes.low, S::codes.high), static_cast<double>(zero_format::min),
                            static_cast<double>(zero_format::max));
  }
  return out;
}

/// The code of one element of a block with these parameters.
template <quantization_scheme S>
constexpr std::uint32_t code_of(float x, const block_parameters& p, float tensor_scale, std::uint32_t random_word) {
  using code = typename S::code_format;
  if (p.poisoned) {
    if constexpr (std::is_same_v<typename S::nonfinite_block, block_to_zero> || !detail::format_has_nan<code>())
      return encode<code>(0.f);
    else
      return detail::nan_code<code>(quiet_nan);
  }
  if (p.zero_codes) return encode<code, typename S::rounding>(is_negative(x) ? -0.f : 0.f);
  if (p.plus_zeros && x == 0.f) return encode<code>(0.f);
  return quantize_element<S>(x, {p.code_scale, tensor_scale}, p.zero_point, random_word, p.offset);
}

namespace detail {

/// The place of an index in row-major order of the tensor's axes.
template <class Extents>
constexpr std::uint64_t position(const typename Extents::array& index, const Extents& extents) {
  std::uint64_t place = 0;
  for (int axis = 0; axis < Extents::rank; ++axis)
    place = place * static_cast<std::uint64_t>(extents[axis]) +
            static_cast<std::uint64_t>(index[static_cast<std::size_t>(axis)]);
  return place;
}

/// The random word of the element at an index: its position counts.
template <quantization_scheme S, class Extents>
constexpr std::uint32_t random_word(const typename Extents::array& index, const Extents& extents) {
  if constexpr (random_rounding<typename S::rounding> && requires { S::rounding::seed; }) {
    const std::uint64_t place = position(index, extents);
    if constexpr (requires { S::rounding::random_word(place); })
      return S::rounding::random_word(place);
    else
      return philox(place, S::rounding::seed);
  } else {
    return 0;
  }
}

/// Stores the sum of the codes [first, first + count) times their scale, where the layout has room for it.
template <quantization_scheme S, tensor_extents E, storage_order O>
constexpr void store_code_sum(const tensor_span<S, E, O>& out, const typename E::array& first,
                              const typename E::array& count, float scale) {
  if constexpr (S::has_code_sum) {
    std::int64_t sum = 0;
    for_each_index(first, count, [&](const typename E::array& i) {
      sum += static_cast<std::int64_t>(S::code_format::decode(out.storage_code(i)));
    });
    using format = typename S::layout::code_sum_format;
    out.set_storage_code_sum(first, encode<format, nearest_even, to_special>(rounded(static_cast<float>(sum) * scale)));
  }
}

}  // namespace detail

/// Block scales and codes under a tensor scale that is in `out` already (or under none): the second half of `quantize`,
/// for callers that know the first. `tensor_term` as for parameters_of.
template <quantization_scheme S, tensor_extents E, storage_order O, class Source>
constexpr void quantize_blocks(const Source& x, float tensor_term, const tensor_span<S, E, O>& out) {
  using index_array = typename E::array;
  for_each_block(out.scale_grid(), out.storage_extents(), [&](const index_array& first, const index_array& count) {
    block_statistics seen;
    for_each_index(first, count, [&](const index_array& i) { seen.add<S>(x(reordered<O>(i))); });
    const block_parameters p = parameters_of<S>(seen, tensor_term);
    out.set_storage_scale_code(first, p.scale_code);
    if constexpr (S::has_zero_point) out.set_storage_zero_point(first, p.zero_point);
    if constexpr (S::has_offset) out.set_storage_offset_code(first, p.offset_code);
    for_each_index(first, count, [&](const index_array& i) {
      const index_array index = reordered<O>(i);
      out.set_storage_code(i,
                           code_of<S>(x(index), p, out.tensor_scale(), detail::random_word<S>(index, out.extents())));
    });
    detail::store_code_sum(out, first, count, p.code_scale);
  });
}

/// Dynamic quantization: computes every scale (and zero point) from the data and stores it with the codes. `x(index)`
/// gives the element at an index of the tensor's own axes as a float; it is called up to twice an element.
template <quantization_scheme S, tensor_extents E, storage_order O, class Source>
constexpr void quantize(const Source& x, const tensor_span<S, E, O>& out) {
  static_assert(S::zero_points_as_scales || !S::has_zero_point,
                "qtensor: a rule computes scale and zero point of the same block; zero points of a granularity of "
                "their own must be "
                "given (quantize<S>(x, scales, zero_points)).");
  float tensor_term = 1.f;
  if constexpr (S::has_tensor_scale) {
    using index_array = typename E::array;
    block_statistics all;
    for_each_index(index_array{}, out.storage_extents(),
                   [&](const index_array& i) { all.add<qtensor::with<S, block_ignores>>(x(reordered<O>(i))); });
    const auto level = tensor_level::of<S>(float_of(all.amax_bits));
    *out.memory().tensor_scale = level.scale;
    tensor_term = level.term;
  }
  quantize_blocks(x, tensor_term, out);
}

/// Static quantization: the scales (and zero points, offsets, tensor scale) are in `out` already; writes the codes.
template <quantization_scheme S, tensor_extents E, storage_order O, class Source>
constexpr void quantize_static(const Source& x, const tensor_span<S, E, O>& out) {
  static_assert(!std::is_same_v<typename S::division, rule_multiplier>,
                "qtensor: rule_multiplier takes its multiplier from the data; with given scales use exact_division or "
                "reciprocal.");
  using index_array = typename E::array;
  for_each_index(index_array{}, out.storage_extents(), [&](const index_array& i) {
    const index_array index = reordered<O>(i);
    const element_scale s{decode<typename S::scale_format>(out.storage_scale_code(i)), out.tensor_scale()};
    out.set_storage_code(i, quantize_element<S>(x(index), s, out.storage_zero_point(i),
                                                detail::random_word<S>(index, out.extents()), out.storage_offset(i)));
  });
  if constexpr (S::has_code_sum)
    for_each_block(out.scale_grid(), out.storage_extents(), [&](const index_array& first, const index_array& count) {
      detail::store_code_sum(out, first, count, decode<typename S::scale_format>(out.storage_scale_code(first)));
    });
}

/// The number at an index in storage order.
template <quantization_scheme S, tensor_extents E, storage_order O, class A>
constexpr float storage_value(const basic_tensor_view<S, E, O, A>& w, const typename E::array& i) {
  return dequantize_element<S>(w.storage_code(i),
                               {decode<typename S::scale_format>(w.storage_scale_code(i)), w.tensor_scale()},
                               w.storage_zero_point(i), w.storage_offset(i));
}

/// The number at an index of the tensor's own axes.
template <quantization_scheme S, tensor_extents E, storage_order O, class A>
constexpr float value(const basic_tensor_view<S, E, O, A>& w, const typename E::array& index) {
  return storage_value(w, reordered<O>(index));
}

/// Calls sink(index, value) for every element, index in the tensor's own axes.
template <quantization_scheme S, tensor_extents E, storage_order O, class A, class Sink>
constexpr void dequantize(const basic_tensor_view<S, E, O, A>& w, Sink sink) {
  using index_array = typename E::array;
  for_each_index(index_array{}, w.storage_extents(),
                 [&](const index_array& i) { sink(reordered<O>(i), storage_value(w, i)); });
}

}  // namespace qtensor::reference
