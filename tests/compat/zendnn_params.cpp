// Mirrors include/qtensor/compat/zendnn_params.hpp: what is refused, why, and that nothing is written then.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <limits>
#include <qtensor/compat/zendnn.hpp>
#include <tuple>

#include "compat/zendnn_check.hpp"

using namespace zendnn_check;

namespace {

constexpr std::size_t n = 24;

/// A valid call, f32 to s8, that a test spoils. Every buffer is checked to be untouched by a failure.
struct call {
  std::vector<float> x = std::vector<float>(n * 8, 1.5f);
  std::vector<std::uint8_t> codes = std::vector<std::uint8_t>(n * 8, 0xAA);
  std::vector<float> scales = std::vector<float>(n, 0.5f);
  std::vector<std::int32_t> zeros = std::vector<std::int32_t>(n, 1);
  lowoha_reorder_params_t p;
  std::size_t nelems = n;
  const void* src = x.data();
  void* dst = codes.data();

  call() {
    p.dtypes = {data_type_t::f32, data_type_t::s8};
    p.quant_params.scale = {scales.data(), data_type_t::f32, {}};
    p.quant_params.zero_point = {zeros.data(), data_type_t::s32, {}};
  }
  call(const call&) = delete;

  status_t run() const {
    return nelems == 0 && !p.src_shape.empty() ? reorder(src, dst, p) : reorder(src, dst, nelems, p);
  }

  /// "" where it fails for the reason and writes nothing.
  std::string fails_with(const std::string& words) const {
    const auto before = std::tuple{x, codes, scales, zeros};
    const status_t s = run();
    if (s == status_t::success) return "it succeeded";
    if (s.reason().find(words) == std::string::npos) return "it said: " + s.reason();
    const auto same = [](const auto& a, const auto& b) {
      return std::memcmp(a.data(), b.data(), a.size() * sizeof a[0]) == 0;
    };
    return same(std::get<0>(before), x) && same(std::get<1>(before), codes) && same(std::get<2>(before), scales) &&
                   same(std::get<3>(before), zeros)
               ? ""
               : "it wrote something";
  }
};

/// A call with one thing changed.
template <class Change>
std::string refused(const std::string& words, Change change) {
  call c;
  change(c);
  return c.fails_with(words);
}
template <class Change>
std::string accepted(Change change) {
  call c;
  change(c);
  const status_t s = c.run();
  return s.reason();
}

}  // namespace

TEST_CASE("zendnn: the call that the others spoil is valid") {
  CHECK(accepted([](call&) {}) == "");
  call c;
  CHECK(c.run() == status_t::success);
  CHECK(c.codes[0] == 4);
  CHECK(c.codes[n] == 0xAA);
}

TEST_CASE("zendnn refuses null pointers") {
  CHECK(refused("src is null", [](call& c) { c.src = nullptr; }) == "");
  CHECK(refused("dst is null", [](call& c) { c.dst = nullptr; }) == "");
}

TEST_CASE("zendnn refuses types it does not convert between, and types of parameters") {
  for (const auto& [from, to] :
       {std::pair{data_type_t::f32, data_type_t::f32}, std::pair{data_type_t::s8, data_type_t::u8},
        std::pair{data_type_t::none, data_type_t::s8}, std::pair{data_type_t::f32, data_type_t::s32},
        std::pair{data_type_t(99), data_type_t::s8}, std::pair{data_type_t::bf16, data_type_t(-3)}}) {
    const qtensor::compat::zendnn::reorder_data_types_t types{from, to};
    CHECK(refused("there is no conversion from", [&](call& c) { c.p.dtypes = types; }) == "");
  }
  CHECK(refused("scale.dt is s32", [](call& c) { c.p.quant_params.scale.dt = data_type_t::s32; }) == "");
  CHECK(refused("scale.dt is none", [](call& c) { c.p.quant_params.scale.dt = data_type_t::none; }) == "");
  CHECK(refused("zero_point.dt is s8", [](call& c) { c.p.quant_params.zero_point.dt = data_type_t::s8; }) == "");
}

