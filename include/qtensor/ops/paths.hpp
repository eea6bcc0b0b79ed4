// Which conversions run on vectors here, and which on the scalar reference: the same bits, another time.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/ops/dequantize.hpp>
#include <qtensor/ops/quantize.hpp>

namespace qtensor::inline QTENSOR_ABI::ops {

/// Whether this unit is compiled for a CPU that has a level: x86-64 alone, without `-march`, has none.
inline constexpr bool has_level = !std::same_as<simd::best_arch, simd::scalar_arch>;

/// Whether quantizing matrices by a scheme's own rules runs on vectors. docs/kernels.md tells it of the library's
/// schemes, and why not.
template <quantization_scheme Scheme>
constexpr bool quantizes_on_vectors() {
  using S = qtensor::detail::basic_scheme_of<Scheme>;
  if constexpr (S::is_interleaved)
    return has_level && simd::block_encodable<S>;
  else if constexpr (quantizes_in_blocks<S, row_major, 2>())
    return has_level;
  else if constexpr (quantizes_less_offsets<S>())
    return quantizes_on_vectors<without_offsets<S>>();
  else
    return walks_rows<S> && simd::kernel_name<simd::op::encode, typename run_scheme<S>::type>() != "reference";
}
/// Whether dequantizing them does.
template <quantization_scheme Scheme>
constexpr bool dequantizes_on_vectors() {
  using S = qtensor::detail::basic_scheme_of<Scheme>;
  if constexpr (S::is_interleaved)
    return has_level && simd::block_decodable<S>;
  else
    return simd::codes_in_runs<S> && simd::kernel_name<simd::op::decode, stored<S>>() != "reference";
}

}  // namespace qtensor::inline QTENSOR_ABI::ops
