// Runs of floats to codes: one scale, a scale for each element, or one for each short block.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstring>
#include <qtensor/simd/encode.hpp>
#include <qtensor/simd/kernel.hpp>
#include <qtensor/simd/memory.hpp>
#include <qtensor/simd/nibbles.hpp>
#include <qtensor/simd/run_parameters.hpp>
#include <qtensor/tensor/bytes.hpp>

// Every run starts on a byte, whatever its length; sub-byte codes are packed in the layout's order and the unused bits
// of the last byte are 0. The code of element i is quantize_element<S>(x[i], {scale, tensor_scale}, zero point), bit
// for bit, whatever the kernel, the length and the position; only the sign of a NaN that comes of a NaN scale is the
// CPU's. Zero points are values of S::zero_point_format; a null array of them means zeros.
namespace qtensor::inline QTENSOR_ABI::simd {

namespace detail {

/// What every kernel of runs needs of a scheme.
template <class S>
constexpr void check_run_scheme() {
  static_assert(!S::is_interleaved,
                "qtensor: run kernels take planar layouts; encode_interleaved and decode_interleaved take blocks.");
  static_assert(!S::has_offset,
                "qtensor: run kernels encode without offsets; schemes that have one are quantized by the reference.");
  static_assert(
      !random_rounding<typename S::rounding>,
      "qtensor: stochastic rounding needs the index of each element, which runs do not know; use the reference.");
}

/// Writes the codes of elements [0, n), code_of(i) each, in the order of S's layout.
template <class S, class Code>
void write_codes(index_t n, code_unit_t<S>* codes, Code code_of) {
  using format = typename S::code_format;
  if constexpr (is_packed<format>) {
    std::memset(codes, 0, static_cast<std::size_t>(packed_bytes<format::bits>(n)));
    for (index_t i = 0; i < n; ++i)
      qtensor::detail::store_bits<format::bits>(codes, S::layout::order::bit(i, n, format::bits), code_of(i));
  } else {
    for (index_t i = 0; i < n; ++i) codes[i] = qtensor::detail::unit_from<format>(code_of(i));
  }
}

}  // namespace detail

// ---- The reference as a kernel: every scheme has this one ----------------------------------------------------------

template <quantization_scheme S, float_source From = from_f32>
struct reference_encoder {
  using element = typename From::type;

