// SPDX-License-Identifier: Apache-2.0
#include "os/user.h"

#include <fmt/format.h>
#include <pwd.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <vector>

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

Account own_account() { return account_of(::getuid()); }

Result<Peer> peer_of(int socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return errno_error("read the identity of a connection");
  }
  return Peer{credentials.uid, credentials.pid};
}

std::optional<std::string> environment(const std::string& name) {
  const char* value =
      std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): no thread writes it
  if (value == nullptr) return std::nullopt;
  return value;
}

int process_id() { return ::getpid(); }

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
