// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "api/placement_view.h"
#include "core/gpu_request.h"
#include "core/request_text.h"
#include "placement/policy.h"
#include "server/handlers.h"
#include "server/shown.h"

namespace gflow::server {

namespace {

api::GpuSet gpu_set(std::vector<int> devices, const DeviceReason& reason) {
  return {std::move(devices), percent_of_best(reason), device_reason_text(reason)};
}

api::RankedNode ranked_node(const placement::Ledger& ledger, placement::Ranked ranked) {
  api::RankedNode node;
  node.node = ledger.node(ranked.node).name;
  node.best = gpu_set(std::move(ranked.devices), ranked.reason);
  node.score = ranked.score;
  for (placement::Term& term : ranked.terms) {
    node.terms.push_back({std::move(term.name), term.weight, term.value});
  }
  for (placement::DeviceChoice& other : ranked.others) {
    node.others.push_back(gpu_set(std::move(other.devices), other.reason));
  }
  return node;
}

void answer_place(Exchange exchange, api::PlaceRequest asked) {
  const auto owner = job_owner(exchange.caller);
  if (!owner) return exchange.respond(problem(owner.error()));
  JobSpec spec;
  spec.user = *owner;
  spec.request = std::move(asked.request);
  spec.name = std::move(asked.name);
  spec.priority = asked.priority;
  spec.time_limit = asked.time_limit;
  spec.hold = asked.hold;
  spec.begin = asked.begin;
  spec.dependencies = std::move(asked.dependencies);
  spec.group = std::move(asked.group);
  spec.max_concurrent = asked.max_concurrent;
  const gflow::Request& request = spec.request;
  const engine::State& state = exchange.service.state();
  const Shown shown(exchange.caller, state);
  const auto preview = state.preview(spec, exchange.service.now(), shown.sight());
  if (!preview) return exchange.respond(problem(preview.error()));
  const auto nodes = static_cast<std::size_t>(request.nodes);
  const auto most = std::max(static_cast<std::size_t>(asked.most), nodes);
  auto ranked = state.rank(request, most);
  if (!ranked) return exchange.respond(problem(ranked.error()));
  auto starts = state.starts(spec, static_cast<std::size_t>(asked.jobs));
  if (!starts) return exchange.respond(problem(starts.error()));
  api::PlacementView view;
  view.request = gpu_request_text(request);
  view.words = request_in_words(request);
  for (auto& placements : starts->jobs) {
    api::JobStart& start = view.starts.emplace_back();
    for (placement::Placement& one : placements) {
      start.places.push_back({state.ledger().node(one.node).name, std::move(one.devices)});
    }
  }
  if (starts->limit) view.limit = api::view_of(*starts->limit);
  const std::string& policy = state.policy().placement;
  view.policy = policy.empty() ? placement::policies().front().name : policy;
  view.nodes = request.nodes;
  view.fits = ranked->size() >= nodes;
  ranked->resize(std::min(ranked->size(), static_cast<std::size_t>(asked.most)));
  for (placement::Ranked& one : *ranked) {
    view.ranked.push_back(ranked_node(state.ledger(), std::move(one)));
  }
  for (const Blocker& blocker : shown.of(preview->blockers, spec.user)) {
    view.blockers.push_back(api::view_of(public_part(blocker)));
  }
  view.cancelled = preview->cancelled;
  if (shown.sight().others != OthersJobs::None) view.jobs_ahead = preview->ahead;
  if (preview->start) view.expected_start = {*preview->start, api::StartBy::RunTimes};
  exchange.respond(json_reply_of(std::move(view)));
}

}  // namespace

void show_place(Exchange exchange) {
  read_body<api::PlaceRequest>(std::move(exchange), api::read_place_request, answer_place);
}

}  // namespace gflow::server
