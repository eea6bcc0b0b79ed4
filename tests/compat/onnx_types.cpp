// Mirrors include/qtensor/compat/onnx_types.hpp: ONNX's data types, its packed arrays, Cast (NUMERICS 1.1, 8.2).
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <cstring>
#include <qtensor/compat/onnx_types.hpp>
#include <string>
#include <vector>

#include "core/sentence.hpp"

using namespace qtensor;
namespace onnx = qtensor::compat::onnx;

namespace {

using bytes = std::vector<std::uint8_t>;
using floats = std::vector<float>;

}  // namespace

TEST_CASE("onnx: the table of data types and the formats behind its numbers") {
  static_assert(onnx::number_of<e4m3> == 17 && onnx::number_of<int4> == 22 && onnx::number_of<uint2> == 25);
  static_assert(onnx::data_types.size() == 18);
  static_assert(onnx::data_types[8] == onnx::data_type{17, "FLOAT8E4M3FN", "e4m3", 8});
  for (const onnx::data_type& row : onnx::data_types) {
    int seen = 0;
    onnx::with_format(row.number, [&]<class F>(std::type_identity<F>) {
      CHECK(std::string_view(F::name) == row.format);
      CHECK(onnx::number_of<F> == row.number);
      CHECK(F::bits == row.bits);
      ++seen;
    });
    CHECK(seen == 1);
  }
  CHECK(sentence([] { onnx::with_format(8, [](auto) {}); }) ==
        "qtensor: ONNX data type 8 is not one of those with a format here: 1 to 6, 10, 16 to 26.");
}

TEST_CASE("onnx: units of an array: bytes of packed codes, the last one padded") {
  static_assert(onnx::unit_count<int4>(3) == 2 && onnx::unit_count<uint2>(5) == 2 && onnx::unit_count<e2m1>(0) == 0);
  static_assert(onnx::unit_count<int16>(3) == 3);
}

TEST_CASE("onnx: flat arrays into tensors and back, rows of every length") {
  using nibbles = scheme<int4, per_tensor>;
  using pairs = scheme<int2, per_tensor>;
  for (index_t cols = 0; cols < 140; ++cols) {
    INFO("cols ", cols);
    const auto check = [&]<class S>(std::type_identity<S>) {
      using code = typename S::code_format;
      bytes flat(static_cast<std::size_t>(onnx::unit_count<code>(3 * cols)));
      for (index_t i = 0; i < 3 * cols; ++i)
        onnx::detail::store<code>(flat.data(), i, static_cast<std::uint32_t>(5 * i + 1));
      tensor<S> t(matrix_extents(3, cols));
      onnx::from_packed(flat, t.span());
      for (index_t i = 0; i < 3 * cols; ++i)
        CHECK(t.code(i / cols, i % cols) == (static_cast<std::uint32_t>(5 * i + 1) & low_bits(code::bits)));
      bytes back(flat.size(), 0xFF);
      onnx::to_packed(t, back);
      CHECK(back == flat);
    };
    check(std::type_identity<nibbles>{});
    check(std::type_identity<pairs>{});
  }
  tensor<nibbles> t(matrix_extents(2, 3));
  bytes wrong(4);
  CHECK(sentence([&] { onnx::from_packed(wrong, t.span()); }) ==
        "qtensor: 4 units of codes are given; 6 elements of int4 take 3.");
  CHECK(sentence([&] { onnx::to_packed(t, wrong); }) ==
        "qtensor: 4 units of codes are given; 6 elements of int4 take 3.");
}

TEST_CASE("onnx: Cast between arrays, its defaults and its policies (NUMERICS 1.5 to 1.7, 8.2, 10.5)") {
  static_assert(onnx::cast_code<f32, e4m3>(bits_of(465.f)) == 0x7E);
  static_assert(onnx::cast_code<f32, e4m3, to_special>(bits_of(465.f)) == 0x7F);
  static_assert(onnx::cast_code<f32, f16>(bits_of(65520.f)) == 0x7C00);
  static_assert(onnx::cast_code<e5m2fnuz, f16>(0x7F) == 0x7B00);
  static_assert(onnx::cast_code<f32, e2m1>(infinity_bits) == 7);
  static_assert(onnx::cast_code<f32, e2m1>(0x7FC00000u) == 8);
  static_assert(onnx::cast_code<f32, e2m1>(0xFFC00000u) == 0);
  static_assert(onnx::cast_code<f32, int4>(bits_of(7.5f)) == 7);
  static_assert(onnx::cast_code<f32, int4>(bits_of(-9.f)) == 8);
  static_assert(onnx::cast_code<f32, uint2, toward_zero, onnx::wraps>(bits_of(-1.5f)) == 3);
  static_assert(onnx::cast_code<f32, int4, nearest_away, onnx::wraps>(bits_of(8.5f)) == 9);
  static_assert(onnx::cast_code<int32, int32>(0x01000001u) == 0x01000001u);
  // e8m0, f32 bits -> up, down, nearest
  struct row {
    std::uint32_t bits, up, down, nearest;
  };
  for (const row& r :
       {row{0x3F800000u, 0x7F, 0x7F, 0x7F}, row{0x3FC00000u, 0x80, 0x7F, 0x80}, row{0x3FA00000u, 0x80, 0x7F, 0x7F},
        row{0x00600000u, 0x01, 0x00, 0x01}, row{0x00000000u, 0x00, 0x00, 0x00}, row{0xC0000000u, 0x80, 0x80, 0x80},
        row{0x7F7FFFFFu, 0xFE, 0xFE, 0xFE}, row{0x7F800000u, 0xFF, 0xFF, 0xFF}}) {
    INFO("bits ", r.bits);
    CHECK(onnx::cast_code<f32, e8m0>(r.bits) == r.up);
    CHECK(onnx::cast_code<f32, e8m0, onnx::round_down>(r.bits) == r.down);
    CHECK(onnx::cast_code<f32, e8m0, onnx::round_nearest>(r.bits) == r.nearest);
  }
  CHECK(onnx::cast_code<f32, e8m0, to_special>(0x7F7FFFFFu) == 0xFF);

  const floats x = {1.f, -2.f, 3.4f};
  bytes packed(2, 0xFF);
  onnx::cast<f32, int4>(x, 3, packed);
  CHECK(packed == bytes{0xE1, 0x03});
  floats y(3);
  onnx::cast<int4, f32>(packed, 3, y);
  CHECK(y == floats{1.f, -2.f, 3.f});
}

