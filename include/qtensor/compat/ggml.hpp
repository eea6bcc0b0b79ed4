// ggml: block formats as schemes over interleaved blocks, written and read byte for byte (NUMERICS 8.3).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/scheme/scheme.hpp>
#include <qtensor/simd/log2.hpp>
#include <qtensor/simd/own_policies.hpp>

namespace qtensor::compat::ggml {

// ---- Formats -------------------------------------------------------------------------------------------------------

/// Base of codes with an implied zero point in the middle: code c is c - 2^(Bits - 1).
template <int Bits>
struct centred {
  static constexpr int bits = Bits;
  static constexpr bool is_integer = false;
  static constexpr bool is_signed = true;
  static constexpr float min = -exp2i(Bits - 1);
  static constexpr float max = -min - 1.f;
  static constexpr float decode(std::uint32_t code) { return static_cast<float>(code & low_bits(Bits)) + min; }
};
/// Four bits, -8 .. 7: the codes of Q4_0.
struct q4 : centred<4> {
  static constexpr fixed_string name = "q4";
};
/// Five bits, -16 .. 15: the codes of Q5_0.
struct q5 : centred<5> {
  static constexpr fixed_string name = "q5";
};

/// Five bits from 0: the codes of Q5_1.
struct uint5 : integer<5, unsigned> {
  static constexpr fixed_string name = "uint5";
};

/// Base of FP4 with one zero: e2m1's values times Factor, code 8 is +0 as well.
template <int Factor>
struct one_zero_fp4 {
  static constexpr int bits = 4;
  static constexpr bool is_integer = false;
  static constexpr bool is_signed = true;
  static constexpr float max = 6.f * Factor;
  static constexpr float min = -max;
  static constexpr float decode(std::uint32_t code) { return e2m1::decode(code) * Factor + 0.f; }
};
/// The codes of NVFP4.
struct fp4 : one_zero_fp4<1> {
  static constexpr fixed_string name = "fp4";
};
/// The codes of MXFP4, 0 1 2 3 4 6 8 12: doubled, and their scales halved, so that no scale leaves the floats.
struct doubled_fp4 : one_zero_fp4<2> {
  static constexpr fixed_string name = "doubled_fp4";
};

/// The scales of MXFP4: 2^(code - 128), for doubled codes. FF is 2^127, not a NaN.
struct half_e8m0 {
  static constexpr int bits = 8;
  static constexpr bool is_integer = false;
  static constexpr bool is_signed = false;
  static constexpr float min = exp2i(-128);
  static constexpr float max = exp2i(127);
  static constexpr fixed_string name = "half_e8m0";
  static constexpr float decode(std::uint32_t code) { return exp2i(static_cast<int>(code & 0xff) - 128); }
};

/// The scales of NVFP4: e4m3 without its sign, which is ignored. 7F is 0, FF is 480; 7E, 448, is the largest ever
/// written.
struct ue4m3 {
  static constexpr int bits = 8;
  static constexpr bool is_integer = false;
  static constexpr bool is_signed = false;
  static constexpr float min = 0.f;
  static constexpr float max = 448.f;
  static constexpr fixed_string name = "ue4m3";

  static constexpr float decode(std::uint32_t code) {
    if ((code & 0xff) == 0x7f) return 0.f;
    const int exponent = static_cast<int>(code >> 3 & 15u);
    const float mantissa = static_cast<float>((code & 7u) + (exponent != 0 ? 8u : 0u));
    return mantissa * exp2i((exponent != 0 ? exponent : 1) - 10);
  }
  /// ggml's encoder: halves go up, subnormals stop at 07, and whatever reaches the top binade is 7E: 248 is 448. Zero,
  /// negative numbers and NaN give 0.
  static constexpr std::uint32_t encode(float x) {
    // On bits and without branches: which of them is taken changes from group to group.
    constexpr std::int32_t largest = std::bit_cast<std::int32_t>(max),
                           infinite = static_cast<std::int32_t>(infinity_bits),
                           least_normal = std::bit_cast<std::int32_t>(exp2i(-6));
    const std::int32_t all = std::bit_cast<std::int32_t>(x), number = all < 0 || all > infinite ? 0 : all;
    const std::int32_t capped = number < largest ? number : largest,
                       low = capped < least_normal ? capped : least_normal;
    const int steps = static_cast<int>(std::bit_cast<float>(low) * 512.f + 0.5f);  // the product is exact
    const int normal = ((capped >> 19) + 1) / 2 - (120 << 3);
    const int code = capped >= least_normal ? normal : steps < 7 ? steps : 7;
    return static_cast<std::uint32_t>(code < 0x78 ? code : 0x7e);
  }
};

// ---- Rules, roundings, the search ----------------------------------------------------------------------------------

/// e8m0 of 2^(floor(log2f(amax)) - 2) in a byte that wraps around: maxima below 2^-125 get enormous scales, and those a
/// few ulps below a power of two count as that power. 0 and infinity: code 0.              6 -> 2^0, 2^-126 -> 2^128
struct mxfp4_rule {
  using slot = slot::rule;
  using statistics = peak;
  static constexpr fixed_string name = "ggml::mxfp4_rule";

