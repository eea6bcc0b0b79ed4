// Plain loops: what a careful user writes and leaves to the vectoriser. Compiled with two sets of flags.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <qtensor/format/hifloat8.hpp>
#include <qtensor/format/minifloat.hpp>

#include "harness.hpp"

#ifndef BENCH_LOOPS
#define BENCH_LOOPS plain
#endif
#define BENCH_TEXT_(x) #x
#define BENCH_TEXT(x) BENCH_TEXT_(x)

namespace bench::BENCH_LOOPS {

namespace {

float of_bits(std::uint32_t u) { return std::bit_cast<float>(u); }
std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }

// ---- Numbers -------------------------------------------------------------------------------------------------------

struct f32 {
  using type = float;
  static float load(float x) { return x; }
  static float store(float x) { return x; }
};
struct bf16 {
  using type = std::uint16_t;
  static float load(std::uint16_t x) { return of_bits(std::uint32_t{x} << 16); }
  static std::uint16_t store(float x) {
    const std::uint32_t u = bits(x);
    if ((u & 0x7fffffffu) > 0x7f800000u) return 0x7fc0;
    return static_cast<std::uint16_t>((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
  }
};

// ---- Codes ---------------------------------------------------------------------------------------------------------

template <int Low, int High>
int to_integer(float x) {
  x = std::nearbyintf(x);
  x = x < Low ? Low : x;
  x = x > High ? High : x;
  return static_cast<int>(x);
}

/// Textbook encoder: subnormals by adding a power of two, normals by adding half an ulp to the bits.
template <class F>
struct minifloat {
  static constexpr int mantissa = F::mantissa_bits, bias = F::bias, shift = 23 - mantissa;
  static constexpr std::uint32_t smallest_normal = static_cast<std::uint32_t>(128 - bias) << 23;
  static constexpr std::uint32_t magic = static_cast<std::uint32_t>(127 + 24 - bias - mantissa) << 23;

  static std::uint8_t encode(float x) {
    std::uint32_t u = bits(x);
    const std::uint32_t sign = u >> 31 << (F::bits - 1);
    u &= 0x7fffffffu;
    const float size = of_bits(u) < F::max ? of_bits(u) : F::max;
    const std::uint32_t s = bits(size);
    const std::uint32_t small = bits(size + of_bits(magic)) - magic;
    const std::uint32_t normal =
        (s - (static_cast<std::uint32_t>(127 - bias) << 23) + ((1u << (shift - 1)) - 1) + (s >> shift & 1u)) >> shift;
    std::uint32_t code = s < smallest_normal ? small : normal;
    if (F::bits == 8) code = u > 0x7f800000u ? 0x7fu : code;
    return static_cast<std::uint8_t>(code | sign);
  }
};
/// E2M1 by its seven midpoints.
struct e2m1 {
  static std::uint8_t encode(float x) {
    const float a = std::fabs(x);
    const int code = (a > 0.25f) + (a >= 0.75f) + (a > 1.25f) + (a >= 1.75f) + (a > 2.5f) + (a >= 3.5f) + (a > 5.f);
    return static_cast<std::uint8_t>(code | static_cast<int>(bits(x) >> 31 << 3));
  }
};

template <class F>
struct lookup {
  static constexpr auto table = [] {
    std::array<float, std::size_t{1} << F::bits> values{};
    for (std::uint32_t c = 0; c < values.size(); ++c) values[c] = F::decode(c);
    return values;
  }();
};

/// Places for codes of 8, 4 and 6 bits: n elements by code_of(i).
template <int Bits, class Code>
void write_codes(std::uint8_t* __restrict to, index_t n, Code code_of) {
  if constexpr (Bits == 8)
    for (index_t i = 0; i < n; ++i) to[i] = static_cast<std::uint8_t>(code_of(i));
  else if constexpr (Bits == 4)
    for (index_t i = 0; i < n / 2; ++i)
      to[i] = static_cast<std::uint8_t>((code_of(2 * i) & 15) | (code_of(2 * i + 1) & 15) << 4);
  else
    for (index_t i = 0; i < n / 4; ++i) {
      const int a = code_of(4 * i), b = code_of(4 * i + 1), c = code_of(4 * i + 2), d = code_of(4 * i + 3);
      to[3 * i] = static_cast<std::uint8_t>((a & 63) | b << 6);
      to[3 * i + 1] = static_cast<std::uint8_t>((b & 63) >> 2 | c << 4);
      to[3 * i + 2] = static_cast<std::uint8_t>((c & 63) >> 4 | d << 2);
    }
}
template <int Bits, class T, class Value>
void read_codes(const std::uint8_t* __restrict from, index_t n, T* __restrict to, Value value_of) {
  if constexpr (Bits == 8)
    for (index_t i = 0; i < n; ++i) to[i] = value_of(from[i]);
  else if constexpr (Bits == 4)
    for (index_t i = 0; i < n / 2; ++i) {
      to[2 * i] = value_of(static_cast<std::uint8_t>(from[i] & 15));
      to[2 * i + 1] = value_of(static_cast<std::uint8_t>(from[i] >> 4));
    }
  else
    for (index_t i = 0; i < n / 4; ++i) {
      const std::uint32_t a = from[3 * i], b = from[3 * i + 1], c = from[3 * i + 2], v = a | b << 8 | c << 16;
      for (int k = 0; k < 4; ++k) to[4 * i + k] = value_of(static_cast<std::uint8_t>(v >> (6 * k) & 63));
    }
}

float largest(const float* x, index_t n) {
  std::uint32_t most = 0;
  for (index_t i = 0; i < n; ++i) most = std::max(most, bits(x[i]) & 0x7fffffffu);
  return of_bits(most);
}
float largest(const std::uint16_t* x, index_t n) {
  std::uint16_t most = 0;
  for (index_t i = 0; i < n; ++i) most = std::max(most, static_cast<std::uint16_t>(x[i] & 0x7fff));
  return bf16::load(most);
}

// ---- Integers ------------------------------------------------------------------------------------------------------

template <class N>
const typename N::type* numbers(const task& t) {
  if constexpr (std::is_same_v<N, f32>)
    return t.floats;
  else
    return t.halves;
}

/// Adds the candidate as rows: each(row) writes one.
template <class Each>
void add(const task& t, candidates& all, const char* note, Each each) {
  all.push_back({kind::loop, std::string("loop, ") + BENCH_TEXT(BENCH_LOOPS), note,
                 t.by_rows([each](index_t first, index_t count) {
                   for (index_t row = first; row < first + count; ++row) each(row);
                 })});
}

template <class N, int Bits, int Low, int High>
void quantize_integers(const task& t, candidates& all) {
  const auto* x = numbers<N>(t);
  std::uint8_t* to = t.codes;
  const index_t cols = t.cols, row_bytes = cols * Bits / 8;
  const float zero = t.op->has_zero_point ? static_cast<float>(t.zero_points[0]) : 0.f;
  const bool zeros = t.op->has_zero_point;
  const float *scale = t.f32_scales(), *inverse = t.inverses;
  const auto line = [=](index_t row, const auto& scaled) {
    const auto* from = x + row * cols;
    write_codes<Bits>(to + row * row_bytes, cols,
                      [&](index_t i) { return to_integer<Low, High>(scaled(N::load(from[i]), i)); });
  };
  if (t.op->how == scales::dynamic) {
    float* out = static_cast<float*>(t.scales);
    if (t.op->has_zero_point || t.op->grain == grain::column) return;
    if (t.op->grain == grain::row)
      return add(t, all, "times 1/scale", [=](index_t row) {
        const float most = largest(x + row * cols, cols), inv = most > 0 ? High / most : 0.f;
        out[row] = most / High;
        line(row, [=](float v, index_t) { return v * inv; });
      });
    if (t.op->grain == grain::tensor && t.threads == 1)
      all.push_back({kind::loop, std::string("loop, ") + BENCH_TEXT(BENCH_LOOPS), "times 1/scale", [=, rows = t.rows] {
                       const float most = largest(x, rows * cols), inv = most > 0 ? High / most : 0.f;
                       out[0] = most / High;
                       for (index_t row = 0; row < rows; ++row) line(row, [=](float v, index_t) { return v * inv; });
                     }});
    return;
  }
  switch (t.op->grain) {
    case grain::tensor:
      if (zeros)
        return add(t, all, "times 1/scale", [=](index_t row) {
          const auto* from = x + row * cols;
          write_codes<Bits>(to + row * row_bytes, cols, [&](index_t i) {
            float v = std::nearbyintf(N::load(from[i]) * inverse[0]) + zero;
            v = v < Low ? Low : v;
            v = v > High ? High : v;
            return static_cast<int>(v);
          });
        });
      add(t, all, "times 1/scale",
          [=](index_t row) { line(row, [k = inverse[0]](float v, index_t) { return v * k; }); });
      if (std::is_same_v<N, f32> && Bits == 8)
        add(t, all, "divided by scale",
            [=](index_t row) { line(row, [k = scale[0]](float v, index_t) { return v / k; }); });
      return;
    case grain::row:
      return add(t, all, "times 1/scale",
                 [=](index_t row) { line(row, [k = inverse[row]](float v, index_t) { return v * k; }); });
    case grain::column:
      return add(t, all, "times 1/scale",
                 [=](index_t row) { line(row, [inverse](float v, index_t i) { return v * inverse[i]; }); });
    case grain::group: {
      constexpr index_t group = 32;
      return add(t, all, "times 1/scale", [=](index_t row) {
        for (index_t g = 0; g < cols / group; ++g) {
          const auto* from = x + row * cols + g * group;
          const float k = inverse[row * (cols / group) + g];
          write_codes<Bits>(to + row * row_bytes + g * group * Bits / 8, group,
                            [&](index_t i) { return to_integer<Low, High>(N::load(from[i]) * k); });
        }
      });
    }
    case grain::block: {
      const index_t side = t.op->group;
      return add(t, all, "times 1/scale", [=](index_t row) {
        const float* k = inverse + row / side * (cols / side);
        line(row, [=](float v, index_t i) { return v * k[i / side]; });
      });
    }
  }
}

template <class N, int Bits, int High>
void quantize_groups(const task& t, candidates& all) {
  constexpr index_t group = 32;
  const auto* x = numbers<N>(t);
  const index_t cols = t.cols;
  float* scale = static_cast<float*>(t.scales);
  add(t, all, "", [=, to = t.codes](index_t row) {
    for (index_t g = 0; g < cols / group; ++g) {
      const index_t at = row * cols + g * group;
      const float most = largest(x + at, group), inv = most > 0 ? High / most : 0.f;
      scale[at / group] = most / High;
      write_codes<Bits>(to + at * Bits / 8, group,
                        [&](index_t i) { return static_cast<int>(std::nearbyintf(N::load(x[at + i]) * inv)); });
    }
  });
}

template <int Bits>
float signed_value(std::uint8_t code) {
  return static_cast<float>(static_cast<std::int8_t>(static_cast<std::uint8_t>(code << (8 - Bits))) >> (8 - Bits));
}

template <class N, int Bits>
void dequantize_integers(const task& t, candidates& all) {
  using type = typename N::type;
  type* out = static_cast<type*>(t.numbers);
  const std::uint8_t* from = t.codes;
  const index_t cols = t.cols;
  const float* scale = t.f32_scales();
  const int zero = t.op->has_zero_point ? t.zero_points[0] : 0;
  const bool zeros = t.op->has_zero_point;
  const grain g = t.op->grain;
  const index_t side = t.op->group;
  add(t, all, "", [=](index_t row) {
    const std::uint8_t* codes = from + row * cols * Bits / 8;
    type* to = out + row * cols;
    if (zeros) {
      read_codes<Bits>(codes, cols, to,
                       [=](std::uint8_t c) { return N::store(static_cast<float>(c - zero) * scale[0]); });
    } else if (g == grain::column) {
      for (index_t i = 0; i < cols; ++i) to[i] = N::store(signed_value<8>(codes[i]) * scale[i]);
    } else if (g == grain::block) {
      const float* k = scale + row / side * (cols / side);
      for (index_t i = 0; i < cols; ++i) to[i] = N::store(signed_value<8>(codes[i]) * k[i / side]);
    } else if (g == grain::group) {
      for (index_t b = 0; b < cols / 32; ++b)
        read_codes<Bits>(
            codes + b * 32 * Bits / 8, 32, to + b * 32,
            [k = scale[row * (cols / 32) + b]](std::uint8_t c) { return N::store(signed_value<Bits>(c) * k); });
    } else {
      read_codes<Bits>(codes, cols, to, [k = scale[g == grain::row ? row : 0]](std::uint8_t c) {
        return N::store(signed_value<Bits>(c) * k);
      });
    }
  });
}

// ---- Minifloats ----------------------------------------------------------------------------------------------------

template <class N, int Bits, class Encoder>
void cast(const task& t, candidates& all) {
  const auto* x = numbers<N>(t);
  add(t, all, "", [x, to = t.codes, cols = t.cols](index_t row) {
    write_codes<Bits>(to + row * cols * Bits / 8, cols,
                      [from = x + row * cols](index_t i) { return int{Encoder::encode(N::load(from[i]))}; });
  });
}
/// To bf16 and back, which is a matter of shifts.
template <class N>
void cast_to_bf16(const task& t, candidates& all) {
  const auto* x = numbers<N>(t);
  add(t, all, "", [x, to = reinterpret_cast<std::uint16_t*>(t.codes), cols = t.cols](index_t row) {
    for (index_t i = row * cols; i < (row + 1) * cols; ++i) to[i] = bf16::store(N::load(x[i]));
  });
}
template <class N>
void cast_from_bf16(const task& t, candidates& all) {
  add(t, all, "",
      [from = reinterpret_cast<const std::uint16_t*>(t.codes), to = static_cast<typename N::type*>(t.numbers),
       cols = t.cols](index_t row) {
        for (index_t i = row * cols; i < (row + 1) * cols; ++i) to[i] = N::store(bf16::load(from[i]));
      });
}
template <class N, class F>
void cast_back(const task& t, candidates& all) {
  using type = typename N::type;
  add(t, all, "table", [from = t.codes, to = static_cast<type*>(t.numbers), cols = t.cols](index_t row) {
    static const auto table = [] {
      std::array<type, lookup<F>::table.size()> values;
      for (std::size_t c = 0; c < values.size(); ++c) values[c] = N::store(lookup<F>::table[c]);
      return values;
    }();
    read_codes<F::bits>(from + row * cols * F::bits / 8, cols, to + row * cols,
                        [](std::uint8_t c) { return table[c]; });
  });
}

/// Groups of 32 with a power of two by the floor rule; Emax is the exponent of the format's largest number.
template <class N, int Bits, int Emax, class Encoder>
void quantize_mx(const task& t, candidates& all) {
  const auto* x = numbers<N>(t);
  add(t, all, "", [x, to = t.codes, scale = static_cast<std::uint8_t*>(t.scales), cols = t.cols](index_t row) {
    for (index_t g = 0; g < cols / 32; ++g) {
      const index_t at = row * cols + g * 32;
      int e = static_cast<int>(bits(largest(x + at, 32)) >> 23) - Emax;
      e = e < 1 ? 1 : e;
      scale[at / 32] = static_cast<std::uint8_t>(e);
      const float k = of_bits(static_cast<std::uint32_t>(254 - e) << 23);
      write_codes<Bits>(to + at * Bits / 8, 32,
                        [&](index_t i) { return int{Encoder::encode(N::load(x[at + i]) * k)}; });
    }
  });
}
template <class N, class F>
void dequantize_mx(const task& t, candidates& all) {
  using type = typename N::type;
  add(t, all, "table",
      [from = t.codes, scale = static_cast<const std::uint8_t*>(t.scales), to = static_cast<type*>(t.numbers),
       cols = t.cols](index_t row) {
        for (index_t g = 0; g < cols / 32; ++g) {
          const index_t at = row * cols + g * 32;
          read_codes<F::bits>(from + at * F::bits / 8, 32, to + at,
                              [k = of_bits(std::uint32_t{scale[at / 32]} << 23)](std::uint8_t c) {
                                return N::store(lookup<F>::table[c] * k);
                              });
        }
      });
}

template <class N>
void quantize_nvfp4(const task& t, candidates& all) {
  const auto* x = numbers<N>(t);
  add(t, all, "", [x, to = t.codes, scale = static_cast<std::uint8_t*>(t.scales), cols = t.cols](index_t row) {
    for (index_t g = 0; g < cols / 16; ++g) {
      const index_t at = row * cols + g * 16;
      const std::uint8_t code = minifloat<qtensor::e4m3>::encode(largest(x + at, 16) / 6.f);
      scale[at / 16] = code;
      const float s = lookup<qtensor::e4m3>::table[code], k = s > 0 ? 1.f / s : 0.f;
      write_codes<4>(to + at / 2, 16, [&](index_t i) { return int{e2m1::encode(N::load(x[at + i]) * k)}; });
    }
  });
}
template <class N>
void dequantize_nvfp4(const task& t, candidates& all) {
  using type = typename N::type;
  add(t, all, "table",
      [from = t.codes, scale = static_cast<const std::uint8_t*>(t.scales), to = static_cast<type*>(t.numbers),
       cols = t.cols](index_t row) {
        for (index_t g = 0; g < cols / 16; ++g) {
          const index_t at = row * cols + g * 16;
          read_codes<4>(from + at / 2, 16, to + at, [k = lookup<qtensor::e4m3>::table[scale[at / 16]]](std::uint8_t c) {
            return N::store(lookup<qtensor::e2m1>::table[c] * k);
          });
        }
      });
}

// ---- The table -----------------------------------------------------------------------------------------------------

template <class N>
void add_quantize(const task& t, candidates& all) {
  const operation& op = *t.op;
  using qtensor::e2m3, qtensor::e3m2, qtensor::e4m3, qtensor::e5m2;
  const auto is = [&](std::string_view code) { return op.code == code; };
  if (op.is_interleaved) {
    if (std::is_same_v<N, f32> && is("int8")) quantize_groups<N, 8, 127>(t, all);  // planar, which is easier
    return;
  }
  if (is("int8") && op.grain == grain::group && op.how == scales::dynamic) return quantize_groups<N, 8, 127>(t, all);
  if (is("int4") && op.grain == grain::group && op.how == scales::dynamic) return quantize_groups<N, 4, 7>(t, all);
  if (is("int8")) return quantize_integers<N, 8, -128, 127>(t, all);
  if (is("int4")) return quantize_integers<N, 4, -8, 7>(t, all);
  if (is("uint8") && op.how == scales::given) return quantize_integers<N, 8, 0, 255>(t, all);
  if (op.scale == "e8m0") {
    if (is("e4m3")) quantize_mx<N, 8, 8, minifloat<e4m3>>(t, all);
    if (is("e5m2")) quantize_mx<N, 8, 15, minifloat<e5m2>>(t, all);
    if (is("e2m3")) quantize_mx<N, 6, 2, minifloat<e2m3>>(t, all);
    if (is("e3m2")) quantize_mx<N, 6, 4, minifloat<e3m2>>(t, all);
    if (is("e2m1")) quantize_mx<N, 4, 2, e2m1>(t, all);
  } else if (op.scale == "e4m3") {
    quantize_nvfp4<N>(t, all);
  } else if (op.how == scales::one) {
    if (is("e4m3")) cast<N, 8, minifloat<e4m3>>(t, all);
    if (is("e5m2")) cast<N, 8, minifloat<e5m2>>(t, all);
    if (is("e2m3")) cast<N, 6, minifloat<e2m3>>(t, all);
    if (is("e3m2")) cast<N, 6, minifloat<e3m2>>(t, all);
    if (is("e2m1")) cast<N, 4, e2m1>(t, all);
    if (is("bf16")) cast_to_bf16<N>(t, all);
  }
}

template <class N>
void add_dequantize(const task& t, candidates& all) {
  const operation& op = *t.op;
  namespace qt = qtensor;
  const auto is = [&](std::string_view code) { return op.code == code; };
  if (op.is_interleaved) return;
  if (is("int8") || is("uint8")) return dequantize_integers<N, 8>(t, all);
  if (is("int4")) return dequantize_integers<N, 4>(t, all);
  if (op.scale == "e8m0") {
    if (is("e4m3")) dequantize_mx<N, qt::e4m3>(t, all);
    if (is("e5m2")) dequantize_mx<N, qt::e5m2>(t, all);
    if (is("e2m3")) dequantize_mx<N, qt::e2m3>(t, all);
    if (is("e2m1")) dequantize_mx<N, qt::e2m1>(t, all);
  } else if (op.scale == "e4m3") {
    dequantize_nvfp4<N>(t, all);
  } else if (op.how == scales::one) {
    if (is("e4m3")) cast_back<N, qt::e4m3>(t, all);
    if (is("e5m2")) cast_back<N, qt::e5m2>(t, all);
    if (is("hif8")) cast_back<N, qt::hif8>(t, all);
    if (is("e2m3")) cast_back<N, qt::e2m3>(t, all);
    if (is("e3m2")) cast_back<N, qt::e3m2>(t, all);
    if (is("e2m1")) cast_back<N, qt::e2m1>(t, all);
    if (is("bf16")) cast_from_bf16<N>(t, all);
  }
}

template <int Bits>
void add_packing(const task& t, candidates& all) {
  std::uint8_t *bytes = static_cast<std::uint8_t*>(t.numbers), *packed = t.codes;
  const index_t cols = t.cols;
  if (t.op->what == verb::pack)
    add(t, all, "", [=](index_t row) {
      write_codes<Bits>(packed + row * cols * Bits / 8, cols,
                        [from = bytes + row * cols](index_t i) { return int{from[i]}; });
    });
  else
    add(t, all, "", [=](index_t row) {
      read_codes<Bits>(packed + row * cols * Bits / 8, cols, bytes + row * cols, [](std::uint8_t c) { return c; });
    });
}

}  // namespace

void add_loops(const task& t, candidates& all) {
  const operation& op = *t.op;
  switch (op.what) {
    case verb::quantize:
      if (op.number == "f32") add_quantize<f32>(t, all);
      if (op.number == "bf16") add_quantize<bf16>(t, all);
      return;
    case verb::dequantize:
      if (op.number == "f32") add_dequantize<f32>(t, all);
      if (op.number == "bf16") add_dequantize<bf16>(t, all);
      return;
    case verb::pack:
    case verb::unpack:
      return op.code == "nibbles" ? add_packing<4>(t, all) : add_packing<6>(t, all);
    case verb::dual_axis:
      return;
  }
}

}  // namespace bench::BENCH_LOOPS
