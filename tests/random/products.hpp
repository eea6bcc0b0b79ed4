// What random programs of products share: operands in memory of exactly their size, their numbers, sinks that watch.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <numeric>
#include <qtensor/ops/multiply.hpp>
#include <qtensor/reference/matmul.hpp>
#include <qtensor/reference/product.hpp>

#include "../ops/product_groups_check.hpp"
#include "../ops/threads.hpp"
#include "dice.hpp"

namespace fuzz {

using namespace qtensor;

/// How wild the parameters of an operand may be: `ordinary` ones keep sums finite and far from the smallest numbers.
enum class parameters { ordinary, any };

inline float ordinary_number(dice& dice) {
  return static_cast<float>(dice.within(1, 4095)) * exp2i(static_cast<int>(dice.within(-14, -10)));
}
/// Sizes of products whose scalar definition takes a moment; seldom more.
struct product_sizes {
  index_t rows, outputs, depth;
  explicit product_sizes(dice& dice, index_t most_depth = 700)
      : rows(dice.extent(140)), outputs(dice.extent(200)), depth(dice.extent(most_depth)) {
    const index_t most = dice.chance(30) ? index_t{1} << 23 : index_t{1} << 18;
    while (rows * outputs * depth > most) (outputs > rows ? outputs : depth > 2 * rows ? depth : rows) /= 2;
  }
};

template <granularity G>
G drawn_granularity(dice& dice) {
  const auto size = [&] { return dice.one_of(index_t{1}, index_t{16}, index_t{32}, dice.within(1, 80)); };
  if constexpr (std::is_same_v<G, block<dynamic, dynamic>>)
    return G(dice.chance(3) ? whole : size(), dice.chance(6) ? whole : size());
  else if constexpr (requires { G(index_t{1}); })
    return G(size());
  else
    return {};
}

/// What the elements of an operand are worth, output by output, as reference/product.hpp asks for them.
struct operand_numbers {
  index_t outputs, depth;
  bool one_scale = true, has_offset = false, has_tensor_scale = false;
  float unit = 1.f, tensor_scale = 1.f;
  std::vector<std::int64_t> numbers{};
  std::vector<float> scales{}, offsets{};

  struct row {
    bool one_scale, has_offset, has_tensor_scale;
    float unit, tensor_scale;
    const std::int64_t* numbers;
    const float *scales, *offsets;
    std::int64_t number(index_t k) const { return numbers[k]; }
    float scale(index_t k) const { return scales[k]; }
    float offset(index_t k) const { return offsets[k]; }
  };
  row output(index_t o) const {
    const index_t at = o * depth;
    return {one_scale,    has_offset,          has_tensor_scale,   unit,
            tensor_scale, numbers.data() + at, scales.data() + at, has_offset ? offsets.data() + at : nullptr};
  }
};

/// Codes and parameters of all kinds, a matrix of outputs x depth (Depth cols) or depth x outputs, sometimes a part of
/// a larger one; every array has its own memory and ends with its last element.
template <quantization_scheme S, storage_order Order = row_major, depth_axis Depth = depth_axis::cols>
class drawn_operand {
  using code = typename S::code_format;
  using span_type = tensor_span<S, matrix_extents, Order>;
  static constexpr int depth_at = Depth == depth_axis::cols ? 1 : 0;

 public:
  using scheme_type = S;
  using view_type = tensor_view<S, matrix_extents, Order>;

  drawn_operand(dice& dice, index_t outputs, index_t depth, parameters how = parameters::any) {
    const index_t sizes[2] = {Depth == depth_axis::cols ? outputs : depth, Depth == depth_axis::cols ? depth : outputs};
    index_t first[2] = {}, behind[2] = {};
    if (dice.chance(3))
      for (int axis : {0, 1}) first[axis] = dice.within(0, 70), behind[axis] = dice.within(0, 3);
    using shape_type = typename span_type::shape_type;
    shape_type shape{matrix_extents(first[0] + sizes[0] + behind[0], first[1] + sizes[1] + behind[1]),
                     drawn_granularity<typename S::granularity_type>(dice)};
    if constexpr (std::is_same_v<typename S::granularity_type, typename S::zero_granularity_type>)
      shape.zero_granularity = shape.granularity;
    else
      shape.zero_granularity = drawn_granularity<typename S::zero_granularity_type>(dice);
    codes_.resize(static_cast<std::size_t>(shape.code_units()));
    typename span_type::arrays memory{};
    memory.codes = codes_.data();
    if constexpr (!S::is_interleaved) memory.scales = room(scales_, shape.scale_count());
    if constexpr (S::has_offset && !S::is_interleaved) memory.offsets = room(offsets_, shape.scale_count());
    if constexpr (S::has_zero_point) memory.zero_points = room(zeros_, shape.zero_point_count());
    if constexpr (S::has_tensor_scale) memory.tensor_scale = &tensor_scale_;
    const span_type all(shape, memory);
    fill(dice, all, how);
    while (!all.template slices_from<0>(first[0])) --first[0];
    while (!all.template slices_from<1>(first[1])) --first[1];
    view_ = view_type(all).block(first[0], first[1], sizes[0], sizes[1]);
  }
  drawn_operand(const drawn_operand&) = delete;

