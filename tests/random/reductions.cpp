// Random reductions, windows, pools and scatters of every kind of element, against folds written out by hand.
// SPDX-License-Identifier: BSD-3-Clause
#include <memory>
#include <qtensor/ops/parameters.hpp>
#include <qtensor/ops/select_and_scatter.hpp>
#include <sstream>

#include "dice.hpp"

using namespace qtensor;
using fuzz::dice;

namespace {

using index3 = std::array<index_t, 3>;

// Schemes with policies, which a view has lost, and without.
template <class Code>
using before_round = scheme<Code, per_tensor, zero_point<Code>, static_only, zp_before_round, nan_to_zero>;
template <class Code>
using after_round = scheme<Code, per_tensor, zero_point<Code>>;
template <class Code>
using without_zero = scheme<Code, per_tensor>;
template <class S>
inline constexpr bool has_slices = std::same_as<S, typename tensor_view<S>::scheme_type>;

// ---- one number, by definition -------------------------------------------------------------------------------------

template <class T>
float real_of(const T& x) {
  if constexpr (quantized_number_type<T>) {
    using S = typename T::scheme_type;
    using code = typename S::code_format;
    if constexpr (code::is_integer) {
      const std::int64_t c =
          code::is_signed
              ? static_cast<std::int64_t>(static_cast<std::int32_t>(x.code << (32 - code::bits)) >> (32 - code::bits))
              : std::int64_t{x.code};
      return rounded(static_cast<float>(c - x.zero_point) * x.scale);
    } else {
      return rounded(decode<code>(x.code) * x.scale);
    }
  } else {
    return static_cast<float>(x);
  }
}
/// x as a number of the type of `like`.
template <class T>
T number_of(float x, const T& like) {
  if constexpr (quantized_number_type<T>)
    return {quantize_element<typename T::scheme_type>(x, {like.scale, 1.f}, like.zero_point), like.scale,
            like.zero_point};
  else
    return static_cast<T>(x);
}
/// A number's bits; NaNs are all alike.
template <class T>
std::uint64_t bits_in(const T& x) {
  if constexpr (quantized_number_type<T>)
    return x.code;
  else if constexpr (std::integral<T>)
    return static_cast<std::uint64_t>(x);
  else
    return static_cast<float>(x) != static_cast<float>(x) ? 0x7fc00000u : bits_of(static_cast<float>(x));
}

enum class body { add, multiply, max, min };

/// A step of a fold by one of our bodies.
template <body Body, class T>
T step(const T& a, const T& b) {
  if constexpr (std::integral<T> && !std::same_as<T, bool>) {
    using word = std::make_unsigned_t<T>;
    const auto p = static_cast<std::uint64_t>(a), q = static_cast<std::uint64_t>(b);
    return Body == body::add        ? static_cast<T>(static_cast<word>(p + q))
           : Body == body::multiply ? static_cast<T>(static_cast<word>(p * q))
           : Body == body::max      ? std::max(a, b)
                                    : std::min(a, b);
  } else if constexpr (std::same_as<T, bool>) {
    return Body == body::add || Body == body::max ? a || b : a && b;
  } else {
    const float p = real_of(a), q = real_of(b);
    if (Body == body::add) return number_of(rounded(p + q), a);
    if (Body == body::multiply) return number_of(rounded(p * q), a);
    if (p != p || q != q) return number_of(quiet_nan, a);
    const bool negative = Body == body::max ? std::signbit(p) && std::signbit(q) : std::signbit(p) || std::signbit(q);
    if (p == 0.f && q == 0.f) return number_of(negative ? -0.f : 0.f, a);
    return number_of(Body == body::max ? std::max(p, q) : std::min(p, q), a);
  }
}
template <body Body>
constexpr auto body_of_name() {
  if constexpr (Body == body::add)
    return add;
  else if constexpr (Body == body::multiply)
    return multiply;
  else if constexpr (Body == body::max)
    return max;
  else
    return min;
}

// ---- folds, by definition ------------------------------------------------------------------------------------------

template <class F>
void for_each(const index3& sizes, const F& f) {
  index3 at{};
  for (at[0] = 0; at[0] < sizes[0]; ++at[0])
    for (at[1] = 0; at[1] < sizes[1]; ++at[1])
      for (at[2] = 0; at[2] < sizes[2]; ++at[2]) f(static_cast<const index3&>(at));
}
/// The element that a window meets; false for padding and holes.
bool is_inside(const index3& extents, const window<3>& w, const index3& index, const index3& k, index3& at) {
  for (std::size_t a = 0; a < 3; ++a) {
    const index_t place = index[a] * w.strides[a] + k[a] * w.window_dilations[a] - w.padding_low[a];
    at[a] = place / w.base_dilations[a];
    if (place < 0 || place % w.base_dilations[a] != 0 || at[a] >= extents[a]) return false;
  }
  return true;
}
/// Every window's fold from a seed, which padding and holes are, too.
template <body Body, class State, class Leaf>
std::vector<State> folded(const index3& extents, const window<3>& w, const index3& counts, const State& seed,
                          const Leaf& leaf) {
  std::vector<State> out;
  for_each(counts, [&](const index3& index) {
    State acc = seed;
    for_each(w.sizes, [&](const index3& k) {
      index3 at{};
      acc = step<Body>(acc, is_inside(extents, w, index, k, at) ? leaf(at) : seed);
    });
    out.push_back(acc);
  });
  return out;
}
/// `window<3>::counts` written out.
index3 counts_of(const index3& extents, const window<3>& w) {
  index3 n{};
  for (std::size_t a = 0; a < 3; ++a) {
    const index_t padded =
        w.padding_low[a] + (extents[a] == 0 ? 0 : (extents[a] - 1) * w.base_dilations[a] + 1) + w.padding_high[a];
    const index_t reach = (w.sizes[a] - 1) * w.window_dilations[a] + 1;
    n[a] = padded <= 0 || reach > padded ? 0 : (padded - reach) / w.strides[a] + 1;
  }
  return n;
}

/// The results are these, in order.
template <class Result, class T>
void require_equal(const Result& y, const std::vector<T>& want) {
  if constexpr (quantized<Result>) {
    REQUIRE(y.size() == static_cast<index_t>(want.size()));
    using index_array = typename Result::extents_type::array;
    std::size_t i = 0;
    reference::for_each_index(index_array{}, y.extents().to_array(), [&](const index_array& at) {
      INFO("result ", i);
      REQUIRE(y.view().code(at) == want[i++].code);
    });
    if (want.empty()) return;
    using S = typename Result::scheme_type;
    REQUIRE(decode<typename S::scale_format>(y.view().storage_scale_code({})) == want[0].scale);
    if constexpr (S::has_zero_point) REQUIRE(y.view().storage_zero_point({}) == want[0].zero_point);
  } else if constexpr (requires { y.data(); }) {
    REQUIRE(y.size() == static_cast<index_t>(want.size()));
    for (std::size_t i = 0; i < want.size(); ++i) {
      INFO("result ", i);
      REQUIRE(bits_in(y.data()[i]) == bits_in(want[i]));
    }
  } else {
    REQUIRE(want.size() == 1);
    REQUIRE(bits_in(y) == bits_in(want[0]));
  }
}

// ---- draws ---------------------------------------------------------------------------------------------------------

index3 drawn_extents(dice& dice) {
  index3 e{};
  for (index_t& n : e) n = dice.within(dice.chance(40) ? 0 : 1, dice.chance(3) ? 70 : 12);
  if (dice.chance(6)) e[static_cast<std::size_t>(dice.within(0, 2))] = dice.within(1, 6000);
  const index_t most = dice.chance(20) ? 200000 : 20000;
  while (e[0] * e[1] * e[2] > most) {
    index_t& one = e[static_cast<std::size_t>(dice.within(0, 2))];
    one = divide_up(one, index_t{2});
  }
  return e;
}
window<3> drawn_window(dice& dice, const index3& extents, bool dilated) {
  window<3> w;
  do {
    const bool pads = dice.chance(2), strides = dice.chance(2), dilates = dilated && dice.chance(3);
    const bool holes = dilated && dice.chance(6);
    for (std::size_t a = 0; a < 3; ++a) {
      w.sizes[a] = dice.within(1, dice.chance(10) ? 12 : 4);
      if (dice.chance(10)) w.sizes[a] = std::max(index_t{1}, extents[a]);
      w.strides[a] = strides ? dice.within(1, 3) : 1;
      w.base_dilations[a] = holes ? dice.within(1, 3) : 1;
      w.window_dilations[a] = dilates ? dice.within(1, 3) : 1;
      w.padding_low[a] = pads ? dice.within(-2, 3) : 0;
      w.padding_high[a] = pads ? dice.within(-2, 3) : 0;
    }
  } while (dynamic_extents<3>(counts_of(extents, w)).size() * dynamic_extents<3>(w.sizes).size() > 400000);
  return w;
}
std::string text(const index3& extents, const window<3>& w) {
  std::ostringstream s;
  const auto list = [&](const char* name, const index3& v) {
    s << name << " " << v[0] << " " << v[1] << " " << v[2] << ", ";
  };
  list("of", extents), list("sizes", w.sizes), list("strides", w.strides), list("base", w.base_dilations);
  list("dilations", w.window_dilations), list("low", w.padding_low), list("high", w.padding_high);
  return s.str();
}

/// A scale, and a zero point, mostly a code near 0.
template <class S>
number_type<S> drawn_type(dice& dice, float about) {
  const float part = dice.chance(2) ? 1.f : 1.f + static_cast<float>(dice.within(0, 4095)) / 4096.f;
  float scale = about * part * exp2i(static_cast<int>(dice.chance(3) ? dice.within(-12, 12) : dice.within(-2, 2)));
  if (dice.chance(3)) scale = about;
  if (!(is_finite(scale) && scale > 0.f)) scale = 1.f;
  std::int64_t zero = 0;
  if constexpr (S::has_zero_point) {
    const auto low = static_cast<std::int64_t>(S::codes.low), high = detail::highest_code<S>;
    zero = dice.one_of(std::max<std::int64_t>(low, -20), low, high, std::int64_t{1}, std::int64_t{0});
    if (dice.chance(2)) zero = dice.within(std::max<std::int64_t>(low, -100), std::min<std::int64_t>(high, 100));
  }
  return requantize_to<S>(scale, zero);
}

template <class T>
T converted(const identity&, const T& x) {
  return x;
}
template <class S, class T>
quantized_number<S> converted(const number_type<S>& to, const T& x) {
  return number_of(real_of(x), quantized_number<S>{0, to.scale, to.zero_point});
}
template <class F, class T>
auto converted(const convert_to<F>&, const T& x) {
  return number_of(real_of(x), typename convert_to<F>::value_type());
}

// ---- checks --------------------------------------------------------------------------------------------------------

/// Any dimensions of x, or windows of it; element(index) is what x holds.
template <body Body, class X, class Element, class Init, class In, class Out>
void check_folds(dice& dice, const X& x, const index3& extents, const Element& element, const Init& init, const In& in,
                 const Out& out) {
  constexpr auto by = body_of_name<Body>();
  const auto seed = converted(in, init);
  const auto expected = [&](const window<3>& w, const index3& counts) {
    using state = std::remove_const_t<decltype(seed)>;
    const auto states =
        folded<Body, state>(extents, w, counts, seed, [&](const index3& at) { return converted(in, element(at)); });
    std::vector<std::remove_cvref_t<decltype(converted(out, seed))>> results;
    for (const state& one : states) results.push_back(converted(out, one));
    return results;
  };
  const int a = static_cast<int>(dice.within(0, 2)), b = (a + static_cast<int>(dice.within(1, 2))) % 3;
  const index_t kind = dice.within(0, 4);
  window<3> w;
  index3 counts = extents;
  if (kind > 2) {
    w = drawn_window(dice, extents, true);
    counts = counts_of(extents, w);
  } else {
    for (int d = 0; d < 3; ++d)
      if (kind == 2 || d == a || (kind == 1 && d == b)) {
        w.sizes[static_cast<std::size_t>(d)] = extents[static_cast<std::size_t>(d)];
        counts[static_cast<std::size_t>(d)] = 1;
      }
  }
  INFO("kind ", kind, " dimensions ", a, " ", b, ": ", text(extents, w), " body ", static_cast<int>(Body));
  const auto want = expected(w, counts);
  if (kind == 0)
    require_equal(reduce(x, init, dimensions(a), in, by, out), want);
  else if (kind == 1)
    require_equal(reduce(x, init, dimensions(a, b), in, by, out), want);
  else if (kind == 2)
    require_equal(reduce(x, init, dimensions(0, 1, 2), in, by, out), want);
  else
    require_equal(reduce_window(x, init, w, in, by, out), want);
}

/// Codes under one scale, a part of some more of them, with a number like its elements.
template <class S, class Order>
struct random_codes {
  using number = quantized_number<S>;
  index3 extents;
  number like{};
  tensor<S, dynamic_extents<3>, Order> whole;
  index_t first;

