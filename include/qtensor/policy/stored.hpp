// Policies that say what is stored beside the codes: scale format, zero point, offset, tensor scale, range of codes.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/format/integer.hpp>
#include <qtensor/format/wide.hpp>
#include <qtensor/policy/granularity.hpp>
#include <qtensor/policy/slot.hpp>

namespace qtensor {

/// "This scheme stores none of these."
struct none {};

/// The format of the scales. Default f32.
template <format F>
struct scale_as {
  using slot = slot::scale_format;
  using type = F;
  static constexpr auto name = "scale_as<" + F::name + ">";
};

/// Real 0 is code 0. The default.
struct symmetric {
  using slot = slot::zero_point;
  using type = none;
  static constexpr fixed_string name = "symmetric";
};

/// In `zero_point<F>`: zero points are shared as scales are.
struct as_scales {};

/// Real 0 is the code `zp`, stored as F, shared by the elements of G (default: by those that share a scale).
/// value = (code - zp) * scale.
template <format F, class G = as_scales>
requires(granularity<G> || std::same_as<G, as_scales>) struct zero_point {
  using slot = slot::zero_point;
  using type = F;
  using granularity_type = G;
  static constexpr auto name = [] {
    if constexpr (std::same_as<G, as_scales>)
      return "zero_point<" + F::name + ">";
    else
      return "zero_point<" + F::name + ", " + G::name + ">";
  }();
};

/// value = code * scale + offset; one offset, stored as F, beside every scale. ggml's "m".
template <format F>
struct offset {
  using slot = slot::offset;
  using type = F;
  static constexpr auto name = "offset<" + F::name + ">";
};
/// value = code * scale. The default.
struct no_offset {
  using slot = slot::offset;
  using type = none;
  static constexpr fixed_string name = "no_offset";
};

/// value = code * scale * tensor_scale; one number for the whole tensor. Two-level NVFP4.
template <format F>
struct tensor_scale {
  using slot = slot::tensor_scale;
  using type = F;
  static constexpr auto name = "tensor_scale<" + F::name + ">";
};
/// One level of scales. The default.
struct one_level {
  using slot = slot::tensor_scale;
  using type = none;
  static constexpr fixed_string name = "one_level";
};

/// Codes stay in [Low, High]. StableHLO's i8<-127:127>.
template <index_t Low, index_t High>
struct stored_range {
  static_assert(Low < High, "qtensor: stored_range<low, high> needs low < high.");
  using slot = slot::stored_range;
  static constexpr index_t low = Low, high = High;
  static constexpr auto name = "stored_range<" + number_name<Low>() + "," + number_name<High>() + ">";
};
/// Codes use the whole format. The default.
struct full_range {
  using slot = slot::stored_range;
  static constexpr fixed_string name = "full_range";
};

}  // namespace qtensor
