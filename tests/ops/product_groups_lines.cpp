// Mirrors include/qtensor/ops/product_groups.hpp: few rows, and weights that are read in the lines where they lie.
// SPDX-License-Identifier: BSD-3-Clause
#include "product_groups_check.hpp"
#include "threads.hpp"

using namespace qtensor;
using check::random_weights;

namespace {

template <class A, class V>
using engine_of = ops::group_engine<decltype(ops::panels_of<A>(check::outputs_by_rows(std::declval<V>())))>;

/// Whether products of m rows read a view in lines.
template <class A, class V>
bool reads_lines(const V& w, index_t m, bool rows_have_zeros = false) {
  const auto layout = ops::layout_of<A>(check::outputs_by_rows(w));
  const auto form = engine_of<A, V>::form(layout, std::max(std::min(layout.group, layout.depth), index_t{1}),
                                          activation_scales::per_row);
  return engine_of<A, V>::reads_lines(form, m, rows_have_zeros);
}

/// The numbers of a product of a view are those of what is packed of it, as tiles and in memory.
template <class A, class V, class By = serial>
void compare_to_packed(const V& w, index_t m, const By& by = {}) {
  const index_t n = w.rows(), k = w.cols();
  CAPTURE(n);
  CAPTURE(k);
  CAPTURE(m);
  const auto packed = pack<A>(w);
  const auto lines = check::outputs_by_rows(w);
  const auto x = check::numbers(m * k, static_cast<unsigned>(m + 31 * n + 1009 * k), false);
  const matrix_ref<const float> rows{x.data(), m, k, k, 1};
  for (const auto scales : {activation_scales::per_row, activation_scales::per_group}) {
    const check::kept want{m, n}, found{m, n};
    ops::multiply_groups<A>(packed, rows, scales, want, serial{});
    ops::multiply_groups<A>(lines, rows, scales, found, by);
    found.require_equal(want.y);
    std::vector<float> y(static_cast<std::size_t>(m * (n + 3)), 77.f);
    ops::multiply_groups<A>(lines, rows, scales, ops::store_floats<A>{{y.data(), m, n, n + 3, 1}}, by);
    for (index_t r = 0; r < m; ++r)
      for (index_t c = 0; c < n + 3; ++c) {
        const float expected = c < n ? want.y[static_cast<std::size_t>(r * n + c)] : 77.f;
        if (!check::same_or_nan(y[static_cast<std::size_t>(r * (n + 3) + c)], expected)) FAIL("(", r, ", ", c, ")");
      }
  }
  for (const bool zeros : {false, true}) {
    const auto compare = [&](const auto& codes) {
      const check::kept want{m, n}, found{m, n};
      const auto v = codes.view();
      ops::multiply_groups<A>(packed, check::outputs_by_rows(v), want, serial{});
      ops::multiply_groups<A>(lines, check::outputs_by_rows(v), found, by);
      found.require_equal(want.y);
    };
    if (zeros)
      compare(random_weights<uint8_per_channel<0>>(m, k, false));
    else
      compare(random_weights<int8_per_channel<0>>(m, k, false));
  }
}

/// All sizes around a step and a panel, of groups that lines take: at most `step` elements of a line meet a row at
/// once, and so many rows read them where bytes meet bytes.
template <class S, class... G>
void check_lines(index_t step, index_t rows, const G&... granularity) {
  check::on_every_arch([&](auto arch) {
    using A = decltype(arch);
    constexpr auto quads = ops::group_reading<S, A>::quads;
    constexpr bool widens = quads == simd::quads_of::bytes && !simd::nibble_dot<A>::takes_bytes;
    const index_t most_rows = widens ? 1 : rows;
    for (const index_t k : {step / 2, step, 3 * step, 3 * step - 2, 5 * step, 5 * step + 8})
      for (const index_t n : {1, 15, 16, 17, 33, 70}) {
        const auto w = random_weights<S>(n, k, n == 33, granularity...);
        const bool whole = k % simd::line_step<A, quads> == 0;
        REQUIRE(reads_lines<A>(w.view(), most_rows) == (simd::takes_group_lines<A> && whole));
        REQUIRE(!reads_lines<A>(w.view(), most_rows + 1));
        REQUIRE(!reads_lines<A>(w.view(), 1, true));
        for (index_t m = 1; m <= most_rows + 1; ++m) compare_to_packed<A>(w.view(), m);
      }
  });
}

}  // namespace

