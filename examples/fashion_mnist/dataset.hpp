// Fashion-MNIST as matrices: one image a column, read from the gzipped IDX files of the data set.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <Eigen/Core>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace fashion {

inline constexpr Eigen::Index side = 28, pixels = side * side, classes = 10;

/// The files are not where they were looked for; `what()` says where and what to install.
struct missing_data : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// n labelled images. Bytes, because the training set is four times smaller that way.
struct dataset {
  Eigen::Matrix<std::uint8_t, pixels, Eigen::Dynamic> images;  // column i is image i, its rows one after the other
  std::vector<std::uint8_t> labels;                            // in [0, classes)

  Eigen::Index size() const { return images.cols(); }

  /// Images [first, first + count) as floats in [0, 1], pixels x count.
  auto batch(Eigen::Index first, Eigen::Index count) const {
    return images.middleCols(first, count).cast<float>() * (1.f / 255.f);
  }

  /// Keeps the first `count` images.
  void truncate(Eigen::Index count) {
    images.conservativeResize(Eigen::NoChange, count);
    labels.resize(std::size_t(count));
  }
};

/// All bytes of a gzipped file. gzip is a required package of Debian, so this needs no library at build time.
inline std::vector<std::uint8_t> gunzip(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file))
    throw missing_data(file.string() + " is not there. On Debian and Ubuntu: apt install dataset-fashion-mnist; " +
                       "elsewhere unpack the four .gz files of Fashion-MNIST into one folder and pass --data FOLDER.");
  std::string quoted = "'";
  for (char c : file.string()) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  std::FILE* pipe = popen(("gzip -dc " + quoted + "'").c_str(), "r");
  if (!pipe) throw std::runtime_error("cannot start gzip for " + file.string());
  std::vector<std::uint8_t> bytes;
  std::uint8_t part[1 << 16];
  while (const std::size_t n = std::fread(part, 1, sizeof part, pipe)) bytes.insert(bytes.end(), part, part + n);
  if (pclose(pipe) != 0) throw std::runtime_error("gzip could not read " + file.string());
  return bytes;
}

/// The payload of an IDX file of bytes with `rank` dimensions: 00 00 08 rank, big-endian 32-bit extents, data.
inline std::vector<std::uint8_t> idx_payload(const std::filesystem::path& file, std::size_t rank) {
  std::vector<std::uint8_t> bytes = gunzip(file);
  const std::size_t header = 4 + 4 * rank;
  std::size_t expected = 1;
  if (bytes.size() >= header && bytes[2] == 8 && bytes[3] == rank)
    for (std::size_t d = 0; d < rank; ++d) {
      const std::uint8_t* e = bytes.data() + 4 + 4 * d;
      expected *= std::size_t(e[0]) << 24 | std::size_t(e[1]) << 16 | std::size_t(e[2]) << 8 | std::size_t(e[3]);
    }
  if (bytes.size() < header || bytes.size() - header != expected)
    throw std::runtime_error(file.string() + " is not an IDX file of bytes with " + std::to_string(rank) +
                             " dimensions");
  bytes.erase(bytes.begin(), bytes.begin() + std::ptrdiff_t(header));
  return bytes;
}

/// Reads `<prefix>-images-idx3-ubyte.gz` and its labels; prefix is "train" (60,000 images) or "t10k" (10,000).
inline dataset load(const std::filesystem::path& folder, const std::string& prefix) {
  const std::vector<std::uint8_t> pictures = idx_payload(folder / (prefix + "-images-idx3-ubyte.gz"), 3);
  dataset data{{}, idx_payload(folder / (prefix + "-labels-idx1-ubyte.gz"), 1)};
  if (pictures.size() != data.labels.size() * std::size_t(pixels))
    throw std::runtime_error(prefix + ": the images are not 28 x 28 or their number is not that of the labels");
  for (std::uint8_t label : data.labels)
    if (label >= classes) throw std::runtime_error(prefix + ": label " + std::to_string(label) + " is not a class");
  data.images = Eigen::Map<const decltype(data.images)>(pictures.data(), pixels, Eigen::Index(data.labels.size()));
  return data;
}

}  // namespace fashion
