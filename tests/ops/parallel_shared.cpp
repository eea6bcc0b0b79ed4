// Mirrors include/qtensor/ops/parallel.hpp: rows that share scales.
#include "ops/parallel_check.hpp"

namespace qt = qtensor;
using namespace parallel_check;

TEST_CASE("parallel: one scale for all rows") {
  check_matrix<qt::int8_per_tensor>();
  check_matrix<qt::uint8_per_tensor>();
  check_matrix<qt::int8_per_tensor, qt::col_major>();
  check::in_full<qt::scheme<qt::int4, qt::per_tensor>, qt::with<qt::int8_per_tensor, qt::block_ignores>>(
      []<class S>() { check_matrix<S>(); });
}

TEST_CASE("parallel: scales of columns and of bands of columns") {
  check::in_full<qt::int8_per_channel<1>>([]<class S>() { check_matrix<S>(); });
  check_matrix<qt::uint8_per_channel<1>>();
  check_matrix<qt::fp8_block<qt::whole, 100>>();
  check_matrix<qt::int8_per_channel<0>, qt::col_major>();
}

TEST_CASE("parallel: scales of all rows, from memory that lies across") {
  check_matrix<qt::uint8_per_tensor, qt::col_major>();
  check_matrix<qt::fp8_block<100, qt::whole>, qt::col_major>();
  check_matrix<qt::uint8_per_channel<0>, qt::col_major>();
  check::in_full<qt::scheme<qt::int4, qt::per_tensor>, qt::with<qt::int8_per_tensor, qt::block_ignores>>(
      []<class S>() { check_matrix<S, qt::col_major>(); });
}

TEST_CASE("parallel: higher ranks are cut along the axis that makes the most parts") {
  const auto x = numbers(6 * 11 * 1301);
  check_tensor<qt::mxfp8_e4m3>(qt::extents(6, 11, 1301), x);
  check_tensor<qt::int8_per_tensor>(qt::extents(6, 11, 1301), x);
  check_tensor<qt::int8_per_channel<2>>(qt::extents(6, 11, 1301), x);
  check_tensor<qt::int8_per_channel<1>>(qt::extents(6, 11, 1301), x);
  check_tensor<qt::mxfp8_e4m3>(qt::extents(1, 66, 1301), x);
  check_tensor<qt::int8_per_tensor>(qt::extents(1, 66, 1301), x);
}

TEST_CASE("parallel: two levels, the scale of the tensor and those of its blocks") {
  check_matrix<qt::with<qt::nvfp4, qt::tensor_scale<qt::f32>>>();
  check::in_full<qt::along<0, qt::with<qt::nvfp4, qt::tensor_scale<qt::f32>>>>([]<class S>() { check_matrix<S>(); });
  check_matrix<qt::with<qt::nvfp4, qt::tensor_scale<qt::f32>>, qt::col_major>();
}

TEST_CASE("parallel: what depends on positions stays on one thread") {
  check_matrix<qt::with<qt::int8_per_channel<0>, qt::stochastic<7>>>(false);
}

TEST_CASE("parallel: one row, and a few") {
  const auto x = numbers(rows * cols);
  const auto check_rows = [&]<class S>() {
    for (const auto& some : {x, with_specials(x)}) {
      check_tensor<S>(qt::extents(rows * cols), some);
      check_tensor<S>(qt::extents(1, rows * cols), some);
      check_tensor<S>(qt::extents(2, rows * cols / 2), {some.begin(), some.end() - 1});
      check_tensor<S, qt::col_major>(qt::extents(rows * cols / 2, 2), {some.begin(), some.end() - 1});
    }
  };
  check_rows.operator()<qt::int8_per_tensor>();
  check_rows.operator()<qt::mxfp4>();
  check::in_full<qt::with<qt::nvfp4, qt::tensor_scale<qt::f32>>, qt::uint8_per_tensor, qt::uint4_group<24>,
                 qt::mxfp6_e2m3, qt::int8_group<100>, qt::with<qt::int8_per_tensor, qt::block_ignores>>(
      [&]<class S>() { check_rows.operator()<S>(); });
  check_tensor<qt::mxfp4>(qt::extents<1, qt::dynamic>(1, rows * cols), x);
  const std::vector<float> blocks(x.begin(), x.begin() + 87040);
  check_tensor<qt::compat::ggml::q4_0>(qt::extents(87040), blocks);
  check_tensor<qt::compat::ggml::nvfp4>(qt::extents(87040), blocks);
}
