// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace gflow::dra {

/// A claim as a kubelet names it.
struct ClaimName {
  std::string name_space;
  std::string name;
  std::string uid;

  [[nodiscard]] std::string full_name() const { return name_space + "/" + name; }
};

/// A device that was made ready, as a kubelet is told of it.
struct ReadyDevice {
  std::string request;
  std::string pool;
  std::string device;
  std::string share_id;  ///< "" of one that is nobody's else
  std::string cdi;       ///< "vendor/class=name"; "" where another one of the request has it
};

/// How a device is.
struct DeviceHealth {
  std::string pool;
  std::string device;
  bool is_healthy = false;
  std::string message;  ///< what is wrong with it

  friend bool operator==(const DeviceHealth&, const DeviceHealth&) = default;
};

/// Serves the kubelet of this node on two sockets below its directory, by threads of its own: one
/// where it looks for plugins, and one for claims.
class KubeletServer {
 public:
  /// Called by those threads, several at once.
  struct Handlers {
    /// `is_given_up`: whoever asked does not wait any more.
    std::function<Result<std::vector<ReadyDevice>>(const ClaimName&,
                                                   const std::function<bool()>& is_given_up)>
        prepare;
    std::function<Result<void>(const ClaimName&)> unprepare;
    /// Of all devices.
    std::function<std::vector<DeviceHealth>()> health;
    /// It took the driver up ("") or says why not.
    std::function<void(const std::string& why)> registered;
  };

  /// Errors: of the directories and sockets.
  [[nodiscard]] static Result<std::unique_ptr<KubeletServer>> listen(const std::string& kubelet,
                                                                     const std::string& driver,
                                                                     Handlers handlers);
  KubeletServer();
  ~KubeletServer();
  KubeletServer(const KubeletServer&) = delete;
  KubeletServer& operator=(const KubeletServer&) = delete;

  /// Whether a kubelet still finds both.
  [[nodiscard]] bool is_found() const;

 private:
  class ClaimService;
  class HealthService;
  class RegistrationService;
  class Running;
  std::unique_ptr<Running> running_;
};

}  // namespace gflow::dra
