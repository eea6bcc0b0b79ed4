// The one exception of the library, and the sentence builder that every run-time check uses.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <concepts>
#include <cstdio>
#include <cstdlib>
#include <qtensor/core/config.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

namespace qtensor {

/// Wrong use found at run time: `what()` is one sentence that names the value, the dimension and the requirement.
/// Thrown before anything is written.
class error : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

namespace detail {

inline void append(std::string& sentence, std::string_view word) { sentence += word; }
template <std::integral T>
void append(std::string& sentence, T number) {
  sentence += std::to_string(number);
}
template <std::floating_point T>
void append(std::string& sentence, T number) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.9g", static_cast<double>(number));
  sentence += digits;
}

}  // namespace detail

/// Throws `error` with the words put together: `fail("scale ", i, " is ", s, "; it must be finite")`.
/// With exceptions off it calls QTENSOR_ASSERTION_FAILED instead.
template <class... Word>
[[noreturn]] void fail(const Word&... word) {
  std::string sentence = "qtensor: ";
  (detail::append(sentence, word), ...);
#if defined(__cpp_exceptions)
  throw error(sentence);
#else
  QTENSOR_ASSERTION_FAILED(sentence.c_str());
  std::abort();
#endif
}

/// `fail` unless the condition holds. The words are only put together when it does not.
template <class... Word>
constexpr void require(bool condition, const Word&... word) {
  if (!condition) fail(word...);
}

namespace detail {

/// Throws where a number is none of a choice's, from 0 to `last`.
template <class Choice>
constexpr void check_choice(std::string_view what, Choice choice, Choice last) {
  require(choice >= Choice{} && choice <= last, what, " is ", static_cast<int>(choice), "; its choices are 0 to ",
          static_cast<int>(last), ".");
}

}  // namespace detail

}  // namespace qtensor
