// include/qtensor/ops/quantize.hpp under roundings at random: each element draws by its position, whatever the way
// there.
// SPDX-License-Identifier: BSD-3-Clause
#include "halves_check.hpp"
#include "special_blocks.hpp"

using namespace qtensor;

namespace {

using halves_check::with_specials;

/// Memory in the order of the tensor and across it; matrices also of half floats, and statically.
template <quantization_scheme S, storage_order Order = row_major, class Extents>
void check_extents(const Extents& e, bool specials = false) {
  CAPTURE(std::string(name<S>));
  const std::vector<float> x = specials ? with_specials(e.size(), 11) : check::numbers(e.size(), 12);
  const auto expected = check::expected<S, Order>(x, e);
  CHECK(check::same_bytes(quantize<S, Order>(source(x.data(), e)), expected));
  if constexpr (Extents::rank == 2) {
    std::vector<float> turned(x.size());
    for (index_t r = 0; r < e[0]; ++r)
      for (index_t c = 0; c < e[1]; ++c)
        turned[static_cast<std::size_t>(c * e[0] + r)] = x[static_cast<std::size_t>(r * e[1] + c)];
    CHECK(check::same_bytes(quantize<S, Order>(source(turned.data(), e, {1, e[0]})), expected));
  }
  if constexpr (Extents::rank == 2 && std::same_as<Order, row_major>) {
    const halves_check::numbers<bf16> halves(x);
    CHECK(check::same_bytes(quantize<S, Order>(source<bf16>(halves.data(), e)),
                            check::expected<S, Order>(halves.floats, e)));
  }
  if constexpr (!S::has_tensor_scale && Extents::rank == 2) {
    if (specials) return;
    auto again = expected, statically = expected;
    for (auto& code : again.codes()) code = {};
    quantize_static_into(typename memory_source<f32, Extents>::template in_order<Order>(source(x.data(), e)),
                         again.span());
    const auto strides = dense_strides(e.to_array());
    reference::quantize_static(
        [&](const auto& at) {
          index_t place = 0;
          for (std::size_t axis = 0; axis < at.size(); ++axis) place += at[axis] * strides[axis];
          return x[static_cast<std::size_t>(place)];
        },
        statically.span());
    CHECK(check::same_bytes(again, statically));
  }
}

template <quantization_scheme S>
void check_scheme() {
  using D = with<S, stochastic<9>>;
  check_extents<D>(extents(40, 96));
  check_extents<D>(extents(40, 96), true);
  check_extents<D>(extents(37, 70));
  check_extents<D, col_major>(extents(37, 70));
  check_extents<D>(extents(3000));
  if constexpr (fits_rank<typename S::granularity_type>(3)) {
    check_extents<D>(extents(3, 10, 34));
    check_extents<D, col_major>(extents(5, 34, 6));
  }
}

}  // namespace

TEST_CASE("stochastic: a scale of a tensor, of rows, of columns") {
  check_scheme<int8_per_tensor>();
  check_extents<with<scheme<e4m3, per_channel<0>>, stochastic<1>>>(extents(37, 70));
  check_extents<with<int4_group<>, per_channel<1>, stochastic<1>>>(extents(300, 31));
}
TEST_CASE("stochastic: blocks, groups, two levels") {
  check_scheme<mxfp4>();
  check_extents<with<nvfp4, tensor_scale<f32>, stochastic<1>>>(extents(40, 96), true);
  check_extents<with<along<0, mxfp8_e5m2>, stochastic<1>>>(extents(100, 33), true);
  check::in_full<mxfp6_e3m2, mxint8, fp8_block<16, 24>>(
      []<class S>() { check_extents<with<S, stochastic<1>>>(extents(33, 100)); });
}
TEST_CASE("stochastic: zero points") {
  check_scheme<uint8_per_tensor>();
  check_extents<with<uint4_group<10>, stochastic<4>>>(extents(50, 70), true);
  check::in_full<uint8_per_channel<1>>([]<class S>() { check_extents<with<S, stochastic<4>>>(extents(50, 70)); });
}
TEST_CASE("stochastic: what vectors do not draw is the reference's") {
  check_extents<with<hif8_block<1, 64>, stochastic<4>>>(extents(5, 70));
  check_extents<with<int8_group<32>, stochastic<4>, block_literal, saturate, nan_to_zero>>(extents(40, 64), true);
}

TEST_CASE("stochastic: zeros, infinities, NaNs, subnormals and far scales") {
  special_blocks::check_scheme<with<mxfp8_e4m3, stochastic<5>>>();
}

TEST_CASE("stochastic: given scales of 0, of either sign, make every code +0") {
  const auto check_zeros = []<class S, class Extents>(const Extents& e) {
    const std::vector<float> x = with_specials(e.size(), 5);
    auto got = check::expected<S, row_major>(x, e);
    got.scales()[0] = 0.f, got.scales()[1] = -0.f;
    auto want = got;
    const auto from = source(x.data(), e);
    reference::quantize_static([&](const auto& at) { return from.number(at); }, want.span());
    quantize_static_into(typename memory_source<f32, Extents>::template in_order<row_major>(from), got.span());
    CHECK(check::same_bytes(got, want));
    CHECK(got.view().code(0, 0) == 0);
  };
  check_zeros.operator()<scheme<e4m3, group<32>, stochastic<5>, to_special>>(extents(9, 70));
  check_zeros.operator()<scheme<uint8, per_channel<0>, zero_point<uint8>, stochastic<5>>>(extents(40, 1200));
  check_zeros.operator()<scheme<int4, group<1200>, stochastic<5>, reciprocal>>(extents(9, 1200));
}

TEST_CASE("stochastic: sources that are read in tiles") {
  using S = with<mxfp4, stochastic<3>>;
  const std::vector<float> x = with_specials(40 * 70, 5);
  tensor<S> t(extents(40, 70));
  quantize_into(check::tiled_source{{x.data(), 40, 70, 70, 1}}, t.span());
  CHECK(check::same_bytes(t, check::expected<S, row_major>(x, extents(40, 70))));
}

TEST_CASE("stochastic: parts of a tensor that lie apart draw by their place in the part") {
  using S = with<int8_per_channel<0>, stochastic<2>>;
  const std::vector<float> x = check::numbers(20 * 30, 3);
  tensor<S> whole(extents(20, 60));
  const auto part = whole.span().template slice<1>(30, 30);
  quantize_into(typename memory_source<f32, matrix_extents>::in_order<row_major>(source(x.data(), extents(20, 30))),
                part);
  const auto alone = check::expected<S, row_major>(x, extents(20, 30));
  bool same = true;
  for (index_t r = 0; r < 20; ++r)
    for (index_t c = 0; c < 30; ++c) same = same && part.code(r, c) == alone.view().code(r, c);
  CHECK(same);
}
