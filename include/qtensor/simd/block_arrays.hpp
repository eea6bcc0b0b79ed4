// What decoders multiply by and add: parameters of blocks, of single elements, of short groups.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <qtensor/scheme/scheme.hpp>
#include <qtensor/simd/decode.hpp>
#include <qtensor/simd/memory.hpp>
#include <utility>

namespace qtensor::inline QTENSOR_ABI::simd {

/// What elements are multiplied by and shifted by: entry i / group of each array belongs to element i.
struct block_arrays {
  const float* scales;
  const std::int32_t* zero_points = nullptr;  ///< where S has them
  const float* offsets = nullptr;             ///< where S has them
  float tensor_scale = 1.f;

  /// The parameters from entry g on.
  constexpr block_arrays from(index_t g) const {
    return {scales + g, zero_points != nullptr ? zero_points + g : nullptr, offsets != nullptr ? offsets + g : nullptr,
            tensor_scale};
  }
};

namespace detail {

/// p from entry g on; what S does not have is not looked at.
template <class S>
QTENSOR_INLINE void advance(block_arrays& p, index_t g) {
  p.scales += g;
  if constexpr (S::has_zero_point)
    if (p.zero_points != nullptr) p.zero_points += g;
  if constexpr (S::has_offset)
    if (p.offsets != nullptr) p.offsets += g;
}

/// The smallest nonzero magnitude of a format's values; of differences to a zero point, for integers; 0 where floats
/// are so many that there is no table of them.
template <class F>
inline constexpr float smallest_magnitude = [] {
  if constexpr (requires { F::fraction_bits; }) {
    return exp2i(-F::fraction_bits);
  } else if constexpr (F::is_integer) {
    return 1.f;
  } else if constexpr (F::bits > 8) {
    return 0.f;  // as if there were one
  } else {
    float least = std::numeric_limits<float>::infinity();
    for (const float v : decode_table<F>)
      if (const float m = v < 0.f ? -v : v; m > 0.f && m < least) least = m;
    return least;
  }
}();

/// Every NaN among a format's values has nothing but its quiet bit in the fraction.
template <class F>
inline constexpr bool has_plain_nan = [] {
  if constexpr (F::bits <= 8 && !F::is_integer && !requires { F::fraction_bits; })
    for (const float v : decode_table<F>)
      if (v != v && (bits_of(v) & 0x007fffffu) != quiet_bit) return false;
  return true;
}();

/// The bits of the least magnitude of scales of which no product with a code of S is subnormal: they are compared, as
/// numbers that are subnormal cost some CPUs a hundred cycles each wherever they are multiplied.
template <class S>
std::uint32_t least_scale(float tensor_scale = 1.f) {
  // Products grow with the magnitudes of their factors, so the smallest one decides.
  double least = 0x1p-126 / double{smallest_magnitude<typename S::code_format>};
  // Rounded before that scale, products may lose half of what they are.
  if constexpr (S::has_tensor_scale) least *= 2. / std::abs(double{tensor_scale});
  const auto rounded = static_cast<float>(least);
  return bits_of(rounded) + (double{rounded} < least ? 1u : 0u);
}

/// Whether narrow_bf16_plain takes all products of codes of S with these scales. (Where subnormal numbers are those
/// that it does not take, scales of zero count as if they made some.)
template <class S, class A>
bool products_are_plain(const float* scales, index_t n, float tensor_scale) {
  if constexpr (!plain_is_normal<A>) {
    auto number = floats<A>(tensor_scale) == floats<A>(tensor_scale);
    for (index_t i = 0; i < n; i += lanes<A>) {
      const floats<A> s = simd::load_n<A>(scales + i, std::min(lanes<A>, n - i), 1.f);
      number = number & (s == s);
    }
    return has_plain_nan<typename S::code_format> && simd::all(number);
  }
  const words<A> least(least_scale<S>(tensor_scale));
  auto subnormal = words<A>(0u) != words<A>(0u);
  for (index_t i = 0; i < n; i += lanes<A>) {
    const floats<A> s = simd::load_n<A>(scales + i, std::min(lanes<A>, n - i), float_of(infinity_bits));
    subnormal = subnormal | simd::below(simd::bits_as<std::uint32_t>(s) & words<A>(magnitude_bits), least);
  }
  return !simd::any(subnormal);
}

/// Whether no product of a code of S, an integer of 8 bits, is halfway between two bf16 numbers under these entries:
/// asks for all codes.
template <class S, class A>
bool products_are_untied(const block_arrays& p) {
  const ints<A> zero(S::has_zero_point && p.zero_points != nullptr ? *p.zero_points : 0);
  constexpr std::int32_t first = S::code_format::is_signed ? -128 : 0;
  std::int32_t next[static_cast<std::size_t>(lanes<A>)];
  for (std::int32_t i = 0; i < lanes<A>; ++i) next[i] = first + i;
  ints<A> codes = simd::load<A>(next);
  auto tied = words<A>(0u) != words<A>(0u);
  for (index_t i = 0; i < 256; i += lanes<A>, codes = codes + ints<A>(static_cast<std::int32_t>(lanes<A>))) {
    floats<A> product = simd::mul(simd::to_float(codes - zero), floats<A>(*p.scales));
    if constexpr (S::has_tensor_scale) product = simd::mul(product, floats<A>(p.tensor_scale));
    tied = tied | ((simd::bits_as<std::uint32_t>(product) << 16) == words<A>(0x80000000u));
  }
  return !simd::any(tied);
}

/// Bits from the first to the last that is set, of the value of F that has the most.
template <class F>
inline constexpr int significant_bits = [] {
  int most = 0;
  if constexpr (F::bits > 8)
    return 24;
  else
    for (const float v : decode_table<F>)
      if (is_finite(v) && v != 0.f)
        most = std::max(most, 24 - std::countr_zero((bits_of(v) & low_bits(23)) | 1u << 23));
  return most;
}();

/// Schemes whose products are bf16 numbers, if scales are those of their format and none is subnormal; where rounding
/// costs more than asking.
template <class S, class A>
inline constexpr bool may_be_bf16 =
    !S::has_zero_point && !S::has_offset && !S::has_tensor_scale && !plain_is_normal<A> &&
    significant_bits<typename S::code_format> + significant_bits<typename S::scale_format> <= 8;

/// Whether all products of codes of such a scheme with these scales are.
template <class S, class A>
bool products_are_bf16(const float* scales, index_t n) {
  using code = typename S::code_format;
  const words<A> least(least_scale<S>());
  auto rounded = words<A>(0u) != words<A>(0u);
  for (index_t i = 0; i < n; i += lanes<A>) {
    const floats<A> s = simd::load_n<A>(scales + i, std::min(lanes<A>, n - i), 1.f);
    const words<A> bits = simd::bits_as<std::uint32_t>(s), magnitude = bits & words<A>(magnitude_bits);
    rounded = rounded | ((bits & words<A>(low_bits(16 + significant_bits<code>))) != words<A>(0u)) |
              (simd::below(magnitude, least) & (magnitude != words<A>(0u)));
  }
  return !simd::any(rounded);
}

/// If all of these scales are powers of two by which every finite number of S stays a normal one (or zero): what
/// step_exponents takes for them, with room for 2 * lanes more.
template <class S, class A>
bool exponent_steps(const float* scales, index_t n, std::uint16_t* steps) {
  constexpr exponent_range range = exponents_of<typename S::code_format>;
  const words<A> low(bits_of(exp2i(std::max(-126, 1 - range.low))));
  const words<A> high(bits_of(exp2i(std::min(127, 254 - range.high))));
  auto fits = low == low;
  for (index_t i = 0; i < n; i += lanes<A>) {
    const words<A> s = simd::bits_as<std::uint32_t>(simd::load_n<A>(scales + i, std::min(lanes<A>, n - i), 1.f));
    // No sign, no fraction, between the bounds.
    fits = fits & ((s & words<A>(0x807fffffu)) == words<A>(0u)) & (simd::max(s, low) == s) & (simd::min(s, high) == s);
    const words<A> step = (s >> 16) - words<A>(0x3f80u);
    simd::store(steps + i, simd::low_halves(step, step));
  }
  return simd::all(fits);
}

// Parameters of blocks of four batches: scale(k), zero(k), offset(k) for batch k of the current block; entry(i) of p's
// arrays belongs to its element i; next() goes on. products_are_plain(n) and products_are_bf16(n) speak of the next n
// blocks, and may say no. Where batches share entries by pairs, entries(n) is the number of entries of those blocks.

/// One entry an element.
template <class S, class A>
struct element_arrays {
  block_arrays p;

