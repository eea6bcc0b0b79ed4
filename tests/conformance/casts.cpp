// Casts and decodes as ml_dtypes, gfloat, torch, numpy, the ONNX reference and ONNX Runtime did them, against our
// codecs. SPDX-License-Identifier: BSD-3-Clause
//
// Every case runs under the policies that name its program's rule; what still differs must be in `exceptions` below.
#include <doctest/doctest.h>

#include <sstream>

#include "oracle/json.hpp"
#include "oracle/library.hpp"

namespace {

using namespace oracle;

/// The formats of the samples: their dtype, the library's codec.
struct dtype {
  const char* name;
  codec ours;
};

const std::vector<dtype>& dtypes() {
  static const std::vector<dtype> all = {{"f8_e4m3fn", propagating_codec_of<qtensor::e4m3>("e4m3")},
                                         {"f8_e5m2", propagating_codec_of<qtensor::e5m2>("e5m2")},
                                         {"f8_e4m3fnuz", propagating_codec_of<qtensor::e4m3fnuz>("e4m3fnuz")},
                                         {"f8_e5m2fnuz", propagating_codec_of<qtensor::e5m2fnuz>("e5m2fnuz")},
                                         {"f8_e4m3b11fnuz", propagating_codec_of<e4m3b11fnuz>("e4m3b11fnuz")},
                                         {"f8_e4m3", propagating_codec_of<e4m3_ieee>("e4m3_ieee")},
                                         {"f8_e3m4", propagating_codec_of<e3m4>("e3m4")},
                                         {"f8_e8m0fnu", propagating_codec_of<qtensor::e8m0>("e8m0")},
                                         {"f6_e2m3", propagating_codec_of<qtensor::e2m3>("e2m3")},
                                         {"f6_e3m2", propagating_codec_of<qtensor::e3m2>("e3m2")},
                                         {"f4_e2m1", propagating_codec_of<qtensor::e2m1>("e2m1")},
                                         {"bf16", propagating_codec_of<qtensor::bf16>("bf16")},
                                         {"f16", propagating_codec_of<qtensor::f16>("f16")},
                                         {"s8", propagating_codec_of<qtensor::int8>("int8")},
                                         {"u8", propagating_codec_of<qtensor::uint8>("uint8")},
                                         {"s4", propagating_codec_of<qtensor::int4>("int4")},
                                         {"u4", propagating_codec_of<qtensor::uint4>("uint4")},
                                         {"s2", propagating_codec_of<qtensor::int2>("int2")},
                                         {"u2", propagating_codec_of<qtensor::uint2>("uint2")}};
  return all;
}

const dtype* find_dtype(const std::string& name) {
  for (const dtype& d : dtypes())
    if (d.name == name) return &d;
  return nullptr;
}

struct policies {
  rounding round = rounding::nearest_even;
  overflow over = overflow::to_special;
};

/// A program's rule in our words (NUMERICS 1.5 to 1.7 and 10); nothing when the case is not one we know.
std::optional<policies> policies_of(const sample& s, const format& to) {
  policies p;
  if (to.only_magnitudes) p.round = rounding::nearest_away;  // "nearest" of e8m0 has ties up, except in gfloat
  if (s.program == "ml_dtypes" && s.param("mode") == "rne_nosat") return p;
  if (s.program == "numpy" && s.param("mode").rfind("rne", 0) == 0) return p;
  if (s.program == "torch" && s.param("mode") == "rne_default") {
    if (to.name == "e4m3") p.over = overflow::saturate;  // torch saturates into e4m3 only
    return p;
  }
  if (s.program == "gfloat") {
    const std::map<std::string, rounding> names = {{"TiesToEven", rounding::nearest_even},
                                                   {"TiesToAway", rounding::nearest_away},
                                                   {"TowardZero", rounding::toward_zero},
                                                   {"TowardPositive", rounding::toward_positive},
                                                   {"TowardNegative", rounding::toward_negative}};
    auto named = names.find(s.param("round"));
    if (named == names.end()) return std::nullopt;
    p.round = named->second;
    if (s.param("sat") == "true") p.over = overflow::saturate;
    return p;
  }
  if (s.program == "onnx_reference" || s.program == "onnxruntime") {
    const std::map<std::string, rounding> modes = {{"", p.round},
                                                   {"nearest", rounding::nearest_away},
                                                   {"up", rounding::toward_positive},
                                                   {"down", rounding::toward_zero}};
    auto mode = modes.find(s.param("round_mode"));
    if (mode == modes.end()) return std::nullopt;
    p.round = mode->second;
    if (s.param("saturate") == "1") p.over = overflow::saturate;
    return p;
  }
  return std::nullopt;
}

/// One element on which a program and our rule differ.
struct difference {
  const sample& from;
  const format& to;
  float x;
  std::uint32_t ours, theirs;

