// SPDX-License-Identifier: Apache-2.0
#include "daemon/node_news.h"

#include <fmt/format.h>

#include "base/text.h"
#include "daemon/log.h"

namespace gflow::daemon {
namespace {

NodeStandings standings_of(const engine::State& state) {
  NodeStandings standings;
  for (const auto& [name, record] : state.nodes()) {
    if (!record.removed) standings[name].unreachable = record.unreachable;
  }
  for (const Drain& drain : state.drains()) {
    if (const auto at = standings.find(drain.node); at != standings.end()) {
      at->second.drains.push_back(drain);
    }
  }
  for (const NodeHealth& health : state.unhealthy()) {
    if (const auto at = standings.find(health.node); at != standings.end()) {
      at->second.unhealthy = health.reason;
    }
  }
  return standings;
}

/// "node lab1: GPU 3 drained by alice: fan is loud"
std::string text_of(const NodeChange& change) {
  std::string text = fmt::format("node {}: ", change.node);
  if (change.gpu) {
    text += fmt::format("GPU {} ", *change.gpu);
  } else if (!change.uuid.empty()) {
    text += fmt::format("GPU {} ", change.uuid);
  }
  text += node_change_name(change.what);
  if (!change.by.empty()) text += fmt::format(" by {}", change.by);
  if (!change.reason.empty()) text += fmt::format(": {}", change.reason);
  return text;
}

}  // namespace

void NodeNews::tell(const engine::State& state, server::EventJournal& events, WallTime now) {
  if (!is_due_) return;
  is_due_ = false;
  for (const NodeChange& change : changes_.see(standings_of(state))) {
    spdlog::info("{}", printable(text_of(change)));
    events.add(now, change);
  }
}

}  // namespace gflow::daemon
