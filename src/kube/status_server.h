// SPDX-License-Identifier: Apache-2.0
#pragma once

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

/// Shows pages over HTTP to whoever can reach it, GET and HEAD, one answer for each connection, on
/// a thread of its own. Nobody who connects keeps another from an answer: there are 64 connections,
/// of 8 KiB of request and ten seconds each, and where one more comes the oldest ends.
class StatusServer {
 public:
  /// `address` is told the port it got where it says 0. Errors: those of os::listen_tcp.
  [[nodiscard]] static Result<std::unique_ptr<StatusServer>> listen(ListenAddress& address,
                                                                    Pages pages);
  /// Hangs up.
  ~StatusServer();
  StatusServer(const StatusServer&) = delete;
  StatusServer& operator=(const StatusServer&) = delete;

 private:
  class Talk;
  struct State;
  explicit StatusServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace gflow::kube
