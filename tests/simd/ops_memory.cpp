// Mirrors include/qtensor/simd/ops.hpp: loads, stores, 16-bit formats, narrowing, tables, byte planes, nibbles.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <cmath>
#include <qtensor/simd/ops.hpp>
#include <string>
#include <vector>

#include "check.hpp"

namespace simd = qtensor::simd;
using check::fenced;
using qtensor::bits_of;
using qtensor::float_of;
using qtensor::index_t;

namespace {

// The value of an f16 by definition, NaN quieted.
float f16_value(std::uint32_t h) {
  const int e = static_cast<int>(h >> 10 & 31), m = static_cast<int>(h & 1023);
  const std::uint32_t sign = (h & 0x8000) << 16;
  if (e == 31 && m != 0) return float_of(sign | 0x7fc00000u | static_cast<std::uint32_t>(m) << 13);
  if (e == 31) return float_of(sign | 0x7f800000u);
  const double v = std::ldexp(e != 0 ? 1024 + m : m, (e != 0 ? e : 1) - 25);
  return float_of(sign | bits_of(static_cast<float>(v)));
}
// Nearest even by definition: count steps of 2^(exponent - mantissa bits), the smallest exponent being `lowest`.
std::uint32_t nearest16(float x, int mantissa, int lowest, int bias) {
  const std::uint32_t sign = bits_of(x) >> 31 << 15, infinity = static_cast<std::uint32_t>(2 * bias + 1) << mantissa;
  const double a = std::abs(double(x));
  if (x != x) return sign | infinity | 1u << (mantissa - 1) | (bits_of(x) & 0x7fffffu) >> (23 - mantissa);
  if (std::isinf(a)) return sign | infinity;
  const int e = a == 0 ? lowest : std::max(std::ilogb(a), lowest);
  const auto steps = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(a, mantissa - e)));
  const std::uint32_t code = steps + (static_cast<std::uint32_t>(e - lowest) << mantissa);
  return sign | std::min(code, infinity);
}

template <class T, class A>
void partial_of() {
  const index_t size = static_cast<index_t>(xsimd::batch<T, A>::size);
  for (index_t n = 0; n <= size; ++n)
    for (const bool at_start : {false, true}) {
      CAPTURE(n);
      const std::vector<T> values = check::random_codes<T>(n);
      fenced<T> from(values, at_start), to(n, at_start);
      const T fill = static_cast<T>(42);
      fenced<T> lane(size);
      simd::store(lane.data(), simd::load_n<A>(from.data(), n, fill));
      for (index_t i = 0; i < size; ++i)
        if (std::memcmp(&lane[i], i < n ? &from[i] : &fill, sizeof(T)) != 0) FAIL("load_n lane ", i);
      simd::store_n(to.data(), n, simd::load<A>(lane.data()));
      if (n > 0 && std::memcmp(to.data(), from.data(), static_cast<std::size_t>(n) * sizeof(T)) != 0) FAIL("store_n");
      // Lanes beyond n keep what memory held.
      std::vector<T> longer(static_cast<std::size_t>(size), static_cast<T>(7));
      simd::store_n(longer.data(), n, simd::load<A>(lane.data()));
      const T seven = static_cast<T>(7);
      for (index_t i = 0; i < size; ++i)
        if (std::memcmp(&longer[static_cast<std::size_t>(i)], i < n ? &from[i] : &seven, sizeof(T)) != 0)
          FAIL("store_n wrote lane ", i);
    }
}

template <class A, class Wide, class T, class Whole, class Part>
void widening(Whole whole, Part part, const std::string& what) {
  const index_t n = simd::lanes<A>;
  for (index_t misaligned = 0; misaligned < 5; ++misaligned)
    for (index_t k = 0; k <= n; ++k) {
      const std::vector<T> v = check::random_codes<T>(n + misaligned);
      fenced<T> x(v), shorter(std::vector<T>(v.begin(), v.begin() + k));
      std::array<Wide, static_cast<std::size_t>(simd::lanes<A>)> a, b;
      simd::store(a.data(), whole(x.data() + misaligned));
      simd::store(b.data(), part(shorter.data(), k));
      for (index_t i = 0; i < n; ++i) {
        const auto at = static_cast<std::size_t>(i);
        if (a[at] != static_cast<Wide>(x[misaligned + i])) FAIL(what, " lane ", i);
        if (b[at] != (i < k ? static_cast<Wide>(v[at]) : Wide(0))) FAIL(what, "_n of ", k, " lane ", i);
      }
    }
}

