// SPDX-License-Identifier: Apache-2.0
#include "cli/info/machine_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/kept_sentence.h"
#include "base/text.h"
#include "base/translate.h"
#include "cli/job_name.h"
#include "command/table.h"
#include "core/request_text.h"

namespace gflow::cli {

namespace {

/// "12.3 GiB", "512 MiB": readings are shown rounded, unlike amounts that were asked for.
std::string reading(Memory memory) {
  const auto mib = static_cast<double>(memory.bytes) / (1 << 20);
  return mib >= 1024 ? fmt::format("{:.1f} GiB", mib / 1024) : fmt::format("{:.0f} MiB", mib);
}

std::string memory_line(const Device& device) {
  if (!device.memory_total)
    return device.memory_used ? tr_format("{} used", reading(*device.memory_used)) : "";
  if (!device.memory_used) return tr_format("{} in total", reading(*device.memory_total));
  return tr_format("{} of {} used", reading(*device.memory_used), reading(*device.memory_total));
}

std::string power_line(const Device& device) {
  if (!device.power_milliwatts) return "";
  const std::string now = fmt::format("{} W", (*device.power_milliwatts + 500) / 1000);
  if (!device.power_limit_milliwatts) return now;
  return tr_format("{} of {} W", now, (*device.power_limit_milliwatts + 500) / 1000);
}

/// " (outside gflow)", " (of job 3, which does not hold it)", "" for one of a job that holds it.
std::string foreign_text(const api::DeviceView& view, const DeviceProcess& process) {
  const auto foreign = std::ranges::find_if(view.foreign, [&process](const DeviceProcess& one) {
    return one.pid == process.pid && one.job == process.job;
  });
  if (foreign == view.foreign.end()) return "";
  return foreign->job ? tr_format(" (of job {}, which does not hold it)", foreign->job->value)
                      : tr(" (outside gflow)");
}

std::string line(std::string_view name, std::string_view value) {
  return value.empty() ? "" : fmt::format("  {}: {}\n", name, value);
}

/// What jobs that share the device leave to others: "0.5 of its compute, 12G of memory".
std::string left_line(const api::DeviceView& view) {
  if (!view.mode || *view.mode == GpuMode::Whole) return "";
  std::string out = *view.mode == GpuMode::TimeSlice
                        ? tr("a time slice")
                        : tr_format("{} of its compute", share_text(view.share_free));
  if (!view.memory_free) return out;
  return tr_format("{}, {} of memory", out, memory_text(std::max(*view.memory_free, Memory{})));
}

/// The plan of the turns: "job 5 50%, job 7 50% of the time (planned, not enforced)".
std::string time_slices_line(const api::DeviceView& view) {
  std::string out;
  for (const TimeSliceShare& slice : view.time_slices) {
    out += tr_format("{}job {} {}%",
                     out.empty() ? "" : ", ",
                     slice.job.value,
                     share_text(Share{slice.time.parts * 100}));
  }
  return out.empty() ? "" : tr_format("{} of the time (planned, not enforced)", out);
}

std::string readings(const api::DeviceView& view) {
  const Device& device = view.device;
  std::string out = line(tr("Free"), left_line(view));
  out += line(tr("Time slices"), time_slices_line(view));
  out += line(tr("Memory"), memory_line(device));
  if (device.utilization_percent) {
    out += line(tr("Utilization"), fmt::format("{}%", *device.utilization_percent));
  }
  if (device.temperature_celsius) {
    out += line(tr("Temperature"), fmt::format("{} C", *device.temperature_celsius));
  }
  out += line(tr("Power"), power_line(device));
  if (!device.trouble.empty() && device.usable) out += line(tr("Note"), printable(device.trouble));
  if (!device.processes.empty()) out += tr("  Processes:\n");
  for (const DeviceProcess& process : device.processes) {
    out += fmt::format("    {}{}\n", process_text(process), foreign_text(view, process));
  }
  return out;
}

Style style_of(const api::DeviceView& view) {
  if (view.available()) return Style::Green;
  if (view.has_jobs()) return Style::Plain;
  return view.device.usable ? Style::Yellow : Style::Red;
}

bool is_draining(const api::DeviceView& view) { return view.drained && view.has_jobs(); }

std::string gpu_list(const std::vector<int>& gpus) {
  if (gpus.empty()) return tr("no GPU");
  return fmt::format("GPU {}", fmt::join(gpus, ","));
}

std::string allocations(const api::MachineView& machine) {
  if (machine.running.empty()) return "";
  std::string out = tr("\nAllocations by job:\n");
  for (const api::JobView& job : machine.running) {
    const Request& request = job.spec.request;
    std::string held = machine.nodes.size() > 1 && !job.gpu_indices.empty()
                           ? "GPU " + printable(job.node_list)
                           : gpu_list(job.gpu_indices);
    if (request.gpus > 0 && request.mode != GpuMode::Whole) {
      held += fmt::format(" ({})", gpus_in_words(request));
    }
    if (request.cpus > 0)
      held +=
          tr_count(static_cast<std::uint64_t>(request.cpus), ", {} CPU", ", {} CPUs", request.cpus);
    if (request.memory.bytes > 0) held += tr_format(", {} memory", memory_text(request.memory));
    out += tr_format("  Job {} ({}, {}): {}\n",
                     job.id.value,
                     job_name_text(job.spec),
                     printable(job.spec.user.name),
                     held);
  }
  return out;
}

/// "GPU-5a... (GPU instance 2, compute instance 0)" of a MIG device.
std::string cut_from(const Device& device) {
  if (!device.mig) return "";
  return tr_format("{} (GPU instance {}, compute instance {})",
                   printable(device.mig->parent),
                   device.mig->gpu_instance,
                   device.mig->compute_instance);
}

std::string device_block(const api::DeviceView& view, const Painter& paint) {
  std::string out = fmt::format(
      "\n{}\n",
      paint(Style::Bold,
            fmt::format("GPU {}: {}", view.device.index, printable(view.device.model))));
  out += line("UUID", printable(view.device.uuid));
  out += line(tr("Cut from"), cut_from(view.device));
  out += line(tr("Status"), paint(style_of(view), device_status(view)));
  if (is_draining(view)) out += line(tr("Note"), drained_text(view.drained_reason));
  return out + readings(view);
}

std::string node_text(const api::NodeView& node, const Painter& paint) {
  if (node.devices.empty()) return "\n" + no_devices(node);
  std::string out;
  for (const api::DeviceView& view : node.devices) out += device_block(view, paint);
  if (!node.note.empty()) out += tr_format("\nNote: {}\n", printable(node.note));
  return out;
}

}  // namespace

std::string unhealthy_lines(const api::MachineView& machine, const Painter& paint) {
  std::string out;
  for (const api::UnhealthyNode& node : machine.unhealthy) {
    const std::string name =
        machine.nodes.size() > 1 ? tr_format("node {}: ", printable(node.node)) : "";
    out += tr_count(
        static_cast<std::uint64_t>(node.failures),
        "{}: {}{} ({} launch failed, {})\n",
        "{}: {}{} ({} launches failed, {})\n",
        paint(Style::Red, tr("Unhealthy")),
        name,
        printable(kept_text(node.reason)),
        node.failures,
        node.retry_at ? tr("will be retried soon") : tr("will be retried with the next job"));
  }
  return out;
}

std::string draining_lines(const api::MachineView& machine) {
  std::string out;
  for (const api::NodeView& node : machine.nodes) {
    for (const api::DeviceView& view : node.devices) {
      if (!is_draining(view) || view.drained_reason.empty()) continue;
      const std::string text = drained_text(view.drained_reason);
      const int gpu = view.device.index;
      out += machine.nodes.size() > 1
                 ? tr_format("GPU {} of node {}: {}\n", gpu, printable(node.name), text)
                 : fmt::format("GPU {}: {}\n", gpu, text);
    }
  }
  return out;
}

std::string mig_room_lines(const api::MachineView& machine) {
  std::string out;
  for (const api::NodeView& node : machine.nodes) {
    for (const api::MigRoomView& room : node.mig_room) {
      const std::string gpu =
          fmt::format("{} {}", printable(room.model_short), printable(room.gpu));
      if (room.drained) {
        out += fmt::format("{} {}\n", gpu, drained_text(room.drained_reason));
      } else if (!room.trouble.empty()) {
        out += tr_format("{} cannot be cut: {}\n", gpu, printable(room.trouble));
      } else if (room.profiles.empty()) {
        out += tr_format("{} has no room for one more slice\n", gpu);
      } else {
        out +=
            tr_format("{} has room for a slice of {}\n", gpu, printable(join(room.profiles, ", ")));
      }
    }
  }
  return out;
}

/// "GPU 3", "GPU-5ad1 (was GPU 3 of node n1)", "GPU-5ad1" of one that was cut.
std::string absent_gpu(const api::MachineView& machine,
                       const api::NodeView& node,
                       const Drain& drain) {
  if (!drain.gpu) return printable(drain.uuid);
  const std::string which = machine.nodes.size() > 1
                                ? tr_format("GPU {} of node {}", *drain.gpu, printable(node.name))
                                : fmt::format("GPU {}", *drain.gpu);
  return drain.uuid.empty() ? which : tr_format("{} (was {})", printable(drain.uuid), which);
}

std::string absent_drain_lines(const api::MachineView& machine) {
  std::string out;
  for (const api::NodeView& node : machine.nodes) {
    for (const Drain& drain : node.drained_absent) {
      const std::string gone = absent_gpu(machine, node, drain);
      out += drain.reason.empty()
                 ? tr_format("Drained and not present: {}\n", gone)
                 : tr_format("Drained and not present: {}: {}\n", gone, printable(drain.reason));
    }
  }
  return out;
}

std::string no_devices(const api::NodeView& node) {
  if (!node.mig_room.empty())
    return tr("No slice is made yet: a job that requests one has it made.\n");
  std::string out = tr("No GPUs");
  if (!node.note.empty()) out += ": " + tr(printable(node.note));
  return out + tr("\nJobs without --gpus still run.\n");
}

std::string node_title(const api::NodeView& node) {
  std::string out = tr_format("Node {}", printable(node.name));
  if (!node.removed.empty()) out += tr_format(": removed: {}", printable(node.removed));
  if (!node.unreachable.empty())
    out += tr_format(": does not answer: {}", printable(kept_text(node.unreachable)));
  if (node.drained) out += tr_format(": {}", drained_text(node.drained_reason));
  return out;
}

std::string process_text(const DeviceProcess& process) {
  std::string out = process.pid > 0 ? fmt::format("pid {}", process.pid) : tr("a process");
  if (!process.user.empty()) out += fmt::format(" ({})", printable(process.user));
  if (!process.name.empty()) out += " " + printable(process.name);
  if (process.memory) out += ", " + reading(*process.memory);
  return out;
}

std::string other_jobs_text(std::size_t count) {
  return tr_count(count, "{} job of others", "{} jobs of others", count);
}

namespace {

/// Of one that jobs have.
std::string jobs_status(const api::DeviceView& view) {
  if (view.jobs.empty()) return tr_format("In use by {}", other_jobs_text(view.other_jobs));
  std::vector<std::uint64_t> jobs;
  for (const JobId id : view.jobs) jobs.push_back(id.value);
  if (view.other_jobs > 0) {
    return tr_count(jobs.size(),
                    "In use by job {} and by {}",
                    "In use by jobs {} and by {}",
                    fmt::join(jobs, ", "),
                    other_jobs_text(view.other_jobs));
  }
  return tr_count(jobs.size(), "In use by job {}", "In use by jobs {}", fmt::join(jobs, ", "));
}

/// Of one that is used by what does not hold it.
std::string foreign_status(const api::DeviceView& view) {
  std::string who;
  std::vector<std::uint64_t> jobs;
  for (DeviceProcess process : view.foreign) {
    if (process.job) {
      if (std::ranges::find(jobs, process.job->value) == jobs.end())
        jobs.push_back(process.job->value);
      continue;
    }
    process.memory.reset();
    who += (who.empty() ? "" : ", ") + process_text(process);
  }
  std::string out = who.empty() ? "" : tr_format("In use outside gflow: {}", who);
  if (jobs.empty()) return out;
  if (!out.empty()) out += "; ";
  return out + tr_count(jobs.size(),
                        "In use by job {}, which does not hold it",
                        "In use by jobs {}, which do not hold it",
                        fmt::join(jobs, ", "));
}

}  // namespace

std::string device_status(const api::DeviceView& view) {
  if (view.has_jobs()) return jobs_status(view);
  switch (view.bar) {
    case DeviceBar::None:
      return tr("Available");
    case DeviceBar::Broken:
      return view.device.trouble.empty()
                 ? tr("Not usable")
                 : tr_format("Not usable: {}", printable(view.device.trouble));
    case DeviceBar::Drained:
      return view.drained_reason.empty() ? tr("Drained")
                                         : tr_format("Drained: {}", printable(view.drained_reason));
    case DeviceBar::InUse:
      break;
  }
  return foreign_status(view);
}

std::string machine_text(const api::MachineView& machine, const Painter& paint) {
  std::size_t devices = 0;
  std::ptrdiff_t available = 0;
  for (const api::NodeView& node : machine.nodes) {
    devices += node.devices.size();
    available += std::ranges::count_if(node.devices, &api::DeviceView::available);
  }
  std::string out = tr_format("Scheduler Status: {}\nTotal GPUs: {}\nAvailable GPUs: {}\n",
                              paint(Style::Green, tr("Running")),
                              devices,
                              available);
  out += unhealthy_lines(machine, paint);
  for (const api::NodeView& node : machine.nodes) {
    if (machine.nodes.size() > 1) {
      out += fmt::format("\n{}\n", paint(Style::Bold, node_title(node)));
    }
    out += node_text(node, paint);
  }
  const std::string absent = mig_room_lines(machine) + absent_drain_lines(machine);
  if (!absent.empty()) {
    out += "\n" + absent;
  }
  return out + allocations(machine);
}

std::string machine_brief(const api::MachineView& machine, const Painter& paint) {
  const std::string unhealthy = unhealthy_lines(machine, paint);
  const bool several = machine.nodes.size() > 1;
  std::vector<Column> columns = {
      {"GPU"}, {tr("MODEL")}, {tr("UTIL")}, {tr("MEMORY")}, {tr("STATUS")}};
  if (several) columns.insert(columns.begin(), {tr("NODE")});
  std::vector<Row> rows;
  for (const api::NodeView& node : machine.nodes) {
    for (const api::DeviceView& view : node.devices) {
      const Device& device = view.device;
      const std::string memory = memory_line(device);
      Row row = {
          {fmt::format("{}", device.index)},
          {printable(device.model)},
          {device.utilization_percent ? fmt::format("{}%", *device.utilization_percent) : "-"},
          {memory.empty() ? "-" : memory},
          {device_status(view), style_of(view)}};
      if (several) row.insert(row.begin(), {printable(node.name)});
      rows.push_back(std::move(row));
    }
  }
  const std::string absent = mig_room_lines(machine) + absent_drain_lines(machine);
  if (rows.empty()) {
    return unhealthy +
           (machine.nodes.empty() ? tr("No GPUs\n") : no_devices(machine.nodes.front())) + absent;
  }
  return unhealthy + table_text(columns, rows, Header::Shown, paint) + absent;
}

}  // namespace gflow::cli
