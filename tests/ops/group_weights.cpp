// Mirrors include/qtensor/ops/group_weights.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/group_weights.hpp>
#include <qtensor/ops/product.hpp>
#include <qtensor/scheme/schemes.hpp>
#include <vector>

#include "../simd/check.hpp"

namespace simd = qtensor::simd;
using namespace qtensor;

namespace {

/// Sixteen values, one of which no power of two makes an integer of 8 bits.
struct uneven {
  static constexpr int bits = 4;
  static constexpr bool is_integer = false, is_signed = true;
  static constexpr float min = -1.f, max = 1.f;
  static constexpr fixed_string name = "uneven";
  static constexpr float decode(std::uint32_t c) { return c == 3 ? 0.6961928f : static_cast<float>(c) / 16.f; }
};
/// Multiples of a large power of two.
struct far_apart {
  static constexpr int bits = 3;
  static constexpr bool is_integer = false, is_signed = true;
  static constexpr float min = -4096.f, max = 3072.f;
  static constexpr fixed_string name = "far_apart";
  static constexpr float decode(std::uint32_t c) { return 1024.f * (static_cast<float>(c) - 4.f); }
};

template <class F>
void check_numbers(float unit) {
  using counted = ops::counted_codes<F>;
  CHECK(counted::exist);
  CHECK(counted::unit == unit);
  for (std::uint32_t c = 0; c < counted::size; ++c)
    CHECK(static_cast<float>(counted::numbers[c]) * unit == decode<F>(c));
}

}  // namespace

