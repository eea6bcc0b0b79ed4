// Reads the conformance samples: what other programs answered when they were run. The format is in the samples' own
// README. SPDX-License-Identifier: BSD-3-Clause
//
// The folder is the environment variable QTENSOR_CONFORMANCE, else the macro QTENSOR_CONFORMANCE_DIR given by the
// build. Without the folder, or without nlohmann-json, `why_not` says so and the tests that need the samples say that
// they skip.
#pragma once

#include "oracle/inputs.hpp"

#if __has_include(<nlohmann/json.hpp>)
#include <nlohmann/json.hpp>
#define QTENSOR_TEST_HAS_JSON 1
#else
#define QTENSOR_TEST_HAS_JSON 0
#endif

#include <cstdlib>
#include <fstream>
#include <map>

namespace oracle {

/// An array of a sample: raw little-endian bytes, row-major.
struct sample_array {
  std::string dtype;
  std::vector<std::size_t> shape;
  std::vector<std::uint8_t> bytes;

  std::size_t size() const {
    std::size_t n = 1;
    for (std::size_t extent : shape) n *= extent;
    return n;
  }
  /// Elements as unsigned integers of their own width (1, 2, 4 or 8 bytes; the low 32 bits of 8).
  std::vector<std::uint32_t> words() const {
    std::vector<std::uint32_t> out(size(), 0);
    const std::size_t width = out.empty() ? 1 : bytes.size() / out.size();
    if (width * out.size() != bytes.size()) throw std::runtime_error("a sample's bytes do not match its shape");
    for (std::size_t i = 0; i < out.size(); ++i)
      for (std::size_t b = 0; b < std::min<std::size_t>(width, 4); ++b)
        out[i] |= static_cast<std::uint32_t>(bytes[i * width + b]) << (8 * b);
    return out;
  }
  /// Elements of an f32, bf16 or f16 array as floats.
  std::vector<float> floats() const {
    std::vector<float> out;
    const std::vector<float> half = dtype == "f16" ? every_f16() : std::vector<float>();
    for (std::uint32_t w : words()) {
      if (dtype == "f32")
        out.push_back(float_of(w));
      else if (dtype == "bf16")
        out.push_back(float_of(w << 16));
      else if (dtype == "f16")
        out.push_back(half[w]);
      else
        throw std::runtime_error("a sample array of " + dtype + " holds no floats");
    }
    return out;
  }
};

/// One run of a program. Parameters are kept as text: numbers as printed, true and false, strings bare.
struct sample {
  std::string id, op, program;
  std::map<std::string, std::string> params;
  std::map<std::string, sample_array> inputs, outputs;

  std::string param(const std::string& name) const {
    auto found = params.find(name);
    return found == params.end() ? "" : found->second;
  }
};

inline std::string samples_folder() {
  if (const char* folder = std::getenv("QTENSOR_CONFORMANCE")) return folder;
#ifdef QTENSOR_CONFORMANCE_DIR
  return QTENSOR_CONFORMANCE_DIR;
#else
  return "";
#endif
}

inline std::string samples_path(const std::string& family) { return samples_folder() + "/" + family + ".json"; }

/// Empty when the samples can be read, else the reason why not.
inline std::string why_not(const std::string& family) {
  if (!QTENSOR_TEST_HAS_JSON) return "nlohmann/json.hpp was not found (Debian: nlohmann-json3-dev)";
  if (samples_folder().empty()) return "set QTENSOR_CONFORMANCE to the folder of the conformance samples";
  if (!std::ifstream(samples_path(family))) return "there is no file " + samples_path(family);
  return "";
}

#if QTENSOR_TEST_HAS_JSON
namespace detail {

inline std::vector<std::uint8_t> bytes_of(const std::string& hex) {
  auto digit = [](char c) { return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10; };
  std::vector<std::uint8_t> out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    out.push_back(static_cast<std::uint8_t>(digit(hex[i]) * 16 + digit(hex[i + 1])));
  return out;
}

inline std::map<std::string, sample_array> arrays_of(const nlohmann::json& j) {
  std::map<std::string, sample_array> out;
  for (const auto& [name, a] : j.items())
    out[name] = {a.at("dtype").get<std::string>(), a.at("shape").get<std::vector<std::size_t>>(),
                 bytes_of(a.at("hex").get<std::string>())};
  return out;
}

}  // namespace detail
#endif

/// All samples of a family ("casts", "hif8", ...). Only when `why_not` is empty.
inline std::vector<sample> read_samples([[maybe_unused]] const std::string& family) {
  std::vector<sample> out;
#if QTENSOR_TEST_HAS_JSON
  std::ifstream file(samples_path(family));
  const nlohmann::json whole = nlohmann::json::parse(file);
  for (const auto& c : whole.at("cases")) {
    sample s{c.at("id"),
             c.at("op"),
             c.at("program"),
             {},
             detail::arrays_of(c.at("inputs")),
             detail::arrays_of(c.at("outputs"))};
    for (const auto& [name, value] : c.at("params").items())
      s.params[name] = value.is_string() ? value.get<std::string>() : value.dump();
    out.push_back(std::move(s));
  }
#endif
  return out;
}

}  // namespace oracle
