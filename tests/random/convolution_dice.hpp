// Random convolutions: geometry, layouts of operands and results, and outputs by definition.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <numeric>
#include <qtensor/ops/convolution_sinks.hpp>
#include <string>

#include "../ops/threads.hpp"
#include "array.hpp"

namespace convolution_dice {

namespace qt = qtensor;
using fuzz::dice;
using qt::index_t;
using qt::simd::code_sign;
using position = qt::convolution_shape::position;

/// Letters in any order, half the time in the given one.
inline std::string shuffled(dice& dice, std::string letters) {
  if (dice.chance(2))
    for (std::size_t i = letters.size(); i > 1; --i)
      std::swap(letters[i - 1], letters[static_cast<std::size_t>(dice.within(0, static_cast<index_t>(i) - 1))]);
  return letters;
}

/// Strides of extents, dense or with room here and there, and the places from the first element to the last.
inline index_t stride(dice& dice, const std::vector<index_t>& extents, std::vector<index_t>& strides) {
  index_t next = dice.chance(8) ? dice.within(2, 3) : 1, places = 1;
  strides.assign(extents.size(), 0);
  for (std::size_t i = extents.size(); i-- > 0;) {
    if (dice.chance(6)) next += dice.within(1, 5);
    strides[i] = next;
    places = extents[i] == 0 || places == 0 ? 0 : places + (extents[i] - 1) * next;
    next *= std::max(index_t{1}, extents[i]);
  }
  return places;
}

/// An operand in memory.
struct operand {
  std::string order;
  std::vector<index_t> extents, strides;
  index_t places;

  template <class ExtentOf>
  operand(dice& dice, const std::string& letters, const ExtentOf& extent_of) : order(letters) {
    for (const char c : order) extents.push_back(extent_of(c));
    places = stride(dice, extents, strides);
  }
  qt::convolution_layout layout() const { return {order, extents, strides}; }
};

/// Extents and options. Sizes are drawn around what the kernels' forms turn on: channels that fill quads or do not, few
/// outputs and whole panels, rows that are short or cut.
struct problem {
  index_t rank, batch, inputs, outputs;  // channels of a group
  std::vector<index_t> sizes, taps;
  qt::convolution_options how;

  explicit problem(dice& dice) {
    const index_t most = dice.chance(60) ? index_t{20000000} : dice.chance(3) ? index_t{1000000} : index_t{100000};
    do draw(dice, most);
    while (terms() > most || (terms() == 0 && !dice.chance(8)));
  }
  /// Products of all sums, if padding is not much.
  index_t terms() const {
    index_t n = batch * inputs * outputs * how.groups;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const qt::convolution_axis a{sizes[i],
                                   taps[i],
                                   at(how.strides, i, 1),
                                   at(how.dilations, i, 1),
                                   at(how.input_dilations, i, 1),
                                   at(how.pad_low, i, 0),
                                   at(how.pad_high, i, 0)};
      n *= a.out() * a.taps;
    }
    return n;
  }

 private:
  void draw(dice& dice, index_t most) {
    const index_t kind = dice.within(0, 9), few = dice.chance(40) ? 0 : 1, panels = dice.within(1, 9);
    rank = dice.chance(6) ? 3 : dice.chance(4) ? 1 : 2;
    how = {};
    if (kind < 4) how.groups = dice.chance(3) ? dice.within(1, 80) : dice.within(2, 9);
    if (kind == 4) how.batch_groups = dice.within(2, 3);
    batch = how.batch_groups * dice.within(dice.chance(40) ? 0 : 1, 2);
    inputs = kind < 2 ? dice.one_of(1, 1, 2, 4) : dice.within(few, dice.chance(3) ? 200 : 20);
    outputs = kind < 2         ? dice.one_of(1, 1, 2, 3)
              : dice.chance(3) ? 16 * panels + dice.within(-1, 1)
                               : dice.within(dice.chance(40) ? 0 : 1, 20);
    sizes.clear(), taps.clear();
    for (index_t i = 0; i < rank; ++i) {
      const bool wide = dice.chance(i + 1 == rank ? 3 : 9);
      sizes.push_back(dice.within(dice.chance(30) ? 0 : 1, wide ? 90 : 14));
      taps.push_back(dice.within(1, wide && dice.chance(2) ? 12 : 4));
      if (dice.chance(12)) taps.back() = std::max(index_t{1}, sizes.back());
    }
    const auto list = [&](index_t turns, index_t first, index_t last) {
      std::vector<index_t> items;
      if (dice.chance(turns))
        for (index_t i = 0; i < rank; ++i) items.push_back(dice.within(first, last));
      return items;
    };
    how.strides = list(2, 1, dice.chance(5) ? 6 : 3);
    how.dilations = list(3, 1, dice.chance(5) ? 5 : 2);
    how.input_dilations = list(6, 1, 3);
    how.pad_low = list(2, -2, dice.chance(6) ? 20 : 3);
    how.pad_high = list(2, -2, dice.chance(6) ? 20 : 3);
    for (int turn = 0; turn < 30 && terms() > most; ++turn) {
      index_t& one = dice.chance(3)   ? sizes[static_cast<std::size_t>(dice.within(0, rank - 1))]
                     : dice.chance(3) ? taps[static_cast<std::size_t>(dice.within(0, rank - 1))]
                     : dice.chance(2) ? inputs
                     : dice.chance(2) ? outputs
                                      : how.groups;
      one = qt::divide_up(one, index_t{2});
    }
  }
  static index_t at(const std::vector<index_t>& list, std::size_t i, index_t otherwise) {
    return list.empty() ? otherwise : list[i];
  }
};

