// ggml's blocks as bytes: planar tensors to and from blocks, and rows of blocks by run-time type (NUMERICS 8.3).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/compat/ggml.hpp>
#include <qtensor/core/executor.hpp>
#include <qtensor/ops/rows.hpp>
#include <qtensor/reference/quantize.hpp>
#include <qtensor/simd/blocks_encode.hpp>
#include <string>

namespace qtensor::compat::ggml {

// ---- Planar tensors and blocks -------------------------------------------------------------------------------------

/// How the codes of one scheme are spelled in another of equal meaning: the same numbers up to one factor (2 into
/// MXFP4's doubled codes), which the scales take the other way.
template <quantization_scheme From, quantization_scheme To>
struct respelling {
  using from = typename From::code_format;
  using to = typename To::code_format;
  static constexpr float factor = std::is_same_v<to, doubled_fp4> == std::is_same_v<from, doubled_fp4> ? 1.f
                                  : std::is_same_v<to, doubled_fp4>                                    ? 2.f
                                                                                                       : 0.5f;
  static constexpr std::uint32_t count = from::bits <= 8 && to::bits <= 8 ? 1u << from::bits : 0;
  /// Code of the same number, the same code where it will do (a -0 stays one); `count` where there is none.
  static constexpr std::array<std::uint32_t, count> codes = [] {
    std::array<std::uint32_t, count> table{};
    for (std::uint32_t c = 0; c < count; ++c) {
      const float value = decode<from>(c) * factor;
      table[c] = count;
      for (std::uint32_t t = 0; t < 1u << to::bits; ++t)
        if (decode<to>(t) == value && (table[c] == count || t == c)) table[c] = t;
    }
    return table;
  }();
  static constexpr bool is_complete = [] {
    for (std::uint32_t c : codes)
      if (c == count) return false;
    return count > 0;
  }();
};

/// A parameter of one format as a code of another that decodes to the same float, or a sentence that says why not.
template <format From, format To>
std::uint32_t respelled(std::uint32_t code, float factor, const char* what) {
  if constexpr (std::is_same_v<From, To>) {
    return code;
  } else {
    const float wanted = decode<From>(code) * factor;
    const std::uint32_t spelled = encode<To, to_special>(wanted);
    require(bits_of(decode<To>(spelled)) == bits_of(wanted), "the ", what, " ", wanted, " has no exact code in ",
            To::name, ".");
    return spelled;
  }
}

/// The whole groups of one row, blocks or planar: their codes, one a byte, and the codes of their scales and offsets.
template <class View>
class row_groups {
  using S = typename View::scheme_type;
  using code = typename S::code_format;
  using scale_format = typename S::scale_format;
  using offset_format = typename S::offset_format;
  using place = interleaved_block<S>;
  using A = simd::best_arch;

 public:
  /// Elements of a group; 0 where it is not in the type.
  static constexpr index_t size = simd::detail::static_group<typename S::granularity_type>;
  /// Whether vectors move them.
  static constexpr bool move = [] {
    if (size == 0 || size % 16 != 0) return false;
    if constexpr (S::is_interleaved)
      return simd::block_decodable<S>;
    else
      return (code::bits == 4 || code::bits == 5 || code::bits == 8) &&
             std::is_same_v<typename S::layout::order, low_first>;
  }();
  /// Groups that stand together in memory.
  static constexpr index_t together = [] {
    if constexpr (S::is_interleaved)
      return interleaved_block<S>::groups;
    else
      return index_t{1};
  }();

