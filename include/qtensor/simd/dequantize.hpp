// Runs of codes to floats: one scale, a scale for each element, or one for each short block.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstring>
#include <qtensor/reference/codec.hpp>
#include <qtensor/simd/decode.hpp>
#include <qtensor/simd/kernel.hpp>
#include <qtensor/simd/nibbles.hpp>
#include <qtensor/tensor/bytes.hpp>

// Every run starts on a byte. Element i is dequantize_element<S>(code, {scale, tensor_scale}, zero point, offset), bit
// for bit, whatever the kernel, the length and the position; only the payload of a NaN that comes of a NaN scale is the
// CPU's. Null arrays of zero points or offsets mean zeros.
namespace qtensor::inline QTENSOR_ABI::simd {

/// What elements are multiplied by and shifted by: entry i / group of each array belongs to element i.
struct block_arrays {
  const float* scales;
  const std::int32_t* zero_points = nullptr;  ///< where S has them
  const float* offsets = nullptr;             ///< where S has them
  float tensor_scale = 1.f;

  /// The parameters from entry g on.
  constexpr block_arrays from(index_t g) const {
    return {scales + g, zero_points != nullptr ? zero_points + g : nullptr, offsets != nullptr ? offsets + g : nullptr,
            tensor_scale};
  }
};

// ---- The reference as a kernel: every scheme has this one ----------------------------------------------------------

template <quantization_scheme S>
struct kernel<op::decode, S, scalar_arch> {
  static constexpr bool enabled = true;
  static constexpr std::string_view name = "reference";
  using unit = code_unit_t<S>;

  static void uniform(const unit* codes, index_t n, const block_arrays& p, float* out) { grouped(codes, n, n, p, out); }
  static void vector(const unit* codes, index_t n, const block_arrays& p, float* out) { grouped(codes, n, 1, p, out); }
  static void grouped(const unit* codes, index_t n, index_t group, const block_arrays& p, float* out) {
    static_assert(!S::is_interleaved,
                  "qtensor: run kernels take planar layouts; encode_interleaved and decode_interleaved take blocks.");
    using format = typename S::code_format;
    index_t g = 0, left = group;
    for (index_t i = 0; i < n; ++i, --left) {
      if (left == 0) ++g, left = group;
      std::uint32_t code;
      if constexpr (is_packed<format>)
        code = qtensor::detail::load_bits<format::bits>(codes, S::layout::order::bit(i, n, format::bits));
      else
        code = qtensor::detail::code_of<format>(codes[i]);
      out[i] =
          dequantize_element<S>(code, {p.scales[g], p.tensor_scale}, p.zero_points != nullptr ? p.zero_points[g] : 0,
                                p.offsets != nullptr ? p.offsets[g] : 0.f);
    }
  }
};

// ---- Vectors -------------------------------------------------------------------------------------------------------

namespace detail {

/// p from entry g on; what S does not have is not looked at.
template <class S>
QTENSOR_INLINE void advance(block_arrays& p, index_t g) {
  p.scales += g;
  if constexpr (S::has_zero_point)
    if (p.zero_points != nullptr) p.zero_points += g;
  if constexpr (S::has_offset)
    if (p.offsets != nullptr) p.offsets += g;
}

// Parameters of blocks of four batches: scale(k), zero(k), offset(k) for batch k of the current block; entry(i) of p's
// arrays belongs to its element i; next() goes on.

/// One entry an element.
template <class S, class A>
struct element_arrays {
  block_arrays p;

  static index_t entry(index_t i) { return i; }
  QTENSOR_INLINE floats<A> scale(int k) const { return simd::load<A>(p.scales + k * lanes<A>); }
  QTENSOR_INLINE ints<A> zero(int k) const {
    return p.zero_points != nullptr ? simd::load<A>(p.zero_points + k * lanes<A>) : ints<A>(0);
  }
  QTENSOR_INLINE floats<A> offset(int k) const {
    return p.offsets != nullptr ? simd::load<A>(p.offsets + k * lanes<A>) : floats<A>(0.f);
  }
  QTENSOR_INLINE void next() { advance<S>(p, 4 * lanes<A>); }
};

/// One entry for BatchesOfGroup batches: 1, 2, or whole blocks (4: `blocks` of them; 0: all there are).
template <class S, class A, int BatchesOfGroup>
struct group_arrays {
  block_arrays p;
  index_t blocks = 1, block = 0;