TEST_CASE("counted_codes: every value is its number times the unit") {
  check_numbers<e2m1>(0.5f);
  check_numbers<e1m2>(0.25f);
  check_numbers<e2m3>(0.125f);
  check_numbers<mxint8_code>(0x1p-6f);
  check_numbers<far_apart>(1024.f);
  CHECK(ops::counted_codes<int4>::exist);
  CHECK(ops::counted_codes<uint8>::unit == 1.f);
}
TEST_CASE("counted_codes: formats with NaN, with a wide range, and with values between do not count") {
  CHECK_FALSE(ops::counted_codes<e4m3>::exist);
  CHECK_FALSE(ops::counted_codes<e5m2>::exist);
  CHECK_FALSE(ops::counted_codes<e3m2>::exist);
  CHECK_FALSE(ops::counted_codes<uneven>::exist);
  CHECK_FALSE(ops::counted_codes<int16>::exist);
  CHECK(ops::counted_weights<mxfp4>);
  CHECK_FALSE(ops::counted_weights<mxfp8_e4m3>);
}
TEST_CASE("line_reading: groups that lines take, and as how many words") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    const auto words = []<class L>(L, index_t group) {
      index_t taken = 0;
      L::with_words(group, [&](auto words) { taken = words; });
      return taken;
    };
    constexpr index_t lanes = simd::lanes<A>, step = 8 * lanes;
    using of_32 = ops::line_reading<int4_group<32>, A>;
    using of_128 = ops::line_reading<int4_group<128>, A>;
    using of_any = ops::line_reading<scheme<int4, group<dynamic>>, A>;
    using of_rows = ops::line_reading<scheme<int8, per_channel<0>>, A>;
    CHECK(of_128::take(4 * step, 10 * step));
    CHECK(of_128::take(step, step));
    CHECK_FALSE(of_128::take(step, step + 4));
    CHECK_FALSE(of_128::take(100, 10 * step));
    CHECK_FALSE(of_128::take(step, 0));
    CHECK(words(of_128{}, step) == lanes);
    CHECK(of_any::take(step, 2 * step));
    CHECK_FALSE(of_any::take(36, 36 * step));
    CHECK(of_rows::take(3 * of_rows::step, 3 * of_rows::step));
    CHECK(of_rows::flip == 0);
    CHECK(ops::line_reading<scheme<uint8, per_channel<0>>, A>::flip == 0x80);
    CHECK(of_any::flip == 0x88);
    CHECK(of_32::bytes(33) == 17);
    CHECK(of_rows::bytes(33) == 33);
    if constexpr (lanes == 16) {  // a quarter of a step
      CHECK(of_32::take(32, 5 * step));
      CHECK_FALSE(of_32::take(step, 5 * step));
      CHECK(words(of_32{}, 32) == 4);
      CHECK(words(of_any{}, 32) == 4);
      CHECK(words(of_any{}, step) == lanes);
      CHECK(words(ops::line_reading<nvfp4, A>{}, 16) == 2);
    } else if constexpr (lanes == 8) {
      CHECK(words(of_32{}, 32) == 4);
      CHECK(words(of_any{}, 8) == lanes);  // one word
    }
    using bytes = ops::line_reading<int8_group<32>, A>;
    CHECK(words(bytes{}, 32) == std::min(lanes, 32 * lanes / bytes::step));
    CHECK_FALSE(ops::line_reading<scheme<int4, group<48>>, A>::exist);  // neither words of a step nor steps
    CHECK_FALSE(ops::line_reading<scheme<e2m3, group<32>>, A>::exist);  // expanded
    CHECK_FALSE(ops::line_reading<scheme<int4, group<32>, zero_point<int32>>, A>::exist);  // zero points far away
    CHECK(of_32::exist == (lanes >= 8));
    CHECK(of_rows::exist == (lanes >= 8));
  });
}
TEST_CASE("group_block: signed bytes for matrix registers, one vector of columns behind the other") {
  using S = scheme<int4, group<16>>;
  tensor<S, matrix_extents> t(matrix_extents(40, 80));
  for (auto& c : t.codes()) c = static_cast<std::uint8_t>(check::random_bits()());
  const auto view = t.view();
  check::on_every_arch([&](auto arch) {
    using A = decltype(arch);
    using block = ops::group_block<ops::packed_panels<stored<S>, A>>;
    using form = ops::block_form;
    constexpr index_t width = ops::packed_panels<S, A>::layout_type::width;
    CHECK(block::makes(form::squares, 16) == simd::square_unit<A>::exists);
    CHECK_FALSE(block::makes(form::squares, 4));
    CHECK_FALSE(block::makes(form::squares, 72));
    using unsigned_block = ops::group_block<ops::packed_panels<stored<scheme<uint8, group<16>>>, A>>;
    CHECK_FALSE(unsigned_block::makes(form::squares, 16));
    if constexpr (simd::square_unit<A>::exists) {
      const auto packed = pack<A>(t);
      std::vector<float> space(static_cast<std::size_t>(block::space(16, true)));
      block b(packed.layout(), 16, true, space.data());
      const index_t p = packed.layout().panels() - 1, count = 4, quads = 4 * count;
      b.load(packed.panel(p), 1, count, false, false, form::squares);
      for (index_t n = p * width; n < 40; ++n)
        for (index_t k = 16; k < 80; ++k) {
          const index_t c = n - p * width, tile = simd::group_tile<A>::columns, half = tile / 2, i = k - 16;
          const index_t quad = c % tile / half * quads + i / 4;
          const auto byte = b.columns(c / tile * tile).codes[(quad * half + c % half) * 4 + i % 4];
          REQUIRE(static_cast<float>(static_cast<std::int8_t>(byte)) == decode<int4>(view.code(n, k)));
        }
    }
  });
}
TEST_CASE("group_block: columns of a block are the packed groups, zero points and sums made ready") {
  using S = scheme<uint4, group<8>, zero_point<uint4>>;
  tensor<S, matrix_extents> t(matrix_extents(40, 30));
  for (auto& c : t.codes()) c = static_cast<std::uint8_t>(check::random_bits()());
  for (auto& s : t.scales()) s = static_cast<float>(check::random_below(99));
  for (auto& z : t.zero_points()) z = static_cast<std::uint8_t>(check::random_below(16));
  const auto view = t.view();
  check::on_every_arch([&](auto arch) {
    using A = decltype(arch);
    using panels = ops::packed_panels<S, A>;
    constexpr index_t width = panels::layout_type::width;
    const auto packed = pack<A>(t);
    for (const index_t group : {8, 4}) {
      using block = ops::group_block<ops::packed_panels<stored<S>, A>>;
      REQUIRE(block::size(group) >= 3);
      std::vector<float> space(static_cast<std::size_t>(block::space(group, true)));
      block b(packed.layout(), group, true, space.data());
      const index_t p = packed.layout().panels() - 1, first = 1, count = divide_up(30, group) - first;
      using form = ops::block_form;
      CHECK_FALSE(block::makes(form::ready, 65536));
      CHECK_FALSE(block::makes(form::squares, 65536));
      CHECK(block::makes(form::ready, group) == simd::takes_ready_bytes<A>);
      if constexpr (simd::takes_ready_bytes<A>) {
        REQUIRE(block::size(group, form::ready) >= 3);
        b.load(packed.panel(p), first, count, false, true, form::ready);
        for (index_t n = p * width; n < 40; ++n)
          for (index_t k = first * group; k < 30; ++k) {
            const index_t c = n - p * width, tile = simd::group_tile<A>::columns, i = k - first * group;
            REQUIRE(b.columns(c / tile * tile).codes[(i / 4 * tile + c % tile) * 4 + i % 4] == view.code(n, k));
          }
      }
      b.load(packed.panel(p), first, count, false, true);
      const simd::group_columns all = b.columns(0);
      for (index_t n = p * width; n < 40; ++n)
        for (index_t g = 0; g < count; ++g) {
          const index_t c = n - p * width, k = (first + g) * group;
          std::int32_t sum = 0;
          for (index_t i = 0; i < std::min(group, 30 - k); ++i) {
            const auto code = static_cast<std::int32_t>(view.code(n, k + i));
            REQUIRE(block::packed_number(all.codes, g * group / 4, i, c) == code);
            sum += code - static_cast<std::int32_t>(view.zero_point(n, k));
          }
          REQUIRE(all.scales[g * all.stride + c] == view.scale(n, k));
          REQUIRE(all.zeros[g * all.stride + c] ==
                  simd::small_factor<A>(-static_cast<std::int32_t>(view.zero_point(n, k))));
          REQUIRE(all.sums[g * all.stride + c] == simd::large_factor<A>(sum));
        }
    }
  });
}
