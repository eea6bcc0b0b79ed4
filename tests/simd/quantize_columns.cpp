// Mirrors include/qtensor/simd/quantize_columns.hpp: several rows under one scale an element, each architecture against
// the reference. SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/simd/quantize_columns.hpp>

#include "runs.hpp"

using namespace runs;

namespace {

/// A matrix of numbers that decide, and the scales of its columns; `odd` puts in some that leave the fast path.
template <class S>
struct column_input {
  std::vector<float> x, scales;
  std::vector<std::int32_t> zeros;

  column_input(index_t rows, index_t cols, bool odd) {
    for (index_t c = 0; c < cols; ++c) {
      const bool power = std::same_as<typename S::scale_format, e8m0>;
      float s = power ? exp2i(static_cast<int>(check::random_below(40)) - 20)
                      : 0.01f + static_cast<float>(check::random_below(1000)) * 0.003f;
      if (odd && check::random_below(16) == 0) s = check::random_below(2) == 0 ? 0.f : exp2i(120);
      scales.push_back(s);
      zeros.push_back(S::has_zero_point ? static_cast<std::int32_t>(check::random_below(odd ? 2000 : 200)) - 60 : 0);
    }
    for (index_t i = 0; i < rows * cols; ++i) {
      const float s = scales[static_cast<std::size_t>(i % cols)];
      const bool decides = check::random_below(4) != 0 && s > 0.f && s < 1e30f;
      x.push_back(decides ? (static_cast<float>(check::random_below(515)) - 257.f) * 0.5f * s : check::hard_float());
    }
  }
};

/// Elements [col, cols) of all rows, to codes that lie `gap` units apart beyond their own length.
template <class S, class Arch>
void check_columns(index_t rows, index_t cols, index_t col, index_t gap, bool odd, bool streams) {
  if constexpr (!std::is_same_v<Arch, simd::scalar_arch>) {
    using kernel = simd::kernel<simd::op::encode, S, Arch>;
    using reference = simd::kernel<simd::op::encode, S, simd::scalar_arch>;
    using encoder = simd::column_encoder<S, simd::from_f32, kernel>;
    using unit = simd::code_unit_t<S>;
    const float tensor_scale = S::has_tensor_scale ? 0.37f : 1.f;
    const column_input<S> in(rows, cols, odd);
    check::fenced<float> x(in.x), scales(in.scales);
    check::fenced<std::int32_t> zeros(in.zeros);
    const index_t n = cols - col, step = units<S>(n) + gap;
    const std::int32_t* z = S::has_zero_point ? zeros.data() : nullptr;
    std::vector<float> memory(static_cast<std::size_t>(encoder::memory_for(cols) + 1));
    alignas(64) static unit got[1 << 16];
    std::memset(got, 0x5a, static_cast<std::size_t>(rows * step) * sizeof(unit));
    const encoder columns(scales.data(), z, cols, tensor_scale, memory.data());
    columns.encode(x.data() + col, cols, rows, col, n, got, step, streams);
    if (streams) simd::stream_fence<simd::best_arch>();
    std::vector<unit> want(static_cast<std::size_t>(units<S>(n)));
    for (index_t r = 0; r < rows; ++r) {
      reference::vector(x.data() + r * cols + col, n, scales.data() + col, z != nullptr ? z + col : nullptr,
                        tensor_scale, want.data());
      INFO("row ", r, " of ", rows, ", columns ", col, " to ", cols, odd ? ", odd scales" : "");
      compare_codes<S, Arch>(got + r * step, want.data(), x.data() + r * cols + col, n, "columns");
      for (index_t i = units<S>(n); i < step && r + 1 < rows; ++i)
        if (static_cast<std::uint8_t>(got[r * step + i]) != 0x5a) FAIL("writes behind a row");
    }
  }
}

/// Rows that go past the caches one by one, as some CPUs like it, in parts of many columns.
template <class S, class Arch>
void check_in_order(index_t rows, index_t n) {
  if constexpr (!std::is_same_v<Arch, simd::scalar_arch>) {
    using form = simd::detail::encoding_form<S>;
    using encoder = simd::column_encoder<S, simd::from_f32, simd::kernel<simd::op::encode, S, Arch>>;
    constexpr auto by = simd::detail::fast_quotient<form, Arch>;
    const column_input<S> in(rows, n, false);
    check::fenced<float> x(in.x);
    std::vector<float> memory(static_cast<std::size_t>(encoder::memory_for(n) + 1));
    const encoder columns(in.scales.data(), S::has_zero_point ? in.zeros.data() : nullptr, n, 1.f, memory.data());
    const index_t step = (n + 63) / 64 * 64, block = 4 * simd::lanes<Arch>;
    alignas(64) static std::uint8_t got[1 << 16];
    std::vector<std::uint8_t> want(static_cast<std::size_t>(rows * step), 0x5a);
    const auto all = columns.template prepared<by>(0);
    constexpr auto any = simd::numbers::any;
    simd::detail::encode_near_rows<form, by, Arch, simd::from_f32, any>(x.data(), n, rows, n, all, want.data(), step);
    for (const simd::box_requests& asks : {simd::box_requests{}, {simd::fetch::far}, {simd::fetch::far, 100}}) {
      const auto parts = simd::detail::parts_in_order<form, by>(n, sizeof(float), block, asks);
      CHECK(parts.wide % block == (parts.wide < n ? 0 : n % block));
      for (const index_t wide : {parts.wide, 2 * block}) {
        std::memset(got, 0x5a, want.size());
        simd::detail::encode_rows_in_order<form, by, Arch, simd::from_f32, any>(x.data(), n, rows, n, all, got, step,
                                                                                asks, {parts.t, wide, parts.pays});
        simd::stream_fence<Arch>();
        INFO(rows, " rows of ", n, ", ", wide, " columns at a time");
        CHECK(std::memcmp(got, want.data(), want.size()) == 0);
      }
    }
  }
}

/// Scales that columns share, `length` each: codes, and divisors, are those of their copies.
template <class S, class Arch>
void check_shared(index_t n, index_t length, bool odd) {
  if constexpr (!std::is_same_v<Arch, simd::scalar_arch>) {
    using encoder = simd::column_encoder<S, simd::from_f32, simd::kernel<simd::op::encode, S, Arch>>;
    constexpr index_t rows = 5;
    const column_input<S> in(rows, n, odd);
    check::fenced<float> shared(index_t{(n + length - 1) / length}), copies(n);
    for (index_t i = 0; i < shared.size(); ++i) shared[i] = in.scales[static_cast<std::size_t>(i % n)];
    for (index_t c = 0; c < n; ++c) copies[c] = shared[c / length];
    const std::int32_t* z = S::has_zero_point ? in.zeros.data() : nullptr;
    const float tensor_scale = S::has_tensor_scale ? 0.37f : 1.f;
    const index_t step = units<S>(n);
    const auto size = static_cast<std::size_t>(encoder::memory_for(n) + 1);
    for (const bool fitting : {false, true}) {
      std::vector<float> x = in.x, memory(size), other(size);
      if (fitting)
        for (index_t i = 0; i < rows * n; ++i) x[static_cast<std::size_t>(i)] = copies[i % n] * 0.5f;
      std::vector<simd::code_unit_t<S>> want(static_cast<std::size_t>(rows * step)), got(want.size());
      encoder(copies.data(), z, n, tensor_scale, memory.data(), fitting && !odd)
          .encode(x.data(), n, rows, 0, n, want.data(), step);
      encoder(copies.data(), z, n, tensor_scale, other.data(), fitting && !odd, {shared.data(), length})
          .encode(x.data(), n, rows, 0, n, got.data(), step);
      INFO(n, " columns, ", length, " share a scale", odd ? ", odd scales" : "");
      REQUIRE(std::memcmp(got.data(), want.data(), want.size() * sizeof(want[0])) == 0);
      REQUIRE(std::memcmp(memory.data(), other.data(), static_cast<std::size_t>(n) * sizeof(float)) == 0);
    }
  }
}
template <class S>
void check_shared() {
  check::archs::for_each([](auto arch) {
    for (const bool odd : {false, true})
      for (const index_t n : {1, 17, 64, 515, 2000})
        for (const index_t length : {2, 5, 16, 32, 100}) check_shared<S, decltype(arch)>(n, length, odd);
  });
}

/// Codes of `rows` rows of n elements, every `length` of them with scales of their own, turned.
template <class S, class Arch>
void check_turned(index_t rows, index_t n, index_t length, index_t col, bool fitting, bool odd) {
  if constexpr (!std::is_same_v<Arch, simd::scalar_arch>) {
    using encoder = simd::column_encoder<S, simd::from_f32, simd::kernel<simd::op::encode, S, Arch>>;
    const index_t blocks = (rows + length - 1) / length, wide = col + n, x_step = wide + 1, to_step = rows + 3;
    const column_input<S> in(blocks, wide, odd);
    std::vector<encoder> encoders;
    std::vector<std::vector<float>> memory, scales;
    std::vector<std::vector<std::int32_t>> zeros;
    for (index_t b = 0; b < blocks; ++b) {
      scales.emplace_back(in.scales), zeros.emplace_back(in.zeros);
      std::rotate(scales.back().begin(), scales.back().begin() + b % wide, scales.back().end());
      std::rotate(zeros.back().begin(), zeros.back().begin() + b % wide, zeros.back().end());
      memory.emplace_back(static_cast<std::size_t>(encoder::memory_for(wide) + 1));
      if (!odd)
        for (std::int32_t& zero : zeros.back()) zero = std::max(zero, 0);  // of any architecture's fast path
    }
    check::fenced<float> x((rows - 1) * x_step + n);
    for (index_t i = 0; i < x.size(); ++i)
      x[i] = fitting ? 0.25f * in.scales[0] : in.x[static_cast<std::size_t>(i) % in.x.size()];
    const float tensor_scale = S::has_tensor_scale ? 0.37f : 1.f;
    for (std::size_t b = 0; b < scales.size(); ++b)
      encoders.emplace_back(scales[b].data(), S::has_zero_point ? zeros[b].data() : nullptr, wide, tensor_scale,
                            memory[b].data(), fitting && !odd);
    std::vector<std::uint8_t> got(static_cast<std::size_t>(n * to_step), 0x5a), want(static_cast<std::size_t>(n));
    const bool done =
        encoder::encode_turned(encoders.data(), length, x.data(), x_step, rows, col, n, got.data(), to_step);
    INFO(std::string(name<S>), ": ", rows, " rows of ", n, " elements from ", col, ", ", length,
         odd ? " alike, odd scales" : " alike");
    if (!odd) CHECK(done);
    if (!done) {
      CHECK(std::all_of(got.begin(), got.end(), [](std::uint8_t c) { return c == 0x5a; }));
      return;
    }
    constexpr int mask = (1 << S::code_format::bits) - 1;
    bool same = true;
    for (index_t r = 0; r < to_step; ++r) {
      if (r < rows)
        encoders[static_cast<std::size_t>(r / length)].encode_bytes(x.data() + r * x_step, x_step, 1, col, n,
                                                                    want.data(), n);
      for (index_t i = 0; i < n; ++i) {
        const std::uint8_t code = got[static_cast<std::size_t>(i * to_step + r)];
        same = same && (r < rows ? ((code ^ want[static_cast<std::size_t>(i)]) & mask) == 0 : code == 0x5a);
      }
    }
    CHECK(same);
  }
}

template <class S>
void check_all() {
  check::archs::for_each([](auto arch) {
    using A = decltype(arch);
    for (const bool odd : {false, true})
      for (const bool streams : {false, true})
        for (const index_t cols : {1, 7, 63, 64, 65, 130, 515, 1100})
          for (const index_t rows : {1, 2, 8, 9, 19})
            check_columns<S, A>(rows, cols, cols > 64 ? 16 : 0, cols % 64 == 2 ? 64 - cols % 64 : 3, odd, streams);
    check_columns<S, A>(9, 128, 0, 0, false, true);
    for (const bool odd : {false, true})  // every second row begins alike
      check_columns<S, A>(19, 1130, 0, 96 - units<S>(1130) % 64, odd, true);
  });
}

}  // namespace