TEST_CASE("zendnn takes algorithms -1, 0, 1 and 2 and any number of threads; nothing else, and with the same bits") {
  for (const int algo : {-1, 0, 1, 2})
    for (const std::uint64_t threads : {0u, 1u, 1000u}) {
      call c;
      c.p.algo = static_cast<reorder_algo_t>(algo);
      c.p.num_threads = threads;
      CHECK(c.run() == status_t::success);
      CHECK(c.codes == [] {
        call first;
        CHECK(first.run() == status_t::success);
        return first.codes;
      }());
    }
  CHECK(refused("algo is 3", [](call& c) { c.p.algo = static_cast<reorder_algo_t>(3); }) == "");
  CHECK(refused("algo is -2", [](call& c) { c.p.algo = static_cast<reorder_algo_t>(-2); }) == "");
}

TEST_CASE("zendnn refuses scales that are not positive and finite, wherever they stand") {
  for (const float bad : {0.f, -0.f, -1.f, qtensor::infinity, qtensor::quiet_nan})
    for (const std::size_t at : {std::size_t{0}, n - 1})
      CHECK(refused("scale " + std::to_string(at) + " is", [&](call& c) {
              c.p.quant_params.scale.dims = {static_cast<std::int64_t>(n)};
              c.scales[at] = bad;
            }) == "");
  CHECK(accepted([](call& c) { c.scales[0] = std::numeric_limits<float>::denorm_min(); }) == "");
  CHECK(accepted([](call& c) { c.scales[1] = -1.f; }) == "");  // not one of the call's
}

TEST_CASE("zendnn refuses zero points outside the codes, in both directions of the conversion") {
  struct {
    data_type_t type;
    std::int32_t low, high;
  } const codes[] = {{data_type_t::s8, -128, 127}, {data_type_t::u8, 0, 255}};
  for (const auto& code : codes)
    for (const bool decodes : {false, true})
      for (const std::int32_t z : {code.low - 1, code.low, code.high, code.high + 1}) {
        const auto change = [&](call& c) {
          c.p.dtypes = decodes ? qtensor::compat::zendnn::reorder_data_types_t{code.type, data_type_t::f32}
                               : qtensor::compat::zendnn::reorder_data_types_t{data_type_t::f32, code.type};
          if (decodes) c.src = c.codes.data(), c.dst = c.x.data();
          c.zeros[0] = z;
        };
        if (z < code.low || z > code.high)
          CHECK(refused("zero point 0 is " + std::to_string(z), change) == "");
        else
          CHECK(accepted(change) == "");
      }
  CHECK(accepted([](call& c) { c.zeros[0] = 1000, c.p.zero_points = zero_points_t::int32; }) == "");
}

TEST_CASE("zendnn refuses sizes: none, too many, products that overflow") {
  CHECK(refused("nelems is 0", [](call& c) { c.nelems = 0; }) == "");
  CHECK(refused("nelems is", [](call& c) { c.nelems = (std::size_t{1} << 40) + 1; }) == "");
  CHECK(refused("nelems is", [](call& c) { c.nelems = ~std::size_t{0}; }) == "");
  call c;  // flat calls need no shape, the others do
  CHECK(reorder(c.src, c.dst, c.p).reason().find("src_shape is empty") != std::string::npos);
  const auto shaped = [](std::vector<std::int64_t> shape) {
    return [shape](call& broken) { broken.p.src_shape = shape, broken.nelems = 0; };
  };
  CHECK(accepted(shaped({2, 3, 4})) == "");
  CHECK(refused("4 axes", shaped({1, 2, 3, 4})) == "");
  CHECK(refused("an extent of 0", shaped({2, 0})) == "");
  CHECK(refused("an extent of -4", shaped({2, -4})) == "");
  CHECK(refused("an extent of 1073741825", shaped({(1 << 30) + 1})) == "");
  CHECK(refused("more than 2^40", shaped({1 << 30, 1 << 30, 1 << 30})) == "");
  CHECK(refused("nelems is 24 but src_shape has 12", [](call& broken) { broken.p.src_shape = {3, 4}; }) == "");
  CHECK(refused("dst_shape differs", [](call& broken) {
          broken.p.src_shape = {4, 6}, broken.p.dst_shape = {6, 4};
        }) == "");
}

