// Floats to interleaved blocks: statistics, scales and codes of many blocks side by side, then put together.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/simd/blocks.hpp>
#include <qtensor/simd/blocks_scales.hpp>
#include <qtensor/simd/encode.hpp>
#include <qtensor/simd/scales.hpp>
#include <qtensor/simd/search.hpp>

// Every block equals reference::quantize bit for bit. Blocks that no formula gives (infinities, NaN, scales whose
// inverse overflows) are found in the arrays of their neighbours and written again by the reference.
namespace qtensor::inline QTENSOR_ABI::simd {

namespace detail {

// ---- Codes ----------------------------------------------------------------------------------------------------------

/// What a rounding comes to for numbers near the codes' range.
template <class Rounding>
struct near_rounding {
  using type = Rounding;
  static constexpr bool enabled = true;
};
template <class Rounding>
requires requires { typename Rounding::ordinary; }
struct near_rounding<Rounding> {
  using type = typename Rounding::ordinary;
  static constexpr bool enabled = true;
};

template <class S>
inline constexpr bool truncates_sums = std::same_as<typename near_rounding<typename S::rounding>::type, truncated_sum>;

/// Quotients near the codes' range to integers: codes themselves, or counted from the lowest one for truncated sums.
template <class S, class A>
QTENSOR_INLINE ints<A> near_counts(const floats<A>& q) {
  using rounding = typename near_rounding<typename S::rounding>::type;
  if constexpr (truncates_sums<S>) {
    return simd::truncate_to_int(simd::add(q, floats<A>(0.5f - static_cast<float>(S::code_format::min))));
  } else {
    return round_near_by<rounding>(q);
  }
}

template <class S, class A>
QTENSOR_INLINE bytes<A> near_codes(const std::array<ints<A>, 4>& r) {
  using code = typename S::code_format;
  if constexpr (truncates_sums<S>) {
    const auto from_lowest = [](float v) { return static_cast<std::uint8_t>(v - static_cast<float>(code::min)); };
    constexpr std::uint8_t low = code::is_integer ? from_lowest(S::codes.low) : 0;
    constexpr std::uint8_t high = from_lowest(code::is_integer ? S::codes.high : static_cast<float>(code::max));
    const bytes<A> c = simd::min(simd::narrow_u8(r[0], r[1], r[2], r[3]), bytes<A>(high));
    return low == 0 ? c : simd::max(c, bytes<A>(low));
  } else {
    return narrowed<S, A>(simd::narrow_i16<A>(r), [](int) { return ints<A>(0); });
  }
}

/// The sum of a group's numbers, from their codes.
template <class S>
inline std::int32_t sum_of_codes(const std::uint8_t* codes) {
  using b = blocks_of<S>;
  constexpr bool twos_complement = b::code::is_integer && b::code::is_signed;
  constexpr std::uint64_t flip = twos_complement ? eight_of(1u << (b::bits - 1)) : 0, pairs = 0x00ff00ff00ff00ffu;
  std::uint64_t sum = 0;
  for (index_t i = 0; i < b::group; i += 8) {
    const std::uint64_t v = (load_eight(codes + i) & eight_of(low_bits(b::bits))) ^ flip;
    sum += (v & pairs) + (v >> 8 & pairs);
  }
  return static_cast<std::int32_t>((sum * 0x0001000100010001u) >> 48) +
         static_cast<std::int32_t>(b::group) * static_cast<std::int32_t>(b::code::min);
}

// ---- Blocks ---------------------------------------------------------------------------------------------------------

/// Where the scales (and offsets) of blocks come from: numbers, by the rule of S, or the blocks, which have them.
enum class scales_are { found, given };

template <class S, class A, class From = from_f32, scales_are Scales = scales_are::found>
class block_encoder {
  using b = blocks_of<S>;
  using element = typename From::type;
  using rule = block_rule<typename S::rule, S, A>;
  using scale_format = typename S::scale_format;
  using offset_format = typename S::offset_format;
  using search = code_search<typename b::code, scale_format, A>;  // of schemes that search
  static constexpr index_t step = 4 * lanes<A>, at_once = block_chunk / b::group, run = lanes<A> * b::group;
  static constexpr bool literal = std::same_as<typename S::nonfinite_block, block_literal>;
  static constexpr bool stored = std::same_as<typename S::code_scale, stored_scale>;
  /// Quotients, as bits, that are no longer near the codes.
  static constexpr std::uint32_t far = bits_of(0x1p20f);
  /// Peaks whose sign is settled once quotients show that it may be the other one: where there is an instruction for
  /// the order of magnitudes, that takes less. The peak becomes the lowest code, another of its magnitude its opposite.
  /// Numbers of 16 bits have both signs of a magnitude too often.
  static constexpr bool settles_signs = Scales == scales_are::found && has_many_registers<A> &&
                                        sizeof(element) == sizeof(float) &&
                                        std::same_as<typename S::rule, peak_scale> && is_reciprocal<S> &&
                                        !has_own_inverse<S> && !stored && !S::has_offset;
  static constexpr float opposite = settles_signs ? -S::codes.low * (1.f - 0x1p-16f) : 0.f;
  /// Codes that are packed in registers: two nibbles in a byte, half a group apart.
  static constexpr bool joins_halves =
      has_halves<S> && b::bits == 4 && (b::group == 16 || b::group == 32) && !S::has_code_sum;
  static constexpr std::size_t room = static_cast<std::size_t>(at_once), none = 1,
                               offset_room = S::has_offset ? room : none, sum_room = S::has_code_sum ? room : none;

