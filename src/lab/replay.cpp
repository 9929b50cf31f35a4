// SPDX-License-Identifier: Apache-2.0
#include "lab/replay.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "settings/settings.h"

namespace gflow::lab {
namespace {

/// What can be said of a node that is added: a name nobody has.
std::string free_name(const std::vector<Machine>& fleet) {
  for (int i = 1;; ++i) {
    const std::string name = fmt::format("added{}", i);
    if (std::ranges::find(fleet, name, &Machine::name) == fleet.end()) return name;
  }
}

Result<void> remove_node(std::vector<Machine>& fleet, const std::string& called) {
  const auto at = std::ranges::find(fleet, called, &Machine::name);
  if (at != fleet.end()) {
    fleet.erase(at);
    return {};
  }
  std::vector<std::string> names;
  for (const Machine& node : fleet) names.push_back(node.name);
  const auto near = nearest(called, names);
  if (names.size() > 10) {
    names.resize(10);
    names.emplace_back("...");
  }
  return fail(Code::NotFound,
              fmt::format("there is no node '{}'{}; there are: {}",
                          printable(called),
                          near ? fmt::format(" (is it '{}'?)", printable(*near)) : "",
                          printable(join(names, ", "))));
}

/// Jobs that run on a node that is gone have to start again from the queue, with what they did.
void leave_removed(Subject& subject) {
  for (Subject::Existing& existing : subject.existing) {
    const Attempt* attempt = attempt_of(existing.job);
    if (attempt == nullptr || !is_active(existing.job)) continue;
    const auto there = [&](const Allocation& part) {
      return std::ranges::find(subject.fleet, part.node, &Machine::name) != subject.fleet.end();
    };
    if (there(attempt->allocation) && std::ranges::all_of(attempt->peers, there)) continue;
    existing.job.state = Queued{};
  }
}

}  // namespace

Subject subject_of(Trace trace, std::vector<Machine> fleet, std::string name) {
  Subject subject;
  subject.name = std::move(name);
  subject.begins =
      trace.begins.value_or(WallTime(std::chrono::sys_days(std::chrono::year(2026) / 1 / 1)));
  spread_over_nodes(trace, max_gpus_of(fleet));
  subject.submissions = std::move(trace.jobs);
  subject.scheduler = std::move(trace.scheduler);
  subject.notes = std::move(trace.notes);
  subject.fleet = std::move(fleet);
  return subject;
}

std::string WhatIf::text() const {
  std::string text;
  const auto add = [&text](std::string_view option, const std::string& value) {
    text += fmt::format("{}--{} {}", text.empty() ? "" : " ", option, value);
  };
  if (nodes) add("nodes", *nodes);
  for (const std::string& node : remove_nodes) add("remove-node", node);
  for (const std::string& node : add_nodes) add("add-node", node);
  for (const auto& [name, value] : settings) add("set", fmt::format("{}={}", name, value));
  return text;
}

Result<Subject> changed(const Subject& subject, const WhatIf& what_if) {
  Subject other = subject;
  if (what_if.nodes) other.fleet = GF_TRY(read_fleet(*what_if.nodes));
  for (const std::string& name : what_if.remove_nodes) GF_CHECK(remove_node(other.fleet, name));
  for (const std::string& spec : what_if.add_nodes) {
    Machine added = GF_TRY(read_machine_spec(spec));
    added.name = free_name(other.fleet);
    other.fleet.push_back(std::move(added));
  }
  if (what_if.nodes || !what_if.remove_nodes.empty()) leave_removed(other);
  for (const auto& [name, value] : what_if.settings) {
    GF_CHECK(settings::set_policy_value(other.policy, {name, value}));
  }
  return other;
}

Simulation simulation_of(const Subject& subject,
                         const RunnerRules& rules,
                         RunEstimate::Span RunEstimate::* quartile) {
  Simulation simulation(subject.policy, rules, subject.begins, subject.lived);
  simulation.restore(subject.drains, subject.unhealthy);
  for (const Subject::Existing& existing : subject.existing) {
    const RunEstimate run = existing.still_to_run.value_or(RunEstimate{});
    simulation.restore(existing.job, run.*quartile);
  }
  simulation.begin(subject.next_id);
  simulation.tell(engine::event::NodesChanged{subject.fleet, subject.unreachable});
  return simulation;
}

namespace {

Played play_once(const Subject& subject,
                 const RunnerRules& rules,
                 RunEstimate::Span RunEstimate::* quartile,
                 const Progress& progress) {
  Simulation simulation = simulation_of(subject, rules, quartile);
  for (const TraceJob& job : subject.submissions) {
    simulation.submit(job.spec, job.submitted, job.run_time);
  }
  // Each job is submitted, started, and ends; more often where jobs make room for others.
  const double expected =
      3.0 * static_cast<double>(subject.submissions.size() + subject.existing.size()) + 1;
  simulation.run([&](std::size_t events) {
    if (progress) progress(std::min(static_cast<double>(events) / expected, 0.99), {});
  });
  Played played{
      .lives = simulation.lives(), .moments = simulation.moments(), .gpus = gpus_of(subject.fleet)};
  for (const Life& life : played.lives) {
    played.ended = std::max(played.ended, life.ended.value_or(std::chrono::milliseconds(0)));
  }
  return played;
}

bool is_estimated(const Subject::Existing& existing) { return existing.still_to_run.has_value(); }

}  // namespace

Played play(const Subject& subject,
            const RunnerRules& rules,
            const std::string& label,
            const Progress& progress) {
  const bool estimated = std::ranges::any_of(subject.existing, is_estimated);
  const double parts = estimated ? 3 : 1;
  const auto part = [&](double before) {
    return [&, before](double done, const std::string&) {
      if (progress) progress((before + done) / parts, label);
    };
  };
  Played played = play_once(subject, rules, &RunEstimate::median, part(0));
  played.label = label;
  if (estimated) {
    played.ended_if_shorter = play_once(subject, rules, &RunEstimate::shorter, part(1)).ended;
    played.ended_if_longer = play_once(subject, rules, &RunEstimate::longer, part(2)).ended;
  }
  return played;
}

std::optional<Played> as_it_was(const Subject& subject) {
  if (subject.scheduler.empty()) return {};
  Played played{.label = subject.scheduler, .gpus = gpus_of(subject.fleet)};
  std::map<std::chrono::milliseconds, Moment> steps;  // how much more, or less, from then on
  std::uint64_t number = 0;
  for (const TraceJob& job : subject.submissions) {
    const std::chrono::milliseconds start = job.started.value_or(job.submitted);
    const Request& request = job.spec.request;
    Life life{.id = JobId(++number),
              .user = job.spec.user.name,
              .parts = std::int64_t{Share::kWholeParts} * request.gpus * request.nodes,
              .submitted = job.submitted,
              .work = job.run_time,
              .done = job.run_time,
              .first_start = start,
              .ended = start + job.run_time,
              .starts = 1};
    steps[job.submitted].waiting += 1;
    steps[start].waiting -= 1;
    steps[start].parts_used += life.parts;
    steps[*life.ended].parts_used -= life.parts;
    played.ended = std::max(played.ended, *life.ended);
    played.lives.push_back(std::move(life));
  }
  Moment now;
  for (const auto& [at, step] : steps) {
    now = {at, now.parts_used + step.parts_used, now.waiting + step.waiting};
    played.moments.push_back(now);
  }
  return played;
}

}  // namespace gflow::lab
