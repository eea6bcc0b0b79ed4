// Mirrors include/qtensor/simd/decode_quads.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <qtensor/scheme/schemes.hpp>
#include <qtensor/simd/decode_quads.hpp>
#include <vector>

#include "check.hpp"

namespace simd = qtensor::simd;
using namespace qtensor;

namespace {

/// A user's format of 4 bits, one of 7 and one of 8, whose numbers are not bf16.
template <int Bits>
struct thirds {
  static constexpr int bits = Bits;
  static constexpr float min = -1.f, max = 1.f;
  static constexpr bool is_integer = false, is_signed = true;
  static constexpr fixed_string name = "thirds";
  static constexpr float decode(std::uint32_t code) {
    return static_cast<float>(static_cast<int>(code) - (1 << (Bits - 1))) / 3.f;
  }
};

/// Codes, as numbers where they are integers, and parameters of one group of a panel, packed.
template <class S, std::int32_t Offset, class A>
struct packed_group {
  using F = typename S::code_format;
  using decoder = simd::quad_decoder<S, Offset, A>;
  using zero_unit = std::conditional_t<std::is_same_v<typename S::zero_point_format, int32>, std::int32_t, std::int8_t>;
  static constexpr index_t width = decoder::width;

  explicit packed_group(index_t depth) : depth(depth), quads(divide_up(depth, 4) * decoder::quad_bytes) {
    for (index_t i = 0; i < depth * width; ++i) codes.push_back(check::random_below(1u << F::bits));
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(quads.size()), 0);
    for (index_t k = 0; k < depth; ++k)
      for (index_t c = 0; c < width; ++c) {
        auto packed = static_cast<std::uint8_t>(code(k, c));
        if constexpr (F::is_integer) packed = static_cast<std::uint8_t>(static_cast<int>(F::decode(packed)) + Offset);
        const bool high = decoder::is_nibble && c >= width / 2;
        const index_t word = high ? c - width / 2 : c;
        std::uint8_t& byte = quads[k / 4 * decoder::quad_bytes + word * 4 + k % 4];
        byte = static_cast<std::uint8_t>(byte | (high ? packed << 4 : packed));
      }
    for (index_t c = 0; c < width; ++c) {
      scales.push_back(scale_unit(check::random_bits()()));
      zeros.push_back(static_cast<zero_unit>(check::random_below(256) % (1u << F::bits)));
      if (F::is_integer && F::bits == 8) zeros.back() = static_cast<zero_unit>(static_cast<int>(zeros.back()) - 128);
      offsets.push_back(check::hard_float());
    }
  }
  static storage_t<typename S::scale_format> scale_unit(std::uint32_t bits) {
    if constexpr (std::is_same_v<storage_t<typename S::scale_format>, float>)
      return bits % 3 == 0 ? check::hard_float() : 0.01f + static_cast<float>(bits % 1000) * 0.001f;
    else
      return static_cast<storage_t<typename S::scale_format>>(bits);
  }
  std::uint32_t code(index_t k, index_t c) const { return codes[static_cast<std::size_t>(k * width + c)]; }
  float scale(index_t c) const {
    return decode<typename S::scale_format>(
        qtensor::detail::code_of<typename S::scale_format>(scales[static_cast<std::size_t>(c)]));
  }
  /// What the element is, by the definition.
  float value(index_t k, index_t c) const {
    const auto i = static_cast<std::size_t>(c);
    return dequantize_element<S>(code(k, c), {scale(c), tensor_scale}, std::int64_t{zeros[i]} - Offset, offsets[i]);
  }
  float number(index_t k, index_t c) const {
    const float n = decode<F>(code(k, c));
    return S::has_zero_point ? n - static_cast<float>(zeros[static_cast<std::size_t>(c)] - Offset) : n;
  }
  simd::quad_parameters<S, A> parameters() const {
    simd::quad_parameters<S, A> p;
    p.load(scales.data(), zeros.data(), offsets.data(), tensor_scale);
    p.load_steps(scales.data());
    return p;
  }

  index_t depth;
  check::fenced<std::uint8_t> quads;
  std::vector<std::uint32_t> codes;
  std::vector<storage_t<typename S::scale_format>> scales;
  std::vector<zero_unit> zeros;
  std::vector<float> offsets;
  float tensor_scale = 1.25f;
};

