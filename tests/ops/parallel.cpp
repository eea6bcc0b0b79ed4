// Mirrors include/qtensor/ops/parallel.hpp: rows with scales of their own.
#include "ops/parallel_check.hpp"

namespace qt = qtensor;
using namespace parallel_check;

TEST_CASE("parallel: schemes whose rows are independent") {
  check_matrix<qt::int8_per_channel<0>>();
  check_matrix<qt::uint8_per_channel<0>>();
  check_matrix<qt::mxfp8_e4m3>();
  check::in_full<qt::mxfp6_e2m3, qt::nvfp4>([]<class S>() { check_matrix<S>(); });
}

TEST_CASE("parallel: rows end inside bytes, parts do not") {
  check_matrix<qt::int4_group<32>>();
  check::in_full<qt::uint4_group<24>>([]<class S>() { check_matrix<S>(); });
  check_matrix<qt::mxfp4, qt::col_major>();
}

TEST_CASE("parallel: blocks of several rows are not cut") {
  check::in_full<qt::fp8_block<16, 128>>([]<class S>() { check_matrix<S>(); });
  check_matrix<qt::along<0, qt::mxfp4>>();
  check_matrix<qt::along<0, qt::int4_group<13>>, qt::col_major>();
}

TEST_CASE("parallel: blocks with their scales between the codes") {
  const auto x = numbers(70 * 1280);
  check_tensor<qt::compat::ggml::q8_0>(qt::extents(70, 1280), x);
  check_tensor<qt::compat::ggml::q4_0>(qt::extents(70, 1280), x);
}
