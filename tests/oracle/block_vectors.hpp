// The block vectors printed in the specification (sections 1.7, 2.2 to 2.6, 3, 4, 5.1 and 11), for the oracle and the
// library. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "oracle/inputs.hpp"

namespace oracle::vectors {

using codes = std::vector<std::uint32_t>;

/// Numbers, the scale's bits or code, the codes.
struct block_vector {
  std::vector<float> x;
  std::uint32_t scale;
  codes expected;
};

inline std::vector<float> from_bits(const codes& bits) {
  std::vector<float> x;
  for (std::uint32_t b : bits) x.push_back(float_of(b));
  return x;
}
inline std::vector<float> from_bf16(const codes& bits) {
  std::vector<float> x;
  for (std::uint32_t b : bits) x.push_back(float_of(b << 16));
  return x;
}
inline std::vector<float> from_f16(const codes& bits) {
  std::vector<float> x;
  for (std::uint32_t b : bits) x.push_back(static_cast<float>(decode(format_named("f16"), b)));
  return x;
}

/// MX by the floor rule, ties to even: sections 2.2 (without oneDNN's NaN handling), 1.7 and 3.
struct mx_vector {
  std::string format;
  block_vector v;
};
inline std::vector<mx_vector> mx_floor() {
  return {{"e4m3", {{1, -.5f, 3, .1f}, 0x78, {0x70, 0xE8, 0x7C, 0x55}}},
          {"e4m3", {{0, -0.f}, 0, {0, 0x80}}},
          {"e4m3", {{500, 1}, 0x7F, {0x7E, 0x38}}},
          {"e4m3", {{0x1p-126f, 0x1p-120f}, 0, {0x40, 0x70}}},
          {"e5m2", {{1, -.5f, 3, .1f}, 0x71, {0x74, 0xF0, 0x7A, 0x66}}},
          {"e5m2", {{500, 1}, 0x78, {0x7B, 0x58}}},
          {"e2m1", {{1, -.5f, 3, .1f}, 0x7E, {4, 0xA, 7, 0}}},
          {"e2m1", {{500, 1}, 0x85, {7, 0}}},
          {"e2m1", {{0x1p-126f, 0x1p-120f}, 5, {0, 6}}},
          {"mxint8", {{1, -.5f, 1.9921875f, 0x1p-7f}, 127, {64, 0xE0, 127, 0}}},
          {"mxint8", {{1.99609375f}, 127, {127}}},
          {"mxint8", {{-2 + 0x1p-9f}, 127, {0x81}}},
          {"mxint8", {{0}, 0, {0}}},
          {"e4m3", {from_bf16({0x3F80, 0xBF80, 0x3FC0, 0x3E00}), 119, {0x78, 0xF8, 0x7C, 0x60}}},
          {"e5m2", {from_bf16({0x3F80, 0xBF80, 0x3FC0, 0x3E00}), 112, {0x78, 0xF8, 0x7A, 0x6C}}},
          {"e2m1", {from_bf16({0x3F80, 0x7FC0}), 255, {0, 0}}},
          {"e4m3", {from_bf16({0x0080, 0x0100}), 0, {0x40, 0x48}}},
          {"e4m3", {from_bf16({0x7F7F, 0x3F80}), 246, {0x7E, 0}}},
          {"e1m2", {from_bf16({0x7F7F, 0x3F80}), 254, {7, 0}}},
          {"e4m3", {from_bf16({0x0040, 0x8001}), 0, {0x38, 0x88}}},  // subnormal maximum, formula-literal
          {"e4m3", {from_f16({0x3C00, 0x7BFF, 0x0001, 0x8400}), 134, {0x04, 0x7E, 0, 0x80}}},
          {"e2m1", {from_f16({0x0001, 0x0002, 0x8003}), 102, {4, 6, 0xF}}},
          {"e2m1", {from_bf16({0x40C1, 0x3F80}), 127, {7, 2}}}};
}

/// CANN's FP4 round modes (section 3): ties to even, ties away, toward minus infinity.
struct rounding_vector {
  std::string format;
  std::vector<float> x;
  std::uint32_t scale;
  codes even, away, down;
};
inline std::vector<rounding_vector> fp4_roundings() {
  return {{"e2m1",
           from_bf16({0x4080, 0xC0A0, 0x4020, 0xBE80, 0x40E0, 0x3F10}),
           127,
           {6, 0xE, 4, 8, 7, 1},
           {6, 0xF, 5, 9, 7, 1},
           {6, 0xF, 4, 9, 7, 1}},
          {"e1m2",
           from_bf16({0x3F80, 0xBF90, 0x3FF0, 0xBE80, 0x3E00, 0x3F10}),
           127,
           {4, 0xC, 7, 9, 0, 2},
           {4, 0xD, 7, 9, 1, 2},
           {4, 0xD, 7, 9, 0, 2}}};
}

/// Section 2.4, torchao, one level.
inline std::vector<block_vector> nvfp4() {
  return {{{6, 3, -1, .25f}, 0x38, {7, 5, 0xA, 0}},
          {{1, -.5f, .3f, .1f}, 0x23, {7, 0xD, 3, 1}},
          {{0, 0}, 0x08, {0, 0}},
          {{.05f, -.02f}, 0x08, {5, 0xB}},
          {{3000, 1}, 0x7E, {7, 0}}};
}

/// Section 2.5, CANN's scale algorithm 1.
inline std::vector<mx_vector> mx_rceil() {
  return {{"e4m3", {from_bf16({0x43E0, 0x3F80}), 127, {0x7E, 0x38}}},
          {"e5m2", {from_bf16({0x43E0, 0x3F80}), 120, {0x7B, 0x58}}},
          {"e4m3", {from_bf16({0x43E1, 0x3F80}), 128, {0x76, 0x30}}},
          {"e5m2", {from_bf16({0x43E1, 0x3F80}), 121, {0x77, 0x54}}},
          {"e4m3", {from_bf16({0x3F80, 0x3F00}), 119, {0x78, 0x70}}},
          {"e5m2", {from_bf16({0x3F80, 0x3F00}), 112, {0x78, 0x74}}},
          {"e4m3", {from_bf16({0x4760, 0x3F80}), 134, {0x7E, 0x04}}},
          {"e5m2", {from_bf16({0x4760, 0x3F80}), 127, {0x7B, 0x3C}}},
          {"e4m3", {from_bf16({0, 0}), 0, {0, 0}}}};
}

/// Section 2.5, CANN's scale algorithm 2 for e2m1 with dst_type_max = range.
struct range_vector {
  int range;
  block_vector v;
};
inline std::vector<range_vector> dynamic_range() {
  const auto six = from_bf16({0x40C0, 0x3F80}), above_six = from_bf16({0x40C1, 0x3F80}), seven = from_bf16({0x40E0});
  const auto above_seven = from_bf16({0x40E1}), five = from_bf16({0x40A0, 0x3F80});
  return {{0, {six, 127, {7, 2}}},       {6, {six, 127, {7, 2}}},       {7, {six, 127, {7, 2}}},
          {0, {above_six, 128, {5, 1}}}, {6, {above_six, 128, {5, 1}}}, {7, {above_six, 127, {7, 2}}},
          {6, {seven, 128, {6}}},        {7, {seven, 127, {7}}},        {6, {above_seven, 128, {6}}},
          {7, {above_seven, 128, {6}}},  {6, {five, 127, {6, 2}}}};
}

/// Section 2.6: the scale code of a maximum under torchao's FLOOR, CEIL, EVEN and RCEIL.
struct mode_vector {
  std::string format;
  float amax;
  std::uint32_t floor, ceil, even, rceil;
};
inline std::vector<mode_vector> scale_modes() {
  return {{"e4m3", 1, 119, 119, 119, 119},      {"e4m3", 1.5f, 119, 120, 119, 119},
          {"e4m3", 1.75f, 119, 120, 119, 119},  {"e4m3", 1.76f, 119, 120, 119, 120},
          {"e4m3", 1.9f, 119, 120, 119, 120},   {"e4m3", 1.94f, 119, 120, 120, 120},
          {"e4m3", 2, 120, 120, 120, 120},      {"e4m3", 448, 127, 128, 127, 127},
          {"e4m3", 451.5f, 127, 128, 127, 128}, {"e4m3", 0, 0, 0, 0, 0},
          {"e4m3", 0x1p-126f, 0, 0, 0, 0},      {"e2m1", 1.5f, 125, 126, 125, 125},
          {"e2m1", 1.74f, 125, 126, 125, 126},  {"e2m1", 1.75f, 125, 126, 126, 126},
          {"e2m1", 6, 127, 128, 127, 127},      {"e2m1", 6.046875f, 127, 128, 127, 128},
          {"e5m2", 1.75f, 112, 113, 112, 112},  {"e5m2", 1.874f, 112, 113, 112, 113},
          {"e5m2", 1.875f, 112, 113, 113, 113}, {"e5m2", 57344, 127, 128, 127, 127}};
}

/// Section 4, DynamicBlockQuant with CANN's NaN rule.
struct bounded_vector {
  std::string format;
  int min_scale;
  block_vector v;
};
inline std::vector<bounded_vector> bounded_amax() {
  const auto plain = from_bf16({0x3F80, 0xBF00, 0x4040, 0x3DCD}), half = from_f16({0x3C00, 0x7BFF, 0x0001, 0xC500});
  return {{"e4m3", 0, {plain, 0x3BDB6DB7, {0x71, 0xE9, 0x7E, 0x57}}},
          {"e5m2", 0, {plain, 0x385B6DB7, {0x75, 0xF1, 0x7B, 0x67}}},
          {"hif8", 0, {plain, 0x38C00000, {0x6B, 0xE9, 0x6E, 0x64}}},
          {"int8", 0, {plain, 0x3CC18306, {0x2A, 0xEB, 0x7F, 0x04}}},
          {"e4m3", 1000, {plain, 0x3A83126F, {0x7E, 0xFE, 0x7E, 0x6D}}},
          {"e4m3", 100, {plain, 0x3BDB6DB7, {0x71, 0xE9, 0x7E, 0x57}}},
          {"e4m3", 10, {from_bf16({0x42C8, 0x3F80}), 0x3DCCCCCD, {0x7E, 0x52}}},
          {"e5m2", 0, {{0, -0.f}, 0, {0, 0}}},
          {"e4m3", 0, {half, 0x431236DB, {0x04, 0x7E, 0, 0x91}}},
          {"hif8", 0, {half, 0x3FFFE000, {0x18, 0x6E, 0, 0x92}}},
          {"hif8", 0, {from_bf16({0x7F7F, 0x3F80}), 0x77FF0000, {0x6E, 0}}},
          {"e4m3", 0, {from_bf16({0x7F80, 0x3F80}), 0x7F800000, {0, 0}}}};
}

/// Section 5.1: one number under a static scale and zero point, the point added after and before rounding.
struct affine_vector {
  std::string format;
  float x, s;
  int zero_point, after, before;
};
inline std::vector<affine_vector> affine() {
  return {{"int8", .5f, 1, 1, 1, 2},        {"int8", 1.5f, 1, 1, 3, 2},          {"int8", 2.5f, 1, 0, 2, 2},
          {"int8", -.5f, 1, 1, 1, 0},       {"int8", -.5f, 1, 0, 0, 0},          {"uint8", .25f, .5f, 3, 3, 4},
          {"uint8", .75f, .5f, 3, 5, 4},    {"uint8", 127.5f, 1, 1, 129, 128},   {"int8", 63.75f, .5f, -1, 127, 126},
          {"int8", 126.5f, 1, 1, 127, 127}, {"int8", -128.5f, 1, 0, -128, -128}, {"int8", 300, 1, 0, 127, 127},
          {"uint8", -50, .5f, 128, 28, 28}, {"int8", 1024, 1, 0, 127, 127},      {"uint8", -124, 1, 0, 0, 0}};
}

/// Section 11: amax_scale of int8 and int4.
inline std::vector<block_vector> int8_amax() {
  return {{from_bits({0x3F800000, 0xC0000000, 0x3F000000}), 0x3C810204, {64, 0x81, 32}},
          {from_bits({0, 0x80000000}), 0x3F800000, {0, 0}},
          {from_bits({0x40400000}), 0x3CC18306, {127}},
          {from_bits({0x7F7FFFFF, 0x3F800000}), 0x7C010204, {127, 0}},
          {from_bits({0x00000001, 0x00000200}), 0x00800000, {0, 0}},
          {from_bits({0xBF800000, 0x3E99999A, 0x3DCCCCCD, 0x3F800000}), 0x3C010204, {0x81, 38, 13, 127}}};
}
inline std::vector<block_vector> int4_amax() {
  return {{from_bits({0x3F800000, 0xC0000000, 0x3F000000}), 0x3E924925, {3, 9, 2}},
          {from_bits({0x40400000}), 0x3EDB6DB7, {7}},
          {from_bits({0x7F7FFFFF, 0x3F800000}), 0x7E124924, {7, 0}},
          {from_bits({0xBF800000, 0x3E99999A, 0x3DCCCCCD, 0x3F800000}), 0x3E124925, {9, 2, 1, 7}}};
}

/// Section 11: min_max of uint8.
struct min_max_vector {
  block_vector v;
  int zero_point;
};
inline std::vector<min_max_vector> uint8_min_max() {
  return {{{{0, 2, -3, -2.5f, 1.34f, .5f}, 0x3CA0A0A1, {153, 255, 0, 26, 221, 179}}, 153},
          {{{1, 2.1f, 1.3f, 2.5f, 3.34f, 4}, 0x3C808081, {64, 134, 83, 159, 213, 255}}, 0},
          {{{-1, -2.1f, -1.3f, -2.5f, -3.34f, -4}, 0x3C808081, {191, 121, 172, 96, 42, 0}}, 255},
          {{{0, 0}, 0x3F800000, {0, 0}}, 0},
          {{{5}, 0x3CA0A0A1, {255}}, 0}};
}

}  // namespace oracle::vectors
