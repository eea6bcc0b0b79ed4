// Mirrors include/qtensor/compat/cann_blocks.hpp: strided walks; DynamicBlockQuant with the vectors of NUMERICS 4.
// SPDX-License-Identifier: BSD-3-Clause
#include "compat/cann_calls.hpp"

using namespace calls;

namespace {

/// Codes and scales of DynamicBlockQuant.
struct block_result {
  bytes y;
  std::vector<float> scales;
};
block_result blocks(const words& x, std::int64_t t, const cann::dims& sizes, const cann::block_attributes& how) {
  cann::dims s = sizes;
  const int rank = sizes.rank();
  s[rank - 2] = divide_up(s[rank - 2], how.row_block_size);
  s[rank - 1] = divide_up(s[rank - 1], how.col_block_size);
  block_result r{bytes(x.size(), 0xEE), std::vector<float>(static_cast<std::size_t>(count_of(s)), -7.f)};
  const cann::status done =
      cann::dynamic_block_quant(in(x, t, sizes), how, out(r.y, how.dst_type, sizes), out(r.scales, type::f32, s));
  INFO(done.reason);
  REQUIRE(done.code == 0);
  return r;
}
/// One block; its scale must have these bits.
bytes quant_codes(const words& x, std::int64_t t, const cann::block_attributes& how, std::uint32_t scale) {
  const block_result r = blocks(x, t, {1, static_cast<index_t>(x.size())}, how);
  INFO("scale ", r.scales[0]);
  CHECK(bits_of(r.scales[0]) == scale);
  return r.y;
}

/// Scale bits of a block of f32 with an unusual NaN.
std::uint32_t scale_of_nan_payload() {
  const std::vector<float> x{1.f, float_of(0xFFC12345u)};
  bytes y(2);
  std::vector<float> s(1);
  const cann::status done =
      cann::dynamic_block_quant(in(x, type::f32, {1, 2}), {}, out(y, type::e5m2, {1, 2}), out(s, type::f32, {1, 1}));
  const auto typed = quantize<cann::block_quant<>>(source(x.data(), matrix_extents(1, 2)));
  CHECK(bits_of(typed.scales()[0]) == bits_of(s[0]));
  return done.ok() ? bits_of(s[0]) : 0;
}

}  // namespace

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

TEST_CASE("transposed sources and results, in blocks along both axes: what dense ones give") {
  for (const auto& [rows, cols] : {std::pair<index_t, index_t>{1, 38}, {70, 1}, {70, 38}, {33, 300}, {260, 130}}) {
    const cann::mx_attributes how{.dst_type = type::e4m3};
    const words x = numbers(rows * cols, static_cast<unsigned>(rows));
    const auto turned = [&, n = rows, m = cols](const auto& from) {
      auto to = from;
      for (index_t r = 0; r < n; ++r)
        for (index_t c = 0; c < m; ++c)
          to[static_cast<std::size_t>(c * n + r)] = from[static_cast<std::size_t>(r * m + c)];
      return to;
    };
    const words x_turned = turned(x);
    for (const index_t axis : {0, 1}) {
      const mx_result wanted = single(x, type::bf16, {rows, cols}, axis, how);
      for (int choice = 1; choice < 4; ++choice) {
        const bool of_x = (choice & 1) != 0, of_y = (choice & 2) != 0;
        const cann::dims dense{cols, 1}, across{1, rows};
        bytes y(wanted.y.size(), 0x55), scales(wanted.scales.size(), 0x55);
        REQUIRE(
            cann::dynamic_mx_quant({of_x ? x_turned.data() : x.data(), type::bf16, {rows, cols}, of_x ? across : dense},
                                   axis, how, out(y, type::e4m3, {rows, cols}, of_y ? across : dense),
                                   out(scales, type::e8m0, cann::mxscale_sizes({rows, cols}, axis)))
                .ok());
        CHECK(y == (of_y ? turned(wanted.y) : wanted.y));
        CHECK(scales == wanted.scales);
      }
    }
  }
}

