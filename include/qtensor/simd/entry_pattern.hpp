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

  /// The entry of an element.
  constexpr index_t entry(index_t at) const { return entry(at, depth_); }
  /// How many elements from `at` on have the entry of `at`, which are not interrupted.
  constexpr index_t alike(index_t at) const {
    if (depth_ == 0) return std::numeric_limits<index_t>::max() - at;
    return levels_[depth_ - 1].run - at % levels_[depth_ - 1].run;
  }

  /// to[i] = the entry of element at + i as a T, for i < n <= longest; `read(first, count, list)` writes neighbours of
  /// the list. Up to a batch behind to[n] is written, too.
  template <class T, class Read>
  void spread(index_t at, index_t n, T* to, const Read& read) const {
    if (depth_ == 0) {
      read(0, 1, to);
      return void(std::fill_n(to, n, to[0]));
    }
    const level& in = levels_[depth_ - 1];
    const index_t line = in.entries * in.run;
    while (n > 0) {
      // Lines repeat as often as the dimension around them says: one is made, the others are copies.
      const index_t inside = at % line, times = depth_ > 1 ? levels_[depth_ - 2].run : n;
      const index_t alike = std::min(n, depth_ > 1 ? (times - at / line % times) * line - inside : n);
      const index_t once = std::min(alike, line), first = std::min(once, line - inside);
      const index_t entries = entry(at / line, depth_ - 1) * in.entries;
      const auto piece = [&](index_t begin, index_t count, T* part) {
        if (in.run == 1) return read(entries + begin, count, part);
        T list[static_cast<std::size_t>(longest / 2 + 2)];
        read(entries + begin / in.run, divide_up(begin % in.run + count, in.run), list);
        simd::spread_entries<best_arch>(static_cast<const T*>(list), in.run, begin % in.run, count, part);
      };
      piece(inside, first, to);
      if (once > first) piece(0, once - first, to + first);
      for (index_t made = once; made < alike; made *= 2) std::copy_n(to, std::min(made, alike - made), to + made);
      at += alike, to += alike, n -= alike;
    }
  }

 private:
  /// `entries` that follow each other, each for `run` elements of the level inside.
  struct level {
    index_t entries, run;
  };

  constexpr index_t entry(index_t at, std::size_t depth) const {
    index_t found = 0, step = 1;
    for (std::size_t d = depth; d-- > 0; step *= levels_[d].entries, at /= levels_[d].entries) {
      at /= levels_[d].run;
      found += at % levels_[d].entries * step;
    }
    return found;
  }

  std::array<level, most_dims> levels_ = {};
  std::size_t depth_ = 0;
};

}  // namespace qtensor::inline QTENSOR_ABI::simd
