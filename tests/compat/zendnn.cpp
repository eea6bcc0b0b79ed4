// Mirrors include/qtensor/compat/zendnn.hpp: its numbers. Built once per architecture level.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <qtensor/compat/zendnn.hpp>

#include "compat/zendnn_check.hpp"

using namespace zendnn_check;
using qtensor::bits_of;
using qtensor::float_of;

namespace {

/// nelems numbers in one call with per-tensor parameters; the bytes of the destination as unsigned words.
std::vector<std::uint32_t> reordered(data_type_t from, data_type_t to, const std::vector<std::uint32_t>& words,
                                     float scale, std::int32_t zero_point,
                                     const lowoha_reorder_params_t& options = {}) {
  const buffer src(from, words);
  buffer dst(to, std::vector<std::uint32_t>(words.size()));
  lowoha_reorder_params_t p = options;
  p.dtypes = {from, to};
  p.quant_params.scale = {&scale, data_type_t::f32, {}};
  p.quant_params.zero_point = {&zero_point, data_type_t::s32, {}};
  const status_t s = reorder(src.data(), dst.data(), words.size(), p);
  INFO(s.reason());
  REQUIRE(s == status_t::success);
  return dst.words();
}

using words = std::vector<std::uint32_t>;
constexpr data_type_t f32 = data_type_t::f32, bf16 = data_type_t::bf16, f16 = data_type_t::f16, s8 = data_type_t::s8,
                      u8 = data_type_t::u8;

lowoha_reorder_params_t x86_quotients() {
  lowoha_reorder_params_t p;
  p.special_quotients = special_quotients_t::x86;
  return p;
}

}  // namespace

TEST_CASE("zendnn: the vectors of NUMERICS 6") {
  CHECK(reordered(bf16, s8, {0x3F80}, .5f, 0) == words{2});
  CHECK(reordered(bf16, s8, {0x3F00, 0x3FC0, 0x4020}, 1.f, 0) == words{0, 2, 2});
  CHECK(reordered(bf16, s8, {0x3F00}, 1.f, 1) == words{1});  // rounded before the zero point is added
  CHECK(reordered(bf16, s8, {0xC2C8, 0x42FE}, .5f, 0) == words{0x80, 127});
  CHECK(reordered(bf16, u8, {0xC248}, .5f, 128) == words{28});
  CHECK(reordered(bf16, u8, {0xC248}, .5f, 0) == words{0});
  CHECK(reordered(s8, bf16, {0x80}, .5f, 0) == words{0xC280});
  CHECK(reordered(u8, bf16, {0}, .5f, 128) == words{0xC280});
  CHECK(reordered(s8, f32, {3}, .1f, 0) == words{0x3E99999A});
  CHECK(reordered(s8, bf16, {3}, .1f, 0) == words{0x3E9A});
  CHECK(reordered(s8, bf16, {1}, .5f, -1) == words{0x3F80});
}

TEST_CASE("zendnn: an IEEE division, not a product with the reciprocal: 16.5 / 2.2 is 8") {
  CHECK(reordered(f32, s8, {bits_of(16.5f)}, 2.2f, 0) == words{8});
}

TEST_CASE(
    "zendnn: huge quotients saturate and NaN is the zero point; with x86 quotients both are -2^31, zero points wrap") {
  const words x = {bits_of(1e30f), bits_of(-1e30f), bits_of(qtensor::infinity), 0x7FC00000, bits_of(5.f), 0x4F000000};
  CHECK(reordered(f32, s8, x, 1.f, 0) == words{127, 0x80, 127, 0, 5, 127});
  CHECK(reordered(f32, s8, x, 1.f, -7) == words{127, 0x80, 127, 0xF9, 0xFE, 127});
  CHECK(reordered(f32, u8, x, 1.f, 3) == words{255, 0, 255, 3, 8, 255});
  CHECK(reordered(f32, s8, x, 1.f, 0, x86_quotients()) == words{0x80, 0x80, 0x80, 0x80, 5, 0x80});
  CHECK(reordered(f32, s8, x, 1.f, -7, x86_quotients()) == words{127, 127, 127, 127, 0xFE, 127});
  CHECK(reordered(f32, u8, x, 1.f, 3, x86_quotients()) == words{0, 0, 0, 0, 8, 0});
}