/// A number rounded to bf16; subnormals may have become 0.
bool is_bf16_of(std::uint32_t half, float x) {
  const float got = float_of(half << 16);
  if (std::isnan(x)) return std::isnan(got);
  if (magnitude(x) < 0x1p-126f && magnitude(got) == 0.f) return true;
  const std::uint32_t bits = bits_of(x);
  return half == (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}

/// Values by dot products are values, but for the sign of zeros, under scales that are 0, NaN or large enough.
template <class S, std::int32_t Offset, class A>
void check_dots(const packed_group<S, Offset, A>& g, const simd::quad_parameters<S, A>& p) {
  using decoder = typename packed_group<S, Offset, A>::decoder;
  if constexpr (decoder::has_dots) {
    const decoder decode_quad;
    const auto* codes = const_cast<packed_group<S, Offset, A>&>(g).quads.data();
    bool right = true;
    for (index_t k = 0; k + 4 <= g.depth; k += 4, codes += decoder::quad_bytes)
      for (index_t v = 0; v < decoder::vectors; ++v) {
        const auto four = decode_quad.template values<simd::quad_values::dots>(codes, v, decoder::of(p, v));
        for (index_t i = 0; i < 4; ++i) {
          float lane[static_cast<std::size_t>(simd::lanes<A>)];
          simd::store(lane, four[static_cast<std::size_t>(i)]);
          for (index_t l = 0; l < simd::lanes<A>; ++l) {
            const index_t c = v * simd::lanes<A> + l;
            if (g.scale(c) != 0.f && magnitude(g.scale(c)) < decoder::least_scale_for_dots) continue;
            const float want = g.value(k + i, c);
            right = right && (lane[l] == want || (std::isnan(lane[l]) && std::isnan(want)));
          }
        }
      }
    CHECK(right);
  }
}

template <class S, std::int32_t Offset, class A>
void check_group(const packed_group<S, Offset, A>& g, const simd::quad_parameters<S, A>& p) {
  using group = packed_group<S, Offset, A>;
  constexpr index_t width = group::width;
  const typename group::decoder decoder;
  const auto* codes = const_cast<group&>(g).quads.data();

  constexpr index_t stride = width + 3;
  check::fenced<float> out(g.depth * stride);
  decoder.floats_of(codes, g.depth, p, out.data(), stride);
  bool right = true;
  for (index_t k = 0; k < g.depth; ++k)
    for (index_t c = 0; c < width; ++c) right = right && check::same_or_nan(out[k * stride + c], g.value(k, c));
  CHECK(right);
  check_dots(g, p);

  const index_t pairs = divide_up(g.depth, 4) * 2;
  for (const auto what : {simd::bf16_weights::values, simd::bf16_weights::numbers}) {
    const bool numbers = what == simd::bf16_weights::numbers;
    if (numbers && (S::has_offset || p.far_zeros || sizeof(typename group::zero_unit) > 1)) continue;
    check::fenced<std::uint32_t> two(pairs * stride);
    decoder.pairs_of(what, codes, g.depth, p, two.data(), stride);
    right = true;
    for (index_t k = 0; k < 2 * pairs; ++k)
      for (index_t c = 0; c < width; ++c) {
        const index_t row = k / 4 * 2 + k % 2;
        const std::uint32_t half = two[row * stride + c] >> (k % 4 / 2 * 16) & 0xffffu;
        if (k >= g.depth)
          right = right && half == 0;
        else
          right = right && is_bf16_of(half, numbers ? g.number(k, c) : g.value(k, c));
      }
    CHECK(right);
  }
}

/// Levels are test programs of their own: most schemes are decoded with the best architecture of each.
template <class S, std::int32_t Offset, class A = simd::best_arch>
void check_scheme() {
  for (const index_t depth : {0, 1, 2, 3, 4, 5, 7, 8, 31})
    for (int round = 0; round < 2; ++round) {
      const packed_group<stored<S>, Offset, A> g(depth);
      check_group(g, g.parameters());
    }
}

}  // namespace

TEST_CASE("quad_decoder: integers, with and without zero points and offsets") {
  check_scheme<scheme<int8, per_channel<0>>, 0>();
  check_scheme<scheme<uint8, group<32>, zero_point<uint8>, scale_as<f16>>, -128>();
  check_scheme<scheme<int4, group<32>, scale_as<bf16>>, 8>();
  check::on_every_arch(
      [](auto arch) { check_scheme<scheme<uint4, group<32>, zero_point<uint4>>, 0, decltype(arch)>(); });
  check_scheme<scheme<uint4, group<32>, offset<f32>, static_only>, 0>();
}

TEST_CASE("quad_decoder: small floats of all widths and scale formats") {
  check_scheme<scheme<e4m3, per_channel<0>>, 0>();
  check_scheme<scheme<e5m2, group<16>, scale_as<e4m3>>, 0>();
  check_scheme<with<nvfp4, tensor_scale<f32>>, 0>();
  check_scheme<nvfp4, 0>();
  check_scheme<mxfp4, 0>();
  check_scheme<mxfp6_e2m3, 0>();
  check_scheme<mxint8, 0>();
}

TEST_CASE("quad_decoder: formats of a user") {
  check_scheme<scheme<thirds<4>, group<32>>, 0>();
  check_scheme<scheme<thirds<7>, group<32>>, 0>();
}

TEST_CASE("quad_decoder: every code under every power of two, where exponents are added and where they are not") {
  const auto each = [&](auto scheme) {
    using S = stored<decltype(scheme)>;
    packed_group<S, 0, simd::best_arch> g(16);
    for (int first = 0; first < 256; first += static_cast<int>(g.width)) {
      for (index_t c = 0; c < g.width; ++c)
        g.scales[static_cast<std::size_t>(c)] = static_cast<std::uint8_t>(std::min<index_t>(first + c, 255));
      check_group(g, g.parameters());
    }
    for (auto& s : g.scales) s = static_cast<std::uint8_t>(120 + check::random_below(8));
    const auto p = g.parameters();
    CHECK(p.steps_fit == p.may_step);
    check_group(g, p);
  };
  each(mxfp4{});
  each(mxfp8_e4m3{});
  each(mxfp8_e5m2{});
  each(mxint8{});
}

TEST_CASE("quad_decoder: zero points farther away than 32 bits reach") {
  packed_group<stored<scheme<int8, group<32>, zero_point<int32>>>, 0, simd::best_arch> g(9);
  check_group(g, g.parameters());
  CHECK(!g.parameters().far_zeros);
  g.zeros[1] = std::numeric_limits<std::int32_t>::max();
  g.zeros[2] = std::numeric_limits<std::int32_t>::min();
  CHECK(g.parameters().far_zeros);
  check_group(g, g.parameters());
}
