// Mirrors include/qtensor/compat/onednn_matmul.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <deque>
#include <numeric>
#include <qtensor/compat/onednn_matmul.hpp>
#include <random>
#include <vector>

#include "compat/onednn_check.hpp"

namespace dnn = qtensor::compat::onednn;
using qtensor::index_t;
using qtensor::rounded;
using type = dnn::data_type;

namespace {

using dims = std::vector<index_t>;

// NUMERICS 5.3: src u8 {1, 2, 3, 4} with zero point 1, weights {1, -1, 2, -2}, scales .5 and .25.
struct identity {
  std::uint8_t src[4] = {1, 2, 3, 4};
  std::int8_t wei[4] = {1, -1, 2, -2};
  float half = .5f, quarter = .25f, dst = 77.f;
  std::int32_t src_zero = 1, wei_zero = 1, sum = 10;
  dnn::matmul_attributes how;

  identity() {
    how.src_scale = {&half, type::f32};
    how.wei_scale = {&quarter, type::f32};
    how.src_zero_point = {&src_zero, type::s32};
  }
  float run() {
    dnn::matmul(dims{1, 4}, type::u8, src, dims{4, 1}, type::s8, wei, {}, type::f32, &dst, how);
    return dst;
  }
};

// A product with its arrays, and its elements by NUMERICS 5.3, one by one.
struct problem {
  using given = onednn_check::given;
  dims src_dims, wei_dims;
  type src_type, wei_type;
  std::mt19937 random;
  std::deque<onednn_check::buffer> memory = {};
  dnn::matmul_attributes how = {};
  given src_scale = {}, wei_scale = {}, src_zero = {}, wei_zero = {}, sums = {}, bias = {};

  std::size_t rank() const { return src_dims.size(); }
  onednn_check::buffer& array(type t, index_t n) {
    return memory.emplace_back(t, onednn_check::plain_codes(t, static_cast<std::size_t>(n), random()));
  }
  /// A parameter for the mask and groups, and as the product takes it.
  dnn::parameter make(given& to, const dims& of, type t, int mask, const dims& groups) {
    index_t n = 1;
    for (const index_t e : dnn::parameter_dims("a parameter", of, mask, groups)) n *= e;
    const auto& codes = array(t, n);
    to.where = {codes.data(), t, mask, groups};
    for (const std::uint32_t code : codes.codes()) to.numbers.push_back(onednn_check::number(t, code));
    return to.where;
  }

