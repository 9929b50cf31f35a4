// SPDX-License-Identifier: Apache-2.0
// Random lives of a queue: whatever comes in whatever order, every index stays right, nothing is
// held twice, and the same events give the same effects.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>

#include "engine/step.h"

namespace gflow::engine {
namespace {

using namespace std::chrono_literals;

/// Makes events from a seed. Knows only ids it may have been given, right or wrong.
class Chance {
 public:
  explicit Chance(unsigned seed) : random_(seed) {}

  int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
  bool one_in(int n) { return below(n) == 0; }

  Request request() {
    Request request{
        .gpus = one_in(3) ? 0 : below(5), .cpus = below(3), .memory = Memory::gib(below(20))};
    if (one_in(3)) request.gpu_memory = Memory::gib(1 + below(30));
    if (one_in(4)) request.models = {one_in(4) ? "T4" : "A100"};
    if (one_in(6)) request.nodes = 2;
    if (one_in(3)) {
      request.gpus = 1;
      request.mode = one_in(3) ? GpuMode::TimeSlice : GpuMode::Fraction;
      if (request.mode == GpuMode::Fraction) request.share = Share::percent(1 + below(100));
    }
    return request;
  }

  JobSpec spec(JobId next) {
    JobSpec spec;
    spec.user = one_in(3) ? User{2000, "bob"} : User{1000, "alice"};
    spec.request = request();
    spec.preemption = static_cast<Preemption>(1 + below(3));
    spec.priority = one_in(4) ? below(256) : kDefaultPriority;
    if (!one_in(3)) spec.time_limit = std::chrono::minutes(1 + below(300));
    if (one_in(6)) spec.begin = WallTime(std::chrono::minutes(below(2000)));
    for (int i = below(4); i > 0 && one_in(3); --i) spec.dependencies.jobs.push_back(any_job(next));
    spec.dependencies.mode = one_in(2) ? DependencyMode::Any : DependencyMode::All;
    spec.dependencies.auto_cancel = !one_in(3);
    spec.hold = one_in(8);
    spec.requeue = one_in(3);
    spec.max_retries = below(3);
    if (one_in(3)) {
      spec.group = one_in(2) ? "sweep" : "grid";
      spec.max_concurrent = below(4);
    }
    return spec;
  }

  JobId any_job(JobId next) {
    return JobId(1 + static_cast<std::uint64_t>(below(static_cast<int>(next.value) + 1)));
  }

  /// The end, or start, of some attempt that may or may not be under way.
  Event report(const State& state) {
    const JobId id = any_job(state.next_id());
    const Job* job = state.find(id);
    const int attempt = job == nullptr ? 1 : job->attempts - (one_in(10) ? 1 : 0);
    if (one_in(4)) return event::AttemptStarted{id, attempt, 1 + below(1000)};
    if (one_in(8)) return event::StopBegun{id, attempt};
    if (one_in(8)) return event::StopRefused{id, attempt};
    Outcome outcome;
    outcome.reason = static_cast<EndReason>(1 + below(11));
    if (one_in(4)) outcome.reason = EndReason::NotStarted;
    outcome.failure.kind = static_cast<FailureKind>(1 + below(3));
    outcome.exit_code = one_in(2) ? 0 : 1;
    return event::AttemptEnded{id, attempt, outcome};
  }

  Machine machine(std::string name) {
    Machine machine;
    machine.name = std::move(name);
    machine.cpus = 8;
    machine.memory = Memory::gib(64);
    for (int i = 0; i < 4; ++i) {
      Device device;
      device.index = i;
      device.usable = !one_in(10);
      device.vendor = "nvidia";
      device.model = one_in(5) ? "Tesla T4" : "NVIDIA A100-SXM4-40GB";
      if (!one_in(6)) device.memory_total = Memory::gib(40);
      if (one_in(3)) device.memory_used = Memory::gib(below(40));
      if (one_in(3))
        device.uses.push_back({static_cast<std::uint64_t>(1 + below(40)), Memory::gib(below(20))});
      if (one_in(5)) device.processes.push_back({4711, "dave", "python", std::nullopt});
      machine.devices.push_back(device);
    }
    return machine;
  }

  /// Two jobs, or the tasks of arrays.
  Event submit(JobId next) {
    event::Submit submit{{spec(next), spec(next)}, system_principal()};
    if (one_in(2)) return submit;
    submit.specs.front().name = one_in(2) ? "exp" : "";
    submit.tasks = {
        TaskRange{.first = 9, .count = static_cast<std::uint64_t>(1 + below(6)), .step = 3},
        std::nullopt};
    return submit;
  }

  std::string node() { return "n" + std::to_string(below(3)); }

  /// A node comes, changes, goes.
  Event nodes() {
    if (one_in(6)) return event::NodeUnreachable{node(), "no answer"};
    if (one_in(8)) return event::NodeRemoved{node(), one_in(2) ? "" : "sold"};
    return event::NodesChanged{{machine(node())}};
  }

  static Principal alice() { return {.name = "alice", .uid = 1000, .projects = {}}; }
  static Principal root() {
    return {.name = "root", .uid = 0, .role = Role::Administrator, .projects = {}};
  }

