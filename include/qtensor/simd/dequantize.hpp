// Runs of codes to numbers: one scale, a scale for each element, or one for each short block.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <concepts>
#include <cstring>
#include <optional>
#include <qtensor/reference/codec.hpp>
#include <qtensor/simd/block_arrays.hpp>
#include <qtensor/simd/decode.hpp>
#include <qtensor/simd/group_results.hpp>
#include <qtensor/simd/kernel.hpp>
#include <qtensor/simd/memory.hpp>
#include <qtensor/simd/nibbles.hpp>
#include <qtensor/simd/result_table.hpp>
#include <qtensor/tensor/bytes.hpp>

// Every run starts on a byte. Element i is dequantize_element<S>(code, {scale, tensor_scale}, zero point, offset), bit
// for bit, whatever the kernel, the length and the position; as bf16 or f16 it is rounded once more (ties to even,
// overflow to infinity, NaN quieted). Only the sign and payload of a NaN that comes of a NaN or infinite scale are the
// CPU's. Null arrays of zero points or offsets mean zeros.
namespace qtensor::inline QTENSOR_ABI::simd {

// ---- The reference as a kernel: every scheme has this one ----------------------------------------------------------

template <quantization_scheme S>
struct kernel<op::decode, S, scalar_arch> {
  static constexpr bool enabled = true;
  static constexpr std::string_view name = "reference";
  using unit = code_unit_t<S>;

