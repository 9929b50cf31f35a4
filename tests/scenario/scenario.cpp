// SPDX-License-Identifier: Apache-2.0
#include "scenario/scenario.h"

#include <fmt/format.h>

#include <charconv>
#include <ranges>

#include "base/text.h"
#include "core/gpu_request.h"
#include "core/requests.h"
#include "scenario/numbers.h"

namespace gflow::scenario {

using namespace std::chrono_literals;

namespace {
/// What the node of the line "machine" is called; its devices are shown without a name.
constexpr const char* kFirstNode = "n0";
}  // namespace

Scenario::Scenario()
    : state_(policy_, boot_id_),
      now_{WallTime(std::chrono::sys_days(std::chrono::year(2026) / 3 / 1)), MonoTime(1h)} {
  state_.restored(JobId(1));
}

const std::map<std::string, Scenario::Verb>& Scenario::verbs() {
  static const std::map<std::string, Verb> kVerbs = {
      {"machine", &Scenario::machine}, {"policy", &Scenario::policy},
      {"advance", &Scenario::advance}, {"calendar", &Scenario::calendar},
      {"submit", &Scenario::submit},   {"refuse", &Scenario::refuse},
      {"started", &Scenario::started}, {"finish", &Scenario::finish},
      {"cancel", &Scenario::request},  {"hold", &Scenario::request},
      {"release", &Scenario::request}, {"suspend", &Scenario::request},
      {"resume", &Scenario::request},  {"update", &Scenario::update},
      {"foreign", &Scenario::foreign}, {"uses", &Scenario::uses},
      {"node", &Scenario::node},       {"drain", &Scenario::drain},
      {"undrain", &Scenario::drain},   {"restart", &Scenario::restart},
      {"reboot", &Scenario::reboot},   {"expect", &Scenario::expect},
      {"mig", &Scenario::mig},         {"driver", &Scenario::driver},
  };
  return kVerbs;
}

std::string Scenario::play(const std::string& name, const std::string& text) {
  int number = 0;
  for (const std::string_view raw : split(text, '\n')) {
    ++number;
    const std::string_view body = trim(raw.substr(0, raw.find('#')));
    if (body.empty()) continue;
    const auto where = [&](const std::string& what) {
      return fmt::format("{}:{}: {}\n    {}", name, number, what, body);
    };
    const auto words = shell_split(body);
    if (!words) return where(words.error().message);
    Line line{words->front(), {}, {}};
    for (const std::string& word : *words | std::views::drop(1)) {
      const std::size_t equals = word.find('=');
      if (equals == std::string::npos || equals == 0 || word.find(' ') < equals) {
        line.words.push_back(word);
      } else {
        line.keys[word.substr(0, equals)] = word.substr(equals + 1);
      }
    }
    const auto verb = verbs().find(line.verb);
    if (verb == verbs().end()) return where("there is no such verb");
    if (auto done = (this->*verb->second)(line); !done) return where(done.error().message);
    if (const std::string wrong = state_.check(); !wrong.empty()) return where(wrong);
  }
  return {};
}

Result<void> Scenario::step(const engine::Event& event) {
  refused_ = {};
  for (const engine::Effect& effect : engine::step(state_, event, now_)) {
    if (const auto* save = std::get_if<engine::effect::Save>(&effect)) {
      saved_[save->job] = *state_.find(save->job);
    } else if (const auto* forget = std::get_if<engine::effect::Forget>(&effect)) {
      saved_.erase(forget->job);
    } else if (std::holds_alternative<engine::effect::SaveHealth>(effect)) {
      unhealthy_ = state_.unhealthy();
    } else if (std::holds_alternative<engine::effect::SaveDrains>(effect)) {
      drains_ = state_.drains();
    } else if (std::holds_alternative<engine::effect::SaveSlices>(effect)) {
      slices_ = state_.slices();
    } else if (const auto* cut = std::get_if<engine::effect::CutSlice>(&effect)) {
      orders_.push_back(cut->slice);
    } else if (const auto* answer = std::get_if<engine::effect::Answer>(&effect)) {
      if (!answer->jobs) refused_ = answer->jobs.error();
    }
  }
  if (slices_ != state_.slices()) return fail(Code::Failure, "slices changed without being saved");
  for (const auto& [id, job] : saved_) {
    const Job* now = state_.find(id);
    if (now == nullptr || !(*now == job)) {
      return fail(Code::Failure, fmt::format("job {} changed without being saved", id.value));
    }
  }
  return {};
}

Result<JobId> Scenario::job(const std::string& name) const {
  const auto at = names_.find(name);
  if (at == names_.end()) return fail(Code::Failure, fmt::format("there is no job '{}'", name));
  return at->second;
}

Result<void> Scenario::machine(const Line& line) {
  machine_ = Machine{};
  machine_.name = kFirstNode;
  machine_.source = "sim";
  machine_.cpus = GF_TRY(whole_number(line.keys, "cpus", 64));
  machine_.memory =
      GF_TRY(parse_memory(line.keys.contains("memory") ? line.keys.at("memory") : "512G"));
  const int gpus = GF_TRY(whole_number(line.keys, "gpus", 0));
  for (int i = 0; i < gpus; ++i) {
    Device device;
    device.index = i;
    device.vendor = "nvidia";
    device.model = line.keys.contains("model") ? line.keys.at("model") : "NVIDIA H100 80GB HBM3";
    if (line.keys.contains("gpu_memory")) {
      device.memory_total = GF_TRY(parse_memory(line.keys.at("gpu_memory")));
    }
    machine_.devices.push_back(device);
  }
  return step(engine::event::NodesChanged{{machine_}});
}

/// "root" is the administrator, "operator" one; everybody else is a user with a uid of their own,
/// "alice@team" one of a project.
Principal Scenario::principal(const std::string& text) const {
  constexpr std::uint32_t kFirst = 1000;
  const std::size_t at = text.find('@');
  const std::string name = text.substr(0, at);
  Principal who{.name = name, .projects = {}};
  if (at != std::string::npos) who.projects.push_back(text.substr(at + 1));
  if (name == "root") who.role = Role::Administrator;
  if (name == "operator") who.role = Role::Operator;
  const auto next = static_cast<std::uint32_t>(kFirst + uids_.size());
  who.uid = name == "root" ? 0 : uids_.emplace(name, next).first->second;
  return who;
}

Result<void> Scenario::policy(const Line& line) {
  for (const auto& [key, value] : line.keys) {
    if (key == "placement") {
      policy_.placement = value;
    } else if (key == "order") {
      policy_.order.order = value == "learned" ? engine::Order::Learned : engine::Order::Submission;
    } else if (key == "see_all") {
      policy_.allow_see_all = value == "yes";
    } else if (key == "patience") {
      policy_.backfill_patience = GF_TRY(parse_duration(value));
    } else if (key == "keep") {
      policy_.keep_ended = GF_TRY(parse_duration(value));
    } else if (key == "max_priority") {
      policy_.priority.max = GF_TRY(whole_number(line.keys, key, kDefaultPriority));
    } else if (key == "max_priority_of") {
      const std::size_t colon = value.find(':');
      policy_.priority.users[value.substr(0, colon)] =
          static_cast<int>(parse_number(value.substr(colon + 1)).value_or(0));
    } else if (key == "max_priority_of_project") {
      const std::size_t colon = value.find(':');
      policy_.priority.projects[value.substr(0, colon)] =
          static_cast<int>(parse_number(value.substr(colon + 1)).value_or(0));
    } else if (key == "max_ended") {
      policy_.max_ended = parse_number(value).value_or(0);
    } else if (key == "max_unreserved") {
      policy_.max_unreserved_per_user = parse_number(value).value_or(0);
    } else if (key == "max_gpus") {
      policy_.gpu_quota.per_user = GF_TRY(whole_number(line.keys, key, 0));
    } else if (key == "max_gpus_of") {
      const std::size_t colon = value.find(':');
      policy_.gpu_quota.users[value.substr(0, colon)] =
          static_cast<int>(parse_number(value.substr(colon + 1)).value_or(0));
    } else if (key == "cut") {
      policy_.cut_gpus = {};
      if (value != "none") policy_.cut_gpus = {value};
    } else if (key == "max_queued") {
      policy_.max_queued = parse_number(value).value_or(0);
    } else {
      return fail(Code::Failure, fmt::format("there is no policy '{}'", key));
    }
  }
  return step(engine::event::Configure{policy_});
}

Result<void> Scenario::advance(const Line& line) {
  const auto time = GF_TRY(parse_duration(line.words.at(0)));
  now_.wall += time;
  now_.mono += time;
  return step(engine::event::Tick{});
}

/// "calendar +2d", "calendar -1h": somebody sets the clock; durations go on as before.
Result<void> Scenario::calendar(const Line& line) {
  const std::string& by = line.words.at(0);
  const auto jump = GF_TRY(parse_duration(std::string_view(by).substr(1)));
  now_.wall += by.starts_with('-') ? -jump : jump;
  return step(engine::event::Tick{});
}

Result<Dependencies> Scenario::dependencies(const Line& line) const {
  Dependencies wants;
  for (const char* key : {"after", "any"}) {
    if (!line.keys.contains(key)) continue;
    wants.mode = key == std::string_view("any") ? DependencyMode::Any : DependencyMode::All;
    for (const std::string_view name : split(line.keys.at(key), ',')) {
      const auto number = parse_number(name);
      wants.jobs.push_back(number ? JobId(*number) : GF_TRY(job(std::string(name))));
    }
  }
  wants.auto_cancel = !line.keys.contains("auto_cancel") || line.keys.at("auto_cancel") != "no";
  return wants;
}

namespace {

Preemption preemption_of(std::string_view name) {
  if (name == "none") return Preemption::None;
  return name == "suspend" ? Preemption::Suspend : Preemption::Requeue;
}

}  // namespace

/// The part of a job that says which devices and nodes, and whether it gives way.
Result<void> Scenario::read_request(const Line& line, JobSpec& spec) const {
  const auto& keys = line.keys;
  if (keys.contains("gpus")) apply(GF_TRY(parse_gpu_request(keys.at("gpus"))), spec.request);
  if (keys.contains("gpu_memory")) {
    spec.request.gpu_memory = GF_TRY(parse_memory(keys.at("gpu_memory")));
  }
  spec.request.nodes = GF_TRY(whole_number(keys, "nodes", 1));
  if (keys.contains("label")) {
    const std::string& label = keys.at("label");
    const std::size_t colon = label.find(':');
    spec.request.selector.push_back({label.substr(0, colon), label.substr(colon + 1)});
  }
  for (const std::string& word : line.words) {
    if (word == "turns") spec.request.mode = GpuMode::TimeSlice;
  }
  if (keys.contains("preempt")) spec.preemption = preemption_of(keys.at("preempt"));
  spec.preempt_signal = GF_TRY(whole_number(keys, "preempt_signal", 0));
  return {};
}

Result<JobSpec> Scenario::spec_of(const Line& line) const {
  JobSpec spec;
  spec.name = line.words.at(0);
  spec.user = record_of(principal("alice"));
  GF_CHECK(read_request(line, spec));
  spec.request.cpus = GF_TRY(whole_number(line.keys, "cpus", 0));
  spec.priority = GF_TRY(whole_number(line.keys, "priority", kDefaultPriority));
  spec.max_retries = GF_TRY(whole_number(line.keys, "retries", 0));
  spec.max_concurrent = GF_TRY(whole_number(line.keys, "concurrent", 0));
  spec.dependencies = GF_TRY(dependencies(line));
  const auto& keys = line.keys;
  if (keys.contains("memory")) spec.request.memory = GF_TRY(parse_memory(keys.at("memory")));
  if (keys.contains("time")) spec.time_limit = GF_TRY(parse_duration(keys.at("time")));
  if (keys.contains("grace")) spec.grace = GF_TRY(parse_duration(keys.at("grace")));
  if (keys.contains("begin")) spec.begin = GF_TRY(parse_begin(keys.at("begin"), now_.wall, 0s));
  if (keys.contains("group")) spec.group = keys.at("group");
  if (keys.contains("by")) spec.user = record_of(principal(keys.at("by")));
  if (keys.contains("user")) spec.user = record_of(principal(keys.at("user")));
  if (keys.contains("project")) spec.project = keys.at("project");
  for (const std::string& word : line.words | std::views::drop(1)) {
    if (word == "hold") spec.hold = true;
    if (word == "requeue") spec.requeue = true;
  }
  return spec;
}

Result<void> Scenario::submit(const Line& line) {
  const JobSpec spec = GF_TRY(spec_of(line));
  const JobId id = state_.next_id();
  const Principal by =
      line.keys.contains("by") ? principal(line.keys.at("by")) : system_principal();
  GF_CHECK(step(engine::event::Submit{{spec}, by}));
  if (!refused_.message.empty()) return std::unexpected(refused_);
  names_[spec.name] = id;
  return {};
}

/// "refuse "<text>" submit x gpus=9": the request must fail with this text and change nothing.
Result<void> Scenario::refuse(const Line& line) {
  Line inner{line.words.at(1),
             std::vector<std::string>(line.words.begin() + 2, line.words.end()),
             line.keys};
  const auto saved = saved_;
  const auto done = (this->*verbs().at(inner.verb))(inner);
  const std::string said = done ? std::string("nothing") : done.error().message;
  if (said.find(line.words.at(0)) == std::string::npos) {
    return fail(Code::Failure, fmt::format("it said: {}", said));
  }
  if (saved != saved_) return fail(Code::Failure, "it was refused and changed something");
  return {};
}

Result<void> Scenario::started(const Line& line) {
  const JobId id = GF_TRY(job(line.words.at(0)));
  return step(engine::event::AttemptStarted{id, state_.find(id)->attempts, 4242});
}

/// "finish a", "finish a exit=1", "finish a how=lost attempt=1".
Result<void> Scenario::finish(const Line& line) {
  static const std::map<std::string, EndReason> kHow = {{"exit", EndReason::Exited},
                                                        {"signal", EndReason::Signalled},
                                                        {"timeout", EndReason::TimeLimit},
                                                        {"cancelled", EndReason::Cancelled},
                                                        {"oom", EndReason::OutOfMemory},
                                                        {"launch", EndReason::LaunchFailed},
                                                        {"lost", EndReason::SupervisorDied},
                                                        {"rebooted", EndReason::Rebooted},
                                                        {"preempted", EndReason::Preempted},
                                                        {"not_started", EndReason::NotStarted},
                                                        {"node_failed", EndReason::NotStarted}};
  const JobId id = GF_TRY(job(line.words.at(0)));
  Outcome outcome;
  outcome.exit_code = GF_TRY(whole_number(line.keys, "exit", 0));
  if (line.keys.contains("how")) outcome.reason = kHow.at(line.keys.at("how"));
  if (outcome.reason == EndReason::NotStarted) {
    outcome.message = "no supervisor";
    outcome.failure.kind = FailureKind::Passing;
  }
  if (line.keys.contains("how") && line.keys.at("how") == "node_failed") {
    outcome.message = "no space";
    outcome.failure.kind = FailureKind::Node;
  }
  outcome.failure.error = GF_TRY(whole_number(line.keys, "error", 0));
  if (const Job* ends = state_.find(id); ends != nullptr && is_active(*ends)) {
    outcome.run_time = now_.mono - attempt_of(*ends)->started_mono;
  }
  const int attempt = GF_TRY(whole_number(line.keys, "attempt", state_.find(id)->attempts));
  if (line.words.size() > 1 && line.words[1] == "revoked") {
    return step(engine::event::AttemptRevoked{id, attempt});
  }
  return step(engine::event::AttemptEnded{id, attempt, outcome});
}

Result<void> Scenario::request(const Line& line) {
  std::vector<JobId> ids;
  for (const std::string& name : line.words) ids.push_back(GF_TRY(job(name)));
  const Principal by = principal(line.keys.contains("by") ? line.keys.at("by") : "alice");
  if (line.verb == "cancel") {
    GF_CHECK(step(engine::event::Cancel{ids, by}));
  } else if (line.verb == "hold") {
    GF_CHECK(step(engine::event::Hold{ids, by}));
  } else if (line.verb == "suspend") {
    GF_CHECK(step(engine::event::Suspend{ids, by}));
  } else if (line.verb == "resume") {
    GF_CHECK(step(engine::event::Resume{ids, by}));
  } else {
    std::optional<WallTime> at;
    if (line.keys.contains("at")) at = GF_TRY(parse_begin(line.keys.at("at"), now_.wall, 0s));
    GF_CHECK(step(engine::event::Release{ids, by, at}));
  }
  if (!refused_.message.empty()) return std::unexpected(refused_);
  return {};
}

Result<void> Scenario::update(const Line& line) {
  engine::event::Update update;
  for (const std::string& name : line.words) update.jobs.push_back(GF_TRY(job(name)));
  update.by = line.keys.contains("by") ? principal(line.keys.at("by")) : system_principal();
  JobChanges& changes = update.changes;
  const auto& keys = line.keys;
  if (keys.contains("gpus")) changes.set(&Request::gpus, GF_TRY(whole_number(keys, "gpus", 0)));
  if (keys.contains("priority"))
    changes.set(&JobSpec::priority, GF_TRY(whole_number(keys, "priority", 0)));
  if (keys.contains("project")) changes.set(&JobSpec::project, keys.at("project"));
  if (keys.contains("concurrent")) {
    changes.set(&JobSpec::max_concurrent, GF_TRY(whole_number(keys, "concurrent", 0)));
  }
  if (keys.contains("preempt"))
    changes.set(&JobSpec::preemption, preemption_of(keys.at("preempt")));
  if (keys.contains("preempt_signal")) {
    changes.set(&JobSpec::preempt_signal, GF_TRY(whole_number(keys, "preempt_signal", 0)));
  }
  if (keys.contains("time"))
    changes.set(&JobSpec::time_limit, GF_TRY(parse_duration(keys.at("time"))));
  if (keys.contains("after") || keys.contains("any")) {
    changes.set(&JobSpec::dependencies, GF_TRY(dependencies(line)));
  }
  GF_CHECK(step(update));
  if (!refused_.message.empty()) return std::unexpected(refused_);
  return {};
}

/// "foreign gpu=1 user=dave", "foreign gpu=1 gone", "foreign gpu=1 broken".
Result<void> Scenario::foreign(const Line& line) {
  const auto gpu = static_cast<std::size_t>(GF_TRY(whole_number(line.keys, "gpu", 0)));
  Device& device = machine_.devices.at(gpu);
  device.processes.clear();
  device.usable = true;
  const std::string how = line.words.empty() ? "" : line.words.front();
  if (how == "broken") {
    device.usable = false;
    device.trouble = "fallen off the bus";
  } else if (how != "gone") {
    std::optional<Memory> memory;
    if (line.keys.contains("memory")) memory = GF_TRY(parse_memory(line.keys.at("memory")));
    device.processes.push_back({4711, line.keys.at("user"), "python", memory});
  }
  return step(engine::event::NodesChanged{{machine_}});
}

/// "uses gpu=0 job=a memory=10G": a reading; all of the device is the sum of what is listed.
Result<void> Scenario::uses(const Line& line) {
  const auto gpu = static_cast<std::size_t>(GF_TRY(whole_number(line.keys, "gpu", 0)));
  Device& device = machine_.devices.at(gpu);
  device.uses.clear();
  device.memory_used = Memory{};
  if (line.keys.contains("job")) {
    const JobId id = GF_TRY(job(line.keys.at("job")));
    device.uses.push_back({id.value, GF_TRY(parse_memory(line.keys.at("memory")))});
    *device.memory_used += *device.uses.back().memory;
  }
  if (line.keys.contains("other")) {
    *device.memory_used += GF_TRY(parse_memory(line.keys.at("other")));
  }
  return step(engine::event::NodesChanged{{machine_}});
}

/// "node n1 gpus=8 model=A100 gpu_memory=80G cpus=64 label=zone:a", "node n1 gone",
/// "node n1 removed reason=sold".
Result<void> Scenario::node(const Line& line) {
  const auto& keys = line.keys;
  const std::string& name = line.words.at(0);
  const std::string why = keys.contains("reason") ? keys.at("reason") : "";
  if (line.words.size() > 1 && line.words[1] == "gone") {
    return step(engine::event::NodeUnreachable{name, why});
  }
  if (line.words.size() > 1 && line.words[1] == "removed") {
    return step(engine::event::NodeRemoved{name, why});
  }
  Machine node;
  node.name = name;
  node.memory = Memory::gib(512);
  node.cpus = GF_TRY(whole_number(keys, "cpus", 64));
  Device device;
  device.vendor = "nvidia";
  device.model = keys.contains("model") ? keys.at("model") : "H100";
  if (keys.contains("gpu_memory"))
    device.memory_total = GF_TRY(parse_memory(keys.at("gpu_memory")));
  for (int i = GF_TRY(whole_number(keys, "gpus", 0)); device.index < i; ++device.index) {
    node.devices.push_back(device);
  }
  if (keys.contains("label")) {
    const std::string& label = keys.at("label");
    const std::size_t colon = label.find(':');
    node.labels.push_back({label.substr(0, colon), label.substr(colon + 1)});
  }
  return step(engine::event::NodesChanged{{node}});
}

/// "drain gpu=1 reason=fan", "drain gpu=1 n1", "drain node n1", "resume gpu=1".
Result<void> Scenario::drain(const Line& line) {
  gflow::Drain what;
  if (!line.words.empty() && line.words.back() != "node") what.node = line.words.back();
  if (line.keys.contains("gpu")) what.gpu = GF_TRY(whole_number(line.keys, "gpu", 0));
  if (line.keys.contains("reason")) what.reason = line.keys.at("reason");
  const Principal by = principal(line.keys.contains("by") ? line.keys.at("by") : "root");
  GF_CHECK(step(engine::event::Drain{what, line.verb == "undrain", by}));
  if (!refused_.message.empty()) return std::unexpected(refused_);
  return {};
}

void Scenario::reopen(const std::string& boot_id, MonoTime mono) {
  const JobId next = state_.next_id();
  const auto lived = state_.lived(now_.mono);
  boot_id_ = boot_id;
  now_.mono = mono;
  state_ = engine::State(policy_, boot_id);
  for (const auto& [id, job] : saved_) state_.restore(Job(job));
  state_.restore(drains_);
  state_.restore(unhealthy_);
  orders_.clear();
  state_.restore(slices_);
  slices_ = state_.slices();
  state_.set_lived(lived, now_.mono);
  state_.restored(next);
}

/// The daemon is killed and started again: nothing but what was saved is left.
Result<void> Scenario::restart(const Line& /*line*/) {
  reopen(boot_id_, now_.mono);
  return step(engine::event::NodesChanged{{machine_}});
}

/// The machine goes down: what ran is reported as the daemon does on its next start.
Result<void> Scenario::reboot(const Line& /*line*/) {
  reopen(boot_id_ + "+", MonoTime(1min));
  GF_CHECK(step(engine::event::NodesChanged{{machine_}}));
  for (const auto& [id, job] : std::map(saved_)) {
    if (!is_active(job)) continue;
    const Outcome lost{.reason = EndReason::Rebooted};
    GF_CHECK(step(engine::event::AttemptEnded{id, job.attempts, lost}));
  }
  return {};
}

namespace {

/// "0,1", on other nodes "n1:0,1 n2:0"; "nothing".
std::string place_text(const Job& job) {
  const Attempt* attempt = attempt_of(job);
  if (attempt == nullptr || !is_active(job)) return "nothing";
  std::string text;
  for (const Allocation& allocation : allocations_of(*attempt)) {
    text += text.empty() ? "" : " ";
    text += allocation.node == kFirstNode ? "" : allocation.node + ":";
    text += fmt::format("{}", fmt::join(allocation.gpus, ","));
  }
  return text;
}

/// The number of the signal a running job was told to stop with; 0 is the usual one.
std::string told_text(const Job& job) {
  const auto* running = std::get_if<Running>(&job.state);
  if (running == nullptr || !running->stop) return "nothing";
  return std::to_string(running->stop->signal);
}

}  // namespace

Result<void> Scenario::expect(const Line& line) {
  if (line.words.at(0) == "count") return expect_count(line);
  if (line.words.at(0) == "free") return expect_free(line);
  if (line.words.at(0) == "cut") return expect_cut(line);
  const JobId id = GF_TRY(job(line.words.at(0)));
  const Job* job = state_.find(id);
  const std::string want = line.words.at(1);
  if (want == "forgotten") {
    if (job == nullptr) return {};
    return fail(Code::Failure, "it is still there");
  }
  if (job == nullptr) return fail(Code::Failure, "it is forgotten");
  if (want == "waiting") return expect_waiting(line, *job);
  if (want == "on") {
    const std::string where = place_text(*job);
    if (where == line.words.at(2)) return {};
    return fail(Code::Failure, fmt::format("it is on {}", where));
  }
  if (want == "told") {
    const std::string told = told_text(*job);
    if (told == line.words.at(2)) return {};
    return fail(Code::Failure, fmt::format("it was told {}", told));
  }
  if (status_code(status_of(*job)) == want) return {};
  return fail(Code::Failure, fmt::format("it is {}", status_code(status_of(*job))));
}

/// "expect a waiting <reason> <next reason> ...": all blockers, in order, and no more.
Result<void> Scenario::expect_waiting(const Line& line, const Job& job) {
  std::vector<std::string> why;
  for (const Blocker& blocker : state_.blockers(job.id, now_)) why.push_back(blocker_text(blocker));
  const std::vector<std::string> want(line.words.begin() + 2, line.words.end());
  const bool waits = is_pending(job) || status_of(job) == Status::Suspended;
  if (waits && why == want) return {};
  return fail(
      Code::Failure,
      fmt::format("it is {}, waiting for: {}", status_code(status_of(job)), fmt::join(why, " | ")));
}

Result<void> Scenario::expect_count(const Line& line) {
  for (const auto& [key, value] : line.keys) {
    const Status status = GF_TRY(parse_status(key));
    const std::string have = std::to_string(state_.count(status));
    if (have != value) return fail(Code::Failure, fmt::format("{} are {}", have, key));
  }
  return {};
}

Result<void> Scenario::expect_free(const Line& line) {
  const engine::Totals have = state_.totals();
  for (const auto& [key, value] : line.keys) {
    const std::string is = key == "gpus"   ? std::to_string(have.gpus_free)
                           : key == "cpus" ? std::to_string(have.cpus_free)
                                           : memory_text(have.memory_free);
    if (is != value) return fail(Code::Failure, fmt::format("{} {} are free", is, key));
  }
  return {};
}

}  // namespace gflow::scenario
