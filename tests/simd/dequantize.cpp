// Mirrors include/qtensor/simd/dequantize.hpp: runs of every length, granularity and place in memory, each architecture
// against the reference.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/simd/dequantize.hpp>

#include "format/of_users.hpp"
#include "runs.hpp"

using namespace runs;

namespace {

template <class F>
std::uint32_t bits_in(storage_t<F> number) {
  if constexpr (std::is_same_v<F, f32>)
    return bits_of(number);
  else
    return number;
}

/// Ordinary scales, hard ones, and those that are no numbers.
float any_scale() {
  const float hard[] = {0.f, -0.f, 1.f, -1.f, 0x1p-126f, 0x1p-127f, 0x1p-149f, 0x1p-117f, -0x1p127f};
  switch (check::random_below(8)) {
    case 0:
      return hard[check::random_below(std::size(hard))];
    case 1:
      return check::random_below(2) == 0 ? infinity : quiet_nan;
    case 2:
      return exp2i(static_cast<int>(check::random_below(260)) - 130);
    default:
      return check::hard_finite();
  }
}

/// Group 0: one scale; 1: one for each element. `tame` scales are ordinary powers of two.
template <class S, class F, class Arch>
void check_run(index_t n, index_t group, bool tame = false) {
  if constexpr (!std::is_same_v<Arch, simd::scalar_arch>) {
    using reference = simd::kernel<simd::op::decode, S, simd::scalar_arch>;
    using kernel = simd::kernel<simd::op::decode, S, Arch>;
    using unit = simd::code_unit_t<S>;
    using number = storage_t<F>;
    const index_t entries = group == 0 ? 1 : divide_up(n, group);
    for (const bool at_start : {false, true}) {
      const simd::traffic t = n % 2 == 0 ? simd::traffic{simd::fetch::near, true} : simd::traffic{};
      check::fenced<unit> codes(check::random_codes<unit>(units<S>(n)), at_start);
      check::fenced<float> scales(entries, at_start), offsets(entries, at_start);
      check::fenced<number> got(n, at_start);
      check::fenced<std::int32_t> zeros(entries, at_start);
      for (index_t g = 0; g < entries; ++g) {
        scales[g] = tame ? exp2i(static_cast<int>(check::random_below(40)) - 20) : any_scale();
        offsets[g] = check::hard_finite();
        zeros[g] = check::random_below(16) == 0 ? static_cast<std::int32_t>(check::random_bits()())
                                                : static_cast<std::int32_t>(check::random_below(256)) - 128;
      }
      const simd::block_arrays p{scales.data(), S::has_zero_point ? zeros.data() : nullptr,
                                 S::has_offset ? offsets.data() : nullptr, 0.37f};
      std::vector<float> want(static_cast<std::size_t>(n));
      if (group == 0) {
        reference::uniform(codes.data(), n, p, want.data());
        kernel::template uniform<F>(codes.data(), n, p, got.data(), t);
      } else if (group == 1) {
        reference::vector(codes.data(), n, p, want.data());
        kernel::template vector<F>(codes.data(), n, p, got.data(), t);
      } else {
        reference::grouped(codes.data(), n, group, p, want.data());
        kernel::template grouped<F>(codes.data(), n, group, p, got.data(), t);
      }
      for (index_t i = 0; i < n; ++i) {
        const float s = scales[group == 0 ? 0 : i / group];
        const std::uint32_t w = encode<F, to_special>(want[static_cast<std::size_t>(i)]), is = bits_in<F>(got[i]);
        if (is != w && !(is_nan(decode<F>(is)) && is_nan(decode<F>(w)) && !is_finite(s)))
          FAIL(std::string(S::name), " as ", std::string(std::string_view(F::name)), " ",
               std::string(simd::arch_name<Arch>), " group ", group, " element ", i, " of ", n, ": code ",
               code_at<S>(codes.data(), i), " times ", hex(bits_of(s)), " gives ", hex(is), ", not ", hex(w));
      }
    }
  }
}

/// Three rows, with gaps between them, equal themselves one by one, past the caches or not; these begin `shift` numbers
/// behind lines of the caches.
template <class S, class F, class Arch>
void check_columns(index_t n, bool tame, bool streams, index_t shift) {
  if constexpr (!std::is_same_v<Arch, simd::scalar_arch>) {
    using kernel = simd::kernel<simd::op::decode, S, Arch>;
    using unit = simd::code_unit_t<S>;
    const index_t code_step = units<S>(n) + 3, out_step = streams ? round_up(n, 64) : n + 5;  // at lines of the caches
    check::fenced<unit> codes(check::random_codes<unit>(2 * code_step + units<S>(n)));
    check::fenced<float> scales(n), offsets(n);
    check::fenced<std::int32_t> zeros(n);
    check::fenced<storage_t<F>> got(2 * out_step + n + shift, streams);
    storage_t<F>* out = got.data() + shift;
    std::vector<storage_t<F>> want(static_cast<std::size_t>(n));
    for (index_t i = 0; i < n; ++i) {
      scales[i] = tame ? 0.01f * static_cast<float>(i + 1) : check::hard_finite();
      offsets[i] = check::hard_finite();
      zeros[i] = static_cast<std::int32_t>(check::random_below(256)) - 128;
    }
    const simd::block_arrays p{scales.data(), S::has_zero_point ? zeros.data() : nullptr,
                               S::has_offset ? offsets.data() : nullptr, 0.37f};
    kernel::template columns<F>(codes.data(), code_step, 3, n, p, kernel::template look_at_columns<F>(p, n), out,
                                out_step, {streams ? simd::fetch::pages : simd::fetch::nothing, streams});
    for (index_t r = 0; r < 3; ++r) {
      kernel::template vector<F>(codes.data() + r * code_step, n, p, want.data());
      if (std::memcmp(want.data(), out + r * out_step, static_cast<std::size_t>(n) * sizeof(want[0])) != 0)
        FAIL(std::string(S::name), " ", std::string(simd::arch_name<Arch>), " row ", r, " of ", n);
    }
    if (n < 3) return;
    kernel::template rows<F>(codes.data(), code_step, 3, n, p, kernel::template look_at_columns<F>(p, 3), out, out_step,
                             {simd::fetch::nothing, streams});
    for (index_t r = 0; r < 3; ++r) {
      kernel::template uniform<F>(codes.data() + r * code_step, n, p.from(r), want.data());
      if (std::memcmp(want.data(), out + r * out_step, static_cast<std::size_t>(n) * sizeof(want[0])) != 0)
        FAIL(std::string(S::name), " ", std::string(simd::arch_name<Arch>), " of one scale, row ", r, " of ", n);
    }
  }
}

template <class S, class F>
void check_runs_of() {
  check::archs::for_each([](auto arch) {
    using A = decltype(arch);
    constexpr index_t longest = 16 * simd::lanes<A> + 3;
    for (index_t n = 1; n <= longest; ++n)
      for (const index_t group : {0, 1}) check_run<S, F, A>(n, group);
    for (const index_t group : {2, 3, 4, 5, 7, 8, 15, 16, 24, 32, 33, 48, 64, 100, 128, 500, 512, 513, 600, 1024})
      for (const index_t n : {1, 31, 64, 65, 127, 130, 511, 512, 515, 1027, 2051}) {
        check_run<S, F, A>(n, group);
        check_run<S, F, A>(n, group, true);
      }
    if constexpr (simd::vector_decodable<S>)
      for (const index_t n : {1, 31, 64, 65, 130, 515})
        for (const bool tame : {false, true})
          for (const auto& [streams, shift] : {std::pair{false, 0}, {true, 0}, {true, 1}})
            check_columns<S, F, A>(n, tame, streams, shift);
    if constexpr (simd::turns_codes<S>)  // longer than what is turned at a time
      for (const index_t group : {0, 1, 32, 33, 1001, 4095, 4096, 4097, 9001})
        for (const index_t n : {8192, 20002, 20003}) check_run<S, F, A>(n, group);
  });
}
template <class S>
void check_runs() {
  static_assert(simd::vector_decodable<S> || simd::turns_codes<S>);
  check_runs_of<S, f32>();
  check_runs_of<S, bf16>();
  check_runs_of<S, f16>();
  CHECK(std::string(simd::kernel_name<simd::op::decode, S>()) ==
        std::string(simd::arch_name<simd::best_arch> == "portable" ? "reference" : simd::arch_name<simd::best_arch>));
}

struct uint5 : integer<5, unsigned> {
  static constexpr fixed_string name = "uint5";
};

// Policies change no value: a kernel of a user's is found under the stored form of the scheme.
struct thirds : integer<8, unsigned> {
  static constexpr fixed_string name = "thirds";
};
using thirds_scheme = scheme<thirds, group<16>, nearest_away>;

}  // namespace