  const view_type& view() const { return view_; }
  auto codes() const { return ops::weights_of<view_type, Depth>(view_); }
  /// Packed; some of them were bytes in a file.
  auto packed(dice& dice) const {
    auto p = pack<simd::best_arch, Depth>(view_);
    if (dice.chance(3)) p = decltype(p)::from_bytes(p.bytes());
    return p;
  }
  index_t outputs() const { return view_.extent(1 - depth_at); }
  index_t depth() const { return view_.extent(depth_at); }
  /// After how many elements of the depth parameters change; 0 where they do not.
  index_t period() const {
    constexpr auto axis = static_cast<std::size_t>(Order::axis(2, depth_at));
    const auto of = [&](const auto& grid) { return grid.block[axis] < depth() ? grid.block[axis] : 0; };
    return std::gcd(of(view_.scale_grid()), S::has_zero_point ? of(view_.zero_grid()) : 0);
  }
  /// Dequantized: values()[output * depth + k].
  std::vector<float> values() const {
    std::vector<float> v;
    each([&](const auto& at) { v.push_back(reference::value(view_, at)); });
    return v;
  }
  operand_numbers numbers() const {
    operand_numbers n{outputs(),           depth(),           period() == 0,       S::has_offset,
                      S::has_tensor_scale, check::unit<code>, view_.tensor_scale()};
    each([&](const auto& at) {
      n.numbers.push_back(static_cast<std::int64_t>(decode<code>(view_.code(at)) / n.unit) - view_.zero_point(at));
      n.scales.push_back(view_.scale(at));
      if (S::has_offset) n.offsets.push_back(view_.storage_offset(reordered<Order>(at)));
    });
    return n;
  }

 private:
  template <class T>
  static T* room(std::vector<T>& array, index_t n) {
    array.resize(static_cast<std::size_t>(n));
    return array.data();
  }
  template <class Use>
  void each(const Use& use) const {
    for (index_t o = 0; o < outputs(); ++o)
      for (index_t k = 0; k < depth(); ++k)
        use(Depth == depth_axis::cols ? std::array<index_t, 2>{o, k} : std::array<index_t, 2>{k, o});
  }
  static void fill(dice& dice, const span_type& all, parameters how) {
    using scale_format = typename S::scale_format;
    // All alike, ends of the range among others, or anything. NaN codes are rare: they hide what else is wrong.
    const index_t kind = dice.within(0, 5);
    const bool wild = how == parameters::any && dice.chance(8), any_scales = how == parameters::any && dice.chance(4);
    const std::uint32_t all_alike = dice.bits();
    const auto a_code = [&] {
      for (;;) {
        std::uint32_t c = kind == 0 ? all_alike : dice.bits();
        if (kind == 1) c = dice.one_of(0x80808080u, 0x7f7f7f7fu, 0xffffffffu, 0u, c);
        c &= static_cast<std::uint32_t>((std::uint64_t{1} << code::bits) - 1);
        if (wild || is_finite(static_cast<float>(code::decode(c)))) return c;
        if (kind == 0) return 0u;
      }
    };
    const auto a_scale = [&]<class F>(std::type_identity<F>) {
      const bool any = any_scales && dice.chance(3);
      if (!any) return encode<F>(ordinary_number(dice));
      return dice.bits() & static_cast<std::uint32_t>((std::uint64_t{1} << F::bits) - 1);
    };
    reference::for_each_index({}, all.storage_extents(), [&](const auto& i) { all.set_storage_code(i, a_code()); });
    reference::for_each_block(all.scale_grid(), all.storage_extents(), [&](const auto& i, const auto&) {
      all.set_storage_scale_code(i, a_scale(std::type_identity<scale_format>{}));
      if constexpr (S::has_offset)
        all.set_storage_offset_code(i, a_scale(std::type_identity<typename S::offset_format>{}));
    });
    if constexpr (S::has_tensor_scale)
      *all.memory().tensor_scale = qtensor::detail::unit_from<typename S::tensor_scale_format>(
          a_scale(std::type_identity<typename S::tensor_scale_format>{}));
    if constexpr (S::has_zero_point) {
      using zero = typename S::zero_point_format;
      // Far ones still leave sums of products of two of them in 63 bits.
      constexpr std::int64_t least = std::max<std::int64_t>(zero::min, -(1 << 22)),
                             most = std::min<std::int64_t>(zero::max, 1 << 22);
      const index_t zeros = dice.within(0, 4);
      const std::int64_t one = dice.within(least, most);
      reference::for_each_block(all.zero_grid(), all.storage_extents(), [&](const auto& i, const auto&) {
        const std::int64_t near = dice.within(std::max(least, std::int64_t{-128}), std::min(most, std::int64_t{127}));
        const std::int64_t draws[] = {one, near, dice.chance(2) ? least : most, dice.within(least, most), 0};
        all.set_storage_zero_point(i, draws[zeros]);
      });
    }
  }

