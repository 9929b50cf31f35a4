// SPDX-License-Identifier: Apache-2.0
#include "os/user.h"

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <vector>

#include "base/translate.h"
#include "os/file.h"

namespace gflow::os {

Account account_of(std::uint32_t uid) {
  std::vector<char> buffer(16384);
  passwd entry{};
  passwd* found = nullptr;
  (void)::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found);
  if (found == nullptr) return {uid, uid, fmt::format("uid-{}", uid), "/"};
  return {uid, found->pw_gid, found->pw_name, found->pw_dir};
}

std::vector<std::uint32_t> groups_of(const Account& account) {
  std::vector<gid_t> groups(64);
  int count = static_cast<int>(groups.size());
  if (::getgrouplist(account.name.c_str(), account.gid, groups.data(), &count) < 0) {
    groups.resize(static_cast<std::size_t>(count));  // it said how many there are
    if (::getgrouplist(account.name.c_str(), account.gid, groups.data(), &count) < 0) count = 0;
  }
  groups.resize(static_cast<std::size_t>(count));
  if (groups.empty()) groups.push_back(account.gid);
  return {groups.begin(), groups.end()};
}

Account own_account() { return account_of(::getuid()); }

std::optional<std::uint32_t> user_id(const std::string& name) {
  std::vector<char> buffer(16384);
  passwd entry{};
  passwd* found = nullptr;
  (void)::getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
  return found == nullptr ? std::nullopt : std::optional<std::uint32_t>(found->pw_uid);
}

std::optional<std::uint32_t> group_id(const std::string& name) {
  // A group may have thousands of members.
  constexpr std::size_t kLargest = std::size_t{16} << 20;
  for (std::size_t size = 16384; size <= kLargest; size *= 4) {
    std::vector<char> buffer(size);
    group entry{};
    group* found = nullptr;
    if (::getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) == ERANGE)
      continue;
    return found == nullptr ? std::nullopt : std::optional<std::uint32_t>(found->gr_gid);
  }
  return std::nullopt;
}

Result<Peer> peer_of(int socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return errno_error("read the identity of a connection");
  }
  Peer peer{credentials.uid, credentials.pid, {credentials.gid}};
  std::vector<gid_t> groups(64);
  socklen_t bytes = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
  int got = ::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &bytes);
  if (got != 0 && errno == ERANGE) {
    groups.resize(bytes / sizeof(gid_t));  // the kernel said how many there are
    got = ::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &bytes);
  }
  if (got != 0) return errno_error("read the groups of a connection");
  groups.resize(bytes / sizeof(gid_t));
  peer.groups.insert(peer.groups.end(), groups.begin(), groups.end());
  return peer;
}

std::optional<std::string> environment(const std::string& name) {
  const char* value =
      std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): no thread writes it
  if (value == nullptr) return std::nullopt;
  return value;
}

int process_id() { return ::getpid(); }

int parent_process_id() { return ::getppid(); }

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

int cpu_count() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return CPU_COUNT(&set);
}

std::string program_directory() {
  std::array<char, 4096> path{};
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size() - 1);
  const std::string whole(path.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  return whole.substr(0, whole.find_last_of('/'));
}

}  // namespace gflow::os
