// Mirrors include/qtensor/ops/padded_rows.hpp: short rows that end inside bytes and share their parameters.
// SPDX-License-Identifier: BSD-3-Clause
#include "halves_check.hpp"

using namespace qtensor;
using halves_check::numbers;
using halves_check::with_specials;

namespace {

bool same(float a, float b) { return bits_of(a) == bits_of(b) || (is_nan(a) && is_nan(b)); }

/// The numbers of a view as f32 and bf16, side by side and with gaps, which stay as they are.
template <class View>
void check_numbers(const View& view) {
  const auto check_format = [&]<class F>(std::type_identity<F>, index_t gap) {
    const auto extents = view.extents().to_array();
    auto steps = dense_strides(extents);
    for (auto& step : steps) step *= 1 + gap;
    steps.back() = 1;
    constexpr storage_t<F> untouched{7};
    std::vector<storage_t<F>> out(static_cast<std::size_t>(view.size() * (1 + gap)), untouched);
    dequantize_into<F>(view, out.data(), steps);
    std::size_t written = 0;
    bool ok = true;
    reference::for_each_index({}, extents, [&](const auto& index) {
      index_t at = 0;
      for (std::size_t axis = 0; axis < index.size(); ++axis) at += index[axis] * steps[axis];
      const float value = reference::value(view, index);
      const auto found = out[static_cast<std::size_t>(at)];
      if constexpr (std::is_same_v<F, f32>)
        ok = ok && same(found, value);
      else
        ok = ok && found == encode<F, to_special>(value);
      out[static_cast<std::size_t>(at)] = untouched;
      ++written;
    });
    for (const auto one : out) ok = ok && one == untouched;
    CHECK(written == static_cast<std::size_t>(view.size()));
    CHECK(ok);
  };
  for (const index_t gap : {0, 2}) {
    check_format(std::type_identity<f32>{}, gap);
    check_format(std::type_identity<bf16>{}, gap);
  }
}

template <quantization_scheme S, class Extents>
void check_tensor(const std::vector<float>& x, const Extents& shape) {
  const auto t = quantize<S>(source(x.data(), shape));
  CHECK(check::same_bytes(t, check::expected<S, row_major>(x, shape)));
  check_numbers(t.view());
}

template <quantization_scheme S>
void check_rows() {
  INFO(std::string(name<S>));
  for (const index_t cols : {1, 3, 5, 6, 17, 33, 63, 95, 97, 129})
    for (const index_t rows : {1, 7, 8, 75}) {
      INFO(rows, " x ", cols);
      const matrix_extents shape(rows, cols);
      check_tensor<S>(check::numbers(shape.size(), 6), shape);
      check_tensor<S>(with_specials(shape.size(), 5), shape);
    }
}

}  // namespace

TEST_CASE("rows alike in a tile: one scale, nibbles") { check_rows<scheme<int4, per_tensor>>(); }
TEST_CASE("rows alike in a tile: parameters of columns, zero points") {
  check_rows<scheme<uint4, per_channel<1>, zero_point<uint4>>>();
}
TEST_CASE("rows alike in a tile: blocks of both axes, codes of 6 bits") { check_rows<scheme<e2m3, block<20, 4>>>(); }

TEST_CASE("rows alike in a tile: weights of convolutions") {
  const extents shape(5, 4, 3, 3);
  const std::vector<float> x = check::numbers(shape.size(), 9);
  check_tensor<scheme<int4, per_channel<0>>>(x, shape);
  check_tensor<scheme<int4, per_tensor>>(x, shape);
  check_tensor<uint8_per_channel<3>>(check::numbers(8 * 9 * 10 * 7, 4), extents(8, 9, 10, 7));
}

TEST_CASE("rows alike in a tile: zero points of columns beside one scale") {
  using S = scheme<uint4, per_tensor, zero_point<uint4, per_channel<1>>>;
  const matrix_extents shape(40, 21);
  std::vector<std::int32_t> zeros(21);
  for (std::size_t c = 0; c < zeros.size(); ++c) zeros[c] = static_cast<std::int32_t>(c % 13);
  const std::vector<float> x = check::numbers(shape.size(), 3);
  const auto t = quantize<S>(source(x.data(), shape), .5f, zeros);
  check_numbers(t.view());
}

TEST_CASE("rows alike in a tile: panels from memory") {
  using S = scheme<int4, block<100, 5>>;
  const matrix_extents shape(ops::streaming_floats / 95 + 1, 95);
  const std::vector<float> x = check::numbers(shape.size(), 5);
  const auto want = check::expected<S, row_major>(x, shape);
  CHECK(check::same_bytes(quantize<S>(source(x.data(), shape)), want));
  const auto scales = want.scales();
  CHECK(
      check::same_bytes(quantize<S>(source(x.data(), shape), std::vector<float>(scales.begin(), scales.end())), want));
}

TEST_CASE("rows alike in a tile: 16-bit sources, scales that are given, past the caches") {
  using S = scheme<int4, per_tensor>;
  const matrix_extents shape(75, 33);
  const numbers<bf16> b(with_specials(shape.size(), 8));
  CHECK(check::same_bytes(quantize<S>(source<bf16>(b.data(), shape)), check::expected<S, row_major>(b.floats, shape)));

  const std::vector<float> x = check::numbers(shape.size(), 8);
  tensor<S> want(shape);
  store_scales(want.span(), .25f);
  reference::quantize_static([&](const auto& at) { return x[static_cast<std::size_t>(at[0] * 33 + at[1])]; },
                             want.span());
  CHECK(check::same_bytes(quantize<S>(source(x.data(), shape), .25f), want));

  const matrix_extents large(ops::streaming_floats / 33 + 1, 33);
  const std::vector<float> y = check::numbers(large.size(), 8);
  const auto t = quantize<S>(source(y.data(), large), .25f);
  std::vector<float> back(y.size());
  dequantize_into(t.view(), back.data(), {33, 1});
  bool ok = true;
  for (index_t r = 0; r < large[0]; ++r)
    for (index_t c = 0; c < 33; ++c) {
      const auto i = static_cast<std::size_t>(r * 33 + c);
      const float want_here = std::clamp(std::nearbyint(y[i] * 4.f), -8.f, 7.f) / 4.f;
      ok = ok && back[i] == want_here;
    }
  CHECK(ok);
}
