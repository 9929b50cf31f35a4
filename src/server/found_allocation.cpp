// SPDX-License-Identifier: Apache-2.0
#include "server/found_allocation.h"

#include "base/text.h"
#include "base/translate.h"
#include "server/framework_setup.h"
#include "server/gpu_nodes.h"
#include "server/views.h"

namespace gflow::server {
namespace {

/// By the clock as it is now: it may have been set since, which shortens and lengthens nothing. In
/// whole seconds, so that the end stays where it was told while the clocks drift.
std::string expiry_of(const Job& job, const Attempt& attempt, Now now) {
  if (!job.spec.time_limit) return "";
  const auto was_set = std::chrono::round<std::chrono::seconds>(now.wall - attempt.started -
                                                                run_time_of(job, now.mono));
  return timestamp_of(attempt.started + *job.spec.time_limit + was_set);
}

}  // namespace

const Machine* machine_of(const engine::State& state, const std::string& node) {
  const auto found = state.nodes().find(node);
  return found == state.nodes().end() ? nullptr : &found->second.machine;
}

api::GpuAllocation view_of_allocation(const Principal& caller,
                                      const Service& service,
                                      const Job& job) {
  const engine::State& state = service.state();
  api::GpuAllocation view;
  view.allocation_id = job.id;
  view.state = status_name(status_of(job));
  view.owner = job.spec.user.name;
  const Attempt* attempt = attempt_of(job);
  const Machine* machine =
      attempt == nullptr ? nullptr : machine_of(state, attempt->allocation.node);
  if (const auto* ended = std::get_if<Ended>(&job.state)) {
    view.error_message = outcome_text(ended->outcome);
  } else if (machine == nullptr) {
    view.error_message = why_text(blockers_for(caller, service, job));
  }
  if (machine == nullptr || !view.error_message.empty()) return view;
  view.success = true;
  view.node_name = attempt->allocation.node;
  view.expires_at = expiry_of(job, *attempt, service.now());
  view.gpu_config = config_of(job, *attempt, *machine);
  return view;
}

Result<const Job*> find_allocation(const Exchange& exchange, JobId id) {
  const Job* job = exchange.service.state().find(id);
  const bool is_known = job != nullptr && knows_of(exchange.caller, job->spec.user);
  if (!is_known || !job->spec.allocation) {
    return fail(Code::NotFound, tr_format("there is no allocation {}", id.value));
  }
  GF_CHECK(may_change(exchange.caller, id, job->spec.user));
  return job;
}

Result<const Job*> find_allocation(const Exchange& exchange) {
  const auto number = parse_number(exchange.segment);
  return find_allocation(exchange, JobId(number.value_or(0)));
}

api::Asked<const Job*> find_allocation(const Exchange& exchange, const api::GpuNeed& need) {
  auto job = find_allocation(exchange, need.allocation_id);
  if (!job) return api::refuse("/allocation_id", job.error());
  return *job;
}

}  // namespace gflow::server
