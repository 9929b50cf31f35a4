// SPDX-License-Identifier: Apache-2.0
#include "slurm/elsewhere.h"

#include <array>
#include <string_view>

#include "base/translate.h"

namespace gflow::slurm {
namespace {

constexpr std::string_view kLeases = tr_later("GPUs of Slurm are held by jobs: 'salloc'");

constexpr auto kElsewhere = std::to_array<server::Elsewhere>({
    {"POST", "/api/v1/jobs/cancel", ""},
    {"POST", "/api/v1/jobs/hold", ""},
    {"POST", "/api/v1/jobs/release", ""},
    {"POST", "/api/v1/jobs/check", tr_later("'sbatch --test-only' says what it would do")},
    {"POST",
     "/api/v1/jobs/signal",
     tr_later("'scancel --full --signal=USR1 NUMBER' sends a signal to a job")},
    {"POST", "/api/v1/jobs/", tr_later("'scontrol suspend', 'requeue' and 'update' change a job")},
    {"PATCH", "/api/v1/jobs", tr_later("'scontrol update JobId=NUMBER' changes a job")},
    {"",
     "/api/v1/defrag",
     tr_later("Slurm chooses where a job runs; 'scontrol requeue NUMBER' makes room")},
    {"GET", "/api/v1/statistics", tr_later("'sreport' and 'sacct' know what ended")},
    {"POST",
     "/api/v1/drain",
     tr_later("'scontrol update NodeName=NODE State=DRAIN' closes a node")},
    {"POST", "/api/v1/daemon", tr_later("'scontrol' controls slurmctld")},
    {"", "/api/v1/tokens", tr_later("who may see what is said by Slurm")},
    {"GET", "/api/v1/events", tr_later("'sacct' tells what happened to jobs")},
    {"GET", "/metrics", tr_later("'sdiag' has the figures of slurmctld")},
    {"", "/api/v1/gpu/allocate", kLeases},
    {"", "/api/v1/gpu/allocations", kLeases},
    {"POST", "/api/v1/gpu/setup-", kLeases},
    {"DELETE", "/api/v1/gpu/", kLeases},
});

}  // namespace

std::span<const server::Elsewhere> elsewhere_of_slurm() { return kElsewhere; }

}  // namespace gflow::slurm
