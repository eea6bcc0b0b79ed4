// Mirrors include/qtensor/policy/arithmetic.hpp: the examples beside the policies, and the vectors of NUMERICS 5.1.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <qtensor/policy/arithmetic.hpp>
#include <qtensor/reference/quantize.hpp>
#include <qtensor/scheme/schemes.hpp>
#include <string>

using namespace qtensor;

namespace {

template <class S>
int code(float x, float scale, std::int64_t zero = 0) {
  return static_cast<int>(S::code_format::decode(quantize_element<S>(x, {scale}, zero)));
}
using s8 = scheme<int8, per_tensor, zero_point<int8>>;
using u8 = uint8_per_tensor;
template <class S>
using before = with<S, zp_before_round>;

}  // namespace

TEST_CASE("division: 16.5 / 2.2 is 8 by division, 7 by the reciprocal") {
  CHECK(code<int8_per_tensor>(16.5f, 2.2f) == 8);
  CHECK(code<with<int8_per_tensor, exact_division>>(16.5f, 2.2f) == 8);
  CHECK(code<with<int8_per_tensor, reciprocal>>(16.5f, 2.2f) == 7);
}

TEST_CASE("zero point order: before rounding (B) and after (A), the vectors of NUMERICS 5.1") {
  struct row {
    float x, scale;
    int zero, b, a;
  };
  for (const row& r : {row{.5f, 1, 1, 2, 1}, row{1.5f, 1, 1, 2, 3}, row{2.5f, 1, 0, 2, 2}, row{-.5f, 1, 1, 0, 1},
                       row{-.5f, 1, 0, 0, 0}, row{63.75f, .5f, -1, 126, 127}, row{126.5f, 1, 1, 127, 127},
                       row{-128.5f, 1, 0, -128, -128}, row{300, 1, 0, 127, 127}}) {
    INFO("int8 x=", r.x, " scale=", r.scale, " zero point=", r.zero);
    CHECK(code<before<s8>>(r.x, r.scale, r.zero) == r.b);
    CHECK(code<s8>(r.x, r.scale, r.zero) == r.a);
  }
  for (const row& r :
       {row{.25f, .5f, 3, 4, 3}, row{.75f, .5f, 3, 4, 5}, row{127.5f, 1, 1, 128, 129}, row{-50, .5f, 128, 28, 28}}) {
    INFO("uint8 x=", r.x, " scale=", r.scale, " zero point=", r.zero);
    CHECK(code<before<u8>>(r.x, r.scale, r.zero) == r.b);
    CHECK(code<u8>(r.x, r.scale, r.zero) == r.a);
  }
}

TEST_CASE("divide_in: the quotient is rounded to that type first") {
  using wide = scheme<int16, per_tensor, static_only>;
  CHECK(code<with<wide, divide_in<f16>>>(4097.f, 1.f) == 4096);  // 4097 is a tie of f16
  CHECK(code<wide>(4097.f, 1.f) == 4097);
  CHECK(code<with<wide, divide_in<bf16>>>(257.f, 1.f) == 256);
  CHECK(std::string(std::string_view(divide_in<f16>::name)) == "divide_in<f16>");
}

TEST_CASE("code scale: codes see the scale as stored, or as it was before it was stored") {
  const auto codes = []<class S>(std::type_identity<S>) {
    tensor<S, extents<dynamic>> t(extents<dynamic>(2));
    reference::quantize([](const auto& i) { return i[0] == 0 ? 1000.f : 3.94f; }, t.span());
    return std::pair<float, int>(t.scale(0), static_cast<int>(t.code(1)));
  };
  using stored_form = scheme<int16, per_tensor, scale_as<e4m3>>;
  const auto rounded_scale = codes(std::type_identity<stored_form>{});
  const auto exact_scale = codes(std::type_identity<with<stored_form, unrounded_scale>>{});
  CHECK(rounded_scale.first == exact_scale.first);  // what is stored is the same
  CHECK(rounded_scale.first == 0.03125f);           // 1000 / 32767 = .030519 in e4m3
  CHECK(rounded_scale.second == 126);               // 3.94 / .03125 = 126.08
  CHECK(exact_scale.second == 129);                 // 3.94 / .030519 = 129.10
}