template <simd::usable_arch A>
struct qtensor::simd::kernel<qtensor::simd::op::decode, qtensor::stored<thirds_scheme>, A> {
  static constexpr bool enabled = true;
  static constexpr std::string_view name = "thirds";
  static void uniform(const std::uint8_t* codes, index_t n, const block_arrays& p, float* out) {
    for (index_t i = 0; i < n; ++i) out[i] = static_cast<float>(codes[i]) / 3.f * p.scales[0];
  }
  static void vector(const std::uint8_t* codes, index_t n, const block_arrays& p, float* out) {
    uniform(codes, n, p, out);
  }
  static void grouped(const std::uint8_t* codes, index_t n, index_t, const block_arrays& p, float* out) {
    uniform(codes, n, p, out);
  }
};

TEST_CASE("int8: every length and granularity, both ends fenced") { check_runs<stored<int8_group<32>>>(); }
TEST_CASE("uint8 with zero points of 32 bits") { check_runs<stored<scheme<uint8, group<32>, zero_point<int32>>>>(); }
TEST_CASE("integers of 16 bits, with zero points and offsets") {
  check_runs<stored<scheme<int16, group<32>, zero_point<int32>>>>();
  check::in_full<stored<scheme<uint16, group<32>>>>([]<class S>() { check_runs<S>(); });
  check_runs<stored<scheme<uint16, group<32>, offset<f32>, static_only>>>();
}
TEST_CASE("integers of 32 bits, with zero points and without, bf16 and f16") {
  check_runs<stored<scheme<int32, group<32>>>>();
  check_runs<stored<scheme<int32, group<32>, zero_point<int8>>>>();
  check_runs<stored<scheme<bf16, group<32>>>>();
  check_runs<stored<scheme<f16, group<32>, offset<f32>, static_only>>>();
}
TEST_CASE("codes of five bits") { check_runs<stored<scheme<uint5, group<32>, zero_point<uint5>>>>(); }
TEST_CASE("int4 with zero points") { check_runs<stored<scheme<int4, group<32>, zero_point<int8>>>>(); }
TEST_CASE("codes from the top of a byte down, with zero points and offsets") {
  check_runs<stored<scheme<int4, group<32>, zero_point<int8>, planar<high_first>>>>();
  check_runs<stored<scheme<uint2, group<32>, offset<f32>, static_only, planar<high_first>>>>();
}
TEST_CASE("uint2 with offsets") { check_runs<stored<scheme<uint2, group<32>, offset<f32>, static_only>>>(); }
TEST_CASE("mxfp8: every length and granularity, both ends fenced") { check_runs<stored<mxfp8_e4m3>>(); }
TEST_CASE("mxfp6: every length and granularity, both ends fenced") { check_runs<stored<mxfp6_e3m2>>(); }
TEST_CASE("nvfp4 with a tensor scale") { check_runs<stored<with<nvfp4, tensor_scale<f32>>>>(); }
TEST_CASE("hif8 with offsets") { check_runs<stored<scheme<hif8, group<32>, offset<f32>, static_only>>>(); }

