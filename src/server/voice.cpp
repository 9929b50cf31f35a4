// SPDX-License-Identifier: Apache-2.0
#include "server/voice.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <string>

namespace gflow::server {

void Voice::error(const Error& error) const {
  line("error ", fmt::format("{} {}", static_cast<int>(error.code), error.message));
}

/// At once or not at all: lines are few and short, and who reads no more has gone.
void Voice::line(std::string_view word, std::string_view text) const {
  if (channel_ < 0) return;
  std::string said = std::string(word) + std::string(text);
  std::ranges::replace(said, '\n', ' ');
  said += '\n';
  (void)::send(channel_, said.data(), said.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace gflow::server
