// What the tests of ZenDNN's reorder share: buffers of run-time types, the document's formulas, a list of geometries.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <qtensor/compat/zendnn.hpp>
#include <sstream>
#include <string>
#include <vector>

namespace zendnn_check {

// Names one by one: the schemes s8 and u8 would hide the tests' own.
using qtensor::compat::zendnn::data_type_t;
using qtensor::compat::zendnn::lowoha_reorder_params_t;
using qtensor::compat::zendnn::reorder;
using qtensor::compat::zendnn::reorder_algo_t;
using qtensor::compat::zendnn::special_quotients_t;
using qtensor::compat::zendnn::status_t;
using qtensor::compat::zendnn::zero_points_t;

inline std::size_t size_of(data_type_t t) {
  return t == data_type_t::s8 || t == data_type_t::u8 ? 1 : t == data_type_t::bf16 || t == data_type_t::f16 ? 2 : 4;
}
inline bool is_code(data_type_t t) { return size_of(t) == 1; }

/// The stored word of a number, and the number of a stored word, for f32, bf16, f16.
inline std::uint32_t word_of(data_type_t t, float x) {
  if (t == data_type_t::f32) return qtensor::bits_of(x);
  return t == data_type_t::bf16 ? qtensor::encode<qtensor::bf16, qtensor::to_special>(x)
                                : qtensor::encode<qtensor::f16, qtensor::to_special>(x);
}
inline float float_at(data_type_t t, std::uint32_t word) {
  if (t == data_type_t::f32) return qtensor::float_of(word);
  return t == data_type_t::bf16 ? qtensor::decode<qtensor::bf16>(word) : qtensor::decode<qtensor::f16>(word);
}

/// Elements of a run-time type in aligned memory, as unsigned words.
class buffer {
 public:
  buffer(data_type_t type, const std::vector<std::uint32_t>& words)
      : type_(type), count_(words.size()), memory_(words.size() + 1) {
    for (std::size_t i = 0; i < count_; ++i) set(i, words[i]);
  }
  void* data() { return memory_.data(); }
  const void* data() const { return memory_.data(); }
  void set(std::size_t i, std::uint32_t word) {
    std::memcpy(reinterpret_cast<char*>(memory_.data()) + i * size_of(type_), &word, size_of(type_));  // little endian
  }
  std::vector<std::uint32_t> words() const {
    std::vector<std::uint32_t> out(count_, 0);
    for (std::size_t i = 0; i < count_; ++i)
      std::memcpy(&out[i], reinterpret_cast<const char*>(memory_.data()) + i * size_of(type_), size_of(type_));
    return out;
  }

 private:
  data_type_t type_;
  std::size_t count_;
  std::vector<std::uint32_t> memory_;
};

/// One element by the document's formulas, in the math library's words.
inline std::uint32_t expected(data_type_t from, data_type_t to, std::uint32_t word, float scale, std::int32_t zero) {
  volatile float step;  // every step is rounded to f32
  if (is_code(from)) {
    const int code = from == data_type_t::s8 ? static_cast<std::int8_t>(word) : static_cast<int>(word);
    step = static_cast<float>(code) - static_cast<float>(zero);
    step = step * scale;
    return word_of(to, step);
  }
  const float x = float_at(from, word);
  if (is_code(to)) {
    step = x / scale;
    const double low = to == data_type_t::s8 ? -128 : 0, high = to == data_type_t::s8 ? 127 : 255;
    const double q = std::isnan(step) ? 0.0 : std::nearbyint(static_cast<double>(step));
    return static_cast<std::uint32_t>(static_cast<int>(std::clamp(q + zero, low, high))) & 0xFF;
  }
  if (scale == 1.f && zero == 0) return word_of(to, x);
  if (from == data_type_t::f32 || (from == data_type_t::bf16 && to == data_type_t::f16)) {
    step = x / scale;
    step = step + static_cast<float>(zero);
  } else {
    step = x - static_cast<float>(zero);
    step = step * scale;
  }
  return word_of(to, step);
}

/// A shaped call: extents, strides (empty: dense), dims of both parameters.
struct geometry {
  std::vector<std::int64_t> shape, strides, scale_dims, zero_dims;

