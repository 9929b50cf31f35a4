// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gflow::os {

/// An account of this machine.
struct Account {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::string name;
  std::string home;
};
/// The account of a uid; empty if the machine has none for it, or cannot tell now.
[[nodiscard]] std::optional<Account> find_account(std::uint32_t uid);
/// What stands for one that was not found: a name "uid-1234" and home "/".
[[nodiscard]] Account nameless_account(std::uint32_t uid);
[[nodiscard]] Account account_of(std::uint32_t uid);
[[nodiscard]] Account own_account();
/// Of what a file like /etc/passwd says.
[[nodiscard]] std::optional<Account> account_in(std::string_view passwd, std::uint32_t uid);
/// Its groups as the user database has them, its own first.
[[nodiscard]] std::vector<std::uint32_t> groups_of(const Account& account);

/// By name; empty if the machine has none of that name.
[[nodiscard]] std::optional<std::uint32_t> user_id(const std::string& name);
[[nodiscard]] std::optional<std::uint32_t> group_id(const std::string& name);

/// Who is at the other end of a connected unix socket, as the kernel has it (SO_PEERCRED,
/// SO_PEERGROUPS): what the process was when it connected.
struct Peer {
  std::uint32_t uid = 0;
  int pid = 0;
  std::vector<std::uint32_t> groups;  ///< its own group first
};
[[nodiscard]] Result<Peer> peer_of(int socket);

/// A variable of this process's environment; empty if it is not set.
[[nodiscard]] std::optional<std::string> environment(const std::string& name);
[[nodiscard]] int process_id();
[[nodiscard]] int parent_process_id();
[[nodiscard]] std::string host_name();
/// CPUs this process may run on.
[[nodiscard]] int cpu_count();
/// Absolute path of the directory the running program lies in.
[[nodiscard]] std::string program_directory();

}  // namespace gflow::os
