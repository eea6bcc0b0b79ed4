// Packed weights: codes and parameters of a matrix in the order in which product kernels read them.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <qtensor/core/error.hpp>
#include <qtensor/core/line_memory.hpp>
#include <qtensor/simd/gemm_int8.hpp>
#include <qtensor/tensor/view.hpp>
#include <span>
#include <string_view>
#include <utility>
#if defined(__linux__)
#include <sys/mman.h>
#endif

// Outputs (the rows of W in W * x) are cut into panels of `width`; the depth k into quads of four. A panel is one
// stream of 32-bit words, quad by quad, the word of output c after that of output c - 1. A word holds the codes of four
// k, the first in its lowest byte; of formats of at most 4 bits the lower nibbles belong to output c, the upper ones to
// output c + width / 2. Every group of k (elements that share scale and zero point) starts a quad; what is missing to
// whole quads and panels is filled with the packed number 0. Parameters of a panel: group by group, `width` of each.
namespace qtensor::inline QTENSOR_ABI {

/// How codes of a format stand in packed words. Integers become what integer dot products take: 8 bits signed
/// (number - 128 where they are unsigned), at most 4 bits unsigned (number + 2^(bits-1) where they are signed). Other
/// formats keep their codes.
template <format F>
struct packed_code {
  static_assert(F::bits <= 8,
                "qtensor: pack takes codes of at most 8 bits; products with wider ones read the tensor itself.");
  static constexpr bool is_integer = F::is_integer;
  static constexpr bool is_nibble = F::bits <= 4;
  /// Packed number less the code's number.
  static constexpr std::int32_t offset = [] {
    if (!is_integer) return 0;
    if (!is_nibble) return F::is_signed || F::bits < 8 ? 0 : -128;
    return F::is_signed ? 1 << (F::bits - 1) : 0;
  }();
  static constexpr std::uint8_t of(std::uint8_t code) {
    if constexpr (is_integer)
      return static_cast<std::uint8_t>(static_cast<std::int32_t>(F::decode(code)) + offset);
    else
      return code;
  }
};

/// Whether packed numbers of S stand for other numbers: zero points, or what packing adds, are still to be taken off.
template <quantization_scheme S>
inline constexpr bool packed_has_zeros = S::has_zero_point || packed_code<typename S::code_format>::offset != 0;

/// How zero points of format Zero are stored beside codes of F, as packed numbers: in one byte where all of them fit.
template <class Zero, format F>
struct packed_zero {
  static constexpr std::int64_t offset = packed_code<F>::offset;
  static constexpr bool fits_a_byte = Zero::min + offset >= -128 && Zero::max + offset <= 127;
  using type = std::conditional_t<fits_a_byte, std::int8_t, std::int32_t>;
};
template <format F>
struct packed_zero<none, F> {
  static constexpr bool fits_a_byte = true;
  using type = std::int8_t;
};
template <quantization_scheme S>
using packed_zero_of = packed_zero<typename S::zero_point_format, typename S::code_format>;

/// Sizes of a packed matrix of `outputs` x `depth` for architecture A, and where its arrays lie in its bytes. `group`
/// elements of the depth share parameters.
template <quantization_scheme S, simd::usable_arch A>
struct packed_layout {
  using code_format = typename S::code_format;
  using scale_unit = detail::unit_t<typename S::scale_format>;
  using zero_unit = typename packed_zero_of<S>::type;
  static constexpr bool is_nibble = packed_code<code_format>::is_nibble;
  /// Outputs of a panel.
  static constexpr index_t width = is_nibble ? 2 * simd::lanes<A> : simd::int_tile<A>::panel;
  static constexpr index_t quad_bytes = is_nibble ? width * 2 : width * 4;
  static constexpr index_t line = simd::cache_line;

  index_t outputs, depth, group;

  constexpr index_t panels() const { return divide_up(outputs, width); }
  constexpr index_t groups() const { return divide_up(depth, group); }
  constexpr index_t group_quads() const { return divide_up(group, 4); }
  constexpr index_t quads() const {
    return depth == 0 ? 0 : (groups() - 1) * group_quads() + divide_up(depth - (groups() - 1) * group, 4);
  }
  /// Bytes of a panel's codes, and entries of its parameters.
  constexpr index_t panel_bytes() const { return quads() * quad_bytes; }
  constexpr index_t panel_entries() const { return groups() * width; }

  // The header and the arrays follow each other, each of them on a cache line.
  static constexpr index_t codes_at() { return 4 * line; }
  constexpr index_t scales_at() const { return behind(codes_at(), detail::checked_product(panels(), panel_bytes())); }
  constexpr index_t zeros_at() const { return after<scale_unit>(scales_at(), true); }
  constexpr index_t offsets_at() const { return after<zero_unit>(zeros_at(), S::has_zero_point); }
  constexpr index_t sums_at() const { return after<float>(offsets_at(), S::has_offset); }
  constexpr index_t bytes() const { return after<std::int32_t>(sums_at(), packed_code<code_format>::is_integer); }

