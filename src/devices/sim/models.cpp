// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "base/text.h"
#include "devices/sim/links.h"
#include "devices/sim/machine_file.h"
#include "devices/sim/placing.h"

namespace gflow::devices::sim {
namespace {

constexpr int kCpusPerGpu = 16;
constexpr Memory kMemoryPerGpu = Memory::gib(128);

struct Group {
  std::string_view count;  ///< "" if none was given
  std::string_view model;
};

/// "8xH100" cut at the sign of multiplication; a model may begin with digits itself ("3090").
Group cut(std::string_view text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string_view rest = text.substr(digits);
  for (const std::string_view sign : {"x", "X", "*", "\u00d7"}) {
    if (digits > 0 && rest.starts_with(sign)) {
      return {text.substr(0, digits), trim(rest.substr(sign.size()))};
    }
  }
  return {"", text};
}

}  // namespace

Result<SimMachine> machine_of_models(std::string_view text) {
  std::vector<SimDevice> devices;
  for (const std::string_view part : split(text, '+')) {
    const Group group = cut(trim(part));
    const auto count = group.count.empty() ? std::uint64_t{1} : parse_number(group.count);
    if (!count || *count < 1 || *count > kMaxDevices - devices.size()) {
      return fail(Code::Usage,
                  fmt::format("'{}': a simulated machine has 1 to {} GPUs, as in sim:8xH100",
                              printable(text),
                              kMaxDevices));
    }
    const auto model = find_model(group.model);
    if (!model) {
      return fail(Code::Usage,
                  fmt::format("{} (a machine file ends in .yaml or has a '/')",
                              unknown_model_text(group.model)));
    }
    devices.insert(devices.end(), *count, idle_device(*model));
  }
  SimMachine machine;
  machine.devices = GF_TRY(placed(std::move(devices)));
  machine.topology = links_of(machine.devices);
  const int gpus = static_cast<int>(machine.devices.size());
  machine.cpus = kCpusPerGpu * gpus;
  machine.memory = Memory{kMemoryPerGpu.bytes * gpus};
  return machine;
}

}  // namespace gflow::devices::sim
