// SPDX-License-Identifier: Apache-2.0
#include "cli/queue/fields.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/translate.h"
#include "cli/described.h"
#include "cli/job_reason.h"
#include "cli/queue/brief.h"
#include "cli/selection.h"
#include "command/times.h"
#include "core/gpu_request.h"

namespace gflow::cli {

namespace {

using api::JobView;

Cell plain(const std::string& text) { return {text.empty() ? "-" : printable(text), Style::Plain}; }

Cell name(const JobView& job) { return plain(job.spec.name); }
Cell state_code(const JobView& job) {
  return {std::string(status_code(job.status)), style_of(job.status)};
}
Cell state_name(const JobView& job) {
  return {std::string(status_name(job.status)), style_of(job.status)};
}
Cell time(const JobView& job) { return {job.started ? clock_text(job.run_time) : "-"}; }
Cell time_limit(const JobView& job) {
  return {job.spec.time_limit ? clock_text(*job.spec.time_limit) : "UNLIMITED"};
}
Cell memory(const JobView& job) {
  return {job.spec.request.memory.bytes > 0 ? memory_text(job.spec.request.memory) : "-"};
}

Cell gpu_mode(const JobView& job) {
  if (job.spec.request.gpus == 0) return {"-"};
  return {std::string(gpu_mode_name(job.spec.request.mode))};
}

Cell dependencies(const JobView& job) {
  const Dependencies& wanted = job.spec.dependencies;
  if (wanted.jobs.empty()) return {"-"};
  std::string text;
  for (const JobId id : wanted.jobs) text += fmt::format("{}{}", text.empty() ? "" : ",", id.value);
  return {wanted.mode == DependencyMode::Any && wanted.jobs.size() > 1 ? "any:" + text : text};
}

Cell exit_code(const JobView& job) {
  if (!job.outcome) return {"-"};
  if (job.outcome->reason == EndReason::Exited) return {fmt::format("{}", job.outcome->exit_code)};
  if (job.outcome->signal > 0) return {fmt::format("signal {}", job.outcome->signal)};
  return {"-"};
}

std::vector<Field> request_fields() {
  const auto number = [](auto value) { return Cell{fmt::format("{}", value)}; };
  return {
      {"JOBID",
       {"ID"},
       tr("job id"),
       0,
       [=](const JobView& j) { return number(j.id.value); },
       {"id"}},
      {"NAME", {}, tr("job name"), 16, name, {"spec.name"}},
      {"ST", {}, tr("state, as a code"), 0, state_code, {"status"}},
      {"STATE", {}, tr("state, as a name"), 0, state_name, {"status"}},
      {"TIME", {}, tr("elapsed run time"), 0, time, {"started", "run_time_seconds"}},
      {"NODES",
       {},
       tr("number of GPUs"),
       0,
       [=](const JobView& j) { return number(j.spec.request.gpus * j.spec.request.nodes); },
       {"spec.request.gpus", "spec.request.nodes"}},
      {"GPUS",
       {"GRES"},
       tr("requested GPUs, as for --gpus: 2, 0.5, 8G,0.5, 2(V100)"),
       0,
       [](const JobView& j) { return plain(gpu_request_text(j.spec.request)); },
       {"spec.request"}},
      {"MODE",
       {"GPU_MODE"},
       tr("GPU mode: whole, fraction or time_slice"),
       0,
       [](const JobView& j) { return gpu_mode(j); },
       {"spec.request.gpus", "spec.request.gpu_mode"}},
      {"NODELIST(REASON)",
       {"NODELIST"},
       tr("allocated GPUs, or why it waits or how it ended"),
       0,
       [](const JobView& j) { return Cell{where_or_why(j)}; },
       {"status", "node_list", "reason", "spec.begin"}},
      {"REASON",
       {},
       tr("why it waits or how it ended"),
       0,
       [](const JobView& j) { return plain(reason_of(j)); },
       {"reason", "spec.begin"}},
      {"TIMELIMIT", {"TIME_LIMIT"}, tr("time limit"), 0, time_limit, {"spec.time_limit_seconds"}},
      {"MEMORY", {"MEM"}, tr("requested host memory"), 0, memory, {"spec.request.memory_bytes"}},
      {"CPUS",
       {},
       tr("requested CPUs"),
       0,
       [=](const JobView& j) { return number(j.spec.request.cpus); },
       {"spec.request.cpus"}},
  };
}

std::vector<Field> owner_fields() {
  return {
      {"USER",
       {},
       tr("user"),
       0,
       [](const JobView& j) { return plain(j.spec.user.name); },
       {"user"}},
      {"GROUP",
       {},
       tr("group of jobs submitted together, which share a limit"),
       0,
       [](const JobView& j) { return plain(j.spec.group); },
       {"spec.group"}},
      {"PROJECT",
       {},
       tr("project"),
       0,
       [](const JobView& j) { return plain(j.spec.project); },
       {"spec.project"}},
      {"PRIORITY",
       {"PRIO"},
       tr("priority; higher starts first"),
       0,
       [](const JobView& j) { return Cell{fmt::format("{}", j.spec.priority)}; },
       {"spec.priority"}},
  };
}

std::vector<Field> history_fields() {
  const auto number = [](auto value) { return Cell{fmt::format("{}", value)}; };
  return {
      {"SUBMITTED",
       {},
       tr("submission time"),
       0,
       [](const JobView& j) { return Cell{local_text(j.submitted)}; },
       {"submitted"}},
      {"STARTED",
       {},
       tr("start time"),
       0,
       [](const JobView& j) { return Cell{local_text(j.started)}; },
       {"started"}},
      {"ENDED",
       {},
       tr("end time"),
       0,
       [](const JobView& j) { return Cell{local_text(j.ended)}; },
       {"ended"}},
      {"EXIT", {}, tr("exit code or signal"), 0, exit_code, {"outcome"}},
      {"DEPENDS", {"DEPENDENCY"}, tr("jobs it depends on"), 0, dependencies, {"spec.dependencies"}},
      {"ATTEMPT",
       {},
       tr("number of times started"),
       0,
       [=](const JobView& j) { return number(j.attempt); },
       {"attempt"}},
      {"PID",
       {},
       tr("process id of its first process"),
       0,
       [](const JobView& j) { return Cell{j.pid > 0 ? fmt::format("{}", j.pid) : "-"}; },
       {"pid"}},
      {"COMMAND",
       {},
       tr("command"),
       0,
       [](const JobView& j) { return plain(j.spec.command); },
       {"spec.command"}},
      {"WORKDIR",
       {},
       tr("working directory"),
       0,
       [](const JobView& j) { return plain(j.spec.work_dir); },
       {"spec.work_dir"}},
      {"LOG",
       {},
       tr("path of its log"),
       0,
       [](const JobView& j) { return plain(j.log_path); },
       {"log_path"}},
  };
}

std::vector<Field> make_fields() {
  std::vector<Field> all = request_fields();
  std::ranges::move(owner_fields(), std::back_inserter(all));
  std::ranges::move(history_fields(), std::back_inserter(all));
  std::ranges::move(described_columns(all), std::back_inserter(all));
  return all;
}

bool is_called(const Field& field, std::string_view name) {
  const auto same = [&](std::string_view other) { return to_lower(other) == to_lower(name); };
  return same(field.name) || std::ranges::any_of(field.aliases, same);
}

}  // namespace

const std::vector<Field>& queue_fields() {
  static const std::vector<Field> fields = make_fields();
  return fields;
}

Result<std::vector<const Field*>> choose_fields(std::string_view list,
                                                std::span<const Field> more) {
  std::vector<const Field*> all;
  for (const Field& field : queue_fields()) all.push_back(&field);
  for (const Field& field : more) all.push_back(&field);
  std::vector<const Field*> chosen;
  for (const std::string& name : parse_list(list)) {
    const auto at =
        std::ranges::find_if(all, [&](const Field* field) { return is_called(*field, name); });
    if (at == all.end()) {
      std::vector<std::string> names;
      for (const Field* field : all) names.push_back(field->name);
      return fail(
          Code::Usage,
          tr_format("'{}' is not a field; the fields are {}", printable(name), join(names, ", ")));
    }
    chosen.push_back(*at);
  }
  if (chosen.empty()) return fail(Code::Usage, tr("no field given"));
  return chosen;
}

std::vector<std::string> each_once(std::vector<std::string> names) {
  std::ranges::sort(names);
  names.erase(std::ranges::unique(names).begin(), names.end());
  return names;
}

std::vector<std::string> needs_of(const std::vector<const Field*>& fields) {
  std::vector<std::string> needs;
  for (const Field* field : fields) std::ranges::copy(field->needs, std::back_inserter(needs));
  return each_once(std::move(needs));
}

std::vector<Column> columns_of(const std::vector<const Field*>& fields) {
  std::vector<Column> columns;
  for (const Field* field : fields) columns.push_back({field->name, field->least_width});
  return columns;
}

Row row_of(const std::vector<const Field*>& fields, const api::JobView& job) {
  Row row;
  for (const Field* field : fields) row.push_back(field->cell(job));
  return row;
}

std::string where_or_why(const api::JobView& job) {
  const bool active = is_active(job.status);
  if (active && !job.node_list.empty()) {
    const std::string where = printable(job.node_list);
    if (job.status != Status::Suspended || job.reason.empty()) return where;
    return fmt::format("{} ({})", where, printable(reason_of(job)));
  }
  if ((active && job.status != Status::Suspended) || job.status == Status::Finished ||
      job.reason.empty())
    return "-";
  return fmt::format("({})", printable(reason_of(job)));
}

}  // namespace gflow::cli
