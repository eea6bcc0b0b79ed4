// Block formats as ggml wrote and read them, byte for byte and bit for bit, through tensors and through rows.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <qtensor/compat/ggml_rows.hpp>
#include <qtensor/tensor/view_of.hpp>

#include "oracle/json.hpp"

namespace {

using namespace oracle;
namespace qt = qtensor;
namespace ggml = qtensor::compat::ggml;

/// Families outside the library's scope, by the samples' own README.
const std::map<int, const char*> out_of_scope = {{41, "q1_0"}, {42, "q2_0"}};

/// What was compared and what was excepted.
struct tally {
  std::size_t cases = 0, out_of_scope = 0;
  std::size_t numbers = 0, bytes = 0, nan_blocks = 0;
};

std::string hex(const std::uint8_t* bytes, std::size_t n) {
  static const char* digits = "0123456789abcdef";
  std::string out;
  for (std::size_t i = 0; i < n; ++i) out += {digits[bytes[i] >> 4], digits[bytes[i] & 15]};
  return out;
}

/// Whether a block is excepted: ggml's Q8 compares maxima so that a NaN hides the elements before it; ours is then a
/// block of NaN. (What C makes of a NaN is the platform's choice anyway; the samples call these cases informative.)
bool is_excepted(int type, const float* first, qt::index_t n) {
  return (type == 8 || type == 9) && std::any_of(first, first + n, [](float v) { return std::isnan(v); });
}

/// Rows of floats become ggml's bytes.
void compare_written(const sample& s, int type, const std::vector<float>& x, const sample_array& theirs, tally& t) {
  const auto block = ggml::block_size_of(type);
  const qt::index_t rows = static_cast<qt::index_t>(theirs.shape[0]);
  const qt::index_t n = static_cast<qt::index_t>(x.size()) / rows, row_bytes = ggml::row_bytes(type, n);
  REQUIRE(static_cast<std::size_t>(rows * row_bytes) == theirs.bytes.size());
  std::vector<std::uint8_t> ours(static_cast<std::size_t>(row_bytes));
  for (qt::index_t row = 0; row < rows; ++row) {
    const float* from = x.data() + row * n;
    REQUIRE(ggml::quantize_row(type, from, ours.data(), n).reason == "");
    for (qt::index_t b = 0; b < n / block.elements; ++b) {
      const float* first = from + b * block.elements;
      if (is_excepted(type, first, block.elements)) {
        ++t.nan_blocks;
        continue;
      }
      const std::uint8_t* mine = ours.data() + b * block.bytes;
      const std::uint8_t* other = theirs.bytes.data() + row * row_bytes + b * block.bytes;
      const auto size = static_cast<std::size_t>(block.bytes);
      t.bytes += size;
      if (hex(mine, size) != hex(other, size))
        FAIL_CHECK(s.id << ": block " << b << " of row " << row << " is " << hex(mine, size) << ", ggml wrote "
                        << hex(other, size));
    }
  }
}

/// ggml's bytes become its floats, bit for bit; a NaN is a NaN.
void compare_read(const sample& s, int type, const sample_array& q, const std::vector<float>& theirs, tally& t) {
  const qt::index_t rows = static_cast<qt::index_t>(q.shape[0]);
  const qt::index_t n = static_cast<qt::index_t>(theirs.size()) / rows;
  const auto row_bytes = q.bytes.size() / static_cast<std::size_t>(rows);
  std::vector<float> ours(static_cast<std::size_t>(n));
  for (qt::index_t row = 0; row < rows; ++row) {
    const std::uint8_t* from = q.bytes.data() + static_cast<std::size_t>(row) * row_bytes;
    REQUIRE(ggml::dequantize_row(type, from, ours.data(), n).reason == "");
    for (qt::index_t i = 0; i < n; ++i) {
      const float mine = ours[static_cast<std::size_t>(i)], other = theirs[static_cast<std::size_t>(row * n + i)];
      ++t.numbers;
      if (std::isnan(other) ? !std::isnan(mine) : bits_of(mine) != bits_of(other))
        FAIL_CHECK(s.id << ": element " << i << " of row " << row << " is " << mine << ", ggml says " << other);
    }
  }
}

}  // namespace

TEST_CASE("ggml: every block is written byte for byte and read bit for bit") {
  const std::string reason = why_not("ggml");
  if (!reason.empty()) {
    MESSAGE("skipped: ", reason);
    return;
  }
  tally t;
  for (const sample& s : read_samples("ggml")) {
    INFO("case ", s.id);
    const int type = std::stoi(s.param("type_id"));
    if (out_of_scope.count(type) != 0) {
      ++t.out_of_scope;
      continue;
    }
    if (ggml::block_size_of(type).elements == 0 || (s.op != "quantize_row" && s.op != "dequantize_row")) {
      FAIL_CHECK("no rule for this case: type " << type << ", op " << s.op);
      continue;
    }
    ++t.cases;
    const sample_array& q = s.op == "quantize_row" ? s.outputs.at("q") : s.inputs.at("q");
    if (s.op == "quantize_row") compare_written(s, type, s.inputs.at("x").floats(), q, t);
    if (s.outputs.count("deq") != 0) compare_read(s, type, q, s.outputs.at("deq").floats(), t);
  }
  CHECK(t.cases > 0);
  CHECK(t.bytes > 0);
  CHECK(t.numbers > 0);
  MESSAGE(t.cases, " cases: ", t.bytes, " bytes and ", t.numbers, " numbers compared");
  MESSAGE("exceptions: ", t.out_of_scope, " cases of q1_0 and q2_0, outside the library's scope");
  MESSAGE("exceptions: ", t.nan_blocks, " q8_0 and q8_1 blocks that hold a NaN");
}
