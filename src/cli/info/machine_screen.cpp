// SPDX-License-Identifier: Apache-2.0
#include "cli/info/machine_screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "base/translate.h"
#include "cli/gpu_idle.h"
#include "cli/info/machine_text.h"
#include "cli/job_name.h"
#include "command/table.h"
#include "command/times.h"
#include "command/wrap.h"

namespace gflow::cli {

namespace {

/// How a GPU is to be taken at a glance; in the order they are counted.
enum class GpuState { Free, InUse, Shared, Outside, Draining, Drained, Broken };

struct GpuStateInfo {
  std::string_view word;
  std::string_view meaning;
};
constexpr std::array<GpuStateInfo, 7> kGpuStates = {
    {{tr_later("free"), tr_later("Available as a whole.")},
     {tr_later("in use"), tr_later("Allocated to one job as a whole.")},
     {tr_later("shared"),
      tr_later("Shared by jobs that requested a part of it; the rest is available.")},
     {tr_later("outside"),
      tr_later("Used by a process outside gflow, or by a job that does not hold it.")},
     {tr_later("draining"),
      tr_later("Drained with 'gctl drain'; its jobs have not all ended yet.")},
     {tr_later("drained"), tr_later("Drained with 'gctl drain'; gets no new jobs.")},
     {tr_later("broken"), tr_later("Not usable.")}}};

constexpr const GpuStateInfo& info_of(GpuState state) {
  return kGpuStates[static_cast<std::size_t>(state)];
}

GpuState state_of_gpu(const api::DeviceView& view) {
  if (view.has_jobs()) {
    if (view.drained) return GpuState::Draining;
    const bool whole = !view.mode || *view.mode == GpuMode::Whole;
    return whole && view.jobs.size() + view.other_jobs == 1 ? GpuState::InUse : GpuState::Shared;
  }
  switch (view.bar) {
    case DeviceBar::Drained:
      return GpuState::Drained;
    case DeviceBar::Broken:
      return GpuState::Broken;
    case DeviceBar::InUse:
      return GpuState::Outside;
    case DeviceBar::None:
      break;
  }
  return GpuState::Free;
}

/// "38/80 GiB": used and in all.
std::string memory_cell(const Device& device) {
  const auto gib = [](Memory memory) {
    const double amount = static_cast<double>(memory.bytes) / (1 << 30);
    return amount < 9.95 && amount >= 0.05 ? fmt::format("{:.1f}", amount)
                                           : fmt::format("{:.0f}", amount);
  };
  if (!device.memory_total && !device.memory_used) return "-";
  return fmt::format("{}/{} GiB",
                     device.memory_used ? gib(*device.memory_used) : "-",
                     device.memory_total ? gib(*device.memory_total) : "-");
}

/// "[||||      ] 38%" where there is room for it.
std::string utilization_cell(std::optional<int> percent, const MachineViewer& viewer) {
  constexpr int kTicks = 10;
  constexpr std::size_t kLeastColumns = 100;
  if (!percent) return "-";
  std::string text = fmt::format("{}%", *percent);
  if (!viewer.meters || viewer.columns < kLeastColumns) return text;
  const int ticks = std::clamp((*percent * kTicks + 50) / 100, 0, kTicks);
  return fmt::format(
      "[{:{}}] {:>4}", std::string(static_cast<std::size_t>(ticks), '|'), kTicks, text);
}

/// The rows of one screen.
class GpuRows {
 public:
  GpuRows(const api::MachineView& machine, const MachineViewer& viewer) : viewer_(viewer) {
    for (const api::JobView& job : machine.running) running_.emplace(job.id, &job);
  }

  [[nodiscard]] Row row(const api::DeviceView& view) const {
    const GpuState state = state_of_gpu(view);
    const Device& device = view.device;
    return {{fmt::format("{}", device.index)},
            {printable(view.model_short.empty() ? device.model : view.model_short)},
            {tr(info_of(state).word), style(state, view)},
            {utilization_cell(device.utilization_percent, viewer_)},
            {memory_cell(device)},
            {users(view)},
            what(state, view),
            {until(view)}};
  }

