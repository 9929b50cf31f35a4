// SPDX-License-Identifier: Apache-2.0
#include "kube/picture.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "base/kept_sentence.h"
#include "kube/job_id.h"
#include "kube/predicates.h"
#include "kube/scheduler.h"
#include "kube/want.h"

namespace gflow::kube {
namespace {

constexpr int kOfOneCpu = 1000;
/// Beyond the accounts of this machine: namespaces have none.
constexpr std::uint32_t kFirstNamespace = 0x8000'0000;

class PictureMaker {
 public:
  PictureMaker(const ClusterFacts& facts, Scheduler& scheduler, Now now)
      : now_(now), scheduler_(scheduler), state_(shown(scheduler.state().policy()), kBoot) {
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
    const auto ids = job_ids_of(pods);
    const std::vector<Label> common = labels_of_all();
    JobId last;
    for (const auto& one : seen) {
      Job job = job_of(one);
      job.id = ids.at(one.pod->uid);
      last = std::max(last, job.id);
      drop(common, job.spec.request.selector);
      if (one.gang != engine::kNoGang) {
        state_.put_gang(one.gang, one.least);
        state_.join_gang(job.id, one.gang);
      }
      if (!one.pod->told.empty()) told_.emplace(job.id, one.pod->told);
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
    return {std::move(state_), std::move(told_)};
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
    for (const auto& [name, machine] : machines_) {
      std::erase_if(common, [&machine](const Label& label) {
        return std::ranges::find(machine.labels, label) == machine.labels.end();
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
    Job job;
    if (seen.job != nullptr) {
      job = *seen.job;
    } else {
      job.spec.request = request_of(pod).value_or(gflow::Request{});
      job.spec.priority = priority_of(pod.priority);
      job.spec.work_dir = "/";
      job.submitted = pod.created;
      job.lived = pod.created.time_since_epoch();
      if (pod.node.empty()) job.state = Held{kept<Kept::PodRefused>(why_held(pod))};
      if (!pod.node.empty()) job.state = on_node(pod);
      // What it has there is missing from its node.
      if (!pod.node.empty()) job.spec.request = {};
    }
    job.spec.name = pod.name;
    job.spec.user = user_of(pod.name_space);
    job.attempts = is_active(job) ? 1 : 0;
    if (auto* running = std::get_if<Running>(&job.state)) begin(running->attempt, pod);
    count_cpus(job);
    return job;
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
  Scheduler scheduler(facts.scheduler, {});
  scheduler.limit(facts.quota);
  for (const auto& [uid, node] : facts.nodes) scheduler.put(node);
  // A PodGroup is not read, and would say how many of its pods start together: all there are.
  std::map<GangName, std::size_t> groups;
  for (const auto& [uid, pod] : facts.pods) {
    if (pod.gang && pod.gang->name.source != GangSource::Pods) ++groups[pod.gang->name];
    scheduler.put(pod);
  }
  for (const auto& [name, pods] : groups) scheduler.put(PodGroup{name.name, name, pods});
  scheduler.begin(now);
  return PictureMaker(facts, scheduler, now).paint(revision);
}

}  // namespace gflow::kube
