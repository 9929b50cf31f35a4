// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "store/store.h"

namespace gflow::daemon {

/// Slices of MIG do not outlive a boot, and what somebody makes in the next one may have the same
/// UUIDs again. Forgets those of another boot than this one, in the store, too.
[[nodiscard]] Result<void> forget_slices_of_another_boot(store::Loaded& loaded,
                                                         store::Store& store,
                                                         const std::string& boot_id);

}  // namespace gflow::daemon
