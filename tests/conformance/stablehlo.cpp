// StableHLO's own test vectors against compat/stablehlo*.hpp: its interpreter tests, JAX's testdata, quantized models.
// SPDX-License-Identifier: BSD-3-Clause
//
// A case is a list of operations, run here from the first to the last. Operations that only move elements (bitcast,
// broadcast, pad, reshape, slice, transpose) are the reader's. An operation that nobody knows fails. Every element must
// be equal, also where upstream only asks for closeness or for nothing.
#include <doctest/doctest.h>

#include <algorithm>
#include <qtensor/compat/stablehlo_products.hpp>
#include <qtensor/compat/stablehlo_reduce.hpp>
#include <set>
#include <sstream>

#include "oracle/json.hpp"

#if QTENSOR_TEST_HAS_JSON

namespace {

namespace shlo = qtensor::compat::stablehlo;
using oracle::sample;
using oracle::sample_array;
using qtensor::index_t;
using shlo::basic_type;
using shape_type = std::vector<index_t>;

const std::map<std::string, shlo::unary> unaries = {{"abs", shlo::unary::abs},
                                                    {"ceil", shlo::unary::ceil},
                                                    {"floor", shlo::unary::floor},
                                                    {"negate", shlo::unary::negate},
                                                    {"sign", shlo::unary::sign}};
const std::map<std::string, shlo::binary> binaries = {
    {"add", shlo::binary::add},         {"and", shlo::binary::and_},         {"divide", shlo::binary::divide},
    {"maximum", shlo::binary::maximum}, {"minimum", shlo::binary::minimum},  {"multiply", shlo::binary::multiply},
    {"or", shlo::binary::or_},          {"subtract", shlo::binary::subtract}};
const std::map<std::string, shlo::direction> directions = {{"EQ", shlo::direction::eq}, {"NE", shlo::direction::ne},
                                                           {"GE", shlo::direction::ge}, {"GT", shlo::direction::gt},
                                                           {"LE", shlo::direction::le}, {"LT", shlo::direction::lt}};

// ---- types and attributes as text ----

/// "tensor<2x3x!quant.uniform<...>>" as a shape and an element type.
struct tensor_type {
  shape_type shape;
  shlo::element_type element;
};
tensor_type tensor_type_of(const std::string& text) {
  const std::string head = "tensor<";
  if (text.compare(0, head.size(), head) != 0 || text.back() != '>')
    throw std::runtime_error("not a tensor type: " + text);
  std::string rest = text.substr(head.size(), text.size() - head.size() - 1);
  shape_type shape;
  while (!rest.empty() && std::isdigit(static_cast<unsigned char>(rest[0])) != 0) {
    const auto x = rest.find('x');
    shape.push_back(std::stoll(rest.substr(0, x)));
    rest = rest.substr(x + 1);
  }
  return {shape, shlo::parse_type(rest)};
}

/// The result of "(tensor<...>, tensor<...>) -> tensor<...>", or of a type alone.
tensor_type result_type(const nlohmann::json& op) {
  std::string text = op.at("type").get<std::string>();
  const auto arrow = text.find("->");
  if (arrow != std::string::npos) text = text.substr(text.find_first_not_of(' ', arrow + 2));
  return tensor_type_of(text);
}

/// A list of numbers, given as such or as the text "[0, 1]".
shape_type numbers(const nlohmann::json& attrs, const std::string& name) {
  const nlohmann::json& value = attrs.at(name);
  return value.is_string() ? nlohmann::json::parse(value.get<std::string>()).get<shape_type>()
                           : value.get<shape_type>();
}

shlo::window_attributes windows(const nlohmann::json& attrs) {
  shlo::window_attributes w;
  w.window_dimensions = numbers(attrs, "window_dimensions");
  if (attrs.contains("window_strides")) w.window_strides = numbers(attrs, "window_strides");
  if (attrs.contains("base_dilations")) w.base_dilations = numbers(attrs, "base_dilations");
  if (attrs.contains("window_dilations")) w.window_dilations = numbers(attrs, "window_dilations");
  if (attrs.contains("padding")) w.padding = attrs.at("padding").get<std::vector<std::array<index_t, 2>>>();
  return w;
}

/// A region of one operation on (%arg0, %arg1), which all regions here are.
shlo::binary binary_region(const nlohmann::json& region) {
  REQUIRE(region.size() == 2);
  CHECK(region[0].at("operands") == nlohmann::json{"%arg0", "%arg1"});
  return binaries.at(region[0].at("op").get<std::string>());
}

/// "[0, 1] x [1, 0]" as two lists.
std::array<shape_type, 2> two_lists(const nlohmann::json& attrs, const std::string& name) {
  if (!attrs.contains(name)) return {};
  const std::string text = attrs.at(name).get<std::string>();
  const auto x = text.find('x');
  return {nlohmann::json::parse(text.substr(0, x)).get<shape_type>(),
          nlohmann::json::parse(text.substr(x + 1)).get<shape_type>()};
}

/// "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]": where each letter or number stands in each list.
shlo::convolution_dimension_numbers convolution_numbers(const std::string& text) {
  std::vector<std::map<std::string, index_t>> lists;
  std::string word;
  index_t place = 0;
  for (char c : text) {
    if (c == '[') {
      lists.emplace_back();
      place = 0;
    } else if (c == ',' || c == ']') {
      lists.back()[word] = place++;
      word.clear();
    } else if (std::isalnum(static_cast<unsigned char>(c)) != 0 && c != 'x') {
      word += c;
    }
  }
  shlo::convolution_dimension_numbers d;
  d.input_batch = lists.at(0).at("b");
  d.input_feature = lists.at(0).at("f");
  d.kernel_input_feature = lists.at(1).at("i");
  d.kernel_output_feature = lists.at(1).at("o");
  d.output_batch = lists.at(2).at("b");
  d.output_feature = lists.at(2).at("f");
  for (int i = 0; lists[0].count(std::to_string(i)) != 0; ++i) {
    d.input_spatial.push_back(lists[0].at(std::to_string(i)));
    d.kernel_spatial.push_back(lists[1].at(std::to_string(i)));
    d.output_spatial.push_back(lists[2].at(std::to_string(i)));
  }
  return d;
}

/// "{stride = [2, 2], pad = [[3, 3], [3, 3]]}" and the two group counts.
shlo::convolution_attributes convolution_attributes(const nlohmann::json& attrs) {
  shlo::convolution_attributes c;
  const std::string text = attrs.at("window").get<std::string>();
  const auto list = [&](const std::string& name) {
    const auto at = text.find(name + " = ");
    if (at == std::string::npos) return nlohmann::json::array();
    const auto first = text.find('[', at);
    int depth = 0;
    auto last = first;
    do depth += text[last] == '[' ? 1 : text[last] == ']' ? -1 : 0;
    while (++last < text.size() && depth > 0);
    return nlohmann::json::parse(text.substr(first, last - first));
  };
  c.window_strides = list("stride").get<shape_type>();
  c.lhs_dilation = list("lhs_dilate").get<shape_type>();
  c.rhs_dilation = list("rhs_dilate").get<shape_type>();
  c.padding = list("pad").get<std::vector<std::array<index_t, 2>>>();
  c.feature_group_count = std::stoll(attrs.at("feature_group_count").get<std::string>());
  c.batch_group_count = std::stoll(attrs.at("batch_group_count").get<std::string>());
  return c;
}

// ---- operations that move elements ----

/// Index of every axis of the element at a place in row-major order, and back.
shape_type index_of(index_t place, const shape_type& shape) {
  shape_type index(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0; place /= shape[axis]) index[axis] = place % shape[axis];
  return index;
}
index_t place_of(const shape_type& index, const shape_type& shape) {
  index_t place = 0;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) place = place * shape[axis] + index[axis];
  return place;
}

