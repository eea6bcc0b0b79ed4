// Blocks of a matrix in strided memory, quantized with kernels chosen at run time; every number is read once.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <qtensor/compat/cann_arrays.hpp>
#include <qtensor/ops/source.hpp>
#include <qtensor/simd/quantize_columns.hpp>
#include <qtensor/simd/statistics.hpp>
#include <qtensor/simd/statistics_columns.hpp>

namespace qtensor::compat::cann::parts::inline QTENSOR_ABI {

/// What a block's largest magnitude says: the scale as stored, and the number that codes are made with.
struct block_scale {
  std::uint32_t stored;
  float for_codes;
};

/// A scale rule with the numbers it got at run time: what n blocks store, and what their codes are made with.
struct scale_rule {
  void (*of)(const std::uint32_t* amax_bits, index_t n, const scale_rule&, std::uint32_t* stored,
             float* for_codes) = nullptr;
  float bound = 0.f;  // largest code, low bound of amax, or 1 / dst_type_max
  float min_scale = 0.f;
  bool flush_subnormals = false;
};

/// A rule for one block, for all of some.
template <block_scale (*One)(std::uint32_t amax_bits, const scale_rule&)>
void each_block(const std::uint32_t* amax_bits, index_t n, const scale_rule& rule, std::uint32_t* stored,
                float* for_codes) {
  for (index_t i = 0; i < n; ++i) {
    const block_scale s = One(amax_bits[i], rule);
    stored[i] = s.stored;
    for_codes[i] = s.for_codes;
  }
}

/// The kernels of one format and rounding: codes from numbers and scales. Of `columns` every row has the same scales,
/// one a number; rows of numbers are x_step apart, rows of codes code_step bytes.
struct codec {
  int bits = 0;
  void (*grouped)(const float* x, index_t n, index_t group, const float* scales, void* codes) = nullptr;
  void (*columns)(const float* x, index_t rows, index_t x_step, index_t n, const float* scales, void* codes,
                  index_t code_step) = nullptr;
};
template <quantization_scheme S>
codec codec_of() {
  using unit = simd::code_unit_t<S>;
  return {
      S::code_format::bits,
      [](const float* x, index_t n, index_t group, const float* scales, void* codes) {
        simd::encode_grouped<S>(x, n, group, scales, nullptr, static_cast<unit*>(codes));
      },
      [](const float* x, index_t rows, index_t x_step, index_t n, const float* scales, void* codes, index_t code_step) {
        simd::encode_columns<S>(x, rows, x_step, n, scales, nullptr, static_cast<unit*>(codes), code_step);
      }};
}

/// Axis along which the scales of two neighbouring blocks stand together, an odd one beside a 0.
enum class pairs { none, rows, cols };

/// One result: blocks of row_block x col_block elements, their codes and their scales.
struct job {
  index_t row_block = 1, col_block = 1;
  codec codes;
  scale_rule rule;
  bool finite_only = false;  // amax leaves infinities and NaNs out
  const output* y = nullptr;
  const output* scales = nullptr;
  pairs paired = pairs::none;
};

/// An axis as the walk sees it: its size, and its stride in x, and in y and scales of every job.
struct walk_axis {
  index_t size = 1;
  std::array<index_t, 5> stride{};
  bool blocked = false;

