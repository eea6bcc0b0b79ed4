// Integer codes in memory as operands of products: no tensor, any strides, run-time zero points and scales.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/ops/pack.hpp>

namespace qtensor::inline QTENSOR_ABI {

/// 8-bit codes (Code is int8 or uint8) in memory as weights or activations: `outputs` (rows of activations, columns of
/// the result for weights) times `depth`, element (o, k) at codes[o * output_stride + k * depth_stride]. Zero points
/// and scales: none (0 and 1), one, or one for each output; they and the codes must outlive the operand.
template <format Code>
class code_matrix {
  static_assert(Code::is_integer && Code::bits == 8, "qtensor: a code_matrix holds int8 or uint8 codes.");

 public:
  using scheme_type = stored<scheme<Code, per_channel<0>, qtensor::zero_point<int32>, static_only>>;
  using unit = storage_t<Code>;

  const unit* codes;
  index_t output_count, depth_count, output_stride, depth_stride;
  std::span<const std::int32_t> zeros{};
  std::span<const float> scales{};

  /// Throws where the number of zero points or scales is not 0, 1 or that of outputs.
  void check(std::string_view what) const {
    const auto fits = [&](std::size_t n) { return n <= 1 || static_cast<index_t>(n) == output_count; };
    require(fits(zeros.size()), what, " has ", zeros.size(), " zero points for ", output_count,
            " outputs; it takes none, 1 or ", output_count, ".");
    require(fits(scales.size()), what, " has ", scales.size(), " scales for ", output_count,
            " outputs; it takes none, 1 or ", output_count, ".");
  }

  // What products ask of weights_of.
  index_t outputs() const { return output_count; }
  index_t depth() const { return depth_count; }
  index_t group() const { return std::max(depth_count, index_t{1}); }
  float tensor_scale() const { return 1.f; }
  std::uint32_t scale_code(index_t output, index_t) const { return bits_of(entry(scales, output, 1.f)); }
  std::int64_t zero_point(index_t output, index_t) const { return entry(zeros, output, 0); }
  float offset(index_t, index_t) const { return 0.f; }
  static constexpr std::uint8_t line_flip = packed_code<Code>::of(0);
  ops::code_lines lines() const {
    return depth_stride == 1 ? ops::code_lines{bytes(0, 0), output_stride} : ops::code_lines{};
  }
  void read(index_t output, index_t count, index_t k, index_t n, std::uint8_t* to, index_t stride) const {
    const auto* from = bytes(output, k);
    if (depth_stride == 1) {
      for (index_t o = 0; o < count; ++o)
        std::memcpy(to + o * stride, from + o * output_stride, static_cast<std::size_t>(n));
    } else if (output_stride == 1) {
      simd::transpose(from, depth_stride, count, n, to, stride);
    } else {
      for (index_t o = 0; o < count; ++o)
        for (index_t i = 0; i < n; ++i) to[o * stride + i] = from[o * output_stride + i * depth_stride];
    }
    if constexpr (line_flip != 0)
      for (index_t o = 0; o < count; ++o)
        for (index_t i = 0; i < n; ++i) to[o * stride + i] ^= line_flip;
  }

 private:
  const std::uint8_t* bytes(index_t output, index_t k) const {
    return reinterpret_cast<const std::uint8_t*>(codes) + output * output_stride + k * depth_stride;
  }
  template <class T>
  static T entry(std::span<const T> list, index_t output, T none) {
    return list.empty() ? none : list[list.size() == 1 ? 0 : static_cast<std::size_t>(output)];
  }
};

}  // namespace qtensor::inline QTENSOR_ABI
