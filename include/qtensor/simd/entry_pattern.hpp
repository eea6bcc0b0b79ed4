// Which entry of a list belongs to each element of a dense array, along some of whose dimensions entries repeat.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <qtensor/core/error.hpp>
#include <qtensor/simd/memory.hpp>

namespace qtensor::inline QTENSOR_ABI::simd {

/// Entries as scales and zero points have them under masks, axes and groups: a dense row-major list of those that
/// differ. Elements are counted over the whole array, so that a stretch of them may cross as many short rows as it
/// likes. Dimensions are appended from the outermost on; none at all is one entry for everything.
///   [4, 6] with an entry for each column: append(4, 4), append(6, 1): 0 1 2 3 4 5 0 1 2 3 4 5 ...
///   [4, 6] with groups {2, 3}:            append(4, 2), append(6, 3): 0 0 0 1 1 1 0 0 0 1 1 1 2 2 2 3 3 3 ...
class entry_pattern {
 public:
  /// The most elements that `spread` takes at a time, and the most dimensions.
  static constexpr index_t longest = 1024;
  static constexpr std::size_t most_dims = 12;

  /// An inner dimension whose neighbours share an entry in runs of `run`, which divides it; `extent` where all share.
  constexpr void append(index_t extent, index_t run) {
    if (const index_t lines = extent / run; lines > 1) {
      if (depth_ == 0 || levels_[depth_ - 1].run > 1)
        levels_[depth_++] = {lines, 1};
      else
        levels_[depth_ - 1].entries *= lines;
    }
    if (depth_ > 0) levels_[depth_ - 1].run *= run;
  }

  /// Neighbours that share an entry, at the least.
  constexpr index_t run() const { return depth_ == 0 ? std::numeric_limits<index_t>::max() : levels_[depth_ - 1].run; }

  /// The entry of an element, how many elements from there on share it, and how many have it or those that follow it.
  struct position {
    index_t entry, alike, in_order;
  };
  constexpr position find(index_t at) const {
    if (depth_ == 0) return {0, run(), run()};
    const auto& [entries, run] = levels_[depth_ - 1];
    const index_t nth = at / run, before = at % run, line = nth / entries, inside = nth % entries;
    return {entry_of_line(line) + inside, run - before, (entries - inside) * run - before};
  }
  friend constexpr bool operator==(const entry_pattern&, const entry_pattern&) = default;

  /// to[i] = the entry of element at + i as a T, for i < n <= longest, where `found` is find(at); `read(first, count,
  /// list)` writes neighbours of the list. Up to a batch behind to[n] is written, too.
  template <class T, class Read>
  void spread(const position& found, index_t at, index_t n, T* to, const Read& read) const {
    if (depth_ == 0) {
      read(0, 1, to);
      return void(std::fill_n(to, n, to[0]));
    }
    const auto& [entries, run] = levels_[depth_ - 1];
    // `count` elements, of which the first is number `before` of its run.
    const auto piece = [&, run = run](index_t entry, index_t before, index_t count, T* part) {
      if (run == 1) return read(entry, count, part);
      T list[static_cast<std::size_t>(longest / 2 + 2)];
      read(entry, divide_up(before + count, run), list);
      simd::spread_entries<best_arch>(static_cast<const T*>(list), run, before, count, part);
    };
    if (found.in_order >= n) return piece(found.entry, run - found.alike, n, to);
    const index_t line = entries * run;
    while (n > 0) {
      // Lines repeat as often as the dimension around them says: one is made, the others are copies.
      const index_t inside = at % line, nth = at / line, times = depth_ > 1 ? levels_[depth_ - 2].run : nth + n + 1;
      const index_t alike = std::min(n, (times - nth % times) * line - inside), begin = entry_of_line(nth);
      const index_t once = std::min(alike, line), first = std::min(once, line - inside);
      piece(begin + inside / run, inside % run, first, to);
      if (once > first) piece(begin, 0, once - first, to + first);
      for (index_t made = once; made < alike; made *= 2) std::copy_n(to, std::min(made, alike - made), to + made);
      at += alike, to += alike, n -= alike;
    }
  }

 private:
  /// `entries` that follow each other, each for `run` elements of the level inside.
  struct level {
    index_t entries, run;
    friend constexpr bool operator==(const level&, const level&) = default;
  };

  /// The first entry of a line of the innermost level.
  constexpr index_t entry_of_line(index_t nth) const {
    index_t found = 0, step = levels_[depth_ - 1].entries;
    for (std::size_t d = depth_ - 1; d-- > 0 && nth != 0;) {
      nth /= levels_[d].run;
      found += nth % levels_[d].entries * step;
      step *= levels_[d].entries, nth /= levels_[d].entries;
    }
    return found;
  }

  std::array<level, most_dims> levels_ = {};
  std::size_t depth_ = 0;
};

}  // namespace qtensor::inline QTENSOR_ABI::simd
