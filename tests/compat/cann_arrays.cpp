// Mirrors include/qtensor/compat/cann_arrays.hpp: what is refused, with which status, and that nothing is written.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <map>
#include <random>

#include "compat/cann_calls.hpp"

using namespace calls;

namespace {

/// A call of DynamicMxQuantWithDualAxis that is right until something is changed.
struct dual_call {
  words x = words(64 * 2 + 2, 0x3F80);
  bytes y1 = bytes(128, 0xEE), s1 = bytes(128, 0xEE), y2 = bytes(128, 0xEE), s2 = bytes(4, 0xEE);
  cann::input in{x.data(), type::bf16, {64, 2}};
  cann::mx_attributes how{.dst_type = type::e4m3};
  cann::output first{y1.data(), type::e4m3, {64, 2}}, second{y2.data(), type::e4m3, {64, 2}};
  cann::output scale1{s1.data(), type::e8m0, {64, 1, 2}}, scale2{s2.data(), type::e8m0, {1, 2, 2}};

  cann::status run() const { return cann::dynamic_mx_quant_with_dual_axis(in, how, first, scale1, second, scale2); }
};
/// Refused with this status and a reason that holds these words; nothing is written.
template <class Change>
void refused(std::int64_t code, const char* word, Change change) {
  dual_call c;
  change(c);
  const cann::status s = c.run();
  INFO(s.reason);
  CHECK(s.code == code);
  CHECK_FALSE(s.ok());
  CHECK(s.reason.find(word) != std::string::npos);
  CHECK(c.y1 == bytes(128, 0xEE));
  CHECK(c.s1 == bytes(128, 0xEE));
  CHECK(c.y2 == bytes(128, 0xEE));
  CHECK(c.s2 == bytes(4, 0xEE));
}

}  // namespace

