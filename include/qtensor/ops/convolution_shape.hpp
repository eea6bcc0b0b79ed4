// What a convolution's operands look like in memory, and whether they fit each other: layouts by letters, and checks.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/core/error.hpp>
#include <qtensor/reference/convolution.hpp>
#include <qtensor/simd/abi.hpp>
#include <qtensor/tensor/shape.hpp>
#include <string_view>
#include <vector>

namespace qtensor::inline QTENSOR_ABI {

/// A tensor in memory as its dimensions are called, outermost first. Activations: N batch, C channels, and D, H, W
/// depth, height, width (W, HW or DHW must be there). Weights: O outputs, I input channels, D, H, W taps, and G groups,
/// with which O counts the outputs of one group. Extents are in the order of the letters; strides, in elements, where
/// memory is not dense. "NHWC", "NCHW", "NCW", "NDHWC"; "OIHW", "HWIO", "OHWI", "GOIHW", "IOHW".
struct convolution_layout {
  std::string_view order;
  std::vector<index_t> extents;
  std::vector<index_t> strides = {};
};

/// One entry for each spatial axis, outermost first; an empty list is its default: 1, and 0 for padding. Padding may be
/// negative.
struct convolution_options {
  std::vector<index_t> strides = {}, dilations = {}, input_dilations = {}, pad_low = {}, pad_high = {};
  index_t groups = 1, batch_groups = 1;
};

/// Activations: element (n, c, position) is at n * batch_stride + c * channel_stride + position . spatial.
struct activation_map {
  index_t batch = 1, channels = 1;
  convolution_shape::position sizes{1, 1, 1};
  index_t batch_stride = 0, channel_stride = 0;
  convolution_shape::position spatial{};

  constexpr index_t at(index_t n, index_t c, const convolution_shape::position& p) const {
    return n * batch_stride + c * channel_stride + p[0] * spatial[0] + p[1] * spatial[1] + p[2] * spatial[2];
  }
};

/// Weights: element (output, channel in the group, tap). Outputs of a group are `output_stride` apart, groups
/// `group_stride`.
struct kernel_map {
  index_t groups = 1, group_outputs = 1, inputs = 1;
  convolution_shape::position sizes{1, 1, 1};
  index_t group_stride = 0, output_stride = 0, input_stride = 0;
  convolution_shape::position spatial{};

  constexpr index_t at(index_t output, index_t i, const convolution_shape::position& tap) const {
    return output / group_outputs * group_stride + output % group_outputs * output_stride + i * input_stride +
           tap[0] * spatial[0] + tap[1] * spatial[1] + tap[2] * spatial[2];
  }
};

namespace ops {

/// Where a spatial letter stands in a position.
constexpr std::size_t axis_of(char letter) { return letter == 'D' ? 0 : letter == 'H' ? 1 : 2; }

/// Extents and strides by letter.
struct letters {
  std::array<index_t, 128> extent{}, stride{};
  index_t spatial = 0;
  bool has(char c) const { return stride[static_cast<std::size_t>(c)] != absent; }
  index_t size(char c) const { return extent[static_cast<std::size_t>(c)]; }
  index_t step(char c) const { return stride[static_cast<std::size_t>(c)]; }
  static constexpr index_t absent = dynamic;

