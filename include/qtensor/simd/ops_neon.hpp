// Native bodies of the vector operations on 64-bit Arm. ops.hpp says what they mean.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/simd/ops_generic.hpp>

#if QTENSOR_LEVEL_NEON
namespace qtensor::inline QTENSOR_ABI::simd::detail {

using floats_neon = floats<neon_arch>;
using ints_neon = ints<neon_arch>;
using words_neon = words<neon_arch>;
using halves_neon = halves<neon_arch>;
using bytes_neon = bytes<neon_arch>;

template <class To, class From>
QTENSOR_INLINE xsimd::batch_bool<To, neon_arch> mask_as(neon_isa, const xsimd::batch_bool<From, neon_arch>& m) {
  return m.data;  // masks of 32-bit lanes are uint32x4_t whatever the lane type
}
QTENSOR_INLINE std::uint32_t mask_bits(neon_isa, const xsimd::batch_bool<std::uint32_t, neon_arch>& m) {
  constexpr std::uint32_t weights[4] = {1, 2, 4, 8};
  return vaddvq_u32(vandq_u32(m.data, vld1q_u32(weights)));
}
QTENSOR_INLINE floats_neon min(neon_isa, const floats_neon& a, const floats_neon& b) {
  return vbslq_f32(vcltq_f32(a.data, b.data), a.data, b.data);
}
QTENSOR_INLINE floats_neon max(neon_isa, const floats_neon& a, const floats_neon& b) {
  return vbslq_f32(vcgtq_f32(a.data, b.data), a.data, b.data);
}

QTENSOR_INLINE bytes_neon add_saturated(neon_isa, const bytes_neon& a, const bytes_neon& b) {
  return vqaddq_u8(a.data, b.data);
}
QTENSOR_INLINE bytes_neon sub_saturated(neon_isa, const bytes_neon& a, const bytes_neon& b) {
  return vqsubq_u8(a.data, b.data);
}

QTENSOR_INLINE std::uint32_t reduce_max(neon_isa, const words_neon& v) { return vmaxvq_u32(v.data); }
QTENSOR_INLINE std::uint32_t reduce_add(neon_isa, const words_neon& v) { return vaddvq_u32(v.data); }
QTENSOR_INLINE uint32x4_t of_pairs(lane_max, uint32x4_t a, uint32x4_t b) { return vpmaxq_u32(a, b); }
QTENSOR_INLINE uint32x4_t of_pairs(lane_sum, uint32x4_t a, uint32x4_t b) { return vpaddq_u32(a, b); }
template <class A, class Op, class Row>
QTENSOR_INLINE words_neon reduce_each(neon_isa, Op op, Row row) {
  const uint32x4_t r01 = of_pairs(op, row(index_t{0}).data, row(index_t{1}).data);
  const uint32x4_t r23 = of_pairs(op, row(index_t{2}).data, row(index_t{3}).data);
  return of_pairs(op, r01, r23);
}

template <class A, int BlocksOfRow, class Row>
requires(BlocksOfRow == 1) QTENSOR_INLINE words_neon reduce_max_each_half(neon_isa, Row row) {
  const uint16x8_t r01 = vpmaxq_u16(row(index_t{0}).data, row(index_t{1}).data);
  const uint16x8_t r23 = vpmaxq_u16(row(index_t{2}).data, row(index_t{3}).data), pairs = vpmaxq_u16(r01, r23);
  return vmovl_u16(vget_low_u16(vpmaxq_u16(pairs, pairs)));
}

QTENSOR_INLINE floats_neon rounded(neon_isa, floats_neon x) {
  asm("" : "+w"(x.data));
  return x;
}
// Not xsimd's: version 8.1 multiplies by an approximate reciprocal.
QTENSOR_INLINE floats_neon div(neon_isa, const floats_neon& a, const floats_neon& b) {
  return vdivq_f32(a.data, b.data);
}
QTENSOR_INLINE floats_neon fma(neon_isa, const floats_neon& a, const floats_neon& b, const floats_neon& c) {
  return vfmaq_f32(c.data, a.data, b.data);
}

QTENSOR_INLINE ints_neon round_to_int(neon_isa, const floats_neon& x) { return vcvtnq_s32_f32(x.data); }
QTENSOR_INLINE ints_neon round_to_int_checked(neon_isa, const floats_neon& x) {
  const uint32x4_t inside = vcaltq_f32(x.data, vdupq_n_f32(0x1p31f));
  return vbslq_s32(inside, vcvtnq_s32_f32(x.data), vdupq_n_s32(std::numeric_limits<std::int32_t>::min()));
}
QTENSOR_INLINE ints_neon truncate_to_int(neon_isa, const floats_neon& x) { return vcvtq_s32_f32(x.data); }
QTENSOR_INLINE floats_neon to_float(neon_isa, const ints_neon& x) { return vcvtq_f32_s32(x.data); }
QTENSOR_INLINE floats_neon nearest(neon_isa, const floats_neon& x) { return vrndnq_f32(x.data); }
QTENSOR_INLINE floats_neon floor(neon_isa, const floats_neon& x) { return vrndmq_f32(x.data); }
QTENSOR_INLINE floats_neon truncate(neon_isa, const floats_neon& x) { return vrndq_f32(x.data); }

QTENSOR_INLINE words_neon shift_left(neon_isa, const words_neon& v, const words_neon& count) {
  return vshlq_u32(v.data, vreinterpretq_s32_u32(count.data));
}
QTENSOR_INLINE words_neon shift_right(neon_isa, const words_neon& v, const words_neon& count) {
  return vshlq_u32(v.data, vnegq_s32(vreinterpretq_s32_u32(count.data)));
}
QTENSOR_INLINE std::array<words_neon, 2> multiply_wide(neon_isa, const words_neon& a, std::uint32_t b) {
  const uint32x4_t low = vreinterpretq_u32_u64(vmull_n_u32(vget_low_u32(a.data), b));
  const uint32x4_t high = vreinterpretq_u32_u64(vmull_n_u32(vget_high_u32(a.data), b));
  return {words_neon(vuzp1q_u32(low, high)), words_neon(vuzp2q_u32(low, high))};
}

QTENSOR_INLINE uint8x8_t load32(const void* from) {
  std::uint32_t v;
  std::memcpy(&v, from, sizeof v);
  return vreinterpret_u8_u32(vdup_n_u32(v));
}
template <class A, class Wide>
QTENSOR_INLINE words_neon widen(neon_isa, const std::uint8_t* from) {
  return vmovl_u16(vget_low_u16(vmovl_u8(load32(from))));
}
template <class A, class Wide>
QTENSOR_INLINE ints_neon widen(neon_isa, const std::int8_t* from) {
  return vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_u8(load32(from)))));
}
template <class A, class Wide>
QTENSOR_INLINE words_neon widen(neon_isa, const std::uint16_t* from) {
  return vmovl_u16(vld1_u16(from));
}
template <class A, class Wide>
QTENSOR_INLINE ints_neon widen(neon_isa, const std::int16_t* from) {
  return vmovl_s16(vld1_s16(from));
}