  explicit random_codes(dice& dice) : extents(drawn_extents(dice)), first(has_slices<S> ? dice.within(0, 2) : 0) {
    index3 all = extents;
    if (has_slices<S>) all[1] += first + dice.within(0, 1);
    whole = tensor<S, dynamic_extents<3>, Order>(dynamic_extents<3>(all));
    const number_type<S> type = drawn_type<S>(dice, dice.chance(10) ? dice.one_of(0x1p-140f, 0x1p100f) : 0.01f);
    like = type.of_code(0);
    store_scales(whole.span(), type.scale);
    if constexpr (S::has_zero_point) store_zero_points(whole.span(), std::int64_t{type.zero_point});
    using unit = std::remove_cvref_t<decltype(whole.codes()[0])>;
    const index_t kind = dice.within(0, 3), same = dice.bits(), near = dice.one_of(1, 3, 40);
    for (auto& c : whole.codes())
      c = static_cast<unit>(kind == 0   ? same
                            : kind == 1 ? type.zero_point + dice.within(-near, near)
                            : kind == 2 ? same + dice.within(0, near)
                                        : index_t{dice.bits()});
    if (whole.size() == 0 || dynamic_extents<3>(extents).size() == 0) like.scale = 1.f, like.zero_point = 0;
  }
  decltype(auto) elements() const {
    if constexpr (has_slices<S>)
      return whole.view().template slice<1>(first, extents[1]);
    else
      return (whole);
  }
  number operator()(const index3& at) const {
    return {whole.view().code(index3{at[0], at[1] + first, at[2]}), like.scale, like.zero_point};
  }
  number drawn_number(dice& dice) const {
    return number_of(dice.chance(2) ? 0.f : static_cast<float>(dice.within(-300, 300)) * like.scale, like);
  }
};

/// Reductions of codes through accumulators of scheme A (void: their own) to results of scheme R (void: the same).
template <body Body, class S, class A = void, class R = void, class Order = row_major>
void of_codes(dice& dice) {
  const random_codes<S, Order> x(dice);
  const auto type = [&]<class T>(std::type_identity<T>) {
    if constexpr (std::same_as<T, void>)
      return identity{};
    else
      return drawn_type<T>(dice, x.like.scale);
  };
  const auto in = type(std::type_identity<A>{});
  const auto out = type(std::type_identity<R>{});
  const auto init = x.drawn_number(dice);
  INFO(std::string(name<S>), " scale ", x.like.scale, " zero ", x.like.zero_point, " init ", init.code);
  if constexpr (!std::same_as<A, void>) INFO("by ", std::string(name<A>), " scale ", in.scale, " zero ", in.zero_point);
  check_folds<Body>(dice, x.elements(), x.extents, x, init, in, out);
}

/// Floats of memory of any strides.
template <body Body, class F, class In>
void of_floats(dice& dice, const In& in) {
  const index3 extents = drawn_extents(dice);
  index3 strides = dense_strides(extents);
  const bool turned = dice.chance(3);
  if (turned) strides = {1, extents[0], extents[0] * extents[1]};
  const index_t apart = dice.chance(3) ? 2 : 1;
  for (index_t& one : strides) one *= apart;
  const std::vector<float> numbers = dice.numbers(dynamic_extents<3>(extents).size() * apart);
  std::vector<storage_t<F>> x;
  for (float v : numbers) {
    if constexpr (std::same_as<F, f32>)
      x.push_back(v);
    else
      x.push_back(static_cast<storage_t<F>>(encode<F, to_special>(v)));
  }
  using element = typename convert_to<F>::value_type;
  const auto at = [&](const index3& index) {
    const storage_t<F> v =
        x[static_cast<std::size_t>(index[0] * strides[0] + index[1] * strides[1] + index[2] * strides[2])];
    if constexpr (std::same_as<F, f32>)
      return v;
    else
      return element::of_code(v);
  };
  const auto source = qtensor::source<F>(x.data(), dynamic_extents<3>(extents), strides);
  check_folds<Body>(dice, source, extents, at, element(dice.chance(2) ? 0.f : dice.numbers(1)[0]), in, identity{});
}
/// Whole numbers.
template <body Body, class T>
void of_integers(dice& dice) {
  const index3 extents = drawn_extents(dice);
  std::unique_ptr<T[]> x(new T[static_cast<std::size_t>(dynamic_extents<3>(extents).size())]);
  for (index_t i = 0; i < dynamic_extents<3>(extents).size(); ++i)
    x[static_cast<std::size_t>(i)] = static_cast<T>(dice.bits() & 3 ? dice.bits() : 0);
  const index3 strides = dense_strides(extents);
  check_folds<Body>(
      dice, values(static_cast<const T*>(x.get()), dynamic_extents<3>(extents)), extents,
      [&](const index3& at) { return x[static_cast<std::size_t>(at[0] * strides[0] + at[1] * strides[1] + at[2])]; },
      static_cast<T>(dice.bits() & 1), identity{}, identity{});
}

/// Pools of codes: the largest, and means through sums of scheme A as numbers of R.
template <class S, class A, class R>
void of_pools(dice& dice) {
  const random_codes<S, row_major> x(dice);
  const window<3> w = drawn_window(dice, x.extents, true);
  const index3 counts = counts_of(x.extents, w);
  INFO(std::string(name<S>), " scale ", x.like.scale, " zero ", x.like.zero_point, " ", text(x.extents, w));
  auto lowest = x.like;
  lowest.code = static_cast<std::uint32_t>(static_cast<std::int64_t>(S::codes.low)) & low_bits(S::code_format::bits);
  require_equal(max_pool(x.elements(), w), folded<body::max>(x.extents, w, counts, lowest, x));

  const number_type<A> sums = drawn_type<A>(dice, x.like.scale);
  const number_type<R> means = drawn_type<R>(dice, x.like.scale);
  const bool all = dice.chance(2);
  INFO("sums ", sums.scale, " ", sums.zero_point, " means ", means.scale, " ", means.zero_point, " of all ", all);
  const auto states = folded<body::add>(x.extents, w, counts, converted(sums, number_of(0.f, x.like)),
                                        [&](const index3& at) { return converted(sums, x(at)); });
  std::vector<quantized_number<R>> want;
  for_each(counts, [&](const index3& index) {
    float n = 0.f;
    for_each(w.sizes, [&](const index3& k) {
      index3 at{};
      if (all || is_inside(x.extents, w, index, k, at)) n += 1.f;
    });
    const float sum = real_of(states[want.size()]);
    want.push_back(converted(means, n > 0.f ? rounded(sum / n) : 0.f));
  });
  require_equal(average_pool(x.elements(), w, sums, means, all ? pool_count::window : pool_count::elements), want);
}

/// Values scattered to the elements that windows select, by scatter through In.
template <body Body, class T, class X, class Element, class Values, class Value, class In>
void check_scatter(const X& x, const index3& extents, const Element& element, const window<3>& w, const Values& values,
                   const Value& value, const T& init, const In& in) {
  using state = std::remove_cvref_t<decltype(converted(in, init))>;
  const index3 strides = dense_strides(extents);
  std::vector<state> want(static_cast<std::size_t>(dynamic_extents<3>(extents).size()), converted(in, init));
  for_each(counts_of(extents, w), [&](const index3& index) {
    index_t selected = -1;
    float best = 0.f;
    for_each(w.sizes, [&](const index3& k) {
      index3 at{};
      if (!is_inside(extents, w, index, k, at)) return;
      const float next = real_of(element(at));
      if (selected >= 0 && best >= next) return;
      selected = at[0] * strides[0] + at[1] * strides[1] + at[2], best = next;
    });
    if (selected < 0) return;
    state& sum = want[static_cast<std::size_t>(selected)];
    sum = step<Body>(sum, converted(in, value(index)));
  });
  const auto select = [](const T& a, const T& b) { return real_of(a) >= real_of(b); };
  require_equal(select_and_scatter(x, values, init, w, select, in, body_of_name<Body>(), identity{}), want);
}
template <class S, class A>
void of_scatters(dice& dice) {
  const random_codes<S, row_major> x(dice);
  const window<3> w = drawn_window(dice, x.extents, false);
  const index3 counts = counts_of(x.extents, w);
  const number_type<A> in = drawn_type<A>(dice, x.like.scale);
  tensor<S, dynamic_extents<3>> values{dynamic_extents<3>(counts)};
  store_scales(values.span(), x.like.scale);
  if constexpr (S::has_zero_point) store_zero_points(values.span(), std::int64_t{x.like.zero_point});
  for (auto& c : values.codes()) c = static_cast<std::remove_reference_t<decltype(c)>>(dice.bits());
  INFO(std::string(name<S>), " scale ", x.like.scale, " zero ", x.like.zero_point, " ", text(x.extents, w));
  check_scatter<body::add>(
      x.elements(), x.extents, x, w, values,
      [&](const index3& at) {
        return quantized_number<S>{values.view().code(at), x.like.scale, x.like.zero_point};
      },
      x.drawn_number(dice), in);
}
void of_float_scatters(dice& dice) {
  const index3 extents = drawn_extents(dice);
  const window<3> w = drawn_window(dice, extents, false);
  const dynamic_extents<3> all(extents), counts(counts_of(extents, w));
  const std::vector<float> x = dice.numbers(all.size()), values = dice.numbers(counts.size());
  const auto at = [](const std::vector<float>& of, const index3& sizes, const index3& index) {
    return of[static_cast<std::size_t>((index[0] * sizes[1] + index[1]) * sizes[2] + index[2])];
  };
  INFO(text(extents, w));
  check_scatter<body::add>(
      source(x.data(), all), extents, [&](const index3& index) { return at(x, extents, index); }, w,
      source(values.data(), counts), [&](const index3& index) { return at(values, counts.to_array(), index); }, 0.f,
      identity{});
}

}  // namespace

