// How a kernel is found: by operation, scheme and architecture, at compile time, best architecture first.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <concepts>
#include <qtensor/scheme/scheme.hpp>
#include <qtensor/simd/arch.hpp>
#include <qtensor/tensor/shape.hpp>
#include <string_view>
#include <type_traits>

namespace qtensor::inline QTENSOR_ABI::simd {

/// What codes of S are stored in: bytes for packed ones.
template <quantization_scheme S>
using code_unit_t = qtensor::detail::code_unit_t<S>;

/// The unit that element i of a run starts in; i starts a byte.
template <quantization_scheme S>
constexpr index_t unit_of(index_t i) {
  return is_packed<typename S::code_format> ? i * S::code_format::bits / 8 : i;
}

/// Schemes whose codes lie from the top of a byte down, several in each. The kernels of upright<S>, whose codes lie
/// from its bottom up, are theirs, and the bytes are turned.
template <class S>
concept turns_codes = quantization_scheme<S> && std::same_as<typename S::layout, planar<high_first>> &&
    (S::code_format::bits == 4 || S::code_format::bits == 2);
template <turns_codes S>
using upright = typename qtensor::detail::other_form<qtensor::detail::basic_scheme_of<S>, planar<low_first>>::type;

/// Whether codes of S are in order in an array of their own, as runs that start on bytes.
template <class S>
concept codes_in_runs = turns_codes<S> || std::same_as<typename S::layout, planar<low_first>>;

/// Names of operations: the first argument of kernel<>.
namespace op {
struct encode {};  ///< floats to codes (simd/quantize.hpp)
struct decode {};  ///< codes to numbers (simd/dequantize.hpp); its schemes are stored<S>, as policies change no value
}  // namespace op

/// The customisation point. `enabled` says that there is a kernel for an operation on scheme S with architecture A;
/// what an enabled kernel has to offer stands beside its operation. Everything has one for scalar_arch: the reference.
///
/// Your own, for a scheme of yours on one architecture or on all (leave A a parameter); nothing else is to be done,
/// every quantize and product finds it:
///   template <qtensor::simd::usable_arch A>
///   struct qtensor::simd::kernel<qtensor::simd::op::encode, my_scheme, A> {
///     static constexpr bool enabled = true;
///     static constexpr std::string_view name = "mine";
///     static void uniform(...); static void vector(...); static void grouped(...);   // see simd/quantize.hpp
///     template <qtensor::simd::float_source From> using reading = ...;               // optional: the same functions,
///   };                                                                               // of elements as From reads them
/// Without `reading`, bf16 and f16 are widened before they come to the kernel. Those of op::decode write floats, or, as
/// templates on the format F (f32 unless named), bf16 and f16 too; where yours only knows floats, 16-bit numbers are
/// rounded from a tile of them.
template <class Op, quantization_scheme S, usable_arch A>
struct kernel {
  static constexpr bool enabled = false;
};

/// Kernels that say `takes_traffic` take a `traffic` (simd/memory.hpp) as their last argument. Yours need not: it is a
/// hint.
template <class Kernel>
concept takes_traffic = requires {
  requires Kernel::takes_traffic;
};

namespace detail {

/// Elements that share a scale, where that is known at compile time and groups lie along an axis; else 0.
template <class G>
inline constexpr index_t static_group = 0;
template <index_t N, index_t Axis>
requires(N > 0) inline constexpr index_t static_group<group<N, Axis>> = N;

/// S as kernels of runs see it: they are told which elements share a scale, so that schemes which differ in that, or in
/// how scales come about, have one kernel in common. Encoders know the length of short groups, decoders nothing.
template <class S, index_t Group>
using run_form = typename qtensor::detail::coding_form<qtensor::detail::basic_scheme_of<S>,
                                                       std::conditional_t<(Group > 0), group<Group>, per_tensor>>::type;
template <class S>
using encoding_form = run_form<S, static_group<typename S::granularity_type>>;
template <class S>
using decoding_form = run_form<stored<S>, 0>;

/// Calls run(t) where a kernel takes a hint, else run().
template <class Kernel, class Hint, class Run>
QTENSOR_INLINE void run_hinted([[maybe_unused]] Hint t, Run run) {
  if constexpr (takes_traffic<Kernel>)
    run(t);
  else
    run();
}

template <class Op, class S, class Archs>
struct found_kernel {
  static_assert(sizeof(S) == 0,
                "qtensor: no kernel for this operation, not even for scalar_arch; include the header of the operation "
                "(simd/quantize.hpp, simd/dequantize.hpp, ...).");
};
template <class Op, class S, class Best, class... Rest>
struct found_kernel<Op, S, arch_list<Best, Rest...>>
    : std::conditional_t<kernel<Op, S, Best>::enabled, std::type_identity<kernel<Op, S, Best>>,
                         found_kernel<Op, S, arch_list<Rest...>>> {};

}  // namespace detail

/// The kernel that runs: of the first of `archs` that has one for the scheme.
template <class Op, quantization_scheme S>
using best_kernel = typename detail::found_kernel<Op, qtensor::detail::basic_scheme_of<S>, archs>::type;

/// Which one that is: "avx512", "avx2", "sse4.2", "neon", "reference", or what a user's own kernel calls itself.
template <class Op, quantization_scheme S>
constexpr std::string_view kernel_name() {
  return best_kernel<Op, S>::name;
}

}  // namespace qtensor::inline QTENSOR_ABI::simd
