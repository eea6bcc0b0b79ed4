// Mirrors include/qtensor/ops/pack.hpp and ops/packed.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/compat/ggml.hpp>
#include <qtensor/ops/dequantize.hpp>
#include <qtensor/ops/pack.hpp>
#include <qtensor/scheme/schemes.hpp>
#include <vector>

#include "../simd/check.hpp"

namespace simd = qtensor::simd;
using namespace qtensor;

namespace check {

/// Any bits are codes, scales and zero points.
template <class Tensor>
void fill_with_random_bits(Tensor& t) {
  const auto fill = [](auto units) {
    for (auto& u : units) {
      const std::uint32_t bits = random_bits()();
      std::memcpy(&u, &bits, sizeof u);
    }
  };
  if constexpr (Tensor::scheme_type::is_interleaved) {
    fill(t.blocks());
    return;
  } else {
    fill(t.codes());
    fill(t.scales());
  }
  if constexpr (Tensor::scheme_type::has_zero_point) fill(t.zero_points());
}

}  // namespace check

namespace {

/// Reads a packed matrix as packed.hpp describes it, and compares every code and parameter with the view's.
template <class S, class A, depth_axis Depth, class View, class Packed>
void check_packed(const View& view, const Packed& p) {
  using layout = typename Packed::layout_type;
  using code = packed_code<typename S::code_format>;
  constexpr index_t width = layout::width;
  const layout& l = p.layout();
  const bool by_rows = Depth == depth_axis::cols;
  REQUIRE(l.outputs == (by_rows ? view.rows() : view.cols()));
  REQUIRE(l.depth == (by_rows ? view.cols() : view.rows()));
  REQUIRE(reinterpret_cast<std::uintptr_t>(p.data()) % 64 == 0);
  const auto packed_at = [&](index_t n, index_t k) {
    const index_t quad = k / l.group * l.group_quads() + k % l.group / 4, c = n % width;
    const std::uint8_t* words = p.panel(n / width).codes + quad * layout::quad_bytes;
    if (!layout::is_nibble) return static_cast<std::uint8_t>(words[c * 4 + k % l.group % 4]);
    const std::uint8_t byte = words[c % (width / 2) * 4 + k % l.group % 4];
    return static_cast<std::uint8_t>(c < width / 2 ? byte & 15 : byte >> 4);
  };
  for (index_t n = 0; n < l.outputs; ++n)
    for (index_t g = 0; g < l.groups(); ++g) {
      const auto panel = p.panel(n / width);
      const index_t entry = g * width + n % width;
      std::int32_t sum = 0;
      for (index_t k = g * l.group; k < std::min((g + 1) * l.group, l.depth); ++k) {
        const std::array<index_t, 2> at = by_rows ? std::array<index_t, 2>{n, k} : std::array<index_t, 2>{k, n};
        const std::uint8_t found = packed_at(n, k), want = code::of(static_cast<std::uint8_t>(view.code(at)));
        REQUIRE(found == (layout::is_nibble ? want & 15 : want));
        REQUIRE(detail::code_of<typename S::scale_format>(panel.scales[entry]) == view.scale_code(at));
        if constexpr (S::has_zero_point) REQUIRE(panel.zeros[entry] == view.zero_point(at) + code::offset);
        if constexpr (S::has_offset)
          REQUIRE(bits_of(panel.offsets[entry]) ==
                  bits_of(view.storage_offset(reordered<typename View::order_type>(at))));
        sum += layout::is_nibble ? found : static_cast<std::int8_t>(found);
      }
      if constexpr (code::is_integer) REQUIRE(panel.sums[entry] == sum);
    }
}

template <class S, class Order = row_major>
void check_scheme(std::initializer_list<index_t> depths) {
  for (const index_t rows : {1, 9, 33, 65})
    for (const index_t cols : depths) {
      tensor<S, matrix_extents, Order> w(matrix_extents(rows, cols));
      check::fill_with_random_bits(w);
      check::archs::for_each([&](auto arch) {
        using A = decltype(arch);
        check_packed<stored<S>, A, depth_axis::cols>(w.view(), pack<A>(w));
        check_packed<stored<S>, A, depth_axis::rows>(w.view(), pack<A, depth_axis::rows>(w));
      });
    }
}

/// Codes that begin anywhere, on words or not, are packed alike.
template <class S>
void check_places() {
  tensor<S> w(matrix_extents(65, 96));
  check::fill_with_random_bits(w);
  const auto view = std::as_const(w).view();
  const auto here = pack(w);
  const auto n = w.codes().size() * sizeof w.codes()[0];
  std::vector<std::uint8_t> room(n + 4);
  for (std::size_t first = 0; first < 4; ++first) {
    std::memcpy(room.data() + first, w.codes().data(), n);
    auto memory = view.memory();
    memory.codes = reinterpret_cast<decltype(memory.codes)>(room.data() + first);
    const auto there = pack(std::remove_const_t<decltype(view)>(view.shape(), memory));
    CHECK(std::equal(here.bytes().begin(), here.bytes().end(), there.bytes().begin(), there.bytes().end()));
  }
}

/// Panels of weights that no second cache holds are those of their outputs alone.
template <class S>
void check_far(index_t depth) {
  check::archs::for_each([&](auto arch) {
    using A = decltype(arch);
    using layout = typename decltype(pack<A>(std::declval<const tensor<S>&>()))::layout_type;
    constexpr index_t width = layout::width, many = (index_t{1} << 20) / width;
    const index_t panels = many / (layout::quad_bytes / width * depth / 4) + 2, outputs = panels * width - 1;
    tensor<S> w(matrix_extents(outputs, depth));
    check::fill_with_random_bits(w);
    const auto all = pack<A>(w);
    REQUIRE(!ops::weights_are_near(all.layout()));
    for (index_t p = 0; p < panels; ++p) {
      const index_t some = std::min(width, outputs - p * width);
      tensor<S> of(matrix_extents(some, depth));
      const auto part = of.codes().size();
      std::copy_n(w.codes().begin() + p * width * static_cast<index_t>(part) / some, part, of.codes().begin());
      const auto alone = pack<A>(of);
      REQUIRE(ops::weights_are_near(alone.layout()));
      const std::uint8_t* const codes = all.panel(p).codes;
      CHECK(std::equal(codes, codes + all.layout().panel_bytes(), alone.panel(0).codes));
    }
  });
}

using uint4_per_channel = scheme<uint4, per_channel<0>, zero_point<uint4>>;

}  // namespace

