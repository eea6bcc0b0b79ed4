// ONNX's data types as formats, its flat packed arrays of 4- and 2-bit codes, and Cast (NUMERICS 1.1, 8.2).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <qtensor/reference/codec.hpp>
#include <qtensor/scheme/scheme.hpp>
#include <qtensor/simd/dequantize.hpp>
#include <qtensor/simd/quantize.hpp>
#include <qtensor/tensor/tensor.hpp>
#include <qtensor/tensor/view_of.hpp>
#include <span>
#include <type_traits>
#include <vector>

namespace qtensor::compat::onnx {

namespace detail {

/// ONNX's number and name of a format of ours.
template <int Number, format F, fixed_string Name>
struct typed {
  static constexpr int number = Number;
  using type = F;
  static constexpr auto name = Name;
};
template <class... T>
struct type_list {
  static constexpr std::size_t size = sizeof...(T);
};
using types =
    type_list<typed<1, f32, "FLOAT">, typed<2, uint8, "UINT8">, typed<3, int8, "INT8">, typed<4, uint16, "UINT16">,
              typed<5, int16, "INT16">, typed<6, int32, "INT32">, typed<10, f16, "FLOAT16">,
              typed<16, bf16, "BFLOAT16">, typed<17, e4m3, "FLOAT8E4M3FN">, typed<18, e4m3fnuz, "FLOAT8E4M3FNUZ">,
              typed<19, e5m2, "FLOAT8E5M2">, typed<20, e5m2fnuz, "FLOAT8E5M2FNUZ">, typed<21, uint4, "UINT4">,
              typed<22, int4, "INT4">, typed<23, e2m1, "FLOAT4E2M1">, typed<24, e8m0, "FLOAT8E8M0">,
              typed<25, uint2, "UINT2">, typed<26, int2, "INT2">>;

template <class F, class List>
inline constexpr int number_in = 0;
template <class F, class First, class... Rest>
inline constexpr int number_in<F, type_list<First, Rest...>> =
    std::is_same_v<F, typename First::type> ? First::number : number_in<F, type_list<Rest...>>;

template <class Use, class... T>
constexpr bool use_type(int number, Use& use, type_list<T...>) {
  return ((number == T::number && (use(std::type_identity<typename T::type>{}), true)) || ...);
}

}  // namespace detail

/// A row of the table of data types.
struct data_type {
  int number;               // TensorProto.DataType
  std::string_view onnx;    // its name there
  std::string_view format;  // the name of our format
  int bits;
  constexpr bool operator==(const data_type&) const = default;
};

/// ONNX's data types that are formats of ours, by number. Those left out (64-bit, complex, bool, string) have no codes.
inline constexpr auto data_types = []<class... T>(detail::type_list<T...>) {
  return std::array<data_type, sizeof...(T)>{
      data_type{T::number, std::string_view(T::name), std::string_view(T::type::name), T::type::bits}...};
}(detail::types{});

/// ONNX's number of a format.                                                          number_of<e4m3> == 17
template <format F>
requires(detail::number_in<F, detail::types> != 0) inline constexpr int number_of = detail::number_in<F, detail::types>;

/// Calls use(std::type_identity<F>{}) with the format F of an ONNX data type; throws where it is none of `data_types`.
template <class Use>
constexpr void with_format(int number, Use use) {
  require(detail::use_type(number, use, detail::types{}), "ONNX data type ", number,
          " is not one of those with a format here: 1 to 6, 10, 16 to 26.");
}

/// What an array of F is made of: its storage type, or bytes of packed codes for formats of less than 8 bits.
template <format F>
using unit = storage_t<F>;

/// Units of an array of n elements: 4- and 2-bit codes are packed low first over the whole array, whatever its rows,
/// and the last byte is padded with zeros.
template <format F>
constexpr index_t unit_count(index_t n) {
  return is_packed<F> ? divide_up(qtensor::detail::checked_product(n, F::bits), 8) : n;
}

/// The codes that products and convolutions take: of int8 and of uint8.
template <class T>
concept byte_code = std::same_as<T, std::int8_t> || std::same_as<T, std::uint8_t>;

namespace detail {

template <byte_code T>
using format_of_code = std::conditional_t<std::same_as<T, std::int8_t>, int8, uint8>;

constexpr void check_count(std::string_view what, std::size_t given, index_t wanted) {
  require(static_cast<index_t>(given) == wanted, given, " elements of ", what, " are given; its dimensions make ",
          wanted, ".");
}
constexpr void check_scale(std::string_view what, float scale) {
  require(is_finite(scale) && scale > 0.f, what, " is ", scale, "; a scale must be finite and positive.");
}

template <format F>
constexpr void check_units(std::string_view what, std::size_t given, index_t elements) {
  require(static_cast<index_t>(given) == unit_count<F>(elements), given, " units of ", what, " are given; ", elements,
          " elements of ", std::string_view(F::name), " take ", unit_count<F>(elements), ".");
}

template <format F>
constexpr std::uint32_t load(const unit<F>* array, index_t i) {
  if constexpr (is_packed<F>)
    return qtensor::detail::load_bits<F::bits>(array, i * F::bits);
  else
    return qtensor::detail::code_of<F>(array[i]);
}
template <format F>
constexpr void store(unit<F>* array, index_t i, std::uint32_t code) {
  if constexpr (is_packed<F>)
    qtensor::detail::store_bits<F::bits>(array, i * F::bits, code);
  else
    array[i] = qtensor::detail::unit_from<F>(code);
}

/// Copies packed codes [at, at + n) to where a byte begins, as many as fill whole bytes; says how many that are.
template <format F>
requires(is_packed<F>) constexpr index_t copy_bytes(const unit<F>* from, index_t at, index_t n, unit<F>* to) {
  const index_t whole = n * F::bits / 8, first = at * F::bits / 8, shift = at * F::bits % 8;
  if (shift == 0)
    std::copy_n(from + first, whole, to);
  else
    for (index_t i = 0; i < whole; ++i)
      to[i] = static_cast<unit<F>>(from[first + i] >> shift | from[first + i + 1] << (8 - shift));
  return whole * 8 / F::bits;
}

/// Calls row(flat element, index of the row's first element) for every row of a view.
template <class View, class Row>
constexpr void for_each_row(const View& view, Row row) {
  const auto extents = view.storage_extents();
  const index_t length = view.shape().row_length();
  typename View::index_array at{};
  for (index_t r = 0; r < view.shape().row_count(); ++r) {
    index_t rest = r;
    for (std::size_t axis = extents.size() - 1; axis > 0; --axis) {
      at[axis - 1] = rest % extents[axis - 1];
      rest /= extents[axis - 1];
    }
    row(r * length, static_cast<const typename View::index_array&>(at));
  }
}

/// Whether rows of n codes start on a byte in the flat array too.
template <format F>
constexpr bool rows_fill_bytes(index_t n) {
  return !is_packed<F> || n % 8 * F::bits % 8 == 0;
}

}  // namespace detail

/// The codes of a flat ONNX array into a tensor, whose rows start on a byte each; its parameters stay as they are.
template <quantization_scheme S, tensor_extents E>
constexpr void from_packed(std::span<const unit<typename S::code_format>> flat,
                           const tensor_span<S, E, row_major>& out) {
  using code = typename S::code_format;
  detail::check_units<code>("codes", flat.size(), out.size());
  const index_t length = out.shape().row_length();
  if (out.size() == 0) return;
  detail::for_each_row(out, [&](index_t first, const auto& at) {
    auto* const to = out.row(at);
    if constexpr (is_packed<code>) {
      to[out.shape().row_bytes() - 1] = unit<code>{};  // no stray bits behind the last code
      for (index_t i = detail::copy_bytes<code>(flat.data(), first, length, to); i < length; ++i)
        detail::store<code>(to, i, detail::load<code>(flat.data(), first + i));
    } else {
      std::copy_n(flat.data() + first, length, to);
    }
  });
}

/// The codes of a row-major tensor or view as a flat ONNX array.
template <quantized T>
constexpr void to_packed(const T& x, std::span<unit<typename T::scheme_type::code_format>> flat) {
  using code = typename T::scheme_type::code_format;
  static_assert(std::is_same_v<typename T::order_type, row_major>, "qtensor: ONNX tensors are row-major.");
  const auto view = as_view(x);
  detail::check_units<code>("codes", flat.size(), view.size());
  if (view.size() == 0) return;
  if constexpr (is_packed<code>) flat.back() = unit<code>{};
  const index_t length = view.shape().row_length();
  detail::for_each_row(view, [&](index_t first, const auto& at) {
    const auto* const from = view.row(at);
    if constexpr (is_packed<code>) {
      const auto one_by_one = [&](index_t begin, index_t end) {
        for (index_t i = begin; i < end; ++i) detail::store<code>(flat.data(), first + i, detail::load<code>(from, i));
      };
      constexpr index_t of_byte = 8 / code::bits;
      const index_t begin = std::min(length, round_up(first, of_byte) - first);
      one_by_one(0, begin);
      auto* const to = flat.data() + unit_count<code>(first + begin);
      one_by_one(begin + detail::copy_bytes<code>(from, begin, length - begin, to), length);
    } else {
      std::copy_n(from, length, flat.data() + first);
    }
  });
}

// ---- Cast ----------------------------------------------------------------------------------------------------------

/// The round_mode of casts to e8m0, as rounding policies of `cast`. ONNX's default is up.      3.0 -> 4, 2, 4
using round_up = toward_positive;
using round_down = toward_zero;
using round_nearest = nearest_away;

/// Overflow of casts to integers, modulo 2^bits, as programs do it: with toward_zero as the ONNX reference, with
/// nearest_away as ONNX Runtime into 4 bits. `cast` alone saturates (NUMERICS 10.5).
///   cast_code<f32, uint2, toward_zero, wraps>(bits_of(-1.5f)) == 3
struct wraps {
  using slot = slot::overflow;
  static constexpr fixed_string name = "onnx::wraps";
};

namespace detail {

/// What Cast does where its attributes do not say: f32, f16 and bf16 overflow to infinity, FP8 saturates, FP4 saturates
/// and takes +NaN to -0, e8m0 rounds up, integers round to nearest even and saturate, with NaN as 0 (NUMERICS 10.5).
template <format F, policy... P>
constexpr std::uint32_t cast_to(float x) {
  constexpr bool is_wide = std::is_same_v<F, f32> || std::is_same_v<F, f16> || std::is_same_v<F, bf16>;
  using overflow = qtensor::detail::find_t<slot::overflow, std::conditional_t<is_wide, to_special, saturate>, P...>;
  using round = qtensor::detail::find_t<slot::rounding,
                                        std::conditional_t<std::is_same_v<F, e8m0>, round_up, nearest_even>, P...>;
  using nan =
      qtensor::detail::find_t<slot::nan,
                              std::conditional_t<std::is_same_v<F, e2m1>, nan_to_opposite_zero, nan_propagates>, P...>;
  if constexpr (F::is_integer && std::is_same_v<overflow, wraps>)
    return static_cast<std::uint32_t>(round_to_integer<round>(x)) & low_bits(F::bits);
  else
    return encode<F, overflow, round, nan>(x);
}

}  // namespace detail

/// Cast of one code. Policies: `to_special` for saturate = 0 (FP8 and e8m0), a rounding, a NaN policy. Integers of more
/// than 24 bits become the nearest f32 on their way to another format.
///   cast_code<f32, e4m3>(bits_of(465.f)) == 0x7E
template <format From, format To, policy... P>
constexpr std::uint32_t cast_code(std::uint32_t code) {
  if constexpr (std::is_same_v<From, To>)
    return code & low_bits(From::bits);
  else
    return detail::cast_to<To, P...>(qtensor::decode<From>(code));
}

inline namespace QTENSOR_ABI {
namespace pieces {

/// Whether vectors know a format: as numbers, or as codes of at most a byte.
template <format F>
inline constexpr bool has_vectors = simd::number_format<F> || (F::bits <= 8 && !std::is_same_v<F, e8m0>);

template <format From, format To, policy... P>
inline constexpr bool casts_by_vectors =
    has_vectors<From>&& has_vectors<To> && !std::is_same_v<From, To> &&
    (sizeof...(P) == 0 || !simd::number_format<To>)&&!(std::is_same_v<P, wraps> || ...);

/// What `decode` gives for n codes.
template <format F>
void load_run(const unit<F>* x, index_t n, float* to) {
  if constexpr (std::is_same_v<F, f32>) {
    std::copy_n(x, n, to);
  } else if constexpr (simd::number_format<F>) {
    simd::widen_floats<F>(x, n, to);
    using simd::best_arch;
    for (index_t i = 0, count; i < n; i += count) {  // a NaN without its payload
      count = std::min(simd::lanes<best_arch>, n - i);
      const auto v = simd::load_n<best_arch>(to + i, count);
      const auto sign = simd::bits_as<std::uint32_t>(v) & simd::words<best_arch>(sign_bit);
      const auto nan = simd::bits_as<float>(sign | simd::words<best_arch>(bits_of(quiet_nan)));
      simd::store_n(to + i, count, simd::select(v == v, v, nan));
    }
  } else {
    simd::decode_uniform<stored<scheme<F, per_tensor, static_only>>>(x, n, element_scale{1.f}, 0, to);
  }
}
/// What cast_to gives for n numbers.
template <format F, policy... P>
void store_run(const float* x, index_t n, unit<F>* to) {
  using nan = std::conditional_t<std::is_same_v<F, e2m1>, nan_to_opposite_zero, nan_propagates>;
  if constexpr (std::is_same_v<F, f32>)
    std::copy_n(x, n, to);
  else if constexpr (simd::number_format<F>)
    simd::narrow_floats<F>(x, n, to);
  else
    simd::encode_uniform<with<scheme<F, per_tensor, static_only, nan>, P...>>(x, n, element_scale{1.f}, 0, to);
}

/// The format of a byte that has all numbers of a packed one.
template <format F>
requires(is_packed<F>) using byte_format =
    std::conditional_t<!F::is_integer, e4m3, std::conditional_t<F::is_signed, int8, uint8>>;
/// A packed array of n codes as those of the same numbers in bytes.
template <format F>
std::vector<unit<byte_format<F>>> as_bytes(const unit<F>* packed, index_t n) {
  using A = simd::best_arch;
  constexpr index_t step = 4 * simd::lanes<A>;
  static constexpr auto spelled = [] {
    std::array<std::uint8_t, 16> table{};
    for (std::uint32_t c = 0; c < 1u << F::bits; ++c)
      table[c] = static_cast<std::uint8_t>(encode<byte_format<F>>(decode<F>(c)));
    return table;
  }();
  const simd::byte_table<A, 16> table(spelled.data());
  std::vector<unit<byte_format<F>>> to(static_cast<std::size_t>(n));
  auto* const bytes = reinterpret_cast<std::uint8_t*>(to.data());
  simd::unpack_codes<A, F::bits>(packed, n, bytes);
  for (index_t i = 0, count; i < n; i += count) {
    count = std::min(step, n - i);
    simd::store_n(bytes + i, count, table(simd::load_n<A>(bytes + i, count)));
  }
  return to;
}

/// Casts as many of n elements as come in whole bytes, and says how many that are.
template <format From, format To, policy... P>
index_t cast_runs(const unit<From>* x, index_t n, unit<To>* y) {
  constexpr index_t most = 512, whole = 8;
  const index_t end = n / whole * whole;
  alignas(64) float tile[static_cast<std::size_t>(most)];
  for (index_t i = 0; i < end; i += most) {
    const index_t count = std::min(most, end - i);
    load_run<From>(x + unit_count<From>(i), count, tile);
    store_run<To, P...>(tile, count, y + unit_count<To>(i));
  }
  return end;
}

}  // namespace pieces

/// Cast of n elements between arrays in ONNX's layout, which must not overlap. Throws before anything is written where
/// the arrays have other sizes.
template <format From, format To, policy... P>
constexpr void cast(std::span<const unit<From>> x, index_t n, std::span<unit<To>> y) {
  require(n >= 0, "cast is given ", n, " elements; their number is at least 0.");
  detail::check_units<From>("x", x.size(), n);
  detail::check_units<To>("y", y.size(), n);
  if (is_packed<To> && n > 0) y.back() = unit<To>{};
  index_t i = 0;
  if constexpr (pieces::casts_by_vectors<From, To, P...>)
    if (!std::is_constant_evaluated()) i = pieces::cast_runs<From, To, P...>(x.data(), n, y.data());
  for (; i < n; ++i) detail::store<To>(y.data(), i, cast_code<From, To, P...>(detail::load<From>(x.data(), i)));
}

}  // namespace QTENSOR_ABI

}  // namespace qtensor::compat::onnx
