// Float products with packed weights: panels are dequantized block by block into the first cache and multiplied there.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <qtensor/ops/matmul.hpp>
#include <qtensor/ops/product.hpp>
#include <qtensor/ops/rows.hpp>
#include <qtensor/simd/decode_quads.hpp>
#include <qtensor/simd/statistics.hpp>

namespace qtensor::inline QTENSOR_ABI {

/// What a float product does with its operands before it multiplies them: nothing, ...
struct exact_operands {
  static constexpr bool rounds_rows = false, rounds_weights = false;
  template <class A>
  static QTENSOR_INLINE simd::floats<A> weight(const simd::floats<A>& w) {
    return w;
  }
};
/// ... or rounds them to F (f16, bf16; to nearest, ties to even), ...
template <format F>
struct rounded_operands {
  static constexpr bool rounds_rows = true, rounds_weights = true;
  static void apply(float* x, index_t n) {
    constexpr index_t most = 256;
    storage_t<F> narrow[most];
    for (index_t i = 0; i < n; i += most) {
      const index_t count = std::min(most, n - i);
      simd::narrow_floats<F>(x + i, count, narrow);
      simd::widen_floats<F>(narrow, count, x + i);
    }
  }
  /// What a batch of weights is multiplied as.
  template <class A>
  static QTENSOR_INLINE simd::floats<A> weight(const simd::floats<A>& w) {
    if constexpr (std::same_as<F, f16>)
      return simd::rounded_to_f16(w);
    else
      return simd::rounded_to_bf16(w);
  }
};

/// ... or only those that are no weights.
template <format F>
struct rounded_rows : exact_operands {
  static constexpr bool rounds_rows = true;
  static void apply(float* x, index_t n) { rounded_operands<F>::apply(x, n); }
};

namespace ops {

/// One packed panel, decoded where it is asked for. Quads are counted through all groups.
template <class Panels>
class panel_decoder {
  using S = typename Panels::scheme_type;
  using A = typename Panels::arch;
  using layout_type = typename Panels::layout_type;

 public:
  using decoder_type = simd::quad_decoder<S, packed_code<typename S::code_format>::offset, A>;
  using parameters = simd::quad_parameters<S, A>;
  static constexpr index_t width = layout_type::width;
  static_assert(width == decoder_type::width && layout_type::quad_bytes == decoder_type::quad_bytes);

  explicit panel_decoder(const layout_type& layout, float tensor_scale)
      : layout_(layout), tensor_scale_(tensor_scale) {}
  void set(const packed_panel<S, A>& panel) { panel_ = panel, group_ = -1; }

  /// The k of quad q's first code.
  index_t k_of(index_t q) const {
    const index_t each = layout_.group_quads(), g = q / each;
    return std::min(g * layout_.group + (q - g * each) * 4, layout_.depth);
  }
  /// Calls part(quad, codes, depth, parameters) for the groups, or parts of them, among quads [first, end).
  template <class Part>
  void for_groups(index_t first, index_t end, const Part& part) {
    const index_t each = layout_.group_quads();
    for (index_t q = first; q < end;) {
      const index_t g = q / each, stop = std::min((g + 1) * each, end), k = k_of(q);
      const index_t group_end = std::min((g + 1) * layout_.group, layout_.depth);
      load_parameters(g);
      parameters_.load_steps(panel_.scales + g * width);
      part(q, panel_.codes + q * layout_type::quad_bytes, std::min((stop - q) * 4, group_end - k), parameters_);
      q = stop;
    }
  }
  const decoder_type& decoder() const { return decoder_; }

 private:
  void load_parameters(index_t g) {
    if (g == group_) return;
    const index_t at = g * width;
    parameters_.load(panel_.scales + at, S::has_zero_point ? panel_.zeros + at : nullptr,
                     S::has_offset ? panel_.offsets + at : nullptr, tensor_scale_);
    group_ = g;
  }

  layout_type layout_;
  float tensor_scale_;
  packed_panel<S, A> panel_{};
  decoder_type decoder_;
  parameters parameters_;
  index_t group_ = -1;
};

/// `Count` objects that make() returns.
template <index_t Count, class Make>
auto array_of(const Make& make) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::array<decltype(make()), sizeof...(I)>{((void)I, make())...};
  }
  (std::make_index_sequence<static_cast<std::size_t>(Count)>{});
}

