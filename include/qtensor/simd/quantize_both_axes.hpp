// Rows of floats to codes along both axes: a scale for each group of a row, and one for each column, memory read once.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/simd/quantize_columns.hpp>

namespace qtensor::inline QTENSOR_ABI::simd {

namespace detail {

/// A run of codes on its way to where it belongs: bytes there, or in the first-level cache where they are still to be
/// packed, or aligned, to go past the caches. Half lines of two runs in turn would each go there alone.
template <class S, class A>
class code_run {
  static constexpr int bits = S::code_format::bits;
  static constexpr bool puts_lines = 4 * lanes<A> == 64;  // codes of four batches

 public:
  code_run(code_unit_t<S>* to, index_t n, bool past_caches)
      : to_(reinterpret_cast<std::uint8_t*>(to)), n_(n), past_caches_(past_caches) {
    is_direct_ = bits == 8 && (!past_caches || (puts_lines && begins_line(to_, n)));
  }
  std::uint8_t* bytes() { return is_direct_ ? to_ : kept_; }
  /// Whether bytes() are aligned lines that go past the caches.
  bool streams() const { return is_direct_ && past_caches_; }
  void finish() {
    if (!is_direct_) pack_codes<A, bits>(kept_, n_, to_, past_caches_);
  }

 private:
  std::uint8_t* to_;
  index_t n_;
  bool past_caches_, is_direct_;
  alignas(64) std::uint8_t kept_[static_cast<std::size_t>(chunk_elements)];
};

/// Whether both kinds of codes are made of bf16 numbers as they are: in a loop each then, as nothing is made ready for
/// both that would take longer than another load.
template <class R, class C, class A, class From>
inline constexpr bool are_read_apart =
    batches_of_group<R, A>() > 1 && moves_halves<R, A, From>() && codes_bf16_each<C, fitting_quotient<C, A>, A, From>();

/// Codes of x[0, n) by two schemes, one per byte.
template <class R, class C, class A, class From, class RowParameters, class ColumnParameters>
void encode_twice(const typename From::type* x, index_t n, RowParameters p, ColumnParameters q, code_run<R, A>& by_rows,
                  code_run<C, A>& by_columns, const typename From::type* next) {
  constexpr index_t step = 4 * lanes<A>;
  constexpr quotient_by row_quotient = fitting_quotient<R, A>, column_quotient = fitting_quotient<C, A>;
  std::uint8_t *rows = by_rows.bytes(), *columns = by_columns.bytes();
  const bool rows_stream = by_rows.streams(), columns_stream = by_columns.streams();
  tail_space<A> row_space, column_space;
  for (index_t i = 0; i < n; i += step, p.next(), q.next()) {
    std::array<floats<A>, 4> v;
    if (n - i >= step) [[likely]] {
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) v[k] = From::template load<A>(x + i + k * lanes<A>);
      if (next != nullptr) fetch_lines<step * index_t{sizeof(*x)}>(next + i, fetch::far);
      simd::put(rows + i, encode_codes<R, row_quotient, A, numbers::fitting>(v, p), rows_stream);
      simd::put(columns + i, encode_codes<C, column_quotient, A, numbers::fitting>(v, q), columns_stream);
    } else {
      const index_t left = n - i;
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k)
        v[k] = From::template load_n<A>(x + i + k * lanes<A>, std::clamp(left - k * lanes<A>, index_t{0}, lanes<A>));
      p.pad(row_space, left);
      q.pad(column_space, left);
      simd::store_n(rows + i, left, encode_codes<R, row_quotient, A, numbers::fitting>(v, p));
      simd::store_n(columns + i, left, encode_codes<C, column_quotient, A, numbers::fitting>(v, q));
    }
  }
}

}  // namespace detail

/// Schemes of a row's groups and of columns whose codes come from one load.
template <class R, class C, class From>
concept encodes_both_axes = float_source<From> && reads_elements<R, From> && reads_elements<C, From> &&
    detail::encodes_by_vectors<encoder_of<R, From>> && detail::encodes_by_vectors<encoder_of<C, From>> &&
    detail::batches_of_group<R, best_arch>()
!= 0;

/// Codes of n elements of a row, which fit both the scales of their groups and those of the columns from `col` on, by
/// both. False, with nothing written, where scales need more than that (two products far out). n is at most 2048 and
/// whole groups, but for the end of a row; codes start on bytes. `past_caches`: call stream_fence() after the last
/// call. What lies at `next` is asked for meanwhile, unless that is null.
template <quantization_scheme R, quantization_scheme C, float_source From>
requires encodes_both_axes<R, C, From>
bool encode_both_axes(const typename From::type* x, index_t n, const float* scales, const std::int32_t* zero_points,
                      const column_encoder<C, From>& columns, index_t col, code_unit_t<R>* by_rows,
                      code_unit_t<C>* by_columns, bool past_caches = false, const typename From::type* next = nullptr) {
  using A = best_arch;
  constexpr index_t group = detail::static_group<typename R::granularity_type>;
  constexpr bool apart = detail::are_read_apart<R, C, A, From>;
  constexpr quotient_by by_row = apart ? detail::fitting_run_quotient<R, A, From> : detail::fitting_quotient<R, A>,
                        by_column = detail::fitting_quotient<C, A>;
  const index_t groups = divide_up(n, group);
  if (!columns.fits() ||
      (!detail::moves_grid<R>() && !detail::all_regular_divisors<R, A, numbers::fitting>(scales, groups, 1.f)))
    return false;
  detail::group_table<R, A> table;
  table.template fill<by_row>(scales, zero_points, groups, 1.f);
  const detail::group_parameters<R, by_row, A, detail::batches_of_group<R, A>()> p{&table, scales, groups - 1, 1.f,
                                                                                   group / (4 * lanes<A>)};
  detail::code_run<R, A> rows(by_rows, n, past_caches);
  detail::code_run<C, A> cols(by_columns, n, past_caches);
  const auto q = columns.template prepared<by_column>(col);
  if constexpr (apart) {
    const traffic asks{next != nullptr ? fetch::far : fetch::nothing, rows.streams(),
                       next != nullptr ? (next - x) * index_t{sizeof(*x)} : 0};
    detail::encode_blocks<R, by_row, A, From, numbers::fitting>(x, n, p, rows.bytes(), asks);
    detail::encode_blocks<C, by_column, A, From, numbers::fitting>(x, n, q, cols.bytes(), {{}, cols.streams()});
  } else {
    detail::encode_twice<R, C, A, From>(x, n, p, q, rows, cols, next);
  }
  rows.finish();
  cols.finish();
  return true;
}

}  // namespace qtensor::inline QTENSOR_ABI::simd
