// Sums of codes along the depth of a product: what zero points of the other operand will need.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/ops/pack.hpp>
#include <qtensor/ops/quantize.hpp>
#include <utility>
#include <vector>

namespace qtensor::inline QTENSOR_ABI {

/// Sums of the codes (as numbers, without zero points) of each output over every `group` elements of the depth, the
/// last group may be short: sums[output * groups + g] with groups = ceil(depth / group). oneDNN's precomputed
/// reductions of a source are those of its rows. Integers of at most 8 bits; `group` is at least 1, `whole` for one sum
/// an output. Throws on another group.
template <depth_axis Depth = depth_axis::cols, quantized W>
std::vector<std::int32_t> code_sums(const W& w, index_t group = whole) {
  const auto view = as_view(w);
  using weights = ops::weights_of<std::remove_const_t<decltype(view)>, Depth>;
  using code = packed_code<typename weights::scheme_type::code_format>;
  static_assert(code::is_integer, "qtensor: code_sums takes integer codes.");
  const weights x(view);
  if (group == whole) group = std::max(x.depth(), index_t{1});
  require(group >= 1, "code_sums takes groups of ", group, " elements; a group has at least 1.");
  const index_t groups = divide_up(x.depth(), group);
  std::vector<std::int32_t> sums(static_cast<std::size_t>(x.outputs() * groups), 0);
  // Signed bytes are summed as the units of a dot product are.
  using A = simd::best_arch;
  constexpr index_t some = 16, most = 4096;
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(some * std::min(group, most)));
  typename simd::quad_dot<A>::unit units[most];
  for (index_t o = 0; o < x.outputs(); o += some) {
    const index_t count = std::min(some, x.outputs() - o);
    for (index_t g = 0; g < groups; ++g)
      for (index_t k = g * group; k < std::min((g + 1) * group, x.depth());) {
        const index_t n = std::min({most, (g + 1) * group - k, x.depth() - k}), stride = std::min(group, most);
        x.read(o, count, k, n, bytes.data(), stride);
        for (index_t i = 0; i < count; ++i)
          sums[static_cast<std::size_t>((o + i) * groups + g)] +=
              simd::pack_units<A>(bytes.data() + i * stride, n, simd::code_sign::is_signed, units) -
              static_cast<std::int32_t>(n) * code::offset;
        k += n;
      }
  }
  return sums;
}

/// A quantized tensor and the sums of its codes.
template <class Tensor>
struct quantized_with_sums {
  Tensor codes;
  std::vector<std::int32_t> sums;
};

/// quantize<S>(x) and code_sums of it, which reads the codes once more: `auto [codes, sums] =
/// quantize_with_sums<int8_per_channel<0>>(source(...), 32)`.
template <quantization_scheme S, storage_order Order = row_major, depth_axis Depth = depth_axis::cols, format F,
          tensor_extents Extents, class... How>
auto quantize_with_sums(const memory_source<F, Extents>& x, index_t group, const How&... how) {
  auto codes = quantize<S, Order>(x, how...);
  auto sums = code_sums<Depth>(codes, group);
  return quantized_with_sums<decltype(codes)>{std::move(codes), std::move(sums)};
}

}  // namespace qtensor::inline QTENSOR_ABI
