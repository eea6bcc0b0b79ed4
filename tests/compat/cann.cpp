// Mirrors include/qtensor/compat/cann.hpp, the MX operators: NUMERICS 2.5 and 3 in the documents' numbers and strings.
// SPDX-License-Identifier: BSD-3-Clause
#include "compat/cann_calls.hpp"

using namespace calls;

namespace {

/// Codes of one block along the last axis, padded with a zero where their number is odd.
bytes block_codes(const words& x, std::int64_t t, const cann::mx_attributes& how, int scale) {
  words even = x;
  if (even.size() % 2 != 0) even.push_back(0);
  mx_result r = single(even, t, {static_cast<index_t>(even.size())}, -1, how);
  CHECK(r.scales == bytes{static_cast<std::uint8_t>(scale), 0});
  r.y.resize(x.size());
  return r.y;
}

}  // namespace

TEST_CASE("dual axis: the document's sample, {0, 8, 64, 512} as bf16 to e4m3") {
  const dual_result r =
      dual<std::uint16_t>({0, 16640, 17024, 17408}, type::bf16, {1, 4}, {.round_mode = "rint", .dst_type = 36});
  CHECK(r.rows.y == bytes{0, 72, 96, 120});
  CHECK(r.rows.scales == bytes{128, 0});
  CHECK(r.cols.y == bytes{0, 120, 120, 120});  // the sample's zeros are the buffer it starts from
  CHECK(r.cols.scales == bytes{0, 0, 122, 0, 125, 0, 128, 0});
}

TEST_CASE("mxscale sizes: blocks in pairs, one more axis (NUMERICS 3)") {
  const auto check = [](const cann::dims& x, const cann::dims& one, const cann::dims& two) {
    CHECK(cann::mxscale_sizes(x, -1) == one);
    CHECK(cann::mxscale_sizes(x, -2) == two);
  };
  check({1, 4}, {1, 1, 2}, {1, 4, 2});
  check({33, 70}, {33, 2, 2}, {1, 70, 2});
  check({65, 96}, {65, 2, 2}, {2, 96, 2});
  check({36, 34, 32, 36}, {36, 34, 32, 1, 2}, {36, 34, 1, 36, 2});
  check({3, 34, 3, 3, 259, 3, 4}, {3, 34, 3, 3, 259, 3, 1, 2}, {3, 34, 3, 3, 259, 1, 4, 2});
  check({2, 64, 64}, {2, 64, 1, 2}, {2, 1, 64, 2});
  check({1, 1, 1, 1, 1, 1, 2}, {1, 1, 1, 1, 1, 1, 1, 2}, {1, 1, 1, 1, 1, 1, 2, 2});
}

TEST_CASE("mxscale2: two rows of blocks interleave, an odd one stands beside 00 (NUMERICS 3)") {
  for (const index_t rows : {index_t{64}, index_t{96}}) {
    words x(static_cast<std::size_t>(2 * rows));
    for (index_t r = 0; r < rows; ++r) {
      x[static_cast<std::size_t>(2 * r)] = static_cast<std::uint16_t>((127 + r / 32) << 7);      // 1, 2, 4
      x[static_cast<std::size_t>(2 * r + 1)] = static_cast<std::uint16_t>((137 + r / 32) << 7);  // 1024, 2048, 4096
    }
    const dual_result d = dual(x, type::bf16, {rows, 2}, {.dst_type = type::e4m3});
    const bytes all{119, 120, 129, 130, 121, 0, 131, 0};
    CHECK(d.cols.scales == bytes(all.begin(), all.begin() + (rows == 64 ? 4 : 8)));
    CHECK(d.rows.scales[0] == 129);
    CHECK(d.rows.scales[1] == 0);
  }
}

TEST_CASE("layout helpers: pairs and back, for any numbers of blocks") {
  const bytes plain{1, 2, 3, 4, 5, 6};  // 3 blocks of 2 columns
  bytes pairs(8, 0xEE), back(6, 0xEE);
  cann::pair_scales(plain.data(), 1, 3, 2, pairs.data());
  CHECK(pairs == bytes{1, 3, 2, 4, 5, 0, 6, 0});
  cann::unpair_scales(pairs.data(), 1, 3, 2, back.data());
  CHECK(back == plain);
  cann::pair_scales(plain.data(), 2, 3, 1, pairs.data());
  CHECK(pairs == bytes{1, 2, 3, 0, 4, 5, 6, 0});
  cann::unpair_scales(pairs.data(), 2, 3, 1, back.data());
  CHECK(back == plain);
}