  template <number_format F = f32>
  static void uniform(const unit* codes, index_t n, const block_arrays& p, storage_t<F>* out) {
    grouped<F>(codes, n, n, p, out);
  }
  template <number_format F = f32>
  static void vector(const unit* codes, index_t n, const block_arrays& p, storage_t<F>* out) {
    grouped<F>(codes, n, 1, p, out);
  }
  template <number_format F = f32>
  static void grouped(const unit* codes, index_t n, index_t group, const block_arrays& p, storage_t<F>* out) {
    static_assert(!S::is_interleaved,
                  "qtensor: run kernels take planar layouts; encode_interleaved and decode_interleaved take blocks.");
    using format = typename S::code_format;
    index_t g = 0, left = group;
    for (index_t i = 0; i < n; ++i, --left) {
      if (left == 0) ++g, left = group;
      std::uint32_t code;
      if constexpr (is_packed<format>)
        code = qtensor::detail::load_bits<format::bits>(codes, S::layout::order::bit(i, n, format::bits));
      else
        code = qtensor::detail::code_of<format>(codes[i]);
      const float value =
          dequantize_element<S>(code, {p.scales[g], p.tensor_scale}, p.zero_points != nullptr ? p.zero_points[g] : 0,
                                p.offsets != nullptr ? p.offsets[g] : 0.f);
      out[i] = round_to<F>(value);
    }
  }
};

// ---- Vectors -------------------------------------------------------------------------------------------------------

namespace detail {

/// One block: code values, times the scales, and what else S has.
template <class S, class A, class Decoder, class Parameters>
QTENSOR_INLINE std::array<floats<A>, 4> decode_block(const Decoder& decode, const std::uint8_t* codes,
                                                     const Parameters& p, float tensor_scale) {
  const auto zero = [&]() QTENSOR_INLINE_LAMBDA {
    if constexpr (S::has_zero_point)
      return [&](int k) QTENSOR_INLINE_LAMBDA { return p.zero(k); };
    else
      return no_zero_points<A>{};
  }();
  std::array<floats<A>, 4> v = decode(codes_of<typename S::code_format, A>{codes}, zero);
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) v[k] = scaled_value<S, A>(v[k], p, k, tensor_scale);
  return v;
}

/// Schemes and parameters whose plain bf16 numbers are made of even and of odd integers: where neighbours share a scale
/// nothing has to be put in order then.
template <class S, class F, class A, class Parameters>
inline constexpr bool goes_by_pairs =
    pairing_arch<A>&& std::same_as<F, bf16>&& S::code_format::is_integer&& S::code_format::bits == 8 &&
    Parameters::pairs_share && !S::has_offset;

template <class S, numbers_are Known, class A, class Parameters>
QTENSOR_INLINE void decode_pairs(const std::uint8_t* codes, index_t blocks, Parameters& p, float tensor_scale,
                                 std::uint16_t* out, traffic t) {
  constexpr index_t step = 4 * lanes<A>, pair = 2 * lanes<A>;
  const auto block = [&](const auto& entries) QTENSOR_INLINE_LAMBDA {
    fetch_ahead<step>(codes, t);
#pragma GCC unroll 2
    for (int k = 0; k < 2; ++k) {
      auto [even, odd] = simd::widen_pairs<S::code_format::is_signed, A>(codes + k * pair);
      if constexpr (S::has_zero_point) even = even - entries.zero(2 * k), odd = odd - entries.zero(2 * k);
      simd::put(out + k * pair,
                simd::narrow_bf16_pairs<Known == numbers_are::untied, A>(
                    scaled_value<S, A>(simd::to_float(even), entries, 2 * k, tensor_scale),
                    scaled_value<S, A>(simd::to_float(odd), entries, 2 * k, tensor_scale)),
                t.streams);
    }
    codes += step, out += step;
  };
  if constexpr (Parameters::one_entry) {
    const held_arrays<S, A> held(p, step);  // loaded once
    for (index_t b = 0; b < blocks; ++b) block(held);
  } else {
    for (index_t b = 0; b < blocks; ++b, p.next()) block(p);
  }
}

/// Whole blocks of codes, to where lines begin if they are streamed.
template <class S, number_format F, numbers_are Known, class A, class Decoder, class Parameters>
QTENSOR_INLINE void decode_blocks(const Decoder& decode, const std::uint8_t* codes, index_t blocks, Parameters& p,
                                  float tensor_scale, storage_t<F>* out, traffic t) {
  if constexpr (looks_groups_up<S, F, A, Parameters>)
    return look_blocks_up<S, F, Known, A>(codes, blocks, p, tensor_scale, out, t);
  else if constexpr (goes_by_pairs<S, F, A, Parameters> &&
                     (Known == numbers_are::plain || Known == numbers_are::untied))
    return decode_pairs<S, Known, A>(codes, blocks, p, tensor_scale, out, t);
  constexpr index_t step = 4 * lanes<A>, bytes = step * S::code_format::bits / 8;
  for (index_t b = 0; b < blocks; ++b) {
    fetch_ahead<bytes>(codes + b * bytes, t);
    store_four<F, Known, A>(out + b * step, decode_block<S, A>(decode, codes + b * bytes, p, tensor_scale), t.streams);
    p.next();
  }
}

/// Schemes whose bf16 numbers are those of the codes with other exponents, as long as exponent_steps fit: under scales
/// that are powers of two, or under one that may be.
template <class S, class F, class A, class Parameters>
inline constexpr bool steps_exponents = std::same_as<F, bf16>&& bf16_decodable<typename S::code_format, A> &&
                                        (Parameters::one_entry ||
                                         (Parameters::pairs_share && std::same_as<typename S::scale_format, e8m0>)) &&
                                        !S::has_offset && !S::has_tensor_scale
                                        && exponents_of<typename S::code_format>.high < 254;

/// At most Most elements of such a scheme: whole blocks. False, with p as it was, where the scales do not fit or a code
/// is an infinity or a NaN.
template <class S, class A, index_t Most, class Parameters>
QTENSOR_INLINE bool step_blocks(const std::uint8_t* codes, index_t blocks, Parameters& p, std::uint16_t* out,
                                traffic t) {
  using F = typename S::code_format;
  constexpr index_t step = 4 * lanes<A>, block_bytes = step * F::bits / 8;
  alignas(64) std::uint16_t steps[static_cast<std::size_t>(Most / lanes<A> + 2 * lanes<A>)];
  if (!exponent_steps<S, A>(p.p.scales, p.entries(blocks), steps) &&
      !steps_around_zeros<S, A, Most>(codes, blocks, p, steps))
    return false;
  const plane_decoder<F, A> decode;
  bytes<A> largest(std::uint8_t{0});
  Parameters at = p;
  for (index_t b = 0; b < blocks; ++b) {
    fetch_ahead<block_bytes>(codes + b * block_bytes, t);
    const auto planes = decode.planes(simd::order_for_halves(codes_of<F, A>{codes + b * block_bytes}.batch()));
    // Without its sign the upper byte of a special number is 0x7f, that of another one is smaller.
    if constexpr (!is_finite_format<F>) largest = simd::max(largest, planes.high + planes.high);
    const std::array<halves<A>, 2> v = simd::halves_from_planes(planes.high, planes.low);
    const std::uint16_t* here = steps + (at.p.scales - p.p.scales);
#pragma GCC unroll 2
    for (int k = 0; k < 2; ++k)
      simd::put(out + b * step + k * step / 2,
                simd::step_finite_exponents<A>(v[k], halves<A>(here[at.entry(k * step / 2)])), t.streams);
    at.next();
  }
  if constexpr (!is_finite_format<F>) {
    const bytes<A> special = simd::sub_saturated(largest, bytes<A>(std::uint8_t{0xfd}));
    if (simd::any(simd::bits_as<std::uint32_t>(special) != words<A>(0u))) return false;
  }
  p = at;
  return true;
}

}  // namespace detail

/// How many of n numbers lie before the first that begins a line of the caches, in all runs `step` apart, and whose
/// code of S begins on a byte; n where there is none.
template <class S, class T>
index_t numbers_to_line(const T* to, index_t step, index_t n) {
  const index_t begin = elements_to_line(to, step, n);
  return begin * S::code_format::bits % 8 == 0 ? begin : n;
}

/// What is known of columns: nothing, that narrow_bf16_plain takes their products, that zero points lie too far for 32
/// bits.
enum class columns_are { any, plain, far };

