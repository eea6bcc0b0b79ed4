// ggml: block formats as schemes over interleaved blocks, written and read byte for byte (NUMERICS 8.3).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/reference/quantize.hpp>
#include <string>

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
    if (!(x > 0.f)) return 0;
    if (x >= 256.f) return 0x7e;
    const int exponent = qtensor::detail::exponent_field(bits_of(x)) - 120;
    if (exponent <= 0) {
      const int steps = static_cast<int>(rounded(x * 512.f) + 0.5f);
      return static_cast<std::uint32_t>(steps < 7 ? steps : 7);
    }
    const std::uint32_t code =
        (static_cast<std::uint32_t>(exponent) << 3) + ((qtensor::detail::mantissa_field(bits_of(x)) >> 19) + 1u) / 2u;
    return code < 0x78 ? code : 0x7e;
  }
};

// ---- Rules, roundings, the search ----------------------------------------------------------------------------------

/// e8m0 of 2^(floor(log2f(amax)) - 2) in a byte that wraps around: maxima below 2^-125 get enormous scales, and those a
/// few ulps below a power of two count as that power. 0 and infinity: code 0.              6 -> 2^0, 2^-126 -> 2^128
struct mxfp4_rule {
  using slot = slot::rule;
  using statistics = peak;
  static constexpr fixed_string name = "ggml::mxfp4_rule";

  template <format Code, format Scale>
  static constexpr float scale(float peak, code_range) {
    const float amax = magnitude(peak);
    const int e = amax > 0.f && is_finite(amax) ? qtensor::detail::floor_of_log2f(amax) + 125 : 0;
    return Scale::decode(static_cast<std::uint32_t>(e) & 0xffu);
  }
};

/// ue4m3 of amax / 6.                                                                       6 -> 38, 6.375 -> 39
struct nvfp4_rule {
  using slot = slot::rule;
  using statistics = peak;
  static constexpr fixed_string name = "ggml::nvfp4_rule";

  template <format Code, format Scale>
  static constexpr float scale(float peak, code_range) {
    return ue4m3::decode(ue4m3::encode(magnitude(peak) / 6.f));
  }
};

