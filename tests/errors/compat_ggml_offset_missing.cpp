// EXPECT: qtensor: ggml's blocks hold scales, and offsets in q4_1 and q5_1
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/compat/ggml_rows.hpp>
#include <qtensor/scheme/schemes.hpp>

namespace qt = qtensor;
namespace ggml = qtensor::compat::ggml;
#ifdef QTENSOR_VALID
using from = qt::scheme<qt::uint4, qt::group<32>, qt::offset<qt::f16>, qt::static_only>;
#else
using from = qt::scheme<qt::uint4, qt::group<32>>;
#endif
auto use(const qt::tensor<from>& t) { return ggml::to_blocks<ggml::q4_1>(t); }
