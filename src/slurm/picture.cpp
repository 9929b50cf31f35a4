// SPDX-License-Identifier: Apache-2.0
#include "slurm/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/text.h"
#include "base/translate.h"
#include "core/catalogue.h"
#include "core/slurm_text.h"
#include "slurm/gpu_kinds.h"

namespace gflow::slurm {
namespace {

constexpr const char* kBoot = "slurm";
constexpr std::string_view kOwnCommand = "/dev/stdin";  ///< as which gbatch has sbatch read it

struct Reason {
  std::string_view name;  ///< how it begins
  std::string_view text;
};
/// The first that fits.
constexpr auto kReasons = std::to_array<Reason>({
    {"Resources", tr_later("it is the next, and waits for what running jobs have")},
    {"Priority", tr_later("jobs with a higher priority wait before it ('sprio -l' shows them)")},
    {"DependencyNeverSatisfied", tr_later("a job it depends on has ended otherwise; cancel it")},
    {"Dependency", tr_later("it waits for other jobs")},
    {"BeginTime", tr_later("its begin time has not come")},
    {"JobHeldUser", tr_later("it is on hold: 'gjob release' lets it go")},
    {"JobHeldAdmin", tr_later("an administrator holds it")},
    {"JobArrayTaskLimit", tr_later("as many tasks of its array run as may at once")},
    {"ReqNodeNotAvail", tr_later("nodes it needs are down, drained or reserved ('ginfo')")},
    {"Nodes_required_for_job", tr_later("nodes it needs are down, drained or reserved ('ginfo')")},
    {"PartitionTimeLimit", tr_later("its time limit is more than its partition allows")},
    {"PartitionNodeLimit", tr_later("it asks for more nodes than its partition gives a job")},
    {"QOS", tr_later("a limit of its QOS is reached ('sacctmgr show qos')")},
    {"Assoc", tr_later("a limit of its account is reached ('sacctmgr show assoc')")},
    {"Reservation", tr_later("its reservation has not begun")},
    {"Licenses", tr_later("all licenses are in use")},
    {"BadConstraints", tr_later("no node can ever have what it asks for")},
    {"launch", tr_later("its start failed: 'gjob release' has it tried again")},
});

bool is_held(const std::string& reason) {
  return reason.starts_with("JobHeld") || reason.find("held") != std::string::npos;
}

/// How a job ended that is in such a state.
struct End {
  std::string_view state;
  EndReason reason;
};
constexpr auto kEnds = std::to_array<End>({{"COMPLETED", EndReason::Exited},
                                           {"FAILED", EndReason::Exited},
                                           {"CANCELLED", EndReason::Cancelled},
                                           {"PREEMPTED", EndReason::Cancelled},
                                           {"REVOKED", EndReason::Cancelled},
                                           {"TIMEOUT", EndReason::TimeLimit},
                                           {"DEADLINE", EndReason::TimeLimit},
                                           {"OUT_OF_MEMORY", EndReason::OutOfMemory},
                                           {"NODE_FAIL", EndReason::Rebooted},
                                           {"BOOT_FAIL", EndReason::Rebooted}});

bool is_waiting(const Job& job) {
  return job.state == "PENDING" || job.state.starts_with("REQUEUE") ||
         job.state == "SPECIAL_EXIT" || job.state == "RESV_DEL_HOLD";
}

Outcome outcome_of(const Job& job, EndReason reason) {
  Outcome outcome{.reason = reason, .run_time = job.run_time};
  if (job.exit) std::tie(outcome.exit_code, outcome.signal) = *job.exit;
  if (reason == EndReason::Exited && outcome.signal > 0) outcome.reason = EndReason::Signalled;
  const bool has_run = !job.node_names.empty() && (outcome.exit_code != 0 || outcome.signal != 0);
  if (job.state == "FAILED" && !has_run) {
    outcome.reason = EndReason::LaunchFailed;
    outcome.message = printable(job.reason);
  }
  return outcome;
}

/// What gbatch submitted together, as submitter.h notes it; "" of all else.
std::string_view group_in(std::string_view comment) {
  const auto parts = fields_between(comment.substr(0, comment.find(' ')), ':');
  return parts.size() == 5 && parts[0] == "gflow" ? parts[4] : std::string_view{};
}

/// "%N" of a name of a file, which Slurm 22.05 leaves to who asks, is the first node.
std::string output_of(const Job& job) {
  std::string path = job.output;
  for (std::size_t at = 0; (at = path.find("%N", at)) != std::string::npos;) {
    if (job.node_names.empty()) break;
    path.replace(at, 2, job.node_names.front());
    at += job.node_names.front().size();
  }
  return path;
}

bool is_part(const Gres& gres) { return gres.kind == "shard" || gres.kind == "mps"; }

std::string upper_model(const std::string& type) {
  const std::string model = catalogue::short_model("", type);
  return type.empty() || model.empty() ? "GPU" : model;
}

class PictureMaker {
 public:
  PictureMaker(const Facts& facts, Now now)
      : facts_(facts), now_(now), kinds_(gpu_kinds(facts.nodes)), state_(policy(), kBoot) {}

