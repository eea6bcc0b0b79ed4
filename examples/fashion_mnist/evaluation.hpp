// What a row of the table says about a network: bits per weight, accuracy, error of the weights, speed.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>

#include "dataset.hpp"
#include "model.hpp"
#include "schemes.hpp"

namespace fashion {

struct result {
  std::string network, scheme;
  family kind;
  double bits;  // stored bytes of the weights (codes, scales, zero points) * 8 / number of weights; biases stay float
  double accuracy;        // percent of the test images
  double standard_error;  // of the accuracy, because the test images are a sample: 100 sqrt(p (1 - p) / images)
  double sqnr;            // 10 log10(sum w^2 / sum (w - dequantized w)^2) over the weights of all layers
  double rate;            // images per second through the network, one thread
};

inline std::size_t byte_size(const Eigen::MatrixXf& weight) { return sizeof(float) * std::size_t(weight.size()); }
template <class Scheme>
std::size_t byte_size(const qt::tensor<Scheme>& weight) {
  return std::size_t(weight.byte_size());
}

inline const Eigen::MatrixXf& floats_of(const Eigen::MatrixXf& weight) { return weight; }
template <class Scheme>
auto floats_of(const qt::tensor<Scheme>& weight) {
  return qt::dequantize(weight);
}

/// Bits per weight and SQNR of a network against the float network that it was made from.
template <class Quantized, class Net>
void measure_weights(const Quantized& net, const Net& original, result& to) {
  double bytes = 0, count = 0, signal = 0, noise = 0;
  for_each_layer(
      [&](const auto& layer, const linear<float32>& exact) {
        bytes += double(byte_size(layer.weight));
        count += double(exact.weight.size());
        signal += exact.weight.template cast<double>().squaredNorm();
        noise += (floats_of(layer.weight) - exact.weight).template cast<double>().squaredNorm();
      },
      net, original);
  to.bits = 8 * bytes / count;
  to.sqnr = noise > 0 ? 10 * std::log10(signal / noise) : std::numeric_limits<double>::infinity();
}

/// Accuracy and speed over all images of `test`.
template <class Net>
void measure_images(const Net& net, const dataset& test, result& to) {
  using clock = std::chrono::steady_clock;
  constexpr Eigen::Index batch = 100;
  clock::duration busy{};
  Eigen::Index right = 0;
  for (Eigen::Index first = 0; first < test.size(); first += batch) {
    const Eigen::MatrixXf images = test.batch(first, std::min(batch, test.size() - first));
    const clock::time_point start = clock::now();
    const Eigen::MatrixXf scores = net(images);
    busy += clock::now() - start;
    for (Eigen::Index i = 0; i < scores.cols(); ++i) {
      Eigen::Index best;
      scores.col(i).maxCoeff(&best);
      right += best == test.labels[std::size_t(first + i)];
    }
  }
  to.accuracy = 100 * double(right) / double(test.size());
  to.standard_error = std::sqrt(to.accuracy * (100 - to.accuracy) / double(test.size()));
  to.rate = double(test.size()) / std::chrono::duration<double>(busy).count();
}

/// One row of the table: stores the weights as the row says and runs the test images through the same code.
template <class First, class Second, class Third, class Net>
result evaluate(const row<First, Second, Third>& how, const Net& original, const dataset& test) {
  const auto net = quantize_network<First, Second, Third>(original);
  result measured{Net::name, how.label, how.kind, 0, 0, 0, 0, 0};
  measure_weights(net, original, measured);
  measure_images(net, test, measured);
  return measured;
}

}  // namespace fashion
