// ONNX's integer products and convolutions as loops over NUMERICS 8.1.
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <numeric>
#include <qtensor/compat/onnx_convolution.hpp>
#include <qtensor/compat/onnx_products.hpp>

#include "plain_convolution.hpp"

using namespace qtensor;
namespace onnx = qtensor::compat::onnx;

namespace {

using list = std::vector<index_t>;

template <class T>
std::vector<T> draw_codes(fuzz::dice& dice, index_t n) {
  std::vector<T> out(static_cast<std::size_t>(n));
  const bool extreme = dice.chance(4);
  for (T& v : out)
    v = extreme ? dice.one_of(std::numeric_limits<T>::min(), std::numeric_limits<T>::max())
                : static_cast<T>(dice.bits());
  return out;
}
std::vector<float> draw_scales(fuzz::dice& dice, index_t n) {
  std::vector<float> out(static_cast<std::size_t>(n));
  for (float& s : out)
    s = exp2i(static_cast<int>(dice.within(-9, 1))) * (1.f + static_cast<float>(dice.bits() % 1024) / 1024.f);
  return out;
}
/// The entry of a list of one, or of one for each.
template <class T>
T entry(const std::vector<T>& all, index_t i, T otherwise = T{}) {
  return all.empty() ? otherwise : all[all.size() == 1 ? 0 : static_cast<std::size_t>(i)];
}
index_t count_of(const list& dims) {
  return std::accumulate(dims.begin(), dims.end(), index_t{1}, std::multiplies<>());
}
/// Runs with one thread, or with parts in another order.
template <class Run>
void by_some_executor(fuzz::dice& dice, Run run) {
  const auto backward = [](index_t count, const auto& part) {
    while (count-- > 0) part(count);
  };
  if (dice.chance(2))
    run(serial{});
  else
    run(parallel_for(dice.within(1, 5), backward));
}

/// clamp(rint(float(sum) * s) + zero point), or the reference's rint(double(sum) * s + zero point), which wraps or not.
template <class Y>
Y requantized(std::int32_t sum, float first, float second, float y_scale, Y zero, bool by_reference, bool wraps) {
  volatile float s = first * second;
  s = s / y_scale;
  const double low = std::numeric_limits<Y>::min(), high = std::numeric_limits<Y>::max();
  if (!by_reference) {
    volatile float q = static_cast<float>(sum) * s;
    return static_cast<Y>(std::clamp(std::nearbyint(static_cast<double>(q)) + zero, low, high));
  }
  volatile double q = static_cast<double>(sum) * static_cast<double>(s);
  q = q + static_cast<double>(zero);
  return static_cast<Y>(
      static_cast<std::int64_t>(std::nearbyint(wraps ? double{q} : std::clamp(double{q}, low, high))));
}

template <class A, class B, class Y>
void one_matmul(fuzz::dice& dice) {
  const index_t m = dice.extent(dice.chance(3) ? 90 : 9), k = dice.extent(dice.chance(4) ? 900 : 90),
                n = dice.extent(dice.chance(3) ? 200 : 40);
  list a{m, k}, b{k, n}, wanted{m, n};
  const bool vector_a = dice.chance(8), vector_b = dice.chance(8);
  if (vector_a) a = {k};
  if (vector_b) b = {k};
  list leading;
  for (index_t d = dice.within(0, 3); d > 0; --d) leading.push_back(dice.within(1, 3));
  const auto lead = [&](list& dims) {
    if (dims.size() == 1) return list{};
    list mine(leading.begin() + dice.within(0, static_cast<index_t>(leading.size())), leading.end());
    for (index_t& d : mine) d = dice.chance(3) ? 1 : d;
    dims.insert(dims.begin(), mine.begin(), mine.end());
    return mine;
  };
  const list lead_a = lead(a), lead_b = lead(b);
  list batches(std::max(lead_a.size(), lead_b.size()), 1);
  for (const list* each : {&lead_a, &lead_b})
    for (std::size_t i = 0; i < each->size(); ++i) {
      index_t& d = batches[batches.size() - each->size() + i];
      d = std::max(d, (*each)[i]);
    }
  wanted = batches;
  if (!vector_a) wanted.push_back(m);
  if (!vector_b) wanted.push_back(n);
  const index_t rows = vector_a ? 1 : m, cols = vector_b ? 1 : n;
  if (count_of(wanted) * k > 400000) return;
  const auto x = draw_codes<A>(dice, count_of(a));
  const auto w = draw_codes<B>(dice, count_of(b));
  const bool linear = dice.chance(2), by_reference = dice.chance(3);
  const index_t a_many = dice.chance(2) ? rows : 1, b_many = dice.chance(2) ? cols : 1;
  const auto a_zeros = draw_codes<A>(dice, !linear && dice.chance(4) ? 0 : a_many);
  const auto b_zeros = draw_codes<B>(dice, !linear && dice.chance(4) ? 0 : b_many);
  const auto a_scales = draw_scales(dice, a_many), b_scales = draw_scales(dice, b_many),
             y_scales = draw_scales(dice, 1);
  const Y y_zero = draw_codes<Y>(dice, 1)[0];
  INFO(fuzz::text(a), " x ", fuzz::text(b), ", ", a_zeros.size(), " and ", b_zeros.size(), " zero points", ", linear ",
       linear, ", by the reference ", by_reference);
  REQUIRE(onnx::matmul_dims(a, b) == wanted);
  std::vector<std::int32_t> sums(static_cast<std::size_t>(count_of(wanted)));
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const index_t col = static_cast<index_t>(i) % cols, row = static_cast<index_t>(i) / cols % rows;
    const auto matrix = [&](const list& mine) {
      index_t rest = static_cast<index_t>(i) / cols / rows, at = 0, step = 1;
      for (std::size_t d = 0; d < batches.size(); rest /= batches[batches.size() - 1 - d], ++d)
        if (d < mine.size()) {
          const index_t extent = mine[mine.size() - 1 - d];
          at += extent == 1 ? 0 : rest % extent * step;
          step *= extent;
        }
      return at;
    };
    const index_t left = matrix(lead_a), right = matrix(lead_b);
    std::int64_t sum = 0;
    for (index_t e = 0; e < k; ++e)
      sum += (std::int64_t{x[static_cast<std::size_t>((left * rows + row) * k + e)]} - entry(a_zeros, row)) *
             (std::int64_t{w[static_cast<std::size_t>((right * k + e) * cols + col)]} - entry(b_zeros, col));
    sums[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(sum));
  }
  const std::span<const A> x_span(x);
  const std::span<const B> w_span(w);
  if (!linear) {
    std::vector<std::int32_t> y(sums.size(), 7);
    by_some_executor(
        dice, [&](const auto& by) { onnx::matmul_integer<A, B>(x_span, a, w_span, b, a_zeros, b_zeros, y, by); });
    REQUIRE(y == sums);
    return;
  }
  std::vector<Y> y(sums.size(), Y{7}), want;
  for (std::size_t i = 0; i < sums.size(); ++i)
    want.push_back(requantized<Y>(sums[i], entry(a_scales, static_cast<index_t>(i) / cols % rows),
                                  entry(b_scales, static_cast<index_t>(i) % cols), y_scales[0], y_zero, by_reference,
                                  true));
  const onnx::qlinear_matmul_parameters<A, B, Y> p{a_scales, a_zeros, b_scales, b_zeros, y_scales[0], y_zero};
  by_some_executor(dice, [&](const auto& by) {
    onnx::qlinear_matmul<A, B, Y>(x_span, a, w_span, b, p, std::span<Y>(y),
                                  by_reference ? onnx::matmul_rule::reference : onnx::matmul_rule::runtime, by);
  });
  REQUIRE(y == want);
}

