// What tests include of others, and what that includes: precompiled once for each level (tests/meson.build).
// SPDX-License-Identifier: BSD-3-Clause
//
// Only for speed: every test still includes what it uses, and builds the same without this file. Nothing of qtensor
// belongs here, so that a change of a header rebuilds only the tests that include it.
#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <doctest/doctest.h>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <valarray>
#include <vector>
#include <xsimd/xsimd.hpp>
