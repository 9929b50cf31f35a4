// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "core/gpu_request.h"
#include "core/machine_for_tests.h"
#include "engine/step.h"

namespace gflow::engine {
namespace {

const Now kNow{.wall = WallTime(std::chrono::hours(1)), .mono = MonoTime(std::chrono::hours(1))};

/// GPU 0,1 are V100 with 32G, 2,3 A100 with 80G; 1 is used by somebody else, 3 is broken.
Machine mixed() {
  Machine machine = machine_with_gpus("n0", 4, "NVIDIA A100-SXM4-80GB", Memory::gib(80));
  for (const std::size_t gpu : {0U, 1U}) {
    machine.devices[gpu].model = "Tesla V100-SXM2-32GB";
    machine.devices[gpu].memory_total = Memory::gib(32);
  }
  return machine;
}

/// A node of four T4 that take nothing.
Machine other() {
  Machine machine = machine_with_gpus("n1", 4, "Tesla T4", Memory::gib(16));
  for (Device& device : machine.devices) device.usable = false;
  return machine;
}

/// A request as --gpus writes it, taken in as a job of its own.
JobId submit(State& state, std::string_view gpus) {
  JobSpec spec;
  spec.user = {1000, "alice"};
  apply(*parse_gpu_request(gpus), spec.request);
  const JobId id = state.next_id();
  (void)step(state, event::Submit{{spec}, system_principal()}, kNow);
  return id;
}

/// "0 of 2 V100: 1@0 !1": what is missing, who has it, what nobody can have.
std::string shortage(const State& state, JobId id) {
  std::string text;
  const auto tell = [&text](const std::vector<blocker::Holder>& holders) {
    for (const auto& holder : holders) {
      text += fmt::format(" {}@{}", holder.job.value, fmt::join(holder.gpus, ","));
    }
  };
  for (const Blocker& why : state.blockers(id, kNow)) {
    if (const auto* gpus = std::get_if<blocker::Gpus>(&why)) {
      text += fmt::format("{} of {} {}:", gpus->available, gpus->need, gpus->kind);
      tell(gpus->holders);
      for (const auto& device : gpus->unusable) text += fmt::format(" !{}", device.gpu);
    } else if (const auto* memory = std::get_if<blocker::GpuMemory>(&why)) {
      text += fmt::format("{} missing:", memory_text(memory->missing));
      tell(memory->holders);
    } else if (const auto* share = std::get_if<blocker::GpuShare>(&why)) {
      text += fmt::format("{} missing:", share_text(share->missing));
      tell(share->holders);
    }
  }
  return text;
}

TEST(Explain, CountsWhoWaitsForWhat) {
  State state(Policy{}, "boot");
  state.restored(JobId(1));
  Machine machine = mixed();
  (void)step(state, event::NodesChanged{{machine}}, kNow);
  (void)submit(state, "4");
  const auto asks = [&state](auto change) {
    JobSpec spec;
    spec.user = {1000, "alice"};
    spec.request.gpus = 1;
    change(spec);
    (void)step(state, event::Submit{{spec}, system_principal()}, kNow);
  };
  for (int i = 0; i < 3; ++i) asks([](JobSpec&) {});
  asks([](JobSpec& spec) { spec.hold = true; });
  asks([](JobSpec& spec) { spec.begin = kNow.wall + std::chrono::hours(1); });
  asks([](JobSpec& spec) { spec.dependencies.jobs = {JobId(1)}; });
  asks([](JobSpec& spec) { spec.request.gpu_memory = Memory::gib(60); });
  asks([](JobSpec& spec) {
    spec.request.gpus = 0;
    spec.request.nodes = 1;
    spec.group = "one";
    spec.max_concurrent = 1;
  });
  asks([](JobSpec& spec) {
    spec.request.gpus = 0;
    spec.group = "one";
    spec.max_concurrent = 1;
  });
  const PendingReasons reasons = state.pending_reasons();
  const auto of = [&](BlockerKind kind) {
    return reasons.by_kind.at(static_cast<std::size_t>(kind));
  };
  EXPECT_EQ(of(BlockerKind::Gpus), 4U);
  EXPECT_EQ(of(BlockerKind::OnHold), 1U);
  EXPECT_EQ(of(BlockerKind::BeginTime), 1U);
  EXPECT_EQ(of(BlockerKind::Dependency), 1U);
  EXPECT_EQ(of(BlockerKind::GroupLimit), 1U);
  std::size_t all = reasons.others;
  for (const std::size_t jobs : reasons.by_kind) all += jobs;
  EXPECT_EQ(all, state.count(kPending));
  // The kind of each that is in the queue is what blockers() names first.
  std::array<std::size_t, kBlockerKinds.size()> first{};
  for (const Job* job : state.list({.statuses = kPending})) {
    ++first.at(static_cast<std::size_t>(blocker_kind(state.blockers(job->id, kNow).front())));
  }
  EXPECT_EQ(reasons.by_kind, first);
}

TEST(Explain, NamesOnlyThoseOnDevicesThatWouldDo) {
  const struct {
    std::string_view first;  // one job of each kind
    std::string_view second;
    std::string_view asks;
    std::string_view missing;
  } rows[] = {
      {"1(V100)", "1(A100)", "2(V100)", "0 of 2 V100: 1@0 !1"},
      {"1(V100)", "1(A100)", "1(A100)", "0 of 1 A100: 2@2 !3"},
      {"1(V100)", "1(A100)", "1,40G", "0 of 1 : 2@2 !3"},
      {"1(V100)", "1(A100)", "3", "0 of 3 : 1@0 2@2 !1 !3"},
      {"2(V100|A100)", "0", "1(V100)", "0 of 1 V100: 1@0 !1"},
      {"1G,0.75(V100)", "1G,0.75(A100)", "1G,0.5(V100)", "0.25 missing: 1@0"},
      {"40G,0.5(A100)", "20G,0.5(V100)", "64G,0.5(A100)", "24G missing: 1@2"},
  };
  for (const auto& row : rows) {
    State state({}, "boot");
    state.restored(JobId(1));
    Machine machine = mixed();
    machine.devices[1].processes = {{4711, "dave", "python", {}}};
    machine.devices[3].usable = false;
    machine.devices[3].trouble = "fallen off the bus";
    (void)step(state, event::NodesChanged{{machine}}, kNow);
    (void)step(state, event::NodesChanged{{other()}}, kNow);
    (void)submit(state, row.first);
    (void)submit(state, row.second);
    EXPECT_EQ(shortage(state, submit(state, row.asks)), row.missing) << row.asks;
  }
}

TEST(Explain, SaysWhatIsGoneThatWasToBeSeen) {
  Policy policy;
  policy.allow_see_all = true;
  State state(policy, "boot");
  state.restored(JobId(1));
  Machine machine = mixed();
  (void)step(state, event::NodesChanged{{machine}}, kNow);
  JobSpec spec;
  spec.hold = true;
  apply(*parse_gpu_request("-1(V100)"), spec.request);
  (void)step(state, event::Submit{{spec}, system_principal()}, kNow);
  machine.devices.erase(machine.devices.begin(), machine.devices.begin() + 2);
  (void)step(state, event::NodesChanged{{machine}}, kNow);
  (void)step(state, event::Release{{JobId(1)}, system_principal(), {}}, kNow);
  EXPECT_EQ(shortage(state, JobId(1)), "0 of 1 V100:");
  (void)step(state, event::NodesChanged{{mixed()}}, kNow);
  EXPECT_EQ(status_of(*state.find(JobId(1))), Status::Starting);
}

TEST(Explain, SaysThatTheLabelIsGone) {
  Machine machine = mixed();
  machine.labels = {{"zone", "a"}};
  State state({}, "boot");
  state.restored(JobId(1));
  (void)step(state, event::NodesChanged{{machine}}, kNow);
  JobSpec spec;
  spec.hold = true;
  spec.request = {.gpus = 1, .selector = {{"zone", "a"}}};
  (void)step(state, event::Submit{{spec}, system_principal()}, kNow);
  machine.labels.clear();
  (void)step(state, event::NodesChanged{{machine}}, kNow);
  (void)step(state, event::Release{{JobId(1)}, system_principal(), {}}, kNow);
  EXPECT_EQ(reason_text(state.blockers(JobId(1), kNow)), "Resources: Need 1 node, none available");
}

TEST(Explain, SaysWhatARequestOfNoJobLacks) {
  State state(Policy{}, "boot");
  state.restored(JobId(1));
  (void)step(state, event::NodesChanged{{mixed()}}, kNow);
  const int gpus = static_cast<int>(mixed().devices.size());
  const auto before = state.ledger().demands();
  EXPECT_TRUE(state.preview({.request = {.gpus = gpus}}, kNow)->blockers.empty());
  event::Submit submit{{}, system_principal()};
  submit.specs = {{.request = {.gpus = 1}, .time_limit = std::chrono::hours(1)}};
  (void)step(state, submit, kNow);
  const auto why = state.preview({.request = {.gpus = gpus}}, kNow)->blockers;
  ASSERT_EQ(why.size(), 1U);
  const auto& lacks = std::get<blocker::Gpus>(why.front());
  EXPECT_EQ(lacks.available, gpus - 1);
  ASSERT_EQ(lacks.holders.size(), 1U);
  EXPECT_EQ(lacks.holders.front().job, JobId(1));
  EXPECT_TRUE(lacks.holders.front().ends.has_value());
  EXPECT_LE(state.ledger().demands(), before + 1) << "the one of the job that runs";
}

/// A job like that submitted says the same as who only asks about it.
TEST(Explain, SaysWhatKeepsAJobWaitingThatIsNotSubmitted) {
  State state(Policy{}, "boot");
  state.restored(JobId(1));
  (void)step(state, event::NodesChanged{{mixed()}}, kNow);
  const auto submit = [&state](JobSpec spec) {
    const JobId id = state.next_id();
    (void)step(state, event::Submit{{std::move(spec)}, system_principal()}, kNow);
    return id;
  };
  const JobId waits = submit({.hold = true});
  const JobId runs = submit({});
  const JobId failed = submit({.hold = true});
  (void)step(state, event::Cancel{{failed}, system_principal()}, kNow);
  const auto compare = [&](const JobSpec& spec) {
    const auto preview = state.preview(spec, kNow);
    ASSERT_TRUE(preview);
    const JobId id = submit(spec);
    const bool ended = is_ended(*state.find(id));
    EXPECT_EQ(preview->cancelled, ended);
    if (ended) return;
    EXPECT_EQ(preview->blockers, state.blockers(id, kNow));
    (void)step(state, event::Cancel{{id}, system_principal()}, kNow);
    (void)step(state, event::AttemptRevoked{id, 1}, kNow);
  };
  const std::vector<std::vector<JobId>> depended = {
      {}, {waits}, {waits, runs}, {waits, failed}, {failed}};
  const std::vector<std::optional<WallTime>> begins = {{}, kNow.wall + std::chrono::hours(1)};
  for (std::size_t i = 0; i < depended.size() * begins.size() * 8; ++i) {
    JobSpec spec;
    spec.request.gpus = 1;
    spec.hold = (i & 1U) != 0;
    spec.begin = begins[i / 8 % begins.size()];
    spec.dependencies = {depended[i / 8 / begins.size()],
                         (i & 2U) != 0 ? DependencyMode::Any : DependencyMode::All,
                         (i & 4U) != 0};
    compare(spec);
  }
  for (const JobId nowhere : {state.next_id(), JobId(event::kSibling)}) {
    EXPECT_EQ(state.preview({.dependencies = {{nowhere}}}, kNow).error().code, Code::NotFound);
  }
}

TEST(Explain, SaysThatAUserIsAtHisLimit) {
  Policy policy;
  policy.max_unreserved_per_user = 1;
  State state(policy, "boot");
  state.restored(JobId(1));
  (void)step(state, event::NodesChanged{{mixed()}}, kNow);
  JobSpec spec;
  spec.user = {7, "amy"};
  EXPECT_TRUE(state.preview(spec, kNow)->blockers.empty());
  (void)step(state, event::Submit{{spec, spec}, system_principal()}, kNow);
  EXPECT_EQ(status_of(*state.find(JobId(1))), Status::Starting);
  const std::vector<Blocker> limit = {blocker::UserLimit{1}};
  EXPECT_EQ(state.blockers(JobId(2), kNow), limit);
  EXPECT_EQ(state.preview(spec, kNow)->blockers, limit);
  spec.user = {8, "bob"};
  EXPECT_TRUE(state.preview(spec, kNow)->blockers.empty()) << "the limit is of each user";
}

TEST(Explain, SaysWhoseGpusWouldHaveToComeBack) {
  Policy policy;
  policy.order.order = Order::Submission;
  policy.gpu_quota = {.per_user = 2, .users = {{"bob", 1}}};
  State state(policy, "boot");
  state.restored(JobId(1));
  (void)step(state, event::NodesChanged{{mixed()}}, kNow);
  JobSpec spec;
  spec.user = {7, "amy"};
  spec.request.gpus = 1;
  spec.time_limit = std::chrono::hours(1);
  JobSpec longer = spec;
  longer.time_limit = std::chrono::hours(2);
  (void)step(state, event::Submit{{spec, longer, spec}, system_principal()}, kNow);
  const auto ends = kNow.wall + std::chrono::hours(1) + spec.grace;
  blocker::GpuLimit why{
      Share::whole(),
      Share::percent(200),
      Share::percent(200),
      {{JobId(1), "amy", {0}, ends}, {JobId(2), "amy", {1}, ends + std::chrono::hours(1)}},
      ends};
  EXPECT_EQ(state.blockers(JobId(3), kNow), std::vector<Blocker>{why});
  EXPECT_EQ(state.pending_reasons().by_kind.at(static_cast<std::size_t>(BlockerKind::GpuLimit)),
            1U);
  spec.request.gpus = 2;
  why.need = Share::percent(200);
  why.until = ends + std::chrono::hours(1);
  EXPECT_EQ(state.preview(spec, kNow)->blockers.front(), Blocker(why));
  spec.request.gpus = 3;
  EXPECT_EQ(state.preview(spec, kNow).error().code, Code::Infeasible);
  spec.request.gpus = 1;
  spec.user = {8, "bob"};
  EXPECT_TRUE(state.preview(spec, kNow)->blockers.empty());
  const auto starts = state.starts(spec, 2);
  EXPECT_EQ(starts->jobs.size(), 1U);
  EXPECT_EQ(starts->limit,
            Blocker(blocker::GpuLimit{Share::whole(), Share::whole(), Share::whole(), {}, {}}));
}

/// Whoever only asks leaves nothing behind: neither do requests that could never start.
TEST(Rank, KeepsNoDemandThatNoJobHas) {
  State state(Policy{}, "boot");
  state.restored(JobId(1));
  (void)step(state, event::NodesChanged{{mixed()}}, kNow);
  Request asked{.gpus = 1};
  const auto before = state.ledger().demands();
  const auto first = state.rank(asked, 1);
  for (int i = 1; i <= 50; ++i) {
    asked.memory = Memory::mib(i);
    asked.gpu_memory = Memory::mib(i);
    (void)state.rank(asked, 1);
    event::Submit never;
    never.specs = {{.request = {.gpus = 100 + i}}};
    (void)step(state, never, kNow);
  }
  EXPECT_EQ(state.ledger().demands(), before);
  // What a job has stays, also after somebody asked for the same.
  event::Submit submit;
  submit.specs = {{.request = {.gpus = 1}}};
  (void)step(state, submit, kNow);
  const auto with_job = state.ledger().demands();
  asked = {.gpus = 1};
  EXPECT_TRUE(state.rank(asked, 1).has_value());
  EXPECT_EQ(state.ledger().demands(), with_job);
  EXPECT_EQ(first.has_value(), true);
  EXPECT_EQ(state.check(), "");
}

}  // namespace
}  // namespace gflow::engine
