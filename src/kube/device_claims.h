// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/time.h"
#include "claims/allocator.h"
#include "kube/device_objects.h"
#include "kube/objects.h"
#include "kube/volumes.h"

namespace gflow::kube {

/// What the ResourceClaims of a pod ask of its node: pods alike in this are judged alike.
struct DeviceWish {
  /// Claims that say the same.
  struct Spec {
    std::string text;
    claims::ClaimSpec spec;

    friend std::strong_ordering operator<=>(const Spec& a, const Spec& b) {
      return a.text <=> b.text;
    }
    friend bool operator==(const Spec& a, const Spec& b) { return a.text == b.text; }
  };
  struct Claim {
    std::string name;    ///< as the pod calls it
    std::string shared;  ///< uid of one that others may have, too; "" if it is the pod's own
    Shared<Spec> spec;

    friend auto operator<=>(const Claim&, const Claim&) = default;
  };
  using Terms = Shared<std::vector<Term>>;
  std::string trouble{};        ///< why no node would do; "" if one may
  std::vector<Claim> open{};    ///< to be allocated
  std::vector<Terms> places{};  ///< of those that are: one term of each has to hold

  [[nodiscard]] bool is_empty() const { return trouble.empty() && open.empty() && places.empty(); }
  friend auto operator<=>(const DeviceWish&, const DeviceWish&) = default;
};

/// What is to be written of a ResourceClaim before its pod is bound.
struct DeviceStep {
  std::string name;  ///< of the claim, in the namespace of the pod
  std::string uid;
  /// What it has, or is given; without a text it has it already.
  DeviceAllocation allocation{};
};

/// What was told of claims and devices, so far as decisions may be others.
struct DeviceNews {
  bool is_all = false;             ///< of every node
  std::set<std::string> nodes{};   ///< on which devices are others, or have become free or not
  bool are_all_claims = false;     ///< of every pod with claims
  std::set<std::string> claims{};  ///< "NAMESPACE/NAME": of their pods

  [[nodiscard]] bool is_empty() const {
    return !is_all && nodes.empty() && !are_all_claims && claims.empty();
  }
};

/// The ResourceClaims of pods and the devices for them, by kube-scheduler's rules of
/// DynamicResources. What was decided counts as given from then on: until none of its pods waits to
/// be bound, nobody is writing it any more, and the claim says what it has, or where nobody knows
/// whether it was written a minute has passed since. Who has no claim costs nothing.
class DeviceClaims {
 public:
  void put(claims::Slice slice);
  void slice_gone(const std::string& uid);
  void put(claims::DeviceClass made);
  void class_gone(const std::string& uid);
  void put(ResourceClaim claim);
  void claim_gone(const std::string& uid);
  /// All were told. Pods with claims wait until then.
  void know();
  [[nodiscard]] bool is_known() const { return is_known_; }
  /// Why such objects cannot be read, for the pods that wait for that: from the first on, and once
  /// all were told where it lasts for a minute; until they can be.
  void cannot_read(const std::string& kind, std::string why);
  void can_read(const std::string& kind);
  /// Its labels are others, or it is another of this name.
  void node_changed(const std::string& node);
  /// It is not told of any, and judges none.
  void ignore();

  [[nodiscard]] DeviceWish wish_of(const Pod& pod) const;
  /// Why the pods may not go to the node; "" if they may.
  [[nodiscard]] std::string refusal(const Node& node, const DeviceWish& wish);
  /// What it takes for the pod to have its claims there; nothing: it cannot, which is where
  /// refusal() refuses it the node.
  [[nodiscard]] std::optional<std::vector<DeviceStep>> plan(const Pod& pod, const Node& node);
  /// The claims are given so, for the pod, as long as it is on that node.
  void reserve(const Pod& pod, const std::vector<DeviceStep>& steps);
  void release(const Pod& pod, const std::vector<DeviceStep>& steps);
  /// The pod is on its node: what the claims say counts.
  void bound(const std::string& pod, const std::vector<DeviceStep>& steps);
  /// From now on somebody else may write it, until he says that he does not any more: then
  /// something may be written, or it is sure that nothing was.
  void handed_out(const std::string& pod, const std::vector<DeviceStep>& steps);
  void handed_back(const std::string& pod, bool may_be_written);
  /// Gives up what was waited for long enough.
  void pass(MonoTime now);
  [[nodiscard]] std::optional<MonoTime> wake() const;

