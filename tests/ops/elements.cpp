// Mirrors include/qtensor/ops/elements.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include "ops/reduce_check.hpp"

using namespace reduce_check;

namespace {

/// Element (i, k), read along both axes; they must agree.
template <class X>
auto element_at(const X& x, index_t i, index_t k) {
  const auto e = elements(x);
  const auto a = e.line({i, 0}, 1)(k), b = e.line({0, k}, 0)(i);
  CHECK(a == b);
  return a;
}

}  // namespace

TEST_CASE("elements: quantized tensors and views of either order, packed and per channel") {
  std::vector<float> x(15);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(static_cast<int>(i) - 7);
  const auto s = source(x.data(), extents(3, 5));
  const auto check = [&](const auto& t) {
    for (index_t i = 0; i < 3; ++i)
      for (index_t k = 0; k < 5; ++k) CHECK(element_at(t, i, k).real() == x[static_cast<std::size_t>(i * 5 + k)]);
  };
  const auto rows = quantize<i8>(s, .5f, 3);
  check(rows);
  check(rows.view());
  check(quantize<i8, col_major>(s, .5f, 3));
  check(quantize<scheme<int4, per_tensor, static_only>>(s, 1.f));
  check(quantize<scheme<int8, per_channel<1>, static_only>>(s, std::vector<float>{1.f, .5f, .25f, 1.f, .5f}));
  CHECK(elements(rows).contiguous_axis() == 1);
  const auto columns = quantize<i8, col_major>(s, .5f, 3);
  CHECK(elements(columns).contiguous_axis() == 0);
  CHECK(elements(rows).type() == requantize_to<i8>(.5f, 3));
  CHECK(elements(rows.view().slice<0>(1, 2)).line({1, 4}, 0)(0).real() == 7.f);
}

TEST_CASE("elements: memory with strides, halves, any type, functions of the index, conversions") {
  const std::vector<float> x = {1, 2, 3, 4, 5, 6};
  CHECK(element_at(source(x.data(), extents(2, 2), {3, 2}), 1, 1) == 6.f);
  CHECK(elements(source(x.data(), extents(3, 2), {1, 3})).contiguous_axis() == 0);
  const std::vector<std::uint16_t> halves = {0x3c00, 0x4000};
  CHECK(static_cast<float>(element_at(source<f16>(halves.data(), extents(1, 2)), 0, 1)) == 2.f);
  const bool flags[] = {true, false};
  CHECK(element_at(values(flags, extents(2, 1)), 0, 0));
  CHECK(element_at(generated(extents(4, 5), [](const auto& at) { return at[0] * 10 + at[1]; }), 3, 4) == 34);
  const auto doubled = converted(source(x.data(), extents(2, 3)), [](float v) { return 2.0 * v; });
  CHECK(element_at(doubled, 1, 2) == 12.0);
}

TEST_CASE("elements: dense tensors own what they hold, booleans too") {
  dense<bool, 2> d({2, 3});
  d[{1, 2}] = true;
  CHECK(d.size() == 6);
  CHECK(d(1, 2));
  CHECK(!d(0, 0));
  CHECK(d.data()[5]);
  CHECK(element_at(d, 1, 2));
  const dense<bool, 2> copy = d;
  d[{1, 2}] = false;
  CHECK(copy(1, 2));
  CHECK(dense<float, 1>({0}).size() == 0);
  CHECK(sentence([] { dense<float, 1>({-1}); }).find("an extent is at least 0") != std::string::npos);
}

TEST_CASE("elements: number_like makes a number of a tensor's type") {
  const auto x = codes_in<u8>(extents(2), .5f, 10, {0, 255});
  CHECK(number_like(x, 50.f) == requantize_to<u8>(.5f, 10).of_code(110));
  const std::vector<float> f = {1.f};
  CHECK(number_like(source(f.data(), extents(1)), 2) == 2.f);
}
