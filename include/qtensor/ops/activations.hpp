// Activations for integer products over groups: rows quantized to signed bytes, laid out as the tiles read them.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <numeric>
#include <qtensor/ops/matmul.hpp>
#include <qtensor/ops/product.hpp>
#include <qtensor/ops/quantized_rows.hpp>
#include <qtensor/ops/rows.hpp>
#include <qtensor/simd/gemm_group_lines.hpp>
#include <qtensor/simd/gemm_groups_squares.hpp>

namespace qtensor::inline QTENSOR_ABI {

/// Which activations share a scale when a product quantizes them: all of a row, as quantize<int8_per_channel<>> does
/// it, or those that meet one group of the weights, as int8_group<> does. Both give the codes and scales of these.
enum class activation_scales { per_row, per_group };

namespace ops {

/// What the weights of a product ask of its activations.
struct activation_form {
  index_t depth, group;            ///< scales and zero points of both sides are constant over groups of k
  std::int32_t weight_offset = 0;  ///< what all weights of the tiles exceed their numbers by
  float unit = 1.f;                ///< power of two: a weight's value is number * unit * scale
  activation_scales scales = activation_scales::per_row;
  bool zeros = false;    ///< weights have zero points
  bool offsets = false;  ///< weights have offsets
  bool lines = false;    ///< weights are read in lines, not in quads

  index_t groups() const { return divide_up(depth, group); }
  index_t group_units() const { return round_up(group, 4); }
};

/// Rows of activations for tiles over groups: room for `most` rows, filled from floats or codes again and again.
/// One block of memory, on the stack where it is small.
template <simd::usable_arch A, simd::quads_of Q>
class activation_rows {
  static constexpr index_t line = simd::cache_line, most_floats_rows = box_rows;

 public:
  using unit = simd::group_unit<A, Q>;

  activation_rows(index_t most, const activation_form& form)
      : form_(form),
        groups_(form.groups()),
        stride_(round_up(groups_ * form.group_units(), line) + line),
        entries_(round_up(most * groups_ + simd::lanes<A>, line / 4)),
        floats_rows_(std::min(most, most_floats_rows)),
        space_(words(most)) {
    float* at = space_.data();
    const auto take = [&](index_t count) {
      float* const here = at;
      at += round_up(count, line / 4);
      return here;
    };
    units_ = reinterpret_cast<unit*>(take(units_words(most)));
    starts_ = reinterpret_cast<std::int32_t*>(take(entries_));
    second_starts_ = simd::group_shares<A, Q> ? reinterpret_cast<std::int32_t*>(take(entries_)) : starts_;
    sums_ = reinterpret_cast<std::int32_t*>(take(entries_));
    zeros_ = reinterpret_cast<std::int32_t*>(take(entries_));
    scales_ = take(entries_);
    terms_ = take(entries_);
    row_scales_ = take(most);
    group_scales_ = take(groups_ + simd::lanes<A>);
    floats_ = take(floats_rows_ * form.depth);
    codes_ = reinterpret_cast<std::int8_t*>(take((stride_ + line) / 4));
    quad_sums_ = reinterpret_cast<std::int32_t*>(take(stride_ / 4 + line));
  }

  const activation_form& form() const { return form_; }
  /// Quantizes rows [first, first + count) of a source of floats: amax_scale of NUMERICS 11. Rows (groups) with an
  /// infinity or NaN have a NaN scale, and so NaN results.
  template <tile_source X>
  void quantize(const X& x, index_t first, index_t count) {
    rows_ = count;
    has_zeros_ = false;
    fits_ = true;
    for_each_float_run(x, first, count, floats_rows_, floats_,
                       [&](index_t begin, index_t rows, const float* from, index_t step) {
                         if (form_.scales == activation_scales::per_row)
                           quantize_whole_rows(from, step, begin, rows);
                         else
                           quantize_groups(from, step, begin, rows);
                       });
    finish();
  }
  /// Takes rows [first, first + count) of codes that exist: x as weights_of, integers of at most 8 bits, with scales
  /// and zero points that are constant over the groups of the form.
  template <class X>
  void take_codes(const X& x, index_t first, index_t count) {
    using S = typename X::scheme_type;
    using code = packed_code<typename S::code_format>;
    static_assert(code::is_integer);
    rows_ = count;
    has_zeros_ = packed_has_zeros<S>;
    fits_ = true;
    // Some rows at once: they may lie side by side.
    constexpr index_t most_together = 16;
    const index_t together = in_place() ? most_together : std::min(4 * floats_rows_, most_together);
    const index_t step = in_place() ? stride_ : form_.depth;
    for (index_t r = 0; r < count; ++r) {
      std::int8_t* const codes =
          in_place() ? codes_of(r) : reinterpret_cast<std::int8_t*>(floats_) + r % together * step;
      if (r % together == 0)
        x.read(first + r, std::min(together, count - r), 0, form_.depth, reinterpret_cast<std::uint8_t*>(codes), step);
      for (index_t g = 0; g < groups_; ++g) {
        const index_t at = entry(r, g), k = g * form_.group;
        scales_[at] = scale_of(x, first + r, k);
        zeros_[at] = static_cast<std::int32_t>(x.zero_point(first + r, k) + code::offset);
        fits_ = fits_ && zeros_[at] >= -128 && zeros_[at] <= 127;
      }
      row_scales_[r] = groups_ > 0 ? scales_[entry(r, 0)] : 1.f;
      lay_out(codes, r);
    }
    finish();
    for (index_t at = 0; fits_ && at < groups_ * rows_; ++at) zeros_[at] = simd::small_factor<A>(-zeros_[at]);
  }
  /// Whether tiles can take the rows: not where a zero point lies outside the codes.
  bool fits() const { return fits_; }
  bool has_zeros() const { return has_zeros_; }

