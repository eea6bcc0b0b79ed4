// EXPECT: qtensor: these codes do not all have a counterpart of the same value
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/compat/ggml_rows.hpp>
#include <qtensor/scheme/schemes.hpp>

namespace qt = qtensor;
namespace ggml = qtensor::compat::ggml;
#ifdef QTENSOR_VALID
using from = qt::scheme<qt::int4, qt::group<32>>;
#else
using from = qt::scheme<qt::int8, qt::group<32>>;
#endif
auto use(const qt::tensor<from>& t) { return ggml::to_blocks<ggml::q4_0>(t); }