TEST_CASE_TEMPLATE("groups of zeros of both signs under the smallest scales, of which one may hold another number", S,
                   stored<mxfp8_e4m3>, stored<mxfp4>, stored<mxint8>) {
  check::archs::for_each([](auto arch) {
    using A = decltype(arch);
    if constexpr (!std::is_same_v<A, simd::scalar_arch>) {
      constexpr int bits = S::code_format::bits;
      constexpr bool has_two = decode_table<typename S::code_format>[1 << (bits - 1)] == 0.f;
      constexpr std::uint8_t negative = !has_two ? 0 : bits == 4 ? 0x88 : 0x80;
      for (const index_t group : {16, 32, 64, 128, 512})
        for (const index_t n : {512, 5000, 8192})
          for (const bool only_zeros : {false, true}) {
            check::fenced<std::uint8_t> codes(check::random_codes<std::uint8_t>(n * bits / 8));
            check::fenced<float> scales(divide_up(n, group));
            for (index_t g = 0; g * group < n; ++g) {
              scales[g] = exp2i(g % 2 == 0 ? -127 : static_cast<int>(check::random_below(20)));
              if (g % 2 != 0) continue;
              for (index_t i = g * group; i < std::min((g + 1) * group, n); i += 8 / bits)
                codes[i * bits / 8] = check::random_below(2) == 0 ? negative : 0;
            }
            if (!only_zeros) codes[check::random_below(2) == 0 ? 0 : (n - 1) / group / 2 * 2 * group * bits / 8] = 1;
            const auto* units = reinterpret_cast<const simd::code_unit_t<S>*>(codes.data());
            std::vector<float> want(static_cast<std::size_t>(n));
            check::fenced<std::uint16_t> got(n);
            simd::kernel<simd::op::decode, S, simd::scalar_arch>::grouped(units, n, group, {scales.data()},
                                                                          want.data());
            simd::kernel<simd::op::decode, S, A>::template grouped<bf16>(units, n, group, {scales.data()}, got.data());
            for (index_t i = 0; i < n; ++i)
              REQUIRE(got[i] == encode<bf16, to_special>(want[static_cast<std::size_t>(i)]));
          }
    }
  });
}

