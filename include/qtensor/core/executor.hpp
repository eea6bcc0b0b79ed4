// Executors: who runs the independent parts of an operation on a whole tensor. Bits do not depend on them.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <concepts>
#include <exception>
#include <qtensor/core/support.hpp>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>
#if defined(_OPENMP)
#include <omp.h>
#endif

namespace qtensor {

namespace detail {

struct any_part {
  void operator()(index_t) const {}
};

}  // namespace detail

/// Runs parts of one operation:
///   concurrency()      parts worth having at a time, at least 1
///   e(count, part)     calls part(i) once for every i in [0, count), in any order, on any threads, and returns when
///                      all have returned
/// Parts of one call write to different memory and do not wait for each other. They do not throw: what an operation
/// throws in a part, its caller gets once all have returned (of several parts the first one's, as on one thread).
template <class E>
concept executor = std::copy_constructible<E> && requires(const E& e, index_t count, const detail::any_part& part) {
  { e.concurrency() } -> std::convertible_to<index_t>;
  e(count, part);
};

/// One part after the other on the calling thread: what every operation does that is not told otherwise.
struct serial {
  static constexpr index_t concurrency() { return 1; }
  template <class Part>
  constexpr void operator()(index_t count, const Part& part) const {
    for (index_t i = 0; i < count; ++i) part(i);
  }
};

/// The caller's own threads: `on(parallel_for(4, [&](index_t count, const auto& part) { pool.run(count, part); }))`.
/// The callable has the meaning of e(count, part) above; it is copied, what it refers to must outlive the call.
template <class Run>
class parallel_for {
 public:
  constexpr parallel_for(index_t threads, Run run) : threads_(threads < 1 ? 1 : threads), run_(std::move(run)) {
    static_assert(std::is_invocable_v<const Run&, index_t, const detail::any_part&>,
                  "qtensor: parallel_for(threads, run) calls run(count, part), and run calls part(i) for every i below "
                  "count: [&](index_t count, const auto& part) { ... }.");
  }
  constexpr index_t concurrency() const { return threads_; }
  template <class Part>
  constexpr void operator()(index_t count, const Part& part) const {
    run_(count, part);
  }

 private:
  index_t threads_;
  Run run_;
};

#if defined(_OPENMP)
/// OpenMP's threads, where the program is compiled with it; as many as OpenMP would use if not told how many. Inside a
/// parallel region of the caller it is serial unless nested parallelism is on, as OpenMP has it.
class openmp {
 public:
  openmp() = default;
  explicit openmp(int threads) : threads_(threads) {}
  index_t concurrency() const { return threads_ > 0 ? threads_ : omp_get_max_threads(); }
  template <class Part>
  void operator()(index_t count, const Part& part) const {
    const int threads = static_cast<int>(concurrency());
#pragma omp parallel for schedule(static) num_threads(threads)
    for (index_t i = 0; i < count; ++i) part(i);
  }

 private:
  int threads_ = 0;
};
#endif

/// The option that names an executor: `quantize<mxfp4>(A, on(openmp()))`, `dequantize_into(W, out, {n, 1}, on(pool))`.
/// It is one itself, for what takes an executor at a place of its own.
template <executor E>
struct execution {
  E by;

