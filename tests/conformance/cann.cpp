// CANN's golden programs for MX along one and two axes and for block quantization, against compat/cann.hpp.
// SPDX-License-Identifier: BSD-3-Clause
//
// Every case runs through the run-time entry points with its own numbers and strings; what still differs must be in
// `exceptions` below.
#include <doctest/doctest.h>

#include <qtensor/compat/cann.hpp>
#include <sstream>

#include "oracle/json.hpp"

namespace {

using namespace oracle;
namespace cann = qtensor::compat::cann;
namespace type = qtensor::compat::cann::type;
using bytes = std::vector<std::uint8_t>;

/// A kind of case where the golden does not follow the operator's document, and why.
const char* const fp4_algorithms =
    "FP4 with scale_alg 1 or 2: the golden always takes scale_alg 0 (the samples' notes)";
const char* const eight_decimals =
    "DynamicBlockQuant: the golden rounds x / scale to 8 decimals before the cast; its answer without that is "
    "`plain_y` "
    "(NUMERICS 4)";
const char* const no_int8 = "DynamicBlockQuant to int8: the golden has no such branch (the samples' notes)";

struct tally {
  std::size_t cases = 0, elements = 0;
  std::map<std::string, std::size_t> excepted;
};

std::int64_t number(const sample& s, const char* name, std::int64_t otherwise) {
  const std::string text = s.param(name);
  return text.empty() || text == "null" || text == "None" ? otherwise : std::stoll(text);
}
double real(const sample& s, const char* name) {
  const std::string text = s.param(name);
  return text.empty() || text == "null" || text == "None" ? 0. : std::stod(text);
}

/// The source of a case as the entry points take it. Its bytes are copied, so that they are aligned.
struct source {
  std::vector<std::uint32_t> words;
  cann::input x;

  explicit source(const sample_array& a) : words(a.bytes.size() / 4 + 1) {
    std::copy(a.bytes.begin(), a.bytes.end(), reinterpret_cast<std::uint8_t*>(words.data()));
    x.data = words.data();
    x.type = a.dtype == "f32" ? type::f32 : a.dtype == "bf16" ? type::bf16 : a.dtype == "f16" ? type::f16 : -1;
    x.sizes = cann::dims(a.shape);
  }
};

bool is_fp4(std::int64_t dst) { return dst == type::e2m1 || dst == type::e1m2; }

/// Room for the result a case has, and the result as its samples spell it: one code a byte.
struct result {
  bytes memory;
  cann::output y;

  result(const sample_array& wanted, std::int64_t t) : memory(wanted.size() * (t == type::f32 ? 4 : 1) + 64, 0xEE) {
    y = {memory.data(), t, cann::dims(wanted.shape)};
  }
  bytes codes(const sample_array& wanted) const {
    bytes out(memory.begin(), memory.begin() + static_cast<std::ptrdiff_t>(wanted.bytes.size()));
    if (is_fp4(y.type))
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = memory[i / 2] >> (i % 2 * 4) & 0xFu;
    return out;
  }
};

void compare(const sample& s, const char* name, const bytes& ours, const sample_array& theirs, tally& t) {
  REQUIRE(ours.size() == theirs.bytes.size());
  std::size_t shown = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (ours[i] == theirs.bytes[i] || ++shown > 4) continue;
    std::ostringstream line;
    line << std::hex << s.id << ", " << name << ": byte " << i << " is 0x" << int{ours[i]} << ", the golden has 0x"
         << int{theirs.bytes[i]};
    FAIL_CHECK(line.str());
  }
  t.elements += theirs.size();
}

bool succeeded(const sample& s, const cann::status& done) {
  if (!done.ok()) FAIL_CHECK(s.id << ": status " << done.code << ", " << done.reason);
  return done.ok();
}

cann::mx_attributes mx_attributes_of(const sample& s, const std::string& round_mode, tally& t) {
  cann::mx_attributes how;
  how.round_mode = round_mode.empty() ? nullptr : round_mode.c_str();
  how.dst_type = number(s, "dst_type", 0);
  how.block_size = number(s, "blocksize", 32);
  how.scale_alg = number(s, "scale_alg", 0);
  if (is_fp4(how.dst_type) && how.scale_alg != 0) {
    how.scale_alg = 0;
    ++t.excepted[fp4_algorithms];
  }
  return how;
}

