// Mirrors include/qtensor/compat/torch.hpp: torch's rules on single values, shapes and axes, and every refusal.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <qtensor/compat/torch.hpp>
#include <string>

#include "core/sentence.hpp"

using namespace qtensor;
namespace torch = qtensor::compat::torch;

namespace {

const std::vector<float> x = {16.5f, -16.5f, 0.5f, 1.5f, 1000.f, -1000.f};

std::vector<int> ints(const auto& codes) { return {codes.begin(), codes.end()}; }

}  // namespace

TEST_CASE("torch: the schemes are named as differences and use the reciprocal") {
  CHECK(std::is_same_v<torch::qint8, scheme<int8, per_tensor, zero_point<int32>, static_only, reciprocal>>);
  CHECK(name<torch::quint8> == fixed_string("uint8 x per_tensor / f32 + zero_point<int32>"));
  CHECK(torch::quint8_reduced::codes.high == 127.f);
}

TEST_CASE("torch: quantize_per_tensor multiplies by the float reciprocal and adds the zero point after rounding") {
  const auto t = torch::quantize_per_tensor<torch::qint8>(source(x.data(), extents(2, 3)), 2.2, 0);
  CHECK(ints(t.codes()) == std::vector<int>{7, -7, 0, 1, 127, -128});  // 16.5 / 2.2f would be 8
  const auto u = torch::quantize_per_tensor<torch::quint8>(source(x.data(), extents(6)), 1.0, 1);
  CHECK(ints(u.codes()) == std::vector<int>{17, 0, 1, 3, 255, 0});  // .5 -> 0 + 1, not 2
  const auto w = torch::quantize_per_tensor<torch::qint32>(source(x.data(), extents(6)), 0.5, -3);
  CHECK(ints(w.codes()) == std::vector<int>{30, -36, -2, 0, 1997, -2003});
  CHECK(torch::dequantize(u) == std::vector<float>{16.f, -1.f, 0.f, 2.f, 254.f, -1.f});
}

TEST_CASE("torch: infinities and huge quotients saturate, NaN is the zero point (torch: INT_MIN, then clamped)") {
  const std::vector<float> odd = {infinity, -infinity, 1e30f, quiet_nan};
  const auto t = torch::quantize_per_tensor<torch::quint8>(source(odd.data(), extents(4)), 0.1, 9);
  CHECK(ints(t.codes()) == std::vector<int>{255, 0, 255, 9});
}

TEST_CASE("torch: quantize_per_channel takes its axis at run time, negative or not") {
  const std::vector<double> scales = {1.0, 0.5, 0.25};
  const std::vector<std::int64_t> zeros = {0, 1, -1};
  const std::vector<float> ones(6, 1.f);
  for (int axis : {1, -1}) {
    const auto t = torch::quantize_per_channel<torch::qint8>(source(ones.data(), extents(2, 3)), scales, zeros, axis);
    CHECK(ints(t.codes()) == std::vector<int>{1, 3, 3, 1, 3, 3});
    CHECK(torch::dequantize(t) == ones);
    CHECK(torch::dequantize_per_channel(t, scales) == ones);
  }
  const auto t = torch::quantize_per_channel<torch::qint8>(source(ones.data(), extents(3, 2)), scales, zeros, 0);
  CHECK(ints(t.codes()) == std::vector<int>{1, 1, 3, 3, 3, 3});
  const auto c = torch::quantize_per_channel<torch::qint8>(source(ones.data(), extents(1, 3, 2)), scales, zeros, -2);
  CHECK(ints(c.codes()) == std::vector<int>{1, 1, 3, 3, 3, 3});
}

TEST_CASE("torch: per-channel values come from double scales, so they can differ from float ones in the last bit") {
  const std::vector<double> scales = {0.1};
  const std::vector<std::int64_t> zeros = {0};
  const std::vector<float> big = {.9f};
  const auto t = torch::quantize_per_channel<torch::qint8>(source(big.data(), extents(1)), scales, zeros, 0);
  CHECK(torch::dequantize_per_channel(t, scales)[0] == static_cast<float>(9 * 0.1));
  CHECK(torch::dequantize_per_channel(t, scales)[0] != torch::dequantize(t)[0]);
}

