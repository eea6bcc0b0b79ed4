// The block oracle against the vectors of the specification: what the library is measured with is measured too.
// SPDX-License-Identifier: BSD-3-Clause
#include "oracle/blocks.hpp"

#include <doctest/doctest.h>

#include "oracle/block_vectors.hpp"

namespace {

using namespace oracle;
using vectors::block_vector;
using vectors::codes;

block_list one_block(std::size_t n) { return cut({n}, {0}); }

void check(const quantized& q, const block_vector& v) {
  INFO("first x ", v.x.at(0), " of ", v.x.size(), ", scale ", q.scales.at(0));
  CHECK(q.scales == codes{v.scale});
  CHECK(q.codes == v.expected);
}

void check_mx(const std::string& name, mx_rule rule, const block_vector& v, const conversion& c = {}) {
  INFO(name);
  check(mx(v.x, one_block(v.x.size()), format_named(name), rule, c), v);
}

}  // namespace

TEST_CASE("block oracle: cutting keeps row-major order and short last blocks") {
  CHECK(cut({2, 3}, {1, 2}) == block_list{{0, 1}, {2}, {3, 4}, {5}});
  CHECK(cut({2, 3}, {0, 1}) == block_list{{0, 3}, {1, 4}, {2, 5}});
  CHECK(cut({3, 2}, {2, 0}) == block_list{{0, 1, 2, 3}, {4, 5}});
  CHECK(cut({0}, {0}).empty());
  CHECK(cut({5, 300}, {1, 128}).size() == 15);  // the shapes of section 4
  CHECK(cut({130, 257}, {128, 128}).size() == 6);
  CHECK(cut({2, 130, 257}, {1, 128, 128}).size() == 12);
  CHECK(cut({128, 128}, {128, 128}).size() == 1);
}

TEST_CASE("block oracle: MX floor vectors of sections 1.7, 2.2 and 3, directly and through f16") {
  conversion through;
  through.round = rounding::via_f16;
  for (const auto& m : vectors::mx_floor())
    for (const conversion& c : {conversion{}, through}) check_mx(m.format, mx_rule::floor, m.v, c);
}

TEST_CASE("block oracle: the round modes of section 3") {
  conversion even, away, down;
  away.round = rounding::nearest_away;
  down.round = rounding::toward_negative;
  for (const auto& r : vectors::fp4_roundings()) {
    check_mx(r.format, mx_rule::floor, {r.x, r.scale, r.even}, even);
    check_mx(r.format, mx_rule::floor, {r.x, r.scale, r.away}, away);
    check_mx(r.format, mx_rule::floor, {r.x, r.scale, r.down}, down);
  }
}

TEST_CASE("block oracle: CANN gives 0 to every code of a block with a NaN or an infinity, section 3") {
  conversion zero;
  zero.blocks = nonfinite::to_zero;
  check_mx("e4m3", mx_rule::floor, {vectors::from_bf16({0x3F80, 0x7F80, 0, 0xC000}), 255, {0, 0, 0, 0}}, zero);
}

TEST_CASE("block oracle: NVFP4 vectors of section 2.4, torchao with one level") {
  for (const block_vector& v : vectors::nvfp4()) check(nvfp4(v.x, one_block(v.x.size()), false), v);
}

TEST_CASE("block oracle: CANN scale algorithms 1 and 2 of section 2.5") {
  for (const auto& m : vectors::mx_rceil()) check_mx(m.format, mx_rule::rceil, m.v);
  for (const auto& r : vectors::dynamic_range()) {
    const auto rule = [&](std::uint32_t a) { return dynamic_range_code(a, static_cast<float>(r.range)); };
    check(mx_by(r.v.x, one_block(r.v.x.size()), format_named("e2m1"), rule, conversion{}), r.v);
  }
}

