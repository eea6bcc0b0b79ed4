// The target that makes foreign.hpp's precompiled form has this source, which is empty.
// SPDX-License-Identifier: BSD-3-Clause
