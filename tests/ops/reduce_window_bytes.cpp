// Mirrors include/qtensor/ops/reduce_window_bytes.hpp: windows on bytes give the bits of the fold step by step.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/reduce_window.hpp>

#include "ops/reduce_check.hpp"

using namespace reduce_check;

namespace {

/// A body of ours that `reduce_window` does not know: it is folded step by step.
template <class Body>
auto unknown(const Body& body) {
  return [body](const auto& a, const auto& b) { return body(a, b); };
}

template <class X, int Rank, class... Output>
void check(const X& x, const window<Rank>& w, float init = 0.f, const Output&... output) {
  const auto seed = number_like(x, init);
  const auto wide = requantize_to<i32>(elements(x).type().scale, 3);
  const auto other = requantize_to<i32>(.031f);
  const auto same = [&](const auto& ours, const auto& steps) {
    REQUIRE(ours.extents() == steps.extents());
    CHECK(std::equal(ours.codes().begin(), ours.codes().end(), steps.codes().begin()));
  };
  const auto both = [&](const auto& body, const auto&... input) {
    same(reduce_window(x, seed, w, input..., body, output...),
         reduce_window(x, seed, w, input..., unknown(body), output...));
  };
  both(max);
  both(min);
  both(add, wide);
  both(max, wide);
  both(min, wide);
  both(add, other);
  both(max, other);
}

template <class S, class... Extent>
auto image(Extent... extent) {
  std::vector<int> codes(static_cast<std::size_t>((extent * ...)));
  std::uint32_t state = 7;
  for (int& c : codes) {
    state = state * 1664525u + 1013904223u;
    c = static_cast<int>(state >> 24);
  }
  return codes_in<S>(extents(extent...), .1f, std::is_same_v<S, u8> ? 100 : -3, codes);
}

}  // namespace

TEST_CASE("windows on bytes: sizes, strides, dilations and padding of either sign") {
  const auto x = image<u8>(23, 91);
  const auto y = image<i8>(23, 91);
  for (const window<2>& w :
       {window<2>{.sizes = {3, 3}}, window<2>{.sizes = {3, 3}, .strides = {2, 2}, .padding_low = {1, 1}},
        window<2>{.sizes = {2, 5}, .window_dilations = {3, 2}}, window<2>{.sizes = {1, 7}, .padding_high = {0, 9}},
        window<2>{.sizes = {4, 1}, .padding_low = {5, 0}, .padding_high = {5, 0}},
        window<2>{.sizes = {3, 4}, .strides = {1, 3}, .padding_low = {-2, -5}, .padding_high = {3, -1}},
        window<2>{.sizes = {2, 2}, .window_dilations = {2, 2}, .padding_low = {1, 2}, .padding_high = {2, 1}},
        window<2>{.sizes = {23, 91}}, window<2>{.sizes = {2, 2}, .base_dilations = {2, 1}},
        window<2>{.sizes = {2, 3}, .padding_low = {0, -100}, .padding_high = {0, 150}}}) {
    INFO("sizes ", w.sizes[0], " ", w.sizes[1], " strides ", w.strides[1], " low ", w.padding_low[1]);
    for (float init : {0.f, 4.f, -8.f}) {
      check(x, w, init);
      check(y, w, init);
    }
  }
}

TEST_CASE("windows on bytes: an output conversion, also one that gives floats") {
  const auto x = image<u8>(40, 70);
  const window<2> w{.sizes = {3, 3}, .strides = {1, 2}};
  check(x, w, 0.f, requantize_to<u8>(.3f, 20));
  const auto zero = number_like(x, 0.f);
  const auto wide = requantize_to<i32>(.1f);
  const auto half = [](const auto& n) { return n.real() * .5f; };
  CHECK(all_of(reduce_window(x, zero, w, wide, add, half)) ==
        all_of(reduce_window(x, zero, w, wide, unknown(add), half)));
}

TEST_CASE("windows on bytes: channels last, rank 4, and column-major tensors") {
  std::vector<float> data(2 * 9 * 8 * 33);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(static_cast<int>(i * 7919 % 255) - 127);
  const auto x = quantize<i8>(source(data.data(), extents(2, 9, 8, 33)), 1.f, 1);
  check(x, window<4>{.sizes = {1, 3, 3, 1}, .strides = {1, 2, 2, 1}, .padding_low = {0, 1, 1, 0}});
  const auto columns = quantize<i8, col_major>(source(data.data(), extents(72, 66)), 1.f, 1);
  check(columns, window<2>{.sizes = {3, 2}});
}

TEST_CASE("windows on bytes: small planes of every width, with channels before them and behind") {
  for (index_t wide = 1; wide <= 20; ++wide) {
    CAPTURE(wide);
    const index_t stride = 1 + wide % 3, low = wide % 4 - 1, high = wide % 2;
    check(image<i8>(2, 19, 5, wide), window<4>{.sizes = {1, 1, 3, 2},
                                               .strides = {1, 1, 1 + wide % 2, stride},
                                               .padding_low = {0, 0, high, low},
                                               .padding_high = {0, 0, 0, 1 + high}});
    check(image<u8>(2, 7, wide, 13), window<4>{.sizes = {1, 2, 3, 1},
                                               .strides = {1, 1, stride, 1},
                                               .padding_low = {0, high, low, 0},
                                               .padding_high = {0, 1, 1 + high, 0}});
  }
}

TEST_CASE("windows on bytes: blocks that are part of an axis, between axes of windows and of none") {
  const window<4> planes{.sizes = {1, 1, 3, 3}, .strides = {1, 1, 2, 2}, .padding_low = {0, 0, 1, 1}};
  check(image<i8>(2, 160, 11, 10), planes);  // some channels at a time
  check(image<u8>(3, 2, 70, 130), planes);   // some rows
  check(image<i8>(2, 4, 5, 600), planes);    // a row
  check(image<u8>(2, 4, 33, 20),             // some columns with all channels, two rows and two images at a time
        window<4>{.sizes = {2, 2, 2, 1}, .strides = {1, 2, 1, 1}, .padding_low = {1, 0, 1, 0}});
  check(image<i8>(2, 2, 900, 20),
        window<4>{.sizes = {2, 1, 5, 1}, .strides = {1, 1, 3, 1}, .padding_high = {0, 1, 7, 0}});
  const auto x = image<u8>(40, 90);
  for (const auto& part :
       {x.view().template slice<1>(3, 50), x.view().template slice<0>(2, 30).template slice<1>(0, 64)})
    check(part, window<2>{.sizes = {3, 3}, .padding_low = {0, 1}});
}

TEST_CASE("windows on bytes: results known in advance are those that were asked for") {
  int made = 0;
  const auto x = image<u8>(30, 60);
  const auto counted = [&](const auto& n) {
    ++made;
    return n.real();
  };
  const auto y = reduce_window(x, number_like(x, -10.f), window<2>{.sizes = {3, 3}}, max, counted);
  CHECK(y.size() == 28 * 58);
  CHECK(made < 300);  // each of the 256 codes at most once, and the seed
}
