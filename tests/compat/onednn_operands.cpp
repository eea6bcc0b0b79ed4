// Mirrors include/qtensor/compat/onednn_operands.hpp: parameters by row and column, as their masks and groups say.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <qtensor/compat/onednn_operands.hpp>

namespace dnn = qtensor::compat::onednn;
namespace pieces = dnn::pieces;
using qtensor::index_t;

namespace {

using dims = std::vector<index_t>;
using type = dnn::data_type;

dnn::detail::parameter_map map_of(const std::vector<float>& data, const dims& of, int mask, const dims& groups) {
  return dnn::detail::map_of("a scale", {data.data(), type::f32, mask, groups}, of, true);
}

}  // namespace

TEST_CASE("numbers: neighbours of a row or a column have those of their groups") {
  std::vector<float> data(4 * 12 * 12);
  std::iota(data.begin(), data.end(), 0.f);
  const dims of = {2, 2, 12, 12};
  for (int mask = 0; mask < 16; ++mask)
    for (const dims& groups : mask >= 12 ? std::vector<dims>{{}, {4, 1}, {1, 3}, {6, 4}} : std::vector<dims>{{}}) {
      const auto extents = dnn::parameter_dims("a scale", of, mask, groups);
      const auto expected = [&](index_t matrix, index_t row, index_t col) {
        const dims at = {matrix / 2, matrix % 2, row, col};
        index_t entry = 0;
        for (std::size_t d = 0; d < 4; ++d) entry = entry * extents[d] + at[d] * extents[d] / of[d];
        return static_cast<float>(entry);
      };
      const pieces::numbers<float> all(map_of(data, of, mask, groups), of);
      std::vector<float> room;
      for (const index_t matrix : {0, 1, 3})
        for (const index_t first : {0, 1, 5, 11})
          for (index_t n = 1; first + n <= 12; ++n) {
            INFO("mask ", mask, " matrix ", matrix, " first ", first, " n ", n);
            const auto row = all.each(matrix, 7, first, pieces::along::cols, n, room);
            for (index_t i = 0; i < n; ++i) CHECK(row[static_cast<std::size_t>(i)] == expected(matrix, 7, first + i));
            const auto col = all.each(matrix, first, 7, pieces::along::rows, n, room);
            for (index_t i = 0; i < n; ++i) CHECK(col[static_cast<std::size_t>(i)] == expected(matrix, first + i, 7));
            const auto few = all.line(matrix, 7, first, pieces::along::cols, n, room);
            for (index_t i = 0; i < n; ++i)
              CHECK(few[few.size() == 1 ? 0 : static_cast<std::size_t>(i)] == expected(matrix, 7, first + i));
          }
    }
}

TEST_CASE("numbers: one for everything where none is given; s32 keep all digits") {
  std::vector<std::int32_t> room;
  const pieces::numbers<std::int32_t> none({}, dims{3, 4}, 5);
  CHECK(none.each(0, 1, 0, pieces::along::cols, 4, room)[3] == 5);
  const std::int32_t big = (1 << 24) + 1;
  const dims of = {3, 4};
  const pieces::numbers<std::int32_t> one(dnn::detail::map_of("a zero point", {&big, type::s32}, of, false), of);
  CHECK(one.line(0, 0, 0, pieces::along::rows, 3, room)[0] == big);
}

TEST_CASE("matmul_job: groups of both operands share their greatest common divisor; rows join where all allows it") {
  const std::vector<float> data(96, 1.f);
  const dims src = {2, 3, 24}, wei = {1, 24, 5};
  const dnn::matmul_attributes how;
  const auto job = [&](dnn::detail::parameter_map src_scale, dnn::detail::parameter_map wei_scale) {
    return pieces::matmul_job{src,       wei, type::u8,  type::s8, data.data(), data.data(),
                              src_scale, {},  wei_scale, {},       {},          how};
  };
  CHECK(job({}, {}).group() == 24);
  CHECK(job(map_of(data, src, 6, {1, 8}), map_of(data, wei, 6, {12, 1})).group() == 4);
  auto joined = job({}, {}), kept = job(map_of(data, src, 1, {}), {});
  joined.join_rows();
  kept.join_rows();
  CHECK((joined.src_dims == dims{6, 24} && joined.wei_dims == dims{24, 5} && joined.m() == 6));
  CHECK((kept.src_dims == src && kept.m() == 3));
}
