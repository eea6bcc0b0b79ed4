// Packed quads of codes to floats, or to pairs of bf16 numbers, outputs in lanes: what float products read.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstring>
#include <qtensor/reference/codec.hpp>
#include <qtensor/simd/decode.hpp>
#include <qtensor/simd/gemm_int8.hpp>
#include <qtensor/simd/ops_bf16_dot.hpp>
#include <qtensor/simd/ops_columns.hpp>
#include <qtensor/simd/scales.hpp>

// A quad is a word an output: the codes of four k, the first in the lowest byte; codes of at most 4 bits fill half a
// byte, the lower ones those of outputs [0, width / 2), the upper ones those of the others. Integer codes stand as
// packed numbers: number + Offset, signed bytes or unsigned nibbles. Values are dequantize_element<S>, bit for bit.
namespace qtensor::inline QTENSOR_ABI::simd {

/// Outputs of a packed panel of S.
template <quantization_scheme S, usable_arch A>
inline constexpr index_t quad_width = S::code_format::bits <= 4 ? 2 * lanes<A> : int_tile<A>::panel;

namespace detail {

enum class quad_decoding { shifts, nibble_table, planes, through_memory, lookups };

template <class F, class A>
concept plane_decoded = vector_decodable_format<F> && requires(const plane_decoder<F, A>& d, bytes<A> c) {
  d.planes(c);
};
/// Two's complement in a byte: an integer, or one times a power of two (mxint8).
template <class F>
inline constexpr bool is_signed_byte = F::bits == 8 &&
                                       ((F::is_integer && F::is_signed) || requires { F::fraction_bits; });

template <class F, class A>
constexpr quad_decoding quad_decoding_of() {
  constexpr bool nibble = F::bits <= 4, cheap_table = std::same_as<A, avx512_arch> || std::same_as<A, neon_arch>;
  if constexpr (F::is_integer || is_signed_byte<F>)
    return nibble && cheap_table ? quad_decoding::nibble_table : quad_decoding::shifts;
  else if constexpr (nibble && (cheap_table || !plane_decoded<F, A>))
    return quad_decoding::nibble_table;
  else if constexpr (plane_decoded<F, A>)
    return quad_decoding::planes;
  else
    return vector_decodable_format<F> ? quad_decoding::through_memory : quad_decoding::lookups;
}

/// Values of 16 nibbles: packed numbers as they are where a zero point is going to be subtracted.
template <class F, std::int32_t Less>
inline constexpr auto nibble_values = [] {
  std::array<float, 16> values{};
  for (int c = 0; c < 16; ++c) {
    if constexpr (F::is_integer)
      values[static_cast<std::size_t>(c)] = static_cast<float>(c - Less);
    else
      values[static_cast<std::size_t>(c)] = decode_table<F>[static_cast<std::size_t>(c) % decode_table<F>.size()];
  }
  return values;
}();

/// The same as bf16, which is exact where `fit` says so.
template <class F, std::int32_t Less>
struct bf16_nibbles {
  std::uint16_t table[16];
  bool fit;
};
template <class F, std::int32_t Less>
inline constexpr auto bf16_nibble_values = [] {
  bf16_nibbles<F, Less> values{};
  values.fit = true;
  for (std::size_t c = 0; c < 16; ++c) {
    const std::uint32_t bits = bits_of(nibble_values<F, Less>[c]);
    values.table[c] = static_cast<std::uint16_t>(bits >> 16);
    values.fit = values.fit && (bits & 0xffffu) == 0;
  }
  return values;
}();

/// How numbers of codes come as pairs of bf16 by look-up, if they do: nibbles with AVX-512, small floats, signed bytes
/// where long tables take less than rounding them.
enum class pair_look_ups { none, nibbles, planes, signed_bytes };
template <class S, class A>
constexpr pair_look_ups pair_look_ups_of() {
  using F = typename S::code_format;
  if constexpr (F::bits <= 4 && std::same_as<A, avx512_arch>)
    return !S::has_zero_point && bf16_nibble_values<F, 0>.fit ? pair_look_ups::nibbles : pair_look_ups::none;
  else if constexpr (is_signed_byte<F>)
    return !S::has_zero_point && has_long_tables<A> ? pair_look_ups::signed_bytes : pair_look_ups::none;
  else
    return plane_decoded<F, A> ? pair_look_ups::planes : pair_look_ups::none;
}

// The tables a way of decoding needs.
template <class F, class A, std::int32_t Less, quad_decoding How>
struct quad_tables {};
template <class F, class A, std::int32_t Less>
struct quad_tables<F, A, Less, quad_decoding::nibble_table> {
  simd::float_table16<A> table{nibble_values<F, Less>.data()};
};
template <class F, class A, std::int32_t Less>
struct quad_tables<F, A, Less, quad_decoding::through_memory> {
  decoder<F, A> table;
};

// The tables of pairs: of words of nibbles, of bytes of codes.
template <class F, class A, std::int32_t Less, pair_look_ups How>
struct pair_tables {};
template <class F, class A, std::int32_t Less>
struct pair_tables<F, A, Less, pair_look_ups::nibbles> {
  simd::bf16_table16<A> table{bf16_nibble_values<F, Less>.table};
};
template <class F, class A, std::int32_t Less>
struct pair_tables<F, A, Less, pair_look_ups::planes> {
  plane_decoder<F, A> table;
};
template <class F, class A>
struct pair_tables<F, A, 0, pair_look_ups::signed_bytes> {
  value_decoder<F, A, decoding::planes> table;
};

}  // namespace detail

/// Scales, zero points and offsets of one group, an entry for each output of a panel.
template <quantization_scheme S, usable_arch A>
struct quad_parameters {
  using scale_format = typename S::scale_format;
  static constexpr index_t width = quad_width<S, A>;
  /// Whether scales are powers of two that are added to exponents.
  static constexpr bool may_step = std::same_as<scale_format, e8m0> && !S::has_zero_point && !S::has_offset &&
                                   !S::has_tensor_scale && bf16_dot<A>::exists &&
                                   detail::pair_look_ups_of<S, A>() != detail::pair_look_ups::none;

