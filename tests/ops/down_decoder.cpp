// Mirrors include/qtensor/ops/down_decoder.hpp: numbers down columns are those of the reference.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/down_decoder.hpp>
#include <qtensor/ops/row_decoder.hpp>

#include "decoder_check.hpp"

using namespace qtensor;

namespace {

constexpr index_t height = 203, width = 150;

template <class S>
tensor<S> some_tensor() {
  return check::quantized_matrix<S>(height, width);
}

/// From several rows and columns on, to numbers that lie closely and apart.
template <class F, class S>
void check_down(const tensor<S>& t) {
  const auto w = t.view();
  const ops::row_decoder<F, decltype(t.view())> rows_of(w);
  const ops::down_decoder<F, decltype(t.view())> down(w, rows_of.decodes_all());
  REQUIRE(down.takes({0, 0}));
  REQUIRE(down.takes_from({0, 0}, 2));
  for (const index_t row : {0, 1, 128})
    for (const index_t first : {0, 2, 30})
      for (const index_t rows : {index_t{1}, index_t{64}, index_t{75}, height - row}) {
        if (!down.takes_from({row, 0}, first)) continue;
        const index_t step = rows + 3, n = width - first;
        std::vector<storage_t<F>> out(static_cast<std::size_t>(n * step));
        index_t elements = 0;
        down.for_each_part({row, 0}, rows, first, n, rows % 2 == 0,
                           [&](index_t r, index_t c, index_t high, index_t wide, const auto& decode) {
                             decode(out.data() + c * step + r, step, simd::traffic{});
                             elements += high * wide;
                           });
        REQUIRE(elements == rows * n);
        for (index_t c = 0; c < n; ++c)
          for (index_t r = 0; r < step; ++r)
            if (out[static_cast<std::size_t>(c * step + r)] !=
                (r < rows ? check::number_at<F>(w, row + r, first + c) : 0))
              FAIL(std::string(name<S>), " row ", row + r, " column ", first + c, " of ", rows, " rows");
      }
}

}  // namespace

TEST_CASE("down the columns, from codes of bytes and of nibbles") {
  check_down<f32>(some_tensor<int8_per_tensor>());
  check_down<bf16>(some_tensor<int8_per_tensor>());
  check_down<f16>(some_tensor<scheme<e4m3, per_tensor>>());
  check_down<bf16>(some_tensor<scheme<e2m1, per_tensor>>());
  check_down<bf16>(some_tensor<int8_per_channel<0>>());
  check_down<f32>(some_tensor<mxfp8_e4m3>());
  check_down<f32>(some_tensor<uint4_group<32>>());
  check_down<bf16>(some_tensor<mxfp4>());
  check_down<f32>(some_tensor<int8_per_channel<1>>());
  check_down<bf16>(some_tensor<scheme<uint8, per_channel<1>, zero_point<int32>>>());
  check_down<f32>(some_tensor<scheme<int8, block<16, 16>>>());
  check_down<bf16>(some_tensor<scheme<uint4, block<6, 14>, zero_point<uint8>>>());
  check_down<f32>(some_tensor<scheme<e4m3, block<128, 32>>>());
  check_down<f32>(some_tensor<along<0, int8_group<32>>>());
  check_down<bf16>(some_tensor<along<0, mxfp4>>());
  check_down<f32>(some_tensor<scheme<uint4, group<16, 0>, zero_point<uint4>>>());
  check_down<f16>(some_tensor<along<0, int8_group<64>>>());
  check_down<f32>(some_tensor<scheme<int8, group<4>>>());
  check_down<bf16>(some_tensor<scheme<uint8, group<8>, zero_point<uint8>>>());
  check_down<f32>(some_tensor<scheme<int8, group<32>, zero_point<int8>>>());
  check_down<f32>(some_tensor<scheme<int8, group<32>, scale_as<bf16>, zero_point<int32>>>());
}

TEST_CASE("what does not go down") {
  const auto takes = [](const auto& t) { return ops::down_decoder<f32, decltype(t.view())>(t.view()).takes({0, 0}); };
  CHECK(!takes(some_tensor<mxfp6_e2m3>()));
  CHECK(!takes(some_tensor<scheme<int8, block<3, 1>>>()));
  CHECK(takes(some_tensor<along<0, mxfp8_e4m3>>()));
}
