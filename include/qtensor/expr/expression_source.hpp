// Any Eigen expression as a source: one evaluator for the whole expression, pulled tile by tile in its own order.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <qtensor/expr/leaves.hpp>
#include <qtensor/expr/operand.hpp>
#include <qtensor/ops/rows.hpp>
#include <qtensor/simd/memory.hpp>
#include <qtensor/simd/ops_columns.hpp>

namespace qtensor::inline QTENSOR_ABI {

namespace expr_detail {

/// Reading costs of an element up to which a second reading is cheaper than a copy: some loads and arithmetic, no exp.
inline constexpr int cheap_enough = 32;

/// Lane c of packet r of a square of registers to to[c * to_stride + r]. `load(r)` gives packet r; `first` is load(0)
/// and only there to be deduced (compilers warn where a register's type is written as a template argument).
template <int Lanes, class Packet, class Load>
EIGEN_STRONG_INLINE void store_transposed(const Packet& first, Load load, float* to, index_t to_stride) {
  if constexpr (Lanes == 16 && Lanes == simd::lanes<simd::best_arch>) {  // Eigen's own takes twice as many shuffles
    std::array<simd::floats<simd::best_arch>, Lanes> square;
    square[0] = first;
#pragma GCC unroll 16
    for (index_t k = 1; k < Lanes; ++k) square[static_cast<std::size_t>(k)] = load(k);
    simd::turn_square<simd::best_arch>(square);
#pragma GCC unroll 16
    for (index_t k = 0; k < Lanes; ++k) simd::store(to + k * to_stride, square[static_cast<std::size_t>(k)]);
  } else {
    Eigen::internal::PacketBlock<Packet, Lanes> square;
    square.packet[0] = first;
    for (index_t k = 1; k < Lanes; ++k) square.packet[k] = load(k);
    Eigen::internal::ptranspose(square);
    for (index_t k = 0; k < Lanes; ++k) Eigen::internal::pstoreu(to + k * to_stride, square.packet[k]);
  }
}

/// Expressions that may not be read twice, nor in any order: random numbers, callables with a state.
template <class Evaluator>
inline constexpr bool is_repeatable = (static_cast<int>(Evaluator::Flags) & Eigen::EvalBeforeNestingBit) == 0;

}  // namespace expr_detail

/// A tile_source over an Eigen expression of floats, for a tensor of storage order Order: its rows are the expression's
/// rows (row_major) or columns. Products inside the expression are evaluated once, here; nothing else is evaluated
/// before it is read, and nothing of the expression's size is allocated. Holds what evaluators hold: the expression
/// must outlive it.
template <class Xpr, storage_order Order>
class expression_source {
  using evaluator = Eigen::internal::evaluator<Xpr>;
  using packet = expr_detail::float_packet;
  static constexpr index_t lanes = expr_detail::packet_lanes;
  static constexpr int flags = evaluator::Flags;
  static constexpr bool has_packets = (flags & Eigen::PacketAccessBit) != 0 && lanes > 1;
  static constexpr bool is_row_major = (flags & Eigen::RowMajorBit) != 0;
  static constexpr std::size_t leaf_count = static_cast<std::size_t>(expr_detail::leaves<Xpr>::count);

 public:
  static constexpr bool reads_rows = is_row_major == std::is_same_v<Order, row_major>;
  static constexpr bool is_one_column =
      (std::is_same_v<Order, row_major> ? Xpr::ColsAtCompileTime : Xpr::RowsAtCompileTime) == 1;
  static constexpr bool is_repeatable = expr_detail::is_repeatable<evaluator>;
  static constexpr bool reads_twice =
      is_repeatable && static_cast<int>(evaluator::CoeffReadCost) <= expr_detail::cheap_enough;

  explicit expression_source(const Xpr& x)
      : evaluator_(x), row_count_(x.rows()), col_count_(x.cols()), leaves_(expr_detail::leaves_in_order<Order>(x)) {
    if constexpr (expr_detail::has_memory<Xpr>) {
      data_ = x.data();
      row_stride_ = x.rowStride();
      col_stride_ = x.colStride();
    }
  }
  expression_source(const expression_source&) = delete;
  expression_source& operator=(const expression_source&) = delete;

  index_t rows() const { return by_rows ? row_count_ : col_count_; }
  index_t cols() const { return by_rows ? col_count_ : row_count_; }

  const float* direct(index_t row, index_t col) const {
    if constexpr (expr_detail::has_memory<Xpr>) {
      const index_t across = by_rows ? row_stride_ : col_stride_, along = by_rows ? col_stride_ : row_stride_;
      if (along == 1) return data_ + row * across + col;
    }
    return nullptr;
  }

  std::optional<index_t> row_step() const {
    const index_t across = by_rows ? row_stride_ : col_stride_, along = by_rows ? col_stride_ : row_stride_;
    return expr_detail::has_memory<Xpr> && along == 1 ? std::optional(across) : std::nullopt;
  }

