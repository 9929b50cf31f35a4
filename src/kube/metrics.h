// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/labels.h>
#include <prometheus/registry.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "kube/counts.h"
#include "kube/reflector.h"

namespace gflow::kube {

/// How a try to bind a pod failed.
enum class BindFailure {
  Conflict,    ///< with another, or with a change of the pod
  Refused,     ///< by a policy, or for want of a right; or the pod is gone
  Server,      ///< it is busy, or has a bad time
  Unanswered,  ///< nobody knows whether it was done, so the pod is asked
};
constexpr std::array kBindFailureNames = {"conflict", "refused", "server", "unanswered"};
static_assert(kBindFailureNames.size() == static_cast<std::size_t>(BindFailure::Unanswered) + 1);

/// By what an eviction is refused.
enum class EvictionRefusal { Budget, Other };
constexpr std::array kEvictionRefusalNames = {"budget", "other"};
static_assert(kEvictionRefusalNames.size() == static_cast<std::size_t>(EvictionRefusal::Other) + 1);

/// What is followed by a watch.
enum class Watched { Nodes, Pods, Limits, Groups, NameSpaces, Storage, Devices };
constexpr std::array kWatchedNames = {
    "nodes", "pods", "configmaps", "podgroups", "namespaces", "storage", "devices"};
static_assert(kWatchedNames.size() == static_cast<std::size_t>(Watched::Devices) + 1);

/// What is counted for Prometheus, by any thread: docs/cluster.md lists it. As many series whatever
/// the cluster: none is of a pod, a node or a namespace.
class Metrics {
 public:
  /// `scheduler`: the schedulerName of the pods that are counted, which is a label of each series.
  explicit Metrics(std::string scheduler);

  void leads() { leader_.Set(1); }
  /// A decision of the engine: all that was told since the one before.
  void decided(std::chrono::duration<double> took) { decision_.Observe(took.count()); }
  /// `seen`: when it could be decided on for the first time.
  void bound(std::chrono::duration<double> since_seen);
  void bind_failed(BindFailure how);
  void evicted() { evictions_.Increment(); }
  void eviction_refused(EvictionRefusal by);
  void watch_ended(Watched resource, WatchEnd how);
  /// What there is now; before, there are no series of that.
  void set(const Counts& counts);

  /// Prometheus's text format, 0.0.4.
  [[nodiscard]] std::string text() const;

 private:
  template <typename Metric>
  using Family = prometheus::Family<Metric>;
  [[nodiscard]] Family<prometheus::Gauge>& gauges(const std::string& name, const std::string& help);
  [[nodiscard]] Family<prometheus::Counter>& counters(const std::string& name,
                                                      const std::string& help);
  [[nodiscard]] prometheus::Histogram& histogram(const std::string& name,
                                                 const std::string& help,
                                                 const std::vector<double>& bounds);

  prometheus::Labels labels_;
  prometheus::Registry registry_;
  prometheus::Gauge& leader_;
  Family<prometheus::Gauge>& nodes_;
  Family<prometheus::Gauge>& gpus_;
  Family<prometheus::Gauge>& waiting_;
  prometheus::Histogram& scheduling_;
  prometheus::Histogram& decision_;
  prometheus::Counter& bound_;
  Family<prometheus::Counter>& bind_failures_;
  prometheus::Counter& evictions_;
  Family<prometheus::Counter>& eviction_refusals_;
  Family<prometheus::Counter>& watch_ends_;
};

}  // namespace gflow::kube