TEST_CASE("products over groups: lines of nibbles, groups shorter than a step of lines and longer") {
  check_lines<int4_group<32>>(128, 2);
  check_lines<int4_group<64>>(128, 2);
  check_lines<int4_group<256>>(128, 2);
  check_lines<scheme<int4, group<16>>>(128, 1);
  check_lines<scheme<int4, group<dynamic>>>(128, 2, group<dynamic>(32));
  check_lines<scheme<int4, group<dynamic>>>(128, 2, group<dynamic>(128));
}
TEST_CASE("products over groups: lines of nibbles with zero points, with offsets, by tables, with a scale of all") {
  check_lines<scheme<uint4, group<64>, zero_point<uint4>, scale_as<bf16>>>(128, 2);
  check_lines<scheme<uint4, group<128>, zero_point<uint4>>>(128, 2);
  check_lines<scheme<uint4, group<32>, offset<f32>, static_only>>(128, 2);
  check_lines<scheme<uint4, group<128>, offset<f16>, scale_as<f16>, static_only>>(128, 2);
  check_lines<mxfp4>(128, 2);
  check_lines<nvfp4>(128, 1);
  check_lines<with<nvfp4, tensor_scale<f32>>>(128, 1);
}
TEST_CASE("products over groups: lines of bytes") {
  check_lines<int8_group<64>>(64, 2);
  check_lines<int8_group<32>>(64, 2);
  check_lines<int8_group<128>>(64, 2);
  check_lines<scheme<uint8, group<64>, zero_point<uint8>>>(64, 2);
  check_lines<scheme<mxint8_code, group<32>, scale_as<bf16>>>(64, 2);
}
TEST_CASE("products over groups: lines of one group") {
  check_lines<scheme<int4, per_channel<0>>>(128, 2);
  check_lines<scheme<uint4, per_tensor, zero_point<uint4>>>(128, 2);
  check_lines<scheme<int8, per_channel<0>>>(64, 2);
}
TEST_CASE("products over groups: parts of matrices, whose lines have gaps, and threads") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    const auto w = random_weights<int4_group<32>>(100, 640, false);
    const auto v = w.view();
    for (const index_t m : {1, 2}) {
      compare_to_packed<A>(v.template slice<0>(7, 50), m);
      const auto columns = v.template slice<1>(64, 256);
      REQUIRE(reads_lines<A>(columns, m) == simd::takes_group_lines<A>);
      compare_to_packed<A>(columns, m);
      compare_to_packed<A>(v.template slice<1>(64, 300), m);
      compare_to_packed<A>(v, m, pool::threads(3));
    }
    const auto by_columns = random_weights<int4_group<32>, col_major>(40, 128, false);
    compare_to_packed<A>(by_columns.view(), 1);
  });
}
TEST_CASE("products over groups: lines from memory, with requests for the next ones") {
  using A = simd::best_arch;
  const auto check_far = [](const auto& w) {
    REQUIRE(!ops::weights_are_near(ops::layout_of<A>(check::outputs_by_rows(w.view()))));
    REQUIRE(reads_lines<A>(w.view(), 1) == simd::takes_group_lines<A>);
    for (const index_t m : {1, 2}) compare_to_packed<A>(w.view(), m);
  };
  check_far(random_weights<int4_group<32>>(1100, 2176, false));
  check_far(random_weights<scheme<int4, per_channel<0>>>(1100, 2176, false));
  check_far(random_weights<int8_group<128>>(1100, 1088, false));
  check_far(random_weights<nvfp4>(1100, 2176, false));
}
