// EXPECT: qtensor: CANN packs two FP4 codes a byte; the last extent must be even.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/compat/cann.hpp>

namespace qt = qtensor;
namespace cann = qtensor::compat::cann;
const std::uint16_t* x = nullptr;
template <qt::index_t N>
using rows = qt::extents<qt::dynamic, N>;
#ifdef QTENSOR_VALID
auto use() { return cann::dynamic_mx_quant<qt::e2m1>(qt::source<qt::bf16>(x, rows<34>(2))); }
#else
auto use() { return cann::dynamic_mx_quant<qt::e2m1>(qt::source<qt::bf16>(x, rows<33>(2))); }
#endif
