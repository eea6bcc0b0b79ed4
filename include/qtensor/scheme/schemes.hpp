// The predefined schemes. What each computes is in NUMERICS 11; every one is a line you could have written.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/scheme/scheme.hpp>

namespace qtensor {

// Integers: scale amax / 127 (7 for int4); uint8 and uint4 with a zero point as ONNX DynamicQuantizeLinear computes it.
using int8_per_tensor = scheme<int8, per_tensor>;
template <index_t Axis = 0>
using int8_per_channel = scheme<int8, per_channel<Axis>>;
using uint8_per_tensor = scheme<uint8, per_tensor, zero_point<uint8>>;
template <index_t Axis = 0>
using uint8_per_channel = scheme<uint8, per_channel<Axis>, zero_point<uint8>>;
template <index_t N = 128>
using int8_group = scheme<int8, group<N>>;
template <index_t N = 128>
using int4_group = scheme<int4, group<N>>;
template <index_t N = 128>
using uint4_group = scheme<uint4, group<N>, zero_point<uint4>>;

// FP8 in blocks: scale amax / 448 as f32.
template <index_t Rows, index_t Columns>
using fp8_block = scheme<e4m3, block<Rows, Columns>>;

// OCP MX: 32 elements share a power of two, by the floor rule.
using mxfp8_e4m3 = scheme<e4m3, mx_group<>, scale_as<e8m0>, mx_floor>;
using mxfp8_e5m2 = scheme<e5m2, mx_group<>, scale_as<e8m0>, mx_floor>;
using mxfp6_e2m3 = scheme<e2m3, mx_group<>, scale_as<e8m0>, mx_floor>;
using mxfp6_e3m2 = scheme<e3m2, mx_group<>, scale_as<e8m0>, mx_floor>;
using mxfp4 = scheme<e2m1, mx_group<>, scale_as<e8m0>, mx_floor>;
/// OCP's one name for two things: as a scheme, MXINT8; as a format, its elements.
struct mxint8 : scheme<mxint8_code, mx_group<>, scale_as<e8m0>, mx_floor>, mxint8_code {
  static constexpr fixed_string name = "mxint8";
};

// NVFP4, one level: 16 elements share an e4m3 scale. `with<nvfp4, tensor_scale<f32>>` has two levels.
using nvfp4 = scheme<e2m1, group<16>, scale_as<e4m3>, nvfp4_scale, reciprocal>;

// HiFloat8 in blocks: scale amax / 32768 as f32, ties away.
template <index_t Rows, index_t Columns>
using hif8_block = scheme<hif8, block<Rows, Columns>>;

}  // namespace qtensor
