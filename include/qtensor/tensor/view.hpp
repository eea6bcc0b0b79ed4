// Views: a tensor's memory seen without owning it; slices of views are views.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/tensor/bytes.hpp>
#include <qtensor/tensor/shape.hpp>
#include <span>

namespace qtensor {

struct read_only {
  template <class T>
  using pointer = const T*;
};
struct read_write {
  template <class T>
  using pointer = T*;
};

namespace detail {

struct absent {
  constexpr absent() = default;
  constexpr absent(std::nullptr_t) {}
};
/// A pointer, or nothing where the scheme stores no such array.
template <class Access, class F>
struct optional_pointer {
  using type = typename Access::template pointer<unit_t<F>>;
};
template <class Access>
struct optional_pointer<Access, none> {
  using type = absent;
};
template <class Access, class F>
using optional_pointer_t = typename optional_pointer<Access, F>::type;

/// `extents` of a slice: the sliced axis becomes dynamic.
template <class Extents, int Axis, class Axes>
struct sliced;
template <index_t... E, int Axis, std::size_t... I>
struct sliced<extents<E...>, Axis, std::index_sequence<I...>> {
  using type = extents<(static_cast<int>(I) == Axis ? dynamic : E)...>;
};
template <class Extents, int Axis>
using sliced_t =
    typename sliced<Extents, Axis, std::make_index_sequence<static_cast<std::size_t>(Extents::rank)>>::type;

/// A granularity as the matrices of a higher rank see it: itself where it only speaks of the last two axes, else
/// run-time blocks.
template <class G>
struct in_matrix {
  using type = block<dynamic, dynamic>;
};
template <>
struct in_matrix<per_tensor> {
  using type = per_tensor;
};
template <index_t N, index_t Axis>
requires(Axis == -1 || Axis == -2) struct in_matrix<group<N, Axis>> {
  using type = group<N, Axis>;
};
template <index_t... B>
requires(sizeof...(B) <= 2) struct in_matrix<block<B...>> {
  using type = block<B...>;
};
template <class G>
using in_matrix_t = typename in_matrix<G>::type;

/// The scheme of those matrices.
template <class S, class Zero = typename S::template policy_for<slot::zero_point>>
struct matrix_scheme {
  using type =
      qtensor::stored<qtensor::with<qtensor::stored<S>, static_only, in_matrix_t<typename S::granularity_type>>>;
};
template <class S, class F, granularity G>
struct matrix_scheme<S, zero_point<F, G>> {
  using type = qtensor::stored<qtensor::with<qtensor::stored<S>, static_only, in_matrix_t<typename S::granularity_type>,
                                             zero_point<F, in_matrix_t<G>>>>;
};
template <class S>
using matrix_scheme_t = typename matrix_scheme<S>::type;

}  // namespace detail

/// Codes, scales and zero points of a tensor, by pointer. Copies are cheap; whoever owns the memory must outlive it.
/// `tensor_view` reads, `tensor_span` writes. Indices are in the tensor's own axes; names with `storage` are in storage
/// order, the contiguous axis last.
template <quantization_scheme S, tensor_extents Extents, storage_order Order, class Access>
class basic_tensor_view {
 public:
  using scheme_type = S;
  using extents_type = Extents;
  using order_type = Order;
  using access_type = Access;
  using shape_type = tensor_shape<S, Extents, Order>;
  using code_unit = typename shape_type::code_unit;
  using granularity_type = typename S::granularity_type;
  using zero_granularity_type = typename S::zero_granularity_type;
  static constexpr int rank = Extents::rank;
  using index_array = std::array<index_t, static_cast<std::size_t>(rank)>;
  using grid = block_grid<rank>;

  using code_pointer = typename Access::template pointer<code_unit>;
  using scale_pointer =
      detail::optional_pointer_t<Access, std::conditional_t<S::is_interleaved, none, typename S::scale_format>>;
  using zero_pointer = detail::optional_pointer_t<Access, typename S::zero_point_format>;
  using offset_pointer =
      detail::optional_pointer_t<Access, std::conditional_t<S::is_interleaved, none, typename S::offset_format>>;
  using tensor_scale_pointer = detail::optional_pointer_t<Access, typename S::tensor_scale_format>;

