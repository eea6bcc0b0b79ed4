// The scales and codes of torchao's, microxcaling's and TransformerEngine's blocks, as NUMERICS 2.1, 2.4 and 2.6 say.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/compat/torchao.hpp>
#include <qtensor/compat/transformer_engine.hpp>

#include "../compat/microxcaling_check.hpp"
#include "conversions.hpp"

using namespace qtensor;
namespace torchao = qtensor::compat::torchao;
namespace te = qtensor::compat::transformer_engine;
namespace mxc = qtensor::compat::microxcaling;

namespace {

/// A block: its numbers, scale code and codes, and the largest magnitude that its tensor is quantized below.
struct block {
  std::vector<float> x;
  std::uint32_t scale = 0;
  std::vector<std::uint32_t> codes = {};
  float tensor_amax = 0.f;

  float amax() const {
    float a = 0.f;
    for (const float v : x) a = is_nan(a) || is_nan(v) ? quiet_nan : std::max(a, magnitude(v));
    return a;
  }
  /// Compares with what they should be; a quotient that is NaN may have any code.
  template <format Code>
  void check(std::uint32_t wanted, const std::vector<float>& quotients) const {
    CAPTURE(amax());
    CAPTURE(tensor_amax);
    REQUIRE(scale == wanted);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::uint32_t code = encode<Code>(quotients[i]);
      INFO("element ", i, ", ", x[i], ", is ", codes[i], ", not ", code);
      REQUIRE((is_nan(quotients[i]) || codes[i] == code));
    }
  }
};

std::uint32_t exponent_field(float x) { return bits_of(x) >> 23; }
float power(std::uint32_t code) { return std::ldexp(1.f, static_cast<int>(code) - 127); }

enum class mode { floor, ceil, even, rceil };

template <format Code, mode Mode>
void check_mx(const block& b) {
  const float amax = b.amax();
  const std::uint32_t fraction = bits_of(amax) & low_bits(23);
  const int emax = max_exponent<Code>;
  std::uint32_t field = exponent_field(amax);
  if (Mode == mode::even) field = is_finite(amax) ? (bits_of(amax) + (1u << (22 - Code::mantissa_bits))) >> 23 : 255u;
  if (Mode == mode::ceil && fraction != 0) ++field;
  int code = static_cast<int>(field) - emax;
  if (Mode == mode::rceil) {
    volatile float s = 1.f / static_cast<float>(Code::max);
    s = amax * s;
    const std::uint32_t left = bits_of(s) & low_bits(23);
    code = static_cast<int>(exponent_field(s));
    code += code == 0 ? left > 0x400000u : left != 0;
  }
  if (!is_finite(amax) || (Mode == mode::even && field == 255)) {
    b.check<Code>(0xFF, std::vector<float>(b.x.size(), quiet_nan));
    for (const std::uint32_t c : b.codes)
      if (qtensor::detail::format_has_nan<Code>()) REQUIRE(is_nan(decode<Code>(c)));
    return;
  }
  std::vector<float> q;
  for (const float v : b.x) q.push_back(v / power(static_cast<std::uint32_t>(std::max(code, 0))));
  b.check<Code>(static_cast<std::uint32_t>(std::max(code, 0)), q);
}

float e4m3_of(std::uint32_t code) { return decode<e4m3>(code); }
std::uint32_t e4m3_between(float s, float low) {
  return is_nan(s) ? encode<e4m3>(s) : encode<e4m3>(std::min(std::max(s, low), 448.f));
}

template <bool TwoLevels>
void check_torchao_nvfp4(const block& b) {
  volatile float s = b.amax() / 6.f, tensor = TwoLevels ? b.tensor_amax / (448.f * 6.f) : 1.f;
  s = s / tensor;
  const std::uint32_t code = e4m3_between(s, 0x1p-6f);
  volatile float inverse = 1.f / tensor;
  inverse = inverse / e4m3_of(code);
  std::vector<float> q;
  for (const float v : b.x) q.push_back(v * inverse);
  b.check<e2m1>(code, q);
}

