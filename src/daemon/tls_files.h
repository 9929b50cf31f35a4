// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "os/paths.h"
#include "server/tls_context.h"
#include "settings/settings.h"

namespace gflow::daemon {

/// What other machines call this one by.
[[nodiscard]] std::vector<std::string> host_names(const settings::Settings& settings);

/// What gflowd shows other machines: the certificate that [api] names, or its own, which is made if
/// it is not there yet. REQUIRES: tls_listen is set. Errors: as server::check_tls_files().
[[nodiscard]] Result<server::TlsFiles> tls_files(const settings::Settings& settings,
                                                 const os::Paths& paths);

}  // namespace gflow::daemon
