// SPDX-License-Identifier: Apache-2.0
#include "devices/sim/made_instances.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "core/mig_geometry.h"
#include "devices/sim/placing.h"
#include "os/file.h"

namespace gflow::devices::sim {
namespace {

constexpr Memory kMaxMachineFile = Memory::mib(1);

Result<MadeInstances> made_from(const std::string& text, const std::string& path) {
  const auto wrong = [&path](const std::string& why) {
    return fail(Code::Failure,
                fmt::format("{}: {}; without this file nothing is made of the simulated GPUs",
                            printable(path),
                            printable(why)));
  };
  try {
    const auto json = nlohmann::json::parse(text);
    MadeInstances made{.counted = json.at("counted").get<int>()};
    for (const auto& one : json.at("instances")) {
      made.all.push_back({one.at("gpu").get<std::string>(),
                          {.id = one.at("id").get<int>(),
                           .profile = one.at("profile").get<std::string>(),
                           .start = one.at("start").get<int>(),
                           .size = one.at("size").get<int>()},
                          one.at("uuid").get<std::string>()});
      const auto& [id, profile, start, size] = made.all.back().instance;
      if (start < 0 || size < 1 || start > kMaxMigSlots - size) {
        return wrong(fmt::format("{} memory slices from {} on are no place of a GPU", size, start));
      }
    }
    return made;
  } catch (const nlohmann::json::exception& problem) {
    return wrong(problem.what());
  }
}

std::string text_of(const MadeInstances& made) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const MadeInstance& one : made.all) {
    list.push_back({{"gpu", one.gpu},
                    {"id", one.instance.id},
                    {"profile", one.instance.profile},
                    {"start", one.instance.start},
                    {"size", one.instance.size},
                    {"uuid", one.uuid}});
  }
  const nlohmann::ordered_json all = {{"counted", made.counted}, {"instances", list}};
  return all.dump(1) + "\n";
}

/// The instance of that number, if it was made; those the machine file has are not.
std::vector<MadeInstance>::iterator find_made(MadeInstances& made, const std::string& gpu, int id) {
  return std::ranges::find_if(
      made.all, [&](const MadeInstance& one) { return one.gpu == gpu && one.instance.id == id; });
}

void add_made(SimDevice& device, const MadeInstances& made) {
  for (const MadeInstance& one : made.all) {
    if (one.gpu != device.device.uuid) continue;
    device.mig.instances.push_back(one.instance);
    const MigKind* kind = kind_of(device.mig, one.instance.profile);
    if (one.uuid.empty() || kind == nullptr) continue;
    device.slices.push_back({.uuid = one.uuid,
                             .mig = {one.gpu, one.instance.profile, one.instance.id, 0},
                             .memory_total = kind->memory});
  }
  std::ranges::sort(device.mig.instances, {}, &MigInstance::start);
  std::ranges::sort(device.slices, {}, [](const SimSlice& one) { return one.mig.gpu_instance; });
}

}  // namespace

std::string made_file(const std::string& machine_file) { return machine_file + ".made"; }

Result<MadeInstances> read_made(const std::string& machine_file) {
  const auto text = GF_TRY(os::read_if_exists(made_file(machine_file), kMaxMachineFile));
  return text ? made_from(*text, made_file(machine_file)) : MadeInstances{};
}

Result<void> write_made(const std::string& machine_file, const MadeInstances& made) {
  const std::string path = made_file(machine_file);
  const std::string part = path + ".part";
  GF_CHECK(os::write_file(part, text_of(made), 0644));
  if (std::rename(part.c_str(), path.c_str()) != 0) return os::errno_error("rename", part);
  return {};
}

Result<SimMachine> load_machine(const std::string& machine_file) {
  const std::string text = GF_TRY(os::read_regular_file(machine_file, kMaxMachineFile));
  SimMachine machine = GF_TRY(read_machine(text, machine_file));
  const MadeInstances made = GF_TRY(read_made(machine_file));
  for (SimDevice& device : machine.devices) {
    if (device.state == DeviceState::Mig) add_made(device, made);
  }
  return machine;
}

const SimDevice* mig_device(const SimMachine& machine, const std::string& gpu) {
  const auto at = std::ranges::find_if(machine.devices, [&gpu](const SimDevice& one) {
    return one.state == DeviceState::Mig && one.device.uuid == gpu;
  });
  return at == machine.devices.end() ? nullptr : &*at;
}

Result<MigInstance> make_instance(const std::string& machine_file,
                                  const std::string& gpu,
                                  const std::string& profile,
                                  int start) {
  const SimMachine machine = GF_TRY(load_machine(machine_file));
  const SimDevice* device = mig_device(machine, gpu);
  if (device == nullptr) return fail(Code::NotFound, "Not Found");
  MigGpu cut = device->mig;
  const MigInstance instance = GF_TRY(add_instance(cut, profile, start));
  MadeInstances made = GF_TRY(read_made(machine_file));
  made.all.push_back({gpu, instance});
  GF_CHECK(write_made(machine_file, made));
  return instance;
}

Result<std::string> make_compute(const std::string& machine_file, const std::string& gpu, int id) {
  MadeInstances made = GF_TRY(read_made(machine_file));
  const auto at = find_made(made, gpu, id);
  if (at == made.all.end()) return fail(Code::NotFound, "Not Found");
  if (!at->uuid.empty()) return fail(Code::Exhausted, "Insufficient Resources");
  at->uuid = made_up_uuid("MIG", fmt::format("{}/made/{}", gpu, ++made.counted));
  const std::string uuid = at->uuid;
  GF_CHECK(write_made(machine_file, made));
  return uuid;
}

Result<void> destroy_compute(const std::string& machine_file, const std::string& gpu, int id) {
  MadeInstances made = GF_TRY(read_made(machine_file));
  const auto at = find_made(made, gpu, id);
  if (at == made.all.end() || at->uuid.empty()) return fail(Code::NotFound, "Not Found");
  at->uuid.clear();
  return write_made(machine_file, made);
}

Result<void> destroy_instance(const std::string& machine_file, const std::string& gpu, int id) {
  MadeInstances made = GF_TRY(read_made(machine_file));
  const auto at = find_made(made, gpu, id);
  if (at == made.all.end()) return fail(Code::NotFound, "Not Found");
  if (!at->uuid.empty()) return fail(Code::WrongState, "In use by another client");
  made.all.erase(at);
  return write_made(machine_file, made);
}

}  // namespace gflow::devices::sim
