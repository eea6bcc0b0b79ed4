// Rows of floats to codes under one scale an element: what the scales ask for is prepared once for all rows.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <numeric>
#include <qtensor/simd/memory.hpp>
#include <qtensor/simd/ops_columns.hpp>
#include <qtensor/simd/quantize.hpp>

namespace qtensor::inline QTENSOR_ABI::simd {

namespace detail {

/// Rows from memory that share one load of their parameters: few, so that the caches see runs of lines, and rows that
/// lie at a power of two do not push each other out.
inline constexpr index_t rows_together = 4;
/// Columns whose parameters a first-level cache holds easily. Rows of no more are encoded one by one, so that those
/// from memory come like one long row.
inline constexpr index_t near_columns = 1024;

/// One scale an element, its divisors prepared in memory.
template <class S, quotient_by By, class A>
struct column_parameters {
  static constexpr bool alike_in_pairs = false, all_alike = false;
  vector_parameters<S, A> plain;
  const float* value;
  const float* rest;  // where `By` has one

  template <quotient_by Wanted>
  QTENSOR_INLINE divisor<Wanted, A> divide(int k) const {
    if constexpr (Wanted != By)
      return plain.template divide<Wanted>(k);
    else if constexpr (has_rest<By>)
      return {simd::load<A>(value + k * lanes<A>), simd::load<A>(rest + k * lanes<A>)};
    else
      return {simd::load<A>(value + k * lanes<A>)};
  }
  QTENSOR_INLINE ints<A> zero_points(int k) const { return plain.zero_points(k); }
  QTENSOR_INLINE column_parameters from(index_t i) const { return {plain.from(i), value + i, rest + i}; }
  QTENSOR_INLINE void next() { *this = from(4 * lanes<A>); }
  void pad(tail_space<A>& space, index_t n) { plain.pad(space, n); }
};

/// Whether the divisors of four batches fit into registers beside what else a kernel needs.
template <quotient_by By, class A>
inline constexpr bool holds_divisors = !has_rest<By> || has_many_registers<A>;

/// The parameters of one block of four batches, in registers for several rows. Batches, not divisors: g++ copies what
/// consists of several by storing halves and loading them whole, which CPUs wait for.
template <quotient_by By, class S, class A, class Parameters>
struct held_parameters {
  static constexpr bool alike_in_pairs = false;
  const Parameters& all;
  std::array<floats<A>, 4> values, rests;
  std::array<ints<A>, 4> zeros;