template <class A, int Entries>
void byte_table_of() {
  const std::vector<std::uint8_t> table = check::random_codes<std::uint8_t>(Entries);
  fenced<std::uint8_t> fence(table);
  const simd::byte_table<A, Entries> look_up(fence.data());
  std::array<std::uint8_t, simd::bytes<A>::size> index, got;
  for (int first = 0; first < Entries; ++first) {
    for (std::size_t i = 0; i < index.size(); ++i)
      index[i] = static_cast<std::uint8_t>((static_cast<std::size_t>(first) + 7 * i) % Entries);
    simd::store(got.data(), look_up(simd::load<A>(index.data())));
    for (std::size_t i = 0; i < index.size(); ++i)
      if (got[i] != table[index[i]]) FAIL(Entries, " entries, index ", int(index[i]));
  }
}

}  // namespace

TEST_CASE("load_n, store_n: exactly n elements of every type, both ends fenced, the rest filled or kept") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    partial_of<std::uint32_t, A>();
    partial_of<std::int32_t, A>();
    partial_of<float, A>();
    partial_of<std::uint16_t, A>();
    partial_of<std::uint8_t, A>();
  });
}

TEST_CASE("load_quarters: 16 bytes of each place, both ends fenced") {
  check::on_every_arch([](auto arch) {
    using arch_type = decltype(arch);
    constexpr index_t places = simd::lanes<arch_type> / 4;
    for (const index_t apart : {16, 17, 64, 333}) {
      const index_t n = (places - 1) * apart + 16;
      fenced<std::uint8_t> from(check::random_codes<std::uint8_t>(n));
      std::array<std::uint8_t, static_cast<std::size_t>(16 * places)> got;
      simd::store(got.data(), simd::load_quarters<arch_type>(from.data(), apart));
      for (index_t i = 0; i < 16 * places; ++i)
        if (got[static_cast<std::size_t>(i)] != from[i / 16 * apart + i % 16]) FAIL("apart ", apart, " byte ", i);
    }
  });
}

TEST_CASE("store_parts: each part to its place, nothing between them, both ends fenced") {
  check::on_every_arch([](auto arch) {
    using arch_type = decltype(arch);
    const auto codes = check::random_codes<std::uint8_t>(4 * simd::lanes<arch_type>);
    const auto parts_of = [&]<index_t Parts>() {
      constexpr index_t part = 4 * simd::lanes<arch_type> / Parts;
      for (const index_t apart : {part, part + 1, index_t{333}})
        for (const bool at_start : {false, true}) {
          const index_t n = (Parts - 1) * apart + part;
          fenced<std::uint8_t> to(n, at_start);
          std::fill_n(to.data(), n, std::uint8_t{0xa5});
          simd::store_parts<Parts>(to.data(), apart, simd::load<arch_type>(codes.data()));
          for (index_t i = 0; i < n; ++i) {
            const bool is_between = i % apart >= part;
            if (to[i] != (is_between ? 0xa5 : codes[static_cast<std::size_t>(i / apart * part + i % apart)]))
              FAIL(Parts, " parts, apart ", apart, " byte ", i);
          }
        }
    };
    parts_of.template operator()<2>();
    parts_of.template operator()<4>();
  });
}