TEST_CASE("zendnn: zero points of any int32 beside 8-bit codes where the option says so") {
  lowoha_reorder_params_t p;
  p.zero_points = zero_points_t::int32;
  CHECK(reordered(f32, s8, {bits_of(-1000.f), bits_of(1000.f)}, 1.f, 1000, p) == words{0, 127});
  CHECK(reordered(s8, f32, {0x80, 127}, .5f, 1000, p) == words{bits_of(-564.f), bits_of(-436.5f)});
  // float(zero point) rounds: 2^31 - 1 counts as 2^31
  CHECK(reordered(u8, f32, {255}, 1.f, 2147483647, p) == words{bits_of(255.f - 2147483648.f)});
  CHECK(reordered(u8, f32, {7}, 1.f, 16777217, p) == words{bits_of(7.f - 16777216.f)});
}

TEST_CASE("zendnn: wide to wide divides from f32 and from bf16 to f16, multiplies to f32 and from f16 to bf16") {
  CHECK(reordered(f32, bf16, {bits_of(3.f)}, .5f, 2) == words{0x4100});  // 3 / .5 + 2 = 8
  CHECK(reordered(f32, f16, {bits_of(3.f)}, .5f, 2) == words{0x4800});
  CHECK(reordered(bf16, f16, {0x4040}, .5f, 2) == words{0x4800});
  CHECK(reordered(bf16, f32, {0x4040}, .5f, 2) == words{bits_of(.5f)});  // (3 - 2) * .5
  CHECK(reordered(f16, f32, {0x4200}, .5f, 2) == words{bits_of(.5f)});
  CHECK(reordered(f16, bf16, {0x4200}, .5f, 2) == words{0x3F00});
  CHECK(reordered(f32, bf16, {bits_of(3.f)}, 1.f, 300000) == words{0x4892});  // any zero point
}

TEST_CASE("zendnn: scale 1 and zero point 0 keep every bit: -0, ties to even, infinities, NaN") {
  CHECK(reordered(f32, bf16, {0x80000000, 0x3F808000, 0x3F818000, 0x7F800000, 0x7F7FFFFF}, 1.f, 0) ==
        words{0x8000, 0x3F80, 0x3F82, 0x7F80, 0x7F80});
  CHECK(reordered(f32, bf16, {0x80000000}, 2.f, 0) == words{0});  // -0 / 2 + 0
  CHECK(reordered(f32, f16, {bits_of(65519.f), bits_of(65520.f), bits_of(-0x1p-24f)}, 1.f, 0) ==
        words{0x7BFF, 0x7C00, 0x8001});
  CHECK(reordered(bf16, f16, {0x0001, 0xFF80}, 1.f, 0) == words{0, 0xFC00});
  CHECK(reordered(bf16, f32, {0x7F81, 0xFFC1, 0x8001}, 1.f, 0) == words{0x7F810000, 0xFFC10000, 0x80010000});
  for (data_type_t to : {bf16, f16})  // a NaN never becomes an infinity, whatever its payload
    CHECK(std::isnan(float_at(to, reordered(f32, to, {0x7F800001}, 1.f, 0)[0])));
}

TEST_CASE("zendnn: null buffers mean scale 1 and zero point 0") {
  for (data_type_t from : {f32, bf16, f16, s8, u8})
    for (data_type_t to : {f32, bf16, f16, s8, u8}) {
      if (from == to || (from >= s8 && to >= s8)) continue;
      const std::uint32_t five = from >= s8 ? 5 : word_of(from, 5.f);
      const buffer src(from, words(70, five));
      buffer dst(to, words(70));
      lowoha_reorder_params_t p;
      p.dtypes = {from, to};
      REQUIRE(reorder(src.data(), dst.data(), 70, p) == status_t::success);
      CHECK(dst.words() == words(70, to >= s8 ? 5 : word_of(to, 5.f)));
    }
}

