// Packing: a quantized matrix to the panels of ops/packed.hpp, whole or one panel at a time.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <numeric>
#include <qtensor/core/executor.hpp>
#include <qtensor/ops/packed.hpp>
#include <qtensor/simd/blocks.hpp>
#include <qtensor/simd/memory.hpp>
#include <qtensor/simd/nibbles.hpp>
#include <qtensor/simd/ops_columns.hpp>
#include <qtensor/simd/quad_sums.hpp>
#include <qtensor/tensor/tensor.hpp>

namespace qtensor::inline QTENSOR_ABI {

/// Which axis of a matrix a product sums over; the other one's elements are outputs. For W in W * x: `cols`.
enum class depth_axis { rows, cols };

namespace ops {

/// Outputs whose codes, or whatever else, are runs of bytes: output o's begins at first + o * stride. Null: they are
/// not.
struct code_lines {
  const std::uint8_t* first = nullptr;
  index_t stride = 0;
};

/// A quantized matrix as weights: element (output, k), wherever it is in memory.
template <tensor_view_type View, depth_axis Depth>
class weights_of {
  using S = typename View::scheme_type;
  using code = typename S::code_format;
  using order = typename View::order_type;
  static_assert(View::rank == 2, "qtensor: products are of matrices; take one with matrix(i, ...).");
  /// Whether a line of memory belongs to one output.
  static constexpr bool lines_are_outputs = std::is_same_v<order, row_major> == (Depth == depth_axis::cols);
  static constexpr std::size_t output_axis = lines_are_outputs ? 0 : 1, k_axis = 1 - output_axis;
  static constexpr bool plain = !S::is_interleaved && std::is_same_v<typename S::layout::order, low_first>;
  static constexpr bool in_blocks = simd::block_decodable<S>, has_blocks = in_blocks && lines_are_outputs;

 public:
  using scheme_type = S;

  /// Whether panels are packed fast: codes of an output, or of some at one k, are a run of memory; those of blocks
  /// along the depth, too.
  static constexpr bool packs_fast = plain || has_blocks;
  /// Whether they are whole bytes, of integers.
  static constexpr bool has_lines = lines_are_outputs && plain && code::bits == 8 && code::is_integer;
  /// Whether an output's packed codes are a run, of whole bytes or two to a byte.
  static constexpr bool has_runs = lines_are_outputs && plain && (code::bits == 8 || code::bits == 4);

  explicit weights_of(const View& view) : view_(view), sizes_(view.storage_extents()) {}
  /// These runs: output o's begins at line(o); a byte xor line_flip is the packed number.
  const std::uint8_t* line(index_t o) const requires has_lines { return packed_codes(o, 0); }
  static constexpr std::uint8_t line_flip = packed_code<code>::of(0);
  code_lines lines() const requires has_lines { return {line(0), pitch()}; }
  /// These runs from k on, an even one, of outputs from o on.
  code_lines runs(index_t o, index_t k) const requires has_runs { return {packed_codes(o, k), pitch()}; }
  /// Stored scales from output o on, where those of an output are a run; or null.
  code_lines scale_runs(index_t o) const requires has_runs {
    const auto& grid = view_.scale_grid();
    if (grid.block[output_axis] != 1 || grid.stride[k_axis] != 1) return {};
    const auto* const scales = reinterpret_cast<const std::uint8_t*>(view_.memory().scales);
    const index_t stride = grid.stride[output_axis] * index_t{sizeof(*view_.memory().scales)};
    return {scales + o * stride, stride};
  }
  const View& view() const { return view_; }
  index_t outputs() const { return sizes_[output_axis]; }
  index_t depth() const { return sizes_[k_axis]; }
  /// The largest number of neighbours on the depth axis that always share scale and zero point.
  index_t group() const {
    const index_t all = std::max(depth(), index_t{1}), scales = std::min(view_.scale_grid().block[k_axis], all);
    const index_t zeros = S::has_zero_point ? std::min(view_.zero_grid().block[k_axis], all) : all;
    return scales == all || zeros == all ? std::min(scales, zeros) : std::gcd(scales, zeros);
  }
  float tensor_scale() const { return view_.tensor_scale(); }