TEST_CASE("widen: narrow integers to 32-bit lanes, whole and partial, misaligned") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    using u8 = std::uint8_t;
    using s8 = std::int8_t;
    using u16 = std::uint16_t;
    using s16 = std::int16_t;
    widening<A, std::uint32_t, u8>([](const u8* p) { return simd::widen_u8<A>(p); },
                                   [](const u8* p, index_t n) { return simd::widen_u8_n<A>(p, n); }, "widen_u8");
    widening<A, std::int32_t, s8>([](const s8* p) { return simd::widen_i8<A>(p); },
                                  [](const s8* p, index_t n) { return simd::widen_i8_n<A>(p, n); }, "widen_i8");
    widening<A, std::uint32_t, u16>([](const u16* p) { return simd::widen_u16<A>(p); },
                                    [](const u16* p, index_t n) { return simd::widen_u16_n<A>(p, n); }, "widen_u16");
    widening<A, std::int32_t, s16>([](const s16* p) { return simd::widen_i16<A>(p); },
                                   [](const s16* p, index_t n) { return simd::widen_i16_n<A>(p, n); }, "widen_i16");
  });
}

TEST_CASE("from_bf16, from_f16: all 65536 codes, whole and partial batches") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    const index_t n = simd::lanes<A>;
    std::array<float, static_cast<std::size_t>(simd::lanes<A>)> whole, part;
    std::vector<std::uint16_t> codes(65536);
    for (std::uint32_t c = 0; c < 65536; ++c) codes[c] = static_cast<std::uint16_t>(c);
    for (index_t c = 0; c < 65536; c += n) {
      const std::uint16_t* p = codes.data() + c;
      const index_t k = c / n % (n + 1);
      simd::store(whole.data(), simd::from_f16::load<A>(p));
      simd::store(part.data(), simd::from_f16::load_n<A>(p, k));
      for (index_t i = 0; i < n; ++i) {
        const std::uint32_t want = bits_of(f16_value(p[i]));
        if (bits_of(whole[static_cast<std::size_t>(i)]) != want) FAIL("f16 ", p[i]);
        if (bits_of(part[static_cast<std::size_t>(i)]) != (i < k ? want : 0)) FAIL("f16 partial ", p[i]);
      }
      simd::store(whole.data(), simd::from_bf16::load<A>(p));
      simd::store(part.data(), simd::from_bf16::load_n<A>(p, k));
      for (index_t i = 0; i < n; ++i) {
        const std::uint32_t want = std::uint32_t{p[i]} << 16;
        if (bits_of(whole[static_cast<std::size_t>(i)]) != want) FAIL("bf16 ", p[i]);
        if (bits_of(part[static_cast<std::size_t>(i)]) != (i < k ? want : 0)) FAIL("bf16 partial ", p[i]);
      }
    }
  });
}

