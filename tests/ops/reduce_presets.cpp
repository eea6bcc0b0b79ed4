// Mirrors include/qtensor/ops/reduce_presets.hpp: what the proposals give for one tensor.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/reduce_presets.hpp>

#include "ops/reduce_check.hpp"

using namespace reduce_check;

TEST_CASE("rfc: options 1 to 3, the approved and the shipped form on the tensor of NUMERICS 7.4") {
  const auto x = codes_in<u8>(extents(1, 3), .5f, 10, {110, 130, 250});
  const auto zero = number_like(x, 0.f);
  const auto wide = requantize_to<i32>(.25f);
  const auto narrow = requantize_to<u8>(1.f, 5);
  const auto dims = dimensions(1);
  CHECK(codes_of(reduce(x, zero, dims, wide, add, narrow)) == std::vector<int>{235});
  CHECK(codes_of(rfc::rescale_first(x, wide(0.f), dims, wide, add, narrow)) == std::vector<int>{235});
  CHECK(codes_of(rfc::rescale_first(x, wide(0.f), dims, wide, add)) == std::vector<int>{920});
  CHECK(codes_of(rfc::approved(x, zero, dims, wide, add, narrow)) == std::vector<int>{235});
  CHECK(codes_of(rfc::shipped(x, zero, dims, wide, add)) == std::vector<int>{920});
  const auto widening_add = [&](auto element, auto accumulator) { return add(wide(element), accumulator); };
  const auto y = rfc::front_to_back(x, wide(0.f), dims, widening_add);
  CHECK(codes_of(y) == std::vector<int>{920});
  CHECK(y.scale(0) == .25f);
}

TEST_CASE("rfc: option 2 is a reduction of the tensor that was converted first, on bytes and step by step") {
  std::vector<int> codes(3 * 700);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<int>(i * 37 % 256);
  const auto x = codes_in<u8>(extents(3, 700), .5f, 10, codes);
  const auto narrow = requantize_to<u8>(9.f, 5);
  for (const auto& wide : {requantize_to<i32>(.25f), requantize_to<i32>(.3f, 9), requantize_to<i32>(1e-6f)}) {
    const auto same = [&](const auto& dims, const auto& body) {
      CHECK(codes_of(rfc::rescale_first(x, wide(3.f), dims, wide, body, narrow)) ==
            codes_of(reduce(converted(x, wide), wide(3.f), dims, identity{}, body, narrow)));
    };
    same(dimensions(0), add);
    same(dimensions(1), add);
    same(dimensions(1), max);
    same(dimensions(1), [](const auto& a, const auto& b) { return add(b, a); });
  }
}

TEST_CASE("rfc: option 3 goes front to back: the element first, the accumulator second") {
  const std::vector<float> x = {1, 2, 3};
  const auto body = [](float element, double acc) { return acc * 10 + static_cast<double>(element); };
  CHECK(rfc::front_to_back(source(x.data(), extents(3)), 7.0, dimensions(0), body) == 7123.0);
}

TEST_CASE("rfc: option 3 keeps the init value's scale") {
  const auto x = codes_in<u8>(extents(2), .5f, 10, {1, 2});
  const auto drifts = [](auto, auto acc) { return requantize_to<i32>(acc.scale * 2.f)(acc); };
  CHECK(mentions(sentence([&] { rfc::front_to_back(x, requantize_to<i32>(1.f)(0.f), dimensions(0), drifts); }),
                 "element_type(init_values) = element_type(results)"));
}

TEST_CASE("rfc: is_promotable compares kinds and bits") {
  static_assert(rfc::is_promotable<quantized_number<u8>, quantized_number<i32>>);
  static_assert(!rfc::is_promotable<quantized_number<i32>, quantized_number<u8>>);
  static_assert(!rfc::is_promotable<quantized_number<u8>, float>);
  static_assert(rfc::is_promotable<real<bf16>, float>);
  static_assert(!rfc::is_promotable<float, real<bf16>>);
  static_assert(rfc::is_promotable<std::int8_t, std::uint16_t>);
  static_assert(!rfc::is_promotable<bool, int>);
  CHECK(rfc::is_promotable<float, double>);
}

TEST_CASE("rfc: shipped, bf16 accumulated in f32") {
  const std::vector<std::uint16_t> ones = {0x4380, 0x3f80, 0x3f80};  // 256, 1, 1
  const auto x = source<bf16>(ones.data(), extents(3));
  CHECK(rfc::shipped(x, real<bf16>(0.f), dimensions(0), convert_to<f32>{}, add) == 258.f);
}
