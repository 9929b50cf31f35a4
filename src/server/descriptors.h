// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace gflow::server {

/// How many descriptors connections and the logs they read may have together: half of what this
/// process may have open beside its own, as jobs need them, too (two each while they run).
[[nodiscard]] std::size_t descriptors_for_clients();
/// Of these, for logs: so many are read at once, as most connections read none.
[[nodiscard]] std::size_t descriptors_for_logs();

}  // namespace gflow::server