TEST_CASE("torch: fake quantization is quantize and dequantize, with a range known at run time") {
  const auto y = torch::fake_quantize_per_tensor_affine(source(x.data(), extents(6)), 2.2, 0, -128, 127);
  CHECK(y == torch::dequantize(torch::quantize_per_tensor<torch::qint8>(source(x.data(), extents(6)), 2.2, 0)));
  CHECK(y == fake_quantize<torch::qint8>(source(x.data(), extents(6)), 2.2, 0));
  CHECK(torch::fake_quantize_per_tensor_affine(source(x.data(), extents(6)), 1.0, 2, 0, 7) ==
        std::vector<float>{5.f, -2.f, 0.f, 2.f, 5.f, -2.f});
  const std::vector<float> scales = {1.f, 2.f, 4.f};
  const std::vector<int> zeros = {0, 0, 1};
  CHECK(torch::fake_quantize_per_channel_affine(source(x.data(), extents(2, 3)), scales, zeros, 1, -8, 7) ==
        std::vector<float>{7.f, -16.f, 0.f, 2.f, 14.f, -36.f});
  CHECK(torch::fake_quantize_element(quiet_nan, 1.f, 3, 0, 7) == 0.f);
}

TEST_CASE("torch: fake quantization cuts zero points to integers, and refuses those that no code is, of any type") {
  const std::vector<float> scales = {1.f, 1.f};
  const auto fake = [&](const auto& zeros) {
    return torch::fake_quantize_per_channel_affine(source(x.data(), extents(2, 3)), scales, zeros, 0, -8, 7);
  };
  CHECK(fake(std::vector<double>{-2.5, 7.9}) == fake(std::vector<int>{-2, 7}));
  const auto refused = [&](const auto& zeros) { return sentence([&] { fake(zeros); }); };
  const std::string range = "; it must lie between quant_min -8 and quant_max 7.";
  CHECK(refused(std::vector<double>{0, 1e300}) == "qtensor: zero point 1 is 1e+300" + range);
  CHECK(refused(std::vector<float>{-infinity, 0}) == "qtensor: zero point 0 is -inf" + range);
  CHECK(refused(std::vector<double>{8, 0}) == "qtensor: zero point 0 is 8" + range);
  CHECK(refused(std::vector<float>{quiet_nan, 0}).find("qtensor: zero point 0 is ") == 0);
  CHECK(refused(std::vector<std::uint64_t>{0, ~std::uint64_t{0}}) ==
        "qtensor: zero point 1 is 18446744073709551615" + range);
}

TEST_CASE("torch: fake quantization of tensors without elements, of any other extents") {
  constexpr index_t huge = std::numeric_limits<index_t>::max();
  const std::vector<float> two = {1.f, 1.f};
  const std::vector<int> zeros = {0, 0};
  const float* const none = nullptr;
  const auto all = [&](const auto& e) { return torch::fake_quantize_per_tensor_affine(source(none, e), 1.0, 0, 0, 7); };
  CHECK(all(extents(0, huge, huge)).empty());
  CHECK(all(extents(huge, huge, 0)).empty());
  CHECK(torch::fake_quantize_per_channel_affine(source(none, extents(2, huge, huge, 0)), two, zeros, 0, 0, 7).empty());
  CHECK(torch::fake_quantize_per_channel_affine(source(none, extents(0, 2, huge, huge)), two, zeros, 1, 0, 7).empty());
  CHECK(sentence([&] { all(extents(huge, huge)); }).find("does not fit 63 bits") != std::string::npos);
}

