// Back-propagation through the two networks, written out by hand.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "dataset.hpp"
#include "model.hpp"

namespace fashion {

/// Gradient of the mean cross entropy with respect to the scores; adds up the loss.
inline Eigen::MatrixXf loss_gradient(Eigen::MatrixXf scores, const std::vector<std::uint8_t>& labels, double& loss) {
  scores.rowwise() -= scores.colwise().maxCoeff().eval();
  scores = scores.array().exp();
  scores.array().rowwise() /= scores.colwise().sum().array().eval();
  for (Eigen::Index i = 0; i < scores.cols(); ++i) {
    float& probability = scores(labels[std::size_t(i)], i);
    loss -= std::log(std::max(probability, 1e-12f));
    probability -= 1.f;
  }
  return scores / float(scores.cols());
}

/// Gradient of weight and bias of a layer that was given `x` and whose result has gradient `dy`.
inline linear<float32> layer_gradient(const Eigen::MatrixXf& x, const Eigen::MatrixXf& dy) {
  return {dy * x.transpose(), dy.rowwise().sum()};
}

/// Where the ReLU let its argument through; y is its result.
inline auto passed(const Eigen::MatrixXf& y) { return (y.array() > 0.f).cast<float>().matrix(); }

/// The transpose of patches(): every patch is added to where it came from.
inline Eigen::MatrixXf patches_gradient(const Eigen::MatrixXf& dy, Eigen::Index size) {
  const Eigen::Index channels = dy.rows() / 9;
  Eigen::MatrixXf result = Eigen::MatrixXf::Zero(channels, dy.cols());
  for_each_pixel(dy.cols(), size, [&](Eigen::Index column, Eigen::Index origin, Eigen::Index y, Eigen::Index x) {
    const float* patch = dy.col(column).data();
    float* map = result.col(origin).data();
    for_each_stretch(y, x, size, channels, [&](Eigen::Index from, Eigen::Index to, Eigen::Index floats) {
      for (Eigen::Index i = 0; i < floats; ++i) map[to + i] += patch[from + i];
    });
  });
  return result;
}

/// Gradient of max_pool(maps): goes to the first of the four pixels that holds the maximum.
inline Eigen::MatrixXf max_pool_gradient(const Eigen::MatrixXf& maps, const Eigen::MatrixXf& pooled,
                                         const Eigen::MatrixXf& dy, Eigen::Index size) {
  Eigen::MatrixXf result(maps.rows(), maps.cols());
  const Eigen::Index channels = maps.rows();
  for_each_pixel(pooled.cols(), size / 2,
                 [&](Eigen::Index column, Eigen::Index origin, Eigen::Index y, Eigen::Index x) {
                   const Eigen::Index at = (4 * origin + 2 * y * size + 2 * x) * channels;
                   const float *in = maps.data() + at, *largest = pooled.data() + column * channels,
                               *d = dy.data() + column * channels;
                   float* out = result.data() + at;
                   for (Eigen::Index channel = 0; channel < channels; ++channel) {
                     float left = d[channel];  // what no pixel has taken yet
                     for (Eigen::Index pixel : {Eigen::Index(0), Eigen::Index(1), size, size + 1}) {
                       const Eigen::Index i = pixel * channels + channel;
                       out[i] = in[i] == largest[channel] ? left : 0.f;
                       left -= out[i];
                     }
                   }
                 });
  return result;
}

/// The gradient of a network is a network: same layers, same shapes. Adds up the loss of the batch.
inline float_mlp gradient(const float_mlp& net, const Eigen::MatrixXf& x, const std::vector<std::uint8_t>& labels,
                          double& loss) {
  const Eigen::MatrixXf a = net.first(x).cwiseMax(0.f);
  const Eigen::MatrixXf b = net.second(a).cwiseMax(0.f);
  const Eigen::MatrixXf dc = loss_gradient(net.third(b), labels, loss);
  const Eigen::MatrixXf db = (net.third.weight.transpose() * dc).cwiseProduct(passed(b));
  const Eigen::MatrixXf da = (net.second.weight.transpose() * db).cwiseProduct(passed(a));
  return {layer_gradient(x, da), layer_gradient(a, db), layer_gradient(b, dc)};
}

inline float_cnn gradient(const float_cnn& net, const Eigen::MatrixXf& x, const std::vector<std::uint8_t>& labels,
                          double& loss) {
  const Eigen::Index n = x.cols(), half = side / 2;
  const linear<float32>&first = net.first, &second = net.second;  // patches are needed again below

  const Eigen::MatrixXf x_patches = patches(x.reshaped(1, x.size()), side);
  const Eigen::MatrixXf a = first(x_patches), a_pooled = max_pool(a, side), a_relu = a_pooled.cwiseMax(0.f);
  const Eigen::MatrixXf a_patches = patches(a_relu, half);
  const Eigen::MatrixXf b = second(a_patches), b_pooled = max_pool(b, half);
  Eigen::MatrixXf b_relu = b_pooled.cwiseMax(0.f);
  b_relu.resize(net.third.weight.cols(), n);

  const Eigen::MatrixXf dc = loss_gradient(net.third(b_relu), labels, loss);
  Eigen::MatrixXf db_relu = (net.third.weight.transpose() * dc).cwiseProduct(passed(b_relu));
  db_relu.resize(b_pooled.rows(), b_pooled.cols());
  const Eigen::MatrixXf db = max_pool_gradient(b, b_pooled, db_relu, half);
  const Eigen::MatrixXf da_relu = patches_gradient(second.weight.transpose() * db, half).cwiseProduct(passed(a_relu));
  const Eigen::MatrixXf da = max_pool_gradient(a, a_pooled, da_relu, side);
  return {{layer_gradient(x_patches, da)}, {layer_gradient(a_patches, db)}, layer_gradient(b_relu, dc)};
}

}  // namespace fashion
