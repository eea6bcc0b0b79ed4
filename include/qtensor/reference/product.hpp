// Products of quantized operands, output by output: exact sums of codes, scaled once or once per group of k.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstdint>
#include <qtensor/core/rounded.hpp>
#include <qtensor/core/support.hpp>

// An operand is what one row of it says of every k: number(k), an integer (its zero point already subtracted), and
// scale(k). Its value at k is number(k) * scale(k), for weights number(k) * unit * scale(k) (+ offset(k)).
namespace qtensor::reference {

/// The exact sum of number(k) products over k in [first, end).
template <class X, class W>
std::int64_t integer_dot(const X& x, const W& w, index_t first, index_t end) {
  std::int64_t sum = 0;
  for (index_t k = first; k < end; ++k)
    sum += static_cast<std::int64_t>(x.number(k)) * static_cast<std::int64_t>(w.number(k));
  return sum;
}

/// An exact sum that leaves the integers: RN(RN(float(sum) * x_scale) * w_scale).
inline float scaled_sum(std::int64_t sum, float x_scale, float w_scale) {
  return rounded(rounded(static_cast<float>(sum) * x_scale) * w_scale);
}

/// One output where both operands have one scale along k: scaled_sum of integer_dot. +0 without k. The scale of a
/// two-level operand is RN(block scale * tensor scale).
template <class X, class W>
float integer_product(const X& x, const W& w, index_t depth) {
  return depth == 0 ? 0.f : scaled_sum(integer_dot(x, w, 0, depth), x.scale(0), w.scale(0));
}

/// One output where scales change every `group` elements of k, the last group maybe short: from y = +0, for groups g
/// ascending, with s the scale of x times w.unit,
///   y = fma(float(integer_dot of g), RN(s * w's scale), y)     where x has a scale for each group
///   y = fma(float(integer_dot of g), w's scale, y)             where x has one scale (x.one_scale); y = RN(y * s) last
/// Where w.has_offset, w.offset(k) is added to every weight of a group: with t the sum of x.number over g, after each
/// dot y = fma(RN(x's scale * t), offset, y), or y = fma(t / w.unit, offset, y) where x has one scale. In the end
/// y = RN(y * w.tensor_scale) where w.has_tensor_scale. w.unit is a power of two. One group of weights that are
/// integers, without offsets, is an integer_product instead.
template <class X, class W>
float group_product(const X& x, const W& w, index_t depth, index_t group) {
  float y = 0.f;
  if (depth == 0) return y;
  for (index_t first = 0; first < depth; first += group) {
    const index_t end = depth - first < group ? depth : first + group;
    const auto dot = static_cast<float>(integer_dot(x, w, first, end));
    const float s = rounded(x.scale(first) * w.unit);
    y = std::fma(dot, x.one_scale ? w.scale(first) : rounded(s * w.scale(first)), y);
    if (!w.has_offset) continue;
    std::int64_t sum = 0;
    for (index_t k = first; k < end; ++k) sum += x.number(k);
    const auto total = static_cast<float>(sum);
    y = std::fma(x.one_scale ? total / w.unit : rounded(x.scale(first) * total), w.offset(first), y);
  }
  if (x.one_scale) y = rounded(y * rounded(x.scale(0) * w.unit));
  return w.has_tensor_scale ? rounded(y * w.tensor_scale) : y;
}

}  // namespace qtensor::reference
