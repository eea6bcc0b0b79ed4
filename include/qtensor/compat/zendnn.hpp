// ZenDNN LowOHA reorder: run-time types, shapes and granularities in, a status with a reason out (NUMERICS 6).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <qtensor/compat/zendnn_params.hpp>
#include <qtensor/scheme/schemes.hpp>
#include <qtensor/simd/dequantize.hpp>
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

/// Scale and zero point of a range (NUMERICS 6). Infinite `low`: no finite element was seen.
struct dynamic_parameters {
  float scale;
  std::int32_t zero;

  static dynamic_parameters of(float low, float high, bool symmetric) {
    if (low > high) low = high = 0.f;
    if (symmetric) return {std::max(std::max({magnitude(low), magnitude(high), 1e-10f}) / 127.f, 1e-10f), 0};
    if (high <= low) high = low + 1.f;
    const float scale = std::max((high - low) / 255.f, 1e-10f);
    const double zero = std::round(static_cast<double>(-low) / static_cast<double>(scale));
    return {scale, static_cast<std::int32_t>(std::clamp(zero, -0x1p31, 0x1p31 - 1))};
  }
};

inline void store_scale(const job& j, index_t i, float scale) {
  void* data = const_cast<void*>(j.scale.data);
  if (j.scale.type == data_type_t::f32)
    static_cast<float*>(data)[i] = scale;
  else if (j.scale.type == data_type_t::bf16)
    static_cast<std::uint16_t*>(data)[i] = static_cast<std::uint16_t>(encode<bf16, to_special>(scale));
  else
    static_cast<std::uint16_t*>(data)[i] =
        static_cast<std::uint16_t>(encode<f16, to_special>(std::max(scale, 0x1p-14f)));
}

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
  alignas(64) float values[static_cast<std::size_t>(most)];
  alignas(64) float scales[static_cast<std::size_t>(most)];
  alignas(64) std::int32_t zeros[static_cast<std::size_t>(most)];
  alignas(64) std::uint8_t codes[static_cast<std::size_t>(most)];
};

/// The parameters of a piece of a row: one of each for every `group` elements.
struct parameters {
  index_t n, group;
  const float* scales;
  const std::int32_t* zeros;

  float scale(index_t i) const { return scales[i / group]; }
  std::int32_t zero(index_t i) const { return zeros[i / group]; }
};

/// out[i] = read(entry of column col + i).
template <class T, class Read>
void spread(const detail::entry_map& at, index_t entry, index_t col, index_t n, T* out, Read read) {
  index_t left = at.length - col % at.length;
  entry += col / at.length;
  for (index_t i = 0; i < n; ++i, --left) {
    if (left == 0) ++entry, left = at.length;
    out[i] = read(entry);
  }
}

/// Parameters from column `col` of a row on, for at most `limit` elements (`most` where each has its own).
inline parameters parameters_at(const job& j, index_t row, index_t col, index_t limit, tiles& t) {
  const auto &s = j.scale.at, &z = j.zero.at;
  const index_t s0 = s.entry(row), z0 = z.entry(row);
  const index_t left = j.cols - col;
  if (s.length >= run && z.length >= run) {
    index_t n = std::min(limit, left), s1 = s0, z1 = z0;
    if (s.length < j.cols) n = std::min(n, s.length - col % s.length), s1 += col / s.length;
    if (z.length < j.cols) n = std::min(n, z.length - col % z.length), z1 += col / z.length;
    t.scales[0] = j.scale.data != nullptr ? j.scale.scale(s1) : 1.f;
    t.zeros[0] = j.zero.data != nullptr ? j.zero.zero(z1) : 0;
    return {n, n, t.scales, t.zeros};
  }
  // Where both begin and end together they stay as they are, else every element gets its own.
  const bool alike = j.scale.data == nullptr || j.zero.data == nullptr || s.length == z.length;
  const index_t both = j.zero.data == nullptr ? s.length : z.length,
                group = alike && both >= least_group && both < run && col % both == 0 ? both : 1;
  const index_t n = std::min(most / group * group, left), entries = divide_up(n, group);
  parameters p{n, group, t.scales, t.zeros};
  const auto entry_of = [&](const detail::entry_map& at, index_t first) { return first + col / at.length; };
  if (j.scale.data == nullptr)
    std::fill_n(t.scales, entries, 1.f);
  else if (s.length == group && j.scale.type == data_type_t::f32)
    p.scales = static_cast<const float*>(j.scale.data) + entry_of(s, s0);
  else if (s.length == group)
    for (index_t e = 0; e < entries; ++e) t.scales[e] = j.scale.scale(entry_of(s, s0) + e);
  else
    spread(s, s0, col, n, t.scales, [&](index_t i) { return j.scale.scale(i); });
  if (j.zero.data == nullptr)
    std::fill_n(t.zeros, entries, 0);
  else if (z.length == group)
    p.zeros = static_cast<const std::int32_t*>(j.zero.data) + entry_of(z, z0);
  else
    spread(z, z0, col, n, t.zeros, [&](index_t i) { return j.zero.zero(i); });
  return p;
}

