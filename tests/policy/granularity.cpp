// Mirrors include/qtensor/policy/granularity.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <qtensor/policy/granularity.hpp>
#include <string>
#include <vector>

#include "core/sentence.hpp"

using namespace qtensor;

namespace {

/// Extents of the block that a granularity makes of a tensor of these extents.
template <granularity G>
std::vector<index_t> block_of(const G& g, const std::vector<index_t>& extents) {
  std::vector<index_t> block;
  for (std::size_t axis = 0; axis < extents.size(); ++axis)
    block.push_back(g.block_extent(static_cast<int>(extents.size()), static_cast<int>(axis), extents[axis]));
  return block;
}
using sizes = std::vector<index_t>;

template <granularity G>
std::string name_of() {
  return std::string(std::string_view(G::name));
}

/// A user's own: a triangle of blocks would not fit the normal form, but blocks of half an axis do.
struct halves {
  static constexpr fixed_string name = "halves";
  static constexpr index_t block_extent(int, int, index_t extent) { return extent > 1 ? (extent + 1) / 2 : 1; }
};
static_assert(granularity<halves> && fits_rank<halves>(1) && fits_rank<halves>(9));

// A granularity is empty unless it holds a run-time size.
static_assert(has_static_blocks<per_tensor> && has_static_blocks<per_channel<0>> && has_static_blocks<per_axes<0, 2>>);
static_assert(has_static_blocks<group<32>> && has_static_blocks<block<128, 128>> && has_static_blocks<block<whole, 1>>);
static_assert(!has_static_blocks<group<dynamic>> && !has_static_blocks<block<dynamic, 4>> &&
              sizeof(group<dynamic>) == sizeof(index_t));
static_assert(sizeof(block<dynamic, dynamic>) == 2 * sizeof(index_t));

// What is no granularity.
struct without_a_name {
  static constexpr index_t block_extent(int, int, index_t) { return 1; }
};
static_assert(!granularity<without_a_name> && !granularity<int>);
static_assert(std::is_same_v<mx_group<>, group<32>> && std::is_same_v<mx_group<16, 0>, group<16, 0>>);

// Sizes work in constant expressions.
static_assert(group<dynamic>(64).block_extent(2, 1, 100) == 64 &&
              block<dynamic, dynamic>(1, 128).block_extent(2, 1, 100) == 128);

}  // namespace

TEST_CASE("per_tensor: one block, whatever the rank") {
  for (int rank = 1; rank <= 9; ++rank) {
    const sizes extents(static_cast<std::size_t>(rank), rank + 1);
    CHECK(block_of(per_tensor{}, extents) == extents);
  }
  CHECK(block_of(per_tensor{}, {5, 0}) == sizes{5, 1});  // at least 1
}

TEST_CASE("per_channel: 1 on its axis; negative axes count from the end") {
  CHECK(block_of(per_channel<0>{}, {4, 5, 6}) == sizes{1, 5, 6});
  CHECK(block_of(per_channel<2>{}, {4, 5, 6}) == sizes{4, 5, 1});
  CHECK(block_of(per_channel<-1>{}, {4, 5, 6}) == sizes{4, 5, 1});
  CHECK(block_of(per_channel<-3>{}, {4, 5, 6}) == sizes{1, 5, 6});
  CHECK(block_of(per_channel<0>{}, {7}) == sizes{1});
  CHECK(block_of(per_channel<8>{}, {2, 2, 2, 2, 2, 2, 2, 2, 3}) == sizes{2, 2, 2, 2, 2, 2, 2, 2, 1});
}

TEST_CASE("per_axes: 1 on each listed axis, as oneDNN's masks") {
  CHECK(block_of(per_axes<0, 2>{}, {8, 1024, 512}) == sizes{1, 1024, 1});  // mask 5
  CHECK(block_of(per_axes<0, 1, 2>{}, {8, 1024, 512}) == sizes{1, 1, 1});  // mask 7
  CHECK(block_of(per_axes<-1, 0>{}, {2, 3, 4, 5, 6, 7, 8, 9, 10}) == sizes{1, 3, 4, 5, 6, 7, 8, 9, 1});
}

TEST_CASE("group: N along its axis, 1 elsewhere") {
  CHECK(block_of(group<32>{}, {100}) == sizes{32});
  CHECK(block_of(group<32>{}, {8, 100}) == sizes{1, 32});
  CHECK(block_of(group<32, 0>{}, {100, 8}) == sizes{32, 1});
  CHECK(block_of(group<32, -2>{}, {3, 100, 8}) == sizes{1, 32, 1});
  CHECK(block_of(group<16>{}, {2, 2, 2, 2, 2, 2, 2, 2, 40}) == sizes{1, 1, 1, 1, 1, 1, 1, 1, 16});
  CHECK(block_of(group<64>{}, {2, 10}) == sizes{1, 64});  // more than the extent: a short block
}

