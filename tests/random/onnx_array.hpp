// Arrays in ONNX's layout, packed across rows, read and written code by code.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/compat/onnx_types.hpp>

#include "array.hpp"

namespace fuzz::onnx_arrays {

using namespace qtensor;
namespace onnx = qtensor::compat::onnx;

/// An array in ONNX's layout.
template <format F>
struct flat {
  std::vector<onnx::unit<F>> units;

  explicit flat(index_t n) : units(static_cast<std::size_t>(onnx::unit_count<F>(n))) {}
  std::uint32_t operator[](index_t i) const {
    if constexpr (F::bits < 8)
      return (static_cast<std::uint32_t>(units[static_cast<std::size_t>(i * F::bits / 8)]) >> (i * F::bits % 8)) &
             low_bits(F::bits);
    else
      return qtensor::detail::code_of<F>(units[static_cast<std::size_t>(i)]);
  }
  void set(index_t i, std::uint32_t code) {
    if constexpr (F::bits < 8) {
      auto& unit = units[static_cast<std::size_t>(i * F::bits / 8)];
      const int at = static_cast<int>(i * F::bits % 8);
      unit = static_cast<onnx::unit<F>>((unit & ~(low_bits(F::bits) << at)) | (code & low_bits(F::bits)) << at);
    } else {
      units[static_cast<std::size_t>(i)] = qtensor::detail::unit_from<F>(code & low_bits(F::bits));
    }
  }
  float number(index_t i) const { return decode<F>((*this)[i]); }
  std::span<const onnx::unit<F>> span() const { return units; }
};

template <format F>
flat<F> draw_codes(fuzz::dice& dice, index_t n) {
  flat<F> out(n);
  for (index_t i = 0; i < n; ++i) out.set(i, dice.bits());
  return out;
}

}  // namespace fuzz::onnx_arrays
