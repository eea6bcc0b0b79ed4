// StableHLO's dot_general and convolution on quantized and float tensors of run-time type (NUMERICS 7.3).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/compat/stablehlo_elementwise.hpp>
#include <qtensor/ops/matmul.hpp>
#include <qtensor/reference/convolution.hpp>

// Both sides dequantized, products and sums rounded to the expressed type one by one, the result quantized. Both
// operations are products of matrices; those of f32, bf16 and f16 run on the tiles of matmul_into. Those of f64 are the
// definition, element by element: tiles are of floats. (Quantized products that are fast belong to ops/ and expr/.)
namespace qtensor::compat::stablehlo {

/// Which dimensions of both sides go together, and which are summed over; in pairs.
struct dot_dimension_numbers {
  std::vector<index_t> lhs_batching{}, rhs_batching{}, lhs_contracting{}, rhs_contracting{};
};

/// Where batch, features and spatial dimensions are; i is the kernel's input features, o its output features.
struct convolution_dimension_numbers {
  index_t input_batch = 0, input_feature = 1;
  std::vector<index_t> input_spatial{};
  index_t kernel_input_feature = 1, kernel_output_feature = 0;
  std::vector<index_t> kernel_spatial{};
  index_t output_batch = 0, output_feature = 1;
  std::vector<index_t> output_spatial{};
};
/// An empty list means its default: strides and dilations 1, padding 0. Padding may be negative.
struct convolution_attributes {
  std::vector<index_t> window_strides{}, lhs_dilation{}, rhs_dilation{};
  std::vector<std::array<index_t, 2>> padding{};
  index_t feature_group_count = 1, batch_group_count = 1;
};

namespace detail {

/// A dimension as it lies in memory.
struct dimension_steps {
  index_t size, stride;
};
/// Places of all indices over some dimensions, the last fastest.
inline std::vector<index_t> places_of(const std::vector<dimension_steps>& dimensions) {
  std::vector<index_t> places = {0};
  for (const dimension_steps& d : dimensions) {
    std::vector<index_t> next;
    for (index_t place : places)
      for (index_t i = 0; i < d.size; ++i) next.push_back(place + i * d.stride);
    places = std::move(next);
  }
  return places;
}

inline index_t size_along(const std::vector<index_t>& shape, index_t axis) {
  return shape[static_cast<std::size_t>(axis)];
}
/// Places of all indices over some dimensions of a tensor, the others 0.
inline std::vector<index_t> places_over(const std::vector<index_t>& shape, const std::vector<index_t>& dimensions) {
  std::vector<dimension_steps> all;
  for (index_t d : dimensions) all.push_back({size_along(shape, d), stride_along(shape, d)});
  return places_of(all);
}

/// The dimensions of a shape that stand in neither list.
inline std::vector<index_t> others(const std::vector<index_t>& shape, const std::vector<index_t>& a,
                                   const std::vector<index_t>& b) {
  std::vector<index_t> out;
  for (index_t d = 0; d < static_cast<index_t>(shape.size()); ++d)
    if (std::find(a.begin(), a.end(), d) == a.end() && std::find(b.begin(), b.end(), d) == b.end()) out.push_back(d);
  return out;
}

inline void check_dimensions(const std::vector<index_t>& shape, std::vector<index_t> dimensions, const char* side) {
  for (index_t d : dimensions)
    require(d >= 0 && d < static_cast<index_t>(shape.size()), "dimension ", d, " of ", side,
            " is used, which has rank ", static_cast<index_t>(shape.size()), "; constraint: 0 <= dimensions < rank.");
  std::sort(dimensions.begin(), dimensions.end());
  require(std::adjacent_find(dimensions.begin(), dimensions.end()) == dimensions.end(), "a dimension of ", side,
          " is used twice; constraint: is_unique(batching and contracting dimensions).");
}

/// What both products ask of quantized operands (NUMERICS 7.3).
inline void check_product_types(const tensor& lhs, const tensor& rhs, const element_type& result) {
  require(lhs.type().computed() == rhs.type().computed() && lhs.type().computed() == result.computed(),
          "the operands and the result are computed in ", name_of(lhs.type().computed()), ", ",
          name_of(rhs.type().computed()), " and ", name_of(result.computed()),
          "; constraint: the expressed types agree, and with hybrid operands the element type of lhs and result.");
  require(is_float(result.computed()), "an operand is ", name_of(lhs.type().stored()),
          "; products are of float or quantized tensors.");
  require(
      lhs.type().is_quantized() == result.is_quantized() && (!lhs.type().is_quantized() || rhs.type().is_quantized()),
      "quantized and float operands do not go together so; constraint: is_quantized(lhs) = is_quantized(result) "
      "and, where they are, is_quantized(rhs).");
  if (!rhs.type().is_quantized()) return;
  const quantized_type& r = rhs.type().quantized();
  if (!lhs.type().is_quantized()) return;
  require(!lhs.type().quantized().is_per_axis(), "lhs is quantized per axis; constraint: is_per_tensor(lhs).");
  require(lhs.type().stored() == rhs.type().stored(), "lhs is stored as ", name_of(lhs.type().stored()), " and rhs as ",
          name_of(rhs.type().stored()), "; constraint: storage_type(lhs) = storage_type(rhs).");
  require(!result.quantized().is_per_axis() || r.is_per_axis(),
          "the result is quantized per axis and rhs is not; constraint: per-axis results need a per-axis rhs.");
}

/// The geometry of a convolution, checked: its spatial axes, and what one of its groups has.
struct convolution_geometry {
  std::vector<convolution_axis> axes;
  index_t groups, batches, inputs, outputs;  ///< batches of the result, features of the input and of the result
};

/// The spatial axis i of a convolution, its attributes checked.
inline convolution_axis spatial_axis(index_t in, index_t taps, const convolution_attributes& attributes, std::size_t i,
                                     std::size_t spatial) {
  const auto item = [&](const std::vector<index_t>& list, const char* name) {
    require(list.empty() || list.size() == spatial, name, " has ", static_cast<index_t>(list.size()), " items for ",
            static_cast<index_t>(spatial), " spatial dimensions; constraint: size(", name, ") = N - 2.");
    const index_t value = list.empty() ? 1 : list[i];
    require(value > 0, name, " has ", value, "; constraint: 0 < ", name, ".");
    return value;
  };
  convolution_axis a{in, taps};
  a.stride = item(attributes.window_strides, "window_strides");
  a.input_dilation = item(attributes.lhs_dilation, "lhs_dilation");
  a.tap_dilation = item(attributes.rhs_dilation, "rhs_dilation");
  if (!attributes.padding.empty()) {
    a.pad_low = attributes.padding[i][0];
    a.pad_high = attributes.padding[i][1];
  }
  require(a.fits(), "spatial dimension ", static_cast<index_t>(i), " of ", in, " elements and ", taps,
          " taps does not fit 60 bits with its dilations and padding.");
  return a;
}

/// Throws naming the constraint that fails.
inline convolution_geometry geometry_of(const tensor& lhs, const tensor& rhs, const convolution_dimension_numbers& d,
                                        const convolution_attributes& attributes) {
  const std::size_t spatial = d.input_spatial.size(), rank = spatial + 2;
  require(lhs.shape().size() == rank && rhs.shape().size() == rank && d.kernel_spatial.size() == spatial &&
              d.output_spatial.size() == spatial,
          "operands of ranks ", static_cast<index_t>(lhs.shape().size()), " and ",
          static_cast<index_t>(rhs.shape().size()), " with ", static_cast<index_t>(spatial),
          " spatial dimensions; constraint: rank(lhs) = rank(rhs) = rank(result) = N, with N - 2 of them.");
  const auto with = [](const std::vector<index_t>& more, index_t x, index_t y) {
    std::vector<index_t> all = {x, y};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  check_dimensions(lhs.shape(), with(d.input_spatial, d.input_batch, d.input_feature), "lhs");
  check_dimensions(rhs.shape(), with(d.kernel_spatial, d.kernel_input_feature, d.kernel_output_feature), "rhs");
  check_dimensions(lhs.shape(), with(d.output_spatial, d.output_batch, d.output_feature), "the result");
  const index_t batches = size_along(lhs.shape(), d.input_batch), features = size_along(lhs.shape(), d.input_feature);
  const index_t inputs = size_along(rhs.shape(), d.kernel_input_feature),
                outputs = size_along(rhs.shape(), d.kernel_output_feature);
  const index_t feature_groups = attributes.feature_group_count, batch_groups = attributes.batch_group_count;
  require(feature_groups > 0 && batch_groups > 0 && (feature_groups == 1 || batch_groups == 1),
          "feature_group_count is ", feature_groups, " and batch_group_count ", batch_groups,
          "; constraint: both are positive and one of them is 1.");
  require(batches % batch_groups == 0 && features % feature_groups == 0 && features / feature_groups == inputs &&
              outputs % (feature_groups * batch_groups) == 0,
          "groups do not divide ", batches, " batches, ", features, " input features and ", outputs,
          " output features; constraint: dim(rhs, i) = dim(lhs, f) / feature_group_count, and groups divide o and b.");
  if (rhs.type().is_quantized() && rhs.type().quantized().is_per_axis())
    require(*rhs.type().quantized().axis() == d.kernel_output_feature,
            "rhs is quantized per axis; constraint: quantization_dimension(rhs) = kernel_output_feature_dimension.");
  require(attributes.padding.empty() || attributes.padding.size() == spatial, "padding has ",
          static_cast<index_t>(attributes.padding.size()), " items for ", static_cast<index_t>(spatial),
          " spatial dimensions; constraint: shape(padding) = [N - 2, 2].");
  const index_t groups = feature_groups * batch_groups;
  convolution_geometry g{{}, groups, batches / batch_groups, inputs, outputs / groups};
  for (std::size_t i = 0; i < spatial; ++i)
    g.axes.push_back(spatial_axis(size_along(lhs.shape(), d.input_spatial[i]),
                                  size_along(rhs.shape(), d.kernel_spatial[i]), attributes, i, spatial));
  return g;
}

}  // namespace detail

inline namespace QTENSOR_ABI {

namespace pieces {

/// Elements as the numbers they are computed with, floats, or doubles where those are f64: where they lie, or a copy.
template <class T>
class real_numbers {
 public:
  explicit real_numbers(const tensor& x) : x_(x) {
    if (x.type().is_quantized()) kept_ = uniform_dequantize(x);
    constexpr basic_type type = sizeof(T) == 4 ? basic_type::f32 : basic_type::f64;
    if (tensor().type().stored() != type) kept_ = convert(tensor(), type);
  }
  const T* data() const { return reinterpret_cast<const T*>(tensor().bytes().data()); }

 private:
  const stablehlo::tensor& tensor() const { return kept_ ? *kept_ : x_; }

  const stablehlo::tensor& x_;
  std::optional<stablehlo::tensor> kept_;
};

/// One operand of a product as matrices, a row for each free index: its numbers, and where its matrices, their rows and
/// their terms begin.
template <class T>
struct dot_operand {
  real_numbers<T> numbers;
  std::vector<index_t> batches, free, terms;

  index_t matrices() const { return static_cast<index_t>(batches.size()); }
  index_t rows() const { return static_cast<index_t>(free.size()); }
  index_t depth() const { return static_cast<index_t>(terms.size()); }
  /// Rows [first, first + n) of a matrix: where they lie if these and their terms are evenly spaced, which tiles of
  /// floats take (doubles: if these are side by side), else in `room`.
  matrix_ref<const T> read(index_t matrix, index_t first, index_t n, std::vector<T>& room) const {
    const T* from = numbers.data() + batches[static_cast<std::size_t>(matrix)];
    if (const auto row = step_of(free), term = step_of(terms); row && term && (sizeof(T) == 4 || *term == 1))
      return {from + first * *row, n, depth(), *row, *term};
    room.resize(static_cast<std::size_t>(n * depth()));
    T* to = room.data();
    for (index_t r = first; r < first + n; ++r)
      for (const index_t term : terms) *to++ = from[free[static_cast<std::size_t>(r)] + term];
    return {room.data(), n, depth(), depth(), 1};
  }

 private:
  /// How far each place is from the one before, the first being 0, where that is the same for all.
  static std::optional<index_t> step_of(const std::vector<index_t>& places) {
    const index_t step = places.size() > 1 ? places[1] : 1;
    for (std::size_t i = 0; i < places.size(); ++i)
      if (places[i] != static_cast<index_t>(i) * step) return {};
    return step;
  }
};

/// The windows of a convolution as such matrices, one for each group: a row is what one place of the result sees, its
/// terms are taps and under each tap the input features. Padding and holes are 0.
template <class T>
class window_operand {
 public:
  window_operand(const tensor& lhs, const convolution_dimension_numbers& d, const detail::convolution_geometry& g,
                 bool groups_of_batches)
      : numbers_(lhs),
        group_step_(groups_of_batches ? g.batches * detail::stride_along(lhs.shape(), d.input_batch)
                                      : g.inputs * detail::stride_along(lhs.shape(), d.input_feature)),
        groups_(g.groups),
        inputs_(g.inputs),
        input_step_(detail::stride_along(lhs.shape(), d.input_feature)),
        rows_(g.batches),
        places_(detail::places_of({{g.batches, detail::stride_along(lhs.shape(), d.input_batch)}})) {
    for (std::size_t i = 0; i < g.axes.size(); ++i)
      add_axis(g.axes[i], detail::stride_along(lhs.shape(), d.input_spatial[i]));
  }
  index_t matrices() const { return groups_; }
  index_t rows() const { return rows_; }
  index_t depth() const { return taps_ * inputs_; }
  /// Whether groups have one input feature, side by side, as in depthwise convolutions.
  bool has_lanes() const { return inputs_ == 1 && group_step_ == 1; }
  /// What a row of all such groups sees under a tap; nullptr for padding and holes.
  const T* lanes(index_t row, index_t tap) const {
    const index_t place = places_[static_cast<std::size_t>(row * taps_ + tap)];
    return place == outside ? nullptr : numbers_.data() + place;
  }
  matrix_ref<const T> read(index_t matrix, index_t first, index_t n, std::vector<T>& room) const {
    room.resize(static_cast<std::size_t>(n * depth()));
    T* to = room.data();
    const index_t* const end = places_.data() + (first + n) * taps_;
    for (const index_t* place = places_.data() + first * taps_; place != end; ++place, to += inputs_) {
      if (*place == outside) {
        std::fill_n(to, inputs_, T(0));
        continue;
      }
      const T* from = numbers_.data() + matrix * group_step_ + *place;
      for (index_t i = 0; i < inputs_; ++i) to[i] = from[i * input_step_];
    }
    return {room.data(), n, depth(), depth(), 1};
  }

 private:
  static constexpr index_t outside = -1;

  /// Every row becomes a row for each place along one more axis, every tap a tap for each of its taps.
  void add_axis(const convolution_axis& axis, index_t stride) {
    std::vector<index_t> next;
    next.reserve(static_cast<std::size_t>(rows_ * axis.out() * taps_ * axis.taps));
    for (index_t row = 0; row < rows_; ++row)
      for (index_t o = 0; o < axis.out(); ++o)
        for (index_t t = 0; t < taps_; ++t)
          for (index_t tap = 0; tap < axis.taps; ++tap) {
            const index_t before = places_[static_cast<std::size_t>(row * taps_ + t)], at = axis.source(o, tap);
            next.push_back(before == outside || at < 0 ? outside : before + at * stride);
          }
    places_ = std::move(next);
    rows_ *= axis.out();
    taps_ *= axis.taps;
  }

  real_numbers<T> numbers_;
  index_t group_step_, groups_, inputs_, input_step_, rows_, taps_ = 1;
  std::vector<index_t> places_;  // [row][tap]
};

/// sums = a b^T by the definition, in f64.
struct multiply_doubles {
  using number = double;
  void operator()(const matrix_ref<const double>& a, const matrix_ref<const double>& b, double* sums) const {
    for (index_t r = 0; r < a.rows(); ++r)
      for (index_t c = 0; c < b.rows(); ++c) {
        double sum = 0.0;
        for (index_t k = 0; k < a.cols(); ++k) sum += rounded(a(r, k) * b(c, k));
        sums[r * b.rows() + c] = sum;
      }
  }
  /// sums[i] = x(0)[i] w(0)[i] + x(1)[i] w(1)[i] + ... for i < n, where nullptr stands for zeros.
  template <class X, class W>
  void lanes(const X& x, const W& w, index_t depth, index_t n, double* sums) const {
    std::fill_n(sums, n, 0.0);
    for (index_t k = 0; k < depth; ++k)
      for (index_t i = 0; i < n; ++i) sums[i] += rounded((x(k) != nullptr ? x(k)[i] : 0.0) * w(k)[i]);
  }
};
/// The same in the type of a Step.
template <class Step>
struct multiply_floats {
  using number = float;
  void operator()(const matrix_ref<const float>& a, const matrix_ref<const float>& b, float* sums) const {
    matmul_into<simd::best_arch, Step>(a, b.transposed(), matrix_ref<float>{sums, a.rows(), b.rows(), b.rows(), 1});
  }
  template <class X, class W>
  void lanes(const X& x, const W& w, index_t depth, index_t n, float* sums) const {
    for (index_t i = 0, m; i < n; i += m) {
      m = std::min(simd::lanes<arch>, n - i);
      const auto load = [m](const float* p) QTENSOR_INLINE_LAMBDA {
        return m == simd::lanes<arch> ? simd::load<arch>(p) : simd::load_n<arch>(p, m);
      };
      floats sum(0.f);
      for (index_t k = 0; k < depth; ++k)
        sum = Step::add(sum, x(k) != nullptr ? load(x(k) + i) : floats(0.f), load(w(k) + i));
      simd::store_n(sums + i, m, sum);
    }
  }
};
/// Calls use(multiply) with the products of a float type.
template <class Use>
void in_type(basic_type type, const Use& use) {
  switch (type) {
    case basic_type::f32:
      return use(multiply_floats<simd::rounded_step>{});
    case basic_type::bf16:
      return use(multiply_floats<simd::narrow_step<bf16>>{});
    case basic_type::f16:
      return use(multiply_floats<simd::narrow_step<f16>>{});
    default:
      return use(multiply_doubles{});
  }
}

/// Calls use(matrix, first row, rows, sums) with the sums of some rows of a and all rows of b, in order.
template <class Multiply, class A, class Use>
void for_each_dot(const Multiply& multiply, const A& a, const dot_operand<typename Multiply::number>& b,
                  const Use& use) {
  constexpr index_t most_rows = 240;
  std::vector<typename Multiply::number> left, right,
      sums(static_cast<std::size_t>(std::min(most_rows, a.rows()) * b.rows()));
  for (index_t n = 0; n < a.matrices(); ++n) {
    const auto of_b = b.read(n, 0, b.rows(), right);
    for (index_t first = 0; first < a.rows(); first += most_rows) {
      const index_t rows = std::min(most_rows, a.rows() - first);
      multiply(a.read(n, first, rows, left), of_b, sums.data());
      use(n, first, rows, sums.data());
    }
  }
}

/// The sums of a result in its shape, floats or doubles, and what they are as its elements.
class product_sums {
 public:
  product_sums(const element_type& result, const std::vector<index_t>& shape)
      : result_(result), sums_(result.computed() == basic_type::f64 ? basic_type::f64 : basic_type::f32, shape) {
    if (result.is_quantized()) result.quantized().check_shape(shape);
  }
  index_t size() const { return sums_.size(); }
  /// `n` sums to places from `place` on, `step` apart.
  template <class T>
  void set(index_t place, index_t step, const T* sums, index_t n) {
    T* memory = reinterpret_cast<T*>(sums_.bytes().data()) + place;
    for (index_t i = 0; i < n; ++i) memory[i * step] = sums[i];
  }
  tensor take() {
    if (result_.computed() != sums_.type().stored()) sums_ = convert(sums_, result_.computed());
    return result_.is_quantized() ? uniform_quantize(sums_, result_.quantized()) : std::move(sums_);
  }

 private:
  element_type result_;
  tensor sums_;
};

}  // namespace pieces

/// dot_general: batching dimensions, then the other dimensions of lhs, then those of rhs; sums run over the contracting
/// dimensions in the order they are given, last fastest. Throws naming the constraint that fails.
inline tensor dot_general(const tensor& lhs, const tensor& rhs, const dot_dimension_numbers& d,
                          const element_type& result) {
  detail::check_product_types(lhs, rhs, result);
  const auto joined = [](std::vector<index_t> a, const std::vector<index_t>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  };
  detail::check_dimensions(lhs.shape(), joined(d.lhs_batching, d.lhs_contracting), "lhs");
  detail::check_dimensions(rhs.shape(), joined(d.rhs_batching, d.rhs_contracting), "rhs");
  const auto pairs = [&](const std::vector<index_t>& a, const std::vector<index_t>& b, const char* which) {
    require(a.size() == b.size(), "lhs and rhs have ", static_cast<index_t>(a.size()), " and ",
            static_cast<index_t>(b.size()), " ", which, " dimensions; constraint: as many on both sides.");
    for (std::size_t i = 0; i < a.size(); ++i)
      require(lhs.shape()[static_cast<std::size_t>(a[i])] == rhs.shape()[static_cast<std::size_t>(b[i])], which,
              " dimensions ", a[i], " and ", b[i], " have different sizes; constraint: dim(lhs, i) = dim(rhs, j).");
  };
  pairs(d.lhs_batching, d.rhs_batching, "batching");
  pairs(d.lhs_contracting, d.rhs_contracting, "contracting");
  if (rhs.type().is_quantized()) {
    const quantized_type& r = rhs.type().quantized();
    for (wide_integer zero : r.zero_points())
      require(zero == 0, "rhs has a zero point; constraint (C15): zero_points(rhs) = 0.");
    require(!r.is_per_axis() ||
                std::find(d.rhs_contracting.begin(), d.rhs_contracting.end(), *r.axis()) == d.rhs_contracting.end(),
            "rhs is quantized along a contracting dimension; constraint: quantization_dimension(rhs) is not one.");
  }
  const auto lhs_free = detail::others(lhs.shape(), d.lhs_batching, d.lhs_contracting);
  const auto rhs_free = detail::others(rhs.shape(), d.rhs_batching, d.rhs_contracting);
  std::vector<index_t> shape;
  for (index_t i : d.lhs_batching) shape.push_back(lhs.shape()[static_cast<std::size_t>(i)]);
  for (index_t i : lhs_free) shape.push_back(lhs.shape()[static_cast<std::size_t>(i)]);
  for (index_t i : rhs_free) shape.push_back(rhs.shape()[static_cast<std::size_t>(i)]);
  pieces::product_sums y(result, shape);
  if (y.size() == 0 || lhs.size() == 0) return y.take();  // no results, or sums of nothing

  pieces::in_type(result.computed(), [&]<class Multiply>(const Multiply& multiply) {
    using number = typename Multiply::number;
    const auto operand_of = [](const tensor& x, const auto& batching, const auto& free, const auto& contracting) {
      return pieces::dot_operand<number>{pieces::real_numbers<number>(x), detail::places_over(x.shape(), batching),
                                         detail::places_over(x.shape(), free),
                                         detail::places_over(x.shape(), contracting)};
    };
    const auto a = operand_of(lhs, d.lhs_batching, lhs_free, d.lhs_contracting);
    const auto b = operand_of(rhs, d.rhs_batching, rhs_free, d.rhs_contracting);
    pieces::for_each_dot(multiply, a, b, [&](index_t matrix, index_t first, index_t rows, const number* sums) {
      y.set((matrix * a.rows() + first) * b.rows(), 1, sums, rows * b.rows());
    });
  });
  return y.take();
}

/// convolution, with dilations of both sides, strides, padding and holes (factors of 0), feature groups and batch
/// groups. A sum runs over the kernel's spatial dimensions, then its input features. Throws naming the constraint that
/// fails.
inline tensor convolution(const tensor& lhs, const tensor& rhs, const convolution_dimension_numbers& d,
                          const convolution_attributes& attributes, const element_type& result) {
  detail::check_product_types(lhs, rhs, result);
  const detail::convolution_geometry g = detail::geometry_of(lhs, rhs, d, attributes);
  if (result.is_quantized() && result.quantized().is_per_axis())
    require(*result.quantized().axis() == d.output_feature,
            "the result is quantized per axis; constraint: quantization_dimension(result) = output_feature_dimension.");
  std::vector<index_t> shape(lhs.shape().size());
  shape[static_cast<std::size_t>(d.output_batch)] = g.batches;
  shape[static_cast<std::size_t>(d.output_feature)] = g.groups * g.outputs;
  for (std::size_t i = 0; i < g.axes.size(); ++i)
    shape[static_cast<std::size_t>(d.output_spatial[i])] = g.axes[i].out();
  pieces::product_sums y(result, shape);
  if (y.size() == 0 || rhs.size() == 0) return y.take();  // no results, or sums of nothing

  const auto stride = [&](index_t axis) { return detail::stride_along(rhs.shape(), axis); };
  const auto joined = [](std::vector<index_t> axes, index_t last) {
    axes.push_back(last);
    return axes;
  };
  std::vector<index_t> by_rows = {d.output_batch};
  by_rows.insert(by_rows.end(), d.output_spatial.begin(), d.output_spatial.end());
  const auto places = detail::places_over(shape, by_rows);
  const index_t feature = detail::stride_along(shape, d.output_feature);
  pieces::in_type(result.computed(), [&]<class Multiply>(const Multiply& multiply) {
    using number = typename Multiply::number;
    const pieces::window_operand<number> windows(lhs, d, g, attributes.batch_group_count > 1);
    const index_t output = stride(d.kernel_output_feature);
    const pieces::dot_operand<number> kernels{
        pieces::real_numbers<number>(rhs), detail::places_of({{g.groups, g.outputs * output}}),
        detail::places_of({{g.outputs, output}}),
        detail::places_over(rhs.shape(), joined(d.kernel_spatial, d.kernel_input_feature))};
    if (windows.has_lanes() && g.outputs == 1 && output == 1) {
      std::vector<number> sums(static_cast<std::size_t>(g.groups));
      const auto weights = [&](index_t k) {
        return kernels.numbers.data() + kernels.terms[static_cast<std::size_t>(k)];
      };
      for (index_t row = 0; row < windows.rows(); ++row) {
        multiply.lanes([&](index_t k) { return windows.lanes(row, k); }, weights, windows.depth(), g.groups,
                       sums.data());
        y.set(places[static_cast<std::size_t>(row)], feature, sums.data(), g.groups);
      }
      return;
    }
    pieces::for_each_dot(multiply, windows, kernels,
                         [&](index_t group, index_t first, index_t rows, const number* sums) {
                           for (index_t r = 0; r < rows; ++r)
                             y.set(places[static_cast<std::size_t>(first + r)] + group * g.outputs * feature, feature,
                                   sums + r * g.outputs, g.outputs);
                         });
  });
  return y.take();
}

}  // namespace QTENSOR_ABI

}  // namespace qtensor::compat::stablehlo
