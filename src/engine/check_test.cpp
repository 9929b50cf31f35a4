// SPDX-License-Identifier: Apache-2.0
// Every index that is wrong is noticed: a queue with something in each of them, broken one by one.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/machine_for_tests.h"
#include "engine/index.h"
#include "engine/step_internal.h"

namespace gflow::engine {
namespace {

using namespace std::chrono_literals;

/// A queue in which no index is empty.
class Busy {
 public:
  Busy() {
    index_.boot_id = "boot";
    index_.set_policy({});
    tell(event::NodesChanged{{machine("n0"), machine("n1")}});
    runs_ = submit(1, [](JobSpec& spec) {
      spec.preemption = Preemption::Requeue;
      spec.time_limit = 10h;
      spec.request.cpus = 1;
    });
    stands_ = submit(4, [](JobSpec& spec) {
      spec.preemption = Preemption::Suspend;
      spec.request.gpu_memory = Memory::gib(4);
    });
    leaves_ = submit(3, [](JobSpec& spec) { spec.preemption = Preemption::Requeue; });
    outranks_ = submit(4, [](JobSpec& spec) {
      spec.priority = 20;
      spec.request.gpu_memory = Memory::gib(4);
    });
    stands_in_line_ = submit(4, [](JobSpec& spec) { spec.priority = 15; });
    waits_ = submit(1, [](JobSpec& spec) { spec.user = {2000, "bob"}; });
    begins_ = submit(1, [](JobSpec& spec) { spec.begin = WallTime(3000min); });
    begun_ = submit(1, [](JobSpec& spec) { spec.begin = WallTime(1001min); });
    depends_ = submit(1, [this](JobSpec& spec) { spec.dependencies.jobs = {runs_}; });
    for (int i = 0; i < 2; ++i) {
      grouped_ = submit(0, [](JobSpec& spec) {
        spec.request.cpus = 16;
        spec.group = "sweep";
        spec.max_concurrent = 1;
      });
    }
    now_.wall += 2min;
    now_.mono += 2min;
    const JobId fails = submit(0, [](JobSpec&) {});
    Outcome failed{.reason = EndReason::NotStarted, .message = "no space left"};
    failed.failure.kind = FailureKind::Node;
    tell(event::AttemptEnded{fails, 1, failed});
    ended_ = submit(1, [](JobSpec& spec) { spec.hold = true; });
    tell(event::Cancel{{ended_}, system_principal()});
  }

  JobId submit(int gpus, const std::function<void(JobSpec&)>& edit) {
    JobSpec spec;
    spec.user = {1000, "alice"};
    spec.request.gpus = gpus;
    edit(spec);
    const JobId id = index_.next_id;
    tell(event::Submit{{spec}, system_principal()});
    return id;
  }

  void tell(const auto& event) {
    Step step(index_, now_);
    step.take(event);
    std::vector<Event> started;
    for (const Effect& effect : step.finish()) {
      if (const auto* launch = std::get_if<effect::Launch>(&effect)) {
        const LaunchOrder& order = *launch->order;
        if (index_.find(order.job)->spec.request.gpus == 0) continue;
        started.emplace_back(event::AttemptStarted{order.job, order.attempt, 1});
      }
    }
    for (const Event& one : started) tell(std::get<event::AttemptStarted>(one));
  }

  Index& index() { return index_; }
  /// What is kept of a job that runs.
  Index::Incumbent& incumbent() {
    (void)index_.place_of(job(outranks_));
    return index_.incumbents.at(outranks_);
  }
  [[nodiscard]] const Job& job(JobId id) const { return *index_.find(id); }

  JobId runs_, stands_, leaves_, outranks_, stands_in_line_, waits_, begins_, begun_, depends_,
      grouped_, ended_;

 private:
  static Machine machine(std::string name) {
    Machine machine = machine_with_gpus(std::move(name), 4, "Tesla T4", Memory::gib(16));
    machine.cpus = 16;
    machine.memory = Memory::gib(64);
    machine.topology.cpus = {{0, "0-15"}};
    return machine;
  }