/// The operands of a problem, in any layouts.
struct operands {
  problem p;
  std::string spatial;
  operand x, w;
  qt::convolution_plan plan;

  explicit operands(dice& dice)
      : p(dice),
        spatial(std::string("DHW").substr(static_cast<std::size_t>(3 - p.rank))),
        x(dice, shuffled(dice, dice.chance(2) ? "N" + spatial + "C" : "NC" + spatial),
          [&](char c) { return c == 'N'   ? p.batch
                               : c == 'C' ? p.inputs * p.how.groups
                                          : along(p.sizes, c); }),
        w(dice,
          shuffled(dice, dice.chance(3)   ? "GOI" + spatial
                         : dice.chance(2) ? "OI" + spatial
                                          : spatial + "IO"),
          [&](char c) { return c == 'G'   ? groups()
                               : c == 'I' ? p.inputs
                                          : along(p.taps, c); }) {
    const std::size_t o = w.order.find('O');
    w.extents[o] = p.outputs * (w.order.find('G') == std::string::npos ? groups() : 1);
    w.places = stride(dice, w.extents, w.strides);
    plan = qt::plan_convolution(x.layout(), w.layout(), p.how);
  }
  std::string text() const {
    using fuzz::text;
    return x.order + text(x.extents) + " by " + text(x.strides) + ", " + w.order + text(w.extents) + " by " +
           text(w.strides) + ", groups " + std::to_string(p.how.groups) + ", of the batch " +
           std::to_string(p.how.batch_groups) + ", strides " + text(p.how.strides) + ", dilations " +
           text(p.how.dilations) + ", of the input " + text(p.how.input_dilations) + ", low " + text(p.how.pad_low) +
           ", high " + text(p.how.pad_high);
  }

 private:
  index_t groups() const { return p.how.groups * p.how.batch_groups; }
  index_t along(const std::vector<index_t>& sizes, char letter) const {
    const std::size_t at = spatial.find(letter);
    return at == std::string::npos ? 1 : sizes[at];
  }
};

/// Codes, and their zero points, which are seldom far from them.
struct codes {
  code_sign sign;
  std::vector<std::uint8_t> bytes;
  std::vector<std::int32_t> zeros;

  codes(dice& dice, index_t n, index_t zero_count)
      : sign(dice.chance(2) ? code_sign::is_signed : code_sign::is_unsigned), bytes(static_cast<std::size_t>(n)) {
    const index_t low = sign == code_sign::is_signed ? -128 : 0, kind = dice.within(0, 3);
    const auto same = static_cast<std::uint8_t>(dice.bits());
    for (auto& c : bytes)
      c = kind == 0   ? same
          : kind == 1 ? static_cast<std::uint8_t>(low - dice.within(0, 1))
                      : static_cast<std::uint8_t>(dice.bits());
    const index_t far = dice.chance(4) ? dice.one_of(1, 300, 5000, 70000, 3000000) : 0;
    for (index_t i = 0; i < zero_count; ++i)
      zeros.push_back(static_cast<std::int32_t>(dice.chance(4) ? low + dice.one_of(0 - far, 255 + far)
                                                               : low + dice.within(-far, 255 + far)));
  }
  std::int64_t zero(index_t i) const {
    return zeros.empty() ? 0 : zeros[zeros.size() == 1 ? 0 : static_cast<std::size_t>(i)];
  }
  std::int64_t number(index_t at, index_t zero_at) const {
    const std::uint8_t c = bytes[static_cast<std::size_t>(at)];
    return (sign == code_sign::is_signed ? static_cast<std::int8_t>(c) : std::int64_t{c}) - zero(zero_at);
  }
};

