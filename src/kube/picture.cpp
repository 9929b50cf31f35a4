// SPDX-License-Identifier: Apache-2.0
#include "kube/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/kept_sentence.h"
#include "kube/job_id.h"
#include "kube/movable.h"
#include "kube/predicates.h"
#include "kube/scheduler.h"
#include "kube/want.h"

namespace gflow::kube {
namespace {

constexpr int kOfOneCpu = 1000;
/// Beyond the accounts of this machine: namespaces have none.
constexpr std::uint32_t kFirstNamespace = 0x8000'0000;

/// A Job and its pods.
struct JobPods {
  const BatchJob* job = nullptr;
  const Pod* pod = nullptr;        ///< the newest that has not ended, as which it is shown
  const EndedPod* last = nullptr;  ///< the newest that has
  int ended = 0;
  std::optional<Outcome> outcome{};  ///< once it is over
};
using JobsByUid = std::map<std::string, JobPods>;

template <typename One>
void keep_newest(const One*& kept, const One& other) {
  if (kept == nullptr || kept->created < other.created) kept = &other;
}

JobsByUid jobs_of(const ClusterFacts& facts) {
  JobsByUid jobs;
  for (const auto& [uid, job] : facts.jobs) jobs[uid].job = &job;
  if (jobs.empty()) return jobs;
  for (const auto& [uid, pod] : facts.pods) {
    if (const auto at = jobs.find(pod.job); at != jobs.end()) keep_newest(at->second.pod, pod);
  }
  for (const auto& [uid, pod] : facts.ended) {
    const auto at = jobs.find(pod.job);
    if (at == jobs.end()) continue;
    keep_newest(at->second.last, pod);
    ++at->second.ended;
  }
  for (auto& [uid, one] : jobs) {
    if (one.pod == nullptr) one.outcome = outcome_of(*one.job, one.last);
  }
  return jobs;
}

/// As the Job it is of.
Pod pod_as(const BatchJob& job, Pod pod) {
  pod.uid = job.stand_in.uid;
  pod.name = job.stand_in.name;
  pod.created = job.stand_in.created;
  return pod;
}

class PictureMaker {
 public:
  PictureMaker(const ClusterFacts& facts, const JobsByUid& jobs, Scheduler& scheduler, Now now)
      : now_(now),
        jobs_(jobs),
        scheduler_(scheduler),
        state_(shown(scheduler.state().policy()), kBoot) {
    for (Machine& machine : scheduler.machines()) {
      machines_.emplace(machine.name, std::move(machine));
    }
    for (const auto& [uid, node] : facts.nodes) close(node);
  }

  Picture paint(std::uint64_t revision) {
    state_.set_lived(now_.wall.time_since_epoch(), now_.mono);
    state_.restore(drains_);
    const std::vector<Scheduler::Seen> seen = scheduler_.seen();
    std::vector<const Pod*> pods;
    for (const auto& one : seen) pods.push_back(one.pod);
    for (const auto& [uid, one] : jobs_) {
      if (one.outcome) pods.push_back(&one.job->stand_in);
    }
    auto ids = job_ids_of(pods);
    const std::vector<Label> common = labels_of_all();
    JobId last;
    for (const auto& one : seen) {
      Job job = job_of(one);
      job.id = ids.at(one.pod->uid);
      last = std::max(last, job.id);
      drop(common, job.spec.request.selector);
      if (one.gang != engine::kNoGang) {
        state_.put_gang(one.gang, one.least, one.near);
        state_.join_gang(job.id, one.gang);
      }
      if (!one.pod->told.empty()) told_.emplace(job.id, one.pod->told);
      state_.restore(std::move(job));
      if (one.is_held) state_.hold_gang(one.gang, true);
    }
    for (const auto& [uid, one] : jobs_) {
      if (!one.outcome) continue;
      Job job = ended_job(one);
      job.id = ids.at(uid);
      last = std::max(last, job.id);
      state_.restore(std::move(job));
    }
    state_.restored(JobId(last.value + 1));
    std::vector<engine::NodeRecord> nodes;
    for (auto& [name, machine] : machines_) {
      drop(common, machine.labels);
      machine.cpus = std::max(machine.cpus.value_or(0) - parts_of_cpus_[name], 0) / kOfOneCpu;
      nodes.push_back({std::move(machine)});
    }
    state_.show(std::move(nodes), now_, revision);
    return {std::move(state_), std::move(told_), std::move(ids)};
  }

 private:
  static constexpr const char* kBoot = "cluster";

  /// As settings can say it, for who replays a snapshot; and what ended is counted there, which a
  /// scheduler forgets.
  static engine::Policy shown(engine::Policy policy) {
    const engine::Policy usual;
    policy.max_unreserved_per_user = 100'000'000;
    policy.max_launch_failures = usual.max_launch_failures;
    policy.keep_ended = usual.keep_ended;
    policy.max_ended = usual.max_ended;
    return policy;
  }

