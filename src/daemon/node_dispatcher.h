// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>

#include "daemon/dispatcher.h"
#include "engine/event.h"
#include "engine/state.h"
#include "store/store.h"

namespace gflow::daemon {

/// Executors by the name of their node; borrowed.
using Executors = std::map<std::string, Executor*>;

/// Routes by node. What it is to do on a node nobody runs jobs on is that node's failure, never
/// done elsewhere: a launch there comes back as not started and the node as one that does not
/// answer; what runs there is not known.
class NodeDispatcher : public Dispatcher {
 public:
  /// Borrows the state, the store and the executors for its lifetime. `post` takes what becomes
  /// known while acting: that an attempt cannot even be ordered.
  NodeDispatcher(const engine::State& state,
                 store::Store& store,
                 Executors executors,
                 std::function<void(engine::Event)> post);

  void launch(const LaunchOrder& order) override;
  [[nodiscard]] executor::Adoption adopt(const Job& job) override;
  void stop(const Job& job) override;
  void suspend(const Job& job) override;
  void resume(const Job& job) override;
  void change_limit(const Job& job) override;
  void forget_attempt(JobId job, int attempt) override;
  void forget_job(JobId job) override;
  [[nodiscard]] std::string largest_log() const override;

 private:
  void refuse(const LaunchOrder& order, Outcome outcome);
  /// That of the node the job's command runs on; null if nobody runs jobs there.
  [[nodiscard]] Executor* executor_of(const Job& job) const;

  const engine::State& state_;
  store::Store& store_;
  Executors executors_;
  std::function<void(engine::Event)> post_;
};

}  // namespace gflow::daemon