  explicit QTENSOR_INLINE held_parameters(const Parameters& p) : all(p) {
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      const divisor<By, A> d = p.template divide<By>(k);
      values[k] = d.value;
      if constexpr (has_rest<By>) rests[k] = d.rest;
      zeros[k] = p.zero_points(k);
    }
  }
  template <quotient_by Wanted>
  QTENSOR_INLINE divisor<Wanted, A> divide(int k) const {
    if constexpr (Wanted != By)
      return all.template divide<Wanted>(k);
    else if constexpr (has_rest<By>)
      return {values[k], rests[k]};
    else
      return {values[k]};
  }
  QTENSOR_INLINE const ints<A>& zero_points(int k) const { return zeros[k]; }
};

/// Codes of the first n elements of some rows, fewer than a block.
template <class S, quotient_by By, class A, class From, numbers Which, class Parameters>
void encode_narrow_rows(const typename From::type* x, index_t x_step, index_t rows, index_t n, const Parameters& all,
                        std::uint8_t* to, index_t to_step) {
  using element = typename From::type;
  constexpr index_t step = 4 * lanes<A>;
  tail_space<A> space;
  Parameters padded = all;
  padded.pad(space, n);
  for (index_t r = 0; r < rows; ++r) {
    alignas(64) element from[static_cast<std::size_t>(step)];
    std::fill(std::copy_n(x + r * x_step, n, from), from + step, element{});
    simd::store_n(to + r * to_step, n, codes_of_four<S, By, A, From, Which>(from, padded));
  }
}

/// Codes of the first n elements of some rows that lie in a cache, at least a block: in order, which caches like best,
/// so that parameters are read for each row, of near_columns at a time. Where blocks do not fill a row, the last one
/// begins early: what it shares with the one before it is written twice.
template <class S, quotient_by By, class A, class From, numbers Which, class Parameters>
void encode_near_rows(const typename From::type* x, index_t x_step, index_t rows, index_t n, const Parameters& all,
                      std::uint8_t* to, index_t to_step) {
  constexpr index_t step = 4 * lanes<A>, wide = near_columns;
  for (index_t first = 0; first < n; first += wide) {
    const Parameters some = all.from(first), last = all.from(n - step);
    const index_t whole = std::min(wide, n - first) / step * step;
    const bool ends = n - first <= wide && whole < n - first;
    for (index_t r = 0; r < rows; ++r) {
      const auto* from = x + r * x_step;
      std::uint8_t* codes = to + r * to_step;
      Parameters p = some;
      for (index_t i = first; i < first + whole; i += step, p.next())
        simd::store(codes + i, codes_of_four<S, By, A, From, Which>(from + i, p));
      if (ends) simd::store(codes + n - step, codes_of_four<S, By, A, From, Which>(from + n - step, last));
    }
  }
}

/// How rows that come from memory are read one after the other, and asked for as `asks` wants it: `wide` columns at a
/// time, whose parameters stay in a first-level cache, where the CPU does not want pages in turn. `pays`: these are
/// bytes enough for memory to come in order.
struct in_order_parts {
  traffic t;
  index_t wide;
  bool pays;
};
/// That of rows of n elements of `size` bytes, `step` of which are encoded together.
template <class S, quotient_by By>
in_order_parts parts_in_order(index_t n, index_t size, index_t step, const box_requests& asks) {
  constexpr index_t kept = 32768, least = 8192, each = sizeof(float) * (1 + has_rest<By> + S::has_zero_point);
  const traffic t = asks.ahead == 0 && asks.fetches != fetch::nothing ? reads_once(true)
                                                                      : traffic{asks.fetches, true, asks.ahead * size};
  const index_t parts = t.fetches == fetch::pages ? 1 : divide_up(n * each, kept);
  const index_t wide = parts == 1 ? n : round_up(divide_up(n, parts), step);
  return {t, wide, parts == 1 || wide * size >= least};
}

/// The same for rows that come from memory and go past the caches, one after the other, as memory likes best. Where
/// `asks` has no place of its own, parts that are no whole rows are asked for as far as they go, then where they go on
/// in the next row.
template <class S, quotient_by By, class A, class From, numbers Which, class Parameters>
void encode_rows_in_order(const typename From::type* x, index_t x_step, index_t rows, index_t n, const Parameters& all,
                          std::uint8_t* to, index_t to_step, const box_requests& asks, const in_order_parts& parts) {
  using element = typename From::type;
  constexpr index_t step = 4 * lanes<A>, size = sizeof(element);
  const traffic t = parts.t;
  const index_t wide = parts.wide;
  for (index_t first = 0; first < n; first += wide) {
    const index_t end = std::min(first + wide, n), to_next_row = asks.ahead == 0 ? x_step - (end - first) : 0;
    const Parameters some = all.from(first), last = all.from(end - step);
    for (index_t r = 0; r < rows; ++r) {
      const element* from = x + r * x_step;
      std::uint8_t* codes = to + r * to_step;
      Parameters p = some;
      index_t i = first;
      for (; i + step <= end; i += step, p.next()) {
        fetch_ahead<step * size>(from + i + (i * size + t.ahead < end * size ? 0 : to_next_row), t);
        simd::put(codes + i, codes_of_four<S, By, A, From, Which>(from + i, p), true);
      }
      if (i < end) simd::store(codes + end - step, codes_of_four<S, By, A, From, Which>(from + end - step, last));
    }
  }
}

/// The same for rows that come from memory or go there, block by block down a few of them, as many as `asks` or the CPU
/// like. `streams`: whole blocks go past the caches, and to + r * to_step are aligned to them. `asks`: for what
/// meanwhile.
template <class S, quotient_by By, class A, class From, numbers Which, class Parameters>
void encode_far_rows(const typename From::type* x, index_t x_step, index_t rows, index_t n, const Parameters& all,
                     std::uint8_t* to, index_t to_step, bool streams, box_requests asks) {
  using element = typename From::type;
  using held_type = std::conditional_t<holds_divisors<By, A>, held_parameters<By, S, A, Parameters>, Parameters>;
  constexpr index_t step = 4 * lanes<A>, fetched = step * index_t{sizeof(element)};
  // Where there is little to share, or the CPU likes it, rows that come from memory are done alone: they come in order,
  // and what goes past the caches fills its lines at once.
  const index_t likes = !has_many_registers<A> ? 1 : best_requests().rows;
  if (streams && likes == 1 && asks.runs.empty())
    if (const in_order_parts parts = parts_in_order<S, By>(n, sizeof(element), step, asks); parts.pays)
      return encode_rows_in_order<S, By, A, From, Which>(x, x_step, rows, n, all, to, to_step, asks, parts);
  const bool as_liked = streams && asks.ahead == 0 && (likes > 1 || !asks.runs.empty());
  const index_t high = as_liked ? likes : rows_together;
  const index_t ahead = asks.ahead != 0 ? asks.ahead : high * x_step;
  for (index_t row = 0; row < rows; row += high) {
    const index_t count = std::min(high, rows - row);
    for (index_t end = step; end < n + step; end += step) {
      const index_t i = std::min(end, n) - step;
      const Parameters p = all.from(i);
      const held_type held(p);
      const element* from = x + row * x_step + i;
      std::uint8_t* codes = to + row * to_step + i;
      for (index_t r = 0; r < count; ++r, from += x_step, codes += to_step) {
        if (!asks.runs.empty())
          for (run_requests& one : asks.runs) one.ask();
        else
          fetch_lines<fetched>(from + ahead, asks.fetches);
        simd::put(codes, codes_of_four<S, By, A, From, Which>(from, held), streams && end <= n);
      }
    }
  }
}

/// Codes of the first n elements of some rows, one per byte.
template <class S, quotient_by By, class A, class From, numbers Which = numbers::any, class Parameters>
void encode_rows(const typename From::type* x, index_t x_step, index_t rows, index_t n, const Parameters& all,
                 std::uint8_t* to, index_t to_step, bool streams, box_requests asks) {
  if (n < 4 * lanes<A>)
    encode_narrow_rows<S, By, A, From, Which>(x, x_step, rows, n, all, to, to_step);
  else if (!streams && asks.fetches == fetch::nothing && asks.runs.empty())
    encode_near_rows<S, By, A, From, Which>(x, x_step, rows, n, all, to, to_step);
  else
    encode_far_rows<S, By, A, From, Which>(x, x_step, rows, n, all, to, to_step, streams, asks);
}

/// The parameters of one batch of columns, for all four that are encoded together.
template <class Parameters>
struct repeated_parameters {
  const Parameters& one;

