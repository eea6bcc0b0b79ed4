// The sample program of CANN's DynamicMxQuantWithDualAxis document: {0, 8, 64, 512} as bf16 to e4m3, along both axes.
// SPDX-License-Identifier: BSD-3-Clause
//
// The document's y2 and its last line of scales are what its buffers held before the call; here they are the answer.
#include <iostream>
#include <qtensor/compat/cann.hpp>

int main() {
  namespace qt = qtensor;
  namespace cann = qtensor::compat::cann;

  const std::vector<std::uint16_t> x = {0, 16640, 17024, 17408};
  const cann::dims x_sizes = {1, 4};
  const cann::dims scale1_sizes = cann::mxscale_sizes(x_sizes, -1);  // {1, 1, 2}
  const cann::dims scale2_sizes = cann::mxscale_sizes(x_sizes, -2);  // {1, 4, 2}
  std::vector<std::uint8_t> y1(4), y2(4), mxscale1(2), mxscale2(8);

  // One call: there is no workspace to ask for, no executor and no stream.
  const cann::status done = cann::dynamic_mx_quant_with_dual_axis(
      {x.data(), cann::type::bf16, x_sizes}, {.round_mode = "rint", .dst_type = 36, .scale_alg = 0},
      {y1.data(), 36, x_sizes}, {mxscale1.data(), cann::type::e8m0, scale1_sizes}, {y2.data(), 36, x_sizes},
      {mxscale2.data(), cann::type::e8m0, scale2_sizes});
  if (!done.ok()) {
    std::cerr << "status " << done.code << ": " << done.reason << '\n';
    return 1;
  }
  const auto print = [](const char* name, const std::vector<std::uint8_t>& items) {
    for (std::size_t i = 0; i < items.size(); ++i) std::cout << name << '[' << i << "] is: " << int{items[i]} << '\n';
  };
  print("y1Out", y1);
  print("y2Out", y2);
  print("mxscale1Out", mxscale1);
  print("mxscale2Out", mxscale2);

  // The same with types instead of numbers: two tensors, whose scales the layout helpers put into the document's order.
  const auto [rows, cols] =
      cann::dynamic_mx_quant_with_dual_axis<qt::e4m3>(qt::source<qt::bf16>(x.data(), qt::extents(1, 4)));
  const bool same = cann::mxscale1(rows) == mxscale1 && cann::mxscale2(cols) == mxscale2 && rows.code(0, 3) == y1[3] &&
                    cols.code(0, 3) == y2[3];
  const bool right = y1 == std::vector<std::uint8_t>{0, 72, 96, 120} &&
                     y2 == std::vector<std::uint8_t>{0, 120, 120, 120} &&
                     mxscale1 == std::vector<std::uint8_t>{128, 0} &&
                     mxscale2 == std::vector<std::uint8_t>{0, 0, 122, 0, 125, 0, 128, 0};
  return same && right ? 0 : 1;
}
