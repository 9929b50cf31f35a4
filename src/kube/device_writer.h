// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "kube/api.h"
#include "kube/scheduler.h"

/// The ResourceClaims of a pod that has its node, before it is bound to it.
namespace gflow::kube {

/// What became of them.
struct DevicesWritten {
  enum class How {
    All,      ///< they are allocated, and reserved for the pod
    Refused,  ///< one is another by now, or the API server has something against it
    Unknown,  ///< nobody answers: to be asked for again
    Ended,    ///< nothing is to be written any more
  };
  How how = How::All;
  std::string why{};            ///< of Refused and Unknown
  bool may_be_written = false;  ///< some of it
};

/// The API server, as Api::ask().
using Asks = std::function<Result<Answer>(const Request&)>;

/// What may be sent.
struct WriteLease {
  std::function<bool()> may_write;  ///< asked before each request that changes something
  std::chrono::milliseconds limit;  ///< that one may take
};

/// Writes allocations and whom they are reserved for, of bind.devices. Asked for again it changes
/// nothing.
[[nodiscard]] DevicesWritten write_devices(const Asks& ask,
                                           const Bind& bind,
                                           const WriteLease& lease);

/// The pod is not bound: they are reserved for it no more, and what nobody else has is free. Asked
/// for again it does what is left of it.
[[nodiscard]] DevicesWritten give_back_devices(const Asks& ask,
                                               const Bind& bind,
                                               const WriteLease& lease);

}  // namespace gflow::kube
