// Memory of kernels: arrays that begin on a cache line and end with one.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstring>
#include <memory>
#include <new>
#include <qtensor/simd/abi.hpp>
#include <qtensor/tensor/shape.hpp>

namespace qtensor::inline QTENSOR_ABI::ops {

/// Arrays of whole cache lines: of zeros, or of whatever was there.
template <class T>
class line_array {
 public:
  line_array() = default;
  explicit line_array(index_t n) : line_array(for_overwrite(n)) {
    std::memset(static_cast<void*>(data_.get()), 0, static_cast<std::size_t>(bytes(n)));
  }
  static line_array for_overwrite(index_t n) {
    line_array out;
    out.size_ = n;
    out.data_.reset(static_cast<T*>(::operator new (static_cast<std::size_t>(bytes(n)), std::align_val_t{64})));
    return out;
  }
  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  index_t size() const { return size_; }
  T& operator[](index_t i) { return data_.get()[i]; }
  const T& operator[](index_t i) const { return data_.get()[i]; }

 private:
  static index_t bytes(index_t n) { return round_up(qtensor::detail::checked_product(n, sizeof(T)), 64); }
  struct release {
    void operator()(T* p) const { ::operator delete (p, std::align_val_t{64}); }
  };
  index_t size_ = 0;
  std::unique_ptr<T, release> data_;
};

}  // namespace qtensor::inline QTENSOR_ABI::ops
