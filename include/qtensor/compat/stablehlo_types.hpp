// StableHLO's element types, known at run time: booleans, integers, floats and !quant.uniform (NUMERICS 7.1, 7.2).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <optional>
#include <qtensor/core/error.hpp>
#include <qtensor/core/rounded.hpp>
#include <qtensor/format/wide.hpp>
#include <qtensor/reference/codec.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace qtensor::compat::stablehlo {

/// Holds every value of every integer type, ui64 included, and every difference of two of them.
__extension__ typedef __int128 wide_integer;

/// Element types that are not quantized, in ascending width within a kind. Another number is refused wherever it is
/// asked what type it is.
enum class basic_type { i1, i2, i4, i8, i16, i32, i64, ui2, ui4, ui8, ui16, ui32, ui64, f16, bf16, f32, f64 };

namespace detail {

struct type_facts {
  std::string_view name;
  int bits;
  char kind;  // 'b'oolean, 's'igned, 'u'nsigned, 'f'loat
};
inline constexpr std::array<type_facts, 17> facts{{{"i1", 1, 'b'},
                                                   {"i2", 2, 's'},
                                                   {"i4", 4, 's'},
                                                   {"i8", 8, 's'},
                                                   {"i16", 16, 's'},
                                                   {"i32", 32, 's'},
                                                   {"i64", 64, 's'},
                                                   {"ui2", 2, 'u'},
                                                   {"ui4", 4, 'u'},
                                                   {"ui8", 8, 'u'},
                                                   {"ui16", 16, 'u'},
                                                   {"ui32", 32, 'u'},
                                                   {"ui64", 64, 'u'},
                                                   {"f16", 16, 'f'},
                                                   {"bf16", 16, 'f'},
                                                   {"f32", 32, 'f'},
                                                   {"f64", 64, 'f'}}};
constexpr const type_facts& facts_of(basic_type t) {
  const auto i = static_cast<std::size_t>(t);
  require(i < facts.size(), "an element type has number ", static_cast<int>(t), "; basic_type has 0 (i1) to 16 (f64).");
  return facts[i];
}

}  // namespace detail

constexpr std::string_view name_of(basic_type t) { return detail::facts_of(t).name; }
constexpr int bits_of(basic_type t) { return detail::facts_of(t).bits; }
constexpr bool is_float(basic_type t) { return detail::facts_of(t).kind == 'f'; }
constexpr bool is_signed(basic_type t) { return detail::facts_of(t).kind == 's'; }
/// Signed and unsigned ones; i1 is a boolean, not an integer.
constexpr bool is_integer(basic_type t) { return detail::facts_of(t).kind == 's' || detail::facts_of(t).kind == 'u'; }
/// Bytes of an element in memory: types of less than 8 bits take a byte each.
constexpr index_t bytes_of(basic_type t) { return divide_up(bits_of(t), 8); }

/// Smallest and largest value of a boolean or integer type.
constexpr wide_integer min_value(basic_type t) {
  return is_signed(t) ? -(wide_integer{1} << (bits_of(t) - 1)) : wide_integer{0};
}
constexpr wide_integer max_value(basic_type t) {
  return (wide_integer{1} << (bits_of(t) - (is_signed(t) ? 1 : 0))) - 1;
}

/// The type of a name as MLIR spells it ("i8", "ui4", "bf16"), or none.
constexpr std::optional<basic_type> basic_type_of(std::string_view name) {
  for (std::size_t i = 0; i < detail::facts.size(); ++i)
    if (detail::facts[i].name == name) return static_cast<basic_type>(i);
  return std::nullopt;
}

// ---- arithmetic in a float type ------------------------------------------------------------------------------------

namespace detail {

/// x as a float whose further rounding to 22 bits or fewer is that of x itself: rounded to odd.
inline float to_odd_float(double x) {
  float f = static_cast<float>(x);
  if (static_cast<double>(f) == x || std::isnan(x) || std::isinf(x)) return f;
  std::uint32_t bits = qtensor::bits_of(f);
  if (std::fabs(static_cast<double>(f)) > std::fabs(x)) --bits;  // toward zero, then odd
  return float_of(bits | 1u);
}

/// An integer as a double; where it has more than 53 digits, rounded to odd, so that a narrower type rounds it once.
inline double to_odd_double(wide_integer v) {
  const bool negative = v < 0;
  wide_integer m = negative ? -v : v;
  int exponent = 0;
  for (; m >= (wide_integer{1} << 53); ++exponent) m = (m >> 1) | (m & 1);
  const double x = static_cast<double>(static_cast<std::int64_t>(negative ? -m : m));
  return exponent == 0 ? x : std::ldexp(x, exponent);
}

}  // namespace detail

