// Mirrors include/qtensor/simd/quantize.hpp: runs of bf16 and f16, each architecture beside the reference on the floats
// they are. SPDX-License-Identifier: BSD-3-Clause
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
  simd::archs::for_each([](auto arch) {
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

}  // namespace

TEST_CASE("16-bit numbers: integers, with zero points and without") {
  check_readings<int8_group<32>>();
  check_readings<scheme<uint8, group<32>, zero_point<int32>, static_only>>();
}
TEST_CASE("16-bit numbers: minifloats, also of 4 bits") {
  check_readings<mxfp8_e4m3>();
  check_readings<with<nvfp4, tensor_scale<f32>>>();
}
TEST_CASE("16-bit numbers: HiFloat8") { check_readings<scheme<hif8, group<32>>>(); }