/// A result whose element at an index is that of x at from(index).
template <class From>
shlo::tensor moved(const shlo::tensor& x, const tensor_type& type, From from) {
  shlo::tensor y(type.element, type.shape);
  for (index_t i = 0; i < y.size(); ++i) y.set(i, x.at(place_of(from(index_of(i, type.shape)), x.shape())));
  return y;
}

shlo::tensor move_elements(const std::string& op, const nlohmann::json& attrs, const tensor_type& type,
                           const std::vector<const shlo::tensor*>& x) {
  if (op == "bitcast_convert") return x[0]->bitcast(type.element);
  if (op == "reshape")
    return moved(*x[0], type, [&](const shape_type& at) { return index_of(place_of(at, type.shape), x[0]->shape()); });
  if (op == "transpose") {
    const shape_type dims = numbers(attrs, "dims");
    return moved(*x[0], type, [&](const shape_type& at) {
      shape_type from(at.size());
      for (std::size_t axis = 0; axis < at.size(); ++axis) from[static_cast<std::size_t>(dims[axis])] = at[axis];
      return from;
    });
  }
  if (op == "broadcast_in_dim") {
    const shape_type dims = numbers(attrs, "dims");
    return moved(*x[0], type, [&](const shape_type& at) {
      shape_type from;
      for (std::size_t axis = 0; axis < dims.size(); ++axis)
        from.push_back(x[0]->shape()[axis] == 1 ? 0 : at[static_cast<std::size_t>(dims[axis])]);
      return from;
    });
  }
  if (op == "slice") {
    const auto slices = attrs.at("slices").get<std::vector<shape_type>>();
    return moved(*x[0], type, [&](shape_type at) {
      for (std::size_t axis = 0; axis < at.size(); ++axis)
        at[axis] = slices[axis][0] + at[axis] * (slices[axis].size() > 2 ? slices[axis][2] : 1);
      return at;
    });
  }
  REQUIRE(op == "pad");
  const shape_type low = numbers(attrs, "low"), interior = numbers(attrs, "interior");
  shlo::tensor y(type.element, type.shape);
  for (index_t i = 0; i < y.size(); ++i) {
    shape_type at = index_of(i, type.shape);
    bool inside = true;
    for (std::size_t axis = 0; axis < at.size(); ++axis) {
      const index_t step = interior[axis] + 1, place = at[axis] - low[axis];
      inside = inside && place >= 0 && place % step == 0 && place / step < x[0]->shape()[axis];
      at[axis] = place / step;
    }
    y.set(i, inside ? x[0]->at(place_of(at, x[0]->shape())) : x[1]->at(0));
  }
  return y;
}
const std::set<std::string> movers = {"bitcast_convert", "broadcast_in_dim", "pad", "reshape", "slice", "transpose"};