TEST_CASE("zendnn: the document's examples 1 and 3, 1024 bf16 to int8 and uint8, as written there") {
  constexpr std::size_t nelems = 1024;
  for (const bool to_unsigned : {false, true}) {
    float scale = 0.5f;
    std::int32_t zero_point = to_unsigned ? 128 : 0;
    std::vector<std::uint16_t> input_bf16(nelems);
    std::vector<std::int8_t> output_int8(nelems);
    std::vector<std::uint8_t> output_uint8(nelems);
    for (std::size_t i = 0; i < nelems; ++i) {
      const float val = static_cast<float>(i) * 0.1f - 50.0f;
      input_bf16[i] = static_cast<std::uint16_t>(bits_of(val) >> 16);
    }
    lowoha_reorder_params_t params;
    params.dtypes.src = data_type_t::bf16;
    params.dtypes.dst = to_unsigned ? data_type_t::u8 : data_type_t::s8;
    params.quant_params.scale.buff = &scale;
    params.quant_params.scale.dt = data_type_t::f32;
    params.quant_params.zero_point.buff = &zero_point;
    params.quant_params.zero_point.dt = data_type_t::s32;
    params.algo = reorder_algo_t::DT;
    const status_t status = to_unsigned ? reorder(input_bf16.data(), output_uint8.data(), nelems, params)
                                        : reorder(input_bf16.data(), output_int8.data(), nelems, params);
    REQUIRE(status == status_t::success);
    for (std::size_t i = 0; i < nelems; ++i) {
      const int code = to_unsigned ? output_uint8[i] : output_int8[i];
      const double q =
          std::nearbyint(static_cast<double>(float_of(std::uint32_t{input_bf16[i]} << 16)) / 0.5) + zero_point;
      REQUIRE(code == std::clamp(q, to_unsigned ? 0.0 : -128.0, to_unsigned ? 255.0 : 127.0));
    }
  }
}

TEST_CASE("zendnn: the document's examples 2 and 4, 1024 codes to bf16, as written there") {
  constexpr std::size_t nelems = 1024;
  for (const bool from_unsigned : {false, true}) {
    float scale = 0.5f;
    std::int32_t zero_point = from_unsigned ? 128 : 0;
    std::vector<std::int8_t> input_int8(nelems);
    std::vector<std::uint8_t> input_uint8(nelems);
    std::vector<std::uint16_t> output_bf16(nelems);
    for (std::size_t i = 0; i < nelems; ++i) {
      input_int8[i] = static_cast<std::int8_t>((i % 256) - 128);
      input_uint8[i] = static_cast<std::uint8_t>(i % 256);
    }
    lowoha_reorder_params_t params;
    params.dtypes.src = from_unsigned ? data_type_t::u8 : data_type_t::s8;
    params.dtypes.dst = data_type_t::bf16;
    params.quant_params.scale.buff = &scale;
    params.quant_params.scale.dt = data_type_t::f32;
    params.quant_params.zero_point.buff = &zero_point;
    params.quant_params.zero_point.dt = data_type_t::s32;
    params.algo = reorder_algo_t::DT;
    const status_t status = from_unsigned ? reorder(input_uint8.data(), output_bf16.data(), nelems, params)
                                          : reorder(input_int8.data(), output_bf16.data(), nelems, params);
    REQUIRE(status == status_t::success);
    for (std::size_t i = 0; i < nelems; ++i) {
      const int code = from_unsigned ? input_uint8[i] : input_int8[i];
      REQUIRE(float_of(std::uint32_t{output_bf16[i]} << 16) == 0.5f * static_cast<float>(code - zero_point));
    }
  }
}

TEST_CASE(
    "zendnn: every pair of types, granularity, rank, stride and algorithm against the formulas, element by element") {
  constexpr std::pair<data_type_t, data_type_t> pairs[] = {
      {f32, s8}, {f32, u8},  {bf16, s8}, {bf16, u8},  {f16, s8},  {f16, u8},   {s8, f32},   {s8, bf16}, {s8, f16},
      {u8, f32}, {u8, bf16}, {u8, f16},  {f32, bf16}, {f32, f16}, {bf16, f32}, {bf16, f16}, {f16, f32}, {f16, bf16}};
  std::size_t runs = 0;
  for (const auto& [from, to] : pairs)
    for (const geometry& g : geometries())
      for (const reorder_algo_t algo : {reorder_algo_t::DT, reorder_algo_t::reference}) {
        const std::string difference = compare(from, to, g, algo, f32);
        const std::string call = "from " + std::to_string(int(from)) + " to " + std::to_string(int(to)) + " algo " +
                                 std::to_string(int(algo));
        INFO(call, " ", g.text());
        REQUIRE(difference == "");
        ++runs;
      }
  CHECK(runs == std::size(pairs) * geometries().size() * 2);
}

TEST_CASE("zendnn: scales may be bf16 or f16") {
  for (const data_type_t scales : {bf16, f16})
    for (const geometry& g : geometries())
      for (const auto& [from, to] : {std::pair{f32, s8}, std::pair{u8, f32}}) {
        INFO(g.text());
        REQUIRE(compare(from, to, g, reorder_algo_t::native, scales) == "");
      }
}

