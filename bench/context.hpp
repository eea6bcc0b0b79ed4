// What a run of benchmarks tells about itself: the processor, the compiler, the libraries beside us.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <benchmark/benchmark.h>

#include <fstream>
#include <string>

namespace bench {

/// Adds "cpu" (where Linux names it), "compiler" and, where there are some, "libraries" to the context of the output.
inline void add_context(const std::string& compiler, const std::string& libraries) {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);)
    if (line.rfind("model name", 0) == 0) {
      benchmark::AddCustomContext("cpu", line.substr(line.find(": ") + 2));
      break;
    }
  benchmark::AddCustomContext("compiler", compiler);
  if (!libraries.empty()) benchmark::AddCustomContext("libraries", libraries);
}

}  // namespace bench
