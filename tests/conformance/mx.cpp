// MX and NVFP4 blocks as torchao, microxcaling and TransformerEngine made them, against the schemes named after them.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <qtensor/compat/microxcaling.hpp>
#include <qtensor/compat/torchao.hpp>
#include <qtensor/compat/transformer_engine.hpp>

#include "oracle/json.hpp"

namespace {

using namespace oracle;
namespace qt = qtensor;
namespace mxc = qtensor::compat::microxcaling;
namespace ao = qtensor::compat::torchao;
namespace te = qtensor::compat::transformer_engine;

/// Where another program's answer is not ours, and why.
enum exception { junk_codes, nan_spelling, unsigned_zero, missing_rows, exception_count };
const std::string reasons[exception_count] = {
    "torchao's fp6 and fp4 codes in blocks of scale FF are leftovers (NUMERICS 2.6)",
    "torch spells the NaN of e5m2 7F, we 7E (NUMERICS 10.2)",
    "mxint8 has no -0: microxcaling keeps the sign of a number that rounds to 0",
    "groups along axis 0 whose other rows were left out of the sample (it has 8 of them): number right under some "
    "scale"};

struct tally {
  std::size_t cases = 0, scales = 0, codes = 0, numbers = 0;
  std::size_t excepted[exception_count] = {};
};

using values = std::vector<float>;

/// A matrix of a sample, read with its axes in order or exchanged, so that groups always run along the last one.
struct matrix {
  values numbers;
  qt::index_t rows, cols;
  bool turned = false;

