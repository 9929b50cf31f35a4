// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "daemon/hands.h"
#include "daemon/remover.h"
#include "engine/state.h"
#include "runner/ports.h"
#include "runner/runner.h"
#include "store/store.h"

namespace gflow::daemon {

/// The real hands: launch orders for the runner, from the store's payloads. `post` takes what
/// becomes known while acting: that an attempt cannot even be ordered.
class RunnerHands : public Hands {
 public:
  /// Borrows all four for its lifetime.
  RunnerHands(const engine::State& state,
              store::Store& store,
              runner::Runner& runner,
              Remover& remover,
              std::string socket,
              std::function<void(engine::Event)> post);

  void launch(const Job& job) override;
  [[nodiscard]] runner::Adoption adopt(const Job& job) override;
  void stop(const Job& job) override;
  void suspend(const Job& job) override;
  void resume(const Job& job) override;
  void change_limit(const Job& job) override;
  void forget_attempt(JobId job, int attempt) override;
  void forget_job(JobId job) override;
  [[nodiscard]] std::string largest_log() const override;

 private:
  [[nodiscard]] runner::PortBlock ports_for(JobId job);

  const engine::State& state_;
  store::Store& store_;
  runner::Runner& runner_;
  Remover& remover_;
  std::string socket_;
  std::function<void(engine::Event)> post_;
  void read_ports(JobId job, int attempt);

  std::map<JobId, runner::PortBlock> ports_;      ///< of the attempts under way
  std::set<std::pair<JobId, int>> ports_unread_;  ///< attempts taken over whose ports are not known
};

}  // namespace gflow::daemon
