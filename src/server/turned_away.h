// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <set>

#include "base/result.h"
#include "server/listener.h"

namespace gflow::server {

/// Connections that are not let in, while whoever is there still writes: one that is closed then
/// loses the answer (RFC 9112, 9.6). Runs on the thread of the io context.
class TurnedAway {
 public:
  /// Borrows the context for its lifetime.
  explicit TurnedAway(boost::asio::io_context& io) : io_(io) {}

  /// Says why, and closes it: once the other end has, or after a second. What does not fit its
  /// buffer is not waited for, and of many at once the later ones are closed at once.
  void add(Listener::Socket socket, const Error& why);
  /// All of them, now.
  void close();

 private:
  struct One {
    Listener::Socket socket;
    boost::asio::steady_timer patience;
    std::array<char, 4096> rest{};
  };
  void read(const std::shared_ptr<One>& one);

  boost::asio::io_context& io_;
  std::set<std::shared_ptr<One>> all_;
};

}  // namespace gflow::server
