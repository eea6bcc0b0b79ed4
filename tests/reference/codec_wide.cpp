// Mirrors include/qtensor/reference/codec.hpp: bf16 and f16 against the oracle.
// SPDX-License-Identifier: BSD-3-Clause
#include "reference/codec_check.hpp"

QTENSOR_TEST_CODEC(qtensor::bf16, "bf16")
QTENSOR_TEST_CODEC(qtensor::f16, "f16")
