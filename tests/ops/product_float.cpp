// Mirrors include/qtensor/ops/product_float.hpp. Formats: product_float_formats.cpp.
// SPDX-License-Identifier: BSD-3-Clause

#include "product_float_check.hpp"
#include "threads.hpp"

using namespace product_check;
using simd::best_arch;

namespace {

template <class A, class W, class X, class Operands = exact_operands, class By = serial>
matrix product(const W& w, const X& x, const By& by = {}) {
  return collected<A>(x.rows(), ops::panels_of<A>(w).layout().outputs,
                      [&](const auto& sink) { ops::multiply_floats<A, Operands>(w, x, sink, by); });
}
template <class W>
auto unpacked(const W& w) {
  const auto view = as_view(w);
  return ops::weights_of<std::remove_const_t<decltype(view)>, depth_axis::cols>(view);
}

template <class T, class... Choices>
concept one_of = (std::same_as<T, Choices> || ...);

/// Groups of 5: quads that are not full, a short last group.
using odd_groups = uint4_group<5>;

}  // namespace

TEST_CASE("multiply_floats: every small shape is reference::dot of the dequantized weights, bit for bit") {
  check::on_archs<check::first_and_last>([](auto arch) {
    using A = decltype(arch);
    for (index_t n = 1; n <= 18; ++n)
      for (index_t k = 1; k <= 18; ++k) {
        const auto w = weights<odd_groups>(n, k);
        const auto p = pack<A>(w);
        const matrix values = dense(w);
        for (const index_t m : {1, 2, 4, 5, 6, 13}) {
          const matrix x = matrix(m, k).fill(check::hard_float);
          REQUIRE(same(product<A>(p, x.ref()), chains(values, x)));
        }
      }
  });
}

TEST_CASE("multiply_floats: shapes around panels, tiles, blocks and row blocks, weights packed or not") {
  const index_t shapes[][3] = {{3, 31, 127},   {4, 33, 129}, {5, 64, 511},  {7, 65, 512}, {24, 127, 60},
                               {25, 129, 64},  {26, 63, 66}, {1, 129, 40},  {49, 1, 513}, {1, 257, 130},
                               {12, 32, 1030}, {500, 17, 3}, {50, 2, 30000}};
  for (const auto& s : shapes) {
    const auto w = weights<int4_group<32>>(s[1], s[2]);
    const matrix x = matrix(s[0], s[2]).fill(plain), want = chains(dense(w), x);
    CAPTURE(s[0]);
    CAPTURE(s[1]);
    CAPTURE(s[2]);
    CHECK(same(product<best_arch>(pack(w), x.ref()), want));
    CHECK(same(product<best_arch>(unpacked(w), x.ref()), want));
  }
}

TEST_CASE_TEMPLATE("multiply_floats: few rows over more groups than a run has, every kind of parameters", S, nvfp4,
                   with<nvfp4, tensor_scale<f32>>, mxfp4, int4_group<32>, odd_groups, uint4_group<128>,
                   scheme<uint4, group<32>, offset<f32>, offset_min_max>,
                   scheme<int8, group<16>, zero_point<int32>, min_max>) {
  for (const index_t k : {128, 130, 257, 400})
    for (const index_t m : {1, 2, 3, 4}) {
      const auto w = weights<S>(70, k, true);
      const matrix x = matrix(m, k).fill(plain), want = chains(dense(w), x);
      CAPTURE(m);
      CAPTURE(k);
      CHECK(same(product<best_arch>(pack(w), x.ref()), want));
      if constexpr (one_of<S, nvfp4, odd_groups, mxfp4>) CHECK(same(product<best_arch>(unpacked(w), x.ref()), want));
    }
}

TEST_CASE_TEMPLATE(
    "multiply_floats: one row of ordinary, tiny and special numbers, scales of every size, zeros of both signs", S,
    nvfp4, mxfp4, scheme<e2m1, group<32>, scale_as<e4m3>>, with<nvfp4, tensor_scale<f32>>) {
  const float ordinary[] = {1.f, -3.25f, 0.f, -0.f, 0x1.fffffep-1f, -0x1.234568p-60f, 0x1.8p-59f};
  const float tiny[] = {0x1p-149f, -0x1p-149f, 0x1.4p-140f, -0x1.4p-140f, -0x1p-126f, 0.f, -0.f, 0x1.fffffep-61f};
  const float special[] = {1.f, infinity, -infinity, quiet_nan, 0.f, 0x1.fffffep127f};
  const auto one_of = [](const auto& list) { return list[check::random_below(std::size(list))]; };
  for (int round = 0; round < 40; ++round)
    for (const bool hard : {false, true}) {
      const index_t k = 100 + static_cast<index_t>(check::random_below(300));
      auto w = weights<S>(70, k, hard);
      if (round % 4 == 1)  // small scales, where products leave the normal numbers
        for (auto& s : w.scales()) s = static_cast<std::uint8_t>(check::random_below(9));
      auto x = matrix(1, k);
      for (float& v : x.data)
        v = round % 3 == 0 ? plain() : round % 3 == 1 ? one_of(ordinary) : hard ? one_of(special) : one_of(tiny);
      const matrix want = chains(dense(w), x);
      CAPTURE(round);
      in_both_ways([&] {
        const matrix got = product<best_arch>(pack(w), x.ref());
        REQUIRE(same(got, want));
        for (std::size_t i = 0; i < got.data.size(); ++i)
          if (got.data[i] == 0.f) REQUIRE(bits_of(got.data[i]) == bits_of(want.data[i]));
      });
    }
}

