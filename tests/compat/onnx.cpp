// Mirrors include/qtensor/compat/onnx.hpp: vectors of NUMERICS 8.1, layouts, granularities, every refusal.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <qtensor/compat/onnx.hpp>
#include <string>

#include "core/sentence.hpp"

using namespace qtensor;
namespace onnx = qtensor::compat::onnx;
using onnx::linear;

namespace {

std::vector<int> ints(const auto& codes) { return {codes.begin(), codes.end()}; }
using bytes = std::vector<std::uint8_t>;
using halves = std::vector<std::uint16_t>;
using floats = std::vector<float>;

/// QuantizeLinear of a vector with one scale and zero point, as a flat ONNX array.
template <class S>
auto flat_codes(const floats& x, float scale, int zero) {
  using code = typename S::code_format;
  const floats scales = {scale};
  std::vector<onnx::unit<code>> zeros(1), flat(static_cast<std::size_t>(onnx::unit_count<code>(std::ssize(x))));
  onnx::detail::store<code>(zeros.data(), 0, static_cast<std::uint32_t>(zero));
  onnx::to_packed(onnx::quantize_linear<S>(source(x.data(), extents(x.size())), scales, zeros), flat);
  return flat;
}

}  // namespace

TEST_CASE("onnx: QuantizeLinear of the document's example and NUMERICS 8.1") {
  CHECK(flat_codes<linear<uint8>>({0, 2, 3, 1000, -254, -1000}, 2.f, 128) == bytes{128, 129, 130, 255, 1, 0});
  CHECK(flat_codes<linear<int8>>({.5f, 1.5f}, 1.f, 1) == std::vector<std::int8_t>{1, 3});
  CHECK(flat_codes<linear<int4>>({7.5f, -8.5f, .5f, 1.5f}, 1.f, 0) == bytes{0x87, 0x20});
  CHECK(flat_codes<linear<uint4>>({-9.f}, 1.f, 8) == bytes{0x00});
  CHECK(flat_codes<linear<int2>>({1, -2, -1, 0, 1}, 1.f, 0) == bytes{0x39, 0x01});
  CHECK(flat_codes<linear<uint16>>({1e9f, -1.f, 3.f}, 1.f, 32768) == halves{65535, 32767, 32771});
  CHECK(flat_codes<linear<int16>>({-1e9f, 2.5f}, 1.f, -1) == std::vector<std::int16_t>{-32768, 1});
  CHECK(flat_codes<linear<uint8>>({infinity, -infinity, quiet_nan}, 1.f, 7) == bytes{255, 0, 7});
}

TEST_CASE(
    "onnx: QuantizeLinear to floats saturates by default, else overflows as the tables of NUMERICS 1.5 and 1.6 say") {
  const floats big = {930.f, -infinity, quiet_nan};
  CHECK(flat_codes<linear<e4m3>>(big, 2.f, 0) == bytes{0x7E, 0xFE, 0x7F});
  CHECK(flat_codes<with<linear<e4m3>, to_special>>(big, 2.f, 0) == bytes{0x7F, 0xFF, 0x7F});
  CHECK(flat_codes<linear<e5m2>>(big, 0x1p-8f, 0) == bytes{0x7B, 0xFB, 0x7E});
  CHECK(flat_codes<with<linear<e5m2>, to_special>>(big, 0x1p-8f, 0) == bytes{0x7C, 0xFC, 0x7E});
  CHECK(flat_codes<linear<e4m3fnuz>>(big, 2.f, 0) == bytes{0x7F, 0xFF, 0x80});
  CHECK(flat_codes<with<linear<e5m2fnuz>, to_special>>(big, 0x1p-8f, 0) == bytes{0x80, 0x80, 0x80});
}

TEST_CASE("onnx: QuantizeLinear to e2m1: NaN is the zero of the other sign, at every place of a run (NUMERICS 8.2)") {
  CHECK(flat_codes<linear<e2m1>>({1.f, -6.f, infinity, quiet_nan, -quiet_nan}, 1.f, 0) == bytes{0xF2, 0x87, 0x00});
  for (std::size_t at = 0; at < 70; ++at) {
    floats x(70, -3.f);
    x[at] = quiet_nan;
    bytes expected(35, 0xDD);
    expected[at / 2] = at % 2 == 0 ? 0xD8 : 0x8D;
    INFO("at ", at);
    CHECK(flat_codes<linear<e2m1>>(x, 1.f, 0) == expected);
  }
}

