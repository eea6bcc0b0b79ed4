// Mirrors include/qtensor/compat/stablehlo_reduce.hpp: reductions on an executor.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/compat/stablehlo_reduce.hpp>

#include "ops/parts_check.hpp"

namespace qt = qtensor;
namespace shlo = qtensor::compat::stablehlo;
using parts_check::pattern;
using shlo::basic_type;
using shlo::scalar;
using shlo::scalars;

namespace {

template <class T>
shlo::tensor tensor_of(const shlo::element_type& type, const std::vector<qt::index_t>& shape) {
  qt::index_t size = 1;
  for (const qt::index_t n : shape) size *= n;
  const auto x = pattern<T>(size);
  return {type, shape, std::span<const T>(x)};
}
template <class Run>
void check(const Run& run) {
  parts_check::check(run, [](const auto& a, const auto& b) { return std::ranges::equal(a[0].bytes(), b[0].bytes()); });
}

const shlo::element_type f32 = basic_type::f32;
const auto add = [](const scalars& a, const scalars& b) {
  return scalars{shlo::apply(shlo::binary::add, f32, a[0], f32, b[0], f32)};
};

}  // namespace

TEST_CASE("stablehlo reductions on an executor: a body of scalars, and one of the library") {
  const auto x = tensor_of<float>(f32, {1000, 31, 8}), zero = tensor_of<float>(f32, {});
  check([&](const auto&... on) { return shlo::reduce({&x}, {&zero}, {1}, {f32}, add, {f32}, on...); });
  check([&](const auto&... on) { return shlo::reduce({&x}, {&zero}, {1}, {f32}, qt::add, {f32}, on...); });
  const shlo::element_type i8 = shlo::quantized_type::per_tensor(basic_type::i8, basic_type::f32, .5, 3);
  const auto codes = tensor_of<std::int8_t>(i8, {1000, 31, 8}), least = tensor_of<std::int8_t>(i8, {});
  const shlo::window_attributes w{{1, 3, 1}, {1, 2, 1}, {}, {}, {}};
  check([&](const auto&... on) { return shlo::reduce_window({&codes}, {&least}, w, {i8}, qt::max, {i8}, on...); });
}

TEST_CASE("stablehlo select_and_scatter on an executor") {
  const auto x = tensor_of<float>(f32, {1800, 64}), source = tensor_of<float>(f32, {1800, 32});
  const auto zero = tensor_of<float>(f32, {});
  const auto select = [](const scalar& a, const scalar& b) { return a.real >= b.real; };
  const auto scatter = [](const scalar& a, const scalar& b) { return add({a}, {b})[0]; };
  check([&](const auto&... on) {
    return std::vector{
        shlo::select_and_scatter(x, source, zero, {{1, 2}, {1, 2}, {}, {}, {}}, select, f32, scatter, f32, on...)};
  });
}