/// The vector kernel of every scheme whose codes have 2 to 8 bits, or are integers of 16 or 32, bf16 or f16, in order.
template <vector_decodable S, usable_arch A>
struct vector_decoder {
  using format = typename S::code_format;
  using unit = code_unit_t<S>;
  static constexpr index_t step = 4 * lanes<A>, chunk = 4096, short_chunk = 512, strip = 1024, short_strip = 256;
  /// Groups from this length on are runs of their own where others would be spread to their elements: shorter ones
  /// where a last block may begin early.
  static constexpr index_t own_run = format::bits == 8 ? step : 400;
  /// Those from this length on are so, too, past the caches where they begin inside of lines.
  static constexpr index_t long_run = 1024;
  /// Runs from this length on are worth the question whether their numbers are untied.
  static constexpr index_t asks_for_ties = 2048;
  static constexpr bool takes_traffic = true;

  template <number_format F = f32>
  static void uniform(const unit* codes, index_t n, const block_arrays& p, storage_t<F>* out, traffic t = {}) {
    if (far_zero_point(p, 1)) return reference::template uniform<F>(codes, n, p, out);
    if constexpr (S::has_offset || S::has_zero_point) {
      // Missing arrays are zeros: so that the loop need not ask.
      const float none = 0.f;
      const std::int32_t no_zero = 0;
      run<F>(codes, n,
             detail::group_arrays<S, A, 0>{{p.scales, p.zero_points != nullptr ? p.zero_points : &no_zero,
                                            p.offsets != nullptr ? p.offsets : &none, p.tensor_scale}},
             out, t);
    } else {
      run<F>(codes, n, detail::group_arrays<S, A, 0>{p}, out, t);
    }
  }

  template <number_format F = f32>
  static void vector(const unit* codes, index_t n, const block_arrays& p, storage_t<F>* out, traffic t = {}) {
    if (far_zero_point(p, n)) return reference::template vector<F>(codes, n, p, out);
    run<F>(codes, n, detail::element_arrays<S, A>{p}, out, t);
  }

  /// What there is to know of n columns, before any of their rows.
  template <number_format F = f32>
  static columns_are look_at_columns(const block_arrays& p, index_t n) {
    if (far_zero_point(p, n)) return columns_are::far;
    if constexpr (std::same_as<F, bf16> && !S::has_offset)
      if (detail::products_are_plain<S, A>(p.scales, n, p.tensor_scale)) return columns_are::plain;
    return columns_are::any;
  }
  /// vector for many rows, whose codes and numbers lie code_step units and out_step numbers apart.
  template <number_format F = f32>
  static void columns(const unit* codes, index_t code_step, index_t rows, index_t n, const block_arrays& p,
                      columns_are known, storage_t<F>* out, index_t out_step, traffic t = {}) {
    if (known == columns_are::far)
      for (index_t r = 0; r < rows; ++r) vector<F>(codes + r * code_step, n, p, out + r * out_step, t);
    else if (known == columns_are::plain)
      run_columns<F, detail::numbers_are::plain>(codes, code_step, rows, n, p, out, out_step, t);
    else
      run_columns<F, detail::numbers_are::any>(codes, code_step, rows, n, p, out, out_step, t);
  }

  /// uniform for many rows, each with its own entries: `known` is what look_at_columns says of them.
  template <number_format F = f32>
  static void rows(const unit* codes, index_t code_step, index_t rows, index_t n, const block_arrays& p,
                   columns_are known, storage_t<F>* out, index_t out_step, traffic t = {}) {
    if (known == columns_are::far)
      for (index_t r = 0; r < rows; ++r) uniform<F>(codes + r * code_step, n, p.from(r), out + r * out_step, t);
    else if (known == columns_are::plain)
      run_rows<F, detail::numbers_are::plain>(codes, code_step, rows, n, p, out, out_step, t);
    else
      run_rows<F, detail::numbers_are::any>(codes, code_step, rows, n, p, out, out_step, t);
  }

  /// Rows of runs: how many, and how far from one to the next their codes, entries and numbers are.
  struct rows_apart {
    index_t count = 1, codes = 0, entries = 0, numbers = 0;
  };