TEST_CASE("short rows, of which a tile holds several: each is what it is alone, and nothing between them is touched") {
  for (const std::int64_t dst : {type::e4m3, type::e2m1})
    for (const index_t cols : {2, 4, 16, 30, 64, 96, 100})
      for (const index_t rows : {1, 3, 70, 1100}) {
        CAPTURE(cols);
        CAPTURE(rows);
        const cann::mx_attributes how{.dst_type = dst};
        const words x = numbers(rows * cols, static_cast<unsigned>(cols + rows));
        const mx_result all = single(x, type::bf16, {rows, cols}, -1, how);
        mx_result wanted;
        const index_t gap = 6, step = cols + gap, per_byte = is_fp4(dst) ? 2 : 1;
        bytes apart(static_cast<std::size_t>(rows * step / per_byte), 0x55),
            untouched(static_cast<std::size_t>(gap), is_fp4(dst) ? 5 : 0x55), wanted_apart, scales(all.scales.size());
        REQUIRE(cann::dynamic_mx_quant(in(x, type::bf16, {rows, cols}), -1, how,
                                       out(apart, dst, {rows, cols}, {step, 1}),
                                       out(scales, type::e8m0, cann::mxscale_sizes({rows, cols}, -1)))
                    .ok());
        for (index_t r = 0; r < rows; ++r) {
          const mx_result one =
              single(words(x.begin() + r * cols, x.begin() + (r + 1) * cols), type::bf16, {1, cols}, -1, how);
          wanted.y.insert(wanted.y.end(), one.y.begin(), one.y.end());
          wanted.scales.insert(wanted.scales.end(), one.scales.begin(), one.scales.end());
          wanted_apart.insert(wanted_apart.end(), one.y.begin(), one.y.end());
          wanted_apart.insert(wanted_apart.end(), untouched.begin(), untouched.end());
        }
        CHECK(all.y == wanted.y);
        CHECK(all.scales == wanted.scales);
        CHECK(scales == wanted.scales);
        CHECK((is_fp4(dst) ? unpacked(apart, dst) : apart) == wanted_apart);
      }
}

TEST_CASE("DynamicBlockQuant: the vectors of NUMERICS 4") {
  const words x{0x3F80, 0xBF00, 0x4040, 0x3DCD};
  const auto codes = [](const words& v, const cann::block_attributes& how, std::uint32_t scale) {
    return quant_codes(v, type::bf16, how, scale);
  };
  CHECK(codes(x, {.dst_type = type::e4m3}, 0x3BDB6DB7) == bytes{0x71, 0xE9, 0x7E, 0x57});
  CHECK(codes(x, {}, 0x385B6DB7) == bytes{0x75, 0xF1, 0x7B, 0x67});  // rint, e5m2, 1 x 128, 0.0
  CHECK(codes(x, {.round_mode = "round", .dst_type = type::hif8}, 0x38C00000) == bytes{0x6B, 0xE9, 0x6E, 0x64});
  CHECK(codes(x, {.dst_type = type::int8}, 0x3CC18306) == bytes{0x2A, 0xEB, 0x7F, 0x04});
  CHECK(codes(x, {.min_scale = 1000, .dst_type = type::e4m3}, 0x3A83126F) == bytes{0x7E, 0xFE, 0x7E, 0x6D});
  CHECK(codes(x, {.min_scale = 100, .dst_type = type::e4m3}, 0x3BDB6DB7) == bytes{0x71, 0xE9, 0x7E, 0x57});
  CHECK(codes({0x42C8, 0x3F80}, {.min_scale = 10, .dst_type = type::e4m3}, 0x3DCCCCCD) == bytes{0x7E, 0x52});
  CHECK(codes({0, 0x8000}, {}, 0) == bytes{0, 0});
  CHECK(codes({0x7F7F, 0x3F80}, {.round_mode = "round", .dst_type = type::hif8}, 0x77FF0000) == bytes{0x6E, 0});
  CHECK(codes({0x7F80, 0x3F80}, {.dst_type = type::e4m3}, 0x7F800000) == bytes{0, 0});
  const words half{0x3C00, 0x7BFF, 0x0001, 0xC500};
  CHECK(quant_codes(half, type::f16, {.dst_type = type::e4m3}, 0x431236DB) == bytes{0x04, 0x7E, 0x00, 0x91});
  CHECK(quant_codes(half, type::f16, {.round_mode = "round", .dst_type = type::hif8}, 0x3FFFE000) ==
        bytes{0x18, 0x6E, 0x00, 0x92});
}

TEST_CASE("DynamicBlockQuant: infinities and NaNs as the kernels, or left out") {
  const words x{0x7F80, 0x3F80, 0x7FC0, 0xFF80};
  const cann::block_attributes literal{.dst_type = type::e4m3};
  CHECK(quant_codes(x, type::bf16, literal, 0x7FC00000) == bytes{0, 0, 0, 0});
  CHECK(quant_codes({0x7F80, 0xBF80}, type::bf16, literal, 0x7F800000) == bytes{0, 0x80});
  const cann::block_attributes golden{.dst_type = type::e4m3, .nonfinites = cann::nonfinites::ignored};
  CHECK(quant_codes(x, type::bf16, golden, 0x3B124925) == bytes{0x7E, 0x7E, 0, 0xFE});
  CHECK(quant_codes(x, type::bf16, {.dst_type = type::int8, .nonfinites = cann::nonfinites::ignored}, 0x3C010204) ==
        bytes{0x7F, 0x7F, 0, 0x80});
  CHECK(scale_of_nan_payload() == 0x7FC00000);
  const std::uint16_t one[] = {0x7F80, 0x3F80, 0x7FC0, 0xFF80};
  const auto t = quantize<cann::block_quant_golden<e4m3>>(source<bf16>(one, matrix_extents(1, 4)));
  CHECK(copied(t.codes()) == bytes{0x7E, 0x7E, 0, 0xFE});
}

