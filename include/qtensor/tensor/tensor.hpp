// The owning tensor: codes, scales and zero points of one scheme in one allocation, or inline if extents are static.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <iosfwd>
#include <new>
#include <qtensor/core/line_memory.hpp>
#include <qtensor/tensor/view.hpp>
#include <utility>

namespace qtensor {

/// For tensors all of whose codes, scales and zero points are about to be written: `tensor<S>(uninitialized, extents)`.
struct uninitialized_t {
  explicit uninitialized_t() = default;
};
inline constexpr uninitialized_t uninitialized{};

namespace detail {

inline constexpr index_t alignment = line_memory::line;

/// Sizes of a tensor's arrays, in units of their types.
struct array_sizes {
  index_t codes, scales, zero_points, offsets, tensor_scales;
};
template <class Shape, class S>
constexpr array_sizes sizes_of(const Shape& shape) {
  return {shape.code_units(), S::is_interleaved ? 0 : shape.scale_count(), shape.zero_point_count(),
          S::has_offset && !S::is_interleaved ? shape.scale_count() : 0, S::has_tensor_scale ? 1 : 0};
}

/// One aligned allocation, the arrays one after the other, each on a 64-byte line.
template <quantization_scheme S, class Shape>
class heap_memory {
  using code_unit = typename Shape::code_unit;
  using scale_unit = unit_t<typename S::scale_format>;
  using zero_unit = unit_t<typename S::zero_point_format>;
  using offset_unit = unit_t<typename S::offset_format>;
  using tensor_scale_unit = unit_t<typename S::tensor_scale_format>;

 public:
  heap_memory() = default;
  explicit heap_memory(const Shape& shape) : heap_memory(uninitialized, shape) {
    clear(codes_, sizes_.codes);
    clear(scales_, sizes_.scales);
    clear(zeros_, sizes_.zero_points);
    clear(offsets_, sizes_.offsets);
    clear(tensor_scale_, sizes_.tensor_scales);
  }
  heap_memory(uninitialized_t, const Shape& shape) : sizes_(sizes_of<Shape, S>(shape)) {
    index_t bytes = 0;
    const auto take = [&](index_t count, std::size_t unit) {
      const index_t start = bytes;
      bytes += round_up(checked_product(count, static_cast<index_t>(unit)), alignment);
      return start;
    };
    const index_t codes = take(sizes_.codes, sizeof(code_unit)), scales = take(sizes_.scales, sizeof(scale_unit));
    const index_t zeros = take(sizes_.zero_points, sizeof(zero_unit)),
                  offsets = take(sizes_.offsets, sizeof(offset_unit));
    const index_t tensor_scales = take(sizes_.tensor_scales, sizeof(tensor_scale_unit));
    if (bytes == 0) return;
    memory_ = line_memory(static_cast<std::size_t>(bytes));
    codes_ = start_array<code_unit>(codes, sizes_.codes);
    scales_ = start_array<scale_unit>(scales, sizes_.scales);
    zeros_ = start_array<zero_unit>(zeros, sizes_.zero_points);
    offsets_ = start_array<offset_unit>(offsets, sizes_.offsets);
    tensor_scale_ = start_array<tensor_scale_unit>(tensor_scales, sizes_.tensor_scales);
  }
  heap_memory(heap_memory&& other) noexcept { swap(other); }
  heap_memory& operator=(heap_memory&& other) noexcept {
    heap_memory taken(std::move(other));
    swap(taken);
    return *this;
  }

  code_unit* codes() const { return codes_; }
  scale_unit* scales() const { return scales_; }
  zero_unit* zero_points() const { return zeros_; }
  offset_unit* offsets() const { return offsets_; }
  tensor_scale_unit* tensor_scale() const { return tensor_scale_; }
  const array_sizes& sizes() const { return sizes_; }

