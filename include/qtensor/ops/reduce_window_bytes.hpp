// Windows over 8-bit codes by add, max or min on integers: in blocks, along one axis after the other.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/ops/reduce.hpp>

// The bits are those of the fold for the reasons in ops/reduce_bytes.hpp: exact sums do not depend on order, and the
// extreme of a window is one of its codes. Holes and padding are the seed: it takes part in every extreme anyway, and
// its k is added once for each of them.
namespace qtensor::inline QTENSOR_ABI::ops {

/// Whether windows may be folded on integers: those that `reduce` folds on integers.
template <class Inputs, class Fold>
inline constexpr bool window_on_bytes = [] {
  using plan = byte_fold<Inputs, Fold>;
  if constexpr (plan::value)
    return plan::is_extreme || (plan::is_add && adds_exactly<typename plan::to>);
  else
    return false;
}();

/// Windows in blocks: all of them along the last axes, a panel at a time along the first of these. Elements of a block
/// lie in a buffer with their padding, and are folded along one axis after the other.
template <class X, class Window>
class window_blocks {
  static constexpr std::size_t rank = static_cast<std::size_t>(X::rank);
  using index_array = index_of_rank<X::rank>;

 public:
  window_blocks(const X& x, const Window& w, const index_array& counts)
      : x_(x), w_(w), extents_(x.extents()), counts_(counts), leading_(counts), first_(rank) {
    constexpr index_t fewest = 512, most = 16384;  // places of a block
    index_t size = 1;
    do {
      --first_;
      places_[first_] = places_of(first_, counts[first_]);
      steps_[first_] = size;
      source_steps_[first_] = x.line(index_array{}, static_cast<int>(first_)).step;
      leading_[first_] = 1;
      size *= places_[first_];
    } while (first_ > 0 && size < fewest && places_of(first_ - 1, 1) <= most / size);
    const index_t windows = (most / steps_[first_] - places_of(first_, 1)) / w.strides[first_] + 1;
    panel_ = std::clamp(windows, index_t{1}, counts[first_]);
    size_ = places_of(first_, panel_) * steps_[first_];
  }

  /// For every block:
  ///   padding(rows, holes)                what padding holds where so many elements and holes before the block's axes
  ///                                       fall on one place
  ///   load(rows, n, to)                   n places under these rows of bytes, one below the other
  ///   slide(from, n, taps, tap, last, to) folds `taps` places at that distance; of the last axis, or another
  ///   write(from, step, n, units)         n results, `step` places apart, to their units
  template <class T, class Writer, class Padding, class Load, class Slide, class Write>
  void fold(Writer& writer, const Padding& padding, const Load& load, const Slide& slide, const Write& write) const {
    line_array<T> from(size_), to(size_);
    std::vector<const std::uint8_t*> rows;
    reference::for_each_index(index_array{}, leading_, [&](index_array at) {
      const index_t holes = find_rows(at, rows);
      for (; at[first_] < counts_[first_]; at[first_] += panel_) {
        index_array counts = counts_;
        std::fill_n(counts.begin(), first_, 1);
        counts[first_] = std::min(panel_, counts[first_] - at[first_]);
        index_t n = places_of(first_, counts[first_]) * steps_[first_];
        std::fill_n(from.data(), n, padding(static_cast<index_t>(rows.size()), holes));
        load_block(at, counts, rows,
                   [&](const auto& of_block, index_t run, index_t place) { load(of_block, run, from.data() + place); });
        for (std::size_t a = rank; a-- > first_;) {
          if (w_.sizes[a] == 1 && a != first_) continue;
          const index_t tap = w_.window_dilations[a] * steps_[a];
          n -= (w_.sizes[a] - 1) * tap;
          slide(from.data(), n, w_.sizes[a], tap, a == first_, to.data());
          std::swap(from, to);
        }
        for_each_results(counts, [&](const index_array& i, index_t place, index_t step, index_t some) {
          write(from.data() + place, step, some, writer.units(sum_of(at, i)));
        });
      }
    });
  }