  alignas(64) float scales[width];
  alignas(64) std::int32_t zeros[S::has_zero_point ? width : 1];
  alignas(64) float offsets[S::has_offset ? width : 1];
  alignas(64) std::uint32_t steps[may_step ? width : 1];  ///< what step_exponents takes
  float tensor_scale = 1.f;
  bool far_zeros = false;  ///< a zero point from which codes cannot be subtracted in 32 bits
  bool steps_fit = false;  ///< all numbers times their scales are normal; see load_steps

  /// From the units of a packed panel; zeros are packed numbers. Arrays that S does not have may be null.
  template <class Zero>
  void load(const storage_t<scale_format>* scale_units, const Zero* zero_units, const float* offset_units,
            float two_level = 1.f) {
    tensor_scale = two_level;
    steps_fit = false;
    decode_scales<scale_format, A>(scale_units, width, scales);
    if constexpr (S::has_zero_point) {
      std::copy_n(zero_units, width, zeros);
      if constexpr (sizeof(Zero) > 1) {
        far_zeros = false;
        for (const std::int32_t z : zeros) far_zeros = far_zeros || z < -(1 << 30) || z > 1 << 30;
      }
    }
    if constexpr (S::has_offset) std::copy_n(offset_units, width, offsets);
  }
  /// What pairs_of makes values with, where it can. Without it they are products of floats.
  void load_steps([[maybe_unused]] const storage_t<scale_format>* scale_units) {
    if constexpr (may_step) {
      constexpr auto range = detail::exponents_of<typename S::code_format>;
      words<A> most(0u), least(0u);
      for (index_t c = 0; c < width; c += lanes<A>) {
        const words<A> e = simd::widen_u8<A>(scale_units + c);
        most = simd::max(most, e), least = simd::max(least, words<A>(255u) - e);
        const words<A> step = ((e - words<A>(127u)) << 7) & words<A>(0xffffu);
        simd::store(steps + c, step | (step << 16));
      }
      const int high = static_cast<int>(simd::reduce_max(most)), low = 255 - static_cast<int>(simd::reduce_max(least));
      steps_fit = high < 255 && low - 127 + range.low >= 1 && high - 127 + range.high <= 254;
    }
  }
};

/// What a weight is in a product of bf16 numbers.
enum class bf16_weights {
  values,  ///< the dequantized value, rounded
  numbers  ///< the code's number less its zero point, which is exact; the scale comes later
};

/// How a quad's values are made: a number times its scale, or the dot product of a pair of numbers with (scale, 0).
enum class quad_values { products, dots };

/// Codes of packed panels with A's registers. It holds its tables: make one for a run.
template <quantization_scheme S, std::int32_t Offset, usable_arch A>
class quad_decoder {
  using F = typename S::code_format;
  static constexpr auto how = detail::quad_decoding_of<F, A>();
  static constexpr auto look_ups = detail::pair_look_ups_of<S, A>();
  static constexpr std::int32_t constant_zero = S::has_zero_point ? 0 : Offset;

