// Mirrors include/qtensor/tensor/tensor.hpp: tensors of schemes that mean the same bytes, of other extents and orders.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <qtensor/compat/ggml.hpp>
#include <qtensor/scheme/schemes.hpp>
#include <qtensor/tensor/tensor.hpp>

#include "core/sentence.hpp"
#include "tensor/numbered.hpp"

using namespace qtensor;

namespace {

using towards_infinity = with<mxfp4, mx_rceil, nan_to_zero>;

// Equal stored<>: convertible; other bytes' meanings: never.
static_assert(std::is_convertible_v<tensor<towards_infinity>, tensor<mxfp4>> &&
              std::is_convertible_v<const tensor<towards_infinity>&, tensor<mxfp4>>);
static_assert(!std::is_constructible_v<tensor<mxfp4>, tensor<mxfp8_e4m3>> &&
              !std::is_constructible_v<tensor<int4_group<32>>, tensor<uint4_group<32>>>);
static_assert(!std::is_constructible_v<tensor<mxfp4>, tensor<mxfp4, dynamic_extents<3>>>);
static_assert(std::is_nothrow_constructible_v<tensor<mxfp4>, tensor<towards_infinity>&&>);

/// From dynamic to static extents and to the other order, and back.
template <class S>
void check_conversions() {
  const auto t = numbered<S>(matrix_extents(3, 70));
  const tensor<S, extents<3, 70>> fixed(t);
  CHECK(shows(fixed.view(), t.view(), {0, 0}));
  const tensor<S> back(fixed);
  CHECK(shows(back.view(), t.view(), {0, 0}));
  if constexpr (!S::is_interleaved) {
    const tensor<S, matrix_extents, col_major> columns(t);
    CHECK(shows(columns.view(), t.view(), {0, 0}));
    const tensor<S> rows(columns);
    CHECK(shows(rows.view(), t.view(), {0, 0}));
  }
}

}  // namespace

TEST_CASE("conversion: a tensor moves into one whose scheme means the same bytes") {
  auto t = numbered<towards_infinity>(matrix_extents(3, 70));
  const auto copy = t;
  const auto* codes = t.codes().data();
  const tensor<mxfp4> moved = std::move(t);
  CHECK(moved.codes().data() == codes);
  CHECK(t.size() == 0);
  CHECK(shows(moved.view(), copy.view(), {0, 0}));
  const tensor<stored<mxfp4>> copied = moved;
  CHECK(copied.codes().data() != codes);
  CHECK(shows(copied.view(), copy.view(), {0, 0}));
  struct short_name : towards_infinity {};
  tensor<short_name> named = copy;
  CHECK(shows(named.view(), copy.view(), {0, 0}));
}

TEST_CASE("conversion: other extents and the other order keep codes, scales, zero points, offsets and tensor scale") {
  check_conversions<uint8_per_channel<0>>();
  check_conversions<uint4_group<32>>();
  check_conversions<scheme<uint4, group<32>, zero_point<uint4, per_channel<0>>>>();
  check_conversions<mxfp6_e2m3>();
  check_conversions<with<nvfp4, tensor_scale<f32>>>();
  check_conversions<scheme<uint4, group<8>, scale_as<f16>, offset<f16>, static_only>>();
  check_conversions<compat::ggml::q8_0>();
  check_conversions<compat::ggml::q4_1>();
}

TEST_CASE("conversion: rank 3 to the other order, run-time groups") {
  using sized = scheme<int4, group<dynamic, 1>>;
  const auto t = numbered<sized>(extents(2, 9, 5), group<dynamic, 1>(4));
  const tensor<sized, dynamic_extents<3>, col_major> turned(t);
  CHECK(turned.granularity().size() == 4);
  CHECK(shows(turned.view(), t.view(), {0, 0, 0}));
}

TEST_CASE("conversion: extents that contradict the type are refused") {
  const tensor<mxfp4> t(matrix_extents(3, 70));
  CHECK(sentence([&] { tensor<mxfp4, extents<3, 71>> wrong(t); }) ==
        "qtensor: extent 1 is 70 but its type fixes it to 71.");
}
