// StableHLO's dot_general and convolution on quantized and float tensors of run-time type (NUMERICS 7.3).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/compat/stablehlo_elementwise.hpp>
#include <qtensor/ops/matmul.hpp>

// Both sides dequantized, products and sums rounded to the expressed type one by one, the result quantized. In f32
// dot_general runs on the tiles of matmul_into; other types and convolution are the definition, element by element.
// (Quantized products that are fast belong to ops/ and expr/.)
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

/// Elements as the numbers they are computed with.
inline std::vector<double> real_numbers(const tensor& x) {
  require(is_float(x.type().computed()), "an operand is ", name_of(x.type().stored()),
          "; products are of float or quantized tensors.");
  std::vector<double> out(static_cast<std::size_t>(x.size()));
  for (index_t i = 0; i < x.size(); ++i)
    out[static_cast<std::size_t>(i)] = expressed(x.type(), x.at(i), x.channel(i)).real;
  return out;
}

/// Places in row-major order of all indices over some dimensions of a tensor, the others 0, last fastest.
inline std::vector<index_t> places_over(const std::vector<index_t>& shape, const std::vector<index_t>& dimensions) {
  std::vector<index_t> places = {0};
  for (index_t d : dimensions) {
    index_t stride = 1;
    for (auto axis = static_cast<std::size_t>(d) + 1; axis < shape.size(); ++axis) stride *= shape[axis];
    std::vector<index_t> next;
    for (index_t place : places)
      for (index_t i = 0; i < shape[static_cast<std::size_t>(d)]; ++i) next.push_back(place + i * stride);
    places = std::move(next);
  }
  return places;
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

/// x + a * b in a float type.
inline double multiply_add(basic_type type, double x, double a, double b) {
  return round_to(type, x + round_to(type, rounded(a * b)));
}

inline void set_result(tensor& y, index_t place, double sum) {
  y.set(place, stored(y.type(), scalar{sum, 0}, y.channel(place)));
}

/// Numbers, all of which are floats, as a matrix: element (r, c) is at origin + rows[r] + cols[c].
inline std::vector<float> gathered(const std::vector<double>& numbers, index_t origin, const std::vector<index_t>& rows,
                                   const std::vector<index_t>& cols) {
  std::vector<float> out;
  out.reserve(rows.size() * cols.size());
  for (index_t row : rows)
    for (index_t col : cols) out.push_back(static_cast<float>(numbers[static_cast<std::size_t>(origin + row + col)]));
  return out;
}

}  // namespace detail

inline namespace QTENSOR_ABI {

namespace pieces {

/// One operand of dot_general: its numbers, and where its matrices, their rows or columns and their terms begin.
struct dot_operand {
  std::vector<double> numbers;
  std::vector<index_t> batches, free, terms;
};

/// All sums of products, in the order of the result, by the definition.
template <class Use>
void dots_of(const dot_operand& a, const dot_operand& b, basic_type type, const Use& use) {
  for (std::size_t n = 0; n < a.batches.size(); ++n)
    for (index_t row : a.free)
      for (index_t col : b.free) {
        double sum = 0.0;
        for (std::size_t k = 0; k < a.terms.size(); ++k)
          sum = detail::multiply_add(type, sum, a.numbers[static_cast<std::size_t>(a.batches[n] + row + a.terms[k])],
                                     b.numbers[static_cast<std::size_t>(b.batches[n] + col + b.terms[k])]);
        use(sum);
      }
}
/// The same in f32. Steps in double that are rounded to f32 are steps in f32: 53 bits are more than twice 24.
template <class Use>
void float_dots_of(const dot_operand& a, const dot_operand& b, const Use& use) {
  const auto m = static_cast<index_t>(a.free.size()), k = static_cast<index_t>(a.terms.size()),
             n = static_cast<index_t>(b.free.size());
  std::vector<float> sums(a.free.size() * b.free.size());
  for (std::size_t i = 0; i < a.batches.size(); ++i) {
    const auto left = detail::gathered(a.numbers, a.batches[i], a.free, a.terms);
    const auto right = detail::gathered(b.numbers, b.batches[i], b.terms, b.free);
    matmul_into<simd::best_arch, simd::rounded_step>(matrix_ref<const float>{left.data(), m, k, k, 1},
                                                     matrix_ref<const float>{right.data(), k, n, n, 1},
                                                     matrix_ref<float>{sums.data(), m, n, n, 1});
    for (const float sum : sums) use(double{sum});
  }
}

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
  tensor y(result, shape);
  const auto operand_of = [](const tensor& x, const auto& batching, const auto& free, const auto& contracting) {
    return pieces::dot_operand{detail::real_numbers(x), detail::places_over(x.shape(), batching),
                               detail::places_over(x.shape(), free), detail::places_over(x.shape(), contracting)};
  };
  const auto a = operand_of(lhs, d.lhs_batching, lhs_free, d.lhs_contracting);
  const auto b = operand_of(rhs, d.rhs_batching, rhs_free, d.rhs_contracting);
  index_t place = 0;
  const auto store = [&](double sum) { detail::set_result(y, place++, sum); };
  if (result.computed() == basic_type::f32)
    pieces::float_dots_of(a, b, store);
  else
    pieces::dots_of(a, b, result.computed(), store);
  return y;
}

}  // namespace QTENSOR_ABI