TEST_CASE("torch: fake quantization of runs is that of each element, on every axis, in small and large ranges") {
  const float hard[] = {quiet_nan, -quiet_nan, infinity, -infinity, 0.f,   -0.f,   .5f,        -.5f,
                        1.5f,      2.5f,       -1.5f,    3e38f,     -3e9f, 1e-45f, -8388609.f, 127.5f};
  std::vector<float> values(3 * 5 * 41);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = i % 3 == 0 ? hard[i / 3 % std::size(hard)]
                           : static_cast<float>(static_cast<int>(i * 7919 % 2001) - 1000) * .37f;
  const std::int64_t far = std::int64_t{1} << 24;
  const std::int64_t ranges[][3] = {{-128, 127, 3}, {0, 255, 128}, {0, 1, 1}, {-far, far, 5}, {-far / 2, far / 2, 0}};
  for (const auto& [low, high, zero] : ranges)
    for (const int axis : {0, 1, -1}) {
      const auto e = extents(3, 5, 41);
      const index_t channels = axis == 0 ? 3 : axis == 1 ? 5 : 41;
      std::vector<float> scales;
      std::vector<std::int64_t> zeros;
      for (index_t c = 0; c < channels; ++c) {
        scales.push_back(c % 7 == 6 ? 1e-42f : .25f * static_cast<float>(c + 1));  // of which one has no reciprocal
        zeros.push_back(std::max(low, zero - c % 3));
      }
      if (axis != 1) scales[channels > 6 ? 6 : 0] = .125f;
      const auto found =
          torch::fake_quantize_per_channel_affine(source(values.data(), e), scales, zeros, axis, low, high);
      const auto single = torch::fake_quantize_per_tensor_affine(source(values.data(), e), .75, zero, low, high);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const std::size_t c = axis == 0 ? i / 205 : axis == 1 ? i / 41 % 5 : i % 41;
        const float want = torch::fake_quantize_element(values[i], scales[c], zeros[c], low, high);
        if (bits_of(found[i]) != bits_of(want)) FAIL(values[i], " by ", scales[c], " is ", found[i], ", not ", want);
        if (bits_of(single[i]) != bits_of(torch::fake_quantize_element(values[i], .75f, zero, low, high)))
          FAIL(values[i], " by .75 is ", single[i]);
      }
    }
}

TEST_CASE("torch: fake quantization of channels of every length, few and many, small scales among them") {
  for (const bool by_vectors : {true, false})
    for (const index_t inner : {1, 2, 3, 5, 9, 16, 31, 63, 64, 65, 130})
      for (const index_t channels : {1, 2, 3, 17, 511, 513}) {
        const auto e = extents(3, channels, inner);
        std::vector<float> values(static_cast<std::size_t>(e.size()));
        for (std::size_t i = 0; i < values.size(); ++i)
          values[i] = i % 37 == 5 ? quiet_nan : static_cast<float>(static_cast<int>(i * 7919 % 2001) - 1000) * .37f;
        std::vector<float> scales;
        std::vector<int> zeros;
        for (index_t c = 0; c < channels; ++c)
          scales.push_back(.25f + .01f * static_cast<float>(c % 101)), zeros.push_back(static_cast<int>(c % 7));
        if (!by_vectors) scales.back() = 1e-42f;
        const auto found = torch::fake_quantize_per_channel_affine(source(values.data(), e), scales, zeros, 1, -8, 100);
        for (std::size_t i = 0; i < values.size(); ++i) {
          const std::size_t c = i / static_cast<std::size_t>(inner) % scales.size();
          const float want = torch::fake_quantize_element(values[i], scales[c], zeros[c], -8, 100);
          if (bits_of(found[i]) != bits_of(want))
            FAIL(i, " of ", channels, " channels of ", inner, ": ", found[i], ", not ", want);
        }
      }
}

TEST_CASE("torch: dequantize_per_channel rounds every product of doubles once, on every axis") {
  std::vector<float> values(3 * 5 * 19);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) * .61f - 70.f;
  for (const int axis : {0, 1, 2}) {
    const std::size_t channels = axis == 0 ? 3 : axis == 1 ? 5 : 19;
    std::vector<double> scales(channels);
    std::vector<int> zeros(channels);
    for (std::size_t c = 0; c < channels; ++c)
      scales[c] = .1 * static_cast<double>(c + 3), zeros[c] = static_cast<int>(c);
    const auto t =
        torch::quantize_per_channel<torch::quint8>(source(values.data(), extents(3, 5, 19)), scales, zeros, axis);
    const auto found = torch::dequantize_per_channel(t, scales);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t c = axis == 0 ? i / 95 : axis == 1 ? i / 19 % 5 : i % 19;
      CHECK(found[i] == static_cast<float>((t.codes()[i] - zeros[c]) * scales[c]));
    }
  }
}