  std::uint32_t scale_code(index_t output, index_t k) const { return view_.storage_scale_code(at(output, k)); }
  /// Stored scales of `count` outputs and their zero points as packed numbers, of the first `groups` of group():
  /// to[g * step + c] for output + c. Where outputs have one each, or one all, without a division for every one of
  /// them.
  template <class Unit>
  void scales(index_t output, index_t count, index_t groups, Unit* to, index_t step) const
      requires(has_blocks || !S::is_interleaved) {
    if constexpr (has_blocks)
      for_each_block(output, count, groups,
                     [&](index_t c, index_t g, const auto& part) { to[g * step + c] = part.scale(); });
    else
      copy_entries(view_.scale_grid(), view_.memory().scales, output, count, groups, to, step,
                   [](auto unit) { return unit; });
  }
  template <class Unit>
  void zero_points(index_t output, index_t count, index_t groups, Unit* to, index_t step) const {
    using zero = typename S::zero_point_format;
    copy_entries(view_.zero_grid(), view_.memory().zero_points, output, count, groups, to, step, [](auto unit) {
      return static_cast<Unit>(static_cast<std::int64_t>(zero::decode(detail::code_of<zero>(unit))) +
                               packed_code<code>::offset);
    });
  }
  /// Offsets, as floats.
  void offsets(index_t output, index_t count, index_t groups, float* to, index_t step) const
      requires(has_blocks&& S::has_offset) {
    using offset_format = typename S::offset_format;
    for_each_block(output, count, groups, [&](index_t c, index_t g, const auto& part) {
      to[g * step + c] = decode<offset_format>(detail::code_of<offset_format>(part.offset()));
    });
  }
  std::int64_t zero_point(index_t output, index_t k) const { return view_.storage_zero_point(at(output, k)); }
  float offset(index_t output, index_t k) const { return view_.storage_offset(at(output, k)); }

  /// Where lines run across outputs: those lines' codes from one on, if they are whole bytes; a byte xor line_flip is
  /// the packed byte. And packed bytes of any codes: to[i * stride + o] for k + i and output + o.
  code_lines lines_across(index_t output, index_t k) const requires(!lines_are_outputs && plain && code::bits == 8) {
    return {packed_codes(k, output), pitch()};
  }
  void read_across(index_t output, index_t count, index_t k, index_t n, std::uint8_t* to, index_t stride) const
      requires(!lines_are_outputs) {
    read_lines(k, n, output, count, to, stride);
  }

  /// Packed bytes, a whole one for each code: to[o * stride + i] for outputs [output, output + count) and
  /// k in [k, k + n).
  void read(index_t output, index_t count, index_t k, index_t n, std::uint8_t* to, index_t stride) const {
    if constexpr (lines_are_outputs) {
      read_lines(output, count, k, n, to, stride);
    } else if constexpr (plain && code::bits == 8) {
      simd::transpose(packed_codes(k, output), pitch(), count, n, to, stride);
      for (index_t o = 0; o < count; ++o) make_packed(to + o * stride, n);
    } else {
      constexpr index_t most_outputs = 128, most_k = 64;
      alignas(64) std::uint8_t part[most_outputs * most_k];
      for (index_t i = 0; i < n; i += most_k)
        for (index_t o = 0; o < count; o += most_outputs) {
          const index_t some_k = std::min(most_k, n - i), some = std::min(most_outputs, count - o);
          read_lines(k + i, some_k, output + o, some, part, some);
          simd::transpose(part, some, some, some_k, to + o * stride + i, stride);
        }
    }
  }