  static void uniform(const element* x, index_t n, element_scale s, std::int32_t zero_point, code_unit_t<S>* codes) {
    detail::check_run_scheme<S>();
    detail::write_codes<S>(n, codes, [&](index_t i) { return quantize_element<S>(number<From>(x[i]), s, zero_point); });
  }
  static void vector(const element* x, index_t n, const float* scales, const std::int32_t* zero_points,
                     float tensor_scale, code_unit_t<S>* codes) {
    grouped(x, n, 1, scales, zero_points, tensor_scale, codes);
  }
  static void grouped(const element* x, index_t n, index_t group, const float* scales, const std::int32_t* zero_points,
                      float tensor_scale, code_unit_t<S>* codes) {
    detail::check_run_scheme<S>();
    index_t g = 0, left = group;
    detail::write_codes<S>(n, codes, [&](index_t i) {
      if (left == 0) ++g, left = group;
      --left;
      return quantize_element<S>(number<From>(x[i]), {scales[g], tensor_scale},
                                 zero_points != nullptr ? zero_points[g] : 0);
    });
  }
};

template <quantization_scheme S>
struct kernel<op::encode, S, scalar_arch> : reference_encoder<S> {
  static constexpr bool enabled = true;
  static constexpr std::string_view name = "reference";
  template <float_source From>
  using reading = reference_encoder<S, From>;
};

// ---- Vectors -------------------------------------------------------------------------------------------------------

namespace detail {

/// Codes of x[0, n), one per byte: blocks of four batches; a last one that is not whole begins early where all
/// parameters are the same (what it shares with the one before it is written twice), else it is padded with zeros;
/// `codes` is aligned where they are streamed. One way through the loop for all blocks, and nothing is called there, so
/// that numbers and constants stay in registers. Parameters are copied here, not by the caller: clang++ does that by
/// halves of vectors, which CPUs wait for.
template <class S, quotient_by By, class A, class From, numbers Which = numbers::any, class Parameters>
void encode_blocks(const typename From::type* x, index_t n, const Parameters& of_run, std::uint8_t* codes,
                   traffic t = {}) {
  Parameters p = of_run;
  constexpr index_t step = 4 * lanes<A>;
  using element = typename From::type;
  tail_space<A> space;
  alignas(64) element tail[static_cast<std::size_t>(step)];
  for (index_t left = n; left > 0; left -= step, x += step, codes += step, p.next()) {
    fetch_ahead<step * index_t{sizeof(element)}>(x, t);
    if (Parameters::all_alike && left < step && left < n) [[unlikely]] {
      x -= step - left, codes -= step - left, left = step;
      t.streams = false;
    } else if (left < step) [[unlikely]] {
      constexpr auto size = static_cast<index_t>(xsimd::batch<element, A>::size);
#pragma GCC unroll 4
      for (index_t i = 0; i < step; i += size)
        simd::store(tail + i, simd::load_n<A>(x + i, std::clamp(left - i, index_t{0}, size)));
      x = tail;
      p.pad(space, left);
    }
    std::array<floats<A>, 4> v;
    if constexpr (Parameters::alike_in_pairs) {
      From::template load_four<A>(x, v);
    } else {
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) v[k] = From::template load<A>(x + k * lanes<A>);
    }
    bytes<A> c = encode_codes<S, By, A, Which>(v, p);
    if constexpr (Parameters::alike_in_pairs) c = From::template in_order<A>(c);
    if (left < step) [[unlikely]]
      simd::store_n(codes, left, c);
    else
      simd::put(codes, c, t.streams);
  }
}

/// Codes that are packed at a time: fewer where they go past the caches, so that reading and writing alternate quickly.
template <class S>
index_t packed_at_once(const traffic& t) {
  return t.streams && S::code_format::bits != 8 ? 512 : chunk_elements;
}

/// Calls encode(first, count, bytes, traffic) for chunks of [0, n) that start on a byte, and packs what it leaves in
/// `bytes`, one code each; 8-bit codes are written in place, but for those that are streamed and lie on no line.
template <class S, class A, class Encode>
QTENSOR_INLINE void for_each_chunk(index_t n, index_t chunk, code_unit_t<S>* codes, traffic t, Encode encode) {
  constexpr int bits = S::code_format::bits;
  auto* to = reinterpret_cast<std::uint8_t*>(codes);
  const bool in_place = bits == 8 && (!t.streams || begins_line(to, chunk < n ? chunk : 0));
  if (!in_place) chunk = std::min(chunk, chunk_elements);
  alignas(64) std::uint8_t bytes[static_cast<std::size_t>(chunk_elements)];
  for (index_t first = 0; first < n; first += chunk) {
    const index_t count = std::min(chunk, n - first);
    encode(first, count, in_place ? to + first : bytes, traffic{t.fetches, t.streams && in_place, t.ahead});
    if (!in_place) pack_codes<A, bits>(bytes, count, to + first * bits / 8, t.streams);
  }
}

/// The same for chunks of whole groups: encode(first, count, first group, groups, bytes, traffic).
template <class S, class A, class Encode>
QTENSOR_INLINE void for_each_group_chunk(index_t n, index_t group, code_unit_t<S>* codes, traffic t, Encode encode) {
  const index_t groups_of_chunk = std::max(packed_at_once<S>(t) / group, index_t{1}), chunk = groups_of_chunk * group;
  index_t g = 0;
  for_each_chunk<S, A>(n, chunk, codes, t, [&](index_t first, index_t count, std::uint8_t* bytes, traffic of_chunk) {
    encode(first, count, g, divide_up(count, group), bytes, of_chunk);
    g += groups_of_chunk;
  });
}

}  // namespace detail

/// How numbers under one scale and zero point are encoded: as the reference does it, or by vectors that divide by the
/// fast quotient or by the one that always fits.
enum class uniform_way { one_by_one, fast, safe };

/// The vector kernel of every scheme that vectors can follow.
template <vector_encodable S, usable_arch A, float_source From = from_f32>
struct vector_encoder {
  using unit = code_unit_t<S>;
  using element = typename From::type;
  static constexpr quotient_by fast = detail::fast_quotient<S, A>, safe = detail::safe_quotient<S>;
  static constexpr bool takes_traffic = true;

