// oneDNN's reorder with any attributes, element by element as NUMERICS 5.1, 5.2 and 5.6 say.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/compat/onednn_reorder.hpp>

#include "../compat/onednn_check.hpp"
#include "array.hpp"

using namespace qtensor;
using namespace onednn_check;

namespace {

data_type any_type(fuzz::dice& dice) { return all_types[dice.within(0, std::size(all_types) - 1)]; }

/// A code: of a number of the draw, or any bits.
std::uint32_t any_code(fuzz::dice& dice, data_type type, float number) {
  const bool wide = bits_of_type(type) > 8 && type != data_type::s32;
  if (wide) return code_of<to_special>(type, number);
  if (type == data_type::s32 && !dice.chance(8)) return static_cast<std::uint32_t>(dice.within(-300, 300));
  return dice.bits();
}

/// A dense array in oneDNN's layout.
fuzz::array codes_in_memory(fuzz::dice& dice, data_type type, index_t n) {
  fuzz::array out(dice, dnn::byte_count(type, n), std::max(1, bits_of_type(type) / 8));
  const std::vector<float> numbers = dice.numbers(n);
  for (index_t i = 0; i < n; ++i)
    out.set(i, bits_of_type(type), any_code(dice, type, numbers[static_cast<std::size_t>(i)]));
  if (bits_of_type(type) == 4 && n % 2 == 1) out.set(n, 4, 0);
  return out;
}

/// A parameter, its memory, and the entry of every element.
struct drawn {
  dnn::parameter where;
  fuzz::array memory;
  std::vector<index_t> entries;

