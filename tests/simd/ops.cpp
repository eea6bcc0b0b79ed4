// Mirrors include/qtensor/simd/ops.hpp: masks, arithmetic and conversions. Memory and bytes are in ops_memory.cpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <qtensor/simd/ops.hpp>
#include <string>

#include "check.hpp"

namespace simd = qtensor::simd;
using check::hard_float;
using qtensor::bits_of;
using qtensor::float_of;
using qtensor::index_t;

namespace {

constexpr int rounds = 20000;

template <class T, class A>
constexpr std::size_t size_of = xsimd::batch<T, A>::size;

template <class T, class A>
std::array<T, size_of<T, A>> lanes_of(const xsimd::batch<T, A>& v) {
  std::array<T, size_of<T, A>> r;
  simd::store(r.data(), v);
  return r;
}
template <class A>
std::array<float, size_of<float, A>> hard_lanes() {
  std::array<float, size_of<float, A>> r;
  for (float& x : r) x = hard_float();
  return r;
}
template <class T, class A>
std::array<T, size_of<T, A>> random_lanes() {
  std::array<T, size_of<T, A>> r;
  for (T& x : r) {
    const std::uint32_t bits = check::random_bits()();
    x = static_cast<T>(bits >> (bits % 3 == 0 ? bits % 32 : 0));
  }
  return r;
}

// op on batches equals f on every lane, for hard floats.
template <class A, class Op, class F>
void unary(Op op, F f, const std::string& what) {
  for (int k = 0; k < rounds; ++k) {
    const auto x = hard_lanes<A>();
    const auto got = lanes_of(op(simd::load<A>(x.data())));
    for (std::size_t i = 0; i < x.size(); ++i)
      if (const auto want = f(x[i]); std::memcmp(&got[i], &want, 4) != 0)
        FAIL(what, " of ", bits_of(x[i]), " lane ", i, ": ", got[i], " instead of ", want);
  }
}
template <class A, class Op, class F>
void binary(Op op, F f, const std::string& what) {
  for (int k = 0; k < rounds; ++k) {
    const auto x = hard_lanes<A>();
    auto y = hard_lanes<A>();
    if (k % 4 == 0) std::copy(x.begin() + 1, x.end(), y.begin());
    const auto got = lanes_of(op(simd::load<A>(x.data()), simd::load<A>(y.data())));
    for (std::size_t i = 0; i < x.size(); ++i)
      if (const float want = f(x[i], y[i]); !check::same_or_nan(got[i], want))
        FAIL(what, " of ", bits_of(x[i]), " and ", bits_of(y[i]), " lane ", i, ": ", got[i], " instead of ", want);
  }
}
template <class T, class A, class Op, class F>
void integers(Op op, F f, const std::string& what) {
  for (int k = 0; k < 2000; ++k) {
    const auto x = random_lanes<T, A>(), y = random_lanes<T, A>();
    const auto got = lanes_of(op(simd::load<A>(x.data()), simd::load<A>(y.data())));
    for (std::size_t i = 0; i < x.size(); ++i)
      if (const T want = static_cast<T>(f(x[i], y[i])); got[i] != want)
        FAIL(what, " of ", +x[i], " and ", +y[i], " lane ", i, ": ", +got[i], " instead of ", +want);
  }
}

// Operands whose sum cancels, ties or leaves the normal range: the cases where a second rounding shows.
struct three {
  float a, b, c;
};
three hard_fma() {
  const auto few_bits = [] { return float_of((check::random_bits()() & 0x3fff0000u) + 0x20000000u); };
  float a = hard_float(), b = hard_float(), c = hard_float();
  const std::uint32_t kind = check::random_below(5);
  if (kind >= 1) a = float_of(bits_of(check::hard_finite()) & ~0x20000000u), b = few_bits();
  if (kind >= 2) c = -static_cast<float>(double(a) * double(b));
  if (kind == 3) c = float_of(bits_of(c) + check::random_below(5) - 2);
  if (kind == 4) {
    // a * b = (1 + e)(1 - e) scaled beside the half ulp of c: one bit far below decides a tie.
    const int shift = static_cast<int>(check::random_below(24)) + 1;
    a = 1.0f + std::ldexp(1.0f, -shift), b = 1.0f - std::ldexp(1.0f, -static_cast<int>(check::random_below(24)) - 1);
    c = std::ldexp(1.0f + static_cast<float>(check::random_below(1 << 23)) * 0x1p-23f,
                   static_cast<int>(check::random_below(60)) - 30);
    const int scale = check::random_below(3) == 0 ? -149 : -24 + static_cast<int>(check::random_below(3)) - 1;
    a = scale == -149 ? a : std::ldexp(a, scale + std::ilogb(c));
    if (scale == -149) a = std::ldexp(a, -70), b = std::ldexp(b, -70), c = std::ldexp(c, -130);
    if (check::random_below(2) != 0) c = -c;
  }
  return {a, b, c};
}

}  // namespace