  /// For kernels: the code of the scale, whatever the sign.
  static constexpr std::uint32_t code(float peak) {
    const float amax = magnitude(peak);
    const int e = amax > 0.f && is_finite(amax) ? qtensor::detail::floor_of_log2f(amax) + 125 : 0;
    return static_cast<std::uint32_t>(e) & 0xffu;
  }
  template <format Code, format Scale>
  static constexpr float scale(float peak, code_range) {
    return Scale::decode(code(peak));
  }
};

/// ue4m3 of amax / 6.                                                                       6 -> 38, 6.375 -> 39
struct nvfp4_rule {
  using slot = slot::rule;
  using statistics = peak;
  static constexpr fixed_string name = "ggml::nvfp4_rule";

  /// For kernels: the code of the scale, whatever the sign.
  static constexpr std::uint32_t code(float peak) { return ue4m3::encode(magnitude(peak) / 6.f); }
  template <format Code, format Scale>
  static constexpr float scale(float peak, code_range) {
    return ue4m3::decode(code(peak));
  }
};

/// C's (int8_t)roundf(q) as x86 compiles it: ties go away from zero, and what is no int (a reciprocal of a tiny scale
/// overflowed) is code 0.                                                                    2.5 -> 3, infinity -> 0
struct c_round {
  using slot = slot::rounding;
  using ordinary = nearest_away;
  static constexpr fixed_string name = "ggml::c_round";
  static constexpr bool up(bool negative, bool odd, remainder r) { return nearest_away::up(negative, odd, r); }
  template <format F>
  static constexpr float before(float q) {
    return is_finite(q) ? q : decode<F>(0);
  }
};

/// C's (int8_t)(q + 0.5 - lowest): the sum is rounded to f32, then truncated; what is no int is code 0.
///                                                                     2.5 -> 3, -2.5 -> -2, the float below -0.5 -> 0
struct c_truncate {
  using slot = slot::rounding;
  using ordinary = truncated_sum;
  static constexpr fixed_string name = "ggml::c_truncate";
  static constexpr bool up(bool, bool, remainder) { return false; }
  template <format F>
  static constexpr float before(float q) {
    constexpr float lowest = static_cast<float>(F::min);
    const float sum = q + (0.5f - lowest);
    if (!(magnitude(sum) < 0x1p31f)) return decode<F>(0);
    return static_cast<float>(static_cast<std::int64_t>(sum)) + lowest;
  }
};

/// x becomes the value of the first code, in the order of codes, whose distance |code * scale - x| in f32 is least:
/// ties go toward zero, -0 is never chosen, and where all distances drown in x or overflow code 0 wins. The FP4
/// blocks'.
template <class Code>
struct searched {
  using slot = slot::division;
  using ordinary = least_distance;
  static constexpr auto name = "ggml::searched<" + Code::name + ">";
  static constexpr float quotient(float x, float scale, float) {
    float best = Code::decode(0), least = magnitude(x);
    for (std::uint32_t code = 1; code < 16; ++code) {
      const float distance = magnitude(rounded(Code::decode(code) * scale) - x);
      if (distance < least) best = Code::decode(code), least = distance;
    }
    return best;
  }
};

// ---- Schemes -------------------------------------------------------------------------------------------------------

/// Q8_0 (type 8): f16 scale d, 32 int8 codes; 34 bytes. d = amax / 127; codes round half away from x * (1 / d), with d
/// as it was before it became f16. A zero block has d = 0.
using q8_0 = scheme<int8, group<32>, scale_as<f16>, interleaved<>, bounded_amax<>, c_round, reciprocal, unrounded_scale,
                    block_literal>;

/// Q8_1 (type 9): Q8_0 with s = f16(sum of codes * d) behind d; 36 bytes.
using q8_1 = with<q8_0, interleaved_with_sum<low_first, f16>>;

/// Q4_0 (type 2): f16 scale d, 16 bytes whose low nibbles are elements 0 to 15 and high nibbles 16 to 31; value
/// (c - 8) * d. d = the first number of largest magnitude / -8.
using q4_0 = scheme<q4, group<32>, scale_as<f16>, interleaved<split_halves>, peak_scale, c_truncate, reciprocal,
                    unrounded_scale, block_literal>;

/// Q5_0 (type 6): as Q4_0 with a fifth bit an element, in four bytes before the nibbles; d = that number / -16.
using q5_0 = scheme<q5, group<32>, scale_as<f16>, interleaved<high_bits_then_halves>, peak_scale, c_truncate,
                    reciprocal, unrounded_scale, block_literal>;

/// Q4_1 (type 3): f16 scale d and offset m, nibbles as in Q4_0; value c * d + m. m = min, d = (max - min) / 15.
using q4_1 = scheme<uint4, group<32>, scale_as<f16>, offset<f16>, interleaved<split_halves>, offset_min_max, c_truncate,
                    reciprocal, unrounded_scale, block_literal>;

/// Q5_1 (type 7): as Q4_1 with a fifth bit, d = (max - min) / 31.
using q5_1 = scheme<uint5, group<32>, scale_as<f16>, offset<f16>, interleaved<high_bits_then_halves>, offset_min_max,
                    c_truncate, reciprocal, unrounded_scale, block_literal>;

/// MXFP4 (type 39): one byte of scale, nibbles as in Q4_0; 17 bytes.
using mxfp4 = scheme<doubled_fp4, group<32>, scale_as<half_e8m0>, interleaved<split_halves>, mxfp4_rule,
                     searched<doubled_fp4>, block_literal>;

/// NVFP4 (type 40): 64 elements: four scales, then 8 bytes of nibbles for each group of 16; 36 bytes.
using nvfp4 = scheme<fp4, group<16>, scale_as<ue4m3>, interleaved_groups<4, split_halves>, nvfp4_rule, searched<fp4>,
                     block_literal>;

}  // namespace qtensor::compat::ggml