  bool given() const { return where.data != nullptr; }
  std::uint32_t code(index_t element) const {
    return memory.get(entries[static_cast<std::size_t>(element)], bits_of_type(where.type));
  }
  float operator()(index_t element) const { return number(where.type, code(element)); }
};

drawn draw_parameter(fuzz::dice& dice, const list& dims, index_t count, bool is_scale) {
  const std::size_t rank = dims.size();
  dnn::parameter p;
  p.type = is_scale ? dice.one_of(data_type::f32, data_type::f32, data_type::bf16, data_type::f16, data_type::f8_e5m2,
                                  data_type::f8_e4m3, data_type::e8m0)
                    : dice.one_of(data_type::s32, data_type::s8, data_type::u8, data_type::s4, data_type::u4);
  p.mask = static_cast<int>(dice.within(0, (1 << rank) - 1));
  const std::size_t groups = static_cast<std::size_t>(dice.within(0, 2));
  bool fits = groups <= rank;
  for (std::size_t g = 0; g < groups && fits; ++g) fits = (p.mask >> (rank - groups + g) & 1) != 0;
  if (fits)
    for (std::size_t g = 0; g < groups; ++g) {
      const index_t extent = dims[rank - groups + g];
      p.groups.push_back(extent == 0 ? dice.within(1, 9) : fuzz::divisor(dice, extent));
    }
  index_t entries = 1;
  for (std::size_t d = 0; d < rank; ++d)
    if ((p.mask >> d & 1) != 0) {
      const std::size_t from_end = rank - d;
      entries *= dims[d] / (from_end <= p.groups.size() ? p.groups[p.groups.size() - from_end] : 1);
    }
  fuzz::array memory(dice, dnn::byte_count(p.type, entries), std::max(1, bits_of_type(p.type) / 8));
  const bool any = dice.chance(6);
  for (index_t i = 0; i < entries; ++i) {
    std::uint32_t code = dice.bits();
    if (!any && p.type == data_type::s32) code = static_cast<std::uint32_t>(dice.within(-140, 260));
    if (!any && is_scale)
      code = code_of<>(p.type, exp2i(static_cast<int>(dice.within(-3, 3))) * (1.f + 0.125f * (dice.bits() % 8)));
    memory.set(i, bits_of_type(p.type), code);
  }
  const bool absent = dice.chance(2);
  drawn out{p, std::move(memory), {}};
  if (!absent)
    for (index_t i = 0; i < count; ++i) out.entries.push_back(static_cast<index_t>(entry(p, dims, i)));
  return out;
}
/// Where it lies; an array moves with the object that holds it, so this is last.
void point(drawn& p, index_t count) {
  if (static_cast<index_t>(p.entries.size()) == count && count > 0) p.where.data = p.memory.data();
}

attributes draw_choices(fuzz::dice& dice, data_type to) {
  attributes how;
  how.beta = dice.chance(3) ? dice.one_of(1.f, 0.5f, -3.7f, infinity) : 0.f;
  how.division = dice.one_of(dnn::division::exact, dnn::division::reciprocal);
  how.zero_point_order = dice.one_of(dnn::zero_point_order::before_round, dnn::zero_point_order::after_round);
  const bool biased =
      to == data_type::bf16 || to == data_type::f16 || to == data_type::f8_e4m3 || to == data_type::f8_e5m2;
  if (dice.chance(3)) how.rounding = static_cast<dnn::rounding_mode>(dice.within(1, biased ? 3 : 1));
  how.seed = static_cast<std::int32_t>(dice.bits());
  how.offset = dice.chance(3)   ? 0
               : dice.chance(2) ? dice.bits()
                                : 0xFFFFFFFFu - static_cast<std::uint64_t>(dice.within(0, 900));
  how.fp8_path = dice.one_of(dnn::fp8_path::via_f16, dnn::fp8_path::direct);
  how.float_overflow = dice.one_of(dnn::float_overflow::to_special, dnn::float_overflow::saturate);
  how.nan_to_integer = static_cast<dnn::nan_to_integer>(dice.within(0, 2));
  how.zero_sign = dice.one_of(dnn::zero_sign::kept, dnn::zero_sign::positive);
  how.bf16_subnormals = dice.one_of(dnn::bf16_subnormals::kept, dnn::bf16_subnormals::flushed);
  return how;
}

/// The last steps into an integer: d as it is before the zero point is added.
std::uint32_t into_integer(float d, bool shifts, float zero, std::int64_t exact_zero, data_type to, std::uint32_t word,
                           const attributes& how) {
  const int bits = bits_of_type(to);
  const bool is_signed = to == data_type::s32 || to == data_type::s8 || to == data_type::s4;
  const double low = is_signed ? -std::ldexp(1.0, bits - 1) : 0.0, high = std::ldexp(1.0, bits - is_signed) - 1;
  const auto clamped = [&](double q) {
    return static_cast<std::uint32_t>(static_cast<std::int64_t>(q < low ? low : q > high ? high : q)) & low_bits(bits);
  };
  if (is_nan(d)) {
    if (how.nan_to_integer == dnn::nan_to_integer::zero) return 0;
    if (how.nan_to_integer == dnn::nan_to_integer::extreme) return clamped(!is_signed ? high : low);
    d = 0.f;  // real 0
  }
  const bool after = shifts && how.zero_point_order == dnn::zero_point_order::after_round;
  volatile float sum = d;
  if (shifts && !after) sum = sum + zero;
  double q = static_cast<double>(sum);
  if (!after) q = std::min(std::max(q, low), to == data_type::s32 ? 2147483520.0 : high);
  if (how.rounding == dnn::rounding_mode::stochastic && std::fabs(q) < 2147483648.0)
    q = static_cast<std::int32_t>(encode<int32, stochastic<>>(static_cast<float>(q), word));
  else if (std::isfinite(q))
    q = std::nearbyint(q);
  return clamped(after ? q + static_cast<double>(exact_zero) : q);
}

template <format F, class Overflow>
std::uint32_t into_float(float d, std::uint32_t index, std::uint64_t wide_index, const attributes& how) {
  constexpr bool fp8 = std::is_same_v<F, e4m3> || std::is_same_v<F, e5m2>;
  if (std::is_same_v<Overflow, saturate> && magnitude(d) == infinity)  // also where `encode` keeps an infinity
    d = std::copysign(static_cast<float>(F::max), d);
  if constexpr (fp8 || std::is_same_v<F, bf16> || std::is_same_v<F, f16>)
    if (how.rounding == dnn::rounding_mode::stochastic_onednn ||
        how.rounding == dnn::rounding_mode::stochastic_onednn_2025_03) {
      const auto from = how.rounding == dnn::rounding_mode::stochastic_onednn ? dnn::generator::current
                                                                              : dnn::generator::source_2025_03;
      d = dnn::stochastically_rounded<F>(
          d, dnn::rounding_bias(index, static_cast<std::uint32_t>(how.seed), F::bits, from));
    }
  if (how.rounding == dnn::rounding_mode::stochastic)
    return encode<F, stochastic<>, Overflow>(d, philox(wide_index, static_cast<std::uint32_t>(how.seed)));
  if constexpr (fp8)
    if (how.rounding == dnn::rounding_mode::nearest_even && how.fp8_path == dnn::fp8_path::via_f16)
      return encode<F, via_f16, Overflow>(d);
  if constexpr (std::is_same_v<F, e2m1>) return encode<F, nan_to_max>(d);
  if constexpr (std::is_same_v<F, e8m0>) return encode<F, toward_zero>(d);
  return encode<F, Overflow>(d);
}

void one_reorder(fuzz::dice& dice) {
  const list dims = fuzz::shape(dice, dice.within(1, 5), dice.chance(5) ? 5000 : 900);
  const data_type from = any_type(dice), to = any_type(dice);
  index_t count = 1;
  for (const index_t n : dims) count *= n;
  drawn p[] = {draw_parameter(dice, dims, count, true), draw_parameter(dice, dims, count, false),
               draw_parameter(dice, dims, count, true), draw_parameter(dice, dims, count, false)};
  const bool bare = dice.chance(6);
  for (drawn& each : p)
    if (!bare) point(each, count);
  attributes how = draw_choices(dice, to);
  if (bare && !dice.chance(3)) how.beta = 0.f;
  how.src_scale = p[0].where, how.src_zero_point = p[1].where;
  how.dst_scale = p[2].where, how.dst_zero_point = p[3].where;
  const fuzz::array x = codes_in_memory(dice, from, count), x_before = x;
  fuzz::array y = codes_in_memory(dice, to, count);
  fuzz::array want = y;
  CAPTURE(fuzz::text(dims));
  INFO(name_of(from), " to ", name_of(to), ", rounding ", static_cast<int>(how.rounding), ", beta ", how.beta);
  dnn::reorder(dims, from, x.data(), to, y.data(), how);

  const bool plain =
      std::none_of(std::begin(p), std::end(p), [](const drawn& each) { return each.given(); }) && how.beta == 0.f;
  const int bits = bits_of_type(to);
  for (index_t i = 0; i < count; ++i) {
    volatile float d = number(from, x.get(i, bits_of_type(from)));
    if (p[1].given()) d = d - p[1](i);
    if (p[0].given()) d = p[0](i) * d;
    if (how.beta != 0.f) {
      volatile float kept = how.beta * number(to, want.get(i, bits));
      d = d + kept;
    }
    if (p[2].given()) {
      volatile float inverse = 1.f / p[2](i);
      d = how.division == dnn::division::exact ? d / p[2](i) : d * inverse;
    }
    const std::uint64_t wide_index = static_cast<std::uint64_t>(i) + how.offset;
    const float zero = p[3].given() ? p[3](i) : 0.f;
    std::uint32_t code = 0;
    if (plain && from == to && (dnn::is_integer(to) || bits >= 8)) {
      code = x.get(i, bits);
      if (how.zero_sign == dnn::zero_sign::positive && number(to, code) == 0.f) code = code_of<>(to, 0.f);
      if (to == data_type::bf16 && how.bf16_subnormals == dnn::bf16_subnormals::flushed && (code & 0x7F80u) == 0)
        code &= how.zero_sign == dnn::zero_sign::positive && (code & 0x7Fu) == 0 ? 0u : 0x8000u;
    } else if (plain && dnn::is_integer(from) && dnn::is_integer(to)) {
      const auto range = dnn::pieces::range_of(to);
      const auto z = dnn::pieces::integer_at(from, x.data(), i);
      code = static_cast<std::uint32_t>(std::clamp(z, range.low, range.high));
    } else if (dnn::is_integer(to)) {
      const std::int64_t exact_zero = p[3].given() ? dnn::pieces::integer_at(p[3].where.type, p[3].memory.data(),
                                                                             p[3].entries[static_cast<std::size_t>(i)])
                                                   : 0;
      code = into_integer(d, p[3].given(), zero, exact_zero, to,
                          philox(wide_index, static_cast<std::uint32_t>(how.seed)), how);
    } else {
      if (p[3].given()) d = d + zero;
      if (how.zero_sign == dnn::zero_sign::positive) d = d + 0.f;
      if (to == data_type::bf16 && how.bf16_subnormals == dnn::bf16_subnormals::flushed &&
          magnitude(d) < std::numeric_limits<float>::min())
        d = is_negative(d) ? -0.f : 0.f;
      dnn::with_format(to, [&]<class F>(std::type_identity<F>) {
        const auto index = static_cast<std::uint32_t>(wide_index);
        code = how.float_overflow == dnn::float_overflow::saturate
                   ? into_float<F, saturate>(d, index, wide_index, how)
                   : into_float<F, to_special>(d, index, wide_index, how);
      });
    }
    // A NaN's sign and payload depend on which of two NaNs an addition keeps.
    const std::uint32_t got = y.get(i, bits);
    if (is_nan(d) && !dnn::is_integer(to) && (to == data_type::f4_e2m1 ? (got & 7u) == 7u : is_nan(number(to, got))))
      code = got;
    want.set(i, bits, code);
  }
  if (bits == 4 && count % 2 == 1) want.set(count, 4, 0);
  std::string parameters;
  for (const drawn& each : p)
    if (each.given())
      parameters += std::string(name_of(each.where.type)) + ", mask " + std::to_string(each.where.mask) + ", groups " +
                    fuzz::text(each.where.groups) + "; ";
  INFO(parameters);
  INFO("division ", static_cast<int>(how.division), ", zero points ", static_cast<int>(how.zero_point_order), ", path ",
       static_cast<int>(how.fp8_path), ", overflow ", static_cast<int>(how.float_overflow), ", NaN ",
       static_cast<int>(how.nan_to_integer), ", -0 ", static_cast<int>(how.zero_sign), ", subnormals ",
       static_cast<int>(how.bf16_subnormals));
  for (index_t i = 0; i < count; ++i)
    if (y.get(i, bits) != want.get(i, bits)) {
      INFO("element ", i, " of code ", x.get(i, bits_of_type(from)), ": ", y.get(i, bits), ", not ", want.get(i, bits));
      REQUIRE(false);
    }
  REQUIRE(y == want);
  REQUIRE(x == x_before);
}

}  // namespace

TEST_CASE("oneDNN: reorder with any attributes") { fuzz::each_case(600, one_reorder); }
