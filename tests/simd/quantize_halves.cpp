// Mirrors include/qtensor/simd/quantize.hpp: runs of bf16 and f16, each architecture beside the reference on floats.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/simd/quantize.hpp>
#include <type_traits>

#include "runs.hpp"

using namespace runs;

namespace {

/// The same numbers as 16 bits, read as they are, beside the reference on the floats they are.
template <class S, class Arch, class From>
void check_reading(index_t n, index_t group) {
  using reference = simd::kernel<simd::op::encode, S, simd::scalar_arch>;
  using narrow_reference = typename reference::template reading<From>;
  using kernel = typename simd::kernel<simd::op::encode, S, Arch>::template reading<From>;
  using unit = simd::code_unit_t<S>;
  const run_input in = run_input::make<S>(n, group == 0 ? n + 1 : group);
  const float tensor_scale = S::has_tensor_scale ? 0.37f : 1.f;
  std::vector<std::uint16_t> narrow;
  std::vector<float> wide;
  for (const float v : in.x) {
    narrow.push_back(static_cast<std::uint16_t>(encode<simd::format_of<From>, nearest_even, to_special>(v)));
    wide.push_back(simd::number<From>(narrow.back()));
  }
  for (const bool at_start : {false, true}) {
    check::fenced<std::uint16_t> x(narrow, at_start);
    check::fenced<unit> got(units<S>(n), at_start);
    std::vector<unit> want(static_cast<std::size_t>(units<S>(n))), also(want.size());
    const std::int32_t* z = S::has_zero_point ? in.zeros.data() : nullptr;
    const auto run = [&]<class Kernel>(std::type_identity<Kernel>, const auto* from, unit* codes) {
      if (group == 0)
        Kernel::uniform(from, n, {in.scales[0], tensor_scale}, S::has_zero_point ? in.zeros[0] : 0, codes);
      else if (group == 1)
        Kernel::vector(from, n, in.scales.data(), z, tensor_scale, codes);
      else
        Kernel::grouped(from, n, group, in.scales.data(), z, tensor_scale, codes);
    };
    run(std::type_identity<reference>{}, wide.data(), want.data());
    run(std::type_identity<narrow_reference>{}, narrow.data(), also.data());
    run(std::type_identity<kernel>{}, x.data(), got.data());
    compare_codes<S, simd::scalar_arch>(also.data(), want.data(), wide.data(), n, "16 bits");
    compare_codes<S, Arch>(got.data(), want.data(), wide.data(), n, "16 bits, group " + std::to_string(group));
  }
}

template <class S>
void check_readings() {
  check::archs::for_each([](auto arch) {
    using A = decltype(arch);
    for (index_t n = 1; n <= 8 * simd::lanes<A> + 3; ++n)
      for (const index_t group : {0, 1, 5, 16, 32, 64}) {
        check_reading<S, A, simd::from_bf16>(n, group);
        check_reading<S, A, simd::from_f16>(n, group);
      }
    for (const index_t group : {0, 1, 8, 16, 32, 64, 600, 2056})
      for (const index_t n : {515, 2051, 4131}) {
        check_reading<S, A, simd::from_bf16>(n, group);
        check_reading<S, A, simd::from_f16>(n, group);
      }
  });
  CHECK(simd::reads_elements<S, simd::from_bf16>);
}

/// Every number of 16 bits under many scales, each architecture beside the reference.
template <class From, class S>
void check_every_number(std::int32_t zero) {
  std::vector<std::uint16_t> x(0x10000);
  std::vector<float> wide;
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<std::uint16_t>(i);
    wide.push_back(simd::number<From>(x[i]));
  }
  std::vector<float> scales = hard_scales();
  for (int i = 0; i < 40; ++i) scales.push_back(0.01f + static_cast<float>(check::random_below(1u << 20)) * 0x1p-20f);
  // A number of eight bits over a half-integer of many: their quotient is next to it, or it.
  for (int i = 0; i < 200; ++i)
    scales.push_back(static_cast<float>(128 + check::random_below(128)) * 0x1p-20f /
                     (static_cast<float>(128 + check::random_below(127)) + 0.5f));

