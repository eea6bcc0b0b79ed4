// Mirrors include/qtensor/ops/quantize.hpp: whole tensors against the scalar reference, byte for byte.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/quantize.hpp>

#include "check.hpp"

using namespace qtensor;

namespace {

/// Quantizes through memory of any rank and order and compares; shapes cover short blocks, odd rows, several tiles.
template <quantization_scheme S, storage_order Order, class E, class... Sized>
void compare(const E& extents, unsigned seed, const Sized&... granularity) {
  const std::vector<float> x = check::numbers(extents.size(), seed);
  const auto got = quantize<S, Order>(source(x.data(), extents), granularity...);
  const auto want = check::expected<S, Order>(x, extents, granularity...);
  INFO(std::string(name<S>), " rank ", E::rank, " first extent ", extents[0], " last extent ", extents[E::rank - 1]);
  CHECK(check::same_bytes(got, want));
}

template <quantization_scheme S, storage_order Order = row_major, class... Sized>
void compare_matrices(const Sized&... granularity) {
  unsigned seed = 1;
  for (const auto& [rows, cols] : {std::pair{1, 1}, {3, 70}, {33, 64}, {5, 4500}, {130, 257}, {17, 31}, {0, 4}, {4, 0}})
    compare<S, Order>(matrix_extents(rows, cols), ++seed, granularity...);
}

}  // namespace

TEST_CASE("quantize: integers equal the reference for every granularity and any shape") {
  compare_matrices<int8_per_tensor>();
  compare_matrices<int8_per_channel<0>>();
  compare_matrices<uint8_per_channel<-1>>();
  compare_matrices<int4_group<32>>();
  check::in_full<scheme<int4, group<5>>, scheme<int8, group<3000>>>([]<class S>() { compare_matrices<S>(); });
}

TEST_CASE("quantize: more blocks than the caches hold, each longer than a tile") {
  static_assert(60 * 4600 > 2 * ops::box_floats);
  compare<int8_per_channel<0>, row_major>(matrix_extents(60, 4600), 21);
  compare<uint8_per_channel<1>, col_major>(matrix_extents(4600, 60), 22);
  compare<scheme<int4, group<4600>>, row_major>(matrix_extents(30, 9200), 23);
  compare<int8_per_channel<0>, col_major>(matrix_extents(60, 4600), 24);
}

TEST_CASE("quantize: FP8, FP4 and HiF8 equal the reference in blocks and MX groups along either axis") {
  compare_matrices<fp8_block<128, 128>>();
  compare_matrices<mxfp8_e4m3>();
  compare_matrices<along<0, mxfp4>>();
  check::in_full<nvfp4, hif8_block<4, 64>>([]<class S>() { compare_matrices<S>(); });
}

TEST_CASE("quantize: the other storage order") {
  compare_matrices<uint8_per_channel<0>, col_major>();
  compare_matrices<mxfp4, col_major>();
  compare_matrices<scheme<e5m2, block<whole, 16>>, col_major>();
}

TEST_CASE("quantize: two levels of scales; roundings at random") {
  compare_matrices<with<nvfp4, tensor_scale<f32>>>();
  compare_matrices<with<int8_per_tensor, stochastic<7>>>();
}

TEST_CASE("quantize: run-time group and block sizes") {
  compare_matrices<scheme<int8, group<dynamic>>, row_major>(group<dynamic>{48});
  compare_matrices<scheme<e4m3, block<dynamic, dynamic>>, row_major>(block<dynamic, dynamic>{2, 64});
}

