// Mirrors include/qtensor/reference/codec.hpp: FP6, FP4, HiFloat8 and the power-of-two scale against the oracle.
// SPDX-License-Identifier: BSD-3-Clause
#include "reference/codec_check.hpp"

QTENSOR_TEST_CODEC(qtensor::e3m2, "e3m2")
QTENSOR_TEST_CODEC(qtensor::e2m3, "e2m3")
QTENSOR_TEST_CODEC(qtensor::e2m1, "e2m1")
QTENSOR_TEST_CODEC(qtensor::e1m2, "e1m2")
QTENSOR_TEST_CODEC(qtensor::hif8, "hif8")
QTENSOR_TEST_CODEC(qtensor::e8m0, "e8m0")
