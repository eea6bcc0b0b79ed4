// Mirrors include/qtensor/ops/convolution_shape.hpp: layouts by letters, and a sentence for everything that does not
// fit.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <limits>
#include <qtensor/ops/convolution_shape.hpp>

namespace {

namespace qt = qtensor;
using qt::index_t;
using position = qt::convolution_shape::position;

void refuses(const qt::convolution_layout& x, const qt::convolution_layout& w, const qt::convolution_options& how,
             const char* text) {
  CHECK_THROWS_WITH_AS(qt::plan_convolution(x, w, how), doctest::Contains(text), qt::error);
}

}  // namespace

TEST_CASE("convolution layouts: letters give extents and strides, absent axes are 1") {
  const auto a = qt::activations({"NHWC", {2, 5, 7, 3}});
  CHECK(a.batch == 2);
  CHECK(a.channels == 3);
  CHECK(a.sizes == position{1, 5, 7});
  CHECK(a.at(1, 2, {0, 3, 4}) == ((1 * 5 + 3) * 7 + 4) * 3 + 2);
  CHECK(qt::activations({"NCW", {2, 3, 7}}).at(1, 2, {0, 0, 4}) == (1 * 3 + 2) * 7 + 4);
  CHECK(qt::activations({"NDHWC", {1, 4, 5, 6, 2}}).at(0, 1, {3, 2, 1}) == ((3 * 5 + 2) * 6 + 1) * 2 + 1);
  CHECK(qt::activations({"NHWC", {1, 5, 7, 3}, {999, 100, 10, 1}}).at(0, 1, {0, 2, 3}) == 231);
}

TEST_CASE("convolution layouts: weights with groups in O or under G") {
  const auto plain = qt::weights({"OIHW", {6, 2, 3, 3}}, 3);
  CHECK(plain.group_outputs == 2);
  CHECK(plain.at(5, 1, {0, 2, 1}) == ((5 * 2 + 1) * 3 + 2) * 3 + 1);
  const auto grouped = qt::weights({"GOIHW", {3, 2, 2, 3, 3}}, 3);
  CHECK(grouped.at(5, 1, {0, 2, 1}) == plain.at(5, 1, {0, 2, 1}));
  const auto last = qt::weights({"HWIO", {3, 3, 2, 6}}, 3);
  CHECK(last.at(5, 1, {0, 2, 1}) == ((2 * 3 + 1) * 2 + 1) * 6 + 5);
  CHECK(qt::weights({"OHWI", {6, 3, 3, 2}}, 1).at(5, 1, {0, 2, 1}) == ((5 * 3 + 2) * 3 + 1) * 2 + 1);
  CHECK(qt::weights({"HWIGO", {3, 3, 2, 3, 2}}, 3).at(5, 1, {0, 2, 1}) == last.at(5, 1, {0, 2, 1}));
}

TEST_CASE("convolution plan: the geometry of both operands, and the result's layout") {
  const auto p =
      qt::plan_convolution({"NHWC", {2, 9, 8, 6}}, {"OIHW", {10, 3, 3, 2}}, {{2, 1}, {1, 2}, {}, {1, 0}, {0, 3}, 2});
  CHECK(p.shape.batch == 2);
  CHECK(p.shape.inputs == 6);
  CHECK(p.shape.outputs == 10);
  CHECK(p.shape.groups == 2);
  CHECK(p.shape.axes[0].out() == 1);
  CHECK(p.shape.axes[1].out() == 4);
  CHECK(p.shape.axes[2].out() == 9);
  CHECK(p.shape.depth() == 18);
  const auto y = p.result("NCHW");
  CHECK(y.batch == 2);
  CHECK(y.channels == 10);
  CHECK(y.sizes == position{1, 4, 9});
  CHECK(y.channel_stride == 36);
  CHECK(qt::plan_convolution({"NWC", {4, 8, 6}}, {"OIW", {4, 6, 2}}, {.batch_groups = 2}).result("NWC").batch == 2);
}

TEST_CASE("convolution plan: refusals name what does not fit") {
  const qt::convolution_layout x{"NHWC", {1, 4, 4, 6}}, w{"OIHW", {4, 6, 2, 2}};
  refuses({"NHWK", {1, 4, 4, 6}}, w, {}, "has a letter that is none of NCDHW");
  refuses({"NHHC", {1, 4, 4, 6}}, w, {}, "has a letter twice");
  refuses({"NHW", {1, 4, 4}}, w, {}, "lacks a letter; it needs NCW");
  refuses({"NDWC", {1, 4, 4, 6}}, w, {}, "has D without H");
  refuses({"NHWC", {1, 4, 4}}, w, {}, "has 3 extents for the 4 letters");
  refuses({"NHWC", {1, 4, 4, 6}, {1}}, w, {}, "has 1 strides for the 4 letters");
  refuses({"NHWC", {1, -4, 4, 6}}, w, {}, "has the extent -4");
  refuses(x, {"OIW", {4, 6, 2}}, {}, "they have the same spatial letters");
  refuses(x, {"OIHW", {4, 5, 2, 2}}, {}, "the activations have 6 channels, but 1 groups of 5 input channels");
  refuses(x, w, {.groups = 2}, "the activations have 6 channels, but 2 groups of 6 input channels");
  refuses(x, {"OIHW", {3, 3, 2, 2}}, {.groups = 2}, "2 groups do not divide 3 outputs");
  refuses(x, {"GOIHW", {3, 1, 3, 2, 2}}, {.groups = 2}, "the weights have 3 groups under G, the convolution 2");
  refuses(x, w, {.groups = 0}, "both are at least 1, and one of them is 1");
  refuses(x, w, {.groups = 2, .batch_groups = 2}, "one of them is 1");
  refuses(x, w, {.batch_groups = 2}, "2 batch groups do not divide a batch of 1");
  refuses(x, w, {.strides = {1}}, "there are 1 strides for 2 spatial axes");
  refuses(x, w, {.strides = {1, 0}}, "entry 1 of the strides is 0; it is at least 1");
  refuses(x, w, {.dilations = {0, 1}}, "entry 0 of the dilations is 0");
  refuses(x, w, {.input_dilations = {1, -1}}, "entry 1 of the input dilations is -1");
  refuses(x, w, {.pad_low = {1, 2, 3}}, "there are 3 low paddings for 2 spatial axes");
  refuses({"NHWC", {1, index_t{1} << 40, index_t{1} << 40, 1}}, {"OIHW", {1, 1, 1, 1}}, {}, "does not fit 63 bits");
  constexpr index_t most = std::numeric_limits<index_t>::max();
  refuses(x, w, {.dilations = {1, most}}, "spatial axis 1 of 4 elements and 2 taps does not fit 60 bits");
  refuses(x, w, {.input_dilations = {most, 1}}, "spatial axis 0 of 4 elements and 2 taps does not fit 60 bits");
  refuses(x, w, {.pad_low = {most, 1}, .pad_high = {most, 1}}, "spatial axis 0 of 4 elements and 2 taps");
  refuses({"NWC", {0, most, 1}}, {"OIW", {1, 1, most}}, {}, "does not fit 60 bits");
}
