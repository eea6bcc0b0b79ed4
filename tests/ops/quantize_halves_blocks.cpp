// Mirrors include/qtensor/ops/quantize.hpp and blocks.hpp: bf16 and f16 in memory, into blocks of every other kind.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/compat/ggml.hpp>

#include "halves_check.hpp"

using namespace halves_check;

TEST_CASE("16-bit sources: blocks of 2 and 128") { check_scheme<fp8_block<2, 128>, orders::both>(); }
TEST_CASE("16-bit sources: hif8, zero points of blocks, reciprocals") {
  check_scheme<hif8_block<1, 64>>();
  check_scheme<scheme<uint8, block<8, 16>, zero_point<uint8>>>();
  check::in_full<with<int8_per_channel<0>, reciprocal>>([]<class S>() { check_scheme<S>(); });
}
TEST_CASE("16-bit sources: ggml's blocks") {
  check_scheme<compat::ggml::q8_0>();
  check_scheme<compat::ggml::q4_0>();
  check_scheme<compat::ggml::q4_1>();
  check_scheme<compat::ggml::mxfp4>();
}
TEST_CASE("16-bit sources: what only the reference quantizes") {
  check_scheme<scheme<int4, group<32>, planar<high_first>>, orders::both>();
}
