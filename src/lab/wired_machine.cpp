// SPDX-License-Identifier: Apache-2.0
#include "lab/wired_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "lab/data_file.h"

namespace gflow::lab {
namespace {

using json = nlohmann::ordered_json;  // machines in the order of the file

int mb_per_second(const json& gigabytes) {
  return static_cast<int>(std::lround(gigabytes.get<double>() * 1000));
}

PathClass path_from(const json& name) {
  const auto path = parse_path_class(name.get<std::string>());
  if (!path) throw json::other_error::create(501, "no such path class", &name);
  return *path;
}

WiredMachine machine_from(const std::string& name, const json& facts, const json& classes) {
  const int gpus = facts.at("gpus").get<int>();
  if (gpus < 1 || gpus > kMaxTopologyGpus) {
    throw json::other_error::create(501, "gpus out of range", &facts);
  }
  WiredMachine machine{name, plain_topology(gpus, PathClass::Sys), facts.at("source")};
  Topology& topology = machine.topology;
  topology.link_name = facts.at("link_kind").get<std::string>().starts_with("xgmi") ? "XGMI" : "NV";
  topology.speeds.link = mb_per_second(facts.at("link_GBps_per_dir"));
  for (const auto& [path, speed] :
       classes.at(fmt::format("gen{}", facts.at("pcie_gen").get<int>())).items()) {
    topology.speeds.path.at(static_cast<std::size_t>(path_from(path))) = mb_per_second(speed);
  }
  for (std::size_t a = 0; a < topology.numa.size(); ++a) {
    topology.numa[a] = facts.at("numa").at(a).get<int>();
    for (std::size_t b = 0; b < topology.numa.size(); ++b) {
      const std::size_t pair = a * topology.numa.size() + b;
      topology.links[pair] = facts.at("links").at(a).at(b).get<int>();
      topology.paths[pair] = path_from(facts.at("pcie").at(a).at(b));
    }
  }
  if (facts.at("switched").get<bool>()) {
    const int each = gpus > 1 ? topology.links_between(0, 1) : 0;
    topology.switch_links.assign(topology.numa.size(), each);
    std::ranges::fill(topology.links, 0);
  }
  return machine;
}

}  // namespace

Result<std::vector<WiredMachine>> read_machines(std::string_view text) {
  std::vector<WiredMachine> machines;
  std::string at = "machines";
  try {
    const json all = json::parse(text);
    for (const auto& [name, facts] : all.at("machines").items()) {
      at = printable(name);
      machines.push_back(machine_from(name, facts, all.at("pcie_class_GBps")));
      if (const auto right = check(machines.back().topology); !right) {
        return with_context(right.error(), at);
      }
    }
  } catch (const json::exception& problem) {
    return fail(Code::Usage, fmt::format("{}: {}", at, printable(problem.what())));
  }
  return machines;
}

Result<std::vector<WiredMachine>> load_machines(const std::string& directory) {
  return read_machines(GF_TRY(read_data(directory, "topology", "machines.json")));
}

}  // namespace gflow::lab
