// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "deviceplugin/kubelet.h"

namespace gflow::deviceplugin {

/// Offers one resource to the kubelet, on a socket of its own, by threads of its own.
class ResourceServer {
 public:
  /// Called by those threads, several at once, before a container starts that has these tickets.
  /// An error is what its pod is told.
  using Start = std::function<Result<void>(const std::string& resource, const Tickets& tickets)>;

  /// Errors: of the socket.
  [[nodiscard]] static Result<std::unique_ptr<ResourceServer>> listen(const std::string& socket,
                                                                      const std::string& resource,
                                                                      Start start);
  ResourceServer();
  ~ResourceServer();
  ResourceServer(const ResourceServer&) = delete;
  ResourceServer& operator=(const ResourceServer&) = delete;

  /// What there is; a kubelet that listens is told where that changes. Healthy ones are given to
  /// containers.
  void offer(const Tickets& healthy, const Tickets& unhealthy);

 private:
  class Service;
  class Running;
  std::unique_ptr<Running> running_;
};

}  // namespace gflow::deviceplugin