  constexpr index_t concurrency() const { return by.concurrency(); }
  template <class Part>
  constexpr void operator()(index_t count, const Part& part) const {
    by(count, part);
  }
};
template <class E>
constexpr auto on(E by) {
  static_assert(
      executor<E>,
      "qtensor: on(e) takes an executor: serial(), openmp() where compiled with OpenMP, or parallel_for(threads, "
      "run) around your own threads.");
  if constexpr (executor<E>) return execution<E>{std::move(by)};
}

namespace detail {

template <class T>
inline constexpr bool is_execution = false;
template <class E>
inline constexpr bool is_execution<execution<E>> = true;

enum class arguments { executors, others };

/// The argument in a tuple if it is of the kind, else an empty one.
template <arguments Kind, class T>
auto only(const T& argument) {
  if constexpr (is_execution<T> == (Kind == arguments::executors))
    return std::tie(argument);
  else
    return std::tuple<>();
}

/// The executor among arguments, one after the other where there is none.
template <class... T>
auto execution_among(const T&... argument) {
  static_assert((0 + ... + (is_execution<T> ? 1 : 0)) <= 1,
                "qtensor: an operation runs on one executor; keep one on(...).");
  return std::get<0>(std::tuple_cat(only<arguments::executors>(argument)..., std::make_tuple(execution<serial>{})));
}

/// Whether an argument is an executor, for operations that take nothing else behind their own arguments.
template <class T>
concept execution_option = is_execution<T>;

/// Calls use(executor, the other arguments...) for arguments among which on(executor) may stand anywhere.
template <class Use, class... T>
decltype(auto) with_execution(const Use& use, const T&... argument) {
  const auto on = execution_among(argument...);
  return std::apply([&](const auto&... other) -> decltype(auto) { return use(on.by, other...); },
                    std::tuple_cat(only<arguments::others>(argument)...));
}

/// Elements below which a part is not worth a thread: some microseconds of work.
inline constexpr index_t least_part = 16384;

/// How many ranges of [0, count) are worth a thread each, at least 1: items weigh `weight` elements, and ranges start
/// at multiples of `step`.
template <executor E>
index_t part_count(const E& by, index_t count, index_t step, index_t weight) {
  const index_t most = by.concurrency(), steps = divide_up(count, step);
  const index_t worth = weight > 0 ? count / divide_up(least_part, weight) : 1;
  index_t parts = most < steps ? most : steps;
  parts = parts < worth ? parts : worth;
  return parts > 1 ? parts : 1;
}

/// Parts of one operation that run at the same time as the one on this thread, with it: they share caches.
inline thread_local index_t parts_together = 1;

/// Says so to this thread while it lives.
class together {
 public:
  explicit together(index_t parts) : before_(std::exchange(parts_together, parts)) {}
  together(const together&) = delete;
  together& operator=(const together&) = delete;
  ~together() { parts_together = before_; }

 private:
  index_t before_;
};

/// Runs parts, at least two; throws what the first of those that threw did, once all have returned.
template <executor E, class Part>
void run_parts(const E& by, index_t parts, const Part& part) {
#if defined(__cpp_exceptions)
  std::vector<std::exception_ptr> thrown(static_cast<std::size_t>(parts));
  by(parts, [&](index_t i) {
    try {
      part(i);
    } catch (...) {
      thrown[static_cast<std::size_t>(i)] = std::current_exception();
    }
  });
  for (const std::exception_ptr& one : thrown)
    if (one) std::rethrow_exception(one);
#else
  by(parts, part);
#endif
}

/// Cuts [0, count) into that many ranges, none empty, and calls body(part, first, n) for each of them.
template <executor E, class Body>
void for_ranges(const E& by, index_t parts, index_t count, index_t step, const Body& body) {
  const index_t steps = divide_up(count, step), at_a_time = parts_together * parts;
  const auto run = [&](index_t part) {
    const index_t first = steps * part / parts * step, end = steps * (part + 1) / parts * step;
    const together others(at_a_time);
    body(part, first, (end < count ? end : count) - first);
  };
  if (parts > 1)
    run_parts(by, parts, run);
  else
    run(index_t{0});
}

/// The axis that makes the most parts of those considered, the first of several; one part where none makes two.
struct longest_cut {
  int axis = 0;
  index_t count = 0, step = 1, parts = 1;

  /// An axis of n items that weigh `weight` elements each; ranges begin at multiples of `multiple`.
  template <executor E>
  void consider(const E& by, int which, index_t n, index_t multiple, index_t weight) {
    const index_t some = n > 0 ? part_count(by, n, multiple, weight) : 1;
    if (some > parts) *this = {which, n, multiple, some};
  }
  /// Calls body(part, first, n) for the ranges along it.
  template <executor E, class Body>
  void for_each(const E& by, const Body& body) const {
    for_ranges(by, parts, count, step, body);
  }
};

/// Cuts [0, count) into as many ranges as are worth a thread (part_count), and calls body(first, n) for each of them.
template <executor E, class Body>
void in_ranges(const E& by, index_t count, index_t step, index_t weight, const Body& body) {
  for_ranges(by, part_count(by, count, step, weight), count, step,
             [&](index_t, index_t first, index_t n) { body(first, n); });
}

}  // namespace detail

}  // namespace qtensor
