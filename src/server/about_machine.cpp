// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "base/translate.h"
#include "core/catalogue.h"
#include "server/about.h"
#include "server/about_kinds.h"
#include "server/queries.h"

namespace gflow::server::about {

constexpr api::Operation kShowMachine = {
    .id = "show_machine",
    .tag = "machine",
    .summary = tr_later("Nodes, their devices, and who has them"),
    .is_shared = true,
    .answers = {{{200, "Machine"}}},
};

constexpr api::Operation kListNodes = {
    .id = "list_nodes",
    .tag = "machine",
    .summary = tr_later("The nodes there are"),
    .is_shared = true,
    .answers = {{{200, "Nodes"}}},
};

constexpr api::Operation kShowNode = shows_one({
    .id = "show_node",
    .tag = "machine",
    .summary = tr_later("Show a node and its devices"),
    .segment = tr_later("name of the node"),
    .segment_example = "lab1",
    .answers = {{{200, "Node"}}},
});

constexpr api::Operation kListDevices = {
    .id = "list_devices",
    .tag = "machine",
    .summary = tr_later("The devices of all nodes, and who has them"),
    .is_shared = true,
    .answers = {{{200, "Devices"}}},
};

constexpr api::Operation kShowDevice = shows_one({
    .id = "show_device",
    .tag = "machine",
    .summary = tr_later("Show a device"),
    .segment = tr_later("UUID of the device"),
    .segment_example = "GPU-d1d75627-8410-f453-f7e4-5bcff09270a5",
    .answers = {{{200, "Device"}}},
});

constexpr api::Operation kShowTopology = {
    .id = "show_topology",
    .tag = "machine",
    .summary = tr_later("How the devices of each node are connected"),
    .is_shared = true,
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
    .is_shared = true,
    .answers = {{{200, "Snapshot"}}},
};

constexpr api::Operation kListDrains = {
    .id = "list_drains",
    .tag = "machine",
    .summary = tr_later("What is drained"),
    .is_shared = true,
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

namespace gflow::api {

namespace {

using Many = QueryParameter::Many;

Result<void> read_models(server::DevicesQuery& query) {
  for (std::string& model : query.models) {
    std::string read = catalogue::read_model(model);
    if (read.empty()) {
      return fail(Code::Usage,
                  tr_format("model: '{}' is not a model of GPUs; write A100 or RTX3090",
                            printable(model.substr(0, 100))));
    }
    model = std::move(read);
  }
  return {};
}

}  // namespace

template <>
QueryTable<server::NodesQuery> query_table<server::NodesQuery>() {
  using Query = server::NodesQuery;
  static constexpr auto kRows = std::to_array<QueryRow<Query>>({
      parameter<&Query::names>(
          {.name = "name",
           .help = tr_later("with any of these names; * and ? stand for others"),
           .many = Many::Commas,
           .example = "*"}),
      parameter<&Query::labels>({.name = "label",
                                 .help = tr_later("with all of these labels: zone=a"),
                                 .many = Many::Commas}),
      parameter<&Query::ready>(
          {.name = "ready", .help = tr_later("whether jobs are started there"), .example = "true"}),
      parameter<&Query::drained>({.name = "drained", .help = tr_later("whether they are drained")}),
  });
  return {kRows};
}

template <>
QueryTable<server::DevicesQuery> query_table<server::DevicesQuery>() {
  using Query = server::DevicesQuery;
  static constexpr auto kRows = std::to_array<QueryRow<Query>>({
      parameter<&Query::nodes>({.name = "node",
                                .help = tr_later("of any of these nodes; * and ? stand for others"),
                                .many = Many::Commas}),
      parameter<&Query::models>(
          {.name = "model",
           .help = tr_later("of any of these models, as --gpus takes them: A100"),
           .many = Many::Commas,
           .example = "V100,A100"}),
      parameter<&Query::vendors>(
          {.name = "vendor", .help = tr_later("of any of these vendors"), .many = Many::Commas}),
      parameter<&Query::available>(
          {.name = "available", .help = tr_later("whether a job could have all of it now")}),
      parameter<&Query::drained>({.name = "drained", .help = tr_later("whether they are drained")}),
  });
  return {kRows, read_models};
}

template <>
QueryTable<server::TopologyQuery> query_table<server::TopologyQuery>() {
  using Query = server::TopologyQuery;
  static constexpr auto kRows = std::to_array<QueryRow<Query>>({
      parameter<&Query::nodes>({.name = "node",
                                .help = tr_later("of any of these nodes; * and ? stand for others"),
                                .many = Many::Commas}),
  });
  return {kRows};
}

template <>
QueryTable<server::SnapshotQuery> query_table<server::SnapshotQuery>() {
  using Query = server::SnapshotQuery;
  static constexpr auto kRows = std::to_array<QueryRow<Query>>({
      parameter<&Query::history>(
          {.name = "history", .help = tr_later("ended jobs in it, at most"), .example = "10"}),
  });
  return {kRows};
}

}  // namespace gflow::api
