// Mirrors include/qtensor/compat/microxcaling.hpp: shared exponents and roundings as float arithmetic has them, against
// its definition with the math library.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <cmath>
#include <qtensor/compat/microxcaling.hpp>
#include <qtensor/ops/quantize.hpp>
#include <vector>

#include "compat/microxcaling_check.hpp"
#include "ops/special_blocks.hpp"
#include "reference/quantize_check.hpp"

using namespace qtensor;
namespace mxc = qtensor::compat::microxcaling;

namespace {

using namespace microxcaling_check;

/// Blocks of 32 by the reference.
template <class S>
std::vector<float> ours(const std::vector<float>& x) {
  tensor<S, extents<dynamic>> t(extents(static_cast<index_t>(x.size())));
  reference::quantize([&](const auto& i) { return x[static_cast<std::size_t>(i[0])]; }, t.span());
  std::vector<float> out;
  for (index_t i = 0; i < t.size(); ++i) out.push_back(reference::value(t.view(), {i}));
  return out;
}

/// Numbers on, just below and just above the steps of every binade, and halves of steps.
std::vector<float> corners() {
  std::vector<float> x;
  for (int k : {0, 1, 2, 3, 4, 7, 8, 15, -1, -2, -6, -14, -16, -100, -125, -127, 127})
    for (float m : {1.f, 1.25f, 1.5f, 1.75f, 0.5f, 0.0625f, 0.03125f, 0.2f})
      for (int step : {-3, -1, 0, 1}) {
        const float v = std::ldexp(m, k);
        x.push_back(float_of(bits_of(v) + static_cast<std::uint32_t>(step)) * (x.size() % 3 == 0 ? -1.f : 1.f));
      }
  return x;
}

template <format Code, class Round>
void check(how round) {
  auto x = oracle::awkward_data(32 * 300, 3);
  for (float v : corners()) {
    x.resize((x.size() + 31) / 32 * 32);
    x.push_back(v);  // the largest of its block, and smaller ones
    for (int i = 1; i < 32; ++i)
      x.push_back(v * std::ldexp(1.f, -i / 3) * (i % 3 == 0 ? 1.f : i % 3 == 1 ? 0.99999994f : 0.7f));
  }
  for (bool flush : {false, true}) {
    const auto mine = flush ? ours<mxc::flushed_mx<Code, Round>>(x) : ours<mxc::mx<Code, Round>>(x);
    for (std::size_t first = 0; first < x.size(); first += 32) {
      const std::vector<float> block(x.begin() + static_cast<std::ptrdiff_t>(first),
                                     x.begin() + static_cast<std::ptrdiff_t>(std::min(first + 32, x.size())));
      const auto theirs = emulated<Code>(block, round, flush);
      for (std::size_t i = 0; i < block.size(); ++i) {
        const float a = mine[first + i], b = theirs[i];
        const bool zeros = a == 0 && b == 0 && !minifloat_format<Code>;  // mxint8 has no -0
        if (std::isnan(a) ? std::isnan(b) : zeros || bits_of(a) == bits_of(b)) continue;
        FAIL_CHECK(Round::name.c_str() << ", flush " << flush << ": element " << i << " of block " << first
                                       << ", x = " << block[i] << ", is " << a << ", not " << b);
      }
    }
  }
  CHECK(x.size() > 10000);
}

template <format Code>
void check_roundings() {
  check<Code, mxc::nearest>(how::nearest);
  check<Code, mxc::even>(how::even);
  check<Code, mxc::floor>(how::floor);
}

template <class S>
std::uint32_t scale_of(float amax) {
  reference::block_statistics seen;
  seen.add<S>(amax);
  return reference::parameters_of<S>(seen).scale_code;
}

}  // namespace

TEST_CASE("elements and scales: as the arithmetic goes, for every format") {
  check_roundings<e4m3>();
  check_roundings<e5m2>();
  check_roundings<e3m2>();
  check_roundings<e2m3>();
  check_roundings<e2m1>();
  check_roundings<mxint8_code>();
}

TEST_CASE("shared exponent: zero blocks, log2f that rounds up, overflow") {
  using fp8 = mxc::mx<e4m3>;
  CHECK(scale_of<fp8>(1.9f) == 119);
  CHECK(scale_of<fp8>(0.f) == 0);
  CHECK(scale_of<fp8>(float_of(bits_of(0x1p-100f) - 1)) == 127 - 108);  // floor(log2f) is -100
  CHECK(scale_of<fp8>(3.4028235e38f) == 127 + 120);
  CHECK(scale_of<fp8>(infinity) == 255);
  using int8 = mxc::mx<mxint8_code>;
  CHECK(scale_of<int8>(0.f) == 1);
  CHECK(scale_of<int8>(3.4028235e38f) == 255);  // 2^128 is no scale
  CHECK(scale_of<int8>(0x1.fp127f) == 254);
}

TEST_CASE("roundings: ties, and the float below a half step") {
  CHECK(encode<e2m1, mxc::nearest>(2.5f) == 5);
  CHECK(encode<e2m1, mxc::even>(2.5f) == 4);
  CHECK(encode<e2m1, mxc::floor>(-2.9f) == 0xC);
  const float below_half = float_of(bits_of(0.25f) - 1);
  CHECK(encode<e2m1, mxc::nearest>(below_half) == 1);
  CHECK(encode<e2m1, mxc::even>(-below_half) == 9);
  CHECK(encode<e2m1, nearest_away>(below_half) == 0);
  CHECK(encode<e2m1, mxc::even>(-0.f) == 0);
  CHECK(encode<e2m1, mxc::even>(-0.1f) == 8);
  CHECK(encode<e4m3, mxc::floor>(float_of(bits_of(8.f) - 1)) ==
        encode<e4m3>(7.f));  // log2f of it is 3: 7 of steps of 1
}

TEST_CASE("mx: groups along any axis, short last ones") {
  using scheme = mxc::mx<e2m1, mxc::even, dynamic, 0>;
  tensor<scheme> t(matrix_extents(5, 2), group<dynamic, 0>(3));
  reference::quantize([](const auto& i) { return i[0] < 3 ? 6.f : 0.5f; }, t.span());
  CHECK(t.view().scale_code({2, 1}) == 127);
  CHECK(t.view().scale_code({3, 1}) == 124);
  CHECK(t.code(4, 0) == 6);
}

TEST_CASE("whole tensors: the same by the operations on tiles") {
  using scheme = mxc::flushed_mx<e4m3, mxc::floor>;
  const auto x = oracle::awkward_data(40 * 96, 11);
  const auto all = source(x.data(), extents(40, 96));
  const auto tiled = quantize<scheme>(all);
  tensor<scheme, extents<dynamic, dynamic>> expected(extents(40, 96));
  reference::quantize([&](const auto& i) { return all.number(i); }, expected.span());
  CHECK(std::vector<int>(tiled.codes().begin(), tiled.codes().end()) ==
        std::vector<int>(expected.codes().begin(), expected.codes().end()));
  CHECK(std::vector<int>(tiled.scales().begin(), tiled.scales().end()) ==
        std::vector<int>(expected.scales().begin(), expected.scales().end()));
}

TEST_CASE("by vectors") {
  special_blocks::check_vectors<mxc::mx<e4m3, mxc::nearest>, mxc::mx<e2m1, mxc::even>, mxc::mx<e5m2, mxc::floor>,
                                mxc::mx<mxint8::code_format, mxc::nearest>, mxc::flushed_mx<e3m2, mxc::floor>>();
}