TEST_CASE("bits_as keeps every bit") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    const auto x = random_lanes<std::uint32_t, A>();
    const auto v = simd::load<A>(x.data());
    CHECK(lanes_of(simd::bits_as<std::uint32_t>(simd::bits_as<float>(v))) == x);
    CHECK(lanes_of(simd::bits_as<std::uint32_t>(simd::bits_as<std::int32_t>(v))) == x);
    CHECK(lanes_of(simd::bits_as<std::uint32_t>(simd::bits_as<std::uint8_t>(v))) == x);
    CHECK(lanes_of(simd::bits_as<std::uint32_t>(simd::bits_as<std::uint16_t>(v))) == x);
    CHECK(lanes_of(simd::bits_as<std::uint32_t>(v)) == x);
  });
}

TEST_CASE("select, mask_as, mask_bits, any, all: lane by lane for every pattern of lanes") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    const int n = static_cast<int>(simd::lanes<A>);
    for (std::uint32_t pattern = 0; pattern < (1u << n); pattern += n == 16 ? 7 : 1) {
      std::array<float, size_of<float, A>> x{};
      std::array<std::uint32_t, size_of<float, A>> expected{};
      for (int i = 0; i < n; ++i) {
        x[static_cast<std::size_t>(i)] = (pattern >> i & 1) != 0 ? 1.0f : -1.0f;
        expected[static_cast<std::size_t>(i)] = (pattern >> i & 1) != 0 ? 7 : 9;
      }
      const auto mask = simd::load<A>(x.data()) > simd::floats<A>(0.0f);
      const auto words = simd::mask_as<std::uint32_t>(mask);
      const auto ints = simd::mask_as<std::int32_t>(words);
      bool ok =
          simd::mask_bits(mask) == pattern && simd::mask_bits(words) == pattern && simd::mask_bits(ints) == pattern;
      ok = ok && simd::mask_bits(simd::mask_as<float>(ints)) == pattern;
      ok = ok && simd::any(mask) == (pattern != 0) && simd::all(ints) == (pattern == (1u << n) - 1);
      ok = ok && lanes_of(simd::select(words, simd::words<A>(7u), simd::words<A>(9u))) == expected;
      if (!ok) FAIL("pattern ", pattern);
    }
  });
}

TEST_CASE("batches: operators act lane by lane; words compare unsigned, >> of ints keeps the sign") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    using u = std::uint32_t;
    using s = std::int32_t;
    integers<u, A>([](auto a, auto b) { return a + b; }, [](u a, u b) { return a + b; }, "+");
    integers<u, A>([](auto a, auto b) { return a - b; }, [](u a, u b) { return a - b; }, "-");
    integers<u, A>([](auto a, auto b) { return a * b; }, [](u a, u b) { return a * b; }, "*");
    integers<u, A>([](auto a, auto b) { return a & ~b; }, [](u a, u b) { return a & ~b; }, "& ~");
    integers<u, A>([](auto a, auto b) { return (a | b) ^ (a >> 7); }, [](u a, u b) { return (a | b) ^ (a >> 7); },
                   "|^>>");
    integers<u, A>([](auto a, auto) { return a << 13; }, [](u a, u) { return a << 13; }, "<<");
    integers<s, A>([](auto a, auto) { return a >> 5; }, [](s a, s) { return a >> 5; }, ">> of ints");
    const auto pick = [](auto m, auto a, auto b) { return simd::select(m, a, b); };
    integers<u, A>([&](auto a, auto b) { return pick(a < b, a, b); }, [](u a, u b) { return a < b ? a : b; },
                   "words <");
    integers<u, A>([&](auto a, auto b) { return pick(a >= b, a, b); }, [](u a, u b) { return a >= b ? a : b; },
                   "words >=");
    integers<u, A>([&](auto a, auto b) { return pick(a == b, a, b); }, [](u a, u b) { return a == b ? a : b; },
                   "words ==");
    integers<s, A>([&](auto a, auto b) { return pick(a > b, a, b); }, [](s a, s b) { return a > b ? a : b; }, "ints >");
    const auto low31 = [](auto v) { return v & simd::words<A>(0x7fffffffu); };
    integers<u, A>([&](auto a, auto b) { return pick(simd::below(low31(a), low31(b)), a, b); },
                   [](u a, u b) { return (a & 0x7fffffffu) < (b & 0x7fffffffu) ? a : b; }, "below");
    using b8 = std::uint8_t;
    integers<b8, A>([](auto a, auto b) { return (a & b) | (a ^ b); }, [](b8 a, b8 b) { return (a & b) | (a ^ b); },
                    "bytes");
    integers<b8, A>([](auto a, auto b) { return a + b; }, [](b8 a, b8 b) { return a + b; }, "bytes +");
    integers<b8, A>([&](auto a, auto b) { return pick(a == b, a, b); }, [](b8 a, b8 b) { return a == b ? a : b; },
                    "bytes ==");
  });
}

