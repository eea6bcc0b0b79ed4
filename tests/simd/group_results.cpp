// Mirrors include/qtensor/simd/group_results.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/scheme/schemes.hpp>
#include <qtensor/simd/dequantize.hpp>
#include <qtensor/simd/group_results.hpp>

#include "check.hpp"

using namespace qtensor;

namespace {

struct squares {  // a list of values, in no order
  static constexpr int bits = 4;
  static constexpr bool is_integer = false, is_signed = true;
  static constexpr float max = 36.f, min = -49.f;
  static constexpr fixed_string name = "squares";
  static constexpr float decode(std::uint32_t code) {
    const auto c = static_cast<float>(code & 7);
    return (code & 8) != 0 ? -c * c : 0.7f * c;
  }
};

// Scales are values of the scheme's own format, so that products may be bf16 numbers as they are.
template <class S, class F>
void check_groups() {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    if constexpr (!std::same_as<A, simd::scalar_arch>) {
      using reference = simd::kernel<simd::op::decode, S, simd::scalar_arch>;
      using kernel = simd::kernel<simd::op::decode, S, A>;
      for (const index_t group : {16, 32, 64, 96, 128})
        for (const index_t n : {16, 32, 160, 256, 1000, 5000}) {
          const index_t entries = divide_up(n, group);
          check::fenced<std::uint8_t> codes(check::random_codes<std::uint8_t>((n + 1) / 2));
          check::fenced<float> scales(entries);
          check::fenced<std::int32_t> zeros(entries);
          for (index_t g = 0; g < entries; ++g) {
            if constexpr (S::scale_format::bits == 8)
              scales[g] = decode<typename S::scale_format>(check::random_below(n % 5 == 0 ? 256 : 126));
            else
              scales[g] = check::hard_finite();
            zeros[g] = static_cast<std::int32_t>(check::random_below(16));
          }
          const simd::block_arrays p{scales.data(), S::has_zero_point ? zeros.data() : nullptr, nullptr, 1.f};
          std::vector<std::uint16_t> want(static_cast<std::size_t>(n));
          check::fenced<std::uint16_t> got(n);
          reference::template grouped<F>(codes.data(), n, group, p, want.data());
          kernel::template grouped<F>(codes.data(), n, group, p, got.data());
          for (index_t i = 0; i < n; ++i) {
            const std::uint16_t w = want[static_cast<std::size_t>(i)];
            if (got[i] != w)
              FAIL(std::string(S::name), " ", std::string(simd::arch_name<A>), " group ", group, " element ", i, " of ",
                   n, ": ", got[i], " instead of ", w);
          }
        }
    }
  });
}
template <class S>
void check_both() {
  check_groups<stored<S>, bf16>();
  check_groups<stored<S>, f16>();
}

}  // namespace

TEST_CASE("groups of 4-bit codes as 16-bit numbers equal the reference, rounded or bf16 numbers as they are") {
  check_both<nvfp4>();
  check_both<int4_group<32>>();
  check_both<scheme<uint4, group<32>, zero_point<uint8>>>();
  check_both<scheme<squares, group<64>, static_only>>();
}