QTENSOR_INLINE floats_neon widen_f16(neon_isa, const words_neon& h) {
  return vcvt_f32_f16(vreinterpret_f16_u16(vmovn_u32(h.data)));
}
template <class A>
QTENSOR_INLINE floats_neon load_f16(neon_isa, const std::uint16_t* from) {
  return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from)));
}
QTENSOR_INLINE floats_neon rounded_to_f16(neon_isa, const floats_neon& x) { return vcvt_f32_f16(vcvt_f16_f32(x.data)); }
QTENSOR_INLINE halves_neon narrow_f16(neon_isa, const floats_neon& a, const floats_neon& b) {
  return vreinterpretq_u16_f16(vcombine_f16(vcvt_f16_f32(a.data), vcvt_f16_f32(b.data)));
}

QTENSOR_INLINE int16x8_t narrow_i16(const ints_neon& a, const ints_neon& b) {
  return vcombine_s16(vqmovn_s32(a.data), vqmovn_s32(b.data));
}
QTENSOR_INLINE bytes_neon narrow_i8(neon_isa, const ints_neon& a, const ints_neon& b, const ints_neon& c,
                                    const ints_neon& d) {
  return vreinterpretq_u8_s8(vcombine_s8(vqmovn_s16(narrow_i16(a, b)), vqmovn_s16(narrow_i16(c, d))));
}
QTENSOR_INLINE bytes_neon narrow_u8(neon_isa, const ints_neon& a, const ints_neon& b, const ints_neon& c,
                                    const ints_neon& d) {
  return vcombine_u8(vqmovun_s16(narrow_i16(a, b)), vqmovun_s16(narrow_i16(c, d)));
}
QTENSOR_INLINE halves_neon upper_halves(neon_isa, const words_neon& a, const words_neon& b) {
  return vuzp2q_u16(vreinterpretq_u16_u32(a.data), vreinterpretq_u16_u32(b.data));
}
QTENSOR_INLINE halves_neon low_halves(neon_isa, const words_neon& a, const words_neon& b) {
  return vuzp1q_u16(vreinterpretq_u16_u32(a.data), vreinterpretq_u16_u32(b.data));
}
QTENSOR_INLINE bytes_neon low_bytes(neon_isa isa, const words_neon& a, const words_neon& b, const words_neon& c,
                                    const words_neon& d) {
  return vuzp1q_u8(vreinterpretq_u8_u16(low_halves(isa, a, b).data), vreinterpretq_u8_u16(low_halves(isa, c, d).data));
}

