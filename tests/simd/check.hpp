// What the tests of the vector floor share: memory with forbidden pages around it, hard inputs, exact comparison.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <qtensor/core/support.hpp>
#include <qtensor/simd/arch.hpp>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "../main/in_full.hpp"

namespace check {

using qtensor::index_t;

/// n elements that end exactly at a page no one may touch (or, `at_start`, begin exactly after one): one byte too far
/// crashes the test. Elements are written by the caller.
template <class T>
class fenced {
 public:
  explicit fenced(index_t n, bool at_start = false) : size_(n) {
    const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE)),
                      bytes = static_cast<std::size_t>(n) * sizeof(T);
    const std::size_t inside = (bytes + page) / page * page;
    mapped_ = inside + 2 * page;
    base_ = static_cast<char*>(mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base_, page, PROT_NONE);
    mprotect(base_ + page + inside, page, PROT_NONE);
    data_ = reinterpret_cast<T*>(at_start ? base_ + page : base_ + page + inside - bytes);
  }
  fenced(const std::vector<T>& v, bool at_start = false) : fenced(static_cast<index_t>(v.size()), at_start) {
    if (!v.empty()) std::memcpy(data_, v.data(), v.size() * sizeof(T));
  }
  fenced(const fenced&) = delete;
  fenced& operator=(const fenced&) = delete;
  ~fenced() { munmap(base_, mapped_); }

  T* data() { return data_; }
  index_t size() const { return size_; }
  T& operator[](index_t i) { return data_[i]; }

 private:
  index_t size_;
  std::size_t mapped_ = 0;
  char* base_ = nullptr;
  T* data_ = nullptr;
};

/// Random numbers, the same in every run.
inline std::mt19937& random_bits() {
  static std::mt19937 engine(20240229);
  return engine;
}
inline std::uint32_t random_below(std::uint32_t n) { return random_bits()() % n; }

/// Of long lists of inputs, programs without optimization take one in so many.
#if defined(__OPTIMIZE__)
inline constexpr std::size_t one_in = 1;
#else
inline constexpr std::size_t one_in = 8;
#endif

/// Floats of every kind: any bits, few significant bits (ties), specials, subnormals, near 1, small integers.
inline float hard_float() {
  static const std::uint32_t specials[] = {0,          0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000,
                                           0x7f800001, 0xff812345, 0x7f7fffff, 0xff7fffff, 1,          0x80000001,
                                           0x007fffff, 0x00800000, 0x4effffff, 0x4f000000, 0xcf000000, 0xcf000001};
  const std::uint32_t bits = random_bits()();
  switch (random_below(8)) {
    case 0:
      return qtensor::float_of(specials[random_below(std::size(specials))]);
    case 1:
      return qtensor::float_of(bits & 0x807fffffu);
    case 2:
      return qtensor::float_of((bits & 0xffffffffu) & ~((1u << random_below(23)) - 1));
    case 3:
      return qtensor::float_of((bits & 0x83ffffffu) + (0x70u << 23) - (0x3u << 23));
    case 4:
      return static_cast<float>(static_cast<int>(bits % 4096) - 2048) * 0.5f;
    case 5:
      return static_cast<float>(static_cast<int>(bits)) * 0x1p-8f;
    default:
      return qtensor::float_of(bits);
  }
}
inline float hard_finite() {
  for (;;)
    if (const float x = hard_float(); qtensor::is_finite(x)) return x;
}

template <class T>
std::vector<T> random_codes(index_t n) {
  std::vector<T> v(static_cast<std::size_t>(n));
  for (T& c : v) c = static_cast<T>(random_bits()());
  return v;
}

/// Equal bits, or both NaN (whose payload most operations do not promise).
inline bool same_or_nan(float a, float b) {
  return qtensor::bits_of(a) == qtensor::bits_of(b) || (qtensor::is_nan(a) && qtensor::is_nan(b));
}

/// Calls test(Arch{}) for the architectures of a list.
template <class Archs, class F>
void on_archs(F test) {
  Archs::for_each([&](auto arch) {
    const std::string name(qtensor::simd::arch_name<decltype(arch)>);
    CAPTURE(name);
    test(arch);
  });
}
/// The best of this build, and plain code.
using first_and_last = qtensor::simd::arch_list<qtensor::simd::best_arch, qtensor::simd::scalar_arch>;
/// All of this build; or these two, where builds for lower levels ask about the others (main/in_full.hpp).
using archs = std::conditional_t<full, qtensor::simd::archs, first_and_last>;
/// Calls test(Arch{}) for every one.
template <class F>
void on_every_arch(F test) {
  on_archs<archs>(test);
}

}  // namespace check