 private:
  template <class T>
  constexpr index_t after(index_t at, bool stored) const {
    const index_t entries = detail::checked_product(panels() * width, groups());
    return stored ? behind(at, detail::checked_product(entries, sizeof(T))) : at;
  }
  /// The first line behind so many bytes.
  static constexpr index_t behind(index_t at, index_t bytes) {
    require(bytes <= std::numeric_limits<index_t>::max() - at - line, "packed weights of ", bytes,
            " bytes in one array are more than 64 bits count.");
    return at + round_up(bytes, line);
  }
};

/// Tells the system that memory will be read from end to end again and again, where large pages are for who asks
/// (Linux): a product that waits for memory then waits less. Changes nothing else; memory below 4 MB is left alone.
inline void ask_for_large_pages([[maybe_unused]] void* data, [[maybe_unused]] index_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  constexpr index_t least = index_t{4} << 20;
  constexpr std::uintptr_t page = 4096;
  if (bytes < least) return;
  const auto first = (reinterpret_cast<std::uintptr_t>(data) + page - 1) / page * page;
  const auto end = (reinterpret_cast<std::uintptr_t>(data) + static_cast<std::uintptr_t>(bytes)) / page * page;
  madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
#endif
}

/// What packed bytes begin with: who can read them, and what they are. Little endian, as everything in them.
struct packed_header {
  static constexpr char magic_word[8] = {'q', 't', 'p', 'a', 'c', 'k', '0', '1'};
  char magic[8];
  char arch[16];
  std::int64_t outputs, depth, group, bytes;
  float tensor_scale;
  char scheme[188];  ///< the scheme's name, cut

  static void copy_name(char* to, std::size_t room, std::string_view name) {
    std::memset(to, 0, room);
    std::memcpy(to, name.data(), std::min(room - 1, name.size()));
  }
};

/// What a product kernel reads of one panel. Arrays that the scheme does not store are null.
template <quantization_scheme S, simd::usable_arch A>
struct packed_panel {
  using layout = packed_layout<S, A>;
  const std::uint8_t* codes;                  ///< quads() * quad_bytes
  const typename layout::scale_unit* scales;  ///< [group][width], in the scale format
  const typename layout::zero_unit* zeros;    ///< [group][width], zero points as packed numbers
  const float* offsets;                       ///< [group][width]
  const std::int32_t* sums;                   ///< [group][width], of the packed numbers of integer codes
};

/// A matrix packed for products: made by pack(W), used like W. What is inside is only for architecture A, and is told
/// apart by its header; the memory is one block on a cache line, of size_bytes().
template <quantization_scheme S, simd::usable_arch A = simd::best_arch>
class packed {
 public:
  using scheme_type = S;
  using arch = A;
  using layout_type = packed_layout<S, A>;
  static constexpr index_t width = layout_type::width;

