// SPDX-License-Identifier: Apache-2.0
#include "lab/fleet.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "devices/source.h"

namespace gflow::lab {
namespace {

constexpr int kMaxGpusOfNode = 256;

int usable_gpus(const Machine& machine) {
  return static_cast<int>(std::ranges::count_if(machine.devices, &Device::usable));
}

std::unexpected<Error> no_fleet(const std::string& text) {
  return fail(Code::Usage,
              fmt::format("'{}' says no nodes; say '64x8' for 64 nodes with 8 GPUs each, "
                          "'4x8xA100' for a model, or 'sim:8xH100' for one machine",
                          printable(text)));
}

}  // namespace

Result<Machine> read_machine_spec(const std::string& text) {
  const std::string spec = text.starts_with("sim:") ? text : "sim:" + text;
  const auto source = GF_TRY(devices::open_source(spec, {}));
  Machine machine = source->machine();
  machine.note.clear();
  return machine;
}

Result<std::vector<Machine>> read_fleet(const std::string& text) {
  if (text.starts_with("sim:")) {
    Machine machine = GF_TRY(read_machine_spec(text));
    if (machine.name.empty()) machine.name = "node1";
    return std::vector{std::move(machine)};
  }
  const std::size_t cross = text.find('x');
  if (cross == std::string::npos) return no_fleet(text);
  const auto count = parse_number(text.substr(0, cross));
  const std::string rest = text.substr(cross + 1);
  const auto gpus = parse_number(rest.substr(0, rest.find('x')));
  if (!count || *count < 1 || *count > kMaxNodes || !gpus || *gpus > kMaxGpusOfNode) {
    return no_fleet(text);
  }
  const std::string models = rest.find('x') == std::string::npos ? rest + "xH100" : rest;
  Machine machine = GF_TRY(read_machine_spec(models));
  std::vector<Machine> fleet;
  for (std::uint64_t i = 1; i <= *count; ++i) {
    machine.name = fmt::format("node{}", i);
    fleet.push_back(machine);
  }
  return fleet;
}

int gpus_of(const std::vector<Machine>& fleet) {
  int count = 0;
  for (const Machine& node : fleet) count += usable_gpus(node);
  return count;
}

int max_gpus_of(const std::vector<Machine>& fleet) {
  int most = 0;
  for (const Machine& node : fleet) most = std::max(most, usable_gpus(node));
  return most;
}

}  // namespace gflow::lab
