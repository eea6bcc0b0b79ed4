// What the programs of conversions share: tensors of random shapes, parts of them, memory of random strides.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstring>
#include <numeric>
#include <qtensor/ops/parallel.hpp>
#include <string>

#include "../ops/check.hpp"
#include "../ops/threads.hpp"
#include "dice.hpp"

namespace fuzz {

using namespace qtensor;

/// Extents of at most `most` elements together.
template <int Rank>
dynamic_extents<Rank> draw_extents(dice& dice, index_t most) {
  typename dynamic_extents<Rank>::array sizes;
  for (index_t& size : sizes) size = dice.extent(Rank > 2 ? std::min(most, index_t{2000}) : most);
  const auto room = [&] {
    index_t product = 1;
    for (index_t size : sizes) product *= std::max(size, index_t{1});
    return product;
  };
  while (room() > most) {
    index_t& largest = *std::max_element(sizes.begin(), sizes.end());
    largest = largest * 3 / 4;
  }
  return dynamic_extents<Rank>(sizes);
}

/// Where the elements of a tensor lie in memory of `size` elements.
template <std::size_t Rank>
struct placement {
  std::array<index_t, Rank> strides{};
  index_t first = 0, size = 0;
};

/// In either dense order, or with axes in any order, gaps and negative strides; from any element of the memory on.
template <std::size_t Rank>
placement<Rank> draw_placement(dice& dice, const std::array<index_t, Rank>& sizes) {
  placement<Rank> p;
  std::array<std::size_t, Rank> axes;
  std::iota(axes.rbegin(), axes.rend(), std::size_t{0});
  const index_t kind = dice.within(0, 3);
  if (kind == 1) std::reverse(axes.begin(), axes.end());
  if (kind == 2)
    for (std::size_t a = Rank; a > 1; --a)
      std::swap(axes[a - 1], axes[static_cast<std::size_t>(dice.within(0, index_t(a) - 1))]);
  p.first = dice.within(0, 9);
  index_t next = 1;
  for (std::size_t a : axes) {
    if (kind >= 2 && dice.chance(3)) next += dice.within(1, 7);
    p.strides[a] = next;
    if (kind == 2 && dice.chance(6) && sizes[a] > 0) {
      p.first += (sizes[a] - 1) * next;
      p.strides[a] = -next;
    }
    next *= std::max(sizes[a], index_t{1});
  }
  p.size = p.first + next + dice.within(0, 9);
  return p;
}

template <class E>
index_t offset_of(const typename E::array& index, const typename E::array& strides) {
  return std::inner_product(index.begin(), index.end(), strides.begin(), index_t{0});
}

/// Numbers of F in such memory; NaNs between them.
template <format F, class E>
struct drawn_source {
  drawn_source(dice& dice, const E& extents) : extents(extents), place(draw_placement(dice, extents.to_array())) {
    const std::vector<float> numbers = dice.numbers(extents.size());
    memory.assign(static_cast<std::size_t>(place.size), element(quiet_nan));
    std::size_t next = 0;
    reference::for_each_index(typename E::array{}, extents.to_array(), [&](const auto& index) {
      memory[static_cast<std::size_t>(place.first + offset_of<E>(index, place.strides))] = element(numbers[next++]);
    });
  }
  static storage_t<F> element(float x) { return detail::unit_from<F>(encode<F, nearest_even, to_special>(x)); }
  memory_source<F, E> source() const { return qtensor::source<F>(memory.data() + place.first, extents, place.strides); }
  /// As the reference reads it.
  float operator()(const typename E::array& index) const {
    return decode<F>(
        detail::code_of<F>(memory[static_cast<std::size_t>(place.first + offset_of<E>(index, place.strides))]));
  }

  /// The index of an element, counted by rows.
  typename E::array index_of(index_t element) const {
    typename E::array index{};
    for (std::size_t a = index.size(); a-- > 0; element /= extents[static_cast<int>(a)])
      index[a] = element % extents[static_cast<int>(a)];
    return index;
  }

  E extents;
  placement<static_cast<std::size_t>(E::rank)> place;
  std::vector<storage_t<F>> memory;
};

/// Calls use(bytes, count) for each array of a tensor.
template <class T, class Use>
void for_each_array(T& t, const Use& use) {
  using S = typename T::scheme_type;
  const auto array = [&](auto* items, index_t count) {
    use(reinterpret_cast<unsigned char*>(items), static_cast<std::size_t>(count) * sizeof *items);
  };
  const auto memory = t.span().memory();
  array(memory.codes, t.shape().code_units());
  if constexpr (!S::is_interleaved) array(memory.scales, t.shape().scale_count());
  if constexpr (S::has_zero_point) array(memory.zero_points, t.shape().zero_point_count());
  if constexpr (S::has_offset && !S::is_interleaved) array(memory.offsets, t.shape().scale_count());
  if constexpr (S::has_tensor_scale) array(memory.tensor_scale, 1);
}

template <class T>
bool same_arrays(T& a, T& b) {
  std::vector<unsigned char> bytes[2];
  int of = 0;
  const auto keep = [&](const unsigned char* first, std::size_t n) {
    bytes[of].insert(bytes[of].end(), first, first + n);
  };
  for_each_array(a, keep);
  of = 1;
  for_each_array(b, keep);
  return bytes[0] == bytes[1];
}

/// A tensor with anything in it, of which a part of the given extents is written twice: `part(got)` by what is tested,
/// `part(want)` by the reference.
template <quantization_scheme S, int Rank, storage_order O>
class target {
  using extents_type = dynamic_extents<Rank>;
  using granularity_type = typename S::granularity_type;