/// One element of the source as a float; an f16 NaN is quieted, as the vectors do.
inline float element(data_type_t type, const std::byte* at) {
  if (type == data_type_t::f32) return *reinterpret_cast<const float*>(at);
  const std::uint32_t half = *reinterpret_cast<const std::uint16_t*>(at);
  if (type == data_type_t::bf16) return decode<bf16>(half);
  const float v = decode<f16>(half);
  return is_nan(v) ? float_of(bits_of(v) | 0x00400000u) : v;
}

/// n elements of a wide source as floats: where they lie, or in the tile.
inline const float* floats_at(const job& j, const std::byte* at, index_t n, float* tile) {
  const index_t size = detail::size_of(j.from);
  if (j.col_stride == 1 && j.from == data_type_t::f32) return reinterpret_cast<const float*>(at);
  if (j.col_stride == 1 && !j.reference) {
    const auto* halves = reinterpret_cast<const std::uint16_t*>(at);
    if (j.from == data_type_t::bf16)
      simd::widen_floats<bf16>(halves, n, tile);
    else
      simd::widen_floats<f16>(halves, n, tile);
  } else {
    for (index_t i = 0; i < n; ++i) tile[i] = element(j.from, at + i * j.col_stride * size);
  }
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

template <class S>
void quantize(const job& j, const float* x, const parameters& p, std::byte* to) {
  auto* codes = reinterpret_cast<simd::code_unit_t<S>*>(to);
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
  if (j.far_zeros)
    for (index_t i = 0; i < p.n; ++i)
      y[i] = (decode<code>(static_cast<std::uint8_t>(from[i])) - static_cast<float>(p.zero(i))) * p.scale(i);
  else if (j.reference)
    simd::kernel<simd::op::decode, stored<S>, simd::scalar_arch>::grouped(codes, p.n, p.group, {p.scales, p.zeros}, y);
  else if (p.group >= p.n)
    simd::decode_uniform<S>(codes, p.n, element_scale{*p.scales}, *p.zeros, y);
  else if (p.group == 1)
    simd::decode_vector<S>(codes, p.n, p.scales, p.zeros, y);
  else
    simd::decode_grouped<S>(codes, p.n, p.group, p.scales, p.zeros, y);
}

/// Wide to wide: y may be x.
inline void convert(const job& j, const float* x, const parameters& p, float* y) {
  using floats = simd::floats<arch>;
  const bool divides = j.from == data_type_t::f32 || (j.from == data_type_t::bf16 && j.to == data_type_t::f16);
  const auto batch = [&](index_t i, index_t n, const floats& s, const floats& z) {
    const floats v = simd::load_n<arch>(x + i, n);
    const floats scaled = divides ? simd::add(simd::div(v, s), z) : simd::mul(simd::sub(v, z), s);
    simd::store_n(y + i, n, simd::select((s == floats(1.f)) & (z == floats(0.f)), v, scaled));
  };
  const index_t length = p.group == 1 ? p.n : p.group;
  for (index_t first = 0; first < p.n; first += length) {
    const floats s(p.scale(first)), z(static_cast<float>(p.zero(first)));
    for (index_t i = first, n, end = std::min(first + length, p.n); i < end; i += n) {
      n = std::min(simd::lanes<arch>, end - i);
      if (p.group == 1)
        batch(i, n, simd::load_n<arch>(p.scales + i, n), simd::to_float(simd::load_n<arch>(p.zeros + i, n)));
      else
        batch(i, n, s, z);
    }
  }
}

/// One piece, from `from` to `to`.
inline void reorder_piece(const job& j, const std::byte* from, const parameters& p, std::byte* to, tiles& t) {
  if (detail::is_code(j.from)) {
    if (j.col_stride != 1) {
      for (index_t i = 0; i < p.n; ++i) t.codes[i] = static_cast<std::uint8_t>(from[i * j.col_stride]);
      from = reinterpret_cast<const std::byte*>(t.codes);
    }
    float* y = j.to == data_type_t::f32 ? reinterpret_cast<float*>(to) : t.values;
    if (j.from == data_type_t::s8)
      dequantize<s8>(j, from, p, y);
    else
      dequantize<u8>(j, from, p, y);
    if (j.to != data_type_t::f32) store_floats(j.to, j.reference, y, p.n, to);
    return;
  }
  const float* x = floats_at(j, from, p.n, t.values);
  if (j.to == data_type_t::s8) return quantize<s8>(j, x, p, to);
  if (j.to == data_type_t::u8) return quantize<u8>(j, x, p, to);
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
void quantize_columns(const job& j, tiles& t) {
  using unit = simd::code_unit_t<S>;
  for (index_t b = 0; b < j.batch; ++b)
    for (index_t row = 0, rows; row < j.rows; row += rows) {
      rows = rows_alike(j, row);
      const auto* from = reinterpret_cast<const typename From::type*>(j.src) + b * j.batch_stride + row * j.row_stride;
      unit* to = reinterpret_cast<unit*>(j.dst) + (b * j.rows + row) * j.cols;
      for (index_t col = 0; col < j.cols;) {
        const parameters p = parameters_at(j, row, col, most, t);
        simd::encode_columns<S, From>(from + col, rows, j.row_stride, p.n, p.scales, p.zeros, to + col, j.cols);
        col += p.n;
      }
    }
}
template <class S>
void quantize_columns(const job& j, tiles& t) {
  if (j.from == data_type_t::f32)
    quantize_columns<S, simd::from_f32>(j, t);
  else if (j.from == data_type_t::bf16)
    quantize_columns<S, simd::from_bf16>(j, t);
  else
    quantize_columns<S, simd::from_f16>(j, t);
}
/// Whether every column has parameters of its own, which several rows share.
inline bool has_columns(const job& j) {
  const auto& s = j.scale.at;
  const auto& z = j.zero.at;
  const bool own = (s.length == 1 || s.length >= j.cols) && (z.length == 1 || z.length >= j.cols) &&
                   (s.length == 1 || z.length == 1);
  return own && j.cols > 1 && detail::is_code(j.to) && !detail::is_code(j.from) && j.col_stride == 1 && !j.x86 &&
         !j.reference && rows_alike(j, 0) > 1;
}

/// Codes (or floats) of the whole tensor.
inline void reorder_all(const job& j) {
  tiles t;
  if (has_columns(j)) return j.to == data_type_t::s8 ? quantize_columns<s8>(j, t) : quantize_columns<u8>(j, t);
  const index_t from_size = detail::size_of(j.from), to_size = detail::size_of(j.to);
  // Nothing passes through a tile between f32 and codes: long runs are one call.
  const bool direct = j.col_stride == 1 && ((j.from == data_type_t::f32 && detail::is_code(j.to)) ||
                                            (detail::is_code(j.from) && j.to == data_type_t::f32));
  const index_t limit = direct ? j.cols : most;
  std::byte* to = j.dst;
  for (index_t b = 0; b < j.batch; ++b)
    for (index_t row = 0; row < j.rows; ++row) {
      const std::byte* from = j.src + (b * j.batch_stride + row * j.row_stride) * from_size;
      for (index_t col = 0; col < j.cols;) {
        const parameters p = parameters_at(j, row, col, limit, t);
        reorder_piece(j, from + col * j.col_stride * from_size, p, to, t);
        col += p.n;
        to += p.n * to_size;
      }
    }
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
  float lows[static_cast<std::size_t>(most)], highs[static_cast<std::size_t>(most)];
  const index_t blocks = n / length, rest = n % length, entries = divide_up(n, length);
  simd::min_max_blocks<arch>(x, blocks, length, lows, highs);
  if (rest != 0) simd::min_max_blocks<arch>(x + n - rest, 1, rest, lows + blocks, highs + blocks);
  for (index_t e = 0; e < entries; ++e) low[e] = std::min(low[e], lows[e]), high[e] = std::max(high[e], highs[e]);
}

/// Scales and zero points of the dynamic modes: whole entries at a time, as many as a tile has columns for.
inline void find_parameters(const job& j) {
  alignas(64) float tile[static_cast<std::size_t>(most)];
  float low[static_cast<std::size_t>(most)], high[static_cast<std::size_t>(most)];
  const auto& at = j.scale.at;
  const index_t size = detail::size_of(j.from), length = std::min(at.length, j.cols);
  const index_t rows = at.row_step == 0 ? j.rows : at.row_block,
                width = length < most ? most / length * length : length;
  for (index_t row = 0; row < j.rows; row += rows)
    for (index_t col = 0; col < j.cols; col += width) {
      const index_t end = std::min(col + width, j.cols), entries = divide_up(end - col, length);
      std::fill_n(low, entries, infinity);
      std::fill_n(high, entries, -infinity);
      for (index_t b = 0; b < j.batch; ++b)
        for (index_t r = row; r < row + rows; ++r) {
          const std::byte* from = j.src + (b * j.batch_stride + r * j.row_stride) * size;
          for (index_t c = col; c < end; c += most) {
            const index_t n = std::min(most, end - c);
            join_ranges(floats_at(j, from + c * j.col_stride * size, n, tile), n, length, low, high);
          }
        }
      for (index_t e = 0; e < entries; ++e) {
        const index_t entry = at.entry(row) + col / length + e;
        const auto p = dynamic_parameters::of(low[e], high[e], j.zero.data == nullptr);
        store_scale(j, entry, p.scale);
        if (j.zero.data != nullptr) static_cast<std::int32_t*>(const_cast<void*>(j.zero.data))[entry] = p.zero;
      }
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

inline status_t reorder_checked(const void* src, void* dst, std::uint64_t nelems,
                                const lowoha_reorder_params_t& params) {
  job j;
  j.src = static_cast<const std::byte*>(src), j.dst = static_cast<std::byte*>(dst);
  j.from = params.dtypes.src, j.to = params.dtypes.dst;
  if (detail::refusal r = detail::check(params, nelems, j)) return {status_t::failure, std::move(*r)};
  if (params.dynamic_quant) find_parameters(j);
  if (dst != nullptr) reorder_all(j);
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
/// failure.
inline status_t reorder(const void* src, void* dst, std::size_t nelems, const lowoha_reorder_params_t& params) {
  if (detail::is_plain(src, dst, nelems, params)) {
    const auto* scale = static_cast<const float*>(params.quant_params.scale.buff);
    const auto* zero = static_cast<const std::int32_t*>(params.quant_params.zero_point.buff);
    const bool is_signed = params.dtypes.src == data_type_t::s8 || params.dtypes.dst == data_type_t::s8;
    (is_signed ? pieces::reorder_plain<s8> : pieces::reorder_plain<u8>)(src, dst, static_cast<index_t>(nelems),
                                                                        params.dtypes, scale != nullptr ? *scale : 1.f,
                                                                        zero != nullptr ? *zero : 0);
    return status_t::success;
  }
  if (nelems == 0) return {status_t::failure, *detail::refuse("nelems is 0; 1 to 2^40 are valid.")};
  return pieces::reorder_checked(src, dst, nelems, params);
}

/// The same for the elements of params.src_shape, which must be given.
inline status_t reorder(const void* src, void* dst, const lowoha_reorder_params_t& params) {
  if (params.src_shape.empty())
    return {status_t::failure, *detail::refuse("src_shape is empty; give it, or pass nelems.")};
  return pieces::reorder_checked(src, dst, 0, params);
}

}  // namespace QTENSOR_ABI
}  // namespace qtensor::compat::zendnn
