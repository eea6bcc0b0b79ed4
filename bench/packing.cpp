// Operations: codes of 4 and 6 bits, one a byte, to packed ones and back.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/simd/nibbles.hpp>

#include "operation.hpp"

namespace bench {

namespace {

template <int Bits>
void add_packing_of(operations& all, const std::string& label) {
  using arch = qt::simd::best_arch;
  operation op;
  op.number = "";
  op.code = Bits == 4 ? "nibbles" : "six bits";
  op.number_bytes = 1;
  op.code_bytes = Bits / 8.;
  op.prepare = [](const task& t) {
    auto* bytes = static_cast<std::uint8_t*>(t.numbers);
    for (index_t i = 0; i < t.size(); ++i) bytes[i] = static_cast<std::uint8_t>((i * 2654435761u >> 13) % (1 << Bits));
    qt::simd::pack_codes<arch, Bits>(bytes, t.size(), t.codes);
  };
  op.what = verb::pack;
  op.name = "pack " + label;
  op.ours = [](const task& t) {
    return t.by_rows([bytes = static_cast<const std::uint8_t*>(t.numbers), packed = t.codes, cols = t.cols](
                         index_t row, index_t rows) {
      qt::simd::pack_codes<arch, Bits>(bytes + row * cols, rows * cols, packed + row * cols * Bits / 8);
    });
  };
  all.push_back(op);
  op.what = verb::unpack;
  op.name = "unpack " + label;
  op.ours = [](const task& t) {
    return t.by_rows(
        [bytes = static_cast<std::uint8_t*>(t.numbers), packed = t.codes, cols = t.cols](index_t row, index_t rows) {
          qt::simd::unpack_codes<arch, Bits>(packed + row * cols * Bits / 8, rows * cols, bytes + row * cols);
        });
  };
  all.push_back(std::move(op));
}

}  // namespace

void add_packing(operations& all) {
  add_packing_of<4>(all, "nibbles");
  add_packing_of<6>(all, "6-bit codes");
}

}  // namespace bench
