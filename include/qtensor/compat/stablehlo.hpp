// StableHLO: !quant.uniform as schemes and at run time, uniform_quantize and uniform_dequantize (NUMERICS 7.1, 7.2).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstring>
#include <qtensor/compat/stablehlo_types.hpp>
#include <qtensor/ops/dequantize.hpp>
#include <qtensor/ops/quantize.hpp>
#include <qtensor/reference/number.hpp>
#include <qtensor/scheme/scheme.hpp>
#include <span>

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

/// One element of any type: `real` of a float, `integer` of an integer, a boolean (0, 1), or the code of a quantized
/// one.
struct scalar {
  double real = 0.0;
  wide_integer integer = 0;
  bool operator==(const scalar&) const = default;
};

/// A tensor whose type is known at run time: dense elements in row-major order, each of bytes_of(stored type) bytes
/// (types of less than 8 bits a byte each). Starts as zeros. A shape without axes is one element.
class tensor {
 public:
  /// Throws on a negative extent, on a number of bytes that overflows, and where a per-axis type does not fit the
  /// shape.
  tensor(element_type type, std::vector<index_t> shape) : type_(std::move(type)), shape_(std::move(shape)) {
    index_t bytes = bytes_of(type_.stored());
    for (std::size_t axis = 0; axis < shape_.size(); ++axis) {
      require(shape_[axis] >= 0, "dimension ", static_cast<index_t>(axis), " has ", shape_[axis],
              " elements; an extent is at least 0.");
      bytes = qtensor::detail::checked_product(bytes, shape_[axis]);
      size_ *= shape_[axis];
    }
    if (type_.is_quantized()) {
      type_.quantized().check_shape(shape_);
      if (type_.quantized().is_per_axis()) {
        const auto axis = static_cast<std::size_t>(*type_.quantized().axis());
        for (std::size_t inner = axis + 1; inner < shape_.size(); ++inner) inner_ *= shape_[inner];
        channels_ = shape_[axis];
      }
    }
    bytes_.resize(static_cast<std::size_t>(bytes));
  }
  /// With elements (or codes) copied from an array of a type of their width: std::int8_t for i8, ui4 and i1, float for
  /// f32, std::uint16_t for f16 and bf16, ...
  template <class T>
  tensor(element_type type, std::vector<index_t> shape, std::span<const T> elements)
      : tensor(std::move(type), std::move(shape)) {
    static_assert(std::is_arithmetic_v<T>, "qtensor: a StableHLO tensor copies an array of numbers.");
    check_width(sizeof(T));
    require(static_cast<index_t>(elements.size()) == size_, static_cast<index_t>(elements.size()),
            " elements are given for a tensor of ", size_, ".");
    if (!elements.empty()) std::memcpy(bytes_.data(), elements.data(), bytes_.size());
  }

