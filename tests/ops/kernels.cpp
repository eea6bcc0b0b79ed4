// Mirrors include/qtensor/ops/kernels.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#undef NDEBUG
#include <string>
struct reported {
  explicit reported(const char* said) : sentence(said) {}
  std::string sentence;
};
#define QTENSOR_ASSERTION_FAILED(sentence) throw reported(sentence)
#include <qtensor/ops/kernels.hpp>

#include "check.hpp"

using namespace qtensor;

namespace {

using bytes = std::vector<std::uint8_t>;

template <class Call>
std::string report(Call call) {
  try {
    call();
  } catch (const reported& r) {
    return r.sentence;
  }
  return "nothing was reported";
}

}  // namespace

TEST_CASE("kernels::quantize: n floats with one scale, equal to the reference, and nothing beyond") {
  const std::vector<float> x = check::numbers(200, 5);
  for (index_t n = 0; n <= 200; ++n) {
    INFO("n=", n);
    std::vector<std::int8_t> codes(static_cast<std::size_t>(n) + 1, 99);
    kernels::quantize<int8_per_tensor>(x.data(), n, 0.125f, codes.data());
    bool same = codes.back() == 99;
    for (index_t i = 0; i < n; ++i)
      same = same && static_cast<std::uint8_t>(codes[static_cast<std::size_t>(i)]) ==
                         quantize_element<int8_per_tensor>(x[static_cast<std::size_t>(i)], {0.125f});
    CHECK(same);
  }
}

TEST_CASE("kernels::quantize: packed codes fill whole bytes, the last one padded with zeros") {
  const float x[] = {1.f, -2.f, 3.f};
  bytes codes(3, 0xEE);
  kernels::quantize<scheme<int4, per_tensor>>(x, 3, 1.f, codes.data());
  CHECK(codes == bytes{0xE1, 0x03, 0xEE});
  bytes six(4, 0xEE);
  kernels::quantize<scheme<e2m3, per_tensor>>(x, 3, 1.f, six.data());  // codes 08, 30, 14
  CHECK(six == bytes{0x08, 0x4C, 0x01, 0xEE});
}

TEST_CASE("kernels::quantize and dequantize: zero points") {
  const float x[] = {-1.f, 0.f, 1.f, 1000.f};
  bytes codes(4);
  kernels::quantize<uint8_per_tensor>(x, 4, 0.5f, 128, codes.data());
  CHECK(codes == bytes{126, 128, 130, 255});
  float back[5] = {9, 9, 9, 9, 9};
  kernels::dequantize<uint8_per_tensor>(codes.data(), 4, 0.5f, 128, back);
  CHECK(std::vector<float>(back, back + 5) == std::vector<float>{-1.f, 0.f, 1.f, 63.5f, 9.f});
}

TEST_CASE("kernels::dequantize: n codes with one scale") {
  const bytes codes = {0x21, 0xF7, 0x0F};
  float out[6] = {9, 9, 9, 9, 9, 9};
  kernels::dequantize<scheme<e2m1, per_tensor>>(codes.data(), 5, 2.f, out);
  CHECK(std::vector<float>(out, out + 6) == std::vector<float>{1.f, 2.f, 12.f, -12.f, -12.f, 9.f});
}

TEST_CASE("kernels: a matrix to codes and scales by the scheme's own rule, and back") {
  const matrix_extents shape(5, 70);
  const std::vector<float> x = check::numbers(350, 6, false);
  const auto expected = check::expected<mxfp4, row_major>(x, shape);
  bytes codes(expected.codes().size()), scales(expected.scales().size());
  kernels::quantize<mxfp4>(x.data(), 5, 70, codes.data(), scales.data());
  CHECK(codes == check::bytes_of(expected.codes()));
  CHECK(scales == check::bytes_of(expected.scales()));
  std::vector<float> back(350);
  kernels::dequantize<mxfp4>(codes.data(), scales.data(), 5, 70, back.data());
  bool same = true;
  for (index_t row = 0; row < 5; ++row)
    for (index_t col = 0; col < 70; ++col)
      same = same && bits_of(back[static_cast<std::size_t>(70 * row + col)]) ==
                         bits_of(reference::value(expected.view(), {row, col}));
  CHECK(same);
}

TEST_CASE("kernels: preconditions are reported in debug builds") {
  const float x[] = {1.f};
  std::int8_t code[1];
  float out[1];
  CHECK(report([&] { kernels::quantize<int8_per_tensor>(x, -1, 1.f, code); }) ==
        "qtensor: kernels::quantize needs n of at least 0.");
  CHECK(report([&] { kernels::quantize<int8_per_tensor>(x, 1, 0.f, code); }) ==
        "qtensor: kernels::quantize needs a positive and finite scale.");
  CHECK(report([&] { kernels::quantize<int8_per_tensor>(x, 1, infinity, code); }) ==
        "qtensor: kernels::quantize needs a positive and finite scale.");
  CHECK(report([&] { kernels::dequantize<int8_per_tensor>(code, -1, 1.f, out); }) ==
        "qtensor: kernels::dequantize needs n of at least 0.");
}
