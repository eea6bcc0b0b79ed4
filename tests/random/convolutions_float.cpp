// Random convolutions by float products, and of quantized tensors, whose schemes decide how, against the definition.
// SPDX-License-Identifier: BSD-3-Clause
#include <optional>
#include <qtensor/ops/convolution_tensors.hpp>

#include "../ops/check.hpp"
#include "convolution_dice.hpp"

using namespace convolution_dice;

namespace {

/// A chain of fused multiply-adds for every output: x and w give floats.
template <class X, class W>
std::vector<float> chains(const qt::convolution_shape& s, const X& x, const W& w) {
  return by_definition<float>(s, [&](index_t n, index_t o, const position& at) {
    float sum = 0.f;
    for_each_term(
        s, n, o, at,
        [&](bool inside, index_t batch, index_t channel, const position& from, index_t i, const position& tap) {
          sum = std::fma(inside ? x(batch, channel, from) : 0.f, w(o, i, tap), sum);
        });
    return sum;
  });
}

using result_codes = qt::scheme<qt::int8, qt::per_tensor, qt::zero_point<qt::int8>, qt::static_only>;

void of_floats(dice& dice) {
  const operands p(dice);
  INFO(p.text());
  const qt::convolution_shape& s = p.plan.shape;
  const std::vector<float> x = dice.numbers(p.x.places), w = dice.numbers(p.w.places);
  const auto w_at = [&](index_t o, index_t i, const position& tap) {
    return w[static_cast<std::size_t>(p.plan.kernel.at(o, i, tap))];
  };
  const auto want = chains(
      s,
      [&](index_t n, index_t c, const position& at) { return x[static_cast<std::size_t>(p.plan.input.at(n, c, at))]; },
      w_at);
  const qt::packed_float_convolution<> packed(p.plan, w_at);
  INFO("form ", static_cast<int>(packed.form()));
  check_result<float>(
      dice, s,
      [&](const auto& y, const auto& by) {
        qt::convolve_floats(packed, qt::float_activations{x.data(), p.plan.input}, qt::ops::store_numbers{y}, by);
      },
      [&](std::size_t i, index_t) { return want[i]; });
}

void of_codes(dice& dice) {
  const operands p(dice);
  const qt::convolution_shape& s = p.plan.shape;
  const codes x(dice, p.x.places, dice.within(0, 1)),
      w(dice, p.w.places, dice.one_of(index_t{0}, index_t{1}, s.outputs));
  const auto along = dice.chance(2) ? qt::weight_scales::of_outputs : qt::weight_scales::of_inputs;
  const bool by_outputs = along == qt::weight_scales::of_outputs;
  const auto scales = [&](index_t n) { return dice.numbers(dice.chance(2) || n == 0 ? 1 : n); };
  const std::vector<float> x_scales = scales(s.inputs), w_scales = scales(by_outputs ? s.outputs : s.inputs);
  INFO(p.text(), " scales ", x_scales.size(), " ", w_scales.size(), " by outputs ", by_outputs);
  const auto scale = [](const std::vector<float>& all, index_t i) {
    return all[all.size() == 1 ? 0 : static_cast<std::size_t>(i)];
  };
  const auto want = chains(
      s,
      [&](index_t n, index_t c, const position& at) {
        return qt::rounded(static_cast<float>(x.number(p.plan.input.at(n, c, at), 0)) * scale(x_scales, c));
      },
      [&](index_t o, index_t i, const position& tap) {
        const index_t entry =
            by_outputs ? o : o / (s.outputs / s.groups / s.batch_groups) % s.groups * (s.inputs / s.groups) + i;
        return qt::rounded(static_cast<float>(w.number(p.plan.kernel.at(o, i, tap), o)) * scale(w_scales, entry));
      });
  const auto packed = qt::pack_convolution_floats(p.plan, {w.bytes.data(), w.sign, w.zeros}, w_scales, along);
  const qt::code_activations activations{
      {x.bytes.data(), x.sign, static_cast<std::int32_t>(x.zero(0))}, p.plan.input, x_scales};
  check_result<float>(
      dice, s,
      [&](const auto& y, const auto& by) { qt::convolve_floats(packed, activations, qt::ops::store_numbers{y}, by); },
      [&](std::size_t i, index_t) { return want[i]; });
}

/// What stands under each letter, as a tensor's index.
template <std::size_t Rank, class Under>
std::array<index_t, Rank> index_under(const std::string& order, const Under& under) {
  std::array<index_t, Rank> index{};
  for (std::size_t i = 0; i < Rank; ++i) index[i] = under(order[i]);
  return index;
}
index_t of_axis(const position& at, char letter) { return at[letter == 'D' ? 0 : letter == 'H' ? 1 : 2]; }

/// A tensor of random numbers of an operand's extents, with some more along its second axis.
template <class S, class Order>
auto tensor_of(dice& dice, const operand& of, index_t more) {
  const qt::dynamic_extents<4> extents(
      std::array<index_t, 4>{of.extents[0], of.extents[1] + more, of.extents[2], of.extents[3]});
  return check::expected<S, Order>(dice.numbers(extents.size()), extents);
}

/// Tensors of two schemes, in any order of their axes.
template <class X, class W, class XOrder = qt::row_major, class WOrder = qt::row_major>
void of_tensors(dice& dice, const operands& p) {
  const qt::convolution_shape& s = p.plan.shape;
  const index_t first = dice.within(0, 3), last = dice.within(0, 2);
  const auto whole = tensor_of<X, XOrder>(dice, p.x, first + last);
  const auto x = whole.view().template slice<1>(first, p.x.extents[1]);
  const auto weights = tensor_of<W, WOrder>(dice, p.w, 0);
  const auto w = weights.view();
  const auto x_under = [&](index_t n, index_t c, const position& at) {
    return index_under<4>(p.x.order, [&](char l) { return l == 'N' ? n : l == 'C' ? c : of_axis(at, l); });
  };
  const auto w_under = [&](index_t o, index_t i, const position& tap) {
    return index_under<4>(p.w.order, [&](char l) { return l == 'O' ? o : l == 'I' ? i : of_axis(tap, l); });
  };
  std::vector<float> bias(static_cast<std::size_t>(dice.one_of(index_t{0}, s.outputs)), 0.625f);
  INFO(std::string(qt::name<X>), " by ", std::string(qt::name<W>));
  const auto conv = qt::prepare_convolution(x, p.x.order, w, p.w.order, p.p.how);
  std::vector<float> want;
  if (conv.is_exact()) {
    const auto number = [](const auto& t, const auto& at) {
      using code = typename std::remove_cvref_t<decltype(t)>::scheme_type::code_format;
      return static_cast<std::int64_t>(code::decode(t.code(at))) - static_cast<std::int64_t>(t.zero_point(at));
    };
    want = by_definition<float>(s, [&](index_t n, index_t o, const position& at) {
      std::int64_t sum = 0;
      for_each_term(
          s, n, o, at,
          [&](bool inside, index_t batch, index_t channel, const position& from, index_t i, const position& tap) {
            if (inside) sum += number(x, x_under(batch, channel, from)) * number(w, w_under(o, i, tap));
          });
      const float by_x = qt::rounded(static_cast<float>(sum) * (x.size() > 0 ? x.scale(x_under(0, 0, {})) : 0.f));
      return qt::rounded(by_x * (s.depth() > 0 ? w.scale(w_under(o, 0, {})) : 0.f));
    });
  } else {
    want = chains(
        s, [&](index_t n, index_t c, const position& at) { return qt::reference::value(x, x_under(n, c, at)); },
        [&](index_t o, index_t i, const position& tap) { return qt::reference::value(w, w_under(o, i, tap)); });
  }
  const auto value = [&](std::size_t i, index_t) { return bias.empty() ? want[i] : qt::rounded(want[i] + 0.625f); };
  INFO("exact ", conv.is_exact(), " bias ", bias.size());
  check_result<float>(
      dice, s, [&](const auto& y, const auto& by) { qt::convolve_into(conv, x, bias, y, by); }, value);
  check_result<std::int8_t>(
      dice, s,
      [&](const auto& y, const auto& by) { qt::convolve_into<result_codes>(conv, x, bias, 0.125f, -3, y, by); },
      [&](std::size_t i, index_t o) {
        return static_cast<std::int8_t>(qt::quantize_element<result_codes>(value(i, o), {0.125f, 1.f}, -3));
      });
}

void of_quantized(dice& dice) {
  std::optional<operands> p;
  do p.emplace(dice);
  while (p->p.rank != 2 || p->w.extents.size() != 4 || p->plan.shape.depth() == 0 || p->x.places == 0);
  INFO(p->text());
  using codes_zp = qt::scheme<qt::uint8, qt::per_tensor, qt::zero_point<qt::uint8>>;
  switch (dice.within(0, 7)) {
    case 0:
      return of_tensors<codes_zp, qt::scheme<qt::int8, qt::per_channel<0>>>(dice, *p);
    case 1:
      return of_tensors<qt::int8_per_tensor, qt::scheme<qt::uint4, qt::per_channel<3>, qt::zero_point<qt::uint4>>,
                        qt::col_major>(dice, *p);
    case 2:
      return of_tensors<codes_zp, qt::int8_per_tensor, qt::row_major, qt::col_major>(dice, *p);
    case 3:
      return of_tensors<qt::int8_per_tensor, qt::int4_group<32>>(dice, *p);
    case 4:
      return of_tensors<qt::scheme<qt::int8, qt::per_channel<1>>, qt::mxfp4>(dice, *p);
    case 5:
      return of_tensors<qt::scheme<qt::e2m1, qt::per_tensor>, qt::scheme<qt::e4m3, qt::per_channel<1>>>(dice, *p);
    case 6:
      return of_tensors<qt::mxfp6_e2m3, qt::int8_per_tensor>(dice, *p);
    default:
      return of_tensors<qt::int8_group<32>, qt::int8_per_tensor, qt::col_major>(dice, *p);
  }
}

}  // namespace

TEST_CASE("convolutions of floats, and of codes with scales along any axis") {
  fuzz::each_case(200, [](dice& dice) { dice.chance(2) ? of_floats(dice) : of_codes(dice); });
}
TEST_CASE("convolutions of quantized tensors") { fuzz::each_case(150, of_quantized); }