  static QTENSOR_INLINE index_t entry(index_t i) {
    return BatchesOfGroup == 1 || BatchesOfGroup == 2 ? i / lanes<A> / std::max(BatchesOfGroup, 1) : 0;
  }
  QTENSOR_INLINE floats<A> scale(int k) const { return floats<A>(p.scales[entry(k * lanes<A>)]); }
  QTENSOR_INLINE ints<A> zero(int k) const {
    return ints<A>(p.zero_points != nullptr ? p.zero_points[entry(k * lanes<A>)] : 0);
  }
  QTENSOR_INLINE floats<A> offset(int k) const {
    return floats<A>(p.offsets != nullptr ? p.offsets[entry(k * lanes<A>)] : 0.f);
  }
  QTENSOR_INLINE void next() {
    if constexpr (BatchesOfGroup == 4) {
      if (++block == blocks) advance<S>(p, 1), block = 0;
    } else if constexpr (BatchesOfGroup != 0) {
      advance<S>(p, 4 / BatchesOfGroup);
    }
  }
};

/// One block: code values, times the scales, and what else S has.
template <class S, class A, class Decoder, class Parameters>
QTENSOR_INLINE std::array<floats<A>, 4> decode_block(const Decoder& decode, const std::uint8_t* codes,
                                                     const Parameters& p, float tensor_scale) {
  std::array<floats<A>, 4> v = decode(codes, [&](int k) {
    if constexpr (S::has_zero_point)
      return p.zero(k);
    else
      return ints<A>(0);
  });
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) {
    v[k] = simd::mul(v[k], p.scale(k));
    if constexpr (S::has_tensor_scale) v[k] = simd::mul(v[k], floats<A>(tensor_scale));
    if constexpr (S::has_offset) v[k] = simd::add(v[k], p.offset(k));
  }
  return v;
}

/// Whole blocks of codes, one per byte.
template <class S, class A, class Decoder, class Parameters>
QTENSOR_INLINE void decode_blocks(const Decoder& decode, const std::uint8_t* codes, index_t blocks, Parameters& p,
                                  float tensor_scale, float* out) {
  constexpr index_t step = 4 * lanes<A>;
  for (index_t b = 0; b < blocks; ++b) {
    const std::array<floats<A>, 4> v = decode_block<S, A>(decode, codes + b * step, p, tensor_scale);
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) simd::store(out + b * step + k * lanes<A>, v[k]);
    p.next();
  }
}

}  // namespace detail

/// The vector kernel of every scheme whose codes have 2, 4, 6 or 8 bits, in order.
template <vector_decodable S, usable_arch A>
struct vector_decoder {
  using format = typename S::code_format;
  using unit = code_unit_t<S>;
  static constexpr index_t step = 4 * lanes<A>, chunk = 512;

  static void uniform(const unit* codes, index_t n, const block_arrays& p, float* out) {
    if (far_zero_point(p, 1)) return kernel<op::decode, S, scalar_arch>::uniform(codes, n, p, out);
    if constexpr (S::has_offset || S::has_zero_point) {
      // Missing arrays are zeros: so that the loop need not ask.
      const float none = 0.f;
      const std::int32_t no_zero = 0;
      run(codes, n,
          detail::group_arrays<S, A, 0>{{p.scales, p.zero_points != nullptr ? p.zero_points : &no_zero,
                                         p.offsets != nullptr ? p.offsets : &none, p.tensor_scale}},
          out);
    } else {
      run(codes, n, detail::group_arrays<S, A, 0>{p}, out);
    }
  }

  static void vector(const unit* codes, index_t n, const block_arrays& p, float* out) {
    if (far_zero_point(p, n)) return kernel<op::decode, S, scalar_arch>::vector(codes, n, p, out);
    run(codes, n, detail::element_arrays<S, A>{p}, out);
  }

