// Speed of conversions: ours, libraries', Eigen's, plain loops, memcpy and the roof, on one memory, interleaved.
// SPDX-License-Identifier: BSD-3-Clause
//
//     build-bench/bench/speed --benchmark_filter='f32 -> mxfp4/' --benchmark_out=speed.json
//
// A benchmark is named operation/size/threads/candidate, and the filter is a regular expression that occurs in the name
// (after a `-`: does not). The size is that of the numbers as f32. All candidates of an operation at a size run in one
// group, in random order, each many times; the best time of each counts. Counters:
//   elements/s, GB/s  the latter of the bytes that must cross: a rule over a tensor or a column reads its numbers twice
//   of_roof           time of the roof / time: the roof moves the same bytes with no arithmetic, by non-temporal stores
//                     where those are faster
//   median            the median time over the best one: how noisy the machine was
//   differs           share of the codes or numbers (of the first 128 Ki) that are not ours, where layouts are the same
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <regex>
#include <sstream>
#include <thread>

#include "context.hpp"
#include "memory.hpp"

namespace bench {

namespace {

struct named_column {
  column add;
  std::string (*version)();
};
const named_column columns[] = {
    {add_roof, nullptr},
    {add_eigen, nullptr},
    {plain::add_loops, nullptr},
    {relaxed::add_loops, nullptr},
#ifdef BENCH_ONEDNN
    {add_onednn, onednn_version},
#endif
#ifdef BENCH_GGML
    {add_ggml, ggml_version},
#endif
#ifdef BENCH_ONNXRUNTIME
    {add_onnxruntime, onnxruntime_version},
#endif
#ifdef BENCH_TORCH
    {add_torch, torch_version},
#endif
#ifdef BENCH_GEMMLOWP
    {add_gemmlowp, nullptr},
#endif
};

const char* kind_name(kind k) {
  switch (k) {
    case kind::ours:
      return "ours";
    case kind::library:
      return "library";
    case kind::eigen:
      return "eigen";
    case kind::loop:
      return "loop";
    case kind::copy:
      return "copy";
    case kind::expression:
      return "expression";
    default:
      return "roof";
  }
}

/// A candidate of a group, once for every place.
struct entry {
  bench::kind kind;
  std::string name, note;
  std::vector<std::function<void()>> runs;
  bool same_bytes = true;
  double differs = -1;
};

/// Collects the repetitions of a group; writes the best of each candidate, with its fraction of the roof.
class best_of_reporter : public benchmark::JSONReporter {
 public:
  explicit best_of_reporter(const std::string& path) {
    if (!path.empty()) file_.open(path);
  }
  bool ReportContext(const Context& context) override {
    if (started_) return true;
    started_ = true;
    if (!file_.is_open()) return true;
    std::ostringstream text;  // without the name of the machine
    SetOutputStream(&text);
    JSONReporter::ReportContext(context);
    file_ << std::regex_replace(text.str(), std::regex("[^\n]*\"host_name\"[^\n]*\n"), "");
    SetOutputStream(&file_);
    return true;
  }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs)
      if (run.run_type == Run::RT_Iteration) group_.push_back(run);
  }
  void Finalize() override {}
  void end_group(const std::vector<entry>& entries, const std::string& prefix) {
    const auto seconds = [](const Run& r) { return r.real_accumulated_time / static_cast<double>(r.iterations); };
    std::vector<Run> best;
    std::vector<std::string> names;
    double roof = 0;
    for (const entry& e : entries) {
      std::vector<Run> mine;
      for (const Run& run : group_)
        if (run.benchmark_name().rfind(prefix + e.name + "/", 0) == 0) mine.push_back(run);
      if (mine.empty()) continue;
      std::sort(mine.begin(), mine.end(), [&](const Run& a, const Run& b) { return seconds(a) < seconds(b); });
      Run one = mine.front();
      if (e.kind == kind::roof && (roof == 0 || seconds(one) < roof)) roof = seconds(one);
      one.counters["median"] = seconds(mine[mine.size() / 2]) / seconds(one);
      if (e.differs >= 0) one.counters["differs"] = e.differs;
      one.report_label = std::string(kind_name(e.kind)) + (e.note.empty() ? "" : ": " + e.note);
      best.push_back(one);
      names.push_back(e.name);
    }
    for (Run& run : best)
      if (roof > 0) run.counters["of_roof"] = roof / seconds(run);
    group_.clear();
    if (best.empty()) return;
    if (file_.is_open()) {
      JSONReporter::ReportRuns(best);
      file_.flush();
    }
    std::printf("%s\n", prefix.c_str());
    for (Run& run : best) {
      auto& counters = run.counters;
      std::printf("  %-18s %12.3f us %8.3f Gelem/s %8.2f GB/s  %5.2f of roof",
                  names[static_cast<std::size_t>(&run - best.data())].c_str(), seconds(run) * 1e6,
                  counters["elements/s"].value * 1e-9, counters["GB/s"].value, counters["of_roof"].value);
      if (counters.count("differs") != 0 && counters["differs"].value > 0)
        std::printf("  %.2g differ", counters["differs"].value);
      std::printf("  %s\n", run.report_label.c_str());
    }
    std::fflush(stdout);
  }
  void close() {
    if (started_ && file_.is_open()) JSONReporter::Finalize();
  }

