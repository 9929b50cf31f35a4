// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "base/memory.h"
#include "base/result.h"

namespace gflow::server {

/// How much of the server one user may take at once.
constexpr Memory kMaxBody = Memory::mib(16);
constexpr Memory kMaxBodiesPerUser = Memory::mib(64);
constexpr Memory kMaxRepliesPerUser = Memory::mib(64);  ///< written and not read yet

/// Counts what each user has open, so that one of them cannot take the daemon from the others.
/// Whatever is taken has to be given back.
class Admission {
 public:
  Admission(std::size_t max_connections, std::size_t max_connections_per_user)
      : max_connections_(max_connections), max_connections_per_user_(max_connections_per_user) {}

  /// Errors: Exhausted.
  [[nodiscard]] Result<void> take_connection(std::uint32_t uid);
  void give_connection(std::uint32_t uid);
  /// Room for a request body. Errors: Exhausted.
  [[nodiscard]] Result<void> take_body(std::uint32_t uid, Memory size);
  void give_body(std::uint32_t uid, Memory size);
  /// Room for an answer until it is sent. Errors: Exhausted.
  [[nodiscard]] Result<void> take_reply(std::uint32_t uid, Memory size);
  void give_reply(std::uint32_t uid, Memory size);

 private:
  struct Use {
    std::size_t connections = 0;
    Memory bodies;
    Memory replies;
  };
  std::size_t max_connections_;
  std::size_t max_connections_per_user_;
  std::size_t connections_ = 0;
  std::map<std::uint32_t, Use> users_;
};

}  // namespace gflow::server
