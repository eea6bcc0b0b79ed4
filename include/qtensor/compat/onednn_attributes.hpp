// oneDNN's quantization attributes: masks, groups, parameters, and the choices of a conversion (NUMERICS 5).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <qtensor/compat/onednn_types.hpp>
#include <span>
#include <string>
#include <vector>

namespace qtensor::compat::onednn {

// ---- What a caller says --------------------------------------------------------------------------------------------

/// Scales or zero points of an argument. Bit d of the mask: they vary along dimension d. `groups` are empty, {G} for
/// the last dimension, or {G0, G1} for the last two, whose bits must then be set; elements share a value in runs of G,
/// and 1 is no run. A dense row-major array of (masked ? extent / group : 1) values on every dimension.
///   [K, N] = [1024, 512], mask 3, groups {64, 1}: 16 x 512 values
struct parameter {
  const void* data = nullptr;  ///< null: no scale (1), no zero point (0)
  data_type type = data_type::undef;
  int mask = 0;
  std::vector<index_t> groups = {};
};

// What an implementation of oneDNN does where its document leaves room. The first of each is the default.

/// d / destination scale, or d * RN(1 / destination scale).
enum class division { exact, reciprocal };
/// rint(clamp(d + zero point)), or clamp(rint(d) + zero point).
enum class zero_point_order { before_round, after_round };
/// To nearest even; unbiased stochastic, our Philox rule of NUMERICS 5.6 (any destination); oneDNN's, which is biased
/// (bf16, f16 and FP8 destinations, saturating), with today's generator or that of its source of 2025-03.
enum class rounding_mode { nearest_even, stochastic, stochastic_onednn, stochastic_onednn_2025_03 };
/// Whether f32 goes through f16 on its way to FP8.                                          43C807EF -> e4m3 7C or 7D
enum class fp8_path { via_f16, direct };
/// Beyond the largest number of a float type: infinity or NaN, or that number. f4_e2m1 always saturates.
enum class float_overflow { to_special, saturate };
/// A NaN into an integer type: the zero point, 0, or what the default AVX-512 kernels give: the lowest code of signed
/// types, the highest of unsigned ones.
enum class nan_to_integer { zero_point, zero, extreme };
/// -0 in float destinations: as computed, or always +0.
enum class zero_sign { kept, positive };
/// Numbers below 2^-126 into bf16: rounded, or zeros of their sign.
enum class bf16_subnormals { kept, flushed };

/// How `reorder` converts: d = source scale * (x - source zero point); d += beta * old destination; d = d / destination
/// scale + destination zero point; the code of d. Every step is rounded to f32.
struct attributes {
  parameter src_scale = {}, src_zero_point = {}, dst_scale = {}, dst_zero_point = {};
  float beta = 0.f;

  onednn::division division = division::exact;
  onednn::zero_point_order zero_point_order = zero_point_order::before_round;
  rounding_mode rounding = rounding_mode::nearest_even;
  std::int32_t seed = 0;     ///< of the stochastic modes
  std::uint64_t offset = 0;  ///< added to an element's number in the array to find its random word
  onednn::fp8_path fp8_path = fp8_path::via_f16;
  onednn::float_overflow float_overflow = float_overflow::to_special;
  onednn::nan_to_integer nan_to_integer = nan_to_integer::zero_point;
  onednn::zero_sign zero_sign = zero_sign::kept;
  onednn::bf16_subnormals bf16_subnormals = bf16_subnormals::kept;
};

/// The choices of oneDNN's implementations as they were run (3.12.1), by the names they report: "simple" divides, makes
/// every zero positive and a NaN 0; "jit" multiplies by the reciprocal and makes a NaN an extreme. Both flush
/// subnormals on their way to bf16.
enum class implementation { simple, jit };
inline attributes as_in(implementation how) {
  attributes a;
  const bool simple = how == implementation::simple;
  a.division = simple ? division::exact : division::reciprocal;
  a.nan_to_integer = simple ? nan_to_integer::zero : nan_to_integer::extreme;
  a.zero_sign = simple ? zero_sign::positive : zero_sign::kept;
  a.bf16_subnormals = bf16_subnormals::flushed;
  return a;
}

namespace detail {

using qtensor::detail::check_choice;

}  // namespace detail

/// Throws where an enumeration holds a number that is none of its choices.
inline void check_choices(const attributes& a) {
  const auto check = [](std::string_view what, auto choice, auto last) { detail::check_choice(what, choice, last); };
  check("attributes::division", a.division, division::reciprocal);
  check("attributes::zero_point_order", a.zero_point_order, zero_point_order::after_round);
  check("attributes::rounding", a.rounding, rounding_mode::stochastic_onednn_2025_03);
  check("attributes::fp8_path", a.fp8_path, fp8_path::direct);
  check("attributes::float_overflow", a.float_overflow, float_overflow::saturate);
  check("attributes::nan_to_integer", a.nan_to_integer, nan_to_integer::extreme);
  check("attributes::zero_sign", a.zero_sign, zero_sign::positive);
  check("attributes::bf16_subnormals", a.bf16_subnormals, bf16_subnormals::flushed);
}

// ---- What the masks and groups mean --------------------------------------------------------------------------------

inline constexpr int most_dims = 12;

/// The number of elements; throws on more than 12 dimensions, on none, on a negative extent, and where the product
/// overflows.
inline index_t element_count(std::span<const index_t> dims) {
  require(!dims.empty() && dims.size() <= static_cast<std::size_t>(most_dims), "a tensor of ", dims.size(),
          " dimensions is given; oneDNN has 1 to 12.");
  for (std::size_t d = 0; d < dims.size(); ++d)
    require(dims[d] >= 0, "dimension ", d, " is ", dims[d], "; extents are at least 0.");
  return qtensor::detail::checked_product(dims);
}

/// The extents of a parameter's array for a tensor of these dims; `what` begins the sentence of a refusal. Throws on
/// bits of the mask beyond the dims, more than two groups, a group below 1, on a dimension whose bit is not set, or
/// that does not divide its extent.
///   [8, 1024, 512], mask 7, {64, 1} -> [8, 16, 512]; mask 5, {} -> [8, 1, 512]
inline std::vector<index_t> parameter_dims(std::string_view what, std::span<const index_t> dims, int mask,
                                           std::span<const index_t> groups) {
  const std::size_t rank = dims.size();
  element_count(dims);
  require(mask >= 0 && mask < 1 << rank, "the mask of ", what, " is ", mask, "; a tensor of ", rank,
          " dimensions has masks from 0 to ", (1 << rank) - 1, ".");
  require(groups.size() <= 2 && groups.size() <= rank, what, " has ", groups.size(),
          " groups; they are none, one for the last dimension, or two for the last two of ", rank, ".");
  std::vector<index_t> out(rank, 1);
  for (std::size_t d = 0; d < rank; ++d) {
    const bool masked = (mask >> d & 1) != 0;
    index_t group = 1;
    if (d + groups.size() >= rank) {
      group = groups[d + groups.size() - rank];
      require(group >= 1, what, " has a group of ", group, " on dimension ", d, "; groups are at least 1.");
      require(masked, what, " has a group of ", group, " on dimension ", d, ", whose bit is not set in its mask ", mask,
              ".");
      require(dims[d] % group == 0, "the groups of ", what, " have ", group, " elements on dimension ", d,
              ", which do not divide its extent ", dims[d], ".");
    }
    if (masked) out[d] = dims[d] / group;
  }
  return out;
}

namespace detail {

/// As a caller writes it: {1, 32}.
inline std::string list_text(std::span<const index_t> list) {
  std::string text = "{";
  for (std::size_t i = 0; i < list.size(); ++i) text += (i != 0 ? ", " : "") + std::to_string(list[i]);
  return text + "}";
}

/// A parameter found valid: on every dimension, how many neighbours share a value, and how far the next value lies.
struct parameter_map {
  const void* data = nullptr;
  data_type type = data_type::undef;
  index_t count = 0;
  std::vector<index_t> run, step;  // step 0 where nothing varies

