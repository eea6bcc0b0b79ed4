// The lazy expression: a quantized matrix that Eigen reads as floats, coefficient by coefficient or packet by packet.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/expr/eigen_version.hpp>
#include <qtensor/reference/quantize.hpp>
#include <qtensor/simd/ops.hpp>
#include <qtensor/simd/ops_packed.hpp>
#include <string>
#include <type_traits>
#include <utility>

namespace qtensor::inline QTENSOR_ABI {

/// The owner of a `dequantized` that keeps nothing alive: whoever owns the tensor must outlive the expression.
struct borrowed {};

template <tensor_view_type View, class Owner = borrowed>
class dequantized;

/// Eigen's word for how an expression is evaluated: products and assignments of this shape reach our kernels.
struct QuantizedShape {
  static std::string debugName() { return "QuantizedShape"; }
};

namespace expr_detail {

constexpr int eigen_size(index_t extent) { return extent == dynamic ? Eigen::Dynamic : static_cast<int>(extent); }

/// Granularities whose blocks are the same size everywhere, or reach over the whole axis.
template <class G>
inline constexpr bool has_plain_blocks = false;
template <>
inline constexpr bool has_plain_blocks<per_tensor> = true;
template <index_t... Axis>
inline constexpr bool has_plain_blocks<per_axes<Axis...>> = true;
template <index_t Axis>
inline constexpr bool has_plain_blocks<per_channel<Axis>> = true;
template <index_t N, index_t Axis>
inline constexpr bool has_plain_blocks<group<N, Axis>> = N != dynamic;
template <index_t... B>
inline constexpr bool has_plain_blocks<block<B...>> = !block<B...>::is_dynamic;

/// Elements on a storage axis that share a parameter: a number, `whole`, or `dynamic` where only the view knows.
template <class G, class Order, int StorageAxis>
constexpr index_t known_block() {
  if constexpr (!has_plain_blocks<G>) {
    return dynamic;
  } else {
    constexpr index_t long_axis = index_t{1} << 40;
    const index_t size = G{}.block_extent(2, Order::axis(2, StorageAxis), long_axis);
    return size == long_axis ? whole : size;
  }
}

/// Which block of a storage axis holds position `at`.
template <index_t Known>
constexpr index_t block_number(index_t at, index_t size) {
  if constexpr (Known == whole)
    return 0;
  else if constexpr (Known == dynamic)
    return at / size;
  else
    return static_cast<index_t>(static_cast<std::size_t>(at) / static_cast<std::size_t>(Known));
}

/// The widest architecture whose batches fit N lanes.
template <int N, class List>
struct fitting_arch;
template <int N, class Best, class... Rest>
struct fitting_arch<N, simd::arch_list<Best, Rest...>>
    : std::conditional_t<(simd::lanes<Best> <= N), std::type_identity<Best>,
                         fitting_arch<N, simd::arch_list<Rest...>>> {};
template <int N>
struct fitting_arch<N, simd::arch_list<>> : std::type_identity<void> {};

/// Reads elements of a matrix view as floats. Positions are in storage order: the line, then the element of the line.
template <tensor_view_type View>
class element_reader {
  using S = typename View::scheme_type;
  using code = typename S::code_format;
  using order = typename View::order_type;
  using scale_format = typename S::scale_format;
  static constexpr index_t line_block = known_block<typename S::granularity_type, order, 0>();
  static constexpr index_t scale_block = known_block<typename S::granularity_type, order, 1>();
  static constexpr index_t zero_line_block = known_block<typename S::zero_granularity_type, order, 0>();
  static constexpr index_t zero_block = known_block<typename S::zero_granularity_type, order, 1>();

  static constexpr bool plain_codes = !S::is_interleaved && !S::has_offset && (code::bits == 8 || code::bits == 4) &&
                                      std::is_same_v<typename S::layout::order, low_first> &&
                                      sizeof(typename View::code_unit) == 1;
  static constexpr bool plain_zeros = [] {
    if constexpr (S::has_zero_point)
      return S::zero_point_format::bits <= 16;
    else
      return true;
  }();
  /// One scale for each element of a line, side by side in memory as floats.
  static constexpr bool scale_per_element = scale_block == 1 && std::is_same_v<scale_format, f32> && !S::has_zero_point;

