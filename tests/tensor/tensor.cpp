// Mirrors include/qtensor/tensor/tensor.hpp: what a tensor starts as, its memory, copies, moves and printing.
// Conversions between schemes, extents and orders are in tensor_conversions.cpp, inline tensors in tensor_inline.cpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <algorithm>
#include <qtensor/compat/ggml.hpp>
#include <qtensor/scheme/schemes.hpp>
#include <qtensor/tensor/tensor.hpp>
#include <sstream>
#include <vector>

#include "core/sentence.hpp"
#include "tensor/numbered.hpp"

using namespace qtensor;

namespace {

/// Codes 0, scales 1, zero points 0: real zeros.
template <class T>
bool is_zero(const T& t) {
  bool zero = true;
  reference::for_each_index(typename T::extents_type::array{}, t.extents().to_array(), [&](const auto& at) {
    const auto v = t.view();
    zero = zero && v.code(at) == 0 && v.scale(at) == 1.f && v.zero_point(at) == 0 && reference::value(v, at) == 0.f;
  });
  return zero && t.tensor_scale() == 1.f;
}

template <class T>
std::string printed(const T& t) {
  std::ostringstream out;
  out << t;
  return out.str();
}

template <class P>
bool on_a_line(const P* p) {
  return reinterpret_cast<std::uintptr_t>(p) % 64 == 0;
}

// The types of the arrays.
static_assert(std::is_same_v<decltype(std::declval<tensor<int8_per_tensor>&>().codes()), std::span<std::int8_t>>);
static_assert(
    std::is_same_v<decltype(std::declval<const tensor<int8_per_tensor>&>().codes()), std::span<const std::int8_t>>);
static_assert(
    std::is_same_v<decltype(std::declval<const tensor<int8_per_tensor>&>().scales()), std::span<const float>>);
static_assert(std::is_same_v<decltype(std::declval<const tensor<uint8_per_tensor>&>().zero_points()),
                             std::span<const std::uint8_t>>);
static_assert(std::is_same_v<decltype(std::declval<const tensor<compat::ggml::q8_0>&>().blocks()),
                             std::span<const std::uint8_t>>);
static_assert(std::is_same_v<decltype(std::declval<tensor<mxfp4>&>().codes()), std::span<std::uint8_t>>);
static_assert(std::is_same_v<decltype(std::declval<tensor<int8_per_tensor>&>().scales()), std::span<float>>);
static_assert(std::is_same_v<decltype(std::declval<tensor<scheme<int8, per_tensor, scale_as<bf16>>>&>().scales()),
                             std::span<std::uint16_t>>);
static_assert(std::is_same_v<decltype(std::declval<tensor<compat::ggml::q8_0>&>().blocks()), std::span<std::uint8_t>>);

// A view of a temporary would dangle.
template <class T>
concept views_temporaries = requires {
  std::declval<T>().view();
};
static_assert(!views_temporaries<tensor<mxfp4>> && views_temporaries<tensor<mxfp4>&> &&
              views_temporaries<const tensor<mxfp4>&>);
static_assert(quantized<tensor<mxfp4>> && quantized<const tensor<mxfp4>&> && quantized<tensor_view<mxfp4>> &&
              !quantized<int>);
static_assert(std::is_nothrow_move_constructible_v<tensor<mxfp4>> && std::is_nothrow_move_assignable_v<tensor<mxfp4>>);

}  // namespace

TEST_CASE("tensor: starts as zeros, whatever it stores") {
  CHECK(is_zero(tensor<int8_per_tensor>(matrix_extents(3, 5))));
  CHECK(is_zero(tensor<uint4_group<32>>(matrix_extents(3, 70))));
  CHECK(is_zero(tensor<mxfp6_e3m2>(matrix_extents(3, 70))));
  CHECK(is_zero(tensor<with<nvfp4, tensor_scale<f32>>>(matrix_extents(3, 70))));
  CHECK(is_zero(tensor<hif8_block<2, 2>>(matrix_extents(3, 5))));
  CHECK(is_zero(tensor<scheme<int32, per_tensor, scale_as<bf16>>>(matrix_extents(3, 5))));
  CHECK(is_zero(tensor<compat::ggml::q8_0>(matrix_extents(3, 70))));
  CHECK(is_zero(tensor<compat::ggml::q4_1>(matrix_extents(3, 70))));
}