 public:
  using tensor_type = tensor<S, extents_type, O>;

  /// `alone`: the part is all of it.
  target(dice& dice, const extents_type& extents, const granularity_type& granularity, bool alone)
      : sizes_(extents.to_array()) {
    auto all = sizes_;
    for (int a = 0; a < Rank && !alone; ++a) {
      const auto axis = static_cast<std::size_t>(a);
      if (!dice.chance(3)) continue;
      const index_t step = slice_step(granularity, a), after = dice.within(0, 20);
      const index_t before = step < 300 ? dice.within(0, 2) * step : 0;
      if (extents.size() / std::max(all[axis], index_t{1}) * (all[axis] + before + after) > 200000) continue;
      first_[axis] = before;
      all[axis] += before + after;
    }
    got = tensor_type(extents_type(all), granularity);
    for_each_array(got, [&](unsigned char* bytes, std::size_t n) {
      for (std::size_t i = 0; i < n; ++i) bytes[i] = static_cast<unsigned char>(dice.bits());
    });
    clear_ends();
    want = got;
  }
  /// The part that is written.
  auto part(tensor_type& t) const { return sliced<0>(t.span()); }
  bool same() { return same_arrays(got, want); }

  tensor_type got, want;

 private:
  /// What slices of an axis start at multiples of.
  static index_t slice_step(const granularity_type& granularity, int axis) {
    constexpr index_t huge = index_t{1} << 40;
    const auto step_of = [&](const auto& g) {
      const index_t block = g.block_extent(Rank, axis, huge);
      return block == huge ? index_t{1} : block;
    };
    index_t step = step_of(granularity);
    if constexpr (S::has_zero_point && !S::zero_points_as_scales)
      step = std::lcm(step, step_of(typename S::zero_granularity_type{}));
    if (O::axis(Rank, Rank - 1) != axis) return step;
    if constexpr (S::is_interleaved)
      return std::lcm(step, interleaved_block<S>::elements(granularity));
    else
      return std::lcm(step, index_t{8} / std::gcd(8, S::code_format::bits));
  }
  template <int Axis, class Span>
  auto sliced(const Span& span) const {
    if constexpr (Axis == Rank)
      return span;
    else
      return sliced<Axis + 1>(span.template slice<Axis>(first_[Axis], sizes_[Axis]));
  }
  /// The last byte (or block) of each row is 0, as it may or may not be kept where a row ends inside of it.
  void clear_ends() {
    if (!S::is_interleaved && !is_packed<typename S::code_format>) return;
    const auto span = part(got);
    auto rows = span.storage_extents();
    const index_t length = rows[Rank - 1];
    if (length == 0) return;
    rows[Rank - 1] = 1;
    reference::for_each_index(typename extents_type::array{}, rows, [&](const auto& row) {
      auto* codes = span.row(row);
      if constexpr (S::is_interleaved) {
        const index_t n = interleaved_block<S>::elements(span.granularity()),
                      bytes = interleaved_block<S>::bytes(span.granularity());
        std::memset(codes + (length - 1) / n * bytes, 0, static_cast<std::size_t>(bytes));
      } else if constexpr (is_packed<typename S::code_format>) {
        codes[(length * S::code_format::bits - 1) / 8] = 0;
      }
    });
  }