template <class X, class W, class Y>
void one_convolution(fuzz::dice& dice) {
  fuzz::plain_convolution c(dice);
  onnx::convolution_attributes how;
  how.group = c.groups;
  how.auto_pad = dice.chance(3) ? static_cast<onnx::auto_padding>(dice.within(1, 3)) : onnx::auto_padding::notset;
  list x_dims{c.batch, c.groups * c.inputs}, w_dims{c.groups * c.outputs, c.inputs}, highs;
  for (index_t i = 3 - c.rank; i < 3; ++i) {
    auto& a = c.axes[static_cast<std::size_t>(i)];
    x_dims.push_back(a.in), w_dims.push_back(a.taps);
    how.strides.push_back(a.stride), how.dilations.push_back(a.dilation);
    if (how.auto_pad != onnx::auto_padding::notset) {
      const index_t all =
          std::max<index_t>(0, (divide_up(a.in, a.stride) - 1) * a.stride + (a.taps - 1) * a.dilation + 1 - a.in);
      a.low = how.auto_pad == onnx::auto_padding::valid        ? 0
              : how.auto_pad == onnx::auto_padding::same_lower ? all - all / 2
                                                               : all / 2;
      a.high = how.auto_pad == onnx::auto_padding::valid ? 0 : all - a.low;
    } else {
      how.pads.push_back(a.low), highs.push_back(a.high);
    }
  }
  how.pads.insert(how.pads.end(), highs.begin(), highs.end());
  if (dice.chance(2)) how.kernel_shape.assign(w_dims.begin() + 2, w_dims.end());
  if (c.products() > 300000) return;
  const index_t outputs = c.groups * c.outputs;
  const auto x = draw_codes<X>(dice, count_of(x_dims));
  const auto w = draw_codes<W>(dice, count_of(w_dims));
  const bool linear = dice.chance(2), by_reference = dice.chance(3);
  const index_t many = dice.chance(2) ? outputs : 1;
  const auto x_zeros = draw_codes<X>(dice, !linear && dice.chance(4) ? 0 : 1);
  const auto w_zeros = draw_codes<W>(dice, !linear && dice.chance(4) ? 0 : many);
  const auto w_scales = draw_scales(dice, many), scales = draw_scales(dice, 2);
  const Y y_zero = draw_codes<Y>(dice, 1)[0];
  std::vector<std::int32_t> bias(dice.chance(2) ? 0 : static_cast<std::size_t>(outputs));
  for (auto& v : bias)
    v = dice.chance(9) ? static_cast<std::int32_t>(dice.bits()) : static_cast<std::int32_t>(dice.within(-5000, 5000));
  list y_dims{c.batch, outputs};
  for (index_t i = 3 - c.rank; i < 3; ++i) y_dims.push_back(c.axes[static_cast<std::size_t>(i)].out());
  INFO(c.description(), ", ", x_zeros.size(), " and ", w_zeros.size(), " zero points, ", "linear ", linear,
       " by the reference ", by_reference, ", bias ", !bias.empty());
  REQUIRE(onnx::convolution_dims(x_dims, w_dims, how) == y_dims);
  std::vector<std::int32_t> sums(static_cast<std::size_t>(c.results()));
  std::vector<Y> want(sums.size());
  using position = fuzz::plain_convolution::position;
  const auto at = [&](index_t image, const position& p, bool of_x) {
    const auto extent = [&](std::size_t i) { return of_x ? c.axes[i].in : c.axes[i].taps; };
    return static_cast<std::size_t>(((image * extent(0) + p[0]) * extent(1) + p[1]) * extent(2) + p[2]);
  };
  std::size_t next = 0;
  c.each(
      [&](index_t n, index_t channel, const position& p) {
        return std::int64_t{x[at(n * c.groups * c.inputs + channel, p, true)]} - entry(x_zeros, 0);
      },
      [&](index_t o, index_t i, const position& p) {
        return std::int64_t{w[at(o * c.inputs + i, p, false)]} - entry(w_zeros, o);
      },
      [&](index_t, index_t o, const position&, std::int64_t sum) {
        sums[next] = static_cast<std::int32_t>(sum);
        const auto biased =
            static_cast<std::int32_t>(static_cast<std::uint32_t>(sum) +
                                      static_cast<std::uint32_t>(bias.empty() ? 0 : bias[static_cast<std::size_t>(o)]));
        want[next++] = requantized<Y>(biased, scales[0], entry(w_scales, o), scales[1], y_zero, by_reference, false);
      });
  const std::span<const X> x_span(x);
  const std::span<const W> w_span(w);
  if (!linear) {
    std::vector<std::int32_t> y(sums.size(), 7);
    by_some_executor(dice, [&](const auto& by) {
      onnx::conv_integer<X, W>(x_span, x_dims, w_span, w_dims, x_zeros, w_zeros, how, y, by);
    });
    REQUIRE(y == sums);
    return;
  }
  std::vector<Y> y(sums.size(), Y{7});
  const onnx::qlinear_parameters<X, W, Y> p{scales[0], x_zeros[0], w_scales, w_zeros, scales[1], y_zero, bias};
  by_some_executor(dice, [&](const auto& by) {
    onnx::qlinear_conv<X, W, Y>(x_span, x_dims, w_span, w_dims, p, how, std::span<Y>(y),
                                by_reference ? onnx::convolution_rule::reference : onnx::convolution_rule::runtime, by);
  });
  REQUIRE(y == want);
}

using s8 = std::int8_t;
using u8 = std::uint8_t;

}  // namespace

TEST_CASE("ONNX: MatMulInteger and QLinearMatMul") {
  fuzz::each_case(300, [](fuzz::dice& dice) {
    return dice.chance(2) ? one_matmul<u8, s8, u8>(dice) : one_matmul<s8, u8, s8>(dice);
  });
}
TEST_CASE("ONNX: ConvInteger and QLinearConv") {
  fuzz::each_case(300, [](fuzz::dice& dice) {
    return dice.chance(2) ? one_convolution<u8, s8, u8>(dice) : one_convolution<s8, u8, s8>(dice);
  });
}
