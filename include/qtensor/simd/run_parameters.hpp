// What runs of floats are divided by and moved by: one scale and zero point, one for each element, or for each group.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <qtensor/simd/encode.hpp>
#include <qtensor/simd/kernel.hpp>
#include <qtensor/simd/memory.hpp>

namespace qtensor::inline QTENSOR_ABI::simd::detail {

/// Elements whose scales and codes lie in L1 at a time: whole bytes of codes, whole blocks of four batches.
inline constexpr index_t chunk_elements = 2048;

/// Room for the parameters of the last, partial block.
template <class A>
struct tail_space {
  alignas(64) float scales[static_cast<std::size_t>(4 * lanes<A>)];
  alignas(64) std::int32_t zeros[static_cast<std::size_t>(4 * lanes<A>)];
};

// Parameters of blocks of four batches: divide<By>(k) and zero_points(k) for batch k of the current block
// (encode_codes), next() goes to the next block, pad(space, n) makes the current one the last, of n elements.
// `alike_in_pairs`: all lanes of batches 0 and 1 share theirs, and all of 2 and 3, so that numbers may change places
// there. `all_alike`: all blocks share theirs.

/// One scale for all.
template <class S, quotient_by By, class A>
struct uniform_parameters {
  static constexpr bool alike_in_pairs = true, all_alike = true;
  divisor<By, A> fast;
  element_scale scale;
  ints<A> zero;

  uniform_parameters(element_scale s, std::int32_t z)
      : uniform_parameters(divisor_of<S, By>(floats<A>(s.scale), s.tensor_scale), s, ints<A>(z)) {}
  uniform_parameters(const divisor<By, A>& d, element_scale s, const ints<A>& z) : fast(d), scale(s), zero(z) {}

  template <quotient_by Wanted>
  QTENSOR_INLINE divisor<Wanted, A> divide(int) const {
    if constexpr (Wanted == By)
      return fast;
    else
      return divisor_of<S, Wanted>(floats<A>(scale.scale), scale.tensor_scale);
  }
  QTENSOR_INLINE const ints<A>& zero_points(int) const { return zero; }
  QTENSOR_INLINE void next() {}
  QTENSOR_INLINE void pad(tail_space<A>&, index_t) {}
};

/// One scale an element.
template <class S, class A>
struct vector_parameters {
  static constexpr bool alike_in_pairs = false, all_alike = false;
  const float* scales;
  const std::int32_t* zeros;  // null where S has none
  float tensor_scale;

  template <quotient_by Wanted>
  QTENSOR_INLINE divisor<Wanted, A> divide(int k) const {
    return divisor_of<S, Wanted>(simd::load<A>(scales + k * lanes<A>), tensor_scale);
  }
  QTENSOR_INLINE ints<A> zero_points(int k) const {
    if constexpr (S::has_zero_point)
      if (zeros != nullptr) return simd::load<A>(zeros + k * lanes<A>);
    return ints<A>(0);
  }
  QTENSOR_INLINE vector_parameters from(index_t i) const {
    return {scales + i, zeros != nullptr ? zeros + i : nullptr, tensor_scale};
  }
  QTENSOR_INLINE void next() { *this = from(4 * lanes<A>); }
  void pad(tail_space<A>& space, index_t n) {
    for (index_t i = 0; i < 4 * lanes<A>; ++i) {
      space.scales[i] = i < n ? scales[i] : 1.f;
      space.zeros[i] = i < n && zeros != nullptr ? zeros[i] : 0;
    }
    scales = space.scales, zeros = space.zeros;
  }
};

/// Whether all bits of codes under a scale of 0 are 0.
template <class S>
inline constexpr bool scale_0_clears = scale_0_gives_zeros<S>&& qtensor::encode<typename S::code_format>(0.f) == 0;

/// The parameters of the groups of a chunk, ready to be broadcast.
template <class S, class A>
struct group_table {
  static constexpr index_t most = chunk_elements / lanes<A>;
  alignas(64) float value[static_cast<std::size_t>(most)];
  alignas(64) float rest[static_cast<std::size_t>(most)];
  alignas(64) std::int32_t zero[static_cast<std::size_t>(most)];

  /// Entries [0, groups) and, with harmless numbers, up to the next batch. Whether `By` is right for all scales.
  template <quotient_by By, numbers Which = numbers::any>
  bool fill(const float* scales, const std::int32_t* zeros, index_t groups, float tensor_scale) {
    constexpr bool always = By == quotient_by::moved_grid || By == quotient_by::moved_halves || By == safe_quotient<S>;
    auto regular = words<A>(0u) == words<A>(0u);
    for (index_t g = 0; g < groups; g += lanes<A>) {
      const index_t count = std::min(lanes<A>, groups - g);
      floats<A> s = simd::load_n<A>(scales + g, count, 1.f);
      if constexpr (scale_0_clears<S>) s = simd::select(s == floats<A>(0.f), floats<A>(1.f), s);  // no NaN is made
      if constexpr (!always) regular = regular & regular_divisors<S, Which>(s, tensor_scale);
      const divisor<By, A> d = divisor_of<S, By>(s, tensor_scale);
      simd::store(value + g, d.value);
      if constexpr (has_rest<By>) simd::store(rest + g, d.rest);
      if constexpr (S::has_zero_point)
        simd::store(zero + g, zeros != nullptr ? simd::load_n<A>(zeros + g, count) : ints<A>(0));
    }
    return always || simd::all(regular);
  }
};

/// One scale for 1 batch, for 2 batches, or for whole blocks of 4 (BatchesOfGroup 1, 2, 4).
template <class S, quotient_by By, class A, int BatchesOfGroup>
struct group_parameters {
  static constexpr bool alike_in_pairs = BatchesOfGroup > 1, all_alike = false;
  const group_table<S, A>* table;
  const float* scales;
  index_t last;  // the table goes on behind the last group, the scales do not
  float tensor_scale;
  index_t blocks_of_group;  // where BatchesOfGroup is 4
  index_t group = 0, block = 0;