  template <number_format F = f32>
  static void grouped(const unit* codes, index_t n, index_t group, const block_arrays& p, storage_t<F>* out,
                      traffic t = {}) {
    if (group >= n) return uniform<F>(codes, n, p, out, t);
    if (far_zero_point(p, divide_up(n, group))) return reference::template grouped<F>(codes, n, group, p, out);
    if (fill_batches(group)) return run_groups<F>(codes, n, group, p, out, t);
    const bool on_bytes = group * format::bits % 8 == 0;
    if (group >= own_run && on_bytes && (!t.streams || begins_line(out, group))) {
      const index_t groups = n / group, whole = groups * group;
      rows<F>(codes, unit_of<S>(group), groups, group, p, look_at_columns<F>(p, groups), out, group, t);
      if (whole < n) uniform<F>(codes + unit_of<S>(whole), n - whole, p.from(groups), out + whole, t);
      return;
    }
    if (group >= long_run && on_bytes && t.streams) {
      for (index_t first = 0, g = 0; first < n; first += group, ++g)
        uniform_from_line<F>(codes + unit_of<S>(first), std::min(group, n - first), p.from(g), out + first, t);
      return;
    }
    // Every batch gets its own copy of the parameters, or every element where groups do not fill batches. So past the
    // caches, too, where groups begin inside of lines.
    detail::spread_arrays<S, A, short_chunk> copies;
    for (index_t first = 0; first < n; first += short_chunk) {
      const index_t count = std::min(short_chunk, n - first);
      const unit* from = codes + unit_of<S>(first);
      if (group % lanes<A> == 0) {
        const block_arrays own = copies.fill(p, group / lanes<A>, first / lanes<A>, divide_up(count, lanes<A>));
        run<F>(from, count, detail::group_arrays<S, A, 1>{own}, out + first, t);
      } else {
        run<F>(from, count, detail::element_arrays<S, A>{copies.fill(p, group, first, count)}, out + first, t);
      }
    }
  }

  /// The same for many rows, each with as many entries of its own.
  template <number_format F = f32>
  static void grouped_rows(const unit* codes, index_t n, index_t group, const block_arrays& p, storage_t<F>* out,
                           const rows_apart& rows, traffic t = {}) {
    if (group < n && fill_batches(group) && !far_zero_point(p, rows.count * rows.entries))
      return run_groups<F>(codes, n, group, p, out, t, rows);
    for (index_t r = 0; r < rows.count; ++r)
      grouped<F>(codes + r * rows.codes, n, group, p.from(r * rows.entries), out + r * rows.numbers, t);
  }

 private:
  using reference = kernel<op::decode, S, scalar_arch>;

  /// A zero point from which a code cannot be subtracted in 32 bits.
  static bool far_zero_point(const block_arrays& p, index_t count) {
    if constexpr (S::has_zero_point) {
      if constexpr (format::bits == 32) {
        for (index_t i = 0; p.zero_points != nullptr && i < count; ++i)
          if (p.zero_points[i] != 0) return true;
      } else if constexpr (S::zero_point_format::bits > 24) {
        for (index_t i = 0; p.zero_points != nullptr && i < count; ++i)
          if (p.zero_points[i] < -(1 << 30) || p.zero_points[i] > 1 << 30) return true;
      }
    }
    return false;
  }

  /// uniform past the caches, wherever numbers begin: from their first line on.
  template <number_format F>
  static void uniform_from_line(const unit* codes, index_t n, const block_arrays& p, storage_t<F>* out, traffic t) {
    fetch_shared_lines(out, n);
    const index_t head = numbers_to_line<S>(out, 0, n);
    if (head > 0) uniform<F>(codes, head, p, out);
    if (head < n) uniform<F>(codes + unit_of<S>(head), n - head, p, out + head, t);
  }

  /// Whether groups are whole batches, one or two or blocks of them, so that kernels need no copies of their entries.
  static constexpr bool fill_batches(index_t group) {
    return group == lanes<A> || group == 2 * lanes<A> || group % step == 0;
  }
  template <number_format F>
  static void run_groups(const unit* codes, index_t n, index_t group, const block_arrays& p, storage_t<F>* out,
                         traffic t, const rows_apart& rows = {}) {
    if (group == lanes<A>)
      run<F>(codes, n, detail::group_arrays<S, A, 1>{p}, out, t, rows);
    else if (group == 2 * lanes<A>)
      run<F>(codes, n, detail::group_arrays<S, A, 2>{p}, out, t, rows);
    else
      run<F>(codes, n, detail::group_arrays<S, A, 4>{p, group / step}, out, t, rows);
  }

