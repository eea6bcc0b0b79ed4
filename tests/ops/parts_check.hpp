// Operations on threads of their own give the bits of one thread: the check, and numbers for it.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>
#include <vector>

#include "threads.hpp"

namespace parts_check {

using qtensor::index_t;

/// A thread for every part; tells the most there were.
struct threads_of {
  index_t* parts;
  template <class Part>
  void operator()(index_t count, const Part& part) const {
    *parts = std::max(*parts, count);
    pool::thread_each{}(count, part);
  }
};

/// Elements that repeat after a while, no two neighbours alike.
template <class T>
std::vector<T> pattern(index_t n) {
  std::vector<T> x(static_cast<std::size_t>(n));
  std::uint32_t word = 12345;
  for (T& v : x) {
    word = word * 1664525u + 1013904223u;
    if constexpr (std::is_floating_point_v<T>)
      v = static_cast<T>(static_cast<int>(word >> 8) % 1000 - 400) * T(.37);
    else
      v = static_cast<T>(word >> (sizeof(T) == 2 ? 17 : 24));
  }
  return x;
}

/// run(on...) on threads is run() on one, as same(a, b) has it; at least so many of them get a part.
template <class Run, class Same = std::equal_to<>>
void check(const Run& run, const Same& same = {}, index_t least = 7) {
  const auto expected = run();
  for (index_t threads : {1, 2, 3, 7}) {
    INFO("threads=", threads);
    index_t parts = 1;
    const auto found = run(qtensor::on(qtensor::parallel_for(threads, threads_of{&parts})));
    CHECK(same(found, expected));
    CHECK(parts >= std::min(threads, least));
  }
}

}  // namespace parts_check
