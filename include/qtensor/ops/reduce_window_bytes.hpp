// Windows over 8-bit codes by add, max or min on integers: rows of the window first, then along the row.
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

/// The rows of bytes that a window covers, at a position of the leading axes, and how many of its rows are holes.
template <int Rank>
struct window_rows {
  std::vector<const std::uint8_t*> inside;
  index_t holes = 0;

  template <class X, class Window>
  void find(const X& x, const Window& w, const index_of_rank<Rank>& window_index) {
    constexpr std::size_t last = static_cast<std::size_t>(Rank) - 1;
    inside.clear();
    holes = 0;
    const auto extents = x.extents();
    index_of_rank<Rank> rows = w.sizes;
    rows[last] = 1;
    reference::for_each_index(index_of_rank<Rank>{}, rows, [&](const index_of_rank<Rank>& k) {
      index_of_rank<Rank> at{};
      for (std::size_t axis = 0; axis < last; ++axis) {
        at[axis] = window_index[axis] * w.strides[axis] + k[axis] * w.window_dilations[axis] - w.padding_low[axis];
        if (at[axis] < 0 || at[axis] >= extents[axis]) {
          ++holes;
          return;
        }
      }
      inside.push_back(reinterpret_cast<const std::uint8_t*>(x.line(at, Rank - 1).first));
    });
  }
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

/// fold_windows on bytes, into the first of the writers; false where nothing was done, as the bits could differ.
template <class X, class Fold, class Window, class Writer>
bool fold_window_bytes(const X& x, const Fold& fold, const typename Fold::state& seeds, const Window& w,
                       const typename Window::array& counts, Writer& writer) {
  constexpr int rank = X::rank;
  using plan = byte_fold<std::tuple<X>, Fold>;
  using arch = simd::best_arch;
  using index_array = index_of_rank<rank>;
  constexpr std::size_t last = static_cast<std::size_t>(rank) - 1;
  const index_array extents = x.extents();
  const index_t n = extents[last], outputs = dynamic_extents<rank>(counts).size();
  const index_t window_size = dynamic_extents<rank>(w.sizes).size();
  if (x.contiguous_axis() != rank - 1 || n == 0 || outputs * window_size < fewest_bytes) return false;
  for (index_t dilation : w.base_dilations)
    if (dilation != 1) return false;
  const byte_leaves<Fold, typename plan::from> leaves(fold, x.type());
  constexpr std::uint8_t flip = leaves.flip;
  const auto seed = std::get<0>(seeds);
  if (!leaves.one_type || seed.type() != leaves.type) return false;
  const std::int64_t zero = leaves.type.zero_point, start = seed.integer() - zero;
  const byte_sums sums(leaves.code, leaves.type.zero_point, 0);
  const std::int64_t most = std::max(sums.largest, start < 0 ? -start : start) * (window_size + 1);
  if constexpr (plan::is_add) {
    if (most + (zero < 0 ? -zero : zero) > exact_limit(leaves.type.scale) || !sums.affine) return false;
  } else {
    if (!leaves.keeps_codes(seed)) return false;
  }

  // The positions that windows of a row of results need: padded_low of them before the row's first element.
  const index_t taps = w.sizes[last], tap = w.window_dilations[last], stride = w.strides[last];
  const index_t width = (counts[last] - 1) * stride + (taps - 1) * tap + 1;
  const index_t first = std::min(std::max<index_t>(w.padding_low[last], 0), width);
  const index_t skipped = std::max<index_t>(-w.padding_low[last], 0);  // elements that negative padding takes away
  const index_t inside = std::max<index_t>(std::min(width - first, n - skipped), 0);
  const auto make = [&](std::int64_t code) {
    return std::get<0>(fold.finish(seeds, typename Fold::state(leaves.number(code))));
  };
  index_array leading = counts;
  leading[last] = 1;
  window_rows<rank> rows;
  const auto positions = static_cast<std::size_t>(width), results = static_cast<std::size_t>(counts[last]);
  if constexpr (plan::is_add) {
    known_results<Writer> known(zero - most, zero + most, outputs);
    std::vector<std::int32_t> down(positions), across(results);
    reference::for_each_index(index_array{}, leading, [&](const index_array& at) {
      rows.find(x, w, at);
      const index_t covered = static_cast<index_t>(rows.inside.size());
      const auto hole = static_cast<std::int32_t>(start * (covered + rows.holes));
      std::fill(down.begin(), down.begin() + first, hole);
      std::fill(down.begin() + first + inside, down.end(), hole);
      for (const std::uint8_t*& row : rows.inside) row += skipped;
      simd::sum_rows<arch>(rows.inside.data(), covered, inside, flip, static_cast<std::int32_t>(sums.slope),
                           static_cast<std::int32_t>(sums.base * covered + start * rows.holes), down.data() + first);
      const auto base = static_cast<std::int32_t>(start + zero);
      if (stride == 1) {
        simd::slide_sums<arch>(down.data(), counts[last], taps, tap, base, across.data());
      } else {
        for (std::size_t i = 0; i < results; ++i) {
          across[i] = base;
          for (index_t k = 0; k < taps; ++k)
            across[i] += down[i * static_cast<std::size_t>(stride) + static_cast<std::size_t>(k * tap)];
        }
      }
      known.write(across.data(), counts[last], writer, make, writer.units(at));
    });
  } else {
    using which = typename extreme_of<typename plan::rule>::type;
    // The extreme of nothing is `none`, a code that must not beat the seed then.
    const auto extreme = [&](std::int64_t i) {
      return plan::rule::integer(seed.integer(), std::int64_t{leaves.code[static_cast<std::size_t>(i)]});
    };
    if (extreme(which::none) != seed.integer() && may_miss(w)) return false;
    known_results<Writer> known(0, 255, outputs);
    const auto make_extreme = [&](std::int64_t i) { return make(extreme(i)); };
    std::vector<std::uint8_t> down(positions), across(results);
    reference::for_each_index(index_array{}, leading, [&](const index_array& at) {
      rows.find(x, w, at);
      std::fill(down.begin(), down.end(), which::none);
      for (const std::uint8_t* row : rows.inside)
        simd::extreme_columns<which, arch>(row + skipped, 1, 0, inside, flip, down.data() + first);
      std::fill(across.begin(), across.end(), which::none);
      for (index_t k = 0; k < taps; ++k) {
        if (stride == 1)
          simd::extreme_columns<which, arch>(down.data() + k * tap, 1, 0, counts[last], 0, across.data());
        else
          for (std::size_t i = 0; i < results; ++i)
            across[i] =
                which::of(across[i], down[i * static_cast<std::size_t>(stride) + static_cast<std::size_t>(k * tap)]);
      }
      known.write(across.data(), counts[last], writer, make_extreme, writer.units(at));
    });
  }
  return true;
}

}  // namespace qtensor::inline QTENSOR_ABI::ops
