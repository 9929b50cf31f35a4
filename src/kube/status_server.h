// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/listen_address.h"
#include "base/result.h"

namespace gflow::kube {

struct Page {
  int status = 200;
  std::string text;
  std::string type = "text/plain; charset=utf-8";
};
/// What makes each page, by its path. Called by the server's thread, which nobody may keep waiting.
using Pages = std::map<std::string, std::function<Page()>, std::less<>>;

/// What those who connect may take.
struct StatusLimits {
  std::size_t connections = 1024;
  std::chrono::milliseconds patience{10'000};  ///< from being let in to the last byte
};

/// Shows pages over HTTP to whoever can reach it, GET and HEAD, one answer for each connection, on
/// a thread of its own. Nobody who connects keeps those of other hosts (host_of()) from an answer:
/// where there are as many as may be, or no descriptor is left, of the host that has most
/// connections the oldest one ends. A request has 8 KiB.
class StatusServer {
 public:
  /// `address` is told the port it got where it says 0. Errors: those of os::listen_tcp.
  [[nodiscard]] static Result<std::unique_ptr<StatusServer>> listen(ListenAddress& address,
                                                                    Pages pages,
                                                                    StatusLimits limits = {});
  /// Hangs up.
  ~StatusServer();
  StatusServer(const StatusServer&) = delete;
  StatusServer& operator=(const StatusServer&) = delete;

 private:
  class Talk;
  class Talks;
  struct State;
  explicit StatusServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace gflow::kube
