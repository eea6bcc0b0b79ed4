// Mirrors include/qtensor/simd/quantize_both_axes.hpp: rows under two sets of scales, beside the reference.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/simd/quantize_both_axes.hpp>
#include <qtensor/simd/scales.hpp>
#include <qtensor/simd/statistics_columns.hpp>

#include "runs.hpp"

using namespace runs;

namespace {

/// Scales of n blocks from their largest magnitudes; false where these are not what kernels of fitting numbers take.
template <class S>
bool scales_of(const std::vector<std::uint32_t>& amax, std::vector<float>& scales) {
  std::vector<storage_t<typename S::scale_format>> units(amax.size());
  scales.resize(amax.size());
  return simd::block_scales<S>(amax.data(), static_cast<index_t>(amax.size()), units.data(), scales.data()) ==
         simd::blocks_are::fitting;
}

/// Two rows of n numbers by R along the rows and by C down the columns; codes begin `offset` units from a line on.
template <class R, class C>
void check_both(index_t n, index_t offset, bool streams) {
  constexpr index_t group = 32, rows = 2;
  std::vector<float> x;
  for (index_t i = 0; i < rows * n; ++i) {
    const std::uint32_t bits = check::random_bits()();
    const float v = (1.f + static_cast<float>(bits >> 9) * 0x1p-23f) * exp2i(static_cast<int>(bits & 15u) - 8);
    x.push_back(bits & 16u ? -v : bits & 0xe0u ? v : 0.f);
  }
  std::vector<std::uint32_t> of_rows(static_cast<std::size_t>(rows * divide_up(n, group))),
      of_columns(static_cast<std::size_t>(n));
  simd::amax_both_axes<simd::best_arch, group>(x.data(), n, rows, n, of_rows.data(), of_columns.data());
  for (std::uint32_t& m : of_columns) m = std::max(m, bits_of(0.25f));
  for (std::uint32_t& m : of_rows) m = std::max(m, bits_of(0.25f));
  std::vector<float> row_scales, column_scales;
  REQUIRE(scales_of<R>(of_rows, row_scales));
  REQUIRE(scales_of<C>(of_columns, column_scales));

  using columns_type = simd::column_encoder<C>;
  std::vector<float> memory(static_cast<std::size_t>(columns_type::memory_for(n)));
  const columns_type columns(column_scales.data(), nullptr, n, 1.f, memory.data(), true);
  for (index_t r = 0; r < rows; ++r) {
    const float* row = x.data() + r * n;
    const float* scales = row_scales.data() + r * divide_up(n, group);
    std::vector<simd::code_unit_t<R>> want_rows(static_cast<std::size_t>(units<R>(n)));
    std::vector<simd::code_unit_t<C>> want_columns(static_cast<std::size_t>(units<C>(n)));
    simd::reference_encoder<R>::grouped(row, n, group, scales, nullptr, 1.f, want_rows.data());
    simd::reference_encoder<C>::vector(row, n, column_scales.data(), nullptr, 1.f, want_columns.data());
    alignas(64) static simd::code_unit_t<R> by_rows[4096];
    alignas(64) static simd::code_unit_t<C> by_columns[4096];
    std::memset(by_rows, 0x5a, sizeof by_rows);
    std::memset(by_columns, 0x5a, sizeof by_columns);
    const bool done = simd::encode_both_axes<R, C, simd::from_f32>(row, n, scales, nullptr, columns, 0,
                                                                   by_rows + offset, by_columns + offset, streams, row);
    if (!done) {  // scales that are no powers of two take a fused multiply-add
      REQUIRE((!simd::detail::moves_grid<R>() || !simd::detail::moves_grid<C>()));
      return;
    }
    if (streams) simd::stream_fence<simd::best_arch>();
    using arch = simd::best_arch;
    compare_codes<R, arch>(by_rows + offset, want_rows.data(), row, n, "along rows");
    compare_codes<C, arch>(by_columns + offset, want_columns.data(), row, n, "down columns");
    CHECK(static_cast<std::uint8_t>(by_rows[offset + units<R>(n)]) == 0x5a);
    CHECK(static_cast<std::uint8_t>(by_columns[offset + units<C>(n)]) == 0x5a);
  }
}

template <class R, class C>
void check_all() {
  if constexpr (simd::encodes_both_axes<R, C, simd::from_f32>)
    for (const bool streams : {false, true})
      for (const index_t n : {1, 31, 32, 63, 64, 96, 130, 515, 1024, 2048})
        for (const index_t offset : {0, 3}) check_both<R, C>(n, offset, streams);
}

}  // namespace

TEST_CASE("encode_both_axes: any length, place and pair of schemes, streamed or not, as the reference") {
  check_all<mxfp8_e4m3, along<-2, mxfp8_e4m3>>();
  check_all<mxfp8_e5m2, along<-2, mxfp4>>();
  check_all<mxfp4, along<-2, mxfp6_e2m3>>();
  check_all<int8_group<32>, along<-2, int8_group<32>>>();
}