/// Readers and decoders of some packed panels at a time.
template <class Panels, index_t Count>
class panel_set {
 public:
  template <class W>
  explicit panel_set(const W& w)
      : readers_(array_of<Count>([&] { return panels_of<typename Panels::arch>(w); })),
        decoders_(
            array_of<Count>([&] { return panel_decoder<Panels>(readers_[0].layout(), readers_[0].tensor_scale()); })) {}
  void go_to(index_t i, index_t panel) { part(i).set(readers_[static_cast<std::size_t>(i)].panel_without_sums(panel)); }
  panel_decoder<Panels>& part(index_t i) { return decoders_[static_cast<std::size_t>(i)]; }

 private:
  static constexpr auto count = static_cast<std::size_t>(Count);
  std::array<Panels, count> readers_;
  std::array<panel_decoder<Panels>, count> decoders_;
};

/// The packed panels that make up a panel of the float tiles.
template <class Panels>
class wide_panel {
  using A = typename Panels::arch;

 public:
  static constexpr index_t narrow = Panels::layout_type::width, width = simd::float_tile<A>::panel;
  static constexpr index_t parts = width / narrow;
  static_assert(width % narrow == 0);

  template <class W>
  explicit wide_panel(const W& w) : set_(w) {}

  /// Goes to wide panel p of a matrix of `outputs`.
  void go_to(index_t p, index_t outputs) {
    cols_ = std::min(width, outputs - p * width);
    used_ = divide_up(cols_, narrow);
    for (index_t i = 0; i < used_; ++i) set_.go_to(i, p * parts + i);
  }
  index_t cols() const { return cols_; }
  index_t vectors() const { return used_ * narrow / simd::lanes<A>; }

  /// Calls part(decoder, first column, quad, codes, depth, parameters) for all groups among quads [first, end), or
  /// parts of them, those of one packed panel by ascending k. Codes are asked for meanwhile as `asks` says: `ahead`
  /// bytes behind. Returns how many k there are.
  template <class Part>
  index_t for_groups(index_t first, index_t end, const simd::traffic& asks, const Part& part) {
    constexpr index_t step = 16, quad_bytes = Panels::layout_type::quad_bytes;  // k between requests
    for (index_t i = 0; i < used_; ++i) {
      auto& each = set_.part(i);
      each.for_groups(first, end, [&](index_t q, const std::uint8_t* codes, index_t depth, const auto& parameters) {
        const index_t at_once = asks.fetches == simd::fetch::nothing ? depth : step;
        for (index_t k = 0; k < depth; k += at_once, codes += at_once / 4 * quad_bytes) {
          const index_t n = std::min(at_once, depth - k);
          simd::fetch_run(codes + asks.ahead, divide_up(n, 4) * quad_bytes, asks.fetches);
          part(each.decoder(), i * narrow, q + k / 4, codes, n, parameters);
        }
      });
    }
    return set_.part(0).k_of(end) - set_.part(0).k_of(first);
  }
  /// Dequantized weights of quads [first, end): out[k * width + c]. Returns how many k that are.
  index_t floats_of(index_t first, index_t end, const simd::traffic& asks, float* out) {
    const index_t from = set_.part(0).k_of(first);
    return for_groups(first, end, asks,
                      [&](const auto& decoder, index_t col, index_t q, const std::uint8_t* codes, index_t depth,
                          const auto& parameters) {
                        decoder.floats_of(codes, depth, parameters, out + (set_.part(0).k_of(q) - from) * width + col,
                                          width);
                      });
  }

 private:
  panel_set<Panels, parts> set_;
  index_t cols_ = 0, used_ = 0;
};

/// Whether float_rows finds rows [first, first + count) where they are, and needs no room.
template <class Operands, tile_source X>
bool rows_stay_in_place(const X& x, index_t first, index_t count) {
  return !Operands::rounds_rows && floats_of_row(x, first) != nullptr && (count == 1 || row_step(x).has_value());
}