 private:
  static constexpr std::array<index_t, 2> at(index_t output, index_t k) {
    return lines_are_outputs ? std::array<index_t, 2>{output, k} : std::array<index_t, 2>{k, output};
  }
  /// Entries of a grid, a function of each, to to[g * step + c]. Those of an output that lie side by side are turned.
  template <class Grid, class Entry, class Unit, class Of>
  void copy_entries(const Grid& grid, const Entry* entries, index_t output, index_t count, index_t groups, Unit* to,
                    index_t step, const Of& of) const {
    const index_t block = grid.block[output_axis], apart = grid.stride[output_axis], each = group();
    if constexpr (sizeof(Entry) == sizeof(Unit))
      if (block == 1 && grid.stride[k_axis] == 1 && grid.block[k_axis] == each) {
        auto* const units = reinterpret_cast<Entry*>(to);  // the same type, or bytes with another sign
        simd::transpose(entries + output * apart, apart, groups, count, units, step);
        for (index_t g = 0; g < groups; ++g)
          for (index_t c = 0; c < count; ++c) to[g * step + c] = of(units[g * step + c]);
        return;
      }
    for (index_t g = 0; g < groups; ++g, to += step) {
      const Entry* at = entries + g * each / grid.block[k_axis] * grid.stride[k_axis] + output / block * apart;
      if (block == 1 && apart == 1)
        for (index_t c = 0; c < count; ++c) to[c] = of(at[c]);
      else
        for (index_t c = 0, inside = output % block; c < count; at += apart, inside = 0)
          for (index_t end = std::min(count, c + block - inside); c < end; ++c) to[c] = of(*at);
    }
  }
  const std::uint8_t* packed_codes(index_t line, index_t first) const {
    return reinterpret_cast<const std::uint8_t*>(view_.row({line, 0})) + first * code::bits / 8;
  }
  const std::uint8_t* blocks(index_t line) const requires in_blocks { return view_.row({line, 0}); }
  /// Calls visit(c, g, simd::group_in_blocks) for the first `groups` of outputs [output, output + count).
  template <class Visit>
  void for_each_block(index_t output, index_t count, index_t groups, const Visit& visit) const {
    for (index_t c = 0; c < count; ++c)
      for (index_t g = 0; g < groups; ++g) visit(c, g, simd::group_in_blocks<S>(blocks(output + c), g));
  }
  /// Codes [first, first + n) of a line, one per byte: of whole groups together.
  void read_line(index_t line, index_t first, index_t n, std::uint8_t* to) const {
    if constexpr (in_blocks) {
      constexpr index_t each = simd::group_in_blocks<S>::elements;
      for (; first % each == 0 && n >= each; first += each, n -= each, to += each)
        simd::group_in_blocks<S>(blocks(line), first / each).codes(to);
    }
    for (index_t i = 0; i < n; ++i) to[i] = static_cast<std::uint8_t>(view_.storage_code({line, first + i}));
  }
  /// Bytes from one line to the next.
  index_t pitch() const { return reinterpret_cast<const std::uint8_t*>(view_.row({1, 0})) - packed_codes(0, 0); }
  /// Packed bytes of codes [first, first + n) of some lines of memory, `step` apart.
  void read_lines(index_t line, index_t lines, index_t first, index_t n, std::uint8_t* to, index_t step) const {
    constexpr index_t few = 64;
    if (plain && code::bits < 8 && n <= few && step == n && first * code::bits % 8 == 0 && n * code::bits % 8 == 0)
      return read_short_lines<few>(line, lines, first, n, to);
    for (index_t l = 0; l < lines; ++l)
      if (plain && first * code::bits % 8 == 0)
        unpack(packed_codes(line + l, first), n, to + l * step);
      else
        read_line(line + l, first, n, to + l * step);
    if (step == n) return make_packed(to, lines * n);
    for (index_t l = 0; l < lines; ++l) make_packed(to + l * step, n);
  }
  /// The same of few codes each, which are whole bytes: what is one by one is only that these come together.
  template <index_t Few>
  void read_short_lines(index_t line, index_t lines, index_t first, index_t n, std::uint8_t* to) const {
    constexpr index_t most = 64;
    const index_t bytes = n * code::bits / 8;
    alignas(64) std::uint8_t packed[most * Few];
    for (index_t l = 0; l < lines; l += most) {
      const index_t some = std::min(most, lines - l);
      const std::uint8_t* from = packed_codes(line + l, first);
      const auto gather = [&](auto size) {
        for (index_t i = 0; i < some; ++i)
          std::memcpy(packed + i * size, from + i * pitch(), static_cast<std::size_t>(size));
      };
      if (bytes == 8)
        gather(std::integral_constant<index_t, 8>{});
      else if (bytes == 16)
        gather(std::integral_constant<index_t, 16>{});
      else
        gather(bytes);
      unpack(packed, some * n, to + l * n);
      make_packed(to + l * n, some * n);
    }
  }
  static void unpack(const std::uint8_t* from, index_t n, std::uint8_t* to) {
    if constexpr (code::bits == 8)
      simd::copy_bytes(from, n, to);
    else if constexpr (plain && simd::packs_codes<code::bits>)
      simd::unpack_codes<simd::best_arch, code::bits>(from, n, to);
    else if constexpr (plain)
      for (index_t i = 0; i < n; ++i)
        to[i] = static_cast<std::uint8_t>(qtensor::detail::load_bits<code::bits>(from, i * code::bits));
  }
  /// Codes to what stands for them.
  static void make_packed(std::uint8_t* codes, index_t n) {
    if constexpr (packed_code<code>::is_integer && code::bits > 4 && code::bits < 8) {
      for (index_t i = 0; i < n; ++i) codes[i] = packed_code<code>::of(codes[i]);
    } else if constexpr (line_flip != 0) {
      simd::flip_bits<simd::best_arch>(codes, n, line_flip);
    }
  }

