// Folds of 8-bit codes by add, max, min or multiply: by integers where they give the bits of the fold, else on lanes.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <qtensor/ops/line_array.hpp>
#include <qtensor/ops/reduce_lanes.hpp>
#include <qtensor/simd/memory.hpp>
#include <qtensor/simd/reduce.hpp>
#include <tuple>
#include <utility>
#include <vector>

// A fold's step on quantized numbers is quantize(op(dequantize(a), dequantize(b))) in f32. In what follows k is a code
// minus its zero point, s the accumulator's scale, z its zero point, u = 2^-24.
//
// Max and min. If quantize(dequantize(c)) = c for every code c in play (the 256 converted leaves and the seed; checked
// by doing it), then dequantize is injective on them, and monotone since s > 0 and rounding is monotone. So the larger
// number has the larger code, and a step gives the code of the larger number. Conversions of leaves are monotone too,
// so the largest leaf is that of the largest code.
//
// Add. A step is q = RN(RN(RN(ka s) + RN(kb s)) / s), then z is added, before or after rounding to an integer. Products
// and quotients below the normal range are exact here, since all are multiples of 2^-149 (the quotient is 0 or at least
// about 1), and nothing overflows where 2^24 s is finite. With A = |ka| + |kb| <= 2^24 the integers are exact as
// floats:
//   * s a power of two, A + |z| <= 2^24: every operation is exact, so q = ka + kb.
//   * else |q - (ka + kb)| <= A ((1 + u)^3 - 1) < 3.1 A u, and adding z before rounding costs at most (A + 1 + |z|) u
//     more. With A + |z| <= 15 * 2^17 that is below 4.1 * 15 * 2^17 u + u < 0.481 < 1/2: rounding gives ka + kb + z.
// Codes of 32 bits do not saturate there. Before each segment of a row the sum so far and the largest |k| bound A for
// all of it; where that is too much, and for multiply and accumulators of fewer bits, lanes do the fold's own steps
// (ops/reduce_lanes.hpp).
namespace qtensor::inline QTENSOR_ABI::ops {

/// Whether integer sums of int32 accumulators of scheme S may stand for its folds.
template <class S>
inline constexpr bool adds_exactly =
    std::is_same_v<typename S::code_format, int32>&& qtensor::detail::rounds_plainly<S>&&
        qtensor::detail::highest_code<S> == int32::max&& S::codes.low <= -2147483648.f;

/// Largest |a| + |b| + |zero point| for which a step of an add is exact; 0 for none.
inline std::int64_t exact_limit(float scale) {
  if (!is_finite(0x1p24f * scale)) return 0;
  const bool power_of_two = (bits_of(scale) & low_bits(23)) == 0 && scale >= 0x1p-126f;
  return power_of_two ? std::int64_t{1} << 24 : std::int64_t{15} << 17;
}

/// The 256 leaves of 8-bit codes under a fold, in ascending order of value, as integers.
template <class Fold, class S>
struct byte_leaves {
  using accumulator = typename std::tuple_element_t<0, typename Fold::state>::scheme_type;
  static constexpr std::uint8_t flip = S::code_format::is_signed ? 0x80 : 0;

  std::array<std::int32_t, 256> code{};  // of code c at c ^ flip
  number_type<accumulator> type{};
  bool one_type = true;

