// For users of Eigen: quantization, expressions and products, with what kernels.hpp has.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/expr/matmul.hpp>
#include <qtensor/expr/operators.hpp>
#include <qtensor/expr/quantize.hpp>
#include <qtensor/kernels.hpp>
#include <qtensor/types.hpp>
