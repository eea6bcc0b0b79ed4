// oneDNN's dynamic quantization with run-time types: codes and scales of a tensor (NUMERICS 2.2, 2.3).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/compat/onednn_attributes.hpp>
#include <qtensor/compat/onednn_elements.hpp>
#include <qtensor/compat/onednn_schemes.hpp>
#include <qtensor/ops/parallel.hpp>

namespace qtensor::compat::onednn {

enum class quantization_mode { static_sazp, dynamic_mx, dynamic_fp };

/// Which oneDNN: the release that was run, or its later source, which clamps (and was only read).
enum class version { release_3_12, source_2026_08 };

/// How the destination of an operation is quantized dynamically. The mask names every dimension, the groups are {1, 32}
/// (dynamic_mx, e8m0 scales) or {1, 16} (dynamic_fp, f8_e4m3 scales), for a tensor of one dimension {32} or {16}.
struct dynamic_scale {
  quantization_mode mode = quantization_mode::dynamic_mx;
  data_type type = data_type::e8m0;
  int mask = 0;
  std::vector<index_t> groups = {};
  onednn::version version = version::release_3_12;
};

inline namespace QTENSOR_ABI {
namespace pieces {

/// Rows of elements of a run-time type.
struct element_rows {
  data_type type;
  const void* data;
  index_t row_count, col_count;
  static constexpr bool reads_rows = true;
  static constexpr bool reads_twice = true;

  index_t rows() const { return row_count; }
  index_t cols() const { return col_count; }
  const float* direct(index_t row, index_t col) const {
    return type == data_type::f32 ? static_cast<const float*>(data) + row * col_count + col : nullptr;
  }
  void read(index_t row, index_t rows, index_t col, index_t cols, float* to, index_t stride) const {
    for (index_t r = 0; r < rows; ++r) load(type, data, (row + r) * col_count + col, cols, to + r * stride);
  }
};

template <quantization_scheme S, executor By>
void quantize_rows(const element_rows& x, void* codes, void* scales, const execution<By>& on) {
  using unit = qtensor::detail::code_unit_t<S>;
  const matrix_extents extents(x.rows(), x.cols());
  const tensor_span<S> out(tensor_shape<S>{extents, {}, {}},
                           {static_cast<unit*>(codes), static_cast<std::uint8_t*>(scales), {}, {}, {}});
  quantize_into(x, out, on);
}

template <format Code, executor By>
void quantize_mx(version v, const element_rows& x, void* codes, void* scales, const execution<By>& on) {
  if (v == version::release_3_12)
    quantize_rows<dynamic_mx<Code>>(x, codes, scales, on);
  else
    quantize_rows<dynamic_mx_2026_08<Code>>(x, codes, scales, on);
}

}  // namespace pieces

/// Quantizes a dense row-major tensor of f32, bf16 or f16 as the destination of an operation: dynamic_mx to f8_e4m3,
/// f8_e5m2 or f4_e2m1, dynamic_fp to f4_e2m1. One scale for each group of the last dimension, row-major; 4-bit codes
/// two a byte. The schemes dynamic_mx, dynamic_fp and their 2026-08 forms are the same, typed.
///
/// Throws before anything is written on: other modes, types, masks and groups, groups that do not divide the last
/// dimension, sizes that overflow, null or misaligned buffers, and buffers that overlap one that is written. An empty
/// tensor is valid. on(executor) may come last.
template <qtensor::detail::execution_option... On>
void quantize(std::span<const index_t> dims, data_type from, const void* src, const dynamic_scale& how, data_type to,
              void* dst, void* scales, const On&... on) {
  const index_t count = element_count(dims);
  const bool mx = how.mode == quantization_mode::dynamic_mx;
  require(how.mode >= quantization_mode::static_sazp && how.mode <= quantization_mode::dynamic_fp, "the mode is ",
          static_cast<int>(how.mode), "; its choices are 0 to 2.");
  require(how.mode != quantization_mode::static_sazp,
          "static_sazp takes its scales from the caller; use reorder with a destination scale.");
  require(from == data_type::f32 || from == data_type::bf16 || from == data_type::f16, "the source is of type ",
          name_of(from), "; dynamic quantization takes f32, bf16 and f16.");
  require(to == data_type::f4_e2m1 || (mx && (to == data_type::f8_e4m3 || to == data_type::f8_e5m2)),
          "the destination is of type ", name_of(to), "; dynamic_mx gives f8_e4m3, f8_e5m2 and f4_e2m1, dynamic_fp ",
          "f4_e2m1.");
  require(how.type == (mx ? data_type::e8m0 : data_type::f8_e4m3), "the scales are of type ", name_of(how.type),
          "; those of dynamic_mx are e8m0, those of dynamic_fp f8_e4m3.");
  require(how.version == version::release_3_12 || how.version == version::source_2026_08, "the version is ",
          static_cast<int>(how.version), "; its choices are 0 and 1.");
  const int rank = static_cast<int>(dims.size()), full = (1 << rank) - 1;
  require(how.mask == full, "the mask of the scales is ", how.mask, "; dynamic quantization of ", rank,
          " dimensions needs all of them, ", full, ".");
  const index_t size = mx ? 32 : 16;
  const auto& groups = how.groups;
  const bool fits = !groups.empty() && groups.back() == size && (groups.size() == 1 || groups.front() == 1);
  require(fits, "the groups are ", detail::list_text(groups), ", not {1, ", size,
          "}: dynamic_mx shares a scale among 32 elements of the last dimension, dynamic_fp among 16.");
  const auto scale_dims = parameter_dims("the scale", dims, how.mask, groups);
  const auto read = detail::extent::of("the source", src, from, count),
             codes = detail::extent::of("the destination", dst, to, count),
             stored = detail::extent::of("the buffer of scales", scales, how.type, count / size);
  require(!codes.overlaps(read) && !stored.overlaps(read) && !codes.overlaps(stored),
          "the source, the destination and the scales overlap; they must not.");
  if (count == 0) return;

  const auto by = qtensor::detail::execution_among(on...);
  const pieces::element_rows x{from, src, count / dims.back(), dims.back()};
  if (!mx && how.version == version::release_3_12)
    pieces::quantize_rows<dynamic_fp<>>(x, dst, scales, by);
  else if (!mx)
    pieces::quantize_rows<dynamic_fp_2026_08<>>(x, dst, scales, by);
  else if (to == data_type::f8_e4m3)
    pieces::quantize_mx<e4m3>(how.version, x, dst, scales, by);
  else if (to == data_type::f8_e5m2)
    pieces::quantize_mx<e5m2>(how.version, x, dst, scales, by);
  else
    pieces::quantize_mx<e2m1>(how.version, x, dst, scales, by);
}

}  // namespace QTENSOR_ABI

}  // namespace qtensor::compat::onednn
