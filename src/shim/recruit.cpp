// SPDX-License-Identifier: Apache-2.0
#include "shim/recruit.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/text_fields.h"

namespace gflow::shim {
namespace {

/// Goes first, with the descriptors; both ends are of one program.
struct Header {
  std::uint64_t groups_size = 0;
  std::uint64_t order_size = 0;
  std::int32_t log_error = 0;
};

/// The pipe, the exit record, and the log if there is one.
constexpr std::size_t kDescriptors = 3;

/// Room for them as recvmsg(2) wants it.
struct alignas(cmsghdr) Control {
  std::array<char, CMSG_SPACE(kDescriptors * sizeof(int))> bytes{};
};

bool send_header(int to, const Header& header, const std::array<int, kDescriptors>& descriptors) {
  Header copy = header;
  iovec part{&copy, sizeof copy};
  Control control;
  const std::size_t size = (kDescriptors - (descriptors.back() < 0 ? 1 : 0)) * sizeof(int);
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = CMSG_SPACE(size);
  cmsghdr* const first = CMSG_FIRSTHDR(&message);
  first->cmsg_level = SOL_SOCKET;
  first->cmsg_type = SCM_RIGHTS;
  first->cmsg_len = CMSG_LEN(size);
  std::memcpy(CMSG_DATA(first), descriptors.data(), size);
  return ::sendmsg(to, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof copy);
}

bool send_text(int to, std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = ::send(to, text.data(), text.size(), MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(put));
  }
  return true;
}

std::optional<Header> receive_header(int from, Enlistment& into) {
  Header header;
  iovec part{&header, sizeof header};
  Control control;
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = control.bytes.size();
  ssize_t got = 0;
  do {
    got = ::recvmsg(from, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  const cmsghdr* const first = CMSG_FIRSTHDR(&message);
  if (got != static_cast<ssize_t>(sizeof header) || first == nullptr) return std::nullopt;
  std::array<int, kDescriptors> descriptors{-1, -1, -1};
  const std::size_t size = first->cmsg_len - CMSG_LEN(0);
  if (size > sizeof descriptors) return std::nullopt;
  std::memcpy(descriptors.data(), CMSG_DATA(first), size);
  into.result = Fd(descriptors[0]);
  into.record = Fd(descriptors[1]);
  into.log = Fd(descriptors[2]);
  return header;
}

std::optional<std::string> receive_text(int from, std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t have = 0; have < size;) {
    const ssize_t got = ::recv(from, text.data() + have, size - have, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
    have += static_cast<std::size_t>(got);
  }
  return text;
}

}  // namespace

bool enlist(const Recruit& recruit, const Enlistment& what) {
  const auto order = attempt::encode_order(what.order);
  if (!order) return false;
  std::string groups;
  for (const std::string& group : what.joined) groups.append(group).push_back('\0');
  const Header header{groups.size(), order->size(), what.log_error};
  const int to = recruit.orders.get();
  return send_header(to, header, {what.result.get(), what.record.get(), what.log.get()}) &&
         send_text(to, groups) && send_text(to, *order);
}

std::optional<Enlistment> wait_to_be_enlisted(const Fd& orders) {
  Enlistment told;
  const auto header = receive_header(orders.get(), told);
  if (!header) return std::nullopt;
  const auto groups = receive_text(orders.get(), header->groups_size);
  const auto text = groups ? receive_text(orders.get(), header->order_size) : std::nullopt;
  auto order = attempt::decode_order(text.value_or(""));
  if (!text || !order) return std::nullopt;
  told.order = std::move(*order);
  told.log_error = header->log_error;
  for (std::string_view rest = *groups; !rest.empty();) {
    told.joined.emplace_back(take_field(rest, '\0'));
  }
  return told;
}

}  // namespace gflow::shim