  template <quotient_by Wanted>
  QTENSOR_INLINE auto divide(int) const {
    return one.template divide<Wanted>(0);
  }
  QTENSOR_INLINE auto zero_points(int) const { return one.zero_points(0); }
};

/// Codes of n elements each of some rows, turned: that of element i of row r at to[i * to_step + r]. The codes of four
/// rows are made together, and meet in each element's four bytes before those are turned. `parameters(r, i)`: those of
/// rows [r, r + 4) from element i on. Needs rows <= 4 * lanes, n % lanes == 0, n <= most_turned * lanes.
inline constexpr index_t most_turned = 8;
template <class S, quotient_by By, class A, class From, numbers Which, class ParametersOf>
QTENSOR_INLINE void encode_turned_rows(const typename From::type* x, index_t x_step, index_t rows, index_t n,
                                       ParametersOf parameters, std::uint8_t* to, index_t to_step) {
  constexpr index_t side = lanes<A>, most = 4 * side;
  alignas(64) std::uint8_t fours[most_turned * side * most];
#pragma GCC unroll 1
  for (index_t r = 0; r < rows; r += 4) {
    const auto* from = x + r * x_step;
    const index_t below = std::min(rows - 1 - r, index_t{3});  // the last row stands for those behind it
    const index_t second = std::min(below, index_t{1}) * x_step, third = std::min(below, index_t{2}) * x_step,
                  fourth = below * x_step;
#pragma GCC unroll 1
    for (index_t i = 0; i < n; i += side, from += side) {
      const auto p = parameters(r, i);
      const std::array<floats<A>, 4> v{From::template load<A>(from), From::template load<A>(from + second),
                                       From::template load<A>(from + third), From::template load<A>(from + fourth)};
      const bytes<A> codes = encode_codes<S, By, A, Which>(v, repeated_parameters<decltype(p)>{p});
      simd::store(fours + i * most + r * side, simd::interleave_four<A>(codes));
    }
  }
  for (index_t i = 0; i < n; i += side) {
    std::array<floats<A>, side> square;
#pragma GCC unroll 16
    for (index_t k = 0; k < side; ++k)
      square[k] = simd::bits_as<float>(simd::load<A>(static_cast<const std::uint8_t*>(fours + (i + k) * most)));
    simd::turn_square<A>(square);
    std::uint8_t* out = to + i * to_step;
    if (rows == most)
#pragma GCC unroll 16
      for (index_t k = 0; k < side; ++k, out += to_step) simd::store(out, simd::bits_as<std::uint8_t>(square[k]));
    else
      for (index_t k = 0; k < side; ++k, out += to_step)
        simd::store_n(out, rows, simd::bits_as<std::uint8_t>(square[k]));
  }
}

}  // namespace detail