TEST_CASE("min, max: a < b ? a : b and a > b ? a : b, NaN and signed zeros included") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    for (int k = 0; k < rounds; ++k) {
      const auto x = hard_lanes<A>(), y = hard_lanes<A>();
      const auto lo = lanes_of(simd::min(simd::load<A>(x.data()), simd::load<A>(y.data())));
      const auto hi = lanes_of(simd::max(simd::load<A>(x.data()), simd::load<A>(y.data())));
      for (std::size_t i = 0; i < x.size(); ++i) {
        const float a = x[i], b = y[i];
        if (bits_of(lo[i]) != bits_of(a < b ? a : b) || bits_of(hi[i]) != bits_of(a > b ? a : b))
          FAIL(bits_of(a), " ", bits_of(b));
      }
    }
    const auto lower = [](auto a, auto b) { return simd::min(a, b); };
    const auto upper = [](auto a, auto b) { return simd::max(a, b); };
    const auto least = [](auto a, auto b) { return std::min(a, b); };
    const auto most = [](auto a, auto b) { return std::max(a, b); };
    integers<std::uint32_t, A>(lower, least, "min words");
    integers<std::uint32_t, A>(upper, most, "max words");
    integers<std::int32_t, A>(lower, least, "min ints");
    integers<std::int32_t, A>(upper, most, "max ints");
    integers<std::uint16_t, A>(lower, least, "min halves");
    integers<std::uint16_t, A>(upper, most, "max halves");
    integers<std::uint8_t, A>(lower, least, "min bytes");
    integers<std::uint8_t, A>(upper, most, "max bytes");
  });
}

TEST_CASE("add_saturated, sub_saturated stop at 255 and 0") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    using b8 = std::uint8_t;
    integers<b8, A>([](auto a, auto b) { return simd::add_saturated(a, b); },
                    [](b8 a, b8 b) { return std::min(a + b, 255); }, "add_saturated");
    integers<b8, A>([](auto a, auto b) { return simd::sub_saturated(a, b); },
                    [](b8 a, b8 b) { return std::max(a - b, 0); }, "sub_saturated");
  });
}

TEST_CASE("reduce_max, reduce_max_each, reduce_add_each: the maximum of each row, wherever it is, and the sum") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    constexpr std::size_t n = size_of<float, A>;
    for (int k = 0; k < 2000; ++k) {
      std::array<std::array<std::uint32_t, n>, n> rows;
      std::array<std::uint32_t, n> expected, sums;
      for (std::size_t r = 0; r < n; ++r) {
        rows[r] = random_lanes<std::uint32_t, A>();
        sums[r] = std::accumulate(rows[r].begin(), rows[r].end(), 0u);
        expected[r] = *std::max_element(rows[r].begin(), rows[r].end());
        if (simd::reduce_max(simd::load<A>(rows[r].data())) != expected[r]) FAIL("row ", r);
      }
      const auto row = [&](index_t r) { return simd::load<A>(rows[std::size_t(r)].data()); };
      if (lanes_of(simd::reduce_max_each<A>(row)) != expected) FAIL("reduce_max_each, round ", k);
      if (lanes_of(simd::reduce_add_each<A>(row)) != sums) FAIL("reduce_add_each, round ", k);
    }
  });
}

TEST_CASE("reduce_add: the sum of all lanes, modulo 2^32") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    for (int k = 0; k < 2000; ++k) {
      const auto lanes = random_lanes<std::uint32_t, A>();
      const std::uint32_t sum = std::accumulate(lanes.begin(), lanes.end(), 0u);
      if (simd::reduce_add(simd::load<A>(lanes.data())) != sum) FAIL("round ", k);
    }
  });
}

