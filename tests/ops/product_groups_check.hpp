// What the tests of products over groups share: random operands, and the scalar definition of every output.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/ops/product_groups.hpp>
#include <qtensor/reference/product.hpp>
#include <qtensor/scheme/schemes.hpp>
#include <vector>

#include "../simd/check.hpp"
#include "check.hpp"

namespace check {

namespace simd = qtensor::simd;

/// What one number of a format is worth; stated here apart from the library.
template <class F>
constexpr float unit = [] {
  if constexpr (F::is_integer)
    return 1.f;
  else
    return F::unit;
}();
template <>
constexpr float unit<e2m1> = 0.5f;
template <>
constexpr float unit<e2m3> = 0.125f;
template <>
constexpr float unit<e1m2> = 0.25f;
template <>
constexpr float unit<mxint8_code> = 0x1p-6f;

/// A row of a view as the reference wants an operand; what it says of every k is read once.
template <class View>
struct operand {
  using S = typename View::scheme_type;
  using code = typename S::code_format;
  static constexpr bool has_offset = S::has_offset, has_tensor_scale = S::has_tensor_scale;
  static constexpr float unit = check::unit<code>;
  bool one_scale;
  float tensor_scale;
  std::vector<std::int64_t> numbers{};
  std::vector<float> scales{}, offsets{};