TEST_CASE("narrow_f16, narrow_bf16: every value, every midpoint and its neighbours, hard floats") {
  std::vector<float> inputs;
  for (std::uint32_t c = 0; c < 65536; ++c) {
    inputs.push_back(f16_value(c));
    const float next = f16_value((c + 1) & 0xffff), middle = 0.5f * inputs.back() + 0.5f * next;
    for (int d = -1; d <= 1; ++d) inputs.push_back(float_of(bits_of(middle) + static_cast<std::uint32_t>(d)));
    for (const std::uint32_t low : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      inputs.push_back(float_of(c << 16 | low));
  }
  for (const float x : {65504.0f, 65519.996f, 65520.0f, 65536.0f, 1e30f}) inputs.push_back(x), inputs.push_back(-x);
  for (int k = 0; k < 200000; ++k) inputs.push_back(check::hard_float());
  while (inputs.size() % 32 != 0) inputs.push_back(0);
  check::on_every_arch([&](auto arch) {
    using A = decltype(arch);
    constexpr std::size_t n = simd::halves<A>::size;
    std::array<std::uint16_t, n> f16, bf16, plain;
    [[maybe_unused]] std::array<std::uint16_t, n> tied, untied;
    for (std::size_t at = 0; at < inputs.size(); at += n) {
      const auto a = simd::load<A>(inputs.data() + at), b = simd::load<A>(inputs.data() + at + n / 2);
      simd::store(f16.data(), simd::narrow_f16(a, b));
      simd::store(bf16.data(), simd::narrow_bf16(a, b));
      simd::store(plain.data(), simd::narrow_bf16_plain(a, b));
      std::array<float, n / 2> through_f16, through_bf16, through_plain;
      simd::store(through_f16.data(), simd::rounded_to_f16(a));
      simd::store(through_bf16.data(), simd::rounded_to_bf16(a));
      simd::store(through_plain.data(), simd::rounded_to_bf16_plain(a));
      for (std::size_t i = 0; i < n / 2; ++i) {
        if (bits_of(through_f16[i]) != bits_of(f16_value(f16[i]))) FAIL("f16 as a float, of ", bits_of(inputs[at + i]));
        if (bits_of(through_bf16[i]) != std::uint32_t{bf16[i]} << 16)
          FAIL("bf16 as a float, of ", bits_of(inputs[at + i]));
        const bool is_plain =
            inputs[at + i] == inputs[at + i] || (bits_of(inputs[at + i]) & 0x0040ffffu) == 0x00400000u;
        if (is_plain && bits_of(through_plain[i]) != bits_of(through_bf16[i]))
          FAIL("bf16 of a plain number as a float, of ", bits_of(inputs[at + i]));
      }
      for (std::size_t i = 0; i < n; ++i) {
        const float x = inputs[at + i];
        if (f16[i] != nearest16(x, 10, -14, 15)) FAIL("f16 of ", bits_of(x), ": ", f16[i]);
        if (bf16[i] != nearest16(x, 7, -126, 127)) FAIL("bf16 of ", bits_of(x), ": ", bf16[i]);
        const bool is_plain = simd::plain_is_normal<A> ? x == 0.f || !(std::abs(x) < 0x1p-126f)
                                                       : x == x || (bits_of(x) & 0x007fffffu) == 0x00400000u;
        if (is_plain && plain[i] != bf16[i]) FAIL("bf16 of a plain number, ", bits_of(x), ": ", plain[i]);
        if constexpr (simd::pairing_arch<A>) {
          std::array<float, n / 2> even, odd;
          for (std::size_t k = 0; k < n / 2; ++k) even[k] = inputs[at + 2 * k], odd[k] = inputs[at + 2 * k + 1];
          const auto e = simd::load<A>(even.data()), o = simd::load<A>(odd.data());
          simd::store(tied.data(), simd::narrow_bf16_pairs<false>(e, o));
          simd::store(untied.data(), simd::narrow_bf16_pairs<true>(e, o));
          if (is_plain && tied[i] != bf16[i]) FAIL("bf16 by pairs of ", bits_of(x), ": ", tied[i]);
          if (is_plain && (bits_of(x) & 0xffffu) != 0x8000u && untied[i] != bf16[i])
            FAIL("bf16 by pairs, no tie, of ", bits_of(x), ": ", untied[i]);
        }
      }
    }
  });
}

TEST_CASE("widen_pairs: the even and the odd ones of bytes, with their signs or without") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    if constexpr (simd::pairing_arch<A>) {
      constexpr index_t n = 2 * simd::lanes<A>;
      for (int first = 0; first < 256; ++first) {
        check::fenced<std::uint8_t> from(n);
        for (index_t i = 0; i < n; ++i) from[i] = static_cast<std::uint8_t>(first + i * 29);
        const auto check_pairs = [&]<bool Signed>(std::bool_constant<Signed>) {
          const auto pairs = simd::widen_pairs<Signed, A>(from.data());
          for (index_t i = 0; i < n; ++i) {
            std::array<std::int32_t, static_cast<std::size_t>(n / 2)> lane;
            simd::store(lane.data(), pairs[static_cast<std::size_t>(i % 2)]);
            const std::int32_t want = Signed ? static_cast<std::int8_t>(from[i]) : std::int32_t{from[i]};
            if (lane[static_cast<std::size_t>(i / 2)] != want) FAIL("byte ", i, " of ", first);
          }
        };
        check_pairs(std::true_type{});
        check_pairs(std::false_type{});
      }
    }
  });
}

