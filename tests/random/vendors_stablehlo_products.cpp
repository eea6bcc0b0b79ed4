// StableHLO's dot_general and convolution of floats, quantized tensors and both, as plain loops whose every step is
// rounded (NUMERICS 7.3).
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/compat/stablehlo_products.hpp>

#include "stablehlo_dice.hpp"

using namespace fuzz;
using shlo::tensor;

namespace {

/// Simple numbers, so that sums are finite; now and then any.
tensor numbers(dice& d, const element_type& type, const list& shape) {
  if (type.is_quantized() || d.chance(4)) return random_tensor(d, type, shape);
  tensor t(type, shape);
  for (index_t i = 0; i < t.size(); ++i)
    t.set(i, {nearest(type.stored(), std::ldexp(static_cast<double>(d.within(-4096, 4096)), -9)), 0});
  return t;
}
/// `n` of [0, n) in any order.
list shuffled(dice& d, index_t n) {
  list order;
  for (index_t i = 0; i < n; ++i) order.insert(order.begin() + d.within(0, i), i);
  return order;
}

/// Types of both operands and the result: floats, quantized ones, or a float lhs and a quantized rhs. rhs is along
/// `axis` (none if it is negative), and then now and then the result is along `result_axis`.
struct product_types {
  element_type lhs, rhs, result;

  product_types(dice& d, const list& rhs_shape, index_t axis, const list& shape, index_t result_axis, bool symmetric)
      : lhs(float_type(d)), rhs(lhs), result(lhs) {
    if (d.chance(4)) return;
    const basic_type expressed = lhs.stored(), storage = d.chance(2) ? basic_type::i8 : integer_type(d);
    rhs = quantized_type_of(d, storage, expressed, rhs_shape, axis, symmetric);
    if (d.chance(4)) return;
    lhs = quantized_type_of(d, storage, expressed, {}, -1);
    result = quantized_type_of(d, d.chance(3) ? basic_type::i32 : integer_type(d), expressed, shape,
                               axis >= 0 && d.chance(2) ? result_axis : -1);
  }
  std::string text() const {
    return " " + shlo::to_string(lhs) + " by " + shlo::to_string(rhs).substr(0, 150) + " to " +
           shlo::to_string(result).substr(0, 150);
  }
};

/// A sum in a float type: every product and every sum is rounded to it.
struct rounded_sum {
  basic_type type;
  double sum = 0.0;
  void add(double a, double b) {
    const volatile double product = a * b;
    sum = nearest(type, sum + nearest(type, product));
  }
};
/// The numbers that a tensor's elements are computed as.
std::vector<double> values(const tensor& t) {
  std::vector<double> out;
  for (index_t i = 0; i < t.size(); ++i) out.push_back(value_at(t, i).real);
  return out;
}
void check(const tensor& y, index_t i, double sum) {
  const shlo::scalar wanted = stored_as(y.type(), {sum, 0}, y.channel(i));
  INFO("element ", i, ", sum ", sum, ": ", text_of(y.at(i)), " not ", text_of(wanted));
  REQUIRE(same(y.at(i), wanted));
}

// ---- dot_general ---------------------------------------------------------------------------------------------------

/// One operand, its dimensions in any order.
struct side {
  list shape, batching, contracting, free;