TEST_CASE("zendnn refuses strides that are not positive, of another rank, or beyond memory") {
  const auto strided = [](std::vector<std::int64_t> strides) {
    return [strides](call& c) { c.p.src_shape = {4, 6}, c.p.src_strides = strides; };
  };
  CHECK(accepted(strided({6, 1})) == "");
  CHECK(accepted(strided({1, 4})) == "");
  CHECK(refused("src_strides has 1 entries for 2 axes", strided({6})) == "");
  CHECK(refused("src_strides has 0", strided({6, 0})) == "");
  CHECK(refused("src_strides has -6", strided({-6, 1})) == "");
  CHECK(refused("over the end of memory", strided({std::numeric_limits<std::int64_t>::max(), 1})) == "");
  CHECK(refused("over the end of memory", strided({std::int64_t{1} << 61, 1})) == "");
  CHECK(refused("need a src_shape", [](call& c) { c.p.src_strides = {1}; }) == "");
}

TEST_CASE("zendnn refuses dims that fit no granularity") {
  const auto flat = [](std::vector<std::int64_t> dims) {
    return [dims](call& c) { c.p.quant_params.scale.dims = dims; };
  };
  for (const auto& good : {std::vector<std::int64_t>{}, {1}, {24}, {8}, {4, 6}, {24, 1}, {1, 24}})
    CHECK(accepted(flat(good)) == "");
  CHECK(refused("5 channels, which do not divide 24", flat({5})) == "");
  CHECK(refused("scale.dims has 0", flat({0})) == "");
  CHECK(refused("scale.dims has 25", flat({25})) == "");
  CHECK(refused("scale.dims has -4", flat({-4, -6})) == "");
  CHECK(refused("4 groups of 5 for 24", flat({4, 5})) == "");
  CHECK(refused("24 groups of 24", flat({24, 24})) == "");
  CHECK(refused("scale.dims has 3 entries", flat({1, 4, 6})) == "");
  CHECK(refused("zero_point.dims has 9223372036854775807", [](call& c) {
          c.p.quant_params.zero_point.dims = {std::numeric_limits<std::int64_t>::max(), 2};
        }) == "");
  const auto shaped = [](std::vector<std::int64_t> shape, std::vector<std::int64_t> dims) {
    return [=](call& c) { c.p.src_shape = shape, c.p.quant_params.zero_point.dims = dims; };
  };
  for (const auto& good : {std::vector<std::int64_t>{}, {1}, {6}, {1, 1}, {1, 6}, {4, 1}, {2, 6}, {4, 2}, {4, 3}})
    CHECK(accepted(shaped({4, 6}, good)) == "");
  for (const auto& bad : {std::vector<std::int64_t>{4},
                          {4, 6},
                          {3, 6},
                          {4, 4},
                          {2, 2},
                          {6, 1},
                          {0, 6},
                          {4, 0},
                          {4, -1},
                          {1, 4, 6},
                          {8, 6}})
    CHECK(refused("zero_point.dims fits no granularity", shaped({4, 6}, bad)) == "");
  for (const auto& good : {std::vector<std::int64_t>{1, 1, 1}, {1, 1, 3}, {1, 4, 1}, {1, 2, 3}, {3}})
    CHECK(accepted(shaped({2, 4, 3}, good)) == "");
  for (const auto& bad : {std::vector<std::int64_t>{2, 1, 1}, {2, 4, 3}, {4, 1}, {1, 4, 3}})
    CHECK(refused("zero_point.dims fits no granularity", shaped({2, 4, 3}, bad)) == "");
  CHECK(accepted([](call& c) {
          c.p.quant_params.scale = {nullptr, data_type_t(7), {5, 5, 5, 5}};
        }) == "");  // not looked at
}