  /// The arrays of a tensor; those the scheme does not store stay empty.
  struct arrays {
    code_pointer codes{};
    [[no_unique_address]] scale_pointer scales{};
    [[no_unique_address]] zero_pointer zero_points{};
    [[no_unique_address]] offset_pointer offsets{};
    [[no_unique_address]] tensor_scale_pointer tensor_scale{};
  };

  constexpr basic_tensor_view() : basic_tensor_view(shape_type{}, arrays{}) {}
  /// Over memory laid out as `tensor` lays it out for this shape.
  constexpr basic_tensor_view(const shape_type& shape, const arrays& memory)
      : extents_(shape.extents),
        granularity_(shape.granularity),
        zero_granularity_(shape.zero_granularity),
        memory_(memory),
        row_strides_(shape.row_strides()),
        scale_grid_(shape.scale_grid()),
        zero_grid_(shape.zero_grid()) {}
  /// A view whose strides and grids differ from the dense ones: slices and chips.
  constexpr basic_tensor_view(const shape_type& shape, const arrays& memory, const index_array& row_strides,
                              const grid& scales, const grid& zeros)
      : extents_(shape.extents),
        granularity_(shape.granularity),
        zero_granularity_(shape.zero_granularity),
        memory_(memory),
        row_strides_(row_strides),
        scale_grid_(scales),
        zero_grid_(zeros) {}

  /// Writable to readable, and any view to one whose scheme means the same bytes.
  template <quantization_scheme S2, tensor_extents E2, class A2>
  requires(std::same_as<stored<S2>, stored<S>>&& E2::rank == rank && std::same_as<Access, read_only> &&
           !std::same_as<basic_tensor_view<S2, E2, Order, A2>, basic_tensor_view> &&
           std::constructible_from<Extents, E2>) constexpr basic_tensor_view(const basic_tensor_view<S2, E2, Order, A2>&
                                                                                 other)
      : basic_tensor_view(shape_type{Extents(other.extents()), other.granularity(), other.zero_granularity()},
                          arrays{other.memory().codes, other.memory().scales, other.memory().zero_points,
                                 other.memory().offsets, other.memory().tensor_scale},
                          other.row_strides(), other.scale_grid(), other.zero_grid()) {}

  constexpr const Extents& extents() const { return extents_; }
  constexpr index_t extent(int axis) const { return extents_[axis]; }
  constexpr index_t size() const { return extents_.size(); }
  constexpr index_t rows() const { return matrix_extent(0); }
  constexpr index_t cols() const { return matrix_extent(1); }
  constexpr const granularity_type& granularity() const { return granularity_; }
  constexpr const zero_granularity_type& zero_granularity() const { return zero_granularity_; }
  constexpr shape_type shape() const { return {extents_, granularity_, zero_granularity_}; }

  constexpr const arrays& memory() const { return memory_; }
  /// Code units between neighbours on each axis but the contiguous one, storage order.
  constexpr const index_array& row_strides() const { return row_strides_; }
  constexpr const grid& scale_grid() const { return scale_grid_; }
  constexpr const grid& zero_grid() const { return zero_grid_; }
  constexpr index_array storage_extents() const { return shape().storage_extents(); }
  /// First code unit of the row that holds the element at this storage index.
  constexpr code_pointer row(const index_array& storage_index) const {
    code_pointer start = memory_.codes;
    for (int axis = 0; axis + 1 < rank; ++axis) start += storage_index[at(axis)] * row_strides_[at(axis)];
    return start;
  }

  /// The code of one element, in the low bits.
  constexpr std::uint32_t code(const index_array& index) const { return storage_code(reordered<Order>(index)); }
  /// The scale of one element as stored: a code of the scheme's scale format.
  constexpr std::uint32_t scale_code(const index_array& index) const {
    return storage_scale_code(reordered<Order>(index));
  }
  /// The scale of one element as a number; without the tensor scale of a two-level scheme.
  constexpr float scale(const index_array& index) const { return decode<typename S::scale_format>(scale_code(index)); }
  /// The zero point of one element; 0 where the scheme is symmetric.
  constexpr std::int64_t zero_point(const index_array& index) const {
    return storage_zero_point(reordered<Order>(index));
  }