TEST_CASE("onnx: scales and sources of 16 bits; the quotient in f32 as ONNX Runtime, or in the scale's type") {
  const halves x = {0x63D0, 0xE3D0}, scales = {0x34CD};  // 1000, -1000; 0.3000488
  const auto s = source<f16>(x.data(), extents(2));
  const auto in_f32 = onnx::quantize_linear<linear<int16, f16>>(s, scales);
  const auto in_f16 = onnx::quantize_linear<onnx::as_reference<linear<int16, f16>>>(s, scales);
  CHECK(ints(in_f32.codes()) == std::vector<int>{3333, -3333});
  CHECK(ints(in_f16.codes()) == std::vector<int>{3332, -3332});  // f16 has steps of 2 there
  CHECK(in_f32.scale(0) == decode<f16>(0x34CD));
  const halves xb = {0x4120}, sb = {0x4000};  // 10; 2
  CHECK(ints(onnx::quantize_linear<linear<int8, bf16>>(source<bf16>(xb.data(), extents(1)), sb).codes()) ==
        std::vector<int>{5});
  const bytes power = {0x80};  // e8m0: 2
  const floats y = {3.f, -7.f};
  CHECK(ints(onnx::quantize_linear<linear<int8, e8m0>>(source(y.data(), extents(2)), power).codes()) ==
        std::vector<int>{2, -4});
}

TEST_CASE("onnx: int32 sources are rounded to f32 first; null ones are refused") {
  const std::vector<std::int32_t> x = {16777217, -5, 7};
  const floats scales = {65537.f, 2.f, 2.f};
  CHECK(ints(onnx::quantize_linear<linear<int16>>(x.data(), extents(1, 3), scales).codes()) ==
        std::vector<int>{256, -2, 4});
  const std::int32_t* const null = nullptr;
  CHECK(sentence([&] { onnx::quantize_linear<linear<int16>>(null, extents(1, 3), scales); }) ==
        "qtensor: the source is null, but has 3 elements.");
}

TEST_CASE("onnx: scales for the tensor, an axis or blocks of an axis; axes from the end; a short last block") {
  floats x(2 * 3 * 5);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  const auto in = source(x.data(), extents(2, 3, 5));
  const auto codes_by = [&](const floats& scales, const onnx::attributes& how) {
    return ints(onnx::quantize_linear<linear<uint8>>(in, scales, {}, how).codes());
  };
  const auto expected = [&](auto scale) {
    std::vector<int> codes;
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 3; ++j)
        for (int k = 0; k < 5; ++k) {
          const float q = x[codes.size()] / scale(i, j, k);
          codes.push_back(static_cast<int>(round_to_integer<nearest_even>(q)));
        }
    return codes;
  };
  CHECK(codes_by({2.f}, {}) == expected([](int, int, int) { return 2.f; }));
  const floats three = {1.f, 2.f, 4.f};
  CHECK(codes_by(three, {}) == expected([&](int, int j, int) { return three[static_cast<std::size_t>(j)]; }));
  CHECK(codes_by(three, {.axis = -2}) == codes_by(three, {.axis = 1}));
  const floats two = {1.f, 8.f};
  CHECK(codes_by(two, {.axis = 0}) == expected([&](int i, int, int) { return two[static_cast<std::size_t>(i)]; }));
  floats blocks(2 * 3 * 3);
  for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] = 1.f + static_cast<float>(i % 7);
  CHECK(codes_by(blocks, {.axis = -1, .block_size = 2}) ==
        expected([&](int i, int j, int k) { return blocks[static_cast<std::size_t>((i * 3 + j) * 3 + k / 2)]; }));
  floats across(2 * 2 * 5);
  for (std::size_t i = 0; i < across.size(); ++i) across[i] = 1.f + static_cast<float>(i % 5);
  CHECK(codes_by(across, {.axis = 1, .block_size = 2}) ==
        expected([&](int i, int j, int k) { return across[static_cast<std::size_t>((i * 2 + j / 2) * 5 + k)]; }));
  // The granularity stays with the tensor.
  const auto t = onnx::quantize_linear<linear<uint8>>(in, across, {}, {.axis = 1, .block_size = 2});
  CHECK(t.granularity() == compat::axis_blocks::blocks(1, 2));
  CHECK(t.view().scale(1, 2, 4) == across[19]);
}

