// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"
#include "kube/api.h"

namespace gflow::kube {

/// Which objects are followed.
struct Followed {
  std::string path;                            ///< "/api/v1/pods"
  std::string selector;                        ///< "&fieldSelector=..."; "" is all
  int page = 500;                              ///< objects asked for at once
  std::string_view rights = kSchedulerRights;  ///< where those are that it takes
};

/// How a watch ended: as the server said at its beginning, by what broke, or as the server does not
/// remember any more what it goes on from.
enum class WatchEnd { Quiet, Broken, Expired };
constexpr std::array kWatchEndNames = {"quiet", "broken", "expired"};
static_assert(kWatchEndNames.size() == static_cast<std::size_t>(WatchEnd::Expired) + 1);

/// What a reflector tells, in the order of the cluster. Called by its thread.
struct Listener {
  std::function<void(const nlohmann::json& object)> put;  ///< new, or not as it was
  std::function<void(const std::string& uid)> gone;
  std::function<void()> synced;                     ///< all there is was told, for the first time
  std::function<void(const std::string&)> trouble;  ///< a sentence: what does not work now
  std::function<void()> forbidden{};       ///< beside that: a right is missing; empty: nobody asks
  std::function<void()> works{};           ///< it does, after a trouble, too; empty: nobody asks
  std::function<void(WatchEnd)> restarts;  ///< its watch, or all from the list on
  std::function<void(std::size_t)> listed = {};  ///< so many objects of a list have come by now
};

/// What is in the cluster, and what changes: LIST in pages, then WATCH from there on. A watch that
/// ends or breaks is taken up where it was; where the server does not remember that any more (410),
/// all is listed anew, and what changed meanwhile is told, what is gone too.
class Reflector {
 public:
  Reflector(Api& api, Followed followed, Listener listener)
      : api_(api), followed_(std::move(followed)), listener_(std::move(listener)) {}

  /// Until stop().
  void run();
  void stop();

 private:
  [[nodiscard]] Result<void> list();
  [[nodiscard]] Result<Answer> page(const std::string& next);
  [[nodiscard]] WatchEnd watch();
  [[nodiscard]] bool take(std::string_view line, WatchEnd& ended);
  void put(const nlohmann::json& object);
  void keep_only(const std::set<std::string>& there);  ///< uids
  void trouble(const std::string& what, bool is_forbidden = false);
  void works();
  /// The longer the more often in a row; false once it is stopped.
  [[nodiscard]] bool pause();

  Api& api_;
  Followed followed_;
  Listener listener_;
  std::map<std::string, std::string> versions_;  ///< resourceVersion by uid
  std::string version_;                          ///< where the watch goes on
  bool is_synced_ = false;
  bool heard_ = false;  ///< something in this watch
  int failures_ = 0;    ///< in a row
  std::mutex mutex_;
  std::condition_variable stopped_changed_;
  bool is_stopped_ = false;
};

}  // namespace gflow::kube
