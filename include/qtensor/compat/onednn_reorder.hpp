// oneDNN's reorder as a conversion: run-time types, masks and groups on both sides (NUMERICS 5.1, 5.2, 5.6).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/compat/onednn_attributes.hpp>
#include <qtensor/compat/onednn_elements.hpp>
#include <qtensor/core/executor.hpp>
#include <qtensor/simd/entry_pattern.hpp>
#include <qtensor/simd/random.hpp>
#include <qtensor/simd/statistics.hpp>

namespace qtensor::compat::onednn {

inline namespace QTENSOR_ABI {
namespace pieces {

// ---- The conversion ------------------------------------------------------------------------------------------------

/// A parameter and which of its entries belong to the elements of a dense tensor; the pattern of an empty one is none.
struct spread_parameter : detail::parameter_map {
  simd::entry_pattern pattern = {};

  spread_parameter(const detail::parameter_map& p, std::span<const index_t> dims) : parameter_map(p) {
    if (!p.given() || element_count(dims) == 0) return;
    for (std::size_t d = 0; d < dims.size(); ++d) pattern.append(dims[d], step[d] == 0 ? dims[d] : run[d]);
  }
};

/// A call that was found valid.
struct job {
  data_type from, to;
  const void* src;
  void* dst;
  index_t count;
  spread_parameter src_scale, src_zero, dst_scale, dst_zero;
  const attributes& how;

  bool plain() const {
    return how.beta == 0.f && !src_scale.given() && !src_zero.given() && !dst_scale.given() && !dst_zero.given();
  }
};

/// A parameter for the elements of a tile: one number, or one an element.
template <class T>
struct column {
  bool one = true;
  index_t until = 0;                                                          // the one number serves elements so far
  alignas(64) T numbers[static_cast<std::size_t>(most + simd::lanes<arch>)];  // and room for a batch behind

  /// For elements [at, at + n) of the tensor, behind those of the last tile.
  void read(const spread_parameter& p, index_t at, index_t n) {
    if (at + n <= until) return;
    const auto read = [&](index_t first, index_t count, T* list) {
      if constexpr (std::is_same_v<T, float>)
        load(p.type, p.data, first, count, list);
      else
        for (index_t i = 0; i < count; ++i) list[i] = static_cast<T>(integer_at(p.type, p.data, first + i));
    };
    const auto found = p.pattern.find(at);
    one = found.alike >= n, until = one ? at + std::min(found.alike, std::numeric_limits<index_t>::max() - at) : 0;
    one ? read(found.entry, 1, numbers) : p.pattern.spread(found, at, n, numbers, read);
  }
  T operator[](index_t i) const { return numbers[one ? 0 : i]; }
  operator std::span<const T>() const { return {numbers, static_cast<std::size_t>(one ? 1 : most)}; }
};

// a / b, of floats and of batches.
inline float over(float a, float b) { return a / b; }
inline simd::floats<arch> over(const simd::floats<arch>& a, const simd::floats<arch>& b) {
  return simd::div<arch>(a, b);
}

/// y, but x, made quiet, where that is a NaN: of two NaNs CPUs and compilers take either.
inline float unless_nan(float x, float y) { return is_nan(x) ? quieted(x) : y; }
inline simd::floats<arch> unless_nan(const simd::floats<arch>& x, const simd::floats<arch>& y) {
  const auto quiet = simd::bits_as<std::uint32_t>(x) | simd::words<arch>(quiet_bit);
  return simd::select(x == x, y, simd::bits_as<float>(quiet));
}

/// d[i] = step(d[i], numbers[i]), for batches and for floats; a single number is that of all. A NaN stays what it is.
template <class Step>
void apply(float* d, index_t n, std::span<const float> numbers, Step step) {
  constexpr index_t lanes = simd::lanes<arch>;
  using floats = simd::floats<arch>;
  const bool one = numbers.size() == 1;
  index_t i = 0;
  if (one && !is_nan(numbers[0])) {
    const floats v(numbers[0]);
    for (; i + lanes <= n; i += lanes) simd::store(d + i, floats(step(simd::load<arch>(d + i), v)));
  } else {
    for (; i + lanes <= n; i += lanes) {
      const floats x = simd::load<arch>(d + i), v = one ? floats(numbers[0]) : simd::load<arch>(numbers.data() + i);
      simd::store(d + i, unless_nan(x, floats(step(x, v))));
    }
  }
  for (; i < n; ++i) d[i] = unless_nan(d[i], step(d[i], numbers[one ? 0 : static_cast<std::size_t>(i)]));
  settle(d);
}

inline bool is_stochastic(const attributes& how) { return how.rounding != rounding_mode::nearest_even; }

/// Rounds numbers to a type as `stochastic` does, so that nothing is left to round; elements [at, at + n) of the
/// destination. What lies beyond the type's range is left to the steps around it.
inline void round_at_random(const job& j, float* d, index_t n, index_t at) {
  alignas(64) std::uint32_t words[static_cast<std::size_t>(most + 2 * simd::lanes<arch>)];
  simd::random_words<arch>(static_cast<std::uint64_t>(at) + j.how.offset, 1, n, static_cast<std::uint32_t>(j.how.seed),
                           words);
  with_format(j.to, [&]<format F>(std::type_identity<F>) {
    if constexpr (simd::stepwise_format<F>) {
      for (index_t i = 0; i < n; i += simd::lanes<arch>)
        simd::store(d + i, simd::round_at_random<F>(simd::load<arch>(d + i), simd::load<arch>(words + i)));
    } else if constexpr (!std::is_same_v<F, f32>) {
      for (index_t i = 0; i < n; ++i)
        if (!is_nan(d[i])) d[i] = decode<F>(encode<F, stochastic<>, to_special>(d[i], words[i]));
    }
  });
}

/// rounding_bias of every element of a tile, for destinations of a type F.
template <format F>
class bias_tile {
  static constexpr index_t lanes = simd::lanes<arch>;
  static constexpr index_t shares = F::bits == 16 ? 4 : 2;  // biases a word has
  using words = simd::words<arch>;
  using state = simd::detail::philox_state<arch>;

 public:
  /// Those of n <= most indices from `first` on, which do not pass 2^32. Cost: one Philox a block, of two batches.
  bias_tile(std::uint32_t first, index_t n, std::uint32_t seed, generator from) {
    const bool all = from == generator::source_2025_03;
    const std::uint32_t block = first / static_cast<std::uint32_t>(shares) & ~3u;
    skipped_ = static_cast<index_t>(first) - static_cast<index_t>(block) * shares;
    alignas(64) std::uint32_t counting[static_cast<std::size_t>(lanes)];
    for (index_t i = 0; i < lanes; ++i) counting[i] = block + 4 * static_cast<std::uint32_t>(i);
    const words batch(4u * static_cast<std::uint32_t>(lanes)), one(1u), two(all ? 2u : 0u), three(3u);
    words x = simd::load<arch>(counting);
    for (index_t w = 0; w * shares < skipped_ + n; w += 8 * lanes, x += batch) {
      state a{x, x + one, x + two, x + three};
      x += batch;
      state b{x, x + one, x + two, x + three};
      simd::detail::make_words(a, b, seed);
      keep(a, all, drawn_ + w);
      keep(b, all, drawn_ + w + 4 * lanes);
    }
  }
  /// Of a batch of indices from index i of the tile on.
  words at(index_t i) const {
    // The first index has a word's lowest bits.
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(drawn_);
    if constexpr (shares == 4)
      return simd::widen_u8<arch>(bytes + skipped_ + i);
    else
      return simd::widen_u16<arch>(reinterpret_cast<const std::uint16_t*>(bytes) + skipped_ + i);
  }

 private:
  /// The four words of each lane's block, which are all of them or one of them.
  static void keep(const state& drawn, bool all, std::uint32_t* to) {
    alignas(64) std::uint32_t of[4][static_cast<std::size_t>(lanes)];
    simd::store(of[0], all ? drawn.c0 : drawn.c2);
    simd::store(of[1], all ? drawn.c1 : drawn.c2);
    simd::store(of[2], drawn.c2);
    simd::store(of[3], all ? drawn.c3 : drawn.c2);
    for (index_t i = 0; i < lanes; ++i)
      for (int k = 0; k < 4; ++k) to[4 * i + k] = of[k][i];
  }

  index_t skipped_;
  alignas(64) std::uint32_t drawn_[static_cast<std::size_t>(most / shares + 4 + 9 * lanes)];  // and what is beside it
};

/// stochastically_rounded of a batch.
template <format F>
QTENSOR_INLINE simd::floats<arch> round_by_biases(const simd::floats<arch>& x, const simd::words<arch>& bias) {
  using floats = simd::floats<arch>;
  using words = simd::words<arch>;
  const words cut(low_bits(23 - F::mantissa_bits)), magnitude(magnitude_bits);
  const words bits = (simd::bits_as<std::uint32_t>(x) + (bias & cut)) & ~cut;
  const floats r = simd::bits_as<float>(bits), size = simd::bits_as<float>(bits & magnitude);
  const floats kept = simd::select(size < floats(F::decode(1u << F::mantissa_bits)), floats(0.f), r);
  const floats inside = simd::min(simd::max(kept, floats(F::min)), floats(F::max));
  return simd::select(x == x, inside, x);
}

/// Rounds numbers to a float type at random, likewise.
inline void round_floats_at_random(const job& j, float* d, index_t n, index_t at) {
  if (j.how.rounding == rounding_mode::stochastic) return round_at_random(j, d, n, at);
  const auto seed = static_cast<std::uint32_t>(j.how.seed);
  const generator from =
      j.how.rounding == rounding_mode::stochastic_onednn ? generator::current : generator::source_2025_03;
  const auto index = [&](index_t i) {
    return static_cast<std::uint32_t>(static_cast<std::uint64_t>(at + i) + j.how.offset);
  };
  const auto by = [&]<format F>(std::type_identity<F>) {
    if (index(n - 1) < index(0)) {  // a tile that passes 2^32
      for (index_t i = 0; i < n; ++i)
        d[i] = stochastically_rounded<F>(d[i], rounding_bias(index(i), seed, F::bits, from));
      return;
    }
    const bias_tile<F> bias(index(0), n, seed, from);
    for (index_t i = 0; i < n; i += simd::lanes<arch>)
      simd::store(d + i, round_by_biases<F>(simd::load<arch>(d + i), bias.at(i)));
  };
  if (j.to == data_type::bf16) by(std::type_identity<bf16>{});
  if (j.to == data_type::f16) by(std::type_identity<f16>{});
  if (j.to == data_type::f8_e4m3) by(std::type_identity<e4m3>{});
  if (j.to == data_type::f8_e5m2) by(std::type_identity<e5m2>{});
}

/// The last steps of a tile into a float type: elements [at, at + n) of the destination.
inline void finish_floats(const job& j, float* d, index_t n, index_t at, const column<float>& zero) {
  if (j.dst_zero.given()) apply(d, n, zero, [](auto x, auto z) { return x + z; });
  if (j.how.zero_sign == zero_sign::positive)
    for (index_t i = 0; i < n; ++i) d[i] += 0.f;
  if (j.to == data_type::bf16 && j.how.bf16_subnormals == bf16_subnormals::flushed)
    for (index_t i = 0; i < n; ++i)
      if (magnitude(d[i]) < std::numeric_limits<float>::min()) d[i] = is_negative(d[i]) ? -0.f : 0.f;
  if (j.how.float_overflow == float_overflow::saturate) {
    float top = 0.f;
    with_format(j.to, [&]<format F>(std::type_identity<F>) { top = static_cast<float>(F::max); });
    for (index_t i = 0; i < n; ++i) d[i] = d[i] > top ? top : d[i] < -top ? -top : d[i];
  }
  const bool fp8 = j.to == data_type::f8_e4m3 || j.to == data_type::f8_e5m2;
  if (is_stochastic(j.how)) {
    round_floats_at_random(j, d, n, at);
  } else if (fp8 && j.how.fp8_path == fp8_path::via_f16) {
    alignas(64) std::uint16_t halves[static_cast<std::size_t>(most)];
    narrow(data_type::f16, d, n, halves);
    simd::widen_floats<f16>(halves, n, d);
  }
  store(j.to, d, n, j.dst, at);
}

/// What stands for a NaN into an integer type before its zero point is added.
inline float instead_of_nan(const job& j, float zero) {
  if (j.how.nan_to_integer == nan_to_integer::zero_point) return 0.f;
  if (j.how.nan_to_integer == nan_to_integer::zero) return -zero;
  return range_of(j.to).low < 0 ? -infinity : infinity;
}

/// The last steps of a tile into an integer type whose zero points are added to rounded numbers.
inline void finish_shifted(const job& j, float* d, index_t n, index_t at, const column<std::int32_t>& zero) {
  if (is_stochastic(j.how)) round_at_random(j, d, n, at);
  // Numbers and zero points within 2^30 make sums of 32 bits, which `store` saturates as floats.
  constexpr std::uint32_t near = 1u << 30;
  std::uint32_t beyond = 0;  // its sign
  for (index_t i = 0; i < (zero.one ? 1 : n); ++i) beyond |= static_cast<std::uint32_t>(zero.numbers[i]) + near;
  if (beyond >= 2 * near || simd::amax_bits<arch>(d, n) >= bits_of(static_cast<float>(near))) {
    const integer_range range = range_of(j.to);
    for (index_t i = 0; i < n; ++i) {
      const bool none = is_nan(d[i]) && j.how.nan_to_integer == nan_to_integer::zero;
      const std::int64_t q = round_to_integer<nearest_even>(is_nan(d[i]) ? instead_of_nan(j, 0.f) : d[i]);
      store_code(j.to, j.dst, at + i, j.count,
                 static_cast<std::uint32_t>(std::clamp(none ? q : q + zero[i], range.low, range.high)));
    }
    return;
  }
  using ints = simd::ints<arch>;
  alignas(64) std::int32_t sums[static_cast<std::size_t>(most)];
  for (index_t i = 0; i < n; i += simd::lanes<arch>) {
    const ints z = zero.one ? ints(zero[0]) : simd::load<arch>(zero.numbers + i);
    const ints sum = simd::round_to_int(simd::load<arch>(d + i)) + z;
    simd::store(sums + i, sum);
    simd::store(d + i, simd::to_float(sum));
  }
  if (j.to == data_type::s32)
    std::copy_n(sums, n, static_cast<std::int32_t*>(j.dst) + at);
  else
    store(j.to, d, n, j.dst, at);
}

/// The last steps of a tile into an integer type.
inline void finish_integers(const job& j, float* d, index_t n, index_t at, const column<float>& zero) {
  const integer_range range = range_of(j.to);
  const bool shifts = j.dst_zero.given();
  if (simd::amax_bits<arch>(d, n) > infinity_bits)
    for (index_t i = 0; i < n; ++i)
      if (is_nan(d[i])) d[i] = instead_of_nan(j, shifts ? zero[i] : 0.f);
  if (shifts) apply(d, n, zero, [](auto x, auto z) { return x + z; });
  if (is_stochastic(j.how)) {
    const float low = static_cast<float>(range.low), high = static_cast<float>(range.high);
    for (index_t i = 0; i < n; ++i) d[i] = d[i] < low ? low : d[i] > high ? high : d[i];
    round_at_random(j, d, n, at);
  }
  store(j.to, d, n, j.dst, at);
}

/// Room for the steps of a tile.
struct tiles {
  column<float> src_scale, src_zero, dst_scale, dst_zero;
  column<std::int32_t> integer_zero;
  alignas(64) tile d;
  alignas(64) tile old;
};

/// Elements [at, at + n) of the tensor.
inline void reorder_tile(const job& j, index_t at, index_t n, tiles& t) {
  const auto by = [&](const spread_parameter& p, column<float>& numbers, auto step) {
    if (!p.given()) return;
    numbers.read(p, at, n);
    apply(t.d, n, numbers, step);
  };
  load(j.from, j.src, at, n, t.d);
  by(j.src_zero, t.src_zero, [](auto x, auto z) { return x - z; });
  by(j.src_scale, t.src_scale, [](auto x, auto s) { return s * x; });
  if (j.how.beta != 0.f) {
    load(j.to, j.dst, at, n, t.old);
    for (index_t i = 0; i < n; ++i) t.old[i] = unless_nan(t.old[i], t.old[i] * j.how.beta);
    settle(t.old);
    for (index_t i = 0; i < n; ++i) t.d[i] = unless_nan(t.d[i], t.d[i] + t.old[i]);
    settle(t.d);
  }
  if (j.how.division == division::exact)
    by(j.dst_scale, t.dst_scale, [](auto x, auto s) { return over(x, s); });
  else
    by(j.dst_scale, t.dst_scale, [](auto x, auto s) { return x * over(decltype(s)(1.f), s); });
  if (j.dst_zero.given() && is_integer(j.to) && j.how.zero_point_order == zero_point_order::after_round) {
    t.integer_zero.read(j.dst_zero, at, n);
    return finish_shifted(j, t.d, n, at, t.integer_zero);
  }
  if (j.dst_zero.given()) t.dst_zero.read(j.dst_zero, at, n);
  (is_integer(j.to) ? finish_integers : finish_floats)(j, t.d, n, at, t.dst_zero);
}

template <executor By>
void reorder_all(const job& j, const By& by) {
  qtensor::detail::in_ranges(by, j.count, most, 1, [&](index_t first, index_t n) {
    tiles t;
    for (index_t at = first; at < first + n; at += most) reorder_tile(j, at, std::min(most, first + n - at), t);
  });
}

}  // namespace pieces

/// Converts a dense row-major tensor of any two data types into another that does not overlap it, as `attributes` says.
/// 4-bit elements lie two a byte, even ones in the low half, over the whole array. Without scales, zero points and
/// beta, integers saturate exactly, and a type into itself is a copy (except for what zero_sign and bf16_subnormals
/// say). Scales may be any numbers, 0 and NaN too: the formula runs as written, and of two
/// NaNs that of the data remains.
///
/// Throws before anything is written on: data types, parameter types and choices that have no meaning here, masks and
/// groups that do not fit (`parameter_dims`), sizes that overflow, buffers that are null or not aligned to their
/// elements, a destination that overlaps the source or a parameter, and oneDNN's stochastic modes into a type they do
/// not have. Reads the old destination only where beta is not 0. An empty tensor is valid; nothing is read or written.
/// on(executor) may come last.
template <qtensor::detail::execution_option... On>
void reorder(std::span<const index_t> dims, data_type from, const void* src, data_type to, void* dst,
             const attributes& how = {}, const On&... on) {
  const index_t count = element_count(dims);
  require(bits_of_type(from) != 0, "the source of a reorder has data type ", static_cast<int>(from),
          ", which is none of f32, bf16, f16, f8_e5m2, f8_e4m3, f4_e2m1, e8m0, s32, s8, u8, s4 and u4.");
  require(bits_of_type(to) != 0, "the destination of a reorder has data type ", static_cast<int>(to),
          ", which is none of f32, bf16, f16, f8_e5m2, f8_e4m3, f4_e2m1, e8m0, s32, s8, u8, s4 and u4.");
  check_choices(how);
  const bool biased =
      how.rounding == rounding_mode::stochastic_onednn || how.rounding == rounding_mode::stochastic_onednn_2025_03;
  require(
      !biased || to == data_type::bf16 || to == data_type::f16 || to == data_type::f8_e4m3 || to == data_type::f8_e5m2,
      "oneDNN rounds stochastically to bf16, f16, f8_e4m3 and f8_e5m2, not to ", name_of(to),
      "; rounding_mode::stochastic takes any type.");
  const auto spread = [&](std::string_view what, const parameter& p, bool is_scale) {
    return pieces::spread_parameter(detail::map_of(what, p, dims, is_scale), dims);
  };
  const pieces::job j{from,
                      to,
                      src,
                      dst,
                      count,
                      spread("the source scale", how.src_scale, true),
                      spread("the source zero point", how.src_zero_point, false),
                      spread("the destination scale", how.dst_scale, true),
                      spread("the destination zero point", how.dst_zero_point, false),
                      how};
  const auto read = detail::extent::of("the source", src, from, count),
             written = detail::extent::of("the destination", dst, to, count);
  require(!written.overlaps(read), "the destination overlaps the source; a reorder in place is not possible.");
  for (const auto* p : {&j.src_scale, &j.src_zero, &j.dst_scale, &j.dst_zero})
    if (p->given())
      require(!written.overlaps(detail::extent::of("a scale or zero point", p->data, p->type, p->count)),
              "the destination overlaps a scale or zero point that is read.");
  if (count == 0) return;
  const auto by = qtensor::detail::execution_among(on...).by;

  // Other pairs of integers are as exact through floats: s32 beyond 2^24 saturates in all of them.
  const bool kept =
      is_integer(to) || (how.zero_sign == zero_sign::kept && how.bf16_subnormals == bf16_subnormals::kept);
  if (j.plain() && from == to && bits_of_type(to) >= 8) {
    if (kept) {
      return qtensor::detail::in_ranges(by, byte_count(to, count), 4096, 1, [&](index_t first, index_t n) {
        std::memcpy(static_cast<std::byte*>(dst) + first, static_cast<const std::byte*>(src) + first,
                    static_cast<std::size_t>(n));
      });
    }
    attributes zeros;  // no other number is rounded or saturated
    zeros.zero_sign = how.zero_sign, zeros.bf16_subnormals = how.bf16_subnormals;
    return pieces::reorder_all(
        pieces::job{from, to, src, dst, count, j.src_scale, j.src_zero, j.dst_scale, j.dst_zero, zeros}, by);
  }
  pieces::reorder_all(j, by);
}

}  // namespace QTENSOR_ABI

}  // namespace qtensor::compat::onednn