TEST_CASE("narrow_i8, narrow_u8 saturate, low_bytes and low_halves cut; all in order") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    constexpr index_t n = simd::lanes<A>;
    const std::int32_t limits[] = {0,     1,    -1,  127,  128,   -128,   -129,       255,
                                   256,   300,  999, -999, 32767, -32768, 2147483647, -2147483647 - 1,
                                   65535, 65536};
    for (int k = 0; k < 3000; ++k) {
      std::array<std::int32_t, static_cast<std::size_t>(4 * n)> x;
      for (auto& v : x) {
        const std::uint32_t r = check::random_bits()();
        v = r % 4 == 0 ? limits[(r >> 8) % std::size(limits)] : static_cast<std::int32_t>(r) >> (r % 32);
      }
      const std::int32_t* p = x.data();
      const auto a = simd::load<A>(p), b = simd::load<A>(p + n), c = simd::load<A>(p + 2 * n),
                 d = simd::load<A>(p + 3 * n);
      const auto word = [](auto v) { return simd::bits_as<std::uint32_t>(v); };
      fenced<std::uint8_t> i8(4 * n), u8(4 * n), low(4 * n);
      fenced<std::uint16_t> half(2 * n);
      simd::store(i8.data(), simd::narrow_i8(a, b, c, d));
      simd::store(u8.data(), simd::narrow_u8(a, b, c, d));
      simd::store(low.data(), simd::low_bytes(word(a), word(b), word(c), word(d)));
      simd::store(half.data(), simd::low_halves(word(a), word(b)));
      for (index_t i = 0; i < 4 * n; ++i) {
        if (i8[i] != static_cast<std::uint8_t>(std::clamp(p[i], -128, 127))) FAIL("narrow_i8 ", p[i], " at ", i);
        if (u8[i] != std::clamp(p[i], 0, 255)) FAIL("narrow_u8 ", p[i], " at ", i);
        if (low[i] != static_cast<std::uint8_t>(p[i])) FAIL("low_bytes ", p[i], " at ", i);
        if (i < 2 * n && half[i] != static_cast<std::uint16_t>(p[i])) FAIL("low_halves ", p[i], " at ", i);
      }
    }
  });
}

TEST_CASE("float_table16 uses 4 bits of each word; lookup reaches 256 entries; byte_table 16 to 256") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    constexpr auto n = static_cast<std::size_t>(simd::lanes<A>);
    fenced<float> table(256);
    for (index_t i = 0; i < 256; ++i) table[i] = check::hard_float();
    std::array<std::uint32_t, n> index, small, large;
    const simd::float_table16<A> look_up(table.data() + 240);
    for (int k = 0; k < 1000; ++k) {
      for (auto& i : index) i = check::random_bits()();
      const auto v = simd::load<A>(index.data());
      simd::store(small.data(), simd::bits_as<std::uint32_t>(look_up(v)));
      simd::store(large.data(), simd::bits_as<std::uint32_t>(simd::lookup(table.data(), v & simd::words<A>(255u))));
      for (std::size_t i = 0; i < n; ++i) {
        if (small[i] != bits_of(table[240 + (index[i] & 15)])) FAIL("float_table16 ", index[i]);
        if (large[i] != bits_of(table[index[i] & 255])) FAIL("lookup ", index[i]);
      }
    }
    byte_table_of<A, 16>();
    const std::vector<std::uint8_t> ones(16, 1);
    std::array<std::uint8_t, 4 * n> none;
    simd::store(none.data(), simd::byte_table<A, 16>(ones.data())(simd::bytes<A>(std::uint8_t{0x83})));
    CHECK(none == std::array<std::uint8_t, 4 * n>{});  // 128 and more: 0
    byte_table_of<A, 32>();
    byte_table_of<A, 64>();
    byte_table_of<A, 128>();
    byte_table_of<A, 256>();
  });
}

