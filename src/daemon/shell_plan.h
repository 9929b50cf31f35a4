// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "base/translate.h"
#include "daemon/shell.h"

/// Inside of the shell. Not for other files.
namespace gflow::daemon {

/// Of what was set aside, the steps that are left for those who cancel what fills the disk.
inline constexpr int kKeptForCancelling = 3;

struct Shell::Plan {
  std::set<JobId> saves;
  /// Of new jobs, by their ids; some may be in saves, too.
  std::vector<std::shared_ptr<const JobRange>> ranges;
  std::map<JobId, TaskPayload> payloads;  ///< by the first job of a submission's entry
  std::vector<JobId> forgets;
  std::vector<store::Submission> submissions;
  JobEvents events;
  std::vector<Unwritten> unwritten;
  bool new_ids = false;
  bool was_put_off = false;  ///< the disk was full when it should have been written
  bool stopping = false;     ///< somebody cancels jobs with it
  bool new_drains = false;
  bool new_health = false;
  bool new_slices = false;
  std::vector<engine::Effect> acts;  ///< Launch, StopAttempt, Signal, Suspend, ...
  std::vector<std::pair<JobId, int>> attempts_over;
  struct Reply {
    Answer answer;
    Result<std::vector<JobId>> jobs;
    bool makes_room = false;  ///< what was asked for may end the want of room it waits for
    /// What a refusal is said in that comes after it was decided.
    const MessageCatalogue* messages = messages_in_use();
  };
  std::vector<Reply> replies;
  Ticked ticked;
};

}  // namespace gflow::daemon
