// A scheme: format, granularity and policies joined into one type, checked, and reduced to a canonical form.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/format/hifloat8.hpp>
#include <qtensor/policy/granularity.hpp>
#include <qtensor/scheme/policy_check.hpp>

namespace qtensor {

namespace detail {

template <class... T>
struct list {
  static constexpr int size = static_cast<int>(sizeof...(T));
};

template <class A, class B>
struct joined;
template <class... A, class... B>
struct joined<list<A...>, list<B...>> {
  using type = list<A..., B...>;
};

/// Slots in canonical order: the stored ones, then the conversion ones. A new slot is a line here and a default below.
using stored_slots =
    list<slot::scale_format, slot::zero_point, slot::offset, slot::tensor_scale, slot::stored_range, slot::layout>;
using conversion_slots =
    list<slot::rule, slot::rounding, slot::overflow, slot::nan, slot::nonfinite_block, slot::subnormal_amax,
         slot::code_scale, slot::division, slot::division_type, slot::zero_point_order>;
using all_slots = joined<stored_slots, conversion_slots>::type;
/// Those that say how a number becomes a code once its scale is known; the others say how the scale comes about.
using coding_slots = joined<stored_slots, list<slot::rounding, slot::overflow, slot::nan, slot::division,
                                               slot::division_type, slot::zero_point_order>>::type;

template <class Slot, class List>
inline constexpr bool contains = false;
template <class Slot, class... S>
inline constexpr bool contains<Slot, list<S...>> = (std::is_same_v<Slot, S> || ...);

/// The policy among P... that fills Slot, else Fallback.
template <class Slot, class Fallback, class... P>
struct find {
  using type = Fallback;
};
template <class Slot, class Fallback, class First, class... P>
struct find<Slot, Fallback, First, P...> : std::conditional_t<std::is_same_v<typename First::slot, Slot>,
                                                              std::type_identity<First>, find<Slot, Fallback, P...>> {};
template <class Slot, class Fallback, class... P>
using find_t = typename find<Slot, Fallback, P...>::type;

template <class Slot, class... P>
inline constexpr int count_of = (0 + ... + (std::is_same_v<typename P::slot, Slot> ? 1 : 0));

// What a slot holds where the scheme does not say.
template <class Slot, class Code, class... P>
struct default_policy;
template <class C, class... P>
struct default_policy<slot::scale_format, C, P...> : std::type_identity<scale_as<f32>> {};
template <class C, class... P>
struct default_policy<slot::zero_point, C, P...> : std::type_identity<symmetric> {};
template <class C, class... P>
struct default_policy<slot::offset, C, P...> : std::type_identity<no_offset> {};
template <class C, class... P>
struct default_policy<slot::tensor_scale, C, P...> : std::type_identity<one_level> {};
template <class C, class... P>
struct default_policy<slot::stored_range, C, P...> : std::type_identity<full_range> {};
template <class C, class... P>
struct default_policy<slot::layout, C, P...> : std::type_identity<planar<>> {};
template <class C, class... P>
struct default_policy<slot::rule, C, P...> {
  using scale = typename find_t<slot::scale_format, scale_as<f32>, P...>::type;
  using zero = typename find_t<slot::zero_point, symmetric, P...>::type;
  using type = std::conditional_t<!std::is_same_v<zero, none>, min_max,
                                  std::conditional_t<std::is_same_v<scale, e8m0>, static_only, amax_scale>>;
};
template <class C, class... P>
struct default_policy<slot::rounding, C, P...> : default_rounding<C> {};
template <class C, class... P>
struct default_policy<slot::overflow, C, P...> : std::type_identity<saturate> {};
template <class C, class... P>
struct default_policy<slot::nan, C, P...> : std::type_identity<nan_propagates> {};
template <class C, class... P>
struct default_policy<slot::nonfinite_block, C, P...> : std::type_identity<block_propagates> {};
template <class C, class... P>
struct default_policy<slot::subnormal_amax, C, P...> : std::type_identity<subnormal_exact> {};
template <class C, class... P>
struct default_policy<slot::code_scale, C, P...> : std::type_identity<stored_scale> {};
template <class C, class... P>
struct default_policy<slot::division, C, P...> : std::type_identity<exact_division> {};
template <class C, class... P>
struct default_policy<slot::division_type, C, P...> : std::type_identity<divide_in<f32>> {};
template <class C, class... P>
struct default_policy<slot::zero_point_order, C, P...> : std::type_identity<zp_after_round> {};

template <class Slot, class Code, class... P>
using policy_of = find_t<Slot, typename default_policy<Slot, Code, P...>::type, P...>;

template <class First, class... Rest>
constexpr auto joined_names() {
  if constexpr (sizeof...(Rest) == 0)
    return First::name + "";
  else
    return First::name + ", " + joined_names<Rest...>();
}

}  // namespace detail

/// The canonical form of a scheme: `P...` are the policies that differ from their slot's default, in slot order, so
/// equal choices are one type. Write `scheme<...>`, never this.
template <format Code, granularity G, policy... P>
struct basic_scheme {
  template <class Slot>
  using policy_for = detail::policy_of<Slot, Code, P...>;