TEST_CASE("onnx: packed arrays run across rows; tensors start every row on a byte") {
  const bytes flat = {0x21, 0x43, 0x65, 0x87, 0x09};
  const floats one = {1.f};
  const auto t = onnx::from_arrays<linear<int4>>(flat, one, {}, extents(3, 3));
  CHECK(ints(t.codes()) == std::vector<int>{0x21, 0x03, 0x54, 0x06, 0x87, 0x09});
  bytes back(5, 0xFF);
  onnx::to_packed(t, back);
  CHECK(back == flat);
  const bytes pairs = {0x39, 0x01, 0xE4};  // 1, -2, -1, 0, 1, 0, 0, 0, 0, 1, 2, 3 in two bits
  const auto u = onnx::from_arrays<linear<uint2>>(pairs, one, {}, extents(4, 3));
  CHECK(ints(u.codes()) == std::vector<int>{0x39, 0x04, 0x00, 0x39});
  bytes again(3);
  onnx::to_packed(u.view(), again);
  CHECK(again == pairs);
  // Whole bytes: the same units.
  const bytes even = {0x21, 0x43};
  CHECK(ints(onnx::from_arrays<linear<e2m1>>(even, one, {}, extents(2, 2)).codes()) == std::vector<int>{0x21, 0x43});
}

TEST_CASE("onnx: packed codes in rows that end inside bytes, there and back along every axis") {
  const auto check = []<class S>(std::type_identity<S>, const auto& e, const onnx::attributes& how) {
    using code = typename S::code_format;
    const index_t count = e.size();
    index_t inner = 1, outer = 1;
    for (int a = 0; a < e.rank; ++a) (a < how.axis ? outer : inner) *= a == how.axis ? 1 : e[a];
    const index_t blocks = how.block_size > 0 ? divide_up(e[how.axis], how.block_size) : e[how.axis];
    const auto scale_of = [&](index_t i) {
      const index_t on = i / inner % e[how.axis];
      if (how.block_size == 0) return on;
      return (i / inner / e[how.axis] * blocks + on / how.block_size) * inner + i % inner;
    };
    const index_t entries = how.block_size > 0 ? outer * blocks * inner : blocks;
    floats x(static_cast<std::size_t>(count)), scales(static_cast<std::size_t>(entries)), y(x), z(x);
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] = i % 29 == 7 ? quiet_nan : i % 31 == 5 ? -infinity : static_cast<float>(static_cast<int>(i * 37 % 41) - 20);
    for (std::size_t i = 0; i < scales.size(); ++i) scales[i] = 1.f + .25f * static_cast<float>(i % 9);
    bytes zeros(static_cast<std::size_t>(S::has_zero_point ? onnx::unit_count<code>(entries) : 0)),
        codes(static_cast<std::size_t>(onnx::unit_count<code>(count))), want = codes;
    for (index_t i = 0; i < entries && S::has_zero_point; ++i)
      onnx::detail::store<code>(zeros.data(), i, static_cast<std::uint32_t>(i * 5) & low_bits(code::bits));
    const auto zero_of = [&](index_t i) {
      if (!S::has_zero_point) return std::int32_t{0};
      return static_cast<std::int32_t>(decode<code>(onnx::detail::load<code>(zeros.data(), scale_of(i))));
    };
    const auto t = onnx::quantize_linear<S>(source(x.data(), e), scales, zeros, how);
    onnx::to_packed(t, codes);
    onnx::dequantize_linear(t, y);
    onnx::dequantize_linear<S>(codes, scales, zeros, e, how, z);
    for (index_t i = 0; i < count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const element_scale s{scales[static_cast<std::size_t>(scale_of(i))]};
      const std::uint32_t c = quantize_element<S>(x[at], s, zero_of(i));
      onnx::detail::store<code>(want.data(), i, c);
      const float value = dequantize_element<S>(c, s, zero_of(i));
      if (bits_of(y[at]) != bits_of(value) || bits_of(z[at]) != bits_of(value))
        FAIL("element ", i, " of ", std::string(name<S>), ", axis ", how.axis, ": ", y[at], " and ", z[at], ", not ",
             value);
    }
    CHECK(codes == want);
  };
  const auto every_axis = [&](auto scheme, const auto& e) {
    for (int axis = 0; axis < e.rank; ++axis)
      for (const index_t block : {0, 1, 2, 3}) check(scheme, e, {.axis = axis, .block_size = block});
  };
  for (const index_t n : {1, 2, 3, 4, 5, 7, 9, 31, 33, 97}) {
    every_axis(std::type_identity<linear<int4>>{}, extents(3, 5, 3, n));
    every_axis(std::type_identity<linear<uint4>>{}, extents(2, 70, n));
    every_axis(std::type_identity<linear<int2>>{}, extents(2, 5, 7, n));
    every_axis(std::type_identity<linear<uint2>>{}, extents(3, 2, n));
    every_axis(std::type_identity<linear<e2m1>>{}, extents(2, 3, 3, n));
  }
}