TEST_CASE("reduce_max_each_half: the maximum of each row, and of each half of a row, wherever it is") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    constexpr std::size_t n = size_of<float, A>, size = 2 * n;
    for (int k = 0; k < 2000; ++k) {
      std::array<std::array<std::uint16_t, size>, n> rows;
      std::array<std::uint32_t, n> expected, expected_halves;
      for (auto& row : rows) row = random_lanes<std::uint16_t, A>();
      for (std::size_t b = 0; b < n; ++b) {
        expected[b] = *std::max_element(rows[b].begin(), rows[b].end());
        const auto half = rows[b / 2].begin() + static_cast<std::ptrdiff_t>(b % 2 * n);
        expected_halves[b] = *std::max_element(half, half + static_cast<std::ptrdiff_t>(n));
      }
      const auto row = [&](index_t r) { return simd::load<A>(rows[std::size_t(r)].data()); };
      if (lanes_of(simd::reduce_max_each_half<A>(row)) != expected) FAIL("rows, round ", k);
      if (lanes_of(simd::reduce_max_each_half<A, 2>(row)) != expected_halves) FAIL("half rows, round ", k);
    }
  });
}

TEST_CASE("mul, add, sub, div: one IEEE operation each, never merged with their neighbours") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    using qtensor::rounded;
    binary<A>([](auto a, auto b) { return simd::mul(a, b); }, [](float a, float b) { return rounded(a * b); }, "mul");
    binary<A>([](auto a, auto b) { return simd::add(a, b); }, [](float a, float b) { return rounded(a + b); }, "add");
    binary<A>([](auto a, auto b) { return simd::sub(a, b); }, [](float a, float b) { return rounded(a - b); }, "sub");
    binary<A>([](auto a, auto b) { return simd::div(a, b); }, [](float a, float b) { return rounded(a / b); }, "div");
    // Contracted, each of these keeps bits of the product that a rounding drops.
    const auto plain = [](float a, float b) { return rounded(rounded(a * b) + a); };
    binary<A>([](auto a, auto b) { return simd::mul(a, b) + a; }, plain, "mul then +");
    binary<A>([](auto a, auto b) { return simd::add(a * b, a); }, plain, "* then add");
    binary<A>([](auto a, auto b) { return simd::rounded(a * b) + a; }, plain, "rounded(*) then +");
    const auto minus = [](float a, float b) { return rounded(b - rounded(a * b)); };
    binary<A>([](auto a, auto b) { return simd::sub(b, a * b); }, minus, "* then sub");
  });
}

TEST_CASE("fma: one rounding on every architecture") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    for (int k = 0; k < 5 * rounds; ++k) {
      std::array<float, size_of<float, A>> a, b, c;
      for (std::size_t i = 0; i < a.size(); ++i) {
        const three t = hard_fma();
        a[i] = t.a, b[i] = t.b, c[i] = t.c;
      }
      const auto got = lanes_of(simd::fma(simd::load<A>(a.data()), simd::load<A>(b.data()), simd::load<A>(c.data())));
      for (std::size_t i = 0; i < a.size(); ++i)
        if (!check::same_or_nan(got[i], std::fma(a[i], b[i], c[i])))
          FAIL("fma ", bits_of(a[i]), " ", bits_of(b[i]), " ", bits_of(c[i]), ": ", bits_of(got[i]));
    }
  });
}

TEST_CASE("fma: a product one part in 2^46 above a tie rounds up; with two roundings it would not") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    const float a = 1.0f + 0x1p-23f, c = 0x1p24f;  // a * a = 1 + 2^-22 + 2^-46, the tie of c is 1
    CHECK(lanes_of(simd::fma(simd::floats<A>(a), simd::floats<A>(a), simd::floats<A>(c)))[0] == 0x1p24f + 2.0f);
    const float tiny = 0x1p-100f;  // 1 + 2^-200 needs more bits than a double has
    CHECK(lanes_of(simd::fma(simd::floats<A>(tiny), simd::floats<A>(tiny), simd::floats<A>(1.0f)))[0] == 1.0f);
    const float d = 1.0f + 0x1p-12f;  // d * d = 1 + 2^-11 + 2^-24: the last bit is a tie, -2^-80 more is below it
    const simd::floats<A> below(-0x1p-80f);
    CHECK(lanes_of(simd::fma(simd::floats<A>(d), simd::floats<A>(d), below))[0] == 1.0f + 0x1p-11f);
    CHECK(lanes_of(simd::fma(simd::floats<A>(d), simd::floats<A>(d), -below))[0] == 1.0f + 0x1p-11f + 0x1p-23f);
  });
}

