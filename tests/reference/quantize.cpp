// Mirrors include/qtensor/reference/quantize.hpp: the specification's vectors, static scales, stochastic words,
// dequantize. Comparisons with the block oracle are in quantize_{integers,floats,mx,shapes}.cpp.
// SPDX-License-Identifier: BSD-3-Clause
#include "oracle/block_vectors.hpp"
#include "reference/quantize_check.hpp"

namespace {

using namespace oracle;
namespace qt = qtensor;
using vectors::block_vector;

/// One block holding all of `v.x`, quantized under S.
template <class S>
auto quantized_block(const std::vector<float>& x) {
  auto t = make_tensor<S, 1, qt::row_major>({x.size()});
  qt::reference::quantize([&](const auto& i) { return x[static_cast<std::size_t>(i[0])]; }, t.span());
  return t;
}

template <class S>
void check_vector(const block_vector& v) {
  const auto t = quantized_block<S>(v.x);
  const auto view = t.view();
  INFO(std::string(qt::name<S>.c_str()), ", first x ", v.x[0], " of ", v.x.size());
  CHECK(view.scale_code({0}) == v.scale);
  for (std::size_t i = 0; i < v.x.size(); ++i) {
    INFO("element ", i);
    CHECK(view.code({static_cast<qt::index_t>(i)}) == v.expected[i]);
  }
}

template <class Code, class Rule, class... P>
void check_mx(const block_vector& v) {
  check_vector<qt::scheme<Code, qt::mx_group<>, qt::scale_as<qt::e8m0>, Rule, P...>>(v);
}
template <class Rule, class... P>
void check_fp8(const std::string& format, const block_vector& v) {
  if (format == "e4m3") check_mx<qt::e4m3, Rule, P...>(v);
  if (format == "e5m2") check_mx<qt::e5m2, Rule, P...>(v);
}
template <class Rule, class... P>
void check_fp4(const std::string& format, const block_vector& v) {
  if (format == "e2m1") check_mx<qt::e2m1, Rule, P...>(v);
  if (format == "e1m2") check_mx<qt::e1m2, Rule, P...>(v);
}

template <class Rule, class Code>
std::uint32_t scale_code_of(float amax) {
  const auto t = quantized_block<qt::scheme<Code, qt::group<32>, qt::scale_as<qt::e8m0>, Rule>>({amax});
  return t.view().scale_code({0});
}
template <class Rule>
std::uint32_t scale_code_of(const std::string& format, float amax) {
  if (format == "e4m3") return scale_code_of<Rule, qt::e4m3>(amax);
  if (format == "e5m2") return scale_code_of<Rule, qt::e5m2>(amax);
  return scale_code_of<Rule, qt::e2m1>(amax);
}

template <class Code, qt::index_t MinScale>
void check_bounded(const block_vector& v) {
  check_vector<qt::scheme<Code, qt::per_tensor, qt::bounded_amax<MinScale>, qt::block_literal, qt::nan_to_zero>>(v);
}

template <class Code, class Order>
int static_code(float x, float s, int zero_point) {
  using scheme = qt::scheme<Code, qt::per_tensor, qt::zero_point<Code>, qt::static_only, Order>;
  auto t = make_tensor<scheme, 1, qt::row_major>({1});
  t.scales()[0] = s;
  t.zero_points()[0] = static_cast<std::remove_reference_t<decltype(t.zero_points()[0])>>(zero_point);
  qt::reference::quantize_static([&](const auto&) { return x; }, t.span());
  return static_cast<int>(Code::decode(t.view().code({0})));
}

}  // namespace

TEST_CASE("quantize: our own defaults, vectors of section 11") {
  for (const block_vector& v : vectors::int8_amax()) check_vector<qt::int8_per_tensor>(v);
  for (const block_vector& v : vectors::int4_amax()) check_vector<qt::int4_group<128>>(v);
  for (const auto& r : vectors::uint8_min_max()) {
    check_vector<qt::uint8_per_tensor>(r.v);
    const auto t = quantized_block<qt::uint8_per_tensor>(r.v.x);
    CHECK(t.view().zero_point({0}) == r.zero_point);
  }
}

TEST_CASE("quantize: MX floor vectors of sections 1.7, 2.2 and 3, directly and through f16") {
  for (const auto& m : vectors::mx_floor()) {
    check_fp8<qt::mx_floor>(m.format, m.v);
    check_fp4<qt::mx_floor>(m.format, m.v);
    if (m.format == "mxint8") check_mx<qt::mxint8_code, qt::mx_floor>(m.v);
    check_fp8<qt::mx_floor, qt::via_f16>(m.format, m.v);
    check_fp4<qt::mx_floor, qt::via_f16>(m.format, m.v);
  }
}