 private:
  template <class T>
  T* start_array(index_t at, index_t count) const {
    T* first = reinterpret_cast<T*>(memory_.data() + at);
    for (index_t i = 0; i < count; ++i) ::new (static_cast<void*>(first + i)) T;
    return first;
  }
  template <class T>
  static void clear(T* first, index_t count) {
    for (index_t i = 0; i < count; ++i) first[i] = T{};
  }
  void swap(heap_memory& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(codes_, other.codes_);
    std::swap(scales_, other.scales_);
    std::swap(zeros_, other.zeros_);
    std::swap(offsets_, other.offsets_);
    std::swap(tensor_scale_, other.tensor_scale_);
    std::swap(sizes_, other.sizes_);
  }

  line_memory memory_;
  code_unit* codes_ = nullptr;
  scale_unit* scales_ = nullptr;
  zero_unit* zeros_ = nullptr;
  offset_unit* offsets_ = nullptr;
  tensor_scale_unit* tensor_scale_ = nullptr;
  array_sizes sizes_{};
};

/// The same arrays as members: no heap, usable in constant expressions.
template <quantization_scheme S, class Shape>
class inline_memory {
  static constexpr array_sizes sizes_ = sizes_of<Shape, S>(Shape{});
  template <class T, index_t N>
  struct array_of {
    T items[static_cast<std::size_t>(N)]{};
    constexpr T* data() { return items; }
    constexpr const T* data() const { return items; }
  };
  template <class T>
  struct array_of<T, 0> {
    constexpr T* data() const { return nullptr; }
  };

 public:
  constexpr inline_memory() = default;
  constexpr explicit inline_memory(const Shape&) {}
  constexpr inline_memory(uninitialized_t, const Shape&) {}
  constexpr auto* codes() { return codes_.data(); }
  constexpr auto* codes() const { return codes_.data(); }
  constexpr auto* scales() { return scales_.data(); }
  constexpr auto* scales() const { return scales_.data(); }
  constexpr auto* zero_points() { return zeros_.data(); }
  constexpr auto* zero_points() const { return zeros_.data(); }
  constexpr auto* offsets() { return offsets_.data(); }
  constexpr auto* offsets() const { return offsets_.data(); }
  constexpr auto* tensor_scale() { return tensor_scale_.data(); }
  constexpr auto* tensor_scale() const { return tensor_scale_.data(); }
  static constexpr const array_sizes& sizes() { return sizes_; }

 private:
  alignas(alignment) array_of<typename Shape::code_unit, sizes_.codes> codes_;
  [[no_unique_address]] array_of<unit_t<typename S::scale_format>, sizes_.scales> scales_;
  [[no_unique_address]] array_of<unit_t<typename S::zero_point_format>, sizes_.zero_points> zeros_;
  [[no_unique_address]] array_of<unit_t<typename S::offset_format>, sizes_.offsets> offsets_;
  [[no_unique_address]] array_of<unit_t<typename S::tensor_scale_format>, sizes_.tensor_scales> tensor_scale_;
};

}  // namespace detail

/// Owns a quantized tensor. Starts as zeros: codes 0, scales 1, zero points 0. Copies copy, moves move; a tensor moves
/// into one of another scheme whose `stored<>` form is the same, since only conversions to come would differ. The
/// memory's layout depends on neither compiler flags nor CPU.
template <quantization_scheme S, tensor_extents Extents = matrix_extents, storage_order Order = row_major>
class tensor {
 public:
  using scheme_type = S;
  using extents_type = Extents;
  using order_type = Order;
  using stored_type = stored<S>;
  using shape_type = tensor_shape<stored_type, Extents, Order>;
  using view_type = tensor_view<S, Extents, Order>;
  using span_type = tensor_span<S, Extents, Order>;
  using granularity_type = typename S::granularity_type;
  using zero_granularity_type = typename S::zero_granularity_type;
  static constexpr int rank = Extents::rank;
  static constexpr bool is_inline =
      Extents::is_static && has_static_blocks<granularity_type> && has_static_blocks<zero_granularity_type>;
  using memory_type = std::conditional_t<is_inline, detail::inline_memory<stored_type, shape_type>,
                                         detail::heap_memory<stored_type, shape_type>>;

