// Reduce over windows: strides, dilations of input and window, padding; with quantized pooling as presets.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <concepts>
#include <limits>
#include <numeric>
#include <optional>
#include <qtensor/ops/reduce_window_bytes.hpp>
#include <qtensor/reference/convolution.hpp>

namespace qtensor::inline QTENSOR_ABI {

/// The windows of a tensor of this rank. Only `sizes` must be given: `window<2>{.sizes = {3, 3}, .strides = {2, 2}}`.
/// Padding counts dilated elements and may be negative, which takes elements away.
template <int Rank>
struct window {
  using array = ops::index_of_rank<Rank>;
  static constexpr array all(index_t value) {
    array a{};
    a.fill(value);
    return a;
  }
  array sizes = all(1);
  array strides = all(1);
  array base_dilations = all(1);    // 2: a hole between neighbours of the input
  array window_dilations = all(1);  // 2: every second element
  array padding_low = all(0);
  array padding_high = all(0);

  /// Windows along each axis of an input; throws on a size, stride or dilation below 1 (NUMERICS 7.3, 7.4).
  constexpr array counts(const array& extents) const {
    array n{};
    for (std::size_t axis = 0; axis < n.size(); ++axis) {
      const int a = static_cast<int>(axis);
      require(sizes[axis] > 0, "the window has ", sizes[axis], " elements along axis ", a,
              "; constraint: 0 < window_dimensions.");
      require(strides[axis] > 0, "the window's stride along axis ", a, " is ", strides[axis],
              "; constraint: 0 < window_strides.");
      require(base_dilations[axis] > 0, "the base dilation of axis ", a, " is ", base_dilations[axis],
              "; constraint: 0 < base_dilations.");
      require(window_dilations[axis] > 0, "the window dilation of axis ", a, " is ", window_dilations[axis],
              "; constraint: 0 < window_dilations.");
      const convolution_axis all{extents[axis],        sizes[axis],       strides[axis],     window_dilations[axis],
                                 base_dilations[axis], padding_low[axis], padding_high[axis]};
      require(all.fits(), "axis ", a, " of ", extents[axis], " elements under windows of ", sizes[axis],
              " does not fit 60 bits with its dilations and padding.");
      n[axis] = all.out();
    }
    return n;
  }
};

namespace ops {

/// Element `place` of a padded and dilated axis as an element of the input's axis, or -1 for padding and holes.
constexpr index_t undilated(index_t place, index_t dilation, index_t extent) {
  if (dilation == 1) return place < extent ? std::max(place, index_t{-1}) : -1;  // no division
  return place < 0 || place % dilation != 0 || place / dilation >= extent ? -1 : place / dilation;
}

/// Windows of floats side by side: taps, a row of floats each, are folded in registers, some at a time.
template <class Fold, class Line, index_t Windows>
requires folds_floats<Fold, Line>
class tap_folder {
  using op = typename lanes_of<typename Fold::body_type::rule>::type;

 public:
  void start(index_t windows, float seed) {
    n_ = windows;
    std::fill_n(results_, n_, seed);
  }
  /// The next tap's floats.
  void add(const float* x) {
    taps_[count_++] = x;
    if (count_ == most) fold();
  }
  /// The next tap's floats from i = from on, below `to`, are x[i * stride]; the others are holes.
  void add(const float* x, index_t stride, index_t from, index_t to, float hole) {
    float* const row = rows_[count_];
    std::fill_n(row, from, hole);
    const auto copy = [=](index_t step) QTENSOR_INLINE_LAMBDA {
      for (index_t i = from; i < to; ++i) row[i] = x[i * step];
    };
    stride == 1 ? copy(1) : stride == 2 ? copy(2) : copy(stride);  // numbers that the compiler knows
    std::fill(row + to, row + n_, hole);
    add(row);
  }
  const float* results() {
    fold();
    return results_;
  }

 private:
  static constexpr index_t most = 32;

  void fold() { simd::fold_lines<op>(taps_, std::exchange(count_, 0), n_, results_); }

  index_t n_ = 0, count_ = 0;
  const float* taps_[most];
  alignas(64) float rows_[most][Windows];
  alignas(64) float results_[Windows];
};

/// Folds every window into result_writers, panels of windows side by side along the last axis together: each takes its
/// elements in ascending order.
template <class Fold, int Rank>
class window_folder {
  using index_array = index_of_rank<Rank>;
  using state = typename Fold::state;
  static constexpr std::size_t last = static_cast<std::size_t>(Rank) - 1;
  static constexpr index_t panel = 64;
  /// Window i of a panel meets the dilated input at start + i * stride with a tap; those in [from, to) meet the inside.
  struct tap_range {
    index_t start, from, to;
  };

