// Mirrors include/qtensor/compat/onednn_reorder.hpp: every pair of types under masks and groups on both sides, against
// the formula element by element.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <qtensor/compat/onednn_reorder.hpp>
#include <sstream>

#include "compat/onednn_check.hpp"

using namespace onednn_check;

namespace {

/// Masks and groups of the four parameters of a tensor; a mask of -1 leaves one out.
struct geometry {
  list dims;
  dnn::parameter src_scale, src_zero, dst_scale, dst_zero;
};

dnn::parameter at(int mask, const list& groups = {}) { return {nullptr, data_type::undef, mask, groups}; }
const dnn::parameter absent = at(-1);

const geometry geometries[] = {
    {{37}, absent, absent, absent, absent},
    {{1100}, at(0), absent, at(0), at(0)},
    {{5, 7}, at(1), at(2), at(3), at(0)},
    {{4, 96}, at(3, {1, 32}), at(3, {2, 16}), absent, absent},
    {{4, 96}, absent, absent, at(3, {4, 8}), at(3, {1, 3})},
    {{6, 1030}, at(2, {515}), at(1), at(3, {3, 1}), at(2)},
    {{2, 3, 4, 5}, at(5), at(10), at(15), at(12, {2, 5})},
    {{3, 1, 9}, at(7), absent, absent, at(4, {3})},
    {{500, 3}, at(2), at(1), at(1), at(2)},
    {{7, 40, 3, 3}, at(2), at(8), at(12), at(2)},
    {{260, 5, 1}, at(1), at(2), absent, at(3)},
    {{90, 4, 6}, at(6, {2, 3}), at(5), at(7, {2, 1}), at(6, {4, 1})},
};

constexpr data_type scale_types[] = {data_type::f32,     data_type::bf16,    data_type::f16,
                                     data_type::f8_e5m2, data_type::f8_e4m3, data_type::e8m0};
constexpr data_type zero_types[] = {data_type::s32, data_type::s8, data_type::u8, data_type::s4, data_type::u4};

/// A parameter's array: scales around 1, zero points of every sign the type has.
struct array_of {
  given values;
  buffer memory;

  array_of(const dnn::parameter& where, data_type type, const list& dims, std::uint32_t seed)
      : values{where, {}}, memory(type, std::size_t{0}) {
    if (where.mask < 0) return;
    std::size_t count = 1;
    for (const index_t extent : dnn::parameter_dims("it", dims, where.mask, where.groups))
      count *= static_cast<std::size_t>(extent);
    words all;
    for (const std::uint32_t word : codes(count, seed))
      all.push_back(dnn::is_integer(type) ? (type == data_type::s32 ? word % 401 - 200 : word)
                                          : code_of<>(type, .25f + static_cast<float>(word % 64) * .0625f));
    memory = buffer(type, all);
    for (const std::uint32_t code : memory.codes()) values.numbers.push_back(number(type, code));
    values.where.data = memory.data();
    values.where.type = type;
  }
  dnn::parameter parameter() const { return values.numbers.empty() ? dnn::parameter{} : values.where; }
};

/// "" or the first difference of a conversion.
std::string compare(const geometry& g, data_type from, data_type to, std::size_t turn, attributes how, bool any_code) {
  std::size_t count = 1;
  for (const index_t extent : g.dims) count *= static_cast<std::size_t>(extent);
  const array_of ss(g.src_scale, scale_types[turn % 6], g.dims, 1), sz(g.src_zero, zero_types[turn % 5], g.dims, 2),
      ds(g.dst_scale, scale_types[turn / 2 % 6], g.dims, 3), dz(g.dst_zero, zero_types[turn / 3 % 5], g.dims, 4);
  const buffer src(from, any_code ? codes(count, 7) : plain_codes(from, count, 7));
  buffer dst(to, plain_codes(to, count, 9));
  how.src_scale = ss.parameter(), how.src_zero_point = sz.parameter();
  how.dst_scale = ds.parameter(), how.dst_zero_point = dz.parameter();
  const words x = src.codes(), old = dst.codes();
  dnn::reorder(g.dims, from, src.data(), to, dst.data(), how);
  const words y = dst.codes();
  const conversion c{ss.values, sz.values, ds.values, dz.values};
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t e = expected(from, x[i], to, g.dims, static_cast<index_t>(i), c, how, old[i]);
    if (y[i] == e) continue;
    if (!dnn::is_integer(to) && std::isnan(number(to, y[i])) && std::isnan(number(to, e))) continue;
    std::ostringstream line;
    line << dnn::name_of(from) << " to " << dnn::name_of(to) << " element " << i << std::hex << ": " << x[i]
         << " gives " << y[i] << " instead of " << e;
    return line.str();
  }
  return "";
}

}  // namespace

TEST_CASE("reorder: every pair of types, every geometry, against the formula") {
  std::size_t turn = 0;
  for (const geometry& g : geometries)
    for (const data_type from : all_types)
      for (const data_type to : all_types) CHECK(compare(g, from, to, turn++, {}, false) == "");
}

