// Mirrors include/qtensor/ops/row_decoder.hpp: every way to a row's numbers gives those of the reference.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/row_decoder.hpp>

#include "decoder_check.hpp"

using namespace qtensor;

namespace {

constexpr index_t height = 37, width = 150;

template <class S>
tensor<S> some_tensor() {
  return check::quantized_matrix<S>(height, width);
}

/// Parts of rows, beginning and ending anywhere.
template <class F, class S>
void check_rows(const tensor<S>& t) {
  const auto w = t.view();
  const ops::row_decoder<F, decltype(t.view())> decode(w);
  std::vector<storage_t<F>> out(static_cast<std::size_t>(width));
  for (const index_t row : {index_t{0}, index_t{5}, height - 1})
    for (index_t col = 0; col < width; col += 13)
      for (const index_t n : {index_t{1}, index_t{7}, index_t{64}, width - col}) {
        if (col + n > width) continue;
        decode({row, 0}, col, n, out.data());
        for (index_t i = 0; i < n; ++i)
          if (out[static_cast<std::size_t>(i)] != check::number_at<F>(w, row, col + i))
            FAIL(std::string(name<S>), " row ", row, " element ", col + i);
      }
}

/// Rows that share their parameters, column strip by column strip.
template <class F, class S>
void check_columns(const tensor<S>& t, index_t alike) {
  const auto w = t.view();
  const ops::row_decoder<F, decltype(t.view())> decode(w);
  CHECK(decode.rows_alike({0, 0}, height) == alike);
  if (alike == 1) return;
  for (const index_t begin : {0, 12}) {
    std::vector<storage_t<F>> out(static_cast<std::size_t>(alike * width));
    decode.columns({0, 0}, begin, 64, [&](index_t col, index_t, const auto& rows) {
      CHECK((col == 0 || col % 64 == begin));
      rows(index_t{0}, alike, out.data() + col, width, simd::traffic{});
    });
    for (index_t r = 0; r < alike; ++r)
      for (index_t c = 0; c < width; ++c)
        if (out[static_cast<std::size_t>(r * width + c)] != check::number_at<F>(w, r, c))
          FAIL(std::string(name<S>), " row ", r, " column ", c);
  }
}

}  // namespace

TEST_CASE("parts of rows: one scale, scales of rows, of columns, of groups, other orders") {
  check_rows<f32>(some_tensor<int8_per_tensor>());
  check_rows<bf16>(some_tensor<int8_per_tensor>());
  check_rows<f32>(some_tensor<int8_per_channel<0>>());
  check_rows<f32>(some_tensor<uint8_per_channel<1>>());
  check_rows<f32>(some_tensor<int4_group<10>>());
  check_rows<bf16>(some_tensor<uint4_group<32>>());
  check_rows<f32>(some_tensor<mxfp6_e2m3>());
  check_rows<f16>(some_tensor<nvfp4>());
  check_rows<f32>(some_tensor<scheme<int4, group<10>, planar<high_first>>>());
}

TEST_CASE("rows that share a scale for each element") {
  check_columns<f32>(some_tensor<int8_per_channel<1>>(), height);
  check_columns<bf16>(some_tensor<uint8_per_channel<1>>(), height);
  check_columns<f32>(some_tensor<along<0, int8_group<32>>>(), 32);
  check_columns<f32>(some_tensor<scheme<int8, block<16, 16>>>(), 16);
  check_columns<bf16>(some_tensor<scheme<uint8, block<6, 7>, zero_point<uint8>>>(), 6);
  check_columns<f32>(some_tensor<int8_per_channel<0>>(), 1);
  check_columns<f32>(some_tensor<int8_per_tensor>(), height);
  check_columns<f32>(some_tensor<scheme<int8, block<3, 16>>>(), 1);
}
