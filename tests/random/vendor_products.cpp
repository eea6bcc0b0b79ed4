// oneDNN's matmul and convolution with any attributes, as loops over NUMERICS 5.3 and 5.4.
// SPDX-License-Identifier: BSD-3-Clause
#include <numeric>
#include <qtensor/compat/onednn_convolution.hpp>
#include <qtensor/compat/onednn_matmul.hpp>

#include "../compat/onednn_check.hpp"
#include "plain_convolution.hpp"

using namespace qtensor;
using namespace onednn_check;

namespace {

int bits_of(data_type type) { return dnn::bits_of_type(type); }
fuzz::array memory_of(fuzz::dice& dice, data_type type, index_t n) {
  return fuzz::array(dice, dnn::byte_count(type, n), std::max(1, bits_of(type) / 8));
}
/// Codes of integers: any, or where products are of floats small ones; of floats: small multiples of 1 / 4, so that
/// their sums are exact in any order.
fuzz::array small_codes(fuzz::dice& dice, data_type type, index_t n, bool exact = false) {
  fuzz::array out = memory_of(dice, type, n);
  const bool extreme = dice.chance(4);
  for (index_t i = 0; i < n; ++i) {
    const float x = 0.25f * static_cast<float>(dice.within(-8, 8));
    const std::uint32_t edge = dice.chance(2) ? 0x80u : 0x7Fu + 0x80u * (type == data_type::u8);
    if (exact && dnn::is_integer(type))
      out.set(i, bits_of(type), static_cast<std::uint32_t>(dice.within(type == data_type::u8 ? 0 : -8, 15)));
    else
      out.set(i, bits_of(type), !dnn::is_integer(type) ? code_of<>(type, x) : extreme ? edge : dice.bits());
  }
  return out;
}

/// A scale or zero point of a tensor, or none.
struct drawn {
  dnn::parameter where;
  fuzz::array memory;
  list dims;