  dims dst_dims() const {
    dims out = src_dims;
    for (std::size_t d = 0; d + 2 < rank(); ++d) out[d] = std::max(src_dims[d], wei_dims[d]);
    out.back() = wei_dims.back();
    return out;
  }
  /// Element (row, col) of the matrix of an operand that meets matrix `batch` of the result.
  index_t element(const dims& of, index_t batch, index_t row, index_t col) const {
    const dims all = dst_dims();
    index_t matrix = 0, step = 1;
    for (std::size_t d = rank() - 2; d-- > 0; batch /= all[d]) {
      matrix += of[d] == 1 ? 0 : batch % all[d] * step;
      step *= of[d];
    }
    return (matrix * of[rank() - 2] + row) * of[rank() - 1] + col;
  }
  float by_mode(float x) const {
    using namespace qtensor;
    return how.math == dnn::math_mode::bf16  ? decode<bf16>(encode<bf16, qtensor::to_special>(x))
           : how.math == dnn::math_mode::f16 ? decode<f16>(encode<f16, qtensor::to_special>(x))
                                             : x;
  }
  float integers(const std::vector<float>& src, const std::vector<float>& wei, index_t batch, index_t i,
                 index_t j) const {
    const index_t k = src_dims.back(), group = std::gcd(std::gcd(k, run(src_scale, 1)), run(src_zero, 1)),
                  all = std::gcd(std::gcd(group, run(wei_scale, 0)), run(wei_zero, 0));
    volatile float d = 0.f;
    for (index_t g = 0; g < k; g += all) {
      std::int64_t sum = 0;
      const index_t x0 = element(src_dims, batch, i, g), w0 = element(wei_dims, batch, g, j);
      const auto xz = static_cast<std::int64_t>(src_zero(src_dims, x0, 0.f)),
                 wz = static_cast<std::int64_t>(wei_zero(wei_dims, w0, 0.f)),
                 r = static_cast<std::int64_t>(sums(src_dims, x0, 0.f));
      const bool reduced = !sums.numbers.empty();
      for (index_t l = 0; l < all; ++l)
        sum +=
            (static_cast<std::int64_t>(src[static_cast<std::size_t>(x0 + l)]) - xz) *
            (static_cast<std::int64_t>(wei[static_cast<std::size_t>(w0 + l * wei_dims.back())]) - (reduced ? 0 : wz));
      if (reduced) sum += -r * wz + (how.reductions_of == dnn::reductions_of::codes ? all * wz * xz : 0);
      volatile float scaled = static_cast<float>(sum) * src_scale(src_dims, x0, 1.f);
      scaled = scaled * wei_scale(wei_dims, w0, 1.f);
      d = d + scaled;
    }
    return d;
  }
  float floats(const std::vector<float>& src, const std::vector<float>& wei, index_t batch, index_t i,
               index_t j) const {
    const bool wei_after = how.weight_scaling == dnn::weight_scaling::after_sum && run(wei_scale, 0) == 0;
    float sum = 0.f;
    for (index_t l = 0; l < src_dims.back(); ++l) {
      const index_t at = element(src_dims, batch, i, l), of = element(wei_dims, batch, l, j);
      volatile float x = src[static_cast<std::size_t>(at)], w = wei[static_cast<std::size_t>(of)];
      x = x - src_zero(src_dims, at, 0.f);
      if (run(src_scale, 1) != 0) x = x * src_scale(src_dims, at, 1.f);
      w = w - wei_zero(wei_dims, of, 0.f);
      if (!wei_after) w = w * wei_scale(wei_dims, of, 1.f);
      sum = std::fma(by_mode(x), by_mode(w), sum);
    }
    volatile float d = sum;
    if (wei_after) d = d * wei_scale(wei_dims, element(wei_dims, batch, 0, j), 1.f);
    if (run(src_scale, 1) == 0) d = d * src_scale(src_dims, element(src_dims, batch, i, 0), 1.f);
    return d;
  }
  /// How many neighbours share an entry along the last dimension but (1 - last); 0: all.
  index_t run(const given& p, std::size_t last) const {
    const std::size_t d = rank() - 2 + last;
    if (p.numbers.empty() || (p.where.mask >> d & 1) == 0) return 0;
    return p.where.groups.empty() ? 1 : p.where.groups[p.where.groups.size() - 2 + last];
  }

  /// Codes of which a NaN is one, as products leave its payload and sign open.
  static onednn_check::words codes(const onednn_check::buffer& array) {
    onednn_check::words out = array.codes();
    for (std::uint32_t& code : out)
      if (qtensor::is_nan(onednn_check::number(array.type(), code))) code = ~0u;
    return out;
  }
  void check(type dst_type) {
    const dims all = dst_dims();
    const auto count = static_cast<std::size_t>(dnn::element_count(all));
    const auto& src = array(src_type, dnn::element_count(src_dims));
    const auto& wei = array(wei_type, dnn::element_count(wei_dims));
    std::vector<float> x, w, d;
    for (const std::uint32_t code : src.codes()) x.push_back(onednn_check::number(src_type, code));
    for (const std::uint32_t code : wei.codes()) w.push_back(onednn_check::number(wei_type, code));
    const index_t m = src_dims[rank() - 2], n = all.back();
    for (index_t i = 0; i < static_cast<index_t>(count); ++i) {
      const index_t batch = i / (m * n), row = i / n % m, col = i % n;
      volatile float v = dnn::is_integer(src_type) ? integers(x, w, batch, row, col) : floats(x, w, batch, row, col);
      if (!bias.numbers.empty()) v = v + bias.numbers[static_cast<std::size_t>(i) % bias.numbers.size()];
      d.push_back(float{v});
    }
    dnn::bias_argument added;
    if (!bias.numbers.empty()) added = {bias.where.data, bias.where.type, all};
    if (bias.numbers.size() == static_cast<std::size_t>(n)) {
      added.dims.assign(rank(), 1);
      added.dims.back() = n;
    }
    onednn_check::buffer got(dst_type, count, 0x5A), want = got;
    dnn::matmul(src_dims, src_type, src.data(), wei_dims, wei_type, wei.data(), added, dst_type, got.data(), how);
    dnn::reorder(all, type::f32, d.data(), dst_type, want.data(), how.into);
    INFO(dnn::name_of(src_type), " x ", dnn::name_of(wei_type), " to ", dnn::name_of(dst_type), " ", m, "x", n, "x",
         src_dims.back());
    REQUIRE(codes(got) == codes(want));
  }
};

}  // namespace