TEST_CASE("quantize: run-time sizes beside scales, and beside the level of a tensor") {
  const std::vector<float> x = check::numbers(3 * 40, 33);
  const auto memory = source(x.data(), matrix_extents(3, 40));
  using groups = scheme<int8, group<dynamic>>;
  const std::vector<float> scales = {.5f, .25f, .125f, 1.f, 2.f, 4.f};
  tensor<groups> wanted(matrix_extents(3, 40), group<dynamic>{20});
  store_scales(wanted.span(), scales);
  quantize_static_into(wanted, memory);
  CHECK(check::same_bytes(quantize<groups>(memory, scales, group<dynamic>{20}), wanted));
  CHECK(check::same_bytes(quantize<groups>(memory, group<dynamic>{20}, scales), wanted));

  using two_levels = scheme<e2m1, group<dynamic>, scale_as<e4m3>, nvfp4_scale, reciprocal, tensor_scale<f32>>;
  tensor<two_levels> below(matrix_extents(3, 40), group<dynamic>{10});
  quantize_into(below.span(), memory, tensor_level{0.25f, 0.25f});
  CHECK(check::same_bytes(quantize<two_levels>(memory, tensor_level{0.25f, 0.25f}, group<dynamic>{10}), below));
}

TEST_CASE("quantize: ranks 1 to 5, scales shared across leading axes or not") {
  compare<int8_per_tensor, row_major>(extents(300), 1);
  compare<mxfp4, col_major>(extents(70), 2);
  compare<mxfp8_e4m3, row_major>(extents(2, 3, 5, 96), 3);
  compare<int8_per_channel<1>, row_major>(extents(2, 7, 5, 9), 4);
  compare<int8_per_channel<1>, col_major>(extents(2, 7, 5, 9), 5);
  compare<uint8_per_channel<0>, row_major>(extents(4, 3, 33), 6);
  compare<fp8_block<4, 16>, row_major>(extents(2, 3, 9, 40), 7);
  compare<scheme<int8, per_axes<0, 2>>, row_major>(extents(3, 2, 4, 5, 6), 8);
}

TEST_CASE("quantize: static scales and zero points") {
  const std::vector<float> x = check::numbers(6 * 70, 11);
  const matrix_extents shape(6, 70);
  const auto codes_are = [&](const auto& t) {
    using S = typename std::remove_cvref_t<decltype(t)>::scheme_type;
    const auto v = t.view();
    for (index_t r = 0; r < 6; ++r)
      for (index_t c = 0; c < 70; ++c)
        if (v.code(r, c) !=
            quantize_element<S>(x[static_cast<std::size_t>(r * 70 + c)], {v.scale(r, c)}, v.zero_point(r, c)))
          return false;
    return true;
  };
  CHECK(codes_are(quantize<int8_per_tensor>(source(x.data(), shape), 0.05f)));
  CHECK(codes_are(quantize<uint8_per_tensor>(source(x.data(), shape), 0.25, 128)));
  const std::vector<float> per_row{0.1f, 0.2f, 0.3f, 1.f, 2.f, 4.f};
  const std::vector<int> zeros{0, 1, 128, 255, 3, 4};
  const auto rows = quantize<uint8_per_channel<0>>(source(x.data(), shape), per_row, zeros);
  CHECK(rows.scale(2, 5) == 0.3f);
  CHECK(rows.zero_point(3, 69) == 255);
  CHECK(codes_are(rows));
  const std::vector<float> groups(6 * 3, 0.125f);
  CHECK(codes_are(quantize<int4_group<32>>(source(x.data(), shape), groups)));
  CHECK(codes_are(quantize<scheme<uint4, group<32>, zero_point<uint4, per_channel<0>>>>(
      source(x.data(), shape), groups, std::vector<int>{0, 1, 2, 3, 4, 15})));
  CHECK(codes_are(
      quantize<scheme<int8, per_channel<1>, static_only>>(source(x.data(), shape), std::vector<float>(70, 0.7f))));
  CHECK(codes_are(quantize<scheme<e4m3, mx_group<32>, scale_as<e8m0>, static_only>>(source(x.data(), shape), 0.5f)));
}

