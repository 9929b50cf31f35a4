// SPDX-License-Identifier: Apache-2.0
#include "daemon/held_devices.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <variant>

#include "base/text.h"
#include "runner/attempt_files.h"

namespace gflow::daemon {
namespace {

using runner::AttemptFiles;

Device device_held(int index, const std::string& vendor, const std::string& uuid) {
  Device device;
  device.index = index;
  device.vendor = vendor;
  device.model = "GPU";
  device.uuid = uuid;
  if (uuid.starts_with("MIG-")) {
    device.model = "MIG device";
    device.mig = MigDevice{};  // of which GPU is not known
  }
  return device;
}

const GpuMove* move_of(const Job& job) {
  const auto* running = std::get_if<Running>(&job.state);
  return running != nullptr && running->move ? &*running->move : nullptr;
}

/// Only what is NVIDIA's moves.
Device device_moved_to(const AttemptFiles::MovedTo& there) {
  return device_held(there.gpu, "nvidia", there.uuid);
}

/// Where it was moved to last, in whole. One that cannot be read is none, and said in the log.
std::optional<AttemptFiles::MovedTo> moved_to(const AttemptFiles& files, JobId job) {
  auto there = files.moved_to();
  if (there) return std::move(*there);
  spdlog::warn(
      "whether job {} was moved is not known: {}", job.value, printable(there.error().message));
  return std::nullopt;
}

std::vector<Device> devices_of(const Job& job, const AttemptFiles& files) {
  if (const GpuMove* move = move_of(job)) {
    return {device_held(move->from, "nvidia", move->from_uuid),
            device_held(move->to, "nvidia", move->to_uuid)};
  }
  const std::vector<int>& gpus = attempt_of(job)->allocation.gpus;
  const auto moved = moved_to(files, job.id);
  if (moved && gpus == std::vector{moved->gpu}) return {device_moved_to(*moved)};
  const auto order = files.order();
  if (!order) {
    spdlog::warn("which GPUs job {} has is known by index alone: {}",
                 job.id.value,
                 printable(order.error().message));
  }
  std::vector<Device> held;
  if (!order || !*order) return held;
  for (const attempt::Grant& grant : (*order)->devices) {
    const int index = static_cast<int>(grant.index);
    const bool has_it = std::ranges::find(gpus, index) != gpus.end();
    if (has_it) held.push_back(device_held(index, grant.vendor, grant.uuid));
  }
  return held;
}

}  // namespace

std::vector<Device> held_devices(const engine::State& state,
                                 const std::string& attempts_dir,
                                 const std::string& node) {
  std::vector<Device> held;
  for (const Job* job : state.list({.statuses = kActive})) {
    const Attempt& attempt = *attempt_of(*job);
    if (attempt.allocation.node != node || attempt.allocation.gpus.empty()) continue;
    std::ranges::move(devices_of(*job, AttemptFiles(attempts_dir, job->id, attempt.number)),
                      std::back_inserter(held));
  }
  return held;
}

void take_over_moves(std::span<Job> jobs, const std::string& attempts_dir) {
  for (Job& job : jobs) {
    if (!is_active(job) || move_of(job) != nullptr) continue;
    const Attempt& known = *attempt_of(job);
    if (known.allocation.gpus.size() != 1) continue;
    const auto moved = moved_to(AttemptFiles(attempts_dir, job.id, known.number), job.id);
    if (!moved || known.allocation.gpus.front() == moved->gpu) continue;
    spdlog::info(
        "job {} was moved to GPU {}, which the database does not have", job.id.value, moved->gpu);
    const auto take = [&moved](Attempt& attempt) { attempt.allocation.gpus = {moved->gpu}; };
    if (auto* starting = std::get_if<Starting>(&job.state)) take(starting->attempt);
    if (auto* running = std::get_if<Running>(&job.state)) take(running->attempt);
  }
}

}  // namespace gflow::daemon
