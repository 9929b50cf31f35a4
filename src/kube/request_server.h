// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "kube/status_server.h"
#include "os/fd.h"

namespace gflow::kube {

/// What somebody sent.
struct Asked {
  bool is_post = false;  ///< else GET
  std::string path;      ///< without a query
  std::string body;
};

/// Answers requests of HTTP/1.1 over connections that were let in, one after the other on each. The
/// loop's one thread.
class RequestServer {
 public:
  struct Limits {
    std::size_t body = std::size_t{8} << 20;      ///< of one request
    std::size_t bodies = std::size_t{128} << 20;  ///< of all under way; who sends more is cut
    std::size_t connections = 4096;               ///< beyond, whoever comes is cut
  };
  using Then = std::function<void(Page)>;
  /// Calls `then` once, by the loop's thread, now or later.
  using Handler = std::function<void(const Asked& asked, Then then)>;

  /// REQUIRES: `io` outlives it.
  RequestServer(boost::asio::io_context& io, Limits limits, Handler handler);

  /// Talks over this socket, of a pair or of TCP, until the other end is done or is silent for two
  /// minutes.
  void welcome(os::Fd connection);

 private:
  class Session;
  /// What sessions have in common; they end with the loop.
  struct Common {
    Limits limits;
    Handler handler;
    std::size_t held = 0;      ///< bytes of requests that are not whole yet
    std::size_t sessions = 0;  ///< there are
  };

  boost::asio::io_context& io_;
  std::shared_ptr<Common> common_;
};

}  // namespace gflow::kube