TEST_CASE("quantize: the FP4 round modes of section 3") {
  for (const auto& r : vectors::fp4_roundings()) {
    check_fp4<qt::mx_floor>(r.format, {r.x, r.scale, r.even});
    check_fp4<qt::mx_floor, qt::nearest_away>(r.format, {r.x, r.scale, r.away});
    check_fp4<qt::mx_floor, qt::toward_negative>(r.format, {r.x, r.scale, r.down});
  }
}

TEST_CASE("quantize: CANN's zero codes for non-finite blocks and Ascend's for subnormal ones, section 3") {
  check_mx<qt::e4m3, qt::mx_floor, qt::block_to_zero>(
      {vectors::from_bf16({0x3F80, 0x7F80, 0, 0xC000}), 255, {0, 0, 0, 0}});
  check_mx<qt::e2m1, qt::mx_floor, qt::block_to_zero>({vectors::from_bf16({0x3F80, 0x7FC0}), 255, {0, 0}});
  check_mx<qt::e4m3, qt::mx_floor, qt::subnormal_to_zero>({vectors::from_bf16({0x0040, 0x8001}), 0, {0, 0x80}});
  check_mx<qt::e4m3, qt::mx_floor, qt::subnormal_to_zero>({vectors::from_bf16({0x0080, 0x0100}), 0, {0x40, 0x48}});
}

TEST_CASE("quantize: CANN scale algorithms 1 and 2 of section 2.5") {
  for (const auto& m : vectors::mx_rceil()) check_fp8<qt::mx_rceil>(m.format, m.v);
  for (const auto& r : vectors::dynamic_range()) {
    if (r.range == 0) check_vector<qt::with<qt::mxfp4, qt::mx_dynamic_range<0>>>(r.v);
    if (r.range == 6) check_vector<qt::with<qt::mxfp4, qt::mx_dynamic_range<6>>>(r.v);
    if (r.range == 7) check_vector<qt::with<qt::mxfp4, qt::mx_dynamic_range<7>>>(r.v);
  }
}

TEST_CASE("quantize: torchao's scale modes of section 2.6") {
  for (const auto& r : vectors::scale_modes()) {
    INFO(r.format, " amax ", r.amax);
    CHECK(scale_code_of<qt::mx_floor>(r.format, r.amax) == r.floor);
    CHECK(scale_code_of<qt::mx_ceil>(r.format, r.amax) == r.ceil);
    CHECK(scale_code_of<qt::mx_even>(r.format, r.amax) == r.even);
    CHECK(scale_code_of<qt::mx_rceil>(r.format, r.amax) == r.rceil);
  }
}

TEST_CASE("quantize: NVFP4 vectors of section 2.4, torchao with one level") {
  for (const block_vector& v : vectors::nvfp4()) check_vector<qt::nvfp4>(v);
}

TEST_CASE("quantize: DynamicBlockQuant vectors of section 4") {
  for (const auto& r : vectors::bounded_amax()) {
    INFO(r.format, " min_scale ", r.min_scale);
    if (r.format == "int8")
      check_bounded<qt::int8, 0>(r.v);
    else if (r.format == "hif8")
      check_bounded<qt::hif8, 0>(r.v);
    else if (r.format == "e5m2")
      check_bounded<qt::e5m2, 0>(r.v);
    else if (r.min_scale == 1000)
      check_bounded<qt::e4m3, 1000>(r.v);
    else if (r.min_scale == 100)
      check_bounded<qt::e4m3, 100>(r.v);
    else if (r.min_scale == 10)
      check_bounded<qt::e4m3, 10>(r.v);
    else
      check_bounded<qt::e4m3, 0>(r.v);
  }
}

TEST_CASE("quantize: zero point after and before rounding, vectors of section 5.1") {
  for (const auto& r : vectors::affine()) {
    INFO(r.format, " x ", r.x, " s ", r.s, " zp ", r.zero_point);
    const bool is_signed = r.format == "int8";
    CHECK((is_signed ? static_code<qt::int8, qt::zp_after_round>(r.x, r.s, r.zero_point)
                     : static_code<qt::uint8, qt::zp_after_round>(r.x, r.s, r.zero_point)) == r.after);
    CHECK((is_signed ? static_code<qt::int8, qt::zp_before_round>(r.x, r.s, r.zero_point)
                     : static_code<qt::uint8, qt::zp_before_round>(r.x, r.s, r.zero_point)) == r.before);
  }
}

TEST_CASE("quantize: a division by 2.2 and a multiplication by its reciprocal differ as section 5.1 says") {
  const auto code = [](auto scheme) {
    auto t = make_tensor<decltype(scheme), 1, qt::row_major>({1});
    t.scales()[0] = 2.2f;
    qt::reference::quantize_static([](const auto&) { return 16.5f; }, t.span());
    return t.view().code({0});
  };
  CHECK(code(qt::scheme<qt::int8, qt::per_tensor>{}) == 8);
  CHECK(code(qt::scheme<qt::int8, qt::per_tensor, qt::reciprocal>{}) == 7);
}