  byte_leaves(const Fold& fold, const number_type<S>& from) {
    // A leaf under the scale of its element is the same k: it is added to nothing, as it were, and few bits make it up.
    if constexpr (requires { Fold::input_type::scale; } && qtensor::detail::rounds_plainly<accumulator>) {
      type = fold.input;
      const auto near_zero = [](std::int64_t z) { return z > -(1 << 20) && z < (1 << 20); };
      if (type.scale == from.scale && near_zero(type.zero_point) && near_zero(from.zero_point) &&
          exact_limit(type.scale) > 0) {
        constexpr std::int64_t low = static_cast<std::int64_t>(accumulator::codes.low);
        for (std::int32_t i = 0; i < 256; ++i) {
          const std::int64_t k = (S::code_format::is_signed ? i - 128 : i) - std::int64_t{from.zero_point};
          code[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(
              std::min(std::max(k + type.zero_point, low), qtensor::detail::highest_code<accumulator>));
        }
        return;
      }
    }
    for (std::uint32_t i = 0; i < 256; ++i) {
      const auto leaf = std::get<0>(fold.leaf(std::tuple(from.of_code(i ^ flip))));
      if (i == 0) type = leaf.type();
      one_type = one_type && leaf.type() == type;
      code[i] = static_cast<std::int32_t>(leaf.integer());
    }
  }
  quantized_number<accumulator> number(std::int64_t code_value) const {
    return type.of_code(static_cast<std::uint32_t>(code_value) & low_bits(accumulator::code_format::bits));
  }
  /// Whether steps of max and min keep codes: see above.
  bool keeps_codes(const quantized_number<accumulator>& seed) const {
    const auto kept = [&](const quantized_number<accumulator>& n) { return type(n.real()).code == n.code; };
    if (!one_type || seed.type() != type || !kept(seed)) return false;
    if constexpr (qtensor::detail::rounds_plainly<accumulator>) {
      // Codes near the zero point are kept under every such scale: the sum of a number and nothing.
      const std::int64_t zero = type.zero_point, limit = exact_limit(type.scale) - (zero < 0 ? -zero : zero);
      const auto [low, high] = std::minmax_element(code.begin(), code.end());
      if (zero - *low <= limit && *high - zero <= limit) return true;
    }
    for (std::int32_t c : code)
      if (!kept(number(c))) return false;
    return true;
  }
};

/// Sums of leaf - zero point: by slope * byte + base where that is every leaf, else by the table.
struct byte_sums {
  static constexpr index_t none = 0;
  std::array<std::int32_t, 256> k;
  std::int64_t slope, base, largest = 0;
  bool affine = true;
  index_t segment = none;  // elements whose sum moves by a quarter of what is exact at most; none where nothing is

  byte_sums(const std::array<std::int32_t, 256>& code, std::int32_t zero_point, std::int64_t limit) {
    base = std::int64_t{code[0]} - zero_point;
    slope = std::int64_t{code[1]} - code[0];
    for (std::int64_t i = 0; i < 256; ++i) {
      const std::int64_t one = std::int64_t{code[static_cast<std::size_t>(i)]} - zero_point;
      affine = affine && one == slope * i + base;
      largest = std::max(largest, one < 0 ? -one : one);
      k[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(one);  // it fits wherever segment is not 0
    }
    segment = largest == 0 ? index_t{1} << 20 : std::min<index_t>(limit / (4 * largest), index_t{1} << 20);
  }
  template <class Arch>
  std::int64_t row(const std::uint8_t* x, index_t n, std::uint8_t flip) const {
    if (affine) return slope * static_cast<std::int64_t>(simd::sum_bytes<Arch>(x, n, flip)) + base * n;
    std::int64_t sum = 0;
    for (index_t i = 0; i < n; ++i) sum += k[x[i] ^ flip];
    return sum;
  }
  /// sums[c] += the columns; `scratch` has one entry a column.
  template <class Arch>
  void columns(const std::uint8_t* x, index_t rows, index_t stride, std::uint8_t flip,
               std::vector<std::uint32_t>& scratch, std::vector<std::int64_t>& sums) const {
    const index_t cols = static_cast<index_t>(sums.size());
    if (affine) {
      std::fill(scratch.begin(), scratch.end(), 0u);
      simd::add_columns<Arch>(x, rows, stride, cols, flip, scratch.data());
      for (std::size_t c = 0; c < sums.size(); ++c) sums[c] += slope * std::int64_t{scratch[c]} + base * rows;
    } else {
      for (index_t r = 0; r < rows; ++r)
        for (index_t c = 0; c < cols; ++c) sums[static_cast<std::size_t>(c)] += k[x[r * stride + c] ^ flip];
    }
  }
};

/// A row's largest or smallest leaf is that of its largest or smallest code.
template <class Rule>
struct extreme_of;
template <>
struct extreme_of<qtensor::detail::max_rule> {
  using type = simd::largest;
};
template <>
struct extreme_of<qtensor::detail::min_rule> {
  using type = simd::smallest;
};

/// Whether a fold over these inputs can run on bytes: one plain tensor of 8-bit integer codes, a body of ours, a leaf
/// that is a quantized number of integer codes.
template <class Inputs, class Fold>
struct byte_fold : std::false_type {};
template <class X, class Fold>
requires requires {
  requires X::is_plain;
  typename Fold::body_type::rule;
  typename std::tuple_element_t<0, typename Fold::state>::scheme_type;
}
struct byte_fold<std::tuple<X>, Fold> {
  using from = typename X::scheme_type;
  using to = typename std::tuple_element_t<0, typename Fold::state>::scheme_type;
  using rule = typename Fold::body_type::rule;
  static constexpr bool is_add = std::is_same_v<rule, qtensor::detail::add_rule>;
  static constexpr bool is_extreme =
      std::is_same_v<rule, qtensor::detail::max_rule> || std::is_same_v<rule, qtensor::detail::min_rule>;
  static constexpr bool is_multiply = std::is_same_v<rule, qtensor::detail::multiply_rule>;
  static constexpr bool value = from::code_format::is_integer && from::code_format::bits == 8 &&
                                sizeof(typename X::view_type::code_unit) == 1 && to::code_format::is_integer &&
                                (is_extreme || ((is_add || is_multiply) && qtensor::detail::rounds_plainly<to>));
};

/// Results by the integer that decides them: computed once each, where there are few. The writer is a result_writer
/// that has units.
template <class Writer>
class known_results {
 public:
  using unit = std::remove_cvref_t<decltype(std::declval<Writer&>().unit_of(
      std::declval<const typename Writer::value_type&>()))>;