  /// Any runs: the parameters of the first are given. A function for each kind of them: of several in one, g++ 12 keeps
  /// the decoder's constants in memory (at -O3: two thirds of the speed).
  template <number_format F, class Parameters>
  [[gnu::noinline]] static void run(const unit* codes, index_t n, const Parameters& first, storage_t<F>* out, traffic t,
                                    const rows_apart& rows = {}) {
    t.streams = t.streams && begins_line(out, rows.numbers);
    const decoder<format, A> decode;
    for (index_t r = 0; r < rows.count; ++r) {
      Parameters p = first;
      if (r > 0) p.p = first.p.from(r * rows.entries);
      const unit* from = codes + r * rows.codes;
      storage_t<F>* to = out + r * rows.numbers;
      if constexpr (Parameters::one_entry && detail::goes_by_pairs<S, F, A, Parameters>)
        if (n >= asks_for_ties && p.products_are_plain(1) && detail::products_are_untied<S, A>(p.p)) {
          run_one<F, detail::numbers_are::untied>(decode, from, n, p, to, t);
          continue;
        }
      run_one<F, detail::numbers_are::any>(decode, from, n, p, to, t);
    }
  }
  /// Chunks of whole blocks, the last block through a padded copy.
  template <number_format F, detail::numbers_are Known, class Decoder, class Parameters>
  QTENSOR_INLINE static void run_one(const Decoder& decode, const unit* codes, index_t n, Parameters& p,
                                     storage_t<F>* out, traffic t) {
    using detail::numbers_are;
    const auto* from = reinterpret_cast<const std::uint8_t*>(codes);
    const float tensor_scale = p.p.tensor_scale;
    const index_t whole = n / step * step;
    for (index_t first = 0; first < whole; first += chunk) {
      const index_t blocks = std::min(chunk, whole - first) / step;
      const std::uint8_t* here = from + first * format::bits / 8;
      if constexpr (Known != numbers_are::any) {
        detail::decode_blocks<S, F, Known, A>(decode, here, blocks, p, tensor_scale, out + first, t);
        continue;
      }
      if constexpr (detail::steps_exponents<S, F, A, Parameters>)
        if (detail::step_blocks<S, A, chunk>(here, blocks, p, out + first, t)) continue;
      if constexpr (std::same_as<F, bf16> && detail::may_be_bf16<S, A>)
        if (p.products_are_bf16(blocks)) {
          detail::decode_blocks<S, F, numbers_are::bf16, A>(decode, here, blocks, p, tensor_scale, out + first, t);
          continue;
        }
      if constexpr (std::same_as<F, bf16> && !S::has_offset)
        if (p.products_are_plain(blocks)) {
          detail::decode_blocks<S, F, numbers_are::plain, A>(decode, here, blocks, p, tensor_scale, out + first, t);
          continue;
        }
      detail::decode_blocks<S, F, numbers_are::any, A>(decode, here, blocks, p, tensor_scale, out + first, t);
    }
    if (whole < n) last_elements<F>(decode, from, n, p, out, t.streams);
  }

  template <number_format F, detail::numbers_are Known>
  static void run_columns(const unit* codes, index_t code_step, index_t rows, index_t n, const block_arrays& p,
                          storage_t<F>* out, index_t out_step, traffic t) {
    t.streams = t.streams && begins_line(out, rows > 1 ? out_step : 0);
    const decoder<format, A> decode;
    const index_t whole = n / step * step;
    const auto bytes = [&](index_t row, index_t i) QTENSOR_INLINE_LAMBDA {
      return reinterpret_cast<const std::uint8_t*>(codes + row * code_step) + i * format::bits / 8;
    };
    const index_t wide = rows == 1 ? whole : t.streams ? short_strip : strip;
    for (index_t i = 0; i < whole; i += wide) {
      const index_t blocks = std::min(wide, whole - i) / step;
      for (index_t r = 0; r < rows; ++r) {
        detail::element_arrays<S, A> here{p.from(i)};
        detail::decode_blocks<S, F, Known, A>(decode, bytes(r, i), blocks, here, p.tensor_scale, out + r * out_step + i,
                                              t);
      }
    }
    if (whole < n)
      for (index_t r = 0; r < rows; ++r)
        last_block<F>(decode, bytes(r, whole), n - whole, detail::element_arrays<S, A>{p.from(whole)},
                      out + r * out_step + whole);
  }

  template <number_format F, detail::numbers_are Known>
  static void run_rows(const unit* codes, index_t code_step, index_t rows, index_t n, const block_arrays& p,
                       storage_t<F>* out, index_t out_step, traffic t) {
    t.streams = t.streams && begins_line(out, out_step);
    const decoder<format, A> decode;
    const index_t whole = n / step * step;
    for (index_t r = 0; r < rows; ++r) {
      const auto* bytes = reinterpret_cast<const std::uint8_t*>(codes + r * code_step);
      storage_t<F>* to = out + r * out_step;
      detail::group_arrays<S, A, 0> row{p.from(r)};
      detail::decode_blocks<S, F, Known, A>(decode, bytes, whole / step, row, p.tensor_scale, to, t);
      if (whole < n) last_elements<F>(decode, bytes, n, row, to, t.streams);
    }
  }

  /// Those of a run behind its whole blocks. Where codes are bytes and share their entries, a whole block that ends
  /// with them: what it shares with the one before it is written twice, unless that is on its way past the caches.
  template <number_format F, class Decoder, class Parameters>
  QTENSOR_INLINE static void last_elements(const Decoder& decode, const std::uint8_t* codes, index_t n, Parameters& p,
                                           storage_t<F>* out, bool streams) {
    const index_t whole = n / step * step;
    if constexpr (format::bits == 8 && Parameters::one_entry)
      if (whole > 0 && !streams)
        return detail::decode_blocks<S, F, detail::numbers_are::any, A>(decode, codes + n - step, 1, p,
                                                                        p.p.tensor_scale, out + n - step, {});
    last_block<F>(decode, codes + whole * format::bits / 8, n - whole, p, out + whole);
  }
  template <number_format F, class Decoder, class Parameters>
  static void last_block(const Decoder& decode, const std::uint8_t* codes, index_t n, const Parameters& p,
                         storage_t<F>* out) {
    constexpr index_t registers = std::max(format::bits / 8, 1);  // of which codes may take a part
    alignas(64) std::uint8_t bytes[static_cast<std::size_t>(registers * step)];
    alignas(64) storage_t<F> values[static_cast<std::size_t>(step)];
    if constexpr (registers == 1)
      simd::store(bytes, simd::load_n<A>(codes, packed_bytes<format::bits>(n)));
    else
      std::fill(std::copy_n(codes, packed_bytes<format::bits>(n), bytes), std::end(bytes), std::uint8_t{0});
    detail::store_four<F, detail::numbers_are::any, A>(
        values, detail::decode_block<S, A>(decode, bytes, detail::held_arrays<S, A>(p, n), p.p.tensor_scale));
    std::memcpy(out, values, static_cast<std::size_t>(n) * sizeof *out);
  }
};