  static void uniform(const element* x, index_t n, element_scale s, std::int32_t zero_point, unit* codes,
                      traffic t = {}) {
    if constexpr (!detail::counting_format<typename S::code_format>)
      if (s.scale == 1.f && s.tensor_scale == 1.f)  // a mere cast
        return encode_uniform_by<quotient_by::nothing>(x, n, s, zero_point, codes, t);
    switch (way_of(s, zero_point)) {
      case uniform_way::one_by_one:
        return reference_encoder<S, From>::uniform(x, n, s, zero_point, codes);
      case uniform_way::fast:
        if constexpr (fast == quotient_by::two_products && detail::free_bits<From> != 0) {
          constexpr int most = detail::middle_count<S>();
          const float scale = S::has_tensor_scale ? s.scale * s.tensor_scale : s.scale;
          if (n >= long_group && detail::one_product_is_exact<From, A>(scale, most))
            return encode_uniform_by<quotient_by::inverse>(x, n, s, zero_point, codes, t);
        }
        return encode_uniform_by<fast>(x, n, s, zero_point, codes, t);
      case uniform_way::safe:
        return encode_uniform_by<safe>(x, n, s, zero_point, codes, t);
    }
  }

  /// What a scale and a zero point allow: for callers of many short runs, to be asked once.
  static uniform_way way_of(element_scale s, std::int32_t zero_point) {
    if (detail::is_irregular<S, A>(s.scale, &zero_point, 0)) return uniform_way::one_by_one;
    return detail::is_regular_divisor<S, A>(s.scale, s.tensor_scale) ? uniform_way::fast : uniform_way::safe;
  }

  /// uniform() for rows at x + r * x_step, a byte for each code whatever S packs (upper bits of narrow codes are
  /// unspecified): to bytes + r * step. `way` is what way_of says; `fetches`: how far rows further on are asked for.
  static void uniform_bytes(uniform_way way, const element* x, index_t x_step, index_t rows, index_t n, element_scale s,
                            std::int32_t zero_point, std::uint8_t* bytes, index_t step,
                            fetch fetches = fetch::nothing) {
    const traffic t{fetches, false, 8 * x_step * index_t{sizeof(element)}};
    const auto by = [&]<quotient_by By>(std::integral_constant<quotient_by, By>) {
      const detail::uniform_parameters<S, By, A> p(s, zero_point);
      for (index_t r = 0; r < rows; ++r)
        detail::encode_blocks<S, By, A, From>(x + r * x_step, n, p, bytes + r * step, t);
    };
    switch (way) {
      case uniform_way::one_by_one:
        for (index_t r = 0; r < rows; ++r)
          for (index_t i = 0; i < n; ++i)
            bytes[r * step + i] =
                static_cast<std::uint8_t>(quantize_element<S>(number<From>(x[r * x_step + i]), s, zero_point));
        return;
      case uniform_way::fast:
        return by(std::integral_constant<quotient_by, fast>{});
      case uniform_way::safe:
        return by(std::integral_constant<quotient_by, safe>{});
    }
  }

  static void vector(const element* x, index_t n, const float* scales, const std::int32_t* zero_points,
                     float tensor_scale, unit* codes, traffic t = {}) {
    const auto encode = [&](index_t first, index_t count, std::uint8_t* bytes, traffic of_chunk) {
      const std::int32_t* zeros = zero_points != nullptr ? zero_points + first : nullptr;
      const detail::vector_parameters<S, A> p{scales + first, zeros, tensor_scale};
      detail::encode_blocks<S, safe, A, From>(x + first, count, p, bytes, of_chunk);
      if (detail::any_irregular<S, A>(scales + first, zeros, count)) [[unlikely]]
        for (index_t i = 0; i < count; ++i) mend(x + first, scales[first + i], zeros, i, i, i + 1, tensor_scale, bytes);
    };
    detail::for_each_chunk<S, A>(n, detail::packed_at_once<S>(t), codes, t, encode);
  }

  static void grouped(const element* x, index_t n, index_t group, const float* scales, const std::int32_t* zero_points,
                      float tensor_scale, unit* codes, traffic t = {}) {
    if (group >= n) return uniform(x, n, {*scales, tensor_scale}, zero_points != nullptr ? *zero_points : 0, codes, t);
    if (is_own_run(group)) return own_runs<fast, safe>(x, n, group, scales, zero_points, tensor_scale, codes, t);
    if (group == lanes<A>) return grouped_by<1>(x, n, group, scales, zero_points, tensor_scale, codes, t);
    if (group == 2 * lanes<A>) return grouped_by<2>(x, n, group, scales, zero_points, tensor_scale, codes, t);
    if (group % (4 * lanes<A>) == 0 && group <= detail::chunk_elements)
      return grouped_by<4>(x, n, group, scales, zero_points, tensor_scale, codes, t);
    spread(x, n, group, scales, zero_points, tensor_scale, codes, t);
  }