TEST_CASE("reductions of codes: dimensions and windows, by every body and kind of accumulator") {
  fuzz::each_case(400, [](dice& dice) {
    fuzz::one_case_of(
        dice, &of_codes<body::add, before_round<uint8>, before_round<int32>, before_round<uint8>>,
        &of_codes<body::add, after_round<int8>, without_zero<int32>>,
        &of_codes<body::add, without_zero<int8>, after_round<int32>, void, col_major>,
        &of_codes<body::add, after_round<uint8>>, &of_codes<body::max, before_round<uint8>, after_round<int16>>,
        &of_codes<body::min, after_round<int8>, void, before_round<int8>, col_major>,
        &of_codes<body::max, without_zero<int8>>, &of_codes<body::multiply, after_round<int8>, before_round<int32>>,
        &of_codes<body::multiply, before_round<uint8>, void, void, col_major>,
        &of_codes<body::add, without_zero<int4>, after_round<int16>>);
  });
}
TEST_CASE("reductions of floats, whole numbers and booleans") {
  fuzz::each_case(300, [](dice& dice) {
    switch (dice.within(0, 7)) {
      case 0:
        return of_floats<body::add, f32>(dice, identity{});
      case 1:
        return of_floats<body::max, f32>(dice, identity{});
      case 2:
        return of_floats<body::add, bf16>(dice, convert_to<f32>{});
      case 3:
        return of_floats<body::min, f16>(dice, identity{});
      case 4:
        return of_floats<body::multiply, bf16>(dice, identity{});
      case 5:
        return of_integers<body::add, std::int8_t>(dice);
      case 6:
        return of_integers<body::multiply, std::int64_t>(dice);
      default:
        return of_integers<body::max, bool>(dice);
    }
  });
}
TEST_CASE("pools of codes") {
  fuzz::each_case(200, [](dice& dice) {
    dice.chance(2) ? of_pools<after_round<uint8>, without_zero<int32>, after_round<uint8>>(dice)
                   : of_pools<before_round<int8>, before_round<int32>, after_round<int4>>(dice);
  });
}
TEST_CASE("values scattered to what windows select") {
  fuzz::each_case(200, [](dice& dice) {
    dice.chance(2) ? of_float_scatters(dice) : of_scatters<after_round<uint8>, after_round<int16>>(dice);
  });
}