  /// Whether this axis and the next one inside it are one longer axis in every array.
  bool joins(const walk_axis& inner) const {
    if (blocked || inner.blocked) return false;
    for (std::size_t a = 0; a < stride.size(); ++a)
      if (stride[a] != inner.stride[a] * inner.size) return false;
    return true;
  }
};

/// Element `at` of x and those below and beside it, as rows of floats that follow each other.
inline void read_floats(const input& x, index_t at, index_t rows, index_t row_step, index_t cols, index_t step,
                        float* to) {
  const auto read = [&]<format F>(std::type_identity<F>) {
    const auto elements =
        source<F>(static_cast<const storage_t<F>*>(x.data) + at, extents(rows, cols), {row_step, step});
    typename decltype(elements)::template in_order<row_major>(elements).read(0, rows, 0, cols, to, cols);
  };
  if (x.type == type::f32)
    read(std::type_identity<f32>{});
  else if (x.type == type::bf16)
    read(std::type_identity<bf16>{});
  else
    read(std::type_identity<f16>{});
}

inline void store_nibble(std::uint8_t* bytes, index_t at, std::uint32_t code) {
  std::uint8_t& byte = bytes[at >> 1];  // also where a negative stride leads below `bytes`
  byte = static_cast<std::uint8_t>((at & 1) == 0 ? (byte & 0xF0u) | code : (byte & 0x0Fu) | code << 4);
}

/// Joins the magnitudes of n numbers to those of their blocks of `length`.
inline void join_amax(const float* x, index_t n, index_t length, bool finite_only, std::uint32_t* amax) {
  using arch = simd::best_arch;
  if (finite_only && simd::amax_bits<arch>(x, n) >= infinity_bits) {
    for (index_t i = 0; i < n; i += length, ++amax)
      for (index_t k = i; k < std::min(i + length, n); ++k)
        if (is_finite(x[k])) *amax = std::max(*amax, bits_of(x[k]) & magnitude_bits);
  } else if (length == 1) {
    simd::accumulate_amax_bits<arch>(x, n, amax);
  } else if (length > 32) {
    for (index_t i = 0; i < n; i += length, ++amax)
      *amax = std::max(*amax, simd::amax_bits<arch>(x + i, std::min(length, n - i)));
  } else {
    constexpr index_t at_once = 64;
    alignas(64) std::uint32_t found[at_once];
    for (index_t left = n; left > 0; left -= at_once * length, x += at_once * length, amax += at_once) {
      const index_t whole = std::min(left / length, at_once);
      simd::amax_blocks<arch>(x, whole, length, found);
      for (index_t b = 0; b < whole; ++b) amax[b] = std::max(amax[b], found[b]);
      if (whole < at_once && whole * length < left)
        amax[whole] = std::max(amax[whole], simd::amax_bits<arch>(x + whole * length, left - whole * length));
    }
  }
}

/// Jobs over one source, walked as matrices: rows and columns are the last blocked axes, the other axes count them out.
class block_walk {
 public:
  /// `row` and `col` are axes of x; row < 0 where x is one row.
  block_walk(const input& x, const job* jobs, int job_count, int row, int col) : x_(x), jobs_(jobs), count_(job_count) {
    std::array<dims, 5> strides{strides_of(x)};
    for (int j = 0; j < count_; ++j) {
      strides[y_of(j)] = strides_of(*jobs[j].y);
      strides[scales_of(j)] = strides_of(*jobs[j].scales);
    }
    const bool rows_blocked = std::any_of(jobs, jobs + job_count, [](const job& each) { return each.row_block > 1; });
    const bool cols_blocked = std::any_of(jobs, jobs + job_count, [](const job& each) { return each.col_block > 1; });
    for (int axis = 0; axis < x.sizes.rank(); ++axis) {
      walk_axis next{x.sizes[axis], {}, (axis == row && rows_blocked) || (axis == col && cols_blocked)};
      for (std::size_t a = 0; a < static_cast<std::size_t>(1 + 2 * count_); ++a) next.stride[a] = strides[a][axis];
      if (axis == row) row_at_ = axes_;
      if (axes_ > 0 && at(axes_ - 1).joins(next)) {
        next.size *= at(axes_ - 1).size;
        at(axes_ - 1) = next;
        if (axis == row) row_at_ = axes_ - 1;
      } else {
        at(axes_++) = next;
      }
    }
    if (!rows_blocked) row_at_ = axes_ - 2;  // any axis of single elements will do
    for (int j = 0; j < count_; ++j)
      pair_[static_cast<std::size_t>(j)] =
          jobs[j].paired != pairs::none ? strides[scales_of(j)][jobs[j].scales->sizes.rank() - 1] : 0;
  }

