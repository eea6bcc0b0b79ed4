// CANN's block quantizations of any types, shapes, strides and blocks, as NUMERICS 2.5, 3 and 4 say.
// SPDX-License-Identifier: BSD-3-Clause
#include "../compat/cann_calls.hpp"
#include "array.hpp"

using namespace qtensor;

namespace {

using list = std::vector<index_t>;

namespace cann = qtensor::compat::cann;
namespace type = qtensor::compat::cann::type;

index_t product(const list& sizes, std::size_t first, std::size_t end) {
  index_t n = 1;
  for (std::size_t d = first; d < end; ++d) n *= sizes[d];
  return n;
}

/// A strided array: axes in any order and direction, with gaps between them, or dense.
struct strided {
  list sizes, strides;
  index_t zero = 0, reach = 1;  // the place of element 0, and all places
  bool dense;

  strided(fuzz::dice& dice, const list& of, bool repeats) : sizes(of), strides(of.size()), dense(dice.chance(3)) {
    list order(sizes.size());
    for (std::size_t d = 0; d < order.size(); ++d) order[d] = static_cast<index_t>(d);
    for (std::size_t d = order.size(); d > 1 && !dense; --d)
      if (dice.chance(2))
        std::swap(order[d - 1], order[static_cast<std::size_t>(dice.within(0, static_cast<index_t>(d) - 1))]);
    for (std::size_t k = order.size(); k-- > 0;) {
      const std::size_t d = static_cast<std::size_t>(order[k]);
      index_t step = reach;
      if (!dense && dice.chance(3)) step += dice.within(0, 3);
      if (!dense && dice.chance(4)) step = -step;
      if (!dense && (sizes[d] == 1 || (repeats && dice.chance(12)))) step = dice.chance(2) ? 0 : step;
      strides[d] = step;
      const index_t far = step * std::max<index_t>(0, sizes[d] - 1);
      if (far < 0) zero -= far;
      reach += far < 0 ? -far : far;
    }
    reach += zero % 2, zero += zero % 2;  // half bytes: element 0 is a low one
  }
  /// Calls visit(element in row-major order, its place).
  template <class Visit>
  void each(Visit visit) const {
    const index_t n = product(sizes, 0, sizes.size());
    for (index_t i = 0; i < n; ++i) {
      index_t rest = i, at = zero;
      for (std::size_t d = sizes.size(); d-- > 0; rest /= sizes[d]) at += rest % sizes[d] * strides[d];
      visit(i, at);
    }
  }
};

int bits_of(std::int64_t t) { return cann::parts::bits_of_type(t); }
fuzz::array memory_of(fuzz::dice& dice, const strided& at, std::int64_t t) {
  return fuzz::array(dice, divide_up(at.reach * bits_of(t), 8), std::max(1, bits_of(t) / 8));
}
template <class Pointer, class Array>
cann::basic_array<Pointer> tensor_of(Array& memory, const strided& at, std::int64_t t) {
  return {memory.data() + at.zero * bits_of(t) / 8, t, at.sizes, at.dense ? cann::dims{} : cann::dims(at.strides)};
}

/// x and its numbers in row-major order.
struct cann_source {
  strided at;
  std::int64_t type;
  fuzz::array memory;
  std::vector<float> numbers;

  cann_source(fuzz::dice& dice, const list& sizes)
      : at(dice, sizes, true), type(dice.one_of(type::f32, type::bf16, type::f16)), memory(memory_of(dice, at, type)) {
    const std::vector<float> x = dice.numbers(at.reach);
    for (index_t i = 0; i < at.reach; ++i) {
      const float v = x[static_cast<std::size_t>(i)];
      memory.set(i, bits_of(type),
                 type == type::f32    ? qtensor::bits_of(v)
                 : type == type::bf16 ? encode<bf16, to_special>(v)
                                      : encode<f16, to_special>(v));
    }
    at.each([&](index_t, index_t place) {
      const std::uint32_t code = memory.get(place, bits_of(type));
      numbers.push_back(type == type::f32    ? float_of(code)
                        : type == type::bf16 ? decode<bf16>(code)
                                             : decode<f16>(code));
    });
  }
  cann::input tensor() const { return tensor_of<const void*>(memory, at, type); }
};

/// A result and what it should be.
struct cann_result {
  strided at;
  std::int64_t type;
  fuzz::array memory, want;