 private:
  std::ofstream file_;
  bool started_ = false;
  std::vector<Run> group_;
};

/// What a candidate wrote, up to 128 Ki bytes of codes or numbers: compared, not kept.
double differing(const task& t, const entry& ours, const entry& other) {
  if (ours.runs.empty() || t.op->what == verb::dual_axis) return -1;
  const bool numbers = t.op->writes_numbers();
  const double each = t.op->what == verb::unpack ? 1. : numbers ? t.op->number_bytes : t.op->code_bytes;
  const index_t count = std::min<index_t>(t.size(), 1 << 17);
  const index_t unit = numbers && t.op->what != verb::unpack ? static_cast<index_t>(each) : 1;
  const index_t bytes = static_cast<index_t>(static_cast<double>(count) * (numbers ? each : std::floor(each * 8) / 8));
  auto* result = numbers ? static_cast<std::uint8_t*>(t.numbers) : t.codes;
  ours.runs[0]();
  std::vector<std::uint8_t> kept(result, result + bytes);
  std::memset(result, 0xa5, static_cast<std::size_t>(bytes));
  other.runs[0]();
  index_t wrong = 0;
  for (index_t i = 0; i < bytes; i += unit)
    wrong += std::memcmp(kept.data() + i, result + i, static_cast<std::size_t>(unit)) != 0;
  return static_cast<double>(wrong) / static_cast<double>(bytes / unit);
}

