// Mirrors include/qtensor/compat/cann.hpp, torchao.hpp and transformer_engine.hpp: on an executor.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/compat/cann.hpp>
#include <qtensor/compat/torchao.hpp>
#include <qtensor/compat/transformer_engine.hpp>

#include "ops/parts_check.hpp"

using namespace qtensor;
using parts_check::check;

namespace {

const auto numbers = parts_check::pattern<float>(257 * 512);
const auto memory = source(numbers.data(), matrix_extents(257, 512));

constexpr auto same = [](const auto& a, const auto& b) {
  return std::ranges::equal(a.codes(), b.codes()) && std::ranges::equal(a.scales(), b.scales());
};

}  // namespace

TEST_CASE("cann on an executor: MX along the last axis, and both axes") {
  check([&](const auto&... on) { return compat::cann::dynamic_mx_quant<e4m3>(memory, on...); }, same);
  check([&](const auto&... on) { return compat::cann::dynamic_mx_quant_with_dual_axis<e4m3>(memory, on...); },
        [](const auto& a, const auto& b) { return same(a.rows, b.rows) && same(a.cols, b.cols); });
}

TEST_CASE("torchao and TransformerEngine on an executor: below a level that is known") {
  check([&](const auto&... on) { return compat::torchao::nvfp4_below(memory, .5f, on...); }, same);
  check([&](const auto&... on) { return compat::transformer_engine::quantize(memory, 100.f, on...); }, same);
}