TEST_CASE("block oracle: torchao's scale modes of section 2.6") {
  for (const auto& r : vectors::scale_modes()) {
    INFO(r.format, " amax ", r.amax);
    const format& f = format_named(r.format);
    CHECK(mx_scale_code(bits_of(r.amax), f, mx_rule::floor) == static_cast<int>(r.floor));
    CHECK(mx_scale_code(bits_of(r.amax), f, mx_rule::ceil) == static_cast<int>(r.ceil));
    CHECK(mx_scale_code(bits_of(r.amax), f, mx_rule::even) == static_cast<int>(r.even));
    CHECK(mx_scale_code(bits_of(r.amax), f, mx_rule::rceil) == static_cast<int>(r.rceil));
  }
  CHECK(mx_scale_code(0x7F780000, format_named("e4m3"), mx_rule::even) == 255);
  CHECK(mx_scale_code(0x7F77FFFF, format_named("e4m3"), mx_rule::even) == 246);
}

TEST_CASE("block oracle: the dual-axis example of section 3, rows and columns from the same numbers") {
  const auto x = vectors::from_bf16({0, 16640, 17024, 17408});
  const quantized rows = mx(x, cut({1, 4}, {1, 32}), format_named("e4m3"), mx_rule::floor, {});
  CHECK(rows.scales == codes{128});
  CHECK(rows.codes == codes{0, 72, 96, 120});
  const quantized columns = mx(x, cut({1, 4}, {32, 1}), format_named("e4m3"), mx_rule::floor, {});
  CHECK(columns.scales == codes{0, 122, 125, 128});
  CHECK(columns.codes == codes{0, 120, 120, 120});
}

TEST_CASE("block oracle: DynamicBlockQuant vectors of section 4") {
  for (const auto& r : vectors::bounded_amax()) {
    const format& f = format_named(r.format);
    conversion c = default_conversion(f);
    c.nan = nan_rule::to_zero;
    INFO(r.format, " min_scale ", r.min_scale);
    check(bounded_amax(r.v.x, one_block(r.v.x.size()), f, static_cast<float>(r.min_scale), c), r.v);
  }
}

TEST_CASE("block oracle: zero point before and after rounding, vectors of section 5.1") {
  for (const auto& r : vectors::affine()) {
    const format& f = format_named(r.format);
    INFO(r.format, " x ", r.x, " s ", r.s, " zp ", r.zero_point);
    CHECK(decode(f, encode_affine(f, r.x, r.s, r.zero_point, false)) == r.after);
    CHECK(decode(f, encode_affine(f, r.x, r.s, r.zero_point, true)) == r.before);
  }
  const format& int8 = format_named("int8");
  CHECK(encode_affine(int8, std::numeric_limits<float>::quiet_NaN(), 1, 5, false) == 5);
  CHECK(encode_affine(int8, -std::numeric_limits<float>::infinity(), 1, 5, false) == 0x80);
}

TEST_CASE("block oracle: our own defaults, vectors of section 11") {
  for (const block_vector& v : vectors::int8_amax())
    check(amax_scale(v.x, one_block(v.x.size()), format_named("int8"), "f32", {}), v);
  for (const block_vector& v : vectors::int4_amax())
    check(amax_scale(v.x, one_block(v.x.size()), format_named("int4"), "f32", {}), v);
  for (const auto& r : vectors::uint8_min_max()) {
    const quantized q = min_max(r.v.x, one_block(r.v.x.size()), format_named("uint8"));
    check(q, r.v);
    CHECK(q.zero_points.at(0) == r.zero_point);
  }
}

TEST_CASE("block oracle: an ignored NaN or infinity follows the element policies under the scale of the rest") {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  conversion c;
  c.blocks = nonfinite::ignores;
  const quantized q = amax_scale({448, -1, inf, -inf, nan}, one_block(5), format_named("e4m3"), "f32", c);
  CHECK(q.scales == codes{0x3F800000});
  CHECK(q.codes == codes{0x7E, 0xB8, 0x7E, 0xFE, 0x7F});
}