  static void grouped(const unit* codes, index_t n, index_t group, const block_arrays& p, float* out) {
    if (group >= n) return uniform(codes, n, p, out);
    if (far_zero_point(p, divide_up(n, group)))
      return kernel<op::decode, S, scalar_arch>::grouped(codes, n, group, p, out);
    if (group == lanes<A>) return run(codes, n, detail::group_arrays<S, A, 1>{p}, out);
    if (group == 2 * lanes<A>) return run(codes, n, detail::group_arrays<S, A, 2>{p}, out);
    if (group % step == 0) return run(codes, n, detail::group_arrays<S, A, 4>{p, group / step}, out);
    spread(codes, n, group, p, out);
  }

 private:
  /// A zero point from which a code cannot be subtracted in 32 bits.
  static bool far_zero_point(const block_arrays& p, index_t count) {
    if constexpr (S::has_zero_point) {
      if constexpr (S::zero_point_format::bits > 24) {
        for (index_t i = 0; p.zero_points != nullptr && i < count; ++i)
          if (p.zero_points[i] < -(1 << 30) || p.zero_points[i] > 1 << 30) return true;
      }
    }
    return false;
  }

  /// Any run: chunks of whole blocks, the last block through a padded copy.
  template <class Parameters>
  static void run(const unit* codes, index_t n, Parameters p, float* out) {
    const decoder<format, A> decode;
    const auto* from = reinterpret_cast<const std::uint8_t*>(codes);
    const float tensor_scale = p.p.tensor_scale;
    const index_t whole = n / step * step;
    if constexpr (format::bits == 8) {
      detail::decode_blocks<S, A>(decode, from, whole / step, p, tensor_scale, out);
    } else {
      alignas(64) std::uint8_t bytes[static_cast<std::size_t>(chunk)];
      for (index_t first = 0; first < whole; first += chunk) {
        const index_t count = std::min(chunk, whole - first);
        unpack_codes<A, format::bits>(from + first * format::bits / 8, count, bytes);
        detail::decode_blocks<S, A>(decode, bytes, count / step, p, tensor_scale, out + first);
      }
    }
    if (whole < n) last_block(decode, from + whole * format::bits / 8, n - whole, p, out + whole);
  }

  template <class Decoder, class Parameters>
  static void last_block(const Decoder& decode, const std::uint8_t* codes, index_t n, const Parameters& p, float* out) {
    alignas(64) std::uint8_t bytes[static_cast<std::size_t>(step)] = {};
    alignas(64) float values[static_cast<std::size_t>(step)];
    unpack_codes<A, format::bits>(codes, n, bytes);
    // Entries beyond the end may not exist: every element gets its own copy, the last one's for what is missing.
    alignas(64) float scales[static_cast<std::size_t>(step)], offsets[static_cast<std::size_t>(step)];
    alignas(64) std::int32_t zeros[static_cast<std::size_t>(step)];
    for (index_t i = 0; i < step; ++i) {
      const index_t at = p.entry(std::min(i, n - 1));
      scales[i] = p.p.scales[at];
      zeros[i] = p.p.zero_points != nullptr ? p.p.zero_points[at] : 0;
      offsets[i] = p.p.offsets != nullptr ? p.p.offsets[at] : 0.f;
    }
    const detail::element_arrays<S, A> padded{{scales, zeros, offsets, p.p.tensor_scale}};
    const std::array<floats<A>, 4> v = detail::decode_block<S, A>(decode, bytes, padded, p.p.tensor_scale);
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) simd::store(values + k * lanes<A>, v[k]);
    std::memcpy(out, values, static_cast<std::size_t>(n) * sizeof(float));
  }

  /// Groups that do not fill batches: every element gets its own copy of the parameters, a chunk at a time.
  static void spread(const unit* codes, index_t n, index_t group, const block_arrays& p, float* out) {
    alignas(64) float scales[static_cast<std::size_t>(chunk)], offsets[static_cast<std::size_t>(chunk)];
    alignas(64) std::int32_t zeros[static_cast<std::size_t>(chunk)];
    index_t g = 0, left = group;
    for (index_t first = 0; first < n; first += chunk) {
      const index_t count = std::min(chunk, n - first);
      for (index_t i = 0; i < count;) {
        if (left == 0) ++g, left = group;
        const index_t part = std::min(left, count - i);
        std::fill_n(scales + i, part, p.scales[g]);
        if (p.zero_points != nullptr) std::fill_n(zeros + i, part, p.zero_points[g]);
        if (p.offsets != nullptr) std::fill_n(offsets + i, part, p.offsets[g]);
        i += part, left -= part;
      }
      const block_arrays elements{scales, p.zero_points != nullptr ? zeros : nullptr,
                                  p.offsets != nullptr ? offsets : nullptr, p.tensor_scale};
      run(codes + unit_of<S>(first), count, detail::element_arrays<S, A>{elements}, out + first);
    }
  }
};

