// SPDX-License-Identifier: Apache-2.0
#include "kube/writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "kube/claims.h"
#include "kube/fields.h"
#include "os/clock.h"
#include "os/random.h"

namespace gflow::kube {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;

constexpr auto kTellPause = 5s;
constexpr auto kMostPause = 5s;  // between two tries of a binding
constexpr auto kEvictPause = 500ms;
constexpr int kMostTries = 5;                 // of an eviction
constexpr std::size_t kMostBacklog = 10'000;  // behind which nobody looks for an Event
constexpr std::size_t kMostNote = 1024;       // of an Event

std::string dumped(const Json& document) {
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// What requests and events say of a pod that may have changed, or gone, since.
template <typename Named>
Pod pod_named(const Named& one) {
  Pod pod;
  pod.uid = one.uid;
  pod.name_space = one.name_space;
  pod.name = one.name;
  return pod;
}

BindFailure failure_of(const Result<Answer>& answer) {
  if (!answer) return BindFailure::Unanswered;
  if (answer->status == 409) return BindFailure::Conflict;
  return answer->is_passing() ? BindFailure::Server : BindFailure::Refused;
}

/// Whether it is a disruption budget that refuses, and not a server that has too much to do.
bool is_of_budget(const Answer& answer) {
  const Json status = Json::parse(answer.body, nullptr, false);
  const Json& causes = part(part(status, "details"), "causes");
  return causes.is_array() && std::ranges::any_of(causes, [](const Json& cause) {
           return text(cause, "reason") == "DisruptionBudget";
         });
}

Asks asks(Api& api) {
  return [&api](const Request& request) { return api.ask(request); };
}

}  // namespace

void Writer::bind(Bind bind, std::function<void(Bound)> done) {
  if (!bind.claims.empty()) {
    return workers_.urgent([this, bind = std::move(bind), done = std::move(done)](Api& api) {
      write_claims(api, bind, done);
    });
  }
  workers_.urgent([this, binding = Binding{std::move(bind), std::move(done)}](Api& api) {
    ++uncertain_;
    binding.bind.devices.empty() ? try_binding(api, binding) : try_devices(api, binding);
  });
}

WriteLease Writer::lease() const {
  return {[this] { return election_.may_write(); },
          std::min<std::chrono::milliseconds>(election_.write_limit(), 5s)};
}

/// Once more, later.
void Writer::again(Binding binding, void (Writer::*what)(Api&, Binding)) {
  const std::chrono::milliseconds pause = binding.pause;
  binding.pause = std::min<std::chrono::milliseconds>(pause * 2, kMostPause);
  workers_.urgent_after(pause, [this, what, binding = std::move(binding)](Api& other) {
    (this->*what)(other, binding);
  });
}

/// What its ResourceClaims are given, however often that takes; then it is bound.
void Writer::try_devices(Api& api, Binding binding) {
  if (!election_.may_write()) return;
  const DevicesWritten written = write_devices(asks(api), binding.bind, lease());
  binding.may_have_devices = binding.may_have_devices || written.may_be_written;
  const std::string doing = fmt::format("{}/{}", binding.bind.name_space, binding.bind.name);
  switch (written.how) {
    case DevicesWritten::How::All:
      binding.pause = 100ms;
      return try_binding(api, std::move(binding));
    case DevicesWritten::How::Ended:
      return;
    case DevicesWritten::How::Refused:
      log_.warn(fmt::format("{}: {}", doing, written.why));
      binding.refused = written.why;
      return give_back(api, std::move(binding));
    case DevicesWritten::How::Unknown:
      break;
  }
  log_.warn_again(fmt::format("{}: {}", doing, written.why));
  const Standing standing = standing_of(api, binding.bind);
  if (standing == Standing::Elsewhere || standing == Standing::Runs) {
    binding.refused = written.why;
    return give_back(api, std::move(binding));
  }
  again(std::move(binding), &Writer::try_devices);
}

/// Of a pod that is not bound, however often that takes. One that somebody bound all the same uses
/// what it has.
void Writer::give_back(Api& api, Binding binding) {
  if (!election_.may_write()) return;
  if (binding.may_have_devices) {
    const Standing standing = standing_of(api, binding.bind);
    if (standing == Standing::Unknown) return again(std::move(binding), &Writer::give_back);
    if (standing == Standing::Elsewhere || standing == Standing::Waits) {
      const DevicesWritten given = give_back_devices(asks(api), binding.bind, lease());
      if (given.how == DevicesWritten::How::Ended) return;
      if (!given.why.empty()) log_.warn_again(given.why);
      if (given.how == DevicesWritten::How::Unknown) {
        return again(std::move(binding), &Writer::give_back);
      }
    }
  }
  --uncertain_;
  binding.done({binding.bind.uid, binding.refused, binding.may_have_devices});
}

void Writer::write_claims(Api& api, const Bind& bind, const std::function<void(Bound)>& done) {
  for (const ClaimStep& step : bind.claims) {
    if (!election_.may_write()) return;
    const auto asked = ask_for_claim(api, bind, step);
    if (asked) continue;
    log_.warn(fmt::format("{}/{}: {}", bind.name_space, bind.name, asked.error().message));
    return done({bind.uid, asked.error().message});
  }
  done({bind.uid, ""});
}

void Writer::try_binding(Api& api, Binding binding) {
  if (!election_.may_write()) return;
  const Bind& bind = binding.bind;
  const auto answer = ask_to_bind(api, bind, lease().limit);
  if (!answer || !answer->is_ok()) metrics_.bind_failed(failure_of(answer));
  const Standing standing = standing_after(api, bind, answer, binding.tries);
  if (standing == Standing::There) {
    metrics_.bound(os::now().mono - bind.seen);
    tell_bound(bind);
    --uncertain_;
    return binding.done({bind.uid, "", true});
  }
  const std::string why =
      answer ? error_of(*answer, fmt::format("bind {}/{}", bind.name_space, bind.name)).message
             : "nobody answered its binding, and it is gone or on another node by now";
  if (standing == Standing::Elsewhere || standing == Standing::Runs) {
    log_.warn(why);
    binding.refused = why;
    binding.pause = 100ms;
    return give_back(api, std::move(binding));
  }
  log_.warn_again(answer ? why : "bind: " + answer.error().message);
  std::chrono::milliseconds pause = binding.pause;
  if (answer && answer->retry_after) {
    pause = std::max<std::chrono::milliseconds>(pause, *answer->retry_after);
  }
  binding.pause = std::min<std::chrono::milliseconds>(pause * 2, kMostPause);
  workers_.urgent_after(
      std::min<std::chrono::milliseconds>(pause, kMostPause),
      [this, binding = std::move(binding)](Api& other) { try_binding(other, binding); });
}

void Writer::tell_bound(const Bind& bind) {
  log_.info(bound_text(bind));
  if (workers_.backlog() > kMostBacklog) return;
  const Pod pod = pod_named(bind);
  const std::string note = fmt::format("Assigned {} to {}", pod.full_name(), bind.node);
  workers_.later([this, pod, note](Api& api) { event(api, pod, {"Scheduled", "Binding", note}); });
}

void Writer::warn(const Unnamed& unnamed) {
  const Pod pod = pod_named(unnamed);
  const std::string note = fmt::format(
      "it is on {} without a word of which GPUs it has there ({}): {} of the node {} given to "
      "nobody "
      "else while it is there",
      unnamed.node,
      kAllocationAnnotation,
      unnamed.gpus,
      unnamed.gpus == 1 ? "is" : "are");
  log_.warn(pod.full_name() + ": " + note);
  if (workers_.backlog() > kMostBacklog) return;
  workers_.later([this, pod, note](Api& api) {
    event(api, pod, {"AllocationUnknown", "Scheduling", note, true});
  });
}

void Writer::evict(Evict evict, std::function<void(EvictionRefused)> refused) {
  workers_.urgent([this, eviction = Eviction{std::move(evict), std::move(refused)}](Api& api) {
    try_eviction(api, eviction);
  });
}

/// Asked for again it is the same eviction, of this very pod.
void Writer::try_eviction(Api& api, Eviction eviction) {
  if (!election_.may_write()) return;
  const Evict& evict = eviction.evict;
  const Json document = {{"apiVersion", "policy/v1"},
                         {"kind", "Eviction"},
                         {"metadata", {{"name", evict.name}, {"namespace", evict.name_space}}},
                         {"deleteOptions", {{"preconditions", {{"uid", evict.uid}}}}}};
  const auto answer =
      api.ask({.method = "POST",
               .path = pod_path(evict.name_space, evict.name) + "/eviction",
               .body = dumped(document),
               .limit = std::min<std::chrono::milliseconds>(election_.write_limit(), kMostPause)});
  const Pod pod = pod_named(evict);
  if (answer && answer->is_ok()) {
    metrics_.evicted();
    log_.info(fmt::format("evicted {} for a pod of {}", pod.full_name(), evict.by));
    const std::string note = fmt::format("Makes room for a pod of namespace {}", evict.by);
    return evict.is_move ? event(api, pod, {"Moved", "Moving", note})
                         : event(api, pod, {"Preempted", "Preempting", note});
  }
  if (answer && answer->status == 404) return;  // it is gone
  const Error error = answer ? error_of(*answer, "evict " + pod.full_name()) : answer.error();
  log_.warn_again(error.message);
  // A conflict is with another pod of the name, whose end is told, or with a change of this one.
  const bool is_again = !answer || answer->status == 409 || answer->is_passing();
  const bool is_budget = answer && is_of_budget(*answer);
  if (is_budget || !is_again || ++eviction.tries >= kMostTries) {
    metrics_.eviction_refused(is_budget ? EvictionRefusal::Budget : EvictionRefusal::Other);
    return eviction.refused({is_budget, error.message, !is_budget && is_again});
  }
  workers_.urgent_after(kEvictPause, [this, eviction = std::move(eviction)](Api& other) {
    try_eviction(other, eviction);
  });
}

void Writer::tell(MovesToTell told, std::string path, std::function<void(bool)> done) {
  workers_.urgent([this, telling = Telling{std::move(told), std::move(path), std::move(done)}](
                      Api& api) { try_telling(api, telling); });
}

/// After a conflict: whether it stands there; empty: it is to be written there, or to be looked at
/// once more.
std::optional<bool> Writer::look_again(Api& api, Telling& telling) {
  const auto there = api.ask({.path = telling.path});
  if (!there || !there->is_ok()) {
    log_.warn_again(there ? error_of(*there, "read " + telling.path, kMovesRights).message
                          : there.error().message);
    return std::nullopt;
  }
  const MovesAnswer& answer = telling.told.answer;
  const MovesRecord record = moves_record_of(Json::parse(there->body, nullptr, false));
  if (!record.asked || record.asked->id != answer.id) return false;
  if (record.answer == answer) return true;
  telling.told.version = record.version;
  return std::nullopt;
}

void Writer::try_telling(Api& api, Telling telling) {
  if (!election_.may_write()) return;
  const MovesAnswer& answer = telling.told.answer;
  const std::string doing = "answer who asked for moves for pod " + telling.told.pods;
  const auto written = api.ask({.method = "PATCH",
                                .path = telling.path,
                                .body = patch_to_answer(answer, telling.told.version),
                                .content_type = "application/merge-patch+json",
                                .limit = election_.write_limit()});
  if (written && written->is_ok()) {
    log_.info(fmt::format("moves for pod {}: {}{}",
                          telling.told.pods,
                          kMovesStates.at(static_cast<std::size_t>(answer.state)),
                          answer.why.empty() ? "" : ", as " + answer.why));
    return telling.done(true);
  }
  const int status = written ? written->status : 0;
  if (status == 404) return telling.done(false);
  if (status == 409) {
    const auto is_there = look_again(api, telling);
    if (is_there) return telling.done(*is_there);
  } else {
    log_.warn_again(written ? error_of(*written, doing, kMovesRights).message
                            : written.error().message);
  }
  workers_.urgent_after(kEvictPause, [this, telling = std::move(telling)](Api& other) {
    try_telling(other, telling);
  });
}

void Writer::tell(const Waiting& waiting) {
  const Pod& pod = *waiting.pod;
  News news{pod_named(pod), waiting.why, waiting.reason};
  news.pod.version = pod.version;
  news.pod.told = pod.told;
  {
    const std::lock_guard lock(mutex_);
    if (!news_.insert_or_assign(pod.uid, std::move(news)).second) return;  // somebody is on the way
  }
  workers_.later([this, uid = pod.uid](Api& api) {
    std::unique_lock lock(mutex_);
    const auto node = news_.extract(uid);
    lock.unlock();
    tell_now(api, node.mapped());
  });
}

void Writer::tell_now(Api& api, const News& news) {
  if (!election_.may_write()) return;
  const Pod& pod = news.pod;
  Json condition = {{"type", "PodScheduled"},
                    {"status", "False"},
                    {"reason", news.reason},
                    {"message", news.why}};
  if (pod.told.empty()) condition["lastTransitionTime"] = rfc3339(os::now().wall);
  // Of this very pod as it was then: another of its name, or one that was bound meanwhile, is a
  // conflict.
  Json metadata = {{"uid", pod.uid}};
  if (!pod.version.empty()) metadata["resourceVersion"] = pod.version;
  const Json patch = {{"metadata", std::move(metadata)},
                      {"status", {{"conditions", Json::array({std::move(condition)})}}}};
  const auto answer = api.ask({.method = "PATCH",
                               .path = pod_path(pod.name_space, pod.name) + "/status",
                               .body = dumped(patch),
                               .content_type = "application/strategic-merge-patch+json",
                               .limit = election_.write_limit()});
  if (!answer) log_.warn_again("tell why pods wait: " + answer.error().message);
  const bool is_gone = answer && (answer->status == 404 || answer->status == 409);
  if (!answer || is_gone) return;
  if (!answer->is_ok()) {
    log_.warn_again(error_of(*answer, "tell why pods wait").message);
    return;
  }
  event(api, pod, {"FailedScheduling", "Scheduling", news.why, true});
}

void Writer::event(Api& api, const Pod& pod, const EventText& text) {
  if (!election_.may_write()) return;
  const std::string now = rfc3339(os::now().wall);
  const Json document = {
      {"apiVersion", "events.k8s.io/v1"},
      {"kind", "Event"},
      {"metadata",
       {{"name", fmt::format("{}.{}", pod.name.substr(0, 200), os::random_hex(8))},
        {"namespace", pod.name_space}}},
      {"eventTime", now.substr(0, now.size() - 1) + "000Z"},
      {"reportingController", "gflow-kube"},
      {"reportingInstance", instance_.substr(0, 128)},
      {"action", text.action},
      {"reason", text.reason},
      {"regarding",
       {{"apiVersion", "v1"},
        {"kind", "Pod"},
        {"name", pod.name},
        {"namespace", pod.name_space},
        {"uid", pod.uid}}},
      {"note", text.note.substr(0, kMostNote)},
      {"type", text.is_warning ? "Warning" : "Normal"}};
  const auto answer =
      api.ask({.method = "POST",
               .path = fmt::format("/apis/events.k8s.io/v1/namespaces/{}/events", pod.name_space),
               .body = dumped(document),
               .limit = election_.write_limit()});
  // The condition says it, too; events are for people who look just now.
  if (!answer) log_.warn_again("write events: " + answer.error().message);
  if (answer && !answer->is_ok() && answer->status != 404) {
    log_.warn_again(error_of(*answer, "write events").message);
  }
}

std::vector<Waiting> Teller::due(const std::vector<Waiting>& waiting, MonoTime now) {
  ++round_;
  has_more_ = false;
  std::vector<Waiting> due;
  for (const Waiting& one : waiting) {
    const auto [at, is_new] = told_.try_emplace(one.pod->uid);
    Told& told = at->second;
    told.round = round_;
    // What the pod itself says counts: a request may have come to nothing.
    if (one.pod->told == one.why) continue;
    if (!is_new && now - told.at < kTellPause) {
      has_more_ = true;
      continue;
    }
    told.at = now;
    has_more_ = true;  // until it is seen to have arrived
    due.push_back(one);
  }
  std::erase_if(told_, [this](const auto& one) { return one.second.round != round_; });
  return due;
}

}  // namespace gflow::kube