TEST_CASE("dual axis: what is refused, with which status, and that nothing is written") {
  CHECK(dual_call().run().ok());
  refused(161001, "x is a null", [](dual_call& c) { c.in.data = nullptr; });
  refused(161001, "y1 is a null", [](dual_call& c) { c.first.data = nullptr; });
  refused(161001, "mxscale1 is a null", [](dual_call& c) { c.scale1.data = nullptr; });
  refused(161001, "y2 is a null", [](dual_call& c) { c.second.data = nullptr; });
  refused(161001, "mxscale2 is a null", [](dual_call& c) { c.scale2.data = nullptr; });
  refused(361001, "platform", [](dual_call& c) { c.how.platform = cann::platform::a2_a3; });
  refused(361001, "platform", [](dual_call& c) { c.how.platform = cann::platform::other; });
  refused(161002, "platform is 9; its choices are 0 to 3.",
          [](dual_call& c) { c.how.platform = static_cast<cann::platform>(9); });
  refused(161002, "subnormals is -1; its choices are 0 to 1.",
          [](dual_call& c) { c.how.subnormals = static_cast<cann::subnormals>(-1); });
  refused(161002, "data type 2", [](dual_call& c) { c.in.type = type::int8; });
  refused(161002, "rank 1", [](dual_call& c) { c.in.sizes = {128}; });
  refused(161002, "rank 8", [](dual_call& c) { c.in.sizes = {1, 1, 1, 1, 1, 1, 64, 2}; });
  refused(161002, "rank 9", [](dual_call& c) { c.in.sizes = {1, 1, 1, 1, 1, 1, 1, 64, 2}; });
  refused(161002, "at least 0", [](dual_call& c) { c.in.sizes = {-64, 2}; });
  refused(161002, "63 bits", [](dual_call& c) { c.in.sizes = {index_t{1} << 40, index_t{1} << 40}; });
  refused(161002, "63 bits", [](dual_call& c) { c.in.strides = {index_t{1} << 60, 1}; });
  refused(161002, "3 strides", [](dual_call& c) { c.in.strides = {2, 1, 1}; });
  refused(161002, "aligned", [](dual_call& c) { c.in.data = reinterpret_cast<const char*>(c.x.data()) + 1; });
  refused(161002, "dst_type is 2", [](dual_call& c) { c.how.dst_type = 2; });
  refused(161002, "dst_type is 34", [](dual_call& c) { c.how.dst_type = 34; });
  refused(161002, "\"ceil\"", [](dual_call& c) { c.how.round_mode = "ceil"; });
  refused(161002, "\"\"", [](dual_call& c) { c.how.round_mode = ""; });
  refused(161002, "rint only", [](dual_call& c) { c.how.round_mode = "floor"; });
  refused(161002, "rint only", [](dual_call& c) { c.how.round_mode = "round"; });
  refused(161002, "scale_alg is 3", [](dual_call& c) { c.how.scale_alg = 3; });
  refused(161002, "scale_alg is -1", [](dual_call& c) { c.how.scale_alg = -1; });
  refused(161002, "scale_alg 2", [](dual_call& c) { c.how.scale_alg = 2; });
  refused(161002, "ascend950", [](dual_call& c) { c.how.scale_alg = 1, c.how.platform = cann::platform::ascend950; });
  refused(161002, "block_size is 64", [](dual_call& c) { c.how.block_size = 64; });
  refused(161002, "dst_type_max", [](dual_call& c) { c.how.dst_type_max = 6; });
  refused(161002, "max_low_bound", [](dual_call& c) { c.how.max_low_bound = 1; });
  refused(161002, "y1 has data type", [](dual_call& c) { c.first.type = type::e5m2; });
  refused(161002, "mxscale2 has data type", [](dual_call& c) { c.scale2.type = type::e4m3; });
  refused(161002, "[64, 2]", [](dual_call& c) { c.second.sizes = {2, 64}; });
  refused(161002, "[64, 1, 2]", [](dual_call& c) { c.scale1.sizes = {64, 2}; });
  refused(161002, "[1, 2, 2]", [](dual_call& c) { c.scale2.sizes = {2, 1, 2}; });
  refused(161002, "twice", [](dual_call& c) { c.first.strides = {1, 1}; });
  refused(161002, "twice", [](dual_call& c) { c.first.strides = {0, 1}; });
  refused(161002, "y1 overlaps x", [](dual_call& c) {  // however far its elements reach
    c.first.data = c.x.data() + 63, c.first.strides = {-(index_t{1} << 36), 1};
  });
  refused(161002, "twice", [](dual_call& c) {
    c.in.sizes = c.first.sizes = c.second.sizes = {64, 2, 2};
    c.in.strides = {0, 0, 0}, c.first.strides = {index_t{1} << 36, -(index_t{1} << 36), 1};
  });
  refused(161002, "y1 overlaps y2", [](dual_call& c) { c.second.data = c.y1.data() + 127; });
  refused(161002, "mxscale1 overlaps mxscale2", [](dual_call& c) { c.scale2.data = c.s1.data(); });
  refused(161002, "y1 overlaps x", [](dual_call& c) { c.first.data = c.x.data() + 4; });
  refused(161002, "even", [](dual_call& c) {
    c.how.dst_type = type::e2m1;
    c.in.sizes = {64, 1};
  });
  refused(161002, "e2m1 (dst_type 40) only", [](dual_call& c) {
    c.how.dst_type = type::e1m2;
    c.how.scale_alg = 2;
  });
  refused(161002, "FP8", [](dual_call& c) {
    c.how.dst_type = type::e2m1;
    c.how.scale_alg = 1;
  });
  refused(161002, "6 to 12", [](dual_call& c) {
    c.how.dst_type = type::e2m1;
    c.how.scale_alg = 2;
    c.how.dst_type_max = 5.5;
  });
  refused(161002, "positive", [](dual_call& c) {
    c.how.scale_alg = 1;
    c.how.max_low_bound = -1;
  });
}

TEST_CASE("dual axis: results between one another's elements, and no elements at all") {
  dual_call c;
  bytes both(256, 0xEE);
  c.first = {both.data(), type::e4m3, {64, 2}, {4, 1}};
  c.second = {both.data() + 2, type::e4m3, {64, 2}, {4, 1}};
  const cann::status s = c.run();
  INFO(s.reason);
  CHECK(s.ok());
  CHECK(both == bytes(256, 0x78));
  dual_call none;
  none.in = {nullptr, type::bf16, {0, 2}};
  none.first = none.second = {nullptr, type::e4m3, {0, 2}};
  none.scale1 = {nullptr, type::e8m0, {0, 1, 2}};
  none.scale2 = {nullptr, type::e8m0, {0, 2, 2}};
  CHECK(none.run().ok());
  constexpr index_t huge = index_t{1} << 40;
  none.in.sizes = none.first.sizes = none.second.sizes = {0, huge, huge};
  none.scale1.sizes = {0, huge, huge / 64, 2};
  none.scale2.sizes = {0, huge / 64, huge, 2};
  CHECK(none.run().ok());
}