  Event drain() {
    Drain what{.reason = "fan"};
    if (!one_in(4)) what.node = node();
    if (!one_in(4)) what.gpu = below(5);
    return event::Drain{what, one_in(2), one_in(5) ? alice() : root()};
  }

  Event next(const State& state) {
    const JobId id = any_job(state.next_id());
    const Principal by = one_in(2) ? alice() : root();
    switch (below(16)) {
      case 15:
        return event::Suspend{{id}, by};
      case 14:
        return event::Resume{{id}, by};
      case 12:
        return nodes();
      case 13:
        return drain();
      case 0:
        return event::NodesChanged{{machine("n0")}};
      case 1:
        return event::Cancel{{id}, by};
      case 2:
        return event::Hold{{id}, by};
      case 3:
        return event::Release{{id}, by, std::nullopt};
      case 4:
        return update(state, id, by);
      case 5:
        return event::Tick{};
      case 6:
      case 7:
      case 8:
        return submit(state.next_id());
      default:
        return report(state);
    }
  }

 private:
  Event update(const State& state, JobId id, const Principal& by) {
    event::Update update{{id}, by, {}};
    if (one_in(2)) update.changes.set(&JobSpec::priority, below(256));
    if (one_in(2)) update.changes.set(&Request::gpus, below(5));
    if (one_in(2)) update.changes.set(&JobSpec::max_concurrent, below(4));
    if (one_in(2)) update.changes.set(&JobSpec::time_limit, std::chrono::seconds(60 + below(4000)));
    if (one_in(3)) {
      update.changes.set(&JobSpec::dependencies, Dependencies{{any_job(state.next_id())}});
    }
    return update;
  }