TEST_CASE("half_table16, nibbles_for_tables: numbers of packed codes, in order, where there are instructions for it") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    if constexpr (simd::has_half_tables<A>) {
      constexpr auto n = static_cast<std::size_t>(2 * simd::lanes<A>);
      static_assert(n == 16);
      for (int k = 0; k < 100; ++k) {
        std::array<std::uint16_t, n> table, got;
        for (auto& v : table) v = static_cast<std::uint16_t>(check::random_bits()());
        fenced<std::uint8_t> codes(check::random_codes<std::uint8_t>(n));
        const simd::half_table16<A> look_up(simd::load<A>(table.data()));
        const auto each = simd::nibbles_for_tables<A>(codes.data());
        for (std::size_t half = 0; half < 2; ++half) {
          simd::store(got.data(), look_up(each[half]));
          for (std::size_t i = 0; i < n; ++i) {
            const std::size_t at = half * n + i;
            REQUIRE(got[i] == table[codes[static_cast<index_t>(at / 2)] >> at % 2 * 4 & 15]);
          }
        }
      }
    }
  });
}

TEST_CASE("floats_from_planes, halves_from_planes: in order after order_for_floats, order_for_halves") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    constexpr auto n = static_cast<std::size_t>(4 * simd::lanes<A>);
    for (int k = 0; k < 100; ++k) {
      const auto high = check::random_codes<std::uint8_t>(n), low = check::random_codes<std::uint8_t>(n);
      const auto h = simd::load<A>(high.data()), l = simd::load<A>(low.data());
      std::array<float, n> f;
      const auto floats = simd::floats_from_planes(simd::order_for_floats(h), simd::order_for_floats(l));
      for (std::size_t q = 0; q < 4; ++q) simd::store(f.data() + q * n / 4, floats[q]);
      std::array<std::uint16_t, n> u;
      const auto halves = simd::halves_from_planes(simd::order_for_halves(h), simd::order_for_halves(l));
      for (std::size_t q = 0; q < 2; ++q) simd::store(u.data() + q * n / 2, halves[q]);
      for (std::size_t i = 0; i < n; ++i) {
        const std::uint32_t want = std::uint32_t{high[i]} << 8 | low[i];
        if (bits_of(f[i]) != want << 16 || u[i] != want) FAIL("element ", i);
      }
    }
  });
}

TEST_CASE("split_bf16: every number once, codes of the floats in order after interleave_pairs") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    constexpr auto n = static_cast<std::size_t>(4 * simd::lanes<A>);
    for (int k = 0; k < 100; ++k) {
      std::array<std::uint16_t, n> numbers;
      for (std::size_t i = 0; i < n; ++i)  // signed bytes as bf16
        numbers[i] =
            static_cast<std::uint16_t>(bits_of(static_cast<float>(static_cast<int>((i * 7 + k) % 256) - 128)) >> 16);
      simd::floats<A> a, b, c, d;
      simd::split_bf16(simd::load<A>(numbers.data()), a, b);
      simd::split_bf16(simd::load<A>(numbers.data() + n / 2), c, d);
      std::array<simd::floats<A>, 4> four;
      simd::from_bf16::load_four<A>(numbers.data(), four);
      const auto code = [](const auto& x) { return simd::round_to_int(x); };
      const auto codes = simd::narrow_i8(code(a), code(b), code(c), code(d));
      const auto again = simd::narrow_i8(code(four[0]), code(four[1]), code(four[2]), code(four[3]));
      std::array<std::uint8_t, n> got, got_again;
      simd::store(got.data(), simd::interleave_pairs(codes));
      simd::store(got_again.data(), simd::from_bf16::in_order<A>(again));
      for (std::size_t i = 0; i < n; ++i)
        if (got[i] != static_cast<std::uint8_t>((i * 7 + k) % 256 - 128)) FAIL("element ", i);
      CHECK(got == got_again);
    }
  });
}

TEST_CASE("load_four: the numbers of load, whatever the order") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    constexpr auto n = static_cast<std::size_t>(4 * simd::lanes<A>);
    const auto compare = []<class Source>(Source) {
      std::array<typename Source::type, n> x;
      for (auto& v : x) v = static_cast<typename Source::type>(check::random_below(0x7000));
      std::array<simd::floats<A>, 4> four;
      Source::template load_four<A>(x.data(), four);
      std::array<float, n> got, want;
      for (std::size_t k = 0; k < 4; ++k) {
        simd::store(got.data() + k * n / 4, four[k]);
        simd::store(want.data() + k * n / 4, Source::template load<A>(x.data() + k * n / 4));
      }
      std::sort(got.begin(), got.end());
      std::sort(want.begin(), want.end());
      CHECK(got == want);
    };
    compare(simd::from_f32{});
    compare(simd::from_bf16{});
    compare(simd::from_f16{});
  });
}