TEST_CASE("zendnn: zero points that are no codes, near and far, beside NaNs, infinities and huge numbers") {
  for (const std::int32_t factor : {3, 40000, 1 << 22})  // within 2^10, 2^24, 2^30
    for (const geometry& g : geometries())
      for (const auto& [from, to] : {std::pair{f32, s8}, std::pair{f32, u8}, std::pair{bf16, u8}, std::pair{f16, s8}}) {
        INFO(g.text());
        REQUIRE(compare(from, to, g, reorder_algo_t::native, f32, factor) == "");
      }
}

TEST_CASE("zendnn: flat dims: {channels} is the last axis, {groups, group_size} runs of the array, mixed as you like") {
  const std::size_t n = 24 * 130;
  words x;
  for (std::size_t i = 0; i < n; ++i)
    x.push_back(bits_of(static_cast<float>(static_cast<int>(i * 37 % 1001) - 500) * 0.31f));
  const buffer src(f32, x);
  const std::vector<std::vector<std::int64_t>> choices = {{},        {1},       {24},          {130},     {24 * 130},
                                                          {24, 130}, {130, 24}, {1, 24 * 130}, {3120, 1}, {6, 520}};
  for (const auto& scale_dims : choices)
    for (const auto& zero_dims : choices) {
      const auto index = [&](const std::vector<std::int64_t>& dims, std::size_t i) {
        if (dims.empty()) return std::size_t{0};
        return dims.size() == 1 ? i % static_cast<std::size_t>(dims[0]) : i / static_cast<std::size_t>(dims[1]);
      };
      std::vector<float> scales(n);
      std::vector<std::int32_t> zeros(n);
      for (std::size_t i = 0; i < n; ++i)
        scales[i] = 0.25f + static_cast<float>(i % 77) * 0.03f, zeros[i] = static_cast<int>(i * 5 % 256);
      lowoha_reorder_params_t p;
      p.dtypes = {f32, u8};
      p.quant_params.scale = {scales.data(), f32, scale_dims};
      p.quant_params.zero_point = {zeros.data(), data_type_t::s32, zero_dims};
      buffer dst(u8, words(n));
      const status_t s = reorder(src.data(), dst.data(), n, p);
      REQUIRE(s == status_t::success);
      const words codes = dst.words();
      for (std::size_t i = 0; i < n; ++i)
        REQUIRE(codes[i] == expected(f32, u8, x[i], scales[index(scale_dims, i)], zeros[index(zero_dims, i)]));
    }
}

TEST_CASE("zendnn: every length up to four batches and more, one scale: bits do not depend on the position") {
  const std::size_t longest = 4 * 64 + 3;
  words x;
  for (std::size_t i = 0; i < longest; ++i) x.push_back(word_of(bf16, static_cast<float>(i) * 0.7f - 90.f));
  for (const auto& [from, to] : {std::pair{bf16, s8}, std::pair{bf16, f16}, std::pair{bf16, f32}})
    for (std::size_t n = 1; n <= longest; ++n) {
      const words got = reordered(from, to, words(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(n)), 0.9f, 3);
      for (std::size_t i = 0; i < n; ++i) REQUIRE(got[i] == expected(from, to, x[i], 0.9f, 3));
    }
}

TEST_CASE("zendnn: the schemes of this header are the same rules") {
  const std::vector<float> x = {-50.f, 0.3f, 17.25f, 1e30f};
  const std::vector<std::uint32_t> codes =
      reordered(f32, u8, {bits_of(x[0]), bits_of(x[1]), bits_of(x[2]), bits_of(x[3])}, .5f, 128);
  for (std::size_t i = 0; i < x.size(); ++i)
    CHECK(qtensor::quantize_element<qtensor::compat::zendnn::u8>(x[i], {.5f}, 128) == codes[i]);
  CHECK(qtensor::dequantize_element<qtensor::compat::zendnn::s8>(3, {.1f}, 0) == float_of(0x3E99999A));
}

// ---- Dynamic -------------------------------------------------------------------------------------------------------

TEST_CASE("zendnn dynamic: the vector of NUMERICS: {1, -2, .5} gives 2/127 and {64, -127, 32}") {
  const dynamic_result r = dynamic(f32, s8, {bits_of(1.f), bits_of(-2.f), bits_of(.5f)});
  CHECK(bits_of(r.scale) == 0x3C810204);
  CHECK(r.codes == words{64, 0x81, 32});
}

TEST_CASE("zendnn dynamic: asymmetric ranges need not hold 0, so zero points may lie outside 0..255") {
  const dynamic_result r = dynamic(f32, u8, {bits_of(10.f), bits_of(20.f)});
  CHECK(r.scale == 10.f / 255.f);
  CHECK(r.zero_point == -255);
  CHECK(r.codes == words{0, 255});
  const dynamic_result far = dynamic(f32, u8, {bits_of(1e9f), bits_of(1e9f)});  // max becomes min + 1, which is min
  CHECK(far.scale == 1e-10f);
  CHECK(far.zero_point == std::numeric_limits<std::int32_t>::min());
}

