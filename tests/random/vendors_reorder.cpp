// ZenDNN's reorder, static and dynamic, of any types, shapes, strides and granularities, as NUMERICS 6 says.
// SPDX-License-Identifier: BSD-3-Clause
#include "../compat/zendnn_check.hpp"
#include "array.hpp"

using namespace qtensor;

namespace {

using zendnn_check::data_type_t;

/// dims of a parameter of an M x N matrix, behind a 1 where there are batches.
std::vector<std::int64_t> draw_dims(fuzz::dice& dice, const std::vector<std::int64_t>& shape) {
  const std::int64_t n = shape.back(), m = shape.size() > 1 ? shape[shape.size() - 2] : 1;
  std::vector<std::int64_t> out;
  if (dice.chance(8)) return out;
  if (shape.size() > 1) {
    switch (dice.within(0, 4)) {
      case 0:
        out = {1, 1};
        break;
      case 1:
        out = {1, n};
        break;
      case 2:
        out = {m, 1};
        break;
      case 3:
        out = {fuzz::divisor(dice, m), n};
        break;
      default:
        out = {m, fuzz::divisor(dice, n)};
    }
    if (out[0] == m && out[1] == n && m > 1 && n > 1) out = {1, 1};
  } else {
    out = {dice.chance(2) ? 1 : n};
  }
  if (shape.size() == 3) out.insert(out.begin(), 1);
  return out;
}
std::int64_t entries_of(const std::vector<std::int64_t>& dims) {
  return std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
}

void zendnn_reorder(fuzz::dice& dice) {
  using namespace zendnn_check;
  const bool dynamic = dice.chance(4), flat = dice.chance(4);
  const data_type_t wide = dice.one_of(data_type_t::f32, data_type_t::bf16, data_type_t::f16);
  const data_type_t codes = dice.one_of(data_type_t::s8, data_type_t::u8);
  data_type_t from = wide, to = codes;
  if (!dynamic && dice.chance(3)) std::swap(from, to);
  if (!dynamic && dice.chance(4)) {
    from = wide;
    to = wide == data_type_t::f32
             ? dice.one_of(data_type_t::bf16, data_type_t::f16)
             : dice.one_of(data_type_t::f32, wide == data_type_t::bf16 ? data_type_t::f16 : data_type_t::bf16);
  }
  geometry g;
  g.shape = fuzz::shape(dice, flat ? 1 : dice.within(1, 3), dice.chance(5) ? 9000 : 1500);
  for (auto& n : g.shape) n = std::max<std::int64_t>(n, 1);
  std::vector<std::int64_t>* const both[] = {&g.scale_dims, &g.zero_dims};
  for (auto* dims : both) {
    if (!flat) {
      *dims = draw_dims(dice, g.shape);
    } else if (const std::int64_t d = fuzz::divisor(dice, g.shape[0]); !dice.chance(4)) {
      *dims = dice.chance(2) ? std::vector<std::int64_t>{d} : std::vector<std::int64_t>{g.shape[0] / d, d};
    }
  }
  if (dynamic || dice.chance(2)) g.zero_dims = g.scale_dims;
  if (!flat && dice.chance(2)) {
    std::int64_t step = dice.chance(3) ? dice.within(1, 3) : 1;
    g.strides.resize(g.shape.size());
    for (std::size_t d = g.shape.size(); d-- > 0; step = step * g.shape[d] + (dice.chance(3) ? dice.within(0, 5) : 0))
      g.strides[d] = step;
    if (g.shape.size() > 1 && dice.chance(4)) std::swap(g.strides[g.shape.size() - 1], g.strides[g.shape.size() - 2]);
    if (dice.chance(12)) g.strides[0] = 1;  // overlapping rows
  }
  const auto bits = [](data_type_t t) { return static_cast<int>(8 * size_of(t)); };
  const auto entry_of = [&](const std::vector<std::int64_t>& dims, std::int64_t row, std::int64_t col) -> std::size_t {
    if (!flat) return entry(dims, g.extents()[1], g.extents()[2], row, col);
    if (dims.empty()) return 0;
    return static_cast<std::size_t>(dims.size() == 1 ? col % dims[0] : col / dims[1]);
  };
  fuzz::array x(dice, g.reach() * static_cast<index_t>(size_of(from)), static_cast<index_t>(size_of(from)));
  const std::vector<float> numbers = dice.numbers(g.reach());
  for (index_t i = 0; i < g.reach(); ++i)
    x.set(i, bits(from), is_code(from) ? dice.bits() : word_of(from, numbers[static_cast<std::size_t>(i)]));
  const data_type_t scale_type = dice.one_of(data_type_t::f32, data_type_t::bf16, data_type_t::f16);
  const std::int64_t scale_count =
                         entries_of(g.scale_dims.size() == 2 && flat ? std::vector{g.scale_dims[0]} : g.scale_dims),
                     zero_count =
                         entries_of(g.zero_dims.size() == 2 && flat ? std::vector{g.zero_dims[0]} : g.zero_dims);
  fuzz::array scales(dice, scale_count * static_cast<index_t>(size_of(scale_type)),
                     static_cast<index_t>(size_of(scale_type))),
      zeros(dice, zero_count * 4, 4),
      y(dice, g.count() * static_cast<index_t>(size_of(to)), static_cast<index_t>(size_of(to)));
  lowoha_reorder_params_t p;
  p.dtypes = {from, to};
  p.algo = static_cast<reorder_algo_t>(dice.within(-1, 2));
  p.dynamic_quant = dynamic;
  p.special_quotients = dice.chance(4) ? special_quotients_t::x86 : special_quotients_t::saturate;
  p.zero_points = dice.chance(4) ? zero_points_t::int32 : zero_points_t::codes;
  const bool scaled = dynamic || !dice.chance(4), shifted = dynamic ? to == data_type_t::u8 : !dice.chance(3);
  if (scaled) p.quant_params.scale = {scales.data(), scale_type, g.scale_dims};
  if (shifted) p.quant_params.zero_point = {zeros.data(), data_type_t::s32, g.zero_dims};
  const bool is_signed = from == data_type_t::s8 || to == data_type_t::s8, any = dice.chance(8);
  for (index_t i = 0; i < scale_count; ++i) {
    const std::uint32_t raw = dice.bits() & low_bits(bits(scale_type) - 1);
    const float s = float_at(scale_type, raw);
    const float tame = dice.chance(5) ? 1.f
                                      : exp2i(static_cast<int>(dice.within(-4, 3))) *
                                            (1.f + static_cast<float>(dice.bits() % 16) / 16);
    scales.set(i, bits(scale_type), any && is_finite(s) && s > 0.f ? raw : word_of(scale_type, tame));
  }
  for (index_t i = 0; i < zero_count; ++i) {
    std::int64_t z = dice.chance(3) ? 0 : dice.within(is_signed ? -128 : 0, is_signed ? 127 : 255);
    if (p.zero_points == zero_points_t::int32 && !dice.chance(3)) z = static_cast<std::int32_t>(dice.bits());
    zeros.set(i, 32, static_cast<std::uint32_t>(z));
  }
  if (!flat) set_geometry(p, g);
  const fuzz::array x_before = x;
  fuzz::array want = y, want_scales = scales, want_zeros = zeros;
  INFO(g.text(), "flat ", flat, ", ", static_cast<int>(from), " to ", static_cast<int>(to), ", algorithm ",
       static_cast<int>(p.algo), ", dynamic ", dynamic, ", scales ", scaled, " of ", static_cast<int>(scale_type),
       ", zero points ", shifted, ", special ", static_cast<int>(p.special_quotients), " zero points ",
       static_cast<int>(p.zero_points));
  const status_t done = flat || dice.chance(2) ? reorder(x.data(), y.data(), static_cast<std::size_t>(g.count()), p)
                                               : reorder(x.data(), y.data(), p);
  INFO(done.reason());
  REQUIRE(done == status_t::success);

  const auto e = g.extents(), step = g.steps();
  const auto each = [&](auto visit) {
    index_t i = 0;
    for (std::int64_t b = 0; b < e[0]; ++b)
      for (std::int64_t row = 0; row < e[1]; ++row)
        for (std::int64_t col = 0; col < e[2]; ++col, ++i)
          visit(i, x.get(b * step[0] + row * step[1] + col * step[2], bits(from)), row, col);
  };
  if (dynamic) {
    std::vector<float> low(static_cast<std::size_t>(scale_count), infinity), high(low.size(), -infinity);
    each([&](index_t, std::uint32_t word, std::int64_t row, std::int64_t col) {
      const std::size_t at = entry_of(g.scale_dims, row, col);
      const float v = float_at(from, word);
      if (is_finite(v)) low[at] = std::min(low[at], v), high[at] = std::max(high[at], v);
    });
    for (std::size_t at = 0; at < low.size(); ++at) {
      float lo = low[at], hi = high[at];
      if (lo > hi) lo = hi = 0.f;
      volatile float s;
      if (to == data_type_t::s8) {
        s = std::max(std::max(std::fabs(lo), std::fabs(hi)), 1e-10f) / 127.f;
      } else {
        volatile float range = lo + 1.f;
        if (hi <= lo) hi = range;
        range = hi - lo;
        s = range / 255.f;
      }
      s = std::max(float{s}, 1e-10f);
      if (to == data_type_t::u8) {
        const double z = std::round(static_cast<double>(-lo) / static_cast<double>(s));
        want_zeros.set(static_cast<index_t>(at), 32,
                       static_cast<std::uint32_t>(static_cast<std::int32_t>(std::clamp(z, -0x1p31, 0x1p31 - 1))));
      }
      if (scale_type == data_type_t::f16) s = std::max(float{s}, 0x1p-14f);
      want_scales.set(static_cast<index_t>(at), bits(scale_type), word_of(scale_type, s));
    }
  }
  REQUIRE(scales == want_scales);
  REQUIRE(zeros == want_zeros);
  each([&](index_t i, std::uint32_t word, std::int64_t row, std::int64_t col) {
    const float s =
        scaled
            ? float_at(scale_type, scales.get(static_cast<index_t>(entry_of(g.scale_dims, row, col)), bits(scale_type)))
            : 1.f;
    const std::int32_t z =
        shifted ? static_cast<std::int32_t>(zeros.get(static_cast<index_t>(entry_of(g.zero_dims, row, col)), 32)) : 0;
    std::uint32_t code = expected(from, to, word, s, z);
    if (is_code(to) && p.special_quotients == special_quotients_t::x86) {
      volatile float q = float_at(from, word) / s;
      const bool fits = q >= -0x1p31f && q < 0x1p31f;
      const std::int64_t r =
          fits ? static_cast<std::int64_t>(std::nearbyint(static_cast<double>(q))) : std::int64_t{-1} << 31;
      const auto sum = static_cast<std::int32_t>(static_cast<std::uint32_t>(r + z));
      code = static_cast<std::uint32_t>(
                 std::clamp(sum, to == data_type_t::s8 ? -128 : 0, to == data_type_t::s8 ? 127 : 255)) &
             0xFFu;
    }
    const std::uint32_t got = y.get(i, bits(to));
    if (!is_code(to) && is_nan(float_at(to, code)) && is_nan(float_at(to, got))) code = got;  // of any sign and payload
    if (code != got) {
      INFO("element ", i, ", word ", word, ", scale ", s, ", zero point ", z, ": ", got, ", not ", code);
      REQUIRE(false);
    }
    want.set(i, bits(to), code);
  });
  REQUIRE(y == want);
  REQUIRE(x == x_before);
}

}  // namespace

TEST_CASE("ZenDNN: reorder, static and dynamic") { fuzz::each_case(500, zendnn_reorder); }