TEST_CASE("round_to_int, truncate_to_int, to_float, nearest, floor, truncate") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    constexpr std::int32_t lowest = std::numeric_limits<std::int32_t>::min();
    const auto inside = [](float x) { return x >= -0x1p31f && x < 0x1p31f; };
    unary<A>([](auto x) { return simd::round_to_int_checked(x); },
             [&](float x) { return inside(x) ? static_cast<std::int32_t>(std::nearbyint(x)) : lowest; },
             "round_to_int_checked");
    const auto kept = [](auto x) { return simd::select(x < simd::floats<A>(0x1p31f), x, simd::floats<A>(0.5f)); };
    const auto tamed = [&](auto x) { return kept(simd::max(x, simd::floats<A>(-0x1p31f))); };  // NaN gives -2^31
    const auto tame = [](float x) { return !(x > -0x1p31f) ? -0x1p31f : x < 0x1p31f ? x : 0.5f; };
    unary<A>([&](auto x) { return simd::round_to_int(tamed(x)); },
             [&](float x) { return static_cast<std::int32_t>(std::nearbyint(tame(x))); }, "round_to_int");
    unary<A>([&](auto x) { return simd::truncate_to_int(tamed(x)); },
             [&](float x) { return static_cast<std::int32_t>(tame(x)); }, "truncate_to_int");
    unary<A>([](auto x) { return simd::to_float(simd::bits_as<std::int32_t>(x)); },
             [](float x) { return static_cast<float>(static_cast<std::int32_t>(bits_of(x))); }, "to_float");
    const auto quiet = [](float x, float r) { return qtensor::is_nan(x) ? float_of(bits_of(x) | 0x00400000u) : r; };
    unary<A>([](auto x) { return simd::nearest(x); }, [&](float x) { return quiet(x, std::nearbyint(x)); }, "nearest");
    unary<A>([](auto x) { return simd::floor(x); }, [&](float x) { return quiet(x, std::floor(x)); }, "floor");
    unary<A>([](auto x) { return simd::truncate(x); }, [&](float x) { return quiet(x, std::trunc(x)); }, "truncate");
  });
}

TEST_CASE("multiply_wide: both halves of products with a constant") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    using u = std::uint32_t;
    for (const u b : {0u, 1u, 0x80000000u, 0xD2511F53u, 0xffffffffu}) {
      integers<u, A>([&](auto a, auto) { return simd::multiply_wide(a, b)[0]; }, [&](u a, u) { return a * b; }, "low");
      integers<u, A>([&](auto a, auto) { return simd::multiply_wide(a, b)[1]; },
                     [&](u a, u) { return static_cast<u>(std::uint64_t{a} * b >> 32); }, "high");
    }
  });
}

TEST_CASE("with_last_bit: of words that are not zero, with a sign or without") {
  check::on_every_arch([](auto arch) {
    using u = std::uint32_t;
    integers<u, decltype(arch)>([](auto a, auto) { return simd::with_last_bit(a); },
                                [](u a, u) { return (a & 0x7fffffffu) != 0 ? a | 1 : a; }, "with_last_bit");
  });
  alignas(64) std::uint32_t v[16] = {0u, 0x80000000u, 1u, 0x80000001u, 2u, 0x80000002u, 0xffffffffu, 0x7fffffffu};
  check::on_every_arch([&](auto arch) {
    alignas(64) std::uint32_t got[16] = {};
    for (index_t i = 0; i < 16; i += simd::lanes<decltype(arch)>)
      simd::store(got + i, simd::with_last_bit(simd::load<decltype(arch)>(v + i)));
    for (std::size_t i = 0; i < 16; ++i) CHECK(got[i] == ((v[i] & 0x7fffffffu) != 0 ? v[i] | 1u : v[i]));
  });
}

TEST_CASE("sign_last: the top bit behind the others") {
  check::on_every_arch([](auto arch) {
    using u = std::uint32_t;
    integers<u, decltype(arch)>([](auto a, auto) { return simd::sign_last(a); },
                                [](u a, u) { return a << 1 | a >> 31; }, "sign_last");
  });
}

TEST_CASE("shift_left, shift_right: by a count of its own for each lane") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    using u = std::uint32_t;
    const auto low5 = [](auto b) { return b & simd::words<A>(31u); };
    integers<u, A>([&](auto a, auto b) { return simd::shift_left(a, low5(b)); }, [](u a, u b) { return a << (b & 31); },
                   "<<");
    integers<u, A>([&](auto a, auto b) { return simd::shift_right(a, low5(b)); },
                   [](u a, u b) { return a >> (b & 31); }, ">>");
  });
}