  /// For integers in [low, high], `count` of which will be asked for.
  known_results(std::int64_t low, std::int64_t high, index_t count) : low_(low) {
    if (high - low >= 0 && high - low <= 2 * count + 256) items_.resize(static_cast<std::size_t>(high - low + 1));
  }
  /// out[c] = the unit of the result that make(which[c * step]) computes, for c < n.
  template <class Index, class Make>
  void write(const Index* which, index_t step, index_t n, const Writer& writer, const Make& make, unit* out) {
    if (items_.empty()) {
      for (index_t c = 0; c < n; ++c) out[c] = writer.unit_of(make(which[c * step]));
      return;
    }
    // A pointer of its own: `out` may be bytes, which could be anything's.
    item* const items = items_.data();
    const std::int64_t low = low_;
    const auto look_up = [=, &writer, &make](index_t apart) QTENSOR_INLINE_LAMBDA {
      for (index_t c = 0; c < n; ++c) {
        item& one = items[which[c * apart] - low];
        if (!one.known) one = {writer.unit_of(make(which[c * apart])), true};
        out[c] = one.value;
      }
    };
    step == 1 ? look_up(1) : look_up(step);  // a number that the compiler knows
  }

 private:
  struct item {
    unit value{};
    bool known = false;
  };
  std::int64_t low_;
  std::vector<item> items_;
};

/// Elements below which the table costs more than it saves.
inline constexpr index_t fewest_bytes = 1024;

/// fold_dimensions on bytes, into result_writers. `seeds` is the state before the first element; result(at) and
/// results(at) fold one result, or a row of them along the contiguous axis, step by step.
template <class X, class Fold, class Shape, class Write, class Result, class Results>
class byte_folder {
  using plan = byte_fold<std::tuple<X>, Fold>;
  using arch = simd::best_arch;
  using index_array = std::remove_cvref_t<decltype(std::declval<const X&>().extents())>;
  using leaves_type = byte_leaves<Fold, typename plan::from>;
  static constexpr std::uint8_t flip = leaves_type::flip;
  static constexpr bool has_lanes = plan::is_add || plan::is_multiply;
  static constexpr index_t width = simd::fold_vectors * simd::lanes<arch>;
  static constexpr bool writes_units = requires(Write & write) {
    requires std::remove_reference_t<decltype(write.first())>::has_units;
  };
  static constexpr index_t fewest_lanes = 2;  // one result is sooner done by itself
  static constexpr index_t tile = 256;        // results whose runs are turned together

