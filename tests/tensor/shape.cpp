// Mirrors include/qtensor/tensor/shape.hpp: the shapes of NUMERICS 3, 4, 5.2, 8.3 and 11.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <qtensor/compat/ggml.hpp>
#include <qtensor/scheme/schemes.hpp>
#include <qtensor/tensor/shape.hpp>
#include <vector>

#include "core/sentence.hpp"
#include "format/of_users.hpp"

using namespace qtensor;

namespace {

using of_users::int12;
struct int20 : integer<20, signed> {
  static constexpr fixed_string name = "int20";
};
struct q7_8 : fixed_point<16, 8> {
  static constexpr fixed_string name = "q7_8";
};

using sizes = std::vector<index_t>;

/// Scales along every axis.
template <granularity G, class E>
sizes scales(const E& extents, const G& g = {}) {
  using shape = tensor_shape<scheme<int8, G>, E>;
  const shape s{extents, g, g};
  sizes out;
  index_t product = 1;
  for (int axis = 0; axis < E::rank; ++axis) {
    out.push_back(s.blocks(g, axis));
    product *= out.back();
  }
  CHECK(product == s.scale_count());
  return out;
}

template <class S, class Order = row_major, class E>
tensor_shape<S, E, Order> shape(const E& extents) {
  return {extents, {}, {}};
}

/// Which scale every element uses, by walking the blocks instead of by a formula.
template <class S, class Order, class E>
bool entries_agree(const E& e) {
  const auto s = shape<S, Order>(e);
  const auto grid = s.scale_grid();
  const auto extents = s.storage_extents();
  constexpr int rank = E::rank;
  std::array<index_t, rank> at{}, blocks{};
  for (int a = 0; a < rank; ++a) blocks[a] = divide_up(extents[a], grid.block[a]);
  for (;;) {
    index_t expected = 0;
    for (int a = 0; a < rank; ++a) expected = expected * blocks[a] + at[a] / grid.block[a];
    if (grid.entry(at) != expected || expected >= s.scale_count()) return false;
    int a = rank - 1;
    while (a >= 0 && ++at[a] == extents[a]) at[a--] = 0;
    if (a < 0) return true;
  }
}

}  // namespace

TEST_CASE("scale counts: oneDNN's masks and groups (NUMERICS 5.2)") {
  CHECK(scales<block<64, 1>>(extents(1024, 512)) == sizes{16, 512});  // mask 3, groups {64, 1}
  CHECK(scales<group<64, 0>>(extents(1024, 512)) == sizes{16, 512});
  CHECK(scales<per_channel<1>>(extents(1024, 512)) == sizes{1, 512});        // mask 2
  CHECK(scales<per_channel<0>>(extents(1024, 512)) == sizes{1024, 1});       // mask 1
  CHECK(scales<block<64, 1>>(extents(8, 1024, 512)) == sizes{8, 16, 512});   // mask 7, groups {64, 1}
  CHECK(scales<per_axes<0, 2>>(extents(8, 1024, 512)) == sizes{8, 1, 512});  // mask 5
  CHECK(scales<per_tensor>(extents(8, 1024, 512)) == sizes{1, 1, 1});        // mask 0
}

TEST_CASE("scale counts: DynamicBlockQuant (NUMERICS 4)") {
  CHECK(scales<block<1, 128>>(extents(5, 300)) == sizes{5, 3});
  CHECK(scales<block<128, 128>>(extents(130, 257)) == sizes{2, 3});
  CHECK(scales<block<128, 128>>(extents(2, 130, 257)) == sizes{2, 2, 3});
  CHECK(scales<block<128, 128>>(extents(1, 1)) == sizes{1, 1});
  CHECK(scales<block<128, 128>>(extents(128, 128)) == sizes{1, 1});
}

TEST_CASE("scale counts: dual-axis MX before its pairs are padded (NUMERICS 3)") {
  const auto both = [](const auto& e, const sizes& rows, const sizes& columns) {
    CHECK(scales<group<32>>(e) == rows);
    CHECK(scales<group<32, -2>>(e) == columns);
  };
  both(extents(1, 4), {1, 1}, {1, 4});
  both(extents(33, 70), {33, 3}, {2, 70});
  both(extents(65, 96), {65, 3}, {3, 96});
  both(extents(36, 34, 32, 36), {36, 34, 32, 2}, {36, 34, 1, 36});
  both(extents(3, 34, 3, 3, 259, 3, 4), {3, 34, 3, 3, 259, 3, 1}, {3, 34, 3, 3, 259, 1, 4});
  both(extents(2, 64, 64), {2, 64, 2}, {2, 2, 64});
}