TEST_CASE("reorder: codes of every kind, NaNs and infinities among them") {
  for (const data_type from : all_types)
    for (const data_type to : all_types) CHECK(compare(geometries[2], from, to, 5, {}, from != data_type::s32) == "");
}

TEST_CASE("reorder: reciprocals, zero points after rounding, beta") {
  std::size_t turn = 0;
  attributes reciprocal, after, sum;
  reciprocal.division = dnn::division::reciprocal;
  after.zero_point_order = dnn::zero_point_order::after_round;
  sum.beta = .75f;
  for (const geometry& g : geometries)
    for (const data_type to : all_types)
      for (const attributes& how : {reciprocal, after, sum}) {
        CHECK(compare(g, data_type::f32, to, turn++, how, false) == "");
        CHECK(compare(g, data_type::u8, to, turn++, how, false) == "");
      }
}

TEST_CASE("reorder: integers to integers saturate exactly, whatever the choices") {
  const std::int64_t edges[] = {0,
                                1,
                                -1,
                                7,
                                -8,
                                8,
                                15,
                                16,
                                127,
                                -128,
                                128,
                                -129,
                                255,
                                256,
                                16777217,
                                -16777219,
                                2147483647,
                                2147483583,
                                -2147483647 - 1};
  attributes at_random, positive;
  at_random.rounding = dnn::rounding_mode::stochastic;
  positive.zero_sign = dnn::zero_sign::positive;
  for (const data_type from : all_types)
    for (const data_type to : all_types)
      for (const std::size_t n : {std::size_t{1}, std::size_t{37}, std::size_t{1100}})
        for (const attributes& how : {attributes{}, at_random, positive}) {
          if (!dnn::is_integer(from) || !dnn::is_integer(to)) continue;
          words x = codes(n, 5);
          if (from == data_type::s32)
            for (std::size_t i = 0; i < n; ++i) x[i] = static_cast<std::uint32_t>(edges[i % std::size(edges)]);
          const buffer src(from, x);
          buffer dst(to, n, 0xA5), want(to, n, 0xA5);
          dnn::reorder(list{static_cast<index_t>(n)}, from, src.data(), to, dst.data(), how);
          const auto range = dnn::pieces::range_of(to);
          for (index_t i = 0; i < static_cast<index_t>(n); ++i)
            dnn::pieces::store_code(to, want.data(), i, static_cast<index_t>(n),
                                    static_cast<std::uint32_t>(std::clamp(dnn::pieces::integer_at(from, src.data(), i),
                                                                          range.low, range.high)));
          CHECK(dst.codes() == want.codes());
        }
}

TEST_CASE("reorder: any length of 4-bit codes, the last half byte 0, nothing behind it touched") {
  for (std::size_t n = 1; n < 70; ++n) {
    const buffer src(data_type::f32, plain_codes(data_type::f32, n, 3));
    buffer dst(data_type::s4, n, 0xA5);
    dnn::reorder(list{static_cast<index_t>(n)}, data_type::f32, src.data(), data_type::s4, dst.data());
    if (n % 2 == 1) CHECK(dst.byte(n / 2) < 16);
    CHECK(dst.byte((n + 1) / 2) == 0xA5);
  }
}

TEST_CASE("reorder: numbers beyond an FP8 or e8m0 range saturate also where they are rounded at random") {
  attributes how;
  how.rounding = dnn::rounding_mode::stochastic;
  const buffer src = buffer::of(data_type::f32, {500.f, -1e30f, qtensor::infinity, 0x1.fffffep127f});
  const auto codes_to = [&](data_type to) {
    buffer dst(to, 4);
    dnn::reorder(list{4}, data_type::f32, src.data(), to, dst.data(), how);
    return dst.codes();
  };
  CHECK(codes_to(data_type::f8_e4m3) == words{0x7F, 0xFF, 0x7F, 0x7F});
  CHECK(codes_to(data_type::f8_e5m2)[2] == 0x7C);
  how.float_overflow = dnn::float_overflow::saturate;
  CHECK(codes_to(data_type::f8_e4m3) == words{0x7E, 0xFE, 0x7E, 0x7E});
  CHECK(codes_to(data_type::e8m0)[2] == 0xFE);
  CHECK(codes_to(data_type::e8m0)[3] == 0xFE);
}

TEST_CASE("reorder: zero points of s32 that no f32 has are added to rounded numbers exactly") {
  const std::size_t n = 37;
  const index_t count = static_cast<index_t>(n);
  words zeros;
  for (std::size_t i = 0; i < n; ++i) zeros.push_back(0x01000001u + static_cast<std::uint32_t>(2 * i));
  const buffer src(data_type::s8, words(n, 0xFFu)), zero(data_type::s32, zeros);
  attributes how;
  how.zero_point_order = dnn::zero_point_order::after_round;
  how.dst_zero_point = {zero.data(), data_type::s32, 1};
  buffer dst(data_type::s32, n);
  dnn::reorder(list{count}, data_type::s8, src.data(), data_type::s32, dst.data(), how);
  for (std::size_t i = 0; i < n; ++i) CHECK(dst.codes()[i] == zeros[i] - 1);
  const buffer nan(data_type::f32, words(n, 0x7FC00000u));
  dnn::reorder(list{count}, data_type::f32, nan.data(), data_type::s32, dst.data(), how);
  CHECK(dst.codes() == zeros);
  how.nan_to_integer = dnn::nan_to_integer::zero;
  dnn::reorder(list{count}, data_type::f32, nan.data(), data_type::s32, dst.data(), how);
  CHECK(dst.codes() == words(n));
}