  static index_t entry(index_t i) { return i; }
  QTENSOR_INLINE floats<A> scale(int k) const { return simd::load<A>(p.scales + k * lanes<A>); }
  QTENSOR_INLINE ints<A> zero(int k) const {
    return p.zero_points != nullptr ? simd::load<A>(p.zero_points + k * lanes<A>) : ints<A>(0);
  }
  QTENSOR_INLINE floats<A> offset(int k) const {
    return p.offsets != nullptr ? simd::load<A>(p.offsets + k * lanes<A>) : floats<A>(0.f);
  }
  QTENSOR_INLINE void next() { advance<S>(p, 4 * lanes<A>); }
  bool products_are_plain(index_t n) const {
    return !plain_is_normal<A> && detail::products_are_plain<S, A>(p.scales, n * 4 * lanes<A>, p.tensor_scale);
  }
  bool products_are_bf16(index_t n) const { return detail::products_are_bf16<S, A>(p.scales, n * 4 * lanes<A>); }
  static constexpr bool pairs_share = false, entry_an_element = true, one_entry = false;
};

/// The entries of a block of which the first n elements exist, in registers; n >= 1.
template <class S, class A>
struct held_arrays {
  std::array<floats<A>, 4> scales;
  std::array<ints<A>, S::has_zero_point ? 4 : 0> zeros;
  std::array<floats<A>, S::has_offset ? 4 : 0> offsets;

