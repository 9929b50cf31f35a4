// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "attempt/order.h"
#include "base/result.h"
#include "core/gpu_isolation.h"
#include "runner/cgroups.h"

namespace gflow::runner {

/// By what means jobs are kept from GPUs they were not given, for people, where `wanted`, which is
/// not None, is to do it. Errors: why it cannot.
[[nodiscard]] Result<std::string> isolation_by(GpuIsolation wanted, const Cgroups& cgroups);
/// What to do where it cannot and has to.
[[nodiscard]] std::string_view isolation_advice(GpuIsolation wanted);

/// What does so for an attempt.
[[nodiscard]] GpuIsolation isolation_of(const attempt::Order& order);

}  // namespace gflow::runner