  template <class... I>
  requires(sizeof...(I) == static_cast<std::size_t>(rank) &&
           (std::convertible_to<I, index_t> && ...)) constexpr std::uint32_t code(I... index) const {
    return code(index_array{static_cast<index_t>(index)...});
  }
  template <class... I>
  requires(sizeof...(I) == static_cast<std::size_t>(rank) &&
           (std::convertible_to<I, index_t> && ...)) constexpr float scale(I... index) const {
    return scale(index_array{static_cast<index_t>(index)...});
  }
  template <class... I>
  requires(sizeof...(I) == static_cast<std::size_t>(rank) &&
           (std::convertible_to<I, index_t> && ...)) constexpr std::int64_t zero_point(I... index) const {
    return zero_point(index_array{static_cast<index_t>(index)...});
  }

  constexpr std::uint32_t storage_code(const index_array& index) const {
    if constexpr (S::is_interleaved || is_packed<typename S::code_format>) {
      const auto [bytes, i, n] = code_run(index);
      using order = typename S::layout::order;
      if constexpr (requires { order::code_bits; })
        return order::load(bytes, i, n);
      else
        return load_code(bytes, order::bit(i, n, bits_in_memory<typename S::code_format>));
    } else
      return detail::code_of<typename S::code_format>(row(index)[index[at(rank - 1)]]);
  }
  constexpr std::uint32_t storage_scale_code(const index_array& index) const {
    if constexpr (S::is_interleaved)
      return detail::load_unit<typename S::scale_format>(block_start(index) + scale_at(index));
    else
      return detail::code_of<typename S::scale_format>(memory_.scales[scale_grid_.entry(index)]);
  }
  constexpr std::int64_t storage_zero_point(const index_array& index) const {
    using zero = typename S::zero_point_format;
    if constexpr (!S::has_zero_point)
      return 0;
    else
      return static_cast<std::int64_t>(
          zero::decode(detail::code_of<zero>(memory_.zero_points[zero_grid_.entry(index)])));
  }
  /// The offset of one element; 0 where the scheme has none.
  constexpr float storage_offset(const index_array& index) const {
    if constexpr (!S::has_offset)
      return 0.f;
    else
      return decode<typename S::offset_format>(storage_offset_code(index));
  }
  constexpr std::uint32_t storage_offset_code(const index_array& index) const requires(S::has_offset) {
    if constexpr (S::is_interleaved)
      return detail::load_unit<typename S::offset_format>(block_start(index) + interleaved_block<S>::offset_at);
    else
      return detail::code_of<typename S::offset_format>(memory_.offsets[scale_grid_.entry(index)]);
  }
  /// What the layout stores beside a block: the sum of its codes times its scale.
  constexpr std::uint32_t storage_code_sum(const index_array& index) const requires(S::has_code_sum) {
    return detail::load_unit<typename S::layout::code_sum_format>(block_start(index) + interleaved_block<S>::sum_at);
  }
  /// The scale of the whole tensor; 1 where the scheme has one level.
  constexpr float tensor_scale() const {
    if constexpr (S::has_tensor_scale)
      return decode<typename S::tensor_scale_format>(
          detail::code_of<typename S::tensor_scale_format>(*memory_.tensor_scale));
    else
      return 1.f;
  }

  constexpr void set_storage_code(const index_array& index,
                                  std::uint32_t code) const requires std::same_as<Access, read_write> {
    if constexpr (S::is_interleaved || is_packed<typename S::code_format>) {
      const auto [bytes, i, n] = code_run(index);
      using order = typename S::layout::order;
      if constexpr (requires { order::code_bits; })
        order::store(bytes, i, n, code);
      else
        store_code(bytes, order::bit(i, n, bits_in_memory<typename S::code_format>), code);
    } else
      row(index)[index[at(rank - 1)]] = detail::unit_from<typename S::code_format>(code);
  }
  constexpr void set_storage_scale_code(const index_array& index,
                                        std::uint32_t code) const requires std::same_as<Access, read_write> {
    if constexpr (S::is_interleaved)
      detail::store_unit<typename S::scale_format>(block_start(index) + scale_at(index), code);
    else
      memory_.scales[scale_grid_.entry(index)] = detail::unit_from<typename S::scale_format>(code);
  }
  /// Where the scale of the element at an index in storage order lies; scale_grid().stride[axis] leads to the next
  /// block's.
  constexpr auto storage_scales(const index_array& index) const requires(!S::is_interleaved) {
    return memory_.scales + scale_grid_.entry(index);
  }
  /// The same for its zero point, with zero_grid().
  constexpr auto storage_zero_points(const index_array& index) const requires(S::has_zero_point) {
    return memory_.zero_points + zero_grid_.entry(index);
  }
  constexpr void set_storage_offset_code(const index_array& index, std::uint32_t code) const
      requires(std::same_as<Access, read_write>&& S::has_offset) {
    if constexpr (S::is_interleaved)
      detail::store_unit<typename S::offset_format>(block_start(index) + interleaved_block<S>::offset_at, code);
    else
      memory_.offsets[scale_grid_.entry(index)] = detail::unit_from<typename S::offset_format>(code);
  }
  constexpr void set_storage_code_sum(const index_array& index, std::uint32_t code) const
      requires(std::same_as<Access, read_write>&& S::has_code_sum) {
    detail::store_unit<typename S::layout::code_sum_format>(block_start(index) + interleaved_block<S>::sum_at, code);
  }
  constexpr void set_storage_zero_point(const index_array& index, std::int64_t zero) const
      requires(std::same_as<Access, read_write>&& S::has_zero_point) {
    memory_.zero_points[zero_grid_.entry(index)] = static_cast<detail::unit_t<typename S::zero_point_format>>(zero);
  }