  operand(const View& view, index_t row, bool has_one_scale)
      : one_scale(has_one_scale), tensor_scale(view.tensor_scale()) {
    for (index_t k = 0; k < view.cols(); ++k) {
      numbers.push_back(static_cast<std::int64_t>(decode<code>(view.code(row, k)) / unit) - view.zero_point(row, k));
      scales.push_back(view.scale(row, k));
      if constexpr (has_offset)
        offsets.push_back(view.storage_offset(reordered<typename View::order_type>(std::array{row, k})));
    }
  }
  std::int64_t number(index_t k) const { return numbers[static_cast<std::size_t>(k)]; }
  float scale(index_t k) const { return scales[static_cast<std::size_t>(k)]; }
  float offset(index_t k) const { return offsets[static_cast<std::size_t>(k)]; }
};
template <class View>
std::vector<operand<View>> operands(const View& view, bool one_scale) {
  std::vector<operand<View>> all;
  for (index_t row = 0; row < view.rows(); ++row) all.emplace_back(view, row, one_scale);
  return all;
}

/// Random codes; scales and offsets that are neither tiny nor huge, some of them NaN where `nans`; zero points near and
/// far.
template <class S, class Order = row_major, class... G>
tensor<S, matrix_extents, Order> random_weights(index_t rows, index_t cols, bool nans, const G&... granularity) {
  tensor<S, matrix_extents, Order> t(matrix_extents(rows, cols), granularity...);
  for (auto& c : t.codes()) c = static_cast<std::remove_reference_t<decltype(c)>>(random_bits()());
  const auto any = [&]<class F>(auto units, F) {
    for (auto& u : units) {
      const float v = 0.002f * static_cast<float>(1 + random_below(1000));
      u = qtensor::detail::unit_from<F>(encode<F>(nans && random_below(29) == 0 ? quiet_nan : v));
    }
  };
  any(t.scales(), typename S::scale_format{});
  if constexpr (S::has_offset)
    any(std::span(t.span().memory().offsets, t.scales().size()), typename S::offset_format{});
  if constexpr (S::has_tensor_scale) *t.span().memory().tensor_scale = 0.3f;
  if constexpr (S::has_zero_point)
    for (auto& z : t.zero_points()) {
      const std::uint32_t bits = random_bits()();
      z = static_cast<std::remove_reference_t<decltype(z)>>(bits % 3 == 0 ? bits >> 31 ? ~0u : 0u : bits);
      if constexpr (sizeof z == 4) z %= 1 << 28;  // sums of products of two such fit 64 bits
    }
  return t;
}

/// Every output by definition.
template <class W, class X>
std::vector<float> product_by_definition(const W& w, const X& x, index_t group, bool one_scale) {
  using S = typename W::scheme_type;
  std::vector<float> y;
  auto weights = operands(w, true);
  const bool one_group = S::code_format::is_integer && !S::has_offset && group >= w.cols();
  if constexpr (S::has_tensor_scale)
    for (auto& right : weights)
      for (float& s : right.scales) s = one_group ? rounded(s * w.tensor_scale()) : s;
  for (const auto& left : operands(x, one_scale))
    for (const auto& right : weights)
      y.push_back(one_group ? reference::integer_product(left, right, w.cols())
                            : reference::group_product(left, right, w.cols(), group));
  return y;
}

/// The sink that keeps every tile and requires each element once.
struct kept {
  index_t rows, cols;
  mutable std::vector<float> y = std::vector<float>(static_cast<std::size_t>(rows * cols), 0.f);
  mutable std::vector<int> seen = std::vector<int>(y.size(), 0);
  void operator()(const product_tile& t) const {
    REQUIRE(reinterpret_cast<std::uintptr_t>(t.values) % 16 == 0);
    REQUIRE((t.row + t.rows <= rows && t.col + t.cols <= cols));
    for (index_t r = 0; r < t.rows; ++r)
      for (index_t c = 0; c < t.cols; ++c) {
        const auto at = static_cast<std::size_t>((t.row + r) * cols + t.col + c);
        y[at] = t.values[r * t.stride + c];
        t.values[r * t.stride + c] = quiet_nan;  // a sink may
        ++seen[at];
      }
  }
  void require_equal(const std::vector<float>& want) const {
    for (std::size_t i = 0; i < want.size(); ++i) {
      if (seen[i] != 1) FAIL("element ", i, " came ", seen[i], " times");
      if (!same_or_nan(y[i], want[i])) FAIL("element ", i, " of ", rows, " x ", cols, ": ", y[i], " not ", want[i]);
    }
  }
};

template <class View>
auto outputs_by_rows(const View& v) {
  return ops::weights_of<View, depth_axis::cols>(v);
}

/// Weights times m rows of floats, by both kinds of scales, on every architecture of the list.
template <class Archs = check::archs, class W, class By = serial>
void compare_floats(const W& wt, index_t m, const By& by = {}) {
  using S = typename W::scheme_type;
  const auto w = wt.view();
  const index_t n = w.rows(), k = w.cols(), group = std::max(outputs_by_rows(w).group(), index_t{1});
  const auto name = std::string(static_cast<std::string_view>(S::name));
  CAPTURE(name);
  CAPTURE(k);
  CAPTURE(group);
  auto x = numbers(m * k, static_cast<unsigned>(m + 31 * n + 1009 * k), false);
  if (m > 2 && k > 0) x[static_cast<std::size_t>(k)] = infinity;
  for (index_t i = 0; m > 1 && i < k; ++i) x[static_cast<std::size_t>((m - 1) * k + i)] = 0.f;
  const auto extents = matrix_extents(m, k);
  const auto by_row = expected<int8_per_channel<0>, row_major>(x, extents);
  const auto by_group =
      expected<scheme<int8, qtensor::group<dynamic>>, row_major>(x, extents, qtensor::group<dynamic>(group));
  const auto row_wise = product_by_definition(w, by_row.view(), group, true);
  const auto group_wise = product_by_definition(w, by_group.view(), group, false);
  const matrix_ref<const float> direct{x.data(), m, k, k, 1};
  const tiled_source tiled{direct};
  Archs::for_each([&](auto arch) {
    using A = decltype(arch);
    const auto arch_name = std::string(simd::arch_name<A>);
    CAPTURE(arch_name);
    const auto packed = pack<A>(wt);
    const kept first{m, n}, second{m, n};
    ops::multiply_groups<A>(packed, direct, activation_scales::per_row, first, by);
    first.require_equal(row_wise);
    ops::multiply_groups<A>(packed, tiled, activation_scales::per_group, second, by);
    second.require_equal(group_wise);
    // Straight to memory, by rows and by columns.
    for (const auto& [scales, want] :
         {std::pair(activation_scales::per_row, &row_wise), {activation_scales::per_group, &group_wise}})
      for (const bool by_rows : {true, false}) {
        const index_t row = by_rows ? n + 3 : 1, col = by_rows ? 1 : m + 3;
        std::vector<float> y(static_cast<std::size_t>((m + 3) * (n + 3)), 77.f);
        ops::multiply_groups<A>(packed, direct, scales, ops::store_floats<A>{{y.data(), m, n, row, col}}, by);
        for (index_t r = 0; r < m + 3; ++r)
          for (index_t c = 0; c < n + 3; ++c) {
            if (!by_rows && r * row + c * col >= index_t(y.size())) continue;
            const float found = y[static_cast<std::size_t>(r * row + c * col)];
            const float wanted = r < m && c < n ? (*want)[static_cast<std::size_t>(r * n + c)] : 77.f;
            if (!same_or_nan(found, wanted)) FAIL("element (", r, ", ", c, ") is ", found, " and not ", wanted);
          }
      }
  });
}

/// Calls f by every way that many rows read weights.
template <class F>
void every_way(const F& f) {
  for (const auto way : {simd::group_way::packed, simd::group_way::ready, simd::group_way::squares}) {
    simd::group_way_taken = way;
    f();
  }
  simd::group_way_taken = simd::group_way::fastest;
}
template <class Archs = check::archs, class W>
void compare_floats_every_way(const W& w, index_t m) {
  every_way([&] { compare_floats<Archs>(w, m); });
}

/// Weights times rows of codes.
template <class Archs = check::archs, class W, class X, class By = serial>
void compare_codes(const W& wt, const X& xt, const By& by = {}) {
  const auto w = wt.view();
  const auto x = xt.view();
  const index_t w_group = std::max(outputs_by_rows(w).group(), index_t{1}), x_group = outputs_by_rows(x).group();
  const bool one_scale = x_group >= x.cols();
  const index_t group = one_scale ? w_group : w_group >= w.cols() ? x_group : std::gcd(w_group, x_group);
  CAPTURE(w.cols());
  CAPTURE(w_group);
  CAPTURE(x_group);
  const auto want = product_by_definition(w, x, group, one_scale);
  Archs::for_each([&](auto arch) {
    using A = decltype(arch);
    const auto arch_name = std::string(simd::arch_name<A>);
    CAPTURE(arch_name);
    const kept found{x.rows(), w.rows()};
    ops::multiply_groups<A>(pack<A>(wt), outputs_by_rows(x), found, by);
    found.require_equal(want);
  });
}
template <class W, class X>
void compare_codes_every_way(const W& w, const X& x) {
  every_way([&] { compare_codes(w, x); });
}

}  // namespace check
