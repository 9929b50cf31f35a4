// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <string>

#include "base/result.h"

namespace gflow::daemon {

/// Keeps the file of a listening socket where it is looked for. Once it is removed or replaced, or
/// its directory is, it is made again at once (inotify; nothing is woken as long as nothing
/// happens); while that fails, each second.
class SocketWatch {
 public:
  struct Acts {
    std::function<Result<void>()> make_directory;  ///< the socket's
    std::function<Result<void>()> listen;          ///< makes the socket's file
  };
  SocketWatch(boost::asio::io_context& io, std::string path, Acts acts);

  /// Makes the socket and watches it. Errors: the acts'; what cannot be watched is logged only.
  [[nodiscard]] Result<void> begin();
  /// From now on the file may go.
  void end();

 private:
  struct File {
    dev_t device = 0;
    ino_t inode = 0;
    friend bool operator==(const File&, const File&) = default;
  };
  [[nodiscard]] File file() const;
  [[nodiscard]] Result<void> watch();
  [[nodiscard]] Result<void> make();
  void wait();
  void look();
  void make_again();

  std::string path_;
  Acts acts_;
  File made_;
  boost::asio::posix::stream_descriptor notify_;
  boost::asio::steady_timer again_;
  bool failed_ = false;
};

}  // namespace gflow::daemon
