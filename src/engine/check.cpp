// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <map>

#include "engine/index.h"

namespace gflow::engine {
namespace {

/// Every active job holds what it asked for, and the ledger says what the jobs say.
std::string check_holdings(const Index& index) {
  for (const auto& [id, job] : index.jobs) {
    if (!is_active(job)) continue;
    const Attempt& attempt = *attempt_of(job);
    if (attempt.peers.size() + 1 != static_cast<std::size_t>(job.spec.request.nodes)) {
      return fmt::format("job {} asked for {} nodes", id.value, job.spec.request.nodes);
    }
    for (const Allocation& allocation : allocations_of(attempt)) {
      if (allocation.gpus.size() == static_cast<std::size_t>(job.spec.request.gpus)) continue;
      return fmt::format("job {} asked for {} GPUs and holds {}",
                         id.value,
                         job.spec.request.gpus,
                         allocation.gpus.size());
    }
  }
  return index.ledger.check();
}

/// The ledger holds the same as one that was told of every active job anew.
std::string check_ledger(const Index& index, const Index& fresh) {
  for (placement::NodeIndex node = 0; node < index.ledger.size(); ++node) {
    if (index.ledger.state(node) != fresh.ledger.state(node)) {
      return fmt::format("node '{}' is not what its jobs leave", index.ledger.node(node).name);
    }
  }
  if (fresh.holders != index.holders) return "the holders of devices are not what the jobs say";
  if (fresh.cpus_taken != index.cpus_taken) return "the CPUs taken are not what the jobs say";
  return {};
}

std::string check_groups(const Index& index, const Index& fresh) {
  if (index.groups.size() != fresh.groups.size()) return "there are groups without jobs";
  for (const auto& [key, group] : index.groups) {
    const auto at = fresh.groups.find(key);
    if (at == fresh.groups.end()) return fmt::format("group '{}' has no jobs", key.name);
    const Group& other = at->second;
    if (group.members != other.members) return fmt::format("group '{}' has others", key.name);
    if (group.active != other.active) return fmt::format("group '{}' counts wrong", key.name);
    if (group.queued != other.queued || group.parked != other.parked) {
      return fmt::format("group '{}' has the wrong jobs in the queue", key.name);
    }
    for (const JobId id : group.members) {
      if (index.jobs.at(id).spec.max_concurrent == group.limit) continue;
      return fmt::format("job {} does not know the limit of its group", id.value);
    }
  }
  return {};
}

/// Room is made for jobs that wait, by jobs that were told to leave. Who has started or gone is
/// forgotten at the next pass.
std::string check_rooms(const Index& index) {
  for (const auto& [waiting, room] : index.rooms) {
    for (const JobId id : room.leaving) {
      const Job* job = index.find(id);
      if (job == nullptr || !is_active(*job)) continue;
      const auto* running = std::get_if<Running>(&job->state);
      if (running != nullptr && !running->stop) {
        return fmt::format(
            "job {} makes room for job {} and was not told", id.value, waiting.value);
      }
    }
  }
  return {};
}

std::string check_users(const Index& index) {
  std::size_t count = 0;
  for (const auto& [uid, user] : index.by_user) {
    count += user.jobs.size();
    for (const JobId id : user.jobs) {
      const Job* job = index.find(id);
      if (job == nullptr || job->spec.user.uid != uid) {
        return fmt::format("job {} is not of user {}", id.value, uid);
      }
    }
  }
  return count == index.jobs.size() ? "" : "the index by user is wrong";
}

}  // namespace

std::string State::check() const {
  const Index& index = *index_;
  if (std::string wrong = check_holdings(index); !wrong.empty()) return wrong;

  Index fresh;
  fresh.policy = index.policy;
  fresh.boot_id = index.boot_id;
  fresh.now = index.now;
  fresh.nodes = index.nodes;
  fresh.jobs = index.jobs;
  fresh.ledger = index.ledger.emptied();
  for (const auto& [id, job] : fresh.jobs) fresh.link(job);

  if (fresh.by_status != index.by_status) return "the index by status is wrong";
  if (fresh.ready != index.ready) return "the index of jobs that may start is wrong";
  if (fresh.begin_later != index.begin_later) return "the index of begin times is wrong";
  if (fresh.begun != index.begun) return "the index of begin times gone by is wrong";
  if (!fresh.fair.holds_like(index.fair)) return "what users hold and wait for is counted wrong";
  if (fresh.backoff != index.backoff) return "the index of launch back-offs is wrong";
  if (fresh.pending != index.pending) return "the count of waiting jobs by user is wrong";
  if (!(fresh.dependencies == index.dependencies)) return "the graph of dependencies is wrong";
  if (fresh.ends != index.ends) return "the index of ends is wrong";
  if (fresh.ended != index.ended) return "the index of ended jobs is wrong";
  if (fresh.ended_by_age != index.ended_by_age) return "the index of ended jobs by age is wrong";
  if (fresh.preemptible != index.preemptible) return "the index of preemptible jobs is wrong";
  if (fresh.standing != index.standing) return "the index of suspended jobs is wrong";
  if (std::string wrong = check_ledger(index, fresh); !wrong.empty()) return wrong;
  if (std::string wrong = check_groups(index, fresh); !wrong.empty()) return wrong;
  if (std::string wrong = check_rooms(index); !wrong.empty()) return wrong;
  if (std::string wrong = check_users(index); !wrong.empty()) return wrong;
  for (const auto& [id, job] : index.jobs) {
    if (id >= index.next_id) return fmt::format("job {} has an id not given out yet", id.value);
  }
  return {};
}

}  // namespace gflow::engine
