// What the tests of convolutions share: problems with random codes, and the sums that the definition gives.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <qtensor/ops/convolution.hpp>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "../simd/check.hpp"

namespace convolution_check {

namespace qt = qtensor;
using qt::index_t;
using position = qt::convolution_shape::position;

/// The kind of a random code: anything, or only the ends of the range.
enum class codes { any, extreme };

struct problem {
  std::string x_order = "NHWC", w_order = "OIHW", y_order = "NHWC";
  index_t batch = 1, inputs = 1, outputs = 1;
  std::vector<index_t> sizes = {1, 1}, taps = {1, 1};
  qt::convolution_options how = {};
  qt::simd::code_sign x_sign = qt::simd::code_sign::is_signed, w_sign = qt::simd::code_sign::is_signed;
  std::int32_t x_zero = 0;
  std::vector<std::int32_t> w_zeros = {};
  codes kind = codes::any;

  std::string text() const {
    std::ostringstream s;
    const auto list = [&](const char* name, const std::vector<index_t>& v) {
      s << " " << name << " [";
      for (const index_t e : v) s << e << " ";
      s << "]";
    };
    s << x_order << " " << w_order << " n " << batch << " c " << inputs << " o " << outputs << " g " << how.groups
      << " bg " << how.batch_groups << " zp " << x_zero << " of w " << w_zeros.size() << " signs "
      << static_cast<int>(x_sign) << " " << static_cast<int>(w_sign);
    list("in", sizes), list("taps", taps), list("strides", how.strides), list("dilations", how.dilations);
    list("input dilations", how.input_dilations), list("low", how.pad_low), list("high", how.pad_high);
    return s.str();
  }
};

inline std::mt19937& random_bits() {
  static std::mt19937 engine(20240611);
  return engine;
}
inline std::vector<std::uint8_t> random_codes(index_t n, codes kind, qt::simd::code_sign sign) {
  std::vector<std::uint8_t> out(static_cast<std::size_t>(n));
  const auto low = static_cast<std::uint8_t>(0x80u ^ static_cast<std::uint8_t>(sign));
  for (auto& c : out) {
    const auto bits = static_cast<std::uint8_t>(random_bits()() >> 8);
    c = kind == codes::any ? bits : bits % 8 == 0 ? static_cast<std::uint8_t>(low - 1) : low;
  }
  return out;
}
inline std::int64_t number(std::uint8_t code, qt::simd::code_sign sign) {
  return sign == qt::simd::code_sign::is_signed ? static_cast<std::int8_t>(code) : static_cast<std::int64_t>(code);
}

/// A problem with its operands in memory.
struct operands {
  qt::convolution_plan plan;
  std::vector<std::uint8_t> x, w;

  explicit operands(const problem& p) {
    qt::convolution_layout x_layout{p.x_order, {}}, w_layout{p.w_order, {}};
    const std::string letters = std::string("DHW").substr(3 - p.sizes.size());
    for (const char c : p.x_order)
      x_layout.extents.push_back(c == 'N' ? p.batch : c == 'C' ? p.inputs : p.sizes[letters.find(c)]);
    const index_t all = p.how.groups * p.how.batch_groups;
    const bool grouped = p.w_order.find('G') != std::string::npos;
    for (const char c : p.w_order)
      w_layout.extents.push_back(c == 'G'   ? all
                                 : c == 'O' ? (grouped ? p.outputs / all : p.outputs)
                                 : c == 'I' ? p.inputs / p.how.groups
                                            : p.taps[letters.find(c)]);
    plan = qt::plan_convolution(x_layout, w_layout, p.how);
    index_t x_count = 1, w_count = 1;
    for (const index_t e : x_layout.extents) x_count *= e;
    for (const index_t e : w_layout.extents) w_count *= e;
    x = random_codes(x_count, p.kind, p.x_sign);
    w = random_codes(w_count, p.kind, p.w_sign);
  }
  std::int64_t x_number(const problem& p, index_t n, index_t c, const position& at) const {
    return number(x[static_cast<std::size_t>(plan.input.at(n, c, at))], p.x_sign) - p.x_zero;
  }
  std::int64_t w_number(const problem& p, index_t o, index_t i, const position& tap) const {
    const std::int32_t zero = p.w_zeros.empty()       ? 0
                              : p.w_zeros.size() == 1 ? p.w_zeros[0]
                                                      : p.w_zeros[static_cast<std::size_t>(o)];
    return number(w[static_cast<std::size_t>(plan.kernel.at(o, i, tap))], p.w_sign) - zero;
  }
  /// The sums by definition, at n * outputs * pixels + o * pixels + pixel.
  std::vector<std::int64_t> expected(const problem& p) const {
    const qt::convolution_shape& s = plan.shape;
    std::vector<std::int64_t> y(static_cast<std::size_t>(s.result_batch() * s.outputs * s.pixels()));
    qt::reference::convolution(
        s, [&](index_t n, index_t c, const position& at) { return x_number(p, n, c, at); },
        [&](index_t o, index_t i, const position& tap) { return w_number(p, o, i, tap); },
        [&](index_t n, index_t o, const position& at, std::int64_t sum) {
          const index_t pixel = (at[0] * s.axes[1].out() + at[1]) * s.axes[2].out() + at[2];
          y[static_cast<std::size_t>((n * s.outputs + o) * s.pixels() + pixel)] = sum;
        });
    return y;
  }
};

/// Whether the tiles of one architecture are the sums, each once; the source lies at one end of memory or the other.
template <class A, class By = qt::serial>
void compare(const problem& p, const operands& data, const std::vector<std::int64_t>& want, const By& by = {}) {
  static int turn = 0;
  const qt::convolution_shape& s = data.plan.shape;
  const auto packed = qt::pack_convolution<A>(data.plan, {data.w.data(), p.w_sign, p.w_zeros});
  std::vector<std::int64_t> y(want.size(), INT64_MIN);
  bool twice = false;
  check::fenced<std::uint8_t> source(data.x, turn++ % 2 == 1);
  qt::convolve(
      packed, {source.data(), p.x_sign, p.x_zero},
      [&](const qt::convolution_tile& t) {
        for (index_t r = 0; r < t.pixels; ++r)
          for (index_t c = 0; c < t.channels; ++c) {
            auto& to = y[static_cast<std::size_t>((t.batch * s.outputs + t.channel + c) * s.pixels() + t.pixel + r)];
            twice = twice || to != INT64_MIN;
            to = t.sums[r * t.stride + c];
          }
      },
      by);
  INFO(p.text(), " by ", std::string(qt::simd::arch_name<A>), " form ", static_cast<int>(packed.form()));
  REQUIRE(!twice);
  REQUIRE(y == want);
}

/// The same on every architecture of the translation unit.
inline void check_sums(const problem& p) {
  const operands data(p);
  const auto want = data.expected(p);
  qt::simd::archs::for_each([&]<class A>(A) { compare<A>(p, data, want); });
}

}  // namespace convolution_check
