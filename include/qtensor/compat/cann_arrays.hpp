// CANN's tensors at run time: numbers of types, sizes and strides, status values, and what is checked before a run.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <qtensor/core/error.hpp>
#include <qtensor/core/support.hpp>
#include <string>

namespace qtensor::compat::cann {

/// Numbers of data types, as `dstType` and tensors name them (NUMERICS 8.4).
namespace type {
inline constexpr std::int64_t f32 = 0;    ///< FLOAT
inline constexpr std::int64_t f16 = 1;    ///< FLOAT16
inline constexpr std::int64_t int8 = 2;   ///< INT8
inline constexpr std::int64_t bf16 = 27;  ///< BF16
inline constexpr std::int64_t hif8 = 34;  ///< HIFLOAT8
inline constexpr std::int64_t e5m2 = 35;  ///< FLOAT8_E5M2
inline constexpr std::int64_t e4m3 = 36;  ///< FLOAT8_E4M3FN
inline constexpr std::int64_t e8m0 = 37;  ///< FLOAT8_E8M0, what MX scales are
inline constexpr std::int64_t e2m1 = 40;  ///< FLOAT4_E2M1, two codes a byte, the first in the low nibble
inline constexpr std::int64_t e1m2 = 41;  ///< FLOAT4_E1M2, the same
}  // namespace type

/// Status values. The entry points return them at once: there is no workspace, so there is no first call to ask for its
/// size.
inline constexpr std::int64_t success = 0;
inline constexpr std::int64_t param_nullptr = 161001;  ///< ACLNN_ERR_PARAM_NULLPTR
inline constexpr std::int64_t param_invalid = 161002;  ///< ACLNN_ERR_PARAM_INVALID
inline constexpr std::int64_t runtime_error = 361001;  ///< ACLNN_ERR_RUNTIME_ERROR: not on this platform; out of memory

/// What an entry point returns: 0, or a number above and a sentence that says why. Outputs are untouched unless it is
/// 0.
struct [[nodiscard]] status {
  std::int64_t code = success;
  std::string reason;

  bool ok() const { return code == success; }
};

/// Sizes or strides, one number an axis: `{2, 64, 96}` or any range of integers. Ranks beyond 8 are remembered as such
/// and refused by the entry points.
class dims {
 public:
  static constexpr int most = 8;

  dims() = default;
  dims(std::initializer_list<index_t> numbers) { assign(numbers); }
  template <class Range>
  requires requires(const Range& r) {
    { *std::begin(r) } -> std::convertible_to<index_t>;
    std::end(r);
  }
  dims(const Range& numbers) { assign(numbers); }

  int rank() const { return rank_; }
  index_t operator[](int axis) const { return numbers_[static_cast<std::size_t>(axis)]; }
  index_t& operator[](int axis) { return numbers_[static_cast<std::size_t>(axis)]; }
  /// One more axis at the end.
  void append(index_t number) {
    if (rank_ < most) numbers_[static_cast<std::size_t>(rank_)] = number;
    ++rank_;
  }
  friend bool operator==(const dims& a, const dims& b) {
    if (a.rank_ != b.rank_) return false;
    for (int axis = 0; axis < a.rank_ && axis < most; ++axis)
      if (a[axis] != b[axis]) return false;
    return true;
  }