  drawn(fuzz::dice& dice, const list& of, bool is_scale, bool exact, int mask, const list& groups)
      : memory(dice, 0, 1), dims(of) {
    where.type = is_scale ? dice.one_of(data_type::f32, data_type::bf16, data_type::f16, data_type::f8_e5m2,
                                        data_type::f8_e4m3, data_type::e8m0)
                          : dice.one_of(data_type::s32, data_type::s8, data_type::u8, data_type::s4, data_type::u4);
    where.mask = mask, where.groups = groups;
    index_t entries = 1;
    for (const index_t n : dnn::parameter_dims("it", dims, mask, groups)) entries *= n;
    memory = memory_of(dice, where.type, entries);
    for (index_t i = 0; i < entries; ++i) {
      const float fraction = exact ? 1.f : 1.f + 0.125f * static_cast<float>(dice.bits() % 8);
      std::uint32_t code = is_scale ? code_of<>(where.type, exp2i(static_cast<int>(dice.within(-1, 1))) * fraction)
                                    : static_cast<std::uint32_t>(dice.within(0, 7));
      if (!is_scale && !exact && dice.chance(3)) code = static_cast<std::uint32_t>(dice.within(-300, 300));
      memory.set(i, bits_of(where.type), code);
    }
    if (!dice.chance(3)) where.data = memory.data();
  }
  bool given() const { return where.data != nullptr; }
  std::uint32_t code(index_t element) const {
    return memory.get(static_cast<index_t>(entry(where, dims, element)), bits_of(where.type));
  }
  float scale(index_t element) const { return given() ? number(where.type, code(element)) : 1.f; }
  std::int64_t zero(index_t element) const {
    return given() ? static_cast<std::int64_t>(number(where.type, code(element))) : 0;
  }
};

/// Masks and groups of a parameter of matrices, along `axis` of them (rank - 1 or rank - 2) in groups.
drawn of_matrix(fuzz::dice& dice, const list& dims, bool is_scale, bool exact, std::size_t k_axis) {
  const std::size_t rank = dims.size();
  const int mask = static_cast<int>(dice.within(0, (1 << rank) - 1)), last_two = 3 << (rank - 2);
  list groups;
  if ((mask & last_two) == last_two && dice.chance(2))
    for (std::size_t d = rank - 2; d < rank; ++d)
      groups.push_back(dims[d] == 0 ? 1 : d == k_axis || dice.chance(4) ? fuzz::divisor(dice, dims[d]) : 1);
  return drawn(dice, dims, is_scale, exact, mask, groups);
}

std::uint32_t stored(data_type to, float d) {
  if (dnn::is_integer(to)) {
    const bool is_signed = to == data_type::s32 || to == data_type::s8 || to == data_type::s4;
    const double low = is_signed ? -std::ldexp(1.0, bits_of(to) - 1) : 0.0;
    const double high = to == data_type::s32 ? 2147483520.0 : std::ldexp(1.0, bits_of(to) - is_signed) - 1;
    const double q = std::min(std::max(static_cast<double>(d), low), high);
    return static_cast<std::uint32_t>(static_cast<std::int64_t>(std::nearbyint(q))) & low_bits(bits_of(to));
  }
  if (to == data_type::e8m0) return encode<e8m0, toward_zero>(d);
  if (to == data_type::f4_e2m1) return encode<e2m1, nan_to_max>(d);
  if (to == data_type::f8_e4m3) return encode<e4m3, via_f16, to_special>(d);
  if (to == data_type::f8_e5m2) return encode<e5m2, via_f16, to_special>(d);
  return code_of<to_special>(to, d);
}

/// A number of a product of floats; powers of two scale it before or after its rounding.
double factor(float x, std::int64_t zero, float scale, dnn::math_mode math) {
  const float v = (x - static_cast<float>(zero)) * scale;
  return static_cast<double>(math == dnn::math_mode::strict ? v
                             : math == dnn::math_mode::bf16 ? decode<bf16>(encode<bf16, to_special>(v))
                                                            : decode<f16>(encode<f16, to_special>(v)));
}

void one_matmul(fuzz::dice& dice) {
  const std::size_t rank = static_cast<std::size_t>(dice.within(2, 4));
  const bool integers = dice.chance(2);
  const index_t m = dice.extent(dice.chance(3) ? 70 : 9), k = dice.extent(dice.chance(4) && integers ? 600 : 90),
                n = dice.extent(dice.chance(3) ? 150 : 40);
  list src(rank), wei(rank), dst(rank);
  for (std::size_t d = 0; d + 2 < rank; ++d) {
    dst[d] = dice.within(1, 3);
    src[d] = dice.chance(3) ? 1 : dst[d];
    wei[d] = dice.chance(2) ? 1 : dst[d];
    dst[d] = std::max(src[d], wei[d]);
  }
  src[rank - 2] = dst[rank - 2] = m, src[rank - 1] = wei[rank - 2] = k, wei[rank - 1] = dst[rank - 1] = n;
  const auto count_of = [](const list& dims) {
    return std::accumulate(dims.begin(), dims.end(), index_t{1}, std::multiplies<>());
  };
  if (count_of(dst) * k > 400000) return;
  const data_type src_type =
      integers ? dice.one_of(data_type::s8, data_type::u8)
               : dice.one_of(data_type::f32, data_type::bf16, data_type::f16, data_type::f8_e4m3, data_type::f8_e5m2);
  const data_type wei_type = integers || dice.chance(2)
                                 ? dice.one_of(data_type::s8, data_type::u8, data_type::s4, data_type::u4)
                                 : dice.one_of(data_type::f32, data_type::bf16, data_type::f16, data_type::f8_e4m3,
                                               data_type::f8_e5m2, data_type::f4_e2m1);
  const data_type dst_type = dice.chance(2) ? data_type::f32 : all_types[dice.within(0, std::size(all_types) - 1)];
  drawn src_scale = of_matrix(dice, src, true, !integers, rank - 1),
        src_zero = of_matrix(dice, src, false, !integers, rank - 1),
        wei_scale = of_matrix(dice, wei, true, !integers, rank - 2),
        wei_zero = of_matrix(dice, wei, false, !integers, rank - 2),
        dst_scale = of_matrix(dice, dst, true, false, rank - 1),
        dst_zero = of_matrix(dice, dst, false, false, rank - 1);
  dnn::matmul_attributes how;
  how.src_scale = src_scale.where, how.src_zero_point = src_zero.where;
  how.wei_scale = wei_scale.where, how.wei_zero_point = wei_zero.where;
  how.into.dst_scale = dst_scale.where, how.into.dst_zero_point = dst_zero.where;
  how.math = static_cast<dnn::math_mode>(dice.within(0, 2));
  how.weight_scaling = dice.one_of(dnn::weight_scaling::before_sum, dnn::weight_scaling::after_sum);
  how.into.division = dice.one_of(dnn::division::exact, dnn::division::reciprocal);
  const fuzz::array x = small_codes(dice, src_type, count_of(src)),
                    w = small_codes(dice, wei_type, count_of(wei), !integers);
  dnn::bias_argument bias;
  bias.type =
      dice.one_of(data_type::f32, data_type::bf16, data_type::f16, data_type::s32, data_type::s8, data_type::u8);
  bias.dims = dice.chance(2) ? dst : list{n};
  const fuzz::array biases = small_codes(dice, bias.type, count_of(bias.dims));
  if (dice.chance(2)) bias.data = biases.data();
  const bool relu = dice.chance(3);

  // Elements of k that share all parameters, and sums of the source where they are given.
  index_t group = k;
  const auto join = [&](const drawn& p, std::size_t axis) {
    if (!p.given() || (p.where.mask >> axis & 1) == 0) return;
    const std::size_t from_end = rank - axis;
    group = std::gcd(group, from_end <= p.where.groups.size() ? p.where.groups[p.where.groups.size() - from_end] : 1);
  };
  for (const drawn* p : {&src_scale, &src_zero}) join(*p, rank - 1);
  for (const drawn* p : {&wei_scale, &wei_zero}) join(*p, rank - 2);
  group = std::max<index_t>(group, 1);
  fuzz::array sums(dice, 4 * count_of(src) / group, 4);
  index_t zero_group = k;
  std::swap(group, zero_group);
  join(wei_zero, rank - 2);
  std::swap(group, zero_group);
  if (integers && wei_zero.given() && group == zero_group && k > 0 && dice.chance(2)) {
    how.reductions_of = dice.one_of(dnn::reductions_of::codes, dnn::reductions_of::shifted);
    for (index_t r = 0; r < count_of(src) / group; ++r) {
      std::int64_t sum = 0;
      for (index_t i = r * group; i < (r + 1) * group; ++i) {
        sum += static_cast<std::int64_t>(number(src_type, x.get(i, 8)));
        if (how.reductions_of == dnn::reductions_of::shifted) sum -= src_zero.zero(i);
      }
      sums.set(r, 32, static_cast<std::uint32_t>(sum));
    }
    how.precomputed_reductions = {sums.data(), data_type::s32, (1 << rank) - 1, {1, group}};
  }

  fuzz::array y = memory_of(dice, dst_type, count_of(dst)), want = y;
  if (bits_of(dst_type) == 4 && count_of(dst) % 2 == 1) want.set(count_of(dst), 4, 0);
  INFO(name_of(src_type), " ", fuzz::text(src), " x ", name_of(wei_type), " ", fuzz::text(wei), " to ",
       name_of(dst_type), ", groups of ", group, how.precomputed_reductions.data != nullptr, " reductions, ",
       bias.data != nullptr, " bias, math ", static_cast<int>(how.math));
  dnn::matmul(src, src_type, x.data(), wei, wei_type, w.data(), bias, dst_type, y.data(), how, [&](std::span<float> d) {
    for (float& v : d) v = relu && v < 0.f ? 0.f : v;
  });

  for (index_t i = 0; i < count_of(dst); ++i) {
    const index_t row = i / std::max<index_t>(n, 1) % m, col = i % n;
    index_t rest = i / n / m, left = 0, right = 0, left_step = 1, right_step = 1;
    for (std::size_t d = rank - 2; d-- > 0; rest /= dst[d]) {
      left += src[d] == 1 ? 0 : rest % dst[d] * left_step, left_step *= src[d];
      right += wei[d] == 1 ? 0 : rest % dst[d] * right_step, right_step *= wei[d];
    }
    volatile float d = 0.f;
    if (integers) {
      for (index_t g = 0; g < k; g += group) {
        std::int64_t sum = 0;
        for (index_t e = g; e < g + group; ++e) {
          const index_t a = (left * m + row) * k + e, b = (right * k + e) * n + col;
          sum += (static_cast<std::int64_t>(number(src_type, x.get(a, 8))) - src_zero.zero(a)) *
                 (static_cast<std::int64_t>(number(wei_type, w.get(b, bits_of(wei_type)))) - wei_zero.zero(b));
        }
        volatile float term = static_cast<float>(static_cast<std::int32_t>(static_cast<std::uint32_t>(sum)));
        term = term * src_scale.scale((left * m + row) * k + g);
        term = term * wei_scale.scale((right * k + g) * n + col);
        d = d + term;
      }
    } else {
      double sum = 0.0;
      for (index_t e = 0; e < k; ++e) {
        const index_t a = (left * m + row) * k + e, b = (right * k + e) * n + col;
        sum += factor(number(src_type, x.get(a, bits_of(src_type))), src_zero.zero(a), src_scale.scale(a), how.math) *
               factor(number(wei_type, w.get(b, bits_of(wei_type))), wei_zero.zero(b), wei_scale.scale(b), how.math);
      }
      d = static_cast<float>(sum);
    }
    if (bias.data != nullptr) {
      const float more = number(bias.type, biases.get(bias.dims.size() == 1 ? col : i, bits_of(bias.type)));
      d = d + more;
    }
    if (relu && d < 0.f) d = 0.f;
    if (dst_scale.given()) {
      volatile float inverse = 1.f / dst_scale.scale(i);
      d = how.into.division == dnn::division::exact ? d / dst_scale.scale(i) : d * inverse;
    }
    if (dst_zero.given()) d = d + static_cast<float>(dst_zero.zero(i));
    std::uint32_t code = stored(dst_type, d);
    const std::uint32_t got = y.get(i, bits_of(dst_type));
    // A sum of floats may be -0 or +0.
    if (!integers && d == 0.f && !dnn::is_integer(dst_type) && number(dst_type, got) == 0.f) code = got;
    if (code != got) {
      INFO("element ", i, " is ", got, ", not ", code, " of ", float{d});
      REQUIRE(false);
    }
    want.set(i, bits_of(dst_type), code);
  }
  REQUIRE(y == want);
}

/// A dense layout by letters in any order, of extents by letters.
struct lettered {
  std::string order;
  list extents;