  bool given() const { return data != nullptr; }
  /// Leaves out dimension d, which the next one has joined.
  void drop(std::size_t d) {
    if (!given()) return;
    run.erase(run.begin() + static_cast<std::ptrdiff_t>(d));
    step.erase(step.begin() + static_cast<std::ptrdiff_t>(d));
  }
};

inline bool is_scale_type(data_type t) {
  return t == data_type::f32 || t == data_type::bf16 || t == data_type::f16 || t == data_type::f8_e5m2 ||
         t == data_type::f8_e4m3 || t == data_type::e8m0;
}
inline bool is_zero_point_type(data_type t) { return is_integer(t); }

inline parameter_map map_of(std::string_view what, const parameter& p, std::span<const index_t> dims, bool is_scale) {
  parameter_map out;
  const std::vector<index_t> extents = parameter_dims(what, dims, p.mask, p.groups);
  if (p.data == nullptr) return out;
  require(is_scale ? is_scale_type(p.type) : is_zero_point_type(p.type), what, " is of type ", name_of(p.type), "; ",
          is_scale ? "scales are f32, bf16, f16, f8_e5m2, f8_e4m3 or e8m0." : "zero points are s32, s8, u8, s4 or u4.");
  out.data = p.data;
  out.type = p.type;
  out.count = element_count(extents);  // 0 where an extent is, however large the others
  out.run.resize(dims.size(), 1);
  out.step.resize(dims.size(), 0);
  index_t step = out.count == 0 ? 0 : 1;
  for (std::size_t d = dims.size(); d-- > 0; step *= extents[d]) {
    const bool masked = (p.mask >> d & 1) != 0;
    out.run[d] = masked && extents[d] > 0 ? dims[d] / extents[d] : 1;
    out.step[d] = masked ? std::max(step, index_t{1}) : 0;
  }
  return out;
}

/// Whether dimensions d and d + 1 are one to a parameter: it varies along neither, or along both element by element.
inline bool joins(const parameter_map& p, std::size_t d, index_t inner) {
  if (!p.given() || (p.step[d] == 0 && p.step[d + 1] == 0)) return true;
  return p.step[d] != 0 && p.step[d + 1] != 0 && p.run[d] == 1 && p.run[d + 1] == 1 &&
         p.step[d] == inner * p.step[d + 1];
}

/// Memory [first, end) of a dense buffer. Throws where it is null, not aligned to its elements, or reaches over the end
/// of memory.
struct extent {
  std::uintptr_t first = 0, end = 0;
  bool overlaps(const extent& other) const { return first < other.end && other.first < end; }

  static extent of(std::string_view what, const void* data, data_type type, index_t count) {
    extent m;
    if (count == 0) return m;
    require(data != nullptr, what, " is null, but has ", count, " elements.");
    m.first = reinterpret_cast<std::uintptr_t>(data);
    const auto size = static_cast<std::uintptr_t>(bits_of_type(type) < 8 ? 1 : bits_of_type(type) / 8);
    require(m.first % size == 0, what, " is not aligned to ", size, " bytes, the size of ", name_of(type), ".");
    require(!__builtin_add_overflow(m.first, static_cast<std::uintptr_t>(byte_count(type, count)), &m.end), what,
            " reaches over the end of memory.");
    return m;
  }
};

}  // namespace detail

}  // namespace qtensor::compat::onednn