 public:
  window_folder(const Fold& fold, const state& seed, const window<Rank>& w, const index_array& extents,
                const index_array& counts)
      : fold_(fold), seed_(seed), w_(w), extents_(extents), counts_(counts) {
    const index_t stride = w.strides[last], reach = (extents[last] - 1) * w.base_dilations[last] + 1;
    // a / b upwards, if positive.
    const auto at_least = [](index_t a, index_t b) { return a > 0 ? divide_up(a, b) : 0; };
    for (index_t first = 0; first < counts[last]; first += panel)
      for (index_t tap = 0; tap < w.sizes[last]; ++tap) {
        const index_t n = std::min(panel, counts[last] - first);
        const index_t start = first * stride + tap * w.window_dilations[last] - w.padding_low[last];
        const index_t from = std::min(n, at_least(-start, stride)), to = std::min(n, at_least(reach - start, stride));
        ranges_.push_back({start, from, std::max(from, to)});
      }
  }

  template <class Inputs, class Write>
  void operator()(const Inputs& inputs, Write& write) {
    with_lines(inputs, Rank - 1, [&](const auto& line_through) {
      using line_type = std::remove_cvref_t<decltype(line_through(index_array{}))>;
      if constexpr (folds_floats<Fold, line_type>)
        if (w_.base_dilations[last] == 1) {
          tap_folder<Fold, line_type, panel> folder;
          return for_each_panel([&](const index_array& at, index_t n, const tap_range* taps) {
            fold_floats(folder, line_through, at, n, taps, write);
          });
        }
      std::vector<state> states(static_cast<std::size_t>(std::min(panel, counts_[last])), seed_);
      for_each_panel([&](const index_array& at, index_t n, const tap_range* taps) {
        fold_states(states.data(), line_through, at, n, taps, write);
      });
    });
  }

 private:
  /// visit(index of the first window, how many, the ranges of their taps) for all panels.
  template <class Visit>
  void for_each_panel(const Visit& visit) const {
    index_array leading = counts_;
    leading[last] = counts_[last] > 0 ? 1 : 0;
    reference::for_each_index(index_array{}, leading, [&](index_array window_index) {
      const tap_range* taps = ranges_.data();
      for (index_t& first = window_index[last]; first < counts_[last]; first += panel, taps += w_.sizes[last])
        visit(static_cast<const index_array&>(window_index), std::min(panel, counts_[last] - first), taps);
    });
  }
  /// visit(line, inside): the lines that windows of an index take their taps from; of padding and holes, any line.
  template <class LineThrough, class Visit>
  void for_each_line(const LineThrough& line_through, const index_array& window_index, const Visit& visit) const {
    index_array rows = w_.sizes;
    rows[last] = 1;
    reference::for_each_index(index_array{}, rows, [&](const index_array& k) {
      index_array at{};
      bool inside = extents_[last] > 0;
      for (std::size_t axis = 0; axis < last; ++axis) {
        const index_t place =
            window_index[axis] * w_.strides[axis] + k[axis] * w_.window_dilations[axis] - w_.padding_low[axis];
        at[axis] = undilated(place, w_.base_dilations[axis], extents_[axis]);
        inside = inside && at[axis] >= 0;
      }
      visit(line_through(inside ? at : index_array{}), inside);
    });
  }
  /// visit(range) for the taps of a line in ascending order; a line of padding has nothing inside.
  template <class Visit>
  void for_each_tap(const tap_range* taps, bool inside, index_t n, const Visit& visit) const {
    for (index_t tap = 0; tap < w_.sizes[last]; ++tap) visit(inside ? taps[tap] : tap_range{0, n, n});
  }

