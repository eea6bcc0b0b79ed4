// Two results of one random source, two levels of a tensor and statistics of several sources, against the reference.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/compat/ggml.hpp>
#include <qtensor/ops/calibrate.hpp>
#include <qtensor/ops/code_sums.hpp>
#include <qtensor/ops/quantize_dual_axis.hpp>

#include "conversions.hpp"

using namespace qtensor;

namespace {

/// Groups along rows and along columns, into parts of tensors.
template <quantization_scheme S, int Rank, format F>
void both_axes(fuzz::dice& dice) {
  using extents_type = dynamic_extents<Rank>;
  const extents_type extents = fuzz::draw_extents<Rank>(dice, fuzz::draw_size(dice));
  const fuzz::drawn_source<F, extents_type> x(dice, extents);
  const index_t threads = dice.chance(2) ? 1 : dice.within(2, 5);
  INFO(fuzz::describe<S, row_major, F>(extents), " both axes, threads ", threads);
  fuzz::target<along<-1, S>, Rank, row_major> rows(dice, extents, {}, false);
  fuzz::target<along<-2, S>, Rank, row_major> cols(dice, extents, {}, false);
  reference::quantize(x, rows.part(rows.want));
  reference::quantize(x, cols.part(cols.want));
  const typename memory_source<F, extents_type>::template in_order<row_major> source(x.source());
  quantize_dual_axis_into(source, rows.part(rows.got), cols.part(cols.got), on(pool::threads(threads)));
  REQUIRE(rows.same());
  REQUIRE(cols.same());
}

/// Codes and the sums of each output's.
template <quantization_scheme S, storage_order Order, depth_axis Depth>
void with_sums(fuzz::dice& dice) {
  const matrix_extents extents = fuzz::draw_extents<2>(dice, fuzz::draw_size(dice));
  const fuzz::drawn_source<f32, matrix_extents> x(dice, extents);
  const index_t group = dice.one_of(whole, 1, 7, 32, dice.within(1, 5000));
  INFO(fuzz::describe<S, Order, f32>(extents), " sums of ", group);
  tensor<S, matrix_extents, Order> want(extents);
  reference::quantize(x, want.span());
  const auto [codes, sums] = quantize_with_sums<S, Order, Depth>(x.source(), group);
  REQUIRE(check::same_bytes(codes, want));
  constexpr int depth_is = Depth == depth_axis::cols ? 1 : 0;
  const index_t depth = extents[depth_is], each = group == whole ? std::max(depth, index_t{1}) : group;
  const index_t groups = divide_up(depth, each);
  std::vector<std::int32_t> expected(static_cast<std::size_t>(extents[1 - depth_is] * groups));
  reference::for_each_index(std::array<index_t, 2>{}, extents.to_array(), [&](const auto& index) {
    expected[static_cast<std::size_t>(index[1 - depth_is] * groups + index[depth_is] / each)] +=
        static_cast<std::int32_t>(decode<typename S::code_format>(want.view().code(index)));
  });
  REQUIRE(sums == expected);
}

/// The level of a tensor that is known.
template <format F>
void known_level(fuzz::dice& dice) {
  using S = with<nvfp4, tensor_scale<f32>>;
  const matrix_extents extents = fuzz::draw_extents<2>(dice, fuzz::draw_size(dice));
  const fuzz::drawn_source<F, matrix_extents> x(dice, extents);
  const index_t threads = dice.within(1, 4);
  INFO(fuzz::describe<S, row_major, F>(extents), ", threads ", threads);
  fuzz::target<S, 2, row_major> to(dice, extents, {}, false);
  const auto level = tensor_level::of<S>(decode<f32>(fuzz::draw_scale<f32>(dice, 1.f)));
  const auto want = to.part(to.want);
  *want.memory().tensor_scale = level.scale;
  reference::quantize_blocks(x, level.term, want);
  const typename memory_source<F, matrix_extents>::template in_order<row_major> rows(x.source());
  quantize_into(rows, to.part(to.got), level, on(pool::threads(threads)));
  REQUIRE(to.same());
}

/// Ranges and percentiles of several sources.
template <int Rank, format F>
void calibrated(fuzz::dice& dice) {
  range_calibrator range;
  magnitude_histogram histogram;
  std::vector<float> sizes;
  float low = 0.f, high = 0.f;
  index_t ignored = 0;
  for (index_t n = dice.within(0, 3); n > 0; --n) {
    const auto extents = fuzz::draw_extents<Rank>(dice, 3000);
    const fuzz::drawn_source<F, dynamic_extents<Rank>> x(dice, extents);
    range.add(x.source());
    histogram.add(x.source());
    for (index_t i = 0; i < extents.size(); ++i) {
      const float number = x(x.index_of(i));
      if (!is_finite(number)) {
        ++ignored;
        continue;
      }
      sizes.push_back(magnitude(number));
      low = std::min(low, number), high = std::max(high, number);
    }
  }
  std::sort(sizes.begin(), sizes.end());
  const float amax = sizes.empty() ? 0.f : sizes.back();
  REQUIRE(range.ignored() == ignored);
  REQUIRE(histogram.ignored() == ignored);
  REQUIRE(histogram.count() == static_cast<index_t>(sizes.size()));
  REQUIRE(range.amax() == amax);
  REQUIRE(histogram.amax() == amax);
  REQUIRE(range.low() == low);
  REQUIRE(range.high() == high);
  const float all[] = {low, high};
  tensor<uint8_per_tensor, dynamic_extents<1>> two(extents(2));
  reference::quantize([&](const auto& i) { return all[i[0]]; }, two.span());
  const auto p = range.template parameters<uint8_per_tensor>();
  REQUIRE(p.scale == two.scale(0));
  REQUIRE(p.zero_point == two.zero_point(0));
  if (sizes.empty()) return;
  const double fraction = static_cast<double>(dice.within(1, 1000)) / 1000.0;
  const double wanted = fraction * static_cast<double>(sizes.size());
  std::size_t at = 0;
  while (static_cast<double>(at + 1) < wanted) ++at;
  const float edge = histogram.percentile(fraction);
  REQUIRE(edge >= sizes[at]);
  REQUIRE(edge <= std::min(amax, float_of(bits_of(sizes[at]) + (1u << 14))));
}

}  // namespace