  QTENSOR_INLINE index_t group_of(int k) const { return group + (BatchesOfGroup == 4 ? 0 : k / BatchesOfGroup); }

  template <quotient_by Wanted>
  QTENSOR_INLINE divisor<Wanted, A> divide(int k) const {
    const index_t g = group_of(k);
    if constexpr (Wanted == By) {
      if constexpr (has_rest<By>)
        return {floats<A>(table->value[g]), floats<A>(table->rest[g])};
      else
        return {floats<A>(table->value[g])};
    } else {
      return divisor_of<S, Wanted>(floats<A>(scales[std::min(g, last)]), tensor_scale);
    }
  }
  QTENSOR_INLINE ints<A> zero_points(int k) const {
    const index_t g = group_of(k);
    if constexpr (S::has_zero_point)
      return ints<A>(table->zero[g]);
    else
      return ints<A>(0);
  }
  /// Those of the present group alone.
  uniform_parameters<S, By, A> of_group() const {
    return {divide<By>(0), {scales[std::min(group, last)], tensor_scale}, zero_points(0)};
  }
  QTENSOR_INLINE void next() {
    if constexpr (BatchesOfGroup == 4) {
      if (++block == blocks_of_group) ++group, block = 0;
    } else {
      group += 4 / BatchesOfGroup;
    }
  }
  QTENSOR_INLINE void pad(tail_space<A>&, index_t) {}
};

/// How many batches share a scale along a row, for whole blocks of four: 1, 2 or 4; 0 where kernels do not know it.
template <class S, class A>
constexpr int batches_of_group() {
  constexpr index_t known = static_group<typename S::granularity_type>;
  if (known == lanes<A>) return 1;
  if (known == 2 * lanes<A>) return 2;
  return known > 0 && known % (4 * lanes<A>) == 0 ? 4 : 0;
}

/// Whether the zero points that a scheme can store need a look before vectors take them.
template <class S, class A>
constexpr bool watches_zero_points() {
  if constexpr (S::has_zero_point) {
    using zero = typename S::zero_point_format;
    return !(static_cast<double>(zero::min) > -1e9 && static_cast<double>(zero::max) < 1e9 &&
             regular_zero_point<S, A>(static_cast<std::int32_t>(zero::min)) &&
             regular_zero_point<S, A>(static_cast<std::int32_t>(zero::max)));
  } else {
    return false;
  }
}

/// Whether the vector body takes a scale of 0 as any other: where the division decides what becomes of it.
template <class S>
inline constexpr bool takes_scale_0 = qtensor::detail::own_division<typename S::division>&& has_own_inverse<S>;

/// A scale and zero point that the vector body cannot take: a block of zeros, a zero point far away.
template <class S, class A>
QTENSOR_INLINE bool is_irregular(float scale, const std::int32_t* zeros, index_t at) {
  if (scale == 0.f && !takes_scale_0<S>) return true;
  if constexpr (watches_zero_points<S, A>()) return zeros != nullptr && !regular_zero_point<S, A>(zeros[at]);
  return false;
}

/// The same of n scales and zero points.
template <class S, class A>
bool any_irregular(const float* scales, const std::int32_t* zeros, index_t n) {
  auto found = ints<A>(0) != ints<A>(0);
  for (index_t i = 0; i < n; i += lanes<A>) {
    const index_t count = std::min(lanes<A>, n - i);
    if constexpr (!takes_scale_0<S>)
      found = found | simd::mask_as<std::int32_t>(simd::load_n<A>(scales + i, count, 1.f) == floats<A>(0.f));
    if constexpr (watches_zero_points<S, A>())
      if (zeros != nullptr) {
        constexpr auto regular = regular_zero_points<S, A>();
        const ints<A> zero = simd::load_n<A>(zeros + i, count, regular[0]);
        found = found | (zero < ints<A>(regular[0])) | (zero > ints<A>(regular[1]));
      }
  }
  return simd::any(found);
}

/// regular_divisors of one scale. A load of memory just written by a smaller store would have to wait for it.
template <class S, class A>
QTENSOR_INLINE bool is_regular_divisor(float scale, float tensor_scale) {
  return simd::all(regular_divisors<S>(floats<A>(scale), tensor_scale));
}
template <class S, class A, numbers Which = numbers::any>
QTENSOR_INLINE bool all_regular_divisors(const float* scales, index_t n, float tensor_scale) {
  bool regular = true;
  for (index_t i = 0; i < n; i += lanes<A>) {
    const floats<A> some = simd::load_n<A>(scales + i, std::min(lanes<A>, n - i), 1.f);
    regular = regular && simd::all(regular_divisors<S, Which>(some, tensor_scale));
  }
  return regular;
}

}  // namespace qtensor::inline QTENSOR_ABI::simd::detail