  void read(index_t row, index_t rows, index_t col, index_t cols, float* tile, index_t stride) const {
    if constexpr (reads_rows) {
      read_lines(row, rows, col, cols, tile, stride, asks());
    } else {
      index_t done = 0;
      if constexpr (has_packets) {
        done = rows / lanes * lanes;
        if (asks())
          read_across<may_ask>(row, done, col, cols, tile, stride);
        else
          read_across<false>(row, done, col, cols, tile, stride);
        if (read_few(row + done, rows - done, col, cols, tile + done * stride, stride)) return;
      }
      for (index_t r = done; r < rows; ++r)
        for (index_t c = 0; c < cols; ++c) tile[r * stride + c] = at(row + r, col + c);
    }
  }
  /// The same of columns, which are the expression's own lines: element (row + r, col + c) to tile[c * stride + r].
  void read_columns(index_t row, index_t rows, index_t col, index_t cols, float* tile, index_t stride,
                    bool asks = true) const requires(is_repeatable && !reads_rows) {
    read_lines(row, rows, col, cols, tile, stride, asks && this->asks());
  }

  /// What asks for the memory of a box, a row's worth at a time, and ...
  auto box_requests(index_t row, index_t rows, index_t col, index_t cols) const requires(!reads_rows) {
    return expr_detail::requests_of_box(leaves_, row, rows, col, cols, asks() && row < this->rows());
  }
  /// ... for columns of `rows` elements from (row, col) on, as much at a time as read_along reads.
  auto column_requests(index_t row, index_t rows, index_t col) const { return leaves_down(row, rows, col); }

 private:
  static constexpr bool by_rows = std::is_same_v<Order, row_major>, may_ask = leaf_count > 0;

  /// Whether leaves are asked for what comes from memory.
  bool asks() const { return may_ask && row_count_ * col_count_ >= ops::streaming_floats; }
  float at(index_t row, index_t col) const { return by_rows ? evaluator_.coeff(row, col) : evaluator_.coeff(col, row); }
  packet packet_at(index_t row, index_t col) const {
    if constexpr (by_rows)
      return evaluator_.template packet<Eigen::Unaligned, packet>(row, col);
    else
      return evaluator_.template packet<Eigen::Unaligned, packet>(col, row);
  }
  /// From one element of the expression's own lines to the next.
  static constexpr index_t line_down = reads_rows ? 0 : 1, line_along = reads_rows ? 1 : 0;
  /// Packets that are read before they are stored: a store may be to what the evaluator holds, for all compilers know,
  /// so that behind each its pointers are loaded anew.
  static constexpr int together = 4;
  template <int Count>
  void read_packets(index_t row, index_t col, float* to) const {
    packet some[Count];
#pragma GCC unroll 4
    for (index_t k = 0; k < Count; ++k) some[k] = packet_at(row + k * lanes * line_down, col + k * lanes * line_along);
#pragma GCC unroll 4
    for (index_t k = 0; k < Count; ++k) Eigen::internal::pstoreu(to + k * lanes, some[k]);
  }
  /// Lines of a box, each to a row of the tile. `asks`: of what comes from memory, for what lies a little further on in
  /// a line, and for the next one where several are parts of columns.
  void read_lines(index_t row, index_t rows, index_t col, index_t cols, float* tile, index_t stride, bool asks) const {
    const index_t lines = reads_rows ? rows : cols, n = reads_rows ? cols : rows;
    if constexpr (!has_packets) {
      for (index_t k = 0; k < lines; ++k) read_line(row + k * line_along, col + k * line_down, n, tile + k * stride);
    } else if (!asks) {
      std::array<simd::run_requests, 0> none;
      for (index_t k = 0; k < lines; ++k)
        read_along(row + k * line_along, col + k * line_down, n, tile + k * stride, none);
    } else if (reads_rows || lines == 1) {
      for (index_t k = 0; k < lines; ++k) {
        auto ahead = leaves_along(row + k * line_along, col + k * line_down, n);
        read_along(row + k * line_along, col + k * line_down, n, tile + k * stride, ahead);
      }
    } else {
      auto ahead = leaves_down(row, n, col + 1);
      for (index_t k = 0; k < lines; ++k) read_along(row, col + k, n, tile + k * stride, ahead);
    }
  }
  /// A part of a line, while what is `ahead` is asked for.
  void read_along(index_t row, index_t col, index_t n, float* to, auto& ahead) const {
    constexpr index_t block = together * lanes;
    index_t i = 0;
    for (; i + block <= n; i += block) {
      for (simd::run_requests& one : ahead) one.ask();
      read_packets<together>(row + i * line_down, col + i * line_along, to + i);
    }
    for (; i + lanes <= n; i += lanes) read_packets<1>(row + i * line_down, col + i * line_along, to + i);
    for (; i < n; ++i) to[i] = at(row + i * line_down, col + i * line_along);
  }
  [[gnu::flatten]] QTENSOR_VECTOR_LOOPS void read_line(index_t row, index_t col, index_t n, float* to) const {
    for (index_t i = 0; i < n; ++i) to[i] = at(row + i * line_down, col + i * line_along);
  }
  /// Of each leaf what run(its element at (row, col), bytes to that below, to the next one in the row, of one) says.
  template <class Run>
  std::array<simd::run_requests, leaf_count> leaves_at(index_t row, index_t col, const Run& run) const {
    std::array<simd::run_requests, leaf_count> all;
    auto* to = all.data();
    for (const expr_detail::leaf& x : leaves_) *to++ = run(x.at(row, col), x.down, x.along, x.size);
    return all;
  }
  /// Of each leaf: the box of `rows` rows at (row, col), whose runs go down them, a square at a time.
  auto leaves_ahead(index_t row, index_t rows, index_t col) const {
    return leaves_at(row, col, [rows](const std::uint8_t* at, index_t, index_t along, index_t size) {
      return simd::run_requests{at, along, rows * size, lanes * lanes * size};
    });
  }
  /// The same, as many as read_along reads at a time; of leaves that lie in the other order nothing.
  auto leaves_down(index_t row, index_t rows, index_t col) const {
    return leaves_at(row, col, [rows](const std::uint8_t* at, index_t down, index_t along, index_t size) {
      return simd::run_requests{at, along, rows * size, down == size ? together * lanes * size : 0};
    });
  }
  /// Of each leaf: what lies behind (row, col) in a line of which n elements are read, as one run without an end; what
  /// long parts read lasts longer.
  auto leaves_along(index_t row, index_t col, index_t n) const {
    constexpr index_t nearest = 256, furthest = 512;
    const index_t further = std::clamp(n / 4, nearest, furthest);
    return leaves_at(row + further * line_down, col + further * line_along,
                     [](const std::uint8_t* at, index_t down, index_t along, index_t size) {
                       constexpr index_t endless = std::numeric_limits<index_t>::max();
                       const bool is_line = (reads_rows ? along : down) == size;
                       return simd::run_requests{at, 0, endless, is_line ? together * lanes * size : 0};
                     });
  }
  /// Whole packets of rows, from packets that run across them, a few of the expression's own lines at a time: squares
  /// are transposed in registers. `Asks`: what comes from memory is asked for that many lines ahead.
  template <bool Asks>
  void read_across(index_t row, index_t rows, index_t col, index_t cols, float* tile, index_t stride) const {
    index_t c = 0;
    for (; c + lanes <= cols; c += lanes) {
      auto ahead = leaves_ahead(row, rows, col + c + lanes);
      for (index_t r = 0; r < rows; r += lanes) {
        if constexpr (Asks)
          for (simd::run_requests& one : ahead) one.ask();
        const auto load = [&](index_t k) { return packet_at(row + r, col + c + k); };
        expr_detail::store_transposed<expr_detail::packet_lanes>(load(0), load, tile + r * stride + c, stride);
      }
    }
    for (; c < cols; ++c)
      for (index_t r = 0; r < rows; r += lanes) {
        alignas(64) float column[static_cast<std::size_t>(lanes)];
        Eigen::internal::pstoreu(column, packet_at(row + r, col + c));
        for (index_t k = 0; k < lanes; ++k) tile[(r + k) * stride + c] = column[k];
      }
  }

