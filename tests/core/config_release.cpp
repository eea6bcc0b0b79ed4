// Mirrors include/qtensor/core/config.hpp: preconditions cost nothing in a release build.
// SPDX-License-Identifier: BSD-3-Clause
#ifndef NDEBUG
#define NDEBUG
#endif
#define QTENSOR_ASSERTION_FAILED(sentence) throw sentence
#include <doctest/doctest.h>

#include <qtensor/core/config.hpp>

TEST_CASE("QTENSOR_ASSERT: with NDEBUG the condition is not even evaluated") {
  int evaluated = 0;
  QTENSOR_ASSERT(++evaluated < 0, "never said");
  CHECK(evaluated == 0);
}
