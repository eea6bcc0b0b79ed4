// EXPECT: qtensor: an operation runs on one executor
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/compat/onednn_reorder.hpp>

namespace qt = qtensor;
namespace dnn = qtensor::compat::onednn;
void use(std::span<const qt::index_t> dims, const float* from, float* to) {
#ifdef QTENSOR_VALID
  dnn::reorder(dims, dnn::data_type::f32, from, dnn::data_type::f32, to, {}, qt::on(qt::serial()));
#else
  dnn::reorder(dims, dnn::data_type::f32, from, dnn::data_type::f32, to, {}, qt::on(qt::serial()),
               qt::on(qt::serial()));
#endif
}
