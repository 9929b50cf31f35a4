// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "api/snapshot.h"
#include "server/service.h"

namespace gflow::server {

/// The job as this caller may see it: what others run and where is theirs to know, so command,
/// work_dir, log_path and the detail of how it ended (outcome.message, and that part of the reason)
/// are "" for anyone but the owner and operators.
[[nodiscard]] api::JobView view_for(const Principal& caller,
                                    const Service& service,
                                    const Job& job);
[[nodiscard]] api::MachineView machine_view_for(const Principal& caller, const Service& service);
/// Why a job waits in sentences, as everybody may know it.
[[nodiscard]] std::string why_text(const std::vector<Blocker>& blockers);
/// The nodes and their devices, by name, with who has them.
[[nodiscard]] std::vector<api::NodeView> node_views(const Service& service);
/// The nodes on which launches fail.
[[nodiscard]] std::vector<api::UnhealthyNode> unhealthy_views(const Service& service);
[[nodiscard]] std::vector<api::DrainView> drain_views(const engine::State& state);

}  // namespace gflow::server