TEST_CASE("scale counts: run-time sizes, ranks 1 to 9, empty tensors") {
  CHECK(scales<group<dynamic>>(extents(3, 100), group<dynamic>(48)) == sizes{3, 3});
  CHECK(scales<block<dynamic, dynamic>>(extents(10, 100), block<dynamic, dynamic>(4, whole)) == sizes{3, 1});
  CHECK(scales<group<32>>(extents(33)) == sizes{2});
  CHECK(scales<group<32>>(extents(1, 2, 1, 2, 1, 2, 1, 2, 70)) == sizes{1, 2, 1, 2, 1, 2, 1, 2, 3});
  CHECK(scales<per_channel<-1>>(extents(1, 2, 1, 2, 1, 2, 1, 2, 70)) == sizes{1, 1, 1, 1, 1, 1, 1, 1, 70});
  CHECK(scales<per_tensor>(extents(0, 70)) == sizes{0, 1});
  CHECK(scales<group<32>>(extents(7, 0)) == sizes{7, 0});
}

TEST_CASE("row bytes: rows of packed codes are rounded up to whole bytes") {
  CHECK(shape<int4_group<32>>(extents(3, 70)).row_bytes() == 35);
  CHECK(shape<int4_group<32>>(extents(3, 71)).row_bytes() == 36);
  CHECK(shape<int4_group<32>>(extents(3, 71)).code_bytes() == 108);
  CHECK(shape<scheme<int2, per_tensor>>(extents(3, 5)).row_bytes() == 2);
  CHECK(shape<mxfp6_e2m3>(extents(1, 4)).row_bytes() == 3);
  CHECK(shape<mxfp6_e2m3>(extents(1, 5)).row_bytes() == 4);
  CHECK(shape<mxfp6_e2m3>(extents(1, 6)).row_bytes() == 5);
  CHECK(shape<int8_per_tensor>(extents(3, 7)).code_bytes() == 21);
  CHECK(shape<scheme<int16, per_tensor>>(extents(3, 7)).code_bytes() == 42);
  CHECK(shape<scheme<int16, per_tensor>>(extents(3, 7)).code_units() == 21);
  CHECK(shape<scheme<int32, per_tensor>>(extents(3, 7)).code_units() == 21);
}

TEST_CASE("row bytes: codes of 9 to 15 and of 17 to 31 bits have storage units of their own") {
  CHECK(shape<scheme<int12, per_tensor>>(extents(3, 7)).row_bytes() == 14);
  CHECK(shape<scheme<int12, per_tensor>>(extents(3, 7)).code_units() == 21);
  CHECK(shape<scheme<int12, per_tensor>>(extents(3, 7)).row_strides()[0] == 7);
  CHECK(shape<scheme<int20, per_tensor>>(extents(3, 7)).code_bytes() == 84);
  CHECK(interleaved_block<scheme<int12, group<32>, interleaved<>>>::bytes({}) == 68);
}

TEST_CASE("row bytes: col_major packs columns; leading axes flatten into rows") {
  const auto matrix = shape<int4_group<32>, col_major>(extents(71, 3));
  CHECK(matrix.row_length() == 71);
  CHECK(matrix.row_count() == 3);
  CHECK(matrix.row_bytes() == 36);
  CHECK(matrix.storage_extents() == std::array<index_t, 2>{3, 71});
  const auto cube = shape<int4_group<32>>(extents(2, 5, 7));
  CHECK(cube.row_count() == 10);
  CHECK(cube.row_strides() == std::array<index_t, 3>{20, 4, 0});
  const auto turned = shape<int4_group<32>, col_major>(extents(2, 5, 7));
  CHECK(turned.row_length() == 2);
  CHECK(turned.row_strides() == std::array<index_t, 3>{5, 1, 0});  // storage order: 7, 5, 2
  CHECK(shape<int8_per_tensor>(extents(9)).row_count() == 1);
}

TEST_CASE("interleaved blocks: bytes of ggml's blocks (NUMERICS 8.3)") {
  CHECK(interleaved_block<compat::ggml::q8_0>::bytes({}) == 34);
  CHECK(interleaved_block<compat::ggml::q4_0>::bytes({}) == 18);
  CHECK(interleaved_block<compat::ggml::q4_1>::bytes({}) == 20);
  CHECK(interleaved_block<compat::ggml::q4_1>::codes_at == 4);
  CHECK(interleaved_block<compat::ggml::mxfp4>::bytes({}) == 17);
  CHECK(interleaved_block<compat::ggml::q5_0>::bytes({}) == 22);
  CHECK(interleaved_block<compat::ggml::q5_1>::bytes({}) == 24);
  CHECK(interleaved_block<compat::ggml::q8_1>::bytes({}) == 36);
  CHECK(interleaved_block<compat::ggml::q8_1>::sum_at == 2);
  CHECK(interleaved_block<compat::ggml::nvfp4>::bytes({}) == 36);
  CHECK(interleaved_block<compat::ggml::nvfp4>::elements({}) == 64);
  CHECK(interleaved_block<compat::ggml::nvfp4>::codes_at == 4);
  CHECK(shape<compat::ggml::nvfp4>(extents(2, 65)).row_bytes() == 72);
  CHECK(shape<compat::ggml::q8_0>(extents(8, 256)).row_bytes() == 272);
  CHECK(shape<compat::ggml::q4_0>(extents(8, 256)).code_bytes() == 8 * 144);
  CHECK(shape<compat::ggml::q8_0>(extents(2, 33)).row_bytes() == 68);  // a short block has a whole block's room
  using turned = along<0, compat::ggml::q8_0>;
  CHECK(shape<turned, col_major>(extents(33, 2)).row_bytes() == 68);
}