  // The reference takes many times longer for what has no integers, and one product serves them all alike.
  constexpr std::size_t one_in = check::one_in * (S::code_format::is_integer ? 1 : 8);
  std::vector<std::uint8_t> got(x.size()), want(x.size());
  const auto codes_in = [](auto& bytes) { return reinterpret_cast<simd::code_unit_t<S>*>(bytes.data()); };
  const auto n = static_cast<index_t>(x.size());
  for (std::size_t k = 0; k < scales.size(); k += one_in) {
    const float s = scales[k];
    simd::reference_encoder<S>::uniform(wide.data(), n, {s}, zero, codes_in(want));
    check::archs::for_each([&](auto arch) {
      using kernel = simd::kernel<simd::op::encode, S, decltype(arch)>;
      kernel::template reading<From>::uniform(x.data(), n, {s}, zero, codes_in(got));
      for (std::size_t i = 0; i < x.size(); ++i)
        if (got[i] != want[i]) FAIL(kernel::name, ": ", wide[i], " / ", s, ": ", +got[i], ", not ", +want[i]);
    });
  }
  check::archs::for_each([&](auto arch) {
    int exact = 0, tried = 0;
    for (const float s : scales)
      if (s >= 0.01f && s <= 2.f)
        ++tried, exact += simd::detail::one_product_is_exact<From, decltype(arch)>(s, simd::detail::middle_count<S>());
    CHECK(exact > tried / 2);
    if (S::code_format::is_integer) CHECK(exact < tried);  // both ways; minifloats have few middles
  });
}

}  // namespace

TEST_CASE("16-bit numbers: integers, with zero points and without") {
  check_readings<int8_group<32>>();
  check_readings<scheme<uint8, group<32>, zero_point<int32>, static_only>>();
  check_readings<scheme<uint16, group<32>, zero_point<int32>, static_only>>();
}
TEST_CASE("16-bit numbers: minifloats, also of 4 bits") {
  check_readings<mxfp8_e4m3>();
  check_readings<with<nvfp4, tensor_scale<f32>>>();
  check_readings<with<mxfp8_e4m3, nearest_away>>();
}
TEST_CASE("16-bit numbers: HiFloat8") { check_readings<scheme<hif8, group<32>>>(); }

TEST_CASE("16-bit numbers under one scale: every number, by one product where that is exact and where it is not") {
  using plain = scheme<int8, per_tensor, static_only>;
  using with_zero = scheme<uint8, per_tensor, zero_point<uint8>, static_only>;
  check_every_number<simd::from_bf16, plain>(0);
  check_every_number<simd::from_bf16, with_zero>(255);
  check_every_number<simd::from_f16, plain>(0);
  check_every_number<simd::from_f16, with_zero>(3);
  check_every_number<simd::from_bf16, scheme<uint8, per_tensor, static_only>>(0);
  check_every_number<simd::from_bf16, scheme<e4m3, per_tensor, static_only>>(0);
  check_every_number<simd::from_bf16, scheme<hif8, per_tensor, static_only>>(0);
  check_every_number<simd::from_f16, scheme<e5m2, per_tensor, static_only>>(0);
}

TEST_CASE("bf16 cast to minifloats that need no floats for it: every number, NaN among others") {
  const auto check_cast = []<class S>(S) {
    std::vector<std::uint16_t> x;
    // NaN everywhere would leave nothing else: it comes to every eighth block of 64 numbers.
    for (std::uint32_t i = 0; i < 0x10000; ++i) {
      const bool is_nan = (i & 0x7fff) > 0x7f80 && i / 64 % 8 != 0;
      x.push_back(static_cast<std::uint16_t>(is_nan ? 0x3f80 : i));
    }
    for (std::uint32_t i = 0; i < 64; ++i) x[1000 * i + i] = static_cast<std::uint16_t>(0x7f81 + 0x8000 * (i % 2));
    const auto n = static_cast<index_t>(x.size());
    std::vector<simd::code_unit_t<S>> got(static_cast<std::size_t>(units<S>(n))), want(got.size());
    simd::reference_encoder<S, simd::from_bf16>::uniform(x.data(), n, {1.f}, 0, want.data());
    check::archs::for_each([&](auto arch) {
      using kernel = typename simd::kernel<simd::op::encode, S, decltype(arch)>::template reading<simd::from_bf16>;
      kernel::uniform(x.data(), n, {1.f}, 0, got.data());
      CHECK(std::memcmp(got.data(), want.data(), got.size()) == 0);
    });
  };
  check_cast(scheme<e5m2, per_tensor, static_only>{});
  check_cast(scheme<e2m1, per_tensor, static_only>{});
}