  row_groups(const View& w, const typename View::index_array& row) : codes_(w.row(row)) {
    if constexpr (!S::is_interleaved) {
      scales_ = w.storage_scales(row);
      if constexpr (S::has_offset) offsets_ = w.memory().offsets + w.scale_grid().entry(row);
      step_ = w.scale_grid().stride[row.size() - 1];
    }
  }
  void read(index_t g, std::uint8_t* codes) const {
    if constexpr (S::is_interleaved)
      simd::detail::split_codes<S, A>(code_place(g), codes);
    else
      simd::unpack_codes<A, code::bits>(code_place(g), size, codes);
  }
  void write(index_t g, const std::uint8_t* codes) const {
    if constexpr (S::is_interleaved)
      simd::detail::join_codes<S, A>(codes, code_place(g));
    else
      simd::pack_codes<A, code::bits>(codes, size, code_place(g));
  }
  std::uint32_t scale(index_t g) const { return parameter<scale_format>(scale_place(g)); }
  void set_scale(index_t g, std::uint32_t value) const { set_parameter<scale_format>(scale_place(g), value); }
  std::uint32_t offset(index_t g) const requires(S::has_offset) { return parameter<offset_format>(offset_place(g)); }
  void set_offset(index_t g, std::uint32_t value) const requires(S::has_offset) {
    set_parameter<offset_format>(offset_place(g), value);
  }
  /// The sum of a group's codes times its scale, once that is set.
  void set_sum(index_t g, const std::uint8_t* codes) const requires(S::has_code_sum) {
    using format = typename S::layout::code_sum_format;
    const auto sum = static_cast<float>(simd::detail::sum_of_codes<S>(codes));
    qtensor::detail::store_unit<format>(block(g) + place::sum_at, encode<format, nearest_even, to_special>(
                                                                      rounded(sum * decode<scale_format>(scale(g)))));
  }

 private:
  using byte =
      std::conditional_t<std::is_same_v<typename View::access_type, read_write>, std::uint8_t, const std::uint8_t>;
  byte* block(index_t g) const { return reinterpret_cast<byte*>(codes_) + g / together * place::bytes({}); }
  auto scale_place(index_t g) const {
    if constexpr (S::is_interleaved)
      return block(g) + g % together * place::scale_bytes;
    else
      return scales_ + g * step_;
  }
  auto offset_place(index_t g) const {
    if constexpr (S::is_interleaved)
      return block(g) + place::offset_at;
    else
      return offsets_ + g * step_;
  }
  byte* code_place(index_t g) const {
    if constexpr (S::is_interleaved)
      return block(g) + place::codes_at + g % together * place::code_bytes({});
    else
      return reinterpret_cast<byte*>(codes_) + g * size * code::bits / 8;
  }
  template <format F, class Place>
  static std::uint32_t parameter(Place at) {
    if constexpr (S::is_interleaved)
      return qtensor::detail::code_of<F>(qtensor::detail::load_unit<F>(at));
    else
      return qtensor::detail::code_of<F>(*at);
  }
  template <format F, class Place>
  static void set_parameter(Place at, std::uint32_t value) {
    if constexpr (S::is_interleaved)
      qtensor::detail::store_unit<F>(at, value);
    else
      *at = qtensor::detail::unit_from<F>(value);
  }

