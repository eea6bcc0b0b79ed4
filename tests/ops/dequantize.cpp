// Mirrors include/qtensor/ops/dequantize.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/dequantize.hpp>

#include "check.hpp"

using namespace qtensor;

namespace {

/// Every element of every kind of piece equals the reference, NaN as NaN.
template <quantization_scheme S, storage_order Order, class E>
void compare(const E& extents, unsigned seed) {
  const std::vector<float> x = check::numbers(extents.size(), seed);
  const auto t = check::expected<S, Order>(x, extents);
  const auto view = t.view();
  const auto same = [](float a, float b) { return bits_of(a) == bits_of(b) || (is_nan(a) && is_nan(b)); };
  INFO(std::string(name<S>), " rank ", E::rank, " last extent ", extents[E::rank - 1]);

  std::vector<float> dense(x.size());
  typename E::array strides{};
  index_t next = 1;
  for (int axis = E::rank - 1; axis >= 0; next *= extents[axis--]) strides[static_cast<std::size_t>(axis)] = next;
  dequantize_into(view, dense.data(), strides);
  bool ok = true;
  std::size_t i = 0;
  reference::for_each_index(typename E::array{}, extents.to_array(),
                            [&](const auto& index) { ok = ok && same(dense[i++], reference::value(view, index)); });
  CHECK(ok);

  // As bf16 and f16 too, in either order of axes, and with gaps.
  typename E::array other{}, gaps{};
  index_t step = 1, room = 0;
  for (std::size_t axis = 0; axis < other.size(); step *= extents[static_cast<int>(axis++)]) other[axis] = step;
  for (std::size_t axis = 0; axis < gaps.size(); ++axis)
    gaps[axis] = 3 * strides[axis], room += gaps[axis] * (extents[static_cast<int>(axis)] - 1);
  const auto written = [&]<class F>(std::type_identity<F>) {
    for (const auto& steps : {strides, other, gaps}) {
      std::vector<storage_t<F>> out(static_cast<std::size_t>(room + 1));
      dequantize_into<F>(view, out.data(), steps);
      reference::for_each_index(typename E::array{}, extents.to_array(), [&](const auto& index) {
        index_t at = 0;
        for (std::size_t axis = 0; axis < index.size(); ++axis) at += index[axis] * steps[axis];
        const float value = reference::value(view, index);
        if constexpr (std::is_same_v<F, f32>)
          ok = ok && same(out[static_cast<std::size_t>(at)], value);
        else
          ok = ok && out[static_cast<std::size_t>(at)] == encode<F, to_special>(value);
      });
      CHECK(ok);
    }
  };
  written(std::type_identity<f32>{});
  written(std::type_identity<bf16>{});
  written(std::type_identity<f16>{});

  // Pieces that start and end anywhere.
  const index_t cols = view.shape().row_length(), rows = view.shape().row_count();
  for (index_t first : {index_t{0}, index_t{1}, index_t{2}, index_t{7}, index_t{32}, cols / 2})
    for (index_t count : {index_t{1}, index_t{5}, index_t{33}, cols}) {
      if (first + count > cols) continue;
      for (const index_t row : {rows - 1, rows / 2 / 16 * 16}) {
        const index_t lines = rows - row, wide = count + 1, high = lines + 2;
        std::vector<float> along(static_cast<std::size_t>(lines * wide), 3.f);
        std::vector<float> across(static_cast<std::size_t>(count * high), 3.f);
        dequantize_rows(view, row, lines, first, count, along.data(), wide);
        dequantize_rows(view, row, lines, first, count, across.data(), 1, high);
        for (index_t r = 0; r < lines; ++r)
          for (index_t k = 0; k < count; ++k) {
            auto at = ops::row_index(row + r, view.storage_extents());
            at[at.size() - 1] = first + k;
            const float want = reference::storage_value(view, at);
            ok = ok && same(along[static_cast<std::size_t>(r * wide + k)], want) &&
                 same(across[static_cast<std::size_t>(k * high + r)], want);
          }
        // Nothing between the rows is touched.
        for (index_t r = 0; r < lines; ++r) ok = ok && along[static_cast<std::size_t>(r * wide + count)] == 3.f;
        for (index_t k = 0; k < count; ++k) ok = ok && across[static_cast<std::size_t>(k * high + lines)] == 3.f;
      }
    }
  CHECK(ok);
}

template <quantization_scheme S>
void compare_matrices() {
  unsigned seed = 40;
  for (const auto& [rows, cols] : {std::pair{1, 1}, {3, 70}, {9, 64}, {2, 4500}, {40, 257}})
    compare<S, row_major>(matrix_extents(rows, cols), ++seed);
}

}  // namespace

