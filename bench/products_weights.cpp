// Weight-only products: 4- and 8-bit weights with groups, times floats, in every arithmetic.
// SPDX-License-Identifier: BSD-3-Clause
#include <memory>
#include <qtensor/ops/multiply.hpp>

#include "products.hpp"

namespace bench {

namespace {

using namespace qtensor;
using arch = simd::best_arch;

template <class S>
class weights {
 public:
  weights(const std::string& name, index_t n, index_t k, index_t copies) : name_(name), n_(n), k_(k) {
    const auto numbers = random_floats(n * k);
    plain_ = std::make_shared<tensor<S>>(quantize<S>(source(numbers.data(), extents(n, k))));
    for (index_t c = 0; c < copies; ++c) packed_.push_back(std::make_shared<packed_type>(pack(*plain_)));
  }
  template <class... Option>
  void add(index_t m, bound by, const std::string& who, const Option&... option) const {
    add_product(m, by, who, packed_, option...);
  }
  /// The tensor itself, which a product packs by and by.
  template <class... Option>
  void add_plain(index_t m, bound by, const std::string& who, const Option&... option) const {
    add_product(m, by, who + ", not packed", std::vector{plain_}, option...);
  }

 private:
  using packed_type = packed<stored<S>>;

  template <class Matrix, class... Option>
  void add_product(index_t m, bound by, const std::string& who, const std::vector<std::shared_ptr<Matrix>>& matrices,
                   const Option&... option) const {
    const auto x = std::make_shared<const array<float>>(random_floats(m * k_));
    auto y = std::make_shared<array<float>>(static_cast<std::size_t>(m * n_));
    const product p{name_,
                    m,
                    n_,
                    k_,
                    by,
                    static_cast<double>(packed_[0]->layout().sums_at()),
                    static_cast<index_t>(packed_.size())};
    add_candidate(p, who, [=, weights = matrices, n = n_, k = k_](index_t copy) {
      const ops::store_floats<arch> store{{y->data(), m, n, n, 1}};
      multiply_tiles(*weights[static_cast<std::size_t>(copy) % weights.size()],
                     matrix_ref<const float>{x->data(), m, k, k, 1}, store, option...);
    });
  }

  std::string name_;
  index_t n_, k_;
  std::shared_ptr<tensor<S>> plain_;
  std::vector<std::shared_ptr<packed_type>> packed_;
};

template <class S>
void add_counted(const std::string& name) {
  const weights<S> small(name, 512, 1024, 1), large(name, 4096, 4096, 24), middle(name, 1024, 1024, 1);
  for (const auto* w : {&small, &large}) {
    w->add(1, bound::reading, "qtensor int8_activations", int8_activations);
    w->add(1, bound::reading, "qtensor fixed order");
    w->add(1, bound::reading, "qtensor bf16_math", bf16_math);
  }
  large.add(8, bound::reading, "qtensor int8_activations", int8_activations);
  large.add(8, bound::float_fma, "qtensor fixed order");
  large.add(8, bound::reading, "qtensor bf16_math", bf16_math);
  large.add(16, bound::reading, "qtensor int8_activations", int8_activations);
  large.add(16, bound::reading, "qtensor int8_group_activations", int8_group_activations);
  large.add(16, bound::reading, "qtensor bf16_math", bf16_math);
  small.add_plain(1, bound::reading, "qtensor fixed order");
  small.add_plain(1, bound::reading, "qtensor int8_activations", int8_activations);
  middle.add_plain(16, bound::float_fma, "qtensor fixed order");
  middle.add_plain(16, bound::integer_vectors, "qtensor int8_activations", int8_activations);
  for (const index_t m : {16, 128}) {
    middle.add(m, bound::integer_vectors, "qtensor int8_activations", int8_activations);
    middle.add(m, bound::integer_vectors, "qtensor int8_group_activations", int8_group_activations);
    middle.add(m, bound::bf16_dot, "qtensor bf16_math", bf16_math);
    middle.add(m, bound::float_fma, "qtensor fixed order");
  }
}

/// Both sides quantized to a float format, products in bf16.
template <class SW, class SX>
void add_both(const std::string& name) {
  constexpr index_t m = 128, n = 1024, k = 1024;
  const auto a = random_floats(n * k), b = random_floats(m * k);
  const auto w = std::make_shared<packed<stored<SW>>>(pack(quantize<SW>(source(a.data(), extents(n, k)))));
  const auto x = std::make_shared<const tensor<SX>>(quantize<SX>(source(b.data(), extents(m, k))));
  auto y = std::make_shared<array<float>>(static_cast<std::size_t>(m * n));
  add_candidate({name, m, n, k, bound::bf16_dot}, "qtensor bf16_math", [=](index_t) {
    const ops::store_floats<arch> store{{y->data(), m, n, n, 1}};
    multiply_tiles(*w, *x, store, bf16_math);
  });
}

}  // namespace

void add_weight_products() {
  add_counted<int4_group<32>>("int4 g32 x f32");
  add_counted<int4_group<128>>("int4 g128 x f32");
  add_counted<mxfp4>("MXFP4 x f32");
  add_counted<nvfp4>("NVFP4 x f32");
  add_both<scheme<e4m3, per_channel<0>>, scheme<e4m3, per_channel<0>>>("e4m3 x e4m3");
  add_both<mxfp4, mxfp8_e4m3>("MXFP4 x MXFP8");
}

}  // namespace bench
