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
  /// Called by those threads, several at once.
  struct Handlers {
    /// A container gets these tickets, which another one may have had.
    std::function<void(const std::string& resource, const Tickets& tickets)> allocated;
    /// A container that has them is about to start. An error is what its pod is told.
    std::function<Result<void>(const std::string& resource, const Tickets& tickets)> starts;
  };

  /// Errors: of the socket.
  [[nodiscard]] static Result<std::unique_ptr<ResourceServer>> listen(const std::string& socket,
                                                                      const std::string& resource,
                                                                      Handlers handlers);
  ResourceServer();
  ~ResourceServer();
  ResourceServer(const ResourceServer&) = delete;
  ResourceServer& operator=(const ResourceServer&) = delete;

  /// What there is; a kubelet that listens is told where that changes.
  void offer(const Tickets& tickets);

 private:
  class Service;
  class Running;
  std::unique_ptr<Running> running_;
};

}  // namespace gflow::deviceplugin