  /// Elements [first, first + count) of one axis. `first` must start a block of the scales and of the zero points, and
  /// on the contiguous axis a byte; the slice may end anywhere.
  template <int Axis>
  constexpr auto slice(index_t first, index_t count) const {
    static_assert(Axis >= 0 && Axis < rank, "qtensor: slice<Axis> needs an axis of this tensor, 0 to rank - 1.");
    constexpr int s = Order::axis(rank, Axis);
    require(first >= 0 && count >= 0 && first <= extents_[Axis] && count <= extents_[Axis] - first, "a slice of ",
            count, " elements from element ", first, " of axis ", Axis, " on leaves its ", extents_[Axis],
            " elements.");
    check_block_start(granularity_, Axis, first, "scale");
    if constexpr (S::has_zero_point) check_block_start(zero_granularity_, Axis, first, "zero point");

    using sliced = detail::sliced_t<Extents, Axis>;
    using result = basic_tensor_view<S, sliced, Order, Access>;
    auto sizes = extents_.to_array();
    sizes[at(Axis)] = count;
    arrays moved = memory_;
    const auto move = [](auto*& array, index_t steps) {
      if (array) array += steps;  // without elements there may be none
    };
    if constexpr (s < rank - 1)
      move(moved.codes, first * row_strides_[at(s)]);
    else
      move(moved.codes, units_before(first));
    const index_t scale_steps = first / scale_grid_.block[at(s)] * scale_grid_.stride[at(s)];
    if constexpr (!S::is_interleaved) move(moved.scales, scale_steps);
    if constexpr (S::has_offset && !S::is_interleaved) move(moved.offsets, scale_steps);
    if constexpr (S::has_zero_point)
      move(moved.zero_points, first / zero_grid_.block[at(s)] * zero_grid_.stride[at(s)]);
    return result(
        typename result::shape_type{sliced(sizes), granularity_, zero_granularity_},
        typename result::arrays{moved.codes, moved.scales, moved.zero_points, moved.offsets, moved.tensor_scale},
        row_strides_, scale_grid_, zero_grid_);
  }

  /// Whether slice<Axis>(first, ...) may begin there.
  template <int Axis>
  constexpr bool slices_from(index_t first) const {
    if (!starts_block(granularity_, Axis, first)) return false;
    if constexpr (S::has_zero_point)
      if (!starts_block(zero_granularity_, Axis, first)) return false;
    if constexpr (Order::axis(rank, Axis) == rank - 1) return starts_unit(first);
    return true;
  }

  /// The view with options for products: `W.with(int8_activations, on(pool)) * X` (see ops/product_options.hpp).
  template <class... Option>
  auto with(const Option&... option) const {
    return attach_options(std::type_identity<basic_tensor_view>{}, *this, option...);
  }