  /// The same for numbers that fit their scales (numbers::fitting); zero points are regular then, too.
  static void fitting(const element* x, index_t n, index_t group, const float* scales, const std::int32_t* zero_points,
                      float tensor_scale, unit* codes, traffic t = {}) {
    constexpr quotient_by by = detail::fitting_quotient<S, A>;
    constexpr index_t known = detail::static_group<typename S::granularity_type>, step = 4 * lanes<A>;
    constexpr int batches = known == 0 ? 4 : detail::batches_of_group<S, A>();
    const bool regular = by == quotient_by::moved_grid || detail::all_regular_divisors<S, A, numbers::fitting>(
                                                              scales, divide_up(n, group), tensor_scale);
    if constexpr (known == 0 || known >= long_group)
      if (regular && (group >= n || is_own_run(group)))
        return own_runs<by, by, numbers::fitting>(x, n, group, scales, zero_points, tensor_scale, codes, t);
    if constexpr (batches != 0 && known <= detail::chunk_elements)
      if (regular && group < n && (known == 0 ? group % step == 0 && group <= detail::chunk_elements : group == known))
        return detail::for_each_group_chunk<S, A>(
            n, group, codes, t,
            [&](index_t first, index_t count, index_t g, index_t groups, std::uint8_t* bytes, traffic of_chunk) {
              encode_groups<by, batches, numbers::fitting>(x + first, count, group, scales + g,
                                                           zero_points != nullptr ? zero_points + g : nullptr, groups,
                                                           tensor_scale, bytes, of_chunk);
            });
    grouped(x, n, group, scales, zero_points, tensor_scale, codes, t);
  }

 private:
  template <quotient_by By>
  static void encode_uniform_by(const element* x, index_t n, element_scale s, std::int32_t zero_point, unit* codes,
                                traffic t) {
    encode_alike(x, n, detail::uniform_parameters<S, By, A>(s, zero_point), codes, t);
  }
  template <numbers Which = numbers::any, quotient_by By>
  static void encode_alike(const element* x, index_t n, const detail::uniform_parameters<S, By, A>& p, unit* codes,
                           traffic t) {
    const index_t chunk = S::code_format::bits == 8 ? std::max(n, index_t{1}) : detail::packed_at_once<S>(t);
    detail::for_each_chunk<S, A>(n, chunk, codes, t,
                                 [&](index_t first, index_t count, std::uint8_t* bytes, traffic of_chunk) {
                                   detail::encode_blocks<S, By, A, From, Which>(x + first, count, p, bytes, of_chunk);
                                 });
  }

  /// Codes [begin, end) again by the reference if their parameters, entry `at`, are irregular.
  static void mend(const element* x, float scale, const std::int32_t* zeros, index_t at, index_t begin, index_t end,
                   float tensor_scale, std::uint8_t* bytes) {
    if (!detail::is_irregular<S, A>(scale, zeros, at)) return;
    for (index_t i = begin; i < end; ++i)
      bytes[i] = static_cast<std::uint8_t>(
          quantize_element<S>(number<From>(x[i]), {scale, tensor_scale}, zeros != nullptr ? zeros[at] : 0));
  }

  /// Groups from this length on keep what they share in registers; from the shorter one on where they would be spread
  /// to their elements otherwise.
  static constexpr index_t long_group = 512, spread_group = 256;
  static bool is_own_run(index_t group) {
    const bool fills_blocks = group % (4 * lanes<A>) == 0;
    return group >= (fills_blocks ? long_group : spread_group) && group * S::code_format::bits % 8 == 0;
  }

