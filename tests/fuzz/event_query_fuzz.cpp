// SPDX-License-Identifier: Apache-2.0
// A query of events and its Last-Event-ID, the first line of the input, are read or refused; errors
// are fit to be printed.
#include "api/event.h"

#include <algorithm>

#include "base/text.h"
#include "require.h"

using gflow::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = gflow::fuzz::text_of(data, size);
  const std::size_t end = text.find('\n');
  const std::string_view id = end == std::string_view::npos ? "" : text.substr(0, end);
  const std::string_view query = end == std::string_view::npos ? text : text.substr(end + 1);
  const auto read = gflow::api::read_event_query(query, id);
  if (!read) {
    require(gflow::printable(read.error().message) == read.error().message);
    return 0;
  }
  require(std::ranges::is_sorted(read->filter.jobs));
  require(id.empty() || read->after.has_value());
  return 0;
}