  View view_;
  typename View::index_array sizes_;
};

/// A granularity of a matrix as one of its transpose.
template <class G>
struct turned_granularity {
  using type = block<dynamic, dynamic>;
};
template <>
struct turned_granularity<per_tensor> {
  using type = per_tensor;
};
template <index_t... Axis>
struct turned_granularity<per_axes<Axis...>> {
  using type = per_axes<1 - qtensor::detail::from_front(Axis, 2)...>;
};
template <index_t Axis>
struct turned_granularity<per_channel<Axis>> {
  using type = per_channel<1 - qtensor::detail::from_front(Axis, 2)>;
};
template <index_t N, index_t Axis>
struct turned_granularity<group<N, Axis>> {
  using type = group<N, qtensor::detail::from_front(Axis, 2) == 0 ? last_axis : 0>;
};
template <index_t Rows, index_t Cols>
struct turned_granularity<block<Rows, Cols>> {
  using type = block<Cols, Rows>;
};
template <class G>
using turned_granularity_t = typename turned_granularity<G>::type;

/// The scheme of what is packed, a matrix of outputs x depth.
template <class S, depth_axis Depth, class Zero = typename S::template policy_for<slot::zero_point>>
struct packed_scheme {
  using type = stored<with<S, static_only, turned_granularity_t<typename S::granularity_type>>>;
};
template <class S, class F, granularity G>
struct packed_scheme<S, depth_axis::rows, zero_point<F, G>> {
  using type = stored<
      with<S, static_only, turned_granularity_t<typename S::granularity_type>, zero_point<F, turned_granularity_t<G>>>>;
};
template <class S, class Zero>
struct packed_scheme<S, depth_axis::cols, Zero> {
  using type = stored<S>;
};

/// The largest magnitude of a matrix's zero points as packed numbers, of a matrix read by weights_of and its like, or
/// at most that. Throws where one leaves 32 bits.
template <class Matrix>
std::int64_t zero_reach(const Matrix& m) {
  using S = typename Matrix::scheme_type;
  constexpr std::int64_t offset = packed_code<typename S::code_format>::offset, most = (std::int64_t{1} << 31) - 1;
  std::int64_t reach = 128;
  if constexpr (!packed_zero_of<S>::fits_a_byte)
    for (index_t o = 0; o < m.outputs(); ++o)
      for (index_t k = 0; k < m.depth(); k += m.group()) {
        const std::int64_t zero = m.zero_point(o, k), packed = zero + offset;
        require(packed >= -most && packed <= most, "a zero point is ", zero,
                "; products take zero points of these codes from ", std::max(-most - offset, -most - 1), " to ",
                std::min(most - offset, most), ".");
        reach = std::max(reach, packed < 0 ? -packed : packed);
      }
  return reach;
}

/// Whether packed weights stay in the second cache between two products, and need not be asked for.
template <class Layout>
bool weights_are_near(const Layout& layout) {
  constexpr index_t second_cache = index_t{1} << 20;
  return layout.panels() * layout.panel_bytes() <= second_cache;
}

/// Fills the panels of a packed_layout from weights.
template <class Weights, simd::usable_arch A>
class panel_packer {
  using S = typename Weights::scheme_type;
  using layout = packed_layout<S, A>;
  using code = packed_code<typename S::code_format>;
  static constexpr index_t width = layout::width, most_depth = 256, per_byte = code::is_nibble ? 2 : 1;

