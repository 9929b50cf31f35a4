// SPDX-License-Identifier: Apache-2.0
#include "engine/backfill.h"

#include <algorithm>

namespace gflow::engine {
namespace {

/// What is left of `have` after `need`, never below nothing.
Amounts beyond(const Amounts& have, const Amounts& need) {
  return {std::max(0, have.gpus - need.gpus),
          std::max(0, have.cpus - need.cpus),
          std::max(Memory{}, have.memory - need.memory)};
}

/// What an active job gives back when it ends; devices others use stay unusable.
Amounts given_back(const Index& index, const Job& job) {
  Amounts amounts = amounts_of(job.spec.request);
  for (const int gpu : attempt_of(job)->allocation.gpus) {
    const auto& devices = index.machine.devices;
    const auto at = std::ranges::find(devices, gpu, &Device::index);
    if (at == devices.end() || !at->usable) --amounts.gpus;
  }
  return amounts;
}

}  // namespace

Reservation reserve(const Index& index, JobId head) {
  Reservation kept;
  kept.needs = amounts_of(index.find(head)->spec.request);
  kept.missing = beyond(kept.needs, index.free());
  kept.head.job = head;
  const bool same = index.head && index.head->job == head;
  kept.head.since = same ? index.head->since : index.now.mono;

  Amounts free = index.free();
  for (const auto& [end, id] : index.ends) {
    free += given_back(index, *index.find(id));
    if (!free.covers(kept.needs)) continue;
    kept.head.start = std::max(end, index.now.mono);
    kept.spare = beyond(free, kept.needs);
    return kept;
  }
  // Its start cannot be proven: spare is only what it does not wait for.
  kept.spare = beyond(index.free(), kept.needs);
  if (kept.missing.gpus > 0) kept.spare.gpus = 0;
  if (kept.missing.cpus > 0) kept.spare.cpus = 0;
  if (kept.missing.memory > Memory{}) kept.spare.memory = Memory{};
  return kept;
}

Passage Reservation::passage(const Index& index, const Shape& shape) const {
  const bool ends = shape.bound > std::chrono::seconds::zero();
  if (head.start && ends && index.now.mono + shape.bound <= *head.start) return Passage::InTime;
  if (spare.covers(amounts_of(shape))) return Passage::FromSpare;
  const bool patient = index.now.mono - head.since <= index.policy.backfill_patience;
  return !head.start && patient ? Passage::Unproven : Passage::Blocked;
}

void Reservation::take_spare(const Amounts& taken) { spare = beyond(spare, taken); }

}  // namespace gflow::engine
