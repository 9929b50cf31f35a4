// SPDX-License-Identifier: Apache-2.0
#include "kube/reflector.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "base/text.h"
#include "kube/fields.h"

namespace gflow::kube {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;

constexpr auto kWatch = 300s;   // how long the server is asked to keep one
constexpr auto kSilence = 90s;  // a bookmark comes each minute
constexpr auto kListLimit = 60s;
constexpr int kStale = 410;

/// Without what says who wrote which field, which is half of an object and nothing here.
Json without_managers(std::string_view text) {
  const auto keep = [](int /*depth*/, Json::parse_event_t event, Json& value) {
    return event != Json::parse_event_t::key || value != "managedFields";
  };
  return Json::parse(text, keep, false);
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.';
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

}  // namespace

void Reflector::run() {
  bool needs_list = true;
  while (true) {
    if (needs_list) {
      if (auto listed = list(); !listed) {
        trouble(listed.error().message, listed.error().code == Code::Permission);
        if (!pause()) return;
        continue;
      }
      failures_ = 0;
    }
    heard_ = false;
    const WatchEnd ended = watch();
    if (heard_) failures_ = 0;
    needs_list = ended == WatchEnd::Expired;
    if ((ended == WatchEnd::Broken || !heard_) && !pause()) return;
    {
      const std::lock_guard lock(mutex_);
      if (is_stopped_) return;
    }
    listener_.restarts(ended);
  }
}

void Reflector::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
  }
  stopped_changed_.notify_all();
  api_.cancel();
}

bool Reflector::pause() {
  const auto most = std::min<std::chrono::milliseconds>(100ms * (1 << std::min(failures_, 6)), 5s);
  ++failures_;
  std::unique_lock lock(mutex_);
  return !stopped_changed_.wait_for(lock, most, [this] { return is_stopped_; });
}

void Reflector::trouble(const std::string& what, bool is_forbidden) {
  const std::unique_lock lock(mutex_);
  if (is_stopped_) return;
  listener_.trouble(what);
  if (is_forbidden && listener_.forbidden) listener_.forbidden();
}

void Reflector::works() {
  const std::unique_lock lock(mutex_);
  if (!is_stopped_ && listener_.works) listener_.works();
}

Result<Answer> Reflector::page(const std::string& next) {
  Request request{
      .path = fmt::format("{}?limit={}{}", followed_.path, followed_.page, followed_.selector),
      .limit = kListLimit};
  if (!next.empty()) request.path += "&continue=" + escaped(next);
  return api_.ask(request);
}

Result<void> Reflector::list() {
  const std::string doing = "list " + followed_.path;
  std::vector<Json> objects;
  std::string next;
  std::string version;
  do {
    const auto answer = page(next);
    if (!answer) return with_context(answer.error(), doing);
    if (answer->status == kStale && !next.empty()) {  // it was read too slowly
      objects.clear();
      next.clear();
      version.clear();
      continue;
    }
    if (!answer->is_ok()) return std::unexpected(error_of(*answer, doing, followed_.rights));
    Json document = without_managers(answer->body);
    if (!document.is_object() || !document["items"].is_array()) {
      return fail(Code::Failure, doing + ": the answer is no list");
    }
    for (Json& object : document["items"]) objects.push_back(std::move(object));
    if (listener_.listed) listener_.listed(objects.size());
    version = text(part(document, "metadata"), "resourceVersion");
    next = text(part(document, "metadata"), "continue");
  } while (!next.empty() || version.empty());

  std::set<std::string> there;
  for (const Json& object : objects) there.insert(text(part(object, "metadata"), "uid"));
  keep_only(there);  // first, as it was: what came since may want the room of what is gone
  for (const Json& object : objects) put(object);
  version_ = version;
  if (!is_synced_) listener_.synced();
  is_synced_ = true;
  works();
  return {};
}

void Reflector::keep_only(const std::set<std::string>& there) {
  for (auto known = versions_.begin(); known != versions_.end();) {
    const bool is_gone = !there.contains(known->first);
    if (is_gone) listener_.gone(known->first);
    known = is_gone ? versions_.erase(known) : std::next(known);
  }
}

void Reflector::put(const Json& object) {
  std::string& known = versions_[text(part(object, "metadata"), "uid")];
  std::string version = text(part(object, "metadata"), "resourceVersion");
  if (known == version) return;
  known = std::move(version);
  listener_.put(object);
}

WatchEnd Reflector::watch() {
  const Request request{
      .path =
          fmt::format("{}?watch=1&allowWatchBookmarks=true&timeoutSeconds={}&resourceVersion={}{}",
                      followed_.path,
                      std::chrono::seconds(kWatch).count(),
                      escaped(version_),
                      followed_.selector)};
  WatchEnd ended = WatchEnd::Quiet;
  const auto answer = api_.follow(
      request,
      kSilence,
      [this, &ended](std::string_view line) { return take(line, ended); },
      [this] { works(); });
  if (!answer) {
    trouble(fmt::format("watch {}: {}", followed_.path, answer.error().message));
    return WatchEnd::Broken;
  }
  if (answer->is_ok()) return ended;
  const Error error = error_of(*answer, "watch " + followed_.path, followed_.rights);
  trouble(error.message);
  const bool is_ahead = error.message.contains("Too large resource version");
  return answer->status == kStale || is_ahead ? WatchEnd::Expired : WatchEnd::Broken;
}

bool Reflector::take(std::string_view line, WatchEnd& ended) {
  if (line.empty()) return true;
  const Json event = without_managers(line);
  if (!event.is_object() || !event.contains("object")) {
    ended = WatchEnd::Expired;  // what it said is lost: look at all
    return false;
  }
  heard_ = true;
  const Json& object = event["object"];
  const std::string type = text(event, "type");
  if (type == "ERROR") {
    const int code = number(object, "code");
    trouble(
        fmt::format("watch {}: {} ({})", followed_.path, printable(text(object, "message")), code));
    ended = code == kStale ? WatchEnd::Expired : WatchEnd::Broken;
    return false;
  }
  const std::string uid = text(part(object, "metadata"), "uid");
  if (type == "ADDED" || type == "MODIFIED") put(object);
  if (type == "DELETED") {
    versions_.erase(uid);
    listener_.gone(uid);
  }
  version_ = text(part(object, "metadata"), "resourceVersion");
  return true;
}

}  // namespace gflow::kube