  std::string text() const {
    std::ostringstream out;
    for (const auto* list : {&shape, &strides, &scale_dims, &zero_dims}) {
      out << '{';
      for (std::int64_t v : *list) out << ' ' << v;
      out << " } ";
    }
    return out.str();
  }
  std::array<std::int64_t, 3> extents() const {
    std::array<std::int64_t, 3> e = {1, 1, 1};
    std::copy(shape.begin(), shape.end(), e.end() - static_cast<std::ptrdiff_t>(shape.size()));
    return e;
  }
  std::array<std::int64_t, 3> steps() const {
    const auto e = extents();
    std::array<std::int64_t, 3> s = {e[1] * e[2], e[2], 1};
    std::copy(strides.begin(), strides.end(), s.end() - static_cast<std::ptrdiff_t>(strides.size()));
    return s;
  }
  std::int64_t count() const { return extents()[0] * extents()[1] * extents()[2]; }
  /// Elements of memory from the first to the last.
  std::int64_t reach() const {
    const auto e = extents(), s = steps();
    return (e[0] - 1) * s[0] + (e[1] - 1) * s[1] + (e[2] - 1) * s[2] + 1;
  }
};

/// The document's index calculation for element (row, col) of M x N.
inline std::size_t entry(const std::vector<std::int64_t>& dims, std::int64_t M, std::int64_t N, std::int64_t row,
                         std::int64_t col) {
  if (dims.empty()) return 0;
  const std::int64_t a = dims.size() == 1 ? 1 : dims[dims.size() - 2], b = dims.back();
  std::int64_t index = 0;
  if (a == 1 && b == 1)
    index = 0;
  else if (a == 1 && b == N)
    index = col;
  else if (a == M && b == 1)
    index = row;
  else if (b == N)
    index = row / (M / a) * N + col;
  else
    index = row * b + col / (N / b);
  return static_cast<std::size_t>(index);
}

inline std::vector<geometry> geometries() {
  using list = std::vector<std::int64_t>;
  std::vector<geometry> all = {
      {{1}, {}, {}, {}},
      {{67}, {}, {1}, {1}},
      {{67}, {}, {67}, {67}},
      {{1300}, {3}, {1300}, {1}},
      {{1}, {}, {1}, {1}},
      {{7, 1}, {}, {7, 1}, {7, 1}},
      {{1, 9}, {}, {1, 3}, {1, 3}},
      {{9, 1}, {}, {3, 1}, {3, 1}},
      {{2, 2200}, {}, {2, 2}, {2, 2}},  // groups longer than a tile
      {{4, 2100}, {}, {2, 2100}, {2, 2100}},
      {{3, 1050}, {1051, 1}, {}, {}},
      {{3, 1050}, {}, {1050}, {1}},  // one value: the last axis
  };
  for (const std::int64_t cols : {1, 2, 3, 4, 5, 8, 12, 16, 17, 24, 33, 48, 64, 72})  // short rows, joined and apart
    for (const std::int64_t stride : {cols, cols + 1}) {
      const list own = {70, 1}, column = {1, cols}, shared = {7, cols}, none = {};
      const std::int64_t half = cols % 2 == 0 ? cols / 2 : 1;
      for (const auto& [s, z] :
           {std::pair{own, own}, std::pair{column, column}, std::pair{shared, shared}, std::pair{none, own},
            std::pair{own, column}, std::pair{list{70, half}, own}, std::pair{list{70, half}, list{70, half}}})
        all.push_back({{70, cols}, {stride, 1}, s, z});
      all.push_back({{2, 35, cols}, {35 * stride, stride, 1}, {1, 35, 1}, {1, 35, 1}});
      all.push_back({{2, 35, cols}, {35 * stride, stride, 1}, {1, 1, 1}, {1, 35, 1}});
    }
  const list per_tensor = {1, 1}, per_col = {1, 130}, per_row = {12, 1}, group_row = {3, 130}, group_col = {12, 10},
             long_groups = {12, 2};
  for (const list& strides : {list{}, list{140, 1}, list{1, 12}})
    for (const list& dims : {per_tensor, per_col, per_row, group_row, group_col, long_groups})
      all.push_back({{12, 130}, strides, dims, dims});
  for (const auto& [s, z] :
       {std::pair{per_row, per_col}, std::pair{group_row, group_col}, std::pair{group_col, long_groups},
        std::pair{per_tensor, per_row}, std::pair{per_col, per_tensor}})
    all.push_back({{12, 130}, {}, s, z});
  for (const list& strides : {list{}, list{1700, 130, 1}, list{1, 2, 24}})
    for (list dims : {per_tensor, per_col, per_row, group_row, group_col}) {
      dims.insert(dims.begin(), 1);
      all.push_back({{2, 12, 130}, strides, dims, dims});
    }
  return all;
}

/// Source words: numbers of both signs with ties, or all codes in turn.
inline std::vector<std::uint32_t> source_words(data_type_t from, std::int64_t n) {
  std::vector<std::uint32_t> words;
  std::uint32_t state = 7;
  for (std::int64_t i = 0; i < n; ++i) {
    state = state * 1664525u + 1013904223u;
    const float x = static_cast<float>(static_cast<std::int32_t>(state) >> 20) * 0.125f;  // -256 to 256
    words.push_back(is_code(from) ? (state >> 13) & 0xFF : word_of(from, x));
  }
  return words;
}

inline void set_geometry(lowoha_reorder_params_t& p, const geometry& g) {
  p.src_shape = g.shape;
  p.dst_shape = g.shape;
  p.src_strides = g.strides;
}

/// Runs a static call and compares every element; "" or the first difference. Zero points are codes times a factor;
/// where that is not 1, there are NaNs, infinities and huge numbers among the source's.
inline std::string compare(data_type_t from, data_type_t to, const geometry& g, reorder_algo_t algo,
                           data_type_t scale_type, std::int32_t zero_factor = 1) {
  auto source = source_words(from, g.reach());
  const float specials[] = {qtensor::quiet_nan, qtensor::infinity, -qtensor::infinity, 3e38f, -3e9f, 5e8f, -0.f};
  for (std::size_t i = 3; zero_factor != 1 && !is_code(from) && i < source.size(); i += 29)
    source[i] = word_of(from, specials[i % std::size(specials)]);
  const std::int64_t most = 4200;
  std::vector<std::uint32_t> scales;
  std::vector<std::int32_t> zeros;
  const bool is_signed = from == data_type_t::s8 || to == data_type_t::s8;
  for (std::int64_t i = 0; i < most; ++i) {
    scales.push_back(word_of(scale_type, i % 5 == 3 ? 1.f : 0.5f + static_cast<float>(i % 61) * 0.0625f));
    zeros.push_back((static_cast<std::int32_t>(i * 31 % 256) - (is_signed ? 128 : 0)) * zero_factor);
  }
  const buffer src(from, source), scale(scale_type, scales);
  buffer dst(to, std::vector<std::uint32_t>(static_cast<std::size_t>(g.count())));
  lowoha_reorder_params_t p;
  p.dtypes = {from, to};
  p.quant_params.scale = {scale.data(), scale_type, g.scale_dims};
  p.quant_params.zero_point = {zeros.data(), data_type_t::s32, g.zero_dims};
  p.algo = algo;
  if (zero_factor != 1) p.zero_points = zero_points_t::int32;
  set_geometry(p, g);
  const status_t s = reorder(src.data(), dst.data(), p);
  if (s == status_t::failure) return s.reason();
  const auto got = dst.words();
  const auto e = g.extents(), step = g.steps();
  std::size_t i = 0;
  for (std::int64_t b = 0; b < e[0]; ++b)
    for (std::int64_t row = 0; row < e[1]; ++row)
      for (std::int64_t col = 0; col < e[2]; ++col, ++i) {
        const std::uint32_t word = source[static_cast<std::size_t>(b * step[0] + row * step[1] + col * step[2])];
        const float f = float_at(scale_type, scales[entry(g.scale_dims, e[1], e[2], row, col)]);
        const std::int32_t z = zeros[entry(g.zero_dims, e[1], e[2], row, col)];
        if (const std::uint32_t want = expected(from, to, word, f, z); got[i] != want) {
          std::ostringstream line;
          line << "element " << i << ": word " << std::hex << word << ", scale " << f << ", zero point " << std::dec
               << z << " gives " << std::hex << got[i] << ", not " << want;
          return line.str();
        }
      }
  return "";
}

/// A dynamic call over a flat array.
struct dynamic_result {
  float scale = 0.f;
  std::int32_t zero_point = 0;
  std::vector<std::uint32_t> codes;
};
inline dynamic_result dynamic(data_type_t from, data_type_t to, const std::vector<std::uint32_t>& words,
                              data_type_t scale_type = data_type_t::f32) {
  const buffer src(from, words);
  buffer dst(to, std::vector<std::uint32_t>(words.size())), scale(scale_type, {0});
  dynamic_result r;
  lowoha_reorder_params_t p;
  p.dtypes = {from, to};
  p.dynamic_quant = true;
  p.quant_params.scale = {scale.data(), scale_type, {}};
  if (to == data_type_t::u8) p.quant_params.zero_point = {&r.zero_point, data_type_t::s32, {}};
  const status_t s = reorder(src.data(), dst.data(), words.size(), p);
  INFO(s.reason());
  REQUIRE(s == status_t::success);
  r.scale = float_at(scale_type, scale.words()[0]);
  r.codes = dst.words();
  return r;
}

/// Runs a dynamic call; parameters and codes against the formulas, entry by entry. "" or the first difference.
inline std::string compare_dynamic(data_type_t from, data_type_t to, const geometry& g, reorder_algo_t algo) {
  auto source = source_words(from, g.reach());
  for (std::size_t i = 5; i < source.size(); i += 83)
    source[i] = word_of(from, i % 2 != 0 ? qtensor::infinity : qtensor::quiet_nan);
  const buffer src(from, source);
  buffer dst(to, std::vector<std::uint32_t>(static_cast<std::size_t>(g.count())));
  const bool symmetric = to == data_type_t::s8;
  std::vector<float> scales(4200, -1.f);
  std::vector<std::int32_t> zeros(4200, 0);
  lowoha_reorder_params_t p;
  p.dtypes = {from, to};
  p.dynamic_quant = true;
  p.algo = algo;
  p.quant_params.scale = {scales.data(), data_type_t::f32, g.scale_dims};
  if (!symmetric) p.quant_params.zero_point = {zeros.data(), data_type_t::s32, g.zero_dims};
  set_geometry(p, g);
  const status_t s = reorder(src.data(), dst.data(), p);
  if (s == status_t::failure) return s.reason();
  const auto e = g.extents(), step = g.steps();
  std::vector<float> low(scales.size(), qtensor::infinity), high(scales.size(), -qtensor::infinity);
  const auto word = [&](std::int64_t b, std::int64_t row, std::int64_t col) {
    return source[static_cast<std::size_t>(b * step[0] + row * step[1] + col * step[2])];
  };
  std::size_t entries = 0;
  for (std::int64_t b = 0; b < e[0]; ++b)
    for (std::int64_t row = 0; row < e[1]; ++row)
      for (std::int64_t col = 0; col < e[2]; ++col) {
        const std::size_t at = entry(g.scale_dims, e[1], e[2], row, col);
        entries = std::max(entries, at + 1);
        const float x = float_at(from, word(b, row, col));
        if (std::isfinite(x)) low[at] = std::min(low[at], x), high[at] = std::max(high[at], x);
      }
  for (std::size_t at = 0; at < scales.size(); ++at) {
    if (at >= entries) {
      if (scales[at] != -1.f) return "an entry beyond the last one is written";
      continue;
    }
    float lo = low[at], hi = high[at], scale;
    std::int32_t zero = 0;
    if (lo > hi) lo = hi = 0.f;
    if (symmetric) {
      scale = std::max(std::max(std::max(std::fabs(lo), std::fabs(hi)), 1e-10f) / 127.f, 1e-10f);
    } else {
      if (hi <= lo) hi = lo + 1.f;
      scale = std::max((hi - lo) / 255.f, 1e-10f);
      zero = static_cast<std::int32_t>(std::round(static_cast<double>(-lo) / static_cast<double>(scale)));
    }
    if (scales[at] != scale || zeros[at] != zero) return "entry " + std::to_string(at) + " differs";
  }
  const auto got = dst.words();
  std::size_t i = 0;
  for (std::int64_t b = 0; b < e[0]; ++b)
    for (std::int64_t row = 0; row < e[1]; ++row)
      for (std::int64_t col = 0; col < e[2]; ++col, ++i) {
        const std::size_t at = entry(g.scale_dims, e[1], e[2], row, col);
        if (got[i] != expected(from, to, word(b, row, col), scales[at], zeros[at]))
          return "code " + std::to_string(i) + " differs";
      }
  return "";
}

}  // namespace zendnn_check
