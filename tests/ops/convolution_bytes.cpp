// Mirrors include/qtensor/ops/convolution_bytes.hpp: rows as bytes from every layout, bands of rows.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/convolution_bytes.hpp>

#include "convolution_check.hpp"

using namespace convolution_check;

TEST_CASE("byte_rows: the padded width from every layout, dilation and padding") {
  for (const char* order : {"NHWC", "NCHW", "NWCH", "CNHW"})
    for (const index_t channels : {1, 3, 4, 9})
      for (const index_t hole : {1, 2})
        for (const index_t low : {-2, 0, 3})
          for (const index_t step_up : {0, 1, 3}) {
            const problem p{.x_order = order,
                            .batch = 2,
                            .inputs = channels,
                            .outputs = 1,
                            .sizes = {2, 11},
                            .taps = {1, 2},
                            .how = {{1, 2}, {}, {1, hole}, {0, low}, {0, 2}},
                            .x_zero = -5};
            const operands data(p);
            qt::ops::byte_rows rows(data.plan, {data.x.data(), p.x_sign, p.x_zero});
            const qt::convolution_axis& w = data.plan.shape.axes[2];
            REQUIRE(rows.width() == (w.out() - 1) * 2 + 2);
            const index_t step = channels + step_up;
            std::vector<std::uint8_t> line(static_cast<std::size_t>(rows.width() * step), 1);
            rows.read(1, 0, channels, 0, 1, line.data(), step);
            for (index_t place = 0; place < rows.width(); ++place)
              for (index_t c = 0; c < channels; ++c) {
                const index_t at = w.source(place);
                const std::uint8_t want =
                    at < 0 ? 0xfb : data.x[static_cast<std::size_t>(data.plan.input.at(1, c, {0, 1, at}))];
                INFO(order, " ", channels, " ", hole, " ", low, " ", step_up, " ", place);
                REQUIRE(line[static_cast<std::size_t>(place * step + c)] == want);
              }
          }
}

TEST_CASE("byte_rows: rows that are turned together, of all channels and of some, however many fit") {
  for (const char* order : {"NHWC", "NCHW", "NWCH"})
    for (const index_t channels : {2, 3, 4, 5, 70})
      for (const index_t wide : {7, 900}) {
        const problem p{.x_order = order, .batch = 2, .inputs = channels, .outputs = 1, .sizes = {5, wide}};
        const operands data(p);
        check::fenced<std::uint8_t> source(data.x);
        qt::ops::byte_rows rows(data.plan, {source.data(), p.x_sign, p.x_zero});
        for (const index_t first : {index_t{0}, index_t{1}, index_t{0}})
          for (const index_t last : {5, 3, 0})
            for (const index_t h : {0, 1, 4, 2, 3}) {
              rows.reads_to(last);
              const auto row = rows.row(1, first, channels - first, 0, h);
              for (index_t i = 0; i < wide; ++i)
                for (index_t c = first; c < channels; ++c)
                  REQUIRE(row.from[i * row.apart + c - first] ==
                          data.x[static_cast<std::size_t>(data.plan.input.at(1, c, {0, h, i}))]);
            }
      }
}

TEST_CASE("row_band: the rows below some rows of output, each once, unread ones left out") {
  qt::convolution_shape s;
  s.axes[0] = {.in = 3, .taps = 2, .pad_low = 1};
  s.axes[1] = {.in = 20, .taps = 2, .stride = 4, .pad_low = 1};
  const qt::ops::row_band band(s, 3);
  CHECK(band.slot_rows == 2 * 4 + 2);
  CHECK(band.slot_count == 20);
  std::vector<std::array<index_t, 3>> seen;
  band.for_each(s, 0, 1, 2, [&](index_t slot, index_t d, index_t h) { seen.push_back({slot, d, h}); });
  const std::vector<std::array<index_t, 3>> want = {{0, -1, 3}, {1, -1, 4}, {4, -1, 7}, {5, -1, 8},
                                                    {10, 0, 3}, {11, 0, 4}, {14, 0, 7}, {15, 0, 8}};
  CHECK(seen == want);
  CHECK(band.last_row(s, 0, 1) == 1);
  CHECK(band.last_row(s, 1, 2) == 9);
  CHECK(band.last_row(s, 5, 1) == 20);
}