  /// Since this was asked.
  [[nodiscard]] DeviceNews take_news() { return std::exchange(news_, {}); }
  [[nodiscard]] bool concerns(const DeviceNews& news, const Pod& pod) const;
  /// Sentences: devices that two claims have though one may, since this was asked.
  [[nodiscard]] std::vector<std::string> take_doubles() { return std::exchange(doubles_, {}); }

 private:
  /// What a claim has that does not say so yet, or may be given once more.
  struct Given {
    DeviceAllocation allocation;
    std::set<std::string> pods{};     ///< uids: they are to have it, and are not bound
    std::set<std::string> writers{};  ///< uids: somebody is writing it for these
    bool may_be_written = false;      ///< by one who does not write any more
    std::optional<MonoTime> until{};  ///< none of the two, and it may be written all the same
  };
  struct Unread {
    std::string why;
    MonoTime since{};
    bool is_told = false;  ///< to pods that wait
  };
  /// What was judged of a wish, as things were at that turn of the node.
  struct Judged {
    std::uint64_t turn = 0;
    std::string refusal;
  };
  void gather();
  void changed(const std::string& driver, const std::string& pool);
  void changed(const std::vector<claims::GivenDevice>& devices);
  void use(const std::string& claim, std::vector<claims::GivenDevice> devices);
  void warn_of_double(const std::string& claim, const claims::DeviceId& device);
  [[nodiscard]] Judged& judged_of(const std::string& node, const DeviceWish& wish);
  void use_all_of(const std::string& claim);
  void drop(const std::string& claim);
  void end_given(const std::string& claim);
  [[nodiscard]] std::uint64_t turn_of(const std::string& node) const;
  [[nodiscard]] Result<std::vector<claims::Given>> allocate(const Node& node,
                                                            const DeviceWish& wish);
  [[nodiscard]] std::string judge(const Node& node, const DeviceWish& wish);
  [[nodiscard]] bool is_here(const claims::Where& where, const Node& node);
  [[nodiscard]] const ResourceClaim* claim_of(const Pod& pod, const PodDevices& of) const;
  [[nodiscard]] const ResourceClaim* claim_with(const std::string& uid) const;
  [[nodiscard]] std::string lack_of(const Pod& pod, const PodDevices& of) const;
  [[nodiscard]] const DeviceAllocation* allocation_of_claim(const ResourceClaim& claim) const;

  std::map<std::string, claims::SharedSlice> slices_;  ///< by uid
  std::map<std::string, claims::DeviceClass> classes_;
  std::map<std::string, std::string> class_names_;                ///< by uid
  std::map<std::string, ResourceClaim> claims_;                   ///< by "NAMESPACE/NAME"
  std::map<std::string, std::string> claim_names_;                ///< by uid
  std::map<std::string, Shared<DeviceWish::Spec>> specs_;         ///< by uid of the claim
  std::map<std::string, Given> given_;                            ///< by uid of the claim
  std::map<std::string, std::vector<claims::GivenDevice>> used_;  ///< the same: what usage_ has
  claims::Usage usage_;
  claims::Matcher matcher_;
  bool are_pools_old_ = false;
  std::vector<claims::Pool> pools_;
  std::map<std::string, std::vector<const claims::Pool*>> on_node_;  ///< with the next
  std::vector<const claims::Pool*> anywhere_;
  std::map<std::pair<std::string, std::string>, std::string> pool_nodes_;  ///< "": of several
  std::map<std::string, std::vector<Term>> selectors_;                     ///< that were read
  std::map<DeviceWish, std::map<std::string, Judged>> judged_;             ///< by node
  std::size_t kept_ = 0;                                                   ///< of these
  std::map<std::string, std::uint64_t> turns_;                             ///< of nodes
  std::uint64_t turn_ = 1;                                                 ///< of all
  std::uint64_t serial_ = 0;
  MonoTime now_{};
  bool is_known_ = false;
  bool is_ignored_ = false;
  std::map<std::string, Unread> unread_;  ///< by kind
  std::vector<std::string> doubles_;
  DeviceNews news_;
};

}  // namespace gflow::kube