std::vector<float> capped(const block& b, float scale, float tensor) {
  volatile float inverse = scale * tensor;
  inverse = 1.f / inverse;
  if (inverse > std::numeric_limits<float>::max()) inverse = std::numeric_limits<float>::max();
  std::vector<float> q;
  for (const float v : b.x) {
    volatile float product = v * inverse;
    q.push_back(product + 0.f);
    if (is_nan(q.back())) q.back() = 0.f;
  }
  return q;
}
void check_te_nvfp4(const block& b) {
  volatile float encode_scale = std::min(448.f * 6.f / b.tensor_amax, std::numeric_limits<float>::max());
  if (encode_scale == 0.f) encode_scale = 1.f;
  volatile float m = 1.f / 6.f, tensor = 1.f / encode_scale;
  m = encode_scale * m;
  m = b.amax() * m;
  const std::uint32_t code = e4m3_between(m, 0.f);
  b.check<e2m1>(code, capped(b, e4m3_of(code), tensor));
}
void check_te_powers(const block& b) {
  const float s = b.amax() / 6.f;
  const float k = is_nan(s) ? 128.f : std::clamp(std::ceil(std::log2(s)), -127.f, 127.f);
  const auto code = static_cast<std::uint32_t>(k + 127.f);
  b.check<e2m1>(code, capped(b, code == 0xFF ? quiet_nan : power(code), 1.f));
}

template <format Code, microxcaling_check::how Round, bool Flush>
void check_mxc(const block& b) {
  const std::vector<float> want = microxcaling_check::emulated<Code>(b.x, Round, Flush);
  for (std::size_t i = 0; i < b.x.size(); ++i) {
    volatile float got = decode<Code>(b.codes[i]);
    got = got * decode<e8m0>(b.scale);
    INFO("element ", i, " of a block of ", b.amax(), ", ", b.x[i], ", is ", got, ", not ", want[i]);
    const bool zeros = got == 0.f && want[i] == 0.f && !minifloat_format<Code>;  // mxint8 has no -0
    REQUIRE((is_nan(got) ? is_nan(want[i]) : zeros || bits_of(got) == bits_of(want[i])));
  }
}

/// Some numbers become neighbours of powers of two, where logarithms round.
template <format F, class E>
void sharpen(fuzz::dice& dice, fuzz::drawn_source<F, E>& x) {
  const int fraction = std::is_same_v<F, f32> ? 23 : std::is_same_v<F, bf16> ? 7 : 10;
  if (!dice.chance(3)) return;
  for (auto& unit : x.memory)
    if (dice.chance(10)) {
      const std::uint32_t code = qtensor::detail::code_of<F>(unit) & ~low_bits(fraction);
      unit =
          qtensor::detail::unit_from<F>((code + static_cast<std::uint32_t>(dice.within(-12, 1))) & low_bits(F::bits));
    }
}

