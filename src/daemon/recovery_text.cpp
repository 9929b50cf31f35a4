// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/translate.h"
#include "daemon/recover.h"

namespace gflow::daemon {
namespace {

using Json = nlohmann::ordered_json;

/// "3, 5-7".
std::string ids_text(const std::vector<std::pair<JobId, JobId>>& ranges) {
  std::vector<std::string> texts;
  for (const auto& [first, last] : ranges) {
    texts.push_back(first == last ? fmt::format("{}", first.value)
                                  : fmt::format("{}-{}", first.value, last.value));
  }
  return join(texts, ", ");
}

std::vector<std::pair<JobId, JobId>> ranges_of(const std::vector<JobId>& ids) {
  std::vector<std::pair<JobId, JobId>> ranges;
  for (const JobId id : ids) {
    if (!ranges.empty() && ranges.back().second.value + 1 == id.value) {
      ranges.back().second = id;
    } else {
      ranges.emplace_back(id, id);
    }
  }
  return ranges;
}

std::vector<std::uint64_t> numbers_of(const std::vector<JobId>& ids) {
  std::vector<std::uint64_t> numbers;
  numbers.reserve(ids.size());
  for (const JobId id : ids) numbers.push_back(id.value);
  return numbers;
}

void line(std::string& out, std::string_view what, const std::vector<JobId>& ids) {
  if (ids.empty()) return;
  out += tr_format("{}: {}", tr(what), ids_text(ranges_of(ids))) + '\n';
}

}  // namespace

std::string recovery_text(const Recovery& recovery) {
  if (!recovery.needed) {
    return tr_format("'{}' is not damaged: nothing was changed\n", printable(recovery.database));
  }
  std::string out = tr_count(recovery.jobs,
                             "'{}' is rebuilt with {} job, from {}{}\n",
                             "'{}' is rebuilt with {} jobs, from {}{}\n",
                             printable(recovery.database),
                             recovery.jobs,
                             recovery.base.empty() ? tr("the files of attempts alone")
                                                   : "'" + printable(recovery.base) + "'",
                             recovery.complete ? tr(", in which nothing is missing") : "");
  for (const std::string& file : recovery.unread) {
    out += tr_format("not readable: {}\n", printable(file));
  }
  line(out,
       tr_later("from an older backup, as the newest file is damaged there"),
       recovery.from_older);
  line(out, tr_later("from the files of their attempt"), recovery.from_attempts);
  line(out, tr_later("running in the backup, but gone: now Lost; see their logs"), recovery.ended);
  line(out,
       tr_later("on hold, as they may have run since the backup: gjob release or gcancel"),
       recovery.held);
  line(out,
       tr_later("recovered without their commands: submit them again"),
       recovery.without_payload);
  if (!recovery.missing.empty()) {
    out += tr_format("not recovered, nothing is known of them: {}\n", ids_text(recovery.missing));
  }
  for (const std::string& file : recovery.kept) {
    out += tr_format("the damaged file is kept: {}\n", printable(file));
  }
  return out;
}

std::string recovery_json(const Recovery& recovery) {
  Json document = {{"apiVersion", "gflow/v1"},
                   {"kind", "Recovery"},
                   {"database", recovery.database},
                   {"needed", recovery.needed},
                   {"base", recovery.base},
                   {"complete", recovery.complete},
                   {"unread", recovery.unread},
                   {"jobs", recovery.jobs},
                   {"from_older", numbers_of(recovery.from_older)},
                   {"from_attempts", numbers_of(recovery.from_attempts)},
                   {"without_payload", numbers_of(recovery.without_payload)},
                   {"held", numbers_of(recovery.held)},
                   {"lost", numbers_of(recovery.ended)}};
  document["missing"] = Json::array();
  for (const auto& [first, last] : recovery.missing) {
    document["missing"].push_back({{"first", first.value}, {"last", last.value}});
  }
  document["kept"] = recovery.kept;
  return document.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace gflow::daemon
