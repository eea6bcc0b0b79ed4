// EXPECT-FIRST: qtensor: an interleaved scheme stores scales between its codes; use a tensor or a view of it.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/kernels.hpp>
#include <qtensor/scheme/schemes.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
using S = qt::scheme<qt::int8, qt::group<32>, qt::scale_as<qt::f16>>;
#else
using S = qt::scheme<qt::int8, qt::group<32>, qt::scale_as<qt::f16>, qt::interleaved<>>;
#endif
void use(const qt::detail::code_unit_t<S>* codes, float* out) { qt::kernels::dequantize<S>(codes, 32, 0.5f, out); }
