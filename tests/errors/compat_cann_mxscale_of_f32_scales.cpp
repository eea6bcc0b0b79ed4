// EXPECT: qtensor: mxscale1 and mxscale2 are layouts of the e8m0 scales of row_major tensors.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/compat/cann.hpp>

namespace qt = qtensor;
namespace cann = qtensor::compat::cann;

#ifdef QTENSOR_VALID
auto use(const qt::tensor<cann::mx<qt::e4m3>>& t) { return cann::mxscale1(t); }
#else
auto use(const qt::tensor<qt::scheme<qt::int8, qt::group<32>>>& t) { return cann::mxscale1(t); }
#endif