TEST_CASE("column_encoder: any number of rows and columns, whole or in part, streamed or not, as the reference") {
  check_all<int8_per_channel<1>>();
  check_all<with<int8_per_channel<1>, reciprocal>>();
  check_all<scheme<uint8, per_channel<1>, zero_point<int32>, static_only>>();
  check_all<scheme<int4, per_channel<1>>>();
  check_all<along<0, mxfp8_e4m3>>();
  check_all<along<0, mxfp4>>();
}

TEST_CASE("encode_rows_in_order: parts of long rows, and what is left of them, as rows in a cache") {
  check::archs::for_each([](auto arch) {
    for (const index_t n : {64, 100, 1100, 4096, 4097, 4160, 8192 + 130})
      for (const index_t rows : {1, 3}) {
        check_in_order<int8_per_channel<1>, decltype(arch)>(rows, n);
        check_in_order<uint8_per_channel<1>, decltype(arch)>(rows, n);
        check_in_order<with<int8_per_channel<1>, reciprocal>, decltype(arch)>(rows, n);
      }
  });
}

TEST_CASE("column_encoder: codes of rows that share scales in blocks, turned, are those of the rows") {
  const auto check = []<class S>() {
    check::archs::for_each([](auto arch) {
      using A = decltype(arch);
      constexpr index_t lanes = simd::lanes<A>;
      for (const bool odd : {false, true})
        for (const bool fitting : {false, true})
          for (const index_t rows : {1, 3, 16, 63, 64, 100, 256})
            for (const index_t length : {16, 32, 256})
              for (const index_t steps : {1, 3, 9})
                check_turned<S, A>(rows, steps * lanes, length, (steps - 1) * lanes, fitting, odd);
    });
  };
  check.operator()<int8_per_channel<1>>();
  check.operator()<scheme<uint8, per_channel<1>, zero_point<int32>, static_only>>();
  check.operator()<along<0, mxfp8_e4m3>>();
  check.operator()<along<0, mxfp4>>();
}