/// Memory of F into a tensor or into a part of one, by one thread or by several; each block is checked.
template <quantization_scheme S, void (*Check)(const block&), format F = f32>
void checked(fuzz::dice& dice) {
  using E = matrix_extents;
  const E extents = fuzz::draw_extents<2>(dice, fuzz::draw_size(dice));
  fuzz::drawn_source<F, E> x(dice, extents);
  sharpen(dice, x);
  const auto before = x.memory;
  const index_t threads = dice.chance(2) ? 1 : dice.within(2, 5);
  INFO(fuzz::describe<S, row_major, F>(extents), ", threads ", threads);
  fuzz::target<S, 2, row_major> to(dice, extents, fuzz::draw_granularity<S>(dice), false);
  const auto got = to.part(to.got), want = to.part(to.want);
  const typename memory_source<F, E>::template in_order<row_major> rows(x.source());
  float tensor_amax = 0.f;
  if constexpr (S::has_tensor_scale) {
    for (index_t i = 0; i < extents.size(); ++i) {
      const float v = x(x.index_of(i));
      tensor_amax = is_nan(tensor_amax) || is_nan(v) ? quiet_nan : std::max(tensor_amax, magnitude(v));
    }
    if (dice.chance(3)) {
      tensor_amax = decode<f32>(fuzz::draw_scale<f32>(dice, is_finite(tensor_amax) ? tensor_amax : 1.f));
      const auto level = tensor_level::of<S>(tensor_amax);
      *want.memory().tensor_scale = level.scale;
      reference::quantize_blocks(x, level.term, want);
      quantize_into(rows, got, level, on(pool::threads(threads)));
    } else {
      reference::quantize(x, want);
      quantize_into(rows, got, on(pool::threads(threads)));
    }
  } else {
    reference::quantize(x, want);
    if (threads > 1)
      quantize_into(rows, got, on(pool::threads(threads)));
    else
      quantize_into(rows, got);
  }
  REQUIRE(to.same());
  REQUIRE(std::memcmp(before.data(), x.memory.data(), before.size() * sizeof(before[0])) == 0);
  if (S::has_tensor_scale && !(is_finite(tensor_amax) && tensor_amax > 0.f)) return;
  reference::for_each_block(got.scale_grid(), got.storage_extents(), [&](const auto& first, const auto& n) {
    block b{{}, got.scale_code(first), {}, tensor_amax};
    reference::for_each_index(first, n, [&](const auto& i) {
      b.x.push_back(x(i));
      b.codes.push_back(got.code(i));
    });
    INFO("block at ", first[0], ", ", first[1]);
    Check(b);
  });
}

}  // namespace

TEST_CASE("torchao: MX blocks in four modes") {
  fuzz::each_case(300, [](fuzz::dice& dice) {
    fuzz::one_case_of(dice, &checked<torchao::mx<e4m3>, &check_mx<e4m3, mode::floor>>,
                      &checked<torchao::mx<e5m2, torchao::ceil, 32, 0>, &check_mx<e5m2, mode::ceil>>,
                      &checked<torchao::mx<e2m1, torchao::even, dynamic>, &check_mx<e2m1, mode::even>, bf16>,
                      &checked<torchao::mx<e2m3, torchao::rceil>, &check_mx<e2m3, mode::rceil>, f16>,
                      &checked<torchao::mx<e2m1, torchao::rceil>, &check_mx<e2m1, mode::rceil>>);
  });
}
TEST_CASE("torchao, TransformerEngine: NVFP4") {
  fuzz::each_case(300, [](fuzz::dice& dice) {
    fuzz::one_case_of(dice, &checked<torchao::nvfp4, &check_torchao_nvfp4<false>>,
                      &checked<torchao::nvfp4_two_level, &check_torchao_nvfp4<true>>,
                      &checked<te::nvfp4, &check_te_nvfp4>, &checked<te::nvfp4_2d, &check_te_nvfp4, bf16>,
                      &checked<te::nvfp4_powers, &check_te_powers, f16>);
  });
}
TEST_CASE("microxcaling: elements and scales") {
  using microxcaling_check::how;
  fuzz::each_case(300, [](fuzz::dice& dice) {
    fuzz::one_case_of(dice, &checked<mxc::mx<e4m3>, &check_mxc<e4m3, how::nearest, false>>,
                      &checked<mxc::flushed_mx<e5m2, mxc::even, 32, 0>, &check_mxc<e5m2, how::even, true>>,
                      &checked<mxc::mx<e2m1, mxc::floor, dynamic>, &check_mxc<e2m1, how::floor, false>, bf16>,
                      &checked<mxc::flushed_mx<e3m2, mxc::floor>, &check_mxc<e3m2, how::floor, true>>,
                      &checked<mxc::mx<mxint8, mxc::even>, &check_mxc<mxint8, how::even, false>>);
  });
}
