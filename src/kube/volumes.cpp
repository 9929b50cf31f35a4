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

/// Labels of nodes and volumes, and those that old ones have in their place.
struct ZoneLabel {
  const char* label;
  const char* old;
};
constexpr std::array kZoneLabels = {
    ZoneLabel{"topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"},
    ZoneLabel{"topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"}};

/// The name that is free now. Objects of a kind have their names one after the other: a uid that
/// goes may be of one before.
template <typename Object>
std::optional<std::string> drop(std::map<std::string, Object>& objects,
                                std::map<std::string, std::string>& names,
                                const std::string& uid) {
  const auto at = names.find(uid);
  if (at == names.end()) return std::nullopt;
  std::string name = std::move(at->second);
  names.erase(at);
  const auto object = objects.find(name);
  if (object == objects.end() || object->second.uid != uid) return std::nullopt;
  objects.erase(object);
  return name;
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

std::vector<std::string> zones_in(std::string_view label) {
  std::vector<std::string> zones;
  while (!label.empty()) {  // "a__b" is in both
    const std::size_t end = label.find("__");
    zones.emplace_back(label.substr(0, end));
    label = end == std::string_view::npos ? std::string_view() : label.substr(end + 2);
  }
  std::ranges::sort(zones);
  return zones;
}

/// The zones that its labels say it is in, a place for each; a node of no zone is not asked.
void add_zones(const Volume& volume, std::vector<Storage::Place>& places) {
  Term of_none;
  for (const auto& [label, old] : kZoneLabels) {
    of_none.push_back({label, "DoesNotExist", {}});
    of_none.push_back({old, "DoesNotExist", {}});
  }
  const auto add = [&](const char* label, std::vector<Term> terms) {
    const auto at = volume.labels.find(label);
    if (at == volume.labels.end()) return;
    for (Term& term : terms) term.back().values = zones_in(at->second);
    terms.push_back(of_none);
    places.push_back({Shared(std::move(terms)), kZoneConflict});
  };
  for (const auto& [label, old] : kZoneLabels) {
    add(label, {{{label, "In", {}}}});
    add(old, {{{old, "In", {}}}, {{old, "DoesNotExist", {}}, {label, "In", {}}}});
  }
}

/// The claim is tied to it: its volume is being made there.
std::vector<Term> only(const std::string& node) { return {{Match{kNodeName, "In", {node}, true}}}; }

bool is_there(const Node& node, const Storage::Where& where) {
  return !where || meets_any(node, *where);
}

/// Terms of one condition on the same label are one term.
std::vector<Term> joined(const std::vector<Storage::Choice>& choices) {
  std::vector<Term> terms;
  std::map<std::pair<std::string, bool>, std::set<std::string>> values;
  for (const Storage::Choice& choice : choices) {
    for (const Term& term : *choice.where) {
      if (term.size() != 1 || term.front().op != "In") {
        terms.push_back(term);
        continue;
      }
      const Match& match = term.front();
      values[{match.key, match.is_field}].insert(match.values.begin(), match.values.end());
    }
  }
  for (const auto& [of, its] : values) {
    terms.push_back({Match{of.first, "In", {its.begin(), its.end()}, of.second}});
  }
  std::ranges::sort(terms);
  terms.erase(std::ranges::unique(terms).begin(), terms.end());
  return terms;
}

Storage::Options options_with(std::vector<Storage::Choice> choices) {
  const bool is_everywhere =
      std::ranges::any_of(choices, [](const Storage::Choice& choice) { return !choice.where; });
  std::optional<Storage::Place> place;
  if (!is_everywhere) place = {Shared(joined(choices)), kNoVolumes};
  return {Shared(std::move(choices)), std::move(place)};
}

/// These, or one is made where none of them is.
Storage::Options options_with(const std::vector<const Volume*>& volumes, const StorageClass& of) {
  std::vector<Storage::Choice> choices;
  for (const Volume* volume : volumes) choices.push_back({volume->name, volume->affinity});
  if (of.makes_volumes) {
    choices.push_back({"", of.topologies.empty() ? Storage::Where() : of.topologies});
  }
  return options_with(std::move(choices));
}

/// A choice for each claim, none with the volume of another; empty: there is not enough.
std::optional<std::vector<const Storage::Choice*>> choose(
    const Node& node, const std::vector<Storage::Choices>& claims) {
  std::vector<const Storage::Choice*> chosen;
  for (const Storage::Choices& choices : claims) {
    const auto is_had = [&](const Storage::Choice& choice) {
      return !choice.volume.empty() &&
             std::ranges::find(chosen, choice.volume, &Storage::Choice::volume) != chosen.end();
    };
    const auto found = std::ranges::find_if(*choices, [&](const Storage::Choice& choice) {
      return is_there(node, choice.where) && !is_had(choice);
    });
    if (found == (*choices).end()) return std::nullopt;
    chosen.push_back(&*found);
  }
  return chosen;
}

/// A volume as large as the claim says, and of its ways.
bool is_enough(const Volume& volume, const VolumeClaim& claim) {
  return !volume.is_deleted && volume.is_block == claim.is_block && volume.size >= claim.size &&
         volume.attributes_class == claim.attributes_class;
}

/// That of the first place that the node is not; "" if it is all of them.
std::string refusal_of(const Node& node, const std::vector<Storage::Place>& places) {
  const auto not_there = std::ranges::find_if(
      places, [&node](const Storage::Place& place) { return !meets_any(node, *place.terms); });
  return not_there == places.end() ? "" : not_there->otherwise;
}

}  // namespace