TEST_CASE("matmul: the vectors of NUMERICS 5.3, zero points of weights as numbers or through reductions") {
  identity v;
  CHECK(v.run() == -0.375f);
  v.how.wei_zero_point = {&v.wei_zero, type::s32};
  CHECK(v.run() == -9 * .125f);
  v.how.precomputed_reductions = {&v.sum, type::s32, 3, {1, 4}};
  CHECK(v.run() == -9 * .125f);
  v.how.reductions_of = dnn::reductions_of::shifted;
  CHECK(v.run() == -13 * .125f);  // what the release computes from sums of codes
}

TEST_CASE("matmul: every group of its own, source scale first, two roundings, then bias, post-ops and requantization") {
  constexpr index_t m = 5, k = 64, n = 7, src_group = 32, wei_group = 16;
  std::mt19937 random(7);
  std::vector<std::int8_t> src(m * k), wei(k * n);
  for (auto& c : src) c = static_cast<std::int8_t>(random());
  for (auto& c : wei) c = static_cast<std::int8_t>(random());
  std::vector<float> src_scale(m * k / src_group), wei_scale(k / wei_group * n), bias(n);
  for (auto* v : {&src_scale, &wei_scale, &bias})
    for (float& x : *v) x = static_cast<float>(random() % 1000 + 1) * 1e-4f;
  std::vector<std::int8_t> wei_zero(k / 32 * n), got(m * n);
  for (auto& c : wei_zero) c = static_cast<std::int8_t>(random());
  const float dst_scale = 3.f;
  const std::int32_t dst_zero = 5;
  dnn::matmul_attributes how;
  how.src_scale = {src_scale.data(), type::f32, 3, {1, src_group}};
  how.wei_scale = {wei_scale.data(), type::f32, 3, {wei_group, 1}};
  how.wei_zero_point = {wei_zero.data(), type::s8, 3, {32, 1}};
  how.into.dst_scale = {&dst_scale, type::f32};
  how.into.dst_zero_point = {&dst_zero, type::s32};
  const auto relu = [](std::span<float> d) {
    for (float& x : d) x = x > 0.f ? x : 0.f;
  };
  dnn::matmul(dims{m, k}, type::s8, src.data(), dims{k, n}, type::s8, wei.data(), {bias.data(), type::f32, {1, n}},
              type::s8, got.data(), how, relu);
  for (index_t i = 0; i < m; ++i)
    for (index_t j = 0; j < n; ++j) {
      float d = 0.f;
      for (index_t g = 0; g < k; g += 16) {
        std::int32_t sum = 0;
        for (index_t l = g; l < g + 16; ++l)
          sum += src[static_cast<std::size_t>(i * k + l)] *
                 (wei[static_cast<std::size_t>(l * n + j)] - wei_zero[static_cast<std::size_t>(l / 32 * n + j)]);
        const float scaled = rounded(static_cast<float>(sum) * src_scale[static_cast<std::size_t>(i * 2 + g / 32)]);
        d = rounded(d + rounded(scaled * wei_scale[static_cast<std::size_t>(g / 16 * n + j)]));
      }
      d = rounded(d + bias[static_cast<std::size_t>(j)]);
      d = d > 0.f ? d : 0.f;
      const float q = std::nearbyint(std::clamp(rounded(rounded(d / 3.f) + 5.f), -128.f, 127.f));
      REQUIRE(static_cast<float>(got[static_cast<std::size_t>(i * n + j)]) == q);
    }
}

TEST_CASE("matmul: weight-only, 4-bit weights, batches that share weights, scales before or after the sums") {
  const std::vector<float> src = {1.f, 2.f, -1.f, .5f};  // 2 x 1 x 2
  const std::vector<std::uint8_t> wei = {0x71, 0x8f};    // s4 {1, 7; -1, -8}
  const std::vector<float> scales = {.5f, 3.f};
  std::vector<float> dst(4);
  dnn::matmul_attributes how;
  how.wei_scale = {scales.data(), type::f32, 4};
  for (const auto scaling : {dnn::weight_scaling::before_sum, dnn::weight_scaling::after_sum}) {
    how.weight_scaling = scaling;
    dnn::matmul(dims{2, 1, 2}, type::f32, src.data(), dims{1, 2, 2}, type::s4, wei.data(), {}, type::f32, dst.data(),
                how);
    CHECK(dst == std::vector<float>{-.5f, -27.f, -.75f, -33.f});
  }
}

