// SPDX-License-Identifier: Apache-2.0
#include "world.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "devices/sim/made_instances.h"
#include "os/user.h"

namespace fake_nvml {
namespace {

using gflow::devices::sim::CallFault;
using gflow::devices::sim::DeviceState;

/// As a call that waits for a driver that never answers, but never outliving a test.
[[noreturn]] void hang() {
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
  while (true) (void)::pause();
}

[[noreturn]] void abort_without_core() {
  const rlimit none{0, 0};
  (void)::setrlimit(RLIMIT_CORE, &none);
  std::abort();
}

/// Which MIG devices there are, as text.
std::string slices_text(const gflow::devices::sim::SimMachine& machine) {
  std::string text;
  for (const SimDevice& device : machine.devices) {
    for (const SimSlice& slice : device.slices) text += slice.uuid + ' ';
    text += '/';
  }
  return text;
}

// A handle: the number of the device from 1, that of its MIG device from 1, the generation.
constexpr unsigned kSliceShift = 16;
constexpr unsigned kGenerationShift = 32;
constexpr std::uintptr_t kNumber = 0xFFFF;

}  // namespace

World& world() {
  static World the_world;
  return the_world;
}

abi::Return World::load() {
  const std::string path = gflow::os::environment("GFLOW_FAKE_NVML").value_or("");
  auto read = gflow::devices::sim::load_machine(path);
  if (!read) {
    (void)std::fprintf(stderr, "fake libnvidia-ml: %s\n", read.error().message.c_str());
    return abi::kDriverNotLoaded;
  }
  if (slices_text(*read) != slices_text(machine_)) ++generation_;
  machine_ = std::move(*read);
  return abi::kSuccess;
}

abi::Return World::entering(std::string_view call) const {
  const auto& faults = machine_.nvml.faults;
  const auto fault = std::ranges::find(faults, call, &CallFault::call);
  if (fault == faults.end()) return abi::kSuccess;
  if (fault->kind == CallFault::Kind::Hang) hang();
  if (fault->kind == CallFault::Kind::Abort) abort_without_core();
  return static_cast<abi::Return>(fault->code);
}

World::Target World::target(abi::Handle handle) const {
  const auto word = reinterpret_cast<std::uintptr_t>(handle);
  const std::uintptr_t number = word & kNumber;
  const std::uintptr_t slice = word >> kSliceShift & kNumber;
  if (number < 1 || number > machine_.devices.size()) return {};
  const SimDevice& device = machine_.devices[number - 1];
  if (slice == 0) return {&device, nullptr};
  const bool is_stale = word >> kGenerationShift != generation_;
  if (is_stale || slice > device.slices.size()) return {};
  return {&device, &device.slices[slice - 1]};
}

abi::Handle World::handle_of(std::size_t index) const {
  return reinterpret_cast<abi::Handle>(index + 1);  // NOLINT(performance-no-int-to-ptr): opaque
}

abi::Handle World::handle_of(const SimDevice& device, std::size_t slice) const {
  const auto number = static_cast<std::uintptr_t>(&device - machine_.devices.data()) + 1;
  const std::uintptr_t word = number | (slice + 1) << kSliceShift | generation_ << kGenerationShift;
  return reinterpret_cast<abi::Handle>(word);  // NOLINT(performance-no-int-to-ptr): opaque
}

Entry enter_any(std::string_view call, abi::Handle handle, std::string_view reading) {
  const abi::Return wanted = world().entering(call);
  if (wanted != abi::kSuccess) return {wanted};
  const auto [device, slice] = world().target(handle);
  if (device == nullptr) return {abi::kInvalidArgument};
  if (device->state == DeviceState::Lost) return {abi::kGpuIsLost};
  const bool hidden = std::ranges::find(device->unsupported, reading) != device->unsupported.end();
  if (hidden) return {abi::kNotSupported};
  return {abi::kSuccess, device, slice};
}

Entry enter(std::string_view call, abi::Handle handle, std::string_view reading) {
  const Entry entry = enter_any(call, handle, reading);
  return entry.slice == nullptr ? entry : Entry{abi::kNotSupported};
}

std::string bus_id_of(const SimDevice& device) {
  const std::string& address = device.device.pci_address;  // "0000:3b:00.0"
  std::string wide = std::string(8 - std::min<std::size_t>(address.find(':'), 8), '0') + address;
  std::ranges::transform(wide, wide.begin(), [](char c) {
    return c >= 'a' && c <= 'f' ? static_cast<char>(c - 32) : c;
  });
  return wide;
}

}  // namespace fake_nvml