 public:
  using arch = A;
  using parameters = quad_parameters<S, A>;
  static constexpr bool is_nibble = F::bits <= 4;
  static constexpr bool has_tensor_scale = S::has_tensor_scale;
  /// Whether numbers become bf16 by look-up, and not by rounding floats.
  static constexpr bool looks_pairs_up = look_ups != detail::pair_look_ups::none;
  static constexpr index_t width = quad_width<S, A>, vectors = width / lanes<A>;
  static constexpr index_t quad_bytes = (is_nibble ? width / 2 : width) * 4;

  /// Whether values may be dot products: 4-bit numbers and scales that bf16 holds, none of the numbers infinite, and an
  /// instruction for which that pays.
  static constexpr bool has_dots = [] {
    if constexpr (is_nibble && !F::is_integer && looks_pairs_up && bf16_dot<A>::exists &&
                  std::same_as<A, avx512_arch> && !S::has_zero_point && !S::has_offset && !S::has_tensor_scale &&
                  (std::same_as<typename S::scale_format, e8m0> || std::same_as<typename S::scale_format, e4m3>))
      return detail::is_finite_format<F>;
    else
      return false;
  }();
  /// The smallest scale but 0 for which values() by dots are the products: numbers below the normal ones count as 0
  /// there. Zeros lose their sign, which no sum notices unless it is -0.
  static constexpr float least_scale_for_dots = 0x1p-60f;

  /// Scale, zero point and offset of one batch of outputs.
  struct lane_parameters {
    floats<A> scale, tensor_scale, offset;
    ints<A> zero;
  };
  static QTENSOR_INLINE lane_parameters of(const parameters& p, index_t v) {
    return of(p.scales, p.zeros, p.offsets, p.tensor_scale, v);
  }
  /// The same from arrays with an entry for each output; those that S does not have may be null.
  template <class Zero>
  static QTENSOR_INLINE lane_parameters of(const float* scales, [[maybe_unused]] const Zero* zeros,
                                           [[maybe_unused]] const float* offsets, [[maybe_unused]] float tensor_scale,
                                           index_t v) {
    const index_t at = v * lanes<A>;
    lane_parameters l{};
    l.scale = simd::load<A>(scales + at);
    if constexpr (S::has_zero_point && sizeof(Zero) == 1)
      l.zero = simd::widen_i8<A>(zeros + at);
    else if constexpr (S::has_zero_point)
      l.zero = simd::load<A>(zeros + at);
    if constexpr (S::has_tensor_scale) l.tensor_scale = floats<A>(tensor_scale);
    if constexpr (S::has_offset) l.offset = simd::load<A>(offsets + at);
    return l;
  }

