// SPDX-License-Identifier: Apache-2.0
#include "daemon/open_files.h"

#include <cstdint>

#include "base/translate.h"
#include "core/file_budget.h"
#include "os/host.h"

namespace gflow::daemon {

Result<void> check_open_files() {
  const std::uint64_t most = os::most_open_files();
  if (most >= kLeastFiles) return {};
  return fail(Code::Failure,
              tr_format("gflowd needs at least {} open files and may have {} here: raise the limit "
                        "('ulimit -n', or LimitNOFILE= of its service)",
                        kLeastFiles,
                        most));
}

}  // namespace gflow::daemon
