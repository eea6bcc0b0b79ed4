// Mirrors include/qtensor/ops/activations.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/activations.hpp>

#include "../simd/check.hpp"
#include "check.hpp"

namespace simd = qtensor::simd;
using namespace qtensor;
using simd::quads_of;

namespace {

template <class View>
std::int64_t number(const View& v, index_t row, index_t k) {
  using code = typename View::scheme_type::code_format;
  return static_cast<std::int64_t>(code::decode(v.code(row, k))) - v.zero_point(row, k);
}

/// Compares rows with the view of what they should hold.
template <class Rows, class View>
void require_rows(const Rows& rows, const View& view, index_t first, index_t count) {
  const ops::activation_form& form = rows.form();
  const auto x = rows.rows();
  REQUIRE(x.entries == count);
  for (index_t r = 0; r < count; ++r) {
    const index_t row = first + r;
    if (form.depth > 0 && form.scales == activation_scales::per_row)
      REQUIRE(check::same_or_nan(rows.row_scales()[r], rounded(view.scale(row, 0) * form.unit)));
    for (index_t g = 0; g < form.groups(); ++g) {
      const index_t k = g * form.group, n = std::min(form.group, form.depth - k), at = g * x.entries + r;
      std::int64_t sum = 0, codes = 0;
      for (index_t i = 0; i < n; ++i) {
        REQUIRE(rows.number(r, g, i) == number(view, row, k + i));
        sum += number(view, row, k + i);
        codes += number(view, row, k + i) + view.zero_point(row, k + i) - (View::scheme_type::has_zero_point ? 128 : 0);
      }
      REQUIRE(x.starts[0][at] == -form.weight_offset * codes);
      REQUIRE((x.starts[1][at] == x.starts[0][at] || x.starts[1][at] == 17 * x.starts[0][at]));
      const auto total = static_cast<float>(sum);
      if (form.scales == activation_scales::per_group) {
        REQUIRE(check::same_or_nan(x.scales[at], rounded(view.scale(row, k) * form.unit)));
        REQUIRE(check::same_or_nan(rows.term(r, g), rounded(view.scale(row, k) * total)));
      } else {
        REQUIRE(x.scales == nullptr);
        REQUIRE(rows.term(r, g) == total / form.unit);
      }
    }
  }
}

template <quads_of Q>
void check_floats(index_t rows, index_t depth, index_t group) {
  auto x = check::numbers(rows * depth, static_cast<unsigned>(rows + 7 * depth + 1013 * group), false);
  if (rows > 1 && depth > 0) x[static_cast<std::size_t>(depth)] = quiet_nan;
  for (index_t i = 0; rows > 2 && i < depth; ++i) x[static_cast<std::size_t>(2 * depth + i)] = -0.f;
  const auto extents = matrix_extents(rows, depth);
  const auto by_row = check::expected<int8_per_channel<0>, row_major>(x, extents);
  const auto by_group =
      check::expected<scheme<int8, qtensor::group<dynamic>>, row_major>(x, extents, qtensor::group<dynamic>(group));
  const matrix_ref<const float> direct{x.data(), rows, depth, depth, 1};
  check::on_every_arch([&](auto arch) {
    using A = decltype(arch);
    for (const bool whole : {true, false}) {
      const ops::activation_form form{
          depth, group, 8, 0.5f, whole ? activation_scales::per_row : activation_scales::per_group, true, true};
      ops::activation_rows<A, Q> found(rows, form);
      const auto compare = [&](index_t first, index_t count) {
        if (whole)
          require_rows(found, by_row.view(), first, count);
        else
          require_rows(found, by_group.view(), first, count);
      };
      found.quantize(direct, 0, rows);
      compare(0, rows);
      found.quantize(check::tiled_source{direct}, rows / 2, rows - rows / 2);
      compare(rows / 2, rows - rows / 2);
    }
  });
}

template <quads_of Q, class S, class... G>
void check_codes(index_t rows, index_t depth, index_t group, const G&... granularity) {
  tensor<S, matrix_extents> t(matrix_extents(rows, depth), granularity...);
  for (auto& c : t.codes()) c = static_cast<std::remove_reference_t<decltype(c)>>(check::random_bits()());
  for (auto& s : t.scales()) s = 0.001f * static_cast<float>(1 + check::random_below(1000));
  if constexpr (S::has_zero_point)
    for (auto& z : t.zero_points()) z = static_cast<std::remove_reference_t<decltype(z)>>(check::random_bits()());
  const auto view = t.view();
  check::on_every_arch([&](auto arch) {
    using A = decltype(arch);
    const auto scales = sizeof...(G) > 0 ? activation_scales::per_group : activation_scales::per_row;
    ops::activation_rows<A, Q> found(rows, {depth, group, 3, 1.f, scales, true, true});
    found.take_codes(ops::weights_of<decltype(view), depth_axis::cols>(view), 0, rows);
    REQUIRE(found.fits());
    REQUIRE(found.has_zeros() == S::has_zero_point);
    require_rows(found, view, 0, rows);
  });
}

}  // namespace

TEST_CASE("activation_rows: floats become what quantize makes of them, by row and by group") {
  for (const index_t rows : {1, 3, 20})
    for (const index_t depth : {0, 1, 5, 32, 67, 300, 1000})
      for (const index_t group : {1, 3, 4, 32, 100}) {
        check_floats<quads_of::nibbles>(rows, depth, group);
        if (rows == 3) check_floats<quads_of::bytes>(rows, depth, group);
      }
  check_floats<quads_of::nibbles>(2, 3000, 128);
}
TEST_CASE("activation_rows: codes that exist, with and without zero points") {
  for (const index_t depth : {1, 6, 64, 131})
    for (const index_t group : {3, 4, 32}) {
      check_codes<quads_of::nibbles, int8_per_channel<0>>(3, depth, group);
      check_codes<quads_of::bytes, uint8_per_channel<0>>(5, depth, group);
      check_codes<quads_of::bytes, scheme<uint8, qtensor::group<dynamic>, zero_point<uint8>>>(
          4, depth, group, qtensor::group<dynamic>(group));
    }
}
TEST_CASE("activation_rows: zero points outside the codes do not fit, and numbers are still right") {
  using S = scheme<int8, per_channel<0>, zero_point<int32>>;
  tensor<S, matrix_extents> t(matrix_extents(2, 9));
  for (auto& c : t.codes()) c = static_cast<std::int8_t>(check::random_bits()());
  for (auto& s : t.scales()) s = 1.f;
  t.zero_points()[0] = 128;
  t.zero_points()[1] = -1000000000;
  const auto view = t.view();
  ops::activation_rows<simd::best_arch, quads_of::bytes> found(2,
                                                               {9, 4, 0, 1.f, activation_scales::per_row, true, true});
  found.take_codes(ops::weights_of<decltype(view), depth_axis::cols>(view), 0, 2);
  CHECK_FALSE(found.fits());
  for (index_t r = 0; r < 2; ++r)
    for (index_t k = 0; k < 9; ++k) CHECK(found.number(r, k / 4, k % 4) == number(view, r, k));
}