  /// False where there is no memory for a tile; nothing is written then.
  bool run() {
    const walk_axis one, &rows = row_at_ >= 0 ? at(row_at_) : one, &cols = at(axes_ - 1);
    index_t height = 1, group = 1;
    for (int j = 0; j < count_; ++j) {
      height = std::max(height, std::min(jobs_[j].row_block, rows.size));
      group = std::max(group, std::min(jobs_[j].col_block, cols.size));
    }
    constexpr index_t floats = 4096, least = 64;  // of a tile that stays in L1; of its rows where blocks are high
    const index_t unit = group > 1 ? group : least;
    // Where numbers or codes run across the rows, tiles are high and narrow: several elements of each of their lines.
    constexpr index_t narrow = 128;
    const auto across = [&](std::size_t a) { return rows.stride[a] == 1 && cols.stride[a] != 1; };
    const bool turns = across(0) || across(y_of(0)) || (count_ > 1 && across(y_of(1)));
    const index_t most = std::min(floats / height, turns ? narrow : floats);
    const index_t width = std::min(std::max(most, unit) / unit * unit, divide_up(cols.size, 2) * 2);
    // As many as there is room for, where they are short.
    height *= std::clamp(floats / width / height, index_t{1}, divide_up(rows.size, height));
    index_t tile = 0, bytes = 0;
    if (__builtin_mul_overflow(height, width, &tile) || __builtin_mul_overflow(tile, index_t{16}, &bytes)) return false;
    tile_.reset(new (std::nothrow) float[static_cast<std::size_t>(tile)]);
    at_once_ = std::max(width, floats);
    const auto n = static_cast<std::size_t>(at_once_);
    amax_.reset(new (std::nothrow) std::uint32_t[n]);
    // Of blocks, then of columns with room for a batch behind.
    scales_.reset(new (std::nothrow) float[2 * n + static_cast<std::size_t>(simd::lanes<simd::best_arch>)]);
    stored_.reset(new (std::nothrow) std::uint32_t[n]);
    codes_.reset(new (std::nothrow) std::uint8_t[n]);
    if (tile_ == nullptr || amax_ == nullptr || scales_ == nullptr || stored_ == nullptr || codes_ == nullptr)
      return false;

    std::array<index_t, dims::most> index{};
    std::array<index_t, 5> start{};  // of the matrix at this index, in every array
    for (;;) {
      for (index_t r = 0; r < rows.size; r += height)
        for (index_t c = 0; c < cols.size; c += width)
          quantize_tile(rows, cols, start, r, std::min(height, rows.size - r), c, std::min(width, cols.size - c));
      int axis = axes_ - 2;
      for (; axis >= 0; --axis) {
        if (axis == row_at_) continue;
        index_t& i = index[static_cast<std::size_t>(axis)];
        const bool wraps = ++i == at(axis).size;
        for (std::size_t a = 0; a < start.size(); ++a) start[a] += at(axis).stride[a] * (wraps ? 1 - at(axis).size : 1);
        if (!wraps) break;
        i = 0;
      }
      if (axis < 0) return true;
    }
  }

 private:
  static std::size_t y_of(int j) { return static_cast<std::size_t>(1 + 2 * j); }
  static std::size_t scales_of(int j) { return static_cast<std::size_t>(2 + 2 * j); }
  walk_axis& at(int axis) { return list_[static_cast<std::size_t>(axis)]; }

  void quantize_tile(const walk_axis& rows, const walk_axis& cols, const std::array<index_t, 5>& start, index_t row,
                     index_t height, index_t col, index_t width) {
    const index_t from = start[0] + row * rows.stride[0] + col * cols.stride[0];
    if (cols.stride[0] == 1 && rows.stride[0] == width)
      read_floats(x_, from, 1, 0, height * width, 1, tile_.get());
    else
      read_floats(x_, from, height, rows.stride[0], width, cols.stride[0], tile_.get());
    for (int j = 0; j < count_; ++j) {
      const job& job = jobs_[j];
      const index_t length = std::min(job.col_block, cols.size), high = std::min(job.row_block, rows.size);
      const bool joins = high == 1 && width % length == 0 && (job.codes.bits == 8 || width % 2 == 0);
      const index_t step = joins ? at_once_ / width : high;
      for (index_t r = 0; r < height; r += step) {
        const index_t n = std::min(step, height - r);
        const float* tile = tile_.get() + r * width;
        if (joins)
          quantize_rows(j, rows, cols, start, row + r, n, col, width, tile, length);
        else
          quantize_blocks(j, rows, cols, start, row + r, n, col, width, tile, length);
      }
    }
  }

