// Prints docs/kernels.md: which conversions run on vectors and which on the scalar reference, and why.
// SPDX-License-Identifier: BSD-3-Clause
//
// To write the document anew: python3 tests/tools/same_text.py build/tests/kernels docs/kernels.md --write
#include <cstdio>
#include <qtensor/compat/cann.hpp>
#include <qtensor/compat/ggml.hpp>
#include <qtensor/compat/microxcaling.hpp>
#include <qtensor/compat/onednn_schemes.hpp>
#include <qtensor/compat/torchao.hpp>
#include <qtensor/compat/transformer_engine.hpp>
#include <qtensor/kernels.hpp>
#include <qtensor/scheme/schemes.hpp>
#include <string>

namespace {

namespace qt = qtensor;

/// A user's format: sixteen values of its own.
struct nf4 {
  static constexpr int bits = 4;
  static constexpr bool is_integer = false, is_signed = true;
  static constexpr float min = -1.f, max = 1.f;
  static constexpr qt::fixed_string name = "nf4 (a user's)";
  static constexpr float decode(std::uint32_t code) {
    constexpr float values[16] = {-1.f,   -.6962f, -.5251f, -.3949f, -.2844f, -.1848f, -.0911f, 0.f,
                                  .0796f, .1609f,  .2461f,  .3379f,  .4407f,  .5626f,  .7230f,  1.f};
    return values[code & 15];
  }
};

/// A user's integer of a width of its own, 2 to 8 bits.
struct int3 : qt::integer<3, signed> {
  static constexpr qt::fixed_string name = "int3 (a user's)";
};

/// A user's float of 10 bits.
struct e5m4 : qt::minifloat<5, 4, 15, qt::specials::ieee> {
  static constexpr qt::fixed_string name = "e5m4 (a user's)";
};

/// A user's rounding: numbers move before they are rounded.
struct own_rounding {
  using slot = qt::slot::rounding;
  static constexpr qt::fixed_string name = "own_rounding";
  static constexpr bool up(bool negative, bool odd, qt::remainder r) { return qt::nearest_even::up(negative, odd, r); }
  template <qt::format F>
  static constexpr float before(float x) {
    return x + .25f;
  }
};

const char* path(bool vectors) { return vectors ? "vectors" : "reference"; }

template <class S>
void row(const char* spelling, const char* reason) {
  constexpr bool encodes = qt::ops::quantizes_on_vectors<S>(), decodes = qt::ops::dequantizes_on_vectors<S>();
  std::printf("| `%s` | %s | %s | %s |\n", spelling, path(encodes), path(decodes), encodes && decodes ? "" : reason);
}

#define ROW(reason, ...) row<__VA_ARGS__>(#__VA_ARGS__, reason)

}  // namespace

int main() {
  using namespace qtensor;
  std::printf(
      "<!-- Written by docs/kernels.cpp; a test compares the two. -->\n# What runs on vectors\n\n"
      "Quantize and dequantize of whole tensors, on every level (AVX-512, AVX2, SSE4.2, NEON). The scalar reference "
      "runs\n"
      "where the last column says why; both give the same bits. `ops::quantizes_on_vectors<scheme>()` and\n"
      "`ops::dequantizes_on_vectors<scheme>()` tell it of any scheme, for the CPU that `-march` names: without it, "
      "x86-64\nhas none of these levels, and all runs on the reference.\n"
      "\n| scheme | quantize | dequantize | reason |\n|---|---|---|---|\n");
  ROW("", int8_per_tensor);
  ROW("", int8_per_channel<1>);
  ROW("", uint8_per_tensor);
  ROW("", int8_group<32>);
  ROW("", int4_group<32>);
  ROW("", uint4_group<32>);
  ROW("", scheme<int2, group<32>>);
  ROW("", fp8_block<128, 128>);
  ROW("", scheme<e5m2, per_tensor>);
  ROW("", scheme<e4m3fnuz, per_tensor>);
  ROW("", scheme<e1m2, group<32>>);
  ROW("", hif8_block<128, 128>);
  ROW("HiFloat8 is vectorised with saturation, as every vendor's quantizers have it",
      with<hif8_block<128, 128>, to_special>);
  ROW("", mxfp8_e4m3);
  ROW("", mxfp8_e5m2);
  ROW("", mxfp6_e2m3);
  ROW("", mxfp6_e3m2);
  ROW("", mxfp4);
  ROW("", mxint8);
  ROW("", nvfp4);
  ROW("", with<nvfp4, tensor_scale<f32>>);
  ROW("", with<mxfp4, planar<high_first>>);
  ROW("", scheme<uint4, group<32>, scale_as<f16>, offset<f16>, offset_min_max>);
  ROW("", scheme<uint8, per_channel<0>, offset<f32>, offset_min_max>);
  ROW("offsets that are not rounded as they are stored, and scales of peaks, are those of groups of 16 to 128 along "
      "rows: what kernels of blocks take apart",
      scheme<uint8, per_channel<0>, offset<f32>, offset_min_max, unrounded_scale>);
  ROW("as the row before", scheme<int8, per_tensor, peak_scale>);
  ROW("", scheme<nf4, group<32>>);
  ROW("", scheme<int16, per_tensor>);
  ROW("", scheme<int32, per_tensor>);
  ROW("", scheme<bf16, per_tensor>);
  ROW("", scheme<f16, per_tensor>);
  ROW("codes of 16 bits are rounded to nearest, ties to even: what CPUs have instructions for",
      scheme<bf16, per_tensor, toward_zero>);
  ROW("", scheme<int3, group<32>>);
  ROW("formats of 9 to 15 bits are nobody's but yours: what kernels know of are bytes, and words of 16 and 32 bits",
      scheme<e5m4, per_tensor>);
  ROW("", with<int8_per_tensor, stochastic<1>>);
  ROW("", with<mxfp4, stochastic<1>>);
  ROW("vectors round at random on grids with one step a binade: HiFloat8 and lists of values have others",
      with<hif8_block<1, 128>, stochastic<1>>);
  ROW("", compat::ggml::q8_0);
  ROW("", compat::ggml::q8_1);
  ROW("", compat::ggml::q4_0);
  ROW("", compat::ggml::q4_1);
  ROW("", compat::ggml::q5_0);
  ROW("", compat::ggml::q5_1);
  ROW("", compat::ggml::mxfp4);
  ROW("", compat::ggml::nvfp4);
  ROW("", compat::torchao::nvfp4_two_level);
  ROW("", compat::transformer_engine::nvfp4);
  ROW("", compat::microxcaling::mx<e4m3>);
  ROW("", compat::onednn::dynamic_mx<e4m3>);
  ROW("", compat::onednn::dynamic_fp<>);
  ROW("", compat::cann::block_quant<hif8>);
  ROW("a rounding of your own with `before`, a user's: simd/own_policies.hpp says how vectors take it",
      with<mxfp4, own_rounding>);
  std::printf(
      "\nStableHLO's dot_general and convolution on tensors of run-time type, by the type they are computed in (of\n"
      "quantized tensors, the expressed one). Every product and every sum is rounded to that type, in one order; "
      "exact\n"
      "sums of codes would be other numbers wherever a step rounds, so that the tiles of integers are not used.\n"
      "\n| computed in | dot_general, convolution | reason |\n|---|---|---|\n"
      "| f32 | vectors |  |\n"
      "| bf16, f16 | vectors |  |\n"
      "| f64 | reference | tiles are of floats: no format here has more than 24 digits |\n");
}