TEST_CASE("pack: 8-bit integers, signed and unsigned, in either order") {
  check_scheme<int8_per_tensor>({1, 4, 7, 64, 300});
  check_scheme<int8_per_channel<0>, col_major>({5, 70});
  check_scheme<uint8_per_channel<1>>({5, 70});
  check_scheme<uint8_per_tensor, col_major>({33});
}
TEST_CASE("pack: nibbles, two outputs a byte; groups that end inside a quad, short last groups") {
  check_scheme<int4_group<32>>({1, 32, 45, 128});
  check_scheme<uint4_group<32>>({33, 96});
  check_scheme<int4_group<6>>({6, 20});
  check_scheme<mxfp4, col_major>({40});
  check_scheme<nvfp4>({48});
}
TEST_CASE("pack: runs longer than are read at once, across groups; outputs that lie side by side") {
  check_scheme<int4_group<32>>({257, 300, 608});
  check_scheme<int4_group<30>>({301});
  check_scheme<uint4_per_channel>({33, 301});
  check_scheme<scheme<int4, group<32, 0>>>({16, 30, 65});
  check_scheme<scheme<uint4, per_tensor>, col_major>({17, 64});
  check_scheme<scheme<int2, group<32>>>({40, 300});
  check_scheme<scheme<int2, per_channel<1>>>({64});
  check_scheme<mxfp6_e2m3, col_major>({40, 64});
  check_scheme<with<mxfp6_e3m2, group<32, 0>>>({64});
}
TEST_CASE("pack: groups that are no whole quads, some of which are read together") {
  check_scheme<scheme<int8, group<1>>>({1, 7, 64, 65, 300});
  check_scheme<scheme<int8, group<2>>>({9, 257});
  check_scheme<scheme<uint8, group<3>, zero_point<uint8>>>({7, 66, 200});
  check_scheme<scheme<int8, group<125>>>({124, 251, 600});
  check_scheme<scheme<int8, group<130>>>({131, 520});
  check_scheme<int4_group<1>>({1, 66, 129});
  check_scheme<uint4_group<7>>({6, 75, 300});
  check_scheme<int8_per_channel<1>, col_major>({3, 130});
}
TEST_CASE("pack: scales and zero points of many groups, which lie side by side; of formats of all sizes") {
  check_scheme<scheme<uint8, group<16>, zero_point<uint8>, scale_as<bf16>>>({16, 50, 300});
  check_scheme<scheme<int8, group<8>, zero_point<int8>, scale_as<e4m3>>>({130});
  check_scheme<scheme<uint4, group<12>, zero_point<uint8>>>({100});
  check_scheme<scheme<int8, group<16>, zero_point<int32>>>({100});
  check_scheme<scheme<int8, group<16>, zero_point<int8, group<48>>>>({100});
  check_scheme<scheme<int8, group<48>, zero_point<int8, per_channel<0>>>>({100});
  check_scheme<scheme<int8, block<4, 16>, zero_point<int8>>>({100});
}
TEST_CASE("pack: interleaved blocks, of one group and of several, with offsets, with a short last block") {
  check_scheme<compat::ggml::q8_0>({32, 96, 300});
  check_scheme<compat::ggml::q4_0>({32, 75, 320});
  check_scheme<compat::ggml::q4_1>({64, 300});
  check_scheme<compat::ggml::q5_1>({64, 100});
  check_scheme<compat::ggml::nvfp4>({64, 200, 320});
  check_scheme<compat::ggml::mxfp4>({40, 128});
  check_scheme<with<int8_group<24>, interleaved<>>>({24, 70});
}
TEST_CASE("pack: codes that begin between words") {
  check_places<int8_per_tensor>();
  check_places<int4_group<32>>();
  check_places<uint8_per_tensor>();
  check_places<mxfp8_e4m3>();
}
TEST_CASE("pack: weights that are far, whose next panel is asked for on the way") {
  check_far<int8_per_tensor>(1024 + 36);
  check_far<uint8_per_channel<1>>(1024 + 36);
  check_far<int4_group<32>>(1024);
  check_far<mxfp4>(1024 + 160);
  check_far<mxfp8_e4m3>(1024);
}
TEST_CASE("pack: other formats keep their codes in bytes") {
  check_scheme<mxfp8_e4m3>({40});
  check_scheme<mxfp6_e2m3>({40});
  check_scheme<fp8_block<8, 16>>({40});
}
TEST_CASE("weights_of: groups end where a scale or a zero point changes, whatever the depth") {
  using rows = scheme<int8, per_channel<0>, zero_point<int8, group<16>>>;
  using both = scheme<int8, group<48>, zero_point<int8, group<32>>>;
  const auto group_of = []<class S>(const tensor<S>& t) {
    return ops::weights_of<tensor_view<S>, depth_axis::cols>(t.view()).group();
  };
  CHECK(group_of(tensor<rows>(matrix_extents(2, 45))) == 16);
  CHECK(group_of(tensor<rows>(matrix_extents(2, 15))) == 15);
  CHECK(group_of(tensor<both>(matrix_extents(2, 100))) == 16);
  CHECK(group_of(tensor<both>(matrix_extents(2, 40))) == 32);
  CHECK(group_of(tensor<both>(matrix_extents(2, 32))) == 32);
  CHECK(group_of(tensor<both>(matrix_extents(2, 0))) == 1);
}
TEST_CASE("pack: nothing to pack") {
  const tensor<int8_per_tensor> none(matrix_extents(0, 5)), flat(matrix_extents(5, 0));
  CHECK(pack(none).rows() == 0);
  CHECK(pack(none).cols() == 5);
  CHECK(pack(flat).layout().quads() == 0);
  CHECK(packed<stored<int8_per_tensor>>().rows() == 0);
}