  template <class LineThrough, class Write>
  void fold_states(state* states, const LineThrough& line_through, const index_array& window_index, index_t n,
                   const tap_range* taps, Write& write) const {
    const index_t stride = w_.strides[last], base = w_.base_dilations[last];
    std::fill_n(states, n, seed_);
    const auto holes = [&](index_t from, index_t to) {
      for (index_t i = from; i < to; ++i) states[i] = fold_.step(states[i], seed_);
    };
    for_each_line(line_through, window_index, [&](const auto& line, bool inside) {
      for_each_tap(taps, inside, n, [&](const tap_range& tap) {
        const auto [start, from, to] = tap;
        holes(0, from);
        if (base == 1 && stride == 1) {
          for (index_t i = from; i < to; ++i) states[i] = fold_.step(states[i], fold_.leaf(line(start + i)));
        } else if (base == 1) {
          for (index_t i = from; i < to; ++i) states[i] = fold_.step(states[i], fold_.leaf(line(start + i * stride)));
        } else {
          for (index_t i = from; i < to; ++i) {
            const index_t place = start + i * stride;
            states[i] = fold_.step(states[i], place % base == 0 ? fold_.leaf(line(place / base)) : seed_);
          }
        }
        holes(to, n);
      });
    });
    write.row(window_index, n, [&](index_t i) { return fold_.finish(seed_, states[i]); });
  }

  template <class Folder, class LineThrough, class Write>
  void fold_floats(Folder& folder, const LineThrough& line_through, const index_array& window_index, index_t n,
                   const tap_range* taps, Write& write) {
    const index_t stride = w_.strides[last];
    const auto hole = std::get<0>(seed_);
    folder.start(n, hole);
    const auto add = [&](const float* line, bool inside) {
      for_each_tap(taps, inside, n, [&](const tap_range& tap) {
        if (stride == 1 && tap.from == 0 && tap.to == n)
          folder.add(line + tap.start);
        else
          folder.add(line + tap.start, stride, tap.from, tap.to, hole);
      });
    };
    if (const std::optional<index_array> at = place_inside(window_index)) {
      const float* const first = line_through(*at).unit.first;
      if (distances_.empty())
        for_each_line(line_through, window_index,
                      [&](const auto& line, bool) { distances_.push_back(line.unit.first - first); });
      for (const index_t distance : distances_) add(first + distance, true);
    } else {
      for_each_line(line_through, window_index, [&](const auto& line, bool inside) { add(line.unit.first, inside); });
    }
    const auto* const results = folder.results();
    write.row(window_index, n, [&](index_t i) { return fold_.finish(seed_, as_tuple(results[i])); });
  }
  /// Where a window begins that is inside along the axes before the last.
  std::optional<index_array> place_inside(const index_array& window_index) const {
    index_array at{};
    for (std::size_t axis = 0; axis < last; ++axis) {
      at[axis] = window_index[axis] * w_.strides[axis] - w_.padding_low[axis];
      const index_t reach = (w_.sizes[axis] - 1) * w_.window_dilations[axis];
      if (w_.base_dilations[axis] != 1 || at[axis] < 0 || at[axis] + reach >= extents_[axis]) return std::nullopt;
    }
    if (extents_[last] == 0) return std::nullopt;
    return at;
  }

  const Fold& fold_;
  const state& seed_;
  const window<Rank>& w_;
  index_array extents_, counts_;
  std::vector<tap_range> ranges_;  // of every panel's taps
  /// Windows that are inside along the axes before the last take lines at the same distances, found once.
  std::vector<index_t> distances_;
};

/// Means of sums, written row by row. Those of windows that are whole, which most are, are found once for every sum.
template <class Writer, class Sums>
class known_means {
  static constexpr bool are_codes = [] {
    if constexpr (quantized_number_type<typename Sums::value_type>)
      return Sums::is_plain && Sums::scheme_type::code_format::is_integer;
    else
      return false;
  }();

 public:
  known_means(const Sums& sums, Writer& out) : sums_(sums), out_(out), known_(make_known(sums)) {}

  /// mean(sum) of n sums from an index on, along the last axis.
  template <class Mean>
  void write(index_of_rank<Sums::rank> at, index_t n, bool whole, const Mean& mean) {
    const auto line = sums_.line(at, Sums::rank - 1);
    if constexpr (Writer::has_units) {
      auto* to = out_.units(at);
      if constexpr (are_codes)
        if (whole)
          return known_.write(
              line.first, 1, n, out_,
              [&](auto unit) {
                return mean(typename Sums::unit_line{&unit, line.type}(0).real());
              },
              to);
      for (index_t i = 0; i < n; ++i) to[i] = out_.unit_of(mean(qtensor::detail::to_f32(line(i))));
    } else {
      for (index_t i = 0; i < n; ++i, ++at[Sums::rank - 1]) out_.set(at, mean(qtensor::detail::to_f32(line(i))));
    }
  }