template <vector_decodable S, usable_arch A>
requires(!std::same_as<A, scalar_arch>) struct kernel<op::decode, S, A> : vector_decoder<detail::decoding_form<S>, A> {
  static constexpr bool enabled = true;
  static constexpr std::string_view name = arch_name<A>;
};

/// The one of codes from the top of a byte down: that of codes from its bottom up, a copy of some at a time.
template <turns_codes S, usable_arch A, class Upright>
struct turning_decoder {
  static constexpr int bits = S::code_format::bits;
  static constexpr bool takes_traffic = true;

  template <number_format F = f32>
  static void uniform(const std::uint8_t* codes, index_t n, const block_arrays& p, storage_t<F>* out, traffic t = {}) {
    by_chunks(codes, n, most, [&](index_t first, index_t count, const std::uint8_t* turned) {
      Upright::template uniform<F>(turned, count, p, out + first, t);
    });
  }
  template <number_format F = f32>
  static void vector(const std::uint8_t* codes, index_t n, const block_arrays& p, storage_t<F>* out, traffic t = {}) {
    by_chunks(codes, n, most, [&](index_t first, index_t count, const std::uint8_t* turned) {
      Upright::template vector<F>(turned, count, p.from(first), out + first, t);
    });
  }
  template <number_format F = f32>
  static void grouped(const std::uint8_t* codes, index_t n, index_t group, const block_arrays& p, storage_t<F>* out,
                      traffic t = {}) {
    if (group >= n) return uniform<F>(codes, n, p, out, t);
    constexpr index_t per_byte = 8 / bits, spread = 512;
    if (per_byte * group <= most)
      return by_chunks(codes, n, most / (per_byte * group) * (per_byte * group),
                       [&](index_t first, index_t count, const std::uint8_t* turned) {
                         Upright::template grouped<F>(turned, count, group, p.from(first / group), out + first, t);
                       });
    detail::spread_arrays<S, A, spread> elements;
    by_chunks(codes, n, spread, [&](index_t first, index_t count, const std::uint8_t* turned) {
      Upright::template vector<F>(turned, count, elements.fill(p, group, first, count), out + first, t);
    });
  }

 private:
  static constexpr index_t most = 8192;  // codes that are turned at a time

  template <class Decode>
  static void by_chunks(const std::uint8_t* codes, index_t n, index_t chunk, Decode decode) {
    alignas(64) std::uint8_t turned[packed_bytes<bits>(most)];
    for (index_t first = 0; first < n; first += chunk) {
      const index_t count = std::min(chunk, n - first);
      turn_codes<A, bits>(codes + first * bits / 8, packed_bytes<bits>(count), turned);
      decode(first, count, turned);
    }
  }
};

template <turns_codes S, usable_arch A>
requires(!std::same_as<A, scalar_arch> &&
         std::derived_from<kernel<op::decode, upright<S>, A>,
                           vector_decoder<detail::decoding_form<upright<S>>, A>>) struct kernel<op::decode, S, A>
    : turning_decoder<S, A, kernel<op::decode, upright<S>, A>> {
  static constexpr bool enabled = true;
  static constexpr std::string_view name = arch_name<A>;
};

// ---- What callers call: kernels are looked up for stored<S>, as policies change no value ----------------------------