  bool program(const char* name) const { return from.program == name; }
  double size() const { return std::fabs(static_cast<double>(x)); }
};

/// `x` as an integer of the format's width, wrapped around; anything goes beyond int32.
bool is_wrapped(const difference& d, double rounded) {
  if (!(std::fabs(rounded) < 0x1p31)) return true;
  const std::uint32_t mask = (1u << d.to.bits) - 1;
  return (static_cast<std::uint32_t>(static_cast<std::int64_t>(rounded)) & mask) == (d.theirs & mask);
}

struct exception {
  const char* reason;
  bool (*applies)(const difference&);
};

/// Where another program's answer is not our rule, and why. An element counts only when it does differ.
const exception exceptions[] = {
    {"NaN, spelled by another NaN code (NUMERICS 10.2, 10.3)",
     [](const difference& d) {
       return std::isnan(d.x) && std::isnan(decode(d.to, d.ours)) && std::isnan(decode(d.to, d.theirs));
     }},
    {"NaN into a format without one: ml_dtypes and ONNX give -0 and 0, ours +0 (NUMERICS 1.6, 10.2)",
     [](const difference& d) {
       return std::isnan(d.x) && !d.to.nan && !d.to.is_integer && decode(d.to, d.theirs) == 0;
     }},
    {"NaN into a format without one: gfloat, torch and ONNX Runtime each give something else (NUMERICS 10.2)",
     [](const difference& d) {
       return std::isnan(d.x) && !d.to.nan && (d.program("gfloat") || d.program("torch") || d.program("onnxruntime"));
     }},
    {"gfloat's directed roundings without saturation stop at the largest value (NUMERICS, cross-checks)",
     [](const difference& d) {
       return d.program("gfloat") && d.from.param("sat") == "false" && d.from.param("round").rfind("Toward", 0) == 0 &&
              d.size() > d.to.max;
     }},
    {"ONNX Runtime, saturate = 0: e4m3 480 to 496 give 448 (NUMERICS 10.1)",
     [](const difference& d) {
       return d.program("onnxruntime") && d.to.name == "e4m3" && d.from.param("saturate") == "0" && d.size() >= 464 &&
              d.size() <= 496;
     }},
    {"ONNX Runtime, saturate = 0: e5m2 61440 to 65536 give NaN, not infinity (NUMERICS 10.1)",
     [](const difference& d) {
       return d.program("onnxruntime") && d.to.name == "e5m2" && d.from.param("saturate") == "0" && d.size() >= 61440 &&
              d.size() <= 65536;
     }},
    {"e8m0 has no zero and no sign: ml_dtypes and gfloat give NaN, ours drops the sign (NUMERICS 1.7)",
     [](const difference& d) {
       return d.to.only_magnitudes && (d.program("ml_dtypes") || d.program("gfloat")) &&
              (d.x == 0 || std::signbit(d.x)) && d.theirs == *d.to.nan;
     }},
    {"gfloat wraps e8m0 below 2^-127 around",
     [](const difference& d) { return d.to.only_magnitudes && d.program("gfloat") && d.size() < 0x1p-127; }},
    {"ONNX reference, e8m0 below 2^-126: it looks at the wrong bits of a subnormal (NUMERICS 1.7)",
     [](const difference& d) { return d.to.only_magnitudes && d.program("onnx_reference") && d.size() < 0x1p-126; }},
    {"ONNX reference, e8m0 up: a mantissa of a quarter or an eighth alone does not raise the exponent",
     [](const difference& d) {
       const std::uint32_t mantissa = bits_of(d.x) & 0x7FFFFF;
       return d.to.only_magnitudes && d.program("onnx_reference") && d.from.param("round_mode") == "up" &&
              (mantissa & ~0x300000u) == 0 && d.theirs + 1 == d.ours;
     }},
    {"ONNX reference: integers are truncated and wrap around, ours round and saturate (NUMERICS 10.5)",
     [](const difference& d) {
       return d.program("onnx_reference") && d.to.is_integer && is_wrapped(d, std::trunc(static_cast<double>(d.x)));
     }},
    {"ONNX Runtime: integers round half away and wrap around, ours round to even and saturate (NUMERICS 10.5)",
     [](const difference& d) {
       return d.program("onnxruntime") && d.to.is_integer && is_wrapped(d, std::round(static_cast<double>(d.x)));
     }}};

/// What was compared, for the summary and for the test's own honesty.
struct tally {
  std::size_t cases = 0, elements = 0;
  std::map<std::string, std::size_t> excepted;
};

bool is_excepted(const difference& d, tally& t) {
  for (const exception& e : exceptions)
    if (e.applies(d)) {
      ++t.excepted[e.reason];
      return true;
    }
  return false;
}

void compare_decode(const sample& s, const dtype& d, tally& t) {
  const auto codes = s.inputs.at("codes").words();
  const auto values = s.outputs.at("f32").floats();
  REQUIRE(codes.size() == values.size());
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const double ours = d.ours.decode(codes[i]), theirs = static_cast<double>(values[i]);
    const bool same =
        std::isnan(theirs) ? std::isnan(ours) : ours == theirs && std::signbit(ours) == std::signbit(theirs);
    if (!same)
      FAIL_CHECK(s.id << ": code " << codes[i] << " decodes to " << ours << ", " << s.program << " says " << theirs);
  }
  t.elements += codes.size();
}

