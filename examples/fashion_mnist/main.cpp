// Trains two small networks on Fashion-MNIST, then stores their weights under every scheme and tells what that costs.
// SPDX-License-Identifier: BSD-3-Clause
#include "dataset.hpp"
#include "evaluation.hpp"
#include "model.hpp"
#include "plot.hpp"
#include "schemes.hpp"
#include "training.hpp"
#include "weights_file.hpp"

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

namespace {

using namespace fashion;

constexpr const char* usage =
    "usage: fashion_mnist [options]\n"
    "  --data FOLDER            the .gz files of Fashion-MNIST (/usr/share/datasets/fashion-mnist)\n"
    "  --weights PREFIX         trained weights are kept in PREFIX-mlp.weights and PREFIX-cnn.weights (fashion_mnist)\n"
    "  --plot FILE              where the SVG goes (fashion_mnist.svg)\n"
    "  --max-train-seconds N    training stops after N seconds, whatever it has reached (180)\n"
    "  --quick                  for tests: few images, few schemes, weights kept in PREFIX-quick-...\n";

struct options {
  std::filesystem::path data = "/usr/share/datasets/fashion-mnist", weights = "fashion_mnist",
                        plot = "fashion_mnist.svg";
  double max_train_seconds = 180;
  bool quick = false;
};

options parse(int argc, char** argv) {
  options result;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const auto value = [&]() -> std::string {
      if (i + 1 == argc) throw std::invalid_argument(name + " needs a value");
      return argv[++i];
    };
    if (name == "--data") {
      result.data = value();
    } else if (name == "--weights") {
      result.weights = value();
    } else if (name == "--plot") {
      result.plot = value();
    } else if (name == "--quick") {
      result.quick = true;
    } else if (name == "--max-train-seconds") {
      const std::string seconds = value();
      char* end;
      result.max_train_seconds = std::strtod(seconds.c_str(), &end);
      if (end == seconds.c_str() || *end || !(result.max_train_seconds > 0))
        throw std::invalid_argument(name + " needs a positive number, not " + seconds);
    } else {
      throw std::invalid_argument("unknown option " + name);
    }
  }
  return result;
}

/// The network of this recipe: from its file if there is one, else trained now and saved.
template <class Net>
trained<Net> network(const options& given, const recipe& how, double max_seconds) {
  const std::filesystem::path file = given.weights.string() + (given.quick ? "-quick-" : "-") + Net::name + ".weights";
  if (const std::optional<Net> net = load_weights<Net>(file, how)) {
    std::printf("%s: weights from %s\n", Net::name, file.string().c_str());
    return {*net, true};
  }
  trained<Net> result = train<Net>(load(given.data, "train"), how, max_seconds);
  if (result.complete)
    save_weights(file, result.net, how);
  else
    std::printf("%s: training was cut short, so its weights are not kept\n", Net::name);
  return result;
}

/// "int4 x group<32> / f32" for each of the row's schemes, once if all layers share it.
template <class First, class Second, class Third>
std::string description(const row<First, Second, Third>& how) {
  if constexpr (std::is_same_v<First, float32>) {
    return "not quantized";
  } else {
    std::string result(qt::name<First>);
    if (how.kind == family::mixed) result += ", " + std::string(qt::name<Second>) + ", " + std::string(qt::name<Third>);
    return result;
  }
}

/// Every row for one network, printed as it comes.
template <class Net>
void print_rows(const Net& net, const dataset& test, bool quick, std::vector<result>& results) {
  const std::size_t first = results.size();  // of this network: its float32 row
  const auto print = [&](const auto& how) {
    if (quick && !how.quick) return;
    results.push_back(evaluate(how, net, test));
    const result& r = results.back();
    std::printf("%-30s | %6.3f | %8.2f | %6.2f | %7.2f | %8.0f\n", (r.network + " " + r.scheme).c_str(), r.bits,
                r.accuracy, results[first].accuracy - r.accuracy, r.sqnr, r.rate);
    std::fflush(stdout);
  };
  std::apply([&](const auto&... how) { (print(how), ...); }, schemes);
}

int run(const options& given) {
  const recipe mlp_recipe = given.quick ? recipe{3, 6000, 50, 1e-3f, 1} : recipe{10, 60000, 100, 1.5e-3f, 1};
  const recipe cnn_recipe = given.quick ? recipe{2, 3000, 50, 3e-3f, 1} : recipe{6, 60000, 100, 3e-3f, 1};
  dataset test = load(given.data, "t10k");
  if (given.quick) test.truncate(500);
  const auto [mlp_net, mlp_complete] = network<float_mlp>(given, mlp_recipe, given.max_train_seconds / 4);
  const auto [cnn_net, cnn_complete] = network<float_cnn>(given, cnn_recipe, given.max_train_seconds * 3 / 4);

  std::vector<result> results;
  std::printf("%-30s | %6s | %8s | %6s | %7s | %8s\n", "scheme", "bits", "accuracy", "drop", "sqnr dB", "images/s");
  std::printf("== schemes\n");
  print_rows(mlp_net, test, given.quick, results);
  print_rows(cnn_net, test, given.quick, results);
  std::printf("== end\n");
  std::printf("One standard error of the float accuracies, from %td test images:", test.size());
  for (const result& r : results)
    if (r.kind == family::floats) std::printf(" %s %.2f", r.network.c_str(), r.standard_error);
  std::printf(". Drops of that size may be chance.\n");
  const auto explain = [](const auto& how) { std::printf("%-30s %s\n", how.label, description(how).c_str()); };
  std::apply([&](const auto&... how) { (explain(how), ...); }, schemes);

  write_plot(given.plot, results);
  std::printf("plot: %s\n", given.plot.string().c_str());

  if (!given.quick && mlp_complete && cnn_complete)
    for (const result& r : results)
      if (r.kind == family::floats && r.accuracy <= 88) {
        std::fprintf(stderr, "fashion_mnist: %s reaches only %.2f %% in float\n", r.network.c_str(), r.accuracy);
        return EXIT_FAILURE;
      }
  return EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
#ifdef __GLIBC__
  // Every batch allocates and frees the same few megabytes: keep them instead of asking the kernel for new pages.
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
  try {
    return run(parse(argc, argv));
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "fashion_mnist: %s\n%s", error.what(), usage);
  } catch (const missing_data& error) {
    std::fprintf(stderr, "fashion_mnist: %s\n", error.what());
    return 77;  // what Meson's test runner takes as "skipped"
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fashion_mnist: %s\n", error.what());
  }
  return EXIT_FAILURE;
}
