// SPDX-License-Identifier: Apache-2.0
#include "os/descriptor.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "os/file.h"

namespace gflow::os {
namespace {

/// A byte that means nothing, as none is sent without, and room for one descriptor.
struct Message {
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr head{};

  Message() {
    head.msg_iov = &part;
    head.msg_iovlen = 1;
    head.msg_control = control.data();
    head.msg_controllen = CMSG_LEN(sizeof(int));  // no more than one is let in
  }
  ~Message() = default;
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;
};

std::unexpected<Error> hung_up() { return fail(Code::Unreachable, "the other end has hung up"); }

}  // namespace

Result<void> send_descriptor(int channel, int descriptor) {
  Message message;
  cmsghdr* const first = CMSG_FIRSTHDR(&message.head);
  first->cmsg_level = SOL_SOCKET;
  first->cmsg_type = SCM_RIGHTS;
  first->cmsg_len = CMSG_LEN(sizeof descriptor);
  std::memcpy(CMSG_DATA(first), &descriptor, sizeof descriptor);
  while (::sendmsg(channel, &message.head, MSG_NOSIGNAL) < 0) {
    if (errno == EPIPE || errno == ECONNRESET) return hung_up();
    if (errno != EINTR && errno != EAGAIN) return errno_error("sendmsg");
    pollfd room{channel, POLLOUT, 0};
    (void)::poll(&room, 1, -1);
  }
  return {};
}

Result<Fd> receive_descriptor(int channel) {
  Message message;
  ssize_t got = 0;
  do {
    got = ::recvmsg(channel, &message.head, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && errno == EAGAIN) return Fd();
  if (got <= 0) return hung_up();
  const cmsghdr* const first = CMSG_FIRSTHDR(&message.head);
  if (first == nullptr || first->cmsg_type != SCM_RIGHTS) return Fd();
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(first), sizeof descriptor);
  return Fd(descriptor);
}

}  // namespace gflow::os
