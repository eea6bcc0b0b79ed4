// ZenDNN's third example, with this library: bf16 numbers to uint8 codes with run-time types, and what a bad call says.
// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>
#include <iostream>
#include <qtensor/compat/zendnn.hpp>
#include <vector>

int main() {
  using namespace qtensor::compat::zendnn;

  constexpr std::size_t nelems = 1024;
  float scale = 0.5f;
  std::int32_t zero_point = 128;  // the usual one for unsigned codes

  // bf16 is the upper half of a float, here cut off.
  std::vector<std::uint16_t> input(nelems);
  std::vector<std::uint8_t> output(nelems);
  for (std::size_t i = 0; i < nelems; ++i) {
    const float value = static_cast<float>(i) * 0.1f - 50.0f;
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    input[i] = static_cast<std::uint16_t>(bits >> 16);
  }

  lowoha_reorder_params_t params;
  params.dtypes = {data_type_t::bf16, data_type_t::u8};
  params.quant_params.scale = {&scale, data_type_t::f32, {}};  // {}: one for the whole array
  params.quant_params.zero_point = {&zero_point, data_type_t::s32, {}};
  params.algo = reorder_algo_t::DT;

  const status_t done = reorder(input.data(), output.data(), nelems, params);
  std::cout << "-50 is code " << int(output[0]) << ", 0 is about code " << int(output[500]) << ", 52.3 is code "
            << int(output[nelems - 1]) << '\n';

  // A failure writes nothing and says why.
  scale = -0.5f;
  const status_t refused = reorder(input.data(), output.data(), nelems, params);
  std::cout << refused.reason() << '\n';

  return done == status_t::success && refused == status_t::failure && output[0] == 28 && output[500] == 128 ? 0 : 1;
}
