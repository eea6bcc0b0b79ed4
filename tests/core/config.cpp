// Mirrors include/qtensor/core/config.hpp: the version, and the hook that reports a failed precondition.
// SPDX-License-Identifier: BSD-3-Clause
#undef NDEBUG
#include <string>

/// What the hook was told.
struct reported {
  explicit reported(const char* said) : sentence(said) {}
  std::string sentence;
};
#define QTENSOR_ASSERTION_FAILED(sentence) throw reported(sentence)
#include <doctest/doctest.h>

#include <qtensor/core/config.hpp>

namespace {

std::string report(bool condition) {
  try {
    QTENSOR_ASSERT(condition, "n is negative; it must be at least 0.");
  } catch (const reported& r) {
    return r.sentence;
  }
  return "";
}

constexpr int checked(int n) {
  QTENSOR_ASSERT(n >= 0, "n is negative.");
  return n;
}
static_assert(checked(3) == 3);

}  // namespace

#if QTENSOR_VERSION_MAJOR * 10000 + QTENSOR_VERSION_MINOR * 100 + QTENSOR_VERSION_PATCH < 100
#error "the version is three numbers that the preprocessor can compare, 0.1.0 or later"
#endif

TEST_CASE("QTENSOR_ASSERT: in debug builds a failed precondition goes to the hook as a sentence") {
  CHECK(report(true) == "");
  CHECK(report(false) == "qtensor: n is negative; it must be at least 0.");
}
