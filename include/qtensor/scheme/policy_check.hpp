// What each slot asks of the policy that fills it, a sentence a slot.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/format/format.hpp>
#include <qtensor/policy/arithmetic.hpp>
#include <qtensor/policy/layout.hpp>
#include <qtensor/policy/rounding.hpp>
#include <qtensor/policy/scale_rule.hpp>
#include <qtensor/policy/special_values.hpp>
#include <qtensor/policy/stored.hpp>

namespace qtensor::detail {

/// What P offers. Code is the format of the codes; what policies mean together is `checked`'s (scheme.hpp).
template <class Code, class P, class Slot = typename P::slot>
struct policy_check {};  // a slot that schemes do not have, or whose policies have nothing to offer

template <class P>
concept stores_format = format<typename P::type>;
template <class P>
concept stores_format_or_none = stores_format<P> || std::same_as<typename P::type, none>;

template <class Code, class P>
struct policy_check<Code, P, slot::scale_format> {
  static_assert(stores_format<P>, "qtensor: a policy of the slot scale_format names the format of the scales: `type`.");
};
template <class Code, class P>
struct policy_check<Code, P, slot::zero_point> {
  static_assert(stores_format_or_none<P>,
                "qtensor: a policy of the slot zero_point names the format of the zero points, or none: `type`.");
};
template <class Code, class P>
struct policy_check<Code, P, slot::offset> {
  static_assert(stores_format_or_none<P>,
                "qtensor: a policy of the slot offset names the format of the offsets, or none: `type`.");
};
template <class Code, class P>
struct policy_check<Code, P, slot::tensor_scale> {
  static_assert(stores_format_or_none<P>,
                "qtensor: a policy of the slot tensor_scale names the format of that scale, or none: `type`.");
};
template <class Code, class P>
struct policy_check<Code, P, slot::layout> {
  static_assert(code_layout<P>,
                "qtensor: a layout names the order of its codes: `order`, low_first or another of policy/layout.hpp.");
};

template <class Code, class P>
struct policy_check<Code, P, slot::rule> {
  static_assert(scale_rule<P>,
                "qtensor: a scale rule names its statistics: absolute_maximum, extremes, peak, own_extremes or "
                "no_statistics; see policy/scale_rule.hpp.");
};
template <class Code, class P>
struct policy_check<Code, P, slot::rounding> {
  static_assert(rounding_policy<P>,
                "qtensor: a rounding policy needs up(negative, odd, remainder) -> bool; see policy/rounding.hpp.");
  static_assert(!names_before<P> || rounds_before<P, Code>,
                "qtensor: the `before` of a rounding policy is a template over the format, before<F>(x) -> float, or "
                "before<F>(x, random_word) of a random one; see policy/rounding.hpp.");
};
template <class Code, class P>
struct policy_check<Code, P, slot::overflow> {
  static_assert(overflow_policy<P>,
                "qtensor: the slot overflow takes saturate or to_special, no policies of your own.");
};
template <class Code, class P>
struct policy_check<Code, P, slot::nan> {
  static_assert(nan_policy<P>,
                "qtensor: the slot nan takes nan_propagates, nan_to_zero, nan_to_zero_point, nan_to_max, nan_to_lowest "
                "or nan_to_opposite_zero, no policies of your own.");
};
template <class Code, class P>
struct policy_check<Code, P, slot::nonfinite_block> {
  static_assert(nonfinite_block_policy<P>,
                "qtensor: the slot nonfinite_block takes block_propagates, block_to_zero, block_ignores, "
                "block_ignores_nan or block_literal, no policies of your own.");
};
template <class Code, class P>
struct policy_check<Code, P, slot::subnormal_amax> {
  static_assert(subnormal_amax_policy<P>,
                "qtensor: a policy of the slot subnormal_amax has flushes(bits of the largest magnitude) -> bool; see "
                "policy/special_values.hpp.");
};
template <class Code, class P>
struct policy_check<Code, P, slot::code_scale> {
  static_assert(code_scale_policy<P>,
                "qtensor: the slot code_scale takes stored_scale or unrounded_scale, no policies of your own.");
};
template <class Code, class P>
struct policy_check<Code, P, slot::division> {
  static_assert(division_policy<P>,
                "qtensor: a division policy has quotient(x, scale, tensor_scale) -> float, unless it is one of "
                "exact_division, reciprocal and rule_multiplier; see policy/arithmetic.hpp.");
};
template <class Code, class P>
struct policy_check<Code, P, slot::division_type> {
  static_assert(stores_format<P>,
                "qtensor: a policy of the slot division_type names the format quotients are rounded to: `type`.");
};
template <class Code, class P>
struct policy_check<Code, P, slot::zero_point_order> {
  static_assert(zero_point_order_policy<P>,
                "qtensor: the slot zero_point_order takes zp_after_round or zp_before_round, no policies of your own.");
};

/// True; what a policy lacks is said on the way.
template <class Code, class... P>
inline constexpr bool policies_complete = (true && ... && (sizeof(policy_check<Code, P>) > 0));

}  // namespace qtensor::detail