/// Rows of a source as floats for the whole depth: where they are, or copied into `room`.
template <class Operands, tile_source X>
simd::broadcast_block float_rows(const X& x, index_t first, index_t count, float* room) {
  const index_t depth = x.cols();
  if (rows_stay_in_place<Operands>(x, first, count))
    return {floats_of_row(x, first), count == 1 ? depth : *row_step(x), 1};
  constexpr index_t rows_each = X::reads_rows ? 16 : 64;  // rows that lie side by side are read in wide parts
  for (index_t r = 0; r < count; r += rows_each)
    x.read(first + r, std::min(rows_each, count - r), 0, depth, room + r * depth, depth);
  if constexpr (Operands::rounds_rows) Operands::apply(room, count * depth);
  return {room, depth, 1};
}

/// Rows that are multiplied with a decoded block before the next one is, a multiple of `step`: their operands take 4 MB
/// or less, but for 48.
template <simd::usable_arch A>
index_t float_row_block(index_t rows, index_t row_bytes, index_t step = simd::float_tile<A>::max_rows) {
  constexpr index_t least = 48, most = 480, bytes = index_t{4} << 20;
  const index_t fit = std::clamp(bytes / std::max(row_bytes, index_t{1}), least, most);
  return round_up(divide_up(rows, divide_up(rows, fit)), step);
}

/// Rows [first, first + rows) of x times wide panels [panel, panel + panels).
template <class Operands, class W, tile_source X, class Sink, class Panels>
void multiply_blocks(wide_panel<Panels>& weights, const typename Panels::layout_type& layout, index_t panel,
                     index_t panels, const X& x, index_t first, index_t rows, const Sink& sink) {
  using A = typename Panels::arch;
  using tile = simd::float_tile<A>;
  constexpr index_t width = tile::panel;
  const index_t depth = layout.depth, quads = layout.quads(), row_block = float_row_block<A>(rows, 4 * depth);
  // Many rows pay for a block in the second cache, which lets their sums rest; few rows want it in the first.
  const index_t quads_each = std::min(rows <= 4 * tile::max_rows ? index_t{16} : index_t{128}, quads);
  const bool in_place = rows_stay_in_place<Operands>(x, first, rows);
  // Decoded and multiplied in turn, codes from memory would be waited for: those of the next block are asked for.
  simd::traffic asks{asks_for_codes<Panels>(layout)};
  product_space space(row_block * width + 4 * quads_each * width + (in_place ? 0 : row_block * depth));
  float* const sums = space.data();
  float* const block = sums + row_block * width;
  float* const room = block + 4 * quads_each * width;

  for (index_t m = 0; m < rows; m += row_block) {
    const index_t some = std::min(row_block, rows - m);
    const simd::broadcast_block values = float_rows<Operands>(x, first + m, some, room);
    for (index_t p = panel; p < panel + panels; ++p) {
      weights.go_to(p, layout.outputs);
      for (index_t q = 0, k = 0; q < quads; q += quads_each) {
        const index_t end = std::min(q + quads_each, quads);
        asks.ahead = (end < quads ? quads_each : wide_panel<Panels>::parts * quads - q) * layout.quad_bytes;
        const index_t block_depth = weights.floats_of(q, end, asks, block);
        if constexpr (Operands::rounds_weights) Operands::apply(block, block_depth * width);
        for (index_t r = 0, done = 0; r < some; r += done) {
          done = tile::rows(some - r);
          simd::fma_tile<A>(block, width, weights.vectors(),
                            {values.data + r * values.row_stride + k, values.row_stride, 1}, done, block_depth,
                            sums + r * width, q == 0);
          if (end == quads) sink(product_tile{first + m + r, p * width, done, weights.cols(), sums + r * width, width});
        }
        k += block_depth;
      }
    }
  }
}

/// Few rows, up to `at_once`, are multiplied while codes are decoded, without a block between.
template <class Panels>
struct direct_rows {
  using A = typename Panels::arch;
  using decoder = typename panel_decoder<Panels>::decoder_type;
  static constexpr index_t at_once = 4;
  static constexpr bool takes_zeros = [] {  // others may lie too far away, see quad_parameters
    using zero = typename Panels::scheme_type::zero_point_format;
    if constexpr (Panels::scheme_type::has_zero_point)
      return zero::bits <= 24;
    else
      return true;
  }();
  /// Panels side by side, each a stream of memory: sums enough to hide the latency of fma, and no more than fit.
  static constexpr index_t streams(index_t rows) {
    const index_t sums = simd::lanes<A> == 16 || simd::features::neon ? (rows == 1 ? 8 : 16) : rows == 1 ? 4 : 8;
    return std::max(sums / rows / decoder::vectors, index_t{1});
  }
};

