// SPDX-License-Identifier: Apache-2.0
#include "api/event.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/job_fields.h"
#include "api/json_writer.h"
#include "api/query.h"
#include "base/text.h"
#include "base/translate.h"
#include "core/requests.h"

namespace gflow::api {
namespace {

struct Told {
  std::uint64_t id = 0;
  WallTime at;
  const JobEvent* event = nullptr;
};
struct Ending {
  const JobEvent* event = nullptr;
};
struct ToldOfNode {
  WallTime at;
  const NodeChange* change = nullptr;
};
struct ToldOfDevice {
  WallTime at;
  const DeviceChange* change = nullptr;
};

std::vector<std::string> known_types() {
  std::vector<std::string> types;
  for (const HappeningName& name : kHappenings) types.emplace_back(name.type);
  types.emplace_back(kDeviceEvent);
  types.emplace_back(kNodeEvent);
  return types;
}

/// "job.ended".
Result<void> check_type(const std::string& type) {
  const std::vector<std::string> known = known_types();
  if (std::ranges::find(known, type) != known.end()) return {};
  const std::string shown = printable(type.substr(0, 100));
  const auto near = nearest(type.substr(0, 100), known);
  return fail(Code::Usage,
              near ? tr_format("there are no events '{}'; did you mean '{}'?", shown, *near)
                   : tr_format("there are no events '{}'; there are {}", shown, join(known, ", ")));
}

Result<void> add(EventQuery& query, const Parameter& parameter) {
  EventFilter& filter = query.filter;
  if (parameter.name == "job") {
    filter.jobs = GF_TRY(parse_job_ids(parameter.value));
  } else if (parameter.name == "user") {
    for (const std::string_view user : split(parameter.value, ',')) {
      filter.users.emplace_back(trim(user));
    }
  } else if (parameter.name == "type") {
    for (const std::string_view type : split(parameter.value, ',')) {
      filter.types.emplace_back(trim(type));
      GF_CHECK(check_type(filter.types.back()));
    }
  } else if (parameter.name == "after") {
    query.after = GF_TRY(number_of(parameter));
  } else if (parameter.name == "follow") {
    query.follow = GF_TRY(truth_of(parameter));
  } else {
    return unknown_parameter(parameter.name, {"job", "user", "type", "after", "follow"});
  }
  return {};
}

}  // namespace

template <class Io, Like<Ending> T>
void fields(Io& io, T& ending) {
  io.field("reason", ending.event->reason);
  io.field("exit_code", ending.event->exit_code);
  io.field("signal", ending.event->signal);
}

template <class Io, Like<Told> T>
void fields(Io& io, T& told) {
  const JobEvent& event = *told.event;
  io.field("id", told.id);
  io.field("type", event_type(event.what));
  io.field("time", told.at);
  io.field("job", event.job);
  io.field("user", event.user);
  io.field("name", event.name);
  io.field("allocation", event.allocation);
  io.field("status", event.status);
  io.field("status_code", status_code(event.status));
  io.field("attempt", event.attempt);
  io.known_text("node", event.node);
  io.field("gpu_indices", event.gpus);
  const bool ended = event.what == Happening::Ended;
  io.field("outcome", ended ? std::optional(Ending{&event}) : std::nullopt);
}

template <class Io, Like<ToldOfDevice> T>
void fields(Io& io, T& told) {
  io.field("type", kDeviceEvent);
  io.field("time", told.at);
  io.field("node", told.change->node);
  io.field("gpu", told.change->gpu);
  io.field("uuid", told.change->uuid);
  io.field("quantity", quantity_name(told.change->quantity));
  io.field("before", told.change->before);
  io.field("now", told.change->now);
}

template <class Io, Like<ToldOfNode> T>
void fields(Io& io, T& told) {
  io.field("type", kNodeEvent);
  io.field("time", told.at);
  io.field("node", told.change->node);
  io.field("change", node_change_name(told.change->what));
  io.field("gpu", told.change->gpu);
  io.known_text("reason", told.change->reason);
  io.known_text("by", told.change->by);
}

std::string write_job_event(std::uint64_t id, WallTime at, const JobEvent& event) {
  return Writer::document("JobEvent", Told{id, at, &event});
}

std::string write_device_event(WallTime at, const DeviceChange& change) {
  return Writer::document("DeviceEvent", ToldOfDevice{at, &change});
}

std::string write_node_event(WallTime at, const NodeChange& change) {
  return Writer::document("NodeEvent", ToldOfNode{at, &change});
}

bool EventFilter::takes(const JobEvent& event) const {
  const auto has = [](const auto& list, const auto& value) {
    return list.empty() || std::ranges::find(list, value) != list.end();
  };
  const bool is_of_jobs = jobs.empty() || std::ranges::binary_search(jobs, event.job);
  return is_of_jobs && has(users, event.user.name) && has(types, event_type(event.what));
}

bool EventFilter::takes(std::string_view type) const {
  const bool wants = types.empty() || std::ranges::find(types, type) != types.end();
  return wants && jobs.empty() && users.empty();
}

Result<EventQuery> read_event_query(std::string_view query, std::string_view last_event_id) {
  EventQuery read;
  for (const Parameter& parameter : GF_TRY(read_parameters(query))) {
    GF_CHECK(add(read, parameter));
  }
  if (last_event_id.empty()) return read;
  // A browser that connects again knows better than the address it was given.
  read.after = parse_number(last_event_id);
  if (read.after) return read;
  return fail(Code::Usage,
              tr_format("Last-Event-ID must be the id of an event, not '{}'",
                        printable(last_event_id.substr(0, 100))));
}

}  // namespace gflow::api
