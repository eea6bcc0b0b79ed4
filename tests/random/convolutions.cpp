// Random convolutions of 8-bit codes, of every geometry, layout and kind of result, against sums in 64 bits.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/convolution_sinks.hpp>
#include <qtensor/ops/epilogue.hpp>
#include <qtensor/scheme/schemes.hpp>

#include "convolution_dice.hpp"

using namespace convolution_dice;

namespace {

template <class Code, class... Policy>
using static_codes = qt::scheme<Code, qt::per_tensor, qt::zero_point<Code>, qt::static_only, Policy...>;

/// How sums become numbers.
struct numbers {
  float scale;
  std::vector<float> scales, bias;
  std::vector<std::int32_t> sum_bias;

  numbers(dice& dice, index_t outputs)
      : scale(dice.chance(3) ? 1.f : positive(dice)),
        scales(static_cast<std::size_t>(dice.one_of(index_t{0}, index_t{1}, outputs))),
        bias(static_cast<std::size_t>(dice.one_of(index_t{0}, outputs))),
        sum_bias(static_cast<std::size_t>(dice.one_of(index_t{0}, outputs))) {
    for (float& v : scales) v = positive(dice);
    if (!bias.empty()) bias = dice.numbers(outputs);
    for (float& v : bias) v = v == v ? v : -0.f;
    const index_t most = dice.one_of(index_t{100}, index_t{1} << 31);
    for (auto& v : sum_bias) v = static_cast<std::int32_t>(dice.within(-most, most - 1));
  }
  static float positive(dice& dice) {
    const float part = 1.f + static_cast<float>(dice.within(0, 4095)) / 4096.f;
    return std::ldexp(part, static_cast<int>(dice.within(-12, 4)));
  }
  qt::convolution_scales lists() const { return {scale, scales, bias, sum_bias}; }
  float operator()(std::int64_t sum, index_t o) const {
    const auto at = static_cast<std::size_t>(o);
    const auto biased =
        static_cast<std::uint32_t>(sum) + (sum_bias.empty() ? 0u : static_cast<std::uint32_t>(sum_bias[at]));
    float y = qt::rounded(static_cast<float>(static_cast<std::int32_t>(biased)) * scale);
    if (!scales.empty()) y = qt::rounded(y * scales[scales.size() == 1 ? 0 : at]);
    return bias.empty() ? y : qt::rounded(y + bias[at]);
  }
};

/// Codes of S under a scale and a zero point.
template <class S>
void check_codes(dice& dice, const qt::packed_convolution<>& w, const qt::convolution_input& x, const numbers& how,
                 const std::vector<std::int64_t>& sums) {
  const float scale =
      dice.chance(8) ? dice.one_of(0x1p-130f, 0x1p-149f, 0x1.fp127f, 0x1p-126f) : 0x1p4f * numbers::positive(dice);
  const auto low = static_cast<index_t>(S::codes.low);
  const auto zero = static_cast<std::int32_t>(low + dice.one_of(index_t{0}, index_t{255}, dice.within(0, 255)));
  INFO("codes under ", scale, " and ", zero);
  const qt::convolution_shape& s = w.shape();
  check_result<qt::simd::code_unit_t<S>>(
      dice, s, [&](const auto& y, const auto& by) { qt::convolve_into<S>(w, x, how.lists(), scale, zero, y, by); },
      [&](std::size_t i, index_t o) {
        return static_cast<qt::simd::code_unit_t<S>>(qt::quantize_element<S>(how(sums[i], o), {scale, 1.f}, zero));
      });
}

/// Floats that stages have changed, as bits of F.
void check_stages(dice& dice, const qt::packed_convolution<>& w, const qt::convolution_input& x, const numbers& how,
                  const std::vector<std::int64_t>& sums) {
  const qt::convolution_shape& s = w.shape();
  const std::vector<float> other = dice.numbers(s.result_batch() * s.pixels() * s.outputs),
                           added(static_cast<std::size_t>(s.outputs), 0.75f);
  const float low = static_cast<float>(dice.within(-100, 0)), high = static_cast<float>(dice.within(0, 100));
  const bool narrow = dice.chance(2);
  const auto stages = qt::stages(
      qt::stage::bias(added), qt::stage::relu(),
      qt::stage::sum(qt::matrix_ref<const float>{other.data(), s.result_batch() * s.pixels(), s.outputs, s.outputs, 1}),
      qt::stage::clip(low, high));
  const auto value = [&](std::size_t i, index_t o) {
    const auto pixels = static_cast<std::size_t>(s.pixels()), outputs = static_cast<std::size_t>(s.outputs);
    const std::size_t n = i / pixels / outputs, at = (n * pixels + i % pixels) * outputs + static_cast<std::size_t>(o);
    float v = qt::rounded(how(sums[i], o) + 0.75f);
    v = qt::rounded((v < 0.f ? 0.f : v) + other[at]);
    return v < low ? low : v > high ? high : v;
  };
  INFO("stages, ", std::string(narrow ? "bf16" : "f32"));
  if (!narrow)
    return check_result<float>(
        dice, s,
        [&](const auto& y, const auto& by) {
          const qt::ops::store_numbers store{y};
          const qt::ops::staged<std::remove_const_t<decltype(stages)>, qt::ops::store_numbers> sink{stages, store};
          qt::convolve_with(w, x, how.lists(), sink, by);
        },
        value);
  check_result<std::uint16_t>(
      dice, s,
      [&](const auto& y, const auto& by) {
        qt::convolve_with(
            w, x, how.lists(),
            [&](const qt::product_tile& t) {
              stages(t);
              for (index_t r = 0; r < t.rows; ++r)
                for (index_t c = 0; c < t.cols; ++c)
                  qt::simd::narrow_floats<qt::bf16>(
                      t.values + r * t.stride + c, 1,
                      y.at((t.row + r) / s.pixels(), (t.row + r) % s.pixels(), t.col + c));
            },
            by);
      },
      [&](std::size_t i, index_t o) {
        return static_cast<std::uint16_t>(qt::encode<qt::bf16, qt::to_special>(value(i, o)));
      });
}

void one_convolution(dice& dice) {
  const operands p(dice);
  const qt::convolution_shape& s = p.plan.shape;
  const codes x(dice, p.x.places, dice.within(0, 1));
  const codes w(dice, p.w.places, dice.one_of(index_t{0}, index_t{1}, s.outputs));
  qt::simd::squares_allowed = !dice.chance(4);
  INFO(p.text(), " x ", static_cast<int>(x.sign), " zero ", x.zero(0), " w ", static_cast<int>(w.sign), " zeros ",
       w.zeros.size(), " first ", w.zeros.empty() ? 0 : w.zeros[0]);

  // What sums may come to decides what is refused; taps that read nothing but padding add nothing.
  const auto is_read = [&](const position& tap) {
    for (std::size_t a = 0; a < tap.size(); ++a)
      if (const auto [first, end] = s.axes[a].taps_inside(); tap[a] < first || tap[a] >= end) return s.is_empty();
    return true;
  };
  std::int64_t reach = 0;
  for (index_t o = 0; o < s.outputs; ++o) {
    std::int64_t sum = 0;
    qt::reference::for_each_position(qt::reference::taps_of(s), [&](const position& tap) {
      for (index_t i = 0; i < s.group_inputs() && is_read(tap); ++i)
        sum += std::abs(w.number(p.plan.kernel.at(o, i, tap), o));
    });
    reach = std::max(reach, sum);
  }
  const qt::convolution_weights weights{w.bytes.data(), w.sign, w.zeros};
  constexpr std::int64_t limit = std::int64_t{1} << 31;
  if (reach * 255 >= limit) {
    REQUIRE_THROWS_AS(qt::pack_convolution(p.plan, weights), qt::error);
    return;
  }
  const auto packed = qt::pack_convolution(p.plan, weights);
  INFO("form ", static_cast<int>(packed.form()));
  REQUIRE(packed.reach() == reach);
  const qt::convolution_input input{x.bytes.data(), x.sign, static_cast<std::int32_t>(x.zero(0))};
  const index_t low = x.sign == code_sign::is_signed ? -128 : 0;
  const std::int64_t zero = x.zero(0), outside = std::max({low - zero, zero - (low + 255), std::int64_t{0}});
  if (reach * (255 + outside) >= limit) {
    const qt::convolution_result<std::int32_t> nowhere{};
    REQUIRE_THROWS_AS(qt::convolve_into(packed, input, nowhere), qt::error);
    return;
  }

  const auto sums = by_definition<std::int64_t>(s, [&](index_t n, index_t o, const position& at) {
    std::int64_t sum = 0;
    for_each_term(
        s, n, o, at,
        [&](bool inside, index_t batch, index_t channel, const position& from, index_t i, const position& tap) {
          if (inside)
            sum += x.number(p.plan.input.at(batch, channel, from), 0) * w.number(p.plan.kernel.at(o, i, tap), o);
        });
    return sum;
  });
  check_result<std::int32_t>(
      dice, s, [&](const auto& y, const auto& by) { qt::convolve_into(packed, input, y, by); },
      [&](std::size_t i, index_t) { return static_cast<std::int32_t>(sums[i]); });
  const numbers how(dice, s.outputs);
  INFO("scale ", how.scale, " of ", how.scales.size(), " ", how.bias.size(), " ", how.sum_bias.size());
  switch (dice.within(0, 4)) {
    case 0:
      return check_result<float>(
          dice, s, [&](const auto& y, const auto& by) { qt::convolve_into(packed, input, how.lists(), y, by); },
          [&](std::size_t i, index_t o) { return how(sums[i], o); });
    case 1:
      return check_codes<static_codes<qt::int8>>(dice, packed, input, how, sums);
    case 2:
      return check_codes<static_codes<qt::uint8, qt::zp_before_round>>(dice, packed, input, how, sums);
    case 3:
      return check_codes<static_codes<qt::uint8, qt::nearest_away>>(dice, packed, input, how, sums);
    default:
      return check_stages(dice, packed, input, how, sums);
  }
}

}  // namespace

TEST_CASE("convolutions: exact sums, floats, codes and stages of them") {
  fuzz::each_case(400, one_convolution);
  qt::simd::squares_allowed = true;
}