TEST_CASE("quantize: a static scale clips to the format, to stored_range, and sends NaN to real 0") {
  const auto code = [](auto scheme, float x) {
    auto t = make_tensor<decltype(scheme), 1, qt::row_major>({1});
    qt::reference::quantize_static([x](const auto&) { return x; }, t.span());
    return t.view().code({0});
  };
  using s8 = qt::scheme<qt::int8, qt::per_tensor>;
  CHECK(code(s8{}, -1000.f) == 0x80);
  CHECK(code(qt::with<s8, qt::stored_range<-127, 127>>{}, -1000.f) == 0x81);
  CHECK(code(s8{}, std::numeric_limits<float>::quiet_NaN()) == 0);
  CHECK(code(qt::scheme<qt::e4m3, qt::per_tensor>{}, std::numeric_limits<float>::quiet_NaN()) == 0x7F);
  CHECK(code(qt::scheme<qt::e4m3, qt::per_tensor>{}, -std::numeric_limits<float>::infinity()) == 0xFE);
  CHECK(code(qt::scheme<qt::e2m1, qt::per_tensor>{}, std::numeric_limits<float>::quiet_NaN()) == 0);
}

TEST_CASE("quantize: both axes of section 3's example, from the same numbers") {
  const auto x = vectors::from_bf16({0, 16640, 17024, 17408});
  check_scheme<qt::mxfp8_e4m3, 2, qt::row_major>({1, 4}, {1, 32}, x, mx_oracle("e4m3", mx_rule::floor));
  check_scheme<qt::along<0, qt::mxfp8_e4m3>, 2, qt::row_major>({1, 4}, {32, 1}, x, mx_oracle("e4m3", mx_rule::floor));
  check_scheme<qt::along<0, qt::mxfp8_e4m3>, 2, qt::col_major>({70, 33}, {32, 1}, awkward_data(70 * 33, 5),
                                                               mx_oracle("e4m3", mx_rule::floor));
}

TEST_CASE("quantize: an element's random word follows its position, not the storage order") {
  using scheme = qt::scheme<qt::int8, qt::per_tensor, qt::stochastic<3>>;
  const sizes shape = {9, 14};
  const std::vector<float> x = [] {
    random_bits random(4);
    std::vector<float> out;
    for (int i = 0; i < 9 * 14; ++i) out.push_back(random.log_uniform(-3, 3));
    return out;
  }();
  const auto source = [&](const auto& i) { return x[static_cast<std::size_t>(i[0] * 14 + i[1])]; };
  auto rows = make_tensor<scheme, 2, qt::row_major>(shape);
  auto columns = make_tensor<scheme, 2, qt::col_major>(shape);
  qt::reference::quantize(source, rows.span());
  qt::reference::quantize(source, columns.span());
  for (qt::index_t r = 0; r < 9; ++r)
    for (qt::index_t c = 0; c < 14; ++c) {
      INFO("row ", r, " column ", c);
      REQUIRE(rows.view().code({r, c}) == columns.view().code({r, c}));
      const std::uint32_t word = qt::philox(static_cast<std::uint64_t>(r * 14 + c), 3);
      REQUIRE(rows.view().code({r, c}) ==
              qt::encode<qt::int8, qt::stochastic<3>>(source(std::array{r, c}) / rows.view().scale({r, c}), word));
    }
}

TEST_CASE("quantize: dequantize visits every element once with the value of its code") {
  const sizes shape = {5, 11};
  const std::vector<float> x = awkward_data(55, 6);
  auto t = make_tensor<qt::scheme<qt::e4m3, qt::group<4>>, 2, qt::col_major>(shape);
  qt::reference::quantize([&](const auto& i) { return x[static_cast<std::size_t>(i[0] * 11 + i[1])]; }, t.span());
  std::vector<int> visits(55, 0);
  qt::reference::dequantize(t.view(), [&](const auto& i, float value) {
    ++visits[static_cast<std::size_t>(i[0] * 11 + i[1])];
    const float expected = dequantized(format_named("e4m3"), t.view().code(i), 0, t.view().scale(i));
    CHECK((std::isnan(expected) ? std::isnan(value) : bits_of(value) == bits_of(expected)));
  });
  CHECK(visits == std::vector<int>(55, 1));
}

TEST_CASE("quantize: a constant tensor is quantized by the compiler") {
  constexpr auto codes = [] {
    qt::tensor<qt::int8_per_tensor, qt::extents<3>> t;
    qt::reference::quantize([](const auto& i) { return i[0] == 0 ? 1.f : i[0] == 1 ? -2.f : 0.5f; }, t.span());
    return std::array{t.view().code({0}), t.view().code({1}), t.view().code({2})};
  }();
  static_assert(codes == std::array<std::uint32_t, 3>{64, 0x81, 32});
  CHECK(codes[1] == 0x81);
}