 private:
  template <class Range>
  void assign(const Range& numbers) {
    for (const auto number : numbers) append(static_cast<index_t>(number));
  }
  std::array<index_t, most> numbers_{};
  int rank_ = 0;
};

/// A tensor in memory, as aclTensor describes it. Strides count elements, have any sign and are dense row-major where
/// none are given; those of 4-bit types count codes. `data` is the element at index 0 of every axis, aligned to its
/// type.
template <class Pointer>
struct basic_array {
  Pointer data = nullptr;
  std::int64_t type = -1;
  dims sizes{};
  dims strides{};
};
using input = basic_array<const void*>;
using output = basic_array<void*>;

namespace parts {

template <class... Word>
status failure(std::int64_t code, const Word&... word) {
  status s{code, "qtensor: "};
  (qtensor::detail::append(s.reason, word), ...);
  return s;
}

/// Bits of an element of a type this file knows; 0 otherwise.
constexpr int bits_of_type(std::int64_t t) {
  switch (t) {
    case type::f32:
      return 32;
    case type::f16:
    case type::bf16:
      return 16;
    case type::e2m1:
    case type::e1m2:
      return 4;
    case type::int8:
    case type::hif8:
    case type::e5m2:
    case type::e4m3:
    case type::e8m0:
      return 8;
  }
  return 0;
}

inline std::string sizes_text(const dims& sizes) {
  std::string text = "[";
  for (int axis = 0; axis < sizes.rank() && axis < dims::most; ++axis)
    text += (axis != 0 ? ", " : "") + std::to_string(sizes[axis]);
  return text + "]";
}

template <class Pointer>
bool is_empty(const basic_array<Pointer>& a) {
  for (int axis = 0; axis < a.sizes.rank() && axis < dims::most; ++axis)
    if (a.sizes[axis] == 0) return true;
  return false;
}

/// 161001 where there is no memory for elements.
template <class Pointer>
status check_pointer(const char* name, const basic_array<Pointer>& a) {
  if (a.data == nullptr && !is_empty(a)) return failure(param_nullptr, name, " is a null pointer.");
  return {};
}

/// Strides as given, or the dense ones.
template <class Pointer>
dims strides_of(const basic_array<Pointer>& a) {
  if (a.strides.rank() != 0) return a.strides;
  dims dense = a.sizes;
  index_t next = 1;
  for (int axis = a.sizes.rank() - 1; axis >= 0; --axis) {
    dense[axis] = next;
    next *= a.sizes[axis] > 0 ? a.sizes[axis] : 1;
  }
  return dense;
}

/// Memory an array reaches over: elements [first, last] counted from `data`.
struct reach {
  index_t first = 0, last = 0;
  bool fits = true;  // in 63 bits, as bytes too
};
template <class Pointer>
reach reach_of(const basic_array<Pointer>& a) {
  reach out;
  index_t count = 8;  // times the elements: room for a conversion into bits
  for (int axis = 0; axis < a.sizes.rank(); ++axis)
    if (__builtin_mul_overflow(count, a.sizes[axis], &count)) out.fits = false;
  if (!out.fits) return out;
  const dims strides = strides_of(a);
  for (int axis = 0; axis < a.sizes.rank(); ++axis) {
    index_t far = 0, bits = 0;
    index_t& end = strides[axis] < 0 ? out.first : out.last;
    if (__builtin_mul_overflow(a.sizes[axis] - 1, strides[axis], &far) || __builtin_add_overflow(end, far, &end) ||
        __builtin_mul_overflow(end, index_t{32}, &bits))
      out.fits = false;
  }
  return out;
}

/// Where the elements of an array begin, in nibbles of memory, each place once for all axes of stride 0: in ascending
/// order where strides nest, that is, where each steps over all that the smaller ones reach.
class place_walk {
 public:
  /// Of an array that is not empty.
  template <class Pointer>
  explicit place_walk(const basic_array<Pointer>& a) : width_(bits_of_type(a.type) / 4) {
    const reach r = reach_of(a);
    const std::intptr_t data = 2 * reinterpret_cast<std::intptr_t>(a.data);
    at_ = first_ = data + r.first * width_;
    end_ = data + (r.last + 1) * width_;
    const dims strides = strides_of(a);
    for (int i = 0; i < a.sizes.rank(); ++i) {
      const index_t size = a.sizes[i], stride = strides[i];
      repeats_ = repeats_ || (size > 1 && stride == 0);
      if (size == 1 || stride == 0) continue;
      axes_[static_cast<std::size_t>(rank_++)] = {(stride < 0 ? -stride : stride) * width_, size, 0};
      count_ *= size;
    }
    std::sort(axes_.begin(), axes_.begin() + rank_, [](const axis& x, const axis& y) { return x.step > y.step; });
    std::intptr_t reached = 0;
    for (int i = rank_ - 1; i >= 0; --i) {
      const axis& x = axes_[static_cast<std::size_t>(i)];
      nests_ = nests_ && x.step > reached;
      reached += (x.size - 1) * x.step;
    }
  }

  /// Nibbles of an element, those of the memory that all reach over, and how many places there are, once each.
  std::intptr_t width() const { return width_; }
  std::intptr_t first() const { return first_; }
  std::intptr_t end() const { return end_; }
  index_t count() const { return count_; }
  bool nests() const { return nests_; }
  /// Whether an axis of several elements has the stride 0.
  bool repeats() const { return repeats_; }

  std::intptr_t at() const { return at_; }
  /// Goes on to the next place; false behind the last one.
  bool next() {
    for (int i = rank_ - 1; i >= 0; --i) {
      axis& x = axes_[static_cast<std::size_t>(i)];
      at_ += x.step;
      if (++x.index < x.size) return true;
      at_ -= x.index * x.step;
      x.index = 0;
    }
    return false;
  }

 private:
  struct axis {
    std::intptr_t step;
    index_t size, index;
  };
  std::array<axis, dims::most> axes_{};  // by falling step
  int rank_ = 0;
  std::intptr_t width_, first_ = 0, end_ = 0, at_ = 0;
  index_t count_ = 1;
  bool nests_ = true, repeats_ = false;
};

/// The same in ascending order always, by a list where strides do not nest.
class ascending_places {
 public:
  explicit ascending_places(const place_walk& walk) : walk_(walk) {
    if (walk_.nests()) return;
    list_.reset(new (std::nothrow) std::intptr_t[static_cast<std::size_t>(walk_.count())]);
    if (list_ == nullptr) return;
    index_t n = 0;
    do list_[static_cast<std::size_t>(n++)] = walk_.at();
    while (walk_.next());
    std::sort(list_.get(), list_.get() + n);
  }
  /// False where there was no memory for the list.
  bool known() const { return walk_.nests() || list_ != nullptr; }
  std::intptr_t at() const { return list_ == nullptr ? walk_.at() : list_[static_cast<std::size_t>(listed_)]; }
  bool next() { return list_ == nullptr ? walk_.next() : ++listed_ < walk_.count(); }