TEST_CASE("DynamicBlockQuant on A2 and A3: int8 by reciprocals (NUMERICS 4)") {
  cann::block_attributes a2{.dst_type = type::int8, .platform = cann::platform::a2_a3};
  CHECK(quant_codes({0x4040, 0x3F80, 0xBF00, 0xC040}, type::bf16, a2, 0x3CC18306) == bytes{127, 42, 0xEB, 0x81});
  CHECK(reciprocal_amax<>::multiplier_above(3.f, 127.f, 0.f) == float_of(0x42295556));
  CHECK(quant_codes({0, 0x8000}, type::bf16, a2, 0) == bytes{0, 0});
  CHECK(quant_codes({0x7F80, 0xBF80}, type::bf16, a2, 0x7F800000) == bytes{0, 0});
  // By division and by reciprocals, a scale and a code that differ.
  const cann::block_attributes divided{.dst_type = type::int8};
  quant_codes({0x3F0F}, type::bf16, divided, 0x3B902041);
  quant_codes({0x3F0F}, type::bf16, a2, 0x3B902040);
  CHECK(blocks({0x3F87, 0x3F07}, type::bf16, {1, 2}, divided).y == bytes{127, 64});
  CHECK(blocks({0x3F87, 0x3F07}, type::bf16, {1, 2}, a2).y == bytes{127, 63});
  a2.min_scale = 100;  // bounds the multiplier 42.3 below and the scale above
  CHECK(quant_codes({0x4040, 0x3F80}, type::bf16, a2, bits_of(0.01f)) == bytes{127, 100});
  const words x = numbers(5 * 300, 31);
  const auto t = quantize<cann::block_quant_a2_a3<>>(source<bf16>(x.data(), matrix_extents(5, 300)));
  a2.min_scale = 0;
  const block_result r = blocks(x, type::bf16, {5, 300}, a2);
  CHECK(r.y == copied(t.codes()));
  CHECK(copied(r.scales) == copied(t.scales()));
}

TEST_CASE("DynamicBlockQuant: shapes, edge blocks, batches; typed and run-time agree") {
  const auto sizes = [](const cann::dims& x, index_t rows, index_t cols) {
    return blocks(words(static_cast<std::size_t>(count_of(x))), type::bf16, x,
                  {.row_block_size = rows, .col_block_size = cols})
        .scales.size();
  };
  CHECK(sizes({5, 300}, 1, 128) == 15);
  CHECK(sizes({130, 257}, 128, 128) == 6);
  CHECK(sizes({2, 130, 257}, 128, 128) == 12);
  CHECK(sizes({1, 1}, 1, 128) == 1);
  CHECK(sizes({128, 128}, 128, 128) == 1);
  const auto same = [](const auto& shape, auto scheme_value, cann::block_attributes how) {
    using S = decltype(scheme_value);
    const words x = numbers(shape.size(), 41);
    how.row_block_size = typename S::granularity_type{}.block_extent(2, 0, 0);
    how.col_block_size = typename S::granularity_type{}.block_extent(2, 1, 0);
    const auto t = quantize<S>(source<f16>(x.data(), shape));
    const block_result r = blocks(x, type::f16, cann::dims(shape.to_array()), how);
    CHECK(r.y == copied(t.codes()));
    CHECK(copied(r.scales) == copied(t.scales()));
  };
  same(matrix_extents(130, 257), cann::block_quant<e4m3, 128, 128>{}, {.dst_type = type::e4m3});
  same(extents(2, 70, 257), cann::block_quant<e5m2, 64, 192, bounded_amax<1, 2>>{}, {.min_scale = .5f});
  same(matrix_extents(5, 300), cann::block_quant<int8>{}, {.dst_type = type::int8});
  same(matrix_extents(5, 70), cann::block_quant<e4m3, 3, 1>{}, {.dst_type = type::e4m3});
  same(matrix_extents(9, 50), cann::block_quant<hif8, 4, 32>{}, {.round_mode = "round", .dst_type = type::hif8});
  same(matrix_extents(9, 50), cann::block_quant<hif8, 4, 32, bounded_amax<>, nearest_even>{}, {.dst_type = type::hif8});
  same(matrix_extents(9, 50), cann::block_quant_golden<e5m2, 1, 32>{}, {.nonfinites = cann::nonfinites::ignored});
  same(matrix_extents(40, 2100), cann::block_quant_golden<e5m2, 4, 128>{}, {.nonfinites = cann::nonfinites::ignored});
}

