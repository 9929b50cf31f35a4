// SPDX-License-Identifier: Apache-2.0
#include "kube/volumes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "kube/predicates.h"

namespace gflow::kube {
namespace {

constexpr const char* kConflict = "node(s) didn't match PersistentVolume's node affinity";
constexpr const char* kNoVolumes = "node(s) didn't find available persistent volumes to bind";
constexpr const char* kZoneConflict = "node(s) had no available volume zone";
constexpr const char* kOnePodOnly = "ReadWriteOncePod";
constexpr const char* kNodeName = "metadata.name";

constexpr std::array kZoneLabels = {"topology.kubernetes.io/zone",
                                    "topology.kubernetes.io/region",
                                    "failure-domain.beta.kubernetes.io/zone",
                                    "failure-domain.beta.kubernetes.io/region"};

/// Objects of a kind have their names one after the other: a uid that goes may be of one before.
template <typename Object>
bool drop(std::map<std::string, Object>& objects,
          std::map<std::string, std::string>& names,
          const std::string& uid) {
  const auto name = names.find(uid);
  if (name == names.end()) return false;
  const auto at = objects.find(name->second);
  names.erase(name);
  if (at == objects.end() || at->second.uid != uid) return false;
  objects.erase(at);
  return true;
}

/// Whether it is another one than was known.
template <typename Object>
bool keep(std::map<std::string, Object>& objects,
          std::map<std::string, std::string>& names,
          const std::string& name,
          Object object) {
  names[object.uid] = name;
  Object& known = objects[name];
  if (known == object) return false;
  known = std::move(object);
  return true;
}

std::string name_of(const VolumeClaim& claim) { return claim.name_space + "/" + claim.name; }

bool is_for_one_pod(const VolumeClaim& claim) {
  return std::ranges::find(claim.modes, kOnePodOnly) != claim.modes.end();
}

/// The zones that its labels say it is in; a node of no zone is not asked.
std::optional<Storage::Place> zones_of(const Volume& volume) {
  Term in;
  Term nowhere;
  for (const char* label : kZoneLabels) {
    nowhere.push_back({label, "DoesNotExist", {}});
    const auto at = volume.labels.find(label);
    if (at == volume.labels.end()) continue;
    Match zone{label, "In", {}};
    for (std::string_view rest = at->second; !rest.empty();) {  // "a__b" is in both
      const std::size_t end = rest.find("__");
      zone.values.emplace_back(rest.substr(0, end));
      rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 2);
    }
    in.push_back(std::move(zone));
  }
  if (in.empty()) return std::nullopt;
  return Storage::Place{{std::move(nowhere), std::move(in)}, kZoneConflict};
}

/// The claim is tied to it: its volume is being made there.
Storage::Place only(const std::string& node) {
  return {{{Match{kNodeName, "In", {node}, true}}}, kNoVolumes};
}

}  // namespace

std::string refusal_of(const Node& node, const Storage& storage) {
  if (!storage.trouble.empty()) return storage.trouble;
  for (const Storage::Place& place : storage.places) {
    if (!meets_any(node, place.terms)) return place.otherwise;
  }
  return {};
}

void Volumes::put(VolumeClaim claim) {
  std::string name = name_of(claim);
  has_news_ |= keep(claims_, claim_names_, name, std::move(claim));
}

void Volumes::claim_gone(const std::string& uid) { has_news_ |= drop(claims_, claim_names_, uid); }

void Volumes::put(Volume volume) {
  const std::string name = volume.name;
  has_news_ |= keep(volumes_, volume_names_, name, std::move(volume));
}

void Volumes::volume_gone(const std::string& uid) {
  has_news_ |= drop(volumes_, volume_names_, uid);
}

void Volumes::put(StorageClass one) {
  const std::string name = one.name;
  has_news_ |= keep(classes_, class_names_, name, std::move(one));
}

void Volumes::class_gone(const std::string& uid) { has_news_ |= drop(classes_, class_names_, uid); }

void Volumes::know(Known known) {
  has_news_ |= known_ != known;
  known_ = known;
}

void Volumes::use(const Pod& pod) {
  for (const PodClaim& one : pod.claims) {
    users_[pod.name_space + "/" + one.name].insert(pod.uid);
    const VolumeClaim* claim = claim_of(pod, one);
    has_news_ |= claim != nullptr && is_for_one_pod(*claim);
  }
}

