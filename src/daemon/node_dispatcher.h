// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/dispatcher.h"
#include "engine/event.h"
#include "engine/state.h"
#include "store/store.h"

namespace gflow::daemon {

/// An executor and the names of the nodes it serves, which no other does.
struct NodeExecutor {
  std::unique_ptr<Executor> executor;
  std::vector<std::string> nodes;
};

/// Routes by node, and asks everybody who runs jobs as if they were one. What it is to do on a node
/// nobody runs jobs on is that node's failure, never done elsewhere: a launch there comes back as
/// not started and the node as one that does not answer; what runs there is not known.
class NodeDispatcher : public Dispatcher {
 public:
  /// Borrows the state, the store and the executors, at least one, for its lifetime; the first is
  /// that of the machine it runs on. `post` takes what becomes
  /// known while acting: that an attempt cannot even be ordered. `launching` may add to what the
  /// job is told, once all of the order is there. `cut` has slices made and removed.
  NodeDispatcher(const engine::State& state,
                 store::Store& store,
                 const std::vector<NodeExecutor>& executors,
                 std::function<void(engine::Event)> post,
                 std::function<void(LaunchOrder&)> launching = {},
                 std::function<void(const MadeSlice&)> cut = {});

  void launch(const LaunchOrder& order) override;
  [[nodiscard]] executor::Adoption adopt(const Job& job) override;
  void stop(const Job& job) override;
  void suspend(const Job& job) override;
  void move(const Job& job) override;
  void resume(const Job& job) override;
  void signal(const Job& job, int number) override;
  void change_limit(const Job& job) override;
  void cut(const MadeSlice& slice) override;
  void forget_attempt(JobId job, int attempt) override;
  void forget_job(JobId job) override;
  [[nodiscard]] std::string largest_log() const override;

  /// See Executor.
  void sweep(const std::vector<std::pair<JobId, int>>& known);
  [[nodiscard]] std::vector<executor::Doubt> doubts() const;
  /// As its node's executor says; as the first one does where the job never ran, or nobody serves
  /// its node any more.
  [[nodiscard]] std::string log_path(const Job& job) const;
  /// None for a job without an attempt, or whose node nobody serves.
  [[nodiscard]] GpuLimits gpu_limits(const Job& job) const;
  [[nodiscard]] GpuIsolation gpu_isolation(const Job& job) const;
  /// The same.
  [[nodiscard]] PortBlock ports(const Job& job) const;

 private:
  void refuse(const LaunchOrder& order, Outcome outcome);
  /// Null if nobody runs jobs there.
  [[nodiscard]] Executor* executor_at(const std::string& node) const;
  /// That of the node the job's command runs on; null if nobody runs jobs there.
  [[nodiscard]] Executor* executor_of(const Job& job) const;

  const engine::State& state_;
  store::Store& store_;
  const std::vector<NodeExecutor>& executors_;
  std::map<std::string, Executor*> by_node_;
  std::function<void(engine::Event)> post_;
  std::function<void(LaunchOrder&)> launching_;
  std::function<void(const MadeSlice&)> cut_;
};

/// For people.
[[nodiscard]] std::string doubt_text(const executor::Doubt& doubt);

}  // namespace gflow::daemon