  cann_result(fuzz::dice& dice, const list& sizes, std::int64_t t)
      : at(dice, sizes, false), type(t), memory(memory_of(dice, at, t)), want(memory) {}
  cann::output tensor() { return tensor_of<void*>(memory, at, type); }
  void expect(const std::vector<std::uint32_t>& codes) {
    at.each([&](index_t i, index_t place) { want.set(place, bits_of(type), codes[static_cast<std::size_t>(i)]); });
  }
  void check() const {
    at.each([&](index_t i, index_t place) {
      const std::uint32_t got = memory.get(place, bits_of(type)), wanted = want.get(place, bits_of(type));
      if (got == wanted) return;
      INFO("element ", i, " is ", got, ", not ", wanted);
      REQUIRE(false);
    });
    REQUIRE(memory == want);
  }
};

template <class Rounding>
std::uint32_t cann_code(std::int64_t to, float x) {
  if (to == type::int8) return encode<int8, Rounding, saturate, nan_to_zero>(x) & 0xFFu;
  if (to == type::hif8) return encode<hif8, Rounding, saturate, nan_to_zero>(x);
  if (to == type::e5m2) return encode<e5m2, Rounding, saturate, nan_to_zero>(x);
  if (to == type::e4m3) return encode<e4m3, Rounding, saturate, nan_to_zero>(x);
  return to == type::e2m1 ? encode<e2m1, Rounding, saturate, nan_to_zero>(x)
                          : encode<e1m2, Rounding, saturate, nan_to_zero>(x);
}
std::uint32_t cann_code(std::int64_t to, const char* mode, float x) {
  if (mode != nullptr && mode[0] == 'f') return cann_code<toward_negative>(to, x);
  return mode != nullptr && mode[1] == 'o' ? cann_code<nearest_away>(to, x) : cann_code<nearest_even>(to, x);
}

std::uint32_t exponent_field(float x) { return qtensor::bits_of(x) >> 23; }
std::uint32_t raised_exponent(float s, bool subnormals_too) {
  const std::uint32_t e = exponent_field(s), m = qtensor::bits_of(s) & low_bits(23);
  if (e > 0 && e < 254 && m > 0) return e + 1;
  return subnormals_too && e == 0 && m > 1u << 22 ? 1 : e;
}
/// The e8m0 code of a block (NUMERICS 2.5).
std::uint32_t mx_scale(float amax, const cann::mx_attributes& how) {
  if (!is_finite(amax)) return 0xFF;
  const bool e5m2_codes = how.dst_type == type::e5m2;
  if (how.scale_alg == 1) {
    amax = std::max(amax, static_cast<float>(how.max_low_bound));
    volatile float s = amax * float_of(e5m2_codes ? 0x37924925u : 0x3B124925u);
    return raised_exponent(s, true);
  }
  if (how.scale_alg == 2) {
    const float most = static_cast<float>(how.dst_type_max);
    if (most != 0.f && most != 6.f && most != 7.f) {
      volatile float inverse = 1.f / most, s = amax * inverse;
      return raised_exponent(s, false);
    }
    const std::uint32_t raised = (encode<bf16, to_special>(amax) + (most == 7.f ? 0x1Fu : 0x3Fu)) & 0x7F80u;
    return raised < 0x100u ? 0 : (raised - 0x100u) >> 7;
  }
  const std::uint32_t emax = e5m2_codes ? 15 : how.dst_type == type::e4m3 ? 8 : how.dst_type == type::e2m1 ? 2 : 0;
  return std::max(exponent_field(amax), emax) - emax;
}

/// Codes, and scales in pairs, of blocks along an axis.
void expect_mx(const std::vector<float>& x, const list& sizes, std::size_t axis, const cann::mx_attributes& how,
               cann_result& y, cann_result& scales) {
  const index_t inner = product(sizes, axis + 1, sizes.size()), length = sizes[axis];
  const index_t blocks = divide_up(length, how.block_size), outer = product(sizes, 0, axis);
  const auto block_of = [&](index_t i) {
    return (i / inner / length * blocks + i / inner % length / how.block_size) * inner + i % inner;
  };
  std::vector<float> amax(static_cast<std::size_t>(outer * blocks * inner));
  for (std::size_t i = 0; i < x.size(); ++i) {
    float& a = amax[static_cast<std::size_t>(block_of(static_cast<index_t>(i)))];
    a = is_nan(a) || is_nan(x[i]) ? quiet_nan : std::max(a, magnitude(x[i]));
  }
  std::vector<std::uint32_t> codes, pairs(amax.size() / static_cast<std::size_t>(std::max<index_t>(1, blocks)) *
                                          static_cast<std::size_t>(divide_up(blocks, 2) * 2));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float a = amax[static_cast<std::size_t>(block_of(static_cast<index_t>(i)))];
    const std::uint32_t code = mx_scale(a, how);
    volatile float v = x[i] / (code == 0 ? float_of(0x00400000u) : float_of(code << 23));
    if (code == 0xFF) v = 0.f;
    if (how.subnormals == cann::subnormals::to_zero && exponent_field(a) == 0) v = is_negative(x[i]) ? -0.f : 0.f;
    codes.push_back(cann_code(how.dst_type, how.round_mode, v));
  }
  for (index_t b = 0; b < static_cast<index_t>(amax.size()); ++b) {
    const index_t o = b / inner / blocks, q = b / inner % blocks;
    float a = amax[static_cast<std::size_t>(b)];
    if (how.subnormals == cann::subnormals::to_zero && exponent_field(a) == 0) a = 0.f;
    pairs[static_cast<std::size_t>(((o * divide_up(blocks, 2) + q / 2) * inner + b % inner) * 2 + q % 2)] =
        mx_scale(a, how);
  }
  y.expect(codes);
  scales.expect(pairs);
}

