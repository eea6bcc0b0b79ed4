// Mirrors include/qtensor/reference/codec.hpp: the 8-bit minifloats, ml_dtypes' three included, against the oracle.
// SPDX-License-Identifier: BSD-3-Clause
#include "reference/codec_check.hpp"

QTENSOR_TEST_CODEC(qtensor::e4m3, "e4m3")
QTENSOR_TEST_CODEC(qtensor::e5m2, "e5m2")
QTENSOR_TEST_CODEC(qtensor::e4m3fnuz, "e4m3fnuz")
QTENSOR_TEST_CODEC(qtensor::e5m2fnuz, "e5m2fnuz")
QTENSOR_TEST_CODEC(oracle::e4m3_ieee, "e4m3_ieee")
QTENSOR_TEST_CODEC(oracle::e3m4, "e3m4")
QTENSOR_TEST_CODEC(oracle::e4m3b11fnuz, "e4m3b11fnuz")