 public:
  /// Whether packets are made by vectors; and take little longer than runs do, where bytes are widened and nibbles
  /// looked up in one register.
  static constexpr bool has_vectors = plain_codes && plain_zeros;
  static constexpr bool reads_fast = has_vectors && (code::bits == 4 ? packet_lanes == 16 : code::is_integer);

  explicit element_reader(const View& view) : view_(view) {}

  const View& view() const { return view_; }

  /// One element, as dequantize_element rounds it.
  float at(index_t line, index_t i) const {
    const std::uint32_t c = view_.storage_code({line, i});
    if constexpr (S::is_interleaved) {
      return reference::storage_value(view_, {line, i});
    } else {
      float value;
      if constexpr (S::has_zero_point)
        value = static_cast<float>(static_cast<std::int64_t>(code::decode(c)) - zero_point(line, i));
      else if constexpr (code::bits <= 8)
        value = decode_table<code>[c];
      else
        value = decode<code>(c);
      value = rounded(value * scale(line, i));
      if constexpr (S::has_tensor_scale) value = rounded(value * view_.tensor_scale());
      if constexpr (S::has_offset) value = rounded(value + view_.storage_offset({line, i}));
      return value;
    }
  }

  /// N elements of a line from element i on, to out[0, N). Reads the codes of these elements and no others.
  template <int N>
  void packet(index_t line, index_t i, float* out) const {
    using arch = typename fitting_arch<N, simd::archs>::type;
    if constexpr (!std::is_void_v<arch> && has_vectors) {
      if (in_one_step<N>(i)) [[likely]]
        return vector<arch, N>(line, i, out);
    }
    for (int k = 0; k < N; ++k) out[k] = at(line, i + k);
  }

 private:
  index_t scale_entry(index_t line, index_t i) const {
    const auto& grid = view_.scale_grid();
    return block_number<line_block>(line, grid.block[0]) * grid.stride[0] +
           block_number<scale_block>(i, grid.block[1]) * grid.stride[1];
  }
  float scale(index_t line, index_t i) const {
    const std::uint32_t c = ::qtensor::detail::code_of<scale_format>(view_.memory().scales[scale_entry(line, i)]);
    if constexpr (scale_format::bits <= 8)
      return decode_table<scale_format>[c];
    else
      return decode<scale_format>(c);
  }
  std::int64_t zero_point(index_t line, index_t i) const {
    using zero = typename S::zero_point_format;
    const auto& grid = view_.zero_grid();
    const index_t entry = block_number<zero_line_block>(line, grid.block[0]) * grid.stride[0] +
                          block_number<zero_block>(i, grid.block[1]) * grid.stride[1];
    return static_cast<std::int64_t>(zero::decode(::qtensor::detail::code_of<zero>(view_.memory().zero_points[entry])));
  }

  template <index_t Known, int N>
  static bool in_one_block(index_t i, index_t size) {
    if constexpr (Known == whole)
      return true;
    else if constexpr (Known == dynamic)
      return i % size + N <= size;
    else
      return i % Known + N <= Known;
  }
  /// Whether N elements from i on start on a byte and share their parameters (or have one scale each).
  template <int N>
  bool in_one_step(index_t i) const {
    if (code::bits == 4 && i % 2 != 0) return false;
    if constexpr (scale_per_element)
      return view_.scale_grid().stride[1] == 1;
    else if (!in_one_block<scale_block, N>(i, view_.scale_grid().block[1]))
      return false;
    if constexpr (S::has_zero_point)
      return in_one_block<zero_block, N>(i, view_.zero_grid().block[1]);
    else
      return true;
  }

