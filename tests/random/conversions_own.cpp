// Random tensors of users' own formats, roundings and scale rules, and of roundings at random, against the reference.
// SPDX-License-Identifier: BSD-3-Clause
#include "conversions.hpp"
#include "format/of_users.hpp"

using namespace qtensor;
using fuzz::quantize_memory;
using fuzz::quantize_static;

namespace {

using of_users::int12;
using of_users::nf4;
/// In no order, with both infinities, a NaN, two zeros, a value twice and a subnormal one.
struct mixed4 {
  static constexpr int bits = 4;
  static constexpr bool is_integer = false, is_signed = true;
  static constexpr float min = -3.f, max = 5.5f;
  static constexpr fixed_string name = "mixed4";
  static constexpr float decode(std::uint32_t code) {
    constexpr float level[16] = {2.f,  -0.f,  0.f,  -3.f,   infinity, -infinity, quiet_nan, 5.5f,
                                 0.3f, -0.3f, 0.3f, 1e-40f, 4.f,      3.f,       -1e-3f,    1.f};
    return level[code & 15];
  }
};
struct uint3 : integer<3, unsigned> {
  static constexpr fixed_string name = "uint3";
};
struct e3m4 : minifloat<3, 4, 3, specials::ieee> {
  static constexpr fixed_string name = "e3m4";
};
struct to_odd {
  using slot = slot::rounding;
  static constexpr fixed_string name = "to_odd";
  static constexpr bool up(bool, bool odd, qtensor::remainder r) { return r != qtensor::remainder::zero && !odd; }
};
/// Infinite for small blocks, NaN for large ones.
struct odd_scale {
  using slot = slot::rule;
  using statistics = absolute_maximum;
  static constexpr fixed_string name = "odd_scale";
  template <format Code, format Scale>
  static constexpr float scale(float amax, code_range) {
    return amax > 4.f ? -quiet_nan : amax < 0.1f ? infinity : -0.5f;
  }
};

/// Scales from the numbers, or given ones.
template <quantization_scheme S, int Rank, storage_order Order = row_major, format F = f32>
void quantize_either(fuzz::dice& dice) {
  dice.chance(2) ? quantize_memory<S, Rank, Order, F>(dice) : quantize_static<S, Rank, Order, F>(dice);
}

}  // namespace

TEST_CASE("conversions: users' formats, roundings and scale rules") {
  fuzz::each_case(1000, [](fuzz::dice& dice) {
    fuzz::one_case_of(dice, &quantize_either<scheme<nf4, group<64>>, 2, col_major, bf16>,
                      &quantize_either<scheme<mixed4, group<16>, to_special>, 2>,
                      &quantize_either<scheme<int12, per_channel<1>>, 2>,
                      &quantize_either<scheme<uint3, group<8>, zero_point<uint3>>, 2, row_major, f16>,
                      &quantize_either<scheme<e3m4, per_channel<0>, to_special, to_odd>, 3>,
                      &quantize_either<scheme<int8, group<32>, odd_scale>, 2>);
  });
}

TEST_CASE("conversions: codes from the top of a byte down, offsets, ties away from zero") {
  fuzz::each_case(1000, [](fuzz::dice& dice) {
    fuzz::one_case_of(
        dice, &quantize_either<scheme<nf4, group<32>, planar<high_first>>, 2>,
        &quantize_either<scheme<int4, per_channel<1>, nearest_away, planar<high_first>>, 2, row_major, f16>,
        &quantize_memory<scheme<uint4, group<16>, scale_as<f16>, offset<f16>, offset_min_max>, 2>,
        &quantize_memory<with<uint4_group<32>, scale_as<f16>>, 2, col_major, bf16>,
        &quantize_either<with<mxfp4, nearest_away>, 2, row_major, bf16>);
  });
}

TEST_CASE("conversions: at random") {
  fuzz::each_case(1000, [](fuzz::dice& dice) {
    fuzz::one_case_of(dice, &quantize_either<with<int8_per_channel<0>, stochastic<11>>, 3, col_major>,
                      &quantize_either<with<nvfp4, tensor_scale<f32>, stochastic<>>, 2>,
                      &quantize_either<with<uint4_group<32>, stochastic<8>>, 2, row_major, bf16>,
                      &quantize_either<with<fp8_block<16, 128>, stochastic<4294967295u>, to_special>, 2>,
                      &quantize_either<scheme<e5m2, per_axes<0, 2>, stochastic<14>>, 4>,
                      &quantize_either<scheme<nf4, group<dynamic>, stochastic<3>>, 2>);
  });
}