  Picture paint(std::uint64_t revision) {
    state_.set_lived(now_.wall.time_since_epoch(), now_.mono);
    for (const Node& node : facts_.nodes) add_node(node);
    state_.restore(drains_);
    Picture picture{engine::State({}, ""), {}, {}};
    JobId last;
    std::map<std::uint64_t, bool> seen;
    for (const Job& job : facts_.jobs) {
      if (!seen.emplace(job.id, true).second) continue;
      gflow::Job shown = shown_as(job);
      last = std::max(last, shown.id);
      if (is_waiting(job)) picture.told.emplace(shown.id, explained(job.reason));
      if (!job.output.empty()) picture.outputs.emplace(shown.id, output_of(job));
      state_.restore(std::move(shown));
    }
    state_.restored(JobId(last.value + 1));
    std::vector<engine::NodeRecord> nodes;
    for (auto& [name, machine] : machines_) {
      const auto why = unreachable_.find(name);
      nodes.push_back({std::move(machine)});
      if (why != unreachable_.end()) nodes.back().unreachable = why->second;
    }
    state_.show(std::move(nodes), now_, revision);
    picture.state = std::move(state_);
    return picture;
  }

 private:
  static engine::Policy policy() {
    engine::Policy policy;
    policy.max_unreserved_per_user = 100'000'000;
    return policy;
  }

  void add_node(const Node& node) {
    // What slurm.conf foresees ("FUTURE") is not there.
    if (!is_node_name(node.name) || node.state.starts_with("FUTURE")) return;
    Machine machine{.name = node.name, .source = "slurm", .cpus = node.cpus, .memory = node.memory};
    for (const Gres& gres : node.gres) {
      if (gres.kind != "gpu") continue;
      for (std::int64_t i = 0; i < std::min<std::int64_t>(gres.count, kMostGpus); ++i) {
        Device device;
        device.index = static_cast<int>(machine.devices.size());
        device.model = upper_model(gres.type);
        device.vendor = catalogue::vendor_of(device.model);
        device.memory_total = catalogue::memory_of(device.model);
        machine.devices.push_back(std::move(device));
      }
    }
    if (node.state.find("DRAIN") != std::string::npos ||
        node.state.find("MAINT") != std::string::npos ||
        node.state.find("FAIL") != std::string::npos) {
      drains_.push_back(
          {.node = node.name, .gpu = {}, .reason = printable(node.reason), .by = "slurm"});
    }
    if (node.state.starts_with("DOWN") || node.state.find("INVAL") != std::string::npos ||
        node.state.find("NOT_RESPONDING") != std::string::npos ||
        node.state.find('*') != std::string::npos) {
      unreachable_.emplace(node.name, printable(node.reason.empty() ? node.state : node.reason));
    }
    machines_.emplace(node.name, std::move(machine));
  }

