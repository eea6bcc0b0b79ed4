// oneDNN: its quantization model as schemes and as run-time conversions (NUMERICS 2.2, 2.3, 5). Includes its parts.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/compat/onednn_attributes.hpp>   // masks, groups, scales, zero points, choices
#include <qtensor/compat/onednn_convolution.hpp>  // int8 convolution
#include <qtensor/compat/onednn_dynamic.hpp>      // quantize: dynamic_mx and dynamic_fp, run-time types
#include <qtensor/compat/onednn_elements.hpp>     // arrays of run-time types
#include <qtensor/compat/onednn_reorder.hpp>      // reorder: static quantization, run-time types
#include <qtensor/compat/onednn_schemes.hpp>      // the same as schemes
#include <qtensor/compat/onednn_types.hpp>        // data types, random numbers