TEST_CASE("zendnn refuses buffers that are not aligned to their elements") {
  const auto off = [](const auto& v) { return static_cast<const void*>(reinterpret_cast<const char*>(v.data()) + 1); };
  CHECK(refused("src is not aligned to 4", [&](call& c) { c.src = off(c.x); }) == "");
  CHECK(refused("src is not aligned to 2", [&](call& c) { c.src = off(c.x), c.p.dtypes.src = data_type_t::f16; }) ==
        "");
  CHECK(refused("dst is not aligned to 2",
                [&](call& c) { c.dst = c.codes.data() + 1, c.p.dtypes.dst = data_type_t::bf16; }) == "");
  CHECK(refused("scale is not aligned to 4", [&](call& c) { c.p.quant_params.scale.buff = off(c.scales); }) == "");
  CHECK(refused("zero_point is not aligned to 4", [&](call& c) { c.p.quant_params.zero_point.buff = off(c.zeros); }) ==
        "");
  CHECK(accepted([](call& c) { c.dst = c.codes.data() + 1; }) == "");
}

TEST_CASE("zendnn refuses a destination that overlaps what is read, in place included; neighbours are fine") {
  CHECK(refused("dst overlaps", [](call& c) { c.dst = c.x.data(); }) == "");
  CHECK(refused("dst overlaps", [](call& c) { c.dst = reinterpret_cast<char*>(c.x.data() + n) - 1; }) == "");
  CHECK(accepted([](call& c) { c.dst = c.x.data() + n; }) == "");
  CHECK(refused("dst overlaps", [](call& c) { c.dst = c.scales.data(); }) == "");
  CHECK(refused("dst overlaps", [](call& c) { c.dst = c.zeros.data(); }) == "");
  CHECK(refused("dst overlaps", [](call& c) {  // in a gap of the source
          c.p.src_shape = {2, 12}, c.p.src_strides = {36, 1}, c.dst = c.x.data() + 20;
        }) == "");
  CHECK(refused("overlap another buffer", [](call& c) {
          c.p.dynamic_quant = true, c.p.quant_params.zero_point.buff = nullptr,
          c.p.quant_params.scale.buff = c.x.data();
        }) == "");
  CHECK(refused("overlap another buffer", [](call& c) {
          c.p.dynamic_quant = true, c.p.dtypes.dst = data_type_t::u8,
          c.p.quant_params.zero_point.buff = c.scales.data();
        }) == "");
}

TEST_CASE("zendnn refuses dynamic modes without their buffers, with others, or between other types") {
  const auto dynamic_to = [](data_type_t to, bool has_scale, bool has_zero) {
    return [=](call& c) {
      c.p.dynamic_quant = true;
      c.p.dtypes.dst = to;
      if (!has_scale) c.p.quant_params.scale.buff = nullptr;
      if (!has_zero) c.p.quant_params.zero_point.buff = nullptr;
    };
  };
  CHECK(accepted(dynamic_to(data_type_t::s8, true, false)) == "");
  CHECK(accepted(dynamic_to(data_type_t::u8, true, true)) == "");
  CHECK(refused("symmetric", dynamic_to(data_type_t::s8, true, true)) == "");
  CHECK(refused("asymmetric", dynamic_to(data_type_t::u8, true, false)) == "");
  CHECK(refused("needs a buffer for scales", dynamic_to(data_type_t::s8, false, false)) == "");
  CHECK(refused("dynamic_quant converts", dynamic_to(data_type_t::bf16, true, false)) == "");
  CHECK(refused("the same dims", [&](call& c) {
          dynamic_to(data_type_t::u8, true, true)(c);
          c.p.quant_params.scale.dims = {24};
        }) == "");
  CHECK(refused("src is null", [&](call& c) {
          dynamic_to(data_type_t::s8, true, false)(c);
          c.src = nullptr;
        }) == "");
}

TEST_CASE("zendnn: a status compares with success and failure, and a failure says why in a sentence") {
  const status_t good = status_t::success;
  CHECK(good == status_t::success);
  CHECK_FALSE(good == status_t::failure);
  CHECK(good != status_t::failure);
  CHECK(good.reason().empty());
  call c;
  c.scales[0] = -2.f;
  const status_t bad = c.run();
  CHECK(bad == status_t::failure);
  CHECK(bad.reason() == "zendnn::reorder: scale 0 is -2; a scale must be positive and finite.");
}