TEST_CASE("matmul: all types, masks, groups, batches and sizes around vectors, tiles and squares") {
  std::mt19937 random(3);
  const auto pick = [&]<class T>(std::initializer_list<T> list) { return list.begin()[random() % list.size()]; };
  for (int round = 0; round < 400; ++round) {
    const bool integers = round % 2 == 0, large = round % 16 < 2;
    const index_t group = large ? pick({32, 64, 65}) : pick({1, 2, 3, 4, 8, 12, 16, 17});
    const index_t k = group * pick({1, 2, 3, 4}), n = large ? pick({63, 64, 65, 130}) : 1 + random() % 40;
    const index_t m = large ? pick({5, 8, 9, 40}) : round % 5 == 0 ? 1 : 1 + random() % 12;
    problem p{{m, k}, {k, n}, type::f32, type::f32, std::mt19937(random())};
    p.src_type =
        integers ? pick({type::s8, type::u8}) : pick({type::f32, type::bf16, type::f16, type::f8_e4m3, type::f8_e5m2});
    p.wei_type = integers ? pick({type::s8, type::u8, type::s4, type::u4})
                          : pick({type::f32, type::bf16, type::f8_e4m3, type::f4_e2m1, type::s8, type::s4, type::u4});
    if (const int leading = pick({0, 0, 1, 2}); leading > 0) {
      p.src_dims.insert(p.src_dims.begin(), static_cast<std::size_t>(leading), 2);
      p.wei_dims.insert(p.wei_dims.begin(), static_cast<std::size_t>(leading), 2);
      if (random() % 2) p.wei_dims[0] = 1;
      if (leading > 1 && random() % 2) (random() % 2 ? p.src_dims : p.wei_dims)[1] = 1;
    }
    const int rank = static_cast<int>(p.rank()), both = 3 << (rank - 2);
    const auto mask = [&](bool along_k, int k_bit) {
      const int any = static_cast<int>(random() % (1u << rank));
      return along_k ? any | both : any & ~(1 << k_bit);
    };
    const auto add = [&](problem::given& to, const dims& of, type t, bool weights, bool grouped) {
      const dims groups = !grouped ? dims{} : weights ? dims{group, 1} : dims{1, group * (k / group % 2 == 0 ? 2 : 1)};
      return p.make(to, of, t, mask(grouped, weights ? rank - 2 : rank - 1), groups);
    };
    const auto scale = [&] { return pick({type::f32, type::bf16, type::e8m0, type::f8_e4m3}); };
    const auto zero = [&] { return pick({type::s32, type::s8, type::u8, type::s4, type::u4}); };
    if (random() % 4) p.how.src_scale = add(p.src_scale, p.src_dims, scale(), false, random() % 2);
    if (random() % 4) p.how.wei_scale = add(p.wei_scale, p.wei_dims, scale(), true, random() % 2);
    if (random() % 2) p.how.src_zero_point = add(p.src_zero, p.src_dims, zero(), false, random() % 2);
    const bool reduced = integers && random() % 4 == 0;
    if (random() % 2 || reduced)
      p.how.wei_zero_point = add(p.wei_zero, p.wei_dims, zero(), true, reduced || random() % 2);
    if (reduced) p.how.precomputed_reductions = p.make(p.sums, p.src_dims, type::s32, (1 << rank) - 1, {1, group});
    p.how.reductions_of = pick({dnn::reductions_of::codes, dnn::reductions_of::shifted});
    p.how.math = pick({dnn::math_mode::strict, dnn::math_mode::bf16, dnn::math_mode::f16});
    p.how.weight_scaling = pick({dnn::weight_scaling::before_sum, dnn::weight_scaling::after_sum});
    if (random() % 2)
      p.make(p.bias, p.dst_dims(), pick({type::f32, type::s8}), random() % 2 ? 1 << (rank - 1) : (1 << rank) - 1, {});
    problem::given of_dst;
    if (random() % 3 == 0) p.how.into.dst_scale = p.make(of_dst, p.dst_dims(), type::f32, 1 << (rank - 1), {});
    p.check(pick({type::f32, type::f32, type::s32, type::u8, type::bf16}));
  }
}