TEST_CASE("direct_panel: any groups of any panel, scales as floats, what is not stored left out") {
  const auto sees = [](const auto& w, index_t first, index_t count) {
    using panels = decltype(ops::panels_of<best_arch>(w));
    using S = typename panels::scheme_type;
    constexpr index_t width = panels::layout_type::width;
    ops::direct_panel<panels> reader(w);
    for (index_t p = 0; p < w.layout().panels(); ++p) {
      reader.go_to(p, 1);
      auto run = reader.groups(first, count, w.layout().group_quads(), true);
      const auto panel = w.panel(p);
      CHECK(run.codes == panel.codes + first * w.layout().group_quads() * panels::layout_type::quad_bytes);
      for (index_t g = first; g < first + count; ++g, run.to_next_group())
        for (index_t c = 0; c < width; ++c) {
          const index_t at = g * width + c;
          CHECK(check::same_or_nan(
              run.scales[c],
              decode<typename S::scale_format>(qtensor::detail::code_of<typename S::scale_format>(panel.scales[at]))));
          if constexpr (S::has_zero_point) CHECK(run.zeros[c] == panel.zeros[at]);
          if constexpr (S::has_offset) CHECK(run.offsets[c] == panel.offsets[at]);
        }
    }
  };
  const auto each = [&](const auto& w) {
    sees(w, 0, 1);
    sees(w, 3, 8);
    sees(w, 9, 2);
  };
  each(pack(weights<nvfp4>(70, 200, true)));
  each(pack(weights<mxfp4>(33, 400, true)));
  each(pack(weights<uint4_group<16>>(33, 200)));
  each(pack(weights<scheme<uint4, group<16>, offset<f32>, offset_min_max>>(33, 200)));
}

TEST_CASE("multiply_floats: activations from any source") {
  for (const index_t m : {1, 3, 40}) {
    const index_t n = 37, k = 100;
    const auto w = weights<odd_groups>(n, k);
    const auto p = pack(w);
    matrix x = matrix(m, k).fill(plain);
    const matrix want = chains(dense(w), x);
    CHECK(same(product<best_arch>(p, tiles_only{x.ref()}), want));
    matrix turned(k, m);
    for (index_t i = 0; i < m; ++i)
      for (index_t j = 0; j < k; ++j) turned(j, i) = x(i, j);
    CHECK(same(product<best_arch>(p, turned.ref().transposed()), want));
    CHECK(same(product<best_arch>(p, transposed_source{tiles_only{turned.ref()}}), want));
    const auto quantized = weights<mxfp8_e4m3>(m, k);
    CHECK(same(product<best_arch>(p, view_source{as_view(quantized)}), chains(dense(w), dense(quantized))));
  }
}

TEST_CASE_TEMPLATE("multiply_floats: operands rounded to f16 first", S, int4_group<32>, int4_group<6>, mxfp8_e4m3,
                   nvfp4, scheme<uint8, per_channel<0>, zero_point<uint8>>) {
  using halves = rounded_operands<f16>;
  for (const index_t m : {1, 2, 3, 4, 9}) {
    const auto w = weights<S>(35, 70, m % 2 == 0);
    matrix x = matrix(m, 70).fill(plain), values = dense(w);
    const matrix got = product<best_arch, decltype(pack(w)), matrix_ref<const float>, halves>(pack(w), x.ref());
    for (matrix* each : {&x, &values})
      for (float& v : each->data) {
        std::uint16_t half;
        simd::narrow_floats<f16>(&v, 1, &half);
        v = decode<f16>(half);
      }
    CHECK(same(got, chains(values, x)));
  }
}

TEST_CASE("multiply_floats: the same bits on any number of threads, with panels or with rows between them") {
  const index_t shapes[][3] = {{1, 1000, 300}, {30, 400, 300}, {300, 20, 300}};
  for (const auto& s : shapes) {
    const auto w = weights<mxfp4>(s[1], s[2]);
    const auto p = pack(w);
    const matrix x = matrix(s[0], s[2]).fill(plain), want = product<best_arch>(p, x.ref());
    for (const index_t threads : {2, 3, 7}) {
      const auto by = parallel_for(threads, pool::thread_each{});
      CHECK(same(product<best_arch, decltype(p), matrix_ref<const float>, exact_operands>(p, x.ref(), by), want));
      CHECK(same(
          product<best_arch, decltype(unpacked(w)), matrix_ref<const float>, exact_operands>(unpacked(w), x.ref(), by),
          want));
    }
  }
}

TEST_CASE_TEMPLATE("multiply_floats: weights from memory, whose codes are asked for, give the bits of their parts", S,
                   int8_per_channel<0>, int4_group<30>) {
  require_parts(weights<S>(1090, 2100), {3, 5, 30},
                [](const auto& packed, const auto& x) { return product<best_arch>(packed, x); });
}

TEST_CASE("multiply_floats: no depth gives +0, no rows give nothing, sizes that disagree an error") {
  const auto nothing = weights<mxfp4>(5, 0);
  const matrix empty(3, 0), y = product<best_arch>(pack(nothing), empty.ref());
  for (const float v : y.data) CHECK(bits_of(v) == 0u);

  const auto w = weights<mxfp4>(5, 40);
  CHECK(product<best_arch>(pack(w), matrix(0, 40).ref()).data.empty());
  const matrix x(2, 39);
  CHECK_THROWS_WITH_AS(product<best_arch>(pack(w), x.ref()),
                       "qtensor: a product sums over 40 elements of the weights and 39 of the other operand; sizes "
                       "must agree.",
                       error);
}
