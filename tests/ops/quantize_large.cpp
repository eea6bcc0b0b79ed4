// Tensors beyond the last-level cache: what goes past the caches equals, byte for byte, what goes through them.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <cstring>
#include <qtensor/ops/dequantize.hpp>
#include <qtensor/scheme/schemes.hpp>
#include <vector>

#include "../main/in_full.hpp"

using namespace qtensor;

namespace {

constexpr index_t cols = 4099;  // no row starts on a cache line, and the last bytes of rows are not full
constexpr index_t rows = ops::streaming_floats / cols + 300;

const std::vector<float>& numbers() {
  static const std::vector<float> x = [] {
    std::vector<float> v(static_cast<std::size_t>(rows * cols));
    std::uint32_t state = 5;
    for (float& f : v) {
      state = state * 1664525u + 1013904223u;
      f = static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-28f;
    }
    v[12345] = quiet_nan, v[777777] = infinity;  // special blocks too
    return v;
  }();
  return x;
}

/// Every 97th row, those with special numbers and the ones behind them, and the last.
const std::vector<index_t>& some_rows() {
  static const std::vector<index_t> some = [] {
    std::vector<index_t> v{12345 / cols, 12345 / cols + 1, 777777 / cols, 777777 / cols + 1, rows - 1};
    for (index_t row = 0; row < rows; row += 97) v.push_back(row);
    return v;
  }();
  return some;
}

/// Scales of columns.
std::vector<float> given_scales() {
  std::vector<float> scales;
  for (index_t col = 0; col < cols; ++col) scales.push_back(0.01f + static_cast<float>(col % 257) * 0.0007f);
  return scales;
}

/// Quantizes all rows at once, and some alone, and the way back.
template <class S, class... How>
void check_streams(const How&... how) {
  CAPTURE(std::string(std::string_view(name<S>)));
  const auto all = quantize<S>(source(numbers().data(), extents(rows, cols)), how...);
  std::vector<float> back(static_cast<std::size_t>(rows * cols));
  std::vector<std::uint16_t> half(back.size());
  dequantize_into(all.view(), back.data(), {cols, 1});
  dequantize_into<bf16>(all.view(), half.data(), {cols, 1});
  bool ok = true;
  for (const index_t row : some_rows()) {
    const float* x = numbers().data() + row * cols;
    const auto one = quantize<S>(source(x, extents(1, cols)), how...);
    const std::size_t bytes = one.codes().size_bytes();
    const auto* codes = all.view().row({row, 0});
    ok = ok && std::memcmp(one.codes().data(), codes, bytes) == 0;
    for (index_t col = 0; col < cols; ++col) {
      const std::size_t i = static_cast<std::size_t>(row * cols + col);
      const float value = reference::value(all.view(), {row, col});
      ok = ok && (bits_of(value) == bits_of(back[i]) || (is_nan(value) && is_nan(back[i])));
      ok = ok && half[i] == (encode<bf16, nearest_even, to_special>(back[i]));
    }
  }
  CHECK(ok);
}

/// Numbers of 16 bits, all rows at once and some alone.
template <class S, class... How>
void check_halves(const How&... how) {
  CAPTURE(std::string(std::string_view(name<S>)));
  static const std::vector<std::uint16_t> halves = [] {
    std::vector<std::uint16_t> v;
    v.reserve(numbers().size());
    for (const float f : numbers()) v.push_back(static_cast<std::uint16_t>(bits_of(f) >> 16));
    return v;
  }();
  const auto all = quantize<S>(source<bf16>(halves.data(), extents(rows, cols)), how...);
  bool ok = true;
  for (const index_t row : some_rows()) {
    const auto one = quantize<S>(source<bf16>(halves.data() + row * cols, extents(1, cols)), how...);
    ok = ok && std::memcmp(one.codes().data(), all.view().row({row, 0}), one.codes().size_bytes()) == 0;
  }
  CHECK(ok);
}

}  // namespace

TEST_CASE("large tensors: codes that bypass the caches") {
  check_streams<mxfp6_e2m3>();
  check_streams<int8_per_channel<0>>();
  check::in_full<mxfp4, uint8_per_channel<0>>([]<class S>() { check_streams<S>(); });
  check_streams<uint4_group<32>>();
  check_streams<scheme<bf16, per_channel<0>>>();
  check_streams<scheme<int32, group<48>>>();
  check_streams<scheme<int8, group<2048>>>();  // a short one at the end of rows
  check_streams<int8_per_channel<1>>(given_scales());
  check::in_full<scheme<e4m3, per_channel<1>>>([]<class S>() { check_streams<S>(given_scales()); });
  check_streams<int8_per_tensor>(0.37f);
  check_streams<scheme<hif8, per_tensor, static_only>>(1.f);
}

