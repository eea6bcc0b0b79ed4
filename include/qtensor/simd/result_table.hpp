// A run of codes under one scale as bf16 or f16: the result of every code is found once, then looked up by bytes.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <qtensor/simd/decode.hpp>
#include <qtensor/simd/memory.hpp>
#include <qtensor/simd/nibbles.hpp>

namespace qtensor::inline QTENSOR_ABI::simd {

/// Formats of codes for which look-ups are cheap: up to 6 bits everywhere, 8 bits where tables of 128 bytes are.
template <class Code, class A>
concept result_tabulated = vector_decodable_format<Code> && usable_arch<A> &&
    (Code::bits < 8 || detail::has_long_tables<A>);

/// The 16-bit results of all codes of a format. Cost: 64 codes 8 to 15 instructions with AVX-512, whatever the results
/// are made of.
template <class Code, usable_arch A>
requires result_tabulated<Code, A>
class result_table {
 public:
  static constexpr index_t codes = index_t{1} << Code::bits;
  /// From this length on a run pays for making the table.
  static constexpr index_t shortest_run = 16 * codes;

  /// results[c] is what code c becomes.
  explicit result_table(const std::uint16_t* results) {
    for (index_t c = 0; c < entries; ++c) {
      high_[static_cast<std::size_t>(c)] = static_cast<std::uint8_t>(results[c % codes] >> 8);
      low_[static_cast<std::size_t>(c)] = static_cast<std::uint8_t>(results[c % codes] & 0xffu);
    }
    if constexpr (may_mirror) {
      for (index_t c = 0; c < codes / 2; ++c) mirrored_ = mirrored_ && (results[c] ^ 0x8000u) == results[c + codes / 2];
    }
  }

  /// out[i] = the result of code i. Reads the bytes of n codes, which start on a byte.
  void operator()(const std::uint8_t* from, index_t n, std::uint16_t* out, traffic t = {}) const {
    rows(from, 0, 1, n, out, 0, t);
  }
  /// The same for some rows of n codes, from_step bytes and out_step numbers apart.
  void rows(const std::uint8_t* from, index_t from_step, index_t rows, index_t n, std::uint16_t* out, index_t out_step,
            traffic t = {}) const {
    t.streams = t.streams && begins_line(out, out_step);
    if constexpr (may_mirror)
      if (mirrored_) return runs<magnitudes>(from, from_step, rows, n, out, out_step, t);
    runs<all_codes>(from, from_step, rows, n, out, out_step, t);
  }

 private:
  static constexpr int entries = std::max(1 << Code::bits, 16);
  // The upper bit is a sign: half the table will do, as long as nothing was added.
  static constexpr bool may_mirror = [] {
    if constexpr (Code::bits == 8)
      return detail::is_mirrored<Code>;
    else
      return false;
  }();

  struct planes {
    bytes<A> high, low;
  };
  struct all_codes {
    simd::byte_table<A, entries> high, low;
    all_codes(const std::uint8_t* h, const std::uint8_t* l) : high(h), low(l) {}
    QTENSOR_INLINE planes operator()(const bytes<A>& c) const { return {high(c), low(c)}; }
  };
  struct magnitudes {
    simd::byte_table<A, 128> high, low;
    magnitudes(const std::uint8_t* h, const std::uint8_t* l) : high(h), low(l) {}
    QTENSOR_INLINE planes operator()(const bytes<A>& c) const {
      const bytes<A> sign(std::uint8_t{0x80}), m = c & ~sign;
      return {high(m) ^ (c & sign), low(m)};
    }
  };

  template <class Table>
  void runs(const std::uint8_t* from, index_t from_step, index_t rows, index_t n, std::uint16_t* out, index_t out_step,
            traffic t) const {
    const Table table(high_.data(), low_.data());
    for (index_t r = 0; r < rows; ++r) run(table, from + r * from_step, n, out + r * out_step, t);
  }
  template <class Table>
  QTENSOR_INLINE static void run(const Table& table, const std::uint8_t* from, index_t n, std::uint16_t* out,
                                 traffic t) {
    constexpr index_t step = 4 * lanes<A>, step_bytes = step * Code::bits / 8;
    const auto results = [&](const std::uint8_t* codes) QTENSOR_INLINE_LAMBDA {
      const planes p = table(simd::order_for_halves(codes_of<Code, A>{codes}.batch()));
      return simd::halves_from_planes(p.high, p.low);
    };
    const index_t whole = n / step * step, rest = n - whole;
    for (index_t i = 0; i < whole; i += step, from += step_bytes) {
      fetch_ahead<step_bytes>(from, t);
      const std::array<halves<A>, 2> v = results(from);
      simd::put(out + i, v[0], t.streams);
      simd::put(out + i + step / 2, v[1], t.streams);
    }
    if (rest == 0) return;
    alignas(64) std::uint8_t last[static_cast<std::size_t>(step_bytes)] = {};
    std::copy_n(from, packed_bytes<Code::bits>(rest), last);
    const std::array<halves<A>, 2> v = results(last);
    const index_t half = std::min(rest, step / 2);
    simd::store_n(out + whole, half, v[0]);
    simd::store_n(out + whole + half, rest - half, v[1]);
  }

  bool mirrored_ = may_mirror;
  alignas(64) std::array<std::uint8_t, entries> high_, low_;
};

}  // namespace qtensor::inline QTENSOR_ABI::simd
