// What the tests of compat/cann.hpp share: tensors as the entry points take them, and awkward numbers.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <doctest/doctest.h>

#include <qtensor/compat/cann.hpp>
#include <random>

namespace calls {

using namespace qtensor;
namespace cann = qtensor::compat::cann;
namespace type = qtensor::compat::cann::type;

using bytes = std::vector<std::uint8_t>;
using words = std::vector<std::uint16_t>;

template <class T>
cann::input in(const std::vector<T>& x, std::int64_t t, const cann::dims& sizes, const cann::dims& strides = {}) {
  return {x.data(), t, sizes, strides};
}
template <class T>
cann::output out(std::vector<T>& y, std::int64_t t, const cann::dims& sizes, const cann::dims& strides = {}) {
  return {y.data(), t, sizes, strides};
}
inline index_t count_of(const cann::dims& sizes) {
  index_t n = 1;
  for (int axis = 0; axis < sizes.rank(); ++axis) n *= sizes[axis];
  return n;
}
inline bool is_fp4(std::int64_t t) { return t == type::e2m1 || t == type::e1m2; }

/// 16-bit floats of every kind: mostly moderate, some zeros, subnormals, ties, and now and then a NaN or an infinity.
inline words numbers(index_t n, unsigned seed, bool awkward = true) {
  std::mt19937 random(seed);
  words x(static_cast<std::size_t>(n));
  for (std::uint16_t& v : x) {
    const std::uint32_t r = random();
    v = static_cast<std::uint16_t>((r & 0x8000u) | (0x3C00u + r % 0x0700u));
    if (awkward && r % 31 == 0) v = static_cast<std::uint16_t>(r & 0x8000u);
    if (awkward && r % 97 == 0) v = static_cast<std::uint16_t>(r >> 16);
  }
  return x;
}

template <class T>
bytes copied(const T& items) {
  const auto* first = reinterpret_cast<const std::uint8_t*>(items.data());
  return {first, first + items.size() * sizeof(*items.data())};
}

/// Codes and scales of an MX operator; codes one a byte.
struct mx_result {
  bytes y, scales;
};
inline bytes unpacked(const bytes& packed, std::int64_t t) {
  if (!is_fp4(t)) return packed;
  bytes codes;
  for (std::uint8_t byte : packed) {
    codes.push_back(byte & 0xFu);
    codes.push_back(byte >> 4);
  }
  return codes;
}

template <class T>
mx_result single(const std::vector<T>& x, std::int64_t t, const cann::dims& sizes, std::int64_t axis,
                 const cann::mx_attributes& how) {
  const cann::dims s = cann::mxscale_sizes(sizes, axis, how.block_size);
  mx_result r{bytes(static_cast<std::size_t>(count_of(sizes)) / (is_fp4(how.dst_type) ? 2 : 1), 0xEE),
              bytes(static_cast<std::size_t>(count_of(s)), 0xEE)};
  const cann::status done =
      cann::dynamic_mx_quant(in(x, t, sizes), axis, how, out(r.y, how.dst_type, sizes), out(r.scales, type::e8m0, s));
  INFO(done.reason);
  REQUIRE(done.code == 0);
  r.y = unpacked(r.y, how.dst_type);
  return r;
}

struct dual_result {
  mx_result rows, cols;
};
template <class T>
dual_result dual(const std::vector<T>& x, std::int64_t t, const cann::dims& sizes, const cann::mx_attributes& how) {
  const cann::dims s1 = cann::mxscale_sizes(sizes, -1), s2 = cann::mxscale_sizes(sizes, -2);
  const std::size_t codes = static_cast<std::size_t>(count_of(sizes)) / (is_fp4(how.dst_type) ? 2 : 1);
  dual_result r{{bytes(codes, 0xEE), bytes(static_cast<std::size_t>(count_of(s1)), 0xEE)},
                {bytes(codes, 0xEE), bytes(static_cast<std::size_t>(count_of(s2)), 0xEE)}};
  const cann::status done = cann::dynamic_mx_quant_with_dual_axis(
      in(x, t, sizes), how, out(r.rows.y, how.dst_type, sizes), out(r.rows.scales, type::e8m0, s1),
      out(r.cols.y, how.dst_type, sizes), out(r.cols.scales, type::e8m0, s2));
  INFO(done.reason);
  REQUIRE(done.code == 0);
  return r;
}

}  // namespace calls