  gflow::Job shown_as(const Job& job) {
    gflow::Job shown;
    shown.id = JobId(job.id);
    shown.spec.name = printable(job.name);
    if (!job.tasks.empty()) {
      shown.spec.name += fmt::format("[{}]", cut_end(printable(job.tasks), kTasksWidth));
    }
    shown.spec.group = printable(group_in(job.comment));
    shown.spec.user = {job.uid, printable(job.user)};
    shown.spec.project = printable(job.account);
    shown.spec.time_limit = job.limit;
    shown.spec.priority = std::clamp<int>(
        kDefaultPriority - static_cast<int>(std::clamp<std::int64_t>(job.nice / 100, -245, 10)),
        0,
        kMaxPriority);
    shown.spec.work_dir = job.work_dir.starts_with('/') ? printable(job.work_dir) : "/";
    std::string_view command = job.command;
    if (command.starts_with(kOwnCommand)) command = trim(command.substr(kOwnCommand.size()));
    shown.spec.command = printable(command.substr(0, 4096));
    shown.spec.request = request_of(job);
    shown.submitted = job.submitted;
    shown.lived = job.submitted.time_since_epoch();
    const auto end = std::ranges::find(kEnds, job.state, &End::state);
    if (is_waiting(job)) {
      shown.state = is_held(job.reason)
                        ? JobState(Held{job.reason == "JobHeldUser" ? "" : explained(job.reason)})
                        : JobState(Queued{});
    } else if (end != kEnds.end()) {
      shown.state = ended(job, outcome_of(job, end->reason), shown);
    } else {
      shown.state = running(job, shown);
    }
    return shown;
  }

  [[nodiscard]] Request request_of(const Job& job) const {
    Request request;
    request.nodes = job.nodes;
    request.cpus = (job.cpus + job.nodes - 1) / job.nodes;
    std::map<std::string, std::int64_t> of_types;  // asked for twice, it is given once
    for (const Gres& gres : job.gres) {
      if (gres.kind == "gpu") {
        std::int64_t& count = of_types[gres.type];
        count = std::max(count, gres.count);
      } else if (is_part(gres)) {
        ask_for_part(request, gres, gres.type);
      }
    }
    std::int64_t gpus = request.gpus;
    for (const auto& [type, count] : of_types) {
      gpus += std::min(count, kMostGpus);
      if (!type.empty()) request.models.push_back(upper_model(type));
    }
    request.gpus = static_cast<int>(std::min(gpus, kMostGpus));
    std::ranges::sort(request.models);
    return request;
  }

  void ask_for_part(Request& request, const Gres& parts, std::string_view type) const {
    const std::int64_t of_gpu = parts_of_gpu(kinds_, parts.kind, type);
    const std::int64_t share =
        of_gpu == 0 ? Share::kWholeParts : Share::kWholeParts * parts.count / of_gpu;
    request.gpus = 1;
    request.mode = GpuMode::Fraction;
    request.share = Share{
        static_cast<std::int32_t>(std::clamp<std::int64_t>(share, 1, Share::kWholeParts - 1))};
  }

  [[nodiscard]] Attempt attempt_of(const Job& job) const {
    Attempt attempt;
    attempt.number = 1;
    attempt.boot_id = kBoot;
    attempt.started = std::min(job.started.value_or(job.submitted), now_.wall);
    attempt.started_mono = now_.mono - job.run_time;
    for (const std::string& node : job.node_names) {
      Allocation part{.node = node, .gpus = indices_on(job, node), .cpus = {}};
      if (attempt.allocation.node.empty()) {
        attempt.allocation = std::move(part);
      } else {
        attempt.peers.push_back(std::move(part));
      }
    }
    return attempt;
  }

