// Mirrors include/qtensor/ops/parallel.hpp: the ways to call it.
#include "ops/parallel_check.hpp"

namespace qt = qtensor;
using namespace parallel_check;

TEST_CASE("parallel: given scales and zero points") {
  const auto x = numbers(rows * cols);
  const auto source = qt::source(x.data(), qt::extents(rows, cols));
  std::vector<float> column_scales(static_cast<std::size_t>(cols));
  for (std::size_t i = 0; i < column_scales.size(); ++i) column_scales[i] = 0.01f + 0.001f * static_cast<float>(i % 7);
  const auto expected = qt::quantize<qt::int8_per_channel<1>>(source, column_scales);
  const auto with_zeros = qt::quantize<qt::uint8_per_tensor>(source, 0.02f, 117);
  for (index_t threads : {1, 2, 3, 5}) {
    INFO("threads=", threads);
    int parts = 0;
    const auto pool = qt::on(qt::parallel_for(threads, threads_of{&parts}));
    CHECK(same(qt::quantize<qt::int8_per_channel<1>>(source, column_scales, pool), expected));
    CHECK(parts == (threads > 1 ? threads : 0));
    CHECK(same(qt::quantize<qt::uint8_per_tensor>(source, pool, 0.02f, 117), with_zeros));
  }
}

TEST_CASE("parallel: small tensors stay on one thread, empty ones are left alone, sizes are checked") {
  int parts = 0;
  const auto pool = qt::on(qt::parallel_for(4, threads_of{&parts}));
  const auto x = numbers(32 * 64);
  const auto small = qt::quantize<qt::mxfp4>(qt::source(x.data(), qt::extents(32, 64)), pool);
  CHECK(parts == 0);
  CHECK(same(small, qt::quantize<qt::mxfp4>(qt::source(x.data(), qt::extents(32, 64)))));
  CHECK(qt::quantize<qt::mxfp4>(qt::source(x.data(), qt::extents(0, 64)), pool).size() == 0);
  qt::tensor<qt::mxfp4> other(qt::extents(32, 32));
  const qt::matrix_ref<const float> all{x.data(), 32, 64, 64, 1};
  CHECK_THROWS_AS(qt::quantize_into(all, other.span(), pool), qt::error);
}

TEST_CASE("parallel: requantize, and writing with other strides") {
  const auto x = numbers(rows * cols);
  const auto w = qt::quantize<qt::mxfp8_e4m3>(qt::source(x.data(), qt::extents(rows, cols)));
  int parts = 0;
  const auto pool = qt::on(qt::parallel_for(3, threads_of{&parts}));
  CHECK(same(qt::requantize<qt::int8_per_tensor>(w, pool), qt::requantize<qt::int8_per_tensor>(w)));
  std::vector<float> expected(x.size()), found(x.size());
  qt::dequantize_into(w.view(), expected.data(), {1, rows});
  qt::dequantize_into(w.view(), found.data(), {1, rows}, pool);
  CHECK(found == expected);
  CHECK(parts == 9);
}
