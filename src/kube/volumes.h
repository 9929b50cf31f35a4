// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "kube/objects.h"
#include "kube/storage.h"

namespace gflow::kube {

/// Many have the same one; those that say the same are equal.
template <typename Value>
class Shared {
 public:
  explicit Shared(Value value) : value_(std::make_shared<const Value>(std::move(value))) {}
  const Value& operator*() const { return *value_; }

  friend std::strong_ordering operator<=>(const Shared& a, const Shared& b) {
    return a.value_ == b.value_ ? std::strong_ordering::equal : *a <=> *b;
  }
  friend bool operator==(const Shared& a, const Shared& b) { return std::is_eq(a <=> b); }

 private:
  std::shared_ptr<const Value> value_;
};

/// What the claims of a pod ask of its node: pods alike in this are judged alike.
struct Storage {
  /// Where a volume is: one of the terms has to hold; none: it is everywhere.
  using Where = std::optional<std::vector<Term>>;
  struct Place {
    Shared<std::vector<Term>> terms;  ///< one of them has to hold
    std::string otherwise;            ///< in the words of kube-scheduler

    friend auto operator<=>(const Place&, const Place&) = default;
  };
  /// A volume that could be a claim's, or that one is made.
  struct Choice {
    std::string volume;  ///< "": one is made
    Where where;

    friend auto operator<=>(const Choice&, const Choice&) = default;
  };
  using Choices = Shared<std::vector<Choice>>;  ///< the best first
  /// What there is for a claim that is not bound.
  struct Options {
    Choices choices;
    std::optional<Place> place;  ///< where some of them is; none: everywhere
  };
  std::string trouble;            ///< why no node would do; "" if one may
  std::vector<Place> places{};    ///< all of them have to hold
  std::vector<Choices> claims{};  ///< of several that are not bound: each has one for itself
  std::vector<Place> zones{};     ///< all of them have to hold; kube-scheduler asks for these last

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
  bool is_aside = false;  ///< whoever made the volume set it aside for the claim

  friend bool operator==(const ClaimStep&, const ClaimStep&) = default;
};

/// What was told of volumes, so far as it has storage_of() say another thing.
struct VolumeNews {
  bool is_all = false;              ///< of every pod with claims
  std::set<std::string> claims{};   ///< "NAMESPACE/NAME": of their pods
  std::set<std::string> volumes{};  ///< of the pods whose claims are bound to these
  std::set<std::string> classes{};  ///< of the pods with claims of these that are not bound

  [[nodiscard]] bool is_empty() const {
    return !is_all && claims.empty() && volumes.empty() && classes.empty();
  }
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
  /// Since this was asked.
  [[nodiscard]] VolumeNews take_news() { return std::exchange(news_, {}); }
  [[nodiscard]] bool concerns(const VolumeNews& news, const Pod& pod) const;
  /// What it takes for the pod to have its claims there; nothing: it cannot, which is where
  /// storage_of() refuses it the node.
  [[nodiscard]] std::optional<std::vector<ClaimStep>> plan(const Pod& pod, const Node& node) const;
  /// Whether the claims of the pod are bound, as was reserved for it. Errors: that they will not
  /// be: one is gone or has another volume, or none could be made for the node.
  [[nodiscard]] Result<bool> are_bound(const Pod& pod,
                                       const Node& node,
                                       const std::vector<ClaimStep>& steps) const;

 private:
  enum class Known { Not, All, Ignored };
  /// What a claim that is being bound will have.
  struct Tie {
    std::string node;
    std::string volume;          ///< "": one is made for the node
    std::set<std::string> pods;  ///< uids of those that it is bound for
    bool is_told = false;        ///< of a volume to be made: the claim names the node
  };
  /// Claims alike in what they ask of a volume, and what there is for those.
  struct Kind {
    std::string storage_class;
    std::string attributes_class;
    std::int64_t size = 0;
    std::vector<std::string> modes;
    bool is_block = false;
    Selector selector;

    friend auto operator<=>(const Kind&, const Kind&) = default;
  };
  void know(Known known);
  void index(const Volume& volume, bool is_there);
  void tell_change_of(const std::string& storage_class);
  void tell_taken(const std::string& volume);
  void note_node(const VolumeClaim& claim);
  [[nodiscard]] Result<bool> is_as_planned(const std::string& name,
                                           const ClaimStep& step,
                                           const Node& node) const;
  [[nodiscard]] const VolumeClaim* claim_of(const Pod& pod, const PodClaim& claim) const;
  [[nodiscard]] std::vector<const VolumeClaim*> open_claims(const Pod& pod) const;
  [[nodiscard]] std::string lack_of(const Pod& pod, const PodClaim& claim) const;
  [[nodiscard]] std::string trouble_of(const VolumeClaim& claim, const std::string& pod) const;
  [[nodiscard]] const StorageClass* class_of(const VolumeClaim& claim) const;
  [[nodiscard]] std::string node_of(const VolumeClaim& claim) const;
  [[nodiscard]] const Volume* volume_aside(const VolumeClaim& claim) const;
  [[nodiscard]] bool suits(const Volume& volume, const VolumeClaim& claim) const;
  [[nodiscard]] Storage::Options options_of(const VolumeClaim& claim) const;
  [[nodiscard]] const Storage::Options& options_of_kind(const VolumeClaim& claim,
                                                        const StorageClass& of) const;
  [[nodiscard]] bool is_in_use(const VolumeClaim& claim, const std::string& pod) const;

  std::map<std::string, VolumeClaim> claims_;       ///< by "NAMESPACE/NAME"
  std::map<std::string, std::string> claim_names_;  ///< by uid
  std::map<std::string, Volume> volumes_;           ///< by name
  std::map<std::string, std::string> volume_names_;
  std::map<std::string, StorageClass> classes_;
  std::map<std::string, std::string> class_names_;
  /// Names of the volumes that anybody may have, by class.
  std::map<std::string, std::set<std::string>> free_;
  /// And of those that are for a claim, by its name.
  std::map<std::string, std::set<std::string>> aside_;
  /// Uids of the pods on nodes that use a claim, by its name.
  std::map<std::string, std::set<std::string>> users_;
  std::map<std::string, Tie> ties_;                   ///< by the claim's name
  std::set<std::string> taken_;                       ///< the volumes of these
  mutable std::map<Kind, Storage::Options> options_;  ///< that were asked for, while they are so
  Known known_ = Known::Not;
  VolumeNews news_;
};

}  // namespace gflow::kube
