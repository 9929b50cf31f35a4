// SPDX-License-Identifier: Apache-2.0
// The headers of a request, as lines: Range, Last-Event-ID, If-Match, Accept, Accept-Encoding,
// Authorization, Idempotency-Key and whatever else. The first byte chooses what is asked for. The
// answer is no fault of the server; what a header says who asks is read, or is nothing.
#include <array>
#include <string>

#include "core/token.h"
#include "desk.h"
#include "server/routes.h"

namespace {

/// Where headers are heeded: documents, texts, streams, changes.
constexpr std::array<std::string_view, 8> kAsked = {"GET /api/v1/jobs/1",
                                                    "GET /api/v1/jobs/1/log",
                                                    "GET /api/v1/events?follow=false",
                                                    "PATCH /api/v1/jobs",
                                                    "DELETE /api/v1/gpu/allocations/1",
                                                    "POST /api/v1/jobs",
                                                    "GET /metrics",
                                                    "HEAD /api/v1/machine"};
constexpr std::string_view kBody = R"({"jobs":[1],"name":"other"})";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = gflow::fuzz::text_of(data, size);
  if (text.empty()) return 0;
  const auto which = static_cast<unsigned char>(text.front() - '0') % kAsked.size();
  const std::string_view asked = kAsked.at(which);
  std::string bytes = std::string(asked) + " HTTP/1.1\r\nHost: localhost\r\n";
  for (const std::string_view line : gflow::split(text.substr(1), '\n')) {
    if (!line.empty()) bytes += std::string(line) + "\r\n";
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos) {
      const std::string_view value = gflow::trim(line.substr(colon + 1));
      if (const auto secret = gflow::bearer_of(value)) {
        gflow::fuzz::require(secret->size() < value.size());
      }
    }
  }
  const bool has_body = asked.starts_with("P");
  if (has_body) {
    bytes += "Content-Type: application/json\r\nContent-Length: " + std::to_string(kBody.size()) +
             "\r\n";
  }
  gflow::fuzz::Desk::ask_a_fresh_one(bytes + "\r\n" + std::string(has_body ? kBody : ""));
  return 0;
}