 public:
  explicit panel_packer(const Weights& weights)
      : weights_(weights), layout_{weights.outputs(), weights.depth(), std::max(weights.group(), index_t{1})} {}
  const layout& sizes() const { return layout_; }
  const Weights& weights() const { return weights_; }

  /// From now on panels are packed without requests for the next one's memory: who multiplies asks for it.
  void leave_requests() { asks_ = false; }
  /// What lies in memory behind a panel's codes: those of the next one, if there is one, it lies there without gaps,
  /// and is far enough to be asked for; or null.
  const std::uint8_t* behind(index_t panel) const {
    if constexpr (requires { weights_.runs(panel, panel); }) {
      const index_t output = panel * width;
      if (output + 2 * width > layout_.outputs || weights_are_near(layout_)) return nullptr;
      const code_lines from = weights_.runs(output, 0);
      return from.stride == layout_.depth / per_byte ? from.first + width * from.stride : nullptr;
    }
    return nullptr;
  }

  /// Panel p of the matrix to panel `to_panel` of the memory at `bytes`, which `room` describes.
  void fill(index_t p, std::byte* bytes, const layout& room, index_t to_panel) const {
    fill_codes(p, bytes, room, to_panel);
    fill_sums(bytes, room, to_panel);
    fill_parameters(p, bytes, room, to_panel);
  }
  /// Of these, the codes.
  void fill_codes(index_t p, std::byte* bytes, const layout& room, index_t to_panel) const {
    const index_t first = p * width, count = std::min(width, layout_.outputs - first);
    auto* codes = const_cast<std::uint8_t*>(packed<S, A>::panel_in(bytes, room, to_panel).codes);
    // Runs of k that begin a quad: of a group, of several with gaps behind them, or of all where every group but the
    // last is whole quads.
    const index_t group = layout_.group, run = group % 4 == 0 ? std::max(layout_.depth, index_t{1}) : group;
    const index_t together = run < most_depth / 2 ? most_depth / round_up(run, 4) : 1;
    for (index_t k = 0; k < layout_.depth; k += together * run)
      for (index_t done = 0, n = std::min(together * run, layout_.depth - k); done < n; done += most_depth) {
        const index_t some = std::min(most_depth, n - done);
        codes = fill_runs(first, count, k + done, some, std::min(run, some), codes);
      }
  }
  /// The sums of codes that are there.
  void fill_sums(std::byte* bytes, const layout& room, index_t to_panel) const {
    if constexpr (code::is_integer) {
      const packed_panel<S, A> out = packed<S, A>::panel_in(bytes, room, to_panel);
      const index_t step = layout_.group_quads();
      for (index_t g = 0, left = layout_.quads(); g < layout_.groups(); ++g, left -= step) {
        const std::uint8_t* of = out.codes + g * step * layout::quad_bytes;
        auto* sums = const_cast<std::int32_t*>(out.sums) + g * width;
        if constexpr (code::is_nibble)
          simd::sum_nibble_quads<A>(of, layout::quad_bytes, std::min(left, step), sums);
        else
          simd::sum_byte_quads<A>(of, layout::quad_bytes, std::min(left, step), sums);
      }
    }
  }
  /// All but codes and sums.
  void fill_parameters(index_t p, std::byte* bytes, const layout& room, index_t to_panel) const {
    const index_t first = p * width, count = std::min(width, layout_.outputs - first);
    const packed_panel<S, A> out = packed<S, A>::panel_in(bytes, room, to_panel);
    fill_scales(first, count, const_cast<typename layout::scale_unit*>(out.scales));
    if constexpr (S::has_zero_point) fill_zeros(first, count, const_cast<typename layout::zero_unit*>(out.zeros));
    if constexpr (S::has_offset) fill_offsets(first, count, const_cast<float*>(out.offsets));
  }