  /// No elements where an extent is dynamic; zeros otherwise.
  constexpr tensor() : tensor(Extents{}, granularity_type{}, zero_granularity_type{}) {}
  /// Zeros of these extents; run-time granularities (`group<dynamic>{64}`) come after them.
  constexpr explicit tensor(const Extents& extents) : tensor(extents, detail::only_granularity<granularity_type>()) {}
  constexpr tensor(const Extents& extents, const granularity_type& granularity)
      : tensor(extents, granularity, zero_like(granularity)) {}
  constexpr tensor(const Extents& extents, const granularity_type& granularity,
                   const zero_granularity_type& zero_granularity)
      : shape_{extents, granularity, zero_granularity}, memory_(shape_) {
    fill(memory_.scales(), memory_.sizes().scales, detail::one_code<typename S::scale_format>());
    if constexpr (S::has_tensor_scale)
      fill(memory_.tensor_scale(), 1, detail::one_code<typename S::tensor_scale_format>());
    if constexpr (S::is_interleaved) fill_block_scales();
  }
  /// Codes, scales and zero points of any value: for whoever writes all of them. Inline tensors start as zeros.
  constexpr tensor(uninitialized_t, const Extents& extents, const granularity_type& granularity)
      : shape_{extents, granularity, zero_like(granularity)}, memory_(uninitialized, shape_) {}

  constexpr tensor(const tensor& other) : shape_(other.shape_), memory_(other.shape_) { copy_arrays(other); }
  constexpr tensor(tensor&& other) noexcept : shape_(other.shape_), memory_(std::move(other.memory_)) {
    other.forget();
  }
  constexpr tensor& operator=(const tensor& other) {
    if (this != &other) *this = tensor(other);
    return *this;
  }
  constexpr tensor& operator=(tensor&& other) noexcept {
    if (this != &other) {
      shape_ = other.shape_;
      memory_ = std::move(other.memory_);
      other.forget();
    }
    return *this;
  }
  ~tensor() = default;

  /// From a tensor of a scheme that means the same bytes: moves its memory.
  template <quantization_scheme S2>
  requires(std::same_as<stored<S2>, stored<S>> &&
           !std::same_as<S2, S>) constexpr tensor(tensor<S2, Extents, Order>&& other) noexcept
      : shape_(other.shape_), memory_(std::move(other.memory_)) {
    other.forget();
  }
  /// From a tensor of the same bytes' meaning with other (fitting) extents or the other storage order: copies element
  /// by element.
  template <quantization_scheme S2, tensor_extents E2, storage_order O2>
  requires(std::same_as<stored<S2>, stored<S>>&& E2::rank == rank &&
           !(std::same_as<E2, Extents> && std::same_as<O2, Order> &&
             std::same_as<S2, S>)) constexpr tensor(const tensor<S2, E2, O2>& other)
      : tensor(Extents(other.extents()), other.granularity(), other.zero_granularity()) {
    copy_elements(other.view());
  }

  constexpr const Extents& extents() const { return shape_.extents; }
  constexpr index_t extent(int axis) const { return shape_.extents[axis]; }
  constexpr index_t size() const { return shape_.extents.size(); }
  constexpr index_t rows() const { return view().rows(); }
  constexpr index_t cols() const { return view().cols(); }
  constexpr const granularity_type& granularity() const { return shape_.granularity; }
  constexpr const zero_granularity_type& zero_granularity() const { return shape_.zero_granularity; }
  constexpr const shape_type& shape() const { return shape_; }

  /// Bytes that codes, scales, zero points, offsets and tensor scale take, without padding.
  constexpr index_t byte_size() const {
    const detail::array_sizes& n = memory_.sizes();
    return n.codes * bytes_of(memory_.codes()) + n.scales * bytes_of(memory_.scales()) +
           n.zero_points * bytes_of(memory_.zero_points()) + n.offsets * bytes_of(memory_.offsets()) +
           n.tensor_scales * bytes_of(memory_.tensor_scale());
  }

