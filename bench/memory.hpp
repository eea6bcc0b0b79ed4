// The memory of the benchmarks: one set of arrays that all operations and candidates share.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/mman.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <qtensor/reference/codec.hpp>
#include <random>

#include "harness.hpp"

namespace bench {

/// Pages of their own, large ones where the system has them, all touched.
class pages {
 public:
  explicit pages(index_t bytes) : bytes_(static_cast<std::size_t>((bytes + (2 << 20) - 1) & ~index_t{(2 << 20) - 1})) {
    memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) {
      std::perror("mmap");
      std::exit(1);
    }
    madvise(memory_, bytes_, MADV_HUGEPAGE);
    std::memset(memory_, 1, bytes_);
  }
  pages(const pages&) = delete;
  ~pages() { munmap(memory_, bytes_); }
  template <class T>
  T* as() const {
    return static_cast<T*>(memory_);
  }

 private:
  std::size_t bytes_;
  void* memory_;
};

/// A size of the tables, and what narrow and wide rows change of it; a small one visits several places, so that the
/// numbers are not few enough to be learnt by the branch predictor.
struct extent {
  const char* name;
  index_t rows, cols;
  int places;
};
inline constexpr extent sizes[] = {{"16K", 16, 256, 32},
                                   {"512K", 128, 1024, 1},
                                   {"512K-narrow", 2048, 64, 1},
                                   {"256M", 16384, 4096, 1},
                                   {"256M-wide", 4096, 16384, 1}};

class arena {
 public:
  /// Room for n elements. Numbers are normally distributed, with a factor of 0.5 to 1.5 a 256 of them; a million
  /// of them, repeated.
  explicit arena(index_t n)
      : floats_(5 * n + slack),
        bf16_(2 * n + slack),
        f16_(2 * n + slack),
        numbers_(4 * n + slack),
        codes_(4 * n + slack),
        scales_(4 * n + slack),
        zeros_(n + slack),
        inverses_(4 * n + slack),
        scratch_(5 * n + slack) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal(0.f, 1.f);
    float* x = floats_.as<float>();
    auto *b = bf16_.as<std::uint16_t>(), *h = f16_.as<std::uint16_t>();
    for (index_t i = 0; i < period && i < n; ++i) {
      x[i] = normal(random) * (0.5f + static_cast<float>(i / 256 % 7) / 6.f);
      b[i] = static_cast<std::uint16_t>(qtensor::encode<qtensor::bf16, qtensor::to_special>(x[i]));
      h[i] = static_cast<std::uint16_t>(qtensor::encode<qtensor::f16, qtensor::to_special>(x[i]));
    }
    for (index_t i = period; i < n + n / 4; i += period) {
      const auto count = static_cast<std::size_t>(std::min(period, n + n / 4 - i));
      std::memcpy(x + i, x, count * 4);
      if (i >= n) break;
      std::memcpy(b + i, b, count * 2);
      std::memcpy(h + i, h, count * 2);
    }
  }

  task place(const operation& op, const extent& size, int threads, int index) const {
    task t;
    t.op = &op;
    t.rows = size.rows;
    t.cols = size.cols;
    t.threads = threads;
    const index_t at = t.size() * index;
    t.floats = floats_.as<float>() + at;
    t.halves = (op.number == "f16" ? f16_ : bf16_).as<std::uint16_t>() + at;
    t.numbers = numbers_.as<std::uint8_t>() + 4 * at;
    t.codes = codes_.as<std::uint8_t>() + 4 * at;
    t.scales = scales_.as<std::uint8_t>() + 4 * at;
    t.zero_points = zeros_.as<std::uint8_t>() + at;
    t.tensor_scale = &tensor_scale_;
    t.inverses = inverses_.as<float>() + at;
    t.scratch = scratch_.as<std::uint8_t>() + 5 * at;
    t.other_codes = t.scratch;
    t.other_scales = t.scratch + 2 * t.size();
    if (op.prepare) op.prepare(t);
    if (op.scale == "f32" && op.how != scales::dynamic) {
      for (index_t i = 0; i < op.scale_count(t.rows, t.cols); ++i) t.inverses[i] = 1.f / t.f32_scales()[i];
    }
    return t;
  }

 private:
  static constexpr index_t period = index_t{1} << 20, slack = 1 << 16;
  pages floats_, bf16_, f16_, numbers_, codes_, scales_, zeros_, inverses_, scratch_;
  mutable float tensor_scale_ = 1.f;
};

}  // namespace bench
