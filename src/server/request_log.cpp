// SPDX-License-Identifier: Apache-2.0
#include "server/request_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include "base/text.h"

namespace gflow::server {
namespace {

std::string_view way(Via via) {
  switch (via) {
    case Via::Unix:
      return "the socket";
    case Via::Tcp:
      return "TCP";
    case Via::Tls:
      break;
  }
  return "TLS";
}

std::string who(const Guest& guest, const Terms& terms) {
  const std::string where =
      guest.via == Via::Tls ? guest.address : fmt::format("uid {}", guest.peer.uid);
  return terms.asked_by.empty() ? where : fmt::format("{}, {},", terms.asked_by, where);
}

}  // namespace

std::optional<std::string> RequestLog::line(MonoTime now,
                                            const Guest& guest,
                                            const Terms& terms,
                                            int status) {
  const auto passed =
      std::chrono::duration_cast<std::chrono::seconds>(now - counted_.value_or(now));
  counted_ = counted_.value_or(now) + passed;
  credit_ = static_cast<int>(std::min<std::int64_t>(kAtOnce, credit_ + passed.count()));
  if (credit_ == 0) {
    ++left_out_;
    return std::nullopt;
  }
  --credit_;
  const std::uint64_t left_out = std::exchange(left_out_, 0);
  return fmt::format("request {}: {} {} of {} over {}: {}{}",
                     terms.request_id,
                     terms.method.empty() ? "?" : printable(terms.method.substr(0, 20)),
                     terms.path.empty() ? "?" : printable(terms.path.substr(0, 200)),
                     who(guest, terms),
                     way(guest.via),
                     status,
                     left_out == 0 ? "" : fmt::format("; {} before it are not told", left_out));
}

}  // namespace gflow::server
