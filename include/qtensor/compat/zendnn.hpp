// ZenDNN LowOHA reorder: run-time types, shapes and granularities in, a status with a reason out (NUMERICS 6).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstring>
#include <limits>
#include <qtensor/compat/zendnn_params.hpp>
#include <qtensor/core/executor.hpp>
#include <qtensor/scheme/schemes.hpp>
#include <qtensor/simd/dequantize.hpp>
#include <qtensor/simd/entry_pattern.hpp>
#include <qtensor/simd/memory.hpp>
#include <qtensor/simd/quantize_columns.hpp>
#include <qtensor/simd/statistics.hpp>

// q = clamp(rint(x / scale) + zero point), an IEEE division, ties to even, an integer addition; y = (q - zero point) *
// scale in f32, then rounded to bf16 or f16 (ties to even, overflow to infinity). Wide to wide: x / scale + zero point
// from f32 and from bf16 to f16, (x - zero point) * scale to f32 and from f16 to bf16; untouched by arithmetic where
// scale is 1 and zero point 0. bf16 and f16 are std::uint16_t in memory.
namespace qtensor::compat::zendnn {

/// The two static rules as schemes: int32 zero points, added after rounding.       bf16 -50, scale .5, zp 128 -> u8 28
using s8 = with<int8_per_tensor, qtensor::zero_point<int32>, static_only>;
using u8 = with<uint8_per_tensor, qtensor::zero_point<int32>, static_only>;

inline namespace QTENSOR_ABI {
namespace pieces {

using detail::job;
using arch = simd::best_arch;

/// int32 by cvtps2dq, a wrapping addition, a clamp.
template <class S>
std::uint8_t x86_code(float x, float scale, std::int32_t zero) {
  const float q = x / scale;
  std::int32_t r = std::numeric_limits<std::int32_t>::min();
  if (q >= -0x1p31f && q < 0x1p31f) r = static_cast<std::int32_t>(round_to_integer<nearest_even>(q));
  r = static_cast<std::int32_t>(static_cast<std::uint32_t>(r) + static_cast<std::uint32_t>(zero));
  return static_cast<std::uint8_t>(
      std::clamp(r, static_cast<std::int32_t>(S::codes.low), static_cast<std::int32_t>(S::codes.high)));
}

/// Elements that pass through tiles at a time, the shortest block that is worth a run of its own, and the shortest that
/// kernels take as a group.
inline constexpr index_t most = 1024, run = 64, least_group = 4;

struct tiles {
  static constexpr auto with_batch = static_cast<std::size_t>(most + simd::lanes<arch>);
  alignas(64) float scales[with_batch];
  alignas(64) std::int32_t zeros[with_batch];
  alignas(64) float values[static_cast<std::size_t>(most)];
  alignas(64) std::byte gathered[static_cast<std::size_t>(most) * sizeof(float)];
};

/// Which scales and zero points the elements of a job have.
struct patterns {
  simd::entry_pattern scale, zero;
  bool same;

  explicit patterns(const job& j) : scale(of(j, j.scale.at)), zero(of(j, j.zero.at)), same(scale == zero) {}

 private:
  static simd::entry_pattern of(const job& j, const detail::entry_map& at) {
    const index_t period = std::min(at.row_period, j.rows), times = j.batch * (j.rows / period);
    simd::entry_pattern p;
    p.append(times, times);
    p.append(period, at.row_step == 0 ? period : at.row_block);
    p.append(j.cols, std::min(at.length, j.cols));
    return p;
  }
};

/// The parameters of a stretch of elements: one of each for every `group` of them.
struct parameters {
  index_t n, group;
  const float* scales;
  const std::int32_t* zeros;

  float scale(index_t i) const { return scales[i / group]; }
  std::int32_t zero(index_t i) const { return zeros[i / group]; }
};

/// n entries of a buffer from `first` on; those of none are 1 and 0.
inline void read_entries(const detail::parameter& p, index_t first, index_t n, float* to) {
  if (p.data == nullptr)
    std::fill_n(to, n, 1.f);
  else if (p.type == data_type_t::f32)
    std::copy_n(static_cast<const float*>(p.data) + first, n, to);
  else if (p.type == data_type_t::bf16)
    simd::widen_floats<bf16>(static_cast<const std::uint16_t*>(p.data) + first, n, to);
  else
    simd::widen_floats<f16>(static_cast<const std::uint16_t*>(p.data) + first, n, to);
}
inline void read_entries(const detail::parameter& p, index_t first, index_t n, std::int32_t* to) {
  if (p.data == nullptr)
    std::fill_n(to, n, 0);
  else
    std::copy_n(static_cast<const std::int32_t*>(p.data) + first, n, to);
}

/// Entries for elements [at, at + n), whose first is found, one for each `group` of them: where they lie, or in `room`.
template <class T>
const T* entries_at(const detail::parameter& p, const simd::entry_pattern& pattern,
                    const simd::entry_pattern::position& found, index_t at, index_t n, index_t group, T* room) {
  const index_t entries = divide_up(n, group);
  if (found.alike >= n) {
    T one;
    read_entries(p, found.entry, 1, &one);
    std::fill_n(room, entries, one);
  } else if (pattern.run() == group && found.in_order >= n) {
    if (detail::size_of(p.type) == sizeof(T)) return static_cast<const T*>(p.data) + found.entry;
    read_entries(p, found.entry, entries, room);
  } else {
    pattern.spread(found, at, n, room,
                   [&](index_t first, index_t count, T* list) { read_entries(p, first, count, list); });
  }
  return room;
}

/// Parameters from element `at` on, for at most `limit` elements (`most` where each has its own).
inline parameters parameters_at(const job& j, const patterns& of, index_t at, index_t limit, tiles& t) {
  const auto s = of.scale.find(at), z = of.same ? s : of.zero.find(at);
  const auto uniform = [&](index_t n) {
    t.scales[0] = j.scale.data != nullptr ? j.scale.scale(s.entry) : 1.f;
    t.zeros[0] = j.zero.data != nullptr ? j.zero.zero(z.entry) : 0;
    return parameters{n, n, t.scales, t.zeros};
  };
  const auto listed = [&](index_t n, index_t group) {
    return parameters{n, group, entries_at(j.scale, of.scale, s, at, n, group, t.scales),
                      entries_at(j.zero, of.zero, z, at, n, group, t.zeros)};
  };
  const index_t alike = std::min(s.alike, z.alike), enough = std::min(run, limit);
  if (alike >= limit) return uniform(limit);
  // Groups that begin here stay as they are where kernels take them and they go on for a while, beside the others' of
  // the same length or one of these.
  const auto [fine, coarse] = of.scale.run() <= of.zero.run() ? std::pair{s, z} : std::pair{z, s};
  const index_t group = std::min(of.scale.run(), of.zero.run()),
                in_order = of.same ? fine.in_order : std::min(fine.in_order, coarse.alike);
  const bool by_kernels = detail::is_code(j.from) || detail::is_code(j.to) || group % simd::lanes<arch> == 0;
  const bool known = group < run ? group >= least_group : group % run == 0 && group <= 8 * run;
  if (by_kernels && known && in_order >= std::max(enough, 2 * group) && alike == group && !j.has_wide_zeros())
    return listed(std::min({limit, in_order, most * group}) / group * group, group);
  if (alike >= enough) return uniform(alike);
  return listed(std::min({limit, most, in_order >= most / 4 ? in_order : most}), 1);
}

/// A number of 16 bits as a float; an f16 NaN is quieted, as the vectors do.
inline float element(data_type_t type, std::uint32_t half) {
  if (type == data_type_t::bf16) return decode<bf16>(half);
  const float v = decode<f16>(half);
  return is_nan(v) ? quieted(v) : v;
}

/// n neighbours of a wide source as floats: where they lie, or in the tile.
inline const float* floats_at(const job& j, const std::byte* at, index_t n, float* tile) {
  if (j.from == data_type_t::f32) return reinterpret_cast<const float*>(at);
  const auto* halves = reinterpret_cast<const std::uint16_t*>(at);
  if (j.reference)
    for (index_t i = 0; i < n; ++i) tile[i] = element(j.from, halves[i]);
  else if (j.from == data_type_t::bf16)
    simd::widen_floats<bf16>(halves, n, tile);
  else
    simd::widen_floats<f16>(halves, n, tile);
  return tile;
}

/// Floats to a wide destination.
inline void store_floats(data_type_t type, bool by_reference, const float* y, index_t n, std::byte* to) {
  if (type == data_type_t::f32) {
    std::memcpy(to, y, static_cast<std::size_t>(n) * sizeof(float));
    return;
  }
  auto* halves = reinterpret_cast<std::uint16_t*>(to);
  if (by_reference) {
    for (index_t i = 0; i < n; ++i)
      halves[i] = static_cast<std::uint16_t>(type == data_type_t::bf16 ? encode<bf16, to_special>(y[i])
                                                                       : encode<f16, to_special>(y[i]));
    return;
  }
  if (type == data_type_t::bf16)
    simd::narrow_floats<bf16>(y, n, halves);
  else
    simd::narrow_floats<f16>(y, n, halves);
}

/// batch(i, n, scale, zero point) for batches of n elements from i on.
template <class Batch>
void for_each_batch(const parameters& p, const Batch& batch) {
  constexpr index_t lanes = simd::lanes<arch>;
  if (p.group == 1) {
    for (index_t i = 0, n; i < p.n; i += n) {
      n = std::min(lanes, p.n - i);
      batch(i, n, simd::load_n<arch>(p.scales + i, n), simd::load_n<arch>(p.zeros + i, n));
    }
    return;
  }
  for (index_t first = 0, end; first < p.n; first = end) {
    const simd::floats<arch> s(p.scale(first));
    const simd::ints<arch> z(p.zero(first));
    end = std::min(first + p.group, p.n);
    for (index_t i = first; i < end; i += lanes) batch(i, std::min(lanes, end - i), s, z);
  }
}

/// The numbers of codes whose zero points are none of them, which kernels take one by one: quotients within 2^30, to
/// the nearest, and zero points within 2^29 make sums of 32 bits.
template <class S>
void add_wide_zeros(const float* x, const parameters& p, float* sums) {
  using floats = simd::floats<arch>;
  const floats far(0x1p30f);
  for_each_batch(p, [&](index_t i, index_t n, const floats& s, const simd::ints<arch>& z) QTENSOR_INLINE_LAMBDA {
    const floats q = simd::div(simd::load_n<arch>(x + i, n), s);
    const floats near = simd::select(q == q, simd::max(-far, simd::min(far, q)), floats(0.f));
    const floats sum = simd::to_float(simd::round_to_int(near) + z);
    simd::store_n(sums + i, n, simd::max(floats(S::codes.low), simd::min(floats(S::codes.high), sum)));
  });
}

template <class S>
void quantize(const job& j, const float* x, parameters p, std::byte* to, tiles& t) {
  constexpr float one = 1.f;
  constexpr std::int32_t none = 0;
  auto* codes = reinterpret_cast<simd::code_unit_t<S>*>(to);
  if (j.has_wide_zeros() && (p.group < p.n || !detail::is_zero_point(j.to, *p.zeros))) {
    add_wide_zeros<S>(x, p, t.values);
    x = t.values, p = {p.n, p.n, &one, &none};
  }
  if (j.x86)
    for (index_t i = 0; i < p.n; ++i) to[i] = static_cast<std::byte>(x86_code<S>(x[i], p.scale(i), p.zero(i)));
  else if (j.reference)
    simd::kernel<simd::op::encode, S, simd::scalar_arch>::grouped(x, p.n, p.group, p.scales, p.zeros, 1.f, codes);
  else if (p.group >= p.n)
    simd::encode_uniform<S>(x, p.n, element_scale{*p.scales}, *p.zeros, codes);
  else if (p.group == 1)
    simd::encode_vector<S>(x, p.n, p.scales, p.zeros, codes);
  else
    simd::encode_grouped<S>(x, p.n, p.group, p.scales, p.zeros, codes);
}

template <class S>
void dequantize(const job& j, const std::byte* from, const parameters& p, float* y) {
  using code = typename S::code_format;
  const auto* codes = reinterpret_cast<const simd::code_unit_t<S>*>(from);
  if (j.has_far_zeros())
    for (index_t i = 0; i < p.n; ++i)
      y[i] = (decode<code>(static_cast<std::uint8_t>(from[i])) - static_cast<float>(p.zero(i))) * p.scale(i);
  else if (j.reference)
    simd::kernel<simd::op::decode, stored<S>, simd::scalar_arch>::grouped(codes, p.n, p.group, {p.scales, p.zeros}, y);
  else
    simd::decode_grouped<S>(codes, p.n, p.group, p.scales, p.zeros, y);
}

/// Wide to wide: y may be x.
inline void convert(const job& j, const float* x, const parameters& p, float* y) {
  using floats = simd::floats<arch>;
  const bool divides = j.from == data_type_t::f32 || (j.from == data_type_t::bf16 && j.to == data_type_t::f16);
  for_each_batch(p, [&](index_t i, index_t n, const floats& s, const simd::ints<arch>& zero) QTENSOR_INLINE_LAMBDA {
    const floats v = simd::load_n<arch>(x + i, n), z = simd::to_float(zero);
    const floats scaled = divides ? simd::add(simd::div(v, s), z) : simd::mul(simd::sub(v, z), s);
    simd::store_n(y + i, n, simd::select((s == floats(1.f)) & (z == floats(0.f)), v, scaled));
  });
}

/// One piece, from `from` to `to`.
inline void reorder_piece(const job& j, const std::byte* from, const parameters& p, std::byte* to, tiles& t) {
  if (detail::is_code(j.from)) {
    float* y = j.to == data_type_t::f32 ? reinterpret_cast<float*>(to) : t.values;
    if (j.from == data_type_t::s8)
      dequantize<s8>(j, from, p, y);
    else
      dequantize<u8>(j, from, p, y);
    if (j.to != data_type_t::f32) store_floats(j.to, j.reference, y, p.n, to);
    return;
  }
  const float* x = floats_at(j, from, p.n, t.values);
  if (j.to == data_type_t::s8) return quantize<s8>(j, x, p, to, t);
  if (j.to == data_type_t::u8) return quantize<u8>(j, x, p, to, t);
  if (j.scale.data != nullptr || j.zero.data != nullptr) {
    convert(j, x, p, t.values);
    x = t.values;
  }
  store_floats(j.to, j.reference, x, p.n, to);
}

/// Rows from `row` on that share their parameters.
inline index_t rows_alike(const job& j, index_t row) {
  index_t n = j.rows - row;
  for (const detail::entry_map* at : {&j.scale.at, &j.zero.at})
    if (at->row_step != 0) n = std::min(n, at->row_block - row % at->row_period % at->row_block);
  return n;
}

/// Codes of columns that have their own parameters, for rows that share those.
template <class S, simd::float_source From>
void quantize_columns(const job& j, const patterns& of, index_t first, index_t end, tiles& t) {
  using unit = simd::code_unit_t<S>;
  for (index_t rows; first < end; first += rows) {
    const index_t b = first / j.rows, row = first % j.rows;
    rows = std::min(rows_alike(j, row), end - first);
    const auto* from = reinterpret_cast<const typename From::type*>(j.src) + b * j.batch_stride + row * j.row_stride;
    unit* to = reinterpret_cast<unit*>(j.dst) + (b * j.rows + row) * j.cols;
    for (index_t col = 0; col < j.cols;) {
      const index_t at = (b * j.rows + row) * j.cols + col;
      const parameters p = parameters_at(j, of, at, std::min(most, j.cols - col), t);
      simd::encode_columns<S, From>(from + col, rows, j.row_stride, p.n, p.scales, p.zeros, to + col, j.cols);
      col += p.n;
    }
  }
}
/// Of rows [first, end) of all batches.
template <class S>
void quantize_columns(const job& j, const patterns& of, index_t first, index_t end, tiles& t) {
  if (j.from == data_type_t::f32)
    quantize_columns<S, simd::from_f32>(j, of, first, end, t);
  else if (j.from == data_type_t::bf16)
    quantize_columns<S, simd::from_bf16>(j, of, first, end, t);
  else
    quantize_columns<S, simd::from_f16>(j, of, first, end, t);
}
/// Whether every column of rows that are not short has parameters of its own, which several rows share.
inline bool has_columns(const job& j) {
  const auto& s = j.scale.at;
  const auto& z = j.zero.at;
  const bool own = (s.length == 1 || s.length >= j.cols) && (z.length == 1 || z.length >= j.cols) &&
                   (s.length == 1 || z.length == 1);
  return own && j.cols >= run / 2 && detail::is_code(j.to) && !detail::is_code(j.from) && j.col_stride == 1 && !j.x86 &&
         !j.reference && !j.has_wide_zeros() && rows_alike(j, 0) > 1;
}

/// How many elements from `at` on, in the order of the destination, lie side by side.
inline index_t side_by_side(const job& j, index_t at) {
  if (j.dense) return j.count() - at;
  return j.col_stride == 1 ? j.cols - at % j.cols : 1;
}

/// n elements from `at` on, side by side: where they lie, or gathered in `room`.
inline const std::byte* elements_at(const job& j, index_t at, index_t n, std::byte* room) {
  const auto place = [&](index_t i) {
    if (j.dense) return i;
    const index_t row = i / j.cols;
    return row / j.rows * j.batch_stride + row % j.rows * j.row_stride + i % j.cols * j.col_stride;
  };
  if (side_by_side(j, at) >= n) return j.src + place(at) * detail::size_of(j.from);
  const auto gather = [&](auto* to) {
    for (index_t i = 0, count; i < n; i += count, to += count) {
      const auto* from = reinterpret_cast<decltype(to)>(const_cast<std::byte*>(j.src)) + place(at + i);
      count = std::min(n - i, j.cols - (at + i) % j.cols);
      for (index_t k = 0; k < count; ++k) to[k] = from[k * j.col_stride];
    }
  };
  switch (detail::size_of(j.from)) {
    case 1:
      gather(reinterpret_cast<std::uint8_t*>(room));
      break;
    case 2:
      gather(reinterpret_cast<std::uint16_t*>(room));
      break;
    default:
      gather(reinterpret_cast<float*>(room));
  }
  return room;
}

/// Codes (or floats) of elements [at, end) in the order of the destination.
inline void reorder_range(const job& j, const patterns& of, index_t at, index_t end) {
  tiles t;
  // Nothing passes through a tile between f32 and codes: long runs are one call.
  const bool direct = (j.from == data_type_t::f32 && detail::is_code(j.to) && !j.has_wide_zeros()) ||
                      (detail::is_code(j.from) && j.to == data_type_t::f32);
  while (at < end) {
    const index_t left = end - at, beside = std::min(side_by_side(j, at), left);
    // Elements that lie apart, and rows of few, are gathered in a tile.
    const bool gathers = beside < std::min(run, left);
    const index_t limit = gathers ? std::min(most, left) : direct ? beside : std::min(most, beside);
    const parameters p = parameters_at(j, of, at, limit, t);
    reorder_piece(j, elements_at(j, at, p.n, t.gathered), p, j.dst + at * detail::size_of(j.to), t);
    at += p.n;
  }
}

/// Codes (or floats) of the whole tensor.
template <executor By>
void reorder_all(const job& j, const By& by) {
  const patterns of(j);
  if (!has_columns(j))
    return qtensor::detail::in_ranges(by, j.count(), most, 1,
                                      [&](index_t first, index_t n) { reorder_range(j, of, first, first + n); });
  qtensor::detail::in_ranges(by, j.batch * j.rows, 1, j.cols, [&](index_t first, index_t n) {
    tiles t;
    (j.to == data_type_t::s8 ? quantize_columns<s8> : quantize_columns<u8>)(j, of, first, first + n, t);
  });
}

/// Joins the finite ones of n elements to the ranges of their entries, `length` columns each.
inline void join_ranges(const float* x, index_t n, index_t length, float* low, float* high) {
  if (length == 1) {
    constexpr index_t step = simd::lanes<arch>;
    const auto join = [](const auto& v, auto& l, auto& h) {
      const auto size = simd::bits_as<std::uint32_t>(v) & simd::words<arch>(magnitude_bits);
      const auto finite = simd::mask_as<float>(simd::below(size, simd::words<arch>(infinity_bits)));
      l = simd::select(finite & (v < l), v, l);
      h = simd::select(finite & (v > h), v, h);
    };
    index_t i = 0;
    for (; i + step <= n; i += step) {
      auto l = simd::load<arch>(low + i), h = simd::load<arch>(high + i);
      join(simd::load<arch>(x + i), l, h);
      simd::store(low + i, l);
      simd::store(high + i, h);
    }
    if (i < n) {
      auto l = simd::load_n<arch>(low + i, n - i), h = simd::load_n<arch>(high + i, n - i);
      join(simd::load_n<arch>(x + i, n - i), l, h);
      simd::store_n(low + i, n - i, l);
      simd::store_n(high + i, n - i, h);
    }
    return;
  }
  alignas(64) float lows[static_cast<std::size_t>(most)], highs[static_cast<std::size_t>(most)];
  const index_t blocks = n / length, rest = n % length, entries = divide_up(n, length);
  simd::min_max_blocks<arch>(x, blocks, length, lows, highs);
  if (rest != 0) simd::min_max_blocks<arch>(x + n - rest, 1, rest, lows + blocks, highs + blocks);
  for (index_t e = 0; e < entries; ++e) low[e] = std::min(low[e], lows[e]), high[e] = std::max(high[e], highs[e]);
}

/// Scales and zero points of ranges (NUMERICS 6), as many as a tile has elements; no finite element was seen where
/// `low` is infinite. Changes the ranges.
inline void find_entries(job& j, index_t first, index_t n, float* low, float* high) {
  using floats = simd::floats<arch>;
  const bool symmetric = j.zero.data == nullptr;
  const floats least(1e-10f);
  alignas(64) float scales[static_cast<std::size_t>(most)];
  for (index_t i = 0; i < n; i += simd::lanes<arch>) {
    const index_t count = std::min(simd::lanes<arch>, n - i);
    const floats a = simd::load_n<arch>(low + i, count), b = simd::load_n<arch>(high + i, count);
    const auto none = a > b;
    const floats l = simd::select(none, floats(0.f), a), top = simd::select(none, floats(0.f), b);
    const floats h = simd::select(top <= l, simd::add(l, floats(1.f)), top);
    const floats widest =
        symmetric ? simd::max(simd::max(simd::max(-l, l), simd::max(-top, top)), least) : simd::sub(h, l);
    const floats scale = simd::max(simd::div(widest, floats(symmetric ? 127.f : 255.f)), least);
    simd::store_n(low + i, count, l);
    simd::store_n(scales + i, count, j.scale.type == data_type_t::f16 ? simd::max(scale, floats(0x1p-14f)) : scale);
    simd::store_n(high + i, count, scale);
  }
  if (!symmetric) {
    auto* zeros = static_cast<std::int32_t*>(const_cast<void*>(j.zero.data)) + first;
    for (index_t i = 0; i < n; ++i) {
      const double zero = std::clamp(-double{low[i]} / double{high[i]}, -0x1p31, 0x1p31 - 1);
      const auto whole = static_cast<std::int32_t>(zero);  // ties go away from it
      const double rest = zero - whole;
      zeros[i] = whole + (rest >= .5) - (rest <= -.5);
    }
    j.note_zeros(zeros, n);
  }
  void* to = const_cast<void*>(j.scale.data);
  if (j.scale.type == data_type_t::f32)
    std::copy_n(scales, n, static_cast<float*>(to) + first);
  else if (j.scale.type == data_type_t::bf16)
    simd::narrow_floats<bf16>(scales, n, static_cast<std::uint16_t*>(to) + first);
  else
    simd::narrow_floats<f16>(scales, n, static_cast<std::uint16_t*>(to) + first);
}

/// Scales and zero points of the dynamic modes: whole entries at a time, as many as a tile has columns for.
inline void find_parameters(job& j) {
  tiles t;
  alignas(64) float low[static_cast<std::size_t>(most)], high[static_cast<std::size_t>(most)];
  const auto& at = j.scale.at;
  const index_t length = std::min(at.length, j.cols), rows = at.row_step == 0 ? j.rows : at.row_block,
                width = length < most ? most / length * length : length;
  // Short rows of columns go together, each to ranges of its own at first.
  const index_t together = length == 1 && j.dense ? std::clamp(most / j.cols, index_t{1}, rows) : 1;
  for (index_t row = 0; row < j.rows; row += rows)
    for (index_t col = 0; col < j.cols; col += width) {
      const index_t cols = std::min(width, j.cols - col), entries = divide_up(cols, length);
      std::fill_n(low, entries * together, infinity);
      std::fill_n(high, entries * together, -infinity);
      for (index_t b = 0; b < j.batch; ++b)
        for (index_t r = row; r < row + rows; r += together) {
          const index_t first = (b * j.rows + r) * j.cols + col, count = std::min(together, row + rows - r) * cols;
          for (index_t c = 0; c < count; c += most) {
            const index_t n = std::min(most, count - c);
            join_ranges(floats_at(j, elements_at(j, first + c, n, t.gathered), n, t.values), n, length, low, high);
          }
        }
      for (index_t e = entries; e < entries * together; ++e) {
        low[e % entries] = std::min(low[e % entries], low[e]);
        high[e % entries] = std::max(high[e % entries], high[e]);
      }
      find_entries(j, at.entry(row) + col / length, entries, low, high);
    }
}

/// The plain call, without a job: straight to the kernels, 16-bit floats through a tile.
template <class S>
void reorder_plain(const void* src, void* dst, index_t n, const reorder_data_types_t& types, float scale,
                   std::int32_t zero) {
  using unit = simd::code_unit_t<S>;
  const element_scale s{scale};
  if (types.src == data_type_t::f32)
    return simd::encode_uniform<S>(static_cast<const float*>(src), n, s, zero, static_cast<unit*>(dst));
  if (types.dst == data_type_t::f32)
    return simd::decode_uniform<S>(static_cast<const unit*>(src), n, s, zero, static_cast<float*>(dst));
  alignas(64) float tile[static_cast<std::size_t>(most)];
  for (index_t i = 0; i < n; i += most) {
    const index_t count = std::min(most, n - i);
    if (detail::is_wide(types.src)) {
      const auto* halves = static_cast<const std::uint16_t*>(src) + i;
      if (types.src == data_type_t::bf16)
        simd::widen_floats<bf16>(halves, count, tile);
      else
        simd::widen_floats<f16>(halves, count, tile);
      simd::encode_uniform<S>(tile, count, s, zero, static_cast<unit*>(dst) + i);
    } else {
      simd::decode_uniform<S>(static_cast<const unit*>(src) + i, count, s, zero, tile);
      store_floats(types.dst, false, tile, count, static_cast<std::byte*>(dst) + 2 * i);
    }
  }
}

template <class... On>
status_t reorder_checked(const void* src, void* dst, std::uint64_t nelems, const lowoha_reorder_params_t& params,
                         const On&... on) {
  job j;
  j.src = static_cast<const std::byte*>(src), j.dst = static_cast<std::byte*>(dst);
  j.from = params.dtypes.src, j.to = params.dtypes.dst;
  if (detail::refusal r = detail::check(params, nelems, j)) return {status_t::failure, std::move(*r)};
  if (params.dynamic_quant) find_parameters(j);
  if (dst != nullptr) reorder_all(j, qtensor::detail::execution_among(on...).by);
  return status_t::success;
}

}  // namespace pieces

/// nelems elements, dense unless params has strides, from src to dst. With a src_shape, nelems is its product.
///
/// Fails, and writes nothing, on: null src or dst (dst may be null in dynamic modes), unknown or unsupported types, an
/// unknown algorithm, nelems 0 or above 2^40, extents below 1 or above 2^30, strides below 1, products and addresses
/// that overflow, dims that fit no granularity, scales that are not positive and finite (all are looked at), zero
/// points out of range, buffers not aligned to their elements, and a dst that overlaps src or a parameter (in place is
/// refused; src counts from its first to its last element, gaps included). Allocates nothing but the reason of a
/// failure. on(executor) may come last; scales that a dynamic mode finds are found on one thread.
template <qtensor::detail::execution_option... On>
status_t reorder(const void* src, void* dst, std::size_t nelems, const lowoha_reorder_params_t& params,
                 const On&... on) {
  if (detail::is_plain(src, dst, nelems, params)) {
    const auto* scale = static_cast<const float*>(params.quant_params.scale.buff);
    const auto* zero = static_cast<const std::int32_t*>(params.quant_params.zero_point.buff);
    const bool is_signed = params.dtypes.src == data_type_t::s8 || params.dtypes.dst == data_type_t::s8;
    const auto by = qtensor::detail::execution_among(on...).by;
    qtensor::detail::in_ranges(by, static_cast<index_t>(nelems), pieces::most, 1, [&](index_t first, index_t n) {
      (is_signed
           ? pieces::reorder_plain<s8>
           : pieces::reorder_plain<u8>)(static_cast<const std::byte*>(src) + first * detail::size_of(params.dtypes.src),
                                        static_cast<std::byte*>(dst) + first * detail::size_of(params.dtypes.dst), n,
                                        params.dtypes, scale != nullptr ? *scale : 1.f, zero != nullptr ? *zero : 0);
    });
    return status_t::success;
  }
  if (nelems == 0) return {status_t::failure, *detail::refuse("nelems is 0; 1 to 2^40 are valid.")};
  return pieces::reorder_checked(src, dst, nelems, params, on...);
}

/// The same for the elements of params.src_shape, which must be given.
template <qtensor::detail::execution_option... On>
status_t reorder(const void* src, void* dst, const lowoha_reorder_params_t& params, const On&... on) {
  if (params.src_shape.empty())
    return {status_t::failure, *detail::refuse("src_shape is empty; give it, or pass nelems.")};
  return pieces::reorder_checked(src, dst, 0, params, on...);
}

}  // namespace QTENSOR_ABI
}  // namespace qtensor::compat::zendnn
