// Integer products on matrix registers: squares of sums, and sinks that take the last ones while the next are summed.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <optional>
#include <qtensor/ops/integer_rows.hpp>
#include <qtensor/simd/gemm_squares.hpp>
#include <vector>

namespace qtensor::inline QTENSOR_ABI::ops {

/// Whether a product of so many rows and quads is faster on matrix registers.
template <simd::usable_arch A>
bool prefers_squares(index_t rows, index_t quads) {
  return rows > simd::int_tile<A>::max_rows && quads >= 8 && simd::uses_squares<A>();
}

/// The rows [row, row + rows) of one panel: what a sink takes.
template <class Panels>
struct square_block {
  integer_panel<Panels>* panel = nullptr;
  index_t panel_number = 0, row = 0, rows = 0;
  std::int32_t* sums = nullptr;
};

/// All tiles of rows [0, rows) of x against panels [first, first + count), as integer_tiles has them, for sums that fit
/// 32 bits.
template <class Panels, class Rows, class Finish>
class square_product {
  using A = typename Panels::arch;
  using panel_type = integer_panel<Panels>;
  using block = square_block<Panels>;
  using session = typename simd::square_unit<A>::session;
  static constexpr index_t width = Panels::layout_type::width, edge = simd::square_edge, most_rows = 2 * edge;
  static constexpr index_t step_bytes = edge * width * 4;
  // Two buffers, of which one is read while the other is written; a line between them, as stores keep back loads that
  // lie a page behind them.
  static constexpr index_t buffer = most_rows * width + 16;

 public:
  square_product(Panels& weights, const Rows& x, index_t rows, index_t row, const Finish& finish)
      : weights_(weights),
        x_(x),
        rows_(rows),
        row_(row),
        finish_(finish),
        steps_(divide_up(weights.layout().quads(), edge)) {}

  void over(index_t first, index_t count) {
    // Panels that stay in the second cache while all rows pass; what is packed on the way has room for one.
    constexpr bool is_packed = !requires { weights_.weights(); };
    constexpr index_t panel_share = index_t{1} << 19;
    const index_t together = is_packed ? std::max(index_t{1}, panel_share / weights_.layout().panel_bytes()) : 1;
    alignas(64) std::int32_t room[2 * buffer];
    session_.emplace();
    for (index_t p = first; p < first + count; p += together) {
      prepare(p, std::min(together, first + count - p));
      for (index_t m = 0; m < rows_; m += most_rows)
        for (index_t i = 0; i < static_cast<index_t>(panels_.size()); ++i)
          sum({&panels_[static_cast<std::size_t>(i)], p + i, m, std::min(most_rows, rows_ - m),
               room + (turn_ ^= 1) * buffer},
              i);
      drain();
    }
    session_.reset();
  }

 private:
  void prepare(index_t p, index_t count) {
    const index_t rest = weights_.layout().quads() % edge;
    panels_.clear();
    panels_.reserve(static_cast<std::size_t>(count));
    if (rest != 0 && last_.size() < count * step_bytes) last_ = line_array<std::int8_t>(count * step_bytes);
    for (index_t i = 0; i < count; ++i) {
      panel_type& panel = panels_.emplace_back(weights_.panel(p + i), weights_.tensor_scale());
      if (x_.has_one_zero())
        panel.start_from(std::int64_t{x_.zero(0)} + simd::quad_dot<A>::unit_offset);
      else
        std::fill_n(panel.start, width, 0);
      if (rest != 0)
        std::memcpy(last_.data() + i * step_bytes, panel.codes() + (steps_ - 1) * step_bytes,
                    static_cast<std::size_t>(rest * width * 4));
    }
  }

  /// Sums a block, while the one before it goes to the sink.
  void sum(const block& b, index_t i) {
    const std::int8_t* codes = b.panel->codes();
    const std::int8_t* last = last_.size() > 0 ? last_.data() + i * step_bytes : codes + (steps_ - 1) * step_bytes;
    const simd::square_operands<A> all{{x_.row(b.row), x_.stride()}, codes, last, steps_, b.panel->start};
    const auto half = [&](index_t c) QTENSOR_INLINE_LAMBDA {
      auto part = all;
      part.quads += c * 4, part.last += c * 4, part.start += c;
      return part;
    };
    const bool is_low = b.rows <= edge;
    pace(4 * (steps_ - 1) * (is_low ? 1 : 2));
    const auto beside = [&]() QTENSOR_INLINE_LAMBDA {
      if (Finish::runs_beside && --wait_ == 0) finish_some();
    };
    if (is_low) {
      squares_.template sum<simd::square_shape::one_by_four>(all, b.sums, beside);
    } else {
      squares_.template sum<simd::square_shape::two_by_two>(half(0), b.sums, beside);
      squares_.template sum<simd::square_shape::two_by_two>(half(width / 2), b.sums + width / 2, beside);
    }
    finish_rows(before_.rows - done_);
    before_ = b, done_ = 0;
    if constexpr (!Finish::runs_beside) {  // whatever it runs may use the registers
      drain();
      session_.emplace();
    }
  }
  /// All sums to the sink.
  void drain() {
    if (before_.rows == 0) return;
    squares_.finish();
    if constexpr (!Finish::runs_beside) session_.reset();
    finish_rows(before_.rows - done_);
    before_ = {}, done_ = 0;
  }

  /// Spreads the rows of the block before over so many instructions.
  void pace(index_t instructions) {
    const index_t rows = std::max(before_.rows, index_t{1});
    every_ = wait_ = std::max(instructions / rows, index_t{1});
    some_ = divide_up(rows, std::max(instructions / every_, index_t{1}));
  }
  void finish_some() {
    wait_ = every_;
    finish_rows(std::min(some_, before_.rows - done_));
  }
  void finish_rows(index_t count) {
    if (count <= 0) return;
    const index_t m = before_.row + done_, col = before_.panel_number * width;
    std::int32_t* const sums = before_.sums + done_ * width;
    before_.panel->take_zeros(x_, m, count, weights_.layout().depth, x_.has_one_zero(), sums);
    finish_(x_, m, *before_.panel, row_ + m, col, count, std::min(width, weights_.layout().outputs - col), sums, width,
            reinterpret_cast<float*>(sums));
    done_ += count;
  }

  Panels& weights_;
  const Rows& x_;
  index_t rows_, row_;
  const Finish& finish_;
  index_t steps_;
  std::vector<panel_type> panels_;
  line_array<std::int8_t> last_;
  std::optional<session> session_;
  simd::square_sums_in_turn<A> squares_;
  block before_;
  index_t done_ = 0, wait_ = 1, every_ = 1, some_ = 1, turn_ = 0;
};

}  // namespace qtensor::inline QTENSOR_ABI::ops
