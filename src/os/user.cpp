// SPDX-License-Identifier: Apache-2.0
#include "os/user.h"

#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <vector>

#include "os/file.h"

namespace gflow::os {

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