/// Scales that `length` columns share each: column c takes scales[c / length]. None where `scales` is null.
struct shared_scales {
  const float* scales = nullptr;
  index_t length = 1;
};

/// One scale and zero point an element, ready for any number of rows. Keeps the arrays it is given; `memory` has room
/// for memory_for(n) floats, which hold prepared inverses: too dear to be made again for every few rows.
template <quantization_scheme S, float_source From, class Kernel>
class basic_column_encoder {
  using unit = code_unit_t<S>;
  using element = typename From::type;
  template <class K>
  struct arch_of {
    using type = scalar_arch;
  };
  template <detail::encodes_by_vectors K>
  struct arch_of<K> {
    using type = decltype(detail::arch_of_encoder(static_cast<const K*>(nullptr)));
  };
  using arch = typename arch_of<Kernel>::type;
  static constexpr quotient_by fast_quotient = detail::fast_quotient<S, arch>,
                               fitting_quotient = detail::fitting_quotient<S, arch>;

 public:
  static constexpr index_t memory_for(index_t n) {
    if constexpr (detail::encodes_by_vectors<Kernel>)
      return 3 * round_up(n + block, block) + round_up(n + block, block) / 4;
    else
      return 0;
  }

  /// `fitting`: all numbers fit their scales, which are as encode_fitting wants them. `shared`: what `scales` are
  /// copies of, if they are, so that no inverse is made twice.
  basic_column_encoder(const float* scales, const std::int32_t* zero_points, index_t n, float tensor_scale,
                       float* memory, bool fitting = false, const shared_scales& shared = {})
      : scales_(scales), zeros_(zero_points), tensor_scale_(tensor_scale), value_(memory) {
    if constexpr (detail::encodes_by_vectors<Kernel>) {
      const index_t room = round_up(n + block, block);
      rest_ = memory + room;
      if (detail::any_irregular<S, arch>(scales, zero_points, n)) {
        take_zeros_out(n, memory + 2 * room, reinterpret_cast<std::uint8_t*>(memory + 3 * room));
        irregular_ = detail::any_irregular<S, arch>(scales_, zero_points, n);
      }
      const shared_scales all = shared.scales != nullptr && keeps_ == nullptr ? shared : shared_scales{scales_};
      const index_t count = divide_up(n, all.length);
      is_fast_ = detail::all_regular_divisors<S, arch>(all.scales, count, tensor_scale);
      fits_ = fitting && keeps_ == nullptr &&
              (is_fast_ || fitting_quotient == quotient_by::moved_grid ||
               detail::all_regular_divisors<S, arch, numbers::fitting>(all.scales, count, tensor_scale));
      irregular_ = irregular_ && !fits_;
      const auto prepare_for = [&]<quotient_by By>(std::integral_constant<quotient_by, By>) {
        if (all.length > 1)
          prepare_shared<By>(n, all);
        else
          prepare<By>(n);
      };
      if (fits_)
        prepare_for(std::integral_constant<quotient_by, fitting_quotient>{});
      else if (is_fast_)
        prepare_for(std::integral_constant<quotient_by, fast_quotient>{});
    }
  }

  /// Whether numbers fit, and what they are divided by is prepared for that: `prepared<detail::fitting_quotient>(col)`
  /// from a column on.
  bool fits() const { return fits_; }
  template <quotient_by By>
  detail::column_parameters<S, By, arch> prepared(index_t col) const {
    return {plain(col), value_ + col, rest_ + col};
  }

