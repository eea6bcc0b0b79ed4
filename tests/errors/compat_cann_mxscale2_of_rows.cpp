// EXPECT: qtensor: mxscale1 lays out scales of groups along the last axis
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/compat/cann.hpp>

namespace qt = qtensor;
namespace cann = qtensor::compat::cann;

#ifdef QTENSOR_VALID
auto use(const qt::tensor<cann::mx<qt::e4m3>>& rows) { return cann::mxscale1(rows); }
#else
auto use(const qt::tensor<cann::mx<qt::e4m3>>& rows) { return cann::mxscale2(rows); }
#endif