TEST_CASE("large tensors: groups whose codes end inside lines") {
  check_streams<scheme<e4m3, group<72>>>();
  check_streams<scheme<int4, group<100>>>();
  check::in_full<scheme<int4, group<96>>, scheme<uint8, group<272>, zero_point<uint8>>>(
      []<class S>() { check_streams<S>(); });
}

TEST_CASE("large tensors: numbers of 16 bits") {
  check_halves<mxfp4>();
  check_halves<int8_per_channel<0>>();
  check_halves<int8_per_channel<1>>(given_scales());
  check_halves<int8_per_tensor>(0.37f);
}

namespace {

/// The same numbers as a matrix of other width, by rows and turned.
constexpr index_t height = ops::streaming_floats / 4160 / 32 * 32 + 64;
constexpr index_t width = 4160;  // rows of bytes are whole lines of the caches, those of nibbles are not
constexpr index_t panel_step = height > 2000 ? 64 * 5 : 64;
static_assert(height * width >= ops::streaming_floats && height * width <= rows * cols);

const std::vector<float>& turned() {
  static const std::vector<float> x = [] {
    std::vector<float> v(static_cast<std::size_t>(height * width));
    for (index_t r = 0; r < height; ++r)
      for (index_t c = 0; c < width; ++c)
        v[static_cast<std::size_t>(c * height + r)] = numbers()[static_cast<std::size_t>(r * width + c)];
    return v;
  }();
  return x;
}

/// Rows [row, row + part.rows()) of a large tensor are those of a small one.
template <class Large, class Small>
bool holds(const Large& large, const Small& small, index_t row) {
  const auto all = large.view();
  const auto part = small.view();
  const index_t height_of_part = small.extents()[0];
  const std::size_t bytes = small.codes().size_bytes() / static_cast<std::size_t>(height_of_part);
  bool same = true;
  for (index_t r = 0; r < height_of_part; ++r) {
    same = same && std::memcmp(all.row({row + r, 0}), part.row({r, 0}), bytes) == 0;
    for (index_t c = 0; c < width; ++c)
      same = same && all.storage_scale_code({row + r, c}) == part.storage_scale_code({r, c});
  }
  return same;
}

/// From columns, and from rows, as so many rows at a time from rows.
template <class S, index_t Rows = 64>
void check_turned() {
  CAPTURE(std::string(std::string_view(name<S>)));
  const auto all = quantize<S>(source(turned().data(), extents(height, width), {1, height}));
  const auto by_rows = quantize<S>(source(numbers().data(), extents(height, width)));
  bool ok = true;
  for (index_t row = 0; row + Rows <= height; row += round_up(panel_step, Rows)) {
    const auto part = quantize<S>(source(numbers().data() + row * width, extents(Rows, width)));
    ok = ok && holds(all, part, row) && holds(by_rows, part, row);
  }
  CHECK(ok);
}

}  // namespace

TEST_CASE("large tensors: sources of the other order, groups down the columns, blocks") {
  check_turned<mxfp8_e4m3>();
  check_turned<uint4_group<32>>();
  check_turned<along<0, mxfp8_e4m3>>();
  check_turned<scheme<int8, block<16, 16>>>();
  check_turned<scheme<int4, block<64, 48>>>();         // blocks that end inside lines
  check_turned<scheme<e4m3, block<128, 128>>, 128>();  // tall panels
  check::in_full<mxfp4, int8_per_channel<0>, along<0, int4_group<16>>, scheme<uint8, block<32, 64>>>(
      []<class S>() { check_turned<S>(); });
}

TEST_CASE("large tensors: panels under scales that are given") {
  const auto check = []<class S>(std::type_identity<S>) {
    CAPTURE(std::string(std::string_view(name<S>)));
    const auto all = quantize<S>(source(numbers().data(), extents(height, width)), 0.03f);
    bool ok = true;
    for (index_t row = 0; row + 64 <= height; row += panel_step)
      ok = ok && holds(all, quantize<S>(source(numbers().data() + row * width, extents(64, width)), 0.03f), row);
    CHECK(ok);
  };
  check(std::type_identity<scheme<int8, block<16, 16>>>{});
  check(std::type_identity<scheme<int4, block<32, 64>>>{});
  check(std::type_identity<along<0, int8_group<32>>>{});
}

