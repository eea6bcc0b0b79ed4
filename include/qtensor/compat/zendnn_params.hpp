// The parameters of ZenDNN's LowOHA reorder, and the validation that turns a call into a job (NUMERICS 6).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <qtensor/core/error.hpp>
#include <qtensor/reference/codec.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Types and members carry the document's names, so that its examples compile as they are.
namespace qtensor::compat::zendnn {

/// Types of buffers. The document gives no numbers; these are ours.
enum class data_type_t : int { none = 0, f32, bf16, f16, s8, u8, s32 };

/// Who computes. DT and none choose for you: always the vector kernels, which are never slower here. All give the same
/// bits.
enum class reorder_algo_t : int { none = -1, DT = 0, native = 1, reference = 2 };

/// What a NaN quotient, or one beyond int32, becomes. saturate: the zero point, the nearest code. x86: ZenDNN's
/// cvtps2dq as it is: -2^31, plus the zero point modulo 2^32, clamped, also for +huge (slow).  1e30, scale 1, s8: 127
/// or -128
enum class special_quotients_t { saturate, x86 };

/// Which zero points are valid beside 8-bit codes: the codes' own range (the document), or any int32 (later releases).
enum class zero_points_t { codes, int32 };

/// Success, or failure and a sentence. Compares with and converts from status_t::success and status_t::failure.
class [[nodiscard]] status_t {
 public:
  enum code { success, failure };

  status_t(code c, std::string reason = {}) : code_(c), reason_(std::move(reason)) {}
  /// Why it failed; empty on success.
  const std::string& reason() const { return reason_; }
  friend bool operator==(const status_t& s, code c) { return s.code_ == c; }

 private:
  code code_;
  std::string reason_;
};

struct reorder_data_types_t {
  data_type_t src = data_type_t::none;
  data_type_t dst = data_type_t::none;
};

struct reorder_quant_params_t {
  /// Null buff: scale 1, zero point 0, and dt and dims are not looked at. Dynamic modes write to buff, which must then
  /// be writable memory.
  struct quant_t {
    const void* buff = nullptr;
    data_type_t dt = data_type_t::none;
    std::vector<std::int64_t> dims;
  };
  quant_t scale;       ///< f32, bf16 or f16
  quant_t zero_point;  ///< s32
};

/// What to do. dims, without a src_shape: {} one value; {channels} one for each index of the last axis, whose length
/// that is; {groups, group_size} one for each run of group_size consecutive elements, groups * group_size = nelems.
/// With a src_shape [N], [M, N] or [batch, M, N]: {} or ones; {N} or {1, N} a value a column; {M, 1} a row; {G, N} a
/// column of each of G blocks of rows; {M, G} each of G blocks of a row (1 < G, dividing); rank 3 the same behind a
/// leading 1, shared by the batch. Scale and zero point may differ, except in dynamic modes.
struct lowoha_reorder_params_t {
  reorder_data_types_t dtypes;
  reorder_quant_params_t quant_params;
  reorder_algo_t algo = reorder_algo_t::DT;
  std::uint64_t num_threads = 0;  ///< 0: as many as useful. Runs serially; bits do not depend on it

