// Folds of 8-bit codes by add, max or min on integers: used only where they give the bits of the fold.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <qtensor/ops/elements.hpp>
#include <qtensor/simd/reduce.hpp>
#include <tuple>
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
// all of it; where that is too much, the result is folded step by step.
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
  static constexpr bool value = from::code_format::is_integer && from::code_format::bits == 8 &&
                                sizeof(typename X::view_type::code_unit) == 1 && to::code_format::is_integer &&
                                ((is_add && adds_exactly<to>) || is_extreme);
};

/// Elements below which the table costs more than it saves.
inline constexpr index_t fewest_bytes = 1024;

/// fold_dimensions on bytes. `seeds` is the state before the first element; result(at) and results(at) fold one result,
/// or a row of them along the contiguous axis, step by step. False where nothing was done, as the bits could differ.
template <class Inputs, class Fold, class Shape, class Write, class Result, class Results>
bool fold_bytes(const Inputs& inputs, const Fold& fold, const typename Fold::state& seeds, const Shape& shape,
                Write& write, Result result, Results results) {
  using plan = byte_fold<Inputs, Fold>;
  using arch = simd::best_arch;
  const auto& x = std::get<0>(inputs);
  using index_array = std::remove_cvref_t<decltype(x.extents())>;
  const byte_leaves<Fold, typename plan::from> leaves(fold, x.type());
  constexpr std::uint8_t flip = leaves.flip;
  const auto seed = std::get<0>(seeds);
  if (!leaves.one_type || seed.type() != leaves.type) return false;
  const std::int64_t zero = leaves.type.zero_point;
  const std::int64_t limit = plan::is_add ? exact_limit(leaves.type.scale) - (zero < 0 ? -zero : zero) : 0;
  const byte_sums sums(leaves.code, leaves.type.zero_point, std::max<std::int64_t>(limit, 0));
  if (plan::is_add ? sums.segment < 64 : !leaves.keeps_codes(seed)) return false;
  // After a sum, the next segment is exact as long as this holds.
  const auto small = [&](std::int64_t sum) { return (sum < 0 ? -sum : sum) + sums.segment * sums.largest <= limit; };
  const auto finish = [&](const index_array& at, std::int64_t code) {
    write(shape.result_index(at), fold.finish(seeds, typename Fold::state(leaves.number(code))));
  };
  const int axis = x.contiguous_axis();
  const auto a = static_cast<std::size_t>(axis);
  const auto bytes_at = [&](const index_array& at) {
    return reinterpret_cast<const std::uint8_t*>(x.line(at, axis).first);
  };
  index_array kept = shape.kept, folded = shape.folded;
  if (shape.is_folded[a]) {
    const index_t length = folded[a];  // of a run of bytes; a result has one or several
    folded[a] = 1;
    reference::for_each_index(index_array{}, kept, [&](const index_array& at) {
      if constexpr (plan::is_add) {
        std::int64_t sum = seed.integer() - zero;
        bool exact = true;
        reference::for_each_index(index_array{}, folded, [&](const index_array& along) {
          const std::uint8_t* const run = bytes_at(sum_of(at, along));
          for (index_t i = 0; exact && i < length; i += sums.segment) {
            exact = small(sum);
            sum += sums.template row<arch>(run + i, std::min(sums.segment, length - i), flip);
          }
        });
        exact ? finish(at, sum + zero) : result(at);
      } else {
        using which = typename extreme_of<typename plan::rule>::type;
        std::uint8_t best = which::none;
        reference::for_each_index(index_array{}, folded, [&](const index_array& along) {
          best = which::of(best, simd::extreme_bytes<which, arch>(bytes_at(sum_of(at, along)), length, flip));
        });
        finish(at, plan::rule::integer(seed.integer(), std::int64_t{leaves.code[best]}));
      }
    });
    return true;
  }
  // Rows of results: the innermost folded axis goes down the columns.
  const auto down = static_cast<std::size_t>(shape.last_folded);
  const index_t rows = folded[down], cols = kept[a], stride = x.line(index_array{}, shape.last_folded).step;
  folded[down] = 1;
  kept[a] = 1;
  const auto n = static_cast<std::size_t>(cols);
  std::vector<std::int64_t> sum(plan::is_add ? n : 0);
  std::vector<std::uint32_t> scratch(sum.size());
  std::vector<std::uint8_t> best(plan::is_add ? 0 : n);
  reference::for_each_index(index_array{}, kept, [&](const index_array& at) {
    if constexpr (plan::is_add) {
      std::fill(sum.begin(), sum.end(), seed.integer() - zero);
      bool exact = true;
      reference::for_each_index(index_array{}, folded, [&](const index_array& along) {
        const std::uint8_t* const first = bytes_at(sum_of(at, along));
        for (index_t r = 0; exact && r < rows; r += sums.segment) {
          exact = std::all_of(sum.begin(), sum.end(), small);
          sums.template columns<arch>(first + r * stride, std::min(sums.segment, rows - r), stride, flip, scratch, sum);
        }
      });
      if (!exact) return results(at);
      for (index_t c = 0; c < cols; ++c) finish(moved_along(at, axis, c), sum[static_cast<std::size_t>(c)] + zero);
    } else {
      using which = typename extreme_of<typename plan::rule>::type;
      std::fill(best.begin(), best.end(), which::none);
      reference::for_each_index(index_array{}, folded, [&](const index_array& along) {
        simd::extreme_columns<which, arch>(bytes_at(sum_of(at, along)), rows, stride, cols, flip, best.data());
      });
      for (index_t c = 0; c < cols; ++c)
        finish(moved_along(at, axis, c),
               plan::rule::integer(seed.integer(), std::int64_t{leaves.code[best[static_cast<std::size_t>(c)]]}));
    }
  });
  return true;
}

}  // namespace qtensor::inline QTENSOR_ABI::ops