/// Neighbouring groups of one packed panel, as few rows read them: scales are floats.
template <class Panels>
struct group_run {
  using S = typename Panels::scheme_type;
  using layout = typename Panels::layout_type;
  static constexpr index_t width = layout::width;
  const std::uint8_t* codes;
  const float* scales;
  const typename layout::zero_unit* zeros;
  const float* offsets;
  bool fits_dots;       ///< values of its scales may be dot products
  index_t bytes_ahead;  ///< of panels that are packed on the way

  /// Asks for a quad's bytes so far behind the codes, or as far as panels want that are packed on the way.
  template <index_t Ahead>
  QTENSOR_INLINE void ask() const {
    const std::uint8_t* const next = codes + (packs_panels<Panels> ? bytes_ahead : Ahead);
    simd::detail::repeat<divide_up(layout::quad_bytes, index_t{64})>(
        [&](auto l) QTENSOR_INLINE_LAMBDA { simd::prefetch(next + 64 * l); });
  }

  void to_next_group() {
    scales += width;
    if constexpr (S::has_zero_point) zeros += width;
    if constexpr (S::has_offset) offsets += width;
  }
};

/// A reader of one packed panel at a time for few rows.
template <class Panels>
class direct_panel {
  using S = typename Panels::scheme_type;
  using A = typename Panels::arch;
  using scale_format = typename S::scale_format;
  using decoder = typename panel_decoder<Panels>::decoder_type;
  static constexpr index_t width = Panels::layout_type::width;

 public:
  /// Groups whose scales are decoded at once.
  static constexpr index_t most_groups = 16;

  template <class W>
  explicit direct_panel(const W& w) : reader_(panels_of<A>(w)) {
    if constexpr (packs_panels<Panels>) reader_.leave_requests();
  }
  /// Goes to a panel; the next one will be so many behind it.
  void go_to(index_t panel, index_t step) {
    panel_ = reader_.panel_without_sums(panel);
    if constexpr (packs_panels<Panels>) bytes_ahead_ = reader_.bytes_ahead(panel + step - 1);
  }
  float tensor_scale() const { return reader_.tensor_scale(); }

  /// Groups [first, first + count), count <= most_groups; valid until the next call. Whether their scales fit dots is
  /// found out where somebody asks.
  group_run<Panels> groups(index_t first, index_t count, index_t group_quads, bool asks_for_dots) {
    const index_t at = first * width;
    group_run<Panels> run{panel_.codes + first * group_quads * Panels::layout_type::quad_bytes,
                          scales_,
                          nullptr,
                          nullptr,
                          asks_for_dots,
                          bytes_ahead_};
    // Scales come in pieces, which the hardware does not see coming.
    const index_t entries = count * width, bytes = entries * index_t{sizeof(*panel_.scales)};
    for (index_t i = 0; i < bytes; i += 64)
      simd::prefetch(reinterpret_cast<const char*>(panel_.scales + at + entries) + i);
    if constexpr (std::same_as<scale_format, f32>)
      run.scales = panel_.scales + at;
    else
      simd::decode_scales<scale_format, A>(panel_.scales + at, entries, scales_);
    if constexpr (S::has_zero_point) run.zeros = panel_.zeros + at;
    if constexpr (S::has_offset) run.offsets = panel_.offsets + at;
    if constexpr (decoder::has_dots && std::same_as<scale_format, e8m0>)  // other scales are large enough
      if (asks_for_dots)
        run.fits_dots = !simd::has_magnitudes_below<A>(scales_, entries, decoder::least_scale_for_dots);
    return run;
  }

 private:
  Panels reader_;
  packed_panel<S, A> panel_{};
  index_t bytes_ahead_ = 0;
  alignas(64) float scales_[std::same_as<scale_format, f32> ? 1 : most_groups * width];
};