TEST_CASE("run functions: nothing for n = 0, the reference for what vectors cannot do") {
  float out[3] = {7.f, 7.f, 7.f};
  const float s[3] = {2.f, 3.f, 4.f};
  simd::decode_uniform<mxfp4>(nullptr, 0, {1.f}, 0, out);
  simd::decode_vector<mxfp4>(nullptr, 0, nullptr, nullptr, out);
  simd::decode_grouped<mxfp4>(nullptr, 0, 32, nullptr, nullptr, out);
  CHECK(out[0] == 7.f);
  CHECK(std::string(simd::kernel_name<simd::op::decode, scheme<of_users::sign1, group<2>>>()) == "reference");
  using upside_down = scheme<int4, group<2>, planar<high_first>>;
  const std::uint8_t packed[2] = {0x3e, 0x50};
  simd::decode_grouped<upside_down>(packed, 3, 2, s, nullptr, out);
  CHECK(out[0] == 6.f);
  CHECK(out[1] == -4.f);
  CHECK(out[2] == 15.f);
  const std::int16_t wide[2] = {-300, 5};
  using wide_scheme = scheme<int16, per_tensor, zero_point<int32>>;
  simd::decode_uniform<wide_scheme>(reinterpret_cast<const simd::code_unit_t<wide_scheme>*>(wide), 2, {0.5f}, 10, out);
  CHECK(out[0] == -155.f);
}

TEST_CASE("column_decoder: rows past the caches that begin anywhere in a line equal each of them alone") {
  const auto check = []<class S, class F>(std::type_identity<S>, std::type_identity<F>) {
    using unit = simd::code_unit_t<S>;
    for (const index_t n : {1, 15, 28, 64, 100, 515})
      for (const index_t shift : {0, 1, 4, 12})
        for (const index_t out_step : {round_up(n, 64), n + 5}) {
          const index_t code_step = units<S>(n) + 3;
          check::fenced<unit> codes(check::random_codes<unit>(2 * code_step + units<S>(n)));
          check::fenced<float> scales(n);
          check::fenced<std::int32_t> zeros(n);
          check::fenced<storage_t<F>> got(2 * out_step + n + shift, true);
          std::vector<storage_t<F>> want(static_cast<std::size_t>(n));
          for (index_t i = 0; i < n; ++i) {
            scales[i] = 0.01f * static_cast<float>(i + 1);
            zeros[i] = static_cast<std::int32_t>(i % 7);
          }
          const std::int32_t* const zero_points = S::has_zero_point ? zeros.data() : nullptr;
          const simd::column_decoder<S, F> decode(scales.data(), zero_points, n);
          decode.stream(codes.data(), code_step, 3, got.data() + shift, out_step, {});
          simd::stream_fence<simd::best_arch>();
          for (index_t r = 0; r < 3; ++r) {
            simd::decode_vector<S, F>(codes.data() + r * code_step, n, scales.data(), zero_points, want.data());
            if (std::memcmp(want.data(), got.data() + shift + r * out_step,
                            static_cast<std::size_t>(n) * sizeof(want[0])) != 0)
              FAIL(std::string(S::name), " row ", r, " of ", n, " from ", shift, " on");
          }
        }
  };
  const auto both = [&]<class S>(std::type_identity<S> scheme) {
    check(scheme, std::type_identity<f32>{});
    check(scheme, std::type_identity<bf16>{});
  };
  both(std::type_identity<int8_per_channel<1>>{});
  both(std::type_identity<uint4_group<32>>{});
  both(std::type_identity<mxfp6_e2m3>{});
}

