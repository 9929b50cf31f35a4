// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "api/event.h"
#include "server/exchange.h"
#include "server/queries.h"

/// One handler per line of the table in routes.cpp. A handler parses, calls the Service and
/// renders. What it takes besides the exchange is its query: that is read, and told in the OpenAPI
/// document, by the table of its type.
namespace gflow::server {

// job_listing.cpp
void list_jobs(Exchange exchange, JobQuery query);
// jobs.cpp
void submit_jobs(Exchange exchange);
void check_jobs(Exchange exchange);
// job_update.cpp
void update_jobs(Exchange exchange);
void update_job(Exchange exchange);
// job_actions.cpp
void cancel_jobs(Exchange exchange);
void cancel_job(Exchange exchange, CancelQuery query);
void signal_jobs(Exchange exchange);
void hold_jobs(Exchange exchange);
void release_jobs(Exchange exchange);
void suspend_jobs(Exchange exchange);
void suspend_job(Exchange exchange);
void resume_jobs(Exchange exchange);
void resume_job(Exchange exchange);
void move_job(Exchange exchange);
// job.cpp
void show_job(Exchange exchange);
void show_newest_job(Exchange exchange, NewestQuery query);
// explain.cpp
void explain_job(Exchange exchange);
// queue.cpp
void show_queue(Exchange exchange, QueueQuery query);
// defrag.cpp
void show_defrag(Exchange exchange, DefragQuery query);
void apply_defrag(Exchange exchange);
// job_log.cpp
void show_job_log(Exchange exchange, LogQuery query);
// machine.cpp
void show_machine(Exchange exchange);
// nodes.cpp
void list_nodes(Exchange exchange, NodesQuery query);
void show_node(Exchange exchange);
void list_devices(Exchange exchange, DevicesQuery query);
void show_device(Exchange exchange);
void show_topology(Exchange exchange, TopologyQuery query);
// groups.cpp
void list_groups(Exchange exchange, GroupsQuery query);
void show_group(Exchange exchange, GroupQuery query);
// statistics.cpp
void show_statistics(Exchange exchange, StatisticsQuery query);
// daemon.cpp
void show_daemon(Exchange exchange);
void show_version(Exchange exchange);
void stop_daemon(Exchange exchange);
void reload_daemon(Exchange exchange);
// account.cpp
void show_principal(Exchange exchange);
void show_settings(Exchange exchange);
// tokens.cpp
void list_tokens(Exchange exchange);
void create_token(Exchange exchange);
void revoke_token(Exchange exchange, TokenQuery query);
// changes.cpp
void wait_for_change(Exchange exchange, ChangesQuery query);
// events.cpp
void listen_to_events(Exchange exchange, api::EventQuery query);
// snapshot.cpp
void show_snapshot(Exchange exchange, SnapshotQuery query);
// place.cpp
void show_place(Exchange exchange);
// drain.cpp
void list_drains(Exchange exchange);
void change_drain(Exchange exchange);
// gpu.cpp
void show_gpu_status(Exchange exchange);
void list_gpu_nodes(Exchange exchange, GpuNodesQuery query);
void show_gpu_health(Exchange exchange);
void show_gpu_monitoring(Exchange exchange);
void validate_gpu_need(Exchange exchange);
// gpu_allocate.cpp
void allocate_gpus(Exchange exchange);
void set_up_pytorch(Exchange exchange);
void set_up_tensorflow(Exchange exchange);
// gpu_allocations.cpp
void list_gpu_allocations(Exchange exchange);
void show_gpu_allocation(Exchange exchange);
void renew_gpu_allocation(Exchange exchange);
// gpu_release.cpp
void release_gpu_allocation(Exchange exchange);
void clean_up_gpus(Exchange exchange, CleanupQuery query);
// docs.cpp
void show_docs(Exchange exchange);
void show_docs_style(Exchange exchange);
void show_docs_script(Exchange exchange);
// openapi.cpp
void show_openapi(Exchange exchange);
// metrics.cpp
void show_metrics(Exchange exchange);
// health.cpp
void show_health(Exchange exchange);
void show_readiness(Exchange exchange);

/// A document that is made once, on the connections' thread.
[[nodiscard]] Reply reply_made_once(const Exchange& exchange,
                                    std::string name,
                                    std::function<std::string()> make);

/// Goes on with what the body says, or answers why it cannot be read. A large body is read away
/// from the loop.
template <typename T>
void read_body(Exchange exchange,
               api::Asked<T> (*read)(std::string_view),
               void (*then)(Exchange, T)) {
  constexpr std::size_t kSmall = 16 * 1024;
  const auto go_on = [then](Exchange& known, api::Asked<T>& asked) {
    if (!asked) return known.respond(problem(asked.error()));
    then(std::move(known), std::move(*asked));
  };
  if (exchange.fair_work == nullptr || exchange.request.body.size() <= kSmall) {
    api::Asked<T> asked = read(exchange.request.body);
    return go_on(exchange, asked);
  }
  struct Reading {
    Exchange exchange;
    api::Asked<T> asked = T{};
  };
  const auto reading = std::make_shared<Reading>(Reading{std::move(exchange)});
  reading->exchange.fair_work->aside(
      reading->exchange.caller,
      [reading, read] { reading->asked = read(std::exchange(reading->exchange.request.body, {})); },
      [reading, go_on] { go_on(reading->exchange, reading->asked); });
}

/// Answers a change with the jobs it changed, or why there are none.
[[nodiscard]] Service::Answer changed(std::function<void(Reply)> respond);

}  // namespace gflow::server