/// x rounded to a float type, ties to even, overflow to infinity. Sums, differences, products and quotients of two
/// numbers of f16, bf16 or f32 may be computed in double first: 53 digits are at least twice 24 and two more, so that
/// two roundings are one.
inline double round_to(basic_type type, double x) {
  switch (type) {
    case basic_type::f64:
      return x;
    case basic_type::f32:
      return static_cast<double>(static_cast<float>(x));
    case basic_type::f16:
      return decode<f16>(encode<f16, to_special>(detail::to_odd_float(x)));
    case basic_type::bf16:
      return decode<bf16>(encode<bf16, to_special>(detail::to_odd_float(x)));
    default:
      fail(name_of(type), " is not a float type; it is f16, bf16, f32 or f64.");
  }
}
/// An integer rounded to a float type.
inline double round_integer_to(basic_type type, wide_integer v) {
  if (type != basic_type::f64) return round_to(type, detail::to_odd_double(v));
  const auto narrow = static_cast<std::int64_t>(v);
  return narrow == v ? static_cast<double>(narrow) : static_cast<double>(v);
}

// ---- quantized types -----------------------------------------------------------------------------------------------

namespace detail {

inline std::string digits(wide_integer v) {
  const bool negative = v < 0;
  std::string out;
  do {
    const int digit = static_cast<int>(v % 10);
    out.insert(out.begin(), static_cast<char>('0' + (digit < 0 ? -digit : digit)));
    v /= 10;
  } while (v != 0);
  return negative ? "-" + out : out;
}

}  // namespace detail

/// !quant.uniform<storage<min:max>:expressed:axis, {scale:zero point, ...}>. Made by `per_tensor`, `per_axis` or
/// `parse_type`, which check the constraints of NUMERICS 7.1 and throw naming the one that fails.
class quantized_type {
 public:
  /// One scale, rounded to the expressed type, and one zero point for the whole tensor.
  static quantized_type per_tensor(basic_type storage, basic_type expressed, double scale,
                                   wide_integer zero_point = 0) {
    return quantized_type(storage, expressed, std::nullopt, {scale}, {zero_point});
  }
  /// One scale and zero point for every index of an axis.
  static quantized_type per_axis(basic_type storage, basic_type expressed, int axis, std::vector<double> scales,
                                 std::vector<wide_integer> zero_points) {
    return quantized_type(storage, expressed, axis, std::move(scales), std::move(zero_points));
  }
  /// The same with codes in [low, high].
  quantized_type in_range(wide_integer low, wide_integer high) const {
    quantized_type narrowed = *this;
    narrowed.storage_min_ = low;
    narrowed.storage_max_ = high;
    narrowed.settle();
    return narrowed;
  }

  basic_type storage() const { return storage_; }
  basic_type expressed() const { return expressed_; }
  wide_integer storage_min() const { return storage_min_; }
  wide_integer storage_max() const { return storage_max_; }
  const std::optional<int>& axis() const { return axis_; }
  bool is_per_axis() const { return axis_.has_value(); }
  const std::vector<double>& scales() const { return scales_; }
  const std::vector<wide_integer>& zero_points() const { return zero_points_; }
  bool operator==(const quantized_type&) const = default;

  /// Throws unless a tensor of this shape can have this type.
  void check_shape(const std::vector<index_t>& shape) const {
    if (!axis_) return;
    const index_t rank = static_cast<index_t>(shape.size());
    require(*axis_ < rank, "the quantization dimension is ", *axis_, " and the tensor has rank ", rank,
            "; constraint: 0 <= quantization_dimension < rank.");
    require(shape[static_cast<std::size_t>(*axis_)] == static_cast<index_t>(scales_.size()), "dimension ", *axis_,
            " has ", shape[static_cast<std::size_t>(*axis_)], " elements and the type ", scales_.size(),
            " scales; constraint: dim(quantization_dimension) = size(scales).");
  }

  /// (code - zero point) * scale: subtracted exactly, then rounded to the expressed type, then multiplied in it.
  double dequantize(wide_integer code, index_t channel = 0) const {
    const std::size_t c = axis_ ? static_cast<std::size_t>(channel) : 0;
    return round_to(expressed_, rounded(round_integer_to(expressed_, code - zero_points_[c]) * scales_[c]));
  }
  /// rne(clamp(x / scale + zero point)), each step in the expressed type, to which the ends of the range are rounded,
  /// too; what is then beside the range is its end. NaN is code 0, clamped into the range.
  wide_integer quantize(double x, index_t channel = 0) const {
    const std::size_t c = axis_ ? static_cast<std::size_t>(channel) : 0;
    double q = round_to(expressed_, x / scales_[c]);
    q = round_to(expressed_, q + zero_numbers_[c]);
    if (std::isnan(q)) return clamped(0);
    q = std::clamp(q, low_number_, high_number_);
    if (std::isinf(q)) return q < 0.0 ? storage_min_ : storage_max_;
    q = std::nearbyint(q);
    return clamped(std::fabs(q) < 0x1p63 ? static_cast<std::int64_t>(q) : static_cast<wide_integer>(q));
  }
  /// quantize(dequantize(code)), as the specification has it (not by a ratio of scales, which differs on ties).
  wide_integer requantize(wide_integer code, const quantized_type& to, index_t channel = 0) const {
    require(expressed_ == to.expressed_, "a ", name_of(expressed_), " expressed type is requantized to ",
            name_of(to.expressed_), "; constraint: expressed_type(operand) = expressed_type(result).");
    return to.quantize(dequantize(code, channel), channel);
  }