TEST_CASE("column_decoder, decode_rows: a kernel without columns decodes row by row") {
  const std::uint8_t codes[] = {3, 6, 9, 12};
  const float scales[] = {1.f, 2.f};
  float out[6] = {};
  simd::column_decoder<thirds_scheme>(scales, nullptr, 2)(codes, 2, 2, out, 4);
  CHECK(out[1] == 2.f);
  CHECK(out[3] == 0.f);
  CHECK(out[5] == 4.f);
  simd::column_decoder<scheme<uint8, per_tensor>>(scales, nullptr, 2)(codes, 2, 2, out, 4);
  CHECK(out[1] == 12.f);
  CHECK(out[5] == 24.f);
  simd::decode_rows<thirds_scheme>(codes, 2, 2, 2, scales, nullptr, out, 4);
  CHECK(out[1] == 2.f);
  CHECK(out[4] == 6.f);
  CHECK(out[5] == 8.f);
  const float each[] = {1.f, 2.f, 3.f, 4.f};
  simd::decode_grouped_rows<thirds_scheme>(codes, 2, 2, 2, 1, each, nullptr, out, 3);
  CHECK(out[1] == 2.f);  // it takes the first scale for all
  CHECK(out[3] == 9.f);
  CHECK(out[4] == 12.f);
}

TEST_CASE("decode_uniform: long runs of integers to bf16, where a product is halfway between two and where none is") {
  const auto check = []<class S>(std::type_identity<S>) {
    constexpr index_t n = 2048 + 77;
    std::vector<std::uint8_t> codes(n);
    for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint8_t>(i);
    const auto* units = reinterpret_cast<const simd::code_unit_t<S>*>(codes.data());
    std::vector<std::uint16_t> out(n);
    for (const float scale :
         {1.f, 0.0123f, 0x1.02p0f, 0x1.fep-5f, -0.7f, 3e38f, 1e-39f, 0x1p-140f, infinity, quiet_nan})
      for (const std::int32_t zero : {0, 3, 200}) {
        const std::int32_t z = S::has_zero_point ? zero : 0;
        simd::decode_uniform<S, bf16>(units, n, {scale}, z, out.data());
        CAPTURE(scale);
        for (index_t i = 0; i < n; ++i) {
          const float value = static_cast<float>(static_cast<std::int32_t>(units[i]) - z) * scale;
          const auto at = static_cast<std::size_t>(i);
          if (is_nan(value) ? !is_nan(decode<bf16>(out[at])) : out[at] != encode<bf16, to_special>(value))
            FAIL("code ", i % 256, ": ", out[at]);
        }
      }
  };
  check(std::type_identity<int8_per_tensor>{});
  check(std::type_identity<uint8_per_tensor>{});
}

TEST_CASE("decode_grouped_rows: rows of groups equal each of them alone") {
  const auto check = []<class S, class F>(std::type_identity<S>, std::type_identity<F>) {
    constexpr index_t rows = 5, n = 300, step = n + 20, out_step = n + 3;
    std::vector<std::uint8_t> codes(rows * step);
    for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint8_t>(i * 37 + i / 7);
    const auto* units = reinterpret_cast<const simd::code_unit_t<S>*>(codes.data());
    for (const index_t group : {1, 8, 16, 32, 48, 64, 96, 128, 300, 512}) {
      const index_t entries = divide_up(n, group);
      std::vector<float> scales(static_cast<std::size_t>(rows * entries));
      std::vector<std::int32_t> zeros(scales.size());
      for (std::size_t i = 0; i < scales.size(); ++i)
        scales[i] = exp2i(static_cast<int>(i % 9) - 4), zeros[i] = static_cast<std::int32_t>(i % 11);
      const std::int32_t* zero_points = S::has_zero_point ? zeros.data() : nullptr;
      std::vector<storage_t<F>> out(rows * out_step, storage_t<F>{7}), one(out);
      simd::decode_grouped_rows<S, F>(units, step, rows, n, group, scales.data(), zero_points, out.data(), out_step);
      for (index_t r = 0; r < rows; ++r)
        simd::decode_grouped<S, F>(units + r * step, n, group, scales.data() + r * entries,
                                   S::has_zero_point ? zero_points + r * entries : nullptr, one.data() + r * out_step);
      CAPTURE(group);
      CHECK(out == one);
    }
  };
  check(std::type_identity<int8_group<32>>{}, std::type_identity<f32>{});
  check(std::type_identity<mxfp4>{}, std::type_identity<bf16>{});
  check(std::type_identity<uint4_group<32>>{}, std::type_identity<f32>{});
  check(std::type_identity<scheme<e5m2fnuz, per_tensor, nan_to_zero>>{}, std::type_identity<bf16>{});
}

