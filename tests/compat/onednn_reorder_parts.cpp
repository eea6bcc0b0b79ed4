// Mirrors include/qtensor/compat/onednn_reorder.hpp, and onednn_dynamic.hpp: conversions on an executor.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/compat/onednn_dynamic.hpp>
#include <qtensor/compat/onednn_reorder.hpp>

#include "ops/parts_check.hpp"

namespace qt = qtensor;
namespace dnn = qtensor::compat::onednn;
using dnn::data_type;
using parts_check::check;
using parts_check::pattern;
using qt::index_t;

namespace {

const std::vector<index_t> dims = {67, 1921};  // odd, seven parts
constexpr index_t count = 67 * 1921;

/// The bytes of a reorder; beta reads what was there.
template <class Source, class... On>
std::vector<std::uint8_t> reordered(data_type from, const Source& x, data_type to, const dnn::attributes& how,
                                    const On&... on) {
  auto out = pattern<std::uint8_t>(dnn::byte_count(to, count));
  dnn::reorder(dims, from, x.data(), to, out.data(), how, on...);
  return out;
}

}  // namespace

TEST_CASE("onednn reorder on an executor: every kind of last step, parameters along each axis") {
  const auto x = pattern<float>(count);
  const auto scales = pattern<float>(1921);
  const auto zeros = pattern<std::int8_t>(67);
  dnn::attributes how;
  how.dst_scale = {scales.data(), data_type::f32, 2, {}};
  how.dst_zero_point = {zeros.data(), data_type::s8, 1, {}};
  how.beta = .5f;
  for (const data_type to : {data_type::s8, data_type::u4, data_type::bf16, data_type::s32, data_type::f8_e4m3}) {
    INFO("to=", dnn::name_of(to));
    check([&](const auto&... on) { return reordered(data_type::f32, x, to, how, on...); });
    how.zero_point_order = dnn::zero_point_order::after_round;
  }
  const auto nibbles = pattern<std::uint8_t>(dnn::byte_count(data_type::s4, count));
  check([&](const auto&... on) { return reordered(data_type::s4, nibbles, data_type::f32, how, on...); });
}

TEST_CASE("onednn reorder on an executor: random words belong to elements") {
  const auto x = pattern<float>(count);
  dnn::attributes how;
  how.rounding = dnn::rounding_mode::stochastic, how.seed = 5;
  for (const data_type to : {data_type::u4, data_type::f16}) {
    check([&](const auto&... on) { return reordered(data_type::f32, x, to, how, on...); });
    how.rounding = dnn::rounding_mode::stochastic_onednn;
  }
}

TEST_CASE("onednn reorder on an executor: copies") {
  const auto x = pattern<float>(count);
  check([&](const auto&... on) { return reordered(data_type::f32, x, data_type::f32, {}, on...); });
  const auto flushed = dnn::as_in(dnn::implementation::simple);
  check([&](const auto&... on) { return reordered(data_type::f32, x, data_type::f32, flushed, on...); });
}

TEST_CASE("onednn's dynamic quantization on an executor") {
  const std::vector<index_t> sizes = {61, 1920};
  const auto x = pattern<float>(61 * 1920);
  dnn::dynamic_scale how;
  how.mask = 3, how.groups = {1, 32};
  check([&](const auto&... on) {
    std::vector<std::uint8_t> codes(x.size()), scales(x.size() / 32);
    dnn::quantize(sizes, data_type::f32, x.data(), how, data_type::f8_e4m3, codes.data(), scales.data(), on...);
    return std::pair(codes, scales);
  });
}