  /// Batch v of a quad's outputs, for its four k: numbers less their zero points.
  QTENSOR_INLINE std::array<floats<A>, 4> numbers(const std::uint8_t* quad, index_t v, const lane_parameters& p) const {
    std::array<floats<A>, 4> n;
    if constexpr (how == detail::quad_decoding::nibble_table) {
      const words<A> w = load_words(quad, v);
      detail::repeat<4>([&](auto k) QTENSOR_INLINE_LAMBDA { n[k] = tables_.table(w >> (8 * int(k))); });
      if constexpr (S::has_zero_point) {
        const floats<A> zero = simd::to_float(p.zero);
        detail::repeat<4>([&](auto k) QTENSOR_INLINE_LAMBDA { n[k] = simd::sub(n[k], zero); });
      }
    } else if constexpr (how == detail::quad_decoding::shifts) {
      const words<A> w = load_words(quad, v);
      detail::repeat<4>([&](auto k) QTENSOR_INLINE_LAMBDA {
        ints<A> c;
        if constexpr (is_nibble)
          c = simd::bits_as<std::int32_t>((w >> (8 * int(k))) & words<A>(15u));
        else
          c = simd::bits_as<std::int32_t>(w << (24 - 8 * int(k))) >> 24;
        if constexpr (S::has_zero_point)
          c = c - p.zero;
        else if constexpr (Offset != 0)
          c = c - ints<A>(Offset);
        n[k] = simd::to_float(c);
        if constexpr (requires { F::fraction_bits; }) n[k] = simd::mul(n[k], floats<A>(exp2i(-F::fraction_bits)));
      });
    } else if constexpr (how == detail::quad_decoding::planes) {
      const auto pairs = number_pairs(quad, v);
      n[0] = simd::bits_as<float>(pairs[0] << 16);
      n[1] = simd::bits_as<float>(pairs[1] << 16);
      n[2] = simd::bits_as<float>(pairs[0] & words<A>(0xffff0000u));
      n[3] = simd::bits_as<float>(pairs[1] & words<A>(0xffff0000u));
    } else if constexpr (how == detail::quad_decoding::through_memory) {
      alignas(64) float in_order[4 * lanes<A>];
      const auto part = tables_.table(code_bytes<A>{quad + v * lanes<A> * 4}, no_zero_points<A>{});
      detail::repeat<4>([&](auto k) QTENSOR_INLINE_LAMBDA { simd::store(in_order + k * lanes<A>, part[k]); });
      n = simd::load_columns<A>(in_order, 4);
    } else {
      const words<A> w = load_words(quad, v);
      detail::repeat<4>([&](auto k) QTENSOR_INLINE_LAMBDA {
        n[k] = simd::lookup<A>(decode_table<F>.data(), (w >> (8 * int(k))) & words<A>(0xffu));
      });
    }
    return n;
  }
  /// The same as values: times the scales, plus the offset.
  template <quad_values By = quad_values::products>
  QTENSOR_INLINE std::array<floats<A>, 4> values(const std::uint8_t* quad, index_t v, const lane_parameters& p) const {
    if constexpr (By == quad_values::dots) {
      using dot = bf16_dot<A>;
      const auto pairs = number_pairs(quad, v);
      const words<A> high = simd::bits_as<std::uint32_t>(p.scale), low = high >> 16;
      const auto value = [&](const words<A>& pair, const words<A>& scale)
                             QTENSOR_INLINE_LAMBDA { return dot::dot(floats<A>(0.f), dot::of(pair), dot::of(scale)); };
      return {value(pairs[0], low), value(pairs[1], low), value(pairs[0], high), value(pairs[1], high)};
    }
    std::array<floats<A>, 4> n = numbers(quad, v, p);
    detail::repeat<4>([&](auto k) QTENSOR_INLINE_LAMBDA {
      n[k] = simd::mul(n[k], p.scale);
      if constexpr (S::has_tensor_scale) n[k] = simd::mul(n[k], p.tensor_scale);
      if constexpr (S::has_offset) n[k] = simd::add(n[k], p.offset);
    });
    return n;
  }