std::string refusal_of(const Node& node, const Storage& storage) {
  if (!storage.trouble.empty()) return storage.trouble;
  if (std::string refusal = refusal_of(node, storage.places); !refusal.empty()) return refusal;
  if (!storage.claims.empty() && !choose(node, storage.claims)) return kNoVolumes;
  return refusal_of(node, storage.zones);
}

void Volumes::put(VolumeClaim claim) {
  std::string name = name_of(claim);
  if (!keep(claims_, claim_names_, name, std::move(claim))) return;
  note_node(claims_.at(name));
  news_.claims.insert(std::move(name));
}

/// That it is not named yet, and that it was taken back, are told apart.
void Volumes::note_node(const VolumeClaim& claim) {
  const auto tie = ties_.find(name_of(claim));
  if (tie != ties_.end() && claim.selected_node == tie->second.node) tie->second.is_told = true;
}

void Volumes::claim_gone(const std::string& uid) {
  const auto name = drop(claims_, claim_names_, uid);
  if (name) news_.claims.insert(*name);
}

/// What changes with every write of it is no news.
void Volumes::put(Volume volume) {
  const auto known = volumes_.find(volume.name);
  if (known != volumes_.end()) {
    known->second.version = volume.version;
    if (known->second == volume) return;
    volume_names_.erase(known->second.uid);
    index(known->second, false);
  }
  volume_names_[volume.uid] = volume.name;
  Volume& kept = volumes_[volume.name];
  kept = std::move(volume);
  index(kept, true);
}

void Volumes::volume_gone(const std::string& uid) {
  const auto name = volume_names_.find(uid);
  if (name == volume_names_.end()) return;
  const auto at = volumes_.find(name->second);
  index(at->second, false);
  volume_names_.erase(name);
  volumes_.erase(at);
}

/// One that is there, or is not any more.
void Volumes::index(const Volume& volume, bool is_there) {
  const bool is_aside = !volume.claim.empty();
  auto& by = is_aside ? aside_ : free_;
  const std::string& key = is_aside ? volume.claim : volume.storage_class;
  auto& names = by[key];
  if (is_there) {
    names.insert(volume.name);
  } else {
    names.erase(volume.name);
  }
  if (names.empty()) by.erase(key);
  news_.volumes.insert(volume.name);
  if (is_aside) {
    news_.claims.insert(volume.claim);
  } else if (volume.is_available && !taken_.contains(volume.name)) {
    tell_change_of(volume.storage_class);
  }
}

void Volumes::tell_change_of(const std::string& storage_class) {
  news_.classes.insert(storage_class);
  std::erase_if(options_,
                [&](const auto& one) { return one.first.storage_class == storage_class; });
}

void Volumes::put(StorageClass one) {
  const std::string name = one.name;
  if (keep(classes_, class_names_, name, std::move(one))) tell_change_of(name);
}

void Volumes::class_gone(const std::string& uid) {
  const auto name = drop(classes_, class_names_, uid);
  if (name) tell_change_of(*name);
}

void Volumes::know(Known known) {
  news_.is_all = news_.is_all || known_ != known;
  known_ = known;
}

bool Volumes::concerns(const VolumeNews& news, const Pod& pod) const {
  return news.is_all || std::ranges::any_of(pod.claims, [&](const PodClaim& one) {
           if (news.claims.contains(pod.name_space + "/" + one.name)) return true;
           const VolumeClaim* claim = claim_of(pod, one);
           if (claim == nullptr) return false;
           return claim->is_bound ? news.volumes.contains(claim->volume)
                                  : news.classes.contains(claim->storage_class);
         });
}

void Volumes::use(const Pod& pod) {
  for (const PodClaim& one : pod.claims) {
    const std::string name = pod.name_space + "/" + one.name;
    users_[name].insert(pod.uid);
    const VolumeClaim* claim = claim_of(pod, one);
    if (claim != nullptr && is_for_one_pod(*claim)) news_.claims.insert(name);
  }
}

