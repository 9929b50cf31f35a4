// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>

#include "base/result.h"
#include "os/fd.h"

namespace gflow::server {

/// Accepts connections of a socket that listens, unix or TCP, on the io_context's thread.
class Listener {
 public:
  using Protocol = boost::asio::generic::stream_protocol;
  using Executor = boost::asio::io_context::executor_type;
  using Socket = boost::asio::basic_stream_socket<Protocol, Executor>;

  /// `welcome` is given each connection.
  Listener(boost::asio::io_context& io, std::function<void(Socket)> welcome);

  /// Listens with this socket in place of the one before. `family`: AF_UNIX, AF_INET, AF_INET6.
  [[nodiscard]] Result<void> open(int family, os::Fd socket);
  /// Accepts no more; `welcome` is not called again.
  void close();

 private:
  void accept();
  void accept_waiting();

  boost::asio::io_context& io_;
  std::function<void(Socket)> welcome_;
  boost::asio::basic_socket_acceptor<Protocol, Executor> acceptor_;
  boost::asio::steady_timer pause_;
  std::shared_ptr<const bool> open_;  ///< gone once it is closed: what was accepted by then is not
};

}  // namespace gflow::server