  // What later releases added, and two options of ours.
  std::vector<std::int64_t> src_shape;    ///< extents up to 2^30, together up to 2^40
  std::vector<std::int64_t> dst_shape;    ///< empty, or equal to src_shape: the destination is dense
  std::vector<std::int64_t> src_strides;  ///< empty, or one for each axis, in elements, positive
  /// Scales (and zero points) from the data: to s8 without a zero-point buffer max |x| / 127, to u8 with one
  /// (max - min) / 255 and round(-min / scale), which may lie outside 0..255. Non-finite elements do not count; scales
  /// are at least 1e-10 (2^-14 in an f16 buffer); codes are made with the scale as stored. dst null: no codes.
  bool dynamic_quant = false;
  special_quotients_t special_quotients = special_quotients_t::saturate;
  zero_points_t zero_points = zero_points_t::codes;
};

namespace detail {

inline constexpr std::int64_t most_elements = std::int64_t{1} << 40, longest_axis = std::int64_t{1} << 30;

/// Why a call is refused; null where it is not. A word, as a valid call passes through a dozen of them.
using refusal = std::unique_ptr<std::string>;

template <class... Word>
refusal refuse(const Word&... word) {
  auto sentence = std::make_unique<std::string>("zendnn::reorder: ");
  (qtensor::detail::append(*sentence, word), ...);
  return sentence;
}

constexpr std::string_view name_of(data_type_t t) {
  constexpr std::string_view names[] = {"none", "f32", "bf16", "f16", "s8", "u8", "s32"};
  return t >= data_type_t::none && t <= data_type_t::s32 ? names[static_cast<int>(t)] : "an unknown type";
}
constexpr bool is_code(data_type_t t) { return t == data_type_t::s8 || t == data_type_t::u8; }
constexpr bool is_wide(data_type_t t) {
  return t == data_type_t::f32 || t == data_type_t::bf16 || t == data_type_t::f16;
}
/// Whether a zero point is one of the codes.
constexpr bool is_zero_point(data_type_t codes, std::int32_t zero) {
  return codes == data_type_t::s8 ? zero >= -128 && zero <= 127 : zero >= 0 && zero <= 255;
}
constexpr index_t size_of(data_type_t t) {
  return is_code(t) ? 1 : t == data_type_t::bf16 || t == data_type_t::f16 ? 2 : 4;
}

/// Which entry of a buffer belongs to an element: entry(row) + column / length.
struct entry_map {
  index_t length = most_elements;  // columns that share an entry
  index_t row_step = 0, row_block = 1, row_period = most_elements;
  index_t count = 1;

  constexpr index_t entry(index_t row) const { return row_step == 0 ? 0 : row % row_period / row_block * row_step; }
  constexpr bool operator==(const entry_map&) const = default;
};

/// A buffer of scales or zero points; data is null where there is none.
struct parameter {
  const void* data = nullptr;
  data_type_t type = data_type_t::none;
  entry_map at;

  float scale(index_t i) const {
    if (type == data_type_t::f32) return static_cast<const float*>(data)[i];
    const std::uint32_t half = static_cast<const std::uint16_t*>(data)[i];
    return type == data_type_t::bf16 ? decode<bf16>(half) : decode<f16>(half);
  }
  std::int32_t zero(index_t i) const { return static_cast<const std::int32_t*>(data)[i]; }
};

/// A call that was found valid: batch x rows x cols elements, strides of the source in elements.
struct job {
  const std::byte* src = nullptr;
  std::byte* dst = nullptr;
  data_type_t from = data_type_t::none, to = data_type_t::none;
  index_t batch = 1, rows = 1, cols = 1, batch_stride = 0, row_stride = 0, col_stride = 1;
  parameter scale, zero;
  bool dense = false;  // the elements of the source lie side by side
  bool reference = false, x86 = false;
  std::int32_t lowest_zero = 0, highest_zero = 0;

