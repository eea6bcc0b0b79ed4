// Mirrors include/qtensor/ops/quantize.hpp: bf16 and f16 in memory, into tensors, rows and columns.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/parallel.hpp>

#include "halves_check.hpp"
#include "threads.hpp"

using namespace halves_check;

namespace {

// A scheme whose kernel reads floats only.
struct own_code : integer<8, signed> {
  static constexpr fixed_string name = "own_code";
};
using own = scheme<own_code, group<16>>;

}  // namespace

template <simd::usable_arch A>
struct qtensor::simd::kernel<qtensor::simd::op::encode, own, A> {
  static constexpr bool enabled = true;
  static constexpr std::string_view name = "own";
  using unit = code_unit_t<own>;
  static void uniform(const float* x, index_t n, element_scale, std::int32_t, unit* codes) {
    for (index_t i = 0; i < n; ++i) codes[i] = static_cast<unit>(x[i] < 0.f ? -1 : 1);
  }
  static void vector(const float* x, index_t n, const float*, const std::int32_t*, float, unit* codes) {
    uniform(x, n, {1.f}, 0, codes);
  }
  static void grouped(const float* x, index_t n, index_t, const float*, const std::int32_t*, float, unit* codes) {
    uniform(x, n, {1.f}, 0, codes);
  }
};

TEST_CASE("16-bit sources: int8 of a tensor") { check_scheme<int8_per_tensor>(); }
TEST_CASE("16-bit sources: int8 of rows") { check_scheme<int8_per_channel<0>, orders::both>(); }
TEST_CASE("16-bit sources: int8 of columns; uint8 of a tensor, with a zero point") {
  check::in_full<int8_per_channel<1>, uint8_per_tensor>([]<class S>() { check_scheme<S>(); });
}
TEST_CASE("16-bit sources: uint8 of columns, with zero points") { check_scheme<uint8_per_channel<1>, orders::both>(); }
TEST_CASE("16-bit sources: static scales and zero points") {
  const matrix_extents shape(37, 99);
  const numbers<bf16> b(with_specials(shape.size(), 8));
  const numbers<f16> h(with_specials(shape.size(), 9));
  std::vector<float> columns, rows;
  std::vector<int> zeros;
  for (index_t i = 0; i < 99; ++i) columns.push_back(0.01f + 0.003f * static_cast<float>(i)), zeros.push_back(int(i));
  for (index_t i = 0; i < 37; ++i) rows.push_back(0.01f + 0.01f * static_cast<float>(i));
  const auto same = [&]<class S>(std::type_identity<S>, const auto&... how) {
    INFO(std::string(name<S>));
    CHECK(check::same_bytes(quantize<S>(source<bf16>(b.data(), shape), how...),
                            quantize<S>(source(b.floats.data(), shape), how...)));
    CHECK(check::same_bytes(quantize<S>(source<f16>(h.data(), shape), how...),
                            quantize<S>(source(h.floats.data(), shape), how...)));
  };
  same(std::type_identity<int8_per_tensor>{}, 0.0173f);
  same(std::type_identity<int8_per_tensor>{}, 0.25f);
  same(std::type_identity<uint8_per_tensor>{}, 0.0173f, 131);
  same(std::type_identity<scheme<e4m3, per_tensor>>{}, 1.f);
  same(std::type_identity<scheme<e5m2, per_tensor>>{}, 0.3f);
  same(std::type_identity<int8_per_channel<0>>{}, rows);
  same(std::type_identity<int8_per_channel<1>>{}, columns);
  same(std::type_identity<uint8_per_channel<1>>{}, columns, zeros);
}

TEST_CASE("16-bit sources: higher ranks, slices, negative strides") {
  const auto shape = extents(3, 4, 5, 64);
  const numbers<bf16> v(check::numbers(shape.size(), 2));
  CHECK(check::same_bytes(quantize<mxfp4>(source<bf16>(v.data(), shape)),
                          check::expected<mxfp4, row_major>(v.floats, shape)));
  CHECK(check::same_bytes(quantize<int8_per_tensor, col_major>(source<bf16>(v.data(), shape)),
                          check::expected<int8_per_tensor, col_major>(v.floats, shape)));
  const matrix_extents part(6, 33);
  std::vector<float> some, backwards;
  for (index_t r = 0; r < 6; ++r)
    for (index_t c = 0; c < 33; ++c) {
      some.push_back(v.floats[static_cast<std::size_t>(r * 128 + 7 + c)]);
      backwards.push_back(v.floats[static_cast<std::size_t>(r * 128 + 100 - c)]);
    }
  CHECK(check::same_bytes(quantize<mxfp8_e4m3>(source<bf16>(v.data() + 7, part, {128, 1})),
                          check::expected<mxfp8_e4m3, row_major>(some, part)));
  CHECK(check::same_bytes(quantize<mxfp8_e4m3>(source<bf16>(v.data() + 100, part, {128, -1})),
                          check::expected<mxfp8_e4m3, row_major>(backwards, part)));
}

TEST_CASE("16-bit sources: several threads, the same bytes") {
  const matrix_extents shape(67, 1301);
  const numbers<bf16> v(with_specials(shape.size(), 6));
  const auto x = source<bf16>(v.data(), shape);
  const auto pool = on(parallel_for(5, pool::thread_each{}));
  CHECK(check::same_bytes(quantize<int8_per_tensor>(x, pool), quantize<int8_per_tensor>(x)));
  CHECK(check::same_bytes(quantize<int8_per_channel<1>>(x, pool), quantize<int8_per_channel<1>>(x)));
  CHECK(check::same_bytes(quantize<mxfp4>(x, pool), quantize<mxfp4>(x)));
  CHECK(check::same_bytes(quantize<own>(x, pool), quantize<own>(x)));
}

TEST_CASE("16-bit sources: a user's kernel that reads floats gets floats") {
  static_assert(simd::reads_elements<own, simd::from_f32> && !simd::reads_elements<own, simd::from_bf16>);
  static_assert(simd::reads_elements<mxfp4, simd::from_bf16> && simd::reads_elements<mxfp4, simd::from_f16>);
  const matrix_extents shape(5, 48);
  const numbers<f16> v(check::numbers(shape.size(), 1, false));
  const auto t = quantize<own>(source<f16>(v.data(), shape));
  bool same = true;
  for (index_t i = 0; i < shape.size(); ++i)
    same = same && t.codes()[static_cast<std::size_t>(i)] == (v.floats[static_cast<std::size_t>(i)] < 0.f ? 0xff : 1);
  CHECK(same);
}