TEST_CASE("quantize_into: memory into a tensor that is there already, in either order") {
  const auto check_into = []<class S, class Order, class E>(std::type_identity<S>, Order, const E& shape) {
    const std::vector<float> x = check::numbers(shape.size(), 31);
    const auto memory = source(x.data(), shape);
    tensor<S, E, Order> dynamic(shape), fixed(shape);
    quantize_into(dynamic, memory);
    CHECK(check::same_bytes(dynamic, quantize<S, Order>(memory)));
    store_scales(fixed.span(), 0.5f);
    quantize_static_into(fixed, memory);
    CHECK(check::same_bytes(fixed, quantize<S, Order>(memory, 0.5f)));
  };
  check_into(std::type_identity<int8_per_channel<0>>{}, row_major{}, matrix_extents(9, 40));
  check_into(std::type_identity<int8_per_channel<0>>{}, col_major{}, matrix_extents(9, 40));
  check_into(std::type_identity<mxfp4>{}, row_major{}, extents(2, 3, 70));
  using two_levels = with<nvfp4, tensor_scale<f32>>;
  const std::vector<float> x = check::numbers(6 * 40, 32);
  const auto memory = source(x.data(), matrix_extents(6, 40));
  tensor<two_levels> t(matrix_extents(6, 40));
  quantize_into(t.span(), memory, tensor_level{0.25f});
  CHECK(check::same_bytes(t, quantize<two_levels>(memory, tensor_level{0.25f})));
}

TEST_CASE("quantize_into: memory of other extents is refused, and nothing is written") {
  const std::vector<float> x(12, 1.f);
  tensor<int8_per_tensor> t(matrix_extents(4, 3));
  CHECK_THROWS_WITH(quantize_into(t.span(), source(x.data(), matrix_extents(3, 4))),
                    "qtensor: memory of 3 along axis 0 is quantized into a tensor of 4; extents must agree.");
  CHECK(t.codes()[0] == 0);
}

TEST_CASE("quantize: wrong counts, scales and zero points are refused with a sentence, before anything is written") {
  const std::vector<float> x(12, 1.f);
  const auto says = [](auto call, const char* text) {
    try {
      call();
      return std::string("nothing was thrown");
    } catch (const error& e) {
      return std::string(e.what()).find(text) != std::string::npos ? std::string() : std::string(e.what());
    }
  };
  const auto matrix = source(x.data(), matrix_extents(3, 4));
  CHECK(says(
            [&] {
              quantize<int8_per_channel<0>>(matrix, std::vector<float>{1.f, 2.f});
            },
            "given 2 scales but the tensor has 3 blocks") == "");
  CHECK(says(
            [&] {
              quantize<int8_per_channel<0>>(matrix, std::vector<float>{1.f, 2.f, 0.f});
            },
            "scale 2 is 0; a scale must be finite and positive") == "");
  CHECK(says([&] { quantize<int8_per_tensor>(matrix, infinity); }, "scale 0 is inf") == "");
  CHECK(says([&] { quantize<int8_per_tensor>(matrix, quiet_nan); }, "scale 0 is nan") == "");
  CHECK(says([&] { quantize<int8_per_tensor>(matrix, -1.f); }, "scale 0 is -1") == "");
  CHECK(says([&] { quantize<scheme<int8, per_tensor, scale_as<f16>>>(matrix, 1e-9f); }, "which f16 stores as 0") == "");
  CHECK(says([&] { quantize<uint8_per_tensor>(matrix, 1.f, 256); },
             "zero point 0 is 256; it must be a code that uint8 holds, from 0 to 255") == "");
  CHECK(says([&] { quantize<uint8_per_tensor>(matrix, 1.f, -1); }, "zero point 0 is -1") == "");
  CHECK(says([&] { quantize<uint8_per_channel<0>>(matrix, 1.f, std::vector<int>{1}); },
             "given 1 zero points but the tensor has 3 blocks") == "");

  tensor<int8_per_tensor> out(matrix_extents(2, 2));
  out.codes()[0] = 77;
  CHECK(says(
            [&] {
              quantize_into(matrix_ref<const float>{x.data(), 3, 4, 4, 1}, out.span());
            },
            "given 3 rows of 4 elements for a tensor that stores 2 rows of 2") == "");
  CHECK(out.codes()[0] == 77);
}