 private:
  /// Places of an axis under so many windows.
  index_t places_of(std::size_t a, index_t windows) const {
    return (windows - 1) * w_.strides[a] + (w_.sizes[a] - 1) * w_.window_dilations[a] + 1;
  }
  /// Where the rows of bytes begin that windows cover on the axes before a block's, and how many of them are holes.
  index_t find_rows(const index_array& window_index, std::vector<const std::uint8_t*>& rows) const {
    index_array sizes = w_.sizes;
    std::fill(sizes.begin() + static_cast<std::ptrdiff_t>(first_), sizes.end(), 1);
    index_t holes = 0;
    rows.clear();
    reference::for_each_index(index_array{}, sizes, [&](const index_array& k) {
      index_array at{};
      for (std::size_t a = 0; a < first_; ++a) {
        at[a] = window_index[a] * w_.strides[a] + k[a] * w_.window_dilations[a] - w_.padding_low[a];
        if (at[a] < 0 || at[a] >= extents_[a]) {
          ++holes;
          return;
        }
      }
      rows.push_back(reinterpret_cast<const std::uint8_t*>(x_.line(at, X::rank - 1).first));
    });
    return holes;
  }
  /// Calls load(rows, n, place) for the runs of elements that are neighbours in memory and in the block.
  template <class Load>
  void load_block(const index_array& at, const index_array& counts, const std::vector<const std::uint8_t*>& rows,
                  const Load& load) const {
    index_array begin{}, n, start{};  // inside, among the block's places; the element of place 0
    n.fill(1);
    for (std::size_t a = first_; a < rank; ++a) {
      const index_t places = places_of(a, counts[a]);
      start[a] = at[a] * w_.strides[a] - w_.padding_low[a];
      begin[a] = std::clamp(-start[a], index_t{0}, places);
      n[a] = std::clamp(extents_[a] - start[a], begin[a], places) - begin[a];
    }
    std::size_t r = rank - 1;
    while (r > first_ && n[r] == places_[r] && n[r] == extents_[r] && source_steps_[r - 1] == steps_[r - 1]) n[r--] = 1;
    const index_t run = std::exchange(n[r], 1) * steps_[r];
    if (run == 0) return;
    std::vector<const std::uint8_t*> of_block(rows.size());
    reference::for_each_index(begin, n, [&](const index_array& i) {
      index_t element = 0, place = 0;
      for (std::size_t a = first_; a < rank; ++a) {
        element += (start[a] + i[a]) * source_steps_[a];
        place += i[a] * steps_[a];
      }
      std::transform(rows.begin(), rows.end(), of_block.begin(),
                     [&](const std::uint8_t* row) { return row + element; });
      load(of_block, run, place);
    });
  }
  /// Calls visit(index, place, step, n) for n results that are neighbours, and lie so in the block, `step` apart.
  template <class Visit>
  void for_each_results(index_array counts, const Visit& visit) const {
    std::size_t r = rank - 1;
    index_t n = 1, step = 1;
    while (r > first_ && w_.strides[r] == 1 && counts[r] == places_[r]) n *= std::exchange(counts[r--], 1);
    if (w_.strides[r] == 1 || n == 1) {
      step = w_.strides[r];
      n *= std::exchange(counts[r], 1);
    }
    reference::for_each_index(index_array{}, counts, [&](const index_array& i) {
      index_t place = 0;
      for (std::size_t a = first_; a <= r; ++a) place += i[a] * w_.strides[a] * steps_[a];
      visit(i, place, step, n);
    });
  }

  const X& x_;
  const Window& w_;
  index_array extents_, counts_, leading_;
  std::size_t first_;                                // axis of a block
  index_array places_{}, steps_{}, source_steps_{};  // of a block, and of the elements in memory
  index_t panel_ = 1, size_ = 0;
};

/// Whether a window may hold nothing but padding (or, where it is dilated, step over all elements).
template <class Window>
bool may_miss(const Window& w) {
  for (std::size_t axis = 0; axis < w.sizes.size(); ++axis) {
    const index_t padding = std::max(w.padding_low[axis], w.padding_high[axis]);
    if (padding > 0 && (padding >= w.sizes[axis] || w.window_dilations[axis] > 1)) return true;
  }
  return false;
}

/// Windows of codes of one byte, folded on bytes into the first of the writers.
template <class X, class Fold, class Window, class Writer>
class byte_windows {
  using plan = byte_fold<std::tuple<X>, Fold>;
  using arch = simd::best_arch;
  using state = typename Fold::state;

 public:
  byte_windows(const X& x, const Fold& fold, const state& seeds, const Window& w, const typename Window::array& counts,
               Writer& writer)
      : x_(x), fold_(fold), seeds_(seeds), w_(w), counts_(counts), writer_(writer), leaves_(fold, x.type()) {}

  /// False where nothing was done, as the bits could differ.
  bool run() {
    if constexpr (plan::is_add)
      return add();
    else
      return find_extremes();
  }

 private:
  static constexpr std::uint8_t flip = byte_leaves<Fold, typename plan::from>::flip;

  /// What makes results of codes; seeds are copied, which otherwise are read again after every byte that is stored.
  auto maker() const {
    return [&fold = fold_, &leaves = leaves_, seeds = seeds_](std::int64_t code) {
      return std::get<0>(fold.finish(seeds, state(leaves.number(code))));
    };
  }
  index_t outputs() const { return dynamic_extents<X::rank>(counts_).size(); }