TEST_CASE("a user's own kernel is found under the stored form of its scheme") {
  CHECK(std::string(simd::kernel_name<simd::op::decode, stored<thirds_scheme>>()) == "thirds");
  const std::uint8_t codes[2] = {3, 9};
  float out[2];
  simd::decode_uniform<thirds_scheme>(codes, 2, {2.f}, 0, out);
  CHECK(out[0] == 2.f);
  CHECK(out[1] == 6.f);
}

TEST_CASE("a user's kernel that only knows floats also gives 16-bit numbers, runs longer than its tile too") {
  std::vector<std::uint8_t> codes(1300);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint8_t>(i);
  std::vector<float> scales(82);
  for (std::size_t g = 0; g < scales.size(); ++g) scales[g] = static_cast<float>(g + 1);
  std::vector<std::uint16_t> out(codes.size()), one(codes.size());
  simd::decode_grouped<thirds_scheme, bf16>(codes.data(), 1300, 16, scales.data(), nullptr, out.data());
  simd::decode_uniform<thirds_scheme, bf16>(codes.data(), 1300, {2.f}, 0, one.data());
  bool ok = true;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const float third = static_cast<float>(codes[i]) / 3.f;
    ok = ok && out[i] == encode<bf16>(third * scales[i / 512 * 32]) && one[i] == encode<bf16>(third * 2.f);
  }
  CHECK(ok);
}

TEST_CASE("uniform_decoder: runs long enough for a table equal the reference, whatever the scale and the length") {
  const auto check = []<class S, class F>(std::type_identity<S>, std::type_identity<F>) {
    using unit = simd::code_unit_t<S>;
    for (const float s : {1.f, -0.37f, 0.f, 0x1p-127f, 0x1.8p-120f, 0x1p127f, infinity, quiet_nan, 3e-6f})
      for (const index_t n : {1, 255, 256, 1023, 1024, 4095, 4096, 4097, 8192, 8192 + 63, 10000}) {
        check::fenced<unit> codes(check::random_codes<unit>(units<S>(n)));
        check::fenced<storage_t<F>> out(n);
        const std::int32_t zero = S::has_zero_point ? 7 : 0;
        const float offset = S::has_offset ? -0.11f : 0.f;
        simd::decode_uniform<S, F>(codes.data(), n, {s, 1.7f}, zero, out.data(), offset);
        bool ok = true;
        for (index_t i = 0; i < n; ++i) {
          const float value = dequantize_element<S>(code_at<S>(codes.data(), i), {s, 1.7f}, zero, offset);
          const std::uint32_t want = encode<F, to_special>(value);
          ok = ok && (out[i] == want || (is_nan(value) && is_nan(decode<F>(out[i])) && !is_finite(s)));
        }
        INFO(std::string(S::name), " scale ", s, " n ", n);
        CHECK(ok);
      }
  };
  const auto both = [&]<class S>(std::type_identity<S> scheme_type) {
    check(scheme_type, std::type_identity<bf16>{});
    check(scheme_type, std::type_identity<f16>{});
  };
  both(std::type_identity<int8_per_tensor>{});
  both(std::type_identity<scheme<uint8, per_tensor, zero_point<int32>>>{});
  both(std::type_identity<scheme<uint4, per_tensor, zero_point<uint8>>>{});
  both(std::type_identity<scheme<uint2, per_tensor, offset<f32>, static_only>>{});
  both(std::type_identity<scheme<e4m3, per_tensor>>{});
  both(std::type_identity<scheme<hif8, per_tensor>>{});
  check::in_full<scheme<e3m2, per_tensor>>([&]<class S>() { both(std::type_identity<S>{}); });
  both(std::type_identity<scheme<e2m1, per_tensor, tensor_scale<f32>, static_only>>{});
}