// A table look-up gives 0 for an index beyond its 64 bytes.
QTENSOR_INLINE uint8x16x4_t load_table(const void* from) {
  const auto* p = static_cast<const std::uint8_t*>(from);
  return {{vld1q_u8(p), vld1q_u8(p + 16), vld1q_u8(p + 32), vld1q_u8(p + 48)}};
}
template <>
struct float_table16<neon_isa, neon_arch> {
  explicit float_table16(const float* table) : table_(load_table(table)) {}
  QTENSOR_INLINE floats_neon operator()(const words_neon& index) const {
    const uint32x4_t first_byte = vmulq_n_u32(vandq_u32(index.data, vdupq_n_u32(15)), 0x04040404u);
    const uint32x4_t byte = vaddq_u32(first_byte, vdupq_n_u32(0x03020100u));
    return vreinterpretq_f32_u8(vqtbl4q_u8(table_, vreinterpretq_u8_u32(byte)));
  }
  uint8x16x4_t table_;
};
template <int Entries>
struct byte_table<neon_isa, neon_arch, Entries> {
  static constexpr int parts = Entries <= 64 ? 1 : Entries / 64;
  explicit byte_table(const std::uint8_t* table) {
    for (int k = 0; k < parts; ++k) {
      if constexpr (Entries == 16) {
        part_[k].val[0] = vld1q_u8(table);
      } else if constexpr (Entries == 32) {
        part_[k] = {{vld1q_u8(table), vld1q_u8(table + 16), vdupq_n_u8(0), vdupq_n_u8(0)}};
      } else {
        part_[k] = load_table(table + 64 * k);
      }
    }
  }
  QTENSOR_INLINE bytes_neon operator()(const bytes_neon& index) const {
    if constexpr (Entries == 16) {
      return vqtbl1q_u8(part_[0].val[0], index.data);
    } else {
      uint8x16_t r = vqtbl4q_u8(part_[0], index.data), from = index.data;
#pragma GCC unroll 4
      for (int k = 1; k < parts; ++k) {
        from = vsubq_u8(from, vdupq_n_u8(64));
        r = vorrq_u8(r, vqtbl4q_u8(part_[k], from));
      }
      return r;
    }
  }
  uint8x16x4_t part_[parts];
};

