// Mirrors include/qtensor/core/executor.hpp.
#include <doctest/doctest.h>

#include <atomic>
#include <mutex>
#include <qtensor/core/error.hpp>
#include <qtensor/core/executor.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace qt = qtensor;
using qt::index_t;

namespace {

/// A thread for every part.
struct one_thread_a_part {
  template <class Part>
  void operator()(index_t count, const Part& part) const {
    std::vector<std::thread> threads;
    for (index_t i = 0; i < count; ++i) threads.emplace_back([&part, i] { part(i); });
    for (auto& t : threads) t.join();
  }
};

/// The ranges of for_ranges, in ascending order.
template <class E>
std::set<std::pair<index_t, index_t>> ranges(const E& by, index_t count, index_t step, index_t weight) {
  std::set<std::pair<index_t, index_t>> seen;
  std::mutex lock;
  std::set<index_t> numbers;
  const index_t parts = qt::detail::part_count(by, count, step, weight);
  qt::detail::for_ranges(by, parts, count, step, [&](index_t part, index_t first, index_t n) {
    const std::lock_guard guard(lock);
    CHECK(seen.emplace(first, n).second);
    CHECK(part >= 0);
    CHECK(part < parts);
    CHECK(numbers.insert(part).second);
  });
  return seen;
}

constexpr int sum_of_serial() {
  int sum = 0;
  qt::serial()(5, [&](index_t i) { sum = 10 * sum + static_cast<int>(i); });
  return sum;
}

}  // namespace

TEST_CASE("serial runs every part in order, at compile time too") {
  static_assert(qt::executor<qt::serial>);
  static_assert(sum_of_serial() == 1234);
  CHECK(qt::serial::concurrency() == 1);
}

TEST_CASE("parallel_for hands count and part to the caller's threads") {
  const qt::parallel_for by(3, one_thread_a_part{});
  static_assert(qt::executor<decltype(by)>);
  CHECK(by.concurrency() == 3);
  CHECK(qt::parallel_for(0, one_thread_a_part{}).concurrency() == 1);
  std::vector<std::atomic<int>> calls(7);
  by(7, [&](index_t i) { ++calls[static_cast<std::size_t>(i)]; });
  for (const auto& c : calls) CHECK(c == 1);
}

TEST_CASE("on keeps the executor") {
  const auto option = qt::on(qt::parallel_for(2, one_thread_a_part{}));
  static_assert(qt::detail::is_execution<std::remove_const_t<decltype(option)>>);
  static_assert(!qt::detail::is_execution<qt::serial>);
  CHECK(option.by.concurrency() == 2);
}

TEST_CASE("on(e) is an executor, too") {
  static_assert(qt::executor<qt::execution<qt::serial>>);
  index_t sum = 0;
  const auto option = qt::on(qt::parallel_for(3, [](index_t count, const auto& part) {
    for (index_t i = count; i-- > 0;) part(i);
  }));
  CHECK(option.concurrency() == 3);
  option(5, [&](index_t i) { sum = 10 * sum + i; });
  CHECK(sum == 43210);
}

TEST_CASE("for_ranges covers every item once, in as many ranges as threads, none of them empty") {
  constexpr index_t heavy = qt::detail::least_part;
  for (index_t threads : {1, 2, 3, 5})
    for (index_t count : {1, 2, 3, 4, 5, 7, 16, 31, 100})
      for (index_t step : {1, 2, 3, 32}) {
        INFO("threads=", threads, " count=", count, " step=", step);
        const auto seen = ranges(qt::parallel_for(threads, one_thread_a_part{}), count, step, heavy);
        const index_t steps = (count + step - 1) / step;
        CHECK(static_cast<index_t>(seen.size()) == (steps < threads ? steps : threads));
        index_t next = 0;
        for (const auto& [first, n] : seen) {
          CHECK(first == next);
          CHECK(first % step == 0);
          CHECK(n > 0);
          next = first + n;
        }
        CHECK(next == count);
      }
}