  /// Numbers as pairs of bf16: k = 0 and 2, then 1 and 3.
  QTENSOR_INLINE std::array<words<A>, 2> numbers_in_pairs(const std::uint8_t* quad, index_t v,
                                                          const lane_parameters& p) const {
    if constexpr (looks_pairs_up)
      return number_pairs(quad, v);
    else
      return paired(numbers(quad, v, p));
  }

  /// Values of k < depth, from the first quad at `codes` on, for all outputs c: out[k * stride + c].
  void floats_of(const std::uint8_t* codes, index_t depth, const parameters& p, float* out, index_t stride) const {
    if (far(p)) return one_by_one(codes, depth, p, out, stride);
    lane_parameters l[vectors];
    detail::repeat<vectors>([&](auto v) QTENSOR_INLINE_LAMBDA { l[v] = of(p, v); });
    for (; depth >= 4; depth -= 4, codes += quad_bytes, out += 4 * stride)
      detail::repeat<vectors>([&](auto v) QTENSOR_INLINE_LAMBDA {
        const auto n = values(codes, v, l[v]);
        detail::repeat<4>([&](auto k) QTENSOR_INLINE_LAMBDA { simd::store(out + k * stride + v * lanes<A>, n[k]); });
      });
    if (depth > 0)
      detail::repeat<vectors>([&](auto v) QTENSOR_INLINE_LAMBDA {
        const auto n = values(codes, v, l[v]);
        for (index_t k = 0; k < depth; ++k)
          simd::store(out + k * stride + v * lanes<A>, n[static_cast<std::size_t>(k)]);
      });
  }

  /// The same rounded to bf16, in pairs: k = 4q and 4q + 2 of output c in out[2q * stride + c], 4q + 1 and 4q + 3 in
  /// the next row; +0 where there is no such k.
  void pairs_of(bf16_weights what, const std::uint8_t* codes, index_t depth, const parameters& p, std::uint32_t* out,
                index_t stride) const {
    if constexpr (parameters::may_step)
      if (what == bf16_weights::values && p.steps_fit)
        return each_pair(codes, depth, out, stride, [&](const std::uint8_t* quad, auto v) QTENSOR_INLINE_LAMBDA {
          const auto steps = simd::bits_as<std::uint16_t>(simd::load<A>(p.steps + v * lanes<A>));
          const auto stepped = [&](const words<A>& pairs) QTENSOR_INLINE_LAMBDA {
            return simd::bits_as<std::uint32_t>(simd::step_exponents<A>(simd::bits_as<std::uint16_t>(pairs), steps));
          };
          const auto n = number_pairs(quad, v);
          return std::array<words<A>, 2>{stepped(n[0]), stepped(n[1])};
        });
    if (far(p)) {
      for (; depth > 0; depth -= 4, codes += quad_bytes, out += 2 * stride) {
        alignas(64) float four[4 * width] = {};
        one_by_one(codes, std::min(depth, index_t{4}), p, four, width);
        for (index_t c = 0; c < width; c += lanes<A>) {
          const auto at = [&](index_t k) { return simd::load<A>(four + k * width + c); };
          simd::store(out + c, simd::bf16_pairs<A>(at(0), at(2)));
          simd::store(out + stride + c, simd::bf16_pairs<A>(at(1), at(3)));
        }
      }
      return;
    }
    lane_parameters l[vectors];
    detail::repeat<vectors>([&](auto v) QTENSOR_INLINE_LAMBDA { l[v] = of(p, v); });
    if (what == bf16_weights::numbers)
      return each_pair(codes, depth, out, stride, [&](const std::uint8_t* quad, auto v) QTENSOR_INLINE_LAMBDA {
        return numbers_in_pairs(quad, v, l[v]);
      });
    each_pair(codes, depth, out, stride,
              [&](const std::uint8_t* quad, auto v) QTENSOR_INLINE_LAMBDA { return paired(values(quad, v, l[v])); });
  }

