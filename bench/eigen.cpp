// Eigen expressions, as an Eigen user writes the conversions that Eigen has.
// SPDX-License-Identifier: BSD-3-Clause
#include <Eigen/Core>

#include "harness.hpp"

namespace bench {

namespace {

template <class T>
using matrix = Eigen::Array<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using matrix_in = Eigen::Map<const matrix<T>>;
template <class T>
using matrix_out = Eigen::Map<matrix<T>>;

void add(const task& t, candidates& all, const char* note, auto run) {
  all.push_back({kind::eigen, "Eigen", note, t.by_rows(run)});
}

/// Scaled numbers to codes of type T.
template <class T>
auto rounded(const auto& x, float zero = 0.f) {
  constexpr float low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  return (x.rint() + zero).max(low).min(high).template cast<T>();
}

template <class Number>
void quantize(const task& t, const Number* numbers, candidates& all) {
  const operation& op = *t.op;
  const index_t cols = t.cols;
  const float* inverse = t.inverses;
  const auto rows_of = [=](index_t row, index_t rows) { return matrix_in<Number>(numbers + row * cols, rows, cols); };
  const auto out = [=, to = reinterpret_cast<std::int8_t*>(t.codes)](index_t row, index_t rows) {
    return matrix_out<std::int8_t>(to + row * cols, rows, cols);
  };
  if (op.how != scales::given || op.is_interleaved) return;
  if (op.code == "uint8" && op.grain == grain::tensor)
    add(t, all, "", [=, to = t.codes, zero = static_cast<float>(t.zero_points[0])](index_t row, index_t rows) {
      matrix_out<std::uint8_t>(to + row * cols, rows, cols) =
          rounded<std::uint8_t>(rows_of(row, rows).template cast<float>() * inverse[0], zero);
    });
  if (op.code != "int8") return;
  if (op.grain == grain::tensor)
    add(t, all, "", [=](index_t row, index_t rows) {
      out(row, rows) = (rows_of(row, rows).template cast<float>() * inverse[0])
                           .rint()
                           .max(-128.f)
                           .min(127.f)
                           .template cast<std::int8_t>();
    });
  if (op.grain == grain::row)
    add(t, all, "", [=](index_t row, index_t rows) {
      const Eigen::Map<const Eigen::ArrayXf> k(inverse + row, rows);
      out(row, rows) = (rows_of(row, rows).template cast<float>().colwise() * k)
                           .rint()
                           .max(-128.f)
                           .min(127.f)
                           .template cast<std::int8_t>();
    });
  if (op.grain == grain::column)
    add(t, all, "", [=](index_t row, index_t rows) {
      const Eigen::Map<const Eigen::Array<float, 1, Eigen::Dynamic>> k(inverse, cols);
      out(row, rows) = (rows_of(row, rows).template cast<float>().rowwise() * k)
                           .rint()
                           .max(-128.f)
                           .min(127.f)
                           .template cast<std::int8_t>();
    });
}

template <class Number>
void dequantize(const task& t, Number* numbers, candidates& all) {
  const operation& op = *t.op;
  const index_t cols = t.cols;
  const float* scale = t.f32_scales();
  if (op.is_interleaved || op.scale != "f32") return;
  const auto out = [=](index_t row, index_t rows) { return matrix_out<Number>(numbers + row * cols, rows, cols); };
  const auto codes = [=, from = reinterpret_cast<const std::int8_t*>(t.codes)](index_t row, index_t rows) {
    return matrix_in<std::int8_t>(from + row * cols, rows, cols);
  };
  if (op.code == "uint8" && op.grain == grain::tensor)
    add(t, all, "", [=, from = t.codes, zero = static_cast<float>(t.zero_points[0])](index_t row, index_t rows) {
      out(row, rows) =
          ((matrix_in<std::uint8_t>(from + row * cols, rows, cols).template cast<float>() - zero) * scale[0])
              .template cast<Number>();
    });
  if (op.code != "int8") return;
  if (op.grain == grain::tensor)
    add(t, all, "", [=](index_t row, index_t rows) {
      out(row, rows) = (codes(row, rows).template cast<float>() * scale[0]).template cast<Number>();
    });
  if (op.grain == grain::row)
    add(t, all, "", [=](index_t row, index_t rows) {
      const Eigen::Map<const Eigen::ArrayXf> k(scale + row, rows);
      out(row, rows) = (codes(row, rows).template cast<float>().colwise() * k).template cast<Number>();
    });
  if (op.grain == grain::column)
    add(t, all, "", [=](index_t row, index_t rows) {
      const Eigen::Map<const Eigen::Array<float, 1, Eigen::Dynamic>> k(scale, cols);
      out(row, rows) = (codes(row, rows).template cast<float>().rowwise() * k).template cast<Number>();
    });
}

}  // namespace

void add_eigen(const task& t, candidates& all) {
  const operation& op = *t.op;
  if (op.what == verb::quantize) {
    if (op.number == "f32") quantize(t, t.floats, all);
    if (op.number == "bf16") quantize(t, reinterpret_cast<const Eigen::bfloat16*>(t.halves), all);
    if (op.number == "f16") quantize(t, reinterpret_cast<const Eigen::half*>(t.halves), all);
  } else if (op.what == verb::dequantize) {
    if (op.number == "f32") dequantize(t, static_cast<float*>(t.numbers), all);
    if (op.number == "bf16") dequantize(t, static_cast<Eigen::bfloat16*>(t.numbers), all);
    if (op.number == "f16") dequantize(t, static_cast<Eigen::half*>(t.numbers), all);
  }
}

}  // namespace bench
