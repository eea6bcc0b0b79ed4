// torch's quantize, dequantize and fake_quantize per channel, element by element as NUMERICS 5.1 and 10 say.
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <qtensor/compat/torch.hpp>

#include "array.hpp"

using namespace qtensor;
namespace torch = qtensor::compat::torch;

namespace {

using list = std::vector<index_t>;

/// A tensor of three axes, and which of the channels of one of them an element belongs to.
struct channels {
  list dims;
  int axis;
  std::vector<float> x;
  std::vector<double> scales;

  explicit channels(fuzz::dice& dice)
      : dims(fuzz::shape(dice, 3, dice.chance(5) ? 6000 : 900)), axis(static_cast<int>(dice.within(0, 2))) {
    x = dice.numbers(dims[0] * dims[1] * dims[2]);
    for (index_t c = 0; c < count(); ++c)
      scales.push_back(std::ldexp(1.0 + static_cast<double>(dice.bits() % 4096) / 4096.0 + 1e-12,
                                  static_cast<int>(dice.chance(20) ? dice.within(-120, 120) : dice.within(-6, 3))));
  }
  index_t count() const { return dims[static_cast<std::size_t>(axis)]; }
  index_t size() const { return static_cast<index_t>(x.size()); }
  std::size_t of(index_t i) const {
    const index_t at[] = {i / dims[2] / dims[1], i / dims[2] % std::max<index_t>(1, dims[1]), i % dims[2]};
    return static_cast<std::size_t>(at[axis]);
  }
  auto shape() const { return extents(dims[0], dims[1], dims[2]); }
};

template <quantization_scheme S>
void each_channel(fuzz::dice& dice) {
  const channels c(dice);
  const double low = static_cast<double>(S::codes.low), high = std::min(static_cast<double>(S::codes.high), 0x1p31 - 1);
  std::vector<std::int64_t> zeros;
  for (index_t i = 0; i < c.count(); ++i)
    zeros.push_back(dice.chance(3) ? 0 : dice.within(static_cast<index_t>(low), static_cast<index_t>(high)));
  INFO(std::string(name<S>), " ", fuzz::text(c.dims), " along ", c.axis);
  const auto t = torch::quantize_per_channel<S>(source(c.x.data(), c.shape()), c.scales, zeros,
                                                dice.chance(2) ? c.axis : c.axis - 3);
  const std::vector<float> back = torch::dequantize_per_channel(t, c.scales), plain = torch::dequantize(t);
  for (index_t i = 0; i < c.size(); ++i) {
    const auto scale = static_cast<float>(c.scales[c.of(i)]);
    const std::int64_t zero = zeros[c.of(i)];
    const float x = c.x[static_cast<std::size_t>(i)];
    volatile float q = 1.f / scale;
    q = x * q;
    const double code =
        std::clamp((is_nan(q) ? 0.0 : std::nearbyint(static_cast<double>(q))) + static_cast<double>(zero), low, high);
    INFO("element ", i, ", ", x, " over ", scale, " and ", zero);
    REQUIRE(static_cast<double>(t.codes()[static_cast<std::size_t>(i)]) == code);
    volatile double value = code - static_cast<double>(zero);
    volatile float simple = static_cast<float>(value) * scale;
    value = value * c.scales[c.of(i)];
    REQUIRE(bits_of(back[static_cast<std::size_t>(i)]) == bits_of(static_cast<float>(value)));
    if (S::code_format::bits == 8) REQUIRE(bits_of(plain[static_cast<std::size_t>(i)]) == bits_of(simple));
  }
}

void fake_per_channel(fuzz::dice& dice) {
  const channels c(dice);
  const index_t low = dice.chance(4) ? -(index_t{1} << 31) : dice.within(-300, 0),
                high = dice.chance(4) ? (index_t{1} << 31) - 1 : dice.within(low, 300);
  std::vector<std::int64_t> zeros;
  for (index_t i = 0; i < c.count(); ++i) zeros.push_back(dice.within(low, high));
  INFO(fuzz::text(c.dims), " along ", c.axis, ", ", low, " to ", high);
  const std::vector<float> y =
      torch::fake_quantize_per_channel_affine(source(c.x.data(), c.shape()), c.scales, zeros, c.axis, low, high);
  for (index_t i = 0; i < c.size(); ++i) {
    const float wanted = torch::fake_quantize_element(c.x[static_cast<std::size_t>(i)],
                                                      static_cast<float>(c.scales[c.of(i)]), zeros[c.of(i)], low, high);
    INFO("element ", i, ", ", c.x[static_cast<std::size_t>(i)], " by ", c.scales[c.of(i)], " and ", zeros[c.of(i)]);
    REQUIRE(bits_of(y[static_cast<std::size_t>(i)]) == bits_of(wanted));
  }
}

}  // namespace

TEST_CASE("torch: quantize_per_channel and back") {
  fuzz::each_case(150, [](fuzz::dice& dice) {
    fuzz::one_case_of(dice, &each_channel<torch::qint8>, &each_channel<torch::quint8>, &each_channel<torch::qint32>,
                      &each_channel<torch::quint8_reduced>);
  });
}
TEST_CASE("torch: fake_quantize_per_channel_affine") { fuzz::each_case(150, fake_per_channel); }