 public:
  explicit block_encoder(const traffic& asks) : asks_(asks) {}

  /// At most block_chunk elements. Whole batches of groups are read where they are, the rest from a padded copy.
  void chunk(const element* x, index_t blocks, std::uint8_t* to) {
    const index_t n = blocks * b::elements, whole = n / run * run;
    if (whole > 0) groups(x, whole / b::group, whole / b::elements, to);
    if (whole < n) {
      alignas(64) element padded[static_cast<std::size_t>(run)];
      std::fill(std::copy(x + whole, x + n, padded), padded + run, element{});
      groups(padded, lanes<A>, (n - whole) / b::elements, to + whole / b::elements * b::bytes);
    }
  }

 private:
  using statistics = group_statistics<std::conditional_t<searches<S>, absolute_maximum, typename S::rule::statistics>,
                                      b::group, A, From>;

  void groups(const element* x, index_t count, index_t blocks, std::uint8_t* to) {
    if constexpr (settles_signs)
      statistics::find_either(x, count, a_);
    else
      statistics::find(x, count, a_, b_);
    ints<A> most(0);  // the bits of the largest quotient
    bool special = encode_groups(x, count, blocks, to, most);
    if constexpr (settles_signs)
      if (simd::any(most > ints<A>(std::bit_cast<std::int32_t>(opposite)))) {
        statistics::find(x, count, a_, b_);
        special = encode_groups(x, count, blocks, to, most);
      }
    if (special) mend(x, blocks, to);
  }

  /// From statistics to blocks. Says whether some groups are special.
  bool encode_groups(const element* x, index_t count, index_t blocks, std::uint8_t* to, ints<A>& most_of_all) {
    bool special = false;
    if constexpr (Scales == scales_are::given)
      special = read_scales(count, blocks * b::groups, to);
    else if constexpr (searches<S>)
      special = find_searched_scales(count);
    else if constexpr (scales_by_vectors<S, A>)
      special = find_scales(count);
    else
      special = ask_for_scales(count);
    // Joining codes leaves the units of floats idle, and the other way round: both at a time.
    constexpr index_t piece = std::min(run, 2 * std::max(step, b::elements)), of_piece = piece / b::elements;
    static_assert(run % piece == 0);
    const traffic t = asks_;  // codes might be stored to a member
    ints<A> most(0);
    for (index_t i = 0, block = 0; i < count * b::group; i += piece, block += of_piece) {
      fetch_ahead<piece * index_t{sizeof(element)}>(x + i, t);
      encode(x, i, piece, most);
      if constexpr (S::has_code_sum) continue;
      if (block + of_piece <= blocks)  // a number that the compiler knows
        join(block, of_piece, to);
      else if (block < blocks)
        join(block, blocks - block, to);
    }
    if constexpr (S::has_code_sum) {
      find_sums(count);
      join(0, blocks, to);
    }
    most_of_all = most;
    return special;
  }

