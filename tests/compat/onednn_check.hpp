// What the tests of oneDNN's conversions share: arrays of run-time types, and one element by NUMERICS 5.1 and 5.2.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <qtensor/compat/onednn_attributes.hpp>
#include <qtensor/reference/codec.hpp>
#include <span>
#include <vector>

namespace onednn_check {

namespace dnn = qtensor::compat::onednn;
using dnn::attributes;
using dnn::data_type;
using qtensor::index_t;
using words = std::vector<std::uint32_t>;
using list = std::vector<index_t>;

inline constexpr data_type all_types[] = {data_type::f32,     data_type::bf16,    data_type::f16,  data_type::f8_e5m2,
                                          data_type::f8_e4m3, data_type::f4_e2m1, data_type::e8m0, data_type::s32,
                                          data_type::s8,      data_type::u8,      data_type::s4,   data_type::u4};

/// The number of a code, and (by `P...`) the code of a number.
inline float number(data_type type, std::uint32_t code) {
  float x = 0.f;
  dnn::with_format(type,
                   [&]<class F>(std::type_identity<F>) { x = qtensor::decode<F>(code & qtensor::low_bits(F::bits)); });
  return x;
}
template <class... P>
std::uint32_t code_of(data_type type, float x) {
  std::uint32_t code = 0;
  dnn::with_format(type, [&]<class F>(std::type_identity<F>) { code = qtensor::encode<F, P...>(x); });
  return code;
}

/// A dense array in oneDNN's layout, given and read as one code a word.
class buffer {
 public:
  buffer(data_type type, std::size_t n, std::uint8_t fill = 0) : type_(type), n_(n), memory_(n + 1) {
    std::memset(memory_.data(), fill, memory_.size() * 4);
  }
  buffer(data_type type, const words& codes) : buffer(type, codes.size()) {
    for (std::size_t i = 0; i < n_; ++i) {
      if (bits() == 4)
        bytes()[i / 2] = static_cast<std::uint8_t>(bytes()[i / 2] | (codes[i] & 15u) << (i % 2 * 4));
      else
        std::memcpy(bytes() + i * bits() / 8, &codes[i], bits() / 8);  // little endian
    }
  }
  static buffer of(data_type type, const std::vector<float>& numbers) {
    words codes;
    for (const float x : numbers) codes.push_back(code_of<>(type, x));
    return buffer(type, codes);
  }

  data_type type() const { return type_; }
  void* data() { return memory_.data(); }
  const void* data() const { return memory_.data(); }
  words codes() const {
    words out(n_, 0);
    for (std::size_t i = 0; i < n_; ++i) {
      if (bits() == 4)
        out[i] = bytes()[i / 2] >> (i % 2 * 4) & 15u;
      else
        std::memcpy(&out[i], bytes() + i * bits() / 8, bits() / 8);
    }
    return out;
  }
  std::uint8_t byte(std::size_t i) const { return bytes()[i]; }

 private:
  std::size_t bits() const { return static_cast<std::size_t>(dnn::bits_of_type(type_)); }
  std::uint8_t* bytes() { return reinterpret_cast<std::uint8_t*>(memory_.data()); }
  const std::uint8_t* bytes() const { return reinterpret_cast<const std::uint8_t*>(memory_.data()); }