// ---- running a case ----

shlo::tensor tensor_of(const sample_array& a, const shlo::element_type& type, const shape_type& shape) {
  shlo::tensor t(type, shape);
  if (a.bytes.size() != t.bytes().size()) throw std::runtime_error("an array's bytes do not match its type");
  std::memcpy(t.bytes().data(), a.bytes.data(), a.bytes.size());
  return t;
}

/// The operand types of "(tensor<...>, tensor<...>) -> ...", or as many of the one type as there are operands.
std::vector<std::string> operand_types(const nlohmann::json& op) {
  const std::string text = op.at("type").get<std::string>();
  const auto arrow = text.find("->");
  if (arrow == std::string::npos) return std::vector<std::string>(op.at("operands").size(), text);
  std::vector<std::string> out;
  int depth = 0;
  std::string word;
  for (char c : text.substr(1, text.rfind(')', arrow) - 1)) {
    depth += (c == '<' || c == '{') ? 1 : (c == '>' || c == '}') ? -1 : 0;
    if (c == ',' && depth == 0) {
      out.push_back(word);
      word.clear();
    } else if (c != ' ' || !word.empty()) {
      word += c;
    }
  }
  if (!word.empty()) out.push_back(word);
  return out;
}

class run {
 public:
  explicit run(const sample& s) : sample_(s) {
    for (const auto& op : nlohmann::json::parse(s.params.at("ops"))) step(op);
  }
  const shlo::tensor& value(const std::string& name) const { return values_.at(name); }

 private:
  /// The operands, constants among them given the type that the operation says.
  std::vector<const shlo::tensor*> operands(const nlohmann::json& op) {
    const auto types = operand_types(op);
    std::vector<const shlo::tensor*> out;
    for (std::size_t i = 0; i < op.at("operands").size(); ++i) {
      const std::string name = op.at("operands")[i].get<std::string>();
      if (values_.count(name) == 0) {
        const tensor_type type = tensor_type_of(types.at(i));
        values_.emplace(name, tensor_of(sample_.inputs.at(name), type.element, type.shape));
      }
      out.push_back(&values_.at(name));
    }
    return out;
  }
  void step(const nlohmann::json& op) {
    const std::string name = op.at("op").get<std::string>();
    INFO("operation ", name);
    const tensor_type type = result_type(op);
    const auto x = operands(op);
    shlo::tensor y(basic_type::i1, {});
    if (movers.count(name) != 0)
      y = move_elements(name, op.at("attrs"), type, x);
    else if (name == "uniform_quantize")
      y = shlo::uniform_quantize(*x[0], type.element.quantized());
    else if (name == "uniform_dequantize")
      y = shlo::uniform_dequantize(*x[0]);
    else if (unaries.count(name) != 0)
      y = shlo::elementwise(unaries.at(name), *x[0], type.element);
    else if (binaries.count(name) != 0)
      y = shlo::elementwise(binaries.at(name), *x[0], *x[1], type.element);
    else if (name == "reduce" || name == "reduce_window")
      y = fold(op, x, type.element);
    else if (name == "select_and_scatter")
      y = scatter(op, x, type.element);
    else if (name == "dot_general")
      y = dot(op, x, type.element);
    else if (name == "convolution")
      y = shlo::convolution(*x[0], *x[1], convolution_numbers(op.at("attrs").at("dim_numbers").get<std::string>()),
                            convolution_attributes(op.at("attrs")), type.element);
    else
      throw std::runtime_error("no rule for the operation " + name);
    CHECK(y.type() == type.element);
    CHECK(y.shape() == type.shape);
    values_.insert_or_assign(op.at("result").get<std::string>(), std::move(y));
  }