double seconds_of(const std::function<void()>& run) {
  const auto start = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void measure(benchmark::State& state, const entry& e, const operation& op, index_t elements) {
  constexpr std::size_t visit = 16;  // calls at one place: in the first-level cache all but once
  std::size_t call = 0;
  for (auto _ : state) {
    e.runs[call++ / visit % e.runs.size()]();
    benchmark::ClobberMemory();
  }
  using counter = benchmark::Counter;
  state.counters["elements/s"] = counter(static_cast<double>(elements), counter::kIsIterationInvariantRate);
  state.counters["GB/s"] =
      counter(static_cast<double>(elements) * op.bytes() * 1e-9, counter::kIsIterationInvariantRate);
}

/// All candidates of an operation at a size.
std::vector<entry> entries_of(const operation& op, const std::vector<task>& places) {
  std::vector<entry> all;
  const auto merge = [&](const candidates& found) {
    std::map<std::string, int> seen;
    for (const candidate& c : found) {
      const int again = seen[c.name]++;
      const std::string name = again == 0 ? c.name : c.name + " " + std::to_string(again + 1);
      const auto known = std::find_if(all.begin(), all.end(), [&](const entry& e) { return e.name == name; });
      if (known == all.end())
        all.push_back({c.kind, name, c.note, {c.run}, c.same_bytes});
      else
        known->runs.push_back(c.run);
    }
  };
  for (const task& t : places) {
    candidates found;
    if (op.ours)
      if (auto run = op.ours(t)) found.push_back({kind::ours, "qtensor", "", run});
    if (op.more) op.more(t, found);
    for (const named_column& c : columns)
      if (!op.is_expression || c.add == add_roof) c.add(t, found);
    merge(found);
  }
  return all;
}

struct options {
  std::string out, filter = ".*";
  bool inverted = false;
};

/// One thread, two, and all that the machine has where these are more.
std::vector<int> thread_counts() {
  std::vector<int> counts{1, 2};
  if (const int all = static_cast<int>(std::thread::hardware_concurrency()); all > 2) counts.push_back(all);
  return counts;
}

void run_all(const options& wanted) {
  operations all;
  add_integers(all);
  add_integers_dynamic(all);
  add_integers_back(all);
  add_minifloats(all);
  add_minifloats_halves(all);
  add_minifloats_back(all);
  add_microscaling(all);
  add_microscaling_halves(all);
  add_microscaling_back(all);
  add_groups(all);
  add_ggml_blocks(all);
  add_both_axes(all);
  add_expressions(all);
  add_packing(all);
  add_wide_codes(all);

  const std::regex filter(wanted.filter);
  const auto matches = [&](const std::string& name) { return std::regex_search(name, filter) != wanted.inverted; };
  best_of_reporter reporter(wanted.out);
  for (const extent& size : sizes) {
    // The arena of a size, made when its first group runs.
    std::unique_ptr<arena> memory;
    for (const operation& op : all)
      for (const int threads : thread_counts()) {
        const bool is_small = size.places > 1;
        if (threads > 1 && is_small) continue;  // shorter than waking a thread
        const std::string prefix = op.name + "/" + size.name + "/" + std::to_string(threads) + "/";
        // The filter may name candidates; without their names, whether a group has any is not known yet.
        if (!matches(prefix) && !matches(prefix + "qtensor")) continue;
        if (!memory) memory = std::make_unique<arena>(size.rows * size.cols * size.places);
        std::vector<task> places;
        for (int i = 0; i < size.places; ++i) places.push_back(memory->place(op, size, threads, i));
        std::vector<entry> entries = entries_of(op, places);
        const auto ours =
            std::find_if(entries.begin(), entries.end(), [](const entry& e) { return e.kind == kind::ours; });
        for (entry& e : entries) {
          if (!matches(prefix + e.name)) continue;
          const bool converts = e.kind == kind::library || e.kind == kind::eigen || e.kind == kind::loop;
          if (ours != entries.end() && converts && e.same_bytes) e.differs = differing(places[0], *ours, e);
          double once = seconds_of(e.runs[0]);
          if (once < 1) once = seconds_of(e.runs[0]);  // the first call may have made something
          auto* b = benchmark::RegisterBenchmark((prefix + e.name).c_str(), [&](benchmark::State& state) {
            measure(state, e, op, size.rows * size.cols);
          });
          b->UseRealTime()->Unit(benchmark::kMicrosecond);
          if (once > 0.05)
            b->Iterations(1)->Repetitions(once > 1 ? 1 : once > 0.2 ? 3 : 7);
          else
            b->MinTime(size.rows > 1000 ? 0.01 : 0.004);
        }
        benchmark::RunSpecifiedBenchmarks(&reporter, ".");
        reporter.end_group(entries, prefix);
        benchmark::ClearRegisteredBenchmarks();
      }
  }
  reporter.close();
}

}  // namespace

}  // namespace bench

int main(int argc, char** argv) {
  bench::options wanted;
  std::string repetitions = "--benchmark_repetitions=15", interleaving = "--benchmark_enable_random_interleaving=true";
  std::vector<char*> rest{argv[0], repetitions.data(), interleaving.data()};
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto value = word.substr(word.find('=') + 1);
    if (word.rfind("--benchmark_out=", 0) == 0)
      wanted.out = value;
    else if (word.rfind("--benchmark_filter=", 0) == 0)
      wanted.inverted = value.rfind("-", 0) == 0, wanted.filter = wanted.inverted ? value.substr(1) : value;
    else
      rest.push_back(argv[i]);
  }
  int count = static_cast<int>(rest.size());
  benchmark::Initialize(&count, rest.data());
  if (benchmark::ReportUnrecognizedArguments(count, rest.data())) return 1;
  std::string libraries;
  for (const auto& c : bench::columns)
    if (c.version != nullptr) libraries += (libraries.empty() ? "" : ", ") + c.version();
  bench::add_context(BENCH_COMPILER, libraries);
  bench::run_all(wanted);
}
