// Runs of floats to codes: one scale, a scale for each element, or one for each short block.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <concepts>
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
                "qtensor: run kernels encode without offsets; quantize a tensor of a scheme that has one.");
  static_assert(
      !random_rounding<typename S::rounding>,
      "qtensor: stochastic rounding needs the index of each element, which runs do not know; quantize a tensor.");
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

/// Bits that a code of S has where kernels store it: nibbles are packed in registers where there are many, others are
/// bytes first.
template <class S, class A>
inline constexpr int stored_bits = S::code_format::bits == 4 && has_many_registers<A> ? 4 : 8;

/// Codes of the four batches at x, in order.
template <class S, quotient_by By, class A, class From, numbers Which, class Parameters>
QTENSOR_INLINE bytes<A> codes_of_four(const typename From::type* x, const Parameters& p) {
  constexpr bool by_halves =
      std::same_as<From, from_bf16> &&
      (Parameters::alike_in_pairs ? codes_bf16<S, By, A>()
                                  : Which == numbers::fitting && codes_bf16_each<S, By, A, From>());
  if constexpr (by_halves) {
    const std::array<halves<A>, 2> h{simd::load<A>(x), simd::load<A>(x + 2 * lanes<A>)};
    if (Which == numbers::fitting || !simd::any_nan(h)) [[likely]]
      return codes_of_bf16<S, By, A>(h, p);
  }
  if constexpr (!by_halves || Which != numbers::fitting) {
    std::array<floats<A>, 4> v;
    if constexpr (Parameters::alike_in_pairs) {
      From::template load_four<A>(x, v);
      return From::template in_order<A>(encode_codes<S, By, A, Which>(v, p));
    } else {
      simd::load_in_order<From, A>(x, v);
      return encode_codes<S, By, A, Which>(v, p);
    }
  }
}

/// What a loop over blocks knows of its traffic: nothing, or that it asks near, and whether it streams. Behind
/// statistics, which is the usual case, conditions would count.
enum class loop_knows { nothing, asks_near, asks_near_and_streams };

/// Calls run(what is known of the traffic).
template <numbers Which, class Run>
QTENSOR_INLINE void with_known_traffic(const traffic& t, const Run& run) {
  if constexpr (Which == numbers::fitting)
    if (t.fetches == fetch::near) {
      if (t.streams) return run(std::integral_constant<loop_knows, loop_knows::asks_near_and_streams>{});
      return run(std::integral_constant<loop_knows, loop_knows::asks_near>{});
    }
  run(std::integral_constant<loop_knows, loop_knows::nothing>{});
}

/// Codes of one block of four batches, `Bits` each; it is aligned to its size where it is streamed.
template <class S, quotient_by By, class A, class From, numbers Which, int Bits, loop_knows Known, class Parameters>
QTENSOR_INLINE void encode_block(const typename From::type* x, const Parameters& p, std::uint8_t* to,
                                 const traffic& t) {
  constexpr index_t read = 4 * lanes<A> * index_t{sizeof(typename From::type)};
  if constexpr (Known == loop_knows::nothing)
    fetch_ahead<read>(x, t);
  else
    fetch_lines<read>(x, t.ahead);
  const bytes<A> c = codes_of_four<S, By, A, From, Which>(x, p);
  const bool streams = Known == loop_knows::nothing ? t.streams : Known == loop_knows::asks_near_and_streams;
  if constexpr (Bits == 4)
    simd::put_nibbles(to, c, streams);
  else
    simd::put(to, c, streams);
}

/// Codes of whole blocks, x[0, n). Not inline, one loop, and nothing is called here, so that numbers and constants stay
/// in registers. Parameters are copied here, not by the caller: clang++ does that by halves of vectors, which CPUs wait
/// for.
template <class S, quotient_by By, class A, class From, numbers Which, int Bits, loop_knows Known, class Parameters>
[[gnu::noinline]] void encode_whole_blocks(const typename From::type* x, index_t n, const Parameters& of_run,
                                           std::uint8_t* to, traffic t) {
  constexpr index_t step = 4 * lanes<A>;
  Parameters p = of_run;
  for (const auto* const end = x + n; x != end; x += step, to += step * Bits / 8, p.next())
    encode_block<S, By, A, From, Which, Bits, Known>(x, p, to, t);
}
/// The same by the loop that suits the traffic.
template <class S, quotient_by By, class A, class From, numbers Which, int Bits, class Parameters>
void encode_whole_blocks(const typename From::type* x, index_t n, const Parameters& of_run, std::uint8_t* to,
                         traffic t) {
  with_known_traffic<Which>(
      t, [&](auto known) { encode_whole_blocks<S, By, A, From, Which, Bits, known>(x, n, of_run, to, t); });
}