cann::mx_attributes draw_mx(fuzz::dice& dice, bool dual) {
  cann::mx_attributes how;
  how.dst_type = dice.one_of(type::e5m2, type::e4m3, type::e2m1, type::e1m2);
  const bool fp8 = how.dst_type == type::e5m2 || how.dst_type == type::e4m3;
  how.round_mode =
      fp8 ? dice.one_of<const char*>(nullptr, "rint") : dice.one_of<const char*>(nullptr, "rint", "floor", "round");
  how.scale_alg = dice.chance(2) ? 0 : fp8 ? 1 : how.dst_type == type::e2m1 ? 2 : 0;
  how.block_size = dual || how.scale_alg == 2 || dice.chance(2) ? 32 : 32 * dice.within(1, 32);
  if (how.scale_alg == 2) how.dst_type_max = dice.one_of(0., 6., 6.5, 7., 8., 11.3, 12.);
  if (how.scale_alg == 1 && dice.chance(2)) how.max_low_bound = dice.one_of(1e-3, 1., 3.7, 1e-40);
  how.subnormals = dice.one_of(cann::subnormals::exact, cann::subnormals::to_zero);
  return how;
}
list draw_sizes(fuzz::dice& dice, index_t least, index_t most, bool even) {
  list sizes = fuzz::shape(dice, dice.within(least, most), dice.chance(5) ? 12000 : 2000);
  if (even) sizes.back() += sizes.back() % 2;
  return sizes;
}
list sizes_of(const cann::dims& d) {
  list out;
  for (int axis = 0; axis < d.rank(); ++axis) out.push_back(d[axis]);
  return out;
}
bool is_fp4(std::int64_t t) { return bits_of(t) == 4; }