 private:
  static auto make_known(const Sums& sums) {
    if constexpr (are_codes && Writer::has_units) {
      const auto* codes = sums.line({}, Sums::rank - 1).first;
      const index_t n = sums.view.size();
      using code = std::remove_cvref_t<decltype(*codes)>;
      const code low = std::accumulate(codes, codes + n, code{}, [](code a, code b) { return std::min(a, b); });
      const code high = std::accumulate(codes, codes + n, code{}, [](code a, code b) { return std::max(a, b); });
      return known_results<Writer>(low, high, n);
    } else {
      return nullptr;
    }
  }

  const Sums& sums_;
  Writer& out_;
  decltype(make_known(std::declval<const Sums&>())) known_;
};

}  // namespace ops

/// As `reduce`, over windows: results[i...] folds the elements of window i by ascending index, seeded with the
/// converted init value; elements of the window that are padding or holes of base_dilations are the converted init
/// value too.
/// An executor may be among the regions: windows are cut along an axis.
///   reduce_window(x, number_like(x, 0), {.sizes = {1, 2}}, requantize_to<i32>(.25f), add, requantize_to<u8>(1.f, 5))
template <class X, class Init, int Rank, class... Region>
auto reduce_window(const X& x, const Init& init, const window<Rank>& w, const Region&... regions) {
  const auto inputs = ops::inputs_of(x);
  using all_elements = ops::element_tuple<std::remove_const_t<decltype(inputs)>>;
  using element = typename all_elements::type;
  static_assert(all_elements::rank == Rank,
                "qtensor: reduce_window: size(window_dimensions) = rank(inputs[0]); the window has another rank.");
  const auto inits = ops::as_tuple(init);
  static_assert(std::is_same_v<std::remove_const_t<decltype(inits)>, element>,
                "qtensor: reduce_window: element_type(inputs...) = element_type(init_values...); number_like(x, 0) "
                "makes an init value.");
  ops::check_inputs(inputs, inits);
  const auto all = ops::regions_of<element>(regions...);
  const auto fold = ops::fold_of<element>(all);
  const auto counts = w.counts(std::get<0>(inputs).extents());
  const auto seed = fold.leaf(inits);
  using writers = ops::result_writers<typename decltype(fold)::result, static_cast<std::size_t>(Rank)>;
  writers out(counts, fold.finish(seed, seed));
  if (dynamic_extents<Rank>(counts).size() == 0) return out.take();
  constexpr bool on_bytes = [] {
    if constexpr (ops::window_on_bytes<std::remove_const_t<decltype(inputs)>, std::remove_const_t<decltype(fold)>>)
      return writers::step == 1 && std::tuple_size_v<typename decltype(fold)::result> == 1;
    else
      return false;
  }();
  const auto run = [&](const window<Rank>& windows, const auto& some, auto& to) {
    if constexpr (on_bytes) {
      auto&& writer = to.first();
      if (ops::fold_window_bytes(std::get<0>(inputs), fold, seed, windows, some, writer)) return;
    }
    ops::window_folder folder(fold, seed, windows, std::get<0>(inputs).extents(), some);
    folder(inputs, to);
  };
  const auto on = qtensor::detail::execution_among(regions...);
  if constexpr (!std::same_as<decltype(on.by), const serial>) {
    const index_t each = on_bytes ? 1 : dynamic_extents<Rank>(w.sizes).size();
    const auto cut =
        ops::cut_results(on.by, counts, writers::step, dynamic_extents<Rank>(counts).size() * each, ops::any_axis);
    if (cut.parts > 1) {
      const auto a = static_cast<std::size_t>(cut.axis);
      cut.for_each(on.by, [&](index_t, index_t first, index_t n) {
        window<Rank> windows = w;  // those before are what lies left of them
        windows.padding_low[a] -= first * w.strides[a];
        auto some = counts;
        some[a] = n;
        ops::writers_part to(out, ops::moved_along(typename writers::index_array{}, cut.axis, first));
        run(windows, some, to);
      });
      return out.take();
    }
  }
  run(w, counts, out);
  return out.take();
}

// ---- pooling -------------------------------------------------------------------------------------------------------

/// The largest number of each window, in the type of x. Padding never wins: it is the smallest code or integer, or
/// -infinity. on(executor) may come last.
template <class X, int Rank, qtensor::detail::execution_option... On>
auto max_pool(const X& x, const window<Rank>& w, const On&... on) {
  using value = element_t<X>;
  if constexpr (quantized_number_type<value>) {
    using code = typename value::scheme_type::code_format;
    static_assert(code::is_integer, "qtensor: pooling quantized numbers needs integer codes.");
    const auto lowest = elements(x).type().of_code(
        static_cast<std::uint32_t>(static_cast<std::int64_t>(value::scheme_type::codes.low)) & low_bits(code::bits));
    return reduce_window(x, lowest, w, max, on...);
  } else if constexpr (std::integral<value>) {
    return reduce_window(x, std::numeric_limits<value>::lowest(), w, max, on...);
  } else {
    return reduce_window(x, static_cast<value>(-infinity), w, max, on...);
  }
}

/// What an average divides by.
enum class pool_count {
  window,   // the size of the window: padding counts as zeros
  elements  // the elements that are not padding
};

namespace ops {

/// How many places of a window are elements, along each axis and for each window along it: padding and what dilation
/// puts between elements are none. A window has the product of its axes'.
template <int Rank>
std::array<std::vector<float>, static_cast<std::size_t>(Rank)> present_elements(const window<Rank>& w,
                                                                                const index_of_rank<Rank>& extents,
                                                                                const index_of_rank<Rank>& counts) {
  std::array<std::vector<float>, static_cast<std::size_t>(Rank)> present;
  for (std::size_t axis = 0; axis < counts.size(); ++axis)
    for (index_t i = 0; i < counts[axis]; ++i) {
      float n = 0.f;
      for (index_t k = 0; k < w.sizes[axis]; ++k) {
        const index_t place = i * w.strides[axis] + k * w.window_dilations[axis] - w.padding_low[axis];
        n += undilated(place, w.base_dilations[axis], extents[axis]) >= 0 ? 1.f : 0.f;
      }
      present[axis].push_back(n);
    }
  return present;
}

/// Runs of equal values.
struct value_run {
  index_t first, length;
  float value;
};
inline std::vector<value_run> runs_of(const std::vector<float>& values) {
  std::vector<value_run> runs;
  for (auto first = values.begin(); first != values.end();) {
    const auto end = std::find_if(first, values.end(), [first](float v) { return v != *first; });
    runs.push_back({static_cast<index_t>(first - values.begin()), static_cast<index_t>(end - first), *first});
    first = end;
  }
  return runs;
}

}  // namespace ops

/// The average of each window: its sum in the type `accumulator` (requantize_to<S>(scale), S of int32 codes), divided
/// in f32, then converted by `result`. Padding adds nothing; a window of nothing but padding gives 0. On an executor
/// sums are, and their division by the size of the window.
template <class X, int Rank, class Accumulator, class Result, qtensor::detail::execution_option... On>
auto average_pool(const X& x, const window<Rank>& w, const Accumulator& accumulator, const Result& result,
                  pool_count count = pool_count::window, const On&... on) {
  const auto mean = [&](float sum, float n) { return result(n > 0.f ? sum / n : 0.f); };
  const auto zero = number_like(x, 0.f);
  if (count == pool_count::window) {
    float n = 1.f;
    for (index_t size : w.sizes) n *= static_cast<float>(size);
    return reduce_window(
        x, zero, w, accumulator, add, [&](const auto& sum) { return mean(qtensor::detail::to_f32(sum), n); }, on...);
  }
  using value = std::remove_cvref_t<decltype(mean(0.f, 1.f))>;
  const auto sums = reduce_window(x, zero, w, accumulator, add, on...);
  const auto each = elements(sums);
  const auto counts = each.extents(), extents = elements(x).extents();
  constexpr std::size_t last = static_cast<std::size_t>(Rank) - 1;
  using writer = ops::result_writer<value, static_cast<std::size_t>(Rank)>;
  writer out(counts, mean(0.f, 1.f));
  if (dynamic_extents<Rank>(counts).size() == 0) return out.take();
  const auto present = ops::present_elements(w, extents, counts);
  float most = 1.f;  // of the elements of a window
  for (const auto& along : present) most *= *std::max_element(along.begin(), along.end());
  const auto runs = ops::runs_of(present[last]);  // of windows along a row that have as many elements
  auto leading = counts;
  leading[last] = 1;
  ops::known_means<writer, std::remove_cvref_t<decltype(each)>> means(each, out);
  reference::for_each_index(ops::index_of_rank<Rank>{}, leading, [&](ops::index_of_rank<Rank> at) {
    float rows = 1.f;
    for (std::size_t axis = 0; axis < last; ++axis) rows *= present[axis][static_cast<std::size_t>(at[axis])];
    for (const ops::value_run& run : runs) {
      at[last] = run.first;
      const float n = rows * run.value;
      means.write(at, run.length, n == most, [&mean, n](float sum) { return mean(sum, n); });
    }
  });
  return out.take();
}

}  // namespace qtensor::inline QTENSOR_ABI