TEST_CASE("encode_columns: more columns than are prepared at a time") {
  using S = int8_per_channel<1>;
  const index_t rows = 3, cols = 5000;
  const column_input<S> in(rows, cols, false);
  std::vector<std::int8_t> got(static_cast<std::size_t>(rows * cols)), want(got.size());
  simd::encode_columns<S>(in.x.data(), rows, cols, cols, in.scales.data(), nullptr, got.data(), cols);
  for (index_t r = 0; r < rows; ++r)
    simd::encode_vector<S>(in.x.data() + r * cols, cols, in.scales.data(), nullptr, want.data() + r * cols);
  CHECK(got == want);
}

TEST_CASE_TEMPLATE("encode_columns: sources of 16 bits, zero points far from the codes among them", From,
                   simd::from_bf16, simd::from_f16) {
  using far_zeros = scheme<uint8, per_channel<1>, zero_point<int32>, static_only>;
  constexpr index_t rows = 3, cols = 150;
  for (const bool odd : {false, true}) {
    const column_input<far_zeros> in(rows, cols, odd);
    std::vector<std::uint16_t> x;
    for (const float v : in.x)
      x.push_back(static_cast<std::uint16_t>(std::is_same_v<From, simd::from_bf16> ? encode<bf16>(v) : encode<f16>(v)));
    std::vector<std::uint8_t> got(static_cast<std::size_t>(rows * cols));
    simd::encode_columns<far_zeros, From>(x.data(), rows, cols, cols, in.scales.data(), in.zeros.data(), got.data(),
                                          cols);
    int different = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      const std::size_t col = i % static_cast<std::size_t>(cols);
      different += got[i] != quantize_element<far_zeros>(simd::number<From>(x[i]), {in.scales[col]}, in.zeros[col]);
    }
    CHECK(different == 0);
  }
}

TEST_CASE("column_encoder: scales that columns share") {
  check_shared<int8_per_tensor>();
  check_shared<uint8_per_tensor>();
  check_shared<mxfp8_e4m3>();
  check_shared<scheme<int4, group<32>>>();
  check_shared<nvfp4>();
}
