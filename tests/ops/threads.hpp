// Threads for tests of executors: one for every part.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/core/executor.hpp>
#include <thread>
#include <vector>

namespace pool {

/// Runs part(0) here and every other part on a thread of its own.
struct thread_each {
  template <class Part>
  void operator()(qtensor::index_t count, const Part& part) const {
    std::vector<std::thread> threads;
    for (qtensor::index_t i = 1; i < count; ++i) threads.emplace_back([&part, i] { part(i); });
    part(0);
    for (auto& t : threads) t.join();
  }
};
/// The executor that splits work over n of them.
inline auto threads(qtensor::index_t n) { return qtensor::parallel_for(n, thread_each{}); }

}  // namespace pool
