// EXPECT: qtensor: from_blocks<S> makes planar tensors
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/compat/ggml_rows.hpp>
#include <qtensor/scheme/schemes.hpp>

namespace qt = qtensor;
namespace ggml = qtensor::compat::ggml;
#ifdef QTENSOR_VALID
using to = qt::scheme<qt::int8, qt::group<32>, qt::scale_as<qt::f16>>;
#else
using to = ggml::q8_1;
#endif
auto use(const qt::tensor<ggml::q8_0>& t) { return ggml::from_blocks<to>(t); }
