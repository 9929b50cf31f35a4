// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "base/result.h"
#include "os/user.h"

namespace gflow::server {

/// Which way somebody came.
enum class Via { Unix, Tcp };

/// Who connected.
struct Guest {
  os::Peer peer;
  Via via = Via::Unix;
  /// Why nothing is done for them; told in answer to what they ask.
  std::optional<Error> refusal = {};
};

}  // namespace gflow::server