/// The same of whole groups of at least a block: what each shares is kept in registers, and nothing else is done
/// between them. A last block of a group that is not whole begins early.
template <class S, quotient_by By, class A, class From, numbers Which, int Bits, class Groups>
[[gnu::noinline]] void encode_whole_groups(const typename From::type* x, index_t n, index_t group, Groups groups,
                                           std::uint8_t* to, traffic t) {
  constexpr index_t step = 4 * lanes<A>;
  const index_t left = group % step;
  with_known_traffic<Which>(t, [&](auto known) QTENSOR_INLINE_LAMBDA {
    for (const auto* const end = x + n; x != end; ++groups.group) {
      const auto own = groups.of_group();
      for (const auto* const last = x + group - left; x != last; x += step, to += step * Bits / 8)
        encode_block<S, By, A, From, Which, Bits, known>(x, own, to, t);
      if (left == 0) continue;
      x += left, to += left * Bits / 8;
      encode_block<S, By, A, From, Which, Bits, known>(x - step, own, to - step * Bits / 8, t);
    }
  });
}

/// The same for rows under parameters that all share, x_step and to_step apart, a byte a code: what short rows would
/// make ready again for each is kept in registers. n is a multiple of four batches.
template <class S, quotient_by By, class A, class From, class Parameters>
[[gnu::noinline]] void encode_whole_rows(const typename From::type* x, index_t x_step, index_t rows, index_t n,
                                         const Parameters& of_all, std::uint8_t* to, index_t to_step) {
  static_assert(Parameters::all_alike);
  constexpr index_t step = 4 * lanes<A>;
  const Parameters p = of_all;
  for (index_t r = 0; r < rows; ++r, x += x_step, to += to_step)
    for (index_t i = 0; i < n; i += step) simd::store(to + i, codes_of_four<S, By, A, From, numbers::any>(x + i, p));
}

/// Codes of x[0, n), `Bits` each: blocks of four batches. A last one that is not whole begins early where codes end a
/// byte and all parameters are the same (what it shares with the one before it is written twice), but not where that is
/// on its way past the caches; else it is padded with zeros.
template <class S, quotient_by By, class A, class From, numbers Which = numbers::any, int Bits = 8, class Parameters>
void encode_blocks(const typename From::type* x, index_t n, const Parameters& of_run, std::uint8_t* to,
                   traffic t = {}) {
  using element = typename From::type;
  constexpr index_t step = 4 * lanes<A>, size = static_cast<index_t>(xsimd::batch<element, A>::size);
  const auto encode = encode_whole_blocks<S, By, A, From, Which, Bits, Parameters>;
  const index_t whole = n / step * step, left = n - whole;
  if (whole > 0) encode(x, whole, of_run, to, t);
  if (left == 0) return;
  fetch_ahead<step * index_t{sizeof(element)}>(x + whole, t);
  if (left * Bits % 8 == 0 && Parameters::all_alike && whole > 0 && !t.streams)
    return encode(x + n - step, step, of_run, to + (n - step) * Bits / 8, {});
  Parameters p = of_run;
  for (index_t i = 0; i < whole; i += step) p.next();
  tail_space<A> space;
  p.pad(space, left);
  alignas(64) element tail[static_cast<std::size_t>(step)];
#pragma GCC unroll 4
  for (index_t i = 0; i < step; i += size)
    simd::store(tail + i, simd::load_n<A>(x + whole + i, std::clamp(left - i, index_t{0}, size)));
  alignas(64) std::uint8_t codes[static_cast<std::size_t>(step)] = {};
  encode(tail, step, p, codes, {});
  // Codes of the zeros behind the last number are no part of it.
  if (Bits == 4 && left % 2 != 0) codes[left / 2] &= 15;
  simd::store_n(to + whole * Bits / 8, packed_bytes<Bits>(left), simd::load<A>(codes));
}

/// Whether codes of S can be stored where they belong at once, by chunks of `step` of them.
template <class S, class A>
bool encodes_in_place(const code_unit_t<S>* codes, index_t step, const traffic& t) {
  constexpr int bits = S::code_format::bits;
  return bits == stored_bits<S, A> &&
         (!t.streams || begins_line(reinterpret_cast<const std::uint8_t*>(codes), step * bits / 8));
}

