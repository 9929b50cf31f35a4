// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/state.h"
#include "engine/step.h"

namespace gflow::scenario {

/// Plays one scenario file through the real engine on a virtual clock. docs/format/scenario.md says
/// what can stand in one. After every step the state checks all its indexes.
class Scenario {
 public:
  Scenario();
  /// The first thing that is not as the file says, as "file:line: what"; "" if all is.
  [[nodiscard]] std::string play(const std::string& name, const std::string& text);

 private:
  struct Line {
    std::string verb;
    std::vector<std::string> words;           ///< without key=value
    std::map<std::string, std::string> keys;  ///< key=value
  };
  using Verb = Result<void> (Scenario::*)(const Line&);
  static const std::map<std::string, Verb>& verbs();

  Result<void> machine(const Line& line);
  [[nodiscard]] Principal principal(const std::string& text) const;
  Result<void> policy(const Line& line);
  Result<void> advance(const Line& line);
  Result<void> calendar(const Line& line);
  Result<void> submit(const Line& line);
  Result<void> refuse(const Line& line);
  Result<void> started(const Line& line);
  Result<void> finish(const Line& line);
  Result<void> request(const Line& line);
  Result<void> update(const Line& line);
  Result<void> foreign(const Line& line);
  Result<void> uses(const Line& line);
  Result<void> node(const Line& line);
  Result<void> drain(const Line& line);
  Result<void> restart(const Line& line);
  Result<void> reboot(const Line& line);
  Result<void> mig(const Line& line);
  Result<void> driver(const Line& line);
  Result<void> obey(const MadeSlice& order);
  Result<void> add_slice(MigGpu& gpu, const std::string& profile, int start, std::string& uuid);
  Result<void> expect_cut(const Line& line);
  Result<void> expect(const Line& line);
  Result<void> expect_waiting(const Line& line, const Job& job);
  Result<void> expect_count(const Line& line);
  Result<void> expect_free(const Line& line);

  Result<void> step(const engine::Event& event);
  void reopen(const std::string& boot_id, MonoTime mono);
  Result<void> read_request(const Line& line, JobSpec& spec) const;
  [[nodiscard]] Result<JobSpec> spec_of(const Line& line) const;
  [[nodiscard]] Result<JobId> job(const std::string& name) const;
  [[nodiscard]] Result<Dependencies> dependencies(const Line& line) const;

  engine::Policy policy_;
  std::string boot_id_ = "boot-1";
  engine::State state_;
  Machine machine_;
  Now now_;
  std::map<std::string, JobId> names_;
  mutable std::map<std::string, std::uint32_t> uids_;  ///< given when first named
  std::vector<gflow::Drain> drains_;                   ///< as saved
  std::vector<gflow::NodeHealth> unhealthy_;           ///< as saved
  std::vector<MadeSlice> slices_;                      ///< as saved
  std::vector<MadeSlice> orders_;                      ///< to make slices and to remove them
  int slices_made_ = 0;
  std::map<JobId, Job> saved_;  ///< what Save and Forget left: the store of this world
  Error refused_{};             ///< of the last request, message "" if it was taken
};

}  // namespace gflow::scenario