 private:
  [[nodiscard]] const api::JobView* find(JobId id) const {
    const auto at = running_.find(id);
    return at == running_.end() ? nullptr : at->second;
  }

  [[nodiscard]] bool is_own(const api::DeviceView& view) const {
    return std::ranges::any_of(view.jobs, [&](JobId id) {
      const api::JobView* job = find(id);
      return job != nullptr && job->spec.user.name == viewer_.user;
    });
  }

  [[nodiscard]] Style style(GpuState state, const api::DeviceView& view) const {
    switch (state) {
      case GpuState::Free:
        return Style::Green;
      case GpuState::InUse:
        return is_own(view) ? Style::Blue : Style::Cyan;
      case GpuState::Shared:
      case GpuState::Draining:
        return Style::Yellow;
      case GpuState::Broken:
        return Style::Red;
      case GpuState::Outside:
      case GpuState::Drained:
        break;
    }
    return Style::Grey;
  }

  [[nodiscard]] std::string users(const api::DeviceView& view) const {
    std::vector<std::string> names;
    const auto add = [&](const std::string& name) {
      if (!name.empty() && std::ranges::find(names, name) == names.end()) names.push_back(name);
    };
    for (const JobId id : view.jobs) {
      if (const api::JobView* job = find(id)) add(printable(job->spec.user.name));
    }
    if (!view.has_jobs()) {
      for (const DeviceProcess& process : view.foreign) add(printable(process.user));
    }
    return join(names, ",");
  }

  enum class Told { Names, Shares, Ids };

  /// "31 llama-ft", "35 serve (0.5), 36 eval (0.25)"; less of that: "35 (0.5), 36 (0.25)", "35,
  /// 36".
  [[nodiscard]] std::string jobs(const api::DeviceView& view, Told told) const {
    std::vector<std::string> all;
    for (const JobId id : view.jobs) {
      std::string text = fmt::format("{}", id.value);
      if (const api::JobView* job = find(id); job != nullptr && told != Told::Ids) {
        if (told == Told::Names) text += " " + job_name_text(job->spec);
        if (job->lends) {
          text += tr(" (lends it)");
        } else if (job->status == Status::Suspended) {
          text += tr(" (suspended)");
        } else if (const auto idle = long_idle(*job); idle > std::chrono::seconds(0)) {
          text += tr_format(" (idle {})", brief_duration(idle));
        } else if (job->spec.request.mode == GpuMode::Fraction) {
          text += fmt::format(" ({})", share_text(job->spec.request.share));
        }
      }
      all.push_back(std::move(text));
    }
    if (view.other_jobs > 0) all.push_back(other_jobs_text(view.other_jobs));
    return join(all, tr(", "));
  }

  /// Of several jobs each is there, whatever room there is.
  [[nodiscard]] Cell jobs_cell(const api::DeviceView& view) const {
    Cell cell{jobs(view, Told::Names)};
    if (view.jobs.size() > 1) cell.briefs = {jobs(view, Told::Shares), jobs(view, Told::Ids)};
    return cell;
  }

  [[nodiscard]] Cell what(GpuState state, const api::DeviceView& view) const {
    if (view.has_jobs()) return jobs_cell(view);
    return {without_jobs(state, view)};
  }

  [[nodiscard]] std::string without_jobs(GpuState state, const api::DeviceView& view) const {
    if (state == GpuState::Drained) return printable(view.drained_reason);
    if (state == GpuState::Broken) return printable(view.device.trouble);
    std::vector<std::string> processes;
    for (const DeviceProcess& process : view.foreign) {
      processes.push_back((process.pid > 0
                               ? fmt::format("pid {} {}", process.pid, printable(process.name))
                               : tr("a process")) +
                          (process.job ? tr_format(" of job {}", process.job->value) : ""));
    }
    return join(processes, tr(", "));
  }