void mx_along_an_axis(fuzz::dice& dice) {
  const cann::mx_attributes how = draw_mx(dice, false);
  const list sizes = draw_sizes(dice, 1, 6, is_fp4(how.dst_type));
  const index_t rank = static_cast<index_t>(sizes.size()), axis = dice.within(0, rank - 1);
  const cann_source x(dice, sizes);
  cann_result y(dice, sizes, how.dst_type),
      scales(dice, sizes_of(cann::mxscale_sizes(sizes, axis, how.block_size)), type::e8m0);
  INFO(fuzz::text(sizes), " of type ", x.type, " with strides ", fuzz::text(x.at.strides), " along ", axis, " to ",
       how.dst_type, " ", fuzz::text(y.at.strides), " ", fuzz::text(scales.at.strides), ", blocks ", how.block_size,
       ", algorithm ", how.scale_alg, " ", how.dst_type_max, " ", how.max_low_bound, ", round mode ",
       std::string(how.round_mode == nullptr ? "" : how.round_mode));
  const cann::status done =
      cann::dynamic_mx_quant(x.tensor(), dice.chance(2) ? axis : axis - rank, how, y.tensor(), scales.tensor());
  INFO(done.reason);
  REQUIRE(done.ok());
  expect_mx(x.numbers, sizes, static_cast<std::size_t>(axis), how, y, scales);
  scales.check();
  y.check();
}

void mx_along_two_axes(fuzz::dice& dice) {
  const cann::mx_attributes how = draw_mx(dice, true);
  const list sizes = draw_sizes(dice, 2, 6, is_fp4(how.dst_type));
  const cann_source x(dice, sizes);
  cann_result y1(dice, sizes, how.dst_type), s1(dice, sizes_of(cann::mxscale_sizes(sizes, -1)), type::e8m0);
  cann_result y2(dice, sizes, how.dst_type), s2(dice, sizes_of(cann::mxscale_sizes(sizes, -2)), type::e8m0);
  INFO(fuzz::text(sizes), " of type ", x.type, " with strides ", fuzz::text(x.at.strides), " to ", how.dst_type, " ",
       fuzz::text(y1.at.strides), fuzz::text(y2.at.strides), ", algorithm ", how.scale_alg, " ", how.dst_type_max, " ",
       how.max_low_bound);
  const cann::status done =
      cann::dynamic_mx_quant_with_dual_axis(x.tensor(), how, y1.tensor(), s1.tensor(), y2.tensor(), s2.tensor());
  INFO(done.reason);
  REQUIRE(done.ok());
  expect_mx(x.numbers, sizes, sizes.size() - 1, how, y1, s1);
  expect_mx(x.numbers, sizes, sizes.size() - 2, how, y2, s2);
  s1.check();
  y1.check();
  s2.check();
  y2.check();
}

