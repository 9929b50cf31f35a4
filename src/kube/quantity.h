// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace gflow::kube {

/// A quantity of Kubernetes in thousandths, rounded up: 500 of "500m", 2'147'483'648'000 of "2Gi".
/// What is more than fits is the most that fits. Errors: Usage for what is none.
[[nodiscard]] Result<std::int64_t> read_milli(std::string_view text);
/// The same in 10,000ths, as shares of a GPU are counted.
[[nodiscard]] Result<std::int64_t> read_ten_thousandths(std::string_view text);
/// The same in whole units, rounded up: bytes, devices, pods.
[[nodiscard]] Result<std::int64_t> read_whole(std::string_view text);

}  // namespace gflow::kube