/// Chains of fma while codes are decoded: sums[(r * Streams + s) * width + c] continued over groups of `group` codes,
/// `depth` in all, of each of the streams, which share their rows of x.
template <class Operands>
struct direct_chains {
  /// Whether rows that are not there are worth loops of their own: a row costs half as much as decoding.
  static constexpr bool minds_missing_rows = true;
  /// The depth of a run: so little that codes asked for ahead stay in the first cache beside its scales.
  template <index_t Rows>
  static constexpr index_t depth_at_once = 128;

  /// Values by dots are used for one row of numbers of at least this magnitude, or 0: then every term is a multiple of
  /// 2^-149 (a number's last digit 2^-83 or more, a value's 2^-62), no sum but 0 rounds to a zero, none is -0, and the
  /// sign of a weight that is 0 changes nothing.
  static constexpr float least_for_dots = 0x1p-60f;
  template <index_t Rows, class Decoder>
  static constexpr bool takes_dots = Rows == 1 && Decoder::has_dots && !Operands::rounds_weights;

  template <index_t Rows, index_t Streams, simd::quad_values By, class Decoder, class Run>
  [[gnu::noinline]] static void run(const Decoder& decoder, const Run (&streams)[Streams], float tensor_scale,
                                    const float* const (&rows)[Rows], index_t group, index_t depth, float* sums) {
    using A = typename Decoder::arch;
    constexpr index_t step = simd::lanes<A>, vectors = Decoder::vectors, width = Decoder::width;
    constexpr index_t ahead = Decoder::quad_bytes > 2 * width ? 4096 : 2048;  // bytes, of codes of a byte twice as many
    simd::floats<A> sum[Rows][Streams][vectors];
    Run at[Streams];
    const float* x[Rows];
    simd::detail::repeat<Rows>([&](auto r) QTENSOR_INLINE_LAMBDA { x[r] = rows[r]; });
    const auto each = [](const auto& f) QTENSOR_INLINE_LAMBDA {
      simd::detail::repeat<Streams>([&](auto s) QTENSOR_INLINE_LAMBDA {
        simd::detail::repeat<vectors>([&](auto v) QTENSOR_INLINE_LAMBDA { f(s, v); });
      });
    };
    simd::detail::repeat<Streams>([&](auto s) QTENSOR_INLINE_LAMBDA { at[s] = streams[s]; });
    each([&](auto s, auto v) QTENSOR_INLINE_LAMBDA {
      simd::detail::repeat<Rows>([&](auto r) QTENSOR_INLINE_LAMBDA {
        sum[r][s][v] = simd::load<A>(sums + (r * Streams + s) * width + v * step);
      });
    });
    for (; depth > 0; depth -= group) {
      typename Decoder::lane_parameters lane[Streams][vectors];
      each([&](auto s, auto v) QTENSOR_INLINE_LAMBDA {
        lane[s][v] = Decoder::of(at[s].scales, at[s].zeros, at[s].offsets, tensor_scale, v);
      });
      index_t left = std::min(group, depth);
      for (; left >= 4; left -= 4) {
        simd::detail::repeat<Streams>([&](auto s) QTENSOR_INLINE_LAMBDA { at[s].template ask<ahead>(); });
        simd::floats<A> one_row[4];
        if constexpr (Rows == 1)
          simd::detail::repeat<4>([&](auto k)
                                      QTENSOR_INLINE_LAMBDA { one_row[k] = simd::rounded(simd::floats<A>(x[0][k])); });
        each([&](auto s, auto v) QTENSOR_INLINE_LAMBDA {
          const auto w = weights<By>(decoder, at[s].codes, v, lane[s][v]);
          simd::detail::repeat<Rows>([&](auto r) QTENSOR_INLINE_LAMBDA {
            simd::detail::repeat<4>([&](auto k) QTENSOR_INLINE_LAMBDA {
              const auto value = [&]() QTENSOR_INLINE_LAMBDA {
                if constexpr (Rows == 1)
                  return one_row[k];
                else
                  return simd::floats<A>(x[r][k]);
              };
              sum[r][s][v] = simd::fma(value(), w[k], sum[r][s][v]);
            });
          });
        });
        simd::detail::repeat<Streams>([&](auto s) QTENSOR_INLINE_LAMBDA { at[s].codes += Decoder::quad_bytes; });
        simd::detail::repeat<Rows>([&](auto r) QTENSOR_INLINE_LAMBDA { x[r] += 4; });
      }
      if (left > 0) {
        each([&](auto s, auto v) QTENSOR_INLINE_LAMBDA {
          const auto w = weights<By>(decoder, at[s].codes, v, lane[s][v]);
          simd::detail::repeat<Rows>([&](auto r) QTENSOR_INLINE_LAMBDA {
            for (index_t k = 0; k < left; ++k)
              sum[r][s][v] = simd::fma(simd::floats<A>(x[r][k]), w[static_cast<std::size_t>(k)], sum[r][s][v]);
          });
        });
        simd::detail::repeat<Streams>([&](auto s) QTENSOR_INLINE_LAMBDA { at[s].codes += Decoder::quad_bytes; });
        simd::detail::repeat<Rows>([&](auto r) QTENSOR_INLINE_LAMBDA { x[r] += left; });
      }
      simd::detail::repeat<Streams>([&](auto s) QTENSOR_INLINE_LAMBDA { at[s].to_next_group(); });
    }
    each([&](auto s, auto v) QTENSOR_INLINE_LAMBDA {
      simd::detail::repeat<Rows>([&](auto r) QTENSOR_INLINE_LAMBDA {
        simd::store(sums + (r * Streams + s) * width + v * step, sum[r][s][v]);
      });
    });
  }
  /// Where group g begins in a row.
  template <class Layout>
  static index_t at(const Layout& layout, index_t g) {
    return g * layout.group;
  }