TEST_CASE("dequantize: every scheme, order and piece equals the reference") {
  compare_matrices<int8_per_tensor>();
  compare_matrices<uint8_per_channel<0>>();
  compare_matrices<uint4_group<32>>();
  compare_matrices<mxfp4>();
  compare_matrices<along<0, mxfp8_e4m3>>();
  compare_matrices<scheme<uint8, block<6, 16>, zero_point<uint8>>>();
  compare_matrices<scheme<uint4, group<32>, scale_as<f16>, offset<bf16>, offset_min_max>>();
  compare_matrices<scheme<uint8, block<6, 1>, offset<f32>, offset_min_max>>();
  compare_matrices<scheme<uint4, per_tensor, offset<f32>, offset_min_max, planar<high_first>>>();
  check::in_full<int8_per_channel<1>, scheme<int4, group<5>>, mxfp6_e3m2, fp8_block<16, 48>,
                 with<nvfp4, tensor_scale<f32>>, scheme<int2, group<8>>>([]<class S>() { compare_matrices<S>(); });
  compare<hif8_block<1, 64>, row_major>(extents(2, 3, 100), 90);
  compare<uint4_group<32>, col_major>(matrix_extents(70, 33), 91);
  compare<along<0, mxfp8_e4m3>, col_major>(matrix_extents(70, 33), 92);
  compare<uint4_group<32>, row_major>(extents(2, 300, 75), 93);
  compare<fp8_block<64, 48>, row_major>(matrix_extents(300, 140), 96);
  compare<uint8_per_channel<1>, row_major>(matrix_extents(300, 140), 97);
  compare<mxfp8_e4m3, row_major>(extents(3, 40, 600), 94);
  compare<int8_per_tensor, row_major>(extents(2, 17, 90), 95);
}

TEST_CASE("dequantize: parameters of each element that rows share, whatever they are stored as") {
  compare_matrices<uint8_per_channel<1>>();
  compare_matrices<scheme<uint8, block<6, 1>, zero_point<uint8>>>();
  check::in_full<scheme<int8, per_channel<1>, scale_as<bf16>>, scheme<uint4, per_channel<1>, zero_point<int32>>>(
      []<class S>() { compare_matrices<S>(); });
  compare<uint8_per_channel<2>, row_major>(extents(3, 70, 130), 93);
  compare<uint8_per_channel<0>, col_major>(matrix_extents(130, 200), 94);
}

TEST_CASE("dequantize_into: tensors that bypass the caches, in every order") {
  // Not whole tiles, above ops::streaming_floats.
  const auto check = []<class S, class F>(std::type_identity<S>, std::type_identity<F>, index_t rows = 2051,
                                          index_t cols = 4160) {
    tensor<S> t(matrix_extents(rows, cols));
    for (std::size_t i = 0; i < t.codes().size(); ++i)
      t.codes()[i] = static_cast<std::remove_cvref_t<decltype(t.codes()[0])>>((i * 2654435761u) >> 13);
    for (std::size_t i = 0; i < t.scales().size(); ++i) {
      if constexpr (std::is_same_v<typename S::scale_format, f32>)
        t.scales()[i] = 0.01f * static_cast<float>(i % 7 + 1);
      else
        t.scales()[i] = static_cast<std::remove_cvref_t<decltype(t.scales()[0])>>(110 + i % 31);
    }
    if constexpr (S::has_zero_point)
      for (std::size_t i = 0; i < t.zero_points().size(); ++i)
        t.zero_points()[i] = static_cast<std::remove_cvref_t<decltype(t.zero_points()[0])>>(i % 251);
    const auto view = t.view();
    std::vector<storage_t<F>> out(static_cast<std::size_t>(rows * cols));
    for (const auto& steps : {std::array<index_t, 2>{cols, 1}, {1, rows}}) {
      dequantize_into<F>(view, out.data(), steps);
      bool ok = true;
      for (index_t row = 0; row < rows; row += row < 70 || row > rows - 61 ? 1 : 97)
        for (index_t col = 0; col < cols; col += col < 140 || col > cols - 160 ? 1 : 53) {
          const float value = reference::value(view, std::array{row, col});
          const auto number = out[static_cast<std::size_t>(row * steps[0] + col * steps[1])];
          if constexpr (std::is_same_v<F, f32>)
            ok = ok && bits_of(number) == bits_of(value);
          else
            ok = ok && number == encode<F, to_special>(value);
        }
      CHECK(ok);
    }
  };
  check(std::type_identity<int8_per_tensor>{}, std::type_identity<bf16>{});
  check(std::type_identity<int8_per_channel<1>>{}, std::type_identity<f32>{});
  check(std::type_identity<int8_per_channel<1>>{}, std::type_identity<bf16>{});
  check(std::type_identity<uint8_per_channel<1>>{}, std::type_identity<f32>{});
  check(std::type_identity<mxfp4>{}, std::type_identity<bf16>{});
  check(std::type_identity<mxfp4>{}, std::type_identity<f32>{});
  check(std::type_identity<mxfp6_e2m3>{}, std::type_identity<bf16>{});
  check(std::type_identity<mxfp6_e2m3>{}, std::type_identity<f32>{}, ops::streaming_floats / 33 + 1, 33);
  check(std::type_identity<int8_per_channel<0>>{}, std::type_identity<f32>{});
  check(std::type_identity<mxfp8_e4m3>{}, std::type_identity<f16>{});
  check(std::type_identity<along<0, mxfp4>>{}, std::type_identity<bf16>{});
}