/// Calls term(inside, input batch, input channel, input position, channel in the group, tap) for the terms of an
/// output: taps ascend, and under each the channels; where a tap meets padding or a hole, it is not `inside`.
template <class Term>
void for_each_term(const qt::convolution_shape& s, index_t n, index_t o, const position& at, const Term& term) {
  const index_t batches = s.batch / s.batch_groups, batch = n + o / (s.outputs / s.batch_groups) * batches;
  const index_t inputs = s.inputs / s.groups, first = o / (s.outputs / s.groups / s.batch_groups) % s.groups * inputs;
  position tap{}, from{};
  for (tap[0] = 0; tap[0] < s.axes[0].taps; ++tap[0])
    for (tap[1] = 0; tap[1] < s.axes[1].taps; ++tap[1])
      for (tap[2] = 0; tap[2] < s.axes[2].taps; ++tap[2]) {
        bool inside = true;
        for (std::size_t a = 0; a < 3; ++a) {
          const qt::convolution_axis& axis = s.axes[a];
          const index_t place = at[a] * axis.stride + tap[a] * axis.tap_dilation - axis.pad_low;
          from[a] = place / axis.input_dilation;
          inside = inside && place >= 0 && place % axis.input_dilation == 0 && from[a] < axis.in;
        }
        for (index_t i = 0; i < inputs; ++i) term(inside, batch, first + i, from, i, tap);
      }
}

/// output(n, o, position) for all outputs, at (n * outputs + o) * pixels + pixel.
template <class T, class Output>
std::vector<T> by_definition(const qt::convolution_shape& s, const Output& output) {
  std::vector<T> y;
  position at{};
  for (index_t n = 0; n < s.result_batch(); ++n)
    for (index_t o = 0; o < s.outputs; ++o)
      for (at[0] = 0; at[0] < s.axes[0].out(); ++at[0])
        for (at[1] = 0; at[1] < s.axes[1].out(); ++at[1])
          for (at[2] = 0; at[2] < s.axes[2].out(); ++at[2]) y.push_back(output(n, o, at));
  return y;
}

/// A result in memory, in any order of batches, pixels and channels, with what lies around it.
template <class T>
struct result {
  static constexpr index_t before = 3;
  index_t pixels;
  std::string order;
  std::vector<index_t> strides;
  std::vector<T> data;

  result(dice& dice, const qt::convolution_shape& s) : pixels(s.pixels()), order(shuffled(dice, "NPC")) {
    std::vector<index_t> extents;
    for (const char c : order) extents.push_back(c == 'N' ? s.result_batch() : c == 'P' ? pixels : s.outputs);
    data.assign(static_cast<std::size_t>(before + stride(dice, extents, strides) + 70), filling());
  }
  static T filling() { return static_cast<T>(77); }
  index_t step(char letter) const { return strides[order.find(letter)]; }
  qt::convolution_result<T> place() { return {data.data() + before, pixels, step('N'), step('P'), step('C')}; }

  /// Every element is want(its place by definition, output), and nothing else was written.
  template <class Want>
  void require_equal(const qt::convolution_shape& s, const Want& want) const {
    INFO("to ", order, " by ", strides[0], " ", strides[1], " ", strides[2]);
    std::vector<T> all(data.size(), filling());
    std::size_t i = 0;
    for (index_t n = 0; n < s.result_batch(); ++n)
      for (index_t o = 0; o < s.outputs; ++o)
        for (index_t p = 0; p < pixels; ++p, ++i) {
          const auto at = static_cast<std::size_t>(before + n * step('N') + p * step('P') + o * step('C'));
          all[at] = want(i, o);
          INFO("batch ", n, " output ", o, " pixel ", p);
          if (!same(data[at], all[at])) REQUIRE(data[at] == all[at]);
          all[at] = data[at];
        }
    REQUIRE(std::memcmp(data.data(), all.data(), data.size() * sizeof(T)) == 0);
  }

 private:
  /// The same bits, or NaNs, whose sign is the CPU's.
  static bool same(const T& a, const T& b) { return std::memcmp(&a, &b, sizeof(T)) == 0 || (a != a && b != b); }
};

/// A result of some type, by one call that takes an executor, serially and by threads.
template <class T, class Call, class Want>
void check_result(dice& dice, const qt::convolution_shape& s, const Call& call, const Want& want) {
  result<T> serial(dice, s), threaded = serial;
  call(serial.place(), qt::serial{});
  serial.require_equal(s, want);
  const index_t threads = dice.within(2, 9);
  INFO(threads, " threads");
  call(threaded.place(), pool::threads(threads));
  threaded.require_equal(s, want);
}

}  // namespace convolution_dice
