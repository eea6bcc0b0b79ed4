// Pointer-level kernels, whole tensors, products and ggml's blocks: no Eigen.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/compat/ggml.hpp>
#include <qtensor/ops/calibrate.hpp>
#include <qtensor/ops/dequantize.hpp>
#include <qtensor/ops/kernels.hpp>
#include <qtensor/ops/matmul.hpp>
#include <qtensor/ops/parallel.hpp>
#include <qtensor/ops/paths.hpp>
#include <qtensor/ops/quantize.hpp>
#include <qtensor/ops/quantize_dual_axis.hpp>
#include <qtensor/ops/statistics.hpp>
#include <qtensor/reference/matmul.hpp>
#include <qtensor/types.hpp>