  typename View::code_pointer codes_;
  typename View::scale_pointer scales_{};
  typename View::offset_pointer offsets_{};
  index_t step_ = 0;
};

/// Groups of one row to those of another, some at a time.
template <class Spelling, class From, class To, class ScaleOf, class OffsetOf>
void move_row(const From& from, const To& to, index_t groups, const ScaleOf& scale_of, const OffsetOf& offset_of) {
  using A = simd::best_arch;
  constexpr index_t step = 4 * simd::lanes<A>, at_once = 1024 / From::size;
  constexpr std::size_t entries = Spelling::count <= 16 ? 16 : 256;
  static constexpr auto spelled = [] {
    std::array<std::uint8_t, entries> table{};
    for (std::size_t c = 0; c < Spelling::count; ++c) table[c] = static_cast<std::uint8_t>(Spelling::codes[c]);
    return table;
  }();
  constexpr bool differ = [] {
    for (std::size_t c = 0; c < Spelling::count; ++c)
      if (spelled[c] != c) return true;
    return false;
  }();
  const simd::byte_table<A, entries> table(spelled.data());
  alignas(64) std::uint8_t codes[at_once * From::size + step] = {};
  for (index_t first = 0; first < groups; first += at_once) {
    const index_t n = std::min(at_once, groups - first);
    for (index_t g = 0; g < n; ++g) from.read(first + g, codes + g * From::size);
    for (index_t i = 0; differ && i < n * From::size; i += step)
      simd::store(codes + i, table(simd::load<A>(codes + i)));
    for (index_t g = 0; g < n; ++g) {
      to.write(first + g, codes + g * From::size);
      to.set_scale(first + g, scale_of(from.scale(first + g)));
      if constexpr (requires { from.offset(g); }) to.set_offset(first + g, offset_of(from.offset(first + g)));
      if constexpr (requires { to.set_sum(g, codes); }) to.set_sum(first + g, codes + g * From::size);
    }
  }
}

/// A tensor of scheme To with the numbers of `from`, which lie elsewhere: nothing is rounded. Codes change their
/// spelling only, scales and offsets must be numbers of To's formats (else `error`), a sum of codes is made from them
/// anew.
template <quantization_scheme To, quantized T>
auto moved(const T& from) {
  const auto view = as_view(from);
  using view_type = std::remove_const_t<decltype(view)>;
  using From = typename view_type::scheme_type;
  using Extents = typename view_type::extents_type;
  using Order = typename view_type::order_type;
  using spelling = respelling<From, To>;
  static_assert(std::is_same_v<typename From::granularity_type, typename To::granularity_type>,
                "qtensor: blocks and planar tensor must share scales in the same groups: group<32>, or group<16> for "
                "nvfp4.");
  static_assert(
      !From::has_zero_point && !To::has_zero_point && !From::has_tensor_scale && !To::has_tensor_scale &&
          From::has_offset == To::has_offset,
      "qtensor: ggml's blocks hold scales, and offsets in q4_1 and q5_1; the planar scheme must hold as much.");
  static_assert(spelling::is_complete,
                "qtensor: these codes do not all have a counterpart of the same value in the other format.");

  tensor<To, Extents, Order> out(view.extents(), view.granularity());
  const auto to = out.span();
  using index_array = typename Extents::array;
  using from_scale = typename From::scale_format;
  std::array<std::int64_t, from_scale::bits <= 8 ? 256 : 1> spelled;  // scales of a byte, as they are met
  spelled.fill(-1);
  const auto scale_of = [&](std::uint32_t code) {
    const auto spell = [&] {
      return respelled<from_scale, typename To::scale_format>(code, 1.f / spelling::factor, "scale");
    };
    if constexpr (from_scale::bits > 8) {
      return spell();
    } else {
      std::int64_t& known = spelled[code];
      if (known < 0) known = spell();
      return static_cast<std::uint32_t>(known);
    }
  };
  const auto offset_of = [](auto code) {
    return respelled<typename From::offset_format, typename To::offset_format>(code, 1.f, "offset");
  };
  using source = row_groups<view_type>;
  using result = row_groups<std::remove_const_t<decltype(to)>>;
  if constexpr (source::move && result::move) {
    const auto sizes = view.storage_extents();
    const index_t length = sizes.back(), groups = length / source::size;
    if (view.size() > 0 && length % (source::size * source::together * result::together) == 0) {
      for (index_t row = 0; row < view.size() / length; ++row) {
        const index_array at = ops::row_index(row, sizes);
        move_row<spelling>(source(view, at), result(to, at), groups, scale_of, offset_of);
      }
      return out;
    }
  }
  reference::for_each_block(
      view.scale_grid(), view.storage_extents(), [&](const index_array& first, const index_array& n) {
        to.set_storage_scale_code(first, scale_of(view.storage_scale_code(first)));
        if constexpr (To::has_offset) to.set_storage_offset_code(first, offset_of(view.storage_offset_code(first)));
        reference::for_each_index(
            first, n, [&](const index_array& i) { to.set_storage_code(i, spelling::codes[view.storage_code(i)]); });
        reference::detail::store_code_sum(to, first, n,
                                          decode<typename To::scale_format>(to.storage_scale_code(first)));
      });
  return out;
}

/// Planar -> blocks: `to_blocks<ggml::q8_0>(t).blocks()` are ggml's bytes of `t`, a tensor or view of int8 in group<32>
/// with f16 scales (int4 for q4_0, uint4 or uint5 with offset<f16> for q4_1 and q5_1, e2m1 with e8m0 or e4m3 scales for
/// mxfp4 and nvfp4; scales of other formats where every one has an exact code).
template <quantization_scheme Blocks, quantized T>
auto to_blocks(const T& planar) {
  static_assert(Blocks::is_interleaved, "qtensor: to_blocks<B> makes blocks; B is one of ggml's schemes.");
  return moved<Blocks>(planar);
}

/// Blocks -> planar, the way back: `from_blocks<mxfp4>(view_of<ggml::mxfp4>(bytes, extents))`. Q8_1's sums are left
/// out.
template <quantization_scheme Planar, quantized T>
auto from_blocks(const T& blocks) {
  static_assert(!Planar::is_interleaved,
                "qtensor: from_blocks<S> makes planar tensors; leave the layout out of S, or copy the bytes.");
  return moved<Planar>(blocks);
}

// ---- Rows with run-time types --------------------------------------------------------------------------------------

/// ggml's numbers of the types that are understood here. GGUF files use the same.
enum class type : int {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q8_1 = 9,
  bf16 = 30,
  mxfp4 = 39,
  nvfp4 = 40
};

/// What a call came to: success, or a sentence that says what was wrong with its arguments.
struct status {
  std::string reason;
  bool ok() const { return reason.empty(); }
  explicit operator bool() const { return ok(); }
};

/// Elements and bytes of a block (1 and the size of a number for types without blocks); zeros for unknown types.
struct block_size {
  index_t elements = 0, bytes = 0;
};

namespace rows {

template <class Numbers>
struct plain {
  using number = Numbers;
};

/// Calls visit(tag) with the scheme of a type, or with plain<F> for types without blocks; false for unknown types.
template <class Visit>
constexpr bool visit_type(int id, Visit visit) {
  switch (static_cast<type>(id)) {
    case type::f32:
      return visit(plain<qtensor::f32>{}), true;
    case type::f16:
      return visit(plain<qtensor::f16>{}), true;
    case type::bf16:
      return visit(plain<qtensor::bf16>{}), true;
    case type::q4_0:
      return visit(q4_0{}), true;
    case type::q4_1:
      return visit(q4_1{}), true;
    case type::q5_0:
      return visit(q5_0{}), true;
    case type::q5_1:
      return visit(q5_1{}), true;
    case type::q8_0:
      return visit(q8_0{}), true;
    case type::q8_1:
      return visit(q8_1{}), true;
    case type::mxfp4:
      return visit(mxfp4{}), true;
    case type::nvfp4:
      return visit(nvfp4{}), true;
  }
  return false;
}

template <class Tag>
constexpr block_size size_of() {
  if constexpr (quantization_scheme<Tag>)
    return {interleaved_block<Tag>::elements({}), interleaved_block<Tag>::bytes({})};
  else
    return {1, Tag::number::bits / 8};
}

inline bool overlap(const void* a, index_t a_bytes, const void* b, index_t b_bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(a), second = reinterpret_cast<std::uintptr_t>(b);
  return first < second + static_cast<std::uintptr_t>(b_bytes) && second < first + static_cast<std::uintptr_t>(a_bytes);
}

/// Why a row of n elements cannot go from or to these buffers; empty where it can.
inline std::string refusal(int id, block_size block, const float* x, const void* y, index_t n) {
  const std::string of_type = "qtensor: type " + std::to_string(id);
  if (block.elements == 0)
    return of_type + " is not one of ggml's types that are understood here: 0, 1, 2, 3, 6, 7, 8, 9, 30, 39, 40.";
  if (n < 0 || n % block.elements != 0)
    return of_type + " has blocks of " + std::to_string(block.elements) + " elements; a row of " + std::to_string(n) +
           " is not a number of them.";
  index_t floats = 0, bytes = 0;
  if (__builtin_mul_overflow(n, static_cast<index_t>(sizeof(float)), &floats) ||
      __builtin_mul_overflow(n / block.elements, block.bytes, &bytes))
    return "qtensor: the bytes of a row of " + std::to_string(n) + " elements do not fit 63 bits.";
  if (n > 0 && (x == nullptr || y == nullptr)) return "qtensor: a row of floats or of blocks is a null pointer.";
  if (n > 0 && overlap(x, floats, y, bytes)) return "qtensor: the row of floats and the row of blocks overlap.";
  return "";
}

inline namespace QTENSOR_ABI {

/// Calls visit(numbers, first, count) for elements [first, first + count) of n, with room for so many numbers: bytes of
/// a row need not be aligned.
template <format F, class Visit>
void for_each_tile(index_t n, Visit visit) {
  constexpr index_t most = 1024;
  alignas(64) storage_t<F> numbers[most];
  for (index_t first = 0; first < n; first += most) visit(numbers, first, std::min(most, n - first));
}

template <class Tag>
void write(const float* x, std::uint8_t* bytes, index_t n) {
  if constexpr (simd::block_encodable<Tag>) {
    simd::encode_interleaved<Tag>(x, n, bytes);
  } else if constexpr (quantization_scheme<Tag>) {
    const tensor_span<Tag, extents<dynamic>> blocks{{extents<dynamic>(n), {}, {}}, {bytes, {}, {}, {}, {}}};
    reference::quantize([x](const auto& i) { return x[i[0]]; }, blocks);
  } else {
    for_each_tile<typename Tag::number>(n, [&](auto* numbers, index_t first, index_t count) {
      simd::narrow_floats<typename Tag::number>(x + first, count, numbers);
      std::memcpy(bytes + first * size_of<Tag>().bytes, numbers, static_cast<std::size_t>(count) * sizeof(*numbers));
    });
  }
}

template <class Tag>
void read(const std::uint8_t* bytes, float* x, index_t n) {
  if constexpr (quantization_scheme<Tag>) {
    simd::decode_interleaved<Tag>(bytes, n, x);
  } else {
    for_each_tile<typename Tag::number>(n, [&](auto* numbers, index_t first, index_t count) {
      std::memcpy(numbers, bytes + first * size_of<Tag>().bytes, static_cast<std::size_t>(count) * sizeof(*numbers));
      simd::widen_floats<typename Tag::number>(numbers, count, x + first);
    });
  }
}

/// Calls use(first, n, their bytes) for elements of a row of n, in whole blocks, on an executor.
template <class Tag, class Bytes, class Use, class... On>
void in_parts(Bytes* row, index_t n, const Use& use, const On&... on) {
  using byte = std::conditional_t<std::is_const_v<Bytes>, const std::uint8_t, std::uint8_t>;
  constexpr block_size block = size_of<Tag>();
  constexpr index_t step = round_up(1024, block.elements);
  qtensor::detail::in_ranges(qtensor::detail::execution_among(on...).by, n, step, 1, [&](index_t first, index_t count) {
    use(first, count, static_cast<byte*>(row) + first / block.elements * block.bytes);
  });
}

}  // namespace QTENSOR_ABI

}  // namespace rows

inline block_size block_size_of(int id) {
  block_size size;
  rows::visit_type(id, [&](auto tag) { size = rows::size_of<decltype(tag)>(); });
  return size;
}

/// Bytes of a row of n elements; 0 where the type is unknown, n is not a number of its blocks, or they do not fit 63
/// bits.
inline index_t row_bytes(int id, index_t n) {
  const block_size size = block_size_of(id);
  index_t bytes = 0;
  const bool fits = size.elements != 0 && n >= 0 && n % size.elements == 0 &&
                    !__builtin_mul_overflow(n / size.elements, size.bytes, &bytes);
  return fits ? bytes : 0;
}

inline namespace QTENSOR_ABI {

/// n floats to a row of blocks at y, at any alignment: row_bytes(id, n) bytes. On failure nothing is written. No
/// thread, no allocation, unless on(executor) comes last.
template <qtensor::detail::execution_option... On>
status quantize_row(int id, const float* x, void* y, index_t n, const On&... on) {
  status result{rows::refusal(id, block_size_of(id), x, y, n)};
  if (result)
    rows::visit_type(id, [&](auto tag) {
      rows::in_parts<decltype(tag)>(
          y, n,
          [&](index_t first, index_t count, std::uint8_t* bytes) {
            rows::write<decltype(tag)>(x + first, bytes, count);
          },
          on...);
    });
  return result;
}

/// A row of blocks back to n floats, likewise.
template <qtensor::detail::execution_option... On>
status dequantize_row(int id, const void* y, float* x, index_t n, const On&... on) {
  status result{rows::refusal(id, block_size_of(id), x, y, n)};
  if (result)
    rows::visit_type(id, [&](auto tag) {
      rows::in_parts<decltype(tag)>(
          y, n,
          [&](index_t first, index_t count, const std::uint8_t* bytes) {
            rows::read<decltype(tag)>(bytes, x + first, count);
          },
          on...);
    });
  return result;
}

}  // namespace QTENSOR_ABI

}  // namespace qtensor::compat::ggml