QTENSOR_INLINE std::array<halves_neon, 2> halves_from_planes(neon_isa, const bytes_neon& high, const bytes_neon& low) {
  return {halves_neon(vreinterpretq_u16_u8(vzip1q_u8(low.data, high.data))),
          halves_neon(vreinterpretq_u16_u8(vzip2q_u8(low.data, high.data)))};
}
QTENSOR_INLINE bytes_neon pack_signed(neon_isa, const halves_neon& a, const halves_neon& b) {
  return vreinterpretq_u8_s8(
      vcombine_s8(vqmovn_s16(vreinterpretq_s16_u16(a.data)), vqmovn_s16(vreinterpretq_s16_u16(b.data))));
}
QTENSOR_INLINE bytes_neon pack_unsigned(neon_isa, const halves_neon& a, const halves_neon& b) {
  return vcombine_u8(vqmovun_s16(vreinterpretq_s16_u16(a.data)), vqmovun_s16(vreinterpretq_s16_u16(b.data)));
}
QTENSOR_INLINE halves_neon join_low_halves(neon_isa, const words_neon& even, const words_neon& odd) {
  return vtrn1q_u16(vreinterpretq_u16_u32(even.data), vreinterpretq_u16_u32(odd.data));
}
QTENSOR_INLINE bool any_top_bit(neon_isa, const bytes_neon& v) { return vmaxvq_u8(v.data) >= 0x80; }
QTENSOR_INLINE bool any_half_above(neon_isa, const halves_neon& v, std::uint16_t limit) {
  return vmaxvq_u16(v.data) > limit;
}
template <class A>
QTENSOR_INLINE bytes<A> binade_codes(neon_isa isa, const std::array<floats<A>, 4>& q, const binade_steps& steps) {
  const auto upper = [&](std::size_t k) QTENSOR_INLINE_LAMBDA {
    return upper_halves(isa, bits_as<std::uint32_t>(isa, q[k]), bits_as<std::uint32_t>(isa, q[k + 1]));
  };
  return packed_binade_codes<neon_arch>(isa, upper(0), upper(2), steps);
}
QTENSOR_INLINE bytes_neon interleave_pairs(neon_isa, const bytes_neon& v) {
  constexpr std::uint8_t order[16] = {0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15};
  return vqtbl1q_u8(v.data, vld1q_u8(order));
}
QTENSOR_INLINE std::array<floats_neon, 4> floats_from_planes(neon_isa isa, const bytes_neon& high,
                                                             const bytes_neon& low) {
  const std::array<halves_neon, 2> h = halves_from_planes(isa, high, low);
  const uint16x8_t zero = vdupq_n_u16(0);
  return {floats_neon(vreinterpretq_f32_u16(vzip1q_u16(zero, h[0].data))),
          floats_neon(vreinterpretq_f32_u16(vzip2q_u16(zero, h[0].data))),
          floats_neon(vreinterpretq_f32_u16(vzip1q_u16(zero, h[1].data))),
          floats_neon(vreinterpretq_f32_u16(vzip2q_u16(zero, h[1].data)))};
}

QTENSOR_INLINE bytes_neon join_nibbles(neon_isa, const bytes_neon& a, const bytes_neon& b) {
  const uint8x16_t even = vuzp1q_u8(a.data, b.data), odd = vuzp2q_u8(a.data, b.data);
  return vsliq_n_u8(vandq_u8(even, vdupq_n_u8(15)), odd, 4);
}
template <int Half>
QTENSOR_INLINE bytes_neon join_halves(neon_isa, const bytes_neon& a, const bytes_neon& b) {
  uint8x16_t low = a.data, high = b.data;
  if constexpr (Half == 8) {
    const uint64x2_t x = vreinterpretq_u64_u8(a.data), y = vreinterpretq_u64_u8(b.data);
    low = vreinterpretq_u8_u64(vzip1q_u64(x, y)), high = vreinterpretq_u8_u64(vzip2q_u64(x, y));
  }
  return vsliq_n_u8(vandq_u8(low, vdupq_n_u8(15)), high, 4);
}
QTENSOR_INLINE void put_nibbles(neon_isa isa, std::uint8_t* to, const bytes_neon& v, bool) {
  vst1_u8(to, vget_low_u8(join_nibbles(isa, v, v).data));
}
QTENSOR_INLINE std::array<bytes_neon, 2> split_nibbles(neon_isa, const bytes_neon& v) {
  const uint8x16_t low = vandq_u8(v.data, vdupq_n_u8(15)), high = vshrq_n_u8(v.data, 4);
  return {bytes_neon(vzip1q_u8(low, high)), bytes_neon(vzip2q_u8(low, high))};
}

}  // namespace qtensor::inline QTENSOR_ABI::simd::detail
#endif  // QTENSOR_LEVEL_NEON