TEST_CASE("arrays that fold, and that share memory, by any strides: as places one by one say") {
  std::mt19937 random(11);
  const auto draw = [&](int low, int high) { return low + static_cast<int>(random() % unsigned(high - low + 1)); };
  constexpr std::intptr_t origin = 1 << 20;
  const auto array = [&] {
    constexpr std::int64_t types[] = {type::f32, type::bf16, type::int8, type::e2m1};
    cann::output a{reinterpret_cast<void*>(origin + draw(0, 12) * 4), types[draw(0, 3)]};
    for (int axis = draw(1, 3); axis > 0; --axis) a.sizes.append(draw(1, 4)), a.strides.append(draw(-9, 9));
    if (draw(0, 1) == 0)
      for (int axis = 0; axis < a.strides.rank(); ++axis) a.strides[axis] *= draw(1, 9);
    return a;
  };
  // How often each nibble of memory is part of an element.
  const auto nibbles = [&](const cann::output& a) {
    std::map<std::intptr_t, int> count;
    const std::intptr_t width = cann::parts::bits_of_type(a.type) / 4;
    std::array<index_t, 3> sizes{1, 1, 1}, strides{};
    for (int axis = 0; axis < a.sizes.rank(); ++axis)
      sizes[static_cast<std::size_t>(axis)] = a.sizes[axis], strides[static_cast<std::size_t>(axis)] = a.strides[axis];
    for (index_t i = 0; i < sizes[0]; ++i)
      for (index_t j = 0; j < sizes[1]; ++j)
        for (index_t k = 0; k < sizes[2]; ++k)
          for (std::intptr_t n = 0; n < width; ++n)
            ++count[2 * reinterpret_cast<std::intptr_t>(a.data) +
                    (i * strides[0] + j * strides[1] + k * strides[2]) * width + n];
    return count;
  };
  int folding = 0, sharing = 0;
  for (int i = 0; i < 20000; ++i) {
    const cann::output a = array(), b = array();
    const auto of_a = nibbles(a), of_b = nibbles(b);
    const bool folds = std::any_of(of_a.begin(), of_a.end(), [](const auto& n) { return n.second > 1; });
    const bool share = std::any_of(of_a.begin(), of_a.end(), [&](const auto& n) { return of_b.count(n.first) > 0; });
    REQUIRE(cann::parts::folds(a) == folds);
    REQUIRE(cann::parts::share_memory(a, b) == share);
    folding += folds, sharing += share;
  }
  CHECK(std::min(folding, 20000 - folding) > 2000);
  CHECK(std::min(sharing, 20000 - sharing) > 2000);
}

TEST_CASE("single axis: what only it refuses") {
  words x(64, 0x3F80);
  bytes y(64, 0xEE), s(4, 0xEE);
  const auto code = [&](std::int64_t axis, const cann::mx_attributes& how, const cann::dims& scale_sizes) {
    const std::int64_t status = cann::dynamic_mx_quant(in(x, type::bf16, {64}), axis, how, out(y, how.dst_type, {64}),
                                                       out(s, type::e8m0, scale_sizes))
                                    .code;
    if (status != 0) CHECK(y == bytes(64, 0xEE));
    return status;
  };
  CHECK(code(1, {.dst_type = type::e4m3}, {1, 2}) == 161002);
  CHECK(code(-2, {.dst_type = type::e4m3}, {1, 2}) == 161002);
  CHECK(code(0, {.dst_type = type::e4m3, .block_size = 0}, {1, 2}) == 161002);
  CHECK(code(0, {.dst_type = type::e4m3, .block_size = 48}, {1, 2}) == 161002);
  CHECK(code(0, {.dst_type = type::e4m3, .block_size = 1056}, {1, 2}) == 161002);
  CHECK(code(0, {.dst_type = type::e2m1, .block_size = 64, .scale_alg = 2}, {1, 2}) == 161002);
  CHECK(code(0, {.dst_type = type::e4m3}, {2, 1}) == 161002);
  CHECK(code(0, {.dst_type = type::e4m3, .platform = cann::platform::other}, {1, 2}) == 361001);
  std::vector<float> f(16, 1.f);
  const cann::mx_attributes strict{.dst_type = type::e4m3, .platform = cann::platform::ascend950};
  CHECK(cann::dynamic_mx_quant(in(f, type::f32, {16}), 0, strict, out(y, type::e4m3, {16}), out(s, type::e8m0, {1, 2}))
            .code == 161002);
  CHECK(code(0, {.dst_type = type::e4m3}, {1, 2}) == 0);
}
