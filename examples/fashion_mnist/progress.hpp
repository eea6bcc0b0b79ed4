// How far the training is: a bar that redraws itself on a terminal, a line per epoch anywhere else.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <utility>

namespace fashion {

class progress {
 public:
  progress(std::string title, int epochs, std::ptrdiff_t steps)
      : title_(std::move(title)), epochs_(epochs), steps_(steps), terminal_(isatty(STDERR_FILENO) == 1) {}

  /// After `step` of the steps of `epoch`, both counted as in a loop except that step is already done.
  void update(int epoch, std::ptrdiff_t step, double loss) {
    if (terminal_ && (step == steps_ || seconds() - drawn_ > 0.1)) {
      drawn_ = seconds();
      const double share = (epoch + double(step) / double(steps_)) / epochs_;
      constexpr int width = 30;
      const int full = int(share * width);
      std::fprintf(stderr, "\r%s [%s%s] %3.0f %%, epoch %d of %d, loss %.3f, %.0f s left \x1b[K", title_.c_str(),
                   std::string(std::size_t(full), '#').c_str(), std::string(std::size_t(width - full), '.').c_str(),
                   100 * share, epoch + 1, epochs_, loss, seconds() * (1 - share) / share);
    } else if (!terminal_ && step == steps_) {
      std::fprintf(stderr, "%s: epoch %d of %d, loss %.3f, %.1f s\n", title_.c_str(), epoch + 1, epochs_, loss,
                   seconds());
    }
  }

  /// Replaces the bar by a last line.
  void finish(const char* how) const {
    std::fprintf(stderr, "%s%s: %s after %.1f s%s\n", terminal_ ? "\r" : "", title_.c_str(), how, seconds(),
                 terminal_ ? "\x1b[K" : "");
  }

 private:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

  std::string title_;
  int epochs_;
  std::ptrdiff_t steps_;
  bool terminal_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double drawn_ = 0;
};

}  // namespace fashion