  using code_format = Code;
  using granularity_type = G;

  // Stored: what the bytes mean. A format, or `none`.
  using scale_format = typename policy_for<slot::scale_format>::type;
  using zero_point_format = typename policy_for<slot::zero_point>::type;
  using offset_format = typename policy_for<slot::offset>::type;
  using tensor_scale_format = typename policy_for<slot::tensor_scale>::type;
  using layout = policy_for<slot::layout>;
  static constexpr bool has_zero_point = !std::is_same_v<zero_point_format, none>;
  static constexpr bool has_offset = !std::is_same_v<offset_format, none>;
  static constexpr bool has_tensor_scale = !std::is_same_v<tensor_scale_format, none>;
  static constexpr bool is_interleaved = interleaved_layout<layout>;
  static constexpr bool has_code_sum = requires { typename layout::code_sum_format; };

 private:
  template <class Zero>
  struct shared_by {
    using type = G;
  };
  template <class Zero>
  requires requires {
    typename Zero::granularity_type;
  } &&(!std::same_as<typename Zero::granularity_type, as_scales>)struct shared_by<Zero> {
    using type = typename Zero::granularity_type;
  };

 public:
  /// Which elements share a zero point: the scheme's granularity unless `zero_point<F, G2>` says otherwise.
  using zero_granularity_type = typename shared_by<policy_for<slot::zero_point>>::type;
  static constexpr bool zero_points_as_scales = std::is_same_v<zero_granularity_type, G>;

  // Conversion: how numbers become codes.
  using rule = policy_for<slot::rule>;
  using rounding = policy_for<slot::rounding>;
  using overflow = policy_for<slot::overflow>;
  using nan = policy_for<slot::nan>;
  using nonfinite_block = policy_for<slot::nonfinite_block>;
  using subnormal_amax = policy_for<slot::subnormal_amax>;
  using code_scale = policy_for<slot::code_scale>;
  using division = policy_for<slot::division>;
  using division_type = typename policy_for<slot::division_type>::type;
  using zero_point_order = policy_for<slot::zero_point_order>;

  /// Smallest and largest code value: the format's, or those of `stored_range`.
  static constexpr code_range codes = [] {
    using range = policy_for<slot::stored_range>;
    if constexpr (requires { range::low; })
      return code_range{static_cast<float>(range::low), static_cast<float>(range::high)};
    else
      return code_range{static_cast<float>(Code::min), static_cast<float>(Code::max)};
  }();

  /// "int4 x group<32> / f32", then the zero point if there is one: what the bytes mean, not how they were made.
  static constexpr auto name = [] {
    constexpr auto head = Code::name + " x " + G::name + " / " + scale_format::name;
    constexpr auto zero = [] {
      if constexpr (has_zero_point)
        return " + " + policy_for<slot::zero_point>::name;
      else
        return fixed_string("");
    }();
    constexpr auto second = [] {
      if constexpr (has_tensor_scale)
        return " / " + tensor_scale_format::name;
      else if constexpr (has_offset)
        return " + " + policy_for<slot::offset>::name;
      else
        return fixed_string("");
    }();
    return head + zero + second;
  }();