void Volumes::release(const Pod& pod) {
  for (const PodClaim& one : pod.claims) {
    const std::string name = pod.name_space + "/" + one.name;
    const VolumeClaim* claim = claim_of(pod, one);
    has_news_ |= claim != nullptr && is_for_one_pod(*claim);
    if (const auto at = users_.find(name); at != users_.end()) {
      at->second.erase(pod.uid);
      if (at->second.empty()) users_.erase(at);
    }
    const auto tie = ties_.find(name);
    if (tie == ties_.end() || tie->second.pods.erase(pod.uid) == 0) continue;
    if (!tie->second.pods.empty()) continue;
    taken_.erase(tie->second.volume);
    ties_.erase(tie);
    has_news_ = true;
  }
}

void Volumes::reserve(const Pod& pod,
                      const std::string& node,
                      const std::vector<ClaimStep>& steps) {
  for (const ClaimStep& step : steps) {
    Tie& tie = ties_[pod.name_space + "/" + step.name];
    tie.node = node;
    tie.volume = step.volume;
    tie.pods.insert(pod.uid);
    if (!step.volume.empty()) taken_.insert(step.volume);
    has_news_ = true;
  }
}

const VolumeClaim* Volumes::claim_of(const Pod& pod, const PodClaim& claim) const {
  const auto at = claims_.find(pod.name_space + "/" + claim.name);
  return at == claims_.end() ? nullptr : &at->second;
}

Volumes::Open Volumes::open_of(const VolumeClaim& claim) const {
  const auto at = classes_.find(claim.storage_class);
  return {&claim, at == classes_.end() ? nullptr : &at->second};
}

/// For which a volume is being made for it; "": for none.
std::string Volumes::node_of(const VolumeClaim& claim) const {
  const auto tie = ties_.find(name_of(claim));
  if (tie != ties_.end() && tie->second.volume.empty()) return tie->second.node;
  return claim.selected_node;
}

bool Volumes::is_in_use(const VolumeClaim& claim, const std::string& pod) const {
  if (!is_for_one_pod(claim)) return false;
  const auto at = users_.find(name_of(claim));
  return at != users_.end() &&
         std::ranges::any_of(at->second, [&pod](const std::string& uid) { return uid != pod; });
}

/// That it is not there for the pod.
std::string Volumes::lack_of(const Pod& pod, const PodClaim& one) const {
  const VolumeClaim* claim = claim_of(pod, one);
  if (claim == nullptr) {
    const std::string named = fmt::format("persistentvolumeclaim \"{}\"", one.name);
    return one.is_own ? "waiting for ephemeral volume controller to create the " + named
                      : named + " not found";
  }
  if (one.is_own && claim->owner != pod.uid) {
    return fmt::format(
        "PVC \"{}\" was not created for pod \"{}\" (pod is not owner)", one.name, pod.full_name());
  }
  if (claim->is_deleted) {
    return fmt::format("persistentvolumeclaim \"{}\" is being deleted", one.name);
  }
  return {};
}

/// What else keeps a pod that has it from all nodes.
std::string Volumes::trouble_of(const VolumeClaim& claim, const std::string& pod) const {
  if (claim.is_lost || (claim.is_bound && !volumes_.contains(claim.volume))) {
    return fmt::format("persistentvolumeclaim \"{}\" bound to non-existent persistentvolume \"{}\"",
                       claim.name,
                       claim.volume);
  }
  if (is_in_use(claim, pod)) {
    return "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod "
           "access mode";
  }
  if (claim.is_bound) return {};
  const Open open = open_of(claim);
  if (open.of == nullptr && !claim.storage_class.empty()) {
    return fmt::format("storageclass.storage.k8s.io \"{}\" not found", claim.storage_class);
  }
  const bool waits = open.of != nullptr && open.of->waits && claim.volume.empty();
  return waits ? "" : "pod has unbound immediate PersistentVolumeClaims";
}

/// Whether a volume that nobody has yet could be that of the claim, on a node where it is.
bool Volumes::suits(const Volume& volume, const VolumeClaim& claim) const {
  if (volume.is_deleted || volume.is_block != claim.is_block || volume.size < claim.size) {
    return false;
  }
  if (!volume.claim.empty()) {
    return volume.claim == name_of(claim) &&
           (volume.claim_uid.empty() || volume.claim_uid == claim.uid);
  }
  return volume.is_available && !taken_.contains(volume.name) &&
         volume.storage_class == claim.storage_class &&
         std::ranges::includes(volume.modes, claim.modes) &&
         (!claim.selector || selects(claim.selector, volume.labels));
}