  std::mt19937 random_;
};

std::string letter_of(const Effect& effect) { return {1, static_cast<char>('a' + effect.index())}; }

/// Each task of an array as a job that is submitted on its own.
Event one_by_one(const Event& event) {
  const auto* submit = std::get_if<event::Submit>(&event);
  if (submit == nullptr || submit->tasks.empty()) return event;
  event::Submit single{{}, submit->by};
  for (std::size_t i = 0; i < submit->specs.size(); ++i) {
    for (std::uint64_t task = 0; task < submit->count_of(i); ++task) {
      single.specs.push_back(submit->specs[i]);
      std::string& name = single.specs.back().name;
      if (submit->tasks[i]) name = task_name(name, submit->tasks[i]->number(task));
    }
  }
  return single;
}

/// What of the effects a test can compare: which kinds for which jobs, of a submission in any
/// order.
std::string trace(const std::vector<Effect>& effects, bool in_any_order) {
  std::vector<std::string> all;
  for (const Effect& effect : effects) {
    if (const auto* added = std::get_if<effect::SaveRange>(&effect)) {
      for (std::uint64_t i = 0; i < added->range->count; ++i) {
        const std::string id = std::to_string(added->range->id(i).value);
        all.push_back(letter_of(effect::Save{}) + id);
        all.push_back(letter_of(effect::Notify{}));
      }
      continue;
    }
    std::string text = letter_of(effect);
    if (const auto* launch = std::get_if<effect::Launch>(&effect)) {
      const LaunchOrder& order = *launch->order;
      text += std::to_string(order.job.value) + "." + std::to_string(order.attempt) + order.node;
    }
    if (const auto* save = std::get_if<effect::Save>(&effect)) {
      text += std::to_string(save->job.value);
    }
    all.push_back(std::move(text));
  }
  if (in_any_order) std::ranges::sort(all);
  std::string text;
  for (const std::string& one : all) text += one;
  return text;
}

/// Every job as it is.
std::string told(const State& state) {
  std::string text;
  for (const Job* job : state.list({.most = 100'000})) {
    text += std::to_string(job->id.value) + job->spec.name + job->spec.group +
            std::to_string(job->spec.max_concurrent) + std::to_string(job->attempts) +
            std::string(status_name(status_of(*job))) + "\n";
  }
  return text;
}

/// Why those that wait do.
std::string explained(const State& state, Now now) {
  std::string text;
  for (const Job* job : state.list({.statuses = kPending})) {
    text += std::to_string(job->id.value);
    for (const Blocker& blocker : state.blockers(job->id, now)) text += " " + blocker_text(blocker);
  }
  return text;
}

/// Of the jobs just started the first that took its user over what may be held of GPUs, or "".
std::string over_quota(const State& state, const std::vector<Effect>& effects) {
  for (const Effect& effect : effects) {
    const auto* launch = std::get_if<effect::Launch>(&effect);
    if (launch == nullptr) continue;
    const JobSpec& spec = state.find(launch->order->job)->spec;
    const User& user = spec.user;
    if (gpu_parts_of(spec.request) == 0) continue;
    std::int64_t held = 0;
    for (const Job* job : state.list({.statuses = kActive, .most = 100'000})) {
      if (job->spec.user == user) held += gpu_parts_of(job->spec.request);
    }
    const auto limit = state.policy().gpu_quota.of(user.name);
    if (limit && held > limit->parts) {
      return "job " + std::to_string(launch->order->job.value) + " of " + user.name + ": " +
             std::to_string(held);
    }
  }
  return "";
}

/// None, some, or of bob another than of all.
GpuQuota quota(unsigned which) {
  if (which % 4 == 0) return {};
  return {.per_user = static_cast<int>(which % 4), .users = {{"bob", which % 3 == 0 ? 6 : 2}}};
}

class RandomLife : public testing::TestWithParam<unsigned> {};

/// The twin looks at all that waits in every pass, the other only at what may have room; and the
/// twin is told of the tasks of an array one by one.
TEST_P(RandomLife, KeepsEveryIndexRightAndDecidesAsOneThatLooksAtAll) {
  Chance chance(GetParam());
  Policy policy;
  policy.order.order = GetParam() % 2 == 0 ? Order::Learned : Order::Submission;
  policy.preempt = GetParam() % 3 != 0;
  policy.gpu_quota = quota(GetParam());
  State state(policy, "boot");
  State twin(policy, "boot");
  state.restored(JobId(1));
  twin.restored(JobId(1));
  Now now{WallTime(1000min), MonoTime(0ms)};
  const Event first_node = event::NodesChanged{{chance.machine("n0")}};
  (void)step(state, first_node, now);
  (void)step(twin, first_node, now);
  for (int i = 0; i < 400; ++i) {
    const auto forward = std::chrono::seconds(chance.below(600));
    now.mono += forward;
    now.wall += chance.one_in(20) ? -forward * 10 : forward;
    policy.gpu_quota = quota(GetParam() + static_cast<unsigned>(i / 100));
    const Event event = i % 100 == 99 ? Event(event::Configure{policy}) : chance.next(state);
    twin.look_at_all_again();
    const bool is_submission = std::holds_alternative<event::Submit>(event);
    const std::vector<Effect> effects = step(state, event, now);
    ASSERT_EQ(over_quota(state, effects), "") << "seed " << GetParam() << " step " << i;
    ASSERT_EQ(trace(effects, is_submission),
              trace(step(twin, one_by_one(event), now), is_submission))
        << "seed " << GetParam() << " step " << i;
    ASSERT_EQ(state.check(), "") << "seed " << GetParam() << " step " << i;
    if (i % 16 != 0) continue;
    ASSERT_EQ(explained(state, now), explained(twin, now))
        << "seed " << GetParam() << " step " << i;
    ASSERT_EQ(told(state), told(twin)) << "seed " << GetParam() << " step " << i;
  }
  EXPECT_GT(state.next_id().value, 50U);
}

/// What starts, where, in these events one after the other.
std::string launches(State& state, const std::vector<Event>& events, Now now) {
  std::string text;
  for (const Event& event : events) {
    for (const Effect& effect : step(state, event, now)) {
      const auto* launch = std::get_if<effect::Launch>(&effect);
      if (launch == nullptr) continue;
      text += std::to_string(launch->order->job.value) + launch->order->node + " ";
    }
  }
  return text;
}

/// The jobs that only wait, and first of all for a limit of their user.
std::vector<JobId> at_limit(const State& state, Now now) {
  std::vector<JobId> found;
  for (const Job* job : state.list({.statuses = StatusSet{Status::Queued}, .most = 100'000})) {
    if (job->state != JobState(Queued{}) || !job->spec.group.empty()) continue;
    const auto why = state.blockers(job->id, now);
    if (!why.empty() && blocker_kind(why.front()) == BlockerKind::GpuLimit) {
      found.push_back(job->id);
    }
  }
  return found;
}

class LimitedLife : public testing::TestWithParam<unsigned> {};

/// The twin has jobs at the limit of their user on hold, whenever nothing happens.
TEST_P(LimitedLife, NobodyWaitsForAJobAtTheLimitOfItsUser) {
  Chance chance(GetParam());
  Policy policy;
  policy.order.order = Order::Submission;  // where no place hangs on who else waits
  policy.preempt = GetParam() % 3 != 0;
  policy.gpu_quota = {.per_user = 3, .users = {}};
  State state(policy, "boot");
  State twin(policy, "boot");
  state.restored(JobId(1));
  twin.restored(JobId(1));
  Now now{WallTime(1000min), MonoTime(0ms)};
  std::vector<JobId> away;
  for (int i = 0; i < 200; ++i) {
    const auto forward = std::chrono::seconds(chance.below(600));
    now.mono += forward;
    now.wall += forward;
    const Event event =
        i == 0 ? Event(event::NodesChanged{{chance.machine("n0")}}) : chance.next(state);
    const std::string first = launches(state, {event::Tick{}, event, event::Tick{}}, now);
    std::string second =
        launches(twin, {event::Release{away, system_principal(), std::nullopt}, event}, now);
    away = at_limit(twin, now);
    second += launches(twin, {event::Hold{away, system_principal()}}, now);
    ASSERT_EQ(first, second) << "seed " << GetParam() << " step " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomLife, testing::Range(1U, 61U));
INSTANTIATE_TEST_SUITE_P(Seeds, LimitedLife, testing::Range(1U, 21U));

}  // namespace
}  // namespace gflow::engine
