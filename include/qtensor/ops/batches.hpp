// Products of tensors of any rank: which matrices meet, by the broadcasting of numpy.matmul.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <qtensor/core/error.hpp>
#include <qtensor/simd/abi.hpp>
#include <qtensor/tensor/shape.hpp>
#include <span>
#include <vector>

namespace qtensor::inline QTENSOR_ABI {

/// The last two dimensions of both operands are matrices (m x k and k x n), the leading ones are broadcast; a vector on
/// the left is a row, on the right a column, and its dimension is left out of the result.
///   {2, 1, 5, 3} x {4, 3, 7}: {2, 4, 5, 7}
class product_batches {
 public:
  index_t m = 1, k = 1, n = 1;
  std::vector<index_t> dims;  ///< of the result

  /// Throws where the dimensions do not fit, naming them.
  product_batches(std::span<const index_t> left, std::span<const index_t> right) {
    require(!left.empty() && !right.empty(), "a product of tensors of rank ", left.size(), " and ", right.size(),
            "; both have at least one dimension.");
    for (const auto& side : {left, right})
      for (const index_t d : side) require(d >= 0, "a product has a dimension of ", d, "; dimensions are at least 0.");
    m = left.size() > 1 ? left[left.size() - 2] : 1;
    k = left.back();
    n = right.size() > 1 ? right.back() : 1;
    const index_t met = right.size() > 1 ? right[right.size() - 2] : right.back();
    require(k == met, "the left operand of a product has ", k, " elements along the sum, the right one ", met,
            "; they must be equal.");
    const std::size_t lefts = left.size() > 2 ? left.size() - 2 : 0, rights = right.size() > 2 ? right.size() - 2 : 0;
    const std::size_t rank = std::max(lefts, rights);
    index_t left_count = 1, right_count = 1;
    dims.resize(rank);
    for (std::size_t d = rank; d-- > 0;) {
      const index_t a = d + lefts < rank ? 1 : left[d + lefts - rank];
      const index_t b = d + rights < rank ? 1 : right[d + rights - rank];
      require(a == b || a == 1 || b == 1, "leading dimension ", d, " of a product is ", a, " on the left and ", b,
              " on the right; they must be equal, or one of them 1.");
      dims[d] = a == 1 ? b : a;
      add({dims[d], a == 1 ? 0 : left_count, b == 1 ? 0 : right_count});
      left_count = detail::checked_product(left_count, a), right_count = detail::checked_product(right_count, b);
    }
    if (left.size() > 1) dims.push_back(m);
    if (right.size() > 1) dims.push_back(n);
  }
  /// Matrices of the result.
  index_t count() const { return count_; }
  /// Which matrix of each operand makes matrix i of the result.
  index_t left(index_t i) const { return place<&axis::left>(i); }
  index_t right(index_t i) const { return place<&axis::right>(i); }
  /// Calls use(first, count) for runs of batches in which one right matrix meets left ones that follow each other:
  /// their rows are one long matrix.
  template <class Use>
  void for_each_run(const Use& use) const {
    for (index_t first = 0, end = 0; first < count(); first = end) {
      for (end = first + 1; end < count(); ++end)
        if (right(end) != right(first) || left(end) != left(end - 1) + 1) break;
      use(first, end - first);
    }
  }
  /// The most batches of a run.
  index_t longest_run() const {
    index_t most = 0;
    for_each_run([&](index_t, index_t count) { most = std::max(most, count); });
    return most;
  }

 private:
  /// A leading axis of the result, or several that are one on both sides, and the matrices from one index to the next.
  struct axis {
    index_t extent, left, right;
  };

  /// One more axis, outside of those there are.
  void add(const axis& outer) {
    count_ = detail::checked_product(count_, outer.extent);
    if (outer.extent == 1) return;
    axis* const inner = axes_.empty() ? nullptr : &axes_.back();
    if (inner != nullptr && outer.left == inner->left * inner->extent && outer.right == inner->right * inner->extent)
      inner->extent *= outer.extent;
    else
      axes_.push_back(outer);
  }
  template <index_t axis::*Step>
  index_t place(index_t i) const {
    index_t at = 0;
    for (const axis& a : axes_) {
      at += i % a.extent * (a.*Step);
      i /= a.extent;
    }
    return at;
  }

  std::vector<axis> axes_;  // innermost first
  index_t count_ = 1;
};

/// The number of elements of a tensor with these dimensions; throws where it does not fit 63 bits.
inline index_t element_count(std::span<const index_t> dims) { return detail::checked_product(dims); }

}  // namespace qtensor::inline QTENSOR_ABI