TEST_CASE("torch: dequantize_per_channel of every code and rows of every length") {
  const auto check = []<class S>(std::type_identity<S>, const auto& e, int axis) {
    using unit = storage_t<typename S::code_format>;
    tensor<torch::channels_of<S>, std::remove_cvref_t<decltype(e)>> t(e, compat::axis_blocks::channels(axis));
    const auto channels = static_cast<std::size_t>(e[axis]);
    std::vector<double> scales(channels);
    std::vector<std::int64_t> zeros(channels);
    for (std::size_t c = 0; c < channels; ++c)
      scales[c] = .1 / static_cast<double>(c + 1), zeros[c] = static_cast<std::int64_t>(c % 100);
    store_zero_points(t.span(), zeros);
    for (std::size_t i = 0; i < t.codes().size(); ++i)
      t.codes()[i] = static_cast<unit>(sizeof(unit) == 1 ? i * 37 : i * 2654435761u);
    const auto found = torch::dequantize_per_channel(t, scales);
    index_t inner = 1;
    for (int a = axis + 1; a < e.rank; ++a) inner *= e[a];
    for (std::size_t i = 0; i < found.size(); ++i) {
      const std::size_t c = i / static_cast<std::size_t>(inner) % channels;
      const auto q = static_cast<std::int64_t>(t.codes()[i]) - zeros[c];
      if (bits_of(found[i]) != bits_of(static_cast<float>(static_cast<double>(q) * scales[c])))
        FAIL("element ", i, " is ", found[i]);
    }
  };
  for (index_t n = 1; n <= 40; ++n)
    for (int axis = 0; axis < 3; ++axis) {
      check(std::type_identity<torch::qint8>{}, extents(2, 3, n), axis);
      check(std::type_identity<torch::quint8>{}, extents(3, n, 2), axis);
      check(std::type_identity<torch::qint32>{}, extents(2, n, n), axis);
      if (axis < 2) check(std::type_identity<torch::qint32>{}, extents(n, 5), axis);
    }
}

TEST_CASE("torch: min-max observers, affine and symmetric") {
  torch::min_max_observer seen;
  const std::vector<float> first = {-1.f, 0.5f}, second = {3.f, quiet_nan, infinity};
  seen.add(source(first.data(), extents(2)));
  seen.add(source(second.data(), extents(3)));
  CHECK(seen.ignored() == 2);
  const static_parameters a = seen.affine<torch::quint8>();
  CHECK(a.scale == 4.f / 255.f);
  CHECK(a.zero_point == 64);  // 63.75
  CHECK(seen.affine<torch::qint8>().zero_point == -64);
  CHECK(seen.symmetric<torch::qint8>().scale == 3.f / 127.5f);
  CHECK(seen.symmetric<torch::qint8>().zero_point == 0);
  CHECK(seen.symmetric<torch::quint8>().zero_point == 128);
  CHECK(seen.symmetric<torch::quint8_reduced>().zero_point == 63);
  CHECK(torch::min_max_observer().affine<torch::quint8>().scale == 0x1p-23f);  // float's epsilon, never 0
  CHECK(torch::affine_parameters<torch::quint8>(2.f, 4.f).zero_point == 0);    // 0 is always in the range
}

TEST_CASE("torch: float8 casts: e4m3 saturates, the others do not (NUMERICS 10.1, 10.2)") {
  CHECK(torch::to_float8<e4m3>(1000.f) == 0x7E);
  CHECK(torch::to_float8<e4m3>(-infinity) == 0xFE);
  CHECK(torch::to_float8<e4m3>(-quiet_nan) == 0xFF);
  CHECK(torch::to_float8<e5m2>(1e6f) == 0x7C);
  CHECK(torch::to_float8<e5m2>(quiet_nan) == 0x7F);
  CHECK(torch::to_float8<e5m2>(-quiet_nan) == 0xFF);
  CHECK(torch::to_float8<e4m3fnuz>(300.f) == 0x80);
  CHECK(torch::to_float8<e5m2fnuz>(infinity) == 0x80);
  CHECK(torch::to_float8<e5m2fnuz>(-0.f) == 0x00);
  CHECK(torch::to_float8<e8m0>(3.f) == 0x81);  // ties up
  CHECK(torch::to_float8<e8m0>(-1.f) == 0x7F);
  CHECK(torch::to_float8<e8m0>(0x1p-127f) == 0x00);
  CHECK(torch::to_float8<e8m0>(-0x1.000004p-127f) == 0x01);  // nearer to 2^-127
  CHECK(torch::to_float8<e8m0>(0x1.7p-126f) == 0x01);
  CHECK(torch::to_float8<e8m0>(std::numeric_limits<float>::max()) == 0xFF);
}