  /// Codes of elements [col, col + n) of some rows, a byte each whatever S packs. `asks`: for what meanwhile.
  void encode_bytes(const element* x, index_t x_step, index_t rows, index_t col, index_t n, std::uint8_t* to,
                    index_t to_step, box_requests asks = {}) const {
    encode_rows(x, x_step, rows, col, n, to, to_step, false, asks);
  }

  /// Elements that encode_turned takes are a multiple of these.
  static constexpr index_t turned_elements = lanes<arch>;
  /// Codes of elements [col, col + n) of some rows, the first of which lie at x; every `length` rows have an encoder of
  /// their own, from encoders[0] on. A byte each, turned: that of element col + i of row r at to[i * to_step + r].
  /// False, and nothing is written, where scales ask for more care. Needs length % 4 == 0 or rows <= length.
  static bool encode_turned(const basic_column_encoder* encoders, index_t length, const element* x, index_t x_step,
                            index_t rows, index_t col, index_t n, std::uint8_t* to, index_t to_step) {
    if constexpr (detail::encodes_by_vectors<Kernel>) {
      const auto encode_by = [&]<quotient_by By, numbers Which>() {
        constexpr index_t at_once = detail::most_turned * turned_elements, high = 4 * turned_elements;
        for (index_t i = 0; i < n; i += at_once)
          for (index_t row = 0; row < rows; row += high) {
            const basic_column_encoder* one = encoders + row / length;
            index_t end = length - row % length;
            const auto parameters = [&](index_t r, index_t k) QTENSOR_INLINE_LAMBDA {
              if (r >= end) ++one, end += length;
              return one->template parameters_at<By>(col + i + k);
            };
            detail::encode_turned_rows<S, By, arch, From, Which>(x + row * x_step + i, x_step,
                                                                 std::min(high, rows - row), std::min(at_once, n - i),
                                                                 parameters, to + i * to_step + row, to_step);
          }
      };
      const auto all = [&](auto is_so) { return std::all_of(encoders, encoders + divide_up(rows, length), is_so); };
      if (all([](const auto& one) { return one.fits_; }))
        return encode_by.template operator()<fitting_quotient, numbers::fitting>(), true;
      if (all([](const auto& one) { return !one.fits_ && one.is_fast_ && one.is_regular(); }))
        return encode_by.template operator()<fast_quotient, numbers::any>(), true;
      if constexpr (!loses_edges<fast_quotient>)  // divisions are what such scales take
        if (all([](const auto& one) { return !one.fits_ && one.is_regular(); }))
          return encode_by.template operator()<detail::safe_quotient<S>, numbers::any>(), true;
    }
    return false;
  }

  /// Codes of elements [col, col + n) of some rows; the first of them lie at x + r * x_step, and their codes start
  /// bytes at codes + r * code_step (units). `streams`: past the caches; call stream_fence() after the last one.
  /// `asks`: for what meanwhile, rows below for longer rows alone.
  void encode(const element* x, index_t x_step, index_t rows, index_t col, index_t n, unit* codes, index_t code_step,
              bool streams = false, box_requests asks = {}) const {
    if constexpr (detail::encodes_by_vectors<Kernel>) {
      auto* const to = reinterpret_cast<std::uint8_t*>(codes);
      const bool inside_lines = streams && !begins_line(to, code_step);
      const bool short_rows = n <= detail::near_columns;
      if (!writes_bytes || (inside_lines && (asks.ahead != 0 || short_rows)))
        encode_kept(x, x_step, rows, col, n, codes, code_step, streams,
                    asks.ahead == 0 && short_rows ? box_requests{} : asks);
      else if (inside_lines)
        encode_inside_lines(x, x_step, rows, col, n, to, code_step, asks);
      else
        encode_rows(x, x_step, rows, col, n, to, code_step, streams, asks);
    } else {
      for (index_t row = 0; row < rows; ++row)
        Kernel::vector(x + row * x_step, n, scales_ + col, zeros_ != nullptr ? zeros_ + col : nullptr, tensor_scale_,
                       codes + row * code_step);
    }
  }

 private:
  static constexpr index_t block = 64;  // of every architecture
  static constexpr int bits = S::code_format::bits;
  static constexpr bool writes_bytes = bits == 8;