  template <class Parameters>
  held_arrays(const Parameters& from, index_t n) {
    const block_arrays& p = from.p;
    const auto load = [&]<class T>(const T* entries, int k) QTENSOR_INLINE_LAMBDA {
      using batch = xsimd::batch<T, A>;
      const index_t at = k * lanes<A>;
      if (entries == nullptr) return batch(T{0});
      if constexpr (Parameters::entry_an_element)
        return simd::load_n<A>(entries + std::min(at, n), std::clamp(n - at, index_t{0}, lanes<A>));
      else
        return batch(entries[from.entry(std::min(at, n - 1))]);
    };
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      const auto at = static_cast<std::size_t>(k);
      scales[at] = load(p.scales, k);
      if constexpr (S::has_zero_point) zeros[at] = load(p.zero_points, k);
      if constexpr (S::has_offset) offsets[at] = load(p.offsets, k);
    }
  }
  QTENSOR_INLINE floats<A> scale(int k) const { return scales[static_cast<std::size_t>(k)]; }
  QTENSOR_INLINE ints<A> zero(int k) const { return zeros[static_cast<std::size_t>(k)]; }
  QTENSOR_INLINE floats<A> offset(int k) const { return offsets[static_cast<std::size_t>(k)]; }
};

/// One entry for BatchesOfGroup batches: 1, 2, or whole blocks (4: `blocks` of them; 0: all there are).
template <class S, class A, int BatchesOfGroup>
struct group_arrays {
  block_arrays p;
  index_t blocks = 1, block = 0;