  std::vector<typename span_type::code_unit> codes_;
  std::vector<qtensor::detail::unit_t<typename S::scale_format>> scales_;
  std::vector<qtensor::detail::unit_t<std::conditional_t<S::has_offset, typename S::offset_format, f32>>> offsets_;
  std::vector<qtensor::detail::unit_t<std::conditional_t<S::has_zero_point, typename S::zero_point_format, f32>>>
      zeros_;
  qtensor::detail::unit_t<std::conditional_t<S::has_tensor_scale, typename S::tensor_scale_format, f32>>
      tensor_scale_{};
  view_type view_;
};

/// Products of codes by definition, over groups of `period` in which neither side changes its parameters (0: all); as
/// one sum where the weights are integers under one scale.
inline std::vector<float> by_definition(const operand_numbers& x, const operand_numbers& w, index_t period,
                                        bool integer_weights) {
  const index_t depth = x.depth;
  const bool one_sum = period == 0 && integer_weights && !w.has_offset;
  std::vector<float> y;
  for (index_t m = 0; m < x.outputs; ++m)
    for (index_t n = 0; n < w.outputs; ++n)
      y.push_back(one_sum ? reference::integer_product(x.output(m), w.output(n), depth)
                          : reference::group_product(x.output(m), w.output(n), depth, period == 0 ? depth : period));
  return y;
}

/// A matrix of rows x cols in memory with any strides: gaps, columns, rows that are all the same.
template <class T>
class drawn_memory {
 public:
  drawn_memory(dice& dice, index_t rows, index_t cols, bool may_repeat) : rows_(rows), cols_(cols) {
    const index_t gap = dice.chance(3) ? dice.within(0, 70) : 0, step = dice.chance(5) ? dice.within(2, 3) : 1;
    col_stride_ = step, row_stride_ = cols * step + gap;
    if (dice.chance(3)) row_stride_ = step, col_stride_ = rows * step + gap;
    if (may_repeat && dice.chance(12)) (dice.chance(2) ? row_stride_ : col_stride_) = 0;
    first_ = dice.chance(2) ? dice.within(0, 17) : 0;
    const bool none = rows == 0 || cols == 0;
    const index_t last = none ? -1 : (rows - 1) * row_stride_ + (cols - 1) * col_stride_;
    elements.resize(static_cast<std::size_t>(first_ + last + 1));
  }
  template <class To = T>
  matrix_ref<To> ref() {
    return {elements.data() + first_, rows_, cols_, row_stride_, col_stride_};
  }

  std::vector<T> elements;

