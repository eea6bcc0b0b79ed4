// What the tests of reductions share: the schemes of the RFC's snippets and tensors of given codes.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <doctest/doctest.h>

#include <qtensor/ops/elements.hpp>
#include <qtensor/ops/quantize.hpp>
#include <qtensor/scheme/schemes.hpp>
#include <string>
#include <vector>

#include "core/sentence.hpp"

namespace reduce_check {

using namespace qtensor;

using u8 = scheme<uint8, per_tensor, zero_point<uint8>, static_only, zp_before_round, nan_to_zero>;
using i8 = scheme<int8, per_tensor, zero_point<int8>, static_only, zp_before_round, nan_to_zero>;
using i32 = scheme<int32, per_tensor, zero_point<int32>, static_only, zp_before_round, nan_to_zero>;

/// A tensor of these codes, row-major.
template <class S, class Extents>
tensor<S, Extents> codes_in(const Extents& e, float scale, std::int64_t zero, const std::vector<int>& codes) {
  tensor<S, Extents> t(e);
  store_scales(t.span(), scale);
  if constexpr (S::has_zero_point) store_zero_points(t.span(), zero);
  using unit = std::remove_cvref_t<decltype(t.codes()[0])>;
  for (std::size_t i = 0; i < codes.size(); ++i) t.codes()[i] = static_cast<unit>(codes[i]);
  return t;
}
template <class T>
std::vector<int> codes_of(const T& t) {
  return std::vector<int>(t.codes().begin(), t.codes().end());
}
template <class T, int Rank>
std::vector<T> all_of(const dense<T, Rank>& d) {
  return std::vector<T>(d.data(), d.data() + d.size());
}

inline bool mentions(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace reduce_check