TEST_CASE("join_nibbles and put_nibbles ignore upper bits; split_nibbles is their inverse") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    constexpr auto n = static_cast<std::size_t>(4 * simd::lanes<A>);
    for (int k = 0; k < 100; ++k) {
      const auto codes = check::random_codes<std::uint8_t>(2 * n);
      std::array<std::uint8_t, n> packed;
      const auto joined = simd::join_nibbles(simd::load<A>(codes.data()), simd::load<A>(codes.data() + n));
      simd::store(packed.data(), joined);
      for (std::size_t i = 0; i < n; ++i)
        if (packed[i] != ((codes[2 * i] & 15) | (codes[2 * i + 1] & 15) << 4)) FAIL("byte ", i);
      for (const bool past_caches : {false, true}) {
        check::fenced<std::uint8_t> one(static_cast<index_t>(n / 2), past_caches);
        simd::put_nibbles<A>(one.data(), simd::load<A>(codes.data()), past_caches);
        simd::stream_fence<A>();
        for (std::size_t i = 0; i < n / 2; ++i)
          if (one.data()[i] != packed[i]) FAIL("byte ", i, " of one batch");
      }
      std::array<std::uint8_t, 2 * n> back;
      const auto both = simd::split_nibbles(joined);
      simd::store(back.data(), both[0]);
      simd::store(back.data() + n, both[1]);
      for (std::size_t i = 0; i < 2 * n; ++i)
        if (back[i] != (codes[i] & 15)) FAIL("code ", i);
    }
  });
}

TEST_CASE("join_halves: codes that lie 8 or 16 apart share a byte, upper bits are ignored") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    constexpr auto n = static_cast<std::size_t>(4 * simd::lanes<A>);
    const auto check_half = []<int Half>(std::integral_constant<int, Half>) {
      const auto codes = check::random_codes<std::uint8_t>(2 * n);
      std::array<std::uint8_t, n> joined;
      simd::store(joined.data(), simd::join_halves<Half>(simd::load<A>(codes.data()), simd::load<A>(codes.data() + n)));
      for (std::size_t i = 0; i < n; ++i) {
        const std::size_t low = i / Half * 2 * Half + i % Half;
        if (joined[i] != ((codes[low] & 15) | (codes[low + Half] & 15) << 4)) FAIL("byte ", i, " of ", Half);
      }
    };
    for (int k = 0; k < 100; ++k) {
      check_half(std::integral_constant<int, 8>());
      check_half(std::integral_constant<int, 16>());
    }
  });
}

TEST_CASE("stream and put store what store does; prefetch takes any address") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    alignas(64) std::array<std::uint32_t, 16> words{};
    alignas(64) std::array<float, 16> floats{};
    alignas(64) std::array<std::uint8_t, 64> bytes{}, past{}, through{};
    simd::put(past.data(), simd::bytes<A>(std::uint8_t{9}), true);
    simd::put(through.data(), simd::bytes<A>(std::uint8_t{9}), false);
    simd::stream(words.data(), simd::words<A>(0x12345678u));
    simd::stream(floats.data(), simd::floats<A>(1.5f));
    simd::stream(bytes.data(), simd::bytes<A>(std::uint8_t{9}));
    simd::stream_fence<A>();
    simd::prefetch(nullptr);
    simd::prefetch_second_level(nullptr);
    const auto n = static_cast<std::size_t>(simd::lanes<A>);
    for (std::size_t i = 0; i < 16; ++i) {
      CHECK(words[i] == (i < n ? 0x12345678u : 0u));
      CHECK(floats[i] == (i < n ? 1.5f : 0.0f));
    }
    for (std::size_t i = 0; i < 64; ++i) CHECK(bytes[i] == (i < 4 * n ? 9 : 0));
    CHECK(past == bytes);
    CHECK(through == bytes);
  });
}