  /// Groups one by one; what they share is prepared for many at once, by `Fast` where their divisors are regular.
  template <quotient_by Fast, quotient_by Safe, numbers Which = numbers::any>
  static void own_runs(const element* x, index_t n, index_t group, const float* scales, const std::int32_t* zero_points,
                       float tensor_scale, unit* codes, traffic t) {
    constexpr index_t most = detail::group_table<S, A>::most;
    for (index_t first = 0, g = 0; first < n; first += most * group, g += most) {
      const index_t count = std::min(most * group, n - first);
      const std::int32_t* zeros = zero_points != nullptr ? zero_points + g : nullptr;
      unit* to = codes + unit_of<S>(first);
      if (Fast == Safe || detail::all_regular_divisors<S, A, Which>(scales + g, divide_up(count, group), tensor_scale))
        own_runs_by<Fast, Which>(x + first, count, group, scales + g, zeros, tensor_scale, to, t);
      else
        own_runs_by<Safe, Which>(x + first, count, group, scales + g, zeros, tensor_scale, to, t);
    }
  }
  template <quotient_by By, numbers Which>
  static void own_runs_by(const element* x, index_t n, index_t group, const float* scales, const std::int32_t* zeros,
                          float tensor_scale, unit* codes, traffic t) {
    const index_t groups = divide_up(n, group);
    detail::group_table<S, A> table;
    table.template fill<By>(scales, zeros, groups, tensor_scale);
    detail::group_parameters<S, By, A, 4> p{&table, scales, groups - 1, tensor_scale, 1};
    for (index_t first = 0; first < n; first += group, ++p.group) {
      const index_t count = std::min(group, n - first);
      unit* to = codes + unit_of<S>(first);
      if (detail::is_irregular<S, A>(scales[p.group], zeros, p.group)) [[unlikely]]
        reference_encoder<S, From>::uniform(x + first, count, {scales[p.group], tensor_scale},
                                            zeros != nullptr ? zeros[p.group] : 0, to);
      else
        encode_alike<Which>(x + first, count, p.of_group(), to, t);
    }
  }

  /// The groups of a chunk.
  template <quotient_by By, int BatchesOfGroup, numbers Which = numbers::any>
  static void encode_groups(const element* x, index_t n, index_t group, const float* scales, const std::int32_t* zeros,
                            index_t groups, float tensor_scale, std::uint8_t* bytes, traffic t) {
    detail::group_table<S, A> table;
    table.template fill<By>(scales, zeros, groups, tensor_scale);
    const detail::group_parameters<S, By, A, BatchesOfGroup> p{&table, scales, groups - 1, tensor_scale,
                                                               group / (4 * lanes<A>)};
    detail::encode_blocks<S, By, A, From, Which>(x, n, p, bytes, t);
  }

  template <int BatchesOfGroup>
  static void grouped_by(const element* x, index_t n, index_t group, const float* scales,
                         const std::int32_t* zero_points, float tensor_scale, unit* codes, traffic t) {
    const auto encode = [&](index_t first, index_t count, index_t g, index_t groups, std::uint8_t* bytes,
                            traffic of_chunk) {
      const std::int32_t* zeros = zero_points != nullptr ? zero_points + g : nullptr;
      if (detail::all_regular_divisors<S, A>(scales + g, groups, tensor_scale))
        encode_groups<fast, BatchesOfGroup>(x + first, count, group, scales + g, zeros, groups, tensor_scale, bytes,
                                            of_chunk);
      else
        encode_groups<safe, BatchesOfGroup>(x + first, count, group, scales + g, zeros, groups, tensor_scale, bytes,
                                            of_chunk);
      if (detail::any_irregular<S, A>(scales + g, zeros, groups)) [[unlikely]]
        for (index_t k = 0; k < groups; ++k)
          mend(x + first, scales[g + k], zeros, k, k * group, std::min((k + 1) * group, count), tensor_scale, bytes);
    };
    detail::for_each_group_chunk<S, A>(n, group, codes, t, encode);
  }

  /// Other groups, a chunk at a time: every batch gets its own copy of the parameters, or every element where groups do
  /// not fill batches.
  static void spread(const element* x, index_t n, index_t group, const float* scales, const std::int32_t* zero_points,
                     float tensor_scale, unit* codes, traffic t) {
    constexpr auto room = static_cast<std::size_t>(detail::chunk_elements + lanes<A>);
    alignas(64) float own_scales[room];
    alignas(64) std::int32_t own_zeros[S::has_zero_point ? room : 1];
    const bool by_batches = group % lanes<A> == 0;
    const index_t alike = by_batches ? lanes<A> : 1;  // elements of a copy
    for (index_t first = 0; first < n; first += detail::chunk_elements) {
      const index_t count = std::min(detail::chunk_elements, n - first), copies = divide_up(count, alike);
      spread_entries<A>(scales, group / alike, first / alike, copies, own_scales);
      if constexpr (S::has_zero_point)
        if (zero_points != nullptr) spread_entries<A>(zero_points, group / alike, first / alike, copies, own_zeros);
      const std::int32_t* zeros = zero_points != nullptr ? own_zeros : nullptr;
      if (by_batches)
        grouped_by<1>(x + first, count, lanes<A>, own_scales, zeros, tensor_scale, codes + unit_of<S>(first), t);
      else
        vector(x + first, count, own_scales, zeros, tensor_scale, codes + unit_of<S>(first), t);
    }
  }
};