TEST_CASE("packed: what lies between arrays is the same in every memory") {
  tensor<int4_group<32>> w(matrix_extents(33, 40));
  check::fill_with_random_bits(w);
  const auto all_bytes = [&](std::uint8_t before) {
    const auto size = static_cast<std::size_t>(pack(w).size_bytes());
    std::memset(detail::line_memory(size).data(), before, size);  // which is given out again
    const auto p = pack(w);
    return std::vector<std::byte>(p.bytes().begin(), p.bytes().end());
  };
  CHECK(all_bytes(0) == all_bytes(255));
}
TEST_CASE("packed: bytes that are stored and read again are the same weights") {
  tensor<with<nvfp4, tensor_scale<f32>>> w(matrix_extents(33, 40));
  check::fill_with_random_bits(w);
  *w.span().memory().tensor_scale = 0.25f;
  const auto p = pack(w);
  const auto q = std::remove_const_t<decltype(p)>::from_bytes(p.bytes());
  CHECK(q.tensor_scale() == 0.25f);
  CHECK((q.rows() == 33 && q.cols() == 40));
  CHECK(std::equal(p.bytes().begin(), p.bytes().end(), q.bytes().begin(), q.bytes().end()));
}
TEST_CASE("packed: what is not for this scheme and architecture is refused") {
  tensor<int8_per_tensor> w(matrix_extents(9, 20));
  check::fill_with_random_bits(w);
  const auto p = pack(w);
  using type = std::remove_const_t<decltype(p)>;
  std::vector<std::byte> bytes(p.bytes().begin(), p.bytes().end());
  CHECK_THROWS_WITH(type::from_bytes(std::span(bytes).first(10)),
                    "qtensor: 10 bytes are no packed weights; their header alone has 248.");
  CHECK_THROWS_WITH(
      (packed<stored<int8_per_channel<0>>>::from_bytes(bytes)),
      "qtensor: these weights are packed as int8 x per_tensor / f32, and are read as int8 x per_channel<0> "
      "/ f32.");
  CHECK_THROWS_AS(type::from_bytes(std::span(bytes).first(bytes.size() - 1)), error);
  const auto portable = pack<simd::scalar_arch>(w);
  if (!std::is_same_v<simd::best_arch, simd::scalar_arch>)
    CHECK_THROWS_WITH(type::from_bytes(portable.bytes()),
                      ("qtensor: these weights are packed for portable, and are to be multiplied with " +
                       std::string(simd::arch_name<simd::best_arch>) + "; pack the tensor again.")
                          .c_str());
  bytes[0] = std::byte{0};
  CHECK_THROWS_WITH(type::from_bytes(bytes),
                    "qtensor: these bytes are no packed weights; they do not begin with qtpack01.");
}

TEST_CASE("packed: sizes that only together leave 64 bits are refused") {
  const packed_layout<stored<int8_group<32>>, simd::best_arch> layout{index_t{1} << 31, 966367641, 1};
  CHECK_THROWS_WITH(layout.bytes(), doctest::Contains("bytes in one array are more than 64 bits count"));
}