  convolution_shape::position sizes() const { return {size('D'), size('H'), size('W')}; }
  convolution_shape::position steps() const { return {has('D') ? step('D') : 0, has('H') ? step('H') : 0, step('W')}; }
};

inline letters letters_of(const char* what, const convolution_layout& l, std::string_view needed,
                          std::string_view allowed) {
  letters out;
  out.extent.fill(1);
  out.stride.fill(letters::absent);
  require(l.extents.size() == l.order.size(), what, " has ", l.extents.size(), " extents for the ", l.order.size(),
          " letters of \"", l.order, "\"; there is one for each.");
  require(l.strides.empty() || l.strides.size() == l.order.size(), what, " has ", l.strides.size(), " strides for the ",
          l.order.size(), " letters of \"", l.order, "\"; there is one for each, or none.");
  index_t dense = 1;
  bool none = false;
  for (const index_t e : l.extents) none = none || e == 0;
  for (std::size_t i = l.order.size(); i-- > 0;) {
    const char c = l.order[i];
    require(allowed.find(c) != std::string_view::npos, "the layout \"", l.order, "\" of ", what,
            " has a letter that is none of ", allowed, ".");
    require(!out.has(c), "the layout \"", l.order, "\" of ", what, " has a letter twice.");
    require(l.extents[i] >= 0, what, " has the extent ", l.extents[i], " under a letter of \"", l.order,
            "\"; extents are at least 0.");
    out.extent[static_cast<std::size_t>(c)] = l.extents[i];
    out.stride[static_cast<std::size_t>(c)] = l.strides.empty() ? dense : l.strides[i];
    if (!none) dense = detail::checked_product(dense, l.extents[i]);
  }
  for (const char c : needed)
    require(out.has(c), "the layout \"", l.order, "\" of ", what, " lacks a letter; it needs ", needed,
            " and may have ", allowed, ".");
  require(!out.has('D') || out.has('H'), "the layout \"", l.order, "\" of ", what,
          " has D without H; spatial letters are W, HW or DHW.");
  out.spatial = 1 + out.has('H') + out.has('D');
  return out;
}

}  // namespace ops

/// A layout of activations, read. Throws on letters that are missing, unknown or twice, and on extents and strides that
/// do not go with them.
inline activation_map activations(const convolution_layout& l) {
  const ops::letters a = ops::letters_of("the activations", l, "NCW", "NCDHW");
  return {a.size('N'), a.size('C'), a.sizes(), a.step('N'), a.step('C'), a.steps()};
}
/// A layout of weights for a convolution of so many groups, read. Throws as `activations` does, and where G or O does
/// not go with the groups.
inline kernel_map weights(const convolution_layout& l, index_t groups) {
  const ops::letters k = ops::letters_of("the weights", l, "OIW", "GOIDHW");
  require(groups >= 1, "the convolution has ", groups, " groups; there is at least 1.");
  kernel_map m{groups, k.size('O'), k.size('I'), k.sizes(), 0, k.step('O'), k.step('I'), k.steps()};
  if (k.has('G')) {
    require(k.size('G') == groups, "the weights have ", k.size('G'), " groups under G, the convolution ", groups, ".");
    m.group_stride = k.step('G');
  } else {
    require(m.group_outputs % groups == 0, groups, " groups do not divide ", m.group_outputs, " outputs.");
    m.group_outputs /= groups;
    m.group_stride = m.group_outputs * m.output_stride;
  }
  return m;
}

/// A convolution of operands in memory: what they are, and the geometry that they have together.
struct convolution_plan {
  convolution_shape shape;
  activation_map input;
  kernel_map kernel;