void compare_dual(const sample& s, tally& t) {
  const source from(s.inputs.at("x"));
  const std::string mode = s.param("round_mode");
  const cann::mx_attributes how = mx_attributes_of(s, mode, t);
  const sample_array &w1 = s.outputs.at("y1"), &w2 = s.outputs.at("y2"), &v1 = s.outputs.at("mxscale1"),
                     &v2 = s.outputs.at("mxscale2");
  const result y1(w1, how.dst_type), y2(w2, how.dst_type), s1(v1, type::e8m0), s2(v2, type::e8m0);
  if (!succeeded(s, cann::dynamic_mx_quant_with_dual_axis(from.x, how, y1.y, s1.y, y2.y, s2.y))) return;
  compare(s, "y1", y1.codes(w1), w1, t);
  compare(s, "mxscale1", s1.codes(v1), v1, t);
  compare(s, "y2", y2.codes(w2), w2, t);
  compare(s, "mxscale2", s2.codes(v2), v2, t);
}

void compare_single(const sample& s, tally& t) {
  const source from(s.inputs.at("x"));
  const std::string mode = s.param("round_mode");
  const cann::mx_attributes how = mx_attributes_of(s, mode, t);
  const sample_array &w = s.outputs.at("y"), &v = s.outputs.at("mxscale");
  const result y(w, how.dst_type), scales(v, type::e8m0);
  if (!succeeded(s, cann::dynamic_mx_quant(from.x, number(s, "axis", -1), how, y.y, scales.y))) return;
  compare(s, "y", y.codes(w), w, t);
  compare(s, "mxscale", scales.codes(v), v, t);
}

void compare_blocks(const sample& s, tally& t) {
  cann::block_attributes how;
  how.dst_type = number(s, "dst_type", type::e5m2);
  if (how.dst_type == type::int8) {
    ++t.excepted[no_int8];
    return;
  }
  const std::string given = s.param("round_mode"), mode = !given.empty()               ? given
                                                          : how.dst_type == type::hif8 ? "round"
                                                                                       : "rint";
  how.round_mode = mode.c_str();
  how.row_block_size = number(s, "row_block_size", 1);
  how.col_block_size = number(s, "col_block_size", 128);
  how.min_scale = static_cast<float>(real(s, "min_scale"));
  how.dst_type_max = static_cast<float>(real(s, "dst_type_max"));
  how.nonfinites = cann::nonfinites::ignored;
  const source from(s.inputs.at("x"));
  const bool plain = s.outputs.count("plain_y") != 0;
  const sample_array &w = s.outputs.at(plain ? "plain_y" : "y"), &v = s.outputs.at(plain ? "plain_scale" : "scale");
  const result y(w, how.dst_type), scales(v, type::f32);
  if (!succeeded(s, cann::dynamic_block_quant(from.x, how, y.y, scales.y))) return;
  compare(s, "y", y.codes(w), w, t);
  compare(s, "scale", scales.codes(v), v, t);
  if (plain && s.outputs.at("y").bytes != w.bytes) ++t.excepted[eight_decimals];
}

}  // namespace

TEST_CASE("cann: every answer of the golden programs is ours, or a listed exception") {
  const std::string reason = why_not("cann");
  if (!reason.empty()) {
    MESSAGE("skipped: ", reason);
    return;
  }
  const std::map<std::string, void (*)(const sample&, tally&)> operators = {
      {"DynamicMxQuantWithDualAxis", compare_dual},
      {"DynamicMxQuant", compare_single},
      {"DynamicBlockQuant", compare_blocks}};
  tally t;
  for (const sample& s : read_samples("cann")) {
    INFO("case ", s.id);
    const auto found = operators.find(s.op);
    if (found == operators.end() || s.program != "ops-nn golden") {
      FAIL_CHECK("no rule for this case: op " << s.op << ", program " << s.program);
      continue;
    }
    ++t.cases;
    found->second(s, t);
  }
  CHECK(t.cases > 0);
  CHECK(t.elements > 0);
  MESSAGE(t.cases, " cases, ", t.elements, " elements compared");
  for (const auto& [why, count] : t.excepted) MESSAGE(count, " exceptions: ", why);
}