  /// Fewer rows than a packet holds, which would take longer one by one: from packets that begin above them, or where
  /// there are no others, from the expression as one line. False, with nothing read, where neither can be had.
  bool read_few(index_t row, index_t rows, index_t col, index_t cols, float* tile, index_t stride) const {
    constexpr index_t fewest = 3;
    if (!is_repeatable || rows < fewest) return false;
    if (row + rows >= lanes) {
      alignas(64) float square[static_cast<std::size_t>(lanes * lanes)];
      const index_t first = row + rows - lanes;
      for (index_t c = 0; c < cols; c += lanes) {
        const index_t n = std::min(lanes, cols - c);
        read_across<false>(first, lanes, col + c, n, square, lanes);
        simd::copy_rows(static_cast<const float*>(square) + (lanes - rows) * lanes, lanes, rows, n, tile + c, stride);
      }
      return true;
    }
    if constexpr ((flags & Eigen::LinearAccessBit) != 0) {
      if (rows != this->rows()) return false;
      constexpr index_t most = 1024;
      alignas(64) float line[static_cast<std::size_t>(most)];
      for (index_t c = 0, n; c < cols; c += n) {
        n = std::min(most / rows, cols - c);
        read_flat((col + c) * rows, n * rows, line);
        simd::transpose(static_cast<const float*>(line), rows, rows, n, tile + c, stride);
      }
      return true;
    }
    return false;
  }
  /// Elements [first, first + n) of the expression as one line.
  void read_flat(index_t first, index_t n, float* to) const requires((flags & Eigen::LinearAccessBit) != 0) {
    index_t i = 0;
    for (; i + lanes <= n; i += lanes)
      Eigen::internal::pstoreu(to + i, evaluator_.template packet<Eigen::Unaligned, packet>(first + i));
    for (; i < n; ++i) to[i] = evaluator_.coeff(first + i);
  }

  evaluator evaluator_;
  index_t row_count_, col_count_;
  const float* data_ = nullptr;
  index_t row_stride_ = 0, col_stride_ = 0;
  std::array<expr_detail::leaf, leaf_count> leaves_;
};

}  // namespace qtensor::inline QTENSOR_ABI
