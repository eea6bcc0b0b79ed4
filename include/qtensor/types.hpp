// Formats, schemes, tensors and views: standard headers only.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/scheme/schemes.hpp>
#include <qtensor/tensor/tensor.hpp>
#include <qtensor/tensor/view_of.hpp>
