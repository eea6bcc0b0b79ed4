// Kernels over pointers: one run of numbers, one call, nothing allocated.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/ops/dequantize.hpp>

namespace qtensor::detail {

/// What kernels of one scale need of a scheme.
template <class S>
constexpr void check_one_scale() {
  static_assert(!S::has_offset && !S::has_tensor_scale,
                "qtensor: this scheme stores more than a scale and a zero point; use a tensor or a view of it.");
}

}  // namespace qtensor::detail

namespace qtensor::inline QTENSOR_ABI::kernels {

/// n floats with one scale to codes: `kernels::quantize<int8_per_tensor>(src, n, scale, dst)`.
/// Reads src[0, n); writes n codes (packed formats: whole bytes, the last one padded with zeros). The scale must be
/// positive and finite; with a zero point, it must be a code.
template <quantization_scheme S>
void quantize(const float* src, index_t n, float scale, detail::code_unit_t<S>* dst) {
  static_assert(!S::is_interleaved,
                "qtensor: an interleaved scheme stores scales between its codes; quantize a tensor of it.");
  detail::check_one_scale<S>();
  QTENSOR_ASSERT(n >= 0, "kernels::quantize needs n of at least 0.");
  QTENSOR_ASSERT(is_finite(scale) && scale > 0.f, "kernels::quantize needs a positive and finite scale.");
  simd::encode_uniform<S>(src, n, element_scale{scale}, 0, dst);
}
template <quantization_scheme S>
void quantize(const float* src, index_t n, float scale, std::int32_t zero_point, detail::code_unit_t<S>* dst) {
  detail::check_one_scale<S>();
  static_assert(S::has_zero_point, "qtensor: this scheme is symmetric; kernels::quantize takes no zero point for it.");
  QTENSOR_ASSERT(n >= 0, "kernels::quantize needs n of at least 0.");
  QTENSOR_ASSERT(is_finite(scale) && scale > 0.f, "kernels::quantize needs a positive and finite scale.");
  simd::encode_uniform<S>(src, n, element_scale{scale}, zero_point, dst);
}

/// n codes with one scale to floats. Reads the bytes that hold n codes; writes dst[0, n).
template <quantization_scheme S>
void dequantize(const detail::code_unit_t<S>* src, index_t n, float scale, float* dst) {
  static_assert(!S::is_interleaved,
                "qtensor: an interleaved scheme stores scales between its codes; dequantize a view of it.");
  detail::check_one_scale<S>();
  QTENSOR_ASSERT(n >= 0, "kernels::dequantize needs n of at least 0.");
  simd::decode_uniform<S>(src, n, element_scale{scale}, 0, dst);
}
template <quantization_scheme S>
void dequantize(const detail::code_unit_t<S>* src, index_t n, float scale, std::int32_t zero_point, float* dst) {
  detail::check_one_scale<S>();
  static_assert(S::has_zero_point,
                "qtensor: this scheme is symmetric; kernels::dequantize takes no zero point for it.");
  QTENSOR_ASSERT(n >= 0, "kernels::dequantize needs n of at least 0.");
  simd::decode_uniform<S>(src, n, element_scale{scale}, zero_point, dst);
}

/// rows x cols floats, dense and row-major, to codes and scales by the scheme's own rule; groups as the scheme says.
/// dst has tensor_shape::code_units() units and scales tensor_shape::scale_count() entries.
template <quantization_scheme S>
void quantize(const float* src, index_t rows, index_t cols, detail::code_unit_t<S>* dst,
              detail::unit_t<typename S::scale_format>* scales) {
  static_assert(!S::is_interleaved && !S::has_zero_point && !S::has_offset && !S::has_tensor_scale,
                "qtensor: this scheme stores more than codes and scales; quantize into a tensor of it.");
  const matrix_extents extents(rows, cols);
  const tensor_span<S> out(tensor_shape<S>{extents, {}, {}}, {dst, scales, {}, {}, {}});
  quantize_into(matrix_ref<const float>{src, rows, cols, cols, 1}, out);
}
/// The way back: rows x cols floats, dense and row-major.
template <quantization_scheme S>
void dequantize(const detail::code_unit_t<S>* src, const detail::unit_t<typename S::scale_format>* scales, index_t rows,
                index_t cols, float* dst) {
  static_assert(!S::is_interleaved && !S::has_zero_point && !S::has_offset && !S::has_tensor_scale,
                "qtensor: this scheme stores more than codes and scales; dequantize a view of it.");
  const tensor_view<S> view(tensor_shape<stored<S>>{matrix_extents(rows, cols), {}, {}}, {src, scales, {}, {}, {}});
  dequantize_into(view, dst);
}

}  // namespace qtensor::inline QTENSOR_ABI::kernels
