// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <iosfwd>
#include <optional>
#include <string>

#include "base/listen_address.h"
#include "base/result.h"
#include "kube/access.h"

namespace gflow::kube {

struct Options {
  AccessWish access;
  std::string name = "gflow";               ///< schedulerName of the pods it is for
  std::string name_space = "gflow-system";  ///< of its Lease
  std::chrono::seconds lease{15};
  int writers = 16;                       ///< requests at once
  bool preempt = false;                   ///< pods are evicted for those of a higher priority
  bool defrag = false;                    ///< pods are moved where somebody asks for that
  std::optional<ListenAddress> listen{};  ///< where it shows how it does
};

/// The scheduler of a cluster, until a signal ends it. Errors: Permission and Unreachable of a
/// cluster that cannot be used; what os::listen_tcp says of an address; WrongState where the lease
/// was lost: what comes next begins anew.
[[nodiscard]] Result<void> serve(const Options& options, std::ostream& log);

}  // namespace gflow::kube
