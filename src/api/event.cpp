// SPDX-License-Identifier: Apache-2.0
#include "api/event.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "api/documents.h"
#include "api/job_fields.h"
#include "api/json_writer.h"
#include "api/schema_writer.h"
#include "base/text.h"
#include "base/translate.h"

namespace gflow::api {
namespace {

struct Told {
  std::uint64_t id = 0;
  WallTime at;
  const JobEvent* event = nullptr;
};
struct Ending {
  EndReason reason = EndReason::Exited;
  int exit_code = 0;
  int signal = 0;
};
struct ToldOfNode {
  WallTime at;
  const NodeChange* change = nullptr;
};
struct ToldOfDevice {
  WallTime at;
  const DeviceChange* change = nullptr;
};

constexpr auto kJobEvents = [] {
  std::array<std::string_view, kHappenings.size()> types{};
  for (std::size_t i = 0; i < types.size(); ++i) types[i] = kHappenings[i].type;
  return types;
}();

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

Result<void> read_types(EventQuery& query, const QueryParameter& told, std::string_view value) {
  GF_CHECK(detail::read_value(query.filter.types, told, value));
  for (const std::string& type : query.filter.types) GF_CHECK(check_type(type));
  return {};
}

}  // namespace

template <>
inline constexpr std::string_view kSchemaName<Ending> = "Ending";
template <class Io, Like<Ending> T>
void fields(Io& io, T& ending) {
  io.field("reason", ending.reason);
  io.field("exit_code", ending.exit_code);
  io.field("signal", ending.signal);
}

template <class Io, Like<Told> T>
void fields(Io& io, T& told) {
  const JobEvent& event = *told.event;
  io.field("id", told.id);
  io.choice("type", std::string(event_type(event.what)), kJobEvents);
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
  io.field(
      "outcome",
      ended ? std::optional(Ending{event.reason, event.exit_code, event.signal}) : std::nullopt);
}

template <class Io, Like<ToldOfDevice> T>
void fields(Io& io, T& told) {
  io.choice("type", std::string(kDeviceEvent), {&kDeviceEvent, 1});
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
  io.choice("type", std::string(kNodeEvent), {&kNodeEvent, 1});
  io.field("time", told.at);
  io.field("node", told.change->node);
  io.field("change", node_change_name(told.change->what));
  io.field("gpu", told.change->gpu);
  io.field("uuid", told.change->uuid);
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

void describe_events(Schemas& schemas) {
  const JobEvent event;
  const DeviceChange device;
  const NodeChange node;
  schemas.document("JobEvent", Form::Answer, Told{.event = &event});
  schemas.document("DeviceEvent", Form::Answer, ToldOfDevice{.change = &device});
  schemas.document("NodeEvent", Form::Answer, ToldOfNode{.change = &node});
}

bool EventFilter::takes(const JobEvent& event) const {
  const auto has = [](const auto& list, const auto& value) {
    return list.empty() || std::ranges::find(list, value) != list.end();
  };
  const bool is_of_jobs = jobs.empty() || std::ranges::binary_search(jobs, event.job);
  return sight.knows(event.user) && is_of_jobs && has(users, event.user.name) &&
         has(types, event_type(event.what));
}

bool EventFilter::takes(std::string_view type) const {
  const bool wants = types.empty() || std::ranges::find(types, type) != types.end();
  return wants && jobs.empty() && users.empty();
}

template <>
QueryTable<EventQuery> query_table<EventQuery>() {
  using Many = QueryParameter::Many;
  static constexpr auto kRows = std::to_array<QueryRow<EventQuery>>({
      parameter<&EventQuery::filter, &EventFilter::jobs>(
          {.name = "job", .help = tr_later("only of these jobs: 1,3,5-7")}),
      parameter<&EventQuery::filter, &EventFilter::users>(
          {.name = "user", .help = tr_later("of any of these users"), .many = Many::Commas}),
      {{.name = "type",
        .help = tr_later("only events of these types: job.started,job.ended"),
        .many = Many::Commas},
       read_types},
      parameter<&EventQuery::after>(
          {.name = "after",
           .help = tr_later("beyond the event of this id, as the header Last-Event-ID")}),
      parameter<&EventQuery::follow>({.name = "follow",
                                      .help = tr_later("false: only what happened by now"),
                                      .example = "false"}),
  });
  return {kRows};
}

Result<void> begin_behind(EventQuery& query, std::string_view last_event_id) {
  if (last_event_id.empty()) return {};
  // A browser that connects again knows better than the address it was given.
  query.after = parse_number(last_event_id);
  if (query.after) return {};
  return fail(Code::Usage,
              tr_format("Last-Event-ID must be the id of an event, not '{}'",
                        printable(last_event_id.substr(0, 100))));
}

Result<EventQuery> read_event_query(std::string_view query, std::string_view last_event_id) {
  auto read = GF_TRY(read_query_of<EventQuery>(query));
  GF_CHECK(begin_behind(read, last_event_id));
  return read;
}

}  // namespace gflow::api