TEST_CASE("dequantize_into: many short rows that end inside bytes, whose columns collide in a cache") {
  const auto check = []<class S, class F>(std::type_identity<S>, std::type_identity<F>) {
    for (const index_t rows : {128, 256, 384, 1024})
      for (const index_t cols : {2, 3, 5, 11, 33, 37}) {
        const matrix_extents extents(rows, cols);
        const auto t = quantize<S>(source(check::numbers(rows * cols, 7, false).data(), extents));
        std::vector<storage_t<F>> out(static_cast<std::size_t>(rows * cols));
        dequantize_into<F>(t.view(), out.data(), {1, rows});
        bool ok = true;
        for (index_t row = 0; row < rows; ++row)
          for (index_t col = 0; col < cols; ++col) {
            const float value = reference::value(t.view(), {row, col});
            const auto number = out[static_cast<std::size_t>(row + col * rows)];
            if constexpr (std::is_same_v<F, f32>)
              ok = ok && bits_of(number) == bits_of(value);
            else
              ok = ok && number == encode<F, to_special>(value);
          }
        CAPTURE(rows);
        CAPTURE(cols);
        CHECK(ok);
      }
  };
  check(std::type_identity<mxfp6_e2m3>{}, std::type_identity<f32>{});
  check(std::type_identity<mxfp6_e2m3>{}, std::type_identity<f16>{});
  check(std::type_identity<scheme<e2m3, group<8>>>{}, std::type_identity<f32>{});
}

TEST_CASE("dequantize_into: without strides, dense memory whose last axis varies first, whatever the codes' order") {
  const auto check_dense = []<class Order>(Order) {
    const auto shape = extents(3, 5, 40);
    const std::vector<float> x = check::numbers(shape.size(), 7);
    const auto t = quantize<int8_per_tensor, Order>(source(x.data(), shape));
    std::vector<float> want(x.size()), got(x.size());
    std::vector<storage_t<bf16>> want_halves(x.size()), halves(x.size());
    dequantize_into(t.view(), want.data(), {200, 40, 1});
    dequantize_into<bf16>(t.view(), want_halves.data(), {200, 40, 1});
    dequantize_into(t.view(), got.data());
    dequantize_into<bf16>(t.view(), halves.data());
    CHECK(got == want);
    CHECK(halves == want_halves);
  };
  check_dense(row_major{});
  check_dense(col_major{});
}

TEST_CASE("dequantize_into: an empty tensor writes nothing") {
  const tensor<mxfp4> empty(matrix_extents(0, 32));
  float untouched = 7.f;
  dequantize_into(empty.view(), &untouched, {32, 1});
  CHECK(untouched == 7.f);
}

TEST_CASE("dequantize_into: null is refused where there are elements") {
  const tensor<mxfp4> empty(matrix_extents(0, 4)), w(matrix_extents(2, 4));
  dequantize_into(empty.view(), static_cast<float*>(nullptr));
  CHECK_THROWS_WITH_AS(dequantize_into(w.view(), static_cast<float*>(nullptr)),
                       doctest::Contains("the destination is null, but has 8 elements."), error);
}

TEST_CASE("requantize: one scheme to another equals quantize(dequantize(x)), also across storage orders") {
  const matrix_extents shape(50, 96);
  const std::vector<float> x = check::numbers(50 * 96, 3);
  const auto from = quantize<mxfp4>(source(x.data(), shape));
  std::vector<float> values(x.size());
  dequantize_into(from.view(), values.data(), {96, 1});
  CHECK(check::same_bytes(requantize<int4_group<32>>(from), check::expected<int4_group<32>, row_major>(values, shape)));
  CHECK(check::same_bytes(requantize<int8_per_tensor>(from.view()),
                          check::expected<int8_per_tensor, row_major>(values, shape)));
  CHECK(check::same_bytes(requantize<along<0, mxfp8_e4m3>, col_major>(from),
                          check::expected<along<0, mxfp8_e4m3>, col_major>(values, shape)));
}