  data_type type_;
  std::size_t n_;
  words memory_;
};

/// Reproducible codes of every kind.
inline words codes(std::size_t n, std::uint32_t state) {
  words out;
  for (std::size_t i = 0; i < n; ++i) {
    state = state * 1664525u + 1013904223u;
    out.push_back(state >> 8);
  }
  return out;
}
/// Numbers of both signs with many ties, for a type.
inline words plain_codes(data_type type, std::size_t n, std::uint32_t state) {
  words out;
  for (const std::uint32_t word : codes(n, state)) {
    const float x = static_cast<float>(static_cast<std::int32_t>(word << 8) >> 22) * .25f;
    out.push_back(dnn::bits_of_type(type) <= 8 ? word : code_of<>(type, x));
  }
  return out;
}

/// The index calculation of NUMERICS 5.2.
inline std::size_t entry(const dnn::parameter& p, const list& dims, index_t element) {
  list at(dims.size());
  for (std::size_t d = dims.size(); d-- > 0; element /= dims[d]) at[d] = element % dims[d];
  index_t entry = 0;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    const bool masked = (p.mask >> d & 1) != 0;
    const std::size_t from_end = dims.size() - d;
    const index_t group = from_end <= p.groups.size() ? p.groups[p.groups.size() - from_end] : 1;
    entry = entry * (masked ? dims[d] / group : 1) + (masked ? at[d] / group : 0);
  }
  return static_cast<std::size_t>(entry);
}

/// A parameter with its numbers.
struct given {
  dnn::parameter where;
  std::vector<float> numbers;  // empty: absent
  float operator()(const list& dims, index_t element, float otherwise) const {
    return numbers.empty() ? otherwise : numbers[entry(where, dims, element)];
  }
};

struct conversion {
  given src_scale, src_zero, dst_scale, dst_zero;
};

/// One element by the formula of NUMERICS 5.1 and the default choices, but for division and zero-point order.
inline std::uint32_t expected(data_type from, std::uint32_t code, data_type to, const list& dims, index_t element,
                              const conversion& c, const attributes& how, std::uint32_t old) {
  volatile float d = number(from, code);  // every step is rounded to f32
  if (!c.src_zero.numbers.empty()) d = d - c.src_zero(dims, element, 0.f);
  if (!c.src_scale.numbers.empty()) d = c.src_scale(dims, element, 1.f) * d;
  if (how.beta != 0.f) {
    volatile float kept = how.beta * number(to, old);
    d = d + kept;
  }
  if (!c.dst_scale.numbers.empty()) {
    const float s = c.dst_scale(dims, element, 1.f);
    volatile float inverse = 1.f / s;
    if (how.division == dnn::division::exact)
      d = d / s;
    else
      d = d * inverse;
  }
  const float zero = c.dst_zero(dims, element, 0.f);
  const bool after = dnn::is_integer(to) && how.zero_point_order == dnn::zero_point_order::after_round;
  if (!c.dst_zero.numbers.empty() && !after) d = d + zero;
  if (dnn::is_integer(to)) {
    const int bits = dnn::bits_of_type(to);
    const bool is_signed = to == data_type::s32 || to == data_type::s8 || to == data_type::s4;
    const double low = is_signed ? -std::ldexp(1.0, bits - 1) : 0.0;
    const double high = to == data_type::s32 && !after ? 2147483520.0 : std::ldexp(1.0, bits - is_signed) - 1;
    if (std::isnan(d)) d = after ? 0.f : zero;
    double q = static_cast<double>(d);
    if (!after) q = q < low ? low : q > high ? high : q;
    q = std::isinf(q) ? q : std::nearbyint(q);
    if (after) q = q + static_cast<double>(zero);
    q = q < low ? low : q > high ? high : q;
    return static_cast<std::uint32_t>(static_cast<std::int64_t>(q)) & qtensor::low_bits(bits);
  }
  if (to == data_type::e8m0) return qtensor::encode<qtensor::e8m0, qtensor::toward_zero>(d);
  if (to == data_type::f4_e2m1) return qtensor::encode<qtensor::e2m1, qtensor::nan_to_max>(d);
  if (to == data_type::f8_e4m3) return qtensor::encode<qtensor::e4m3, qtensor::via_f16, qtensor::to_special>(d);
  if (to == data_type::f8_e5m2) return qtensor::encode<qtensor::e5m2, qtensor::via_f16, qtensor::to_special>(d);
  return code_of<qtensor::to_special>(to, d);
}

}  // namespace onednn_check
