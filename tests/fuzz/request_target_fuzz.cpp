// SPDX-License-Identifier: Apache-2.0
// The target of a request, path and query, for any route: the first line of the input is method and
// target, the rest its body. The answer is no fault of the server, whatever is asked.
#include <algorithm>
#include <string>

#include "desk.h"
#include "server/routes.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = gflow::fuzz::text_of(data, size);
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view body = text.substr(std::min(end + 1, text.size()));
  std::string bytes(text.substr(0, end));
  bytes += " HTTP/1.1\r\nHost: localhost\r\n";
  if (!body.empty()) {
    bytes +=
        "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
  }
  gflow::fuzz::Desk::ask_a_fresh_one(bytes + "\r\n" + std::string(body));
  return 0;
}
