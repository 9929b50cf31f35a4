// SPDX-License-Identifier: Apache-2.0
#include "cli/submit/request.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/translate.h"
#include "cli/described.h"
#include "cli/job/signals.h"
#include "cli/submit/gpu_options.h"
#include "cli/submit/values.h"
#include "command/wrap.h"
#include "core/job_description.h"
#include "core/request_text.h"
#include "core/requests.h"
#include "core/task_payload.h"

namespace gflow::cli {

namespace {

Result<Request> read_request(const Invocation& invocation, const GpuResources& resources) {
  Request request;
  GF_CHECK(read_gpu_options(invocation, resources, request));
  GF_CHECK(read_node_options(invocation, request));
  if (invocation.has("cpus")) {
    request.cpus = GF_TRY(read_count("--cpus", invocation.get("cpus")));
  } else {
    request.cpus = request.gpus > 0 ? 0 : 1;
  }
  if (invocation.has("memory")) {
    auto memory = parse_memory(invocation.get("memory"));
    if (!memory) return with_context(memory.error(), "--memory");
    request.memory = *memory;
  }
  GF_CHECK(normalise(request));
  return request;
}

Result<int> read_priority(const Invocation& invocation) {
  int priority = kDefaultPriority;
  if (invocation.has("priority")) {
    auto given = parse_priority(invocation.get("priority"));
    if (!given) return with_context(given.error(), "--priority");
    priority = *given;
  }
  if (!invocation.has("nice")) return priority;
  return lower_priority(priority, invocation.get("nice"));
}

Result<Dependencies> read_dependencies(const Invocation& invocation, const Here& here) {
  Dependencies wanted;
  if (invocation.has("depends-on")) {
    wanted =
        GF_TRY(read_dependency(invocation.get("depends-on"), DependencyMode::All, here.newest));
  }
  if (invocation.has("depends-on-any")) {
    wanted =
        GF_TRY(read_dependency(invocation.get("depends-on-any"), DependencyMode::Any, here.newest));
  }
  wanted.auto_cancel = !invocation.has("no-auto-cancel");
  return wanted;
}

/// --preemptible and --preempt-signal.
Result<void> read_preemption_options(const Invocation& invocation, JobSpec& spec) {
  if (invocation.has("preemptible")) {
    spec.preemption = GF_TRY(read_preemption(invocation.get("preemptible")));
  }
  if (!invocation.has("preempt-signal")) return {};
  const int signal = GF_TRY(read_preempt_signal(invocation.get("preempt-signal")));
  if (spec.preemption != Preemption::Requeue) {
    return fail(Code::Usage, tr("--preempt-signal requires --preemptible=requeue"));
  }
  spec.preempt_signal = signal;
  return {};
}

/// "lr" gives GFLOW_PARAM_lr; what cannot stand in a variable's name becomes "_".
std::string param_variable(std::string_view name) {
  std::string variable = "GFLOW_PARAM_";
  for (const char c : name) variable += c == '-' || c == '.' ? '_' : c;
  return variable;
}

}  // namespace

Result<JobSpec> read_spec(const Invocation& invocation, const Here& here) {
  JobSpec spec;
  spec.request = GF_TRY(read_request(invocation, here.resources));
  spec.priority = GF_TRY(read_priority(invocation));
  spec.dependencies = GF_TRY(read_dependencies(invocation, here));
  spec.project = invocation.get("project");
  if (invocation.has("name")) spec.name = GF_TRY(check_name(invocation.get("name")));
  if (invocation.has("time")) spec.time_limit = GF_TRY(read_time_limit(invocation.get("time")));
  if (invocation.has("grace")) spec.grace = GF_TRY(read_grace(invocation.get("grace")));
  if (invocation.has("begin")) {
    auto begin = parse_begin(invocation.get("begin"), here.now, here.zone);
    if (!begin) return with_context(begin.error(), "--begin");
    spec.begin = *begin;
  }
  spec.hold = invocation.has("hold");
  spec.requeue = invocation.has("requeue");
  GF_CHECK(read_preemption_options(invocation, spec));
  if (invocation.has("max-retries")) {
    spec.max_retries = GF_TRY(read_count("--max-retries", invocation.get("max-retries")));
  }
  if (invocation.has("max-concurrent")) {
    spec.max_concurrent = GF_TRY(read_count("--max-concurrent", invocation.get("max-concurrent")));
  }
  spec.work_dir = here.directory;
  GF_CHECK(read_described(invocation, spec));
  GF_CHECK(check_fields(spec));  // the daemon says the same, if there is one
  return spec;
}

namespace {

std::string name_at(const JobSpec& spec,
                    const Sweep& sweep,
                    const Point& point,
                    const std::string& suffix) {
  if (!sweep.name_template.empty()) return substitute(sweep.name_template, point);
  if (spec.name.empty() || suffix.empty()) return spec.name;
  return fmt::format("{}_{}", spec.name, suffix);
}

/// The first item has the payload, the others what differs from it.
api::SubmitRequest::Item item_at(const Point& point,
                                 const JobSpec& spec,
                                 const Payload& payload,
                                 const api::SubmitRequest::Item* first) {
  api::SubmitRequest::Item item{spec, {}, {}};
  std::vector<std::string> argv = payload.argv;
  for (std::string& word : argv) word = substitute(word, point);
  if (first == nullptr) {
    item.payload = payload;
    item.payload.argv = std::move(argv);
  } else {
    item.like = 0;
    if (argv != first->payload.argv) item.payload.argv = std::move(argv);
  }
  for (const auto& [name, value] : point) {
    set_variable(item.payload.environment, param_variable(name), value);
  }
  item.spec.command = printable(substitute(spec.command, point));
  return item;
}

/// What all tasks of an array are told alike; each is told its number by the daemon.
void set_tasks(Environment& environment, const Sweep& sweep) {
  set_variable(environment, "GFLOW_ARRAY_TASK_COUNT", fmt::format("{}", sweep.tasks.size()));
  set_variable(environment, "GFLOW_ARRAY_TASK_MIN", fmt::format("{}", sweep.tasks.front()));
  set_variable(environment, "GFLOW_ARRAY_TASK_MAX", fmt::format("{}", sweep.tasks.back()));
}

/// Numbers that go up by the same step from one to the next, as long as there are.
std::vector<TaskRange> ranges_of(const std::vector<std::uint64_t>& tasks) {
  std::vector<TaskRange> ranges;
  for (std::size_t at = 0; at < tasks.size(); at += ranges.back().count) {
    TaskRange range{.first = tasks[at]};
    if (at + 1 < tasks.size()) range.step = tasks[at + 1] - tasks[at];
    while (at + range.count < tasks.size() &&
           tasks[at + range.count] == range.number(range.count)) {
      ++range.count;
    }
    ranges.push_back(range);
  }
  return ranges;
}

}  // namespace

std::vector<api::SubmitRequest::Item> expand(const JobSpec& spec,
                                             const Payload& payload,
                                             const Sweep& sweep,
                                             const std::string& group) {
  std::vector<api::SubmitRequest::Item> items;
  const auto add = [&](const Point& point, const std::string& suffix) {
    items.push_back(item_at(point, spec, payload, items.empty() ? nullptr : &items.front()));
    items.back().spec.name = name_at(spec, sweep, point, suffix);
  };
  if (sweep.tasks.empty()) {
    const bool several = sweep.points.size() > 1;
    for (std::size_t i = 0; i < sweep.points.size(); ++i) {
      add(sweep.points[i], several ? fmt::format("{}", i + 1) : "");
    }
  }
  for (const TaskRange& tasks : ranges_of(sweep.tasks)) {
    add({}, "");
    items.back().tasks = tasks;
  }
  if (!sweep.tasks.empty()) set_tasks(items.front().payload.environment, sweep);
  const bool is_one = std::max(items.size(), sweep.tasks.size()) == 1;
  for (api::SubmitRequest::Item& item : items) {
    item.spec.group = is_one ? "" : group;
    if (is_one) item.spec.max_concurrent = 0;
  }
  return items;
}

std::vector<api::SubmitRequest> in_parts(const api::SubmitRequest& request, std::size_t most) {
  std::vector<api::SubmitRequest> parts;
  for (std::size_t i = 0; i < request.items.size(); ++i) {
    api::SubmitRequest::Item item = request.items[i];
    // Of the first of all, not of that of its part.
    if (item.like && item.payload.argv.empty()) {
      item.payload.argv = request.items[*item.like].payload.argv;
    }
    if (i % most == 0) {
      parts.emplace_back();
      parts.back().idempotency_key = fmt::format("{}-{}", request.idempotency_key, parts.size());
      if (item.like) {
        item.payload = complete(&request.items[*item.like].payload, std::move(item.payload));
        item.like.reset();
      }
    }
    parts.back().items.push_back(std::move(item));
  }
  return parts;
}

Result<std::vector<api::SubmitRequest::Item>> tasks_apart(
    const std::vector<api::SubmitRequest::Item>& items) {
  constexpr std::size_t kMost = 10'000;  // an object each
  std::vector<api::SubmitRequest::Item> apart;
  for (const api::SubmitRequest::Item& item : items) {
    if (!item.tasks) return items;
    if (apart.size() + item.count() > kMost) {
      return fail(Code::Usage,
                  tr_format("--array: more than {} tasks at once, in a cluster", kMost));
    }
    for (std::uint64_t i = 0; i < item.count(); ++i) {
      const std::uint64_t number = item.tasks->number(i);
      const bool is_first = apart.empty();
      api::SubmitRequest::Item& one = apart.emplace_back(item);
      one.tasks.reset();
      one.spec.name = task_name(item.spec.name, number);
      one.payload = complete(is_first ? &item.payload : nullptr, task_payload(number));
      if (!is_first) one.like = 0;
    }
  }
  return apart;
}

namespace {

/// "1-20"; of many the first, so that it is a line.
std::string tasks_text(const std::vector<api::SubmitRequest::Item>& items) {
  constexpr std::size_t kMost = 40;
  std::vector<std::uint64_t> tasks;
  for (const api::SubmitRequest::Item& item : items) {
    for (std::uint64_t i = 0; i < item.count(); ++i) tasks.push_back(item.tasks->number(i));
  }
  std::string text = ranges_text(std::span<const std::uint64_t>(tasks));
  if (text.size() <= kMost) return text;
  text.resize(text.rfind(',', kMost));
  return fmt::format("{},...,{}", text, tasks.back());
}

std::string dry_run_facts(const JobSpec& spec, const std::string& task, const std::string& name) {
  std::string facts = tr_format("GPUs: {}", gpu_request_text(spec.request));
  if (spec.request.mode == GpuMode::TimeSlice) facts += tr(", time-sliced");
  facts += task;
  if (spec.request.cpus > 0) facts += tr_format(", CPUs: {}", spec.request.cpus);
  if (spec.request.memory.bytes > 0)
    facts += tr_format(", memory: {}", memory_text(spec.request.memory));
  if (spec.request.nodes > 1) facts += tr_format(", nodes: {}", spec.request.nodes);
  if (!spec.request.selector.empty())
    facts += tr_format(", where: {}", selector_text(spec.request.selector));
  facts +=
      tr_format(", time limit: {}", spec.time_limit ? duration_text(*spec.time_limit) : tr("none"));
  if (!name.empty()) facts += tr_format(", name: {}", printable(name));
  return facts;
}

/// "  [1] train.py (GPUs: 1)"; on a screen that this is too wide for, what is said of the command
/// stands below it.
std::string dry_run_line(const std::string& number,
                         const std::string& command,
                         const std::string& facts,
                         std::size_t columns) {
  const std::string line = fmt::format("  [{}] {}", number, command);
  const std::string words = fmt::format("({})", facts);
  if (columns == 0 || display_width(line) + 1 + display_width(words) <= columns) {
    return fmt::format("{} {}\n", line, words);
  }
  return line + '\n' + fit_lines("      " + words + '\n', columns);
}

}  // namespace

std::string dry_run_text(const api::SubmitRequest& request, std::size_t columns) {
  constexpr std::size_t kListed = 20;
  const std::vector<api::SubmitRequest::Item>& items = request.items;
  const std::uint64_t count = request.count();
  std::string out =
      tr_count(count, "Would submit {} batch job:\n", "Would submit {} batch jobs:\n", count);
  const JobSpec& one = items.front().spec;
  if (items.front().tasks && count > 1) {
    const std::string tasks = tasks_text(items);
    const std::string name = one.name.empty() ? "" : fmt::format("{}_[{}]", one.name, tasks);
    const std::string facts = dry_run_facts(one, tr_format(", task_ids: {}", tasks), name);
    return out + dry_run_line(fmt::format("1-{}", count), one.command, facts, columns);
  }
  for (std::size_t i = 0; i < std::min(items.size(), kListed); ++i) {
    const JobSpec& spec = items[i].spec;
    const auto& tasks = items[i].tasks;
    const std::string task = tasks ? tr_format(", task_id: {}", tasks->first) : "";
    const std::string name = tasks ? task_name(spec.name, tasks->first) : spec.name;
    const std::string facts = dry_run_facts(spec, task, name);
    out += dry_run_line(fmt::format("{}", i + 1), spec.command, facts, columns);
  }
  if (items.size() > kListed) out += tr_format("  ... {} more\n", items.size() - kListed);
  return out;
}

}  // namespace gflow::cli
