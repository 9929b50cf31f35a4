// SPDX-License-Identifier: Apache-2.0
#include "api/snapshot.h"
#include "base/translate.h"
#include "server/about.h"

namespace gflow::server::about {

using api::QueryParameter;

constexpr api::Operation kShowMachine = {
    .id = "show_machine",
    .tag = "machine",
    .summary = tr_later("Nodes, their devices, and who has them"),
    .answers = {{{200, "Machine"}}},
};

constexpr api::Operation kShowPlace = {
    .id = "show_place",
    .tag = "machine",
    .summary = tr_later("Where such a job would run now, and what would keep it waiting"),
    .description = tr_later("What gbatch --dry-run shows; nothing is done."),
    .body = "Place",
    .example = R"({"request": {"gpus": 1}, "most": 3})",
    .answers = {{{200, "Placement"}}},
    .errors = {404, 409, 422},
};

constexpr api::Operation kShowSnapshot = {
    .id = "show_snapshot",
    .tag = "machine",
    .summary = tr_later("The state the scheduler decides by, to be replayed"),
    .query = {QueryParameter{.name = "history",
                             .help = tr_later("ended jobs in it, at most"),
                             .type = QueryParameter::Type::Number,
                             .range = {0, INT64_MAX},
                             .example = "10"}},
    .answers = {{{200, "Snapshot"}}},
};

constexpr api::Operation kListDrains = {
    .id = "list_drains",
    .tag = "machine",
    .summary = tr_later("What is drained"),
    .answers = {{{200, "Drains"}}},
};

constexpr api::Operation kChangeDrain = {
    .id = "change_drain",
    .tag = "machine",
    .summary = tr_later("Drain a GPU or a node, or resume it"),
    .description = tr_later("Nothing new starts on what is drained. Without gpu and uuid it is the "
                            "whole node; where there is only one node, it need not be named."),
    .body = "Drain",
    .example = R"({"gpu": 1, "reason": "fan is loud"})",
    .answers = {{{200, "JobIds"}}},
    .errors = {404, 409, 422},
};

}  // namespace gflow::server::about