  void close(const Node& node) {
    if (!is_closed(node)) return;
    std::string why = node.is_cordoned ? "cordoned" : "";
    for (const Taint& taint : node.taints) {
      if (why.empty() && taint.key.starts_with("node.kubernetes.io/")) why = taint.key;
    }
    drains_.push_back({.node = node.name, .gpu = {}, .reason = std::move(why), .by = "kubernetes"});
  }

  /// Those that each node has tell nobody anything.
  [[nodiscard]] std::vector<Label> labels_of_all() const {
    if (machines_.empty()) return {};
    std::vector<Label> common = machines_.begin()->second.labels;
    std::erase_if(common, [](const Label& one) { return !one.key.starts_with(kAdmitsPrefix); });
    for (const auto& one : machines_) {
      const std::vector<Label>& labels = one.second.labels;
      std::erase_if(common, [&labels](const Label& label) {
        return std::ranges::find(labels, label) == labels.end();
      });
    }
    return common;
  }
  static void drop(const std::vector<Label>& common, std::vector<Label>& from) {
    std::erase_if(from, [&common](const Label& label) {
      return std::ranges::find(common, label) != common.end();
    });
  }

  Job job_of(const Scheduler::Seen& seen) {
    const Pod& pod = *seen.pod;
    const auto its = jobs_.find(pod.uid);
    const JobPods* of_job = its == jobs_.end() ? nullptr : &its->second;
    Job job;
    if (seen.job != nullptr) {
      job = *seen.job;
    } else {
      job = unjudged_job(pod);
      if (pod.node.empty()) job.state = Held{kept<Kept::PodRefused>(why_held(pod))};
      if (!pod.node.empty()) job.state = on_node(pod);
      // What it has there is missing from its node.
      if (!pod.node.empty()) job.spec.request = {};
    }
    if (of_job != nullptr && pod.node.empty() && of_job->job->is_suspended) {
      job.state = Held{};
    }
    job.spec.name = pod.name;
    job.spec.user = user_of(pod.name_space);
    job.attempts = is_active(job) ? 1 : 0;
    if (of_job != nullptr) tell_job(job, *of_job);
    if (auto* running = std::get_if<Running>(&job.state)) {
      begin(running->attempt, pod);
      if (seen.has_class) job.spec.preemption = Preemption::Requeue;
    }
    count_cpus(job);
    return job;
  }

  /// One the engine knows nothing of.
  static Job unjudged_job(const Pod& pod) {
    Job job;
    job.spec.request = request_of(pod).value_or(gflow::Request{});
    job.spec.priority = priority_of(pod.priority);
    job.spec.work_dir = "/";
    job.submitted = pod.created;
    job.lived = pod.created.time_since_epoch();
    return job;
  }

  /// What the Job says that a pod does not.
  static void tell_job(Job& job, const JobPods& its) {
    job.spec.command = its.job->command;
    job.spec.project = its.job->project;
    job.spec.group = its.job->group;
    job.spec.time_limit = its.job->time_limit;
    job.spec.max_retries = its.job->max_retries;
    job.spec.requeue = its.job->retries_lost;
    job.attempts += its.ended;
    job.retries = std::max(job.attempts - 1, 0);
  }

  Job ended_job(const JobPods& its) {
    const Pod& pod = its.job->stand_in;
    Job job = unjudged_job(pod);
    job.spec.name = pod.name;
    job.spec.user = user_of(pod.name_space);
    tell_job(job, its);
    count_cpus(job);
    Ended ended{.status = status_for(*its.outcome), .outcome = *its.outcome, .at = {}};
    ended.at = its.last != nullptr ? its.last->at : its.job->verdict->at;
    ended.lived =
        std::chrono::duration_cast<std::chrono::milliseconds>(ended.at.time_since_epoch());
    if (its.last != nullptr && !its.last->node.empty()) ended.attempt = attempt_of_last(its);
    job.state = std::move(ended);
    return job;
  }

  [[nodiscard]] Attempt attempt_of_last(const JobPods& its) const {
    const EndedPod& pod = *its.last;
    Attempt attempt;
    attempt.number = its.ended;
    attempt.boot_id = kBoot;
    attempt.allocation.node = pod.node;
    attempt.started = pod.started;
    attempt.started_mono =
        now_.mono - std::chrono::duration_cast<std::chrono::milliseconds>(now_.wall - pod.started);
    const auto machine = machines_.find(pod.node);
    const auto chosen = read_chosen(pod.allocation);
    if (machine == machines_.end() || !chosen) return attempt;
    for (const Chosen& one : chosen->devices) {
      if (const auto index = index_of(machine->second.devices, one)) {
        attempt.allocation.gpus.push_back(*index);
      }
    }
    std::ranges::sort(attempt.allocation.gpus);
    return attempt;
  }

