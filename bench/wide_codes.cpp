// Operations: codes of 16 and 32 bits, and of widths that fill no byte.
// SPDX-License-Identifier: BSD-3-Clause
#include "operation.hpp"

namespace bench {

namespace {

struct int3 : qt::integer<3, signed> {
  static constexpr qt::fixed_string name = "int3";
};
struct int5 : qt::integer<5, signed> {
  static constexpr qt::fixed_string name = "int5";
};

template <class S, scales How = scales::given>
void add_both_ways(operations& all, const std::string& label) {
  add_quantize<qt::f32, S, How>(all, label);
  add_dequantize<S, qt::f32, How>(all, label);
}

}  // namespace

void add_wide_codes(operations& all) {
  add_both_ways<qt::scheme<qt::int16, qt::per_tensor>>(all, "int16 tensor");
  add_both_ways<qt::scheme<qt::int32, qt::per_tensor>>(all, "int32 tensor");
  add_both_ways<qt::scheme<qt::bf16, qt::per_tensor>, scales::one>(all, "bf16");
  add_both_ways<qt::scheme<qt::f16, qt::per_tensor>, scales::one>(all, "f16");
  add_both_ways<qt::scheme<int3, qt::group<64>>>(all, "int3 groups");
  add_both_ways<qt::scheme<int5, qt::group<64>>>(all, "int5 groups");
}

}  // namespace bench