 public:
  byte_folder(const X& x, const Fold& fold, const typename Fold::state& seeds, const Shape& shape, Write& write,
              const Result& result, const Results& results)
      : x_(x),
        fold_(fold),
        seeds_(seeds),
        shape_(shape),
        write_(write),
        result_(result),
        results_(results),
        leaves_(fold, x.type()),
        seed_(std::get<0>(seeds)),
        zero_(leaves_.type.zero_point),
        limit_(exact_limit(leaves_.type.scale) - (zero_ < 0 ? -zero_ : zero_)),
        sums_(leaves_.code, leaves_.type.zero_point, std::max<std::int64_t>(limit_, 0)),
        axis_(x.contiguous_axis()),
        kept_(shape.kept),
        folded_(shape.folded) {}

  /// False where nothing was done, as the bits could differ.
  bool run() {
    if (!leaves_.one_type || seed_.type() != leaves_.type) return false;
    if constexpr (plan::is_extreme) {
      if (!leaves_.keeps_codes(seed_)) return false;
    }
    const auto a = static_cast<std::size_t>(axis_);
    const bool along = shape_.is_folded[a];  // results are runs of bytes; else they lie side by side
    length_ = along ? folded_[a] : kept_[a];
    (along ? folded_ : kept_)[a] = 1;
    if (along) {
      join_runs();
      const auto last_kept = std::find(shape_.is_folded.rbegin(), shape_.is_folded.rend(), false);
      if (last_kept != shape_.is_folded.rend()) {
        side_ = static_cast<int>(shape_.is_folded.rend() - last_kept) - 1;
        beside_ = std::exchange(kept_[static_cast<std::size_t>(side_)], 1);
        // Runs shorter than a vector are turned, so that their results lie side by side.
        turns_ = length_ < 4 * simd::lanes<arch>;
      }
      if (turns_) {
        rows_ = length_;
        turned_ = line_array<std::uint8_t>(round_up(length_, 8) * tile);
      }
    } else {
      side_ = axis_;
      beside_ = length_;
      const auto down = static_cast<std::size_t>(shape_.last_folded);
      rows_ = folded_[down];
      folded_[down] = 1;
      stride_ = step_along(shape_.last_folded);
    }
    runs_ = along && !turns_;
    if constexpr (plan::is_extreme)
      extremes();
    else if (plan::is_add && adds_exactly<typename plan::to> && sums_.segment >= 64)
      sums();
    else
      along ? lanes_along() : lanes_down();
    return true;
  }

 private:
  index_t step_along(int axis) const { return x_.line(index_array{}, axis).step; }
  /// Runs that follow each other in memory as in the fold are one.
  void join_runs() {
    for (int axis = axis_ - 1; axis >= 0; --axis) {
      index_t& count = folded_[static_cast<std::size_t>(axis)];
      if (!shape_.is_folded[static_cast<std::size_t>(axis)]) continue;
      if (step_along(axis) != length_) return;
      length_ *= std::exchange(count, 1);
    }
  }
  const std::uint8_t* bytes_at(const index_array& at) const {
    return reinterpret_cast<const std::uint8_t*>(x_.line(at, axis_).first);
  }
  auto result_of(std::int64_t code) const { return fold_.finish(seeds_, typename Fold::state(leaves_.number(code))); }
  void finish(const index_array& at, std::int64_t code) const { write_(shape_.result_index(at), result_of(code)); }
  template <class Visit>
  void for_each_kept(Visit visit) const {
    reference::for_each_index(index_array{}, kept_, visit);
  }
  /// Calls visit(bytes) for every run of a result, or every first row of a column.
  template <class Visit>
  void for_each_run(const index_array& at, Visit visit) const {
    reference::for_each_index(index_array{}, folded_,
                              [&](const index_array& along) { visit(bytes_at(sum_of(at, along))); });
  }
  /// After this sum the next segment is exact.
  bool small(std::int64_t sum) const { return (sum < 0 ? -sum : sum) + sums_.segment * sums_.largest <= limit_; }

