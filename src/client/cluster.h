// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include "base/result.h"
#include "client/http_exchange.h"
#include "os/child.h"

namespace gflow::client {

/// Whether that stands for a cluster in place of the path of a socket: of Kubernetes "kube", which
/// is the one kubectl would ask, or "kube:CONTEXT"; of Slurm "slurm", which is the one sbatch
/// would.
[[nodiscard]] bool is_cluster(std::string_view server);
[[nodiscard]] bool is_slurm(std::string_view server);

/// A cluster, read by a program with the rights of this user: `gflow-kube serve` or gflow-slurm,
/// which answer as gflowd does. Started when it is first asked, for all that is asked after, and
/// ended with this. Any thread.
class Cluster {
 public:
  /// REQUIRES: is_cluster(server).
  explicit Cluster(std::string server) : server_(std::move(server)) {}
  /// Waits for the program's end.
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  /// A connection to it, once it has read the cluster; what it waits for is told as
  /// Silence::tell. Errors: what keeps it from reading; Unreachable and Timeout.
  [[nodiscard]] Result<os::Fd> connect(const Silence& silence);
  /// Another program is to answer what is asked from now on: this one closed a connection before it
  /// had answered. Waits for its end.
  void begin_anew();
  /// The namespace of what is named without one. Errors: as of connect().
  [[nodiscard]] Result<std::string> name_space(const Silence& silence);
  [[nodiscard]] const std::string& server() const { return server_; }
  /// What answers for it: "gflow-slurm".
  [[nodiscard]] std::string program() const;

 private:
  [[nodiscard]] Result<void> start(const Silence& silence);
  void end();
  [[nodiscard]] Result<void> wait_until_ready(const Silence& silence);
  [[nodiscard]] Result<std::string> line(std::chrono::milliseconds most);

  const std::string server_;
  std::mutex mutex_;
  os::Child child_;
  bool is_ready_ = false;
  std::string name_space_;
};

}  // namespace gflow::client
