// The two networks, written once: every layer is templated on the scheme that stores its weights.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <qtensor/qtensor.hpp>
#include <type_traits>

#include "dataset.hpp"

namespace fashion {

namespace qt = qtensor;

/// The scheme of the baseline: weights stay an Eigen matrix of floats.
struct float32 {};

template <class Scheme>
struct weights_of {
  using type = qt::tensor<Scheme>;
};
template <>
struct weights_of<float32> {
  using type = Eigen::MatrixXf;
};
template <class Scheme>
using weights = typename weights_of<Scheme>::type;

/// y = weight * x + bias for every column x.
template <class Scheme>
struct linear {
  weights<Scheme> weight;  // outputs x inputs
  Eigen::VectorXf bias;    // outputs

  template <class Derived>
  auto operator()(const Eigen::MatrixBase<Derived>& x) const {
    return (weight * x).colwise() + bias;
  }
};

// Feature maps are channels x (image, y, x): the channels of one pixel are contiguous, and so are the pixels of an
// image.

/// Calls copy(patch_offset, map_offset, floats) for the contiguous stretches of the 3 x 3 patch around (y, x):
/// three rows of up to three pixels. What lies outside the map is left out.
template <class Copy>
void for_each_stretch(Eigen::Index y, Eigen::Index x, Eigen::Index size, Eigen::Index channels, Copy copy) {
  const Eigen::Index left = std::max<Eigen::Index>(x - 1, 0), right = std::min(x + 1, size - 1);
  for (Eigen::Index row = std::max<Eigen::Index>(y - 1, 0); row <= std::min(y + 1, size - 1); ++row)
    copy(((row - y + 1) * 3 + left - x + 1) * channels, (row * size + left) * channels, (right - left + 1) * channels);
}

/// Calls visit(column, first column of its image, y, x) for every pixel of maps of size x size.
template <class Visit>
void for_each_pixel(Eigen::Index columns, Eigen::Index size, Visit visit) {
  for (Eigen::Index column = 0, image = 0; column < columns; ++image)
    for (Eigen::Index y = 0; y < size; ++y)
      for (Eigen::Index x = 0; x < size; ++x) visit(column++, image * size * size, y, x);
}

/// The 3 x 3 neighbourhood of every pixel as a column, zero outside the map: (9 * channels) x pixels.
inline Eigen::MatrixXf patches(const Eigen::MatrixXf& maps, Eigen::Index size) {
  const Eigen::Index channels = maps.rows();
  Eigen::MatrixXf result = Eigen::MatrixXf::Zero(9 * channels, maps.cols());
  for_each_pixel(maps.cols(), size, [&](Eigen::Index column, Eigen::Index origin, Eigen::Index y, Eigen::Index x) {
    float* patch = result.col(column).data();
    const float* map = maps.col(origin).data();
    for_each_stretch(y, x, size, channels, [&](Eigen::Index to, Eigen::Index from, Eigen::Index floats) {
      std::copy_n(map + from, floats, patch + to);
    });
  });
  return result;
}

/// A 3 x 3 convolution that keeps the size of its maps: patches times the filters, which are a linear layer.
template <class Scheme>
struct convolution : linear<Scheme> {  // weight: channels out x (9 * channels in)
  Eigen::MatrixXf operator()(const Eigen::MatrixXf& maps, Eigen::Index size) const {
    const Eigen::MatrixXf columns = patches(maps, size);
    return linear<Scheme>::operator()(columns);
  }
};

/// The largest of each 2 x 2 pixels: channels x (pixels / 4).
inline Eigen::MatrixXf max_pool(const Eigen::MatrixXf& maps, Eigen::Index size) {
  Eigen::MatrixXf result(maps.rows(), maps.cols() / 4);
  for_each_pixel(
      result.cols(), size / 2, [&](Eigen::Index column, Eigen::Index origin, Eigen::Index y, Eigen::Index x) {
        const Eigen::Index at = 4 * origin + 2 * y * size + 2 * x;
        result.col(column) =
            maps.col(at).cwiseMax(maps.col(at + 1)).cwiseMax(maps.col(at + size).cwiseMax(maps.col(at + size + 1)));
      });
  return result;
}

/// Three fully connected layers.
template <class First, class Second, class Third>
struct mlp {
  static constexpr const char* name = "mlp";
  template <class A, class B, class C>
  using with_schemes = mlp<A, B, C>;
  static constexpr Eigen::Index shapes[3][2] = {{256, pixels}, {128, 256}, {classes, 128}};

  linear<First> first;
  linear<Second> second;
  linear<Third> third;

  /// Scores, classes x images, of images that are the columns of a pixels x images matrix.
  Eigen::MatrixXf operator()(const Eigen::MatrixXf& images) const {
    const Eigen::MatrixXf a = first(images).cwiseMax(0.f);
    const Eigen::MatrixXf b = second(a).cwiseMax(0.f);
    return third(b);
  }
};

/// Two convolutions, each followed by pooling, and a fully connected layer.
template <class First, class Second, class Third>
struct cnn {
  static constexpr const char* name = "cnn";
  template <class A, class B, class C>
  using with_schemes = cnn<A, B, C>;
  static constexpr Eigen::Index shapes[3][2] = {{8, 9}, {32, 9 * 8}, {classes, 32 * pixels / 16}};

  convolution<First> first;
  convolution<Second> second;
  linear<Third> third;

  /// Scores, classes x images, of images that are the columns of a pixels x images matrix.
  Eigen::MatrixXf operator()(const Eigen::MatrixXf& images) const {
    const Eigen::MatrixXf maps = images.reshaped(1, images.size());  // one channel
    const Eigen::MatrixXf a = max_pool(first(maps, side), side).cwiseMax(0.f);
    Eigen::MatrixXf b = max_pool(second(a, side / 2), side / 2).cwiseMax(0.f);
    b.resize(shapes[2][1], images.cols());  // the same floats, one column an image
    return third(b);
  }
};

/// Calls f(layer of a, layer of b, ...) for the three layers of networks of the same shape.
template <class F, class... Nets>
void for_each_layer(F f, Nets&&... nets) {
  f(nets.first...);
  f(nets.second...);
  f(nets.third...);
}

using float_mlp = mlp<float32, float32, float32>;
using float_cnn = cnn<float32, float32, float32>;

/// A float layer with its weights stored under Scheme.
template <class Scheme>
linear<Scheme> quantize_layer(const linear<float32>& layer) {
  if constexpr (std::is_same_v<Scheme, float32>)
    return layer;
  else
    return {qt::quantize<Scheme>(layer.weight), layer.bias};
}
template <class Scheme>
convolution<Scheme> quantize_layer(const convolution<float32>& layer) {
  return {quantize_layer<Scheme>(static_cast<const linear<float32>&>(layer))};
}

/// A float network with the weights of each layer stored under that layer's scheme.
template <class First, class Second, class Third, class Net>
auto quantize_network(const Net& net) {
  return typename Net::template with_schemes<First, Second, Third>{
      quantize_layer<First>(net.first), quantize_layer<Second>(net.second), quantize_layer<Third>(net.third)};
}

}  // namespace fashion