  // Slices of a matrix, named as Eigen names them.
  constexpr auto middle_rows(index_t first, index_t count) const { return matrix_slice<0>(first, count); }
  constexpr auto top_rows(index_t count) const { return matrix_slice<0>(0, count); }
  constexpr auto bottom_rows(index_t count) const { return matrix_slice<0>(rows() - count, count); }
  constexpr auto middle_cols(index_t first, index_t count) const { return matrix_slice<1>(first, count); }
  constexpr auto left_cols(index_t count) const { return matrix_slice<1>(0, count); }
  constexpr auto right_cols(index_t count) const { return matrix_slice<1>(cols() - count, count); }
  constexpr auto block(index_t first_row, index_t first_col, index_t row_count, index_t col_count) const {
    return middle_rows(first_row, row_count).middle_cols(first_col, col_count);
  }

  /// The matrix of the last two axes at one index of every leading axis: `W.matrix(i)` of a rank-3 tensor. Row-major
  /// tensors.
  template <class... I>
  requires(std::convertible_to<I, index_t>&&...) constexpr auto matrix(I... leading) const {
    static_assert(rank >= 2 && sizeof...(I) == static_cast<std::size_t>(rank - 2),
                  "qtensor: matrix(i, ...) takes one index for every axis but the last two.");
    static_assert(std::is_same_v<Order, row_major>,
                  "qtensor: matrix(i, ...) needs a row_major tensor, whose last two axes are a matrix in memory.");
    const index_array index{static_cast<index_t>(leading)..., 0, 0};
    for (int axis = 0; axis + 2 < rank; ++axis)
      require(index[at(axis)] >= 0 && index[at(axis)] < extents_[axis], "index ", index[at(axis)], " of axis ", axis,
              " is outside its ", extents_[axis], " elements.");
    return matrix_at(index);
  }

 private:
  static constexpr std::size_t at(int axis) { return static_cast<std::size_t>(axis); }

  constexpr index_t matrix_extent(int axis) const {
    static_assert(rank == 2,
                  "qtensor: rows and cols are those of a matrix; this tensor is not of rank 2 (use extent(axis) or "
                  "matrix(i, ...)).");
    return extents_[axis];
  }
  template <int Axis>
  constexpr auto matrix_slice(index_t first, index_t count) const {
    static_assert(rank == 2,
                  "qtensor: this slice needs a matrix; use slice<axis>(first, count) for tensors of other ranks.");
    return slice<Axis>(first, count);
  }
  template <class G>
  constexpr void check_block_start(const G& g, int axis, index_t first, const char* what) const {
    const index_t block = g.block_extent(rank, axis, extents_[axis]);
    require(starts_block(g, axis, first), "a slice that starts at element ", first, " of axis ", axis,
            " cuts a block of ", block, " elements that share a ", what, "; start at a multiple of ", block, ".");
  }
  template <class G>
  constexpr bool starts_block(const G& g, int axis, index_t first) const {
    const index_t block = g.block_extent(rank, axis, extents_[axis]);
    return first % block == 0 || block >= extents_[axis] || first == extents_[axis];
  }
  /// Whether an element of a row is the first of an interleaved block, or of a byte.
  constexpr bool starts_unit(index_t first) const {
    if constexpr (S::is_interleaved)
      return first % interleaved_block<S>::elements(granularity_) == 0;
    else
      return !is_packed<typename S::code_format> || first * S::code_format::bits % 8 == 0;
  }
  /// Code units before element `first` of a row.
  constexpr index_t units_before(index_t first) const {
    if constexpr (S::is_interleaved) {
      const index_t n = interleaved_block<S>::elements(granularity_);
      require(starts_unit(first), "a slice that starts at element ", first, " cuts an interleaved block of ", n,
              " elements; start at a multiple of it.");
      return first / n * interleaved_block<S>::bytes(granularity_);
    } else if constexpr (is_packed<typename S::code_format>) {
      require(starts_unit(first), "a slice that starts at element ", first, " starts inside a byte of ",
              S::code_format::bits, "-bit codes; start at a multiple of ",
              8 / (S::code_format::bits & -S::code_format::bits), ".");
      return first * S::code_format::bits / 8;
    } else
      return first;
  }