  /// `height` rows of whole blocks, one row high each, which follow each other in the tile as one row does.
  void quantize_rows(int j, const walk_axis& rows, const walk_axis& cols, const std::array<index_t, 5>& start,
                     index_t row, index_t height, index_t col, index_t width, const float* tile, index_t length) {
    const job& job = jobs_[j];
    const index_t n = height * width, blocks = width / length;
    find_scales(job, tile, 1, n, length);
    for (index_t r = 0; r < height; ++r)
      store_scales(j, rows, cols, start[scales_of(j)], row + r, col / length, blocks, stored_.get() + r * blocks);
    const index_t step = rows.stride[y_of(j)], along = cols.stride[y_of(j)];
    const index_t at = start[y_of(j)] + row * step + col * along;
    if (height == 1 || (along == 1 && step == width)) return encode_row(job, along, at, tile, n, length);
    encode(job, tile, n, length, codes_.get());
    if (is_turned(job, step, along)) return turn_codes(job, at, height, width, along);
    for (index_t r = 0; r < height; ++r)
      store_codes(job, along, at + r * step, width, codes_.get() + r * width * job.codes.bits / 8);
  }

  /// One row of blocks: `height` rows of `width` numbers in the tile, element (row, col) of the matrix first.
  void quantize_blocks(int j, const walk_axis& rows, const walk_axis& cols, const std::array<index_t, 5>& start,
                       index_t row, index_t height, index_t col, index_t width, const float* tile, index_t length) {
    const job& job = jobs_[j];
    find_scales(job, tile, height, width, length);
    store_scales(j, rows, cols, start[scales_of(j)], row / job.row_block, col / length, divide_up(width, length),
                 stored_.get());
    const index_t step = rows.stride[y_of(j)], along = cols.stride[y_of(j)];
    const index_t at = start[y_of(j)] + row * step + col * along;
    const bool turned = is_turned(job, step, along) && height * width <= at_once_,
               direct = is_direct(job, along, at, width) && (job.codes.bits == 8 || step % 2 == 0);
    if ((length == 1 || height > 1) && (turned || direct)) {
      float* scales = scales_.get();
      if (length > 1) {
        scales += at_once_;
        simd::spread_entries<simd::best_arch>(static_cast<const float*>(scales_.get()), length, 0, width, scales);
      }
      if (direct)
        return job.codes.columns(tile, height, width, width, scales, place(job, at), step * job.codes.bits / 8);
      job.codes.columns(tile, height, width, width, scales, codes_.get(), width);
      return turn_codes(job, at, height, width, along);
    }
    for (index_t r = 0; r < height; ++r) encode_row(job, along, at + r * step, tile + r * width, width, length);
  }

  /// Scales of the blocks of `length` in rows of n numbers, which share them.
  void find_scales(const job& job, const float* tile, index_t height, index_t n, index_t length) {
    const index_t blocks = divide_up(n, length);
    std::fill_n(amax_.get(), blocks, 0u);
    for (index_t r = 0; r < height; ++r) join_amax(tile + r * n, n, length, job.finite_only, amax_.get());
    job.rule.of(amax_.get(), blocks, job.rule, stored_.get(), scales_.get());
  }

