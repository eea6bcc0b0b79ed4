// What the tests of run kernels share: every vector kernel against the reference kernel, in one binary.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstring>
#include <qtensor/scheme/schemes.hpp>
#include <qtensor/simd/dequantize.hpp>
#include <qtensor/simd/quantize.hpp>
#include <string>
#include <vector>

#include "../oracle/inputs.hpp"
#include "check.hpp"

namespace runs {

using namespace qtensor;

/// Units that n codes take.
template <class S>
index_t units(index_t n) {
  return is_packed<typename S::code_format> ? divide_up(n * S::code_format::bits, 8) : n;
}
template <class S>
std::uint32_t code_at(const simd::code_unit_t<S>* codes, index_t i) {
  if constexpr (is_packed<typename S::code_format>)
    return qtensor::detail::load_bits<S::code_format::bits>(codes, i * S::code_format::bits);
  else
    return qtensor::detail::code_of<typename S::code_format>(codes[i]);
}

inline std::string hex(std::uint32_t bits) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%08x", bits);
  return text;
}

/// Fails with a reproducer at the first code that differs.
template <class S, class Arch>
void compare_codes(const simd::code_unit_t<S>* got, const simd::code_unit_t<S>* want, const float* x, index_t n,
                   const std::string& how) {
  if (std::memcmp(got, want, static_cast<std::size_t>(units<S>(n)) * sizeof(*got)) == 0) return;
  index_t i = 0;
  while (i < n && code_at<S>(got, i) == code_at<S>(want, i)) ++i;
  if (i == n)
    FAIL(std::string(S::name), " (", std::string(S::choices), ") ", std::string(simd::arch_name<Arch>), " ", how,
         ": padding bits of ", n, " codes");
  FAIL(std::string(S::name), " (", std::string(S::choices), ") ", std::string(simd::arch_name<Arch>), " ", how, ": x[",
       i, "] = ", hex(bits_of(x[i])), " of ", n, " gives ", code_at<S>(got, i), ", not ", code_at<S>(want, i));
}

/// encode_uniform of every architecture that has vectors equals the reference on x.
template <class S>
void check_uniform(const std::vector<float>& x, element_scale s, std::int32_t zero_point = 0) {
  static_assert(simd::vector_encodable<S>);
  const index_t n = static_cast<index_t>(x.size());
  std::vector<simd::code_unit_t<S>> want(static_cast<std::size_t>(units<S>(n))), got(want.size());
  simd::kernel<simd::op::encode, S, simd::scalar_arch>::uniform(x.data(), n, s, zero_point, want.data());
  check::archs::for_each([&](auto arch) {
    using A = decltype(arch);
    if constexpr (!std::is_same_v<A, simd::scalar_arch>) {
      std::memset(got.data(), 0x5a, got.size() * sizeof(got[0]));
      simd::kernel<simd::op::encode, S, A>::uniform(x.data(), n, s, zero_point, got.data());
      compare_codes<S, A>(got.data(), want.data(), x.data(), n,
                          "scale " + hex(bits_of(s.scale)) + " tensor scale " + hex(bits_of(s.tensor_scale)) +
                              " zero point " + std::to_string(zero_point));
    }
  });
  CHECK(n > 0);
}

/// Scales a kernel might get wrong: powers of two with their neighbours, where reciprocals leave the normal numbers,
/// the bounds of the two-products method, ordinary ones.
inline std::vector<float> hard_scales() {
  std::vector<float> s = {1.f, 0.0173f, 3.f, 0.1f, 2.2f, 1.f / 127, 255.f};
  for (const int e : {-149, -130, -127, -126, -101, -100, -99, -51, -50, -49, -25, -24,
                      -20,  -1,   0,    1,    30,   99,   100, 101, 125, 126, 127}) {
    const std::uint32_t bits = bits_of(exp2i(e));
    for (const std::uint32_t b : {bits - 1, bits, bits + 1})
      if (b > 0 && b < infinity_bits) s.push_back(float_of(b));
  }
  s.push_back(std::numeric_limits<float>::max());
  return s;
}

/// Quotients that decide codes: half-integers times the scale, with neighbours, and floats of every kind.
inline std::vector<float> around_halves(float s) {
  std::vector<float> x;
  for (int k = -515; k <= 515; ++k) oracle::add_around(x, 0.5 * k * static_cast<double>(s));
  for (int k = 0; k < 500; ++k) x.push_back(check::hard_float());
  oracle::add_specials(x);
  return x;
}

/// The same for the middles between neighbouring values of F, and the one above the largest.
template <class F>
std::vector<float> around_middles(float s) {
  std::vector<float> x;
  for (int i = 0; i + 1 < sorted<F>.count; ++i) {
    const double below = sorted<F>.value(i), above = sorted<F>.value(i + 1);
    oracle::add_around(x, (below + above) / 2 * static_cast<double>(s));
    if (i + 2 == sorted<F>.count) oracle::add_around(x, (above + (above - below) / 2) * static_cast<double>(s));
  }
  for (int k = 0; k < 500; ++k) x.push_back(check::hard_float());
  oracle::add_specials(x);
  return x;
}

/// Numbers and their parameters: one scale and zero point for every `group` elements.
struct run_input {
  std::vector<float> x, scales;
  std::vector<std::int32_t> zeros;

  template <class S>
  static run_input make(index_t n, index_t group) {
    run_input r;
    for (index_t g = 0; g < divide_up(n, group); ++g) {
      r.scales.push_back(scale<S>());
      r.zeros.push_back(S::has_zero_point ? static_cast<std::int32_t>(check::random_below(200)) - 60 : 0);
    }
    for (index_t i = 0; i < n; ++i) {
      const float s = r.scales[static_cast<std::size_t>(i / group)];
      const bool decides = check::random_below(4) != 0 && s > 0.f && s < 1e30f;
      r.x.push_back(decides ? (static_cast<float>(check::random_below(515)) - 257.f) * 0.5f * s : check::hard_float());
    }
    return r;
  }
  /// Now and then one that leaves the fast path: 0, 2^127, 2^-127, beyond the two products.
  template <class S>
  static float scale() {
    const std::uint32_t kind = check::random_below(24);
    if (kind == 0) return 0.f;
    if (kind == 1) return exp2i(static_cast<int>(check::random_below(255)) - 127);
    if (kind == 2) return float_of(0x00800000u + check::random_bits()() % 0x7e800000u);
    if (std::same_as<typename S::scale_format, e8m0>) return exp2i(static_cast<int>(check::random_below(40)) - 20);
    return 0.01f + static_cast<float>(check::random_below(1000)) * 0.003f;
  }
};

}  // namespace runs
