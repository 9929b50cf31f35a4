// SPDX-License-Identifier: Apache-2.0
#include "client/tunnel.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

#include "base/text.h"
#include "base/translate.h"
#include "os/file.h"
#include "os/paths.h"

namespace gflow::client {
namespace {

constexpr int kPatience = 25'000;  // milliseconds; it gives each address of a host 10 s
constexpr std::size_t kMaxLine = 1000;

std::unexpected<Error> no_answer(const Remote& remote, std::string_view why) {
  return fail(Code::Unreachable,
              tr_format("gflowd does not answer at {}: {}", remote.url(), printable(why)));
}

/// The first line, and no byte more.
Result<std::string> first_line(int channel, const Remote& remote) {
  std::string line;
  while (line.size() < kMaxLine) {
    pollfd wanted{channel, POLLIN, 0};
    if (::poll(&wanted, 1, kPatience) == 0) return no_answer(remote, tr("no answer in time"));
    char c = 0;
    const ssize_t got = ::recv(channel, &c, 1, 0);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) break;
    if (c == '\n') return line;
    line += c;
  }
  return no_answer(remote, tr("the connection was closed"));
}

}  // namespace

Tunnel::~Tunnel() {
  if (!child.process.valid()) return;
  child.channel = os::Fd();
  constexpr int kMost = 2000;
  pollfd ended{child.process.get(), POLLIN, 0};
  (void)::poll(&ended, 1, kMost);
  (void)os::reap(child);
}

Result<Tunnel> open_tunnel(const Remote& remote) {
  Tunnel tunnel;
  const std::string program = GF_TRY(os::helper_program("gflow-tls"));
  tunnel.child =
      GF_TRY(os::start_child({.argv = {program, remote.host, remote.port}, .environment = {}}));
  const std::string line = GF_TRY(first_line(tunnel.child.channel.get(), remote));
  constexpr std::string_view kOk = "ok ";
  constexpr std::string_view kError = "error ";
  if (line.starts_with(kError)) return no_answer(remote, line.substr(kError.size()));
  if (!line.starts_with(kOk)) return no_answer(remote, line);
  tunnel.fingerprint = line.substr(kOk.size());
  return tunnel;
}

Result<void> check_pin(const Remote& remote, const Tunnel& tunnel) {
  if (tunnel.fingerprint == remote.fingerprint) return {};
  return fail(
      Code::Permission,
      tr_format("the certificate of {} is another one than when it was added, so nothing is sent "
                "there: somebody may be in between, or it was made anew. It was {}, and is {}. If "
                "'gflowd status' there shows the new one, run 'gctl remote remove {}' and add it "
                "again",
                remote.url(),
                remote.fingerprint,
                printable(tunnel.fingerprint),
                remote.name));
}

}  // namespace gflow::client