 private:
  // The quads of n codes in runs of so many, each of which begins a quad. Returns where the next ones go.
  std::uint8_t* fill_runs(index_t output, index_t count, index_t k, index_t n, index_t run, std::uint8_t* to) const {
    const index_t padded = n / run * round_up(run, 4) + round_up(n % run, 4);
    if constexpr (requires(std::uint8_t * p) { weights_.read_across(output, count, k, n, p, width); })
      if (count == width && padded < n + 4) {
        fill_across(output, k, n, to);
        return to + padded / 4 * layout::quad_bytes;
      }
    if constexpr (requires { weights_.runs(output, k); })
      if (count == width && padded == n && k % 2 == 0) {
        const std::uint8_t* to_come = asks_ ? behind(output / width) : nullptr;
        if (to_come != nullptr) to_come += k / per_byte * width;
        if (turn_runs(weights_.runs(output, k), n, to_come, to)) return to + n / 4 * layout::quad_bytes;
      }
    alignas(64) std::uint8_t part[width * most_depth];
    if (count < width || n < padded)
      for (index_t c = 0; c < width; ++c) std::memset(part + c * most_depth, 0, static_cast<std::size_t>(padded));
    if constexpr (code::is_nibble)
      read_pairs(output, count, k, n, part);
    else
      weights_.read(output, count, k, n, part, most_depth);
    constexpr index_t words = code::is_nibble ? width / 2 : width;
    if (run < n && run % 4 != 0)
      for (index_t c = 0; c < words; ++c) part_runs(n, run, part + c * most_depth);
    turn_words(part, most_depth, words, padded, to, words);
    return to + padded / 4 * layout::quad_bytes;
  }
  // The quads of n codes of a whole panel whose outputs lie side by side in memory.
  void fill_across(index_t output, index_t k, index_t n, std::uint8_t* to) const {
    index_t done = 0;
    if constexpr (requires { weights_.lines_across(output, k); })
      for (const code_lines from = weights_.lines_across(output, k); done + 4 <= n; done += 4, to += layout::quad_bytes)
        join_rows(from.first + done * from.stride, from.stride, Weights::line_flip, to);
    if (done == n) return;
    alignas(64) std::uint8_t part[width * most_depth];
    weights_.read_across(output, width, k + done, n - done, part, width);
    std::memset(part + (n - done) * width, 0, static_cast<std::size_t>(width * (round_up(n, 4) - n)));
    for (const std::uint8_t* from = part; done < n; done += 4, from += 4 * width, to += layout::quad_bytes)
      join_rows(from, width, 0, to);
  }
  // One quad from four rows of codes, one per byte.
  static QTENSOR_INLINE void join_rows(const std::uint8_t* from, index_t apart, std::uint8_t flip, std::uint8_t* to) {
    constexpr index_t words = layout::quad_bytes / 4;
    for (index_t c = 0; c < words; c += simd::lanes<A>) {
      simd::bytes<A> quad = simd::load_interleaved<A>(from + c, apart);
      if constexpr (code::is_nibble) {
        const auto upper = simd::bits_as<std::uint32_t>(simd::load_interleaved<A>(from + words + c, apart));
        quad = quad | simd::bits_as<std::uint8_t>(upper << 4);
      }
      simd::store(to + 4 * c, quad ^ simd::bytes<A>(flip));
    }
  }
  // Moves runs of codes apart, to where quads begin, with zeros between.
  static void part_runs(index_t n, index_t run, std::uint8_t* codes) {
    std::uint8_t joined[most_depth + 4] = {};
    std::memcpy(joined, codes, static_cast<std::size_t>(n));
    const index_t padded = round_up(run, 4), runs = divide_up(n, run);
    if (run < 4) {
      const std::uint32_t all = low_bits(static_cast<int>(8 * run));
      for (index_t r = 0; r < runs; ++r) {
        std::uint32_t quad;
        std::memcpy(&quad, joined + r * run, 4);
        quad &= all;
        std::memcpy(codes + 4 * r, &quad, 4);
      }
      return;
    }
    std::memset(codes, 0, static_cast<std::size_t>(runs * padded));
    for (index_t r = 0; r < runs; ++r)
      std::memcpy(codes + r * padded, joined + r * run, static_cast<std::size_t>(std::min(run, n - r * run)));
  }
  static constexpr auto pair_flip = static_cast<std::uint8_t>(packed_code<typename S::code_format>::of(0) * 17);
  // The quads of n codes of a whole panel's outputs straight from where they are packed, if that is words on words. If
  // memory is far, a line of some outputs at a time, each with requests for as much of what begins at `to_come`.
  static bool turn_runs(const code_lines& from, index_t n, const std::uint8_t* to_come, std::uint8_t* to) {
    constexpr index_t word = 4, line = simd::cache_line, words = layout::quad_bytes / word;
    if (from.stride % word != 0 || reinterpret_cast<std::uintptr_t>(from.first) % word != 0) return false;
    if (code::is_nibble && n % simd::pair_columns_step != 0) return false;
    const index_t at_once = to_come == nullptr ? n : line * per_byte;
    for (index_t i = 0; i < n; i += at_once)
      for (index_t c = 0; c < words; c += simd::lanes<A>) {
        const index_t some = std::min(at_once, n - i), bytes = some * simd::lanes<A>;
        if (to_come != nullptr) {
          simd::fetch_run(to_come, bytes, simd::fetch::near);
          to_come += bytes;
        }
        const std::uint8_t* first = from.first + i / per_byte + c * from.stride;
        std::uint8_t* const turned = to + (i / 4 * words + c) * word;
        if constexpr (code::is_nibble)
          simd::join_pair_columns<A, most_depth>(first, first + words * from.stride, from.stride, some, pair_flip,
                                                 turned, layout::quad_bytes);
        else
          turn_words(first, from.stride, simd::lanes<A>, some, turned, words);
      }
    if constexpr (!code::is_nibble && code::of(0) != 0) simd::flip_bits<A>(to, n * width, code::of(0));
    return true;
  }
  // Words of four codes each, of some rows, as quads. (They move as floats do: nothing is computed with them.)
  static void turn_words(const std::uint8_t* from, index_t stride, index_t rows, index_t n, std::uint8_t* to,
                         index_t quad_words) {
    simd::transpose<A>(reinterpret_cast<const float*>(from), stride / 4, rows, n / 4, reinterpret_cast<float*>(to),
                       quad_words);
  }
  // Rows of bytes that hold the codes of two outputs each, where those of missing ones are 0.
  void read_pairs(index_t output, index_t count, index_t k, index_t n, std::uint8_t* part) const {
    constexpr index_t half = width / 2;
    if constexpr (requires { weights_.runs(output, k); })
      if (count == width && k % 2 == 0) {
        const code_lines from = weights_.runs(output, k);
        for (index_t c = 0; c < half; ++c)
          simd::join_pairs<A>(from.first + c * from.stride, from.first + (c + half) * from.stride, n, pair_flip,
                              part + c * most_depth);
        return;
      }
    weights_.read(output, count, k, n, part, most_depth);
    for (index_t c = 0; c < half && half + c < count; ++c)
      simd::join_nibbles<A>(part + c * most_depth, part + (half + c) * most_depth, n);
  }
  /// Parameters of outputs [output, output + count), one by one: of(output, k) of each group.
  template <class Unit, class Of>
  void fill_each(index_t output, index_t count, Unit* to, const Of& of) const {
    for (index_t g = 0; g < layout_.groups(); ++g, to += width)
      for (index_t c = 0; c < count; ++c) to[c] = static_cast<Unit>(of(output + c, g * layout_.group));
  }
  /// Entries of outputs that are not there.
  template <class Unit>
  void fill_missing(index_t count, Unit unit, Unit* to) const {
    if (count < width)
      for (index_t g = 0; g < layout_.groups(); ++g, to += width) std::fill(to + count, to + width, unit);
  }
  void fill_scales(index_t output, index_t count, typename layout::scale_unit* to) const {
    using scale_format = typename S::scale_format;
    if constexpr (requires { weights_.scales(output, count, layout_.groups(), to, width); })
      weights_.scales(output, count, layout_.groups(), to, width);
    else
      fill_each(output, count, to,
                [&](index_t o, index_t k) { return detail::unit_from<scale_format>(weights_.scale_code(o, k)); });
    fill_missing(count, detail::unit_from<scale_format>(detail::one_code<scale_format>()), to);
  }
  void fill_zeros(index_t output, index_t count, typename layout::zero_unit* to) const {
    if constexpr (requires { weights_.zero_points(output, count, layout_.groups(), to, width); })
      weights_.zero_points(output, count, layout_.groups(), to, width);
    else
      fill_each(output, count, to, [&](index_t o, index_t k) { return weights_.zero_point(o, k) + code::offset; });
    fill_missing(count, typename layout::zero_unit{0}, to);
  }
  void fill_offsets(index_t output, index_t count, float* to) const {
    if constexpr (requires { weights_.offsets(output, count, layout_.groups(), to, width); })
      weights_.offsets(output, count, layout_.groups(), to, width);
    else
      fill_each(output, count, to, [&](index_t o, index_t k) { return weights_.offset(o, k); });
    fill_missing(count, 0.f, to);
  }

