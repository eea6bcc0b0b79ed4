// Dense arrays of oneDNN's data types, read as tiles of floats and written from them.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstring>
#include <qtensor/compat/onednn_types.hpp>
#include <qtensor/scheme/schemes.hpp>
#include <qtensor/simd/dequantize.hpp>
#include <qtensor/simd/memory.hpp>
#include <qtensor/simd/quantize.hpp>

// 4-bit elements lie two a byte, even ones in the low half. Arrays are aligned to their elements.
namespace qtensor::compat::onednn {

inline namespace QTENSOR_ABI {
namespace pieces {

using arch = simd::best_arch;

/// Elements that pass through a tile at a time; even, so that tiles of 4-bit codes begin where rows do.
inline constexpr index_t most = 512;
using tile = float[static_cast<std::size_t>(most)];

/// Ends a step: what follows reads the rounded numbers from memory, so that no two steps become one fma.
inline void settle([[maybe_unused]] float* x) {
#if defined(__GNUC__)
  asm volatile("" : : "r"(x) : "memory");
#endif
}

// ---- Elements of run-time types as floats --------------------------------------------------------------------------

/// Codes that stand for themselves: S divides by 1.
template <format Code, policy... P>
using by_one = with<scheme<Code, per_tensor, static_only>, reciprocal, P...>;

/// Elements [at, at + n) of an array.
inline void load(data_type type, const void* array, index_t at, index_t n, float* to) {
  const auto* bytes = static_cast<const std::uint8_t*>(array);
  const auto by_code = [&]<format F>(std::type_identity<F>) {
    using S = stored<by_one<F>>;
    using unit = const simd::code_unit_t<S>;
    if (!is_packed<F> || at % 2 == 0)
      simd::decode_uniform<S>(reinterpret_cast<unit*>(bytes + (is_packed<F> ? at / 2 : at)), n, element_scale{1.f}, 0,
                              to);
    else
      for (index_t i = 0; i < n; ++i) to[i] = decode<F>(qtensor::detail::load_bits<F::bits>(bytes, (at + i) * F::bits));
  };
  if (type == data_type::f32)
    std::copy_n(static_cast<const float*>(array) + at, n, to);
  else if (type == data_type::bf16)
    simd::widen_floats<bf16>(static_cast<const std::uint16_t*>(array) + at, n, to);
  else if (type == data_type::f16)
    simd::widen_floats<f16>(static_cast<const std::uint16_t*>(array) + at, n, to);
  else if (type == data_type::s32)
    for (index_t i = 0; i < n; ++i) to[i] = static_cast<float>(static_cast<const std::int32_t*>(array)[at + i]);
  else if (type == data_type::s8)
    by_code(std::type_identity<int8>{});
  else if (type == data_type::u8)
    by_code(std::type_identity<uint8>{});
  else if (type == data_type::f8_e4m3)
    by_code(std::type_identity<e4m3>{});
  else if (type == data_type::f8_e5m2)
    by_code(std::type_identity<e5m2>{});
  else if (type == data_type::f4_e2m1)
    by_code(std::type_identity<e2m1>{});
  else if (type == data_type::e8m0)
    for (index_t i = 0; i < n; ++i) to[i] = e8m0::decode(bytes[at + i]);
  else if (type == data_type::s4)
    by_code(std::type_identity<int4>{});
  else
    by_code(std::type_identity<uint4>{});
}

/// One element of an integer array.
inline std::int64_t integer_at(data_type type, const void* array, index_t at) {
  if (type == data_type::s32) return static_cast<const std::int32_t*>(array)[at];
  if (type == data_type::s8) return static_cast<const std::int8_t*>(array)[at];
  const auto* bytes = static_cast<const std::uint8_t*>(array);
  if (type == data_type::u8) return bytes[at];
  const auto code = qtensor::detail::load_bits<4>(bytes, at * 4);
  return static_cast<std::int64_t>(type == data_type::s4 ? int4::decode(code) : uint4::decode(code));
}

struct integer_range {
  std::int64_t low, high;
};
inline integer_range range_of(data_type type) {
  if (type == data_type::s32) return {std::int64_t{-1} << 31, (std::int64_t{1} << 31) - 1};
  if (type == data_type::s8) return {-128, 127};
  if (type == data_type::u8) return {0, 255};
  if (type == data_type::s4) return {-8, 7};
  return {0, 15};
}

// ---- Floats as elements of run-time types --------------------------------------------------------------------------

/// Writes one code; of a 4-bit code that fills the last byte of the array only halfway, the other half is 0.
inline void store_code(data_type type, void* array, index_t at, index_t count, std::uint32_t code) {
  auto* bytes = static_cast<std::uint8_t*>(array);
  if (type == data_type::s32) {
    static_cast<std::int32_t*>(array)[at] = static_cast<std::int32_t>(code);
  } else if (bits_of_type(type) == 8) {
    bytes[at] = static_cast<std::uint8_t>(code);
  } else {
    if (at % 2 == 0 && at + 1 == count) bytes[at / 2] = 0;
    qtensor::detail::store_bits<4>(bytes, at * 4, code);
  }
}

/// Numbers of the destination's range to codes of at most 8 bits, ties to even; S divides by 1.
template <quantization_scheme S>
void encode_run(const float* x, index_t n, std::uint8_t* codes) {
  using unit = simd::code_unit_t<S>;
  simd::encode_uniform<S>(x, n, element_scale{1.f}, 0, reinterpret_cast<unit*>(codes));
}

inline void encode_codes(data_type type, const float* x, index_t n, std::uint8_t* codes) {
  switch (type) {
    case data_type::s8:
      return encode_run<by_one<int8>>(x, n, codes);
    case data_type::u8:
      return encode_run<by_one<uint8>>(x, n, codes);
    case data_type::s4:
      return encode_run<by_one<int4>>(x, n, codes);
    case data_type::u4:
      return encode_run<by_one<uint4>>(x, n, codes);
    case data_type::f8_e4m3:
      return encode_run<by_one<e4m3, to_special>>(x, n, codes);
    case data_type::f4_e2m1:
      return encode_run<by_one<e2m1, nan_to_max>>(x, n, codes);
    case data_type::f8_e5m2:
      encode_run<by_one<e5m2, to_special>>(x, n, codes);
      for (index_t i = 0; i < n; ++i)  // a NaN keeps the upper bits of its payload
        if (is_nan(x[i]))
          codes[i] = static_cast<std::uint8_t>(bits_of(x[i]) >> 24 & 0x80u) | 0x7E | (bits_of(x[i]) >> 21 & 1u);
      return;
    default:
      for (index_t i = 0; i < n; ++i) codes[i] = static_cast<std::uint8_t>(encode<e8m0, toward_zero>(x[i]));
  }
}

/// Floats to 16 bits, ties to even, overflow to infinity.
inline void narrow(data_type type, const float* x, index_t n, std::uint16_t* to) {
  if (type == data_type::bf16)
    simd::narrow_floats<bf16>(x, n, to);
  else
    simd::narrow_floats<f16>(x, n, to);
}

/// Floats, no NaN among them, to s32; the highest float among its codes is 2147483520.
inline void store_s32(const float* x, index_t n, std::int32_t* to) {
  constexpr index_t lanes = simd::lanes<arch>;
  using floats = simd::floats<arch>;
  const auto rounded_ints = [](const floats& v) {
    return simd::round_to_int_checked(simd::min(floats(2147483520.f), simd::max(floats(-2147483648.f), v)));
  };
  index_t i = 0;
  for (; i + lanes <= n; i += lanes) simd::store(to + i, rounded_ints(simd::load<arch>(x + i)));
  if (i < n) simd::store_n(to + i, n - i, rounded_ints(simd::load_n<arch>(x + i, n - i)));
}

/// Numbers that need no more than rounding to nearest even (to f32 not even that) to elements [at, at + n) of an array.
/// Of 4-bit codes `at` is even, and n too where others follow: the last byte's other half is 0.
inline void store(data_type type, const float* x, index_t n, void* array, index_t at) {
  if (type == data_type::f32)
    std::memcpy(static_cast<float*>(array) + at, x, static_cast<std::size_t>(n) * sizeof(float));
  else if (type == data_type::bf16 || type == data_type::f16)
    narrow(type, x, n, static_cast<std::uint16_t*>(array) + at);
  else if (type == data_type::s32)
    store_s32(x, n, static_cast<std::int32_t*>(array) + at);
  else
    encode_codes(type, x, n, static_cast<std::uint8_t*>(array) + (bits_of_type(type) == 8 ? at : at / 2));
}

}  // namespace pieces
}  // namespace QTENSOR_ABI

}  // namespace qtensor::compat::onednn
