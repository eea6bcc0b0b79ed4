// ONNX models of one node as text: protocol buffers written by hand, so that no library for them is needed.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <qtensor/core/support.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace bench::onnx {

using qtensor::index_t;

/// A message of protocol buffers, field by field.
class message {
 public:
  message& number(int field, std::uint64_t value) {
    varint(static_cast<std::uint64_t>(field) << 3);
    varint(value);
    return *this;
  }
  message& bytes(int field, std::string_view value) {
    varint(static_cast<std::uint64_t>(field) << 3 | 2);
    varint(value.size());
    text_ += value;
    return *this;
  }
  message& part(int field, const message& m) { return bytes(field, m.text_); }
  const std::string& text() const { return text_; }

 private:
  void varint(std::uint64_t v) {
    for (; v >= 0x80; v >>= 7) text_ += static_cast<char>(v | 0x80);
    text_ += static_cast<char>(v);
  }
  std::string text_;
};

/// Sizes of a tensor.
using dims = std::vector<std::int64_t>;
inline message value_info(std::string_view name, int type, const dims& sizes) {
  message shape;
  for (std::int64_t n : sizes) shape.part(1, message().number(1, static_cast<std::uint64_t>(n)));
  return message().bytes(1, name).part(
      2, message().part(1, message().number(1, static_cast<std::uint64_t>(type)).part(2, shape)));
}
inline message initializer(std::string_view name, int type, const dims& sizes, const void* data, index_t bytes) {
  message tensor;
  for (std::int64_t n : sizes) tensor.number(1, static_cast<std::uint64_t>(n));
  return tensor.number(2, static_cast<std::uint64_t>(type))
      .bytes(8, name)
      .bytes(9, {static_cast<const char*>(data), static_cast<std::size_t>(bytes)});
}
inline message attribute(std::string_view name, index_t value) {
  return message().bytes(1, name).number(3, static_cast<std::uint64_t>(value)).number(20, 2);
}

/// A model of a graph and the operator sets it takes: ONNX's own, and Microsoft's.
inline std::string model_of(message& graph) {
  return message()
      .number(1, 10)
      .part(8, message().bytes(1, "").number(2, 21))
      .part(8, message().bytes(1, "com.microsoft").number(2, 1))
      .part(7, graph.bytes(2, "one node"))
      .text();
}

}  // namespace bench::onnx
