// Mirrors include/qtensor/simd/run_parameters.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/scheme/schemes.hpp>
#include <qtensor/simd/run_parameters.hpp>
#include <utility>
#include <vector>

#include "check.hpp"

using namespace qtensor;

namespace {

using scheme_type = scheme<uint8, group<32>, zero_point<int32>>;

/// The lanes of what batch k of a block is divided by and moved by.
template <simd::quotient_by By, class A, class Parameters>
struct lanes_of {
  std::vector<float> value;
  std::vector<std::int32_t> zero;

  lanes_of(const Parameters& p, int k)
      : value(static_cast<std::size_t>(simd::lanes<A>)), zero(static_cast<std::size_t>(simd::lanes<A>)) {
    const simd::divisor<By, A> d = p.template divide<By>(k);
    const simd::ints<A> z = p.zero_points(k);
    simd::store(value.data(), d.value);
    simd::store(zero.data(), z);
  }
};

/// Blocks of parameters say for each element what uniform_parameters say of its own scale and zero point.
template <simd::quotient_by By, class A, class Parameters>
void check_blocks(Parameters p, index_t blocks, index_t group, const std::vector<float>& scales,
                  const std::vector<std::int32_t>& zeros) {
  for (index_t block = 0; block < blocks; ++block, p.next())
    for (int k = 0; k < 4; ++k) {
      const lanes_of<By, A, Parameters> got(p, k);
      for (index_t i = 0; i < simd::lanes<A>; ++i) {
        const auto g = static_cast<std::size_t>(((4 * block + k) * simd::lanes<A> + i) / group);
        using uniform = simd::detail::uniform_parameters<scheme_type, By, A>;
        const lanes_of<By, A, uniform> want(uniform({scales[g]}, zeros[g]), k);
        const auto lane = static_cast<std::size_t>(i);
        if (bits_of(got.value[lane]) != bits_of(want.value[lane]) || got.zero[lane] != want.zero[lane])
          FAIL("group ", group, " block ", block, " batch ", k, " lane ", i);
      }
    }
}

struct numbers {
  std::vector<float> scales;
  std::vector<std::int32_t> zeros;
  explicit numbers(index_t n) {
    for (index_t i = 0; i < n; ++i) {
      scales.push_back(exp2i(static_cast<int>(check::random_below(80)) - 40));  // regular on every architecture
      zeros.push_back(static_cast<std::int32_t>(check::random_below(256)));
    }
  }
};

template <class Check>
void on_vectors(Check check) {
  check::archs::for_each([&](auto arch) {
    if constexpr (!std::is_same_v<decltype(arch), simd::scalar_arch>) check(arch);
  });
}

}  // namespace

TEST_CASE("parameters of elements and of groups are those of each one's scale") {
  on_vectors([](auto arch) {
    using A = decltype(arch);
    using simd::quotient_by;
    constexpr quotient_by by = simd::detail::fast_quotient<scheme_type, A>;
    constexpr index_t lanes = simd::lanes<A>, blocks = 6;
    const numbers own(4 * lanes * blocks);
    const simd::detail::vector_parameters<scheme_type, A> elements{own.scales.data(), own.zeros.data(), 1.f};
    check_blocks<by, A>(elements, blocks, 1, own.scales, own.zeros);

    const auto of_groups = [&]<int Batches>(std::integral_constant<int, Batches>, index_t group) {
      const index_t groups = 4 * lanes * blocks / group;
      const numbers few(groups);
      simd::detail::group_table<scheme_type, A> table;
      table.template fill<by>(few.scales.data(), few.zeros.data(), groups, 1.f);
      const simd::detail::group_parameters<scheme_type, by, A, Batches> p{&table, few.scales.data(), groups - 1, 1.f,
                                                                          group / (4 * lanes)};
      check_blocks<by, A>(p, blocks, group, few.scales, few.zeros);
    };
    of_groups(std::integral_constant<int, 1>{}, lanes);
    of_groups(std::integral_constant<int, 2>{}, 2 * lanes);
    of_groups(std::integral_constant<int, 4>{}, 4 * lanes);
    of_groups(std::integral_constant<int, 4>{}, 12 * lanes);
  });
}

