// Threads that wait for work: the executor of the benchmarks, and how rows are split for who has none of his own.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace bench {

/// The calling thread and others, which spin for a while before they sleep, as a thread pool between two operations.
class team {
 public:
  static team& instance() {
    static team one;
    return one;
  }
  /// Calls work(t) for t < threads, t = 0 on the calling thread, and returns when all have.
  void run(int threads, const std::function<void(int)>& work) {
    while (static_cast<int>(members_.size()) < threads - 1) {
      members_.push_back(std::make_unique<member>());
      member& m = *members_.back();
      m.thread = std::thread([this, &m, index = static_cast<int>(members_.size())] { serve(m, index); });
    }
    work_ = &work;
    for (int t = 1; t < threads; ++t) {
      member& m = *members_[static_cast<std::size_t>(t - 1)];
      m.asked.fetch_add(1, std::memory_order_release);
      m.asked.notify_one();
    }
    work(0);
    for (int t = 1; t < threads; ++t) {
      member& m = *members_[static_cast<std::size_t>(t - 1)];
      const int asked = m.asked.load(std::memory_order_relaxed);
      for (int spin = 0; m.done.load(std::memory_order_acquire) != asked; ++spin)
        spin < 20000 ? pause() : std::this_thread::yield();  // the others may have no core of their own
    }
  }
  ~team() {
    leaving_ = true;
    for (auto& m : members_) {
      m->asked.fetch_add(1, std::memory_order_release);
      m->asked.notify_one();
      m->thread.join();
    }
  }

 private:
  struct alignas(64) member {
    std::thread thread;
    std::atomic<int> asked{0};
    alignas(64) std::atomic<int> done{0};
  };
  static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  void serve(member& m, int index) {
    for (int seen = 0;;) {
      for (int spin = 0; spin < 4000 && m.asked.load(std::memory_order_acquire) == seen; ++spin) pause();
      m.asked.wait(seen, std::memory_order_acquire);
      seen = m.asked.load(std::memory_order_acquire);
      if (leaving_) return;
      (*work_)(index);
      m.done.store(seen, std::memory_order_release);
    }
  }

  std::vector<std::unique_ptr<member>> members_;
  const std::function<void(int)>* work_ = nullptr;
  std::atomic<bool> leaving_{false};
};

}  // namespace bench
