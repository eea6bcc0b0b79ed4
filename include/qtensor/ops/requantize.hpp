// The sink of integer products that makes 8-bit codes of exact sums: moved, scaled, rounded, saturated.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <limits>
#include <qtensor/ops/integer_rows.hpp>
#include <span>

namespace qtensor::inline QTENSOR_ABI::ops {

/// How sums become codes of Y, std::int8_t or std::uint8_t, every step in f32:
///   y(m, n) = clamp(rne((float(sum) + shifts[n]) * f) + zero_point) with f = RN(RN(rows[m] * columns[n]) / divisor)
/// and 0 where that is NaN. One scale of rows or one for each, and so of columns; shifts: none, or one for each column.
/// The scales of rows must outlive this.
template <class Y, simd::usable_arch A = simd::best_arch>
class requantization {
  static constexpr index_t step = simd::lanes<A>;

 public:
  requantization(std::span<const float> rows, std::span<const float> columns, float divisor,
                 std::span<const float> shifts, Y zero_point, index_t outputs)
      : rows_(rows), divisor_(divisor), zero_(zero_point) {
    // Columns that fill up a tile have an entry, too.
    const index_t n = outputs + 4 * step;
    columns_ = line_array<float>(n);
    for (index_t c = 0; c < outputs; ++c) columns_[c] = columns[columns.size() == 1 ? 0 : static_cast<std::size_t>(c)];
    if (!has_row_scales())
      for (index_t c = 0; c < outputs; c += step) simd::store(columns_.data() + c, factors<true>(0, c));
    shifts_ = line_array<float>::for_overwrite(n);
    std::fill_n(shifts_.data(), n, -0.f);  // changes no number
    std::ranges::copy(shifts, shifts_.data());
  }
  bool has_row_scales() const { return rows_.size() != 1; }
  std::int32_t zero_point() const { return zero_; }
  /// The factors f of a vector of columns.
  template <bool HasRowScales>
  QTENSOR_INLINE simd::floats<A> factors(index_t row, index_t column) const {
    const simd::floats<A> columns = simd::load<A>(columns_.data() + column);
    if constexpr (!HasRowScales) return columns;
    return simd::div(simd::mul(simd::floats<A>(rows_[static_cast<std::size_t>(row)]), columns),
                     simd::floats<A>(divisor_));
  }

  /// A vector of sums, of 32 or 64 bits, as codes that are not saturated yet.
  template <bool HasRowScales, class Sum>
  QTENSOR_INLINE simd::ints<A> codes(const Sum* sums, index_t row, index_t column) const {
    const simd::floats<A> x = simd::mul(simd::add(as_floats(sums), simd::load<A>(shifts_.data() + column)),
                                        factors<HasRowScales>(row, column));
    const simd::floats<A> limit(0x1p23f);  // beyond every code and zero point
    const simd::ints<A> code =
        simd::round_to_int(simd::min(limit, simd::max(simd::floats<A>(-0x1p23f), x))) + simd::ints<A>(zero_);
    return simd::select(simd::mask_as<std::int32_t>(x == x), code, simd::ints<A>(0));
  }

 private:
  static QTENSOR_INLINE simd::floats<A> as_floats(const std::int32_t* sums) {
    return simd::to_float(simd::load<A>(sums));
  }
  static simd::floats<A> as_floats(const std::int64_t* sums) {
    alignas(64) float rounded_once[static_cast<std::size_t>(step)];
    for (index_t i = 0; i < step; ++i) rounded_once[i] = static_cast<float>(sums[i]);
    return simd::load<A>(static_cast<const float*>(rounded_once));
  }

  std::span<const float> rows_;
  float divisor_;
  std::int32_t zero_;
  line_array<float> columns_, shifts_;  // scales, or factors where all rows share them
};

/// The sink that writes these codes, or those of a rule of the same form, to rows of memory, four batches at a time.
template <class Y, simd::usable_arch A = simd::best_arch, class How = requantization<Y, A>>
struct store_requantized {
  static constexpr bool runs_beside = true;
  const How& how;
  matrix_ref<Y> y;

  void operator()(const integer_tile& t) const { store(t); }
  void operator()(const long_integer_tile& t) const { store(t); }

 private:
  static constexpr index_t step = simd::lanes<A>, block = 4 * step;

  template <class Tile>
  void store(const Tile& t) const {
    if (t.stride == block)
      how.has_row_scales() ? store_blocks<1, true>(t) : store_blocks<1, false>(t);
    else
      how.has_row_scales() ? store_blocks<2, true>(t) : store_blocks<2, false>(t);
  }
  /// Blocks of one row or of two, as wide as the tile has room.
  template <index_t Rows, bool HasRowScales, class Tile>
  void store_blocks(const Tile& t) const {
    constexpr index_t width = block / Rows;
    alignas(64) std::uint8_t bytes[block];
    for (index_t r = 0; r < t.rows; r += Rows) {
      const auto codes = [&](index_t i) QTENSOR_INLINE_LAMBDA {
        const index_t row = std::min(r + i / width, t.rows - 1), column = i % width;
        return how.template codes<HasRowScales>(t.values + row * width + column, t.row + row, t.col + column);
      };
      if constexpr (std::numeric_limits<Y>::is_signed)
        simd::store(bytes, simd::narrow_i8(codes(0), codes(step), codes(2 * step), codes(3 * step)));
      else
        simd::store(bytes, simd::narrow_u8(codes(0), codes(step), codes(2 * step), codes(3 * step)));
      for (index_t i = 0; i < std::min(Rows, t.rows - r); ++i) {
        Y* const to = &y(t.row + r + i, t.col);
        if (t.cols == width)
          std::memcpy(to, bytes + i * width, width);  // of a size that needs no call
        else
          std::memcpy(to, bytes + i * width, static_cast<std::size_t>(t.cols));
      }
    }
  }
};

}  // namespace qtensor::inline QTENSOR_ABI::ops