  static QTENSOR_INLINE index_t entry(index_t i) {
    return BatchesOfGroup == 1 || BatchesOfGroup == 2 ? i / lanes<A> / std::max(BatchesOfGroup, 1) : 0;
  }
  QTENSOR_INLINE floats<A> scale(int k) const { return floats<A>(p.scales[entry(k * lanes<A>)]); }
  QTENSOR_INLINE ints<A> zero(int k) const {
    return ints<A>(p.zero_points != nullptr ? p.zero_points[entry(k * lanes<A>)] : 0);
  }
  QTENSOR_INLINE floats<A> offset(int k) const {
    return floats<A>(p.offsets != nullptr ? p.offsets[entry(k * lanes<A>)] : 0.f);
  }
  QTENSOR_INLINE void next() {
    if constexpr (BatchesOfGroup == 4) {
      if (++block == blocks) advance<S>(p, 1), block = 0;
    } else if constexpr (BatchesOfGroup != 0) {
      advance<S>(p, 4 / BatchesOfGroup);
    }
  }
  bool products_are_plain(index_t n) const {
    return detail::products_are_plain<S, A>(p.scales, entries(n), p.tensor_scale);
  }
  bool products_are_bf16(index_t n) const { return detail::products_are_bf16<S, A>(p.scales, entries(n)); }
  static constexpr bool pairs_share = BatchesOfGroup != 1, entry_an_element = false, one_entry = BatchesOfGroup == 0;
  static constexpr int groups_in_block =
      BatchesOfGroup == 1 || BatchesOfGroup == 2 ? 4 / std::max(BatchesOfGroup, 1) : 1;
  /// Whether the next block is the first of a group.
  bool begins_group() const { return block == 0; }
  /// Elements that share the next entry but i, of those that are left, and from which on.
  std::pair<index_t, index_t> elements_of(index_t i) const {
    constexpr index_t step = 4 * lanes<A>;
    const index_t group = BatchesOfGroup == 4 ? blocks * step : step / groups_in_block, gone = block * step;
    return {std::max(i * group - gone, index_t{0}), (i + 1) * group - gone};
  }
  /// Entries of the next n blocks.
  index_t entries(index_t n) const {
    return BatchesOfGroup == 0   ? 1
           : BatchesOfGroup == 4 ? divide_up(block + n, blocks)
                                 : n * 4 / std::max(BatchesOfGroup, 1);
  }
};

/// The bits of a byte of codes of F that are 0 if and only if all of their values are zeros, perhaps of both signs; 0
/// where no byte has them.
template <class F>
inline constexpr std::uint8_t bits_of_no_zero = [] {
  if constexpr (F::bits != 4 && F::bits != 8) {
    return std::uint8_t{0};
  } else {
    constexpr std::size_t negative = std::size_t{1} << (F::bits - 1);
    if (decode_table<F>[0] != 0.f) return std::uint8_t{0};
    if (decode_table<F>[negative] != 0.f) return std::uint8_t{0xff};
    return static_cast<std::uint8_t>(F::bits == 4 ? 0x77 : 0x7f);
  }
}();

/// Whether the values of the codes of F from one byte to another are zeros.
template <class F>
bool are_zeros(const std::uint8_t* codes, const std::uint8_t* end) {
  constexpr std::uint64_t each = 0x0101010101010101;
  std::uint64_t all = 0, eight = 0;
  for (; end - codes >= 8; codes += 8) {
    std::memcpy(&eight, codes, 8);
    all |= eight;
  }
  for (; codes != end; ++codes) all |= *codes;
  return (all & each * bits_of_no_zero<F>) == 0;
}

/// exponent_steps of the next blocks of p, at most Most elements, where those whose scales are too small hold zeros
/// alone, as under the scale that rules make for zeros: these stay what they are by whichever step.
template <class S, class A, index_t Most, class Parameters>
bool steps_around_zeros(const std::uint8_t* codes, index_t blocks, const Parameters& p, std::uint16_t* steps) {
  using code = typename S::code_format;
  if constexpr (Parameters::one_entry || bits_of_no_zero<code> == 0) return false;
  const index_t entries = p.entries(blocks), elements = blocks * 4 * lanes<A>;
  const std::uint32_t least = least_scale<S>();
  alignas(64) float scales[static_cast<std::size_t>(Most / lanes<A>)];
  bool changed = false;
  for (index_t i = 0; i < entries; ++i) {
    scales[i] = p.p.scales[i];
    if (bits_of(scales[i]) >= least) continue;
    const auto [begin, end] = p.elements_of(i);
    if (!are_zeros<code>(codes + begin * code::bits / 8, codes + std::min(end, elements) * code::bits / 8))
      return false;
    scales[i] = 1.f;
    changed = true;
  }
  return changed && exponent_steps<S, A>(scales, entries, steps);
}

/// Values of batch k of a block, times the scales, and what else S has.
template <class S, class A, class Parameters>
QTENSOR_INLINE floats<A> scaled_value(floats<A> v, const Parameters& p, int k, float tensor_scale) {
  v = simd::mul(v, p.scale(k));
  if constexpr (S::has_tensor_scale) v = simd::mul(v, floats<A>(tensor_scale));
  if constexpr (S::has_offset) v = simd::add(v, p.offset(k));
  return v;
}

/// Parameters of single elements (or of batches), copied from those of their groups, for a short run.
template <class S, class A, index_t Most>
class spread_arrays {
 public:
  /// Those of elements [first, first + n), n <= Most.
  block_arrays fill(const block_arrays& p, index_t group, index_t first, index_t n) {
    const auto spread = [&]<class T, std::size_t N>(const T* entries, std::array<T, N>& copies) {
      if (entries != nullptr)
        spread_entries<A>(entries, group, first, n, copies.data());
      else
        copies.fill(T{0});
      return copies.data();
    };
    block_arrays own{spread(p.scales, scales_), nullptr, nullptr, p.tensor_scale};
    if constexpr (S::has_zero_point) own.zero_points = spread(p.zero_points, zeros_);
    if constexpr (S::has_offset) own.offsets = spread(p.offsets, offsets_);
    return own;
  }

 private:
  static constexpr std::size_t room = static_cast<std::size_t>(Most + lanes<A>);
  alignas(64) std::array<float, room> scales_;
  alignas(64) std::array<std::int32_t, S::has_zero_point ? room : 1> zeros_;
  alignas(64) std::array<float, S::has_offset ? room : 1> offsets_;
};

}  // namespace detail

}  // namespace qtensor::inline QTENSOR_ABI::simd