  /// Scales, what to multiply (or divide) by, and offsets; NaN marks special groups. Says whether there are any.
  bool find_scales(index_t count) {
    const words<A> magnitude(magnitude_bits);
    words<A> worst(0u);
    for (index_t g = 0; g < count; g += lanes<A>) {
      const words<A> a = simd::load<A>(a_ + g), last = last_number(g);
      floats<A> s = rule::scale(a, last), offset(0.f);
      words<A> largest(0u);
      if constexpr (!literal)  // too large a scale is saturated
        largest = simd::select(simd::below(words<A>(bits_of(static_cast<float>(scale_format::max))),
                                           simd::bits_as<std::uint32_t>(s) & magnitude),
                               words<A>(infinity_bits), largest);
      const words<A> code = scale_codes<scale_format, A>(s);
      simd::store(scale_code_ + g, code);
      if constexpr (stored) s = scale_values<scale_format, A>(code);
      if constexpr (S::has_offset) {
        offset = rule::offset(a);
        const words<A> offset_code = scale_codes<offset_format, A>(offset);
        simd::store(offset_code_ + g, offset_code);
        if constexpr (stored) offset = scale_values<offset_format, A>(offset_code);
      }
      worst = simd::max(worst, keep_scales(g, s, offset, largest));
    }
    return simd::reduce_max(worst) >= infinity_bits;
  }

  /// The other number that statistics know of groups, where they know two.
  QTENSOR_INLINE words<A> last_number(index_t g) const {
    return simd::load<A>((std::same_as<typename S::rule::statistics, own_extremes> ? b_ : a_) + g);
  }
  /// What numbers are multiplied (or divided) by under scales s, and offsets; NaN where that is no way to codes, or
  /// `largest` is not finite. Returns the largest of all that counts, an infinity where quotients are far from codes.
  QTENSOR_INLINE words<A> keep_scales(index_t g, const floats<A>& s, const floats<A>& offset, words<A> largest) {
    const words<A> magnitude(magnitude_bits), finite(infinity_bits), a = simd::load<A>(a_ + g), last = last_number(g);
    const auto include = [&](const floats<A>& v) QTENSOR_INLINE_LAMBDA {
      largest = simd::max(largest, simd::bits_as<std::uint32_t>(v) & magnitude);
    };
    include(simd::bits_as<float>(a)), include(simd::bits_as<float>(last));
    include(s);
    const auto zero = s == floats<A>(0.f);
    if constexpr (settles_signs)  // of which no quotient shows that it may be the other one
      largest =
          simd::select(simd::mask_as<std::uint32_t>(zero) & simd::below(words<A>(0u), a & magnitude), finite, largest);
    floats<A> by = simd::select(zero, floats<A>(infinity), s);
    if constexpr (is_reciprocal<S>) {
      by = simd::select(zero, floats<A>(0.f), simd::div(floats<A>(1.f), s));
      include(by);
    }
    if constexpr (S::has_offset) {
      include(offset);
      simd::store(offset_ + g, offset);
    }
    if constexpr (S::has_code_sum) simd::store(scale_ + g, s);
    // A scale that was kept inside its format, or that is given, may leave quotients far from the codes.
    const auto include_quotient = [&](const words<A>& number) QTENSOR_INLINE_LAMBDA {
      const floats<A> q = quotient(simd::sub(simd::bits_as<float>(number), offset), by);
      largest = simd::select(simd::below(simd::bits_as<std::uint32_t>(q) & magnitude, words<A>(far)), largest,
                             simd::max(largest, finite));
    };
    include_quotient(a);
    if constexpr (S::has_offset) include_quotient(last);
    const auto regular = simd::mask_as<float>(simd::below(largest, finite));
    simd::store(by_ + g, simd::select(regular, by, floats<A>(quiet_nan)));
    return largest;
  }

  /// Parameters of the first `given` of `count` groups as their blocks have them, `at` there and `apart` for each group
  /// of a block: their codes and values. Those of others are 0.
  template <class F>
  static void read_parameters(index_t count, index_t given, const std::uint8_t* blocks, index_t at, index_t apart,
                              std::uint32_t* codes, float* values) {
    alignas(64) storage_t<F> units[room] = {};
    for (index_t g = 0; g < given; ++g) {
      codes[g] = qtensor::detail::load_unit<F>(blocks + g / b::groups * b::bytes + at + g % b::groups * apart);
      units[g] = qtensor::detail::unit_from<F>(codes[g]);
    }
    decode_scales<F, A>(units, count, values);
  }
  /// Scales and offsets that blocks have. Says whether there are special groups, as find_scales.
  bool read_scales(index_t count, index_t given, const std::uint8_t* blocks) {
    using place = typename b::place;
    alignas(64) float scale[room];
    read_parameters<scale_format>(count, given, blocks, 0, place::scale_bytes, scale_code_, scale);
    if constexpr (S::has_offset)
      read_parameters<offset_format>(count, given, blocks, place::offset_at, 0, offset_code_, offset_);
    words<A> worst(0u);
    for (index_t g = 0; g < count; g += lanes<A>) {
      const floats<A> s = simd::load<A>(scale + g);
      if constexpr (searches<S>) {
        const words<A> amax = simd::load<A>(a_ + g);
        const auto regular = simd::mask_as<float>(simd::below(amax, words<A>(infinity_bits))) & (s >= floats<A>(0.f));
        const floats<A> by = simd::select(regular, search::divisor(amax, s), floats<A>(quiet_nan));
        simd::store(by_ + g, by);
        const auto usable = simd::mask_as<std::uint32_t>(by == by);
        worst = simd::max(worst, simd::select(usable, words<A>(0u), words<A>(infinity_bits)));
      } else {
        floats<A> offset(0.f);
        if constexpr (S::has_offset) offset = simd::load<A>(offset_ + g);
        worst = simd::max(worst, keep_scales(g, s, offset, words<A>(0u)));
      }
    }
    return simd::reduce_max(worst) >= infinity_bits;
  }

