// The innermost loops of conversions, one function each, for bench/port_model.py to look at. Not a program.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/qtensor.hpp>
#include <qtensor/simd/quantize.hpp>

namespace {

using namespace qtensor;
using arch = simd::best_arch;
constexpr index_t step = 4 * simd::lanes<arch>;
/// Whether encoders store nibbles, which they pack in registers, instead of bytes.
template <class S>
constexpr bool packs = simd::detail::stored_bits<S, arch> == 4;

/// What numbers are divided by: nothing, one scale for all, or one for each of the blocks, which they fit.
enum class divided { by_nothing, by_one, by_blocks };

/// Codes of whole blocks of four batches, one behind the other; two scales belong to a block, a divisor's parts.
template <class S, class From, divided How>
[[gnu::always_inline]] inline void encode(const typename From::type* x, index_t n, const float* scales,
                                          std::uint8_t* codes) {
  constexpr auto which = How == divided::by_blocks ? simd::numbers::fitting : simd::numbers::any;
  constexpr auto by = How == divided::by_nothing ? simd::quotient_by::nothing
                      : How == divided::by_one   ? simd::detail::fast_quotient<S, arch>
                                                 : simd::detail::fitting_quotient<S, arch>;
  simd::detail::uniform_parameters<S, by, arch> p({*scales, 1.f}, 0);
  for (index_t i = 0; i < n; i += step) {
    if constexpr (How == divided::by_blocks) {
      p.fast.value = simd::floats<arch>(scales[2 * (i / step)]);
      if constexpr (simd::has_rest<by>) p.fast.rest = simd::floats<arch>(scales[2 * (i / step) + 1]);
    }
    std::array<simd::floats<arch>, 4> v;
    From::template load_four<arch>(x + i, v);
    const auto c = From::template in_order<arch>(simd::encode_codes<S, by, arch, which>(v, p));
    if constexpr (packs<S>)
      simd::put_nibbles(codes + i / 2, c, false);
    else
      simd::store(codes + i, c);
  }
}

}  // namespace

// Beside each function, how many numbers a step of its loop takes.
#define QTENSOR_ENCODE(NAME, SCHEME, FROM, HOW)                                                          \
  extern "C" const int NAME##_numbers = static_cast<int>(step);                                          \
  extern "C" void NAME(const simd::FROM::type* x, index_t n, const float* scales, std::uint8_t* codes) { \
    encode<SCHEME, simd::FROM, divided::HOW>(x, n, scales, codes);                                       \
  }
template <class F>
using cast_to = scheme<F, per_tensor>;
QTENSOR_ENCODE(f32_to_int8, int8_per_tensor, from_f32, by_one)
QTENSOR_ENCODE(f32_to_e4m3, cast_to<e4m3>, from_f32, by_nothing)
QTENSOR_ENCODE(f32_to_hif8, cast_to<hif8>, from_f32, by_nothing)
QTENSOR_ENCODE(f32_to_e3m2, cast_to<e3m2>, from_f32, by_nothing)
QTENSOR_ENCODE(f32_to_e2m1, cast_to<e2m1>, from_f32, by_nothing)
QTENSOR_ENCODE(f32_to_mxfp8, mxfp8_e4m3, from_f32, by_blocks)
QTENSOR_ENCODE(f32_to_mxfp4, mxfp4, from_f32, by_blocks)
QTENSOR_ENCODE(f32_to_nvfp4, nvfp4, from_f32, by_blocks)
QTENSOR_ENCODE(f32_to_int8_groups, int8_group<32>, from_f32, by_blocks)
QTENSOR_ENCODE(f32_to_uint4_groups, uint4_group<32>, from_f32, by_blocks)
QTENSOR_ENCODE(bf16_to_int8, int8_per_tensor, from_bf16, by_one)
QTENSOR_ENCODE(bf16_to_e4m3, cast_to<e4m3>, from_bf16, by_nothing)
QTENSOR_ENCODE(bf16_to_hif8, cast_to<hif8>, from_bf16, by_nothing)
QTENSOR_ENCODE(bf16_to_mxfp8, mxfp8_e4m3, from_bf16, by_blocks)

/// Codes of a byte each to what is stored of them; -1 where encoders have done it.
extern "C" const int pack_of_4_bits_numbers = packs<mxfp4> ? -1 : static_cast<int>(2 * step);
extern "C" void pack_of_4_bits(const std::uint8_t* codes, index_t n, std::uint8_t* out) {
  for (index_t i = 0; i < n; i += 2 * step)
    simd::store(out + i / 2, simd::join_nibbles(simd::load<arch>(codes + i), simd::load<arch>(codes + i + step)));
}
extern "C" const int pack_of_6_bits_numbers = static_cast<int>(step);
extern "C" void pack_of_6_bits(const std::uint8_t* codes, index_t n, std::uint8_t* out) {
  for (index_t i = 0; i < n; i += step)
    simd::store(out + i / 4 * 3,
                simd::detail::packed_sixes<arch>(simd::bits_as<std::uint32_t>(simd::load<arch>(codes + i))));
}

/// The largest magnitudes of groups of 32.
extern "C" const int f32_amax_of_32_numbers = static_cast<int>(32 * simd::lanes<arch>);
extern "C" void f32_amax_of_32(const float* x, index_t groups, std::uint32_t* amax) {
  simd::amax_blocks_of<arch, 32, simd::from_f32>(x, groups, amax);
}
extern "C" const int bf16_amax_of_32_numbers = static_cast<int>(32 * simd::lanes<arch>);
extern "C" void bf16_amax_of_32(const std::uint16_t* x, index_t groups, std::uint32_t* amax) {
  simd::amax_blocks_of<arch, 32, simd::from_bf16>(x, groups, amax);
}
extern "C" const int f32_amax_of_16_numbers = static_cast<int>(16 * simd::lanes<arch>);
extern "C" void f32_amax_of_16(const float* x, index_t groups, std::uint32_t* amax) {
  simd::amax_blocks_of<arch, 16, simd::from_f32>(x, groups, amax);
}
extern "C" const int f32_ranges_of_32_numbers = static_cast<int>(32 * simd::lanes<arch>);
extern "C" void f32_ranges_of_32(const float* x, index_t groups, std::uint32_t* low, std::uint32_t* high) {
  simd::range_blocks_of<arch, 32, simd::from_f32>(x, groups, low, high);
}
/// Codes of ggml's blocks, each with its scale, as their kernel makes them.
extern "C" const int f32_to_q8_0_numbers = static_cast<int>(2 * step);
extern "C" void f32_to_q8_0(const float* x, index_t n, std::uint8_t* blocks) {
  simd::encode_interleaved<compat::ggml::q8_0, simd::from_f32, arch>(x, n, blocks);
}
/// Numbers rounded to bf16 after one multiplication.
extern "C" const int int8_to_bf16_numbers = static_cast<int>(2 * simd::lanes<arch>);
extern "C" void int8_to_bf16(const std::int8_t* codes, index_t n, float scale, std::uint16_t* out) {
  const simd::floats<arch> s(scale);
  constexpr index_t lanes = simd::lanes<arch>;
  for (index_t i = 0; i < n; i += 2 * lanes) {
    const auto number = [&](index_t k) QTENSOR_INLINE_LAMBDA {
      return simd::mul(simd::to_float(simd::widen_i8<arch>(codes + i + k * lanes)), s);
    };
    simd::store(out + i, simd::narrow_bf16_plain(number(0), number(1)));
  }
}