  /// Of one with a limit, at the latest. It has stood still, or the clock was set, for what is
  /// missing of its run time; that is in whole seconds, and a screen later the end is the same.
  [[nodiscard]] WallTime end_of(const api::JobView& job) const {
    constexpr std::chrono::seconds kOfRounding{2};
    const WallTime started = job.started.value_or(viewer_.now - job.run_time);
    const auto missing = viewer_.now - started - job.run_time;
    const bool has_stood = missing > kOfRounding || missing < -kOfRounding;
    return started + *job.spec.time_limit + job.spec.grace +
           (has_stood ? missing : decltype(missing)(0));
  }

  /// When the last of them has to end; a suspended one ends nobody knows when.
  [[nodiscard]] std::string until(const api::DeviceView& view) const {
    if (view.other_jobs > 0) return "-";
    std::optional<WallTime> last;
    for (const JobId id : view.jobs) {
      const api::JobView* job = find(id);
      if (job == nullptr || job->status == Status::Suspended) return "-";
      if (!job->spec.time_limit) return tr("no limit");
      const WallTime end = end_of(*job);
      last = last ? std::max(*last, end) : end;
    }
    return last ? brief_moment(*last, viewer_.now, viewer_.zone) : "";
  }

  const MachineViewer& viewer_;
  std::map<JobId, const api::JobView*> running_;
};

std::vector<const api::DeviceView*> gpus_of(const api::MachineView& machine) {
  std::vector<const api::DeviceView*> all;
  for (const api::NodeView& node : machine.nodes) {
    for (const api::DeviceView& view : node.devices) all.push_back(&view);
  }
  return all;
}

bool has_one_model(const std::vector<const api::DeviceView*>& gpus) {
  return std::ranges::all_of(gpus, [&](const api::DeviceView* view) {
    return view->device.model == gpus.front()->device.model;
  });
}

/// "8 GPUs (NVIDIA H100 80GB HBM3): 3 free, 4 in use"; without the model where there is no room.
std::string counts_line(const std::vector<const api::DeviceView*>& gpus, std::size_t columns) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < kGpuStates.size(); ++i) {
    const auto count = std::ranges::count_if(gpus, [&](const api::DeviceView* view) {
      return state_of_gpu(*view) == static_cast<GpuState>(i);
    });
    if (count > 0) words.push_back(fmt::format("{} {}", count, tr(kGpuStates.at(i).word)));
  }
  const std::string gpus_text = tr_count(gpus.size(), "{} GPU", "{} GPUs", gpus.size());
  const std::string counts = tr(": ") + join(words, tr(", "));
  const std::string model = fmt::format(" ({})", printable(gpus.front()->device.model));
  const std::size_t width = display_width(gpus_text + model + counts);
  const bool say_model =
      has_one_model(gpus) && !gpus.front()->device.model.empty() && width <= columns;
  return cut_end(gpus_text + (say_model ? model : "") + counts, columns);
}

std::string jobs_line(const api::MachineView& machine) {
  std::vector<std::string> words;
  const auto suspended = static_cast<std::size_t>(
      std::ranges::count(machine.running, Status::Suspended, &api::JobView::status));
  const std::size_t running = machine.running.size() - suspended;
  if (running > 0) words.push_back(tr_format("{} running", running));
  if (suspended > 0) words.push_back(tr_format("{} suspended", suspended));
  if (machine.queued > 0) words.push_back(tr_format("{} waiting", machine.queued));
  if (machine.held > 0) words.push_back(tr_format("{} held", machine.held));
  return words.empty() ? tr("no jobs") : tr_format("jobs: {}", join(words, tr(", ")));
}

}  // namespace

std::vector<Example> gpu_state_legend() {
  std::vector<Example> lines;
  for (const GpuStateInfo& info : kGpuStates) {
    lines.push_back({tr(info.word), tr(info.meaning)});
  }
  return lines;
}