namespace detail {

/// A kernel that writes numbers of F itself; one that only knows floats is led through a tile of them.
template <class K, class S, class F>
concept writes_numbers = requires(const code_unit_t<S>* codes, const block_arrays& p, storage_t<F>* out) {
  K::template grouped<F>(codes, index_t{}, index_t{}, p, out);
};

/// Group 1: a scale for each element; n: one scale.
template <quantization_scheme S, class F>
void decode_run(const code_unit_t<S>* codes, index_t n, index_t group, const block_arrays& p, storage_t<F>* out,
                traffic t = {}) {
  using K = best_kernel<op::decode, stored<S>>;
  if (n <= 0) return;
  if constexpr (writes_numbers<K, S, F>) {
    run_hinted<K>(t, [&](auto... hint) {
      if (group >= n)
        K::template uniform<F>(codes, n, p, out, hint...);
      else if (group == 1)
        K::template vector<F>(codes, n, p, out, hint...);
      else
        K::template grouped<F>(codes, n, group, p, out, hint...);
    });
  } else if constexpr (std::same_as<F, f32>) {
    if (group >= n)
      K::uniform(codes, n, p, out);
    else if (group == 1)
      K::vector(codes, n, p, out);
    else
      K::grouped(codes, n, group, p, out);
  } else {
    constexpr index_t chunk = 512;
    alignas(64) float tile[static_cast<std::size_t>(chunk)];
    spread_arrays<S, best_arch, chunk> elements;
    for (index_t first = 0; first < n; first += chunk) {
      const index_t count = std::min(chunk, n - first);
      if (group >= n)
        K::uniform(codes + unit_of<S>(first), count, p, tile);
      else
        K::vector(codes + unit_of<S>(first), count, elements.fill(p, group, first, count), tile);
      narrow_floats<F>(tile, count, out + first);
    }
  }
}

template <class Code, class A, bool Exists>
struct table_of {
  struct type {};
};
template <class Code, class A>
struct table_of<Code, A, true> {
  using type = result_table<Code, A>;
};

}  // namespace detail

/// Runs under one scale (and zero point, and offset), any number of them: 16-bit numbers of long runs are looked up in
/// a table that is made once.
template <quantization_scheme S, number_format F = f32>
class uniform_decoder {
  using code = typename S::code_format;
  using kernel_type = best_kernel<op::decode, stored<S>>;
  static constexpr bool may_tabulate = !std::same_as<F, f32> && !std::same_as<best_arch, scalar_arch> &&
                                       result_tabulated<code, best_arch> && vector_decodable<stored<S>> &&
                                       detail::writes_numbers<kernel_type, S, F>;
  using table_type = typename detail::table_of<code, best_arch, may_tabulate>::type;

 public:
  /// For `n` elements in all.
  uniform_decoder(element_scale s, std::int32_t zero_point, float offset, index_t n)
      : scale_(s), zero_point_(zero_point), offset_(offset) {
    if constexpr (may_tabulate)
      if (n >= table_type::shortest_run) table_.emplace(results().data());
  }

  /// out[i] = the number of code i, for i < n. Reads the units of n codes.
  void operator()(const code_unit_t<S>* codes, index_t n, storage_t<F>* out, traffic t = {}) const {
    if constexpr (may_tabulate)
      if (table_.has_value()) return (*table_)(reinterpret_cast<const std::uint8_t*>(codes), n, out, t);
    detail::decode_run<S, F>(codes, n, n, parameters(), out, t);
  }
  /// The same for rows whose codes and numbers lie code_step units and out_step numbers apart. False, with nothing
  /// written, where there is no table.
  bool look_rows_up(const code_unit_t<S>* codes, index_t code_step, index_t rows, index_t n, storage_t<F>* out,
                    index_t out_step, traffic t) const {
    if constexpr (may_tabulate)
      if (table_.has_value()) {
        constexpr index_t unit = sizeof(*codes);
        table_->rows(reinterpret_cast<const std::uint8_t*>(codes), code_step * unit, rows, n, out, out_step, t);
        return true;
      }
    return false;
  }

 private:
  block_arrays parameters() const { return {&scale_.scale, &zero_point_, &offset_, scale_.tensor_scale}; }

  auto results() const {
    constexpr auto count = static_cast<std::size_t>(table_type::codes);
    std::array<std::uint8_t, count> each;
    std::array<std::uint8_t, count * code::bits / 8> packed;
    std::array<storage_t<F>, count> numbers;
    for (std::size_t c = 0; c < count; ++c) each[c] = static_cast<std::uint8_t>(c);
    pack_codes<best_arch, code::bits>(each.data(), table_type::codes, packed.data());
    const auto* units = reinterpret_cast<const code_unit_t<S>*>(packed.data());
    kernel_type::template uniform<F>(units, table_type::codes, parameters(), numbers.data());
    return numbers;
  }

  element_scale scale_;
  std::int32_t zero_point_;
  float offset_;
  std::optional<table_type> table_;
};

/// Values of n codes under one scale (and zero point, and offset). Reads the units of n codes, writes out[0, n).
template <quantization_scheme S, number_format F = f32>
void decode_uniform(const code_unit_t<S>* codes, index_t n, element_scale s, std::int32_t zero_point, storage_t<F>* out,
                    float offset = 0.f, traffic t = {}) {
  uniform_decoder<S, F>(s, zero_point, offset, n)(codes, n, out, t);
}

/// Element i has scales[i], zero_points[i] and offsets[i].
template <quantization_scheme S, number_format F = f32>
void decode_vector(const code_unit_t<S>* codes, index_t n, const float* scales, const std::int32_t* zero_points,
                   storage_t<F>* out, float tensor_scale = 1.f, const float* offsets = nullptr, traffic t = {}) {
  detail::decode_run<S, F>(codes, n, 1, {scales, zero_points, offsets, tensor_scale}, out, t);
}