  /// Every choice that differs from its default, comma separated; empty when none does.
  static constexpr auto choices = [] {
    if constexpr (sizeof...(P) == 0)
      return fixed_string("");
    else
      return detail::joined_names<P...>();
  }();
};

namespace detail {

/// The basic_scheme that S is or derives from: a struct that derives from a scheme is a scheme with a short name.
template <class C, class G, class... P>
basic_scheme<C, G, P...> as_basic_scheme(const basic_scheme<C, G, P...>*);
template <class S>
using basic_scheme_of = decltype(as_basic_scheme(static_cast<const S*>(nullptr)));

/// basic_scheme over the policies of `Slots` that are not the default.
template <class Code, class G, class Slots, class... P>
struct canonical;
template <class Code, class G, class... Slot, class... P>
struct canonical<Code, G, list<Slot...>, P...> {
  template <class S>
  using kept =
      std::conditional_t<std::is_same_v<policy_of<S, Code, P...>, typename default_policy<S, Code, P...>::type>, list<>,
                         list<policy_of<S, Code, P...>>>;
  template <class List>
  struct build;
  template <class... Kept>
  struct build<list<Kept...>> {
    using type = basic_scheme<Code, G, Kept...>;
  };
  template <class Done, class... Rest>
  struct concat {
    using type = Done;
  };
  template <class... A, class... B, class... Rest>
  struct concat<list<A...>, list<B...>, Rest...> : concat<list<A..., B...>, Rest...> {};
  using type = typename build<typename concat<list<>, kept<Slot>...>::type>::type;
};

template <class F>
inline constexpr bool is_narrow_float = !F::is_integer && F::bits <= 16;

/// The sentences for combinations that mean nothing. A base, so that naming the scheme is enough to read them.
template <class Code, class G, class... P>
struct checked {
  static_assert(policies_complete<Code, P...>);
  static_assert(
      (contains<typename P::slot, all_slots> && ...),
      "qtensor: a policy names a slot that schemes do not have; see policy/slot.hpp for the slots there are.");
  static_assert(
      ((count_of<typename P::slot, P...> == 1) && ...),
      "qtensor: two policies fill the same slot of this scheme; keep one of them (`with<>` replaces a policy).");

  using raw = basic_scheme<Code, G, P...>;
  using scale = typename raw::scale_format;
  using zero = typename raw::zero_point_format;
  using rule = typename raw::rule;
  static constexpr bool names_rule = count_of<slot::rule, P...> > 0;
  // Named, so that compilers print the sentence on the first line of the error instead of the condition's body.
  static constexpr bool zero_point_is_integer = [] {
    if constexpr (raw::has_zero_point)
      return bool(zero::is_integer);
    else
      return true;
  }();
  static constexpr bool stored_range_fits = [] {
    using range = policy_of<slot::stored_range, Code, P...>;
    if constexpr (requires { range::low; })
      return Code::is_integer && static_cast<float>(range::low) >= static_cast<float>(Code::min) &&
             static_cast<float>(range::high) <= static_cast<float>(Code::max);
    else
      return true;
  }();

  using order = typename raw::layout::order;
  static constexpr bool order_fits = [] {
    if constexpr (requires { order::code_bits; })
      return Code::bits == order::code_bits;
    else
      return std::is_same_v<order, low_first> || Code::bits == 4 || Code::bits == 2 || Code::bits >= 8;
  }();
  static constexpr bool rule_gives_scales = [] {
    if constexpr (raw::has_tensor_scale && two_level_rule<rule>)
      return gives_scales_below<rule, Code, scale>;
    else
      return gives_scales<rule, Code, scale>;
  }();
  static constexpr bool order_of_blocks = std::is_same_v<order, split_halves> || requires { order::code_bits; };

