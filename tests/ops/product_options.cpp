// Mirrors include/qtensor/ops/product_options.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <qtensor/ops/packed.hpp>
#include <qtensor/ops/product_options.hpp>
#include <qtensor/scheme/schemes.hpp>
#include <qtensor/tensor/tensor.hpp>
#include <vector>

using namespace qtensor;

namespace {

template <class... Option>
constexpr product_math math_of = decltype(read_product_options(std::declval<const Option&>()...))::math;

struct counting {
  int* parts;
  void operator()(index_t count, const auto& part) const {
    for (index_t i = 0; i < count; ++i, ++*parts) part(i);
  }
};

}  // namespace

TEST_CASE("options: any order, each with its default") {
  static_assert(math_of<> == product_math::fixed_order);
  static_assert(math_of<decltype(bf16_math)> == product_math::bf16);
  static_assert(math_of<decltype(f16_math)> == product_math::f16);
  static_assert(math_of<decltype(int8_activations), execution<serial>> == product_math::int8_rows);
  static_assert(math_of<execution<serial>, decltype(int8_group_activations)> == product_math::int8_groups);
  static_assert(std::is_same_v<decltype(read_product_options(bf16_math))::executor_type, serial>);

  int parts = 0;
  const auto options = read_product_options(int8_activations, on(parallel_for(3, counting{&parts})));
  CHECK(options.by.concurrency() == 3);
  options.by(5, [](index_t) {});
  CHECK(parts == 5);
}

TEST_CASE("options: a destination refers to lvalues and holds what is about to die") {
  std::vector<float> y(3);
  const auto to = into(y);
  to.dst[1] = 2.f;
  CHECK(y[1] == 2.f);
  static_assert(std::is_same_v<decltype(to.dst), std::vector<float>&>);
  static_assert(std::is_same_v<decltype(into(std::vector<float>(4)).dst), std::vector<float>>);
  const float one = 0.5f;
  static_assert(std::is_same_v<decltype(with_scales(one, 3).values), std::tuple<const float&, int>>);
  CHECK(std::get<1>(with_scales(one, 3).values) == 3);
}

TEST_CASE("options: matrices carry them, views by value, packed weights by reference") {
  const tensor<int8_per_tensor> w(matrix_extents(2, 8));
  const auto with_math = w.with(bf16_math);
  static_assert(decltype(with_math.options)::math == product_math::bf16);
  static_assert(tensor_view_type<decltype(with_math.matrix)>);
  CHECK(with_math.matrix.cols() == 8);
  CHECK(w.view().with().matrix.rows() == 2);

  const packed<int8_per_tensor> p(packed<int8_per_tensor>::layout_type{2, 8, 8});
  const auto of_packed = p.with(int8_activations, on(serial()));
  static_assert(decltype(of_packed.options)::math == product_math::int8_rows);
  CHECK(&of_packed.matrix == &p);
}
