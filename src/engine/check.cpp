// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "engine/index.h"

namespace gflow::engine {
namespace {

std::vector<int> both_of(const GpuMove& move) {
  return {std::min(move.from, move.to), std::max(move.from, move.to)};
}

/// Every active job holds what it asked for, and the ledger says what the jobs say.
std::string check_holdings(const Index& index) {
  for (const JobId id : index.jobs.ids()) {
    const Job& job = index.jobs.at(id);
    if (!is_active(job)) continue;
    const Attempt& attempt = *attempt_of(job);
    if (attempt.peers.size() + 1 != static_cast<std::size_t>(job.spec.request.nodes)) {
      return fmt::format("job {} asked for {} nodes", id.value, job.spec.request.nodes);
    }
    const auto* running = std::get_if<Running>(&job.state);
    const std::size_t more = running != nullptr && running->move ? 1 : 0;  // both of a move
    for (const Allocation& allocation : allocations_of(attempt)) {
      if (more > 0 && allocation.gpus != both_of(*running->move)) {
        return fmt::format("job {} moves, and holds others than both of its GPUs", id.value);
      }
      if (allocation.gpus.size() == static_cast<std::size_t>(job.spec.request.gpus) + more)
        continue;
      return fmt::format("job {} asked for {} GPUs and holds {}",
                         id.value,
                         job.spec.request.gpus,
                         allocation.gpus.size());
    }
  }
  return index.ledger.check();
}

/// What jobs and nodes give when they are told anew: every index but what was learned, which ended
/// jobs that are forgotten taught, too.
Index rebuilt_from(const Index& index) {
  Index fresh;
  fresh.policy = index.policy;
  fresh.boot_id = index.boot_id;
  fresh.now = index.now;
  fresh.lived_before = index.lived_before;
  fresh.lived_from = index.lived_from;
  fresh.forgotten = index.forgotten;
  fresh.nodes = index.nodes;
  fresh.drains = index.drains;
  fresh.slices = index.slices;
  fresh.health = index.health;
  fresh.jobs = index.jobs;
  fresh.gangs = index.gangs.emptied();
  fresh.ledger = index.ledger.emptied();
  for (const JobId id : fresh.jobs.ids()) {
    const Job& job = fresh.jobs.at(id);
    fresh.list(job);
    fresh.link(job);
  }
  fresh.pin_ended();
  fresh.put_nodes();
  fresh.count_gpus();
  return fresh;
}

/// The ledger has the nodes that were told, and holds the same as one that was told of every active
/// job anew.
std::string check_ledger(const Index& index, const Index& fresh) {
  for (const auto& [name, record] : index.nodes) {
    if (!index.ledger.find(name)) return fmt::format("node '{}' is not in the ledger", name);
    if (record.removed.has_value() != index.removed.contains(name)) {
      return fmt::format("node '{}' is not among those that were removed, or was not", name);
    }
  }
  for (placement::NodeIndex node = 0; node < index.ledger.size(); ++node) {
    const std::string& name = index.ledger.node(node).name;
    if (index.ledger.node(node) != fresh.ledger.node(node)) {
      return fmt::format("node '{}' is not what was told of it", name);
    }
    if (index.ledger.state(node) != fresh.ledger.state(node)) {
      return fmt::format("node '{}' is not what its jobs leave", name);
    }
  }
  if (fresh.holders != index.holders) return "the holders of devices are not what the jobs say";
  if (fresh.cpus_taken != index.cpus_taken) return "the CPUs taken are not what the jobs say";
  if (fresh.gpu_scale != index.gpu_scale) return "the number of GPUs is counted wrong";
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

bool is_queued(const Index& index, JobId id) {
  const Job* job = index.find(id);
  return job != nullptr && std::holds_alternative<Queued>(job->state);
}

std::string check_users(const Index& index, const Index& fresh) {
  const auto same = [](const auto& a, const auto& b) {
    return a.first == b.first && a.second.jobs == b.second.jobs;
  };
  if (!std::ranges::equal(index.by_user, fresh.by_user, same)) return "the index by user is wrong";
  return index.by_priority == fresh.by_priority ? "" : "the index by priority is wrong";
}

/// What is kept of the kinds that wait is what is known of any of their jobs.
std::string check_lines(const Index& index) {
  // By submission, jobs that can be stopped stand among those that cannot.
  const bool apart = index.policy.order.order == Order::Learned;
  for (const auto& [shape, lines] : index.ready) {
    for (const auto& [kind, line] : lines) {
      const Job& job = index.jobs.at(line.jobs.front().id);
      const Contender as_told = index.contender_of(job);
      if (index.kind_of(job) != kind || as_told.signature != line.contender.signature ||
          as_told.limit != line.contender.limit ||
          (apart && as_told.stoppable != line.contender.stoppable)) {
        return fmt::format("job {} waits among others than its kind", job.id.value);
      }
      Line anew = line;
      anew.knowledge = 0;
      index.expect(anew);
      if (line.knowledge != index.knowledge) continue;
      if (anew.allowance == line.allowance && anew.run_time == line.run_time) continue;
      return fmt::format("what is expected of job {} is out of date", job.id.value);
    }
  }
  return {};
}

/// The same of active jobs.
std::string check_incumbents(const Index& index) {
  for (const auto& [id, known] : index.incumbents) {
    const Job* job = index.find(id);
    if (job == nullptr || !is_active(*job)) {
      return fmt::format("job {} is kept as one that runs", id.value);
    }
    const Contender as_told = index.contender_of(*job);
    if (as_told.signature != known.contender.signature || as_told.limit != known.contender.limit ||
        as_told.stoppable != known.contender.stoppable || as_told.ready != known.contender.ready) {
      return fmt::format("job {}, which runs, is kept as another", id.value);
    }
    if (known.knowledge != index.knowledge) continue;
    if (known.chances != index.history.chances(as_told.signature)) {
      return fmt::format("what is expected of job {}, which runs, is out of date", id.value);
    }
  }
  return {};
}

/// Who comes next, by the last pass.
std::string check_next(const Index& index) {
  if (!index.awaited) return {};
  const auto& [head, first] = *index.awaited;
  if (head && !is_queued(index, head->job)) {
    return fmt::format("a place is kept for job {}, which does not wait", head->job.value);
  }
  if (head && index.is_at_limit(*index.find(head->job))) {
    return fmt::format("a place is kept for job {}, whose user is at a limit", head->job.value);
  }
  if (first && !is_queued(index, *first)) {
    return fmt::format("job {} is first of those that wait and does not", first->value);
  }
  return {};
}

/// The array of the first jobs says what the lines say.
std::string check_fronts(const Index& index) {
  std::size_t lines = 0;
  for (const auto& [shape, kinds] : index.ready) {
    for (const auto& [kind, line] : kinds) {
      ++lines;
      const JobId id = line.jobs.front().id;
      if (line.front >= index.fronts.all().size() || index.fronts.of(line).line != &line) {
        return fmt::format("the line of job {} has no front", id.value);
      }
      const Front& front = index.fronts.of(line);
      const bool up_to_date = index.fronts_knowledge == index.knowledge;
      if (front.first != line.jobs.front() || index.fronts.shape(front.shape) != shape ||
          front.stoppable != line.contender.stoppable ||
          front.penalty != index.fair.penalty_of(kind.uid) ||
          (up_to_date && front.allowance != line.allowance)) {
        return fmt::format("the front of job {} is not what its line says", id.value);
      }
    }
  }
  return lines == index.fronts.all().size() ? "" : "there are fronts without lines";
}

std::string check_health(const Index& index) {
  for (const auto& [name, health] : index.health) {
    const auto tried_by = [&](JobId id) {
      const Job* job = index.find(id);
      return job != nullptr && is_active(*job) && attempt_of(*job)->allocation.node == name;
    };
    if (health.node != name) return fmt::format("node '{}' is kept as another", name);
    if (health.trial && !tried_by(*health.trial)) {
      return fmt::format("job {} does not find out about node '{}'", health.trial->value, name);
    }
  }
  return {};
}

std::string check_ids(const Index& index) {
  for (const JobId id : index.jobs.ids()) {
    const Job& job = index.jobs.at(id);
    if (job.id != id) return fmt::format("job {} is kept as {}", job.id.value, id.value);
    if (id >= index.next_id) return fmt::format("job {} has an id not given out yet", id.value);
  }
  return {};
}

std::string check_indexes(const Index& index, const Index& fresh) {
  if (fresh.by_status != index.by_status) return "the index by status is wrong";
  if (fresh.ready != index.ready) return "the index of jobs that may start is wrong";
  if (!(fresh.gangs == index.gangs)) return "the jobs of gangs are counted wrong";
  if (fresh.begin_later != index.begin_later) return "the index of begin times is wrong";
  if (fresh.begun != index.begun) return "the index of begin times gone by is wrong";
  if (!fresh.fair.holds_like(index.fair)) return "what users hold and wait for is counted wrong";
  if (fresh.backoff != index.backoff) return "the index of launch back-offs is wrong";
  if (fresh.pending != index.pending) return "the count of waiting jobs by user is wrong";
  if (fresh.stored != index.stored) return "what users have stored is counted wrong";
  if (fresh.unreserved != index.unreserved)
    return "the count of jobs without GPUs and CPUs is wrong";
  if (!(fresh.dependencies == index.dependencies)) return "the graph of dependencies is wrong";
  if (fresh.ends != index.ends) return "the index of ends is wrong";
  if (fresh.ended != index.ended) return "the index of ended jobs is wrong";
  if (fresh.preemptible != index.preemptible) return "the index of preemptible jobs is wrong";
  if (fresh.lenders != index.lenders) return "the index of jobs that may lend is wrong";
  if (fresh.suspended != index.suspended) return "the index of suspended jobs is wrong";
  return {};
}

}  // namespace

std::string contradiction(const Index& index) {
  // First that the jobs make sense: the rest is made from them.
  if (std::string wrong = check_ids(index); !wrong.empty()) return wrong;
  if (std::string wrong = check_holdings(index); !wrong.empty()) return wrong;
  const Index fresh = rebuilt_from(index);
  for (const auto& compare : {check_indexes, check_users, check_ledger, check_groups}) {
    if (std::string wrong = compare(index, fresh); !wrong.empty()) return wrong;
  }
  for (const auto& look : {check_lines, check_incumbents, check_fronts, check_next, check_health}) {
    if (std::string wrong = look(index); !wrong.empty()) return wrong;
  }
  return {};
}

std::string State::check() const { return contradiction(*index_); }

}  // namespace gflow::engine