  /// `lanes` codes from an even element on, one a 32-bit lane.
  template <class Arch>
  static simd::words<Arch> codes(const std::uint8_t* from) {
    if constexpr (code::bits == 8)
      return simd::widen_u8<Arch>(from);
    else
      return simd::nibble_words<Arch>(from) & simd::words<Arch>(15u);
  }
  /// Code values as floats, less the zero point: exact.
  template <class Arch>
  static simd::floats<Arch> values(const std::uint8_t* from, [[maybe_unused]] std::int32_t zero) {
    const simd::words<Arch> c = codes<Arch>(from);
    if constexpr (code::is_integer) {
      simd::ints<Arch> v = simd::bits_as<std::int32_t>(c);
      constexpr std::int32_t sign = 1 << (code::bits - 1);
      if constexpr (code::is_signed) v = (v ^ simd::ints<Arch>(sign)) - simd::ints<Arch>(sign);
      if constexpr (S::has_zero_point) v = v - simd::ints<Arch>(zero);
      return simd::to_float(v);
    } else if constexpr (code::bits == 4) {
      return simd::float_table16<Arch>(decode_table<code>.data())(c);
    } else {
      return simd::lookup<Arch>(decode_table<code>.data(), c);
    }
  }

  template <class Arch, int N>
  void vector(index_t line, index_t i, float* out) const {
    constexpr index_t lanes = simd::lanes<Arch>;
    const auto* from = reinterpret_cast<const std::uint8_t*>(view_.row({line, i})) + i * code::bits / 8;
    std::int32_t zero = 0;
    if constexpr (S::has_zero_point) zero = static_cast<std::int32_t>(zero_point(line, i));
    const simd::floats<Arch> shared(scale_per_element ? 0.f : scale(line, i));
    for (index_t k = 0; k < N; k += lanes) {
      simd::floats<Arch> s = shared;
      if constexpr (scale_per_element) s = simd::load<Arch>(view_.memory().scales + scale_entry(line, i) + k);
      simd::floats<Arch> v = simd::mul(values<Arch>(from + k * code::bits / 8, zero), s);
      if constexpr (S::has_tensor_scale) v = simd::mul(v, simd::floats<Arch>(view_.tensor_scale()));
      simd::store(out + k, v);
    }
  }

  View view_;
};

}  // namespace expr_detail

}  // namespace qtensor::inline QTENSOR_ABI

namespace Eigen::internal {

// No DirectAccessBit, LvalueBit or NestByRefBit: it is nested by value and has no memory of floats.
template <class View, class Owner>
struct traits<qtensor::dequantized<View, Owner>> {
  using Scalar = float;
  using StorageIndex = Eigen::Index;
  using StorageKind = Dense;
  using XprKind = MatrixXpr;
  enum {
    RowsAtCompileTime = qtensor::expr_detail::eigen_size(View::extents_type::static_extent(0)),
    ColsAtCompileTime = qtensor::expr_detail::eigen_size(View::extents_type::static_extent(1)),
    MaxRowsAtCompileTime = RowsAtCompileTime,
    MaxColsAtCompileTime = ColsAtCompileTime,
    Flags = std::is_same_v<typename View::order_type, qtensor::row_major> ? static_cast<int>(RowMajorBit) : 0
  };
};

template <class View, class Owner>
struct evaluator_traits<qtensor::dequantized<View, Owner>> : evaluator_traits_base<qtensor::dequantized<View, Owner>> {
  using Shape = qtensor::QuantizedShape;
};

}  // namespace Eigen::internal

namespace qtensor::inline QTENSOR_ABI {

/// A quantized matrix as an Eigen expression of floats: element (i, j) is reference::value(view, {i, j}), bit for bit,
/// in whatever expression it stands. Holds the view by value, and an owner where the memory would not outlive it
/// otherwise.
template <tensor_view_type View, class Owner>
class dequantized : public Eigen::MatrixBase<dequantized<View, Owner>> {
 public:
  using Base = Eigen::MatrixBase<dequantized>;
  EIGEN_DENSE_PUBLIC_INTERFACE(dequantized)