void compare_cast(const sample& s, const dtype& d, const policies& p, tally& t) {
  const format& to = format_named(d.ours.name);
  const auto x = s.inputs.at("x").floats();
  const auto codes = s.outputs.at("codes").words();
  REQUIRE(x.size() == codes.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::uint32_t ours = d.ours.encode(x[i], p.round, p.over, nan_rule::propagates);
    if (ours == codes[i] || is_excepted({s, to, x[i], ours, codes[i]}, t)) continue;
    std::ostringstream line;
    line << std::hex << s.id << ": f32 bits 0x" << bits_of(x[i]) << " gives 0x" << ours << " with " << name_of(p.round)
         << ", " << name_of(p.over) << "; " << s.program << " gives 0x" << codes[i];
    FAIL_CHECK(line.str());
  }
  t.elements += x.size();
}

}  // namespace

TEST_CASE(
    "casts: every answer of another program is ours under the policies that name its rule, or a listed exception") {
  const std::string reason = why_not("casts");
  if (!reason.empty()) {
    MESSAGE("skipped: ", reason);
    return;
  }
  tally t;
  for (const sample& s : read_samples("casts")) {
    INFO("case ", s.id);
    const bool decodes = s.op == "decode";
    const dtype* d = find_dtype(s.param(decodes ? "format" : "to"));
    if (d == nullptr || !(decodes || s.op == "cast")) {
      FAIL_CHECK("no rule for this case: op " << s.op << ", program " << s.program);
      continue;
    }
    ++t.cases;
    if (decodes) {
      compare_decode(s, *d, t);
      continue;
    }
    const auto p = policies_of(s, format_named(d->ours.name));
    if (p)
      compare_cast(s, *d, *p, t);
    else
      FAIL_CHECK("no rule for program " << s.program << " in this mode");
  }
  CHECK(t.cases > 0);
  MESSAGE(t.cases, " cases, ", t.elements, " elements compared");
  for (const auto& [why, count] : t.excepted) MESSAGE(count, " exceptions: ", why);
}