TEST_CASE("tensor: arrays of the sizes its shape says, each on a line of 64 bytes, in one allocation") {
  const tensor<uint4_group<32>> t(matrix_extents(5, 71));
  CHECK(t.codes().size() == 5 * 36);
  CHECK(t.scales().size() == 15);
  CHECK(t.zero_points().size() == 15);
  CHECK(t.byte_size() == 180 + 60 + 15);
  CHECK(on_a_line(t.codes().data()));
  CHECK(on_a_line(t.scales().data()));
  CHECK(on_a_line(t.zero_points().data()));
  const auto* codes = reinterpret_cast<const unsigned char*>(t.codes().data());
  CHECK(reinterpret_cast<const unsigned char*>(t.scales().data()) == codes + 192);
  CHECK(t.zero_points().data() == codes + 192 + 64);
  CHECK(t.rows() == 5);
  CHECK(t.cols() == 71);
  CHECK(t.size() == 355);
  CHECK(tensor<with<nvfp4, tensor_scale<f32>>>(matrix_extents(2, 16)).byte_size() == 16 + 2 + 4);
  CHECK(tensor<compat::ggml::q8_0>(matrix_extents(2, 33)).byte_size() == 2 * 68);
}

TEST_CASE("tensor: empty ones, by default or by extents, hold nothing") {
  CHECK(tensor<mxfp4>().size() == 0);
  CHECK(tensor<mxfp4>().codes().empty());
  CHECK(tensor<mxfp4>(matrix_extents(0, 40)).byte_size() == 0);
  CHECK(tensor<mxfp4>(matrix_extents(40, 0)).scales().empty());
  CHECK(tensor<compat::ggml::q8_0>(matrix_extents(0, 32)).blocks().empty());
  const tensor<uint8_per_tensor> none(matrix_extents(0, 0));
  CHECK(tensor<uint8_per_tensor>(none).size() == 0);
  CHECK(printed(none) == "0x0 [uint8 x per_tensor / f32 + zero_point<uint8>]");
}

TEST_CASE("tensor: ranks 1 to 9") {
  const auto check = [](const auto& e, index_t scales) {
    const tensor<mxfp4, std::remove_cvref_t<decltype(e)>> t(e);
    CHECK(t.rank == e.rank);
    CHECK(static_cast<index_t>(t.scales().size()) == scales);
    CHECK(is_zero(t));
  };
  check(extents(70), 3);
  check(extents(2, 70), 6);
  check(extents(2, 3, 33), 12);
  check(extents(1, 2, 3, 33), 12);
  check(extents(1, 1, 2, 3, 33), 12);
  check(extents(1, 2, 1, 1, 3, 33), 12);
  check(extents(1, 2, 1, 1, 3, 1, 33), 12);
  check(extents(1, 2, 1, 1, 3, 1, 1, 33), 12);
  check(extents(1, 2, 1, 1, 3, 1, 1, 2, 33), 24);
}

TEST_CASE("tensor: run-time granularities come after the extents") {
  const tensor<scheme<int8, group<dynamic>>> t(matrix_extents(2, 100), group<dynamic>(64));
  CHECK(t.scales().size() == 4);
  CHECK(t.granularity().size() == 64);
  using own = scheme<int8, group<dynamic>, zero_point<int8, block<dynamic, dynamic>>>;
  const tensor<own> two(matrix_extents(4, 100), group<dynamic>(50), block<dynamic, dynamic>(2, whole));
  CHECK(two.scales().size() == 8);
  CHECK(two.zero_points().size() == 2);
  const tensor<scheme<uint8, group<dynamic>, zero_point<uint8>>> shared(matrix_extents(2, 100), group<dynamic>(64));
  CHECK(shared.zero_points().size() == 4);
}