template <vector_encodable S, usable_arch A>
requires(!std::same_as<A, scalar_arch>) struct kernel<op::encode, S, A> : vector_encoder<detail::encoding_form<S>, A> {
  static constexpr bool enabled = true;
  static constexpr std::string_view name = arch_name<A>;
  template <float_source From>
  using reading = vector_encoder<detail::encoding_form<S>, A, From>;
};

namespace detail {

template <class S, class A, class From>
A arch_of_encoder(const vector_encoder<S, A, From>*);

/// Whether a kernel is ours, with vectors.
template <class Kernel>
concept encodes_by_vectors = requires(const Kernel* k) {
  arch_of_encoder(k);
};

}  // namespace detail

/// Whether the kernel of S reads elements as `From` does, without a tile of floats in between.
template <class S, class From>
concept reads_elements = std::same_as<From, from_f32> || requires {
  typename best_kernel<op::encode, S>::template reading<From>;
};

namespace detail {

template <class S, class From>
struct encoder_of {
  using type = typename best_kernel<op::encode, S>::template reading<From>;
};
/// Kernels of a user's read floats themselves, whether they offer `reading` or not.
template <class S>
requires(!encodes_by_vectors<best_kernel<op::encode, S>>) struct encoder_of<S, from_f32> {
  using type = best_kernel<op::encode, S>;
};

}  // namespace detail

/// The functions that run for elements as `From` reads them.
template <quantization_scheme S, float_source From>
requires reads_elements<S, From>
using encoder_of = typename detail::encoder_of<S, From>::type;

// ---- What callers call ---------------------------------------------------------------------------------------------

/// Codes of x[0, n) under one scale and zero point (0 where S has none). Reads x[0, n), writes the units of n codes.
template <quantization_scheme S, float_source From = from_f32>
void encode_uniform(const typename From::type* x, index_t n, element_scale s, std::int32_t zero_point,
                    code_unit_t<S>* codes, traffic t = {}) {
  using best = encoder_of<S, From>;
  if (n <= 0) return;
  detail::run_hinted<best>(t, [&](auto... hint) { best::uniform(x, n, s, zero_point, codes, hint...); });
}

/// Element i has scales[i] and zero_points[i]. Reads n of each.
template <quantization_scheme S, float_source From = from_f32>
void encode_vector(const typename From::type* x, index_t n, const float* scales, const std::int32_t* zero_points,
                   code_unit_t<S>* codes, float tensor_scale = 1.f, traffic t = {}) {
  using best = encoder_of<S, From>;
  if (n <= 0) return;
  detail::run_hinted<best>(
      t, [&](auto... hint) { best::vector(x, n, scales, zero_points, tensor_scale, codes, hint...); });
}

/// Element i has scales[i / group] and zero_points[i / group]; any group >= 1, the last one may be short.
template <quantization_scheme S, float_source From = from_f32>
void encode_grouped(const typename From::type* x, index_t n, index_t group, const float* scales,
                    const std::int32_t* zero_points, code_unit_t<S>* codes, float tensor_scale = 1.f, traffic t = {}) {
  QTENSOR_ASSERT(group >= 1, "encode_grouped needs groups of at least one element");
  using best = encoder_of<S, From>;
  if (n <= 0) return;
  detail::run_hinted<best>(
      t, [&](auto... hint) { best::grouped(x, n, group, scales, zero_points, tensor_scale, codes, hint...); });
}

/// The same for numbers that fit their scales: finite, no code saturated by more than a step (numbers::fitting), scales
/// and zero points as block_scales and range_scales compute them. Codes of groups that do not fit are unspecified.
template <quantization_scheme S, float_source From = from_f32>
void encode_fitting(const typename From::type* x, index_t n, index_t group, const float* scales,
                    const std::int32_t* zero_points, code_unit_t<S>* codes, float tensor_scale = 1.f, traffic t = {}) {
  using best = encoder_of<S, From>;
  if (n <= 0) return;
  if constexpr (detail::encodes_by_vectors<best>)
    best::fitting(x, n, group, scales, zero_points, tensor_scale, codes, t);
  else
    best::grouped(x, n, group, scales, zero_points, tensor_scale, codes);
}

}  // namespace qtensor::inline QTENSOR_ABI::simd
