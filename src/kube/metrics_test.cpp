// SPDX-License-Identifier: Apache-2.0
#include "kube/metrics.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace gflow::kube {
namespace {

bool shows(const Metrics& metrics, const std::string& line) {
  return ("\n" + metrics.text()).contains("\n" + line + "\n");
}

std::string watch_restarts(std::string_view resource, std::string_view reason, int count) {
  return fmt::format(
      R"(gflow_kube_watch_restarts_total{{scheduler="gflow",reason="{}",resource="{}"}} {})",
      reason,
      resource,
      count);
}

TEST(KubeMetrics, HaveNoSeriesOfWhatIsNotKnown) {
  Metrics metrics("gflow");
  EXPECT_TRUE(shows(metrics, "gflow_kube_leader{scheduler=\"gflow\"} 0")) << metrics.text();
  for (const auto* unknown : {"gflow_kube_nodes", "gflow_kube_gpus", "gflow_kube_pods_waiting"}) {
    EXPECT_FALSE(metrics.text().contains(unknown)) << unknown;
  }
  Counts counts;
  counts.nodes = 2;
  counts.waiting = {3, 0, 0, 1};
  counts.gpus = {5'000, 10'000, 0, 25'000};
  metrics.set(counts);
  metrics.leads();
  for (const auto* line : {R"(gflow_kube_leader{scheduler="gflow"} 1)",
                           R"(gflow_kube_nodes{scheduler="gflow"} 2)",
                           R"(gflow_kube_pods_waiting{scheduler="gflow",reason="room"} 3)",
                           R"(gflow_kube_pods_waiting{scheduler="gflow",reason="node"} 0)",
                           R"(gflow_kube_pods_waiting{scheduler="gflow",reason="binding"} 1)",
                           R"(gflow_kube_gpus{scheduler="gflow",state="held"} 0.5)",
                           R"(gflow_kube_gpus{scheduler="gflow",state="others"} 1)",
                           R"(gflow_kube_gpus{scheduler="gflow",state="free"} 2.5)"}) {
    EXPECT_TRUE(shows(metrics, line)) << line << "\n" << metrics.text();
  }
}

TEST(KubeMetrics, CountersBeginAtNothing) {
  Metrics metrics("gflow");
  for (const char* kind : kBindFailureNames) {
    EXPECT_TRUE(
        shows(metrics,
              fmt::format("gflow_kube_bind_failures_total{{scheduler=\"gflow\",reason=\"{}\"}} 0",
                          kind)));
  }
  for (const auto* kind : {"quiet", "broken", "expired"}) {
    for (const auto* resource : {"nodes", "pods"}) {
      EXPECT_TRUE(shows(metrics, watch_restarts(resource, kind, 0))) << metrics.text();
    }
  }
  metrics.bind_failed(BindFailure::Conflict);
  metrics.bound(std::chrono::milliseconds(20));
  metrics.evicted();
  metrics.eviction_refused(EvictionRefusal::Budget);
  metrics.decided(std::chrono::microseconds(700));
  for (const auto* line :
       {R"(gflow_kube_bind_failures_total{scheduler="gflow",reason="conflict"} 1)",
        R"(gflow_kube_pods_bound_total{scheduler="gflow"} 1)",
        R"(gflow_kube_scheduling_duration_seconds_bucket{scheduler="gflow",le="0.01"} 0)",
        R"(gflow_kube_scheduling_duration_seconds_bucket{scheduler="gflow",le="0.05"} 1)",
        R"(gflow_kube_evictions_total{scheduler="gflow"} 1)",
        R"(gflow_kube_eviction_refusals_total{scheduler="gflow",reason="budget"} 1)",
        R"(gflow_kube_eviction_refusals_total{scheduler="gflow",reason="other"} 0)",
        R"(gflow_kube_decision_duration_seconds_count{scheduler="gflow"} 1)"}) {
    EXPECT_TRUE(shows(metrics, line)) << line << "\n" << metrics.text();
  }
}

TEST(KubeMetrics, EachKindHasItsName) {
  Metrics metrics("gflow");
  struct Ended {
    Watched what;
    WatchEnd how;
    const char* what_name;
    const char* how_name;
  };
  for (const Ended& each : {Ended{Watched::Nodes, WatchEnd::Quiet, "nodes", "quiet"},
                            Ended{Watched::Pods, WatchEnd::Broken, "pods", "broken"},
                            Ended{Watched::Pods, WatchEnd::Expired, "pods", "expired"}}) {
    metrics.watch_ended(each.what, each.how);
    EXPECT_TRUE(shows(metrics, watch_restarts(each.what_name, each.how_name, 1))) << each.how_name;
  }
  struct Failed {
    BindFailure how;
    const char* name;
  };
  for (const Failed& each : {Failed{BindFailure::Conflict, "conflict"},
                             Failed{BindFailure::Refused, "refused"},
                             Failed{BindFailure::Server, "server"},
                             Failed{BindFailure::Unanswered, "unanswered"}}) {
    metrics.bind_failed(each.how);
    EXPECT_TRUE(
        shows(metrics,
              fmt::format("gflow_kube_bind_failures_total{{scheduler=\"gflow\",reason=\"{}\"}} 1",
                          each.name)));
  }
}

}  // namespace
}  // namespace gflow::kube
