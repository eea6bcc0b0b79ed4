// The comparison that every codec test runs: one library format against the oracle, under every choice of policies.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <doctest/doctest.h>

#include <sstream>

#include "oracle/inputs.hpp"
#include "oracle/library.hpp"

namespace oracle {

inline constexpr rounding roundings[] = {rounding::nearest_even,    rounding::nearest_away, rounding::toward_negative,
                                         rounding::toward_positive, rounding::toward_zero,  rounding::via_f16};
inline constexpr overflow overflows[] = {overflow::saturate, overflow::to_special};
inline constexpr nan_rule nan_rules[] = {nan_rule::propagates, nan_rule::to_zero, nan_rule::to_zero_point,
                                         nan_rule::to_max};

/// Prints the first disagreements as calls that reproduce them, and counts the rest.
class encode_comparison {
 public:
  encode_comparison(const format& f, const codec& c) : format_(f), codec_(c) {}
  ~encode_comparison() {
    CHECK_MESSAGE(wrong_ == 0, format_.name << ": " << wrong_ << " of " << compared_ << " codes differ");
  }

  void compare(float x, rounding r, overflow o, nan_rule n) {
    ++compared_;
    const std::uint32_t expected = encode(format_, static_cast<double>(x), r, o, n), actual = codec_.encode(x, r, o, n);
    if (actual == expected || wrong_++ >= 10) return;
    std::ostringstream call;
    call << std::hex << "encode<" << format_.name << ", " << name_of(r) << ", " << name_of(o) << ", " << name_of(n)
         << ">(float_of(0x" << bits_of(x) << ")) is 0x" << actual << ", the oracle says 0x" << expected;
    FAIL_CHECK(call.str());
  }

 private:
  const format& format_;
  const codec& codec_;
  std::size_t compared_ = 0, wrong_ = 0;
};

/// All roundings and overflow policies on every input; the nan policies on every NaN and on about 20,000 other inputs,
/// where they must not matter.
inline void check_encode(const codec& c, const std::vector<float>& inputs) {
  encode_comparison all(format_named(c.name), c);
  const std::size_t stride = inputs.size() / 20000 + 1;
  for (rounding r : roundings)
    for (overflow o : overflows)
      for (std::size_t i = 0; i < inputs.size(); ++i)
        for (nan_rule n : nan_rules)
          if (n == nan_rule::propagates || std::isnan(inputs[i]) || i % stride == 0) all.compare(inputs[i], r, o, n);
}

/// Every code's value, with the sign of its zero and of its infinity.
inline void check_decode(const codec& c) {
  const format& f = format_named(c.name);
  for (std::uint32_t code = 0; code < f.decoded.size(); ++code) {
    const double expected = f.decoded[code], actual = c.decode(code);
    INFO("decode<", f.name, ">(", code, ") is ", actual, ", the oracle says ", expected);
    if (std::isnan(expected))
      CHECK(std::isnan(actual));
    else
      CHECK((actual == expected && std::signbit(actual) == std::signbit(expected)));
  }
}

/// encode(decode(code)) == code for every finite code an encoder may give, whatever the rounding.
inline void check_identity(const codec& c) {
  const format& f = format_named(c.name);
  for (std::uint32_t code = 0; code < f.decoded.size(); ++code) {
    const double value = f.decoded[code];
    if (!(value >= f.min && value <= f.max)) continue;
    for (rounding r : roundings) {
      if (r == rounding::via_f16 && f.name != "f16") continue;  // f16 need not hold the value
      for (overflow o : overflows) {
        const std::uint32_t back = c.encode(static_cast<float>(c.decode(code)), r, o, nan_rule::propagates);
        INFO("encode<", f.name, ", ", std::string(name_of(r)), ", ", std::string(name_of(o)), ">(decode(", code,
             ")) is ", back);
        CHECK(back == code);
      }
    }
  }
}

}  // namespace oracle

/// The four promises of one format; `Format` is the library's type, `oracle_name` the oracle's word for it.
#define QTENSOR_TEST_CODEC(Format, oracle_name)                                                                        \
  TEST_CASE("codec " oracle_name ": every code decodes to the value of the specification's table") {                   \
    oracle::check_decode(oracle::codec_of<Format>(oracle_name));                                                       \
  }                                                                                                                    \
  TEST_CASE("codec " oracle_name ": every finite code encodes to itself under every rounding") {                       \
    oracle::check_identity(oracle::codec_of<Format>(oracle_name));                                                     \
  }                                                                                                                    \
  TEST_CASE("codec " oracle_name ": adversarial inputs go to the oracle's neighbour under every choice of policies") { \
    oracle::check_encode(oracle::codec_of<Format>(oracle_name),                                                        \
                         oracle::adversarial(oracle::format_named(oracle_name)));                                      \
  }                                                                                                                    \
  TEST_CASE("codec " oracle_name ": all 65,536 bf16 and f16 numbers go to the oracle's neighbour") {                   \
    oracle::check_encode(oracle::codec_of<Format>(oracle_name), oracle::every_bf16());                                 \
    oracle::check_encode(oracle::codec_of<Format>(oracle_name), oracle::every_f16());                                  \
  }