TEST_CASE("reorder: where a type goes into itself and zeros are made positive, nothing else saturates or is rounded") {
  attributes how;
  how.zero_sign = dnn::zero_sign::positive;
  how.float_overflow = dnn::float_overflow::saturate;
  how.rounding = dnn::rounding_mode::stochastic_onednn;
  const buffer src(data_type::f8_e5m2, words{0x7C, 0xFC, 0x01, 0x80, 0x81});
  buffer dst(data_type::f8_e5m2, 5);
  dnn::reorder(list{5}, data_type::f8_e5m2, src.data(), data_type::f8_e5m2, dst.data(), how);
  CHECK(dst.codes() == words{0x7C, 0xFC, 0x01, 0x00, 0x81});
}

TEST_CASE("reorder: a tensor without elements takes parameters of huge dimensions, too") {
  constexpr index_t huge = index_t{1} << 40;
  const float scales[2] = {1.f, 2.f};
  for (const list& dims : {list{2, 0, huge, huge}, list{0, huge, huge}})
    for (const int mask : {1, 3, 7}) {
      attributes how;
      how.src_scale = {scales, data_type::f32, mask};
      CHECK_NOTHROW(dnn::reorder(dims, data_type::f32, nullptr, data_type::s8, nullptr, how));
    }
}

TEST_CASE("reorder, oneDNN's random words by vectors: those of the definition for every beginning, and past 2^32") {
  using generator = dnn::generator;
  const auto check = [&]<qtensor::format Code>(std::type_identity<Code>, data_type type, generator from,
                                               std::uint64_t offset, std::size_t n) {
    words x(n), want(n);
    for (std::size_t i = 0; i < n; ++i) {
      const auto spread = static_cast<std::uint32_t>(i) * 0x9E3779B9u;
      x[i] = i % 3 == 0 ? spread : 0x38000000u + (spread >> 5);  // all floats, and those near 1
      const float rounded = dnn::stochastically_rounded<Code>(
          qtensor::float_of(x[i]), dnn::rounding_bias(static_cast<std::uint32_t>(offset + i), 77, Code::bits, from));
      want[i] = qtensor::encode<Code, qtensor::to_special>(rounded);
    }
    const buffer src(data_type::f32, x);
    buffer dst(type, n);
    attributes how;
    how.rounding = from == generator::current ? dnn::rounding_mode::stochastic_onednn
                                              : dnn::rounding_mode::stochastic_onednn_2025_03;
    how.seed = 77, how.offset = offset;
    dnn::reorder(list{static_cast<index_t>(n)}, data_type::f32, src.data(), type, dst.data(), how);
    CHECK(dst.codes() == want);
  };
  for (const generator from : {generator::current, generator::source_2025_03})
    for (const std::uint64_t offset :
         {std::uint64_t{0}, std::uint64_t{5}, std::uint64_t{15}, std::uint64_t{0xFFFFFF00u}})
      for (const std::size_t n : {1u, 19u, 700u}) {
        check(std::type_identity<qtensor::bf16>{}, data_type::bf16, from, offset, n);
        check(std::type_identity<qtensor::f16>{}, data_type::f16, from, offset, n);
        check(std::type_identity<qtensor::e4m3>{}, data_type::f8_e4m3, from, offset, n);
        check(std::type_identity<qtensor::e5m2>{}, data_type::f8_e5m2, from, offset, n);
      }
}

TEST_CASE("reorder: of two NaNs that of the data remains, at every place and whatever the step") {
  const float data_nan = qtensor::quiet_nan, other_nan = qtensor::float_of(qtensor::bits_of(data_nan) | 0x80000000u);
  for (const index_t n : {1, 5, 16, 40, 131})
    for (const bool flips : {false, true}) {
      const auto size = static_cast<std::size_t>(n);
      const std::vector<float> x(size, flips ? other_nan : data_nan), parameters(size, flips ? data_nan : other_nan);
      const std::vector<std::uint8_t> want(size, flips ? 0xff : 0x7f);
      const auto codes = [&](const dnn::attributes& how) {
        std::vector<std::uint8_t> y(size, flips ? 0x7f : 0xff);
        const index_t dims[] = {n};
        dnn::reorder(dims, dnn::data_type::f32, x.data(), dnn::data_type::f8_e4m3, y.data(), how);
        return y;
      };
      for (const int mask : {0, 1}) {
        const dnn::parameter p{parameters.data(), dnn::data_type::f32, mask};
        CHECK(codes({.src_scale = p}) == want);
        CHECK(codes({.dst_scale = p}) == want);
        CHECK(codes({.dst_scale = p, .division = dnn::division::reciprocal}) == want);
        CHECK(codes({.src_scale = p, .beta = 1.f}) == want);
      }
    }
}