void block_quant(fuzz::dice& dice) {
  cann::block_attributes how;
  const bool a2 = dice.chance(5);
  how.dst_type = a2 ? type::int8 : dice.one_of(type::int8, type::hif8, type::e5m2, type::e4m3);
  how.round_mode = a2 ? nullptr : dice.one_of<const char*>(nullptr, "rint", "round");
  how.row_block_size = a2 || dice.chance(3) ? 1 : dice.chance(2) ? dice.within(1, 9) : dice.extent(300) + 1;
  how.col_block_size = dice.chance(3) ? 128 : dice.chance(2) ? dice.within(1, 40) : dice.extent(2000) + 1;
  how.min_scale = dice.chance(2) ? 0.f : dice.one_of(1e-3f, 0.7f, 10.f, 1e3f, 1e-42f, 3e38f);
  how.nonfinites = dice.one_of(cann::nonfinites::literal, cann::nonfinites::ignored);
  how.platform = a2 ? cann::platform::a2_a3 : cann::platform::any;
  if (how.dst_type == type::hif8) how.dst_type_max = dice.one_of(0.f, 15.f, 56.f, 224.f, 32768.f);
  const list sizes = draw_sizes(dice, 2, 3, false);
  const std::size_t row = sizes.size() - 2;
  list scale_sizes = sizes;
  scale_sizes[row] = divide_up(sizes[row], how.row_block_size);
  scale_sizes[row + 1] = divide_up(sizes[row + 1], how.col_block_size);
  const cann_source x(dice, sizes);
  if (x.type == type::f32) how.platform = cann::platform::any;
  cann_result y(dice, sizes, how.dst_type), scales(dice, scale_sizes, type::f32);
  INFO(fuzz::text(sizes), " of type ", x.type, " with strides ", fuzz::text(x.at.strides), " to ", how.dst_type, " ",
       fuzz::text(y.at.strides), ", blocks ", how.row_block_size, " x ", how.col_block_size, ", min_scale ",
       how.min_scale, ", max ", how.dst_type_max, ", round mode ",
       std::string(how.round_mode == nullptr ? "" : how.round_mode), ", platform ", static_cast<int>(how.platform),
       " ignored ", static_cast<int>(how.nonfinites));
  const cann::status done = cann::dynamic_block_quant(x.tensor(), how, y.tensor(), scales.tensor());
  INFO(done.reason);
  REQUIRE(done.ok());

  const auto block_of = [&](std::size_t at) {
    const index_t i = static_cast<index_t>(at), c = i % sizes[row + 1], r = i / sizes[row + 1] % sizes[row],
                  b = i / sizes[row + 1] / sizes[row];
    return static_cast<std::size_t>((b * scale_sizes[row] + r / how.row_block_size) * scale_sizes[row + 1] +
                                    c / how.col_block_size);
  };
  std::vector<float> amax(static_cast<std::size_t>(product(scale_sizes, 0, row + 2)));
  for (std::size_t i = 0; i < x.numbers.size(); ++i) {
    const float m = magnitude(x.numbers[i]);
    float& a = amax[block_of(i)];
    if (is_finite(m) || how.nonfinites == cann::nonfinites::literal)
      a = is_nan(a) || is_nan(m) ? quiet_nan : std::max(a, m);
  }
  const float most = how.dst_type_max != 0.f      ? how.dst_type_max
                     : how.dst_type == type::int8 ? 127.f
                     : how.dst_type == type::hif8 ? 32768.f
                     : how.dst_type == type::e5m2 ? 57344.f
                                                  : 448.f;
  volatile float bound = 1.f / how.min_scale, inverse_most = 1.f / most;
  const bool by_reciprocals = how.platform == cann::platform::a2_a3;
  std::vector<std::uint32_t> scale_bits, codes;
  std::vector<float> used;
  for (const float a : amax) {
    volatile float s = by_reciprocals ? a * inverse_most : a / most;
    if (by_reciprocals ? s > bound : is_finite(s) && s > bound) s = bound;
    volatile float m = 1.f / a;
    m = m * most;
    if (m < how.min_scale) m = how.min_scale;
    scale_bits.push_back(is_nan(s) ? 0x7FC00000u : qtensor::bits_of(s));
    used.push_back(by_reciprocals ? float{m} : float{s});
  }
  for (std::size_t i = 0; i < x.numbers.size(); ++i) {
    const float s = used[block_of(i)];
    volatile float v = by_reciprocals ? x.numbers[i] * s : x.numbers[i] / s;
    if (!by_reciprocals && s == 0.f) v = 0.f;  // a block of zeros, whatever else does not count in it
    codes.push_back(cann_code(how.dst_type, how.round_mode, v));
  }
  y.expect(codes);
  scales.expect(scale_bits);
  scales.check();
  y.check();
}

}  // namespace

TEST_CASE("CANN: MX blocks along any axis") { fuzz::each_case(250, mx_along_an_axis); }
TEST_CASE("CANN: MX blocks along two axes") { fuzz::each_case(150, mx_along_two_axes); }
TEST_CASE("CANN: blocks of rows and columns") { fuzz::each_case(250, block_quant); }