  typename extents_type::array sizes_, first_{};
};

/// The granularity of S, of any size where it is known at run time only.
template <quantization_scheme S>
typename S::granularity_type draw_granularity(dice& dice) {
  using G = typename S::granularity_type;
  if constexpr (std::is_constructible_v<G, index_t>)
    return G(dice.one_of(1, 2, 3, 5, 8, 16, 24, 31, 32, 33, 64, 100, 128, 1000, 2048, 3000));
  else if constexpr (std::is_constructible_v<G, index_t, index_t>)
    return G{dice.one_of(0, 1, 2, 3, 5, 16, 128), dice.one_of(0, 1, 2, 3, 7, 16, 33, 64, 128, 600)};  // in this order
  else
    return {};
}

/// A scale that may be stored: finite and positive, most often of the size of the numbers.
template <format F>
std::uint32_t draw_scale(dice& dice, float size) {
  const float far = float_of(dice.bits() & magnitude_bits), near = size * exp2i(static_cast<int>(dice.within(-9, 2)));
  const float s = dice.chance(20) ? far : rounded(near * (1.f + static_cast<float>(dice.within(0, 99)) / 64.f));
  const std::uint32_t code = encode<F>(s);
  return is_finite(s) && is_finite(decode<F>(code)) && decode<F>(code) > 0.f ? code : encode<F>(1.f);
}

/// Elements of a tensor: seldom enough for several threads.
inline index_t draw_size(dice& dice) { return dice.chance(12) ? 100000 : dice.chance(3) ? 20000 : 3000; }

/// Threads that an operation has.
inline index_t draw_threads(dice& dice) { return dice.chance(2) ? 1 : dice.within(2, 5); }

template <quantization_scheme S, storage_order Order, format F, class E>
std::string describe(const E& extents) {
  std::string text = std::string(name<S>) + " (" + std::string(choices<S>) + ")";
  for (int axis = 0; axis < E::rank; ++axis) text += " " + std::to_string(extents[axis]);
  return text + (std::same_as<Order, row_major> ? " by rows, " : " by columns, ") +
         std::string(std::string_view(F::name));
}

/// Memory of F into a tensor, or into a part of one, by one thread or by several.
template <quantization_scheme S, int Rank, storage_order Order = row_major, format F = f32>
void quantize_memory(fuzz::dice& dice) {
  using extents_type = dynamic_extents<Rank>;
  const extents_type extents = draw_extents<Rank>(dice, draw_size(dice));
  const auto granularity = draw_granularity<S>(dice);
  const drawn_source<F, extents_type> x(dice, extents);
  const auto before = x.memory;
  const index_t threads = draw_threads(dice);
  const bool is_new = dice.chance(4);
  INFO(describe<S, Order, F>(extents), ", threads ", threads, std::string(is_new ? ", new" : ""));
  target<S, Rank, Order> to(dice, extents, granularity, is_new);
  const typename memory_source<F, extents_type>::template in_order<Order> rows(x.source());
  if (is_new) to.want = typename decltype(to)::tensor_type(extents, granularity);
  reference::quantize(x, to.part(to.want));
  if (is_new) {
    if constexpr (has_static_blocks<typename S::granularity_type>)
      to.got = quantize<S, Order>(x.source());
    else
      to.got = quantize<S, Order>(x.source(), granularity);
  } else if (threads > 1) {
    quantize_into(rows, to.part(to.got), on(pool::threads(threads)));
  } else {
    quantize_into(rows, to.part(to.got));
  }
  REQUIRE(to.same());
  REQUIRE(std::memcmp(before.data(), x.memory.data(), before.size() * sizeof(before[0])) == 0);
}

/// Memory of F into a tensor, or a part of one, under scales that are stored already.
template <quantization_scheme S, int Rank, storage_order Order = row_major, format F = f32>
void quantize_static(fuzz::dice& dice) {
  using extents_type = dynamic_extents<Rank>;
  const extents_type extents = draw_extents<Rank>(dice, draw_size(dice));
  const auto granularity = draw_granularity<S>(dice);
  const drawn_source<F, extents_type> x(dice, extents);
  const index_t threads = draw_threads(dice);
  INFO(describe<S, Order, F>(extents), ", threads ", threads);
  target<S, Rank, Order> to(dice, extents, granularity, false);
  const auto want = to.part(to.want);
  const bool any_scale = dice.chance(4);  // zeros, negative ones, infinities, NaNs and subnormals among them
  const float size = extents.size() > 0 ? x(x.index_of(dice.within(0, extents.size() - 1))) : 1.f;
  reference::for_each_block(want.scale_grid(), want.storage_extents(), [&](const auto& first, const auto&) {
    using scale = typename S::scale_format;
    want.set_storage_scale_code(first, any_scale ? encode<scale, nearest_even, to_special>(dice.numbers(1)[0])
                                                 : draw_scale<scale>(dice, magnitude(size)));
  });
  if constexpr (S::has_zero_point) {
    using zero = typename S::zero_point_format;
    const auto low = static_cast<index_t>(std::max(S::codes.low, static_cast<float>(zero::min)));
    const auto high = static_cast<index_t>(std::min(S::codes.high, static_cast<float>(zero::max)));
    reference::for_each_block(want.zero_grid(), want.storage_extents(), [&](const auto& first, const auto&) {
      want.set_storage_zero_point(first, dice.one_of(low, high, dice.within(low, high)));
    });
  }
  if constexpr (S::has_tensor_scale) *want.memory().tensor_scale = decode<f32>(draw_scale<f32>(dice, 1.f));
  to.got = to.want;
  reference::quantize_static(x, want);
  const typename memory_source<F, extents_type>::template in_order<Order> rows(x.source());
  const auto got = to.part(to.got);
  if (threads == 1)
    quantize_static_into(rows, got);
  else
    quantize_static_into(rows, got, on(pool::threads(threads)));
  REQUIRE(to.same());
}

}  // namespace fuzz