  /// Calls visit(at, n) for panels of n results side by side, the first at an index.
  template <class Visit>
  void for_each_panel(Visit visit) const {
    const index_t most = turns_ || runs_ ? tile : beside_;
    for_each_kept([&](const index_array& at) {
      for (index_t first = 0; first < beside_; first += most)
        visit(moved_along(at, side_, first), std::min(most, beside_ - first));
    });
  }
  /// Calls visit(bytes, stride) for the rows of a panel: rows_ of them follow, that far apart; or for its runs.
  template <class Visit>
  void for_each_rows(const index_array& at, index_t n, Visit visit) {
    const index_t step = turns_ || runs_ ? step_along(side_) : stride_;
    for_each_run(at, [&](const std::uint8_t* first) {
      if (!turns_) return visit(first, step);
      // Squares of 8, whose bytes beyond a run are of the next ones where these follow.
      const index_t whole = step == length_ ? round_up(length_, 8) : length_;
      const index_t safe = std::max(index_t{0}, n - divide_up(whole - length_, length_));
      simd::transpose(first, step, whole, safe, turned_.data(), tile);
      simd::transpose(first + safe * step, step, length_, n - safe, turned_.data() + safe, tile);
      visit(static_cast<const std::uint8_t*>(turned_.data()), tile);
    });
  }
  /// Results of a panel by the integers that decide them: code_of(which[c]) is the code of one.
  template <class Index, class Known, class CodeOf>
  void finish_panel(const index_array& at, const std::vector<Index>& which, Known& known, const CodeOf& code_of) const {
    const auto n = static_cast<index_t>(which.size());
    if constexpr (writes_units)
      if (shape_.kept_axes[shape_.kept_rank - 1] == side_)
        return known.write(
            which.data(), 1, n, write_.first(), [&](Index i) { return std::get<0>(result_of(code_of(i))); },
            write_.first().units(shape_.result_index(at)));
    for (index_t c = 0; c < n; ++c) finish(moved_along(at, side_, c), code_of(which[static_cast<std::size_t>(c)]));
  }
  /// The results of panels that integers in [low, high] decide.
  auto known_panels(std::int64_t low, std::int64_t high) const {
    if constexpr (writes_units)
      return known_results<std::remove_reference_t<decltype(write_.first())>>(
          low, high, dynamic_extents<X::rank>(kept_).size() * beside_);
    else
      return std::pair(low, high);
  }

  void extremes() {
    using which = typename extreme_of<typename plan::rule>::type;
    auto known = known_panels(0, 255);
    std::vector<std::uint8_t> best;
    for_each_panel([&](const index_array& at, index_t n) {
      best.assign(static_cast<std::size_t>(n), which::none);
      for_each_rows(at, n, [&](const std::uint8_t* first, index_t stride) {
        if (!runs_) return simd::extreme_columns<which, arch>(first, rows_, stride, n, flip, best.data());
        for (std::uint8_t& one : best) {
          one = which::of(one, simd::extreme_bytes<which, arch>(first, length_, flip));
          first += stride;
        }
      });
      finish_panel(at, best, known,
                   [&](std::uint8_t i) { return plan::rule::integer(seed_.integer(), std::int64_t{leaves_.code[i]}); });
    });
  }