TEST_CASE("one block of bf16: round modes, zeros, NaN, infinity (NUMERICS 3)") {
  const auto rint = [](const words& x, std::int64_t dst, int scale) {
    return block_codes(x, type::bf16, {.dst_type = dst}, scale);
  };
  CHECK(rint({0x3F80, 0xBF80, 0x3FC0, 0x3E00}, type::e4m3, 119) == bytes{0x78, 0xF8, 0x7C, 0x60});
  CHECK(rint({0x3F80, 0xBF80, 0x3FC0, 0x3E00}, type::e5m2, 112) == bytes{0x78, 0xF8, 0x7A, 0x6C});
  CHECK(rint({0, 0x8000}, type::e4m3, 0) == bytes{0, 0x80});
  CHECK(rint({0x3F80, 0x7F80, 0, 0xC000}, type::e4m3, 0xFF) == bytes{0, 0, 0, 0});
  CHECK(rint({0x3F80, 0x7FC0}, type::e2m1, 0xFF) == bytes{0, 0});
  CHECK(rint({0x0080, 0x0100}, type::e4m3, 0) == bytes{0x40, 0x48});
  CHECK(rint({0x7F7F, 0x3F80}, type::e4m3, 246) == bytes{0x7E, 0});
  CHECK(rint({0x7F7F, 0x3F80}, type::e1m2, 254) == bytes{7, 0});
  const words a{0x4080, 0xC0A0, 0x4020, 0xBE80, 0x40E0, 0x3F10}, b{0x3F80, 0xBF90, 0x3FF0, 0xBE80, 0x3E00, 0x3F10};
  const auto mode = [](const words& x, std::int64_t dst, const char* name) {
    return block_codes(x, type::bf16, {.round_mode = name, .dst_type = dst}, 127);
  };
  CHECK(mode(a, type::e2m1, "rint") == bytes{6, 0xE, 4, 8, 7, 1});
  CHECK(mode(a, type::e2m1, nullptr) == bytes{6, 0xE, 4, 8, 7, 1});
  CHECK(mode(a, type::e2m1, "round") == bytes{6, 0xF, 5, 9, 7, 1});
  CHECK(mode(a, type::e2m1, "floor") == bytes{6, 0xF, 4, 9, 7, 1});
  CHECK(mode(b, type::e1m2, "rint") == bytes{4, 0xC, 7, 9, 0, 2});
  CHECK(mode(b, type::e1m2, "round") == bytes{4, 0xD, 7, 9, 1, 2});
  CHECK(mode(b, type::e1m2, "floor") == bytes{4, 0xD, 7, 9, 0, 2});
}

TEST_CASE("one block of f16 (NUMERICS 3)") {
  CHECK(block_codes({0x3C00, 0x7BFF, 0x0001, 0x8400}, type::f16, {.dst_type = type::e4m3}, 134) ==
        bytes{0x04, 0x7E, 0x00, 0x80});
  CHECK(block_codes({0x0001, 0x0002, 0x8003}, type::f16, {.dst_type = type::e2m1}, 102) == bytes{4, 6, 0xF});
}

TEST_CASE("subnormal amax: the formula scales exactly, the kernels' way is an option (NUMERICS 3)") {
  const words x{0x0040, 0x8001};
  CHECK(block_codes(x, type::bf16, {.dst_type = type::e4m3}, 0) == bytes{0x38, 0x88});
  CHECK(block_codes(x, type::bf16, {.dst_type = type::e4m3, .subnormals = cann::subnormals::to_zero}, 0) ==
        bytes{0, 0x80});
  // toward minus infinity, too: -0 stays -0
  CHECK(block_codes(x, type::bf16,
                    {.round_mode = "floor", .dst_type = type::e2m1, .subnormals = cann::subnormals::to_zero},
                    0) == bytes{0, 8});
  CHECK(block_codes({0x0001, 0x8003}, type::f16, {.dst_type = type::e2m1, .subnormals = cann::subnormals::to_zero},
                    102) == bytes{4, 0xF});
}

TEST_CASE("scale algorithm 1: amax / largest code rounded up (NUMERICS 2.5)") {
  const auto check = [](const words& x, int e4m3_scale, const bytes& e4m3_codes, int e5m2_scale,
                        const bytes& e5m2_codes) {
    CHECK(block_codes(x, type::bf16, {.dst_type = type::e4m3, .scale_alg = 1}, e4m3_scale) == e4m3_codes);
    CHECK(block_codes(x, type::bf16, {.dst_type = type::e5m2, .scale_alg = 1}, e5m2_scale) == e5m2_codes);
  };
  check({0x43E0, 0x3F80}, 127, {0x7E, 0x38}, 120, {0x7B, 0x58});
  check({0x43E1, 0x3F80}, 128, {0x76, 0x30}, 121, {0x77, 0x54});
  check({0x3F80, 0x3F00}, 119, {0x78, 0x70}, 112, {0x78, 0x74});
  check({0x4760, 0x3F80}, 134, {0x7E, 0x04}, 127, {0x7B, 0x3C});
  check({0, 0}, 0, {0, 0}, 0, {0, 0});
}

