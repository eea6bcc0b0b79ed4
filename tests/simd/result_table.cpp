// Mirrors include/qtensor/simd/result_table.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/scheme/schemes.hpp>
#include <qtensor/simd/result_table.hpp>
#include <qtensor/tensor/bytes.hpp>

#include "check.hpp"

using namespace qtensor;

namespace {

/// Any results at all, and such as change their sign with the upper bit of the code.
template <class F, class Arch>
void check_table(bool mirrored) {
  if constexpr (simd::result_tabulated<F, Arch>) {
    using table_type = simd::result_table<F, Arch>;
    std::vector<std::uint16_t> results(static_cast<std::size_t>(table_type::codes));
    for (std::size_t c = 0; c < results.size(); ++c) {
      results[c] = static_cast<std::uint16_t>(check::random_bits()());
      if (mirrored && c >= results.size() / 2)
        results[c] = static_cast<std::uint16_t>(results[c - results.size() / 2] ^ 0x8000u);
    }
    const table_type table(results.data());
    for (index_t n = 0; n <= 16 * simd::lanes<Arch> + 3; ++n)
      for (const bool at_start : {false, true}) {
        check::fenced<std::uint8_t> codes(check::random_codes<std::uint8_t>(simd::packed_bytes<F::bits>(n)), at_start);
        check::fenced<std::uint16_t> out(n, at_start);
        table(codes.data(), n, out.data(), {n % 3 == 0 ? simd::fetch::near : simd::fetch::nothing, n % 2 == 0});
        for (index_t i = 0; i < n; ++i)
          if (out[i] != results[qtensor::detail::load_bits<F::bits>(codes.data(), i * F::bits)])
            FAIL(std::string(F::name), " element ", i, " of ", n);
      }
    const index_t n = 9 * simd::lanes<Arch> + 1, step = n + 7, bytes = simd::packed_bytes<F::bits>(n) + 2, rows = 3;
    check::fenced<std::uint8_t> codes(check::random_codes<std::uint8_t>(rows * bytes - 2), false);
    std::vector<std::uint16_t> out(static_cast<std::size_t>(rows * step), 0x1234);
    table.rows(codes.data(), bytes, rows, n, out.data(), step, {simd::fetch::nothing, true});
    for (index_t r = 0; r < rows; ++r)
      for (index_t i = 0; i < step; ++i) {
        const auto expected =
            i < n ? results[qtensor::detail::load_bits<F::bits>(codes.data() + r * bytes, i * F::bits)] : 0x1234;
        if (out[static_cast<std::size_t>(r * step + i)] != expected) FAIL(std::string(F::name), " row ", r, " ", i);
      }
  }
}

struct int5 : qtensor::integer<5, signed> {
  static constexpr qtensor::fixed_string name = "int5";
};

template <class F>
void check_format() {
  check::on_every_arch([](auto arch) {
    check_table<F, decltype(arch)>(false);
    check_table<F, decltype(arch)>(true);
  });
  CHECK(simd::result_table<F, simd::best_arch>::codes == index_t{1} << F::bits);
}

}  // namespace

TEST_CASE("result_table: every length, both ends fenced, any results") {
  check_format<uint2>();
  check_format<int4>();
  check_format<int5>();
  check_format<e2m1>();
  check_format<e2m3>();
  if constexpr (simd::result_tabulated<int8, simd::best_arch>) {
    check_format<int8>();
    check_format<e4m3>();
    check_format<hif8>();
  }
}