/// Calls encode(first, count, to, traffic) for chunks of [0, n) that start on a byte: codes in place, or, if not
/// `in_place`, on the stack, from where they are packed or streamed; chunk <= chunk_elements then.
template <class S, class A, class Encode>
QTENSOR_INLINE void for_each_chunk(index_t n, index_t chunk, code_unit_t<S>* codes, bool in_place, traffic t,
                                   Encode encode) {
  constexpr int bits = S::code_format::bits;
  constexpr bool packs = bits != stored_bits<S, A>;
  auto* const to = reinterpret_cast<std::uint8_t*>(codes);
  alignas(64) std::uint8_t kept[packs ? static_cast<std::size_t>(chunk_elements) : 1];
  const bool gathers = !in_place && t.streams && !(packs && begins_line(to, packed_bytes<bits>(chunk)));
  line_writer<packed_bytes<bits>(chunk_elements), A> writer(to);
  const traffic of_kept{t.fetches, false, t.ahead};
  if (t.streams) fetch_shared_lines(to, packed_bytes<bits>(n));
  for (index_t first = 0; first < n; first += chunk) {
    const index_t count = std::min(chunk, n - first);
    std::uint8_t* const here = to + first * bits / 8;
    encode(first, count, in_place ? here : packs ? kept : writer.room(), in_place ? t : of_kept);
    if (in_place) continue;
    if constexpr (packs) pack_codes<A, bits>(kept, count, gathers ? writer.room() : here, !gathers && t.streams);
    if (gathers) writer.add(packed_bytes<bits>(count));
  }
  if (gathers) writer.finish();
}

/// Elements that are encoded at a time where codes are not stored in place: fewer where they are streamed, so that
/// reading and writing alternate quickly, but for groups, which make a table of their parameters ready each time.
inline index_t elements_at_once(const traffic& t, bool have_table = false) {
  return !t.streams ? chunk_elements : have_table ? 1024 : 512;
}