  User user_of(const std::string& name_space) {
    const auto next = kFirstNamespace + static_cast<std::uint32_t>(namespaces_.size());
    return {namespaces_.try_emplace(name_space, next).first->second, name_space};
  }

  static std::string why_held(const Pod& pod) {
    if (pod.is_deleted) return "it is being deleted";
    if (pod.is_gated) return "it has scheduling gates";
    if (!pod.told.empty()) return pod.told;
    const auto request = request_of(pod);
    return request ? "what it asks for is not judged" : request.error().message;
  }

  [[nodiscard]] static Running on_node(const Pod& pod) {
    Running running;
    running.attempt.number = 1;
    running.attempt.allocation.node = pod.node;
    running.attempt.boot_id = kBoot;
    if (pod.is_deleted) running.stop = Stop{EndReason::Cancelled, {}, 0};
    return running;
  }

  /// As long ago as the cluster says, by both clocks.
  void begin(Attempt& attempt, const Pod& pod) const {
    attempt.started = std::min(pod.started.value_or(pod.created), now_.wall);
    attempt.started_mono = now_.mono - std::chrono::duration_cast<std::chrono::milliseconds>(
                                           now_.wall - attempt.started);
  }

  /// A scheduler counts them in thousandths.
  void count_cpus(Job& job) {
    int& cpus = job.spec.request.cpus;
    const int parts = cpus % kOfOneCpu;
    cpus /= kOfOneCpu;
    if (parts == 0) return;
    if (is_active(job)) {
      parts_of_cpus_[attempt_of(job)->allocation.node] += parts;
    } else {
      ++cpus;
    }
  }

  Now now_;
  const JobsByUid& jobs_;
  Scheduler& scheduler_;
  engine::State state_;
  std::map<std::string, Machine> machines_;
  std::vector<Drain> drains_;
  std::map<std::string, int> parts_of_cpus_;  ///< that jobs have beyond whole ones, by node
  std::map<std::string, std::uint32_t> namespaces_;
  std::map<JobId, std::string> told_;
};

}  // namespace

Picture picture_of(const ClusterFacts& facts, Now now, std::uint64_t revision) {
  engine::Policy policy;
  policy.preempt = false;  // whether it does is an option of the scheduler, which is not read
  Scheduler scheduler(facts.scheduler, policy);
  scheduler.volumes().ignore();  // they are not read
  scheduler.devices().ignore();  // nor are these
  scheduler.limit(facts.quota);
  scheduler.divide(facts.levels, facts.are_levels_unread);
  for (const auto& [uid, node] : facts.nodes) scheduler.put(node);
  // A PodGroup is not read, and would say how many of its pods start together: all there are.
  std::map<GangName, std::size_t> groups;
  const JobsByUid jobs = jobs_of(facts);
  std::set<std::string> movable;
  for (const auto& [uid, pod] : facts.pods) {
    if (pod.gang && pod.gang->name.source != GangSource::Pods) ++groups[pod.gang->name];
    const auto its = jobs.find(pod.job);
    const BatchJob* job = its != jobs.end() ? its->second.job : nullptr;
    const bool is_shown_as_job = job != nullptr && its->second.pod == &pod;
    Pod shown = is_shown_as_job ? pod_as(*job, pod) : pod;
    if (may_move(shown, job) && may_evict(facts.budgets, shown)) movable.insert(shown.uid);
    scheduler.put(std::move(shown));
  }
  scheduler.class_running(std::move(movable));
  for (const auto& [uid, its] : jobs) {
    if (its.pod != nullptr || its.outcome) continue;
    Pod waits = its.job->stand_in;
    waits.is_gated = waits.is_gated || its.job->is_suspended;
    scheduler.put(std::move(waits));
  }
  for (const auto& [name, pods] : groups) {
    const auto near = facts.nears.find(name);
    scheduler.put(
        PodGroup{name.name, name, pods, near == facts.nears.end() ? NearWish{} : near->second});
  }
  scheduler.begin(now);
  return PictureMaker(facts, jobs, scheduler, now).paint(revision);
}

std::string with_pods_named(std::string message, const engine::State& state) {
  constexpr std::string_view kJob = "job ";
  std::size_t at = 0;
  while ((at = message.find(kJob, at)) != std::string::npos) {
    const std::size_t begin = at + kJob.size();
    const std::size_t end =
        std::min(message.find_first_not_of("0123456789", begin), message.size());
    std::uint64_t number = 0;
    (void)std::from_chars(message.data() + begin, message.data() + end, number);
    const Job* job = state.find(JobId(number));
    at = end;
    if (job == nullptr) continue;
    const std::string pod = fmt::format("pod {}/{}", job->spec.user.name, job->spec.name);
    message.replace(begin - kJob.size(), end - begin + kJob.size(), pod);
    at = begin - kJob.size() + pod.size();
  }
  return message;
}

}  // namespace gflow::kube
