// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "api/types.h"
#include "core/principal.h"
#include "engine/state.h"

namespace gflow::server {

/// What stands in the place of why launches fail on a node: that may name the job that met it.
[[nodiscard]] std::string cause_withheld();

/// What one who asks is shown where jobs are named that may be others': [access] others_jobs.
class Shown {
 public:
  Shown(const Principal& caller, const engine::State& state)
      : caller_(caller), sight_(sight_of(caller)), state_(state) {}

  [[nodiscard]] const JobSight& sight() const { return sight_; }
  [[nodiscard]] bool knows(JobId id) const;
  /// Why a job of `owner` waits.
  [[nodiscard]] std::vector<Blocker> of(std::vector<Blocker> blockers, const User& owner) const;
  /// Takes out of it what is not shown: whoever has the device, it is in use.
  void hide(api::DeviceView& view) const;
  /// A process of a job of which nothing is shown is not among them; of one whose names are hidden,
  /// neither is its number, which leads to them.
  void hide(std::vector<DeviceProcess>& processes) const;
  /// Why launches fail on a node.
  void hide_cause(std::string& reason) const;
  /// Takes out the jobs of which nothing is shown; how many these were.
  std::size_t hide(std::vector<JobId>& jobs) const;

 private:
  const Principal& caller_;
  JobSight sight_;
  const engine::State& state_;
};

}  // namespace gflow::server