  detail::vector_parameters<S, arch> plain(index_t col) const {
    return {scales_ + col, zeros_ != nullptr ? zeros_ + col : nullptr, tensor_scale_};
  }
  template <quotient_by By>
  auto parameters_at(index_t col) const {
    if constexpr (By == quotient_by::division)
      return plain(col);
    else
      return prepared<By>(col);
  }

  template <quotient_by By>
  void prepare(index_t n) {
    for (index_t i = 0; i < n; i += lanes<arch>) {
      const auto d =
          divisor_of<S, By>(simd::load_n<arch>(scales_ + i, std::min(n - i, lanes<arch>), 1.f), tensor_scale_);
      simd::store(value_ + i, d.value);
      if constexpr (has_rest<By>) simd::store(rest_ + i, d.rest);
    }
    end_with_ones<By>(n);
  }

  /// The same from scales that columns share.
  template <quotient_by By>
  void prepare_shared(index_t n, const shared_scales& all) {
    detail::group_table<S, arch> table;
    const index_t length = all.length, together = decltype(table)::most * length;
    const float* scales = all.scales;
    for (index_t col = 0; col < n; col += together, scales += decltype(table)::most) {
      const index_t count = std::min(together, n - col);
      table.template fill<By>(scales, nullptr, divide_up(count, length), tensor_scale_);
      simd::spread_entries<arch>(static_cast<const float*>(table.value), length, 0, count, value_ + col);
      if constexpr (has_rest<By>)
        simd::spread_entries<arch>(static_cast<const float*>(table.rest), length, 0, count, rest_ + col);
    }
    end_with_ones<By>(n);
  }

  /// What is read behind the last of n columns.
  template <quotient_by By>
  void end_with_ones(index_t n) {
    for (index_t i = n; i < n + block; i += lanes<arch>) {
      simd::store(value_ + i, floats<arch>(1.f));
      if constexpr (has_rest<By>) simd::store(rest_ + i, floats<arch>(0.f));
    }
  }

  void encode_rows(const element* x, index_t x_step, index_t rows, index_t col, index_t n, std::uint8_t* to,
                   index_t to_step, bool streams, box_requests asks) const {
    const auto all = plain(col);
    if (fits_)
      detail::encode_rows<S, fitting_quotient, arch, From, numbers::fitting>(
          x, x_step, rows, n, prepared<fitting_quotient>(col), to, to_step, streams, asks);
    else if (is_fast_)
      detail::encode_rows<S, fast_quotient, arch, From>(x, x_step, rows, n, prepared<fast_quotient>(col), to, to_step,
                                                        streams, asks);
    else
      detail::encode_rows<S, detail::safe_quotient<S>, arch, From>(x, x_step, rows, n, all, to, to_step, streams, asks);
    if (irregular_) [[unlikely]]
      for (index_t i = 0; i < n; ++i)
        if (detail::is_irregular<S, arch>(all.scales[i], all.zeros, i))
          for (index_t r = 0; r < rows; ++r)
            to[r * to_step + i] = static_cast<std::uint8_t>(
                quantize_element<S>(number<From>(x[r * x_step + i]), {all.scales[i], tensor_scale_},
                                    all.zeros != nullptr ? all.zeros[i] : 0));
    if (keeps_ != nullptr) [[unlikely]]
      for (index_t r = 0; r < rows; ++r) clear_zeros(keeps_ + col, n, to + r * to_step);
  }

  // Columns with a scale of 0, all of whose codes are +0, are divided by 1, then cleared: `keeps_` has a byte for each
  // column, 0 for those. Where the code of +0 is not 0 they are irregular.
  void take_zeros_out(index_t n, float* scales, std::uint8_t* keeps) {
    if constexpr (detail::scale_0_clears<S>) {
      bool found = false;
      for (index_t i = 0; i < n; ++i) {
        const bool is_zero = scales_[i] == 0.f;
        scales[i] = is_zero ? 1.f : scales_[i];
        keeps[i] = is_zero ? 0 : 255;
        found = found || is_zero;
      }
      if (!found) return;
      std::fill(scales + n, scales + round_up(n + block, block), 1.f);
      scales_ = scales, keeps_ = keeps;
    }
  }
  static void clear_zeros(const std::uint8_t* keeps, index_t n, std::uint8_t* codes) {
    constexpr index_t step = 4 * lanes<arch>;
    index_t i = 0;
    for (; i + step <= n; i += step) simd::store(codes + i, simd::load<arch>(codes + i) & simd::load<arch>(keeps + i));
    for (; i < n; ++i) codes[i] = static_cast<std::uint8_t>(codes[i] & keeps[i]);
  }
  bool is_regular() const { return !irregular_ && keeps_ == nullptr; }