TEST_CASE("large tensors: scales of columns") {
  const auto all = quantize<int8_per_channel<1>>(source(numbers().data() + 800000, extents(height, width)));
  const auto across = quantize<int8_per_channel<1>>(source(turned().data(), extents(height, width), {1, height}));
  const auto given = std::vector<float>(static_cast<std::size_t>(width), 0.03f);
  const auto fixed = quantize<int8_per_channel<1>>(source(numbers().data(), extents(height, width)), given);
  bool ok = true;
  for (index_t c = 0; c < width; ++c) {
    std::uint32_t most = 0;
    for (index_t r = 0; r < height; ++r) {
      const std::uint32_t one = bits_of(numbers()[static_cast<std::size_t>(800000 + r * width + c)]) & magnitude_bits;
      most = one > most ? one : most;
    }
    ok = ok && all.view().scale(0, c) == float_of(most) / 127.f;
  }
  CHECK(ok);
  for (index_t row = 0; row < height; row += 61)
    for (index_t c = 0; c < width; ++c) {
      const auto code_of = [&](const auto& t, std::size_t from) {
        return quantize_element<int8_per_channel<1>>(numbers()[from + static_cast<std::size_t>(row * width + c)],
                                                     {t.view().scale(row, c)}, 0);
      };
      ok = ok && all.view().code(row, c) == code_of(all, 800000) && fixed.view().code(row, c) == code_of(fixed, 0);
      if (is_finite(across.view().scale(row, c))) ok = ok && across.view().code(row, c) == code_of(across, 0);
    }
  CHECK(ok);
}

namespace {

/// Numbers of F at lines of the caches, and one element behind them (two, too, which is where codes of four bits begin
/// on a byte); by rows and by columns.
template <class F, class S>
bool arrives_anywhere(const tensor<S>& w) {
  using number = storage_t<F>;
  const index_t height = w.extents()[0], width = w.extents()[1];
  std::vector<number> memory(static_cast<std::size_t>(2 * height * width) + 64);
  number* at_line = memory.data();
  while (!simd::begins_line(at_line)) ++at_line;
  number* behind = at_line + height * width;
  bool ok = true;
  for (const auto& steps : {std::array<index_t, 2>{width, 1}, std::array<index_t, 2>{1, height}}) {
    dequantize_into<F>(w.view(), at_line, steps);
    for (number* elsewhere = behind + 1; elsewhere <= behind + (is_packed<typename S::code_format> ? 2 : 1);
         ++elsewhere) {
      dequantize_into<F>(w.view(), elsewhere, steps);
      ok = ok && std::memcmp(at_line, elsewhere, static_cast<std::size_t>(height * width) * sizeof(number)) == 0;
    }
    for (index_t row = 0; row < height; row += height < 200 ? 7 : 61)
      for (index_t col = 0; col < width; ++col) {
        const std::uint32_t want = encode<F, nearest_even, to_special>(reference::value(w.view(), {row, col}));
        if constexpr (std::is_same_v<F, f32>)
          ok = ok && bits_of(at_line[row * steps[0] + col * steps[1]]) == want;
        else
          ok = ok && at_line[row * steps[0] + col * steps[1]] == want;
      }
  }
  return ok;
}
template <class S>
void check_places(index_t high = height, index_t wide = width) {
  CAPTURE(std::string(std::string_view(name<S>)));
  std::vector<float> finite(numbers().begin(), numbers().begin() + high * wide);
  for (float& f : finite) f = is_finite(f) ? f : 1.f;
  const auto w = quantize<S>(source(finite.data(), extents(high, wide)));
  CHECK(arrives_anywhere<f32>(w));
  CHECK(arrives_anywhere<bf16>(w));
}

}  // namespace

TEST_CASE("large tensors: numbers that go to lines of the caches, and elsewhere") {
  check_places<int8_per_tensor>();
  check_places<int8_per_channel<0>>();
  check_places<int8_per_channel<1>>();
  check_places<scheme<uint4, per_channel<1>, zero_point<uint8>>>();
  check_places<mxfp8_e4m3>();
  check_places<scheme<int8, block<16, 16>>>();
  check_places<scheme<uint8, block<8, 24>, zero_point<uint8>>>();
  check::in_full<uint8_per_channel<1>, nvfp4, scheme<int4, block<32, 32>>>([]<class S>() { check_places<S>(); });
}

TEST_CASE("large tensors: rows that begin inside lines, each in another place") {
  constexpr index_t wide = 4102, high = ops::streaming_floats / wide + 3;
  static_assert(wide * high <= rows * cols);
  check_places<scheme<int4, per_channel<0>>>(high, wide);
  check_places<uint8_per_channel<0>>(high, wide);
  check_places<int8_per_channel<1>>(high, wide);
  check_places<scheme<uint8, block<8, 24>, zero_point<uint8>>>(high, wide);
}

TEST_CASE("large tensors: more scales along a row than the first cache holds") {
  constexpr index_t wide = 8256, high = ops::streaming_floats / wide + 3;
  static_assert(wide * high <= rows * cols && high % 4 != 0);
  check_places<int8_per_channel<1>>(high, wide);
  check_places<uint8_per_channel<1>>(high, wide);
  check_places<scheme<int8, block<16, 24>>>(high, wide);
}