  void sums() {
    const std::int64_t start = seed_.integer() - zero_;
    const std::int64_t each = sums_.largest * (runs_ ? length_ : rows_) * dynamic_extents<X::rank>(folded_).size();
    const std::int64_t most = std::min(limit_, each + (start < 0 ? -start : start));
    auto known = known_panels(-most, most);
    std::vector<std::int64_t> sum;
    std::vector<std::uint32_t> scratch;
    std::vector<index_array> others;
    for_each_panel([&](const index_array& at, index_t n) {
      sum.assign(static_cast<std::size_t>(n), start);
      scratch.resize(sum.size());
      bool exact = true;
      for_each_rows(at, n, [&](const std::uint8_t* first, index_t stride) {
        if (runs_) {
          for (std::int64_t& one : sum) {
            for (index_t i = 0; exact && i < length_; i += sums_.segment) {
              exact = small(one);
              one += sums_.template row<arch>(first + i, std::min(sums_.segment, length_ - i), flip);
            }
            first += stride;
          }
          return;
        }
        for (index_t r = 0; exact && r < rows_; r += sums_.segment) {
          exact = std::all_of(sum.begin(), sum.end(), [&](std::int64_t one) { return small(one); });
          sums_.template columns<arch>(first + r * stride, std::min(sums_.segment, rows_ - r), stride, flip, scratch,
                                       sum);
        }
      });
      if (exact) return finish_panel(at, sum, known, [&](std::int64_t k) { return k + zero_; });
      if (!turns_ && !runs_) return lanes_down(at);
      for (index_t c = 0; c < n; ++c) others.push_back(moved_along(at, side_, c));
    });
    if (!others.empty()) lanes_along(others);
  }

  void lanes_along() const {
    std::vector<index_array> all;
    for_each_panel([&](const index_array& at, index_t n) {
      for (index_t c = 0; c < n; ++c) all.push_back(moved_along(at, side_, c));
    });
    lanes_along(all);
  }
  void lanes_along(const std::vector<index_array>& all) const {
    if constexpr (has_lanes) {
      lane_folder<Fold, leaves_type> lanes(leaves_, seed_);
      std::vector<const std::uint8_t*> runs(static_cast<std::size_t>(width));
      for (std::size_t first = 0; first < all.size(); first += static_cast<std::size_t>(width)) {
        const index_t count = std::min(width, static_cast<index_t>(all.size() - first));
        const bool worth = lanes.usable() && count >= fewest_lanes;
        lanes.start();
        if (worth)
          reference::for_each_index(index_array{}, folded_, [&](const index_array& along) {
            for (index_t c = 0; c < count; ++c)
              runs[static_cast<std::size_t>(c)] = bytes_at(sum_of(all[first + static_cast<std::size_t>(c)], along));
            lanes.along(runs.data(), count, length_);
          });
        for (index_t c = 0; c < count; ++c) {
          const index_array& at = all[first + static_cast<std::size_t>(c)];
          worth&& lanes.exact() ? finish(at, lanes.code(c)) : result_(at);
        }
      }
    }
  }
  void lanes_down() const {
    for_each_kept([&](const index_array& at) { lanes_down(at); });
  }
  void lanes_down(const index_array& at) const {
    if constexpr (has_lanes) {
      lane_folder<Fold, leaves_type> lanes(leaves_, seed_);
      bool exact = lanes.usable() && length_ >= fewest_lanes;
      for (index_t first = 0; exact && first < length_; first += width) {
        const index_t count = std::min(width, length_ - first);
        lanes.start();
        for_each_run(at, [&](const std::uint8_t* row) { lanes.down(row + first, rows_, stride_, count); });
        exact = lanes.exact();
        for (index_t c = 0; exact && c < count; ++c) finish(moved_along(at, axis_, first + c), lanes.code(c));
      }
      if (!exact) results_(at);
    }
  }

  const X& x_;
  const Fold& fold_;
  const typename Fold::state& seeds_;
  const Shape& shape_;
  Write& write_;
  const Result& result_;
  const Results& results_;
  leaves_type leaves_;
  quantized_number<typename plan::to> seed_;
  std::int64_t zero_, limit_;
  byte_sums sums_;
  int axis_;
  index_array kept_, folded_;
  index_t length_ = 0, rows_ = 0, stride_ = 0;  // of a run or a row of results; of the columns
  // Results lie side by side along an axis, so many: as columns, or as runs, which may be turned.
  int side_ = 0;
  index_t beside_ = 1;
  bool turns_ = false, runs_ = false;
  line_array<std::uint8_t> turned_;
};

}  // namespace qtensor::inline QTENSOR_ABI::ops