  /// Scales whose codes the rule says, and what numbers are searched by; NaN marks special groups, too.
  bool find_searched_scales(index_t count) {
    bool special = false;
    using by_vectors = vector_code<typename S::rule, A>;
    if constexpr (!by_vectors::enabled)
      for (index_t g = 0; g < count; ++g) scale_code_[g] = S::rule::code(float_of(a_[g]));
    for (index_t g = 0; g < count; g += lanes<A>) {
      const words<A> amax = simd::load<A>(a_ + g);
      auto regular = simd::mask_as<float>(simd::below(amax, words<A>(infinity_bits)));
      if constexpr (by_vectors::enabled) {
        simd::store(scale_code_ + g, by_vectors::of(amax));
        // Subnormal maxima are for the reference.
        regular = regular & simd::mask_as<float>(
                                ~(simd::below(words<A>(0u), amax) & simd::below(amax, words<A>(low_bits(23) + 1u))));
      }
      floats<A> scale;
      if constexpr (requires(const words<A>& code) { by_vectors::scale(code); })
        scale = by_vectors::scale(simd::load<A>(scale_code_ + g));
      else
        scale = simd::lookup<A>(decode_table<scale_format>.data(), simd::load<A>(scale_code_ + g));
      // Zeros fit any scale; theirs may be a subnormal number, which would cost many CPUs dearly.
      scale = simd::select(simd::mask_as<float>(amax == words<A>(0u)), floats<A>(1.f), scale);
      const floats<A> by = simd::select(regular, search::divisor(amax, scale), floats<A>(quiet_nan));
      simd::store(by_ + g, by);
      special = special || !simd::all(by == by);
    }
    return special;
  }

  /// Scales by a rule that vectors do not know.
  bool ask_for_scales(index_t count) {
    bool special = false;
    for (index_t g = 0; g < count; ++g) {
      reference::block_statistics seen;
      seen.amax_bits = a_[g] & magnitude_bits;
      seen.peak = float_of(a_[g]);
      if constexpr (std::same_as<typename S::rule::statistics, own_extremes>) {
        seen.amax_bits = std::max(seen.amax_bits, b_[g] & magnitude_bits);
        seen.own_low = float_of(a_[g]), seen.own_high = float_of(b_[g]);
      }
      const bool finite = seen.amax_bits < infinity_bits;
      const auto p = reference::parameters_of<S>(finite ? seen : reference::block_statistics{});
      const float by = p.code_scale == 0.f ? (is_reciprocal<S> ? 0.f : infinity)
                                           : (is_reciprocal<S> ? 1.f / p.code_scale : p.code_scale);
      const auto near = [&](std::uint32_t number) {
        const float x = float_of(number) - p.offset;
        return magnitude(is_reciprocal<S> ? x * by : x / by) < float_of(far);
      };
      const bool odd = !finite || p.poisoned || p.zero_codes || !is_finite(p.code_scale) || !is_finite(p.offset) ||
                       (is_reciprocal<S> && !is_finite(by)) || !near(a_[g]) || (S::has_offset && !near(b_[g]));
      scale_code_[g] = p.scale_code;
      by_[g] = odd ? quiet_nan : by;
      if constexpr (S::has_offset) offset_code_[g] = p.offset_code, offset_[g] = p.offset;
      if constexpr (S::has_code_sum) scale_[g] = p.code_scale;
      special = special || odd;
    }
    return special;
  }