void Volumes::release(const Pod& pod) {
  for (const PodClaim& one : pod.claims) {
    const std::string name = pod.name_space + "/" + one.name;
    const VolumeClaim* claim = claim_of(pod, one);
    if (claim != nullptr && is_for_one_pod(*claim)) news_.claims.insert(name);
    if (const auto at = users_.find(name); at != users_.end()) {
      at->second.erase(pod.uid);
      if (at->second.empty()) users_.erase(at);
    }
    const auto tie = ties_.find(name);
    if (tie == ties_.end() || tie->second.pods.erase(pod.uid) == 0) continue;
    if (!tie->second.pods.empty()) continue;
    taken_.erase(tie->second.volume);
    tell_taken(tie->second.volume);
    ties_.erase(tie);
    news_.claims.insert(name);
  }
}

void Volumes::reserve(const Pod& pod,
                      const std::string& node,
                      const std::vector<ClaimStep>& steps) {
  for (const ClaimStep& step : steps) {
    const std::string name = pod.name_space + "/" + step.name;
    Tie& tie = ties_[name];
    tie.node = node;
    tie.volume = step.volume;
    tie.pods.insert(pod.uid);
    if (const auto claim = claims_.find(name); claim != claims_.end()) note_node(claim->second);
    news_.claims.insert(name);
    if (!step.volume.empty() && taken_.insert(step.volume).second) tell_taken(step.volume);
  }
}

/// It is free no more, or again.
void Volumes::tell_taken(const std::string& volume) {
  const auto at = volumes_.find(volume);
  if (at != volumes_.end() && at->second.claim.empty()) tell_change_of(at->second.storage_class);
}

const VolumeClaim* Volumes::claim_of(const Pod& pod, const PodClaim& claim) const {
  const auto at = claims_.find(pod.name_space + "/" + claim.name);
  return at == claims_.end() ? nullptr : &at->second;
}

const StorageClass* Volumes::class_of(const VolumeClaim& claim) const {
  const auto at = classes_.find(claim.storage_class);
  return at == classes_.end() ? nullptr : &at->second;
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
  const StorageClass* of = class_of(claim);
  if (of == nullptr && !claim.storage_class.empty()) {
    return fmt::format("storageclass.storage.k8s.io \"{}\" not found", claim.storage_class);
  }
  const bool waits = of != nullptr && of->waits && claim.volume.empty();
  return waits ? "" : "pod has unbound immediate PersistentVolumeClaims";
}

/// The volume that is for it and for nobody else; null if none is.
const Volume* Volumes::volume_aside(const VolumeClaim& claim) const {
  if (const auto tie = ties_.find(name_of(claim)); tie != ties_.end()) {
    const auto its = volumes_.find(tie->second.volume);
    if (its != volumes_.end()) return &its->second;
  }
  const auto aside = aside_.find(name_of(claim));
  if (aside == aside_.end()) return nullptr;
  for (const std::string& name : aside->second) {
    const Volume& volume = volumes_.at(name);
    const bool is_its = volume.claim_uid.empty() || volume.claim_uid == claim.uid;
    if (is_its && is_enough(volume, claim)) return &volume;
  }
  return nullptr;
}

/// Whether it could be the claim's, on a node where it is, as nobody else has it.
bool Volumes::suits(const Volume& volume, const VolumeClaim& claim) const {
  return is_enough(volume, claim) && volume.is_available && !taken_.contains(volume.name) &&
         std::ranges::includes(volume.modes, claim.modes) &&
         (!claim.selector || selects(claim.selector, volume.labels));
}

/// What there is for all claims of its kind, smallest first.
const Storage::Options& Volumes::options_of_kind(const VolumeClaim& claim,
                                                 const StorageClass& of) const {
  Kind kind{claim.storage_class,
            claim.attributes_class,
            claim.size,
            claim.modes,
            claim.is_block,
            claim.selector};
  if (const auto known = options_.find(kind); known != options_.end()) return known->second;
  std::vector<const Volume*> volumes;
  if (const auto free = free_.find(claim.storage_class); free != free_.end()) {
    for (const std::string& name : free->second) {
      const Volume& volume = volumes_.at(name);
      if (suits(volume, claim)) volumes.push_back(&volume);
    }
  }
  std::ranges::stable_sort(volumes, {}, &Volume::size);
  return options_.emplace(std::move(kind), options_with(volumes, of)).first->second;
}

/// REQUIRES: it has a class that waits for a pod to have its node.
Storage::Options Volumes::options_of(const VolumeClaim& claim) const {
  if (const std::string node = node_of(claim); !node.empty()) {
    return options_with({{"", only(node)}});
  }
  const StorageClass& of = *class_of(claim);
  const Volume* aside = volume_aside(claim);
  return aside == nullptr ? options_of_kind(claim, of) : options_with({aside}, of);
}