  /// The codes as stored, row after row (packed codes as bytes).
  constexpr auto codes() { return planar_span(memory_.codes(), memory_.sizes().codes); }
  constexpr auto codes() const { return planar_span(readable(memory_.codes()), memory_.sizes().codes); }
  /// One a block, in storage order; f32 as float, bf16 and f16 as their 16 bits, e8m0 and FP8 as bytes.
  constexpr auto scales() { return planar_span(memory_.scales(), memory_.sizes().scales); }
  constexpr auto scales() const { return planar_span(readable(memory_.scales()), memory_.sizes().scales); }
  /// One a block of the zero points' granularity; sub-byte formats one a byte.
  constexpr auto zero_points() {
    static_assert(S::has_zero_point, "qtensor: this scheme is symmetric; it stores no zero points.");
    return planar_span(memory_.zero_points(), memory_.sizes().zero_points);
  }
  constexpr auto zero_points() const {
    static_assert(S::has_zero_point, "qtensor: this scheme is symmetric; it stores no zero points.");
    return planar_span(readable(memory_.zero_points()), memory_.sizes().zero_points);
  }
  /// The bytes of an interleaved layout, block after block.
  constexpr auto blocks() const {
    static_assert(S::is_interleaved, "qtensor: blocks() are those of interleaved layouts; use codes() and scales().");
    return std::span(readable(memory_.codes()), static_cast<std::size_t>(memory_.sizes().codes));
  }
  constexpr auto blocks() {
    static_assert(S::is_interleaved, "qtensor: blocks() are those of interleaved layouts; use codes() and scales().");
    return std::span(memory_.codes(), static_cast<std::size_t>(memory_.sizes().codes));
  }
  /// The scale of the whole tensor; 1 where the scheme has one level.
  constexpr float tensor_scale() const { return view().tensor_scale(); }
  constexpr void set_tensor_scale(float scale) {
    static_assert(S::has_tensor_scale, "qtensor: this scheme has one level of scales; add tensor_scale<f32>.");
    *memory_.tensor_scale() = scale;
  }

  constexpr view_type view() const& { return {shape_, arrays_of<view_type>(memory_)}; }
  constexpr view_type view() const&& = delete;  // would dangle: name the tensor first
  constexpr span_type span() & {
    return {typename span_type::shape_type{shape_.extents, shape_.granularity, shape_.zero_granularity},
            arrays_of<span_type>(memory_)};
  }
  /// view().with(option...): `W.with(int8_activations) * X`.
  template <class... Option>
  auto with(const Option&... option) const& {
    return view().with(option...);
  }
  template <class... Option>
  auto with(const Option&... option) const&& = delete;  // would dangle: name the tensor first
  constexpr operator view_type() const& { return view(); }
  constexpr operator view_type() const&& = delete;

  // Elements, as views give them.
  template <class... I>
  constexpr std::uint32_t code(I... index) const {
    return view().code(index...);
  }
  template <class... I>
  constexpr float scale(I... index) const {
    return view().scale(index...);
  }
  template <class... I>
  constexpr std::int64_t zero_point(I... index) const {
    return view().zero_point(index...);
  }

  /// "48x160 [int4 x group<32> / f32]"
  template <class Traits>
  friend std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& out, const tensor& t) {
    for (int axis = 0; axis < rank; ++axis) out << (axis != 0 ? "x" : "") << t.extent(axis);
    return out << " [" << name<S>.c_str() << "]";
  }

 private:
  template <quantization_scheme, tensor_extents, storage_order>
  friend class tensor;