  /// What tiles read, from row 0 and group 0 on; `ready`: tiles of ready bytes, which share nothing.
  simd::group_rows<unit> rows(bool ready = false) const {
    const bool each = form_.scales == activation_scales::per_group;
    return {units_,
            stride_,
            rows_,
            {starts_, ready ? starts_ : second_starts_},
            sums_,
            has_zeros_ ? zeros_ : nullptr,
            each ? scales_ : nullptr,
            terms_};
  }
  /// The scale of every row where it has one.
  const float* row_scales() const { return row_scales_; }
  /// What a row's groups are multiplied by, the weights' unit included.
  float group_scale(index_t r, index_t g) const { return scales_[entry(r, g)]; }
  float term(index_t r, index_t g) const { return terms_[entry(r, g)]; }
  /// The number of element k of a group: its code less its zero point. Not for lines.
  std::int64_t number(index_t r, index_t g, index_t k) const {
    constexpr bool in_pairs = sizeof(unit) == 2;  // a quad of 16-bit units stands in the order 0, 2, 1, 3
    constexpr index_t place[] = {0, 2, 1, 3};
    const index_t at = in_pairs ? k / 4 * 4 + place[k % 4] : k;
    const std::int64_t code = units_[r * stride_ + g * form_.group_units() + at];
    if (!has_zeros_) return code;
    const std::int32_t zero = zeros_[entry(r, g)];
    return fits_ ? code + static_cast<std::int16_t>(zero & 0xffff) : code - zero;
  }

 private:
  /// Where the entry of a group of a row stands: those of the rows that meet a group lie side by side.
  index_t entry(index_t r, index_t g) const { return g * rows_ + r; }
  /// Matrix registers read whole squares.
  index_t units_words(index_t most) const {
    const index_t rows = simd::square_unit<A>::exists ? round_up(most, 2 * simd::square_edge) : most;
    return round_up(rows * stride_ * index_t{sizeof(unit)} / 4, line / 4);
  }
  index_t words(index_t most) const {
    return units_words(most) + 6 * entries_ + 7 * line + most + groups_ + floats_rows_ * form_.depth +
           (stride_ + line) / 4 + stride_ / 4 + line;
  }
  /// Codes are units, and groups whole quads: they are made where tiles read them.
  bool in_place() const { return sizeof(unit) == 1 && form_.group % 4 == 0; }

  /// Where the codes of a row are made.
  std::int8_t* codes_of(index_t r) {
    return in_place() ? reinterpret_cast<std::int8_t*>(units_ + r * stride_) : codes_;
  }
  void quantize_whole_rows(const float* x, index_t step, index_t begin, index_t rows) {
    quantize_rows(x, step, rows, form_.depth, row_scales_ + begin, [&](index_t r, const auto& codes) {
      codes.write(codes_of(begin + r));
      lay_out(codes_of(begin + r), begin + r);
    });
  }
  void quantize_groups(const float* x, index_t step, index_t begin, index_t rows) {
    auto* const amax = reinterpret_cast<std::uint32_t*>(quad_sums_);  // free until the sums are taken
    for (index_t r = begin; r < begin + rows; ++r, x += step) {
      quantize_row_groups<row_scheme>(x, form_.depth, form_.group, amax, group_scales_, codes_of(r));
      for (index_t g = 0; g < groups_; ++g) scales_[entry(r, g)] = group_scales_[g];
      row_scales_[r] = groups_ > 0 ? group_scales_[0] : 1.f;
      lay_out(codes_of(r), r);
    }
  }