  index_t count() const { return std::accumulate(extents.begin(), extents.end(), index_t{1}, std::multiplies<>()); }
  index_t at(std::initializer_list<std::pair<char, index_t>> index) const {
    index_t out = 0;
    for (std::size_t d = 0; d < order.size(); ++d)
      for (const auto& [letter, i] : index)
        if (letter == order[d]) out = out * extents[d] + i;
    return out;
  }
};
lettered draw_layout(fuzz::dice& dice, const std::string& letters, const std::vector<std::string>& orders,
                     const list& extents) {
  lettered out;
  out.order = orders[static_cast<std::size_t>(dice.within(0, static_cast<index_t>(orders.size()) - 1))];
  for (const char c : out.order) out.extents.push_back(extents[letters.find(c)]);
  return out;
}
/// The orders of a rank: each of those of two dimensions with fewer or more spatial letters.
std::vector<std::string> orders_of(index_t rank, std::initializer_list<const char*> two) {
  std::vector<std::string> out;
  for (std::string order : two) {
    const std::size_t h = order.find('H');
    if (rank == 1) order.erase(h, 1);
    if (rank == 3) order.insert(h, "D");
    out.push_back(order);
  }
  return out;
}

void one_convolution(fuzz::dice& dice) {
  const fuzz::plain_convolution c(dice);
  if (c.products() > 300000) return;
  const auto& a = c.axes;
  const bool grouped = c.groups > 1 || dice.chance(4);
  const lettered src = draw_layout(dice, "NCDHW", orders_of(c.rank, {"NHWC", "NCHW"}),
                                   {c.batch, c.groups * c.inputs, a[0].in, a[1].in, a[2].in});
  const lettered wei =
      draw_layout(dice, "GOIDHW",
                  grouped ? orders_of(c.rank, {"GOIHW", "GOHWI"}) : orders_of(c.rank, {"OIHW", "HWIO", "OHWI", "IOHW"}),
                  {c.groups, c.outputs, c.inputs, a[0].taps, a[1].taps, a[2].taps});
  const lettered dst = draw_layout(dice, "NCDHW", orders_of(c.rank, {"NHWC", "NCHW"}),
                                   {c.batch, c.groups * c.outputs, a[0].out(), a[1].out(), a[2].out()});
  dnn::convolution_description what;
  what.src_type = dice.one_of(data_type::s8, data_type::u8);
  what.weights_type = dice.one_of(data_type::s8, data_type::s8, data_type::u8);
  what.dst_type =
      dice.one_of(data_type::f32, data_type::bf16, data_type::f16, data_type::s32, data_type::s8, data_type::u8);
  what.src = {src.order, src.extents}, what.weights = {wei.order, wei.extents}, what.dst_order = dst.order;
  for (index_t i = 3 - c.rank; i < 3; ++i) {
    const auto& axis = a[static_cast<std::size_t>(i)];
    what.strides.push_back(axis.stride), what.dilates.push_back(axis.dilation - 1);
    what.padding_l.push_back(axis.low), what.padding_r.push_back(axis.high);
  }
  const index_t outputs = c.groups * c.outputs;
  const int each = grouped ? 3 : 1;
  const list oihw = grouped ? list{c.groups, c.outputs, c.inputs} : list{c.outputs, c.inputs};
  drawn src_scale(dice, {1}, true, false, 0, {}), wei_scale(dice, oihw, true, false, dice.chance(2) ? each : 0, {}),
      dst_scale(dice, {1}, true, false, 0, {});
  drawn src_zero(dice, {1}, false, false, 0, {}), wei_zero(dice, oihw, false, false, dice.chance(2) ? each : 0, {}),
      dst_zero(dice, {1}, false, false, 0, {});
  dnn::convolution_attributes how{src_scale.where,
                                  wei_scale.where,
                                  dst_scale.where,
                                  src_zero.where,
                                  wei_zero.where,
                                  dst_zero.where,
                                  dice.one_of(dnn::division::exact, dnn::division::reciprocal)};
  const bool biased = dice.chance(2), relu = dice.chance(3);
  const data_type bias_type = dice.one_of(data_type::f32, data_type::s32, data_type::bf16, data_type::s8);
  if (biased) what.bias_type = bias_type;
  const fuzz::array x = small_codes(dice, what.src_type, src.count()),
                    w = small_codes(dice, what.weights_type, wei.count()), bias = small_codes(dice, bias_type, outputs);
  fuzz::array y = memory_of(dice, what.dst_type, dst.count()), want = y;
  INFO(c.description(), " ", src.order, " ", wei.order, " ", dst.order, " ", name_of(what.src_type), " ",
       name_of(what.weights_type), " ", name_of(what.dst_type), ", bias ", biased, ", zero points ", src_zero.given(),
       wei_zero.given());
  const dnn::integer_convolution run(what, w.data(), biased ? bias.data() : nullptr, how);
  REQUIRE(run.dst_elements() == dst.count());
  const auto post_ops = [&](const product_tile& t) {
    for (index_t r = 0; r < t.rows; ++r)
      for (index_t o = 0; o < t.cols; ++o) {
        float& v = t.values[r * t.stride + o];
        v = relu && v < 0.f ? 0.f : v;
      }
  };
  if (dice.chance(2)) {
    run(x.data(), y.data(), post_ops);
  } else {
    const auto backward = [](index_t count, const auto& part) {
      while (count-- > 0) part(count);
    };
    run(x.data(), y.data(), post_ops, parallel_for(dice.within(1, 5), backward));
  }
  using position = fuzz::plain_convolution::position;
  c.each(
      [&](index_t n, index_t channel, const position& p) {
        const std::uint32_t code = x.get(src.at({{'N', n}, {'C', channel}, {'D', p[0]}, {'H', p[1]}, {'W', p[2]}}), 8);
        return static_cast<std::int64_t>(number(what.src_type, code)) - src_zero.zero(0);
      },
      [&](index_t o, index_t i, const position& p) {
        const index_t at =
            wei.at({{'G', o / c.outputs}, {'O', o % c.outputs}, {'I', i}, {'D', p[0]}, {'H', p[1]}, {'W', p[2]}});
        return static_cast<std::int64_t>(number(what.weights_type, w.get(at, 8))) - wei_zero.zero(o * c.inputs);
      },
      [&](index_t n, index_t o, const position& p, std::int64_t sum) {
        volatile float d = static_cast<float>(sum);
        d = d * src_scale.scale(0);
        d = d * wei_scale.scale(o * c.inputs);
        if (biased) d = d + number(bias_type, bias.get(o, bits_of(bias_type)));
        if (relu && d < 0.f) d = 0.f;
        if (dst_scale.given()) {
          volatile float inverse = 1.f / dst_scale.scale(0);
          d = how.division == dnn::division::exact ? d / dst_scale.scale(0) : d * inverse;
        }
        if (dst_zero.given()) d = d + static_cast<float>(dst_zero.zero(0));
        const index_t at = dst.at({{'N', n}, {'C', o}, {'D', p[0]}, {'H', p[1]}, {'W', p[2]}});
        const std::uint32_t code = stored(what.dst_type, d), got = y.get(at, bits_of(what.dst_type));
        if (code != got) {
          INFO("element ", at, " is ", got, ", not ", code, " of ", float{d});
          REQUIRE(false);
        }
        want.set(at, bits_of(what.dst_type), code);
      });
  REQUIRE(y == want);
}

}  // namespace

TEST_CASE("oneDNN: matmul with any attributes") { fuzz::each_case(300, one_matmul); }
TEST_CASE("oneDNN: convolutions of integers") { fuzz::each_case(200, one_convolution); }