TEST_CASE("group<dynamic>: holds its size, which is at least 1") {
  CHECK(block_of(group<dynamic>(48), {2, 100}) == sizes{1, 48});
  CHECK(block_of(group<dynamic, 0>(5), {100, 2, 3}) == sizes{5, 1, 1});
  CHECK(group<dynamic>{}.size() == 1);
  CHECK(group<dynamic>(7) == group<dynamic>(7));
  CHECK_FALSE(group<dynamic>(7) == group<dynamic>(8));
  CHECK(group<32>::axis == -1);
  CHECK(group<32>{}.size() == 32);
  CHECK(sentence([] { group<dynamic>(0); }) ==
        "qtensor: a group of size 0 cannot be; group<dynamic> needs a size of at least 1.");
  CHECK(sentence([] { group<dynamic>(-3); }) ==
        "qtensor: a group of size -3 cannot be; group<dynamic> needs a size of at least 1.");
}

TEST_CASE("block: sizes on the last axes, 1 on the batch axes, `whole` for a whole axis") {
  CHECK(block_of(block<128, 128>{}, {300, 300}) == sizes{128, 128});
  CHECK(block_of(block<1, 128>{}, {300, 300}) == sizes{1, 128});
  CHECK(block_of(block<128, 128>{}, {2, 3, 300, 300}) == sizes{1, 1, 128, 128});
  CHECK(block_of(block<whole, 1>{}, {30, 20}) == sizes{30, 1});
  CHECK(block_of(block<whole, 1>{}, {0, 20}) == sizes{1, 1});
  CHECK(block_of(block<8>{}, {30, 20}) == sizes{1, 8});
  CHECK(block_of(block<2, 3, 4>{}, {9, 9, 9, 9, 9, 9, 9, 9, 9}) == sizes{1, 1, 1, 1, 1, 1, 2, 3, 4});
}

TEST_CASE("block<dynamic, ...>: sizes at run time; those of the type are repeated") {
  CHECK(block_of(block<dynamic, dynamic>(1, 128), {300, 300}) == sizes{1, 128});
  CHECK(block_of(block<dynamic, dynamic>(whole, 16), {300, 300}) == sizes{300, 16});
  CHECK(block_of(block<dynamic, 16>(4, 16), {5, 300, 300}) == sizes{1, 4, 16});
  CHECK(block_of(block<dynamic, 16>{}, {300, 300}) == sizes{1, 16});
  CHECK(block<dynamic, dynamic>(1, 2) == block<dynamic, dynamic>(1, 2));
  CHECK_FALSE(block<dynamic, dynamic>(1, 2) == block<dynamic, dynamic>(2, 1));
  CHECK(sentence([] { block<dynamic, 16>(4, 8); }) ==
        "qtensor: block axis 1 has size 16 in its type but is given 8; repeat the size of the type.");
  CHECK(sentence([] { block<dynamic, dynamic>(4, -8); }) ==
        "qtensor: a block of -8 on block axis 1 cannot be; sizes are at least 1, or `whole`.");
}

TEST_CASE("fits_rank: the axes and block axes exist") {
  CHECK(fits_rank<per_tensor>(1));
  CHECK(fits_rank<per_channel<1>>(2));
  CHECK_FALSE(fits_rank<per_channel<1>>(1));
  CHECK(fits_rank<per_channel<-2>>(2));
  CHECK_FALSE(fits_rank<per_channel<-3>>(2));
  CHECK_FALSE(fits_rank<per_axes<0, 3>>(3));
  CHECK(fits_rank<group<32>>(1));
  CHECK_FALSE(fits_rank<group<32, 2>>(2));
  CHECK(fits_rank<block<8, 8>>(2));
  CHECK_FALSE(fits_rank<block<8, 8>>(1));
}

TEST_CASE("names are spelled as the types are written") {
  CHECK(name_of<per_tensor>() == "per_tensor");
  CHECK(name_of<per_channel<-1>>() == "per_channel<-1>");
  CHECK(name_of<per_axes<0, 2>>() == "per_axes<0,2>");
  CHECK(name_of<group<32>>() == "group<32>");
  CHECK(name_of<group<dynamic, 0>>() == "group<dynamic,0>");
  CHECK(name_of<block<128, 128>>() == "block<128,128>");
  CHECK(name_of<block<dynamic, 4>>() == "block<dynamic,4>");
  CHECK(name_of<halves>() == "halves");
  CHECK(block_of(halves{}, {5, 8}) == sizes{3, 4});
}
