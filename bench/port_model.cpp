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

/// The loop that encodes blocks of four batches, as the library runs it.
template <class S, class From, simd::quotient_by By, simd::numbers Which, class Parameters>
void encode(const typename From::type* x, index_t n, const Parameters& p, std::uint8_t* codes) {
  simd::detail::encode_whole_blocks<S, By, arch, From, Which, simd::detail::stored_bits<S, arch>,
                                    simd::detail::loop_knows::nothing>(x, n, p, codes, {});
}
/// By one scale for all, or by none.
template <class S, class From, simd::quotient_by By>
struct one_scale {
  using parameters = simd::detail::uniform_parameters<S, By, arch>;
  static void run(const typename From::type* x, index_t n, const parameters& p, std::uint8_t* codes) {
    encode<S, From, By, simd::numbers::any>(x, n, p, codes);
  }
};
template <class S, class From>
using by_nothing = one_scale<S, From, simd::quotient_by::nothing>;
template <class S, class From>
using by_one = one_scale<S, From, simd::detail::fast_quotient<S, arch>>;
template <class S, class From>
using by_its_inverse = one_scale<S, From, simd::quotient_by::inverse>;  // what numbers of 16 bits allow
/// By one for each group, whose numbers fit it.
template <class S, class From>
struct by_groups {
  static constexpr int batches = simd::detail::batches_of_group<S, arch>();
  static constexpr simd::quotient_by by =
      batches == 1 ? simd::detail::fitting_quotient<S, arch> : simd::detail::fitting_run_quotient<S, arch, From>;
  using parameters = simd::detail::group_parameters<S, by, arch, batches>;
  static void run(const typename From::type* x, index_t n, const parameters& p, std::uint8_t* codes) {
    encode<S, From, by, simd::numbers::fitting>(x, n, p, codes);
  }
};

}  // namespace

// Beside each function, how many numbers a step of its loop takes.
#define QTENSOR_ENCODE(NAME, SCHEME, FROM, HOW)                                                             \
  extern "C" const int NAME##_numbers = static_cast<int>(step);                                             \
  extern "C" void NAME(const simd::FROM::type* x, index_t n, const HOW<SCHEME, simd::FROM>::parameters& of, \
                       std::uint8_t* codes) {                                                               \
    HOW<SCHEME, simd::FROM>::run(x, n, of, codes);                                                          \
  }
template <class F>
using cast_to = scheme<F, per_tensor>;
QTENSOR_ENCODE(f32_to_int8, int8_per_tensor, from_f32, by_one)
QTENSOR_ENCODE(f32_to_e4m3, cast_to<e4m3>, from_f32, by_nothing)
QTENSOR_ENCODE(f32_to_hif8, cast_to<hif8>, from_f32, by_nothing)
QTENSOR_ENCODE(f32_to_e3m2, cast_to<e3m2>, from_f32, by_nothing)
QTENSOR_ENCODE(f32_to_e2m1, cast_to<e2m1>, from_f32, by_nothing)
QTENSOR_ENCODE(f32_to_mxfp8, mxfp8_e4m3, from_f32, by_groups)
QTENSOR_ENCODE(f32_to_mxfp6, mxfp6_e2m3, from_f32, by_groups)
QTENSOR_ENCODE(f32_to_mxfp4, mxfp4, from_f32, by_groups)
QTENSOR_ENCODE(f32_to_nvfp4, nvfp4, from_f32, by_groups)
QTENSOR_ENCODE(f32_to_int8_groups, int8_group<32>, from_f32, by_groups)
QTENSOR_ENCODE(f32_to_int4_groups, int4_group<32>, from_f32, by_groups)
QTENSOR_ENCODE(f32_to_uint4_groups, uint4_group<32>, from_f32, by_groups)
QTENSOR_ENCODE(bf16_to_int8, int8_per_tensor, from_bf16, by_its_inverse)
QTENSOR_ENCODE(bf16_to_e4m3, cast_to<e4m3>, from_bf16, by_nothing)
QTENSOR_ENCODE(bf16_to_hif8, cast_to<hif8>, from_bf16, by_nothing)
QTENSOR_ENCODE(bf16_to_mxfp8, mxfp8_e4m3, from_bf16, by_groups)
QTENSOR_ENCODE(bf16_to_mxfp6, mxfp6_e2m3, from_bf16, by_groups)
QTENSOR_ENCODE(bf16_to_mxfp4, mxfp4, from_bf16, by_groups)
QTENSOR_ENCODE(bf16_to_nvfp4, nvfp4, from_bf16, by_groups)
QTENSOR_ENCODE(bf16_to_int8_groups, int8_group<32>, from_bf16, by_groups)
QTENSOR_ENCODE(bf16_to_int4_groups, int4_group<32>, from_bf16, by_groups)
QTENSOR_ENCODE(f16_to_int8, int8_per_tensor, from_f16, by_its_inverse)
QTENSOR_ENCODE(f16_to_e4m3, cast_to<e4m3>, from_f16, by_nothing)
QTENSOR_ENCODE(f16_to_e5m2, cast_to<e5m2>, from_f16, by_nothing)
QTENSOR_ENCODE(f16_to_mxfp8, mxfp8_e4m3, from_f16, by_groups)

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

/// The largest magnitudes of groups, and the extremes of others.
#define QTENSOR_AMAX(NAME, FROM, GROUP)                                                  \
  extern "C" const int NAME##_numbers = static_cast<int>(GROUP * simd::lanes<arch>);     \
  extern "C" void NAME(const simd::FROM::type* x, index_t groups, std::uint32_t* amax) { \
    simd::amax_blocks_of<arch, GROUP, simd::FROM>(x, groups, amax);                      \
  }
QTENSOR_AMAX(f32_amax_of_32, from_f32, 32)
QTENSOR_AMAX(f32_amax_of_16, from_f32, 16)
QTENSOR_AMAX(bf16_amax_of_32, from_bf16, 32)
QTENSOR_AMAX(bf16_amax_of_16, from_bf16, 16)
QTENSOR_AMAX(f16_amax_of_32, from_f16, 32)
extern "C" const int f32_ranges_of_32_numbers = static_cast<int>(32 * simd::lanes<arch>);
extern "C" void f32_ranges_of_32(const float* x, index_t groups, std::uint32_t* low, std::uint32_t* high) {
  simd::range_blocks_of<arch, 32, simd::from_f32>(x, groups, low, high);
}
/// Codes of ggml's blocks, each with its scale, as their kernel makes them: so many of its own pieces at a time.
#define QTENSOR_BLOCKS(NAME, SCHEME, PIECES)                                            \
  extern "C" const int NAME##_numbers = static_cast<int>(PIECES * step);                \
  extern "C" void NAME(const float* x, index_t n, std::uint8_t* blocks) {               \
    simd::encode_interleaved<compat::ggml::SCHEME, simd::from_f32, arch>(x, n, blocks); \
  }
QTENSOR_BLOCKS(f32_to_q8_0, q8_0, 2)
QTENSOR_BLOCKS(f32_to_q4_0, q4_0, 2)
QTENSOR_BLOCKS(f32_to_ggml_mxfp4, mxfp4, 2)
QTENSOR_BLOCKS(f32_to_ggml_nvfp4, nvfp4, 2)
