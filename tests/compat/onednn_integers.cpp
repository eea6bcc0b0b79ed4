// Mirrors include/qtensor/compat/onednn_integers.hpp: sums of groups, each scaled twice and added in order.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <qtensor/compat/onednn_integers.hpp>
#include <random>

namespace dnn = qtensor::compat::onednn;
namespace pieces = dnn::pieces;
using qtensor::index_t;
using qtensor::rounded;

namespace {

using dims = std::vector<index_t>;
using type = dnn::data_type;

std::mt19937& random_bits() {
  static std::mt19937 bits(5);
  return bits;
}
template <class T>
std::vector<T> some(index_t n, std::int64_t low, std::int64_t high) {
  std::vector<T> out(static_cast<std::size_t>(n));
  for (T& x : out) x = static_cast<T>(low + random_bits()() % static_cast<std::uint64_t>(high - low + 1));
  return out;
}

/// Numbers up to `farthest` of both signs, every third one as far.
std::vector<std::int32_t> spread(index_t n, std::int64_t farthest) {
  auto out = some<std::int32_t>(n, -farthest, farthest);
  for (std::int32_t& x : out)
    if (random_bits()() % 3 == 0) x = static_cast<std::int32_t>(x < 0 ? -farthest : farthest);
  return out;
}

/// u8 by s8, groups along k, all parameters for every row or column of every group; reductions are any numbers.
struct grouped_product {
  index_t m, k, n, group;
  std::int64_t farthest;  // zero points and reductions
  bool reduces;
  dnn::reductions_of reductions_of;

  void check() const {
    const index_t groups = k / group;
    const dims src = {m, k}, wei = {k, n};
    const auto x = some<std::uint8_t>(m * k, 0, 255);
    const auto w = some<std::int8_t>(k * n, -128, 127);
    const auto src_zero = spread(m, farthest), wei_zero = spread(groups * n, farthest),
               reductions = spread(m * groups, farthest);
    auto src_scale = some<float>(m * groups, 1, 50), wei_scale = some<float>(groups * n, 1, 50);
    for (float& s : src_scale) s /= 7.f;
    for (float& s : wei_scale) s /= 3.f;
    dnn::matmul_attributes how;
    how.reductions_of = reductions_of;
    const auto map = [](const auto& data, type t, const dims& of, int mask, const dims& by) {
      return dnn::detail::map_of("a parameter", {data.data(), t, mask, by}, of, t == type::f32);
    };
    const pieces::matmul_job job{
        src,
        wei,
        type::u8,
        type::s8,
        x.data(),
        w.data(),
        map(src_scale, type::f32, src, 3, {1, group}),
        map(src_zero, type::s32, src, 1, {}),
        map(wei_scale, type::f32, wei, 3, {group, 1}),
        map(wei_zero, type::s32, wei, 3, {group, 1}),
        reduces ? map(reductions, type::s32, src, 3, {1, group}) : dnn::detail::parameter_map{},
        how};
    std::vector<float> y(static_cast<std::size_t>(m * n), -7.f);
    pieces::code_product<qtensor::uint8>{job}(0, y.data());
    const auto at = [](const auto& list, index_t i) { return list[static_cast<std::size_t>(i)]; };
    for (index_t r = 0; r < m; ++r)
      for (index_t c = 0; c < n; ++c) {
        float d = 0.f;
        for (index_t g = 0; g < groups; ++g) {
          const std::int64_t z = at(wei_zero, g * n + c), s = at(src_zero, r);
          std::int64_t sum = 0;
          for (index_t i = g * group; i < (g + 1) * group; ++i)
            sum += (at(x, r * k + i) - s) * (at(w, i * n + c) - (reduces ? 0 : z));
          sum = static_cast<std::int32_t>(static_cast<std::uint32_t>(sum));
          if (reduces) {
            sum -= at(reductions, r * groups + g) * z;
            if (reductions_of == dnn::reductions_of::codes) sum += group * z * s;
          }
          const float scaled = rounded(static_cast<float>(sum) * at(src_scale, r * groups + g));
          d = rounded(d + rounded(scaled * at(wei_scale, g * n + c)));
        }
        INFO(m, " x ", k, " x ", n, " groups of ", group, ", element ", r, ", ", c);
        CHECK(at(y, r * n + c) == d);
      }
  }
};

}  // namespace

TEST_CASE("code_product: groups and columns around vectors and tiles, zero points near and far, given reductions") {
  for (const std::int64_t farthest : {9, 46340, 1 << 20})  // 46340: products of 32 bits, sums beyond
    for (const bool reduces : {false, true})
      for (const index_t group : {1, 3, 4, 16, 33})
        for (const index_t n : {1, 7, 15, 16, 17, 33, 64, 65})
          for (const index_t m : {1, 2, 9}) {
            const auto of = (m + n) % 2 == 0 ? dnn::reductions_of::codes : dnn::reductions_of::shifted;
            grouped_product{m, group * (1 + n % 3), n, group, farthest, reduces, of}.check();
          }
}