TEST_CASE("DynamicBlockQuant: hif8 with a smaller largest code, and blocks larger than x") {
  CHECK(quant_codes({0x4170, 0x3F80}, type::bf16, {.round_mode = "round", .dst_type = type::hif8, .dst_type_max = 15},
                    0x3F800000) == bytes{encode<hif8>(15.f) & 0xFFu, 0x08});
  CHECK(blocks(numbers(12, 1, false), type::bf16, {3, 4}, {.row_block_size = 1000, .col_block_size = 1000})
            .scales.size() == 1);
}

TEST_CASE("DynamicBlockQuant: what is refused, by whom") {
  const words x(256, 0x3F80);
  bytes y(256, 0xEE);
  std::vector<float> s(256, -7.f);
  const auto code = [&](const cann::block_attributes& how, cann::dims sizes = {2, 128}, std::int64_t t = type::bf16) {
    cann::dims scales = sizes;
    if (how.row_block_size > 0 && sizes.rank() > 1)
      scales[sizes.rank() - 2] = divide_up(sizes[sizes.rank() - 2], how.row_block_size);
    if (how.col_block_size > 0) scales[sizes.rank() - 1] = divide_up(sizes[sizes.rank() - 1], how.col_block_size);
    const cann::status done =
        cann::dynamic_block_quant(in(x, t, sizes), how, out(y, how.dst_type, sizes), out(s, type::f32, scales));
    INFO(done.reason);
    if (!done.ok()) {
      CHECK(done.reason.size() > 10);
      CHECK(y == bytes(256, 0xEE));
      CHECK(s == std::vector<float>(256, -7.f));
    }
    y.assign(256, 0xEE);
    s.assign(256, -7.f);
    return done.code;
  };
  using cann::platform;
  CHECK(code({}) == 0);
  CHECK(code({}, {2, 1, 128}) == 0);
  CHECK(code({}, {1, 2, 1, 128}) == 161002);
  CHECK(code({}, {256}) == 161002);
  CHECK(code({}, {2, 128}, type::e4m3) == 161002);
  CHECK(code({.min_scale = -1.f}) == 161002);
  CHECK(code({.min_scale = quiet_nan}) == 161002);
  CHECK(code({.min_scale = infinity}) == 161002);
  CHECK(code({.nonfinites = static_cast<cann::nonfinites>(2)}) == 161002);
  CHECK(code({.platform = static_cast<cann::platform>(9)}) == 161002);
  CHECK(code({.round_mode = "floor"}) == 161002);
  CHECK(code({.round_mode = "hybrid"}) == 161002);
  CHECK(code({.round_mode = "round"}) == 0);
  CHECK(code({.dst_type = type::e2m1}) == 161002);
  CHECK(code({.row_block_size = 0}) == 161002);
  CHECK(code({.col_block_size = -1}) == 161002);
  CHECK(code({.row_block_size = 7, .col_block_size = 5}) == 0);
  CHECK(code({.dst_type_max = 15}) == 161002);
  CHECK(code({.dst_type = type::hif8, .dst_type_max = 16}) == 161002);
  CHECK(code({.platform = platform::other}) == 361001);
  // A2 and A3
  CHECK(code({.dst_type = type::int8, .platform = platform::a2_a3}) == 0);
  CHECK(code({.dst_type = type::int8, .platform = platform::a2_a3}, {2, 1, 128}) == 0);
  CHECK(code({.dst_type = type::e4m3, .platform = platform::a2_a3}) == 161002);
  CHECK(code({.round_mode = "round", .dst_type = type::int8, .platform = platform::a2_a3}) == 161002);
  CHECK(code({.dst_type = type::int8, .row_block_size = 128, .platform = platform::a2_a3}) == 161002);
  // Ascend 950
  CHECK(code({.platform = platform::ascend950}) == 0);
  CHECK(code({.round_mode = "round", .dst_type = type::hif8, .platform = platform::ascend950}) == 0);
  CHECK(code({.dst_type = type::hif8, .platform = platform::ascend950}) == 161002);
  CHECK(code({.round_mode = "round", .dst_type = type::e4m3, .platform = platform::ascend950}) == 161002);
  CHECK(code({.dst_type = type::int8, .platform = platform::ascend950}) == 161002);
  CHECK(code({.row_block_size = 64, .platform = platform::ascend950}) == 161002);
  CHECK(code({.platform = platform::ascend950}, {2, 1, 128}) == 161002);
}