 private:
  static QTENSOR_INLINE std::array<words<A>, 2> paired(const std::array<floats<A>, 4>& n) {
    return {simd::bf16_pairs<A>(n[0], n[2]), simd::bf16_pairs<A>(n[1], n[3])};
  }
  static QTENSOR_INLINE words<A> load_words(const std::uint8_t* quad, index_t v) {
    const words<A> w = simd::bits_as<std::uint32_t>(simd::load<A>(quad + (is_nibble ? 0 : v * lanes<A> * 4)));
    return is_nibble && v != 0 ? w >> 4 : w;
  }
  static QTENSOR_INLINE bool far([[maybe_unused]] const parameters& p) {
    if constexpr (S::has_zero_point)
      return p.far_zeros;
    else
      return false;
  }
  /// Numbers that a look-up gives as bf16.
  QTENSOR_INLINE std::array<words<A>, 2> number_pairs(const std::uint8_t* quad,
                                                      index_t v) const requires looks_pairs_up {
    if constexpr (look_ups == detail::pair_look_ups::nibbles) {
      const words<A> w = load_words(quad, v);
      return {pairs_.table(w), pairs_.table(w >> 8)};
    } else {
      bytes<A> c = simd::load<A>(quad + (is_nibble ? 0 : v * lanes<A> * 4));
      if constexpr (is_nibble) c = simd::bits_as<std::uint8_t>(load_words(quad, v)) & bytes<A>(std::uint8_t{15});
      const auto planes = pairs_.table.planes(c);
      return simd::bf16_pairs_of_planes<A>(planes.high, planes.low);
    }
  }

  template <class Pairs>
  static QTENSOR_INLINE void each_pair(const std::uint8_t* codes, index_t depth, std::uint32_t* out, index_t stride,
                                       const Pairs& pairs) {
    for (; depth >= 4; depth -= 4, codes += quad_bytes, out += 2 * stride)
      detail::repeat<vectors>([&](auto v) QTENSOR_INLINE_LAMBDA {
        const auto two = pairs(codes, v);
        simd::store(out + v * lanes<A>, two[0]);
        simd::store(out + stride + v * lanes<A>, two[1]);
      });
    if (depth <= 0) return;
    const words<A> first(depth == 3 ? 0xffffffffu : 0xffffu), second(depth >= 2 ? 0xffffu : 0u);
    detail::repeat<vectors>([&](auto v) QTENSOR_INLINE_LAMBDA {
      const auto two = pairs(codes, v);
      simd::store(out + v * lanes<A>, two[0] & first);
      simd::store(out + stride + v * lanes<A>, two[1] & second);
    });
  }

  // Zero points beyond 2^30: differences in 64 bits.
  static void one_by_one(const std::uint8_t* codes, index_t depth, const parameters& p, float* out, index_t stride) {
    for (index_t k = 0; k < depth; ++k)
      for (index_t c = 0; c < width; ++c) {
        const index_t word = is_nibble ? c % (width / 2) : c;
        const std::uint8_t byte = codes[k / 4 * quad_bytes + word * 4 + k % 4];
        std::int64_t number = static_cast<std::int8_t>(byte);
        if constexpr (is_nibble) number = c < width / 2 ? byte & 15 : byte >> 4;
        if constexpr (S::has_zero_point) number -= p.zeros[c];
        float value = qtensor::rounded(static_cast<float>(number) * p.scales[c]);
        if constexpr (S::has_tensor_scale) value = qtensor::rounded(value * p.tensor_scale);
        if constexpr (S::has_offset) value = qtensor::rounded(value + p.offsets[c]);
        out[k * stride + c] = value;
      }
  }

  [[no_unique_address]] detail::quad_tables<F, A, constant_zero, how> tables_;
  [[no_unique_address]] detail::pair_tables<F, A, constant_zero, look_ups> pairs_;
};

}  // namespace qtensor::inline QTENSOR_ABI::simd
