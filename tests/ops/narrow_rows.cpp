// Mirrors include/qtensor/ops/narrow_rows.hpp: narrow rows taken as one, and quantize and dequantize of them.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/narrow_rows.hpp>

#include "halves_check.hpp"

using namespace qtensor;

namespace {

/// Scales of columns, rows enough to be taken as one and some more.
template <quantization_scheme S>
void check_columns() {
  INFO(std::string(name<S>));
  for (const index_t cols : {1, 2, 3, 8, 31, 100, 127, 128})
    for (const bool special : {false, true}) {
      const matrix_extents shape(1003, cols);
      CAPTURE(cols);
      const std::vector<float> x =
          special ? halves_check::with_specials(shape.size(), 5) : check::numbers(shape.size(), 6);
      const auto t = quantize<S>(source(x.data(), shape));
      CHECK(check::same_bytes(t, check::expected<S, row_major>(x, shape)));

      auto again = t;
      for (auto& code : again.codes()) code = {};
      quantize_static_into(memory_source<f32, matrix_extents>::in_order<row_major>(source(x.data(), shape)),
                           again.span());
      if (!special) CHECK(check::same_bytes(again, t));  // numbers that are not finite take scales of their own

      const auto back = [&]<class F>(std::type_identity<F>) {
        std::vector<storage_t<F>> out(x.size());
        dequantize_into<F>(t.view(), out.data(), {cols, 1});
        bool ok = true;
        for (index_t r = 0; r < shape[0]; ++r)
          for (index_t c = 0; c < cols; ++c) {
            const float value = reference::value(t.view(), {r, c});
            const storage_t<F> got = out[static_cast<std::size_t>(r * cols + c)];
            if constexpr (std::is_same_v<F, f32>)
              ok = ok && (bits_of(got) == bits_of(value) || (is_nan(got) && is_nan(value)));
            else
              ok = ok && got == encode<F, to_special>(value);
          }
        CHECK(ok);
      };
      back(std::type_identity<f32>{});
      back(std::type_identity<bf16>{});
    }
}

}  // namespace

TEST_CASE("narrow rows: int8") { check_columns<int8_per_channel<1>>(); }
TEST_CASE("narrow rows: uint8 with zero points") { check_columns<uint8_per_channel<1>>(); }
TEST_CASE("narrow rows: int4, where rows end in bytes and where they do not") {
  check_columns<scheme<int4, per_channel<1>>>();
}

TEST_CASE("rows_as_one: whole vectors, and at least two wide rows where rows fill vectors by themselves") {
  constexpr index_t step = 4 * simd::lanes<simd::best_arch>;
  for (index_t n = 1; n < 128; ++n) {
    const index_t together = ops::rows_as_one(n, 1 << 20);
    CHECK(together * n % step == 0);
    CHECK(together * n >= 256);
    CHECK(together * n <= ops::widest_row);
    for (index_t rows = 1; rows < 2 * together; ++rows) {
      const index_t some = ops::rows_as_one(n, rows);
      CHECK((some == 1 || some * n % step == 0));
      CHECK((n < step ? some : 2 * some) <= std::max(rows, index_t{2}));
    }
  }
  CHECK(ops::rows_as_one(0, 100) == 1);
  CHECK(ops::rows_as_one(128, 1 << 20) == 1);
}