std::string gpus_screen(const api::MachineView& machine,
                        const MachineViewer& viewer,
                        const Painter& paint) {
  const std::vector<const api::DeviceView*> gpus = gpus_of(machine);
  if (gpus.empty()) return "";
  const GpuRows rows_of(machine, viewer);
  std::vector<Column> columns = {
      {.header = "GPU"},
      {.header = tr("MODEL"), .cut = Cut::Middle, .narrowest = 8, .leaves = 5},
      {.header = tr("STATUS")},
      {.header = tr("UTIL"), .leaves = 4, .align = Align::Right},
      {.header = tr("MEMORY"), .leaves = 3},
      {.header = tr("USER"), .cut = Cut::End, .narrowest = 6, .leaves = 1},
      {.header = tr("JOB"), .cut = Cut::Middle, .narrowest = 12},
      {.header = tr("UNTIL"), .leaves = 2}};
  const bool several_nodes = machine.nodes.size() > 1;
  const bool one_model = has_one_model(gpus);
  std::vector<Row> rows;
  for (const api::NodeView& node : machine.nodes) {
    for (const api::DeviceView& view : node.devices) {
      rows.push_back(rows_of.row(view));
      if (one_model) rows.back().erase(rows.back().begin() + 1);
      if (several_nodes) rows.back().insert(rows.back().begin(), {printable(node.name)});
    }
  }
  if (one_model) columns.erase(columns.begin() + 1);
  if (several_nodes) {
    columns.insert(columns.begin(), {.header = tr("NODE"), .cut = Cut::Middle, .narrowest = 6});
  }
  return screen_table(columns, rows, viewer.columns, Header::Shown, paint);
}

std::string machine_panel(const api::MachineView& machine,
                          const MachineViewer& viewer,
                          std::size_t rows,
                          const Painter& paint) {
  std::string out = unhealthy_lines(machine, paint);
  const std::vector<const api::DeviceView*> gpus = gpus_of(machine);
  if (gpus.empty()) {
    return out + (machine.nodes.size() == 1 ? no_devices(machine.nodes.front()) : "");
  }
  out += counts_line(gpus, viewer.columns) + '\n';
  const std::string table = gpus_screen(machine, viewer, paint);
  const auto lines = static_cast<std::size_t>(std::ranges::count(table, '\n'));
  const auto above = static_cast<std::size_t>(std::ranges::count(out, '\n'));
  const std::size_t room = rows - std::min(rows, above);
  if (lines <= room) return out + table;
  constexpr std::size_t kLeast = 3;  // the header, a GPU and how many more
  if (room < kLeast) return out;
  const std::size_t shown = room - 1;
  std::size_t end = 0;
  for (std::size_t line = 0; line < shown; ++line) end = table.find('\n', end) + 1;
  const std::size_t left = lines - shown;
  return out + table.substr(0, end) + tr_count(left, "... {} more GPU", "... {} more GPUs", left) +
         '\n';
}

std::string machine_screen(const api::MachineView& machine,
                           const MachineViewer& viewer,
                           const Painter& paint) {
  const std::vector<const api::DeviceView*> gpus = gpus_of(machine);
  std::string out = unhealthy_lines(machine, paint);
  if (!gpus.empty()) {
    out += counts_line(gpus, viewer.columns) + "\n\n";
    out += gpus_screen(machine, viewer, paint);
  }
  std::string notes;
  for (const api::NodeView& node : machine.nodes) {
    if (node.devices.empty() && machine.nodes.size() == 1) notes += no_devices(node);
    if (const std::string title = node_title(node);
        machine.nodes.size() > 1 && title != tr_format("Node {}", printable(node.name))) {
      notes += title + '\n';
    }
    if (!node.devices.empty() && !node.note.empty())
      notes += tr_format("Note: {}\n", tr(printable(node.note)));
  }
  notes += mig_room_lines(machine);
  notes += draining_lines(machine);
  notes += absent_drain_lines(machine);
  if (!notes.empty()) {
    notes.pop_back();  // the last line end, which wrap() would take for one more line
    out += (gpus.empty() ? "" : "\n") + join(wrap(notes, viewer.columns), "\n") + '\n';
  }
  return out + '\n' + cut_end(jobs_line(machine), viewer.columns) + '\n';
}

}  // namespace gflow::cli