  side(dice& d, const list& batches, const list& terms, const list& rows) {
    const list order = shuffled(d, static_cast<index_t>(batches.size() + terms.size() + rows.size()));
    shape.resize(order.size());
    const auto at = order.begin(), then = at + static_cast<index_t>(batches.size()),
               rest = then + static_cast<index_t>(terms.size());
    batching.assign(at, then), contracting.assign(then, rest), free.assign(rest, order.end());
    std::sort(free.begin(), free.end());
    for (const auto& [dimensions, extents] :
         {std::pair(&batching, &batches), std::pair(&contracting, &terms), std::pair(&free, &rows)})
      for (std::size_t i = 0; i < extents->size(); ++i)
        shape[static_cast<std::size_t>((*dimensions)[i])] = (*extents)[i];
  }
  index_t place(const list& batch, const list& term, const list& row) const {
    list at(shape.size());
    for (const auto& [dimensions, index] :
         {std::pair(&batching, &batch), std::pair(&contracting, &term), std::pair(&free, &row)})
      for (std::size_t i = 0; i < index->size(); ++i) at[static_cast<std::size_t>((*dimensions)[i])] = (*index)[i];
    return place_of(at, shape);
  }
};

void dots(dice& d) {
  index_t left = 30000;
  const auto some = [&](index_t long_one) {
    list extents;
    for (index_t k = d.within(0, 2); k > 0; --k) {
      extents.push_back(std::min(left, d.chance(3) ? d.extent(long_one) : d.chance(40) ? 0 : d.within(1, 6)));
      left /= std::max<index_t>(1, extents.back());
    }
    return extents;
  };
  const list terms = some(400), rows = some(500), columns = some(300), batches = some(20);
  const side a(d, batches, terms, rows), b(d, batches, terms, columns);
  list shape = batches;
  shape.insert(shape.end(), rows.begin(), rows.end());
  shape.insert(shape.end(), columns.begin(), columns.end());
  list axes = b.batching;
  axes.insert(axes.end(), b.free.begin(), b.free.end());
  const index_t axis = axes.empty() || d.chance(2)
                           ? -1
                           : axes[static_cast<std::size_t>(d.within(0, static_cast<index_t>(axes.size()) - 1))];
  const index_t result_axis = shape.empty() ? -1 : d.within(0, static_cast<index_t>(shape.size()) - 1);
  const product_types types(d, b.shape, axis, shape, result_axis, true);
  INFO(text(a.shape), " by ", text(b.shape), " batches ", text(a.batching), text(b.batching), " contracting ",
       text(a.contracting), text(b.contracting), types.text());
  const tensor lhs = numbers(d, types.lhs, a.shape), rhs = numbers(d, types.rhs, b.shape);
  const tensor y = shlo::dot_general(lhs, rhs, {a.batching, b.batching, a.contracting, b.contracting}, types.result);
  REQUIRE(y.shape() == shape);
  REQUIRE(y.type() == types.result);
  const std::vector<double> left_values = values(lhs), right_values = values(rhs);
  index_t i = 0;
  for (index_t n = 0; n < count_of(batches); ++n)
    for (index_t r = 0; r < count_of(rows); ++r)
      for (index_t c = 0; c < count_of(columns); ++c, ++i) {
        const list batch = index_of(n, batches), row = index_of(r, rows), column = index_of(c, columns);
        rounded_sum sum{types.result.computed()};
        for (index_t k = 0; k < count_of(terms); ++k) {
          const list term = index_of(k, terms);
          sum.add(left_values[static_cast<std::size_t>(a.place(batch, term, row))],
                  right_values[static_cast<std::size_t>(b.place(batch, term, column))]);
        }
        check(y, i, sum.sum);
      }
}

// ---- convolution ---------------------------------------------------------------------------------------------------

void convolutions(dice& d) {
  const index_t spatial = d.within(0, 3), rank = spatial + 2;
  shlo::convolution_attributes how;
  if (d.chance(2)) (d.chance(2) ? how.feature_group_count : how.batch_group_count) = d.within(2, 4);
  const index_t groups = how.feature_group_count * how.batch_group_count;
  const index_t batches = d.chance(30) ? 0 : d.within(1, 3),
                inputs = d.chance(30) ? 0 : d.within(1, d.chance(5) ? 40 : 5),
                outputs = groups * d.within(1, d.chance(5) ? 40 : 5);
  // Which dimension is which: batch (output features of the kernel), features, then spatial ones.
  const list of_x = shuffled(d, rank), of_w = shuffled(d, rank), of_y = shuffled(d, rank);
  list x_shape(of_x.size()), w_shape(of_x.size()), shape(of_x.size()), taps;
  const auto at = [](list& l, index_t i) -> index_t& { return l[static_cast<std::size_t>(i)]; };
  at(x_shape, of_x[0]) = batches * how.batch_group_count, at(x_shape, of_x[1]) = inputs * how.feature_group_count;
  at(w_shape, of_w[0]) = outputs, at(w_shape, of_w[1]) = inputs;
  at(shape, of_y[0]) = batches, at(shape, of_y[1]) = outputs;
  for (std::size_t i = 2; i < of_x.size(); ++i) {
    const auto small = [&](index_t most) { return d.chance(2) ? 1 : d.within(1, most); };
    const index_t in = d.chance(30) ? 0 : d.within(1, spatial == 1 ? 300 : spatial == 2 ? 12 : 5), tap = small(3);
    how.window_strides.push_back(small(3)), how.lhs_dilation.push_back(small(3)), how.rhs_dilation.push_back(small(3));
    how.padding.push_back(d.chance(2) ? std::array<index_t, 2>{0, 0}
                                      : std::array<index_t, 2>{d.within(-2, 3), d.within(-2, 3)});
    const index_t padded = how.padding[i - 2][0] + (in == 0 ? 0 : (in - 1) * how.lhs_dilation[i - 2] + 1) +
                           how.padding[i - 2][1],
                  reach = (tap - 1) * how.rhs_dilation[i - 2] + 1;
    taps.push_back(tap);
    at(x_shape, of_x[i]) = in, at(w_shape, of_w[i]) = tap;
    at(shape, of_y[i]) = padded <= 0 || reach > padded ? 0 : (padded - reach) / how.window_strides[i - 2] + 1;
  }
  if (count_of(shape) * count_of(taps) * inputs > 60000) return;
  const auto rest = [](const list& order) { return list(order.begin() + 2, order.end()); };
  const shlo::convolution_dimension_numbers numbered{of_x[0],    of_x[1], rest(of_x), of_w[1],   of_w[0],
                                                     rest(of_w), of_y[0], of_y[1],    rest(of_y)};
  const product_types types(d, w_shape, d.chance(2) ? -1 : of_w[0], shape, of_y[1], d.chance(2));
  INFO(text(x_shape), " by ", text(w_shape), " dimensions ", text(of_x), text(of_w), text(of_y), " strides ",
       text(how.window_strides), " dilations ", text(how.lhs_dilation), text(how.rhs_dilation), " groups ",
       how.feature_group_count, " and ", how.batch_group_count, types.text());
  const tensor x = numbers(d, types.lhs, x_shape), w = numbers(d, types.rhs, w_shape);
  const tensor y = shlo::convolution(x, w, numbered, how, types.result);
  REQUIRE(y.shape() == shape);
  REQUIRE(y.type() == types.result);
  const std::vector<double> x_values = values(x), w_values = values(w);
  for (index_t i = 0; i < y.size(); ++i) {
    list result = index_of(i, shape), from(of_x.size()), by(of_x.size());
    const index_t group = at(result, of_y[1]) / (outputs / groups);
    at(by, of_w[0]) = at(result, of_y[1]);
    at(from, of_x[0]) = at(result, of_y[0]) + (how.batch_group_count > 1 ? group * batches : 0);
    rounded_sum sum{types.result.computed()};
    for (index_t t = 0; t < count_of(taps); ++t) {
      const list tap = index_of(t, taps);
      bool inside = true;
      for (std::size_t k = 2; k < of_x.size(); ++k) {
        const index_t place = at(result, of_y[k]) * how.window_strides[k - 2] + tap[k - 2] * how.rhs_dilation[k - 2] -
                              how.padding[k - 2][0];
        at(by, of_w[k]) = tap[k - 2];
        at(from, of_x[k]) = place / how.lhs_dilation[k - 2];
        inside =
            inside && place >= 0 && place % how.lhs_dilation[k - 2] == 0 && at(from, of_x[k]) < at(x_shape, of_x[k]);
      }
      for (index_t c = 0; c < inputs; ++c) {
        at(by, of_w[1]) = c;
        at(from, of_x[1]) = c + (how.feature_group_count > 1 ? group * inputs : 0);
        sum.add(inside ? x_values[static_cast<std::size_t>(place_of(from, x_shape))] : 0.0,
                w_values[static_cast<std::size_t>(place_of(by, w_shape))]);
      }
    }
    check(y, i, sum.sum);
  }
}

}  // namespace

TEST_CASE("StableHLO: dot_general") { each_case(200, dots); }
TEST_CASE("StableHLO: convolution") { each_case(200, convolutions); }
