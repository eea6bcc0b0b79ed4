// Mirrors include/qtensor/reference/quantize.hpp: every granularity, rank and storage order against the block oracle.
// SPDX-License-Identifier: BSD-3-Clause
#include "reference/quantize_check.hpp"

namespace {

using namespace oracle;
namespace qt = qtensor;

/// Codes of this format with this granularity on awkward data in this shape.
template <class Code, class G, int Rank, class Order>
void check_granularity(const char* name, const sizes& shape, const sizes& block, const G& granularity) {
  std::size_t n = 1;
  for (std::size_t extent : shape) n *= extent;
  check_scheme<qt::scheme<Code, G>, Rank, Order>(shape, block, awkward_data(n, 11), amax_oracle(name), granularity);
}

/// Two codes to the byte along the last axis, four codes to three bytes along the first.
template <class G, int Rank>
void check_both_orders(const sizes& shape, const sizes& block, const G& granularity = {}) {
  check_granularity<qt::int4, G, Rank, qt::row_major>("int4", shape, block, granularity);
  check_granularity<qt::e2m3, G, Rank, qt::col_major>("e2m3", shape, block, granularity);
}

}  // namespace

TEST_CASE("quantize: every granularity of a matrix, in both storage orders") {
  const sizes shape = {19, 70};
  check_both_orders<qt::per_tensor, 2>(shape, {0, 0});
  check_both_orders<qt::per_channel<0>, 2>(shape, {1, 0});
  check_both_orders<qt::per_channel<-1>, 2>(shape, {0, 1});
  check_both_orders<qt::per_axes<0, 1>, 2>(shape, {1, 1});
  check_both_orders<qt::group<32>, 2>(shape, {1, 32});
  check_both_orders<qt::group<8, 0>, 2>(shape, {8, 1});
  check_both_orders<qt::block<8, 16>, 2>(shape, {8, 16});
  check_both_orders<qt::block<qt::whole, 3>, 2>(shape, {0, 3});
  check_both_orders<qt::group<qt::dynamic>, 2>(shape, {1, 24}, qt::group<qt::dynamic>(24));
  check_both_orders<qt::block<qt::dynamic, qt::dynamic>, 2>(shape, {5, 0},
                                                            qt::block<qt::dynamic, qt::dynamic>(5, qt::whole));
}

TEST_CASE("quantize: ranks 1 to 8 and empty tensors") {
  check_both_orders<qt::group<32>, 1>({77}, {32});
  check_both_orders<qt::per_channel<1>, 3>({3, 5, 14}, {0, 1, 0});
  check_both_orders<qt::group<4, 1>, 3>({3, 9, 14}, {1, 4, 1});
  check_both_orders<qt::block<4, 8>, 4>({2, 3, 6, 20}, {1, 1, 4, 8});
  check_both_orders<qt::per_axes<0, 3>, 5>({2, 3, 2, 4, 5}, {1, 0, 0, 1, 0});
  check_both_orders<qt::group<16>, 8>({2, 1, 2, 1, 2, 1, 3, 18}, {1, 1, 1, 1, 1, 1, 1, 16});
  check_both_orders<qt::group<32>, 2>({0, 70}, {1, 32});
  check_both_orders<qt::group<32>, 2>({7, 0}, {1, 32});
}

TEST_CASE("quantize: codes of every width lie where both storage orders want them") {
  const sizes shape = {19, 70}, block = {1, 32};
  const qt::group<32> g;
  check_granularity<qt::int2, qt::group<32>, 2, qt::row_major>("int2", shape, block, g);
  check_granularity<qt::int2, qt::group<32>, 2, qt::col_major>("int2", shape, block, g);
  check_granularity<qt::int4, qt::group<32>, 2, qt::col_major>("int4", shape, block, g);
  check_granularity<qt::e2m3, qt::group<32>, 2, qt::row_major>("e2m3", shape, block, g);
  check_granularity<qt::int8, qt::group<32>, 2, qt::row_major>("int8", shape, block, g);
  check_granularity<qt::int8, qt::group<32>, 2, qt::col_major>("int8", shape, block, g);
  check_granularity<qt::int16, qt::group<32>, 2, qt::row_major>("int16", shape, block, g);
  check_granularity<qt::f16, qt::group<32>, 2, qt::col_major>("f16", shape, block, g);
}