template <vector_decodable S, usable_arch A>
requires(!std::same_as<A, scalar_arch>) struct kernel<op::decode, S, A> : vector_decoder<S, A> {
  static constexpr bool enabled = true;
  static constexpr std::string_view name = arch_name<A>;
};

// ---- What callers call: kernels are looked up for stored<S>, as policies change no value ----------------------------

/// Values of n codes under one scale (and zero point, and offset). Reads the units of n codes, writes out[0, n).
template <quantization_scheme S>
void decode_uniform(const code_unit_t<S>* codes, index_t n, element_scale s, std::int32_t zero_point, float* out,
                    float offset = 0.f) {
  if (n > 0)
    best_kernel<op::decode, stored<S>>::uniform(codes, n, {&s.scale, &zero_point, &offset, s.tensor_scale}, out);
}

/// Element i has scales[i], zero_points[i] and offsets[i].
template <quantization_scheme S>
void decode_vector(const code_unit_t<S>* codes, index_t n, const float* scales, const std::int32_t* zero_points,
                   float* out, float tensor_scale = 1.f, const float* offsets = nullptr) {
  if (n > 0) best_kernel<op::decode, stored<S>>::vector(codes, n, {scales, zero_points, offsets, tensor_scale}, out);
}

/// Element i has entry i / group of each array; any group >= 1, the last one may be short.
template <quantization_scheme S>
void decode_grouped(const code_unit_t<S>* codes, index_t n, index_t group, const float* scales,
                    const std::int32_t* zero_points, float* out, float tensor_scale = 1.f,
                    const float* offsets = nullptr) {
  QTENSOR_ASSERT(group >= 1, "decode_grouped needs groups of at least one element");
  if (n > 0)
    best_kernel<op::decode, stored<S>>::grouped(codes, n, group, {scales, zero_points, offsets, tensor_scale}, out);
}

/// Formats that decode_values takes, on the best architecture.
template <class F>
concept bf16_values = bf16_decodable<F, best_arch>;

/// The bf16 numbers that n codes are, without any scale: out[i] = decode<F>(code i), which is exact. Reads the bytes of
/// n codes, which start on a byte.
template <bf16_values F>
void decode_values(const std::uint8_t* codes, index_t n, std::uint16_t* out) {
  using A = best_arch;
  constexpr index_t step = 4 * lanes<A>, chunk = 512;
  const decoder<F, A> decode;
  alignas(64) std::uint8_t bytes[static_cast<std::size_t>(chunk)];
  for (index_t first = 0; first < n; first += chunk) {
    const index_t count = std::min(chunk, n - first);
    const std::uint8_t* from = codes + first;
    if (F::bits != 8 || count < chunk) {
      unpack_codes<A, F::bits>(codes + first * F::bits / 8, count, bytes);
      std::fill(bytes + count, bytes + round_up(count, step), std::uint8_t{0});
      from = bytes;
    }
    for (index_t i = 0; i < count; i += step) {
      const std::array<halves<A>, 2> v = decode_bf16<F, A>(decode, from + i);
      const index_t left = count - i;
      if (left >= step) {
        simd::store(out + first + i, v[0]);
        simd::store(out + first + i + step / 2, v[1]);
      } else {
        simd::store_n(out + first + i, std::min(left, step / 2), v[0]);
        simd::store_n(out + first + i + std::min(left, step / 2), std::max(left - step / 2, index_t{0}), v[1]);
      }
    }
  }
}

}  // namespace qtensor::inline QTENSOR_ABI::simd
