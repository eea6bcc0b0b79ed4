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
  CHECK_THROWS_WITH(cann::mxscale_sizes({4, 64}, 2), "qtensor: axis is 2; x of rank 2 has axes -2 to 1.");
  CHECK_THROWS_WITH(cann::mxscale_sizes({4, 64}, 1, 0), "qtensor: block_size is 0; it is at least 1.");
  CHECK_THROWS_WITH(cann::mxscale_sizes({1, 1, 1, 1, 1, 1, 1, 1}, 0),
                    "qtensor: x has rank 8; its scales have one axis more, and 8 at most.");
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
