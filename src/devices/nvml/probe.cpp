// SPDX-License-Identifier: Apache-2.0
#include "devices/nvml/probe.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <string_view>

namespace gflow::devices::nvml {
namespace {

constexpr std::size_t kLongestLine = std::size_t{16} << 20;

}  // namespace

Result<Probe> Probe::start(const SourceOptions& options) {
  return Probe(GF_TRY(os::start_child({{options.probe}, options.environment})));
}

void Probe::ask() {
  constexpr std::string_view kCommand = "read\n";
  // If it ended in the meantime, hear() sees the end.
  (void)::send(channel(), kCommand.data(), kCommand.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

Probe::Heard Probe::hear() {
  Heard heard;
  std::array<char, 65536> buffer{};
  ssize_t got = 0;
  while ((got = ::recv(channel(), buffer.data(), buffer.size(), MSG_DONTWAIT)) > 0) {
    incoming_.append(buffer.data(), static_cast<std::size_t>(got));
    if (incoming_.size() > kLongestLine) break;
  }
  heard.over =
      got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR) || incoming_.size() > kLongestLine;
  for (auto end = incoming_.find('\n'); end != std::string::npos; end = incoming_.find('\n')) {
    heard.lines.push_back(incoming_.substr(0, end));
    incoming_.erase(0, end + 1);
  }
  return heard;
}

void Probe::kill() const {
  // It may have ended just now, which is what was wanted.
  (void)::syscall(SYS_pidfd_send_signal, process(), SIGKILL, nullptr, 0);
}

}  // namespace gflow::devices::nvml