  template <class G>
  static constexpr zero_granularity_type zero_like(const G& granularity) {
    if constexpr (std::is_same_v<G, zero_granularity_type>)
      return granularity;
    else
      return detail::only_granularity<zero_granularity_type>();
  }
  template <class T>
  static constexpr index_t bytes_of(const T*) {
    return static_cast<index_t>(sizeof(T));
  }
  /// A constant tensor shows constant arrays, wherever they lie.
  template <class T>
  static constexpr const T* readable(const T* first) {
    return first;
  }
  template <class T>
  static constexpr std::span<T> planar_span(T* first, index_t count) {
    static_assert(!S::is_interleaved, "qtensor: an interleaved layout has no array of its own for this; use blocks().");
    return {first, static_cast<std::size_t>(count)};
  }
  template <class T>
  static constexpr void fill(T* first, index_t count, std::uint32_t code) {
    for (index_t i = 0; i < count; ++i) {
      if constexpr (std::is_same_v<T, float>)
        first[i] = float_of(code);
      else
        first[i] = static_cast<T>(code);
    }
  }
  constexpr void fill_block_scales() {
    const auto target = span();
    const auto e = target.storage_extents();
    for_each_row(e, [&](auto index) {
      for (index_t& i = index[index.size() - 1]; i < e[e.size() - 1]; i += shape_.granularity.size())
        target.set_storage_scale_code(index, detail::one_code<typename S::scale_format>());
    });
  }
  template <class View, class Memory>
  static constexpr auto arrays_of(Memory& memory) {
    typename View::arrays a{};
    a.codes = memory.codes();
    if constexpr (!S::is_interleaved) a.scales = memory.scales();
    if constexpr (S::has_zero_point) a.zero_points = memory.zero_points();
    if constexpr (S::has_offset && !S::is_interleaved) a.offsets = memory.offsets();
    if constexpr (S::has_tensor_scale) a.tensor_scale = memory.tensor_scale();
    return a;
  }
  template <class T>
  static constexpr void copy(const T* from, T* to, index_t count) {
    for (index_t i = 0; i < count; ++i) to[i] = from[i];
  }
  template <class Other>
  constexpr void copy_arrays(const Other& other) {
    const detail::array_sizes& n = other.memory_.sizes();  // none where its memory moved away
    copy(other.memory_.codes(), memory_.codes(), n.codes);
    copy(other.memory_.scales(), memory_.scales(), n.scales);
    copy(other.memory_.zero_points(), memory_.zero_points(), n.zero_points);
    copy(other.memory_.offsets(), memory_.offsets(), n.offsets);
    copy(other.memory_.tensor_scale(), memory_.tensor_scale(), n.tensor_scales);
  }
  /// Calls row(index) for the first element of every contiguous run.
  template <class Row>
  static constexpr void for_each_row(const typename Extents::array& e, Row row) {
    typename Extents::array index{};
    for (std::size_t axis = 0; axis < e.size(); ++axis)
      if (e[axis] == 0) return;
    for (;;) {
      row(index);
      int axis = rank - 2;
      while (axis >= 0 && ++index[static_cast<std::size_t>(axis)] == e[static_cast<std::size_t>(axis)])
        index[static_cast<std::size_t>(axis--)] = 0;
      if (axis < 0) return;
    }
  }
  template <class View>
  constexpr void copy_elements(const View& from) {
    const auto to = span();
    const auto e = to.storage_extents();
    for_each_row(e, [&](auto index) {
      for (index_t& i = index[index.size() - 1]; i < e[e.size() - 1]; ++i) {
        const auto source = reordered<typename View::order_type>(reordered<Order>(index));
        to.set_storage_code(index, from.storage_code(source));
        to.set_storage_scale_code(index, from.storage_scale_code(source));
        if constexpr (S::has_zero_point) to.set_storage_zero_point(index, from.storage_zero_point(source));
        if constexpr (S::has_offset) to.set_storage_offset_code(index, from.storage_offset_code(source));
        if constexpr (S::has_code_sum) to.set_storage_code_sum(index, from.storage_code_sum(source));
      }
    });
    if constexpr (S::has_tensor_scale) *memory_.tensor_scale() = *from.memory().tensor_scale;
  }
  /// After its memory moved away: no elements, where the type allows that.
  constexpr void forget() noexcept {
    if constexpr (!is_inline && Extents::dynamic_rank > 0) shape_.extents = Extents{};
  }

  shape_type shape_{};
  memory_type memory_{};
};

namespace detail {
template <class T>
inline constexpr bool is_tensor = false;
template <class S, class E, class O>
inline constexpr bool is_tensor<tensor<S, E, O>> = true;
}  // namespace detail

/// A tensor, a view or a span: whatever can be read as quantized numbers.
template <class T>
concept quantized = detail::is_tensor<std::remove_cvref_t<T>> || tensor_view_type<std::remove_cvref_t<T>>;

/// The readable view of a tensor, view or span.
template <quantized T>
constexpr auto as_view(const T& t) {
  if constexpr (detail::is_tensor<T>)
    return t.view();
  else
    return tensor_view<typename T::scheme_type, typename T::extents_type, typename T::order_type>(t);
}

}  // namespace qtensor
