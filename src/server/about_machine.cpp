// SPDX-License-Identifier: Apache-2.0
#include "api/snapshot.h"
#include "base/translate.h"
#include "server/about.h"

namespace gflow::server::about {

namespace {

using api::QueryParameter;
using enum QueryParameter::Type;
using Many = QueryParameter::Many;

}  // namespace

constexpr api::Operation kShowMachine = {
    .id = "show_machine",
    .tag = "machine",
    .summary = tr_later("Nodes, their devices, and who has them"),
    .answers = {{{200, "Machine"}}},
};

constexpr api::Operation kListNodes = {
    .id = "list_nodes",
    .tag = "machine",
    .summary = tr_later("The nodes there are"),
    .query = {QueryParameter{.name = "name",
                             .help = tr_later("with any of these names; * and ? stand for others"),
                             .many = Many::Commas,
                             .example = "*"},
              {.name = "label",
               .help = tr_later("with all of these labels: zone=a"),
               .many = Many::Commas},
              {.name = "ready",
               .help = tr_later("whether jobs are started there"),
               .type = Truth,
               .example = "true"},
              {.name = "drained", .help = tr_later("whether they are drained"), .type = Truth}},
    .answers = {{{200, "Nodes"}}},
};

constexpr api::Operation kShowNode = {
    .id = "show_node",
    .tag = "machine",
    .summary = tr_later("Show a node and its devices"),
    .segment = tr_later("name of the node"),
    .answers = {{{200, "Node"}}},
    .errors = {404},
};

constexpr api::Operation kListDevices = {
    .id = "list_devices",
    .tag = "machine",
    .summary = tr_later("The devices of all nodes, and who has them"),
    .query = {QueryParameter{.name = "node",
                             .help = tr_later("of any of these nodes; * and ? stand for others"),
                             .many = Many::Commas},
              {.name = "model",
               .help = tr_later("of any of these models, as --gpus takes them: A100"),
               .many = Many::Commas,
               .example = "V100,A100"},
              {.name = "vendor", .help = tr_later("of any of these vendors"), .many = Many::Commas},
              {.name = "available",
               .help = tr_later("whether a job could have all of it now"),
               .type = Truth},
              {.name = "drained", .help = tr_later("whether they are drained"), .type = Truth}},
    .answers = {{{200, "Devices"}}},
};

constexpr api::Operation kShowDevice = {
    .id = "show_device",
    .tag = "machine",
    .summary = tr_later("Show a device"),
    .segment = tr_later("UUID of the device"),
    .answers = {{{200, "Device"}}},
    .errors = {404},
};

constexpr api::Operation kShowTopology = {
    .id = "show_topology",
    .tag = "machine",
    .summary = tr_later("How the devices of each node are connected"),
    .query = {QueryParameter{.name = "node",
                             .help = tr_later("of any of these nodes; * and ? stand for others"),
                             .many = Many::Commas}},
    .answers = {{{200, "Topology"}}},
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