  Weights weights_;
  layout layout_;
  bool asks_ = true;
};

}  // namespace ops

/// W packed for products W * x: `auto P = pack(W); y.noalias() = P * x;`. Rows of W are outputs; with
/// depth_axis::rows its columns are, and P is used like W's transpose. P times x is W times
/// x, bit for bit, and faster from the second product on; P owns its memory and does not need W any longer. Codes of at
/// most 8 bits. Takes about the memory of W: codes at 4 or 8 bits, scales for each row even where W shares them. Throws
/// std::bad_alloc, and where a zero point leaves 32 bits as a packed number (packed_code). `pack(W, on(executor))` cuts
/// the outputs.
template <simd::usable_arch A = simd::best_arch, depth_axis Depth = depth_axis::cols, quantized W,
          qtensor::detail::execution_option... On>
auto pack(const W& w, const On&... on) {
  const auto view = as_view(w);
  using weights = ops::weights_of<std::remove_const_t<decltype(view)>, Depth>;
  const ops::panel_packer<weights, A> packer{weights(view)};
  using scheme_type = typename ops::packed_scheme<typename weights::scheme_type, Depth>::type;
  const auto& sizes = packer.sizes();
  ops::zero_reach(packer.weights());  // throws where a zero point is none that products take
  packed<scheme_type, A> out(packed_layout<scheme_type, A>{sizes.outputs, sizes.depth, sizes.group});
  out.set_tensor_scale(weights(view).tensor_scale());
  const auto by = qtensor::detail::execution_among(on...).by;
  using layout = packed_layout<scheme_type, A>;
  qtensor::detail::in_ranges(by, sizes.panels(), 1, layout::width * sizes.depth, [&](index_t first, index_t panels) {
    for (index_t p = first; p < first + panels; ++p) packer.fill(p, out.data(), sizes, p);
  });
  return out;
}

}  // namespace qtensor::inline QTENSOR_ABI
