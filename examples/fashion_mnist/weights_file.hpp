// Keeps trained weights in a file, so that only the first run trains.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>

#include "training.hpp"

namespace fashion {

// A line that names the network and its recipe, the floats of every layer in this machine's byte order, a 64-bit FNV-1a
// hash of all that. A file that was made for another recipe, cut short or damaged is not read; the network is trained.

inline std::string weights_header(const char* network, const recipe& how) {
  return "qtensor fashion_mnist weights 1: " + std::string(network) + ", " + how.description() + "\n";
}

inline std::string hash_of(const std::string& bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char byte : bytes) hash = (hash ^ byte) * 0x100000001b3;
  return {reinterpret_cast<const char*>(&hash), sizeof hash};
}

/// The floats of one layer as bytes, for reading and for writing.
template <class Floats>
std::string as_bytes(const Floats& floats) {
  return {reinterpret_cast<const char*>(floats.data()), sizeof(float) * std::size_t(floats.size())};
}

/// Written beside the file and renamed: a reader sees all of it or nothing.
template <class Net>
void save_weights(const std::filesystem::path& file, const Net& net, const recipe& how) {
  std::string bytes = weights_header(Net::name, how);
  for_each_layer([&](const linear<float32>& layer) { bytes += as_bytes(layer.weight) + as_bytes(layer.bias); }, net);
  bytes += hash_of(bytes);
  const std::filesystem::path part = file.string() + ".part";
  std::ofstream out(part, std::ios::binary);
  if (!out.write(bytes.data(), std::streamsize(bytes.size())).flush())
    throw std::runtime_error("cannot write " + part.string());
  out.close();
  std::filesystem::rename(part, file);
}

/// The network that was saved for exactly this recipe, if the file has one.
template <class Net>
std::optional<Net> load_weights(const std::filesystem::path& file, const recipe& how) {
  std::ifstream in(file, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  const std::string header = weights_header(Net::name, how);
  std::size_t floats = 0;
  for (const auto& [outputs, inputs] : Net::shapes) floats += std::size_t(outputs * (inputs + 1));
  const std::size_t content = header.size() + floats * sizeof(float);
  if (!bytes.starts_with(header) || bytes.size() != content + sizeof(std::uint64_t) ||
      hash_of(bytes.substr(0, content)) != bytes.substr(content))
    return std::nullopt;

  Net net;
  const auto* shape = Net::shapes;
  const char* next = bytes.data() + header.size();
  const auto read = [&](auto& to) {
    std::memcpy(to.data(), next, sizeof(float) * std::size_t(to.size()));
    next += sizeof(float) * std::size_t(to.size());
  };
  for_each_layer(
      [&](linear<float32>& layer) {
        const auto [outputs, inputs] = *shape++;
        layer.weight.resize(outputs, inputs);
        layer.bias.resize(outputs);
        read(layer.weight);
        read(layer.bias);
      },
      net);
  return net;
}

}  // namespace fashion
