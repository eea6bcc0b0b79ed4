// What the tests of bf16 and f16 sources share: every kind of source in memory, beside the reference on the floats they
// are. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/ops/quantize.hpp>
#include <utility>

#include "check.hpp"

namespace halves_check {

using namespace qtensor;

/// Numbers of a format and the floats they are, from an odd address on.
template <format F>
struct numbers {
  std::vector<std::uint16_t> units;
  std::vector<float> floats;

  explicit numbers(const std::vector<float>& x) : units(x.size() + 1), floats(x.size()) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      units[i + 1] = static_cast<std::uint16_t>(encode<F>(x[i]));
      floats[i] = decode<F>(units[i + 1]);
    }
  }
  const std::uint16_t* data() const { return units.data() + 1; }
};

/// Awkward numbers with some NaN and infinities.
inline std::vector<float> with_specials(index_t n, unsigned seed) {
  std::vector<float> x = check::numbers(n, seed);
  for (std::size_t i = 11; i < x.size(); i += 997) x[i] = i % 3 == 0 ? quiet_nan : i % 3 == 1 ? infinity : -infinity;
  return x;
}

enum class orders { one, both };

/// Both formats with and without specials; bf16 also of its transpose, and into both storage orders where asked for.
template <class S, orders Of = orders::one>
void check_scheme() {
  INFO(std::string(name<S>), " ", std::string(choices<S>));
  const auto one = [](const auto& x, index_t rows, index_t cols, auto format) {
    using F = decltype(format);
    INFO(std::string(std::string_view(F::name)), " ", rows, " x ", cols);
    const matrix_extents shape(rows, cols);
    const numbers<F> v(x);
    const auto rows_first = source<F>(v.data(), shape);
    CHECK(check::same_bytes(quantize<S>(rows_first), check::expected<S, row_major>(v.floats, shape)));
    if constexpr (std::is_same_v<F, f16>) return;
    if constexpr (Of == orders::both)
      CHECK(check::same_bytes(quantize<S, col_major>(rows_first), check::expected<S, col_major>(v.floats, shape)));
    std::vector<float> turned(v.floats.size());
    for (index_t r = 0; r < rows; ++r)
      for (index_t c = 0; c < cols; ++c)
        turned[static_cast<std::size_t>(c * rows + r)] = v.floats[static_cast<std::size_t>(r * cols + c)];
    const matrix_extents other(cols, rows);
    CHECK(check::same_bytes(quantize<S>(source<F>(v.data(), other, {1, cols})),
                            check::expected<S, row_major>(turned, other)));
  };
  for (const auto& [rows, cols] : {std::pair<index_t, index_t>{1, 1}, {3, 7}, {37, 96}, {70, 333}, {2, 5000}}) {
    one(check::numbers(rows * cols, 3), rows, cols, bf16{});
    one(with_specials(rows * cols, 4), rows, cols, bf16{});
    one(with_specials(rows * cols, 5), rows, cols, f16{});
  }
}

}  // namespace halves_check