  Index index_;
  Now now_{WallTime(1000min), MonoTime(1000min)};
};

struct Break {
  std::string said;  ///< a part of what is said of it
  std::function<void(Busy&)> how;
};

const std::vector<Break>& breaks() {
  static const std::vector<Break> kBreaks = {
      {"kept as 1", [](Busy& b) { b.index().jobs.at(b.runs_).id = JobId(77); }},
      {"not given out yet", [](Busy& b) { b.index().next_id = JobId(3); }},
      {"asked for 9 nodes", [](Busy& b) { b.index().jobs.at(b.runs_).spec.request.nodes = 9; }},
      {"asked for 2 GPUs", [](Busy& b) { b.index().jobs.at(b.runs_).spec.request.gpus = 2; }},
      {"by status", [](Busy& b) { b.index().by_status.front().insert(JobId(1)); }},
      {"that may start", [](Busy& b) { b.index().ready.erase(b.index().ready.begin()); }},
      {"of begin times is", [](Busy& b) { b.index().begin_later.clear(); }},
      {"begin times gone by", [](Busy& b) { b.index().begun.clear(); }},
      {"hold and wait for", [](Busy& b) { b.index().fair.hold(1000, 1); }},
      {"hold and wait for", [](Busy& b) { b.index().fair.wait(2000, 1); }},
      {"hold and wait for", [](Busy& b) { b.index().fair.carry(2000, 60s, 1); }},
      {"back-offs", [](Busy& b) { b.index().backoff.clear(); }},
      {"waiting jobs by user", [](Busy& b) { ++b.index().pending[1000]; }},
      {"users have stored", [](Busy& b) { ++b.index().stored[1000]; }},
      {"jobs without GPUs and CPUs", [](Busy& b) { ++b.index().unreserved[1000]; }},
      {"dependencies", [](Busy& b) { b.index().dependencies.remove(b.depends_); }},
      {"of ends", [](Busy& b) { b.index().ends.clear(); }},
      {"of ended jobs is", [](Busy& b) { b.index().ended = {}; }},
      {"of ended jobs is", [](Busy& b) { b.index().ended.set_pinned(b.job(b.ended_), true); }},
      {"of preemptible", [](Busy& b) { b.index().preemptible.erase(b.runs_); }},
      {"of suspended", [](Busy& b) { b.index().suspended.clear(); }},
      {"by user", [](Busy& b) { b.index().by_user[2000].jobs.insert(b.runs_); }},
      {"by user", [](Busy& b) { b.index().by_user.erase(2000); }},
      {"by priority", [](Busy& b) { b.index().by_priority.begin()->second.insert(JobId(999)); }},
      {"by priority", [](Busy& b) { b.index().by_priority.clear(); }},
      {"not among those that were removed",
       [](Busy& b) { b.index().nodes["n1"].removed = "burnt"; }},
      {"not in the ledger", [](Busy& b) { b.index().nodes["n7"].machine.name = "n7"; }},
      {"not what was told", [](Busy& b) { b.index().nodes["n1"].machine.cpus = 3; }},
      {"not what was told", [](Busy& b) { b.index().drains.push_back({.node = "n1"}); }},
      {"not what was told", [](Busy& b) { b.index().nodes["n1"].unreachable = "no answer"; }},
      {"not what was told", [](Busy& b) { b.index().health.clear(); }},
      {"what its jobs leave",
       [](Busy& b) {
         b.index().ledger.take(b.index().demand_of({.request = {.cpus = 1}}), {1, {}});
       }},
      {"holders", [](Busy& b) { b.index().holders.clear(); }},
      {"CPUs taken", [](Busy& b) { b.index().cpus_taken.clear(); }},
      {"number of GPUs", [](Busy& b) { b.index().gpu_scale = 64; }},
      {"groups without jobs", [](Busy& b) { (void)b.index().groups[{2000, "sweep"}]; }},
      {"'sweep' has others", [](Busy& b) { b.index().group(b.job(b.grouped_))->members.clear(); }},
      {"'sweep' counts", [](Busy& b) { ++b.index().group(b.job(b.grouped_))->active; }},
      {"wrong jobs in the queue",
       [](Busy& b) { b.index().group(b.job(b.grouped_))->parked.clear(); }},
      {"limit of its group",
       [](Busy& b) { b.index().jobs.at(b.grouped_).spec.max_concurrent = 5; }},
      {"among others than its kind",
       [](Busy& b) {
         Line& line = b.index().ready.begin()->second.begin()->second;
         line.contender.signature.name = "another";
       }},
      {"is out of date",
       [](Busy& b) {
         Line& line = b.index().ready.begin()->second.begin()->second;
         line.allowance += 1s;
       }},
      {"kept as one that runs", [](Busy& b) { (void)b.index().incumbents[b.waits_]; }},
      {"kept as another", [](Busy& b) { b.incumbent().contender.ready += 1s; }},
      {"which runs, is out of date", [](Busy& b) { b.incumbent().chances.front() += 1; }},
      {"a place is kept",
       [](Busy& b) {
         b.index().awaited = Index::Awaited{Index::Head{b.runs_, std::nullopt, false}, {}};
       }},
      {"whose user is at a limit",
       [](Busy& b) {
         b.index().policy.gpu_quota.per_user = 1;
         b.index().awaited = Index::Awaited{Index::Head{b.stands_in_line_, {}, false}, {}};
       }},
      {"first of those that wait",
       [](Busy& b) { b.index().awaited = Index::Awaited{{}, b.runs_}; }},
      {"no front", [](Busy& b) { b.index().ready.begin()->second.begin()->second.front = 999; }},
      {"not what its line says", [](Busy& b) { b.index().fronts.all().front().stoppable ^= true; }},
      {"kept as another", [](Busy& b) { b.index().health.begin()->second.node = "n7"; }},
      {"does not find out", [](Busy& b) { b.index().health.begin()->second.trial = b.waits_; }},
  };
  return kBreaks;
}

TEST(Check, FindsNothingWhereAllIsRight) {
  Busy busy;
  EXPECT_EQ(contradiction(busy.index()), "");
}

TEST(Check, NoticesEachIndexThatIsWrong) {
  for (const Break& one : breaks()) {
    Busy busy;
    one.how(busy);
    EXPECT_NE(contradiction(busy.index()).find(one.said), std::string::npos)
        << "not '" << one.said << "': " << contradiction(busy.index());
  }
}

}  // namespace
}  // namespace gflow::engine