  index_t count() const { return batch * rows * cols; }
  void note_zeros(const std::int32_t* zeros, index_t n) {
    for (index_t i = 0; i < n; ++i)
      lowest_zero = std::min(lowest_zero, zeros[i]), highest_zero = std::max(highest_zero, zeros[i]);
  }
  /// Zero points beyond 2^24, where float arithmetic differs from exact.
  bool has_far_zeros() const { return lowest_zero < -(1 << 24) || highest_zero > 1 << 24; }
  /// Zero points that are no codes, all within 2^29; options go their own way.
  bool has_wide_zeros() const {
    const bool wide = is_code(to) && !(is_zero_point(to, lowest_zero) && is_zero_point(to, highest_zero));
    return wide && lowest_zero >= -(1 << 29) && highest_zero <= 1 << 29 && !reference && !x86;
  }
};

/// Memory [first, end).
struct memory {
  std::uintptr_t first = 0, end = 0;
  bool overlaps(const memory& other) const { return first < other.end && other.first < end; }
};

/// Extents and strides of a shaped call.
inline refusal read_shape(const lowoha_reorder_params_t& p, std::uint64_t nelems, job& j) {
  const auto& shape = p.src_shape;
  const std::size_t rank = shape.size();
  if (rank > 3) return refuse("src_shape has ", rank, " axes; it may have 1, 2 or 3.");
  std::int64_t product = 1;
  for (const std::int64_t extent : shape) {
    if (extent < 1 || extent > longest_axis)
      return refuse("src_shape has an extent of ", extent, "; 1 to 2^30 are valid.");
    if (product > most_elements / extent) return refuse("src_shape has more than 2^40 elements.");
    product *= extent;
  }
  if (nelems != 0 && nelems != static_cast<std::uint64_t>(product))
    return refuse("nelems is ", nelems, " but src_shape has ", product, " elements.");
  if (!p.dst_shape.empty() && p.dst_shape != shape) return refuse("dst_shape differs from src_shape.");
  if (!p.src_strides.empty() && p.src_strides.size() != rank)
    return refuse("src_strides has ", p.src_strides.size(), " entries for ", rank, " axes.");
  std::int64_t strides[3] = {}, dense = 1;
  for (std::size_t axis = rank; axis-- > 0; dense *= shape[axis]) {
    strides[axis] = p.src_strides.empty() ? dense : p.src_strides[axis];
    if (strides[axis] < 1) return refuse("src_strides has ", strides[axis], "; strides must be positive.");
  }
  j.cols = shape[rank - 1], j.col_stride = strides[rank - 1];
  if (rank >= 2) j.rows = shape[rank - 2], j.row_stride = strides[rank - 2];
  if (rank == 3) j.batch = shape[0], j.batch_stride = strides[0];
  return nullptr;
}

/// The dims of one parameter of a shaped call.
inline refusal read_shaped_dims(std::string_view what, const std::vector<std::int64_t>& dims, std::size_t rank,
                                const job& j, entry_map& at) {
  const auto wrong = [&] {
    return refuse(what,
                  ".dims fits no granularity of src_shape: use {}, ones, {1, N}, {M, 1}, {G, N} with G dividing "
                  "M, {M, G} with G dividing N, behind a leading 1 for rank 3.");
  };
  if (dims.empty()) return nullptr;
  if (dims.size() != 1 && dims.size() != rank) return wrong();
  if (dims.size() == 3 && dims[0] != 1) return wrong();
  const std::int64_t a = dims.size() == 1 ? 1 : dims[dims.size() - 2], b = dims.back();
  if (a == 1 && b == 1) return nullptr;
  if (a < 1 || a > j.rows || b < 1 || b > j.cols) return wrong();
  if (b == j.cols && (a == 1 || (a < j.rows && j.rows % a == 0))) {
    at = {1, a == 1 ? 0 : b, j.rows / a, most_elements, a * b};
  } else if (a == j.rows && (b == 1 || (b < j.cols && j.cols % b == 0))) {
    at = {j.cols / b, a == 1 ? 0 : b, 1, most_elements, a * b};
  } else {
    return wrong();
  }
  if (at.length == j.cols) at.length = most_elements;
  return nullptr;
}

/// One entry of flat dims: {channels} repeats every `channels` elements, {groups, group_size} changes every group_size.
inline refusal check_flat_dims(std::string_view what, const std::vector<std::int64_t>& dims, std::int64_t nelems) {
  if (dims.empty()) return nullptr;
  if (dims.size() > 2)
    return refuse(what, ".dims has ", dims.size(), " entries; without a src_shape it has at most 2.");
  for (const std::int64_t d : dims)
    if (d < 1 || d > nelems)
      return refuse(what, ".dims has ", d, "; with ", nelems, " elements 1 to ", nelems, " are valid.");
  if (dims.size() == 1 && nelems % dims[0] != 0)
    return refuse(what, ".dims says ", dims[0], " channels, which do not divide ", nelems, " elements.");
  if (dims.size() == 2 && (dims[0] > nelems / dims[1] || dims[0] * dims[1] != nelems))
    return refuse(what, ".dims says ", dims[0], " groups of ", dims[1], " for ", nelems, " elements.");
  return nullptr;
}

/// The flat array as rows so short that both parameters are simple functions of row and column.
inline void fold_flat(const lowoha_reorder_params_t& p, std::int64_t nelems, job& j) {
  const auto length = [](const auto& q) {
    return q.buff == nullptr || q.dims.empty() || q.dims == std::vector<std::int64_t>{1} ? 0 : q.dims.back();
  };
  const auto &s = p.quant_params.scale, &z = p.quant_params.zero_point;
  j.cols = nelems;
  if (length(s) == 0 && length(z) == 0) return;
  j.cols = std::gcd(length(s), length(z));
  j.rows = nelems / j.cols;
  j.row_stride = j.cols;
  const auto map = [&](const auto& q, entry_map& at) {
    const std::int64_t n = length(q);
    if (n == 0) return;
    const index_t rows = n / j.cols;
    if (q.dims.size() == 1)
      at = {1, rows == 1 ? 0 : j.cols, 1, rows == 1 ? most_elements : rows, n};
    else
      at = {most_elements, q.dims[0] == 1 ? 0 : 1, rows, most_elements, q.dims[0]};
    if (at.length == j.cols) at.length = most_elements;
  };
  map(s, j.scale.at);
  map(z, j.zero.at);
}

/// Where the source lies; false where its addresses overflow.
inline bool find_source(const job& j, memory& m) {
  std::int64_t last = 0;
  const auto reach = [&](index_t extent, index_t stride) {
    std::int64_t r;
    return extent == 1 || (!__builtin_mul_overflow(extent - 1, stride, &r) && !__builtin_add_overflow(last, r, &last));
  };
  std::uint64_t bytes;
  m.first = reinterpret_cast<std::uintptr_t>(j.src);
  return reach(j.batch, j.batch_stride) && reach(j.rows, j.row_stride) && reach(j.cols, j.col_stride) &&
         !__builtin_mul_overflow(static_cast<std::uint64_t>(last) + 1, static_cast<std::uint64_t>(size_of(j.from)),
                                 &bytes) &&
         !__builtin_add_overflow(m.first, bytes, &m.end);
}

/// To a power of two.
inline bool is_aligned(const void* p, index_t size) {
  return (reinterpret_cast<std::uintptr_t>(p) & static_cast<std::uintptr_t>(size - 1)) == 0;
}

/// Alignment and place of a dense buffer.
inline refusal find_buffer(std::string_view what, const void* data, index_t count, data_type_t type, memory& m) {
  m.first = reinterpret_cast<std::uintptr_t>(data);
  const auto size = static_cast<std::uintptr_t>(size_of(type));
  if (!is_aligned(data, size_of(type)))
    return refuse(what, " is not aligned to ", size, " bytes, the size of ", name_of(type), ".");
  if (__builtin_add_overflow(m.first, static_cast<std::uintptr_t>(count) * size, &m.end))
    return refuse(what, " reaches over the end of memory.");
  return nullptr;
}

/// Buffers: aligned, inside memory, and nothing that is written overlaps anything else.
inline refusal check_memory(const lowoha_reorder_params_t& p, const job& j) {
  memory src, dst, scale, zero;
  if (!is_aligned(j.src, size_of(j.from)))
    return refuse("src is not aligned to ", size_of(j.from), " bytes, the size of ", name_of(j.from), ".");
  if (!find_source(j, src)) return refuse("src reaches over the end of memory; its strides are too large.");
  if (j.dst != nullptr)
    if (refusal r = find_buffer("dst", j.dst, j.batch * j.rows * j.cols, j.to, dst)) return r;
  if (j.scale.data != nullptr)
    if (refusal r = find_buffer("scale", j.scale.data, j.scale.at.count, j.scale.type, scale)) return r;
  if (j.zero.data != nullptr)
    if (refusal r = find_buffer("zero_point", j.zero.data, j.zero.at.count, data_type_t::s32, zero)) return r;
  if (dst.overlaps(src) || dst.overlaps(scale) || dst.overlaps(zero))
    return refuse("dst overlaps a buffer that is read; in place is not possible.");
  if (p.dynamic_quant && (scale.overlaps(src) || zero.overlaps(src) || scale.overlaps(zero)))
    return refuse("the buffers of scales and zero points, which a dynamic mode writes, overlap another buffer.");
  return nullptr;
}

/// Types, dims and buffers of the dynamic modes.
inline refusal check_dynamic(const job& j) {
  if (!is_wide(j.from) || !is_code(j.to)) return refuse("dynamic_quant converts f32, bf16 or f16 to s8 or u8.");
  if (j.scale.data == nullptr) return refuse("dynamic_quant needs a buffer for scales.");
  if (j.to == data_type_t::s8 && j.zero.data != nullptr)
    return refuse("dynamic_quant to s8 is symmetric; zero_point.buff must be null.");
  if (j.to == data_type_t::u8 && j.zero.data == nullptr)
    return refuse("dynamic_quant to u8 is asymmetric and needs a buffer for zero points.");
  if (j.zero.data != nullptr && j.scale.at != j.zero.at)
    return refuse("dynamic_quant needs the same dims for scales and zero points.");
  return nullptr;
}

/// Whether n numbers are positive and finite, by their bits.
template <class Bits, class Of>
bool are_positive(index_t n, Bits infinity, const Of& bits) {
  Bits worst = 0;
  for (index_t i = 0; i < n; ++i) worst = std::max(worst, static_cast<Bits>(bits(i) - 1));
  return worst < infinity - 1;
}
inline bool has_positive_scales(const parameter& scale) {
  if (scale.type == data_type_t::f32)
    return are_positive<std::uint32_t>(scale.at.count, infinity_bits,
                                       [x = static_cast<const float*>(scale.data)](auto i) { return bits_of(x[i]); });
  return are_positive<std::uint16_t>(scale.at.count, scale.type == data_type_t::bf16 ? 0x7f80 : 0x7c00,
                                     [x = static_cast<const std::uint16_t*>(scale.data)](auto i) { return x[i]; });
}

/// Every value of static parameters, before anything is written.
inline refusal check_values(const lowoha_reorder_params_t& p, job& j) {
  if (j.scale.data != nullptr && !has_positive_scales(j.scale))
    for (index_t i = 0; i < j.scale.at.count; ++i)
      if (const float s = j.scale.scale(i); !(s > 0.f) || !is_finite(s))
        return refuse("scale ", i, " is ", s, "; a scale must be positive and finite.");
  if (j.zero.data == nullptr) return nullptr;
  j.note_zeros(static_cast<const std::int32_t*>(j.zero.data), j.zero.at.count);
  const data_type_t codes = is_code(j.from) ? j.from : j.to;
  const bool any = p.zero_points == zero_points_t::int32 || !is_code(codes);
  if (any || (is_zero_point(codes, j.lowest_zero) && is_zero_point(codes, j.highest_zero))) return nullptr;
  index_t i = 0;
  while (is_zero_point(codes, j.zero.zero(i))) ++i;
  const bool is_signed = codes == data_type_t::s8;
  return refuse("zero point ", i, " is ", j.zero.zero(i), "; for ", name_of(codes), " it must be in [",
                is_signed ? -128 : 0, ", ", is_signed ? 127 : 255, "].");
}

/// Makes dense rows one long row where their parameters follow each other as their elements do, and dense batches too
/// where all elements share one of each.
inline void join_rows(job& j) {
  if (j.col_stride != 1 || (j.rows > 1 && j.row_stride != j.cols)) return;
  for (const entry_map* at : {&j.scale.at, &j.zero.at}) {
    const bool in_order =
        at->row_block == 1 && at->row_period == most_elements && at->row_step * std::min(at->length, j.cols) == j.cols;
    if (*at != entry_map{} && !in_order) return;
  }
  for (entry_map* at : {&j.scale.at, &j.zero.at})
    if (at->row_step != 0) *at = {std::min(at->length, j.cols), 0, 1, most_elements, at->count};
  j.cols *= j.rows, j.rows = 1;
  if (j.scale.at == entry_map{} && j.zero.at == entry_map{} && j.batch_stride == j.cols) j.cols *= j.batch, j.batch = 1;
}

/// The whole of the validation. nelems 0 only where there is a src_shape.
inline refusal check(const lowoha_reorder_params_t& p, std::uint64_t nelems, job& j) {
  const auto &scale = p.quant_params.scale, &zero = p.quant_params.zero_point;
  const bool known =
      (is_wide(j.from) && (is_wide(j.to) || is_code(j.to)) && j.from != j.to) || (is_code(j.from) && is_wide(j.to));
  if (!known) return refuse("there is no conversion from ", name_of(j.from), " to ", name_of(j.to), ".");
  if (p.algo < reorder_algo_t::none || p.algo > reorder_algo_t::reference)
    return refuse("algo is ", static_cast<int>(p.algo), "; -1, 0, 1 and 2 are valid.");
  if (j.src == nullptr) return refuse("src is null.");
  if (j.dst == nullptr && !p.dynamic_quant) return refuse("dst is null; only dynamic_quant allows that.");
  if (scale.buff != nullptr && !is_wide(scale.dt))
    return refuse("scale.dt is ", name_of(scale.dt), "; scales are f32, bf16 or f16.");
  if (zero.buff != nullptr && zero.dt != data_type_t::s32)
    return refuse("zero_point.dt is ", name_of(zero.dt), "; zero points are s32.");
  j.scale.data = scale.buff, j.scale.type = scale.dt;
  j.zero.data = zero.buff, j.zero.type = zero.dt;
  if (!p.src_shape.empty()) {
    if (refusal r = read_shape(p, nelems, j)) return r;
    const std::size_t rank = p.src_shape.size();
    if (scale.buff != nullptr)
      if (refusal r = read_shaped_dims("scale", scale.dims, rank, j, j.scale.at)) return r;
    if (zero.buff != nullptr)
      if (refusal r = read_shaped_dims("zero_point", zero.dims, rank, j, j.zero.at)) return r;
  } else {
    if (!p.src_strides.empty() || !p.dst_shape.empty()) return refuse("src_strides and dst_shape need a src_shape.");
    if (nelems == 0 || nelems > static_cast<std::uint64_t>(most_elements))
      return refuse("nelems is ", nelems, "; 1 to 2^40 are valid.");
    const auto n = static_cast<std::int64_t>(nelems);
    if (scale.buff != nullptr)
      if (refusal r = check_flat_dims("scale", scale.dims, n)) return r;
    if (zero.buff != nullptr)
      if (refusal r = check_flat_dims("zero_point", zero.dims, n)) return r;
    fold_flat(p, n, j);
  }
  if (p.dynamic_quant)
    if (refusal r = check_dynamic(j)) return r;
  if (refusal r = check_memory(p, j)) return r;
  if (!p.dynamic_quant)
    if (refusal r = check_values(p, j)) return r;
  j.reference = p.algo == reorder_algo_t::reference;
  j.x86 = p.special_quotients == special_quotients_t::x86;
  if (j.scale.at.count == 1 && j.zero.at.count == 1) j.scale.at = j.zero.at = {};
  join_rows(j);
  j.dense = j.col_stride == 1 && (j.rows == 1 || j.row_stride == j.cols) &&
            (j.batch == 1 || j.batch_stride == j.rows * j.cols);
  return nullptr;
}

/// The valid call that should cost nothing: flat, between a wide type and codes, at most one f32 scale and zero point,
/// no options. Everything else, and every failure, goes through check.
inline bool is_plain(const void* src, const void* dst, std::uint64_t nelems, const lowoha_reorder_params_t& p) {
  const auto &scale = p.quant_params.scale, &zero = p.quant_params.zero_point;
  const data_type_t from = p.dtypes.src, to = p.dtypes.dst, codes = is_code(from) ? from : to;
  if (is_code(from) ? !is_wide(to) : !is_wide(from) || !is_code(to)) return false;
  if (src == nullptr || dst == nullptr || nelems - 1 >= static_cast<std::uint64_t>(most_elements)) return false;
  if (p.dynamic_quant || p.special_quotients != special_quotients_t::saturate || p.algo < reorder_algo_t::none ||
      p.algo > reorder_algo_t::native)
    return false;
  if (!p.src_shape.empty() || !p.dst_shape.empty() || !p.src_strides.empty()) return false;
  memory from_memory, to_memory, scale_memory, zero_memory;
  if (scale.buff != nullptr) {
    if (scale.dt != data_type_t::f32 || !scale.dims.empty() || !is_aligned(scale.buff, 4)) return false;
    const float s = *static_cast<const float*>(scale.buff);
    if (!(s > 0.f && s < infinity)) return false;
    scale_memory.first = reinterpret_cast<std::uintptr_t>(scale.buff), scale_memory.end = scale_memory.first + 4;
  }
  if (zero.buff != nullptr) {
    if (zero.dt != data_type_t::s32 || !zero.dims.empty() || !is_aligned(zero.buff, 4)) return false;
    const std::uint32_t shifted = static_cast<std::uint32_t>(*static_cast<const std::int32_t*>(zero.buff)) +
                                  (codes == data_type_t::s8 ? 128u : 0u);
    if (shifted > 255u) return false;
    zero_memory.first = reinterpret_cast<std::uintptr_t>(zero.buff), zero_memory.end = zero_memory.first + 4;
  }
  const auto place = [&](const void* data, data_type_t type, memory& m) {
    m.first = reinterpret_cast<std::uintptr_t>(data);
    return is_aligned(data, size_of(type)) &&
           !__builtin_add_overflow(m.first, nelems * static_cast<std::uint64_t>(size_of(type)), &m.end);
  };
  if (!place(src, from, from_memory) || !place(dst, to, to_memory)) return false;
  return !to_memory.overlaps(from_memory) && !to_memory.overlaps(scale_memory) && !to_memory.overlaps(zero_memory);
}

}  // namespace detail

}  // namespace qtensor::compat::zendnn