  /// reduce and reduce_window, whose bodies work in the type of the result.
  static shlo::tensor fold(const nlohmann::json& op, const std::vector<const shlo::tensor*>& x,
                           const shlo::element_type& type) {
    const auto& attrs = op.at("attrs");
    const shlo::binary body =
        attrs.contains("body") ? binaries.at(attrs.at("body").get<std::string>()) : binary_region(op.at("regions")[0]);
    const auto apply = [&](const shlo::scalars& a, const shlo::scalars& b) {
      return shlo::scalars{shlo::apply(body, type, a[0], type, b[0], type)};
    };
    if (op.at("op") == "reduce")
      return shlo::reduce({x[0]}, {x[1]}, numbers(attrs, "dimensions"), {type}, apply, {type})[0];
    return shlo::reduce_window({x[0]}, {x[1]}, windows(attrs), {type}, apply, {type})[0];
  }
  static shlo::tensor dot(const nlohmann::json& op, const std::vector<const shlo::tensor*>& x,
                          const shlo::element_type& type) {
    const auto batching = two_lists(op.at("attrs"), "batching_dims");
    const auto contracting = two_lists(op.at("attrs"), "contracting_dims");
    return shlo::dot_general(*x[0], *x[1], {batching[0], batching[1], contracting[0], contracting[1]}, type);
  }
  static shlo::tensor scatter(const nlohmann::json& op, const std::vector<const shlo::tensor*>& x,
                              const shlo::element_type& type) {
    const auto& select = op.at("regions")[0][0];
    REQUIRE(select.at("op") == "compare");
    const auto direction = directions.at(select.at("attrs").at("direction").get<std::string>());
    const shlo::binary body = binary_region(op.at("regions")[1]);
    const shlo::element_type& from = x[0]->type();
    return shlo::select_and_scatter(
        *x[0], *x[1], *x[2], windows(op.at("attrs")),
        [&](const shlo::scalar& a, const shlo::scalar& b) { return shlo::compare(direction, from, a, from, b); }, type,
        [&](const shlo::scalar& a, const shlo::scalar& b) { return shlo::apply(body, type, a, type, b, type); }, type);
  }

  const sample& sample_;
  std::map<std::string, shlo::tensor> values_;
};

}  // namespace

TEST_CASE("stablehlo: every case of its test vectors is ours") {
  const std::string reason = oracle::why_not("stablehlo");
  if (!reason.empty()) {
    MESSAGE("skipped: ", reason);
    return;
  }
  std::size_t cases = 0, elements = 0;
  const auto samples = oracle::read_samples("stablehlo");
  for (const sample& s : samples) {
    INFO("case ", s.id);
    const run ours(s);
    for (const auto& [name, array] : s.outputs) {
      const shlo::tensor& y = ours.value(name);
      const shlo::tensor theirs = tensor_of(array, y.type(), y.shape());
      for (index_t i = 0; i < y.size(); ++i) {
        const double a = y.at(i).real, b = theirs.at(i).real;
        if (y.at(i) == theirs.at(i) || (std::isnan(a) && std::isnan(b))) continue;
        std::ostringstream line;
        line << name << "[" << i << "] is " << a << " (" << static_cast<double>(y.at(i).integer) << "), theirs " << b
             << " (" << static_cast<double>(theirs.at(i).integer) << ")";
        FAIL_CHECK(line.str());
      }
      elements += static_cast<std::size_t>(y.size());
    }
    ++cases;
  }
  CHECK(cases == samples.size());
  MESSAGE(cases, " cases, ", elements, " elements compared, all equal");
}

#else

TEST_CASE("stablehlo: every case of its test vectors is ours") { MESSAGE("skipped: ", oracle::why_not("stablehlo")); }

#endif
