// The innermost loops of conversions, one function each, for bench/port_model.py to look at. Not a program.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/qtensor.hpp>
#include <qtensor/simd/quantize.hpp>

namespace {

using namespace qtensor;
using arch = simd::best_arch;
constexpr index_t step = 4 * simd::lanes<arch>;

/// Codes of whole blocks under one divisor for all of them, or one for each block, laid side by side.
template <class S, class From, bool EachBlock, simd::numbers Which>
[[gnu::always_inline]] inline void encode(const typename From::type* x, index_t n, const float* scales,
                                          std::uint8_t* codes) {
  constexpr auto by =
      Which == simd::numbers::fitting ? simd::detail::fitting_quotient<S, arch> : simd::detail::fast_quotient<S, arch>;
  using parameters = simd::detail::uniform_parameters<S, by, arch>;
  parameters p({*scales, 1.f}, 0);
  for (index_t i = 0; i < n; i += step) {
    if constexpr (EachBlock) {
      p.fast.value = simd::floats<arch>(scales[2 * (i / step)]);
      if constexpr (simd::has_rest<by>) p.fast.rest = simd::floats<arch>(scales[2 * (i / step) + 1]);
    }
    std::array<simd::floats<arch>, 4> v;
    From::template load_four<arch>(x + i, v);
    const auto c = simd::encode_codes<S, by, arch, Which>(v, p);
    simd::store(codes + i, From::template in_order<arch>(c));
  }
}

}  // namespace

// Beside each function, how many numbers a step of its loop takes.
#define QTENSOR_ENCODE(NAME, SCHEME, FROM, EACH_BLOCK, WHICH)                                            \
  extern "C" const int NAME##_numbers = static_cast<int>(step);                                          \
  extern "C" void NAME(const simd::FROM::type* x, index_t n, const float* scales, std::uint8_t* codes) { \
    encode<SCHEME, simd::FROM, EACH_BLOCK, simd::numbers::WHICH>(x, n, scales, codes);                   \
  }
using e4m3_per_tensor = scheme<e4m3, per_tensor>;
using e2m1_per_tensor = scheme<e2m1, per_tensor>;
using hif8_per_tensor = scheme<hif8, per_tensor>;
QTENSOR_ENCODE(f32_to_int8, int8_per_tensor, from_f32, false, any)
QTENSOR_ENCODE(f32_to_e4m3, e4m3_per_tensor, from_f32, false, any)
QTENSOR_ENCODE(f32_to_hif8, hif8_per_tensor, from_f32, false, any)
QTENSOR_ENCODE(f32_to_e2m1, e2m1_per_tensor, from_f32, false, any)
QTENSOR_ENCODE(f32_to_mxfp8, mxfp8_e4m3, from_f32, true, fitting)
QTENSOR_ENCODE(bf16_to_int8, int8_per_tensor, from_bf16, false, any)
QTENSOR_ENCODE(bf16_to_e4m3, e4m3_per_tensor, from_bf16, false, any)
QTENSOR_ENCODE(bf16_to_hif8, hif8_per_tensor, from_bf16, false, any)
QTENSOR_ENCODE(bf16_to_mxfp8, mxfp8_e4m3, from_bf16, true, fitting)

/// The largest magnitudes of groups of 32.
extern "C" const int f32_amax_of_32_numbers = static_cast<int>(32 * simd::lanes<arch>);
extern "C" void f32_amax_of_32(const float* x, index_t groups, std::uint32_t* amax) {
  simd::amax_blocks_of<arch, 32, simd::from_f32>(x, groups, amax);
}
extern "C" const int bf16_amax_of_32_numbers = static_cast<int>(32 * simd::lanes<arch>);
extern "C" void bf16_amax_of_32(const std::uint16_t* x, index_t groups, std::uint32_t* amax) {
  simd::amax_blocks_of<arch, 32, simd::from_bf16>(x, groups, amax);
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