TEST_CASE("for_ranges does not cut what is too little for a thread") {
  const qt::parallel_for by(4, one_thread_a_part{});
  CHECK(ranges(by, 1000, 1, 1).size() == 1);
  CHECK(ranges(by, 2 * qt::detail::least_part, 1, 1).size() == 2);
  CHECK(ranges(by, 2 * qt::detail::least_part - 1, 1, 1).size() == 1);
  CHECK(ranges(by, 100 * qt::detail::least_part, 1, 1).size() == 4);
  CHECK(ranges(by, 100, 1, 0).size() == 1);
}

TEST_CASE("parts know how many run together, parts of parts too, and nobody afterwards") {
  const qt::parallel_for by(3, one_thread_a_part{});
  std::atomic<int> wrong{0};
  const auto expect = [&](index_t together) { wrong += qt::detail::parts_together != together; };
  qt::detail::for_ranges(by, 3, 3, 1, [&](index_t, index_t, index_t) {
    expect(3);
    qt::detail::for_ranges(by, 2, 2, 1, [&](index_t, index_t, index_t) { expect(6); });
    qt::detail::for_ranges(qt::serial{}, 2, 2, 1, [&](index_t, index_t, index_t) { expect(6); });
    qt::detail::for_ranges(by, 1, 2, 1, [&](index_t, index_t, index_t) { expect(3); });
    expect(3);
  });
  expect(1);
  CHECK(wrong == 0);
}

TEST_CASE("in_ranges gives every range its own call") {
  std::vector<std::atomic<int>> calls(100);
  std::atomic<int> ranges{0};
  qt::detail::in_ranges(qt::parallel_for(3, one_thread_a_part{}), 100, 7, qt::detail::least_part,
                        [&](index_t first, index_t n) {
                          ++ranges;
                          for (index_t i = first; i < first + n; ++i) ++calls[static_cast<std::size_t>(i)];
                        });
  CHECK(ranges == 3);
  for (const auto& c : calls) CHECK(c == 1);
}

#if defined(__cpp_exceptions)
TEST_CASE("what a part throws reaches the caller once all have returned, the first part's of several") {
  for (index_t threads : {1, 2, 3, 7}) {
    INFO("threads=", threads);
    std::atomic<int> done{0};
    const auto throwing = [&](index_t part, index_t, index_t) {
      ++done;
      if (part >= threads / 2) throw qt::error(std::to_string(part));
    };
    const std::string first = std::to_string(threads / 2);
    CHECK_THROWS_WITH_AS(
        qt::detail::for_ranges(qt::parallel_for(threads, one_thread_a_part{}), threads, threads, 1, throwing),
        first.c_str(), qt::error);
    CHECK(done == threads);
    CHECK(qt::detail::parts_together == 1);
  }
}
#endif

TEST_CASE("with_execution finds the executor and leaves the other arguments") {
  const auto use = [](const auto& by, int a, float b) { return std::tuple(by.concurrency(), a, b); };
  const auto two = qt::on(qt::parallel_for(2, one_thread_a_part{}));
  CHECK(qt::detail::with_execution(use, 5, 2.5f) == std::tuple(1, 5, 2.5f));
  CHECK(qt::detail::with_execution(use, 5, two, 2.5f) == std::tuple(2, 5, 2.5f));
  CHECK(qt::detail::with_execution(use, two, 5, 2.5f) == std::tuple(2, 5, 2.5f));
}

#if defined(_OPENMP)
TEST_CASE("openmp uses the threads it is given") {
  static_assert(qt::executor<qt::openmp>);
  CHECK(qt::openmp(3).concurrency() == 3);
  CHECK(qt::openmp().concurrency() == omp_get_max_threads());
  std::vector<std::atomic<int>> calls(100);
  std::set<int> threads;
  qt::openmp(2)(100, [&](index_t i) {
    ++calls[static_cast<std::size_t>(i)];
#pragma omp critical
    threads.insert(omp_get_thread_num());
  });
  for (const auto& c : calls) CHECK(c == 1);
  CHECK(threads.size() == 2);
}
#endif
