// Mirrors include/qtensor/ops/fake_quantize.hpp: dequantize(quantize(x)), whatever the shape, order and granularity.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/fake_quantize.hpp>

#include "check.hpp"
#include "core/sentence.hpp"
#include "ops/threads.hpp"

namespace {

using namespace qtensor;

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) { return bits_of(x) == bits_of(y); });
}

/// What the promise says, in two steps through a tensor of everything: the reference's where nothing is given.
template <class S, class Order = row_major, class Extents, class... How>
std::vector<float> in_two_steps(const std::vector<float>& x, const Extents& e, const How&... how) {
  const auto t = [&] {
    if constexpr (sizeof...(How) == 0)
      return check::expected<S, Order>(x, e);
    else
      return quantize<S, Order>(source(x.data(), e), how...);
  }();
  std::vector<float> out;
  reference::for_each_index(typename Extents::array{}, e.to_array(),
                            [&](const auto& index) { out.push_back(reference::value(t.view(), index)); });
  return out;
}

template <class S, class Order = row_major, class Extents, class... How>
void check_same(const Extents& e, const How&... how) {
  const auto x = check::numbers(e.size(), 7);
  INFO(name<S>.c_str());
  const std::vector<float> expected = in_two_steps<S, Order>(x, e, how...);
  CHECK(same_bits(fake_quantize<S, Order>(source(x.data(), e), how...), expected));
  CHECK(same_bits(fake_quantize<S, Order>(source(x.data(), e), how..., on(pool::threads(3))), expected));
}

}  // namespace

TEST_CASE("fake_quantize: blocks inside rows, in slabs, in both orders and three ranks") {
  check_same<mxfp4>(extents(700, 70));
  check_same<mxfp4, col_major>(extents(70, 700));
  check_same<mxfp8_e4m3>(extents(5, 33, 130));
  check_same<int8_group<16>>(extents(40000));
}

TEST_CASE("fake_quantize: blocks over several rows or whole axes") {
  check_same<fp8_block<32, 32>>(extents(300, 200));
  check_same<int8_per_tensor>(extents(300, 100));
  check_same<int8_per_channel<0>>(extents(300, 100));
  check_same<along<0, mxfp8_e4m3>>(extents(650, 40));
  check_same<with<nvfp4, tensor_scale<f32>>>(extents(600, 64));
  check::in_full<int8_per_channel<1>, uint4_group<32>, with<int8_group<32>, stochastic<3>>>(
      []<class S>() { check_same<S>(extents(600, 64)); });
}

TEST_CASE("fake_quantize: sizes known at run time, given scales, given zero points") {
  check_same<with<int8_per_tensor, group<dynamic>>>(extents(300, 96), group<dynamic>(24));
  check_same<with<int8_per_tensor, static_only>>(extents(300, 96), 0.25f);
  check_same<with<nvfp4, tensor_scale<f32>>>(extents(300, 96), tensor_level{0.25f, 0.25f});
  check_same<with<int8_per_tensor, group<dynamic>>>(extents(3, 96), group<dynamic>(48),
                                                    std::vector<float>{1.f, 2.f, 3.f, 4.f, 5.f, 6.f});
  std::vector<float> scales(300);
  for (std::size_t i = 0; i < scales.size(); ++i) scales[i] = 0.01f * static_cast<float>(i + 1);
  check_same<int8_per_channel<0>>(extents(300, 96), scales);
  const std::vector<int> zeros(300, 7);
  check_same<uint8_per_channel<0>>(extents(300, 96), scales, zeros);
}

TEST_CASE("fake_quantize: in place, with strides") {
  auto x = check::numbers(600 * 64, 9);
  const auto expected = in_two_steps<mxfp8_e4m3>(x, extents(600, 64));
  const matrix_ref<const float> rows{x.data(), 600, 64, 64, 1};
  fake_quantize_into<mxfp8_e4m3>(rows, extents(600, 64), x.data(), {64, 1});
  CHECK(same_bits(x, expected));

  const auto y = check::numbers(600 * 64, 9);
  std::vector<float> turned(y.size());
  fake_quantize_into<mxfp8_e4m3>(matrix_ref<const float>{y.data(), 600, 64, 64, 1}, extents(600, 64), turned.data(),
                                 {1, 600});
  bool same = true;
  for (std::size_t i = 0; i < 600; ++i)
    for (std::size_t j = 0; j < 64; ++j) same = same && bits_of(turned[j * 600 + i]) == bits_of(expected[i * 64 + j]);
  CHECK(same);
}

TEST_CASE("fake_quantize: no elements; wrong sizes and parameters are refused before anything is written") {
  const std::vector<float> none;
  CHECK(fake_quantize<mxfp4>(source(none.data(), extents(0, 3))).empty());
  CHECK(fake_quantize<int8_per_tensor>(source(none.data(), extents(3, 0))).empty());
  std::vector<float> x(6, 1.f), out(6, 9.f);
  const matrix_ref<const float> rows{x.data(), 2, 3, 3, 1};
  CHECK(sentence([&] {
          fake_quantize_into<mxfp4>(rows, extents(3, 3), out.data(), {3, 1});
        }) == "qtensor: fake_quantize is given 2 rows of 3 elements for extents of 3 rows of 3.");
  CHECK(sentence([&] {
          fake_quantize_into<int8_per_tensor>(rows, extents(2, 3), out.data(), {3, 1}, -1.f);
        }) == "qtensor: scale 0 is -1; a scale must be finite and positive.");
  CHECK(out == std::vector<float>(6, 9.f));
}