 private:
  quantized_type(basic_type storage, basic_type expressed, std::optional<int> axis, std::vector<double> scales,
                 std::vector<wide_integer> zero_points)
      : storage_(storage),
        expressed_(expressed),
        axis_(axis),
        storage_min_(min_value(storage)),
        storage_max_(max_value(storage)),
        scales_(std::move(scales)),
        zero_points_(std::move(zero_points)) {
    require(is_integer(storage), "the storage type is ", name_of(storage), "; constraint: it is an integer, i2 to i64 ",
            "or ui2 to ui64.");
    require(is_float(expressed), "the expressed type is ", name_of(expressed),
            "; constraint: it is a float, f16, bf16, f32 or f64.");
    for (double& s : scales_) s = round_to(expressed, s);
    settle();
  }
  void check() const {
    require(min_value(storage_) <= storage_min_ && storage_min_ < storage_max_ && storage_max_ <= max_value(storage_),
            "the storage range is <", detail::digits(storage_min_), ":", detail::digits(storage_max_), "> of ",
            name_of(storage_),
            "; constraint: min_value(storage_type) <= storage_min < storage_max <= max_value(storage_type).");
    require(scales_.size() == zero_points_.size(), scales_.size(), " scales and ", zero_points_.size(),
            " zero points are given; constraint: size(scales) = size(zero_points).");
    require(axis_ || scales_.size() == 1, scales_.size(),
            " scales are given without an axis; constraint: a per-tensor type has size(scales) = 1.");
    require(!axis_ || *axis_ >= 0, "the quantization dimension is ", axis_.value_or(0),
            "; constraint: 0 <= quantization_dimension.");
    for (std::size_t i = 0; i < scales_.size(); ++i) {
      require(scales_[i] > 0.0 && std::isfinite(scales_[i]), "scale ", i, " is ", scales_[i], " as ",
              name_of(expressed_), "; constraint: 0 < scales and is_finite(scales).");
      require(storage_min_ <= zero_points_[i] && zero_points_[i] <= storage_max_, "zero point ", i, " is ",
              detail::digits(zero_points_[i]), " and codes are in ", detail::digits(storage_min_), " to ",
              detail::digits(storage_max_), "; constraint: storage_min <= zero_points <= storage_max.");
    }
  }
  /// Checks, and rounds zero points and the ends of the range to the expressed type.
  void settle() {
    check();
    low_number_ = round_integer_to(expressed_, storage_min_), high_number_ = round_integer_to(expressed_, storage_max_);
    zero_numbers_.clear();
    for (const wide_integer z : zero_points_) zero_numbers_.push_back(round_integer_to(expressed_, z));
  }
  wide_integer clamped(wide_integer v) const { return std::clamp(v, storage_min_, storage_max_); }

  basic_type storage_, expressed_;
  std::optional<int> axis_;
  wide_integer storage_min_, storage_max_;
  std::vector<double> scales_;
  std::vector<wide_integer> zero_points_;
  double low_number_ = 0.0, high_number_ = 0.0;
  std::vector<double> zero_numbers_;
};

/// The type of a tensor's elements: a basic one or a quantized one, from which it converts.
class element_type {
 public:
  element_type(basic_type basic) : basic_(basic) {}
  element_type(quantized_type quantized) : basic_(quantized.storage()), quantized_(std::move(quantized)) {}

  bool is_quantized() const { return quantized_.has_value(); }
  const quantized_type& quantized() const { return *quantized_; }
  /// What lies in memory: the type itself, or the storage type.
  basic_type stored() const { return basic_; }
  /// The float type it computes in, where it is quantized or a float; else itself.
  basic_type computed() const { return quantized_ ? quantized_->expressed() : basic_; }
  bool operator==(const element_type&) const = default;

 private:
  basic_type basic_;
  std::optional<quantized_type> quantized_;
};

/// The type as MLIR spells it, with scales in the shortest decimals that read back as these doubles.
std::string to_string(const element_type& type);
/// The type of such a spelling: "f32", "!quant.uniform<i8<-127:127>:f32:0, {0.1:-30, 0.5:-20}>". Throws on anything
/// else, and on a type that breaks a constraint.
element_type parse_type(std::string_view text);

