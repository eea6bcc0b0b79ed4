// The rows of the table: which scheme stores the weights of which layer.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/qtensor.hpp>
#include <tuple>

#include "model.hpp"

namespace fashion {

/// What the plot colours alike.
enum class family { floats, integer, minifloat, microscaling, mixed };

/// One row: the schemes of the three layers. Quick rows are the ones that --quick keeps.
template <class First, class Second = First, class Third = Second>
struct row {
  const char* label;
  family kind;
  bool quick = false;
};

using e5m2_block = qt::scheme<qt::e5m2, qt::block<128, 128>>;
using nvfp4_two_level = qt::with<qt::nvfp4, qt::tensor_scale<qt::f32>>;
using int2_group = qt::scheme<qt::int2, qt::group<32>, qt::scale_as<qt::bf16>>;

inline constexpr std::tuple schemes{
    row<float32>{"float32", family::floats, true},
    row<qt::int8_per_tensor>{"int8_per_tensor", family::integer, true},
    row<qt::int8_per_channel<0>>{"int8_per_channel<0>", family::integer},
    row<qt::uint8_per_channel<0>>{"uint8_per_channel<0>", family::integer},
    row<qt::hif8_block<128, 128>>{"hif8_block<128,128>", family::minifloat},
    row<qt::fp8_block<128, 128>>{"fp8_block<128,128>", family::minifloat},
    row<qt::fp8_block<1, 128>>{"fp8_block<1,128>", family::minifloat},
    row<e5m2_block>{"e5m2 x block<128,128>", family::minifloat},
    row<qt::mxfp8_e4m3>{"mxfp8_e4m3", family::microscaling},
    row<qt::mxfp8_e5m2>{"mxfp8_e5m2", family::microscaling},
    row<qt::mxint8>{"mxint8", family::microscaling},
    row<qt::mxfp6_e2m3>{"mxfp6_e2m3", family::microscaling},
    row<qt::mxfp6_e3m2>{"mxfp6_e3m2", family::microscaling},
    row<qt::int4_group<32>>{"int4_group<32>", family::integer, true},
    row<qt::int4_group<128>>{"int4_group<128>", family::integer},
    row<qt::uint4_group<32>>{"uint4_group<32>", family::integer},
    row<qt::nvfp4>{"nvfp4", family::minifloat},
    row<nvfp4_two_level>{"nvfp4 with tensor_scale", family::minifloat},
    row<qt::mxfp4>{"mxfp4", family::microscaling, true},
    row<int2_group>{"int2 x group<32>", family::integer},
    row<qt::mxfp8_e4m3, qt::mxfp4>{"mixed: mxfp8, mxfp4, mxfp4", family::mixed},
    row<qt::int4_group<128>, qt::mxfp4, qt::int8_per_channel<0>>{"mixed: int4, mxfp4, int8", family::mixed, true},
};

}  // namespace fashion
