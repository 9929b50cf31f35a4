// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kube/objects.h"
#include "kube/storage.h"

namespace gflow::kube {

/// What the claims of a pod ask of its node: pods alike in this are judged alike.
struct Storage {
  struct Place {
    std::vector<Term> terms;  ///< one of them has to hold
    std::string otherwise;    ///< in the words of kube-scheduler

    friend auto operator<=>(const Place&, const Place&) = default;
  };
  std::string trouble;        ///< why no node would do; "" if one may
  std::vector<Place> places;  ///< all of them have to hold

  friend auto operator<=>(const Storage&, const Storage&) = default;
};

/// Why the pods may not go to the node; "" if they may.
[[nodiscard]] std::string refusal_of(const Node& node, const Storage& storage);

/// What is to be written of a claim before its pod is bound.
struct ClaimStep {
  std::string name;  ///< of the claim, in the namespace of the pod
  std::string uid;
  std::string volume;  ///< that is to be its own; "": one is made for the node
  std::string volume_uid;
  std::string volume_version;

  friend bool operator==(const ClaimStep&, const ClaimStep&) = default;
};

/// The claims of pods and the volumes for them, by kube-scheduler's rules of VolumeBinding,
/// VolumeZone and VolumeRestrictions. Who has no claim costs nothing.
class Volumes {
 public:
  void put(VolumeClaim claim);
  void claim_gone(const std::string& uid);
  void put(Volume volume);
  void volume_gone(const std::string& uid);
  void put(StorageClass one);
  void class_gone(const std::string& uid);
  /// All there is was told. Pods with claims wait until then.
  void know() { know(Known::All); }
  [[nodiscard]] bool is_known() const { return known_ == Known::All; }
  /// It is not told of any, and judges none.
  void ignore() { know(Known::Ignored); }

  /// A pod is on a node, or not any more.
  void use(const Pod& pod);
  void release(const Pod& pod);
  /// The claims are being bound so, for the pod on this node: to all others they are tied to it, as
  /// long as it is there.
  void reserve(const Pod& pod, const std::string& node, const std::vector<ClaimStep>& steps);

  [[nodiscard]] Storage storage_of(const Pod& pod) const;
  /// Whether storage_of() may say another thing of some pods since this was asked.
  [[nodiscard]] bool take_news() { return std::exchange(has_news_, false); }
  /// What it takes for the pod to have its claims there; nothing: it cannot.
  [[nodiscard]] std::optional<std::vector<ClaimStep>> plan(const Pod& pod, const Node& node) const;

 private:
  enum class Known { Not, All, Ignored };
  /// One that is not bound yet, and its class.
  struct Open {
    const VolumeClaim* claim = nullptr;
    const StorageClass* of = nullptr;
  };
  /// What a claim that is being bound will have.
  struct Tie {
    std::string node;
    std::string volume;          ///< "": one is made for the node
    std::set<std::string> pods;  ///< uids of those that it is bound for
  };
  void know(Known known);
  [[nodiscard]] const VolumeClaim* claim_of(const Pod& pod, const PodClaim& claim) const;
  [[nodiscard]] std::string lack_of(const Pod& pod, const PodClaim& claim) const;
  [[nodiscard]] std::string trouble_of(const VolumeClaim& claim, const std::string& pod) const;
  void add_places(const Open& open, std::vector<Storage::Place>& places) const;
  [[nodiscard]] Open open_of(const VolumeClaim& claim) const;
  [[nodiscard]] std::string node_of(const VolumeClaim& claim) const;
  [[nodiscard]] bool suits(const Volume& volume, const VolumeClaim& claim) const;
  [[nodiscard]] std::vector<const Volume*> volumes_for(const VolumeClaim& claim) const;
  [[nodiscard]] bool is_in_use(const VolumeClaim& claim, const std::string& pod) const;

  std::map<std::string, VolumeClaim> claims_;       ///< by "NAMESPACE/NAME"
  std::map<std::string, std::string> claim_names_;  ///< by uid
  std::map<std::string, Volume> volumes_;           ///< by name
  std::map<std::string, std::string> volume_names_;
  std::map<std::string, StorageClass> classes_;
  std::map<std::string, std::string> class_names_;
  /// Uids of the pods on nodes that use a claim, by its name.
  std::map<std::string, std::set<std::string>> users_;
  std::map<std::string, Tie> ties_;  ///< by the claim's name
  std::set<std::string> taken_;      ///< the volumes of these
  Known known_ = Known::Not;
  bool has_news_ = false;
};

}  // namespace gflow::kube