  explicit dequantized(const View& view, Owner owner = {}) : view_(view), owner_(std::move(owner)) {}

  Eigen::Index rows() const { return view_.rows(); }
  Eigen::Index cols() const { return view_.cols(); }
  const View& view() const { return view_; }

 private:
  View view_;
  [[no_unique_address]] Owner owner_;
};

/// The expression of a tensor, view or span of rank 2: lazy, and it holds no memory of its own, so that the tensor must
/// outlive it. Deleted for temporary tensors.
template <quantized W>
auto dequantize(const W& w) {
  static_assert(W::rank == 2,
                "qtensor: Eigen sees matrices; take one of this tensor with matrix(i, ...) and dequantize that.");
  if constexpr (W::rank == 2) {
    const auto view = as_view(w);
    return dequantized<std::remove_const_t<decltype(view)>>(view);
  }
}
template <class S, class Extents, class Order>
void dequantize(const tensor<S, Extents, Order>&& temporary) =
    delete;  // name the tensor first: the expression would dangle

}  // namespace qtensor::inline QTENSOR_ABI

namespace Eigen::internal {

template <class View, class Owner>
struct evaluator<qtensor::dequantized<View, Owner>> : evaluator_base<qtensor::dequantized<View, Owner>> {
  using XprType = qtensor::dequantized<View, Owner>;
  using CoeffReturnType = float;
  static constexpr bool is_row_major = std::is_same_v<typename View::order_type, qtensor::row_major>;
  enum {
    CoeffReadCost = 8 * NumTraits<float>::ReadCost,
    Flags = (is_row_major ? static_cast<int>(RowMajorBit) : 0) | static_cast<int>(PacketAccessBit),
    Alignment = 0
  };

  explicit evaluator(const XprType& x) : reader_(x.view()) {}

  EIGEN_STRONG_INLINE float coeff(Index row, Index col) const {
    return is_row_major ? reader_.at(row, col) : reader_.at(col, row);
  }
  template <int LoadMode, class Packet>
  EIGEN_STRONG_INLINE Packet packet(Index row, Index col) const {
    constexpr int size = unpacket_traits<Packet>::size;
    alignas(64) float lanes[size];
    if constexpr (is_row_major)
      reader_.template packet<size>(row, col, lanes);
    else
      reader_.template packet<size>(col, row, lanes);
    return pload<Packet>(lanes);
  }
  /// Lanes [begin, begin + count) of the packet at (row, col): the others are 0, and their codes may not exist.
  template <int LoadMode, class Packet>
  EIGEN_STRONG_INLINE Packet packetSegment(Index row, Index col, Index begin, Index count) const {
    alignas(64) float lanes[unpacket_traits<Packet>::size] = {};
    for (Index k = begin; k < begin + count; ++k)
      lanes[k] = is_row_major ? reader_.at(row, col + k) : reader_.at(col, row + k);
    return pload<Packet>(lanes);
  }

  // Linear forms: there is no LinearAccessBit, but blocks of transposes instantiate them in branches never taken, and
  // vectors are read this way.
  EIGEN_STRONG_INLINE float coeff(Index i) const { return coeff(row_of(i), col_of(i)); }
  template <int LoadMode, class Packet>
  EIGEN_STRONG_INLINE Packet packet(Index i) const {
    return packet<LoadMode, Packet>(row_of(i), col_of(i));
  }
  template <int LoadMode, class Packet>
  EIGEN_STRONG_INLINE Packet packetSegment(Index i, Index begin, Index count) const {
    return packetSegment<LoadMode, Packet>(row_of(i), col_of(i), begin, count);
  }

 private:
  Index row_of(Index i) const { return is_row_major ? i / reader_.view().cols() : i % reader_.view().rows(); }
  Index col_of(Index i) const { return is_row_major ? i % reader_.view().cols() : i / reader_.view().rows(); }

  qtensor::expr_detail::element_reader<View> reader_;
};

}  // namespace Eigen::internal
