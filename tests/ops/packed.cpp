// Mirrors include/qtensor/ops/packed.hpp: what follows from sizes alone; tests/ops/pack.cpp reads packed matrices.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <qtensor/ops/packed.hpp>
#include <qtensor/scheme/schemes.hpp>

namespace simd = qtensor::simd;
using namespace qtensor;

TEST_CASE("packed_code: 8-bit integers become signed, shorter ones unsigned, other codes stay") {
  CHECK(packed_code<int8>::of(0x80) == 0x80);
  CHECK(packed_code<uint8>::of(0) == 0x80);  // -128
  CHECK(packed_code<uint8>::of(255) == 127);
  CHECK(packed_code<int4>::of(0x8) == 0);  // -8
  CHECK(packed_code<int4>::of(0x7) == 15);
  CHECK(packed_code<uint4>::of(15) == 15);
  CHECK(packed_code<int2>::of(2) == 0);  // -2
  CHECK(packed_code<e2m1>::of(9) == 9);
  CHECK(packed_code<e4m3>::of(0x7e) == 0x7e);
}

TEST_CASE("packed: what it moves from holds nothing") {
  using weights = packed<stored<mxfp4>>;
  weights from(weights::layout_type{70, 64, 32}), to;
  const index_t size = from.size_bytes();
  const auto holds_nothing = [](const weights& w) {
    return w.rows() == 0 && w.cols() == 0 && w.bytes().empty() && w.size_bytes() == 0;
  };
  to = std::move(from);
  CHECK(holds_nothing(from));
  CHECK(to.rows() == 70);
  CHECK(to.bytes().size() == static_cast<std::size_t>(size));
  const weights last(std::move(to));
  CHECK(holds_nothing(to));
  CHECK(last.cols() == 64);
}

TEST_CASE("packed_layout: arrays follow each other on cache lines, whole quads for every group") {
  simd::archs::for_each([](auto arch) {
    using A = decltype(arch);
    const packed_layout<stored<uint4_group<6>>, A> l{70, 20, 6};
    CHECK(l.groups() == 4);
    CHECK(l.group_quads() == 2);
    CHECK(l.quads() == 7);  // 2 + 2 + 2 + 1
    CHECK(l.panel_bytes() == 7 * 2 * l.width);
    CHECK(l.scales_at() % 64 == 0);
    CHECK(l.scales_at() >= l.panels() * l.panel_bytes());
    CHECK(l.zeros_at() >= l.scales_at() + l.panels() * l.panel_entries() * 4);
    CHECK(l.sums_at() >= l.zeros_at() + l.panels() * l.panel_entries());
    CHECK(l.bytes() >= l.sums_at() + l.panels() * l.panel_entries() * 4);
    const packed_layout<stored<mxfp4>, A> mx{70, 64, 32};
    CHECK(mx.bytes() == mx.zeros_at());  // nothing after the scales
  });
}
