// Mirrors include/qtensor/compat/zendnn.hpp, and ggml_rows.hpp: conversions on an executor.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/compat/ggml_rows.hpp>
#include <qtensor/compat/zendnn.hpp>

#include "ops/parts_check.hpp"

namespace ggml = qtensor::compat::ggml;
namespace zen = qtensor::compat::zendnn;
using parts_check::check;
using parts_check::pattern;
using zen::data_type_t;

namespace {

const auto numbers = pattern<float>(3 * 41 * 1000);
const auto scales = [] {
  auto s = pattern<float>(41 * 1000);
  for (float& v : s) v = .5f + v * v * 1e-4f;
  return s;
}();

/// The bytes of a reorder of [3, 41, 1000] under scales of these dims.
template <class... On>
std::vector<std::uint8_t> reordered(data_type_t from, const void* x, data_type_t to,
                                    const std::vector<std::int64_t>& dims, const std::vector<std::int64_t>& strides,
                                    const On&... on) {
  std::vector<std::uint8_t> out(numbers.size() * (to == data_type_t::f32 ? 4 : 1));
  zen::lowoha_reorder_params_t p;
  p.dtypes = {from, to};
  p.quant_params.scale = {scales.data(), data_type_t::f32, dims};
  p.src_shape = {3, 41, 1000}, p.src_strides = strides;
  const zen::status_t s = zen::reorder(x, out.data(), p, on...);
  CHECK_MESSAGE(s == zen::status_t::success, s.reason());
  return out;
}

}  // namespace

TEST_CASE("zendnn on an executor: scales of the tensor, of rows, of columns, of groups; strides; codes back") {
  const std::vector<std::int64_t> dense, turned = {41000, 1, 41};
  for (const std::vector<std::int64_t>& dims :
       {std::vector<std::int64_t>{1, 1, 1}, {1, 41, 1}, {1, 1, 1000}, {1, 41, 25}}) {
    INFO("scales ", dims[1], " x ", dims[2]);
    check([&](const auto&... on) {
      return reordered(data_type_t::f32, numbers.data(), data_type_t::s8, dims, dense, on...);
    });
    check([&](const auto&... on) {
      return reordered(data_type_t::f32, numbers.data(), data_type_t::s8, dims, turned, on...);
    });
  }
  const auto codes = pattern<std::uint8_t>(3 * 41 * 1000);
  check([&](const auto&... on) {
    return reordered(data_type_t::u8, codes.data(), data_type_t::f32, {1, 41, 1}, dense, on...);
  });
}

TEST_CASE("zendnn on an executor: the plain call") {
  zen::lowoha_reorder_params_t p;
  p.dtypes = {data_type_t::f32, data_type_t::s8};
  p.quant_params.scale = {scales.data(), data_type_t::f32, {1}};
  check([&](const auto&... on) {
    std::vector<std::uint8_t> out(numbers.size() - 1);
    CHECK(zen::reorder(numbers.data(), out.data(), out.size(), p, on...) == zen::status_t::success);
    return out;
  });
}

TEST_CASE("ggml's rows on an executor: every kind of type, there and back") {
  const qtensor::index_t n = 3 * 40 * 1024;
  for (const ggml::type type : {ggml::type::f16, ggml::type::q4_0, ggml::type::q8_1, ggml::type::nvfp4}) {
    const int id = static_cast<int>(type);
    INFO("type=", id);
    std::vector<std::uint8_t> blocks(static_cast<std::size_t>(ggml::row_bytes(id, n)));
    CHECK(ggml::quantize_row(id, numbers.data(), blocks.data(), n).ok());
    check([&](const auto&... on) {
      std::vector<std::uint8_t> bytes(blocks.size());
      CHECK(ggml::quantize_row(id, numbers.data(), bytes.data(), n, on...).ok());
      return bytes;
    });
    check([&](const auto&... on) {
      std::vector<float> x(static_cast<std::size_t>(n));
      CHECK(ggml::dequantize_row(id, blocks.data(), x.data(), n, on...).ok());
      return x;
    });
  }
}