 private:
  template <simd::quad_values By, class Decoder>
  static QTENSOR_INLINE auto weights(const Decoder& decoder, const std::uint8_t* quad, index_t v,
                                     const typename Decoder::lane_parameters& lane) {
    auto w = decoder.template values<By>(quad, v, lane);
    simd::detail::repeat<4>([&](auto k) QTENSOR_INLINE_LAMBDA { w[k] = Operands::weight(w[k]); });
    return w;
  }
};

/// Rows of x, Rows at a time, times packed panels [panel, panel + panels).
template <index_t Rows, class Chains, class Panels, class W, class Unit, class Sink>
void multiply_directly(const W& w, const typename Panels::layout_type& layout, index_t panel, index_t panels,
                       const Unit* x, index_t x_stride, index_t rows, bool x_fits_dots, const Sink& sink) {
  using decoder_type = typename panel_decoder<Panels>::decoder_type;
  using reader = direct_panel<Panels>;
  constexpr index_t streams = direct_rows<Panels>::streams(Rows), width = Panels::layout_type::width;
  const decoder_type decoder;
  auto set = array_of<streams>([&] { return reader(w); });
  alignas(64) float sums[Rows * streams * width];
  group_run<Panels> runs[streams];
  // Weights in the second cache need not be asked for ahead.
  const index_t run_depth = weights_are_near(layout) ? index_t{512} : Chains::template depth_at_once<Rows>;
  const index_t at_once = std::clamp(run_depth / layout.group, index_t{1}, reader::most_groups);
  const Unit* values[Rows];
  for (index_t p = panel; p < panel + panels; p += streams) {
    const index_t some = std::min(streams, panel + panels - p), col = p * width;
    for (index_t s = 0; s < some; ++s) set[static_cast<std::size_t>(s)].go_to(p + s, streams);
    for (index_t m = 0; m < rows; m += Rows) {
      const index_t count = std::min(Rows, rows - m);  // missing rows and streams repeat the last one
      std::fill_n(sums, Rows * streams * width, 0.f);
      for (index_t g = 0, groups; g < layout.groups(); g += groups) {
        groups = std::min(at_once, layout.groups() - g);
        for (index_t s = 0; s < streams; ++s)
          runs[s] = s < some ? set[static_cast<std::size_t>(s)].groups(g, groups, layout.group_quads(), x_fits_dots)
                             : runs[some - 1];
        for (index_t r = 0; r < Rows; ++r)
          values[r] = x + (m + std::min(r, count - 1)) * x_stride + Chains::at(layout, g);
        const auto run = [&]<simd::quad_values By>(std::integral_constant<simd::quad_values, By>) {
          Chains::template run<Rows, streams, By>(decoder, runs, set[0].tensor_scale(), values, layout.group,
                                                  std::min(groups * layout.group, layout.depth - g * layout.group),
                                                  sums);
        };
        if constexpr (Chains::template takes_dots<Rows, decoder_type>)
          if (std::all_of(runs, runs + streams, [](const auto& r) { return r.fits_dots; })) {
            run(std::integral_constant<simd::quad_values, simd::quad_values::dots>{});
            continue;
          }
        run(std::integral_constant<simd::quad_values, simd::quad_values::products>{});
      }
      sink(product_tile{m, col, count, std::min(some * width, layout.outputs - col), sums, streams * width});
    }
  }
}

