// SPDX-License-Identifier: Apache-2.0
#include "kube/elsewhere.h"

#include <array>
#include <string_view>

#include "base/translate.h"

namespace gflow::kube {
namespace {

constexpr std::string_view kLeases = tr_later(
    "GPUs of a cluster are held by pods, which gbatch and 'kubectl apply' make (docs/cluster.md)");
constexpr std::string_view kHistory = tr_later(
    "of jobs that ended a cluster keeps no history: 'gqueue -a' shows those that are still "
    "there");

constexpr auto kElsewhere = std::to_array<server::Elsewhere>({
    {"POST", "/api/v1/jobs/cancel", ""},
    {"POST", "/api/v1/jobs/hold", ""},
    {"POST", "/api/v1/jobs/release", ""},
    {"POST",
     "/api/v1/jobs/check",
     tr_later("what a cluster would say of a job is known when it is submitted: 'gbatch --hold' "
              "submits one that does not start")},
    {"POST",
     "/api/v1/jobs/",
     tr_later("pods are not suspended or sent signals: 'kubectl delete pod NAME -n NAMESPACE' "
              "ends one, 'kubectl edit pod NAME -n NAMESPACE' changes one")},
    {"PATCH",
     "/api/v1/jobs",
     tr_later("a pod is changed with 'kubectl edit pod NAME -n NAMESPACE', as far as Kubernetes "
              "lets it be")},
    {"GET", "/api/v1/statistics", kHistory},
    {"POST",
     "/api/v1/drain",
     tr_later("nodes are closed with 'kubectl cordon NODE' and opened with 'kubectl uncordon "
              "NODE'")},
    {"POST",
     "/api/v1/daemon",
     tr_later("the scheduler of a cluster is a Deployment: 'kubectl "
              "-n gflow-system get deployment gflow-kube'")},
    {"",
     "/api/v1/tokens",
     tr_later("who may see a cluster is said by its rights: "
              "packaging/kubernetes/rbac-viewer.yaml")},
    {"GET",
     "/api/v1/events",
     tr_later("what happens to pods is shown by 'kubectl get events -A "
              "--watch'")},
    {"GET",
     "/metrics",
     tr_later("the metrics are those of the scheduler: 'gflow-kube --listen "
              "ADDRESS:PORT'")},
    {"", "/api/v1/gpu/allocate", kLeases},
    {"", "/api/v1/gpu/allocations", kLeases},
    {"POST", "/api/v1/gpu/setup-", kLeases},
    {"DELETE", "/api/v1/gpu/", kLeases},
});

}  // namespace

std::span<const server::Elsewhere> elsewhere_of_cluster() { return kElsewhere; }

}  // namespace gflow::kube
