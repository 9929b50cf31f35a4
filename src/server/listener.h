// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "os/fd.h"

namespace gflow::server {

/// Accepts connections of a socket that listens, unix or TCP, on the io_context's thread.
class Listener {
 public:
  using Protocol = boost::asio::generic::stream_protocol;
  using Executor = boost::asio::io_context::executor_type;
  using Socket = boost::asio::basic_stream_socket<Protocol, Executor>;

  /// A sentence for the log.
  using Note = std::function<void(const std::string& line)>;

  /// `welcome` is given each connection; `note` is told when nobody can be accepted any more, and
  /// when that is over.
  Listener(boost::asio::io_context& io, std::function<void(Socket)> welcome, Note note);

  /// Listens with this socket in place of the one before. `family`: AF_UNIX, AF_INET, AF_INET6.
  [[nodiscard]] Result<void> open(int family, os::Fd socket);
  /// Accepts no more; `welcome` is not called again.
  void close();

 private:
  void accept();
  void accept_waiting();
  void accept_in_need(const boost::system::error_code& error);
  void get_over_need();

  boost::asio::io_context& io_;
  std::function<void(Socket)> welcome_;
  Note note_;
  boost::asio::basic_socket_acceptor<Protocol, Executor> acceptor_;
  boost::asio::steady_timer pause_;
  os::Fd spare_;          ///< given up for a connection where there is no other descriptor
  bool in_need_ = false;  ///< as `note_` was told
  std::shared_ptr<const bool> open_;  ///< gone once it is closed: what was accepted by then is not
};

}  // namespace gflow::server
