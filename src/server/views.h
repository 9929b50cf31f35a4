// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "api/expected_start.h"
#include "api/snapshot.h"
#include "server/service.h"

namespace gflow::server {

/// The job as this caller may see it: what others run and where is theirs to know, so command,
/// work_dir, log_path and the detail of how it ended (outcome.message, and that part of the reason)
/// are "" for anyone but the owner and operators. Of a job they know of; what of it they are shown
/// besides is as [access] others_jobs says.
[[nodiscard]] api::JobView view_for(const Principal& caller,
                                    const Service& service,
                                    const Job& job);
/// The job as gflowd itself sees it, with its blockers if it is pending.
[[nodiscard]] api::JobView view_of(const Service& service, const Job& job);
[[nodiscard]] api::ExpectedStart view_of(const engine::ExpectedStart& start);

[[nodiscard]] api::MachineView machine_view_for(const Principal& caller, const Service& service);
/// Why it waits or, suspended, does not go on, as this caller may know it.
[[nodiscard]] std::vector<Blocker> blockers_for(const Principal& caller,
                                                const Service& service,
                                                const Job& job);
/// Why a job waits in sentences, as everybody may know it.
[[nodiscard]] std::string why_text(const std::vector<Blocker>& blockers);
/// The nodes and their devices, by name, with who has them as far as this caller may know it.
[[nodiscard]] std::vector<api::NodeView> node_views_for(const Principal& caller,
                                                        const Service& service);
/// The nodes on which launches fail.
[[nodiscard]] std::vector<api::UnhealthyNode> unhealthy_views(const Principal& caller,
                                                              const Service& service);
[[nodiscard]] std::vector<api::DrainView> drain_views(const engine::State& state);

}  // namespace gflow::server
