// Mirrors include/qtensor/simd/encode_list.hpp: formats that are lists of values, each architecture against the
// reference. SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/simd/encode.hpp>

#include "runs.hpp"

using namespace runs;

namespace {

template <class F, class... P>
using plain = scheme<F, per_tensor, static_only, P...>;

struct list {
  static constexpr int bits = 4;
  static constexpr bool is_integer = false, is_signed = true;
};
struct nf4 : list {
  static constexpr float max = 1.f, min = -1.f;
  static constexpr fixed_string name = "nf4";
  static constexpr float decode(std::uint32_t code) {
    constexpr float values[16] = {-1.f,        -0.6961928f, -0.52507305f, -0.3949175f, -0.28444138f, -0.18477343f,
                                  -0.091050f,  0.f,         0.0795803f,   0.1609302f,  0.2461123f,   0.33791524f,
                                  0.44070983f, 0.562617f,   0.72295684f,  1.f};
    return values[code & 15];
  }
};
struct shuffled : list {  // codes in no order, two of them of one value, two outside the range
  static constexpr float max = 5.f, min = -4.f;
  static constexpr fixed_string name = "shuffled";
  static constexpr float decode(std::uint32_t code) {
    constexpr float values[16] = {3.f, -1.f, 0x1p-149f, 5.f,    0x1p-126f, -4.f,  7.f, 2.f,
                                  0.f, 1.f,  -0x1p-30f, -0.25f, 1.5f,      -10.f, 2.f, 4.f};
    return values[code & 15];
  }
};
struct thirds {  // two bits, no zero, a NaN
  static constexpr int bits = 2;
  static constexpr bool is_integer = false, is_signed = true;
  static constexpr float max = 1.f, min = -1.f / 3;
  static constexpr fixed_string name = "thirds";
  static constexpr float decode(std::uint32_t code) {
    constexpr float values[4] = {-1.f / 3, std::numeric_limits<float>::quiet_NaN(), 1.f, 1.f / 3};
    return values[code & 3];
  }
};
struct up_below_half {  // larger numbers may get lower values
  using slot = qtensor::slot::rounding;
  static constexpr fixed_string name = "up_below_half";
  static constexpr bool up(bool, bool, qtensor::remainder r) { return r == qtensor::remainder::below_half; }
};

/// Values, middles and their neighbours, specials, and floats of every kind.
template <class F>
std::vector<float> numbers(float scale) {
  std::vector<float> x;
  for (int i = 0; i < sorted<F>.count; ++i) {
    oracle::add_around(x, static_cast<double>(sorted<F>.value(i)) * static_cast<double>(scale));
    if (i > 0)
      oracle::add_around(x,
                         0.5 * (static_cast<double>(sorted<F>.value(i)) + static_cast<double>(sorted<F>.value(i - 1))) *
                             static_cast<double>(scale));
  }
  for (int i = 0; i < 3000; ++i) x.push_back(check::hard_float());
  oracle::add_specials(x);
  return x;
}

template <class F, class... P>
void check_list() {
  for (const float scale : {1.f, 0.3f, 0x1p-20f, 777.f}) check_uniform<plain<F, P...>>(numbers<F>(scale), {scale});
}

}  // namespace

TEST_CASE_TEMPLATE("lists of values: middles, neighbours and specials under every rounding", F, nf4, shuffled, thirds) {
  check_list<F>();
  check_list<F, nan_to_zero>();
  check_list<F, nan_to_lowest>();
  check_list<F, toward_negative>();
  check_list<F, toward_positive>();
  check_list<F, reciprocal>();
}

TEST_CASE("lists of values: toward zero and away from it where zero is a value") {
  check_list<nf4, toward_zero>();
  check_list<shuffled, toward_zero>();
  check_list<nf4, nearest_away>();
  check_list<shuffled, nearest_away>();
}

TEST_CASE("lists of values: what depends on a sign, or on an order that is none, is left to the reference") {
  static_assert(simd::vector_encodable<plain<nf4>>);
  static_assert(!simd::vector_encodable<plain<nf4, to_special>>);
  static_assert(!simd::vector_encodable<plain<nf4, nan_to_max>>);
  static_assert(!simd::vector_encodable<plain<nf4, via_f16>>);
  static_assert(!simd::vector_encodable<plain<nf4, up_below_half>>);
  static_assert(!simd::vector_encodable<plain<thirds, toward_zero>>);
  CHECK(std::string_view(simd::kernel_name<simd::op::encode, plain<nf4, to_special>>()) == "reference");
}