  /// Start of the interleaved block that holds an element.
  constexpr code_pointer block_start(const index_array& index) const {
    using blocks = interleaved_block<S>;
    return row(index) + index[at(rank - 1)] / blocks::elements(granularity_) * blocks::bytes(granularity_);
  }
  /// Where in its interleaved block the scale of an element's group lies.
  constexpr index_t scale_at(const index_array& index) const {
    return index[at(rank - 1)] / granularity_.size() % interleaved_block<S>::groups * interleaved_block<S>::scale_bytes;
  }
  /// The run of codes that an element is part of: its first byte, the element's place in it, its length (0 in planar
  /// rows).
  struct run_position {
    code_pointer bytes;
    index_t i, n;
  };
  constexpr run_position code_run(const index_array& index) const {
    const index_t i = index[at(rank - 1)];
    if constexpr (S::is_interleaved) {
      using blocks = interleaved_block<S>;
      const index_t n = granularity_.size();
      return {block_start(index) + blocks::codes_at + i / n % blocks::groups * blocks::code_bytes(granularity_), i % n,
              n};
    } else
      return {row(index), i, 0};
  }
  static constexpr std::uint32_t load_code(const std::uint8_t* bytes, index_t bit) {
    if constexpr (!is_packed<typename S::code_format>)
      return detail::load_unit<typename S::code_format>(bytes + bit / 8);
    else
      return detail::load_bits<S::code_format::bits>(bytes, bit);
  }
  static constexpr void store_code(std::uint8_t* bytes, index_t bit, std::uint32_t code) {
    if constexpr (!is_packed<typename S::code_format>)
      detail::store_unit<typename S::code_format>(bytes + bit / 8, code);
    else
      detail::store_bits<S::code_format::bits>(bytes, bit, code);
  }

  constexpr auto matrix_at(const index_array& start) const {
    using sizes = qtensor::extents<Extents::static_extent(rank - 2), Extents::static_extent(rank - 1)>;
    using result = basic_tensor_view<detail::matrix_scheme_t<S>, sizes, Order, Access>;
    arrays moved = memory_;
    moved.codes = row(start);
    if constexpr (!S::is_interleaved) moved.scales += scale_grid_.entry(start);
    if constexpr (S::has_offset && !S::is_interleaved) moved.offsets += scale_grid_.entry(start);
    if constexpr (S::has_zero_point) moved.zero_points += zero_grid_.entry(start);
    const auto last_two = [](const index_array& of) {
      return std::array<index_t, 2>{of[at(rank - 2)], of[at(rank - 1)]};
    };
    return result({sizes(last_two(extents_.to_array())), in_matrix(granularity_), in_matrix_zero()},
                  {moved.codes, moved.scales, moved.zero_points, moved.offsets, moved.tensor_scale},
                  last_two(row_strides_), {last_two(scale_grid_.block), last_two(scale_grid_.stride)},
                  {last_two(zero_grid_.block), last_two(zero_grid_.stride)});
  }
  template <class G>
  constexpr auto in_matrix(const G& g) const {
    using reduced = detail::in_matrix_t<G>;
    if constexpr (std::is_same_v<reduced, G>)
      return g;
    else
      return reduced(g.block_extent(rank, rank - 2, extents_[rank - 2]),
                     g.block_extent(rank, rank - 1, extents_[rank - 1]));
  }
  constexpr auto in_matrix_zero() const {
    using zero = typename detail::matrix_scheme_t<S>::zero_granularity_type;
    if constexpr (std::is_same_v<zero, zero_granularity_type>)
      return zero_granularity_;
    else
      return in_matrix(zero_granularity_);
  }

  Extents extents_;
  [[no_unique_address]] granularity_type granularity_;
  [[no_unique_address]] zero_granularity_type zero_granularity_;
  arrays memory_;
  index_array row_strides_;
  grid scale_grid_;
  grid zero_grid_;
};

/// Reads; always of a stored form, so that conversion policies do not multiply kernels.
template <quantization_scheme S, tensor_extents Extents = matrix_extents, storage_order Order = row_major>
using tensor_view = basic_tensor_view<stored<S>, Extents, Order, read_only>;
/// Writes; keeps the conversion policies, which say how numbers become its codes.
template <quantization_scheme S, tensor_extents Extents = matrix_extents, storage_order Order = row_major>
using tensor_span = basic_tensor_view<S, Extents, Order, read_write>;

namespace detail {
template <class T>
inline constexpr bool is_tensor_view = false;
template <class S, class E, class O, class A>
inline constexpr bool is_tensor_view<basic_tensor_view<S, E, O, A>> = true;
}  // namespace detail

/// A view or a span.
template <class T>
concept tensor_view_type = detail::is_tensor_view<std::remove_cv_t<T>>;

}  // namespace qtensor