  /// Those of `blocks` blocks of a row of blocks, from block (row, col) on.
  void store_scales(int j, const walk_axis& rows, const walk_axis& cols, index_t start, index_t row, index_t col,
                    index_t blocks, const std::uint32_t* stored) const {
    const job& job = jobs_[j];
    const index_t row_step = rows.stride[scales_of(j)], step = cols.stride[scales_of(j)];
    if (job.paired == pairs::none) {
      float* to = static_cast<float*>(job.scales->data) + start + row * row_step + col * step;
      for (index_t b = 0; b < blocks; ++b) to[b * step] = float_of(stored[b]);
      return;
    }
    const index_t pair = pair_[static_cast<std::size_t>(j)];
    std::uint8_t* scales = static_cast<std::uint8_t*>(job.scales->data) + start;
    if (job.paired == pairs::rows) {
      std::uint8_t* to = scales + row / 2 * row_step + col * step;
      const bool alone = row % 2 == 0 && row + 1 == divide_up(rows.size, job.row_block);
      for (index_t b = 0; b < blocks; ++b) to[b * step + row % 2 * pair] = static_cast<std::uint8_t>(stored[b]);
      for (index_t b = 0; b < blocks && alone; ++b) to[b * step + pair] = 0;
    } else {
      std::uint8_t* to = scales + row * row_step;
      for (index_t b = 0, at = col; b < blocks; ++b, ++at)
        to[at / 2 * step + at % 2 * pair] = static_cast<std::uint8_t>(stored[b]);
      const index_t last = col + blocks - 1;
      if (last % 2 == 0 && last + 1 == divide_up(cols.size, job.col_block)) to[last / 2 * step + pair] = 0;
    }
  }

  /// Whether n codes from element `at` of y on are whole bytes there, one beside the other.
  static bool is_direct(const job& job, index_t stride, index_t at, index_t n) {
    return stride == 1 && (job.codes.bits == 8 || (at % 2 == 0 && n % 2 == 0));
  }
  /// Whether codes are bytes of which those of a column lie one below the other.
  static bool is_turned(const job& job, index_t step, index_t along) {
    return job.codes.bits == 8 && step == 1 && along != 1;
  }
  /// Such codes of a tile, from element `at` of y on.
  void turn_codes(const job& job, index_t at, index_t height, index_t width, index_t along) const {
    simd::transpose(static_cast<const std::uint8_t*>(codes_.get()), width, width, height, place(job, at), along);
  }
  static std::uint8_t* place(const job& job, index_t at) {
    return static_cast<std::uint8_t*>(job.y->data) + at * job.codes.bits / 8;
  }
  void encode_row(const job& job, index_t stride, index_t at, const float* x, index_t n, index_t length) {
    if (is_direct(job, stride, at, n)) return encode(job, x, n, length, place(job, at));
    encode(job, x, n, length, codes_.get());
    store_codes(job, stride, at, n, codes_.get());
  }
  void encode(const job& job, const float* x, index_t n, index_t length, std::uint8_t* to) const {
    if (length == 1)
      job.codes.columns(x, 1, n, n, scales_.get(), to, 0);
    else
      job.codes.grouped(x, n, length, scales_.get(), to);
  }
  /// n codes that lie as bytes, to every stride-th element of y.
  static void store_codes(const job& job, index_t stride, index_t at, index_t n, const std::uint8_t* codes) {
    if (is_direct(job, stride, at, n)) {
      std::copy_n(codes, n * job.codes.bits / 8, place(job, at));
      return;
    }
    std::uint8_t* y = static_cast<std::uint8_t*>(job.y->data);
    for (index_t i = 0; i < n; ++i) {
      if (job.codes.bits == 4)
        store_nibble(y, at + i * stride, codes[i / 2] >> (i % 2 * 4) & 0xFu);
      else
        y[at + i * stride] = codes[i];
    }
  }

  const input& x_;
  const job* jobs_;
  int count_;
  std::array<walk_axis, dims::most> list_{};
  int axes_ = 0, row_at_ = -1;
  std::array<index_t, 2> pair_{};
  index_t at_once_ = 0;  // elements whose scales and codes there is memory for
  std::unique_ptr<float[]> tile_, scales_;
  std::unique_ptr<std::uint32_t[]> amax_, stored_;
  std::unique_ptr<std::uint8_t[]> codes_;
};

}  // namespace qtensor::compat::cann::parts::inline QTENSOR_ABI
