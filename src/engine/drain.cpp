// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "base/translate.h"
#include "core/text_limits.h"
#include "engine/index.h"

namespace gflow::engine {
namespace {

/// Nodes there are; what was removed is gone, whatever is held there still.
std::vector<std::string> names_of_nodes(const Index& index) {
  std::vector<std::string> names;
  for (const auto& [name, record] : index.nodes) {
    if (!record.removed) names.push_back(name);
  }
  return names;
}

/// "GPU 3", "GPU-b", "GPU 3 of node n1", "node n1".
std::string name_of(const Index& index, const Drain& drain) {
  const std::vector<std::string> names = names_of_nodes(index);
  const bool is_only = names.empty() || (names.size() == 1 && names.front() == drain.node);
  const std::string node = is_only ? tr("this node") : tr_format("node {}", printable(drain.node));
  if (!drain.uuid.empty()) {
    const std::string uuid = printable(drain.uuid);
    return is_only || drain.node.empty() ? uuid : tr_format("{} of {}", uuid, node);
  }
  if (!drain.gpu) return node;
  return is_only ? tr_format("GPU {}", *drain.gpu) : tr_format("GPU {} of {}", *drain.gpu, node);
}

/// Null if the node is not there.
const Machine* machine_of(const Index& index, const std::string& name) {
  const auto node = index.nodes.find(name);
  return node == index.nodes.end() || node->second.removed ? nullptr : &node->second.machine;
}

const Device* device_of(const Machine* machine, const Drain& what) {
  if (machine == nullptr || (!what.gpu && what.uuid.empty())) return nullptr;
  const auto at = what.uuid.empty() ? std::ranges::find(machine->devices, *what.gpu, &Device::index)
                                    : std::ranges::find(machine->devices, what.uuid, &Device::uuid);
  return at == machine->devices.end() ? nullptr : &*at;
}

bool is_cut(const Machine* machine, const Drain& what) {
  return machine != nullptr && is_cut_gpu(*machine, what.uuid);
}

/// Nodes that have the GPU of that UUID, or, if `drained`, a drain of it.
std::vector<std::string> homes_of(const Index& index, const std::string& uuid, bool drained) {
  std::vector<std::string> homes;
  if (drained) {
    for (const Drain& drain : index.drains) {
      if (drain.uuid == uuid) homes.push_back(drain.node);
    }
  } else {
    for (const std::string& name : names_of_nodes(index)) {
      const Machine* machine = machine_of(index, name);
      const Drain what{.uuid = uuid};
      if (device_of(machine, what) != nullptr || is_cut(machine, what)) homes.push_back(name);
    }
  }
  return homes;
}

/// With the node it is on: the only one it can be where none is named.
Result<Drain> located(const Index& index, const event::Drain& event) {
  Drain what = event.what;
  if (!what.node.empty()) return what;
  std::vector<std::string> names;
  if (what.uuid.empty()) {
    names = names_of_nodes(index);
  } else {
    names = homes_of(index, what.uuid, event.resume);
    if (names.empty()) names = homes_of(index, what.uuid, !event.resume);
  }
  if (names.size() > 1) {
    return fail(Code::Usage, tr_format("on which node? The nodes are {}", join(names, ", ")));
  }
  if (!names.empty()) what.node = names.front();
  return what;
}

/// The drain that a request means: of the device, of the node, or of a device that is not there. An
/// index names what has it now, so one that is not there is known by its UUID, if it has one.
std::vector<Drain>::iterator drain_meant(std::vector<Drain>& drains,
                                         const Drain& what,
                                         const Device* device) {
  return std::ranges::find_if(drains, [&](const Drain& drain) {
    if (drain.node != what.node) return false;
    if (device != nullptr) return is_of_device(drain, *device);
    return drain.uuid == what.uuid && (!what.uuid.empty() || drain.gpu == what.gpu);
  });
}

/// What is said of a device that is named by an index, and, where a drained one that is not present
/// had that index, how to name that one.
std::string said_of(const Index& index, const Drain& what, std::string said) {
  if (!what.gpu || !what.uuid.empty()) return said;
  const Machine* machine = machine_of(index, what.node);
  const auto at = std::ranges::find_if(index.drains, [&](const Drain& drain) {
    const bool present = machine != nullptr && is_present(drain, *machine);
    return drain.node == what.node && drain.gpu == what.gpu && !present;
  });
  if (at == index.drains.end() || at->uuid.empty()) return said;
  return tr_format(
      "{}; the drained GPU that had this index is not present: name it by its UUID, {}",
      said,
      printable(at->uuid));
}

Error no_such(const Index& index, const Drain& what, const std::string& name) {
  if (!what.uuid.empty()) {
    return {Code::NotFound,
            tr_format("there is no GPU with the UUID {}; 'ginfo -l' shows those that are present, "
                      "'gctl show' those that are drained",
                      name)};
  }
  return {Code::NotFound, said_of(index, what, tr_format("there is no {}", name))};
}

Error not_drained(const Index& index,
                  const Drain& what,
                  const Device* device,
                  const std::string& name) {
  const Drain* of_gpu =
      device == nullptr ? nullptr : drain_of_device(index.drains, what.node, *device);
  if (of_gpu != nullptr) {
    return {
        Code::WrongState,
        tr_format(
            "{} is a slice of {}, which is drained: resume that", name, printable(of_gpu->uuid))};
  }
  return {Code::WrongState, said_of(index, what, tr_format("{} is not drained", name))};
}

/// An index beside a UUID is that of the device, or what a drain of one that is away says it had.
Result<void> check_names_one(const Drain& what, std::optional<int> index) {
  if (!what.gpu || what.uuid.empty() || !index || what.gpu == index) return {};
  return fail(Code::Usage,
              tr_format("GPU {} is not {}, which is GPU {}: name it by 'gpu' or by 'uuid'",
                        *what.gpu,
                        printable(what.uuid),
                        *index));
}

}  // namespace

/// A drain outlives its node and its device: what comes back is drained still.
Result<void> Index::drain(const event::Drain& event) {
  Drain what = GF_TRY(located(*this, event));
  const std::string name = name_of(*this, what);
  GF_CHECK(may_drain(event.by, name));
  if (what.reason.size() > kMaxReason) {
    return fail(
        Code::Usage,
        tr_format("the reason has {} bytes; the maximum is {}", what.reason.size(), kMaxReason));
  }
  const bool is_device = what.gpu || !what.uuid.empty();
  const Machine* machine = machine_of(*this, what.node);
  const Device* device = device_of(machine, what);
  const auto at = drain_meant(drains, what, device);
  const bool is_there =
      machine != nullptr && (!is_device || device != nullptr || is_cut(machine, what));
  if (at == drains.end() && !is_there) {
    return std::unexpected(no_such(*this, what, name));
  }
  if (device != nullptr) {
    GF_CHECK(check_names_one(what, device->index));
  } else if (at != drains.end()) {
    GF_CHECK(check_names_one(what, at->gpu));
  }
  if (event.resume) {
    if (at == drains.end()) return std::unexpected(not_drained(*this, what, device, name));
    drains.erase(at);
  } else {
    if (device != nullptr) {
      what.gpu = device->index;
      what.uuid = device->uuid;
    } else if (is_cut(machine, what)) {
      what.gpu.reset();
    } else if (at != drains.end()) {
      what.gpu = at->gpu;  // it is away, and that is the index it had
    }
    if (at != drains.end()) {
      *at = what;
    } else {
      drains.push_back(what);
    }
  }
  if (const auto node = nodes.find(what.node); node != nodes.end()) put_node(node->second);
  return {};
}

bool Index::find_drained(const Machine& machine) {
  bool changed = false;
  for (Drain& drain : drains) {
    if (drain.node != machine.name || drain.is_of_node()) continue;
    const auto at = drain.uuid.empty()
                        ? std::ranges::find(machine.devices, *drain.gpu, &Device::index)
                        : std::ranges::find(machine.devices, drain.uuid, &Device::uuid);
    if (at == machine.devices.end()) {
      const bool was_cut = drain.gpu && is_cut(&machine, drain);
      if (was_cut) drain.gpu.reset();  // another one may have that index now
      changed = changed || was_cut;
      continue;
    }
    changed = changed || drain.gpu != at->index || drain.uuid != at->uuid;
    drain.gpu = at->index;
    drain.uuid = at->uuid;
  }
  return changed;
}

}  // namespace gflow::engine