/// convolution, with dilations of both sides, strides, padding (real 0), feature groups and batch groups. A sum runs
/// over the kernel's spatial dimensions, then its input features. Throws naming the constraint that fails.
inline tensor convolution(const tensor& lhs, const tensor& rhs, const convolution_dimension_numbers& d,
                          const convolution_attributes& attributes, const element_type& result) {
  detail::check_product_types(lhs, rhs, result);
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
  detail::check_dimensions(lhs.shape(), with(d.input_spatial, d.input_batch, d.input_feature), "lhs");
  detail::check_dimensions(rhs.shape(), with(d.kernel_spatial, d.kernel_input_feature, d.kernel_output_feature), "rhs");
  detail::check_dimensions(lhs.shape(), with(d.output_spatial, d.output_batch, d.output_feature), "the result");
  const auto item = [&](const std::vector<index_t>& list, std::size_t i, const char* name) {
    require(list.empty() || list.size() == spatial, name, " has ", static_cast<index_t>(list.size()), " items for ",
            static_cast<index_t>(spatial), " spatial dimensions; constraint: size(", name, ") = N - 2.");
    const index_t value = list.empty() ? 1 : list[i];
    require(value > 0, name, " has ", value, "; constraint: 0 < ", name, ".");
    return value;
  };
  const auto size_of = [](const tensor& x, index_t axis) { return x.shape()[static_cast<std::size_t>(axis)]; };
  const index_t batches = size_of(lhs, d.input_batch), features = size_of(lhs, d.input_feature);
  const index_t inputs = size_of(rhs, d.kernel_input_feature), outputs = size_of(rhs, d.kernel_output_feature);
  const index_t feature_groups = attributes.feature_group_count, batch_groups = attributes.batch_group_count;
  require(feature_groups > 0 && batch_groups > 0 && (feature_groups == 1 || batch_groups == 1),
          "feature_group_count is ", feature_groups, " and batch_group_count ", batch_groups,
          "; constraint: both are positive and one of them is 1.");
  require(batches % batch_groups == 0 && features == inputs * feature_groups &&
              outputs % (feature_groups * batch_groups) == 0,
          "groups do not divide ", batches, " batches, ", features, " input features and ", outputs,
          " output features; constraint: dim(rhs, i) = dim(lhs, f) / feature_group_count, and groups divide o and b.");
  if (rhs.type().is_quantized() && rhs.type().quantized().is_per_axis())
    require(*rhs.type().quantized().axis() == d.kernel_output_feature,
            "rhs is quantized per axis; constraint: quantization_dimension(rhs) = kernel_output_feature_dimension.");

  // Spatial sizes, as windows over padded and dilated input.
  struct axis_of {
    index_t in, taps, out, stride, dilation, tap, low;
  };
  std::vector<axis_of> axes;
  require(attributes.padding.empty() || attributes.padding.size() == spatial, "padding has ",
          static_cast<index_t>(attributes.padding.size()), " items for ", static_cast<index_t>(spatial),
          " spatial dimensions; constraint: shape(padding) = [N - 2, 2].");
  for (std::size_t i = 0; i < spatial; ++i) {
    axis_of a{};
    a.in = size_of(lhs, d.input_spatial[i]);
    a.taps = size_of(rhs, d.kernel_spatial[i]);
    a.stride = item(attributes.window_strides, i, "window_strides");
    a.dilation = item(attributes.lhs_dilation, i, "lhs_dilation");
    a.tap = item(attributes.rhs_dilation, i, "rhs_dilation");
    const auto pad = attributes.padding.empty() ? std::array<index_t, 2>{0, 0} : attributes.padding[i];
    a.low = pad[0];
    const index_t padded = pad[0] + (a.in == 0 ? 0 : (a.in - 1) * a.dilation + 1) + pad[1];
    const index_t reach = a.taps == 0 ? 0 : (a.taps - 1) * a.tap + 1;
    a.out = padded <= 0 || reach > padded ? 0 : (padded - reach) / a.stride + 1;
    axes.push_back(a);
  }
  std::vector<index_t> shape(rank);
  shape[static_cast<std::size_t>(d.output_batch)] = batches / batch_groups;
  shape[static_cast<std::size_t>(d.output_feature)] = outputs;
  for (std::size_t i = 0; i < spatial; ++i) shape[static_cast<std::size_t>(d.output_spatial[i])] = axes[i].out;
  tensor y(result, shape);

  const auto strides_of = [](const std::vector<index_t>& sizes) {
    std::vector<index_t> strides(sizes.size(), 1);
    for (std::size_t axis = sizes.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * sizes[axis];
    return strides;
  };
  const auto ls = strides_of(lhs.shape()), rs = strides_of(rhs.shape()), ys = strides_of(shape);
  const auto along = [](const std::vector<index_t>& strides, index_t axis) {
    return strides[static_cast<std::size_t>(axis)];
  };
  const auto a = detail::real_numbers(lhs), b = detail::real_numbers(rhs);
  const basic_type type = result.computed();
  index_t taps = 1;
  for (const axis_of& axis : axes) taps *= axis.taps;
  for (index_t place = 0; place < y.size(); ++place) {
    const auto coordinate = [&](index_t axis) {
      return place / along(ys, axis) % shape[static_cast<std::size_t>(axis)];
    };
    const index_t o = coordinate(d.output_feature);
    const index_t batch = coordinate(d.output_batch) + o / (outputs / batch_groups) * (batches / batch_groups);
    const index_t first_feature = o / (outputs / feature_groups) * inputs;
    double sum = 0.0;
    for (index_t tap = 0; tap < taps; ++tap) {
      index_t rest = tap, from = batch * along(ls, d.input_batch), kernel = o * along(rs, d.kernel_output_feature);
      bool inside = true;
      for (std::size_t i = spatial; i-- > 0;) {
        const index_t k = rest % axes[i].taps;
        rest /= axes[i].taps;
        const index_t at = coordinate(d.output_spatial[i]) * axes[i].stride + k * axes[i].tap - axes[i].low;
        inside = inside && at >= 0 && at % axes[i].dilation == 0 && at / axes[i].dilation < axes[i].in;
        from += at / axes[i].dilation * along(ls, d.input_spatial[i]);
        kernel += k * along(rs, d.kernel_spatial[i]);
      }
      if (!inside) continue;  // padding and holes are real 0
      for (index_t i = 0; i < inputs; ++i)
        sum = detail::multiply_add(type, sum,
                                   a[static_cast<std::size_t>(from + (first_feature + i) * along(ls, d.input_feature))],
                                   b[static_cast<std::size_t>(kernel + i * along(rs, d.kernel_input_feature))]);
    }
    detail::set_result(y, place, sum);
  }
  return y;
}

}  // namespace qtensor::compat::stablehlo