/// The same for chunks of whole groups: encode(first, count, first group, groups, to, traffic).
template <class S, class A, class Encode>
QTENSOR_INLINE void for_each_group_chunk(index_t n, index_t group, code_unit_t<S>* codes, traffic t, Encode encode) {
  constexpr index_t most = group_table<S, A>::most;
  const bool in_place = encodes_in_place<S, A>(codes, most * group, t);
  const index_t groups_of_chunk = in_place ? most : std::max(elements_at_once(t, true) / group, index_t{1});
  index_t g = 0;
  for_each_chunk<S, A>(n, groups_of_chunk * group, codes, in_place, t,
                       [&](index_t first, index_t count, std::uint8_t* to, traffic of_chunk) {
                         encode(first, count, g, divide_up(count, group), to, of_chunk);
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
  static constexpr int stored = detail::stored_bits<S, A>;
  static constexpr bool takes_traffic = true;

  static void uniform(const element* x, index_t n, element_scale s, std::int32_t zero_point, unit* codes,
                      traffic t = {}) {
    if constexpr (!detail::counting_format<typename S::code_format>)
      if (s.scale == 1.f && s.tensor_scale == 1.f)  // a mere cast
        return encode_uniform_by<quotient_by::nothing>(x, n, s, zero_point, codes, t);
    switch (way_of(s, zero_point)) {
      case uniform_way::one_by_one:
        return encode_irregular(x, n, s, zero_point, codes);
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
  /// unspecified): to bytes + r * step. `way` is what way_of says.
  static void uniform_bytes(uniform_way way, const element* x, index_t x_step, index_t rows, index_t n, element_scale s,
                            std::int32_t zero_point, std::uint8_t* bytes, index_t step) {
    const auto by = [&]<quotient_by By>(std::integral_constant<quotient_by, By>) {
      const detail::uniform_parameters<S, By, A> p(s, zero_point);
      if (rows > 1 && n % (4 * lanes<A>) == 0)
        return detail::encode_whole_rows<S, By, A, From>(x, x_step, rows, n, p, bytes, step);
      for (index_t r = 0; r < rows; ++r) detail::encode_blocks<S, By, A, From>(x + r * x_step, n, p, bytes + r * step);
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
    const auto encode = [&](index_t first, index_t count, std::uint8_t* to, traffic of_chunk) {
      const std::int32_t* zeros = zero_points != nullptr ? zero_points + first : nullptr;
      const detail::vector_parameters<S, A> p{scales + first, zeros, tensor_scale};
      detail::encode_blocks<S, safe, A, From, numbers::any, stored>(x + first, count, p, to, of_chunk);
      if (detail::any_irregular<S, A>(scales + first, zeros, count)) [[unlikely]]
        for (index_t i = 0; i < count; ++i) mend(x + first, scales[first + i], zeros, i, i, i + 1, tensor_scale, to);
    };
    const bool in_place = detail::encodes_in_place<S, A>(codes, detail::chunk_elements, t);
    detail::for_each_chunk<S, A>(n, in_place ? detail::chunk_elements : detail::elements_at_once(t), codes, in_place, t,
                                 encode);
  }

  static void grouped(const element* x, index_t n, index_t group, const float* scales, const std::int32_t* zero_points,
                      float tensor_scale, unit* codes, traffic t = {}) {
    if (group >= n) return uniform(x, n, {*scales, tensor_scale}, zero_points != nullptr ? *zero_points : 0, codes, t);
    const auto by = [&]<int Batches>(std::integral_constant<int, Batches>) {
      grouped_by<Batches>(x, n, group, scales, zero_points, tensor_scale, codes, t);
    };
    constexpr index_t known = detail::static_group<typename S::granularity_type>;
    if constexpr (constexpr int batches = detail::batches_of_group<S, A>(); batches != 0 && known < long_group) {
      if (group == known) return by(std::integral_constant<int, batches>{});  // others are rare
    } else {
      if (is_own_run(group, t)) return own_runs<fast>(x, n, group, scales, zero_points, tensor_scale, codes, t);
      if (group == 2 * lanes<A>) return by(std::integral_constant<int, 2>{});
      if (group % (4 * lanes<A>) == 0 && group <= detail::chunk_elements) return by(std::integral_constant<int, 4>{});
    }
    if (group == lanes<A>) return by(std::integral_constant<int, 1>{});
    if (group == 1) return vector(x, n, scales, zero_points, tensor_scale, codes, t);
    spread(x, n, group, scales, zero_points, tensor_scale, codes, t);
  }

  /// uniform() for numbers that fit their scale (numbers::fitting); the zero point is regular then, too.
  static void uniform_fitting(const element* x, index_t n, element_scale s, std::int32_t zero_point, unit* codes,
                              traffic t = {}) {
    own_runs<detail::fitting_run_quotient<S, A, From>, numbers::fitting>(x, n, n, &s.scale, &zero_point, s.tensor_scale,
                                                                         codes, t);
  }
  /// grouped(), likewise.
  static void fitting(const element* x, index_t n, index_t group, const float* scales, const std::int32_t* zero_points,
                      float tensor_scale, unit* codes, traffic t = {}) {
    constexpr index_t known = detail::static_group<typename S::granularity_type>, step = 4 * lanes<A>;
    constexpr int batches = known == 0 ? 4 : detail::batches_of_group<S, A>();
    constexpr quotient_by by = batches == 1 ? detail::fitting_quotient<S, A> : detail::fitting_run_quotient<S, A, From>;
    if constexpr (known == 0 || known >= long_group)
      if (group >= n || is_own_run(group, t))
        return own_runs<by, numbers::fitting>(x, n, group, scales, zero_points, tensor_scale, codes, t);
    if constexpr (batches != 0 && known <= detail::chunk_elements)
      if (group < n && (known == 0 ? group % step == 0 && group <= detail::chunk_elements : group == known))
        return detail::for_each_group_chunk<S, A>(
            n, group, codes, t,
            [&](index_t first, index_t count, index_t g, index_t groups, std::uint8_t* to, traffic of_chunk) {
              encode_chunk<by, batches, numbers::fitting>(x + first, count, group, scales + g,
                                                          zero_points != nullptr ? zero_points + g : nullptr, groups,
                                                          tensor_scale, to, of_chunk);
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
    const bool in_place = detail::encodes_in_place<S, A>(codes, 0, t);
    detail::for_each_chunk<S, A>(n, in_place ? std::max(n, index_t{1}) : detail::elements_at_once(t), codes, in_place,
                                 t, [&](index_t first, index_t count, std::uint8_t* to, traffic of_chunk) {
                                   detail::encode_blocks<S, By, A, From, Which, stored>(x + first, count, p, to,
                                                                                        of_chunk);
                                 });
  }

  /// A run under a scale and a zero point that vectors cannot take.
  static void encode_irregular(const element* x, index_t n, element_scale s, std::int32_t zero_point, unit* codes) {
    if (detail::scale_0_clears<S> && s.scale == 0.f) {
      constexpr index_t bits = is_packed<typename S::code_format> ? S::code_format::bits : 8 * index_t{sizeof(unit)};
      std::memset(codes, 0, static_cast<std::size_t>(divide_up(n * bits, 8)));
    } else {
      reference_encoder<S, From>::uniform(x, n, s, zero_point, codes);
    }
  }
  /// Codes [begin, end) again by the reference if their parameters, entry `at`, are irregular.
  static void mend(const element* x, float scale, const std::int32_t* zeros, index_t at, index_t begin, index_t end,
                   float tensor_scale, std::uint8_t* to) {
    if (!detail::is_irregular<S, A>(scale, zeros, at)) return;
    constexpr index_t in_byte = 8 / stored;
    if (detail::scale_0_clears<S> && scale == 0.f && begin % in_byte == 0 && end % in_byte == 0)
      return void(std::memset(to + begin / in_byte, 0, static_cast<std::size_t>((end - begin) / in_byte)));
    for (index_t i = begin; i < end; ++i)
      qtensor::detail::store_bits<stored>(
          to, i * stored,
          quantize_element<S>(number<From>(x[i]), {scale, tensor_scale}, zeros != nullptr ? zeros[at] : 0));
  }

  /// Whether groups consist of whole blocks, or of some of which the last may begin early.
  static bool fills_blocks(index_t group, const traffic& t) {
    constexpr index_t block = 4 * lanes<A>;
    return group % block == 0 || (group > block && group * stored % 8 == 0 && !t.streams);
  }
  /// Groups from this length on keep what they share in registers; from a shorter one on where that would be spread to
  /// their elements otherwise, or to their batches, of which it takes many to pay for it, or few if they are short, or
  /// where a loop over groups has fewer blocks of them.
  static constexpr index_t long_group = 512, spread_to_elements = 4 * lanes<A>,
                           spread_to_batches = lanes<A> > 4 ? 16 * lanes<A> : spread_to_elements;
  static bool is_own_run(index_t group, const traffic& t) {
    const bool loops = !has_many_registers<A> && stored == S::code_format::bits && fills_blocks(group, t);
    const index_t least = group % (4 * lanes<A>) == 0       ? long_group
                          : group % lanes<A> == 0 && !loops ? spread_to_batches
                                                            : spread_to_elements;
    return group >= least && group * S::code_format::bits % 8 == 0;
  }

  /// Groups one by one; what they share is prepared for many at once, by `Fast` where that is right.
  template <quotient_by Fast, numbers Which = numbers::any>
  static void own_runs(const element* x, index_t n, index_t group, const float* scales, const std::int32_t* zero_points,
                       float tensor_scale, unit* codes, traffic t) {
    constexpr index_t most = detail::group_table<S, A>::most;
    for (index_t first = 0, g = 0; first < n; first += most * group, g += most) {
      const index_t count = std::min(most * group, n - first);
      const std::int32_t* zeros = zero_points != nullptr ? zero_points + g : nullptr;
      unit* to = codes + unit_of<S>(first);
      if (!own_runs_by<Fast, Which>(x + first, count, group, scales + g, zeros, tensor_scale, to, t))
        own_runs_by<safe, numbers::any>(x + first, count, group, scales + g, zeros, tensor_scale, to, t);
    }
  }
  /// The same by one quotient; false, with nothing written, where that is not right for all scales.
  template <quotient_by By, numbers Which>
  static bool own_runs_by(const element* x, index_t n, index_t group, const float* scales, const std::int32_t* zeros,
                          float tensor_scale, unit* codes, traffic t) {
    const index_t groups = divide_up(n, group);
    detail::group_table<S, A> table;
    if (!table.template fill<By, Which>(scales, zeros, groups, tensor_scale)) return false;
    detail::group_parameters<S, By, A, 4> p{&table, scales, groups - 1, tensor_scale, 1};
    // Several together, where codes are packed or go past the caches: those should fill lines.
    if (const index_t most = detail::elements_at_once(t, true);
        2 * group <= most && !detail::encodes_in_place<S, A>(codes, group, t)) {
      detail::for_each_chunk<S, A>(n, most / group * group, codes, false, t,
                                   [&](index_t first, index_t count, std::uint8_t* to, traffic of_chunk) {
                                     for (index_t i = 0, of_group; i < count; i += of_group, ++p.group) {
                                       of_group = std::min(group, count - i);
                                       detail::encode_blocks<S, By, A, From, Which, stored>(
                                           x + first + i, of_group, p.of_group(), to + i * stored / 8, of_chunk);
                                       mend(x + first, scales[p.group], zeros, p.group, i, i + of_group, tensor_scale,
                                            to);
                                     }
                                   });
      return true;
    }
    index_t whole = 0;
    if (fills_blocks(group, t) && detail::encodes_in_place<S, A>(codes, group, t) &&
        !detail::any_irregular<S, A>(scales, zeros, groups)) {
      auto* const to = reinterpret_cast<std::uint8_t*>(codes);
      whole = n / group * group;
      detail::encode_whole_groups<S, By, A, From, Which, stored>(x, whole, group, p, to, t);
      p.group = whole / group;
    }
    for (index_t first = whole; first < n; first += group, ++p.group) {
      const index_t count = std::min(group, n - first);
      unit* to = codes + unit_of<S>(first);
      if (detail::is_irregular<S, A>(scales[p.group], zeros, p.group)) [[unlikely]]
        encode_irregular(x + first, count, {scales[p.group], tensor_scale}, zeros != nullptr ? zeros[p.group] : 0, to);
      else
        encode_alike<Which>(x + first, count, p.of_group(), to, t);
    }
    return true;
  }

  /// The groups of a chunk by one quotient; false, with nothing written, where that is not right for all scales.
  template <quotient_by By, int BatchesOfGroup, numbers Which>
  static bool encode_groups(const element* x, index_t n, index_t group, const float* scales, const std::int32_t* zeros,
                            index_t groups, float tensor_scale, std::uint8_t* to, traffic t) {
    detail::group_table<S, A> table;
    if (!table.template fill<By, Which>(scales, zeros, groups, tensor_scale)) return false;
    const detail::group_parameters<S, By, A, BatchesOfGroup> p{&table, scales, groups - 1, tensor_scale,
                                                               group / (4 * lanes<A>)};
    detail::encode_blocks<S, By, A, From, Which, stored>(x, n, p, to, t);
    return true;
  }
  /// The same by `Fast` or by the one that is always right.
  template <quotient_by Fast, int BatchesOfGroup, numbers Which = numbers::any>
  static void encode_chunk(const element* x, index_t n, index_t group, const float* scales, const std::int32_t* zeros,
                           index_t groups, float tensor_scale, std::uint8_t* to, traffic t) {
    if (!encode_groups<Fast, BatchesOfGroup, Which>(x, n, group, scales, zeros, groups, tensor_scale, to, t))
      encode_groups<safe, BatchesOfGroup, numbers::any>(x, n, group, scales, zeros, groups, tensor_scale, to, t);
  }

  template <int BatchesOfGroup>
  static void grouped_by(const element* x, index_t n, index_t group, const float* scales,
                         const std::int32_t* zero_points, float tensor_scale, unit* codes, traffic t) {
    const auto encode = [&](index_t first, index_t count, index_t g, index_t groups, std::uint8_t* to,
                            traffic of_chunk) {
      const std::int32_t* zeros = zero_points != nullptr ? zero_points + g : nullptr;
      encode_chunk<fast, BatchesOfGroup>(x + first, count, group, scales + g, zeros, groups, tensor_scale, to,
                                         of_chunk);
      if (detail::any_irregular<S, A>(scales + g, zeros, groups)) [[unlikely]]
        for (index_t k = 0; k < groups; ++k)
          mend(x + first, scales[g + k], zeros, k, k * group, std::min((k + 1) * group, count), tensor_scale, to);
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

/// The one of wider codes: integers of 16 and 32 bits, bf16 and f16.
template <wide_encodable S, usable_arch A, float_source From = from_f32>
struct wide_encoder {
  using unit = code_unit_t<S>;
  using element = typename From::type;
  static constexpr bool takes_traffic = true;

  static void uniform(const element* x, index_t n, element_scale s, std::int32_t zero_point, unit* codes,
                      traffic t = {}) {
    if (detail::is_irregular<S, A>(s.scale, &zero_point, 0))
      return reference_encoder<S, From>::uniform(x, n, s, zero_point, codes);
    constexpr quotient_by safe = detail::safe_quotient<S>;
    if constexpr (!detail::counting_format<typename S::code_format>)
      if (s.scale == 1.f && s.tensor_scale == 1.f)  // a mere cast
        return run<quotient_by::nothing>(x, n, detail::uniform_parameters<S, quotient_by::nothing, A>(s, zero_point),
                                         codes, t);
    if constexpr (safe == quotient_by::division && !detail::has_own_inverse<S>)
      if (has_exact_inverse(s))
        return run<quotient_by::inverse>(x, n, detail::uniform_parameters<S, quotient_by::inverse, A>(s, zero_point),
                                         codes, t);
    run<safe>(x, n, detail::uniform_parameters<S, safe, A>(s, zero_point), codes, t);
  }
  static void vector(const element* x, index_t n, const float* scales, const std::int32_t* zero_points,
                     float tensor_scale, unit* codes, traffic t = {}) {
    run<detail::safe_quotient<S>>(x, n, detail::vector_parameters<S, A>{scales, zero_points, tensor_scale}, codes, t);
    if (!detail::any_irregular<S, A>(scales, zero_points, n)) return;
    for (index_t i = 0; i < n; ++i)
      if (detail::is_irregular<S, A>(scales[i], zero_points, i))
        reference_encoder<S, From>::uniform(x + i, 1, {scales[i], tensor_scale},
                                            zero_points != nullptr ? zero_points[i] : 0, codes + i);
  }
  static void grouped(const element* x, index_t n, index_t group, const float* scales, const std::int32_t* zero_points,
                      float tensor_scale, unit* codes, traffic t = {}) {
    constexpr index_t long_group = 2 * step, chunk = 512;
    if (group >= std::min(n, long_group)) {
      for (index_t i = 0, g = 0; i < n; i += group, ++g)
        uniform(x + i, std::min(group, n - i), {scales[g], tensor_scale}, zero_points != nullptr ? zero_points[g] : 0,
                codes + i, t);
      return;
    }
    alignas(64) float own_scales[chunk + lanes<A>];
    alignas(64) std::int32_t own_zeros[chunk + lanes<A>];
    for (index_t i = 0; i < n; i += chunk) {
      const index_t count = std::min(chunk, n - i);
      spread_entries<A>(scales, group, i, count, own_scales);
      if (zero_points != nullptr) spread_entries<A>(zero_points, group, i, count, own_zeros);
      vector(x + i, count, own_scales, zero_points != nullptr ? own_zeros : nullptr, tensor_scale, codes + i, t);
    }
  }

 private:
  static constexpr index_t step = 4 * lanes<A>;

  /// Powers of two: divided by and multiplied by their inverse, numbers are the same, rounded once.
  static bool has_exact_inverse(const element_scale& s) {
    const float whole = S::has_tensor_scale ? s.scale * s.tensor_scale : s.scale;
    const std::uint32_t bits = bits_of(whole), exponent = bits >> 23;
    return (bits & low_bits(23)) == 0 && exponent > 0 && exponent < 254;
  }

  /// Four batches at a time, the last ones by way of a padded copy; past the caches where codes begin a line.
  template <quotient_by By, class Parameters>
  static void run(const element* x, index_t n, Parameters p, unit* codes, traffic t) {
    t.streams = t.streams && begins_line(codes);
    if (t.streams) fetch_shared_lines(codes, n);
    const auto four = [&](const element* from, unit* to, bool past_caches) QTENSOR_INLINE_LAMBDA {
#pragma GCC unroll 2
      for (int k = 0; k < 4; k += 2)
        store_wide<S, By, A>(
            {From::template load<A>(from + k * lanes<A>), From::template load<A>(from + (k + 1) * lanes<A>)}, p, k,
            to + k * lanes<A>, past_caches);
    };
    index_t i = 0;
    for (; i + step <= n; i += step, p.next()) {
      fetch_ahead<step * index_t{sizeof(element)}>(x + i, t);
      four(x + i, codes + i, t.streams);
    }
    if (i == n) return;
    detail::tail_space<A> space;
    p.pad(space, n - i);
    alignas(64) element tail[static_cast<std::size_t>(step)];
    alignas(64) unit kept[static_cast<std::size_t>(step)];
    std::fill(std::copy(x + i, x + n, tail), std::end(tail), element{});
    four(tail, kept, false);
    std::copy_n(kept, n - i, codes + i);
  }
};

template <wide_encodable S, usable_arch A>
requires(!std::same_as<A, scalar_arch>) struct kernel<op::encode, S, A> : wide_encoder<detail::encoding_form<S>, A> {
  static constexpr bool enabled = true;
  static constexpr std::string_view name = arch_name<A>;
  template <float_source From>
  using reading = wide_encoder<detail::encoding_form<S>, A, From>;
};

/// The one of codes from the top of a byte down: what that of codes from its bottom up has stored is turned while it
/// lies in a cache.
template <turns_codes S, usable_arch A, class Upright>
struct turning_encoder {
  static constexpr int bits = S::code_format::bits;
  static constexpr bool takes_traffic = true;

  template <class Element>
  static void uniform(const Element* x, index_t n, element_scale s, std::int32_t zero_point, std::uint8_t* codes,
                      traffic t = {}) {
    by_chunks(n, 1, codes, [&](index_t first, index_t count, std::uint8_t* to) {
      Upright::uniform(x + first, count, s, zero_point, to, stays(t));
    });
  }
  template <class Element>
  static void vector(const Element* x, index_t n, const float* scales, const std::int32_t* zero_points,
                     float tensor_scale, std::uint8_t* codes, traffic t = {}) {
    by_chunks(n, 1, codes, [&](index_t first, index_t count, std::uint8_t* to) {
      const std::int32_t* zeros = zero_points != nullptr ? zero_points + first : nullptr;
      Upright::vector(x + first, count, scales + first, zeros, tensor_scale, to, stays(t));
    });
  }
  template <class Element>
  static void grouped(const Element* x, index_t n, index_t group, const float* scales, const std::int32_t* zero_points,
                      float tensor_scale, std::uint8_t* codes, traffic t = {}) {
    by_chunks(n, group, codes, [&](index_t first, index_t count, std::uint8_t* to) {
      const index_t g = first / group;
      const std::int32_t* zeros = zero_points != nullptr ? zero_points + g : nullptr;
      Upright::grouped(x + first, count, group, scales + g, zeros, tensor_scale, to, stays(t));
    });
  }

 private:
  /// Calls encode(first, count, to) for chunks of whole groups that start on bytes, and turns what that stores.
  template <class Encode>
  static void by_chunks(index_t n, index_t group, std::uint8_t* codes, Encode encode) {
    constexpr index_t per_byte = 8 / bits, cached = 8192;
    const index_t least = per_byte * std::min(group, n), chunk = round_up(cached, least);
    for (index_t first = 0; first < n; first += chunk) {
      const index_t count = std::min(chunk, n - first);
      std::uint8_t* const to = codes + first / per_byte;
      encode(first, count, to);
      turn_codes<A, bits>(to, packed_bytes<bits>(count), to);
    }
  }
  static traffic stays(traffic t) {
    t.streams = false;
    return t;
  }
};

template <turns_codes S, usable_arch A>
requires(!std::same_as<A, scalar_arch> &&
         std::derived_from<kernel<op::encode, upright<S>, A>,
                           vector_encoder<detail::encoding_form<upright<S>>, A>>) struct kernel<op::encode, S, A>
    : turning_encoder<S, A, kernel<op::encode, upright<S>, A>> {
  static constexpr bool enabled = true;
  static constexpr std::string_view name = arch_name<A>;
  template <float_source From>
  using reading = turning_encoder<S, A, typename kernel<op::encode, upright<S>, A>::template reading<From>>;
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

/// encode_uniform for numbers that fit their scale: see encode_fitting.
template <quantization_scheme S, float_source From = from_f32>
void encode_uniform_fitting(const typename From::type* x, index_t n, element_scale s, std::int32_t zero_point,
                            code_unit_t<S>* codes, traffic t = {}) {
  using best = encoder_of<S, From>;
  if (n <= 0) return;
  if constexpr (detail::encodes_by_vectors<best>)
    best::uniform_fitting(x, n, s, zero_point, codes, t);
  else
    detail::run_hinted<best>(t, [&](auto... hint) { best::uniform(x, n, s, zero_point, codes, hint...); });
}

/// encode_grouped for numbers that fit their scales: finite, no code saturated by more than a step (numbers::fitting),
/// scales and zero points as block_scales and range_scales compute them. Codes of groups that do not fit are
/// unspecified.
template <quantization_scheme S, float_source From = from_f32>
void encode_fitting(const typename From::type* x, index_t n, index_t group, const float* scales,
                    const std::int32_t* zero_points, code_unit_t<S>* codes, float tensor_scale = 1.f, traffic t = {}) {
  using best = encoder_of<S, From>;
  if (n <= 0) return;
  if constexpr (detail::encodes_by_vectors<best>)
    best::fitting(x, n, group, scales, zero_points, tensor_scale, codes, t);
  else
    detail::run_hinted<best>(
        t, [&](auto... hint) { best::grouped(x, n, group, scales, zero_points, tensor_scale, codes, hint...); });
}

}  // namespace qtensor::inline QTENSOR_ABI::simd