  /// Codes of a row to units, and all that depends on their sums.
  void lay_out(std::int8_t* codes, index_t r) {
    unit* const to = units_ + r * stride_;
    std::int32_t* const sums = sums_ + r;  // rows_ apart
    const index_t group = form_.group, padded = form_.group_units();
    if constexpr (sizeof(unit) == 1) {
      for (index_t g = 0; g < groups_ && !in_place(); ++g) {
        const index_t k = g * group, some = std::min(group, form_.depth - k);
        std::copy_n(codes + k, some, to + g * padded);
        std::fill_n(to + g * padded + some, round_up(some, 4) - some, unit{0});
      }
      if (in_place()) std::fill_n(to + form_.depth, round_up(form_.depth, 4) - form_.depth, unit{0});
      const index_t filled =
          groups_ > 0 ? (groups_ - 1) * padded + round_up(form_.depth - (groups_ - 1) * group, 4) : 0;
      for (index_t k = 0; k < filled; k += 4 * simd::lanes<A>)
        simd::store(quad_sums_ + k / 4, simd::nibble_dot<A>::quad_sums(to + k));
      std::fill(quad_sums_ + filled / 4, quad_sums_ + groups_ * padded / 4, 0);
      sum_groups(padded / 4, sums);
    } else {
      for (index_t g = 0; g < groups_; ++g) {
        const index_t k = g * group, some = std::min(group, form_.depth - k);
        sums[g * rows_] = simd::pack_units<A>(reinterpret_cast<const std::uint8_t*>(codes + k), some,
                                              simd::code_sign::is_signed, to + g * padded);
      }
    }
    if constexpr (simd::takes_group_lines<A>)
      if (form_.lines) simd::part_line<A, Q>(codes, form_.depth, to);
    if (form_.offsets) set_terms(r);
    row_scales_[r] = rounded(row_scales_[r] * form_.unit);
  }
  /// The sums of a row's groups, of `quads` quad sums each, rows_ apart.
  void sum_groups(index_t quads, std::int32_t* sums) const {
    constexpr index_t lanes = simd::lanes<A>;
    const auto* const all = reinterpret_cast<const std::uint32_t*>(quad_sums_);
    index_t g = 0;
    for (; groups_ - g >= lanes / 2; g += lanes) {  // fewer are sooner added up one by one
      const auto quads_of = [&](index_t i) QTENSOR_INLINE_LAMBDA { return all + std::min(g + i, groups_ - 1) * quads; };
      simd::words<A> of_groups;
      if (quads <= lanes)
        of_groups = simd::reduce_add_each<A>([&](index_t i)
                                                 QTENSOR_INLINE_LAMBDA { return simd::load_n<A>(quads_of(i), quads); });
      else
        of_groups = simd::reduce_add_each<A>([&](index_t i) {
          simd::words<A> sum(0u);
          for (index_t q = 0; q < quads; q += lanes)
            sum = sum + simd::load_n<A>(quads_of(i) + q, std::min(lanes, quads - q));
          return sum;
        });
      std::uint32_t each[lanes];
      simd::store(each, of_groups);
      for (index_t i = 0; i < std::min(lanes, groups_ - g); ++i)
        sums[(g + i) * rows_] = static_cast<std::int32_t>(each[i]);
    }
    for (; g < groups_; ++g)
      sums[g * rows_] = static_cast<std::int32_t>(std::accumulate(all + g * quads, all + (g + 1) * quads, 0u));
  }
  /// What tiles read of all rows. Whole batches: what they write behind the last entry is nobody's.
  void finish() {
    using simd::floats, simd::ints;
    const index_t entries = groups_ * rows_;
    const ints<A> first(-form_.weight_offset), second(-17 * form_.weight_offset);
    const floats<A> unit_of_weights(form_.unit);
    for (index_t at = 0; at < entries; at += simd::lanes<A>) {
      const ints<A> sum = simd::load<A>(sums_ + at);
      simd::store(starts_ + at, sum * first);
      if constexpr (simd::group_shares<A, Q>) simd::store(second_starts_ + at, sum * second);
      if (form_.unit != 1.f) simd::store(scales_ + at, simd::mul(simd::load<A>(scales_ + at), unit_of_weights));
    }
    for (index_t at = 0; at < entries && form_.zeros; ++at) sums_[at] = simd::large_factor<A>(sums_[at]);
  }
  void set_terms(index_t r) {
    for (index_t g = 0; g < groups_; ++g) {
      const index_t at = entry(r, g);
      std::int64_t exact = sums_[at];
      if (has_zeros_) exact -= zeros_[at] * std::min(form_.group, form_.depth - g * form_.group);
      const auto total = static_cast<float>(exact);
      terms_[at] = form_.scales == activation_scales::per_group ? rounded(scales_[at] * total) : total / form_.unit;
    }
  }

  activation_form form_;
  index_t groups_, stride_, entries_, floats_rows_, rows_ = 0;
  product_space space_;
  unit* units_;
  std::int32_t *starts_, *second_starts_, *sums_, *zeros_;
  float *scales_, *terms_, *row_scales_, *group_scales_, *floats_;
  std::int8_t* codes_;
  std::int32_t* quad_sums_;
  bool has_zeros_ = false, fits_ = true;
};

}  // namespace ops

}  // namespace qtensor::inline QTENSOR_ABI
