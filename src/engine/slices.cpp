// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "engine/cutter.h"
#include "engine/step_internal.h"

/// Slices of MIG are made for a job that waits for one and for which none is free, the first in the
/// queue first, one at a time on a node; what gflow made and nobody uses is removed where its place
/// is needed. A slice is kept for whom it is made, until somebody ahead of him wants it.
namespace gflow::engine {

using std::chrono::seconds;

namespace {

constexpr seconds kFirstPause{5};
constexpr int kMostDoublings = 6;  // the longest pause is over 5 minutes

MonoTime next_try(MonoTime now, int failures) {
  return now + kFirstPause * (1 << std::clamp(failures - 1, 0, kMostDoublings));
}

}  // namespace

bool Index::is_ready(const Job& job) {
  if (!std::holds_alternative<Queued>(job.state)) return false;
  const auto lines = ready.find(shape_of(job));
  if (lines == ready.end()) return false;
  const auto line = lines->second.find(kind_of(job));
  return line != lines->second.end() && line->second.jobs.contains(key_of(job));
}

/// What a reading says of slices that are gflow's. One that is there no more is nobody's.
void Step::note_slices(const Machine& machine) {
  const auto is_there = [&machine](const MadeSlice& slice) {
    return !slice.uuid.empty() &&
           std::ranges::find(machine.devices, slice.uuid, &Device::uuid) != machine.devices.end();
  };
  // As long as a reading has the instance, be it without its device, its place is not free.
  const auto has_instance = [&machine](const MadeSlice& slice) {
    const auto gpu = std::ranges::find(machine.mig_gpus, slice.gpu, &MigGpu::uuid);
    const MigInstance known{slice.gpu_instance, slice.profile, slice.start, slice.size};
    return gpu != machine.mig_gpus.end() &&
           std::ranges::find(gpu->instances, known) != gpu->instances.end() &&
           std::ranges::none_of(machine.devices, [&slice](const Device& one) {
             return one.mig && one.mig->parent == slice.gpu &&
                    one.mig->gpu_instance == slice.gpu_instance;
           });
  };
  const auto is_told = [&machine](const MadeSlice& slice) {
    const auto gpu = std::ranges::find(machine.mig_gpus, slice.gpu, &MigGpu::uuid);
    if (gpu != machine.mig_gpus.end()) return gpu->unread.empty();
    const auto whole = std::ranges::find(machine.devices, slice.gpu, &Device::uuid);
    return whole != machine.devices.end() && whole->usable;  // MIG is not enabled any more
  };
  const auto is_gone = [&](SliceRecord& one) {
    const MadeSlice& slice = one.slice;
    if (slice.node != machine.name || slice.is_under_way()) return false;
    if (is_there(slice)) {
      if (slice.stage == SliceStage::Made && !std::exchange(one.is_seen, true)) decides_ = true;
      return false;
    }
    if (!is_told(slice)) return false;
    return slice.stage == SliceStage::Removed ? !has_instance(slice) : one.is_seen;
  };
  if (std::erase_if(index_.slices, is_gone) > 0) decides_ = slices_changed_ = true;
}

/// It is not tried again for a while, which doubles.
void Step::refuse_slice(const MadeSlice& slice, const std::string& why) {
  CutRefusal refusal{slice.node, slice.gpu, slice.profile, why};
  std::erase_if(index_.cut_refusals, [&refusal](const CutRefusal& one) {
    const bool is_same =
        one.node == refusal.node && one.gpu == refusal.gpu && one.profile == refusal.profile;
    if (is_same) refusal.failures = one.failures;
    return is_same;
  });
  refusal.until = next_try(index_.now.mono, ++refusal.failures);
  index_.cut_refusals.push_back(std::move(refusal));
}

void Step::take(const event::SliceChanged& event) {
  const auto at = std::ranges::find_if(index_.slices, [&event](const SliceRecord& one) {
    return one.slice.node == event.node && one.slice.gpu == event.gpu &&
           one.slice.start == event.start && one.slice.is_under_way();
  });
  if (at == index_.slices.end()) return;
  ++index_.revision;
  if (const auto* unclear = std::get_if<slice_outcome::Unclear>(&event.outcome)) {
    at->trouble = unclear->why;
    at->retry_at = next_try(index_.now.mono, ++at->failures);
    return;
  }
  slices_changed_ = true;
  MadeSlice& slice = at->slice;
  const bool makes = slice.stage == SliceStage::Making;
  at->failures = 0;
  at->trouble.clear();
  if (const auto* refused = std::get_if<slice_outcome::Refused>(&event.outcome)) {
    if (makes) {
      if (!slice.only_looks) refuse_slice(slice, refused->why);
      index_.slices.erase(at);
      // What was taken for it, as it is at the place, is somebody else's, and kept for nobody.
      if (const auto node = index_.nodes.find(event.node); node != index_.nodes.end()) {
        index_.put_node(node->second);
      }
      return;
    }
    slice.stage = SliceStage::Made;
    at->is_seen = true;
    at->trouble = refused->why;
    at->retry_at = next_try(index_.now.mono, 1);
  } else if (const auto* made = std::get_if<slice_outcome::Made>(&event.outcome)) {
    slice.stage = SliceStage::Made;
    slice.uuid = made->uuid;
    slice.gpu_instance = made->gpu_instance;
    at->since = index_.now.mono;
  } else {
    slice.stage = SliceStage::Removed;
    at->since = index_.now.mono;
  }
  const auto node = index_.nodes.find(event.node);
  if (node != index_.nodes.end()) note_slices(node->second.machine);
}

/// A slice is kept for a job that waits and may have it, and no longer: not for one whose user is
/// at a limit.
void Step::settle_for_whom(SliceRecord& one) {
  if (!one.slice.job) return;
  const Job* job = index_.find(*one.slice.job);
  const bool is_drained = drain_of_cut_gpu(index_.drains, one.slice.node, one.slice.gpu) != nullptr;
  const bool waits = job != nullptr && index_.is_ready(*job) && !index_.is_at_limit(*job) &&
                     index_.policy.cuts(one.slice.gpu);
  if (waits && !is_drained) return;
  one.slice.job.reset();
  slices_changed_ = true;
}

/// What was put off is due; and where one that was made is there still, that is what is told.
void Step::settle_what_is_due(SliceRecord& one) {
  const MonoTime now = index_.now.mono;
  if (one.retry_at && *one.retry_at <= now) {
    one.retry_at.reset();
    one.is_ordered = false;
    if (!one.slice.is_under_way()) one.trouble.clear();
  }
  if (one.slice.stage == SliceStage::Made && !one.is_seen && one.since + kLongestUnseen <= now) {
    one.slice.stage = SliceStage::Making;
    one.is_ordered = false;
    slices_changed_ = true;
  }
}

/// Before anybody is looked at.
void Step::settle_slices() {
  if (index_.slices.empty() && index_.cut_refusals.empty()) return;
  const MonoTime now = index_.now.mono;
  const auto is_his = [&](const SliceRecord& one) {  // who made another one of that number
    if (one.slice.stage != SliceStage::Removed || one.since + kLongestUnseen > now) return false;
    return device_of(index_, one.slice) == nullptr;
  };
  std::set<std::string> theirs;  // nodes
  const auto is_over = [&](const SliceRecord& one) {
    if (!is_his(one)) return false;
    theirs.insert(one.slice.node);
    return true;
  };
  if (std::erase_if(index_.slices, is_over) > 0) slices_changed_ = true;
  for (const std::string& name : theirs) {
    if (const auto at = index_.nodes.find(name); at != index_.nodes.end()) {
      index_.put_node(at->second);
    }
  }
  for (SliceRecord& one : index_.slices) {
    settle_for_whom(one);
    settle_what_is_due(one);
  }
  constexpr seconds kRemembered{600};  // so that the next pause is longer
  std::erase_if(index_.cut_refusals,
                [&](const CutRefusal& one) { return one.until + kRemembered <= now; });
  index_.put_nodes_with_slices();
}

/// Whether somebody may start who could not.
bool Step::cut_slices() {
  if (index_.policy.cut_gpus.empty() || index_.ready.empty()) return false;
  settle_slices();
  index_.expect_anew();
  Candidates candidates(index_);
  for (const Front& front : index_.fronts.all()) {
    const Shape& shape = index_.fronts.shape(front.shape);
    const bool is_one = shape.gang == kNoGang && may_be_cut_for(index_.ledger.demand(shape.demand));
    if (is_one) candidates.add(front);
  }
  candidates.put_in_order();
  Cutter cutter(index_);
  Cutter::Found found = Cutter::Found::Nothing;
  while (!candidates.empty() && found != Cutter::Found::MayStart) {
    const Candidate first = candidates.first();
    candidates.drop_line();
    if (index_.is_at_limit(*index_.find(first.job()))) continue;
    found = cutter.look_for(first);
    if (found != Cutter::Found::Nothing || cutter.has_kept()) slices_changed_ = true;
  }
  index_.put_nodes_with_slices();
  return found == Cutter::Found::MayStart;
}

/// What is under way and was not ordered by this daemon yet is: safe to repeat.
void Step::order_slices() {
  for (SliceRecord& one : index_.slices) {
    if (!one.slice.is_under_way() || one.is_ordered || one.retry_at) continue;
    one.is_ordered = true;
    // What was begun for one that is gone, or before the setting was turned off, is not begun
    // again.
    one.slice.only_looks =
        one.slice.again && one.slice.stage == SliceStage::Making && !one.slice.job;
    effects_.emplace_back(effect::CutSlice{one.slice});
    one.slice.again = true;
  }
  if (!slices_changed_) return;
  ++index_.revision;
  effects_.emplace_back(effect::SaveSlices{});
}

}  // namespace gflow::engine
