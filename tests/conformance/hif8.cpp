// HiFloat8 as CANN's cast and the format's authors' simulators did it, against our codec.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <sstream>

#include "oracle/json.hpp"
#include "oracle/library.hpp"

namespace {

using namespace oracle;

const codec& ours() {
  static const codec c = propagating_codec_of<qtensor::hif8>("hif8");
  return c;
}

std::uint32_t code_of(float x) {
  return ours().encode(x, rounding::nearest_away, overflow::to_special, nan_rule::propagates);
}

std::string reproducer(float x) {
  std::ostringstream call;
  call << "encode<hif8, to_special>(float_of(0x" << std::hex << bits_of(x) << ")) is ";
  return call.str();
}

/// Elements compared and elements excepted, of one case.
struct tally {
  std::size_t elements = 0, cann_wraps = 0;
};

/// Codes; `cann_valid` marks where CANN's exponent does not wrap around (NUMERICS 1.8, contradiction c).
tally compare_codes(const sample& s) {
  const auto x = s.inputs.at("x").floats();
  const auto codes = s.outputs.at("codes").words(), valid = s.outputs.at("cann_valid").words();
  REQUIRE(x.size() == codes.size());
  REQUIRE(x.size() == valid.size());
  tally t;
  for (std::size_t i = 0; i < x.size(); ++i) {
    ++t.elements;
    if (code_of(x[i]) == codes[i]) continue;
    const bool errs = valid[i] == 0 && (std::fabs(x[i]) < 0x1p-126f || std::fabs(x[i]) == float_of(0x33FFFFFFu));
    if (errs)
      ++t.cann_wraps;
    else
      FAIL_CHECK(s.id << ": " << reproducer(x[i]) << code_of(x[i]) << ", CANN says " << codes[i]);
  }
  return t;
}

/// Values after a round trip; a NaN is a NaN, whatever its payload.
tally compare_values(const sample& s) {
  const auto x = s.inputs.at("x").floats(), values = s.outputs.at("f32").floats();
  REQUIRE(x.size() == values.size());
  tally t;
  for (std::size_t i = 0; i < x.size(); ++i) {
    ++t.elements;
    const double mine = ours().decode(code_of(x[i])), theirs = static_cast<double>(values[i]);
    const bool same = std::isnan(theirs) ? std::isnan(mine) : mine == theirs;
    if (!same)
      FAIL_CHECK(s.id << ": " << reproducer(x[i]) << code_of(x[i]) << " = " << mine << ", the simulator says "
                      << theirs);
  }
  return t;
}

tally compare_decode(const sample& s) {
  const auto codes = s.inputs.at("codes").words();
  const auto values = s.outputs.at("f32").floats();
  REQUIRE(codes.size() == values.size());
  tally t;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    ++t.elements;
    const double mine = ours().decode(codes[i]), theirs = static_cast<double>(values[i]);
    const bool same = std::isnan(theirs) ? std::isnan(mine) : mine == theirs;
    if (!same) FAIL_CHECK(s.id << ": code " << codes[i] << " decodes to " << mine << ", expected " << theirs);
  }
  return t;
}

}  // namespace

TEST_CASE(
    "hif8: codes and values of CANN and of the authors' simulators are ours, except where CANN's exponent wraps") {
  const std::string reason = why_not("hif8");
  if (!reason.empty()) {
    MESSAGE("skipped: ", reason);
    return;
  }
  std::size_t cases = 0;
  tally total;
  for (const sample& s : read_samples("hif8")) {
    INFO("case ", s.id);
    const bool rounds_away = s.op == "decode" || (s.param("round") == "TA" && s.param("sat") == "false");
    tally t;
    if (s.op == "decode")
      t = compare_decode(s);
    else if (s.op == "cast" && rounds_away)
      t = compare_codes(s);
    else if (s.op == "cast_value" && rounds_away)
      t = compare_values(s);
    else
      FAIL_CHECK("no rule for this case: op " << s.op << ", program " << s.program);
    ++cases;
    total.elements += t.elements;
    total.cann_wraps += t.cann_wraps;
  }
  CHECK(cases > 0);
  MESSAGE(cases, " cases, ", total.elements, " elements compared");
  MESSAGE(total.cann_wraps, " exceptions: CANN's exponent wraps around (NUMERICS 1.8)");
}