  const element_type& type() const { return type_; }
  const std::vector<index_t>& shape() const { return shape_; }
  index_t size() const { return size_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  std::span<std::byte> bytes() { return bytes_; }
  /// A copy of the elements (or codes) as numbers of a type of their width.
  template <class T>
  std::vector<T> to_vector() const {
    check_width(sizeof(T));
    std::vector<T> out(static_cast<std::size_t>(size_));
    if (!out.empty()) std::memcpy(out.data(), bytes_.data(), bytes_.size());
    return out;
  }
  /// The same bytes as another type of the same width: bitcast_convert between a quantized type and its storage.
  tensor bitcast(element_type type) const {
    tensor out(std::move(type), shape_);
    out.check_width(static_cast<std::size_t>(bytes_of(type_.stored())));
    out.bytes_ = bytes_;
    return out;
  }

  /// Which scale of a per-axis type belongs to element i in row-major order; 0 of other types.
  index_t channel(index_t i) const { return channels_ == 0 ? 0 : i / inner_ % channels_; }
  /// Element i in row-major order.
  scalar at(index_t i) const {
    const std::byte* from = bytes_.data() + i * bytes_of(type_.stored());
    const auto read = [&]<class T>(T value) {
      std::memcpy(&value, from, sizeof value);
      return value;
    };
    const basic_type stored = type_.stored();
    switch (stored) {
      case basic_type::f64:
        return {read(double{}), 0};
      case basic_type::f32:
        return {static_cast<double>(read(float{})), 0};
      case basic_type::f16:
        return {static_cast<double>(decode<f16>(read(std::uint16_t{}))), 0};
      case basic_type::bf16:
        return {static_cast<double>(decode<bf16>(read(std::uint16_t{}))), 0};
      default: {
        std::uint64_t word = 0;
        for (index_t b = 0; b < bytes_of(stored); ++b) word |= static_cast<std::uint64_t>(from[b]) << (8 * b);
        return {0.0, wrapped(stored, static_cast<wide_integer>(word))};
      }
    }
  }
  void set(index_t i, const scalar& value) {
    std::byte* to = bytes_.data() + i * bytes_of(type_.stored());
    const auto write = [&](auto number) { std::memcpy(to, &number, sizeof number); };
    const basic_type stored = type_.stored();
    switch (stored) {
      case basic_type::f64:
        return write(value.real);
      case basic_type::f32:
        return write(static_cast<float>(value.real));
      case basic_type::f16:
        return write(static_cast<std::uint16_t>(encode<f16, to_special>(stablehlo::detail::to_odd_float(value.real))));
      case basic_type::bf16:
        return write(static_cast<std::uint16_t>(encode<bf16, to_special>(stablehlo::detail::to_odd_float(value.real))));
      default:
        for (index_t b = 0; b < bytes_of(stored); ++b)
          to[b] = static_cast<std::byte>(static_cast<std::uint64_t>(value.integer) >> (8 * b) & 0xff);
    }
  }

  /// An integer modulo 2^bits, as the type means it; a boolean is whether it is not 0.
  static wide_integer wrapped(basic_type type, wide_integer v) {
    if (type == basic_type::i1) return v != 0 ? 1 : 0;
    const int bits = bits_of(type);
    v &= (wide_integer{1} << bits) - 1;
    return is_signed(type) && (v >> (bits - 1)) != 0 ? v - (wide_integer{1} << bits) : v;
  }

 private:
  void check_width(std::size_t width) const {
    require(static_cast<index_t>(width) == bytes_of(type_.stored()), "elements of ", static_cast<index_t>(width),
            " bytes are given for ", name_of(type_.stored()), ", which takes ", bytes_of(type_.stored()), ".");
  }

  element_type type_;
  std::vector<index_t> shape_;
  index_t size_ = 1, inner_ = 1, channels_ = 0;
  std::vector<std::byte> bytes_;
};

namespace detail {

inline void check_expressed(const element_type& x, const quantized_type& q) {
  require(x.stored() == q.expressed(), "the float side is ", name_of(x.stored()), " and the expressed type ",
          name_of(q.expressed()), "; constraint: expressed_type = element_type of the float side.");
}

}  // namespace detail

inline namespace QTENSOR_ABI {

namespace pieces {

/// Whether a type is f32 over all codes of a storage type.
inline bool is_whole(const quantized_type& q, basic_type storage) {
  return q.expressed() == basic_type::f32 && q.storage() == storage && q.storage_min() == min_value(storage) &&
         q.storage_max() == max_value(storage);
}
/// Whether the kernels of schemes compute it.
inline bool has_kernel(const quantized_type& q) { return is_whole(q, basic_type::i8) || is_whole(q, basic_type::ui8); }

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
    index_t inner = 1;
    for (auto a = q.is_per_axis() ? static_cast<std::size_t>(*q.axis()) + 1 : 0; a < t.shape().size(); ++a)
      inner *= t.shape()[a];
    sizes_ = sizes_type(t.size() == 0 ? 0 : t.size() / (count * inner), count, inner);
  }

  void quantize(const tensor& x, tensor& y) {
    const auto* from = reinterpret_cast<const float*>(x.bytes().data());
    auto* to = reinterpret_cast<unit*>(y.bytes().data());
    if constexpr (simd::vector_encodable<S>) {
      const auto elements = source(from, sizes_);
      quantize_static_into(typename decltype(elements)::template in_order<row_major>(elements),
                           codes<tensor_span<S, sizes_type>>(to));
    } else {
      const auto [outer, count, inner] = sizes_.to_array();
      for (index_t run = 0; run < outer * count; ++run) {
        const auto c = static_cast<std::size_t>(run % count);
        const number_type<S> number{scales_[c], zeros_[c]};
        for (index_t i = 0; i < inner; ++i) *to++ = static_cast<unit>(number(*from++).code);
      }
    }
  }
  void dequantize(const tensor& x, tensor& y) {
    dequantize_into(codes<tensor_view<S, sizes_type>>(reinterpret_cast<const unit*>(x.bytes().data())),
                    reinterpret_cast<float*>(y.bytes().data()), dense_strides(sizes_.to_array()));
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
/// shape. f32 to i8 and ui8 runs on the kernels of `uniform`, to i32 on its numbers, whatever the axis.
inline tensor uniform_quantize(const tensor& x, const quantized_type& type) {
  tensor y(type, x.shape());
  if (x.type().is_quantized()) {
    const quantized_type& from = x.type().quantized();
    for (index_t i = 0; i < x.size(); ++i) {
      require(from.expressed() == type.expressed(), "the operand is expressed in ", name_of(from.expressed()),
              " and the result in ", name_of(type.expressed()),
              "; constraint: expressed_type(operand) = expressed_type(result).");
      y.set(i, {0.0, type.quantize(from.dequantize(x.at(i).integer, x.channel(i)), y.channel(i))});
    }
    return y;
  }
  stablehlo::detail::check_expressed(x.type(), type);
  if (pieces::has_kernel(type)) {
    is_signed(type.storage()) ? pieces::channels<int8>(y, type).quantize(x, y)
                              : pieces::channels<uint8>(y, type).quantize(x, y);
    return y;
  }
  if (pieces::is_whole(type, basic_type::i32)) {
    pieces::channels<int32>(y, type).quantize(x, y);
    return y;
  }
  for (index_t i = 0; i < x.size(); ++i) y.set(i, {0.0, type.quantize(x.at(i).real, y.channel(i))});
  return y;
}

/// uniform_dequantize: (code - zero point) * scale as a tensor of the expressed type.
inline tensor uniform_dequantize(const tensor& x) {
  require(x.type().is_quantized(), "the operand is ", name_of(x.type().stored()),
          "; constraint: the operand of uniform_dequantize is quantized.");
  const quantized_type& type = x.type().quantized();
  tensor y(type.expressed(), x.shape());
  if (pieces::has_kernel(type)) {
    is_signed(type.storage()) ? pieces::channels<int8>(x, type).dequantize(x, y)
                              : pieces::channels<uint8>(x, type).dequantize(x, y);
    return y;
  }
  for (index_t i = 0; i < x.size(); ++i) y.set(i, {type.dequantize(x.at(i).integer, x.channel(i)), 0});
  return y;
}

}  // namespace QTENSOR_ABI

}  // namespace qtensor::compat::stablehlo