/// Smallest first; one that is set aside for it is the only one.
std::vector<const Volume*> Volumes::volumes_for(const VolumeClaim& claim) const {
  if (const auto tie = ties_.find(name_of(claim)); tie != ties_.end()) {
    const auto its = volumes_.find(tie->second.volume);
    if (its != volumes_.end()) return {&its->second};
  }
  std::vector<const Volume*> found;
  for (const auto& [name, volume] : volumes_) {
    if (!suits(volume, claim)) continue;
    if (!volume.claim.empty()) return {&volume};
    found.push_back(&volume);
  }
  std::ranges::stable_sort(found, {}, &Volume::size);
  return found;
}

/// Where some volume is that could be its own, or where one could be made.
void Volumes::add_places(const Open& open, std::vector<Storage::Place>& places) const {
  if (const std::string node = node_of(*open.claim); !node.empty()) {
    places.push_back(only(node));
    return;
  }
  Storage::Place place{{}, kNoVolumes};
  for (const Volume* volume : volumes_for(*open.claim)) {
    if (!volume->affinity) return;  // everywhere
    place.terms.insert(place.terms.end(), volume->affinity->begin(), volume->affinity->end());
  }
  if (open.of->makes_volumes) {
    if (open.of->topologies.empty()) return;
    const auto& topologies = open.of->topologies;
    place.terms.insert(place.terms.end(), topologies.begin(), topologies.end());
  }
  std::ranges::sort(place.terms);
  place.terms.erase(std::ranges::unique(place.terms).begin(), place.terms.end());
  places.push_back(std::move(place));
}

Storage Volumes::storage_of(const Pod& pod) const {
  if (pod.claims.empty() || known_ == Known::Ignored) return {};
  if (known_ == Known::Not) return {"its PersistentVolumeClaims cannot be read yet", {}};
  for (const PodClaim& one : pod.claims) {
    if (std::string lack = lack_of(pod, one); !lack.empty()) return {lack, {}};
  }
  Storage storage;
  std::vector<Storage::Place> zones;  // kube-scheduler asks for these last
  for (const PodClaim& one : pod.claims) {
    const VolumeClaim& claim = *claim_of(pod, one);
    if (std::string trouble = trouble_of(claim, pod.uid); !trouble.empty()) return {trouble, {}};
    if (!claim.is_bound) {
      add_places(open_of(claim), storage.places);
      continue;
    }
    const Volume& volume = volumes_.at(claim.volume);
    if (volume.affinity) storage.places.push_back({*volume.affinity, kConflict});
    if (auto its = zones_of(volume)) zones.push_back(*std::move(its));
  }
  storage.places.insert(storage.places.end(), zones.begin(), zones.end());
  return storage;
}

std::optional<std::vector<ClaimStep>> Volumes::plan(const Pod& pod, const Node& node) const {
  if (pod.claims.empty() || known_ == Known::Ignored) return std::vector<ClaimStep>{};
  if (!refusal_of(node, storage_of(pod)).empty()) return std::nullopt;
  std::vector<Open> open;
  for (const PodClaim& one : pod.claims) {
    const VolumeClaim& claim = *claim_of(pod, one);
    if (!claim.is_bound) open.push_back(open_of(claim));
  }
  std::ranges::stable_sort(open, {}, [](const Open& one) { return one.claim->size; });
  std::vector<ClaimStep> steps;
  for (const Open& one : open) {
    ClaimStep step{one.claim->name, one.claim->uid, {}, {}, {}};
    const auto is_had = [&](const Volume* volume) {
      const bool is_elsewhere = volume->affinity && !meets_any(node, *volume->affinity);
      return !is_elsewhere &&
             std::ranges::find(steps, volume->name, &ClaimStep::volume) == steps.end();
    };
    std::vector<const Volume*> volumes;
    if (node_of(*one.claim).empty()) volumes = volumes_for(*one.claim);
    const auto found = std::ranges::find_if(volumes, is_had);
    if (found != volumes.end()) {
      step.volume = (*found)->name;
      step.volume_uid = (*found)->uid;
      step.volume_version = (*found)->version;
    } else {
      const auto& topologies = one.of->topologies;
      const bool can_be_made =
          one.of->makes_volumes && (topologies.empty() || meets_any(node, topologies));
      if (!can_be_made) return std::nullopt;
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace gflow::kube
