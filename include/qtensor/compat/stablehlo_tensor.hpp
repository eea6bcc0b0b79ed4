// StableHLO's tensors of run-time type: element by element, and as tiles of the floats they are computed in.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <qtensor/compat/stablehlo_types.hpp>
#include <qtensor/core/executor.hpp>
#include <qtensor/simd/memory.hpp>
#include <qtensor/simd/quotient.hpp>
#include <qtensor/tensor/shape.hpp>
#include <span>
#include <tuple>
#include <vector>

namespace qtensor::compat::stablehlo {

/// One element of any type: `real` of a float, `integer` of an integer, a boolean (0, 1), or the code of a quantized
/// one.
struct scalar {
  double real = 0.0;
  wide_integer integer = 0;
  bool operator==(const scalar&) const = default;
};

namespace detail {

/// What lies between neighbours along an axis of a dense tensor in row-major order; 0 where it has no elements.
inline index_t stride_along(const std::vector<index_t>& shape, index_t axis) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  return qtensor::detail::checked_product(std::span(shape).subspan(static_cast<std::size_t>(axis) + 1));
}

}  // namespace detail

/// A tensor whose type is known at run time: dense elements in row-major order, each of bytes_of(stored type) bytes
/// (types of less than 8 bits a byte each). Starts as zeros. A shape without axes is one element.
class tensor {
 public:
  /// Throws on a negative extent, on a number of bytes that overflows, and where a per-axis type does not fit the
  /// shape.
  tensor(element_type type, std::vector<index_t> shape) : type_(std::move(type)), shape_(std::move(shape)) {
    for (std::size_t axis = 0; axis < shape_.size(); ++axis)
      require(shape_[axis] >= 0, "dimension ", static_cast<index_t>(axis), " has ", shape_[axis],
              " elements; an extent is at least 0.");
    size_ = qtensor::detail::checked_product(shape_);
    const index_t bytes = qtensor::detail::checked_product(size_, bytes_of(type_.stored()));
    if (type_.is_quantized()) {
      type_.quantized().check_shape(shape_);
      if (type_.quantized().is_per_axis()) {
        const int axis = *type_.quantized().axis();
        inner_ = detail::stride_along(shape_, axis);
        channels_ = shape_[static_cast<std::size_t>(axis)];
      }
    }
    bytes_.resize(static_cast<std::size_t>(bytes));
  }
  /// With elements (or codes) copied from an array of a type of their width: std::int8_t for i8, ui4 and i1, float for
  /// f32, std::uint16_t for f16 and bf16, ...
  template <class T>
  tensor(element_type type, std::vector<index_t> shape, std::span<const T> elements)
      : tensor(std::move(type), std::move(shape)) {
    static_assert(std::is_arithmetic_v<T>, "qtensor: a StableHLO tensor copies an array of numbers.");
    check_width(sizeof(T));
    require(static_cast<index_t>(elements.size()) == size_, static_cast<index_t>(elements.size()),
            " elements are given for a tensor of ", size_, ".");
    if (!elements.empty()) std::memcpy(bytes_.data(), elements.data(), bytes_.size());
  }

