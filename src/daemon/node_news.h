// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/node_change.h"
#include "engine/state.h"
#include "server/event_journal.h"

namespace gflow::daemon {

/// What became of the nodes since the last look, for the log and for those who listen.
class NodeNews {
 public:
  /// How a node stands may be another now.
  void expect() { is_due_ = true; }
  /// Tells of that, in the log, too; once what the state says is written.
  void tell(const engine::State& state, server::EventJournal& events, WallTime now);

 private:
  NodeChanges changes_;
  bool is_due_ = false;
};

}  // namespace gflow::daemon
