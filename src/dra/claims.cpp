// SPDX-License-Identifier: Apache-2.0
#include "dra/claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ranges>

#include "base/text.h"
#include "dra/pod_claims.h"
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

Result<std::vector<ReadyDevice>> Claims::prepare(const ClaimName& name) {
  auto ready = make_ready(name);
  if (!ready) log_.warn(fmt::format("{}: {}", name.full_name(), ready.error().message));
  return ready;
}

Result<std::vector<ReadyDevice>> Claims::make_ready(const ClaimName& name) {
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
  for (const RequestGrant& one : grants) {
    GF_CHECK(write(key_of(name.uid, one.request), one.grant, here.machine));
  }
  return ready_devices(grants, name.uid, here.node);
}

/// Those that have it and are here, or may come here.
Result<void> Claims::check_pods(const ClaimName& name, const Json& claim) {
  for (const Json& one : part(part(claim, "status"), "reservedFor")) {
    if (text(one, "resource") != "pods") continue;
    const auto pod = record_.pod(name.name_space, text(one, "name"));
    if (!pod && pod.error().code == Code::NotFound) continue;
    if (!pod) return std::unexpected(pod.error());
    if (text(part(*pod, "metadata"), "uid") != text(one, "uid")) continue;
    GF_CHECK(check_one_part_each(*pod, [&](const std::string& other) {
      using Parts = Result<std::set<std::string>>;
      return other == name.name ? Parts(requests_of_parts(claim))
                                : parts_of(name.name_space, other);
    }));
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

Result<void> Claims::write(const std::string& key,
                           const deviceplugin::Grant& grant,
                           const Machine& machine) {
  const std::lock_guard lock(files_mutex_);
  // Its containers may run, and have what is counted in it.
  if (files_.is_written(key, grant.owner)) return {};
  GF_CHECK(files_.write(key, grant, machine));
  log_.info(fmt::format(
      "{}, request {}: {}", grant.owner.name, grant.owner.part, deviceplugin::text_of(grant)));
  return {};
}

Result<void> Claims::unprepare(const ClaimName& name) {
  GF_CHECK(check_uid(name.uid));
  const std::lock_guard lock(files_mutex_);
  Result<void> done;
  for (const std::string& key : GF_TRY(files_.keys())) {
    if (!key.starts_with(start_of_keys(name.uid))) continue;
    auto removed = files_.remove(key);
    if (!removed) done = std::move(removed);
  }
  if (!done) log_.warn_again(done.error().message);
  return done;
}

bool Claims::look_after() {
  const std::lock_guard lock(files_mutex_);
  const auto keys = files_.keys();
  if (!keys) return false;
  std::vector<std::string> directories;
  for (const std::string& key : *keys) directories.push_back(files_.directory(key));
  return teller_.look(directories);
}

void Claims::clean_up() {
  const std::lock_guard lock(files_mutex_);
  const auto keys = files_.keys();
  const Result<void> kept = keys ? files_.keep_only(*keys) : std::unexpected(keys.error());
  if (!kept) log_.warn_again(kept.error().message);
}

}  // namespace gflow::dra
