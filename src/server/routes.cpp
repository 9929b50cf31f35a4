// SPDX-License-Identifier: Apache-2.0
#include "server/routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <optional>

#include "api/headers.h"
#include "base/text.h"
#include "base/translate.h"
#include "base/utf8.h"
#include "server/about.h"
#include "server/handlers.h"
#include "server/language.h"
#include "server/media_types.h"
#include "server/target.h"
#include "server/web_guard.h"

namespace gflow::server {
namespace {

template <typename Function>
struct QueryOf;
template <>
struct QueryOf<void (*)(Exchange)> {
  using Type = NoQuery;
};
template <typename Query>
struct QueryOf<void (*)(Exchange, Query)> {
  using Type = Query;
};

/// Reads the query that the handler takes, or says why that is none.
template <auto kHandle>
void handle(Exchange exchange) {
  using Query = typename QueryOf<decltype(kHandle)>::Type;
  auto query = api::read_query_of<Query>(exchange.request.query);
  if (!query) return exchange.respond(problem(query.error()));
  if constexpr (std::same_as<Query, NoQuery>) {
    kHandle(std::move(exchange));
  } else {
    kHandle(std::move(exchange), *std::move(query));
  }
}
template <auto kHandle>
constexpr Handler kHandler = {handle<kHandle>,
                              api::parameters_of<typename QueryOf<decltype(kHandle)>::Type>};

// A new route: its handler in handlers.h, what is told of it (summary, parameters, documents, an
// example) as an api::Operation in about.h and about_*.cpp, its line here. Without the second it
// does not compile. The query it takes, if any, is a type in queries.h, with its table in the
// about_*.cpp of its operation. The documents named there come from describe_*() beside the lists
// of fields that read and write them (api/documents.h). docs/format/api.md, who may
// (routes_test.cpp, tests/e2e/rights.py) and the examples (tests/e2e/test_openapi.py) are compared
// with this table. Where gflow-kube or gflow-slurm cannot answer it, kube/elsewhere.cpp and
// slurm/elsewhere.cpp say what does instead.
constexpr auto kRoutes = std::to_array<Route>({
    {"GET", "/healthz", Verb::Read, kHandler<show_health>, about::kShowHealth},
    {"GET", "/readyz", Verb::Read, kHandler<show_readiness>, about::kShowReadiness},
    {"GET", "/version", Verb::Read, kHandler<show_version>, about::kShowVersion},
    {"GET", "/metrics", Verb::Read, kHandler<show_metrics>, about::kShowMetrics},
    {"GET", "/docs", Verb::Read, kHandler<show_docs>, about::kShowDocs},
    {"GET", "/docs/style.css", Verb::Read, kHandler<show_docs_style>, about::kShowDocsStyle},
    {"GET", "/docs/script.js", Verb::Read, kHandler<show_docs_script>, about::kShowDocsScript},
    {"GET", "/api/v1/jobs", Verb::Read, kHandler<list_jobs>, about::kListJobs},
    {"POST", "/api/v1/jobs", Verb::Submit, kHandler<submit_jobs>, about::kSubmitJobs},
    {"POST", "/api/v1/jobs/check", Verb::Read, kHandler<check_jobs>, about::kCheckJobs},
    {"PATCH", "/api/v1/jobs", Verb::Change, kHandler<update_jobs>, about::kUpdateJobs},
    {"POST", "/api/v1/jobs/cancel", Verb::Change, kHandler<cancel_jobs>, about::kCancelJobs},
    {"POST", "/api/v1/jobs/signal", Verb::Change, kHandler<signal_jobs>, about::kSignalJobs},
    {"POST", "/api/v1/jobs/hold", Verb::Change, kHandler<hold_jobs>, about::kHoldJobs},
    {"POST", "/api/v1/jobs/release", Verb::Change, kHandler<release_jobs>, about::kReleaseJobs},
    {"POST", "/api/v1/jobs/suspend", Verb::Change, kHandler<suspend_jobs>, about::kSuspendJobs},
    {"POST", "/api/v1/jobs/resume", Verb::Change, kHandler<resume_jobs>, about::kResumeJobs},
    {"GET", "/api/v1/jobs/newest", Verb::Read, kHandler<show_newest_job>, about::kShowNewestJob},
    {"GET", "/api/v1/jobs/{id}", Verb::Read, kHandler<show_job>, about::kShowJob},
    {"PATCH", "/api/v1/jobs/{id}", Verb::Change, kHandler<update_job>, about::kUpdateJob},
    {"DELETE", "/api/v1/jobs/{id}", Verb::Change, kHandler<cancel_job>, about::kCancelJob},
    {"POST", "/api/v1/jobs/{id}/suspend", Verb::Change, kHandler<suspend_job>, about::kSuspendJob},
    {"POST", "/api/v1/jobs/{id}/resume", Verb::Change, kHandler<resume_job>, about::kResumeJob},
    {"POST", "/api/v1/jobs/{id}/move", Verb::Change, kHandler<move_job>, about::kMoveJob},
    {"GET", "/api/v1/jobs/{id}/explain", Verb::Read, kHandler<explain_job>, about::kExplainJob},
    {"GET", "/api/v1/jobs/{id}/log", Verb::Inspect, kHandler<show_job_log>, about::kShowJobLog},
    {"GET", "/api/v1/queue", Verb::Read, kHandler<show_queue>, about::kShowQueue},
    {"GET", "/api/v1/defrag", Verb::Read, kHandler<show_defrag>, about::kShowDefrag},
    {"POST", "/api/v1/defrag", Verb::Change, kHandler<apply_defrag>, about::kApplyDefrag},
    {"GET", "/api/v1/groups", Verb::Read, kHandler<list_groups>, about::kListGroups},
    {"GET", "/api/v1/groups/{name}", Verb::Read, kHandler<show_group>, about::kShowGroup},
    {"GET", "/api/v1/statistics", Verb::Read, kHandler<show_statistics>, about::kShowStatistics},
    {"GET", "/api/v1/nodes", Verb::Read, kHandler<list_nodes>, about::kListNodes},
    {"GET", "/api/v1/nodes/{name}", Verb::Read, kHandler<show_node>, about::kShowNode},
    {"GET", "/api/v1/devices", Verb::Read, kHandler<list_devices>, about::kListDevices},
    {"GET", "/api/v1/devices/{uuid}", Verb::Read, kHandler<show_device>, about::kShowDevice},
    {"GET", "/api/v1/topology", Verb::Read, kHandler<show_topology>, about::kShowTopology},
    {"GET", "/api/v1/machine", Verb::Read, kHandler<show_machine>, about::kShowMachine},
    {"POST", "/api/v1/place", Verb::Read, kHandler<show_place>, about::kShowPlace},
    {"GET", "/api/v1/snapshot", Verb::Read, kHandler<show_snapshot>, about::kShowSnapshot},
    {"GET", "/api/v1/drain", Verb::Read, kHandler<list_drains>, about::kListDrains},
    {"POST", "/api/v1/drain", Verb::Operate, kHandler<change_drain>, about::kChangeDrain},
    {"GET", "/api/v1/daemon", Verb::Read, kHandler<show_daemon>, about::kShowDaemon},
    {"POST", "/api/v1/daemon/stop", Verb::Administer, kHandler<stop_daemon>, about::kStopDaemon},
    {"POST",
     "/api/v1/daemon/reload",
     Verb::Administer,
     kHandler<reload_daemon>,
     about::kReloadDaemon},
    {"GET", "/api/v1/principal", Verb::Read, kHandler<show_principal>, about::kShowPrincipal},
    {"GET", "/api/v1/settings", Verb::Read, kHandler<show_settings>, about::kShowSettings},
    {"GET", "/api/v1/tokens", Verb::Read, kHandler<list_tokens>, about::kListTokens},
    {"POST", "/api/v1/tokens", Verb::Entrust, kHandler<create_token>, about::kCreateToken},
    {"DELETE", "/api/v1/tokens/{name}", Verb::Entrust, kHandler<revoke_token>, about::kRevokeToken},
    {"GET", "/api/v1/openapi.json", Verb::Read, kHandler<show_openapi>, about::kShowOpenapi},
    {"GET", "/api/v1/changes", Verb::Read, kHandler<wait_for_change>, about::kWaitForChange},
    {"GET", "/api/v1/events", Verb::Read, kHandler<listen_to_events>, about::kListenToEvents},
    {"GET", "/api/v1/gpu/status", Verb::Read, kHandler<show_gpu_status>, about::kShowGpuStatus},
    {"GET", "/api/v1/gpu/nodes", Verb::Read, kHandler<list_gpu_nodes>, about::kListGpuNodes},
    {"GET", "/api/v1/gpu/health", Verb::Read, kHandler<show_gpu_health>, about::kShowGpuHealth},
    {"GET",
     "/api/v1/gpu/monitoring",
     Verb::Read,
     kHandler<show_gpu_monitoring>,
     about::kShowGpuMonitoring},
    {"POST",
     "/api/v1/gpu/validate",
     Verb::Read,
     kHandler<validate_gpu_need>,
     about::kValidateGpuNeed},
    {"POST", "/api/v1/gpu/allocate", Verb::Submit, kHandler<allocate_gpus>, about::kAllocateGpus},
    {"POST",
     "/api/v1/gpu/setup-pytorch",
     Verb::Submit,
     kHandler<set_up_pytorch>,
     about::kSetUpPytorch},
    {"POST",
     "/api/v1/gpu/setup-tensorflow",
     Verb::Submit,
     kHandler<set_up_tensorflow>,
     about::kSetUpTensorflow},
    {"DELETE",
     "/api/v1/gpu/cleanup/{node_name}",
     Verb::Submit,
     kHandler<clean_up_gpus>,
     about::kCleanUpGpus},
    {"GET",
     "/api/v1/gpu/allocations",
     Verb::Read,
     kHandler<list_gpu_allocations>,
     about::kListGpuAllocations},
    {"GET",
     "/api/v1/gpu/allocations/{id}",
     Verb::Inspect,
     kHandler<show_gpu_allocation>,
     about::kShowGpuAllocation},
    {"DELETE",
     "/api/v1/gpu/allocations/{id}",
     Verb::Change,
     kHandler<release_gpu_allocation>,
     about::kReleaseGpuAllocation},
    {"POST",
     "/api/v1/gpu/allocations/{id}/renew",
     Verb::Change,
     kHandler<renew_gpu_allocation>,
     about::kRenewGpuAllocation},
});

static_assert(std::ranges::all_of(kRoutes, api::is_pattern, &Route::pattern),
              "a pattern has one segment in braces, or none");

constexpr int kNotImplemented = 501;

bool is_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// What stands for the segment in braces in the path ("" for a pattern without), or empty if it is
/// another path. {id} is digits, any other whatever is not empty.
std::optional<std::string_view> match(std::string_view pattern, std::string_view path) {
  const api::Pattern parts = api::pattern_of(pattern);
  if (parts.name.empty()) {
    if (pattern != path) return std::nullopt;
    return "";
  }
  if (!path.starts_with(parts.before)) return std::nullopt;
  std::string_view segment = path.substr(parts.before.size());
  if (!segment.ends_with(parts.after)) return std::nullopt;
  segment.remove_suffix(parts.after.size());
  if (segment.empty() || segment.contains('/')) return std::nullopt;
  if (parts.name == "id" && !is_digits(segment)) return std::nullopt;
  return segment;
}

Result<void> check_key(const Route& route, const Request& request) {
  const std::string& key = request.idempotency_key;
  if (!route.about.takes_key || (utf8::length(key) <= api::kMaxKeyLength && is_utf8(key)))
    return {};
  return fail(
      Code::Usage,
      tr_format("Idempotency-Key must be UTF-8 of at most {} characters", api::kMaxKeyLength));
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

}  // namespace

bool is_open(std::string_view method, std::string_view path) {
  return (method == "GET" || method == "HEAD") && (path == "/healthz" || path == "/readyz");
}

bool only_reads(Verb verb) { return verb == Verb::Read || verb == Verb::Inspect; }

Scope scope_of(Verb verb) {
  switch (verb) {
    case Verb::Read:
    case Verb::Inspect:
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
    case Verb::Inspect:
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
    if (auto here = exchange.service.serves(route); !here) {
      return exchange.respond(problem(here.error(), kNotImplemented));
    }
    if (auto refusal = refuse_of_media(exchange.request, route.about)) {
      return exchange.respond(std::move(*refusal));
    }
    if (auto key = check_key(route, exchange.request); !key) {
      return exchange.respond(problem(key.error()));
    }
    exchange.segment = segment_text(*segment);
    return route.handler.handle(std::move(exchange));
  }
  if (asked == "OPTIONS" && !allowed.empty()) return exchange.respond(options_reply(allowed));
  exchange.respond(allowed.empty() ? no_such_path(exchange.request.path)
                                   : wrong_method(exchange.request, allowed));
}

}  // namespace gflow::server