/// Few rows of units, a stride apart, times all panels.
template <class Chains, class Panels, class W, class Unit, class Sink, class By>
void multiply_few(const W& w, const typename Panels::layout_type& layout, const Unit* x, index_t x_stride, index_t rows,
                  const Sink& sink, const By& by) {
  bool fits_dots = false;
  if constexpr (Chains::template takes_dots<1, typename panel_decoder<Panels>::decoder_type>)
    fits_dots = rows == 1 && simd::takes_bf16_dots<typename Panels::arch>() &&
                !simd::has_magnitudes_below<typename Panels::arch>(x, layout.depth, Chains::least_for_dots);
  const index_t work = Panels::layout_type::width * layout.depth;
  qtensor::detail::in_ranges(by, layout.panels(), 1, work, [&](index_t panel, index_t panels) {
    const auto together = [&]<index_t Rows>(std::integral_constant<index_t, Rows>) {
      multiply_directly<Rows, Chains, Panels>(w, layout, panel, panels, x, x_stride, rows, fits_dots, sink);
    };
    if (rows == 1) return together(std::integral_constant<index_t, 1>{});
    if constexpr (Chains::minds_missing_rows) {
      if (rows == 2) return together(std::integral_constant<index_t, 2>{});
      if (rows == 3) return together(std::integral_constant<index_t, 3>{});
    }
    together(std::integral_constant<index_t, direct_rows<Panels>::at_once>{});
  });
}

/// result(m, n) = sum over k of x(m, k) w(n, k), as reference::dot: one chain of fma over ascending k from +0, of the
/// dequantized weights and x, rounded first where `Operands` says so. w is packed or weights_of with codes of at
/// most 8 bits, x a source of M x K. Tiles go to `sink` from the threads of `by`. Throws std::bad_alloc, what x throws,
/// and qtensor::error where sizes do not agree or a zero point leaves 32 bits as a packed number.
template <simd::usable_arch A, class Operands = exact_operands, class W, tile_source X, class Sink, executor By>
void multiply_floats(const W& w, const X& x, const Sink& sink, const By& by) {
  using panels_type = decltype(panels_of<A>(w));
  const auto layout = layout_of<A>(w);
  const index_t rows = x.rows();
  require(x.cols() == layout.depth, "a product sums over ", layout.depth, " elements of the weights and ", x.cols(),
          " of the other operand; sizes must agree.");
  if (rows == 0 || layout.outputs == 0) return;
  check_zero_points(w);
  using arch = typename panels_type::arch;
  if (layout.depth == 0) return give_zeros<arch>(rows, layout.outputs, sink);
  if constexpr (direct_rows<panels_type>::takes_zeros)
    if (rows <= direct_rows<panels_type>::at_once) {
      product_space space(rows_stay_in_place<Operands>(x, 0, rows) ? 0 : rows * layout.depth);
      const auto values = float_rows<Operands>(x, 0, rows, space.data());
      return multiply_few<direct_chains<Operands>, panels_type>(w, layout, values.data, values.row_stride, rows, sink,
                                                                by);
    }
  using wide = wide_panel<panels_type>;
  for_product_parts(by, divide_up(layout.outputs, wide::width), layout.depth * wide::width, rows,
                    simd::float_tile<arch>::max_rows, [&](index_t panel, index_t panels, index_t first, index_t count) {
                      wide weights(w);
                      multiply_blocks<Operands, W>(weights, layout, panel, panels, x, first, count, sink);
                    });
}

}  // namespace ops

}  // namespace qtensor::inline QTENSOR_ABI