  bool add() {
    if (!leaves_.one_type || std::get<0>(seeds_).type() != leaves_.type) return false;
    const byte_sums sums(leaves_.code, leaves_.type.zero_point, 0);
    const std::int64_t zero = leaves_.type.zero_point, start = std::get<0>(seeds_).integer() - zero;
    const auto size = [](std::int64_t v) { return v < 0 ? -v : v; };
    const std::int64_t most = std::max(sums.largest, size(start)) * (dynamic_extents<X::rank>(w_.sizes).size() + 1);
    if (most + size(zero) > exact_limit(leaves_.type.scale) || !sums.affine) return false;
    known_results<Writer> known(zero - most, zero + most, outputs());
    index_t holes_of_rows = 0;
    const auto make = maker();
    window_blocks(x_, w_, counts_)
        .template fold<std::int32_t>(
            writer_,
            [&](index_t rows, index_t holes) {
              holes_of_rows = holes;
              return static_cast<std::int32_t>(start * (rows + holes));
            },
            [&](const auto& rows, index_t n, std::int32_t* to) {
              const auto covered = static_cast<index_t>(rows.size());
              simd::sum_rows<arch>(rows.data(), covered, n, flip, static_cast<std::int32_t>(sums.slope),
                                   static_cast<std::int32_t>(sums.base * covered + start * holes_of_rows), to);
            },
            [&](const std::int32_t* from, index_t n, index_t taps, index_t tap, bool last, std::int32_t* to) {
              simd::slide_sums<arch>(from, n, taps, tap, last ? static_cast<std::int32_t>(start + zero) : 0, to);
            },
            [&](const std::int32_t* from, index_t step, index_t n, auto* units) {
              known.write(from, step, n, writer_, make, units);
            });
    return true;
  }

  /// The code that wins against the seed.
  std::int64_t extreme(std::int64_t code) const {
    return plan::rule::integer(std::get<0>(seeds_).integer(),
                               std::int64_t{leaves_.code[static_cast<std::size_t>(code)]});
  }
  /// Whether results are the extreme codes themselves.
  bool copies() const {
    if constexpr (!std::is_same_v<typename plan::to::code_format, typename plan::from::code_format> ||
                  !std::is_same_v<std::remove_cvref_t<decltype(fold_.output)>, identity>)
      return false;
    for (std::int64_t i = 0; i < 256; ++i)
      if (extreme(i) != (flip == 0 ? i : i - 128)) return false;
    return true;
  }
  bool find_extremes() {
    using which = typename extreme_of<typename plan::rule>::type;
    const auto seed = std::get<0>(seeds_);
    if (!leaves_.keeps_codes(seed)) return false;
    // The extreme of nothing is `none`, a code that must not beat the seed then.
    if (extreme(which::none) != seed.integer() && may_miss(w_)) return false;
    known_results<Writer> known(0, 255, outputs());
    const auto make = [this, make = maker()](std::int64_t i) { return make(extreme(i)); };
    window_blocks(x_, w_, counts_)
        .template fold<std::uint8_t>(
            writer_, [](index_t, index_t) { return which::none; },
            [&](const auto& rows, index_t n, std::uint8_t* to) {
              for (const std::uint8_t* row : rows) simd::extreme_columns<which, arch>(row, 1, 0, n, flip, to);
            },
            [&](const std::uint8_t* from, index_t n, index_t taps, index_t tap, bool, std::uint8_t* to) {
              std::fill_n(to, n, which::none);
              simd::extreme_columns<which, arch>(from, taps, tap, n, 0, to);
            },
            [&, copies = copies()](const std::uint8_t* from, index_t step, index_t n, auto* units) {
              if (!copies) return known.write(from, step, n, writer_, make, units);
              const auto copy = [=](index_t apart) QTENSOR_INLINE_LAMBDA {
                for (index_t c = 0; c < n; ++c) units[c] = from[c * apart] ^ flip;
              };
              step == 1 ? copy(1) : step == 2 ? copy(2) : copy(step);  // numbers that the compiler knows
            });
    return true;
  }

  const X& x_;
  const Fold& fold_;
  const state& seeds_;
  const Window& w_;
  const typename Window::array& counts_;
  Writer& writer_;
  byte_leaves<Fold, typename plan::from> leaves_;
};

/// What window_folder does, by byte_windows; false where nothing was done, as the bits could differ or the windows are
/// few.
template <class X, class Fold, class Window, class Writer>
bool fold_window_bytes(const X& x, const Fold& fold, const typename Fold::state& seeds, const Window& w,
                       const typename Window::array& counts, Writer& writer) {
  const auto size = [](const typename Window::array& extents) { return dynamic_extents<X::rank>(extents).size(); };
  if (x.contiguous_axis() != X::rank - 1 || size(x.extents()) == 0 || size(counts) * size(w.sizes) < fewest_bytes)
    return false;
  for (index_t dilation : w.base_dilations)
    if (dilation != 1) return false;
  return byte_windows<X, Fold, Window, Writer>(x, fold, seeds, w, counts, writer).run();
}

}  // namespace qtensor::inline QTENSOR_ABI::ops
