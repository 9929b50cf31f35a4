// SPDX-License-Identifier: Apache-2.0
#include "kube/election.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/time.h"
#include "kube/fields.h"
#include "os/clock.h"

namespace gflow::kube {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kGroup = "/apis/coordination.k8s.io/v1/namespaces/";

std::string micro_time() {
  std::string text = rfc3339(os::now().wall);  // milliseconds
  text.insert(text.size() - 1, "000");
  return text;
}

}  // namespace

Election::Election(
    const Access& access, Credentials& credentials, LeaseWish wish, Log& log, Health& health)
    : api_(access, credentials), wish_(std::move(wish)), log_(log), health_(health) {}

Election::~Election() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Election::run(std::function<void()> won, std::function<void(const std::string&)> lost) {
  thread_ =
      std::jthread([this, won = std::move(won), lost = std::move(lost)] { stand(won, lost); });
}

bool Election::may_write() const { return Clock::now() < renewed_.load() + 2 * write_limit(); }

bool Election::pause(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, time, [this] { return ends_; });
}

void Election::stand(const std::function<void()>& won,
                     const std::function<void(const std::string&)>& lost) {
  const auto beat = std::chrono::milliseconds(wish_.duration) / 8;
  do {
    const Clock::time_point begun = Clock::now();
    const Turn now = turn();
    if (now == Turn::Held && is_held_ && !may_write()) {
      return lost("it was renewed too late");  // and what was to be written meanwhile was not
    }
    if (now == Turn::Held) {
      renewed_ = begun;
      if (!std::exchange(is_held_, true)) won();
      continue;
    }
    if (is_held_ && (now == Turn::Others || !may_write())) return lost(why_);
    tell(now);
  } while (pause(beat));
  if (is_held_ && !is_kept_) release();
}

/// Of a turn after which it is not renewed.
void Election::tell(Turn turn) {
  if (turn == Turn::Others) {
    health_.ready();
    if (!std::exchange(is_told_, true)) log_.info(why_ + "; waiting for it");
    return;
  }
  if (!is_held_) health_.not_ready("nobody says whose the Lease is: " + why_);
  log_.warn_again(why_);
}

/// One look at the lease, and one try to have it where nobody has.
Election::Turn Election::turn() {
  const std::string path = fmt::format("{}{}/leases/{}", kGroup, wish_.name_space, wish_.name);
  const auto found = api_.ask({.path = path, .limit = write_limit()});
  if (!found) {
    why_ = found.error().message;
    return Turn::Unknown;
  }
  const std::string now = micro_time();
  Json lease = {{"apiVersion", "coordination.k8s.io/v1"},
                {"kind", "Lease"},
                {"metadata", {{"name", wish_.name}, {"namespace", wish_.name_space}}},
                {"spec", {{"acquireTime", now}, {"leaseTransitions", 0}}}};
  const bool is_new = found->status == 404;
  if (!is_new && !found->is_ok()) {
    why_ = error_of(*found, "read the lease " + wish_.name_space + "/" + wish_.name).message;
    return Turn::Unknown;
  }
  if (!is_new) {
    lease = Json::parse(found->body, nullptr, false);
    if (!lease.is_object() || !lease["metadata"].is_object()) return Turn::Unknown;
    if (!lease["spec"].is_object()) lease["spec"] = Json::object();
    if (is_others(lease)) return Turn::Others;
    if (text(lease["spec"], "holderIdentity") != wish_.identity) {
      lease["spec"]["acquireTime"] = now;
      lease["spec"]["leaseTransitions"] = number(lease["spec"], "leaseTransitions") + 1;
    }
  }
  Json& spec = lease["spec"];
  spec["holderIdentity"] = wish_.identity;
  spec["leaseDurationSeconds"] = wish_.duration.count();
  spec["renewTime"] = now;
  return take(is_new ? "POST" : "PUT", lease.dump());
}

/// Whether somebody else has it, or had it since it was held here. How long a lease lasts is what
/// this one would have it for, as all that stand for it are told the same, and not what is written
/// there: whoever may write it could have it last for decades, or for less than the holder writes.
bool Election::is_others(const Json& lease) {
  const std::string version = text(lease["metadata"], "resourceVersion");
  if (!seen_ || seen_->version != version) seen_ = Seen{version, Clock::now()};
  const std::string holder = text(lease["spec"], "holderIdentity");
  if (holder == wish_.identity) return false;
  const bool is_free = holder.empty() || Clock::now() > seen_->since + wish_.duration;
  if (is_free && !is_held_) return false;
  why_ = is_free ? "the lease was given up or taken by somebody else"
                 : fmt::format("{} has the lease {}/{}", holder, wish_.name_space, wish_.name);
  return true;
}

Election::Turn Election::take(const std::string& method, const std::string& document) {
  std::string path = fmt::format("{}{}/leases", kGroup, wish_.name_space);
  if (method == "PUT") path += "/" + wish_.name;
  const auto answer =
      api_.ask({.method = method, .path = path, .body = document, .limit = write_limit()});
  if (answer && answer->is_ok()) return Turn::Held;
  why_ = answer ? error_of(*answer, "take the lease " + wish_.name_space + "/" + wish_.name).message
                : answer.error().message;
  return Turn::Unknown;  // who was faster the next look says
}

/// So that the next one need not wait for its end.
void Election::release() {
  const std::string path = fmt::format("{}{}/leases/{}", kGroup, wish_.name_space, wish_.name);
  const auto found = api_.ask({.path = path, .limit = write_limit()});
  if (!found || !found->is_ok()) return;  // it ends by itself
  Json lease = Json::parse(found->body, nullptr, false);
  if (!lease.is_object() || !lease["spec"].is_object() ||
      text(lease["spec"], "holderIdentity") != wish_.identity) {
    return;
  }
  lease["spec"]["holderIdentity"] = "";
  lease["spec"]["leaseDurationSeconds"] = 1;
  (void)api_.ask({.method = "PUT", .path = path, .body = lease.dump(), .limit = write_limit()});
}

}  // namespace gflow::kube