  /// Of GPUs and of parts of them: what else has indices ("nic") has others.
  [[nodiscard]] std::vector<int> indices_on(const Job& job, const std::string& node) const {
    const auto machine = machines_.find(node);
    std::set<int> all;
    for (const Part& part : job.parts) {
      if (part.node != node) continue;
      for (const Gres& gres : part.gres) {
        if (gres.kind == "gpu" || is_part(gres)) {
          all.insert(gres.indices.begin(), gres.indices.end());
        }
      }
    }
    const auto most =
        machine == machines_.end() ? 0 : static_cast<int>(machine->second.devices.size());
    std::erase_if(all, [most](int index) { return index >= most; });
    return {all.begin(), all.end()};
  }

  /// Whether all GPUs of what it has are told by their indices.
  static bool is_told(const Job& job) {
    bool has_some = false;
    for (const Part& part : job.parts) {
      for (const Gres& gres : part.gres) {
        if (gres.kind == "gpu" && std::cmp_not_equal(gres.indices.size(), gres.count)) return false;
        if (is_part(gres) && gres.count > 0 && gres.indices.empty()) return false;
        has_some = has_some || gres.kind == "gpu" || is_part(gres);
      }
    }
    return has_some || job.gres.empty();
  }

  /// What it holds is as much as Slurm says it has, whatever it asked for, and not the same on each
  /// node; what is not told is not held.
  JobState running(const Job& job, gflow::Job& shown) {
    Running running;
    running.attempt = attempt_of(job);
    shown.attempts = 1;
    Request& request = shown.spec.request;
    if (!is_told(job) || !machines_.contains(running.attempt.allocation.node)) {
      request = {};
      running.attempt.allocation.gpus.clear();
      running.attempt.peers.clear();
    }
    std::size_t most = running.attempt.allocation.gpus.size();
    for (const Allocation& peer : running.attempt.peers) most = std::max(most, peer.gpus.size());
    request.gpus = static_cast<int>(most);
    request.nodes = 1 + static_cast<int>(running.attempt.peers.size());
    if (request.mode == GpuMode::Fraction) hold_part(job, request);
    if (job.state == "SUSPENDED") running.suspended = now_.mono;
    return running;
  }

  /// The part of a GPU of the node that it runs on.
  void hold_part(const Job& job, Request& request) const {
    const auto node =
        std::ranges::find(facts_.nodes, job.parts.empty() ? "" : job.parts[0].node, &Node::name);
    if (node == facts_.nodes.end() || request.gpus == 0) return;
    const auto type = std::ranges::find(node->gres, "gpu", &Gres::kind);
    for (const Gres& gres : job.parts[0].gres) {
      if (!is_part(gres) || type == node->gres.end()) continue;
      const int gpus = std::exchange(request.gpus, 1);
      ask_for_part(request,
                   {.kind = gres.kind, .type = "", .count = gres.count / gpus, .indices = {}},
                   type->type);
      request.gpus = gpus;
    }
  }

  JobState ended(const Job& job, Outcome outcome, gflow::Job& shown) const {
    Ended ended{.status = status_for(outcome), .outcome = std::move(outcome), .at = {}};
    ended.at = job.ended.value_or(job.submitted);
    ended.lived = ended.at.time_since_epoch();
    if (!job.node_names.empty()) {
      ended.attempt = attempt_of(job);
      shown.attempts = 1;
    }
    return ended;
  }

  static constexpr std::int64_t kMostGpus = 1024;
  static constexpr std::size_t kTasksWidth = 24;

  const Facts& facts_;
  Now now_;
  std::vector<GpuKind> kinds_;
  engine::State state_;
  std::map<std::string, Machine> machines_;
  std::map<std::string, std::string> unreachable_;
  std::vector<Drain> drains_;
};

}  // namespace

std::string explained(const std::string& reason) {
  const auto known = std::ranges::find_if(
      kReasons, [&reason](const Reason& one) { return reason.starts_with(one.name); });
  const std::string said = printable(reason);
  return known == kReasons.end() ? said : fmt::format("{}: {}", said, tr(known->text));
}

Picture picture_of(const Facts& facts, Now now, std::uint64_t revision) {
  return PictureMaker(facts, now).paint(revision);
}

}  // namespace gflow::slurm
