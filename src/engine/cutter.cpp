// SPDX-License-Identifier: Apache-2.0
#include "engine/cutter.h"

#include <algorithm>
#include <set>

#include "core/catalogue.h"

namespace gflow::engine {

using placement::Cuttable;
using placement::NodeIndex;

namespace {

/// Whether it is there and nobody has it or uses it, whoever it is kept for.
bool is_idle(const Index& index, const SliceRecord& record) {
  const MadeSlice& slice = record.slice;
  const Device* device = device_of(index, slice);
  const auto node = index.ledger.find(slice.node);
  if (slice.stage != SliceStage::Made || !record.is_seen || device == nullptr || !node)
    return false;
  const Drain* drain = drain_of_device(index.drains, slice.node, *device);
  return bar_of(*device, drain, OtherUse::Barred) == DeviceBar::None && device->uses.empty() &&
         !index.holders.contains({*node, device->index});
}

/// Whether it was made, or removed, so long ago that readings should tell of that.
bool is_late(const Index& index, const SliceRecord& record) {
  return record.since + kLongestUnseen <= index.now.mono;
}

/// Profiles by how often they were asked for, and how many wait for them.
std::vector<placement::SliceWish> wishes_of(const Index& index) {
  std::map<std::string, double> weights;
  const auto add = [&weights](const placement::Demand& demand, std::int64_t jobs) {
    if (!may_be_cut_for(demand)) return;
    for (const std::string& model : demand.models) {
      if (!catalogue::is_slice(model)) continue;
      weights[std::string(catalogue::profile_of(model))] += static_cast<double>(jobs * demand.gpus);
    }
  };
  for (const placement::DemandClass& kind : index.placer->profile().classes) {
    add(kind.demand, kind.count);
  }
  for (const Front& front : index.fronts.all()) {
    const auto& demand = index.ledger.demand(index.fronts.shape(front.shape).demand);
    add(demand, static_cast<std::int64_t>(front.line->jobs.size()));
  }
  std::vector<placement::SliceWish> wishes;
  for (const auto& [profile, weight] : weights) wishes.push_back({profile, weight});
  return wishes;
}

}  // namespace

Cutter::WantedNumber Cutter::number_of(const Waiting& waits) {
  const placement::Demand& demand = index_.ledger.demand(waits.demand);
  const Wanted wanted{demand.vendor, demand.models, demand.gpu_memory};
  return wanted_.try_emplace(wanted, wanted_.size()).first->second;
}

const std::vector<const MigGpu*>& Cutter::gpus_of(NodeIndex node) {
  const auto known = gpus_.find(node);
  return known != gpus_.end() ? known->second : gpus_[node] = cut_gpus(index_, node);
}

const std::vector<std::string>& Cutter::profiles_of(const Waiting& waits, const MigGpu& gpu) {
  const std::pair key(number_of(waits), &gpu);
  const auto known = profiles_.find(key);
  if (known != profiles_.end()) return known->second;
  return profiles_[key] = profiles_for(index_.ledger.demand(waits.demand), gpu);
}

const std::vector<placement::SliceWish>& Cutter::wishes() {
  if (!wishes_) wishes_ = wishes_of(index_);
  return *wishes_;
}

/// CPUs and memory, and it is a node for it.
bool Cutter::has_all_else(const Waiting& waits, NodeIndex node) const {
  if (!index_.ledger.is_there(node)) return false;
  const placement::Shortfall lacks = index_.ledger.shortfall(waits.demand, node);
  return !lacks.closed && !lacks.selector && lacks.milli_cpus == 0 && lacks.memory == Memory{};
}

int Cutter::free_for(const Waiting& waits, NodeIndex node) const {
  const auto& devices = index_.ledger.state(node).devices;
  return static_cast<int>(std::ranges::count_if(devices, [&](const auto& device) {
    return index_.ledger.device_fits(waits.demand, device);
  }));
}

/// Slices that are made for it and that no reading has yet.
int Cutter::coming_for(const Waiting& waits, NodeIndex node) const {
  return static_cast<int>(std::ranges::count_if(index_.slices, [&](const SliceRecord& one) {
    const MadeSlice& slice = one.slice;
    const bool comes =
        slice.stage == SliceStage::Making || (slice.stage == SliceStage::Made && !one.is_seen);
    return comes && slice.job == waits.job.id && slice.node == index_.ledger.node(node).name;
  }));
}

/// Who makes slices there has something to do. Of what it did and does not know, and of what
/// readings do not tell for long, one GPU has to wait.
bool Cutter::is_busy(NodeIndex node) const {
  return std::ranges::any_of(index_.slices, [&](const SliceRecord& one) {
    const bool is_open = one.slice.is_under_way() || (is_unseen(one) && !is_late(index_, one));
    return is_open && one.trouble.empty() && one.slice.node == index_.ledger.node(node).name;
  });
}

/// What became of an order for the GPU is not known, or a slice of it that was removed is in
/// readings for long.
bool Cutter::is_stuck(NodeIndex node, const MigGpu& gpu) const {
  return std::ranges::any_of(index_.slices, [&](const SliceRecord& one) {
    const bool is_open = one.slice.is_under_way() && !one.trouble.empty();
    const bool is_left = one.slice.stage == SliceStage::Removed && is_late(index_, one);
    return (is_open || is_left) && one.slice.gpu == gpu.uuid &&
           one.slice.node == index_.ledger.node(node).name;
  });
}

/// It is kept for nobody, for this one, or for one behind it.
bool Cutter::may_take(const Waiting& waits, const MadeSlice& slice) const {
  if (!slice.job || *slice.job == waits.job.id) return true;
  const Job* other = index_.find(*slice.job);
  return other == nullptr || waits.place < index_.place_of(*other);
}

bool Cutter::take_kept(const Waiting& waits, NodeIndex node, int lacks) {
  const std::string& name = index_.ledger.node(node).name;
  std::vector<SliceRecord*> found;
  for (SliceRecord& one : index_.slices) {
    if (!one.slice.job || *one.slice.job == waits.job.id || one.slice.node != name) continue;
    if (!may_take(waits, one.slice) || !is_idle(index_, one)) continue;
    const int gpu = device_of(index_, one.slice)->index;
    placement::DeviceState device =
        index_.ledger.state(node).devices[static_cast<std::size_t>(gpu)];
    device.kept_for = placement::kForAnyDemand;
    if (index_.ledger.device_fits(waits.demand, device)) found.push_back(&one);
  }
  if (std::ssize(found) < lacks) return false;
  for (SliceRecord* one : found) {
    if (lacks-- > 0) one->slice.job = waits.job.id;
  }
  has_kept_ = true;
  return true;
}

SliceRecord* Cutter::record_of(NodeIndex node, const MigGpu& gpu, int start) const {
  const auto at = std::ranges::find_if(index_.slices, [&](const SliceRecord& one) {
    return one.slice.node == index_.ledger.node(node).name && one.slice.gpu == gpu.uuid &&
           one.slice.start == start;
  });
  return at == index_.slices.end() ? nullptr : &*at;
}

bool Cutter::was_refused(const Waiting& waits, NodeIndex node, const MigGpu& gpu) {
  if (index_.cut_refusals.empty()) return false;
  const auto& profiles = profiles_of(waits, gpu);
  return std::ranges::any_of(index_.cut_refusals, [&](const CutRefusal& one) {
    return one.node == index_.ledger.node(node).name && one.gpu == gpu.uuid &&
           index_.now.mono < one.until &&
           std::ranges::find(profiles, one.profile) != profiles.end();
  });
}

std::vector<Cuttable> Cutter::cuttable(const Waiting& waits, NodeIndex node) {
  std::vector<Cuttable> found;
  for (const MigGpu* gpu : gpus_of(node)) {
    if (was_refused(waits, node, *gpu) || is_stuck(node, *gpu)) continue;
    Cuttable& one = found.emplace_back(Cuttable{.gpu = gpu});
    const auto kept = places_.find({node, gpu->uuid});
    if (kept != places_.end()) one.barred = kept->second;
    const auto& wanted = profiles_of(waits, *gpu);
    for (const MigInstance& instance : gpu->instances) {
      const SliceRecord* record = record_of(node, *gpu, instance.start);
      // It has those that are idle, and would have the same again.
      const bool is_wanted = std::ranges::find(wanted, instance.profile) != wanted.end();
      one.removable.push_back(record != nullptr && record->slice.profile == instance.profile &&
                              is_idle(index_, *record) && !record->retry_at && !is_wanted &&
                              may_take(waits, record->slice));
    }
  }
  return found;
}

std::vector<std::string> Cutter::profiles(const Waiting& waits, NodeIndex node) {
  std::vector<std::string> all;
  for (const MigGpu* gpu : gpus_of(node)) {
    for (const std::string& one : profiles_of(waits, *gpu)) {
      if (std::ranges::find(all, one) == all.end()) all.push_back(one);
    }
  }
  return all;
}

void Cutter::make(const Waiting& waits,
                  const MigGpu& gpu,
                  const placement::Cut& cut,
                  NodeIndex node) {
  index_.slices.push_back({.slice = {.node = index_.ledger.node(node).name,
                                     .gpu = gpu.uuid,
                                     .profile = cut.kind.profile,
                                     .start = cut.start,
                                     .size = cut.kind.size,
                                     .stage = SliceStage::Making,
                                     .job = waits.job.id}});
}

void Cutter::remove(const MadeSlice& slice) {
  const auto at = std::ranges::find(index_.slices, slice, &SliceRecord::slice);
  at->slice.stage = SliceStage::Removing;
  at->slice.job.reset();
  at->slice.again = false;
  at->is_ordered = false;
  at->failures = 0;
}

/// All that it lacks there, or nothing: what is decided now is the first of it.
Cutter::Found Cutter::cut_on(const Waiting& waits, NodeIndex node, int lacks) {
  std::vector<Cuttable> gpus = cuttable(waits, node);
  const std::vector<std::string> wanted = profiles(waits, node);
  if (!placement::has_place(gpus, wanted)) return Found::Nothing;
  const auto first = choose_cut(gpus, wanted, wishes());
  std::vector<MigGpu> then;  // as they would be after each
  for (const Cuttable& one : gpus) then.push_back(*one.gpu);
  const MigGpu& chosen = *gpus[first->gpu].gpu;
  for (std::size_t i = 0; i < gpus.size(); ++i) gpus[i].gpu = &then[i];
  auto next = first;
  for (int made = 1; made < lacks; ++made) {
    MigGpu& on = then[next->gpu];
    std::vector<bool>& removable = gpus[next->gpu].removable;
    for (auto gone = next->removed.rbegin(); gone != next->removed.rend(); ++gone) {
      const auto at = static_cast<std::ptrdiff_t>(*gone);
      on.instances.erase(on.instances.begin() + at);
      removable.erase(removable.begin() + at);
    }
    on.instances.push_back({0, next->kind.profile, next->start, next->kind.size});
    removable.push_back(false);
    next = choose_cut(gpus, wanted, wishes());
    if (!next) return Found::Nothing;
  }
  if (first->removed.empty()) {
    make(waits, chosen, *first, node);
  } else {
    const MigInstance& instance = chosen.instances[first->removed.front()];
    remove(record_of(node, chosen, instance.start)->slice);
  }
  return Found::Changed;
}

/// A place of a GPU on which there is nothing that is not gflow's. Nothing if there is, and nothing
/// of one in which a slice is made for it.
std::optional<Cutter::Place> Cutter::place_at(const Waiting& waits,
                                              NodeIndex node,
                                              const MigGpu& gpu,
                                              MigSlots slots) const {
  Place place{.free_at = index_.now.mono, .gpu = &gpu, .slots = slots};
  const bool is_its = std::ranges::any_of(index_.slices, [&](const SliceRecord& one) {
    const bool comes = one.slice.stage == SliceStage::Making || is_unseen(one);
    return comes && one.slice.gpu == gpu.uuid && (one.slice.slots() & slots) != 0 &&
           one.slice.job == waits.job.id;
  });
  if (is_its) return std::nullopt;
  for (const MigInstance& instance : gpu.instances) {
    if ((instance.slots() & slots) == 0) continue;
    SliceRecord* record = record_of(node, gpu, instance.start);
    if (record == nullptr || record->slice.profile != instance.profile) return std::nullopt;
    place.there.push_back(record);
    const Device* device = device_of(index_, record->slice);
    if (device == nullptr) continue;
    const auto holders = index_.holders.find({node, device->index});
    if (holders == index_.holders.end()) continue;
    for (const JobId id : holders->second) {
      place.free_at = std::max(place.free_at, index_.expected_end(*index_.find(id)));
    }
  }
  return place;
}

/// Those that are free first first.
std::vector<Cutter::Place> Cutter::places_on(const Waiting& waits, NodeIndex node) {
  std::vector<Place> places;
  for (const MigGpu* gpu : gpus_of(node)) {
    if (is_stuck(node, *gpu)) continue;
    for (const std::string& profile : profiles_of(waits, *gpu)) {
      const MigKind& kind = *kind_of(*gpu, profile);
      for (const int start : kind.starts) {
        auto place = place_at(waits, node, *gpu, mig_slots(start, kind.size));
        if (!place) continue;
        place->profile = profile;
        places.push_back(*std::move(place));
      }
    }
  }
  std::ranges::stable_sort(places, {}, &Place::free_at);
  return places;
}

/// Without slices of others that are free for it, and those that are made for it.
int Cutter::lacks_places(const Waiting& waits, NodeIndex node) const {
  const std::string& name = index_.ledger.node(node).name;
  const auto& devices = index_.ledger.state(node).devices;
  const auto free =
      std::ranges::count_if(index_.nodes.at(name).machine.devices, [&](const Device& device) {
        return index_.ledger.device_fits(waits.demand,
                                         devices[static_cast<std::size_t>(device.index)]) &&
               slice_of(index_, name, device) == nullptr;
      });
  return index_.ledger.demand(waits.demand).gpus - static_cast<int>(free) - coming_for(waits, node);
}

/// Of CPUs and memory, what the node has counts, whoever has it now.
bool Cutter::could_have_all_else(const Waiting& waits, NodeIndex node) const {
  if (!index_.ledger.is_there(node)) return false;
  const placement::Demand& demand = index_.ledger.demand(waits.demand);
  const placement::Node& facts = index_.ledger.node(node);
  const placement::Shortfall lacks = index_.ledger.shortfall(waits.demand, node);
  return !lacks.closed && !lacks.selector && facts.milli_cpus >= demand.milli_cpus &&
         facts.memory >= demand.memory;
}

/// As many as it lacks slices there, and none of them within another; empty if there are not so
/// many, or it lacks none.
std::optional<Cutter::Places> Cutter::first_places_on(const Waiting& waits, NodeIndex node) {
  const int needs = lacks_places(waits, node);
  if (needs <= 0) return std::nullopt;
  Places found{node};
  for (Place& place : places_on(waits, node)) {
    const auto is_with = [&](const Place& one) { return one.gpu == place.gpu; };
    const bool is_within = std::ranges::any_of(found.all, [&](const Place& one) {
      return is_with(one) && (one.slots & place.slots) != 0;
    });
    const auto alike = std::ranges::count_if(
        found.all, [&](const Place& one) { return is_with(one) && one.profile == place.profile; });
    if (is_within || alike >= kind_of(*place.gpu, place.profile)->most) continue;
    found.all.push_back(std::move(place));
    if (std::ssize(found.all) == needs) return found;
  }
  return std::nullopt;
}

/// On the node where they are all free first.
std::optional<Cutter::Places> Cutter::first_places(const Waiting& waits) {
  std::optional<Places> best;
  for (NodeIndex node = 0; node < index_.ledger.size(); ++node) {
    if (gpus_of(node).empty() || !could_have_all_else(waits, node)) continue;
    auto found = first_places_on(waits, node);
    if (!found) continue;
    if (!best || found->all.back().free_at < best->all.back().free_at) best = std::move(found);
  }
  return best;
}

/// One that has waited long, and for which there is no room, has the places kept that are free
/// first: whoever is on them may go on, and nobody behind it comes after.
void Cutter::keep_places(const Waiting& waits) {
  if (!places_.empty() || index_.is_patient(waits.job)) return;
  const auto best = first_places(waits);
  if (!best) return;
  std::set<const SliceRecord*> there;
  for (const Place& place : best->all) {
    places_[{best->node, place.gpu->uuid}] |= place.slots;
    there.insert(place.there.begin(), place.there.end());
  }
  for (SliceRecord& one : index_.slices) {
    if (one.slice.stage != SliceStage::Made || !may_take(waits, one.slice)) continue;
    const bool is_there = there.contains(&one);
    const bool is_kept = one.slice.job == waits.job.id;
    // One that was made for it and that no reading has yet stays its own.
    if (is_there == is_kept || is_unseen(one)) continue;
    has_kept_ = true;
    one.slice.job = is_there ? std::optional(waits.job.id) : std::nullopt;
  }
}

Cutter::Found Cutter::look_for(const Candidate& first) {
  const Job& job = *index_.find(first.job());
  const Waiting waits{job, first.place, index_.fronts.shape(first.shape).demand};
  const int wanted = index_.ledger.demand(waits.demand).gpus;
  for (NodeIndex node = 0; node < index_.ledger.size(); ++node) {
    if (!has_all_else(waits, node)) continue;
    const int coming = coming_for(waits, node);
    const int lacks = wanted - free_for(waits, node) - coming;
    if (lacks <= 0) return Found::Nothing;
    if (coming == 0 && take_kept(waits, node, lacks)) return Found::MayStart;
    if (is_busy(node) || gpus_of(node).empty()) continue;
    const auto [none, is_first] = no_room_.try_emplace({number_of(waits), node}, lacks);
    if (!is_first && lacks >= none->second) continue;
    const Found found = cut_on(waits, node, lacks);
    if (found != Found::Nothing) {
      no_room_.erase(none);
      return found;
    }
    none->second = lacks;
  }
  keep_places(waits);
  return Found::Nothing;
}

}  // namespace gflow::engine