TEST_CASE("scale algorithm 1: max_low_bound is the smallest amax; infinities and NaNs stay") {
  const cann::mx_attributes low{.dst_type = type::e4m3, .scale_alg = 1, .max_low_bound = 448};
  CHECK(block_codes({0x3F80, 0xBF00}, type::bf16, low, 127) == bytes{0x38, 0xB0});
  CHECK(block_codes({0, 0x8000}, type::bf16, low, 127) == bytes{0, 0x80});
  CHECK(block_codes({0x4460, 0}, type::bf16, low, 128) == bytes{0x7E, 0});  // 896 is above the bound
  CHECK(block_codes({0x7FC0, 0x3F80}, type::bf16, low, 255) == bytes{0, 0});
}

TEST_CASE("scale algorithm 2: the range of e2m1 (NUMERICS 2.5)") {
  const auto check = [](std::uint16_t amax, double max, int scale) {
    return block_codes({amax, 0x3F80}, type::bf16, {.dst_type = type::e2m1, .scale_alg = 2, .dst_type_max = max},
                       scale);
  };
  for (const double max : {0., 6., 7.}) {
    CHECK(check(0x40C0, max, 127) == bytes{7, 2});
    CHECK(check(0x40C1, max, max == 7. ? 127 : 128) == (max == 7. ? bytes{7, 2} : bytes{5, 1}));
    check(0x40E0, max, max == 7. ? 127 : 128);
    check(0x40E1, max, 128);
    CHECK(check(0x40A0, max, 127) == bytes{6, 2});
  }
  CHECK(block_codes({0x40C1, 0x3F80}, type::bf16, {.dst_type = type::e2m1}, 127) == bytes{7, 2});
  check(0x4100, 8, 127);    // 8 / 8
  check(0x4101, 8, 128);    // just above
  check(0x4140, 12, 127);   // 12 / 12
  check(0x4110, 9.5, 127);  // 9 / 9.5, any number from 6 to 12
  check(0x4120, 9.5, 128);
  CHECK(block_codes({0x7F80, 0}, type::bf16, {.dst_type = type::e2m1, .scale_alg = 2, .dst_type_max = 9.5}, 255) ==
        bytes{0, 0});
}

TEST_CASE("strides: any source, any result, also of half bytes, and nothing between the elements is touched") {
  const index_t rows = 70, cols = 38;
  const words dense = numbers(rows * cols, 21);
  for (const std::int64_t dst : {type::e4m3, type::e2m1}) {
    const cann::mx_attributes how{.dst_type = dst};
    const dual_result wanted = dual(dense, type::bf16, {rows, cols}, how);
    const bytes y1 = unpacked(wanted.rows.y, dst), y2 = unpacked(wanted.cols.y, dst);
    // x: columns of a transposed, reversed matrix; y1: transposed; y2: every other element, last row first.
    words x(static_cast<std::size_t>(rows * cols));
    for (index_t r = 0; r < rows; ++r)
      for (index_t c = 0; c < cols; ++c)
        x[static_cast<std::size_t>(c * rows + rows - 1 - r)] = dense[static_cast<std::size_t>(r * cols + c)];
    const std::size_t per_byte = is_fp4(dst) ? 2 : 1;
    bytes a(static_cast<std::size_t>(rows * cols) / per_byte, 0x55),
        b(2 * static_cast<std::size_t>(rows * cols) / per_byte, 0x55);
    bytes s1(static_cast<std::size_t>(rows * 3 * 2), 0x55), s2(static_cast<std::size_t>(2 * cols * 2), 0x55);
    const cann::status done = cann::dynamic_mx_quant_with_dual_axis(
        {x.data() + rows - 1, type::bf16, {rows, cols}, {-1, rows}}, how, out(a, dst, {rows, cols}, {1, rows}),
        out(s1, type::e8m0, {rows, 1, 2}, {6, 4, 1}),  // with gaps
        {b.data() + 2 * (rows - 1) * cols / static_cast<index_t>(per_byte), dst, {rows, cols}, {-2 * cols, 2}},
        out(s2, type::e8m0, {2, cols, 2}, {1, 2, 2 * cols}));  // pairs apart
    INFO(done.reason);
    REQUIRE(done.code == 0);
    const bytes got_a = unpacked(a, dst), got_b = unpacked(b, dst);
    bool same = true;
    for (index_t r = 0; r < rows; ++r)
      for (index_t c = 0; c < cols; ++c) {
        const std::size_t at = static_cast<std::size_t>(r * cols + c);
        same = same && got_a[static_cast<std::size_t>(c * rows + r)] == y1[at];
        const std::size_t there = static_cast<std::size_t>(2 * ((rows - 1 - r) * cols + c));
        same = same && got_b[there] == y2[at] && got_b[there + 1] == (is_fp4(dst) ? 5 : 0x55);
      }
    CHECK(same);
    for (index_t r = 0; r < rows; ++r) {
      CHECK(s1[static_cast<std::size_t>(6 * r)] == wanted.rows.scales[static_cast<std::size_t>(2 * r)]);
      CHECK(s1[static_cast<std::size_t>(6 * r + 2)] == 0x55);
    }
  }
}

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
