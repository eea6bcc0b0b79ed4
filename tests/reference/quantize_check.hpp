// What every test of reference/quantize.hpp runs: a scheme on awkward data against the block oracle, element by
// element. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <doctest/doctest.h>

#include <array>
#include <qtensor/reference/quantize.hpp>
#include <qtensor/scheme/schemes.hpp>
#include <sstream>

#include "oracle/blocks.hpp"

namespace oracle {

using sizes = std::vector<std::size_t>;

/// Numbers in stretches of different character, so that blocks of every kind occur: ordinary ones, the whole range of
/// floats, subnormals, zeros of both signs, one value, the largest float, ties, and a few NaNs and infinities.
inline std::vector<float> awkward_data(std::size_t n, std::uint64_t seed) {
  random_bits random(seed);
  std::vector<float> x;
  while (x.size() < n) {
    const std::uint32_t kind = random.word() % 10, length = 1 + random.word() % 48;
    const float one_value = random.log_uniform(-10, 10);
    for (std::uint32_t i = 0; i < length && x.size() < n; ++i) {
      switch (kind) {
        case 0:
          x.push_back(random.log_uniform(-126, 128));
          break;
        case 1:
          x.push_back(float_of(random.word() & 0x807FFFFFu));
          break;
        case 2:
          x.push_back(float_of(random.word() & 0x80000000u));
          break;
        case 3:
          x.push_back(one_value);
          break;
        case 4:
          x.push_back(i == 0 ? std::numeric_limits<float>::max() : random.log_uniform(-4, 127));
          break;
        case 5:
          x.push_back(static_cast<float>(static_cast<int>(random.word() % 512) - 256) * 0.5f);
          break;
        case 6:
          x.push_back(random.word() % 24 == 0 ? random.any_float() : random.log_uniform(-3, 3));
          break;
        case 7: {
          const std::uint32_t special[] = {0x7FC00000, 0xFFC00000, 0x7F800000, 0xFF800000};
          x.push_back(random.word() % 16 == 0 ? float_of(special[random.word() % 4]) : random.log_uniform(-3, 3));
          break;
        }
        default:
          x.push_back(random.log_uniform(-6, 4));
          break;
      }
    }
  }
  return x;
}

template <int Rank>
std::array<qtensor::index_t, static_cast<std::size_t>(Rank)> index_of(std::size_t linear, const sizes& shape) {
  std::array<qtensor::index_t, static_cast<std::size_t>(Rank)> index{};
  for (std::size_t axis = shape.size(); axis-- > 0; linear /= shape[axis])
    index[axis] = static_cast<qtensor::index_t>(linear % shape[axis]);
  return index;
}

/// A tensor of zeros with this shape (its rank is Rank).
template <class S, int Rank, class Order>
auto make_tensor(const sizes& shape, const typename S::granularity_type& granularity = {}) {
  using extents = qtensor::dynamic_extents<Rank>;
  typename extents::array all{};
  for (std::size_t axis = 0; axis < all.size(); ++axis) all[axis] = static_cast<qtensor::index_t>(shape.at(axis));
  return qtensor::tensor<S, extents, Order>(extents(all), granularity);
}

/// Compares codes, scales, zero points and dequantized numbers with the oracle's; prints the first differences.
template <class S, class Tensor>
void compare_tensor(const Tensor& t, const sizes& shape, const std::vector<float>& x, const block_list& blocks,
                    const quantized& expected) {
  constexpr int rank = Tensor::rank;
  const auto view = t.view();
  int shown = 0;
  std::size_t wrong = 0;
  const auto differ = [&](const char* what, std::size_t element, double ours, double theirs) {
    ++wrong;
    if (++shown > 5) return;
    std::ostringstream line;
    line << qtensor::name<S>.c_str() << " {" << qtensor::choices<S>.c_str() << "}, shape";
    for (std::size_t extent : shape) line << ' ' << extent;
    line << ", element " << element << ", x bits 0x" << std::hex << bits_of(x[element]) << std::dec << ": " << what
         << ' ' << ours << ", the oracle says " << theirs;
    FAIL_CHECK(line.str());
  };
  REQUIRE(expected.codes.size() == x.size());
  REQUIRE(expected.scales.size() == blocks.size());
  if constexpr (S::has_tensor_scale)
    if (t.tensor_scale() != expected.tensor_scale) differ("tensor scale", 0, t.tensor_scale(), expected.tensor_scale);
  for (std::size_t b = 0; b < blocks.size(); ++b)
    for (std::size_t i : blocks[b]) {
      const auto index = index_of<rank>(i, shape);
      if (view.scale_code(index) != expected.scales[b])
        differ("scale code", i, view.scale_code(index), expected.scales[b]);
      if (view.code(index) != expected.codes[i]) differ("code", i, view.code(index), expected.codes[i]);
      const std::int64_t zero = S::has_zero_point ? expected.zero_points[b] : 0;
      if (view.zero_point(index) != zero)
        differ("zero point", i, static_cast<double>(view.zero_point(index)), static_cast<double>(zero));
      const std::string scale_name = S::scale_format::name.c_str();
      const std::string code_name = S::code_format::name.c_str();
      const format& f = format_named(code_name == "narrow_range<int8>" ? "narrow_int8" : code_name);
      const float value = dequantized(f, expected.codes[i], zero, detail::stored_value(scale_name, expected.scales[b]),
                                      expected.tensor_scale);
      const float ours = qtensor::reference::value(view, index);
      if (std::isnan(value) ? !std::isnan(ours) : bits_of(ours) != bits_of(value))
        differ("dequantized", i, ours, value);
    }
  CHECK_MESSAGE(wrong == 0, wrong << " differences");
}

/// Dynamic quantization of `x` under S, compared with `oracle(x, blocks)`. `block` is the oracle's shape of a block, 0
/// for a whole axis.
template <class S, int Rank, class Order, class Oracle>
void check_scheme(const sizes& shape, const sizes& block, const std::vector<float>& x, Oracle oracle,
                  const typename S::granularity_type& granularity = {}) {
  auto t = make_tensor<S, Rank, Order>(shape, granularity);
  const auto source = [&](const auto& index) {
    std::size_t linear = 0;
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
      linear = linear * shape[axis] + static_cast<std::size_t>(index[axis]);
    return x[linear];
  };
  qtensor::reference::quantize(source, t.span());
  const block_list blocks = cut(shape, block);
  compare_tensor<S>(t, shape, x, blocks, oracle(x, blocks));
}

/// The same on awkward data, as a matrix with groups of `Group` along its rows; three seeds.
template <class S, int Group = 32, class Oracle>
void check_groups(Oracle oracle) {
  using grouped = qtensor::with<S, qtensor::group<Group>>;
  for (std::uint64_t seed : {1u, 2u, 3u}) {
    const sizes shape = {12, 5 * Group + 3};  // a short last block
    check_scheme<grouped, 2, qtensor::row_major>(shape, {1, Group}, awkward_data(shape[0] * shape[1], seed), oracle);
  }
}

/// amax_scale into `format` with scales of `scale`, as an oracle for the functions above.
inline auto amax_oracle(const char* format, const char* scale = "f32", conversion c = {}) {
  if (c.round == rounding::nearest_even) c.round = default_rounding(format_named(format));
  return [=](const std::vector<float>& x, const block_list& blocks) {
    return amax_scale(x, blocks, format_named(format), scale, c);
  };
}
inline auto mx_oracle(const char* format, mx_rule rule, conversion c = {}) {
  return [=](const std::vector<float>& x, const block_list& blocks) {
    return mx(x, blocks, format_named(format), rule, c);
  };
}

}  // namespace oracle
