// Mirrors include/qtensor/core/error.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <cstdint>
#include <limits>

#include "core/sentence.hpp"

using namespace qtensor;

namespace {

/// A condition that holds costs nothing and is fine in constant expressions.
constexpr int halved(int even) {
  require(even % 2 == 0, "the number ", even, " is odd; it must be even.");
  return even / 2;
}
static_assert(halved(8) == 4);

}  // namespace

TEST_CASE("fail: throws qtensor::error, which is a std::invalid_argument, and puts the words together") {
  CHECK_THROWS_AS(fail("x"), error);
  CHECK_THROWS_AS(fail("x"), std::invalid_argument);
  CHECK(sentence([] { fail("scale ", 3, " is ", 0.5f, "; it must be ", std::string_view("finite"), "."); }) ==
        "qtensor: scale 3 is 0.5; it must be finite.");
}

TEST_CASE("fail: numbers are written so that they can be told apart") {
  CHECK(sentence([] { fail(std::numeric_limits<std::int64_t>::min()); }) == "qtensor: -9223372036854775808");
  CHECK(sentence([] { fail(std::uint64_t{18446744073709551615u}); }) == "qtensor: 18446744073709551615");
  CHECK(sentence([] { fail(0.1f); }) == "qtensor: 0.100000001");
  CHECK(sentence([] { fail(1e-45f); }) == "qtensor: 1.40129846e-45");
  CHECK(sentence([] { fail(std::numeric_limits<float>::infinity()); }) == "qtensor: inf");
  CHECK(sentence([] { fail(std::string("text")); }) == "qtensor: text");
}

TEST_CASE("require: fails with the sentence only when the condition does not hold") {
  CHECK(halved(6) == 3);
  CHECK(sentence([] { halved(7); }) == "qtensor: the number 7 is odd; it must be even.");
  CHECK_NOTHROW(require(true, "never said"));
}

TEST_CASE("check_choice: refuses numbers that are none of a choice's") {
  enum class choice { first, second };
  detail::check_choice("which", choice::second, choice::second);
  CHECK(sentence([] { detail::check_choice("which", static_cast<choice>(2), choice::second); }) ==
        "qtensor: which is 2; its choices are 0 to 1.");
  CHECK_THROWS_AS(detail::check_choice("which", static_cast<choice>(-1), choice::second), error);
}
