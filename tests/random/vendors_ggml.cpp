// ggml's rows of every type, and its blocks to planar tensors and back, as NUMERICS 8.3 says.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/compat/ggml_rows.hpp>
#include <qtensor/scheme/schemes.hpp>

#include "../compat/ggml_check.hpp"
#include "array.hpp"

using namespace qtensor;
namespace ggml = qtensor::compat::ggml;

namespace {

fuzz::array floats_in_memory(fuzz::dice& dice, const std::vector<float>& x) {
  fuzz::array out(dice, static_cast<index_t>(4 * x.size()), 4);
  for (std::size_t i = 0; i < x.size(); ++i) out.set(static_cast<index_t>(i), 32, bits_of(x[i]));
  return out;
}
std::vector<float> draw_numbers(fuzz::dice& dice, index_t n) {
  std::vector<float> x = dice.numbers(n);
  if (dice.chance(4))  // next to powers of two, where log2f rounds
    for (float& v : x)
      if (dice.chance(8)) v = float_of((bits_of(v) & 0xFF800000u) + static_cast<std::uint32_t>(dice.within(-12, 1)));
  if (dice.chance(4) && n >= 32) {  // magnitudes that differ from block to block
    for (index_t i = 0; i < n; ++i) {
      volatile float v = x[static_cast<std::size_t>(i)] * exp2i(static_cast<int>(i / 16 * 29 % 250) - 120);
      x[static_cast<std::size_t>(i)] = v;
    }
  }
  return x;
}

/// One block of Q8 that holds a NaN, by the scalar reference: NUMERICS leaves it to the platform.
template <class S>
plain::bytes reference_block(const float* x) {
  plain::bytes out(static_cast<std::size_t>(interleaved_block<S>::bytes({})));
  const tensor_span<S, extents<dynamic>> block{{extents<dynamic>(32), {}, {}}, {out.data(), {}, {}, {}, {}}};
  reference::quantize([x](const auto& i) { return x[i[0]]; }, block);
  return out;
}
plain::bytes block_of(int type, const float* x, index_t n) {
  if (type == 0 || type == 1 || type == 30) {
    const std::uint32_t code = type == 0   ? bits_of(*x)
                               : type == 1 ? encode<f16, to_special>(*x)
                                           : encode<bf16, to_special>(*x);
    plain::bytes out;
    for (int b = 0; b < (type == 0 ? 4 : 2); ++b) plain::put(out, static_cast<int>(code >> 8 * b & 0xFF));
    return out;
  }
  const bool has_nan = std::any_of(x, x + n, [](float v) { return is_nan(v); });
  if (has_nan && type == 8) return reference_block<ggml::q8_0>(x);
  if (has_nan && type == 9) return reference_block<ggml::q8_1>(x);
  std::vector<float> numbers(x, x + n);
  if ((type == 2 && plain::amax_of(x, 32) / 8 == 0.f) || (type == 6 && plain::amax_of(x, 32) / 16 == 0.f))
    for (float& v : numbers) v = is_nan(v) ? 0.f : v;  // below a scale of 0 every code is that of 0
  return plain::block(type, numbers.data());
}

float f16_at(const std::uint8_t* b) { return decode<f16>(static_cast<std::uint32_t>(b[0] | b[1] << 8)); }
float ue4m3_at(std::uint8_t b) {
  return (b & 0x7F) == 0x7F && b < 0x80 ? 0.f : static_cast<float>(plain::ue4m3_value(b & 0x7F));
}

/// Element i of a block.
float value_of(int type, const std::uint8_t* b, int i) {
  const auto nibble = [&](int at, int half) { return b[at + i % half] >> (i % (2 * half) / half * 4) & 15; };
  const auto fifth = [&](int at) { return (b[at + i / 8] >> (i % 8) & 1) << 4; };
  volatile float v = 0.f;
  switch (type) {
    case 0: {
      float x;
      std::memcpy(&x, b, 4);
      return x;
    }
    case 1:
      return f16_at(b);
    case 30:
      return decode<bf16>(static_cast<std::uint32_t>(b[0] | b[1] << 8));
    case 2:
      return static_cast<float>(nibble(2, 16) - 8) * f16_at(b);
    case 3:
      v = static_cast<float>(nibble(4, 16)) * f16_at(b);
      return v + f16_at(b + 2);
    case 6:
      return static_cast<float>((nibble(6, 16) | fifth(2)) - 16) * f16_at(b);
    case 7:
      v = static_cast<float>(nibble(8, 16) | fifth(4)) * f16_at(b);
      return v + f16_at(b + 2);
    case 8:
      return static_cast<float>(static_cast<std::int8_t>(b[2 + i])) * f16_at(b);
    case 9:
      return static_cast<float>(static_cast<std::int8_t>(b[4 + i])) * f16_at(b);
    case 39:
      return static_cast<float>(plain::doubled[nibble(1, 16)]) * std::ldexp(1.f, b[0] - 128);
    default:
      return static_cast<float>(plain::doubled[b[4 + i / 16 * 8 + i % 8] >> (i % 16 / 8 * 4) & 15]) *
             (ue4m3_at(b[i / 16]) / 2.f);
  }
}

index_t draw_length(fuzz::dice& dice, index_t elements) {
  return elements * dice.extent(dice.chance(20) ? 20000 / elements : dice.chance(3) ? 70 : 5);
}

void one_row(fuzz::dice& dice) {
  const int type = dice.one_of(0, 1, 2, 3, 6, 7, 8, 9, 30, 39, 40);
  const ggml::block_size size = ggml::block_size_of(type);
  const index_t n = draw_length(dice, size.elements), bytes = n / size.elements * size.bytes;
  CAPTURE(type);
  CAPTURE(n);
  REQUIRE(ggml::row_bytes(type, n) == bytes);

  const std::vector<float> numbers = draw_numbers(dice, n);
  const fuzz::array x = floats_in_memory(dice, numbers), x_before = x;
  fuzz::array y(dice, bytes, 1), want = y;
  REQUIRE(ggml::quantize_row(type, reinterpret_cast<const float*>(x.data()), y.data(), n).ok());
  for (index_t b = 0; b < n / size.elements; ++b) {
    const plain::bytes block = block_of(type, numbers.data() + b * size.elements, size.elements);
    std::copy(block.begin(), block.end(), want.data() + b * size.bytes);
    for (index_t i = 0; i < size.bytes; ++i) {
      const index_t at = b * size.bytes + i;
      INFO("byte ", i, " of block ", b, " is ", int(y.data()[at]), ", not ", int(want.data()[at]));
      REQUIRE(y.data()[at] == want.data()[at]);
    }
  }
  REQUIRE(y == want);
  REQUIRE(x == x_before);

  if (dice.chance(2))
    for (index_t i = 0; i < bytes; ++i) y.data()[i] = static_cast<std::uint8_t>(dice.bits());
  const fuzz::array y_before = y;
  fuzz::array back(dice, 4 * n, 4), back_want = back;
  REQUIRE(ggml::dequantize_row(type, y.data(), reinterpret_cast<float*>(back.data()), n).ok());
  for (index_t i = 0; i < n; ++i) {
    const float v = value_of(type, y.data() + i / size.elements * size.bytes, static_cast<int>(i % size.elements));
    const std::uint32_t got = back.get(i, 32);
    INFO("element ", i, " is ", float_of(got), ", not ", v);
    REQUIRE((is_nan(v) ? is_nan(float_of(got)) : got == bits_of(v)));
    back_want.set(i, 32, got);
  }
  REQUIRE(back == back_want);
  REQUIRE(y == y_before);
}

/// Blocks of any codes and scales to a planar tensor and back, and parts of both.
template <class Blocks, class Planar>
void there_and_back(fuzz::dice& dice) {
  using scale = typename Blocks::scale_format;
  const index_t step = interleaved_block<Blocks>::elements({}), rows = dice.within(0, 4),
                cols = dice.chance(4) ? dice.extent(2500) : step * dice.within(0, dice.chance(4) ? 40 : 4),
                above = dice.within(0, 2), before = step * dice.within(0, 2),
                behind = dice.chance(2)   ? 0
                         : dice.chance(2) ? step
                                          : dice.within(0, 70);
  INFO(std::string(name<Blocks>), " and ", std::string(name<Planar>), ", ", rows, " x ", cols, " from ", above, ", ",
       before, ", ", behind, " columns more");
  tensor<Blocks> t(matrix_extents(above + rows, before + cols + behind));
  for (auto& byte : t.blocks()) byte = static_cast<std::uint8_t>(dice.bits());
  for (index_t i = 0; i < t.rows(); ++i)
    for (index_t j = 0; j < t.cols(); ++j) {  // numbers of both formats
      const std::uint32_t code = t.view().scale_code({i, j});
      t.span().set_storage_scale_code({i, j}, scale::bits == 16         ? code & 0xFBFFu
                                              : (code & 0x7Fu) == 0x7Fu ? code & 0x7Eu
                                                                        : code);
    }
  const auto part_of = [&](const auto& view) { return view.middle_rows(above, rows).middle_cols(before, cols); };
  const auto part = part_of(t.view());
  const auto flat = ggml::from_blocks<Planar>(part), all = ggml::from_blocks<Planar>(t);
  const auto back = ggml::to_blocks<Blocks>(part_of(all.view()));
  for (index_t i = 0; i < rows; ++i) {
    float sum = 0.f;
    for (index_t j = 0; j < cols; ++j) {
      const matrix_extents::array at = {i, j};
      const float want = reference::value(part, at), got = reference::value(flat.view(), at);
      INFO("element ", i, ", ", j, ": ", got, ", not ", want);
      REQUIRE((got == want || (is_nan(got) && is_nan(want))));
      REQUIRE(back.code(i, j) == part.code(i, j));
      REQUIRE(back.view().scale(i, j) == part.scale(i, j));
      if constexpr (Blocks::has_offset) REQUIRE(back.view().storage_offset_code(at) == part.storage_offset_code(at));
      sum = (j % 32 == 0 ? 0.f : sum) + decode<typename Blocks::code_format>(part.code(i, j));
      if constexpr (Blocks::has_code_sum)
        if (j % 32 == 31 || j == cols - 1)
          REQUIRE(back.view().storage_code_sum(at) == encode<f16, to_special>(sum * part.scale(i, j)));
    }
  }
}

}  // namespace

TEST_CASE("ggml: rows of every type, and back") { fuzz::each_case(1200, one_row); }
TEST_CASE("ggml: blocks to planar tensors and back") {
  fuzz::each_case(600, [](fuzz::dice& dice) {
    fuzz::one_case_of(dice, &there_and_back<ggml::q8_0, scheme<int8, group<32>, scale_as<f16>>>,
                      &there_and_back<ggml::q8_0, scheme<int8, group<32>>>,
                      &there_and_back<ggml::q8_1, scheme<int8, group<32>, scale_as<f16>>>,
                      &there_and_back<ggml::q4_0, scheme<int4, group<32>, scale_as<f16>>>,
                      &there_and_back<ggml::q5_0, with<ggml::q5_0, planar<>>>,
                      &there_and_back<ggml::q4_1, with<ggml::q4_1, planar<>>>,
                      &there_and_back<ggml::q5_1, with<ggml::q5_1, planar<>>>, &there_and_back<ggml::mxfp4, mxfp4>,
                      &there_and_back<ggml::nvfp4, nvfp4>);
  });
}
