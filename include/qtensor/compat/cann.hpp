// CANN: DynamicMxQuantWithDualAxis, DynamicMxQuant and DynamicBlockQuant as schemes, layouts and run-time entry points.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstring>
#include <qtensor/compat/cann_blocks.hpp>
#include <qtensor/ops/parallel.hpp>
#include <qtensor/ops/quantize_dual_axis.hpp>
#include <vector>

// Bits: NUMERICS 2.5 (scale algorithms), 3 (dual axis) and 4 (DynamicBlockQuant). Round modes: "rint" is nearest_even,
// "round" nearest_away, "floor" toward_negative.
namespace qtensor::compat::cann {

// ---- Schemes: each differs from ours by what is written here --------------------------------------------------------

/// MX: our mx_floor schemes, but a block with an infinity or a NaN has scale FF and codes 00 (ours: NaN codes).
/// Rule is mx_floor (scaleAlg 0), mx_rceil (1, FP8) or mx_dynamic_range<dst_type_max> (2, e2m1).
template <format Code, class Rounding = nearest_even, class Rule = mx_floor, index_t N = 32, index_t Axis = last_axis>
using mx = with<scheme<Code, mx_group<N, Axis>, scale_as<e8m0>, Rule>, Rounding, block_to_zero, nan_to_zero>;

/// The same as the device's kernels do it: a block whose largest magnitude is a subnormal f32 has codes +0 and -0.
template <format Code, class Rounding = nearest_even, class Rule = mx_floor, index_t N = 32, index_t Axis = last_axis>
using mx_flushed = with<mx<Code, Rounding, Rule, N, Axis>, subnormal_to_zero>;

/// DynamicBlockQuant: scale amax / largest code at most 1 / min_scale (`bounded_amax<n, d>`), formulas as written for
/// infinities and NaNs, codes of NaN 0, scale 0 for a block of zeros (ours: 1).
template <format Code = e5m2, index_t Rows = 1, index_t Columns = 128, class Rule = bounded_amax<>,
          class Rounding = default_rounding_t<Code>>
using block_quant = with<scheme<Code, block<Rows, Columns>, Rule>, Rounding, nan_to_zero, block_literal>;

/// As the operator's own golden program: infinities and NaNs do not count for the scale; Inf becomes the largest code.
template <format Code = e5m2, index_t Rows = 1, index_t Columns = 128, class Rule = bounded_amax<>,
          class Rounding = default_rounding_t<Code>>
using block_quant_golden = with<block_quant<Code, Rows, Columns, Rule, Rounding>, block_ignores>;

/// int8 on A2 and A3: by reciprocals, one row a block.
template <index_t Columns = 128, class Rule = reciprocal_amax<>>
using block_quant_a2_a3 = with<block_quant<int8, 1, Columns>, Rule, rule_multiplier>;

// ---- Layouts of MX scales -------------------------------------------------------------------------------------------

/// Sizes of the scales of x along an axis (from the front, or negative from the end): its blocks in pairs, and the two
/// of a pair on one more axis. x [B, M, N], axis -1: [B, M, ceil(ceil(N / 32) / 2), 2]. Throws on axes that x does not
/// have, more than 7 of them, and blocks of less than one element.
inline dims mxscale_sizes(const dims& x, index_t axis, index_t block_size = 32) {
  const int rank = x.rank();
  require(rank < dims::most, "x has rank ", rank, "; its scales have one axis more, and ", dims::most, " at most.");
  require(axis >= -rank && axis < rank, "axis is ", axis, "; x of rank ", rank, " has axes ", -rank, " to ", rank - 1,
          ".");
  require(block_size >= 1, "block_size is ", block_size, "; it is at least 1.");
  dims sizes = x;
  const int at = qtensor::detail::from_front(axis, rank);
  sizes[at] = divide_up(divide_up(x[at], block_size), 2);
  sizes.append(2);
  return sizes;
}

/// Scales in order, plain[o][q][n] for block q of `outer` x `blocks` x `inner`, to pairs[o][q / 2][n][q % 2]; the place
/// of a missing odd block becomes 00. mxscale1 has inner = 1 (so only the padding is new), mxscale2 inner = N.
inline void pair_scales(const std::uint8_t* plain, index_t outer, index_t blocks, index_t inner, std::uint8_t* pairs) {
  for (index_t o = 0; o < outer; ++o)
    for (index_t q = 0; q < divide_up(blocks, 2) * 2; ++q)
      for (index_t n = 0; n < inner; ++n)
        pairs[(o * divide_up(blocks, 2) + q / 2) * inner * 2 + n * 2 + q % 2] =
            q < blocks ? plain[(o * blocks + q) * inner + n] : std::uint8_t{0};
}
/// The inverse; padding is not read.
inline void unpair_scales(const std::uint8_t* pairs, index_t outer, index_t blocks, index_t inner,
                          std::uint8_t* plain) {
  for (index_t o = 0; o < outer; ++o)
    for (index_t q = 0; q < blocks; ++q)
      for (index_t n = 0; n < inner; ++n)
        plain[(o * blocks + q) * inner + n] = pairs[(o * divide_up(blocks, 2) + q / 2) * inner * 2 + n * 2 + q % 2];
}

namespace parts {

template <int Axis, class Tensor>
std::vector<std::uint8_t> paired_scales(const Tensor& t) {
  using granularity = typename Tensor::scheme_type::granularity_type;
  constexpr int rank = Tensor::rank;
  static_assert(std::is_same_v<typename Tensor::order_type, row_major> &&
                    std::is_same_v<typename Tensor::scheme_type::scale_format, e8m0>,
                "qtensor: mxscale1 and mxscale2 are layouts of the e8m0 scales of row_major tensors.");
  static_assert(qtensor::detail::from_front(granularity::axis, rank) == rank + Axis,
                "qtensor: mxscale1 lays out scales of groups along the last axis, mxscale2 of groups along the axis "
                "before it; this tensor's groups run along another one.");
  constexpr int axis = rank + Axis;
  const index_t blocks = divide_up(t.extent(axis), t.granularity().size()), inner = Axis == -1 ? 1 : t.extent(rank - 1);
  index_t outer = 1;
  for (int before = 0; before < axis; ++before) outer *= t.extent(before);
  std::vector<std::uint8_t> pairs(static_cast<std::size_t>(outer * divide_up(blocks, 2) * 2 * inner));
  pair_scales(t.scales().data(), outer, blocks, inner, pairs.data());
  return pairs;
}

}  // namespace parts

/// The scales of a tensor with groups along its last axis, as mxscale1Out (or mxscaleOut of axis -1) holds them.
template <quantization_scheme S, tensor_extents E, storage_order O>
std::vector<std::uint8_t> mxscale1(const tensor<S, E, O>& t) {
  return parts::paired_scales<-1>(t);
}
/// The scales of a tensor with groups along the axis before the last, as mxscale2Out holds them.
template <quantization_scheme S, tensor_extents E, storage_order O>
std::vector<std::uint8_t> mxscale2(const tensor<S, E, O>& t) {
  return parts::paired_scales<-2>(t);
}

// ---- Typed entry points: the library's operations within the documents' limits --------------------------------------

namespace parts {

template <format Code, class Rounding, class Rule, int Least, tensor_extents E>
constexpr void check_mx(const E& extents) {
  constexpr bool fp8 = std::is_same_v<Code, e4m3> || std::is_same_v<Code, e5m2>;
  constexpr bool fp4 = std::is_same_v<Code, e2m1> || std::is_same_v<Code, e1m2>;
  static_assert(fp8 || fp4, "qtensor: CANN's MX operators make e5m2, e4m3, e2m1 and e1m2 codes only.");
  static_assert(fp4 || std::is_same_v<Rounding, nearest_even>,
                "qtensor: CANN rounds to FP8 by rint (nearest_even) only; round and floor are for e2m1 and e1m2.");
  static_assert(!fp4 || std::is_same_v<Rounding, nearest_even> || std::is_same_v<Rounding, nearest_away> ||
                    std::is_same_v<Rounding, toward_negative>,
                "qtensor: CANN's round modes are rint (nearest_even), round (nearest_away) and floor "
                "(toward_negative).");
  static_assert(!std::is_same_v<Rule, mx_rceil> || fp8, "qtensor: CANN's scaleAlg 1 (mx_rceil) is for FP8 only.");
  static_assert(Least <= E::rank && E::rank <= 7,
                "qtensor: CANN takes ranks 1 to 7 (DynamicMxQuant) and 2 to 7 (DynamicMxQuantWithDualAxis).");
  constexpr index_t last = E::static_extent(E::rank - 1);
  static_assert(!fp4 || last == dynamic || last % 2 == 0,
                "qtensor: CANN packs two FP4 codes a byte; the last extent must be even.");
  require(!fp4 || extents[E::rank - 1] % 2 == 0, "CANN packs two FP4 codes a byte; the last extent must be even, not ",
          extents[E::rank - 1], ".");
}

}  // namespace parts

inline namespace QTENSOR_ABI {

/// DynamicMxQuantWithDualAxis: tensors `rows` (y1) and `cols` (y2), from one read of x. mxscale1(rows) and
/// mxscale2(cols) are the document's scales. Throws where the last extent of FP4 is odd. on(executor) may come last.
template <format Code, class Rounding = nearest_even, class Rule = mx_floor, format F, tensor_extents E,
          qtensor::detail::execution_option... On>
dual_axis<mx<Code, Rounding, Rule>, E> dynamic_mx_quant_with_dual_axis(const memory_source<F, E>& x, const On&... on) {
  parts::check_mx<Code, Rounding, Rule, 2>(x.extents);
  return quantize_dual_axis<mx<Code, Rounding, Rule>>(x, qtensor::detail::execution_among(on...));
}

/// DynamicMxQuant along one axis, in blocks of N. Throws where the last extent of FP4 is odd. on(executor) may come
/// last.
template <format Code, index_t Axis = last_axis, class Rounding = nearest_even, class Rule = mx_floor, index_t N = 32,
          format F, tensor_extents E, qtensor::detail::execution_option... On>
tensor<mx<Code, Rounding, Rule, N, Axis>, E> dynamic_mx_quant(const memory_source<F, E>& x, const On&... on) {
  parts::check_mx<Code, Rounding, Rule, 1>(x.extents);
  return quantize<mx<Code, Rounding, Rule, N, Axis>>(x, on...);
}

}  // namespace QTENSOR_ABI

// ---- Run-time entry points: the documents' numbers and strings ------------------------------------------------------

/// Whose limits a call keeps. `any`: every input that the formulas give a meaning, on any machine. `ascend950`,
/// `a2_a3`: what the document allows there. `other`: the products without these operators, refused with 361001.
enum class platform { any, ascend950, a2_a3, other };

/// MX blocks whose largest magnitude is a subnormal f32 (subnormal bf16 or f32 sources; every f16 is normal): scaled
/// exactly as the formula says, or codes +0 and -0 as the device's kernels give.
enum class subnormals { exact, to_zero };

/// Infinities and NaNs in DynamicBlockQuant: formulas as written, as the kernels, or left out of the scale, as the
/// golden program.
enum class nonfinites { literal, ignored };

/// Attributes of the MX operators.
struct mx_attributes {
  const char* round_mode = nullptr;  ///< "rint", "floor", "round"; null is "rint". FP8: "rint" only
  std::int64_t dst_type = 0;         ///< 35 e5m2, 36 e4m3, 40 e2m1, 41 e1m2
  std::int64_t block_size = 32;      ///< a multiple of 32 up to 1024; 32 with dual axis and with scale_alg 2
  std::int64_t scale_alg = 0;        ///< 0 OCP; 1 cuBLAS, FP8 only; 2 range of e2m1, e2m1 only
  double dst_type_max = 0;           ///< with scale_alg 2: 0 or 6 to 12
  double max_low_bound = 0;          ///< with scale_alg 1: smallest amax of a block, 0 for none
  cann::subnormals subnormals = cann::subnormals::exact;
  cann::platform platform = cann::platform::any;
};

/// Attributes of DynamicBlockQuant.
struct block_attributes {
  float min_scale = 0;                 ///< at least 0; 1 / min_scale is the largest scale, 0 sets no bound
  const char* round_mode = nullptr;    ///< "rint", "round"; null is "rint"
  std::int64_t dst_type = type::e5m2;  ///< 2 int8, 34 hif8, 35 e5m2, 36 e4m3
  std::int64_t row_block_size = 1;     ///< at least 1; 1 or 128 on ascend950, 1 on a2_a3
  std::int64_t col_block_size = 128;   ///< at least 1
  float dst_type_max = 0;              ///< hif8's largest code: 0 (32768), 15, 56, 224 or 32768
  cann::nonfinites nonfinites = cann::nonfinites::literal;
  cann::platform platform = cann::platform::any;
};

namespace parts::inline QTENSOR_ABI {

enum class round_mode { rint, floor, round };
inline std::optional<round_mode> round_mode_of(const char* name) {
  if (name == nullptr || std::strcmp(name, "rint") == 0) return round_mode::rint;
  if (std::strcmp(name, "floor") == 0) return round_mode::floor;
  if (std::strcmp(name, "round") == 0) return round_mode::round;
  return std::nullopt;
}

/// Codes under given scales in a format: CANN's saturating casts, which turn NaN into 0.
template <format Code, format Scale, class Rounding>
using codes_of = with<scheme<Code, per_tensor, scale_as<Scale>, static_only>, Rounding, nan_to_zero>;

template <format Code, format Scale>
codec codec_by(round_mode mode) {
  return mode == round_mode::round ? codec_of<codes_of<Code, Scale, nearest_away>>()
                                   : codec_of<codes_of<Code, Scale, nearest_even>>();
}
template <format Code>
codec fp4_codec_by(round_mode mode) {
  return mode == round_mode::floor ? codec_of<codes_of<Code, e8m0, toward_negative>>() : codec_by<Code, e8m0>(mode);
}

/// MX: scale code and power of two by a rule of this library. A NaN scale makes every code 0, an infinite one +0 or -0.
inline block_scale power_of_two(std::uint32_t amax_bits, const scale_rule& r, float (*rule)(float, const scale_rule&)) {
  if (amax_bits >= infinity_bits) return {0xFF, quiet_nan};
  const bool flushed = r.flush_subnormals && amax_bits < 0x00800000u;
  const float s = rule(flushed ? 0.f : float_of(amax_bits), r);
  return {bits_of(s) >> 23, flushed ? infinity : s};  // 2^-127 is a subnormal with field 0, its code
}
template <class Rule, format Code>
block_scale mx_block(std::uint32_t amax_bits, const scale_rule& r) {
  return power_of_two(amax_bits, r, [](float amax, const scale_rule& with) {
    return Rule::template scale<Code, e8m0>(amax < with.bound ? with.bound : amax, {});
  });
}
/// scaleAlg 2 where dst_type_max is neither 0, 6 nor 7; `bound` is its inverse.
inline block_scale mx_ranged_block(std::uint32_t amax_bits, const scale_rule& r) {
  return power_of_two(amax_bits, r, [](float amax, const scale_rule& with) {
    return mx_dynamic_range<8>::scale_below(amax, with.bound);
  });
}

/// DynamicBlockQuant; `bound` is the largest code. A NaN is one NaN, whatever its payload.
inline block_scale divided_block(std::uint32_t amax_bits, const scale_rule& r) {
  if (amax_bits > infinity_bits) return {bits_of(quiet_nan), quiet_nan};
  const float s = bounded_amax<>::scale_above(float_of(amax_bits), r.bound, r.min_scale);
  return {bits_of(s), s};
}
inline block_scale multiplied_block(std::uint32_t amax_bits, const scale_rule& r) {
  if (amax_bits > infinity_bits) return {bits_of(quiet_nan), quiet_nan};
  const float amax = float_of(amax_bits);
  return {bits_of(reciprocal_amax<>::scale_above(amax, r.bound, r.min_scale)),
          reciprocal_amax<>::multiplier_above(amax, r.bound, r.min_scale)};
}

inline codec mx_codec(const mx_attributes& how) {
  const round_mode mode = *round_mode_of(how.round_mode);
  if (how.dst_type == type::e5m2) return codec_of<codes_of<e5m2, e8m0, nearest_even>>();
  if (how.dst_type == type::e4m3) return codec_of<codes_of<e4m3, e8m0, nearest_even>>();
  return how.dst_type == type::e2m1 ? fp4_codec_by<e2m1>(mode) : fp4_codec_by<e1m2>(mode);
}
inline scale_rule mx_rule(const mx_attributes& how) {
  scale_rule r{nullptr, static_cast<float>(how.max_low_bound), 0.f, how.subnormals == subnormals::to_zero};
  const bool e5m2_codes = how.dst_type == type::e5m2;
  if (how.scale_alg == 1) {
    r.of = e5m2_codes ? each_block<mx_block<mx_rceil, e5m2>> : each_block<mx_block<mx_rceil, e4m3>>;
  } else if (how.scale_alg == 2) {
    const float max = static_cast<float>(how.dst_type_max);
    r.of = max == 0.f || max == 6.f ? each_block<mx_block<mx_dynamic_range<6>, e2m1>>
           : max == 7.f             ? each_block<mx_block<mx_dynamic_range<7>, e2m1>>
                                    : each_block<mx_ranged_block>;
    if (r.of == each_block<mx_ranged_block>) r.bound = 1.f / max;
  } else {
    r.of = e5m2_codes                   ? each_block<mx_block<mx_floor, e5m2>>
           : how.dst_type == type::e4m3 ? each_block<mx_block<mx_floor, e4m3>>
           : how.dst_type == type::e2m1 ? each_block<mx_block<mx_floor, e2m1>>
                                        : each_block<mx_block<mx_floor, e1m2>>;
  }
  return r;
}

/// 161002 where an enumeration holds a number that is none of its choices.
template <class Choice>
status check_choice(const char* name, Choice choice, Choice last) {
  if (choice < Choice{} || choice > last)
    return failure(param_invalid, name, " is ", static_cast<int>(choice), "; its choices are 0 to ",
                   static_cast<int>(last), ".");
  return {};
}

/// The attributes of an MX operator, and x as far as they speak of it.
inline status check_mx(const input& x, const mx_attributes& how) {
  if (status s = check_choice("subnormals", how.subnormals, subnormals::to_zero); !s.ok()) return s;
  const bool fp8 = how.dst_type == type::e5m2 || how.dst_type == type::e4m3;
  const bool fp4 = how.dst_type == type::e2m1 || how.dst_type == type::e1m2;
  if (!fp8 && !fp4)
    return failure(param_invalid, "dst_type is ", how.dst_type,
                   "; it must be 35 (e5m2), 36 (e4m3), 40 (e2m1) or 41 (e1m2).");
  const std::optional<round_mode> mode = round_mode_of(how.round_mode);
  if (!mode) return failure(param_invalid, "round_mode is \"", how.round_mode, "\"; it must be rint, floor or round.");
  if (fp8 && *mode != round_mode::rint)
    return failure(param_invalid, "round_mode is \"", how.round_mode,
                   "\"; FP8 (dst_type 35, 36) is rounded by rint only.");
  if (fp4 && x.sizes[x.sizes.rank() - 1] % 2 != 0)
    return failure(param_invalid, "the last axis of x has ", x.sizes[x.sizes.rank() - 1],
                   " elements; for FP4 (dst_type 40, 41) it must be even.");
  if (how.scale_alg < 0 || how.scale_alg > 2)
    return failure(param_invalid, "scale_alg is ", how.scale_alg, "; it must be 0, 1 or 2.");
  if (how.scale_alg == 1 && !fp8) return failure(param_invalid, "scale_alg 1 is for FP8 (dst_type 35, 36) only.");
  if (how.scale_alg == 2 && how.dst_type != type::e2m1)
    return failure(param_invalid, "scale_alg 2 is for e2m1 (dst_type 40) only.");
  if (how.block_size < 32 || how.block_size > 1024 || how.block_size % 32 != 0)
    return failure(param_invalid, "block_size is ", how.block_size, "; it must be a multiple of 32 up to 1024.");
  if (how.scale_alg == 2 && how.block_size != 32)
    return failure(param_invalid, "block_size is ", how.block_size, "; scale_alg 2 takes blocks of 32.");
  if (how.dst_type_max != 0 && (how.scale_alg != 2 || !(how.dst_type_max >= 6 && how.dst_type_max <= 12)))
    return failure(param_invalid, "dst_type_max is ", how.dst_type_max, "; it must be 0, or 6 to 12 with scale_alg 2.");
  if (how.max_low_bound != 0 &&
      (how.scale_alg != 1 || !(how.max_low_bound > 0 && is_finite(static_cast<float>(how.max_low_bound)))))
    return failure(param_invalid, "max_low_bound is ", how.max_low_bound,
                   "; it must be 0, or a positive f32 number with scale_alg 1.");
  return {};
}

inline status check_platform(const char* name, platform p, bool on_a2_a3) {
  if (status s = check_choice("platform", p, platform::other); !s.ok()) return s;
  if (p == platform::other || (p == platform::a2_a3 && !on_a2_a3))
    return failure(runtime_error, name, " is not supported on this platform.");
  return {};
}

inline status ran(bool done) {
  if (!done) return failure(runtime_error, "there is no memory for a tile of blocks.");
  return {};
}

}  // namespace parts::inline QTENSOR_ABI

inline namespace QTENSOR_ABI {

/// aclnnDynamicMxQuantWithDualAxis: x of rank 2 to 7 in blocks of 32 along its last axis (y1, mxscale1) and along the
/// one before it (y2, mxscale2), both of the original numbers; x is read once.
///   y1, y2     sizes of x, type dst_type
///   mxscale1   mxscale_sizes(x, -1), type 37;  mxscale2: mxscale_sizes(x, -2)
/// 161001: a null pointer; 161002: types, ranks, sizes, strides, alignment or attributes out of range, an output that
/// overlaps x, another output or itself; 361001: platform, or no memory. The document's own limits (scale_alg 0, f16
/// and bf16 sources) hold on platform::ascend950.
inline status dynamic_mx_quant_with_dual_axis(const input& x, const mx_attributes& how, const output& y1,
                                              const output& mxscale1, const output& y2, const output& mxscale2) {
  struct named {
    const char* name;
    const output& y;
  } const outputs[] = {{"y1", y1}, {"mxscale1", mxscale1}, {"y2", y2}, {"mxscale2", mxscale2}};
  if (status s = parts::check_pointer("x", x); !s.ok()) return s;
  for (const named& out : outputs)
    if (status s = parts::check_pointer(out.name, out.y); !s.ok()) return s;
  if (status s = parts::check_platform("DynamicMxQuantWithDualAxis", how.platform, false); !s.ok()) return s;
  if (status s = parts::check_input(x, 2, 7); !s.ok()) return s;
  if (status s = parts::check_mx(x, how); !s.ok()) return s;
  if (how.block_size != 32)
    return parts::failure(param_invalid, "block_size is ", how.block_size, "; dual axis takes blocks of 32.");
  if (how.platform == platform::ascend950 && (how.scale_alg != 0 || x.type == type::f32))
    return parts::failure(param_invalid, "on ascend950 dual axis takes scale_alg 0 and f16 or bf16 sources.");
  for (int i = 0; i < 4; ++i) {
    const dims wanted = i % 2 == 0 ? x.sizes : mxscale_sizes(x.sizes, i == 1 ? -1 : -2);
    if (status s =
            parts::check_output(outputs[i].name, outputs[i].y, i % 2 == 0 ? how.dst_type : type::e8m0, wanted, x);
        !s.ok())
      return s;
    for (int k = 0; k < i; ++k)
      if (status s = parts::check_apart(outputs[k].name, outputs[k].y, outputs[i].name, outputs[i].y); !s.ok())
        return s;
  }
  if (parts::is_empty(x)) return {};
  const parts::codec codes = parts::mx_codec(how);
  const parts::scale_rule rule = parts::mx_rule(how);
  const parts::job jobs[] = {{1, 32, codes, rule, false, &y1, &mxscale1, parts::pairs::cols},
                             {32, 1, codes, rule, false, &y2, &mxscale2, parts::pairs::rows}};
  return parts::ran(parts::block_walk(x, jobs, 2, x.sizes.rank() - 2, x.sizes.rank() - 1).run());
}

/// aclnnDynamicMxQuant (and its V2 and V3): x of rank 1 to 7 in blocks of block_size along `axis`.
///   y          sizes of x, type dst_type
///   mxscale    mxscale_sizes(x, axis, block_size), type 37; the scales of two blocks stand together
/// Status values as above. On platform::ascend950 f32 sources need blocks of 32 and 32 elements along the axis.
inline status dynamic_mx_quant(const input& x, std::int64_t axis, const mx_attributes& how, const output& y,
                               const output& mxscale) {
  if (status s = parts::check_pointer("x", x); !s.ok()) return s;
  if (status s = parts::check_pointer("y", y); !s.ok()) return s;
  if (status s = parts::check_pointer("mxscale", mxscale); !s.ok()) return s;
  if (status s = parts::check_platform("DynamicMxQuant", how.platform, false); !s.ok()) return s;
  if (status s = parts::check_input(x, 1, 7); !s.ok()) return s;
  if (status s = parts::check_mx(x, how); !s.ok()) return s;
  const int rank = x.sizes.rank();
  if (axis < -rank || axis >= rank)
    return parts::failure(param_invalid, "axis is ", axis, "; x of rank ", rank, " has axes ", -rank, " to ", rank - 1,
                          ".");
  const int at = qtensor::detail::from_front(axis, rank);
  if (how.platform == platform::ascend950 && x.type == type::f32 && (how.block_size != 32 || x.sizes[at] < 32))
    return parts::failure(param_invalid,
                          "on ascend950 f32 sources need blocks of 32 and at least 32 elements along the axis.");
  if (status s = parts::check_output("y", y, how.dst_type, x.sizes, x); !s.ok()) return s;
  const dims wanted = mxscale_sizes(x.sizes, at, how.block_size);
  if (status s = parts::check_output("mxscale", mxscale, type::e8m0, wanted, x); !s.ok()) return s;
  if (status s = parts::check_apart("y", y, "mxscale", mxscale); !s.ok()) return s;
  if (parts::is_empty(x)) return {};
  const bool across = at == rank - 1;
  const parts::job job{across ? 1 : how.block_size,
                       across ? how.block_size : 1,
                       parts::mx_codec(how),
                       parts::mx_rule(how),
                       false,
                       &y,
                       &mxscale,
                       across ? parts::pairs::cols : parts::pairs::rows};
  return parts::ran(parts::block_walk(x, &job, 1, across ? rank - 2 : at, rank - 1).run());
}

/// DynamicBlockQuant: x [R, C] or [B, R, C] in blocks of row_block_size x col_block_size, which do not cross B.
///   y          sizes of x, type dst_type
///   scale      f32, [ceil(R / row_block_size), ceil(C / col_block_size)] after B; y * scale is about x
/// Status values as above. On platform::a2_a3: int8 by reciprocals, rint, rows of one, f16 and bf16. On
/// platform::ascend950: rank 2, rint with FP8, round with hif8, no int8, rows of 1 or 128, f16 and bf16. On
/// platform::any every combination, int8 by exact division.
inline status dynamic_block_quant(const input& x, const block_attributes& how, const output& y, const output& scale) {
  using parts::failure;
  if (status s = parts::check_pointer("x", x); !s.ok()) return s;
  if (status s = parts::check_pointer("y", y); !s.ok()) return s;
  if (status s = parts::check_pointer("scale", scale); !s.ok()) return s;
  if (status s = parts::check_platform("DynamicBlockQuant", how.platform, true); !s.ok()) return s;
  if (status s = parts::check_input(x, 2, 3); !s.ok()) return s;
  if (status s = parts::check_choice("nonfinites", how.nonfinites, nonfinites::ignored); !s.ok()) return s;
  const std::optional<parts::round_mode> mode = parts::round_mode_of(how.round_mode);
  if (!mode || *mode == parts::round_mode::floor)
    return failure(param_invalid, "round_mode is \"", how.round_mode, "\"; it must be rint or round.");
  const bool int8_codes = how.dst_type == type::int8, hif8_codes = how.dst_type == type::hif8;
  if (!int8_codes && !hif8_codes && how.dst_type != type::e5m2 && how.dst_type != type::e4m3)
    return failure(param_invalid, "dst_type is ", how.dst_type,
                   "; it must be 2 (int8), 34 (hif8), 35 (e5m2) or 36 (e4m3).");
  if (!(how.min_scale >= 0.f) || !is_finite(how.min_scale))
    return failure(param_invalid, "min_scale is ", how.min_scale, "; it must be a finite number and at least 0.");
  if (how.row_block_size < 1 || how.col_block_size < 1)
    return failure(param_invalid, "blocks are ", how.row_block_size, " x ", how.col_block_size,
                   "; sizes are at least 1.");
  const float most = how.dst_type_max;
  if (most != 0.f && !(hif8_codes && (most == 15.f || most == 56.f || most == 224.f || most == 32768.f)))
    return failure(param_invalid, "dst_type_max is ", most,
                   "; it must be 0, or 15, 56, 224 or 32768 with hif8 (dst_type 34).");
  const bool rint = *mode == parts::round_mode::rint;
  if (how.platform == platform::a2_a3) {
    if (!int8_codes || !rint || how.row_block_size != 1)
      return failure(param_invalid, "on a2_a3 dst_type must be 2 (int8), round_mode rint and row_block_size 1.");
  } else if (how.platform == platform::ascend950) {
    if (x.sizes.rank() != 2)
      return failure(param_invalid, "x has rank ", x.sizes.rank(), "; on ascend950 it must be 2.");
    if (int8_codes) return failure(param_invalid, "on ascend950 dst_type must be 34 (hif8), 35 (e5m2) or 36 (e4m3).");
    if (rint == hif8_codes)
      return failure(param_invalid, "on ascend950 round_mode must be round with hif8 and rint with FP8.");
    if (how.row_block_size != 1 && how.row_block_size != 128)
      return failure(param_invalid, "row_block_size is ", how.row_block_size, "; on ascend950 it must be 1 or 128.");
  }
  if (how.platform != platform::any && x.type == type::f32)
    return failure(param_invalid, "x has data type 0 (f32); the platform takes f16 and bf16.");
  const int rows = x.sizes.rank() - 2, cols = rows + 1;
  dims wanted = x.sizes;
  wanted[rows] = divide_up(x.sizes[rows], how.row_block_size);
  wanted[cols] = divide_up(x.sizes[cols], how.col_block_size);
  if (status s = parts::check_output("y", y, how.dst_type, x.sizes, x); !s.ok()) return s;
  if (status s = parts::check_output("scale", scale, type::f32, wanted, x); !s.ok()) return s;
  if (status s = parts::check_apart("y", y, "scale", scale); !s.ok()) return s;
  if (parts::is_empty(x)) return {};

  using multiplied = with<parts::codes_of<int8, f32, nearest_even>, reciprocal_amax<>, rule_multiplier>;
  const bool by_reciprocals = how.platform == platform::a2_a3;
  const parts::codec codes = by_reciprocals               ? parts::codec_of<multiplied>()
                             : int8_codes                 ? parts::codec_by<int8, f32>(*mode)
                             : hif8_codes                 ? parts::codec_by<hif8, f32>(*mode)
                             : how.dst_type == type::e5m2 ? parts::codec_by<e5m2, f32>(*mode)
                                                          : parts::codec_by<e4m3, f32>(*mode);
  const float largest = most != 0.f                  ? most
                        : int8_codes                 ? static_cast<float>(int8::max)
                        : hif8_codes                 ? hif8::max
                        : how.dst_type == type::e5m2 ? e5m2::max
                                                     : e4m3::max;
  const parts::scale_rule rule{
      by_reciprocals ? parts::each_block<parts::multiplied_block> : parts::each_block<parts::divided_block>, largest,
      how.min_scale};
  const parts::job job{
      how.row_block_size, how.col_block_size, codes, rule, how.nonfinites == nonfinites::ignored, &y, &scale,
      parts::pairs::none};
  return parts::ran(parts::block_walk(x, &job, 1, rows, cols).run());
}

}  // namespace QTENSOR_ABI

}  // namespace qtensor::compat::cann
