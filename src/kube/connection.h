// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "kube/access.h"
#include "kube/credentials.h"

namespace gflow::kube {

using Deadline = std::chrono::steady_clock::time_point;

/// What a server is known by and who asks, made ready for connections: SSL_CTX. Shared by them.
class Trust {
 public:
  /// Errors: Usage for a certificate or a key that is none.
  [[nodiscard]] static Result<Trust> of(const Access& access, const Identity& identity);
  ~Trust();
  Trust(Trust&&) noexcept;
  Trust& operator=(Trust&&) noexcept;

 private:
  friend class Connection;
  struct State;
  explicit Trust(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// One connection to an API server, over TLS unless its URL says http. One thread at a time.
class Connection {
 public:
  /// Errors: Unreachable, with every address that was tried; Permission where the certificate is
  /// not the one expected; Timeout.
  [[nodiscard]] static Result<Connection> open(const Access& access,
                                               const Trust& trust,
                                               Deadline deadline);
  ~Connection();
  Connection(Connection&&) noexcept;
  Connection& operator=(Connection&&) noexcept;

  /// Errors: Unreachable, Timeout.
  [[nodiscard]] Result<void> send(std::string_view bytes, Deadline deadline);
  /// How many bytes came; 0 is the end. Errors: Unreachable, Timeout.
  [[nodiscard]] Result<std::size_t> receive(std::span<char> buffer, Deadline deadline);
  /// Whether nothing came since and the other end has not hung up.
  [[nodiscard]] bool is_idle() const;
  /// The socket, which another thread may shut down to have a wait end.
  [[nodiscard]] int socket() const;

 private:
  struct State;
  explicit Connection(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace gflow::kube