namespace {

/// Casts of many lengths from every code of a format, or from numbers around every place, are those of each code.
template <format From, format To, policy... P>
void check_cast() {
  std::vector<std::uint32_t> codes;
  if constexpr (From::bits <= 16)
    for (std::uint32_t c = 0; c < 1u << From::bits; ++c) codes.push_back(c);
  else
    for (std::uint32_t i = 0; i < 1u << 16; ++i) codes.push_back((i << 16) | (i % 5 * 0x4000u + i % 3 - 1u) % 0x10000u);
  for (const std::size_t n : {codes.size(), std::size_t{1}, std::size_t{2}, std::size_t{7}, std::size_t{9},
                              std::size_t{16}, std::size_t{31}, std::size_t{65}}) {
    const auto count = static_cast<index_t>(n);
    std::vector<onnx::unit<From>> x(static_cast<std::size_t>(onnx::unit_count<From>(count)));
    std::vector<onnx::unit<To>> y(static_cast<std::size_t>(onnx::unit_count<To>(count))), want(y);
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint32_t code = codes[(codes.size() - n + i * 7) % codes.size()];
      onnx::detail::store<From>(x.data(), static_cast<index_t>(i), code);
      onnx::detail::store<To>(want.data(), static_cast<index_t>(i), onnx::cast_code<From, To, P...>(code));
    }
    std::memset(y.data(), 0xA5, y.size() * sizeof(y[0]));
    onnx::cast<From, To, P...>(x, count, y);
    for (std::size_t i = 0; i < n; ++i)
      if (const auto at = static_cast<index_t>(i);
          onnx::detail::load<To>(y.data(), at) != onnx::detail::load<To>(want.data(), at))
        FAIL(std::string_view(From::name), " to ", std::string_view(To::name), ", element ", i, " of ", n, ": ",
             onnx::detail::load<From>(x.data(), at), " is ", onnx::detail::load<To>(y.data(), at), ", not ",
             onnx::detail::load<To>(want.data(), at));
    if (is_packed<To>) CHECK(std::memcmp(&y.back(), &want.back(), sizeof want.back()) == 0);
  }
}
template <format From, format... To>
void check_casts() {
  (check_cast<From, To>(), ...);
}

}  // namespace

TEST_CASE("onnx: Cast of arrays is that of each code, special ones too") {
  check_casts<f32, f16, bf16, e4m3, e4m3fnuz, e5m2, e5m2fnuz, e2m1, int8, uint8, int4, uint4, int2, uint2, e8m0>();
  check_casts<f16, f32, bf16, e4m3, e4m3fnuz, e5m2, e5m2fnuz, e2m1, int8, uint4, int2, e8m0, int16>();
  check_casts<bf16, f32, f16, e4m3, e4m3fnuz, e5m2, e5m2fnuz, e2m1, int8, uint4, int2>();
  check_casts<e4m3, f32, f16, bf16, e5m2, e2m1, int8>();
  check_casts<e5m2, f32, f16, bf16, e4m3, e5m2fnuz, int4>();
  check_casts<e4m3fnuz, f32, f16, bf16, e4m3>();
  check_casts<e5m2fnuz, f32, f16, bf16, e5m2>();
  check_casts<e2m1, f32, f16, e4m3, int4>();
  check_casts<int8, f32, f16, e4m3, uint8, int4, int32>();
  check_casts<int4, f32, bf16, uint2, int8>();
  check_casts<uint2, f32, int4, e8m0>();
  check_casts<e8m0, f32, e4m3>();
  check_cast<f32, e4m3, to_special>();
  check_cast<f16, e5m2, to_special>();
  check_cast<f32, e4m3, toward_zero>();
  check_cast<f32, f16, saturate>();
  check_cast<f32, int4, toward_zero, onnx::wraps>();
  check_cast<bf16, uint8, nearest_away>();
}

TEST_CASE("onnx: casts of wrong sizes are refused, and nothing is written") {
  const floats x(6, 1.f);
  bytes out(1, 7);
  CHECK(sentence([&] { onnx::cast<f32, int4>(x, 6, out); }) ==
        "qtensor: 1 units of y are given; 6 elements of int4 take 3.");
  CHECK(sentence([&] { onnx::cast<f32, int4>(x, -1, out); }) ==
        "qtensor: cast is given -1 elements; their number is at least 0.");
  CHECK(out == bytes{7});
}
