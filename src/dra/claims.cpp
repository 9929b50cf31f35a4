// SPDX-License-Identifier: Apache-2.0
#include "dra/claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "dra/pod_claims.h"
#include "dra/slices.h"
#include "kube/fields.h"

namespace gflow::dra {
namespace {

using Json = nlohmann::json;
using kube::part;
using kube::text;

/// Of a claim, and of one of its requests, which is a DNS label.
std::string start_of_keys(const std::string& uid) { return uid + "."; }
std::string key_of(const std::string& uid, const std::string& request) {
  return start_of_keys(uid) + request;
}

/// It becomes the name of a folder.
Result<void> check_uid(const std::string& uid) {
  const auto is_usual = [](char letter) {
    return (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') || letter == '-';
  };
  if (!uid.empty() && std::ranges::all_of(uid, is_usual)) return {};
  return fail(Code::Usage, fmt::format("'{}' is no uid of a claim", printable(uid)));
}

std::vector<ReadyDevice> ready_devices(const std::vector<RequestGrant>& grants,
                                       const std::string& uid,
                                       const std::string& pool) {
  std::vector<ReadyDevice> ready;
  for (const RequestGrant& one : grants) {
    // One CDI device has all of the request, and is not to be done to a container twice.
    std::string cdi = deviceplugin::kClaims.device(key_of(uid, one.request));
    for (const ClaimedDevice& device : one.devices) {
      ready.push_back({one.request, pool, device.device, device.share_id, cdi});
      cdi.clear();
    }
  }
  return ready;
}

}  // namespace

Result<void> Claims::open(std::string& trouble) { return files_.open(trouble); }

void Claims::set_here(Here here) {
  const std::lock_guard lock(here_mutex_);
  here_ = std::move(here);
}

Here Claims::here() const {
  const std::lock_guard lock(here_mutex_);
  return here_;
}

Result<std::vector<ReadyDevice>> Claims::prepare(const ClaimName& name,
                                                 const std::function<bool()>& is_given_up) {
  begin(name.uid);
  auto ready = make_ready(name, is_given_up);
  end(name.uid);
  if (!ready) log_.warn(fmt::format("{}: {}", name.full_name(), ready.error().message));
  return ready;
}

void Claims::begin(const std::string& uid) {
  const std::lock_guard lock(files_mutex_);
  ++under_way_[uid].threads;
}

void Claims::end(const std::string& uid) {
  const std::lock_guard lock(files_mutex_);
  if (--under_way_[uid].threads == 0) under_way_.erase(uid);
}

Result<std::vector<ReadyDevice>> Claims::make_ready(const ClaimName& name,
                                                    const std::function<bool()>& is_given_up) {
  GF_CHECK(check_uid(name.uid));
  const Json claim = GF_TRY(record_.claim(name.name_space, name.name));
  if (text(part(claim, "metadata"), "uid") != name.uid) {
    return fail(Code::WrongState, "the claim of that name was made anew by now");
  }
  const Here here = this->here();
  const auto grants = GF_TRY(grants_of(claim, here));
  if (std::ranges::any_of(grants, &RequestGrant::is_part)) {
    if (!can_hold()) {
      return fail(Code::WrongState, "containers of this node are not held to a part of a GPU");
    }
    GF_CHECK(check_pods(name, claim));
  }
  const std::lock_guard lock(files_mutex_);
  // What is written for one that has gone meanwhile would be found by nobody who removes it.
  if (is_given_up() || under_way_[name.uid].is_to_go) {
    return fail(Code::WrongState, "it was given back while it was made ready");
  }
  GF_CHECK(write(grants, here.machine));
  return ready_devices(grants, name.uid, here.node);
}

/// Of all that have it: the pods of one claim are on one node.
Result<void> Claims::check_pods(const ClaimName& name, const Json& claim) {
  for (const Json& one : part(part(claim, "status"), "reservedFor")) {
    if (text(one, "resource") != "pods") continue;
    const auto pod = record_.pod(name.name_space, text(one, "name"));
    if (!pod && pod.error().code == Code::NotFound) continue;
    if (!pod) return std::unexpected(pod.error());
    if (text(part(*pod, "metadata"), "uid") != text(one, "uid")) continue;
    const auto checked = check_one_part_each(*pod, [&](const std::string& other) {
      using Parts = Result<std::set<std::string>>;
      return other == name.name ? Parts(requests_of_parts(claim))
                                : parts_of(name.name_space, other);
    });
    if (!checked) return with_context(checked.error(), "pod " + text(one, "name"));
  }
  return {};
}

Result<std::set<std::string>> Claims::parts_of(const std::string& name_space,
                                               const std::string& name) {
  const auto claim = record_.claim(name_space, name);
  if (claim) return requests_of_parts(*claim);
  if (claim.error().code == Code::NotFound) return std::set<std::string>();
  return std::unexpected(claim.error());
}

/// With the lock.
Result<void> Claims::write(const std::vector<RequestGrant>& grants, const Machine& machine) {
  for (const RequestGrant& one : grants) {
    const std::string key = key_of(one.grant.owner.uid, one.request);
    if (files_.is_written(key, one.grant)) {
      GF_CHECK(files_.write_specification(key, one.grant, machine));
      continue;
    }
    GF_CHECK(check_usable(one, machine));
    GF_CHECK(check_free(key, one.grant));
    GF_CHECK(files_.write(key, one.grant, machine));
    log_.info(fmt::format(
        "{}, request {}: {}", one.grant.owner.name, one.request, deviceplugin::text_of(one.grant)));
  }
  return {};
}

/// Of what is allocated anew, others may still have what they had, where the kubelet did not come
/// to say so: one that was deleted by force, say.
Result<void> Claims::check_free(const std::string& key, const deviceplugin::Grant& grant) const {
  const auto others = GF_TRY(files_.grants());
  for (const DeviceGrant& device : grant.devices) {
    Share all = device.share;
    Share most = Share::whole();
    for (const auto& [other, its] : others) {
      if (other == key) continue;
      for (const DeviceGrant& one : its.devices) {
        if (one.uuid != device.uuid) continue;
        all += one.share;
        most += Share{1};  // each is rounded up
        if (all <= most) continue;
        return fail(Code::WrongState,
                    fmt::format("GPU {} is still with the claim {}, of which no end was told yet",
                                device.uuid,
                                its.owner.name));
      }
    }
  }
  return {};
}

Result<void> Claims::unprepare(const ClaimName& name) {
  GF_CHECK(check_uid(name.uid));
  auto removed = remove_all(name.uid);
  if (!removed) log_.warn_again(removed.error().message);
  return removed;
}

Result<void> Claims::remove_all(const std::string& uid) {
  const std::lock_guard lock(files_mutex_);
  const auto under_way = under_way_.find(uid);
  if (under_way != under_way_.end()) under_way->second.is_to_go = true;
  Result<void> done;
  for (const auto& [key, grant] : GF_TRY(files_.grants())) {
    if (!key.starts_with(start_of_keys(uid))) continue;
    auto removed = files_.remove(key);
    if (!removed) done = std::move(removed);
  }
  return done;
}

std::vector<DeviceHealth> Claims::health() const {
  const Here here = this->here();
  std::vector<DeviceHealth> all;
  for (const Device& device : here.machine.devices) {
    std::string name = device_name(device);
    if (name.empty()) continue;
    all.push_back({here.node,
                   std::move(name),
                   device.usable,
                   device.usable ? std::string() : device.trouble});
  }
  return all;
}

void Claims::tell_ended() {
  const std::lock_guard lock(files_mutex_);
  const auto grants = files_.grants();
  if (!grants) return;
  std::vector<std::string> directories;
  for (const auto& [key, grant] : *grants) directories.push_back(files_.directory(key));
  teller_.look(directories);
}

void Claims::clean_up() {
  const std::lock_guard lock(files_mutex_);
  const auto grants = files_.grants();
  if (!grants) return log_.warn_again(grants.error().message);
  std::set<std::string> keys;
  for (const auto& [key, grant] : *grants) keys.insert(key);
  const auto kept = files_.keep_only(keys);
  if (!kept) log_.warn_again(kept.error().message);
}

bool Claims::is_under_way(const std::string& uid) {
  const std::lock_guard lock(files_mutex_);
  return under_way_.contains(uid);
}

void Claims::drop_gone() {
  // One that does not know of claims at all knows of none.
  if (!record_.slices(here().node)) return;
  std::map<std::string, deviceplugin::Grant> grants;
  {
    const std::lock_guard lock(files_mutex_);
    grants = files_.grants().value_or(grants);
  }
  for (const auto& [key, grant] : grants) {
    const deviceplugin::Owner& owner = grant.owner;
    const std::size_t slash = owner.name.find('/');
    if (slash == std::string::npos) continue;
    const auto claim = record_.claim(owner.name.substr(0, slash), owner.name.substr(slash + 1));
    // Nor would others be answered for now.
    if (!claim && claim.error().code != Code::NotFound) return;
    const bool is_gone = !claim || text(part(*claim, "metadata"), "uid") != owner.uid ||
                         !has_devices_of(*claim, here().node);
    if (!is_gone || is_under_way(owner.uid)) continue;
    log_.info(fmt::format("{} is gone, and what it had", owner.name));
    const auto removed = remove_all(owner.uid);
    if (!removed) log_.warn_again(removed.error().message);
  }
}

}  // namespace gflow::dra