std::vector<const VolumeClaim*> Volumes::open_claims(const Pod& pod) const {
  std::vector<const VolumeClaim*> open;
  for (const PodClaim& one : pod.claims) {
    const VolumeClaim* claim = claim_of(pod, one);
    if (!claim->is_bound) open.push_back(claim);
  }
  std::ranges::stable_sort(open, {}, &VolumeClaim::size);
  return open;
}

Storage Volumes::storage_of(const Pod& pod) const {
  if (pod.claims.empty() || known_ == Known::Ignored) return {};
  if (known_ == Known::Not) return {"its PersistentVolumeClaims cannot be read yet"};
  for (const PodClaim& one : pod.claims) {
    if (std::string lack = lack_of(pod, one); !lack.empty()) return {lack};
  }
  Storage storage;
  for (const PodClaim& one : pod.claims) {
    const VolumeClaim& claim = *claim_of(pod, one);
    if (std::string trouble = trouble_of(claim, pod.uid); !trouble.empty()) return {trouble};
    if (!claim.is_bound) continue;
    const Volume& volume = volumes_.at(claim.volume);
    if (volume.affinity) storage.places.push_back({Shared(*volume.affinity), kConflict});
    add_zones(volume, storage.zones);
  }
  const std::vector<const VolumeClaim*> open = open_claims(pod);
  if (open.size() == 1) {  // whichever volumes there are, where they are is all that counts
    const Storage::Options options = options_of(*open.front());
    if (options.place) storage.places.push_back(*options.place);
    return storage;
  }
  for (const VolumeClaim* claim : open) storage.claims.push_back(options_of(*claim).choices);
  return storage;
}

std::optional<std::vector<ClaimStep>> Volumes::plan(const Pod& pod, const Node& node) const {
  if (pod.claims.empty() || known_ == Known::Ignored) return std::vector<ClaimStep>{};
  if (!refusal_of(node, storage_of(pod)).empty()) return std::nullopt;
  const std::vector<const VolumeClaim*> open = open_claims(pod);
  std::vector<Storage::Choices> choices;
  for (const VolumeClaim* claim : open) choices.push_back(options_of(*claim).choices);
  const auto chosen = choose(node, choices);
  if (!chosen) return std::nullopt;
  std::vector<ClaimStep> steps;
  for (std::size_t i = 0; i < open.size(); ++i) {
    ClaimStep step{open[i]->name, open[i]->uid, {}, {}, {}};
    if (const std::string& name = (*chosen)[i]->volume; !name.empty()) {
      const Volume& volume = volumes_.at(name);
      step.volume = name;
      step.volume_uid = volume.uid;
      step.volume_version = volume.version;
      step.is_aside = !volume.claim.empty();
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

Result<bool> Volumes::are_bound(const Pod& pod,
                                const Node& node,
                                const std::vector<ClaimStep>& steps) const {
  bool are_all = true;
  for (const ClaimStep& step : steps) {
    are_all = GF_TRY(is_as_planned(pod.name_space + "/" + step.name, step, node)) && are_all;
  }
  return are_all;
}

/// Whether it is bound. What was just written is told later, as what it was before.
Result<bool> Volumes::is_as_planned(const std::string& name,
                                    const ClaimStep& step,
                                    const Node& node) const {
  const auto at = claims_.find(name);
  if (at == claims_.end() || at->second.uid != step.uid || at->second.is_deleted) {
    return fail(Code::NotFound, fmt::format("claim {} is gone", step.name));
  }
  const VolumeClaim& claim = at->second;
  if (!claim.is_bound) {
    const auto tie = ties_.find(name);
    const bool was_told = tie != ties_.end() && tie->second.is_told;
    const bool is_elsewhere = !claim.selected_node.empty() && claim.selected_node != node.name;
    const bool is_refused =
        step.volume.empty() && (is_elsewhere || (was_told && claim.selected_node.empty()));
    if (!is_refused) return false;
    return fail(Code::WrongState,
                fmt::format("no volume was made for claim {} on {}", step.name, node.name));
  }
  if (!step.volume.empty() && claim.volume != step.volume) {
    return fail(Code::WrongState,
                fmt::format("claim {} has another volume: {}", step.name, claim.volume));
  }
  const auto volume = volumes_.find(claim.volume);
  if (volume == volumes_.end()) return false;  // it is about to be told
  if (is_there(node, volume->second.affinity)) return true;
  return fail(
      Code::WrongState,
      fmt::format(
          "volume {} of claim {} is not where node {} is", claim.volume, step.name, node.name));
}

}  // namespace gflow::kube
