// SPDX-License-Identifier: Apache-2.0
#include "server/shown.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "base/translate.h"

namespace gflow::server {
namespace {

/// Takes out of a blocker what is not shown of jobs.
struct HideJobs {
  const Shown& shown;

  void operator()(blocker::Dependency& b) const {
    if (!b.waiting_for.empty() && !shown.knows(b.waiting_for.front())) b.end.reset();
    hide(b.holders);
  }
  void operator()(blocker::GroupLimit& b) const { hide(b.holders); }
  void operator()(blocker::Gpus& b) const {
    hide(b.holders);
    for (blocker::Unusable& device : b.unusable) shown.hide(device.processes);
  }
  void operator()(blocker::GpuMemory& b) const { hide(b.holders); }
  void operator()(blocker::GpuShare& b) const { hide(b.holders); }
  void operator()(blocker::HostMemory& b) const { hide(b.holders); }
  void operator()(blocker::Cpus& b) const { hide(b.holders); }
  void operator()(blocker::GpuLimit& b) const {
    hide(b.holders);
    if (b.holders.empty()) b.until.reset();
  }
  void operator()(blocker::Preemption& b) const { shown.hide(b.jobs); }
  void operator()(blocker::NodeUnhealthy& b) const { shown.hide_cause(b.reason); }
  void operator()(blocker::Priority& b) const {
    if (!shown.knows(b.behind)) b = {};
  }
  /// Those that name no job.
  template <typename Other>
  void operator()(Other& /*b*/) const {}

 private:
  /// All of them or none: when there is room is read off the whole list.
  void hide(std::vector<blocker::Holder>& holders) const {
    const auto is_known = [this](const blocker::Holder& one) { return shown.knows(one.job); };
    if (!std::ranges::all_of(holders, is_known)) holders.clear();
  }
};

}  // namespace

bool Shown::knows(JobId id) const {
  if (sight_.others != OthersJobs::None) return true;
  const Job* job = state_.find(id);
  return job != nullptr && sight_.knows(job->spec.user);
}

std::vector<Blocker> Shown::of(std::vector<Blocker> blockers, const User& owner) const {
  for (Blocker& blocker : blockers) {
    if (!may_see(caller_, owner)) blocker = public_part(std::move(blocker));
    if (sight_.others != OthersJobs::All) std::visit(HideJobs{*this}, blocker);
    auto* limit = std::get_if<blocker::GroupLimit>(&blocker);
    if (limit != nullptr && !sight_.names(owner)) limit->group.clear();
  }
  return blockers;
}

void Shown::hide(api::DeviceView& view) const {
  if (sight_.others == OthersJobs::All) return;
  view.other_jobs += hide(view.jobs);
  std::erase_if(view.time_slices, [this](const auto& one) { return !knows(one.job); });
  hide(view.foreign);
  hide(view.device.processes);
}

void Shown::hide(std::vector<DeviceProcess>& processes) const {
  if (sight_.others == OthersJobs::All) return;
  std::erase_if(processes, [this](const auto& one) { return one.job && !knows(*one.job); });
  for (DeviceProcess& process : processes) {
    if (!process.job) continue;
    const Job* job = state_.find(*process.job);
    if (job != nullptr && sight_.names(job->spec.user)) continue;
    process.name.clear();
    process.pid = 0;
  }
}

std::string cause_withheld() { return tr("an operator is told the reason"); }

void Shown::hide_cause(std::string& reason) const {
  if (sight_.others == OthersJobs::None) reason = cause_withheld();
}

std::size_t Shown::hide(std::vector<JobId>& jobs) const {
  return std::erase_if(jobs, [this](JobId id) { return !knows(id); });
}

}  // namespace gflow::server