 private:
  index_t rows_, cols_, row_stride_, col_stride_, first_;
};

/// The sink that keeps every tile, sees that each element comes once, and spoils what it was shown, as it may.
class watching_sink {
 public:
  watching_sink(index_t rows, index_t cols)
      : rows_(rows), cols_(cols), values_(static_cast<std::size_t>(rows * cols)), seen_(values_.size()) {}
  void operator()(const product_tile& t) const {
    const index_t lanes = simd::lanes<simd::best_arch>;
    bool right = t.rows > 0 && t.cols > 0 && t.row >= 0 && t.col >= 0 && t.row + t.rows <= rows_ &&
                 t.col + t.cols <= cols_ && t.stride >= t.cols && t.stride % lanes == 0;
    for (index_t r = 0; right && r < t.rows; ++r)
      for (index_t c = 0; c < round_up(t.cols, lanes); ++c) {
        float& value = t.values[r * t.stride + c];
        if (c < t.cols) {
          const auto at = static_cast<std::size_t>((t.row + r) * cols_ + t.col + c);
          values_[at] = value;
          right = right && ++seen_[at] == 1;
        }
        value = quiet_nan;
      }
    if (!right) std::abort();  // on whatever thread
  }
  void require_equal(const std::vector<float>& want) const {
    for (std::size_t i = 0; i < want.size(); ++i) {
      INFO("element (", static_cast<index_t>(i) / cols_, ", ", static_cast<index_t>(i) % cols_, ") is ", values_[i],
           " and not ", want[i]);
      REQUIRE(seen_[i] == 1);
      REQUIRE(check::same_or_nan(values_[i], want[i]));
    }
  }

 private:
  index_t rows_, cols_;
  mutable std::vector<float> values_;
  mutable std::vector<char> seen_;
};

/// Requires that a product, multiply(sink, options...), is `want`: tile by tile on threads, or in memory with any
/// strides, assigned or added, where nothing else is written.
template <class Multiply>
void require_product(dice& dice, index_t rows, index_t outputs, const std::vector<float>& want,
                     const Multiply& multiply) {
  if (dice.chance(2)) {
    const watching_sink sink(rows, outputs);
    multiply(sink, on(pool::threads(dice.within(1, 4))));
    return sink.require_equal(want);
  }
  drawn_memory<float> y(dice, rows, outputs, false);
  for (float& v : y.elements) v = ordinary_number(dice);
  std::vector<float> expected = y.elements;
  const auto mode = dice.one_of(accumulate::assign, accumulate::assign, accumulate::add, accumulate::subtract);
  const float alpha = dice.one_of(1.f, 1.f, -0.3f);
  const auto to = y.ref();
  for (index_t m = 0; m < rows; ++m)
    for (index_t n = 0; n < outputs; ++n) {
      float v = want[static_cast<std::size_t>(m * outputs + n)];
      if (alpha != 1.f) v = rounded(v * alpha);
      float& e = expected[static_cast<std::size_t>(&to(m, n) - y.elements.data())];
      e = mode == accumulate::assign ? v : mode == accumulate::add ? rounded(e + v) : rounded(e - v);
    }
  // Without depth, what is added is +0 times alpha.
  multiply(ops::store_floats<simd::best_arch>{to, alpha, mode}, on(serial()));
  INFO("strides ", to.row_stride, " and ", to.col_stride, ", alpha ", alpha, ", mode ", static_cast<int>(mode));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    INFO("place ", i, " has ", y.elements[i], " and not ", expected[i]);
    REQUIRE(check::same_or_nan(y.elements[i], expected[i]));
  }
}

/// Weights as they are given to a product.
enum class weights { packed, plain };
template <weights Weights, class W, class Use>
void with_weights(dice& dice, const W& w, const Use& use) {
  if constexpr (Weights == weights::packed)
    use(w.packed(dice));
  else
    use(w.codes());
}

/// Another way for kernels that have several, until it goes out of scope.
class drawn_ways {
 public:
  explicit drawn_ways(dice& dice) {
    using simd::group_way, simd::bf16_way;
    simd::group_way_taken =
        dice.one_of(group_way::fastest, group_way::fastest, group_way::packed, group_way::ready, group_way::squares);
    simd::bf16_way_taken = dice.one_of(bf16_way::fastest, bf16_way::dots, bf16_way::fma);
    simd::squares_allowed = !dice.chance(3);
  }
  ~drawn_ways() {
    simd::group_way_taken = simd::group_way::fastest;
    simd::bf16_way_taken = simd::bf16_way::fastest;
    simd::squares_allowed = true;
  }
};

}  // namespace fuzz