  static QTENSOR_INLINE floats<A> quotient(const floats<A>& x, const floats<A>& by) {
    constexpr quotient_by how = safe_quotient<S>;
    return quotients<S, how>(x, divisor<how, A>{by});
  }

  /// How many groups behind that of the first of four batches from a multiple of `step` on batch k lies.
  static constexpr index_t group_of(index_t k) {
    static_assert(step % b::group == 0 || b::group % step == 0);
    return k * lanes<A> / b::group;
  }
  /// Codes of the four batches from element i on, a multiple of `step`.
  QTENSOR_INLINE bytes<A> rounded_codes(const element* x, index_t i, ints<A>& most) const {
    const float *by = by_ + i / b::group, *offset = offset_ + (S::has_offset ? i / b::group : 0);
    std::array<ints<A>, 4> r;
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      floats<A> v = From::template load<A>(x + i + k * lanes<A>);
      if constexpr (S::has_offset) v = simd::sub(v, floats<A>(offset[group_of(k)]));
      const floats<A> q = quotient(v, floats<A>(by[group_of(k)]));
      if constexpr (settles_signs) most = simd::max(most, simd::bits_as<std::int32_t>(q));
      r[k] = near_counts<S>(q);
    }
    return near_codes<S>(r);
  }
  QTENSOR_INLINE bytes<A> searched_codes(const element* x, index_t i) const {
    constexpr index_t together = std::min(b::group / lanes<A>, index_t{4});  // batches of one group
    std::array<floats<A>, 4> v;
#pragma GCC unroll 4
    for (index_t k = 0; k < 4; ++k) v[k] = From::template load<A>(x + i + k * lanes<A>);
    return search::template codes<together>(v, by_ + i / b::group);
  }

  /// Codes of elements [first, first + n): bytes, or packed already.
  QTENSOR_INLINE void encode(const element* x, index_t first, index_t n, ints<A>& most) {
    const auto codes = [&](index_t i) QTENSOR_INLINE_LAMBDA {
      if constexpr (searches<S>)
        return searched_codes(x, i);
      else
        return rounded_codes(x, i, most);
    };
    if constexpr (joins_halves)
      for (index_t i = first; i < first + n; i += 2 * step)
        simd::store(codes_ + i / 2, simd::join_halves<b::group / 2>(codes(i), codes(i + step)));
    else
      for (index_t i = first; i < first + n; i += step) simd::store(codes_ + i, codes(i));
  }

  void find_sums(index_t count) {
    using format = typename S::layout::code_sum_format;
    alignas(64) std::int32_t sums[static_cast<std::size_t>(at_once)];
    for (index_t g = 0; g < count; ++g) sums[g] = sum_of_codes<S>(codes_ + g * b::group);
    for (index_t g = 0; g < count; g += lanes<A>)
      simd::store(sum_code_ + g, scale_codes<format, A>(
                                     simd::mul(simd::to_float(simd::load<A>(sums + g)), simd::load<A>(scale_ + g))));
  }

  /// The bytes of blocks [first, first + count) from what has been found of them; block 0 lies at `to`.
  QTENSOR_INLINE void join(index_t first, index_t count, std::uint8_t* to) const {
    for (index_t block = first; block < first + count; ++block) join_block(block * b::groups, to + block * b::bytes);
  }
  QTENSOR_INLINE void join_block(index_t g, std::uint8_t* to) const {
    using place = typename b::place;
#pragma GCC unroll 4
    for (index_t k = 0; k < b::groups; ++k) {
      store_parameter<scale_format>(to + k * place::scale_bytes, scale_code_[g + k]);
      std::uint8_t* const codes = to + place::codes_at + k * b::code_bytes;
      if constexpr (joins_halves)
        std::memcpy(codes, codes_ + (g + k) * b::group / 2, b::group / 2);
      else
        join_codes<S, A>(codes_ + (g + k) * b::group, codes);
    }
    if constexpr (S::has_offset) store_parameter<offset_format>(to + place::offset_at, offset_code_[g]);
    if constexpr (S::has_code_sum)
      store_parameter<typename S::layout::code_sum_format>(to + place::sum_at, sum_code_[g]);
  }

  void mend(const element* x, index_t blocks, std::uint8_t* to) const {
    for (index_t block = 0; block < blocks; ++block)
      if (std::any_of(by_ + block * b::groups, by_ + (block + 1) * b::groups, [](float by) { return is_nan(by); }))
        by_reference(x + block * b::elements, b::elements, to + block * b::bytes);
  }

