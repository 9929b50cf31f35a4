// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <thread>

#include "base/result.h"
#include "kube/api.h"
#include "kube/health.h"
#include "kube/log.h"

namespace gflow::kube {

struct LeaseWish {
  std::string name_space;
  std::string name;
  std::string identity;  ///< who holds it, unique
  /// Without being renewed, others may take it. The same for all that stand for it.
  std::chrono::seconds duration{15};
};

/// Of several that run, one decides: who holds a Lease. Whether another's has run out is judged by
/// the clock of this machine, since it was last seen to change.
class Election {
 public:
  /// `health` is told whether it stands by for the lease as it should, until it has it.
  Election(
      const Access& access, Credentials& credentials, LeaseWish wish, Log& log, Health& health);
  ~Election();
  Election(const Election&) = delete;
  Election& operator=(const Election&) = delete;

  /// Stands for election until it is won; then renews it, and calls `lost` once if that fails for
  /// two thirds of its duration. `won` and `lost` are called by a thread of this.
  void run(std::function<void()> won, std::function<void(const std::string& why)> lost);
  /// At the end the lease runs out and is not given up: something may still come of what was asked.
  void keep() { is_kept_ = true; }
  /// Whether something that takes a third of the duration may be begun: it ends before another can
  /// have the lease.
  [[nodiscard]] bool may_write() const;
  [[nodiscard]] std::chrono::milliseconds write_limit() const {
    return std::chrono::milliseconds(wish_.duration) / 3;
  }

 private:
  using Clock = std::chrono::steady_clock;
  enum class Turn { Held, Others, Unknown };
  struct Seen {
    std::string version;
    Clock::time_point since;
  };

  [[nodiscard]] Turn turn();
  void tell(Turn turn);
  [[nodiscard]] bool is_others(const nlohmann::json& lease);
  [[nodiscard]] Turn take(const std::string& method, const std::string& document);
  void stand(const std::function<void()>& won, const std::function<void(const std::string&)>& lost);
  void release();
  [[nodiscard]] bool pause(std::chrono::milliseconds time);

  Api api_;
  LeaseWish wish_;
  Log& log_;
  Health& health_;
  std::optional<Seen> seen_;
  bool is_held_ = false;
  bool is_told_ = false;  ///< whose it is
  std::atomic<bool> is_kept_ = false;
  std::string why_;
  std::atomic<Clock::time_point> renewed_{};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ends_ = false;
  std::jthread thread_;
};

}  // namespace gflow::kube
