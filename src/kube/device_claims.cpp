// SPDX-License-Identifier: Apache-2.0
#include "kube/device_claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "kube/predicates.h"

namespace gflow::kube {
namespace {

/// For which what may be written is waited for; the API server carries out a request no later.
constexpr std::chrono::seconds kMayBeWritten{60};
constexpr std::size_t kMostJudged = 200'000;

}  // namespace

void DeviceClaims::changed(const std::string& driver, const std::string& pool) {
  const auto at = pool_nodes_.find({driver, pool});
  if (at == pool_nodes_.end() || at->second.empty()) {
    ++turn_;
    news_.is_all = true;
    return;
  }
  ++turns_[at->second];
  news_.nodes.insert(at->second);
}

void DeviceClaims::changed(const std::vector<claims::GivenDevice>& devices) {
  for (const claims::GivenDevice& device : devices) changed(device.id.driver, device.id.pool);
}

void DeviceClaims::put(claims::Slice slice) {
  for (claims::Device& device : slice.devices) {
    device.serial = ++serial_;
    device.value = claims::device_value(slice.driver, device);
  }
  const std::string node = slice.where ? slice.where->node : "";
  const auto [at, is_new] = pool_nodes_.try_emplace({slice.driver, slice.pool}, node);
  if (at->second != node) at->second.clear();
  changed(slice.driver, slice.pool);
  const std::string uid = slice.uid;  // before it is moved from
  slices_[uid] = std::make_shared<const claims::Slice>(std::move(slice));
  are_pools_old_ = true;
}

void DeviceClaims::slice_gone(const std::string& uid) {
  const auto at = slices_.find(uid);
  if (at == slices_.end()) return;
  changed(at->second->driver, at->second->pool);
  slices_.erase(at);
  are_pools_old_ = true;
}

void DeviceClaims::put(claims::DeviceClass made) {
  class_names_[made.uid] = made.name;
  const std::string name = made.name;
  classes_.insert_or_assign(name, std::move(made));
  ++turn_;
  news_.is_all = true;
}

void DeviceClaims::class_gone(const std::string& uid) {
  const auto at = class_names_.find(uid);
  if (at == class_names_.end()) return;
  const auto known = classes_.find(at->second);
  if (known != classes_.end() && known->second.uid == uid) classes_.erase(known);
  class_names_.erase(at);
  ++turn_;
  news_.is_all = true;
}

void DeviceClaims::put(ResourceClaim claim) {
  const std::string name = claim.full_name();
  const std::string uid = claim.uid;
  if (const auto known = claims_.find(name); known != claims_.end() && known->second.uid != uid) {
    claim_gone(known->second.uid);  // another has its name by now
  }
  claim_names_[uid] = name;
  news_.claims.insert(name);
  if (claim.allocation) {
    drop(uid);
    use(uid, claim.allocation->devices);
  } else if (!given_.contains(uid)) {
    use(uid, {});
  }
  specs_.insert_or_assign(uid, Shared(DeviceWish::Spec{claim.spec_text, claim.spec}));
  claims_.insert_or_assign(name, std::move(claim));
}

void DeviceClaims::claim_gone(const std::string& uid) {
  const auto at = claim_names_.find(uid);
  if (at == claim_names_.end()) return;
  drop(uid);
  use(uid, {});
  specs_.erase(uid);
  news_.claims.insert(at->second);
  const auto known = claims_.find(at->second);
  if (known != claims_.end() && known->second.uid == uid) claims_.erase(known);
  claim_names_.erase(at);
}

/// In place of what it had.
void DeviceClaims::use(const std::string& claim, std::vector<claims::GivenDevice> devices) {
  const auto at = used_.find(claim);
  if (at != used_.end()) {
    changed(at->second);
    for (const claims::GivenDevice& device : at->second) usage_.remove(device);
    used_.erase(at);
  }
  if (devices.empty()) return;
  changed(devices);
  for (const claims::GivenDevice& device : devices) usage_.add(device);
  used_[claim] = std::move(devices);
}

/// What was given and is not written, or said by the claim itself.
void DeviceClaims::drop(const std::string& claim) {
  if (given_.erase(claim) == 0) return;
  use(claim, {});
  if (const auto name = claim_names_.find(claim); name != claim_names_.end()) {
    news_.claims.insert(name->second);
  }
}

void DeviceClaims::know() {
  is_known_ = true;
  why_unread_.clear();
  news_.are_all_claims = true;
}

void DeviceClaims::cannot_read(std::string why) {
  if (is_known_ || why_unread_ == why) return;
  why_unread_ = std::move(why);
  news_.are_all_claims = true;
}

void DeviceClaims::ignore() { is_ignored_ = true; }

void DeviceClaims::reserve(const Pod& pod, const std::vector<DeviceStep>& steps) {
  for (const DeviceStep& step : steps) {
    if (step.allocation.text.empty()) continue;
    const auto [at, is_new] = given_.try_emplace(step.uid, Given{.allocation = step.allocation});
    at->second.pods.try_emplace(pod.uid, false);
    at->second.until.reset();
    if (!is_new) continue;
    use(step.uid, step.allocation.devices);
    if (const auto name = claim_names_.find(step.uid); name != claim_names_.end()) {
      news_.claims.insert(name->second);
    }
  }
}

void DeviceClaims::release(const Pod& pod, const std::vector<DeviceStep>& steps) {
  for (const DeviceStep& step : steps) {
    const auto at = given_.find(step.uid);
    if (at == given_.end()) continue;
    Given& given = at->second;
    if (given.pods.erase(pod.uid) == 0 || !given.pods.empty()) continue;
    if (!given.may_be_written) {
      drop(step.uid);
      continue;
    }
    given.until = now_ + kMayBeWritten;
  }
}

void DeviceClaims::handed_out(const std::string& pod, const std::vector<DeviceStep>& steps) {
  for (const DeviceStep& step : steps) {
    const auto given = given_.find(step.uid);
    if (given == given_.end() || !given->second.pods.contains(pod)) continue;
    given->second.pods[pod] = true;
    given->second.may_be_written = true;
  }
}

void DeviceClaims::not_written(const std::string& pod) {
  for (auto& [uid, given] : given_) {
    const auto at = given.pods.find(pod);
    if (at == given.pods.end()) continue;
    at->second = false;
    // Another of them may have it written.
    given.may_be_written =
        std::ranges::any_of(given.pods, [](const auto& one) { return one.second; });
  }
}

void DeviceClaims::pass(MonoTime now) {
  now_ = now;
  std::vector<std::string> over;
  for (const auto& [uid, given] : given_) {
    if (given.until && *given.until <= now) over.push_back(uid);
  }
  for (const std::string& uid : over) drop(uid);
}

std::optional<MonoTime> DeviceClaims::wake() const {
  std::optional<MonoTime> first;
  for (const auto& [uid, given] : given_) {
    if (given.until) first = std::min(first.value_or(*given.until), *given.until);
  }
  return first;
}

bool DeviceClaims::concerns(const DeviceNews& news, const Pod& pod) const {
  return news.are_all_claims || std::ranges::any_of(pod.devices, [&](const PodDevices& one) {
           return news.claims.contains(pod.name_space + "/" + one.claim);
         });
}

const ResourceClaim* DeviceClaims::claim_of(const Pod& pod, const PodDevices& of) const {
  const auto at = claims_.find(pod.name_space + "/" + of.claim);
  return at == claims_.end() ? nullptr : &at->second;
}

/// That it has, or is given.
const DeviceAllocation* DeviceClaims::allocation_of_claim(const ResourceClaim& claim) const {
  if (claim.allocation) return &*claim.allocation;
  const auto given = given_.find(claim.uid);
  return given == given_.end() ? nullptr : &given->second.allocation;
}

/// What keeps the pod from this claim whatever the node; "" if nothing does.
std::string DeviceClaims::lack_of(const Pod& pod, const PodDevices& of) const {
  if (of.claim.empty()) return fmt::format("resourceclaim for \"{}\" not created yet", of.name);
  const ResourceClaim* claim = claim_of(pod, of);
  if (claim == nullptr) return fmt::format("resourceclaim \"{}\" not found", of.claim);
  if (claim->is_deleted) return fmt::format("resourceclaim \"{}\" is being deleted", of.claim);
  if (of.is_own && claim->owner != pod.uid) {
    return fmt::format("resourceclaim \"{}\" was not created for the pod", of.claim);
  }
  if (!claim->consumers.contains(pod.uid) && claim->consumers.size() >= kMostConsumers) {
    return fmt::format(
        "resourceclaim \"{}\" is used by {} pods, as many as may", of.claim, kMostConsumers);
  }
  if (allocation_of_claim(*claim) == nullptr && !claim->spec.trouble.empty()) {
    return fmt::format("resourceclaim \"{}\": {}", of.claim, claim->spec.trouble);
  }
  return {};
}

DeviceWish DeviceClaims::wish_of(const Pod& pod) const {
  DeviceWish wish;
  if (pod.devices.empty() || is_ignored_) return wish;
  if (!is_known_) {
    wish.trouble = why_unread_.empty() ? "resourceclaims are not read yet"
                                       : "resourceclaims cannot be read: " + why_unread_;
    return wish;
  }
  for (const PodDevices& one : pod.devices) {
    if (one.is_none) continue;
    if (std::string lack = lack_of(pod, one); !lack.empty()) return {.trouble = std::move(lack)};
    const ResourceClaim& claim = *claim_of(pod, one);
    const DeviceAllocation* allocation = allocation_of_claim(claim);
    if (allocation == nullptr) {
      wish.open.push_back({one.name, one.is_own ? "" : claim.uid, specs_.at(claim.uid)});
    } else if (allocation->where) {
      wish.places.emplace_back(*allocation->where);
    }
  }
  return wish;
}

/// Pools are looked at by node: most are of one.
void DeviceClaims::gather() {
  if (!std::exchange(are_pools_old_, false)) return;
  std::vector<claims::SharedSlice> slices;
  for (const auto& [uid, slice] : slices_) slices.push_back(slice);
  pools_ = claims::gather_pools(slices);
  on_node_.clear();
  anywhere_.clear();
  for (const claims::Pool& pool : pools_) {
    const std::string& node = pool_nodes_[{pool.driver, pool.name}];
    (node.empty() ? anywhere_ : on_node_[node]).push_back(&pool);
  }
}

bool DeviceClaims::is_here(const claims::Where& where, const Node& node) {
  if (where.is_everywhere) return true;
  if (!where.node.empty()) return where.node == node.name;
  if (where.selector.empty()) return false;
  auto at = selectors_.find(where.selector);
  if (at == selectors_.end()) {
    const auto selector = nlohmann::json::parse(where.selector, nullptr, false);
    at = selectors_.emplace(where.selector, node_terms_of(selector)).first;
  }
  return meets_any(node, at->second);
}

std::uint64_t DeviceClaims::turn_of(const std::string& node) const {
  const auto at = turns_.find(node);
  return turn_ + (at == turns_.end() ? 0 : at->second);
}

Result<std::vector<claims::Given>> DeviceClaims::allocate(const Node& node,
                                                          const DeviceWish& wish) {
  gather();
  std::vector<const claims::Pool*> pools = anywhere_;
  if (const auto at = on_node_.find(node.name); at != on_node_.end()) {
    pools.insert(pools.end(), at->second.begin(), at->second.end());
  }
  std::vector<claims::Asked> asked;
  for (const DeviceWish::Claim& one : wish.open) asked.push_back({one.name, &(*one.spec).spec});
  const auto is_here_for = [this, &node](const claims::Where& where) {
    return is_here(where, node);
  };
  return claims::allocate({pools, usage_, classes_, matcher_, is_here_for}, asked);
}

std::string DeviceClaims::judge(const Node& node, const DeviceWish& wish) {
  const auto given = allocate(node, wish);
  if (!given) return given.error().message;
  const bool is_sayable = std::ranges::all_of(*given, [&node](const claims::Given& one) {
    return allocation_of(one, node.name).has_value();
  });
  return is_sayable ? "" : "node(s) had devices whose nodeSelector has several terms";
}

std::string DeviceClaims::refusal(const Node& node, const DeviceWish& wish) {
  if (!wish.trouble.empty()) return wish.trouble;
  for (const DeviceWish::Terms& terms : wish.places) {
    if (!meets_any(node, *terms)) return "node(s) did not have the resourceclaim's devices";
  }
  if (wish.open.empty()) return {};
  if (kept_ > kMostJudged) {
    judged_.clear();
    kept_ = 0;
  }
  const auto [at, is_new] = judged_[wish].try_emplace(node.name);
  kept_ += is_new ? 1 : 0;
  Judged& judged = at->second;
  const std::uint64_t turn = turn_of(node.name);
  if (judged.turn == turn) return judged.refusal;
  judged = {turn, judge(node, wish)};
  return judged.refusal;
}

std::optional<std::vector<DeviceStep>> DeviceClaims::plan(const Pod& pod, const Node& node) {
  std::vector<DeviceStep> steps;
  const DeviceWish wish = wish_of(pod);
  if (wish.is_empty() && (pod.devices.empty() || is_ignored_)) return steps;
  if (!refusal(node, wish).empty()) return std::nullopt;
  auto given = allocate(node, wish);
  if (!given) return std::nullopt;
  std::size_t next = 0;
  for (const PodDevices& one : pod.devices) {
    if (one.is_none) continue;
    const ResourceClaim& claim = *claim_of(pod, one);
    const DeviceAllocation* allocation = allocation_of_claim(claim);
    if (allocation != nullptr) {
      steps.push_back({claim.name, claim.uid, *allocation});
      continue;
    }
    auto made = allocation_of((*given)[next++], node.name);
    if (!made) return std::nullopt;
    steps.push_back({claim.name, claim.uid, *std::move(made)});
  }
  return steps;
}

}  // namespace gflow::kube