TEST_CASE("matmul: what has no meaning is refused, and nothing is written") {
  identity v;
  v.how.precomputed_reductions = {&v.sum, type::s32, 3, {1, 4}};
  CHECK_THROWS_WITH(v.run(),
                    "qtensor: precomputed reductions are given without zero points of integer weights; they only serve "
                    "those.");
  v.how.wei_zero_point = {&v.wei_zero, type::s32};
  v.how.wei_zero_point = {&v.wei_zero, type::s32};
  const std::int32_t both = 0;
  const std::vector<index_t> two_rows = {2, 4}, square = {4, 4};
  const std::int8_t source[8] = {};
  std::int8_t weights[16] = {};
  float result[8];
  dnn::matmul_attributes shared;
  shared.wei_zero_point = {&v.wei_zero, type::s32};
  shared.precomputed_reductions = {&both, type::s32, 3, {2, 4}};
  CHECK_THROWS_WITH(dnn::matmul(two_rows, type::s8, source, square, type::s8, weights, {}, type::f32, result, shared),
                    "qtensor: precomputed reductions are shared by 2 rows of the source; there is one for each.");
  v.how.precomputed_reductions = {&v.sum, type::s32};
  CHECK_THROWS_WITH(v.run(),
                    "qtensor: precomputed reductions have the mask 0 and type s32; they are s32 and vary along every "
                    "dimension (mask 3).");
  CHECK_THROWS_WITH(
      dnn::matmul(dims{1, 4}, type::u8, v.src, dims{3, 1}, type::s8, v.wei, {}, type::f32, &v.dst),
      "qtensor: the left operand of a product has 4 elements along the sum, the right one 3; they must be "
      "equal.");
  CHECK_THROWS_WITH(dnn::matmul(dims{1, 4}, type::s32, v.src, dims{4, 1}, type::s8, v.wei, {}, type::f32, &v.dst),
                    "qtensor: a matmul of s32 by s8; sources are s8, u8 (with s8, u8, s4, u4 weights), f32, bf16, f16, "
                    "f8_e4m3 and f8_e5m2.");
  CHECK_THROWS_WITH(dnn::matmul(dims{1, 4}, type::u8, v.src, dims{4, 1}, type::s8, v.wei, {v.src, type::undef, {1}},
                                type::f32, &v.dst),
                    "qtensor: the bias is of type undef; it is f32, bf16, f16, s32, s8 or u8.");
  const float pair[2] = {};
  const void* const odd = reinterpret_cast<const std::byte*>(pair) + 1;
  CHECK_THROWS_WITH(
      dnn::matmul(dims{1, 4}, type::u8, v.src, dims{4, 1}, type::s8, v.wei, {odd, type::f32, {1}}, type::f32, &v.dst),
      "qtensor: the bias is not aligned to 4 bytes, the size of f32.");
  identity scaled;
  scaled.how.src_scale = {odd, type::f32};
  CHECK_THROWS_WITH(scaled.run(), "qtensor: a scale or zero point is not aligned to 4 bytes, the size of f32.");
  scaled.how.src_scale = {&scaled.dst, type::f32};
  scaled.dst = 1.f;
  CHECK_THROWS_WITH(scaled.run(), "qtensor: the destination overlaps a scale or zero point that is read.");
  CHECK(scaled.dst == 1.f);
  scaled.how.src_scale = {};
  scaled.how.math = static_cast<dnn::math_mode>(9);
  CHECK_THROWS_WITH(scaled.run(), "qtensor: matmul_attributes::math is 9; its choices are 0 to 2.");
  CHECK(v.dst == 77.f);
}

TEST_CASE("matmul: floats beyond bf16 and f16 become infinities, and stay what they are") {
  const float src[] = {qtensor::infinity, 1e30f, qtensor::quiet_nan, 2.f};
  const std::int8_t wei[] = {2};
  for (const auto& [math, of_1e30] :
       {std::pair{dnn::math_mode::bf16, qtensor::decode<qtensor::bf16>(qtensor::encode<qtensor::bf16>(1e30f)) * 2.f},
        {dnn::math_mode::f16, qtensor::infinity}}) {
    float dst[4] = {};
    dnn::matmul_attributes how;
    how.math = math;
    dnn::matmul(dims{4, 1}, type::f32, src, dims{1, 1}, type::s8, wei, {}, type::f32, dst, how);
    CHECK(dst[0] == qtensor::infinity);
    CHECK(dst[1] == of_1e30);
    CHECK(dst[2] != dst[2]);
    CHECK(dst[3] == 4.f);
  }
}

TEST_CASE("matmul: precomputed reductions of a product of no columns are valid, too") {
  const std::uint8_t src[4] = {1, 2, 3, 4};
  const std::int32_t sums[2] = {3, 7}, zero = 0;
  dnn::matmul_attributes how;
  how.wei_zero_point = {&zero, type::s32, 3, {2, 1}};
  how.precomputed_reductions = {sums, type::s32, 3, {1, 2}};
  CHECK_NOTHROW(dnn::matmul(dims{1, 4}, type::u8, src, dims{4, 0}, type::s8, src, {}, type::f32, nullptr, how));
}