 public:
  /// One block, which may be short.
  static void by_reference(const element* x, index_t n, std::uint8_t* to) {
    const auto numbers = [x](const auto& i) { return number<From>(x[i[0]]); };
    if constexpr (Scales == scales_are::given)
      reference::quantize_static(numbers, b::template row<read_write>(to, n));
    else
      reference::quantize(numbers, b::template row<read_write>(to, n));
  }

 private:
  const traffic asks_;
  // Statistics, and what becomes of them, of the groups of a chunk.
  alignas(64) std::uint32_t a_[room];
  alignas(64) std::uint32_t b_[offset_room];
  alignas(64) std::uint32_t scale_code_[room];
  alignas(64) std::uint32_t offset_code_[offset_room];
  alignas(64) std::uint32_t sum_code_[sum_room];
  alignas(64) float by_[room];
  alignas(64) float offset_[offset_room];
  alignas(64) float scale_[sum_room];
  alignas(64) std::uint8_t codes_[static_cast<std::size_t>(block_chunk)];
};

template <class S>
constexpr bool has_near_codes() {
  constexpr bool plain = std::same_as<typename S::nonfinite_block, block_literal> &&
                         std::same_as<typename S::code_scale, stored_scale> && !S::has_offset && !S::has_code_sum;
  if constexpr (searches<S>)
    return plain && knows_codes<typename S::rule> && can_search<typename S::code_format, typename S::scale_format>();
  using code = typename S::code_format;
  using rounding = typename near_rounding<typename S::rounding>::type;
  if constexpr (std::same_as<rounding, truncated_sum>)
    return counts_from_lowest<code>;
  else
    return code::is_integer && code::bits <= 8 && vector_rounding<rounding, code>() && !has_intermediate<S>;
}

}  // namespace detail

/// Interleaved schemes whose blocks vectors write: regular blocks as for block_decodable, any rule over the absolute
/// maximum, the peak or the extremes of a block, exact or reciprocal division, codes that are integers or count up from
/// the lowest number, a rounding that is not random (or names the one it comes to).
template <class S>
concept block_encodable =
    block_decodable<S> && !std::same_as<typename S::rule, static_only> &&
    detail::group_statistics<typename S::rule::statistics, detail::blocks_of<S>::group, best_arch>::enabled &&
    (detail::one_of<typename S::division, exact_division, reciprocal> ||
     detail::searches<S>)&&std::same_as<typename S::division_type, f32> &&
    !detail::one_of<typename S::nonfinite_block, block_ignores, block_ignores_nan> && detail::has_near_codes<S>();

namespace detail {

template <class S, class From, class A, scales_are Scales>
void encode_blocks_of_row(const typename From::type* x, index_t n, std::uint8_t* bytes, const traffic& asks) {
  using b = blocks_of<S>;
  using element = typename From::type;
  const index_t part = asks.fetches == fetch::nothing ? 0 : best_requests().part / index_t{sizeof(element)};
  const index_t most = (part > 0 ? std::max(part, b::elements) : block_chunk) / b::elements;
  const index_t blocks = n / b::elements;
  block_encoder<S, A, From, Scales> encoder(asks);
  for (index_t first = 0; first < blocks; first += most)
    encoder.chunk(x + first * b::elements, std::min(most, blocks - first), bytes + first * b::bytes);
  if (const index_t rest = n - blocks * b::elements; rest > 0)
    encoder.by_reference(x + blocks * b::elements, rest, bytes + blocks * b::bytes);
}

}  // namespace detail

/// n elements to the blocks of one row at `bytes`, as reference::quantize does; the last block may be short, and its
/// unused codes stay as they are.
///
/// Reads x[0, n), writes the bytes of its blocks. `asks`: how numbers further on are asked for; if at all, they are
/// read and encoded in turn as best_requests() likes it.
template <block_encodable S, float_source From = from_f32, usable_arch A = best_arch>
void encode_interleaved(const typename From::type* x, index_t n, std::uint8_t* bytes, const traffic& asks = {}) {
  detail::encode_blocks_of_row<S, From, A, detail::scales_are::found>(x, n, bytes, asks);
}

/// The same under the scales (and offsets) that the blocks have already, as reference::quantize_static does.
template <block_encodable S, float_source From = from_f32, usable_arch A = best_arch>
void encode_interleaved_static(const typename From::type* x, index_t n, std::uint8_t* bytes, const traffic& asks = {}) {
  detail::encode_blocks_of_row<S, From, A, detail::scales_are::given>(x, n, bytes, asks);
}

}  // namespace qtensor::inline QTENSOR_ABI::simd