  /// Past the caches, to rows that begin inside lines: a few of those that begin alike are encoded together, from the
  /// first line on; what lies before it goes the usual way.
  void encode_inside_lines(const element* x, index_t x_step, index_t rows, index_t col, index_t n, std::uint8_t* to,
                           index_t to_step, box_requests asks) const {
    constexpr index_t line = cache_line;
    const index_t high = best_requests().rows, alike = high == 1 ? 1 : line / std::gcd(line, to_step);
    for (index_t first = 0; first < std::min(alike, rows); ++first)
      for (index_t row = first; row < rows; row += alike * high) {
        const index_t count = std::min(high, divide_up(rows - row, alike));
        const element* from = x + row * x_step;
        std::uint8_t* codes = to + row * to_step;
        const auto encode_some = [&](index_t i, index_t some, bool past) {
          if (some > 0)
            encode_rows(from + i, alike * x_step, count, col + i, some, codes + i, alike * to_step, past,
                        past ? asks : box_requests{});
        };
        const index_t head = elements_to_line(codes, 0, n), whole = (n - head) / line * line;
        encode_some(0, head, false);
        encode_some(head, whole, true);
        encode_some(head + whole, n - head - whole, false);
      }
  }

  /// Through the first-level cache: codes to be packed, and short rows, or parts of rows, that begin inside lines.
  void encode_kept(const element* x, index_t x_step, index_t rows, index_t col, index_t n, unit* codes,
                   index_t code_step, bool streams, box_requests asks) const {
    constexpr index_t width = 2048, height = detail::rows_together;
    alignas(64) std::uint8_t kept[static_cast<std::size_t>(height * width)];
    for (index_t row = 0; row < rows; row += height)
      for (index_t first = 0; first < n; first += width) {
        const index_t count = std::min(width, n - first), down = std::min(height, rows - row);
        encode_rows(x + row * x_step + first, x_step, down, col + first, count, kept, width, false, asks);
        for (index_t r = 0; r < down; ++r) {
          auto* to = reinterpret_cast<std::uint8_t*>(codes + (row + r) * code_step + unit_of<S>(first));
          pack_codes<arch, bits>(kept + r * width, count, to, streams);
        }
      }
  }

  const float* scales_;
  const std::int32_t* zeros_;
  float tensor_scale_;
  float* value_;
  float* rest_ = nullptr;
  const std::uint8_t* keeps_ = nullptr;
  bool irregular_ = false, is_fast_ = false, fits_ = false;
};

/// The one of S; schemes that share scales otherwise have it in common.
template <quantization_scheme S, float_source From = from_f32, class Kernel = encoder_of<S, From>>
using column_encoder = basic_column_encoder<detail::encoding_form<S>, From, Kernel>;

/// Codes of some rows, element i of each with scales[i] and zero_points[i]: row r lies at x + r * x_step and goes to
/// codes + r * code_step (units). Prepares what divisions need on the stack, 2048 elements at a time.
template <quantization_scheme S, float_source From = from_f32>
void encode_columns(const typename From::type* x, index_t rows, index_t x_step, index_t n, const float* scales,
                    const std::int32_t* zero_points, code_unit_t<S>* codes, index_t code_step,
                    float tensor_scale = 1.f) {
  using encoder = column_encoder<S, From>;
  alignas(64) float memory[static_cast<std::size_t>(encoder::memory_for(detail::chunk_elements) + 1)];
  for (index_t first = 0; first < n; first += detail::chunk_elements) {
    const index_t count = std::min(detail::chunk_elements, n - first);
    const std::int32_t* zeros = zero_points != nullptr ? zero_points + first : nullptr;
    if (rows == 1)
      encode_vector<S, From>(x + first, count, scales + first, zeros, codes + unit_of<S>(first), tensor_scale);
    else
      encoder(scales + first, zeros, count, tensor_scale, memory)
          .encode(x + first, x_step, rows, 0, count, codes + unit_of<S>(first), code_step);
  }
}

}  // namespace qtensor::inline QTENSOR_ABI::simd