 private:
  place_walk walk_;
  std::unique_ptr<std::intptr_t[]> list_;
  index_t listed_ = 0;
};

/// Whether two elements of an array lie on one another; empty where there is no memory to find out.
template <class Pointer>
std::optional<bool> folds(const basic_array<Pointer>& a) {
  if (is_empty(a)) return false;
  const place_walk walk(a);
  if (walk.repeats() || walk.count() > (walk.end() - walk.first()) / walk.width()) return true;
  if (walk.nests()) return false;
  ascending_places places(walk);
  if (!places.known()) return std::nullopt;
  for (std::intptr_t before = places.at(); places.next(); before = places.at())
    if (places.at() == before) return true;
  return false;
}

/// Whether elements of two arrays lie on one another; empty where there is no memory to find out.
template <class A, class B>
std::optional<bool> share_memory(const basic_array<A>& a, const basic_array<B>& b) {
  if (is_empty(a) || is_empty(b)) return false;
  const place_walk of_a(a), of_b(b);
  if (of_a.end() <= of_b.first() || of_b.end() <= of_a.first()) return false;
  ascending_places p(of_a), q(of_b);
  if (!p.known() || !q.known()) return std::nullopt;
  for (;;)
    if (p.at() + of_a.width() <= q.at()) {
      if (!p.next()) return false;
    } else if (q.at() + of_b.width() <= p.at()) {
      if (!q.next()) return false;
    } else {
      return true;
    }
}

/// Sizes, strides and alignment of any array.
template <class Pointer>
status check_memory(const char* name, const basic_array<Pointer>& a) {
  for (int axis = 0; axis < a.sizes.rank(); ++axis)
    if (a.sizes[axis] < 0)
      return failure(param_invalid, name, " has ", a.sizes[axis], " elements on axis ", axis,
                     "; sizes are at least 0.");
  if (a.strides.rank() != 0 && a.strides.rank() != a.sizes.rank())
    return failure(param_invalid, name, " has ", a.strides.rank(), " strides for ", a.sizes.rank(), " axes.");
  if (!is_empty(a) && !reach_of(a).fits)
    return failure(param_invalid, name, " of sizes ", sizes_text(a.sizes), " does not fit 63 bits.");
  const std::uintptr_t unit = bits_of_type(a.type) > 8 ? static_cast<std::uintptr_t>(bits_of_type(a.type) / 8) : 1;
  if (!is_empty(a) && reinterpret_cast<std::uintptr_t>(a.data) % unit != 0)
    return failure(param_invalid, name, " is not aligned to its ", static_cast<index_t>(unit), "-byte elements.");
  return {};
}

/// A source: f16, bf16 or f32 of `least` to `greatest` axes.
inline status check_input(const input& x, int least, int greatest) {
  if (x.type != type::f16 && x.type != type::bf16 && x.type != type::f32)
    return failure(param_invalid, "x has data type ", x.type, "; sources are f16 (1), bf16 (27) or f32 (0).");
  if (x.sizes.rank() < least || x.sizes.rank() > greatest)
    return failure(param_invalid, "x has rank ", x.sizes.rank(), "; it must be ", least, " to ", greatest, ".");
  return check_memory("x", x);
}

/// A result of the type and sizes it has to have, apart from x, each element in a place of its own.
inline status check_output(const char* name, const output& y, std::int64_t wanted_type, const dims& wanted_sizes,
                           const input& x) {
  if (y.type != wanted_type)
    return failure(param_invalid, name, " has data type ", y.type, "; it must be ", wanted_type, ".");
  if (!(y.sizes == wanted_sizes))
    return failure(param_invalid, name, " has sizes ", sizes_text(y.sizes), "; it must have ", sizes_text(wanted_sizes),
                   ".");
  if (status s = check_memory(name, y); !s.ok()) return s;
  const std::optional<bool> folded = folds(y);
  if (folded == true) return failure(param_invalid, name, " has strides that lead to the same element twice.");
  const std::optional<bool> shared = folded ? share_memory(y, x) : folded;
  if (!shared) return failure(runtime_error, "there is no memory to compare ", name, " with x.");
  if (*shared) return failure(param_invalid, name, " overlaps x.");
  return {};
}

/// Results that must not lie on one another.
inline status check_apart(const char* name, const output& a, const char* other, const output& b) {
  const std::optional<bool> shared = share_memory(a, b);
  if (!shared) return failure(runtime_error, "there is no memory to compare ", name, " with ", other, ".");
  if (*shared) return failure(param_invalid, name, " overlaps ", other, ".");
  return {};
}

}  // namespace parts

}  // namespace qtensor::compat::cann
