// Trains a float network with Adam. Serial and seeded: the same build gives the same weights.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <Eigen/Core>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "dataset.hpp"
#include "gradients.hpp"
#include "model.hpp"
#include "progress.hpp"

namespace fashion {

/// Everything that the trained weights depend on besides the data.
struct recipe {
  int epochs;
  Eigen::Index images, batch;
  float rate;  // Adam's step in the first epoch; falls linearly to zero
  std::uint32_t seed;

  std::string description() const {
    return std::to_string(images) + " images, " + std::to_string(epochs) + " epochs, batches of " +
           std::to_string(batch) + ", rate " + std::to_string(rate) + ", seed " + std::to_string(seed);
  }
};

/// Weights uniform with variance 2 / inputs (He et al. 2015), biases zero. Not a std distribution: they differ by
/// library.
template <class Net>
Net initial_network(std::mt19937& random) {
  Net net;
  const auto* shape = Net::shapes;
  for_each_layer(
      [&](linear<float32>& layer) {
        const auto [outputs, inputs] = *shape++;
        const float bound = std::sqrt(6.f / float(inputs));
        layer.weight = Eigen::MatrixXf::NullaryExpr(outputs, inputs,
                                                    [&] { return bound * (float(random() >> 8) * 0x1p-23f - 1.f); });
        layer.bias = Eigen::VectorXf::Zero(outputs);
      },
      net);
  return net;
}

/// Adam (Kingma and Ba 2015) with its usual constants.
template <class Net>
class adam {
 public:
  explicit adam(const Net& net) : mean_(net), square_(net) {
    for_each_layer(
        [](linear<float32>& m, linear<float32>& s) {
          m.weight.setZero(), m.bias.setZero(), s.weight.setZero(), s.bias.setZero();
        },
        mean_, square_);
  }

  void step(Net& net, const Net& gradient, float rate) {
    decay_mean_ *= 0.9f, decay_square_ *= 0.999f;
    const float factor = rate * std::sqrt(1.f - decay_square_) / (1.f - decay_mean_);
    const auto update = [&](auto& value, const auto& g, auto& m, auto& s) {
      m = 0.9f * m + 0.1f * g;
      s = 0.999f * s + 0.001f * g.cwiseAbs2();
      value.array() -= factor * m.array() / (s.array().sqrt() + 1e-8f);
    };
    for_each_layer(
        [&](linear<float32>& layer, const linear<float32>& g, linear<float32>& m, linear<float32>& s) {
          update(layer.weight, g.weight, m.weight, s.weight);
          update(layer.bias, g.bias, m.bias, s.bias);
        },
        net, gradient, mean_, square_);
  }

 private:
  Net mean_, square_;
  float decay_mean_ = 1.f, decay_square_ = 1.f;
};

template <class Net>
struct trained {
  Net net;
  bool complete;  // false: the time ran out, so the weights depend on the speed of the machine
};

/// Trains from scratch on the first `how.images` images, for at most `max_seconds`.
template <class Net>
trained<Net> train(const dataset& data, const recipe& how, double max_seconds) {
  using clock = std::chrono::steady_clock;
  const clock::time_point start = clock::now();
  std::mt19937 random(how.seed);
  Net net = initial_network<Net>(random);
  adam<Net> optimizer(net);

  std::vector<Eigen::Index> order(std::size_t(how.images));
  std::iota(order.begin(), order.end(), 0);
  Eigen::MatrixXf x(pixels, how.batch);
  std::vector<std::uint8_t> labels(static_cast<std::size_t>(how.batch));
  const Eigen::Index steps = how.images / how.batch;
  progress bar(std::string("training ") + Net::name, how.epochs, steps);

  for (int epoch = 0; epoch < how.epochs; ++epoch) {
    for (std::size_t i = order.size() - 1; i > 0; --i) std::swap(order[i], order[random() % (i + 1)]);
    double loss = 0;
    for (Eigen::Index step = 0; step < steps; ++step) {
      for (Eigen::Index i = 0; i < how.batch; ++i) {
        const Eigen::Index image = order[std::size_t(step * how.batch + i)];
        x.col(i) = data.batch(image, 1);
        labels[std::size_t(i)] = data.labels[std::size_t(image)];
      }
      const float left = 1.f - float(epoch * steps + step) / float(how.epochs * steps);
      optimizer.step(net, gradient(net, x, labels, loss), how.rate * left);
      bar.update(epoch, step + 1, loss / double((step + 1) * how.batch));
      if (std::chrono::duration<double>(clock::now() - start).count() > max_seconds) {
        bar.finish("stopped by the time limit");
        return {std::move(net), epoch + 1 == how.epochs && step + 1 == steps};
      }
    }
  }
  bar.finish("done");
  return {std::move(net), true};
}

}  // namespace fashion
