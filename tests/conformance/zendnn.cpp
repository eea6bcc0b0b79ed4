// ZenDNN's reorder kernels, run: every answer is ours, and those on quotients beyond int32 are ours in x86 mode.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <qtensor/compat/zendnn.hpp>
#include <sstream>

#include "compat/zendnn_check.hpp"
#include "oracle/json.hpp"

namespace {

using namespace oracle;
using zendnn_check::buffer;
using zendnn_check::data_type_t;
using zendnn_check::float_at;
using zendnn_check::special_quotients_t;
using words = std::vector<std::uint32_t>;

std::optional<data_type_t> type_named(const std::string& name) {
  const std::map<std::string, data_type_t> names = {{"f32", data_type_t::f32},
                                                    {"bf16", data_type_t::bf16},
                                                    {"f16", data_type_t::f16},
                                                    {"s8", data_type_t::s8},
                                                    {"u8", data_type_t::u8}};
  const auto found = names.find(name);
  return found == names.end() ? std::nullopt : std::optional(found->second);
}

/// A sample as a call. Zero points as later releases take them: any.
struct call {
  data_type_t from, to;
  float scale;
  std::int32_t zero_point;
  words source;

  words run(special_quotients_t quotients) const {
    const buffer src(from, source);
    buffer dst(to, words(source.size()));
    zendnn_check::lowoha_reorder_params_t p;
    p.dtypes = {from, to};
    p.quant_params.scale = {&scale, data_type_t::f32, {}};
    p.quant_params.zero_point = {&zero_point, data_type_t::s32, {}};
    p.special_quotients = quotients;
    p.zero_points = zendnn_check::zero_points_t::int32;
    const auto status = zendnn_check::reorder(src.data(), dst.data(), source.size(), p);
    INFO(status.reason());
    REQUIRE(status == zendnn_check::status_t::success);
    return dst.words();
  }
};

/// One element on which ZenDNN and our default differ.
struct difference {
  const call& from;
  std::uint32_t source, ours, theirs, in_x86_mode;

  bool is_wide() const { return !zendnn_check::is_code(from.to); }
  float x() const { return float_at(from.from, source); }
};

struct exception {
  const char* reason;
  bool (*applies)(const difference&);
};

const exception exceptions[] = {
    {"NaN and quotients beyond int32: -2^31 as x86 converts, plus the zero point; ours with special_quotients_t::x86 "
     "(NUMERICS 6)",
     [](const difference& d) {
       if (zendnn_check::is_code(d.from.from) || d.is_wide()) return false;
       const double q = static_cast<double>(d.x() / d.from.scale) + d.from.zero_point;
       return !(q >= -0x1p31 && q < 0x1p31 && std::fabs(d.x() / d.from.scale) < 0x1p31f) && d.theirs == d.in_x86_mode;
     }},
    {"NaN, spelled by another NaN code (NUMERICS 10.3)",
     [](const difference& d) {
       return d.is_wide() && std::isnan(float_at(d.from.to, d.ours)) && std::isnan(float_at(d.from.to, d.theirs));
     }},
    {"NaN to bf16: ZenDNN's scalar code rounds the payload, up to infinity or zero (NUMERICS 10.3)",
     [](const difference& d) { return d.from.to == data_type_t::bf16 && std::isnan(float_at(d.from.to, d.ours)); }}};

std::string rule_of(const difference& d) {
  for (const exception& e : exceptions)
    if (e.applies(d)) return e.reason;
  return "";
}

}  // namespace

TEST_CASE("zendnn samples: every code and every float is the kernels' own, or a listed exception") {
  const std::string reason = why_not("zendnn");
  if (!reason.empty()) {
    MESSAGE("skipped: ", reason);
    return;
  }
  std::size_t cases = 0, elements = 0;
  std::map<std::string, std::size_t> excepted, of_op;
  for (const sample& s : read_samples("zendnn")) {
    INFO("case ", s.id);
    const auto from = type_named(s.param("src")), to = type_named(s.param("dst"));
    const bool known = s.op == "quantize" || s.op == "dequantize" || s.op == "convert";
    if (!known || !from || !to || s.inputs.size() != 1 || s.outputs.size() != 1 || s.param("scale").empty() ||
        s.param("zero_point").empty()) {
      FAIL_CHECK("no rule for this case: op " << s.op << ", program " << s.program);
      continue;
    }
    ++cases;
    ++of_op[s.op];
    const call c{*from, *to, static_cast<float>(std::stod(s.param("scale"))), std::stoi(s.param("zero_point")),
                 s.inputs.begin()->second.words()};
    const words theirs = s.outputs.begin()->second.words(), ours = c.run(special_quotients_t::saturate),
                as_x86 = c.run(special_quotients_t::x86);
    REQUIRE(theirs.size() == ours.size());
    elements += ours.size();
    for (std::size_t i = 0; i < ours.size(); ++i) {
      if (ours[i] == theirs[i]) continue;
      if (const std::string rule = rule_of({c, c.source[i], ours[i], theirs[i], as_x86[i]}); !rule.empty()) {
        ++excepted[rule];
        continue;
      }
      std::ostringstream line;
      line << std::hex << s.id << ": 0x" << c.source[i] << " gives 0x" << ours[i] << ", ZenDNN gives 0x" << theirs[i];
      FAIL_CHECK(line.str());
    }
  }
  CHECK(cases > 0);
  CHECK(of_op.size() == 3);
  MESSAGE(cases, " cases, ", elements, " elements compared");
  for (const auto& [why, count] : excepted) MESSAGE(count, " exceptions: ", why);
}
