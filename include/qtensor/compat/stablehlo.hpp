// StableHLO: !quant.uniform as schemes and at run time, uniform_quantize and uniform_dequantize (NUMERICS 7.1, 7.2).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/compat/stablehlo_tensor.hpp>
#include <qtensor/ops/parallel.hpp>
#include <qtensor/scheme/scheme.hpp>

namespace qtensor::compat::stablehlo {

// ---- as schemes ----------------------------------------------------------------------------------------------------

/// !quant.uniform<Storage:f32, scale:zero point>: rne(clamp(x / scale + zero point)), where the quotient and the sum
/// are f32 and NaN is code 0. Scales and zero points are the caller's: quantize<uniform<int8>>(x, 0.1f, -30).
/// With G = per_channel<Axis> it is !quant.uniform<Storage:f32:Axis, {...}>.
///   x = .5, s = 1, zp = 1 -> 2, by our default 1
template <format Storage, granularity G = per_tensor>
using uniform = scheme<Storage, G, zero_point<Storage>, static_only, zp_before_round, nan_to_zero>;

/// !quant.uniform<Storage<Low:High>:f32, ...>: codes in [Low, High].
///   i8<-127:127>, s = 1: -1000 -> -127
template <format Storage, index_t Low, index_t High, granularity G = per_tensor>
using uniform_range = with<uniform<Storage, G>, stored_range<Low, High>>;

// ---- at run time ---------------------------------------------------------------------------------------------------

namespace detail {

inline void check_expressed(const element_type& x, const quantized_type& q) {
  require(x.stored() == q.expressed(), "the float side is ", name_of(x.stored()), " and the expressed type ",
          name_of(q.expressed()), "; constraint: expressed_type = element_type of the float side.");
}

}  // namespace detail

inline namespace QTENSOR_ABI {

namespace pieces {

/// Whether the kernels of schemes compute it: f32 and all codes of a byte.
inline bool has_kernel(const quantized_type& q) {
  return q.expressed() == basic_type::f32 && bits_of(q.storage()) == 8 && q.storage_min() == min_value(q.storage()) &&
         q.storage_max() == max_value(q.storage());
}

/// A tensor's elements as (outer, channels, inner), and its codes of a type as the library's own tensor of them.
template <format Storage>
class channels {
  using S = uniform<Storage, per_channel<1>>;
  using sizes_type = dynamic_extents<3>;
  using unit = storage_t<Storage>;

 public:
  channels(const tensor& t, const quantized_type& q) : scales_(q.scales().begin(), q.scales().end()) {
    for (const wide_integer z : q.zero_points()) zeros_.push_back(static_cast<unit>(z));
    const auto count = static_cast<index_t>(scales_.size());
    sizes_ = sizes_type(t.size() == 0 ? 0 : t.size() / (count * t.run()), count, t.run());
  }

  template <executor By>
  void quantize(const tensor& x, tensor& y, const execution<By>& on) {
    const auto elements = source(reinterpret_cast<const float*>(x.bytes().data()), sizes_);
    quantize_static_into(codes<tensor_span<S, sizes_type>>(reinterpret_cast<unit*>(y.bytes().data())), elements, on);
  }
  template <executor By>
  void dequantize(const tensor& x, tensor& y, const execution<By>& on) {
    dequantize_into(codes<tensor_view<S, sizes_type>>(reinterpret_cast<const unit*>(x.bytes().data())),
                    reinterpret_cast<float*>(y.bytes().data()), on);
  }

 private:
  template <tensor_view_type View>
  View codes(typename View::code_pointer units) {
    return {{sizes_, {}, {}}, {units, scales_.data(), zeros_.data(), {}, {}}};
  }

  std::vector<float> scales_;
  std::vector<unit> zeros_;
  sizes_type sizes_;
};

}  // namespace pieces

/// uniform_quantize: of a float tensor, rne(clamp(x / scale + zero point)); of a quantized one,
/// quantize(dequantize(x)). Throws unless the float type is the expressed one, and where the type does not fit the
/// shape. Cost: from f32 to i8 and ui8 that of `uniform`, else as `retype` has it. on(executor) may come last.
template <qtensor::detail::execution_option... On>
tensor uniform_quantize(const tensor& x, const quantized_type& type, const On&... on) {
  const auto by = qtensor::detail::execution_among(on...);
  tensor y(type, x.shape());
  if (x.type().is_quantized())
    require(x.size() == 0 || x.type().computed() == type.expressed(), "the operand is expressed in ",
            name_of(x.type().computed()), " and the result in ", name_of(type.expressed()),
            "; constraint: expressed_type(operand) = expressed_type(result).");
  else
    stablehlo::detail::check_expressed(x.type(), type);
  if (x.type().is_quantized() || !pieces::has_kernel(type))
    pieces::retype(by.by, x, y);
  else if (is_signed(type.storage()))
    pieces::channels<int8>(y, type).quantize(x, y, by);
  else
    pieces::channels<uint8>(y, type).quantize(x, y, by);
  return y;
}

/// uniform_dequantize: (code - zero point) * scale as a tensor of the expressed type. Cost: as uniform_quantize.
template <qtensor::detail::execution_option... On>
tensor uniform_dequantize(const tensor& x, const On&... on) {
  const auto by = qtensor::detail::execution_among(on...);
  require(x.type().is_quantized(), "the operand is ", name_of(x.type().stored()),
          "; constraint: the operand of uniform_dequantize is quantized.");
  const quantized_type& type = x.type().quantized();
  tensor y(type.expressed(), x.shape());
  if (!pieces::has_kernel(type))
    pieces::retype(by.by, x, y);
  else if (is_signed(type.storage()))
    pieces::channels<int8>(x, type).dequantize(x, y, by);
  else
    pieces::channels<uint8>(x, type).dequantize(x, y, by);
  return y;
}

}  // namespace QTENSOR_ABI

}  // namespace qtensor::compat::stablehlo