// The rules that say codes, as vectors.
namespace qtensor::inline QTENSOR_ABI::simd {

template <class A>
struct vector_code<compat::ggml::mxfp4_rule, A> {
  static constexpr bool enabled = true;
  static QTENSOR_INLINE words<A> of(const words<A>& amax) {
    const words<A> code = simd::bits_as<std::uint32_t>(simd::floor_of_log2f<A>(amax) + ints<A>(125)) & words<A>(0xffu);
    return simd::select(amax == words<A>(0u), words<A>(0u), code);
  }
  /// half_e8m0::decode.
  static QTENSOR_INLINE floats<A> scale(const words<A>& code) {
    const words<A> one(1u), subnormal = (code + one) << 21, normal = (code - one) << 23;
    return simd::bits_as<float>(simd::select(simd::below(one, code), normal, subnormal));
  }
};

template <class A>
struct vector_code<compat::ggml::nvfp4_rule, A> {
  static constexpr bool enabled = true;
  /// ue4m3::encode of amax / 6.
  static QTENSOR_INLINE words<A> of(const words<A>& amax) {
    using ue4m3 = compat::ggml::ue4m3;
    const floats<A> x = simd::min(simd::div(simd::bits_as<float>(amax), floats<A>(6.f)), floats<A>(ue4m3::max));
    const floats<A> least_normal(exp2i(-6));
    const ints<A> steps = simd::truncate_to_int(simd::add(simd::mul(x, floats<A>(512.f)), floats<A>(0.5f)));
    const ints<A> normal =
        simd::bits_as<std::int32_t>(((simd::bits_as<std::uint32_t>(x) >> 19) + words<A>(1u)) >> 1) - ints<A>(120 << 3);
    const ints<A> code =
        simd::select(simd::mask_as<std::int32_t>(x < least_normal), simd::min(steps, ints<A>(7)), normal);
    return simd::bits_as<std::uint32_t>(simd::select(code < ints<A>(0x78), code, ints<A>(0x7e)));
  }
  /// ue4m3::decode of those codes.
  static QTENSOR_INLINE floats<A> scale(const words<A>& code) {
    const floats<A> normal = simd::bits_as<float>((code << 20) + words<A>(120u << 23));
    const floats<A> subnormal = simd::mul(simd::to_float(simd::bits_as<std::int32_t>(code)), floats<A>(exp2i(-9)));
    return simd::select(normal < floats<A>(exp2i(-6)), subnormal, normal);
  }
};

}  // namespace qtensor::inline QTENSOR_ABI::simd