TEST_CASE("zendnn dynamic: the zero point rounds half away from zero") {
  const dynamic_result r = dynamic(f32, u8, {bits_of(-0.5f), bits_of(254.5f)});  // scale 1
  CHECK(r.scale == 1.f);
  CHECK(r.zero_point == 1);
  const dynamic_result s = dynamic(f32, u8, {bits_of(2.5f), bits_of(257.5f)});
  CHECK(s.zero_point == -3);
}

TEST_CASE("zendnn dynamic: zeros, constants and tensors without a finite element") {
  const float nan = qtensor::quiet_nan, inf = qtensor::infinity;
  CHECK(dynamic(f32, s8, {0, 0x80000000}).scale == 1e-10f);
  CHECK(dynamic(f32, s8, {0, 0x80000000}).codes == words{0, 0});
  CHECK(dynamic(f32, s8, {bits_of(nan), bits_of(inf)}).scale == 1e-10f);
  const dynamic_result constant = dynamic(f32, u8, {bits_of(3.f), bits_of(3.f)});
  CHECK(constant.scale == 1.f / 255.f);
  CHECK(constant.zero_point == -765);
  const dynamic_result none = dynamic(f32, u8, {bits_of(nan), bits_of(-inf)});
  CHECK(none.scale == 1.f / 255.f);
  CHECK(none.zero_point == 0);
  CHECK(none.codes == words{0, 0});
  // they are left out of the range, and become the zero point or saturate
  const dynamic_result some = dynamic(f32, s8, {bits_of(nan), bits_of(inf), bits_of(-inf), bits_of(2.f)});
  CHECK(some.scale == 2.f / 127.f);
  CHECK(some.codes == words{0, 127, 0x80, 127});
}

TEST_CASE("zendnn dynamic: bf16 and f16 scale buffers; codes belong to the stored scale, f16 ones are at least 2^-14") {
  const words x = {bits_of(1.f), bits_of(-2.f), bits_of(.5f)};
  CHECK(dynamic(f32, s8, x, bf16).scale == float_at(bf16, 0x3C81));
  CHECK(dynamic(f32, s8, x, bf16).codes == words{64, 0x81, 32});  // 1 / 0.015747: 63.5 and a little
  CHECK(dynamic(f32, s8, x, f16).scale == float_at(f16, word_of(f16, 2.f / 127.f)));
  CHECK(dynamic(f32, s8, {bits_of(1e-6f)}, f16).scale == 0x1p-14f);
  CHECK(dynamic(f32, s8, {bits_of(1e-6f)}, f16).codes == words{0});
}

TEST_CASE("zendnn dynamic: every granularity, source type, stride and algorithm against the formulas") {
  for (const data_type_t from : {f32, bf16, f16})
    for (const data_type_t to : {s8, u8})
      for (const geometry& g : geometries())
        for (const reorder_algo_t algo : {reorder_algo_t::none, reorder_algo_t::reference}) {
          if (g.scale_dims != g.zero_dims) continue;
          INFO("from ", int(from), " to ", int(to), " ", g.text());
          REQUIRE(compare_dynamic(from, to, g, algo) == "");
        }
}

TEST_CASE("zendnn dynamic: dst null computes the parameters only, the same ones") {
  std::vector<std::uint16_t> x(3000);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<std::uint16_t>(word_of(bf16, static_cast<float>(i % 97) - 30.f));
  float scale[2] = {};
  std::int32_t zero[2] = {};
  std::vector<std::uint8_t> codes(x.size());
  for (int i = 0; i < 2; ++i) {
    lowoha_reorder_params_t p;
    p.dtypes = {bf16, u8};
    p.dynamic_quant = true;
    p.quant_params.scale = {&scale[i], f32, {}};
    p.quant_params.zero_point = {&zero[i], data_type_t::s32, {}};
    REQUIRE(reorder(x.data(), i == 0 ? nullptr : codes.data(), x.size(), p) == status_t::success);
  }
  CHECK(scale[0] == 96.f / 255.f);
  CHECK(zero[0] == 80);  // 30 / (96 / 255) = 79.69
  CHECK(scale[1] == scale[0]);
  CHECK(zero[1] == zero[0]);
  CHECK(codes[30] == 80);
}