  packed() : packed(layout_type{0, 0, 1}) {}
  /// Uninitialized memory for a matrix; pack fills it.
  explicit packed(const layout_type& layout) : layout_(layout), bytes_(allocate(layout.bytes())) {
    packed_header h{};
    std::memcpy(h.magic, packed_header::magic_word, sizeof h.magic);
    packed_header::copy_name(h.arch, sizeof h.arch, simd::arch_name<A>);
    packed_header::copy_name(h.scheme, sizeof h.scheme, std::string_view(name<S>.c_str()));
    h.outputs = layout.outputs, h.depth = layout.depth, h.group = layout.group, h.bytes = layout.bytes();
    h.tensor_scale = 1.f;
    // What lies behind the header and between arrays is stored too.
    constexpr index_t line = layout_type::line;
    std::memset(bytes_.data(), 0, layout_type::codes_at());
    for (const index_t end :
         {layout.scales_at(), layout.zeros_at(), layout.offsets_at(), layout.sums_at(), layout.bytes()})
      std::memset(bytes_.data() + end - line, 0, line);
    std::memcpy(bytes_.data(), &h, sizeof h);
  }
  /// A copy of what bytes() gave once, in this program or another: `packed<stored<S>>::from_bytes(file)`. Throws where
  /// the bytes are no packed weights, cut off, of another scheme, or packed for another architecture. What the codes
  /// and scales are is not looked at, nor whether sizes that come to as many bytes are those that were packed.
  static packed from_bytes(std::span<const std::byte> bytes) {
    packed_header h{};
    const auto size = static_cast<index_t>(bytes.size());
    require(bytes.size() >= sizeof h, size, " bytes are no packed weights; their header alone has ", sizeof h, ".");
    std::memcpy(&h, bytes.data(), sizeof h);
    h.arch[sizeof h.arch - 1] = h.scheme[sizeof h.scheme - 1] = 0;
    require(std::memcmp(h.magic, packed_header::magic_word, sizeof h.magic) == 0,
            "these bytes are no packed weights; they do not begin with qtpack01.");
    require(h.arch == simd::arch_name<A>, "these weights are packed for ", std::string_view(h.arch),
            ", and are to be multiplied with ", simd::arch_name<A>, "; pack the tensor again.");
    char expected[sizeof h.scheme];
    packed_header::copy_name(expected, sizeof expected, std::string_view(name<S>.c_str()));
    require(std::string_view(h.scheme) == expected, "these weights are packed as ", std::string_view(h.scheme),
            ", and are read as ", std::string_view(expected), ".");
    constexpr std::int64_t most = std::int64_t{1} << 40;
    require(h.outputs >= 0 && h.outputs <= most && h.depth >= 0 && h.depth <= most && h.group >= 1 &&
                h.group <= std::max(h.depth, std::int64_t{1}) && h.bytes == size &&
                layout_type{h.outputs, h.depth, h.group}.bytes() == size,
            "packed weights of ", h.outputs, "x", h.depth, " have ", size,
            " bytes, which is not what their header says; they are cut off or damaged.");
    packed out(layout_type{h.outputs, h.depth, h.group});
    std::memcpy(out.data(), bytes.data(), bytes.size());
    out.tensor_scale_ = h.tensor_scale;
    return out;
  }
  /// Everything, to be stored and read by from_bytes on any machine of the same architecture.
  std::span<const std::byte> bytes() const { return {bytes_.data(), static_cast<std::size_t>(size_bytes())}; }
  /// What it moves from holds a matrix of no outputs and no depth, and no bytes.
  packed(packed&& other) noexcept
      : layout_(std::exchange(other.layout_, {0, 0, 1})),
        tensor_scale_(other.tensor_scale_),
        bytes_(std::move(other.bytes_)) {}
  packed& operator=(packed&& other) noexcept {
    layout_ = std::exchange(other.layout_, {0, 0, 1});
    tensor_scale_ = other.tensor_scale_;
    bytes_ = std::move(other.bytes_);
    return *this;
  }

  index_t rows() const { return layout_.outputs; }
  index_t cols() const { return layout_.depth; }
  const layout_type& layout() const { return layout_; }
  float tensor_scale() const { return tensor_scale_; }
  void set_tensor_scale(float s) {
    tensor_scale_ = s;
    std::memcpy(bytes_.data() + offsetof(packed_header, tensor_scale), &s, sizeof s);
  }

  packed_panel<S, A> panel(index_t p) const { return panel_in(bytes_.data(), layout_, p); }
  /// The weights with options for products: `P.with(bf16_math, on(pool)) * X`.
  template <class... Option>
  auto with(const Option&... option) const& {
    return attach_options(std::type_identity<const packed&>{}, *this, option...);
  }
  template <class... Option>
  auto with(const Option&... option) const&& = delete;  // would dangle: name the weights first
  std::byte* data() { return bytes_.data(); }
  const std::byte* data() const { return bytes_.data(); }
  index_t size_bytes() const { return data() == nullptr ? 0 : layout_.bytes(); }

  /// The arrays of panel p of a packed matrix that begins at `bytes`.
  static packed_panel<S, A> panel_in(const std::byte* bytes, const layout_type& l, index_t p) {
    const index_t entry = p * l.panel_entries();
    packed_panel<S, A> panel{};
    panel.codes = reinterpret_cast<const std::uint8_t*>(bytes) + l.codes_at() + p * l.panel_bytes();
    panel.scales = reinterpret_cast<const typename layout_type::scale_unit*>(bytes + l.scales_at()) + entry;
    if constexpr (S::has_zero_point)
      panel.zeros = reinterpret_cast<const typename layout_type::zero_unit*>(bytes + l.zeros_at()) + entry;
    if constexpr (S::has_offset) panel.offsets = reinterpret_cast<const float*>(bytes + l.offsets_at()) + entry;
    if constexpr (packed_code<typename S::code_format>::is_integer)
      panel.sums = reinterpret_cast<const std::int32_t*>(bytes + l.sums_at()) + entry;
    return panel;
  }

 private:
  using memory = qtensor::detail::line_memory;
  static memory allocate(index_t bytes) {
    memory m(static_cast<std::size_t>(bytes));
    ask_for_large_pages(m.data(), bytes);
    return m;
  }

  layout_type layout_;
  float tensor_scale_ = 1.f;
  memory bytes_;
};

template <class T>
inline constexpr bool is_packed_matrix = false;
template <class S, class A>
inline constexpr bool is_packed_matrix<packed<S, A>> = true;
/// Weights as pack() returns them.
template <class T>
concept packed_matrix = is_packed_matrix<std::remove_cvref_t<T>>;

}  // namespace qtensor::inline QTENSOR_ABI