  static_assert(
      !std::is_same_v<Code, e8m0>,
      "qtensor: e8m0 is a format of scales, not of codes; it has no zero and no sign. Use it in scale_as<e8m0>.");
  static_assert(Code::is_integer || !raw::has_zero_point,
                "qtensor: a zero point needs integer codes (int8, uint8, int4, ...); this scheme stores a float "
                "format. Use `symmetric`.");
  static_assert(
      zero_point_is_integer,
      "qtensor: a zero point is an integer; zero_point<F> needs an integer format F (int8, uint8, int32, int4, ...).");
  static_assert(
      !scale::is_integer,
      "qtensor: a scale is a real number; scale_as<F> needs a float format F (f32, bf16, f16, e4m3, e5m2, e8m0, ...).");
  static_assert(
      !power_of_two_rule<rule> || std::is_same_v<scale, e8m0>,
      "qtensor: the mx_* scale rules produce powers of two; the scale format must be e8m0: add scale_as<e8m0>.");
  static_assert(
      !std::is_same_v<scale, e8m0> || power_of_two_rule<rule> || (names_rule && std::is_same_v<rule, static_only>),
      "qtensor: e8m0 scales need a power-of-two rule: mx_floor, mx_even, mx_ceil or mx_rceil (or static_only where the "
      "caller gives the scales).");
  static_assert(
      !extremes_rule<rule> || raw::has_zero_point,
      "qtensor: min_max computes a zero point, and this scheme stores none; add zero_point<F> or use amax_scale.");
  static_assert(!raw::has_zero_point || !(amax_rule<rule> || peak_rule<rule>),
                "qtensor: this rule computes no zero point, but the scheme stores one; use min_max, static_only, or "
                "`symmetric`.");
  static_assert(!raw::has_tensor_scale || two_level_rule<rule> || std::is_same_v<rule, static_only>,
                "qtensor: a tensor_scale is computed by two-level rules only (nvfp4_scale); use one of them, or "
                "static_only where the caller gives it.");
  static_assert(!raw::has_tensor_scale || std::is_same_v<typename raw::tensor_scale_format, f32>,
                "qtensor: a tensor_scale is stored as f32.");
  static_assert(!std::is_same_v<typename raw::division, rule_multiplier> || multiplying_rule<rule>,
                "qtensor: rule_multiplier takes a multiplier from the rule, and this one gives none; use "
                "reciprocal_amax<>, or exact_division or reciprocal.");
  static_assert(
      !std::is_same_v<rule, nvfp4_scale> || minifloat_format<scale>,
      "qtensor: nvfp4_scale keeps scales between the smallest normal and the largest number of a minifloat; use "
      "scale_as<e4m3>.");
  static_assert(!(raw::has_offset && raw::has_zero_point),
                "qtensor: a scheme stores an offset (value = code * scale + offset) or a zero point, not both.");
  static_assert(!raw::has_offset || offset_rule<rule> || std::is_same_v<rule, static_only>,
                "qtensor: this rule computes no offset, but the scheme stores one; add offset_min_max, or static_only "
                "where the caller gives it.");
  static_assert(raw::has_offset || !offset_rule<rule>,
                "qtensor: this rule computes an offset, and the scheme stores none; add offset<F>.");
  static_assert(stored_range_fits,
                "qtensor: stored_range<low, high> narrows integer codes and must lie inside their format's range.");
  static_assert(
      !raw::is_interleaved || requires { G::axis; },
      "qtensor: interleaved layouts store groups along one axis; the granularity must be group<N>.");
  static_assert(!raw::is_interleaved || (!raw::has_zero_point && !raw::has_tensor_scale),
                "qtensor: interleaved blocks hold a scale and an offset, no zero point and no tensor scale.");
  static_assert(raw::is_interleaved || !order_of_blocks,
                "qtensor: split_halves orders the codes of one block (so does high_bits_then_halves); it needs the "
                "interleaved layout.");
  static_assert(order_fits,
                "qtensor: 6-bit codes are stored low_first only, and high_bits_then_halves is for 5-bit codes.");
  static_assert(rule_gives_scales,
                "qtensor: a scale rule has the function that its statistics ask for (of absolute_maximum: "
                "scale<Code, Scale>(amax, codes) -> float); see policy/scale_rule.hpp.");
  using type = typename canonical<Code, G, all_slots, P...>::type;
};

/// What the arguments of `scheme` are, before it is asked what they mean together.
template <class Code, class G, class... P>
struct scheme_of {
  static constexpr bool begins_with_a_format = format<Code>, has_a_granularity = granularity<G>,
                        ends_with_policies = (... && policy<P>);
  static_assert(begins_with_a_format,
                "qtensor: scheme<F, ...> begins with a format: a type with bits, min, max, is_integer, is_signed, a "
                "fixed_string name, and decode(code), which gives a float; see format/format.hpp.");
  static_assert(has_a_granularity,
                "qtensor: the second argument of scheme<F, G, ...> is a granularity: a type with "
                "block_extent(rank, axis, extent) -> index_t and a fixed_string name; see policy/granularity.hpp.");
  static_assert(ends_with_policies,
                "qtensor: scheme<F, G, P...> ends with policies: types that name their slot and themselves "
                "(a fixed_string name); see policy/slot.hpp.");
  using type = void;
};
template <format Code, granularity G, policy... P>
struct scheme_of<Code, G, P...> : checked<Code, G, P...> {};

}  // namespace detail

/// format x granularity, with policies in any order, one per slot:
///   scheme<e4m3, block<128, 128>>
///   scheme<uint4, group<128>, zero_point<uint4>, scale_as<f16>>
/// Combinations that mean nothing do not compile and say why.
template <class Code, class G, class... P>
using scheme = typename detail::scheme_of<Code, G, P...>::type;

/// Any scheme, and any struct that derives from one (`struct my_weights : qtensor::scheme<...> {};`).
template <class S>
concept quantization_scheme = std::is_class_v<S> && requires {
  typename detail::basic_scheme_of<S>;
};

/// "e2m1 x group<32> / e8m0": code format, granularity, scale format, then what else is stored. Equal for schemes that
/// differ in conversion policies only; `choices<S>` lists those.
template <quantization_scheme S>
inline constexpr auto name = detail::basic_scheme_of<S>::name;
template <quantization_scheme S>
inline constexpr auto choices = S::choices;

namespace detail {

template <class S>
struct stored_form;
template <class C, class G, class... P>
struct stored_form<basic_scheme<C, G, P...>> : canonical<C, G, stored_slots, P...> {};

/// S as whoever makes codes under given scales sees it, its scales shared as G says.
template <class S, class G>
struct coding_form;
template <class C, class Own, class... P, class G>
struct coding_form<basic_scheme<C, Own, P...>, G> : canonical<C, G, coding_slots, P...> {};

/// S with other policies, unchecked: for kernels that see schemes as nobody says them. `with` is for everybody else.
template <class S, class... New>
struct other_form;
template <class C, class G, class... P, class... New>
struct other_form<basic_scheme<C, G, P...>, New...> : canonical<C, G, all_slots, New..., P...> {};

/// One replacement after the other; checked only when all are in place.
template <class Code, class G, class Policies, class... New>
struct replaced;
template <class Code, class G, class... P>
struct replaced<Code, G, list<P...>> {
  using type = scheme<Code, G, P...>;
};
template <class Code, class G, class... P, class New, class... Rest>
struct replaced<Code, G, list<P...>, New, Rest...> {
  static_assert(
      !requires { typename New::slot; } || policy<New>,
      "qtensor: a policy that goes into with<Scheme, P...> names itself, too; add a static constexpr "
      "fixed_string name.");
  static_assert(
      granularity<New> || policy<New>,
      "qtensor: with<Scheme, P...> takes policies and granularities; a format goes into scale_as<F> or zero_point<F>, "
      "and the code format is the first argument of scheme<>.");
  using type = void;
};
template <class Code, class G, class... P, granularity New, class... Rest>
struct replaced<Code, G, list<P...>, New, Rest...> : replaced<Code, New, list<P...>, Rest...> {};
template <class Code, class G, class... P, policy New, class... Rest>
struct replaced<Code, G, list<P...>, New, Rest...> {
  template <class Done, class... Left>
  struct without {
    using type = Done;
  };
  template <class... D, class First, class... Left>
  struct without<list<D...>, First, Left...>
      : std::conditional_t<std::is_same_v<typename First::slot, typename New::slot>, without<list<D...>, Left...>,
                           without<list<D..., First>, Left...>> {};
  template <class List>
  struct add;
  template <class... Q>
  struct add<list<Q...>> : replaced<Code, G, list<Q..., New>, Rest...> {};
  using type = typename add<typename without<list<>, P...>::type>::type;
};

/// The policies of a canonical scheme as `scheme` wants them said: static_only is the default, and so left out, where
/// scales are e8m0.
template <class S, class... P>
using spelled_out = std::conditional_t<std::is_same_v<typename S::rule, static_only> && count_of<slot::rule, P...> == 0,
                                       list<P..., static_only>, list<P...>>;

template <class S, class... New>
struct with;
template <class C, class G, class... P, class... New>
struct with<basic_scheme<C, G, P...>, New...> : replaced<C, G, spelled_out<basic_scheme<C, G, P...>, P...>, New...> {};

template <index_t Axis, class S>
struct turned {
  static_assert(quantization_scheme<S> && !quantization_scheme<S>,
                "qtensor: along<Axis, S> turns schemes whose granularity is group<N>.");
};
template <index_t Axis, class C, index_t N, index_t From, class... P>
struct turned<Axis, basic_scheme<C, group<N, From>, P...>>
    : with<basic_scheme<C, group<N, From>, P...>, group<N, Axis>> {};

}  // namespace detail

/// S without its conversion policies: what the bytes mean. Views, decoding and products are instantiated on it, and
/// tensors with equal `stored<S>` turn into each other by moving their memory.
template <quantization_scheme S>
using stored = typename detail::stored_form<detail::basic_scheme_of<S>>::type;

/// S with some policies replaced, granularity and scale format included: `with<mxfp4, mx_rceil, nan_to_zero>`.
template <quantization_scheme S, class... New>
using with = typename detail::with<detail::basic_scheme_of<S>, New...>::type;

/// S with its groups along another axis: `along<0, mxfp8_e4m3>` for the right operand of a product.
template <index_t Axis, quantization_scheme S>
using along = typename detail::turned<Axis, detail::basic_scheme_of<S>>::type;

}  // namespace qtensor
