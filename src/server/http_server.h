// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/listen_address.h"
#include "base/result.h"
#include "core/principal.h"
#include "os/fd.h"
#include "server/service.h"
#include "server/tls_context.h"

namespace boost::asio {
class io_context;
}

namespace gflow::server {

class Desk;
class Edge;
class HttpCounters;

/// HTTP/1.1 over a unix socket, identity by SO_PEERCRED, and over TCP on this machine, identity by
/// whose the other end is. Limits: 64 KiB of headers, 16 MiB of body, 30 s idle, 64 MiB of
/// bodies per user. Connections are on a thread of their own; what they ask is
/// answered on that of the io_context given, from which alone this is called.
class HttpServer {
 public:
  struct Options {
    std::string socket_path;  ///< "" for none
    bool any_user =
        false;  ///< system mode: everyone may connect (0666); else 0600 and own uid or root
    std::uint32_t own_uid = 0;
    std::vector<ListenAddress> loopback = {};  ///< where it listens besides, on one port
    std::size_t max_connections = 4096;        ///< fewer where there are not enough descriptors
    std::size_t max_connections_per_user = 256;
    /// For a request's headers to arrive, or the next request; twice that for its body.
    std::chrono::milliseconds idle{30'000};
    std::optional<ListenAddress> tls = {};          ///< where other machines reach it
    TlsFiles tls_files = {};                        ///< REQUIRES: set where `tls` is
    std::vector<std::string> host_names = {};       ///< of this machine, in lower case
    std::vector<std::string> allowed_origins = {};  ///< web pages that may ask, with a token
    /// Writes a line into the log; called on the loop's thread.
    std::function<void(const std::string& line)> audit = [](const std::string& /*line*/) {};
    /// Told a line for the log about what was refused or failed, on the io_context's thread.
    std::function<void(const std::string&)> note = {};
  };
  /// Binds and listens. A stale socket file is replaced (the caller holds the state lock).
  [[nodiscard]] static Result<std::unique_ptr<HttpServer>> listen(boost::asio::io_context& io,
                                                                  Options options,
                                                                  Service& service);
  /// Who has which role from now on, and what users are shown of others' jobs, open connections
  /// included. Returns what Identity does.
  std::vector<std::string> configure(const RoleNames& roles,
                                     const std::vector<std::string>& projects,
                                     OthersJobs others_jobs);
  /// Tokens were revoked: what is sent for them, and waited for, ends.
  void tokens_changed();
  /// As close(); answers that are not read within a second are cut off.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  /// Where it listens besides the socket; of two, the first.
  [[nodiscard]] std::optional<ListenAddress> loopback() const;
  /// Why it does not listen where it was told to; "" if it does. It serves all else the same.
  [[nodiscard]] const std::string& listen_trouble() const;
  /// Where other machines reach it, and its certificate's fingerprint and end; empty if none do.
  struct Remote {
    ListenAddress address;
    std::string fingerprint;
    std::optional<WallTime> expires;
  };
  [[nodiscard]] const std::optional<Remote>& remote() const;
  /// What its connections do.
  [[nodiscard]] const HttpCounters& counters() const;
  /// Serves a connection that somebody else made, of a unix socket, as one that came by ours.
  void welcome(os::Fd connection);
  /// Listens anew at the same path, whose file was lost; open connections stay.
  [[nodiscard]] Result<void> listen_again();
  /// Stops accepting and drops connections that are idle or wait for news; answers under way are
  /// still written.
  void close();

 private:
  static Result<std::unique_ptr<HttpServer>> begin(boost::asio::io_context& io,
                                                   Options options,
                                                   Service& service);
  HttpServer(std::unique_ptr<Edge> edge, std::shared_ptr<Desk> desk, std::string trouble);

  std::unique_ptr<Edge> edge_;
  std::shared_ptr<Desk> desk_;
  std::string listen_trouble_;
  bool closed_ = false;
};

}  // namespace gflow::server