TEST_CASE("grids: every element finds the entry of its block, in both orders and ranks 1 to 5") {
  CHECK(entries_agree<scheme<int8, group<4>>, row_major>(extents(10)));
  CHECK(entries_agree<scheme<int8, block<3, 4>>, row_major>(extents(10, 11)));
  CHECK(entries_agree<scheme<int8, block<3, 4>>, col_major>(extents(10, 11)));
  CHECK(entries_agree<scheme<int8, per_channel<1>>, col_major>(extents(3, 4, 5)));
  CHECK(entries_agree<scheme<int8, per_axes<0, 3>>, row_major>(extents(2, 3, 2, 5)));
  CHECK(entries_agree<scheme<int8, group<2, 1>>, col_major>(extents(2, 5, 2, 3, 2)));
}

TEST_CASE("grids: col_major lists blocks in storage order") {
  const auto grid = shape<scheme<int8, block<2, 3>>, col_major>(extents(4, 6)).scale_grid();
  CHECK(grid.block == std::array<index_t, 2>{3, 2});
  CHECK(grid.stride == std::array<index_t, 2>{2, 1});
  CHECK(grid.entry({5, 0}) == 2);  // column 5, row 0
  CHECK(grid.entry({0, 3}) == 1);
}

TEST_CASE("grids: blocks are no longer than the axis they lie on, and of one element where there are none") {
  const auto blocks = [](auto scheme, auto e) {
    const auto block = shape<decltype(scheme)>(e).scale_grid().block;
    return sizes(block.begin(), block.end());
  };
  CHECK(blocks(scheme<int8, group<32>>{}, extents(5, 20)) == sizes{1, 20});
  CHECK(blocks(scheme<int8, group<32>>{}, extents(5, 33)) == sizes{1, 32});
  CHECK(blocks(scheme<int8, block<16, 16>>{}, extents(3, 40)) == sizes{3, 16});
  CHECK(blocks(scheme<int8, group<32>>{}, extents(5, 0)) == sizes{1, 1});
}

TEST_CASE("zero points: counted by their own granularity") {
  using own = scheme<uint4, group<32>, zero_point<uint4, per_channel<0>>>;
  const auto s = shape<own>(extents(5, 100));
  CHECK(s.scale_count() == 20);
  CHECK(s.zero_point_count() == 5);
  CHECK(s.zero_grid().entry({4, 99}) == 4);
  CHECK(shape<int4_group<32>>(extents(5, 100)).zero_point_count() == 0);
  CHECK(shape<uint4_group<32>>(extents(5, 100)).zero_point_count() == 20);
}

TEST_CASE("shapes: sizes beyond 63 bits throw, those beyond 2^31 do not") {
  CHECK(shape<int4_group<32>>(extents(1 << 20, 1 << 20)).code_bytes() == index_t{1} << 39);
  CHECK(shape<int4_group<32>>(extents(1 << 20, 1 << 20)).scale_count() == index_t{1} << 35);
  CHECK(sentence([] { (void)shape<int8_per_tensor>(extents(index_t{1} << 32, index_t{1} << 32)).code_bytes(); }) ==
        "qtensor: a size of 4294967296 times 4294967296 does not fit 63 bits.");
}

TEST_CASE("checked_product: of none 1, with a 0 among them 0, however large the others, else what fits or throws") {
  constexpr index_t huge = index_t{1} << 40;
  const auto product = [](const std::vector<index_t>& sizes) { return detail::checked_product(sizes); };
  CHECK(product({}) == 1);
  CHECK(product({3, 5, 7}) == 105);
  CHECK(product({huge, huge, 0}) == 0);
  CHECK(product({0, huge, huge}) == 0);
  CHECK(sentence([&] {
          product({2, huge, huge});
        }) == "qtensor: a size of 2199023255552 times 1099511627776 does not fit 63 bits.");
}

TEST_CASE("shapes: constant expressions, and the code of one for every scale format") {
  static_assert(tensor_shape<mxfp4, extents<8, 64>>{}.code_bytes() == 256 &&
                tensor_shape<mxfp4, extents<8, 64>>{}.scale_count() == 16);
  CHECK(decode<f32>(detail::one_code<f32>()) == 1.f);
  CHECK(decode<bf16>(detail::one_code<bf16>()) == 1.f);
  CHECK(decode<f16>(detail::one_code<f16>()) == 1.f);
  CHECK(decode<e8m0>(detail::one_code<e8m0>()) == 1.f);
  CHECK(decode<e4m3>(detail::one_code<e4m3>()) == 1.f);
  CHECK(decode<e5m2fnuz>(detail::one_code<e5m2fnuz>()) == 1.f);
  CHECK(decode<hif8>(detail::one_code<hif8>()) == 1.f);
  CHECK(decode<q7_8>(detail::one_code<q7_8>()) == 1.f);
}
