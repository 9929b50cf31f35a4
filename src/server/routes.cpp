// SPDX-License-Identifier: Apache-2.0
#include "server/routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/text.h"
#include "base/translate.h"
#include "os/message_files.h"
#include "server/about.h"
#include "server/handlers.h"
#include "server/media_types.h"
#include "server/openapi.h"
#include "server/web_guard.h"
#include "server/weights.h"

namespace gflow::server {
namespace {

// A new route: its handler in handlers.h, what is told of it (summary, parameters, documents, an
// example) as an api::Operation in about.h and about_*.cpp, its line here. Without the second it
// does not compile. A query parameter that is not told there is refused before the handler is
// called. The documents named there come from describe_*() beside the lists of fields that read and
// write them (api/documents.h). docs/format/api.md, who may (routes_test.cpp) and the examples
// (tests/e2e/test_openapi.py) are compared with this table.
constexpr auto kRoutes = std::to_array<Route>({
    {"GET", "/healthz", Verb::Read, show_health, about::kShowHealth},
    {"GET", "/metrics", Verb::Read, show_metrics, about::kShowMetrics},
    {"GET", "/docs", Verb::Read, show_docs, about::kShowDocs},
    {"GET", "/docs/style.css", Verb::Read, show_docs_style, about::kShowDocsStyle},
    {"GET", "/docs/script.js", Verb::Read, show_docs_script, about::kShowDocsScript},
    {"GET", "/api/v1/jobs", Verb::Read, list_jobs, about::kListJobs},
    {"POST", "/api/v1/jobs", Verb::Submit, submit_jobs, about::kSubmitJobs},
    {"POST", "/api/v1/jobs/check", Verb::Read, check_jobs, about::kCheckJobs},
    {"PATCH", "/api/v1/jobs", Verb::Change, update_jobs, about::kUpdateJobs},
    {"POST", "/api/v1/jobs/cancel", Verb::Change, cancel_jobs, about::kCancelJobs},
    {"POST", "/api/v1/jobs/signal", Verb::Change, signal_jobs, about::kSignalJobs},
    {"POST", "/api/v1/jobs/hold", Verb::Change, hold_jobs, about::kHoldJobs},
    {"POST", "/api/v1/jobs/release", Verb::Change, release_jobs, about::kReleaseJobs},
    {"GET", "/api/v1/jobs/newest", Verb::Read, show_newest_job, about::kShowNewestJob},
    {"GET", "/api/v1/jobs/{id}", Verb::Read, show_job, about::kShowJob},
    {"PATCH", "/api/v1/jobs/{id}", Verb::Change, update_job, about::kUpdateJob},
    {"DELETE", "/api/v1/jobs/{id}", Verb::Change, cancel_job, about::kCancelJob},
    {"GET", "/api/v1/jobs/{id}/explain", Verb::Read, explain_job, about::kExplainJob},
    {"GET", "/api/v1/jobs/{id}/log", Verb::Read, show_job_log, about::kShowJobLog},
    {"GET", "/api/v1/groups", Verb::Read, list_groups, about::kListGroups},
    {"GET", "/api/v1/groups/{name}", Verb::Read, show_group, about::kShowGroup},
    {"GET", "/api/v1/statistics", Verb::Read, show_statistics, about::kShowStatistics},
    {"GET", "/api/v1/nodes", Verb::Read, list_nodes, about::kListNodes},
    {"GET", "/api/v1/nodes/{name}", Verb::Read, show_node, about::kShowNode},
    {"GET", "/api/v1/devices", Verb::Read, list_devices, about::kListDevices},
    {"GET", "/api/v1/devices/{uuid}", Verb::Read, show_device, about::kShowDevice},
    {"GET", "/api/v1/topology", Verb::Read, show_topology, about::kShowTopology},
    {"GET", "/api/v1/machine", Verb::Read, show_machine, about::kShowMachine},
    {"POST", "/api/v1/place", Verb::Read, show_place, about::kShowPlace},
    {"GET", "/api/v1/snapshot", Verb::Read, show_snapshot, about::kShowSnapshot},
    {"GET", "/api/v1/drain", Verb::Read, list_drains, about::kListDrains},
    {"POST", "/api/v1/drain", Verb::Operate, change_drain, about::kChangeDrain},
    {"GET", "/api/v1/daemon", Verb::Read, show_daemon, about::kShowDaemon},
    {"POST", "/api/v1/daemon/stop", Verb::Administer, stop_daemon, about::kStopDaemon},
    {"POST", "/api/v1/daemon/reload", Verb::Administer, reload_daemon, about::kReloadDaemon},
    {"GET", "/api/v1/principal", Verb::Read, show_principal, about::kShowPrincipal},
    {"GET", "/api/v1/settings", Verb::Read, show_settings, about::kShowSettings},
    {"GET", "/api/v1/tokens", Verb::Read, list_tokens, about::kListTokens},
    {"POST", "/api/v1/tokens", Verb::Entrust, create_token, about::kCreateToken},
    {"DELETE", "/api/v1/tokens/{name}", Verb::Entrust, revoke_token, about::kRevokeToken},
    {"GET", "/api/v1/openapi.json", Verb::Read, show_openapi, about::kShowOpenapi},
    {"GET", "/api/v1/changes", Verb::Read, wait_for_change, about::kWaitForChange},
    {"GET", "/api/v1/events", Verb::Read, listen_to_events, about::kListenToEvents},
    {"GET", "/api/v1/gpu/status", Verb::Read, show_gpu_status, about::kShowGpuStatus},
    {"GET", "/api/v1/gpu/nodes", Verb::Read, list_gpu_nodes, about::kListGpuNodes},
    {"GET", "/api/v1/gpu/health", Verb::Read, show_gpu_health, about::kShowGpuHealth},
    {"GET", "/api/v1/gpu/monitoring", Verb::Read, show_gpu_monitoring, about::kShowGpuMonitoring},
    {"POST", "/api/v1/gpu/validate", Verb::Read, validate_gpu_need, about::kValidateGpuNeed},
    {"POST", "/api/v1/gpu/allocate", Verb::Submit, allocate_gpus, about::kAllocateGpus},
    {"POST", "/api/v1/gpu/setup-pytorch", Verb::Submit, set_up_pytorch, about::kSetUpPytorch},
    {"POST",
     "/api/v1/gpu/setup-tensorflow",
     Verb::Submit,
     set_up_tensorflow,
     about::kSetUpTensorflow},
    {"DELETE", "/api/v1/gpu/cleanup/{node_name}", Verb::Change, clean_up_gpus, about::kCleanUpGpus},
    {"GET",
     "/api/v1/gpu/allocations",
     Verb::Read,
     list_gpu_allocations,
     about::kListGpuAllocations},
    {"GET",
     "/api/v1/gpu/allocations/{id}",
     Verb::Read,
     show_gpu_allocation,
     about::kShowGpuAllocation},
    {"DELETE",
     "/api/v1/gpu/allocations/{id}",
     Verb::Change,
     release_gpu_allocation,
     about::kReleaseGpuAllocation},
    {"POST",
     "/api/v1/gpu/allocations/{id}/renew",
     Verb::Change,
     renew_gpu_allocation,
     about::kRenewGpuAllocation},
});

bool is_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// What stands for the segment in braces in the path ("" for a pattern without), or empty if it is
/// another path. {id} is digits, any other whatever is not empty.
std::optional<std::string_view> match(std::string_view pattern, std::string_view path) {
  const std::size_t open = pattern.find('{');
  if (open == std::string_view::npos) {
    if (pattern != path) return std::nullopt;
    return "";
  }
  const std::size_t close = pattern.find('}', open);
  const std::string_view after = pattern.substr(close + 1);
  if (!path.starts_with(pattern.substr(0, open)) || !path.substr(open).ends_with(after)) {
    return std::nullopt;
  }
  const std::string_view segment = path.substr(open, path.size() - open - after.size());
  const bool is_id = pattern.substr(open, close + 1 - open) == "{id}";
  if (segment.empty() || segment.contains('/')) return std::nullopt;
  if (is_id && !is_digits(segment)) return std::nullopt;
  return segment;
}

Reply no_such_path(std::string_view path) {
  std::vector<std::string> paths;
  for (const Route& route : kRoutes) paths.emplace_back(route.pattern);
  const std::string shown = printable(path.substr(0, 200));
  const auto near = nearest(path.substr(0, 200), paths);
  return problem(Error{Code::NotFound,
                       near ? tr_format("there is no '{}'; did you mean '{}'?", shown, *near)
                            : tr_format("there is no '{}'", shown)});
}

/// What is read can be looked at, too; every path tells what it takes.
void allow(std::vector<std::string>& methods, std::string_view method) {
  const auto add = [&methods](std::string_view one) {
    if (std::ranges::find(methods, one) == methods.end()) methods.emplace_back(one);
  };
  add(method);
  if (method == "GET") add("HEAD");
}

Reply options_reply(const std::vector<std::string>& allowed) {
  Reply reply = empty_reply();
  reply.headers.emplace_back("Allow", join(allowed, ", ") + ", OPTIONS");
  return reply;
}

Reply wrong_method(const Request& request, const std::vector<std::string>& allowed) {
  const std::string methods = join(allowed, ", ") + ", OPTIONS";
  Reply reply = problem(Error{Code::Usage,
                              tr_format("'{}' does not take {}; it takes {}",
                                        printable(request.path.substr(0, 200)),
                                        printable(request.method.substr(0, 20)),
                                        methods)},
                        405);
  reply.headers.emplace_back("Allow", methods);
  return reply;
}

/// By Accept-Language (RFC 9110, 12.5.4). Null for English, which is what there is without one.
const MessageCatalogue* messages_wanted(std::string_view accept_language) {
  for (const std::string_view language : by_weight(accept_language)) {
    const std::string primary = to_lower(language.substr(0, language.find_first_of("-_")));
    if (primary == "en" || primary == "*") return nullptr;
    if (const MessageCatalogue* messages = os::messages_like(language)) return messages;
  }
  return nullptr;
}

}  // namespace

Scope scope_of(Verb verb) {
  switch (verb) {
    case Verb::Read:
      return Scope::Read;
    case Verb::Submit:
    case Verb::Change:
      return Scope::Submit;
    case Verb::Operate:
      return Scope::Operate;
    case Verb::Entrust:
    case Verb::Administer:
      break;
  }
  return Scope::Admin;
}

std::span<const Route> routes() { return kRoutes; }

std::size_t route_number(std::string_view method, std::string_view path) {
  if (method == "HEAD") method = "GET";
  const auto* const found = std::ranges::find_if(kRoutes, [&](const Route& route) {
    return route.method == method && match(route.pattern, path);
  });
  return static_cast<std::size_t>(found - kRoutes.begin());
}

const Route* find_route(std::string_view method, std::string_view path) {
  const std::size_t number = route_number(method, path);
  return number == kRoutes.size() ? nullptr : &kRoutes.at(number);
}

Result<void> authorize(const Principal& caller, Verb verb) {
  GF_CHECK(is_in_scope(caller, scope_of(verb)));
  switch (verb) {
    case Verb::Read:
    case Verb::Submit:
    case Verb::Change:
    case Verb::Entrust:
      return {};
    case Verb::Operate:
      return may_drain(caller, tr("GPUs and nodes"));
    case Verb::Administer:
      return may_administer(caller);
  }
  return fail(Code::Permission, tr("not allowed"));
}

void dispatch(Exchange exchange) {
  // What answers it now, and what is posted by it, see messages_in_use().
  const MessagesOfThread language(messages_wanted(exchange.request.language));
  if (auto refusal = refuse_of_web(exchange.request)) {
    return exchange.respond(std::move(*refusal));
  }
  const std::string& asked = exchange.request.method;
  const std::string_view method = asked == "HEAD" ? std::string_view("GET") : asked;
  const bool is_of_all = asked == "OPTIONS" && exchange.request.path == "*";
  std::vector<std::string> allowed;
  for (const Route& route : kRoutes) {
    const auto segment = match(route.pattern, exchange.request.path);
    if (!segment && !is_of_all) continue;
    if (route.method != method) {
      allow(allowed, route.method);
      continue;
    }
    if (auto may = authorize(exchange.caller, route.verb); !may) {
      return exchange.respond(problem(may.error()));
    }
    if (auto refusal = refuse_of_media(exchange.request, route.about)) {
      return exchange.respond(std::move(*refusal));
    }
    if (auto known = check_parameters(route, exchange.request); !known) {
      return exchange.respond(problem(known.error()));
    }
    exchange.segment = *segment;
    return route.handle(std::move(exchange));
  }
  if (asked == "OPTIONS" && !allowed.empty()) return exchange.respond(options_reply(allowed));
  exchange.respond(allowed.empty() ? no_such_path(exchange.request.path)
                                   : wrong_method(exchange.request, allowed));
}

}  // namespace gflow::server
