// What a refused call says, for tests of run-time checks.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/core/error.hpp>
#include <string>

/// The sentence of the qtensor::error that `call` throws.
template <class Call>
std::string sentence(Call call) {
  try {
    call();
  } catch (const qtensor::error& e) {
    return e.what();
  }
  return "nothing was thrown";
}