TEST_CASE("torch: what cannot be is refused with a sentence that names the value, the place and the need") {
  const auto in = source(x.data(), extents(2, 3));
  const std::vector<double> three = {1, 1, 1}, bad = {1, -1, 1};
  const std::vector<int> zeros = {0, 0, 0}, far = {0, 300, 0};
  CHECK(sentence([&] { torch::quantize_per_tensor<torch::qint8>(in, 0.0, 0); }) ==
        "qtensor: scale 0 is 0; a scale must be finite and positive.");
  CHECK(sentence([&] { torch::quantize_per_tensor<torch::qint8>(in, 1e-60, 0); }) ==
        "qtensor: scale 0 is 0; a scale must be finite and positive.");
  CHECK(sentence([&] { torch::quantize_per_tensor<torch::qint8>(in, 1.0, 128); }) ==
        "qtensor: zero point 0 is 128; it must be a code that int32 holds, from -128 to 127.");
  CHECK(sentence([&] { torch::quantize_per_channel<torch::qint8>(in, three, zeros, 2); }) ==
        "qtensor: axis is 2 but the tensor has rank 2; it goes from -2 to 1.");
  CHECK(sentence([&] { torch::quantize_per_channel<torch::qint8>(in, three, zeros, 0); }) ==
        "qtensor: quantize is given 3 scales but the tensor has 2 blocks; pass one scale a block, or a single number.");
  CHECK(sentence([&] { torch::quantize_per_channel<torch::qint8>(in, bad, zeros, 1); }) ==
        "qtensor: scale 1 is -1; a scale must be finite and positive.");
  CHECK(sentence([&] { torch::quantize_per_channel<torch::qint8>(in, three, far, 1); }) ==
        "qtensor: zero point 1 is 300; it must be a code that int32 holds, from -128 to 127.");
  CHECK(sentence([&] { torch::fake_quantize_per_tensor_affine(in, 1.0, 9, 0, 7); }) ==
        "qtensor: zero point 0 is 9; it must lie between quant_min 0 and quant_max 7.");
  CHECK(sentence([&] { torch::fake_quantize_per_tensor_affine(in, 1.0, 0, 1, 0); }) ==
        "qtensor: quant_min 1 is above quant_max 0.");
  CHECK(sentence([&] { torch::fake_quantize_per_tensor_affine(in, -2.0, 0, 0, 7); }) ==
        "qtensor: scale 0 is -2; a scale must be finite and positive as a float.");
  CHECK(sentence([&] { torch::fake_quantize_per_tensor_affine(in, 1.0, 0, 0, std::int64_t{1} << 32); }) ==
        "qtensor: quant_min 0 to quant_max 4294967296 are not 32-bit codes.");
  CHECK(sentence([&] { torch::fake_quantize_per_channel_affine(in, three, zeros, 0, 0, 7); }) ==
        "qtensor: 3 scales and 3 zero points are given; axis 0 needs 2 of each.");
  const auto t = torch::quantize_per_channel<torch::qint8>(in, three, zeros, 1);
  CHECK(sentence([&] {
          torch::dequantize_per_channel(t, std::vector<double>{1, 2});
        }) == "qtensor: dequantize_per_channel is given 2 scales but the tensor has 3 channels.");
}

TEST_CASE("torch: a tensor of no elements has channels, too") {
  const std::vector<double> scales = {.1, .2, .3};
  const std::vector<int> zeros = {1, 2, 3};
  const float* none = nullptr;
  const auto t = torch::quantize_per_channel<torch::qint8>(source(none, extents(0, 3)), scales, zeros, 1);
  CHECK(t.size() == 0);
  CHECK(torch::dequantize_per_channel(t, scales).empty());
}