TEST_CASE("conversions: both axes of one source") {
  fuzz::each_case(1000, [](fuzz::dice& dice) {
    fuzz::one_case_of(dice, &both_axes<mxfp8_e4m3, 2, f32>, &both_axes<mxfp4, 3, bf16>,
                      &both_axes<uint4_group<32>, 2, f16>);
  });
}

TEST_CASE("conversions: codes and their sums") {
  fuzz::each_case(1000, [](fuzz::dice& dice) {
    fuzz::one_case_of(dice, &with_sums<int8_per_channel<0>, row_major, depth_axis::cols>,
                      &with_sums<uint4_group<32>, row_major, depth_axis::rows>,
                      &with_sums<scheme<uint8, per_channel<1>, zero_point<uint8>>, col_major, depth_axis::cols>);
  });
}

TEST_CASE("conversions: two levels, the upper one known") {
  fuzz::each_case(500, [](fuzz::dice& dice) { fuzz::one_case_of(dice, &known_level<f32>, &known_level<f16>); });
}

TEST_CASE("conversions: interleaved blocks") {
  fuzz::each_case(1000, [](fuzz::dice& dice) {
    using namespace compat;
    fuzz::one_case_of(dice, &fuzz::quantize_memory<ggml::q8_1, 2>,
                      &fuzz::quantize_memory<ggml::q4_1, 3, row_major, bf16>, &fuzz::quantize_memory<ggml::q5_0, 1>,
                      &fuzz::quantize_memory<ggml::nvfp4, 2>);
  });
}

TEST_CASE("conversions: calibration") {
  fuzz::each_case(200, [](fuzz::dice& dice) { fuzz::one_case_of(dice, &calibrated<2, f32>, &calibrated<3, bf16>); });
}
