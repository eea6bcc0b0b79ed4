// Mirrors include/qtensor/ops/block_parameters.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <qtensor/ops/block_parameters.hpp>
#include <qtensor/scheme/schemes.hpp>
#include <random>

using namespace qtensor;

namespace {

/// Statistics of blocks, element by element, as the reference has them.
template <class S>
bool same_statistics(const std::vector<float>& x, index_t length, const ops::statistics_view& seen) {
  const index_t n = static_cast<index_t>(x.size());
  for (index_t b = 0; b < divide_up(n, length); ++b) {
    reference::block_statistics want;
    for (index_t i = b * length; i < n && i < (b + 1) * length; ++i) want.add<S>(x[static_cast<std::size_t>(i)]);
    const reference::block_statistics got = seen[b];
    const bool finite = want.amax_bits < infinity_bits;
    if (finite != (got.amax_bits < infinity_bits)) return false;
    // Rules over extremes ask the magnitude for nothing else, and blocks that are not finite have no extremes.
    if (ops::needs_extremes<S> ? finite && (want.low != got.low || want.high != got.high)
                               : finite && want.amax_bits != got.amax_bits)
      return false;
  }
  return true;
}

template <class S>
void check_statistics(bool with_infinity) {
  for (const auto& size : {std::pair<index_t, index_t>{300, 32}, {64, 16}, {41, 5}, {70, 70}, {33, 1}}) {
    const index_t n = size.first, length = size.second;
    std::mt19937 random(static_cast<unsigned>(n * length));
    std::vector<float> x(static_cast<std::size_t>(n));
    for (float& v : x) v = static_cast<float>(static_cast<int>(random() % 2001) - 1000) * 0.125f;
    if (with_infinity) x[static_cast<std::size_t>(n / 2)] = -infinity, x[0] = quiet_nan;
    INFO(std::string(name<S>), " elements ", n, " in blocks of ", length);
    const index_t blocks = divide_up(n, length);
    ops::statistics_memory<S> alone(blocks), joined(blocks), other(blocks);
    ops::block_statistics<S>(x.data(), n, length, alone.view());
    CHECK(same_statistics<S>(x, length, alone.view()));
    const index_t half = blocks / 2 * length;
    ops::join_statistics<S>(x.data(), half, length, joined.view());
    ops::join_statistics<S>(x.data() + half, n - half, length, other.view().from(blocks / 2));
    joined.join(other);
    CHECK(same_statistics<S>(x, length, joined.view()));
  }
}

}  // namespace

TEST_CASE("statistics of blocks: alone or joined in parts, those of the reference") {
  check_statistics<int8_per_tensor>(false);
  check_statistics<uint8_per_tensor>(false);
  check_statistics<mxfp8_e4m3>(true);
  check_statistics<with<int8_per_tensor, block_ignores_nan>>(true);
  check_statistics<with<int8_per_tensor, block_ignores>>(true);
}

TEST_CASE("load_scales, load_zero_points: entries of any length, from any element on, those of the view") {
  const auto check = []<class S>(std::type_identity<S>) {
    tensor<S> t(extents(9, 70));
    for (std::size_t i = 0; i < t.scales().size(); ++i) t.scales()[i] = 0.25f * static_cast<float>(i + 1);
    for (std::size_t i = 0; i < t.zero_points().size(); ++i)
      t.zero_points()[i] = static_cast<storage_t<typename S::zero_point_format>>(i * 37 % 251);
    const auto w = t.view();
    float scales[70];
    std::int32_t zeros[70];
    for (const index_t length : {1, 2, 5, 16, 33})
      for (const index_t col : {0, 1, 15, 16, 40})
        for (index_t count = 1; col + (count - 1) * length < 70; ++count) {
          const index_t row = (col + count) % 9;
          ops::load_scales(w, {row, 0}, col, count, length, scales);
          ops::load_zero_points(w, {row, 0}, col, count, length, zeros);
          for (index_t i = 0; i < count; ++i) {
            const std::array<index_t, 2> at{row, col + i * length};
            if (bits_of(scales[i]) != w.storage_scale_code(at) || zeros[i] != w.storage_zero_point(at))
              FAIL(std::string(name<S>), " length ", length, " from ", col, " entry ", i, " of ", count);
          }
        }
  };
  check(std::type_identity<scheme<uint8, block<3, 16>, zero_point<uint8>>>{});
  check(std::type_identity<scheme<uint8, block<1, 5>, zero_point<uint8>>>{});
  check(std::type_identity<scheme<uint8, per_channel<1>, zero_point<uint8>>>{});
  check(std::type_identity<scheme<int8, per_channel<1>, zero_point<int8>>>{});
  check(std::type_identity<scheme<int4, per_channel<1>, zero_point<int4>>>{});
  check(std::type_identity<scheme<uint4, per_channel<1>, zero_point<uint4>>>{});
  check(std::type_identity<scheme<int8, per_channel<1>, zero_point<int32>>>{});
  check(std::type_identity<scheme<uint8, per_channel<0>, zero_point<uint8>>>{});
  check(std::type_identity<scheme<uint8, per_tensor, zero_point<uint8>>>{});
}