  matrix(const sample_array& a, bool turn) : numbers(a.floats()), turned(turn) {
    rows = static_cast<qt::index_t>(a.shape[turn ? 1 : 0]);
    cols = static_cast<qt::index_t>(a.shape[turn ? 0 : 1]);
  }
  qt::memory_source<qt::f32, qt::matrix_extents> source() const {
    const std::array<qt::index_t, 2> strides =
        turned ? std::array<qt::index_t, 2>{1, rows} : std::array<qt::index_t, 2>{cols, 1};
    return qt::source(numbers.data(), qt::matrix_extents(rows, cols), strides);
  }
  /// Place of element (row, col) in the sample's own order.
  std::size_t at(qt::index_t row, qt::index_t col) const {
    return static_cast<std::size_t>(turned ? col * rows + row : row * cols + col);
  }
};

template <class S>
qt::tensor<S> quantized_by(const matrix& x, const typename S::granularity_type& g) {
  qt::tensor<S> out(qt::matrix_extents(x.rows, x.cols), g);
  const auto source = x.source();
  qt::reference::quantize([&](const auto& index) { return source.number(index); }, out.span());
  return out;
}

/// Whether x becomes `expected` under the scale of a block in which it is the largest, or one of the next larger ones.
template <class S>
bool is_number_of_some_scale(float x, float expected) {
  float scale = qt::exp2i(qt::floor_log2(x) - qt::max_exponent<typename S::code_format>);
  for (int k = 0; k < 8; ++k, scale *= 2) {
    const auto code = qt::quantize_element<S>(x, {scale});
    if (bits_of(qt::dequantize_element<S>(code, {scale})) == bits_of(expected)) return true;
  }
  return false;
}

/// The scale of every element, its code, and its number, where the sample tells them.
template <class S>
void compare(const sample& s, const matrix& x, const qt::tensor<S>& ours, tally& t) {
  using code = typename S::code_format;
  const auto array = [&](const char* name) {
    auto found = s.outputs.find(name);
    return found == s.outputs.end() ? nullptr : &found->second;
  };
  const sample_array *scale = array("scale"), *exponent = array("shared_exp"), *codes = array("codes"),
                     *deq = array("deq");
  REQUIRE((codes != nullptr || deq != nullptr));
  const values their_numbers = deq != nullptr ? deq->floats() : values();
  const auto their_codes = codes != nullptr ? codes->words() : std::vector<std::uint32_t>();
  const bool as_float = scale != nullptr && scale->dtype == "f32";
  const auto their_scales = scale != nullptr ? scale->words() : std::vector<std::uint32_t>();
  const values their_exponents = exponent != nullptr ? exponent->floats() : values();
  const std::size_t blocks = std::max(their_scales.size(), their_exponents.size());
  const qt::index_t across = blocks != 0 ? static_cast<qt::index_t>(blocks) / x.rows : 1;
  const qt::index_t length = x.cols / across;

  const auto view = ours.view();
  for (qt::index_t row = 0; row < x.rows; ++row)
    for (qt::index_t col = 0; col < x.cols; ++col) {
      const float our_scale = view.scale(row, col);
      const auto block = static_cast<std::size_t>(row * across + col / length);
      if (blocks != 0 && col % length == 0) {
        ++t.scales;
        bool same;
        if (exponent != nullptr)
          same = std::isnan(their_exponents[block])
                     ? std::isnan(our_scale)
                     : std::ldexp(1.f, static_cast<int>(their_exponents[block])) == our_scale;
        else if (as_float)
          same = std::isnan(our_scale) ? std::isnan(float_of(their_scales[block]))
                                       : bits_of(our_scale) == their_scales[block];
        else
          same = view.scale_code({row, col}) == their_scales[block];
        if (!same)
          FAIL_CHECK(s.id << ": scale of (" << row << ", " << col << ") is " << our_scale << ", theirs is number "
                          << block);
      }
      const std::size_t at = x.at(row, col);
      const std::uint32_t our_code = view.code(row, col);
      if (codes != nullptr) {
        ++t.codes;
        if (our_code != their_codes[at]) {
          if (s.program == "torchao" && std::isnan(our_scale) && code::bits < 8)
            ++t.excepted[junk_codes];
          else if (s.program == "torchao" && std::isnan(code::decode(our_code)) &&
                   std::isnan(code::decode(their_codes[at])))
            ++t.excepted[nan_spelling];
          else
            FAIL_CHECK(s.id << ": code of (" << row << ", " << col << "), x = " << x.numbers[at] << ", is " << our_code
                            << ", theirs is " << their_codes[at]);
        }
      }
      if (deq != nullptr) {
        ++t.numbers;
        const float mine = qt::reference::value(view, {row, col}), other = their_numbers[at];
        if (std::isnan(other) ? std::isnan(mine) : bits_of(mine) == bits_of(other)) continue;
        if (std::is_same_v<code, qt::mxint8_code> && mine == 0.f && other == 0.f)
          ++t.excepted[unsigned_zero];
        else if (x.turned && is_number_of_some_scale<S>(x.numbers[at], other))
          ++t.excepted[missing_rows];
        else
          FAIL_CHECK(s.id << ": (" << row << ", " << col << "), x = " << x.numbers[at] << ", is " << mine
                          << ", theirs is " << other);
      }
    }
  ++t.cases;
}

template <class Code, class Mode>
void torchao_case(const sample& s, tally& t) {
  const matrix x(s.inputs.at("x"), false);
  using scheme = ao::mx<Code, Mode, qt::dynamic>;
  compare(s, x, quantized_by<scheme>(x, qt::group<qt::dynamic>(std::stoi(s.param("block")))), t);
}

template <class Code>
void torchao_mode(const sample& s, tally& t) {
  const std::string mode = s.param("scale_mode");
  if (mode == "FLOOR")
    torchao_case<Code, ao::floor>(s, t);
  else if (mode == "CEIL")
    torchao_case<Code, ao::ceil>(s, t);
  else if (mode == "EVEN")
    torchao_case<Code, ao::even>(s, t);
  else if (mode == "RCEIL")
    torchao_case<Code, ao::rceil>(s, t);
  else
    FAIL_CHECK("no rule for scale mode " << mode);
}

template <class Code, class Round>
void microxcaling_case(const sample& s, tally& t) {
  const matrix x(s.inputs.at("x"), s.param("axis") == "0");
  const qt::group<qt::dynamic> groups(std::stoi(s.param("block")));
  if (s.param("flush_fp32_subnorms") == "true")
    compare(s, x, quantized_by<mxc::flushed_mx<Code, Round, qt::dynamic>>(x, groups), t);
  else
    compare(s, x, quantized_by<mxc::mx<Code, Round, qt::dynamic>>(x, groups), t);
}

template <class Code>
void microxcaling_round(const sample& s, tally& t) {
  const std::string round = s.param("round");
  if (round == "nearest")
    microxcaling_case<Code, mxc::nearest>(s, t);
  else if (round == "even")
    microxcaling_case<Code, mxc::even>(s, t);
  else if (round == "floor")
    microxcaling_case<Code, mxc::floor>(s, t);
  else
    FAIL_CHECK("no rule for rounding " << round);
}

void torchao_nvfp4(const sample& s, tally& t) {
  const matrix x(s.inputs.at("x"), false);
  if (s.param("levels") == "1")
    compare(s, x, quantized_by<ao::nvfp4>(x, {}), t);
  else
    compare(s, x, ao::nvfp4_below(x.source(), s.inputs.at("per_tensor_scale").floats().at(0)), t);
}

void transformer_engine_nvfp4(const sample& s, tally& t) {
  const matrix x(s.inputs.at("x"), false);
  const float amax = s.inputs.at("global_amax").floats().at(0);
  const bool powers = s.param("pow_2_scales") == "true", squares = s.param("tile") == "[16,16]";
  if (!squares && s.param("tile") != "[1,16]")
    FAIL_CHECK("no rule for tiles of " << s.param("tile"));
  else if (powers && squares)
    compare(s, x, quantized_by<te::nvfp4_powers_2d>(x, {}), t);
  else if (powers)
    compare(s, x, quantized_by<te::nvfp4_powers>(x, {}), t);
  else if (squares)
    compare(s, x, te::quantize<te::nvfp4_2d>(x.source(), amax), t);
  else
    compare(s, x, te::quantize<te::nvfp4>(x.source(), amax), t);
}

void run(const sample& s, tally& t) {
  const std::string code = s.param("format");
  if (s.program == "torchao" && s.op == "nvfp4_quantize")
    torchao_nvfp4(s, t);
  else if (s.program == "TransformerEngine" && s.op == "nvfp4_quantize")
    transformer_engine_nvfp4(s, t);
  else if (s.program == "torchao" && s.op == "mx_quantize") {
    if (code == "f8_e4m3fn")
      torchao_mode<qt::e4m3>(s, t);
    else if (code == "f8_e5m2")
      torchao_mode<qt::e5m2>(s, t);
    else if (code == "f6_e2m3")
      torchao_mode<qt::e2m3>(s, t);
    else if (code == "f6_e3m2")
      torchao_mode<qt::e3m2>(s, t);
    else if (code == "f4_e2m1")
      torchao_mode<qt::e2m1>(s, t);
    else
      FAIL_CHECK("no rule for format " << code);
  } else if (s.program == "microxcaling" && s.op == "mx_quantize_dequantize") {
    if (code == "f8_e4m3fn")
      microxcaling_round<qt::e4m3>(s, t);
    else if (code == "f8_e5m2")
      microxcaling_round<qt::e5m2>(s, t);
    else if (code == "f6_e2m3")
      microxcaling_round<qt::e2m3>(s, t);
    else if (code == "f6_e3m2")
      microxcaling_round<qt::e3m2>(s, t);
    else if (code == "f4_e2m1")
      microxcaling_round<qt::e2m1>(s, t);
    else if (code == "mxint8")
      microxcaling_round<qt::mxint8_code>(s, t);
    else
      FAIL_CHECK("no rule for format " << code);
  } else
    FAIL_CHECK("no rule for this case: program " << s.program << ", op " << s.op);
}

}  // namespace

TEST_CASE("mx: scales, codes and numbers of torchao, microxcaling and TransformerEngine, or a listed exception") {
  const std::string reason = why_not("mx");
  if (!reason.empty()) {
    MESSAGE("skipped: ", reason);
    return;
  }
  tally t;
  const auto samples = read_samples("mx");
  for (const sample& s : samples) {
    INFO("case ", s.id);
    run(s, t);
  }
  CHECK(t.cases == samples.size());
  CHECK(t.cases > 0);
  MESSAGE(t.cases, " cases: ", t.scales, " scales, ", t.codes, " codes and ", t.numbers, " numbers compared");
  for (int e = 0; e < exception_count; ++e) MESSAGE(t.excepted[e], " exceptions: ", reasons[e]);
}