TEST_CASE("a last block is padded with a scale of 1 and a zero point of 0") {
  on_vectors([](auto arch) {
    using A = decltype(arch);
    constexpr simd::quotient_by by = simd::detail::fast_quotient<scheme_type, A>;
    constexpr index_t step = 4 * simd::lanes<A>;
    for (index_t n = 1; n < step; ++n) {
      check::fenced<float> scales(std::vector<float>(static_cast<std::size_t>(n), 3.f));
      check::fenced<std::int32_t> zeros(std::vector<std::int32_t>(static_cast<std::size_t>(n), 7));
      simd::detail::tail_space<A> space;
      simd::detail::vector_parameters<scheme_type, A> p{scales.data(), zeros.data(), 1.f};
      p.pad(space, n);
      std::vector<float> want_scales(static_cast<std::size_t>(step), 1.f);
      std::vector<std::int32_t> want_zeros(static_cast<std::size_t>(step), 0);
      std::fill_n(want_scales.begin(), n, 3.f);
      std::fill_n(want_zeros.begin(), n, 7);
      check_blocks<by, A>(p, 1, 1, want_scales, want_zeros);
    }
  });
}

TEST_CASE("what vectors cannot take is found at every place") {
  on_vectors([](auto arch) {
    using A = decltype(arch);
    using namespace simd::detail;
    for (index_t n = 1; n <= 3 * simd::lanes<A>; ++n) {
      numbers own(n);
      CHECK(!any_irregular<scheme_type, A>(own.scales.data(), own.zeros.data(), n));
      CHECK(all_regular_divisors<scheme_type, A>(own.scales.data(), n, 1.f));
      constexpr simd::quotient_by by = fast_quotient<scheme_type, A>;
      group_table<scheme_type, A> table;
      CHECK(table.template fill<by>(own.scales.data(), own.zeros.data(), n, 1.f));
      for (index_t i = 0; i < n; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const float scale = std::exchange(own.scales[at], 0.f);
        if (!any_irregular<scheme_type, A>(own.scales.data(), own.zeros.data(), n)) FAIL("scale 0 at ", i, " of ", n);
        own.scales[at] = 0x1p-140f;
        if (all_regular_divisors<scheme_type, A>(own.scales.data(), n, 1.f)) FAIL("tiny scale at ", i, " of ", n);
        if (table.template fill<by>(own.scales.data(), own.zeros.data(), n, 1.f))
          FAIL("a table takes the tiny scale at ", i, " of ", n);
        own.scales[at] = scale;
        constexpr auto regular = simd::regular_zero_points<scheme_type, A>();
        const std::int32_t zero = own.zeros[at];
        for (const std::int32_t far : {std::numeric_limits<std::int32_t>::min(), regular[0] - 1, regular[1] + 1,
                                       std::numeric_limits<std::int32_t>::max()}) {
          own.zeros[at] = far;
          if (!any_irregular<scheme_type, A>(own.scales.data(), own.zeros.data(), n))
            FAIL("zero point ", far, " at ", i, " of ", n);
        }
        for (const std::int32_t last : regular) {
          own.zeros[at] = last;
          if (any_irregular<scheme_type, A>(own.scales.data(), own.zeros.data(), n)) FAIL("zero point ", last);
        }
        own.zeros[at] = zero;
      }
    }
  });
}

TEST_CASE("batches of a group: known for one, two and whole blocks of four") {
  on_vectors([](auto arch) {
    using A = decltype(arch);
    using namespace simd::detail;
    constexpr index_t lanes = simd::lanes<A>;
    CHECK(batches_of_group<scheme<int8, group<lanes>>, A>() == 1);
    CHECK(batches_of_group<scheme<int8, group<2 * lanes>>, A>() == 2);
    CHECK(batches_of_group<scheme<int8, group<8 * lanes>>, A>() == 4);
    CHECK(batches_of_group<scheme<int8, group<3 * lanes>>, A>() == 0);
    CHECK(batches_of_group<int8_per_tensor, A>() == 0);
  });
}
