// SPDX-License-Identifier: Apache-2.0
#include "base/translate.h"
#include "server/about.h"
#include "server/queries.h"

namespace gflow::server::about {

constexpr api::Operation kShowDaemon = {
    .id = "show_daemon",
    .tag = "daemon",
    .summary = tr_later("The daemon: version, paths, what it enforces"),
    .is_shared = true,
    .answers = {{{200, "Daemon"}}},
};

constexpr api::Operation kStopDaemon = {
    .id = "stop_daemon",
    .tag = "daemon",
    .summary = tr_later("Stop the daemon; jobs keep running"),
    .answers = {{{204}}},
};

constexpr api::Operation kReloadDaemon = {
    .id = "reload_daemon",
    .tag = "daemon",
    .summary = tr_later("Read the configuration again"),
    .answers = {{{204}}},
    .errors = {404, 409, 422},
};

constexpr api::Operation kShowPrincipal = {
    .id = "show_principal",
    .tag = "daemon",
    .summary = tr_later("Who you are taken for, and what you may"),
    .answers = {{{200, "Principal"}}},
};

constexpr api::Operation kShowSettings = {
    .id = "show_settings",
    .tag = "daemon",
    .summary = tr_later("All settings, each with value, default and origin"),
    .answers = {{{200, "Settings"}}},
};

constexpr api::Operation kShowOpenapi = {
    .id = "show_openapi",
    .tag = "daemon",
    .summary = tr_later("This description, for programs: OpenAPI 3.1"),
    .answers = {{{200, "", "application/json"}}},
};

constexpr api::Operation kShowDocs = {
    .id = "show_docs",
    .tag = "daemon",
    .summary = tr_later("This description, for people"),
    .is_docs = true,
    .answers = {{{200, "", "text/html"}}},
};

constexpr api::Operation kShowDocsStyle = {
    .id = "show_docs_style",
    .tag = "daemon",
    .summary = tr_later("How that page looks"),
    .is_docs = true,
    .answers = {{{200, "", "text/css"}}},
};

constexpr api::Operation kShowDocsScript = {
    .id = "show_docs_script",
    .tag = "daemon",
    .summary = tr_later("What that page does"),
    .is_docs = true,
    .answers = {{{200, "", "text/javascript"}}},
};

constexpr api::Operation kShowHealth = {
    .id = "show_health",
    .tag = "health",
    .summary = tr_later("Whether the daemon answers"),
    .answers = {{{200, "", "text/plain"}}},
};

constexpr api::Operation kShowReadiness = {
    .id = "show_readiness",
    .tag = "health",
    .summary = tr_later("Whether new jobs are taken"),
    .description = tr_later(
        "503 with the reason where not. Whether they can start now: GET /api/v1/gpu/health."),
    .answers = {{{200, "", "text/plain"}}},
};

constexpr api::Operation kShowVersion = {
    .id = "show_version",
    .tag = "health",
    .summary = tr_later("The version of the daemon"),
    .answers = {{{200, "Version"}}},
};

constexpr api::Operation kShowMetrics = {
    .id = "show_metrics",
    .tag = "health",
    .summary = tr_later("Metrics for Prometheus"),
    .answers = {{{200, "", "text/plain"}, {200, "", "application/openmetrics-text"}}},
};

}  // namespace gflow::server::about

namespace gflow::api {

template <>
QueryTable<server::NoQuery> query_table<server::NoQuery>() {
  return {};
}

}  // namespace gflow::api