/// C's (int8_t)roundf(q) as x86 compiles it: ties go away from zero, and what is no int (a reciprocal of a tiny scale
/// overflowed) is code 0.                                                                    2.5 -> 3, infinity -> 0
struct c_round {
  using slot = slot::rounding;
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

// ---- Planar tensors and blocks -------------------------------------------------------------------------------------

/// How the codes of one scheme are spelled in another of equal meaning: the same numbers up to one factor (2 into
/// MXFP4's doubled codes), which the scales take the other way.
template <quantization_scheme From, quantization_scheme To>
struct respelling {
  using from = typename From::code_format;
  using to = typename To::code_format;
  static constexpr float factor = std::is_same_v<to, doubled_fp4> == std::is_same_v<from, doubled_fp4> ? 1.f
                                  : std::is_same_v<to, doubled_fp4>                                    ? 2.f
                                                                                                       : 0.5f;
  static constexpr std::uint32_t count = from::bits <= 8 && to::bits <= 8 ? 1u << from::bits : 0;
  /// Code of the same number, the same code where it will do (a -0 stays one); `count` where there is none.
  static constexpr std::array<std::uint32_t, count> codes = [] {
    std::array<std::uint32_t, count> table{};
    for (std::uint32_t c = 0; c < count; ++c) {
      const float value = decode<from>(c) * factor;
      table[c] = count;
      for (std::uint32_t t = 0; t < 1u << to::bits; ++t)
        if (decode<to>(t) == value && (table[c] == count || t == c)) table[c] = t;
    }
    return table;
  }();
  static constexpr bool is_complete = [] {
    for (std::uint32_t c : codes)
      if (c == count) return false;
    return count > 0;
  }();
};

/// A parameter of one format as a code of another that decodes to the same float, or a sentence that says why not.
template <format From, format To>
std::uint32_t respelled(std::uint32_t code, float factor, const char* what) {
  if constexpr (std::is_same_v<From, To>) {
    return code;
  } else {
    const float wanted = decode<From>(code) * factor;
    const std::uint32_t spelled = encode<To, to_special>(wanted);
    require(bits_of(decode<To>(spelled)) == bits_of(wanted), "the ", what, " ", wanted, " has no exact code in ",
            To::name, ".");
    return spelled;
  }
}

/// A tensor of scheme To with the numbers of `from`, which lie elsewhere: nothing is rounded. Codes change their
/// spelling only, scales and offsets must be numbers of To's formats (else `error`), a sum of codes is made from them
/// anew.
template <quantization_scheme To, quantized T>
auto moved(const T& from) {
  const auto view = as_view(from);
  using view_type = decltype(view);
  using From = typename std::remove_const_t<view_type>::scheme_type;
  using Extents = typename std::remove_const_t<view_type>::extents_type;
  using Order = typename std::remove_const_t<view_type>::order_type;
  using spelling = respelling<From, To>;
  static_assert(std::is_same_v<typename From::granularity_type, typename To::granularity_type>,
                "qtensor: blocks and planar tensor must share scales in the same groups: group<32>, or group<16> for "
                "nvfp4.");
  static_assert(
      !From::has_zero_point && !To::has_zero_point && !From::has_tensor_scale && !To::has_tensor_scale &&
          From::has_offset == To::has_offset,
      "qtensor: ggml's blocks hold scales, and offsets in q4_1 and q5_1; the planar scheme must hold as much.");
  static_assert(spelling::is_complete,
                "qtensor: these codes do not all have a counterpart of the same value in the other format.");

  tensor<To, Extents, Order> out(view.extents(), view.granularity());
  const auto to = out.span();
  using index_array = typename Extents::array;
  reference::for_each_block(
      view.scale_grid(), view.storage_extents(), [&](const index_array& first, const index_array& n) {
        to.set_storage_scale_code(first, respelled<typename From::scale_format, typename To::scale_format>(
                                             view.storage_scale_code(first), 1.f / spelling::factor, "scale"));
        if constexpr (To::has_offset)
          to.set_storage_offset_code(first, respelled<typename From::offset_format, typename To::offset_format>(
                                                view.storage_offset_code(first), 1.f, "offset"));
        reference::for_each_index(
            first, n, [&](const index_array& i) { to.set_storage_code(i, spelling::codes[view.storage_code(i)]); });
        reference::detail::store_code_sum(to, first, n,
                                          decode<typename To::scale_format>(to.storage_scale_code(first)));
      });
  return out;
}

/// Planar -> blocks: `to_blocks<ggml::q8_0>(t).blocks()` are ggml's bytes of `t`, a tensor or view of int8 in group<32>
/// with f16 scales (int4 for q4_0, uint4 or uint5 with offset<f16> for q4_1 and q5_1, e2m1 with e8m0 or e4m3 scales for
/// mxfp4 and nvfp4; scales of other formats where every one has an exact code).
template <quantization_scheme Blocks, quantized T>
auto to_blocks(const T& planar) {
  static_assert(Blocks::is_interleaved, "qtensor: to_blocks<B> makes blocks; B is one of ggml's schemes.");
  return moved<Blocks>(planar);
}

/// Blocks -> planar, the way back: `from_blocks<mxfp4>(view_of<ggml::mxfp4>(bytes, extents))`. Q8_1's sums are left
/// out.
template <quantization_scheme Planar, quantized T>
auto from_blocks(const T& blocks) {
  static_assert(!Planar::is_interleaved,
                "qtensor: from_blocks<S> makes planar tensors; leave the layout out of S, or copy the bytes.");
  return moved<Planar>(blocks);
}

// ---- Rows with run-time types --------------------------------------------------------------------------------------

/// ggml's numbers of the types that are understood here. GGUF files use the same.
enum class type : int {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q8_1 = 9,
  bf16 = 30,
  mxfp4 = 39,
  nvfp4 = 40
};

/// What a call came to: success, or a sentence that says what was wrong with its arguments.
struct status {
  std::string reason;
  bool ok() const { return reason.empty(); }
  explicit operator bool() const { return ok(); }
};

/// Elements and bytes of a block (1 and the size of a number for types without blocks); zeros for unknown types.
struct block_size {
  index_t elements = 0, bytes = 0;
};

namespace rows {

template <class Numbers>
struct plain {
  using number = Numbers;
};

/// Calls visit(tag) with the scheme of a type, or with plain<F> for types without blocks; false for unknown types.
template <class Visit>
constexpr bool visit_type(int id, Visit visit) {
  switch (static_cast<type>(id)) {
    case type::f32:
      return visit(plain<qtensor::f32>{}), true;
    case type::f16:
      return visit(plain<qtensor::f16>{}), true;
    case type::bf16:
      return visit(plain<qtensor::bf16>{}), true;
    case type::q4_0:
      return visit(q4_0{}), true;
    case type::q4_1:
      return visit(q4_1{}), true;
    case type::q5_0:
      return visit(q5_0{}), true;
    case type::q5_1:
      return visit(q5_1{}), true;
    case type::q8_0:
      return visit(q8_0{}), true;
    case type::q8_1:
      return visit(q8_1{}), true;
    case type::mxfp4:
      return visit(mxfp4{}), true;
    case type::nvfp4:
      return visit(nvfp4{}), true;
  }
  return false;
}

template <class Tag>
constexpr block_size size_of() {
  if constexpr (quantization_scheme<Tag>)
    return {interleaved_block<Tag>::elements({}), interleaved_block<Tag>::bytes({})};
  else
    return {1, Tag::number::bits / 8};
}

inline bool overlap(const void* a, index_t a_bytes, const void* b, index_t b_bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(a), second = reinterpret_cast<std::uintptr_t>(b);
  return first < second + static_cast<std::uintptr_t>(b_bytes) && second < first + static_cast<std::uintptr_t>(a_bytes);
}

/// Why a row of n elements cannot go from or to these buffers; empty where it can.
inline std::string refusal(int id, block_size block, const float* x, const void* y, index_t n) {
  const std::string of_type = "qtensor: type " + std::to_string(id);
  if (block.elements == 0)
    return of_type + " is not one of ggml's types that are understood here: 0, 1, 2, 3, 6, 7, 8, 9, 30, 39, 40.";
  if (n < 0 || n % block.elements != 0)
    return of_type + " has blocks of " + std::to_string(block.elements) + " elements; a row of " + std::to_string(n) +
           " is not a number of them.";
  index_t floats = 0, bytes = 0;
  if (__builtin_mul_overflow(n, static_cast<index_t>(sizeof(float)), &floats) ||
      __builtin_mul_overflow(n / block.elements, block.bytes, &bytes))
    return "qtensor: the bytes of a row of " + std::to_string(n) + " elements do not fit 63 bits.";
  if (n > 0 && (x == nullptr || y == nullptr)) return "qtensor: a row of floats or of blocks is a null pointer.";
  if (n > 0 && overlap(x, floats, y, bytes)) return "qtensor: the row of floats and the row of blocks overlap.";
  return "";
}

template <class S>
tensor_span<S, extents<dynamic>> blocks_at(std::uint8_t* bytes, index_t n) {
  return {{extents<dynamic>(n), {}, {}}, {bytes, {}, {}, {}, {}}};
}

template <class Tag>
void write(const float* x, std::uint8_t* bytes, index_t n) {
  if constexpr (quantization_scheme<Tag>) {
    reference::quantize([x](const auto& i) { return x[i[0]]; }, blocks_at<Tag>(bytes, n));
  } else {
    using number = typename Tag::number;
    for (index_t i = 0; i < n; ++i)
      qtensor::detail::store_unit<number>(bytes + i * size_of<Tag>().bytes, encode<number, to_special>(x[i]));
  }
}

template <class Tag>
void read(const std::uint8_t* bytes, float* x, index_t n) {
  if constexpr (quantization_scheme<Tag>) {
    const tensor_view<Tag, extents<dynamic>> blocks{{extents<dynamic>(n), {}, {}}, {bytes, {}, {}, {}, {}}};
    reference::dequantize(blocks, [x](const auto& i, float value) { x[i[0]] = value; });
  } else {
    using number = typename Tag::number;
    for (index_t i = 0; i < n; ++i)
      x[i] = decode<number>(qtensor::detail::load_unit<number>(bytes + i * size_of<Tag>().bytes));
  }
}

}  // namespace rows

inline block_size block_size_of(int id) {
  block_size size;
  rows::visit_type(id, [&](auto tag) { size = rows::size_of<decltype(tag)>(); });
  return size;
}

/// Bytes of a row of n elements; 0 where the type is unknown or n is not a number of its blocks.
inline index_t row_bytes(int id, index_t n) {
  const block_size size = block_size_of(id);
  return size.elements != 0 && n >= 0 && n % size.elements == 0 ? n / size.elements * size.bytes : 0;
}

/// n floats to a row of blocks at y, at any alignment: row_bytes(id, n) bytes. On failure nothing is written. No
/// thread, no allocation.
inline status quantize_row(int id, const float* x, void* y, index_t n) {
  status result{rows::refusal(id, block_size_of(id), x, y, n)};
  if (result) rows::visit_type(id, [&](auto tag) { rows::write<decltype(tag)>(x, static_cast<std::uint8_t*>(y), n); });
  return result;
}

/// A row of blocks back to n floats. On failure nothing is written.
inline status dequantize_row(int id, const void* y, float* x, index_t n) {
  status result{rows::refusal(id, block_size_of(id), x, y, n)};
  if (result)
    rows::visit_type(id, [&](auto tag) { rows::read<decltype(tag)>(static_cast<const std::uint8_t*>(y), x, n); });
  return result;
}

}  // namespace qtensor::compat::ggml