TEST_CASE("tensor: copies copy, and leave the original alone") {
  const auto a = numbered<uint4_group<32>>(matrix_extents(4, 70));
  auto b = a;
  CHECK(shows(b.view(), a.view(), {0, 0}));
  CHECK(b.codes().data() != a.codes().data());
  b.codes()[0] ^= 0xFF;
  CHECK(b.code(0, 0) != a.code(0, 0));
  tensor<uint4_group<32>> c(matrix_extents(1, 1));
  c = a;
  CHECK(shows(c.view(), a.view(), {0, 0}));
  const auto& itself = c;
  c = itself;
  CHECK(shows(c.view(), a.view(), {0, 0}));
  const auto two_levels = numbered<with<nvfp4, tensor_scale<f32>>>(matrix_extents(2, 20));
  const auto same_levels = two_levels;
  CHECK(shows(same_levels.view(), two_levels.view(), {0, 0}));
  const auto offsets =
      numbered<scheme<uint4, group<8>, scale_as<f16>, offset<f16>, static_only>>(matrix_extents(2, 20));
  const auto same_offsets = offsets;
  CHECK(shows(same_offsets.view(), offsets.view(), {0, 0}));
}

TEST_CASE("tensor: moves move the memory and leave no elements behind") {
  auto a = numbered<uint4_group<32>>(matrix_extents(4, 70));
  const auto copy = a;
  const auto* codes = a.codes().data();
  auto b = std::move(a);
  CHECK(b.codes().data() == codes);
  CHECK(shows(b.view(), copy.view(), {0, 0}));
  CHECK(a.size() == 0);
  CHECK(a.codes().empty());
  CHECK(a.view().size() == 0);
  a = numbered<uint4_group<32>>(matrix_extents(2, 3));  // and can be used again
  CHECK(a.size() == 6);
  a = std::move(b);
  CHECK(a.codes().data() == codes);
  CHECK(b.size() == 0);
  auto& itself = a;
  a = std::move(itself);
  CHECK(shows(a.view(), copy.view(), {0, 0}));
  std::swap(a, b);
  CHECK(b.codes().data() == codes);
}

TEST_CASE("tensor: what was moved from can be copied") {
  auto two_levels = numbered<with<nvfp4, tensor_scale<f32>>>(matrix_extents(2, 20));
  const auto taken = std::move(two_levels);
  const auto copy = two_levels;
  CHECK(copy.size() == 0);
  // Static extents stay; the copy is of the right size.
  tensor<scheme<int8, group<dynamic>>, extents<2, 8>> fixed(extents<2, 8>(), group<dynamic>(4));
  const auto rest = std::move(fixed);
  const auto fresh = fixed;
  CHECK(rest.codes().size() == 16);
  CHECK(fresh.codes().size() == 16);
  CHECK(fresh.code(1, 7) == 0);
}

TEST_CASE("tensor: prints its extents and its scheme") {
  CHECK(printed(tensor<int4_group<32>>(matrix_extents(48, 160))) == "48x160 [int4 x group<32> / f32]");
  CHECK(printed(tensor<mxfp4, extents<2, 3, 64>>()) == "2x3x64 [e2m1 x group<32> / e8m0]");
  CHECK(printed(tensor<with<mxfp4, mx_rceil>, dynamic_extents<1>>(extents(7))) == "7 [e2m1 x group<32> / e8m0]");
}

TEST_CASE("tensor: sizes that cannot be are refused before anything is allocated") {
  CHECK(sentence([] { tensor<int8_per_tensor> t(matrix_extents(index_t{1} << 32, index_t{1} << 32)); }) ==
        "qtensor: a size of 4294967296 times 4294967296 does not fit 63 bits.");
}

TEST_CASE("tensor: bytes do not depend on how they are reached") {
  auto t = numbered<mxfp4>(matrix_extents(2, 40));
  CHECK(t.view().memory().codes == t.codes().data());
  CHECK(t.span().memory().scales == t.scales().data());
  const tensor_view<mxfp4> implicitly = t;
  CHECK(implicitly.memory().codes == t.codes().data());
  CHECK(as_view(t).memory().codes == t.codes().data());
  CHECK(as_view(t.span()).memory().codes == t.codes().data());
  CHECK(as_view(t.view()).memory().codes == t.codes().data());
}