TEST_CASE("onnx: DequantizeLinear from memory and from a tensor, zero points packed too, to any float type") {
  const bytes codes = {0x21, 0x43, 0x65, 0x87, 0x09}, zeros = {0xF1, 0x02};  // 1, -1, 2
  const floats scales = {1.f, 2.f, .5f};
  const floats expected = {0.f, 6.f, .5f, 3.f, 12.f, 2.f, 6.f, -14.f, -4.5f};
  floats y(9);
  onnx::dequantize_linear<linear<int4>>(codes, scales, zeros, extents(3, 3), {.axis = -1}, y);
  CHECK(y == expected);
  halves half(9), brain(9);
  const auto t = onnx::from_arrays<linear<int4>>(codes, scales, zeros, extents(3, 3), {.axis = 1});
  onnx::dequantize_linear<f16>(t, half);
  onnx::dequantize_linear<bf16>(t.view(), brain);
  for (std::size_t i = 0; i < 9; ++i) {
    CHECK(decode<f16>(half[i]) == expected[i]);
    CHECK(decode<bf16>(brain[i]) == expected[i]);
  }
  // Even rows are read where they lie.
  const bytes even = {0x21, 0xF3}, zero = {0x0E};
  floats z(4);
  onnx::dequantize_linear<linear<int4>>(even, floats{2.f}, zero, extents(2, 2), {}, z);
  CHECK(z == floats{6.f, 8.f, 10.f, 2.f});
  // The type of the scale where none is named; overflow is infinity; scales may be anything.
  const std::vector<std::int8_t> c = {127, -128, 1};
  const halves scale = {0x6800}, inf = {0x7C00};  // 2048
  halves h(3);
  onnx::dequantize_linear<linear<int8, f16>>(c, scale, {}, extents(3), {}, h);
  CHECK(h == halves{0x7C00, 0xFC00, 0x6800});
  onnx::dequantize_linear<linear<int8, f16>>(c, inf, {}, extents(3), {}, h);
  CHECK(h == halves{0x7C00, 0xFC00, 0x7C00});
  const std::vector<std::int32_t> wide = {16777217, -3};
  floats w(2);
  onnx::dequantize_linear<linear<int32>>(wide, floats{-.5f}, {}, extents(2), {}, w);
  CHECK(w == floats{-8388608.f, 1.5f});
}

TEST_CASE("onnx: dequantize to 16 bits rounds every value as the codec does, at every length") {
  std::vector<std::uint16_t> codes(83);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint16_t>(i * 7919);
  const floats scale = {0.0123f};
  for (index_t n : {1, 15, 16, 17, 31, 33, 64, 83}) {
    const std::span<const std::uint16_t> part(codes.data(), static_cast<std::size_t>(n));
    halves f(part.size()), b(part.size());
    onnx::dequantize_linear<linear<uint16>, f16>(part, scale, {}, extents(n), {}, f);
    onnx::dequantize_linear<linear<uint16>, bf16>(part, scale, {}, extents(n), {}, b);
    for (std::size_t i = 0; i < part.size(); ++i) {
      const float value = static_cast<float>(codes[i]) * 0.0123f;
      CHECK(f[i] == encode<f16, to_special>(value));
      CHECK(b[i] == encode<bf16, to_special>(value));
    }
  }
}

TEST_CASE("onnx: DynamicQuantizeLinear; a tensor of zeros has scale 1, or 1 / 255 as in the reference") {
  const floats x = {0, 2, -3, -2.5f, 1.34f, .5f}, none = {0, -0.f};
  const auto t = onnx::dynamic_quantize_linear(source(x.data(), extents(6)));
  CHECK(bits_of(t.scales()[0]) == 0x3CA0A0A1u);
  CHECK(int{t.zero_points()[0]} == 153);
  CHECK(ints(t.codes()) == std::vector<int>{153, 255, 0, 26, 221, 179});
  CHECK(onnx::dynamic_quantize_linear(source(none.data(), extents(2))).scales()[0] == 1.f);
  const auto r = onnx::dynamic_quantize_linear<onnx::dynamic_linear_reference>(source(none.data(), extents(2)));
  CHECK(r.scales()[0] == 1.f / 255.f);
  CHECK(ints(r.codes()) == std::vector<int>{0, 0});
  const auto same = onnx::dynamic_quantize_linear<onnx::dynamic_linear_reference>(source(x.data(), extents(6)));
  CHECK(ints(same.codes()) == ints(t.codes()));
}