  /// The result's layout under some order of its letters, dense.
  activation_map result(std::string_view order) const {
    convolution_layout l{order, {}};
    for (const char c : order)
      l.extents.push_back(c == 'N'   ? shape.result_batch()
                          : c == 'C' ? shape.outputs
                                     : shape.axes[ops::axis_of(c)].out());
    return activations(l);
  }
};

namespace ops {

/// Throws where the places of the padded source, each with its channels and a vector more, are more than an index
/// counts, as a convolution does that fills bands of them.
inline void check_places(const convolution_shape& s) {
  constexpr index_t vector = 256;
  if (s.is_empty()) return;
  index_t places = s.group_inputs() + vector;
  for (const convolution_axis& a : s.axes)
    places = detail::checked_product(places, std::max(a.in, a.padded()) + a.reach());
}

/// A plan whose sums have no terms as that of no inputs under one tap, of padding, which needs no rows of any length.
inline convolution_plan without_terms(convolution_plan plan) {
  for (convolution_axis& a : plan.shape.axes) a = {.in = 0, .pad_low = a.out()};
  plan.kernel.sizes = {1, 1, 1};
  plan.shape.inputs = plan.kernel.inputs = 0;
  return plan;
}

}  // namespace ops

/// Throws naming what does not fit: channels, groups, spatial axes, options below 1 or of another number.
inline convolution_plan plan_convolution(const convolution_layout& x, const convolution_layout& w,
                                         const convolution_options& how = {}) {
  convolution_plan p;
  p.input = activations(x);
  require(how.groups >= 1 && how.batch_groups >= 1 && (how.groups == 1 || how.batch_groups == 1),
          "the convolution has ", how.groups, " groups and ", how.batch_groups,
          " batch groups; both are at least 1, and one of them is 1.");
  p.kernel = weights(w, how.groups * how.batch_groups);
  const auto rank = static_cast<std::size_t>(ops::letters_of("the activations", x, "NCW", "NCDHW").spatial);
  require(rank == static_cast<std::size_t>(ops::letters_of("the weights", w, "OIW", "GOIDHW").spatial),
          "the activations are \"", x.order, "\", the weights \"", w.order, "\"; they have the same spatial letters.");
  convolution_shape& s = p.shape;
  s.batch = p.input.batch;
  s.inputs = p.input.channels;
  s.groups = how.groups;
  s.batch_groups = how.batch_groups;
  s.outputs = detail::checked_product(p.kernel.group_outputs, p.kernel.groups);
  require(s.inputs == detail::checked_product(p.kernel.inputs, s.groups), "the activations have ", s.inputs,
          " channels, but ", s.groups, " groups of ", p.kernel.inputs, " input channels of the weights make ",
          p.kernel.inputs * s.groups, ".");
  require(s.batch % s.batch_groups == 0, s.batch_groups, " batch groups do not divide a batch of ", s.batch, ".");

  const auto entry = [&](const std::vector<index_t>& list, std::size_t i, index_t otherwise, index_t least,
                         const char* name) {
    require(list.empty() || list.size() == rank, "there are ", list.size(), " ", name, " for ", rank,
            " spatial axes; there is one for each, or none.");
    const index_t value = list.empty() ? otherwise : list[i];
    require(value >= least, "entry ", i, " of the ", name, " is ", value, "; it is at least ", least, ".");
    return value;
  };
  constexpr index_t any = -(index_t{1} << 40);  // padding that is no mistake
  index_t pixels = 1, taps = 1;
  for (std::size_t i = 0; i < rank; ++i) {
    const std::size_t axis = 3 - rank + i;
    convolution_axis& a = s.axes[axis];
    a.in = p.input.sizes[axis];
    a.taps = p.kernel.sizes[axis];
    a.stride = entry(how.strides, i, 1, 1, "strides");
    a.tap_dilation = entry(how.dilations, i, 1, 1, "dilations");
    a.input_dilation = entry(how.input_dilations, i, 1, 1, "input dilations");
    a.pad_low = entry(how.pad_low, i, 0, any, "low paddings");
    a.pad_high = entry(how.pad_high, i, 0, any, "high paddings");
    require(a.fits(), "spatial axis ", i, " of ", a.in, " elements and ", a.taps,
            " taps does not fit 60 bits with its dilations and paddings.");
    if (a.out() == 1) a.stride = a.padded() - a.reach() + 1;  // a step that leads nowhere, of any length
    pixels = detail::checked_product(pixels, a.out());
    taps = detail::checked_product(taps, a.taps);
  }
  detail::checked_product(detail::checked_product(pixels, s.outputs), s.result_batch());
  detail::checked_product(taps, s.group_inputs());
  return p;
}

}  // namespace qtensor::inline QTENSOR_ABI
