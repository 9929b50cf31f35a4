// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "api/explanation.h"
#include "base/text.h"
#include "base/translate.h"
#include "core/gpu_request.h"

namespace gflow::api {
namespace {

/// The blocker of that kind, if there is one.
const BlockerView* blocker_of(const JobView& job, BlockerKind kind) {
  const auto at = std::ranges::find(job.blockers, kind, &BlockerView::kind);
  return at == job.blockers.end() ? nullptr : &*at;
}

/// A list of them for one job, each as a command and as what it changes.
class Suggestions {
 public:
  explicit Suggestions(JobId job) : job_(job) {}

  void release(std::string_view options, std::string text) {
    const std::string command = fmt::format("gjob release {}{}", job_.value, options);
    list_.push_back({"release", {}, command, std::move(text)});
  }
  void resume(std::string text) {
    list_.push_back({"resume", {}, fmt::format("gjob resume {}", job_.value), std::move(text)});
  }
  void update(std::string_view options, JobChanges changes, std::string text) {
    const std::string command = fmt::format("gjob update {} {}", job_.value, options);
    list_.push_back({"update", std::move(changes), command, std::move(text)});
  }
  [[nodiscard]] std::vector<Suggestion> take() { return std::move(list_); }

 private:
  JobId job_;
  std::vector<Suggestion> list_;
};

template <class V>
JobChanges change_of(V JobSpec::* member, std::type_identity_t<V> value) {
  JobChanges changes;
  changes.set(member, std::move(value));
  return changes;
}

template <class V>
JobChanges change_of(V Request::* member, std::type_identity_t<V> value) {
  JobChanges changes;
  changes.set(member, std::move(value));
  return changes;
}

std::string gpus_option(const GpuRequest& request) {
  const std::vector<std::string> word = {gpu_request_text(request)};
  return "--gpus " + shell_quote(word);
}

/// What stands before the queue: it is in the owner's hand.
void add_gates(const JobView& job, Suggestions& list) {
  if (blocker_of(job, BlockerKind::OnHold) != nullptr) {
    list.release("", tr("returns it to the queue"));
  }
  if (blocker_of(job, BlockerKind::Suspended) != nullptr) {
    list.resume(tr("continues it"));
  }
  if (blocker_of(job, BlockerKind::BeginTime) != nullptr) {
    list.release(" --at now+0", tr("clears the begin time"));
  }
  const BlockerView* waits = blocker_of(job, BlockerKind::Dependency);
  if (waits != nullptr && waits->never) {
    list.update("--depends-on ''",
                change_of(&JobSpec::dependencies, Dependencies{}),
                tr("removes the dependencies"));
  }
}

/// As many as are free, and as its user may still hold.
void add_fewer_gpus(const JobView& job, Suggestions& list) {
  const BlockerView* gpus = blocker_of(job, BlockerKind::Gpus);
  const BlockerView* limit = blocker_of(job, BlockerKind::GpuLimit);
  const Request& request = job.spec.request;
  std::int64_t there = request.gpus;
  if (gpus != nullptr) there = std::min(there, gpus->available.value_or(0));
  if (limit != nullptr) {
    const std::int64_t each = std::int64_t{request.share.parts} * request.nodes;
    there = std::min(there, limit->available.value_or(0) / each);
  }
  if (there <= 0 || there == request.gpus) return;
  GpuRequest fewer = gpu_request_of(request);
  fewer.gpus = static_cast<int>(there);
  list.update(
      gpus_option(fewer),
      change_of(&Request::gpus, fewer.gpus),
      limit == nullptr ? tr("as many as are free now") : tr("as many as its user may still hold"));
}

/// Asking for as much of a GPU as there is, where there is some.
void add_smaller_part(const JobView& job, const BlockerView& blocker, Suggestions& list) {
  const std::int64_t there = blocker.available.value_or(0);
  if (blocker.kind == BlockerKind::GpuMemory && there >= (std::int64_t{1} << 20)) {
    const std::int64_t mib = there >> 20;
    list.update(fmt::format("--gpu-memory {}M", mib),
                change_of(&Request::gpu_memory, Memory{mib << 20}),
                tr("as much as can be reserved now"));
  }
  if (there > 0 && blocker.kind == BlockerKind::GpuShare) {
    GpuRequest smaller = gpu_request_of(job.spec.request);
    smaller.share = Share{static_cast<std::int32_t>(there)};
    list.update(gpus_option(smaller),
                change_of(&Request::share, smaller.share),
                tr("as much of one as is free now"));
  }
}

/// What is idle is lent to those who give it back.
void add_borrowing(const JobView& job, const Asker& asker, Suggestions& list) {
  const bool lacks = blocker_of(job, BlockerKind::Gpus) != nullptr ||
                     blocker_of(job, BlockerKind::GpuMemory) != nullptr;
  if (!asker.could_borrow || !lacks) return;
  list.update("--preemptible=requeue",
              change_of(&JobSpec::preemption, Preemption::Requeue),
              tr("may start it on a GPU that is idle; it is queued again when that is used"));
}

void add_order(const JobView& job, const Asker& asker, Suggestions& list) {
  if (blocker_of(job, BlockerKind::Priority) == nullptr) return;
  if (asker.ahead && job.spec.priority <= *asker.ahead && *asker.ahead < asker.max_priority) {
    const int higher = *asker.ahead + 1;
    list.update(fmt::format("--priority {}", higher),
                change_of(&JobSpec::priority, higher),
                tr("moves it ahead of that job"));
  }
  if (!job.spec.time_limit) {
    list.update("--time-limit 1h",
                change_of(&JobSpec::time_limit, std::chrono::hours(1)),
                tr("a job with a time limit may be backfilled"));
  }
}

}  // namespace

std::vector<Suggestion> suggestions_for(const JobView& job, const Asker& asker) {
  if (!asker.may_change) return {};
  Suggestions list(job.id);
  add_gates(job, list);
  if (!is_pending(job.status)) return list.take();
  add_fewer_gpus(job, list);
  for (const BlockerView& blocker : job.blockers) add_smaller_part(job, blocker, list);
  add_borrowing(job, asker, list);
  add_order(job, asker, list);
  return list.take();
}

}  // namespace gflow::api