TEST_CASE("onnx: what cannot be is refused with a sentence, and nothing is written") {
  const floats x(6, 1.f), one = {1.f}, two = {1.f, 1.f}, three = {1, 1, 1}, bad = {1.f, 0.f, 1.f};
  const bytes zeros = {0, 0};
  const auto in = source(x.data(), extents(2, 3));
  const auto refused = [&](const floats& scales, const onnx::attributes& how, const bytes& zero_points = {}) {
    return sentence([&] { onnx::quantize_linear<linear<uint8>>(in, scales, zero_points, how); });
  };
  CHECK(refused(two, {}) ==
        "qtensor: 2 scales are given; axis 1 of extent 3 with block_size 0 needs 3, or one for the whole tensor.");
  CHECK(refused(two, {.axis = 1, .block_size = 2}) ==
        "qtensor: 2 scales are given; axis 1 of extent 3 with block_size 2 needs 4.");
  CHECK(refused(three, {.axis = 2}) == "qtensor: axis is 2 but the tensor has rank 2; it goes from -2 to 1.");
  CHECK(refused(three, {.axis = -3}) == "qtensor: axis is -3 but the tensor has rank 2; it goes from -2 to 1.");
  CHECK(refused(three, {.axis = 1, .block_size = -1}) ==
        "qtensor: block_size is -1; it is 0 (no blocks) or at least 1.");
  CHECK(refused(bad, {}) == "qtensor: scale 1 is 0; a scale must be finite and positive.");
  CHECK(refused({infinity}, {}) == "qtensor: scale 0 is inf; a scale must be finite and positive.");
  CHECK(refused({}, {}) ==
        "qtensor: 0 scales are given; axis 1 of extent 3 with block_size 0 needs 3, or one for the whole tensor.");
  CHECK(refused(one, {}, zeros) == "qtensor: 2 units of zero points are given; 1 elements of uint8 take 1.");
  CHECK(sentence([&] { onnx::quantize_linear<linear<e4m3>>(in, one, bytes{0x38}); }) ==
        "qtensor: zero point 0 is 1; that of e4m3 codes must be 0.");
  CHECK(sentence([&] { onnx::quantize_linear<linear<int8, e8m0>>(in, bytes{0xFF}); }) ==
        "qtensor: scale 0 is nan; a scale must be finite and positive.");

  const bytes codes = {1, 2, 3};
  floats y(3, 9.f);
  CHECK(sentence([&] { onnx::dequantize_linear<linear<uint8>>(codes, two, {}, extents(3), {.axis = 0}, y); }) ==
        "qtensor: 2 scales are given; axis 0 of extent 3 with block_size 0 needs 3, or one for the whole tensor.");
  CHECK(sentence([&] { onnx::dequantize_linear<linear<uint8>>(codes, one, {}, extents(2), {}, y); }) ==
        "qtensor: 3 units of elements of y are given; 2 elements of f32 take 2.");
  CHECK(sentence([&] { onnx::dequantize_linear<linear<int4>>(codes, one, {}, extents(3), {}, y); }) ==
        "qtensor: 3 units of codes are given; 3 elements of int4 take 2.");
  CHECK(y == floats(3, 9.f));
}

TEST_CASE("onnx: tensors without elements") {
  const floats x, one = {1.f};
  const auto t = onnx::quantize_linear<linear<int4>>(source(x.data(), extents(0, 3)), one);
  CHECK(t.size() == 0);
  bytes flat;
  onnx::to_packed(t, flat);
  floats y;
  onnx::dequantize_linear(t, y);
  CHECK(onnx::from_arrays<linear<int4>>(flat, one, {}, extents(3, 0)).size() == 0);
  const floats three = {1.f, 1.f, 1.f};
  CHECK(onnx::quantize_linear<linear<uint8>>(source(x.data(), extents(3, 0)), three, {}, {.axis = 0}).size() == 0);
  const std::vector<std::int32_t> none;
  CHECK(onnx::quantize_linear<linear<int8>>(none.data(), extents(3, 0), one).size() == 0);
  const auto rows_of = [&](index_t length) {
    return sentence([&] { onnx::dequantize_linear<linear<int4>>(flat, one, {}, extents(0, length), {}, y); });
  };
  CHECK(rows_of(index_t{1} << 60) == "nothing was thrown");
  CHECK(rows_of(index_t{1} << 62) == "qtensor: a size of 4611686018427387904 times 4 does not fit 63 bits.");
}