  const element_type& type() const { return type_; }
  const std::vector<index_t>& shape() const { return shape_; }
  index_t size() const { return size_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  std::span<std::byte> bytes() { return bytes_; }
  /// A copy of the elements (or codes) as numbers of a type of their width.
  template <class T>
  std::vector<T> to_vector() const {
    check_width(sizeof(T));
    std::vector<T> out(static_cast<std::size_t>(size_));
    if (!out.empty()) std::memcpy(out.data(), bytes_.data(), bytes_.size());
    return out;
  }
  /// The same bytes as another type of the same width: bitcast_convert between a quantized type and its storage.
  tensor bitcast(element_type type) const {
    tensor out(std::move(type), shape_);
    out.check_width(static_cast<std::size_t>(bytes_of(type_.stored())));
    out.bytes_ = bytes_;
    return out;
  }

  /// Which scale of a per-axis type belongs to element i in row-major order; 0 of other types.
  index_t channel(index_t i) const { return channels_ == 0 ? 0 : i / inner_ % channels_; }
  /// How many elements of a channel follow each other.
  index_t run() const { return channels_ == 0 ? size_ : inner_; }
  /// Element i in row-major order.
  QTENSOR_INLINE scalar at(index_t i) const {
    const std::byte* from = bytes_.data() + i * bytes_of(type_.stored());
    const auto read = [&]<class T>(T value) {
      std::memcpy(&value, from, sizeof value);
      return value;
    };
    const basic_type stored = type_.stored();
    switch (stored) {
      case basic_type::f64:
        return {read(double{}), 0};
      case basic_type::f32:
        return {static_cast<double>(read(float{})), 0};
      case basic_type::f16:
        return {static_cast<double>(decode<f16>(read(std::uint16_t{}))), 0};
      case basic_type::bf16:
        return {static_cast<double>(decode<bf16>(read(std::uint16_t{}))), 0};
      default:
        switch (bytes_of(stored)) {
          case 1:
            return {0.0, wrapped(stored, read(std::uint8_t{}))};
          case 2:
            return {0.0, wrapped(stored, read(std::uint16_t{}))};
          case 4:
            return {0.0, wrapped(stored, read(std::uint32_t{}))};
          default:
            return {0.0, wrapped(stored, read(std::uint64_t{}))};
        }
    }
  }
  QTENSOR_INLINE void set(index_t i, const scalar& value) {
    std::byte* to = bytes_.data() + i * bytes_of(type_.stored());
    const auto write = [&](auto number) { std::memcpy(to, &number, sizeof number); };
    const basic_type stored = type_.stored();
    switch (stored) {
      case basic_type::f64:
        return write(value.real);
      case basic_type::f32:
        return write(static_cast<float>(value.real));
      case basic_type::f16:
        return write(static_cast<std::uint16_t>(encode<f16, to_special>(detail::to_odd_float(value.real))));
      case basic_type::bf16:
        return write(static_cast<std::uint16_t>(encode<bf16, to_special>(detail::to_odd_float(value.real))));
      default:
        switch (bytes_of(stored)) {
          case 1:
            return write(static_cast<std::uint8_t>(value.integer));
          case 2:
            return write(static_cast<std::uint16_t>(value.integer));
          case 4:
            return write(static_cast<std::uint32_t>(value.integer));
          default:
            return write(static_cast<std::uint64_t>(value.integer));
        }
    }
  }

  /// An integer modulo 2^bits, as the type means it; a boolean is whether it is not 0.
  static wide_integer wrapped(basic_type type, wide_integer v) {
    if (type == basic_type::i1) return v != 0 ? 1 : 0;
    const int spare = 64 - bits_of(type);
    const std::uint64_t word = static_cast<std::uint64_t>(v) << spare;
    return is_signed(type) ? wide_integer{static_cast<std::int64_t>(word) >> spare} : wide_integer{word >> spare};
  }

 private:
  void check_width(std::size_t width) const {
    require(static_cast<index_t>(width) == bytes_of(type_.stored()), "elements of ", static_cast<index_t>(width),
            " bytes are given for ", name_of(type_.stored()), ", which takes ", bytes_of(type_.stored()), ".");
  }

  element_type type_;
  std::vector<index_t> shape_;
  index_t size_ = 1, inner_ = 1, channels_ = 0;
  std::vector<std::byte> bytes_;
};

namespace detail {

/// An element as what it is computed in: a quantized one is dequantized.
QTENSOR_INLINE scalar expressed(const element_type& type, const scalar& x, index_t channel) {
  return type.is_quantized() ? scalar{type.quantized().dequantize(x.integer, channel), 0} : x;
}
QTENSOR_INLINE scalar expressed(const tensor& x, index_t i) { return expressed(x.type(), x.at(i), x.channel(i)); }
/// What was computed as an element of the result: quantized where that is.
QTENSOR_INLINE scalar stored(const element_type& type, const scalar& x, index_t channel) {
  return type.is_quantized() ? scalar{0.0, type.quantized().quantize(x.real, channel)} : x;
}

}  // namespace detail

inline namespace QTENSOR_ABI {

namespace pieces {

using arch = simd::best_arch;
using floats = simd::floats<arch>;

/// Elements that are computed together, whole vectors of them.
inline constexpr index_t tile_size = 512;
struct alignas(64) tile {
  float numbers[tile_size] = {};
};

/// Whether floats give what `quantized_type` and `round_to` do: numbers of at most 24 digits, rounded after every step,
/// and codes whose differences are exact, or rounded once.
inline bool has_tiles(const element_type& type) {
  if (!is_float(type.computed()) || type.computed() == basic_type::f64) return false;
  return !type.is_quantized() || bits_of(type.stored()) <= 16 ||
         (type.stored() == basic_type::i32 && type.computed() == basic_type::f32);
}

/// Calls use(F{}) for such a type F of floats.
template <class Use>
void in_float_type(basic_type type, const Use& use) {
  if (type == basic_type::f32) return use(f32{});
  type == basic_type::f16 ? use(f16{}) : use(bf16{});
}

/// Scales and zero points of the elements of a tile, side by side.
template <class Zero>
class tile_parameters {
 public:
  explicit tile_parameters(const tensor& t) : t_(t) {
    const quantized_type& q = t.type().quantized();
    for (const double s : q.scales()) scale_of_.push_back(static_cast<float>(s));
    for (const wide_integer z : q.zero_points())
      zero_of_.push_back(
          static_cast<Zero>(std::is_same_v<Zero, float> ? round_integer_to(q.expressed(), z) : static_cast<double>(z)));
    std::fill_n(scales, tile_size, q.is_per_axis() ? 1.f : scale_of_[0]);
    std::fill_n(zeros, tile_size, q.is_per_axis() ? Zero{} : zero_of_[0]);
  }
  /// Makes them those of elements [first, first + n).
  void load(index_t first, index_t n) {
    if (!t_.type().quantized().is_per_axis()) return;
    const index_t run = t_.run(), channels = static_cast<index_t>(scale_of_.size());
    for (index_t i = 0, c = t_.channel(first), m; i < n; i += m) {
      m = std::min(n - i, run == 1 ? channels - c : run - (first + i) % run);
      const auto spread = [&](const auto& of, auto* to) {
        run == 1 ? std::copy_n(of.data() + c, m, to + i) : std::fill_n(to + i, m, of[static_cast<std::size_t>(c)]);
      };
      spread(scale_of_, scales), spread(zero_of_, zeros);
      c = (c + (run == 1 ? m : 1)) % channels;
    }
  }

  alignas(64) float scales[tile_size];
  alignas(64) Zero zeros[tile_size];

 private:
  const tensor& t_;
  std::vector<float> scale_of_;
  std::vector<Zero> zero_of_;
};

/// Reads elements of a tensor as the numbers they are computed in.
class number_reader {
 public:
  explicit number_reader(const tensor& t) : t_(t) {
    if (t.type().is_quantized()) parameters_.emplace(t);
  }
  /// Elements [first, first + n), n <= tile_size, to the first numbers of a tile.
  void operator()(index_t first, index_t n, tile& to) {
    const std::byte* from = t_.bytes().data() + first * bytes_of(t_.type().stored());
    if (parameters_) parameters_->load(first, n);
    in_float_type(t_.type().computed(), [&]<class F>(F) {
      if (!parameters_)
        simd::widen_floats<F>(reinterpret_cast<const storage_t<F>*>(from), n, to.numbers);
      else if (bytes_of(t_.type().stored()) == 1)
        dequantize<F, std::uint8_t>(from, n, to);
      else if (bytes_of(t_.type().stored()) == 2)
        dequantize<F, std::uint16_t>(from, n, to);
      else
        dequantize_words(reinterpret_cast<const std::int32_t*>(from), n, to);
    });
  }

 private:
  /// Codes of up to 16 bits, the lower ones of a Unit.
  template <class F, class Unit>
  void dequantize(const std::byte* from, index_t n, tile& to) const {
    alignas(64) Unit units[tile_size] = {};
    std::memcpy(units, from, static_cast<std::size_t>(n) * sizeof(Unit));
    const int spare = 32 - bits_of(t_.type().stored());
    for (index_t i = 0; i < n; i += simd::lanes<arch>) {
      simd::words<arch> code;
      if constexpr (sizeof(Unit) == 1)
        code = simd::widen_u8<arch>(units + i);
      else
        code = simd::widen_u16<arch>(units + i);
      code = code << spare;
      const simd::ints<arch> number = is_signed(t_.type().stored()) ? simd::bits_as<std::int32_t>(code) >> spare
                                                                    : simd::bits_as<std::int32_t>(code >> spare);
      const simd::ints<arch> difference = number - simd::load<arch>(parameters_->zeros + i);
      const floats steps = simd::detail::through<F>(simd::to_float(difference));
      const floats y = simd::mul(steps, simd::load<arch>(parameters_->scales + i));
      simd::store(to.numbers + i, simd::detail::through<F>(y));
    }
  }
  void dequantize_words(const std::int32_t* codes, index_t n, tile& to) const {
    for (index_t i = 0; i < n; ++i)
      to.numbers[i] = static_cast<float>(std::int64_t{codes[i]} - parameters_->zeros[i]) * parameters_->scales[i];
  }

  const tensor& t_;
  std::optional<tile_parameters<std::int32_t>> parameters_;
};

/// Writes what was computed as elements of a tensor: quantized where that is.
class number_writer {
 public:
  explicit number_writer(tensor& t) : t_(t) {
    if (!t.type().is_quantized()) return;
    const quantized_type& q = t.type().quantized();
    parameters_.emplace(t);
    low_ = static_cast<std::int32_t>(q.storage_min()), high_ = static_cast<std::int32_t>(q.storage_max());
    low_number_ = static_cast<float>(round_integer_to(q.expressed(), low_));
    high_number_ = static_cast<float>(round_integer_to(q.expressed(), high_));
  }
  /// The first n <= tile_size numbers of a tile as elements [first, first + n).
  void operator()(index_t first, index_t n, const tile& from) {
    std::byte* to = t_.bytes().data() + first * bytes_of(t_.type().stored());
    if (parameters_) parameters_->load(first, n);
    in_float_type(t_.type().computed(), [&]<class F>(F) {
      if (!parameters_)
        simd::narrow_floats<F>(from.numbers, n, reinterpret_cast<storage_t<F>*>(to));
      else if (bytes_of(t_.type().stored()) == 1)
        quantize<F, std::uint8_t>(from, n, to);
      else if (bytes_of(t_.type().stored()) == 2)
        quantize<F, std::uint16_t>(from, n, to);
      else
        quantize<F, std::uint32_t>(from, n, to);
    });
  }

 private:
  /// The codes of a batch of numbers, from number i of a tile on.
  template <class F>
  simd::words<arch> codes(const tile& from, index_t i) const {
    using simd::detail::through;
    floats q = through<F>(simd::div(simd::load<arch>(from.numbers + i), simd::load<arch>(parameters_->scales + i)));
    q = through<F>(simd::add(q, simd::load<arch>(parameters_->zeros + i)));
    const floats inside = simd::min(simd::max(q, floats(low_number_)), floats(high_number_));
    simd::ints<arch> code = simd::round_to_int_checked(inside);  // -2^31 from 2^31 on
    code = simd::select(simd::mask_as<std::int32_t>(inside >= floats(0x1p31f)), simd::ints<arch>(high_), code);
    code = simd::select(simd::mask_as<std::int32_t>(q == q), code, simd::ints<arch>(0));
    return simd::bits_as<std::uint32_t>(simd::min(simd::max(code, simd::ints<arch>(low_)), simd::ints<arch>(high_)));
  }
  template <class F, class Unit>
  void quantize(const tile& from, index_t n, std::byte* to) const {
    constexpr index_t step = simd::lanes<arch>;
    alignas(64) Unit units[tile_size];
    for (index_t i = 0; i < n; i += step * index_t{sizeof(std::uint32_t) / sizeof(Unit)}) {
      const auto batch = [&](index_t k) QTENSOR_INLINE_LAMBDA { return codes<F>(from, i + k * step); };
      if constexpr (sizeof(Unit) == 1)
        simd::store(units + i, simd::low_bytes(batch(0), batch(1), batch(2), batch(3)));
      else if constexpr (sizeof(Unit) == 2)
        simd::store(units + i, simd::low_halves(batch(0), batch(1)));
      else
        simd::store(units + i, batch(0));
    }
    std::memcpy(to, units, static_cast<std::size_t>(n) * sizeof(Unit));
  }

  tensor& t_;
  std::optional<tile_parameters<float>> parameters_;
  std::int32_t low_ = 0, high_ = 0;
  float low_number_ = 0.f, high_number_ = 0.f;
};

/// Calls use(first, n, numbers...) for elements [first, first + n) of tensors of one shape, tile by tile, where all
/// have tiles; else false. Each part of them has a `use` of its own, which make_use() gives.
template <executor By, class MakeUse, class... X>
bool read_tiles(const By& by, const MakeUse& make_use, const X&... x) {
  if (!(has_tiles(x.type()) && ...)) return false;
  const auto read_range = [](index_t first, index_t end, auto use, auto... read) {
    std::array<tile, sizeof...(X)> tiles;
    for (; first < end; first += tile_size) {
      const index_t n = std::min(tile_size, end - first);
      std::size_t operand = 0;
      (read(first, n, tiles[operand++]), ...);
      std::apply([&](auto&... numbers) { use(first, n, numbers...); }, tiles);
    }
  };
  qtensor::detail::in_ranges(by, std::min({x.size()...}), tile_size, 1, [&](index_t first, index_t n) {
    read_range(first, first + n, make_use(), number_reader(x)...);
  });
  return true;
}
/// y = op(x...), rounded to what y is computed in, where all have tiles; else false. `op` takes a batch of each x.
template <executor By, class Op, class... X>
bool compute_tiles(const By& by, tensor& y, const Op& op, const X&... x) {
  if (!has_tiles(y.type())) return false;
  return read_tiles(
      by,
      [&] {
        return [write = number_writer(y), &y, &op](index_t first, index_t n, auto&... numbers) mutable {
          tile result;
          in_float_type(y.type().computed(), [&]<class F>(F) {
            for (index_t i = 0; i < n; i += simd::lanes<arch>)
              simd::store(result.numbers + i, simd::detail::through<F>(op(simd::load<arch>(numbers.numbers + i)...)));
          });
          write(first, n, result);
        };
      },
      x...);
}
/// y's element i = of(i), each by itself.
template <executor By, class Of>
void compute_each(const By& by, tensor& y, const Of& of) {
  qtensor::detail::in_ranges(by, y.size(), 1, 1, [&](index_t first, index_t n) {
    for (index_t i = first; i < first + n; ++i) y.set(i, of(i));
  });
}

/// Elements of one type as those of another that is computed in the same, each as `detail::expressed` and
/// `detail::stored` have it. Cost: 10-25 instructions for each batch of floats; f64, i64, ui32, ui64, and i32 in f16 or
/// bf16 element by element.
template <executor By>
void retype(const By& by, const tensor& x, tensor& y) {
  if (compute_tiles(
          by, y, [](const floats& v) QTENSOR_INLINE_LAMBDA { return v; }, x))
    return;
  compute_each(by, y, [&](index_t i) { return detail::stored(y.type(), detail::expressed(x, i), y.channel(i)); });
}

}  // namespace pieces

}  // namespace QTENSOR_ABI

}  // namespace qtensor::compat::stablehlo