/// The same for many rows that share the arrays, which are looked at once.
template <quantization_scheme S, number_format F = f32>
class column_decoder {
  using K = best_kernel<op::decode, stored<S>>;
  static constexpr bool takes_rows = requires(const block_arrays& p) { K::template look_at_columns<F>(p, index_t{}); };

 public:
  /// For n columns; keeps the arrays it is given.
  column_decoder(const float* scales, const std::int32_t* zero_points, index_t n, float tensor_scale = 1.f)
      : p_{scales, zero_points, nullptr, tensor_scale}, n_(n) {
    if constexpr (takes_rows) known_ = K::template look_at_columns<F>(p_, n);
  }

  /// Codes and numbers of rows lie code_step units and out_step numbers apart, and every row starts on a byte.
  void operator()(const code_unit_t<S>* codes, index_t code_step, index_t rows, storage_t<F>* out, index_t out_step,
                  traffic t = {}) const {
    if constexpr (takes_rows)
      K::template columns<F>(codes, code_step, rows, n_, p_, known_, out, out_step, t);
    else
      for (index_t r = 0; r < rows; ++r)
        detail::decode_run<S, F>(codes + r * code_step, n_, 1, p_, out + r * out_step, t);
  }

  /// The same past the caches, wherever rows begin: whole blocks from their first line on. (A function of its own:
  /// kernels that have this inside are slower where they are inlined.)
  void stream(const code_unit_t<S>* codes, index_t code_step, index_t rows, storage_t<F>* out, index_t out_step,
              traffic t) const {
    t.streams = true;
    if constexpr (takes_rows) {
      const index_t begin = numbers_to_line<S>(out, rows > 1 ? out_step : 0, n_);
      if (begin > 0 && begin < n_) {
        for (index_t r = 0; r < rows; ++r, codes += code_step, out += out_step) {
          K::template columns<F>(codes, code_step, 1, begin, p_, known_, out, out_step);
          K::template columns<F>(codes + unit_of<S>(begin), code_step, 1, n_ - begin, p_.from(begin), known_,
                                 out + begin, out_step, t);
        }
        return;
      }
    }
    (*this)(codes, code_step, rows, out, out_step, t);
  }

 private:
  block_arrays p_;
  index_t n_;
  columns_are known_ = columns_are::any;
};

/// All n elements of row r have entry r of each array: codes and numbers of rows lie code_step units and out_step
/// numbers apart, and every row starts on a byte.
template <quantization_scheme S, number_format F = f32>
void decode_rows(const code_unit_t<S>* codes, index_t code_step, index_t rows, index_t n, const float* scales,
                 const std::int32_t* zero_points, storage_t<F>* out, index_t out_step, float tensor_scale = 1.f,
                 traffic t = {}) {
  using K = best_kernel<op::decode, stored<S>>;
  const block_arrays p{scales, zero_points, nullptr, tensor_scale};
  if constexpr (requires { K::template rows<F>(codes, code_step, rows, n, p, columns_are::any, out, out_step, t); })
    K::template rows<F>(codes, code_step, rows, n, p, K::template look_at_columns<F>(p, rows), out, out_step, t);
  else
    for (index_t r = 0; r < rows; ++r)
      detail::decode_run<S, F>(codes + r * code_step, n, n, p.from(r), out + r * out_step, t);
}

/// Element i has entry i / group of each array; any group >= 1, the last one may be short.
template <quantization_scheme S, number_format F = f32>
void decode_grouped(const code_unit_t<S>* codes, index_t n, index_t group, const float* scales,
                    const std::int32_t* zero_points, storage_t<F>* out, float tensor_scale = 1.f,
                    const float* offsets = nullptr, traffic t = {}) {
  QTENSOR_ASSERT(group >= 1, "decode_grouped needs groups of at least one element");
  detail::decode_run<S, F>(codes, n, group, {scales, zero_points, offsets, tensor_scale}, out, t);
}

/// The same for many rows, each with entries of its own, one row's behind the other's: codes and numbers of rows lie
/// code_step units and out_step numbers apart, and every row starts on a byte.
template <quantization_scheme S, number_format F = f32>
void decode_grouped_rows(const code_unit_t<S>* codes, index_t code_step, index_t rows, index_t n, index_t group,
                         const float* scales, const std::int32_t* zero_points, storage_t<F>* out, index_t out_step,
                         float tensor_scale = 1.f, traffic t = {}) {
  QTENSOR_ASSERT(group >= 1, "decode_grouped_rows needs groups of at least one element");
  using K = best_kernel<op::decode, stored<S>>;
  const block_arrays p{scales, zero_points, nullptr, tensor_scale};
  const index_t entries = divide_up(n, group);
  if constexpr (requires { typename K::rows_apart; })
    K::template grouped_rows<F>(codes, n, group, p, out, {rows, code_step, entries, out_step}, t);
  else
    for (index_t r = 0; r < rows; ++r)
      detail::decode_run<S, F>(codes + r * code_step, n, group, p.from(r * entries), out + r * out_step, t);
}

}  // namespace qtensor::inline QTENSOR_ABI::simd