// ---- spelling ------------------------------------------------------------------------------------------------------

namespace detail {

inline std::string decimals(double x) {
  char text[40];
  for (int precision = 6; precision <= 17; ++precision) {
    std::snprintf(text, sizeof text, "%.*g", precision, x);
    if (std::strtod(text, nullptr) == x) break;
  }
  return text;
}

/// Reads a spelling from left to right; every failure names the whole of it.
class type_reader {
 public:
  explicit type_reader(std::string_view text) : whole_(text), rest_(text) {}

  bool accept(std::string_view word) {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
    if (rest_.substr(0, word.size()) != word) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  void expect(std::string_view word) {
    if (!accept(word)) fail_with(word);
  }
  basic_type basic() {
    accept("");
    std::size_t length = 0;
    while (length < rest_.size() && (std::isalnum(static_cast<unsigned char>(rest_[length])) != 0)) ++length;
    const auto type = basic_type_of(rest_.substr(0, length));
    if (!type) fail_with("an element type");
    rest_.remove_prefix(length);
    return *type;
  }
  wide_integer number() {
    accept("");
    const bool negative = accept("-");
    if (rest_.empty() || rest_.front() < '0' || rest_.front() > '9') fail_with("an integer");
    wide_integer v = 0;
    for (; !rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9'; rest_.remove_prefix(1)) {
      if (v > (wide_integer{1} << 100)) fail_with("an integer of at most 64 bits");
      v = v * 10 + (rest_.front() - '0');
    }
    return negative ? -v : v;
  }
  double real() {
    accept("");
    const std::string copy(rest_.substr(0, rest_.find_first_of(":,}> ")));
    char* end = nullptr;
    const double x = std::strtod(copy.c_str(), &end);
    if (copy.empty() || *end != '\0') fail_with("a scale");
    rest_.remove_prefix(copy.size());
    return x;
  }
  void expect_end() {
    accept("");
    if (!rest_.empty()) fail_with("nothing more");
  }
  [[noreturn]] void fail_with(std::string_view wanted) const {
    fail("\"", whole_, "\" is not an element type: ", wanted, " is expected at \"", rest_, "\".");
  }

 private:
  std::string_view whole_, rest_;
};

}  // namespace detail

inline std::string to_string(const element_type& type) {
  if (!type.is_quantized()) return std::string(name_of(type.stored()));
  const quantized_type& q = type.quantized();
  std::string out = "!quant.uniform<" + std::string(name_of(q.storage()));
  if (q.storage_min() != min_value(q.storage()) || q.storage_max() != max_value(q.storage()))
    out += "<" + detail::digits(q.storage_min()) + ":" + detail::digits(q.storage_max()) + ">";
  out += ":" + std::string(name_of(q.expressed()));
  if (q.is_per_axis()) out += ":" + std::to_string(*q.axis());
  out += q.is_per_axis() ? ", {" : ", ";
  for (std::size_t i = 0; i < q.scales().size(); ++i) {
    if (i != 0) out += ", ";
    out += detail::decimals(q.scales()[i]);
    if (q.zero_points()[i] != 0) out += ":" + detail::digits(q.zero_points()[i]);
  }
  return out + (q.is_per_axis() ? "}>" : ">");
}

inline element_type parse_type(std::string_view text) {
  detail::type_reader in(text);
  if (!in.accept("!quant.uniform")) {
    const basic_type basic = in.basic();
    in.expect_end();
    return basic;
  }
  in.expect("<");
  const basic_type storage = in.basic();
  std::optional<std::pair<wide_integer, wide_integer>> range;
  if (in.accept("<")) {
    const wide_integer low = in.number();
    in.expect(":");
    range = {low, in.number()};
    in.expect(">");
  }
  in.expect(":");
  const basic_type expressed = in.basic();
  std::optional<wide_integer> axis;
  if (in.accept(":")) axis = in.number();
  if (axis && *axis > std::numeric_limits<int>::max()) in.fail_with("a dimension of at most 2147483647");
  in.expect(",");
  if (axis) in.expect("{");
  std::vector<double> scales;
  std::vector<wide_integer> zeros;
  do {
    scales.push_back(in.real());
    zeros.push_back(in.accept(":") ? in.number() : 0);
  } while (axis && in.accept(","));
  if (axis) in.expect("}");
  in.expect(">");
  in.expect_end();
  // A narrow range decides which zero points are allowed, so it is checked with them.
  const int dimension = axis ? static_cast<int>(std::max<wide_integer>(*axis, -1)) : 0;
  const auto whole = axis ? quantized_type::per_axis(storage, expressed, dimension, scales, zeros)
                          : quantized_type::per_tensor(storage, expressed, scales.front(), zeros.front());
  return range ? whole.in_range(range->first, range->second) : whole;
}

}  // namespace qtensor::compat::stablehlo
