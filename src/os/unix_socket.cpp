// SPDX-License-Identifier: Apache-2.0
#include "os/unix_socket.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/text.h"
#include "base/translate.h"
#include "os/file.h"

namespace gflow::os {
namespace {

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (!is_socket_path(path)) {
    return fail(Code::Usage,
                tr_format("'{}' cannot be a socket: its path must be 1 to {} bytes long",
                          printable(path),
                          sizeof address.sun_path - 1));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

const sockaddr* generic(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);  // NOLINT: how the socket calls take it
}

Result<void> check_replaceable(const std::string& path) {
  struct stat there{};
  if (::lstat(path.c_str(), &there) != 0) {
    if (errno == ENOENT) return {};
    return errno_error("look at", path);
  }
  if (S_ISSOCK(there.st_mode)) return {};
  return fail(Code::WrongState,
              tr_format("'{}' exists and is not a socket; move it away", printable(path)));
}

/// A socket that listens, whose file is made.
Result<Fd> listen_at(const std::string& path, mode_t mode) {
  const sockaddr_un address = GF_TRY(address_of(path));
  GF_CHECK(check_replaceable(path));
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return errno_error("remove", path);
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return errno_error("make a socket");
  // Linux gives the file the mode of the socket's own inode, less the umask.
  if (::fchmod(socket.get(), mode) != 0) return errno_error("set the mode of a socket");
  if (::bind(socket.get(), generic(address), sizeof address) != 0) {
    return errno_error("bind", path);
  }
  if (::chmod(path.c_str(), mode) != 0) return errno_error("set the mode of", path);
  // Who connects without end fills the queue, and others wait behind all that is in it; a short one
  // makes each process wait for its turn in connect(2).
  constexpr int kQueued = 32;
  if (::listen(socket.get(), kQueued) != 0) return errno_error("listen at", path);
  return socket;
}

}  // namespace

Result<Fd> listen_unix(const std::string& path, mode_t mode) {
  GF_CHECK(check_replaceable(path));
  // Whoever finds the file can connect: it is put in its place when somebody listens.
  const std::string fresh = path + ".new";
  if (!is_socket_path(fresh)) return listen_at(path, mode);
  Fd socket = GF_TRY(listen_at(fresh, mode));
  if (::rename(fresh.c_str(), path.c_str()) == 0) return socket;
  auto failure = errno_error("make", path);
  (void)::unlink(fresh.c_str());  // of no use to anybody
  return failure;
}

Result<void> check_socket_place(const std::string& path) {
  GF_CHECK(address_of(path));
  return check_replaceable(path);
}

bool is_socket_path(const std::string& path) {
  return !path.empty() && path.size() < sizeof(sockaddr_un::sun_path);
}

Result<Fd> connect_unix(const std::string& path, std::chrono::seconds most) {
  const sockaddr_un address = GF_TRY(address_of(path));
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return errno_error("make a socket");
  timeval time{};
  time.tv_sec = most.count();
  (void)::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);  // waits longer
  if (::connect(socket.get(), generic(address), sizeof address) == 0) return socket;
  const int error = errno;
  auto failure = errno_error("connect to", path);
  if (error == ENOENT || error == ECONNREFUSED || error == ENOTDIR) {
    return fail(Code::Unreachable, std::move(failure).error().message);
  }
  if (error == EAGAIN) return fail(Code::Timeout, std::move(failure).error().message);
  return failure;
}

}  // namespace gflow::os
