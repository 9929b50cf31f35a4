// SPDX-License-Identifier: Apache-2.0
#pragma once

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

/// Writes allocations and whom they are reserved for, of bind.devices. Asked for again it changes
/// nothing. `may_write` is asked before each request that changes something.
[[nodiscard]] DevicesWritten write_devices(Api& api,
                                           const Bind& bind,
                                           const std::function<bool()>& may_write);

/// The pod is not bound: they are reserved for it no more, and what nobody else has is free. What
/// cannot be written now is as kube-scheduler leaves it: the claims keep what they have.
[[nodiscard]] Result<void> give_back_devices(Api& api, const Bind& bind);

}  // namespace gflow::kube
