// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "kube/api.h"
#include "kube/binding.h"
#include "kube/device_writer.h"
#include "kube/election.h"
#include "kube/log.h"
#include "kube/metrics.h"
#include "kube/scheduler.h"
#include "kube/workers.h"

namespace gflow::kube {

/// What became of a binding, or of what was to be written before it.
struct Bound {
  std::string uid;
  std::string refused;            ///< why it is not bound, or written; "": it is
  bool may_have_devices = false;  ///< of its ResourceClaims something may be written all the same
};

/// What is written to a cluster, by workers. Nothing is once the lease may be another's.
class Writer {
 public:
  /// `instance`: which of several this is.
  Writer(
      Workers& workers, const Election& election, Log& log, Metrics& metrics, std::string instance)
      : workers_(workers),
        election_(election),
        log_(log),
        metrics_(metrics),
        instance_(std::move(instance)) {}

  /// Writes what is to be of its claims, if there are some; or else binds the pod, however often
  /// that takes: where nobody knows what became of a request, the pod says. `done` is called by a
  /// worker, once, or never where the lease is lost.
  void bind(Bind bind, std::function<void(Bound)> done);
  /// Evicts the pod, as its disruption budgets allow; `refused` is called by a worker, once, where
  /// they do not or it cannot be done. That it goes the cluster tells.
  void evict(Evict evict, std::function<void(EvictionRefused)> refused);
  /// What becomes of moves that were asked for. `done` is called by a worker, once, or never where
  /// the lease is lost: whether it is written; it is not where they are asked for no more.
  void tell(MovesToTell told, std::string path, std::function<void(bool is_written)> done);
  /// PodScheduled=False with why, and an Event; what was to be told of the pod before and is not
  /// yet no longer counts.
  void tell(const Waiting& waiting);
  /// In the log, and to whoever looks at the pod.
  void warn(const Unnamed& unnamed);
  /// Bindings that were asked for and whose end nobody knows.
  [[nodiscard]] int uncertain() const { return uncertain_; }

 private:
  /// A binding with what it took so far.
  struct Binding {
    Bind bind;
    std::function<void(Bound)> done;
    BindTries tries{};
    std::chrono::milliseconds pause{100};  ///< before the next try
    bool may_have_devices = false;
    std::string refused{};  ///< why it is not bound
  };
  struct Eviction {
    Evict evict;
    std::function<void(EvictionRefused)> refused;
    int tries = 0;
  };
  struct News {
    Pod pod;  ///< which one and as of when
    std::string why;
    std::string reason;
  };
  void write_claims(Api& api, const Bind& bind, const std::function<void(Bound)>& done);
  void try_devices(Api& api, Binding binding);
  void give_back(Api& api, Binding binding);
  void again(Binding binding, void (Writer::*what)(Api&, Binding));
  [[nodiscard]] WriteLease lease() const;
  void try_binding(Api& api, Binding binding);
  void tell_bound(const Bind& bind);
  void try_eviction(Api& api, Eviction eviction);
  struct Telling {
    MovesToTell told;
    std::string path;  ///< of the ConfigMap
    std::function<void(bool is_written)> done;
  };
  void try_telling(Api& api, Telling telling);
  [[nodiscard]] std::optional<bool> look_again(Api& api, Telling& telling);
  void tell_now(Api& api, const News& news);
  struct EventText {
    std::string reason;
    std::string action;
    std::string note;
    bool is_warning = false;
  };
  void event(Api& api, const Pod& pod, const EventText& text);

  Workers& workers_;
  const Election& election_;
  Log& log_;
  Metrics& metrics_;
  std::string instance_;
  std::atomic<int> uncertain_ = 0;
  std::mutex mutex_;
  std::map<std::string, News> news_;  ///< to be told, by uid
};

/// When a pod is told why it waits: at once where it was told nothing, and where that changed or
/// did not arrive not more often than each five seconds.
class Teller {
 public:
  /// Those of `waiting` that are to be told now.
  [[nodiscard]] std::vector<Waiting> due(const std::vector<Waiting>& waiting, MonoTime now);
  /// Whether some are left for later, or on their way.
  [[nodiscard]] bool has_more() const { return has_more_; }

 private:
  struct Told {
    MonoTime at;
    std::uint64_t round = 0;
  };
  std::map<std::string, Told> told_;  ///< by uid
  std::uint64_t round_ = 0;
  bool has_more_ = false;
};

}  // namespace gflow::kube
