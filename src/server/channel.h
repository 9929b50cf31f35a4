// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <functional>

#include "base/result.h"
#include "os/fd.h"

namespace gflow::server {

/// What a program hears from the command that started it to be answered: once it is told that all
/// is ready, a connection each time one is wanted. One
/// thread.
class Channel {
 public:
  /// `end`: it is over, as the other end is gone, by a signal, or by what kept it from being heard.
  Channel(boost::asio::io_context& io,
          std::function<void(os::Fd)> welcome,
          std::function<void(Result<void>)> end);

  /// SIGTERM and SIGINT end it, until forget_signals(): one more ends the program at once.
  void watch_signals();
  void forget_signals() { signals_.clear(); }
  /// The channel at that descriptor, which stays the caller's.
  void watch(int channel);

 private:
  void await_connection(int channel);

  std::function<void(os::Fd)> welcome_;
  std::function<void(Result<void>)> end_;
  boost::asio::posix::stream_descriptor channel_;
  boost::asio::signal_set signals_;
};

}  // namespace gflow::server
