// SPDX-License-Identifier: Apache-2.0
// Slices of MIG that are made and removed by demand: whatever people, the driver and an
// administrator beside gflow do, and whenever it is killed.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "core/mig_geometry.h"
#include "engine/step.h"

namespace gflow::engine {
namespace {

using namespace std::chrono_literals;

const std::vector<std::string>& profiles() {
  static const std::vector<std::string> kProfiles = {
      "1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"};
  return kProfiles;
}

struct SliceAct {
  enum class Kind {
    Submit,
    End,
    Cancel,
    Cut,      ///< the driver does what it was told first
    Refuse,   ///< or not
    Hang,     ///< or does it, and nobody hears of it
    Half,     ///< or half of it
    Read,     ///< a reading of the devices comes
    Restart,  ///< the daemon is killed
    Foreign,  ///< somebody else cuts a GPU, or destroys what he cut, or what gflow did
    Wait,
    Configure,  ///< the setting is turned off, or on
    Drain,      ///< an administrator drains a GPU, or resumes it
  };
  Kind kind = Kind::Submit;
  int which = 0;
  int gpus = 1;
  int priority = 10;
};
void showValue(const SliceAct& act, std::ostream& out) {
  out << fmt::format("\n{{SliceAct::Kind({}), {}, {}, {}}}",
                     static_cast<int>(act.kind),
                     act.which,
                     act.gpus,
                     act.priority);
}

/// The engine, a store, a driver of two GPUs, and what is read of it now and then.
class SliceWorld {
 public:
  SliceWorld() : state_(policy(), "boot"), now_{WallTime(1'000'000'000s), MonoTime(1h)} {
    state_.restored(JobId(1));
    for (int i = 0; i < 2; ++i) {
      MigGpu gpu{.uuid = fmt::format("GPU-{}", i), .model = "NVIDIA H100 80GB HBM3"};
      gpu.kinds = mig_kinds(gpu.model, Memory::mib(81559));
      machine_.mig_gpus.push_back(std::move(gpu));
    }
    machine_.name = "n0";
    machine_.cpus = 64;
    machine_.memory = Memory::gib(512);
    read();
  }

  void act(const SliceAct& act) {
    using Kind = SliceAct::Kind;
    switch (act.kind) {
      case Kind::Submit:
        return submit(act);
      case Kind::End:
        return end_one(act.which);
      case Kind::Cancel:
        return tell(event::Cancel{{any(act.which)}, system_principal(), 0});
      case Kind::Cut:
        return cut();
      case Kind::Refuse:
        return is_done() ? cut() : answer_first(slice_outcome::Refused{"Insufficient Resources"});
      case Kind::Hang:
        if (act.which % 2 == 0 && !orders_.empty()) (void)obey(orders_.front());
        return answer_first(slice_outcome::Unclear{"no answer"});
      case Kind::Half:
        if (!orders_.empty()) obey_half(orders_.front());
        return answer_first(slice_outcome::Unclear{"killed"});
      case Kind::Read:
        return read();
      case Kind::Restart:
        return restart();
      case Kind::Foreign:
        return cut_by_others(act.which);
      case Kind::Wait:
        return pass(std::chrono::seconds(1 + 20 * act.which));
      case Kind::Configure:
        is_on_ = act.which % 2 == 0;
        return tell(event::Configure{policy()});
      case Kind::Drain:
        return drain(act.which % 2, act.which % 3 == 0);
    }
  }

  /// All that is wrong, or "".
  [[nodiscard]] std::string wrong() const {
    if (!wrong_.empty()) return wrong_;
    if (saved_slices_ != state_.slices()) return "slices changed without being saved";
    std::set<int> held;
    for (const Job* job : state_.list({.statuses = kActive, .most = 100'000})) {
      for (const int gpu : attempt_of(*job)->allocation.gpus) {
        if (!held.insert(gpu).second) return "a slice is held twice";
      }
    }
    return state_.check();
  }

  /// Why a job with this request would be refused; "" if it would not.
  [[nodiscard]] std::string refusal_of(const Request& request) {
    JobSpec spec;
    spec.name = "job";
    spec.user = {1000, "alice"};
    spec.request = request;
    for (const Effect& effect : step(state_, event::Submit{{spec}, system_principal()}, now_)) {
      const auto* answer = std::get_if<effect::Answer>(&effect);
      if (answer != nullptr) return answer->jobs ? "" : answer->jobs.error().message;
    }
    return "no answer";
  }
  /// The last of what keeps a job waiting.
  [[nodiscard]] std::string why(JobId job) const {
    return blocker_text(state_.blockers(job, now_).back());
  }
  [[nodiscard]] int made() const { return made_; }

  /// Somebody's who wants other CPUs than all the others: no demand is like his.
  JobId submit_as(std::uint32_t uid, const std::string& profile, int cpus) {
    JobSpec spec;
    spec.name = "job";
    spec.user = {uid, fmt::format("user{}", uid)};
    spec.request.models = {profile};
    spec.request.gpus = 1;
    spec.request.cpus = cpus;
    const JobId id = state_.next_id();
    tell(event::Submit{{spec}, system_principal()});
    return id;
  }
  void limit(std::uint32_t uid, int gpus) {
    limits_.users[fmt::format("user{}", uid)] = gpus;
    tell(event::Configure{policy()});
  }
  void end(JobId job) {
    tell(event::AttemptEnded{job, state_.find(job)->attempts, {.reason = EndReason::Exited}});
  }
  /// In the very place that gflow was told to take first.
  void make_as_ordered() {
    const MadeSlice order = orders_.front();
    MigGpu& on = gpu(order.gpu);
    if (const auto made = add_instance(on, order.profile, order.start))
      foreign_.insert(add_device(on, *made));
  }
  /// As it was, with its UUID: the name of one is made of where it is.
  void make_again_as_ordered() {
    const Machine before = machine_;
    cut();
    machine_ = before;
    removed_.clear();
  }
  void wait(std::chrono::seconds time) { pass(time); }
  [[nodiscard]] bool is_active(JobId job) const { return gflow::is_active(*state_.find(job)); }

  /// The driver does what it is told and all is read; whoever runs ends in the end.
  [[nodiscard]] std::string all_end() {
    is_on_ = true;
    tell(event::Configure{policy()});
    for (const int gpu : {0, 1}) drain(gpu, true);
    for (int rounds = 0; rounds < 300; ++rounds) {
      for (MigGpu& gpu : machine_.mig_gpus) drop_foreign(gpu);
      pass(400s);
      for (int cuts = 0; !orders_.empty() && cuts < 100; ++cuts) cut();
      read();
      if (state_.count(Status::Queued) + state_.count(kActive) == 0) return wrong();
      for (std::size_t left = state_.count(kActive); left > 0; --left) end_one(0);
    }
    std::string left;
    for (const Job* job : state_.list({.statuses = {Status::Queued}})) {
      left += fmt::format(" {} {}", job->id.value, reason_text(state_.blockers(job->id, now_)));
    }
    return "jobs wait for ever:" + left;
  }

 private:
  [[nodiscard]] Policy policy() const {
    Policy made;
    made.order.order = Order::Submission;
    made.gpu_quota = limits_;
    if (is_on_) made.cut_gpus = {"all"};
    return made;
  }

  void drain(int gpu, bool resume) {
    const Drain what{.node = "n0", .uuid = fmt::format("GPU-{}", gpu)};
    tell(event::Drain{what, resume, system_principal()});
  }
  [[nodiscard]] bool is_drained(const std::string& gpu) const {
    return drain_of_cut_gpu(state_.drains(), "n0", gpu) != nullptr;
  }

  void tell(const Event& event) { take(step(state_, event, now_)); }

  void take(const std::vector<Effect>& effects) {
    std::vector<Event> reports;
    for (const Effect& effect : effects) {
      if (const auto* save = std::get_if<effect::Save>(&effect)) {
        if (const Job* job = state_.find(save->job)) saved_[save->job] = *job;
      } else if (const auto* forget = std::get_if<effect::Forget>(&effect)) {
        saved_.erase(forget->job);
      } else if (std::holds_alternative<effect::SaveSlices>(effect)) {
        saved_slices_ = state_.slices();
      } else if (const auto* wake = std::get_if<effect::WakeAt>(&effect)) {
        if (wake->mono && *wake->mono <= now_.mono) wrong_ = "it is to wake at once, for ever";
      } else if (const auto* cut = std::get_if<effect::CutSlice>(&effect)) {
        orders_.push_back(cut->slice);
      } else if (const auto* launch = std::get_if<effect::Launch>(&effect)) {
        check_devices(*launch->order);
        reports.emplace_back(event::AttemptStarted{launch->order->job, launch->order->attempt, 1});
      } else if (const auto* stop = std::get_if<effect::StopAttempt>(&effect)) {
        reports.emplace_back(
            event::AttemptEnded{stop->job, stop->attempt, Outcome{.reason = EndReason::Cancelled}});
      }
    }
    for (const Event& report : reports) tell(report);
  }

  /// Nothing is started on a slice that gflow removed, or is about to.
  void check_devices(const LaunchOrder& order) {
    const Job& job = *state_.find(order.job);
    for (const int gpu : attempt_of(job)->allocation.gpus) {
      const auto at = std::ranges::find(read_.devices, gpu, &Device::index);
      if (at == read_.devices.end()) {
        wrong_ = "a job is started on a slice that is not there";
      } else if (removed_.contains(at->uuid)) {
        wrong_ = "a job is started on a slice that was removed";
      } else if (is_drained(at->mig->parent)) {
        wrong_ = "a job is started on a slice of a GPU that is drained";
      }
    }
  }

  void submit(const SliceAct& act) {
    JobSpec spec;
    spec.name = "job";
    spec.user = {1000, "alice"};
    spec.request.models = {profiles()[static_cast<std::size_t>(act.which) % profiles().size()]};
    spec.request.gpus = spec.request.models.front() == "7g.80gb" ? 1 : act.gpus;
    spec.priority = act.priority;
    tell(event::Submit{{spec}, system_principal()});
  }

  [[nodiscard]] JobId any(int which) const {
    const auto last = std::max<std::uint64_t>(state_.next_id().value - 1, 1);
    return JobId(1 + static_cast<std::uint64_t>(which) % last);
  }

  void end_one(int which) {
    const auto running = state_.list({.statuses = kActive, .most = 100'000});
    if (running.empty()) return;
    const Job& job = *running[static_cast<std::size_t>(which) % running.size()];
    tell(event::AttemptEnded{job.id, job.attempts, Outcome{.reason = EndReason::Exited}});
  }

  void pass(std::chrono::milliseconds time) {
    now_.mono += time;
    now_.wall += time;
    tell(event::Tick{});
  }

  MigGpu& gpu(const std::string& uuid) {
    return *std::ranges::find(machine_.mig_gpus, uuid, &MigGpu::uuid);
  }

  /// Its device has the first index that neither it nor what a job holds has.
  std::string add_device(MigGpu& gpu, const MigInstance& made) {
    Device device{.vendor = "nvidia", .model = slice_name(gpu.model, made.profile)};
    device.uuid = fmt::format("MIG-{}", ++made_);
    device.memory_total = kind_of(gpu, made.profile)->memory;
    device.mig = MigDevice{gpu.uuid, made.profile, made.id, 0};
    device.index = -1;
    machine_.devices.push_back(device);
    return device.uuid;
  }

  void drop(MigGpu& gpu, const MigInstance& instance) {
    const MigInstance gone = instance;
    std::erase(gpu.instances, gone);
    std::erase_if(machine_.devices, [&](const Device& one) {
      return one.mig->parent == gpu.uuid && one.mig->gpu_instance == gone.id;
    });
  }

  /// As gflow-mig does: what is done is done once.
  SliceOutcome obey(const MadeSlice& order) {
    MigGpu& on = gpu(order.gpu);
    const auto there = std::ranges::find(on.instances, order.start, &MigInstance::start);
    if (order.stage == SliceStage::Making) {
      if (there != on.instances.end() && there->profile == order.profile) {
        if (!order.again) return slice_outcome::Refused{"somebody else was faster"};
        const std::string uuid = uuid_of(on, *there);
        return slice_outcome::Made{uuid.empty() ? add_device(on, *there) : uuid, there->id};
      }
      if (order.only_looks) return slice_outcome::Refused{"nobody wants it any more"};
      const auto made = add_instance(on, order.profile, order.start);
      if (!made) return slice_outcome::Refused{made.error().message};
      return slice_outcome::Made{add_device(on, *made), made->id};
    }
    if (there == on.instances.end()) return slice_outcome::Removed{};
    const std::string uuid = uuid_of(on, *there);
    const bool is_left = uuid.empty() && order.again && there->id == order.gpu_instance;
    if (uuid != order.uuid && !is_left) return slice_outcome::Removed{};
    if (foreign_.contains(order.uuid)) wrong_ = "a slice that is not gflow's was removed";
    if (is_held(order.uuid)) wrong_ = "a slice was removed that a job holds";
    removed_.insert(order.uuid);
    drop(on, *there);
    return slice_outcome::Removed{};
  }

  /// "" of one without a device.
  [[nodiscard]] std::string uuid_of(const MigGpu& gpu, const MigInstance& instance) const {
    const auto device = std::ranges::find_if(machine_.devices, [&](const Device& one) {
      return one.mig->parent == gpu.uuid && one.mig->gpu_instance == instance.id;
    });
    return device == machine_.devices.end() ? "" : device->uuid;
  }

  /// As a gflow-mig does that is killed between its two calls.
  void obey_half(const MadeSlice& order) {
    MigGpu& on = gpu(order.gpu);
    const auto there = std::ranges::find(on.instances, order.start, &MigInstance::start);
    if (order.stage == SliceStage::Making) {
      const bool begins = there == on.instances.end() && !order.only_looks;
      if (begins) (void)add_instance(on, order.profile, order.start);  // or it has no room
    } else if (there != on.instances.end() && uuid_of(on, *there) == order.uuid) {
      removed_.insert(order.uuid);
      std::erase_if(machine_.devices, [&](const Device& one) { return one.uuid == order.uuid; });
    }
  }

  [[nodiscard]] bool is_held(const std::string& uuid) const {
    const auto at = std::ranges::find(read_.devices, uuid, &Device::uuid);
    return at != read_.devices.end() && !state_.holders("n0", at->index).empty();
  }

  /// The driver did what it is told first already, and nobody heard.
  [[nodiscard]] bool is_done() const {
    if (orders_.empty()) return false;
    const MadeSlice& order = orders_.front();
    const auto on = std::ranges::find(machine_.mig_gpus, order.gpu, &MigGpu::uuid);
    const auto there = std::ranges::find(on->instances, order.start, &MigInstance::start);
    bool is_there = there != on->instances.end() && there->profile == order.profile;
    if (is_there && order.stage == SliceStage::Removing) is_there = !uuid_of(*on, *there).empty();
    return is_there == (order.stage == SliceStage::Making);
  }
  void cut() {
    if (!orders_.empty()) answer_first(obey(orders_.front()));
  }
  void answer_first(SliceOutcome outcome) {
    if (orders_.empty()) return;
    const MadeSlice order = orders_.front();
    orders_.pop_front();
    tell(event::SliceChanged{order.node, order.gpu, order.start, std::move(outcome)});
  }

  /// Indices are those of the first reading that had a device; one that is gone and held stays.
  void read() {
    Machine next = machine_;
    std::set<int> taken;
    for (const Device& known : read_.devices) {
      const auto at = std::ranges::find(next.devices, known.uuid, &Device::uuid);
      if (at != next.devices.end()) at->index = known.index;
      if (at == next.devices.end() && !state_.holders("n0", known.index).empty()) {
        next.devices.push_back(known);
        next.devices.back().usable = false;
      }
    }
    for (const Device& one : next.devices) taken.insert(one.index);
    for (Device& one : next.devices) {
      if (one.index >= 0) continue;
      one.index = 0;
      while (!taken.insert(one.index).second) ++one.index;
    }
    std::ranges::sort(next.devices, {}, &Device::index);
    read_ = next;
    tell(event::NodesChanged{{next}});
  }

  void drop_foreign(MigGpu& gpu) {
    for (const MigInstance& one : std::vector(gpu.instances)) {
      const std::string uuid = uuid_of(gpu, one);
      if (foreign_.contains(uuid) && !is_held(uuid)) drop(gpu, one);
    }
  }

  void cut_by_others(int which) {
    MigGpu& on = machine_.mig_gpus[static_cast<std::size_t>(which) % 2];
    if (which % 3 == 0 && !on.instances.empty()) {
      return drop(on, on.instances[static_cast<std::size_t>(which) % on.instances.size()]);
    }
    const MigKind& kind = on.kinds[static_cast<std::size_t>(which) % on.kinds.size()];
    const int start = kind.starts[static_cast<std::size_t>(which) % kind.starts.size()];
    // In the very place that gflow was about to take it cannot be told from gflow's.
    const bool is_wanted = std::ranges::any_of(orders_, [&](const MadeSlice& order) {
      return order.gpu == on.uuid && (order.slots() & mig_slots(start, kind.size)) != 0;
    });
    const auto slices = state_.slices();
    const bool is_under_way = std::ranges::any_of(slices, [&](const MadeSlice& slice) {
      return slice.gpu == on.uuid && (slice.slots() & mig_slots(start, kind.size)) != 0;
    });
    if (is_wanted || is_under_way) return;
    if (const auto made = add_instance(on, kind.profile, start))
      foreign_.insert(add_device(on, *made));
  }

  void restart() {
    const JobId next = state_.next_id();
    const auto lived = state_.lived(now_.mono);
    orders_.clear();
    state_ = State(policy(), "boot");
    for (const auto& [id, job] : saved_) state_.restore(Job(job));
    state_.restore(saved_slices_);
    saved_slices_ = state_.slices();
    state_.set_lived(lived, now_.mono);
    state_.restored(next);
    read();
  }

  bool is_on_ = true;
  GpuQuota limits_;
  State state_;
  Now now_;
  Machine machine_;  ///< as it is
  Machine read_;     ///< as it was read last
  std::map<JobId, Job> saved_;
  std::vector<MadeSlice> saved_slices_;
  std::deque<MadeSlice> orders_;
  std::set<std::string> foreign_;  ///< slices of others
  std::set<std::string> removed_;  ///< slices gflow removed
  int made_ = 0;
  std::string wrong_;
};

rc::Gen<SliceAct> any_slice_act() {
  using Kind = SliceAct::Kind;
  const auto kind = rc::gen::weightedElement<Kind>({{8, Kind::Submit},
                                                    {5, Kind::End},
                                                    {2, Kind::Cancel},
                                                    {8, Kind::Cut},
                                                    {2, Kind::Refuse},
                                                    {2, Kind::Hang},
                                                    {2, Kind::Half},
                                                    {8, Kind::Read},
                                                    {2, Kind::Restart},
                                                    {3, Kind::Foreign},
                                                    {4, Kind::Wait},
                                                    {1, Kind::Configure},
                                                    {2, Kind::Drain}});
  return rc::gen::build<SliceAct>(
      rc::gen::set(&SliceAct::kind, kind),
      rc::gen::set(&SliceAct::which, rc::gen::inRange(0, 30)),
      rc::gen::set(&SliceAct::gpus, rc::gen::weightedElement<int>({{5, 1}, {1, 2}})),
      rc::gen::set(&SliceAct::priority, rc::gen::element(5, 10, 20)));
}

RC_GTEST_PROP(SlicesProperty, NoneIsHeldTwiceLostOrTakenFromOthersAndEverybodyRuns, ()) {
  SliceWorld world;
  for (const SliceAct& act : *rc::gen::container<std::vector<SliceAct>>(any_slice_act())) {
    world.act(act);
    RC_ASSERT(world.wrong() == "");
  }
  RC_ASSERT(world.all_end() == "");
}

TEST(Slices, WhatCouldNeverBeMadeIsRefusedWithWhatIsLacking) {
  struct Row {
    const char* profile;
    int gpus;
    int memory_gib;
    int nodes;
    int cpus;
    const char* refused;
  };
  const Row rows[] = {
      {"3g.40gb", 2, 0, 1, 1, ""},
      {"1g.10gb", 1, 9, 1, 1, ""},
      {"1g.10gb", 1, 20, 1, 1, "with 20G of memory each and a slice of that profile has less"},
      {"1g.10gb+me", 3, 0, 1, 1, "the GPUs of a node can be cut into 2 of these at most"},
      {"1g.10gb", 1, 0, 2, 1, "on each of 2 nodes and slices are made for jobs on one node alone"},
      {"1g.10gb", 1, 0, 1, 65, "65 CPUs and this machine has 64"},
      {"1g.5gb", 1, 0, 1, 1, "there are only H100-1g.10gb"},
  };
  for (const Row& row : rows) {
    SliceWorld world;
    Request request;
    request.models = {row.profile};
    request.gpus = row.gpus;
    request.gpu_memory = Memory::gib(row.memory_gib);
    request.nodes = row.nodes;
    request.cpus = row.cpus;
    const std::string said = world.refusal_of(request);
    EXPECT_EQ(said.empty(), std::string_view(row.refused).empty()) << row.profile << ": " << said;
    EXPECT_NE(said.find(row.refused), std::string::npos) << row.profile << ": " << said;
  }
}

TEST(Slices, AGpuThatIsCutIsDrainedByItsUuid) {
  SliceWorld world;
  using Kind = SliceAct::Kind;
  world.act({Kind::Drain, 0 + 2});  // GPU 0
  world.act({Kind::Drain, 1});      // GPU 1
  world.act({Kind::Submit, 3});     // 3g.40gb
  world.act({Kind::Cut});
  world.act({Kind::Read});
  EXPECT_EQ(world.made(), 0);
  EXPECT_EQ(world.why(JobId(1)), "Slice: 3g.40gb is not made: the GPU is drained");
  world.act({Kind::Drain, 3});  // GPU 1 is back in service
  world.act({Kind::Cut});
  world.act({Kind::Read});
  EXPECT_EQ(world.made(), 1);
  EXPECT_EQ(world.wrong(), "");
}

TEST(Slices, WhoWaitsForOneOfADrainedGpuHasAnother) {
  SliceWorld world;
  using Kind = SliceAct::Kind;
  world.act({Kind::Submit, 3});  // 3g.40gb
  world.act({Kind::Hang, 1});    // of GPU 0, and nothing was done
  world.act({Kind::Drain, 2});
  for (int orders = 0; orders < 3; ++orders) world.act({Kind::Cut});
  world.act({Kind::Read});
  EXPECT_EQ(world.made(), 1);
  EXPECT_TRUE(world.is_active(JobId(1))) << world.why(JobId(1));
  EXPECT_EQ(world.wrong(), "");
}

TEST(Slices, OneIsNotKeptForWhoIsAtHisLimit) {
  SliceWorld world;
  using Kind = SliceAct::Kind;
  const auto make = [&world] {
    world.act({Kind::Cut});
    world.act({Kind::Read});
  };
  const JobId first = world.submit_as(1000, "7g.80gb", 1);
  make();
  ASSERT_TRUE(world.is_active(first));
  const JobId second = world.submit_as(1000, "7g.80gb", 1);  // it is being made
  world.limit(1000, 1);
  make();
  EXPECT_FALSE(world.is_active(second));
  EXPECT_TRUE(world.is_active(world.submit_as(1001, "7g.80gb", 2)));
  EXPECT_EQ(world.wrong(), "");
}

TEST(Slices, OneOfSomebodyElseIsKeptForNobodyOnceTheOrderIsRefused) {
  SliceWorld world;
  using Kind = SliceAct::Kind;
  world.act({Kind::Drain, 1});
  world.act({.kind = Kind::Submit, .which = 3, .gpus = 2});  // 3g.40gb
  world.make_as_ordered();
  world.act({Kind::Read});
  world.act({Kind::Cut});
  world.act({Kind::Cancel});
  EXPECT_TRUE(world.is_active(world.submit_as(1001, "3g.40gb", 2)));
  EXPECT_EQ(world.wrong(), "");
}

TEST(Slices, OneThatIsMadeAnewByOthersKeepsItsGpuAloneFromBeingCut) {
  SliceWorld world;
  using Kind = SliceAct::Kind;
  const JobId small = world.submit_as(1000, "1g.10gb", 1);
  world.act({Kind::Cut});
  world.act({Kind::Read});
  world.act({Kind::Drain, 1});
  world.end(small);
  const JobId large = world.submit_as(1000, "7g.80gb", 1);
  world.make_again_as_ordered();
  world.act({Kind::Read});
  world.act({Kind::Drain, 3});  // the other GPU is back in service
  EXPECT_FALSE(world.is_active(large));
  world.wait(std::chrono::seconds(31));
  world.act({Kind::Cut});
  world.act({Kind::Read});
  EXPECT_TRUE(world.is_active(large)) << world.why(large);
  EXPECT_FALSE(world.is_active(world.submit_as(1000, "1g.10gb", 1)));
  EXPECT_EQ(world.wrong(), "");
}

}  // namespace
}  // namespace gflow::engine
